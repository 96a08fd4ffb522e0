"""Draws have the right distribution and never repeat; test_ziggurat tests the bound that is proven."""

from __future__ import annotations

import hashlib
import math
import os
import threading

import mpmath as mp
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from kernel.noise.draws import apart, repeats, slow_normal, smirnov, violations
from kernel.noise.rational import tailed
from kernel.noise.sampler_harness import compiled, rectangles, spoilt
from taciturn import InvalidInput
from taciturn.kernel.noise import sampling
from taciturn.kernel.noise.sampling import lattice_gumbel, lattice_normal, secret_bits, seeded_bits
from taciturn.kernel.noise.ziggurat_tables import LAYERS, tables

pytestmark = pytest.mark.privacy

SCALES = [2.0**25, 2.0**30.3, 2.0**40]


def seeded(scale: float, seed: int = 0):
    """A source of repeatable draws of one scale."""
    bits = seeded_bits(seed, 0)
    return lambda count: lattice_normal(scale, (count,), bits)


@pytest.mark.parametrize(("scale", "count"), [(2.0**25, 1_000_000), (2.0**30.3, 10_000_000), (2.0**40, 1_000_000)])
def test_draws_are_a_rounded_gaussian(scale, count):
    """Cells, moments, signs and low bits of millions of draws are those of the exact distribution."""
    assert violations(seeded(scale), scale, count) == []


@pytest.mark.slow
def test_many_draws_are_a_rounded_gaussian():
    """Forty million draws too, and as many of them lie beyond four and five sigma as should."""
    scale = 2.0**33.7
    assert violations(seeded(scale, 1), scale, 40_000_000) == []
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


def far(beyond: float, tries: int, scale: float, seed: int, *, tail: bool = True) -> np.ndarray:
    """What comes of tries that are forced beyond so many sigma: six words each, of which two choose the block."""
    words = seeded_bits(seed, 0)(6 * tries).reshape(-1, 6)
    words[:, 0] = tailed(words[:, 0])
    starts = tables()[0][2, LAYERS:] / 2.0**60
    words[:, 1] <<= np.uint64(np.searchsorted(starts, beyond))
    attempt = compiled(tables() if tail else ending_at(5.0))
    result = (attempt(scale, row) for row in words)
    return np.array([value for value in result if value is not None])


def ending_at(end: float) -> tuple[np.ndarray, np.ndarray]:
    """Rectangles without the blocks beyond so many sigma."""
    integers, real = tables()
    count = LAYERS + int(np.searchsorted(integers[2, LAYERS:] / 2.0**60, end))
    return integers[:, :count].copy(), real[:, :count].copy()


@pytest.mark.parametrize("beyond", [4.0454, 5.0, 7.0])
def test_the_tail(beyond):
    """Draws forced into the tail, beyond 5 or 7 sigma too, have its shape there; false alarm 1e-7."""
    scale = 2.0**31
    values = far(beyond, 100_000, scale, 4)
    least = np.min(np.abs(values)) / scale
    assert len(values) > 30_000
    assert beyond <= least < beyond + 0.2
    assert abs(np.count_nonzero(values > 0) - len(values) / 2) < 5.5 * math.sqrt(len(values)) / 2
    assert smirnov(values, scale, least - 1.0 / scale) < 2.9 + 1e-3


@pytest.mark.parametrize("scale", SCALES)
def test_the_slow_twin_agrees(scale):
    """Two million draws of each are less than 6.5 sigma of the chi-square of 256 cells apart, false alarm 2e-8."""
    fast = lattice_normal(scale, (2_000_000,), seeded_bits(9, 0))
    slow = slow_normal(scale, 2_000_000, seeded_bits(9, 1))
    assert apart(fast, slow, scale) < 6.5
    assert apart(fast, np.rint(slow * 1.02).astype(np.int64), scale) > 6.5


# Planted faults, which the same questions must find.


def test_a_scale_off_by_a_five_hundredth_is_caught():
    """Noise of 0.2 % too large or too small an sd: moved by 9 of the second moment's own, 5.5 of which alarm."""
    scale = 2.0**30
    for wrong in (0.998 * scale, 1.002 * scale):
        assert "moment 2" in violations(seeded(wrong, 11), scale, 10_000_000)


def test_a_tail_cut_off_is_caught():
    """Rectangles that end at five sigma have no tail to be forced into."""
    values = far(4.5, 50_000, 2.0**31, 4, tail=False)
    assert smirnov(values, 2.0**31, np.min(np.abs(values)) / 2.0**31) > 2.9


def with_tables(integers: np.ndarray, real: np.ndarray, spoil=lambda words: words):
    """A source of draws from other rectangles, or other words."""
    bits = spoilt(seeded_bits(10, 0), spoil)

    def draw(count: int) -> np.ndarray:
        with rectangles(integers, real):
            return lattice_normal(2.0**30, (count,), bits)

    return draw


def test_rectangles_as_they_are_pass():
    """The planted faults below are detected in a sampler that passes otherwise."""
    assert violations(with_tables(*tables()), 2.0**30, 2_000_000) == []


def test_a_wrong_wedge_is_caught():
    """Points above the curve accepted, or none accepted in the wedges: the fourth moment moves by 11 sigma or more."""
    integers, real = tables()
    for wrong in (np.zeros_like(real), real + 2.0):
        assert "moment 4" in violations(with_tables(integers, wrong), 2.0**30, 10_000_000)


