"""`taciturn serve` and `taciturn token`."""

import json
import os
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from taciturn.cli.app import app
from taciturn.errors import InvalidInput
from taciturn.service.tokens import Tokens
from taciturn.store.database import Database


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
    command = [sys.executable, "-m", "taciturn", "serve", "--store", str(tmp_path / "s.db"), "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as one:
        try:
            printed = ""
            while not printed.rstrip().endswith("}"):
                printed += one.stdout.readline()
            where = json.loads(printed)["address"]
            for _ in range(500):
                try:
                    listed = httpx.get(f"{where}/v1/streams", headers={"authorization": f"Bearer {secret}"})
                    break
                except httpx.TransportError:
                    assert one.poll() is None
            assert listed.json() == {"streams": []}
        finally:
            one.terminate()
        assert one.wait(20.0) in (0, -15)
        assert one.stderr.read() == ""
