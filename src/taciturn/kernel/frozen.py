"""Objects of frozen dataclasses, made in less time."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import Any


def unfrozen(kind: type) -> Any:
    """A class like a frozen dataclass with slots, whose objects become of that class: `new.__class__ = kind`.

    A frozen class sets its fields by calls of `object.__setattr__`, which takes five times as long: too long for what
    every example makes. All fields are given, by position, and `__post_init__` is not called.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> new = unfrozen(Point)(1.0, 2.0)
    >>> new.__class__ = Point
    >>> new, new == Point(1.0, 2.0)
    (Point(x=1.0, y=2.0), True)
    >>> new.x = 3.0
    Traceback (most recent call last):
    ...
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """
    named = [(field.name, field.type) for field in fields(kind)]
    return make_dataclass(f"Unfrozen{kind.__name__}", named, slots=True, eq=False, repr=False)
