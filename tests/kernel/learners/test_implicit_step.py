"""The implicit step is the minimiser inside the set, contracts, and errs by no more than the certificate pays for."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from instances import LOSSES, SETS, labels_of
from kernel.learners import reference
from kernel.learners.cases import VECTOR_LOSSES
from taciturn import IGD, Absolute, Box, Hinge, L2Ball, Logistic, Problem, Quantile, Unprovable, WholeSpace
from taciturn.kernel.learners.implicit_step import implicit_step

UNIT = 2.0**-53
NOWHERE = np.zeros(0)


def problem_of(loss: str, domain: str, ridge: float, size: int = 3) -> Problem | None:
    """A problem on which IGD can be built, or nothing."""
    made = Problem(LOSSES[loss](), SETS[domain](size), size, label_bound=1.5, ridge=ridge)
    try:
        IGD(made)
    except Unprovable:
        return None
    return made


def allotted(learner: IGD, eta, problem: Problem | None = None):
    """What one step may err by: rounding anywhere, and what it does to the root where the constraint is active."""
    p = problem or learner.problem
    pull = eta / (1.0 + eta * p.ridge)
    reach = learner.longest_iterate + p.lipschitz * pull
    everywhere = 16.0 * (p.size + 8) * UNIT * reach
    if isinstance(p.domain, WholeSpace):
        return everywhere, 0.0 * everywhere
    e = 4.0 * (p.size + 8) * UNIT * p.norm_bound * reach
    return everywhere, np.sqrt(pull * e * np.minimum(2.0 * p.lipschitz / p.norm_bound, p.loss.curvature * e))


def stepped(learner: IGD) -> Problem:
    """The problem whose steps IGD takes: kinks are smoothed where the set may be active."""
    return learner.stepped


def some_case(problem: Problem, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """A legal point and a legal example: often at the boundary, at the kink, parallel, or tiny."""
    longest = min(IGD(problem).longest_iterate, 1e3)
    x = problem.domain.project(rng.normal(size=problem.size) * longest * 10.0 ** rng.uniform(-2.0, 0.5))
    x = x if np.linalg.norm(x) <= longest else problem.domain.project(x * (longest / np.linalg.norm(x)))
    v = rng.normal(size=problem.size)
    if rng.random() < 0.3 and x.any():
        v = x + rng.normal(size=problem.size) * 10.0 ** rng.uniform(-12.0, -1.0)
    v *= rng.choice([1.0, 1.0, 1.0, 1e-3, 1e-8, 1e-100, 1e-150, 0.0]) / np.linalg.norm(v)
    y = labels_of(problem.loss, problem.label_bound, rng, 1)
    if problem.loss.labels == "real" and rng.random() < 0.3:
        y = np.array([v @ x])
    V, y = problem.clip(v[None], y)
    return x, V[0], float(y[0])


@pytest.mark.parametrize("domain", SETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_minimises_inside_the_set(loss, domain):
    """Compared in 240 bits with the minimiser found from the optimality condition, steps of 1e-8 to 1e4 included."""
    rng = np.random.default_rng(len(loss) + 100 * len(domain))
    for ridge in (0.01, 1.0):
        problem = problem_of(loss, domain, ridge)
        for _ in range(4 if problem else 0):
            x, v, y = some_case(problem, rng)
            eta = 10.0 ** rng.uniform(-8.0, 4.0)
            got = implicit_step(problem, x, v, y, eta, 0.0)
            error = reference.distance(got, reference.implicit_step(problem, x, v, y, eta))
            assert error <= sum(allotted(IGD(problem), eta)), (ridge, x, v, y, eta)


@pytest.mark.parametrize("domain", SETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_reference_minimises(loss, domain):
    """By definition: no point of the set has a smaller objective, and each is larger by `(c/2)·distance²` at least."""
    rng = np.random.default_rng(len(loss) + 100 * len(domain))
    problem = problem_of(loss, domain, 0.5)
    for _ in range(2 if problem else 0):
        x, v, y = some_case(problem, rng)
        eta = 10.0 ** rng.uniform(-3.0, 2.0)
        best = reference.implicit_step(problem, x, v, y, eta)
        with mp.workprec(reference.PRECISION):
            least = reference.objective(problem, x, v, y, eta, best)
            for scale in (1.0, 0.1, 1e-3, 1e-9):
                other = [a + mp.mpf(scale * b) for a, b in zip(best, rng.normal(size=problem.size), strict=True)]
                other = reference.project(problem.domain, other)
                gap = reference.objective(problem, x, v, y, eta, other) - least
                apart = mp.fsum((a - b) ** 2 for a, b in zip(other, best, strict=True))
                assert gap >= (1 + mp.mpf(eta) * problem.ridge) / 2 * apart - mp.mpf(2) ** -180


def test_projecting_afterwards_is_another_point():
    """The comparison would notice a step that minimises without the set and projects afterwards."""
    problem = Problem(Logistic(), L2Ball(0.5), 2, ridge=0.1)
    free = Problem(Logistic(), WholeSpace(), 2, ridge=0.1)
    x, v, y, eta = np.array([0.0, 0.5]), np.array([1.0, 0.0]), 1.0, 3.0
    wrong = problem.domain.project(implicit_step(free, x, v, y, eta, 0.0))
    right = reference.implicit_step(problem, x, v, y, eta)
    assert reference.distance(wrong, right) > 1e4 * sum(allotted(IGD(problem), eta))


@each("ridge", [0.01, 1.0, 30.0])
@each("t", [1, 2, 10, 1000, 10**5])
@each("loss", ["hinge", "logistic", "linear"])
@each("domain", ["l2 ball", "whole space", "simplex"])
def test_the_certificate_pays_for_every_error(loss, domain, t, ridge):
    """What steps may err by, twice, each shrunk by all later steps, adds up to no more than the certificate adds."""
    learner = IGD(problem_of(loss, domain, ridge))
    rounds = np.arange(1.0, t + 1.0)
    each = sum(allotted(learner, 1.0 / (ridge * rounds), stepped(learner)))
    owed = 2.0 * np.sum((rounds + 1.0) / (t + 1.0) * each)
    paid = float(learner.rounding(np.float64(t)) + learner._inexactness(np.float64(t)))
    assert owed <= paid * (1.0 + 1e-9)
    moved = learner.problem.gradient_diameter / (ridge * (t + 1.0))
    diameter = learner.problem.domain.diameter(learner.problem.size)
    assert float(learner.certificate.at(t)) >= min(moved + owed, diameter) * (1.0 - 1e-9)


def caps(rng: np.random.Generator):
    """Steps in a ball whose kink cuts off a cap of rounding size, the example nearly parallel to the point."""
    while True:
        radius, ridge = 10.0 ** rng.uniform(-0.5, 0.5), 10.0 ** rng.uniform(-2.0, 0.0)
        t = int(10.0 ** rng.uniform(0.0, 2.0))
        loss = [Hinge(), Absolute(), Quantile(0.9)][rng.integers(3)]
        bound = max(1.0, 1.01 / radius)
        problem = Problem(loss, L2Ball(radius), 2, feature_bound=bound, label_bound=1.0 + 2.0 * radius, ridge=ridge)
        height = 10.0 ** rng.uniform(-17.0, -15.0)
        length, y = ((1.0 + height) / radius, 1.0) if loss == Hinge() else (0.7, 0.7 * radius * (1.0 - height))
        pull = 1.0 / (ridge * (t + 1.0))
        along = rng.uniform(0.0, 0.9) * radius
        across = 10.0 ** rng.uniform(-8.5, -7.0) * max(along, pull * length)
        turn = rng.uniform(0.0, 2.0 * math.pi)
        out = np.array([math.cos(turn), math.sin(turn)])
        x = along * out + across * np.array([-out[1], out[0]])
        V, labels = problem.clip(length * out[None], [y])
        yield problem, x, V[0], float(labels[0]), t


@pytest.mark.privacy
def test_where_a_kink_meets_the_boundary_rounding_is_amplified():
    """In a degenerate cap an exact step errs by far more than rounding; IGD's, with smoothed kinks, does not."""
    shares = []
    for problem, x, v, y, t in (case for case, _ in zip(caps(np.random.default_rng(3)), range(100), strict=False)):
        learner, eta = IGD(problem), 1.0 / (problem.ridge * t)
        got = implicit_step(problem, x, v, y, eta, 0.0)
        error = reference.distance(got, reference.implicit_step(problem, x, v, y, eta))
        everywhere, kink = allotted(learner, eta)
        assert error <= everywhere + kink
        shares.append(error / everywhere)
        taken = learner.absorb({"x": x}, t - 1, v[None], np.array([y]), NOWHERE)["x"]
        error = reference.distance(taken, reference.implicit_step(stepped(learner), x, v, y, eta))
        assert error <= sum(allotted(learner, eta, stepped(learner)))
    assert max(shares) > 1e3  # so the amplification is there to be seen


