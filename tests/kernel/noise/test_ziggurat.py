"""The compiled sampler, term by term of its proof: the rectangles, the cells, the densities, the probabilities.

A try is watched from outside: chosen words go in, an integer or nothing comes out. What is measured this way is
compared with exact rational arithmetic and with mpmath, and planted faults are measured by the same rules.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytest

from kernel.noise.draws import Given
from kernel.noise.rational import (
    EDGE,
    MIRROR,
    PLACES,
    SCALES,
    STRIPS,
    F,
    by_definition,
    column,
    heights,
    leading,
    share,
    tailed,
)
from kernel.noise.sampler_harness import Tables, Try, compiled
from taciturn.kernel.noise import ziggurat
from taciturn.kernel.noise.sampling import LOG_RATIO, REACH, lattice_normal, seeded_bits
from taciturn.kernel.noise.ziggurat import GROUP, draw
from taciturn.kernel.noise.ziggurat_tables import BLOCKS, LAYERS, tables

pytestmark = pytest.mark.privacy

EPS = 2.0**-53


def words_of(strip: int, u: int, v: int = 0) -> list[int]:
    """The words that choose a layer or a block, a point of 117 or 128 bits in its width, and a height of 53 bits."""
    if strip < LAYERS:
        return [strip | u >> 64 << 10, u % 2**64, v << 11]
    zeros = strip - LAYERS
    return [2**63 - 1024, 1 << zeros if zeros < 64 else 0, 1 << max(zeros - 64, 0), u >> 64, u % 2**64, v << 11]


def fineness(strip: int) -> int:
    """How many bits choose a point in its width."""
    return 117 if strip < LAYERS else 128


# The rectangles.


def test_the_rectangles_cover_the_gaussian():
    """F passes from each layer into the next, no block is too low, and blocks follow each other without a gap."""
    inner, width, start, _ = (column(i) for i in range(4))
    with mp.workprec(200):
        low, high = heights()
        assert 1 < high[LAYERS - 1] < 1 + mp.mpf(10) ** -4
        for i in range(1, LAYERS):
            assert F(Fraction(width[i], PLACES)) <= low[i] * (1 + mp.mpf(2) ** -120)
        for i in range(LAYERS - 1):
            assert F(Fraction(inner[i] * width[i], PLACES * 2**64)) >= high[i] * (1 - mp.mpf(2) ** -120)
        for q in range(LAYERS, STRIPS):
            assert F(Fraction(start[q], PLACES)) <= high[q]
    assert inner[0] * width[0] == start[LAYERS] * 2**64
    assert [a + b for a, b in zip(start, width, strict=True)][LAYERS:-1] == start[LAYERS + 1 :]
    assert start[-1] + width[-1] > REACH * PLACES + PLACES // 2**24
    assert all(u % 2**11 == 0 for u in inner)
    assert max(width) < 2**63


def test_the_terms_of_the_proof():
    """`|e| < 0.75`; b is at most 1.1 and 6 times exp(-e); a and b are their ideals' nearest doubles."""
    _, width, start, t = (column(i) for i in range(4))
    floor, rise = tables()[1]
    with mp.workprec(200):
        low, high = heights()
        for q in range(1, STRIPS):
            under = F(Fraction(t[q], PLACES))
            end = Fraction(start[q] + width[q], PLACES)
            assert abs(mp.log(F(end) / under)) < 0.75
            assert rise[q] < (1.1 if q < LAYERS else 6.0) * F(end) / under
            assert abs(mp.mpf(floor[q]) * under - low[q]) <= EPS * low[q]
            assert abs(mp.mpf(rise[q]) * under - (high[q] - low[q])) <= EPS * (high[q] - low[q])


# The cells.


