"""`taciturn serve` beside a bare ASGI application, a bare durable commit, `partial_fit`, and a service with river.

Servers are processes of their own on one core, and clients are on the other: wrk (`apt-get install wrk`) with 64
connections on the loopback interface, and a few seconds for each turn. 54 features; a model is released every 1,000
rows.

- *Predict*: CPU time of the server for a request with one row, in JSON. *Bare ASGI* is uvicorn with an application that
  decodes the same body, makes an array of it, multiplies it by a vector, and encodes the answer (`service_peers.py`).
- *Learn*: requests with one row and a key each, answered when they are committed: p99 at 64 connections, with that of
  predictions, beside the p99 of commits to a SQLite file of the same folder, one after the other: an UPDATE of 5,000
  bytes with `synchronous=FULL`. One client that commits alone never waits for others, as each of 64 does. So there is
  also the p99 that 64 clients meet who have such a commit each, one after the other, in the order in which they ask.
- *Arrow*: CPU time of the server for a row, in requests of 8,192 and of 32,768 rows, each committed, beside
  `partial_fit` of an estimator with the same columns, horizon and releases on the same arrays. Columns of Arrow are
  contiguous, and scaled by compiled code; those of an array in rows are not.
- *Rank*: CPU time of a server of its own for a decision among ten actions, each with its own model of the visitor, by
  the default policy: ranked, stored with a commit, and answered. *Learnt later* counts also what follows when the wait
  has passed: it is learnt, without a reward, and erased. In both nothing is learnt while requests come. *While others
  are learnt* is a stream with a wait of a second, which learns all the time; what is left is learnt after the requests,
  and counted, too.
- *River*: FastAPI around a pipeline of river, which learns without privacy, forgets all when it stops, and answers
  single rows.

CPU times are the target; wall times depend on the disk and on what else the machine does.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from runner import Ratio, Turns, environment, parse_options, rounded, save, tables, use_one_core
from service_peers import FEATURES, NAMES
from taciturn.contract.contract import contract_of
from taciturn.service.service import Service
from taciturn.store import Store

CONNECTIONS = 64
HORIZON = 10_000_000
RELEASE = 1_000
DELTA = 1e-8
BATCHES = (8_192, 32_768)
"""Rows of an Arrow request."""
WAITS = {"offers": 5, "banners": 1}
"""Seconds for which decisions of a stream wait: longer than they come, and shorter."""
TICKS = 3.0
"""Seconds after the last wait of a turn, in which decisions are learnt."""
STATE = os.urandom(5_000)
ARROW = "application/vnd.apache.arrow.stream"
SCRIPT = """
local calls = 0
request = function()
  calls = calls + 1
  if os.getenv("WRK_KEY") ~= "" then wrk.headers["Idempotency-Key"] = os.getenv("WRK_KEY") .. calls end
  return wrk.format("POST")
end
init = function()
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("WRK_TOKEN")
  wrk.body = os.getenv("WRK_BODY")
