"""Server-sent events: every visible release once, in order, at ticks, and on after a lost connection."""

import json
import threading
import time

import httpx
import pytest

from served import NAME, Client, service_at, set_clock, some_rows
from taciturn.service import live
from taciturn.service.server import running


def listen(address, secret, count, after=None, until="release"):
    """The ids and data of so many events."""
    headers = {"authorization": f"Bearer {secret}"} | ({} if after is None else {"last-event-id": str(after)})
    made, number = [], None
    with httpx.stream("GET", f"{address}/v1/streams/{NAME}/live", headers=headers, timeout=20.0) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        for line in answer.iter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            if line.startswith("data: "):
                made.append((number, json.loads(line[6:])))
                number = None
            if len(made) >= count:
                break
    return made


@pytest.fixture
def served(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", horizon=5000)
    with set_clock(service) as next_tick, running(service) as address:
        yield service, Client(address, secret), address, secret, next_tick


def test_all_releases_after_the_last_one_seen(served):
    _, client, address, secret, next_tick = served
    client.learn(some_rows(2500), "one")
    next_tick(2)
    made = listen(address, secret, 250, after=0)
    assert [number for number, _ in made] == [data["k"] for _, data in made] == list(range(1, 251))
    assert [number for number, _ in listen(address, secret, 3, after=247)] == [248, 249, 250]
    assert [number for number, _ in listen(address, secret, 1)] == [250]
    assert [number for number, _ in listen(address, secret, 1, after=249)] == [250]


@pytest.mark.privacy
def test_who_listens_is_told_at_a_tick(served):
    service, client, address, secret, next_tick = served
    heard = []
    thread = threading.Thread(target=lambda: heard.extend(listen(address, secret, 3)))
    thread.start()
    while service.live == 0:
        time.sleep(0.005)
    client.learn(some_rows(20), "one")
    time.sleep(0.1)
    assert service.refresh() == []
    time.sleep(0.1)
    assert heard == []
    assert next_tick(2) == [NAME]
    client.learn(some_rows(10), "two")
    assert next_tick(2) == [NAME]
    thread.join(20.0)
    assert [number for number, _ in heard] == [1, 2, 3]


def test_a_look_at_the_head_does_not_listen(served):
    service, _, address, secret, _ = served
    answer = httpx.head(
        f"{address}/v1/streams/{NAME}/live", headers={"authorization": f"Bearer {secret}"}, timeout=10.0
    )
    assert (answer.status_code, service.live) == (200, 0)


def test_the_end_of_a_stream_is_told(served):
    _, client, address, secret, next_tick = served
    client.learn(some_rows(10), "one")
    client.post(f"/v1/streams/{NAME}/close")
    next_tick(2)
    assert listen(address, secret, 2, after=0)[1] == (None, {})


def test_a_quiet_connection_is_kept_open(served, monkeypatch):
    monkeypatch.setattr(live, "HEARTBEAT", 0.05)
    _, _, address, secret, _ = served
    with httpx.stream(
        "GET", f"{address}/v1/streams/{NAME}/live", headers={"authorization": f"Bearer {secret}"}, timeout=10.0
    ) as answer:
        lines = []
        for line in answer.iter_lines():
            lines.append(line)
            if lines.count(": no news") == 3:
                break
    assert lines[0] == "retry: 2000"