@pytest.mark.privacy
def test_rounded_kinks():
    """Where IGD rounds a kink off, its steps are those of the rounded loss, to within what the certificate pays for."""
    rng = np.random.default_rng(11)
    worst = 0.0
    for loss in (Hinge(), Absolute(), Quantile(0.9)):
        for domain in ("l2 ball", "box", "simplex", "half-space without 0"):
            problem = Problem(loss, SETS[domain](2), 2, label_bound=1.0, ridge=0.5)
            learner = IGD(problem)
            for _ in range(8):
                x, v, y = some_case(problem, rng)
                t = int(10.0 ** rng.uniform(0.0, 3.0))
                eta = 1.0 / (problem.ridge * t)
                taken = learner.absorb({"x": x}, t - 1, v[None], np.array([y]), NOWHERE)["x"]
                exact = reference.implicit_step(stepped(learner), x, v, y, eta)
                kinked = reference.implicit_step(problem, x, v, y, eta)
                assert reference.distance(exact, kinked) <= 2e-3 * learner.longest_iterate
                worst = max(worst, reference.distance(taken, exact) / sum(allotted(learner, eta, stepped(learner))))
    assert worst <= 1.0


@pytest.mark.privacy
def test_a_rounded_kink_is_as_steep_as_the_loss_and_no_steeper():
    """Two steps on opposite slopes, in a box with active constraints, end no farther apart than certified."""
    bound, ridge, start = 1.0984368163011526, 1.5614196972110554, 1.1181583974203246
    low, high = 0.028612403655730426, 1.1828935211649536
    problem = Problem(Absolute(), Box(low, high), 2, feature_bound=bound, label_bound=4.0 * high * bound, ridge=ridge)
    learner, labels = IGD(problem), np.array([[4.0], [-4.0]]) * high * bound
    V, y = problem.clip(np.array([[bound, 0.0]] * 2), labels[:, 0])
    ends = [learner.absorb({"x": np.array([start, low])}, 0, V[i : i + 1], y[i : i + 1], NOWHERE)["x"] for i in (0, 1)]
    assert np.linalg.norm(ends[0] - ends[1]) <= learner.certificate.at(1)


