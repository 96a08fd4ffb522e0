"""A served stream is closed and followed by another: in one transaction, charged once, from what is visible."""

import asyncio
import json
import time

import pytest

from served import NAME, Client, declared, service_at, set_clock, some_rows
from taciturn.accounting.ledger import Ledger
from taciturn.client import Client as PublicClient
from taciturn.client import ServiceError
from taciturn.contract.contract import contract_of
from taciturn.errors import StateConflict
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store
from taciturn.store.sqlite import Sqlite

HORIZON = 60


@pytest.fixture
def place(tmp_path):
    Ledger.create(tmp_path / "streams.db", Privacy(2.0, 1e-6), population="people")
    return tmp_path / "streams.db"


def learnt(service, rows, key, name=NAME):
    body = json.dumps({"rows": rows}).encode()
    return asyncio.run(service.learn(name, key, "application/json", body))


def test_a_stream_that_ended_is_followed(place):
    service, secret = service_at(place, horizon=HORIZON, ledger="people", tick=0.1)
    with running(service) as address, PublicClient(address, secret) as client:
        client.learn(NAME, some_rows(HORIZON))
        with pytest.raises(ServiceError, match="ends after 60 rows, and none is left"):
            client.learn(NAME, some_rows(1))
        made = client.renew(NAME, "clicks-2")  # right after the last commit: it waits for the tick
        assert (made["closed"], made["starts_from_the_model"]) == (NAME, True)
        assert "in both streams is promised" in made["promise"]
        assert made["promise"] in made["opened"]["guarantee"]
        while not client.stream(NAME)["stream"]["closed"]:  # from the next tick on
            time.sleep(0.02)
        old, new = client.model(NAME), client.model("clicks-2")
        assert (old.releases, old.round) == (HORIZON // 10, HORIZON)
        assert new.releases == 0
        assert new.point.tolist() == old.point.tolist(), "the last model is in use until the first release"
        assert client.predict("clicks-2", some_rows(3)).predictions == client.predict(NAME, some_rows(3)).predictions
        with pytest.raises(ServiceError, match="is closed"):
            client.learn(NAME, some_rows(1))
        assert client.learn("clicks-2", some_rows(10)).last == 10
        lines = client.ledger("people")["lines"]
        assert len({line["reserved"]["epsilon"] for line in lines}) == 1
        assert len(lines) == 2, "the successor is charged in full, in the ledger of the first"
        again = client.renew(NAME, "clicks-2")  # an answer that was lost
        assert again["opened"]["stream"]["name"] == "clicks-2"
        assert len(client.ledger("people")["lines"]) == 2


@pytest.mark.privacy
def test_it_starts_from_what_is_visible(place):
    """A release that is committed and not visible yet would be shown by the successor before its tick."""
    service, _ = service_at(place)
    try:
        with set_clock(service) as next_tick:
            learnt(service, some_rows(10), "one")
            next_tick()
            shown = service.host(NAME).view.model.point
            learnt(service, some_rows(10, seed=1), "two")
            service._renew(service.host(NAME), "next", service.host(NAME).contract, None)
            assert service.host("next").view.model.point.tolist() == shown.tolist()
            next_tick()
            assert service.host(NAME).view.k == 2
            assert service.host(NAME).view.model.point.tolist() != shown.tolist()
            assert service.host("next").view.model.point.tolist() == shown.tolist()
    finally:
        service.close()


def test_after_a_restart_it_goes_on_as_before(place):
    service, _ = service_at(place, tick=0.1)
    learnt(service, some_rows(20), "one")
    while service.host(NAME).view.k < 2:
        service.refresh()
    asyncio.run(service.renew(NAME, "next", contract_of(declared(1000, 20, epsilon=0.5))))
    learnt(service, some_rows(20), "two", "next")
    point = service.host("next").view.model.point
    service.close()
    again = Service(Store(place))
    try:
        again.refresh()
        host = again.host("next")
        assert host.contract.epsilon == 0.5
        assert host.plan.renewal is not None
        assert "in both streams is promised" in host.guarantee
        learnt(again, some_rows(20, seed=3), "three", "next")
        assert point.shape == host.view.model.point.shape
    finally:
        again.close()


def test_a_server_that_was_slower_answers_as_the_other_did(place, monkeypatch):
    """Two clients, or one whose request was repeated by a proxy, ask two servers at once."""
    service, _ = service_at(place, ledger="people", tick=0.1)
    learnt(service, some_rows(10), "one")
    other = Service(Store(place), tick=0.1)
    for each in (service, other):
        each.refresh()
        while each.host(NAME).view.k < 1:
            each.refresh()
    create = service.store.create

    def slow(*arguments, **settings):
        other._renew(other.host(NAME), "next", other.host(NAME).contract, "people")
        return create(*arguments, **settings)

    monkeypatch.setattr(service.store, "create", slow)
    try:
        made = service._renew(service.host(NAME), "next", service.host(NAME).contract, "people")
        assert made.opened.stream.name == "next"
        assert len(Ledger(place, population="people").lines) == 2
        with pytest.raises(StateConflict, match="already"):
            service._renew(service.host("next"), NAME, service.host(NAME).contract, "people")
    finally:
        service.close()
        other.close()


@pytest.mark.parametrize("after", [False, True])
def test_a_process_that_stops_has_done_all_of_it_or_nothing(place, after, monkeypatch):
    service, _ = service_at(place, ledger="people", tick=0.1)
    learnt(service, some_rows(10), "one")
    while service.host(NAME).view.k < 1:
        service.refresh()
    commit = Sqlite.commit

    class Killed(BaseException):
        pass

    def planted(self, connection):
        [(streams,)] = connection.execute("SELECT count(*) FROM streams").fetchall()
        if streams == 2:
            if after:
                commit(self, connection)
            raise Killed
        commit(self, connection)

    with monkeypatch.context() as patch:
        patch.setattr(Sqlite, "commit", planted)
        with pytest.raises(Killed):
            service._renew(service.host(NAME), "next", service.host(NAME).contract, "people")
    service.close()
    again = Service(Store(place), tick=0.1)
    try:
        again.refresh()
        ledger = Ledger(place, population="people")
        assert again.store.load(NAME).closed == after
        assert len(ledger.lines) == (2 if after else 1)
        made = asyncio.run(again.renew(NAME, "next"))
        assert made.opened.stream.name == "next"
        assert len(Ledger(place, population="people").lines) == 2
        assert again.store.load(NAME).closed
    finally:
        again.close()


def test_what_cannot_be_followed_is_rejected_and_goes_on(place):
    service, secret = service_at(place, ledger="people", tick=0.1)
    with running(service) as address:
        client = Client(address, secret)

        def renew(body, name=NAME):
            answer = client.post(f"/v1/streams/{name}/renew", json=body)
            return answer.status_code, answer.json()["error"]

        assert renew({"name": "next"}) == (
            422,
            f"{NAME} has released nothing, so there is no model to start from. Learn more rows.",
        )
        client.learn(some_rows(10), "one")
        other = declared()
        other["columns"]["age"] = {"range": [0, 120]}
        status, sentence = renew({"name": "next", "contract": other})
        assert (status, "declares other features" in sentence) == (422, True)
        dear = declared(epsilon=1.9)
        status, sentence = renew({"name": "next", "contract": dear})
        assert (status, "budget" in sentence) == (409, True), sentence
        assert renew({"name": NAME})[0] == 409
        assert renew({"name": "next", "ledger": "nobody"})[0] == 404
        assert renew({"name": "a/b"})[0] == 422
        assert renew({"nam": "next"})[0] == 422
        assert renew({"name": "next"}, "none")[0] == 404
        assert (
            client.post(f"/v1/streams/{NAME}/renew", content=b"{", headers={"content-type": "x/y"}).status_code == 415
        )
        assert (
            client.post(
                f"/v1/streams/{NAME}/renew", content=b"{", headers={"content-type": "application/json"}
            ).status_code
            == 400
        )
        assert client.learn(some_rows(10), "two").status_code == 200, "none of this closed it"
