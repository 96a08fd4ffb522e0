"""The paper's algorithms, and class sums, by name; each is one expression."""

from __future__ import annotations

import math
from typing import Any, Literal

from taciturn.calibration.mechanisms import BLT, DecayedBLT, Gaussian, PrefixSum, Shape
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, expect, integer
from taciturn.kernel.accounting.gdp import Privacy, mu_of
from taciturn.kernel.accounting.unit import EXAMPLE, Unit
from taciturn.kernel.learners.class_sums import ClassSums
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.learners.igd import IGD
from taciturn.kernel.learners.linear_bandit import LinearBandit, bandit_problem
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.problem.losses import Nearness
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import WholeSpace
from taciturn.kernel.stream.protocols import Calibration, Learner
from taciturn.kernel.stream.schedule import Schedule, Timetable, at, every, geometric, releases_in_window
from taciturn.methods.averaged import How, averaged
from taciturn.methods.ewoo import EWOO
from taciturn.methods.exponential import Exponential
from taciturn.methods.ftl import FTL
from taciturn.methods.giga import GIGA, Step


def pocp(
    learner: Learner,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    schedule: Schedule | None = None,
    shape: Shape = "S^(2/3)",
    calibration: Calibration = "exact",
    allow_broken: bool = False,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private online convex programming (Algorithm 1): any learner with a tail certificate, made private.

    Parameters
    ----------
    learner : Learner
        Certifies how far one example moves its iterates.
    privacy : Privacy
        The total budget of everything published.
    horizon : int, optional
        Number of examples; without it the stream may go on as long as its sampler's share of the budget lasts, with
        more noise: five to nine times as much at the last of 1e3 to 1e6 releases, much the same with a geometric
        schedule.
    schedule : Schedule
        When to publish: `every(1)`, the paper's, by default. Fewer releases need less noise: `geometric(1.1)`.
    shape : {"S^(2/3)", "S", "S^(1/2)"}
        How the budget is spread over the releases (`taciturn.Gaussian`); with the paper's calibrations it has no
        effect.
    calibration, allow_broken, seed, unit
        As in `taciturn.Private`.

    Examples
    --------
    >>> from taciturn import IGD, L2Ball, Logistic, Privacy, Problem, pocp
    >>> private = pocp(IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)), Privacy(1, 1e-6), horizon=1000)
    >>> print(private.guarantee)  # doctest: +ELLIPSIS
    The whole published sequence is (1, 1e-06)-differentially private: ...
    """
    schedule = schedule or every(1)
    return Private(learner, Gaussian(shape), schedule, privacy, horizon, calibration, allow_broken, seed, unit=unit)


def pigd(problem: Problem, privacy: Privacy, horizon: int | None = None, **settings: Any) -> Private:
    """Private implicit gradient descent (Algorithm 2); settings as for `pocp`.

    >>> from taciturn import Hinge, L2Ball, Privacy, Problem, pigd
    >>> problem = Problem(Hinge(), L2Ball(1.0), dimension=1, ridge=0.5)
    >>> pigd(problem, Privacy(1, 1e-6), horizon=1000).learner.certificate
    l2/tail, 4/(t+1)
    """
    return pocp(IGD(problem), privacy, horizon, **settings)


def pgiga(
    problem: Problem,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    step: Step | None = None,
    **settings: Any,
) -> Private:
    """Private GIGA (Algorithm 3), for smooth losses; settings as for `pocp`.

    The step contracts from the first round; with the paper's calibrations it is the printed one, unless you say
    otherwise.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pgiga
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)
    >>> pgiga(problem, Privacy(1, 1e-6), horizon=1000).learner.certificate
    l2/tail, 10.991/(t+1.25)
    """
    default: Step = "contracting" if settings.get("calibration", "exact") == "exact" else "printed"
    return pocp(GIGA(problem, step or default), privacy, horizon, **settings)


def pol(
    problem: Problem,
    privacy: Privacy,
    horizon: int,
    *,
    how: How = "mean",
    calibration: Calibration = "exact",
    allow_broken: bool = False,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private offline learning (Algorithm 6): IGD over all the data, its averaged iterate released once.

    Any loss and set that IGD takes will do: the hinge loss and constraints too. The mean is the paper's; one example
    moves the last iterate `ln T` times less, so `how="last"` needs that much less noise and is mostly better.

    >>> from taciturn import Hinge, Privacy, Problem, Simplex, pol
    >>> private = pol(Problem(Hinge(), Simplex(), dimension=2, ridge=0.1), Privacy(1, 1e-6), horizon=3)
    >>> _, (model,) = private.run(private.start(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> Simplex().contains(model.point)
    True
    """
    return pocp(
        averaged(IGD(problem), how, horizon=horizon),
        privacy,
        horizon,
        schedule=at([integer("horizon", horizon)]),
        calibration=calibration,
        allow_broken=allow_broken,
        seed=seed,
        unit=unit,
    )


