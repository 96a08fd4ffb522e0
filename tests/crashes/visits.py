"""A server whose visitors' labels, or rewards, come later: each is learnt once, with its round, or was rejected."""

import asyncio
import contextlib
import itertools
import random
import threading
import time

import httpx

from event_sites import ACTIONS, Events, decided_at_once, deciding, later, learnt_at_once, models, without_label
from served import NAME, processes, some_rows
from taciturn.contract.contract import contract_of
from taciturn.service.service import Service
from taciturn.store import Store


class Visits:
    """Clients that open events and close most of them, in threads, and what they were answered."""

    def __init__(self, address, secret, decide, clients=4):
        self.rounds, self.labels, self.errors = {}, {}, []
        self._stop, self._decide = threading.Event(), decide
        self._threads = [
            threading.Thread(target=self._guarded, args=(Events(address, secret), number), daemon=True)
            for number in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def _guarded(self, client, number):
        try:
            self._visit(client, number)
        except BaseException as error:
            self.errors.append(error)

    def _visit(self, client, number):
        chance = random.Random(number)
        for visit in itertools.count():
            if self._stop.is_set():
                return
            event, row = f"{number}-{visit}", some_rows(1, 1000 * number + visit)[0]
            if self._decide:
                body = {"contextFeatures": without_label(row), "eventId": event}
                opened = self._insist(lambda body=body: client.post(f"/v1/streams/{NAME}/rank", json=body))
            else:
                opened = self._insist(lambda row=row, event=event: client.open(without_label(row), event))
            if opened.status_code == 410:  # it was committed, the server killed, and the wait has passed
                self.rounds[event] = None, row, None
                continue
            assert opened.status_code == 200, opened.text
            made = opened.json()
            self.rounds[event] = made["round"], row, made.get("rewardActionId")
            if chance.random() < 0.2:
                continue
            time.sleep(chance.uniform(0.0, 0.1))
            label = chance.choice([0.0, 1.0]) if self._decide else row["y"]
            close = client.reward if self._decide else client.label
            answer = self._insist(lambda close=close, event=event, label=label: close(event, label))
            assert answer.status_code in (200, 410), answer.text
            if answer.status_code == 200:
                assert answer.json()["round"] == made["round"]
                self.labels[event] = label

    def _insist(self, request):
        """The answer, however often the server is killed meanwhile."""
        until = time.monotonic() + 60.0
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = request()
                if answer.status_code not in (429, 503):
                    return answer
            assert time.monotonic() < until, "no answer within a minute"
            time.sleep(0.01)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(90.0)
        assert not self.errors, self.errors


class Visited:
    """A server under load of such events, that can be killed (`killing`); `decide` for rewards of its own actions."""

    def __init__(self, address, folder, ends, decide):
        missing = None if decide else "no"  # the action of a decision whose answer was lost is not known
        self.contract = (
            deciding(wait=0.4, horizon=100_000, missing=missing) if decide else later(100_000, 10, missing, 0.4)
        )
        self.service, self.folder, self.decide = Service(Store(address), seed=7), folder, decide
        ends.callback(self.service.close)
        self.service.create(NAME, contract_of(self.contract))
        self.token, secret = self.service.tokens.create(["admin"])
        self.server = ends.enter_context(processes(address))[0]
        self.visits = Visits(self.server.address, secret, decide)

    def start(self):
        if not self.runs():
            self.server.start()

    def runs(self):
        assert not self.visits.errors, self.visits.errors
        return self.server.process.is_alive()

    def progress(self):
        return len(self.visits.labels) // 3

    def kill(self):
        self.server.kill()

    def check(self, exactly=True):
        """A round that was answered stays; what they all say is checked in the end."""

    def finish(self):
        self.server.start()
        self.server.wait()
        self.visits.stop()
        until = time.monotonic() + 60.0
        opened = self.service.store.events(self.service.host(NAME).lineage).opened
        while self.service.store.load(NAME).position[1] < opened and time.monotonic() < until:
            time.sleep(0.05)
        find_rounds(self.service, self.token.id, self.visits)
        check(self.service, self.folder, self.visits, opened, self.contract, self.decide)
        assert opened > len(self.visits.labels) > 5


def find_rounds(service, owner, visits):
    """The rounds of events whose answers were lost until their wait had passed, by the hashes of their ids."""
    hashes = asyncio.run(service.event_writer(NAME).hashes())
    with service.store.database.transaction(write=False) as now:
        known = {bytes(name): int(number) for name, number in now.rows("SELECT id, number FROM stream_events")}
    for event, (number, row, action) in visits.rounds.items():
        stored = known[hashes.of(b"event", f"{owner}\0{event}".encode())]
        assert number in (None, stored)
        visits.rounds[event] = stored, row, action


def check(service, folder, visits, opened, contract, decide):
    """Every event has a round of its own, and the releases are those of their rows with the labels that were taken."""
    assert service.store.load(NAME).position[1] == opened == len(visits.rounds), "events were lost, or learnt twice"
    by_round = {number: (event, row, action) for event, (number, row, action) in visits.rounds.items()}
    assert sorted(by_round) == list(range(1, opened + 1))
    ordered = [by_round[number] for number in range(1, opened + 1)]
    if decide:
        rows = [
            (without_label(row), 0 if action is None else ACTIONS.index(action), visits.labels.get(event))
            for event, row, action in ordered
        ]
        assert models(service) == decided_at_once(contract, rows)
    else:
        rows = [{**row, "y": visits.labels.get(event, "no")} for event, row, _ in ordered]
        assert models(service) == learnt_at_once(folder, rows, contract)
