"""Audits of the exponential mechanism: a true claim holds, and planted faults are detected."""

from __future__ import annotations

from functools import partial
from itertools import count

import numpy as np
import pytest

from audit.planted import Spoilt, exact_points
from taciturn import Exponential, InvalidInput, Privacy, Private, every, ewoo, experts
from taciturn.audit import adaptive_adversary, distinguish_adaptive_selections, distinguish_selections, tight_pair
from taciturn.kernel.accounting.gdp import mu_of
from taciturn.kernel.noise import needed
from taciturn.kernel.noise.sampling import seeded_bits
from taciturn.kernel.stream.loop import Definition
from taciturn.methods.exponential import FiniteRace

pytestmark = pytest.mark.privacy

T, BUDGET, TRIALS = 30, Privacy(1.0, 1e-6), 2_000


@pytest.fixture(autouse=True)
def _repeatable(monkeypatch):
    block = count()
    monkeypatch.setattr(needed, "secret_bits", lambda: seeded_bits(23, next(block)))


@pytest.fixture
def private():
    return ewoo(experts(2), BUDGET, T)


def test_a_true_claim_holds_and_is_nearly_reached(private):
    """The two worlds are distinguished nearly as well as the budget allows: zCDP is not tight here."""
    result = distinguish_selections(private, tight_pair(private), TRIALS)
    assert result.violations == ()
    assert 0.85 < result.mu / result.claimed_mu < 1.0
    assert result.interval[0] < result.mu < result.interval[1]


def test_flips_are_as_probable_as_the_rate_says(private):
    """`tanh(lam/2)`, lam the rate, for candidates that are one loss apart, now one ahead and now the other."""
    result = distinguish_selections(private, tight_pair(private), TRIALS)
    flips = result.shift / (2.0 * np.sqrt(T))
    assert flips == pytest.approx(np.tanh(private.calibrated.rate(1) / 2.0), rel=0.15)  # five standard deviations


def test_a_plain_epsilon_has_a_claim_too():
    """So few releases are charged by pure differential privacy, and the claim is the budget's own mu; it is not 0."""
    private = ewoo(experts(2), BUDGET, 2)
    assert private.guarantee.delivered.mu_squared == private.guarantee.delivered.rho == 0.0
    result = distinguish_selections(private, tight_pair(private), 100)
    assert result.claimed_mu == mu_of(1.0, 1e-6)
    assert result.violations == ()


def test_too_few_trials_say_so(private):
    """From 0 to far past the claim; twenty times as many say more."""
    assert distinguish_selections(private, tight_pair(private), 100).says_little
    assert not distinguish_selections(private, tight_pair(private), TRIALS).says_little


def test_an_adversary_gains_nothing(private):
    """Losses of the last winner: the entropy along the games is what was charged, and no more."""
    result = distinguish_adaptive_selections(private, tight_pair(private), adaptive_adversary(private), 100)
    assert result.violations == ()
    assert 0.98 < result.mu / result.claimed_mu <= 1.0
    assert 0.0 < result.interval[0] < result.mu <= result.interval[1] <= result.claimed_mu * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda noise: noise[[*[0] * 10, *range(10, len(noise))]], "extreme"),
        (lambda noise: noise[np.arange(len(noise)) // 10 * 10], "extreme"),
        (lambda noise: noise // 8, "distinguished"),
    ],
    ids=["ten share theirs", "tens share theirs", "an eighth"],
)
def test_faults_of_the_noise_of_selections_are_refuted(monkeypatch, fault, words):
    """At the default trials.

    If ten of 200 releases share their noise, 0.395 of all transcripts lie beyond a standard deviation
    instead of 0.288; 2,000 trials know that to 0.06 but for 1e-7.
    """
    private = ewoo(experts(2), BUDGET, 200)
    honest = FiniteRace.noise
    monkeypatch.setattr(FiniteRace, "noise", lambda self, *args: fault(honest(self, *args)))
    assert any(words in violation for violation in distinguish_selections(private, tight_pair(private)).violations)


def test_secret_releases_that_share_noise_are_refuted(private, monkeypatch):
    """Seeded ones do not."""
    honest = FiniteRace.noise

    def draw(self, seed, k, count):
        noise = honest(self, seed, k, count)
        return noise if seed is not None else noise[[0] * count]

    monkeypatch.setattr(FiniteRace, "noise", draw)
    result = distinguish_selections(private, tight_pair(private), TRIALS)
    assert any("on secret noise" in violation and "extreme" in violation for violation in result.violations)


def test_twice_the_rate_is_refuted(private):
    """A certificate of half the range."""
    learner = experts(2)
    right = learner.certificate
    learner.__dict__["certificate"] = type(right)(**{**vars(right), "bound": lambda t: right.at(t) / 2.0})
    wrong = Private(learner, Exponential(), every(1), BUDGET, T)
    assert any("distinguished" in c for c in distinguish_selections(wrong, tight_pair(wrong), TRIALS).violations)
    adaptive = distinguish_adaptive_selections(wrong, tight_pair(wrong), adaptive_adversary(wrong), 100)
    assert any("worlds differ" in violation for violation in adaptive.violations)


@pytest.mark.parametrize(
    ("fault", "only_secret", "words"),
    [("first_for_all", False, "extreme"), ("missing", False, "distinguished"), ("missing", True, "secret")],
)
def test_spoilt_noise_is_refuted(fault, only_secret, words):
    """Drawn once for all releases; missing; or missing from secret noise only."""
    spoilt = Private(experts(2), Spoilt(Exponential(), fault, only_secret), every(1), BUDGET, T)
    result = distinguish_selections(spoilt, tight_pair(spoilt), 300)
    assert any(words in violation for violation in result.violations)


def test_points_of_other_candidates_are_refuted(private, monkeypatch):
    """The best candidate is published together with the noisy winner."""
    monkeypatch.setattr(
        Definition, "__call__", exact_points(lambda rows: np.eye(2)[np.argmin(rows, axis=1)], Definition)
    )
    result = distinguish_selections(private, tight_pair(private), 100)
    assert "points do not follow from noisy statistics" in result.violations


ADAPTIVE = partial(distinguish_adaptive_selections, adversary=None)


@pytest.mark.parametrize("audit", [distinguish_selections, ADAPTIVE])
def test_more_than_two_candidates_are_rejected(audit):
    """With an error that says so."""
    private = ewoo(experts(3), BUDGET, T)
    with pytest.raises(InvalidInput, match="two candidates"):
        audit(private, tight_pair(ewoo(experts(2), BUDGET, T)))
