"""What `deploy/` and the pages on operating say: commands and metrics that exist, and files without secrets or tags."""

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer.main
import yaml

from served import Client, free_port, new_store, served_by_command, service_at, some_rows
from taciturn.cli.app import app

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PAGES = [
    ROOT / "docs" / f"{name}.md" for name in ("deploy", "operating", "production", "service", "dashboard", "store")
]
COMMAND = typer.main.get_command(app)


def unknown(words):
    """The subcommand or the options of a command line that `taciturn` does not have."""
    command, rest = COMMAND, list(words)
    while hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            return rest[:1] or ["no subcommand"]
        command = command.commands[rest.pop(0)]
    known = {text for option in command.params for text in (*option.opts, *option.secondary_opts)} | {"--help"}
    return [word for word in rest if word.startswith("--") and word not in known]


def commands_of(page):
    """The command lines of `taciturn` on a page: those of consoles, and those in its sentences."""
    consoles = re.findall(r"^ *\$ (.*)$", page, re.MULTILINE)
    for line in (*consoles, *re.findall(r"`(taciturn [^`]*)`", page)):
        words = shlex.split(line, comments=True)
        # In a container, which may be called so, too.
        if words[0] == "docker" and "exec" in words and "taciturn" in words:
            words = words[len(words) - 1 - words[::-1].index("taciturn") :]
        if words[0] == "taciturn" and len(words) > 1:
            yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_exist(page):
    found = [words for words in commands_of(page.read_text(encoding="utf-8")) if "…" not in words]
    assert found
    assert [words for words in found if unknown(words)] == []


def test_a_command_that_does_not_exist_is_noticed():
    assert unknown(["store", "restore", "x.db"]) == ["restore"]
    assert unknown(["serve", "--tls", "x"]) == ["--tls"]
    assert unknown(["serve", "--tls-cert", "x"]) == []


def test_metrics_of_the_page_exist(tmp_path):
    service, _ = service_at(tmp_path / "streams.db")
    service.refresh()
    text = service.metrics.text(service, service.tokens.create(["admin"])[0])
    service.close()
    named = set(re.findall(r"`(taciturn_[a-z_]+)`", (ROOT / "docs/operating.md").read_text(encoding="utf-8")))
    assert len(named) > 10
    assert named <= set(re.findall(r"# TYPE (\S+)", text))


def test_the_image_serves():
    """The command of the image has options that exist, runs as a user without rights, and copies what is named only."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    command = json.loads(re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)[1])
    assert command[0] == "serve"
    assert unknown(command) == []
    assert "--behind-proxy" in command
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert all((ROOT / name).exists() for name in copied)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied)
    extras = re.search(r'"\.\[(.*?)\]"', text)[1].split(",")
    assert {"serve", "postgres", "data"} == set(extras)


def test_the_compose_file_is_safe():
    """Ports are on loopback only, one process learns, secrets come from outside, and the witness is apart."""
    made = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = made["services"]
    assert set(services) == {"learn", "predict", "db"}
    for name in ("learn", "predict"):
        one = services[name]
        assert unknown(one["command"]) == []
        assert ("--read-only" in one["command"]) == (name == "predict")
        assert all(port.startswith("127.0.0.1:") for port in one["ports"])
        assert one["read_only"]
        assert all(value.startswith("${") for value in one["environment"].values())
    assert "ports" not in services["db"]
    assert services["db"]["environment"]["POSTGRES_PASSWORD"].startswith("${")
    mounted = {volume.split(":")[0] for one in services.values() for volume in one["volumes"]}
    assert mounted == set(made["volumes"]) == {"cache", "database", "witness"}
    assert not any(volume.startswith("witness") for volume in services["db"]["volumes"])
    # While the image of PostgreSQL makes its database, a server answers at the socket, and not by TCP yet.
    assert services["db"]["healthcheck"]["test"][:4] == ["CMD", "pg_isready", "--host", "127.0.0.1"]


def placed(command, **places):
    """The options of a command of the image, with other places."""
    assert command[0] == "serve"
    return [places.get(word, word) for word in command[1:]]


def test_the_command_and_the_health_check_of_the_image_run(tmp_path):
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    command = json.loads(re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)[1])
    check = json.loads(re.search(r"^ *CMD (\[\"python.*\])$", text, re.MULTILINE)[1])
    port = free_port()
    places = {"/data/taciturn.db": tmp_path / "s.db", "/witness/witness.db": tmp_path / "w.db"}
    asked = [
        sys.executable,
        *(part.replace(":8000/", f":{port}/").replace("timeout=2", "timeout=20") for part in check[1:]),
    ]
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 1
    warns = "WARNING the witness is on the same disk"  # here; the volumes of an image may be on two
    with served_by_command(*placed(command, **places), port=port, warns=warns, TACITURN_KEY="ab" * 32):
        assert subprocess.run(asked, capture_output=True, check=False).returncode == 0
    assert (tmp_path / "w.db").exists()


def test_the_commands_of_the_compose_file_run(tmp_path, server):
    """One learns, the other predicts from the same database, by the options that are written there."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    address = server.new_database()
    secret = new_store(address)
    places = {"postgresql://taciturn@db/taciturn": address, "/witness/witness.db": tmp_path / "w.db"}
    learns, predicts = (placed(services[name]["command"], **places) for name in ("learn", "predict"))
    with served_by_command(*learns) as first, served_by_command(*predicts) as second:
        first, second = (Client(each.replace("0.0.0.0", "127.0.0.1"), secret) for each in (first, second))
        assert first.learn(some_rows(10), "one").status_code == 200
        assert second.learn(some_rows(10), "two").status_code == 409
        until = time.monotonic() + 20.0
        while second.predict(some_rows(1)).json()["release"] < 1:
            assert time.monotonic() < until
            time.sleep(0.05)
