"""Figure 2 (c) of the paper: accuracy on Covertype by method and budget, and that of newer algorithms. NOT PRIVATE.

A seed determines which tenth of the 581,012 cells is held out, the order of the others, and the noise; results are
means over seeds. The noise is seeded and accuracy is measured on exact rows, so none of it is private: the budgets are
those of the same settings with secret noise, for one example replaced.

**As in the paper.** Class 2 against the rest. The paper states no scaling, set or ridge: here, numbers are mapped from
public ranges into [-1, 1], a constant is appended, rows are scaled to norm 1; `alpha = 0.01`, radius 2, a release after
every example, noise in proportion to 1/t, and the last point is scored. S^(2/3), the default of `pigd`, is a row of its
own: less noise in total, more at the end. This reading is the one of three that is nearest to the paper's accuracy
*without* privacy (without the constant, and with one added to rows of norm 1, IGD has 68.8 and 68.4 %). In the paper's
own readings, printed and proven, (epsilon, delta) are the paper's parameters, which claim (3·epsilon, 2·delta), and
deliver what the table says.

**By the plan.** The 54 features, rows of norm 1, and the defaults of `taciturn.estimators.settings` and
`taciturn.plan`, which are not tuned here; the defaults were chosen with Covertype among the data sets, though
(`taciturn.plan`). With hats: the 54 features and fifteen triangles of the elevation over its public range
(`scaling.hats`), before rows are scaled to norm 1; hats 2, 3 and 4 times as high are up to a point worse. Seven
classes: the 54 features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn import IGD, QFTL, Hinge, L2Ball, Logistic, OneHot, Privacy, Problem, Squared, pgiga, pigd
from taciturn.datasets import Stream, covertype
from taciturn.datasets.scaling import hats, to_norm_one
from taciturn.datasets.split import split
from taciturn.errors import integer
from taciturn.estimators import settings as estimators
from taciturn.estimators.stream import Stream as Learning
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.arrays import Array
from taciturn.plan import Plan
from taciturn.reproduce.plots import Curve, Panel, save_panels
from taciturn.reproduce.rows import (
    ACCURACY,
    Result,
    Row,
    Settings,
    accuracy_curve,
    by_method,
    mean_accuracies,
    percent,
)
from taciturn.reproduce.runner import Experiment

if TYPE_CHECKING:
    from rich.table import Table

EPSILONS = (0.1, 1.0, 10.0, 20.0)
DELTAS = (0.01, 1e-6)
HATS = 15
CLASSES = 7
Exact = IGD | QFTL
Planned = Callable[[int, Privacy, int, int], Plan]
"""From features, budget, examples and seed to a plan."""


def _problem(dimension: int, loss: Any = None) -> Problem:
    """The paper's problem, as it is read here."""
    return Problem(loss or Logistic(), L2Ball(2.0), dimension, ridge=0.01)


def _faithful(
    dimension: int, privacy: Privacy, horizon: int, seed: int, loss: Any = None, giga: bool = False, **how: Any
) -> Plan:
    recipe = pgiga if giga else pigd
    private = recipe(_problem(dimension, loss), privacy, horizon, seed=seed, **{"shape": "S", **how})
    return Plan("pgiga" if giga else "pigd", private, "as in the paper")


def _planned(dimension: int, privacy: Privacy, horizon: int, seed: int, **settings: Any) -> Plan:
    chosen = estimators.Settings(epsilon=privacy.epsilon, delta=privacy.delta, feature_bound=1.0, seed=seed, **settings)
    return chosen.plan(dimension, horizon)


def _online(classes: int) -> dict[str, Planned]:
    logistic = "logistic" if classes == 2 else "softmax"
    return {
        "private FTRL, hinge": partial(_planned, loss="hinge", classes=classes),
        f"private FTRL, {logistic}": partial(_planned, loss="logistic", classes=classes),
        "PQFTL": partial(_planned, loss="logistic", method="pqftl", classes=classes),
    }


