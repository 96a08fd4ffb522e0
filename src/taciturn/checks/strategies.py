"""Checks of a strategy for prefix sums: its streaming form equals its matrices, and its stated bounds hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.calibration.mechanisms import PrefixSum, made_for
from taciturn.checks.streams import copied, generator, same
from taciturn.checks.suite import COPY, demand
from taciturn.errors import ContractBroken
from taciturn.kernel.accounting.unit import Participation
from taciturn.kernel.arrays import Array
from taciturn.kernel.mechanisms.strategy import Coder, matrices, sensitivity_to, sums_of

LENGTHS = (1, 2, 3, 8, 13, 100)
UNITS = tuple(
    Participation(*unit) for unit in ((2, 1, 1), (3, 1, 2), (4, 1, 3), (5, 2, 1), (5, 2, 4), (13, 1, 1), (3, 3, 5))
)
"""Rows of one unit, in all and in a block, and how far apart; for up to 13 rows all patterns are tried."""
_NEARLY = 1.0 + 1e-12


@dataclass(frozen=True)
class Strategy:
    """A strategy for n rows, in streaming form and as its matrices `B` and `C`, computed from unit vectors."""

    strategy: PrefixSum
    n: int

    @cached_property
    def coder(self) -> Coder:
        """The streaming form."""
        return self.strategy.coder(self.n)

    @cached_property
    def dense(self) -> tuple[Array, Array]:
        """B and C."""
        return matrices(self.coder, self.n)

    def rows(self, size: int = 2) -> Array:
        """Rows to encode."""
        return generator(self.n).uniform(-1.0, 1.0, size=(self.n, size))


def matrices_factor_the_prefix_sum(case: Strategy) -> None:
    """`B·C` is the lower-triangular matrix of ones, or of powers of a decay: without noise, decoding gives the sums."""
    B, C = case.dense
    off = float(np.max(np.abs(B @ C - sums_of(case.coder, np.eye(case.n)))))
    demand(
        off <= 1e-9,
        f"B·C is off the matrix of the sums by {off:.3g}, for {case.n} rows",
        "Make decode the inverse of encode.",
    )


def encoding_is_causal(case: Strategy) -> None:
    """What is encoded at row k does not depend on later rows, exactly, so later rows may depend on earlier sums."""
    coder, (B, C) = case.coder, case.dense
    for k in range(1, case.n + 1):
        ahead = C[coder.before(k) : coder.before(k + 1), k:].any() or B[k - 1, coder.before(k + 1) :].any()
        demand(not ahead, f"row {k} of {case.n} uses rows that come after it", "Make B and C lower-triangular.")


def sensitivity_bounds_the_columns(case: Strategy) -> str:
    """`sensitivity` bounds the norm of every column of C: one example changes what is encoded by as much."""
    lengths = np.linalg.norm(case.dense[1], axis=0)
    j, stated = int(np.argmax(lengths)), case.coder.sensitivity
    fault = f"column {j + 1} of C has length {lengths[j]:.6g} for {case.n} rows, and sensitivity says {stated:.6g}"
    demand(lengths[j] <= stated * (1.0 + 1e-13), fault, "State the largest column norm, rounded up.")
    return f"the longest column is {lengths[j] / stated:.1%} of what is stated"


def no_entry_is_larger_than_one(case: Strategy) -> None:
    """No entry of C is larger than 1: the sampler's share of the cost is computed from that."""
    largest = float(np.max(np.abs(case.dense[1])))
    demand(
        largest <= 1.0 + 1e-9,
        f"an entry of C is {largest:.6g}, for {case.n} rows",
        "Divide C by its largest entry, and multiply B by it: the sums have the same noise.",
    )


