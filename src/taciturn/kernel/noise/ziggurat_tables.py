"""The rectangles that cover a Gaussian's right half, as the sampler's tables; what they are is in `ziggurat`.

Widths are integer multiples of 2⁻⁶⁰ and heights follow from them, so that only heights are rounded, from 40 digits.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.noise.sampling import REACH

LAYERS = 1024
BLOCKS = 92
POINT = 60
"""Binary places of abscissas."""

_WIDEST = 4.388231  # x_0: 4.3882317 would end at y_1024 = 1 sharp

Words = NDArray[np.uint64]


@cache
def tables() -> tuple[Words, NDArray[np.float64]]:
    """The rectangles, 1,024 layers and 92 blocks: integers (inner, width, start, t), of 60 places, and (a, b).

    >>> [table.shape for table in tables()]
    [(4, 1116), (2, 1116)]
    """
    with localcontext(prec=40):
        x, y, area = _layers()
        starts, widths = _tail(x[1])
        t = [*x[1:], 0, *starts]
        inner = [59 << 58, *(((b - (b >> 43)) << 53) // a << 11 for a, b in pairwise([*x[1:], 0])), *[0] * BLOCKS]
        height = [area / w for w in x] + [area * 5 / 2 ** (7 + j) / w for j, w in enumerate(widths)]
        under = [_gauss(at) for at in t]
        a = [float(floor / F) for floor, F in zip([*y, *[Decimal(0)] * BLOCKS], under, strict=True)]
        b = [float(h / F) for h, F in zip(height, under, strict=True)]
    integers = np.array([inner, x + widths, [0] * LAYERS + starts, t], dtype=np.uint64)
    return integers, np.array([a, b])


def _layers() -> tuple[list[int], list[Decimal], Decimal]:
    """The layers' widths and lower ends, and their area; 2⁻⁴⁴ too wide, lest rounding leave F uncovered."""
    x = [round(_WIDEST * 2**40) << POINT - 40]
    x.append(x[0] // 64 * 59)
    y = [Decimal(0), _gauss(x[1])]
    area = x[0] * y[1]
    while len(x) < LAYERS:
        y.append(y[-1] + area / x[-1])
        x.append(int(math.sqrt(-2.0 * math.log(y[-1])) * (1.0 + 2.0**-44) * 2.0**POINT))
    return x, y, area


def _tail(edge: int) -> tuple[list[int], list[int]]:
    """Starts and widths of the blocks, over each of which F falls to a half, a little more over the last."""
    squares = ((edge * 2.0**-POINT) ** 2 + 2.0 * j * math.log(2.0) for j in range(1, BLOCKS))
    ends = [edge, *(int(math.sqrt(square) * 2.0**POINT) for square in squares), (REACH << POINT) + (1 << POINT - 20)]
    return ends[:-1], [b - a for a, b in pairwise(ends)]


def _gauss(x: int) -> Decimal:
    """`F(x·2⁻⁶⁰)`."""
    return (-(Decimal(x) ** 2) / (1 << 2 * POINT + 1)).exp()
