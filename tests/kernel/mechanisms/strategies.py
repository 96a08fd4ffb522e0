"""Every strategy for running sums, every learner on them, and what tests ask of all alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from taciturn import (
    BLT,
    QFTL,
    BinaryTree,
    Hinge,
    L2Ball,
    Privacy,
    Private,
    Problem,
    Squared,
    SquareRoot,
    pftrl,
    pqftl,
    private_sum,
)
from taciturn.calibration.mechanisms import PrefixSum
from taciturn.kernel.mechanisms import blt_loops
from taciturn.kernel.mechanisms.blt_pass import Cut
from taciturn.kernel.mechanisms.prefix_sum_pass import SUMS
from taciturn.kernel.mechanisms.strategy import Coder, matrices

STRATEGIES: dict[str, PrefixSum] = {
    "tree": BinaryTree(refined=False),
    "refined tree": BinaryTree(),
    "square root": SquareRoot(),
    "blt": BLT(),
    "blt, 1 buffer": BLT(1),
    "blt, mean": BLT(3, "mean"),
    "blt, average": BLT(3, "average"),
}
TREES = ["tree", "refined tree"]
MULTIPLYING = [name for name in STRATEGIES if name not in TREES]

LOWER_BOUND = {2**10: 2.91, 2**14: 3.79, 2**17: 4.45, 2**20: 5.11}
"""Largest error at mu = 1 that no strategy for so many sums can beat: the mean of the matrix's n singular values."""


@lru_cache(maxsize=256)
def dense(name: str, n: int) -> tuple[Coder, np.ndarray, np.ndarray]:
    """The coder for n rows, and its matrices B and C."""
    coder = STRATEGIES[name].coder(n)
    return coder, *matrices(coder, n)


def rows_of(coder: Coder, k: int) -> slice:
    """The encoded rows that row k adds."""
    return slice(coder.before(k), coder.before(k + 1))


def encoded(calibrated, X: np.ndarray) -> np.ndarray:
    """The integers of a whole stream of rows."""
    secret, out = calibrated.start()[0], []
    for k, row in enumerate(X, start=1):
        secret, integers = calibrated.encode(secret, row, k)
        out.append(integers)
    return np.concatenate(out)


def decoded(calibrated, noisy: np.ndarray, n: int) -> np.ndarray:
    """The running sums of a whole stream of noisy integers."""
    public, out = calibrated.start()[1], []
    for k in range(1, n + 1):
        public, total, _ = calibrated.decode(public, noisy[rows_of(calibrated.coder, k)], k)
        out.append(total)
    return np.array(out)


@dataclass(frozen=True)
class Case:
    """A learner made private over n rounds, and how far one example moves its own row: Delta, stated here apart."""

    make: Callable[..., Private]
    delta: float

    def __call__(self, strategy: PrefixSum | None, privacy: Privacy, horizon: int | None = None, **more) -> Private:
        return self.make(privacy, horizon, strategy=strategy, **more)


def _sums(neighbours: str) -> Callable[..., Private]:
    return lambda privacy, horizon, **more: private_sum(3, 1.5, privacy, horizon, neighbours=neighbours, **more)


def _regression(neighbours: str) -> Callable[..., Private]:
    problem = Problem(Squared(), L2Ball(1.0), 2, label_bound=2.0, neighbours=neighbours)
    return lambda privacy, horizon, **more: pqftl(problem, privacy, horizon, weight=0.5, **more)


def _classes(neighbours: str) -> Callable[..., Private]:
    problem = Problem(Hinge(), L2Ball(1.0), 2, 1.5, neighbours=neighbours)
    return lambda privacy, horizon, **more: pftrl(problem, privacy, horizon, **more)


CASES: dict[str, Case] = {
    "sum": Case(_sums("replace"), 3.0),
    "sum, zero-out": Case(_sums("zero-out"), 1.5),
    "qftl": Case(
        _regression("replace"), math.sqrt(2.0 + 2.0 * 0.25 * 4.0 + 0.5 * 0.0625 * 16.0)
    ),  # w·R_y = 1 < sqrt(2)
    "qftl, zero-out": Case(_regression("zero-out"), math.sqrt(1.0 + 0.25 * 4.0)),
    "ftrl": Case(_classes("replace"), 3.0),
    "ftrl, zero-out": Case(_classes("zero-out"), 1.5),
}


def norm(private: Private) -> float:
    """The largest norm of a contribution, stated here apart, on its lattice: (v vᵀ, w·y·v) or a vector."""
    p, learner = private.problem, private.learner
    squared = isinstance(learner, QFTL)
    longest = math.hypot(p.norm_bound**2, learner.w * p.label_bound * p.norm_bound) if squared else p.norm_bound
    return longest + 4.0 * math.sqrt(learner.statistic_size) * 2.0 ** (math.floor(math.log2(longest)) - 26)


def recomputed(private: Private, delta: float) -> tuple[float, float]:
    """`mu = ((Delta + own rounding)·max_j ‖C e_j‖ + lattice)/sd`, from the matrices, sd and step; and the lattice part.

    The learner rounds each contribution to 2⁻²⁶ of a power of two below its largest entry, or (QFTL) pays four times
    that for sums made floats and multiplied; the mechanism rounds rows first where it only adds (trees), and
    every encoded entry, float errors included, where it multiplies.
    """
    calibrated, size, n = private.calibrated, private.learner.statistic_size, len(private.timetable.rounds)
    coder, largest = calibrated.coder, private.learner.certificate.magnitude
    _, C = matrices(coder, n)
    longest = float(np.max(np.linalg.norm(C, axis=0)))
    own = 4.0 if isinstance(private.learner, QFTL) else 1.0
    delta += own * math.sqrt(size) * 2.0 ** (math.floor(math.log2(largest)) - 26)
    if coder.integer:
        lattice = math.sqrt(size) * calibrated.step(1) * longest
    else:
        block = float(np.max(np.diff(private.timetable.rounds, prepend=0)))
        errors = 2.0 * coder.rounding_error * norm(private) * block
        lattice = math.sqrt(len(C)) * (math.sqrt(size) * calibrated.step(1) + errors)
    return (delta * longest + lattice) / calibrated.sd, lattice / calibrated.sd


NOISY_SUMS = blt_loops.noisy_sums  # also while another function stands in its place


def encoded_by_loop(rows: np.ndarray, decays: np.ndarray, weights: np.ndarray, buffers: np.ndarray) -> np.ndarray:
    """Encoded rows of a BLT, as the fused loop makes them; changes `buffers`.

    On a lattice so fine that nothing is rounded, without noise, and with a decoder that remembers nothing.
    """
    width = rows.shape[1]
    steps, largest = np.full(len(rows), 2.0**-400), np.full(len(rows), 1e300)
    nothing = np.zeros(1), np.zeros(1), np.zeros((1, width))
    noise = np.zeros(rows.shape, dtype=np.int64)
    strategy = decays, weights, buffers
    return np.asarray(NOISY_SUMS(rows, largest, steps, noise, strategy, nothing, np.zeros(width), 0.0))


def encoded_by_loops(coder: Coder, rows: np.ndarray) -> np.ndarray:
    """The same of a strategy that is made of BLTs, from its first row on."""

    def undecoded(rows: np.ndarray, *args: Any) -> np.ndarray:
        return encoded_by_loop(rows, *args[3])

    nothing = Cut(*(np.zeros(rows.shape, dtype=np.int64) for _ in range(3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blt_loops, "noisy_sums", undecoded)
        return SUMS[type(coder)](coder, coder.start(rows.shape[1]), rows, 1, nothing)[1]
