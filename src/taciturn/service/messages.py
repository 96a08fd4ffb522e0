"""The types of requests and answers. The OpenAPI document is generated from them (`taciturn.service.openapi`).

Every answer is public for those who may read the stream, but for `Diagnostics`, for `Check`, which counts what is in
the sender's own rows, and for `Learnt`, `Event` and `Closed`, which tell a learner the rounds of its own rows.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="letters, digits, . _ and -")]
EventId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", description="letters, digits, . _ ~ -")]
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


class CheckedColumn(Struct, frozen=True, omit_defaults=True):
    """Rows that have no such name, that have no value under it, and values that the contract does not foresee."""

    absent: int = 0
    missing: int = 0
    below: int = 0
    above: int = 0
    unknown: int = 0


class CheckedUsers(Struct, frozen=True):
    """The ids in the rows of a dry run, and the rows that would count if they were the first of a stream."""

    users: int
    without_id: int
    counted: int


class Check(Struct, frozen=True):
    """NOT PRIVATE: what the contract makes of the sender's own rows, none of which was learnt; for who sent them.

    `columns` has all that are read, with those of the target and of the ids; `undeclared` the names in the rows that
    the contract does not have, and `hints` what may be wrong with names, in sentences.
    """

    stream: str
    not_private: bool
    rows: int
    bad_rows: int
    reasons: dict[str, int]
    target: str
    user: str | None
    columns: dict[str, CheckedColumn]
    ignored: list[str]
    undeclared: list[str]
    hints: list[str]
    labels: dict[str, int]
    users: CheckedUsers | None


class Predictions(Struct, frozen=True, omit_defaults=True):
    """Predictions of the latest visible model; null for a row that the contract cannot read."""

    stream: str
    release: int
    predictions: list[Value]
    classes: list[Value] | None = None
    probabilities: list[list[float] | None] | None = None


class NewEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """A row whose label comes later, and an id of the sender's choice; by default a random one."""

    row: Any
    event: EventId | None = None


class Event(Struct, frozen=True, omit_defaults=True):
    """An event: its id and round, until when it takes a label, and the prediction of the latest visible model."""

    stream: str
    event: str
    round: int
    due: int
    release: int
    prediction: Value
    classes: list[Value] | None = None
    probabilities: list[float] | None = None


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """The label of an event. One that the contract cannot read makes a row without influence."""

    label: Value


class Reward(Struct, frozen=True, forbid_unknown_fields=True):
    """The reward of an event: its label, a number."""

    value: float


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """An action that may be chosen, and what is known of it, if actions share a model: values of columns."""

    id: str
    features: dict[str, Any] | list[dict[str, Any]] = {}


class Rank(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A decision to make: values of the visitor's columns, the actions, those that are excluded, and an id.

    Without `actions` it is among those of the contract. A decision whose activation is deferred has no influence if no
    reward comes. Without `learn` it takes no round and is not stored: then it has no id, and no reward.
    """

    context_features: dict[str, Any] | list[dict[str, Any]] = {}
    actions: list[Action] | None = None
    excluded_actions: list[str] = []
    event_id: EventId | None = None
    defer_activation: bool = False
    learn: bool = True


class RankedAction(Struct, frozen=True):
    """An action, and the probability with which it was to be chosen; null if that is not known."""

    id: str
    probability: float | None


class Ranked(Struct, frozen=True, rename="camel"):
    """A decision: the chosen action, all actions in order, the round, and until when it takes a reward.

    One that is not learnt from has null as its id, as its round, and until when.
    """

    stream: str
    event_id: str | None
    reward_action_id: str
    ranking: list[RankedAction]
    round: int | None
    due: int | None
    release: int


class Closed(Struct, frozen=True):
    """An event whose label will be learnt, at its round, when its wait has passed."""

    stream: str
    event: str
    round: int


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
    """What is public about a stream, with contract and guarantee in words, and a warning if little can be learnt."""

    stream: Stream
    guarantee: str
    unit: str
    neighbours: str
    method: str
    noise_on: str
    contract: dict[str, Any]
    warning: str | None


class Successor(Struct, frozen=True, forbid_unknown_fields=True):
    """A stream that is to follow another: its name; its contract and its ledger, by default those of the first."""

    name: str
    contract: dict[str, Any] | None = None
    ledger: str | None = None


class Renewed(Struct, frozen=True):
    """A stream that was closed, and its successor, with what is promised to someone whose rows are in both."""

    closed: str
    opened: StreamDetails
    starts_from_the_model: bool
    promise: str


class Streams(Struct, frozen=True):
    """The streams that a token may read, and names of those that the server itself cannot read now.

    The reason is in the server's log: a key that is not that of the stream, for instance.
    """

    streams: list[Stream]
    unreadable: list[str] = []


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


class Counted(Struct, frozen=True):
    """Rows that this process has learnt, those that the contract cannot read, and by column those without its name."""

    rows: int
    bad_rows: int
    absent: dict[str, int]


class Diagnostics(Struct, frozen=True):
    """NOT PRIVATE: numbers computed from exact rows, for the operator alone."""

    stream: str
    not_private: bool
    rows: int
    counted: Counted
    diagnostics: dict[str, Any] | None


class Health(Struct, frozen=True, omit_defaults=True):
    """Whether the server runs, or is ready to answer; and how many streams it could not read at the last tick.

    Operators also get a warning about the place of the witness.
    """

    status: str
    unreadable: int = 0
    warning: str | None = None


class Error(Struct, frozen=True, omit_defaults=True):
    """What went wrong, in a sentence; an id, if the operator's log has more."""

    error: str
    id: str | None = None
