"""Certificates are values, and every learner and mechanism of the package keeps the protocol it claims."""

from __future__ import annotations

import copy
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import (
    BLT,
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    Absolute,
    Anytime,
    Certificate,
    Exponential,
    FadingIGD,
    Gaussian,
    Hinge,
    L2Ball,
    Linear,
    Logistic,
    OneHot,
    Privacy,
    Problem,
    Simplex,
    Softmax,
    Squared,
    averaged,
    every,
    experts,
    grid,
    pigd,
)
from tacit.accounting.cost import FREE
from tacit.contracts import misfit
from tacit.schedule import Timetable
from zoo import Distance

DISC, RIDGED = L2Ball(1.0), Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1)
CLASSES = Problem(Softmax(3), L2Ball(2.0), 2, intercept=0.5, ridge=0.1)
LEARNERS = {
    "igd": IGD(RIDGED),
    "igd, kinked": IGD(Problem(Hinge(), DISC, 2, intercept=1.0, ridge=0.1)),
    "igd, absolute": IGD(Problem(Absolute(), DISC, 2, label_bound=1.0, ridge=0.1, neighbours="zero-out")),
    "igd, vector loss": IGD(Problem(Distance(), Simplex(), 2, label_bound=1.0, ridge=0.1)),
    "giga": GIGA(RIDGED),
    "giga, printed": GIGA(Problem(Linear(), DISC, 2, label_bound=1.0, ridge=1.0), "printed"),
    "fading igd": FadingIGD(Problem(Hinge(), DISC, 2)),
    "mean of igd": averaged(IGD(RIDGED), "mean", horizon=20),
    "suffix of giga": averaged(GIGA(RIDGED), "suffix", horizon=6),
    "mean of ftl": averaged(FTL(RIDGED), "mean", horizon=20),
    "ftl by sums": FTL(Problem(Squared(), DISC, 2, label_bound=1.0, intercept=0.5, ridge=0.1), extra_ridge=0.5),
    "ftl by examples": FTL(RIDGED),
    "ftl, kinked": FTL(Problem(Hinge(), DISC, 2), extra_ridge=3.0),
    "ewoo": EWOO(Problem(Hinge(), DISC, 2), grid(DISC, 2, per_axis=4)),
    "ewoo, vector loss": EWOO(Problem(Distance(), DISC, 2, label_bound=1.0, ridge=0.3), grid(DISC, 2, per_axis=3)),
    "ewoo, classes": EWOO(Problem(Softmax(3), DISC, 1), grid(DISC, 3, per_axis=3)),
    "experts": experts(3, neighbours="zero-out"),
    "igd, classes": IGD(CLASSES),
    "giga, classes": GIGA(CLASSES),
    "giga, one hot": GIGA(Problem(OneHot(4), DISC, 2, ridge=0.1)),
    "ftl, classes": FTL(CLASSES),
    "ftrl": FTRL(Problem(Hinge(), DISC, 2, intercept=1.0)),
    "ftrl, classes": FTRL(CLASSES),
    "ftrl, one hot": FTRL(Problem(OneHot(3), DISC, 2, neighbours="zero-out")),
    "qftl": QFTL(Problem(Squared(), DISC, 2, label_bound=1.0, ridge=0.1)),
    "qftl, one hot": QFTL(Problem(OneHot(3), DISC, 2, intercept=1.0)),
}
MECHANISMS = {"l2/tail": Gaussian(), "range/tail": Exponential(), "l2/entry": BLT()}
BUDGET = Privacy(1.0, 1e-6)


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


def calibrate(learner, horizon: int | None):
    """A learner's rows under the mechanism that accepts its certificate."""
    certificate = learner.certificate
    timetable = Timetable(every(1), horizon)
    mechanism = Anytime() if (certificate.kind, horizon) == ("l2/entry", None) else MECHANISMS[certificate.kind]
    return mechanism.calibrate(certificate, timetable, learner.row_size, BUDGET, "exact")


def examples(learner, count: int):
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(count, learner.problem.dimension))
    classes = learner.problem.outputs
    return learner.problem.bound(
        rows, rng.integers(classes, size=count) if classes > 1 else rng.choice([-1.0, 1.0], count)
    )


