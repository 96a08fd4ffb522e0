"""Running sums of a stream of unknown length, with memory that does not grow.

Rows come in epochs of 1, 2, 4, … rows. Within epoch j a strategy for 2^j rows is started anew; when an epoch ends, its
total is one row of a second strategy, over at most 24 totals. The k-th sum is the second's sum of the totals of past
epochs plus the first's within this one. One example moves one row of each, so with shares `s` and `1 - s` of mu²,

    C = [sqrt(1 - s)·C_j/‖C_j e_1‖ for every epoch; sqrt(s)·C'/‖C' e_1‖]

has columns of length at most 1. Rows k = 2^j, …, 2^(j+1) - 1 make epoch j.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.core.loop import Block
from taciturn.core.protocols import damaged
from taciturn.mechanisms.blt import BLTCoder, fitted
from taciturn.mechanisms.strategy import Dense

EPOCHS = 24
"""As many as a stream without a horizon may have."""


@dataclass(frozen=True)
class EpochCoder(Dense):
    """Doubling epochs, `most` rows in all."""

    buffers: int
    share: float
    most: int
    restored: tuple[tuple[str, BLTCoder], ...] = ()

    def numbers(self, k: int) -> Arrays:
        """The decays and weights of the totals' strategy, of the last epoch's, and of all epochs up to that of row k.

        Those of later epochs are fitted as they come: any will do, as each is divided by its own longest column.
        """
        epochs = {*range(k.bit_length()), self._last}
        return _decays("totals", self._totals) | {
            name: array for j in sorted(epochs) for name, array in _decays(f"epoch{j}", self._epoch(j)).items()
        }

    @classmethod
    def with_numbers(cls, buffers: int, share: float, most: int, numbers: Arrays) -> EpochCoder:
        """The same strategy, of the decays and weights that a stream began with."""
        rows = {"totals": EPOCHS} | {f"epoch{j}": 2**j for j in range(EPOCHS)}
        if not {"totals", f"epoch{most.bit_length() - 1}"} <= numbers.keys() <= rows.keys():
            raise damaged("decays of the strategies for epochs are missing")
        made = ((name, BLTCoder.restored(rows[name], buffers, array)) for name, array in sorted(numbers.items()))
        return cls(buffers, share, most, tuple(made))

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

    def encode_all(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled, an epoch at a time."""
        encoded = []
        for start, end, j in _epochs(k, len(rows)):
            secret = self._opened(secret, 0, j, k + start, rows.shape[1])
            within, more = self._epoch(j).encode_all(_part("epoch", secret), rows[start:end], k + start - 2**j + 1)
            total = np.cumsum(np.concatenate([secret["total"][None, :], rows[start:end]]), axis=0)[-1]
            secret = secret | _named("epoch", within) | {"total": total}
            encoded.append(more * self._inner(j))
            if _ends(k + end - 1):
                past, last = self._totals.encode(_part("past", secret), total, j + 1)
                secret = secret | _named("past", past)
                encoded.append(last * self._outer)
        return secret, np.concatenate(encoded)

    def decode_all(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled, an epoch at a time."""
        sums, row = np.empty((count, noisy.shape[1])), 0
        for start, end, j in _epochs(k, count):
            public = self._opened(public, 1, j, k + start, noisy.shape[1])
            inside = noisy[row : row + end - start] / self._inner(j)
            within = self._epoch(j).decode_all(_part("epoch", public), inside, k + start - 2**j + 1, end - start)
            sums[start:end] = public["past"] + within[1]
            public, row = public | _named("epoch", within[0]), row + end - start
            if _ends(k + end - 1):
                past, after = self._totals.decode(_part("past", public), noisy[row : row + 1] / self._outer, j + 1)
                public, row = public | _named("past", past) | {"past": after}, row + 1
        return public, sums

    def lead(
        self, block: Block, secret: Arrays, public: Arrays, k: int, noise: Integers, steps: Array, largest: Array
    ) -> tuple[Arrays, Arrays]:
        """Compiled, an epoch at a time."""
        row, size = 0, len(block.total)
        for start, end, j in _epochs(k, len(block.rounds)):
            secret = self._opened(secret, 0, j, k + start, size)
            public = self._opened(public, 1, j, k + start, size)
            total, rows = secret["total"].copy(), slice(row, row + end - start)
            memories = _part("epoch", secret), _part("epoch", public), k + start - 2**j + 1
            cut, outside = (noise[rows], steps[rows], largest[start:end]), (self._inner(j), public["past"], total)
            within, seen = self._epoch(j).lead(block.part(start, end), *memories, *cut, *outside)
            secret = secret | _named("epoch", within) | {"total": total}
            public = public | _named("epoch", seen)
            row += end - start
            if _ends(k + end - 1):
                secret, public = self._closed(secret, public, j, noise[row], float(steps[row]))
                row += 1
        return secret, public

    def _opened(self, memory: Arrays, side: int, j: int, k: int, size: int) -> Arrays:
        """A side's memory, the secret or the public one, as epoch j finds it at row k: anew at its first."""
        if not _begins(k):
            return memory
        fresh = memory | _named("epoch", self._epoch(j).start(size)[side])
        return fresh if side else fresh | {"total": np.zeros(size)}

    def _closed(self, secret: Arrays, public: Arrays, j: int, noise: Integers, step: float) -> tuple[Arrays, Arrays]:
        """The end of epoch j: its total becomes a row of the second strategy."""
        past, rows = self._totals.encode(_part("past", secret), secret["total"], j + 1)
        noisy = np.asarray((np.floor(rows * self._outer / step + 0.5) + noise) * step, dtype=np.float64)
        past_public, after = self._totals.decode(_part("past", public), noisy / self._outer, j + 1)
        return secret | _named("past", past), public | _named("past", past_public) | {"past": after}

    def _epoch(self, j: int) -> BLTCoder:
        return self._coder(f"epoch{j}", 2**j)

    @property
    def _totals(self) -> BLTCoder:
        return self._coder("totals", EPOCHS)

    def _coder(self, name: str, n: int) -> BLTCoder:
        """The one that was restored, or one that is fitted here."""
        for known, coder in self.restored:
            if known == name:
                return coder
        return _fitted_coder(n, self.buffers)

    def _inner(self, j: int) -> float:
        """What epoch j's rows are multiplied by."""
        return math.sqrt(1.0 - self.share) / self._epoch(j).column

    @property
    def _outer(self) -> float:
        return math.sqrt(self.share) / self._totals.column


def _decays(name: str, coder: BLTCoder) -> Arrays:
    return {name: coder.numbers(1)["decays"]}


def _fitted_coder(n: int, buffers: int) -> BLTCoder:
    return BLTCoder(n, *fitted(n, buffers, "max"))


def _begins(k: int) -> bool:
    return k & (k - 1) == 0


def _ends(k: int) -> bool:
    return k & (k + 1) == 0


def _epochs(k: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Rows k to k + count - 1, counted from 0, by epoch: the first, the one after the last, and the epoch's number."""
    start = 0
    while start < count:
        j = (k + start).bit_length() - 1
        end = min(count, 2 ** (j + 1) - k)
        yield start, end, j
        start = end


def _named(part: str, arrays: Arrays) -> Arrays:
    return {f"{part}.{name}": array for name, array in arrays.items()}


def _part(part: str, arrays: Arrays) -> Arrays:
    return {name[len(part) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{part}.")}
