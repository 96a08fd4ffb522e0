"""The search for two neighbouring streams that a learner tells apart by more than its certificate allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.checks.streams import Generator, examples, generator, labels_from, members
from taciturn.checks.suite import skip
from taciturn.core.protocols import Certificate, Learner
from taciturn.problem.problem import Problem
from taciturn.problem.vector_loss import VectorLoss

_LATEST = 2**16  # rounds up to which a certificate may be 0


@dataclass(frozen=True)
class Found:
    """The worst pair of a search: `share` of the certificate that it uses; more than 1 is a violation.

    Rows of `raw` are features and a label; the last one replaces row `i` of the others. `point` was released before.
    """

    share: float
    t: int
    i: int
    raw: Array
    point: Array


def moved(learner: Learner, raw: Array, i: int, point: Array | None = None) -> float:
    """How far apart the rows of two neighbouring runs end, in the certificate's metric."""
    return _moved(that_can_leave_out(learner), raw, i, point)


def _moved(learner: Learner, raw: Array, i: int, point: Array | None) -> float:
    problem = learner.problem
    V, y = problem.clip(raw[:, :-1], labels_from(problem, raw[:, -1]))
    point = problem.first_point if point is None else point
    before = learner.absorb(learner.start(), 0, V[:i], y[:i], point)
    one = learner.absorb(before, i, V[i : i + 1], y[i : i + 1], point)
    other = learner.absorb(before, i, *other_example(problem, V[-1:], y[-1:]), point)
    rows = [_last_row(learner, exact, i + 1, V[i + 1 : -1], y[i + 1 : -1], point) for exact in (one, other)]
    return distance(learner.certificate.metric, rows[0], rows[1])


def other_example(problem: Problem, v: Array, y: Array) -> tuple[Array, Array]:
    """What an example of the other stream is: this one, or one without influence."""
    if problem.neighbours == "replace":
        return v, y
    return np.zeros_like(v), np.full_like(y, np.nan) if isinstance(problem.loss, Muted) else y


def distance(metric: str, one: Array, other: Array) -> float:
    """How far apart two rows are: their distance, or the range of their difference."""
    return float(np.ptp(one - other) if metric == "range" else np.linalg.norm(one - other))


def _last_row(learner: Learner, exact: Arrays, t: int, V: Array, y: Array, point: Array) -> Array:
    return learner.statistic(learner.absorb(exact, t, V, y, point), t + len(y))[1]


@dataclass(frozen=True)
class Muted:
    """A loss that is 0 on examples whose label is not a number: what a data term becomes under zero-out."""

    loss: VectorLoss

    @property
    def labels(self) -> Literal["sign", "real", "class", "none"]:
        """The loss's."""
        return self.loss.labels

    def value(self, x: Array, v: Array, y: float) -> float:
        """0, or the loss's."""
        return 0.0 if np.isnan(y) else self.loss.value(x, v, y)

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """0, or the loss's."""
        return np.zeros_like(x) if np.isnan(y) else self.loss.gradient(x, v, y)

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The loss's."""
        return self.loss.lipschitz(feature_bound, radius, label_bound)

    def smoothness(self, feature_bound: float) -> float:
        """The loss's."""
        return self.loss.smoothness(feature_bound)

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The loss's."""
        return self.loss.gradient_diameter(feature_bound, radius, label_bound)


def that_can_leave_out(learner: Any) -> Any:
    """The learner or, where a data term is to be replaced by 0 and an example of zeros pulls, one on a muted loss."""
    problem: Problem = learner.problem
    if problem.neighbours == "replace" or _zeros_are_nothing(problem):
        return learner
    return rebuilt(learner, replace(problem, loss=Muted(problem.loss)))  # type: ignore[arg-type]


def rebuilt(learner: Any, problem: Problem) -> Any:
    """The learner, or the one that it wraps, on another problem."""
    if not is_dataclass(learner) or isinstance(learner, type):
        skip(f"{type(learner).__name__} is no dataclass, and so cannot be built on another problem")
    inside = getattr(learner, "learner", None)
    parts: dict[str, Any] = {"problem": problem} if inside is None else {"learner": rebuilt(inside, problem)}
    return replace(learner, **parts)


def _zeros_are_nothing(problem: Problem) -> bool:
    """Whether an example of zeros has no gradient, at any of some points and labels."""
    nothing, (_, labels) = np.zeros(problem.width), problem.clip(*examples(problem, 4))
    at = members(problem.domain, problem.size, 4)
    return not any(np.any(problem.data_gradient(x, nothing, float(y))) for x in at for y in labels)


