"""Regret of private contextual bandits: the algorithm of Shariff and Sheffet as printed, and what has improved since.

NOT PRIVATE: seeded. The contexts, arms and rewards of a seed are the same for all methods; delta = 1e-6 unless it is
said. Results are means over seeds, with their standard errors; regret is the sum, over all rounds, of what the played
arm's mean lies below that of the best.

**Environments.** A: ten arms, whose contexts are drawn on the unit sphere for every visitor, `‖theta‖ = 1`, rewards ±1.
B: a hundred arms, contexts `(u, 1)/sqrt(2)`, rewards 0 or 1. C: twenty arms of fixed contexts, which do not explore,
rewards ±1. Logistic: twenty arms on the sphere, rewards 0 or 1 with probabilities that are the sigmoid of `x·theta`.

**Methods.** *As printed*: Shariff, Sheffet, *Differentially Private Contextual Linear Bandits*, 2018, Algorithm 1 with
the Gaussian tree: `sigma² = 16m·4·ln(4/delta)²/epsilon²` for every node, `m = ceil(log2 T) + 1` nodes deep, symmetric
noise `(Z + Zᵀ)/sqrt(2)`, a shift of twice `Y = sqrt(2m)·sigma·(4·sqrt(d) + 2·ln(2T/.01))`, rewards as they are, and
the width of its Proposition 4, `sqrt(2·ln(2/.01) + d·ln(3 + t/(dY))) + sqrt(3Y) + sigma·sqrt(m/Y)·(sqrt(d) +
sqrt(2·ln(2T/.01)))`. It gets the noise of as many nodes as a sum has, which is less than is printed. *Exact tree* and
*BLT, every round*: `taciturn.LinearBandit` by `BinaryTree()` and `BLT()`, a model after every round; *BLT,
geometric(1.1)*: fewer models, from the first round on. *PrivateLinUCB*, *PrivateThompson* and *PrivateLogisticBandit*:
as they are by default, whose settings were chosen on other seeds (100 and more). Methods with a model after every round
are simulated on noise that was drawn before (`simulate_every_round`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn import BLT, BinaryTree, LinearBandit, Privacy, every, geometric, linear_bandit
from taciturn.bandits import UCB, PrivateBandit, PrivateLinUCB, PrivateLogisticBandit, PrivateThompson, Thompson
from taciturn.bandits.environments import BernoulliSphere, Environment, FixedArms, LinearSphere, LogisticSphere
from taciturn.bandits.simulate import NotPrivate, RandomPlay, Regret, simulate, simulate_every_round
from taciturn.checks.streams import generator
from taciturn.errors import integer
from taciturn.kernel.arrays import Array
from taciturn.kernel.learners.linear_bandit import bandit_problem
from taciturn.reproduce.growth import mean_and_error, with_error
from taciturn.reproduce.plots import Curve, Panel, save_panels
from taciturn.reproduce.rows import Result, Row, Settings, by_method, over_seeds
from taciturn.reproduce.runner import Experiment

if TYPE_CHECKING:
    from rich.table import Table

PRINTED, TREE, EVERY = "Shariff–Sheffet 2018, as printed", "exact tree, every round", "BLT, every round"
GEOMETRIC, UCB_FRONT, THOMPSON = "BLT, geometric(1.1)", "PrivateLinUCB", "PrivateThompson"
LOGISTIC = "PrivateLogisticBandit"
WIDER, TWIN_WIDER = "PrivateLinUCB, width 1", "LinUCB of width 1, not private"
TWIN, TWIN_THOMPSON, RANDOM = "LinUCB, not private", "Thompson, not private", "random play"
EXACT = (TWIN, TWIN_WIDER, TWIN_THOMPSON, RANDOM)

ENVIRONMENTS: dict[str, Callable[[int, int], Environment]] = {
    "A": lambda d, seed: LinearSphere(10, d, seed),
    "B": lambda d, seed: BernoulliSphere(100, d, seed),
    "C": lambda d, seed: FixedArms(20, d, seed),
    "logistic": lambda d, seed: LogisticSphere(20, d, seed, SCALE),
}
SCALE = 1.0
"""Of the logistic environment: the largest odds are e to 1."""


@dataclass(frozen=True)
class Setting:
    """Everything that a run depends on; a method without privacy has no epsilon.

    >>> Setting("A", "random play", None, seed=1, horizon=100, dimension=5).delta
    1e-06
    """

    environment: str
    method: str
    epsilon: float | None
    seed: int
    horizon: int
    dimension: int
    delta: float = 1e-6


def _cases(quick: bool) -> list[tuple[str, int, int, Sequence[str], Sequence[tuple[float, float]]]]:
    """Environment, dimension, horizon, methods and budgets."""
    usual = [(0.1, 1e-6), (1.0, 1e-6), (10.0, 1e-6)]
    all_methods = (PRINTED, TREE, EVERY, GEOMETRIC, UCB_FRONT, TWIN, RANDOM)
    if quick:
        return [("A", 5, 2_000, all_methods, [(1.0, 1e-6)])]
    two = (UCB_FRONT, WIDER, THOMPSON, TWIN, TWIN_WIDER, TWIN_THOMPSON, RANDOM)
    budgets = [(1.0, 1e-6), (1.0, 0.1), (0.2, 0.1)]
    return [
        ("A", 5, 100_000, all_methods, usual),
        ("A", 10, 100_000, all_methods, usual),
        ("A", 10, 1_000_000, (UCB_FRONT, TWIN), usual),
        ("B", 5, 20_000, (PRINTED, UCB_FRONT, TWIN, RANDOM), budgets),
        ("C", 5, 10_000, two, [(1.0, 1e-6)]),
        ("C", 5, 100_000, two, [(1.0, 1e-6)]),
        ("logistic", 5, 20_000, (LOGISTIC, UCB_FRONT, TWIN, RANDOM), [(1.0, 1e-6), (4.0, 1e-6)]),
    ]


def plan(quick: bool = False, seeds: int | None = None) -> list[Settings]:
    """All runs."""
    seeds = integer("seeds", (2 if quick else 5) if seeds is None else seeds)
    return [
        asdict(Setting(name, method, epsilon, seed, horizon, d, delta))
        for name, d, horizon, methods, budgets in _cases(quick)
        for method in methods
        for epsilon, delta in ([(None, 1e-6)] if method in EXACT else budgets)
        for seed in range(1, seeds + 1)
    ]


def run(settings: Settings) -> Result:
    """Play one method in one environment.

    >>> run(asdict(Setting("A", "PrivateLinUCB", 1.0, seed=1, horizon=500, dimension=5)))["regret"] > 0.0
    True
    """
    s = Setting(**settings)
    environment = ENVIRONMENTS[s.environment](s.dimension, s.seed)
    regret = _play(s, environment)
    return {"regret": regret.total, "at_tenth": regret.at(s.horizon // 10)}


def _play(s: Setting, environment: Environment) -> Regret:
    T, d, low, high = s.horizon, s.dimension, environment.low, environment.high
    if s.epsilon is None:
        learner = LinearBandit(bandit_problem(d), low=low, high=high)
        players: dict[str, Any] = {
            TWIN: lambda: NotPrivate(learner, UCB(), T, seed=s.seed),
            TWIN_WIDER: lambda: NotPrivate(learner, UCB(1.0), T, seed=s.seed),
            TWIN_THOMPSON: lambda: NotPrivate(learner, Thompson(samples=0), T, seed=s.seed),
            RANDOM: lambda: RandomPlay(environment.arms, s.seed),
        }
        return simulate(players[s.method](), environment, T)
    privacy = Privacy(s.epsilon, s.delta)
    ranges: dict[str, Any] = {"low": low, "high": high, "seed": s.seed}
    if s.method == PRINTED:
        return simulate_every_round(environment, T, *printed_noise(privacy, T, d, s.seed), ridge=0.0, centred=False)
    if s.method in (TREE, EVERY):
        strategy = BinaryTree() if s.method == TREE else BLT()
        private = linear_bandit(d, privacy, T, strategy=strategy, schedule=every(1), seed=s.seed)
        _, releases = private.run(private.start(), np.zeros((T, d)), np.zeros(T))
        learner = private.learner  # type: ignore[assignment]
        return simulate_every_round(
            environment, T, releases.noisy, learner.shift * releases.noise_sd * math.sqrt(2 * d)
        )
    if s.method == GEOMETRIC:
        private = linear_bandit(d, privacy, T, schedule=geometric(1.1), **ranges)
        return simulate(PrivateBandit(private, UCB(), environment.arms), environment, T)
    if s.method == WIDER:
        ranges |= {"width": 1.0}
    front: Any = {
        UCB_FRONT: PrivateLinUCB,
        WIDER: PrivateLinUCB,
        THOMPSON: PrivateThompson,
        LOGISTIC: PrivateLogisticBandit,
    }[s.method]
    return simulate(front(environment.arms, d, s.epsilon, s.delta, T, **ranges), environment, T)


def printed_noise(privacy: Privacy, horizon: int, d: int, seed: int) -> tuple[Array, Array, Array]:
    """Noise in the sums after each round, shifts of the matrix, and widths, as Shariff and Sheffet print them.

    >>> noise, shifts, widths = printed_noise(Privacy(1.0, 1e-6), 100, d=2, seed=1)
    >>> noise.shape, float(shifts[0].round(-3))
    ((100, 5), 70000.0)
    """
    m = math.ceil(math.log2(horizon)) + 1
    sigma = math.sqrt(16.0 * m * 4.0) * math.log(4.0 / privacy.delta) / privacy.epsilon
    bound = math.sqrt(2.0 * m) * sigma * (4.0 * math.sqrt(d) + 2.0 * math.log(2.0 * horizon / 0.01))
    rng, size = generator(seed), d * (d + 1) // 2 + d
    # svec of (Z + Zᵀ)/sqrt(2), whose entries have variance 2·sigma² on the diagonal and sigma² off it: all the same;
    # the vector is a column of the same matrix of d + 1 rows
    scale = np.concatenate([np.full(size - d, math.sqrt(2.0) * sigma), np.full(d, sigma)])
    noise = np.empty((horizon, size))
    nodes = np.zeros((horizon.bit_length(), size))  # of the levels of the tree, those that make up the sum
    for t in range(1, horizon + 1):
        level = (t & -t).bit_length() - 1
        nodes[:level] = 0.0
        nodes[level] = rng.normal(size=size) * scale
        noise[t - 1] = nodes.sum(axis=0)
    after = np.arange(1.0, horizon + 1.0)
    tail = math.sqrt(d) + math.sqrt(2.0 * math.log(2.0 * horizon / 0.01))
    widths = np.sqrt(2.0 * math.log(2.0 / 0.01) + d * np.log(3.0 + after / (d * bound)))
    widths += math.sqrt(3.0 * bound) + sigma * math.sqrt(m / bound) * tail
    return noise, np.full(horizon, 2.0 * bound), widths


def table(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each environment, horizon, budget and method: means over seeds."""
    rows: list[Row] = []
    for settings, group in over_seeds(plan, results):
        mean, error = mean_and_error([result["regret"] for result in group])
        tenth = float(np.mean([result["at_tenth"] for result in group]))
        row: Row = {**settings, "regret": mean, "standard_error": error, "at_tenth": tenth, "seeds": len(group)}
        rows.append(row)
    return rows


