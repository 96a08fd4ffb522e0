"""What the pages show, as frozen dataclasses: public data at visible releases, and the operator's numbers apart.

Every view is a pure function of a contract, a plan, visible releases, costs and ledgers. None of them takes a state, a
row or the position of a stream after its last visible release; what a page cannot receive it cannot show. The one
exception is `OperatorView`, which is labelled NOT PRIVATE and has a page and a scope of its own.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
from scipy.special import ndtri

from taciturn.accounting.history import FIRST, Event, first_fault
from taciturn.accounting.ledger import Ledger
from taciturn.columns.kinds import Bins, Categories, Column, Date, Hashed, PrivateRange, Range, Text
from taciturn.columns.labels import probabilities
from taciturn.columns.values import PlainValues
from taciturn.contract.contract import Contract
from taciturn.contract.explain import column_in_words, in_plain_words, public, target_in_words
from taciturn.contract.model_file import Model
from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.ledger_rules import Line, read_cost
from taciturn.kernel.arrays import Array, Integers
from taciturn.plan import Plan
from taciturn.service.clock import TickClock
from taciturn.service.dashboard.noise import Kind, Noise
from taciturn.service.service import ENDINGS
from taciturn.store.overview import recipe_of

Verdict = Literal["signal", "unclear", "noise", "unknown"]

Dated = tuple[Mapping[str, Any], int | None]
"""A release as in `models.jsonl`, and since when it is visible, in milliseconds since the epoch."""

MOST_RELEASES = 10_000
"""Releases that a chart shows; more are thinned out, and the first and the last stay."""

_PANELS = 6  # coefficients that have a chart
_MOST_COEFFICIENTS = 60  # in the table; the rest is in model.json
_TABLE = 25  # releases in the table beside the charts
_LEVEL = 0.05  # of a false "signal" among all coefficients of a model that is noise alone


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page: the name of the token, its scopes and only stream, and the secret of the session's forms."""

    name: str
    scopes: frozenset[str]
    csrf: str
    only: str | None = None

    def may(self, scope: str, stream: str | None = None) -> bool:
        """Whether the token has a scope, for a stream; None is what concerns all of them. `admin` has all scopes.

        >>> viewer = Viewer("reports", frozenset({"read"}), "", only="clicks")
        >>> viewer.may("read", "clicks"), viewer.may("operate", "clicks"), viewer.may("read")
        (True, False, False)
        """
        return (scope in self.scopes or "admin" in self.scopes) and self.only in (None, stream)

    def __repr__(self) -> str:
        return f"Viewer({self.name!r}, {sorted(self.scopes)})"


@dataclass(frozen=True)
class Gauge:
    """A budget in epsilon at one delta: spent, reserved (with what is spent) and what one more stream can have.

    Epsilons of costs do not add, so that `left` is not the budget minus `reserved`.

    >>> Gauge(2.0, 1e-6, spent=0.5, reserved=1.0, left=1.5).shares
    (25.0, 25.0)
    """

    budget: float | None
    delta: float
    spent: float
    reserved: float
    left: float | None

    @property
    def shares(self) -> tuple[float, float]:
        """Percent of the bar that are spent, and reserved beyond that."""
        if self.budget is None or not self.budget > 0.0:
            return 0.0, 0.0
        ends = [100.0 * min(max(value / self.budget, 0.0), 1.0) for value in (self.spent, self.reserved)]
        return ends[0], max(ends[1] - ends[0], 0.0)

    @property
    def exhausted(self) -> bool:
        """Whether less than a hundredth of the budget is left for another stream."""
        return self.left is not None and self.budget is not None and self.left < 0.01 * self.budget


@dataclass(frozen=True)
class Published:
    """The visible releases of a stream, perhaps thinned out; all of it is public.

    Attributes
    ----------
    numbers, rounds, noise_sd : ndarray
        Number, round and stated noise of each.
    models, points : ndarray
        The model to use after each, and the released point itself.
    visible_at : ndarray
        Milliseconds since the epoch; 0 where it is not recorded.
    count : int
        How many there are, those that were thinned out included.
    """

    numbers: Integers
    rounds: Integers
    noise_sd: Array
    models: Array
    points: Array
    visible_at: Integers
    count: int

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of_lines(
        cls, lines: Iterable[tuple[Mapping[str, Any], int]], size: int, most: int = MOST_RELEASES
    ) -> Published:
        """Of lines as in `models.jsonl`, each with its `visible_at`, for points of `size` entries.

        >>> Published.of_lines([({"k": 1, "t": 9, "noise_sd": 2.0, "model": [0.5]}, 0)], size=1).rounds
        array([9])
        """
        growing = Growing(size, most)
        growing.extend(lines)
        return growing.published


