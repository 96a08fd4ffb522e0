"""Whole transcripts: how a stream is run again and again, and how correlated releases are made independent ones.

**Whitening.** Of independent noise, release k is divided by its stated deviation. Of a running sum with matrices B, C
and noise of deviation sigma on the encoded rows, the published sums are `A·x + sigma·B·n`, n standard normal. With
`B·Bᵀ = L·Lᵀ`, L lower-triangular, `W = L⁻¹/sigma` turns them into `W·A·x + n'`, n' standard normal too, and loses
nothing, since W can be undone. Where B is square, L is B and W·(sums) are the noisy encoded rows over sigma; of a tree
only what its sums show of the nodes is left. Whatever the noise really is, W is a fixed, public, linear map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.core.loop import Pass, pass_for
from taciturn.core.private import Private
from taciturn.core.release import Collected, Releases
from taciturn.core.state import Standing
from taciturn.mechanisms.strategy import matrices

_SILENT = 1e-12  # of the largest deviation, where none is stated: what moves there weighs as much as it should


def whitening(private: Private) -> Callable[[Array], Array]:
    """From noisy rows, one below the other along the second last axis, to rows with noise of deviation 1, as stated."""
    calibrated: Any = private.calibrated
    count = len(private.timetable.rounds)
    if (coder := getattr(calibrated, "coder", None)) is None:
        sd = np.array([calibrated.noise_sd(k) for k in range(1, count + 1)])
        sd = np.maximum(sd, _SILENT * np.max(sd))[:, None]
        return lambda rows: rows / sd
    B, _ = matrices(coder, count)
    L = B if B.shape[0] == B.shape[1] else cholesky(B @ B.T, lower=True)
    W = solve_triangular(L, np.eye(count), lower=True) / calibrated.sd
    return lambda rows: np.asarray(W @ rows)


def opening(private: Private) -> Standing:
    """Where a stream stands before any example; passes leave that as it is, so one serves all trials."""
    return Standing(0, 0, private.learner.start(), *private.calibrated.start(), private.problem.first_point)


def released(way: Pass, at: Standing, V: Array, y: Array, rounds: Integers, seed: int) -> tuple[Standing, Releases]:
    """Where a simulation stands after these examples, and its releases at these rounds."""
    shown = Collected(rounds, at.k + 1)
    at = way(at, V, y, rounds, seed, shown)
    return at, shown.releases(simulated=True)


def way_through(private: Private) -> Pass:
    """The very pass that `Private.run` takes; rows that noise has no part in are computed once for all trials."""
    from taciturn.compiled.passes import BatchPass, steps_of

    way = pass_for(private.learner, private.calibrated, private.compiled)
    if isinstance(way, BatchPass) and steps_of(private.learner) is None:
        return replace(way, statistics=_Once(way.statistics))
    return way


def exact_rows(private: Private, V: Array, y: Array, points: Array) -> Array:
    """What would be released without noise, given the points that were: rows, or for sums the sums of rows."""
    from taciturn.compiled.passes import statistics_of

    learner, rounds = private.learner, private.timetable.rounds
    if (fast := statistics_of(learner)) is not None:
        rows = fast(learner.start(), 0, V, y, rounds)[1]
    else:
        exact, rows, start, point = (
            learner.start(),
            np.empty((len(rounds), learner.statistic_size)),
            0,
            opening(private).point,
        )
        for k, end in enumerate(map(int, rounds)):
            exact = learner.absorb(exact, start, V[start:end], y[start:end], point)
            exact, rows[k] = learner.statistic(exact, end)
            start, point = end, points[k]
    return np.cumsum(rows, axis=0) if learner.certificate.reach == "entry" else rows


@dataclass
class _Once:
    """Statistics that depend on no released point: those of the examples seen last are cached."""

    statistics: Any
    _cached: tuple[Array | None, tuple[Arrays, Array]] = field(default=(None, ({}, np.empty(0))))

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Those of the learner."""
        if self._cached[0] is not X:
            self._cached = X, self.statistics(exact, t, X, y, rounds)
        return self._cached[1]

    def decide(self, rounds: Integers, noisy: Array, noise_sd: Array) -> Array:
        """As the learner decides."""
        return np.asarray(self.statistics.decide(rounds, noisy, noise_sd))
