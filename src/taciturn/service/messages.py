"""The types of requests and answers. The OpenAPI document is generated from them (`taciturn.service.openapi`).

Every answer is public for those who may read the stream, but for `Diagnostics`, and for `Learnt`, which tells a learner
the rounds of its own rows.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="letters, digits, . _ and -")]
Value = bool | int | float | str | None


class NewStream(Struct, frozen=True, forbid_unknown_fields=True):
    """A stream to begin: its name, its contract as in a contract file, and the people whose ledger pays for it."""

    name: Name
    contract: dict[str, Any]
    ledger: str | None = None


class Rows(Struct, frozen=True, forbid_unknown_fields=True):
    """Rows, each an object with a value for each column. A row that the contract cannot read has no influence."""

    rows: list[Any]


class Learnt(Struct, frozen=True):
    """The rounds that the rows of a request have taken; it says nothing about their content."""

    stream: str
    first: int
    last: int


class Predictions(Struct, frozen=True, omit_defaults=True):
    """Predictions of the latest visible model; null for a row that the contract cannot read."""

    stream: str
    release: int
    predictions: list[Value]
    classes: list[Value] | None = None
    probabilities: list[list[float] | None] | None = None


class Budget(Struct, frozen=True):
    """An epsilon, rounded up, at a delta; null if no finite epsilon holds."""

    epsilon: float | None
    delta: float


class Stream(Struct, frozen=True):
    """What is public about a stream at the last tick."""

    name: str
    closed: bool
    learns: bool
    simulated: bool
    releases: int
    round: int
    next_release: int | None
    horizon: int | None
    visible_at: int | None
    tick: float
    spent: Budget
    budget: Budget
    ledger: str | None


class StreamDetails(Struct, frozen=True):
    """The same, with the contract and the guarantee in words."""

    stream: Stream
    guarantee: str
    unit: str
    neighbours: str
    method: str
    noise_on: str
    contract: dict[str, Any]


class Streams(Struct, frozen=True):
    """The streams that a token may read."""

    streams: list[Stream]


class Released(Struct, frozen=True, omit_defaults=True):
    """A release: its number, its round, and the standard deviation of its noise; with its weights if asked for."""

    k: int
    t: int
    noise_sd: float
    model: list[float] | None = None
    point: list[float] | None = None


class Releases(Struct, frozen=True):
    """Consecutive releases; `next` is the number after which more follow, null at the last visible one."""

    stream: str
    releases: list[Released]
    next: int | None


class LedgerLine(Struct, frozen=True):
    """A stream or model that a ledger pays for, with what it has spent by its last visible release."""

    lineage: str
    stream: str | None
    reserved: Budget
    spent: Budget
    closed: bool


class LedgerEvent(Struct, frozen=True):
    """An event of a ledger's history; its time is the tick after it."""

    number: int
    at: int
    kind: str
    lineage: str


class Ledger(Struct, frozen=True):
    """What a ledger's people were promised, what is reserved and spent, and what is left, in epsilon."""

    population: str
    unit: str
    neighbours: str | None
    renews: bool
    budget: Budget
    reserved: Budget
    spent: Budget
    left: float
    lines: list[LedgerLine]
    events: list[LedgerEvent]


class Ledgers(Struct, frozen=True):
    """The ledgers in the store."""

    ledgers: list[str]


class Diagnostics(Struct, frozen=True):
    """NOT PRIVATE: numbers computed from exact rows, for the operator alone."""

    stream: str
    not_private: bool
    rows: int
    diagnostics: dict[str, Any] | None


class Health(Struct, frozen=True):
    """Whether the server runs, or is ready to answer."""

    status: str


class Error(Struct, frozen=True, omit_defaults=True):
    """What went wrong, in a sentence; an id, if the operator's log has more."""

    error: str
    id: str | None = None
