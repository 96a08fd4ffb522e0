"""Sums of contexts and rewards, and the linear models that they decide: what a private contextual bandit learns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.errors import InvalidInput, Unprovable, finite, integer, positive
from taciturn.kernel.learners.exact_sums import PRODUCT_UNITS, product_bound
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.problem.losses import Squared
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import L2Ball, WholeSpace
from taciturn.kernel.stream.protocols import Certificate, Learner

_HAIR = 1e-9  # by which a matrix without noise is above its floor
_APART = 4.0  # labels of an arm lie around a multiple of this, within 1 of it


@dataclass(frozen=True)
class LinearBandit(Learner):
    """Sums of `x xᵀ` and `r x` over the arms that were played, and the linear models of rewards that they decide.

    An example is the context x of the played arm, of norm at most R, and its reward, as a number r in [-1, 1]: the
    public range from `low` to `high`, centred. It contributes `(svec(x xᵀ), w·r x)`, as in `QFTL`. With one model,
    `arms=1`, all arms share it, and differ in their contexts. With `arms=K` every arm has a model of its own, and an
    example contributes to the block of the arm that was played; its label says which (`labels`).

    **Certificate.** QFTL's, with labels of at most 1: if an example is replaced its contribution moves by at most
    Delta, `Delta² = 2R⁴ + 2w²R² + ½w⁴` if `w ≤ sqrt(2)·R`, else `4w²R²`; by `R⁴ + w²R²` squared if it is zeroed out.
    It is the same for any number of arms. *Proof.* Let z be the vector of K·d entries that is x in the block of the
    played arm, and 0 elsewhere: its norm is that of x. What the example contributes are entries of `(svec(z zᵀ), w·r
    z)`, those of blocks on the diagonal, and the contribution of a neighbour are the same entries for another z and r.
    Fewer entries are no farther apart, and all of them are QFTL's contributions. ∎ In particular a change of arm costs
    at most `sqrt(2)·sqrt(R⁴ + w²R²)`, as contributions to two blocks are orthogonal. Entries in other blocks than those
    of the two arms are the same integers in both worlds, so that rounding is charged for two blocks.

    The neighbour may have other contexts, so that another arm is played, and another reward: that is one other example.
    Later visitors are shown other arms if the models are others; models are releases, and the certificate holds for
    streams that depend on them.

    **The point** is post-processing: for each model `svec(V)` and then `theta`, with

        V = V̂ + (ridge + c·b)·I, eigenvalues floored at ridge + b/4,   b = s·sqrt(2d),   theta = V⁻¹û/w,

    V̂ and û the noisy sums, s the standard deviation of their noise, and c the factor `shift`. The largest eigenvalue of
    the noise in V̂ is about b, so that V is hardly ever floored, and never singular. It is what a choice needs:
    `x·theta` is the expected reward, centred, and `sqrt(xᵀV⁻¹x)` the width of what is not known of it
    (`taciturn.bandits`).

    Parameters
    ----------
    problem : Problem
        Of `bandit_problem`: squared loss, contexts of norm at most `feature_bound`, labels as `labels` makes them.
    arms : int
        Number of models: 1 for a model that all arms share, else one for each arm.
    low, high : float
        The public range of rewards; others are clipped.
    weight : float
        w. At 1, the default, the error of theta due to noise is least, within 1 %, for models of norm .7 to 1.
    ridge : float
        What V is without data and without noise.
    shift : float
        The factor of the shift.

    References
    ----------
    Shariff, Sheffet, *Differentially Private Contextual Linear Bandits*, 2018 (joint differential privacy, Section 3).

    Examples
    --------
    >>> LinearBandit(bandit_problem(dimension=5)).certificate
    l2/entry, 2.1213
    >>> LinearBandit(bandit_problem(dimension=5, arms=100), arms=100).certificate
    l2/entry, 2.1213
    """

    most_units: ClassVar[int] = PRODUCT_UNITS
    problem: Problem
    arms: int = 1
    low: float = -1.0
    high: float = 1.0
    weight: float = 1.0
    ridge: float = 1.0
    shift: float = 2.0

    def __post_init__(self) -> None:
        for name in ("weight", "ridge", "shift"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name in ("low", "high"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))
        object.__setattr__(self, "arms", integer("arms", self.arms))
        if not self.low < self.high:
            raise InvalidInput(
                f"rewards lie between low and high, got {self.low:g} and {self.high:g}. State low first."
            )
        p = self.problem
        if p.neighbours not in ("replace", "zero-out"):
            raise Unprovable(
                f"a linear bandit is proven for 'replace' and 'zero-out', and its problem says {p.neighbours!r}: which "
                "arm is played depends on a visitor's contexts, and rounds are decisions. Use neighbours='replace'."
            )
        labels = (p.label_bound, p.label_center, p.label_scale)
        if type(p.loss) is not Squared or p.ridge or labels != (_label_bound(self.arms), 0.0, 1.0):
            raise InvalidInput(
                f"a linear bandit of {self.arms} models needs the problem of bandit_problem(dimension, "
                f"arms={self.arms}), whose labels say which arm was played. Make it so."
            )

    @property
    def dimension(self) -> int:
        """d: entries of a clipped context, with the intercept, if there is one."""
        return self.problem.width

    @property
    def statistic_size(self) -> int:
        """Entries of the packed matrix and the vector of each model."""
        return self.arms * self.sums.statistic_size

    @property
    def point_size(self) -> int:
        """As many: the packed matrix V and theta of each model."""
        return self.statistic_size

    @cached_property
    def first_point(self) -> Array:
        """The public models before the first release: `V = ridge·I` and `theta = 0`."""
        return self.decide(0.0, np.zeros(self.statistic_size), 0.0)

    @cached_property
    def sums(self) -> QFTL:
        """The learner of the sums of one model, whose certificate, rounding and compiled loops are used."""
        p = replace(self.problem, domain=L2Ball(1.0), label_bound=1.0)
        return QFTL(p, weight=self.weight)

    @cached_property
    def certificate(self) -> Certificate:
        """Delta, and rounding in the blocks of two arms."""
        one = self.sums.certificate
        size = min(2, self.arms) * self.sums.statistic_size
        bound = partial(product_bound, self.sums.moved, one.magnitude, size)
        return replace(one, bound=bound, lemma="proof in taciturn.LinearBandit")

    def labels(self, rewards: Any, arms: Any = 0) -> Array:
        """Labels of examples: rewards, centred and clipped to [-1, 1], and 4 times the number of the played arm.

        A reward that is not a number gives such a label: a bad row, which has no influence if the problem says so.
        Arms are counted from 0, and have no effect where they share a model.

        >>> LinearBandit(bandit_problem(2, arms=3), arms=3, low=0.0, high=1.0).labels(np.array([0.0, 1.0, 0.5]), 2)
        array([7., 9., 8.])
        """
        middle, half = (self.low + self.high) / 2.0, (self.high - self.low) / 2.0
        inside = np.clip(np.asarray(rewards, dtype=np.float64), self.low, self.high)  # first: others may overflow
        centred = np.clip((inside - middle) / half, -1.0, 1.0)
        return np.asarray(centred + (_APART * np.asarray(arms) if self.arms > 1 else 0.0))

    def played(self, y: Array) -> tuple[Integers, Array]:
        """Arm and centred reward of labels: of any numbers, arms that there are, and rewards in [-1, 1]."""
        if self.arms == 1:
            return np.zeros(len(y), dtype=np.int64), y  # clipped by the problem
        arms = np.clip(np.rint(y / _APART), 0, self.arms - 1)
        return arms.astype(np.int64), np.clip(y - _APART * arms, -1.0, 1.0)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size, dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Integer products, added up since the last release, in the block of the played arm."""
        arms, rewards = self.played(y)
        total = exact["sum"].reshape(self.arms, -1).copy()
        for arm in np.unique(arms):
            here = arms == arm
            total[arm] = self.sums.absorb({"sum": total[arm]}, t, X[here], rewards[here], point)["sum"]
        return {"sum": total.ravel()}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), self.scaled(exact["sum"])

    def scaled(self, sums: Integers) -> Array:
        """Sums of integer products, one or several rows of them, in their own units."""
        return np.asarray(sums * np.tile(self.sums.scale, self.arms))

    def to_integers(self, exact: Arrays) -> Integers:
        """The sum itself."""
        return exact["sum"]

    def from_integers(self, sums: Integers) -> Arrays:
        """The sum itself."""
        return {"sum": sums}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """V and theta of each model."""
        return np.array(self.decide_batch(noisy[None, :], np.array([noise_sd]))[0])

    def decide_batch(self, noisy: Array, noise_sd: Array) -> Array:
        """The same for noisy sums in rows, each with the standard deviation of its noise."""
        d = self.dimension
        rows, columns = self.sums.upper
        scale = np.where(rows == columns, 1.0, math.sqrt(2.0))
        blocks = noisy.reshape(len(noisy), self.arms, -1)
        V = np.zeros((len(noisy), self.arms, d, d))
        V[..., rows, columns] = V[..., columns, rows] = blocks[..., : len(rows)] / scale
        largest = (np.asarray(noise_sd) * math.sqrt(2.0 * d))[:, None, None]
        u = blocks[..., len(rows) :, None] / self.weight
        shifted = V + (self.shift * largest[..., None] + self.ridge) * np.eye(d)
        try:  # no eigenvalue is below the floor: the usual case, and a third of the time
            np.linalg.cholesky(shifted - (largest[..., None] / 4.0 + self.ridge * (1.0 - _HAIR)) * np.eye(d))
            V, theta = shifted, np.linalg.solve(shifted, u)[..., 0]
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(V)
            values = np.maximum(values + self.shift * largest, largest / 4.0) + self.ridge
            theta = (vectors @ (np.swapaxes(vectors, -1, -2) @ u / values[..., None]))[..., 0]
            V = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        out = np.concatenate([V[..., rows, columns] * scale, theta], axis=-1)
        return np.asarray(out.reshape(noisy.shape))


def bandit_problem(
    dimension: int,
    arms: int = 1,
    feature_bound: float = 1.0,
    intercept: float = 0.0,
    neighbours: str = "replace",
    on_bad: str = "zero",
) -> Problem:
    """What a `LinearBandit` learns: rewards, centred to [-1, 1], from contexts of this dimension.

    A decision without a reward is a bad row, which by default takes its round without influence.

    >>> bandit_problem(dimension=5, arms=3).label_bound
    9.0
    """
    bound = _label_bound(integer("arms", arms))
    made = partial(Problem, Squared(), WholeSpace(), dimension, feature_bound, bound, intercept)
    return made(neighbours=neighbours, on_bad=on_bad)  # type: ignore[arg-type]


def _label_bound(arms: int) -> float:
    """The largest label: of the last arm, with the largest reward."""
    return _APART * (arms - 1) + 1.0
