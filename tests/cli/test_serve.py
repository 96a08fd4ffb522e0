"""`taciturn serve` and `taciturn token`."""

import json
import os
import re
import ssl
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from served import NAME, self_signed, served_by_command, service_at
from taciturn.cli.app import app
from taciturn.client import Client, ServiceError
from taciturn.errors import InvalidInput
from taciturn.service.tokens import Tokens
from taciturn.store import Store
from taciturn.store.database import Database
from taciturn.store.encryption import new_key


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments], env={"COLUMNS": "120"})


def answer(*arguments):
    done = run(*arguments, "--json")
    assert done.exception is None, done.exception
    return json.loads(done.stdout)


def test_tokens_are_made_listed_and_revoked(tmp_path):
    store = tmp_path / "s.db"
    made = answer("token", "create", "--store", store, "--scope", "learn", "--scope", "read", "--stream", "clicks")
    assert (made["scopes"], made["stream"], made["state"]) == (["learn", "read"], "clicks", "live")
    assert Tokens(Database(store)).check(made["token"]).id == made["id"]
    plain = run("token", "create", "--store", store, "--scope", "admin", "--days", "0", "--label", "mine")
    assert plain.stdout.startswith("taciturn_")
    listed = answer("token", "list", "--store", store)["tokens"]
    assert [(each["label"], each["expires"] is None) for each in listed] == [("mine", True), ("", False)]
    assert "token" not in listed[0]
    assert answer("token", "revoke", made["id"], "--store", store) == {"revoked": made["id"]}
    assert Tokens(Database(store)).check(made["token"]) is None
    assert "revoked" in run("token", "list", "--store", store).stdout


def test_a_new_database_and_an_unknown_stream_are_told(tmp_path):
    """A misspelling makes a token that is of no use."""
    store = tmp_path / "s.db"
    first = run("token", "create", "--store", store, "--scope", "read", "--json")
    assert f"{store} did not exist, and was made" in first.stderr
    assert json.loads(first.stdout)["state"] == "live"
    service_at(store)[0].close()
    assert "warning" not in run("token", "create", "--store", store, "--scope", "read", "--stream", NAME).stderr
    assert (
        f"no stream '{NAME[1:]}' yet"
        in run("token", "create", "--store", store, "--scope", "read", "--stream", NAME[1:]).stderr
    )


def test_a_token_may_follow_another(tmp_path):
    store = tmp_path / "s.db"
    first = answer("token", "create", "--store", store, "--scope", "learn", "--stream", "clicks", "--label", "the shop")
    answer("token", "revoke", first["id"], "--store", store)
    second = answer("token", "create", "--store", store, "--like", first["id"])
    assert [second[name] for name in ("scopes", "stream", "label", "state")] == [
        ["learn"],
        "clicks",
        "the shop",
        "live",
    ]
    third = answer("token", "create", "--store", store, "--like", second["id"], "--label", "the new shop")
    assert third["label"] == "the new shop"
    tokens = Tokens(Database(store))
    assert {tokens.check(each["token"]).owner for each in (second, third)} == {first["id"]}
    assert len({each["id"] for each in (first, second, third)}) == 3
    assert "leave out" in str(run("token", "create", "--store", store, "--like", "x", "--scope", "read").exception)
    assert "there is no token" in str(run("token", "create", "--store", store, "--like", "x").exception)
    assert "needs a scope" in str(run("token", "create", "--store", store).exception)
    assert "there is no database" in str(run("token", "create", "--store", tmp_path / "t.db", "--like", "x").exception)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["token", "create", "--scope", "all", "--store", "new.db"], "scope must be one of"),
        (["token", "list", "--store", "none.db"], "there is no database"),
        (["token", "revoke", "x", "--store", "none.db"], "there is no database"),
        (["serve", "--host", "0.0.0.0"], "can be reached from other machines"),
        (["serve", "--host", "example.org"], "can be reached from other machines"),
        (["serve", "--tls-cert", "a.pem"], "belong together"),
        (["serve", "--tls-cert", "a.pem", "--tls-key", "b.pem"], "a.pem is not a file"),
        (["serve", "--tick", "soon"], "--tick is a period"),
        (["serve", "--tick", "1ms", "--port", "0"], "tick must lie between"),
        (["serve", "--host", "127.0.0.1", "--port", "1", "--store", "/dev/null/x"], "cannot be"),
    ],
)
def test_mistakes_are_told_in_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert isinstance(done.exception, InvalidInput), done.exception
    assert sentence in str(done.exception)


def test_it_serves_until_it_is_told_to_stop(tmp_path):
    secret = answer("token", "create", "--store", tmp_path / "s.db", "--scope", "admin")["token"]
    with served_by_command("--store", tmp_path / "s.db") as where, Client(where, secret) as client:
        assert client.streams() == []


