"""The best point of each beginning of a stream is the one that is found for it alone."""

import numpy as np
import pytest

from taciturn import L2Ball, Logistic, Problem, Squared
from taciturn.datasets import ad_impressions, linear_regression
from taciturn.regret import best_in_hindsight, prefix_leaders, prefix_minima, replay

ROUNDS = np.array([1, 2, 7, 40, 150])


@pytest.mark.parametrize("radius", [2.0, 0.2])  # the set inactive, and active from the first round on
def test_prefixes_are_solved_as_if_they_were_the_whole_stream(radius):
    problem = Problem(Squared(), L2Ball(radius), 4, label_bound=1.0, ridge=0.1)
    stream = linear_regression(150, 4, seed=2)
    _same(problem, stream)


def test_other_losses_too():
    _same(Problem(Logistic(), L2Ball(1.0), 15, ridge=0.1), ad_impressions(150, seed=1))


def _same(problem, stream):
    leaders, minima = (f(problem, stream.X, stream.y, ROUNDS) for f in (prefix_leaders, prefix_minima))
    for t, leader, least in zip(ROUNDS, leaders, minima, strict=True):
        best = best_in_hindsight(problem, stream.X[:t], stream.y[:t])
        np.testing.assert_allclose(leader, best.point, atol=1e-6)
        assert least == pytest.approx(best.average, abs=1e-11)


def test_average_regrets_are_those_of_every_beginning():
    """At each t what `average_regret` says of the first t rounds; a best point of the whole stream would not do."""
    problem = Problem(Squared(), L2Ball(2.0), 4, label_bound=1.0, ridge=0.1)
    stream = linear_regression(150, 4, seed=3)
    minima = prefix_minima(problem, stream.X, stream.y, ROUNDS)
    found = replay(problem, [], stream.X, stream.y).average_regrets(ROUNDS, minima)
    for t, regret in zip(ROUNDS, found, strict=True):
        X, y = stream.X[:t], stream.y[:t]
        alone = replay(problem, [], X, y).average_regret(best_in_hindsight(problem, X, y))
        assert regret == pytest.approx(alone, abs=1e-11)
    whole = best_in_hindsight(problem, stream.X, stream.y).average
    assert found[0] > replay(problem, [], stream.X[:1], stream.y[:1]).losses[0] - whole + 1e-4
