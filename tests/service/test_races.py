"""Servers that share a store: whoever loses a race learns again before it answers, and a budget is spent once."""

import threading
import time

import pytest

from served import NAME, Client, Load, check, declared, new_store, processes
from taciturn.accounting.ledger import Ledger
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.service.service import Service
from taciturn.store import Store


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "streams.db")
    return request.getfixturevalue("server").new_database()


def conflicts(client):
    lines = client.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("taciturn_operator_conflicts_total{")]
    return sum(int(line.rpartition(" ")[2]) for line in found)


@pytest.mark.parametrize("lease", [None, 0], ids=["with leases", "without"])
def test_two_servers_learn_one_stream(address, lease):
    """Clients use both in turn, and repeat what is not answered; without leases they meet all the time."""
    secret = new_store(address)
    with processes(address, 2, lease=lease) as servers:
        addresses = [server.address for server in servers]
        load = Load(addresses, secret)
        clients = [Client(each, secret) for each in addresses]
        until = time.monotonic() + 120.0
        while time.monotonic() < until and len(load.sent) < 60:
            time.sleep(0.01)
        while lease == 0 and time.monotonic() < until and not sum(map(conflicts, clients)):
            time.sleep(0.2)
        load.stop()
        assert check(address, secret, load, servers[0]) > 60
        assert sum(map(conflicts, clients)) > 0 or lease is None


def test_one_key_sent_to_both_at_once_is_learnt_once(address):
    secret = new_store(address)
    with processes(address, 2, lease=0) as servers:
        answers = []
        for number in range(10):
            barrier = threading.Barrier(4)

            def send(server, number=number, barrier=barrier):
                client = Client(server.address, secret)
                barrier.wait()
                answers.append((number, client.insist([{"age": number}] * 3, f"key {number}").text))

            threads = [threading.Thread(target=send, args=(servers[i % 2],)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(answers) == 40
        assert len(set(answers)) == 10
    assert Store(address).load(NAME).position[1] == 30


def race_for_the_last_slice(address, rounds, servers, connections):
    """All ask for a stream when one more fits into the ledger; how many were begun in each round."""
    secret = new_store(address)
    begun = []
    with processes(address, servers) as made:
        for number in range(rounds):
            population = f"people {number}"
            Ledger.create(address, Privacy(1.0, 1e-6), population=population)
            barrier = threading.Barrier(servers * connections)
            statuses = []

            def ask(server, who, number=number, population=population, barrier=barrier, statuses=statuses):
                client = Client(server.address, secret, timeout=120.0)
                body = {"name": f"s{number}-{who}", "contract": declared(100, 10, 0.9), "ledger": population}
                barrier.wait()
                answer = client.post("/v1/streams", json=body)
                statuses.append(answer.status_code)
                assert answer.status_code in (201, 409), answer.text

            threads = [
                threading.Thread(target=ask, args=(made[who % servers], who)) for who in range(servers * connections)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(statuses) == servers * connections
            begun.append(statuses.count(201))
            ledger = Ledger(address, population=population)
            assert ledger.reserved.within(ledger.privacy)
            assert len(ledger.lines) == begun[-1]
    return begun


def test_the_last_slice_of_a_ledger_goes_to_one(address):
    assert race_for_the_last_slice(address, 1, 3, 4) == [1]


@pytest.mark.slow
def test_the_last_slice_of_a_ledger_goes_to_one_of_32_a_hundred_times(address):
    assert race_for_the_last_slice(address, 100, 8, 4) == [1] * 100


def test_a_reader_follows_a_writer(address):
    """A process that shows only sees at a tick what another has committed, and learns nothing."""
    secret = new_store(address)
    with processes(address) as [server]:
        reader = Service(Store(address), tick=0.05, read_only=True)
        try:
            assert Client(server.address, secret).insist([{"age": 1}] * 25, "a key").json()["last"] == 25
            until = time.monotonic() + 20.0
            while time.monotonic() < until:
                reader.refresh()
                if reader.host(NAME).view.k == 2:
                    break
                time.sleep(0.02)
            assert reader.host(NAME).view.t == 20
            client = Client(server.address, secret)
            while time.monotonic() < until:  # the server's own tick may come a moment later
                latest = client.get(f"/v1/streams/{NAME}/models/latest")
                if latest.json()["releases"] == 2:
                    break
                time.sleep(0.02)
            assert reader.host(NAME).view.body == latest.content
        finally:
            reader.close()