def test_a_step_that_takes_a_hundred_halvings():
    """The root behind a jump is found even where the bracket closes as slowly as it can."""
    ridge = 3e-4
    problem = Problem(Hinge(), Box(-1.0, 1.0), 2, ridge=ridge)
    V, _ = problem.clip([[0.8, 0.6]], [1.0])
    x = np.array([1.0, float.fromhex("-0x1.11f93cfd62233p-1")])
    got = implicit_step(problem, x, V[0], 1.0, 1.0 / ridge, 0.0)
    assert reference.distance(got, reference.implicit_step(problem, x, V[0], 1.0, 1.0 / ridge)) < 1e-6


@each("loss", LOSSES)
@each("length", [0.0, 5e-324, 2e-162, 1e-160, 1e-100])
def test_tiny_examples_are_harmless(loss, length):
    """An example of length nearly 0 shrinks the point as the ridge says, and nothing else happens."""
    problem = Problem(LOSSES[loss](), L2Ball(1.0), 2, label_bound=1.0, ridge=1.0)
    x = np.array([0.3, -0.4])
    got = implicit_step(problem, x, np.array([length, 0.0]), 1.0, 0.5, 0.0)
    assert np.allclose(got, x / 1.5, rtol=1e-15, atol=1e-90)


POINTS = st.tuples(*[st.floats(-1.0, 1.0)] * 3)


