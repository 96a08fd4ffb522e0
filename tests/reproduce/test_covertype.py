"""The table of accuracies on Covertype: its rows of features, its settings, and how runs become tables."""

from io import StringIO
from xml.sax.saxutils import escape

import numpy as np
import pytest
from rich.console import Console

from taciturn import InvalidInput, Logistic
from taciturn.datasets import Stream
from taciturn.reproduce import covertype
from taciturn.reproduce.covertype import (
    DELTAS,
    EPSILONS,
    EXACT,
    PAPER,
    PRIVATE,
    accuracy,
    draw,
    plan,
    run,
    show,
    table,
)
from taciturn.reproduce.plots import NOT_PRIVATE

TINY = 400


@pytest.fixture(autouse=True)
def cells(monkeypatch):
    """Made-up cells, whose class is settled by the elevation: no file is read."""
    rng = np.random.default_rng(1)
    X = np.zeros((TINY, 54))
    X[:, :10] = rng.uniform(-1.0, 1.0, (TINY, 10))
    X[np.arange(TINY), 14 + rng.integers(40, size=TINY)] = 1.0
    y = np.digitize(X[:, 0], np.linspace(-1.0, 1.0, 8)[1:-1]).astype(float)
    stream = Stream(X, np.where(y == 6.0, 1.0, y), tuple(map(str, range(54))), np.sqrt(12.0), 6.0)
    monkeypatch.setattr(covertype, "_cells", lambda: stream)
    covertype._rows.cache_clear()
    yield stream
    covertype._rows.cache_clear()


def invented(runs):
    return [
        {
            "accuracy": 0.5 + 0.1 * settings["seed"],
            "claimed_epsilon": settings["epsilon"],
            "claimed_delta": settings["delta"],
            "delivered_epsilon": settings["epsilon"]
            and (321.01 if "as p" in settings["method"] else settings["epsilon"]),
            "proven": None if settings["epsilon"] is None else "as p" not in settings["method"],
        }
        for settings in runs
    ]


def printed(rows):
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(*show(rows), sep="\n", highlight=False)
    return console.file.getvalue()


def chosen(block, method, epsilon, delta=0.01):
    return next(
        s
        for s in plan(seeds=1)
        if (s["block"], s["method"], s["epsilon"], s["delta"]) == (block, method, epsilon, delta)
    )


def test_the_plan_is_every_method_at_every_budget():
    runs = plan()
    assert {s["seed"] for s in runs} == set(range(1, 11))
    assert {s["rows"] for s in runs} == {None}
    budgets = len(EPSILONS) * len(DELTAS)
    assert len(runs) == 10 * sum(len(PRIVATE[block]) * budgets + len(EXACT[block]) for block in PRIVATE)
    assert {s["seed"] for s in plan(quick=True)} == {1}
    with pytest.raises(InvalidInput, match="seeds"):
        plan(seeds=0)


