"""Start-up times: wall time of new processes, in turns; those that compile come last.

`import taciturn` alone loads little, so the imports of a recipe are measured, too. A recipe is what a new user runs: a
problem, a budget, a thousand examples, a release after each. *With an empty cache* its loops are compiled, as they are
once after installation; *later* they are loaded. Python's bytecode is on disk either way, as an installer leaves it:
the first turn, which is not counted, writes what is missing. Imports of other packages are for comparison: river's own
is lazy as well, so its linear models are measured, too. The start of Python is part of every time. Targets are for the
wall time; the CPU time distinguishes a slow start from a busy machine.
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

from runner import children_clock, environment, parse_options, save, use_one_core, yes_or_no

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
TARGETS = {
    "import taciturn": 0.5,
    "taciturn --help": 0.3,
    **{EMPTY.format(recipe): 10.0 for recipe in RECIPES},
    **{f"{recipe}, later": 1.0 for recipe in RECIPES},
}
"""Wall seconds, at most."""


class Spent(NamedTuple):
    """Wall and CPU seconds of a process."""

    wall: float
    cpu: float


def process(arguments: Sequence[str], cache: str) -> Spent:
    """A process from its beginning to its end; `cache` is the folder of compiled code and fits."""
    variables = os.environ | {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    before = children_clock()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=variables)
    return Spent(time.perf_counter() - start, children_clock() - before)


def processes() -> dict[str, tuple[str, ...]]:
    """Arguments of Python by name; peers that are not installed are left out."""
    peers = ("sklearn.linear_model", "river", "river.linear_model", "jax")
    usual = ("numpy", "numba", *(name for name in peers if find_spec(name.partition(".")[0])))
    return {
        "python": ("-c", "pass"),
        "import taciturn": ("-c", "import taciturn"),
        "imports of a recipe": ("-c", IMPORTS),
        "taciturn --help": ("-m", "taciturn", "--help"),
        **{f"{recipe}, later": ("-c", RECIPE.format(recipe=recipe)) for recipe in RECIPES},
        **{f"import {name}": ("-c", f"import {name}") for name in usual},
    }


def with_a_cache(repetitions: int, console: Console) -> dict[str, list[Spent]]:
    """All processes in turns; the first turn fills the cache, and is not counted."""
    results: dict[str, list[Spent]] = {name: [] for name in processes()}
    with tempfile.TemporaryDirectory() as cache:
        for turn in track(range(repetitions + 1), "taking turns", console=console):
            for name, arguments in processes().items():
                spent = process(arguments, cache)
                results[name] += [spent] if turn else []
    return results


def with_an_empty_cache(recipes: Sequence[str], console: Console) -> dict[str, list[Spent]]:
    """Recipes that have to compile, each in turn."""
    results: dict[str, list[Spent]] = {EMPTY.format(recipe): [] for recipe in recipes}
    for recipe in track(recipes, "compiling", console=console):
        with tempfile.TemporaryDirectory() as nothing:
            results[EMPTY.format(recipe)].append(process(("-c", RECIPE.format(recipe=recipe)), nothing))
    return results


def judged(results: Mapping[str, list[Spent]]) -> dict[str, dict[str, Any]]:
    """Median wall time of those with a target, and whether it is met."""
    medians = {name: float(np.median([each.wall for each in results[name]])) for name in TARGETS if name in results}
    return {
        name: {"median": median, "target": f"< {TARGETS[name]:g}", "met": median < TARGETS[name]}
        for name, median in medians.items()
    }


def table(results: Mapping[str, list[Spent]], targets: Mapping[str, dict[str, Any]]) -> Table:
    made = Table("process", "wall s", "from", "to", "CPU s", "target", "met")
    for name, each in results.items():
        walls, used = zip(*each, strict=True)
        one = targets.get(name, {"target": "", "met": None})
        numbers = [f"{x:.3f}" for x in (np.median(walls), min(walls), max(walls), np.median(used))]
        made.add_row(name, *numbers, one["target"], yes_or_no(one["met"]))
    return made


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core(plain_memory=True)
    console = Console(stderr=chosen.json)
    results = with_a_cache(2 if chosen.quick else 9, console)
    results |= with_an_empty_cache(RECIPES[:1] if chosen.quick else RECIPES * 3, console)
    targets = judged(results)
    packages = ("taciturn", "numpy", "numba", "scikit-learn", "river", "jax")
    record = environment(*packages) | {
        "unit": "wall seconds from the beginning to the end of a process",
        "seconds": {name: [spent.wall for spent in each] for name, each in results.items()},
        "CPU seconds": {name: [spent.cpu for spent in each] for name, each in results.items()},
        "targets": targets,
    }
    save("starting", record, chosen, console, table(results, targets))


if __name__ == "__main__":
    main()
