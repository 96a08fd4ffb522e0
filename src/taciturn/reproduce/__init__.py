"""The experiments behind `taciturn reproduce`, which double as examples: they use what a user of `taciturn` uses.

Each is a module that defines an `EXPERIMENT` (`taciturn.reproduce.experiment.Experiment`). To add one, write its
module and name it in `REGISTRY`; the command, its options, the kept runs and the files come by themselves.

>>> load("regret").name
'regret'
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taciturn.errors import one_of

if TYPE_CHECKING:
    from taciturn.reproduce.experiment import Experiment


@dataclass(frozen=True)
class Entry:
    """What the command says of an experiment, and the module that holds it, imported when it is run.

    Minutes are what it takes on two cores, roughly; from them `taciturn reproduce all` judges the time left.
    """

    module: str
    summary: str
    minutes: float = 5.0


REGISTRY = {
    "figure-a": Entry(
        "figure_a", "Figure 2 (a): average regret against t on simulated regression, by method and budget.", 5.0
    ),
    "figure-b": Entry(
        "figure_b", "Figure 2 (b): the same on flights, bikes, and a simulated stream of 90 features.", 5.0
    ),
    "table-c": Entry("covertype_table", "Accuracy on Covertype, the paper's table and what can be had today.", 12.0),
    "offline": Entry(
        "offline_table", "Offline learning on Adult and Covertype, beside output and objective perturbation.", 6.0
    ),
    "regret": Entry("regret_table", "Average regret on the paper's synthetic regression, by method and budget.", 4.0),
    "errata": Entry("errata_table", "What the paper's constants deliver, beside what its theorems claim: exact.", 0.1),
}


def load(name: str) -> Experiment:
    """The experiment of that name."""
    entry = REGISTRY[one_of("experiment", name, tuple(REGISTRY))]
    experiment: Experiment = importlib.import_module(f"{__name__}.{entry.module}").EXPERIMENT
    return experiment
