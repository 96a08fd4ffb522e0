"""The California housing data of the 1990 census, with public bounds that do not depend on the data."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path

import numpy as np

from taciturn.datasets.files import copy_of, find, is_parquet, load, read_columns, same_table
from taciturn.datasets.scaling import shortened
from taciturn.datasets.simulated import Stream
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array, Integers
from taciturn.tables.ranges import between

URL = "https://ndownloader.figshare.com/files/5976036"
ROWS = 20_640
CHECKSUM = "ac0d124e88d41d99cbc67ed6b5a3e910bf575a286627b45b1404f31fa703587d"
"""SHA-256 of the rows as integers, in StatLib's order and in the units of `UNITS`."""

UNITS = {
    "longitude": 100,
    "latitude": 100,
    "age": 1,
    "rooms": 1,
    "bedrooms": 1,
    "population": 1,
    "households": 1,
    "income": 10_000,
    "value": 1,
}
"""The columns of StatLib's `cal_housing.data`, and the unit that makes each an integer."""

AVERAGES = "MedInc HouseAge AveRooms AveBedrms Population AveOccup Latitude Longitude MedHouseVal"
"""The columns as scikit-learn names them."""

RANGES = {
    "income": (0.4999, 15.0001),
    "age": (0, 52),
    "rooms a household": (1, 9),
    "bedrooms a household": (0, 5),
    "population": (0, 3000),
    "people a household": (1, 7),
    "latitude": (32.5, 42.0),
    "longitude": (-124.5, -114.1),
}
"""What the numbers are clipped to. `california_housing` says where each range is published."""

LABEL_BOUND = 5.00001


def california_housing(path: str | os.PathLike[str] | None = None) -> Stream:
    """What is a house worth, in 100,000 dollars? Medians of 20,640 block groups of California, from the census of 1990.

    In the order of the file, which goes county by county: 8 numbers. Nothing is computed from the rows, so the bounds
    are public. A number is clipped to a range and mapped into [-1, 1]:

    - Median income, in 10,000 dollars, is 0.4999 to 15.0001 and the label is at most 5.00001: what the census writes
      for less than 5,000, more than 150,000 and more than 500,000 dollars. The label's bound is that.
    - Age is 0 to 52 years: the oldest houses it tells apart were built in 1939 or earlier.
    - Rooms are 1 to 9, bedrooms 0 to 5 and people 1 to 7 a household: the form's last answers were "9 or more rooms"
      and "5 or more bedrooms", and it had room for seven people.
    - Population is 0 to 3,000: the Census Bureau draws block groups for 600 to 3,000 people.
    - Latitude is 32.5 to 42 degrees and longitude -124.5 to -114.1: the state's borders.

    Everything is divided by sqrt(8), so that no row is longer than 1.

    Parameters
    ----------
    path : path, optional
        StatLib's `cal_housing.data`, as it is or in the archive `cal_housing.tgz` from which scikit-learn takes it, or
        a table `california_housing.parquet` with scikit-learn's columns. If left out, they are looked for in the folder
        that the environment variable `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and the archive is
        downloaded into the cache the first time. The checksum is of the numbers, so it is the same for each of them.

    Notes
    -----
    Source: R. Kelley Pace and Ronald Barry, *Sparse Spatial Autoregressions*, Statistics and Probability Letters 33,
    1997; StatLib, houses. Licence: none is stated; counts of the US census are in the public domain.

    Examples
    --------
    `california_housing()` reads the full set. A line of StatLib's file becomes

    >>> from taciturn.datasets.california_housing import parse, stream_of
    >>> stream = stream_of(parse(b"-114.1,42.0,52.0,900.0,250.0,1500.0,100.0,15.0001,500001.0"))
    >>> (stream.X[0] * 8**0.5).round(3)
    array([1., 1., 1., 0., 0., 1., 1., 1.])
    >>> stream.y, stream.label_bound
    (array([5.00001]), 5.00001)
    """
    file = (
        find("cal_housing.tgz", URL, "california_housing.parquet", "cal_housing.data") if path is None else Path(path)
    )
    with copy_of("the California housing data", file, URL):
        data = load(file)
        table = from_parquet(data) if is_parquet(data) else parse(load(file, "cal_housing.data"))
        same_table(table, ROWS, CHECKSUM)
        return stream_of(table)


def parse(data: bytes) -> Integers:
    """Lines of StatLib's file, as integers of its units.

    >>> parse(b"-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,452600.0")
    array([[-12223,   3788,     41,    880,    129,    322,    126,  83252, 452600]])
    """
    try:
        table = np.loadtxt(io.BytesIO(data), delimiter=",", ndmin=2)
    except ValueError as error:
        raise InvalidInput(f"it is not a table of numbers ({error}).") from error
    if table.shape[1] != len(UNITS):
        raise InvalidInput(f"it has {table.shape[1]} columns, not {len(UNITS)}.")
    return np.asarray(np.rint(table * list(UNITS.values())), dtype=np.int64)


def from_parquet(data: bytes) -> Integers:
    """The same from scikit-learn's columns, averages per household; counts are integers, so rounding recovers them."""
    income, age, rooms, bedrooms, people, occupancy, latitude, longitude, value = read_columns(data, AVERAGES.split())
    households = np.rint(people / occupancy)
    counts = (age, rooms * households, bedrooms * households, people, households)
    table = np.stack([longitude, latitude, *counts, income, value * 100_000], axis=1)
    return np.asarray(np.rint(table * list(UNITS.values())), dtype=np.int64)


def stream_of(table: Integers) -> Stream:
    """Scaled features, and values in 100,000 dollars."""
    column: dict[str, Array] = {name: table[:, k] / unit for k, (name, unit) in enumerate(UNITS.items())}
    for ours, theirs in (("rooms a", "rooms"), ("bedrooms a", "bedrooms"), ("people a", "population")):
        column[f"{ours} household"] = column[theirs] / column["households"]
    X = np.stack([between(column[name], low, high) for name, (low, high) in RANGES.items()], axis=1)
    y = np.clip(column["value"] / 100_000, 0.0, LABEL_BOUND)
    return Stream(shortened(X, math.sqrt(len(RANGES))), y, tuple(RANGES), feature_bound=1.0, label_bound=LABEL_BOUND)