_BROKEN: dict[str, Any] = {"allow_broken": True}
PRIVATE: Mapping[str, Mapping[str, Planned]] = {
    "paper": {
        "PIGD as printed": partial(_faithful, calibration="paper-printed", **_BROKEN),
        "PIGD as proven": partial(_faithful, calibration="paper-proven", **_BROKEN),
        "PIGD": _faithful,
        "PIGD, S^(2/3)": partial(_faithful, shape="S^(2/3)"),
        "PIGD, hinge": partial(_faithful, loss=Hinge()),
        "PGIGA": partial(_faithful, giga=True),
    },
    "plan": {
        **_online(2),
        "PIGD by the plan": partial(_planned, loss="logistic", method="igd", classes=2),
        "PGIGA by the plan": partial(_planned, loss="logistic", method="giga", classes=2),
    },
    "hats": _online(2),
    "classes": _online(CLASSES),
}
"""Private methods by block: settings of the paper, the plan's, the plan's with hats, and for all seven classes."""


def _squared(dimension: int, loss: Any = None) -> Exact:
    return QFTL(Problem(loss or Squared(), L2Ball(40.0), dimension, label_bound=1.0, intercept=0.5))


EXACT: Mapping[str, Mapping[str, Callable[[int], Exact]]] = {
    "paper": {"IGD, not private": lambda dimension: IGD(_problem(dimension))},
    "plan": {"least squares, not private": _squared},
    "hats": {"least squares, not private": _squared},
    "classes": {"least squares, not private": partial(_squared, loss=OneHot(CLASSES))},
}


@dataclass(frozen=True)
class Setting:
    """Everything that a run depends on; a method without privacy has no budget.

    >>> Setting("plan", "PQFTL", 1.0, 1e-6, seed=1).rows is None
    True
    """

    block: str
    method: str
    epsilon: float | None
    delta: float | None
    seed: int
    rows: int | None = None


def plan(quick: bool = False, seeds: int | None = None, rows: int | None = None) -> list[Settings]:
    """All runs, seed by seed and block by block, so that a process can reuse the rows of its last run."""
    seeds = integer("seeds", (1 if quick else 10) if seeds is None else seeds)
    rows = 50_000 if quick and rows is None else rows
    budgets = [(epsilon, delta) for delta in DELTAS for epsilon in EPSILONS]
    return [
        asdict(Setting(block, method, epsilon, delta, seed, rows))
        for seed in range(1, seeds + 1)
        for block in PRIVATE
        for method in (*EXACT[block], *PRIVATE[block])
        for epsilon, delta in (budgets if method in PRIVATE[block] else [(None, None)])
    ]


def run(settings: Settings) -> Result:
    """Learn from nine tenths of the rows, and score the model on the last tenth."""
    s = Setting(**settings)
    train, test = _rows(s.block, s.seed, s.rows)
    dimension, horizon = train.X.shape[1], len(train)
    if s.epsilon is None or s.delta is None:
        learner = EXACT[s.block][s.method](dimension)
        return {"accuracy": accuracy(learner.problem, _exact(learner, train), test), **_NO_BUDGET}
    chosen = PRIVATE[s.block][s.method](dimension, Privacy(s.epsilon, s.delta), horizon, s.seed)
    guarantee = chosen.private.guarantee
    learning = Learning(chosen)
    learning.learn(train.X, train.y)
    return {
        "accuracy": accuracy(chosen.private.problem, learning.model, test),
        "claimed_epsilon": guarantee.claimed.epsilon,
        "claimed_delta": guarantee.claimed.delta,
        "delivered_epsilon": guarantee.epsilon,
        "proven": guarantee.proven,
    }


_NO_BUDGET = dict.fromkeys(("claimed_epsilon", "claimed_delta", "delivered_epsilon", "proven"))


def accuracy(problem: Problem, point: Array, test: Stream) -> float:
    """Share of rows whose score has the right sign, or is largest for their class (not private)."""
    scores = np.asarray(problem.predict(point, test.X))
    guesses = np.argmax(scores, axis=1) if scores.ndim == 2 else np.where(scores > 0.0, 1.0, -1.0)
    return float(np.mean(guesses == test.y))


