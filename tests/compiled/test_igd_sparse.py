"""Steps on compressed rows err by no more than a certificate allows for them, compared with 40 digits."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import taciturn.compiled.igd_sparse
from compiled import exact
from compiled.igd_cases import KINDS, RIDGES, made
from compiled.python_kernels import python_kernels
from taciturn import (
    GIGA,
    IGD,
    Absolute,
    Box,
    Hinge,
    L2Ball,
    Linear,
    Logistic,
    Problem,
    Squared,
)
from taciturn.compiled.codes import BALL
from taciturn.compiled.passes import steps_of
from taciturn.problem.inputs import CompressedRows

pytestmark = pytest.mark.privacy

D, NOTHING = 7, np.empty(0, dtype=np.int64)
SETS = {"ball": L2Ball(0.5), "small ball": L2Ball(0.2), "box": Box(-0.2, 0.3), "one side": Box(0.0, 0.2)}


def compressed(V):
    """Bounded rows, compressed."""
    rows, columns = np.nonzero(V)
    starts = np.searchsorted(rows, np.arange(len(V) + 1))
    return CompressedRows(starts, columns, V[rows, columns], V.shape[1])


def examples(problem, rng, count):
    """Iterates near the border or in it, and examples of a few entries that push across it."""
    X = np.where(rng.random((count, D)) < 0.4, rng.normal(size=(count, D)), 0.0)
    X[np.arange(count), rng.integers(0, D, count)] = 1.0
    X *= (rng.choice([0.05, 1.0, 3.0], count) / np.linalg.norm(X, axis=1))[:, None]
    starts = rng.normal(size=(count, D))
    lengths = problem.radius * (1.0 - 10.0 ** -rng.uniform(0.3, 12.0, count))
    starts *= (lengths / np.linalg.norm(starts, axis=1))[:, None]
    starts = np.array([problem.domain.project(x) for x in starts])
    labels = np.where(rng.random(count) < 0.5, np.sum(X * starts, axis=1), rng.choice([-1.0, 1.0], count))
    if problem.loss.labels == "sign":
        labels = rng.choice([-1.0, 1.0], count)
    return starts, *problem.clip(X, labels)


def moved(learner, x, i, v, y):
    """One compiled step."""
    x = x.copy()
    steps_of(learner).iterates(x, i - 1, compressed(v[None, :]), np.array([y]), NOTHING)
    return x


@pytest.mark.parametrize("domain", SETS)
@pytest.mark.parametrize(("kind", "loss"), KINDS, ids=str)
def test_a_step_errs_by_less_than_is_charged(loss, domain, kind):
    """For every ridge, early and late, at the border of the set and at a kink; by a tenth of it, or less."""
    assert max(worst_share(made(loss, SETS[domain], ridge, kind, d=D)) for ridge in RIDGES) < 0.1


def worst_share(learner, seed=5):
    """The largest error of some steps, as a share of what each is charged with."""
    rng, worst = np.random.default_rng(seed), 0.0
    for x, v, y in zip(*examples(learner.problem, rng, 5), strict=True):
        i = int(10.0 ** rng.uniform(0.0, 5.0)) + getattr(learner, "first_move", 0)
        result = moved(learner, x, i, v, y)
        worst = max(worst, exact.distance(result, exact.step(learner, x, v, float(y), i)) / exact.allowed(learner, i))
        assert learner.problem.domain.contains(result)
    return worst


FAULTS = {
    "half a plane": ("start / math.sqrt(norm)", "0.9999999 * start / math.sqrt(norm)"),
    "a box that nothing leaves": ("domain[0] == BOX and not _in_box", "False and not _in_box"),
    "single precision": ("new = old + pace * v[p]", "new = old + np.float32(pace * v[p])"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_step_that_errs_by_more_is_found(fault, monkeypatch):
    """Among some dozens."""
    python_kernels(monkeypatch, "igd_sparse", *FAULTS[fault])
    learners = [made(Logistic(), SETS[domain], ridge, d=D) for domain in ("small ball", "box") for ridge in RIDGES]
    assert max(worst_share(learner) for learner in learners) > 1.0


LONG_RUNS = [(Hinge(), 1.0, 0.1), (Logistic(), 1.0, 0.1), (Absolute(), 0.03, 0.5), (Squared(), 0.03, 0.5)]
MORE_RUNS = [(Hinge(), 0.03, 0.5), (Logistic(), 0.03, 0.5), (Absolute(), 1.0, 0.1), (Squared(), 1.0, 0.1)]


@pytest.mark.parametrize(
    ("loss", "ridge", "radius"),
    [*LONG_RUNS, *(pytest.param(*run, marks=pytest.mark.slow) for run in MORE_RUNS)],
    ids=repr,
)
def test_a_run_stays_within_its_allowance(loss, ridge, radius):
    """200 steps in one block, many at the border: lengths that went along all the way, and all errors together."""
    learner, rng = made(loss, L2Ball(radius), ridge, d=D), np.random.default_rng(7)
    _, V, labels = examples(learner.problem, rng, 200)
    V = np.abs(V)  # all push to one side
    y = np.where(rng.random(200) < 0.9, 1.0, -1.0) if loss.labels == "sign" else np.abs(labels)
    true, active = exact.vector(learner.start()["x"]), 0
    with mpmath.workdps(exact.DIGITS):
        for t, (v, label) in enumerate(zip(V, y, strict=True), start=1):
            anchor, pull = [a * t / (t + 1) for a in true], 1 / (mpmath.mpf(ridge) * (t + 1))
            true = exact.prox(learner, anchor, exact.vector(v), float(label), pull)
            active += abs(exact.dot(true, true) / mpmath.mpf(radius) ** 2 - 1) < mpmath.mpf("1e-20")
            if t in (1, 10, 50, 200):
                x = learner.start()["x"].copy()
                steps_of(learner).iterates(x, 0, compressed(V[:t]), y[:t], NOTHING)
                both_runs = float(learner.rounding(np.float64(t)) + learner._inexactness(np.float64(t)))
                assert exact.distance(x, true) <= both_runs / 2.0
    assert active > 10


def walked(rng, size=30, radius=1.0):
    """Moves of very different lengths, some out of the ball: z, and its length after each."""
    domain, z = (BALL, 0.0, radius), np.zeros(size)
    length = taciturn.compiled.igd_sparse._measured(domain, z)
    for _ in range(300):
        columns = rng.choice(size, rng.integers(1, 6), replace=False)
        move = 10.0 ** rng.uniform(-9.0, 1.5) * rng.choice([-1.0, 1.0])
        length = taciturn.compiled.igd_sparse._shrunk(domain, z, length, rng.choice([1.0, 0.9, 0.5]))
        length = taciturn.compiled.igd_sparse._moved(domain, z, length, move, columns, rng.normal(size=len(columns)))
        yield z, length


def error_over_bound(z, length):
    """The error of the squared length, as a share of its bound."""
    off = abs(Fraction(float(length[1])) - sum(Fraction(float(entry)) ** 2 for entry in z))
    return float(off / Fraction(float(length[2])) * 2**53) if length[2] > 0.0 else math.inf if off else 0.0


def test_the_length_is_as_sharp_as_it_says():
    """In exact arithmetic, after every move; and sharp enough for the next step."""
    for z, (scale, squared, error) in walked(np.random.default_rng(2)):
        assert error_over_bound(z, (scale, squared, error)) <= 1.0
        assert error <= 2.0 * (len(z) + 8) * (1.0 / scale) ** 2 * (1.0 + 1e-9)
        assert scale * math.sqrt(squared) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ abs(squared) + (len(columns) + 4.0) * volume", ""),
        ("grown = (new - old) * (new + old)", "grown = (new - old) * (old + old)"),
        ("squared += change", "squared += change * (1.0 + 1e-12)"),
    ],
)
def test_a_length_less_sharp_than_it_says_is_found(old, new, monkeypatch):
    """The planted faults of the test above."""
    python_kernels(monkeypatch, "igd_sparse", old, new)
    assert max(error_over_bound(*one) for one in walked(np.random.default_rng(2))) > 1.0


@pytest.mark.parametrize("radius", [0.02, 0.3, 100.0])
@pytest.mark.parametrize("learner", [IGD, GIGA])
def test_lengths_are_seldom_taken_anew(learner, radius, monkeypatch):
    """Going through the iterate comes with a share of its entries in examples, moves of any length among them."""
    python_kernels(monkeypatch)
    honest, taken = taciturn.compiled.igd_sparse._measured, []
    monkeypatch.setattr(taciturn.compiled.igd_sparse, "_measured", lambda *args: taken.append(1) or honest(*args))
    size, count, rng = 3000, 400, np.random.default_rng(6)
    problem = Problem(Logistic(), L2Ball(radius), size, ridge=0.01)
    entries, columns = rng.normal(size=(count, 5)), np.array([rng.choice(size, 5, False) for _ in range(count)])
    entries /= np.linalg.norm(entries, axis=1)[:, None]
    rows = CompressedRows(np.arange(count + 1) * 5, columns.ravel(), entries.ravel(), size)
    made = learner(problem)
    steps_of(made).iterates(made.start()["x"].copy(), 0, rows, rng.choice([-1.0, 1.0], count), NOTHING)
    assert 1 <= len(taken) <= 1 + 9 * (5 + 5) * count / size


@pytest.mark.parametrize("domain", [L2Ball(0.5), Box(-0.5, 0.5)], ids=repr)
@pytest.mark.parametrize("v", [np.zeros(D), np.full(D, 1e-200), np.full(D, 5e-324)])
def test_examples_without_length(domain, v):
    """Only the ridge pulls; nothing overflows."""
    learner = made(Hinge(), domain, 0.1, d=D)
    x = np.linspace(-0.1, 0.2, D)
    np.testing.assert_allclose(moved(learner, x, 4, v, 1.0), x * 4 / 5, rtol=1e-15)
    empty = CompressedRows(np.zeros(2, dtype=np.int64), NOTHING, np.empty(0), D)
    steps_of(learner).iterates(x, 3, empty, np.ones(1), NOTHING)
    np.testing.assert_allclose(x, np.linspace(-0.1, 0.2, D) * 4 / 5, rtol=1e-15)


def test_bounds_far_apart():
    """Steps whose lengths have squares beyond floating point end in the set, as the definition's do."""
    problem = Problem(Squared(), L2Ball(1e40), 2, feature_bound=1e50, label_bound=1e60, ridge=1e-60)
    for learner in (IGD(problem), GIGA(replace(problem, ridge=1e-20))):
        V, y = problem.clip([[1e50, 0.0], [0.0, -1e50], [1e49, 1e49]], [1e60, -1e60, 1.0])
        rows = steps_of(learner).iterates(learner.start()["x"].copy(), 0, compressed(V), y, np.array([1, 2, 3]))
        assert np.isfinite(rows).all()
        assert all(problem.domain.contains(row) for row in rows)


