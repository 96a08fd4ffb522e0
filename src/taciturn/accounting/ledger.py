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
"""

from __future__ import annotations

import contextlib
import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import Any, Generic, Protocol, TypeVar, get_args

from taciturn._util.html import bar
from taciturn._util.output import rounded_down, rounded_up
from taciturn.accounting.cost import FREE, Cost, gaussian, total
from taciturn.accounting.gdp import Privacy
from taciturn.accounting.guarantee import Neighbours
from taciturn.accounting.history import FIRST, Event, Verified, next_event
from taciturn.accounting.unit import LEDGER_UNITS, covers
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable, expect, one_of

Position = tuple[int, int, int, str]
"""Generation, examples seen, releases made and a random token: a state is live only if all are the newest."""

SECOND_STREAM = "open a second, separately charged stream with Private.fork"


@dataclass(frozen=True)
class Line:
    """One lineage in a ledger: the most it can cost, what it has cost, and its live generation.

    `live` is None for a stream whose states a store guards, and for a one-off release. `closed` says that nothing
    more is released; what was reserved stays reserved.
    """

    reserved: Cost
    spent: Cost
    live: Position | None = None
    closed: bool = False


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
    neighbours : {"replace", "zero-out", "label"}, optional
        The relation of all costs; None until the first cost decides it.
    """

    privacy: Privacy | None = None
    population: str = "people"
    unit: str = "example"
    neighbours: str | None = None


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

    def reserved(self) -> Cost:
        """The sum of all reservations."""

    def enter(self, lineage: str, line: Line, neighbours: str, kind: str, content: dict[str, Any]) -> None:
        """Add a lineage if it fits, or check that a known one goes on; see `admitted`."""

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        """Replace a line by what `changed` makes of it, atomically, and add an event if `kind` is given."""


