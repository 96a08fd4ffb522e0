"""A dry run: what it tells of the sender's rows, that it tells nothing else, and that it leaves no trace."""

import io
import json

import httpx
import pyarrow as pa
import pytest

from served import ARROW, NAME, Client, declared, service_at, some_rows
from taciturn.contract.contract import contract_of
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

LINES = "application/x-ndjson"
GOOD = {"age": 30, "income": 10, "town": "Oslo", "y": "yes"}


def with_users(horizon=1_000):
    made = declared(horizon, 10)
    return made | {"privacy": made["privacy"] | {"user": "who", "rows_per_user": 2}}


def tried(address, secret, body, media="application/json", name=NAME):
    content = body if isinstance(body, bytes) else json.dumps({"rows": body}).encode()
    headers = {"authorization": f"Bearer {secret}", "content-type": media}
    return httpx.post(f"{address}/v1/streams/{name}/check", content=content, headers=headers, timeout=60.0)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server with a stream, and one whose users are protected; the secret of a token that may only learn."""
    service, _ = service_at(tmp_path_factory.mktemp("check") / "streams.db", tick=0.05)
    service.create("users", contract_of(with_users()))
    with running(service) as address:
        yield address, service.tokens.create(["learn"])[1], service


def test_bad_rows_and_their_reasons_names_and_values_outside(site):
    address, secret, _ = site
    rows = [
        GOOD,
        {**GOOD, "age": 200, "town": "Bergen", "other": 1},
        {"Age": 30, "income": None, "town": "", "y": "no"},
        {**GOOD, "income": "a lot", "other": 2},
        7,
    ]
    made = tried(address, secret, rows).json()
    assert (made["stream"], made["not_private"], made["rows"], made["bad_rows"]) == (NAME, True, 5, 3)
    assert sorted(made["reasons"].values()) == [1, 1, 1]
    assert made["reasons"]["income is not a number"] == made["reasons"]["it is not a JSON object"] == 1
    assert made["columns"] == {
        "age": {"absent": 1, "missing": 1, "above": 1},
        "income": {"missing": 1},
        "town": {"missing": 1, "unknown": 1},
        "y": {},
    }
    assert (made["target"], made["user"], made["users"], made["ignored"]) == ("y", None, None, [])
    assert made["undeclared"] == ["other", "Age"]
    assert made["hints"][1] == "Age is not in the contract, and is not read. Did you mean age?"
    assert made["labels"] == {"yes": 2}
    assert "a lot" not in json.dumps(made)
    assert "Bergen" not in json.dumps(made)
    assert tried(address, secret, [{**GOOD, "town": None}, {}]).json()["hints"] == []
    first, *_ = tried(address, secret, [{"y": "yes"}]).json()["hints"]
    assert first == "No row has age, which is missing in all of them."


def test_lines_and_tables_are_tried_as_they_are_learnt(site):
    address, secret, _ = site
    lines = "\n".join([json.dumps(GOOD), "{", json.dumps({**GOOD, "income": "a lot"})]).encode()
    made = tried(address, secret, lines, LINES).json()
    assert (made["rows"], made["bad_rows"]) == (3, 2)
    assert set(made["reasons"]) == {"it is not valid JSON", "income is not a number"}
    table = pa.Table.from_pylist([GOOD, {**GOOD, "income": None}])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made = tried(address, secret, sink.getvalue(), ARROW).json()
    assert (made["rows"], made["bad_rows"], made["columns"]["income"]) == (2, 1, {"missing": 1})
    assert tried(address, secret, b"1", "text/csv").status_code == 415


def test_users_are_counted_in_these_rows_alone(site):
    address, secret, _ = site
    rows = [{**GOOD, "who": who} for who in ("anna", "anna", "anna", "bert", None)]
    for _ in range(2):
        made = tried(address, secret, rows, name="users").json()
        assert made["users"] == {"users": 2, "without_id": 1, "counted": 3}
        assert made["columns"]["who"] == {"missing": 1}


@pytest.mark.parametrize("name", [NAME, "users"])
def test_it_leaves_no_trace_and_tells_nothing_of_what_others_sent(tmp_path, name):
    """Before and after others have sent rows, and after the end, the answer is the same; the stream is not touched."""
    service = Service(Store(tmp_path / "streams.db"), tick=0.05)
    service.create(NAME, contract_of(declared(1_000, 10)))
    service.create("users", contract_of(with_users()))
    secret = service.tokens.create(["admin"])[1]
    rows = [{**row, "who": f"user {i % 3}"} for i, row in enumerate(some_rows(40))]

    def everything():
        with service.store.database.transaction(write=False) as now:
            tables = [table for (table,) in now.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {table: now.rows(f"SELECT * FROM {table}") for table in tables if table != "tokens"}

    with running(service) as address:
        client = Client(address, secret)
        before = everything()
        first = tried(address, secret, rows, name=name)
        assert first.status_code == 200
        assert everything() == before
        assert service.writers == {}
        assert service.metrics.counted(name).rows == 0
        client.learn(rows, "one", name=name)
        before = everything()
        assert tried(address, secret, rows, name=name).content == first.content
        assert everything() == before
        assert client.learn(rows[:1], "two", name=name).json()["first"] == 41
        client.post(f"/v1/streams/{name}/close")
        assert tried(address, secret, rows, name=name).content == first.content
    shows_only = Service(Store(tmp_path / "streams.db"), read_only=True, tick=0.05)
    with running(shows_only) as address:
        assert tried(address, secret, rows, name=name).content == first.content


def test_it_is_bounded(site):
    address, secret, service = site
    assert tried(address, secret, [GOOD] * service.limits.checked_rows).status_code == 200
    assert tried(address, secret, [GOOD] * (service.limits.checked_rows + 1)).status_code == 413
    names = {f"{number} {'x' * 1_000}": 1 for number in range(1_000)}
    made = tried(address, secret, [names])
    assert made.status_code == 200
    assert len(made.content) < 10_000


@pytest.mark.parametrize("name", ["\\ud800", "\\u0000", '\\"', "\\n", ""])
def test_any_name_can_be_told(site, name):
    address, secret, _ = site
    made = tried(address, secret, b'{"rows": [{"%s": 1}]}' % name.encode())
    assert made.status_code == 200
    assert len(made.json()["undeclared"]) == 1


def test_a_stream_of_decisions_has_no_rows_to_try(tmp_path):
    service = Service(Store(tmp_path / "streams.db"))
    deciding = declared(1_000, 10) | {
        "target": {"column": "y", "range": [0, 1]},
        "events": {"wait": "10 minutes", "missing": 0.0},
        "bandit": {"actions": ["left", "right"]},
    }
    service.create(NAME, contract_of(deciding))
    secret = service.tokens.create(["learn"])[1]
    with running(service) as address:
        answer = tried(address, secret, [GOOD])
    assert answer.status_code == 422
    assert "chooses actions" in answer.json()["error"]
