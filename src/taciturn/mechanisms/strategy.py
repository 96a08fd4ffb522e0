"""Strategies for prefix sums: the protocol of their streaming form.

A strategy for n rows is a pair of matrices with `B·C = A`, A the lower-triangular matrix of ones. The secret side turns
rows x into `C·x`, noise is added to that, and the public side turns it into `B·(C·x + noise) = A·x + B·noise`: all
prefix sums, which are private if `C·x + noise` is. C is lower-triangular, so rows can be encoded as they come, and the
sums stay private if later rows depend on earlier sums.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array, Arrays


class Coder(Protocol):
    """A strategy for a given number of rows, in streaming form; `k` counts rows from 1.

    >>> from taciturn.mechanisms.tree import TreeCoder
    >>> TreeCoder(8, refined=False).matrices(2)[1]
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    @property
    def integer(self) -> bool:
        """Whether encoding only adds rows up, so that integers stay exact integers."""

    @property
    def sensitivity(self) -> float:
        """The largest column norm of C: how far one example moves all encoded rows, per unit of its row."""

    @property
    def row_norm(self) -> float:
        """The largest sum of absolute values in a row of C: how large an encoded row is, per unit of a row."""

    @property
    def rounding_error(self) -> float:
        """Bound on the floating-point error of an entry of an encoded row, per unit of the largest row."""

    def rows(self, k: int) -> int:
        """The number of encoded rows that row k adds."""

    def before(self, k: int) -> int:
        """The number of encoded rows before row k."""

    def release_of(self, row: int) -> int:
        """The row that adds encoded row number `row`; both count from 1."""

    def error(self, k: ArrayLike) -> Array:
        """Standard deviation of an entry of the k-th sum under standard normal noise; k is a number or an array."""

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        """The secret and the public memory before any row."""

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """The encoded rows that row k adds, as an array of `rows(k)` rows."""

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The k-th prefix sum, from those rows and the public memory."""


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
    decoded = []
    units = np.eye(total)
    for k in range(1, n + 1):
        public, prefix = coder.decode(public, units[coder.before(k) : coder.before(k + 1)], k)
        decoded.append(prefix)
    return np.array(decoded), np.concatenate(encoded)


class Dense:
    """A coder whose matrices can be written down."""

    def matrices(self: Coder, n: int) -> tuple[Array, Array]:
        """`(B, C)` of the first n rows."""
        return matrices(self, n)


class OneRowEach(Dense):
    """A coder whose C is square: every row adds one encoded row."""

    def rows(self, k: int) -> int:
        return 1

    def before(self, k: int) -> int:
        return k - 1

    def release_of(self, row: int) -> int:
        return row
