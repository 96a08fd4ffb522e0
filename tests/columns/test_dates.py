"""Dates: a position in a public range, and cycles that go round once a week, a year and a day."""

import tomllib
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from contract.declared import contract
from taciturn import InvalidInput
from taciturn.columns.declaration import column_of
from taciturn.columns.kinds import Date
from taciturn.columns.values import PlainValues
from taciturn.readers.rows import open_rows

CYCLES = ("weekday", "month", "hour")
MADE = Date("when", "2000-01-01", "2040-01-01", CYCLES)


def encoded(*values, column=MADE):
    out = np.zeros((len(values), column.width))
    bad = column.encode(PlainValues(values), out)
    return out, bad


def test_the_range_is_scaled_and_clipped_and_cycles_are_not():
    out, _ = encoded("2000-01-01", "2020-01-01", "2040-01-01", "2060-03-01", "1960-03-01")
    assert out[:, 0] == pytest.approx([-1.0, 0.0, 1.0, 1.0, -1.0], abs=1e-4)
    assert out[3, 3:5] == pytest.approx([np.sin(np.pi / 3), np.cos(np.pi / 3)])
    assert out[4, 3:5] == pytest.approx(out[3, 3:5])


@given(st.datetimes(timezones=st.just(UTC)))
def test_cycles_are_those_of_the_calendar(moment):
    [row], _ = encoded(moment.isoformat())
    past = moment.hour * 3600 + moment.minute * 60 + moment.second + moment.microsecond / 1e6
    turns = np.array([moment.weekday() / 7, (moment.month - 1) / 12, past / 86_400])
    assert row[1::2] == pytest.approx(np.sin(2 * np.pi * turns), abs=1e-6)
    assert row[2::2] == pytest.approx(np.cos(2 * np.pi * turns), abs=1e-6)


def test_every_cycle_adds_one_to_the_squared_norm():
    """No less, so that a bound of half of it would not hold."""
    out, _ = encoded("2020-05-17T03:20")
    for cycle in range(3):
        assert (out[0, 1 + 2 * cycle : 3 + 2 * cycle] ** 2).sum() == pytest.approx(1.0)


def test_missing_dates_are_zero_and_other_texts_bad():
    out, bad = encoded("", None, "soon", "2020-01-01")
    assert not out[:3].any()
    assert bad.tolist() == [False, False, True, False]
    assert MADE.error("soon") == "when is not a date as in 2024-05-31 or 2024-05-31T12:30:00Z"
    assert MADE.error("") is None


def test_toml_s_own_dates_declare_the_same():
    text = 'a = { date = [2000-01-01, 2040-01-01T00:00:00Z], cycle = ["weekday", "month", "hour"] }'
    column = column_of("when", tomllib.loads(text)["a"])
    assert column == MADE
    assert column.declared() == {"date": ["2000-01-01", "2040-01-01"], "cycle": list(CYCLES)}
    assert column.names[:3] == ("when", "when weekday sin", "when weekday cos")
    zoned = column_of("when", tomllib.loads("a = { date = [2000-01-01, 2040-01-01T02:30:00+02:00] }")["a"])
    assert zoned.high == "2040-01-01T00:30:00Z"
    assert column_of("when", zoned.declared()) == zoned


def test_the_bound_counts_cycles_and_the_position():
    made = contract(columns={"when": {"date": ["2000-01-01", "2040-01-01"], "cycle": list(CYCLES)}})
    assert made.feature_bound == pytest.approx(np.sqrt(3.0 + 1.0 / 3.0 + 0.6))
    assert len(made.settings().scales) == made.dimension == 7


@pytest.mark.parametrize(
    "values",
    [
        pa.array([datetime(2020, 5, 1, 12), None], pa.timestamp("ns")),
        pa.array([datetime(2020, 5, 1, 12), None], pa.timestamp("s", tz="UTC")),
        pa.array([datetime(2020, 5, 1, 12), None], pa.timestamp("ms")).dictionary_encode(),
        pa.array(["2020-05-01T14:00+02:00", " "]),
        pa.array([1_588_334_400, None]),
        pa.array([1_588_334_400.0, float("nan")]),
    ],
)
def test_types_of_the_schema_do_not_matter(tmp_path, values):
    made = contract(columns={"when": {"date": ["2000-01-01", "2040-01-01"], "cycle": ["hour"]}})
    parquet.write_table(pa.table({"when": values}), tmp_path / "rows.parquet")
    [batch] = open_rows(made, tmp_path / "rows.parquet", labelled=False)
    expected, _ = encoded("2020-05-01 12:00", "", column=made.columns[0])
    assert batch.X.tobytes() == expected.tobytes()


@pytest.mark.parametrize("values", [pa.array([True]), pa.array([3], pa.time32("s"))])
def test_types_without_a_date_are_rejected_before_any_row(tmp_path, values):
    made = contract(columns={"when": {"date": ["2000-01-01", "2040-01-01"]}})
    parquet.write_table(pa.table({"when": values}), tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match="which is no date"):
        open_rows(made, tmp_path / "rows.parquet", labelled=False)


def test_a_date_of_any_year_has_features():
    out, bad = encoded(date.min, date.max, 1e300, -1e300, "9999-12-31T23:59:59.999999-23:59")
    assert np.isfinite(out).all()
    assert bad.tolist() == [False, False, True, True, False]  # those numbers count no seconds


NUMBERS = [
    (1_588_334_400, False),  # seconds
    ("1588334400.5", False),
    (1_588_334_400_000, True),  # milliseconds
    ("1588334400000", True),
    (-1e12, True),
    (20200105, True),  # a day of 2020, which would be one of 1970
    (" 20200105 ", True),
    (20200105.0, True),
    (20201305, False),  # no month: seconds in 1970, outside of the range by less than its length
    (19990105, False),  # no declared year
    (86_400 * 365.25 * -5, False),
    ("2199-01-01", False),  # a date is never bad for where it lies
    ("1850-01-01", False),
]


@pytest.mark.parametrize(("value", "is_bad"), NUMBERS)
def test_a_number_that_surely_counts_no_seconds_is_bad(value, is_bad):
    """One rule for many values and for one, which depends on the value and the declared dates only."""
    _, bad = encoded("2020-01-01", value)
    assert bad.tolist() == [False, is_bad]
    assert (MADE.pairs(value) is None) == is_bad
    assert (MADE.error(value) is not None) == is_bad
    if is_bad:
        assert "milliseconds" in MADE.error(value)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1_588_334_400_000, 20200105, None, 1_588_334_400]),
        pa.array([1_588_334_400_000.0, 20200105.0, None, 1_588_334_400.0]),
        pa.array(["1588334400000", "20200105", "", "2020-05-01T12:00"]),
    ],
)
def test_numbers_of_a_file_are_judged_by_the_same_rule(tmp_path, values):
    made = contract(columns={"when": {"date": ["2000-01-01", "2040-01-01"]}})
    target = pa.array(["yes"] * 4)
    parquet.write_table(pa.table({"when": values, made.target.column: target}), tmp_path / "rows.parquet")
    [batch] = open_rows(made, tmp_path / "rows.parquet", labelled=False, bad_rows="zero")
    assert batch.bad.tolist() == [True, True, False, False]
    later = pa.array([datetime(2199, 1, 1)] * 4, pa.timestamp("us"))
    parquet.write_table(pa.table({"when": later, made.target.column: target}), tmp_path / "rows.parquet")
    [batch] = open_rows(made, tmp_path / "rows.parquet", labelled=False, bad_rows="zero")
    assert not batch.bad.any()
