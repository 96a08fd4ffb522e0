"""The Covertype data set of the UCI repository, with public bounds that do not depend on the data."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.datasets.files import copy_of, find, load, same_bytes
from taciturn.datasets.scaling import to_norm_one
from taciturn.datasets.simulated import Stream
from taciturn.errors import InvalidInput, value_or_type
from taciturn.kernel.arrays import Array
from taciturn.tables.ranges import between

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
TEXT = (75_169_317, "71df19898bd3e11db15ae0faf4159f2c")
"""Bytes and MD5 checksum of UCI's `covtype.data`, unpacked."""
COMPACT = (5_223_649, "97969161c1c8d2dbd174c62c3ce2aa5b3a1ce197e9c691efc8ff522276cafef0")
"""Bytes and SHA-256 checksum of `covtype.npz`, the same rows in four arrays: num, wilderness, soil, y."""
FIRST_ARRAY = b"num.npy"
"""By what the compact file is told from UCI's, which may be packed too."""

RANGES = {
    "elevation": (1890, 3962),
    "aspect": (0, 360),
    "slope": (0, 90),
    "horizontal distance to water": (0, 2000),
    "vertical distance to water": (-1000, 1000),
    "distance to road": (0, 10_000),
    "hillshade 9 am": (0, 255),
    "hillshade noon": (0, 255),
    "hillshade 3 pm": (0, 255),
    "distance to fire": (0, 10_000),
}
"""What the numbers are clipped to, in the order of the file. `covertype` says where each range comes from."""

AREAS = ("Rawah", "Neota", "Comanche Peak", "Cache la Poudre")
SOILS, CLASSES = 40, 7
NAMES = (*RANGES, *(f"area={area}" for area in AREAS), *(f"soil={k}" for k in range(1, SOILS + 1)))


class Cells(NamedTuple):
    """Rows as they are published: ten numbers, an area 0..3, a soil 0..39 and a class 1..7 for each cell of forest."""

    numbers: NDArray[Any]
    area: NDArray[Any]
    soil: NDArray[Any]
    kind: NDArray[Any]


def covertype(positive: int | None = 2, path: str | os.PathLike[str] | None = None, *, unit: bool = True) -> Stream:
    """Which trees grow on a cell of 30 by 30 metres? 581,012 cells of four wilderness areas in northern Colorado.

    In the order of the file: 10 numbers, then one-hot groups of 4 areas and 40 soils, 54 features. Nothing is computed
    from the rows, so the bounds are public. A number is clipped to a range and mapped into [-1, 1]:

    - Elevation is 1,890 to 3,962 metres, 6,200 to 13,000 feet. Descriptions of the areas give 6,200 to 8,600 feet for
      the lowest, Cache la Poudre, and 8,400 to 13,000 for Rawah.
    - Aspect is 0 to 360 degrees and slope 0 to 90, as angles are; hillshades are 0 to 255, as `covtype.info` says.
    - Distances to a road and to a place where fire broke out are 0 to 10,000 metres. Roads end at the border of a
      wilderness, which is no further: the largest of the areas has 309 square kilometres, a disc of radius 9.9.
    - Distance to water is 0 to 2,000 metres across and -1,000 to 1,000 up, as much as a slope of 27 degrees rises on
      the way. These two are choices: streams drain these mountains more closely than that.

    Parameters
    ----------
    positive : int or None
        The class that is +1; all others are -1. The classes: 1 spruce and fir, 2 lodgepole pine, 3 ponderosa pine, 4
        cottonwood and willow, 5 aspen, 6 Douglas fir, 7 krummholz. None for all seven, numbered from 0.
    path : path, optional
        UCI's file `covtype.data`, gzipped or not, or the compact `covtype.npz`. If left out, they are looked for in the
        folder that the environment variable `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and UCI's
        is downloaded into the cache the first time. Size and checksum are those of the one or the other.
    unit : bool
        Divide every row by its own norm, so that all have norm 1. Else rows stay as they are, of norm up to sqrt(12).

    Notes
    -----
    Source: Jock Blackard, *Covertype*, UCI Machine Learning Repository, 1998, doi 10.24432/C50K5N.
    Licence: Creative Commons Attribution 4.0 (CC BY 4.0).

    Examples
    --------
    `covertype()` reads the full set. A line of UCI's file becomes

    >>> from taciturn.datasets.covertype import parse, stream_of
    >>> line = "2926,90,45,0,0,10000,255,0,0,5000," + "0,1,0,0," + "1," + "0," * 39 + "2"
    >>> stream = stream_of(parse(line.encode()), positive=2, unit=False)
    >>> {name: round(float(x), 2) for name, x in zip(stream.names, stream.X[0], strict=True) if x}
    {'aspect': -0.5, 'horizontal distance to water': -1.0, 'distance to road': 1.0, 'hillshade 9 am': 1.0,
     'hillshade noon': -1.0, 'hillshade 3 pm': -1.0, 'area=Neota': 1.0, 'soil=1': 1.0}
    >>> stream.y, round(stream.feature_bound, 4)
    (array([1.]), 3.4641)
    """
    if positive is not None and positive not in range(1, CLASSES + 1):
        raise InvalidInput(
            f"positive must be a class from 1 to {CLASSES}, or None for all of them, got {value_or_type(positive)}."
        )
    file = find("covtype.data.gz", URL, "covtype.npz", "covtype.data") if path is None else Path(path)
    with copy_of("UCI's covtype.data or covtype.npz", file, URL):
        return stream_of(cells(file), positive, unit)


