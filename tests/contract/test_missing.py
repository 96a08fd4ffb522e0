"""Missing values: the same features from every format, no bad rows, and a feature bound that counts indicators."""

import io
import json
import math
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from contract.declared import STRICT, contract, csv, read
from taciturn.contract.contract import contract_of
from taciturn.readers.rows import open_rows

COLUMNS = {
    "age": {"range": [0, 100], "indicator": True},
    "height": {"range": [1, 2.5], "missing": 1.7},
    "income": {"range": "private", "indicator": True},
    "wage": {"range": [1, 1e6], "scale": "log"},
    "gain": {"range": [-1e6, 1e6], "scale": "symlog", "threshold": 10},
    "size": {"bins": [0, 1, 2, 4], "missing": "category"},
    "seen": {"date": [date(2015, 1, 1), date(2030, 1, 1)], "cycle": ["weekday", "month", "hour"], "indicator": True},
    "born": {"date": ["1900-01-01", "2030-01-01"], "cycle": ["month"]},
    "epoch": {"date": ["1970-01-01", "2030-01-01"], "cycle": ["hour"]},
    "town": {"categories": ["Oslo", "Rome"], "missing": "category"},
    "ip": {"hash": 4, "missing": "category"},
    "note": {"text": {"hash": 8}, "missing": "category"},
}
NUMBERS = ("height", "income", "wage", "gain", "size")
KINDS = {
    "age": pa.int64(),
    **dict.fromkeys(NUMBERS, pa.float64()),
    "seen": pa.timestamp("us"),
    "born": pa.date32(),
    "epoch": pa.int64(),
    "town": pa.string(),
    "ip": pa.string(),
    "note": pa.string(),
}
TABLE = st.fixed_dictionaries(
    {
        "age": st.one_of(st.none(), st.integers(-10, 120)),
        **dict.fromkeys(NUMBERS, st.one_of(st.none(), st.floats(0.0, 3.0), st.floats(-1e6, 1e6))),
        "seen": st.one_of(st.none(), st.datetimes()),
        "born": st.one_of(st.none(), st.dates()),
        "epoch": st.one_of(st.none(), st.integers(-(2**40), 2**40)),
        "town": st.one_of(st.none(), st.sampled_from(["Oslo", "Rome", "Bonn"])),
        "ip": st.one_of(st.none(), st.sampled_from(["a", "b"])),
        "note": st.one_of(st.none(), st.text("ab \u00e4\u00c4.!", max_size=12)),
    }
)


def made(columns=COLUMNS, **learning):
    return contract_of(
        {
            "privacy": {"epsilon": 1.0},
            "target": {"column": "y", "positive": ["yes"]},
            "learning": learning,
            "columns": columns,
        }
    )


def in_every_format(contract, rows, kinds):
    """The features of a table from CSV, JSON lines and Parquet; numbers that count no seconds are bad in each."""
    names = list(kinds)
    text = [",".join(names), *(",".join("" if r[n] is None else str(r[n]) for n in names) for r in rows), ""]
    lines = "".join(
        json.dumps({n: v for n, v in row.items() if v is not None or n != "age"}, default=lambda day: day.isoformat())
        + "\n"
        for row in rows
    )
    packed = io.BytesIO()
    parquet.write_table(pa.table({n: pa.array([row[n] for row in rows], kinds[n]) for n in names}), packed)
    packed.seek(0)
    sources = {"csv": io.BytesIO("\n".join(text).encode()), "json": io.BytesIO(lines.encode()), "parquet": packed}
    settings = {"labelled": False, "bad_rows": "zero"}
    return {
        format: np.concatenate([batch.X for batch in open_rows(contract, source, format=format, **settings)])
        for format, source in sources.items()
    }


@given(rows=st.lists(TABLE, min_size=1, max_size=8))
def test_every_format_has_the_same_features_to_the_byte(rows):
    features = in_every_format(made(), rows, KINDS)
    assert features["csv"].tobytes() == features["json"].tobytes() == features["parquet"].tobytes()


def test_an_empty_cell_is_no_bad_row_unless_it_is_declared_to_be():
    data = csv("50,Oslo,1,a,b,yes", ",Oslo,1,a,b,yes", "x,Oslo,1,a,b,yes")
    [batch] = read(contract(), data, bad_rows="zero")
    assert np.isnan(batch.X).all(axis=1).tolist() == [False, False, True]
    assert batch.X[1, 0] == 0.0
    [batch] = read(contract(columns=STRICT), data, bad_rows="zero")
    assert np.isnan(batch.X).all(axis=1).tolist() == [False, True, True]


def test_empty_cells_are_read_by_the_fast_path(monkeypatch):
    """A table with gaps in every block is common: one gap must not send its lines to the fallback."""
    from taciturn.readers import csv as csv_rows

    monkeypatch.setattr(csv_rows.CsvRows, "_parse_fallback", None)
    [batch] = read(contract(), csv(*[",Oslo,1,a,b,yes", "50,,,,,yes"] * 300))
    assert not np.isnan(batch.X).any()


def test_the_feature_bound_counts_an_indicator_as_one():
    """Three numbers and two categories, and one indicator more."""
    columns = {
        "a": {"range": [0, 1]},
        "b": {"range": [0, 1]},
        "c": {"range": [0, 1]},
        "d": {"hash": 2},
        "e": {"hash": 2},
    }
    numbers = 1.0 + 0.6 * math.sqrt(3.0)
    assert made(columns).feature_bound == pytest.approx(math.sqrt(2.0 + numbers))
    more = columns | {"a": {"range": [0, 1], "indicator": True}, "d": {"hash": 2, "missing": "category"}}
    assert made(more).feature_bound == pytest.approx(math.sqrt(3.0 + numbers))
    assert made(more).dimension == made(columns).dimension + 2


@given(rows=st.lists(TABLE, min_size=1, max_size=8))
def test_no_row_is_longer_than_the_root_of_its_groups(rows):
    columns = COLUMNS | {"income": {"range": [-10, 10], "missing": -10, "indicator": True}}
    X = in_every_format(made(columns), rows, KINDS)["csv"]
    X = X[~np.isnan(X).any(axis=1)]
    assert (np.linalg.norm(X, axis=1) <= math.sqrt(19.0) + 1e-12).all()  # 8 numbers, 5 cycles, 3 indicators, 3 others


def test_the_bound_is_reached_so_a_smaller_one_would_not_hold():
    """With the indicator left out of the count, a row is longer than the root of the groups."""
    columns = {"a": {"range": [0, 1], "missing": 1, "indicator": True}}
    [batch] = open_rows(made(columns), io.BytesIO(b'{"y": "no"}\n'), format="json")
    assert np.linalg.norm(batch.X) == math.sqrt(2.0)


def test_what_is_found_are_the_numbers_and_not_their_indicators():
    contract = made()
    assert [contract.feature_names[j] for j in contract.found] == ["income"]
    assert "income (missing)" in contract.feature_names
    assert len(contract.settings().scales) == contract.dimension
