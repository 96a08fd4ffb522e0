"""The ledger of a population: what was reserved and spent on these people, over all models that learn from them.

Every stream, one-off fit and search on the same people writes to one ledger. It is monotone, and it closes the two ways
in which a guarantee is usually lost without anyone noticing: several models on the same people (their costs add, and
the sum must fit the ledger's budget), and a state used twice (each generation of a lineage is accepted once).

A ledger is in memory, for experiments, or in a database that all processes and teams share: a SQLite file, or
PostgreSQL (`taciturn.store`). The checks are functions of records alone, the same for all three; what differs is how a
check and the change it allows are made one step. In a database that is a transaction (`taciturn.store.book`).

**In memory a check and its change are one step**, which no other thread, no signal handler or finalizer on the same
thread, and no exception such as KeyboardInterrupt can split. A lock cannot promise that: if its own thread may take it
again, a signal handler passes the check a second time before the change; if not, the handler waits for ever. So there
is no lock. All that is known is in immutable records; a check is a function of a record, and a change puts the next
record behind the one that was checked, if nothing is there yet: one call of `dict.setdefault`, which CPython carries
out atomically. The caller that comes second checks again, against the newer record.

**Ledgers that renew.** The unit of such a ledger is a user and a period P of a public clock, and its budget B is for
each period by itself. Every row has a period: for a stream with `User(period=P)` that in which its process learnt the
row (`UserRecords`, where it never goes back); for a stream of users without a period, that of the ledger's clock at the
row's commit, or, if the clock was set back, the one in which the stream was opened or had rows before; for the rows of
a one-off fit, that of the ledger's clock as it enters. No content of a row is read for it. A stream of cost C *holds* C
in a set H of periods. It is opened with H = {first, first + 1, …}, where `first` is the period of its first row, or the
present one before there is a row. When it is closed, or has released all that it can (`finished`), H becomes {first, …,
last}, where `last` is the period of its last row; for a stream that went on in a database that was lost, the present
one. A one-off charge or fit holds its cost in the present period alone.

*Claim.* For every user and every period p: two worlds that differ in the contents of the rows which the user has
contributed in p, to all streams of the ledger together, give releases, of all streams and at all times, that satisfy B.

*Proof.* (i) *Each stream.* The rows of a stream in p are among those that its guarantee is about: all rows of the user
in p by the stream's own periods, or all rows of the user. So a stream with rows in p adds at most C, over all its later
releases, and one without adds nothing: its releases are computed from other rows and from releases. (ii) *Rows in p
imply that p is in H.* A commit is rejected, in one step with the check, unless the periods of all rows of the new state
are at least `first`, and it stores the last of them as `last`; a store elsewhere has the ledger do that before its own
commit (`hold`). So every row that a release can depend on has a period of at least `first`, and of at most `last` when
H is cut there; then nothing more is committed, except rows after the last release of a finished stream, on which no
release depends. A state that has learnt rows before it enters, by a fork, a loaded file or an adoption, enters with the
periods of its first and last row: its releases depend on those rows, too. If its rows have no periods of their own, it
enters with all periods up to the last that the ledger has counted rows in, or would now (`entering`). (iii) *Sums.* For
every p the costs of the streams with p in H are within B, at every moment: a stream enters only if that holds with it
for each p ≥ first (the sum can only rise at the `first` of some stream, so a finite number of sums is compared), and H
only shrinks after that. (iv) Costs add under adaptive composition, so by (i) and (ii) the total for the rows of p is
the sum over streams with p in H. ∎

The proof uses no property of any clock, except after a lost database (`taciturn.store.restore`). Clocks decide what
"this month" means, so the ledger also rejects a commit whose last rows are not of the present period of its own clock,
or of the one before it (they were learnt before a border, and are committed after it), up to `SKEW`. The clock of a
ledger is that of the PostgreSQL server, or of the machine with the SQLite file. A row that is given to a model again in
a later period is a contribution of that period, too. A user who stays pays in each period; `user_over` says how much.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, NotRequired, Protocol, TypedDict, TypeVar, cast, get_args

from taciturn._util.frozen import unfrozen
from taciturn._util.html import budget_bar, card, facts
from taciturn._util.output import rounded_down, rounded_up
from taciturn._util.process import process_number
from taciturn.accounting import unit as units
from taciturn.accounting.cost import FREE, Cost, gaussian, total
from taciturn.accounting.gdp import Privacy
from taciturn.accounting.guarantee import Relation
from taciturn.accounting.history import FIRST, Event, Verified, next_event
from taciturn.accounting.unit import LEDGER_UNITS, ClockPeriod, covers, period_name, period_of
from taciturn.errors import (
    BudgetExhausted,
    InvalidInput,
    StateConflict,
    Unprovable,
    expect,
    integer,
    one_of,
    value_or_type,
)

Position = tuple[int, int, int, str]
"""Generation, examples seen, releases made and a random token: a state is live only if all are the newest."""

SECOND_STREAM = "open a second, separately charged stream with Private.fork"

SKEW = timedelta(minutes=5)
"""How far the clock of a process may be ahead of that of a renewing ledger."""


class Learnt(NamedTuple):
    """When the rows of a state were learnt, for ledgers that renew.

    Attributes
    ----------
    first, last : int, optional
        Numbers of the periods of its first and last row (`taciturn.accounting.unit.period_of`). None if there are no
        rows, or if rows have no period of their own: then they are those of the ledger's clock.
    finished : bool
        Whether nothing more can be released.
    """

    first: int | None = None
    last: int | None = None
    finished: bool = False


EARLIEST = 1
"""A period before all others, for rows whose period is not known."""

JUST_NOW = Learnt()
"""Rows of the present period, of a stream that goes on."""

ONE_OFF = Learnt(finished=True)
"""Rows of the present period, and all that is ever released from them."""


class Clock(NamedTuple):
    """The public clock of a ledger that renews: its kind of period, and the time."""

    period: ClockPeriod
    now: datetime

    @property
    def number(self) -> int:
        """The present period."""
        return period_of(self.period, self.now)

    @property
    def latest(self) -> int:
        """The last period of which rows are accepted: the present one, or the next, shortly before a border."""
        return period_of(self.period, self.now + SKEW)

    def name(self, number: int) -> str:
        """What a period is called."""
        return period_name(self.period, number) if number > EARLIEST else "periods before all others"


@dataclass(frozen=True, slots=True)
class Line:
    """One lineage in a ledger: the most it can cost, what it has cost, and its live generation.

    `live` is None for a stream whose states a store guards, and for a one-off release. `closed` says that nothing
    more is released; what was reserved stays reserved. In a ledger that renews, `first` and `last` are the periods of
    its first and its last row, or those in which it was opened, and `finished` says that it has released all that it
    can. In others they are None and False.
    """

    reserved: Cost
    spent: Cost
    live: Position | None = None
    closed: bool = False
    first: int | None = None
    last: int | None = None
    finished: bool = False

    def holds(self, period: int) -> bool:
        """Whether its reservation counts in a period; in a ledger that does not renew, always.

        >>> stream = Line(gaussian(0.1), FREE, first=5, last=6)
        >>> [stream.holds(period) for period in (4, 5, 6, 7)]
        [False, True, True, True]
        >>> [closed(stream).holds(period) for period in (4, 5, 6, 7)]
        [False, True, True, False]
        """
        if self.first is None or self.last is None:
            return True
        return self.first <= period and (period <= self.last or not (self.closed or self.finished))


_UnfrozenLine = unfrozen(Line)  # every call of `run` makes a line


@dataclass(frozen=True)
class Terms:
    """What a ledger is about, fixed when it is created.

    Attributes
    ----------
    privacy : Privacy, optional
        The budget of all models together; without one the ledger only counts.
    population : str
        The people it is about, by a name.
    unit : str
        Whose data is protected: an example, or a user, perhaps of one period (`taciturn.accounting.unit.LEDGER_UNITS`).
    neighbours : {"replace", "zero-out", "label", "add-remove"}, optional
        The relation of all costs; None until the first cost decides it.
    renews : bool
        Whether the budget is for each period of the unit by itself: what ended before a period does not count in it.
    """

    privacy: Privacy | None = None
    population: str = "people"
    unit: str = "example"
    neighbours: str | None = None
    renews: bool = False

    def __post_init__(self) -> None:
        if self.renews and self.unit in ("example", "user"):
            raise InvalidInput(
                f"only the budget of a period renews, and the unit is one {self.unit}. State a unit such as 'user and "
                "month', or leave out renews."
            )

    @property
    def period(self) -> ClockPeriod | None:
        """The kind of period by which it renews; None if it does not."""
        return cast(ClockPeriod, self.unit.removeprefix("user and ")) if self.renews else None


class Book(Protocol):
    """Where a ledger's records are: in memory, or in a database."""

    @property
    def address(self) -> str | None:
        """Where another process finds it, without passwords; None in memory."""

    @property
    def witnessed_by(self) -> str | None:
        """Address of its witness, without passwords, if there is one."""

    @property
    def terms(self) -> Terms:
        """What the ledger is about."""

    def lines(self) -> Mapping[str, Line]:
        """The lineages, by name."""

    def events(self) -> Sequence[Event]:
        """The history."""

    def last(self) -> tuple[int, str]:
        """How many events there are, and the hash of the last, stored apart from them."""

    def clock(self) -> Clock | None:
        """The clock of a ledger that renews."""

    def enter(
        self, lineage: str, line: Line, neighbours: str, kind: str, content: dict[str, Any], learnt: Learnt
    ) -> None:
        """Add a lineage if it fits, or check that a known one goes on; see `admitted`."""

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        """Replace a line by what `changed` makes of it, atomically.

        Add an event of this kind, `closed` or `finished`, if the line is that after the change, and was not before.
        """


