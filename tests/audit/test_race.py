"""Races are audited: the true one holds, planted faults are found."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from audit.planted import Spoilt
from tacit import Exponential, InvalidInput, Privacy, Private, every, ewoo, experts
from tacit.audit import race_along, race_apart, spiteful, tight_pair
from tacit.audit.race import scores
from tacit.mechanisms import releases
from tacit.mechanisms.sampling import seeded_bits

pytestmark = pytest.mark.privacy

T, BUDGET, TRIALS = 30, Privacy(1.0, 1e-6), 2_000


@pytest.fixture(autouse=True)
def _repeatable(monkeypatch):
    block = count()
    monkeypatch.setattr(releases, "secret_bits", lambda: seeded_bits(23, next(block)))


@pytest.fixture
def private():
    return ewoo(experts(2), BUDGET, T)


def test_a_true_race_holds_and_comes_near(private):
    """The two worlds are told apart nearly as well as the budget allows: zCDP is not the last word on a race."""
    found = race_apart(private, tight_pair(private), TRIALS)
    assert found.complaints == ()
    assert 0.85 < found.mu / found.claimed_mu < 1.0
    assert found.interval[0] < found.mu < found.interval[1]


def test_flips_are_as_probable_as_the_rate_says(private):
    """`tanh(lam/2)`, lam the rate, for candidates that are one loss apart, now one ahead and now the other."""
    found = race_apart(private, tight_pair(private), TRIALS)
    flips = found.shift / (2.0 * np.sqrt(T))
    assert flips == pytest.approx(np.tanh(private.calibrated.rate(1) / 2.0), rel=0.15)  # five deviations


def test_an_adversary_gains_nothing(private):
    """Losses of whoever won last: the entropy along the games is what was charged, and no more."""
    found = race_along(private, tight_pair(private), spiteful(private), 100)
    assert found.complaints == ()
    assert 0.98 < found.mu / found.claimed_mu <= 1.0


def test_the_compiled_race_is_the_definition(private):
    """Winners as this audit counts them are those that are released."""
    pair = tight_pair(private)
    X, _ = pair.world(0)
    for seed in range(3):
        seeded = ewoo(experts(2), BUDGET, T, seed=seed)
        encoded = scores(private, *pair.bounded(private, 0))
        winners = np.argmax(encoded + private.calibrated.noise(seed, 1, T), axis=1)
        assert (seeded.run(seeded.start(), X)[1].noisy[:, 0] == winners).all()


def test_twice_the_rate_is_refuted(private):
    """A certificate of half the range."""
    learner = experts(2)
    right = learner.certificate
    learner.__dict__["certificate"] = type(right)(**{**vars(right), "bound": lambda t: right.at(t) / 2.0})
    wrong = Private(learner, Exponential(), every(1), BUDGET, T)
    assert any("told apart" in c for c in race_apart(wrong, tight_pair(wrong), TRIALS).complaints)
    assert any("apart" in c for c in race_along(wrong, tight_pair(wrong), spiteful(wrong), 100).complaints)


@pytest.mark.parametrize(
    ("fault", "only_secret", "words"),
    [("first_for_all", False, "extreme"), ("missing", False, "told apart"), ("missing", True, "secret")],
)
def test_spoilt_noise_is_refuted(fault, only_secret, words):
    """Drawn once for all releases; missing; or missing where nobody can see it."""
    spoilt = Private(experts(2), Spoilt(Exponential(), fault, only_secret), every(1), BUDGET, T)
    found = race_apart(spoilt, tight_pair(spoilt), TRIALS)
    assert any(words in complaint for complaint in found.complaints)


@pytest.mark.parametrize("look", [race_apart, lambda *args: race_along(*args, adversary=None)])
def test_other_races_are_refused(look):
    """More than two candidates."""
    private = ewoo(experts(3), BUDGET, T)
    with pytest.raises(InvalidInput, match="two candidates"):
        look(private, tight_pair(ewoo(experts(2), BUDGET, T)))