def misplaced(attempt: Try, scale: float, cells: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cells k whose lower end, within a rectangle, is not where `x·scale = k - 1/2`, to 4 in 2^117 of its width.

    So every cell in a layer's reach has the same number of points, to 8 in 2^74.
    """
    wrong = []
    width, start = column(1), column(2)
    for strip, k in cells:
        border = Fraction(2 * k - 1, 2) / Fraction(scale) * PLACES
        u = math.ceil((border - start[strip]) / width[strip] * 2 ** fineness(strip))
        off = 4 << fineness(strip) - 117
        if off <= u < 2 ** fineness(strip) - off:
            sides = attempt(scale, words_of(strip, u - off)), attempt(scale, words_of(strip, u + off))
            wrong += [(strip, k)] * (sides != (k - 1, k))
    return wrong


def some_cells(scale: float, seed: int, count: int) -> Iterator[tuple[int, int]]:
    """Cells of which some part is accepted for any V: in layers, the first, random and the last ones; in all blocks."""
    rng = np.random.default_rng(seed)
    _, width, start, _ = (column(i) for i in range(4))
    yield from ((layer, k) for layer in (0, 1, 400, 1023) for k in (1, 2, 3))
    for layer in rng.integers(0, LAYERS, count):
        most = 0.9 if layer == 0 else 1.0 - 2.0**-20
        yield int(layer), int(rng.uniform(0.0, most) * width[layer] / PLACES * scale) + 1
    for block in range(LAYERS, STRIPS):
        place = Fraction(start[block]) + Fraction(float(rng.uniform())) * width[block]
        yield block, int(min(place / PLACES, REACH) * Fraction(scale))


@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_where_they_should_be(scale):
    """Each integer takes an equal share of every rectangle, and 0 half a share for each sign."""
    assert misplaced(compiled(), scale, some_cells(scale, 1, 500)) == []


def without_more_bits(scale: float, words: list[int]) -> int | None:
    """Multiplied and rounded, with 53 bits and no second word: integers at random get one point too many."""
    return compiled()(scale, [words[0], 0, *words[2:]])


def in_doubles(scale: float, words: list[int]) -> int | None:
    """A float ziggurat's abscissa, rounded afterwards."""
    return round(float(leading(words[0]) + words[1] / 2**64) * 2.0**-53 * (column(1)[words[0] & 1023] / PLACES) * scale)


def by_modulo(scale: float, words: list[int]) -> int | None:
    """The remainder of 53 bits by the number of integers in the layer."""
    return leading(words[0]) % math.ceil(column(1)[words[0] & 1023] / PLACES * scale)


def cut_off(scale: float, words: list[int]) -> int | None:
    """Rounded down: both signs of the first cell are 0, which is drawn twice as often as 1."""
    u = leading(words[0]) << 64 | words[1]
    return math.floor(Fraction(column(1)[words[0] & 1023] * u, 2**177) * Fraction(scale))


@pytest.mark.parametrize("fault", [without_more_bits, in_doubles, by_modulo, cut_off])
def test_a_cell_in_the_wrong_place_is_caught(fault):
    """Planted faults that no histogram of a million draws would show."""
    cells = [cell for cell in some_cells(2.0**40, 1, 200) if cell[0] < LAYERS]
    assert len(misplaced(fault, 2.0**40, cells)) > 50
    assert (0, 1) in misplaced(cut_off, 2.0**40, cells)


# The densities.


def accepted(attempt: Try, scale: float, strip: int, u: int) -> float:
    """The share of heights at which a point of a rectangle is accepted, of which there are 2^53."""
    low, high = 0, 2**53
    if attempt(scale, words_of(strip, u, high - 1)) is not None:
        return 1.0
    while low < high:
        middle = (low + high) // 2
        if attempt(scale, words_of(strip, u, middle)) is None:
            high = middle
        else:
            low = middle + 1
    return low / 2**53


def density_error(attempt: Try, scale: float, x: Fraction) -> mp.mpf:
    """By how much the logarithm of x's density, summed over all rectangles, is off that of F."""
    width, start = column(1), column(2)
    place, parts = x.numerator * PLACES, x.denominator
    with mp.workprec(200):
        density = mp.mpf(0)
        for q in range(STRIPS):
            u = (place - start[q] * parts << fineness(q)) // (width[q] * parts)
            end = EDGE * 2**117 if q == 0 else 2 ** fineness(q)
            if 0 <= u < end:
                density += per_place(q) * accepted(attempt, scale, q, u)
        area = F(EDGE * width[0] / PLACES) * width[0] / PLACES
        return mp.log(LAYERS * area * density / F(x)) if density else mp.inf


@cache
def per_place(strip: int) -> mp.mpf:
    """The probability of a rectangle, by its width."""
    with mp.workprec(400):
        return mp.mpf(share(strip).numerator) * PLACES / share(strip).denominator / column(1)[strip]


def some_places(seed: int, layers: int, blocks: int) -> list[Fraction]:
    """Zero and next to it, both sides of borders of layers and blocks, random places, and the last."""
    rng = np.random.default_rng(seed)
    width, start = column(1), column(2)
    borders = [width[i] for i in rng.choice(np.arange(1, LAYERS), layers, replace=False)]
    borders += [start[LAYERS + j] for j in rng.choice(BLOCKS, blocks, replace=False)] + [start[LAYERS]]
    nudges = (-(2**22), -1, 0, 1, 2**22)
    near = [Fraction(border + nudge, PLACES) for border in borders for nudge in nudges]
    random = [Fraction(float(x)) for x in [*rng.uniform(0.0, 4.0, 5 * layers), *rng.uniform(4.0, REACH, 5 * blocks)]]
    return [Fraction(0), Fraction(1, PLACES), *near, *random, REACH - Fraction(1, 2**25)]


@pytest.mark.parametrize(("scale", "seed"), [(2.0**25, 1), (2.0**30.3, 2), (2.0**40, 3)])
def test_every_place_is_as_likely_as_it_should(scale, seed):
    """The density, from the compiled code's own decisions, is F up to 8 units of 2^-53; the proof allows 44.1."""
    worst = max(abs(density_error(compiled(), scale, x)) for x in some_places(seed, 10, 8))
    assert worst < 8 * EPS
    assert 2 * 44.2 * EPS < LOG_RATIO


def altered(change: Callable[[np.ndarray, np.ndarray], None]) -> Tables:
    """The rectangles after a change."""
    integers, real = (table.copy() for table in tables())
    change(integers, real)
    return integers, real


def set_to(row: int, value: float) -> Tables:
    return altered(lambda integers, real: real[row].fill(value))


WRONG_RECTANGLES = {
    "a wedge that is always accepted": lambda: set_to(1, 0.0),
    "a wedge that is never accepted": lambda: set_to(0, 2.0),
    "the curve of the layer below": lambda: (tables()[0], np.roll(tables()[1], 1, axis=1)),
    "a wedge in single precision": lambda: (tables()[0], tables()[1].astype(np.float32).astype(np.float64)),
    "heights of 40 bits": lambda: (tables()[0], np.round(tables()[1] * 2.0**40) / 2.0**40),
    "an inner part a little too wide": lambda: altered(
        lambda integers, _: integers[0, :LAYERS].__iadd__(np.uint64(2**64 // 2**24))
    ),
    "no tail": lambda: (tables()[0][:, :LAYERS].copy(), tables()[1][:, :LAYERS].copy()),
}


@pytest.mark.parametrize("fault", WRONG_RECTANGLES)
def test_a_wrong_density_is_caught(fault):
    """Planted: the same measure is passed by far, somewhere."""
    attempt = compiled(WRONG_RECTANGLES[fault]())
    assert max(abs(density_error(attempt, 2.0**30, x)) for x in some_places(1, 6, 3)) > 4 * LOG_RATIO


# The probabilities.


def covered(strip: int, low: mp.mpf, high: mp.mpf, real: np.ndarray) -> mp.mpf:
    """What the rectangle keeps between two places, if the tables are taken at their word and all else is ideal."""
    start, end = ends(strip)
    low, high = max(low, start), min(high, end)
    if strip == 0 or high <= low:
        return max(high - low, mp.mpf(0))
    under, always, never = crossings(strip, a := float(real[0, strip]), b := float(real[1, strip]))
    if high <= always:
        return high - low
    sure = max(min(high, always) - low, mp.mpf(0))
    left, right = min(max(low, always), high), max(min(high, never), low)
    if left >= right:
        return sure
    bell = mp.sqrt(mp.pi / 2) * (mp.erf(right / mp.sqrt(2)) - mp.erf(left / mp.sqrt(2)))
    return sure + (bell / under - a * (right - left)) / b


@cache
def ends(strip: int) -> tuple[mp.mpf, mp.mpf]:
    """Where a rectangle begins and ends, the lowest one where its tail begins."""
    width, start = column(1)[strip], column(2)[strip]
    with mp.workprec(400):
        last = 64 * (start + width) if strip else 59 * width
        return mp.mpf(start) / PLACES, mp.mpf(last) / (64 * PLACES)


@cache
def crossings(strip: int, a: float, b: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """F at the rectangle's t, up to where all heights are accepted, and from where none is."""
    inner, width, _, t = (column(i)[strip] for i in range(4))
    with mp.workprec(400):
        under = F(Fraction(t, PLACES))
        always = max(mp.mpf(inner * width) / (PLACES * 2**64), reached((mp.mpf(a) + b) * under))
        return under, always, max(reached(a * under), always)


def reached(height: mp.mpf) -> mp.mpf:
    """Where F falls to a height."""
    return mp.inf if height <= 0 else mp.sqrt(max(-2 * mp.log(height), mp.mpf(0)))


def weight(low: mp.mpf, high: mp.mpf, real: np.ndarray) -> mp.mpf:
    """The probability that a try ends between two places, summed over all rectangles."""
    total, first, last = mp.mpf(0), float(low) * (1 - 2.0**-50), float(high) * (1 + 2.0**-50)
    for q in range(STRIPS):
        if (column(2)[q] + column(1)[q]) / PLACES >= first and column(2)[q] / PLACES <= last:
            total += per_place(q) * covered(q, low, high, real)
    return total


def farthest(scale: float, integers: Iterable[int], real: np.ndarray) -> mp.mpf:
    """The largest `|ln(P'(k)/P(k))|` over some integers."""
    with mp.workprec(400):
        s, last = mp.mpf(scale), math.floor(REACH * Fraction(scale))
        total, worst = weight(mp.mpf(0), (last + mp.mpf(0.5)) / s, real), mp.mpf(0)
        for k in integers:
            low, high = (abs(k) - mp.mpf(0.5)) / s, (abs(k) + mp.mpf(0.5)) / s
            mine = weight(max(low, mp.mpf(0)), high, real) / total / (1 if k == 0 else 2)
            worst = max(worst, abs(mp.log(mine / (mp.ncdf(high) - mp.ncdf(low)))))
        return worst


def some_integers(scale: float, seed: int) -> list[int]:
    """0, 1 and -1, around the borders of layers and blocks, at random, and the last ones."""
    rng = np.random.default_rng(seed)
    borders = [column(1)[i] for i in (1, 2, 3, 1022, 1023, *rng.integers(4, 1022, 8))]
    borders += [column(2)[LAYERS + j] for j in (0, 1, 63, 64, 90, 91)]
    near = [math.floor(Fraction(b, PLACES) * Fraction(scale)) + nudge for b in borders for nudge in (-1, 0, 1)]
    random = [int(x * scale) for x in rng.uniform(-REACH, REACH, 20)]
    last = math.floor(REACH * Fraction(scale))
    return [0, 1, -1, *near, *random, last - 1, last, -last]


@pytest.mark.parametrize("scale", SCALES)
def test_every_integer_is_as_likely_as_it_should(scale):
    """Given the tables, each has the rounded Gaussian's probability up to 2 units of 2^-53: the rounding of a and b."""
    assert farthest(scale, some_integers(scale, 4), tables()[1]) < 2 * EPS


def test_a_wrong_probability_is_caught():
    """Planted: heights in single precision."""
    rough = tables()[1].astype(np.float32).astype(np.float64)
    assert farthest(2.0**30, some_integers(2.0**30, 4)[:20], rough) > 4 * LOG_RATIO


@pytest.mark.parametrize("scale", SCALES)
def test_the_last_integer(scale):
    """The last within reach is drawn from its whole cell, and the next one never."""
    strip, s = STRIPS - 1, Fraction(scale)
    last = math.floor(REACH * s)
    for tenths, expected in ((-4, last), (4, last), (6, None), (20, None)):
        place = (last + Fraction(tenths, 10)) / s * PLACES
        u = int((place - column(2)[strip]) / column(1)[strip] * 2**128)
        assert compiled()(scale, words_of(strip, u)) == expected


def test_tries_that_end_nowhere():
    """Beyond the last block, and where 128 bits in a row are zero, nothing is accepted."""
    for words in ([0, 1 << 28], [0, 1 << 63], [0, 0]):
        assert compiled()(2.0**30, [2**63 - 1024, *words, 5, 5, 0]) is None
    assert compiled()(2.0**30, [2**63 - 1024, 0, 1 << 27, 5, 5, 0]) is not None


# Bit for bit.


@pytest.mark.parametrize("scale", [2.0**25, 2.0**30.3, 2.0**40])
def test_draws_are_those_of_the_definition(scale):
    """The same words make the same integers in rational arithmetic; every other first word is forced into the tail."""
    scales = [scale, 0.0, 1.5 * 2.0**33]
    honest = seeded_bits(5, 0)(40_000)
    forced = honest.copy()
    forced[:3_000:2] = tailed(honest[:3_000:2])
    for words in (honest, forced):
        drawn = draw(np.array(scales), 1000, Given(words))
        assert by_definition([s for s in scales for _ in range(1000)], words, GROUP) == drawn.tolist()


@pytest.mark.parametrize("fast", [True, False])
def test_a_sign_is_a_complement(fast):
    """The complement of all bits but the layer's negates what is drawn, settled by either path, the tail too."""
    attempt, words = compiled(fast=fast), seeded_bits(6, 0)(6 * 3_000).reshape(-1, 6)
    words[::5, 0] = tailed(words[::5, 0])
    for i, (word, *more) in enumerate(words.tolist()):
        needed = more if i % 5 == 0 else more[:2]
        one, other = (attempt(2.0**40, [first, *needed]) for first in (word, word ^ MIRROR))
        assert one == (None if other is None else -other)


def test_compiled_once():
    """Scalars, rows, whole arrays and read-only ones are all drawn by the same compiled code."""
    fixed = np.full((3, 1), 2.0**30)
    fixed.flags.writeable = False
    for scale in (2.0**30, np.float64(2.0**30), 2**30, fixed, np.full(4, 2.0**30), np.full((3, 4), 2.0**30)[::-1]):
        assert lattice_normal(scale, (3, 4)).shape == (3, 4)
    assert len(ziggurat.draw_fast.signatures) == len(ziggurat.finish.signatures) == 1


def test_numba_is_imported_for_the_first_draw():
    """And not before."""
    source = "import sys, taciturn, taciturn.kernel.noise.sampling as s; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)
