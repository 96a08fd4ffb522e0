"""Private follow-the-regularised-leader: gradients at released points, and what one example does to them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instances import LOSSES, Distance, labels_of
from learners.cases import VECTOR_LOSSES
from taciturn import (
    FTRL,
    Box,
    HalfSpace,
    Hinge,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Private,
    Problem,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
    every,
    pftrl,
)
from taciturn.mechanisms.blt import BLT
from taciturn.problem.losses import Nearness

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
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "linear", "absolute"])
def test_the_certificate_is_reached_and_not_passed(loss):
    """Gd, by two examples at one point."""
    learner = FTRL(Problem(LOSSES[loss](), L2Ball(1.2), 2, 1.5, 0.7))
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
def test_one_example_moves_one_row():
    """Given the points, the rows of two neighbouring streams are the same but for the changed one's."""
    learner, rng = FTRL(Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0)), np.random.default_rng(1)
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
    private = Private(Spy(problem), BLT(), every(rounds), BUDGET, 12, seed=1)
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
        with pytest.raises(Unprovable, match=r"Bound the domain, e.g. L2Ball\(1.0\)"):
            FTRL(Problem(Hinge(), domain, 2))
