"""Private selection: one of several private models, chosen on held-out rows, as one release.

A public rule cuts the rows of a table into training rows and validation rows. Every candidate learns from all training
rows. Of each validation row the losses of all candidates, between 0 and 1, are added up, and the exponential mechanism
chooses a candidate by the sums. The winner and its model are published; other models, and all losses, are not.

**What it costs.** Let the candidates' models together be (epsilon, delta)-private for a training row, and the choice
for a validation row. Then the selection is (epsilon, delta)-private. *Proof.* Two neighbouring tables differ in one
row, whose number is fixed before anything is drawn, and which is a training row or a validation row, by a rule that
reads no data. If it is a training row, what is published follows from the models and from validation rows that are the
same in both tables: post-processing. If it is a validation row, the models have the same law in both tables, and given
their values the choice is (epsilon, delta)-private: one row moves the sums of two candidates by at most 2 relative to
each other, or 1 if it is zeroed out (`taciturn.EWOO`, `taciturn.mechanisms.exponential`). The average over the models,
with the same weights in both tables, keeps epsilon and delta. ∎ So training and choice may cost the full budget each.
This is for a table, whose rows are all there at once, and for one row: a user with rows in both parts pays for both.

**Shares.** Costs of candidates on the same rows add: g of them with Gaussian noise of parameter mu each are
sqrt(g)·mu-GDP together, and m by objective perturbation add their (epsilon, delta) plainly. With `w = m + sqrt(g)`, one
of the m has `epsilon/w` and `delta/w`, and the g together `sqrt(g)` times that, in equal parts of mu². So each of three
candidates with Gaussian noise has 1/1.73 of the budget's mu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from taciturn.accounting.cost import Cost, total
from taciturn.accounting.gdp import Privacy, epsilon_of
from taciturn.accounting.guarantee import Guarantee
from taciturn.accounting.ledger import LedgerLike, as_ledger
from taciturn.accounting.unit import EXAMPLE, Unit
from taciturn.algorithms.objective_perturbation import ObjectivePerturbation
from taciturn.core.private import Private
from taciturn.core.schedule import at
from taciturn.core.state import described
from taciturn.errors import InvalidInput, Unprovable, expect, integer
from taciturn.learners.ewoo import experts
from taciturn.mechanisms.exponential import Exponential

_KEPT = 1.0 - 2.0**-10  # share of delta that parts may spend: the rest lets the sum fit its budget in spite of rounding
_SAFE = 1.0 - 1e-6  # candidates are planned this far inside their shares


@dataclass(frozen=True)
class Selection:
    """The cost of publishing one of several private models, chosen on rows that none of them has learnt from.

    Parameters
    ----------
    candidates : tuple of Private or ObjectivePerturbation
        How each is learnt, from the same training rows.
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
    >>> each = shares(privacy, [True, True])
    >>> problems = [Problem(Logistic(), L2Ball(radius), dimension=5) for radius in (1.0, 10.0)]
    >>> made = [pftrl(problem, share, horizon=1_000) for problem, share in zip(problems, each)]
    >>> selection = Selection(tuple(made), rows=100, privacy=privacy)
    >>> selection.guarantee.proven, selection.choose([[0.0, 1.0]] * 100)
    (True, 0)
    """

    candidates: tuple[Private | ObjectivePerturbation, ...]
    rows: int
    privacy: Privacy
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))
        object.__setattr__(self, "rows", integer("rows", self.rows))
        if self.seed is not None:
            object.__setattr__(self, "seed", integer("seed", self.seed, least=0))
        expect("privacy", self.privacy, isinstance(self.privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        if not self.candidates or len({each.neighbours for each in self.candidates}) > 1:
            raise InvalidInput("a selection needs candidates, all under one neighbour relation. State it alike.")
        if self.neighbours == "add-remove":
            raise Unprovable(
                "a selection takes public numbers of training and validation rows, and 'add-remove' keeps them secret. "
                "Use neighbours='zero-out'."
            )
        if any(each.unit != EXAMPLE for each in self.candidates):
            raise Unprovable(
                "a selection is proven for rows: a user with rows in both parts would pay for both. Choose by public "
                "rules (taciturn.plan), or on public data."
            )
        if not self.guarantee.proven:
            raise Unprovable(
                f"what is published would cost {self.total_cost}, more than {self.privacy}. Plan the candidates with "
                "the budgets of taciturn.algorithms.selection.shares."
            )

    @property
    def unit(self) -> Unit:
        """An example."""
        return EXAMPLE

    @property
    def neighbours(self) -> str:
        """The relation of all candidates."""
        return self.candidates[0].neighbours

    @cached_property
    def choice(self) -> Private | None:
        """The exponential mechanism over losses of validation rows; None if there is nothing to choose.

        If labels alone are protected, a row's losses are replaced by those with another label: replaced, in particular.
        """
        if len(self.candidates) < 2:
            return None
        relation: Literal["replace", "zero-out"] = "zero-out" if self.neighbours == "zero-out" else "replace"
        learner = experts(len(self.candidates), neighbours=relation)
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
        parts = [total(each.total_cost for each in self.candidates)]
        if self.choice is not None:
            parts.append(self.choice.total_cost)
        return Cost(plain_epsilon=max(part.epsilon(delta) for part in parts), plain_delta=delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claimed budget and the delivered cost."""
        return Guarantee(self.privacy, self.total_cost, self.neighbours, "exact", self.simulated)

    @property
    def simulated(self) -> bool:
        """Whether any noise comes from a seed."""
        return self.seed is not None or any(each.seed is not None for each in self.candidates)

    def charge(self, ledger: LedgerLike | None = None) -> None:
        """Spend the cost in a ledger, before the winner is shown, or reject it; simulations are free."""
        if not self.simulated:
            as_ledger(ledger).charge(self.total_cost, self.neighbours, described(self), self.unit.name)


def shares(privacy: Privacy, gaussian: Sequence[bool]) -> list[Privacy]:
    """The budget of each candidate, for which all together keep `privacy`, by the rule of this module.

    `gaussian` says which candidates have Gaussian noise; the others are those of objective perturbation.

    >>> [round(each.epsilon, 3) for each in shares(Privacy(1.0, 1e-6), [True, True, True])]
    [0.554, 0.554, 0.554]
    >>> [round(each.epsilon, 3) for each in shares(Privacy(1.0, 1e-6), [False, True, True])]
    [0.414, 0.405, 0.405]
    """
    g = sum(gaussian)
    weight = len(gaussian) - g + math.sqrt(g)
    one = Privacy(privacy.epsilon / weight * _SAFE, privacy.delta * _KEPT / weight * _SAFE)
    if not g:
        return [one] * len(gaussian)
    group = Privacy(one.epsilon * math.sqrt(g), one.delta * math.sqrt(g))
    member = Privacy(epsilon_of(group.delta, group.mu / math.sqrt(g) * _SAFE), group.delta)
    return [member if each else one for each in gaussian]
