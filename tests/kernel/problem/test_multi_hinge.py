"""The hinge loss of several classes: its ties, its constants, which are reached, and who takes it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import (
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    Box,
    FadingIGD,
    Hinge,
    L2Ball,
    MultiHinge,
    ObjectivePerturbation,
    Privacy,
    Problem,
    Simplex,
    Unprovable,
    WholeSpace,
)
from taciturn.checks import checks_for
from taciturn.checks.certificates import moved, search
from taciturn.checks.suite import run_checks
from taciturn.kernel.problem.multiclass import ScoresLoss
from taciturn.plan import recommend

FEW = arrays(np.int64, 4, elements=st.integers(-2, 2)).map(lambda u: u.astype(float))
"""Scores that tie, and margins that are just met, more often than not."""


# Ties.


@pytest.mark.parametrize(
    ("scores", "y", "value", "slope"),
    [
        ([0.0, 0.0, 0.0], 0, 1.0, [-1.0, 1.0, 0.0]),
        ([0.0, 0.0, 0.0], 1, 1.0, [1.0, -1.0, 0.0]),
        ([0.0, 0.0, 0.0], 2, 1.0, [1.0, 0.0, -1.0]),
        ([0.5, 0.2, 0.5], 1, 1.3, [1.0, -1.0, 0.0]),
        ([-3.0, 0.2, 0.5], 2, 0.7, [0.0, 1.0, -1.0]),
        ([2.0, 1.0, 1.0], 0, 0.0, [0.0, 0.0, 0.0]),
        ([9.0, 1.0, 1.0], 0, 0.0, [0.0, 0.0, 0.0]),
    ],
)
def test_of_several_rivals_the_first_counts_and_a_margin_just_met_is_met(scores, y, value, slope):
    """One fixed rule, so that the same examples have the same gradients."""
    U, label = np.array([scores]), np.array([float(y)])
    assert MultiHinge(3).losses(U, label) == pytest.approx([value], rel=1e-15)
    assert MultiHinge(3).slopes(U, label).tolist() == [slope]


@given(FEW, FEW, st.integers(0, 3))
def test_slopes_are_subgradients_at_every_tie(u, other, y):
    """In integers, exactly: no loss lies below a tangent, wherever that is taken."""
    loss, label = MultiHinge(4), np.array([float(y)])
    here, there = loss.losses(u[None], label)[0], loss.losses(other[None], label)[0]
    assert there >= here + loss.slopes(u[None], label)[0] @ (other - u)


def test_two_classes_are_the_hinge_loss():
    """With the difference of the two rows as its point, at the margin too."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        W, v, y = rng.normal(size=(2, 3)), rng.normal(size=3), int(rng.integers(2))
        u, sign = float((W[1] - W[0]) @ v), 2.0 * y - 1.0
        assert MultiHinge(2).value(W.ravel(), v, y) == pytest.approx(float(Hinge().value(u, sign)), abs=1e-14)
        slope = float(Hinge().slope(u, sign)) * v
        assert MultiHinge(2).gradient(W.ravel(), v, y) == pytest.approx(np.concatenate([-slope, slope]), abs=1e-14)
    assert not MultiHinge(2).slopes(np.array([[0.0, 1.0]]), np.array([1.0])).any()


# Constants.


@pytest.mark.privacy
@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.parametrize("intercept", [0.0, 0.8])
@pytest.mark.parametrize("domain", [L2Ball(1e-6), Box(0.2, 0.3), Simplex(), WholeSpace()], ids=str)
def test_the_gradient_diameter_is_reached_in_every_set(domain, intercept, K):
    """`2·sqrt(2)·R` and `sqrt(2)·R`, intercept included, by one v of two classes where all rows are alike."""
    problem = Problem(MultiHinge(K), domain, 2, 1.5, intercept=intercept)
    V, y = problem.clip([[0.9, 1.2]] * 2, [0, 1])
    g, h = (problem.data_gradient(problem.first_point, v, float(label)) for v, label in zip(V, y, strict=True))
    reached = 2.0 * math.sqrt(2.0) * math.hypot(1.5, intercept)
    assert np.linalg.norm(g - h) == pytest.approx(reached, rel=1e-11)
    assert np.linalg.norm(g - h) <= problem.gradient_diameter <= reached * (1.0 + 1e-8)
    zeroed = replace(problem, neighbours="zero-out")
    assert np.linalg.norm(g) <= zeroed.gradient_diameter == problem.lipschitz <= reached / 2.0 * (1.0 + 1e-8)


class Half(MultiHinge):
    """A diameter that forgets the second example."""

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return self.lipschitz(feature_bound, radius, label_bound)


class OneColumn(MultiHinge):
    """Takes the slope in one score for that in all of them."""

    def steepest(self, reach):
        return 1.0


class LastMargin(MultiHinge):
    """Takes the last class for the rival, which another may beat."""

    def slopes(self, U, y):
        return np.where(self.losses(U, y)[:, None] > 0.0, self.targets(0.0 * y + self.classes - 1) - self.targets(y), 0)


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("loss", "check"),
    [
        (Half(3), "gradient_diameter_is_a_bound"),
        (OneColumn(3), "lipschitz_is_a_bound"),
        (LastMargin(3), "loss_is_convex"),
    ],
    ids=lambda thing: thing if isinstance(thing, str) else type(thing).__name__,
)
def test_the_checks_of_a_loss_find_planted_faults(loss, check):
    """Each by the check that is there for it."""
    assert check in {outcome.check.partition(",")[0] for outcome in run_checks("it", checks_for(loss)).failed}


