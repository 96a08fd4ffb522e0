"""Pairs of neighbouring streams, adversaries that choose the other examples, and the tight problem of each algorithm.

**Tight problems.** The tight problem of each algorithm is a pair of streams at the certified distance. It has linear
losses with opposite slopes, on a line and without an active constraint, for algorithms that release iterates; opposite
vectors for sums; for PQFTL the pair of `taciturn.accounting.errata.quadratic_pair`; two experts for
EWOO. The example that differs is the first for all but the printed GIGA, which forgets early ones. Under zero-out its
neighbour is a row of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from taciturn._util.arrays import Array
from taciturn.accounting.gdp import Privacy
from taciturn.algorithms.recipes import ewoo, pftrl, pgiga, pigd, pocp, pol, pqftl, private_sum
from taciturn.core.private import Private
from taciturn.core.protocols import Calibration
from taciturn.errors import InvalidInput, float_or_nan, one_of
from taciturn.learners.ewoo import experts
from taciturn.learners.ftl import FTL
from taciturn.learners.qftl import QFTL
from taciturn.mechanisms.tree import BinaryTree
from taciturn.problem.losses import Linear, Squared
from taciturn.problem.problem import Problem
from taciturn.problem.sets import L2Ball, WholeSpace

Example = tuple[Any, float]
"""A row of features and a label; the label of examples without labels is 0."""

Adversary = Callable[[Array, int], Example]
"""Chooses example `t`, counted from 0, once it has seen the point released last."""


@dataclass(frozen=True)
class Pair:
    """A stream, and its neighbour: example number `at`, counted from 0, is `other` instead.

    Parameters
    ----------
    X, y : array-like
        The stream, as long as the horizon; without labels `y` is None.
    at : int
        Which example differs.
    other : tuple
        Its row and label in the neighbour. To audit "zero-out", a row of zeros.

    Examples
    --------
    >>> pair = Pair([[1.0], [1.0], [1.0]], [1.0, -1.0, 1.0], at=0, other=([1.0], -1.0))
    >>> pair.world(1)[1]
    array([-1., -1.,  1.])
    """

    X: Any
    y: Any
    at: int
    other: Example

    def __post_init__(self) -> None:
        at = float_or_nan(self.at)
        if not (0.0 <= at < len(self.X) and at.is_integer()):
            raise InvalidInput(f"at must be the number of an example, 0 to {len(self.X) - 1}, got {self.at!r}.")
        object.__setattr__(self, "at", int(at))
        if not isinstance(self.other, tuple | list) or len(self.other) != 2:
            raise InvalidInput(f"other must be a row and a label, ([1.0, 0.0], -1.0), got {self.other!r}.")
        shape, row = np.shape(self.X)[1:], np.shape(self.other[0])
        if row != shape:
            raise InvalidInput(
                f"other must have a row like those of X, of shape {shape}, and has one of shape {row}. Give one row "
                "and one label, ([1.0, 0.0], -1.0); without labels the label is 0."
            )
        if np.shape(self.other[1]) != ():
            raise InvalidInput(f"the label of other must be a number, got {self.other[1]!r}. Without labels it is 0.")

    def world(self, world: int) -> tuple[Array, Array | None]:
        """The stream (0), or its neighbour (1)."""
        X = np.array(self.X, dtype=np.float64)
        y = None if self.y is None else np.array(self.y, dtype=np.float64)
        if world:
            X[self.at] = self.other[0]
            if y is not None:
                y[self.at] = self.other[1]
        return X, y

    def check(self, private: Private) -> None:
        """Reject two worlds that are equal after clipping."""
        (V, y), (W, z) = (self.clipped(private, world) for world in (0, 1))
        if np.array_equal(V, W) and np.array_equal(y, z):
            raise InvalidInput(
                f"both worlds are the same: example {self.at} and other are equal after clipping to the problem's "
                "bounds. Give another row or label."
            )

    def clipped(self, private: Private, world: int) -> tuple[Array, Array]:
        """The clipped stream of a world; rejected if its length is not the horizon."""
        horizon = private.timetable.horizon
        if horizon != len(self.X):
            raise InvalidInput(
                f"an audit needs complete streams: this one has {len(self.X)} examples, and the horizon is {horizon}. "
                "State horizon=, and give as many examples."
            )
        return private.problem.clip(*self.world(world))


Algorithm = Literal["pigd", "pgiga", "pocp-ftl", "pqftl", "pftrl", "private_sum", "pol", "ewoo"]
Neighbours = Literal["replace", "zero-out"]
Place = Literal["first", "middle", "last"]


def tight_private(
    algorithm: Algorithm,
    privacy: Privacy,
    rounds: int,
    *,
    ridge: float = 0.1,
    calibration: Calibration = "exact",
    neighbours: Neighbours = "replace",
) -> Private:
    """The algorithm on its tight problem, broken calibrations included.

    >>> tight_private("pigd", Privacy(1.0, 1e-6), 200).learner.certificate
    l2/tail, 20/(t+1)
    """
    one_of("algorithm", algorithm, get_args(Algorithm))
    if calibration != "exact" and algorithm in ("pftrl", "ewoo"):
        raise InvalidInput(f"the paper states no constants for {algorithm}. Use calibration='exact'.")
    paper: dict[str, Any] = {"calibration": calibration, "allow_broken": True}
    line = Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=ridge, neighbours=neighbours)
    ball = Problem(Linear(), L2Ball(1.0), 1, label_bound=1.0, ridge=ridge, neighbours=neighbours)
    plane = Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0, ridge=ridge, neighbours=neighbours)
    sums = paper if calibration == "exact" else paper | {"strategy": BinaryTree(refined=False)}
    make: dict[str, Callable[[], Private]] = {
        "pigd": lambda: pigd(line, privacy, rounds, **paper),
        "pgiga": lambda: pgiga(line, privacy, rounds, **paper),
        "pocp-ftl": lambda: pocp(FTL(line), privacy, rounds, **paper),
        "pol": lambda: pol(line, privacy, rounds, **paper),
        "pqftl": lambda: pqftl(plane, privacy, rounds, weight=1.0, **sums),
        "pftrl": lambda: pftrl(ball, privacy, rounds),
        "private_sum": lambda: private_sum(1, 1.0, privacy, rounds, neighbours=neighbours, **sums),
        "ewoo": lambda: ewoo(experts(2, neighbours=neighbours), privacy, rounds),
    }
    return make[algorithm]()


def tight_pair(private: Private, place: Place = "first") -> Pair:
    """Its two streams, which differ in the first example that counts, in one of the middle, or in the last.

    >>> pair = tight_pair(tight_private("private_sum", Privacy(1.0, 1e-6), 3), "last")
    >>> pair.world(0)[0].T, pair.world(1)[0].T
    (array([[ 1., -1.,  1.]]), array([[ 1., -1., -1.]]))
    """
    horizon = private.timetable.horizon
    assert horizon is not None
    first = min(getattr(private.learner, "first_move", 1), horizon) - 1
    at = {"first": first, "middle": max(first, horizon // 2), "last": horizon - 1}[place]
    one, other = _worst(private)
    signs = np.where(np.arange(horizon) % 2 == 0, 1.0, -1.0)
    X, y = _others(private, signs)
    X[at], y[at] = one
    labels = None if private.problem.loss.labels == "none" else y
    zero = np.zeros(private.problem.dimension), 0.0
    return Pair(X, labels, at, other if private.problem.neighbours == "replace" else zero)


def adaptive_adversary(private: Private) -> Adversary:
    """An adversary that chooses examples of maximal norm against the point released last.

    >>> adaptive_adversary(tight_private("pigd", Privacy(1.0, 1e-6), 3))(np.array([-0.5]), 1)
    (array([1.]), -1.0)
    """
    learner, dimension = private.learner, private.problem.dimension

    def chosen(point: Array, t: int) -> Example:
        against = float(np.sign(point[0])) or 1.0
        if isinstance(learner, QFTL):
            return np.array([math.cos(point[0]), math.sin(point[0])]), -against
        if learner.certificate.metric == "range":
            return point, 0.0
        if private.problem.loss.labels == "none":
            return -against * np.eye(dimension)[0], 0.0
        return np.eye(dimension)[0], against

    return chosen


def _worst(private: Private) -> tuple[Example, Example]:
    """The two examples with the largest distance."""
    learner = private.learner
    if private.learner.certificate.metric == "range":
        return (np.array([0.0, 1.0]), 0.0), (np.array([1.0, 0.0]), 0.0)
    if isinstance(learner, QFTL):
        assert learner.weight is not None
        c = min(1.0, learner.weight**2 / 2.0)
        return (np.array([1.0, 0.0]), 1.0), (np.array([c, math.sqrt(1.0 - c * c)]), -1.0)
    if private.problem.loss.labels == "none":
        return (np.array([1.0]), 0.0), (np.array([-1.0]), 0.0)
    return (np.array([1.0]), 1.0), (np.array([1.0]), -1.0)


def _others(private: Private, signs: Array) -> tuple[Array, Array]:
    """Examples of alternating sign; for experts, equal losses."""
    if private.learner.certificate.metric == "range":
        return np.full((len(signs), 2), 0.5), np.zeros(len(signs))
    if private.problem.loss.labels == "none":
        return signs[:, None].copy(), np.zeros(len(signs))
    return np.eye(private.problem.dimension)[[0] * len(signs)], signs
