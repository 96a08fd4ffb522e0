"""The benchmark of logistic loss measures what it says; runs need the extra `peers`."""

from types import SimpleNamespace

import numpy as np
import pytest

from benching import loaded, quick
from taciturn import L2Ball, Logistic, Problem, pigd
from taciturn.averages import late_average


@pytest.fixture(scope="module")
def logistic():
    yield from loaded("logistic")


@pytest.fixture(scope="module")
def task(logistic):
    return logistic.clicks(5_000)


@pytest.fixture(scope="module")
def seeded(logistic, task):
    problem = Problem(Logistic(), L2Ball(5.0), dimension=54, ridge=0.01)
    return pigd(problem, logistic.BUDGET, len(task), seed=1)


def test_models_are_judged_by_rows_that_nobody_learns_from(task):
    """The model that made the labels is right but for the noise: 0.888, within 6 deviations of 500 rows."""
    truth = np.eye(54)[0]
    assert len(task.unseen) == 500
    assert task.first(10).accuracy(truth) == task.accuracy(truth)
    assert not np.isin(task.unseen[:, 0], task.X[:, 0]).any()
    assert abs(task.accuracy(truth) - 0.888) < 6.0 * np.sqrt(0.888 * 0.112 / 500)
    assert task.accuracy(-truth) == pytest.approx(1.0 - task.accuracy(truth))


def test_a_stream_is_every_row_once_in_its_order(task):
    chunks = list(task.chunks())
    assert [len(y) for _, y in chunks] == [4_096, 904]
    assert (np.concatenate([X for X, _ in chunks]) == task.X).all()
    assert (np.concatenate([y for _, y in chunks]) == task.y).all()
    assert [list(row.values()) for row in task.first(3).dicts()] == task.X[:3].tolist()


def test_models_are_the_last_release_and_the_average_of_all(logistic, task, seeded):
    """As from one call."""
    _, releases = seeded.run(seeded.start(), task.X, task.y)
    assert (logistic.learns(seeded, task)() == releases.points[-1]).all()
    assert np.allclose(logistic.learns_and_averages(seeded, task)(), late_average(releases), rtol=1e-12)


def test_parts_of_a_pass_are_of_all_rows_and_releases(logistic, task, seeded, monkeypatch):
    """Portions that do not fill up are not left out."""
    chunks = logistic.Task.chunks
    portions = []
    calibrated = SimpleNamespace(noise_for=lambda _, k, count: portions.append((k, count)))
    timetable = SimpleNamespace(following=lambda after, last: range(after + 1, last + 1))
    logistic.noise_alone(SimpleNamespace(_most_releases=3, calibrated=calibrated, timetable=timetable), 8)()
    assert portions == [(1, 3), (4, 3), (7, 2)]
    monkeypatch.setattr(logistic, "CHUNK", 7)
    monkeypatch.setattr(logistic.Task, "chunks", lambda self, size=7: chunks(self, size))
    few, learner = task.first(100), seeded.learner
    V, labels = learner.problem.legal(few.X, few.y, compiled=True)
    exact, _ = learner.hand_over_all(learner.start(), 0, V, labels, np.arange(1, 101))
    in_parts = logistic.steps_alone(SimpleNamespace(learner=learner), few)()
    assert np.allclose(in_parts["x"], exact["x"], rtol=1e-12)


def test_the_limit_takes_gradient_steps(logistic, task):
    """As the formula says, in NumPy."""
    few, x, found = task.first(50), np.zeros(54), np.zeros(54)
    for t, (v, y) in enumerate(zip(few.X, few.y, strict=True), start=1):
        gradient = -y * v / (1.0 + np.exp(y * (v @ x))) + 0.01 * x
        x = x - gradient / (0.25 + 0.01 * t)
    logistic.descend.py_func(found, few.X[:20], few.y[:20], 0)
    logistic.descend.py_func(found, few.X[20:], few.y[20:], 20)
    assert np.allclose(found, x, rtol=1e-9)


def test_ratios_rise_when_taciturn_gets_faster(logistic):
    """And the peer is the faster Vowpal Wabbit, of the same turn."""
    seconds = {
        "taciturn PIGD": [1.0, 2.0],
        "taciturn, PIGD's noise": [0.25, 1.0],
        "taciturn, PIGD's steps": [0.25, 1.0],
    }
    seconds |= {"Vowpal Wabbit, plain": [3.0, 4.0], "Vowpal Wabbit, adaptive": [9.0, 1.0], "limit": [0.5, 0.5]}
    found = {name: logistic.RATIOS[name] for name in logistic.RATIOS if name.endswith(("PIGD", "steps)"))}
    assert found["fastest Vowpal Wabbit / PIGD"].of(seconds) == [3.0, 2.0]
    assert found["PIGD / (its noise + its steps)"].of(seconds) == [2.0, 1.0]
    assert found["limit / PIGD"].of(seconds) == [0.5, 0.25]
    assert found["fastest Vowpal Wabbit / PIGD"].met([2.6]) > found["fastest Vowpal Wabbit / PIGD"].met([2.4])


def test_ratios_name_contenders_and_counts_are_their_rows(logistic, tmp_path):
    for peer in ("vowpalwabbit", "river", "sklearn"):
        pytest.importorskip(peer, reason="the extra peers is not installed")
    found = logistic.contenders(400, tmp_path)
    seconds = {name: [1.0] for name in found}
    assert all(ratio.of(seconds) for ratio in logistic.RATIOS.values())
    counts = {name: one.count for name, one in found.items() if one.count != 400}
    assert counts.pop("scikit-learn, by example") == 4
    assert counts.pop("taciturn's river front, a look at every release") == 4
    rivers = "taciturn's river front", "river", "taciturn's river front, predicting first", "river, predicting first"
    assert counts == dict.fromkeys((*rivers, "Vowpal Wabbit, parsed before"), 40)
    assert {name for name, one in found.items() if one.score is None} == {
        "taciturn, PIGD's noise",
        "taciturn, PIGD's steps",
    }


@pytest.mark.slow
def test_logistic_runs_beside_its_peers(tmp_path):
    """A tenth of the rows: nobody's model is worse than a coin's, those that are not noise are good, and no part of a
    pass takes ten times as long as it should, on any machine.
    """
    for peer in ("vowpalwabbit", "river", "sklearn"):
        pytest.importorskip(peer, reason="the extra peers is not installed")
    report = quick("logistic", tmp_path)
    assert {"taciturn", "vowpalwabbit", "river", "scikit-learn", "numba"} <= set(report["versions"])
    accuracy = report["accuracy"]
    good = ("taciturn FTRL", "taciturn's scikit-learn front", "Vowpal Wabbit, plain", "river", "limit")
    assert all(accuracy[name] > 0.8 for name in good)
    assert accuracy["taciturn PIGD, late average"] > 0.7
    assert report["ratios"]["river / PIGD"]["median"] > 3.0
    assert report["ratios"]["PIGD / (its noise + its steps)"]["median"] < 10.0
