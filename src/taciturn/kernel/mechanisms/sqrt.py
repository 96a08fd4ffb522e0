"""Prefix sums by the square root of the matrix of ones: the reference for the other strategies.

`B = C`, the lower-triangular Toeplitz matrix of `f_0 = 1, f_k = f_{k-1}·(2k - 1)/(2k)`, the coefficients of
`(1 - x)^(-1/2)`; its square is `1/(1 - x)`, the prefix sum. Largest error `Σ_{k<n} f_k²`, asymptotically
`(ln n + 3.350)/pi`: near the least that any strategy can have (Fichtenberger, Henzinger, Upadhyay, *Constant matters:
Fine-grained Error Bound on Differentially Private Continual Observation*, 2023). Encoder and
decoder store every row, and the time of a sum grows with the number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array, Arrays, fixed
from taciturn.kernel.mechanisms.strategy import OneRowEach, toeplitz_sensitivity


@dataclass(frozen=True)
class RootCoder(OneRowEach):
    """The square root for n rows."""

    n: int
    coefficients: Array = field(init=False, repr=False, compare=False)
    _squares: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        k = np.arange(1.0, self.n)
        f = np.concatenate([[1.0], np.cumprod((2.0 * k - 1.0) / (2.0 * k))])
        object.__setattr__(self, "coefficients", fixed(f))
        object.__setattr__(self, "_squares", fixed(np.cumsum(f**2)))

    @property
    def numbers(self) -> Arrays:
        """None: it follows from n, by operations that every machine rounds alike."""
        return {}

    @property
    def integer(self) -> bool:
        return False

    @property
    def sensitivity(self) -> float:
        return math.sqrt(float(self._squares[-1])) * (1.0 + self.n * 2.0**-51)

    def sensitivity_to(self, participation: Participation) -> float:
        """Exactly, by `toeplitz_sensitivity`: coefficients decrease."""
        if participation == ONCE:
            return self.sensitivity
        return toeplitz_sensitivity(self.coefficients, participation) * (1.0 + self.n * 2.0**-51)

    @property
    def row_norm(self) -> float:
        return float(np.sum(self.coefficients))

    @property
    def rounding_error(self) -> float:
        """An inner product of up to n terms."""
        return 2.0 * self.n * 2.0**-53 * self.row_norm

    def error(self, k: ArrayLike) -> Array:
        return np.sqrt(self._squares[np.asarray(k, dtype=np.int64) - 1])

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        return {"rows": np.zeros((0, size))}, {"rows": np.zeros((0, size))}

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        return self._apply(secret, row, k)

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        memory, total = self._apply(public, noisy[0], k)
        return memory, total[0]

    def _apply(self, memory: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """Row k of the matrix times all rows so far."""
        rows = np.concatenate([memory["rows"], row[None, :]])
        return {"rows": rows}, (self.coefficients[:k][::-1] @ rows)[None, :]
