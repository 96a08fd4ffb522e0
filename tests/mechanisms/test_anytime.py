"""Sums without a horizon: doubling epochs, none of whose columns is longer than 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechanisms.strategies import EPOCHS, LOWER_BOUND, STRATEGIES, dense
from taciturn import Anytime, InvalidInput
from taciturn.mechanisms.strategy import matrices

TABLE = {2**10: 5.1, 2**14: 6.1, 2**17: 6.8, 2**20: 7.4}


@pytest.mark.parametrize("n", TABLE)
def test_largest_errors(n):
    """At mu = 1, no larger than stated here, nor much less, and less than twice the least possible."""
    largest = float(np.max(Anytime().errors(n)))
    assert largest <= TABLE[n]
    assert largest > 0.9 * TABLE[n]
    assert largest < 2.0 * LOWER_BOUND[n]


@pytest.mark.parametrize("name", EPOCHS)
def test_it_does_not_know_the_horizon(name):
    """The first rows are encoded and decoded alike, however many follow."""
    _, B, C = dense(name, 20)
    for n in (5, 7, 8, 19):
        coder = STRATEGIES[name].coder(n)
        fewer, rows = matrices(coder, n), coder.before(n + 1)
        np.testing.assert_allclose(fewer[0], B[:n, :rows], rtol=1e-12)
        np.testing.assert_allclose(fewer[1], C[:rows, :n], rtol=1e-12)
    assert np.array_equal(matrices(STRATEGIES[name].coder(None), 20)[1], C)


@pytest.mark.privacy
@pytest.mark.parametrize("name", EPOCHS)
@pytest.mark.parametrize("n", [1, 3, 4, 100, 127, 255])
def test_shares_add_up(name, n):
    """A column is a row of its epoch's strategy and one of the totals': squares add up to at most 1, nearly reached."""
    coder = STRATEGIES[name].coder(n)
    _, C = matrices(coder, n)
    lengths = np.linalg.norm(C, axis=0)
    assert np.max(lengths) <= 1.0 <= coder.sensitivity
    ends = [coder.before(2**j) - 1 for j in range(1, (n + 1).bit_length())]
    inside = np.delete(C, ends, axis=0)
    assert np.max(np.linalg.norm(inside, axis=0)) <= math.sqrt(1.0 - coder.share) * (1.0 + 1e-12)
    assert np.max(np.linalg.norm(C[ends], axis=0)) <= math.sqrt(coder.share) * (1.0 + 1e-12)
    assert np.max(np.linalg.norm(inside, axis=0)) >= math.sqrt(1.0 - coder.share) * (1.0 - 1e-9)


@pytest.mark.privacy
def test_totals_use_up_their_share_in_the_last_epoch():
    """Over all 24 totals the first one's column is the whole share, so that no epoch may follow."""
    coder = Anytime().coder(None)
    secret, lengths = coder.totals.start(1)[0], []
    for j in range(1, 26):
        secret, row = coder.totals.encode(secret, np.array([float(j == 1)]), j)
        lengths.append(float(row[0, 0]) * coder.outer)
    assert np.linalg.norm(lengths[:24]) == pytest.approx(math.sqrt(0.3), rel=1e-9)
    assert np.linalg.norm(lengths[:24]) <= math.sqrt(0.3)
    assert np.linalg.norm(lengths) > math.sqrt(0.3) * (1.0 + 1e-4)


@pytest.mark.privacy
@pytest.mark.parametrize("n", [1, 100, 2**20, 2**23])
def test_rounding_errors_of_both_strategies_count(n):
    """Every epoch's, on rows of 1, and the totals', on rows as large as all together."""
    coder = Anytime().coder(n)
    inside = [coder.inner(j) * coder.epoch(j).rounding_error for j in range(n.bit_length())]
    assert coder.rounding_error >= max(*inside, coder.outer * coder.totals.rounding_error * n)


@pytest.mark.privacy
@pytest.mark.privacy
@pytest.mark.parametrize(("buffers", "share"), [(1, 0.3), (2, 0.9), (5, 0.3)])
def test_totals_that_drift_apart_are_charged(buffers, share):
    """Two totals, nearly the same after half of their 2²³ rows, on both sides of a power of two.

    Each further row is half a unit in the last place of the larger one, which stays as it is, and a unit of the smaller
    one: they move apart by 2²² such units, and all that is charged for rounding, `2·sqrt(rows)·e`, is more than that.
    """
    n, length = 2**24 - 1, 2**23
    coder = Anytime(buffers, share).coder(n)
    half = 2.0**22  # the sum of as many rows of 1
    unit = half * 2.0**-53
    above, below = half + 4.0 * unit, half - 2.0 * unit
    ends = [np.add.accumulate(np.append(start, np.full(length - 2**22, -unit)))[-1] for start in (above, below)]
    drift = ends[0] - ends[1] - (above - below)
    assert drift == 2**22 * unit
    assert coder.outer * drift < 2.0 * math.sqrt(coder.before(n + 1)) * coder.rounding_error


def test_more_rows_than_its_epochs_hold_are_rejected():
    """2²⁴ - 1 are not: the last of them ends the 24th epoch. A 25th total would make columns longer than 1."""
    assert Anytime().coder(2**24 - 1).rows(2**24 - 1) == 2
    for n in (2**24, 2**25 - 1, 2**26):
        with pytest.raises(InvalidInput, match=r"Use BLT\(\), or publish less often"):
            Anytime().coder(n)


@pytest.mark.parametrize(
    ("wrong", "match"), [({"buffers": 0}, "buffers"), ({"share": 0.0}, "share"), ({"share": 1.0}, "share")]
)
def test_invalid_arguments_are_rejected(wrong, match):
    """Each by name."""
    with pytest.raises(InvalidInput, match=match):
        Anytime(**wrong)