def test_no_tail_at_all_is_caught():
    """Layers without blocks lack one draw in 19,000, which moves the fourth moment by 9 of its standard deviations."""
    cut = (table[:, :LAYERS].copy() for table in tables())
    assert "moment 4" in violations(with_tables(*cut), 2.0**30, 25_000_000)


def test_a_sign_shared_with_the_layer_is_caught():
    """A layer's highest bit used as the sign: high layers are all negative."""

    def tied(words: np.ndarray) -> np.ndarray:
        return (words & ~np.uint64(2**63)) | (words & np.uint64(512)) << np.uint64(54)

    assert {"cells", "moment 1"} <= set(violations(with_tables(*tables(), tied), 2.0**30, 2_000_000))


def test_a_low_bit_stuck_is_caught():
    """Draws whose lowest or third bit never moves."""
    honest = seeded(2.0**30, 5)
    assert violations(lambda count: honest(count) & ~np.int64(1), 2.0**30, 500_000) == ["bit 0"]
    assert violations(lambda count: honest(count) | np.int64(4), 2.0**30, 500_000) == ["bit 2"]


def test_a_lost_sign_is_caught():
    """Draws that are never negative, and ones whose sign is their lowest bit."""
    honest = seeded(2.0**30, 6)
    assert "sign" in violations(lambda count: np.abs(honest(count)), 2.0**30, 500_000)

    def tied(count):
        values = np.abs(honest(count))
        return np.where(values & 1, values, -values)

    assert violations(tied, 2.0**30, 500_000) == ["sign and lowest bit together"]


def test_a_repeated_block_is_caught():
    """Words that start over after every call give the same draws twice."""
    same = seeded(2.0**30, 7)(250_000)
    assert violations(lambda count: same, 2.0**30, 500_000)[0].startswith("the same")
    again = np.tile(seeded(2.0**40, 7)(1000), 2)
    assert repeats(again) == 1000


# The cost.


@pytest.mark.parametrize(("draws", "shift"), [(1, 0.0), (10**6, 0.3), (10**9, 4.0)])
def test_what_the_sampler_costs(draws, shift):
    """Twice the log ratio of every draw in epsilon, and the chance that any passes the reach in delta."""
    cost = sampling.sampling_cost(draws, shift)
    assert cost.extra_epsilon == pytest.approx(2.0 * draws * 2.0**-46, rel=1e-12)
    with mp.workprec(200):
        beyond = 2 * draws * mp.ncdf(mp.mpf(shift) - sampling.REACH)
    assert beyond <= cost.extra_delta <= beyond * (1 + mp.mpf(10) ** -8)
    assert cost.mu_squared == cost.rho == 0.0


# Bits.


def test_bits_are_those_of_counter_mode():
    """AES-256 of 2, 3, 4 and so on, as GCM counts, under a hash of the seed; also in pieces of broken blocks."""
    key = hashlib.sha256(b"taciturn simulation 5 7").digest()
    plain = Cipher(algorithms.AES(key), modes.CTR((2).to_bytes(16, "big"))).encryptor()
    expected, bits = np.frombuffer(plain.update(bytes(80_000)), dtype=np.uint64), seeded_bits(5, 7)
    np.testing.assert_array_equal(np.concatenate([bits(count) for count in (1, 2, 7, 9_990)]), expected)


def test_seeded_bits_repeat_and_differ():
    """A seed and a block give the same words in any pieces; another seed or block gives others."""
    whole = seeded_bits(1, 2)(100)
    pieces = seeded_bits(1, 2)
    assert np.array_equal(np.concatenate([pieces(30), pieces(70)]), whole)
    others = [seeded_bits(1, 3)(100), seeded_bits(2, 2)(100), seeded_bits(12, 2)(100), seeded_bits(1, 22)(100)]
    assert repeats(np.concatenate([whole, *others])) == 0


def test_words_are_uniform():
    """All 64 bits of the words are ones half the time, to 5.5 sigma."""
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


# Validation of scales.


@pytest.mark.parametrize("scale", [1.0, 2.0**24.99, 2.0**40.01, -(2.0**30), math.inf, math.nan, [2.0**30, 3.0]])
def test_scales_outside_the_range_are_rejected(scale):
    """A scale the proof does not cover is rejected, wherever in the array it stands."""
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
    assert lattice_normal(2.0**30, ()).shape == ()
    assert np.array_equal(lattice_normal([-0.0, 0.0], (3, 2)), np.zeros((3, 2)))


@pytest.mark.parametrize(
    "scale", [2.0**30, [[2.0**26], [2.0**33]], [2.0**26, 2.0**40, 2.0**31], [[[2.0**26]], [[2.0**33]]]]
)
def test_scales_are_those_of_their_entries(scale):
    """Whatever the scale's shape, each entry is drawn as it would be from the whole array of scales."""
    shape = (2, 2, 3)
    whole = np.broadcast_to(np.array(scale), shape).copy()
    assert np.array_equal(
        lattice_normal(scale, shape, seeded_bits(1, 2)), lattice_normal(whole, shape, seeded_bits(1, 2))
    )


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
    """Everything wrong with draws that claim to be standard Gumbel: correct ones fail once in 1e6 at most.

    Mean and variance (whose own variances are `pi²/6/n` and `4.4·(pi²/6)²/n`) to 5.5 sigma, 4e-8 each; the
    Kolmogorov-Smirnov distance to 2.9/sqrt(n), 1e-7; eight low bits to 5.5 sigma.
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
    return [name for name, result in wrong.items() if result]


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