def first_lines(*arguments):
    """What `taciturn serve` says until it serves, and after; it has compiled before."""
    command = [sys.executable, "-m", "taciturn", "serve", "--port", "0", *map(str, arguments)]
    known = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=known) as one:
        try:
            while not (line := one.stdout.readline()).startswith("Serving"):
                assert line.startswith("Compiling"), line
            httpx.get(f"{line.split()[3].rstrip(';')}/healthz", timeout=20.0)
        finally:
            one.terminate()
        return one.stdout.read()


def test_it_says_what_does_not_protect_the_store(tmp_path):
    answer("token", "create", "--store", tmp_path / "s.db", "--scope", "read")
    bare = first_lines("--store", tmp_path / "s.db").splitlines()
    assert [line.partition(":")[0] for line in bare] == ["States are not encrypted", "No witness"]
    key, witness = tmp_path / "k", tmp_path / "w.db"
    new_key(key)
    assert first_lines("--store", tmp_path / "t.db", "--key", key, "--witness", witness).startswith(
        "Nobody has a token"
    )


def test_a_store_whose_key_is_missing_or_another_is_not_served(tmp_path):
    store, key, other = tmp_path / "s.db", tmp_path / "k", tmp_path / "other"
    for each in (key, other):
        new_key(each)
    service_at(store)[0].close()
    Store(store).rotate_key(key)
    for more in ((), ("--key", other)):
        done = run("serve", "--store", store, "--port", 0, *more)
        assert isinstance(done.exception, InvalidInput), done.exception  # exit status 2 of the command
        assert "can be read" in str(done.exception)
        assert "Serving" not in done.output
        assert "ERROR" not in done.output
    with served_by_command("--store", store, "--key", key) as where:
        assert httpx.get(f"{where}/readyz").json() == {"status": "ready"}


def test_it_serves_over_tls_beyond_this_machine(tmp_path):
    certificate, key = self_signed(tmp_path)
    secret = answer("token", "create", "--store", tmp_path / "s.db", "--scope", "admin")["token"]
    tls = "--tls-cert", certificate, "--tls-key", key
    contract = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "bought", "positive": ["yes"]},
        "learning": {"horizon": 100, "release": 10},
        "columns": {"age": {"range": [0, 100]}},
    }
    with served_by_command("--store", tmp_path / "s.db", "--host", "0.0.0.0", "--tick", "100ms", *tls) as where:
        assert where.startswith("https://0.0.0.0:")
        where = where.replace("0.0.0.0", "127.0.0.1")
        with Client(where, secret, certificate=certificate) as client:
            client.create("shop", contract)
            assert client.learn("shop", [{"age": 30, "bought": "yes"}] * 10).last == 10
            assert next(client.live("shop")).t == 10
        with Client(where, secret) as client, pytest.raises(ServiceError, match="is not trusted: self-signed"):
            client.streams()
        with Client(where, secret) as client, pytest.raises(ServiceError, match="is not trusted: self-signed"):
            next(client.live("shop"))
        other = self_signed(tmp_path)[0]  # of the same name, and with another key
        with Client(where, secret, certificate=other) as client, pytest.raises(ServiceError, match="is not trusted"):
            client.streams()
        plain = where.replace("https", "http")
        with Client(plain, secret, retries=0) as client, pytest.raises(ServiceError, match="did not answer"):
            client.streams()


def test_a_cookie_of_a_server_with_tls_is_sent_by_tls_only(tmp_path):
    certificate, key = self_signed(tmp_path)
    secret = answer("token", "create", "--store", tmp_path / "s.db", "--scope", "admin")["token"]
    with served_by_command("--store", tmp_path / "s.db", "--tls-cert", certificate, "--tls-key", key) as where:
        trusted = ssl.create_default_context(cafile=certificate)
        with httpx.Client(base_url=where, verify=trusted) as browser:
            form = browser.get("/login").text
            fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form)) | {"token": secret}
            done = browser.post("/login", data=fields, headers={"origin": where})
        assert done.status_code == 303, done.text
        assert "; secure" in done.headers["set-cookie"].lower()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_client_without_a_certificate_says_so(tmp_path, content):
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(InvalidInput, match=r"ca.pem cannot be read: .* Pass the file that"):
        Client("https://127.0.0.1:1", "t", certificate=tmp_path / "ca.pem")


def test_files_that_are_no_certificate_are_told_in_a_sentence(tmp_path):
    certificate, key = self_signed(tmp_path)
    for files in ((key, key), (certificate, certificate), (tmp_path / "s.db", key)):
        (tmp_path / "s.db").touch()
        done = run("serve", "--store", tmp_path / "t.db", "--port", "0", "--tls-cert", files[0], "--tls-key", files[1])
        assert isinstance(done.exception, InvalidInput), done.exception
        assert "are not a certificate and its key" in str(done.exception)
