"""Average regret against epsilon: a small simulation, seeded, and not private."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from docs_build.chart import Axis, Curve, Style, chart
from docs_build.pictures import Picture
from taciturn import L2Ball, Privacy, Private, Problem, Squared, at, geometric, pftrl, pigd, pqftl
from taciturn.datasets import linear_regression
from taciturn.regret import best_in_hindsight, replay

EPSILONS, SEEDS, EXAMPLES = (0.01, 0.1, 1.0, 10.0), (1, 2, 3), 10_000
PROBLEM = Problem(Squared(), L2Ball(0.5), dimension=10, label_bound=1.0, ridge=1.0)

FEW = (500, 750, 1_125, 1_688, 2_532, 3_798, 5_697, 8_546, EXAMPLES)

Recipe = Callable[[Privacy, int], Private]

METHODS: dict[str, tuple[Recipe, str, Style]] = {
    "PIGD, every round": (lambda budget, seed: pigd(PROBLEM, budget, EXAMPLES, seed=seed), "b", "dashed"),
    f"PIGD, {len(FEW)} releases": (
        lambda budget, seed: pigd(PROBLEM, budget, EXAMPLES, schedule=at(FEW), seed=seed),
        "d",
        "dash-dot",
    ),
    "PQFTL, geometric(1.1)": (
        lambda budget, seed: pqftl(PROBLEM, budget, EXAMPLES, schedule=geometric(1.1), seed=seed),
        "a",
        "line",
    ),
    "private FTRL, geometric(1.1)": (
        lambda budget, seed: pftrl(PROBLEM, budget, EXAMPLES, schedule=geometric(1.1), seed=seed),
        "c",
        "long",
    ),
}


def regrets(recipe: Recipe, epsilons: tuple[float, ...] = EPSILONS, seeds: tuple[int, ...] = SEEDS) -> list[float]:
    """For each epsilon the median over seeds; a seed settles the stream and the noise."""
    found = np.empty((len(seeds), len(epsilons)))
    for i, seed in enumerate(seeds):
        stream = linear_regression(EXAMPLES, 10, seed=seed)
        best = best_in_hindsight(PROBLEM, stream.X, stream.y)
        for j, epsilon in enumerate(epsilons):
            private = recipe(Privacy(epsilon, 1e-6), seed)
            _, releases = private.run(private.start(), stream.X, stream.y)
            found[i, j] = replay(PROBLEM, releases, stream.X, stream.y).average_regret(best)
    return [float(value) for value in np.median(found, axis=0)]


def zero() -> float:
    """The average regret of always predicting 0, which needs no data."""
    stream = linear_regression(EXAMPLES, 10, seed=SEEDS[0])
    best = best_in_hindsight(PROBLEM, stream.X, stream.y)
    return float(replay(PROBLEM, [], stream.X, stream.y).average_regret(best))


def beats(curve: Curve, level: float) -> str:
    """The least epsilon from which on a curve lies below a level, in words.

    >>> beats(Curve("", (0.1, 1.0, 10.0), (5.0, 3.0, 1.0), "a"), 4.0)
    'from epsilon = 1 on'
    >>> beats(Curve("", (0.1, 1.0, 10.0), (5.0, 3.0, 4.5), "a"), 4.0)
    'at no epsilon up to 10'
    """
    above = [i for i, value in enumerate(curve.y) if value >= level]
    first = above[-1] + 1 if above else 0
    if first == len(curve.x):
        return f"at no epsilon up to {curve.x[-1]:g}"
    return f"from epsilon = {curve.x[first]:.1g} on"


def regret() -> Picture:
    """Four methods on the paper's synthetic regression, beside predicting 0."""
    curves = [Curve(name, EPSILONS, regrets(made), colour, style) for name, (made, colour, style) in METHODS.items()]
    nothing = zero()
    useful = "; ".join(f"{curve.name}, {beats(curve, nothing)}" for curve in curves)
    level = Curve("predicting 0", [EPSILONS[0], EPSILONS[-1]], [nothing, nothing], "e", "dotted")
    caption = (
        f"Average regret on the paper's synthetic regression, {EXAMPLES:,} examples of 10 features, delta = 1e-6: "
        f"medians of {len(SEEDS)} seeded runs, computed when this page was built. Below the dotted line a model is "
        f"better than predicting 0: {useful}. Regret is measured on exact examples, and is not private."
    )
    alt = "Average regret against epsilon on logarithmic axes: all methods fall; those on prefix sums are lowest."
    x, y = Axis("epsilon", EPSILONS[0], EPSILONS[-1], log=True), Axis("average regret", 1e-5, 1.0, log=True)
    return Picture(chart(x, y, [*curves, level], alt), caption)
