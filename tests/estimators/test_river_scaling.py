"""Scaling by public statements: the same for one row and for many, and blind to what came before."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("river")
pytest.importorskip("pandas")

import pandas as pd

from taciturn import InvalidInput
from taciturn.estimators.river import NormClip, PrivateLogisticRegression, PublicScaler

SCALER = PublicScaler({"a": (0, 10), "b": (-3.0, -1.0)})
ROWS = st.lists(st.fixed_dictionaries({"a": st.floats(), "b": st.floats(), "c": st.floats()}), min_size=1, max_size=4)


def test_ranges_go_to_minus_one_and_one_and_what_lies_outside_is_cut():
    assert SCALER.transform_one({"a": 0, "b": -1}) == {"a": -1.0, "b": 1.0}
    assert SCALER.transform_one({"a": 7.5, "b": -2.0}) == {"a": 0.5, "b": 0.0}
    assert SCALER.transform_one({"a": 1e9, "b": -math.inf}) == {"a": 1.0, "b": -1.0}
    assert SCALER.transform_one({"a": True, "c": 99, "d": "text"}) == {"a": -0.8, "b": 0.0, "c": 99, "d": "text"}


def test_texts_pass_to_be_rejected_by_the_learner():
    assert SCALER.transform_one({"a": "5", "b": -1}) == {"a": "5", "b": 1.0}
    assert SCALER.transform_one({"a": 10**400, "b": "?"}) == {"a": 10**400, "b": "?"}


MISSING = [{}, {"a": None}, {"a": math.nan}, {"a": ""}, {"a": np.float32("nan")}, {"a": pd.NA}, {"a": pd.NaT}]


@pytest.mark.parametrize("x", MISSING, ids=repr)
@pytest.mark.parametrize(("missing", "filled"), [("middle", 0.0), ("zero", -1.0), (2.5, -0.5), ("bad", math.nan)])
def test_missing_values_are_filled_as_declared(x, missing, filled):
    scaled = PublicScaler({"a": (0, 10)}, missing=missing).transform_one({**x, "b": None})
    assert scaled == pytest.approx({"a": filled, "b": None}, nan_ok=True)
    if missing != "bad":
        marked = PublicScaler({"a": (0, 10)}, missing=missing, indicator=True)
        assert marked.transform_one(x) == {"a": filled, "a (missing)": 1.0}
        assert marked.transform_one({"a": 5.0}) == {"a": 0.0, "a (missing)": 0.0}
        assert marked.transform_one({"a": "text"}) == {"a": "text", "a (missing)": 0.0}


def test_missing_values_are_those_of_scikit_learn():
    sklearn_scaling = pytest.importorskip("taciturn.estimators.scaling")
    rows = pd.DataFrame({"a": [1.0, math.nan, 11.0], "b": [math.nan, -2.5, -3.0], "c": [1.0, 2.0, 3.0]})
    for settings in (
        {},
        {"missing": "middle", "indicator": True},
        {"missing": -1.5},
        {"missing": -1.0, "indicator": True},
    ):
        ranges = {"a": (-5, 10), "b": (-3.0, -1.0)}
        theirs = sklearn_scaling.PublicScaler(ranges, **settings).set_output(transform="pandas").fit_transform(rows)
        ours = PublicScaler(ranges, **settings).transform_many(rows)
        pd.testing.assert_frame_equal(ours[list(theirs.columns)], theirs)
        assert set(ours.columns) == set(theirs.columns)


def test_a_model_behind_it_rejects_what_is_bad_and_learns_from_what_is_filled():
    for missing, learnt in (("bad", 0), ("middle", 1)):
        model = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, features=["a"])
        pipeline = PublicScaler({"a": (0, 10)}, missing=missing) | model
        if learnt:
            pipeline.learn_one({}, True)
        else:
            with pytest.raises(
                InvalidInput, match=r"'a' of this example is not a finite number\..*Declare what a missing"
            ):
                pipeline.learn_one({}, True)
        assert model.n_examples == learnt


@pytest.mark.parametrize(
    "transformer",
    [
        SCALER,
        PublicScaler({"a": (0, 10), "z": (0, 1), "c": (-9, 9)}, missing="zero", indicator=True),
        PublicScaler({"a": (0, 10), "z": (0, 1)}, missing="bad"),
        NormClip(2.0),
        NormClip(1e-3),
    ],
)
@given(rows=ROWS)
def test_many_rows_are_transformed_as_one(transformer, rows):
    X = pd.DataFrame(rows, index=range(5, 5 + len(rows)))
    many, one = transformer.transform_many(X), [transformer.transform_one(x) for x in rows]
    assert list(many.index) == list(X.index)
    np.testing.assert_array_equal(many, pd.DataFrame(one))
    pd.testing.assert_frame_equal(X, pd.DataFrame(rows, index=X.index))  # left as it was


@pytest.mark.privacy
@pytest.mark.parametrize("transformer", [SCALER, NormClip(2.0)])
def test_a_text_in_one_row_changes_no_other(transformer):
    """A frame has one type a column, so a text in it changes which way all rows go."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)) * 5.0, columns=["a", "b"])
    with_text = X.astype(object)
    with_text.loc[7, "a"] = "many"
    rest = X.index != 7
    found = [np.array(transformer.transform_many(frame)[rest], dtype=np.float64) for frame in (X, with_text)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("transformer", [SCALER, NormClip(2.0)])
def test_frames_of_texts_and_gaps_are_transformed_row_by_row(transformer):
    X = pd.DataFrame({"a": [5, None], "b": [-1.0, -2.0], "d": ["x", "y"]}, dtype=object)
    expected = pd.DataFrame([transformer.transform_one(x) for x in X.to_dict("records")])
    assert transformer.transform_many(X).notna().all(axis=None) == (transformer is SCALER)
    pd.testing.assert_frame_equal(transformer.transform_many(X), expected)
    assert list(transformer.transform_many(X.iloc[:0]).columns) == ["a", "b", "d"]


@given(st.dictionaries(st.sampled_from("abcdef"), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_clipped_example_is_no_longer_than_its_bound_and_points_as_before(x):
    clipped = NormClip(2.0).transform_one(x)
    assert math.hypot(*clipped.values()) <= 2.0 * (1.0 + 1e-12)
    if math.hypot(*x.values()) <= 2.0:
        assert clipped == x
    else:
        largest = max(x, key=lambda name: abs(x[name]))
        assert all(
            math.isclose(clipped[name] / clipped[largest], x[name] / x[largest], rel_tol=1e-9, abs_tol=1e-300)
            for name in x
        )


def test_texts_are_not_counted_and_bad_examples_pass():
    assert NormClip(2.5).transform_one({"a": 3, "b": 4.0, "city": "Rome"}) == {"a": 1.5, "b": 2.0, "city": "Rome"}
    for bad in ({"a": math.inf, "b": 9.0}, {"a": None, "b": 9.0}, {"a": 10**400}):
        assert NormClip(1.0).transform_one(bad) == bad
    assert NormClip(1.0).transform_one({}) == {}


def test_nothing_is_learnt():
    before = SCALER.transform_one({"a": 3.0})
    SCALER.learn_one({"a": 1e6})
    SCALER.learn_many(pd.DataFrame({"a": [1e6]}))
    assert SCALER.transform_one({"a": 3.0}) == before


@pytest.mark.parametrize("ranges", [{"a": (1, 1)}, {"a": (2, 1)}, {"a": (0, math.inf)}, {"a": 3}, {"a": (0, 1, 2)}])
def test_a_range_is_two_numbers(ranges):
    with pytest.raises(InvalidInput, match="the range of 'a'"):
        PublicScaler(ranges)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"missing": 11}, "must be a number from 0 to 10"),
        ({"missing": "mean"}, "missing must be"),
        ({"missing": "bad", "indicator": True}, "always be 0"),
        ({"indicator": 1}, "true or false"),
    ],
)
def test_wrong_words_for_missing_values_are_rejected(settings, words):
    with pytest.raises(InvalidInput, match=words):
        PublicScaler({"a": (0, 10)}, **settings)


def test_wrong_settings_are_refused():
    with pytest.raises(InvalidInput, match="ranges cannot be"):
        PublicScaler([("a", 0, 1)])
    with pytest.raises(InvalidInput, match="bound must be positive"):
        NormClip(0.0)
