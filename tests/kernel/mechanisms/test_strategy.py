"""What every strategy owes: its streaming form is its matrices, and what it says of them is so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.mechanisms.strategies import (
    CASES,
    LOWER_BOUND,
    MULTIPLYING,
    STRATEGIES,
    TREES,
    decoded,
    dense,
    encoded,
)
from taciturn import InvalidInput, Privacy, SquareRoot
from taciturn.checks.strategies import CHECKS, Strategy, row_counts_are_consistent

ALL = pytest.mark.parametrize("name", list(STRATEGIES))
LENGTHS = st.integers(1, 24)
BUDGET = Privacy(1.0, 1e-6)


@pytest.mark.privacy
@ALL
@settings(max_examples=12)
@given(n=LENGTHS)
def test_it_keeps_its_contract_for_every_number_of_rows(name, n):
    """Its matrices factor the running sum, nothing comes ahead of its time, and what it says of them is so."""
    for check in CHECKS:
        check(Strategy(STRATEGIES[name], n))


@ALL
@settings(max_examples=12)
@given(n=LENGTHS)
def test_columns_are_hardly_shorter_than_it_says(name, n):
    """And `errors` is at mu = 1."""
    coder, B, C = dense(name, n)
    assert np.max(np.linalg.norm(C, axis=0)) >= coder.sensitivity * (1.0 - 1e-11)
    np.testing.assert_allclose(STRATEGIES[name].errors(n), coder.sensitivity * np.linalg.norm(B, axis=1), rtol=1e-9)


@ALL
def test_a_thousand_encoded_rows_are_counted_alike(name):
    """`rows`, `before` and `release_of` tell one story."""
    row_counts_are_consistent(Strategy(STRATEGIES[name], 1000))


@ALL
def test_memory_does_not_grow(name):
    """It is no larger after a thousand rows than after six hundred; of the square root alone it is every row so far."""
    coder, sizes = STRATEGIES[name].coder(1000), {}
    secret, public = coder.start(2)
    for k in range(1, 1001):
        secret, noisy = coder.encode(secret, np.ones(2), k)
        public, _ = coder.decode(public, noisy, k)
        sizes[k] = sum(v.size for v in (*secret.values(), *public.values()))
    if isinstance(STRATEGIES[name], SquareRoot):
        assert sizes[600] == 4 * 600
    else:
        assert sizes[1000] == sizes[600] <= 2 * 24


# With rounding and noise, through the calibrated mechanism.


@pytest.mark.parametrize("name", TREES)
@settings(max_examples=12)
@given(n=LENGTHS, seed=st.integers(0, 99))
def test_trees_add_integers_exactly(name, n, seed):
    """Rows rounded first, then `C` of integers; and, not refined, the decoded sum is exact too."""
    calibrated, rng = CASES["sum"](STRATEGIES[name], BUDGET, n).calibrated, np.random.default_rng(seed)
    _, B, C = dense(name, n)
    X, step = rng.uniform(-1.0, 1.0, (n, 3)), calibrated.step(1)
    whole = np.floor(X / step + 0.5).astype(np.int64)
    integers = encoded(calibrated, X)
    assert integers.dtype == np.int64
    assert np.array_equal(integers, C.astype(np.int64) @ whole)
    noisy = integers + np.concatenate(list(calibrated.noise(seed, 1, n)))
    sums = decoded(calibrated, noisy, n) / step
    if name == "tree":
        assert np.array_equal(sums.astype(np.int64), B.astype(np.int64) @ noisy)
    np.testing.assert_allclose(sums, B @ noisy, rtol=1e-12, atol=1e-12 * np.max(np.abs(noisy)))


@pytest.mark.parametrize("name", MULTIPLYING)
@settings(max_examples=12)
@given(n=LENGTHS, seed=st.integers(0, 99))
def test_rows_that_are_multiplied_are_rounded_after(name, n, seed):
    """Integers within half a step, and its rounding errors, of `C x`; sums are `B` of what was noised."""
    calibrated, rng = CASES["sum"](STRATEGIES[name], BUDGET, n).calibrated, np.random.default_rng(seed)
    _, B, C = dense(name, n)
    X, step = rng.uniform(-1.0, 1.0, (n, 3)), calibrated.step(1)
    integers = encoded(calibrated, X)
    assert integers.dtype == np.int64
    assert np.max(np.abs(integers - C @ X / step)) <= 0.5 + calibrated.coder.rounding_error / step + 1e-6
    noisy = integers + np.concatenate(list(calibrated.noise(seed, 1, n)))
    sums = decoded(calibrated, noisy, n)
    np.testing.assert_allclose(sums, B @ noisy * step, rtol=1e-9, atol=1e-9 * step * np.max(np.abs(noisy)))
    quiet = decoded(calibrated, integers, n)
    assert np.max(np.abs(quiet - np.cumsum(X, axis=0))) <= step * np.max(np.sum(np.abs(B), axis=1)) + 1e-9


@ALL
def test_the_stated_standard_deviation_is_that_of_the_decoded_noise(name):
    """`sd·‖e_k B‖`, which every release says of itself."""
    private = CASES["sum"](STRATEGIES[name], BUDGET, 20, seed=1)
    _, B, _ = dense(name, 20)
    _, releases = private.run(private.start(), np.ones((20, 3)))
    stated = [release.noise_sd for release in releases]
    np.testing.assert_allclose(stated, private.calibrated.sd * np.linalg.norm(B, axis=1), rtol=1e-9)


@pytest.mark.parametrize("n", [2**10, 2**14])
def test_no_strategy_is_better_than_can_be(n):
    """The largest error at mu = 1 lies above the lower bound for any strategy."""
    for name in ("tree", "refined tree", "square root", "blt"):
        assert np.max(STRATEGIES[name].errors(n)) > LOWER_BOUND[n]


@ALL
@pytest.mark.parametrize("n", [0, -1, 1.5, "many"])
def test_the_number_of_releases_is_an_integer(name, n):
    """Others are rejected by name."""
    with pytest.raises(InvalidInput, match="an integer, 1 or more"):
        STRATEGIES[name].coder(n)


@pytest.mark.parametrize("name", [*TREES, "square root"])
def test_trees_and_square_roots_need_a_horizon(name):
    """The others say what to do."""
    with pytest.raises(InvalidInput, match=r"State a horizon, or use BLT\(buffers=8\)"):
        STRATEGIES[name].coder(None)
