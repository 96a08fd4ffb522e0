"""Steps on several classes err by no more than a certificate allows for them, compared with 40 digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import taciturn.compiled.igd_multiclass
from compiled import exact
from compiled.python_kernels import python_kernels
from taciturn import GIGA, IGD, Box, FadingIGD, L2Ball, OneHot, Problem, Softmax, WholeSpace
from taciturn.compiled.codes import SOFTMAX, set_code
from taciturn.compiled.passes import steps_of
from taciturn.learners.implicit_step import prox_by_slopes
from taciturn.learners.iterate import UNIT

pytestmark = pytest.mark.privacy

LOSSES = {"softmax 2": Softmax(2), "softmax 4": Softmax(4), "one hot": OneHot(3)}
SETS = {"ball": L2Ball(0.6), "small ball": L2Ball(0.1), "box": Box(-0.2, 0.3), "wide box": Box(-3.0, 3.0)}
SETS["space"] = WholeSpace()
RIDGES = [1.0, 0.2, 0.01]
PAIRS = [(loss, domain) for loss in LOSSES for domain in SETS if (loss, domain) != ("one hot", "space")]


def made(kind, loss, domain, ridge):
    problem = Problem(LOSSES[loss], SETS[domain], 2, ridge=ridge)
    if kind == "fading":
        return FadingIGD(Problem(LOSSES[loss], SETS[domain], 2), strength=ridge)
    return IGD(problem) if kind == "igd" else GIGA(problem)


def slopes(loss, W, v, y):
    """In 40 digits."""
    u = [exact.dot(row, v) for row in W]
    if isinstance(loss, Softmax):
        weights = [mpmath.exp(score - max(u)) for score in u]
        return [weight / mpmath.fsum(weights) - (k == y) for k, weight in enumerate(weights)]
    return [score - (k == y) + mpmath.mpf(1) / len(u) for k, score in enumerate(u)]


def following(learner, x, anchor, v, y, pull, step):
    """A projected gradient step on `½‖x - anchor‖² + pull·loss(x)`, in 40 digits."""
    d, loss = len(v), learner.problem.loss
    s = slopes(loss, [x[i : i + d] for i in range(0, len(x), d)], v, y)
    g = [a - b + pull * s[i // d] * v[i % d] for i, (a, b) in enumerate(zip(x, anchor, strict=True))]
    return exact.project(learner.problem.domain, [a - step * b for a, b in zip(x, g, strict=True)])


def error(learner, result, anchor, v, y, pull):
    """How far a computed prox lies from the exact one, found from it by steps that contract by q each."""
    with mpmath.workdps(exact.DIGITS):
        v, pull, x = exact.vector(v), mpmath.mpf(pull), exact.vector(result)
        smooth = 1 + pull * mpmath.mpf(learner.problem.loss.curvature) * exact.dot(v, v)
        q = (smooth - 1) / (smooth + 1)
        for _ in range(5 + math.ceil(25.0 / -math.log10(max(float(q), 1e-25)))):
            x = following(learner, x, anchor, v, y, pull, 2 / (smooth + 1))
        return exact.distance(result, x)


def anchored(learner, x, i):
    """The anchor of step i and how hard the data pulls, in 40 digits."""
    x, t = exact.vector(x), mpmath.mpf(i)
    if isinstance(learner, FadingIGD):
        total, weight = 4 * t ** mpmath.mpf("0.75") / 3, t ** mpmath.mpf("-0.25")
        centre = exact.vector(learner.problem.first_point)
        anchor = [(total * a + weight * b) / (total + weight) for a, b in zip(x, centre, strict=True)]
        return anchor, 1 / (mpmath.mpf(learner.strength) * (total + weight))
    return [a * i / (i + 1) for a in x], 1 / (mpmath.mpf(learner.problem.ridge) * (i + 1))


def steps(learner, seed, count=8):
    """Iterates near the border or in it, examples that are long or short, early and late."""
    rng, p = np.random.default_rng(seed), learner.problem
    radius = min(p.radius, 5.0)
    for _ in range(count):
        x, v = rng.normal(size=p.size), rng.normal(size=p.width)
        x *= radius * (1.0 - 10.0 ** -rng.uniform(0.3, 12.0)) / np.linalg.norm(x)
        v *= rng.choice([1.0, 1.0, 0.05, 1e-5]) / np.linalg.norm(v)
        V, y = p.clip(v[None], [float(rng.integers(p.outputs))])
        yield p.domain.project(x), V[0], float(y[0]), int(10.0 ** rng.uniform(0.0, 5.0))


def compiled(learner, x, v, y, i):
    code, x = steps_of(learner), x.copy()
    taciturn.compiled.igd_multiclass.step(code.kind, code.loss[0], code.domain, code.steepest, x, i, v, y, code.centre)
    return x


def defined(learner, x, v, y, i):
    return learner.absorb({"x": x}, i - 1, v[None], np.array([y]), np.empty(0))["x"]


def worst_share(learner, taken, seed=3):
    """The largest error of some steps, as a share of what each is charged with."""
    worst = 0.0
    for x, v, y, i in steps(learner, seed):
        result = taken(learner, x, v, y, i)
        with mpmath.workdps(exact.DIGITS):
            anchor, pull = anchored(learner, x, i)
            off = error(learner, result, anchor, v, y, pull)
        worst = max(worst, off / exact.allowed(learner, i))
        assert learner.problem.domain.contains(result)
    return worst


@pytest.mark.parametrize("taken", [compiled, defined])
@pytest.mark.parametrize("kind", ["igd", "fading"])
@pytest.mark.parametrize(("loss", "domain"), PAIRS)
def test_an_implicit_step_errs_by_less_than_is_charged(loss, domain, kind, taken):
    """By a tenth of it, or less, compiled or by the definition."""
    if kind == "igd" or domain != "space":
        assert max(worst_share(made(kind, loss, domain, ridge), taken) for ridge in RIDGES) < 0.1


FAULTS = {
    "a multiplier half found": ("ball", "igd_multiclass", "abs(room) <= 2.0**-51", "abs(room) <= 2.0**-14"),
    "Newton's method stops early": ("space", "multiclass", "_NEAR = 2.0**-28", "_NEAR = 2.0**-10"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_step_that_errs_by_more_is_found(fault, monkeypatch):
    """Far less than a lattice step, and more than is charged."""
    domain, *planted = FAULTS[fault]
    python_kernels(monkeypatch, *planted)
    assert max(worst_share(made("igd", "softmax 4", domain, ridge), compiled) for ridge in RIDGES) > 1.0


@pytest.mark.parametrize("domain", SETS)
def test_brackets_are_the_last_resort(domain, monkeypatch):
    """Without Newton's method the nested equations give the same."""
    python_kernels(monkeypatch, "multiclass", "_NEWTON_STEPS = 50", "_NEWTON_STEPS = 0")
    learner = made("igd", "softmax 2", domain, 0.2)
    for x, v, y, i in steps(learner, 1, 1 if "ball" in domain else 3):
        apart = compiled(learner, x, v, y, i) - defined(learner, x, v, y, i)
        assert np.linalg.norm(apart) <= exact.allowed(learner, i)