def _problem(row: Row) -> tuple[str, int, int]:
    return row["environment"], row["dimension"], row["horizon"]


def show(rows: Sequence[Row]) -> list[Table | str]:
    """A table for each environment and horizon: a row for each method, a column for each budget."""
    return [
        *(_table(list(group)) for _, group in groupby(rows, key=_problem)),
        "Regret, the mean over seeds with its standard error. Results are seeded simulations: not private. A delta of "
        "0.1 is no guarantee: it is for comparison with the literature.",
    ]


def _table(rows: Sequence[Row]) -> Table:
    from rich.table import Table

    first = rows[0]
    budgets = list(dict.fromkeys((row["epsilon"], row["delta"]) for row in rows if row["epsilon"] is not None))
    title = f"{first['environment']}: d = {first['dimension']}, T = {first['horizon']:,}, seeds: {first['seeds']}"
    made = Table(title=title, title_justify="left")
    made.add_column("method", no_wrap=True)
    for epsilon, delta in budgets:
        made.add_column(f"({epsilon:g}, {delta:g})", justify="right", no_wrap=True)
    for method, group in by_method(rows).items():
        found = {
            (row["epsilon"], row["delta"]): with_error(row["regret"], row["standard_error"], ",.0f") for row in group
        }
        exact = found.get((None, 1e-6))
        made.add_row(method, *(exact or found.get(budget, "") for budget in budgets))
    return made


