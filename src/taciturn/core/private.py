"""A private learner: a learner, a mechanism, a schedule and a budget, wired by `Private`.

What it releases, and how much noise is in it, is `taciturn.kernel.stream.stream.Stream`; here are its streams in
ledgers, and what its noise is worth to others: under the other relation, for another unit, over several periods.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from taciturn.accounting.ledger import LedgerLike, as_ledger
from taciturn.accounting.memory_store import IN_MEMORY
from taciturn.core.accounted import Accounted
from taciturn.errors import InvalidInput, TaciturnError, integer
from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.ledger_rules import ONE_OFF
from taciturn.kernel.accounting.unit import Unit, User
from taciturn.kernel.noise.sampling import sampling_cost
from taciturn.kernel.stream.block_sums import Admission, BlockSums
from taciturn.kernel.stream.participation import Layers
from taciturn.kernel.stream.protocols import Certificate
from taciturn.kernel.stream.release import Release, Releases
from taciturn.kernel.stream.state import State, following, new_name
from taciturn.kernel.stream.stream import Stream, must_be_state


@dataclass(frozen=True)
class Private(Stream, Accounted):
    """A private learner: the sequence of all its releases satisfies the budget `privacy`, on adaptive streams too.

    Parameters
    ----------
    learner, mechanism, schedule
        The algorithm, the mechanism that adds noise to its statistics, and the rounds that publish.
    privacy : Privacy
        The total budget. With a calibration of the paper's, the paper's own parameters.
    horizon : int, optional
        Number of examples planned for; later ones are rejected. Without it, a stream ends where its mechanism does.
    calibration : {"exact", "paper-printed", "paper-proven"}
        How the noise is chosen; `guarantee` states what it claims and what it delivers.
    allow_broken : bool
        Accept a calibration that delivers less than it claims.
    seed : int, optional
        For simulations and tests: seeded noise protects no data.
    compiled : bool
        Use compiled passes for classes of this package; other classes, and subclasses, run the definition. Both release
        the same, up to a lattice step.
    unit : Example or User
        Whose data is protected. With `User(rows=4)` every call takes `users=`, an id for each row, and at most so many
        rows of a user count.

    Examples
    --------
    >>> from taciturn import IGD, Gaussian, L2Ball, Logistic, Privacy, Private, Problem, every
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> private = Private(IGD(problem), Gaussian(), every(2), Privacy(1.0, 1e-6), horizon=4)
    >>> state, releases = private.run(private.start(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> state.t, [release.t for release in releases]
    (3, [2])
    """

    def step(
        self,
        state: State,
        X: Any,
        y: Any = None,
        users: Any = None,
        now: datetime | None = None,
    ) -> tuple[State, Release | None]:
        """Learn from the rows up to the next published round; uses up `state`."""
        must_be_state(state)
        X = list(X) if isinstance(X, Iterator) else X
        due = self.timetable.due(state.k + 1)
        rows = len(self.problem.read(X, y)[1])
        last = state.t + rows
        if due is not None and last > due:
            self._check(state, rows)
            raise InvalidInput(f"step() ends at the next published round, {due}; these rows reach {last}. Use run().")
        new, releases = self.run(state, X, y, users, now)
        return new, releases[0] if len(releases) else None

    def run(
        self,
        state: State,
        X: Any,
        y: Any = None,
        users: Any = None,
        now: datetime | None = None,
    ) -> tuple[State, Releases]:
        """Learn from any number of examples, and return all releases that the schedule makes of them; uses up `state`.

        `users` has an id for each row, or a column of ids for each owner of a row, if the unit is a user; `now` is the
        public time that decides the period, by default the clock's.

        A rejected row, or an interruption before the commit, leaves `state` as it was: nothing is spent before there
        are releases to show. An interruption after the commit loses both, for `state` is used up by then; a caller that
        must survive one calls `prepare`, stores what it returns, and then calls `commit`.
        """
        prepared = self.prepare(state, X, y, users, now)
        self.commit(prepared)
        return prepared.state, prepared.releases

    def run_sums(
        self, state: State, blocks: Iterable[BlockSums], admission: Admission | None = None
    ) -> tuple[State, Releases]:
        """Learn from exact integer sums in the place of rows, for learners of sums; uses up `state`.

        `blocks` are sums that `block_statistics` has made of the next rows, by the learner `learner_at(state)`. Each
        ends at or before the next released round. Parts of one block may come in any order, and the blocks one after
        the other; the last may be incomplete, and waits in the state. Releases, state and cost are those of `run` on
        the rows, to the last bit: a block's statistic is the same integer vector (`block_statistics` has the proof), so
        certificate and noise are the same. Private FTRL takes gradients at the point released last, so that a call has
        one release at most. IGD, GIGA, FTL and EWOO are rejected.

        Whoever makes the sums clips every example and sees it: that is trusted, as this process is. What is checked
        here is that sums are of this learner with these bounds, not larger than clipped examples can make them, and
        that there are as many examples as rounds.

        If the unit is a user, which rows count is decided for the stream as a whole, and committed with it:
        `admission` is what `admit` decided for these rows, and the sums must leave out the rows that it excludes. Other
        numbers of rows, or of rows left out, are rejected; which rows were left out is trusted, as clipping is.

        >>> from taciturn import Privacy, block_statistics, every, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=4, schedule=every(2))
        >>> sums = block_statistics(private.learner, None, [[0.5], [0.25]])
        >>> state, releases = private.run_sums(private.start(), [sums])
        >>> state.t, len(releases)
        (2, 1)
        """
        prepared = self.prepare_sums(state, blocks, admission)
        self.commit(prepared)
        return prepared.state, prepared.releases

    def fit(self, X: Any, y: Any = None, ledger: LedgerLike | None = None, users: Any = None) -> Release:
        """Learn from a data set, as a new stream, and return the last release (not `self`).

        Every call is a new stream and is charged in full: name a `ledger` to account for several.
        """
        source, labels = self.problem.read(list(X) if isinstance(X, Iterator) else X, y)
        rows = len(labels)
        horizon = self.timetable.horizon
        if (horizon or rows) < rows or not self.timetable.publishes_by(rows, 1):
            raise InvalidInput(
                f"fit() got {rows} examples, but the schedule is for another number: it publishes first at round "
                f"{self.timetable.due(1)} and ends at {horizon or 'no horizon'}. State horizon={rows}."
            )
        prepared = self._prepared(self.draft(), source, labels, users)  # nothing is reserved if a row is rejected
        self._open(prepared.state, as_ledger(ledger), ONE_OFF)  # reserves and spends in one step; the stream has ended
        return prepared.releases[-1]

    def load(
        self, path: str | os.PathLike[str] | bytes, ledger: LedgerLike | None = None, layers: Layers | None = None
    ) -> State:
        """Resume from a dumped state; an old snapshot of a stream that this process or `ledger` knows is rejected.

        `path` names a file, or is its content, as bytes. `layers` are users' records that a store has beside it.
        """
        state = self.read(path, layers)
        if ledger is None and state.lineage in IN_MEMORY:
            ledger = IN_MEMORY.ledger_of(state.lineage)
        return self.resumed(state)._open(state, as_ledger(ledger))

    def fork(self, state: State, ledger: LedgerLike | None = None) -> State:
        """A second stream from `state` on, charged in full, in the same ledger or in `ledger`."""
        one = self.resumed(state)
        if self.seed is not None:
            return state
        ledger = IN_MEMORY.ledger_of(state.lineage) if ledger is None else as_ledger(ledger)
        return one._open(following(state, lineage=new_name(), spent=FREE), ledger)

    @property
    def certificate(self) -> Certificate:
        """The learner's certificate, for all rows of one unit of privacy; with the paper's noise if that is stated."""
        own = super().certificate
        if self.calibration == "exact":
            return own
        from taciturn.methods.readings import in_the_paper  # here: it knows all learners that the paper names

        return in_the_paper(own, self.learner)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is claimed and what is delivered, for everything that can ever be published."""
        return self._guaranteed(self._under_the_other_relation)

    @property
    def _under_the_other_relation(self) -> Cost | None:
        """The cost of this noise under zero-out instead of replace, or the other way round, if it is known."""
        others: dict[str, Literal["replace", "zero-out"]] = {"replace": "zero-out", "zero-out": "replace"}
        if self.neighbours not in others:
            return None
        try:  # a learner of one's own may be no dataclass, or certify one relation only
            learner = self.learner.on_problem(replace(self.problem, neighbours=others[self.neighbours]))
            return self._cost_for(learner.certificate.for_unit(self.unit, self.timetable))
        except (TaciturnError, ArithmeticError, TypeError, ValueError):
            return None

    def cost_for(self, unit: Unit) -> Cost:
        """The cost for another unit, with the noise of this stream, exactly; for sums.

        >>> from taciturn import Example, Privacy, User, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=400, unit=User(4))
        >>> round(private.cost_for(User(4)).mu / private.cost_for(Example()).mu, 2)
        3.08
        """
        certificate = self.learner.certificate.for_unit(unit, self.timetable)
        if certificate.reach != "entry":
            raise InvalidInput("what another unit costs with this noise is known for sums by taciturn's strategies.")
        return self._cost_for(certificate)

    def _cost_for(self, certificate: Certificate) -> Cost:
        """The cost of this stream's noise for neighbours that move its statistics as this certificate says.

        Statistics are what they are, of the magnitude and the norm in the learner's own certificate; clipping moves no
        two of them apart.
        """
        mine = self.certificate
        return self.calibrated.cost_for(replace(certificate, magnitude=mine.magnitude, norm=mine.norm))

    def user_over(self, periods: int) -> Cost:
        """The cost for a user who contributes in so many periods, with the noise of this stream.

        For sums it is exact, for all their rows as one pattern. For iterates, `periods` times the mu of one period, by
        group privacy.

        >>> from taciturn import Privacy, User, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=400, unit=User(1, period=100))
        >>> round(private.user_over(4).mu / private.user_over(1).mu, 2)
        3.59
        """
        periods = integer("periods", periods)
        if not isinstance(self.unit, User) or self.unit.period is None:
            raise InvalidInput("only a stream with periods has users of several. State unit=User(rows=4, period=...).")
        if self.certificate.reach == "entry":
            return self.cost_for(replace(self.unit, rows=self.unit.rows * periods, period=None))
        if self.timetable.horizon is None:
            raise InvalidInput("what several periods cost is known for sums, and for iterates with a horizon.")
        one = self.calibrated.cost(None)
        draws = self.timetable.count * self.learner.statistic_size
        group = Cost(one.mu_squared * periods**2, one.rho * periods**2)
        return total([group, sampling_cost(draws, periods * one.mu)])
