"""Settings as data, and their hash, by which a state knows the settings that it belongs to."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.errors import InvalidInput, value_or_type


def fingerprint(settings: Any) -> str:
    """A hash of settings: equal settings have equal hashes, in any process on any machine.

    It covers what was chosen: a field that was computed (see `derived_from`) is hashed as None.

    >>> from taciturn import Privacy
    >>> fingerprint(Privacy(1.0, 1e-6)) == fingerprint(Privacy(1.0, 1e-6))
    True
    """
    return hashlib.sha256(json.dumps(described(settings)).encode()).hexdigest()


def derived_from(value: Any) -> dict[str, float]:
    """The fields of an object of this package that it computed itself, because no value was given.

    Such numbers differ between machines in their last bits. A class lists them in a property `derived`.

    >>> from taciturn import QFTL, L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0)
    >>> list(derived_from(QFTL(problem))), list(derived_from(QFTL(problem, weight=1.0)))
    (['weight'], [])
    """
    return dict(getattr(value, "derived", {})) if _of_this_package(type(value)) else {}


def name_of(kind: type) -> str:
    """What a class is called in a hash of settings.

    A class of this package goes by its own name, which no other settings class of the package has, so that a state
    outlives a move to another module. Any other goes by its module and name.

    >>> from taciturn import L2Ball
    >>> name_of(L2Ball)
    'taciturn L2Ball'
    """
    return f"taciturn {kind.__qualname__}" if _of_this_package(kind) else f"{kind.__module__}.{kind.__qualname__}"


def _of_this_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "taciturn"


def described(value: Any) -> Any:
    """Settings as JSON data, names of classes included; values that cannot be compared are rejected."""
    if isinstance(value, np.floating):
        value = float(value)  # also a long double, which has no item of Python's
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return float(value).hex() if abs(value) < 2**53 or isinstance(value, float) else value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    if isinstance(value, dict):
        return [[described(key), described(item)] for key, item in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    elif hasattr(value, "__dict__") and not callable(value) and "__slots__" not in vars(type(value)):
        names = sorted(
            name for name in vars(value) if not isinstance(getattr(type(value), name, None), cached_property)
        )
    else:
        raise InvalidInput(
            f"settings must be plain data, so that a state can say to which it belongs; got {value_or_type(value)}. "
            "Make it a frozen dataclass of numbers, strings and tuples."
        )
    derived = derived_from(value)
    chosen = [[n, None if n in derived else described(getattr(value, n))] for n in names]
    return [name_of(type(value)), chosen]
