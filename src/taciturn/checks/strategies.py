"""Checks of a strategy for running sums: its streaming form is its matrices, and what it says of them is so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn._util.arrays import Array
from taciturn.checks.streams import copied, generator, same
from taciturn.checks.suite import COPY, demand, skip
from taciturn.errors import ContractBroken
from taciturn.mechanisms.prefix_sum import PrefixSum
from taciturn.mechanisms.strategy import Coder, matrices

LENGTHS = (1, 2, 3, 8, 13, 100)
_NEARLY = 1.0 + 1e-12


@dataclass(frozen=True)
class Strategy:
    """A strategy for n rows, as it streams and as its matrices `B` and `C`, read off it by unit vectors."""

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


def it_factors_the_running_sum(case: Strategy) -> None:
    """`B·C` is the lower-triangular matrix of ones: without noise, what is decoded are the running sums."""
    B, C = case.dense
    off = float(np.max(np.abs(B @ C - np.tril(np.ones((case.n, case.n))))))
    demand(off <= 1e-9, f"B·C is off the matrix of ones by {off:.3g}, for {case.n} rows", "See what decode forgets.")


def nothing_is_encoded_ahead_of_its_time(case: Strategy) -> None:
    """What row k adds has no share of later rows, exactly: the reason why later rows may depend on earlier sums."""
    coder, (B, C) = case.coder, case.dense
    for k in range(1, case.n + 1):
        ahead = C[coder.before(k) : coder.before(k + 1), k:].any() or B[k - 1, coder.before(k + 1) :].any()
        demand(not ahead, f"row {k} of {case.n} uses rows that come after it", "Make B and C lower-triangular.")


def no_column_is_longer_than_it_says(case: Strategy) -> str:
    """`column` bounds every column of C. One example moves all that is encoded by as much: the noise is sized to it."""
    lengths = np.linalg.norm(case.dense[1], axis=0)
    j, stated = int(np.argmax(lengths)), case.coder.sensitivity
    fault = f"column {j + 1} of C has length {lengths[j]:.6g} for {case.n} rows, and column says {stated:.6g}"
    demand(lengths[j] <= stated * (1.0 + 1e-13), fault, "State the longest column, rounded up.")
    return f"the longest column is {lengths[j] / stated:.1%} of what is stated"


def errors_are_the_rows_of_the_decoder(case: Strategy) -> None:
    """`error(k)` is the length of row k of B, for one k or many: releases state their deviation by it."""
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


def encoded_rows_are_within_reach(case: Strategy) -> None:
    """`reach` bounds the absolute sums of the rows of C: integers are kept in range by it."""
    sums, stated = np.sum(np.abs(case.dense[1]), axis=1), case.coder.row_norm
    fault = f"a row of C sums to {np.max(sums):.6g} in absolute value, and reach says {stated:.6g}"
    demand(np.max(sums) <= stated * _NEARLY, fault, "State the largest, rounded up.")


def encoding_errs_by_no_more_than_its_blur(case: Strategy) -> None:
    """Encoded entries are within `blur` of `C·x`, or, where encoding only adds, exact on integers.

    Rounding errors may differ between two worlds, and are paid for.
    """
    if case.coder.integer:
        integers = generator(case.n).integers(-(2**40), 2**40, size=(case.n, 2))
        exact = case.dense[1].astype(np.int64) @ integers
        fault = "whole says that encoding only adds, and integers do not stay exact"
        demand(
            np.array_equal(_encoded(case, integers), exact), fault, "Add integers as integers, or say whole = False."
        )
        return
    X, C = case.rows(), case.dense[1].astype(np.longdouble)
    off = float(np.max(np.abs(_encoded(case, X) - C @ X)))
    allowed = 2.0 * case.coder.rounding_error + 2.0**-52 * float(
        np.max(np.sum(np.abs(C), axis=1))
    )  # C's entries are rounded too
    fault = f"encoded entries are off by {off:.3g} for {case.n} rows, and blur says {case.coder.rounding_error:.3g}"
    demand(off <= allowed, fault, "Bound the rounding errors of encode.")


def _encoded(case: Strategy, rows: np.ndarray) -> np.ndarray:
    secret, out = case.coder.start(rows.shape[1])[0], []
    for k, row in enumerate(rows, start=1):
        secret, more = case.coder.encode(secret, row, k)
        out.append(more)
    return np.concatenate(out)


def encoded_rows_are_counted_alike(case: Strategy) -> None:
    """`rows`, `before` and `release_of` tell one story, which noise is drawn by."""
    coder = case.coder
    demand(coder.before(1) == 0, "before(1) is not 0", "Count the encoded rows before row k.")
    for k in range(1, case.n + 1):
        first, last = coder.before(k) + 1, coder.before(k + 1)
        alike = last - first + 1 == coder.rows(k) >= 1
        alike = alike and all(coder.release_of(row) == k for row in range(first, last + 1))
        demand(alike, f"rows, before and release_of disagree about row {k}", "Count encoded rows from 1.")


def encode_and_decode_leave_their_arguments_alone(case: Strategy) -> None:
    """Memories are values: encoding and decoding twice from the same ones gives the same, and neither has changed."""
    coder, (secret, public) = case.coder, case.coder.start(2)
    for k, row in enumerate(case.rows(), start=1):
        before = copied(secret), copied(public), row.copy()
        following, noisy = coder.encode(secret, row, k)
        decoded, total = coder.decode(public, noisy, k)
        shapes = noisy.shape == (coder.rows(k), 2) and total.shape == (2,)
        demand(shapes, f"row {k} encodes {noisy.shape} and decodes {total.shape}", "Return rows(k) rows, and a sum.")
        alike = np.array_equal(coder.encode(secret, row, k)[1], noisy)
        alike = alike and np.array_equal(coder.decode(public, noisy, k)[1], total)
        demand(alike, f"row {k} is another when it is asked for again", "Keep all memory in the two memories.")
        clean = same(secret, before[0]) and same(public, before[1]) and np.array_equal(row, before[2])
        demand(clean, f"row {k} wrote into what it was given", COPY)
        secret, public = following, decoded


def many_rows_are_as_one_by_one(case: Strategy) -> None:
    """The compiled strategy, from any row on, does what `encode` and `decode` do, up to rounding."""
    from taciturn.compiled.passes import STRATEGIES

    coder, rows = case.coder, case.rows()
    if type(coder) not in STRATEGIES:
        skip(f"{type(coder).__name__} has no compiled form")
    batch = STRATEGIES[type(coder)](coder)
    (secret, public), remedy = coder.start(2), "Make the compiled form do what the verbs do, or leave it out."
    encoded = _encoded(case, rows)
    sums, start = np.empty_like(rows), 0
    for end in sorted({1, case.n // 2, case.n} - {0}):
        if start < end:
            own = slice(coder.before(start + 1), coder.before(end + 1))
            secret, fast = batch.encode(secret, rows[start:end], start + 1)
            alike = fast.shape == encoded[own].shape and np.allclose(fast, encoded[own], rtol=1e-9, atol=1e-9)
            demand(alike, f"the compiled encoder differs from encode in rows {start + 1} to {end} of {case.n}", remedy)
            public, sums[start:end] = batch.decode(public, fast, start + 1, end - start)
            start = end
    alike = np.allclose(sums, np.cumsum(rows, axis=0), rtol=1e-8, atol=1e-8)
    demand(alike, f"the compiled decoder differs from the prefix sums, for {case.n} rows", remedy)


CHECKS = (
    it_factors_the_running_sum,
    nothing_is_encoded_ahead_of_its_time,
    no_column_is_longer_than_it_says,
    errors_are_the_rows_of_the_decoder,
    encoded_rows_are_within_reach,
    encoding_errs_by_no_more_than_its_blur,
    encoded_rows_are_counted_alike,
    encode_and_decode_leave_their_arguments_alone,
    many_rows_are_as_one_by_one,
)
