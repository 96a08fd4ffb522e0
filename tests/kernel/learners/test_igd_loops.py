"""Steps by number err by no more than a certificate allows for them, compared with 40 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import taciturn.kernel.dot
import taciturn.kernel.learners.igd_loops
from kernel.learners import exact
from kernel.learners.igd_cases import KINDS, LOSSES, RIDGES, made
from kernel.python_kernels import python_kernels
from taciturn import (
    IGD,
    Absolute,
    Box,
    Hinge,
    L2Ball,
    Logistic,
    Problem,
    Squared,
)
from taciturn.kernel.learners.igd_pass import steps_of
from taciturn.kernel.learners.implicit_step import root
from taciturn.kernel.learners.iterate import UNIT

pytestmark = pytest.mark.privacy

SETS = {"ball": L2Ball(0.5), "small ball": L2Ball(0.2), "box": Box(-0.2, 0.3)}


def examples(problem, rng, count):
    """Iterates near the border or in it, and examples that push across it or whose label is just there."""
    d = problem.size
    X = rng.normal(size=(count, d))
    X *= (rng.choice([0.05, 1.0, 3.0], count) / np.linalg.norm(X, axis=1))[:, None]
    starts = rng.normal(size=(count, d))
    lengths = problem.radius * (1.0 - 10.0 ** -rng.uniform(0.3, 12.0, count))
    starts *= (lengths / np.linalg.norm(starts, axis=1))[:, None]
    starts = np.array([problem.domain.project(x) for x in starts])
    labels = np.where(rng.random(count) < 0.5, np.sum(X * starts, axis=1), rng.choice([-1.0, 1.0], count))
    if problem.loss.labels == "sign":
        labels = rng.choice([-1.0, 1.0], count)
    return starts, *problem.clip(X, labels)


def moved(learner, x, i, v, y):
    """One compiled step."""
    code, room = steps_of(learner), taciturn.kernel.dot.padded(x)
    problem = code.kind, code.loss, code.domain, code.steepest
    taciturn.kernel.learners.igd_loops.step(*problem, room, i, v[None, :], 0, float(y), code.centre)
    return room[: len(x)]


@pytest.mark.parametrize("domain", SETS)
@pytest.mark.parametrize(("kind", "loss"), KINDS, ids=str)
def test_a_step_errs_by_less_than_is_charged(loss, domain, kind):
    """For every ridge, early and late, at the border of the set and at a kink; by a tenth of it, or less."""
    assert max(worst_share(made(loss, SETS[domain], ridge, kind)) for ridge in RIDGES) < 0.1


def worst_share(learner, seed=5):
    """The largest error of some steps, as a share of what each is charged with."""
    rng, worst = np.random.default_rng(seed), 0.0
    for x, v, y in zip(*examples(learner.problem, rng, 8), strict=True):
        i = int(10.0 ** rng.uniform(0.0, 5.0)) + getattr(learner, "first_move", 0)
        result = moved(learner, x, i, v, y)
        worst = max(worst, exact.distance(result, exact.step(learner, x, v, float(y), i)) / exact.allowed(learner, i))
        assert learner.problem.domain.contains(result)
    return worst


@pytest.mark.parametrize("kind", ["igd", "fading"])
@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Squared()], ids=repr)
def test_rows_of_any_length(loss, kind):
    """Down to those whose squares, or whose squares' inverses, are no numbers: a step errs by a tenth of its charge."""
    assert_short_rows_move_little(made(loss, SETS["ball"], 0.2, kind))


def assert_short_rows_move_little(learner):
    rng = np.random.default_rng(6)
    for exponent in np.arange(-166.0, -60.0, 2.0):
        x, v = rng.normal(size=2) * 0.1, rng.normal(size=2) * 10.0**exponent
        result = moved(learner, x, 7, v, 1.0)
        assert exact.distance(result, exact.step(learner, x, v, 1.0, 7)) < 0.1 * exact.allowed(learner, 7)


def assert_felt_where_it_is_flat():
    """The margin is met where the ridge pulls to, out of the set, and no longer at the nearest point of the set."""
    learner, x, v = made(Hinge(), Box(10.0, 20.0), 1.0), np.array([10.0, 20.0]), np.array([-0.7, 0.7])
    result, true = moved(learner, x, 1, v, 1.0), exact.step(learner, x, v, 1.0, 1)
    assert exact.distance(true, exact.vector([10.0, 10.0])) > 0.1
    assert exact.distance(result, true) < 0.1 * exact.allowed(learner, 1)


def test_a_set_is_felt_where_the_loss_is_flat():
    """A step that leaves the set is solved within it, also if the loss had no part in its leaving."""
    assert_felt_where_it_is_flat()


def test_a_flat_loss_that_is_passed_over_is_found(monkeypatch):
    """Beyond the set it is flat, and within it is not."""
    python_kernels(monkeypatch, "igd", "if pull > 0.0:", "if pull > 0.0 and move != 0.0:")
    with pytest.raises(AssertionError):
        assert_felt_where_it_is_flat()


def test_an_infinite_inverse_is_found(monkeypatch):
    """Of a square that is not quite 0."""
    python_kernels(monkeypatch, "igd", "norm > _NEGLIGIBLE", "norm > 0.0")
    with pytest.raises(AssertionError):
        assert_short_rows_move_little(made(Logistic(), SETS["ball"], 0.2))


