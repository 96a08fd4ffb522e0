"""Bounds for private FTRL: over a bounded set, whatever the stream; and for linear predictors, in any dimension."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import isotonic_regression

from taciturn.calibration.mechanisms import PrefixSum
from taciturn.core.private import Private
from taciturn.errors import Unprovable, not_negative
from taciturn.kernel.arrays import Array
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.problem.multiclass import ScoresLoss
from taciturn.kernel.problem.scalar_loss import ScalarLoss, Values
from taciturn.kernel.problem.sets import WholeSpace
from taciturn.regret.tails import length_moments, probability


def ftrl_regret_bound(private: Private, failure: float | None = None) -> float:
    """Expected regret of `pftrl`, from the noise of this stream; examples may depend on the releases.

    `Σ_k (n_k²·G²/(2·(a_k + alpha·n_k)) + c_k·phi(r_k)) + (mu/2)·(B² - ‖x_1‖²)`: the delay of the leader, its
    noise, and the regulariser. Point k is released at round t_k and played for n_k rounds, point 0 is
    x_1, and

    - `phi(r) = G·r - (alpha/2)·r²` up to its maximum, then constant: what a distance r costs in a round. G is the
      Lipschitz constant, ridge included.
    - `r_k = (m·s_k + B·|lam_k - mu_k|)/(alpha·t_k + max(lam_k, mu_k))`, at most the diameter; r_0 = 0. s_k is the
      standard deviation of the noise, m the mean length of a standard normal vector, lam_k FTRL's regulariser.
    - mu_k is the non-decreasing sequence nearest to lam_k: lam_k itself where noise never shrinks, as with BLT and
      SquareRoot. mu is the last, and mu_0 = mu_1.
    - `a_k = alpha·t_k + mu_k` and `c_k = n_k·a_k/(a_k + alpha·n_k)`.

    Parameters
    ----------
    private : Private
        FTRL on a prefix sum, with a horizon. Any schedule, but rare releases cost regret: with a geometric one the
        bound is linear in T, and so is the regret on some streams.
    failure : float, optional
        How often a run may exceed the bound; m is then longer by `sqrt(2·ln(1/failure))`.

    Notes
    -----
    *Proof.* Let g_t be the gradient of the data term at the point x_t of round t, `h_t(x) = g_t·x + (alpha/2)‖x‖²`, H_k
    the sum of h_t over the rounds of point k, and u any point of the set. The data term is convex, so the regret
    against u is at most the sum of all `h_t(x_t) - h_t(u)`.

    *The leader.* Let y_k minimise `F_k = H_0 + … + H_{k-1} + (mu_k/2)‖x‖²`, with `mu_K = mu_{K-1} = mu`; so y_0 = x_1,
    the shortest point. With `z = y_{k+1}`, as F_k is a_k-strongly convex and mu never falls,
    `F_{k+1}(z) - F_k(y_k) ≥ H_k(z) + (a_k/2)‖z - y_k‖² + ½(mu_{k+1} - mu_k)‖x_1‖²`. The left sides add up to
    `F_K(y_K) - F_0(y_0) ≤ Σ h_t(u) + (mu/2)‖u‖² - (mu_0/2)‖x_1‖²`. So the regret is at most
    `(mu/2)(‖u‖² - ‖x_1‖²)` and the sum of all `H_k(x) - H_k(z) - (a_k/2)‖z - y_k‖²`, x being point k.

    *One of these.* With `e = x - y_k`, `w = z - y_k` and v the gradient of H_k at x it is
    `v·(e - w) - (alpha·n_k/2)‖e - w‖² - (a_k/2)‖w‖²`, at most
    `‖v‖²/(2·(a_k + alpha·n_k)) + (c_k/n_k)·(v·e - (alpha·n_k/2)‖e‖²)`, its maximum over w; and `‖v‖ ≤ n_k·G`. It is
    also at most `n_k·phi(diameter)`, and so is the regret in those rounds: the bound takes what is less.

    *Noise.* x and y_k minimise functions that are `(alpha·t_k + lam_k)`- and `(alpha·t_k + mu_k)`-strongly convex and
    differ by `b·x + ½(lam_k - mu_k)‖x‖²`, b the noise of the sum; so ‖e‖ is at most r_k with ‖b‖ in place of `m·s_k`.
    Whatever the stream and the strategy, b is normal, of standard deviation s_k in each entry. For weights `w_k ≥ 0`
    the sum of all `w_k·‖b_k‖` has mean `m·Σ w_k·s_k` and, a Lipschitz function of standard normals with constant `Σ
    w_k·s_k`, exceeds it by `sqrt(2·ln(1/failure))` times that constant no more often than `failure`
    (`taciturn.regret.tails`). The bound is concave in the lengths ‖b_k‖ and never falls with them, so it lies below its
    tangent, such a sum. ∎

    Left out is rounding: of gradients, to 2⁻²⁶ of the longest, and of what is encoded, to 2⁻²⁵ standard deviations of
    its noise.

    *Order.* For a release after every example and noise that never shrinks, s at the end, the bound is at most
    `(G² + 2·G·s·sqrt(d))/(2·alpha)·(1 + ln T) + B·s·sqrt(d)` with a ridge, of order ln² T, as s is of order ln T; and
    `1.5·L·B·sqrt(T) + B·s·sqrt(d)·(2·sqrt(T) + 1)` without. By the same proof a constant regulariser,
    `sqrt(T·(L² + 2·L·s·sqrt(d)))/B`, would bring the latter down to `B·sqrt(T·(L² + 2·L·s·sqrt(d)))`.

    Examples
    --------
    >>> from taciturn import L2Ball, Privacy, Problem, Squared, pftrl
    >>> problem = Problem(Squared(), L2Ball(0.5), dimension=10, label_bound=1.0, ridge=1.0)
    >>> [round(ftrl_regret_bound(pftrl(problem, Privacy(1.0, 1e-6), horizon))) for horizon in (10_000, 100_000)]
    [733, 1381]
    """
    learner, mechanism, ends = parts(private)
    if not learner.bounded or learner.curvature > 0.0:
        raise Unprovable(
            f"the bound is for FTRL over a bounded set, without curvature, and this is over {learner.problem.domain} "
            f"with curvature {learner.curvature:g}. Use dimension_free_regret_bound for WholeSpace(), and curvature=0."
        )
    problem, starts = learner.problem, np.concatenate([[0.0], ends[:-1]])
    alpha, B, G, played = problem.ridge, problem.radius, problem.lipschitz_with_ridge, ends - starts
    furthest = problem.diameter
    steepest = min(furthest, G / alpha) if alpha > 0.0 else furthest

    def cost(r: Values) -> Values:
        r = np.minimum(r, steepest)
        return G * r - alpha / 2.0 * r * r

    anyway = float(ends[-1] * cost(furthest))
    if len(ends) == 1:
        return anyway
    sd, t = noise_sds(private, mechanism, len(ends))[:-1], starts[1:]
    lam = np.asarray(learner.regulariser(t, sd))
    mu = isotonic_regression(lam).x
    apart = (_length(problem.size, failure) * sd + B * np.abs(lam - mu)) / (alpha * t + np.maximum(lam, mu))
    moved, mu = np.append(0.0, apart), np.append(mu[0], mu)
    inertia = alpha * starts + mu
    late = (played * G) ** 2 / (2.0 * (inertia + alpha * played))
    noise = played * inertia / (inertia + alpha * played) * cost(moved)
    held_back = mu[-1] / 2.0 * (B**2 - float(problem.first_point @ problem.first_point))
    return min(float(np.minimum(late + noise, played * cost(furthest)).sum() + held_back), anyway)


def dimension_free_regret_bound(private: Private, length: float | None = None) -> float:
    """Expected regret of `pftrl` on the whole space against any u with `‖u‖ ≤ length`: for every dimension the same.

    For losses of linear scores, `f_t(x) = phi_t(v_t·x)` or of K such scores, whose gradients are at most L long, and
    *oblivious* streams: examples do not depend on the releases. It is
    `lam·length²/2 + Σ_k n_k·(n_k·L²/2 + m·L·s_k)/lam_k`: point k is released at round t_k and played for n_k rounds,
    s_k is the standard deviation of the noise of its sum, s_0 = 0, lam_k FTRL's regulariser, `lam_0 = lam_1`, lam the
    last, and m the mean length of a standard normal vector of K entries, `sqrt(2/pi)` for one score.

    The paper asks whether regret can depend on the dimension by less than its square root: for linear predictors it
    need not depend on it at all. Offline this is known (Jain, Thakurta, *(Near) dimension independent risk bounds for
    differentially private learning*, 2014; Song, Steinke, Thakkar, Thakurta, *Evading the curse of dimensionality in
    unconstrained private GLMs*, 2021); we know of no online statement.

    Parameters
    ----------
    private : Private
        FTRL over `WholeSpace()` without a ridge, on a prefix sum whose noise never shrinks, with a horizon.
    length : float, optional
        The learner's `scale` if None.

    Notes
    -----
    *Proof.* Let g_t be the gradient at the point x_t of round t, H_k the sum of g_t over the rounds of point k, and N_k
    the noise of its sum. The regret against u is at most `Σ g_t·(x_t - u)`, and point k is `y_k - N_k/lam_k` with
    `y_k = -(H_0 + … + H_{k-1})/lam_k`.

    *The leader.* y_k minimises `F_k(x) = (H_0 + … + H_{k-1})·x + (lam_k/2)‖x‖²`, and lam_k never falls, so
    `F_{k+1}(y_{k+1}) - F_k(y_k) ≥ H_k·y_{k+1} + (lam_k/2)‖y_{k+1} - y_k‖² ≥ H_k·y_k - ‖H_k‖²/(2·lam_k)`. The left sides
    add up to at most `Σ H_k·u + (lam/2)‖u‖²`. So `Σ H_k·(y_k - u) ≤ (lam/2)‖u‖² + Σ ‖H_k‖²/(2·lam_k)`, whatever the
    gradients are, and `‖H_k‖ ≤ n_k·L`.

    *Noise.* What remains is `-Σ_t g_t·N_k/lam_k`. With one score `g_t = phi_t'·v_t`: `|g_t·N_k| ≤ |phi_t'|·|v_t·N_k|`,
    where phi_t' may depend on the noise but is bounded, and v_t is independent of it: `v_t·N_k` is normal, of standard
    deviation `‖v_t‖·s_k`, and `|v_t·N_k|` has mean `sqrt(2/pi)·‖v_t‖·s_k`. With K scores `g_t·N_k` is the product of K
    slopes and K such normals, independent of each other. ∎

    Against an adaptive stream v_t can point where the noise does, and over a bounded set the projection mixes its
    coordinates: both bring back the square root of d. Left out is rounding, as in `ftrl_regret_bound`.

    *Order.* With a release after every example, `length = scale`, one score and s the standard deviation at the end,
    `1.5·length·sqrt(T·L·(L + 1.6·s))`, s of order ln T. By the same proof a constant regulariser,
    `sqrt(T·L·(L + 2·m·s))/length`, would make it `length·sqrt(T·L·(L + 2·m·s))`.

    Examples
    --------
    >>> from taciturn import Logistic, Privacy, Problem, WholeSpace, pftrl
    >>> for d in (10, 10_000):
    ...     private = pftrl(Problem(Logistic(), WholeSpace(), d), Privacy(1.0, 1e-6), horizon=10_000, scale=2.0)
    ...     print(round(dimension_free_regret_bound(private) / 10_000, 3))
    0.215
    0.215
    """
    learner, mechanism, ends = parts(private)
    problem = learner.problem
    of_scores = isinstance(problem.loss, ScalarLoss | ScoresLoss)
    if not (isinstance(problem.domain, WholeSpace) and of_scores and learner.scale and problem.ridge == 0.0):
        raise Unprovable(
            "the bound is for losses of linear scores over WholeSpace(), without a ridge. Use ftrl_regret_bound for "
            "others."
        )
    length = learner.scale if length is None else not_negative("length", length)
    L, starts = problem.lipschitz, np.concatenate([[0.0], ends[:-1]])
    played = ends - starts
    if len(ends) == 1:
        return float(ends[-1] * L * length)
    sd = noise_sds(private, mechanism, len(ends))[:-1]
    lam = np.asarray(learner.regulariser(starts[1:], sd))
    if (np.diff(lam) < 0.0).any():
        raise Unprovable(
            f"the noise of {mechanism!r} shrinks now and then, and the bound is for noise that never does. Use BLT()."
        )
    sd, lam = np.append(0.0, sd), np.append(lam[0], lam)
    mean = length_moments(problem.outputs)[0]
    costs = played * (played * L**2 / 2.0 + mean * L * sd) / lam
    return float(costs.sum() + lam[-1] * length**2 / 2.0)


def parts(private: Private) -> tuple[FTRL, PrefixSum, Array]:
    """Learner, mechanism and published rounds; rejects other streams."""
    learner, mechanism = private.learner, private.mechanism
    if not (isinstance(learner, FTRL) and isinstance(mechanism, PrefixSum)) or private.timetable.horizon is None:
        raise Unprovable(
            "the bound is for FTRL on a prefix sum with a horizon. Use pftrl(problem, privacy, horizon), and state "
            "the horizon."
        )
    if learner.center is not None:
        raise Unprovable("the bound is for a stream that starts at 0, and this one has a center. Leave it out.")
    return learner, mechanism, private.timetable.rounds.astype(np.float64)


def noise_sds(private: Private, mechanism: PrefixSum, count: int) -> Array:
    """`private.calibrated.noise_sd(k)` for k = 1, …, count, as one array."""
    shape = mechanism.errors(count)
    return np.asarray(shape * (private.calibrated.noise_sd(count) / shape[-1]))


def _length(size: int, failure: float | None) -> float:
    """How long standard normal vectors are on average or, in any fixed mix, but for a share `failure` of draws."""
    beyond = 0.0 if failure is None else math.sqrt(2.0 * math.log(1.0 / probability(failure)))
    return length_moments(size)[0] + beyond
