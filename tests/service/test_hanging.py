"""A database that hangs, or fails over: what is answered meanwhile, how soon a server is ready again, and its end."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from cut_connections import Hanging
from served import NAME, Client, Limits, Load, free_port, new_store, processes, service_at, some_rows
from taciturn.service import service as services
from taciturn.service import writer
from taciturn.service.server import running
from taciturn.store import Store


@pytest.fixture
def proxy(server):
    with Hanging(server.new_database()) as made:
        yield made


@pytest.fixture
def impatient(monkeypatch):
    """What takes seconds takes tenths of them."""
    monkeypatch.setattr(services, "OVERDUE_S", 0.3)
    monkeypatch.setattr(services, "STOP_S", 0.3)
    return Limits(store_seconds=0.4)


def until(condition, seconds=60.0):
    """Wait for a condition; for how long."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.01)
    return time.monotonic() - began


def test_a_database_that_hangs_is_not_ready_and_requests_are_answered(proxy, impatient):
    """Rows are answered 503 and Retry-After; predictions go on; and when it goes on, so does all else, by itself."""
    service, secret = service_at(proxy.address, tick=0.05, limits=impatient)
    with running(service) as address:
        client = Client(address, secret)
        assert client.learn(some_rows(3), "before").json()["last"] == 3
        proxy.hang()
        until(lambda: client.get("/readyz").status_code == 503)
        answer = client.learn(some_rows(3), "k")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert client.get("/v1/ledgers").status_code == 503
        assert client.predict(some_rows(1)).status_code == 200
        assert client.get("/healthz").status_code == 200
        proxy.go_on()
        until(lambda: client.get("/readyz").status_code == 200)
        assert client.insist(some_rows(3), "k").json()["first"] == 4  # learnt once, whichever request did it


def test_a_long_request_is_answered_if_the_store_can_be_read(tmp_path, monkeypatch):
    """It is learnt for longer than a hanging store is waited for."""
    service, secret = service_at(tmp_path / "streams.db", tick=0.05, limits=Limits(store_seconds=0.1))
    commit = service.store.commit

    def slow(*arguments, **settings):
        time.sleep(0.5)
        return commit(*arguments, **settings)

    monkeypatch.setattr(service.store, "commit", slow)
    with running(service) as address:
        assert Client(address, secret).learn(some_rows(3), "k").status_code == 200


def test_a_server_stops_while_its_database_hangs(proxy, impatient, caplog):
    service, secret = service_at(proxy.address, tick=0.05, limits=impatient)
    with contextlib.ExitStack() as ends:
        client = Client(ends.enter_context(running(service)), secret)
        client.learn(some_rows(3), "before")
        proxy.hang()
        until(lambda: client.get("/readyz").status_code == 503)
        assert client.learn(some_rows(3), "k").status_code == 503
        ends.close()
    assert "what waits for it is given up" in caplog.text


def test_a_failover_is_noticed_by_no_client(proxy, caplog):
    """All connections end, those that are idle, too: each server is ready all the time, and every request is 200."""
    service, secret = service_at(proxy.address, tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        for number in range(3):
            with contextlib.ExitStack() as many:
                for _ in range(8):
                    many.enter_context(service.store.database.transaction(write=False))
            proxy.cut()
            answers = [client.learn(some_rows(1), f"{number} {each}").status_code for each in range(5)]
            answers += [client.get(path).status_code for path in ("/readyz", "/v1/ledgers")]
            assert set(answers) == {200}
            time.sleep(0.2)
            assert client.get("/readyz").status_code == 200


def test_processes_that_are_always_faster_are_no_error(tmp_path, monkeypatch, caplog):
    """429, and no line in the log: the client tries again."""
    monkeypatch.setattr(writer, "PAUSE_S", 1e-5)
    service, secret = service_at(tmp_path / "streams.db")
    current = service.store.current
    monkeypatch.setattr(service.store, "current", lambda *given: current(*given)._replace(newest=False))
    with running(service) as address:
        answer = Client(address, secret).learn(some_rows(1), "k")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert "were faster" in answer.json()["error"]
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_pauses_grow_and_differ(monkeypatch):
    """Up to a bound; two processes that meet pause for different times."""
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for attempt in range(writer.RETRIES):
        for _ in range(50):
            writer.pause(attempt)
    most = [max(slept[50 * attempt : 50 * attempt + 50]) for attempt in range(writer.RETRIES)]
    assert len(set(slept)) > 900
    assert most[0] <= writer.PAUSE_S < most[4] <= 16 * writer.PAUSE_S
    assert max(slept) <= writer.LONGEST_PAUSE_S


def signalled(folder, which):
    """Send a signal to all processes of a server."""
    [first] = (folder / "postmaster.pid").read_text().splitlines()[:1]
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", first], capture_output=True, text=True, check=True)
    for each in (first, *children.stdout.split()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(each), which)


@pytest.mark.slow
def test_the_command_stops_while_its_database_is_stopped(cluster):
    """By SIGSTOP, which leaves TCP alive; with the limits of the command, within the grace of a container."""
    address, port = cluster.start(), free_port()
    secret = new_store(address)
    command = [sys.executable, "-m", "taciturn", "serve", "--store", address, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        client = Client(f"http://127.0.0.1:{port}", secret, timeout=60.0)
        client.insist(some_rows(3), "before")
        signalled(Path(cluster.folder), signal.SIGSTOP)
        try:
            late = until(lambda: client.get("/readyz").status_code == 503, 30.0)
            began = time.monotonic()
            assert client.learn(some_rows(3), "k").status_code == 503
            answered = time.monotonic() - began
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            process.wait(60.0)
            ended = time.monotonic() - began
        finally:
            signalled(Path(cluster.folder), signal.SIGCONT)
            process.kill()
    print(json.dumps({"not ready": late, "answered": answered, "ended": ended}))  # noqa: T201  (for pytest -rP)
    assert late < 15.0
    assert answered < 15.0
    assert ended < 28.0


@pytest.mark.slow
def test_servers_are_ready_within_two_seconds_of_a_failover(cluster):
    """The server crashes and starts again, five times, under load on three servers."""
    address = cluster.start()
    secret = new_store(address)
    with processes(address, 3, tick=1.0) as servers:
        load = Load([each.address for each in servers], secret)
        clients = [Client(each.address, secret) for each in servers]
        slowest, refused = 0.0, 0
        for _ in range(5):
            time.sleep(2.0)
            cluster.stop("immediate")
            cluster.start()
            with psycopg.connect(address):  # it is back
                pass
            began = time.monotonic()
            for client in clients:
                until(lambda client=client: client.get("/readyz").status_code == 200, 10.0)
            slowest = max(slowest, time.monotonic() - began)
            for number in range(50):
                refused += clients[number % 3].learn(some_rows(1), f"{began} {number}").status_code == 503
        load.stop()
        print(json.dumps({"ready after": slowest, "503 of 250": refused}))  # noqa: T201  (for pytest -rP)
        assert slowest < 2.0
        assert refused == 0
    assert Store(address).load(NAME).position[1] > 250
