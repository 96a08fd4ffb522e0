"""Private follow-the-regularised-leader: gradients at released points, and what one example does to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instances import LOSSES, Distance, believed, labels_of
from kernel.learners.cases import VECTOR_LOSSES
from taciturn import (
    FTRL,
    Box,
    HalfSpace,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Private,
    Problem,
    Simplex,
    Softmax,
    Squared,
    Unprovable,
    WholeSpace,
    every,
    pftrl,
)
from taciturn.calibration.mechanisms import BLT
from taciturn.kernel.learners.exact_sums import lattice_of
from taciturn.kernel.problem.losses import Nearness

BOUNDED = {"l2 ball": L2Ball(0.8), "box": Box(-0.5, 2.0), "simplex": Simplex(2.0)}
BUDGET = Privacy(1.0, 1e-6)


def gradient(learner: FTRL, features, label: float, point) -> np.ndarray:
    """What one example adds to the sum at this point."""
    V, y = learner.problem.clip([features], [label])
    return learner.absorb(learner.start(), 0, V, y, np.asarray(point))["sum"]


# The certificate.


def widest(learner: FTRL) -> float:
    """The largest distance of two gradients at one point: of mirrored examples at the edge, and of random ones."""
    p, rng, best = learner.problem, np.random.default_rng(0), 0.0
    R, B, labels = p.feature_bound, p.radius, p.label_bound
    for share in np.linspace(-1.0, 1.0, 101):
        pair = [(R * share, s * R * math.sqrt(1.0 - share**2)) for s in (1.0, -1.0)]
        for one in (labels, -labels):
            for other in (labels, -labels):
                ends = gradient(learner, pair[0], one, [B, 0.0]), gradient(learner, pair[1], other, [B, 0.0])
                best = max(best, float(np.linalg.norm(ends[0] - ends[1])))
    for _ in range(200):
        point = p.domain.project(rng.normal(size=2) * B)
        ends = [gradient(learner, R * rng.normal(size=2), labels * rng.choice([-1.0, 1.0]), point) for _ in range(2)]
        best = max(best, float(np.linalg.norm(ends[0] - ends[1])))
    return best


@pytest.mark.privacy
@pytest.mark.parametrize("curvature", [0.0, 0.4, 30.0])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "linear", "absolute"])
def test_the_certificate_is_reached_and_not_passed(loss, curvature):
    """Gd, by two examples at one point; the public part of a contribution is in both of them."""
    learner = FTRL(Problem(LOSSES[loss](), L2Ball(1.2), 2, 1.5, 0.7), curvature)
    result, bound = widest(learner), float(learner.certificate.at(1))
    assert 0.99 * bound < result <= bound
    assert learner.certificate.kind == "l2/entry"


@pytest.mark.privacy
@pytest.mark.parametrize("loss", ["huber", "log cosh", "quantile .9"])
def test_the_certificate_of_a_loss_that_knows_less_is_not_passed(loss):
    """Twice the longest gradient, of which a pair uses more than half."""
    learner = FTRL(Problem(LOSSES[loss](), L2Ball(1.2), 2, 1.5, 0.7))
    result, bound = widest(learner), float(learner.certificate.at(1))
    assert 0.5 * bound < result <= bound


@pytest.mark.privacy
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "linear"])
def test_zeroing_out_is_reached_and_not_passed(loss):
    """The longest gradient, against none."""
    learner = FTRL(Problem(LOSSES[loss](), L2Ball(1.2), 2, 1.5, 0.7, neighbours="zero-out"))
    lengths = [
        float(np.linalg.norm(gradient(learner, (1.5 * s, 0.0), y * learner.problem.label_bound, (1.2, 0.0))))
        for s in (1.0, -1.0)
        for y in (1.0, -1.0)
    ]
    assert 0.99 * float(learner.certificate.at(1)) < max(lengths) <= float(learner.certificate.at(1))


@pytest.mark.privacy
def test_half_the_sensitivity_is_caught(monkeypatch):
    """A neighbour's gradient forgotten."""
    honest = Problem(Hinge(), L2Ball(1.2), 2, 1.5).gradient_diameter
    monkeypatch.setattr(Problem, "gradient_diameter", honest / 2.0)
    learner = FTRL(Problem(Hinge(), L2Ball(1.2), 2, 1.5))
    assert widest(learner) > 1.9 * float(learner.certificate.at(1))


