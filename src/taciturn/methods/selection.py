"""Private selection: of several settings the best by held-out rows, and a private model of it, as one release.

A public rule cuts the rows of a table into training rows and validation rows. Every candidate learns a *pilot* from all
training rows, with a small share of the budget. Of each validation row the losses of all pilots, between 0 and 1, are
added up, and the exponential mechanism chooses a candidate by the sums. The winner learns from all training rows again,
with the rest of the budget. Its settings and this model are published; pilots and losses are not.

**What it costs.** Let the pilots and the winner's model together be (epsilon, delta)-private for a training row,
whichever candidate wins, and the choice for a validation row. Then the selection is (epsilon, delta)-private. *Proof.*
Two neighbouring tables differ in one row, whose number is fixed before anything is drawn, and which is a training row
or a validation row, by a rule that reads no data. If it is a training row, the choice follows from the pilots and from
validation rows that are the same in both tables, so it is post-processing of the pilots, and the winner's model is the
next step of an adaptive composition. If it is a validation row, the pilots have the same law in both tables, given
their values the choice is (epsilon, delta)-private, and the model follows from the choice and from training rows that
are the same: one row moves the sums of two candidates by at most 2 relative to each other, or 1 if it is zeroed out
(`taciturn.EWOO`, `taciturn.methods.exponential`). The average over the pilots, with the same weights in both tables,
keeps epsilon and delta. ∎ So training and choice may cost the full budget each. This is for a table, whose rows are all
there at once, and for one row: a user with rows in both parts pays for both.

**Any winner.** Which model is learnt last depends on the data, so its step is charged as a cost that covers all of
them. If all have Gaussian noise, that is the largest mu², and the largest of every other part: whoever wins, the last
step has at most the hockey-stick divergence of that cost at every epsilon, and composition needs no more. If a
candidate learns by objective perturbation, moments of all steps are added up (`taciturn.methods.objective`), and for
the last one the largest moment of any winner is taken, at each order.

**Shares.** Pilots have a share r of the budget together, two fifths by default, in mu²: each of g pilots has the budget
of a Gaussian with `mu·sqrt(r/g)`, and the winner that of one with `mu·sqrt(1 - r)`. For three candidates that is .37
and .77 of the budget's mu. If a candidate learns by objective perturbation, all of these are multiplied by a `scale`
below 1, for which the moments fit the budget (`fitting`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from taciturn.accounting.ledger import LedgerLike, as_ledger
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, Unprovable, between_0_and_1, expect, integer, positive
from taciturn.kernel.accounting.cost import Cost, total
from taciturn.kernel.accounting.gdp import SMALLEST, Privacy, epsilon_of
from taciturn.kernel.accounting.guarantee import Guarantee, least_certain
from taciturn.kernel.accounting.unit import EXAMPLE, Unit
from taciturn.kernel.stream.fingerprint import described
from taciturn.kernel.stream.schedule import at
from taciturn.methods.ewoo import experts
from taciturn.methods.exponential import Exponential
from taciturn.methods.objective import epsilon_of_moments
from taciturn.methods.objective_perturbation import ObjectivePerturbation

_Made = TypeVar("_Made")
PILOT = 0.4
"""The share of the budget for pilots."""

_KEPT = 1.0 - 2.0**-10  # share of delta that parts may spend: the rest lets the sum fit its budget in spite of rounding
_SAFE = 1.0 - 1e-6  # candidates are planned this far inside their shares


@dataclass(frozen=True)
class Selection:
    """The cost of publishing a private model of one of several settings, chosen on rows that no model has learnt from.

    Parameters
    ----------
    pilots : tuple of Private or ObjectivePerturbation
        How each candidate is learnt to be compared, from the same training rows; none if there is one candidate.
    finals : tuple of Private or ObjectivePerturbation
        How each candidate is learnt again, from the same rows, if it wins.
    rows : int
        Number of validation rows.
    privacy : Privacy
        The budget of training and choice together.
    seed : int, optional
        Of the choice, for simulations.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pftrl
    >>> privacy = Privacy(1.0, 1e-6)
    >>> each, last = shares(privacy, candidates=2)
    >>> problems = [Problem(Logistic(), L2Ball(radius), dimension=5) for radius in (1.0, 10.0)]
    >>> pilots = tuple(pftrl(problem, share, horizon=1_000) for problem, share in zip(problems, each))
    >>> finals = tuple(pftrl(problem, last, horizon=1_000) for problem in problems)
    >>> selection = Selection(pilots, finals, rows=100, privacy=privacy)
    >>> selection.guarantee.proven, selection.choose([[0.0, 1.0]] * 100)
    (True, 0)
    """

    pilots: tuple[Private | ObjectivePerturbation, ...]
    finals: tuple[Private | ObjectivePerturbation, ...]
    rows: int
    privacy: Privacy
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pilots", tuple(self.pilots))
        object.__setattr__(self, "finals", tuple(self.finals))
        object.__setattr__(self, "rows", integer("rows", self.rows))
        if self.seed is not None:
            object.__setattr__(self, "seed", integer("seed", self.seed, least=0))
        expect("privacy", self.privacy, isinstance(self.privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        learnt = (*self.pilots, *self.finals)
        if not self.finals or len({each.neighbours for each in learnt}) > 1:
            raise InvalidInput("a selection needs candidates, all under one neighbour relation. State it alike.")
        if len(self.pilots) != (len(self.finals) if len(self.finals) > 1 else 0):
            raise InvalidInput(
                f"{len(self.finals)} candidates are compared by a pilot each, and one needs none, got "
                f"{len(self.pilots)} pilots. Give one for each candidate."
            )
        if any(each.unit != EXAMPLE for each in learnt):
            raise Unprovable(
                "a selection is proven for rows: a user with rows in both parts would pay for both. Choose by public "
                "rules (taciturn.plan), or on public data."
            )
        if not self.guarantee.proven:
            raise Unprovable(
                f"what is published would cost {self.total_cost}, more than {self.privacy}. Plan the candidates with "
                "the budgets of taciturn.methods.selection.shares."
            )

    @property
    def unit(self) -> Unit:
        """An example."""
        return EXAMPLE

    @property
    def neighbours(self) -> str:
        """The relation of all candidates."""
        return self.finals[0].neighbours

    @cached_property
    def choice(self) -> Private | None:
        """The exponential mechanism over losses of validation rows; None if there is nothing to choose.

        If labels alone are protected, a row's losses are replaced by those with another label: replaced, in particular.
        """
        if len(self.finals) < 2:
            return None
        relation: Literal["replace", "zero-out"] = "zero-out" if self.neighbours == "zero-out" else "replace"
        learner = experts(len(self.finals), neighbours=relation)
        return Private(learner, Exponential(), at([self.rows]), self._each_part, self.rows, seed=self.seed)

    def choose(self, losses: Any) -> int:
        """The number of the winner, by a table of losses: a row for each validation row, a column for each candidate.

        Every call is one more release: it is `charge` that is for one.
        """
        return 0 if self.choice is None else int(self.choice.fit(losses).point.argmax())

    @property
    def _each_part(self) -> Privacy:
        """The budget of training, and of the choice."""
        return Privacy(self.privacy.epsilon, self.privacy.delta * _KEPT)

    @cached_property
    def total_cost(self) -> Cost:
        """The larger cost of the two parts, as one (epsilon, delta)."""
        delta = self._each_part.delta
        choice = 0.0 if self.choice is None else self.choice.total_cost.epsilon(delta)
        return Cost(plain_epsilon=max(self._training_epsilon(delta), choice), plain_delta=delta)

    def _training_epsilon(self, delta: float) -> float:
        """What the pilots and any winner cost together, at `delta`."""
        if len(self.finals) == 1 or all(each.total_cost.plain_epsilon == 0.0 for each in (*self.pilots, *self.finals)):
            last = _largest([each.total_cost for each in self.finals])
            return total([*(each.total_cost for each in self.pilots), last]).epsilon(delta)
        pilots, finals = ([_moments_of(each) for each in part] for part in (self.pilots, self.finals))
        beside = total([*(cost for _, cost in pilots), _largest([cost for _, cost in finals])])
        left = (delta - beside.extra_delta) * math.exp(-beside.extra_epsilon)
        if left <= SMALLEST:
            return math.inf

        def moments(a: float) -> float:
            return math.fsum(one(a) for one, _ in pilots) + max(one(a) for one, _ in finals)

        return epsilon_of_moments(left, moments) + beside.extra_epsilon

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claimed budget and the delivered cost."""
        made = [each.guarantee for each in (*self.pilots, *self.finals, *([self.choice] if self.choice else []))]
        least = least_certain(made)
        basis: dict[str, Any] = {"rests_on": least.rests_on, "by": least.by}
        return Guarantee(self.privacy, self.total_cost, self.neighbours, "exact", self.simulated, **basis)

    @property
    def simulated(self) -> bool:
        """Whether any noise comes from a seed."""
        return self.seed is not None or any(each.seed is not None for each in (*self.pilots, *self.finals))

    def charge(self, ledger: LedgerLike | None = None) -> None:
        """Spend the cost in a ledger, before the winner is shown, or reject it; simulations are free."""
        if not self.simulated:
            as_ledger(ledger).charge(self.total_cost, self.neighbours, described(self), self.unit.name)


