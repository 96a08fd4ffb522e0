"""A buffered linear Toeplitz strategy, fitted by taciturn and by jax-privacy, each with its own defaults.

Either fit is reduced to the decays and weights of C, `c_0 = 1`, `c_k = Σ_i weight_i·decay_i^(k-1)`. The error of both
is computed by `sum_sd`, which uses the closed forms of neither.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import njit

from taciturn import BLT
from taciturn.calibration.blt_fit import Aim, fitted
from taciturn.kernel.accounting.unit import ONCE, Participation

COMPILED = "/jax/core/compile/backend_compile_duration"  # the event that jax reports after each compilation
CLOSE = 1e-4  # a fit has converged once its error is within this share of its last


@dataclass(frozen=True)
class Fit:
    """A strategy, CPU seconds of the call, of all its steps, and of its steps until convergence.

    The difference of `total` and `steps` is compilation: tracing, lowering and compiling, and also initialisation.
    """

    decays: np.ndarray
    weights: np.ndarray
    total: float
    steps: float
    converged: float


def by_taciturn(n: int, buffers: int, aim: Aim, unit: Participation = ONCE) -> Fit:
    """Fit without any cache; fits with fewer buffers, which it compares with, are part of the total."""
    fitted.cache_clear()
    start = time.process_time()
    coder = BLT(buffers, aim).coder_for(n, unit)
    total = time.process_time() - start
    decays = np.array(coder.decays)
    inverse_decays = np.array(coder.inverse_decays)
    differences = decays[:, None] - decays + np.eye(len(decays))
    weights = np.prod(decays[:, None] - inverse_decays, axis=1) / np.prod(differences, axis=1)
    return Fit(decays, weights, total, total, total)


def by_jax_privacy(n: int, buffers: int, aim: Aim, unit: Participation = ONCE) -> Fit:
    """Fit exactly this many buffers, for one row of a unit in a block."""
    from jax_privacy.matrix_factorization import buffered_toeplitz

    watch = _watch()
    watch.start()
    blt = buffered_toeplitz.optimize(
        n=n,
        error=aim,
        min_sep=unit.apart,
        max_participations=unit.rows,
        min_buffers=buffers,
        max_buffers=buffers,
        callback=watch.step,
    )
    total = time.process_time() - watch.began
    return Fit(np.asarray(blt.buf_decay), np.asarray(blt.output_scale), total, *watch.steps_and_converged())


class Watch:
    """Times the steps of an optimiser in jax, without compilation.

    `optimize` compiles its step in every call, and once more for its second step, whose state has other types. A step
    that compiles counts as the mean of the others.
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
        """To be called after each step; reading its loss waits for its end."""
        self.losses.append(float(step.loss))  # type: ignore[attr-defined]
        now = time.process_time()
        self.seconds.append(math.nan if self.compiled else now - self.last)
        self.last, self.compiled = now, False

    def steps_and_converged(self) -> tuple[float, float]:
        """Seconds of all steps, and until the loss, a squared error, stays close to its last."""
        seconds = np.array(self.seconds)
        losses = np.array(self.losses)
        if not np.isnan(seconds).any():
            raise RuntimeError(f"jax reported no {COMPILED}. Look up the event's name in this version of jax.")
        seconds[np.isnan(seconds)] = np.nanmean(seconds)
        far = np.flatnonzero(losses > losses[-1] * (1.0 + CLOSE) ** 2)
        return float(seconds.sum()), float(seconds[: far[-1] + 2 if len(far) else 1].sum())


@cache
def _watch() -> Watch:
    return Watch()


def sum_sd(fit: Fit, n: int, aim: Aim) -> float:
    """Standard deviation of an entry of the noisy sums at mu = 1, with rows of sensitivity 1: `‖C e_1‖·‖row of B‖`.

    For "max" it is that of the last sum, the largest; for "mean" the root of the mean square over the n sums.
    """
    first, last, mean = _squares(fit.decays, fit.weights, n)
    return math.sqrt(first * (last if aim == "max" else mean))


def user_sum_sd(fit: Fit, n: int, unit: Participation) -> float:
    """The same of the last sum, with rows of a unit in blocks 0, apart, 2·apart, …: `‖C u‖·‖row of B‖`."""
    column = np.concatenate([[1.0], fit.weights @ np.vander(fit.decays, n - 1, increasing=True)])
    moved = np.zeros(n)
    for start in range(0, n, unit.apart)[: unit.rows]:
        moved[start:] += column[: n - start]
    return float(np.linalg.norm(moved)) * math.sqrt(_squares(fit.decays, fit.weights, n)[1])


def column_norm(fit: Fit, n: int) -> float:
    """`‖C e_1‖`: the standard deviation of the noise on encoded rows at mu = 1, with rows of sensitivity 1."""
    return math.sqrt(_squares(fit.decays, fit.weights, n)[0])


@njit
def _squares(decays, weights, n):  # type: ignore[no-untyped-def]
    """`‖C e_1‖²`, and the last and the mean of the squared rows of `B = A·C⁻¹`, term by term.

    The coefficients of C⁻¹ come from the recursion that takes C off a row: `x_k = y_k - Σ weight_i·s_i`,
    `s_i ← decay_i·s_i + x_k`, for y = e_1; those of B are their prefix sums.
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
