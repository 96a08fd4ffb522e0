"""Streams are played again as they were played."""

import numpy as np

from taciturn import IGD, L2Ball, Logistic, Problem, Release, Squared
from taciturn.datasets import ad_impressions
from taciturn.regret import best_in_hindsight, replay, replay_exact


def test_replay_plays_the_last_release_before_each_round():
    """Round t is played with the newest point released before it, the data-free point at first."""
    problem = Problem(Squared(), L2Ball(9.0), dimension=1, label_bound=9.0)
    shown = [Release(2, 1, *[np.array([p])] * 2, 0.0, simulated=True) for p in (1.0,)]
    shown.append(Release(3, 2, *[np.array([2.0])] * 2, 0.0, simulated=True))
    record = replay(problem, shown, [[1.0]] * 5, [0.0] * 5)
    np.testing.assert_allclose(record.losses, [0.0, 0.0, 0.5, 2.0, 2.0], atol=1e-11)


def test_an_exact_learner_is_a_sequence_of_releases():
    """Playing a learner's rows at once is playing them as releases after every example."""
    problem = Problem(Logistic(), L2Ball(1.0), dimension=15, ridge=0.1)
    stream, learner = ad_impressions(40, seed=0), IGD(problem)
    V, y = problem.clip(stream.X, stream.y)
    exact, shown = learner.start(), []
    for t in range(1, 40):
        exact = learner.absorb(exact, t - 1, V[t - 1 : t], y[t - 1 : t], problem.first_point)
        shown.append(Release(t, t, exact["x"], exact["x"], 0.0, simulated=True))
    one, other = replay_exact(learner, stream.X, stream.y), replay(problem, shown, stream.X, stream.y)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-13)
    assert one.accuracy == other.accuracy == np.mean(one.correct)
    best = best_in_hindsight(problem, stream.X, stream.y)
    assert one.average_regret(best) == np.mean(one.losses) - best.average + best.gap
