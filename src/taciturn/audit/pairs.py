"""Pairs of neighbouring streams, adversaries that choose the other examples, and the tight problem of each algorithm.

**Tight problems.** The tight problem of each algorithm is a pair of streams at the certified distance. It has linear
losses with opposite slopes, on a line and without an active constraint, for algorithms that release iterates; opposite
vectors for sums, and one vector in two classes for class sums; for PQFTL the pair of
`taciturn.kernel.learners.qftl.quadratic_pair`, and for a bandit, with models of two arms, the same pair in one arm;
two experts for EWOO. The example that differs is the first for all but the printed GIGA, which forgets early ones.
Under zero-out its neighbour is a row of zeros, and under "label" the same row with the opposite label.

**Users.** If the unit of privacy is a user, the two streams differ in all rows of one, each of them moved by the full
distance in the same direction. For prefix sums the pattern that
`taciturn.kernel.mechanisms.strategy.toeplitz_sensitivity` proves to be the worst is the one that counts if the user
owns every row from the first on: rows are admitted as soon as the bounds allow it. So the user of a tight pair owns the
rows of the worst pattern and, of the others, every second one after its beginning. Those exceed a bound and differ
between the two worlds as well, so that they are noticed if they have influence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.calibration.mechanisms import BinaryTree
from taciturn.checks.streams import generator
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, float_or_nan, one_of, value_or_type
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import EXAMPLE, Neighbours, Unit, User
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.problem.losses import Hinge, Linear, Squared
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import L2Ball, WholeSpace
from taciturn.kernel.replay import counted, counts
from taciturn.kernel.stream.participation import canonical, periods_of
from taciturn.kernel.stream.protocols import Calibration
from taciturn.kernel.stream.schedule import every
from taciturn.methods.ewoo import experts
from taciturn.methods.ftl import FTL
from taciturn.methods.giga import GIGA
from taciturn.methods.recipes import (
    class_sums,
    ewoo,
    linear_bandit,
    pftrl,
    pgiga,
    pigd,
    pocp,
    pol,
    pqftl,
    private_sum,
)

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
    at : int or sequence of int
        Which example differs; or which ones, if the unit of privacy is a user: all of one user's, those that exceed a
        bound included.
    other : tuple or list of tuples
        Its row and label in the neighbour, for all that differ, or a list with one for each. To audit "zero-out", a row
        of zeros; to audit "label", the same row.
    users : array-like, optional
        An id for each row, as in `Private.run`, if the unit of privacy is a user.

    Examples
    --------
    >>> pair = Pair([[1.0], [1.0], [1.0]], [1.0, -1.0, 1.0], at=0, other=([1.0], -1.0))
    >>> pair.world(1)[1]
    array([-1., -1.,  1.])
    >>> Pair([[1.0], [1.0], [1.0]], None, at=[0, 2], other=([0.0], 0.0), users=["anna", "bob", "anna"]).world(1)[0].T
    array([[0., 1., 0.]])
    """

    X: Any
    y: Any
    at: int | Sequence[int]
    other: Example | list[Example]
    users: Any = None

    def __post_init__(self) -> None:
        several = np.ndim(self.at) > 0
        places = [float_or_nan(each) for each in (self.at if several else [self.at])]  # type: ignore[union-attr]
        if not places or not all(0.0 <= place < len(self.X) and place.is_integer() for place in places):
            raise InvalidInput(
                f"at must be the number of an example, 0 to {len(self.X) - 1}, got {value_or_type(self.at)}."
            )
        object.__setattr__(self, "at", tuple(map(int, places)) if several else int(places[0]))
        others = self.other if several and _are_examples(self.other) else [self.other]
        if len(others) not in (1, len(places)):
            raise InvalidInput(f"other has {len(others)} examples for {len(places)} rows. Give one, or one for each.")
        for other in others:
            self._check_example(other)

    def _check_example(self, other: Any) -> None:
        if not isinstance(other, tuple | list) or len(other) != 2:
            raise InvalidInput(f"other must be a row and a label, ([1.0, 0.0], -1.0), got {value_or_type(other)}.")
        shape, row = np.shape(self.X)[1:], np.shape(other[0])
        if row != shape:
            raise InvalidInput(
                f"other must have a row like those of X, of shape {shape}, and has one of shape {row}. Give one row "
                "and one label, ([1.0, 0.0], -1.0); without labels the label is 0."
            )
        if np.shape(other[1]) != ():
            raise InvalidInput(
                f"the label of other must be a number, got {value_or_type(other[1])}. Without labels it is 0."
            )

    @cached_property
    def places(self) -> Integers:
        """The numbers of the examples that differ, counted from 0."""
        return np.atleast_1d(np.asarray(self.at, dtype=np.int64))

    def world(self, world: int) -> tuple[Array, Array | None]:
        """The stream (0), or its neighbour (1)."""
        X = np.array(self.X, dtype=np.float64)
        y = None if self.y is None else np.array(self.y, dtype=np.float64)
        if world:
            others: Any = self.other if _are_examples(self.other) else [self.other] * len(self.places)
            for at, (row, label) in zip(self.places, others, strict=True):
                X[at] = row
                if y is not None:
                    y[at] = label
        return X, y

    def check(self, private: Private) -> None:
        """Reject two worlds that are equal after clipping, and rows that are not all of one unit."""
        if isinstance(private.unit, User):
            _check_owner(private, self)
        elif self.users is not None or len(self.places) > 1:
            raise InvalidInput(
                "the unit of privacy is one example, so that a pair differs in one row and has no users. State "
                "unit=User(rows=4) to audit what is claimed for all rows of a user."
            )
        if private.neighbours == "label" and not np.array_equal(self.world(0)[0], self.world(1)[0], equal_nan=True):
            raise InvalidInput("only labels are protected, so that the two worlds differ in labels. Give the same row.")
        (V, y), (W, z) = (self.clipped(private, world) for world in (0, 1))
        if np.array_equal(V, W) and np.array_equal(y, z):
            what = "no row that differs counts, or each is" if self.users is not None else f"example {self.at} is"
            raise InvalidInput(
                f"both worlds are the same: {what} equal to other after clipping to the problem's bounds. Give another "
                "row or label."
            )

    def clipped(self, private: Private, world: int) -> tuple[Array, Array]:
        """The clipped stream of a world, rows that do not count without influence; rejected if not of the horizon."""
        horizon = private.timetable.horizon
        if horizon != len(self.X):
            raise InvalidInput(
                f"an audit needs complete streams: this one has {len(self.X)} examples, and the horizon is {horizon}. "
                "State horizon=, and give as many examples."
            )
        V, y = private.problem.clip(*self.world(world))
        return (V, y) if self.users is None else counted(private, V, y, self.users)