def cells(file: Path) -> Cells:
    """The rows of either file, if it is the published one to the last bit."""
    data = load(file)
    if FIRST_ARRAY not in data[:64]:
        return parse(same_bytes(load(file, "covtype.data"), *TEXT))
    with np.load(io.BytesIO(same_bytes(data, *COMPACT))) as arrays:
        return Cells(arrays["num"], arrays["wilderness"], arrays["soil"], arrays["y"])


def parse(data: bytes) -> Cells:
    """Lines of `covtype.data`, however many.

    >>> parse(b"2596,51,3,258,0,510,221,232,148,6279," + b"1,0,0,0," + b"0," * 28 + b"1," + b"0," * 11 + b"5").soil
    array([28])
    """
    try:
        table = np.loadtxt(io.BytesIO(data), dtype=np.int16, delimiter=",", ndmin=2)
    except ValueError as error:
        raise InvalidInput(f"it is not a table of integers ({error}).") from error
    if table.shape[1] != len(NAMES) + 1:
        raise InvalidInput(f"it has {table.shape[1]} columns, not {len(NAMES) + 1}.")
    numbers, areas, soils, kind = np.split(table, [len(RANGES), len(RANGES) + len(AREAS), len(NAMES)], axis=1)
    return Cells(numbers, areas.argmax(axis=1), soils.argmax(axis=1), kind[:, 0])


def stream_of(rows: Cells, positive: int | None, unit: bool) -> Stream:
    """Scaled features, and labels +1 and -1 or class numbers from 0."""
    X = features(rows)
    y: Array = np.where(rows.kind == positive, 1.0, -1.0) if positive is not None else rows.kind - 1.0
    longest = math.sqrt(len(RANGES) + 2)
    bounds = {"feature_bound": 1.0 if unit else longest, "label_bound": CLASSES - 1.0 if positive is None else 1.0}
    return Stream(to_norm_one(X) if unit else X, y, NAMES, **bounds)


def features(rows: Cells) -> Array:
    """Numbers in [-1, 1] and indicators, one row a cell."""
    X = np.zeros((len(rows.kind), len(NAMES)))
    for column, (low, high) in enumerate(RANGES.values()):
        X[:, column] = between(rows.numbers[:, column], low, high)
    each = np.arange(len(X))
    X[each, len(RANGES) + rows.area.astype(np.intp)] = 1.0
    X[each, len(RANGES) + len(AREAS) + rows.soil.astype(np.intp)] = 1.0
    return X
