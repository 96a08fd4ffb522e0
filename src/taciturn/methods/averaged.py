"""Averages of iterates, to be released once: offline learning (Section 4.2 and Algorithm 6 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np

from taciturn.calibration.paper import PaperNoise, Reading, pol_noise
from taciturn.errors import Unprovable, integer, one_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.contributions import Unverified
from taciturn.kernel.learners.igd_pass import Steps, steps_of
from taciturn.kernel.learners.iterate import IterateLearner
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets_pass import project_batch
from taciturn.kernel.stream.passes import register
from taciturn.kernel.stream.protocols import Certificate, Learner
from taciturn.methods.readings import IN_THE_PAPER

How = Literal["mean", "last", "suffix"]


@dataclass(frozen=True)
class Averaged(Learner):
    """The mean of an iterate learner's iterates after examples `first`, …, t; `averaged` makes one.

    **Certificate.** `Σ_{i=first..t} S(i)/(t - first + 1)`, with S the learner's own.

    *Proof.* One example moves the iterate after i examples by at most S(i), and not at all if it comes later; the
    triangle inequality does the rest. ∎ For IGD and `first = 1` this is `Gd·(H_{t+1} - 1)/(alpha·t)`, H the harmonic
    numbers. (The paper's Theorem 10 uses `2L·ln T/T`, without `1/alpha`, which is false.)

    Examples
    --------
    >>> from taciturn import IGD, L2Ball, Hinge, Problem, averaged
    >>> learner = IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5))
    >>> averaged(learner, "mean", horizon=1000).certificate
    l2/tail, mean of 4/(t+1) from 1 to t
    """

    learner: Any  # of iterates, perhaps in `Unverified`
    first: int = 1

    def __post_init__(self) -> None:
        iterates = self.learner.learner if isinstance(self.learner, Unverified) else self.learner
        if not isinstance(iterates, IterateLearner) or iterates.certificate.kind != "l2/tail":
            raise Unprovable(
                f"averages are certified for iterates, and {type(iterates).__name__} has none. Use averaged() on "
                "IGD, GIGA or FTL, once; or average what was released, which costs no privacy (taciturn.averages)."
            )
        object.__setattr__(self, "first", integer("first", self.first))

    @property
    def problem(self) -> Problem:
        """The learner's."""
        made: Problem = self.learner.problem
        return made

    def on_problem(self, problem: Problem) -> Self:
        """The same mean, of the learner on another problem."""
        return replace(self, learner=self.learner.on_problem(problem))

    @property
    def statistic_size(self) -> int:
        """The learner's."""
        return int(self.learner.statistic_size)

    @cached_property
    def certificate(self) -> Certificate:
        """The mean of the learner's bounds."""
        inner = self.learner.certificate
        formula = f"mean of {inner.formula} from {self.first} to t"
        lemma = f"proof in taciturn.methods.averaged; {inner.lemma}"
        moved_by = "one example moves every later mean"
        basis: dict[str, Any] = {"rests_on": inner.rests_on, "by": inner.by}
        return Certificate("l2", "tail", formula, self._sensitivity, inner.magnitude, moved_by, lemma, **basis)

    def start(self) -> Arrays:
        """The learner's start, and an empty sum."""
        return {**self.learner.start(), "sum": np.zeros(self.statistic_size)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """The learner's steps, its iterates added up from `first` on."""
        inner = dict(exact)
        total = exact["sum"]
        for i in range(len(y)):
            inner = self.learner.absorb(inner, t + i, X[i : i + 1], y[i : i + 1], point)
            if t + i + 1 >= self.first:
                inner, iterate = self.learner.statistic(inner, t + i + 1)
                total = total + iterate
        return {**inner, "sum": total}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """The mean so far; before `first`, the data-free point."""
        if t < self.first:
            return exact, self.problem.first_point
        return exact, exact["sum"] / (t - self.first + 1)

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The point of the domain nearest to the noisy mean."""
        return np.asarray(self.learner.decide(t, noisy, noise_sd))

    def _sensitivity(self, t: Array) -> Array:
        """Means of the learner's bounds, and the rounding errors of the sum itself, `2·t·2⁻⁵³·B`."""
        if np.max(t) > 2.0**26:  # longer arrays would not fit into memory
            return np.full_like(t, np.inf)
        rows = np.arange(1.0, np.max(t) + 1.0)
        sums = np.concatenate([[0.0], np.cumsum(np.where(rows >= self.first, self.learner.certificate.at(rows), 0.0))])
        count = np.maximum(t - self.first + 1.0, 1.0)
        rounding = 2.0 * t * 2.0**-53 * self.learner.longest_iterate * np.sqrt(self.statistic_size)
        mean = sums[t.astype(np.int64)] * (1.0 + 2.0 * t * 2.0**-53) / count
        return np.where(t >= self.first, mean + rounding, 0.0)


@dataclass(frozen=True, eq=False)
class Means:
    """Averages of iterates. Slow twin: `Averaged`."""

    learner: Averaged
    steps: Steps

    @staticmethod
    def of(learner: Averaged) -> Means | None:
        """If the averaged learner's steps have a compiled form."""
        return None if (steps := steps_of(learner.learner)) is None else Means(learner, steps)

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        x, total = exact["x"].copy(), exact["sum"].copy()
        totals = self.steps.iterates(x, t, X, y, rounds, total, self.learner.first)
        count = (rounds - self.learner.first + 1)[:, None]
        means = np.where(count > 0, totals / np.maximum(count, 1), self.learner.problem.first_point)
        return {"x": x, "sum": total}, means

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The points of the set nearest to the noisy averages."""
        return project_batch(self.learner.problem.domain, noisy)


register(Averaged, Means.of)


def _in_the_paper(learner: Averaged) -> PaperNoise:
    """Algorithm 6, which adds noise once, to the mean after T examples."""

    def noise(privacy: Privacy, horizon: int, rounds: Array, reading: Reading) -> tuple[Array, Privacy]:
        return np.full(len(rounds), pol_noise(learner.learner.steepest, privacy, horizon)), privacy

    return noise


IN_THE_PAPER[Averaged] = _in_the_paper


def averaged(learner: IterateLearner | Unverified, how: How = "mean", *, horizon: int) -> Averaged:
    """A learner's iterates averaged over all rounds up to the horizon, over the second half of them, or not at all.

    >>> from taciturn import IGD, L2Ball, Hinge, Problem
    >>> learner = IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5))
    >>> [averaged(learner, how, horizon=1000).first for how in ("mean", "suffix", "last")]
    [1, 501, 1000]
    """
    one_of("how", how, get_args(How))
    horizon = integer("horizon", horizon)
    return Averaged(learner, {"mean": 1, "suffix": horizon // 2 + 1, "last": horizon}[how])
