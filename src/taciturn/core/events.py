"""Events: rows whose labels come later, in the order in which they were opened.

An event is a row without its label, such as a decision before its reward. It has its round from the moment at which it
is opened: the n-th event is the n-th round. It waits for its label for a public time, the *wait*, and then enters the
stream, with the label, or without one. It never enters earlier, also if its label is there: so the time at which a row
is learnt depends on when events were opened, which is public, and not on when labels came, which is their visitors'
data.

An event passes these states, each step by one change:

1. *opened*: it gets the next number;
2. *closed*, if a label comes while it waits, the first one;
3. *sealed*, after its wait: from here on it takes no label, and its content is read;
4. *learnt*: a state is stored whose round is the event's number or a later one, and its content is erased.

`Progress` has the rules. They hold in two logs: `MemoryLog` is in memory, for the bandits of the library, where waits
are counted in decisions; `taciturn.store.EventLog` is in a database, by whose clock the streams of a service wait.

**Privacy.** What a stream learns is a sequence of rows: the n-th is that of the n-th event, with its label or without.
When a label came, and whether one came, changes the content of its own row, and nothing of others. So two sets of
visits that differ in one visitor, in what that visitor's label was, when it came or whether it came, are two streams
that differ in one row, and the certificates of the stream hold as they are. If the unit is a user, which rows count is
decided in the order of rounds, as ever. ∎
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import InvalidInput, StateConflict
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.stream.state import new_name

Flags = NDArray[np.bool_]


class UnknownEvent(InvalidInput):
    """There is no event of this id, or it was long ago."""


class EventConflict(StateConflict):
    """An event that was opened with another row, or closed with another label."""


class EventEnded(StateConflict):
    """The wait of an event has passed."""


class Progress(NamedTuple):
    """How many events of a stream were opened, sealed and learnt: of each the first ones, by their numbers.

    >>> progress = Progress().open(3).seal(2)
    >>> progress, [progress.ended(number) for number in (2, 3)]
    (Progress(opened=3, sealed=2, learnt=0), [True, False])
    """

    opened: int = 0
    sealed: int = 0
    learnt: int = 0

    @property
    def waiting(self) -> int:
        """How many events were opened, and not learnt yet."""
        return self.opened - self.learnt

    @property
    def intact(self) -> bool:
        """Whether events can be there: each was opened before it was sealed, and sealed before it was learnt."""
        return 0 <= self.learnt <= self.sealed <= self.opened

    def past(self, horizon: int, count: int = 1) -> bool:
        """Whether one of so many more events would have a round that the stream does not have."""
        return self.opened + count > horizon

    def open(self, count: int = 1) -> Progress:
        """With the next events opened."""
        return Progress(self.opened + count, self.sealed, self.learnt)

    def ended(self, number: Any, over: Any = False) -> Any:
        """Whether an event takes no label any more, and may be sealed after those before it; or which of an array.

        `over` says whether its wait is over by the present clock. What was sealed stays so if that is set back.
        """
        return (number <= self.sealed) | over

    def seal(self, last: int) -> Progress:
        """With the events up to this number sealed."""
        return Progress(self.opened, max(self.sealed, min(last, self.opened)), self.learnt)

    def learn(self, t: int, name: str = "the stream") -> Progress:
        """With the events up to round t learnt; an error if one of them is not sealed."""
        if t > self.sealed:
            raise StateConflict(
                f"round {t} of {name} is that of an event that is not sealed. Its rows are events: open them."
            )
        return Progress(self.opened, self.sealed, max(self.learnt, t))


class _Held(NamedTuple):
    """Events that are not learnt, at the start of arrays with room for more: labels, and columns. Secret."""

    progress: Progress
    labels: Array
    columns: tuple[NDArray[Any], ...]

    def __repr__(self) -> str:
        return f"_Held({self.progress.waiting} events, secrets not shown)"

    def with_room(self, size: int, start: int = 0) -> _Held:
        """The events from one on, in new arrays of this size."""
        made, end = [], self.progress.waiting
        for array in (self.labels, *self.columns):
            made.append(np.empty((size, *array.shape[1:]), dtype=array.dtype))
            made[-1][: end - start] = array[start:end]
        return _Held(self.progress, made[0], tuple(made[1:]))


class MemoryLog:
    """The events of a stream in the memory of one process; for one thread at a time. Secret.

    They change by one assignment, after all that belongs to a change is written to where no event is: so an interrupt
    leaves all events as they were, or as they are to be, and never what is known of one beside another.

    Events belong to the log that opened them, which has a random id. One that goes on from `arrays` knows the ids of
    those before it, and has another from then on: what these opened after `arrays` were made is lost, and its numbers
    are taken again, by other events.

    Parameters
    ----------
    columns : dict of ndarray
        What is stored of an event, beside its label: empty arrays by name. One of objects has texts, integers, or None.
    label : str
        The name of the labels, numbers.

    Examples
    --------
    >>> log = MemoryLog({"x": np.empty(0)}, "y")
    >>> log.open([0.5, 0.25])
    >>> stored, ended, again = log.close(np.array([2, 2]), np.array([1.0, 3.0]))
    >>> stored.tolist(), ended.tolist(), again.tolist()
    ([True, False], [False, False], [False, True])
    >>> log.seal(2)
    >>> log.sealed()
    (array([nan,  1.]), array([0.5 , 0.25]))
    >>> log.learn(2)
    >>> log.progress
    Progress(opened=2, sealed=2, learnt=2)
    """

    def __init__(self, columns: Arrays, label: str) -> None:
        self._names, self._label = tuple(columns), label
        self._held = _Held(Progress(), np.empty(0), tuple(columns.values()))
        self._ids = {new_name(): 1}  # of logs, and the first event of each

    @property
    def id(self) -> str:
        """The id of the log that opens the next event; it is no secret."""
        return next(reversed(self._ids))

    @property
    def progress(self) -> Progress:
        """How many events were opened, sealed and learnt."""
        return self._held.progress

    def open(self, *rows: Any) -> None:
        """Open events: a value of each column for each."""
        held, count = self._held, len(rows[0])
        start = held.progress.waiting
        end = start + count
        if end > len(held.labels):
            held = held.with_room(max(2 * len(held.labels), end, 16))
        held.labels[start:end] = np.nan
        for column, values in zip(held.columns, rows, strict=True):
            column[start:end] = values
        self._held = _Held(held.progress.open(count), held.labels, held.columns)

    def close(self, numbers: Integers, labels: Array, ids: Sequence[str] = ()) -> tuple[Flags, Flags, Flags]:
        """Store labels of events; which are stored, which came too late, and which a second time.

        The others are not finite. What is not stored keeps no other label from it. `ids` are those of the logs that
        opened the events, or one that opened them all; an event that is not known is an error for all.
        """
        if not self._knows(numbers, ids):
            raise UnknownEvent("there is no such event. Give those that were opened here.")
        held = self._held
        ended, places = held.progress.ended(numbers), numbers - held.progress.learnt - 1
        again = ~(ended | np.isnan(held.labels[np.maximum(places, 0)]))
        if len(numbers) > 1:
            first = np.unique(numbers, return_index=True)[1]
            again |= np.isin(np.arange(len(numbers)), first, invert=True)
        stored = np.isfinite(labels) & ~(ended | again)
        held.labels[places[stored]] = labels[stored]
        return stored, ended, again

    def _knows(self, numbers: Integers, ids: Sequence[str]) -> bool:
        if not numbers.size:
            return True
        opened = self.progress.opened
        if numbers.min() < 1 or numbers.max() > opened:
            return False
        known, first = list(self._ids), [*self._ids.values(), opened + 1]
        for each in set(ids):
            if each not in self._ids:
                return False
            here = numbers if len(ids) == 1 else numbers[[one == each for one in ids]]
            which = known.index(each)
            if here.min() < first[which] or here.max() >= first[which + 1]:
                return False
        return True

    def seal(self, last: int) -> None:
        """Let the events up to this number take no label any more."""
        held = self._held
        if last > held.progress.sealed:
            self._held = _Held(held.progress.seal(last), held.labels, held.columns)

    def sealed(self) -> tuple[NDArray[Any], ...]:
        """Labels and columns of the sealed events that are not learnt."""
        held = self._held
        end = held.progress.sealed - held.progress.learnt
        return held.labels[:end], *(column[:end] for column in held.columns)

    def learn(self, t: int) -> None:
        """Erase the events up to round t, which was stored; an error if one of them is not sealed."""
        held = self._held
        if t > held.progress.learnt:
            progress = held.progress.learn(t)
            done = progress.learnt - held.progress.learnt
            left = held.with_room(max(2 * progress.waiting, 16), done)
            self._held = _Held(progress, left.labels, left.columns)

    @property
    def arrays(self) -> Arrays:
        """What a checkpoint stores."""
        progress, end = self.progress, self.progress.waiting
        made = {
            "first": np.array(progress.learnt + 1),
            "closed": np.array(progress.sealed),
            "ids": np.array(list(self._ids)),
            "id_rounds": np.array(list(self._ids.values())),
            self._label: self._held.labels[:end].copy(),
        }
        for name, column in zip(self._names, self._held.columns, strict=True):
            kept = column[:end].copy()
            if column.dtype == object:
                given = kept.tolist()
                text = json.dumps(given if any(each is not None for each in given) else [])
                kept = np.frombuffer(text.encode(), dtype=np.uint8)
            made[name] = kept
        return made

    def resumed(self, arrays: Arrays) -> Self:
        """Go on from `arrays` of a log with these columns, validated; this one must not have been used."""
        try:
            labels, ids, first = arrays[self._label], arrays["ids"], arrays["id_rounds"]
            columns = []
            for name, column in zip(self._names, self._held.columns, strict=True):
                kept = arrays[name]
                if column.dtype == object:
                    given = json.loads(kept.tobytes())
                    kept = np.full(len(given) or len(labels), None, dtype=object)
                    if given:
                        kept[:] = given
                if kept.dtype != column.dtype or kept.shape != (len(labels), *column.shape[1:]):
                    raise ValueError
                columns.append(kept)
            learnt, sealed = (int(arrays[name][()]) for name in ("first", "closed"))
            progress = Progress(learnt - 1 + len(labels), sealed, learnt - 1)
            known = ids.ndim == 1 and ids.shape == first.shape and ids.dtype.kind == "U"
            if labels.ndim != 1 or labels.dtype != np.float64 or not (known and progress.intact):
                raise ValueError
        except (KeyError, ValueError, TypeError):
            raise StateConflict(
                "this file has no intact events, such as decisions of a bandit, beside its state. Give an intact copy."
            ) from None
        self._held = _Held(progress, labels, tuple(columns)).with_room(max(2 * len(labels), 16))
        self._ids = {**dict(zip(ids.tolist(), first.tolist(), strict=True)), new_name(): progress.opened + 1}
        return self
