r"""Public scales of numbers: linear, logarithmic, and logarithmic on both sides of 0.

| scale | a number x becomes | ranges |
|---|---|---|
| `linear` | x | any |
| `log` | log x | positive |
| `symlog` | sign(x)·log(1 + \|x\|/threshold): about linear up to the threshold, and logarithmic beyond it | any |

Each increases strictly with x, so that a public range [low, high] becomes a public range of the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from taciturn.errors import InvalidInput, one_of, positive, value_or_type
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.row_wise import RowWise

ScaleName = Literal["linear", "log", "symlog"]


@dataclass(frozen=True)
class Scale(RowWise):
    """A scale of numbers; `threshold` is of symlog only.

    >>> Scale("log").forward([1.0, 10.0]).round(3), Scale("symlog", 10.0).forward([-10.0, 0.0]).round(3)
    (array([0.   , 2.303]), array([-0.693,  0.   ]))
    >>> Scale("symlog", 10.0).backward(Scale("symlog", 10.0).forward([-500.0, 3.0])).round(9)
    array([-500.,    3.])
    """

    name: ScaleName = "linear"
    threshold: float = 1.0

    def __post_init__(self) -> None:
        one_of("scale", self.name, get_args(ScaleName))
        object.__setattr__(self, "threshold", positive("threshold", self.threshold))

    def forward(self, values: ArrayLike) -> Array:
        """Numbers on this scale; those of a logarithm must be positive."""
        x = np.ascontiguousarray(values, dtype=np.float64)
        if self.name == "linear":
            return x
        return np.log(x) if self.name == "log" else np.copysign(np.log1p(np.abs(x) / self.threshold), x)

    def backward(self, values: ArrayLike) -> Array:
        """The inverse of `forward`."""
        u = np.ascontiguousarray(values, dtype=np.float64)
        if self.name == "linear":
            return u
        return np.exp(u) if self.name == "log" else np.copysign(self.threshold * np.expm1(np.abs(u)), u)

    def ends(self, key: str, low: float, high: float) -> tuple[float, float]:
        """A range on this scale; it must be positive for a logarithm, and not become empty. `key` is its name."""
        if self.name == "log" and low <= 0.0:
            raise InvalidInput(
                f'{key} must be positive for scale = "log", got [{low:g}, {high:g}]. State a positive lower end, '
                'or use scale = "symlog", which takes any number.'
            )
        first, last = self.forward([low, high]).tolist()
        if self.name != "linear" and not last - first >= 1e-12:
            raise InvalidInput(f"{key} is too narrow for scale = {value_or_type(self.name)}. Use the linear scale.")
        return first, last

    @property
    def in_words(self) -> str:
        """For an explanation; empty for the linear scale."""
        beyond = f", linear up to {self.threshold:g}" if self.name == "symlog" else ""
        return "" if self.name == "linear" else f", on a logarithmic scale{beyond}"

    def declared(self) -> dict[str, Any]:
        """As it is declared, without the defaults."""
        threshold = {"threshold": self.threshold} if self.threshold != 1.0 else {}
        return {} if self.name == "linear" else {"scale": self.name, **threshold}


LINEAR = Scale()
