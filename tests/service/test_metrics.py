"""Metrics: public numbers for readers; the operator's, marked, for operators."""

import time

import pytest

from served import NAME, Client, declared, service_at, some_rows
from taciturn.contract.contract import contract_of
from taciturn.service.messages import Counted
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store


def test_readers_get_public_numbers_and_operators_all(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        client.learn(some_rows(25), "one")
        while service.host(NAME).view.k < 2:
            time.sleep(0.01)
        every = client.get("/metrics")
        reader = Client(address, service.tokens.create(["read"])[1]).get("/metrics")
        both = Client(address, service.tokens.create(["read", "operate"])[1]).get("/metrics")
    assert every.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f'taciturn_stream_releases{{stream="{NAME}"}} 2\n' in reader.text
    assert f'taciturn_stream_round{{stream="{NAME}"}} 20\n' in reader.text
    assert "operator" not in reader.text
    assert "NOT PRIVATE" not in reader.text
    public, mark, secret_part = both.text.partition("# NOT PRIVATE")
    assert mark
    ticks = "taciturn_last_tick_timestamp_seconds "
    assert [f"{line}\n" for line in public.splitlines() if not line.startswith(ticks)] == [
        f"{line}\n" for line in reader.text.splitlines() if not line.startswith(ticks)
    ]
    [tick] = [line.removeprefix(ticks) for line in reader.text.splitlines() if line.startswith(ticks)]
    assert 0.0 <= time.time() - float(tick) < 60.0
    assert (float(tick) / 0.05) == pytest.approx(round(float(tick) / 0.05))  # a tick, and not a moment
    for name in ("tick_age", "tick_length"):
        [seconds] = [line for line in secret_part.splitlines() if line.startswith(f"taciturn_operator_{name}_seconds ")]
        assert 0.0 <= float(seconds.split()[1]) < 60.0
    assert "taciturn_operator_unreadable_streams 0\n" in secret_part
    assert f'taciturn_operator_rows_total{{stream="{NAME}"}} 25\n' in secret_part
    assert f'taciturn_operator_commits_total{{stream="{NAME}"}} 1\n' in secret_part
    assert 'route="/v1/streams/{s}/examples",status="200"} 1\n' in secret_part
    for line in secret_part.splitlines()[1:]:
        assert line.startswith("# TYPE") or "taciturn_operator_" in line
        assert not line.startswith("# HELP") or "NOT PRIVATE" in line


def test_operators_see_rows_that_cannot_be_read_and_names_that_are_missing(tmp_path):
    """Without diagnostics, and never for readers."""
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        rows = some_rows(10)
        wrong = [{("Age" if name == "age" else name): value for name, value in row.items()} for row in rows]
        client.learn(rows, "right")
        client.learn(wrong, "wrong")
        client.learn([*rows, {**rows[0], "income": "a lot"}, {}, 7], "bad")
        operator = Client(address, service.tokens.create(["read", "operate"])[1])
        text = operator.get("/metrics").text
        made = operator.get(f"/v1/streams/{NAME}/diagnostics").json()
        reader = Client(address, service.tokens.create(["read"])[1]).get("/metrics").text
    assert f'taciturn_operator_rows_total{{stream="{NAME}"}} 33\n' in text
    assert f'taciturn_operator_bad_rows_total{{stream="{NAME}"}} 3\n' in text
    assert f'taciturn_operator_absent_total{{stream="{NAME}",column="age"}} 11\n' in text
    assert f'taciturn_operator_absent_total{{stream="{NAME}",column="y"}} 1\n' in text
    assert "Age" not in text
    counted = {"rows": 33, "bad_rows": 3, "absent": {"age": 11, "income": 1, "town": 1, "y": 1}}
    assert (made["not_private"], made["counted"], made["diagnostics"]) == (True, counted, None)
    assert "bad_rows" not in reader
    assert "absent" not in reader


def test_events_and_lines_are_counted_as_rows_are(tmp_path):
    service = Service(Store(tmp_path / "streams.db"), tick=0.05)
    service.create(NAME, contract_of(declared() | {"events": {"wait": "0.01 seconds"}}))
    service.create("lines", contract_of(declared()))
    client_of = service.tokens.create(["admin"])[1]
    with running(service) as address:
        client = Client(address, client_of)
        client.post(f"/v1/streams/{NAME}/events", json={"row": {"Age": 3, "income": 5}})
        headers = {"idempotency-key": "1", "content-type": "application/x-ndjson"}
        client.post("/v1/streams/lines/examples", content='{"age": 1, "income": 2, "y": "no"}\n{', headers=headers)
        assert service.metrics.counted("lines") == Counted(2, 1, {"town": 1})
        until = time.monotonic() + 20.0
        while not service.metrics.counted(NAME).rows:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert service.metrics.counted(NAME) == Counted(1, 1, {"age": 1, "town": 1})
