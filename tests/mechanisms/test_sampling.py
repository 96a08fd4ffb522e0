"""The sampler: bit for bit what it says, in distribution what it says, and never the same twice."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from mechanisms.draws import complaints, repeats, smirnov
from tacit import InvalidInput
from tacit.mechanisms import sampling
from tacit.mechanisms.sampling import lattice_gumbel, lattice_normal, secret_bits, seeded_bits

pytestmark = pytest.mark.privacy

SCALES = [2.0**25, 2.0**30.3, 2.0**40]
FULL = np.uint64(2**64 - 1)


def seeded(scale: float, seed: int = 0):
    """A source of repeatable draws of one scale."""
    bits = seeded_bits(seed, 0)
    return lambda count: lattice_normal(scale, (count,), bits)


def weights() -> np.ndarray:
    """The whole weights of the blocks."""
    cumulative, _ = sampling._table()
    return np.diff(np.concatenate([[0], cumulative.astype(object)]))


def attempt(block: np.ndarray, offset: np.ndarray, uniform: list[int], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """One try for each chosen block, offset in it and 106-bit uniform: kept or not, and which value."""
    cumulative, _ = sampling._table()
    first = np.concatenate([np.zeros(1, np.uint64), cumulative])[block] << np.uint64(1)
    halves = np.array([[u >> 53 for u in uniform], [u % 2**53 for u in uniform]], dtype=np.uint64) << np.uint64(11)
    words = np.concatenate([first, offset.astype(np.uint64), *halves])
    kept, values = sampling._attempt(np.full(len(block), scale), lambda count: words)
    drawn = np.zeros(len(block), dtype=np.int64)
    drawn[kept] = values
    return kept, drawn


def acceptance(block: np.ndarray, offset: np.ndarray, scale: float) -> tuple[list[int], np.ndarray]:
    """How many of the 2^106 uniforms keep each candidate, by bisection, and the candidates."""
    low, high = [0] * len(block), [2**106] * len(block)
    _, values = attempt(block, offset, low, scale)
    for _ in range(106):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        kept, _ = attempt(block, offset, middle, scale)
        low = [m if k else a for a, m, k in zip(low, middle, kept, strict=True)]
        high = [b if k else m for b, m, k in zip(high, middle, kept, strict=True)]
    return high, values


def log_weights(block: np.ndarray, offset: np.ndarray, scale: float) -> list[mp.mpf]:
    """`ln P'(k) + k²/(2·scale²)` for these candidates, up to one constant: all alike, were the sampler ideal."""
    kept, values = acceptance(block, offset, scale)
    whole = weights()
    with mp.workprec(200):
        return [
            mp.log(int(whole[b])) + mp.log(n) + mp.mpf(int(k)) ** 2 / (2 * mp.mpf(scale) ** 2)
            for b, n, k in zip(block, kept, values, strict=True)
        ]


@pytest.mark.parametrize(("scale", "count"), [(2.0**25, 1_000_000), (2.0**30.3, 10_000_000), (2.0**40, 1_000_000)])
def test_draws_are_a_rounded_gaussian(scale, count):
    """Cells, moments, signs and low bits of millions of draws are those of the exact distribution."""
    assert complaints(seeded(scale), scale, count) == []


@pytest.mark.slow
def test_many_draws_are_a_rounded_gaussian():
    """Forty million draws too, and as many of them lie beyond four and five deviations as should."""
    scale = 2.0**33.7
    assert complaints(seeded(scale, 1), scale, 40_000_000) == []
    draw, beyond = seeded(scale, 2), np.zeros(2)
    for _ in range(160):
        x = np.abs(draw(250_000)) / scale
        beyond += [np.count_nonzero(x > 4.0), np.count_nonzero(x > 5.0)]
    for count, tail in zip(beyond, (6.334e-5, 5.733e-7), strict=True):
        assert abs(count - 4e7 * tail) < 5.5 * math.sqrt(4e7 * tail)


@pytest.mark.parametrize("scale", SCALES)
def test_the_whole_shape(scale):
    """The Kolmogorov-Smirnov distance of 200 000 draws stays below 2.9/sqrt(n), false alarm 1e-7."""
    assert smirnov(seeded(scale, 3)(200_000), scale) < 2.9


def far_bits(seed: int, beyond: float):
    """Bits that choose only blocks beyond so many deviations."""
    honest, cumulative = seeded_bits(seed, 0), sampling._table()[0]
    least = int(cumulative[min(int(beyond * sampling._FINENESS), len(cumulative)) - 1])

    def bits(count: int) -> np.ndarray:
        words = honest(count).copy()
        chosen = words[: count // 4]
        words[: count // 4] = (np.uint64(least) + (chosen % np.uint64(max(2**63 - least, 1)))) << np.uint64(1)
        return words

    return bits


@pytest.mark.parametrize("beyond", [3.0, 5.0, 7.0])
def test_the_tail(beyond):
    """Draws forced beyond 3, 5 or 7 deviations have the shape of the tail there."""
    scale = 2.0**31
    values = lattice_normal(scale, (50_000,), far_bits(4, beyond))
    assert np.min(np.abs(values)) >= beyond * scale
    assert smirnov(values, scale, beyond) < 2.9


# Planted faults, which the same questions must find.


def test_a_scale_off_by_a_five_hundredth_is_caught():
    """Noise of 0.2 % too large or too small a deviation."""
    rng = np.random.default_rng(0)
    scale = 2.0**30
    for wrong in (0.998 * scale, 1.002 * scale):
        found = complaints(
            lambda count, sd=wrong: np.rint(rng.standard_normal(count) * sd).astype(np.int64), scale, 10_000_000
        )
        assert "moment 2" in found


def test_a_tail_cut_off_is_caught(monkeypatch):
    """A table that ends at five deviations has no tail to be forced into."""
    monkeypatch.setattr(sampling, "BLOCKS", 5 * sampling._FINENESS)
    sampling._table.cache_clear()
    try:
        values = lattice_normal(2.0**31, (2_000,), far_bits(4, 4.5))
        assert smirnov(values, 2.0**31, 4.5) > 2.9
    finally:
        sampling._table.cache_clear()


def test_a_low_bit_stuck_is_caught():
    """Draws whose lowest or third bit never moves."""
    honest = seeded(2.0**30, 5)
    assert complaints(lambda count: honest(count) & ~np.int64(1), 2.0**30, 500_000) == ["bit 0"]
    assert complaints(lambda count: honest(count) | np.int64(4), 2.0**30, 500_000) == ["bit 2"]


def test_a_lost_sign_is_caught():
    """Draws that are never negative, and ones whose sign is their lowest bit."""
    honest = seeded(2.0**30, 6)
    assert "sign" in complaints(lambda count: np.abs(honest(count)), 2.0**30, 500_000)

    def tied(count):
        values = np.abs(honest(count))
        return np.where(values & 1, values, -values)

    assert complaints(tied, 2.0**30, 500_000) == ["sign and lowest bit together"]


def test_a_repeated_block_is_caught():
    """Words that start over after every call give the same draws twice."""
    same = seeded(2.0**30, 7)(250_000)
    assert complaints(lambda count: same, 2.0**30, 500_000)[0].startswith("the same")
    again = np.tile(seeded(2.0**40, 7)(1000), 2)
    assert repeats(again) == 1000


# Bit for bit.


def test_the_table_is_whole():
    """Weights add up to 2^63 exactly, none is below `C·exp(-x²/2)`, and the correction is what rounding up added."""
    cumulative, excess = sampling._table()
    whole = weights()
    assert int(cumulative[-1]) == 2**63 == sum(whole)
    assert len(whole) == sampling.BLOCKS == sampling.REACH * 1024
    assert ((excess > 0.0) & (excess <= 1.0)).all()
    with mp.workprec(200):
        density = [mp.exp(-(mp.mpf(i) ** 2) / 2**21) for i in range(len(whole))]
        constants = [mp.mpf(float(e)) * int(w) / p for e, w, p in zip(excess, whole, density, strict=True)]
        c, close = constants[0], 1 - mp.mpf(2) ** -48
        assert min(constants) > c * close  # one constant C for all blocks
        assert max(constants) < c / close
        assert all(w >= c * p * close for w, p in zip(whole, density, strict=True))


def off_by(low: float, high: float, scale: float) -> float:
    """Bound on |ln(P'(k)/P(k))|, P the rounded Gaussian, for random k between so many deviations.

    The constant comes from the first deviation, where the mass is; the discrete and the rounded Gaussian differ by a
    factor within `x²/(24·scale²)` of 1.
    """
    rng = np.random.default_rng(8)
    offset = np.floor(rng.uniform(0.0, scale / 1024 - 1.0, 300)).astype(np.int64)
    near = log_weights(rng.integers(0, 1024, 300), np.maximum(offset, 1), scale)
    far = log_weights(rng.integers(int(low * 1024), int(high * 1024), 300), offset, scale)
    middle = (max(near) + min(near)) / 2
    return float(max(abs(log - middle) for log in near + far)) + (max(near) - min(near)) + high**2 / (24.0 * scale**2)


@pytest.mark.parametrize("scale", [2.0**25, 2.0**30.3, 3.0 * 2.0**37, 2.0**40])
def test_each_value_is_as_likely_as_it_should(scale):
    """Within 12.5 deviations probabilities are the rounded Gaussian's up to `LOG_RATIO`; within 8, up to 2^-44."""
    assert off_by(0.0, 8.0, scale) < 2.0**-44
    for low, high in ((8.0, 10.0), (10.0, 11.0), (11.0, 12.0)):
        assert off_by(low, high, scale) < sampling.LOG_RATIO


def test_each_value_is_as_likely_as_it_should_up_to_the_last():
    """So it is as far as anything is drawn."""
    assert off_by(sampling.REACH - 0.1, sampling.REACH, 2.0**30.3) < sampling.LOG_RATIO


def test_a_wrong_acceptance_is_caught(monkeypatch):
    """The same measure notices a ratio that forgets how far its weight was rounded up, where that matters."""
    cumulative, excess = sampling._table()
    monkeypatch.setattr(sampling, "_table", lambda: (cumulative, np.ones_like(excess)))
    assert off_by(7.5, 8.0, 2.0**30) > sampling.LOG_RATIO


@pytest.mark.parametrize(("draws", "shift"), [(1, 0.0), (10**6, 0.3), (10**9, 4.0)])
def test_what_the_sampler_costs(draws, shift):
    """Twice the log ratio of every draw in epsilon, and the chance that any passes the reach in delta."""
    cost = sampling.sampling_cost(draws, shift)
    assert cost.extra_epsilon == pytest.approx(2.0 * draws * 2.0**-42, rel=1e-12)
    with mp.workprec(200):
        beyond = 2 * draws * mp.ncdf(mp.mpf(shift) - sampling.REACH)
    assert beyond <= cost.extra_delta <= beyond * (1 + mp.mpf(10) ** -8)
    assert cost.mu_squared == cost.rho == 0.0


@pytest.mark.parametrize("scale", [2.0**25, 2.0**30.3, 2.0**40])
def test_every_integer_has_one_block(scale):
    """An integer next to the border of two blocks can be drawn from exactly one of them."""
    rng = np.random.default_rng(9)
    block = rng.integers(0, 8 * 1024, 300)
    width = Fraction(scale) / 1024
    border = np.array([math.ceil((int(b) + 1) * width) for b in block])
    for nudge in (-1, 0, 1):
        ways = np.zeros(300, dtype=int)
        for side in (0, 1):
            start = np.array([math.ceil((int(b) + side) * width) for b in block])
            # offsets from the block's own first integer, as the sampler computes it
            first = np.abs(attempt(block + side, np.zeros(300, np.int64), [0] * 300, scale)[1])
            assert (np.abs(first - start) <= 1).all()
            offset = border + nudge - first
            kept, values = attempt(block + side, np.maximum(offset, 0), [0] * 300, scale)
            ways += kept & (offset >= 0) & (values == border + nudge)
        assert (ways == 1).all()


def test_zero_is_drawn_once():
    """Minus zero is not a second zero: its half of the tries is thrown away."""
    zero = np.zeros(2, np.int64)
    sign = np.array([0, 1 << 63], dtype=np.uint64)
    kept, values = attempt(zero, sign, [0, 0], 2.0**30)
    assert kept.tolist() == [True, False]
    assert values[0] == 0
    kept, values = attempt(zero, sign | np.uint64(5), [0, 0], 2.0**30)
    assert kept.tolist() == [True, True]
    assert values.tolist() == [5, -5]


def test_the_first_and_the_last_word():
    """The smallest and the largest 63-bit number choose the first and the last block."""
    words = np.array([0, FULL, 0, 0, 0, 0, 0, 0], dtype=np.uint64)
    kept, values = sampling._attempt(np.full(2, 2.0**30), lambda count: words)
    assert kept.tolist() == [True, True]
    assert values.tolist() == [0, math.ceil((sampling.BLOCKS - 1) * 2**20)]


# Bits.


def test_seeded_bits_repeat_and_differ():
    """A seed and a block give the same words in any pieces; another seed or block gives others."""
    whole = seeded_bits(1, 2)(100)
    pieces = seeded_bits(1, 2)
    assert np.array_equal(np.concatenate([pieces(30), pieces(70)]), whole)
    others = [seeded_bits(1, 3)(100), seeded_bits(2, 2)(100), seeded_bits(12, 2)(100), seeded_bits(1, 22)(100)]
    assert repeats(np.concatenate([whole, *others])) == 0


def test_words_are_uniform():
    """All 64 bits of the words are ones half the time, to 5.5 deviations."""
    words = seeded_bits(3, 0)(200_000)
    for bit in range(64):
        ones = int(np.count_nonzero((words >> np.uint64(bit)) & np.uint64(1)))
        assert abs(ones - 100_000) < 5.5 * math.sqrt(200_000) / 2.0


def test_secret_bits_never_repeat():
    """Two sources, and two pieces of one, have no word in common (by chance with probability 1e-10)."""
    one, other = secret_bits(), secret_bits()
    assert repeats(np.concatenate([one(20_000), one(20_000), other(20_000)])) == 0


def test_calls_never_repeat():
    """Unseeded draws of several calls have nothing in common (by chance less than once in 1e3 for a single pair)."""
    values = np.concatenate([lattice_normal(2.0**40, (20_000,)) for _ in range(3)])
    assert repeats(values) <= 3


def test_threads_never_repeat():
    """Eight threads that draw at once draw eight different things."""
    drawn: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: drawn.append(lattice_normal(2.0**40, (5_000,)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 8
    assert repeats(np.concatenate(drawn)) <= 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_draws_its_own():
    """After a fork, child and parent draw different things, although both were in the same state."""
    lattice_normal(2.0**40, (10,))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, lattice_normal(2.0**40, (500,)).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        theirs = np.frombuffer(pipe.read(), dtype=np.int64)
    os.waitpid(child, 0)
    mine = lattice_normal(2.0**40, (500,))
    assert len(theirs) == 500
    assert repeats(np.concatenate([mine, theirs])) == 0


# The door.


@pytest.mark.parametrize("scale", [1.0, 2.0**24.99, 2.0**40.01, -(2.0**30), math.inf, math.nan, [2.0**30, 3.0]])
def test_scales_outside_the_range_are_refused(scale):
    """A scale the proof does not cover is refused, wherever in the array it stands."""
    with pytest.raises(InvalidInput, match="between 2\\^25 and 2\\^40"):
        lattice_normal(scale, (2,))


def test_scales_broadcast():
    """Each entry has its own scale; a scale of 0 gives zeros and nothing else."""
    scales = np.array([[0.0], [2.0**25], [2.0**40]])
    values = lattice_normal(scales, (3, 4000), seeded_bits(1, 1))
    assert values.shape == (3, 4000)
    assert values.dtype == np.int64
    assert not values[0].any()
    assert np.std(values[1:] / scales[1:], axis=1) == pytest.approx([1.0, 1.0], abs=0.06)
    assert np.array_equal(lattice_normal(0.0, (5,)), np.zeros(5))
    assert lattice_normal(2.0**30, (0, 3)).shape == (0, 3)


# Gumbel noise.


def one_gumbel(zeros: int, fraction: int, coin: int, draw=lattice_gumbel) -> int:
    """The integer made of so many zeros before a one, a fraction of 52 bits, and a coin."""
    words = iter([0] * (zeros // 64) + [1 << (zeros % 64)] + [fraction << 12 | coin])
    return int(draw((1,), lambda count: np.array([next(words) for _ in range(count)], dtype=np.uint64))[0])


def ideal_gumbel(zeros: int, m: mp.mpf, coin: int) -> mp.mpf:
    """`-ln(-ln U)` in units, U = H or 1 - H, H = m·2^-(zeros + 2), from its definition."""
    H = m * mp.mpf(2) ** -(zeros + 2)
    return -mp.log(-mp.log(1 - H if coin else H)) / mp.mpf(sampling.GUMBEL_STEP)


def farthest_gumbel(cases, draw=lattice_gumbel) -> float:
    """How far from the ideal variables drawn integers can lie, over both ends of what the 52 bits leave open."""
    worst = mp.mpf(0)
    for zeros, fraction, coin in cases:
        drawn = one_gumbel(zeros, fraction, coin, draw)
        with mp.workprec(zeros + 200):
            for end in (fraction, fraction + 1):
                ideal = ideal_gumbel(zeros, 1 + mp.mpf(end) / 2**52, coin)
                worst = max(worst, abs(drawn - ideal))
    return float(worst)


FRACTIONS = (0, 1, 2**51 - 1, 2**51, 2**52 - 2, 2**52 - 1)
DEPTHS = (0, 1, 2, 30, 61, 62, 63, 64, 127, 128, 1020, 1021, 1997, 4094)
EXTREMES = [(z, f, c) for z in DEPTHS for f in FRACTIONS for c in (0, 1)]


def random_cases(seed: int, count: int) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    zeros, fraction = rng.geometric(0.5, count) - 1, rng.integers(0, 2**52, count)
    return [(int(z), int(f), int(c)) for z, f, c in zip(zeros, fraction, rng.integers(0, 2, count), strict=True)]


def test_each_gumbel_lies_near_an_ideal_one():
    """Whatever the bits, at both ends of (0, 1) and far beyond where doubles end, it is within `GUMBEL_ERROR` units."""
    assert 0.49 < farthest_gumbel(random_cases(1, 1000)) < 0.5 + 2.0**-12
    assert farthest_gumbel(EXTREMES) < 0.5 + 2.0**-7 < sampling.GUMBEL_ERROR


def test_what_is_rounded_lies_nearer_still(monkeypatch):
    """In finer units: errors are below 2^-46 for bits as they come, 2^-40 down to 2^-2000 and 2^-39 to 2^-4096."""
    monkeypatch.setattr(sampling, "GUMBEL_STEP", 2.0**-50)
    assert farthest_gumbel(random_cases(3, 300)) * 2.0**-50 < 2.0**-46
    assert farthest_gumbel([case for case in EXTREMES if case[0] < 2000]) * 2.0**-50 < 2.0**-40
    assert farthest_gumbel(EXTREMES) * 2.0**-50 < 2.0**-39


def test_gumbel_noise_reaches_beyond_53_bits():
    """Values above 36.7, where a 53-bit uniform ends, are drawn, and below -3.6 too."""
    assert one_gumbel(200, 5, 1) * sampling.GUMBEL_STEP > 140.0
    assert one_gumbel(200, 5, 0) * sampling.GUMBEL_STEP < -4.9


GUMBEL_FAULTS = {
    "in single precision": lambda shape, bits: np.int64(np.float32(lattice_gumbel(shape, bits))),
    "a unit off": lambda shape, bits: lattice_gumbel(shape, bits) + 1,
    "zeros counted to 53": lambda shape, bits: lattice_gumbel(shape, lambda count: bits(count) | np.uint64(2**53)),
    "a bit too far": lambda shape, bits: lattice_gumbel(shape, lambda count: bits(count) << np.uint64(1)),
}


@pytest.mark.parametrize("fault", GUMBEL_FAULTS)
def test_a_gumbel_off_its_ideal_is_caught(fault):
    """Planted faults of draws that would pass a glance at their histogram, but for the last."""
    cases = [case for case in random_cases(2, 100) + EXTREMES if case[0] % 64 < 63]
    assert farthest_gumbel(cases, GUMBEL_FAULTS[fault]) > sampling.GUMBEL_ERROR


def gumbel_complaints(values: np.ndarray) -> list[str]:
    """Everything wrong with draws that claim to be standard Gumbel: honest ones have a complaint once in 1e6 at most.

    Mean and variance (whose own variances are `pi²/6/n` and `4.4·(pi²/6)²/n`) to 5.5 deviations, 4e-8 each; the
    Kolmogorov-Smirnov distance to 2.9/sqrt(n), 1e-7; eight low bits to 5.5 deviations.
    """
    x, n, variance = np.sort(values * sampling.GUMBEL_STEP), len(values), math.pi**2 / 6.0
    steps, expected = np.arange(n + 1) / n, np.exp(-np.exp(-x))
    distance = np.max(np.maximum(np.abs(expected - steps[1:]), np.abs(expected - steps[:-1]))) * math.sqrt(n)
    ones = [np.count_nonzero((values >> bit) & 1) for bit in range(8)]
    wrong = {
        "mean": abs(np.mean(x) - np.euler_gamma) > 5.5 * math.sqrt(variance / n),
        "variance": abs(np.var(x) - variance) > 5.5 * variance * math.sqrt(4.4 / n),
        "shape": distance > 2.9,
        "bits": max(abs(count - n / 2.0) for count in ones) > 5.5 * math.sqrt(n) / 2.0,
    }
    return [name for name, found in wrong.items() if found]


def test_draws_are_gumbel():
    """A million draws have the mean, the variance, the shape and the low bits of the exact distribution."""
    assert gumbel_complaints(lattice_gumbel((1_000_000,), seeded_bits(1, 0))) == []


def test_gumbel_draws_that_are_not_are_caught():
    """Planted: a scale off by 1 %, a coin that always falls the same way, zeros not counted, a sign, a stuck bit."""
    honest = lattice_gumbel((1_000_000,), seeded_bits(1, 0))
    assert gumbel_complaints((honest * 1.01).astype(np.int64))
    assert gumbel_complaints(-honest)
    assert gumbel_complaints(honest & ~np.int64(4)) == ["bits"]
    bits = seeded_bits(1, 0)
    assert gumbel_complaints(lattice_gumbel((1_000_000,), lambda count: bits(count) | np.uint64(1)))
    assert gumbel_complaints(lattice_gumbel((1_000_000,), lambda count: bits(count) & ~np.uint64(1)))


def test_gumbel_shapes_and_sources():
    """Any shape; secret bits by default, never the same twice; a seed repeats them."""
    assert lattice_gumbel((0, 3)).shape == (0, 3)
    assert lattice_gumbel((2, 3)).dtype == np.int64
    assert repeats(np.concatenate([lattice_gumbel((3_000,)) for _ in range(2)])) <= 50
    assert np.array_equal(lattice_gumbel((50,), seeded_bits(3, 1)), lattice_gumbel((50,), seeded_bits(3, 1)))
