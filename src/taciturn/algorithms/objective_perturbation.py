"""Objective perturbation: one release, the minimiser of the sum of all losses and a random linear term."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn._util.arrays import Array
from taciturn.accounting.cost import Cost, total
from taciturn.accounting.gdp import Privacy, epsilon_of
from taciturn.accounting.guarantee import Guarantee
from taciturn.accounting.ledger import LedgerLike, as_ledger
from taciturn.accounting.objective import delta_perturbed, shift_of
from taciturn.core.protocols import Calibrated, Certificate
from taciturn.core.release import Release
from taciturn.core.schedule import Timetable, at
from taciturn.core.state import described
from taciturn.errors import InvalidInput, Unprovable, expect, integer, positive
from taciturn.mechanisms.gaussian import Gaussian
from taciturn.noise.sampling import REACH, lattice_normal, sampling_cost, secret_bits, seeded_bits
from taciturn.problem.losses import Huber, Logistic
from taciturn.problem.optimize import Scalars, minimiser, rounding_slack
from taciturn.problem.problem import Problem
from taciturn.problem.scalar_loss import ScalarLoss, check_slopes
from taciturn.problem.sets import L2Ball, WholeSpace

_SCALE = 2.0**36  # standard deviation of the linear term, in steps of its lattice
_FOR_OUTPUT = 2.0**-7  # share of mu for noise that covers the error of the minimiser
_DELTA_SHARE = 0.9  # share of delta for the perturbed objective itself


@dataclass(frozen=True)
class ObjectivePerturbation:
    """`argmin_x Σ_i f_i(x) + b·x` with Gaussian b, for smooth scalar losses on R^d.

    The method that the paper sets its offline learning beside (Chaudhuri, Monteleoni, Sarwate, *Differentially Private
    Empirical Risk Minimization*, 2011, Algorithm 2), calibrated by `taciturn.accounting.objective`.

    **What is published** is not the exact minimiser, which no computer knows, but a point within `error` of it, on a
    lattice, with Gaussian noise for a sensitivity of twice that error. *Proof that this suffices.* The exact minimiser
    is private by `accounting.objective`; given it, what is added to it is a Gaussian whose mean differs between
    neighbours by at most `2·error`; the two compose, and the published point follows from the second. ∎ `error` counts
    the solver's tolerance, rounding errors, and that of b to a lattice.

    Parameters
    ----------
    problem : Problem
        A smooth scalar loss with bounded slopes, a ridge, and `WholeSpace()` as domain.
    privacy : Privacy
        The total budget.
    horizon : int
        Number of examples.
    seed : int, optional
        For simulations and tests, which are then not private.

    Examples
    --------
    >>> from taciturn import Logistic, ObjectivePerturbation, Privacy, Problem, WholeSpace
    >>> problem = Problem(Logistic(), WholeSpace(), dimension=2, ridge=1.0)
    >>> method = ObjectivePerturbation(problem, Privacy(1.0, 1e-6), horizon=3)
    >>> method.fit([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1]).point.shape
    (2,)
    """

    problem: Problem
    privacy: Privacy
    horizon: int
    seed: int | None = None

    def __post_init__(self) -> None:
        expect("problem", self.problem, isinstance(self.problem, Problem), "Problem(Logistic(), WholeSpace(), 10)")
        expect("privacy", self.privacy, isinstance(self.privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        object.__setattr__(self, "horizon", integer("horizon", self.horizon))
        if self.seed is not None:
            object.__setattr__(self, "seed", integer("seed", self.seed, least=0))
        _check(self.problem)
        if self._shift == 0.0:
            needed = self._curvature / math.expm1(0.9 * self.privacy.epsilon)  # leaves a tenth for the noise
            raise Unprovable(
                f"the Hessian alone costs {self._hessian:.3g}, more than epsilon = {self.privacy.epsilon:g}. Take a "
                f"ridge of at least {needed / self.horizon:.3g}, or use pol, which needs none of that."
            )
        if not self.guarantee.proven:
            raise InvalidInput(f"{self.privacy} is out of the sampler's reach. Take a smaller epsilon.")

    def fit(self, X: Any, y: Any, ledger: LedgerLike | None = None) -> Release:
        """Learn from all `horizon` examples and publish one point.

        Every call publishes another point and spends the budget again: pass a `ledger` to count that.
        """
        X, y = self.problem.clip(X, y)
        if len(y) != self.horizon:
            raise InvalidInput(f"the noise was planned for {self.horizon} examples, got {len(y)}. State that horizon.")
        if ledger is not None and self.seed is None:
            as_ledger(ledger).charge(self.cost, self.problem.neighbours, described(self))
        tilt = self._draw()
        (drawn,) = self._output.noise(self.seed, 1, 1)
        _, encoded = self._output.encode({}, self._minimiser(X, y, tilt), 1)
        _, noisy, sd = self._output.decode({}, encoded + drawn, 1)
        return Release(self.horizon, 1, noisy.copy(), noisy, sd, self.seed is not None)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claimed budget and the delivered cost."""
        return Guarantee(self.privacy, self.cost, self.problem.neighbours, "exact", self.seed is not None)

    @cached_property
    def cost(self) -> Cost:
        """Cost of the perturbed objective, as one (epsilon, delta), of the noise on the output, and of the sampler.

        One outcome needs linear terms that differ by at most `Gd` between neighbours, `m` standard deviations: outcomes
        for which either lies beyond the sampler's reach are charged.
        """
        epsilon = self._split[0]
        sampled = math.exp(sampling_cost(self.problem.size, 0.0).extra_epsilon)  # the sampler's share of this delta
        delta = delta_perturbed(epsilon, self._shift, self._hessian, self._dimensions) * sampled
        objective = Cost(plain_epsilon=epsilon, plain_delta=delta)
        return total([objective, sampling_cost(self.problem.size, self._shift), self._output.cost(None)])

    @property
    def tilt_sd(self) -> float:
        """Standard deviation of the entries of the linear term; public."""
        return self.problem.gradient_diameter / self._shift

    def _draw(self) -> Array:
        """The linear term."""
        bits = secret_bits() if self.seed is None else seeded_bits(self.seed, -1)
        return np.asarray(lattice_normal(_SCALE, (self.problem.size,), bits) * (self.tilt_sd / _SCALE))

    def _minimiser(self, X: Array, y: Array, tilt: Array) -> Array:
        p = self.problem
        start = np.zeros(p.size)
        objective = Scalars(p, X, y, p.ridge, 0.0, tilt / self.horizon)
        ball = L2Ball(self._longest)  # which has the minimiser inside
        return minimiser(objective, ball, start, self._slack, 2.0 * self._longest)

    @property
    def _curvature(self) -> float:
        return self.problem.smoothness - self.problem.ridge

    @property
    def _hessian(self) -> float:
        """`c` of `accounting.objective`."""
        return math.log1p(self._curvature / (self.problem.ridge * self.horizon)) * (1.0 + 1e-9)

    @property
    def _dimensions(self) -> int:
        return 2 if self.problem.neighbours == "replace" else 1

    @cached_property
    def _split(self) -> tuple[float, Privacy]:
        """The epsilon of the perturbed objective, and the budget of the noise on its minimiser."""
        epsilon = self.privacy.epsilon
        left = 0.9 * (1.0 - _DELTA_SHARE) * self.privacy.delta
        small = max(epsilon_of(left, _FOR_OUTPUT * self.privacy.mu), 1e-4 * epsilon)
        return (1.0 - 1e-6) * (epsilon - 1.01 * small), Privacy(small, left)

    @cached_property
    def _shift(self) -> float:
        return shift_of(self._split[0], _DELTA_SHARE * self.privacy.delta, self._hessian, self._dimensions)

    @cached_property
    def _output(self) -> Calibrated:
        """Gaussian noise for a sensitivity of twice the error of a computed minimiser."""
        rounded = math.sqrt(self.problem.size) * self.tilt_sd / _SCALE / self._total_ridge
        lattice = self._longest * 2.0**-22 * _FOR_OUTPUT * self.privacy.mu  # with less noise no lattice would fit
        error = max(2.0 * self._slack + rounded, lattice)
        certificate = Certificate(
            "l2", "tail", f"{2.0 * error:.3g}", lambda t: 2.0 * error + 0.0 * t, self._longest, "", "see the class"
        )
        timetable = Timetable(at([self.horizon]), self.horizon)
        return Gaussian().calibrate(certificate, timetable, self.problem.size, self._split[1], "exact")

    @property
    def _total_ridge(self) -> float:
        return self.problem.ridge * self.horizon

    @cached_property
    def _longest(self) -> float:
        """A bound on the norm of every minimiser; the search does not leave that ball.

        At a minimiser the gradients of all losses and of the linear term, at most `n·L + ‖b‖`, cancel the ridge's,
        `lam·‖x‖`. And the objective is at most that at 0: if losses are never negative, and at most V at 0,
        `(lam/2)·‖x‖² ≤ n·V + ‖b‖·‖x‖`. (A little more, for the rounding of this.)
        """
        lam, n = self._total_ridge, self.horizon
        b = REACH * self.tilt_sd * math.sqrt(self.problem.size)
        by_value = (b + math.sqrt(b * b + 2.0 * lam * n * _at_zero(self.problem))) / lam
        return min(self.problem.lipschitz / self.problem.ridge + b / lam, by_value) * (1.0 + 2.0**-30)

    @cached_property
    def _slack(self) -> float:
        """The solver's tolerance, and a bound on the rounding errors."""
        p = self.problem
        tilt = REACH * self.tilt_sd * math.sqrt(p.size) / self.horizon
        steepest = p.lipschitz + tilt + p.ridge * self._longest
        return float(rounding_slack(p, float(self.horizon), p.ridge, self._longest, steepest, 0.0))


