"""Objective perturbation: one release, the minimiser of the sum of all losses and a random linear term."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from taciturn.accounting.ledger import LedgerLike, as_ledger
from taciturn.accounting.memory_store import IN_MEMORY
from taciturn.calibration.mechanisms import Gaussian
from taciturn.core.accounted import Accounted
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable, expect, integer, positive
from taciturn.kernel.accounting.cost import Cost, total
from taciturn.kernel.accounting.gdp import Privacy, epsilon_of
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.unit import EXAMPLE, Unit
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.learners.contributions import stated_outside
from taciturn.kernel.noise.needed import NoiseNeeded
from taciturn.kernel.noise.sampling import REACH, sampling_cost
from taciturn.kernel.problem.losses import Huber, Logistic
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss, check_slopes
from taciturn.kernel.problem.sets import L2Ball, WholeSpace
from taciturn.kernel.stream.loop import fast_clip
from taciturn.kernel.stream.participation import Layers
from taciturn.kernel.stream.privatize import of_a_tilted_minimiser
from taciturn.kernel.stream.protocols import Calibrated, Certificate, damaged
from taciturn.kernel.stream.release import Release, Releases
from taciturn.kernel.stream.schedule import Timetable, at
from taciturn.kernel.stream.state import SIMULATION, State, first_state, following, new_name, read_state
from taciturn.kernel.stream.stream import OTHER_SETTINGS, Prepared, must_be_state
from taciturn.methods.objective import delta_perturbed, epsilon_perturbed, log_moment, shift_of
from taciturn.methods.optimize import Scalars, minimiser, rounding_slack, summands
from taciturn.methods.weighted import unweighted

_SCALE = 2.0**36  # standard deviation of the linear term, in steps of its lattice
_FOR_OUTPUT = 2.0**-7  # share of mu for noise that covers the error of the minimiser
_DELTA_SHARE = 0.9  # share of delta for the perturbed objective itself


@dataclass(frozen=True)
class ObjectivePerturbation(Accounted):
    """`argmin_x Σ_i f_i(x) + b·x` with Gaussian b, for smooth scalar losses on R^d.

    The method that the paper sets its offline learning beside (Chaudhuri, Monteleoni, Sarwate, *Differentially Private
    Empirical Risk Minimization*, 2011, Algorithm 2), calibrated by `taciturn.methods.objective`.

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
            raise InvalidInput(
                f"{self.privacy} is out of the sampler's reach. Take a smaller epsilon: one of 10 already promises "
                "little."
            )

    is_stream = False
    learner = mechanism = calibrated = None

    def fit(self, X: Any, y: Any, ledger: LedgerLike | None = None) -> Release:
        """Learn from all `horizon` examples and publish one point.

        Every call publishes another point and spends the budget again: pass a `ledger` to count that.
        """
        prepared = self.prepare(self.draft(), X, y)
        self._open(prepared.state, as_ledger(ledger))  # reserves and spends in one step
        return prepared.releases[0]

    def prepare(self, state: State, X: Any, y: Any = None, users: Any = None, now: datetime | None = None) -> Prepared:
        """The release of all examples, in one call, before anything is spent: not to be shown before `commit`."""
        must_be_state(state)
        if users is not None:
            raise InvalidInput("objective perturbation protects single examples. Leave users= out, or use pqftl.")
        source, labels = self.problem.read(X, y)
        self._resumed(state, len(labels))
        if len(labels) != self.horizon:
            raise InvalidInput(
                f"the noise was planned for {self.horizon} examples, got {len(labels)}. State that horizon, and give "
                "all of them in one call."
            )
        clip = fast_clip(self.problem, compiled=True)
        V, labels = self.problem.clip_block(source[:], labels) if clip is None else clip.dense(source[:], labels)
        noisy, sd = of_a_tilted_minimiser(partial(self._minimiser, V, labels), self.tilt, self._output, self.seed)
        points = np.array(noisy)[None, :]
        rounds, noise_sd = np.array([self.horizon]), np.array([sd])
        releases = Releases(rounds, 1, points.copy(), points, noise_sd, self.seed is not None)
        new = following(state, t=self.horizon, k=1, point=points[0].copy(), spent=self.total_cost)
        return Prepared(state, new, releases)

    def draft(self) -> State:
        """The first state of a stream that is not open yet."""
        lineage = SIMULATION if self.seed is not None else new_name()
        return first_state(self.settings, lineage, {}, ({}, {}), self.problem.first_point, {})

    def load(
        self, path: str | os.PathLike[str] | bytes, ledger: LedgerLike | None = None, layers: Layers | None = None
    ) -> State:
        """Resume from a dumped state, which has published already, or has not begun."""
        state = self._as_now(read_state(path, layers))
        self._resumed(state, 0)
        if state.point.shape != (self.problem.size,) or state.point.dtype != np.float64:
            raise damaged(f"the point should be float64 of shape {(self.problem.size,)}", "arrays")
        if ledger is None and state.lineage in IN_MEMORY:
            ledger = IN_MEMORY.ledger_of(state.lineage)
        return self._open(state, as_ledger(ledger))

    def resumed(self, state: State) -> ObjectivePerturbation:
        """The same: nothing of the calibration is stored in a state."""
        return self._resumed(state, 0)

    def _resumed(self, state: State, rows: int) -> ObjectivePerturbation:
        """Reject a state of other settings, or rows after the release."""
        must_be_state(state)
        simulated = state.lineage == SIMULATION
        if state.settings != self.settings or simulated != (self.seed is not None):
            raise StateConflict(OTHER_SETTINGS)
        if state.t and rows:
            raise BudgetExhausted(
                f"round {state.t + 1} lies past the horizon of {self.horizon}, whose one model has been published. "
                "Learn from all examples at once; or as a stream, with partial_fit or pftrl."
            )
        return self

    @property
    def unit(self) -> Unit:
        """An example."""
        return EXAMPLE

    @property
    def first_point(self) -> Array:
        """The problem's data-free point."""
        return self.problem.first_point

    @property
    def last_round(self) -> int:
        """The last row, after which the one model is released."""
        return self.horizon

    def noise_sd(self, k: int) -> float:
        """Standard deviation of the entries of the linear term, which is added to the sum of gradients."""
        return self.tilt_sd

    @property
    def neighbours(self) -> str:
        """The problem's relation."""
        return self.problem.neighbours

    @cached_property
    def timetable(self) -> Timetable:
        """The published round: the last."""
        return Timetable(at([self.horizon]), self.horizon)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claimed budget and the delivered cost."""
        simulated = self.seed is not None
        by = stated_outside(self.problem)
        basis: dict[str, Any] = {"rests_on": "unverified" if by else "proven", "by": by}
        return Guarantee(
            self.privacy, self.total_cost, self.neighbours, "exact", simulated, EXAMPLE, self._other, **basis
        )

    @property
    def _other(self) -> Cost | None:
        """The cost under zero-out instead of replace, or the other way round: `m` and the dimensions are others.

        The linear term is the same, so `m = Gd/s` with the other relation's Gd; and the epsilon is the least for which
        the perturbed objective keeps the delta that it has here.
        """
        others: dict[str, Literal["replace", "zero-out"]] = {"replace": "zero-out", "zero-out": "replace"}
        if self.neighbours not in others:
            return None
        problem = replace(self.problem, neighbours=others[self.neighbours])
        shift, dimensions = problem.gradient_diameter / self.tilt_sd, _dimensions(problem)
        delta = _DELTA_SHARE * self.privacy.delta
        epsilon = epsilon_perturbed(delta, shift, self._hessian, dimensions)
        return self._cost(epsilon, shift, dimensions)

    @cached_property
    def total_cost(self) -> Cost:
        """Cost of the perturbed objective, as one (epsilon, delta), of the noise on the output, and of the sampler.

        One outcome needs linear terms that differ by at most `Gd` between neighbours, `m` standard deviations: outcomes
        for which either lies beyond the sampler's reach are charged.
        """
        return self._cost(self._split[0], self._shift, self._dimensions)

    def log_moment(self, a: float) -> float:
        """`accounting.objective.log_moment` of the perturbed objective, for compositions that add up moments."""
        return log_moment(a, self._shift * (1.0 + 1e-9), self._hessian, self._dimensions)

    @property
    def cost_beside(self) -> Cost:
        """The cost of the noise on the output and of the sampler, which is beside that of the perturbed objective."""
        return total([sampling_cost(self.problem.size, self._shift), self._output.cost(None)])

    def _cost(self, epsilon: float, shift: float, dimensions: int) -> Cost:
        sampled = math.exp(sampling_cost(self.problem.size, 0.0).extra_epsilon)  # the sampler's share of this delta
        delta = delta_perturbed(epsilon, shift, self._hessian, dimensions) * sampled
        objective = Cost(plain_epsilon=epsilon, plain_delta=delta)
        return total([objective, sampling_cost(self.problem.size, shift), self._output.cost(None)])

    @property
    def tilt_sd(self) -> float:
        """Standard deviation of the entries of the linear term; public."""
        return self.problem.gradient_diameter / self._shift

    @property
    def tilt(self) -> NoiseNeeded:
        """The linear term, in steps of its lattice: as many as its scale are a standard deviation, `tilt_sd`."""
        return NoiseNeeded("normal", (self.problem.size,), _SCALE)

    def _minimiser(self, X: Array, y: Array, steps: Integers) -> Array:
        """The minimiser under a linear term that is given in steps of its lattice."""
        p = self.problem
        tilt = np.asarray(steps * (self.tilt_sd / _SCALE))
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
        return _dimensions(self.problem)

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
        return Gaussian().calibrate(certificate, self.timetable, self.problem.size, self._split[1], "exact")

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
        return float(rounding_slack(p, float(summands(self.horizon)), p.ridge, self._longest, steepest, 0.0))


def _dimensions(problem: Problem) -> int:
    """The dimension of the span of the examples that differ: two, or one where they have one row of features."""
    return 2 if problem.neighbours == "replace" else 1


def ridge_for(privacy: Privacy, horizon: int, feature_bound: float = 1.0, size: int | None = None) -> float:
    """A ridge to start from: `2·R²/(n·mu)`, or, for a number d of weights, `c` times as much, c by their signal.

    With `2·R²/(n·mu)` the linear term moves a coefficient that is 0 in all examples by about `Gd/(2R²)`, whatever the
    budget. A larger ridge pulls more than the noise does; a smaller one lets the noise through, which is right where
    there is much more signal than noise: `c = 3.5/sqrt(n·mu/d)`, between 1/4 and 2. Both rules were tuned on Adult,
    Covertype and five tables of a few thousand rows, where half or twice as much changes accuracy by about a point.

    >>> round(ridge_for(Privacy(1.0, 1e-6), 29_305), 6), round(ridge_for(Privacy(1.0, 1e-6), 29_305, size=89), 6)
    (0.000288, 0.000114)
    """
    rows = integer("horizon", horizon)
    ridge = 2.0 * positive("feature_bound", feature_bound) ** 2 / (rows * privacy.mu)
    if size is None:
        return ridge
    return ridge * min(max(3.5 * math.sqrt(integer("size", size) / (rows * privacy.mu)), 0.25), 2.0)


def _at_zero(problem: Problem) -> float:
    """The largest value at 0 of a loss that is known never to be negative; no bound for others."""
    loss, bound = unweighted(problem.loss), problem.label_bound  # weights are 1 at most
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
    if not problem.ridge > 0.0 or not math.isfinite(problem.gradient_diameter + problem.lipschitz):
        raise Unprovable(
            "objective perturbation needs a ridge above 0 and slopes that are bounded everywhere. Use Logistic or "
            "Huber, with a ridge; or pol, with a bounded domain."
        )
    assert isinstance(problem.loss, ScalarLoss)
    check_slopes(problem.loss, math.inf, problem.label_bound)
