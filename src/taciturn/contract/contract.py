"""A contract: everything that is stated about a stream in public, before a row of it is read.

From it follow the features, the labels, the bounds and the plan. Rows are read by it (`taciturn.readers.rows`), and
two runs under one contract read a row alike. It is stated in a file:

```toml
[privacy]
epsilon = 1.0                        # total, of everything published
delta = 1e-6                         # 1e-6 if left out
neighbours = "replace"               # or "zero-out"

[target]
column = "Cover_Type"
positive = [2]                       # these against the rest; or classes = [1, 2, 7]; or range = [0, 10] for numbers

[learning]
loss = "logistic"                    # or hinge; for numbers squared, absolute, huber, quantile
horizon = 581012                     # leave out for a stream without end

[columns]
Elevation = { range = [1859, 3858] }
Wilderness = { categories = [0, 1, 2, 3] }
ip = { hash = 256 }
note = { ignore = true }
```

**Feature bound.** If none is stated, the longest row that the columns allow, `sqrt(n)` for n columns that are not
ignored (`taciturn.contract.columns`): then no row is ever scaled down. A smaller one makes the noise smaller and
shortens long rows. On Covertype, twelve columns, class 2 against the rest, 522,911 rows, delta = 1e-6: 75.2 % at
epsilon 1 and 72.8 % at .1 with the default 3.46; 75.5 % and 74.1 % with any bound from 1 to 2.3, the typical length of
a row.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from taciturn._util.arrays import Array
from taciturn.accounting.gdp import Privacy
from taciturn.contract.columns import Bad, Column, Ignored
from taciturn.contract.target import Target
from taciturn.contract.toml import KINDS, Section, column_of, read_toml, refuse_blanks, release_of, target_of
from taciturn.contract.values import Values
from taciturn.errors import InvalidInput, integer, number
from taciturn.estimators.settings import LossName, MethodName, Settings
from taciturn.learners.exact_sums import MOST
from taciturn.plan import Plan


@dataclass(frozen=True)
class Contract:
    """What is declared; read one from a file with `read_contract`.

    Parameters
    ----------
    epsilon, delta, neighbours
        The total budget of everything that the stream publishes, and what one person may change.
    target : Classes, Positive or Number
        What is predicted.
    columns : tuple of columns
        In the order of their features.
    loss, method, release, horizon, radius, ridge, quantile, huber_width
        As in `taciturn.estimators.settings.Settings`.
    stated_bound : float, optional
        The feature bound, if it was stated.
    intercept : bool
        Whether models have one.

    Examples
    --------
    >>> from taciturn.contract.columns import Categories, Range
    >>> from taciturn.contract.target import Positive
    >>> columns = (Range("age", 0.0, 100.0), Categories("town", ("Oslo", "Rome")))
    >>> contract = Contract(1.0, Positive("bought", ("yes",)), columns, horizon=10_000)
    >>> contract.dimension, contract.feature_names, round(contract.feature_bound, 3)
    (3, ('age', 'town=Oslo', 'town=Rome'), 1.414)
    >>> contract.plan().method
    'pftrl'
    """

    epsilon: float
    target: Target
    columns: tuple[Column, ...]
    delta: float = 1e-6
    neighbours: Literal["replace", "zero-out"] = "replace"
    loss: LossName = "logistic"
    method: MethodName = "auto"
    release: str | int = "auto"
    horizon: int | None = None
    stated_bound: float | None = None
    radius: float | None = None
    ridge: float | None = None
    intercept: bool = True
    quantile: float = 0.5
    huber_width: float | None = None

    def __post_init__(self) -> None:
        names = [self.target.column, *(column.name for column in self.columns)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInput(f"{twice[0]} is declared twice. The target is no feature: take it out of [columns].")
        if not self.read:
            raise InvalidInput("no column is left to learn from. State the range of one under [columns].")
        if len(set(self.feature_names)) < self.dimension:
            raise InvalidInput("two features have the same name, as town=Oslo would of two columns. Rename a column.")
        privacy = Privacy(self.epsilon, self.delta)
        object.__setattr__(self, "epsilon", privacy.epsilon)
        object.__setattr__(self, "delta", privacy.delta)
        for name in ("stated_bound", "radius", "ridge", "quantile", "huber_width"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, number(name, value))
        for name in ("horizon", "release"):
            if (value := getattr(self, name)) is not None and not (name == "release" and isinstance(value, str)):
                object.__setattr__(self, name, integer(name, value))
        if (self.loss in ("logistic", "hinge")) != bool(self.target.names):
            has, fit = ("classes", "logistic or hinge") if self.target.names else ("a range", "squared or absolute")
            raise InvalidInput(f"the target {self.target.column} has {has}; learning.loss is {self.loss}. Use {fit}.")

    @cached_property
    def read(self) -> tuple[Column, ...]:
        """The columns that are not ignored."""
        return tuple(column for column in self.columns if not isinstance(column, Ignored))

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return sum(column.width for column in self.read)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(name for column in self.read for name in column.names)

    @property
    def feature_bound(self) -> float:
        """Longest row: as stated, or the longest that the columns allow."""
        return math.sqrt(len(self.read)) if self.stated_bound is None else self.stated_bound

    def request(self, on_bad: Literal["raise", "zero"] = "raise", seed: int | None = None) -> Settings:
        """The same, as the front doors state it."""
        return Settings(
            self.loss,
            epsilon=self.epsilon,
            delta=self.delta,
            feature_bound=self.feature_bound,
            label_bound=self.target.label_bound,
            classes=len(self.target.names),
            fit_intercept=self.intercept,
            method=self.method,
            release=self.release,
            radius=self.radius,
            ridge=self.ridge,
            quantile=self.quantile,
            huber_width=self.huber_width,
            neighbours=self.neighbours,
            on_bad=on_bad,
            seed=seed,
        )

    def plan(self, on_bad: Literal["raise", "zero"] = "raise", seed: int | None = None) -> Plan:
        """How to learn."""
        if self.horizon is not None and self.horizon > MOST and self.method not in ("igd", "giga"):
            raise InvalidInput(
                f"learning.horizon is {self.horizon:,}, and sums are exact up to {MOST:,} rows. Take a horizon of at "
                'most that and begin a new run after it, which spends as much again; or set method = "giga", which has '
                "no such limit."
            )
        return self.request(on_bad, seed).plan(self.dimension, self.horizon)

    def encode_labels(self, values: Values) -> tuple[Array, Bad]:
        """Labels as the plan's problem wants them, and which of them are bad."""
        return self.target.encode(values)

    def decode_predictions(self, scores: Array) -> NDArray[Any]:
        """Classes as they were declared, or numbers within the target's range."""
        return self.target.decode(scores)

    @property
    def declared(self) -> dict[str, Any]:
        """The contract as plain data, as `contract_of` takes it."""
        learning = {
            "loss": self.loss,
            "method": self.method,
            "release": self.release,
            "horizon": self.horizon,
            "feature_bound": self.stated_bound,
            "radius": self.radius,
            "ridge": self.ridge,
            "intercept": self.intercept,
            "quantile": self.quantile if self.loss == "quantile" else None,
            "huber_width": self.huber_width,
        }
        return {
            "privacy": {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours},
            "target": self.target.declared(),
            "learning": {key: value for key, value in learning.items() if value is not None},
            "columns": {column.name: column.declared() for column in self.columns},
        }

    @property
    def digest(self) -> str:
        """A hash of what is declared: two contracts have the same if they declare the same, in the same order."""
        text = json.dumps(self.declared, ensure_ascii=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def guarantee(self, plan: Plan) -> str:
        """What everyone may know, and what nobody can find out, in a few sentences."""
        return (
            f"{plan.private.guarantee} Public is also this contract: the names of the columns, their ranges and "
            "categories, the target's classes or range, and the settings."
        )


def read_contract(path: str | os.PathLike[str]) -> Contract:
    """The contract of a file, or a refusal that names the key.

    >>> read_contract("nowhere.toml")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: nowhere.toml cannot be read: No such file or directory. Draft a contract with taciturn
    init.
    """
    return contract_of(read_toml(path))


def contract_of(data: dict[str, Any]) -> Contract:
    """The contract that plain data declares.

    >>> data = {
    ...     "privacy": {"epsilon": 1.0},
    ...     "target": {"column": "bought", "classes": ["no", "yes"]},
    ...     "columns": {"age": {"range": [0, 100]}},
    ... }
    >>> contract_of(data).feature_names
    ('age',)
    """
    refuse_blanks(data)
    whole = Section("", data)
    privacy, target, learning = (whole.section(name) for name in ("privacy", "target", "learning"))
    columns = whole.section("columns").data
    if not columns:
        raise InvalidInput(f"[columns] is missing or empty. Declare each column of the data: {KINDS}.")
    aim = target_of(target)
    contract = Contract(
        epsilon=privacy.number("epsilon", remedy="State the total budget, as in epsilon = 1.0."),
        delta=privacy.number("delta", 1e-6),
        neighbours=privacy.choice("neighbours", ("replace", "zero-out"), "replace"),
        target=aim,
        columns=tuple(column_of(name, declared) for name, declared in columns.items()),
        loss=learning.choice("loss", get_args(LossName), "logistic" if aim.names else "squared"),
        method=learning.choice("method", get_args(MethodName), "auto"),
        release=release_of(learning),
        horizon=learning.integer("horizon"),
        stated_bound=learning.positive("feature_bound"),
        radius=learning.positive("radius"),
        ridge=learning.positive("ridge"),
        intercept=learning.flag("intercept", True),
        quantile=learning.number("quantile", 0.5),
        huber_width=learning.positive("huber_width"),
    )
    for section in (whole, privacy, target, learning):
        section.close()
    return contract