def output_perturbation(
    problem: Problem, privacy: Privacy, horizon: int, *, seed: int | None = None, unit: Unit = EXAMPLE
) -> Private:
    """The leader of all examples, released once (Chaudhuri, Monteleoni, Sarwate, 2011): POCP over FTL at one round.

    Unlike its authors' it takes any loss and set that `FTL` does, and Gaussian noise for an exact sensitivity.

    >>> from taciturn import Logistic, Privacy, Problem, WholeSpace, output_perturbation
    >>> problem = Problem(Logistic(), WholeSpace(), dimension=2, ridge=0.1)
    >>> output_perturbation(problem, Privacy(1, 1e-6), horizon=3).timetable.rounds
    array([3])
    """
    return pocp(FTL(problem), privacy, horizon, schedule=at([integer("horizon", horizon)]), seed=seed, unit=unit)


def ewoo(
    learner: EWOO,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    schedule: Schedule | None = None,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private exponentially weighted online optimisation (Section 4.1), and private experts.

    >>> from taciturn import EWOO, Box, Absolute, Privacy, Problem, ewoo
    >>> problem = Problem(Absolute(), Box(-1.0, 1.0), dimension=1, label_bound=1.0)
    >>> private = ewoo(EWOO(problem, [[-1.0], [0.0], [1.0]]), Privacy(1, 1e-6), horizon=2)
    >>> float(private.fit([[1.0], [0.5]], [1.0, 0.5]).point[0]) in (-1.0, 0.0, 1.0)
    True
    """
    expect("learner", learner, isinstance(learner, EWOO), "EWOO(problem, grid(domain, size, per_axis)) or experts(10)")
    return Private(learner, Exponential(), schedule or every(1), privacy, horizon, seed=seed, unit=unit)


def private_sum(
    dimension: int,
    bound: float,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    strategy: PrefixSum | None = None,
    schedule: Schedule | None = None,
    forget: int | None = None,
    neighbours: Literal["replace", "zero-out"] = "replace",
    on_bad: Literal["raise", "zero"] = "raise",
    calibration: Calibration = "exact",
    allow_broken: bool = False,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """A private running sum of vectors (Algorithm 5, corrected); vectors are clipped to norm `bound`.

    Parameters
    ----------
    dimension, bound : number
        Entries of a vector, and its largest norm.
    privacy, horizon, schedule, calibration, allow_broken, seed, unit
        As in `taciturn.Private`.
    strategy : PrefixSum, optional
        How: `BLT()` by default, `BLT(buffers=8)` without a horizon; the paper's calibrations need
        `BinaryTree(refined=False)`.
    forget : int, optional
        A window in examples, after which a row counts less by a factor of e: `DecayedBLT(forget)`, whose noise stays
        constant in a stream that never ends.
    neighbours, on_bad
        As in `taciturn.Problem`.

    Examples
    --------
    >>> from taciturn import Privacy, private_sum
    >>> sums = private_sum(2, 1.0, Privacy(1.0, 1e-6), horizon=100)
    >>> state, releases = sums.run(sums.start(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> [release.t for release in releases], releases[0].point.shape
    ([1, 2, 3], (2,))
    """
    problem = Problem(Nearness(), WholeSpace(), dimension, bound, neighbours=neighbours, on_bad=on_bad)
    learner = VectorSum(problem)
    mechanism = _strategy(strategy, horizon, schedule, forget)
    schedule = schedule or every(1)
    return Private(learner, mechanism, schedule, privacy, horizon, calibration, allow_broken, seed, unit=unit)


def pqftl(
    problem: Problem,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    strategy: PrefixSum | None = None,
    schedule: Schedule | None = None,
    forget: int | None = None,
    extra_ridge: float = 0.0,
    weight: float | None = None,
    calibration: Calibration = "exact",
    allow_broken: bool = False,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private follow-the-leader for squared loss (Algorithm 4, repaired): `QFTL` on private running sums.

    >>> from taciturn import L2Ball, Privacy, Problem, Squared, pqftl
    >>> problem = Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.0, ridge=1.0)
    >>> pqftl(problem, Privacy(1.0, 1e-6), horizon=3).fit([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1.0, -0.5, 0.2]).t
    3
    """
    learner = QFTL(problem, extra_ridge=extra_ridge, weight=weight)
    mechanism = _strategy(strategy, horizon, schedule, forget)
    schedule = schedule or every(1)
    return Private(learner, mechanism, schedule, privacy, horizon, calibration, allow_broken, seed, unit=unit)


def pftrl(
    problem: Problem,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    strategy: PrefixSum | None = None,
    schedule: Schedule | None = None,
    forget: int | None = None,
    curvature: float = 0.0,
    scale: float | None = None,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private follow-the-regularised-leader, for any convex loss over a bounded set: `FTRL` on private running sums.

    `curvature` and `scale` are those of `FTRL`; with a scale, losses of bounded slope need no bounded set.

    >>> from taciturn import Hinge, L2Ball, Privacy, Problem, pftrl
    >>> private = pftrl(Problem(Hinge(), L2Ball(1.0), dimension=2), Privacy(1.0, 1e-6))
    >>> private.fit([[0.6, 0.8], [1.0, 0.0]], [1, -1]).t
    2
    """
    mechanism = _strategy(strategy, horizon, schedule, forget)
    learner = FTRL(problem, curvature=curvature, scale=scale)
    return Private(learner, mechanism, schedule or every(1), privacy, horizon, seed=seed, unit=unit)


def class_sums(
    problem: Problem,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    strategy: PrefixSum | None = None,
    schedule: Schedule | None = None,
    forget: int | None = None,
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private naive Bayes, for sparse rows of very many features: `ClassSums` on private running sums.

    >>> from taciturn import Hinge, Privacy, Problem, WholeSpace, at, class_sums
    >>> problem = Problem(Hinge(), WholeSpace(), dimension=2, intercept=0.25)
    >>> private = class_sums(problem, Privacy(1.0, 1e-6), schedule=at([3]))
    >>> private.fit([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1]).noisy.shape
    (6,)
    """
    mechanism = _strategy(strategy, horizon, schedule, forget)
    return Private(ClassSums(problem), mechanism, schedule or every(1), privacy, horizon, seed=seed, unit=unit)


def linear_bandit(
    dimension: int,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    arms: int = 1,
    low: float = -1.0,
    high: float = 1.0,
    feature_bound: float = 1.0,
    intercept: float = 0.0,
    weight: float = 1.0,
    ridge: float = 1.0,
    strategy: PrefixSum | None = None,
    schedule: Schedule | None = None,
    forget: int | None = None,
    neighbours: Literal["replace", "zero-out"] = "replace",
    on_bad: Literal["raise", "zero"] = "zero",
    seed: int | None = None,
    unit: Unit = EXAMPLE,
) -> Private:
    """Private linear contextual bandit: the models of `LinearBandit` on private running sums.

    Rounds are decisions. A row is the context of the arm that was played, and its label is made by
    `learner.labels(rewards, arms)`; how arms are chosen from a release is in `taciturn.bandits`.

    The schedule is `geometric(1.1)`, by default, from round `2·d·K·rows/mu` on, or a twentieth of the horizon if that
    is less: for d features, K models, as many rows of a user as count, and a budget of mu. An earlier model is little
    but noise, and every release costs. Ratios of 1.2 to 1.4 have less regret at small budgets where contexts explore,
    and much more where they do not: one wrong arm is then played for a sixth of the stream. With `forget` there are
    fifty releases in a window.

    >>> from taciturn import Privacy, linear_bandit
    >>> private = linear_bandit(2, Privacy(1.0, 1e-6), horizon=100)
    >>> y = private.learner.labels([1.0, -1.0, 1.0, 0.5, 1.0])
    >>> state, releases = private.run(private.start(), [[0.6, 0.8], [1.0, 0.0]] * 2 + [[0.0, 1.0]], y)
    >>> releases.rounds, releases.points.shape  # V, packed, and theta
    (array([5]), (1, 5))
    """
    dimension, arms = integer("dimension", dimension), integer("arms", arms)
    horizon = None if horizon is None else integer("horizon", horizon)
    if schedule is None and forget is not None:
        schedule = releases_in_window(forget)
    if schedule is None:
        rows = unit.participation.rows
        start = math.ceil(2.0 * dimension * arms * rows / mu_of(privacy.epsilon, privacy.delta))
        schedule = geometric(1.1, max(1, min(start, 2**20 if horizon is None else horizon // 20)))
    problem = bandit_problem(dimension, arms, feature_bound, intercept, neighbours, on_bad)
    mechanism = _strategy(strategy, horizon, schedule, forget)
    learner = LinearBandit(problem, arms, low, high, weight, ridge)
    return Private(learner, mechanism, schedule, privacy, horizon, seed=seed, unit=unit)


def _strategy(
    stated: PrefixSum | None, horizon: int | None, schedule: Schedule | None, forget: int | None
) -> PrefixSum:
    """The stated one, or by rule: more buffers where the number of releases is not known.

    One strategy then serves 2²³ rounds; it starts again after them, or the stream ends (`Private.last_round`).
    """
    if stated is not None and forget is not None:
        raise InvalidInput("forget= chooses the strategy. Leave strategy= out, or state strategy=DecayedBLT(...).")
    if forget is not None:
        return DecayedBLT(forget)
    if stated is not None:
        return stated
    return BLT(buffers=8) if Timetable(schedule or every(1), horizon).horizon is None else BLT()
