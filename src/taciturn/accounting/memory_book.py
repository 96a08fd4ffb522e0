"""The records of a ledger in the memory of one process.

**In memory a check and its change are one step**, which no other thread, no signal handler or finalizer on the same
thread, and no exception such as KeyboardInterrupt can split. A lock cannot promise that: if its own thread may take it
again, a signal handler passes the check a second time before the change; if not, the handler waits for ever. So there
is no lock. All that is known is in immutable records; a check is a function of a record, and a change puts the next
record behind the one that was checked, if nothing is there yet: one call of `dict.setdefault`, which CPython carries
out atomically. The caller that comes second checks again, against the newer record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

from taciturn.accounting.history import FIRST, Event, next_event
from taciturn.errors import StateConflict
from taciturn.kernel.accounting import ledger_rules as rules
from taciturn.kernel.accounting.ledger_rules import Change, Clock, Learnt, Line, Terms
from taciturn.kernel.accounting.unit import utc_now
from taciturn.kernel.process import process_number

_Value = TypeVar("_Value")


class _Version(TypedDict, Generic[_Value]):
    """A value, and the version that comes after it, once there is one."""

    value: _Value
    later: NotRequired[_Version[_Value]]


class Register(Generic[_Value]):
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
    lines: Mapping[str, Register[Line]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def newest_lines(self) -> Iterator[tuple[str, Line]]:
        """The present lines of all streams."""
        return ((name, line.newest()["value"]) for name, line in self.lines.items())

    def with_event(self, kind: str, lineage: str, content: dict[str, Any]) -> _Records:
        chain = self.events[-1].chain if self.events else FIRST
        return replace(self, events=(*self.events, next_event(len(self.events), chain, kind, lineage, content)))


class MemoryBook:
    """The records of a ledger in the memory of one process."""

    address = None
    witnessed_by = None

    def __init__(self, terms: Terms) -> None:
        self._process = process_number()
        self._records = Register(_Records(terms))

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
        return None if period is None else Clock(period, utc_now())

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
            entered = rules.entering(line, learnt, clock, others) if known is None else line
            if not rules.admitted(records.terms, known, others, entered, neighbours, clock):
                return
            new = replace(
                records.with_event(kind, lineage, content | rules.periods_told(entered)),
                terms=replace(records.terms, neighbours=neighbours),
                lines={**records.lines, lineage: Register(entered)},
            )
            done = self._records.replace(seen, new)
        self._check_process()

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        try:
            line = self._records.newest()["value"].lines.get(lineage)
            if line is None:
                raise rules.unknown_stream()
            done = False
            while not done:
                seen = line.newest()
                known = seen["value"]
                done = line.replace(seen, changed(known, None if known.first is None else self.clock()))
            while kind is not None and getattr(new := line.newest()["value"], kind):
                records = self._records.newest()
                if any((event.kind, event.lineage) == (kind, lineage) for event in records["value"].events):
                    break  # a second call changes nothing, and completes one that was interrupted
                if self._records.replace(records, records["value"].with_event(kind, lineage, rules.ended_told(new))):
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