@settings(max_examples=150)
@given(
    loss=st.sampled_from(sorted(LOSSES)),
    domain=st.sampled_from(sorted(SETS)),
    ridge=st.sampled_from([1e-3, 0.1, 1.0, 20.0]),
    step=st.floats(-8.0, 4.0),
    points=st.tuples(POINTS, POINTS, POINTS),
    label=st.sampled_from([-1.0, 1.0]),
)
@example("hinge", "l2 ball", 1.0, 0.0, ((0.8, 0.0, 0.0), (0.8, 1e-9, 0.0), (1.0, 0.0, 0.0)), 1.0)
def test_steps_contract(loss, domain, ridge, step, points, label):
    """Two points end within `1/(1 + eta·alpha)` of their distance, and firmly so, up to what steps may err by."""
    problem = problem_of(loss, domain, ridge)
    if problem is None:
        return
    eta = 10.0**step
    a, b = (problem.domain.project(np.array(p) * min(problem.radius, 10.0)) for p in points[:2])
    V, y = problem.clip(np.array(points[2])[None], [label])
    after_a, after_b = (implicit_step(problem, p, V[0], float(y[0]), eta, 0.0) for p in (a, b))
    c = 1.0 + eta * problem.ridge
    learner = IGD(problem)
    slack = 2.0 * sum(allotted(learner, eta)) * (1.0 + 10.0 / min(learner.longest_iterate, 10.0))
    apart, before = after_a - after_b, a - b
    assert np.linalg.norm(apart) <= np.linalg.norm(before) / c * (1.0 + 1e-12) + slack
    # c·‖x - x'‖² ≤ ⟨x - x', z - z'⟩, which is more than contraction
    lengths = c * np.linalg.norm(apart) + np.linalg.norm(before)
    assert c * apart @ apart <= apart @ before * (1.0 + 1e-12) + slack * lengths


def off(solver, loss: str, eta: float, tolerance: float) -> float:
    """How far from the minimiser a solver of vector losses ends, as a multiple of the tolerance."""
    make, size = VECTOR_LOSSES[loss]
    rng = np.random.default_rng(size)
    worst = 0.0
    for domain, length in ((L2Ball(0.8), 1.0), (Box(-0.2, 0.4), 1.0), (L2Ball(20.0), 0.2)):
        problem = Problem(make(), domain, size, label_bound=1.5, ridge=0.1)
        x = domain.project(rng.normal(size=size))
        V, y = problem.clip(rng.normal(size=(1, size)), [1.0])
        V *= length  # short examples are where it converges most slowly
        best = implicit_step(problem, x, V[0], float(y[0]), eta, 1e-14)
        slope = best - x + eta * problem.gradient(best, V[0], float(y[0]))
        assert np.allclose(best, domain.project(best - slope / (1.0 + eta)), atol=1e-12)  # a fixed point: the minimiser
        near = solver(problem, x, V[0], float(y[0]), eta, tolerance)
        worst = max(worst, float(np.linalg.norm(near - best)) / tolerance)
    return worst


@each("tolerance", [1e-2, 1e-5, 1e-9])
@each("eta", [0.01, 1.0, 50.0])
@each("loss", VECTOR_LOSSES)
def test_the_solver_ends_as_near_as_it_says(loss, eta, tolerance):
    """For losses without a scalar form the result lies within the tolerance of the minimiser."""
    assert off(implicit_step, loss, eta, tolerance) <= 1.0 + 1e-4


def test_an_impatient_solver_is_caught():
    """The same measure notices a solver that ends when its steps are short, however slowly it converges."""

    def impatient(problem, x, v, y, eta, tolerance):
        current, moved = x, math.inf
        while moved > tolerance:
            slope = current - x + eta * problem.gradient(current, v, y)
            following = problem.domain.project(current - slope / (1.0 + eta * problem.smoothness))
            current, moved = following, float(np.linalg.norm(following - current))
        return current

    assert off(impatient, "softmax", 10.0, 1e-5) > 2.0