def draw(rows: Sequence[Row], path: Path) -> None:
    """Regret against epsilon in environment A, a panel for each dimension, a curve for each method."""
    panels = []
    for (name, d, T), group in groupby(rows, key=_problem):
        points = [row for row in group if row["delta"] == 1e-6]
        if name != "A" or not any(row["method"] == PRINTED for row in points):
            continue
        curves = {method: _curve(each) for method, each in by_method(points).items()}
        panels.append(Panel(f"A, d = {d}, T = {T:,}", "epsilon", "regret", curves))
    save_panels([panels], "Private linear contextual bandits, delta = 1e-06", path)


def _curve(rows: Sequence[Row]) -> Curve:
    if rows[0]["epsilon"] is None:
        return Curve((), [rows[0]["regret"]], line=":")
    return Curve([row["epsilon"] for row in rows], [row["regret"] for row in rows])


EXPERIMENT = Experiment(
    "bandits",
    plan,
    run,
    table,
    show,
    draw,
    title="Regret of private contextual bandits",
    caption=(
        "Regret against epsilon in environment A, the mean over seeds; lower is better. Exact accounting, noise by BLT "
        "in the place of a tree, and fewer models, at public rounds, each gain a factor over the algorithm as it was "
        "printed in 2018, under the same guarantee: joint differential privacy."
    ),
    paper=(
        "The paper's motivating example is a choice of advertisements, and bandits are on its list of open questions; "
        "it has no algorithm or figure for them. As printed means Shariff and Sheffet, 2018."
    ),
)
