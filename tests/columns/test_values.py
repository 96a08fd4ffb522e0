"""A value's number and text depend on that value alone, and are the same in every format."""

import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.columns.values import (
    ArrayValues,
    PlainValues,
    Unreadable,
    number_of,
    text_of,
    time_of,
    unreadable_error,
    unreadable_rows,
)
from taciturn.readers.arrow import ArrowValues

TEXTS = st.one_of(
    st.text(max_size=6),
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["1_0", "inf", "NaN", "0x1", " 1 ", "+1", "1.", ".5", "1e400", "\u0661", "1\n", "", "-0"]),
)
DATETIMES = st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-5, minutes=30))]))
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
        st.lists(st.one_of(st.none(), st.datetimes())).map(lambda v: (v, pa.timestamp("us"))),
        st.lists(st.one_of(st.none(), st.dates())).map(lambda v: (v, pa.date32())),
        st.lists(st.one_of(st.none(), st.dates())).map(lambda v: (v, pa.date64())),
    )
)
def test_arrow_s_columns_are_the_same(case):
    values, kind = case
    for column in (pa.array(values, kind), pa.chunked_array([pa.array(values, kind)])):
        fast, slow = ArrowValues(column), PlainValues(values)
        assert np.array_equal(fast.numbers(), slow.numbers(), equal_nan=True)
        assert np.array_equal(fast.missing(), slow.missing())
        assert np.array_equal(fast.times(), slow.times(), equal_nan=True)
        (codes, texts), (slow_codes, slow_texts) = fast.texts(), slow.texts()
        assert [texts[code] for code in codes] == [slow_texts[code] for code in slow_codes]


@given(
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda v: np.array(v, dtype=np.int64)),
        st.lists(st.floats()).map(lambda v: np.array(v, dtype=np.float64)),
        st.lists(st.floats(width=32)).map(lambda v: np.array(v, dtype=np.float32)),
        st.lists(st.one_of(st.none(), st.datetimes())).map(lambda v: np.array(v, dtype="datetime64[us]")),
        st.lists(st.dates()).map(lambda v: np.array(v, dtype="datetime64[D]")),
    )
)
def test_arrays_are_the_same(array):
    """Also as a list of NumPy's own scalars, and value by value."""
    fast = ArrayValues(array)
    for slow in (PlainValues(fast.listed()), PlainValues(list(array))):
        assert np.array_equal(fast.numbers(), slow.numbers(), equal_nan=True)
        assert np.array_equal(fast.missing(), slow.missing())
        assert np.array_equal(fast.times(), slow.times(), equal_nan=True)
        (codes, texts), (slow_codes, slow_texts) = fast.texts(), slow.texts()
        if array.dtype.kind != "M" or slow.values != list(array):
            assert [texts[code] for code in codes] == [slow_texts[code] for code in slow_codes]
    assert fast.listed() == [fast.value(row) for row in range(len(array))] or array.dtype.kind == "f"


def test_what_numpy_and_pandas_call_missing_is_missing():
    pandas = pytest.importorskip("pandas")
    for value in (np.float32("nan"), np.datetime64("NaT"), pandas.NA, pandas.NaT, None):
        assert (text_of(value), math.isnan(number_of(value)), math.isnan(time_of(value))) == (None, True, True)
    assert (text_of(np.float32(7.0)), text_of(np.bool_(True))) == ("7", "true")
    assert math.isnan(number_of(np.bool_(True)))
    assert time_of(np.datetime64("1970-01-02", "ns")) == time_of(pandas.Timestamp("1970-01-02")) == 86400.0


def test_a_dictionary_of_arrow_s_is_read_by_its_values():
    column = pa.array(["1", None, "x", "1"]).dictionary_encode()
    assert np.array_equal(ArrowValues(column).numbers(), [1.0, np.nan, np.nan, 1.0], equal_nan=True)
    assert ArrowValues(column).value(2) == "x"


def test_bytes_that_are_no_text_touch_no_other_value():
    broken = pa.array([b"ok", b"\xff"]).view(pa.string())
    codes, texts = ArrowValues(broken).texts()
    assert [texts[code] for code in codes] == ["ok", "\ufffd"]


@given(DATETIMES)
def test_a_time_is_the_same_as_an_object_a_text_and_in_every_unit(moment):
    seconds = time_of(moment)
    assert seconds == time_of(moment.isoformat()) == time_of(f" {moment.isoformat(' ')} ")
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    assert seconds == pytest.approx((utc - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1), abs=1e-4)
    coarse = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=None)
    for unit in ("ms", "us"):
        assert ArrowValues(pa.array([None, coarse], pa.timestamp(unit))).times()[1] == time_of(coarse)
    if 1700 < moment.year < 2200:
        assert ArrowValues(pa.array([None, coarse], pa.timestamp("ns"))[1:]).times()[0] == time_of(coarse)
    whole = coarse.replace(microsecond=0)
    assert ArrowValues(pa.array([whole], pa.timestamp("s", tz="Europe/Oslo"))).times()[0] == time_of(whole)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01", 0.0),
        ("1970-01-02T00:00", 86_400.0),
        ("1970-01-01 01:00:00Z", 3_600.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T01:00:00.25-0100", 7_200.25),
        ("1970-01-01T00:00:00.1234567891+00", 0.123456),
        ("1969-12-31T23:59:59", -1.0),
        ("86400", 86_400.0),
    ],
)
def test_times_are_seconds_in_utc(text, seconds):
    assert time_of(text) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "1970-1-1",
            "01.02.1970",
            "1970-02-30",
            "1970-01-01T24:00",
            "1970-01-01T25:00",
            "1970-W01",
            "1970-01-01Z",
        ),
        *("now", True, None, "1970-01-01T00:00+25:00", "\u0661970-01-01", "1970-01-01T00:00:60", float("nan")),
    ],
)
def test_nothing_else_is_a_time(value):
    assert math.isnan(time_of(value))


def test_a_time_that_python_does_not_have_is_a_time():
    assert ArrowValues(pa.array([2**62, None], pa.timestamp("s"))).times()[0] == 2.0**62


def test_an_endless_integer_is_no_error():
    """Python writes none of more than 4,300 digits; JSON reads one as an infinite number."""
    values = PlainValues([10**5_000, -(10**5_000), 7])
    assert values.texts()[1] == ["inf", "-inf", "7"]
    assert np.isnan(values.numbers()).tolist() == [True, True, False]


@pytest.mark.parametrize("value", [[1], {}, (1,), {1}, np.ones(2), Unreadable("is not UTF-8")])
def test_what_no_column_takes_is_unreadable(value):
    assert unreadable_rows(PlainValues([value, 1.0]), rows=2).tolist() == [True, False]
    assert unreadable_error("x", value).startswith("x is ")
    assert unreadable_error("x", 1.0) is None
