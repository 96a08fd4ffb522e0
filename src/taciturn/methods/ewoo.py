"""EWOO: cumulative losses of a finite net of candidates, of which a mechanism publishes the best.

The paper has one sentence on it (Section 4.1). The learner adds up losses and certifies how far one example can move
them *relative to each other*; `taciturn.methods.exponential` draws a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from taciturn.errors import Unprovable, expect, integer
from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.problem.losses import Absolute, Advice, Hinge, Huber, Linear, Logistic, Quantile, Squared
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ROUNDED_UP, ScalarLoss, check_slopes
from taciturn.kernel.problem.sets import Simplex
from taciturn.kernel.stream.passes import ARRAYS
from taciturn.kernel.stream.protocols import Certificate, Learner
from taciturn.methods.nets import candidates, distance_bound

_ACCURATE = (Squared, Logistic, Hinge, Quantile, Absolute, Huber, Linear)  # convex in the label; constants no larger
MOST = 2**28
"""Examples up to which sums of losses are exact; beyond, nothing is certified."""


@dataclass(frozen=True, repr=False)
class EWOO(Learner):
    """Exponentially weighted online optimisation on a finite net: the cumulative losses of candidates.

    The statistic is `Σ_i f_i(x_j)` for every candidate x_j, ridge included, up to a constant: each example's losses are
    counted from the least of them, in integer multiples of a power of two `g`, so that sums of up to 2²⁸ examples are
    exact and two worlds differ by the changed example and by nothing else. The ridge's part is public and the same in
    both.

    Parameters
    ----------
    problem : Problem
        What is being learnt. The loss need not be strongly convex. One that is not a function of `v·x` may offer
        `variation(points, feature_bound, label_bound)`, the largest `max - min` of one example's loss over an array of
        points, where it is less than Lipschitz, and `values(points, v, y)`, all of its values at once.
    points : array-like of shape (N, problem.size)
        The candidates, two or more, chosen without looking at the data; `grid` makes a net of any bounded set.

    Notes
    -----
    **Certificate.** `max_j d_j - min_j d_j`, d the change of the statistic, is at most `min(2W, Gd·D)` (2W for a user's
    loss) if an example is replaced and at most W if it is zeroed out, after any number of examples; W is the largest
    variation of one example's loss over the net, Gd the gradient diameter over the ball around 0 that holds the net, D
    the net's diameter. If the label of an example is replaced it is the first, with Gd that of one row and two labels.
    (The largest `|d_j|`, at most W, is not enough: losses (0, W) and (W, 0) differ by W everywhere,
    and the difference between the two candidates by 2W.)

    *Proof.* Ridge and other examples cancel, exactly. An example's vector of losses from the least one on has entries
    between 0 and W: two such vectors differ by entries between -W and W, and from 0 by entries between 0 and W. And
    `l - l'`, a function on the ball, has gradients no longer than Gd, so two of its values differ by at most Gd times
    the distance. For W itself: a prediction lies in `|u| ≤ R·B`, B the largest norm of the net, where the loss says how
    much it varies; and the loss is L-Lipschitz, so `W ≤ L·D`. ∎

    *Rounding.* Computed entries are rounded to integer multiples of g and clipped to W, rounded up to one, so that W
    and 2W hold for the computed vectors whatever the loss does. For Gd·D, rounding to g moves two vectors by g/2 an
    entry each, and so the range by 2g; an error e of computed losses adds 4e. (e is `16·(size + 8)·2⁻⁵³` times
    `L·B + W +` the largest loss at 0.) Clipping changes nothing in that: gaps from the least entry differ by an
    interval that contains 0, and clipping them moves the difference towards 0.

    Examples
    --------
    >>> from taciturn import EWOO, Hinge, L2Ball, Problem, grid
    >>> problem = Problem(Hinge(), L2Ball(1.0), dimension=2)
    >>> EWOO(problem, grid(problem.domain, 2, per_axis=11)).statistic_size
    117
    >>> EWOO(problem, [[-0.5, 0.0], [0.5, 0.0]]).certificate
    range/tail, 2
    """

    problem: Problem
    points: Sequence[Sequence[float]] | Array

    def __post_init__(self) -> None:
        expect("problem", self.problem, isinstance(self.problem, Problem), "Problem(Hinge(), L2Ball(1.0), dimension=2)")
        net = candidates(self.points, self.problem.domain, self.problem.size)
        object.__setattr__(self, "points", tuple(map(tuple, net.tolist())))
        if not math.isfinite(self.variation + self._error):
            raise Unprovable(
                f"{type(self.problem.loss).__name__} has no bound on this net, so no noise is enough. "
                "Give the loss a finite slope_bound, or take smaller candidates."
            )
        if isinstance(self.problem.loss, ScalarLoss):
            check_slopes(self.problem.loss, self.problem.norm_bound * self._radius, self._label_bound)

    def __repr__(self) -> str:
        return f"EWOO({len(self.points):,} points, {self.problem!r})"

    @property
    def statistic_size(self) -> int:
        """One entry for each candidate."""
        return len(self.points)

    def start(self) -> Arrays:
        """No losses yet."""
        return {"losses": np.zeros(self.statistic_size, dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Each example's losses, in integer steps, added one by one: no bit depends on how a stream is cut."""
        losses = exact["losses"].copy()
        if self._is_of_experts:  # an example is the list of their losses
            loss: Any = self.problem.loss
            return {"losses": losses + np.sum(self._in_steps(np.clip(X, 0.0, loss.loss_bound)), axis=0)}
        for v, label in zip(X, y, strict=True):
            losses += self._in_steps(self._losses(v, float(label)))
        return {"losses": losses}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """Losses and t times the ridge's part; exact, as all of it are integers below 2⁵³ steps."""
        steps = exact["losses"] + t * self.ridge_steps
        return exact, np.asarray(steps * self.step, dtype=np.float64)

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The candidate whose number was released; of losses, as in a replay without noise, the best one."""
        winner = int(noisy[0]) if len(noisy) == 1 else int(np.argmin(noisy))
        return np.array(self.net[winner])

    @cached_property
    def certificate(self) -> Certificate:
        """`min(2W, Gd·D)`, or W under zero-out, and the share of rounding errors."""
        W = self.variation if self.problem.neighbours == "zero-out" else 2.0 * self.variation
        formula = f"{min(W, self._smooth_range):.5g}"
        magnitude = MOST * (self.most_steps + float(np.max(self.ridge_steps))) * self.step
        moved_by = "one example moves the losses in every later statistic"
        lemma = "proof in taciturn.EWOO"
        basis = rests(self.problem)
        return Certificate("range", "tail", formula, self._moved, magnitude, moved_by, lemma, most=MOST, **basis)

    def _moved(self, t: Array) -> Array:
        """The certified range: the same for every t as long as sums are exact."""
        replaced = 1.0 if self.problem.neighbours == "zero-out" else 2.0
        rounding = 2.0 * self.step + 4.0 * self._error
        bound = min(replaced * self.most_steps * self.step, self._smooth_range * ROUNDED_UP + rounding)
        return np.where(t <= MOST, bound, math.inf)

    @property
    def _smooth_range(self) -> float:
        """`Gd·D` if an example or its label is replaced, for losses whose values are as accurate as `_error` says."""
        known = self.problem.neighbours != "zero-out" and type(self.problem.loss) in _ACCURATE
        return self._gradients_apart * self._diameter if known else math.inf

    def _losses(self, v: Array, y: float) -> Array:
        """The data term of one example at every candidate."""
        loss: Any = self.problem.loss
        if isinstance(loss, ScalarLoss):
            return np.asarray(loss.value(self.net @ v, y), dtype=np.float64)
        if hasattr(loss, "values"):
            return np.asarray(loss.values(self.net, v, y), dtype=np.float64)
        return np.array([float(loss.value(x, v, y)) for x in self.net])

    def _in_steps(self, losses: Array) -> Integers:
        """Losses counted from the least one of an example, in integer steps clipped to the certified range."""
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.nan_to_num((losses - np.min(losses, axis=-1, keepdims=True)) / self.step)
        return np.asarray(np.minimum(np.rint(steps), self.most_steps).astype(np.int64))

    @cached_property
    def _is_of_experts(self) -> bool:
        """Whether the candidates are the unit vectors, and the loss of an example at one is its clipped entry."""
        return type(self.problem.loss) is Advice and np.array_equal(self.net, np.eye(self.statistic_size))

    @cached_property
    def net(self) -> Array:
        """The candidates, a row each."""
        return fixed(np.array(self.points, dtype=np.float64))

    @cached_property
    def _radius(self) -> float:
        """Largest norm of a candidate, B."""
        return float(np.max(np.linalg.norm(self.net, axis=1))) * (1.0 + 1e-12)

    @cached_property
    def _diameter(self) -> float:
        """Largest distance of two candidates, D."""
        return distance_bound(self.net)

    @property
    def _label_bound(self) -> float:
        assert self.problem.label_bound is not None
        return self.problem.label_bound

    @cached_property
    def _lipschitz(self) -> float:
        """Longest gradient of the data term over the ball that holds the net, L."""
        loss, R = self.problem.loss, self.problem.norm_bound
        if isinstance(loss, ScalarLoss):
            return R * float(loss.slope_bound(R * self._radius, self._label_bound)) * ROUNDED_UP
        return float(loss.lipschitz(R, self._radius, self._label_bound))

    @cached_property
    def _gradients_apart(self) -> float:
        """The gradient diameter over that ball, Gd."""
        return self.problem.gradient_diameter_within(self._radius)

    @cached_property
    def variation(self) -> float:
        """Largest variation of one example's loss over the net, W."""
        loss: Any = self.problem.loss
        R = self.problem.norm_bound
        widest = self._lipschitz * self._diameter * ROUNDED_UP
        if isinstance(loss, ScalarLoss):
            return min(widest, float(loss.variation(R * self._radius, self._label_bound)))
        if hasattr(loss, "variation"):
            return min(widest, float(loss.variation(self.net, R, self._label_bound)))
        return widest

    @cached_property
    def _error(self) -> float:
        """Bound on the error of a computed loss."""
        largest = self._lipschitz * self._radius + self.variation + _largest_at_zero(self.problem)
        return 16.0 * (self.problem.size + 8) * 2.0**-53 * largest

    @cached_property
    def _ridge_term(self) -> Array:
        """`(alpha/2)‖x‖²` at every candidate, from the least one on; public."""
        terms = 0.5 * self.problem.ridge * np.sum(self.net**2, axis=1)
        return np.asarray(terms - np.min(terms), dtype=np.float64)

    @cached_property
    def step(self) -> float:
        """The power of two g: a round's losses and ridge come to less than 2²⁴ of it, and to no less than 2²³."""
        largest = self.variation + 2.0 * self._error + float(np.max(self._ridge_term))
        return 2.0 ** (math.floor(math.log2(largest)) - 23)

    @cached_property
    def most_steps(self) -> int:
        """W in steps, rounded up."""
        return math.ceil((self.variation + 2.0 * self._error) / self.step)

    @cached_property
    def ridge_steps(self) -> Integers:
        """The ridge's part in integer steps."""
        return fixed(np.rint(self._ridge_term / self.step).astype(np.int64))