def _moments_of(each: Private | ObjectivePerturbation) -> tuple[Callable[[float], float], Cost]:
    """The moments of a step, at each order, and the cost beside them, of the sampler."""
    cost = each.cost_beside
    if cost.plain_epsilon > 0.0:
        raise Unprovable("a candidate states its cost as one (epsilon, delta), and a selection adds up moments.")
    rho = cost.rho + cost.mu_squared / 2.0
    beside = Cost(extra_epsilon=cost.extra_epsilon, extra_delta=cost.extra_delta)
    return lambda a: a * (a + 1.0) * rho + each.log_moment(a), beside


def _largest(costs: Sequence[Cost]) -> Cost:
    """The largest of every part."""
    return Cost(*map(max, zip(*(cost.parts for cost in costs), strict=True)))


def fitting(make: Callable[[float], _Made]) -> _Made:
    """What `make` returns for the largest scale, to a hundredth, whose shares fit the budget: 1, if that does.

    `make` makes a `Selection` of the shares of a scale, which raises `Unprovable` if they do not fit.

    >>> from taciturn import Logistic, Problem, WholeSpace
    >>> problem, privacy = Problem(Logistic(), WholeSpace(), dimension=2, ridge=1.0), Privacy(1.0, 1e-6)
    >>> def make(scale):
    ...     each, last = shares(privacy, 2, scale=scale)
    ...     pilots, finals = ([ObjectivePerturbation(problem, one, 100) for one in part] for part in (each, [last] * 2))
    ...     return Selection(tuple(pilots), tuple(finals), 10, privacy)
    >>> round(fitting(make).finals[0].privacy.epsilon, 2)
    0.64
    """
    try:
        return make(1.0)
    except Unprovable:
        low, high, best = 0.0, 1.0, None
    for _ in range(7):
        scale = (low + high) / 2.0
        try:
            best, low = make(scale), scale
        except Unprovable:
            high = scale
    return make(low) if best is None else best


def shares(
    privacy: Privacy, candidates: int, pilot: float = PILOT, scale: float = 1.0
) -> tuple[list[Privacy], Privacy]:
    """The budget of each pilot, and of the winner, by the rule of this module; one candidate has no pilot.

    `pilot` is the share of all pilots together. With a `scale` of 1 they keep `privacy` together, if all have Gaussian
    noise.

    >>> pilots, winner = shares(Privacy(1.0, 1e-6), 3)
    >>> [round(each.epsilon, 3) for each in (*pilots, winner)]
    [0.34, 0.34, 0.34, 0.76]
    """
    pilot, scale = between_0_and_1("pilot", pilot), positive("scale", scale)
    whole = Privacy(privacy.epsilon * _SAFE, privacy.delta * _KEPT * _SAFE)
    candidates = integer("candidates", candidates)
    if candidates == 1:
        return [], whole
    each, last = (math.sqrt(part) * scale for part in (pilot / candidates, 1.0 - pilot))
    one, winner = (Privacy(epsilon_of(whole.delta, whole.mu * part * _SAFE), whole.delta) for part in (each, last))
    return [one] * candidates, winner
