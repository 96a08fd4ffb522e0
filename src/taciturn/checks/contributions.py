"""Checks of an entry learner of one's own: its contributions depend on their row alone, and can be read.

That contributions are clipped, and so the certificate, needs no check: it is enforced
(`taciturn.kernel.learners.contributions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.checks.streams import examples, generator, members
from taciturn.checks.suite import demand
from taciturn.kernel.arrays import Array, fixed
from taciturn.kernel.learners.contributions import Contributions, EntryLearner

_ROWS = 80
_ORDERS = 4


@dataclass(frozen=True)
class ContributionCase:
    """An entry learner as it was written, not the copies that `Private` makes of it, and rows for it."""

    learner: EntryLearner

    @cached_property
    def sums(self) -> Contributions:
        """What clips and adds up its contributions."""
        return Contributions(self.learner)

    @cached_property
    def calls(self) -> list[tuple[Array, float, Array]]:
        """Clipped rows with influence, labels and released points."""
        problem = self.learner.problem
        V, y = problem.clip(*examples(problem, _ROWS))
        if hasattr(self.learner, "point_size") or hasattr(self.learner, "first_point"):
            points = np.zeros((1, int(getattr(self.learner, "point_size", problem.size))))
        else:
            points = members(problem.domain, problem.size, 8)
        at = [(v, float(label), points[i % len(points)]) for i, (v, label) in enumerate(zip(V, y, strict=True))]
        return [each for each in at if each[0].any()]

    def answer(self, i: int) -> Any:
        """What the learner itself returns for the i-th call, or the type of what it raises."""
        v, label, point = self.calls[i]
        try:
            with np.errstate(all="ignore"):
                return self.learner.contribution(fixed(v.copy()), label, fixed(point.copy()))
        except Exception as problem:
            return type(problem)


def contribution_depends_on_its_row_alone(case: ContributionCase) -> str:
    """A tenth of the rows gives the same contributions, to the bit, when they are repeated in another order.

    `Private` calls a learner on copies, so what it keeps on itself is gone; what it keeps in globals, in attributes of
    its class or in files is not, and a row that it has seen would move contributions of later rows.
    """
    rng, count = generator(3), len(case.calls)
    first = [_bits(case.answer(i)) for i in range(count)]
    tenth = max(count // 10, 4)
    repeated = 0
    for order in range(_ORDERS):
        for i in map(int, rng.permutation(count)[:tenth]):
            if order % 2:
                case.answer(int(rng.integers(count)))  # another row before it
            again = _bits(case.answer(i))
            repeated += 1
            demand(
                again == first[i],
                "the contribution of a row is another one when it is computed again, after other rows",
                "Let it depend on the row, the label, the released point and public settings alone, and draw nothing.",
            )
    return f"{repeated} contributions repeated"


def contributions_can_be_read(case: ContributionCase) -> str:
    """Every contribution is of the form that was stated; one that is not counts as 0, in silence.

    An exception counts as 0, too: a stream that told of it would tell something of a row.
    """
    form = case.sums.form
    unread, clipped = [], 0
    for i, call in enumerate(case.calls):
        answer = case.answer(i)
        made = case.sums.units_of(*call)
        if made is None and answer is not None:
            raised = isinstance(answer, type) and issubclass(answer, Exception)
            unread.append(f"raises {answer.__name__}" if raised else f"returns {_shape(answer)}")
        elif made is not None and np.shape(answer) == (form.size,):
            clipped += bool(np.linalg.norm(np.asarray(answer, dtype=np.float64)) > form.bound * (1.0 + 1e-9))
    demand(
        not unread,
        f"for {len(unread)} of {len(case.calls)} rows it {unread[0] if unread else ''}, and these rows count as 0",
        f"Return what {type(form).__name__}({form.size}) takes, finite, for every clipped row.",
    )
    return f"{clipped} of {len(case.calls)} contributions are longer than the bound, and clipped"


def _bits(answer: Any) -> Any:
    """What two equal answers have in common."""
    if answer is None or isinstance(answer, type):
        return answer
    made = np.asarray(answer)
    return str(made.dtype), made.shape, made.tobytes()


def _shape(answer: Any) -> str:
    made = np.asarray(answer)
    finite = made.dtype.kind in "iub" or (made.dtype.kind == "f" and bool(np.isfinite(made).all()))
    return f"{'' if finite else 'not finite '}{made.dtype} of shape {made.shape}"


CHECKS = (contribution_depends_on_its_row_alone, contributions_can_be_read)
