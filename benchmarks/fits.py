"""One buffered linear Toeplitz strategy, fitted by taciturn and by jax-privacy, each with its own defaults.

Either fit is reduced to the decays and weights of C, `c_0 = 1`, `c_k = Σ_i weight_i·decay_i^(k-1)`, and both are judged
by `deviation`, which knows the closed forms of neither.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import njit

from taciturn import BLT
from taciturn.mechanisms.blt import Aim, fitted

COMPILED = "/jax/core/compile/backend_compile_duration"  # what jax reports after each compilation
CLOSE = 1e-4  # a fit is settled once its error is within this share of its last


@dataclass(frozen=True)
class Fit:
    """A strategy, the processor's seconds for the whole call, and those of its steps: all, and until settled.

    The rest is compiling: tracing, lowering and compiling; a starting point and last checks are among it.
    """

    decays: np.ndarray
    weights: np.ndarray
    whole: float
    steps: float
    settled: float


def by_taciturn(n: int, buffers: int, aim: Aim) -> Fit:
    """Nothing is kept from earlier fits; those with fewer buffers, which it compares with, are part of the whole."""
    fitted.cache_clear()
    start = time.process_time()
    coder = BLT(buffers, aim).coder(n)
    whole = time.process_time() - start
    th, ph = np.array(coder.decays), np.array(coder.inverse_decays)
    apart = th[:, None] - th + np.eye(len(th))
    return Fit(th, np.prod(th[:, None] - ph, axis=1) / np.prod(apart, axis=1), whole, whole, whole)


def by_jax_privacy(n: int, buffers: int, aim: Aim) -> Fit:
    """Exactly this many buffers, for one participation."""
    from jax_privacy.matrix_factorization import buffered_toeplitz

    watch = _watch()
    watch.start()
    blt = buffered_toeplitz.optimize(n=n, error=aim, min_buffers=buffers, max_buffers=buffers, callback=watch.step)
    decays, weights = np.asarray(blt.buf_decay), np.asarray(blt.output_scale)
    return Fit(decays, weights, time.process_time() - watch.began, *watch.steps_and_settled())


class Watch:
    """Times the steps of an optimiser in jax, those that compile left out.

    `optimize` compiles its step anew in every call, and once more for its second step, whose state has other types.
    A step that compiles counts as much as the mean of the others.
    """

    def __init__(self) -> None:
        import jax

        self.start()
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    def _heard(self, event: str, *_: object, **__: object) -> None:
        self.compiled |= event == COMPILED

    def start(self) -> None:
        """Forget the last fit."""
        self.compiled = False
        self.losses: list[float] = []
        self.seconds: list[float] = []
        self.began = self.last = time.process_time()

    def step(self, step: object) -> None:
        """To be called after each step; to read its loss waits for its end."""
        self.losses.append(float(step.loss))  # type: ignore[attr-defined]
        now = time.process_time()
        self.seconds.append(math.nan if self.compiled else now - self.last)
        self.last, self.compiled = now, False

    def steps_and_settled(self) -> tuple[float, float]:
        """Seconds of all steps, and until the loss, a squared error, is and stays close to its last."""
        seconds, losses = np.array(self.seconds), np.array(self.losses)
        if not np.isnan(seconds).any():
            raise RuntimeError(f"jax reported no {COMPILED}. Look up the event's name in this version of jax.")
        seconds[np.isnan(seconds)] = np.nanmean(seconds)
        far = np.flatnonzero(losses > losses[-1] * (1.0 + CLOSE) ** 2)
        return float(seconds.sum()), float(seconds[: far[-1] + 2 if len(far) else 1].sum())


@cache
def _watch() -> Watch:
    return Watch()


def deviation(fit: Fit, n: int, aim: Aim) -> float:
    """Of an entry of the running sums, at mu = 1 and for examples that move one row by 1: `‖C e_1‖·‖row of B‖`.

    For "max" it is that of the last row, the longest; for "mean" the root of the mean square over the n rows.
    """
    first, last, mean = _squares(fit.decays, fit.weights, n)
    return math.sqrt(first * (last if aim == "max" else mean))


def column(fit: Fit, n: int) -> float:
    """`‖C e_1‖`: the deviation of the noise on encoded rows, at mu = 1 and for examples that move one row by 1."""
    return math.sqrt(_squares(fit.decays, fit.weights, n)[0])


@njit
def _squares(decays, weights, n):  # type: ignore[no-untyped-def]
    """`‖C e_1‖²`, and the last and the mean of the squared rows of `B = A·C⁻¹`, term by term.

    The coefficients of C⁻¹ come from the recursion that takes C off a row: `x_k = y_k - Σ weight_i·s_i`,
    `s_i ← decay_i·s_i + x_k`, for y = e_1; those of B are their running sums.
    """
    powers, memory = np.ones_like(decays), np.ones_like(decays)
    column = b = row = rows = 1.0
    for _ in range(1, n):
        column += np.sum(weights * powers) ** 2
        powers *= decays
        x = -np.sum(weights * memory)
        memory = decays * memory + x
        b += x
        row += b * b
        rows += row
    return column, row, rows / n
