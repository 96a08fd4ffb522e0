"""Follow the leader on private sums with several classes: one charge, and one noise, for all columns of labels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import chi2

from taciturn import QFTL, L2Ball, OneHot, Privacy, Problem, Squared, pqftl
from taciturn.kernel.problem.multiclass import ScoresLoss
from taciturn.kernel.problem.svec import packed
from taciturn.methods.readings import paper_noise

NOWHERE = np.zeros(0)
CLASSES = [2, 3, 7]


def problem(K: int = 3, R: float = 1.0, **settings) -> Problem:
    return Problem(OneHot(K), settings.pop("domain", L2Ball(1.0)), 2, R, **settings)


def contribution(learner: QFTL, features, label: float) -> np.ndarray:
    """What one example adds to the statistic."""
    V, y = learner.problem.clip([features], [label])
    return learner.statistic(learner.absorb(learner.start(), 0, V, y, NOWHERE), 1)[1]


# The sensitivity.


def search(learner: QFTL, starts: int = 3) -> float:
    """The largest share of the certificate that a pair uses, of one class or of two, climbing from long vectors."""
    rng, best, replaced = np.random.default_rng(1), 0.0, learner.problem.neighbours == "replace"
    for start in range(2 * starts):

        def nearness(raw: np.ndarray, other: int = start % 2) -> float:
            neighbour = contribution(learner, raw[2:], other) if replaced else 0.0
            return -float(np.linalg.norm(contribution(learner, raw[:2], 0) - neighbour))

        raw = 3.0 * learner.problem.feature_bound * rng.normal(size=4)
        best = max(best, -float(minimize(nearness, raw, method="Nelder-Mead", options={"maxfev": 100}).fun))
    return best / float(learner.certificate.at(1))


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("weight", [None, 0.4, 1.7, 9.0])
@pytest.mark.parametrize("R", [0.6, 2.0])
@pytest.mark.parametrize("K", CLASSES)
def test_the_joint_sensitivity_is_reached_and_not_passed(K, R, weight, neighbours):
    """To two thousandths, at the weight that is chosen and at others, on either side of `w·R_y = sqrt(2)·R`."""
    assert 0.998 < search(QFTL(problem(K, R, neighbours=neighbours), weight=weight)) <= 1.0


@pytest.mark.privacy
@pytest.mark.parametrize("weight", [0.8, 1.5, 4.0])
@pytest.mark.parametrize("K", CLASSES)
def test_two_examples_of_one_class_are_the_worst_pair(K, weight):
    """At the cosine `-min(1, w²R_y²/(2R²))`; two classes, whose labels are at `-1/K`, come nearer if K > 2."""
    R, squared_norm = 1.3, 1.0 - 1.0 / K
    learner, cosine = QFTL(problem(K, R), weight=weight), -min(1.0, weight**2 * squared_norm / (2.0 * R * R))
    pair = R * np.array([[1.0, 0.0], [cosine, math.sqrt(1.0 - cosine**2)]])
    same = np.linalg.norm(contribution(learner, pair[0], 1) - contribution(learner, pair[1], 1))
    assert 0.998 * float(learner.certificate.at(1)) < same <= float(learner.certificate.at(1))
    if K > 2:
        angles = np.linspace(0.0, math.pi, 400)
        others = [contribution(learner, (R * math.cos(a), R * math.sin(a)), 0) for a in angles]
        assert np.max(np.linalg.norm(np.array(others) - contribution(learner, pair[0], 1), axis=1)) < 0.998 * same


def reachable(K: int, R: float, intercept: float, w: float) -> float:
    """The largest distance there is with an intercept c, which keeps `v·v'` between `c² - R²` and `c² + R²`.

    It is `2N² + 2w²N·R_y² - 2x² - 2w²·x·(y·y')`, squared, with `N = R² + c²` and `x = v·v'`: longer examples are worse,
    as in two dimensions or more features can grow across each other. `y·y'` is R_y² in a class, and -1/K between two.
    """
    N, squared_norm, best = R * R + intercept**2, 1.0 - 1.0 / K, -math.inf
    for product in (squared_norm, -1.0 / K):
        x = min(max(-w * w * product / 2.0, intercept**2 - R * R), N)
        best = max(best, -2.0 * x * x - 2.0 * w * w * x * product)
    return math.sqrt(2.0 * N * N + 2.0 * w * w * N * squared_norm + best)


@pytest.mark.privacy
@pytest.mark.parametrize("weight", [0.7, 2.0])
@pytest.mark.parametrize("intercept", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("K", CLASSES)
def test_an_intercept_is_part_of_the_sensitivity(K, intercept, weight):
    """No pair passes it; the worst there is, is found; and it is more than what would be certified without."""
    learner, worst = QFTL(problem(K, 0.8, intercept=intercept), weight=weight), reachable(K, 0.8, intercept, weight)
    certified, forgetful = (float(QFTL(p, weight=weight).certificate.at(1)) for p in (learner.problem, problem(K, 0.8)))
    assert 0.998 * worst < search(learner) * certified <= worst * (1.0 + 1e-6)
    assert worst * (1.0 - 1e-9) <= certified
    assert worst > 1.01 * forgetful


@pytest.mark.privacy
@pytest.mark.parametrize("K", CLASSES)
def test_all_classes_are_charged_once(K):
    """As one label of the length of a row of them is: K enters by `sqrt(1 - 1/K)` alone."""
    single = Problem(Squared(), L2Ball(1.0), 2, 1.4, math.sqrt(1.0 - 1.0 / K))
    for w in (0.3, 1.0, 5.0):
        columns, one = (float(QFTL(p, weight=w).certificate.at(1)) for p in (problem(K, 1.4), single))
        assert columns == pytest.approx(one, rel=1e-6)
    assert QFTL(problem(K)).certificate.kind == "l2/entry"
    assert paper_noise(QFTL(problem(K))) is None


def largest_entry(self: OneHot) -> float:
    return 1.0 - 1.0 / self.classes


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("name", "fault"),
    [("target_norm", property(largest_entry)), ("targets", ScoresLoss.targets)],
    ids=["one column for the row", "labels that are not centred"],
)
def test_a_wrong_length_of_labels_is_caught(name, fault, monkeypatch):
    """By the search that finds nothing in the right ones."""
    monkeypatch.setattr(OneHot, name, fault)
    monkeypatch.setattr(QFTL, "_magnitude", 9.0)
    assert search(QFTL(problem(3), weight=3.0)) > 1.2


@pytest.mark.privacy
def test_a_lesser_sensitivity_is_caught(monkeypatch):
    """The wrong relation."""
    monkeypatch.setattr(QFTL, "_moved", lambda self, w: math.hypot(1.0, w * self.problem.loss.target_norm))
    assert search(QFTL(problem(3), weight=1.0)) > 1.2


@pytest.mark.privacy
@settings(max_examples=60)
@given(features=arrays(np.float64, 2, elements=st.floats(-5.0, 5.0)), label=st.integers(0, 3), w=st.floats(0.1, 9.0))
def test_a_contribution_is_what_it_says(features, label, w):
    """`(svec(v vᵀ), w·y vᵀ)`, a row for each class, to the 12 bits or more that features and labels are rounded to."""
    learner, close = QFTL(problem(4, 1.5), weight=w), 2.0**-10 * 1.5 * max(1.5, w)
    v = learner.problem.clip([features], [label])[0][0]
    result = contribution(learner, features, label)
    labels = np.where(np.arange(4) == label, 0.75, -0.25)
    assert result[:3] == pytest.approx(packed(np.outer(v, v)), abs=close)
    assert result[3:].reshape(4, 2) == pytest.approx(w * np.array([each * v for each in labels]), abs=close)
    assert np.max(np.abs(result)) <= learner.certificate.magnitude * (1.0 + 1e-7)
    assert len(result) == learner.statistic_size == 11


@pytest.mark.privacy
def test_a_zeroed_row_adds_nothing():
    """Whatever was wrong with it."""
    learner = QFTL(problem(on_bad="zero", intercept=1.0))
    for features, label in (((math.nan, 0.0), 1), ((0.3, 0.4), 3), ((0.3, 0.4), 0.5), ((0.3, 0.4), math.nan)):
        assert not contribution(learner, features, label).any()


def uneven(noise: np.ndarray, sd: float) -> bool:
    """Whether some column of noise has another standard deviation; wrongly so once in 10⁷ times."""
    squares, share = np.sum((noise / sd) ** 2, axis=0), 1e-7 / (2.0 * noise.shape[1])
    return bool(np.any(squares < chi2.ppf(share, len(noise))) or np.any(squares > chi2.isf(share, len(noise))))


@pytest.mark.privacy
def test_every_column_of_labels_is_noised():
    """By the stated standard deviation; a column that gets none, or a class's share of it, would be seen (seeded)."""
    private = pqftl(problem(4), Privacy(1.0, 1e-6), 1, seed=0)
    drawn = [replace(private, seed=seed).fit(np.zeros((1, 2)), [0]) for seed in range(60)]
    exact = contribution(private.learner, (0.0, 0.0), 0)
    noise, sd = np.array([release.noisy - exact for release in drawn]), drawn[0].noise_sd
    assert noise.shape == (60, private.learner.statistic_size)
    assert not uneven(noise, sd)
    for share in (0.0, 1.0 / math.sqrt(4.0)):
        faulty = noise.copy()
        faulty[:, -2:] *= share
        assert uneven(faulty, sd)
