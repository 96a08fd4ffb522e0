"""Running sums by strategies: what one must provide.

A strategy for n rows is a pair of matrices with `B·C = A`, A the lower-triangular matrix of ones. The secret side turns
rows x into `C·x`, noise is added to that, and the public side turns it into `B·(C·x + noise) = A·x + B·noise`: all
running sums, at once private if `C·x + noise` is. C is lower-triangular, so it can be done as rows come, and stays
private if later rows depend on earlier sums.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.core.loop import Block


class Coder(Protocol):
    """A strategy for a given number of rows, in streaming form; `k` counts rows from 1.

    >>> from taciturn.mechanisms.tree import TreeCoder
    >>> TreeCoder(8, refined=False).matrices(2)[1]
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    @property
    def whole(self) -> bool:
        """Whether encoding only adds rows up, so that integers stay exact integers."""

    @property
    def column(self) -> float:
        """The longest column of C: how far one example moves all that is encoded, per unit of its row."""

    @property
    def reach(self) -> float:
        """The largest sum of absolute values in a row of C: how large an encoded row is, per unit of a row."""

    @property
    def blur(self) -> float:
        """Bound on the floating-point error of an entry of an encoded row, per unit of the largest row."""

    def rows(self, k: int) -> int:
        """How many encoded rows row k adds."""

    def before(self, k: int) -> int:
        """How many encoded rows came before row k."""

    def release_of(self, row: int) -> int:
        """Which row added the encoded row of this number, counted from 1."""

    def error(self, k: ArrayLike) -> Array:
        """The deviation of an entry of the k-th sum under noise of deviation 1: k is a number, or an array of them."""

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        """The secret and the public memory before any row."""

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """The encoded rows that row k adds, as an array of `rows(k)` rows."""

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The k-th running sum, from those rows and the public memory."""

    def encode_all(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """The encoded rows that these rows add, row k the first of them, up to rounding."""

    def decode_all(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """As many running sums, up to rounding."""


@runtime_checkable
class CountsErrors(Protocol):
    """A coder with a faster way to errors of rows that follow each other."""

    def errors(self, k: int, count: int) -> Array:
        """`error` of as many rows from the k-th on, up to rounding; a row's own does not depend on the cut."""


@runtime_checkable
class HidingCoder(Protocol):
    """A coder with a compiled loop from rows to noisy sums, for encodings that multiply."""

    def hide_all(
        self, secret: Arrays, public: Arrays, rows: Array, k: int, noise: Integers, steps: Array, largest: Array
    ) -> tuple[Arrays, Arrays, Array]:
        """What is left of the memories, and the sums of rows kept within `largest`: encoded, rounded, noisy, decoded.

        `steps` are those of all encoded rows.
        """


@runtime_checkable
class LeadingCoder(Protocol):
    """A coder with a compiled loop that takes a learner with feedback inside."""

    def lead(
        self, block: Block, secret: Arrays, public: Arrays, k: int, noise: Integers, steps: Array, largest: Array
    ) -> tuple[Arrays, Arrays]:
        """Write the block's noisy sums and points, from row k on; what is left of its memories.

        `steps` are those of all encoded rows, `largest` bounds each row.
        """


def matrices(coder: Coder, n: int) -> tuple[Array, Array]:
    """`(B, C)` of the first n rows, read off the coder itself by feeding it unit vectors: its slow twin.

    >>> from taciturn.mechanisms.tree import TreeCoder
    >>> B, C = matrices(TreeCoder(3, refined=True), 3)
    >>> (B @ C).round(12)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    total = coder.before(n + 1)
    secret, _ = coder.start(n)
    encoded = []
    for k in range(1, n + 1):
        secret, rows = coder.encode(secret, np.eye(n)[k - 1], k)
        encoded.append(rows)
    _, public = coder.start(total)
    decoded, units = [], np.eye(total)
    for k in range(1, n + 1):
        public, prefix = coder.decode(public, units[coder.before(k) : coder.before(k + 1)], k)
        decoded.append(prefix)
    return np.array(decoded), np.concatenate(encoded)


class Dense:
    """A coder whose matrices can be written down, and that takes many rows as it takes one."""

    def matrices(self: Coder, n: int) -> tuple[Array, Array]:
        """`(B, C)` of the first n rows."""
        return matrices(self, n)

    def encode_all(self: Coder, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """One by one."""
        encoded = []
        for i, row in enumerate(rows):
            secret, more = self.encode(secret, row, k + i)
            encoded.append(more)
        return secret, np.concatenate(encoded)

    def decode_all(self: Coder, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """One by one."""
        first, sums = self.before(k), np.empty((count, noisy.shape[1]))
        for i in range(count):
            rows = noisy[self.before(k + i) - first : self.before(k + i + 1) - first]
            public, sums[i] = self.decode(public, rows, k + i)
        return public, sums


class OneRowEach(Dense):
    """A coder whose C is square: every row adds one encoded row."""

    def rows(self, k: int) -> int:
        return 1

    def before(self, k: int) -> int:
        return k - 1

    def release_of(self, row: int) -> int:
        return row