@pytest.mark.parametrize("domain", SETS)
@pytest.mark.parametrize("tau", [1e-12, 1.0, 50.0, 1e4, 1e8])
def test_long_steps_end_where_the_definition_does(domain, tau):
    """Pulls so long that scores overshoot, from points of any length; Newton's method alone would not always end."""
    rng, p = np.random.default_rng(5), Problem(Softmax(5), SETS[domain], 3)
    for _ in range(20):
        x, v = rng.normal(size=15) * 10.0 ** rng.uniform(-3.0, 2.0), rng.normal(size=3)
        x, v, y = p.domain.project(x), v / np.linalg.norm(v), float(rng.integers(5))
        result = x.copy()
        taciturn.compiled.igd_multiclass._prox_in_set(SOFTMAX, set_code(p.domain), math.sqrt(2.0), result, v, y, tau)
        scale = np.linalg.norm(x) + (2.0 * tau if "box" in domain else min(2.0 * tau, 2.0 * p.radius))
        assert np.linalg.norm(result - prox_by_slopes(p, x, v, y, tau)) <= 64.0 * UNIT * scale


@pytest.mark.parametrize("v", [np.zeros(2), np.full(2, 1e-200), np.full(2, 5e-324)])
@pytest.mark.parametrize("domain", ["ball", "box", "space"])
def test_examples_without_length(domain, v):
    """Only the ridge pulls; nothing overflows."""
    learner = made("igd", "softmax 2", domain, 0.1)
    x = np.array([0.1, -0.1, 0.2, 0.1])
    for taken in (compiled, defined):
        np.testing.assert_allclose(taken(learner, x, v, 1.0, 4), x * 4 / 5, rtol=1e-15)


def test_bounds_far_apart():
    """Steps of astronomic length end in the set, as numbers."""
    learner = IGD(Problem(Softmax(3), L2Ball(1e40), 2, feature_bound=1e50, ridge=1e-60))
    V, y = learner.problem.clip([[1e50, 0.0], [0.0, -1e50], [1e49, 1e49]], [0.0, 1.0, 2.0])
    x = learner.start()["x"].copy()
    rows = steps_of(learner).iterates(x, 0, V, y, np.array([1, 2, 3]))
    assert np.isfinite(rows).all()
    assert all(learner.problem.domain.contains(row) for row in rows)