def _exact(learner: Exact, train: Stream) -> Array:
    """The point after all examples, without noise (not private)."""
    X, y = learner.problem.clip(train.X, train.y)
    from taciturn.kernel.replay import replay

    rows = replay(learner, X, y, np.array([len(y)]), compiled=True).statistics
    return learner.decide(len(y), rows[-1], 0.0)


@lru_cache(maxsize=1)
def _rows(block: str, seed: int, rows: int | None) -> tuple[Stream, Stream]:
    """The rows of a block, split; those of the last run are cached."""
    train, test = split(_cells(), seed, rows=rows)
    return _mapped(train, block), _mapped(test, block)


@cache
def _cells() -> Stream:
    return covertype(positive=None, unit=False)


def _mapped(stream: Stream, block: str) -> Stream:
    """Features of a block, and its labels; computed row by row, from public numbers only."""
    nothing = np.empty((len(stream), 0))
    added = {"paper": np.ones((len(stream), 1)), "hats": hats(stream.X[:, 0], -1.0, 1.0, HATS)}
    X = np.hstack([stream.X, added.get(block, nothing)])
    names = tuple(f"feature {i}" for i in range(X.shape[1]))
    y = stream.y if block == "classes" else np.where(stream.y == 1.0, 1.0, -1.0)
    return replace(stream, X=to_norm_one(X), y=y, names=names, feature_bound=1.0)


# ---- tables and pictures ---------------------------------------------------------------------------------------

PAPER = {None: 0.681, 0.1: 0.583, 1.0: 0.594, 10.0: 0.627, 20.0: 0.663}
"""Accuracy of IGD, and of PIGD by epsilon at delta = 0.01, as the paper's Figure 2 (c) prints them."""
PAPER_DELTA = 0.01

BLOCKS = {
    "paper": "Class 2 against the rest, settings of the paper: norm 1, alpha = 0.01, radius 2, every point, the last "
    "scored",
    "plan": "Class 2 against the rest, 54 features and an intercept, settings of the plan",
    "hats": "Class 2 against the rest, with 15 public hat functions of the elevation, settings of the plan",
    "classes": "All seven classes, 54 features and an intercept, settings of the plan",
}
TITLE = "Accuracy on Covertype by method and budget"
CAPTION = (
    "Accuracy on a held-out tenth of Covertype against epsilon, mean and standard deviation over seeds. At every "
    "budget the learners on private sums (FTRL, PQFTL) lie above the paper's PIGD, and from epsilon = 0.1 on even "
    "above its IGD without privacy; public hat functions of the elevation help most where the budget is small. PIGD as "
    "printed loses no accuracy because it adds almost no noise: the table says what it delivers. Seeded simulations: "
    "not private."
)
PAPER_SAYS = (
    "Figure 2 (c): 68.1 % without privacy; 58.3, 59.4, 62.7 and 66.3 % at epsilon = 0.1, 1, 10 and 20, delta = 0.01. "
    "Scaling, set, ridge and scored point are not stated there; the table states ours."
)


