"""Trees and buffers, many rows at once: what their coders make of one row after the other, and of dense matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn.calibration.blt_fit import fitted
from taciturn.kernel.mechanisms import blt_loops as blt
from taciturn.kernel.mechanisms import blt_pass, prefix_sum_pass
from taciturn.kernel.mechanisms import lattice_loops as lattice
from taciturn.kernel.mechanisms import tree_loops as tree
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.mechanisms.sqrt import RootCoder
from taciturn.kernel.mechanisms.tree import TreeCoder

WIDTH = 3
CODERS = {
    "tree": TreeCoder(40, refined=True),
    "plain tree": TreeCoder(40, refined=False),
    "root": RootCoder(40),
    **{f"blt of {buffers}": BLTCoder(40, *fitted(40, buffers)) for buffers in range(1, 10)},
}
CUTS = st.lists(st.integers(0, 40), max_size=5)


def one_by_one(coder, rows):
    """Encoded rows, sums and both memories, by the verbs that define them."""
    secret, public = coder.start(rows.shape[1])
    encoded, sums = [], []
    for k, row in enumerate(rows, start=1):
        secret, more = coder.encode(secret, row, k)
        public, total = coder.decode(public, np.asarray(more, dtype=float), k)
        encoded.append(more)
        sums.append(total)
    return np.concatenate(encoded), np.array(sums), secret, public


def at_once(coder, rows, cuts=()):
    """The same, many rows at a time."""
    batch = prefix_sum_pass.STRATEGIES[type(coder)](coder)
    secret, public = coder.start(rows.shape[1])
    encoded, sums, k = [], [], 1
    for part in np.split(rows, sorted(cuts)):
        if len(part):
            secret, more = batch.encode(secret, part, k)
            public, totals = batch.decode(public, np.asarray(more, dtype=float), k, len(part))
            encoded.append(more)
            sums.append(totals)
            k += len(part)
    return np.concatenate(encoded), np.concatenate(sums), secret, public


@pytest.mark.parametrize("name", CODERS)
@settings(max_examples=25)
@given(rows=arrays(np.float64, (40, WIDTH), elements=st.floats(-1e6, 1e6)), cuts=CUTS)
def test_many_rows_are_rows_one_by_one(name, rows, cuts):
    """Up to rounding, and exactly the same however they are cut; memories too."""
    coder, rows = CODERS[name], np.rint(rows * 1e3) if CODERS[name].integer else rows
    whole, parts = at_once(coder, rows), at_once(coder, rows, cuts)
    for result, again, expected in zip(whole, parts, one_by_one(coder, rows), strict=True):
        if isinstance(result, dict):
            assert list(result) == list(again) == list(expected)
            arrays = [(result[key], again[key], expected[key]) for key in result]
        else:
            arrays = [(result, again, expected)]
        for one, two, three in arrays:
            np.testing.assert_array_equal(one, two)
            assert (one.dtype, one.shape) == (three.dtype, three.shape)
            np.testing.assert_allclose(one, three, rtol=0.0, atol=1e-13 * (1.0 + np.max(np.abs(rows))) * 40)


@pytest.mark.parametrize("name", CODERS)
def test_many_rows_are_a_product_of_matrices(name):
    """`C·x` and the running sums, from the matrices that the coder itself writes down."""
    coder, rows = CODERS[name], np.random.default_rng(2).normal(size=(40, WIDTH))
    B, C = coder.matrices(40)
    encoded, sums, _, _ = at_once(coder, rows)
    np.testing.assert_allclose(encoded, C @ rows, atol=1e-12)
    np.testing.assert_allclose(sums, np.cumsum(rows, axis=0), atol=1e-11)
    noise = np.random.default_rng(3).normal(size=(len(C), WIDTH))
    _, decoded = prefix_sum_pass.STRATEGIES[type(coder)](coder).decode(coder.start(WIDTH)[1], noise, 1, 40)
    np.testing.assert_allclose(decoded, B @ noise, atol=1e-11)


def in_parts(coder, rows, noise, steps, largest):
    """Noisy sums and memories by loops for each part: clipped, encoded, rounded under noise, decoded."""
    batch, (secret, public) = blt_pass.BLT(coder), coder.start(rows.shape[1])
    secret, encoded = batch.encode(secret, lattice.clipped(rows, largest), 1)
    public, sums = batch.decode(public, lattice.add_noise_batch(encoded, steps, np.inf, noise), 1, len(rows))
    return secret, public, sums


@pytest.mark.parametrize("buffers", range(1, 10))
@settings(max_examples=25)
@given(rows=arrays(np.float64, (40, WIDTH), elements=st.floats()), cuts=CUTS, seed=st.integers(0, 99))
def test_one_loop_adds_the_noise_of_its_parts(buffers, rows, cuts, seed):
    """Bit for bit, however it is cut: rows of any floats, and bounds and steps of each row's own; nothing given moves.

    The rows are long enough for loops that take several entries at a time.
    """
    rows = np.tile(rows, (1, 12))
    coder, rng = CODERS[f"blt of {buffers}"], np.random.default_rng(seed)
    noise, steps = rng.integers(-(2**32), 2**32, rows.shape), 2.0 ** rng.integers(-30, -20, 40)
    largest = rng.uniform(1.0, 2.0, 40)
    secret, public = coder.start(rows.shape[1])
    given = [array.copy() for array in (rows, noise, secret["buffers"], public["buffers"], public["sum"])]
    memories, result = (secret, public), []
    for part in np.split(np.arange(40), sorted(cuts)):
        if len(part):
            numbers = rows[part], noise[part], steps[part], largest[part]
            *memories, sums = blt_pass.blt_sums(coder, *memories, *numbers)
            result.append(sums)
    expected = in_parts(coder, rows, noise, steps, largest)
    np.testing.assert_array_equal(np.concatenate(result), expected[2])
    for ours, theirs in zip(memories, expected[:2], strict=True):
        assert list(ours) == list(theirs)
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])
    for before, after in zip(given, (rows, noise, secret["buffers"], public["buffers"], public["sum"]), strict=True):
        np.testing.assert_array_equal(before, after)


@settings(max_examples=40)
@given(rows=arrays(np.int64, (64, 2), elements=st.integers(-(2**55), 2**55)), first=st.integers(0, 40))
def test_trees_of_integers_are_exact(rows, first):
    """In Python's integers: every row, and every node that it completes, wherever one begins."""
    waiting = np.zeros((7, 2), dtype=np.int64)
    tree.encode(rows[:first], 1, waiting)
    result = tree.encode(rows[first:], first + 1, waiting)
    expected = []
    for k in range(first + 1, 65):
        for height in range((k & -k).bit_length()):
            block = rows[k - 2**height : k].tolist()
            expected.append([sum(row[j] for row in block) for j in range(2)])
    assert result.tolist() == expected
    for height in range(7):
        end = (64 >> height) - (1 - (64 >> height) % 2) << height  # the last row that completes a node of this height
        assert waiting[height].tolist() == rows[end - 2**height : end].sum(axis=0).tolist()


