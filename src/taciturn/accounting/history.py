"""The history of a ledger: what was opened, charged and closed, by whom and when, as a chain of hashes.

An event is never changed or removed. Each one has the hash of the event before it in its own hash, so that a history in
which one was edited, removed or exchanged does not verify. The hash has no key: it reveals changes by accident or by
someone who does not recompute the rest of the chain. A witness (`taciturn.store.witness`) stores the last hash
elsewhere, and so reveals those, too.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

FIRST = "0" * 64
"""The hash before the first event."""


class Event(NamedTuple):
    """An entry of the history.

    Attributes
    ----------
    number : int
        From 1.
    at : str
        Time in UTC, as the machine that made it told it.
    who : str
        User and machine.
    version : str
        Version of the package.
    kind : str
        `created`, `opened`, `charged`, `closed`, `finished`, `moved`, `restored`, `adopted`, or `unwitnessed`: its
        witness was given up.
    lineage : str
        The stream or one-off release that it is about; empty if it is about the ledger.
    content : str
        JSON with sorted keys: costs, settings and the like.
    chain : str
        SHA-256 of the event before and of this one.
    """

    number: int
    at: str
    who: str
    version: str
    kind: str
    lineage: str
    content: str
    chain: str

    @property
    def data(self) -> dict[str, Any]:
        """The content as Python values."""
        content: dict[str, Any] = json.loads(self.content)
        return content


class Verified(NamedTuple):
    """The outcome of the verification of a ledger.

    Attributes
    ----------
    faults : list of str
        What is wrong, in sentences; empty if nothing is.
    checked : int
        How many costs were computed again.
    unchecked : list of str
        Costs that could not be, and why.
    """

    faults: list[str]
    checked: int
    unchecked: list[str]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def next_event(number: int, chain: str, kind: str, lineage: str, content: dict[str, Any]) -> Event:
    """The event that follows a history of `number` events, whose last hash is `chain`.

    >>> event = next_event(0, FIRST, "opened", "a stream", {"reserved": [0.25]})
    >>> event.number, event.kind, event.data["reserved"]
    (1, 'opened', [0.25])
    """
    from taciturn import __version__

    new = Event(
        number + 1,
        datetime.now(UTC).isoformat(timespec="seconds"),
        f"{_user()}@{socket.gethostname()}",
        __version__,
        kind,
        lineage,
        json.dumps(content, sort_keys=True),
        "",
    )
    return new._replace(chain=_hash(chain, new))


def first_fault(events: Iterable[Event]) -> str | None:
    """What is wrong with a history, in a sentence; None if every event follows from the one before.

    >>> one = next_event(0, FIRST, "opened", "a stream", {"reserved": [0.25]})
    >>> first_fault([one]), first_fault([one._replace(content='{"reserved": [0.0]}')])
    (None, 'event 1 was changed')
    """
    chain = FIRST
    for expected, event in enumerate(events, start=1):
        if event.number != expected:
            return f"event {expected} is missing"
        if event.chain != _hash(chain, event):
            return f"event {expected} was changed"
        chain = event.chain
    return None


def _hash(before: str, event: Event) -> str:
    return hashlib.sha256(json.dumps([before, *event[:-1]]).encode()).hexdigest()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a name for its user
        return "unknown"
