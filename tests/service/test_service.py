"""A service and its store: what is shown of it, and what is rejected."""

import json
import logging

import httpx
import pytest

from served import NAME, Client, declared, service_at, set_clock, some_rows
from taciturn.contract.contract import contract_of
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, StoreUnavailable, Unprovable
from taciturn.service import service as services
from taciturn.service.host import Host
from taciturn.service.server import running
from taciturn.service.service import Limits, Service, UnknownLedger, UnknownStream
from taciturn.service.tokens import COOKIE
from taciturn.store import Store
from taciturn.store.encryption import new_key


@pytest.fixture
def service(tmp_path):
    made, _ = service_at(tmp_path / "streams.db", limits=Limits(streams=3, dimension=100))
    yield made
    made.close()


@pytest.mark.parametrize("name", ["", "a/b", "..", "-a", "a b", "x" * 65, "é", "a\n"])
def test_names_that_an_address_cannot_have_are_rejected(service, name):
    with pytest.raises(InvalidInput, match="the name of a stream"):
        service.create(name, contract_of(declared()))


def test_streams_and_features_are_limited(service):
    with pytest.raises(StateConflict, match="already"):
        service.create(NAME, contract_of(declared()))
    service.create("two", contract_of(declared()))
    wide = declared()
    wide["columns"]["ip"] = {"hash": 200}
    with pytest.raises(InvalidInput, match="204 features"):
        service.create("three", contract_of(wide))
    service.create("three", contract_of(declared()))
    with pytest.raises(StateConflict, match="holds no more"):
        service.create("four", contract_of(declared()))


def test_ids_of_users_need_a_bound(service):
    contract = declared()
    contract["privacy"]["user"] = "who"
    with pytest.raises(InvalidInput, match="rows_per_user"):
        service.create("users", contract_of(contract))


def test_what_is_not_there_is_said_so(service):
    with pytest.raises(UnknownStream):
        service.host("none")
    with pytest.raises(UnknownLedger):
        service.ledger("none")
    with pytest.raises(UnknownLedger):
        service.create("two", contract_of(declared()), "none")


def test_a_stream_that_cannot_be_read_is_not_said_to_be_missing(tmp_path, caplog):
    """As with a wrong key: the operator is told why, in the log."""
    path = tmp_path / "streams.db"
    for name in ("right", "wrong"):
        (tmp_path / name).write_bytes(name.encode().ljust(32))
        (tmp_path / name).chmod(0o600)
    owner = Service(Store(path, key=tmp_path / "right"))
    owner.create(NAME, contract_of(declared()))
    secret = owner.tokens.create(["admin"])[1]
    owner.close()
    service = Service(Store(path, key=tmp_path / "wrong"))
    with running(service) as address:
        client = Client(address, secret)
        answer = client.get(f"/v1/streams/{NAME}")
        assert (answer.status_code, client.get("/v1/streams/other").status_code) == (503, 404)
        assert client.get("/v1/streams").json() == {"streams": [], "unreadable": [NAME]}
        assert client.get("/readyz").json() == {"status": "ready", "unreadable": 1}
        reader = httpx.get(
            f"{address}/v1/streams",
            headers={"authorization": f"Bearer {service.tokens.create(['read'], stream='x')[1]}"},
        )
        assert reader.json()["unreadable"] == []  # a token for another stream is not told its name
        service.refresh()
        service.refresh()
    assert "its operator" in answer.text.lower()
    assert caplog.text.count(f"{NAME} is not shown on") == 1
    service.close()


def test_a_store_of_which_no_stream_can_be_read_is_not_served(tmp_path):
    """Some of them are enough: one that cannot be read does not keep others from being served."""
    path, key = tmp_path / "streams.db", new_key(tmp_path / "key")
    assert key.id
    Service(Store(path)).must_read_one()  # there are none yet
    owner = Service(Store(path, key=tmp_path / "key"))
    owner.create(NAME, contract_of(declared()))
    owner.must_read_one()
    without = Service(Store(path))
    with pytest.raises(InvalidInput, match=f"no stream of .* can be read, {NAME} for instance: .*no key is given"):
        without.must_read_one()
    without.create("two", contract_of(declared()))
    without.must_read_one()


def test_a_server_that_shows_only_changes_nothing(tmp_path):
    service, _ = service_at(tmp_path / "streams.db")
    service.close()
    reader = Service(Store(tmp_path / "streams.db"), read_only=True)
    secret = reader.tokens.create(["admin"])[1]
    with running(reader) as address:
        client = Client(address, secret)
        assert client.learn(some_rows(1), "k").status_code == 409
        assert client.post("/v1/streams", json={"name": "b", "contract": declared()}).status_code == 409
        assert client.predict(some_rows(1)).status_code == 200


