"""A contract: the public description of a stream, stated before its first row is read.

The features, the labels, the bounds and the plan follow from it. Rows are read as it declares
(`taciturn.readers.rows`): two runs under one contract read a row in the same way. It is stated in a file:

```toml
[privacy]
epsilon = 1.0                        # total, of everything published
delta = 1e-6                         # 1e-6 if left out
neighbours = "replace"               # or "zero-out"; or "label", if all features are public
user = "customer_id"                 # the column of ids: protect users; without it, the unit is a row
rows_per_user = 4                    # rows of a user that count; later ones have no influence

[target]
column = "Cover_Type"
positive = [2]                       # these against the rest; or classes = [1, 2, 7]; or range = [0, 10] for numbers

[learning]
loss = "logistic"                    # or hinge; for numbers squared, absolute, huber, quantile
horizon = 581012                     # without it most methods end at 2^23 rows
features = "random"                  # or a number of random features; without it, models are linear in the columns

[columns]
Elevation = { range = [1859, 3858] }
Slope = { range = "private" }        # found in the first rows, at no further cost
Income = { range = [1, 1e7], scale = "log", missing = 1000, indicator = true }
Surveyed = { date = ["2015-01-01", "2030-01-01"], cycle = ["weekday", "month"] }
Wilderness = { categories = [0, 1, 2, 3] }
ip = { hash = 256 }
note = { ignore = true }

[events]                             # in a service: labels come after their rows (`taciturn.contract.events`)
wait = "10 minutes"
missing = "no row"
```

The default of the feature bound is that of `taciturn.columns.encoder`.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.bandits.private_bandit import JOINT
from taciturn.columns.declaration import KINDS, Section, column_of, target_of
from taciturn.columns.encoder import ColumnEncoder
from taciturn.columns.kinds import Bad, Column
from taciturn.columns.target import Target
from taciturn.columns.values import Values, unreadable_rows
from taciturn.contract.bandit import Bandit, bandit_of
from taciturn.contract.events import Events, events_of
from taciturn.contract.toml import (
    FeatureChoice,
    features_declared,
    features_of,
    forget_of,
    period_of,
    read_toml,
    reject_blanks,
    release_of,
)
from taciturn.errors import InvalidInput, horizon_of, integer, number
from taciturn.estimators.settings import LossName, MethodName, Settings, check_dense, scales_of
from taciturn.estimators.stream import promised
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import ClockPeriod, Neighbours, WithoutId
from taciturn.kernel.arrays import Array
from taciturn.kernel.learners.exact_sums import MOST
from taciturn.kernel.problem.problem import Problem
from taciturn.plan import Forget, Plan
from taciturn.tables.column_maps import LinearMap
from taciturn.tables.random_features import RandomFeatures


@dataclass(frozen=True)
class Contract:
    """The declared settings of a stream; `read_contract` reads them from a file.

    Parameters
    ----------
    epsilon, delta, neighbours
        The total budget of everything that the stream publishes, and the neighbour relation.
    user : str, optional
        The column that holds the id of the user whose row it is.
    rows_per_user, rows_per_release, apart, period, without_id
        How many rows of a user count, as in `taciturn.User`. Without `rows_per_user` the unit of privacy is a row, and
        the ids serve only to show what users are promised (`taciturn check`).
    target : Classes, Positive or Number
        The column to predict.
    columns : tuple of columns
        In the order of their features.
    loss, method, release, horizon, features, radius, ridge, quantile, huber_width
        As in `taciturn.estimators.settings.Settings`; random features have the length of the feature bound.
    stated_bound : float, optional
        The feature bound, if it is stated.
    intercept : bool
        Whether models have an intercept.
    precondition : bool
        Whether a map that spreads features evenly is found first.
    forget : int, tuple of int or "auto", optional
        A window in rows, after which a row counts less by a factor of e; or several, as in `taciturn.memories`.
    events : Events, optional
        How labels come later, in a service.
    bandit : Bandit, optional
        Which actions are chosen among, in a service: then the target is the reward.

    Examples
    --------
    >>> from taciturn.columns.kinds import Categories, Range
    >>> from taciturn.columns.target import Positive
    >>> columns = (Range("age", 0.0, 100.0), Categories("town", ("Oslo", "Rome")))
    >>> contract = Contract(1.0, Positive("bought", ("yes",)), columns, horizon=10_000)
    >>> contract.dimension, contract.feature_names, round(contract.feature_bound, 3)
    (3, ('age', 'town=Oslo', 'town=Rome'), 1.39)
    >>> contract.plan().method
    'pftrl'
    """

    epsilon: float
    target: Target
    columns: tuple[Column, ...]
    delta: float = 1e-6
    neighbours: Neighbours = "replace"
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
    user: str | None = None
    rows_per_user: int | None = None
    rows_per_release: int | None = None
    apart: int = 1
    period: int | ClockPeriod | None = None
    without_id: WithoutId = "bad"
    features: FeatureChoice = "linear"
    precondition: bool = False
    forget: Forget | None = None
    events: Events | None = None
    bandit: Bandit | None = None

    def __post_init__(self) -> None:
        names = [self.target.column, *(column.name for column in self.columns)]
        if self.user is not None and self.user in (self.target.column, *(column.name for column in self.read)):
            raise InvalidInput(
                f"{self.user} holds the ids of users (privacy.user), and cannot be the target or a feature as well. "
                "Remove it from [columns], or name another column."
            )
        if self.rows_per_user is not None and self.user is None:
            raise InvalidInput(
                "privacy.rows_per_user bounds the rows of a user, and no column of ids is named. State the column, as "
                'in user = "customer_id", or remove rows_per_user.'
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInput(f"{twice[0]} is declared twice. The target is not a feature: remove it from [columns].")
        if not self.read:
            raise InvalidInput("no column is left to learn from. State the range of one under [columns].")
        if len(set(self.feature_names)) < self.dimension:
            raise InvalidInput("two features have the same name, such as town=Oslo from two columns. Rename a column.")
        if self.precondition and self.features != "linear":
            raise InvalidInput(
                "learning.precondition is for models that are linear in the columns, and learning.features is "
                f"{features_declared(self.features)}. Remove one of the two."
            )
        if self.events is not None:
            self.events.check(self.target)
        if self.bandit is not None:
            self.bandit.check(self)
        privacy = Privacy(self.epsilon, self.delta)
        object.__setattr__(self, "epsilon", privacy.epsilon)
        object.__setattr__(self, "delta", privacy.delta)
        for name in ("stated_bound", "radius", "ridge", "quantile", "huber_width"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, number(name, value))
        for name in ("horizon", "release", "forget", "rows_per_user", "rows_per_release", "apart", "period"):
            named = name in ("release", "period", "forget") and isinstance(getattr(self, name), str | tuple)
            if (value := getattr(self, name)) is not None and not named:
                of_rounds = name in ("horizon", "release")
                object.__setattr__(self, name, horizon_of(value, name) if of_rounds else integer(name, value))
        if isinstance(self.features, RandomFeatures):
            object.__setattr__(self, "features", replace(self.features, length=self.feature_bound))
        if (self.loss in ("logistic", "hinge")) != bool(self.target.names):
            has, fit = ("classes", "logistic or hinge") if self.target.names else ("a range", "squared or absolute")
            raise InvalidInput(f"the target {self.target.column} has {has}; learning.loss is {self.loss}. Use {fit}.")

    @cached_property
    def encoder(self) -> ColumnEncoder:
        """How the columns become features."""
        return ColumnEncoder(self.columns, tuple(column.name for column in self.columns))

    @property
    def read(self) -> tuple[Column, ...]:
        """The columns that are not ignored."""
        return self.encoder.read

    @property
    def dimension(self) -> int:
        """Number of features."""
        return self.encoder.dimension

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return self.encoder.feature_names

    @property
    def feature_bound(self) -> float:
        """Largest norm of a row: as stated, or by the rule of `taciturn.columns.encoder`."""
        return self.encoder.feature_bound(bool(self.target.names)) if self.stated_bound is None else self.stated_bound

    @property
    def found(self) -> tuple[int, ...]:
        """The features whose ranges are found privately."""
        return self.encoder.found

    def settings(self, on_bad: Literal["raise", "zero"] = "raise", seed: int | None = None) -> Settings:
        """The same settings, as the estimators take them."""
        return Settings(
            self.loss,
            epsilon=self.epsilon,
            delta=self.delta,
            feature_bound=self.feature_bound,
            label_bound=self.target.label_bound,
            classes=len(self.target.names),
            class_weight=self.target.class_weight,
            fit_intercept=self.intercept,
            method=self.method,
            release=self.release,
            radius=self.radius,
            ridge=self.ridge,
            quantile=self.quantile,
            huber_width=self.huber_width,
            neighbours=self.neighbours,
            rows_per_user=self.rows_per_user,
            rows_per_release=self.rows_per_release,
            apart=self.apart,
            period=self.period,
            without_id=self.without_id,
            features=self.features,
            ranges=self.found or None,
            precondition=self.precondition,
            forget=self.forget,
            scales=scales_of(self.encoder.groups),
            on_bad=on_bad,
            seed=seed,
        )

    def plan(
        self, on_bad: Literal["raise", "zero"] = "raise", seed: int | None = None, workers: int | None = None
    ) -> Plan:
        """The plan that follows from these settings; with `workers`, one that these can learn.

        A run's plan has no workers: what is published does not depend on their number. Where the two plans differ,
        state the release of the second one in the contract.
        """
        if self.horizon is not None and self.horizon > MOST and self.method not in ("igd", "giga"):
            raise InvalidInput(
                f"learning.horizon is {self.horizon:,}, but sums are exact only up to {MOST:,} rows. Use a horizon "
                'of at most that and start a new run afterwards, which spends the budget again; or set method = "giga"'
                ", which has no such limit."
            )
        if self.bandit is not None:
            return self.bandit.plan(self, seed)
        check_dense(self.encoder, self.method)
        self.weight_names  # noqa: B018, rejects names that are used twice
        return self.settings(on_bad, seed).plan(self.dimension, self.horizon, workers=workers)

    @cached_property
    def problem(self) -> Problem:
        """The problem that is learnt, for predictions: bad rows have the score 0."""
        if self.bandit is not None:
            return self.bandit.plan(self).private.problem
        return self.settings(on_bad="zero").problem(self.dimension, self.horizon)

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """Names of the features that have weights: those above or, with random features, those and these.

        After preconditioning they are directions, each a mixture of all features.
        """
        if self.precondition:
            return tuple(LinearMap(np.eye(self.dimension)).names(self.feature_names))
        features = self.problem.features
        names = self.feature_names if features is None else tuple(features.names(self.feature_names))
        if len(set(names)) < len(names):
            raise InvalidInput("a feature has the name of a random one, such as cos 1. Rename its column.")
        return names

    def encode_labels(self, values: Values) -> tuple[Array, Bad]:
        """Labels as the plan's problem takes them, and a mask of the bad ones."""
        y, bad = self.target.encode(values)
        return y, bad | unreadable_rows(values, len(bad))

    def decode_predictions(self, scores: Array) -> NDArray[Any]:
        """Predictions: classes as declared, or numbers within the target's range."""
        return self.target.decode(scores)

    @property
    def declared(self) -> dict[str, Any]:
        """The contract as plain data, in the form that `contract_of` takes."""
        learning = {
            "loss": self.loss,
            "method": self.method,
            "release": self.release,
            "horizon": self.horizon,
            "features": features_declared(self.features),
            "precondition": self.precondition or None,
            "forget": list(self.forget) if isinstance(self.forget, tuple) else self.forget,
            "feature_bound": self.stated_bound,
            "radius": self.radius,
            "ridge": self.ridge,
            "intercept": self.intercept,
            "quantile": self.quantile if self.loss == "quantile" else None,
            "huber_width": self.huber_width,
        }
        users = {
            "user": self.user,
            "rows_per_user": self.rows_per_user,
            "rows_per_release": self.rows_per_release,
            "apart": self.apart if self.apart != 1 else None,
            "period": self.period,
            "without_id": self.without_id if self.without_id != "bad" else None,
        }
        users = {key: value for key, value in users.items() if value is not None}
        return {
            "privacy": {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours, **users},
            "target": self.target.declared(),
            "learning": {key: value for key, value in learning.items() if value is not None},
            "columns": {column.name: column.declared() for column in self.columns},
            **({} if self.events is None else {"events": self.events.declared()}),
            **({} if self.bandit is None else {"bandit": self.bandit.declared()}),
        }

    @property
    def digest(self) -> str:
        """A hash of the declaration: equal if two contracts declare the same, in the same order."""
        text = json.dumps(self.declared, ensure_ascii=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def model_digest(self) -> str:
        """A hash of what the weights of a model mean: equal if they belong to the same features, target and bounds."""
        declared = self.declared
        means = {"target": declared["target"], "columns": declared["columns"], "intercept": self.intercept}
        means |= {"feature_bound": self.feature_bound.hex(), "features": declared["learning"].get("features")}
        means |= {} if self.bandit is None else {"actions": declared["bandit"]["actions"]}
        text = json.dumps(means, ensure_ascii=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def guarantee(self, plan: Plan) -> str:
        """The privacy guarantee and what is public, in a few sentences."""
        joint = "" if self.bandit is None else f" {JOINT.format(epsilon=self.epsilon, delta=self.delta)}"
        return (
            f"{promised(plan)}{joint} Public is also this contract: the names of the columns, their ranges and "
            "categories, the target's classes or range, and the settings."
        )


def read_contract(path: str | os.PathLike[str]) -> Contract:
    """Read a contract file; an error names the key.

    >>> read_contract("nowhere.toml")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: nowhere.toml cannot be read: No such file or directory. Draft a contract with taciturn
    init.
    """
    return contract_of(read_toml(path))


def contract_of(data: dict[str, Any]) -> Contract:
    """The contract that plain data declares, such as parsed TOML.

    >>> data = {
    ...     "privacy": {"epsilon": 1.0},
    ...     "target": {"column": "bought", "classes": ["no", "yes"]},
    ...     "columns": {"age": {"range": [0, 100]}},
    ... }
    >>> contract_of(data).feature_names
    ('age',)
    """
    reject_blanks(data)
    root = Section("", data)
    privacy, target, learning = (root.section(name) for name in ("privacy", "target", "learning"))
    columns = root.section("columns").data
    if not columns:
        raise InvalidInput(f"[columns] is missing or empty. Declare each column of the data: {KINDS}.")
    predicted = target_of(target)
    contract = Contract(
        epsilon=privacy.number("epsilon", remedy="State the total budget, as in epsilon = 1.0."),
        delta=privacy.number("delta", 1e-6),
        neighbours=privacy.choice("neighbours", get_args(Neighbours), "replace"),
        user=privacy.text("user", "Name the column of ids.") if "user" in privacy.data else None,
        rows_per_user=privacy.integer("rows_per_user"),
        rows_per_release=privacy.integer("rows_per_release"),
        apart=privacy.integer("apart") or 1,
        period=period_of(privacy),
        without_id=privacy.choice("without_id", get_args(WithoutId), "bad"),
        target=predicted,
        columns=tuple(column_of(name, declared) for name, declared in columns.items()),
        loss=learning.choice("loss", get_args(LossName), "logistic" if predicted.names else "squared"),
        method=learning.choice("method", get_args(MethodName), "auto"),
        release=release_of(learning),
        horizon=learning.integer("horizon"),
        features=features_of(learning),
        precondition=learning.flag("precondition", False),
        forget=forget_of(learning),
        stated_bound=learning.positive("feature_bound"),
        radius=learning.positive("radius"),
        ridge=learning.positive("ridge"),
        intercept=learning.flag("intercept", True),
        quantile=learning.number("quantile", 0.5),
        huber_width=learning.positive("huber_width"),
        events=events_of(root),
        bandit=bandit_of(root),
    )
    for section in (root, privacy, target, learning):
        section.close()
    return contract
