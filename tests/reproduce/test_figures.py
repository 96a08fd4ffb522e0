"""Figures 2 (a) and (b): what is planned, what a curve is, how curves become rows, and which curve lies below."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from taciturn import L2Ball, Privacy, Problem, Squared
from taciturn.datasets import Stream, linear_regression
from taciturn.regret import best_in_hindsight, replay
from taciturn.reproduce import figures
from taciturn.reproduce.figures import (
    FIGURE_A,
    FIGURE_B,
    METHODS_A,
    METHODS_B,
    SHAPES,
    YEARS,
    plan_a,
    plan_b,
    run,
    table,
)
from taciturn.reproduce.methods import EPSILONS, EXACT, PRINTED, PRIVATE
from taciturn.reproduce.runner import reproduce

TINY = 40
FIGURES = {"figure-a": (FIGURE_A, METHODS_A), "figure-b": (FIGURE_B, METHODS_B)}


@pytest.fixture(scope="module")
def measured():
    """All runs of each figure on short streams, invented ones in the place of the real, and their results."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("flights", "bike"):
            made = linear_regression(TINY, SHAPES[name][1], seed=7)
            stream = Stream(made.X, 180.0 * made.y, made.names, 1.0, 180.0)
            patch.setattr(figures, name, lambda stream=stream: stream)
        figures._data.cache_clear()
        plans = {"figure-a": plan_a(seeds=1, horizon=TINY), "figure-b": plan_b(seeds=1, horizon=TINY)}
        yield {name: (runs, [run(settings) for settings in runs]) for name, runs in plans.items()}
    figures._data.cache_clear()
    figures._minima.cache_clear()


def test_figure_a_is_planned_as_the_paper_states_it():
    runs = plan_a()
    assert {(s["horizon"], s["dimension"], s["alpha"]) for s in runs} == {(100_000, 10, 1.0)}
    assert len(runs) == 5 * (5 * len(EPSILONS) + len(EXACT))
    assert {s["seed"] for s in plan_a(seeds=2)} == {1, 2}


def test_figure_b_has_two_real_streams_and_one_that_says_it_is_simulated():
    shapes = {(s["stream"], s["horizon"], s["dimension"]) for s in plan_b(seeds=1)}
    assert shapes == {("flights", 327_346, 39), ("bike", 17_379, 77), (YEARS, 515_345, 90)}
    assert YEARS.startswith("simulated")
    assert {s["alpha"] for s in plan_b()} == {1.0, 0.01}
    assert {s["horizon"] for s in plan_b(quick=True)} == {10_000}


def test_a_curve_is_the_average_regret_of_every_beginning():
    """Against the best point of that beginning, at the last t and on the way."""
    settings = next(s for s in plan_a(horizon=200) if (s["method"], s["epsilon"]) == ("PQFTL, BLT", 1.0))
    result = run(settings)
    problem = Problem(Squared(), L2Ball(0.5), 10, label_bound=1.0, ridge=1.0)
    stream = linear_regression(200, 10, 0.01, seed=1)
    private = PRIVATE["PQFTL, BLT"](problem, Privacy(1.0, 1e-6), 200, 1)
    _, releases = private.run(private.start(), stream.X, stream.y)
    for t in (result["t"][20], 200):
        record = replay(problem, releases[: t - 1], stream.X[:t], stream.y[:t])
        regret = record.average_regret(best_in_hindsight(problem, stream.X[:t], stream.y[:t]))
        assert result["average_regret"][result["t"].index(t)] == pytest.approx(regret, abs=1e-10)
    assert result["proven"]
    assert 0.99 < result["delivered_epsilon"] <= 1.0


@pytest.mark.privacy
def test_every_curve_says_what_it_delivers(measured):
    """Exact ones what was asked; the paper's noise at epsilon = 0.01 more than it claims, and it is marked."""
    for runs in measured.values():
        for settings, result in zip(*runs, strict=True):
            epsilon = settings["epsilon"]
            if epsilon is None:
                assert result["proven"] is None
            elif settings["method"] in (PRINTED, "PQFTL, the paper's noise"):
                assert result["proven"] == (result["delivered_epsilon"] <= epsilon)
                assert epsilon > 0.01 or not result["proven"]
            else:
                assert result["proven"]
                assert 0.99 * epsilon < result["delivered_epsilon"] <= epsilon


