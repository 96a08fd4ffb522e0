"""The store of this process: streams whose states are in memory, and the ledger that guards each."""

from __future__ import annotations

import os

from taciturn.accounting.ledger import Ledger
from taciturn.errors import StateConflict
from taciturn.kernel.accounting.ledger_rules import SECOND_STREAM


class MemoryStore:
    """Streams whose states are in the memory of this process, by lineage; there is one, `IN_MEMORY`.

    A ledger knows the newest position of each, and rejects a state that was used (`Ledger.commit`). A stream stays for
    as long as the process lives: if it were forgotten, a copy of one of its states could enter another ledger, and go
    on. A forked child has opened nothing yet.

    Each method is one call of a method of `dict`, which no other thread can split.

    >>> ledger = Ledger()
    >>> store = MemoryStore()
    >>> store.enter("a lineage", ledger) is store.enter("a lineage", Ledger()) is ledger
    True
    """

    def __init__(self) -> None:
        self._ledgers: dict[str, Ledger] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.clear)

    def enter(self, lineage: str, ledger: Ledger) -> Ledger:
        """The ledger that guards `lineage`: `ledger`, unless there is one already."""
        return self._ledgers.setdefault(lineage, ledger)

    def __contains__(self, lineage: str) -> bool:
        return lineage in self._ledgers

    def leave(self, lineage: str, ledger: Ledger) -> None:
        """Forget that `ledger` guards `lineage`, which it has rejected."""
        if self._ledgers.get(lineage) is ledger:
            self._ledgers.pop(lineage, None)

    def ledger_of(self, lineage: str) -> Ledger:
        """The ledger that guards `lineage`, or an error."""
        if (ledger := self._ledgers.get(lineage)) is None:
            raise StateConflict(
                "this state's stream is not open in this process, and may go on in another. Dump it there and load it "
                f"here, or {SECOND_STREAM}, naming its ledger."
            )
        return ledger

    def clear(self) -> None:
        """Forget all streams, as a new process has none."""
        self._ledgers.clear()


IN_MEMORY = MemoryStore()
"""The one store of this process that is in memory."""
