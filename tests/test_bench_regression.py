"""The benchmark of squared loss measures what it says; runs need the extra `peers`."""

import numpy as np
import pytest

from benching import loaded, quick
from taciturn import L2Ball, Problem, Squared, geometric, pqftl


@pytest.fixture(scope="module")
def regression():
    yield from loaded("regression")


@pytest.fixture(scope="module")
def task(regression):
    return regression.numbers(500, 5)


@pytest.mark.parametrize("peer", ["leader", "lapack_leader", "recursive", "sums", "refits", "river"])
def test_peers_find_the_leader_of_all_rows(regression, task, peer):
    """Equal work: the same model from everyone who solves least squares, with a ridge of 1 in all."""
    if peer in ("refits", "river"):
        pytest.importorskip({"refits": "sklearn", "river": "river"}[peer])
    model = np.linalg.solve(task.X.T @ task.X + np.eye(5), task.X.T @ task.y)
    assert np.allclose(getattr(regression, peer)(task)(), model, rtol=1e-9)


def test_squared_errors_are_of_unseen_rows(regression):
    """Noise of variance 0.01 for the best model, within 6 deviations √(2/n)·0.01, and 0.12 for zeros."""
    task = regression.numbers(10_000, 10)
    best = np.linalg.lstsq(task.X, task.y, rcond=None)[0]
    assert len(task.unseen) == 2_000
    assert task.first(10).squared_error(best) == task.squared_error(best)
    assert abs(task.squared_error(best) - 0.01) < 6.0 * 0.01 * np.sqrt(2.0 / 2_000)
    assert task.squared_error(np.zeros(10)) == pytest.approx(0.12, rel=0.2)


@pytest.mark.parametrize("n", [1, 2, 137, 5_000])
def test_peers_solve_where_pqftl_releases(regression, n):
    problem = Problem(Squared(), L2Ball(5.0), dimension=2, label_bound=1.0)
    private = pqftl(problem, regression.BUDGET, n, schedule=geometric(1.1))
    assert regression.rare_rounds(n) == private.timetable.rounds.tolist()


def test_ratios_rise_when_pqftl_gets_faster(regression):
    ratio = regression.wanted()["NumPy leader / PQFTL, d=90"]
    assert ratio.of({"NumPy leader, d=90": [1.0, 3.0], "taciturn PQFTL, d=90": [2.0, 1.0]}) == [0.5, 3.0]
    assert ratio.met([0.46])
    assert not ratio.met([0.44])


def test_ratios_name_contenders_and_counts_are_their_rows(regression):
    for peer in ("river", "sklearn"):
        pytest.importorskip(peer, reason="the extra peers is not installed")
    found = regression.contenders(0.002)
    seconds = {name: [1.0] for name in found}
    assert all(ratio.of(seconds) == [1.0] for ratio in regression.wanted().values())
    assert sum(bool(ratio.wanted) for ratio in regression.wanted().values()) == 3
    counts = {name: one.count for name, one in found.items() if one.count != 200}
    assert {counts.pop(f"river, d={d}") for d in (10, 90)} == {40}
    assert {counts.pop(f"scikit-learn SGD, d={d}") for d in (10, 90)} == {4}
    assert set(counts) == {f"{who}, d=90, geometric" for who in ("taciturn PQFTL", "NumPy sums", "scikit-learn Ridge")}
    assert set(counts.values()) == {1_030}
    assert all(one.score is not None for one in found.values())


@pytest.mark.slow
def test_regression_runs_beside_its_peers(tmp_path):
    """A twentieth of the rows: at 10 features a private model is nearly as good as others; no ratio is far off."""
    for peer in ("river", "sklearn"):
        pytest.importorskip(peer, reason="the extra peers is not installed")
    report = quick("regression", tmp_path)
    errors = report["squared error"]
    assert all(errors[f"NumPy leader, d={d}"] < 0.012 for d in (10, 90))
    assert errors["taciturn PQFTL, d=10"] < 0.06
    assert errors["taciturn PQFTL, d=90, geometric"] < 0.12
    assert report["ratios"]["NumPy leader / PQFTL, d=10"]["median"] > 1.0
    assert report["ratios"]["NumPy leader / PQFTL, d=90"]["median"] > 0.1