def test_a_store_that_cannot_be_read_leaves_what_was_visible(tmp_path, monkeypatch):
    monkeypatch.setattr(services, "OVERDUE_S", 0.2)
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        assert client.get("/readyz").status_code == 200
        at_tick = service.store.at_tick
        service.store.at_tick = lambda *_: (_ for _ in ()).throw(StoreUnavailable("gone"))
        while client.get("/readyz").status_code == 200:
            pass
        assert client.predict(some_rows(1)).status_code == 200
        assert client.get("/healthz").status_code == 200
        service.store.at_tick = at_tick
        while client.get("/readyz").status_code == 503:
            pass


def test_an_error_of_one_stream_does_not_stop_others(tmp_path, caplog):
    service, _ = service_at(tmp_path / "streams.db")
    service.create("two", contract_of(declared()))
    at_tick = service.store.at_tick
    error = StateConflict(f"an array of {service.store.address} is damaged.")

    def fails(*given):
        return [each._replace(error=error if each.name == NAME else None) for each in at_tick(*given)]

    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        for name in (NAME, "two"):
            assert client.learn(some_rows(10), "k", name).status_code == 200
        service.store.at_tick = fails
        with caplog.at_level(logging.ERROR, "taciturn"):
            assert next_tick(2) == ["two"]
        assert service.host(NAME).view.k == 0
        assert service.store.address not in caplog.text
        service.store.at_tick = at_tick
        assert next_tick() == [NAME]


@pytest.mark.parametrize("kind", [BudgetExhausted, Unprovable])
def test_errors_of_a_contract_are_told(tmp_path, kind, monkeypatch):
    service, secret = service_at(tmp_path / "streams.db")

    def fails(*_):
        raise kind("a sentence about settings.")

    monkeypatch.setattr(service, "create", fails)
    with running(service) as address:
        answer = Client(address, secret).post("/v1/streams", json={"name": "b", "contract": declared()})
    assert answer.status_code in (409, 422)
    assert answer.json() == {"error": "a sentence about settings."}


def test_an_adopted_stream_goes_on(tmp_path):
    """After a restored backup: its cost is that of both streams, its releases and requests are known."""
    service, secret = service_at(tmp_path / "streams.db")
    rows = some_rows(15)
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, secret)
        client.learn(rows, "one")
        next_tick(2)
        first = client.get(f"/v1/streams/{NAME}/models/1").json()["scores"]
        Store(tmp_path / "streams.db").adopt(NAME)
        next_tick()
        assert client.learn(rows, "one").json()["last"] == 15
        assert client.learn(some_rows(5), "two").json()["first"] == 16
        next_tick(2)
        stream = client.get(f"/v1/streams/{NAME}").json()
        assert stream["stream"]["releases"] == 2
        assert stream["stream"]["budget"]["epsilon"] > 1.0
        assert "adopted from a restored backup" in stream["guarantee"]
        assert client.get(f"/v1/streams/{NAME}/models/1").json()["scores"] == first


def test_a_stream_that_begins_while_the_store_is_read_stays_shown(service, monkeypatch):
    """What was read at the tick does not have it yet."""
    at_tick = service.store.at_tick

    def begin(*arguments):
        found = at_tick(*arguments)
        if len(service.open_hosts()) == 1:
            service.create("two", contract_of(declared()))
        return found

    monkeypatch.setattr(service.store, "at_tick", begin)
    service.refresh()
    assert [host.name for host in service.open_hosts()] == [NAME, "two"]


def test_operators_are_warned_of_a_witness_that_is_restored_with_the_store(tmp_path, caplog):
    """At each start, and by `/readyz`, which tells others nothing of it."""
    Store(tmp_path / "streams.db", witness=tmp_path / "witness.db")
    service, secret = service_at(tmp_path / "streams.db")
    with caplog.at_level(logging.WARNING, "taciturn"), running(service) as address:
        told = Client(address, secret).get("/readyz").json()
        reader = service.tokens.create(["read"])[1]
        public = [Client(address, reader).get("/readyz").json(), httpx.get(f"{address}/readyz").json()]
    assert told == {"status": "ready", "warning": service.warning}
    assert public == [{"status": "ready"}] * 2
    assert caplog.text.count("the witness is on the same disk") == 1
    assert str(tmp_path) not in service.warning


