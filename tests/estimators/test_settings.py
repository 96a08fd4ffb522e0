"""What is stated becomes a plan by public rules; what must be stated is refused if it is not."""

from __future__ import annotations

import math

import pytest

from taciturn.errors import InvalidInput, Unprovable
from taciturn.estimators.settings import Settings
from taciturn.kernel.accounting.unit import Example, User
from taciturn.kernel.problem.losses import Absolute, Hinge, Huber, Logistic, Quantile, Squared
from taciturn.kernel.problem.multiclass import OneHot, Softmax
from taciturn.kernel.stream.schedule import every, geometric

CLASSES = Settings("logistic", epsilon=1.0, feature_bound=2.0, classes=2)
NUMBERS = Settings("squared", epsilon=1.0, feature_bound=2.0, label_bound=3.0)


def changed(request: Settings, **settings) -> Settings:
    return Settings(**(vars(request) | settings))


def test_naive_bayes_is_not_for_standardised_rows():
    with pytest.raises(InvalidInput, match="HashingVectorizer"):
        Settings("naive-bayes", epsilon=1.0, feature_bound="private", classes=2).plan(3, horizon=100_000)


def test_what_is_no_flag_is_rejected():
    with pytest.raises(InvalidInput, match="precondition"):
        Settings("logistic", precondition="yes")


@pytest.mark.parametrize(
    ("request_", "missing"),
    [
        (changed(CLASSES, epsilon=None), "epsilon"),
        (changed(CLASSES, delta=None), "delta"),
        (changed(CLASSES, feature_bound=None), "feature_bound"),
        (changed(NUMBERS, label_bound=None), "label_bound"),
    ],
)
def test_what_must_be_stated_is_refused_by_name_and_never_inferred(request_, missing):
    with pytest.raises(InvalidInput, match=rf"{missing} is missing\. State .*never inferred"):
        request_.plan(dimension=3, horizon=100)


@pytest.mark.parametrize(
    ("request_", "loss"),
    [
        (CLASSES, Logistic()),
        (changed(CLASSES, classes=4), Softmax(4)),
        (changed(CLASSES, method="pqftl"), Squared()),
        (changed(CLASSES, method="pqftl", classes=4), OneHot(4)),
        (changed(CLASSES, loss="hinge"), Hinge()),
        (NUMBERS, Squared()),
        (changed(NUMBERS, loss="absolute"), Absolute()),
        (changed(NUMBERS, loss="huber"), Huber(0.3)),
        (changed(NUMBERS, loss="huber", huber_width=0.5), Huber(0.5)),
        (changed(NUMBERS, loss="quantile", quantile=0.9), Quantile(0.9)),
    ],
)
def test_losses(request_, loss):
    assert request_.problem(dimension=3).loss == loss


def test_the_intercept_is_paid_for():
    """The bound that every certificate takes is that of features and constant together."""
    assert CLASSES.problem(3).norm_bound == pytest.approx(math.hypot(2.0, 1.0))
    assert changed(CLASSES, fit_intercept=False).problem(3).norm_bound == pytest.approx(2.0)


def test_radius_and_ridge_follow_from_bounds_alone():
    assert CLASSES.problem(3).radius == 20.0
    assert NUMBERS.problem(3).radius == 7.5
    assert changed(NUMBERS, loss="huber").problem(3).radius == 3.0
    assert changed(NUMBERS, radius=1.5).problem(3).radius == 1.5
    assert (CLASSES.problem(3).ridge, changed(CLASSES, method="igd").problem(3).ridge) == (0.0, 0.04)
    assert changed(CLASSES, method="giga", ridge=0.5).problem(3).ridge == 0.5


@pytest.mark.parametrize(
    ("method", "named"), [("auto", "pftrl"), ("ftrl", "pftrl"), ("igd", "pigd"), ("giga", "pgiga"), ("pqftl", "pqftl")]
)
def test_methods(method, named):
    plan = changed(CLASSES, method=method).plan(dimension=3, horizon=1000)
    assert plan.method == named
    assert plan.private.guarantee.holds