def test_a_first_step_that_forgets_the_iterate():
    """A linear loss has next to no delay: the first gradient step takes all of the old iterate away."""
    learner = GIGA(Problem(Linear(), L2Ball(5.0), 3, label_bound=1.0, ridge=0.5))
    x, v = np.array([0.3, -0.4, 0.1]), np.array([[0.0, 1.0, 0.0]])
    steps_of(learner).iterates(x, 0, compressed(v), np.ones(1), NOTHING)
    np.testing.assert_allclose(x, [0.0, -2.0, 0.0], atol=1e-9)
    assert taciturn.compiled.igd_sparse._shrunk((BALL, 0.0, 5.0), x, (1.0, 4.0, 0.0), 0.0) == (1.0, 0.0, 0.0)
    assert not x.any()


def test_small_scales_are_multiplied_in():
    """10,000 steps, of which each halves the iterate."""
    domain, z = (BALL, 0.0, 1.0), np.full(3, 0.5)
    length = taciturn.compiled.igd_sparse._measured(domain, z)
    for _ in range(10_000):
        length = taciturn.compiled.igd_sparse._shrunk(domain, z, length, 0.5)
        length = taciturn.compiled.igd_sparse._moved(domain, z, length, 0.25, np.array([1]), np.ones(1))
    np.testing.assert_allclose(length[0] * z, [0.0, 0.5, 0.0], atol=1e-15)
