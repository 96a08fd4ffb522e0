"""The ledger of a data stream: what was reserved, what was spent, and which state is the live one.

Every model that learns from one stream writes to one ledger. It is monotone, and it closes the two ways in which a
guarantee is usually lost without anyone noticing: several models on the same people (their costs add, and the sum
must fit the ledger's budget), and a state used twice (each generation of a lineage is accepted once).

**A check and the change it allows are one step**, which no other thread, no signal handler or finalizer on the same
thread, and no exception such as KeyboardInterrupt can split. A lock cannot promise that: if its own thread may take it
again, a signal handler passes the check a second time before the change; if not, the handler waits for ever. So the
ledger has no lock. All it knows is in immutable records; a check is a function of a record, and a change puts the next
record behind the one that was checked, if nothing is there yet: one call of `dict.setdefault`, which CPython carries
out atomically. The caller that comes second checks again, against the newer record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.gdp import Privacy
from taciturn.errors import BudgetExhausted, StateConflict, Unprovable, expect

Position = tuple[int, int, int, str]
"""Generation, examples seen, releases made and a random token: a state is live only if all are the newest."""

SECOND_STREAM = "open a second, separately charged stream with Private.fork"


@dataclass(frozen=True)
class Line:
    """One lineage: the most it can cost, what it has cost, and its live generation."""

    reserved: Cost
    spent: Cost
    live: Position


class Ledger:
    """The privacy cost of one data stream, over all the models that learn from it.

    All of a stream's cost is reserved when it opens, or rejected then: no stream is stopped half-way.

    Parameters
    ----------
    privacy : Privacy, optional
        A budget for all models that learn from the stream. Without it the ledger only counts: each model still has its
        own budget.

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
    taciturn.errors.BudgetExhausted: opening this stream would reserve mu = 0.2828 in all, more than the ledger's ...

    Generations are checked in this process's memory only: a file loaded in another process is trusted.
    """

    def __init__(self, privacy: Privacy | None = None) -> None:
        expect("privacy", privacy, privacy is None or isinstance(privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        self.privacy = privacy
        self._process = os.getpid()
        self._book = _Register(_Book())

    def __repr__(self) -> str:
        return f"Ledger({self.privacy}, spent {self.spent}, reserved {self.reserved})"

    @property
    def neighbours(self) -> str | None:
        """The neighbour relation of all its costs; None before the first."""
        return self._book.newest().value.neighbours

    @property
    def spent(self) -> Cost:
        """The cost of every release made so far."""
        book = self._book.newest().value
        return total([*(line.spent for line in book.newest_lines()), *book.charges])

    @property
    def reserved(self) -> Cost:
        """The cost of every release made or still to come in the streams opened so far."""
        return self._book.newest().value.reserved

    def open(
        self, lineage: str, cost: Cost, neighbours: str = "replace", spent: Cost = FREE, at: Position = (0, 0, 0, "")
    ) -> None:
        """Reserve `cost` for a lineage that stands at `at`; one that is known must go on where it stands."""
        self._check_process()
        done = False
        while not done:
            seen = self._book.newest()
            book = seen.value
            check_relation(book.neighbours, neighbours)
            if lineage in book.lines:
                check_goes_on(book.lines[lineage].newest().value, cost, at)
                return
            check_room(self.privacy, book.reserved, cost)
            line = opened(cost, spent, at)
            new = _Book(neighbours, {**book.lines, lineage: _Register(line)}, book.charges)
            done = self._book.replace(seen, new)
        self._check_process()

    def charge(self, cost: Cost, neighbours: str = "replace") -> None:
        """Spend `cost` at once, for a release that belongs to no stream, or reject it.

        >>> from taciturn import Cost, Ledger, Privacy
        >>> ledger = Ledger(Privacy(1.0, 1e-6))
        >>> ledger.charge(Cost(plain_epsilon=0.4))
        >>> ledger.spent.plain_epsilon
        0.4
        """
        self._check_process()
        done = False
        while not done:
            seen = self._book.newest()
            book = seen.value
            check_relation(book.neighbours, neighbours)
            check_room(self.privacy, book.reserved, cost)
            done = self._book.replace(seen, _Book(neighbours, book.lines, (*book.charges, cost)))
        self._check_process()

    def commit(self, lineage: str, used: Position, following: Position, spent: Cost) -> None:
        """Record that the state at `used` is used up, `following` is live, and what is spent; then show releases.

        Raises `StateConflict`, and records nothing, if `used` is not the live state.
        """
        self._check_process()
        lines = self._book.newest().value.lines
        if lineage not in lines:
            raise StateConflict("this ledger does not know the stream. Open it first.")
        line = lines[lineage]
        done = False
        while not done:
            seen = line.newest()
            done = line.replace(seen, committed(seen.value, used, following, spent))
        self._check_process()

    def _check_process(self) -> None:
        """Reject a forked child; called again after a change, as the process may have been forked before it."""
        if os.getpid() != self._process:
            raise StateConflict(
                "this ledger belongs to the process that made it: a forked child has only a copy, which would spend "
                "the same budget again. Run the stream where its ledger is."
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise StateConflict(
            "a ledger cannot be copied or pickled: the copy would spend the same budget again. Share the ledger itself "
            "within its process."
        )


# Checks: functions of records alone.


def check_relation(settled: str | None, neighbours: str) -> None:
    """Reject costs of another neighbour relation than the one that is `settled`."""
    if neighbours != (settled or neighbours):
        raise Unprovable(
            f"this ledger's costs are for {settled!r} neighbours, this stream's for {neighbours!r}: "
            "they do not add. Use one relation for all models on a stream, or a ledger for each."
        )


def check_room(privacy: Privacy | None, reserved: Cost, cost: Cost) -> None:
    """Reject a cost that does not fit a budget in addition to what is `reserved`."""
    reserved = total([reserved, cost])
    if privacy is not None and not reserved.within(privacy):
        raise BudgetExhausted(
            f"opening this stream would reserve {reserved} in all, more than the ledger's {privacy} "
            "allows. Give the models smaller budgets, or the ledger a larger one."
        )


def check_goes_on(line: Line, cost: Cost, at: Position) -> None:
    """Reject a known lineage that does not stand at `at`, or reserved another cost."""
    _check_live(line, at)
    if cost != line.reserved:
        raise StateConflict("this stream reserved another cost when it opened. Go on with its settings.")


def opened(cost: Cost, spent: Cost, at: Position) -> Line:
    """A new lineage."""
    if not _at_most(spent, cost):
        raise BudgetExhausted(f"this stream would reserve {cost} and has spent {spent}. Go on with its settings.")
    return Line(cost, spent, at)


def committed(line: Line, used: Position, following: Position, spent: Cost) -> Line:
    """The lineage after a commit."""
    _check_live(line, used)
    if following[0] <= used[0] or following[1:3] < used[1:3] or not _at_most(line.spent, spent):
        raise StateConflict("a stream's generations and its cost only rise. Go on from its newest state.")
    if not _at_most(spent, line.reserved):
        raise BudgetExhausted(f"this stream reserved {line.reserved} and would have spent {spent}.")
    return Line(line.reserved, spent, following)


def _check_live(line: Line, at: Position) -> None:
    if at != line.live:
        raise StateConflict(
            f"generation {at[0]} of this stream is not its live state, which is generation {line.live[0]}: it was "
            "used already, or is a copy or an old snapshot. Releasing its next round again would spend twice. "
            f"Go on from the newest state, or {SECOND_STREAM}."
        )


def _at_most(less: Cost, more: Cost) -> bool:
    return all(a <= b for a, b in zip(less.parts, more.parts, strict=True))


# How a record is replaced.

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
class _Book:
    """The content of a ledger at one time: which streams are open, and what was charged besides."""

    neighbours: str | None = None
    lines: Mapping[str, _Register[Line]] = field(default_factory=dict)
    charges: tuple[Cost, ...] = ()

    def newest_lines(self) -> Iterator[Line]:
        """The present lines of all streams."""
        return (line.newest().value for line in self.lines.values())

    @property
    def reserved(self) -> Cost:
        """The sum of all reservations; it never changes in a book, as commits reserve nothing."""
        return total([*(line.reserved for line in self.newest_lines()), *self.charges])


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
