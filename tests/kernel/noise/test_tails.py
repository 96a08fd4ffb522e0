"""Draws are counted in rings of one sigma, out to six and beyond, against exact probabilities.

Nothing is forced here: values are drawn as a release draws them, and far ones are waited for. Of ten billion draws 19.7
should lie beyond six sigma, and a sampler that never goes there is told by their absence (3e-9).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from kernel.noise.draws import Draw
from kernel.noise.sampler_harness import rectangles
from taciturn.kernel.noise.sampling import lattice_normal, seeded_bits
from taciturn.kernel.noise.ziggurat_tables import LAYERS, tables

pytestmark = pytest.mark.privacy

RINGS, NEAR, PORTION = 7, 3, 2**17
ALARM = 2.5e-8
"""Each of twelve counts alarms below this quantile and above that of its complement: in 6e-7 of honest runs."""


def borders(scale: float) -> list[int]:
    """The first integers of the rings after the one around 0."""
    return [int(np.ceil(ring * scale)) for ring in range(1, RINGS)]


def shares(scale: float) -> np.ndarray:
    """What each ring should get of the draws, of both signs."""
    return -np.diff([1.0, *(2.0 * ndtr(-(first - 0.5) / scale) for first in borders(scale)), 0.0])


def counted(draw: Draw, scale: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """How many draws lie in each ring, and how many of those are positive, the near rings taken together."""
    all_of, positive, first = np.zeros(RINGS, dtype=np.int64), np.zeros(RINGS, dtype=np.int64), borders(scale)
    for _ in range(count // PORTION):
        values = draw(PORTION)
        size = np.abs(values)
        far = values[size >= first[NEAR - 1]]
        ring = np.searchsorted(first, np.abs(far), side="right")
        beyond = [PORTION, *(np.count_nonzero(size >= k) for k in first[: NEAR - 1]), far.size]
        all_of += np.bincount(ring, minlength=RINGS)
        all_of[:NEAR] -= np.diff(beyond)
        positive += np.bincount(ring[far > 0], minlength=RINGS)
        positive[0] += np.count_nonzero(values > 0) - np.count_nonzero(far > 0)
    return all_of, positive


def strange(draw: Draw, scale: float, count: int) -> list[str]:
    """Rings with too many or too few draws, or too many of one sign."""
    all_of, positive = counted(draw, scale, count)
    total = int(all_of.sum())
    asked = [(f"ring {i}", all_of[i], total, share) for i, share in enumerate(shares(scale))]
    asked += [("signs, near", positive[0], all_of[:NEAR].sum(), 0.5)]
    asked += [(f"signs, ring {i}", positive[i], all_of[i], 0.5) for i in range(NEAR, RINGS)]
    return [name for name, *facts in asked if min(binom.cdf(*facts), binom.sf(facts[0] - 1, *facts[1:])) < ALARM]


def seeded(scale: float, seed: int) -> Draw:
    bits = seeded_bits(seed, 0)
    return lambda count: lattice_normal(scale, (count,), bits)


def test_rings_are_counted():
    """Integers on both sides of every border, of either sign, are where they belong."""
    scale = 2.0**30.3
    edges = [side * (first + nudge) for first in borders(scale) for nudge in (-1, 0) for side in (1, -1)]
    values = np.zeros(PORTION, dtype=np.int64)
    values[: len(edges)] = edges
    all_of, positive = counted(lambda count: values, scale, PORTION)
    assert (all_of - [PORTION - len(edges), *[0] * 6]).tolist() == [2, 4, 4, 4, 4, 4, 2]
    assert positive.tolist() == [5, 0, 0, 2, 2, 2, 1]
    assert shares(scale).sum() == pytest.approx(1.0, abs=1e-15)


def test_the_tail_to_five_standard_deviations():
    """Two hundred million draws: 115 of them should lie beyond five sigma."""
    assert strange(seeded(2.0**33.7, 1), 2.0**33.7, 200_000_000) == []


@pytest.mark.slow
def test_the_tail_to_six_standard_deviations():
    """Ten billion draws; with secret bits."""
    scale = 2.0**33.7
    assert strange(lambda count: lattice_normal(scale, (count,)), scale, 10_000_000_000) == []


# Planted faults.


@pytest.mark.parametrize(("wrong", "result"), [(0.998, "ring 0"), (1.002, "ring 0")])
def test_a_scale_off_by_a_five_hundredth_is_caught(wrong, result):
    """0.2 %: of forty million draws 39,000 change places over the first border, 13 of their standard deviations."""
    assert result in strange(seeded(wrong * 2.0**30, 2), 2.0**30, 40_000_000)


def test_a_tail_cut_at_five_standard_deviations_is_caught():
    """Rectangles that end near five sigma: some 100 draws of 200 million lie nearer than they should."""
    integers, real = tables()
    end = LAYERS + int(np.searchsorted(integers[2, LAYERS:] / 2.0**60, 5.0)) - 1

    def draw(count: int) -> np.ndarray:
        with rectangles(integers[:, :end].copy(), real[:, :end].copy()):
            return honest(count)

    honest = seeded(2.0**30, 3)
    assert strange(draw, 2.0**30, 200_000_000) == ["ring 5"]


def test_a_lost_sign_is_caught():
    """Of the tail alone."""
    honest, scale = seeded(2.0**30, 4), 2.0**30

    def draw(count: int) -> np.ndarray:
        values = honest(count)
        return np.where(np.abs(values) > 4.0 * scale, np.abs(values), values)

    assert strange(draw, scale, 20_000_000) == ["signs, ring 4"]


def test_no_draw_beyond_six_is_an_alarm():
    """Of ten billion: were none there, the count of the last ring would be out of bounds, as would 49 be."""
    last = float(shares(2.0**33.7)[-1])
    assert binom.cdf(0, 10**10, last) < ALARM < binom.cdf(1, 10**10, last)
    assert binom.sf(48, 10**10, last) < ALARM