@pytest.mark.privacy
@pytest.mark.parametrize("curvature", [0.0, 0.3])
def test_one_example_moves_one_row(curvature):
    """Given the points, the rows of two neighbouring streams are the same but for the changed one's."""
    learner, rng = FTRL(Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0), curvature), np.random.default_rng(1)
    V, y = learner.problem.clip(rng.normal(size=(9, 2)), rng.normal(size=9))
    points = rng.uniform(-0.5, 0.5, (9, 2))
    rows = []
    for changed in (0.0, 1.0):
        exact, out = learner.start(), []
        for t in range(9):
            label = y[t : t + 1] + changed * (t == 4)
            exact, row = learner.statistic(learner.absorb(exact, t, V[t : t + 1], label, points[t]), t + 1)
            out.append(row)
        rows.append(out)
    moved = np.any(np.array(rows[0]) != np.array(rows[1]), axis=1)
    assert moved.tolist() == [False] * 4 + [True] + [False] * 4


@pytest.mark.privacy
@pytest.mark.parametrize("curvature", [1e-6, 0.3, 1e3])
def test_the_public_part_is_the_same_in_both_worlds(curvature):
    """Neighbours, one of them without influence, differ by one rounded gradient, to the last bit, in any blocks.

    In exact arithmetic, so that nothing is hidden by an error that both worlds share.
    """
    problem, rng = Problem(Logistic(), L2Ball(3.0), 2, neighbours="zero-out"), np.random.default_rng(2)
    learner = FTRL(problem, curvature)
    V, y = problem.clip(rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], 40))
    point = problem.domain.project(rng.normal(size=2) * 3.0)
    other = V.copy()
    other[17] = 0.0
    whole = [learner.absorb(learner.start(), 0, rows, y, point)["sum"] for rows in (V, other)]
    parts = learner.absorb(learner.absorb(learner.start(), 0, V[:11], y[:11], point), 11, V[11:], y[11:], point)["sum"]
    alone = learner.absorb(learner.start(), 0, V[17:18], y[17:18], point)["sum"]
    public = learner.absorb(learner.start(), 0, 0.0 * V[:1], y[:1], point)["sum"]
    assert np.array_equal(whole[0], parts)
    exact = [[Fraction(x) for x in each] for each in (*whole, alone, public)]
    assert all(a - b == g - p for a, b, g, p in zip(*exact, strict=True))
    assert public == pytest.approx(-curvature * point, abs=2.0 * lattice_of(learner.magnitude))


SEEN: list[np.ndarray] = []


class Spy(FTRL):
    """Writes down the points that it is given."""

    def absorb(self, exact, t, X, y, point):
        SEEN.extend([point.copy()] * len(y))
        return super().absorb(exact, t, X, y, point)


