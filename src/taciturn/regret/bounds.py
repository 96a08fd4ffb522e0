"""Bounds on regret, from public settings alone: of exact learners, and of what noise adds (Sections 3.2 to 3.4).

Where the paper's bound and the correct one differ there are two functions: `pocp_` and `pgiga_regret_bound` are the
theorems as printed, the others are proven in their docstrings. T is the horizon, D a distance, L and G are Lipschitz
constants, alpha is the ridge.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.private import Private
from taciturn.errors import Unprovable, integer, not_negative
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.learners.igd import FadingIGD
from taciturn.kernel.learners.iterate import IterateLearner
from taciturn.kernel.problem.problem import Problem
from taciturn.methods.giga import GIGA, Step
from taciturn.regret.tails import length_moments, probability


def igd_regret_bound(problem: Problem, horizon: int) -> float:
    """Regret of exact IGD: `(alpha/2)·D² + L²/(2·alpha)·(1 + ln T)`, L with the ridge.

    D is the diameter or, where that is less, how far from x_1 the best point can lie.

    *Proof.* With `eta = 1/(alpha·t)`, strong convexity of the implicit objective at x* and `f(x_t) - f(x_{t+1}) ≤ L·r`,
    `r = ‖x_t - x_{t+1}‖`, give `f_t(x_t) - f_t(x*) ≤ (alpha·t/2)·D_t² - (alpha·(t+1)/2)·D_{t+1}² + L²/(2·alpha·t)`,
    where `D_t = ‖x_t - x*‖`; sum over t. ∎

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> igd_regret_bound(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=1.0), 1000) < 14.0
    True
    """
    alpha = _ridge(problem)
    reach, steepest, _ = _scales(problem)
    return alpha / 2.0 * reach**2 + steepest**2 / (2.0 * alpha) * (1.0 + math.log(integer("horizon", horizon)))


def fading_regret_bound(problem: Problem, strength: float, horizon: int) -> float:
    """Regret of exact `FadingIGD`: `½·D²·(A_1 + Σ alpha_t) + Σ (L + alpha_t·D)²/(2·A_t)`, of order `T^(3/4)`.

    *Proof.* As for IGD, on the perturbed losses, whose Lipschitz constant is `L + alpha_t·D`:
    `f_t(x_t) - f_t(x*) ≤ (A_t/2)·D_t² - ((A_t + alpha_t)/2)·D_{t+1}² + (L + alpha_t·D)²/(2·A_t)`, which telescopes, as
    `A_{t+1} ≤ A_t + alpha_t`; and the perturbation costs x* at most `(alpha_t/2)·D²` a round. ∎

    >>> from taciturn import Hinge, L2Ball, Problem
    >>> problem = Problem(Hinge(), L2Ball(1.0), dimension=2)
    >>> 15.0 < fading_regret_bound(problem, 1.0, 100_000) / fading_regret_bound(problem, 1.0, 2_500) < 16.0
    True
    """
    strength = FadingIGD(problem, strength).strength  # rejects problems that it cannot learn
    diameter, t = problem.diameter, np.arange(1.0, integer("horizon", horizon) + 1.0)
    weights, totals = strength * t**-0.25, 4.0 / 3.0 * strength * t**0.75
    steps = (problem.lipschitz + weights * diameter) ** 2 / (2.0 * totals)
    return float(diameter**2 / 2.0 * (totals[0] + weights.sum()) + steps.sum())


def giga_regret_bound(problem: Problem, horizon: int, step: Step = "contracting") -> float:
    """Regret of exact GIGA: `(alpha·t0/2)·D² + G²/(2·alpha)·Σ_{t≤T} 1/(t + t0)`.

    With the printed step, `(t_q - 1)·G·D + (G²/alpha)·Σ_{t_q≤t≤T} 1/t`. G is the longest gradient with the ridge, and D
    the diameter or, where that is less, `L/alpha`: no further lies x* from x_1, the minimisers of the ridge with and
    without an L-Lipschitz data term.

    *Proof.* With `D_t = ‖x_t - x*‖` and g the gradient, projection gives
    `D_{t+1}² ≤ D_t² - 2·eta·g·(x_t - x*) + eta²·G²`, and strong convexity
    `f_t(x_t) - f_t(x*) ≤ g·(x_t - x*) - (alpha/2)·D_t²`. Together, for `eta = 1/(alpha·(t + t0))`, a round costs at
    most `(alpha/2)·((t + t0 - 1)·D_t² - (t + t0)·D_{t+1}²) + G²/(2·alpha·(t + t0))`, which telescopes. For
    `eta = 2/(alpha·t)` it is `(alpha/4)·((t - 2)·D_t² - t·D_{t+1}²) + G²/(alpha·t)`, whose first parts add up, from t_q
    on, to at most `(alpha/4)·(t_q - 2)·D_1²`; and each of the `t_q - 1` rounds before costs at most
    `G·D_1 - (alpha/2)·D_1²`, which leaves that to spare. ∎

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.25)
    >>> round(giga_regret_bound(problem, 1000), 1), round(giga_regret_bound(problem, 1000, "printed"), 1)
    (13.5, 34.1)
    """
    learner = GIGA(problem, step)
    horizon = integer("horizon", horizon)
    alpha = problem.ridge
    reach, steepest, _ = _scales(problem)
    t = np.arange(1.0, horizon + 1.0)
    if step == "printed":
        waits = min(learner.first_move - 1, horizon)
        return float(waits * steepest * reach + steepest**2 / alpha * np.sum(1.0 / t[waits:]))
    steps = np.sum(1.0 / (t + learner.delay))
    return float(alpha * learner.delay / 2.0 * reach**2 + steepest**2 / (2.0 * alpha) * steps)


def leader_regret_bound(problem: Problem, horizon: int, extra_ridge: float = 0.0) -> float:
    """Regret of follow-the-leader over full losses: `(G²/2)·Σ_{t≤T} 1/(alpha·t + lam0) + (lam0/2)·(B² - ‖x_1‖²)`.

    lam0 is the extra ridge, G the longest gradient of `f_t`, its own ridge included, and B the radius of the domain or,
    where that is less, `‖x_1‖ + L/alpha`, which neither a leader nor x* exceeds.

    *Proof* (Shalev-Shwartz, Kakade, *Mind the Duality Gap: Logarithmic regret algorithms for online optimization*,
    2008, by another way). Let `F_t = (lam0/2)‖x‖² + Σ_{i≤t} f_i`, so x_{t+1} minimises F_t, and x_1 = Proj(0)
    minimises F_0, also if lam0 = 0. As `F_t = F_{t-1} + f_t`, the sum of all `F_t(x_t) - F_t(x_{t+1})` telescopes to
    `Σ f_t(x_t) + F_0(x_1) - F_T(x_{T+1})`, and `F_T(x_{T+1}) ≤ Σ f_t(x*) + (lam0/2)‖x*‖²`. Each term is at most
    `G²/(2·(alpha·t + lam0))`: F_t is that strongly convex and, F_{t-1} being least at x_t, one of its subgradients
    there points into no direction of the set; so `F_t(z) ≥ F_t(x_t) + g·(z - x_t) + ½(alpha·t + lam0)·‖z - x_t‖²`, g a
    gradient of f_t. ∎

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> round(leader_regret_bound(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.25), 1000), 1)
    14.4
    >>> round(leader_regret_bound(Problem(Logistic(), L2Ball(1.0), dimension=2), 10_000, extra_ridge=70.0), 1)
    73.2
    """
    extra_ridge = not_negative("extra_ridge", extra_ridge)
    if not problem.ridge + extra_ridge > 0.0:
        raise Unprovable("without strong convexity the leader may jump. Give the problem a ridge, or an extra_ridge.")
    (_, steepest, furthest), first = _scales(problem), problem.first_point
    inertia = problem.ridge * np.arange(1.0, integer("horizon", horizon) + 1.0) + extra_ridge
    pulled = extra_ridge / 2.0 * (furthest**2 - float(first @ first))
    return float(steepest**2 / 2.0 * np.sum(1.0 / inertia)) + pulled


def pocp_regret_bound(
    problem: Problem, sensitivity: float, privacy: Privacy, horizon: int, failure: float | None = None
) -> float:
    """What Theorem 2 of the paper adds to the exact learner's regret, given `S(t) ≤ lam/t`.

    `2·sqrt(d)·L·(lam + ‖C‖)·sqrt(T)·ln²(T/delta)/sqrt(epsilon)`, in the paper's own parameters (epsilon, delta), for
    the expected regret; with a `failure` gamma it is divided by `sqrt(gamma)`, for all but that share of runs, as in
    Corollary 1.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=1.0)
    >>> expected = pocp_regret_bound(problem, 1.1, Privacy(1.0, 1e-6), 1000)
    >>> round(pocp_regret_bound(problem, 1.1, Privacy(1.0, 1e-6), 1000, failure=0.01) / expected, 12)
    10.0
    """
    size = problem.lipschitz_with_ridge * (not_negative("sensitivity", sensitivity) + problem.diameter)
    growth = _growth(problem, privacy, horizon)
    return 2.0 * size * growth / math.sqrt(1.0 if failure is None else probability(failure))


def noise_regret_bound(private: Private, failure: float | None = None) -> float:
    """What the noise of this stream can add to the regret: `L·(‖C‖ + Σ_t E‖b_t‖)`, from the proof of Theorem 2.

    `E‖b_t‖ = m·sigma_t`, with m the mean length of a standard normal vector, a little below `sqrt(d)`. That is for the
    expected regret; with a `failure` gamma, as in Corollary 1, all but that share of runs stay below
    `L·(‖C‖ + Σ_t E‖b_t‖ + sqrt(Σ_t Var‖b_t‖/gamma))`.

    *Proof.* f_t is L-Lipschitz, projection brings a noisy iterate no further from the exact one than `‖b_t‖`, and
    lengths of independent noise obey Chebyshev's inequality. ‖C‖ is the paper's price of a random first point; here
    that point is the learner's own, and ‖C‖ covers the rounding of statistics instead. ∎

    Only for a release after every example, as in the theorem.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pigd
    >>> private = pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=1.0), Privacy(5.0, 1e-6), horizon=1000)
    >>> round(noise_regret_bound(private)), round(noise_regret_bound(private, failure=0.01))
    (323, 419)
    """
    problem, horizon = private.learner.problem, private.timetable.horizon
    if not isinstance(private.learner, IterateLearner) or horizon is None or len(private.timetable.rounds) != horizon:
        raise Unprovable(
            "the bound is for learners of iterates, released every round. State a horizon and use every(1)."
        )
    sd = [private.calibrated.noise_sd(k) for k in range(1, horizon)]
    mean, variance = length_moments(problem.size)
    spread = mean * math.fsum(sd)
    if failure is not None:
        spread += math.sqrt(variance * math.fsum(s * s for s in sd) / probability(failure))
    return problem.lipschitz_with_ridge * (problem.diameter + spread)


def pgiga_regret_bound(problem: Problem, privacy: Privacy, horizon: int) -> float:
    """Expected regret of PGIGA as Theorem 6 prints it, in the paper's own parameters (epsilon, delta).

    `4·sqrt(d)·(G/alpha + ‖C‖)·G·ln²(T/delta)·sqrt(T/epsilon) + (2G²/alpha)·(1 + ln T) + 2·L_G²·G·‖C‖/alpha²`. The first
    term is Theorem 2 for `lam = 2G/alpha`, half of what is true. Proven are `giga_regret_bound` for the others, and
    for the first `noise_regret_bound`.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.25)
    >>> f"{pgiga_regret_bound(problem, Privacy(1.0, 1e-6), 1000):.2g}"
    '4.5e+05'
    """
    GIGA(problem)  # rejects problems that it cannot learn
    alpha, diameter, steepest = _ridge(problem), problem.diameter, problem.lipschitz_with_ridge
    noise = 4.0 * (steepest / alpha + diameter) * steepest * _growth(problem, privacy, horizon)
    exact = 2.0 * steepest**2 / alpha * (1.0 + math.log(integer("horizon", horizon)))
    return noise + exact + 2.0 * problem.smoothness**2 * steepest * diameter / alpha**2


def _scales(problem: Problem) -> tuple[float, float, float]:
    """How far from x_1 the best point can lie, the longest gradient there and on the way, and the longest such point.

    x_1 minimises the ridge over the set. Iterates and the best point do not lie further from it than `L/alpha`
    (`IterateLearner.longest_iterate`; for minimisers, strong convexity).
    """
    pull = problem.lipschitz / problem.ridge if problem.ridge > 0.0 else math.inf
    reach = min(problem.diameter, pull)
    if not math.isfinite(problem.lipschitz + reach):
        raise Unprovable(
            f"the gradients of {type(problem.loss).__name__} over {problem.domain} have no bound, nor has the "
            "regret. Bound the domain, e.g. L2Ball(1.0)."
        )
    furthest = min(problem.radius, float(np.linalg.norm(problem.first_point)) + pull)
    return reach, problem.lipschitz + problem.ridge * furthest, furthest


def _ridge(problem: Problem) -> float:
    if not problem.ridge > 0.0:
        raise Unprovable("the bound is for strongly convex losses. Give the problem a ridge, e.g. 0.01.")
    return problem.ridge


def _growth(problem: Problem, privacy: Privacy, horizon: int) -> float:
    """`sqrt(d·T/epsilon)·ln²(T/delta)`."""
    horizon = integer("horizon", horizon)
    return math.sqrt(problem.size * horizon / privacy.epsilon) * math.log(horizon / privacy.delta) ** 2
