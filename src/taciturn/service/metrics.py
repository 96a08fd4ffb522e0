"""Numbers for monitoring, in the text format of Prometheus: public ones, and the operator's, which are marked.

Public numbers follow from visible releases and settings; they change at ticks. What counts requests, rows, errors and
durations depends on who did what when, and on the rows: it is for the operator alone.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from taciturn.service.messages import Counted
from taciturn.service.tokens import Token

if TYPE_CHECKING:
    from taciturn.service.service import Service

_PUBLIC = (
    ("releases", "gauge", "Visible releases of a stream."),
    ("round", "gauge", "Round of the last visible release."),
    ("spent_epsilon", "gauge", "Privacy spent by the visible releases, as epsilon at the contract's delta."),
    ("budget_epsilon", "gauge", "Privacy that the stream may spend in all."),
    ("noise_sd", "gauge", "Standard deviation of the noise of the last visible release."),
    ("closed", "gauge", "1 if the stream has ended."),
    ("events", "gauge", "Events that were opened, if labels come later."),
)
_SECRET = (
    ("rows", "counter", "Rows learnt by this process."),
    ("bad_rows", "counter", "Those of them that the contract cannot read: they have no influence."),
    ("absent", "counter", "Rows learnt without a name of the contract, by column, as where it is misspelt."),
    ("commits", "counter", "Commits of this process: blocks of requests."),
    ("conflicts", "counter", "Blocks that were learnt again because another process was faster."),
    ("late", "counter", "Commits whose releases missed their tick, and were shown at the next."),
    ("labels", "counter", "Labels of events that this process has stored."),
    ("redated", "counter", "Events that were dated by a clock far ahead, and wait anew."),
    ("late_labels", "counter", "Labels that came after the wait of their events, and were rejected."),
)


class Metrics:
    """Counters of a process; `text` shows them."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()  # by number, stream and column
        self._lock = threading.Lock()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.rejected: Counter[str] = Counter()  # connections, by the reason; in the event loop's thread

    def count(self, what: str, stream: str, by: int = 1, column: str = "") -> None:
        """Add to a counter of a stream, or of a column of its rows."""
        with self._lock:
            self._counts[what, stream, column] += by

    def counted(self, stream: str) -> Counted:
        """The rows of a stream that this process has learnt."""
        with self._lock:
            counts = sorted(self._counts.items())
        absent = {column: n for (what, name, column), n in counts if (what, name) == ("absent", stream)}
        return Counted(self._counts["rows", stream, ""], self._counts["bad_rows", stream, ""], absent)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; in the thread of the event loop only."""
        self.requests[method, route, status] += 1
        self.seconds[method, route] += seconds  # type: ignore[assignment]

    def text(self, service: Service, token: Token) -> str:
        """The numbers that a token may see."""
        lines: list[str] = []
        hosts = [host for host in service.open_hosts() if token.allows("read", host.name)]
        for name, kind, about in _PUBLIC:
            lines += [f"# HELP taciturn_stream_{name} {about}", f"# TYPE taciturn_stream_{name} {kind}"]
            for host in hosts:
                view = host.view
                value = {
                    "releases": view.k,
                    "round": view.t,
                    "spent_epsilon": view.spent.epsilon,
                    "budget_epsilon": host.budget.epsilon,
                    "noise_sd": view.noise_sd,
                    "closed": int(view.closed),
                    "events": None if host.contract.events is None else host.events_opened,
                }[name]
                if value is not None:
                    lines.append(f"taciturn_stream_{name}{{stream={_quoted(host.name)}}} {_number(value)}")
        lines += [
            "# HELP taciturn_tick_seconds Period of the clock at whose ticks releases become visible.",
            "# TYPE taciturn_tick_seconds gauge",
            f"taciturn_tick_seconds {_number(service.clock.seconds)}",
        ]
        if service.last_tick is not None:
            lines += [
                "# HELP taciturn_last_tick_timestamp_seconds The last tick at which all of the store was read.",
                "# TYPE taciturn_last_tick_timestamp_seconds gauge",
                f"taciturn_last_tick_timestamp_seconds {_number(service.last_tick.at / 1000.0)}",
            ]
        if token.allows("operate"):
            lines += self._secret(service)
        return "\n".join(lines) + "\n"

    def _secret(self, service: Service) -> list[str]:
        lines = ["# NOT PRIVATE: what follows depends on rows and on who sent them, and is for the operator alone."]
        with self._lock:
            counts = sorted(self._counts.items())
        for name, kind, about in _SECRET:
            lines += [
                f"# HELP taciturn_operator_{name}_total NOT PRIVATE. {about}",
                f"# TYPE taciturn_operator_{name}_total {kind}",
            ]
            lines += [
                f"taciturn_operator_{name}_total{{stream={_quoted(stream)}{_of(column)}}} {value}"
                for (what, stream, column), value in counts
                if what == name
            ]
        lines += [
            "# HELP taciturn_operator_queued_rows NOT PRIVATE. Rows that wait to be learnt.",
            "# TYPE taciturn_operator_queued_rows gauge",
        ]
        lines += [
            f"taciturn_operator_queued_rows{{stream={_quoted(name)}}} {writer.rows}"
            for name, writer in sorted(service.writers.items())
        ]
        lines += [
            "# HELP taciturn_operator_pending_events NOT PRIVATE. Events that are not learnt yet.",
            "# TYPE taciturn_operator_pending_events gauge",
        ]
        lines += [
            f"taciturn_operator_pending_events{{stream={_quoted(host.name)}}} {host.events_pending}"
            for host in service.open_hosts()
            if host.contract.events is not None
        ]
        now = service.clock.now()
        lines += [
            "# HELP taciturn_operator_oldest_due_event_seconds NOT PRIVATE. Time for which an event is due.",
            "# TYPE taciturn_operator_oldest_due_event_seconds gauge",
        ]
        lines += [
            f"taciturn_operator_oldest_due_event_seconds{{stream={_quoted(host.name)}}} "
            f"{_number(max(0, now - (host.events_due or now)) / 1000.0)}"
            for host in service.open_hosts()
            if host.contract.events is not None
        ]
        if service.last_tick is not None:
            lines += [
                "# HELP taciturn_operator_tick_age_seconds NOT PRIVATE. Time since the last reading of the store.",
                "# TYPE taciturn_operator_tick_age_seconds gauge",
                f"taciturn_operator_tick_age_seconds {time.monotonic() - service.last_tick.ended:.3f}",
                "# HELP taciturn_operator_tick_length_seconds NOT PRIVATE. How long it took.",
                "# TYPE taciturn_operator_tick_length_seconds gauge",
                f"taciturn_operator_tick_length_seconds {service.last_tick.seconds:.3f}",
            ]
        lines += [
            "# HELP taciturn_operator_unreadable_streams NOT PRIVATE. Streams that are in the store and not shown on.",
            "# TYPE taciturn_operator_unreadable_streams gauge",
            f"taciturn_operator_unreadable_streams {len(service.unreadable())}",
            "# HELP taciturn_operator_live_clients NOT PRIVATE. Open connections for server-sent events.",
            "# TYPE taciturn_operator_live_clients gauge",
            f"taciturn_operator_live_clients {service.live}",
            "# HELP taciturn_operator_connections NOT PRIVATE. Open connections.",
            "# TYPE taciturn_operator_connections gauge",
            f"taciturn_operator_connections {service.connections}",
            "# HELP taciturn_operator_rejected_connections_total NOT PRIVATE. Rejected or cut off, by reason.",
            "# TYPE taciturn_operator_rejected_connections_total counter",
        ]
        lines += [
            f'taciturn_operator_rejected_connections_total{{reason="{why}"}} {count}'
            for why, count in sorted(self.rejected.items())
        ]
        lines += [
            "# HELP taciturn_operator_requests_total NOT PRIVATE. Requests by route and status.",
            "# TYPE taciturn_operator_requests_total counter",
        ]
        lines += [
            f'taciturn_operator_requests_total{{method="{method}",route={_quoted(route)},status="{status}"}} {value}'
            for (method, route, status), value in sorted(self.requests.items())
        ]
        lines += [
            "# HELP taciturn_operator_request_seconds_total NOT PRIVATE. Time of all requests of a route.",
            "# TYPE taciturn_operator_request_seconds_total counter",
        ]
        lines += [
            f'taciturn_operator_request_seconds_total{{method="{method}",route={_quoted(route)}}} {value:.6f}'
            for (method, route), value in sorted(self.seconds.items())
        ]
        return lines


def _of(column: str) -> str:
    return f",column={_quoted(column)}" if column else ""


def _quoted(text: str) -> str:
    r"""A label's value.

    >>> _quoted('a"b')
    '"a\\"b"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(value)
