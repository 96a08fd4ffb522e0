"""Streams as readers see them: also those that the command has learnt."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

from taciturn.cli.app import app
from taciturn.contract.contract import contract_of
from taciturn.contract.model_file import read_model
from taciturn.service.service import Service
from taciturn.store import Store
from taciturn.store.database import Transaction
from taciturn.streams.stored import StoredStream

CONTRACT = """\
[privacy]
epsilon = 50.0
[target]
column = "y"
positive = ["yes"]
[learning]
horizon = 400
[columns]
zeta = { range = [0, 1] }
alpha = { range = [0, 10] }
"""


def test_a_stream_of_the_command_is_shown_with_its_own_weights(tmp_path: Path) -> None:
    """The columns of a contract are in no alphabetical order, and weights follow them."""
    (tmp_path / "c.toml").write_text(CONTRACT)
    rng = np.random.default_rng(4)
    lines = [
        f"{z:.3f},{a:.3f},{'yes' if z > 0.5 else 'no'}"
        for z, a in zip(rng.random(400), 10 * rng.random(400), strict=True)
    ]
    (tmp_path / "d.csv").write_text("\n".join(["zeta,alpha,y", *lines, ""]))
    store = tmp_path / "s.db"
    command = ["learn", str(tmp_path / "c.toml"), str(tmp_path / "d.csv"), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*command, "--store", str(store), "--name", "clicks"])
    assert done.exit_code == 0, done.output
    service = Service(Store(store))
    service.refresh()
    shown = json.loads(service.host("clicks").view.body)
    service.close()
    file = json.loads((tmp_path / "run" / "model.json").read_text())
    assert list(file["scores"][0]["weights"]) == ["zeta", "alpha"]
    assert shown["scores"] == file["scores"]
    assert shown["contract"] == file["contract"]
    assert read_model(tmp_path / "run" / "model.json").point.shape == (3,)


def test_a_stream_that_goes_on_while_it_is_opened_is_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A wide one, a part of whose state is stored by release: another process commits after every read."""
    columns = {f"x{i}": {"range": [0, 1]} for i in range(200)}
    target = {"column": "y", "range": [0, 1]}
    learning = {"loss": "squared", "horizon": 100, "release": 1}
    contract = contract_of({"privacy": {"epsilon": 1.0}, "target": target, "learning": learning, "columns": columns})
    learner = Service(Store(tmp_path / "s.db"))
    plan = learner.create("clicks", contract).plan
    stream = StoredStream(Store(tmp_path / "s.db"), plan, *learner.store.load_with_layers("clicks"))

    def goes_on() -> None:
        stream.prepare(np.zeros((1, 200)), [0.5])
        stream.commit()

    goes_on()
    assert len(stream.saved.layers) == 1
    service = Service(Store(tmp_path / "s.db"))
    database = service.store.database
    real = database.transaction

    @contextlib.contextmanager
    def transaction(*given: Any, **named: Any) -> Iterator[Transaction]:
        with real(*given, **named) as now:
            yield now
        goes_on()

    with mock.patch.object(database, "transaction", transaction):
        service.refresh()
        opened = service.writer("clicks")._load()
    assert not caplog.text
    assert opened.t > 1
    assert service.host("clicks").name == "clicks"
    for each in (service, learner):
        each.close()


def test_a_contract_that_is_not_that_of_the_stream_is_not_shown(tmp_path: Path) -> None:
    from taciturn.errors import InvalidInput
    from taciturn.service.host import Host

    service = Service(Store(tmp_path / "s.db"))
    columns = {"zeta": {"range": [0, 1]}, "alpha": {"range": [0, 10]}}
    target = {"column": "y", "positive": ["yes"]}
    service.create("clicks", contract_of({"privacy": {"epsilon": 1.0}, "target": target, "columns": columns}))
    saved = service.store.load("clicks")
    Host(service.store, saved)
    declared = saved.about["declared"]
    declared["columns"] = dict(sorted(declared["columns"].items()))
    with pytest.raises(InvalidInput, match="not learnt under the contract"):
        Host(service.store, saved)
    service.close()