def test_auto_is_what_the_plan_recommends():
    assert NUMBERS.plan(dimension=3, horizon=1000).method == "pqftl"
    assert changed(NUMBERS, loss="huber").plan(dimension=3, horizon=1000).method == "pftrl"


@pytest.mark.parametrize(
    ("release", "schedule"), [("geometric", geometric(1.1)), ("every", every(1)), (7, every(7)), ("auto", None)]
)
def test_releases(release, schedule):
    assert changed(CLASSES, release=release).schedule == schedule


@pytest.mark.parametrize(
    ("settings", "refusal", "why"),
    [
        ({"method": "sgd"}, InvalidInput, "method must be one of"),
        ({"release": "often"}, InvalidInput, "release must be one of"),
        ({"release": 0}, InvalidInput, "release must be an integer"),
        ({"loss": "zero-one"}, InvalidInput, "loss must be one of"),
        ({"loss": "squared"}, InvalidInput, "squared learns numbers"),
        ({"feature_bound": -1.0}, InvalidInput, "feature_bound must be positive"),
        ({"radius": 0.0}, InvalidInput, "radius must be positive"),
        ({"epsilon": 0.0}, InvalidInput, "epsilon"),
    ],
)
def test_refusals(settings, refusal, why):
    with pytest.raises(refusal, match=why):
        changed(CLASSES, **settings).plan(dimension=3, horizon=100)


def test_statistics_of_squared_loss_learn_no_quantile():
    with pytest.raises(Unprovable, match="Use method='ftrl'"):
        changed(NUMBERS, loss="quantile", method="pqftl").plan(dimension=3, horizon=100)


@pytest.mark.parametrize("stated", [{"loss": "logistic", "classes": 2}, {"loss": "squared", "label_bound": 1.0}])
@pytest.mark.parametrize("method", ["auto", "ftrl", "pqftl"])
def test_a_horizon_that_is_too_long_is_rejected_in_the_words_of_the_front(stated, method):
    with pytest.raises(Unprovable, match=r"at most 67,108,864.*got 134,217,728\..*method='igd' or 'giga'"):
        Settings(epsilon=1.0, feature_bound=1.0, method=method, **stated).plan(3, 2**27)


def test_the_unit_of_privacy():
    assert CLASSES.unit == Example()
    assert changed(CLASSES, rows_per_user=4).unit == User(rows=4)
    bounds = {"rows_per_user": 4, "rows_per_release": 2, "apart": 3, "period": "month", "without_id": "own"}
    unit = changed(CLASSES, **bounds).unit
    assert unit == User(rows=4, per_release=2, apart=3, period="month", without_id="own")
    assert changed(CLASSES, rows_per_user=4).plan(dimension=3, horizon=100).private.unit == User(rows=4)


@pytest.mark.parametrize(
    "bound", [{"rows_per_release": 2}, {"apart": 2}, {"period": 100}, {"period": "week"}, {"without_id": "own"}]
)
def test_a_bound_on_the_rows_of_a_user_needs_their_number(bound):
    (name,) = bound
    with pytest.raises(InvalidInput, match=f"State rows_per_user=4 too, or leave {name} out"):
        changed(CLASSES, **bound).plan(dimension=3, horizon=100)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ({"rows_per_user": 0}, "rows_per_user must be an integer, 1 or more, got 0"),
        ({"rows_per_user": 2, "rows_per_release": 3}, "rows_per_release must be at most rows_per_user, 2, got 3"),
        ({"rows_per_user": 2, "apart": 0}, "apart must be an integer, 1 or more"),
        ({"rows_per_user": 2, "period": 0.5}, "period must be an integer, 1 or more"),
        ({"rows_per_user": 2, "period": "fortnight"}, "period must be one of"),
        ({"rows_per_user": 2, "without_id": "drop"}, "without_id must be one of"),
    ],
)
def test_bounds_that_are_none(bounds, why):
    with pytest.raises(InvalidInput, match=why):
        changed(CLASSES, **bounds).plan(dimension=3, horizon=100)