def ridge_for(privacy: Privacy, horizon: int, feature_bound: float = 1.0) -> float:
    """A ridge to start from, `2·R²/(n·mu)`: larger ones pull more than noise does, smaller ones let noise through.

    With it the linear term moves a coefficient that is 0 in all examples by about `Gd/(2R²)`, whatever the budget. The
    2 was tuned on Adult and Covertype: half or twice as much changes accuracy by about a point at most, and
    half is better for Covertype.

    >>> round(ridge_for(Privacy(1.0, 1e-6), 29_305), 6)
    0.000288
    """
    return 2.0 * positive("feature_bound", feature_bound) ** 2 / (integer("horizon", horizon) * privacy.mu)


def _at_zero(problem: Problem) -> float:
    """The largest value at 0 of a loss that is known never to be negative; no bound for others."""
    loss, bound = problem.loss, problem.label_bound
    if not isinstance(loss, (Logistic, Huber)) or type(loss) not in (Logistic, Huber) or bound is None:
        return math.inf  # those derived from them too
    return float(loss.value(0.0, bound))


def _check(problem: Problem) -> None:
    """Reject what the proof does not cover."""
    kinked = not (isinstance(problem.loss, ScalarLoss) and math.isfinite(problem.loss.curvature))
    assert problem.label_bound is not None
    if kinked or not isinstance(problem.domain, WholeSpace):
        what = "smooth scalar losses" if kinked else "the whole space"
        came = type(problem.loss).__name__ if kinked else problem.domain
        raise Unprovable(
            f"objective perturbation is proven for {what}, and this is {came}. Use Logistic or Huber on WholeSpace(), "
            "or pol, which takes kinked losses and constraints."
        )
    if not problem.ridge > 0.0 or not math.isfinite(problem.gradient_diameter):
        raise Unprovable(
            "objective perturbation needs a ridge above 0 and slopes that are bounded everywhere. Use Logistic or "
            "Huber, with a ridge; or pol, with a bounded domain."
        )
    assert isinstance(problem.loss, ScalarLoss)
    check_slopes(problem.loss, math.inf, problem.label_bound)