def _largest_at_zero(problem: Problem) -> float:
    """The largest loss of the point 0 (for a vector loss, over examples along the axes): what rounding errors go with.

    As a function of the label it is taken to be largest at an end, as for every loss that is convex in it.
    """
    loss, b = problem.loss, problem.label_bound
    assert b is not None
    if isinstance(loss, ScalarLoss):
        return max(abs(float(loss.value(0.0, y))) for y in (-b, b))
    labels = (-b, b) if problem.outputs == 1 else range(problem.outputs)
    zero = np.zeros(problem.size)
    axes = problem.norm_bound * np.eye(problem.width)
    examples = [np.zeros(problem.width), *axes, *-axes]
    return max(abs(float(loss.value(zero, v, y))) for v in examples for y in labels)


def experts(
    count: int,
    loss_bound: float = 1.0,
    *,
    neighbours: Literal["replace", "zero-out"] = "replace",
    on_bad: Literal["raise", "zero"] = "raise",
) -> EWOO:
    """Experts: an example is the list of the losses of `count` experts, between 0 and `loss_bound`.

    The certificate is `2·loss_bound` under replace and `loss_bound` under zero-out,
    however many experts there are. A released point is 1 at the expert to follow.

    Parameters
    ----------
    count : int
        Number of experts, 2 or more.
    loss_bound : float
        Largest loss of an expert; losses are clipped to the range from 0 to it.
    neighbours, on_bad
        As in `taciturn.Problem`.

    Examples
    --------
    >>> experts(10).certificate, experts(1000, neighbours="zero-out").certificate
    (range/tail, 2, range/tail, 1)
    """
    count = integer("count", count, least=2)
    loss = Advice(loss_bound)
    longest = loss.loss_bound * math.sqrt(count) * ROUNDED_UP
    problem = Problem(loss, Simplex(), count, longest, neighbours=neighbours, on_bad=on_bad)
    return EWOO(problem, np.eye(count))


ARRAYS.add(EWOO)
