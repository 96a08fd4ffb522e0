"""Instances that tests share: losses, sets, learners, a user's own loss, set and vector loss; and the exact delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import mpmath
import numpy as np

from taciturn import (
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    Absolute,
    Box,
    ClassSums,
    ConvexSet,
    FadingIGD,
    HalfSpace,
    Hinge,
    Huber,
    Index,
    InvalidInput,
    L1Ball,
    L2Ball,
    Learner,
    Linear,
    Logistic,
    MultiHinge,
    NonNegative,
    OneHot,
    Privacy,
    Problem,
    Quantile,
    ScalarLoss,
    Simplex,
    Softmax,
    Square,
    Squared,
    Unprovable,
    Unverified,
    Vector,
    WholeSpace,
    averaged,
    experts,
    grid,
    private_sum,
)
from taciturn.kernel.learners.bin_counts import BinCounts
from taciturn.kernel.learners.contributions import Contributions, Form, wired
from taciturn.kernel.learners.linear_bandit import LinearBandit, bandit_problem
from taciturn.kernel.learners.second_moment import SecondMoment
from taciturn.kernel.problem.features import Bins
from taciturn.methods.weighted import Weighted, WeightedScores


class LogCosh(ScalarLoss):
    """`ln cosh(u - y)`, written as a user would: only what must be written."""

    curvature: ClassVar[float] = 1.0

    def value(self, u, y):
        return np.logaddexp(u - y, y - u) - math.log(2.0)

    def slope(self, u, y):
        return np.tanh(u - y)

    def slope_bound(self, reach, label_bound):
        return 1.0


@dataclass(frozen=True)
class Diagonal:
    """`{s·(1, …, 1)/sqrt(d) : |s| ≤ length}`, written as a user would: five members, nothing inherited."""

    length: float

    def project(self, x):
        along = float(np.sum(x)) / math.sqrt(len(x))
        return np.full(len(x), min(max(along, -self.length), self.length) / math.sqrt(len(x)))

    def contains(self, x):
        return bool(np.ptp(x) <= 1e-9 and np.linalg.norm(x) <= self.length * (1.0 + 1e-9))

    def diameter(self, dimension):
        return 2.0 * self.length

    def radius_in(self, dimension):
        return self.length

    def check_dimension(self, dimension):
        if dimension > 1000:
            raise InvalidInput(f"a diagonal has at most 1000 dimensions, got {dimension}.")


class Distance:
    """`½‖x - y·v‖²`, a user's loss that is not a function of `v·x` alone."""

    labels: ClassVar[str] = "real"

    def value(self, x, v, y):
        return 0.5 * float((x - y * v) @ (x - y * v))

    def gradient(self, x, v, y):
        return x - y * v

    def lipschitz(self, feature_bound, radius, label_bound):
        return (radius + feature_bound * label_bound) * (1.0 + 1e-9)

    def smoothness(self, feature_bound):
        return 1.0

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return 2.0 * feature_bound * label_bound * (1.0 + 1e-9)


@dataclass(frozen=True)
class OwnSums:
    """Sums of a contribution in any form, a user's learner: of rows, of counts, or of products of rows and labels."""

    problem: Problem
    form: Form

    def contribution(self, row, label, released):
        if isinstance(self.form, Index):
            return int(np.argmax(np.abs(row))) % self.form.size
        return np.resize([*(label * row), label, *released], self.form.size)

    def decide(self, t, noisy, noise_sd):
        return self.problem.domain.project(np.resize(noisy, self.problem.size) / t)


def believed(learner):
    """A learner of a test's own, whose certificate nobody has proven, as `Private` takes it; others as they are."""
    try:
        return wired(learner)
    except Unprovable:
        return Unverified(learner, by="a test")


LOSSES: dict[str, Callable[[], ScalarLoss]] = {
    "absolute": Absolute,
    "hinge": Hinge,
    "huber": lambda: Huber(0.7),
    "huber wide": lambda: Huber(50.0),
    "linear": Linear,
    "log cosh": LogCosh,
    "logistic": Logistic,
    "quantile .5": lambda: Quantile(0.5),
    "quantile .9": lambda: Quantile(0.9),
    "squared": Squared,
}
"""Every scalar loss of the package, and a user's own."""

