"""Streams over HTTP for tests: a contract, rows, servers in threads and in processes of their own, and a client."""

import contextlib
import ipaddress
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import forked_workers
from taciturn.accounting.ledger import Ledger
from taciturn.contract.contract import contract_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.ledger_rules import at_most
from taciturn.service import writer
from taciturn.service.clock import TickClock
from taciturn.service.server import server_of
from taciturn.service.service import Limits, Service
from taciturn.store import Store

NAME = "clicks"
ARROW = "application/vnd.apache.arrow.stream"


def declared(horizon=100_000, release=10, epsilon=1.0, **learning):
    """A contract as plain data: two numbers, a category and a class."""
    return {
        "privacy": {"epsilon": epsilon},
        "target": {"column": "y", "positive": ["yes"]},
        "learning": {"horizon": horizon, "release": release, **learning},
        "columns": {
            "age": {"range": [0, 100]},
            "income": {"range": [0, 1000], "missing": "bad"},
            "town": {"categories": ["Oslo", "Rome"]},
        },
    }


def some_rows(count, seed=0):
    """Rows that fit the contract."""
    chance = random.Random(seed)
    return [
        {
            "age": round(chance.uniform(0, 100), 1),
            "income": chance.randint(0, 1000),
            "town": chance.choice(["Oslo", "Rome", "Bonn"]),
            "y": chance.choice(["yes", "no"]),
        }
        for _ in range(count)
    ]


def service_at(address, *, horizon=100_000, release=10, ledger=None, contract=None, **settings):
    """A service with one stream, and the secret of a token for everything."""
    service = Service(Store(address), **settings)
    service.create(NAME, contract_of(contract or declared(horizon, release)), ledger)
    return service, service.tokens.create(["admin"])[1]


class SetClock(TickClock):
    """A clock that tests set."""

    time = 1_000_000

    @classmethod
    def now(cls):
        return cls.time

    def until_next(self, now=None):
        return 3600.0  # tests look at the store


@contextlib.contextmanager
def set_clock(service, seconds=1.0):
    """Give a service a clock of its own, and a function that sets it to the next tick and looks at the store."""

    class OwnClock(SetClock):
        time = 1_000_000

    service.clock = OwnClock(seconds)

    def next_tick(count=1):
        OwnClock.time = service.clock.last() + count * service.clock.period
        return service.refresh()

    yield next_tick


class Client:
    """Requests with a token, to one server or to several in turn; a request is repeated until it is answered."""

    def __init__(self, addresses, secret, timeout=30.0):
        self.addresses = itertools.cycle([addresses] if isinstance(addresses, str) else addresses)
        self.http = httpx.Client(headers={"authorization": f"Bearer {secret}"}, timeout=timeout)

    def __del__(self):
        self.http.close()

    def get(self, path, **settings):
        return self.http.get(next(self.addresses) + path, **settings)

    def post(self, path, **settings):
        return self.http.post(next(self.addresses) + path, **settings)

    def learn(self, rows, key, name=NAME, **settings):
        headers = {"idempotency-key": key, **settings.pop("headers", {})}
        return self.post(f"/v1/streams/{name}/examples", json={"rows": rows}, headers=headers, **settings)

    def predict(self, rows, name=NAME, query=""):
        return self.post(f"/v1/streams/{name}/predict{query}", json={"rows": rows})

    def insist(self, rows, key, seconds=60.0, **settings):
        """The answer, however often the server is killed meanwhile."""
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self.learn(rows, key, **settings)
                if answer.status_code not in (429, 503):
                    return answer
            except httpx.TransportError:
                pass
            assert time.monotonic() < until, f"no answer within {seconds:g} seconds"
            time.sleep(0.01)


# Servers in processes of their own.


def free_port():
    with contextlib.closing(socket.socket()) as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def serve_at(address, port, tick=0.05, lease=None):
    """Serve a store; the target of a process."""
    if lease is not None:
        writer.LEASE = lease
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    server_of(Service(Store(address), tick=tick), "127.0.0.1", port).run(sockets=[listening])


