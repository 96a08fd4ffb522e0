"""The hash of settings of version 1, by which streams are known that were stored before version 2.

It was the hash of names of classes and of all fields in their order. This computes it for classes of today, wherever
they are and whatever fields they have lost or gained: fields are those of `taciturn.kernel.stream.fingerprint.FIELDS`,
in that order; one that is gone had its default, or what `_COMPUTED` says; one that came later has to be at its default,
as version 1 had no word for another value, and one that is at a default does what streams did before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from taciturn.kernel.stream.fingerprint import (
    FIELDS,
    attributes,
    defaults_of,
    derived_from,
    digest,
    first_name,
    is_setting,
    name_of,
    of_this_package,
    ours,
    plain,
)

_COMPUTED: dict[str, Callable[[Any], Any]] = {"_stated": lambda learner: "weight" not in derived_from(learner)}


class _NotBefore(Exception):
    """Settings that version 1 did not have."""


def earlier_fingerprint(settings: Any) -> str | None:
    """The hash of these settings in version 1; None if there were none like them.

    >>> from taciturn import Privacy
    >>> earlier_fingerprint(Privacy(1.0, 1e-6))[:16]
    'f3547a34133be33e'
    """
    private = any(name_of(base) == "Private" for base in ours(type(settings)))
    try:
        data = _fields(settings) if private else _described(settings)  # a stream was a table without a class
    except _NotBefore:
        return None
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def _described(value: Any) -> Any:
    value = plain(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return float(value).hex() if abs(value) < 2**53 or isinstance(value, float) else value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return digest(value)
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if isinstance(value, dict):
        return [[_described(key), _described(item)] for key, item in value.items()]
    kind = type(value)
    return [f"taciturn {name_of(kind)}" if of_this_package(kind) else name_of(kind), _fields(value)]


def _fields(value: Any) -> list[list[Any]]:
    """Names and values of the fields that an object had."""
    kind, derived, defaults = type(value), derived_from(value), defaults_of(type(value))
    now = {first_name(kind, name): name for name in attributes(value)}
    before = _names(kind) if dataclasses.is_dataclass(kind) else list(now)
    for name in now.keys() - set(before):
        if is_setting(kind, now[name]) and (
            name not in defaults or _described(getattr(value, now[name])) != _described(defaults[name])
        ):
            raise _NotBefore
    made = []
    for name in before:
        if name in derived:
            each = None
        elif name in _COMPUTED:
            each = _COMPUTED[name](value)
        elif name in now or name not in defaults:
            each = getattr(value, now.get(name, name), ...)  # of one that is not set any more, a property
        else:
            each = defaults[name]
        if each is ...:
            raise _NotBefore
        if (name, each) != ("stages", ()):  # which only a stream with stages had
            made.append([name, _described(each)])
    return made


def _names(kind: type) -> list[str]:
    """Names of the fields that a class had, in their order."""
    if of_this_package(kind) and name_of(kind) not in FIELDS:
        raise _NotBefore
    names: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        if of_this_package(base):
            names |= dict.fromkeys(FIELDS.get(name_of(base), {}))
        elif dataclasses.is_dataclass(base):
            own = inspect.get_annotations(base)
            names |= dict.fromkeys(field.name for field in dataclasses.fields(base) if field.name in own)
    return list(names)
