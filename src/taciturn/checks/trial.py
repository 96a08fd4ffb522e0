"""A learner with what it is tried on: examples, and the mechanism that accepts its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from taciturn._util.arrays import Array
from taciturn.accounting.gdp import Privacy
from taciturn.checks.neighbours import first_round
from taciturn.checks.streams import examples
from taciturn.core.private import Private
from taciturn.core.protocols import Learner, Mechanism
from taciturn.core.schedule import Schedule, every
from taciturn.mechanisms.blt import BLT
from taciturn.mechanisms.exponential import Exponential
from taciturn.mechanisms.gaussian import Gaussian

MECHANISMS: dict[str, Mechanism] = {"l2/tail": Gaussian(), "l2/entry": BLT(), "range/tail": Exponential()}
BUDGET = Privacy(epsilon=1.0, delta=1e-6)


@dataclass(frozen=True)
class Trial:
    """A learner, how many examples it is tried on, and how many searches are made for worse neighbours."""

    learner: Learner
    mechanism: Mechanism | None = None
    effort: int = 1

    @cached_property
    def rows(self) -> int:
        """A dozen, after the first that can move a row."""
        return min(first_round(self.learner), 500) + 11

    @property
    def examples(self) -> tuple[Array, Array]:
        """As they come; anew each time, so that nothing that is written to them is seen by another check."""
        return examples(self.learner.problem, self.rows)

    @property
    def bounded(self) -> tuple[Array, Array]:
        """As the problem lets them in."""
        return self.learner.problem.clip(*self.examples)

    def private(self, schedule: Schedule | None = None, **settings: Any) -> Private:
        """The learner made private, for as many examples as there are."""
        mechanism = self.mechanism or MECHANISMS[self.learner.certificate.kind]
        return Private(self.learner, mechanism, schedule or every(1), BUDGET, self.rows, **settings)
