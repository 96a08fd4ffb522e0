"""Certificates are values, and every learner and mechanism keeps the protocol it claims."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tacit import GIGA, IGD, Absolute, Certificate, Gaussian, Hinge, L2Ball, Linear, Logistic, Privacy, Problem, every
from tacit.contracts import misfit
from tacit.schedule import Timetable

LEARNERS = {
    "igd": IGD(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1)),
    "igd, kinked": IGD(Problem(Hinge(), L2Ball(1.0), 2, intercept=1.0, ridge=0.1)),
    "igd, absolute": IGD(Problem(Absolute(), L2Ball(1.0), 2, label_bound=1.0, ridge=0.1, neighbours="zero-out")),
    "giga": GIGA(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1)),
    "giga, printed": GIGA(Problem(Linear(), L2Ball(1.0), 2, label_bound=1.0, ridge=1.0), "printed"),
}
BUDGET = Privacy(1.0, 1e-6)
NOWHERE = np.zeros(0)


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


def examples(learner, count: int):
    rng = np.random.default_rng(count)
    return learner.problem.bound(rng.normal(size=(count, 2)), rng.choice([-1.0, 1.0], count))


# Certificates.


def test_a_certificate_is_a_value():
    """It prints its kind and formula, compares by what it says, and evaluates at numbers and arrays alike."""
    one = Certificate("l2", "tail", "3/t", lambda t: 3.0 / t, 2.0, "moves all", "Lemma 1")
    same = Certificate("l2", "tail", "3/t", lambda t: 3.0 / t, 2.0, "moves all", "Lemma 1")
    assert repr(one) == "l2/tail, 3/t"
    assert one.kind == "l2/tail"
    assert one == same
    assert one != Certificate("l2", "entry", "3/t", lambda t: 3.0 / t, 2.0, "moves one", "Lemma 1")
    assert one.at(6) == 0.5
    assert one.at([1, 3]).tolist() == [3.0, 1.0]
    assert one.at(np.array([1, 2], dtype=np.int64)).tolist() == [3.0, 1.5]  # not whole-number division


@pytest.mark.privacy
def test_a_certificate_is_complete(learner):
    """Kind, formula, lemma and the paper's noise are there; values are positive and fall with t at first."""
    certificate = learner.certificate
    first = getattr(learner, "first_move", 1)
    values = certificate.at(np.arange(first, first + 1000))
    assert certificate.kind == "l2/tail"
    assert certificate.lemma
    assert certificate.formula
    for reading in ("printed", "proven"):
        sd, claimed = certificate.paper(BUDGET, 100, np.array([1.0, 100.0]), reading)
        assert sd[0] == pytest.approx(100.0 * sd[1])
        assert claimed == Privacy(3.0, 2e-6)
    assert np.isfinite(values).all()
    assert (values > 0.0).all()
    assert (np.diff(values) <= 0.0).all()
    assert values[-1] < values[0] <= learner.problem.domain.diameter(learner.problem.size) * (1.0 + 1e-8)
    assert 0.0 < certificate.magnitude < np.inf


def test_a_certificate_contains_its_formula(learner):
    """The bound is the formula, plus less than a ten-thousandth for rounding errors in the first thousand rounds."""
    p = learner.problem
    for t in (10, 1000):
        if isinstance(learner, IGD):
            ideal = p.gradient_diameter / (p.ridge * (t + 1.0))
        elif learner.step == "printed":
            ideal = 2.0 * p.gradient_diameter / (p.ridge * t)
        else:
            ideal = p.gradient_diameter / (p.ridge * (t + (p.smoothness / p.ridge - 1.0) / 2.0))
        ideal = min(ideal, p.domain.diameter(p.size))
        assert ideal <= learner.certificate.at(t) < ideal * (1.0 + 1e-4)


def test_a_misfit_names_both_kinds_and_what_fits():
    """The refusal says what came, what was wanted, and what to use."""
    entry = Certificate("l2", "entry", "1", np.ones_like, 1.0, "one example moves its own row", "none")
    text = misfit(entry, "Sums", "Gaussian", "l2/tail")
    for part in ("Sums", "l2/entry", "one example moves its own row", "Gaussian accepts l2/tail", "IGD, GIGA"):
        assert part in text


# Learners.


def test_learners_are_pure(learner):
    """Verbs change nothing they are given, and give the same twice."""
    V, y = examples(learner, 5)
    exact = learner.absorb(learner.start(), 0, V, y, NOWHERE)
    before = copy.deepcopy((exact, V, y))
    once, twice = (learner.absorb(exact, 5, V, y, NOWHERE)["x"] for _ in range(2))
    learner.hand_over(exact, 5)
    noisy = np.array([3.0] * learner.row_size)
    learner.decide(5, noisy, 0.1)
    assert np.array_equal(once, twice)
    assert np.array_equal(noisy, [3.0] * learner.row_size)
    for one, other in zip((exact["x"], V, y), (before[0]["x"], *before[1:]), strict=True):
        assert np.array_equal(one, other)


def test_learners_do_not_care_how_a_block_is_cut(learner):
    """One call or many, the exact state is the same to the last bit."""
    V, y = examples(learner, 12)
    whole = learner.absorb(learner.start(), 0, V, y, NOWHERE)["x"]
    exact, t = learner.start(), 0
    for end in (1, 1, 4, 11, 12):
        exact, t = learner.absorb(exact, t, V[t:end], y[t:end], NOWHERE), end
    assert np.array_equal(exact["x"], whole)


def test_rows_and_points_have_their_size(learner):
    """Rows have `row_size` entries, no entry beyond `magnitude`; decided points lie in the domain."""
    V, y = examples(learner, 8)
    _, row = learner.hand_over(learner.absorb(learner.start(), 0, V, y, NOWHERE), 8)
    point = learner.decide(8, np.linspace(-5.0, 5.0, learner.row_size), 0.1)
    assert row.shape == point.shape == (learner.row_size,)
    assert np.max(np.abs(row)) <= learner.certificate.magnitude
    assert learner.problem.domain.contains(point)
    assert learner.problem.domain.contains(learner.start()["x"])


# Mechanisms.


@pytest.mark.parametrize("horizon", [20, None])
def test_a_calibrated_mechanism_keeps_the_protocol(learner, horizon):
    """Memory, integers, deviations and costs have their shapes, and what it claims is what was asked for."""
    calibrated = Gaussian().calibrate(
        learner.certificate, Timetable(every(1), horizon), learner.row_size, BUDGET, "exact"
    )
    secret, public = calibrated.start()
    secret, encoded = calibrated.encode(secret, np.zeros(learner.row_size), 3)
    drawn = list(calibrated.noise(None, 3, 4))
    assert len(drawn) == 4
    assert drawn[0].dtype == encoded.dtype == np.int64
    assert drawn[0].shape == encoded.shape
    public, noisy, sd = calibrated.decode(public, encoded + drawn[0], 3)
    assert noisy.shape == (learner.row_size,)
    assert sd == calibrated.noise_sd(3)
    assert calibrated.claimed == BUDGET
    assert calibrated.cost(3).mu_squared <= calibrated.cost(4).mu_squared <= calibrated.cost(None).mu_squared


def test_the_deviation_of_a_release_does_not_depend_on_the_data():
    """Deviations come from public settings alone: any two streams see the same ones."""
    from tacit import pigd

    private = pigd(LEARNERS["igd"].problem, BUDGET, 10)
    runs = [private.run(private.start(), np.full((10, 2), value), np.ones(10))[1] for value in (0.0, 9.0)]
    assert [r.noise_sd for r in runs[0]] == [r.noise_sd for r in runs[1]]
