"""What stages find: quantiles of columns of many kinds, and the map that follows; what they reject."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from taciturn import BLT, FTRL, InvalidInput, L2Ball, Logistic, Privacy, Problem, Squared, at, every
from taciturn.kernel.problem.features import Chain, FeatureMap
from taciturn.methods.staged import Staged
from taciturn.methods.stages import GRID, Moments, Ranges, Scales, with_standardised
from taciturn.plan import recommend
from taciturn.tables.column_maps import LinearMap, Standardise
from taciturn.tables.random_features import RandomFeatures

ROWS = 2_000
PROBLEM = Problem(Logistic(), L2Ball(2.0), 9, feature_bound=1.5)


def columns(rows, seed=0):
    """Columns of many kinds, by names."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(5.0, 2.0, rows)
    return {
        "normal": normal,
        "lognormal": rng.lognormal(10.0, 1.0, rows),
        "constant": np.full(rows, 42.0),
        "0 or 1": (rng.random(rows) < 0.3).astype(float),
        "years": rng.integers(2008, 2019, rows).astype(float),
        "timestamps": rng.uniform(1.5e9, 1.7e9, rows),
        "heavy tails": rng.standard_cauchy(rows),
        "missing": np.where(rng.random(rows) < 0.4, np.nan, normal),
        "tiny": rng.normal(0.0, 1e-4, rows),
    }


@pytest.fixture(scope="module")
def found():
    """The map that three stages of 2,000 rows find at epsilon 1 for nine columns, and the rows."""
    stages = (Ranges(ROWS), Scales(ROWS), Scales(ROWS))
    private = Staged(
        FTRL(with_standardised(PROBLEM)), BLT(), every(100), Privacy(1.0, 1e-6), 4 * ROWS, stages=stages, seed=4
    )
    data = columns(4 * ROWS)
    X = np.column_stack(list(data.values()))
    state, _ = private.run(private.start(), X, np.ones(len(X)))
    return dict(zip(data, zip(*_center_scale(private.problem_at(state)), strict=True), strict=True)), data


def _center_scale(problem):
    return problem.features.center, problem.features.scale


@pytest.mark.parametrize(
    ("name", "center", "scale"),
    [("normal", 5.0, 2.0), ("missing", 5.0, 2.0), ("years", 2013.0, 3.2), ("timestamps", 1.6e9, 0.58e8)],
)
def test_center_and_scale_are_found(found, name, center, scale):
    """To a third of a scale, and a factor of 1.6, at epsilon 1 for nine columns."""
    got, width = found[0][name]
    assert abs(got - center) < scale / 3.0
    assert scale / 1.6 < width < scale * 1.6


@pytest.mark.parametrize("name", list(columns(1)))
def test_standardised_values_are_neither_clipped_nor_tiny(found, name):
    """Of every kind of column, nine values in ten lie within the limit, and those that vary are spread."""
    made, data = found
    center, scale = made[name]
    Z = (data[name][~np.isnan(data[name])] - center) / scale
    assert np.mean(np.abs(Z) < 3.0) > 0.85
    if name not in ("constant", "tiny"):
        low, high = np.quantile(Z, [0.1, 0.9])
        assert 0.3 < high - low < 6.0


def test_values_beyond_the_grid_are_clipped_to_its_ends():
    """2⁴⁰ is the largest edge; finer than 2⁻²⁰ is not looked at."""
    assert GRID[0] == -(2.0**40)
    assert (np.diff(GRID) > 0.0).all()
    learner = Ranges(10).learner(with_standardised(replace(PROBLEM, dimension=1)), ())
    V, y = learner.problem.clip(np.full((2_000, 1), 1e300), np.ones(2_000))
    exact = learner.absorb(learner.start(), 0, V, y, np.zeros(0))
    low, high, _, _ = learner.decide(2_000, learner.statistic(exact, 2_000)[1], 1e-3)
    assert (low, high) == (2.0**40, 2.0**40 * 1.5)


