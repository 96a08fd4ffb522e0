"""Means of released points: their weights, their cost and their guarantees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import (
    IGD,
    Absolute,
    Box,
    Gaussian,
    InvalidInput,
    L2Ball,
    Privacy,
    Private,
    Problem,
    Release,
    Releases,
    Squared,
    ewoo,
    experts,
    geometric,
    pftrl,
)
from taciturn.averages import average, late_average, late_averages, running_average
from taciturn.datasets import linear_regression
from taciturn.regret import best_in_hindsight, ftrl_regret_bound

BUDGET = Privacy(10.0, 1e-6)
RNG = np.random.default_rng(3)


def releases_at(rounds, points):
    return [
        Release(int(t), k, np.zeros(2), np.asarray(x), 1.0, True)
        for k, (t, x) in enumerate(zip(rounds, points, strict=True), start=1)
    ]


def round_by_round(releases, share=1.0, first=None, until=None):
    """The definition: write down the point of every round, take the last ones, add them up."""
    until = releases[-1].t + 1 if until is None else until
    points = []
    for t in range(1, until + 1):
        known = [release.point for release in releases if release.t < t]
        if known or first is not None:
            points.append(known[-1] if known else first)
    last = points[-math.ceil(share * len(points)) :]
    return np.mean(last, axis=0)


STREAMS = st.lists(st.integers(1, 30), min_size=1, max_size=8, unique=True).map(sorted)
SHARES = st.sampled_from([1.0, 0.75, 0.5, 0.1, 1e-6])


@settings(max_examples=150)
@given(rounds=STREAMS, share=SHARES, late=st.integers(-1, 9), begun=st.booleans(), seed=st.integers(0, 99))
def test_a_point_counts_for_the_rounds_it_was_played_in(rounds, share, late, begun, seed):
    """Against the points of all rounds, one by one; the running form is the average of every beginning."""
    rng = np.random.default_rng(seed)
    releases, first = releases_at(rounds, rng.normal(size=(len(rounds), 2))), rng.normal(size=2) if begun else None
    until = rounds[-1] + 1 + (late if begun or len(rounds) > 1 else abs(late))
    expected = round_by_round(releases, share, first, until)
    np.testing.assert_allclose(average(releases, share, first=first, until=until), expected, atol=1e-12)
    running = running_average(releases, share, first=first)
    expected = [round_by_round(releases[: k + 1], share, first) for k in range(len(releases))]
    np.testing.assert_allclose(running, expected, atol=1e-12)
    np.testing.assert_allclose(running[-1], average(releases, share, first=first), atol=1e-12)


def test_with_a_release_every_round_it_is_the_mean():
    """And the second half of ten is the mean of five; one release is its own average."""
    releases = releases_at(range(1, 11), np.random.default_rng(0).normal(size=(10, 2)))
    points = np.array([release.point for release in releases])
    assert average(releases) == pytest.approx(points.mean(axis=0))
    assert average(releases, share=0.5) == pytest.approx(points[5:].mean(axis=0))
    assert average(releases[:1]) == pytest.approx(points[0])
    assert average(releases, share=1e-9) == pytest.approx(points[-1])


def test_releases_of_any_algorithm_average_into_the_domain():
    """Sums, iterates and candidates; a mean of points of a convex set lies in it. The releases stay as they are."""
    rng = np.random.default_rng(1)
    problem = Problem(Absolute(), Box(-0.5, 1.0), dimension=2, label_bound=1.0, ridge=0.1)
    X, y = rng.normal(size=(60, 2)), rng.uniform(-1.0, 1.0, 60)
    for private in (
        pftrl(problem, BUDGET, 60, schedule=geometric(1.3), seed=1),
        Private(IGD(problem), Gaussian(), geometric(1.1), BUDGET, 60, seed=1),
    ):
        _, releases = private.run(private.start(), X, y)
        before = [release.point.copy() for release in releases]
        for mean in (average(releases), *running_average(releases, 0.5), average(releases, first=problem.first_point)):
            assert problem.domain.contains(mean)
        assert np.array_equal(before, [release.point for release in releases])
    choice = ewoo(experts(3), BUDGET, horizon=20, seed=1)
    _, releases = choice.run(choice.start(), rng.uniform(size=(20, 3)))
    assert average(releases).sum() == pytest.approx(1.0)  # shares of the experts


def test_the_mean_keeps_what_the_regret_promises():
    """The mean of x_1, …, x_T loses no more to the best point, on fresh examples, than the bound on regret over T.

    And no more than the points it is the mean of did, by Jensen: on the very same examples, without any chance.
    """
    problem, horizon = Problem(Squared(), L2Ball(0.5), dimension=4, label_bound=1.0, ridge=0.5), 1500
    stream = linear_regression(2 * horizon, 4, seed=2)
    fresh = problem.clip(stream.X[horizon:], stream.y[horizon:])
    private = pftrl(problem, BUDGET, horizon, seed=2)
    _, releases = private.run(private.start(), stream.X[:horizon], stream.y[:horizon])
    points = [problem.first_point, *(release.point for release in releases[:-1])]
    mean = average(releases, first=problem.first_point, until=horizon)
    assert mean == pytest.approx(np.mean(points, axis=0))
    least = best_in_hindsight(problem, *fresh).average
    excess, theirs = (np.mean([problem.values(x, *fresh) for x in some]) - least for some in ([mean], points))
    assert excess < theirs
    assert excess <= ftrl_regret_bound(private, failure=1e-9) / horizon


def test_invalid_arguments_are_rejected():
    """Nothing to average, no rounds to count, releases of more than one stream, an end before the last release."""
    releases = releases_at([1, 4], np.ones((2, 2)))
    for rejected, why in (
        (lambda: average([]), "Give one or more"),
        (lambda: running_average([]), "Give one or more"),
        (lambda: average(releases, share=0.0), "positive and at most 1"),
        (lambda: average(releases, share=1.5), "positive and at most 1"),
        (lambda: average(releases[::-1]), "oldest first"),
        (lambda: average(releases + releases), "oldest first"),
        (lambda: average(releases, until=3), "until must be an integer, 4 or more"),
        (lambda: average(releases[:1], until=1), "until must be an integer, 2 or more"),
    ):
        with pytest.raises(InvalidInput, match=why):
            rejected()


def all_of(rounds, points, first=1):
    points = np.array(points, dtype=np.float64)
    return Releases(np.array(rounds), first, points, points, np.ones(len(rounds)), True)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8, unique=True).map(sorted), st.sampled_from([0.0, 1.0, 3.0]))
def test_a_late_average_weighs_a_point_by_the_rounds_it_took(rounds, power):
    """The definition: the integral of `power + 1` times i^power over those rounds, all divided by their sum."""
    points = RNG.standard_normal((len(rounds), 2))
    ends = np.array([0, *rounds], dtype=np.float64) ** (power + 1.0)
    expected = (np.diff(ends)[:, None] * points).sum(axis=0) / ends[-1]
    assert late_average(all_of(rounds, points), power=power) == pytest.approx(expected)


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_late_average_does_not_depend_on_cuts(one, two):
    rounds, points = [1, 2, 5, 9, 11, 40], RNG.standard_normal((6, 3))
    first, second = sorted((one, two))
    mean, since = None, 0
    for part in (slice(0, first), slice(first, second), slice(second, 6)):
        mean = late_average(all_of(rounds[part], points[part].reshape(-1, 3), part.start + 1), mean, since)
        since = rounds[part][-1] if rounds[part] else since
    assert (mean == late_average(all_of(rounds, points))).all()


def test_half_of_a_late_average_is_on_the_last_sixth():
    points = [[0.0]] * 840 + [[1.0]] * 160
    assert late_average(all_of(range(1, 1001), points))[0] == pytest.approx(0.5, abs=0.01)


def test_a_late_average_leaves_what_it_was_given():
    mean = np.ones(2)
    late_average(all_of([5], [[3.0, 3.0]]), mean, since=4)
    assert (mean == 1.0).all()


def test_late_averages_are_late_average_after_each_release():
    """To the last bit, however many came before."""
    points = np.random.default_rng(5).normal(size=(9, 4))
    releases = Releases(np.arange(3, 30, 3), 1, points, points, np.ones(9), False)
    rows = late_averages(releases)
    for i in range(9):
        np.testing.assert_array_equal(rows[i], late_average(releases[: i + 1]))
    np.testing.assert_array_equal(late_averages(releases[4:], rows[3], 12), rows[4:])