def _are_examples(other: Any) -> bool:
    """Whether these are several examples, not a row and a label."""
    return isinstance(other, list) and all(isinstance(each, tuple) for each in other)


def _check_owner(private: Private, pair: Pair) -> None:
    """Reject a pair without ids, or one that differs in rows that no one user owns."""
    if pair.users is None or len(pair.users) != len(pair.X):
        raise InvalidInput("the unit of privacy is a user: give the pair users=, an id for each row.")
    owners = np.asarray(pair.users, dtype=object).reshape(len(pair.X), -1)
    shared = set.intersection(*({canonical(each) for each in owners[at]} for at in pair.places)) - {None}
    if not shared and len(pair.places) > 1:
        raise InvalidInput(
            "the rows that differ have no owner in common. Let the two worlds differ in rows of one user."
        )
    if len(set(_periods(private, len(pair.X))[pair.places].tolist())) > 1:
        raise InvalidInput("the rows that differ lie in several periods. Claims are for the rows of one: choose one.")


def _periods(private: Private, rows: int) -> Integers:
    """The period of each row of a new stream; if a clock decides, they have the same."""
    assert isinstance(private.unit, User)
    return periods_of(private.unit, np.arange(1, rows + 1), None)


Algorithm = Literal["pigd", "pgiga", "pocp-ftl", "pqftl", "pftrl", "private_sum", "class_sums", "linucb", "pol", "ewoo"]
Place = Literal["first", "middle", "last", "random"]
PLACES: tuple[Place, ...] = ("first", "middle", "last")
"""Places of the example that differs; a user's rows may also be any."""


def tight_private(
    algorithm: Algorithm,
    privacy: Privacy,
    rounds: int,
    *,
    ridge: float = 0.1,
    calibration: Calibration = "exact",
    neighbours: Neighbours = "replace",
    unit: Unit = EXAMPLE,
) -> Private:
    """The algorithm on its tight problem, broken calibrations included.

    It releases after every example; or, if a user may have several rows between two releases, after one more than that.

    >>> tight_private("pigd", Privacy(1.0, 1e-6), 200).learner.certificate
    l2/tail, 20/(t+1)
    """
    one_of("algorithm", algorithm, get_args(Algorithm))
    if calibration != "exact" and algorithm in ("pftrl", "class_sums", "linucb", "ewoo"):
        raise InvalidInput(f"the paper states no constants for {algorithm}. Use calibration='exact'.")
    paper: dict[str, Any] = {"calibration": calibration, "allow_broken": True, "unit": unit}
    schedule: dict[str, Any] = {"schedule": every(rounds_of_a_release(unit))}
    line = Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=ridge, neighbours=neighbours)
    ball = Problem(Linear(), L2Ball(1.0), 1, label_bound=1.0, ridge=ridge, neighbours=neighbours)
    plane = Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0, ridge=ridge, neighbours=neighbours)
    counts = Problem(Hinge(), WholeSpace(), 1, neighbours=neighbours)
    sums = paper | schedule
    relation: Any = neighbours  # examples without labels have no "label", and their problem says so
    if calibration != "exact":
        sums["strategy"] = BinaryTree(refined=False)
    make: dict[str, Callable[[], Private]] = {
        "pigd": lambda: pigd(line, privacy, rounds, **paper, **schedule),
        "pgiga": lambda: pgiga(line, privacy, rounds, **paper, **schedule),
        "pocp-ftl": lambda: pocp(FTL(line), privacy, rounds, **paper, **schedule),
        "pol": lambda: pol(line, privacy, rounds, **paper),
        "pqftl": lambda: pqftl(plane, privacy, rounds, weight=None if neighbours == "label" else 1.0, **sums),
        "pftrl": lambda: pftrl(ball, privacy, rounds, unit=unit, **schedule),
        "private_sum": lambda: private_sum(1, 1.0, privacy, rounds, neighbours=relation, **sums),
        "class_sums": lambda: class_sums(counts, privacy, rounds, unit=unit, **schedule),
        "linucb": lambda: linear_bandit(
            2, privacy, rounds, arms=2, neighbours=relation, on_bad="raise", unit=unit, **schedule
        ),
        "ewoo": lambda: ewoo(experts(2, neighbours=relation), privacy, rounds, unit=unit, **schedule),
    }
    return make[algorithm]()


