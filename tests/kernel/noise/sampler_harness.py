"""A test harness of the compiled sampler: chosen words, other rectangles, and planted faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import getsource
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import numpy as np
from numba import njit
from numba.extending import intrinsic

from kernel.noise.rational import MIRROR
from taciturn.kernel.noise import simd as eights
from taciturn.kernel.noise import ziggurat
from taciturn.kernel.noise.sampling import Bits
from taciturn.kernel.noise.ziggurat_tables import tables

AWAY = MIRROR ^ 1 << 61 | 512  # draws the same negative integer of a scale, for a try after one that keeps nothing

Try = Callable[[float, "list[int] | np.ndarray"], "int | None"]
Tables = tuple[np.ndarray, np.ndarray]


@contextmanager
def rectangles(integers: np.ndarray, real: np.ndarray) -> Iterator[None]:
    """Draw from other rectangles."""
    fresh = ziggurat.fast_path_table.__wrapped__
    with patch.multiple(ziggurat, tables=lambda: (integers, real), fast_path_table=fresh):
        yield


def compiled(other: Tables | None = None, *, fast: bool = True) -> Try:
    """What the compiled sampler makes of the words of one try, with the fast path or not: an integer, or nothing."""
    integers, real = other or tables()
    with rectangles(integers, real):
        table = ziggurat.fast_path_table()
    first, out = np.zeros(1, dtype=np.int64), np.empty(1, dtype=np.int64)

    @cache
    def away(scale: float) -> int:
        return made(scale, np.full(8, AWAY, dtype=np.uint64))

    def made(scale: float, words: np.ndarray) -> int:
        scales = np.array([scale])
        left = ziggurat.draw_fast(out, 0, scales, 1, words[:1], table) if fast else first
        done, _ = ziggurat.finish(out, 0, left, 0, scales.view(np.uint64), 1, words, 1, integers, real)
        assert done == len(left), "there were not enough words"
        return int(out[0])

    def attempt(scale: float, words: list[int] | np.ndarray) -> int | None:
        fed = np.full(len(words) + 16, AWAY, dtype=np.uint64)  # a point in the tail may be rejected
        fed[: len(words)] = words
        value = made(scale, fed)
        return None if value == away(scale) else value

    return attempt


def spoilt(bits: Bits, spoil: Callable[[np.ndarray], np.ndarray]) -> Bits:
    """A source whose words are changed on their way."""

    def source(count: int, into: np.ndarray | None = None, /) -> np.ndarray:
        words = bits(count, into)
        words[:] = spoil(words)
        return words

    return source


def planted(changes: dict[str, tuple[str, str]], **constants: object) -> SimpleNamespace:
    """The sampler, of which some functions have a text in them replaced, and some constants are others."""
    changed = dict(vars(ziggurat)) | constants
    _replace(ziggurat, changed, {"draw": ("", "")} | changes)
    return SimpleNamespace(**changed)


def planted_fast_path(changes: dict[str, tuple[str, str]]) -> Callable[..., np.ndarray]:
    """The fast path, compiled anew, of which some functions have a text in them replaced."""
    changed = dict(vars(eights))
    _replace(eights, changed, dict.fromkeys(("draw_fast", "_draw_eight", "_recalled"), ("", "")) | changes)
    changed["_eight"] = intrinsic(changed["_draw_eight"])
    return changed["draw_fast"]


def _replace(module: ModuleType, changed: dict[str, object], changes: dict[str, tuple[str, str]]) -> None:
    """Put functions of a module, each with a text in it replaced and compiled if it was, into a copy of its names."""
    for name, (old, new) in changes.items():
        function = getattr(module, name)
        source = re.sub(r"^@.*\n", "", getsource(getattr(function, "py_func", function)))
        assert not old or source.count(old) == 1, f"{old!r} must stand in {name} once"
        exec(compile(source.replace(old, new), f"planted {name}", "exec"), changed)
        if hasattr(function, "py_func"):
            changed[name] = njit(error_model="numpy")(changed[name])
