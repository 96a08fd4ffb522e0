"""Simulated streams keep the bounds they state and repeat from their seeds."""

import numpy as np
import pytest

from taciturn.datasets import ad_impressions, linear_regression


@pytest.mark.parametrize("make", [ad_impressions, linear_regression])
def test_streams_repeat_from_their_seed_and_keep_their_bounds(make):
    """Equal seeds, equal streams; rows and labels within the stated bounds."""
    first, again, other = make(2000, seed=4), make(2000, seed=4), make(2000, seed=5)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    assert np.linalg.norm(first.X, axis=1).max() <= first.feature_bound * (1 + 1e-12)
    assert np.abs(first.y).max() <= first.label_bound
    assert len(first) == 2000
    assert len(first.names) == first.X.shape[1]


def test_impressions_are_clicks_that_can_be_learnt():
    """A third are clicked, and matching ads far more often than others."""
    stream = ad_impressions(20_000, seed=0)
    match = stream.X[:, stream.names.index("match")] > 0
    clicked = stream.y > 0
    assert 0.25 < clicked.mean() < 0.4
    assert clicked[match].mean() > 0.8 > 0.2 > clicked[~match].mean()


def test_regression_is_the_paper_s():
    """Labels follow a linear model of norm 1 up to the noise."""
    stream = linear_regression(5000, dimension=6, noise=0.01, seed=2)
    solution, *_ = np.linalg.lstsq(stream.X, stream.y, rcond=None)
    assert np.linalg.norm(solution) == pytest.approx(1.0, abs=0.01)
    assert np.std(stream.y - stream.X @ solution) == pytest.approx(0.01, rel=0.1)
