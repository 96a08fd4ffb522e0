"""How long one waits for the first answer: wall clock of fresh processes, in turns; those that compile come last.

`import taciturn` alone loads little, so importing what a recipe needs stands beside it. A recipe is what a first user
runs: a problem, a budget, a thousand examples, a release after each. *With an empty cache* its loops are compiled, as
they are once after installing; *later* they are loaded. Python's own bytecode is on disk either way, as an installer
leaves it: the first turn, which is not counted, writes what is missing. Others' imports are a measure of what is usual:
river's own is lazy as well, so its linear models stand beside it. Python's own start is part of every figure. Limits
are by the clock; the processor's seconds beside it tell a slow start from a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import turns

IMPORTS = "from taciturn import L2Ball, Logistic, Privacy, Problem, pftrl, pigd\n"
RECIPE = (
    IMPORTS
    + """
import numpy as np

X = np.random.default_rng(0).normal(size=(1000, 10)) / 10.0
y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
problem = Problem(Logistic(), L2Ball(1.0), dimension=10, ridge=0.1)
private = {recipe}(problem, Privacy(1.0, 1e-6), 1000)
state, releases = private.run(private.start(), X, y)
assert len(releases) == 1000
"""
)
RECIPES = ("pigd", "pftrl")
EMPTY = "{}, with an empty cache"
LIMITS = {
    "import taciturn": 0.5,
    "taciturn --help": 0.3,
    **{EMPTY.format(recipe): 10.0 for recipe in RECIPES},
    **{f"{recipe}, later": 1.0 for recipe in RECIPES},
}
"""Seconds that are wanted at the most."""


class Spent(NamedTuple):
    """Seconds of a process, by the clock and on the processor."""

    wall: float
    processor: float


def process(arguments: Sequence[str], cache: str) -> Spent:
    """A process from its beginning to its end; `cache` is where compiled code and fits are kept."""
    command, environment = (
        [sys.executable, *arguments],
        os.environ | {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache},
    )
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start, before = time.perf_counter(), turns.children_clock()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return Spent(time.perf_counter() - start, turns.children_clock() - before)


def processes() -> dict[str, tuple[str, ...]]:
    """What is started, by name; peers that are not installed are left out."""
    peers = ("sklearn.linear_model", "river", "river.linear_model", "jax")
    usual = ("numpy", "numba", *(name for name in peers if find_spec(name.partition(".")[0])))
    return {
        "python": ("-c", "pass"),
        "import taciturn": ("-c", "import taciturn"),
        "import what a recipe needs": ("-c", IMPORTS),
        "taciturn --help": ("-m", "taciturn", "--help"),
        **{f"{recipe}, later": ("-c", RECIPE.format(recipe=recipe)) for recipe in RECIPES},
        **{f"import {name}": ("-c", f"import {name}") for name in usual},
    }


def with_a_cache(repetitions: int, console: Console) -> dict[str, list[Spent]]:
    """Everyone in turns; the first turn fills the cache, and is not counted."""
    found: dict[str, list[Spent]] = {name: [] for name in processes()}
    with tempfile.TemporaryDirectory() as cache:
        for turn in track(range(repetitions + 1), "taking turns", console=console):
            for name, arguments in processes().items():
                spent = process(arguments, cache)
                found[name] += [spent] if turn else []
    return found


def with_an_empty_cache(recipes: Sequence[str], console: Console) -> dict[str, list[Spent]]:
    """Recipes that find nothing compiled, each in turn."""
    found: dict[str, list[Spent]] = {EMPTY.format(recipe): [] for recipe in recipes}
    for recipe in track(recipes, "compiling", console=console):
        with tempfile.TemporaryDirectory() as nothing:
            found[EMPTY.format(recipe)].append(process(("-c", RECIPE.format(recipe=recipe)), nothing))
    return found


def judged(found: Mapping[str, list[Spent]]) -> dict[str, dict[str, Any]]:
    """Of those with a limit: the median by the clock, and whether it is below."""
    medians = {name: float(np.median([each.wall for each in found[name]])) for name in LIMITS if name in found}
    return {
        name: {"median": median, "wanted": f"< {LIMITS[name]:g}", "met": median < LIMITS[name]}
        for name, median in medians.items()
    }


def table(found: Mapping[str, list[Spent]], limits: Mapping[str, dict[str, Any]]) -> Table:
    shown = Table("process", "s", "from", "to", "s of the processor", "wanted", "met")
    for name, each in found.items():
        walls, used = zip(*each, strict=True)
        one = limits.get(name, {"wanted": "", "met": None})
        numbers = [f"{x:.3f}" for x in (np.median(walls), min(walls), max(walls), np.median(used))]
        shown.add_row(name, *numbers, one["wanted"], turns.said(one["met"]))
    return shown


def main() -> None:
    chosen = turns.options(__doc__)
    turns.settle(plain_memory=True)
    console = Console(stderr=chosen.json)
    found = with_a_cache(2 if chosen.quick else 9, console)
    found |= with_an_empty_cache(RECIPES[:1] if chosen.quick else RECIPES * 3, console)
    limits = judged(found)
    packages = ("taciturn", "numpy", "numba", "scikit-learn", "river", "jax")
    record = turns.surroundings(*packages) | {
        "unit": "seconds from a process's beginning to its end",
        "seconds": {name: [spent.wall for spent in each] for name, each in found.items()},
        "seconds of the processor": {name: [spent.processor for spent in each] for name, each in found.items()},
        "limits": limits,
    }
    turns.save("starting", record, chosen, console, table(found, limits))


if __name__ == "__main__":
    main()
