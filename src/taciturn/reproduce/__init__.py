"""Experiments behind `taciturn reproduce`, which are examples too: they use the public names of `taciturn`.

Each is an `Experiment` (`taciturn.reproduce.runner`). To add one, write it in a module and name it in `REGISTRY`; the
command, its options, saved runs and files follow from that.

>>> load("regret").name
'regret'
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taciturn.errors import one_of

if TYPE_CHECKING:
    from taciturn.reproduce.runner import Experiment


@dataclass(frozen=True)
class Entry:
    """An experiment of the registry: its place, imported when it is run, and what the command's help says.

    Attributes
    ----------
    module, name : str
        Module of this package, and the experiment's name in it.
    summary : str
        One sentence for the help.
    minutes : float
        Approximate duration on two cores, which `taciturn reproduce --list` shows, and from which `taciturn reproduce
        all` estimates the time left.
    data : tuple of str
        The data sets that it needs, as functions of `taciturn.datasets`.
    """

    module: str
    summary: str
    minutes: float = 5.0
    name: str = "EXPERIMENT"
    data: tuple[str, ...] = ()


REGISTRY = {
    "figure-a": Entry(
        "figures",
        "Figure 2 (a): average regret against t on simulated regression, by method and budget.",
        3.0,
        name="FIGURE_A",
    ),
    "figure-b": Entry(
        "figures",
        "Figure 2 (b): the same on flights, bikes, and a simulated stream of 90 features.",
        3.0,
        name="FIGURE_B",
        data=("flights", "bike"),
    ),
    "table-c": Entry(
        "covertype", "Accuracy on Covertype: the paper's table, and today's algorithms.", 12.0, data=("covertype",)
    ),
    "offline": Entry(
        "offline",
        "Offline learning on Adult and Covertype: POL, output and objective perturbation.",
        0.5,
        data=("adult", "covertype"),
    ),
    "regret": Entry("regret", "Average regret on the paper's synthetic regression, by method and budget.", 1.0),
    "slopes": Entry(
        "growth", "Regret of five algorithms against T: slopes, and the exponents of the theorems.", 0.5, name="SLOPES"
    ),
    "growth": Entry(
        "growth", "Regret of PIGD and private FTRL up to a million examples, and proven bounds.", 0.5, name="GROWTH"
    ),
    "bandits": Entry(
        "bandits", "Regret of private contextual bandits: as printed in 2018, and what has improved.", 1.5
    ),
    "errata": Entry("errata", "Privacy that the paper's constants deliver, and what its theorems claim: exact.", 0.1),
}


def load(name: str) -> Experiment:
    """The experiment of that name."""
    entry = REGISTRY[one_of("experiment", name, tuple(REGISTRY))]
    experiment: Experiment = getattr(importlib.import_module(f"{__name__}.{entry.module}"), entry.name)
    return experiment