SETS: dict[str, Callable[[int], ConvexSet]] = {
    "box": lambda d: Box(-0.5, 2.0),
    "diagonal": lambda d: Diagonal(1.5),
    "half-space": lambda d: HalfSpace(tuple(1.0 + i % 3 for i in range(d)), 0.25),
    "half-space without 0": lambda d: HalfSpace(tuple((-1.0) ** i for i in range(d)), -2.0),
    "l1 ball": lambda d: L1Ball(1.3),
    "l2 ball": lambda d: L2Ball(0.8),
    "simplex": lambda d: Simplex(2.0),
    "unit box": lambda d: Box(0.0, 1.0),
    "whole space": lambda d: WholeSpace(),
}
"""Every convex set of the package, and a user's own, in a given dimension."""


DISC, RIDGED = L2Ball(1.0), Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1)
CLASSES = Problem(Softmax(3), L2Ball(2.0), 2, intercept=0.5, ridge=0.1)
BINNED = Problem(
    Squared(),
    WholeSpace(),
    2,
    feature_bound=20.0,
    label_bound=5.0,
    intercept=1.0,
    features=Bins(np.array([[-1.0, -0.3, 0.2, 0.8], [-0.5, 0.0, 0.1, 0.2]])),
)
LEARNERS: dict[str, Learner] = {
    "igd": IGD(RIDGED),
    "igd, kinked": IGD(Problem(Hinge(), DISC, 2, intercept=1.0, ridge=0.1)),
    "igd, absolute": IGD(Problem(Absolute(), DISC, 2, label_bound=1.0, ridge=0.1, neighbours="zero-out")),
    "igd, vector loss": IGD(Problem(Distance(), Simplex(), 2, label_bound=1.0, ridge=0.1)),
    "giga": GIGA(RIDGED),
    "giga, printed": GIGA(Problem(Linear(), DISC, 2, label_bound=1.0, ridge=1.0), "printed"),
    "fading igd": FadingIGD(Problem(Hinge(), DISC, 2)),
    "mean of igd": averaged(IGD(RIDGED), "mean", horizon=20),
    "suffix of giga": averaged(GIGA(RIDGED), "suffix", horizon=6),
    "mean of ftl": averaged(FTL(RIDGED), "mean", horizon=20),
    "ftl by sums": FTL(Problem(Squared(), DISC, 2, label_bound=1.0, intercept=0.5, ridge=0.1), extra_ridge=0.5),
    "ftl by examples": FTL(RIDGED),
    "ftl, kinked": FTL(Problem(Hinge(), DISC, 2), extra_ridge=3.0),
    "ewoo": EWOO(Problem(Hinge(), DISC, 2), grid(DISC, 2, per_axis=4)),
    "ewoo, vector loss": EWOO(Problem(Distance(), DISC, 2, label_bound=1.0, ridge=0.3), grid(DISC, 2, per_axis=3)),
    "ewoo, classes": EWOO(Problem(Softmax(3), DISC, 1), grid(DISC, 3, per_axis=3)),
    "ewoo, multi hinge": EWOO(Problem(MultiHinge(3), DISC, 1), grid(DISC, 3, per_axis=3)),
    "experts": experts(3, neighbours="zero-out"),
    "igd, weighted": IGD(Problem(Weighted(Hinge(), positive=0.2), DISC, 2, ridge=0.1)),
    "giga, weighted": GIGA(Problem(Weighted(Logistic(), negative=0.2), DISC, 2, ridge=0.1)),
    "ftrl, weighted": FTRL(Problem(Weighted(Hinge(), negative=0.2), DISC, 2, intercept=1.0)),
    "ftrl, weighted label": FTRL(Problem(Weighted(Logistic(), negative=0.9), DISC, 2, neighbours="label")),
    "ftrl, weighted classes": FTRL(Problem(WeightedScores(Softmax(3), (1.0, 0.5, 0.1)), DISC, 2)),
    "igd, classes": IGD(CLASSES),
    "giga, classes": GIGA(CLASSES),
    "giga, one hot": GIGA(Problem(OneHot(4), DISC, 2, ridge=0.1)),
    "ftl, classes": FTL(CLASSES),
    "ftrl": FTRL(Problem(Hinge(), DISC, 2, intercept=1.0)),
    "ftrl, classes": FTRL(CLASSES),
    "ftrl, curved": FTRL(Problem(Hinge(), DISC, 2, intercept=1.0), curvature=0.7),
    "ftrl, curved classes": FTRL(CLASSES, curvature=0.3),
    "ftrl, curved and zeroed out": FTRL(Problem(Logistic(), DISC, 2, neighbours="zero-out"), curvature=5.0),
    "ftrl, whole space": FTRL(Problem(Hinge(), WholeSpace(), 2), scale=2.0),
    "ftrl, one hot": FTRL(Problem(OneHot(3), DISC, 2, neighbours="zero-out")),
    "ftrl, multi hinge": FTRL(Problem(MultiHinge(3), DISC, 2, intercept=0.5)),
    "ftrl, multi hinge zeroed out": FTRL(Problem(MultiHinge(4), DISC, 2, ridge=0.1, neighbours="zero-out")),
    "qftl": QFTL(Problem(Squared(), DISC, 2, label_bound=1.0, ridge=0.1)),
    "qftl, one hot": QFTL(Problem(OneHot(3), DISC, 2, intercept=1.0)),
    "qftl, label": QFTL(Problem(Squared(), DISC, 2, label_bound=2.0, intercept=0.5, neighbours="label")),
    "qftl, one hot label": QFTL(Problem(OneHot(3), DISC, 2, neighbours="label")),
    "ftrl, label": FTRL(Problem(Logistic(), DISC, 2, intercept=1.0, neighbours="label")),
    "giga, one hot label": GIGA(Problem(OneHot(3), DISC, 2, ridge=0.1, neighbours="label")),
    "igd, quantile label": IGD(Problem(Quantile(0.9), DISC, 2, label_bound=1.0, ridge=0.1, neighbours="label")),
    "linear bandit": LinearBandit(bandit_problem(2)),
    "linear bandit, heavy rewards": LinearBandit(bandit_problem(2, intercept=0.5), low=0.0, weight=2.0, ridge=0.1),
    "linear bandit, three arms": LinearBandit(bandit_problem(2, arms=3), arms=3),
    "linear bandit, zero-out": LinearBandit(bandit_problem(2, arms=2, neighbours="zero-out"), arms=2, weight=0.5),
    "class sums": ClassSums(Problem(Hinge(), WholeSpace(), 2, intercept=0.25)),
    "class sums, several": ClassSums(Problem(MultiHinge(3), DISC, 3)),
    "class sums, label": ClassSums(Problem(MultiHinge(3), DISC, 3, neighbours="label")),
    "class sums, zero-out": ClassSums(Problem(Softmax(3), WholeSpace(), 2, 1.5, intercept=1.0, neighbours="zero-out")),
    "bin counts": BinCounts(BINNED, (-1.0, 0.0, 0.5, 1.0)),
    "bin counts, zero-out": BinCounts(replace(BINNED, loss=Logistic(), neighbours="zero-out"), outward=True),
    "second moment": SecondMoment(Problem(Logistic(), DISC, 2, intercept=0.5)),
    "second moment, zero-out": SecondMoment(Problem(Logistic(), DISC, 2, neighbours="zero-out")),
    "total": private_sum(3, 1.5, Privacy(1.0, 1e-6), 12).learner,
    "total, zero-out": private_sum(3, 1.5, Privacy(1.0, 1e-6), 12, neighbours="zero-out").learner,
    "own, vector": Contributions(OwnSums(RIDGED, Vector(3, 1.5))),
    "own, non-negative labels": Contributions(OwnSums(replace(RIDGED, neighbours="label"), NonNegative(4, 0.8))),
    "own, index zeroed out": Contributions(OwnSums(replace(RIDGED, neighbours="zero-out"), Index(2))),
    "own, square": Contributions(OwnSums(RIDGED, Square(2, 0.7))),
    "giga, vector loss zeroed out": GIGA(
        Problem(Distance(), DISC, 2, label_bound=1.0, ridge=0.5, neighbours="zero-out")
    ),
}
"""Every learner of the package, on one problem or several."""


def labels_of(loss: ScalarLoss, label_bound: float, rng: np.random.Generator, count: int) -> np.ndarray:
    """Legal labels, the extreme ones among them."""
    if loss.labels == "sign":
        return rng.choice([-1.0, 1.0], count)
    return np.where(
        rng.random(count) < 0.5,
        label_bound * rng.choice([-1.0, 1.0], count),
        rng.uniform(-label_bound, label_bound, count),
    )


def true_delta(epsilon: float, mu: mpmath.mpf) -> mpmath.mpf:
    """The delta of mu-GDP at `epsilon`, from its definition, to 60 digits after what the subtraction cancels."""
    with mpmath.workdps(80 + max(0, -int(mpmath.log10(mu)))):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