class Change(Protocol):
    """A line after a change; an error if the change is not allowed. Pure: it may be called repeatedly."""

    def __call__(self, line: Line, clock: Clock | None) -> Line: ...


class Ledger:
    """The privacy cost of all models that learn from one population, under one budget.

    All of a stream's cost is reserved when it opens, or rejected then: no stream is stopped half-way.

    Parameters
    ----------
    where : Privacy or str or path, optional
        A budget, for a ledger in memory; or the address of a ledger that `create` made: a SQLite file, or
        `postgresql://…`. Without it the ledger is in memory and only counts: each model still has its own budget.
    population : str, optional
        Which ledger of the database; needed only if there are several.
    witness : str or path, optional
        A second database, elsewhere, that notices when this one was restored from a backup.
    unit : {"example", "user", "user and month", …}, optional
        Whose data is protected, for a ledger in memory: by default an example. One in a database has its own.
    renews : bool
        Whether the budget of a ledger in memory is for each period by itself, as in `create`.

    Examples
    --------
    Two models on the same people, under one budget:

    >>> from taciturn import Ledger, Privacy
    >>> from taciturn.accounting.cost import gaussian
    >>> ledger = Ledger(Privacy(1.0, 1e-6))
    >>> ledger.open("first", gaussian(0.04))
    >>> ledger.open("second", gaussian(0.04))
    Traceback (most recent call last):
    ...
    taciturn.errors.BudgetExhausted: opening this stream would reserve epsilon = 0.8342 at delta = 1e-06, and ...

    The same, for all processes and teams, in a file:

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget.db", Privacy(1.0, 1e-6), population="customers")
    >>> Ledger(f"{folder.name}/budget.db").population
    'customers'
    >>> folder.cleanup()

    A ledger in memory checks generations in its own process only: a file loaded in another process is trusted.
    """

    def __init__(
        self,
        where: Privacy | str | os.PathLike[str] | None = None,
        *,
        population: str | None = None,
        witness: str | os.PathLike[str] | None = None,
        unit: str | None = None,
        renews: bool = False,
    ) -> None:
        if unit is not None:
            one_of("unit", unit, LEDGER_UNITS)
        if isinstance(where, str | os.PathLike):
            from taciturn.store import book

            self._book: Book = book.open_book(where, population, witness)
            if unit not in (None, self.unit):
                raise Unprovable(f"the unit of {where} is one {self.unit}, not one {unit}. Create another ledger.")
            if renews and not self.renews:
                raise Unprovable(f"the budget of {where} does not renew. Create another ledger, with renews=True.")
            return
        known = where is None or isinstance(where, Privacy)
        expect("the argument", where, known, 'Privacy(epsilon=1.0, delta=1e-6) or an address such as "budget.db"')
        if witness is not None:
            raise InvalidInput("a ledger in memory has no witness. Create it in a file: Ledger.create('budget.db', …).")
        self._book = _MemoryBook(Terms(where, population or "people", unit or "example", renews=renews))

    @classmethod
    def create(
        cls,
        address: str | os.PathLike[str],
        privacy: Privacy,
        *,
        population: str = "people",
        neighbours: str | None = None,
        unit: str = "example",
        renews: bool = False,
        witness: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Create a ledger in a database, and open it.

        Parameters
        ----------
        address : str or path
            A SQLite file, which is made if it does not exist, or `postgresql://…`.
        privacy : Privacy
            The budget of all models that learn from these people, together.
        population : str
            A name of the people whose data is protected.
        neighbours : {"replace", "zero-out", "label", "add-remove"}, optional
            The neighbour relation of all costs; by default that of the first stream.
        unit : {"example", "user", "user and day", "user and week", "user and month", …}
            Whose data is protected. A ledger of users rejects streams that protect single examples; one of users and
            months also accepts streams that count a user's rows anew every month.
        renews : bool
            Whether the budget is for each period by itself: a stream counts in every period from the one in which it
            was opened to that of its last row, and no longer. A user who stays pays in each period: see `user_over`.
        witness : str or path, optional
            A second database, elsewhere, that notices when this one was restored from a backup.
        """
        from taciturn.store import book

        expect("privacy", privacy, isinstance(privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        known = neighbours is None or neighbours in get_args(Relation)
        expect("neighbours", neighbours, known, '"replace", "zero-out", "label" or "add-remove"')
        one_of("unit", unit, LEDGER_UNITS)
        return cls.of_book(book.create_book(address, Terms(privacy, population, unit, neighbours, renews), witness))

    @classmethod
    def of_book(cls, book: Book) -> Ledger:
        """A ledger whose records are in `book`."""
        ledger = cls.__new__(cls)
        ledger._book = book
        return ledger

    # What it is about, and what it holds.

    @property
    def privacy(self) -> Privacy | None:
        """The budget; None if the ledger only counts."""
        return self._book.terms.privacy

    @property
    def population(self) -> str:
        """The name of the people it is about."""
        return self._book.terms.population

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        return self._book.terms.unit

    @property
    def renews(self) -> bool:
        """Whether its budget is for each period of the unit by itself."""
        return self._book.terms.renews

    @property
    def neighbours(self) -> str | None:
        """The neighbour relation of all its costs; None before the first."""
        return self._book.terms.neighbours

    @property
    def address(self) -> str | None:
        """Where it is, without passwords; None in memory."""
        return self._book.address

    @property
    def witness(self) -> Any:
        """Its witness (`taciturn.store.witness.Witness`); None without one."""
        return getattr(self._book, "witness", None)

    @property
    def spent(self) -> Cost:
        """The cost of every release made so far; if it renews, by streams that count in the present period."""
        return total(line.spent for line in self._present())

    @property
    def reserved(self) -> Cost:
        """The cost of every release made or still to come in the streams opened so far.

        If the ledger renews, in those that count in the present period.
        """
        return total(line.reserved for line in self._present())

    def _present(self) -> list[Line]:
        """The lines that count now."""
        period = self.period
        return [line for line in self._book.lines().values() if period is None or line.holds(period)]

    @property
    def period(self) -> int | None:
        """The number of the present period, by the ledger's clock; None if it does not renew."""
        clock = self._book.clock()
        return None if clock is None else clock.number

    def by_period(self) -> dict[str, Cost]:
        """What is reserved in each period from that of the first stream to the present one, if the ledger renews.

        >>> monthly = Ledger(Privacy(1.0, 1e-6), unit="user and month", renews=True)
        >>> monthly.charge(gaussian(0.01), unit="user and month")
        >>> [round(cost.mu, 6) for cost in monthly.by_period().values()]
        [0.1]
        """
        if (clock := self._book.clock()) is None:
            return {}
        lines = list(self._book.lines().values())
        here = clock.number
        start = min([here, *(line.first for line in lines if line.first is not None and line.first > EARLIEST)])
        periods = range(start, here + 1)
        return {clock.name(each): total(line.reserved for line in lines if line.holds(each)) for each in periods}

    def user_over(self, periods: int) -> tuple[Cost, list[str]]:
        """The cost for a user with rows in so many periods from now on, if nothing is opened or closed meanwhile.

        Streams that are open cost what `Private.user_over` says, and others that count in the present period what they
        reserved; across streams costs add. With it come the lineages for which that is not known.

        Whatever is opened and closed meanwhile: if all costs are Gaussian, n periods cost at most n times the mu of the
        budget. *Proof.* A stream with rows in m of them costs at most m·mu, by group privacy, and in each period the
        sum of mu² is at most that of the budget, B². So the sum of (m·mu)² ≤ n·(sum of m·mu²) ≤ n·n·B². ∎
        """
        from taciturn.store import verify

        return verify.user_over(self, integer("periods", periods))

    @property
    def left(self) -> float | None:
        """The epsilon, at the ledger's delta, of the largest Gaussian cost that still fits; None without a budget.

        >>> round(Ledger(Privacy(1.0, 1e-6)).left, 3)
        1.0
        """
        privacy = self.privacy
        return None if privacy is None else gaussian(self.largest_mu**2).epsilon(privacy.delta)

    @property
    def largest_mu(self) -> float:
        """The mu of the largest Gaussian cost that still fits."""
        privacy = self.privacy
        if privacy is None:
            return math.inf
        return min(largest_mu(privacy, cost) for _, cost in sums_from(self.period, self._book.lines().values()))

    @property
    def lines(self) -> Mapping[str, Line]:
        """What each lineage has reserved and spent."""
        return self._book.lines()

    @property
    def history(self) -> Sequence[Event]:
        """What was opened, charged and closed, by whom and when."""
        return self._book.events()

    @property
    def end_of_history(self) -> tuple[int, str]:
        """How many events the history has, and the hash of the last, stored apart from the events."""
        return self._book.last()

    def verify(self) -> Verified:
        """Check the history, and compute every cost again from the settings in it.

        >>> Ledger(Privacy(1.0, 1e-6)).verify().faults
        []
        """
        from taciturn.store import verify

        return verify.verify(self)

    # What changes it.

    def open(
        self,
        lineage: str,
        cost: Cost,
        neighbours: str = "replace",
        spent: Cost = FREE,
        at: Position = (0, 0, 0, ""),
        settings: Any = None,
        unit: str = "example",
        learnt: Learnt | None = None,
    ) -> None:
        """Reserve `cost` for a lineage that stands at `at`; one that is known must go on where it stands.

        The ledger then guards the states of the lineage: `commit` accepts each once. `settings`, plain data, are
        recorded in the history. `learnt` says when the rows of the state were learnt: by default at any time before.
        """
        learnt = learnt_by(at) if learnt is None else learnt
        self._enter("opened", lineage, Line(cost, spent, at), neighbours, settings, unit, learnt)

    def reserve(
        self,
        lineage: str,
        cost: Cost,
        neighbours: str = "replace",
        settings: Any = None,
        name: str | None = None,
        follows: str | None = None,
        unit: str = "example",
        learnt: Learnt = JUST_NOW,
    ) -> None:
        """Reserve `cost` for a lineage whose states a store guards; a second call for the same cost changes nothing.

        The history says what the stream is called, and `adopted` of one that `follows` another lineage after a restore.
        """
        kind, more = entered_as(name, follows)
        self._enter(kind, lineage, Line(cost, FREE), neighbours, settings, unit, learnt, more)

    def charge(self, cost: Cost, neighbours: str = "replace", settings: Any = None, unit: str = "example") -> None:
        """Spend `cost` at once, for a release that belongs to no stream, or reject it.

        >>> from taciturn import Cost, Ledger, Privacy
        >>> ledger = Ledger(Privacy(1.0, 1e-6))
        >>> ledger.charge(Cost(plain_epsilon=0.4))
        >>> ledger.spent.plain_epsilon
        0.4
        """
        line = Line(cost, cost, None, True)
        self._enter("charged", f"one-off {uuid.uuid4().hex}", line, neighbours, settings, unit, JUST_NOW)

    def _enter(
        self,
        kind: str,
        lineage: str,
        line: Line,
        neighbours: str,
        settings: Any,
        unit: str,
        learnt: Learnt,
        more: Mapping[str, str] | None = None,
    ) -> None:
        check_unit(self.unit, unit)
        if not at_most(line.spent, line.reserved):
            raise BudgetExhausted(
                f"this stream would reserve {line.reserved} and has spent {line.spent}. Go on with its settings."
            )
        content = {"reserved": written(line.reserved), "neighbours": neighbours, "settings": settings, "unit": unit}
        content |= more or {}
        with rejections_told():
            self._book.enter(lineage, line, neighbours, kind, content, learnt)

    def commit(self, lineage: str, used: Position, following: Position, spent: Cost, learnt: Learnt = JUST_NOW) -> None:
        """Record that the state at `used` is used up, `following` is live, and what is spent; then show releases.

        Raises `StateConflict`, and records nothing, if `used` is not the live state.
        """
        self._book.change(
            lineage,
            lambda line, clock: committed(line, used, following, spent, learnt, clock),
            "finished" if learnt.finished else None,
        )

    def hold(self, lineage: str, learnt: Learnt, releases: bool = True) -> None:
        """Before a store elsewhere commits a state, with releases or without: count its rows in their periods.

        It is an error if the ledger does not accept them. Without effect if the ledger does not renew.
        """
        self._book.change(lineage, lambda line, clock: extended(line, learnt._replace(finished=False), clock, releases))

    def record_spent(self, lineage: str, spent: Cost, finished: bool = False) -> None:
        """Record what a stream in a store has spent, and whether it has finished; a smaller number changes nothing."""
        self._book.change(
            lineage, lambda line, clock: mirrored(line, spent, finished), "finished" if finished else None
        )

    def close(self, lineage: str) -> None:
        """End a stream: nothing more can be released. What it reserved stays reserved.

        In a ledger that renews it does not count in the periods after that of its last row.
        """
        self._book.change(lineage, lambda line, clock: closed(line), "closed")

    # How it is shown and passed on.

    def __repr__(self) -> str:
        place = "" if self.address is None else f"{self.address!r}, "
        return f"Ledger({place}{self})"

    def __str__(self) -> str:
        privacy = self.privacy
        if privacy is None:
            return f"{self.population}: reserved {self.reserved}, spent {self.spent}, no budget"
        delta = privacy.delta
        reserved, spent = self.reserved, self.spent
        return (
            f"{self.population}: reserved epsilon = {rounded_up(reserved.epsilon(delta), 4)} of {privacy.epsilon:g} at "
            f"delta = {delta:g} ({reserved}), spent epsilon = {rounded_up(spent.epsilon(delta), 4)} ({spent})"
        )

    def _repr_html_(self) -> str:
        privacy, lines = self.privacy, self.lines.values()
        told = [
            ("unit", f"{self.unit}, anew in each {self._book.terms.period}" if self.renews else self.unit),
            ("neighbours", self.neighbours or "not settled yet"),
            ("streams and fits", f"{len(lines):,}, of which {sum(line.closed for line in lines):,} are closed"),
        ]
        if privacy is None:
            told += [("reserved", str(self.reserved)), ("spent", str(self.spent)), ("budget", "none is stated")]
            return card(f"Ledger of {self.population}", facts(told))
        spent, reserved = self.spent.epsilon(privacy.delta), self.reserved.epsilon(privacy.delta)
        words = [
            f"spent {rounded_up(spent)}",
            f"reserved {rounded_up(reserved)}, with what is spent",
            f"left: one more stream of {rounded_down(self.left or 0.0)}",
        ]
        title = f"Ledger of {self.population}: epsilon = {privacy.epsilon:g} at delta = {privacy.delta:g}"
        return card(title, budget_bar(spent, reserved, privacy.epsilon, words), facts(told))

    def same_as(self, other: Ledger) -> bool:
        """Whether both have the same records."""
        here, there = (self.address, self.population), (other.address, other.population)
        return self._book is other._book or (self.address is not None and here == there)

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce_ex__(self, protocol: object) -> Any:
        if self.address is None:
            raise StateConflict(
                "a ledger in memory cannot be pickled: the copy would spend the same budget again. Create it in a "
                "file, which all processes share: Ledger.create('budget.db', budget)."
            )
        return _reopened, (self.address, self.population, self._book.witnessed_by)


def _reopened(address: str, population: str, witness: str | None) -> Ledger:
    return Ledger(address, population=population, witness=witness)


LedgerLike = Ledger | str | os.PathLike[str]
"""What every function that needs a ledger accepts: one, or the address of one."""


def as_ledger(ledger: LedgerLike | None) -> Ledger:
    """The ledger itself, the one at an address, or without either a new one in memory."""
    if isinstance(ledger, str | os.PathLike):
        return Ledger(ledger)
    right = ledger is None or isinstance(ledger, Ledger)
    expect("ledger", ledger, right, 'ledger=Ledger(budget), ledger="budget.db", or leave it out')
    return Ledger() if ledger is None else ledger


def entered_as(name: str | None, follows: str | None) -> tuple[str, dict[str, str]]:
    """The kind of the event with which a stream of a store is entered, and what that says of the stream."""
    if follows is not None:
        return "adopted", {"stream": name or "", "from": follows}
    return "opened", {} if name is None else {"stream": name}


# Checks: functions of records alone.


def admitted(
    terms: Terms, known: Line | None, others: Iterable[Line], line: Line, neighbours: str, clock: Clock | None = None
) -> bool:
    """Whether a new lineage enters (True), or goes on as it is (False); otherwise an error.

    `known` is the lineage's present line, if there is one, and `others` are all lines.
    """
    check_relation(terms.neighbours, neighbours)
    if known is not None:
        check_goes_on(known, line)
        return False
    for period, reserved in sums_from(line.first, others):
        if period is not None and not line.holds(period):
            continue
        which = "" if clock is None or period is None else clock.name(period)
        check_room(terms.privacy, reserved, line.reserved, which)
    return True


def sums_from(first: int | None, lines: Iterable[Line]) -> list[tuple[int | None, Cost]]:
    """What is reserved in `first`, and in each later period in which that may be more: there a stream begins.

    The sum of all lines, if `first` is None: the ledger does not renew.

    >>> lines = [Line(gaussian(0.1), FREE, first=4, last=4, closed=True), Line(gaussian(0.2), FREE, first=7, last=7)]
    >>> [(period, round(cost.mu_squared, 6)) for period, cost in sums_from(4, lines)]
    [(4, 0.1), (7, 0.2)]
    """
    lines = list(lines)
    if first is None:
        return [(None, total(line.reserved for line in lines))]
    later = {line.first for line in lines if line.first is not None and line.first > first}
    return [
        (period, total(line.reserved for line in lines if line.holds(period))) for period in (first, *sorted(later))
    ]


def entering(line: Line, learnt: Learnt, clock: Clock | None, others: Iterable[Line]) -> Line:
    """The line of a stream that enters, with its periods; `others` are all lines.

    Rows whose period is not known are of no later period than any row that a line has counted, or
    than those that are accepted now: the clock may have been set back since.
    """
    if clock is None:
        return line
    here = clock.number
    if learnt.last is not None:
        _check_not_ahead(learnt.last, here, clock)
        last = learnt.last
    elif learnt.first is not None:
        last = max([clock.latest, *(other.last for other in others if other.last is not None)])
    else:
        last = here
    first = here if learnt.first is None else learnt.first
    last = max(first, last)
    return replace(line, first=first, last=last, finished=learnt.finished)


def learnt_by(at: Position) -> Learnt:
    """When the rows of a state were learnt of which nothing else is known."""
    return Learnt(EARLIEST) if at[1] else JUST_NOW


def extended(line: Line, learnt: Learnt, clock: Clock | None, releases: bool) -> Line:
    """The line of a stream that has learnt more rows, as `learnt` says of all its rows; see the module."""
    if clock is None or line.first is None or line.last is None:
        return line
    if line.closed:
        raise _ended()
    if line.finished:
        if releases:
            raise StateConflict(
                "this stream has released all that it could, and does not count in later periods of its ledger. Start "
                f"a new one, or {SECOND_STREAM}."
            )
        return line
    here = clock.number
    last = max(line.last, here) if learnt.last is None else learnt.last
    first = last if learnt.first is None else learnt.first
    if first < line.first:
        raise StateConflict(
            f"this stream counts from {clock.name(line.first)} on, and has rows of an earlier period. Nothing was "
            "committed: learn from them again, with the present clock; or open it anew with Private.fork."
        )
    _check_not_ahead(last, max(line.last, here), clock)
    if last < here - 1:
        raise StateConflict(
            f"these rows were learnt in {clock.name(last)}, and the ledger is in {clock.name(here)}. Nothing was "
            "committed: learn from them again, without now= or with the present time."
        )
    return replace(line, last=max(line.last, last), finished=learnt.finished)


def _check_not_ahead(last: int, here: int, clock: Clock) -> None:
    """Reject rows of a period that has not begun."""
    if last > max(here, clock.latest):
        raise StateConflict(
            f"these rows were learnt in {clock.name(last)}, and the ledger is in {clock.name(here)}. Nothing was "
            "committed: set the clock of this machine, leave out now=, or wait until the ledger's clock is there."
        )


def _ended() -> StateConflict:
    return StateConflict(f"this stream was closed. Start a new one, or {SECOND_STREAM}.")


def check_relation(settled: str | None, neighbours: str) -> None:
    """Reject costs of another neighbour relation than the one that is `settled`."""
    if neighbours != (settled or neighbours):
        raise Unprovable(
            f"this ledger's costs are for {value_or_type(settled)} neighbours, this stream's for "
            f"{value_or_type(neighbours)}: they do not add. Use one relation for all models on a stream, or a ledger "
            "for each."
        )


def check_unit(unit: str, of_stream: str) -> None:
    """Reject a stream whose unit of privacy is less than the ledger's."""
    if not covers(unit, of_stream):
        if of_stream == "example":
            remedy = "State rows_per_user, with user in a contract and users= in Python, or unit=User(rows=4)"
        else:
            remedy = "Leave out without_id" if of_stream.startswith("user or row") else "Leave out period"
        raise Unprovable(
            f"this ledger's budget is for one {unit}, and this stream protects one {of_stream}, which is less. "
            f"{remedy}; or use another ledger."
        )


def check_room(privacy: Privacy | None, reserved: Cost, cost: Cost, period: str = "") -> None:
    """Reject a cost that does not fit a budget in addition to what is `reserved`, in a period if it is named."""
    needed = total([reserved, cost])
    if privacy is not None and not needed.within(privacy):
        raise NoRoom(privacy, reserved, cost, period)


class NoRoom(BudgetExhausted):
    """A cost that does not fit a budget; its sentence takes milliseconds, and is made after all locks have ended."""

    def __init__(self, privacy: Privacy, reserved: Cost, cost: Cost, period: str = "") -> None:
        super().__init__(privacy, reserved, cost)
        self._terms = privacy, reserved, cost
        self._period = period

    def __str__(self) -> str:
        privacy, reserved, cost = self._terms
        within = f" in {self._period}" if self._period else ""
        remedy = "Give the model a smaller budget; that of a ledger is fixed."
        if self._period:
            remedy = (
                "Give the model a smaller budget; or close streams that have ended, which do not count after the "
                "period of their last row."
            )
        needed, all_of_it = (each.epsilon(privacy.delta) for each in (cost, total([reserved, cost])))
        left = gaussian(largest_mu(privacy, reserved) ** 2).epsilon(privacy.delta) * (1.0 + 1e-9)  # past the bisection
        return (
            f"opening this stream would reserve epsilon = {rounded_up(needed, 4)} at delta = {privacy.delta:g}, and "
            f"epsilon = {rounded_down(left, 4)} of the ledger's {privacy.epsilon:g} is left{within}: all streams "
            f"together would have epsilon = {rounded_up(all_of_it, 4)}. {remedy}"
        )


class rejections_told:  # noqa: N801 - read as a function, in a `with` statement
    """Turn what was found under a lock into the error that users see, after the lock.

    Not a generator: since Python 3.12 one that raises another error than it was given leaves a reference cycle, which
    keeps a ledger that is no longer used, and its connections, until the next garbage collection.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, NoRoom):
            raise BudgetExhausted(str(error)) from None


def largest_mu(privacy: Privacy, reserved: Cost) -> float:
    """The mu of the largest Gaussian cost that fits a budget in addition to what is `reserved`.

    >>> round(largest_mu(Privacy(1.0, 1e-6), FREE) / Privacy(1.0, 1e-6).mu, 6)
    1.0
    """
    low, high = 0.0, privacy.mu
    for _ in range(40):
        middle = (low + high) / 2.0
        fits = total([reserved, gaussian(middle**2)]).within(privacy)
        low, high = (middle, high) if fits else (low, middle)
    return low


def check_goes_on(known: Line, line: Line) -> None:
    """Reject a known lineage that does not stand where `line` does, reserved another cost, or has ended."""
    if known.closed:
        raise _ended()
    if (known.live is None) != (line.live is None):
        raise StateConflict(
            "this stream's states are guarded by a store, and not by this ledger. Go on with it in its store, or "
            f"{SECOND_STREAM}."
            if known.live is None
            else "this stream's states are guarded by this ledger, and not by a store. Go on with Private.load."
        )
    if line.live is not None:
        _check_live(known, line.live)
    if line.reserved != known.reserved:
        raise StateConflict("this stream reserved another cost when it opened. Go on with its settings.")


def committed(
    line: Line,
    used: Position,
    following: Position,
    spent: Cost,
    learnt: Learnt = JUST_NOW,
    clock: Clock | None = None,
) -> Line:
    """The line after a commit."""
    if line.closed:
        raise _ended()
    _check_live(line, used)
    check_step(used, following, line.spent, spent, line.reserved)
    line = extended(line, learnt, clock, following[2] > used[2])
    new = _UnfrozenLine(line.reserved, spent, following, line.closed, line.first, line.last, line.finished)
    new.__class__ = Line
    return new  # type: ignore[no-any-return]


def check_step(used: Position, following: Position, before: Cost, spent: Cost, reserved: Cost) -> None:
    """Reject a commit that does not go forward, or spends more than was reserved."""
    forward = following[0] > used[0] and following[1] >= used[1] and following[2] >= used[2]
    if not forward or not at_most(before, spent):
        raise StateConflict("a stream's generations and its cost only rise. Go on from its newest state.")
    if not at_most(spent, reserved):
        raise BudgetExhausted(f"this stream reserved {reserved} and would have spent {spent}.")


def mirrored(line: Line, spent: Cost, finished: bool = False) -> Line:
    """The line after its store told what was spent, and whether the stream has finished."""
    if line.live is not None:
        raise StateConflict("this stream's states are guarded by this ledger, and not by a store. Go on with commit.")
    if not at_most(spent, line.reserved):
        raise BudgetExhausted(f"this stream reserved {line.reserved} and has spent {spent}.")
    line = replace(line, finished=line.finished or (finished and line.first is not None))
    return replace(line, spent=spent) if at_most(line.spent, spent) else line


def closed(line: Line) -> Line:
    """The line after its stream ended."""
    return replace(line, closed=True)


def used_up(line: Line, clock: Clock | None) -> Line:
    """The line of a stream that ended, and may have learnt until now and spent all that it reserved."""
    last = line.last
    if clock is not None and last is not None and not (line.closed or line.finished):
        last = max(last, clock.latest)
    return replace(line, closed=True, spent=line.reserved, last=last)


def _check_live(line: Line, at: Position) -> None:
    if line.live is None or at != line.live:
        live = "" if line.live is None else f", which is generation {line.live[0]}"
        raise StateConflict(
            f"generation {at[0]} of this stream is not its live state{live}: it was "
            "used already, or is a copy or an old snapshot. Releasing its next round again would spend twice. "
            f"Go on from the newest state, or {SECOND_STREAM}."
        )


def at_most(less: Cost, more: Cost) -> bool:
    """Whether no part of one cost exceeds that of the other."""
    return less is more or (
        less.mu_squared <= more.mu_squared
        and less.rho <= more.rho
        and less.extra_epsilon <= more.extra_epsilon
        and less.extra_delta <= more.extra_delta
        and less.plain_epsilon <= more.plain_epsilon
        and less.plain_delta <= more.plain_delta
    )


def written(cost: Cost) -> list[str]:
    """A cost as text, without rounding; `read_cost` reads it.

    >>> read_cost(written(gaussian(0.1))) == gaussian(0.1)
    True
    """
    return [part.hex() for part in cost.parts]


def read_cost(parts: Sequence[str]) -> Cost:
    """What `written` wrote."""
    return Cost(*(float.fromhex(part) for part in parts))


# How a record in memory is replaced.

_Value = TypeVar("_Value")


class _Version(TypedDict, Generic[_Value]):
    """A value, and the version that comes after it, once there is one."""

    value: _Value
    later: NotRequired[_Version[_Value]]


class _Register(Generic[_Value]):
    """A value that is replaced by compare-and-set, without a lock."""

    __slots__ = ("_known",)

    def __init__(self, value: _Value) -> None:
        self._known: _Version[_Value] = {"value": value}

    def newest(self) -> _Version[_Value]:
        """The last version at the time of the call."""
        version = self._known
        while (later := version.get("later")) is not None:
            version = later
        self._known = version  # a start for the next search: an older version, stored by another thread, is as valid
        return version

    def replace(self, seen: _Version[_Value], value: _Value) -> bool:
        """Store `value` as the version after `seen`, unless there is one already; return whether it was stored.

        The call of `setdefault` is the change: its key is text, so it runs no Python code, and nothing interrupts it.
        """
        new: _Version[_Value] = {"value": value}
        return seen.setdefault("later", new) is new


@dataclass(frozen=True)
class _Records:
    """The content of a ledger in memory at one time; lines are registers of their own, as commits are frequent."""

    terms: Terms
    lines: Mapping[str, _Register[Line]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def newest_lines(self) -> Iterator[tuple[str, Line]]:
        """The present lines of all streams."""
        return ((name, line.newest()["value"]) for name, line in self.lines.items())

    def with_event(self, kind: str, lineage: str, content: dict[str, Any]) -> _Records:
        chain = self.events[-1].chain if self.events else FIRST
        return replace(self, events=(*self.events, next_event(len(self.events), chain, kind, lineage, content)))


class _MemoryBook:
    """The records of a ledger in the memory of one process."""

    address = None
    witnessed_by = None

    def __init__(self, terms: Terms) -> None:
        self._process = process_number()
        self._records = _Register(_Records(terms))

    @property
    def terms(self) -> Terms:
        return self._records.newest()["value"].terms

    def lines(self) -> Mapping[str, Line]:
        return dict(self._records.newest()["value"].newest_lines())

    def events(self) -> Sequence[Event]:
        return self._records.newest()["value"].events

    def last(self) -> tuple[int, str]:
        events = self.events()
        return len(events), events[-1].chain if events else FIRST

    def clock(self) -> Clock | None:
        period = self.terms.period
        return None if period is None else Clock(period, units.utc_now())

    def enter(
        self, lineage: str, line: Line, neighbours: str, kind: str, content: dict[str, Any], learnt: Learnt
    ) -> None:
        self._check_process()
        done = False
        while not done:
            seen = self._records.newest()
            records = seen["value"]
            known = records.lines[lineage].newest()["value"] if lineage in records.lines else None
            clock = self.clock()
            others = [other for _, other in records.newest_lines()]
            entered = entering(line, learnt, clock, others) if known is None else line
            if not admitted(records.terms, known, others, entered, neighbours, clock):
                return
            new = replace(
                records.with_event(kind, lineage, content | periods_told(entered)),
                terms=replace(records.terms, neighbours=neighbours),
                lines={**records.lines, lineage: _Register(entered)},
            )
            done = self._records.replace(seen, new)
        self._check_process()

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        try:
            line = self._records.newest()["value"].lines.get(lineage)
            if line is None:
                raise unknown_stream()
            done = False
            while not done:
                seen = line.newest()
                known = seen["value"]
                done = line.replace(seen, changed(known, None if known.first is None else self.clock()))
            while kind is not None and getattr(new := line.newest()["value"], kind):
                records = self._records.newest()
                if any((event.kind, event.lineage) == (kind, lineage) for event in records["value"].events):
                    break  # a second call changes nothing, and completes one that was interrupted
                if self._records.replace(records, records["value"].with_event(kind, lineage, ended_told(new))):
                    break
        finally:
            self._check_process()  # once, after it: in a forked child the change is one of its copy, and of no other

    def _check_process(self) -> None:
        """Reject a forked child; called again after a change, as the process may have been forked before it."""
        if process_number() != self._process:
            raise StateConflict(
                "this ledger belongs to the process that made it: a forked child has only a copy, which would spend "
                "the same budget again. Run the stream where its ledger is, or create the ledger in a file."
            )


def periods_told(line: Line) -> dict[str, Any]:
    """What the history says of the periods of a stream that enters."""
    if line.first is None:
        return {}
    return {"periods": [line.first, line.last]} | ({"finished": True} if line.finished else {})


def ended_told(line: Line) -> dict[str, Any]:
    """What the history says of the periods of a stream that has ended."""
    return {} if line.first is None else {"last": line.last}


def unknown_stream() -> StateConflict:
    """The error about a lineage that is not in the ledger."""
    return StateConflict("this ledger does not know the stream. Open it first.")
