"""The search for two neighbouring streams that a learner tells apart by more than its certificate allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from learners.cases import Nothing
from tacit import FTL, GIGA, IGD, Certificate, Problem, ScalarLoss
from tacit.learners.averaged import Averaged
from tacit.problem.scores import ScoresLoss

_UNUSED = np.zeros(0)  # the last release: learners that hand over their iterate do not look at it


@dataclass(frozen=True)
class Found:
    """The worst pair of a search: `share` of the certificate that it uses; more than 1 is a violation."""

    share: float
    t: int
    i: int
    raw: np.ndarray


def moved(learner: IGD | GIGA, raw: np.ndarray, i: int) -> float:
    """How far apart two runs end. Rows of `raw` are features and a label; the last one replaces row `i`."""
    problem = learner.problem
    V, y = problem.bound(raw[:, :-1], _labels(problem, raw[:, -1]))
    learner = _that_can_leave_out(learner)
    before = learner.absorb(learner.start(), 0, V[:i], y[:i], _UNUSED)
    one = learner.absorb(before, i, V[i : i + 1], y[i : i + 1], _UNUSED)
    if problem.neighbours == "replace":
        other = learner.absorb(before, i, V[-1:], y[-1:], _UNUSED)
    else:
        other = _without(learner, before, i, V[i : i + 1], y[i : i + 1])
    ends = [learner.absorb(x, i + 1, V[i + 1 : -1], y[i + 1 : -1], _UNUSED) for x in (one, other)]
    rows = [learner.hand_over(end, len(raw) - 1)[1] for end in ends]
    return float(np.linalg.norm(rows[0] - rows[1]))


def _labels(problem: Problem, raw: np.ndarray) -> np.ndarray:
    """Numbers as legal labels: their signs, or the classes that come by turns along the line."""
    if problem.outputs > 1:
        return np.floor(raw) % problem.outputs
    return np.where(raw < 0.0, -1.0, 1.0) if problem.loss.labels == "sign" else raw


@dataclass(frozen=True)
class Muted:
    """A vector loss that is 0 on examples whose label is not a number."""

    loss: object

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "loss"), name)

    def value(self, x, v, y):
        return 0.0 if np.isnan(y) else self.loss.value(x, v, y)

    def gradient(self, x, v, y):
        return np.zeros_like(x) if np.isnan(y) else self.loss.gradient(x, v, y)


def _that_can_leave_out(learner):
    """Leaders keep their examples, so one whose data term is 0 must be told from the others when it is minimised."""
    inner = getattr(learner, "learner", learner)
    if not isinstance(inner, FTL) or isinstance(inner.problem.loss, ScalarLoss | ScoresLoss):
        return learner
    muted = replace(inner, problem=replace(inner.problem, loss=Muted(inner.problem.loss)))
    return muted if inner is learner else replace(learner, learner=muted)


def _without(learner, before, i, V, y):
    """One round whose data term is 0."""
    if isinstance(learner.problem.loss, ScalarLoss | ScoresLoss):
        return learner.absorb(before, i, np.zeros_like(V), y, _UNUSED)
    if getattr(learner, "step", "") == "printed":
        if i + 1 < learner.first_move:
            return before
        rate = 2.0 / (learner.problem.ridge * (i + 1))
        return {"x": learner.problem.domain.project(before["x"] * (1.0 - rate * learner.problem.ridge))}
    if isinstance(learner, GIGA):
        rate = 1.0 / (learner.problem.ridge * (i + 1 + learner.delay))
        return {"x": learner.problem.domain.project(before["x"] * (1.0 - rate * learner.problem.ridge))}
    if isinstance(getattr(learner, "learner", learner), FTL):
        return learner.absorb(before, i, V, np.full(1, np.nan), _UNUSED)
    if isinstance(learner, Averaged):
        exact = replace(learner.learner, problem=replace(learner.problem, loss=Nothing(), label_bound=1.0))
        return replace(learner, learner=exact).absorb(before, i, V, y, _UNUSED)
    silent = replace(learner, problem=replace(learner.problem, loss=Nothing(), label_bound=1.0))
    return silent.absorb(before, i, V, y, _UNUSED)


def first_round(learner: IGD | GIGA) -> int:
    """The first round after which an example can have moved the iterate."""
    return getattr(learner, "first_move", getattr(learner, "first", 1))


def search(
    learner: IGD | GIGA,
    seed: int,
    *,
    certificate: Certificate | None = None,
    longest: int = 5,
    tries: int = 12,
    evaluations: int = 36,
) -> Found:
    """Random starts, clever ones among them, then a coordinate search on every entry of both streams."""
    rng = np.random.default_rng(seed)
    bound = certificate or learner.certificate
    first = first_round(learner)

    def share(raw: np.ndarray, i: int) -> float:
        return moved(learner, raw, i) / float(bound.at(len(raw) - 1))

    best = Found(-1.0, 0, 0, np.zeros((0, 0)))
    for attempt in range(tries):
        t = first + int(rng.integers(0, longest))
        i = int(rng.integers(first - 1, t)) if attempt % 2 else t - 1
        raw = _start(learner, t, i, rng)
        found = share(raw, i)
        best = Found(found, t, i, raw) if found > best.share else best
    return _climb(best, share, rng, evaluations)


def _start(learner: IGD | GIGA, t: int, i: int, rng: np.random.Generator) -> np.ndarray:
    """A stream and a replacement: random, or a steady push to one side and a pair that mirror each other in it."""
    problem = learner.problem
    d, R, labels = problem.dimension, problem.feature_bound, problem.label_bound
    raw = rng.normal(size=(t + 1, d + 1)) * R
    raw[:, -1] = rng.choice([-labels, labels], t + 1)
    if rng.random() < 0.3:
        return raw
    along = rng.normal(size=d)
    along /= np.linalg.norm(along)
    across = rng.normal(size=d)
    across -= (across @ along) * along
    across /= max(np.linalg.norm(across), 1e-9)
    raw[:-1, :-1], raw[:-1, -1] = R * along, labels * rng.choice([-1.0, 1.0])
    p = rng.uniform(-1.0, 1.0)
    q = np.sqrt(1.0 - p * p)
    raw[i, :-1], raw[-1, :-1] = R * (p * along + q * across), R * (p * along - q * across)
    raw[[i, -1], -1] = labels * rng.choice([-1.0, 1.0]) * np.array([1.0, rng.choice([-1.0, 1.0, 1.0])])
    return raw


def _climb(best: Found, share, rng: np.random.Generator, evaluations: int) -> Found:
    """Coordinate search: the entries of the changed pair first, in steps that shrink when nothing helps."""
    step = 0.4
    while evaluations > 0:
        rows, columns = np.divmod(rng.permutation(best.raw.size), best.raw.shape[1])
        pair = np.isin(rows, (best.i, len(best.raw) - 1))
        order = np.argsort(~pair, kind="stable")
        improved = False
        for row, column in zip(rows[order], columns[order], strict=True):
            for sign in (1.0, -1.0):
                if evaluations <= 0:
                    return best
                evaluations -= 1
                raw = best.raw.copy()
                raw[row, column] += sign * step * (1.0 if column < raw.shape[1] - 1 else 3.0)
                found = share(raw, best.i)
                if found > best.share:
                    best, improved = replace(best, share=found, raw=raw), True
                    break
        step = step if improved else step / 3.0
    return best