def sensitivity_to_bounds_every_pattern(case: Strategy) -> str:
    """`sensitivity_to` bounds what all rows of a unit change, for every pattern of them; of long streams, for some.

    The rows may be moved in different directions: by at most `sqrt(Σ_ij u_i·u_j·|CᵀC|_ij)`, which is `‖C u‖` where no
    two columns of C have a negative inner product.
    """
    used = 0.0
    for unit in UNITS:
        coders = [(case.coder, case.dense[1])]
        if case.n == 13 and unit == UNITS[2]:  # only one, as a fit may take long
            fitted = made_for(case.strategy, case.n, unit)
            coders.append((fitted, matrices(fitted, case.n)[1]))
        U = patterns(case.n, unit) if case.n <= 13 else dense_patterns(case.n, unit)
        for coder, C in coders:
            found = math.sqrt(float(np.max(np.einsum("pi,ij,pj->p", U, np.abs(C.T @ C), U, optimize=True))))
            stated = sensitivity_to(coder, unit)
            fault = f"{unit} changes {case.n} rows by {found:.6g}, and sensitivity_to says {stated:.6g}"
            demand(found <= stated * (1.0 + 1e-13), fault, "State the largest ‖C u‖, rounded up, or remove the method.")
            used = max(used, found / stated)
    return f"the worst pattern is {used:.1%} of what is stated"


def patterns(n: int, unit: Participation) -> Array:
    """Every pattern of a unit's rows in n blocks, one in each row of the result, and that without rows.

    >>> patterns(3, Participation(rows=2, apart=2)).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]
    """
    found = [np.zeros((1, n))]
    last = np.zeros(1, dtype=np.int64) - unit.apart  # the last block with rows, of each pattern
    for j in range(n):
        free = np.concatenate(found)[last <= j - unit.apart]
        for rows in range(1, min(unit.per_release, unit.rows) + 1):
            more = free[np.sum(free, axis=1) <= unit.rows - rows].copy()
            more[:, j] = rows
            found.append(more)
            last = np.concatenate([last, np.full(len(more), j)])
        found = [np.concatenate(found)]
    return found[0]


def dense_patterns(n: int, unit: Participation) -> Array:
    """Patterns of a unit's rows as close together as they may be, from each of n blocks on.

    >>> dense_patterns(3, Participation(rows=3, per_release=2, apart=2)).astype(int).tolist()
    [[2, 0, 1], [0, 2, 0], [0, 0, 2]]
    """
    found = np.zeros((n, n))
    for first in range(n):
        blocks = np.arange(first, n, unit.apart)[: unit.blocks]
        found[first, blocks] = unit.multiplicities[: len(blocks)]
    return found


def errors_are_the_row_norms_of_the_decoder(case: Strategy) -> None:
    """`error(k)` is the length of row k of B, for one k or many: it gives the standard deviation of releases."""
    lengths, rounds = np.linalg.norm(case.dense[0], axis=1), np.arange(1, case.n + 1)
    remedy = "Return ‖e_k B‖: a number for a number k, an array for an array of them."
    try:
        many = np.asarray(case.coder.error(rounds), dtype=np.float64)
        one_by_one = np.array([float(case.coder.error(int(k))) for k in rounds])
    except (TypeError, ValueError, AttributeError) as fault:
        raise ContractBroken(f"error() does not take both a number and an array: {fault}. {remedy}") from fault
    alike = many.shape == lengths.shape and np.allclose(many, lengths, rtol=1e-9)
    alike = alike and np.allclose(one_by_one, lengths, rtol=1e-9)
    demand(alike, f"error() is not the length of the rows of B, for {case.n} rows", remedy)


def row_norm_bounds_the_encoder(case: Strategy) -> None:
    """`row_norm` bounds the absolute sums of the rows of C, so that integers do not overflow."""
    sums, stated = np.sum(np.abs(case.dense[1]), axis=1), case.coder.row_norm
    fault = f"a row of C sums to {np.max(sums):.6g} in absolute value, and row_norm says {stated:.6g}"
    demand(np.max(sums) <= stated * _NEARLY, fault, "State the largest, rounded up.")


