"""The square root of the matrix of ones: its coefficients, and its error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from kernel.mechanisms.strategies import dense
from taciturn import SquareRoot

TABLE = {2**10: 3.27, 2**14: 4.16, 2**17: 4.82, 2**20: 5.48}


@pytest.mark.parametrize("n", TABLE)
def test_largest_errors(n):
    """At mu = 1 within half a percent of docs/running_sums.md, and of `(ln n + 3.350)/pi`."""
    largest = float(np.max(SquareRoot().errors(n)))
    assert largest == pytest.approx(TABLE[n], rel=5e-3)
    assert largest == pytest.approx((math.log(n) + 3.350) / math.pi, rel=1e-3)


def test_coefficients_are_binomials():
    """`f_k = binom(2k, k)/4ᵏ`, and the largest error is the sum of their squares."""
    coder = SquareRoot().coder(200)
    exact = [Fraction(math.comb(2 * k, k), 4**k) for k in range(200)]
    assert coder.coefficients == pytest.approx([float(f) for f in exact], rel=1e-13)
    assert np.max(SquareRoot().errors(200)) == pytest.approx(float(sum(f * f for f in exact)), rel=1e-12)


def test_encoder_and_decoder_are_one():
    """`B = C`, Toeplitz: the square root."""
    _, B, C = dense("square root", 24)
    assert np.array_equal(B, C)
    assert all(np.all(np.diagonal(C, -k) == C[k, 0]) for k in range(24))


@pytest.mark.privacy
def test_the_column_is_that_of_the_floats_in_use():
    """Not below the exact length, for coefficients as the encoder has them."""
    for n in (1, 2, 1000, 30_000):
        coder = SquareRoot().coder(n)
        exact = math.fsum(float(Fraction(float(f)) ** 2) for f in coder.coefficients)
        assert math.sqrt(exact) <= coder.sensitivity <= math.sqrt(exact) * (1.0 + 1e-10)


@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["ones", "signs", "random"])
def test_rounding_errors_are_bounded(kind):
    """An encoded entry lies within `rounding_error` of the exact inner product, for rows up to 1."""
    coder, rng = SquareRoot().coder(400), np.random.default_rng(0)
    rows = {"ones": np.ones(400), "signs": rng.choice([-1.0, 1.0], 400), "random": rng.uniform(-1, 1, 400)}[kind]
    secret, _ = coder.start(1)
    for k in range(1, 401):
        secret, result = coder.encode(secret, rows[k - 1 : k], k)
        if k % 40 == 0:
            exact = sum(
                Fraction(float(f)) * Fraction(float(x))
                for f, x in zip(coder.coefficients, rows[k - 1 :: -1], strict=False)
            )
            assert abs(float(Fraction(float(result[0, 0])) - exact)) <= coder.rounding_error
