"""Offline methods: the plan, one rule for settings, and how runs become tables."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from taciturn import Privacy
from taciturn.datasets import ad_impressions
from taciturn.reproduce import offline
from taciturn.reproduce.offline import DIMENSIONS, EPSILONS, METHODS, draw, plan, ridge, run, show, table
from taciturn.reproduce.plots import NOT_PRIVATE


@pytest.fixture(autouse=True)
def impressions(monkeypatch):
    """Simulated rows, in the place of both files."""
    stream = ad_impressions(3000, seed=1)
    monkeypatch.setattr(offline, "_load", lambda data: stream)
    offline._rows.cache_clear()
    yield stream
    offline._rows.cache_clear()


def invented(runs):
    return [
        {
            "features": settings["dimension"] or 88,
            "examples": 100,
            "ridge": 0.001,
            "delivered_epsilon": settings["epsilon"],
            "accuracy": 0.3 + 0.2 * settings["seed"],
            "constant": 0.75,
        }
        for settings in runs
    ]


def printed(rows):
    console = Console(file=StringIO(), width=80)
    console.print(*show(rows), sep="\n", highlight=False)
    return console.file.getvalue()


def test_the_plan_is_every_method_by_budget_and_by_dimension():
    runs = plan()
    cells = sum(len(EPSILONS) + len(dimensions) for dimensions in DIMENSIONS.values())
    assert len(runs) == 5 * cells * len(METHODS)
    assert {s["rows"] for s in runs} == {None}
    assert {s["seed"] for s in plan(quick=True)} == {1}


def test_one_rule_for_the_ridge():
    assert ridge(Privacy(1.0, 1e-6), 100_000) == pytest.approx(8.0 / (100_000 * 0.23670), rel=1e-4)
    assert ridge(Privacy(0.01, 1e-6), 1000) == 3e-3
    assert ridge(Privacy(10.0, 1e-6), 10**7) == 1e-4
    ridges = {make(5, Privacy(1.0, 1e-6), 50_000, 1).problem.ridge for make in METHODS.values()}
    assert len(ridges) == 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_within_its_budget(method):
    """With little noise, at epsilon = 10, each beats the constant answer, except for the mean of iterates."""
    settings = {"data": "adult", "method": method, "epsilon": 10.0, "seed": 1, "dimension": None, "rows": None}
    result = run(settings)
    assert result == run(settings)
    assert (result["features"], result["examples"]) == (15, 2700)
    assert 9.9 < result["delivered_epsilon"] <= 10.0
    assert method == "POL, mean" or result["accuracy"] > result["constant"]


def test_a_dimension_is_a_projection_of_the_same_rows(impressions):
    small, test = offline._rows("adult", 5, 1, None)
    assert (small.X.shape, test.X.shape) == ((2700, 5), (300, 5))
    assert np.linalg.norm(small.X, axis=1).max() <= impressions.feature_bound
    complete, _ = offline._rows("adult", None, 1, None)
    assert small.y.tolist() == complete.y.tolist()
    short = np.linalg.norm(small.X, axis=1) < 0.999 * impressions.feature_bound  # others were clipped
    assert np.linalg.matrix_rank(np.hstack([small.X, complete.X])[short]) == np.linalg.matrix_rank(complete.X[short])


def test_tables_by_budget_and_by_dimension():
    runs = plan(seeds=2)
    text = printed(table(runs, invented(runs)))
    assert text.count("by epsilon") == text.count("by number of features") == 2
    assert "60.0±14.1" in text
    assert "not private" in text
    assert "…" not in text


def test_the_picture_names_every_method(tmp_path):
    runs = plan(seeds=1)
    draw(table(runs, invented(runs)), tmp_path / "offline.svg")
    text = (tmp_path / "offline.svg").read_text()
    for word in (*METHODS, "Adult", "Covertype", "number of features", "delta = 1e-06", NOT_PRIVATE):
        assert word in text
