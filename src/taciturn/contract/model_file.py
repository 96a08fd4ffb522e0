"""`model.json`: the latest model, its contract, and the privacy that was spent. All of it is public.

Weights belong to the features as the contract encodes them and, if `features` is not null, to random features of these
(`taciturn.RandomFeatures`, with this count, scale and public seed). The score of a row is the inner product of
the weights and the row, clipped to `feature_bound`, plus the weight of the intercept times its constant. Numbers are
written so that reading them back gives the same bits.

Of a stream with `[bandit]` there is a score for each action, or one for all: features are first scaled to a norm of at
most 1 with the intercept, the score is the expected reward, centred to [-1, 1], and `matrix` is svec(V)
(`taciturn.LinearBandit`).

`found` has what the first rows were used to find, or null: the center and the scale of columns, in whose units values
are learnt, clipped at `limit`; the rows of a matrix that features are multiplied with; and the center and the scale of
the target, in whose units scores are. All of it is published with noise, like the weights.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from taciturn.columns.declaration import Section
from taciturn.columns.labels import probabilities
from taciturn.contract.contract import Contract, contract_of
from taciturn.contract.toml import features_declared, features_of
from taciturn.errors import InvalidInput
from taciturn.kernel.accounting.cost import Spent
from taciturn.kernel.accounting.guarantee import RestsOn
from taciturn.kernel.arrays import Array
from taciturn.kernel.atomic import replaced
from taciturn.kernel.problem.features import Chain
from taciturn.kernel.problem.problem import Problem
from taciturn.streams.private_stream import PrivateStream
from taciturn.tables.column_maps import LinearMap, Standardise

FORMAT = "taciturn model 1"


class Found(NamedTuple):
    """What stages have found: how columns are standardised, a map of features, and center and scale of the target."""

    standardise: Standardise | None
    mixed: LinearMap | None
    center: float
    scale: float

    def added_to(self, problem: Problem) -> Problem:
        """The problem with these maps before and behind its own."""
        maps = [each for each in (self.standardise, problem.features, self.mixed) if each is not None]
        features = None if not maps else maps[0] if len(maps) == 1 else Chain(tuple(maps))
        return replace(problem, features=features, label_center=self.center, label_scale=self.scale)

    def as_data(self, contract: Contract) -> dict[str, Any]:
        """As in the file."""
        columns: dict[str, Any] = {}
        if self.standardise is not None:
            for j, center, scale in zip(contract.found, self.standardise.center, self.standardise.scale, strict=True):
                columns[contract.feature_names[j]] = {"center": float(center), "scale": float(scale)}
        return {
            "columns": columns,
            "limit": None if self.standardise is None else np.asarray(self.standardise.limit).tolist(),
            "matrix": None if self.mixed is None else self.mixed.matrix.tolist(),
            "target": {"center": self.center, "scale": self.scale},
        }


def found_in(problem: Problem) -> Found | None:
    """What was found, out of the problem with which a stream predicts; None if there is nothing."""
    features = problem.features
    maps = features.maps if isinstance(features, Chain) else () if features is None else (features,)
    standardise = next((each for each in maps if isinstance(each, Standardise)), None)
    mixed = next((each for each in maps if isinstance(each, LinearMap)), None)
    center, scale = problem.label_center, problem.label_scale
    if standardise is None and mixed is None and (center, scale) == (0.0, 1.0):
        return None
    return Found(standardise, mixed, center, scale)


def _found(contract: Contract, file: Section) -> Found | None:
    """What the file says was found, validated."""
    if file.take("found") is None:
        return None
    section = file.section("found")
    columns, target = section.section("columns"), section.section("target")
    limit, matrix = section.take("limit"), section.take("matrix")
    standardise = mixed = None
    try:
        if limit is not None:
            each = [columns.section(contract.feature_names[j]) for j in contract.found]
            center = np.array([one.number("center") for one in each])
            scale = np.array([one.number("scale") for one in each])
            standardise = Standardise(center, scale, np.array(limit, dtype=np.float64), contract.found)
        if matrix is not None:
            mixed = LinearMap(np.array(matrix, dtype=np.float64).reshape(contract.dimension, contract.dimension))
    except (ValueError, TypeError):
        raise InvalidInput("found.matrix must have a row of numbers for each feature: use an intact file.") from None
    made = Found(standardise, mixed, target.number("center"), target.number("scale"))
    for part in (section, columns, target):
        part.close()
    return made


@dataclass(frozen=True, eq=False)
class Model:
    """A released model and its contract.

    Attributes
    ----------
    contract : Contract
        How rows are read, and the problem that was learnt.
    point : ndarray
        Weights, the intercept's last; for more than two classes, the weights of each class, concatenated.
    round, releases : int
        Round of the last release, 0 if there is none, and the number of releases. Rows after that round are not
        counted: they have no part in the model, and their number would tell where learning stopped, which may depend on
        a bad row.
    spent : Spent
        Epsilon, rounded up, and delta.
    guarantee : str
        The guarantee in words.
    simulated : bool
        Whether the noise came from a seed: then the model is not private.
    delivered_epsilon : dict
        What the noise delivers at the contract's delta, by neighbour relation; None where there is no finite epsilon.
    found : Found, optional
        What stages have found before the model was learnt.
    rests_on : {"enforced", "proven", "unverified", ""}
        What the guarantee's bound on a row rests on (`taciturn.Guarantee`); empty in the file of an earlier version.

    Examples
    --------
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"age": {"range": [0, 100]}}})
    >>> model = Model(contract, np.array([1.0, -0.5]), 100, 3, Spent(1.0, 1e-6), "...", False)
    >>> model.contract.decode_predictions(model.scores([[0.9], [-0.2]])).tolist()
    ['yes', 'rest']
    """

    contract: Contract
    point: Array
    round: int
    releases: int
    spent: Spent
    guarantee: str
    simulated: bool
    delivered_epsilon: dict[str, float | None] = field(default_factory=dict)
    found: Found | None = None
    rests_on: str = ""

    @cached_property
    def problem(self) -> Problem:
        """The problem that was learnt; bad rows have the score 0."""
        problem = self.contract.problem
        return problem if self.found is None else self.found.added_to(problem)

    def scores(self, X: Any) -> Array:
        """Scores of encoded rows."""
        if self.contract.bandit is not None:
            raise InvalidInput("this model chooses actions, and predicts nothing else. Ask POST /v1/streams/{s}/rank.")
        return self.problem.predict(self.point, X)

    def probabilities(self, scores: Array) -> Array:
        """A row of probabilities for each row of scores, in the order of the target's classes."""
        return probabilities(self.problem, scores)

    def as_data(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": FORMAT,
            "guarantee": self.guarantee,
            "delivered_epsilon": self.delivered_epsilon,
            "rests_on": self.rests_on,
            "simulated": self.simulated,
            "spent": {"epsilon": _finite(self.spent.epsilon), "delta": self.spent.delta},
            "round": self.round,
            "releases": self.releases,
            "feature_bound": self.contract.feature_bound,
            "features": features_declared(self.contract.problem.features),
            "found": None if self.found is None else self.found.as_data(self.contract),
            "scores": self._scores(),
            "contract": self.contract.declared,
        }

    def _scores(self) -> list[dict[str, Any]]:
        if self.contract.bandit is not None:
            return self._actions()
        names = self.contract.target.names
        dimension = self.problem.mapped_dimension
        rows = self.point.reshape(self.problem.outputs, self.problem.width)
        whose = names if len(rows) > 1 else [names[-1] if names else self.contract.target.column]
        return [
            {
                "of": of,
                "weights": dict(zip(self.contract.weight_names, row[:dimension].tolist(), strict=True)),
                "intercept": {"constant": self.problem.intercept, "weight": float(row[dimension:].sum())},
            }
            for of, row in zip(whose, rows, strict=True)
        ]

    def _actions(self) -> list[dict[str, Any]]:
        """Theta and V of each action, or of all of them."""
        d = self.contract.dimension
        bandit = self.contract.bandit
        assert bandit is not None
        blocks = self.point.reshape(bandit.models, -1)
        whose = [self.contract.target.column] if bandit.actions is None else bandit.actions
        width = self.problem.width
        return [
            {
                "of": of,
                "weights": dict(zip(self.contract.feature_names, block[-width:].tolist()[:d], strict=True)),
                "intercept": {
                    "constant": self.problem.intercept,
                    "weight": float(block[-1]) if width > d else 0.0,
                },
                "matrix": block[:-width].tolist(),
            }
            for of, block in zip(whose, blocks, strict=True)
        ]


