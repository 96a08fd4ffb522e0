"""The Adult data set of the UCI repository, with public bounds that do not depend on the data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from taciturn.datasets.files import copy_of, find, text
from taciturn.datasets.scaling import indicators
from taciturn.datasets.simulated import Stream
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data"
ROWS, POSITIVES = 32_561, 7_841
LABELS = {">50K": 1.0, "<=50K": -1.0}

COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
)
"""The columns of the file, in its order; `adult.names` lists them."""

RANGES = {
    "age": (17, 90),
    "education-num": (1, 16),
    "hours-per-week": (1, 99),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 99_999),
}
"""What the numbers are clipped to. `adult` says where each range is published."""

LOGARITHMIC = {"capital-gain", "capital-loss"}
"""Amounts of money, nearly all of them zero: what matters is their order of magnitude."""

CATEGORIES = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland "
    "France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
    "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
}
"""The categories as `adult.names` lists and spells them."""


def adult(path: str | os.PathLike[str] | None = None) -> Stream:
    """Does a person earn more than 50,000 dollars a year (+1) or not (-1)? 32,561 rows of the 1994 census survey.

    The training part of the Adult data set, in the order of the file: 5 numbers and 7 one-hot groups, 88 features.
    Nothing is computed from the rows, neither means nor lists of categories, so the bounds are public:

    - A category counts as published in `adult.names`; `?` (missing) and anything else leave the group at zero.
      A group has norm at most 1.
    - A number is clipped to a published range and mapped into [-1, 1]; amounts of money into [0, 1], on the scale of
      log(1 + amount). Age is 17 to 90: the set was extracted with age > 16, and the survey then recorded 90 for
      everybody older. Hours are 1 to 99: extracted with hours > 0, recorded in two digits. Capital gains and
      losses are 0 to 99,999: recorded in five digits. Education is 1 to 16, the number of levels in `adult.names`.
    - Everything is divided by sqrt(7 + 5), so that no row is longer than 1.

    The final weight `fnlwgt` is left out, because it describes the survey and not the person; the name of the
    education level, because its number says the same.

    Parameters
    ----------
    path : path, optional
        The file `adult.data`, gzipped or not. If left out, it is looked for in the folder that the environment variable
        `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and downloaded into the cache the first time.

    Notes
    -----
    Source: Barry Becker and Ronny Kohavi, *Adult*, UCI Machine Learning Repository, 1996, doi 10.24432/C5XW20.
    Licence: Creative Commons Attribution 4.0 (CC BY 4.0).

    Examples
    --------
    `adult()` reads the full set. A line of it becomes

    >>> from taciturn.datasets.adult import parse
    >>> line = "90, ?, 1, HS-grad, 9, Widowed, ?, Unmarried, Other, Female, 0, 0, 99, Peru, <=50K"
    >>> stream = parse([line])
    >>> {name: round(float(x), 2) for name, x in zip(stream.names, stream.X[0], strict=True) if x}
    {'age': 0.29, 'education-num': 0.02, 'hours-per-week': 0.29, 'marital-status=Widowed': 0.29,
     'relationship=Unmarried': 0.29, 'race=Other': 0.29, 'sex=Female': 0.29, 'native-country=Peru': 0.29}
    >>> stream.y, stream.feature_bound
    (array([-1.]), 1.0)
    """
    file = find("adult.data", URL, "adult.data.gz") if path is None else Path(path)
    with copy_of("UCI's adult.data", file, URL):
        return complete(parse(text(file, "adult.data").splitlines()))


def parse(lines: Iterable[str]) -> Stream:
    """The lines of `adult.data` as a stream, however many; empty ones are skipped.

    >>> parse(["30, Private, 1, 10th, 6, Divorced, Sales, Wife, Black, Male, 0, 0, 40, Cuba, >50K", ""]).X.shape
    (1, 88)
    """
    rows = [record(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    groups = {name: tuple(published.split()) for name, published in CATEGORIES.items()}
    numbers = [scaled(name, [row[name] for row in rows])[:, None] for name in RANGES]
    one_hot = [indicators([row[name] for row in rows], values) for name, values in groups.items()]
    X = np.hstack(numbers + one_hot) / np.sqrt(len(numbers) + len(one_hot))
    y = np.array([LABELS[row["income"]] for row in rows])
    names = (*RANGES, *(f"{name}={value}" for name, values in groups.items() for value in values))
    return Stream(X, y, names, feature_bound=1.0, label_bound=1.0)


def record(number: int, line: str) -> dict[str, str]:
    """The fields of line `number` by name. An error names the line and does not repeat it, as it is about a person."""
    values = [value.strip() for value in line.split(",")]
    columns = COLUMNS.split()
    if len(values) != len(columns):
        raise InvalidInput(f"line {number} has {len(values)} fields separated by commas, not {len(columns)}.")
    row = dict(zip(columns, values, strict=True))
    if row["income"] not in LABELS:
        raise InvalidInput(f"line {number} does not end in one of {', '.join(LABELS)}.")
    for name in RANGES:
        if not row[name].isdecimal():
            raise InvalidInput(f"line {number} has no integer for {name}.")
    return row


def scaled(name: str, texts: Sequence[str]) -> Array:
    """Numbers clipped to their published range, which is mapped to [-1, 1], or by its logarithm to [0, 1]."""
    low, high = RANGES[name]
    values: Array = np.clip(np.array([float(text) for text in texts]), low, high)
    share: Array = np.log1p(values) / np.log1p(high) if name in LOGARITHMIC else (values - low) / (high - low)
    return share if name in LOGARITHMIC else 2.0 * share - 1.0


def complete(stream: Stream) -> Stream:
    """The stream, if it has as many rows and positive labels as UCI's file."""
    positives = int((stream.y > 0).sum())
    if (len(stream), positives) != (ROWS, POSITIVES):
        raise InvalidInput(
            f"it has {len(stream):,} rows, {positives:,} of them >50K, and should have {ROWS:,} and {POSITIVES:,}."
        )
    return stream