def same(one, other) -> bool:
    """Whether two dictionaries hold the same arrays under the same names, to the last bit and the type."""
    assert one.keys() == other.keys()
    assert {name: array.dtype for name, array in one.items()} == {name: array.dtype for name, array in other.items()}
    return all(np.array_equal(one[name], other[name]) for name in one)


# Certificates.


def test_a_certificate_is_a_value():
    """It prints its kind and formula, compares by what it says, and evaluates at numbers and arrays alike."""
    one = Certificate("l2", "tail", "3/t", lambda t: 3.0 * t**-1, 2.0, "moves all", "Lemma 1")
    equal = Certificate("l2", "tail", "3/t", lambda t: 3.0 / t, 2.0, "moves all", "Lemma 1")
    assert repr(one) == "l2/tail, 3/t"
    assert one.kind == "l2/tail"
    assert one == equal
    assert one != Certificate("l2", "entry", "3/t", lambda t: 3.0 / t, 2.0, "moves one", "Lemma 1")
    assert one.at(6) == 0.5
    assert one.at([1, 3]).tolist() == [3.0, 1.0]
    assert one.at(np.array([1, 2], dtype=np.int64)).tolist() == [3.0, 1.5]  # whole numbers have no such power


@pytest.mark.privacy
def test_a_certificate_is_complete(learner):
    """Kind, formula, words and lemma are there; it evaluates at numbers and arrays alike, to finite bounds."""
    certificate, rounds = learner.certificate, np.arange(1, 41)
    assert certificate.kind in MECHANISMS
    assert certificate.formula
    assert certificate.moved_by
    assert certificate.lemma
    assert 0.0 < certificate.magnitude < np.inf
    values = certificate.at(rounds)
    assert values.shape == (40,)
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    assert (values >= 0.0).all()
    assert values[-1] > 0.0
    assert values.tolist() == [float(certificate.at(int(t))) for t in rounds]
    assert np.array_equal(certificate.at(rounds[::-1]), values[::-1])
    assert np.shape(certificate.at(7)) == ()


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
    start, point = learner.start(), learner.problem.first_point
    exact, _ = learner.hand_over(learner.absorb(start, 0, V, y, point), 5)
    assert same(start, learner.start())
    before = copy.deepcopy((exact, V, y, point))
    once, twice = (learner.absorb(exact, 5, V, y, point) for _ in range(2))
    assert same(once, twice)
    ends = [learner.hand_over(once, 10) for _ in range(2)]
    assert same(ends[0][0], ends[1][0])
    assert np.array_equal(ends[0][1], ends[1][1])
    assert same(once, twice)
    assert same(exact, before[0])
    assert all(np.array_equal(now, then) for now, then in zip((V, y, point), before[1:], strict=True))


def test_decisions_are_pure(learner):
    """They change nothing of the noisy row, and what is done to one does not reach the next."""
    noisy = np.array([2.0] if learner.certificate.metric == "range" else [3.0] * learner.row_size)
    kept, first = noisy.copy(), learner.decide(5, noisy, 0.1)
    expected = first.copy()
    first += 99.0
    assert np.array_equal(learner.decide(5, noisy, 0.1), expected)
    assert np.array_equal(noisy, kept)


def test_learners_do_not_care_how_a_block_is_cut(learner):
    """One call or many, the exact state and the row are the same to the last bit."""
    V, y = examples(learner, 12)
    whole = learner.absorb(learner.start(), 0, V, y, learner.problem.first_point)
    exact, t = learner.start(), 0
    for end in (1, 1, 4, 11, 12):
        exact, t = learner.absorb(exact, t, V[t:end].copy(), y[t:end].copy(), learner.problem.first_point), end
    assert same(exact, whole)
    assert np.array_equal(learner.hand_over(exact, 12)[1], learner.hand_over(whole, 12)[1])


def test_rows_and_points_have_their_size(learner):
    """Rows have `row_size` entries, none beyond `magnitude`; decisions lie in the domain; the state keeps its types."""
    (V, y), shares = examples(learner, 8), 8.0 if learner.certificate.reach == "entry" else 1.0
    exact, row = learner.hand_over(learner.absorb(learner.start(), 0, V, y, learner.problem.first_point), 8)
    point = learner.decide(8, row, 0.0)
    assert row.shape == (learner.row_size,)
    assert row.dtype == point.dtype == np.float64
    assert np.max(np.abs(row)) <= shares * learner.certificate.magnitude
    assert point.shape == (learner.problem.size,)
    assert learner.problem.domain.contains(point)
    kinds = [{name: (type(array), array.dtype) for name, array in state.items()} for state in (learner.start(), exact)]
    assert kinds[0] == kinds[1]