def table(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each block, method and budget: the mean over seeds, and the paper's number where it has one."""
    return [row | {"paper": _in_paper(row)} for row in mean_accuracies(plan, results)]


def _in_paper(row: Row) -> float | None:
    comparable = row["block"] == "paper" and row["method"].startswith(("PIGD", "IGD")) and "hinge" not in row["method"]
    return PAPER[row["epsilon"]] if comparable and row["delta"] in (None, PAPER_DELTA) else None


def show(rows: Sequence[Row]) -> list[Table | str]:
    """A table for each block and delta; a broken claim is red, and the line below says what it delivers."""
    deltas = dict.fromkeys(row["delta"] for row in rows if row["delta"] is not None)
    return [
        *(_table(rows, block, delta) for block in BLOCKS for delta in deltas),
        f"Accuracy in percent, mean ± standard deviation; seeds: {rows[0]['seeds']}. Exact calibrations deliver the "
        "epsilon of their column at that delta, for the whole sequence of releases; the paper's readings claim "
        "3·epsilon at 2·delta, and deliver what the line below them says. Seeded simulations, scored on exact rows: "
        "not private.",
    ]


def _table(rows: Sequence[Row], block: str, delta: float) -> Table:
    from rich.table import Table

    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    made = Table(title=f"{BLOCKS[block]}; delta = {delta:g}", title_justify="left")
    for name in ("epsilon", *(f"{epsilon:g}" for epsilon in epsilons)):
        made.add_column(name, justify="left" if name == "epsilon" else "right", no_wrap=True)
    if block == "paper" and delta == PAPER_DELTA:
        made.add_row(*("the paper's PIGD", *(f"{100.0 * PAPER[e]:.1f}" for e in epsilons)), style="dim")
    for method, group in _methods(rows, block, delta).items():
        _add(made, method, group)
    return made


def _add(made: Table, method: str, rows: Sequence[Row]) -> None:
    if rows[0]["epsilon"] is None:
        paper = "" if rows[0]["paper"] is None else f" (the paper's: {100.0 * rows[0]['paper']:.1f})"
        made.caption = f"{method}: {percent(rows[0])}{paper}"
        made.caption_justify = "left"
        return
    broken = any(not row["proven"] for row in rows)
    made.add_row(method, *(percent(row) for row in rows), style="red" if broken else "")
    if broken:
        delivered = (rounded_up(row["delivered_epsilon"], thousands=True) for row in rows)
        made.add_row("  BROKEN, delivers", *delivered, style="red")


def _methods(rows: Sequence[Row], block: str, delta: float) -> dict[str, list[Row]]:
    return by_method([row for row in rows if row["block"] == block and row["delta"] in (None, delta)])


def draw(rows: Sequence[Row], path: Path) -> None:
    """Accuracy against epsilon: class 2 at both deltas, with the paper's own points, then all classes."""
    deltas = list(dict.fromkeys(row["delta"] for row in rows if row["delta"] is not None))
    panels = [_two_classes(rows, delta) for delta in deltas]
    panels.append(_panel(f"all seven classes, delta = {deltas[-1]:g}", _curves(rows, "classes", deltas[-1])))
    save_panels([panels], f"Covertype, seeds: {rows[0]['seeds']}", path)


def _two_classes(rows: Sequence[Row], delta: float) -> Panel:
    paper = _curves(rows, "paper", delta)
    plan = _curves(rows, "plan", delta)
    hats = _methods(rows, "hats", delta)["private FTRL, hinge"]
    curves = {
        "private FTRL, hinge, with hats": accuracy_curve(hats, "epsilon"),
        **{name: plan[name] for name in plan if "plan" not in name},
        **{name: paper[name] for name in paper if name in ("IGD, not private", "PIGD", "PIGD as printed (BROKEN)")},
    }
    if delta == PAPER_DELTA:
        printed = {epsilon: 100.0 * accuracy for epsilon, accuracy in PAPER.items() if epsilon is not None}
        curves["the paper's PIGD"] = Curve(list(printed), list(printed.values()), line="--")
    return _panel(f"class 2 against the rest, delta = {delta:g}", curves)


def _panel(title: str, curves: Mapping[str, Curve]) -> Panel:
    return Panel(title, "epsilon", ACCURACY, curves, yscale="linear", ticks=True)


def _curves(rows: Sequence[Row], block: str, delta: float) -> dict[str, Curve]:
    return {
        f"{name} (BROKEN)" if _broken(group) else name: accuracy_curve(
            group, "epsilon", "-." if _broken(group) else "-"
        )
        for name, group in _methods(rows, block, delta).items()
    }


def _broken(rows: Sequence[Row]) -> bool:
    return rows[0]["proven"] is False


EXPERIMENT = Experiment("table-c", plan, run, table, show, draw, TITLE, CAPTION, PAPER_SAYS)