@pytest.mark.parametrize("level", [0.02, 0.3])
@pytest.mark.parametrize("value", [-(2.0**41), -1.0, 0.0, 2.0**-21, 1.7e9, 2.0**41])
def test_narrow_ranges_still_have_bins_and_scales(value, level):
    """Whatever two equal quantiles were found: edges increase and scales are positive."""
    point = np.array([value, np.nextafter(value, np.inf), level, 0.0])
    problem = with_standardised(replace(PROBLEM, dimension=1))
    for stages in (1, 2):
        learner = Scales(10).learner(problem, (point,) * stages)
        assert (np.diff(learner.bins.edges) > 0.0).all()
    after = Scales(10).after(problem, point).features
    assert np.isfinite(after(np.array([[value]]))).all()


def test_labels_in_units_of_their_scale():
    """The last column is theirs."""
    problem = with_standardised(Problem(Squared(), L2Ball(1.0), 1, label_bound=3.0))
    after = Scales(10, labels=True).after(problem, np.array([-1.0, 10.0, 1.0, 30.0, 0.1, 0.1, 0.0, 0.0]))
    assert (after.label_center, after.features.center.tolist()) == (20.0, [0.0])
    assert after.label_scale == pytest.approx(10.0 / 1.2816, rel=1e-4)


def test_the_certificates_do_not_depend_on_what_was_found():
    """Before and after, of every stage."""
    problem = with_standardised(Problem(Squared(), L2Ball(1.0), 2, label_bound=3.0))
    points = (np.array([0.0, -1e9, 5.0, 1.0, 1e9, 5.1] + [0.1] * 3 + [0.2, 0.0, 0.0]),) * 2
    for stage in (Ranges(9, labels=True), Scales(9, labels=True), Moments(9)):
        before, later = stage.learner(problem, ()), stage.learner(Scales(9, True).after(problem, points[0]), points)
        assert before.statistic_size == later.statistic_size
        assert before.certificate.at([1.0, 9.0]).tolist() == later.certificate.at([1.0, 9.0]).tolist()


@dataclass(frozen=True)
class Doubled(FeatureMap):
    """A map of the problem's own."""

    def width(self, dimension):
        return 2 * dimension

    def __call__(self, X):
        return np.hstack([X, X])


def test_maps_of_the_problem_follow_and_stay():
    """A standardising map is put first, in the place of one there; others, and what they learn from, stay."""
    own = Standardise(np.zeros(2), np.full(2, 5.0))
    first = with_standardised(replace(PROBLEM, dimension=2, features=Chain((Doubled(), LinearMap(np.eye(4))))))
    second = Scales(5).after(first, np.array([0.0, 0.0, 2.0, 2.0, 0.1, 0.1, 0.0, 0.0]))
    assert [type(each).__name__ for each in second.features.maps] == ["Standardise", "Doubled", "LinearMap"]
    assert second.features.maps[0].center.tolist() == [1.0, 1.0]
    kept = with_standardised(replace(PROBLEM, dimension=2, features=Chain((Doubled(), own))))
    assert kept.features.maps[1:] == (Doubled(), own)
    third = Moments(5).after(second, np.eye(4).ravel())
    assert third.features.width(2) == first.features.width(2) == 4


def test_what_has_no_range_is_rejected():
    """Before the stream begins."""
    with pytest.raises(InvalidInput, match="learns classes, which have no range"):
        Ranges(10, labels=True).learner(PROBLEM, ())
    for columns in ((9,), (-1,), (0, 0)):
        with pytest.raises(InvalidInput, match="columns must be different numbers below 9"):
            Scales(10, columns=columns).learner(PROBLEM, ())
    with pytest.raises(InvalidInput, match="classes, which have no range"):
        recommend(PROBLEM, Privacy(1.0, 1e-6), 20_000, schedule=at([500]), ranges="private", label_range="private")
    with pytest.raises(InvalidInput, match="rows"):
        Scales(0)


def test_some_columns_are_found_and_others_stay():
    """The bound on rows holds for all of them."""
    private = Staged(
        FTRL(with_standardised(replace(PROBLEM, dimension=2), Standardise(np.zeros(1), np.ones(1), columns=(1,)))),
        BLT(),
        at([50]),
        Privacy(8.0, 1e-6),
        850,
        seed=2,
        stages=(Ranges(400, columns=(1,)), Scales(400, columns=(1,))),
    )
    X = np.random.default_rng(3).normal([0.0, 100.0], [1.0, 5.0], (850, 2))
    state, _ = private.run(private.start(), X, np.ones(850))
    features = private.problem_at(state).features
    assert abs(float(features.center[0]) - 100.0) < 5.0
    assert features(X)[:, 0].tolist() == X[:, 0].tolist()


