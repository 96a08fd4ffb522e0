"""The book of a data stream: what was reserved, what was spent, and which state is the live one.

Every model that learns from one stream writes to one ledger. It is monotone, and it closes the two ways in which a
guarantee is usually lost without anyone noticing: several models on the same people (their costs add, and the sum
must fit the ledger's budget), and a state used twice (each generation of a lineage is accepted once).
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from tacit.accounting.events import FREE, GaussianEvent, compose
from tacit.accounting.exact import Privacy
from tacit.errors import BudgetExhausted, StateConflict


@dataclass
class _Line:
    """One lineage: the most it can cost, what it has cost, and its live generation."""

    reserved: GaussianEvent
    spent: GaussianEvent
    generation: int


class Ledger:
    """What one data stream has paid, over all the models that learn from it.

    Parameters
    ----------
    privacy : Privacy, optional
        A budget for everything that learns from the stream together. Without it the ledger only keeps count: each
        model is still held to its own budget.

    Examples
    --------
    Two models on the same people, under one roof:

    >>> from tacit import GaussianEvent, Ledger, Privacy
    >>> ledger = Ledger(Privacy(1.0, 1e-6))
    >>> ledger.open("first", GaussianEvent(0.04))
    >>> ledger.open("second", GaussianEvent(0.04))
    Traceback (most recent call last):
    ...
    tacit.errors.BudgetExhausted: opening this stream would reserve mu = 0.28284, and the ledger allows mu = 0.2367 ...

    The guard of generations lives in this process's memory: a file loaded in another process is taken at its word.
    """

    def __init__(self, privacy: Privacy | None = None) -> None:
        self.privacy = privacy
        self._lines: dict[str, _Line] = {}
        self._lock = threading.Lock()
        self.process = os.getpid()

    def __repr__(self) -> str:
        spent, reserved = self.spent.mu, self.reserved.mu
        return f"Ledger({self.privacy}, spent mu={spent:.5g}, reserved mu={reserved:.5g})"

    @property
    def spent(self) -> GaussianEvent:
        """The cost of every release made so far."""
        return compose(line.spent for line in self._lines.values())

    @property
    def reserved(self) -> GaussianEvent:
        """The cost of every release made or still to come in the streams opened so far."""
        return compose(line.reserved for line in self._lines.values())

    def open(self, lineage: str, cost: GaussianEvent, spent: GaussianEvent = FREE, generation: int = 0) -> None:
        """Reserve `cost` for a new lineage, or refuse it whole: a stream is never stopped half-way."""
        with self._lock:
            if lineage in self._lines:
                raise StateConflict("this stream is open in this ledger already. Go on from its newest state.")
            total = compose([self.reserved, cost])
            if self.privacy is not None and not total.within(self.privacy):
                raise BudgetExhausted(
                    f"opening this stream would reserve mu = {total.mu:.5g}, and the ledger allows "
                    f"mu = {self.privacy.mu:.5g} for {self.privacy}. Give the models smaller budgets, or "
                    "the ledger a larger one."
                )
            self._lines[lineage] = _Line(cost, spent, generation)

    def commit(self, lineage: str, generation: int, spent: GaussianEvent) -> None:
        """Record that `generation` is used and what the lineage has spent with it; before any release is shown.

        Raises `StateConflict`, and records nothing, if that generation was used before.
        """
        with self._lock:
            line = self._lines[lineage]
            if generation != line.generation:
                raise StateConflict(
                    f"generation {generation} of this stream is not its live state, which is generation "
                    f"{line.generation}: it was used already, or is a copy or an old snapshot. Releasing its next "
                    "round again would spend twice. Go on from the newest state, or open a second, separately "
                    "charged stream with `Private.fork`."
                )
            line.generation, line.spent = generation + 1, spent


_BOOKS: dict[str, Ledger] = {}


def register(lineage: str, ledger: Ledger) -> None:
    """Remember, for as long as this process lives, which ledger guards `lineage`."""
    _BOOKS[lineage] = ledger


def ledger_of(lineage: str) -> Ledger | None:
    """The ledger that guards `lineage` in this process, if any; a forked child inherits none."""
    ledger = _BOOKS.get(lineage)
    return ledger if ledger is not None and ledger.process == os.getpid() else None
