"""IGD without strong convexity: the step of its definition, its certificate, and the paper's step, which has none."""

import numpy as np
import pytest

from taciturn import FadingIGD, Hinge, L2Ball, Linear, Logistic, Privacy, Problem, Unprovable, WholeSpace, pocp
from taciturn.regret import fading_regret_bound, replay_exact

PROBLEM = Problem(Linear(), L2Ball(50.0), dimension=1, label_bound=1.0)


def apart(learner, t, changed):
    """Distance after t rounds of two runs on linear losses that differ in one example."""
    X, y = np.ones((t, 1)), np.tile([1.0, -1.0], t)[:t]
    other = y.copy()
    other[changed] *= -1.0
    ends = [learner.absorb(learner.start(), 0, X, labels, None)["x"] for labels in (y, other)]
    return float(np.linalg.norm(ends[0] - ends[1]))


@pytest.mark.privacy
@pytest.mark.parametrize("strength", [0.1, 1.0])
@pytest.mark.parametrize("t", [1, 10, 1000])
def test_the_certificate_is_reached_by_the_last_example(strength, t):
    """Linear losses, inactive constraint: the last example moves the iterate by all that is certified."""
    learner = FadingIGD(PROBLEM, strength)
    bound = float(learner.certificate.at(t))
    assert 0.99 * bound < apart(learner, t, t - 1) <= bound
    assert apart(learner, t, 0) <= bound


@pytest.mark.privacy
def test_the_papers_step_is_caught():
    """With IGD's step 1/(alpha·t) and a pull of alpha/sqrt(t), the first example's influence never fades."""

    class Paper(FadingIGD):
        def _total(self, t):
            return self.strength * t

        def _weight(self, t):
            return self.strength * t**-0.5

    slipped, honest, t = Paper(PROBLEM, 1.0), FadingIGD(PROBLEM, 1.0), 1000
    assert apart(slipped, t, 0) > 50 * float(slipped.certificate.at(t))
    assert max(apart(honest, t, i) for i in (0, 1, t // 2, t - 1)) <= float(honest.certificate.at(t))


def test_a_step_is_the_argmin_of_its_definition():
    """½‖x - x_t‖² + (f(x) + (alpha_t/2)‖x - x_1‖²)/A_t, by brute force on a line."""
    learner = FadingIGD(Problem(Logistic(), L2Ball(2.0), dimension=1), strength=0.7)
    x, grid = 0.8, np.linspace(-2.0, 2.0, 400_001)
    for i in (1, 5, 40):
        weight, total = 0.7 * i**-0.25, 4 / 3 * 0.7 * i**0.75
        objective = 0.5 * (grid - x) ** 2 + (np.logaddexp(0, 0.9 * grid) + weight / 2 * grid**2) / total
        step = learner.absorb({"x": np.array([x])}, i - 1, np.array([[0.9]]), np.array([-1.0]), None)["x"]
        assert step[0] == pytest.approx(grid[np.argmin(objective)], abs=2e-5)


def test_ridges_and_unbounded_sets_are_rejected():
    """Each with what to use instead."""
    for problem in (Problem(Hinge(), L2Ball(1.0), 2, ridge=0.1), Problem(Hinge(), WholeSpace(), 2)):
        with pytest.raises(Unprovable, match="IGD"):
            FadingIGD(problem)


def test_it_is_made_private_like_any_other():
    """POCP takes it, keeps the budget, and its noise falls as t^(-1/2) in the two-thirds shape."""
    private = pocp(FadingIGD(Problem(Hinge(), L2Ball(1.0), dimension=3)), Privacy(1.0, 1e-6), 10_000)
    assert private.guarantee.holds
    ratio = private.calibrated.noise_sd(100) / private.calibrated.noise_sd(10_000)
    assert ratio == pytest.approx(10.0, rel=0.02)


def test_regret_stays_below_its_bound():
    """On a hinge stream that no strong convexity helps."""
    rng = np.random.default_rng(3)
    problem = Problem(Hinge(), L2Ball(1.0), dimension=3)
    X = rng.normal(size=(600, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + rng.normal(size=600) > 0, 1.0, -1.0)
    losses = replay_exact(FadingIGD(problem), X, y).losses
    V, labels = problem.clip(X, y)
    best = min(np.mean(problem.values(x, V, labels)) for x in L2Ball_grid(rng))
    assert 600 * (np.mean(losses) - best) <= fading_regret_bound(problem, 1.0, 600) < 600


def L2Ball_grid(rng):
    """Many points of the unit ball."""
    points = rng.normal(size=(3000, 3))
    return points / np.maximum(1.0, np.linalg.norm(points, axis=1, keepdims=True))
