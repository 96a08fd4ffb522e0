"""Two streams that differ in one example, and who may choose the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn._util.arrays import Array
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, float_or_nan

Example = tuple[Any, float]
"""A row of features and a label; the label of examples without labels is 0."""

Adversary = Callable[[Array, int], Example]
"""Chooses example `t`, counted from 0, once it has seen the point released last."""


@dataclass(frozen=True)
class Pair:
    """A stream, and its neighbour: example number `at`, counted from 0, is `other` instead.

    Parameters
    ----------
    X, y : array-like
        The stream, as long as the horizon; without labels `y` is None.
    at : int
        Which example differs.
    other : tuple
        Its row and label in the neighbour. To audit "zero-out", a row of zeros.

    Examples
    --------
    >>> pair = Pair([[1.0], [1.0], [1.0]], [1.0, -1.0, 1.0], at=0, other=([1.0], -1.0))
    >>> pair.world(1)[1]
    array([-1., -1.,  1.])
    """

    X: Any
    y: Any
    at: int
    other: Example

    def __post_init__(self) -> None:
        at = float_or_nan(self.at)
        if not (0.0 <= at < len(self.X) and at.is_integer()):
            raise InvalidInput(f"at must be the number of an example, 0 to {len(self.X) - 1}, got {self.at!r}.")
        object.__setattr__(self, "at", int(at))
        if not isinstance(self.other, tuple | list) or len(self.other) != 2:
            raise InvalidInput(f"other must be a row and a label, ([1.0, 0.0], -1.0), got {self.other!r}.")
        shape, row = np.shape(self.X)[1:], np.shape(self.other[0])
        if row != shape:
            raise InvalidInput(
                f"other must have a row like those of X, of shape {shape}, and has one of shape {row}. Give one row "
                "and one label, ([1.0, 0.0], -1.0); without labels the label is 0."
            )
        if np.shape(self.other[1]) != ():
            raise InvalidInput(f"the label of other must be a number, got {self.other[1]!r}. Without labels it is 0.")

    def world(self, world: int) -> tuple[Array, Array | None]:
        """The stream (0), or its neighbour (1)."""
        X = np.array(self.X, dtype=np.float64)
        y = None if self.y is None else np.array(self.y, dtype=np.float64)
        if world:
            X[self.at] = self.other[0]
            if y is not None:
                y[self.at] = self.other[1]
        return X, y

    def check(self, private: Private) -> None:
        """Refuse two worlds that are the same to the problem."""
        (V, y), (W, z) = (self.bounded(private, world) for world in (0, 1))
        if np.array_equal(V, W) and np.array_equal(y, z):
            raise InvalidInput(
                f"both worlds are the same: example {self.at} and other do not differ, once they are within the "
                "problem's bounds. Give another row or label."
            )

    def bounded(self, private: Private, world: int) -> tuple[Array, Array]:
        """The same, as it passes the problem's door; a refusal if it does not fill the horizon."""
        horizon = private.timetable.horizon
        if horizon != len(self.X):
            raise InvalidInput(
                f"an audit looks at whole streams: this one has {len(self.X)} examples, and the horizon is {horizon}. "
                "State horizon=, and give as many examples."
            )
        return private.problem.clip(*self.world(world))
