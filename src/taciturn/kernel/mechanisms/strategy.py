"""Strategies for prefix sums: the protocol of their streaming form.

A strategy for n rows is a pair of matrices with `B·C = A`, A the lower-triangular matrix of ones. The secret side turns
rows x into `C·x`, noise is added to that, and the public side turns it into `B·(C·x + noise) = A·x + B·noise`: all
prefix sums, which are private if `C·x + noise` is. C is lower-triangular, so rows can be encoded as they come, and the
sums stay private if later rows depend on earlier sums.

**Several rows of one unit.** Let a unit move row j of x by a vector of norm at most `u_j·Delta`: it has u_j examples in
it. Where no entry of CᵀC is negative (no entry of C is), `C·x` moves by at most `Delta·‖C u‖`, since
`‖C v‖² = Σ_ij (CᵀC)_ij·⟨v_i, v_j⟩ ≤ Σ_ij (CᵀC)_ij·‖v_i‖·‖v_j‖`. `sensitivity_to` bounds the largest `‖C u‖` over all
patterns u that a `Participation` allows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.stream.protocols import restores


class Coder:
    """A strategy for a given number of rows, in streaming form, and the base class of such; `k` counts rows from 1.

    >>> from taciturn.kernel.mechanisms.tree import TreeCoder
    >>> TreeCoder(8, refined=False).matrices(2)[1]
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    if TYPE_CHECKING:  # a dataclass would take an inherited property for the default of its field

        @property
        def integer(self) -> bool:
            """Whether encoding only adds rows up, so that integers stay exact integers."""

        @property
        def sensitivity(self) -> float:
            """The largest column norm of C: how far one example moves all encoded rows, per unit of its row.

            No entry of C is larger than 1, so that no encoded row moves further than the row that is encoded: the
            sampler's share of the cost rests on it (`prefix_sum.reach`).
            """

        @property
        def row_norm(self) -> float:
            """The largest sum of absolute values in a row of C: how large an encoded row is, per unit of a row."""

        @property
        def rounding_error(self) -> float:
            """Bound on the floating-point error of an encoded row, in the l2 norm, per unit of the largest row norm.

            Entries are encoded by themselves. If the error of an entry is at most `Σ_l a_l·|x_l|`, x_l the same entry
            of row l, then the norm of the error is at most `Σ_l a_l·‖x_l‖`, so that `Σ_l a_l` is such a bound. What is
            charged is the length of the errors of all rows together, so it may be the root mean square of such bounds
            over all rows.
            """

    def sensitivity_to(self, participation: Participation) -> float:
        """The largest `‖C u‖` over all patterns u of one unit's rows that a participation allows, or a bound.

        By default each example moves the encoded rows by `sensitivity`, so all together by that times their number.
        """
        return participation.rows * self.sensitivity

    def sums(self, rows: Array) -> Array:
        """The sums that it decodes from rows without noise; by default prefix sums."""
        return np.cumsum(rows, axis=0)

    @property
    def numbers(self) -> Arrays | None:
        """The numbers of the strategy, which a state stores; by default none, see `coder_numbers`."""
        return None

    @abstractmethod
    def rows(self, k: int) -> int:
        """The number of encoded rows that row k adds."""

    @abstractmethod
    def before(self, k: int) -> int:
        """The number of encoded rows before row k."""

    @abstractmethod
    def release_of(self, row: int) -> int:
        """The row that adds encoded row number `row`; both count from 1."""

    @abstractmethod
    def error(self, k: ArrayLike) -> Array:
        """Standard deviation of an entry of the k-th sum under standard normal noise; k is a number or an array."""

    @abstractmethod
    def start(self, size: int) -> tuple[Arrays, Arrays]:
        """The secret and the public memory before any row."""

    @abstractmethod
    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """The encoded rows that row k adds, as an array of `rows(k)` rows."""

    @abstractmethod
    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The k-th prefix sum, from those rows and the public memory."""


def sensitivity_to(coder: Coder, participation: Participation) -> float:
    """How far one unit moves all encoded rows, per unit of an example's row, if it takes part so often.

    That is `coder.sensitivity_to(participation)`; for a coder whose `sensitivity` is newer than this method, the
    default of `Coder`.

    >>> from taciturn.kernel.mechanisms.sqrt import RootCoder
    >>> coder = RootCoder(1024)
    >>> [round(sensitivity_to(coder, Participation(4, 1, apart)) / coder.sensitivity, 2) for apart in (1, 16, 256)]
    [3.63, 3.15, 2.43]
    """
    if participation == ONCE:
        return coder.sensitivity
    own = restores(coder, "sensitivity_to", "sensitivity")
    return float(coder.sensitivity_to(participation) if own else Coder.sensitivity_to(coder, participation))


def sums_of(coder: Coder | None, rows: Array) -> Array:
    """The sums that a strategy decodes from rows without noise; prefix sums, if it is not known.

    >>> from taciturn import BLT, DecayedBLT
    >>> rows = np.ones((3, 1))
    >>> sums_of(BLT().coder(3), rows).ravel(), sums_of(DecayedBLT(1).coder(3), rows).ravel().round(3)
    (array([1., 2., 3.]), array([1.   , 1.368, 1.503]))
    """
    return np.cumsum(rows, axis=0) if coder is None else coder.sums(rows)


def toeplitz_sensitivity(coefficients: Array, participation: Participation) -> float:
    """The largest `‖C u‖` for a lower-triangular Toeplitz matrix C whose coefficients never increase, none negative.

    It is that of the pattern with `per_release` rows in blocks 0, apart, 2·apart, … and what remains in the last one;
    blocks beyond the n rows of C are left out.

    *Proof.* The columns of C at p ≤ q have the inner product `h(q, q - p)`, `h(q, a) = Σ_{s < n - q} c_s·c_{s+a}`; h
    increases in neither q nor a, and is 0 from q = n on. So `‖C u‖² = Σ_pq u_p·u_q·h(max(p, q), |p - q|)`.
    *(1) Positions.* Move the i-th block with rows, from 0 on, to position i·apart: none moves to the right, and no two
    move apart, so no term decreases.
    *(2) Numbers of rows.* At these positions `‖C u‖²` is a convex function of the numbers w_i of rows, with
    `0 ≤ w_i ≤ m` and `Σ w_i ≤ k`. It is largest at a vertex: every w_i is 0 or m, except for one, which may be the rest
    r of k by m. By (1) there is no 0 before another number.
    *(3) The rest is last.* Let blocks 0 to f have m rows, except for block i, which has r. With H_ij the inner product
    of the columns of blocks i and j, `‖C u‖² = m²·Σ H - 2m(m - r)·Σ_j H_ij + (m - r)²·H_ii`. As `m - r ≤ m` and
    `H_ii ≥ H_ff`, it is largest at i = f if `2·Σ_j (H_ij - H_fj) ≥ H_ii - H_ff` for every i < f, and so if
    `Σ_{j≠i} H_ij ≥ Σ_{j≠f} H_fj`. With `H(q, a) = h(q·apart, a·apart)` these are

        Σ_{1≤a≤i} H(i, a) + Σ_{1≤a≤f-i} H(i + a, a)  and  Σ_{1≤a≤i} H(f, a) + Σ_{1≤a≤f-i} H(f, i + a),

    and the second is not larger in any term. ∎

    (With one row in a block: Kalinin, Lampert, *Banded Square Root Matrix Factorization for Differentially Private
    Model Training*, 2024, Theorem 2.)

    >>> toeplitz_sensitivity(np.array([1.0, 0.5, 0.25]), Participation(rows=3, per_release=2, apart=1))
    3.0
    """
    n = len(coefficients)
    each, apart = min(participation.per_release, participation.rows), participation.apart
    full, rest = divmod(participation.rows, each)
    moved = each * _shifted_sums(coefficients, min(full, 1 + (n - 1) // apart), apart)
    if full * apart < n:
        moved[full * apart :] += rest * coefficients[: n - full * apart]
    return math.sqrt(float(moved @ moved))


def _shifted_sums(column: Array, count: int, apart: int) -> Array:
    """`Σ_{j<count} column[i - j·apart]`, by doubling: nothing is subtracted, so nothing cancels."""
    total, doubled = np.zeros_like(column), column.copy()
    done, width = 0, 1
    while width <= count:
        if count & width:
            shift = done * apart
            total[shift:] += doubled[: len(column) - shift]
            done += width
        shift = min(width * apart, len(column))
        doubled[shift:] += doubled[: len(column) - shift].copy()
        width *= 2
    return total


def matrices(coder: Coder, n: int) -> tuple[Array, Array]:
    """`(B, C)` of the first n rows, read off the coder itself by feeding it unit vectors: its slow twin.

    >>> from taciturn.kernel.mechanisms.tree import TreeCoder
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


class Dense(Coder):
    """A coder whose matrices can be written down."""

    def matrices(self, n: int) -> tuple[Array, Array]:
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


class LastingCoder(OneRowEach):
    """A strategy in which the influence of a row ends exactly."""

    @property
    @abstractmethod
    def life(self) -> int:
        """Encoded rows that depend on a row, at most."""
