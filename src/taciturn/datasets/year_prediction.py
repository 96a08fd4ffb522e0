"""The YearPredictionMSD data set of the UCI repository, with public bounds that do not depend on the data."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path

import numpy as np

from taciturn.datasets.files import copy_of, find, load, same_bytes
from taciturn.datasets.scaling import shortened
from taciturn.datasets.simulated import Stream
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/00203/YearPredictionMSD.txt.zip"
TEXT = (448_576_698, "9b07d8011e0d8add1150dee90a38c548")
"""Bytes and MD5 checksum of `YearPredictionMSD.txt`."""

FIRST, LAST = 1922, 2011
TIMBRES = 12
SPAN = 100.0
"""Decibels beyond which a timbre, or the root of a covariance, is clipped."""

PAIRS = [(i, j) for i in range(1, TIMBRES + 1) for j in range(i, TIMBRES + 1)]
NAMES = (*(f"timbre {i}" for i in range(1, TIMBRES + 1)), *(f"covariance {k}" for k in range(1, len(PAIRS) + 1)))


def year_prediction(path: str | os.PathLike[str] | None = None) -> Stream:
    """In which year did a song come out? 515,345 songs of 1922 to 2011, the paper's second regression.

    In the order of the file: averages of 12 timbres over a song, then their 78 covariances. The label is the year
    counted from 1966.5, the middle of the years that UCI's page states, hence at most 44.5.

    Timbres have no range: the documentation of the analyser calls them "unbounded values roughly centered around 0". So
    the bound is a rule that looks at no row, and can cost accuracy but not privacy:

    - A timbre is clipped to [-100, 100] and divided by 100. The first of the twelve is a loudness in decibels, the
      others weigh shapes on the same surface, and hearing spans some hundred decibels.
    - A covariance c becomes sign(c)·sqrt(|c|), which is on the timbres' own scale, and is then clipped and divided
      alike. Timbres within [-100, 100] have covariances within [-100², 100²], so none of theirs is clipped.
    - Everything is divided by sqrt(90), so that no row is longer than 1.

    Parameters
    ----------
    path : path, optional
        The file `YearPredictionMSD.txt`, as it is or packed. If left out, it is looked for in the folder that the
        environment variable `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and downloaded into the cache
        the first time: 211 megabytes, 449 unpacked. Its size and checksum are checked.

    Notes
    -----
    UCI asks to test on the last 51,630 rows, so that no artist is on both sides.

    Source: Thierry Bertin-Mahieux, *YearPredictionMSD*, UCI Machine Learning Repository, 2011, doi 10.24432/C50K61. On
    timbre: Tristan Jehan and David DesRoches, *Analyzer Documentation*, The Echo Nest, version 3.08, 2011.
    Licence: Creative Commons Attribution 4.0 (CC BY 4.0).

    Examples
    --------
    `year_prediction()` reads the full set. A line of it becomes

    >>> from taciturn.datasets.year_prediction import parse
    >>> stream = parse(b"2001,50,-300" + b",0" * 10 + b",2500,-400" + b",0" * 76)
    >>> {name: round(float(x * 90**0.5), 2) for name, x in zip(stream.names, stream.X[0], strict=True) if x}
    {'timbre 1': 0.5, 'timbre 2': -1.0, 'covariance 1': 0.5, 'covariance 2': -0.2}
    >>> stream.y, stream.label_bound
    (array([34.5]), 44.5)
    """
    names = ("YearPredictionMSD.txt", "YearPredictionMSD.txt.gz")
    file = find("YearPredictionMSD.txt.zip", URL, *names) if path is None else Path(path)
    with copy_of("UCI's YearPredictionMSD.txt", file, URL):
        return parse(same_bytes(load(file, "YearPredictionMSD.txt"), *TEXT))


def parse(data: bytes) -> Stream:
    """Lines of the file, however many, as a stream."""
    try:
        table = np.loadtxt(io.BytesIO(data), delimiter=",", ndmin=2)
    except ValueError as error:
        raise InvalidInput(f"it is not a table of numbers ({error}).") from error
    if table.shape[1] != 1 + len(NAMES) or not np.isfinite(table).all():
        raise InvalidInput(
            f"it should have {1 + len(NAMES)} columns of finite numbers, and has {table.shape[1]} columns."
        )
    year = np.clip(table[:, 0], FIRST, LAST) - (FIRST + LAST) / 2
    return Stream(features(table[:, 1:]), year, NAMES, feature_bound=1.0, label_bound=(LAST - FIRST) / 2)


def features(timbres: Array) -> Array:
    """Averages, and signed roots of covariances, in rows no longer than 1."""
    X = timbres.copy()
    for covariance in X.T[TIMBRES:]:  # one at a time, so that half a million rows need no second copy
        covariance[:] = np.copysign(np.sqrt(np.abs(covariance)), covariance)
    np.clip(X, -SPAN, SPAN, out=X)
    return shortened(X, SPAN * math.sqrt(len(NAMES)))
