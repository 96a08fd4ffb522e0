"""SIGKILL at any moment, by each driver on each database: nothing twice, lost or unpaid, and each row counts once."""

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest

import forked_workers
from crashes.visits import Visited
from drivers import DRIVERS, Plain, PlainShowsFirst, patiently, same_sums
from killing import Forked, kill_repeatedly
from served import NAME, Client, Load, check, declared, free_port, new_store, processes, some_rows
from taciturn.contract.contract import contract_of
from taciturn.kernel.stream.state import read_state
from taciturn.readers.rows import open_rows
from taciturn.runs.resume import BLOCK
from taciturn.store import Store

pytestmark = pytest.mark.privacy

ROWS = {"plain": 2_000, "file": 4_000, "pool": 5 * BLOCK, "files": 2_000}
"""Of the input, for each kill."""

SUMS = declared(loss="squared") | {"target": {"column": "income", "range": [0, 1000]}}
SUMS["columns"] = SUMS["columns"] | {"y": {"ignore": True}}
del SUMS["columns"]["income"]
"""A contract of sums that no noise enters: they tell which rows they are of."""


class Server:
    """`taciturn serve`, under load: clients that repeat what was not answered, and one that reads."""

    def __init__(self, address, ends):
        self.secret = new_store(address, contract=SUMS)
        self.address = address
        self.server = ends.enter_context(processes(address))[0]
        self.load = Load(self.server.address, self.secret)

    def start(self):
        if not self.runs():
            self.server.start()

    def runs(self):
        assert not self.load.errors, self.load.errors
        return self.server.process.is_alive()

    def progress(self):
        return len(self.load.sent)

    def kill(self):
        self.server.kill()

    def check(self, exactly=True):
        """Whenever it was killed: what is committed is what was ever shown, and paid for."""
        saved = Store(self.address).load(NAME)
        assert saved.position[1] >= max((sent.last for sent in list(self.load.sent)), default=0)
        assert saved.position[2] >= max(self.load.models, default=0)

    def finish(self):
        self.server.start()
        self.server.wait()
        self.load.stop()
        assert check(self.address, self.secret, self.load, self.server) > 2 * len(self.load.models) > 4
        self.check_rows()

    def check_rows(self):
        """Each row counts once: the exact sums are those of all rows that were answered, in the order of rounds."""
        contract = contract_of(SUMS)
        rows = [row for sent in sorted(self.load.sent, key=lambda sent: sent.first) for row in sent.rows]
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        batches = list(open_rows(contract, io.BytesIO(text), format="json"))
        X, y = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("X", "y"))
        store = Store(self.address)
        saved = store.load(NAME)
        private = contract.plan(on_bad="zero").private
        same_sums(private, read_state(saved.state, store.layers(saved)), X, y)


@pytest.fixture(params=["sqlite", "postgres"])
def places(request, tmp_path):
    """Addresses of store and ledger: SQLite with a ledger of its own, PostgreSQL with both in one database."""
    if request.param == "sqlite":
        return str(tmp_path / "streams.db"), str(tmp_path / "budget.db")
    return request.getfixturevalue("server").new_database(), None


def victim_of(name, places, folder, kills, ends):
    if name == "server":
        return Server(places[0], ends)
    if name in ("labels", "rewards"):
        return Visited(places[0], folder, ends, decide=name == "rewards")
    return Forked(DRIVERS[name](folder, *places).write((kills + 4) * ROWS[name]))


def kill(name, places, folder, kills):
    with contextlib.ExitStack() as ends:
        longest = 0.5 if name in ("labels", "rewards") else 0.05  # until labels are overdue
        return kill_repeatedly(victim_of(name, places, folder, kills, ends), kills, longest)


@pytest.mark.parametrize("name", [*DRIVERS, "server"])
def test_six_kills(name, places, tmp_path):
    assert kill(name, places, tmp_path, 6) > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "file", "files", "server"])
def test_two_hundred_kills(name, places, tmp_path):
    assert kill(name, places, tmp_path, 200) > 100


def test_who_shows_before_it_commits_is_found_out(tmp_path):
    """A planted fault: rounds are shown twice, with different noise."""
    driver = PlainShowsFirst(tmp_path, str(tmp_path / "streams.db")).write(60 * ROWS["plain"])

    def kill_until_caught():
        for _ in range(10):  # the first time mostly; on a busy machine, kills come at other moments
            kill_repeatedly(Forked(driver), 6)

    with pytest.raises(AssertionError, match="was shown with two values"):
        kill_until_caught()


def test_two_kills_while_rewards_are_awaited(tmp_path):
    kill("rewards", (str(tmp_path / "streams.db"), None), tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels", "rewards"])
def test_fifty_kills_while_labels_or_rewards_are_awaited(name, places, tmp_path):
    assert kill(name, places, tmp_path, 50) > 25


COUNTED = """
import signal, sys
from numba.core import event
compiled = event.RecordingListener()
event.register("numba:compile", compiled)

def tell(*_):
    print(len(compiled.buffer), len(sys.modules), file=sys.stderr, flush=True)

signal.signal(signal.SIGUSR2, tell)
from taciturn.cli.app import main
main()
"""
LIBRARIES = (
    "numba, scipy.special, scipy.optimize, scipy.linalg, uvicorn, starlette.applications, jinja2, typer, msgspec"
)


def test_a_killed_server_predicts_again_by_the_model_that_was_released(tmp_path):
    """The command itself. Its start compiles nothing, and imports little more than its libraries do by themselves."""
    address, port = str(tmp_path / "streams.db"), free_port()
    secret = new_store(address)
    command = [sys.executable, "-c", COUNTED, "serve", "--store", address, "--port", str(port), "--tick", "50ms"]

    def predicted(process):
        while True:
            try:
                answer = client.predict(some_rows(1))
                assert answer.status_code == 200
                return answer.json()["release"]
            except httpx.TransportError:
                assert process.poll() is None
                time.sleep(0.01)

    client = Client(f"http://127.0.0.1:{port}", secret)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert predicted(process) == 0
        client.insist(some_rows(25), "a key")
        while predicted(process) < 2:
            time.sleep(0.02)
        process.kill()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert predicted(process) == 2
        process.send_signal(signal.SIGUSR2)
        compiled, modules = map(int, process.stderr.readline().split())
        process.kill()
    code = f"import sys, {LIBRARIES}; print(len(sys.modules))"
    alone = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert compiled == 0
    assert modules < 1.5 * alone


@pytest.mark.slow
def test_a_database_server_that_crashes(tmp_path, cluster):
    """The driver waits until it is back, and goes on."""
    driver = Plain(tmp_path, cluster.start()).write(200_000)
    worker = forked_workers.context().Process(target=patiently, args=(driver, None))
    worker.start()
    chance = random.Random(0)
    for _ in range(10):
        before, until = driver.progress(), time.monotonic() + 30.0
        while driver.progress() == before:
            time.sleep(0.001)
            assert worker.is_alive()
            assert time.monotonic() < until
        time.sleep(chance.uniform(0.0, 0.1))
        cluster.stop("immediate")
        cluster.start()
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert driver.check() > 10
