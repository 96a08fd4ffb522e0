"""Declared columns together: sparse as dense, errors without data, and a bound on the norm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput
from taciturn.columns.encoder import encoder_of
from taciturn.columns.kinds import Ignored
from taciturn.columns.values import PlainValues
from taciturn.contract.contract import contract_of

COLUMNS = {
    "age": {"range": [0, 100], "indicator": True},
    "income": {"range": "private"},
    "town": {"categories": ["Oslo", "Rome"], "missing": "bad"},
    "ip": {"hash": 8},
    "note": {"text": {"hash": 8}, "missing": "category"},
    "id": {"ignore": True},
}
VALUES = st.one_of(st.none(), st.sampled_from(["Oslo", "7", "a b", "b a a", "2e3"]), st.floats(allow_nan=True))


@given(st.lists(st.tuples(*[VALUES] * 5), min_size=1))
def test_sparse_rows_are_the_dense_ones(rows):
    encoder = encoder_of(COLUMNS)
    values = dict(zip(encoder.read_keys, map(PlainValues, zip(*rows, strict=True)), strict=True))
    dense, bad = encoder.encode(values, len(rows))
    sparse, bad_too = encoder.encode_sparse(values, len(rows))
    assert np.array_equal(sparse.toarray(), dense, equal_nan=True)
    assert np.array_equal(bad, bad_too)
    assert sparse.has_sorted_indices


def test_a_contract_has_the_same_bound_names_and_places():
    encoder = encoder_of(COLUMNS)
    for target, classes in (({"classes": ["no", "yes"]}, True), ({"range": [0, 1]}, False)):
        declared = {"privacy": {"epsilon": 1.0}, "target": {"column": "y", **target}, "columns": COLUMNS}
        contract = contract_of(declared)
        assert contract.feature_bound == encoder.feature_bound(classes)
        assert contract.feature_names == encoder.feature_names
        assert contract.found == encoder.found == (2,)
        assert contract.encoder == encoder
    assert isinstance(encoder.columns[-1], Ignored)


SECRET = "4711-secret"
GOOD = {"age": [1, 2], "income": [1, 2], "town": ["Oslo", "Rome"], "ip": ["a", "b"], "note": ["", "x"], "id": [1, 2]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": [1, SECRET]}, "row 1 has a value in column age that is not a number. Correct it; or make it None"),
        ({"town": ["Oslo", None]}, 'row 1 has no value in column town, which is declared with missing = "bad"'),
        ({"shoe": [1, 2]}, "column shoe is in the table but not declared. Declare it in columns=, for example as"),
    ],
)
def test_errors_name_the_column_and_no_value(changes, words):
    encoder = encoder_of(COLUMNS)
    with pytest.raises(InvalidInput, match=words) as error:
        encoder.features(GOOD | changes, known=True)
    assert SECRET not in str(error.value)


def test_a_column_that_is_missing_is_named():
    with pytest.raises(
        InvalidInput, match="column age is declared, and is missing from the table, which has Age, town"
    ):
        encoder_of({"age": {"range": [0, 1]}}).features({"Age": [1], "town": ["Oslo"]})


def test_predictions_take_other_columns_too():
    assert encoder_of({"age": {"range": [0, 2]}}).features({"age": [1], "shoe": [44]}).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["age"], "columns must be a dict with a declaration for each column.*got list"),
        ({}, "got an empty one"),
        ({"age": {"ignore": True}}, "no column is left"),
        ({"a": {"categories": ["b"]}, "a=b": {"range": [0, 1]}}, "two features have the same name"),
        ({"age": {"rnage": [0, 1]}}, "columns.age.rnage is unknown. Did you mean range?"),
        ({"age": {"range": (0, "1")}}, "columns.age.range must be two numbers"),
    ],
)
def test_other_declarations_are_rejected(columns, words):
    with pytest.raises(InvalidInput, match=words):
        encoder_of(columns)


def test_without_signs_nothing_is_negative():
    encoder = encoder_of({"ip": {"hash": 8}, "note": {"text": {"hash": 8}}, "age": {"bins": [0, 1, 2]}}).without_signs()
    rows = {"ip": list("abcdefgh"), "note": ["a b c d e f g h"] * 8, "age": [1] * 8}
    assert (encoder.features(rows).toarray() >= 0.0).all()
    with pytest.raises(InvalidInput, match="column age is scaled to both sides of 0"):
        encoder_of({"age": {"range": [0, 1]}}).without_signs()