# Mechanisms.


@pytest.mark.parametrize("horizon", [20, None])
def test_a_calibrated_mechanism_keeps_the_protocol(learner, horizon):
    """Memory, integers and deviations have their shapes, from encoding to the point, and the claim is the budget."""
    calibrated, row = calibrate(learner, horizon), np.linspace(0.0, 0.5, learner.row_size)
    (secret, public), drawn, kept = calibrated.start(), list(calibrated.noise(None, 1, 9)), row.copy()
    assert len(drawn) == 9
    for k, noise in enumerate(drawn, start=1):
        before = copy.deepcopy((secret, public))
        following, encoded = calibrated.encode(secret, row, k)
        assert encoded.dtype == noise.dtype == np.int64
        assert encoded.shape == noise.shape
        decoded, noisy, sd = calibrated.decode(public, encoded + noise, k)
        assert noisy.shape == ((1,) if learner.certificate.metric == "range" else (learner.row_size,))
        assert noisy.dtype == np.float64
        assert learner.problem.domain.contains(learner.decide(k, noisy, sd))
        assert sd == calibrated.noise_sd(k)
        assert (sd > 0.0) == (learner.certificate.at(k) > 0.0)
        assert all(same(*pair) for pair in zip((secret, public), before, strict=True))  # memory is not written to
        assert (following.keys(), decoded.keys()) == (secret.keys(), public.keys())
        secret, public = following, decoded
    assert calibrated.claimed == BUDGET
    assert np.array_equal(row, kept)


@pytest.mark.privacy
@pytest.mark.parametrize("horizon", [20, None])
def test_costs_only_rise_to_the_budget(learner, horizon):
    """From nothing, no part of the cost ever falls, and all there can ever be is within what was claimed."""
    calibrated = calibrate(learner, horizon)
    costs = np.array([astuple(calibrated.cost(k)) for k in range(21)] + [astuple(calibrated.cost(None))])
    assert calibrated.cost(0) == FREE
    assert (np.diff(costs, axis=0) >= 0.0).all()
    assert (costs[-1] > 0.0).any()
    assert calibrated.cost(None).within(BUDGET)


HIDDEN = {
    f"{name}, {horizon}": calibrate(LEARNERS[name], horizon) for name in ("igd", "experts") for horizon in (600, None)
}


@pytest.mark.privacy
@pytest.mark.parametrize("name", HIDDEN)
@settings(max_examples=10)
@given(cuts=st.lists(st.integers(1, 300), min_size=1, max_size=6))
def test_seeded_noise_does_not_depend_on_the_cut(name, cuts):
    """A seed gives release k the same noise whichever calls ask for it, in whatever order."""
    calibrated = HIDDEN[name]
    whole, k = np.asarray(calibrated.noise(5, 1, 600)), 1
    for count in cuts:
        count = min(count, 601 - k)
        if count:
            assert np.array_equal(np.asarray(calibrated.noise(5, k, count)), whole[k - 1 : k - 1 + count])
        k += count
    assert np.array_equal(np.asarray(calibrated.noise(5, 3, 2)), whole[2:4])
    assert not np.array_equal(np.asarray(calibrated.noise(6, 3, 2)), whole[2:4])


@pytest.mark.privacy
@pytest.mark.parametrize("name", HIDDEN)
def test_secret_noise_is_fresh_every_time(name):
    """The same releases asked for twice get different noise, and so does every entry."""
    one, other = (np.asarray(HIDDEN[name].noise(None, 1, 200)) for _ in range(2))
    assert one.shape == other.shape
    assert np.count_nonzero(one == other) <= 1
    assert len(np.unique(one)) >= one.size - 2


def test_the_deviation_of_a_release_does_not_depend_on_the_data():
    """Deviations come from public settings alone: any two streams see the same ones."""
    private = pigd(RIDGED, BUDGET, 10)
    runs = [private.run(private.start(), np.full((10, 2), value), np.ones(10))[1] for value in (0.0, 9.0)]
    assert [r.noise_sd for r in runs[0]] == [r.noise_sd for r in runs[1]]
