"""The fast path settles only what the slow path would draw, and groups read every word once and in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from kernel.noise.draws import Given, repeats
from kernel.noise.rational import EDGE, MIRROR, PLACES, SCALES, by_definition, column, leading, rounded, sign, tailed
from kernel.noise.sampler_harness import compiled, planted, planted_fast_path
from taciturn.kernel.noise import ziggurat
from taciturn.kernel.noise.sampling import seeded_bits
from taciturn.kernel.noise.ziggurat import GROUP, draw, draw_fast, fast_path_table, finish
from taciturn.kernel.noise.ziggurat_tables import LAYERS, tables

pytestmark = pytest.mark.privacy

ONES = 2**64 - 1
NUDGES = range(-3, 4)
SOME = [2.0**40, 0.0, 2.0**25, 1.5 * 2.0**33, -0.0, 2.0**30.3]


# What is settled.


def near(border: Fraction) -> Iterator[int]:
    """First words, without their layer and positive, within 3 units of 53 bits and of 50 bits of a border of U."""
    for bits in (50, 53):
        fine = 63 - bits
        units = (math.floor(border * 2**bits) + nudge for nudge in NUDGES)
        yield from (unit << fine | rest for unit in units if 0 <= unit < 2**bits for rest in (0, 2**fine - 1024))


def placed(scale: float, seed: int) -> np.ndarray:
    """Words next to borders of cells and of inner parts, mixed: in the first layers, the last ones, and random ones."""
    rng = np.random.default_rng(seed)
    words = []
    for layer in (0, 1, 2, 1022, 1023, *(int(i) for i in rng.integers(3, 1022, 20))):
        width, inner = column(1)[layer], column(0)[layer]
        last = int(Fraction(inner * width, 2**64 * PLACES) * Fraction(scale))
        cells = [0, 1, 2, last - 1, last, *(int(x * last) for x in rng.uniform(size=5)), int(1.2 * last)]
        borders = [Fraction(2 * k + 1, 2) / Fraction(scale) * PLACES / width for k in cells]
        for border in [*borders, Fraction(inner, 2**64), Fraction(0), Fraction(1)]:
            words += [(word ^ MIRROR * int(rng.integers(2))) | layer for word in near(border)]
    return rng.permutation(np.array(words, dtype=np.uint64))


def misjudged(see: Callable[..., np.ndarray], scale: float, words: np.ndarray, table=None) -> tuple[list[int], int]:
    """Words that are settled as another integer than the slow path draws, or not for the fast path; and how many are.

    The long way is asked with the least and the most that can follow, at the greatest height, and so is rational
    arithmetic; the wedge and the tail have to decide wherever some U that begins like this is not below `inner`.
    """
    drawn = np.empty(words.size, dtype=np.int64)
    left = see(drawn, 0, np.array([scale]), words.size, words, fast_path_table() if table is None else table)
    slow_path, wrong = compiled(fast=False), []
    for i in np.setdiff1d(np.arange(words.size), left):
        word, result = int(words[i]), int(drawn[i])
        ends = [Fraction(leading(word) << 64 | more, 2**117) for more in (0, ONES)]
        exact = {rounded(u * column(1)[word & 1023] / PLACES, scale) * sign(word) for u in ends}
        finds = {slow_path(scale, [word, more, ONES]) for more in (0, ONES)}
        if not exact == finds == {result} or leading(word) + 1 > column(0)[word & 1023] >> 11:
            wrong.append(word)
    return wrong, words.size - left.size


@pytest.mark.parametrize("scale", SCALES)
def test_the_fast_path_is_the_slow_path(scale):
    """At borders, where a unit more or less is another integer, and at random, where most words are settled."""
    wrong, settled = misjudged(draw_fast, scale, placed(scale, 1))
    assert wrong == []
    assert settled > 500
    wrong, settled = misjudged(draw_fast, scale, seeded_bits(21, 0)(5_000))
    assert wrong == []
    assert settled > 4_920


def test_what_the_wedge_or_the_tail_decides_is_left_to_them():
    """Beyond a layer's inner part, beyond 59/64 in the lowest, and in all of the highest layer nothing is settled."""
    for layer in range(LAYERS):
        inner = column(0)[layer] >> 11
        u = np.array([*range(max(inner - 3, 0), inner + 4), 2**53 - 1], dtype=np.uint64)
        words = u << np.uint64(10) | np.uint64(layer)
        for scale, mirror in ((2.0**25, 0), (2.0**25, MIRROR), (0.0, 0)):
            words ^= np.uint64(mirror)
            left = draw_fast(np.empty(u.size, dtype=np.int64), 0, np.array([scale]), u.size, words, fast_path_table())
            assert set(np.flatnonzero(u >= inner)) <= set(left)
    assert column(0)[0] == EDGE * 2**64
    assert column(0)[1023] == 0