end
done = function(summary, latency)
  local bad = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
  bad = bad + summary.errors.timeout
  io.write(string.format('\\n{"requests": %d, "us": %d, "p50": %f, "p99": %f, "errors": %d}\\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99), bad))
end
"""


# ---- servers ---------------------------------------------------------------------------------------------------


class Server:
    """A server process: its address, and the CPU seconds that it has used, in all threads."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self.process = process
        self.address = address

    def cpu(self) -> float:
        return time.clock_gettime((~self.process.pid << 3) | 2)  # the clock of clock_getcpuclockid


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """A server, from its first answer on; `PORT` in the command is a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", *(str(port) if part == "PORT" else part for part in command)],
        cwd=Path(__file__).parent,
        stdout=subprocess.DEVNULL,
    )
    try:
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + 60.0
        while True:
            try:
                httpx.post(address, json={"rows": []}, timeout=5.0)
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{command[0]} did not start.") from None
                time.sleep(0.05)
        yield Server(process, address)
    finally:
        process.terminate()
        process.wait()


def load(url: str, body: Any, seconds: int, folder: Path, token: str = "", keys: bool = False) -> dict[str, float]:
    """What wrk says of a server under load: requests, microseconds, and p50 and p99 of the latency in microseconds."""
    script = folder / "load.lua"
    script.write_text(SCRIPT)
    known = {
        "WRK_BODY": json.dumps(body),
        "WRK_TOKEN": token,
        "WRK_KEY": uuid.uuid4().hex if keys else "",
    }
    done = subprocess.run(
        ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), url],
        env=os.environ | known,
        capture_output=True,
        text=True,
        check=True,
        timeout=60.0 + seconds,
        preexec_fn=lambda: os.sched_setaffinity(0, {0}),  # servers are on the last core
    )
    said: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    if said["errors"] or not said["requests"]:
        raise SystemExit(f"{url} failed {said['errors']:.0f} of {said['requests']:.0f} requests.")
    return said


def contract() -> Any:
    return contract_of(
        {
            "privacy": {"epsilon": 1.0, "delta": DELTA},
            "target": {"column": "y", "positive": ["yes"]},
            "learning": {"horizon": HORIZON, "release": RELEASE},
            "columns": {name: {"range": [-3.0, 3.0]} for name in NAMES},
        }
    )


def decisions(wait: int) -> Any:
    """The same columns for a bandit of ten actions."""
    return contract_of(
        {
            "privacy": {"epsilon": 1.0, "delta": DELTA},
            "target": {"column": "reward", "range": [0, 1]},
            "learning": {"horizon": HORIZON},
            "columns": {name: {"range": [-3.0, 3.0]} for name in NAMES},
            "events": {"wait": f"{wait} seconds", "missing": 0.0},
            "bandit": {"actions": [f"action {number}" for number in range(10)]},
        }
    )


# ---- what is measured besides ----------------------------------------------------------------------------------


class Commits:
    """Bare durable commits, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.database = sqlite3.connect(folder / "bare.db", isolation_level=None, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode=DELETE")
        self.database.execute("PRAGMA synchronous=FULL")
        self.database.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, state BLOB)")
        self.database.execute("INSERT INTO bare VALUES (1, ?)", [STATE])

    def measure(self, count: int) -> list[float]:
        """Seconds of each."""
        each = []
        for _ in range(count):
            start = time.perf_counter()
            self.commit()
            each.append(time.perf_counter() - start)
        return each

    def commit(self) -> None:
        """One of them."""
        self.database.execute("BEGIN IMMEDIATE")
        self.database.execute("UPDATE bare SET state = ? WHERE id = 1", [os.urandom(len(STATE))])
        self.database.execute("COMMIT")

    def measure_clients(self, count: int) -> list[float]:
        """Seconds that clients wait who ask for `count` commits each, from when one asks until its commit is made.

        There is a commit for each, in the order of their asking, and a client asks again when it has one. Clients and
        threads take no time here.
        """
        asked: queue.SimpleQueue[tuple[float, int, int]] = queue.SimpleQueue()
        for client in range(CONNECTIONS):
            asked.put((time.perf_counter(), client, count))
        each = []
        for _ in range(CONNECTIONS * count):
            start, client, left = asked.get()
            self.commit()
            now = time.perf_counter()
            each.append(now - start)
            if left > 1:
                asked.put((now, client, left - 1))
        return each


class Batches:
    """Rows as an Arrow stream and as arrays, for the server and for an estimator."""

    def __init__(self, server: Server, token: str, rows: int) -> None:
        import pyarrow as pa

        from taciturn.estimators.sklearn import PrivateLogisticRegression

        rng = np.random.default_rng(0)
        self.X = rng.uniform(-3.0, 3.0, (rows, FEATURES))
        self.y = np.where(self.X[:, 0] + rng.normal(size=rows) > 0.0, "yes", "no")
        columns = {name: self.X[:, number] for number, name in enumerate(NAMES)}
        batch = pa.RecordBatch.from_pydict(columns | {"y": pa.array(self.y.tolist())})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        self.body = sink.getvalue().to_pybytes()
        self.model = PrivateLogisticRegression(
            epsilon=1.0,
            delta=DELTA,
            horizon=HORIZON,
            release=RELEASE,
            columns={number: {"range": [-3.0, 3.0]} for number in range(FEATURES)},
        )
        self.server = server
        self.client = httpx.Client(
            base_url=server.address, headers={"authorization": f"Bearer {token}", "content-type": ARROW}, timeout=60.0
        )

    def send(self, count: int) -> tuple[float, float]:
        """CPU seconds of the server per row, and wall seconds per row."""
        start, before = time.perf_counter(), self.server.cpu()
        for _ in range(count):
            key = {"idempotency-key": uuid.uuid4().hex}
            self.client.post("/v1/streams/clicks/examples", content=self.body, headers=key).raise_for_status()
        rows = count * len(self.y)
        return (self.server.cpu() - before) / rows, (time.perf_counter() - start) / rows

    def fit(self, count: int) -> float:
        """CPU seconds of `partial_fit` per row."""
        start = time.process_time()
        for _ in range(count):
            self.model.partial_fit(self.X, self.y, classes=["no", "yes"])
        return (time.process_time() - start) / (count * len(self.y))


# ---- the run ---------------------------------------------------------------------------------------------------

OURS, BARE, RIVER = "taciturn, predict", "bare ASGI, the same product", "river and FastAPI, predict"
LEARN, RIVER_LEARN = "taciturn, durable learn of a row", "river and FastAPI, learn of a row"
ARROW_ROW, FIT_ROW = "taciturn, a row by Arrow, by {:,}", "partial_fit, a row, by {:,}"
COMMIT, COMMITS = "bare durable commit", "bare durable commit, of 64 clients"
RANK, RANK_LEARNT = "taciturn, durable rank", "taciturn, durable rank, learnt later"
RANK_WHILE = "taciturn, durable rank, while others are learnt"
CPU_RATIOS = {
    "predict / bare ASGI": Ratio(OURS, BARE, at_most=1.8),
    "rank / predict": Ratio(RANK, OURS, at_most=2.0),
    "rank, learnt later / predict": Ratio(RANK_LEARNT, OURS),
} | {
    f"row by Arrow / partial_fit, by {rows:,}": Ratio(ARROW_ROW.format(rows), FIT_ROW.format(rows), at_most=2.0)
    for rows in BATCHES
}
WALL_RATIOS = {
    "p99 of predict / p99 of a bare commit": Ratio(OURS, COMMIT, at_most=5.0),
    "p99 of a durable learn / p99 of a bare commit": Ratio(LEARN, COMMIT, at_most=5.0),
    "p99 of a durable learn / p99 of a bare commit of 64 clients": Ratio(LEARN, COMMITS),
    "p99 of a durable rank / p99 of a bare commit of 64 clients": Ratio(RANK, COMMITS),
}
RIVER_RATIOS = {
    "river's predict / taciturn's": Ratio(RIVER, OURS),
    "river's learn / taciturn's": Ratio(RIVER_LEARN, LEARN),
}


def measure(chosen: Any, console: Console) -> tuple[Turns, Turns, dict[str, list[float]]]:
    """CPU seconds per request or row; p99 in seconds; requests or rows per second. The first turn does not count."""
    seconds, repetitions, commits, in_all = (1, 3, 100, 2**15) if chosen.quick else (2, 7, 200, 2**17)
    cpu, p99, rates = Turns({}), Turns({}), dict[str, list[float]]()
    rng = np.random.default_rng(1)
    row = {name: round(float(value), 3) for name, value in zip(NAMES, rng.uniform(-3.0, 3.0, FEATURES), strict=True)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=chosen.folder)))
        store = str(folder / "streams.db")
        service = Service(Store(store))
        service.create("clicks", contract())
        token = service.tokens.create(["admin"])[1]
        service.close()
        deciding = str(folder / "decisions.db")
        service = Service(Store(deciding))
        for name, wait in WAITS.items():
            service.create(name, decisions(wait))
        rank_token = service.tokens.create(["admin"])[1]
        service.close()
        command = ("taciturn", "serve", "--port", "PORT", "--store")
        ours = stack.enter_context(serving(*command, store))
        ranks = stack.enter_context(serving(*command, deciding))
        uvicorn = ("uvicorn", "--no-access-log", "--log-level", "critical", "--port", "PORT")
        bare = stack.enter_context(serving(*uvicorn, "service_peers:bare"))
        stream, rows = f"{ours.address}/v1/streams/clicks", {"rows": [row]}
        loads: dict[str, tuple[Server, str, Any, bool]] = {
            OURS: (ours, f"{stream}/predict", rows, False),
            BARE: (bare, f"{bare.address}/predict", rows, False),
            LEARN: (ours, f"{stream}/examples", {"rows": [row | {"y": "yes"}]}, True),
            RANK: (ranks, f"{ranks.address}/v1/streams/offers/rank", {"contextFeatures": row}, False),
            RANK_WHILE: (ranks, f"{ranks.address}/v1/streams/banners/rank", {"contextFeatures": row}, False),
        }
        if find_spec("fastapi") and find_spec("river"):
            river = stack.enter_context(serving(*uvicorn, "--factory", "service_peers:river"))
            loads[RIVER_LEARN] = (river, f"{river.address}/learn", {"features": row, "y": True}, False)
            loads[RIVER] = (river, f"{river.address}/predict", {"features": row}, False)
        bare_commits = Commits(folder)
        batches = {rows: Batches(ours, token, rows) for rows in BATCHES}
        batches[BATCHES[0]].send(1)  # a first model
        for turn in track(range(repetitions + 1), "taking turns", console=console):
            cpus, waits, made = {}, {}, {}
            for name, (server, url, body, keys) in loads.items():
                before = server.cpu()
                said = load(url, body, seconds, folder, rank_token if server is ranks else token, keys)
                cpus[name] = (server.cpu() - before) / said["requests"]
                if server is ranks:
                    time.sleep(WAITS["offers" if name == RANK else "banners"] + TICKS)
                    cpus[RANK_LEARNT if name == RANK else name] = (server.cpu() - before) / said["requests"]
                waits[name] = said["p99"] / 1e6
                made[name] = 1e6 * said["requests"] / said["us"]
            each = bare_commits.measure(commits)
            waits[COMMIT], made[COMMIT] = float(np.percentile(each, 99)), 1.0 / float(np.mean(each))
            each = bare_commits.measure_clients(commits // 20)
            waits[COMMITS], made[COMMITS] = float(np.percentile(each, 99)), CONNECTIONS / float(np.mean(each))
            for number, batch in batches.items():
                cpus[ARROW_ROW.format(number)], wall = batch.send(in_all // number)
                made[ARROW_ROW.format(number)] = 1.0 / wall
                cpus[FIT_ROW.format(number)] = batch.fit(in_all // number)
            for turns, new in ((cpu.seconds, cpus), (p99.seconds, waits), (rates, made)):
                for name, value in new.items():
                    turns.setdefault(name, []).extend([value] if turn else [])
    return cpu, p99, rates


def rate_table(p99: Turns, rates: dict[str, list[float]]) -> Table:
    """Wall times and rates at 64 connections."""
    table = Table("at 64 connections", "p99, ms", "from", "to", "per second", "from", "to")
    for name, each in rates.items():
        waits = 1e3 * np.array(p99.seconds.get(name, []))
        numbers = [rounded(n) for n in (np.median(waits), min(waits), max(waits))] if len(waits) else [""] * 3
        table.add_row(name, *numbers, *(rounded(n) for n in (np.median(each), min(each), max(each))))
    return table


def main() -> None:
    folder = {"type": Path, "help": "folder on the disk to measure; the system's for temporary files unless given"}
    chosen = parse_options(__doc__, folder=folder)
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed, and nothing is measured: install Debian's package wrk.")
    use_one_core()
    console = Console(stderr=chosen.json)
    cpu, p99, rates = measure(chosen, console)
    cpu_ratios = CPU_RATIOS | (RIVER_RATIOS if RIVER in cpu.seconds else {})
    ratios = cpu.ratios(cpu_ratios)
    waits = p99.ratios(WALL_RATIOS)
    record = environment("taciturn", "uvicorn", "starlette", "fastapi", "river", "pyarrow") | {
        "unit": "CPU seconds per request or row",
        "seconds": cpu.seconds,
        "p99": p99.seconds,
        "per second": rates,
        "ratios": ratios | waits,
        "load average": os.getloadavg(),
    }
    shown = tables(cpu, ratios | waits, "CPU µs per request or row")
    save("service", record, chosen, console, shown[0], rate_table(p99, rates), shown[1])


if __name__ == "__main__":
    main()
