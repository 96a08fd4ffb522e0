"""A value's number and text depend on that value alone, and are the same in every format."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.contract.values import PlainValues, number_of, text_of
from taciturn.readers.arrow import ArrowValues

TEXTS = st.one_of(
    st.text(max_size=6),
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["1_0", "inf", "NaN", "0x1", " 1 ", "+1", "1.", ".5", "1e400", "\u0661", "1\n", "", "-0"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)


@pytest.mark.parametrize("text", ["1", "+1.5", "-.5", "2.", "1e3", "1E-3", " 7\t", "0" * 50])
def test_decimals_are_numbers(text):
    assert number_of(text) == float(text)


@pytest.mark.parametrize(
    "value",
    ["", " ", "inf", "-Infinity", "nan", "1_000", "0x1F", "1,5", "\u0661", "1e999", "abc", "1 2", "e", True, None, "-"],
)
def test_nothing_else_is(value):
    assert math.isnan(number_of(value))


def test_too_many_digits_are_no_number():
    assert math.isnan(number_of(10**400))


@given(st.lists(SCALARS))
def test_a_block_is_its_values_one_after_the_other(values):
    """Shortcuts for whole columns change nothing: 1, 1.0, True and "1" may meet in one of JSON's."""
    block = PlainValues(values)
    assert np.array_equal(block.numbers(), [number_of(value) for value in values], equal_nan=True)
    codes, texts = block.texts()
    assert [texts[code] for code in codes] == [text_of(value) for value in values]
    assert block.missing().tolist() == [text_of(value) is None for value in values]


@given(
    st.one_of(
        st.lists(st.one_of(st.none(), TEXTS)).map(lambda v: (v, pa.string())),
        st.lists(st.one_of(st.none(), TEXTS)).map(lambda v: (v, pa.large_string())),
        st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))).map(lambda v: (v, pa.int64())),
        st.lists(st.one_of(st.none(), st.floats())).map(lambda v: (v, pa.float64())),
        st.lists(st.one_of(st.none(), st.booleans())).map(lambda v: (v, pa.bool_())),
    )
)
def test_arrow_s_columns_are_the_same(case):
    values, kind = case
    for column in (pa.array(values, kind), pa.chunked_array([pa.array(values, kind)])):
        fast, slow = ArrowValues(column), PlainValues(values)
        assert np.array_equal(fast.numbers(), slow.numbers(), equal_nan=True)
        assert np.array_equal(fast.missing(), slow.missing())
        (codes, texts), (slow_codes, slow_texts) = fast.texts(), slow.texts()
        assert [texts[code] for code in codes] == [slow_texts[code] for code in slow_codes]


def test_a_dictionary_of_arrow_s_is_read_by_its_values():
    column = pa.array(["1", None, "x", "1"]).dictionary_encode()
    assert np.array_equal(ArrowValues(column).numbers(), [1.0, np.nan, np.nan, 1.0], equal_nan=True)
    assert ArrowValues(column).value(2) == "x"


def test_bytes_that_are_no_text_touch_no_other_value():
    broken = pa.array([b"ok", b"\xff"]).view(pa.string())
    codes, texts = ArrowValues(broken).texts()
    assert [texts[code] for code in codes] == ["ok", "\ufffd"]