def test_the_range_of_labels_is_found_without_any_column():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, (4_000, 2))
    labels = 5_000.0 + 800.0 * rows[:, 0]
    problem = Problem(Squared(), L2Ball(9.0), dimension=2, label_bound=3.0, intercept=0.5)
    private = recommend(problem, Privacy(5.0, 1e-6), 4_000, label_range="private", seed=1).private
    state, releases = private.run(private.start(), rows, labels)
    predicted = private.problem_at(state).predict(releases.points[-1], rows)
    assert 1.0 - np.mean((predicted - labels) ** 2) / np.var(labels) > 0.5


def test_a_larger_budget_does_not_move_the_center_of_skewed_values():
    rng = np.random.default_rng(1)
    values = rng.lognormal(10.0, 1.0, (6_000, 1))
    for epsilon in (1.0, 20.0):
        problem = Problem(Logistic(), L2Ball(9.0), dimension=1)
        private = recommend(problem, Privacy(epsilon, 1e-6), 6_000, ranges="private", seed=1).private
        state, _ = private.run(private.start(), values, np.ones(6_000))
        center = private.problem_at(state).features.center[0]
        assert 0.8 * np.median(values) < center < 1.6 * np.median(values)


def test_a_column_without_a_spread_is_noticed_and_has_a_wider_limit():
    """A rare indicator, a constant, and a number; at epsilon = 8 no noise reaches the quartiles of 2,000 rows."""
    rng = np.random.default_rng(7)
    rows = 3 * ROWS
    X = np.column_stack([rng.random(rows) < 0.02, np.full(rows, 42.0), rng.normal(5.0, 2.0, rows)]).astype(float)
    for loss, limit in ((Logistic(), 5.0), (Squared(), 8.0)):
        problem = with_standardised(Problem(loss, L2Ball(2.0), 3, feature_bound=9.0, label_bound=1.0))
        stages = (Ranges(ROWS), Scales(ROWS))
        private = Staged(FTRL(problem), BLT(), every(100), Privacy(8.0, 1e-6), rows, stages=stages, seed=4)
        state, _ = private.run(private.start(), X, np.ones(rows))
        found = private.problem_at(state).features
        assert found.limit.tolist() == [limit, limit, 3.0]
        assert found(X)[X[:, 0] == 1.0, 0] == pytest.approx(limit)
        assert np.abs(found(X)[X[:, 0] == 0.0, 0]).max() < 1.0


@pytest.mark.parametrize(("outside", "limit"), [(0.5, 3.0), (0.14, 4.0), (0.01, 5.0)])
def test_the_limit_follows_from_the_mean_share_of_other_values(outside, limit):
    """Of all columns without a spread, and of no other."""
    point = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.25, 0.25, 0.25, outside, 0.0, outside])
    assert Scales(10).standardised(point, 5.0).limit == pytest.approx([limit, 3.0, limit], rel=0.01)


def test_scales_of_random_features_follow_from_which_columns_have_a_spread():
    """And not from how many columns there are; others of the chain stay, and a second stage begins anew."""
    waves = RandomFeatures(4, (0.5,) * 3, length=1.5)
    problem = with_standardised(replace(PROBLEM, dimension=3, features=waves))
    point = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.25, 0.25, 0.25, 0.0, 0.02, 0.0])
    once = Scales(10, waves=2.0).after(problem, point)
    assert once.features.maps[1] == replace(waves, scale=(1.41, 0.1, 1.41))
    assert Scales(10, waves=2.0).after(once, point).features.maps[1] == once.features.maps[1]
    assert Scales(10).after(problem, point).features.maps[1] == waves
    none = np.append(point[:9], np.full(3, 0.09))
    assert Scales(10, waves=2.0).after(problem, none).features.maps[1].scale == (0.1,) * 3
    with pytest.raises(InvalidInput, match="all columns"):
        Scales(10, columns=(0,), waves=2.0)
    with pytest.raises(InvalidInput, match="waves"):
        Scales(10, waves=-1.0)