def test_layers_of_one_scale_and_rows_of_many():
    """Whatever the place in the array and the number of entries of a scale, an entry is drawn with its own."""
    words, scales = seeded_bits(22, 0)(1_300), np.array(SOME * 220)
    for repeat in (1, 3, 7, 600):
        rows = scales[: -(-1_300 // repeat)]
        drawn = np.full(rows.size * repeat, -1, dtype=np.int64)
        left = draw_fast(drawn, 0, rows, repeat, words, fast_path_table())
        for row in range(rows.size):
            mine = slice(row * repeat, min((row + 1) * repeat, 1_300))
            alone = np.empty(mine.stop - mine.start, dtype=np.int64)
            rest = draw_fast(alone, 0, rows[row : row + 1], alone.size, words[mine], fast_path_table())
            assert np.array_equal(alone, drawn[mine])
            assert np.array_equal(rest, left[(left >= mine.start) & (left < mine.stop)] - mine.start)


def by_rule(scales: np.ndarray, repeat: int, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the fast path writes and what it leaves, by its rule, in NumPy."""
    scale, (end, width) = np.repeat(scales, repeat)[: words.size], fast_path_table()[words & np.uint64(LAYERS - 1)].T
    u, step = (words.view(np.int64) >> 10).astype(np.float64), width * scale
    nearest = np.rint(u * step)
    settled = (np.abs(u) < end) & (np.abs(u * step - nearest) + 6.0 * step < 0.5)
    return nearest.astype(np.int64), np.flatnonzero(~settled)


@pytest.mark.parametrize("repeat", [1, 2, 5, 7, 8, 9, 54, 511, 512, 513, 3000])
def test_the_fast_path_is_its_rule(repeat):
    """Bit for bit: for scales of every size, and entries that begin anywhere in a row, however many they are."""
    rng = np.random.default_rng(repeat)
    for size in (1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1024, 3000):
        scales = np.where(rng.random(size + 1) < 0.2, 0.0, 2.0 ** rng.uniform(25.0, 40.0, size + 1))
        words = seeded_bits(repeat, size)(size + repeat).copy()
        words[rng.random(words.size) < 0.1] &= np.uint64(MIRROR)  # into the lowest layer
        start = int(rng.integers(repeat))
        expected, rest = by_rule(scales, repeat, words[: start + size])
        drawn = np.full(scales.size * repeat, -1, dtype=np.int64)
        left = draw_fast(drawn, start, scales, repeat, words[start : start + size], fast_path_table())
        assert np.array_equal(drawn[start : start + size], expected[start:])
        assert np.array_equal(left, rest[rest >= start] - start)
        assert (drawn[:start] == -1).all()
        assert (drawn[start + size :] == -1).all()


FAULTS = {
    "no margin": {"_draw_eight": ("_all(6.0)", "_all(0.0)")},
    "no wedge": {"_draw_eight": ('_call(builder, "fabs", u), end', "_all(-1.0), end")},
    "a wedge on one side": {"_draw_eight": ('_call(builder, "fabs", u), end', "u, end")},
    "a margin on one side": {
        "_draw_eight": ('_call(builder, "fabs", builder.fsub(v, nearest))', "builder.fsub(v, nearest)")
    },
    "no sign": {"_draw_eight": ("builder.fptosi(nearest", 'builder.fptosi(_call(builder, "fabs", nearest)')},
    "half of U": {"_draw_eight": ("_all(10)", "_all(11)")},
    "rounded towards zero": {"_draw_eight": ("builder.fptosi(nearest", "builder.fptosi(v")},
    "another layer": {"_recalled": ("_word(LAYERS - 1)", "_word(LAYERS - 2)")},
    "a neighbour's layer": {"_recalled": ("(0, 2, 4, 6, 1, 3, 5, 7)", "(0, 2, 4, 6, 3, 1, 5, 7)")},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_fast_path_is_caught(fault):
    """Planted; an integer is wrong with a probability of 1e-3 to 1e-9, or no integer is, but the proof."""
    wrong, _ = misjudged(planted_fast_path(FAULTS[fault]), 2.0**30.3, placed(2.0**30.3, 1))
    assert wrong


def test_an_inner_part_a_unit_too_wide_is_caught():
    """Planted: no integer is wrong, but the proof."""
    changed = planted({"fast_path_table": ("(inner >>", "(inner + np.uint64(2048) >>")})
    wrong, _ = misjudged(draw_fast, 2.0**30.3, placed(2.0**30.3, 1), changed.fast_path_table())
    assert wrong


def test_a_fast_path_compiled_again_is_the_same():
    """So it is the fault that is found above."""
    words = placed(2.0**30.3, 1)
    assert misjudged(planted_fast_path({}), 2.0**30.3, words) == misjudged(draw_fast, 2.0**30.3, words)


# Groups.


def agrees(sample: Callable[..., np.ndarray], group: int = 64) -> bool:
    """Whether draws of many scales, in four groups, are those of rational arithmetic; half are left at first."""
    words = seeded_bits(23, 0)(4 * 64 * 6)
    words[::2] = tailed(words[::2])
    scales = [scale for scale in SOME for _ in range(37)]
    return by_definition(scales, words, group) == sample(np.array(SOME), 37, Given(words)).tolist()


@pytest.mark.parametrize("group", [1, 2, 64, 100, 1000])
def test_a_group_reads_first_words_and_then_the_rest(group):
    """Word by word as the docstring says, whatever the size of a group; the groups here end within a scale's row."""
    assert agrees(planted({}, GROUP=group).draw, group)


def test_three_groups_are_three_draws():
    """As they are: a group begins with the word after the last one that the group before it used."""
    words, scales, at = seeded_bits(24, 0)(4 * GROUP), np.array([2.0**40]), 0
    whole = draw(scales, 3 * GROUP, Given(words))
    for start in range(0, 3 * GROUP, GROUP):
        rest = words[at:].copy()
        alone = draw(scales, GROUP, Given(rest))
        left = draw_fast(np.empty(GROUP, dtype=np.int64), 0, scales, GROUP, rest[:GROUP], fast_path_table())
        out = np.empty(GROUP, dtype=np.int64)
        _, used = finish(out, 0, left, 0, scales.view(np.uint64), GROUP, rest, GROUP, *tables())
        assert np.array_equal(whole[start : start + GROUP], alone)
        at += used
    assert 3 * GROUP < at < 3.3 * GROUP


LONG_WAYS = {
    "a place that is not turned": {"finish": ("", ""), "_slow_path": ("(~word if word >> _SIGN else word)", "word")},
    "a place that is always turned": {
        "finish": ("", ""),
        "_slow_path": ("(~word if word >> _SIGN else word)", "~word"),
    },
    "no sign": {"finish": ("minus = -(word >> _SIGN)", "minus = _ZERO")},
    "one's complement": {"finish": ("(k ^ minus) - minus", "k ^ minus")},
}


@pytest.mark.parametrize("fault", LONG_WAYS)
def test_a_wrong_slow_path_is_caught(fault):
    """Planted: what is left is not what the fast path left."""
    assert not agrees(planted(LONG_WAYS[fault], GROUP=64).draw)


def test_a_slow_path_compiled_again_is_the_same():
    """So it is the fault that is found above."""
    assert agrees(planted({"finish": ("", ""), "_slow_path": ("", "")}, GROUP=64).draw)


FETCHES = {
    "no word to spare": lambda words, size, *rest: ziggurat._longer(words, size - 12, *rest),
    "three times as many": lambda words, size, *rest: ziggurat._longer(words, 3 * size, *rest),
    "all at once": lambda words, size, *rest: ziggurat._longer(words, 200_000, *rest),
}


@pytest.mark.parametrize("fetch", FETCHES)
def test_draws_do_not_depend_on_how_words_are_fetched(fetch):
    """However many words are fetched at a time, and whenever they run out, the same are used for the same."""
    few = {"draw": ("words.size + GROUP, bits", "words.size + 13, bits")}
    assert agrees(planted(few, GROUP=64, _longer=FETCHES[fetch]).draw)
    other = planted(few, _longer=FETCHES[fetch]).draw(np.array([2.0**40]), 50_000, seeded_bits(7, 0))
    assert np.array_equal(other, draw(np.array([2.0**40]), 50_000, seeded_bits(7, 0)))


def same_for_all(drawn, start, left, done, scales, repeat, words, used, *rectangles):
    """Everything that is left is drawn from the same words."""
    last = used
    for i in range(left.size):
        _, last = finish(drawn, start, left[i : i + 1], 0, scales, repeat, words, used, *rectangles)
    return left.size, last


GROUPS = {
    "first words are read again": ({"draw": ("0, count\n", "0, 0\n")}, {}),
    "the rest is read again by the next group": ({"draw": ("words[used:]", "words[count:]")}, {}),
    "all groups read the same": ({"draw": ("words = words[used:]", "pass")}, {}),
    "what is left over is thrown away": ({"draw": ("words[used:]", "words[:0]")}, {}),
    "one word is read by two groups": ({"draw": ("words[used:]", "words[used - 1:]")}, {}),
    "all that is left reads the same": ({}, {"finish": same_for_all}),
    "new words in the place of old ones": ({"_longer": ("out[words.size :]", "out[: -words.size or None]")}, {}),
}


@pytest.mark.parametrize("fault", GROUPS)
def test_a_word_read_twice_is_caught(fault):
    """Planted: no histogram would show most of these, but they make noise depend on other noise."""
    changes, constants = GROUPS[fault]
    assert not agrees(planted(changes, GROUP=64, **constants).draw)


def test_groups_that_repeat_their_noise_are_caught_by_their_draws():
    """Draws of three groups have nothing in common, but by chance once in 3,000; planted, two of them are the first."""
    source = np.array([2.0**40])
    assert repeats(draw(source, 3 * GROUP, seeded_bits(25, 0))) == 0
    again = planted({"draw": ("words = words[used:]", "pass")}).draw(source, 3 * GROUP, seeded_bits(25, 0))
    assert repeats(again) >= 2 * GROUP


def test_a_word_and_a_little_for_each_draw():
    """1.03 words at most, on average over a million draws of the largest scale; 99 of 100 are settled by the first."""
    words, out, scales = seeded_bits(8, 0)(1_040_000), np.empty(1_000_000, dtype=np.int64), np.array([2.0**40])
    left = draw_fast(out, 0, scales, out.size, words[: out.size], fast_path_table())
    done, used = finish(out, 0, left, 0, scales.view(np.uint64), out.size, words, out.size, *tables())
    assert done == left.size < 0.01 * out.size
    assert 1.0 < used / out.size < 1.03
