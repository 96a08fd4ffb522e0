"""What every strategy owes: its streaming form is its matrices, and what it says of them is so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.strategies import (
    CASES,
    EPOCHS,
    LOWER_BOUND,
    MULTIPLYING,
    STRATEGIES,
    TREES,
    decoded,
    dense,
    encoded,
    rows_of,
    running_sums,
)
from tacit import InvalidInput, Privacy, SquareRoot

ALL = pytest.mark.parametrize("name", list(STRATEGIES))
LENGTHS = st.integers(1, 24)
BUDGET = Privacy(1.0, 1e-6)


@ALL
@settings(max_examples=12)
@given(n=LENGTHS)
def test_it_factors_the_running_sum(name, n):
    """`B·C = A`."""
    _, B, C = dense(name, n)
    np.testing.assert_allclose(B @ C, running_sums(n), atol=1e-10)


@pytest.mark.privacy
@ALL
@settings(max_examples=12)
@given(n=LENGTHS)
def test_nothing_is_encoded_ahead_of_its_time(name, n):
    """What row k adds has no share of later rows, exactly: the reason why later rows may depend on earlier sums."""
    coder, B, C = dense(name, n)
    for k in range(1, n + 1):
        assert not C[rows_of(coder, k), k:].any()
        assert not B[k - 1, coder.before(k + 1) :].any()


@pytest.mark.privacy
@ALL
@settings(max_examples=12)
@given(n=LENGTHS)
def test_no_column_is_longer_than_it_says(name, n):
    """And one is hardly shorter; with doubling epochs, which do not know n, none is longer than 1."""
    coder, _, C = dense(name, n)
    longest = float(np.max(np.linalg.norm(C, axis=0)))
    assert longest <= coder.column
    assert longest >= coder.column * (0.75 if name in EPOCHS else 1.0 - 1e-11)
    assert name not in EPOCHS or coder.column <= 1.0 + 1e-12


@ALL
@settings(max_examples=12)
@given(n=LENGTHS)
def test_errors_are_the_rows_of_the_decoder(name, n):
    """`error(k) = ‖e_k B‖`, for one k or many, and the largest entry that can be encoded is within reach."""
    coder, B, C = dense(name, n)
    lengths = np.linalg.norm(B, axis=1)
    np.testing.assert_allclose(coder.error(np.arange(1, n + 1)), lengths, rtol=1e-9)
    assert float(coder.error(n)) == pytest.approx(lengths[-1], rel=1e-9)
    np.testing.assert_allclose(STRATEGIES[name].errors(n), coder.column * lengths, rtol=1e-9)
    assert np.max(np.sum(np.abs(C), axis=1)) <= coder.reach * (1.0 + 1e-12)


@ALL
def test_encoded_rows_are_counted_alike(name):
    """`rows`, `before` and `release_of` tell one story."""
    coder = STRATEGIES[name].coder(1000)
    assert coder.before(1) == 0
    for k in range(1, 1001):
        assert coder.before(k + 1) - coder.before(k) == coder.rows(k) >= 1
        for row in range(coder.before(k) + 1, coder.before(k + 1) + 1):
            assert coder.release_of(row) == k


@ALL
@settings(max_examples=8)
@given(n=LENGTHS, size=st.integers(1, 4), seed=st.integers(0, 99))
def test_it_leaves_its_arguments_alone(name, n, size, seed):
    """Memories are values: encoding and decoding twice from the same ones gives the same, and neither has changed."""
    coder, rng = dense(name, n)[0], np.random.default_rng(seed)
    secret, public = coder.start(size)
    for k in range(1, n + 1):
        row, before = rng.normal(size=size), {a: v.copy() for a, v in {**secret, **public}.items()}
        again, noisy = coder.encode(secret, row, k)
        following, total = coder.decode(public, noisy, k)
        assert all(np.array_equal(before[a], v) for a, v in {**secret, **public}.items())
        assert np.array_equal(coder.encode(secret, row, k)[1], noisy)
        assert np.array_equal(coder.decode(public, noisy, k)[1], total)
        assert noisy.shape == (coder.rows(k), size)
        assert total.shape == (size,)
        secret, public = again, following


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
    """Rows rounded at the door, then `C` of integers; and, not refined, the decoded sum is exact too."""
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
    assert np.max(np.abs(integers - C @ X / step)) <= 0.5 + calibrated.coder.blur / step + 1e-6
    noisy = integers + np.concatenate(list(calibrated.noise(seed, 1, n)))
    sums = decoded(calibrated, noisy, n)
    np.testing.assert_allclose(sums, B @ noisy * step, rtol=1e-9, atol=1e-9 * step * np.max(np.abs(noisy)))
    quiet = decoded(calibrated, integers, n)
    assert np.max(np.abs(quiet - np.cumsum(X, axis=0))) <= step * np.max(np.sum(np.abs(B), axis=1)) + 1e-9


@ALL
def test_the_stated_deviation_is_that_of_the_decoded_noise(name):
    """`sd·‖e_k B‖`, which every release says of itself."""
    private = CASES["sum"](STRATEGIES[name], BUDGET, 20, seed=1)
    _, B, _ = dense(name, 20)
    _, releases = private.run(private.start(), np.ones((20, 3)))
    stated = [release.noise_sd for release in releases]
    np.testing.assert_allclose(stated, private.calibrated.sd * np.linalg.norm(B, axis=1), rtol=1e-9)


@pytest.mark.parametrize("n", [2**10, 2**14])
def test_no_strategy_is_better_than_can_be(n):
    """The largest error at mu = 1 lies above the lower bound for any strategy."""
    for name in ("tree", "refined tree", "square root", "blt", "anytime"):
        assert np.max(STRATEGIES[name].errors(n)) > LOWER_BOUND[n]


@ALL
@pytest.mark.parametrize("n", [0, -1, 1.5, "many"])
def test_the_number_of_releases_is_a_whole_number(name, n):
    """Others are refused by name."""
    with pytest.raises(InvalidInput, match="whole number, 1 or more"):
        STRATEGIES[name].coder(n)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in EPOCHS])
def test_only_doubling_epochs_do_without_a_horizon(name):
    """The others say what to do."""
    with pytest.raises(InvalidInput, match=r"State a horizon, or use Anytime\(\)"):
        STRATEGIES[name].coder(None)