CANCELS = "return (u - _prox(loss, parameter, u, y, width)) / width"
FAULTS = {
    "a slope that cancels": (Hinge(), "losses", "return _envelope_slope(loss, parameter, width, u, y)", CANCELS),
    "a short pull cut off": (Logistic(), "losses", "b2 * ((twice - b * thrice) + b2 * more)", "b2 * twice"),
    "a root half found": (Logistic(), "igd", "4.0 * _TINY * max(abs(low), abs(high))", "2.0**-30"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_step_that_errs_by_more_is_found(fault, monkeypatch):
    """Among two hundred steps."""
    loss, *planted = FAULTS[fault]
    python_kernels(monkeypatch, *planted)
    learners = [made(loss, SETS[domain], ridge) for domain in ("ball", "small ball") for ridge in RIDGES]
    assert max(worst_share(learner, seed) for learner in learners for seed in range(4)) > 1.0


LONG_RUNS = [(Hinge(), 1.0, 0.1), (Logistic(), 1.0, 0.1), (Absolute(), 0.03, 0.5), (Squared(), 0.03, 0.5)]
MORE_RUNS = [(Hinge(), 0.03, 0.5), (Logistic(), 0.03, 0.5), (Absolute(), 1.0, 0.1), (Squared(), 1.0, 0.1)]


@pytest.mark.parametrize(
    ("loss", "ridge", "radius"),
    [*LONG_RUNS, *(pytest.param(*run, marks=pytest.mark.slow) for run in MORE_RUNS)],
    ids=repr,
)
def test_a_run_stays_within_its_allowance(loss, ridge, radius):
    """200 steps, many at the border, compared with exact steps from exact iterates: the sum of all errors."""
    learner, rng = made(loss, L2Ball(radius), ridge), np.random.default_rng(7)
    _, V, labels = examples(learner.problem, rng, 200)
    V = np.abs(V)  # all push to one side
    y = np.where(rng.random(200) < 0.9, 1.0, -1.0) if loss.labels == "sign" else np.abs(labels)
    x, true, active = learner.start()["x"].copy(), exact.vector(learner.start()["x"]), 0
    rows = steps_of(learner).iterates(x, 0, V, y, np.arange(1, 201))
    with mpmath.workdps(exact.DIGITS):
        for t, (v, label) in enumerate(zip(V, y, strict=True), start=1):
            true = exact_step_from(learner, true, v, float(label), t)
            active += abs(exact.dot(true, true) / mpmath.mpf(radius) ** 2 - 1) < mpmath.mpf("1e-20")
            both_runs = float(learner.rounding(np.float64(t)) + learner._inexactness(np.float64(t)))
            assert exact.distance(rows[t - 1], true) <= both_runs / 2.0
    assert active > 20


def exact_step_from(learner, x, v, y, i):
    """An exact step from an exact iterate."""
    ridge = mpmath.mpf(learner.problem.ridge)
    return exact.prox(learner, [a * i / (i + 1) for a in x], exact.vector(v), y, 1 / (ridge * (i + 1)))


@pytest.mark.parametrize("domain", SETS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_root_is_found_to_the_last_bits(loss, domain):
    """Beside the definition's root: off by no more than what rounding `v·x(s)` does to the slope."""
    rng = np.random.default_rng(3)
    for ridge in (1.0, 0.03):
        learner = made(loss, SETS[domain], ridge)
        code, p = steps_of(learner), learner.problem
        bound, curvature = code.steepest, learner.stepped.loss.curvature
        for x, v, y in zip(*examples(p, rng, 20), strict=True):
            pull, y = 1.0 / (ridge * 3.0), float(y)
            result = taciturn.kernel.learners.igd_loops.root_of_excess(
                code.loss, code.domain, x, v[None, :], 0, y, pull, -bound, bound
            )

            def excess(s, x=x, v=v, y=y, pull=pull, learner=learner):
                u = float(v @ learner.problem.domain.project(x - pull * s * v))
                return s - float(learner.stepped.loss.slope(u, y))

            reach = float(np.linalg.norm(v)) * (float(np.linalg.norm(x)) + pull * bound * float(np.linalg.norm(v)))
            off = 32.0 * UNIT * (bound + curvature * reach)
            assert abs(result - root(excess, -bound, bound)) <= off
            assert abs(result) <= bound


@pytest.mark.parametrize("loss", [Hinge(), Squared()], ids=repr)
@pytest.mark.parametrize("v", [np.zeros(2), np.full(2, 1e-200), np.full(2, 5e-324)])
def test_examples_without_length(loss, v):
    """Only the ridge pulls; nothing overflows."""
    learner = made(loss, L2Ball(0.5), 0.1)
    x = np.array([0.3, -0.4])
    np.testing.assert_allclose(moved(learner, x, 4, v, 0.5 if loss.labels == "real" else 1.0), x * 4 / 5, rtol=1e-15)


def test_bounds_far_apart():
    """Steps whose lengths have squares beyond floating point end in the set, as the definition's do."""
    problem = Problem(Squared(), L2Ball(1e40), 2, feature_bound=1e50, label_bound=1e60, ridge=1e-60)
    learner = IGD(problem)
    V, y = problem.clip([[1e50, 0.0], [0.0, -1e50], [1e49, 1e49]], [1e60, -1e60, 1.0])
    x = learner.start()["x"].copy()
    rows = steps_of(learner).iterates(x, 0, V, y, np.array([1, 2, 3]))
    assert np.isfinite(rows).all()
    assert all(problem.domain.contains(row) for row in rows)


def test_the_printed_step_waits():
    """Before its first move nothing changes."""
    learner = made(Logistic(), L2Ball(0.5), 0.1, "printed")
    x = np.array([0.3, -0.4])
    for i in (1, learner.first_move - 1):
        np.testing.assert_array_equal(moved(learner, x, i, np.array([0.6, 0.8]), 1.0), x)
    assert (moved(learner, x, learner.first_move, np.array([0.6, 0.8]), 1.0) != x).any()
