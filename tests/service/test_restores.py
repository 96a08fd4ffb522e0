"""A backup that is put back under running servers: none of it is shown or learnt from, until the newest is back."""

import asyncio
import contextlib
import logging
import threading
import time

import httpx
import pytest

from put_back import Kept
from served import NAME, Client, service_at, set_clock, some_rows
from taciturn import Ledger, Privacy
from taciturn.service.app import OPERATIONS
from taciturn.service.dashboard.routes import dashboard_routes
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.service.tokens import COOKIE
from taciturn.store import Store
from taciturn.store.database import StoreReplaced

pytestmark = pytest.mark.privacy


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def kept(request, tmp_path):
    return Kept.of_kind(request.param, request, tmp_path)


class Servers:
    """Servers of one store, whose clocks are set, and clients with one token."""

    def __init__(self, address, count, ends):
        Ledger.create(address, Privacy(2.0, 1e-6), population="people")
        first, self.secret = service_at(address, ledger="people")
        self.services = [first, *(Service(Store(address)) for _ in range(count - 1))]
        self._ticks = [ends.enter_context(set_clock(service)) for service in self.services]
        self.addresses = [ends.enter_context(running(service)) for service in self.services]
        self.clients = [Client(each, self.secret) for each in self.addresses]

    def next_tick(self):
        for tick in self._ticks:
            tick(2)

    def models(self):
        """What each server shows of all releases but the last, which it has in memory."""
        paths = [f"/v1/streams/{NAME}/models/{k}" for k in range(1, 20)]
        return [[client.get(path) for path in paths] for client in self.clients]


def statuses(answers):
    return {answer.status_code for of_server in answers for answer in of_server}


def contents(answers):
    return [[answer.content for answer in of_server] for of_server in answers]


def path_of(operation):
    return operation.path.replace("{s}", NAME).replace("{k}", "1").replace("{l}", "people").replace("{e}", "1")


@pytest.mark.parametrize("witnessed", [True, False], ids=["with a witness", "without"])
def test_three_servers_show_nothing_of_a_backup_that_is_put_back(kept, tmp_path, witnessed, caplog):
    """One of them has the state of the backup in memory. Without a witness each knows what it has seen."""
    if witnessed:
        Store(kept.address, witness=tmp_path / "witness.db")
    with contextlib.ExitStack() as ends:
        servers = Servers(kept.address, 3, ends)
        first, second, third = servers.clients
        assert second.learn(some_rows(100, 1), "one").json()["last"] == 100
        servers.next_tick()
        kept.back_up("old")
        assert first.learn(some_rows(100, 2), "two").json()["last"] == 200
        servers.next_tick()
        shown = servers.models()
        assert statuses(shown) == {200}
        kept.back_up("newest")
        kept.put_back("old")
        before = kept.content()

        # Before a tick: what is read from the store.
        assert second.learn(some_rows(100, 3), "three").status_code == 503
        assert statuses(servers.models()) == {503}
        for client in servers.clients:
            assert client.get(f"/v1/streams/{NAME}/models?weights=true").status_code == 503
            assert client.get("/readyz").status_code == 200
            assert client.predict(some_rows(1)).status_code == 200  # by the model that was shown
        assert kept.content() == before

        # From the next tick on: all of it.
        with caplog.at_level(logging.ERROR, "taciturn"):
            servers.next_tick()
            servers.next_tick()
        assert caplog.text.count("the store was replaced, and nothing of it is shown: ") == 3
        assert kept.address not in caplog.text
        for client in servers.clients:
            for path in ("/readyz", f"/v1/streams/{NAME}/models/latest"):
                answer = client.get(path)
                assert answer.status_code == 503
                assert "restored from a backup" in answer.json()["error"]
                assert "retry-after" not in answer.headers  # its operator has to act
            assert client.get("/healthz").status_code == 200
        assert [client.learn(some_rows(1), "four").status_code for client in servers.clients] == [503] * 3
        assert kept.content() == before

        kept.put_back("newest")
        servers.next_tick()
        assert contents(servers.models()) == contents(shown)
        assert [client.get("/readyz").status_code for client in servers.clients] == [200] * 3
        assert third.learn(some_rows(100, 4), "four").json()["first"] == 201


def test_a_token_that_was_revoked_is_not_that_of_a_backup_before_the_next_tick(kept, tmp_path):
    """Neither where the table is read again, nor where an unknown secret is looked for."""
    service, _ = service_at(kept.address)
    token, secret = service.tokens.create(["admin"])
    kept.back_up("old")
    service.tokens.revoke(token.id)
    service.create("another", service.host(NAME).contract)
    kept.back_up("newest")
    kept.put_back("old")
    with pytest.raises(StoreReplaced):
        service.tokens.refresh()
    with pytest.raises(StoreReplaced):
        asyncio.run(service.tokens.find(secret, service.in_thread))
    assert service.tokens.check(secret) is None
    assert service.replaced is None
    kept.put_back("newest")
    service.tokens.refresh()
    assert service.tokens.check(secret) is None
    service.close()


def test_no_route_and_no_page_answers_for_a_backup(tmp_path):
    """Nor is a token valid again that was revoked after it."""
    kept = Kept(str(tmp_path / "streams.db"), tmp_path)
    with contextlib.ExitStack() as ends:
        servers = Servers(kept.address, 1, ends)
        [service], [client] = servers.services, servers.clients
        revoked, secret = service.tokens.create(["read"])
        session = service.tokens.open_session(servers.secret)[1]
        servers.next_tick()
        kept.back_up()
        service.tokens.revoke(revoked.id)
        client.learn(some_rows(20), "one")
        servers.next_tick()
        browser = ends.enter_context(httpx.Client(base_url=servers.addresses[0], cookies={COOKIE: session}))
        pages = [route for route in dashboard_routes(service) if "static" not in route.path]
        readable = [page.path for page in pages if "GET" in page.methods]
        paths = [path.replace("{s}", NAME).replace("{l:path}", "people") for path in readable]
        kept.put_back()
        assert browser.get(f"/streams/{NAME}").status_code == 503  # its releases are read from the store
        servers.next_tick()
        assert service.tokens.check(secret) is None
        for operation in OPERATIONS:
            if operation.scope is not None:
                answer = client.http.request(operation.method, servers.addresses[0] + path_of(operation))
                assert answer.status_code == 503, operation.path
        for path in paths:
            assert browser.get(path).status_code == (200 if path == "/login" else 503), path
        for page in pages:
            if "POST" in page.methods:
                path = page.path.replace("{s}", NAME)
                assert browser.post(path, data={"csrf": "x", "token": secret}).status_code == 503, path


def test_who_listens_is_told_nothing_of_a_backup(tmp_path):
    """The connection ends."""
    kept = Kept(str(tmp_path / "streams.db"), tmp_path)
    with contextlib.ExitStack() as ends:
        servers = Servers(kept.address, 1, ends)
        kept.back_up()
        servers.clients[0].learn(some_rows(20), "one")
        servers.next_tick()
        heard = []

        def listen():
            headers = {"authorization": f"Bearer {servers.secret}"}
            with httpx.stream("GET", f"{servers.addresses[0]}/v1/streams/{NAME}/live", headers=headers) as answer:
                for line in answer.iter_lines():
                    heard.extend([line] * line.startswith("id: "))

        thread = threading.Thread(target=listen)
        thread.start()
        while not heard:
            time.sleep(0.005)
        kept.put_back()
        servers.next_tick()
        thread.join(10.0)
        assert not thread.is_alive()
        assert heard == ["id: 2"]