CHARACTERS = [*map(chr, range(0x80)), "é", "\u2028", "\ufeff", "😀"]


def named(shape, names):
    """Contracts whose columns, categories and classes, or target have these names, and rows for each of them."""
    if shape == "columns":
        made = declared() | {"columns": {name: {"range": [0, 1]} for name in names}}
        return {"wide": (made, [dict.fromkeys(names, 0.5) | {"y": "yes"}] * 10)}
    if shape == "values":
        made = declared() | {"target": {"column": "y", "classes": names[:60]}}
        made["columns"]["town"] = {"categories": names}
        return {"many": (made, [{"age": 1, "income": 1, "town": name, "y": name} for name in names[:10]])}
    made = {}
    for name in names:
        target = {"column": name, "positive": ["yes"]}
        made[f"s{len(made)}"] = declared() | {"target": target}, [{"age": 1, "income": 1, name: "yes"}] * 10
    return made


@pytest.mark.parametrize("shape", ["columns", "values", "target"])
def test_every_character_may_be_in_a_name(tmp_path, shape):
    """Streams with such names are begun, learn, predict, and are shown again by the next server."""
    some = (*CHARACTERS[:0x30:3], "\\", '"') if shape == "target" else CHARACTERS
    chosen = named(shape, [f"a{each}b" for each in some])
    service = Service(Store(tmp_path / "streams.db"))
    secret = service.tokens.create(["admin"])[1]
    with set_clock(service) as next_tick, running(service) as address:
        client, (_, session) = Client(address, secret), service.tokens.open_session(secret)
        for name, (contract, rows) in chosen.items():
            made = client.post("/v1/streams", json={"name": name, "contract": contract})
            assert made.status_code == 201, made.text
            assert client.learn(rows, "k", name).json()["last"] == 10
        next_tick(2)
        latest = {}
        for name, (_, rows) in chosen.items():
            assert None not in client.predict(rows, name).json()["predictions"]
            latest[name] = client.get(f"/v1/streams/{name}/models/latest").json()["scores"]
            page = client.get(f"/streams/{name}", headers={"authorization": "", "cookie": f"{COOKIE}={session}"})
            assert page.status_code == 200
        assert client.get("/metrics").status_code == 200
    again = Service(Store(tmp_path / "streams.db"))
    again.refresh()
    assert again.unreadable() == []
    assert {host.name: json.loads(host.view.body)["scores"] for host in again.open_hosts()} == latest
    again.close()


def test_a_stream_with_an_unforeseen_error_stops_no_other(tmp_path, monkeypatch, caplog):
    """It is listed as unreadable; the others go on, and the next server starts."""
    owner, secret = service_at(tmp_path / "streams.db")
    owner.create("two", contract_of(declared()))
    owner.close()

    class Faulty(Host):
        def __init__(self, store, saved, layers=None):
            if saved.name == NAME:
                raise ValueError("a value of a row")
            super().__init__(store, saved, layers)

    monkeypatch.setattr(services, "Host", Faulty)
    service = Service(Store(tmp_path / "streams.db"))
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, secret)
        assert client.get("/readyz").json() == {"status": "ready", "unreadable": 1}
        assert client.get("/v1/streams").json()["unreadable"] == [NAME]
        assert client.get(f"/v1/streams/{NAME}").status_code == 503
        assert client.learn(some_rows(10), "k", "two").status_code == 200
        assert next_tick(2) == ["two"]
    assert f"{NAME} is not shown on: ValueError in" in caplog.text
    assert "a value of a row" not in caplog.text


def test_a_stream_that_cannot_be_served_is_not_stored(tmp_path, monkeypatch):
    service, secret = service_at(tmp_path / "streams.db")

    def fails(*_):
        raise ValueError

    monkeypatch.setattr(services, "Host", fails)
    with running(service) as address:
        made = Client(address, secret).post("/v1/streams", json={"name": "two", "contract": declared()})
    assert made.status_code == 500
    assert Store(tmp_path / "streams.db").names() == [NAME]


@pytest.mark.parametrize("number", [2**53 + 1, 10**30, 10**400], ids=["first", "larger", "huge"])
def test_a_release_that_never_comes_is_rejected(tmp_path, number):
    service, secret = service_at(tmp_path / "streams.db")
    with running(service) as address:
        body = json.dumps({"name": "two", "contract": declared(release=number)})
        made = Client(address, secret).post("/v1/streams", content=body, headers={"content-type": "application/json"})
    assert made.status_code == 422
    assert "release must be at most 2^53" in made.json()["error"]
