"""Learners, mechanisms and schedules to be run both ways, and the streams that they learn from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from taciturn import (
    BLT,
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    Absolute,
    BinaryTree,
    Box,
    ClassSums,
    DecayedBLT,
    Exponential,
    FadingIGD,
    Gaussian,
    Hinge,
    Huber,
    L2Ball,
    Linear,
    Logistic,
    MultiHinge,
    OneHot,
    Privacy,
    Private,
    Problem,
    Quantile,
    Simplex,
    Softmax,
    Squared,
    SquareRoot,
    WholeSpace,
    at,
    averaged,
    every,
    experts,
    geometric,
    private_sum,
)
from taciturn.calibration.blt_fit import fitted
from taciturn.kernel.learners.linear_bandit import LinearBandit, bandit_problem
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.prefix_sum import LastingSums

ROWS, DIMENSION = 40, 3
BUDGET = Privacy(2.0, 1e-6)

LOSSES = {
    "absolute": Absolute(),
    "hinge": Hinge(),
    "huber": Huber(0.7),
    "linear": Linear(),
    "logistic": Logistic(),
    "quantile": Quantile(0.9),
    "squared": Squared(),
}
SCORES = {"softmax": Softmax(3), "one hot": OneHot(3)}
KINKED_SCORES = {"multi hinge": MultiHinge(3)}
"""For learners that take any slope, and for none that solve."""

SETS = {"ball": L2Ball(0.4), "box": Box(-0.2, 0.3), "space": WholeSpace(), "simplex": Simplex(0.7)}
"""So small that most steps end at their border; the simplex has no number: most learners run the definition on it."""

SCHEDULES = {
    "every": (every(1), ROWS),
    "every 7": (every(7), ROWS),
    "geometric": (geometric(1.5), ROWS),
    "at": (at([5, 11, 33]), ROWS),
    "at, no horizon": (at([5, 6, ROWS]), None),
}
ENDLESS = {
    "every, endless": (every(1), None),
    "every 7, endless": (every(7), None),
    "geometric, endless": (geometric(1.5), None),
}


class Restarting(BLT):
    """A strategy of four rows that starts again, whether or not there is a horizon."""

    def coder(self, n):
        return RestartedCoder(BLTCoder(4, *fitted(4, self.buffers)))

    def calibrate(self, certificate, timetable, size, privacy, calibration):
        return LastingSums(self.coder(None), certificate, timetable, size, privacy)


STRATEGIES = {
    "blt": BLT(),
    "blt, one buffer": BLT(1),
    "tree": BinaryTree(),
    "plain tree": BinaryTree(refined=False),
    "root": SquareRoot(),
    "decayed": DecayedBLT(11, buffers=2),
    "restarted": Restarting(2),
}


def problem(loss: Any, domain: Any, **settings: Any) -> Problem:
    """With an intercept, and bounds that examples of `stream` exceed."""
    return Problem(loss, domain, DIMENSION, **({"label_bound": 0.8, "intercept": 0.5} | settings))


def _tail() -> dict[str, Any]:
    """Learners in which one example changes all later statistics."""
    made: dict[str, Any] = {}
    for loss, phi in (LOSSES | SCORES).items():
        for domain, form in SETS.items():
            ridged = problem(phi, form, ridge=0.1)
            if domain != "space" or loss not in ("squared", "one hot"):
                made[f"igd, {loss}, {domain}"] = IGD(ridged)
                if np.isfinite(ridged.smoothness):
                    made[f"giga, {loss}, {domain}"] = GIGA(ridged)
                    made[f"printed giga, {loss}, {domain}"] = GIGA(replace(ridged, ridge=0.7), "printed")
            if domain != "space":
                made[f"fading, {loss}, {domain}"] = FadingIGD(problem(phi, form), strength=0.3)
    made["fading, logistic, far box"] = FadingIGD(problem(Logistic(), Box(0.1, 0.6)), strength=0.3)
    inner = {"igd": made["igd, hinge, ball"], "igd on simplex": made["igd, logistic, simplex"]}
    inner |= {"giga": made["giga, logistic, box"], "fading": made["fading, huber, ball"]}
    inner["far"] = made["fading, logistic, far box"]
    inner |= {"igd on classes": made["igd, softmax, ball"], "giga on classes": made["giga, one hot, box"]}
    for name, learner in inner.items():
        for how in ("mean", "suffix", "last"):
            made[f"{how} of {name}"] = averaged(learner, how, horizon=ROWS)
    return made


def _leaders() -> dict[str, Any]:
    """Follow the leader."""
    made: dict[str, Any] = {}
    for loss in ("squared", "logistic", "hinge", "softmax"):
        for domain, form in SETS.items():
            if loss != "squared" or domain != "space":
                made[f"ftl, {loss}, {domain}"] = FTL(problem((LOSSES | SCORES)[loss], form, ridge=0.1))
    made["ftrl on whole losses"] = FTL(problem(Logistic(), SETS["ball"]), extra_ridge=2.0)
    made["mean of ftl"] = averaged(made["ftl, squared, ball"], horizon=ROWS)
    return made


def _entry() -> dict[str, Any]:
    """Learners of whose rows one example moves one."""
    made: dict[str, Any] = {"total": private_sum(DIMENSION, 1.0, BUDGET, ROWS).learner}
    for domain in ("ball", "box", "simplex"):
        form = SETS[domain]
        made[f"qftl, {domain}"] = QFTL(problem(Squared(), form, ridge=0.1))
        made[f"qftl, one hot, {domain}"] = QFTL(problem(OneHot(3), form), extra_ridge=0.5)
        for loss, phi in (LOSSES | SCORES | KINKED_SCORES).items():
            made[f"ftrl, {loss}, {domain}"] = FTRL(problem(phi, form, ridge=0.1 if loss < "l" else 0.0))
    made |= {"ftrl, margins met": FTRL(problem(MultiHinge(3), L2Ball(9.0)))}
    made |= {"ftrl, curved, ball": FTRL(problem(Hinge(), SETS["ball"]), curvature=0.3)}
    made |= {"ftrl, curved softmax, box": FTRL(problem(Softmax(3), SETS["box"], ridge=0.1), curvature=4.0)}
    made["class sums"] = ClassSums(problem(Hinge(), WholeSpace()))
    made["class sums, several"] = ClassSums(problem(MultiHinge(3), L2Ball(0.4)))
    made["linear bandit"] = LinearBandit(bandit_problem(DIMENSION, intercept=0.5), low=0.0, weight=0.5)
    made["linear bandit, own models"] = LinearBandit(bandit_problem(DIMENSION, arms=2), arms=2)
    return made | {"ftrl, logistic, space": FTRL(problem(Logistic(), SETS["space"]), scale=0.4)}


def _range() -> dict[str, Any]:
    """Learners whose statistic is the losses of candidates."""
    made: dict[str, Any] = {"experts": experts(DIMENSION)}
    for loss, phi in (LOSSES | SCORES | KINKED_SCORES).items():
        net = np.random.default_rng(3).uniform(-0.4, 0.4, (17, problem(phi, SETS["space"]).size))
        made[f"ewoo, {loss}"] = EWOO(problem(phi, L2Ball(3.0), ridge=0.1 if loss < "i" else 0.0), net)
    mixed = np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 0.4, 0.6]])
    made["ewoo on unit vectors"] = EWOO(problem(Huber(0.7), L2Ball(3.0), ridge=0.1), np.eye(DIMENSION + 1))
    made["ewoo, margins met"] = EWOO(problem(MultiHinge(3), WholeSpace()), 9.0 * net)
    return made | {"mixed experts": EWOO(experts(DIMENSION, 0.7).problem, mixed)}


TAIL, ENTRY, RANGE = _tail() | _leaders(), _entry(), _range()
ALL = TAIL | ENTRY | RANGE
ALONE = {"gaussian": Gaussian(), "exponential": Exponential()}

TOGETHER = [(learner, "gaussian") for learner in TAIL] + [(learner, "exponential") for learner in RANGE]
TOGETHER += [(learner, strategy) for learner in ENTRY if "ftrl" not in learner for strategy in STRATEGIES]
INSIDE = [(learner, strategy) for learner in ENTRY if "ftrl" in learner for strategy in STRATEGIES]
PAIRS = TOGETHER + INSIDE


def _has_no_pass(learner: str, mechanism: str) -> bool:
    """Iterates on other sets, of several classes, and means of leaders; the square root, trees under FTRL, races."""
    made = ALL[learner]
    inner = getattr(made, "learner", made)
    if isinstance(inner, FTL):
        return inner is not made
    if isinstance(inner, IGD | FadingIGD | GIGA) and inner.problem.outputs > 1:
        return True
    if mechanism in ("root", "exponential") or ("tree" in mechanism and isinstance(made, FTRL)):
        return True
    return "simplex" in learner and not isinstance(made, QFTL)


PLAIN = [pair for pair in PAIRS if _has_no_pass(*pair)]
"""Of every learner with every mechanism that takes it, those that run the definition."""


@cache
def private(learner: str, mechanism: str, schedule: str, compiled: bool = True) -> Private:
    """One of them all, by name."""
    when, horizon = (SCHEDULES | ENDLESS)[schedule]
    who, how = ALL[learner], (STRATEGIES | ALONE)[mechanism]
    return Private(who, how, when, BUDGET, horizon, seed=5, compiled=compiled)


def stream(problem: Problem, seed: int = 1, rows: int = ROWS, *, short: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Examples that are too long, just long enough, short, tiny or zero; labels beyond their bounds among them.

    Short ones are not changed by clipping, dense or sparse.
    """
    rng, bound = np.random.default_rng(seed), problem.feature_bound
    X = rng.normal(size=(rows, problem.dimension))
    lengths = rng.choice([0.1, 0.5, 0.9] if short else [0.0, 1e-9, 0.3, 1.0, 1.0 + 1e-9, 5.0], size=rows) * bound
    X *= (lengths / np.linalg.norm(X, axis=1))[:, None]
    kind = problem.loss.labels
    if kind == "class":
        return X, rng.integers(0, problem.outputs, rows).astype(float)
    if kind == "sign":
        return X, np.where(X @ rng.normal(size=problem.dimension) > 0.0, 1.0, -1.0) * rng.choice([1, 1, 1, -1], rows)
    return X, rng.choice([-3.0, -0.8, -0.1, 0.0, 0.5, 0.8, 3.0], rows)


def rounding_of(learner: Any, t: np.ndarray) -> np.ndarray:
    """How far apart rounding errors may put the rows of two runs on the same examples, as learners certify it."""
    t = np.asarray(t, dtype=float)
    if hasattr(learner, "first"):
        every_round = np.arange(1.0, np.max(t, initial=0.0) + 1.0)
        each = np.where(every_round >= learner.first, rounding_of(learner.learner, every_round), 0.0)
        own = 2.0 * t * 2.0**-53 * learner.learner.longest_iterate * np.sqrt(learner.statistic_size)
        return np.cumsum(each)[t.astype(int) - 1] / np.maximum(t - learner.first + 1.0, 1.0) + own
    if isinstance(learner, EWOO):
        return np.full_like(t, learner.step)
    if isinstance(learner, FTL):
        return 2.0 * (learner.distance(t) + learner._slack(t))
    if isinstance(learner, IGD):
        return learner.rounding(t) + learner._inexactness(t)
    return learner.rounding(t) if isinstance(learner, GIGA) else np.zeros_like(t)
