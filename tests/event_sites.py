"""Streams of events over HTTP for tests: contracts, a client, clocks that tests set, and what must have been learnt."""

import asyncio
import contextlib
import datetime
import json

import numpy as np

from served import NAME, Client, declared, set_clock
from taciturn.contract.contract import contract_of
from taciturn.kernel.accounting import unit
from taciturn.service.rows import RowBatch, encoded
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

WAIT = 60


def later(horizon=1000, release=10, missing=None, wait=WAIT, **privacy):
    """The contract of `served`, with labels that come later."""
    made = declared(horizon, release)
    made["privacy"] |= privacy
    return made | {"events": {"wait": f"{wait} seconds"} | ({} if missing is None else {"missing": missing})}


class Events(Client):
    """A client of one stream of events."""

    def open(self, row, event=None, query=""):
        body = {"row": row} | ({} if event is None else {"event": event})
        return self.post(f"/v1/streams/{NAME}/events{query}", json=body)

    def open_text(self, body):
        headers = {"content-type": "application/json"}
        return self.post(f"/v1/streams/{NAME}/events", content=body, headers=headers)

    def put(self, path, **settings):
        return self.http.put(next(self.addresses) + path, **settings)

    def label(self, event, label):
        return self.put(f"/v1/streams/{NAME}/events/{event}/label", json={"label": label})

    def reward(self, event, value):
        return self.put(f"/v1/streams/{NAME}/events/{event}/reward", json={"value": value})


class Site:
    """A service with one stream, whose clocks are set by tests, and a client."""

    def __init__(self, service, client, next_tick, clock):
        self.service, self.client, self._next_tick, self._clock = service, client, next_tick, clock

    def wait(self, seconds=WAIT):
        """Let time pass, and learn what is due; how many events."""
        self._clock[0] += datetime.timedelta(seconds=seconds)
        learnt = self.service.event_writer(NAME).learn_due()
        self._next_tick(2)
        return learnt

    @property
    def round(self):
        return self.service.store.load(NAME).position[1]


@contextlib.contextmanager
def site(folder, monkeypatch, contract=None, **settings):
    """A service with one stream of events, for as long as the block runs."""
    clock = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    monkeypatch.setattr(unit, "utc_now", lambda: clock[0])
    service = Service(Store(folder / "streams.db"), **settings)
    service.create(NAME, contract_of(later() if contract is None else contract))
    secret = service.tokens.create(["admin"])[1]
    with set_clock(service) as next_tick, running(service) as address:
        yield Site(service, Events(address, secret), next_tick, clock)


def without_label(row):
    return {name: value for name, value in row.items() if name != "y"}


ACTIONS = ["sports", "politics", "weather"]


def deciding(actions=ACTIONS, policy="thompson", missing=0.0, release=10, wait=WAIT, horizon=1000, **settings):
    """A contract of decisions."""
    made = later(horizon, release, missing, wait, **settings.pop("privacy", {}))
    made["target"] = {"column": "reward", "range": [0, 1]}
    return made | {"bandit": {"actions": actions, "policy": policy, **settings}}


def decided_at_once(contract, decisions, users=None, seed=7):
    """The models of a stream of these decisions: the record, the number of the action, and the reward of each."""
    made = contract_of(contract)
    private = made.plan(on_bad="zero", seed=seed).private
    records, actions, rewards = zip(*decisions, strict=True)
    batch = RowBatch(list(records), (), len(records))
    X = np.concatenate([each[0] for each in encoded([batch], made, labelled=False)]) * made.bandit.scale(made)
    y = private.learner.labels(np.array([np.nan if each is None else each for each in rewards]), np.array(actions))
    _, releases = private.run(private.start(), X, y, users)
    return releases.points.tolist()


def models(service):
    """The models of all releases, as they are stored."""
    lines = (line for chunk in service.store.releases(NAME) for line in chunk.content.splitlines())
    return [json.loads(line)["model"] for line in lines]


def learnt_at_once(folder, rows, contract):
    """The models of a stream that learns these rows with their labels."""
    service = Service(Store(folder / "plain.db"), seed=7)
    try:
        service.create(NAME, contract_of({name: value for name, value in contract.items() if name != "events"}))
        asyncio.run(service.learn(NAME, "a key", "application/json", json.dumps({"rows": rows}).encode()))
        return models(service)
    finally:
        service.close()
