"""Cosines and sines of many angles at once. Slow twin: `taciturn.tables.random_features.waves`.

Angles are in turns, so that taking off the full ones is exact: `r = t - rint(t)` in [-1/2, 1/2]. Then
`cos(2πr) = 1 - 2·sin²(πr)` and `sin(2πr) = 2·sin(πr)·cos(πr)`, by the Taylor series of sine and cosine on [-π/2, π/2]
up to the powers 19 and 20. As these alternate and their terms decrease, the next term bounds the error: (π/2)²¹/21! <
2.6e-16 and (π/2)²²/22! < 2e-17. There is no branch, so that a compiler makes vectors of it. An infinite angle gives
NaN.
"""

from __future__ import annotations

import math
from typing import Any

from taciturn.kernel.jit import compiled
from taciturn.kernel.lanes import LANES, put, rint, take

_S = [(-1.0) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(10)]
_C = [(-1.0) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(11)]
S0, S1, S2, S3, S4, S5, S6, S7, S8, S9 = _S
C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10 = _C


@compiled
def waves(turns: Any, length: float, out: Any) -> None:
    """Writes `length` times the cosines of angles, and then their sines, into the first columns of `out`."""
    n, h = turns.shape
    width = out.shape[1]
    for i in range(n):
        for j in range(0, h, LANES):
            t = take(turns, i * h + j, h - j)
            r = t + rint(t) * -1.0
            q = r * r
            s = q * S9 + S8
            s = ((((s * q + S7) * q + S6) * q + S5) * q + S4) * q + S3
            s = r * (((s * q + S2) * q + S1) * q + S0)
            c = q * C10 + C9
            c = ((((c * q + C8) * q + C7) * q + C6) * q + C5) * q + C4
            c = (((c * q + C3) * q + C2) * q + C1) * q + C0
            put(out, i * width + j, h - j, s * s * (-2.0 * length) + length)
            put(out, i * width + h + j, h - j, s * c * (2.0 * length))
