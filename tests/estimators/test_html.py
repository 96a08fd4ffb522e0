"""What notebooks show of estimators, ledgers, guarantees and plans: public numbers, escaped, and nothing loaded."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from taciturn import Ledger, Privacy
from taciturn.estimators.river import PrivateLinearSVC as RiverSVC
from taciturn.estimators.scaling import NormClip
from taciturn.estimators.sklearn import PrivateLinearSVC
from taciturn.kernel.accounting.cost import gaussian

EVIL = "<script>alert(1)</script>"
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2_000, 3))
Y = np.where(X[:, 0] > 0.0, EVIL, "no")
STATED = {"epsilon": 1.0, "feature_bound": 1.0, "classes": ["no", EVIL], "horizon": 4_000}


class Balanced(HTMLParser):
    """Fails where an element is not closed, or closed twice."""

    def __init__(self):
        super().__init__()
        self.open, self.widths = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "input", "link", "meta", "img", "path", "circle"):
            self.open.append(tag)
        if dict(attrs).get("class") in ("spent", "reserved"):
            self.widths.append(float(re.search(r"width:([\d.]+)%", dict(attrs)["style"])[1]))

    def handle_endtag(self, tag):
        if self.open and tag in self.open:
            assert self.open.pop() == tag


def shown(html):
    """The widths of the bars of a card, and its text; it is well-formed and safe."""
    assert EVIL not in html
    assert not re.search(r"(src|href)=.https?:|@import|url\(", html)
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return parser.widths, re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL)


def test_a_ledger_shows_what_is_spent_reserved_and_left():
    """In epsilon, at its delta; what is reserved includes what is spent."""
    ledger = Ledger(Privacy(2.0, 1e-6), population=EVIL)
    widths, text = shown(ledger._repr_html_())
    assert widths == [0.0, 0.0]
    assert "left: one more stream of 2" in text or "left: one more stream of 1.99" in text
    PrivateLinearSVC(**STATED, ledger=ledger).partial_fit(X[:10], Y[:10])
    (spent, reserved), text = shown(ledger._repr_html_())
    assert spent + reserved == pytest.approx(50.0, abs=0.1)
    assert "reserved 1, with what is spent" in text
    assert "1, of which 0 are closed" in text
    ledger.charge(gaussian(0.01))
    (more, rest), _ = shown(ledger._repr_html_())
    assert more + rest > spent + reserved
    assert "none is stated" in shown(Ledger()._repr_html_())[1]
    assert "in each month" in shown(Ledger(Privacy(1.0, 1e-6), unit="user and month", renews=True)._repr_html_())[1]


def test_an_estimator_shows_its_stream_below_the_diagram():
    """Nothing of a budget before the first rows; afterwards the stream's, and the ledger's."""
    ledger = Ledger(Privacy(2.0, 1e-6), population="customers")
    model = PrivateLinearSVC(**STATED, ledger=ledger)
    assert "Stream: epsilon" not in model._repr_html_()
    model.partial_fit(X[:10], Y[:10])
    html = model._repr_html_()
    diagram = html[: html.index('<div class="taciturn">')]
    assert "sk-container" in diagram
    widths, text = shown(html[len(diagram) :])
    assert len(widths) == 4
    assert "Stream: epsilon = 1 at delta = 1e-06" in text
    assert "Ledger of customers" in text
    assert model._repr_mimebundle_()["text/html"].count('<div class="taciturn">') == 2
    assert "sk-container" in make_pipeline(NormClip(), model)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")


def test_a_simulation_is_shown_as_one():
    """In red, in the cards of streams and guarantees."""
    model = PrivateLinearSVC(**STATED, seed=1).partial_fit(X, Y)
    html = model._repr_html_()
    assert "Simulation: not private." in shown(html[html.index('<div class="taciturn">') :])[1]
    guarantee = model.plan_.private._repr_html_()
    assert '<p class="alarm"><b>Simulation: not private' in guarantee
    shown(guarantee)


def test_a_model_of_river_shows_its_stream():
    """Below the diagram of river."""
    model = RiverSVC(features=["a"], epsilon=1.0, feature_bound=1.0)
    assert "taciturn" not in model._repr_html_()
    model.learn_one({"a": 0.5}, True)
    html = model._repr_html_()
    assert html.startswith("<div>")
    assert "Stream: epsilon = 1" in shown(html[html.index('<div class="taciturn">') :])[1]


def test_plans_and_guarantees():
    """The settings that were chosen, the noise, and a warning where there is one."""
    model = PrivateLinearSVC(**STATED).partial_fit(X, Y)
    _, text = shown(model.plan_._repr_html_())
    for word in ("Plan: pftrl", "a bounded set", "standard deviation", "until row", "4,000 rows"):
        assert word in text
    _, text = shown(model.plan_.private._repr_html_())
    assert "(1, 1e-06)-differentially private" in text
    assert "zero-out" in text
    few = PrivateLinearSVC(**STATED | {"epsilon": 0.1, "horizon": 700})
    with pytest.warns(UserWarning, match="Little can be learnt"):
        few.partial_fit(X[:700], Y[:700])
    assert '<p class="alarm">Little can be learnt' in few.plan_._repr_html_()
