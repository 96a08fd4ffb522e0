"""The bike sharing data set of the UCI repository, with public bounds that do not depend on the data."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from taciturn.datasets.files import copy_of, find, same_table, text
from taciturn.datasets.scaling import indicators, shortened
from taciturn.datasets.simulated import Stream
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Integers
from taciturn.tables.ranges import between

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/00275/Bike-Sharing-Dataset.zip"
ROWS = 17_379
CHECKSUM = "3b77edd5610fbe9b9a65bb390ccce7464027d22ed2b0274b360c8cae569a9fde"
"""SHA-256 of the columns below as integers, in tenths of thousandths."""

COLUMNS = (
    "yr",
    "mnth",
    "hr",
    "holiday",
    "weekday",
    "workingday",
    "weathersit",
    "temp",
    "atemp",
    "hum",
    "windspeed",
    "cnt",
)
UNIT = 10_000
"""Temperatures, humidity and wind have up to four decimals."""

NUMBERS = {
    "yr": "year",
    "holiday": "holiday",
    "temp": "temperature",
    "atemp": "felt",
    "hum": "humidity",
    "windspeed": "wind",
}
"""Columns from 0 to 1, and what the features are called."""

MOST = 1000
"""Rentals an hour beyond which labels are clipped."""

HOURS, MONTHS, DAYS, WEATHERS = range(24), range(1, 13), range(7), range(1, 5)
NAMES = (
    *NUMBERS.values(),
    *(f"{kind} hour={hour}" for kind in ("free", "working") for hour in HOURS),
    *(f"month={month}" for month in MONTHS),
    *(f"weekday={day}" for day in DAYS),
    *(f"weather={weather}" for weather in WEATHERS),
)


def bike(path: str | os.PathLike[str] | None = None) -> Stream:
    """How many bikes are rented in this hour? 17,379 hours of 2011 and 2012 in Washington, D.C., in their order.

    6 numbers and 4 one-hot groups, 77 features. Nothing is computed from the rows, so the bounds are public:

    - The groups are the hour of a free or of a working day (48), the month, the weekday from Sunday on, and the weather
      from 1, clear, to 4, heavy rain. A value that the file's `Readme.txt` does not name leaves its group at zero.
    - The year (2011 or 2012), whether the day is a holiday, and the weather's numbers are published between 0 and 1:
      temperatures, humidity and wind were divided by constants that `Readme.txt` states. They are clipped to [0, 1] and
      mapped into [-1, 1].
    - Everything is divided by sqrt(6 + 4), so that no row is longer than 1.
    - The label is the number of rentals, clipped to 0 to 1,000. That bound is a choice: the system opened in 2010 with
      1,100 bikes.

    Who rented, casual or registered users, is left out, since the two counts add up to the label; so are the season,
    which follows from the date, and the date itself. Hours without a rental are not in the file.

    Parameters
    ----------
    path : path, optional
        The file `hour.csv`, as it is, gzipped, or in UCI's archive. If left out, it is looked for in the folder that
        the environment variable `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and downloaded into the
        cache the first time. The checksum is of the numbers, however they are spelt (0 or 0.0).

    Notes
    -----
    Source: Hadi Fanaee-T, *Bike Sharing*, UCI Machine Learning Repository, 2013, doi 10.24432/C5W894.
    Licence: Creative Commons Attribution 4.0 (CC BY 4.0).

    Examples
    --------
    `bike()` reads the full set. A line of it becomes

    >>> from taciturn.datasets.bike import COLUMNS, parse, stream_of
    >>> stream = stream_of(parse([",".join(COLUMNS), "1,1,8,0,2,1,1,0.5,0.5,0.75,0.25,340"]))
    >>> {name: round(float(x * 10**0.5), 2) for name, x in zip(stream.names, stream.X[0], strict=True) if x}
    {'year': 1.0, 'holiday': -1.0, 'humidity': 0.5, 'wind': -0.5, 'working hour=8': 1.0, 'month=1': 1.0,
     'weekday=2': 1.0, 'weather=1': 1.0}
    >>> stream.y, stream.label_bound
    (array([340.]), 1000.0)
    """
    names = ("hour.csv", "bike_hour.csv.gz", "hour.csv.gz")
    file = find("Bike-Sharing-Dataset.zip", URL, *names) if path is None else Path(path)
    with copy_of("UCI's hour.csv", file, URL):
        table = parse(text(file, "hour.csv").splitlines())
        same_table(table, ROWS, CHECKSUM)
        return stream_of(table)


def parse(lines: Iterable[str]) -> Integers:
    """The columns of `hour.csv` that are used, as integers of its unit.

    >>> parse([",".join(COLUMNS), "1,1,8,0,2,1,1,0.5,0.5,0.75,0.25,340"])[0, -3:]
    array([   7500,    2500, 3400000])
    """
    reader = csv.DictReader(lines)
    absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if absent:
        raise InvalidInput(f"it has no column {absent[0]}.")
    try:
        table = np.array([[float(row[name]) for name in COLUMNS] for row in reader]).reshape(-1, len(COLUMNS))
        return np.asarray(np.rint(table * UNIT), dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"it is not a table of numbers ({error}).") from error


def stream_of(table: Integers) -> Stream:
    """Scaled features, and rentals an hour."""
    column = dict(zip(COLUMNS, table.T / UNIT, strict=True))
    numbers = np.stack([between(column[name], 0, 1) for name in NUMBERS], axis=1)
    working, hour = indicators(column["workingday"], (0, 1)), indicators(column["hr"], HOURS)
    groups = [
        np.einsum("nw,nh->nwh", working, hour).reshape(len(table), -1),
        indicators(column["mnth"], MONTHS),
        indicators(column["weekday"], DAYS),
        indicators(column["weathersit"], WEATHERS),
    ]
    X = shortened(np.hstack([numbers, *groups]), math.sqrt(len(NUMBERS) + len(groups)))
    return Stream(X, np.clip(column["cnt"], 0.0, MOST), NAMES, feature_bound=1.0, label_bound=float(MOST))