def first_round(learner: Learner) -> int:
    """The first round after which an example can have moved the row."""
    for most in (1, 64, _LATEST):
        moves = learner.certificate.at(np.arange(1, most + 1)) > 0.0
        if moves.any():
            return int(np.argmax(moves)) + 1
    return _LATEST


def search(
    learner: Learner,
    seed: int,
    *,
    certificate: Certificate | None = None,
    longest: int = 5,
    tries: int = 12,
    evaluations: int = 36,
) -> Found:
    """Random starts, clever ones among them, then a coordinate search on every entry of both streams.

    >>> from taciturn import IGD, Hinge, L2Ball, Problem
    >>> 0.9 < search(IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5)), seed=1).share <= 1.0
    True
    """
    rng, first, tried = generator(seed), first_round(learner), that_can_leave_out(learner)
    bound = certificate or learner.certificate

    def share(raw: Array, i: int, point: Array) -> float:
        return _moved(tried, raw, i, point) / float(bound.at(len(raw) - 1))

    best = Found(-1.0, 0, 0, np.zeros((0, 0)), learner.problem.first_point)
    for attempt in range(tries):
        t = first + int(rng.integers(0, longest))
        i = int(rng.integers(first - 1, t)) if attempt % 2 else t - 1
        raw, point = _start(learner, t, i, rng)
        found = share(raw, i, point)
        best = Found(found, t, i, raw, point) if found > best.share else best
    return _climb(best, share, rng, evaluations)


def _start(learner: Learner, t: int, i: int, rng: Generator) -> tuple[Array, Array]:
    """A stream and a replacement: random, of any length or the longest; or a steady push and a pair mirrored in it.

    A learner that hands over sums may look at the point released before: one at the far end of that side, or any.
    """
    problem = learner.problem
    d, R, labels = problem.dimension, problem.feature_bound, problem.label_bound or 1.0
    raw = rng.normal(size=(t + 1, d + 1)) * R
    raw[:, -1] = rng.choice([-labels, labels], t + 1)
    if rng.random() < 0.3:
        raw[:, :-1] /= np.linalg.norm(raw[:, :-1], axis=1, keepdims=True) / R if rng.random() < 0.5 else 1.0
        return raw, _far_end(learner, np.zeros(d), rng)
    along = rng.normal(size=d)
    along /= np.linalg.norm(along)
    across = rng.normal(size=d)
    across -= (across @ along) * along
    across /= max(float(np.linalg.norm(across)), 1e-9)
    raw[:-1, :-1], raw[:-1, -1] = R * along, labels * rng.choice([-1.0, 1.0])
    p = rng.uniform(-1.0, 1.0)
    q = np.sqrt(1.0 - p * p)
    raw[i, :-1], raw[-1, :-1] = R * (p * along + q * across), R * (p * along - q * across)
    raw[[i, -1], -1] = labels * rng.choice([-1.0, 1.0]) * np.array([1.0, rng.choice([-1.0, 1.0, 1.0])])
    return raw, _far_end(learner, along, rng)


def _far_end(learner: Learner, along: Array, rng: Generator) -> Array:
    """A point at the border of the domain, to this side, the other, or any."""
    problem = learner.problem
    if learner.certificate.reach != "entry":
        return problem.first_point
    far = rng.normal(size=problem.size) if rng.random() < 0.3 or not along.any() else np.zeros(problem.size)
    far[: len(along)] += rng.choice([-1.0, 1.0]) * along
    return problem.domain.project(far * min(10.0 * problem.radius, 1e3))


def _climb(best: Found, share: Callable[[Array, int, Array], float], rng: Generator, evaluations: int) -> Found:
    """Coordinate search: the entries of the changed pair first, in steps that shrink when nothing helps."""
    step = 0.4
    while evaluations > 0:
        rows, columns = np.divmod(rng.permutation(best.raw.size), best.raw.shape[1])
        pair = np.isin(rows, (best.i, len(best.raw) - 1))
        order = np.argsort(~pair, kind="stable")
        improved = False
        for row, column in zip(rows[order], columns[order], strict=True):
            for sign in (1.0, -1.0):
                if evaluations <= 0:
                    return best
                evaluations -= 1
                raw = best.raw.copy()
                raw[row, column] += sign * step * (1.0 if column < raw.shape[1] - 1 else 3.0)
                found = share(raw, best.i, best.point)
                if found > best.share:
                    best, improved = replace(best, share=found, raw=raw), True
                    break
        step = step if improved else step / 3.0
    return best
