"""Pages: what is hostile is escaped, what is secret is absent, and every page is well-formed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard_sample import ADMIN, READER, Sample, declared, sample
from taciturn.contract.contract import contract_of
from taciturn.runs.diagnostics import Diagnostics
from taciturn.service.app import SECURITY
from taciturn.service.dashboard import pages
from taciturn.service.dashboard.noise import NoiseOfReleases
from taciturn.service.dashboard.views import (
    OperatorView,
    Prediction,
    Published,
    StreamRow,
    StreamView,
    TokenRow,
    Viewer,
    inputs_of,
    ledger_view,
    purpose_in_words,
)

HOSTILE = st.one_of(
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            "'\"><img src=x onerror=alert(1)>",
            "</script><script>alert(1)</script>",
            "javascript:alert(1)",
            "{{ 7 * 7 }}",
            "\u2028</title>\x00",
            "../../etc",
        ]
    ),
    st.text(min_size=1, max_size=40),
)
VOID = {"wbr", "meta", "link", "input", "br", "img", "rect", "line", "path"}


class Parsed(HTMLParser):
    """Elements and attributes of a page; open elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def made() -> Sample:
    return sample()


@pytest.fixture(scope="module")
def plain(made: Sample) -> dict[str, Parsed]:
    return {where: Parsed(page) for where, page in every_page(made, made.view).items()}


def every_page(made: Sample, view: StreamView, name: str = "web shop", viewer: Viewer = ADMIN) -> dict[str, str]:
    """All pages, with one text wherever a page takes a text of others."""
    ledger = ledger_view(made.ledger)
    ledger = replace(
        ledger,
        row=replace(ledger.row, population=name),
        lines=tuple(replace(one, name=name, what=name) for one in ledger.lines),
        history=tuple(replace(one, name=name, who=name, kind=name) for one in ledger.history),
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)
    token = TokenRow(name, name, ("read",), (name,), now, None)
    watch = Diagnostics(made.contract.problem, True)
    watch(np.zeros((3, made.contract.dimension)), np.ones(3), made.stream.model)
    answer = Prediction(name, name, ((name, 0.25),), 3)
    return {
        "streams": pages.streams_page(viewer, [replace(StreamRow.of(view), name=name, purpose=name)]),
        "no streams": pages.streams_page(viewer, []),
        "stream": pages.stream_page(viewer, replace(view, prediction=answer, error=name)),
        "part": pages.stream_part(view, 2, [0, 1]),
        "ledgers": pages.ledgers_page(viewer, [ledger.row]),
        "ledger": pages.ledger_page(viewer, ledger, [name]),
        "broken ledger": pages.ledger_page(viewer, replace(ledger, fault=name)),
        "login": pages.login_page(name, to=name, error=name),
        "new": pages.new_page(viewer, [ledger.row], {"name": name, "contract": name, "ledger": name}, name),
        "tokens": pages.tokens_page(viewer, [token], [name], made=pages.Made(name, name), error=name),
        "operator": pages.operator_page(viewer, OperatorView.of_diagnostics(name, watch.as_data(), [(name, name)])),
        "message": pages.message_page(viewer, name, name),
    }


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=HOSTILE)
def test_hostile_names_are_text(made: Sample, plain: dict[str, Parsed], name: str) -> None:
    contract = contract_of(declared() | {"columns": {name: {"categories": [name, "other"]}}}) if name.strip() else None
    view = replace(made.view, name=name, guarantee=name)
    if contract is not None:
        view = replace(view, inputs=inputs_of(contract, {"c0": name}))
    viewer = replace(ADMIN, name=name)
    for where, page in every_page(made, view, name, viewer).items():
        found = Parsed(page)
        if where not in ("stream", "part"):  # whose form has other fields
            assert [tag for tag, _ in found.tags] == [tag for tag, _ in plain[where].tags], where
        assert_nothing_runs(found)


def assert_nothing_runs(page: Parsed) -> None:
    """No inline script, style or handler, and no address elsewhere."""
    for tag, attributes in page.tags:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "style"
        if tag == "script":
            assert attributes.get("src", "").startswith("/static/") or attributes.get("type") == "application/json"
        for name in ("href", "src", "action", "data-live", "data-refresh"):
            value = attributes.get(name)
            known = value is None or re.match(r"(/(?!/)|#|[a-z]+(-\d+)?$)", value)
            assert known, (tag, name, value)


def test_pages_load_their_own_files_only(made: Sample) -> None:
    for where, page in every_page(made, made.view).items():
        assert_nothing_runs(Parsed(page))
        for file in re.findall(r'/static/([^"?]+)', page):
            assert (pages.STATIC / file).is_file(), (where, file)
    assert not [value for name, value in SECURITY if b"unsafe" in value or b"http" in value]


