"""Running sums of a stream of unknown length, with memory that does not grow.

Rows come in epochs of 1, 2, 4, … rows. Within epoch j a strategy for 2^j rows is started anew; when an epoch ends, its
total is one row of a second strategy, over at most 24 totals. The k-th sum is the second's sum of the totals of past
epochs plus the first's within this one. One example moves one row of each, so with shares `s` and `1 - s` of mu²,

    C = [sqrt(1 - s)·C_j/‖C_j e_1‖ for every epoch; sqrt(s)·C'/‖C' e_1‖]

has columns of length at most 1. Rows k = 2^j, …, 2^(j+1) - 1 make epoch j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Array, Arrays
from tacit.errors import InvalidInput, whole
from tacit.mechanisms.blt import BLT, BLTCoder, fitted
from tacit.mechanisms.strategy import Dense
from tacit.mechanisms.sums import RunningSum

EPOCHS = 24
"""As many as a stream without a horizon may have."""


@dataclass(frozen=True)
class Anytime(RunningSum):
    """Running sums without a horizon, by doubling epochs of BLT strategies.

    Parameters
    ----------
    buffers : int
        Rows of memory for each of the two strategies, on either side.
    share : float
        Of the budget, for the totals of past epochs.

    Examples
    --------
    >>> from tacit import Anytime
    >>> round(float(Anytime().errors(2**12).max()), 1) < 6.0
    True
    """

    buffers: int = 5
    share: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "buffers", BLT(self.buffers).buffers)
        if not 0.0 < self.share < 1.0:
            raise InvalidInput(f"share must lie strictly between 0 and 1, got {self.share!r}.")

    def coder(self, n: int | None) -> EpochCoder:
        """The same for every n, up to 2²⁴ - 1 rows: as many as 24 epochs hold."""
        n = 2**23 if n is None else whole("the number of releases", n)
        if n >= 2**EPOCHS:
            raise InvalidInput(
                f"Anytime holds {2**EPOCHS - 1:,} releases, got {n:,}. Use BLT(), or publish less often."
            )
        return EpochCoder(self.buffers, self.share, n)


@dataclass(frozen=True)
class EpochCoder(Dense):
    """Doubling epochs, `most` rows in all."""

    buffers: int
    share: float
    most: int

    @property
    def whole(self) -> bool:
        return False

    @property
    def column(self) -> float:
        return 1.0 + 2.0**-48

    @property
    def reach(self) -> float:
        """A row of totals holds every row so far; entries of C are at most 1."""
        return float(self.most)

    @property
    def blur(self) -> float:
        """That of the longest epoch's rows, or of its total's, which are as large as all rows together."""
        inside = self._inner(self._last) * self._epoch(self._last).blur
        return max(inside, self._outer * self._totals.blur * self.most) + 2.0**-52 * self.most

    @property
    def _last(self) -> int:
        return self.most.bit_length() - 1

    def rows(self, k: int) -> int:
        return 2 if _ends(k) else 1

    def before(self, k: int) -> int:
        return k - 1 + k.bit_length() - 1

    def release_of(self, row: int) -> int:
        k = max(1, row - row.bit_length())
        while self.before(k + 1) < row:
            k += 1
        return k

    def error(self, k: ArrayLike) -> Array:
        flat = np.asarray(k, dtype=np.int64).ravel()
        epoch = np.floor(np.log2(flat)).astype(np.int64)
        out = np.empty(len(flat))
        for j in np.unique(epoch):
            here = epoch == j
            inner = self._epoch(int(j)).error(flat[here] - 2 ** int(j) + 1) / self._inner(int(j))
            outer = self._totals.error(int(j)) / self._outer if j > 0 else 0.0
            out[here] = np.hypot(inner, outer)
        return out.reshape(np.shape(k))

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        (inner, outer), (inner_public, outer_public) = self._epoch(0).start(size), self._totals.start(size)
        secret = _named("epoch", inner) | _named("past", inner_public) | {"total": np.zeros(size)}
        return secret, _named("epoch", outer) | _named("past", outer_public) | {"past": np.zeros(size)}

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """The epoch's row and, at its end, that of its total."""
        j = k.bit_length() - 1
        within = self._epoch(j).start(len(row))[0] if _begins(k) else _part("epoch", secret)
        within, rows = self._epoch(j).encode(within, row, k - 2**j + 1)
        total = (0.0 if _begins(k) else secret["total"]) + row
        past, rows = _part("past", secret), rows * self._inner(j)
        if _ends(k):
            past, last = self._totals.encode(past, total, j + 1)
            rows = np.concatenate([rows, last * self._outer])
        return _named("epoch", within) | _named("past", past) | {"total": total}, rows

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The sum of past totals, and that within the epoch."""
        j = k.bit_length() - 1
        within = self._epoch(j).start(noisy.shape[1])[1] if _begins(k) else _part("epoch", public)
        within, inside = self._epoch(j).decode(within, noisy[:1] / self._inner(j), k - 2**j + 1)
        past, before = _part("past", public), public["past"]
        after = before
        if _ends(k):
            past, after = self._totals.decode(past, noisy[1:] / self._outer, j + 1)
        return _named("epoch", within) | _named("past", past) | {"past": after}, before + inside

    def _epoch(self, j: int) -> BLTCoder:
        return _fitted_coder(2**j, self.buffers)

    @property
    def _totals(self) -> BLTCoder:
        return _fitted_coder(EPOCHS, self.buffers)

    def _inner(self, j: int) -> float:
        """What epoch j's rows are multiplied by."""
        return math.sqrt(1.0 - self.share) / self._epoch(j).column

    @property
    def _outer(self) -> float:
        return math.sqrt(self.share) / self._totals.column


def _fitted_coder(n: int, buffers: int) -> BLTCoder:
    return BLTCoder(n, *fitted(n, buffers, "max"))


def _begins(k: int) -> bool:
    return k & (k - 1) == 0


def _ends(k: int) -> bool:
    return k & (k + 1) == 0


def _named(part: str, arrays: Arrays) -> Arrays:
    return {f"{part}.{name}": array for name, array in arrays.items()}


def _part(part: str, arrays: Arrays) -> Arrays:
    return {name[len(part) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{part}.")}
