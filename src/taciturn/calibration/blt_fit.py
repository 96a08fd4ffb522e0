"""Decays of BLT strategies with the least error that a fit finds.

Nothing that protects rests on a fit: it hands in decays as a file of a state does, and `taciturn.kernel.mechanisms.blt`
validates them and computes sensitivity and error from the decays themselves.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
import scipy

from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array
from taciturn.kernel.cache import cached, sources
from taciturn.kernel.mechanisms import blt
from taciturn.kernel.mechanisms.blt import (
    APART,
    BLTCoder,
    Decays,
    coefficients,
    in_order,
    pairs,
    pattern_squares,
    prefix_squares,
    series,
    squares,
    weights,
)

Aim = Literal["max", "mean", "average"]
_MOST = 256  # blocks of one unit that a fit takes into account
_SEGMENTS = 16  # of `average_squares`: the inverse of their growth


def to_fit(n: int, participation: Participation) -> Participation:
    """The participation that a fit is for: once, if all rows of a unit lie in one block, and at most `_MOST` blocks."""
    blocks = min(participation.blocks, 1 + (n - 1) // participation.apart)
    if blocks == 1:
        return ONCE
    return replace(participation, rows=min(participation.rows, participation.per_release * min(blocks, _MOST)))


@lru_cache(maxsize=256)
def fitted(n: int, buffers: int, aim: Aim = "max", participation: Participation = ONCE) -> Decays:
    """Decays of C and of its inverse with the least error that a fit finds, cached on this machine.

    The fit's last digits depend on the processor: another machine may fit other decays, of an equal error.
    Sensitivities and errors are computed from the decays themselves, wherever they come from.

    >>> decays, inverse = fitted(1024, 2)
    >>> 1.0 > decays[0] > inverse[0] > decays[1] > inverse[1] >= 0.0
    True
    """
    version = f"{sources(Path(__file__), Path(blt.__file__))}, numpy {np.__version__}, scipy {scipy.__version__}"
    name = f"blt-{n}-{buffers}-{aim}"
    if participation != ONCE:
        name += f"-{participation.rows}-{participation.per_release}-{participation.apart}"
    decays, inverse = cached(name, version, lambda: _fit(n, buffers, aim, participation), in_order)
    return decays, inverse


def _fit(n: int, buffers: int, aim: Aim, participation: Participation = ONCE) -> Decays:
    """L-BFGS, from a few starts; the fit with one buffer less is taken if it is better.

    The unknowns are the logarithms of `1 - th` and `1 - th'` in their order, the largest at most 0 and the others by
    positive gaps below it.
    """
    from scipy.optimize import minimize  # here: it loads slowly, and few streams need it

    options = {"maxiter": 2000, "ftol": 1e-13}
    slope = partial(_with_slope, n=n, aim=aim, participation=participation)
    fits = [
        minimize(slope, start, jac=True, method="L-BFGS-B", options=options)  # type: ignore[call-overload]
        for start in _starts(n, buffers, participation)
    ]
    best = min(fits, key=lambda result: float(result.fun))
    if buffers > 1:
        fewer = fitted(n, buffers - 1, aim, participation)
        if float(_objective(np.array(fewer[0]), np.array(fewer[1]), n, aim, participation)) <= best.fun:
            return fewer
    th, ph = _decays(best.x)
    return tuple(map(float, th)), tuple(map(float, ph))


def _starts(n: int, buffers: int, participation: Participation) -> list[Array]:
    """Gaps that spread the logarithms evenly, down to about 1/n or a good deal less; more for several rows of a unit.

    Their fits have local minima: from two starts only, some of those tried were 3 % above the best of ten.
    """
    count = 2 * buffers
    several = ((0.0, 1.0), (-2.0, 1.3)) if participation != ONCE else ()
    return [
        np.concatenate([[last], np.full(count - 1, math.log(depth * math.log(n + 2.0) / count))])
        for last, depth in ((-1.0, 1.0), (-3.0, 0.7), *several)
    ]


def _decays(z: Array) -> tuple[Array, Array]:
    """The two sets of decays from unknowns (along the last axis): the largest logarithm, and those of the gaps."""
    gaps = np.cumsum(np.exp(np.minimum(z[..., 1:], 10.0)), axis=-1)
    first = -np.log1p(np.exp(np.clip(z[..., :1], -30.0, 30.0)))
    logs = np.concatenate([first, first - gaps], axis=-1)
    ordered = -np.expm1(np.maximum(logs, -34.0)[..., ::-1])
    return ordered[..., 0::2], ordered[..., 1::2]


def _with_slope(z: Array, n: int, aim: Aim, participation: Participation) -> tuple[float, Array]:
    """The objective and its gradient by central differences, in one call."""
    moved = 1e-5 * np.eye(len(z))
    values = _objective(*_decays(np.concatenate([z[None, :], z + moved, z - moved])), n, aim, participation)
    count = len(z)
    return float(values[0]), (values[1 : count + 1] - values[count + 1 :]) / 2e-5


def _objective(th: Array, ph: Array, n: int, aim: Aim, participation: Participation) -> Array:
    """The logarithm of the squared error at mu = 1; large where decays coincide."""
    apart = np.diff(np.stack([th, ph], axis=-1).reshape(*th.shape[:-1], -1), axis=-1)
    with np.errstate(all="ignore"):
        om = weights(th, ph)
        once = participation == ONCE
        squared_sensitivity = 1.0 + squares(om, th, n - 1.0) if once else pattern_squares(om, th, n, participation)
        value = np.log(squared_sensitivity * _squared_error(th, ph, n, aim))
    return np.where((apart < -APART).all(axis=-1) & np.isfinite(value), value, 1e3)


def _squared_error(th: Array, ph: Array, n: int, aim: Aim) -> Array:
    """The square of the error to minimise, under standard normal noise."""
    if aim == "mean":
        return mean_squares(th, ph, n)
    last = prefix_squares(th, ph, np.asarray(float(n)))
    return last if aim == "max" else np.sqrt(last * average_squares(th, ph, n))


def average_error(coder: BLTCoder) -> float:
    """Standard deviation of the late average of FTRL's points, over that of one release of it (`average_squares`).

    >>> from taciturn import BLT
    >>> [round(average_error(BLT(5, aim).coder(500)), 2) for aim in ("max", "average")]
    [1.77, 1.49]
    """
    th, ph = coder.arrays[:2]
    with np.errstate(divide="ignore"):
        return coder.sensitivity * math.sqrt(float(average_squares(th, ph, coder.n)))


def mean_squares(th: Array, ph: Array, n: int) -> Array:
    """The mean over k = 1..n of `Σ_{l<k} b_l²`, that is `Σ_{l<n} b_l²·(n - l)/n`."""
    b, be = coefficients(th, ph)

    def falling(r: Array) -> Array:
        """`Σ_{l<n} r^l·(n - l)/n`."""
        return np.asarray((1.0 - r * series(r, float(n)) / n) / (1.0 - r))

    double = np.sum(pairs(be) * falling(pairs(ph)), axis=(-2, -1))
    return np.asarray(b * b * (n + 1.0) / 2.0 + 2.0 * b * np.sum(be * falling(ph), axis=-1) + double)


def average_squares(th: Array, ph: Array, n: int) -> Array:
    """The variance of the late average of `N_k/sqrt(k)`, N_k the noise of the k-th of n sums, its weights adding to 1.

    This is the noise of the model of FTRL in blocks of equal length: `taciturn.averages.late_average` gives its k-th
    point a weight of about `k³`, and without a ridge the point is the sum divided by about `sqrt(k)`. With weights
    `v_k = (k/n)^3.5 - ((k-1)/n)^3.5` in all, it is `Σ_j y_j²`, `y_j = Σ_{k≥j} b_{k-j}·v_k`. Released by itself, with
    sensitivity 1, the average would have variance 1.

    `y_j` is computed from the end, `j = n`, through segments that grow by a sixteenth, v constant and y linear in each:
    exactly up to 31 sums, to about .3 % beyond. It guides a fit, and nothing rests on it.
    """
    ends = [0]
    while ends[-1] < n:
        ends.append(min(n, ends[-1] + max(1, ends[-1] // _SEGMENTS)))
    along = (-1,) + (1,) * (ph.ndim - 1)
    rows = np.diff(ends).astype(np.float64)
    before = 1.0 - (1.0 - np.array(ends) / n) ** 3.5  # weight of the sums before the end of a segment
    b, be = coefficients(th, ph)
    gone = np.expm1(rows.reshape(*along, 1) * np.log(ph))  # th'^rows - 1
    added = (np.diff(before) / rows).reshape(*along, 1) * gone / (ph - 1.0)
    held = np.zeros((len(ends), *ph.shape))
    for i in range(len(rows)):
        held[i + 1] = (gone[i] + 1.0) * held[i] + added[i]
    y = np.einsum("s...i,...i->s...", held, be) + b * before.reshape(along)
    last, step, rows = y[1:], np.diff(y, axis=0), rows.reshape(along)
    squared = rows * last**2 - (rows - 1.0) * step * last + (rows - 1.0) * (2.0 * rows - 1.0) / (6.0 * rows) * step**2
    return np.asarray(np.sum(squared, axis=0))
