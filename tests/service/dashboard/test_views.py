"""Views: what is computed for the pages, from public data."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard_sample import declared, sample
from taciturn import Ledger, Privacy
from taciturn.contract.contract import contract_of
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.service.clock import TickClock
from taciturn.service.dashboard.views import (
    Gauge,
    Growing,
    Published,
    Seen,
    StreamView,
    inputs_of,
    ledger_row,
    ledger_view,
    predict,
    verdict,
)


@given(count=st.integers(1, 300), most=st.integers(2, 40))
def test_thinned_releases_are_even_and_have_both_ends(count: int, most: int) -> None:
    growing = Growing(1, most)
    growing.extend(({"k": k, "t": 3 * k, "noise_sd": 1.0, "model": [float(k)]}, k) for k in range(1, count + 1))
    of = growing.published
    assert (of.count, int(of.numbers[0]), int(of.numbers[-1])) == (count, 1, count)
    assert len(of) <= most + 1
    steps = np.diff(of.numbers)
    assert len(set(steps[:-1].tolist())) <= 1
    np.testing.assert_array_equal(of.rounds, 3 * of.numbers)
    np.testing.assert_array_equal(of.models[:, 0], of.numbers)


@given(count=st.integers(1, 300), most=st.integers(2, 40), first=st.integers(0, 300))
def test_releases_that_are_not_needed_may_be_left_out(count: int, most: int, first: int) -> None:
    whole, some = Growing(1, most), Growing(1, most)
    lines = [({"k": k, "t": k, "noise_sd": 1.0, "model": [0.0]}, None) for k in range(1, count + 1)]
    whole.extend(lines)
    for last in (min(first, count), count):
        some.extend(line for line in lines[some.count : last] if some.needs(line[0]["k"], last))
    assert some.published.numbers.tolist() == whole.published.numbers.tolist()


def test_known_releases_are_not_added_twice() -> None:
    growing = Growing(1)
    lines = [({"k": k, "t": k, "noise_sd": 1.0, "model": [0.0]}, None) for k in (1, 2)]
    growing.extend(lines)
    growing.extend(lines)
    assert growing.published.numbers.tolist() == [1, 2]


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1e-6, 1e6))
def test_shares_of_a_gauge_fit_its_bar(spent: float, reserved: float, budget: float) -> None:
    one, two = Gauge(budget, 1e-6, spent, max(spent, reserved), None).shares
    assert one >= 0.0
    assert two >= 0.0
    assert one + two <= 100.0 + 1e-9


def test_a_false_signal_is_rare() -> None:
    """Models of noise alone: 5 % have any "signal". 2,000 of them: six standard errors are 2.9 %, so 8 % is 1e-9."""
    rng = np.random.default_rng(3)
    models = rng.normal(size=(2000, 30))
    wrong = [any(verdict(value, 1.0, 30) == "signal" for value in model) for model in models]
    assert 0.02 < np.mean(wrong) < 0.08
    assert verdict(1.0, math.nan, 3) == verdict(1.0, 0.0, 3) == "unknown"


def test_a_stream_finds_its_signal() -> None:
    learnt = declared(method="giga", ridge=0.1, release=100) | {"privacy": {"epsilon": 50.0}}
    view = sample(contract_of(learnt)).view
    assert view.coefficients[0].name == "age"
    assert view.coefficients[0].verdict == "signal"
    assert view.coefficients[0].value > 0.0
    assert sum(view.verdicts.values()) == 4
    assert (view.status, view.rows, view.horizon) == ("live", int(view.published.rounds[-1]), 2000)
    assert replace(view, closed=True).status == "closed"


@pytest.mark.parametrize(("epsilon", "rows"), [(50.0, True), (0.1, False)])
def test_the_card_says_from_which_row_on_predictions_are_of_use(epsilon: float, rows: bool) -> None:
    view = sample(contract_of(declared() | {"privacy": {"epsilon": epsilon}})).view
    said = dict(view.card)["Better than a constant"]
    assert said == (f"expected from row {view.plan.burn_in} on" if rows else "expected of no release")


def test_chart_of_later_releases_continues_the_chart() -> None:
    view = sample().view
    all_of_it, later = view.chart(), view.chart(after=3, indices=[one.index for one in view.panels])
    assert all_of_it["k"][3:] == later["k"]
    for whole, part in zip(all_of_it["series"], later["series"], strict=True):
        assert whole["value"][3:] == part["value"]
    assert view.chart(indices=[99, -1])["series"] == []


@pytest.mark.privacy
def test_a_view_takes_no_state_and_no_row() -> None:
    """What a page cannot receive it cannot show: the fields of a view, by name."""
    assert {field.name for field in fields(StreamView)} == {
        *("name", "contract", "plan", "published", "noise", "gauge", "ledger", "guarantee", "closed"),
        *("inputs", "prediction", "error"),
    }


def test_forms_predict_as_the_model_does() -> None:
    made = sample()
    answer = predict(made.model, {"c0": "80", "c1": "phone"})
    X, _ = made.contract.encoder.encode({name: _values(text) for name, text in (("age", "80"), ("device", "phone"))}, 1)
    assert answer is not None
    assert answer.text == str(made.contract.decode_predictions(made.model.scores(X))[0])
    assert sum(probability for _, probability in answer.probabilities) == pytest.approx(1.0)
    assert predict(made.model, {"c0": "eighty"}) is None
    assert inputs_of(made.contract, {"c0": "eighty"})[0].error != ""
    assert predict(made.model, {}) is not None


def _values(text: str) -> object:
    from taciturn.columns.values import PlainValues

    return PlainValues([text])


@pytest.mark.privacy
def test_ledger_shows_what_is_visible_and_its_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(Privacy(1.0, 1e-6), population="customers")
    ledger.reserve("one", gaussian(0.02), name="clicks")
    ledger.record_spent("one", gaussian(0.02))
    assert ledger_row(ledger).gauge.spent > 0.0
    nothing = {"one": Seen(FREE, False)}
    assert ledger_row(ledger, nothing).gauge.spent == 0.0
    view = ledger_view(ledger, nothing)
    assert view.intact
    assert (view.lines[0].name, view.lines[0].spent) == ("clicks", 0.0)
    assert [one.kind for one in view.history] == ["opened"]
    with monkeypatch.context() as patched:
        patched.setattr(TickClock, "now", staticmethod(lambda: 5_000))
        assert ledger_view(ledger, clock=TickClock(1.0)).history == ()
    closed = ledger_view(ledger, {"one": Seen(FREE, True)})
    assert (view.lines[0].state, closed.lines[0].state, closed.row.closed) == ("open", "closed", 1)
    assert not view.row.gauge.exhausted
    ledger.charge(gaussian(ledger.largest_mu**2 * 0.999999))
    assert ledger_view(ledger).row.gauge.exhausted


def test_an_edited_history_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(Privacy(1.0, 1e-6))
    ledger.charge(gaussian(0.01))
    events = [event._replace(content="{}") for event in ledger.history]
    monkeypatch.setattr(Ledger, "history", property(lambda self: events))
    assert ledger_view(ledger).fault == "event 1 was changed"
    monkeypatch.setattr(Ledger, "history", property(lambda self: []))
    assert not ledger_view(ledger).intact


def test_no_release_is_a_view_too() -> None:
    made = sample().view
    empty = replace(made, published=Published.of_lines([], 4), noise=replace(made.noise, model=np.zeros(0)))
    assert (empty.status, empty.rows, empty.count, empty.coefficients, empty.table) == ("waiting", 0, 0, (), [])