def model_of(
    contract: Contract,
    stream: PrivateStream,
    spent: Spent | None = None,
    guarantee: str | None = None,
    delivered_epsilon: dict[str, float | None] | None = None,
) -> Model:
    """The current model of a stream that learns under this contract.

    `spent`, `guarantee` and `delivered_epsilon` are those of the published sequence, by default of this stream alone.
    """
    guarantee = guarantee or contract.guarantee(stream.plan)
    simulated = stream.plan.private.seed is not None
    last = (stream.plan.private.timetable.due(stream.k) or 0) if stream.k else 0
    if delivered_epsilon is None:
        delivered_epsilon = stream.plan.private.guarantee.as_data()
    spent = spent or stream.spent
    found = found_in(stream.problem) if stream.k else None
    rests_on = stream.plan.private.guarantee.rests_on
    return Model(
        contract, stream.model, last, stream.k, spent, guarantee, simulated, delivered_epsilon, found, rests_on
    )


def write_model(
    path: str | os.PathLike[str],
    contract: Contract,
    stream: PrivateStream,
    spent: Spent | None = None,
    guarantee: str | None = None,
    delivered_epsilon: dict[str, float | None] | None = None,
) -> None:
    """Write the current model by an atomic write; the parameters are those of `model_of`."""
    model = model_of(contract, stream, spent, guarantee, delivered_epsilon)
    text = json.dumps(model.as_data(), indent=2, ensure_ascii=False, allow_nan=False)
    with replaced(path) as file:
        file.write(f"{text}\n".encode("utf-8", "surrogatepass"))