@pytest.mark.parametrize("k", [1, 2, 7, 8, 1023, 1024, 2**30, 2**40])
def test_any_row_may_be_the_first(k):
    """Rows that complete many nodes, far into a stream."""
    coder = TreeCoder(2**41, refined=True)
    rng = np.random.default_rng(k)
    waiting, nodes = rng.integers(-99, 99, (42, 2)), rng.normal(size=(42, 2))
    row = rng.integers(-99, 99, (1, 2))
    secret, expected = coder.encode({"nodes": waiting}, row[0], k)
    moved = waiting.copy()
    np.testing.assert_array_equal(tree.encode(row, k, moved), expected)
    np.testing.assert_array_equal(moved, secret["nodes"])
    public, total = coder.decode({"nodes": nodes}, expected.astype(float), k)
    result, total_at_once = prefix_sum_pass.Tree(coder).decode({"nodes": nodes}, expected.astype(float), k, 1)
    np.testing.assert_allclose(total_at_once[0], total, rtol=1e-13)
    np.testing.assert_allclose(result["nodes"], public["nodes"], rtol=1e-15)


@pytest.mark.privacy
@pytest.mark.parametrize("buffers", range(1, 10))
def test_encoding_errs_by_less_than_is_charged(buffers):
    """The error of an encoded entry, in units of the largest row, is below `rounding_error`."""
    n = 200
    coder = BLTCoder(n, *fitted(n, buffers))
    decays, _, weights, _ = coder.arrays
    rng = np.random.default_rng(buffers)
    rows = np.stack([np.ones(n), -np.ones(n), rng.uniform(-1.0, 1.0, n), rng.choice([-1.0, 1.0], n)], axis=1)
    held = np.zeros((len(decays), 4))
    encoded = blt.encode(rows, decays, weights, held)
    th, om = [Fraction(x) for x in decays], [Fraction(x) for x in weights]
    exact = [[Fraction(0)] * 4 for _ in th]
    worst = Fraction(0)
    for k in range(n):
        for j in range(4):
            x = Fraction(rows[k, j])
            value = x + sum(w * buffer[j] for w, buffer in zip(om, exact, strict=True))
            worst = max(worst, abs(value - Fraction(encoded[k, j])))
            for i in range(len(th)):
                exact[i][j] = th[i] * exact[i][j] + x
        if k % 16 == 15:  # keeps fractions short, at a cost far below a unit in the last place
            exact = [[Fraction(int(value * 2**140), 2**140) for value in buffer] for buffer in exact]
    assert 0 < worst <= coder.rounding_error