def rounding_error_is_a_bound(case: Strategy) -> None:
    """Encoded rows are within `rounding_error` of `C·x`, or, where encoding only adds, exact on integers.

    Rounding errors may differ between two worlds, and are charged for. The bound is one on the norm of a row's error,
    for rows of norm 1: of many entries, so that a bound on the error of an entry is not enough.
    """
    if case.coder.integer:
        integers = generator(case.n).integers(-(2**40), 2**40, size=(case.n, 2))
        exact = case.dense[1].astype(np.int64) @ integers
        fault = "integer says that encoding only adds, and integers are not encoded exactly"
        demand(
            np.array_equal(_encoded(case, integers), exact),
            fault,
            "Add integers as integers, or state integer = False.",
        )
        return
    X, C = case.rows(64), case.dense[1].astype(np.longdouble)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    off = float(np.max(np.linalg.norm((_encoded(case, X) - C @ X).astype(float), axis=1)))
    stated = case.coder.rounding_error
    entries = 2.0**-52 * float(np.max(np.sum(np.abs(C), axis=1)))  # the entries of C are rounded too
    allowed = 2.0 * stated + entries
    fault = f"an encoded row is off by {off:.3g} for {case.n} rows, and rounding_error says {stated:.3g}"
    demand(off <= allowed, fault, "Bound the norm of what encode rounds.")


def _encoded(case: Strategy, rows: np.ndarray) -> np.ndarray:
    secret, out = case.coder.start(rows.shape[1])[0], []
    for k, row in enumerate(rows, start=1):
        secret, more = case.coder.encode(secret, row, k)
        out.append(more)
    return np.concatenate(out)


def row_counts_are_consistent(case: Strategy) -> None:
    """`rows`, `before` and `release_of` agree; noise is drawn by them."""
    coder = case.coder
    demand(coder.before(1) == 0, "before(1) is not 0", "Count the encoded rows before row k.")
    for k in range(1, case.n + 1):
        first, last = coder.before(k) + 1, coder.before(k + 1)
        alike = last - first + 1 == coder.rows(k) >= 1
        alike = alike and all(coder.release_of(row) == k for row in range(first, last + 1))
        demand(alike, f"rows, before and release_of disagree about row {k}", "Count encoded rows from 1.")


def encode_and_decode_do_not_modify_arguments(case: Strategy) -> None:
    """States are values: encoding and decoding twice from the same states gives the same, and changes neither."""
    coder, (secret, public) = case.coder, case.coder.start(2)
    for k, row in enumerate(case.rows(), start=1):
        before = copied(secret), copied(public), row.copy()
        following, noisy = coder.encode(secret, row, k)
        decoded, total = coder.decode(public, noisy, k)
        shapes = noisy.shape == (coder.rows(k), 2) and total.shape == (2,)
        demand(shapes, f"row {k} encodes {noisy.shape} and decodes {total.shape}", "Return rows(k) rows, and a sum.")
        alike = np.array_equal(coder.encode(secret, row, k)[1], noisy)
        alike = alike and np.array_equal(coder.decode(public, noisy, k)[1], total)
        demand(alike, f"row {k} differs when it is repeated", "Keep all state in the two state dictionaries.")
        clean = same(secret, before[0]) and same(public, before[1]) and np.array_equal(row, before[2])
        demand(clean, f"row {k} modified its arguments", COPY)
        secret, public = following, decoded


CHECKS = (
    matrices_factor_the_prefix_sum,
    encoding_is_causal,
    sensitivity_bounds_the_columns,
    no_entry_is_larger_than_one,
    sensitivity_to_bounds_every_pattern,
    errors_are_the_row_norms_of_the_decoder,
    row_norm_bounds_the_encoder,
    rounding_error_is_a_bound,
    row_counts_are_consistent,
    encode_and_decode_do_not_modify_arguments,
)