def test_exact_pqftl_lies_below_the_printed_algorithm_at_every_t_after_burn_in():
    """Medians of three seeds, at every t that is measured from t = 10 on; the burn-in ends later, if at all."""
    runs = [
        s
        for s in plan_a(seeds=3, horizon=1_500)
        if s["epsilon"] in (0.01, 1.0) and s["method"] in (PRINTED, "PQFTL, tree", "PQFTL, BLT")
    ]
    rows = table(runs, [run(s) for s in runs])
    exact = [row for row in rows if row["method"] != PRINTED]
    assert {row["below_printed_since"] for row in exact} <= set(range(2, 11))
    assert all(row["burn_in"] is None or row["burn_in"] > 10 for row in exact)
    ends = {(row["method"], row["epsilon"]): row["average_regret"] for row in rows if row["t"] == 1_500}
    for epsilon in (0.01, 1.0):
        assert ends["PQFTL, BLT", epsilon] < 0.1 * ends[PRINTED, epsilon]


def curve(method, regrets, seed=1, epsilon=1.0):
    """A run invented."""
    settings = figures.Setting(method, epsilon, seed, len(regrets))
    result = {"t": list(range(1, len(regrets) + 1)), "average_regret": regrets, "burn_in": None}
    return vars(settings), result | {"delivered_epsilon": epsilon, "proven": method != PRINTED}


def rows_of(*runs):
    return table(*zip(*runs, strict=True))


def test_below_means_at_every_later_t():
    """A curve that touches the printed one begins after it; one that ends above is not below at all."""
    ours = {"PQFTL, tree": [1.0, 3.0, 1.0, 1.0], "PQFTL, BLT": [1.0, 1.0, 1.0, 2.0], "FTRL, BLT": [1.0] * 4}
    rows = rows_of(curve(PRINTED, [2.0] * 4), *(curve(method, regrets) for method, regrets in ours.items()))
    since = {row["method"]: row["below_printed_since"] for row in rows}
    assert since == {PRINTED: None, "PQFTL, tree": 3, "PQFTL, BLT": None, "FTRL, BLT": 1}


def test_rows_are_medians_over_seeds():
    rows = rows_of(*(curve("PQFTL, BLT", [value] * 3, seed) for seed, value in ((1, 1.0), (2, 5.0), (3, 2.0))))
    assert [row["t"] for row in rows] == [1, 2, 3]
    assert {(row["average_regret"], row["least"], row["most"], row["seeds"]) for row in rows} == {(2.0, 1.0, 5.0, 3)}


def test_the_table_fits_a_terminal_and_marks_what_is_broken(measured):
    rows = table(*measured["figure-b"])
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(*figures.show(rows), sep="\n", highlight=False)
    lines = console.file.getvalue().splitlines()
    assert not any("…" in line for line in lines)
    assert sum("BROKEN" in line and "\x1b[31m" in line for line in lines) >= 2 * len(SHAPES) * 2
    assert any("not private" in line for line in lines)


@pytest.mark.parametrize("name", FIGURES)
def test_the_picture_names_every_curve_and_its_exact_budget(name, tmp_path, measured):
    import matplotlib.pyplot as plt

    figure, methods = FIGURES[name]
    rows = table(*measured[name])
    figure.draw(rows, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text().replace("&apos;", "'").replace("&#x27;", "'")
    for method in methods:
        assert f"<!-- {method}" in text
    for word in ("PQFTL, BLT: ε = 0.01, 0.1, 1, 10", "examples seen, t", "average regret", "not private", "more than"):
        assert word in text
    delivered = next(row["delivered_epsilon"] for row in rows if row["method"] == PRINTED)
    assert f"{PRINTED}: ε = {figures.rounded_up(delivered)}*, " in text
    assert plt.get_fignums() == []


def test_the_same_seeds_give_the_same_csv(tmp_path):
    """In processes of their own, saved or fresh."""
    chosen = {PRINTED: 0.01, "PQFTL, BLT": 1.0, "FTL, not private": None}

    def tiny(quick, seeds):
        return [s for s in plan_a(quick, seeds, TINY) if chosen.get(s["method"], np.nan) == s["epsilon"]]

    experiment = replace(FIGURE_A, plan=tiny, draw=lambda rows, path: Path(path).touch())
    files = []
    for fresh in (False, True):
        reproduce(experiment, tmp_path, Console(file=StringIO()), seeds=1, fresh=fresh)
        files.append((tmp_path / "figure-a.csv").read_bytes())
    assert files[0] == files[1]
