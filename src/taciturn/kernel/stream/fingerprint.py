"""Settings as data, and their hash, by which a state knows the settings that it belongs to.

**The description** is JSON: {"version": 2, "settings": ...}. Numbers are JSON's, an integer without a fraction; a
sequence is a list. Every other value is an object with one key, which says what it is: {"L2Ball": {"radius": 1}} an
object of this class, {"array": [type, shape, SHA-256]}, {"dict": [[key, value], ...]} or {"float": "inf"}. The hash is
that of its text with sorted keys.

**What it does not depend on**, so that a stored stream outlives a change of the code: where a class is, the order of
its fields, which fields were added or removed meanwhile, and what a class or a field is called now. A class of this
package goes by its first name, and so does a field; a field at its default is left out. The defaults are those of the
tables, and not those of the code: if the code changes one, it is left out no more, and its absence still means the old
one. A class of one's own goes by its module and name, with all of its fields; those that it has from a class of this
package are as there.

**Claim.** Settings of the same description are equal, but for what is computed and what is no setting. *Proof.* JSON
tells apart what it is made of; objects of two classes have two names, or are of `Stream`, `Private` and `Staged`, of
which the last alone has stages; a field that is absent has the value in the table, which never changes. ∎

To rename a class or a field, enter the new name in `CLASS_NAMES` or `FIELD_NAMES`. To add a field with a default,
enter it in `SINCE`; the default says what streams did before. Rows of these tables stay when a class is removed.
`taciturn.kernel.stream.earlier` has the description of version 1.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from taciturn.kernel.accounting.unit import EXAMPLE
from taciturn.kernel.errors import InvalidInput, value_or_type

VERSION = 2

FIELDS: dict[str, dict[str, Any]] = {
    "Absolute": {},
    "Advice": {"loss_bound": 1.0},
    "At": {"rounds": ...},
    "Averaged": {"learner": ..., "first": 1},
    "BLT": {"buffers": 4, "aim": "max"},
    "BinCounts": {"problem": ..., "label_edges": None, "least": 0.02, "outward": False, "bins": ...},
    "BinaryTree": {"refined": True},
    "Bins": {"edges": ..., "columns": None},
    "Box": {"low": ..., "high": ...},
    "Chain": {"maps": ...},
    "ClassSums": {"problem": ...},
    "DecayedBLT": {"forget": ..., "buffers": 5},
    "EWOO": {"problem": ..., "points": ...},
    "Every": {"rounds": 1},
    "Example": {},
    "Exponential": {},
    "FTL": {"problem": ..., "extra_ridge": 0.0},
    "FTRL": {"problem": ..., "curvature": 0.0, "scale": None, "center": None},
    "FadingIGD": {"problem": ..., "strength": 1.0},
    "GIGA": {"problem": ..., "step": "contracting"},
    "Gaussian": {"shape": "S^(2/3)"},
    "Geometric": {"ratio": 1.1, "start": 1},
    "HalfSpace": {"normal": ..., "offset": ...},
    "Hinge": {},
    "Huber": {"width": ...},
    "IGD": {"problem": ...},
    "IterateLearner": {"problem": ...},
    "L1Ball": {"radius": ...},
    "L2Ball": {"radius": ...},
    "Linear": {},
    "LinearBandit": {"problem": ..., "arms": 1, "low": -1.0, "high": 1.0, "weight": 1.0, "ridge": 1.0, "shift": 2.0},
    "LinearMap": {"matrix": ...},
    "Logistic": {},
    "Moments": {"rows": ...},
    "MultiHinge": {"classes": ...},
    "Nearness": {},
    "ObjectivePerturbation": {"problem": ..., "privacy": ..., "horizon": ..., "seed": None},
    "OneHot": {"classes": ...},
    "OneRelease": {"rows": ...},
    "PrefixSum": {},
    "Privacy": {"epsilon": ..., "delta": ...},
    "Private": {
        "learner": ...,
        "mechanism": ...,
        "schedule": ...,
        "privacy": ...,
        "horizon": None,
        "calibration": "exact",
        "allow_broken": False,
        "seed": None,
        "unit": EXAMPLE,
        "stages": (),
    },
    "Problem": {
        "loss": ...,
        "domain": ...,
        "dimension": ...,
        "feature_bound": 1.0,
        "label_bound": None,
        "intercept": 0.0,
        "ridge": 0.0,
        "neighbours": "replace",
        "on_bad": "raise",
        "features": None,
        "label_center": 0.0,
        "label_scale": 1.0,
    },
    "QFTL": {"problem": ..., "extra_ridge": 0.0, "weight": None, "center": None, "_stated": True},
    "Quantile": {"level": ...},
    "RandomFeatures": {"count": ..., "scale": ..., "length": 1.0, "seed": 0},
    "Ranges": {"rows": ..., "labels": False, "columns": None},
    "Scales": {"rows": ..., "labels": False, "columns": None, "waves": 0.0},
    "ScoresLoss": {"classes": ...},
    "SecondMoment": {"problem": ...},
    "Selection": {"pilots": ..., "finals": ..., "rows": ..., "privacy": ..., "seed": None},
    "Simplex": {"total": 1.0},
    "Smoothed": {"loss": ..., "width": ...},
    "Softmax": {"classes": ...},
    "SquareRoot": {},
    "Squared": {},
    "Standardise": {"center": ..., "scale": ..., "limit": 3.0, "columns": None},
    "TickSums": {"learner": ..., "examples_per_tick": 10000, "count_weight": 0.125},
    "User": {"rows": ..., "per_release": None, "apart": 1, "period": None, "without_id": "bad"},
    "VectorSum": {"problem": ...},
    "Weighted": {"loss": ..., "negative": 1.0, "positive": 1.0},
    "WeightedScores": {"classes": ..., "loss": ..., "weights": ...},
    "WholeSpace": {},
}
"""Fields of settings at the end of version 1, in their order then, with their defaults; ... for none. Never changed."""

SINCE: dict[str, dict[str, Any]] = {"Form": {"bound": 1.0}}
"""Defaults of fields that were added later, by the names of class and field."""

CLASS_NAMES = {"Staged": "Private", "Stream": "Private"}
"""Names in descriptions of classes that are called otherwise now, or that another class describes."""

FIELD_NAMES: dict[tuple[str, str], str] = {}
"""First names of fields that are called otherwise now, by the name of the class in descriptions, and that of today."""

NO_SETTINGS = {("Private", "compiled")}
"""Fields of which no release depends; nor does any on those that are computed (`init=False`)."""


def fingerprint(settings: Any) -> str:
    """A hash of settings: equal settings have equal hashes, in any process on any machine.

    >>> from taciturn import Privacy
    >>> fingerprint(Privacy(1, 1e-6)) == fingerprint(Privacy(1.0, 1e-6))
    True
    """
    return hashlib.sha256(_text(described(settings)).encode()).hexdigest()


def described(settings: Any) -> dict[str, Any]:
    """Settings as JSON data, with the version of this form; values that cannot be compared are rejected.

    >>> from taciturn import L2Ball, Privacy
    >>> described([L2Ball(0.5), Privacy(1.0, 1e-6)])
    {'version': 2, 'settings': [{'L2Ball': {'radius': 0.5}}, {'Privacy': {'epsilon': 1, 'delta': 1e-06}}]}
    """
    return {"version": VERSION, "settings": _described(settings)}


_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _described(value: Any) -> Any:
    value = plain(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"array": digest(value)}
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[_described(key), _described(item)] for key, item in value.items()]}
    kind, derived = type(value), derived_from(value)
    fields = _fields(kind) if dataclasses.is_dataclass(kind) else [(name, name, "") for name in attributes(value)]
    content = {}
    for name, first, absent in fields:
        if name not in derived and _text(data := _described(getattr(value, name))) != absent:
            content[first] = data
    return {name_of(kind): content}


def _number(value: int | float) -> Any:
    if not math.isfinite(value):
        return {"float": str(float(value))}
    whole = value == int(value) and abs(value) < 2**53 and str(value) != "-0.0"
    return int(value) if whole or isinstance(value, int) else float(value)


@lru_cache(maxsize=256)
def _fields(kind: type) -> list[tuple[str, str, str]]:
    """Settings among the fields of a class: name, first name, and the text of the value with which it is left out."""
    absent = {name: _text(_described(value)) for name, value in defaults_of(kind).items()}
    names = [field.name for field in dataclasses.fields(kind) if is_setting(kind, field.name)]
    return [(name, first := first_name(kind, name), absent.get(first, "")) for name in names]


def defaults_of(kind: type) -> dict[str, Any]:
    """The values with which fields that a class has from this package are left out of descriptions.

    >>> from taciturn import BLT
    >>> defaults_of(BLT)
    {'buffers': 4, 'aim': 'max'}
    """
    made: dict[str, Any] = {}
    for base in reversed(ours(kind)):  # those of the code, for fields that are in no table yet
        for field in dataclasses.fields(base) if dataclasses.is_dataclass(base) else ():
            if field.default is not dataclasses.MISSING:
                made[first_name(kind, field.name)] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                made[first_name(kind, field.name)] = field.default_factory()
    for base in reversed(ours(kind)):
        made |= FIELDS.get(name_of(base), {}) | SINCE.get(name_of(base), {})
    return {name: value for name, value in made.items() if value is not ...}


# Names.


def name_of(kind: type) -> str:
    """What a class is called in a description.

    >>> from taciturn import L2Ball
    >>> name_of(L2Ball)
    'L2Ball'
    """
    name = kind.__qualname__
    return CLASS_NAMES.get(name, name) if of_this_package(kind) else f"{kind.__module__}.{name}"


def first_name(kind: type, field: str) -> str:
    """What a field is called in a description."""
    return next((FIELD_NAMES[at] for base in ours(kind) if (at := (name_of(base), field)) in FIELD_NAMES), field)


def of_this_package(kind: type) -> bool:
    """Whether a class is defined here."""
    return kind.__module__.partition(".")[0] == "taciturn"


def ours(kind: type) -> list[type]:
    """The classes of this package of which a class is, the nearest first."""
    return [base for base in kind.__mro__ if of_this_package(base)]


# Values, and what is in an object.


def plain(value: Any) -> Any:
    """A number of NumPy as the Python number of its value; anything else as it is."""
    if isinstance(value, np.floating):
        return float(value)  # also a long double, which has no item of Python's
    return value.item() if isinstance(value, np.generic) else value


def digest(array: np.ndarray[Any, Any]) -> list[Any]:
    """Type, shape and hash of an array."""
    return [str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]


def attributes(value: Any) -> list[str]:
    """Names of what is in an object; one whose content cannot be told is rejected."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [field.name for field in dataclasses.fields(value)]
    if hasattr(value, "__dict__") and not callable(value) and "__slots__" not in vars(type(value)):
        return sorted(name for name in vars(value) if not isinstance(getattr(type(value), name, None), cached_property))
    raise InvalidInput(
        f"settings must be plain data, so that a state can say to which it belongs; got {value_or_type(value)}. "
        "Make it a frozen dataclass of numbers, strings and tuples."
    )


def is_setting(kind: type, name: str) -> bool:
    """Whether releases depend on a field, beside on the others."""
    for base in ours(kind):
        field = getattr(base, "__dataclass_fields__", {}).get(name)
        if field is not None and (not field.init or (name_of(base), name) in NO_SETTINGS):
            return False
    return True


def derived_from(value: Any) -> dict[str, float]:
    """The fields of an object of this package that it computed itself, because no value was given.

    Such numbers differ between machines in their last bits, and are left out. A class lists them in a property
    `derived`.

    >>> from taciturn import QFTL, L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0)
    >>> list(derived_from(QFTL(problem))), list(derived_from(QFTL(problem, weight=1.0)))
    (['weight'], [])
    """
    return dict(getattr(value, "derived", {})) if of_this_package(type(value)) else {}