def test_features_are_those_the_module_names(cells):
    """A constant, hats, or nothing is added before rows get norm 1, and class 2 alone is positive."""
    for block, width in (("paper", 55), ("plan", 54), ("hats", 69), ("classes", 54)):
        train, test = covertype._rows(block, 1, None)
        assert (len(train), len(test), train.X.shape[1]) == (TINY * 9 // 10, TINY // 10, width)
        assert np.linalg.norm(train.X, axis=1) == pytest.approx(1.0, abs=1e-9)
    mapped = covertype._mapped(cells, "hats")
    assert mapped.y.tolist() == np.where(cells.y == 1.0, 1.0, -1.0).tolist()
    assert mapped.X[:, 54:].sum(axis=1) == pytest.approx(mapped.X[:, 0] / cells.X[:, 0])
    assert covertype._mapped(cells, "classes").y.tolist() == cells.y.tolist()


def test_the_faithful_settings_are_the_stated_ones():
    made = PRIVATE["paper"]["PIGD"](55, covertype.Privacy(20.0, 0.01), 100, 1)
    private, problem = made.private, made.private.problem
    assert (problem.ridge, problem.radius, problem.loss, problem.norm_bound) == (
        0.01,
        2.0,
        Logistic(),
        pytest.approx(1.0),
    )
    assert len(private.timetable.rounds) == 100
    assert not made.averages
    noise = [private.calibrated.noise_sd(k) * (k + 1) for k in (50, 100)]
    assert noise[0] == pytest.approx(noise[1], rel=1e-3)


@pytest.mark.parametrize("block", PRIVATE)
def test_every_method_runs_and_says_what_it_delivers(block):
    for method in (*PRIVATE[block], *EXACT[block]):
        settings = chosen(block, method, *((10.0, 0.01) if method in PRIVATE[block] else (None, None)))
        result = run(settings)
        assert 0.0 <= result["accuracy"] <= 1.0
        assert result == run(settings)
        if method in EXACT[block]:
            assert result["proven"] is None
        elif method.startswith("PIGD as"):
            assert (result["claimed_epsilon"], result["claimed_delta"]) == (30.0, 0.02)
            assert result["delivered_epsilon"] > 30.0
            assert not result["proven"]
        else:
            assert 9.9 < result["delivered_epsilon"] <= 10.0
            assert result["proven"]


def test_what_can_be_learnt_is_learnt():
    """Noise at epsilon = 20 is little, for 360 rows whose class their elevation decides; at 0.1 it is all there is."""
    exact = run(chosen("hats", "least squares, not private", None, None))["accuracy"]
    constant = 1.0 - 2.0 / 7.0
    assert exact > constant + 0.05


def test_accuracy_is_the_share_of_right_signs_or_largest_scores():
    problem = covertype._problem(2)
    test = Stream(np.array([[0.6, 0.0], [0.0, 0.6], [-0.6, 0.0]]), np.array([1.0, 1.0, 1.0]), ("a", "b"), 1.0, 1.0)
    assert accuracy(problem, np.array([1.0, 1.0]), test) == pytest.approx(2 / 3)
    assert accuracy(problem, np.array([-1.0, 0.0]), test) == pytest.approx(1 / 3)


def test_rows_are_means_over_seeds_with_the_numbers_of_the_paper():
    runs = plan(seeds=3)
    rows = table(runs, invented(runs))
    assert len(rows) == len(runs) // 3
    assert all(row["accuracy"] == pytest.approx(0.7) and row["sd"] == pytest.approx(0.1) for row in rows)
    pigd = {row["epsilon"]: row["paper"] for row in rows if row["method"] == "PIGD" and row["delta"] == 0.01}
    assert pigd == {epsilon: PAPER[epsilon] for epsilon in EPSILONS}
    assert {row["paper"] for row in rows if row["delta"] == 1e-6 or row["block"] != "paper"} == {None}
    assert [row["paper"] for row in rows if row["method"] == "IGD, not private"] == [0.681]


def test_the_table_for_people_fits_a_terminal_and_marks_what_is_broken():
    runs = plan(seeds=2)
    lines = printed(table(runs, invented(runs))).splitlines()
    assert not any("…" in line for line in lines)
    marked = [line for line in lines if "BROKEN" in line]
    assert len(marked) == 4
    assert all("322" in line and "\x1b[31m" in line for line in marked)
    assert any("58.3" in line and "66.3" in line for line in lines)
    assert any("65.0±7.1" in line for line in lines)
    assert any("not private" in line for line in lines)


def test_the_picture_names_methods_budgets_and_the_paper(tmp_path):
    import matplotlib.pyplot as plt

    runs = plan(seeds=1)
    draw(table(runs, invented(runs)), tmp_path / "c.svg")
    text = (tmp_path / "c.svg").read_text()
    for word in (
        "private FTRL, hinge, with hats",
        "PIGD as printed (BROKEN)",
        "the paper's PIGD",
        "delta = 1e-06",
        NOT_PRIVATE,
    ):
        assert escape(word).replace("'", "&apos;") in text.replace("&#x27;", "&apos;").replace("'", "&apos;")
    assert plt.get_fignums() == []


def test_a_run_depends_on_its_seed():
    settings = chosen("plan", "PQFTL", 10.0)
    assert len({run(settings | {"seed": seed})["accuracy"] for seed in (1, 2, 3, 4)}) > 1
