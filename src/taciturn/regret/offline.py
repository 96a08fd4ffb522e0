"""Bounds for offline learning (Section 4.2): the risk of averaged iterates, and of their private release.

Examples are drawn independently from one distribution, and the risk of a point is the expected loss, without the
ridge, on one more.
"""

from __future__ import annotations

import math

from taciturn.core.private import Private
from taciturn.errors import InvalidInput, Unprovable, finite, float_or_nan, integer, value_or_type
from taciturn.kernel.learners.igd import IGD
from taciturn.kernel.problem.problem import Problem
from taciturn.methods.averaged import Averaged
from taciturn.regret.bounds import igd_regret_bound
from taciturn.regret.tails import longest, probability


def risk_bound(problem: Problem, regret: float, horizon: int, failure: float, comparator: float | None = None) -> float:
    """Risk of the mean of x_1, …, x_T above that of a point x*, for all but a share of samples (Theorem 11).

    `(alpha/2)·‖x*‖² + r/T + (4/T)·sqrt(G²·r·s/alpha) + 16·G²·s/(alpha·T)`, where r is the regret,
    `s = ln(4·ln T/failure)`, and G the Lipschitz constant of the loss with its ridge (Kakade, Tewari, *On the
    Generalization Ability of Online Strongly Convex Programming Algorithms*, 2008, Theorem 2, with the theorem's
    `delta = failure/(4·ln T)`).

    Parameters
    ----------
    problem : Problem
        With a ridge, over a bounded domain.
    regret : float
        The online learner's, or a bound on it; x_t must have seen the first t - 1 examples only.
    horizon : int
        T, at least 3.
    failure : float
        How often the bound may fail.
    comparator : float, optional
        ‖x*‖, for any x* of the domain; by default the domain's radius. With 0 this bounds the excess of the risk
        *with* the ridge, over its minimum.

    Notes
    -----
    *Proof.* Let F be the risk with the ridge, z its minimiser, and `q_t = F(x_t) - F(z) - (f_t(x_t) - f_t(z))`, a
    martingale difference of size at most `2G·D`, D the diameter, and of variance at most
    `G²·‖x_t - z‖² ≤ (4G²/alpha)·(F(x_t) - F(z))`. Freedman's inequality, for every size of the total variance at once,
    says that but for a share `4·ln T·delta` of samples `Σ q_t ≤ max(4·sqrt(G²·S/alpha), 6G·D·sqrt(s))·sqrt(s)`,
    `S = Σ (F(x_t) - F(z))`. As `S ≤ r + Σ q_t`, solving for S gives all terms but the first, with
    `max(16·G²/alpha, 6G·D)` in the last; and `G ≥ alpha·D/2` makes that `16·G²/alpha`. F is convex, and
    `F(x*) ≥ F(z)`. ∎ The paper has `max(16·G²/alpha, 6)`: the theorem's `6B` for losses in [0, B], with B = 1, which it
    assumes at the origin only. The above shows that the second part never matters.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Problem
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=5, ridge=0.1)
    >>> round(risk_bound(problem, igd_regret_bound(problem, 100_000), 100_000, failure=0.05), 3)
    0.06
    """
    alpha, G, T = problem.ridge, problem.lipschitz_with_ridge, integer("horizon", horizon, least=3)
    if not (alpha > 0.0 and math.isfinite(G)):
        raise Unprovable(
            f"the bound needs a ridge and a bounded domain; here ridge is {alpha} on {problem.domain}. Give the "
            "problem both, e.g. ridge=0.01 and L2Ball(1.0)."
        )
    length = problem.radius if comparator is None else float_or_nan(comparator)
    if not 0.0 <= length <= problem.radius * (1.0 + 1e-9):
        raise InvalidInput(
            f"comparator must be the norm of a point of {problem.domain}, got {value_or_type(comparator)}. State a "
            f"number up to {problem.radius:.5g}, or leave it out."
        )
    regret, s = max(finite("regret", regret), 0.0), math.log(4.0 * math.log(T) / probability(failure))
    online = regret + 4.0 * math.sqrt(G**2 * regret * s / alpha) + 16.0 * G**2 * s / alpha
    return alpha / 2.0 * length**2 + online / T


def pol_utility_bound(private: Private, failure: float, comparator: float | None = None) -> float:
    """Risk of the point that `pol` releases above that of x*, for all but a share of samples and noise (Theorem 12).

    `L·(sigma·(sqrt(d) + sqrt(2·ln(2/failure))) + ‖C‖/T)` and `risk_bound` with IGD's regret and `failure/2`; L is
    without the ridge, sigma the standard deviation of the noise added. The theorem's own form, a sample size, has an
    unspecified constant (and lacks a factor `1/alpha` in its first term), so there is no function for it.

    *Proof.* The risk is L-Lipschitz and projection brings the noisy mean no further from the exact one than the noise,
    whose length is that but for a share failure/2 (`taciturn.regret.tails.longest`); and the mean of x_2, …, x_{T+1}
    lies within `‖x_{T+1} - x_1‖/T` of that of x_1, …, x_T. ∎

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pol
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=5, ridge=0.1)
    >>> round(pol_utility_bound(pol(problem, Privacy(1.0, 1e-6), horizon=100_000), failure=0.05), 3)
    0.078
    """
    learner, horizon = private.learner, private.timetable.horizon
    if (
        horizon is None
        or not isinstance(learner, Averaged)
        or type(learner.learner) is not IGD
        or (learner.first, len(private.timetable.rounds)) != (1, 1)
    ):
        raise Unprovable(
            "the bound is for the mean of all iterates of IGD, released once. Use pol(problem, privacy, horizon), with "
            'how="mean".'
        )
    problem, failure = learner.problem, probability(failure)
    risk = risk_bound(problem, igd_regret_bound(problem, horizon), horizon, failure / 2.0, comparator)
    noise = private.calibrated.noise_sd(1) * longest(problem.size, failure / 2.0)
    return risk + problem.lipschitz * (noise + problem.diameter / horizon)
