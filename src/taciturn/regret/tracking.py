"""Tracking: the loss of a stream that forgets, above that of the best fixed point per segment, and a bound on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from taciturn.calibration.mechanisms import DecayedBLT
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, Unprovable, integer
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.release import Release
from taciturn.regret.ftrl import noise_sds, parts
from taciturn.regret.measure import replay
from taciturn.regret.optimum import best_in_hindsight
from taciturn.regret.tails import length_moments


def tracking_regret(
    problem: Problem, releases: Sequence[Release], X: Any, y: Any, changes: Sequence[int], tolerance: float = 1e-9
) -> float:
    """Dynamic regret: the loss of what was played, above that of the best fixed point per segment (not private).

    Parameters
    ----------
    problem, releases, X, y
        As in `taciturn.regret.replay`.
    changes : sequence of int
        Numbers of examples after which a segment ends and the next begins, in increasing order.
    tolerance : float
        As in `taciturn.regret.best_in_hindsight`; what it leaves open is counted as regret.

    Examples
    --------
    >>> from taciturn import Absolute, Box, Problem
    >>> problem = Problem(Absolute(), Box(-1.0, 1.0), dimension=1, label_bound=1.0)
    >>> X, y = [[1.0]] * 4, [1.0, 1.0, -1.0, -1.0]
    >>> [round(tracking_regret(problem, [], X, y, changes), 6) for changes in ([], [2])]
    [0.0, 4.0]
    """
    record = replay(problem, releases, X, y)
    count = len(record.losses)
    ends = [0, *(integer("a change", each, of_many=True) for each in changes), count]
    if any(a >= b for a, b in pairwise(ends)):
        raise InvalidInput(f"changes must increase, and lie between 1 and {count - 1:,}. Give them in order.")
    regret = 0.0
    for start, end in pairwise(ends):
        best = best_in_hindsight(problem, X[start:end], y[start:end], tolerance)
        regret += float(np.sum(record.losses[start:end])) - (end - start) * (best.average - best.gap)
    return regret


def tracking_regret_bound(private: Private, changes: int = 0) -> float:
    """Expected dynamic regret of `pftrl` that forgets, against the best fixed point of each of `changes + 1` segments.

    `R·(1 + changes + (1 - β)·K) + changes·m·G·D/(1 - β)`, or `T·G·D` if that is less: K releases, each after m
    examples, β the decay of sums from one to the next, G the Lipschitz constant, ridge included, D the diameter, and

        R = max_N (lam_{N+1}/2)·B² + Σ_{k≤N} β^(N-k)·min(m·G·r_k + (m·G)²/(2·β·a_k), m·G·D),

    with `a_k = alpha·n_k + lam_k` what point k is divided by, n_k the number of examples that its sum stands for, `r_k
    = l·s_k/a_k`, l the mean length of a standard normal vector, s_k the standard deviation of the noise, r_0 = 0 and
    lam_0 = lam_1. `1/(1 - β)` is about the window over m: a change costs a window, and `(1 - β)·K` windows cost R each.

    Notes
    -----
    *Proof.* Let `h_t(x) = g_t·x + (alpha/2)‖x‖²`, g_t the gradient of the data term at the point of round t, and H_k
    the sum of h_t over the m rounds of point p_k. Losses are convex, so the regret in these rounds against u is at most
    `e_k = H_k(p_k) - H_k(u)`. Let `D_N = Σ_{k≤N} β^(N-k)·e_k`.

    *(i) D_N ≤ R, for all N and u.* Let `F_k = Σ_{j<k} β^(k-1-j)·H_j + (lam_k/2)‖x‖²`, and y_k its minimum over the set.
    Then `F_{k+1} = β·F_k + H_k + ½(lam_{k+1} - β·lam_k)‖x‖²`, the last term not negative as lam never falls; and F_k is
    a_k-strongly convex. With `z = y_{k+1}`: `F_{k+1}(z) ≥ β·F_k(y_k) + (β·a_k/2)‖z - y_k‖² + H_k(z)`. Multiplied by
    `β^(N-k)` and added up, with `F_{N+1}(y_{N+1}) ≤ F_{N+1}(u)` and `F_0 ≥ 0`, D_N is at most `(lam_{N+1}/2)‖u‖²` and
    the sum of `β^(N-k)` times `H_k(p_k) - H_k(z) - (β·a_k/2)‖z - y_k‖²`. With v the gradient of H_k at p_k, at most m·G
    long, this is at most `v·(p_k - y_k) - v·(z - y_k) - (β·a_k/2)‖z - y_k‖²`, and so at most
    `m·G·‖p_k - y_k‖ + (m·G)²/(2·β·a_k)`; it is also at most m·G·D. p_k and y_k minimise a_k-strongly convex functions
    that differ by `b·x`, b the noise of the sum, so that they are at most ‖b‖/a_k apart, and `E‖b‖ = l·s_k`. (The
    minimum with m·G·D is concave in ‖b‖.)

    *(ii) A segment* of releases a to b, `e_k = D_k - β·D_{k-1}`, so `Σ e_k = D_b - β·D_{a-1} + (1 - β)·Σ_{a≤k<b} D_k`.
    The first and the last are at most `R·(1 + (1 - β)(b - a))`. As `e_k ≥ -m·G·D`, `-D_{a-1}` is at most
    `m·G·D/(1 - β)`, and 0 for the first segment. A change inside the rounds of one point adds these rounds, `m·G·D` at
    most; and `β/(1 - β) + 1 = 1/(1 - β)`. ∎

    From a regret that is discounted to one per segment as Zhang, Bombara, Yang, *Discounted adaptive online learning*,
    2024; with noise and delays here. With a window of `(T/changes)^(2/3)` it is of order `T^(2/3)·changes^(1/3)`.

    Examples
    --------
    >>> from taciturn import Hinge, L2Ball, Privacy, Problem, every, pftrl
    >>> problem = Problem(Hinge(), L2Ball(1.0), dimension=2)
    >>> private = pftrl(problem, Privacy(8.0, 1e-6), 10**6, forget=10_000, schedule=every(10))
    >>> [round(tracking_regret_bound(private, changes) / 10**6, 2) for changes in (0, 3)]
    [0.1, 0.16]
    """
    changes = integer("changes", changes, least=0)
    learner, mechanism, ends = parts(private)
    if not isinstance(mechanism, DecayedBLT) or not learner.bounded or learner.curvature > 0.0:
        raise Unprovable(
            "the bound is for FTRL that forgets, over a bounded set and without curvature. Use pftrl(problem, privacy, "
            "horizon, forget=10_000, schedule=every(100))."
        )
    calibrated: Any = private.calibrated
    problem, between, count = learner.problem, calibrated.timetable.schedule.rounds, len(ends)
    decay = float(calibrated.coder.decay)
    steep, across = between * problem.lipschitz_with_ridge, problem.diameter
    anyway = float(ends[-1]) * problem.lipschitz_with_ridge * across
    sd = noise_sds(private, mechanism, count)
    stands_for = np.asarray(calibrated.effective(np.arange(1, count + 1)))
    lam = np.maximum.accumulate(np.asarray(learner.regulariser(stands_for, sd)))
    inertia = np.append(lam[0], problem.ridge * stands_for + lam)[:count]
    moved = np.append(0.0, length_moments(problem.size)[0] * sd)[:count] / inertia
    terms = np.minimum(steep * moved + steep**2 / (2.0 * decay * inertia), steep * across)
    most = discounted = 0.0
    for term, held_back in zip(terms, lam, strict=True):
        discounted = decay * discounted + float(term)
        most = max(most, discounted + held_back / 2.0 * problem.radius**2)
    tracked = most * (1.0 + changes + (1.0 - decay) * count) + changes * steep * across / (1.0 - decay)
    return float(min(tracked, anyway))
