"""GIGA is projected online gradient descent, as plain as it is written."""

from __future__ import annotations

import math

import numpy as np
import pytest

from instances import LOSSES, SETS, labels_of
from kernel.learners.cases import VECTOR_LOSSES
from taciturn import (
    GIGA,
    Hinge,
    InvalidInput,
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

SMOOTH = ["huber", "linear", "log cosh", "logistic", "squared"]
NOWHERE = np.zeros(0)


def stream(problem: Problem, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = labels_of(problem.loss, problem.label_bound, rng, count)
    return problem.clip(rng.normal(size=(count, problem.dimension)), labels)


@pytest.mark.parametrize("domain", ["l2 ball", "box", "simplex", "half-space without 0", "whole space", "diagonal"])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("step", ["contracting", "printed"])
def test_it_is_three_lines(loss, domain, step):
    """It equals `x = Proj(x - eta·(slope·v + alpha·x))` with the steps of the docstring, computed apart."""
    ridge = 0.7
    problem = Problem(LOSSES[loss](), SETS[domain](3), 3, label_bound=1.0, ridge=ridge)
    if math.isinf(problem.gradient_diameter):
        pytest.skip("its gradients have no bound there")
    learner, (V, y) = GIGA(problem, step), stream(problem, 40, 1)
    kappa = (problem.loss.curvature + ridge) * (1.0 + 1e-9) / ridge
    x = problem.domain.project(np.zeros(3))
    for t, (v, label) in enumerate(zip(V, y, strict=True), start=1):
        waits = step == "printed" and t < 2.0 * kappa**2
        eta = 0.0 if waits else 2.0 / (ridge * t) if step == "printed" else 1.0 / (ridge * (t + (kappa - 1.0) / 2.0))
        x = problem.domain.project(x - eta * (problem.loss.slope(v @ x, label) * v + ridge * x))
    assert np.allclose(learner.absorb(learner.start(), 0, V, y, NOWHERE)["x"], x, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("loss", VECTOR_LOSSES)
def test_it_takes_vector_losses(loss):
    """A loss that is not a function of `v·x` enters by its gradient."""
    make, size = VECTOR_LOSSES[loss]
    problem = Problem(make(), L2Ball(0.8), size, label_bound=1.0, ridge=0.5)
    learner, (V, y) = GIGA(problem), stream(problem, 10, 2)
    x = np.zeros(size)
    for t, (v, label) in enumerate(zip(V, y, strict=True), start=1):
        x = L2Ball(0.8).project(x - (problem.loss.gradient(x, v, label) + 0.5 * x) / (0.5 * (t + learner.delay)))
    assert np.allclose(learner.absorb(learner.start(), 0, V, y, NOWHERE)["x"], x, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("loss", ["absolute", "hinge", "quantile .5", "quantile .9"])
@pytest.mark.parametrize("step", ["contracting", "printed"])
def test_kinks_are_rejected(loss, step):
    """A loss with a kink has no gradient step that contracts, and the error says what to use."""
    with pytest.raises(Unprovable, match=r"kink.*Use IGD"):
        GIGA(Problem(LOSSES[loss](), L2Ball(1.0), 2, label_bound=1.0, ridge=1.0), step)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_the_printed_step_waits(ridge):
    """Nothing moves before round `ceil(2·kappa²)`, and that round moves."""
    learner = GIGA(Problem(Logistic(), WholeSpace(), 1, ridge=ridge), "printed")
    first = math.ceil(2.0 * (0.25 / ridge + 1.0) ** 2 * (1.0 + 1e-9) ** 2)
    assert learner.first_move == first
    ones = np.ones((first, 1))
    assert not learner.absorb(learner.start(), 0, ones[1:], ones[1:, 0], NOWHERE)["x"].any()
    moved = learner.absorb(learner.start(), 0, ones, ones[:, 0], NOWHERE)["x"]
    assert moved == pytest.approx(0.5 * 2.0 / (ridge * first))
    assert (learner.certificate.at(np.arange(1, first)) == 0.0).all()
    assert learner.certificate.at(first) > 0.0


@pytest.mark.privacy
@pytest.mark.parametrize("step", ["contracting", "printed"])
def test_the_certificate_is_its_formula(step):
    """`Gd/(alpha·(t+t0))`, or `2Gd/(alpha·t)`, or the diameter, and less than a ten-thousandth more."""
    problem = Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1)
    learner, kappa = GIGA(problem, step), problem.smoothness / 0.1
    t = np.arange(float(learner.first_move), 1001.0)
    inertia = t / 2.0 if step == "printed" else t + (kappa - 1.0) / 2.0
    ideal, values = np.minimum(problem.gradient_diameter / (0.1 * inertia), 2.0), learner.certificate.at(t)
    assert (ideal <= values).all()
    assert (values < ideal * (1.0 + 1e-4)).all()


@pytest.mark.parametrize("reading", ["printed", "proven"])
def test_the_papers_noise_falls_as_one_over_t(reading):
    """With the paper's claim of (3 epsilon, 2 delta)."""
    learner = GIGA(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1), "printed")
    sd, claimed = paper_noise(learner)(Privacy(1.0, 1e-6), 100, np.array([1.0, 100.0]), reading)
    assert sd[0] == pytest.approx(100.0 * sd[1])
    assert claimed == Privacy(3.0, 2e-6)


@pytest.mark.privacy
@pytest.mark.parametrize("ridge", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("loss", [Logistic(), Squared(), Linear()])
def test_every_step_contracts(loss, ridge):
    """Two points end within `1 - eta_t·alpha` (default) or `1 - 1/t` (printed) of their distance."""
    problem = Problem(loss, WholeSpace() if loss != Squared() else L2Ball(1e6), 2, label_bound=1.0, ridge=ridge)
    rng = np.random.default_rng(7)
    for step in ("contracting", "printed"):
        learner = GIGA(problem, step)
        for t in (learner.first_move, learner.first_move + 1, 3 * learner.first_move):
            rate = 1.0 - 1.0 / (t + learner.delay) if step == "contracting" else 1.0 - 1.0 / t
            a, b = rng.normal(size=(2, 2)) * 3.0
            V, y = problem.clip(rng.normal(size=(1, 2)) * 9.0, [1.0])
            ends = [learner.absorb({"x": x}, t - 1, V, y, NOWHERE)["x"] for x in (a, b)]
            assert np.linalg.norm(ends[0] - ends[1]) <= rate * np.linalg.norm(a - b) * (1.0 + 1e-12) + 1e-14


def test_a_longer_step_does_not_contract():
    """The first step is as long as it can be: twice that length and the check above would fail."""
    problem = Problem(Squared(), L2Ball(1e6), 1, label_bound=1.0, ridge=0.01)
    learner = GIGA(problem)
    eta = 2.0 / (problem.ridge * (1.0 + learner.delay))
    a, b = (x - eta * problem.gradient(x, np.ones(1), 0.0) for x in (np.array([1.0]), np.array([-1.0])))
    assert abs(a - b) > 2.0


def test_settings_are_checked():
    """Other steps, no ridge and unbounded gradients are rejected by name."""
    with pytest.raises(InvalidInput, match="contracting, printed"):
        GIGA(Problem(Logistic(), L2Ball(1.0), 1, ridge=1.0), "hasty")
    with pytest.raises(Unprovable, match="ridge"):
        GIGA(Problem(Logistic(), L2Ball(1.0), 1))
    with pytest.raises(Unprovable, match="Bound the domain"):
        GIGA(Problem(Squared(), WholeSpace(), 1, label_bound=1.0, ridge=1.0))
    with pytest.raises(Unprovable, match="kink"):
        GIGA(Problem(Hinge(), L2Ball(1.0), 1, ridge=1.0))
