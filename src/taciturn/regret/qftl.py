"""Bounds on the regret of follow-the-leader on quadratic losses, exact and on noisy sums (Section 3.5, Theorem 8).

The losses are `½(y - v·x)² + (alpha/2)‖x‖²` and the leader is `x_{t+1} = (V_t + alpha·t·I)⁻¹u_t`, where V_t and u_t
are the sums of `v vᵀ` and `y v`. `qftl_` and `pqftl_regret_bound` are the paper's bounds as printed, natural
logarithms throughout; `quadratic_regret_bound` is proven.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from taciturn.errors import Unprovable, integer, not_negative, one_of, positive
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.problem.losses import Squared
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import L2Ball, WholeSpace
from taciturn.regret.tails import longest, probability, strongest


def qftl_regret_bound(bound: float, ridge: float, horizon: int) -> float:
    """Regret of the exact leader as the paper prints it: `R⁴·(1 + 2R/alpha)²/alpha·ln T`, R bounding ‖v‖ and |y|.

    False for few rounds: it allows none in the first, and for R small beside alpha a stream exceeds it up to T = 11.
    `quadratic_regret_bound` without noise is proven.

    >>> qftl_regret_bound(1.0, 1.0, 1)
    0.0
    """
    bound, ridge = positive("bound", bound), positive("ridge", ridge)
    return bound**4 * (1.0 + 2.0 * bound / ridge) ** 2 / ridge * math.log(positive("horizon", horizon))


def pqftl_regret_bound(bound: float, ridge: float, dimension: int, privacy: Privacy, horizon: int) -> float:
    """Regret of PQFTL as the proof of Theorem 8 ends, said to hold with probability `1 - exp(-d/2)`.

    The exact leader's, as printed, and `3·sqrt(d)·R·(2R²/alpha + R + 2)·(1 + 2R/alpha)·(1 + ln T)/sqrt(epsilon)·
    sqrt(ln T)·ln sqrt(ln T/delta)`. It does not follow, and the expected regret of the algorithm is infinite:
    `quadratic_regret_bound` is for the repaired one.

    >>> round(pqftl_regret_bound(1.0, 1.0, 10, Privacy(1.0, 1e-6), 100_000))
    49220
    """
    bound, ridge = positive("bound", bound), positive("ridge", ridge)
    slope, length = bound * (2.0 * bound**2 / ridge + bound + 2.0), 1.0 + 2.0 * bound / ridge
    dimension, log_horizon = integer("dimension", dimension), math.log(positive("horizon", horizon))
    noise = math.sqrt(log_horizon / privacy.epsilon) * 0.5 * math.log(log_horizon / privacy.delta)
    added = 3.0 * math.sqrt(dimension) * slope * length * (1.0 + log_horizon) * noise
    return qftl_regret_bound(bound, ridge, horizon) + added


def quadratic_regret_bound(
    problem: Problem,
    horizon: int,
    sd_matrix: float = 0.0,
    sd_vector: float = 0.0,
    failure: float = 0.05,
    shift: float = 0.0,
    floor: Literal["always", "needed"] = "always",
) -> float:
    """Regret of the leader on noisy sums whose matrix is made positive semidefinite, for all but a share of runs.

    `G²/(2·alpha)·Σ_{t≤T} 1/t + Σ_{t<T} (G·e_t + ½(R² + alpha)·e_t²)`, with `e_t = (b + 2a·X)/(alpha·t)`,
    `a = sd_matrix·(2·sqrt(d) + s)`, `b = sd_vector·(sqrt(d) + s)`, `s = sqrt(2·ln(2T/failure))`,
    `G = R·(R·X + R_y) + alpha·X`, and X the norm of the longest leader, `R_y/(2·sqrt(alpha))`, or
    `R·R_y/(alpha + R²)` where R² < alpha.

    Parameters
    ----------
    problem : Problem
        Squared loss with a ridge, over the whole space or a ball that holds every leader.
    horizon : int
        Number of examples; every leader is released.
    sd_matrix, sd_vector : float
        Standard deviations of the noise on an entry of V_t and of u_t, largest over t (and over entries: a symmetric
        matrix may have less off its diagonal). Without noise this is the exact leader's regret.
    failure : float
        How often the bound may fail.
    shift : float
        The largest multiple of the identity that is added to the matrix besides `alpha·t`.
    floor : {"always", "needed"}
        Whether negative eigenvalues are always floored at 0, or only if the matrix to invert has some, as
        `taciturn.QFTL` does it. Then e_t is at least `(b + a·X)/(alpha·t - a)`, which is infinite where `alpha·t ≤ a`.

    Notes
    -----
    *Proof.* The first sum is that of `leader_regret_bound`. With A the noise on V and W the repaired `V + A`, its
    distance from V is at most `2‖A‖`, as V has no negative eigenvalue. From `(W + alpha·t)·(x̂ - x) = noise on u -
    (W - V)·x` it follows that `‖x̂ - x‖ ≤ (‖noise on u‖ + 2‖A‖·‖x‖)/(alpha·t)`. With a shift in `[0, shift]` the right
    hand side moves monotonically towards ‖x‖, so it is largest at one of the two ends. Where nothing was floored,
    `W = V + A` has no eigenvalue below `-‖A‖`, and `‖x̂ - x‖ ≤ (‖noise on u‖ + ‖A‖·‖x‖)/(alpha·t - ‖A‖)`. Projection
    on a ball that holds x, or cutting e_t at the radius and X, changes nothing. f is (R² + alpha)-smooth. Each of 2T
    tails has probability failure/(2T) (`taciturn.regret.tails`). With s the singular values of t rows of norm R,
    `‖x‖ ≤ max_s s/(alpha·t + s²)·sqrt(t)·R_y` over `s ≤ sqrt(t)·R`, which is X. ∎

    Examples
    --------
    >>> from taciturn import L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(0.5), dimension=10, label_bound=1.0, ridge=1.0)
    >>> round(quadratic_regret_bound(problem, 100_000), 1)
    24.2
    >>> round(quadratic_regret_bound(problem, 100_000, sd_matrix=10.0, sd_vector=10.0))
    3382
    """
    alpha, R, d, T = problem.ridge, problem.norm_bound, problem.size, integer("horizon", horizon)
    one_of("floor", floor, ("always", "needed"))
    sd_matrix, sd_vector = not_negative("sd_matrix", sd_matrix), not_negative("sd_vector", sd_vector)
    shift = not_negative("shift", shift)
    X, t, each = _longest_leader(problem), np.arange(1.0, T), probability(failure) / (2.0 * T)
    matrix, vector = sd_matrix * strongest(d, each), sd_vector * longest(d, each)
    distance = np.zeros(T - 1)
    for lam in (0.0, shift):
        held = alpha * t + lam
        distance = np.maximum(distance, (vector + (2.0 * matrix + lam) * X) / held)
        if floor == "needed":
            held = np.where(held > matrix, held - matrix, 1e-300)
            distance = np.maximum(distance, (vector + (matrix + lam) * X) / held)
    distance = np.minimum(distance, problem.radius + X)
    G = R * (R * X + _label_bound(problem)) + alpha * X
    exact = G**2 / (2.0 * alpha) * float(np.sum(1.0 / np.arange(1.0, T + 1.0)))
    return exact + float(G * distance.sum() + problem.smoothness / 2.0 * (distance**2).sum())


def _longest_leader(problem: Problem) -> float:
    """X, after checking that the problem is one that the leader solves in closed form."""
    if not (isinstance(problem.loss, Squared) and problem.ridge > 0.0):
        raise Unprovable("the bound is for squared loss with a ridge. For other losses see leader_regret_bound.")
    alpha, R, labels = problem.ridge, problem.norm_bound, _label_bound(problem)
    X = labels / (2.0 * math.sqrt(alpha)) if alpha <= R**2 else R * labels / (alpha + R**2)
    ball = isinstance(problem.domain, L2Ball) and problem.domain.radius >= X
    if not (ball or isinstance(problem.domain, WholeSpace)):
        raise Unprovable(
            f"the leader may leave {problem.domain}, where its closed form is no leader any more. Use WholeSpace(), "
            f"or a ball that holds every leader, such as L2Ball({X + 1e-3:.3f})."
        )
    return X


def _label_bound(problem: Problem) -> float:
    assert problem.label_bound is not None
    return problem.label_bound
