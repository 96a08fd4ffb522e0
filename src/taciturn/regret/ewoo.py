"""The bound for EWOO and private experts (Section 4.1, of which the paper states only the order)."""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.private import Private
from taciturn.errors import Unprovable
from taciturn.methods.ewoo import EWOO


def ewoo_regret_bound(private: Private) -> float:
    """Expected regret of `ewoo` against the best candidate: `ln N/lam + lam·W²·T/8 + first`, of order `sqrt(T)`.

    lam is the rate of the exponential mechanism, W the largest variation of one loss over the N candidates, and `first`
    what the data-free first point may lose against any candidate, its distance times the Lipschitz constant. For a
    release after every example, all at one rate.

    *Proof.* Draws with probability `∝ exp(-lam·L_i)` are the exponentially weighted forecaster. With
    `w_t = Σ_i exp(-lam·L_{t,i})`, `ln(w_T/w_0) ≥ -lam·min L_T - ln N`, and by Hoeffding's lemma each
    `ln(w_t/w_{t-1}) ≤ -lam·E f_t + lam²W²/8`; sum over t. The first round is not drawn but played at the first point. ∎
    The rate is `(eta - rounding)/c` with `K·eta²/8` the total
    budget, so it falls like `1/sqrt(T)` (`taciturn.Exponential`). Rounding to 2⁻³² is left out.

    >>> from taciturn import Privacy, ewoo, experts
    >>> ewoo_regret_bound(ewoo(experts(10), Privacy(10.0, 1e-6), horizon=10_000)) < 1_000.0
    True
    """
    learner, horizon = private.learner, private.timetable.horizon
    if not isinstance(learner, EWOO) or horizon is None or len(private.timetable.rounds) != horizon:
        raise Unprovable("the bound is for EWOO, released every round. State a horizon and use every(1).")
    rates = [math.pi / math.sqrt(6.0) / private.calibrated.noise_sd(k) for k in (1, horizon)]
    if not math.isclose(*rates):
        raise Unprovable("the bound is for one rate in all rounds. Give the stream a horizon.")
    lam, problem = rates[0], learner.problem
    away = float(np.max(np.linalg.norm(np.array(learner.points) - problem.first_point, axis=1)))
    first = problem.lipschitz_with_ridge * away
    return math.log(learner.statistic_size) / lam + lam * learner.variation**2 * horizon / 8.0 + first
