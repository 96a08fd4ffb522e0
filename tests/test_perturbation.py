"""Objective perturbation end to end: what it minimises, what it hides, what it charges, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from tacit import (
    Hinge,
    Huber,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    ObjectivePerturbation,
    Privacy,
    Problem,
    Squared,
    StateConflict,
    Unprovable,
    WholeSpace,
    perturbation,
    pigd,
)

PROBLEM = Problem(Logistic(), WholeSpace(), dimension=3, ridge=0.05)
BUDGET = Privacy(1.0, 1e-6)


def sample(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("problem", [PROBLEM, replace(PROBLEM, loss=Huber(1.0), label_bound=1.0, intercept=1.0)])
def test_the_guarantee_is_kept_and_nearly_used(problem, epsilon, neighbours):
    """Everything together costs at most the budget, and at least 98 % of its epsilon."""
    problem = replace(problem, neighbours=neighbours)
    method = ObjectivePerturbation(problem, Privacy(epsilon, 1e-6), horizon=2_000)
    assert method.guarantee.holds
    assert 0.98 * epsilon <= method.guarantee.epsilon <= epsilon


def test_it_minimises_the_perturbed_objective():
    """The released point makes the gradient of all losses, ridge and linear term vanish, but for the output noise."""
    X, y = sample(200)
    method = ObjectivePerturbation(PROBLEM, BUDGET, horizon=200, seed=3)
    release = method.fit(X, y)
    V, y = PROBLEM.bound(X, y)
    gradient = sum(PROBLEM.gradient(release.point, v, label) for v, label in zip(V, y, strict=True)) + method._draw()
    allowed = 200 * PROBLEM.smoothness * 6.0 * release.noise_sd * np.sqrt(3)
    assert np.linalg.norm(gradient) <= allowed < 0.01 * method.tilt_sd
    assert release.simulated
    assert release.t == 200


def test_the_error_is_within_what_the_output_noise_hides():
    """The computed minimiser of one draw, against one of a hundredfold precision: far within half the sensitivity."""
    X, y = sample(300)
    method = ObjectivePerturbation(PROBLEM, BUDGET, horizon=300, seed=4)
    V, y = PROBLEM.bound(X, y)
    found = method._minimiser(V, y, method._draw())
    better = perturbation.minimiser(
        perturbation.Scalars(PROBLEM, V, y, PROBLEM.ridge, 0.0, method._draw() / 300), WholeSpace(), found, 1e-15, 1.0
    )
    assert np.linalg.norm(found - better) <= 2.0 * method._slack


def test_the_noise_is_gaussian_of_its_stated_deviation():
    """6,000 draws of the linear term: a Kolmogorov-Smirnov test that fails a right sampler once in a million runs."""
    method = ObjectivePerturbation(PROBLEM, BUDGET, horizon=300)
    drawn = np.concatenate([method._draw() for _ in range(2_000)]) / method.tilt_sd
    assert kstest(drawn, "norm").pvalue > 1e-6
    assert kstest(drawn * 1.2, "norm").pvalue < 1e-6


def test_the_sensitivity_sets_the_noise():
    """The deviation is Gd over the shift that the budget allows; a smaller gradient diameter would mean less."""
    replaced = ObjectivePerturbation(PROBLEM, BUDGET, horizon=2_000).tilt_sd
    left_out = ObjectivePerturbation(replace(PROBLEM, neighbours="zero-out"), BUDGET, horizon=2_000).tilt_sd
    assert 1.0 / 0.25 < left_out < 0.55 * replaced
    assert replaced > 2.0 / BUDGET.mu


def test_secret_runs_differ_and_seeded_ones_do_not():
    """And a seeded guarantee says that it protects nobody."""
    X, y = sample(100)
    secret = ObjectivePerturbation(PROBLEM, BUDGET, horizon=100)
    assert (secret.fit(X, y).point != secret.fit(X, y).point).any()
    seeded = replace(secret, seed=1)
    assert (seeded.fit(X, y).point == seeded.fit(X, y).point).all()
    assert not seeded.guarantee.holds
    assert "not private" in str(seeded.guarantee).lower()


def test_its_cost_goes_into_the_ledger():
    """Beside a stream of another kind; a fit that does not fit is refused before anything is drawn."""
    X, y = sample(100)
    ledger = Ledger(Privacy(2.5, 1e-5))
    pigd(Problem(Logistic(), L2Ball(1.0), 3, ridge=0.1), BUDGET, horizon=100).start(ledger)
    method = ObjectivePerturbation(PROBLEM, BUDGET, horizon=100)
    method.fit(X, y, ledger)
    assert ledger.spent.epsilon(1e-5) >= method.guarantee.epsilon * 0.99
    with pytest.raises(Exception, match="more than the ledger"):
        method.fit(X, y, ledger)


@pytest.mark.parametrize(
    ("problem", "match"),
    [
        (Problem(Hinge(), WholeSpace(), 3, ridge=0.1), "smooth scalar losses.*pol"),
        (Problem(Logistic(), L2Ball(1.0), 3, ridge=0.1), "whole space.*pol"),
        (Problem(Logistic(), WholeSpace(), 3), "ridge"),
        (Problem(Squared(), WholeSpace(), 3, label_bound=1.0, ridge=0.1), "bounded"),
    ],
)
def test_what_it_does_not_cover_is_refused(problem, match):
    """Kinks, constraints, no ridge, unbounded slopes: each with what to use instead."""
    with pytest.raises(Unprovable, match=match):
        ObjectivePerturbation(problem, BUDGET, horizon=100)


def test_too_small_a_ridge_is_refused_with_one_that_suffices():
    """The remedy works."""
    with pytest.raises(Unprovable, match="ridge of at least") as refusal:
        ObjectivePerturbation(replace(PROBLEM, ridge=1e-5), Privacy(0.1, 1e-6), horizon=100)
    ridge = float(str(refusal.value).split("at least ")[1].split(",")[0])
    assert ObjectivePerturbation(replace(PROBLEM, ridge=1.01 * ridge), Privacy(0.1, 1e-6), horizon=100).guarantee.holds


def test_the_number_of_examples_is_the_horizon():
    """The noise was planned for it."""
    with pytest.raises(InvalidInput, match="planned for 100"):
        ObjectivePerturbation(PROBLEM, BUDGET, horizon=100).fit(*sample(99))


def test_a_copied_ledger_line_is_not_reused():
    """Each fit opens a line of its own, used up at once."""
    ledger = Ledger()
    method = ObjectivePerturbation(PROBLEM, BUDGET, horizon=50)
    method.fit(*sample(50), ledger)
    method.fit(*sample(50), ledger)
    assert ledger.spent.plain_epsilon == pytest.approx(2 * method.cost.plain_epsilon)
    with pytest.raises(StateConflict):
        ledger.commit("unknown", (0, 0, 0, ""), (1, 1, 1, ""), method.cost)
