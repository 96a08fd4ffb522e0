"""Every problem a learner can be built on: losses, sets, relations, an intercept, and users' own vector losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from instances import LOSSES, SETS, Distance
from taciturn import FTL, GIGA, IGD, FadingIGD, L2Ball, OneHot, Problem, Softmax, Unprovable, WholeSpace
from taciturn.methods.averaged import Averaged

ROUNDED_UP = 1.0 + 1e-9


@dataclass(frozen=True)
class SoftmaxOfTwo:
    """Softmax of two classes on half the features: the point is a matrix of two rows, the label's sign a class."""

    labels: ClassVar[str] = "sign"

    def value(self, x, v, y):
        u = self._scores(x, v)
        return float(np.logaddexp(u[0], u[1]) - u[int(y > 0)])

    def gradient(self, x, v, y):
        u = self._scores(x, v)
        share = np.exp(u - np.logaddexp(u[0], u[1]))
        share[int(y > 0)] -= 1.0
        return np.outer(share, v[: len(v) // 2]).ravel()

    def _scores(self, x, v):
        return x.reshape(2, -1) @ v[: len(v) // 2]

    def lipschitz(self, feature_bound, radius, label_bound):
        return np.sqrt(2.0) * feature_bound * ROUNDED_UP

    def smoothness(self, feature_bound):
        return 0.5 * feature_bound**2

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return 2.0 * np.sqrt(2.0) * feature_bound * ROUNDED_UP


@dataclass(frozen=True)
class TwoOutputs:
    """`½‖W v - y·(1, -1)‖²` on half the features: a quadratic loss with two outputs."""

    labels: ClassVar[str] = "real"

    def value(self, x, v, y):
        return 0.5 * float(np.sum(self._residual(x, v, y) ** 2))

    def gradient(self, x, v, y):
        return np.outer(self._residual(x, v, y), v[: len(v) // 2]).ravel()

    def _residual(self, x, v, y):
        return x.reshape(2, -1) @ v[: len(v) // 2] - y * np.array([1.0, -1.0])

    def lipschitz(self, feature_bound, radius, label_bound):
        return feature_bound * (feature_bound * radius + np.sqrt(2.0) * label_bound) * ROUNDED_UP

    def smoothness(self, feature_bound):
        return feature_bound**2

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return 2.0 * self.lipschitz(feature_bound, radius, label_bound)


@dataclass(frozen=True)
class Beyond:
    """Examples agree inside the ball and differ beyond it: `push·x_1 + rho(y·x_2 - x_1 - 2)`, rho 0 below 0.

    On the unit ball `y·x_2 - x_1 - 2 < 0`, so no example differs from another there, whatever its label.
    """

    push: float = 6.0
    labels: ClassVar[str] = "sign"

    def value(self, x, v, y):
        return self.push * x[0] + 0.5 * max(0.0, y * x[1] - x[0] - 2.0) ** 2

    def gradient(self, x, v, y):
        out = np.zeros(len(x))
        excess = max(0.0, y * x[1] - x[0] - 2.0)
        out[:2] = self.push - excess, y * excess
        return out

    def lipschitz(self, feature_bound, radius, label_bound):
        return self.push * ROUNDED_UP

    def smoothness(self, feature_bound):
        return 2.0

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return 1e-6


VECTOR_LOSSES: dict[str, tuple[Callable[[], object], int]] = {
    "distance": (Distance, 2),
    "softmax": (SoftmaxOfTwo, 4),
    "two outputs": (TwoOutputs, 4),
}
"""Losses that are not functions of `v·x`, and the dimension to try them in."""

SCORES_LOSSES = {"classes": Softmax(3), "one hot": OneHot(3)}
"""Losses of several scores."""

LEARNERS: dict[str, Callable[[Problem], IGD | GIGA]] = {
    "igd": IGD,
    "giga": GIGA,
    "giga printed": lambda problem: GIGA(problem, "printed"),
    "fading igd": lambda problem: FadingIGD(replace(problem, ridge=0.0), strength=problem.ridge),
    "ftl": FTL,
    "regularised ftl": lambda problem: FTL(problem, extra_ridge=0.7),
    "ftl without ridge": lambda problem: FTL(replace(problem, ridge=0.0), extra_ridge=problem.ridge),
    "mean of ftl": lambda problem: Averaged(FTL(problem)),
    "mean of igd": lambda problem: Averaged(IGD(problem)),
    "suffix of igd": lambda problem: Averaged(IGD(problem), first=3),
}

VARIANTS = {
    "replace": {"neighbours": "replace"},
    "zero-out": {"neighbours": "zero-out"},
    "replace, intercept": {"neighbours": "replace", "intercept": 0.75},
}


def tight(learner: str, ridge: float) -> IGD | GIGA:
    """A learner on the problem where its certificate is reached: linear losses on a line, no set."""
    problem = Problem(LOSSES["linear"](), WholeSpace(), 1, label_bound=1.0, ridge=ridge)
    return LEARNERS[learner](problem)


def problems(ridge: float = 1.0) -> Iterator[tuple[str, Problem]]:
    """Name and problem, for every loss × set × variant; of vectors and scores on balls and, if bounded, everywhere."""
    for loss, make in LOSSES.items():
        for domain, form in SETS.items():
            for variant, settings in VARIANTS.items():
                size = 2 + ("intercept" in settings)
                yield (
                    f"{loss}, {domain}, {variant}",
                    Problem(make(), form(size), 2, label_bound=1.5, ridge=ridge, **settings),
                )
    for loss, (make, size) in VECTOR_LOSSES.items():
        for domain in (L2Ball(0.8), WholeSpace()):
            for variant in ("replace", "zero-out"):
                name = f"{loss}, {type(domain).__name__}, {variant}"
                yield name, Problem(make(), domain, size, label_bound=1.5, ridge=ridge, **VARIANTS[variant])
    for name, loss in SCORES_LOSSES.items():
        for domain in (L2Ball(0.8), WholeSpace()):
            for variant, settings in VARIANTS.items():
                yield f"{name}, {type(domain).__name__}, {variant}", Problem(loss, domain, 2, ridge=ridge, **settings)


@lru_cache
def buildable(ridge: float = 1.0) -> dict[str, IGD | GIGA]:
    """Every learner on every problem that it can certify."""
    built = {}
    for name, problem in problems(ridge):
        for learner, make in LEARNERS.items():
            try:
                made = make(problem)
            except Unprovable:
                continue
            if np.isfinite(made.certificate.at(1e4)):
                built[f"{learner}: {name}"] = made
    return built