class Growing:
    """Releases that are added as they become visible; thinned out when there are too many to draw or to hold.

    Releases number 1, 1 + s, 1 + 2s, … and the last are held, where the stride s doubles whenever they are too many.

    Parameters
    ----------
    size : int
        Entries of a point.
    most : int
        Releases that are held.

    Examples
    --------
    >>> growing = Growing(size=1, most=4)
    >>> growing.extend([({"k": k, "t": 10 * k, "noise_sd": 1.0, "model": [0.0]}, 0) for k in range(1, 10)])
    >>> growing.published.numbers.tolist(), growing.published.count
    ([1, 5, 9], 9)
    """

    def __init__(self, size: int, most: int = MOST_RELEASES) -> None:
        self.size = size
        self.most = max(2, min(most, 2**23 // max(size, 1)))
        self.count = 0
        self._stride = 1
        self._held: list[tuple[int, int, float, Array, Array, int]] = []
        self._last: tuple[int, int, float, Array, Array, int] | None = None

    def needs(self, k: int, last: int) -> bool:
        """Whether release k will be held when all up to the `last` are added; the others may be left out."""
        stride = self._stride
        while -(-last // stride) > self.most:
            stride *= 2
        return k == last or (k - 1) % stride == 0

    def extend(self, lines: Iterable[Dated]) -> None:
        """Add the next releases, in order; those that are known already change nothing."""
        for line, visible_at in lines:
            k = int(line["k"])
            if k <= self.count:
                continue
            model = np.array(line["model"], dtype=np.float64)
            point = np.array(line["point"], dtype=np.float64) if "point" in line else model
            self._last = (k, int(line["t"]), float(line["noise_sd"]), model, point, int(visible_at or 0))
            self.count = k
            if (k - 1) % self._stride == 0:
                self._held.append(self._last)
            while -(-k // self._stride) > self.most:
                self._stride *= 2
                self._held = [row for row in self._held if (row[0] - 1) % self._stride == 0]

    @property
    def published(self) -> Published:
        """What is held, and the last release."""
        rows = list(self._held)
        if self._last is not None and (not rows or rows[-1][0] != self._last[0]):
            rows.append(self._last)
        empty = np.zeros((0, self.size))
        return Published(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64),
            np.array([row[3] for row in rows]) if rows else empty,
            np.array([row[4] for row in rows]) if rows else empty,
            np.array([row[5] for row in rows], dtype=np.int64),
            self.count,
        )


@dataclass(frozen=True)
class Coefficient:
    """A weight of the latest model beside the standard deviation of its noise; the intercept times its constant."""

    index: int
    name: str
    value: float
    noise_sd: float
    verdict: Verdict

    @property
    def ratio(self) -> float:
        """How many standard deviations of the noise the weight is."""
        return abs(self.value) / self.noise_sd if self.noise_sd > 0.0 else math.nan


@dataclass(frozen=True)
class Bars:
    """Where a coefficient's bar and its noise are drawn, in percent of the width; 50 is zero."""

    start: float
    width: float
    noise_start: float
    noise_width: float


def _bars(value: float, sd: float, largest: float) -> Bars:
    scale = 48.0 / largest if largest > 0.0 else 0.0
    end = 50.0 + scale * value
    reach = 2.0 * scale * sd if math.isfinite(sd) else 0.0
    low, high = max(end - reach, 0.5), min(end + reach, 99.5)
    return Bars(min(50.0, end), abs(end - 50.0), low, max(high - low, 0.0))


def verdict(value: float, sd: float, coefficients: int) -> Verdict:
    """Whether a weight is more than noise: by chance, less than one model in twenty has any false "signal".

    "unclear" is what a single coefficient would be called a signal for, and one of many is not.

    >>> [verdict(value, 1.0, 20) for value in (1.0, -2.5, 4.0)]
    ['noise', 'unclear', 'signal']
    """
    if not sd > 0.0 or not math.isfinite(sd):
        return "unknown"
    ratio = abs(value) / sd
    if ratio >= -ndtri(_LEVEL / 2.0 / coefficients):
        return "signal"
    return "unclear" if ratio >= -ndtri(_LEVEL / 2.0) else "noise"


@dataclass(frozen=True)
class Input:
    """A field of the form for predictions.

    `kind` is number, select, date or text; `missing` says whether it may stay empty.
    """

    name: str
    label: str
    kind: Literal["number", "select", "date", "text"]
    hint: str
    options: tuple[str, ...] = ()
    low: str = ""
    high: str = ""
    value: str = ""
    error: str = ""


@dataclass(frozen=True)
class Prediction:
    """The answer of a form: what is predicted, and the probability of each class, if there are any."""

    text: str
    of: str
    probabilities: tuple[tuple[str, float], ...] = ()
    k: int = 0


@dataclass(frozen=True)
class StreamView:
    """One stream, as its page shows it.

    Attributes
    ----------
    name : str
        What it is called.
    contract, plan : Contract, Plan
        What was declared, and how it learns.
    published, noise : Published, Noise
        The visible releases, and the noise of each.
    gauge : Gauge
        Of the stream itself: its budget is what it has reserved.
    ledger : LedgerRow, optional
        The ledger that it is reserved in.
    guarantee : str
        The guarantee, precisely.
    closed : bool
        Whether it has ended.
    inputs, prediction, error : tuple of Input, Prediction, str
        The form for predictions, and the answer to it.
    """

    name: str
    contract: Contract
    plan: Plan
    published: Published
    noise: Noise
    gauge: Gauge
    ledger: LedgerRow | None
    guarantee: str
    closed: bool = False
    inputs: tuple[Input, ...] = ()
    prediction: Prediction | None = None
    error: str = ""

    @property
    def simulated(self) -> bool:
        """Whether the noise came from a seed."""
        return self.plan.private.seed is not None

    @property
    def count(self) -> int:
        """Number of visible releases."""
        return self.published.count

    @property
    def rows(self) -> int:
        """The round of the last visible release."""
        return int(self.published.rounds[-1]) if len(self.published) else 0

    @property
    def horizon(self) -> int | None:
        """After how many rows it ends."""
        return self.plan.private.timetable.horizon

    @property
    def coming(self) -> int | None:
        """Releases to come."""
        table = self.plan.private.timetable
        return None if table.horizon is None else max(table.count - self.count, 0)

    @property
    def next_round(self) -> int | None:
        """The round of the next release."""
        return None if self.coming == 0 else self.plan.private.timetable.due(self.count + 1)

    @property
    def status(self) -> Literal["waiting", "live", "complete", "closed"]:
        """In a word."""
        if self.closed:
            return "closed"
        return "complete" if self.coming == 0 else "live" if self.count else "waiting"

    @property
    def latest_at(self) -> datetime | None:
        """When the last release became visible."""
        return _time(self.published.visible_at[-1]) if len(self.published) else None

    @property
    def target(self) -> str:
        """What is predicted, in words."""
        return target_in_words(self.contract)

    @property
    def purpose(self) -> str:
        """What it is for, in words."""
        return purpose_in_words(self.contract)

    @property
    def paid_for(self) -> bool:
        """Whether releases are to come, and nothing is left to be spent on them."""
        return self.count > 0 and self.status == "live" and self.gauge.spent >= (1.0 - 1e-6) * self.gauge.reserved

    @property
    def in_words(self) -> str:
        """What the guarantee means for a person."""
        return in_plain_words(self.contract)

    @property
    def public(self) -> list[str]:
        """What is public."""
        return public(self.contract)

    @property
    def noise_in_words(self) -> str:
        """How the noise on an entry is known."""
        return _NOISE[self.noise.kind]

    @cached_property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """All of the latest model, the clearest first."""
        if not self.count:
            return ()
        names, scale = _names(self.contract, self.plan)
        values = self.published.models[-1] * scale
        noise = self.noise.model[-1] * scale
        made = (
            Coefficient(i, names[i], float(values[i]), float(noise[i]), verdict(values[i], noise[i], len(values)))
            for i in range(len(values))
        )
        return tuple(sorted(made, key=lambda each: -(each.ratio if math.isfinite(each.ratio) else abs(each.value))))

    @property
    def shown(self) -> list[tuple[Coefficient, Bars]]:
        """Those of the table, with their bars."""
        some = self.coefficients[:_MOST_COEFFICIENTS]
        largest = max((abs(one.value) + 2.0 * _finite(one.noise_sd) for one in some), default=0.0)
        return [(one, _bars(one.value, one.noise_sd, largest)) for one in some]

    @property
    def verdicts(self) -> dict[str, int]:
        """How many coefficients are of each kind."""
        found = [one.verdict for one in self.coefficients]
        return {kind: found.count(kind) for kind in ("signal", "unclear", "noise", "unknown")}

    @property
    def panels(self) -> tuple[Coefficient, ...]:
        """The coefficients that have a chart."""
        return self.coefficients[:_PANELS]

    def chart(self, after: int = 0, indices: Sequence[int] | None = None) -> dict[str, Any]:
        """The numbers of the charts, of the releases after a number and of these coefficients."""
        of = self.published
        since = int(np.searchsorted(of.numbers, after, side="right"))
        names, scale = _names(self.contract, self.plan)
        chosen = [one.index for one in self.panels] if indices is None else [i for i in indices if 0 <= i < len(names)]
        moves = self.moves
        sds = self.noise.model[:, None] if self.noise.model.ndim == 1 else self.noise.model  # one for all, or for each
        return {
            "k": of.numbers[since:].tolist(),
            "t": of.rounds[since:].tolist(),
            "moves": None if moves is None else _rounded(moves[since:]),
            "series": [
                {
                    "index": i,
                    "name": names[i],
                    "value": _rounded(of.models[since:, i] * scale[i]),
                    "sd": _rounded(sds[since:, min(i, sds.shape[1] - 1)] * scale[i]),
                }
                for i in chosen
            ],
        }

    @cached_property
    def moves(self) -> Array | None:
        """How far each released point moved from the one before, in units of what noise alone moves it by.

        Root mean squares over entries; None if the noise of a move is not known. Where releases were thinned out, a
        move is that from the release before, which is not held; such streams have none.
        """
        of, sd = self.published, self.noise.move
        if sd is None or not len(of) or of.count != len(of):
            return None
        bandit = self.contract.bandit
        first = self.plan.private.problem.first_point if bandit is None else np.zeros(of.points.shape[1])
        moved = np.diff(of.points, axis=0, prepend=first[None, :])
        sizes = np.sqrt((moved**2).mean(axis=1))
        return np.asarray(np.divide(sizes, sd, out=np.full(len(sd), np.nan), where=sd > 0.0))

    @property
    def table(self) -> list[dict[str, Any]]:
        """The last releases, the newest first, for people who read and not look."""
        of, moves = self.published, self.moves
        _, scale = _names(self.contract, self.plan)
        return [
            {
                "k": int(of.numbers[i]),
                "t": int(of.rounds[i]),
                "at": _time(of.visible_at[i]),
                "noise_sd": float(of.noise_sd[i]),
                "move": None if moves is None else float(moves[i]),
                "values": [float(of.models[i, one.index] * scale[one.index]) for one in self.panels],
            }
            for i in range(len(of) - 1, max(len(of) - 1 - _TABLE, -1), -1)
        ]

    @property
    def card(self) -> list[tuple[str, str]]:
        """The model card: names and values."""
        contract, plan, private = self.contract, self.plan, self.plan.private
        horizon = "none: it goes on" if self.horizon is None else f"{self.horizon:,} rows"
        features = "linear" if private.problem.features is None else str(private.problem.features)
        mechanism = getattr(private, "mechanism", None) or type(private).__name__
        burn_in = plan.burn_in
        return [
            ("Learns from" if contract.bandit else "Predicts", self.target),
            ("Loss and method", f"{contract.loss}, {plan.method}"),
            ("Why this method", plan.why),
            ("Model in use", "late average of the released points" if plan.averages else "last released point"),
            ("Features", f"{contract.dimension:,}, {features}; rows clipped to norm {contract.feature_bound:.4g}"),
            ("Releases", f"{private.timetable.schedule}, horizon {horizon}"),
            ("Mechanism", str(mechanism)),
            ("Unit of privacy", str(private.unit)),
            ("Neighbours", private.neighbours),
            ("Budget", f"epsilon = {contract.epsilon:g}, delta = {contract.delta:g}"),
            (
                "Better than a constant",
                "expected of no release" if burn_in is None else f"expected from row {burn_in:,} on",
            ),
        ]

    @property
    def warning(self) -> str | None:
        """What the plan warns of."""
        return self.plan.warning

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Columns and how they are declared."""
        return [(column.name, column_in_words(column)) for column in self.contract.columns]

    @property
    def example(self) -> str:
        """How rows are sent, for a shell: a request, or two, if labels or rewards come later."""
        stream, made = quote(self.name, safe=""), []
        for method, path, body in example_requests(self.contract):
            key = "" if self.contract.events is not None else ' -H "Idempotency-Key: $(uuidgen)"'
            verb = "" if method == "POST" else f"-X {method} "
            made.append(
                f'curl {verb}"$SERVICE/v1/streams/{stream}/{path}" \\\n'
                f'  -H "Authorization: Bearer $TOKEN"{key} \\\n'
                f"  --json {shlex.quote(json.dumps(body, ensure_ascii=False))}"
            )
        return "\n".join(made)

    @property
    def example_in_words(self) -> str:
        """What the requests of the example need, and do."""
        events = self.contract.events
        if events is None:
            return (
                "With a token of scope learn. A key is used once: a request that is repeated with its key is not "
                "learnt twice."
            )
        what = "reward" if self.contract.bandit is not None else "label"
        return (
            f"With a token of scopes predict and learn. The {what} follows within {events.wait}, with the same token; "
            "an id is used once."
        )

    @property
    def declared(self) -> str:
        """The contract as JSON."""
        return json.dumps(self.contract.declared, indent=2, ensure_ascii=False)


def purpose_in_words(contract: Contract) -> str:
    """What a stream is for, without a full stop.

    >>> from taciturn.contract.contract import contract_of
    >>> target, columns = {"column": "bought", "positive": ["yes"]}, {"age": {"range": [0, 100]}}
    >>> purpose_in_words(contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": columns}))
    'Predicts whether bought is yes or something else'
    """
    target = target_in_words(contract)
    return f"Predicts {target}" if contract.bandit is None else f"{contract.bandit.in_words} Learns from {target}"


def example_requests(contract: Contract) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and body of the requests by which one row is learnt: two, if its label or reward comes later.

    >>> from taciturn.contract.contract import contract_of
    >>> target, columns = {"column": "bought", "positive": ["yes"]}, {"age": {"range": [0, 100]}}
    >>> declared = {"privacy": {"epsilon": 1}, "target": target, "columns": columns, "events": {"wait": "1 day"}}
    >>> for request in example_requests(contract_of(declared)):
    ...     print(*request)
    POST events {'row': {'age': 50.0}, 'event': 'visit-1'}
    PUT events/visit-1/label {'label': 'yes'}
    """
    row, bandit = example_row(contract), contract.bandit
    if contract.events is None:
        return [("POST", "examples", {"rows": [row]})]
    label = row.pop(contract.target.column)
    if bandit is None:
        opening = "events", {"row": row, "event": "visit-1"}
        return [("POST", *opening), ("PUT", "events/visit-1/label", {"label": label})]
    context: dict[str, Any] = row
    body: dict[str, Any] = {}
    if bandit.actions is None:
        context = {name: row.pop(name) for name in (contract.user,) if name is not None}
        body["actions"] = [{"id": id, "features": row} for id in ("one", "another")]
    body = {"contextFeatures": context, **body, "eventId": "visit-1"}
    return [("POST", "rank", body), ("PUT", "events/visit-1/reward", {"value": label})]


def example_row(contract: Contract) -> dict[str, Any]:
    """A row that the contract can read, made up from its declarations.

    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> columns = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Bergen"]}}
    >>> example_row(contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": columns}))
    {'age': 50.0, 'town': 'Oslo', 'bought': 'yes'}
    """
    row: dict[str, Any] = {} if contract.user is None else {contract.user: "a1"}
    for column in contract.read:
        if isinstance(column, Range):
            row[column.name] = (column.low + column.high) / 2.0
        elif isinstance(column, Bins):
            row[column.name] = column.edges[0]
        elif isinstance(column, PrivateRange):
            row[column.name] = 0
        else:
            row[column.name] = (
                column.values[0]
                if isinstance(column, Categories)
                else str(column.low)
                if isinstance(column, Date)
                else "…"
            )
    names = contract.target.names
    row[contract.target.column] = names[-1] if names else getattr(contract.target, "low", 0)
    return row


@dataclass(frozen=True)
class StreamRow:
    """A stream in the list of all."""

    name: str
    purpose: str
    status: str
    releases: int
    rows: int
    horizon: int | None
    gauge: Gauge
    population: str | None
    latest_at: datetime | None
    simulated: bool = False

    @classmethod
    def of(cls, view: StreamView) -> StreamRow:
        """The row of a stream."""
        return cls(
            view.name,
            view.purpose,
            view.status,
            view.count,
            view.rows,
            view.horizon,
            view.gauge,
            None if view.ledger is None else view.ledger.population,
            view.latest_at,
            view.simulated,
        )


@dataclass(frozen=True)
class LedgerRow:
    """A ledger in the list of all."""

    population: str
    unit: str
    neighbours: str | None
    renews: bool
    gauge: Gauge
    lines: int
    closed: int


@dataclass(frozen=True)
class Seen:
    """What is visible of a stream in a ledger: what it has spent by its last visible release, and whether it ended."""

    spent: Cost
    closed: bool
    ended: bool = False


@dataclass(frozen=True)
class LedgerLine:
    """A stream or a one-off release in a ledger."""

    lineage: str
    name: str
    what: str
    reserved: float
    spent: float
    state: Literal["open", "closed", "finished"]


@dataclass(frozen=True)
class HistoryEntry:
    """An event of a ledger's history."""

    number: int
    at: datetime | None
    who: str
    kind: str
    name: str
    cost: float | None
    chain: str


@dataclass(frozen=True)
class LedgerView:
    """One ledger: its budget, what is in it, its history, and whether the chain of hashes is intact."""

    row: LedgerRow
    lines: tuple[LedgerLine, ...]
    history: tuple[HistoryEntry, ...]
    fault: str | None
    end: str

    @property
    def intact(self) -> bool:
        """Whether every event follows from the one before, and the last is the last."""
        return self.fault is None


@dataclass(frozen=True)
class TokenRow:
    """A token, without its secret."""

    id: str
    name: str
    scopes: tuple[str, ...]
    streams: tuple[str, ...]
    created: datetime | None
    expires: datetime | None
    revoked: bool = False
    own: bool = False
    expired: bool = False


@dataclass(frozen=True)
class OperatorView:
    """NOT PRIVATE: numbers of exact rows, for the operator alone."""

    name: str
    measure: str
    value: float | None
    mean_loss: float | None
    clipped_share: float | None
    bad_rows: int | None
    from_row: int
    to_row: int
    curve: tuple[tuple[float, float], ...] = ()
    more: tuple[tuple[str, str], ...] = field(default_factory=tuple)
    why: str = "Diagnostics begin with the first rows that this service learns."
    closed: bool = False

    @classmethod
    def without_diagnostics(
        cls, name: str, why: str, more: Iterable[tuple[str, str]] = (), closed: bool = False
    ) -> OperatorView:
        """Of a stream that is not evaluated, and why."""
        return cls(name, "", None, None, None, None, 0, 0, (), tuple(more), why, closed)

    @classmethod
    def of_diagnostics(
        cls, name: str, data: Mapping[str, Any], more: Iterable[tuple[str, str]] = (), closed: bool = False
    ) -> OperatorView:
        """Of `taciturn.runs.diagnostics.Diagnostics.as_data`."""
        measure = str(data["measure"])
        seen = data["to_row"] > data["from_row"]
        return cls(
            name,
            measure.replace("_", " "),
            float(data[measure]) if seen else None,
            float(data["mean_loss"]) if seen else None,
            float(data["clipped_share"]) if seen else None,
            int(data["bad_rows"]) if seen else None,
            int(data["from_row"]),
            int(data["to_row"]),
            tuple((float(t), float(value)) for t, value in data["curve"]),
            tuple(more),
            closed=closed,
        )

    @property
    def chart(self) -> dict[str, Any]:
        """The numbers of the chart."""
        return {"t": [t for t, _ in self.curve], "value": _rounded(np.array([v for _, v in self.curve]))}


# ---- ledgers ---------------------------------------------------------------------------------------------------------


def ledger_row(ledger: Ledger, visible: Mapping[str, Seen] | None = None) -> LedgerRow:
    """A ledger in a line; of streams that are served it has what is visible, which takes the place of what is."""
    privacy = ledger.privacy
    delta = privacy.delta if privacy is not None else 1e-6
    period, seen = ledger.period, visible or {}
    lines = ledger.lines
    present = {name: line for name, line in lines.items() if period is None or line.holds(period)}
    gauge = Gauge(
        None if privacy is None else privacy.epsilon,
        delta,
        _epsilon(total(_spent(line, seen.get(name)) for name, line in present.items()), delta),
        _epsilon(total(line.reserved for line in present.values()), delta),
        ledger.left,
    )
    ended = sum(_state(line, seen.get(name)) != "open" for name, line in lines.items())
    return LedgerRow(ledger.population, ledger.unit, ledger.neighbours, ledger.renews, gauge, len(lines), ended)


def ledger_view(
    ledger: Ledger, visible: Mapping[str, Seen] | None = None, clock: TickClock | None = None
) -> LedgerView:
    """A ledger with its history, the newest event first, and the check of its chain of hashes.

    By a clock, an event is shown from the tick after it on, with the time of that tick; all of them are verified.

    >>> from taciturn import Ledger, Privacy
    >>> ledger_view(Ledger(Privacy(1.0, 1e-6))).intact
    True
    """
    row, seen = ledger_row(ledger, visible), visible or {}
    events = list(ledger.history)
    count, end = ledger.end_of_history
    fault = first_fault(events)
    last = events[-1].chain if events else end
    if fault is None and (count, end) != (len(events), last):
        fault = "the last event is not the one that the ledger stored as its last"
    names: dict[str, str] = {}
    whats: dict[str, str] = {}
    for event in events:
        data = event.data
        if event.lineage and event.kind in ("opened", "adopted", "charged"):
            names[event.lineage] = str(data.get("stream") or ("one-off release" if event.kind == "charged" else ""))
            whats[event.lineage] = recipe_of(data.get("settings"))
    delta = row.gauge.delta
    lines = tuple(
        LedgerLine(
            lineage,
            names.get(lineage) or lineage[:8],
            whats.get(lineage, "not recorded"),
            _epsilon(line.reserved, delta),
            _epsilon(_spent(line, seen.get(lineage)), delta),
            _state(line, seen.get(lineage)),
        )
        for lineage, line in ledger.lines.items()
    )
    pending = {lineage for lineage, each in seen.items() if not (each.ended or each.closed)}
    told = (event for event in events if not (event.kind in ENDINGS and event.lineage in pending))
    entries = (_entry(event, names, delta, clock) for event in reversed(list(told)))
    now = None if clock is None else _time(clock.last())
    shown = tuple(one for one in entries if now is None or one.at is None or one.at <= now)
    return LedgerView(row, lines, shown, fault, shown[0].chain if shown else FIRST)


def _spent(line: Line, seen: Seen | None) -> Cost:
    """What a stream has spent by what is visible of it; one that is not shown here, until its end, what it reserved.

    What it has spent may belong to releases that are not visible yet.
    """
    if seen is not None:
        return seen.spent
    return line.spent if line.closed else line.reserved


def _state(line: Line, seen: Seen | None) -> Literal["open", "closed", "finished"]:
    """Of a stream that is served, what is visible."""
    if seen is not None:
        return "closed" if seen.closed else "open"
    return "closed" if line.closed else "finished" if line.finished else "open"


def _epsilon(cost: Cost, delta: float) -> float:
    return 0.0 if cost == FREE else cost.epsilon(delta)


def _entry(event: Event, names: Mapping[str, str], delta: float, clock: TickClock | None) -> HistoryEntry:
    reserved = event.data.get("reserved")
    try:
        at = datetime.fromisoformat(event.at)
    except ValueError:
        at = None
    if at is not None and clock is not None:
        at = _time(clock.last(int(at.timestamp() * 1000.0 + 999.0)) + clock.period)  # it is cut to seconds
    return HistoryEntry(
        event.number,
        at,
        event.who,
        event.kind,
        names.get(event.lineage, event.lineage[:8]),
        None if reserved is None else _epsilon(read_cost(reserved), delta),
        event.chain,
    )


# ---- predictions -----------------------------------------------------------------------------------------------------


def inputs_of(contract: Contract, values: Mapping[str, str] | None = None) -> tuple[Input, ...]:
    """The fields of the form for predictions, with these values.

    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> from taciturn.contract.contract import contract_of
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"age": {"range": [0, 100]}}})
    >>> [(one.label, one.kind, one.low, one.high) for one in inputs_of(contract)]
    [('age', 'number', '0', '100')]
    """
    values = values or {}
    return tuple(_input(f"c{i}", column, values.get(f"c{i}", "")) for i, column in enumerate(contract.read))


def _input(name: str, column: Column, value: str) -> Input:
    label, hint = column.name, column_in_words(column)
    bad = value != "" and column.pairs(value) is None
    error = "This is not a number." if bad else ""
    if isinstance(column, Range):
        return Input(name, label, "number", hint, (), f"{column.low:g}", f"{column.high:g}", value, error)
    if isinstance(column, Bins | PrivateRange):
        return Input(name, label, "number", hint, value=value, error=error)
    if isinstance(column, Categories):
        return Input(name, label, "select", hint, tuple(map(str, column.values)), value=value)
    if isinstance(column, Date):
        error = "This is not a date, as in 2024-05-31." if bad else ""
        return Input(name, label, "date", hint, (), f"{column.low}", f"{column.high}", value, error)
    assert isinstance(column, Hashed | Text)
    return Input(name, label, "text", hint, value=value)


def predict(model: Model, values: Mapping[str, str]) -> Prediction | None:
    """The prediction for the values of a form; None if one of them is bad."""
    contract = model.contract
    row = {column.name: PlainValues([values.get(f"c{i}") or None]) for i, column in enumerate(contract.read)}
    X, bad = contract.encoder.encode(row, 1)
    if bad.any():
        return None
    scores = model.scores(X)
    answer = contract.decode_predictions(scores).tolist()[0]
    of_classes: tuple[tuple[str, float], ...] = ()
    if contract.target.names and contract.loss != "hinge":
        found = probabilities(model.problem, scores)[0].tolist()
        of_classes = tuple(zip(map(str, contract.target.names), found, strict=True))
    text = f"{answer:.6g}" if isinstance(answer, float) else str(answer)
    return Prediction(text, contract.target.column, of_classes, model.releases)


# ---- small things ----------------------------------------------------------------------------------------------------

_NOISE: dict[Kind, str] = {
    "exact": "The noise is known exactly: it is added to the weights themselves.",
    "sums": "The noise is known exactly of the sums of gradients that models are made of (in the table), of no weight.",
    "estimated": "The noise is estimated from how much successive releases differ, which is too much while they learn.",
}


def _names(contract: Contract, plan: Plan) -> tuple[list[str], Array]:
    """Names of the entries of a point, and what each is multiplied with to be shown: the intercept by its constant."""
    problem = plan.private.problem
    scale = np.ones((problem.outputs, problem.width))
    scale[:, problem.mapped_dimension :] = problem.intercept
    features = [*contract.weight_names, *(["intercept"] if problem.intercept else [])]
    classes = [f"{name}: " for name in contract.target.names] if problem.outputs > 1 else [""]
    if contract.bandit is not None and contract.bandit.actions is not None:
        classes = [f"{name}: " for name in contract.bandit.actions]
        scale = np.tile(scale, (len(classes), 1))
    return [f"{of}{name}" for of in classes for name in features], scale.ravel()


def _rounded(values: Array) -> list[float | None]:
    """Five significant digits, for a chart; None for what is not finite."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _time(milliseconds: Any) -> datetime | None:
    return datetime.fromtimestamp(int(milliseconds) / 1000.0, UTC) if int(milliseconds) else None
