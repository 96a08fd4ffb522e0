"""Two streams that differ in one example, and who may choose the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.core import Private
from tacit.errors import InvalidInput

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
        if not 0 <= self.at < len(self.X):
            raise InvalidInput(f"at must be the number of an example, 0 to {len(self.X) - 1}, got {self.at!r}.")

    def world(self, world: int) -> tuple[Array, Array | None]:
        """The stream (0), or its neighbour (1)."""
        X = np.array(self.X, dtype=np.float64)
        y = None if self.y is None else np.array(self.y, dtype=np.float64)
        if world:
            X[self.at] = self.other[0]
            if y is not None:
                y[self.at] = self.other[1]
        return X, y

    def bounded(self, private: Private, world: int) -> tuple[Array, Array]:
        """The same, as it passes the problem's door; a refusal if it does not fill the horizon."""
        horizon = private.timetable.horizon
        if horizon != len(self.X):
            raise InvalidInput(
                f"an audit looks at whole streams: this one has {len(self.X)} examples, and the horizon is {horizon}. "
                "State horizon=, and give as many examples."
            )
        return private.problem.bound(*self.world(world))
