"""How much noise is on what is published, round by round: computed from settings, without running anything."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from docs_build.chart import Axis, Curve, Style, chart
from docs_build.pictures import Picture
from taciturn import (
    BLT,
    BinaryTree,
    L2Ball,
    Logistic,
    Privacy,
    Private,
    Problem,
    SquareRoot,
    geometric,
    pigd,
    private_sum,
)
from taciturn.calibration.mechanisms import PrefixSum

BUDGET = Privacy(epsilon=1.0, delta=1e-6)
SUMS, ITERATES = 64, 100_000


def of_sums() -> list[Curve]:
    """For each strategy, the noise of each of 64 running sums."""
    planned: list[tuple[str, PrefixSum, str, Style]] = [
        ("binary tree", BinaryTree(refined=False), "b", "line"),
        ("binary tree, refined", BinaryTree(), "d", "dash-dot"),
        ("BLT, no horizon", BLT(buffers=8), "c", "dashed"),
        ("BLT", BLT(), "a", "long"),
        ("square root", SquareRoot(), "e", "dotted"),
    ]
    rounds, curves = range(1, SUMS + 1), []
    for name, strategy, colour, style in planned:
        horizon = None if "no horizon" in name else SUMS
        private = private_sum(1, 1.0, BUDGET, horizon, strategy=strategy)
        curves.append(Curve(name, rounds, _noise(private, rounds), colour, style))
    return curves


def sums() -> Picture:
    """Noise of each running sum, strategy by strategy."""
    curves = of_sums()
    largest = {curve.name: max(curve.y) for curve in curves}
    naive = 2.0 * math.sqrt(SUMS) / BUDGET.mu
    caption = (
        f"The noise of each of {SUMS} prefix sums of numbers up to 1, at (1, 1e-6). The tree's varies with "
        f"the number of 1-bits of t, and reaches {largest['binary tree']:.0f}; that of BLT grows slowly, to "
        f"{largest['BLT']:.1f}, and the square root's is below it. Independent noise on every sum would be "
        f"{naive:.0f}. Computed by noise_sd; nothing was simulated."
    )
    alt = "Noise against t: the tree zigzags, BLT and the square root grow slowly and lie far below it."
    x, y = Axis("examples seen, t", 0, SUMS), Axis("noise on a sum", 0, 10.0 * math.ceil(max(largest.values()) / 10.0))
    return Picture(chart(x, y, curves, alt), caption)


def of_iterates() -> list[Curve]:
    """For three schedules, the noise on an entry of each model of PIGD; last, the radius shared out to the entries."""
    problem = Problem(Logistic(), L2Ball(2.0), dimension=15, ridge=0.03)
    useful = problem.radius / math.sqrt(problem.size)
    few = pigd(problem, BUDGET, ITERATES, schedule=geometric(1.5, start=1_000))
    often, endless = pigd(problem, BUDGET, ITERATES), pigd(problem, BUDGET)
    rounds = [int(t) for t in np.unique(np.geomspace(1, ITERATES, 60).astype(int))]
    shown = [int(t) for t in few.timetable.rounds]
    return [
        Curve("every round, no horizon", rounds, _noise(endless, rounds), "c", "dashed"),
        Curve("every round", rounds, _noise(often, rounds), "b"),
        Curve(f"{len(shown)} releases", shown, _noise(few, range(1, len(shown) + 1)), "a", "dots"),
        Curve("as long as the radius", [1, ITERATES], [useful, useful], "e", "dotted"),
    ]


def iterates() -> Picture:
    """Noise of each model that PIGD publishes, schedule by schedule."""
    curves = of_iterates()
    _, often, few, _ = curves
    caption = (
        "The noise on an entry of each model that PIGD publishes (logistic loss, 15 features, ridge 0.03, radius 2), "
        f"at (1, 1e-6). One example moves later models less, so the noise falls. The last of {ITERATES:,} models has "
        f"{often.y[-1]:.2f}, the last of {len(few.y)} has {few.y[-1]:.3f}: publishing less often helps most. "
        "Above the dotted line the norm of the noise exceeds the radius of the set. Computed by noise_sd; nothing was "
        "simulated."
    )
    alt = "Noise against t on logarithmic axes: three falling curves, that of a few releases far below the others."
    x, y = Axis("examples seen, t", 1, ITERATES, log=True), Axis("noise on an entry of the model", 0.01, 1e4, log=True)
    return Picture(chart(x, y, curves, alt), caption)


def _noise(private: Private, releases: Iterable[int]) -> list[float]:
    return [private.calibrated.noise_sd(k) for k in releases]
