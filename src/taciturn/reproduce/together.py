"""All experiments, one after the other, under one bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.errors import TaciturnError
from taciturn.reproduce import REGISTRY, load
from taciturn.reproduce.bars import bar_over
from taciturn.reproduce.experiment import Experiment, Row, reproduce
from taciturn.reproduce.runs import Kept

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Outcome:
    """What became of each experiment: its rows, or the sentence that it was refused with."""

    experiments: Mapping[str, Experiment]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def reproduce_all(
    folder: Path, console: Console, *, quick: bool = False, seeds: int | None = None, fresh: bool = False
) -> Outcome:
    """Reproduce every experiment of the registry; one that is refused, for want of data perhaps, does not stop others.

    The time left is judged by what experiments are known to take (`Entry.minutes`), and by how fast this machine is.
    """
    outcome = Outcome({name: load(name) for name in REGISTRY})
    plans = {name: experiment.plan(quick, seeds) for name, experiment in outcome.experiments.items()}
    worth = {name: REGISTRY[name].minutes / len(plan) for name, plan in plans.items()}
    left = {
        name: sum(fresh or Kept(name, folder / "runs").read(settings) is None for settings in plan)
        for name, plan in plans.items()
    }
    with bar_over(left, worth, console) as whole:
        for name, experiment in outcome.experiments.items():
            try:
                rows = reproduce(experiment, folder, console, quick=quick, seeds=seeds, fresh=fresh, whole=whole)
                outcome.rows[name] = rows
            except TaciturnError as refusal:
                outcome.refused[name] = str(refusal)
    return outcome
