"""The pages as HTML: pure functions of views (`taciturn.service.dashboard.views`).

Every value is escaped by Jinja. Nothing on a page is inline code or inline style, so that the policy of the service can
forbid both (`taciturn.service.app.SECURITY`); numbers for charts are in a JSON block, which browsers do not run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from taciturn import __version__
from taciturn.kernel.accounting.rounding import rounded_down, rounded_up
from taciturn.service.dashboard.views import (
    LedgerRow,
    LedgerView,
    OperatorView,
    StreamRow,
    StreamView,
    TokenRow,
    Viewer,
)

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
"""Style, scripts and the icon."""

SCOPES = (
    ("learn", "send rows"),
    ("predict", "ask for predictions"),
    ("read", "see what is public"),
    ("operate", "close streams; see numbers that are NOT PRIVATE"),
    ("admin", "everything: create streams and tokens"),
)
"""The scopes of tokens, in words."""

_MOST_EVENTS = 200  # of a ledger's history, on its page


class Made(NamedTuple):
    """A token that was made just now, with its secret, which is shown once."""

    name: str
    secret: str

    def __repr__(self) -> str:
        return f"Made({self.name!r}, secret)"


# ---- numbers for people ----------------------------------------------------------------------------------------------


def _up(value: float) -> str:
    return "∞" if math.isinf(value) else rounded_up(value)


def _short(value: float | None) -> str:
    """Three significant digits; a dash for what is not known.

    >>> _short(0.012345), _short(float("nan")), _short(12345.0)
    ('0.0123', '–', '12,300')
    """
    if value is None or not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 1e3 <= abs(rounded) < 1e7 else f"{rounded:.3g}"


def _signed(value: float) -> str:
    text = _short(value)
    return f"+{text}" if value > 0.0 and text != "–" else text.replace("-", "−", 1) if value < 0.0 else text


def _count(value: float) -> str:
    return f"{int(value):,}"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%-d %b %Y, %H:%M:%S UTC")


def _plain(value: float) -> str:
    return f"{value:.6g}"


def _json(value: Any) -> Markup:
    r"""JSON inside HTML: no character in it can end the block.

    >>> print(_json({"name": "</script>&"}))
    {"name":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _breakable(name: str) -> Markup:
    """A name that may be broken after its signs of equality.

    >>> print(_breakable("town=<Oslo>"))
    town=<wbr>&lt;Oslo&gt;
    """
    return Markup("=<wbr>").join(str(name).split("="))


_environment = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.filters.update(
    up=_up,
    down=rounded_down,
    short=_short,
    signed=_signed,
    count=_count,
    plain=_plain,
    time=_time,
    json=_json,
    breakable=_breakable,
    urlencode_all=lambda text: quote(str(text), safe=""),
)


def _page(name: str, viewer: Viewer | None, root: str, place: str | None = None, **values: Any) -> str:
    template = _environment.get_template(f"{name}.html")
    return template.render(viewer=viewer, root=root, place=place, version=__version__, **values)


# ---- pages -----------------------------------------------------------------------------------------------------------


def streams_page(viewer: Viewer, streams: Sequence[StreamRow], root: str = "") -> str:
    """All streams.

    >>> "No stream yet" in streams_page(Viewer("reports", frozenset({"read"}), "…"), [])
    True
    """
    return _page("streams", viewer, root, "", streams=streams)


def stream_page(viewer: Viewer, view: StreamView, root: str = "") -> str:
    """One stream."""
    return _page("stream", viewer, root, view=view, chart=view.chart())


def stream_part(view: StreamView, after: int, series: Sequence[int], root: str = "") -> str:
    """The parts of a stream's page that releases after a number have changed; `series` are the coefficients drawn."""
    chosen = set(series)
    captions = [one for one in view.coefficients if one.index in chosen]
    chart = view.chart(after, series)
    return _page("stream_part", None, root, view=view, chart=chart, captions=captions)


def ledgers_page(viewer: Viewer, ledgers: Sequence[LedgerRow], root: str = "") -> str:
    """All ledgers."""
    return _page("ledgers", viewer, root, "ledgers", ledgers=ledgers)


def ledger_page(viewer: Viewer, view: LedgerView, known: Iterable[str] = (), root: str = "") -> str:
    """One ledger, with links to the streams that are known here."""
    return _page("ledger", viewer, root, view=view, known=frozenset(known), most=_MOST_EVENTS)


def login_page(csrf: str, to: str = "/", error: str = "", minutes: int = 60, root: str = "") -> str:
    """The form to log in."""
    return _page("login", None, root, csrf=csrf, to=to, error=error, minutes=minutes)


NO_LEDGER = "-"
"""What the form for a new stream sends, if its cost is to be in no ledger."""


def new_page(
    viewer: Viewer,
    ledgers: Sequence[LedgerRow],
    form: Mapping[str, str] | None = None,
    error: str = "",
    root: str = "",
) -> str:
    """The form to create a stream."""
    filled = {"name": "", "ledger": "", "contract": "", **(form or {})}
    return _page("new", viewer, root, ledgers=ledgers, form=filled, error=error, none=NO_LEDGER)


def tokens_page(
    viewer: Viewer,
    tokens: Sequence[TokenRow],
    streams: Sequence[str],
    *,
    form: Mapping[str, Any] | None = None,
    made: Made | None = None,
    error: str = "",
    root: str = "",
) -> str:
    """The tokens, and the form to create one."""
    filled = {"name": "", "stream": "", "days": "90", "scopes": (), **(form or {})}
    return _page(
        "tokens",
        viewer,
        root,
        "tokens",
        tokens=tokens,
        streams=streams,
        form=filled,
        made=made,
        error=error,
        scopes=SCOPES,
    )


def operator_page(viewer: Viewer, view: OperatorView, root: str = "") -> str:
    """NOT PRIVATE: the operator's numbers."""
    return _page("operator", viewer, root, view=view)


def message_page(viewer: Viewer | None, title: str, text: str, root: str = "") -> str:
    """A sentence, such as an error."""
    return _page("message", viewer, root, title=title, text=text)
