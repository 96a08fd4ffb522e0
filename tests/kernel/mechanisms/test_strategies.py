"""Trees and buffers, many rows at once: what their coders make of one row after the other, and of dense matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernel.mechanisms.strategies import encoded_by_loop, encoded_by_loops
from taciturn.calibration.blt_fit import fitted
from taciturn.kernel.mechanisms import tree_loops as tree
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.mechanisms.blt_pass import Cut
from taciturn.kernel.mechanisms.prefix_sum_pass import SUMS
from taciturn.kernel.mechanisms.tree import TreeCoder

WIDTH = 3
CODERS = {
    "tree": TreeCoder(40, refined=True),
    "plain tree": TreeCoder(40, refined=False),
    **{f"blt of {buffers}": BLTCoder(40, *fitted(40, buffers)) for buffers in range(1, 10)},
}
CUTS = st.lists(st.integers(0, 40), max_size=5)


def one_by_one(coder, rows, cut):
    """Noisy sums and both memories, by the verbs that define them: clipped, encoded, rounded under noise, decoded."""
    (secret, public), sums, place = coder.start(rows.shape[1]), [], 0
    for k, row in enumerate(rows, start=1):
        row = np.clip(np.nan_to_num(row), -cut.largest[k - 1], cut.largest[k - 1])
        at = slice(place, place + coder.rows(k))
        steps = cut.steps[at, None]
        row = np.floor(row / steps[0] + 0.5).astype(np.int64) if coder.integer else row
        secret, more = coder.encode(secret, row, k)
        integers = more if coder.integer else np.floor(more / steps + 0.5)
        public, total = coder.decode(public, (integers + cut.noise[at]) * steps, k)
        sums.append(total)
        place = at.stop
    return np.array(sums), secret, public


def at_once(coder, rows, cut, cuts=()):
    """The same, many rows at a time."""
    memories, sums, k = coder.start(rows.shape[1]), [], 1
    for part in np.split(np.arange(len(rows)), sorted(cuts)):
        if len(part):
            own = slice(coder.before(k), coder.before(k + len(part)))
            inside = Cut(cut.noise[own], cut.steps[own], cut.largest[part])
            memories, totals = SUMS[type(coder)](coder, memories, rows[part], k, inside)
            sums.append(totals)
            k += len(part)
    return np.concatenate(sums), *memories


@pytest.mark.parametrize("name", CODERS)
@settings(max_examples=25)
@given(rows=arrays(np.float64, (40, WIDTH), elements=st.floats()), cuts=CUTS, seed=st.integers(0, 99))
def test_many_rows_are_rows_one_by_one(name, rows, cuts, seed):
    """Up to rounding, and exactly the same however they are cut, memories too; nothing given is changed.

    Rows of any floats, and bounds of each row's own; steps too, where rows are rounded after they are encoded. The rows
    are long enough for loops that take several entries at a time.
    """
    coder, rng = CODERS[name], np.random.default_rng(seed)
    rows = np.tile(rows, (1, 4))
    count = coder.before(41)
    steps = np.full(count, 2.0**-25) if coder.integer else 2.0 ** rng.integers(-30, -20, count)
    noise = rng.integers(-(2**32), 2**32, (count, rows.shape[1]))
    cut = Cut(noise, steps, rng.uniform(1.0, 2.0, 40))
    given = [array.copy() for array in (rows, *cut)]
    whole, parts = at_once(coder, rows, cut), at_once(coder, rows, cut, cuts)
    for before, after in zip(given, (rows, *cut), strict=True):
        np.testing.assert_array_equal(before, after)
    for result, again, expected in zip(whole, parts, one_by_one(coder, rows, cut), strict=True):
        if isinstance(result, dict):
            assert list(result) == list(again) == list(expected)
            arrays = [(result[key], again[key], expected[key]) for key in result]
        else:
            arrays = [(result, again, expected)]
        for one, two, three in arrays:
            np.testing.assert_array_equal(one, two)
            assert one.shape == three.shape
            np.testing.assert_allclose(one, three, rtol=1e-12, atol=1e-4)  # a step of 2⁻²¹ on some of 40 rows


@pytest.mark.parametrize("name", CODERS)
def test_many_rows_are_a_product_of_matrices(name):
    """Prefix sums of the rows, and `B·noise`, from the matrices that the coder itself writes down."""
    coder, rng = CODERS[name], np.random.default_rng(2)
    B, C = coder.matrices(40)
    rows, noise = rng.integers(-99, 99, (40, WIDTH)).astype(float), rng.integers(-(2**30), 2**30, (len(C), WIDTH))
    cut = Cut(noise, np.full(len(C), 2.0**-30), np.full(40, 1e3))
    sums, _, _ = at_once(coder, rows, cut)
    np.testing.assert_allclose(sums, np.cumsum(rows, axis=0) + B @ (noise * 2.0**-30), atol=1e-7)
    if not coder.integer:
        np.testing.assert_allclose(encoded_by_loops(coder, rows), C @ rows, atol=1e-10)


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
    totals = tree.decode(expected.astype(float), k, 1, nodes, coder.weights)
    np.testing.assert_allclose(totals[0], total, rtol=1e-13)
    np.testing.assert_allclose(nodes, public["nodes"], rtol=1e-15)


@pytest.mark.privacy
@pytest.mark.parametrize("buffers", range(1, 10))
def test_encoding_errs_by_less_than_is_charged(buffers):
    """The error of an encoded entry, in units of the largest row, is below `rounding_error`."""
    n = 200
    coder = BLTCoder(n, *fitted(n, buffers))
    decays, _, weights, _ = coder.arrays
    rng = np.random.default_rng(buffers)
    rows = np.stack([np.ones(n), -np.ones(n), rng.uniform(-1.0, 1.0, n), rng.choice([-1.0, 1.0], n)], axis=1)
    encoded = encoded_by_loop(rows, decays, weights, np.zeros((len(decays), 4)))
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
