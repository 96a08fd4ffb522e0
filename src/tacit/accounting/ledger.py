"""The book of a data stream: what was reserved, what was spent, and which state is the live one.

Every model that learns from one stream writes to one ledger. It is monotone, and it closes the two ways in which a
guarantee is usually lost without anyone noticing: several models on the same people (their costs add, and the sum
must fit the ledger's budget), and a state used twice (each generation of a lineage is accepted once).
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from tacit.accounting.cost import FREE, Cost, total
from tacit.accounting.exact import Privacy
from tacit.errors import BudgetExhausted, StateConflict, Unprovable, expect

Position = tuple[int, int, int, str]
"""Generation, examples seen, releases made and a random token: a state is live only if all are the newest."""

SECOND_STREAM = "open a second, separately charged stream with Private.fork"


@dataclass
class _Line:
    """One lineage: the most it can cost, what it has cost, and its live generation."""

    reserved: Cost
    spent: Cost
    live: Position


class Ledger:
    """What one data stream has paid, over all the models that learn from it.

    A stream's whole cost is reserved when it opens, or refused then: no stream is stopped half-way.

    Parameters
    ----------
    privacy : Privacy, optional
        A budget for everything that learns from the stream together. Without it the ledger only keeps count: each
        model is still held to its own budget.

    Examples
    --------
    Two models on the same people, under one budget:

    >>> from tacit import Ledger, Privacy
    >>> from tacit.accounting.cost import gaussian
    >>> ledger = Ledger(Privacy(1.0, 1e-6))
    >>> ledger.open("first", gaussian(0.04))
    >>> ledger.open("second", gaussian(0.04))
    Traceback (most recent call last):
    ...
    tacit.errors.BudgetExhausted: opening this stream would reserve mu = 0.2828 in all, more than the ledger's ...

    The guard of generations lives in this process's memory: a file loaded in another process is taken at its word.
    """

    def __init__(self, privacy: Privacy | None = None) -> None:
        expect("privacy", privacy, privacy is None or isinstance(privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        self.privacy = privacy
        self.neighbours: str | None = None
        self._process = os.getpid()
        self._lines: dict[str, _Line] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Ledger({self.privacy}, spent {self.spent}, reserved {self.reserved})"

    @property
    def spent(self) -> Cost:
        """The cost of every release made so far."""
        with self._lock:
            return total(line.spent for line in self._lines.values())

    @property
    def reserved(self) -> Cost:
        """The cost of every release made or still to come in the streams opened so far."""
        with self._lock:
            return total(line.reserved for line in self._lines.values())

    def open(
        self, lineage: str, cost: Cost, neighbours: str = "replace", spent: Cost = FREE, at: Position = (0, 0, 0, "")
    ) -> None:
        """Reserve `cost` for a lineage that stands at `at`; one that is known must go on where it stands."""
        self._check_process()
        with self._lock:
            if neighbours != (self.neighbours or neighbours):
                raise Unprovable(
                    f"this ledger's costs are for {self.neighbours!r} neighbours, this stream's for {neighbours!r}: "
                    "they do not add. Use one relation for all models on a stream, or a ledger for each."
                )
            if lineage in self._lines:
                self._check_live(lineage, at)
                if cost != self._lines[lineage].reserved:
                    raise StateConflict("this stream reserved another cost when it opened. Go on with its settings.")
                return
            reserved = total([self.reserved, cost])
            if self.privacy is not None and not reserved.within(self.privacy):
                raise BudgetExhausted(
                    f"opening this stream would reserve {reserved} in all, more than the ledger's {self.privacy} "
                    "allows. Give the models smaller budgets, or the ledger a larger one."
                )
            self.neighbours = neighbours
            self._lines[lineage] = _Line(cost, spent, at)

    def charge(self, cost: Cost, neighbours: str = "replace") -> None:
        """Spend `cost` at once, for something that is published once and has no stream; or refuse.

        >>> from tacit import Cost, Ledger, Privacy
        >>> ledger = Ledger(Privacy(1.0, 1e-6))
        >>> ledger.charge(Cost(plain_epsilon=0.4))
        >>> ledger.spent.plain_epsilon
        0.4
        """
        with self._lock:
            once = f"charge {len(self._lines)}"
            self.open(once, cost, neighbours)
            self.commit(once, (0, 0, 0, ""), (1, 0, 0, ""), cost)

    def commit(self, lineage: str, used: Position, following: Position, spent: Cost) -> None:
        """Record that the state at `used` is used up, `following` is live, and what is spent; then show releases.

        Raises `StateConflict`, and records nothing, if `used` is not the live state.
        """
        self._check_process()
        with self._lock:
            self._check_live(lineage, used)
            line = self._lines[lineage]
            if following[0] <= used[0] or following[1:3] < used[1:3] or not _at_most(line.spent, spent):
                raise StateConflict("a stream's generations and its cost only rise. Go on from its newest state.")
            if not _at_most(spent, line.reserved):
                raise BudgetExhausted(f"this stream reserved {line.reserved} and would have spent {spent}.")
            line.live, line.spent = following, spent

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StateConflict(
                "this ledger belongs to the process that made it: a forked child has only a copy, which would spend "
                "the same budget again. Run the stream where its ledger is."
            )

    def _check_live(self, lineage: str, at: Position) -> None:
        if lineage not in self._lines:
            raise StateConflict("this ledger does not know the stream. Open it first.")
        live = self._lines[lineage].live
        if at != live:
            raise StateConflict(
                f"generation {at[0]} of this stream is not its live state, which is generation {live[0]}: it was "
                "used already, or is a copy or an old snapshot. Releasing its next round again would spend twice. "
                f"Go on from the newest state, or {SECOND_STREAM}."
            )


def _at_most(less: Cost, more: Cost) -> bool:
    return all(a <= b for a, b in zip(less.parts, more.parts, strict=True))


_BOOKS: dict[str, Ledger] = {}  # for as long as the process lives: forgetting a stream would let a copy go on
_BOOKS_LOCK = threading.Lock()


def _start_anew() -> None:
    """A forked child has opened nothing yet, and another thread may have held the lock."""
    global _BOOKS_LOCK  # noqa: PLW0603
    _BOOKS_LOCK = threading.Lock()
    _BOOKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def enter(lineage: str, ledger: Ledger) -> Ledger:
    """The ledger that guards `lineage` in this process: `ledger`, unless there is one already."""
    with _BOOKS_LOCK:
        return _BOOKS.setdefault(lineage, ledger)


def guard_of(lineage: str) -> Ledger:
    """The ledger that guards `lineage` in this process."""
    if lineage not in _BOOKS:
        raise StateConflict(
            "this state's stream is not open in this process, and may go on in another. Dump it there and load it "
            f"here, or {SECOND_STREAM}, naming its ledger."
        )
    return _BOOKS[lineage]
