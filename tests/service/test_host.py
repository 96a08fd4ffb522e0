"""Streams as readers see them: also those that the command has learnt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from taciturn.cli.app import app
from taciturn.contract.model_file import read_model
from taciturn.service.service import Service
from taciturn.store import Store

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


def test_a_contract_that_is_not_that_of_the_stream_is_not_shown(tmp_path: Path) -> None:
    from taciturn.contract.contract import contract_of
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
