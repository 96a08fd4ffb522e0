"""What values become: within [-1, 1], by that value alone, and no row longer than the root of the number of columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput
from taciturn.contract.columns import Categories, Hashed, Ignored, Range, check_values
from taciturn.contract.toml import column_of
from taciturn.contract.values import PlainValues

KINDS = [Range("x", -3.0, 7.0), Categories("x", ("a", "b")), Categories("x", (1, 2.5)), Hashed("x", 3)]
VALUES = st.one_of(st.none(), st.text(max_size=4), st.floats().map(repr), st.sampled_from(["a", "1", "1.0", "2.5"]))


def encode(column, values):
    out = np.zeros((len(values), column.width))
    return out, column.encode(PlainValues(values), out)


@pytest.mark.parametrize("column", KINDS, ids=repr)
@given(values=st.lists(VALUES, min_size=1), place=st.integers(0), other=VALUES)
def test_a_value_changes_its_own_row_alone(column, values, place, other):
    place %= len(values)
    changed = [*values[:place], other, *values[place + 1 :]]
    rest = np.arange(len(values)) != place
    (out, bad), (changed_out, changed_bad) = encode(column, values), encode(column, changed)
    assert np.array_equal(out[rest], changed_out[rest])
    assert np.array_equal(bad[rest], changed_bad[rest])


@pytest.mark.parametrize("column", KINDS, ids=repr)
@given(values=st.lists(VALUES, min_size=1))
def test_a_column_adds_at_most_one_to_the_square_of_a_row(column, values):
    out, bad = encode(column, values)
    assert out.shape == (len(values), column.width) == (len(values), len(column.names))
    assert ((out**2).sum(axis=1) <= 1.0).all()
    assert [column.error(value) is not None for value in values] == bad.tolist()


def test_ranges_are_scaled_and_cut():
    out, bad = encode(Range("x", 10.0, 20.0), ["10", "12.5", "20", "-1e300", "1e300", "?", None])
    assert out.ravel().tolist() == [-1.0, -0.5, 1.0, -1.0, 1.0, 0.0, 0.0]
    assert bad.tolist() == [False] * 5 + [True] * 2


@given(st.floats(-1e60, 1e60), st.floats(-1e60, 1e60), st.floats(allow_nan=False, allow_infinity=False))
def test_no_range_leads_outside(low, high, value):
    try:
        column = Range("x", low, high)
    except InvalidInput:
        return
    out, _ = encode(column, [repr(value)])
    assert -1.0 <= out[0, 0] <= 1.0


def test_numbers_are_matched_as_numbers_and_texts_as_texts():
    assert encode(Categories("x", (1, 7)), ["1.0", "07", "7e0", "1a"])[0].tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]
    assert encode(Categories("x", ("1", "7")), ["1.0", " 7 "])[0].tolist() == [[0, 0], [0, 1]]


def test_hashes_are_the_same_for_ever():
    """A model that was learnt last year still knows where its features are."""
    assert [Hashed("ip", 256).place(text) for text in ("10.0.0.1", "", "Ø")] == [(241, 1.0), (223, -1.0), (29, -1.0)]
    assert Hashed("ip", 2).place("10.0.0.1") != Hashed("pi", 2).place("10.0.0.1")


def test_hashes_spread_over_all_places_and_both_signs():
    placed = [Hashed("ip", 8).place(str(i)) for i in range(1_000)]
    assert {place for place, _ in placed} == set(range(8))
    assert abs(sum(sign for _, sign in placed)) < 160  # five sigma, of hashes that never change


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"range": [1, 1]}, "columns.x.range must be two finite numbers"),
        ({"range": [2, 1]}, "the lower first"),
        ({"range": [0, float("inf")]}, "finite"),
        ({"range": [0]}, "columns.x.range must be two numbers"),
        ({"range": ["0", "1"]}, "must be two numbers"),
        ({"range": [True, 2]}, "must be two numbers"),
        ({"categories": []}, "must list numbers or texts"),
        ({"categories": [1, "a"]}, "must list numbers or texts"),
        ({"categories": [True]}, "must list numbers or texts"),
        ({"categories": "ab"}, "must be a list"),
        ({"categories": ["a", "a "]}, "twice"),
        ({"categories": [1, 1.0]}, "twice"),
        ({"categories": ["a", " "]}, "empty"),
        ({"hash": 0}, "columns.x.hash must be an integer"),
        ({"hash": 2.5}, "an integer"),
        ({"hash": 2**21}, "at most 1,048,576"),
        ({"range": [0, 10**400]}, "must be two numbers"),
        ({"categories": [10**400]}, "must list numbers or texts"),
        ({"hash": "many"}, "must be a number"),
        ({"ignore": False}, "exactly one of"),
        ({}, "exactly one of"),
        ({"range": [0, 1], "hash": 4}, "exactly one of"),
        ({"rnage": [0, 1]}, "Did you mean range"),
        ({"range": [0, 1], "unit": "m"}, "columns.x.unit is unknown"),
        ("number", "columns.x must be a table, got 'number'"),
    ],
)
def test_other_declarations_are_rejected_by_name(declared, words):
    with pytest.raises(InvalidInput, match=words):
        column_of("x", declared)


def test_values_keep_their_kind():
    assert check_values("k", ["a ", "b"]) == ("a", "b")
    assert check_values("k", [1, 2.5]) == (1, 2.5)


def test_an_ignored_column_has_nothing():
    assert (Ignored("note").width, Ignored("note").names, Ignored("note").error("x")) == (0, (), None)
    with pytest.raises(InvalidInput, match="ignored"):
        Ignored("note").encode(PlainValues(["x"]), np.zeros((1, 0)))
