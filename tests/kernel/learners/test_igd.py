"""IGD: how its parts fit together, its errors, and the cost of rounding."""

from __future__ import annotations

import numpy as np
import pytest

from instances import LOSSES, SETS, Distance, labels_of
from kernel.learners import reference
from kernel.learners.cases import buildable
from taciturn import (
    GIGA,
    IGD,
    Absolute,
    Hinge,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Problem,
    Squared,
    Unprovable,
    WholeSpace,
)
from taciturn.methods.readings import paper_noise

NOWHERE = np.zeros(0)


@pytest.mark.parametrize("domain", ["l2 ball", "half-space without 0"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "absolute"])
def test_round_t_takes_the_step_of_the_definition(loss, domain):
    """Example t is a step of `eta = 1/(alpha·t)` from where the one before ended, wherever the stream is cut."""
    problem = Problem(LOSSES[loss](), SETS[domain](2), 2, label_bound=1.0, ridge=0.3)
    rng = np.random.default_rng(1)
    V, y = problem.clip(rng.normal(size=(6, 2)), labels_of(problem.loss, 1.0, rng, 6))
    learner = IGD(problem)
    exact = learner.absorb(learner.start(), 0, V[:4], y[:4], NOWHERE)
    exact = learner.absorb(exact, 4, V[4:], y[4:], NOWHERE)
    x = problem.domain.project(np.zeros(2))
    for t in range(6):
        x = reference.implicit_step(learner.stepped, x, V[t], y[t], 1.0 / (0.3 * (t + 1)))
    assert reference.distance(exact["x"], x) < 1e-11


def test_its_statistic_and_decision():
    """Its statistic is its iterate, unchanged, and it releases the nearest point of the set."""
    learner = IGD(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1))
    exact = learner.absorb(learner.start(), 0, np.array([[0.6, 0.8]]), np.array([1.0]), NOWHERE)
    after, row = learner.statistic(exact, 1)
    assert np.array_equal(row, exact["x"])
    assert np.array_equal(after["x"], exact["x"])
    assert learner.decide(1, np.array([3.0, 4.0]), 0.5) == pytest.approx([0.6, 0.8])
    assert np.array_equal(learner.start()["x"], np.zeros(2))


@pytest.mark.privacy
@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Absolute()])
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_the_certificate_is_its_formula(loss, neighbours):
    """`Gd/(alpha·(t+1))` or the diameter, and less than a ten-thousandth more in the first thousand rounds."""
    problem = Problem(loss, L2Ball(1.0), 2, label_bound=1.0, intercept=1.0, ridge=0.1, neighbours=neighbours)
    t = np.arange(1.0, 1001.0)
    ideal, values = np.minimum(problem.gradient_diameter / (0.1 * (t + 1.0)), 2.0), IGD(problem).certificate.at(t)
    assert (ideal <= values).all()
    assert (values < ideal * (1.0 + 1e-4)).all()


@pytest.mark.parametrize("reading", ["printed", "proven"])
def test_the_papers_noise_falls_as_one_over_t(reading):
    """With the paper's claim of (3 epsilon, 2 delta)."""
    learner = IGD(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1))
    sd, claimed = paper_noise(learner)(Privacy(1.0, 1e-6), 100, np.array([1.0, 100.0]), reading)
    assert sd[0] == pytest.approx(100.0 * sd[1])
    assert claimed == Privacy(3.0, 2e-6)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic", "squared", "linear"])
def test_no_row_is_larger_than_it_says(loss):
    """Examples that all push one way never bring an entry past the certified magnitude, for any learner and set."""
    for name, learner in buildable(0.2).items():
        if name.split(": ")[1].startswith(f"{loss},") and "zero-out" not in name and "printed" not in name:
            problem = learner.problem
            V, y = problem.clip(np.ones((30, problem.dimension)), -np.ones(30))
            exact = learner.start()
            for t in range(30):
                exact = learner.absorb(exact, t, V[t : t + 1], y[t : t + 1], NOWHERE)
                if "ftl" not in name or t in (0, 1, 29):  # a leader is some hundred steps of the others
                    _, row = learner.statistic(exact, t + 1)
                    assert np.linalg.norm(row) <= learner.certificate.magnitude * (1.0 + 1e-12)


@pytest.mark.parametrize("learner", [IGD, GIGA])
def test_the_bound_on_iterates_is_reached(learner):
    """Without a set, linear losses bring the iterate to `G/alpha`, so the bound is no wider than it must be."""
    made = learner(Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.5))
    x = made.absorb(made.start(), 0, np.ones((3000, 1)), -np.ones(3000), NOWHERE)["x"]
    assert 0.999 * made.longest_iterate < float(x[0]) <= made.longest_iterate


def test_errors_have_a_remedy():
    """No ridge, unbounded gradients, and a kink without a scalar form are rejected, each with what to do."""

    class Kinked(Distance):
        def smoothness(self, feature_bound):
            return np.inf

    with pytest.raises(Unprovable, match="Give the problem a ridge"):
        IGD(Problem(Hinge(), L2Ball(1.0), 1))
    with pytest.raises(Unprovable, match="Bound the domain"):
        IGD(Problem(Squared(), WholeSpace(), 1, label_bound=1.0, ridge=1.0))
    with pytest.raises(Unprovable, match="State a finite smoothness"):
        IGD(Problem(Kinked(), L2Ball(1.0), 1, label_bound=1.0, ridge=1.0))


@pytest.mark.parametrize("learner", [IGD, GIGA])
def test_gradients_without_a_bound_are_rejected(learner):
    """A loss whose gradients differ little but have no bound is rejected at once: its certificate would be infinite."""
    with pytest.raises(Unprovable):
        learner(Problem(Distance(), WholeSpace(), 2, label_bound=1.0, ridge=1.0))


@pytest.mark.parametrize("loss", [Logistic(), Linear(), Squared()])
def test_rounding_errors_cost_little_for_smooth_losses(loss):
    """Over ten thousand rounds they add less than a hundred-thousandth to the certificate."""
    for ridge in (0.01, 0.1, 1.0):
        learner = IGD(Problem(loss, L2Ball(1.0), 10, label_bound=1.0, ridge=ridge))
        ideal = learner.problem.gradient_diameter / (ridge * 10_001)
        assert ideal < learner.certificate.at(10_000) < ideal * (1.0 + 1e-5)


@pytest.mark.parametrize("loss", [Hinge(), Absolute()])
def test_rounding_errors_cost_little_for_kinked_losses(loss):
    """Over a hundred thousand rounds they add less than half a hundredth to the certificate."""
    learner = IGD(Problem(loss, L2Ball(1.0), 10, label_bound=1.0, ridge=0.01))
    ideal = learner.problem.gradient_diameter / (0.01 * 100_001)
    assert learner.certificate.at(100_000) < ideal * 1.005
