"""Growth of regret with T: what is planned, slopes of planted power laws, bounds, tables and pictures."""

from io import StringIO

import pytest
from rich.console import Console

from taciturn.reproduce.growth import (
    GROWTH,
    RECIPES,
    SLOPES,
    THEOREMS,
    plan_growth,
    plan_slopes,
    run_growth,
    run_slopes,
    table_growth,
    table_slopes,
)
from taciturn.reproduce.plots import NOT_PRIVATE


def printed(experiment, rows):
    console = Console(file=StringIO(), width=80)
    console.print(*experiment.show(rows), sep="\n", highlight=False)
    return console.file.getvalue()


def drawn(experiment, rows, folder):
    experiment.draw(rows, folder / "picture.svg")
    return (folder / "picture.svg").read_text().replace("&apos;", "'").replace("&#x27;", "'")


def test_every_algorithm_runs_at_every_horizon_and_seed():
    assert len(plan_slopes()) == 5 * 4 * len(THEOREMS)
    assert len(plan_growth()) == 4 * 3 * len(RECIPES)
    assert {s["horizon"] for s in plan_growth()} == {1_000, 10_000, 100_000, 1_000_000}
    assert {s["seed"] for s in plan_slopes(seeds=2)} == {1, 2}
    assert plan_slopes(horizons=(50, 100))[0]["horizon"] == 100  # the longest first


def test_slopes_are_those_of_planted_power_laws():
    """Regret T^0.7 for every seed; the last slope is that of the two longest streams."""
    plan = plan_slopes(seeds=2, horizons=(100, 1_000, 10_000))
    results = [{"regret": s["seed"] * s["horizon"] ** (0.7 if s["horizon"] < 10_000 else 0.6)} for s in plan]
    rows = table_slopes(plan, results)
    assert [row["horizon"] for row in rows[:3]] == [100, 1_000, 10_000]
    for row in rows:
        assert row["slope_error"] == pytest.approx(0.0, abs=1e-12)
        assert row["last_slope"] == pytest.approx(0.3, abs=1e-9)
        assert row["last_slope"] < row["slope"] < 0.7
        assert row["exponent"] == THEOREMS[row["method"]].exponent
    assert rows[0]["regret"] == pytest.approx(1.5 * 100**0.7)


def test_a_slope_needs_positive_regrets_and_an_error_two_seeds():
    plan = plan_slopes(seeds=1, horizons=(100, 400))
    rows = table_slopes(plan, [{"regret": s["horizon"] ** 0.5} for s in plan])
    assert (rows[0]["slope"], rows[0]["slope_error"]) == (pytest.approx(0.5), None)
    rows = table_slopes(plan, [{"regret": -1.0} for s in plan])
    assert (rows[0]["slope"], rows[0]["slope_error"]) == (None, None)
    assert "–" in printed(SLOPES, rows)


def test_slopes_of_every_algorithm_are_shown_and_drawn(tmp_path):
    """With their errors and the theorems' exponents, from runs of every algorithm."""
    plan = plan_slopes(seeds=2, horizons=(50, 100))
    rows = table_slopes(plan, [run_slopes(settings) for settings in plan])
    text = printed(SLOPES, rows)
    for words in (*THEOREMS, "0.75", "±", "not private"):
        assert words in text
    picture = drawn(SLOPES, rows, tmp_path)
    for words in (*THEOREMS, "regret (dotted: the theorem's exponent)", NOT_PRIVATE):
        assert words in picture


def test_regret_is_below_its_bounds(tmp_path):
    """PIGD has two bounds, FTRL one, which the paper does not have."""
    plan = plan_growth(seeds=2, horizons=(100, 300))
    rows = table_growth(plan, [run_growth(settings) for settings in plan])
    assert [(row["method"], row["horizon"]) for row in rows] == [(name, T) for name in RECIPES for T in (100, 300)]
    for row in rows:
        assert 0.0 < row["regret"] < row["bound"]
        assert row["theorem"] is None or row["regret"] < row["theorem"]
        assert (row["theorem"] is None) == (row["method"] != "PIGD")
        assert row["over_root"] == pytest.approx(row["regret"] / row["horizon"] ** 0.5)
    text = printed(GROWTH, rows)
    assert "…" not in text
    for words in (*RECIPES, "/ln² T", "bound", "theorem", "not private"):
        assert words in text
    for words in (*RECIPES, "∝ √T", "proven bound", "the theorem's bound", NOT_PRIVATE):
        assert words in drawn(GROWTH, rows, tmp_path)
