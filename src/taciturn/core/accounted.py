"""Streams in ledgers: how the states of a private algorithm are opened, committed and told from old ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.accounting.guarantee_report import guarantee_html
from taciturn.accounting.ledger import Ledger, LedgerLike, as_ledger
from taciturn.accounting.memory_store import IN_MEMORY
from taciturn.errors import BudgetExhausted, StateConflict, StoreUnavailable, Unprovable
from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.ledger_rules import JUST_NOW, ONE_OFF, Learnt
from taciturn.kernel.accounting.unit import Unit, User
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.schedule import Timetable
from taciturn.kernel.stream.state import State, learnt_before
from taciturn.kernel.stream.stream import Described, Prepared


class Accounted(Described):
    """A private algorithm whose streams are entered in ledgers: `Private`, `Staged` and `ObjectivePerturbation`.

    A subclass has the unit and relation of privacy, a seed and the total cost of a stream; it makes the first state of
    a stream, and checks that a state is its own.

    Attributes
    ----------
    is_stream : bool
        Whether it learns row by row, by a learner and a mechanism, and not from all rows at once.
    learner, mechanism, calibrated
        Those of a stream; None of an algorithm that has none.
    stages : tuple
        What is found in the first rows, before the learner begins (`taciturn.methods.staged`).
    """

    seed: int | None
    problem: Any  # a Problem: a field of one subclass, a property of the other
    is_stream = True

    @property
    def stages(self) -> tuple[Any, ...]:
        """What is found in the first rows."""
        return ()

    @property
    def borders(self) -> list[int]:
        """Rows before each stage, and before the learner."""
        return [0, *np.cumsum([stage.rows for stage in self.stages]).tolist()]

    @property
    def rows_of_stages(self) -> int:
        """Rows that the learner does not see."""
        return self.borders[-1]

    @property
    def first_point(self) -> Array:
        """The data-free point, before the first release."""
        raise NotImplementedError

    @property
    def last_round(self) -> int | None:
        """The last round that can be released; None if the stream never ends."""
        raise NotImplementedError

    def noise_sd(self, k: int) -> float:
        """Standard deviation of the noise of release k, on an entry of what it is added to."""
        raise NotImplementedError

    def problem_at(self, state: State) -> Problem:
        """The problem with which the model of `state` predicts; for most algorithms the same at every state."""
        made: Problem = self.problem
        return made

    @property
    def unit(self) -> Unit:
        """Whose data is protected."""
        raise NotImplementedError

    @property
    def neighbours(self) -> str:
        """The relation under which it is protected."""
        raise NotImplementedError

    @property
    def guarantee(self) -> Guarantee:
        """What is claimed and what is delivered, for everything that can ever be published."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return guarantee_html(self.guarantee)

    @property
    def total_cost(self) -> Cost:
        """The cost of everything that one stream can ever publish."""
        raise NotImplementedError

    def log_moment(self, a: float) -> float:
        """The moments of what is neither Gaussian nor zCDP, for compositions that add up moments; by default of none.

        `cost_beside` is the cost of all the rest.
        """
        return 0.0

    @property
    def cost_beside(self) -> Cost:
        """The cost of what `log_moment` leaves out."""
        return self.total_cost

    @property
    def timetable(self) -> Timetable:
        """The published rounds."""
        raise NotImplementedError

    def draft(self) -> State:
        """The first state of a stream that is not open yet."""
        raise NotImplementedError

    def resumed(self, state: State) -> Any:
        """The algorithm as the stream of `state` began, after checking that the state is its own."""
        raise NotImplementedError

    def start(self, ledger: LedgerLike | None = None) -> State:
        """Open a stream: reserve its total cost in `ledger` (by default a new one)."""
        return self.open(self.draft(), ledger)

    def open(self, state: State, ledger: LedgerLike | None = None) -> State:
        """Reserve the total cost of a draft in `ledger` (by default a new one), once, and return the draft."""
        one = self.resumed(state)
        if state.generation:
            raise StateConflict(
                "only a draft is opened, and this stream has begun. Go on with run(), or load() its file."
            )
        opened: State = one._open(state, as_ledger(ledger))
        return opened

    def commit(self, prepared: Prepared) -> None:
        """Use up the state that `prepared` was made from, atomically; then its releases may be shown."""
        used, new = prepared.used, prepared.state
        if not (used.settings == new.settings == self.settings):
            raise StateConflict(
                "these releases were prepared under other settings. Commit them where they were prepared."
            )
        if self.seed is None and new is not used:
            ledger = IN_MEMORY.ledger_of(used.lineage)
            ledger.commit(used.lineage, used.position, new.position, new.spent, self.learnt(new))

    def learnt(self, state: State) -> Learnt:
        """In which periods the rows of a state were learnt, and whether all that it can ever publish is published."""
        unit = self.unit
        finished = self.timetable.due(state.k + 1) is None
        if not isinstance(unit, User) or not isinstance(unit.period, str) or state.users is None or not state.t:
            return ONE_OFF if finished else JUST_NOW
        return Learnt(state.users.first, state.users.period, finished)

    def is_live(self, state: State) -> bool:
        """Whether `state` is the newest of its stream in a ledger of this process; False for a simulation."""
        if self.seed is not None:
            return False
        total_cost = self.resumed(state).total_cost
        neighbours = self.neighbours
        try:  # opening a stream that the ledger knows checks its position, and changes nothing
            ledger = IN_MEMORY.ledger_of(state.lineage)
            at = state.position
            ledger.open(state.lineage, total_cost, neighbours, state.spent, at, unit=self.unit.name)
        except StateConflict:
            return False
        return True

    def _open(self, state: State, ledger: Ledger, learnt: Learnt | None = None) -> State:
        """Enter `state` into a ledger; its rows were learnt at any time before, if `learnt` does not say when."""
        if self.seed is None:
            known = state.lineage in IN_MEMORY
            if not IN_MEMORY.enter(state.lineage, ledger).same_as(ledger):
                raise StateConflict("this stream is open in another ledger of this process. Leave out ledger=.")
            neighbours = self.neighbours
            try:
                reserved = self.total_cost
                unit = self.unit.name
                if learnt is None:
                    learnt = learnt_before(state)._replace(finished=self.learnt(state).finished)
                ledger.open(
                    state.lineage, reserved, neighbours, state.spent, state.position, self.recorded, unit, learnt
                )
            except (BudgetExhausted, StoreUnavailable, Unprovable):  # nothing is open: another ledger may take it
                if not known:
                    IN_MEMORY.leave(state.lineage, ledger)
                raise
        return state
