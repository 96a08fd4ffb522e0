"""Lengths of Gaussian vectors and norms of Gaussian matrices."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import chdtrc

from taciturn import InvalidInput
from taciturn.regret.tails import length_moments, longest, probability, strongest


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 100, 999, 1000, 20_001, 10**6, 10**9])
def test_moments_of_the_length(dimension):
    """Both agree with forty digits; from 1000 dimensions on the variance is rounded up, by less than 0.03 %."""
    with mpmath.workdps(40):
        half = mpmath.mpf(dimension) / 2
        ratio = mpmath.exp(mpmath.loggamma(half + 0.5) - mpmath.loggamma(half))
        exact = float(mpmath.sqrt(2) * ratio), float(dimension - 2 * ratio**2)
    mean, variance = length_moments(dimension)
    assert mean == pytest.approx(exact[0], rel=1e-11)
    assert math.sqrt(dimension - 0.5) * (1 - 1e-11) <= mean < math.sqrt(dimension)
    assert exact[1] * (1 - 1e-6) <= variance <= min(0.5, exact[1] * 1.0003)


@pytest.mark.parametrize("failure", [0.5, 1e-2, 1e-9])
@pytest.mark.parametrize("dimension", [1, 10, 1000])
def test_few_vectors_are_longer(dimension, failure):
    """The exact tail at the bound is at most `failure`; halfway back to the mean length it is more."""
    bound = longest(dimension, failure)
    assert chdtrc(dimension, bound**2) <= failure
    assert chdtrc(dimension, ((bound + math.sqrt(dimension)) / 2) ** 2) > failure / 10


def test_few_matrices_stretch_more():
    """200 matrices of 20 × 20 stay below a bound that one may pass with probability 1e-8, and above 0.7 of it."""
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((200, 20, 20))
    norms = np.linalg.norm(matrices, ord=2, axis=(1, 2))
    symmetric = np.linalg.norm((matrices + matrices.transpose(0, 2, 1)) / 2, ord=2, axis=(1, 2))
    assert 0.7 * strongest(20, 1e-8) < norms.max() <= strongest(20, 1e-8)
    assert (symmetric <= norms).all()


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_a_failure_is_a_probability(failure):
    """0 and 1 are no statements; the error says what to state."""
    with pytest.raises(InvalidInput, match=r"say 0\.05"):
        probability(failure)
