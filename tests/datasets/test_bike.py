"""Bike sharing: hours in their order, within public bounds, however the numbers are spelt."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.datasets import bike
from taciturn.datasets.bike import COLUMNS, NAMES, NUMBERS, UNIT, URL, parse, stream_of
from taciturn.datasets.files import text
from taciturn.errors import InvalidInput

HEADER = (
    "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,casual,"
    "registered,cnt"
)
LINE = "5,2011-01-03,1,0,1,17,0,1,1,1,0.24,0.2273,0.3,0,11,146,157"


@pytest.fixture(scope="module")
def file(data_file):
    return data_file("Bike-Sharing-Dataset.zip", "hour.csv", "bike_hour.csv.gz", "hour.csv.gz")


def test_a_line_becomes_scaled_numbers_and_indicators():
    """Each number in [-1, 1], each group with one 1, all divided by sqrt(10); who rented is not among them."""
    stream = stream_of(parse([HEADER, LINE]))
    row = dict(zip(stream.names, stream.X[0] * np.sqrt(10), strict=True))
    numbers = [row.pop(name) for name in NUMBERS.values()]
    np.testing.assert_allclose(numbers, [-1, -1, 2 * 0.24 - 1, 2 * 0.2273 - 1, 2 * 0.3 - 1, -1])
    assert {name for name, x in row.items() if x} == {"working hour=17", "month=1", "weekday=1", "weather=1"}
    assert stream.y.tolist() == [157.0]
    assert not {"casual", "registered"} & set(COLUMNS)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=len(COLUMNS), max_size=len(COLUMNS)))
def test_no_row_is_longer_than_the_bound(fields):
    stream = stream_of(np.array([fields]))
    assert np.linalg.norm(stream.X) <= stream.feature_bound == 1.0
    assert 0.0 <= stream.y[0] <= stream.label_bound


@pytest.mark.parametrize(
    ("column", "value"), [("hr", 24), ("hr", 30), ("workingday", 2), ("mnth", 0), ("weathersit", 5)]
)
def test_a_value_that_is_not_published_leaves_its_group_at_zero(column, value):
    """An hour of 30 is none of a working day either."""
    table = parse([HEADER, LINE])
    table[0, COLUMNS.index(column)] = value * UNIT
    ours, all_known = stream_of(table).X[0, len(NUMBERS) :], stream_of(parse([HEADER, LINE])).X[0, len(NUMBERS) :]
    assert np.count_nonzero(ours) == np.count_nonzero(all_known) - 1 == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no column yr"),
        (HEADER.replace(",cnt", ""), "it has no column cnt"),
        (f"{HEADER}\n{LINE[:20]}", "not a table of numbers"),
        (f"{HEADER}\n{LINE.replace('157', 'many')}", "not a table of numbers"),
        (f"{HEADER}\n{LINE}", "it has 1 rows, not 17,379"),
    ],
)
def test_another_file_is_rejected_with_a_remedy(text, why, tmp_path):
    (tmp_path / "hour.csv").write_text(text)
    with pytest.raises(InvalidInput, match=rf"is not UCI's hour.csv: .*{why}.* Put a fresh copy of {URL}"):
        bike(tmp_path / "hour.csv")


def test_the_real_file_however_it_is_spelt(file, tmp_path):
    """0.0 or 0, gzipped or not: the same stream; one rental more is rejected."""
    lines = text(file, "hour.csv").splitlines()
    respelt = [lines[0], *(line.replace(",0.0,", ",0,") for line in lines[1:])]
    (tmp_path / "mine").write_bytes(gzip.compress("\n".join(respelt).encode()))
    np.testing.assert_array_equal(bike(tmp_path / "mine").X, bike(file).X)
    (tmp_path / "mine").write_text("\n".join([*lines[:-1], lines[-1] + "0"]))
    with pytest.raises(InvalidInput, match="its numbers' SHA-256 checksum is"):
        bike(tmp_path / "mine")


def test_the_real_file_keeps_its_bounds_and_can_be_learnt(file):
    """Shape, the published total, norms; a line explains two thirds of the variance."""
    stream = bike(file)
    assert stream.X.shape == (17_379, 77) == (len(stream), len(NAMES))
    assert stream.y.sum() == 3_292_679
    assert np.linalg.norm(stream.X, axis=1).max() <= stream.feature_bound
    assert stream.y.max() <= stream.label_bound
    solution, *_ = np.linalg.lstsq(stream.X, stream.y, rcond=1e-10)
    assert np.var(stream.y - stream.X @ solution) < np.var(stream.y) / 3
