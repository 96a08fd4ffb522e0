"""Audits from samples: true claims hold, and two published scripts are refuted."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import Privacy
from taciturn.audit import audit_script, distinguish_samples

PURE = Privacy(1.0, 1e-6)


@pytest.mark.privacy
@pytest.mark.parametrize("script", ["reused_noise", "laplace_tree"])
def test_the_scripts_are_refuted(script):
    """By far: with half of the error, too."""
    finding = audit_script(script, PURE)
    assert finding.verdict == "refuted"
    assert finding.epsilon > 1.3


@pytest.mark.privacy
def test_enough_laplace_noise_is_not_refuted():
    """The tree with a scale for its sensitivity: ten times as much noise."""
    assert audit_script("laplace_tree", Privacy(0.1, 1e-6), trials=4_000).epsilon < 1.0


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_true_claim_holds_and_a_halved_one_does_not(epsilon):
    def sample(world, trials, seed):
        return np.random.default_rng(seed).laplace(1.0 - world, 1.0 / epsilon, (trials, 1))

    def score(rows):
        return rows[:, 0]

    assert distinguish_samples(sample, score, Privacy(epsilon, 1e-9), 40_000).verdict == "holds"
    assert distinguish_samples(sample, score, Privacy(epsilon / 2.0, 1e-9), 40_000).verdict == "refuted"