@pytest.mark.privacy
@pytest.mark.parametrize("rounds", [1, 4])
def test_gradients_are_taken_at_released_points(rounds):
    """The data-free first point, then the last release; every example of a block at the same one."""
    problem, rng = Problem(Logistic(), L2Ball(1.0), 2), np.random.default_rng(2)
    private = Private(believed(Spy(problem)), BLT(), every(rounds), BUDGET, 12, seed=1)
    SEEN.clear()
    _, releases = private.run(private.start(), rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], 12))
    public = [problem.first_point, *(release.point for release in releases)]
    assert np.array_equal(SEEN, [public[t // rounds] for t in range(12)])


# The point.


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_without_noise_on_linear_losses_it_is_the_closed_form(ridge):
    """`Proj(-Σ y v/(alpha·t))`; without a ridge `Proj(-Σ y v·B/(L·sqrt(t)))`."""
    learner, rng = FTRL(Problem(Linear(), L2Ball(2.0), 2, label_bound=1.0, ridge=ridge)), np.random.default_rng(3)
    V, y = learner.problem.clip(rng.normal(size=(30, 2)), rng.normal(size=30) - 0.8)
    total, inside = np.zeros(2), 0
    for t in range(1, 31):
        total += gradient(learner, V[t - 1], y[t - 1], learner.problem.first_point)
        x = -(y[:t] @ V[:t]) / (ridge * t if ridge else math.sqrt(t) / 2.0)
        length = float(np.linalg.norm(x))
        inside += length < 2.0
        np.testing.assert_allclose(learner.decide(t, total, 0.0), x * min(1.0, 2.0 / length), atol=1e-6)
    assert inside > 5


@settings(max_examples=40)
@given(
    noisy=arrays(np.float64, 3, elements=st.floats(-50.0, 50.0)),
    sd=st.floats(0.0, 5.0),
    t=st.integers(1, 100),
    ridge=st.sampled_from([0.0, 0.3]),
    domain=st.sampled_from(list(BOUNDED)),
)
def test_the_point_minimises_what_it_says(noisy, sd, t, ridge, domain):
    """`G·x + ((alpha·t + lam)/2)‖x‖²` over the set: no other of its points has less."""
    problem = Problem(Hinge(), BOUNDED[domain], 3, ridge=ridge)
    lam = ridge * t + 2.0 * sd * math.sqrt(3.0) / problem.radius
    lam += 0.0 if ridge else problem.lipschitz / problem.radius * math.sqrt(t)
    point = FTRL(problem).decide(t, noisy, sd)

    def cost(x):
        return float(noisy @ x + lam / 2.0 * x @ x)

    others = [problem.domain.project(x) for x in np.random.default_rng(t).normal(size=(40, 3))]
    assert problem.domain.contains(point)
    assert all(cost(point) <= cost(x) + 1e-9 * (1.0 + abs(cost(x))) for x in others)


@pytest.mark.parametrize("domain", list(BOUNDED))
@pytest.mark.parametrize("loss", list(LOSSES))
def test_every_loss_stays_inside(loss, domain):
    """Each round's point is finite and in the set, with an intercept too."""
    problem, rng = Problem(LOSSES[loss](), BOUNDED[domain], 2, label_bound=1.5, intercept=0.5), np.random.default_rng(4)
    private = pftrl(problem, BUDGET, 12, seed=4)
    _, releases = private.run(private.start(), rng.normal(size=(12, 2)), labels_of(problem.loss, 1.5, rng, 12))
    assert len(releases) == 12
    assert all(np.isfinite(r.point).all() and problem.domain.contains(r.point) for r in releases)
    assert private.guarantee.proven


@pytest.mark.parametrize("loss", [*VECTOR_LOSSES, "nearness"])
def test_vector_losses(loss):
    """A user's own, and one without labels."""
    make, size = VECTOR_LOSSES.get(loss, (Nearness, 2))
    problem, rng = Problem(make(), L2Ball(0.8), size, label_bound=1.5), np.random.default_rng(5)
    private = pftrl(problem, Privacy(10.0, 1e-6), 30, seed=4)
    y = None if loss == "nearness" else rng.choice([-1.0, 1.0], 30)
    _, releases = private.run(private.start(), rng.normal(size=(30, size)), y)
    assert all(problem.domain.contains(r.point) for r in releases)
    assert private.guarantee.proven


@dataclass(frozen=True)
class Understated(Distance):
    """Says that its gradients are shorter than they are."""

    def lipschitz(self, feature_bound, radius, label_bound):
        return 0.1


@pytest.mark.privacy
def test_gradients_are_cut_to_what_is_stated():
    """A loss that misstates its constants moves a row by no more than they say."""
    learner = FTRL(Problem(Understated(), L2Ball(1.0), 2, label_bound=1.0, neighbours="zero-out"))
    g = gradient(learner, (3.0, 4.0), -1.0, (0.6, 0.8))
    assert 0.0999 < np.linalg.norm(g) <= float(learner.certificate.at(1))
    assert g / np.linalg.norm(g) == pytest.approx([0.6, 0.8], abs=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize("rounds", [1, 5])
def test_released_points_follow_the_curved_surrogates(loss, rounds):
    """`Proj((c·Σ n_b·x_b - Ĝ)/((alpha + c)·t + lam))`, Ĝ the sum of gradients at the released points and its noise."""
    problem = Problem(Softmax(3) if loss == "softmax" else Hinge(), L2Ball(0.7), 2, ridge=0.2)
    c, rng = 0.6, np.random.default_rng(8)
    private = pftrl(problem, Privacy(30.0, 1e-6), 30, schedule=every(rounds), curvature=c, seed=8)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30) if loss == "softmax" else rng.choice([-1.0, 1.0], 30)
    V, y = problem.clip(X, y)
    _, releases = private.run(private.start(), X, y)
    plain = pftrl(problem, Privacy(30.0, 1e-6), 30, schedule=every(rounds), seed=8)
    noise = private.calibrated.noise_sd(1) / plain.calibrated.noise_sd(1)
    assert 1.0 <= noise < 1.0 + 1e-6  # curvature costs rounding errors only
    point, centre, total, inside = problem.first_point, np.zeros(problem.size), np.zeros(problem.size), 0
    for release in releases:
        block = slice(release.t - rounds, release.t)
        centre = centre + rounds * point
        total = total + sum(problem.data_gradient(point, v, label) for v, label in zip(V[block], y[block], strict=True))
        noise = release.noisy - (total - c * centre)
        assert np.linalg.norm(noise) < 8.0 * release.noise_sd * math.sqrt(problem.size)  # 1e-15
        lam = float(private.learner.regulariser(release.t, release.noise_sd))
        x = (c * centre - (total + noise)) / ((0.2 + c) * release.t + lam)
        inside += float(np.linalg.norm(x)) < 0.7
        point = release.point
        np.testing.assert_allclose(point, problem.domain.project(x), atol=1e-9)
    assert inside > 0


@pytest.mark.parametrize("curvature", [0.0, 0.05])
def test_without_noise_a_curved_leader_is_a_newton_step(curvature):
    """Squared loss along one axis, whose curvature is that of the surrogate: the mean of the labels, exactly."""
    problem = Problem(Squared(), L2Ball(9.0), 1, label_bound=1.0)
    learner, rng = FTRL(problem, curvature=1.0 + curvature), np.random.default_rng(9)
    y = rng.uniform(-1.0, 1.0, 50)
    exact, total, point = learner.start(), np.zeros(1), problem.first_point
    for t in range(50):
        exact, row = learner.statistic(learner.absorb(exact, t, np.ones((1, 1)), y[t : t + 1], point), t + 1)
        total = total + row
        point = -total / ((1.0 + curvature) * (t + 1))
    assert (curvature == 0.0) == (abs(point[0] - y.mean()) < 1e-6)


def test_a_scale_takes_the_place_of_the_radius():
    """In the regulariser, and nowhere else."""
    problem = Problem(Hinge(), L2Ball(2.0), 4)
    scaled = FTRL(problem, scale=8.0)
    assert scaled.regulariser(9, 5.0) == pytest.approx(FTRL(problem).regulariser(9, 5.0) / 4.0)
    assert scaled.certificate == FTRL(problem).certificate
    assert problem.domain.contains(scaled.decide(9, np.full(4, 1e3), 5.0))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute", "huber", "quantile .9", "linear"])
def test_the_whole_space_needs_a_scale(loss):
    """The scale stands for the radius, and points may lie beyond it."""
    problem = Problem(LOSSES[loss](), WholeSpace(), 2, label_bound=1.0)
    private = pftrl(problem, Privacy(50.0, 1e-6), 60, scale=1e-3, seed=1)
    learner, L = private.learner, problem.lipschitz
    assert learner.regulariser(9, 5.0) == pytest.approx(math.sqrt(9.0 * L * (L + 8.0)) / 1e-3)
    _, releases = private.run(private.start(), np.tile([0.6, 0.8], (60, 1)), np.ones(60))
    expected = -releases.noisy / learner.stride(releases.rounds, releases.noise_sd)[:, None]
    np.testing.assert_allclose(releases.points, expected, rtol=1e-12)
    assert 1e-3 < np.max(np.linalg.norm(releases.points, axis=1)) < 1.0


# What it learns.


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_regret_on_an_easy_stream(ridge):
    """Linear losses of one slope, epsilon = 10: less than a fifth of staying at the first point (fixed seed)."""
    problem = Problem(Linear(), L2Ball(1.0), 2, label_bound=1.0, ridge=ridge)
    V, y = problem.clip(np.tile([0.6, -0.8], (500, 1)), np.ones(500))
    private = pftrl(problem, Privacy(10.0, 1e-6), 500, seed=6)
    _, releases = private.run(private.start(), V, y)
    played = [problem.first_point, *(r.point for r in releases[:-1])]
    best = np.array([-0.6, 0.8])
    losses = [float(problem.values(x, V[:1], y[:1])[0]) for x in played]
    least = float(problem.values(best, V[:1], y[:1])[0])
    assert 0.0 < sum(losses) - 500 * least < 0.2 * 500 * (0.0 - least)


def test_invalid_arguments_are_rejected():
    """Unbounded domains and gradients, each with a remedy."""
    for domain in (WholeSpace(), HalfSpace((1.0, 0.0), 1.0)):
        with pytest.raises(Unprovable, match=r"Bound the domain, e.g. L2Ball\(1.0\), or state scale"):
            FTRL(Problem(Hinge(), domain, 2))
        with pytest.raises(Unprovable, match=r"bounded gradients, .* Bound the domain, e.g. L2Ball\(1.0\)"):
            FTRL(Problem(Squared(), domain, 2, label_bound=1.0), scale=1.0)
        with pytest.raises(InvalidInput, match=r"curvature needs a bounded domain, .* Use L2Ball\(3\)"):
            FTRL(Problem(Hinge(), domain, 2), curvature=0.1, scale=3.0)
    with pytest.raises(InvalidInput, match="curvature"):
        FTRL(Problem(Hinge(), L2Ball(1.0), 2), curvature=-0.1)
    with pytest.raises(InvalidInput, match="scale"):
        FTRL(Problem(Hinge(), L2Ball(1.0), 2), scale=0.0)
