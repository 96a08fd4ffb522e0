"""The risk of averaged iterates, and of their private release, stays below its bound; every term of it is needed."""

import math

import numpy as np
import pytest

from taciturn import (
    GIGA,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Problem,
    Unprovable,
    WholeSpace,
    at,
    pol,
)
from taciturn.calibration.mechanisms import Gaussian
from taciturn.core.private import Private
from taciturn.methods.averaged import averaged
from taciturn.regret import best_in_hindsight, igd_regret_bound, pol_utility_bound, risk_bound

CLASSIFY = Problem(Logistic(), L2Ball(2.0), dimension=3, ridge=0.05)


def line(radius, ridge):
    return Problem(Linear(), L2Ball(radius), dimension=1, label_bound=1.0, ridge=ridge)


def release(private, X, y):
    """The one point that `pol` publishes."""
    _, [model] = private.run(private.start(), X, y)
    return model.point


@pytest.mark.parametrize(("epsilon", "seed"), [(0.5, 0), (5.0, 1), (5.0, 2)])
@pytest.mark.parametrize("loss", [Logistic(), Hinge()])
def test_the_released_point_keeps_the_bound(loss, epsilon, seed):
    """Examples drawn from 60, so that the risk is a mean over these; the bound says more than L·‖C‖."""
    rng, horizon = np.random.default_rng(seed), 4000
    X, y = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60)
    problem = Problem(loss, L2Ball(1.0), dimension=3, ridge=0.2)
    rows = rng.integers(60, size=horizon)
    private = pol(problem, Privacy(epsilon, 1e-6), horizon, seed=seed)
    point = release(private, X[rows], y[rows])
    V, y = problem.clip(X, y)
    smooth = Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=1e-3)
    rival = best_in_hindsight(smooth, X, y).point  # any point of the domain will do
    excess = np.mean(loss.value(V @ point, y)) - np.mean(loss.value(V @ rival, y))
    assert excess <= pol_utility_bound(private, 1e-6, float(np.linalg.norm(rival)))
    assert pol_utility_bound(pol(problem, Privacy(5.0, 1e-6), horizon), 0.05) < problem.lipschitz * 2.0


def test_the_share_of_noise_is_needed():
    """At epsilon = .01 the release is noise, which the bound knows and Theorem 11 alone does not."""
    problem, privacy, horizon = line(1.0, 0.1), Privacy(0.01, 1e-6), 3000
    X, y = np.ones((horizon, 1)), np.ones(horizon)  # the risk of x is x
    excess = max(1.0 + release(pol(problem, privacy, horizon, seed=seed), X, y)[0] for seed in range(4))
    exact = risk_bound(problem, igd_regret_bound(problem, horizon), horizon, 0.05)
    assert exact < excess <= pol_utility_bound(pol(problem, privacy, horizon), 0.05)


def test_the_share_of_the_ridge_is_needed():
    """The ridge holds the iterates at half the way to the best point; comparator = 0 leaves that out."""
    problem, horizon = line(2.0, 1.0), 5000
    X, y = np.ones((horizon, 1)), np.ones(horizon)
    private = pol(problem, Privacy(10.0, 1e-6), horizon, seed=0)
    excess = 2.0 + release(private, X, y)[0]
    assert excess == pytest.approx(1.0, abs=0.1)
    assert pol_utility_bound(private, 0.05, comparator=0.0) < excess <= pol_utility_bound(private, 0.05)


def test_theorem_11_term_by_term():
    """G = 2, alpha = 1, regret 9, T = 1000, failure .05, and ‖x*‖ = 1 or 0."""
    horizon, failure = 1000, 0.05
    s = math.log(4 * math.log(horizon) / failure)
    terms = 0.5, 9 / 1000, 4 / 1000 * math.sqrt(4 * 9 * s), 16 * 4 * s / 1000
    assert risk_bound(line(1.0, 1.0), 9.0, horizon, failure) == pytest.approx(sum(terms))
    assert risk_bound(line(1.0, 1.0), 9.0, horizon, failure, 0.0) == pytest.approx(sum(terms[1:]))


@pytest.mark.parametrize("horizon", [10, 1000])
def test_theorem_12_term_by_term(horizon):
    """L = 1, ‖C‖ = 2, d = 1, failure .04: Theorem 11 at half the failure, the noise, and one iterate in T."""
    problem = line(1.0, 1.0)
    private = pol(problem, Privacy(1.0, 1e-6), horizon)
    risk = risk_bound(problem, igd_regret_bound(problem, horizon), horizon, 0.02)
    terms = risk, private.calibrated.noise_sd(1) * (1.0 + math.sqrt(2.0 * math.log(2.0 / 0.04))), 2.0 / horizon
    assert pol_utility_bound(private, 0.04) == pytest.approx(sum(terms), rel=1e-8)


@pytest.mark.parametrize("radius", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("ridge", [0.001, 1.0, 100.0])
def test_the_range_of_losses_never_matters(radius, ridge):
    """Why there is no `6B`: `16·G²/alpha` is more than `6·G·D`, whatever the domain and the ridge."""
    problem = line(radius, ridge)
    assert 16 * problem.lipschitz_with_ridge / ridge >= 6 * problem.domain.diameter(1)


def test_what_the_bounds_fall_with():
    """More examples, less certainty, more privacy budget; a negative regret counts as none."""
    bound = risk_bound(CLASSIFY, 10.0, 1000, 0.05)
    assert risk_bound(CLASSIFY, 10.0, 2000, 0.05) < bound < risk_bound(CLASSIFY, 20.0, 1000, 0.05)
    assert risk_bound(CLASSIFY, 10.0, 1000, 0.1) < bound
    assert risk_bound(CLASSIFY, -5.0, 1000, 0.05) == risk_bound(CLASSIFY, 0.0, 1000, 0.05) < bound
    loose, tight = (pol_utility_bound(pol(CLASSIFY, Privacy(e, 1e-6), 1000), 0.05) for e in (0.1, 10.0))
    assert tight < loose


def test_invalid_arguments_are_rejected():
    """Nothing proves these."""
    with pytest.raises(Unprovable, match="bounded domain"):
        risk_bound(Problem(Logistic(), WholeSpace(), dimension=1, ridge=1.0), 1.0, 100, 0.05)
    with pytest.raises(Unprovable, match="ridge"):
        risk_bound(Problem(Logistic(), L2Ball(1.0), dimension=1), 1.0, 100, 0.05)
    with pytest.raises(InvalidInput, match="horizon"):
        risk_bound(CLASSIFY, 1.0, 2, 0.05)
    with pytest.raises(InvalidInput, match="failure"):
        risk_bound(CLASSIFY, 1.0, 100, 1.0)
    for comparator in (-1.0, 2.1, math.nan):
        with pytest.raises(InvalidInput, match="comparator"):
            risk_bound(CLASSIFY, 1.0, 100, 0.05, comparator)


@pytest.mark.parametrize("how", ["suffix", "last"])
def test_other_averages_have_no_theorem(how):
    """Theorem 12 is for the mean of all iterates of IGD, released once."""
    with pytest.raises(Unprovable, match="mean"):
        pol_utility_bound(pol(CLASSIFY, Privacy(1.0, 1e-6), 100, how=how), 0.05)
    mean = averaged(GIGA(CLASSIFY), "mean", horizon=100)
    with pytest.raises(Unprovable, match="IGD"):
        pol_utility_bound(Private(mean, Gaussian(), at([100]), Privacy(1.0, 1e-6), 100), 0.05)