class Change(Protocol):
    """A line after a change; an error if the change is not allowed. Pure: it may be called repeatedly."""

    def __call__(self, line: Line) -> Line: ...


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
    ) -> None:
        if unit is not None:
            one_of("unit", unit, LEDGER_UNITS)
        if isinstance(where, str | os.PathLike):
            from taciturn.store import book

            self._book: Book = book.open_book(where, population, witness)
            if unit not in (None, self.unit):
                raise Unprovable(f"the unit of {where} is one {self.unit}, not one {unit}. Create another ledger.")
            return
        known = where is None or isinstance(where, Privacy)
        expect("the argument", where, known, 'Privacy(epsilon=1.0, delta=1e-6) or an address such as "budget.db"')
        if witness is not None:
            raise InvalidInput("a ledger in memory has no witness. Create it in a file: Ledger.create('budget.db', …).")
        self._book = _MemoryBook(Terms(where, population or "people", unit or "example"))

    @classmethod
    def create(
        cls,
        address: str | os.PathLike[str],
        privacy: Privacy,
        *,
        population: str = "people",
        neighbours: str | None = None,
        unit: str = "example",
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
        neighbours : {"replace", "zero-out", "label"}, optional
            The neighbour relation of all costs; by default that of the first stream.
        unit : {"example", "user", "user and day", "user and week", "user and month", …}
            Whose data is protected. A ledger of users rejects streams that protect single examples; one of users and
            months also accepts streams that count a user's rows anew every month.
        witness : str or path, optional
            A second database, elsewhere, that notices when this one was restored from a backup.
        """
        from taciturn.store import book

        expect("privacy", privacy, isinstance(privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        known = neighbours is None or neighbours in get_args(Neighbours)
        expect("neighbours", neighbours, known, '"replace", "zero-out" or "label"')
        one_of("unit", unit, LEDGER_UNITS)
        return cls.of_book(book.create_book(address, Terms(privacy, population, unit, neighbours), witness))

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
        """The cost of every release made so far."""
        return total(line.spent for line in self._book.lines().values())

    @property
    def reserved(self) -> Cost:
        """The cost of every release made or still to come in the streams opened so far."""
        return self._book.reserved()

    @property
    def left(self) -> float | None:
        """The epsilon, at the ledger's delta, of the largest Gaussian cost that still fits; None without a budget.

        >>> round(Ledger(Privacy(1.0, 1e-6)).left, 3)
        1.0
        """
        privacy = self.privacy
        return None if privacy is None else gaussian(largest_mu(privacy, self.reserved) ** 2).epsilon(privacy.delta)

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
    ) -> None:
        """Reserve `cost` for a lineage that stands at `at`; one that is known must go on where it stands.

        The ledger then guards the states of the lineage: `commit` accepts each once. `settings`, plain data, are
        recorded in the history.
        """
        self._enter("opened", lineage, Line(cost, spent, at), neighbours, settings, unit)

    def reserve(
        self,
        lineage: str,
        cost: Cost,
        neighbours: str = "replace",
        settings: Any = None,
        name: str | None = None,
        follows: str | None = None,
        unit: str = "example",
    ) -> None:
        """Reserve `cost` for a lineage whose states a store guards; a second call for the same cost changes nothing.

        The history says what the stream is called, and `adopted` of one that `follows` another lineage after a restore.
        """
        kind, more = entered_as(name, follows)
        self._enter(kind, lineage, Line(cost, FREE), neighbours, settings, unit, more)

    def charge(self, cost: Cost, neighbours: str = "replace", settings: Any = None, unit: str = "example") -> None:
        """Spend `cost` at once, for a release that belongs to no stream, or reject it.

        >>> from taciturn import Cost, Ledger, Privacy
        >>> ledger = Ledger(Privacy(1.0, 1e-6))
        >>> ledger.charge(Cost(plain_epsilon=0.4))
        >>> ledger.spent.plain_epsilon
        0.4
        """
        self._enter("charged", f"one-off {uuid.uuid4().hex}", Line(cost, cost, None, True), neighbours, settings, unit)

    def _enter(
        self,
        kind: str,
        lineage: str,
        line: Line,
        neighbours: str,
        settings: Any,
        unit: str,
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
            self._book.enter(lineage, line, neighbours, kind, content)

    def commit(self, lineage: str, used: Position, following: Position, spent: Cost) -> None:
        """Record that the state at `used` is used up, `following` is live, and what is spent; then show releases.

        Raises `StateConflict`, and records nothing, if `used` is not the live state.
        """
        self._book.change(lineage, lambda line: committed(line, used, following, spent))

    def record_spent(self, lineage: str, spent: Cost) -> None:
        """Record what a stream in a store has spent; an older, smaller number changes nothing."""
        self._book.change(lineage, lambda line: mirrored(line, spent))

    def close(self, lineage: str) -> None:
        """End a stream: nothing more can be released. What it reserved stays reserved."""
        self._book.change(lineage, closed, "closed")

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
            f"{self.population}: reserved epsilon = {reserved.epsilon(delta):.4g} of {privacy.epsilon:g} at delta = "
            f"{delta:g} ({reserved}), spent epsilon = {spent.epsilon(delta):.4g} ({spent})"
        )

    def _repr_html_(self) -> str:
        privacy = self.privacy
        share = 0.0 if privacy is None else min(1.0, self.reserved.epsilon(privacy.delta) / privacy.epsilon)
        return f"<div><p>{escape(str(self))}</p>{bar(0.0, share)}</div>"

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


def admitted(terms: Terms, known: Line | None, reserved: Cost, line: Line, neighbours: str) -> bool:
    """Whether a new lineage enters (True), or goes on as it is (False); otherwise an error.

    `known` is the lineage's present line, if there is one, and `reserved` the sum of all reservations.
    """
    check_relation(terms.neighbours, neighbours)
    if known is not None:
        check_goes_on(known, line)
        return False
    check_room(terms.privacy, reserved, line.reserved)
    return True


def check_relation(settled: str | None, neighbours: str) -> None:
    """Reject costs of another neighbour relation than the one that is `settled`."""
    if neighbours != (settled or neighbours):
        raise Unprovable(
            f"this ledger's costs are for {settled!r} neighbours, this stream's for {neighbours!r}: "
            "they do not add. Use one relation for all models on a stream, or a ledger for each."
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


def check_room(privacy: Privacy | None, reserved: Cost, cost: Cost) -> None:
    """Reject a cost that does not fit a budget in addition to what is `reserved`."""
    needed = total([reserved, cost])
    if privacy is not None and not needed.within(privacy):
        raise NoRoom(privacy, reserved, cost)


class NoRoom(BudgetExhausted):
    """A cost that does not fit a budget; its sentence takes milliseconds, and is made after all locks have ended."""

    def __init__(self, privacy: Privacy, reserved: Cost, cost: Cost) -> None:
        super().__init__(privacy, reserved, cost)
        self._terms = privacy, reserved, cost

    def __str__(self) -> str:
        privacy, reserved, cost = self._terms
        needed, all_of_it = (each.epsilon(privacy.delta) for each in (cost, total([reserved, cost])))
        left = gaussian(largest_mu(privacy, reserved) ** 2).epsilon(privacy.delta) * (1.0 + 1e-9)  # past the bisection
        return (
            f"opening this stream would reserve epsilon = {rounded_up(needed, 4)} at delta = {privacy.delta:g}, and "
            f"epsilon = {rounded_down(left, 4)} of the ledger's {privacy.epsilon:g} is left: all streams together "
            f"would have epsilon = {rounded_up(all_of_it, 4)}. Give the model a smaller budget; that of a ledger is "
            "fixed."
        )


@contextlib.contextmanager
def rejections_told() -> Iterator[None]:
    """Turn what was found under a lock into the error that users see, after the lock."""
    try:
        yield
    except NoRoom as error:
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
        raise StateConflict(f"this stream was closed. Start a new one, or {SECOND_STREAM}.")
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


def committed(line: Line, used: Position, following: Position, spent: Cost) -> Line:
    """The line after a commit."""
    if line.closed:
        raise StateConflict(f"this stream was closed. Start a new one, or {SECOND_STREAM}.")
    _check_live(line, used)
    check_step(used, following, line.spent, spent, line.reserved)
    return replace(line, spent=spent, live=following)


def check_step(used: Position, following: Position, before: Cost, spent: Cost, reserved: Cost) -> None:
    """Reject a commit that does not go forward, or spends more than was reserved."""
    forward = following[0] > used[0] and following[1] >= used[1] and following[2] >= used[2]
    if not forward or not at_most(before, spent):
        raise StateConflict("a stream's generations and its cost only rise. Go on from its newest state.")
    if not at_most(spent, reserved):
        raise BudgetExhausted(f"this stream reserved {reserved} and would have spent {spent}.")


def mirrored(line: Line, spent: Cost) -> Line:
    """The line after its store told what was spent."""
    if line.live is not None:
        raise StateConflict("this stream's states are guarded by this ledger, and not by a store. Go on with commit.")
    if not at_most(spent, line.reserved):
        raise BudgetExhausted(f"this stream reserved {line.reserved} and has spent {spent}.")
    return replace(line, spent=spent) if at_most(line.spent, spent) else line


def closed(line: Line) -> Line:
    """The line after its stream ended."""
    return replace(line, closed=True)


def used_up(line: Line) -> Line:
    """The line of a stream that ended, and may have spent all that it reserved."""
    return replace(line, closed=True, spent=line.reserved)


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
    return all(a <= b for a, b in zip(less.parts, more.parts, strict=True))


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


class _Version(Generic[_Value]):
    """A value, and a place for the version that comes after it."""

    __slots__ = ("later", "value")

    def __init__(self, value: _Value) -> None:
        self.value = value
        self.later: dict[str, _Version[_Value]] = {}


class _Register(Generic[_Value]):
    """A value that is replaced by compare-and-set, without a lock."""

    __slots__ = ("_known",)

    def __init__(self, value: _Value) -> None:
        self._known = _Version(value)

    def newest(self) -> _Version[_Value]:
        """The last version at the time of the call."""
        version = self._known
        while (later := version.later.get("later")) is not None:
            version = later
        self._known = version  # a start for the next search: an older version, stored by another thread, is as valid
        return version

    def replace(self, seen: _Version[_Value], value: _Value) -> bool:
        """Store `value` as the version after `seen`, unless there is one already; return whether it was stored.

        The call of `setdefault` is the change: its key is text, so it runs no Python code, and nothing interrupts it.
        """
        new = _Version(value)
        return seen.later.setdefault("later", new) is new


@dataclass(frozen=True)
class _Records:
    """The content of a ledger in memory at one time; lines are registers of their own, as commits are frequent."""

    terms: Terms
    lines: Mapping[str, _Register[Line]] = field(default_factory=dict)
    reserved: tuple[Fraction | float, ...] = (Fraction(0),) * len(FREE.parts)  # exact: no sum has to be made again
    events: tuple[Event, ...] = ()

    def newest_lines(self) -> Iterator[tuple[str, Line]]:
        """The present lines of all streams."""
        return ((name, line.newest().value) for name, line in self.lines.items())

    @property
    def total(self) -> Cost:
        return Cost(*(float(part) for part in self.reserved))

    def with_event(self, kind: str, lineage: str, content: dict[str, Any]) -> _Records:
        chain = self.events[-1].chain if self.events else FIRST
        return replace(self, events=(*self.events, next_event(len(self.events), chain, kind, lineage, content)))


class _MemoryBook:
    """The records of a ledger in the memory of one process."""

    address = None
    witnessed_by = None

    def __init__(self, terms: Terms) -> None:
        self._process = os.getpid()
        self._records = _Register(_Records(terms))

    @property
    def terms(self) -> Terms:
        return self._records.newest().value.terms

    def lines(self) -> Mapping[str, Line]:
        return dict(self._records.newest().value.newest_lines())

    def events(self) -> Sequence[Event]:
        return self._records.newest().value.events

    def last(self) -> tuple[int, str]:
        events = self.events()
        return len(events), events[-1].chain if events else FIRST

    def reserved(self) -> Cost:
        return self._records.newest().value.total

    def enter(self, lineage: str, line: Line, neighbours: str, kind: str, content: dict[str, Any]) -> None:
        self._check_process()
        done = False
        while not done:
            seen = self._records.newest()
            records = seen.value
            known = records.lines[lineage].newest().value if lineage in records.lines else None
            if not admitted(records.terms, known, records.total, line, neighbours):
                return
            parts = zip(records.reserved, line.reserved.parts, strict=True)
            new = replace(
                records.with_event(kind, lineage, content),
                terms=replace(records.terms, neighbours=neighbours),
                lines={**records.lines, lineage: _Register(line)},
                reserved=tuple(before + (Fraction(part) if math.isfinite(part) else part) for before, part in parts),
            )
            done = self._records.replace(seen, new)
        self._check_process()

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        self._check_process()
        lines = self._records.newest().value.lines
        if lineage not in lines:
            raise unknown_stream()
        line = lines[lineage]
        done = False
        while not done:
            seen = line.newest()
            done = line.replace(seen, changed(seen.value))
        while kind is not None:
            records = self._records.newest()
            if any((event.kind, event.lineage) == (kind, lineage) for event in records.value.events):
                break  # a second call changes nothing, and completes one that was interrupted
            if self._records.replace(records, records.value.with_event(kind, lineage, {})):
                break
        self._check_process()

    def _check_process(self) -> None:
        """Reject a forked child; called again after a change, as the process may have been forked before it."""
        if os.getpid() != self._process:
            raise StateConflict(
                "this ledger belongs to the process that made it: a forked child has only a copy, which would spend "
                "the same budget again. Run the stream where its ledger is, or create the ledger in a file."
            )


def unknown_stream() -> StateConflict:
    """The error about a lineage that is not in the ledger."""
    return StateConflict("this ledger does not know the stream. Open it first.")


_BOOKS: dict[str, Ledger] = {}  # for as long as the process lives: forgetting a stream would let a copy go on


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BOOKS.clear)  # a forked child has opened nothing yet


def enter(lineage: str, ledger: Ledger) -> Ledger:
    """The ledger that guards `lineage` in this process: `ledger`, unless there is one already."""
    return _BOOKS.setdefault(lineage, ledger)


def is_open(lineage: str) -> bool:
    """Whether a ledger guards `lineage` in this process."""
    return lineage in _BOOKS


def leave(lineage: str, ledger: Ledger) -> None:
    """Forget that `ledger` guards `lineage`, which it has rejected."""
    if _BOOKS.get(lineage) is ledger:
        _BOOKS.pop(lineage, None)


def guard_of(lineage: str) -> Ledger:
    """The ledger that guards `lineage` in this process."""
    if (ledger := _BOOKS.get(lineage)) is None:
        raise StateConflict(
            "this state's stream is not open in this process, and may go on in another. Dump it there and load it "
            f"here, or {SECOND_STREAM}, naming its ledger."
        )
    return ledger