def rounds_of_a_release(unit: Unit) -> int:
    """Rounds from one release of a tight problem to the next.

    >>> rounds_of_a_release(EXAMPLE), rounds_of_a_release(User(rows=4)), rounds_of_a_release(User(rows=4, apart=2))
    (1, 5, 1)
    """
    each = unit.participation.per_release
    return each + 1 if each > 1 else 1


def tight_pair(private: Private, place: Place = "first") -> Pair:
    """Its two streams, which differ in the first example that counts, in one of the middle, or in the last.

    If the unit of privacy is a user, they differ in all rows of one, who owns more of them than count: from the first
    release on, from the middle on, from where the last of them count in the last block, or in random places.

    >>> pair = tight_pair(tight_private("private_sum", Privacy(1.0, 1e-6), 3), "last")
    >>> pair.world(0)[0].T, pair.world(1)[0].T
    (array([[ 1., -1.,  1.]]), array([[ 1., -1., -1.]]))
    >>> private = tight_private("private_sum", Privacy(1.0, 1e-6), 8, unit=User(rows=2, apart=3))
    >>> pair = tight_pair(private)
    >>> pair.places, pair.places[counts(private, pair.users)[pair.places]]
    (array([0, 1, 3, 4, 6]), array([0, 3]))
    """
    horizon = private.timetable.horizon
    assert horizon is not None
    one, other = _worst(private)
    signs = np.where(np.arange(horizon) % 2 == 0, 1.0, -1.0)
    X, y = _others(private, signs)
    zero = np.zeros(private.problem.dimension), 1.0 if private.problem.loss.labels == "sign" else 0.0
    neighbour = {"replace": other, "zero-out": zero, "label": (one[0], other[1])}[private.neighbours]
    if isinstance(private.unit, User):
        owned = _owned(private, private.unit, place, horizon)
        at: int | list[int] = np.flatnonzero(owned).tolist()
        others = max(2, horizon // (2 * private.unit.rows))
        users = np.where(owned, 0, 1 + np.arange(horizon) % others)
    else:
        learner = private.learner
        first = min(learner.first_move if isinstance(learner, GIGA) else 1, horizon) - 1
        at = {"first": first, "middle": max(first, horizon // 2), "last": horizon - 1}[place]
        users = None
    X[at], y[at] = one
    labels = None if private.problem.loss.labels == "none" else y
    return Pair(X, labels, at, neighbour, users)


def _owned(private: Private, unit: User, place: Place, horizon: int) -> NDArray[np.bool_]:
    """Which rows the user owns: those of the pattern that begins at this place, and half of the rest after it."""
    periods = _periods(private, horizon)
    if place == "random":
        owned = np.asarray(generator(horizon).random(horizon) < 0.5)
        return np.asarray(owned & (periods == periods[np.argmax(owned)]))
    blocks = private.timetable.block_of(np.arange(1, horizon + 1))
    last = int(blocks[-1])
    spread = (unit.participation.blocks - 1) * unit.apart
    begin = {"first": 1, "middle": 1 + last // 2, "last": max(1, last - spread)}[place]
    after = blocks >= begin
    after &= periods == periods[np.argmax(after)]  # rows of one period
    counted = after & counts(private, np.where(after, 0, 1 + np.arange(horizon)))
    excess = np.flatnonzero(after & ~counted)[::2]
    counted[excess] = True
    return counted


def adaptive_adversary(private: Private) -> Adversary:
    """An adversary that chooses examples of maximal norm against the point released last.

    >>> adaptive_adversary(tight_private("pigd", Privacy(1.0, 1e-6), 3))(np.array([-0.5]), 1)
    (array([1.]), -1.0)
    """
    learner, dimension = private.learner, private.problem.dimension

    def chosen(point: Array, t: int) -> Example:
        against = float(np.sign(point[0])) or 1.0
        if isinstance(learner, LinearBandit):  # a visitor who is shown the arm of the larger weight
            arm = int(point[-1] > point[len(point) // 2 - 1])
            return np.array([math.cos(point[-1]), math.sin(point[-1])]), float(learner.labels([-against], [arm])[0])
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
    if isinstance(learner, QFTL | LinearBandit):
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