@pytest.mark.privacy
@pytest.mark.parametrize("variant", [{}, {"intercept": 0.7}, {"neighbours": "zero-out"}], ids=str)
def test_the_search_passes_half_of_ftrl_s_certificate_and_never_all_of_it(variant):
    """So its silence means something."""
    learner = FTRL(Problem(MultiHinge(3), L2Ball(1.0), 2, 1.5, **variant))
    shares = [search(learner, seed).share for seed in range(4)]
    assert 0.9 < max(shares) <= 1.0
    half = replace(learner.certificate, bound=lambda t: learner.certificate.at(t) / 2.0)
    assert max(search(learner, seed, certificate=half).share for seed in range(2)) > 1.5


@pytest.mark.privacy
def test_half_the_gradient_diameter_is_caught(monkeypatch):
    """One v of two classes moves FTRL's first gradient by twice what is certified."""
    monkeypatch.setattr(MultiHinge, "gradient_diameter", Half.gradient_diameter)
    learner = FTRL(Problem(MultiHinge(3), L2Ball(1.0), 2))
    raw = np.array([[0.6, 0.8, 0.0], [0.6, 0.8, 1.0]])
    assert moved(learner, raw, 0) > 1.99 * float(learner.certificate.at(1))


@pytest.mark.privacy
@pytest.mark.parametrize("longest", [0.1, 2.0])
def test_the_variation_is_a_bound_and_nearly_reached(longest):
    """From 0 to `1 + sqrt(2)·R·B` on a net of two opposite points, if one keeps the margin; else as Lipschitz says."""
    loss, R = MultiHinge(2), 1.5
    v, W = R * np.array([0.6, 0.8]), longest * np.outer([math.sqrt(0.5), -math.sqrt(0.5)], [0.6, 0.8]).ravel()
    result = float(np.ptp(loss.values(np.array([W, -W]), v, 1.0)))
    learner = EWOO(Problem(loss, L2Ball(longest), 2, R), [W, -W])
    stated = loss.variation(np.array([W, -W]), R, 1.0)
    assert stated == pytest.approx(1.0 + math.sqrt(2.0) * R * longest, rel=1e-8)
    assert (1.0 - 1e-8) * learner.variation < result <= learner.variation <= stated * (1.0 + 1e-12)


# Who takes it.

REJECTED = {
    "igd": (IGD, "IGD cannot certify its step on MultiHinge.*Use FTRL"),
    "fading igd": (FadingIGD, "IGD cannot certify its step on MultiHinge.*Use FTRL"),
    "giga": (GIGA, "MultiHinge has a kink.*Use FTRL"),
    "printed giga": (lambda problem: GIGA(problem, "printed"), "MultiHinge has a kink.*Use FTRL"),
    "ftl": (FTL, "FTL cannot certify its leader on MultiHinge.*Use FTRL"),
    "regularised ftl": (lambda problem: FTL(problem, extra_ridge=1.0), "FTL cannot certify its leader.*Use FTRL"),
    "qftl": (QFTL, "squared loss"),
    "objective": (lambda p: ObjectivePerturbation(p, Privacy(1.0, 1e-6), 100), "smooth scalar losses"),
}


@pytest.mark.parametrize("domain", [L2Ball(1.0), WholeSpace(), Simplex()], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("name", REJECTED)
def test_solvers_reject_it_and_say_what_to_use(name, ridge, domain):
    """Whatever else the problem lacks."""
    learner, message = REJECTED[name]
    with pytest.raises(Unprovable, match=message):
        learner(Problem(MultiHinge(3), domain, 2, ridge=ridge))


@pytest.mark.parametrize("method", [None, "pigd", "pgiga"])
def test_a_plan_without_a_bounded_set_is_rejected(method):
    """With the same remedy; over a ball it is private FTRL."""
    problem = Problem(MultiHinge(3), WholeSpace(), 2, ridge=0.1)
    with pytest.raises(Unprovable, match="Use FTRL"):
        recommend(problem, Privacy(1.0, 1e-6), 1000, method=method)
    assert recommend(replace(problem, domain=L2Ball(1.0)), Privacy(1.0, 1e-6), 1000).method == "pftrl"


# A loss of one's own.


@dataclass(frozen=True)
class Margins(ScoresLoss):
    """`max_k (1 if k ≠ y) + u_k - u_y`: `MultiHinge`, as a user would write it."""

    def losses(self, U, y):
        margins = U + 1.0 - self.targets(y)
        return margins.max(axis=1) - U[np.arange(len(U)), y.astype(int)]

    def slopes(self, U, y):
        worst = np.argmax(U + 1.0 - self.targets(y), axis=1)
        return self.targets(worst) - self.targets(y)

    def steepest(self, reach):
        return math.sqrt(2.0)


def test_a_loss_of_ones_own():
    """Two functions and a constant; it has a kink, so FTRL learns it and IGD says why it cannot."""
    problem = Problem(Margins(3), L2Ball(1.0), 2, ridge=0.1)
    assert problem.values(np.zeros(6), *problem.clip([[0.1, 0.2]], [1])) == pytest.approx([1.0])
    assert problem.gradient_diameter == pytest.approx(2.0 * math.sqrt(2.0))
    assert math.isinf(problem.smoothness)
    assert float(FTRL(problem).certificate.at(1)) == pytest.approx(2.0 * math.sqrt(2.0), rel=1e-6)
    with pytest.raises(Unprovable, match="cannot certify its step on Margins"):
        IGD(problem)


def test_the_package_writes_it_so_too():
    """The same losses and slopes; only ties could be broken otherwise, and there are none."""
    U, y = 2.0 * np.random.default_rng(8).normal(size=(200, 5)), np.arange(200.0) % 5
    np.testing.assert_allclose(Margins(5).losses(U, y), MultiHinge(5).losses(U, y), atol=1e-14)
    np.testing.assert_array_equal(Margins(5).slopes(U, y), MultiHinge(5).slopes(U, y))