class Process:
    """A server in a process that can be killed and started again at the same address."""

    def __init__(self, store, **settings):
        self.store = store
        self.settings = settings
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = forked_workers.context().Process(
            target=serve_at, args=(self.store, self.port), kwargs=self.settings, daemon=True
        )
        self.process.start()

    def wait(self, seconds=30.0):
        """Wait until it answers."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.address}/readyz", timeout=5.0).status_code == 200:
                    return self
            assert self.process.is_alive(), "the server failed by itself"
            time.sleep(0.005)
        raise AssertionError("the server does not answer")

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL

    def end(self):
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(10.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextlib.contextmanager
def processes(store, count=1, **settings):
    made = []
    try:
        made += [Process(store, **settings) for _ in range(count)]
        yield [one.wait() for one in made]
    finally:
        for one in made:
            one.end()


# Load, and what must be true after it.


@dataclass(frozen=True)
class Sent:
    """A request that was answered."""

    key: str
    rows: list
    first: int
    last: int


class Load:
    """Clients that learn and one that reads, in threads, until they are told to stop."""

    def __init__(self, addresses, secret, learners=4, most=5):
        self.sent = []
        self.models = {}
        self.errors = []
        self._stop = threading.Event()
        targets = [(self._learn, addresses, secret, number, most) for number in range(learners)]
        targets.append((self._read, addresses, secret))
        self._threads = [threading.Thread(target=self._guarded, args=each, daemon=True) for each in targets]
        for thread in self._threads:
            thread.start()

    def _guarded(self, target, *arguments):
        try:
            target(*arguments)
        except BaseException as error:
            self.errors.append(error)

    def _learn(self, addresses, secret, number, most):
        client, chance = Client(addresses, secret), random.Random(number)
        for request in itertools.count():
            if self._stop.is_set():
                return
            rows, key = some_rows(chance.randint(1, most), request), f"{number} {request}"
            answer = client.insist(rows, key)
            assert answer.status_code == 200, answer.text
            made = answer.json()
            self.sent.append(Sent(key, rows, made["first"], made["last"]))

    def _read(self, addresses, secret):
        client = Client(addresses, secret)
        while not self._stop.is_set():
            with contextlib.suppress(httpx.TransportError):
                answer = client.get(f"/v1/streams/{NAME}/models/latest")
                if answer.status_code == 200:
                    self.note(answer.json()["releases"], answer.content)
            time.sleep(0.01)

    def note(self, k, body):
        """A model that was seen; a second one of the same number must be the same."""
        assert self.models.setdefault(k, body) == body, f"release {k} was shown with two values"

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(90.0)
        assert not self.errors, self.errors
        assert not any(thread.is_alive() for thread in self._threads)


def check(address, secret, load, server):
    """Each key learnt once, no round twice, spent not less than what was shown; the number of rows."""
    client = Client(server.address, secret)
    saved = Store(address).load(NAME)
    _, t, k, _ = saved.position
    ends = sorted((each.first, each.last) for each in load.sent)
    assert all(last - first + 1 == len(rows) for first, last, rows in ((s.first, s.last, s.rows) for s in load.sent))
    assert [first for first, _ in ends] == [1, *(last + 1 for _, last in ends[:-1])], "rounds overlap, or are missing"
    assert ends[-1][1] == t, "rows were learnt that no request has"
    for each in load.sent[:: max(1, len(load.sent) // 20)]:
        again = client.insist(each.rows, each.key).json()
        assert (again["first"], again["last"]) == (each.first, each.last)
    assert Store(address).load(NAME).position == saved.position, "a repeated request was learnt again"
    for number, body in load.models.items():
        if number:
            assert client.get(f"/v1/streams/{NAME}/models/{number}").content == body
    service = Service(Store(address))
    try:
        service.refresh()
        private = service.host(NAME).private
        assert private.timetable.fits(t, k)
        numbers = [
            json.loads(line)["k"] for chunk in service.store.releases(NAME) for line in chunk.content.splitlines()
        ]
        assert numbers == list(range(1, k + 1))
        shown = private.spent_after(private.timetable.due(k) or 0, k)
        assert at_most(shown, saved.spent)
        ledger = service.store.ledger_of(saved)
        assert ledger is None or at_most(shown, ledger.spent)
    finally:
        service.close()
    return t


def new_store(address, **settings):
    """A store with a ledger and a stream; the secret of a token."""
    Ledger.create(address, Privacy(2.0, 1e-6), population="people")
    service, secret = service_at(address, ledger="people", **settings)
    service.close()
    return secret


@contextlib.contextmanager
def served_by_command(*arguments, port=0, warns="", **environment):
    """The address at which `taciturn serve` serves, from when it has said so; it ends well, and only `warns`."""
    command = [sys.executable, "-m", "taciturn", "serve", "--port", str(port), "--json", *map(str, arguments)]
    known = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=known) as one:
        try:
            printed = ""
            while not printed.rstrip().endswith("}"):
                assert one.poll() is None, one.stderr.read()
                printed += one.stdout.readline()
            yield json.loads(printed)["address"]
        finally:
            one.terminate()
        assert one.wait(20.0) in (0, -15)
        said = one.stderr.read().splitlines()
        assert len(said) == (1 if warns else 0), said
        assert warns in "".join(said), said


def self_signed(folder):
    """Files of a certificate for 127.0.0.1, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "taciturn")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = made.add_extension(address, critical=False).add_extension(x509.BasicConstraints(True, 0), critical=True)
    files = folder / "server.pem", folder / "server.key"
    files[0].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


__all__ = [
    "ARROW",
    "NAME",
    "Client",
    "Limits",
    "Load",
    "Process",
    "check",
    "declared",
    "free_port",
    "new_store",
    "processes",
    "self_signed",
    "served_by_command",
    "service_at",
    "set_clock",
    "some_rows",
]