def test_pages_have_landmarks_headings_and_labels(made: Sample) -> None:
    for where, page in every_page(made, made.view).items():
        if where == "part":
            continue
        found = Parsed(page)
        names = [tag for tag, _ in found.tags]
        assert names.count("main") == names.count("h1") == 1, where
        assert {"header", "footer"} <= set(names)
        labels = {attributes["for"] for tag, attributes in found.tags if tag == "label" and "for" in attributes}
        for tag, attributes in found.tags:
            if tag in ("input", "select", "textarea") and attributes.get("type") not in ("hidden", "checkbox"):
                assert attributes["id"] in labels, where
        forms = names.count("form")
        assert page.count('name="csrf"') == forms, where
        ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), where


def test_what_a_token_may_not_do_is_not_offered(made: Sample) -> None:
    shown = every_page(made, made.view, viewer=READER)
    assert "New stream" not in shown["streams"]
    assert "Tokens" not in shown["ledgers"]
    assert "Operator" not in shown["stream"]
    assert '<th scope="col">By</th>' not in shown["ledger"]  # users and machines are not for readers
    assert "<button>Predict" not in shown["stream"]
    only = Viewer("shop", frozenset({"read", "predict"}), "", only="clicks")
    assert "<button>Predict" in pages.stream_page(only, made.view)
    assert "Ledgers" not in pages.stream_page(only, made.view)


@pytest.mark.privacy
def test_public_pages_do_not_depend_on_rows_without_a_release() -> None:
    """Two streams whose releases are the same, and whose rows after the last release are not: equal pages."""
    first, second = sample(rows=1500), sample(rows=1503)
    assert first.view.count == second.view.count
    assert first.stream.t != second.stream.t
    assert f"{second.stream.t:,}" not in pages.stream_page(ADMIN, second.view)
    assert pages.stream_page(ADMIN, first.view) == pages.stream_page(ADMIN, second.view)
    assert pages.stream_part(first.view, 0, [1]) == pages.stream_part(second.view, 0, [1])


@pytest.mark.privacy
def test_only_the_operators_page_has_exact_numbers_and_is_marked(made: Sample) -> None:
    for where, page in every_page(made, made.view).items():
        marked = "NOT PRIVATE" in page.replace("numbers that are NOT PRIVATE", "").replace(
            "SIMULATION: NOT PRIVATE", ""
        )
        assert marked == (where == "operator"), where
        assert ("Bad rows" in page) == (where == "operator")
    assert '<div class="private-mark"' in every_page(made, made.view)["operator"]


def test_a_simulation_is_marked(made: Sample) -> None:
    assert "SIMULATION: NOT PRIVATE" in pages.stream_page(ADMIN, made.view)
    plan = made.contract.plan("zero")
    assert "SIMULATION" not in pages.stream_page(ADMIN, replace(made.view, plan=plan))


def test_a_stream_without_releases_says_when_the_first_comes(made: Sample) -> None:
    empty = Published.of_lines([], 4)
    view = replace(made.view, published=empty, noise=NoiseOfReleases(made.view.plan).until(0, empty.points))
    page = pages.stream_page(ADMIN, view)
    assert f"The first model comes after row {view.next_round:,}" in page
    assert "model.json" not in page


def test_secrets_do_not_print() -> None:
    assert "secret-of-forms" not in repr(ADMIN)
    assert "abc" not in repr(pages.Made("shop", "abc"))


def test_a_closed_stream_has_no_releases_to_come(made: Sample) -> None:
    assert f"{made.view.coming:,} to come" in pages.stream_page(ADMIN, made.view)
    page = pages.stream_page(ADMIN, replace(made.view, closed=True))
    assert "none to come" in page
    assert f"{made.view.coming:,} to come" not in page


def test_a_budget_that_is_spent_at_once_is_explained(made: Sample) -> None:
    """All of the budget of a prefix sum is spent with its first release: it is no sign that the stream ends."""
    said = "the releases to come cost nothing more"
    assert made.view.gauge.spent == pytest.approx(made.view.gauge.reserved)
    assert said in pages.stream_page(ADMIN, made.view)
    assert said not in pages.stream_page(ADMIN, replace(made.view, closed=True))
    half = replace(made.view.gauge, spent=made.view.gauge.reserved / 2.0)
    assert said not in pages.stream_page(ADMIN, replace(made.view, gauge=half))


def test_a_stream_of_decisions_is_not_said_to_predict() -> None:
    decisions = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "reward", "range": [0, 1]},
        "learning": {"horizon": 1000},
        "columns": {"age": {"range": [0, 100]}},
        "events": {"wait": "1 minute"},
        "bandit": {"actions": ["sports", "weather"]},
    }
    said = purpose_in_words(contract_of(decisions))
    assert said.startswith("One action is chosen for each visitor, among 2 actions")
    assert said.endswith("Learns from reward, a number from 0 to 1")
    assert "Predicts" not in said