def parse_model(data: Any, name: str = "this") -> Model:
    """Validate the content of a model file.

    >>> parse_model({"format": "another"})
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: this is not a "taciturn model 1" file. Pass the model.json that ...
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInput(
            f'{name} is not a "{FORMAT}" file. Pass the model.json that this version of taciturn learn wrote.'
        )
    return _model(Section("", data))


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read and validate a model file."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8", errors="surrogatepass"))
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder. Pass the model in it, as in {Path(path) / 'model.json'}.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Learn a model with taciturn learn.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not valid JSON. Pass the model.json that taciturn learn wrote.") from None
    return parse_model(data, str(path))


def _model(file: Section) -> Model:
    contract = contract_of(file.section("contract").data)
    if (bound := file.positive("feature_bound")) is not None and bound != contract.feature_bound:
        contract = replace(contract, stated_bound=bound)  # another default, when the file was written
    features = None if file.take("features") is None else features_of(file)
    stated = replace(contract, features=features or "linear")
    if stated.problem.features != contract.problem.features:
        contract = stated  # another rule, when the file was written
    spent = file.section("spent")
    epsilon = math.inf if spent.take("epsilon") is None else spent.number("epsilon")
    point = _point(contract, file.listed("scores"))
    made = Model(
        contract,
        point,
        int(file.number("round")),
        int(file.number("releases")),
        Spent(epsilon, spent.number("delta")),
        file.text("guarantee", "The file is incomplete."),
        file.flag("simulated", True),
        _delivered(file),
        _found(contract, file),
        file.choice("rests_on", ("", *get_args(RestsOn)), ""),
    )
    file.take("format")
    for section in (file, spent):
        section.close()
    return made


def _delivered(file: Section) -> dict[str, float | None]:
    """By relation; none in the file of an earlier version."""
    delivered = file.section("delivered_epsilon")
    return {name: None if epsilon is None else delivered.number(name) for name, epsilon in delivered.data.items()}


def _point(contract: Contract, scores: list[Any]) -> Array:
    problem = contract.problem
    rows = []
    for entry in scores:
        section = Section("scores", entry if isinstance(entry, dict) else {})
        section.take("of")
        weights, intercept = section.section("weights"), section.section("intercept")
        matrix = [] if contract.bandit is None else section.listed("matrix")
        row = [weights.number(name) for name in contract.weight_names]
        constant, weight = intercept.number("constant"), intercept.number("weight")
        if constant != problem.intercept:
            raise InvalidInput(
                f"scores.intercept.constant is {constant}, but {problem.intercept} follows from the contract."
            )
        rows.append([*matrix, *row, weight] if problem.intercept else [*matrix, *row])
        for part in (section, weights, intercept):
            part.close()
    expected = problem.outputs if contract.bandit is None else contract.bandit.models
    size = problem.width if contract.bandit is None else problem.width * (problem.width + 3) // 2
    wrong = len(rows) != expected or any(len(row) != size for row in rows)
    if wrong or not all(isinstance(each, int | float) and math.isfinite(each) for row in rows for each in row):
        raise InvalidInput(f"scores must be {expected} lists of finite weights. The file is incomplete.")
    return np.array(rows, dtype=np.float64).ravel()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
