"""Checks of a certificate: it is complete, and no two neighbouring streams exceed its bound.

The second half of the file is the search for a pair of streams that does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from taciturn.checks.learners import MECHANISMS, LearnerCase, first_round
from taciturn.checks.streams import Generator, examples, generator, labels_from, members
from taciturn.checks.suite import demand, skip
from taciturn.errors import ContractBroken, TaciturnError
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.contributions import Contributions
from taciturn.kernel.problem.losses import Linear
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import ConvexSet, L2Ball, WholeSpace
from taciturn.kernel.problem.vector_loss import VectorLoss
from taciturn.kernel.stream.protocols import Certificate, Learner
from taciturn.kernel.stream.schedule import Timetable, every

_FLIPPED = ((1, 1), (2, 1), (2, 2), (6, 1), (6, 4), (6, 6), (40, 1), (40, 20), (40, 40))
"""Numbers of examples, and which of them is flipped."""

_OF_A_USER = 3  # rows that are changed together


def certificate_is_complete(case: LearnerCase) -> None:
    """Kind, description and lemma are given, and `at` returns finite bounds for numbers and for arrays."""
    certificate, rounds = case.learner.certificate, np.arange(1, 41)
    remedy = f"State one of {', '.join(MECHANISMS)}, a formula, what one example changes, and the lemma that proves it."
    words = all((certificate.formula, certificate.moved_by, certificate.lemma))
    demand(certificate.kind in MECHANISMS and words, f"{certificate!r} lacks a kind, a formula or a lemma", remedy)
    positive = 0.0 < certificate.magnitude < math.inf
    demand(
        positive, f"magnitude is {certificate.magnitude}", "State the largest entry that an exact statistic can have."
    )
    values = certificate.at(rounds)
    legal = values.shape == rounds.shape and bool(np.isfinite(values).all() and (values >= 0.0).all())
    demand(legal, f"at() gives {values} for 1 to 40 examples", "Return a finite bound, 0 or more, for each entry of t.")
    alone = [float(certificate.at(int(t))) for t in rounds]
    demand(values.tolist() == alone, "at() of an array is not at() of its entries", "Compute each entry by itself.")


def certificate_survives_a_search(case: LearnerCase) -> str:
    """No pair of neighbouring streams found by a search changes the statistic by more than certified.

    The noise is calibrated to the certificate: if one pair exceeds it, the stated guarantee is false.
    """
    learner, worst = case.learner, -1.0
    for seed, longest in ((2 * seed + late, 40 if late else 5) for seed in range(case.effort) for late in (0, 1)):
        result = search(learner, seed, longest=longest)
        worst = max(worst, result.share)
        row = result.raw[-1]
        changes = {"replace": f"by {row}", "label": f"by itself with the label {row[-1]:g},"}
        change = changes.get(learner.problem.neighbours, "by nothing")
        demand(
            result.share <= 1.0,
            f"replacing example {result.i + 1} of {result.t}, {result.raw[result.i]}, {change} changes the statistic "
            f"by {result.share:.4g} of what is certified, {float(learner.certificate.at(result.t)):.5g}: "
            f"taciturn.checks.certificates.search(learner, {seed}, longest={longest})",
            "Find the step of the proof that this pair contradicts, and state a larger bound.",
        )
    return f"the worst pair found uses {worst:.1%} of the bound"


def certificate_of_the_other_relation_survives_a_search(case: LearnerCase) -> str:
    """Made on its problem with the other neighbour relation, replace or zero-out, the learner certifies that one.

    A guarantee also states what the same noise delivers under the other relation, by that certificate.
    """
    problem = case.learner.problem
    relation = {"replace": "zero-out", "zero-out": "replace"}.get(problem.neighbours)
    if relation is None:
        skip("only replace and zero-out are stated together")
    try:
        other = rebuilt(case.learner, replace(problem, neighbours=relation))  # type: ignore[arg-type]
        share = search(other, 0).share
    except (TaciturnError, TypeError, ValueError) as fault:
        return skip(f"it cannot be made on a problem under {relation}: {fault}")
    demand(
        share <= 1.0,
        f"under {relation} an example changes the statistic by {share:.4g} of what is certified, and the guarantee of "
        f"{problem.neighbours} states a number for it",
        "Let the certificate depend on problem.neighbours, or reject the relation that it does not cover.",
    )
    return f"under {relation} the worst pair found uses {share:.1%} of the bound"


def certificate_covers_the_rows_of_a_user(case: LearnerCase) -> str:
    """No user with several rows found by a search changes the statistic by more than certified for all of them.

    The bound for a user is that for one row times their number, by the triangle inequality over streams in which they
    are changed one after the other. Where a row uses up its bound on linear losses, so do several.
    """
    share = max(user_share(case.learner, seed) for seed in range(2 * case.effort))
    try:
        line = _on_a_line(case.learner)
    except SkipTest:
        line = None
    if line is not None:
        share = max(share, user_share(line, 0))
    demand(
        share <= 1.0,
        f"{_OF_A_USER} changed rows of a user change the statistic by {share:.4g} of what is certified for them",
        "Certify one row among any others, rows without influence too, and charge a user for every row.",
    )
    return f"{_OF_A_USER} rows of a user use up to {share:.1%} of the bound"


def user_share(learner: Learner, seed: int, rows: int = _OF_A_USER, tries: int = 8) -> float:
    """The largest share of the certificate for a user that changing so many rows uses: random and structured ones.

    >>> from taciturn import IGD, Hinge, L2Ball, Problem
    >>> 0.3 < user_share(IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5)), seed=1) <= 1.0
    True
    """
    rng, first, worst = generator(seed), first_round(learner), 0.0
    for attempt in range(tries):
        t = first + rows - 1 + int(rng.integers(0, 5 if attempt % 2 else 30))
        raw, point = _start(learner, t, t - 1, rng)
        places = np.arange(t - rows, t) if attempt % 2 else rng.permutation(np.arange(first - 1, t))[:rows]
        others = np.repeat(raw[-1:], rows, axis=0)
        if attempt % 4 < 2:
            raw[places] = raw[t - 1]  # all in one direction
            others[:, -1] = -raw[t - 1, -1]
        else:
            others = others * rng.choice([-1.0, 1.0], others.shape)
        certificate = learner.certificate.for_unit(User(rows), Timetable(every(1), t))
        bound = float(certificate.at(t)) * (rows if certificate.reach == "entry" else 1)
        worst = max(worst, _moved_by_user(learner, raw[:-1], places, others, point) / bound)
    return worst


def _moved_by_user(learner: Learner, raw: Array, places: NDArray[Any], others: Array, point: Array) -> float:
    """Distance of the last statistics of two streams that differ in these rows, in the certificate's metric."""
    tried: Learner = with_zero_out(learner)
    problem, streams = tried.problem, []
    for rows in (None, others):
        V, y = problem.clip(raw[:, :-1], labels_from(problem, raw[:, -1]))
        if rows is not None:
            V, y = V.copy(), y.copy()
            for j, i in enumerate(map(int, places)):
                V[i : i + 1], y[i : i + 1] = other_example(problem, raw[i], rows[j])
        streams.append(_last_row(tried, tried.start(), 0, V, y, point))
    return distance(learner.certificate.metric, streams[0], streams[1])


def certificate_survives_linear_losses(case: LearnerCase) -> str:
    """On linear losses, where certificates of contracting steps are tight, no flipped example exceeds it.

    The learner is rebuilt on a line, without a constraint or with one that is never active.
    """
    line = _on_a_line(case.learner)
    try:
        share = max(_flipped(line, t, i) for t, i in _FLIPPED)
    except Exception as fault:
        raised = f"it can be built on linear losses, and then raises {type(fault).__name__}: {fault}"
        raise ContractBroken(f"{raised}. Reject, with Unprovable, problems that it does not support.") from fault
    demand(
        share <= 1.0,
        f"on linear losses on a line, one flipped example changes the statistic by {share:.4g} of what is certified",
        "Derive the step for a linear loss, and state at least that bound.",
    )
    return f"a flipped linear example uses {share:.1%} of the bound"


def _flipped(line: Learner, t: int, i: int) -> float:
    """The share of the certificate that flipping the i-th of t equal examples uses, counted from the first round."""
    first = first_round(line)
    raw = np.ones((first + t, 2))
    raw[-1, 1] = -1.0
    return moved(line, raw, first + i - 2) / float(line.certificate.at(first + t - 1))


def _on_a_line(learner: Learner) -> Learner:
    """The learner on linear losses of one number."""
    for problem in _lines(learner.problem):
        try:
            return rebuilt(learner, problem)  # type: ignore[no-any-return]
        except (TaciturnError, TypeError):
            continue
    return skip(f"{type(learner).__name__} does not take linear losses on a line")


def _lines(problem: Problem) -> Iterator[Problem]:
    large: ConvexSet
    for large in (WholeSpace(), L2Ball(1e3)):
        line = Problem(Linear(), large, 1, label_bound=1.0, ridge=problem.ridge, neighbours=problem.neighbours)
        yield from (line, replace(line, ridge=problem.ridge or 0.5))


def zero_certificate_means_no_change(case: LearnerCase) -> None:
    """In rounds with a certificate of 0, no example changes the statistic at all: such rounds get no noise."""
    learner, first = case.learner, first_round(case.learner)
    if first == 1:
        skip("the first example may change the statistic")
    raw = generator(first).normal(size=(min(first, 64), learner.problem.dimension + 1))
    apart = max(moved(learner, raw, i) for i in range(0, len(raw) - 1, 8))
    remedy = f"State a positive bound for {len(raw) - 1} examples, or return a statistic that no example has changed."
    demand(apart == 0.0, f"the certificate is 0 and an example changes the statistic by {apart:.5g}", remedy)


def one_example_changes_one_statistic(case: LearnerCase) -> None:
    """Given the releases, one example changes the statistic of its own batch, and no other, not by a bit.

    This is the meaning of `entry`: each statistic is charged to the examples in it, and to no others.
    """
    learner = case.learner
    if learner.certificate.reach != "entry":
        skip("one example may change every later statistic")
    V, y = case.bounded
    tried, at = with_zero_out(learner), members(learner.problem.domain, learner.problem.size, 8)
    i = case.rows // 2
    v, label = other_example(tried.problem, case.example(i), case.example(0))
    ends = np.array([*range(3, case.rows, 3), case.rows])  # of batches; the neighbour's may have one example less
    moved_ends = ends - (ends > i) * (1 - len(label))
    W, z = np.concatenate([V[:i], v, V[i + 1 :]]), np.concatenate([y[:i], label, y[i + 1 :]])
    rows = [_rows(tried, X, labels, at, to) for X, labels, to in ((V, y, ends), (W, z, moved_ends))]
    apart = [distance(learner.certificate.metric, a, b) for a, b in zip(*rows, strict=True)]
    others = np.delete(apart, i // 3)
    remedy = (
        "Start from zero after statistic, add contributions on a lattice, and take gradients at released points only."
    )
    demand(
        not others.any(),
        f"one example changes statistics that it is not part of, by up to {np.max(others):.3g}",
        remedy,
    )


def _rows(learner: Learner, V: Array, y: Array, points: Array, ends: Integers) -> list[Array]:
    """A statistic for each batch of examples up to these ends, with these points released in between."""
    exact, rows = learner.start(), []
    for k, (start, end) in enumerate(pairwise([0, *map(int, ends)])):
        exact = learner.absorb(exact, start, V[start:end], y[start:end], points[k % len(points)])
        exact, row = learner.statistic(exact, end)
        rows.append(row)
    return rows


@dataclass(frozen=True)
class SearchResult:
    """The worst pair of a search: the `share` of the certificate that it uses; more than 1 is a violation.

    Rows of `raw` are features and a label; the last one replaces row `i` of the others. `point` was released before.
    """

    share: float
    t: int
    i: int
    raw: Array
    point: Array


def moved(learner: Learner, raw: Array, i: int, point: Array | None = None) -> float:
    """Distance of the last statistics of two neighbouring runs, in the certificate's metric."""
    return _moved(with_zero_out(learner), raw, i, point)


def _moved(learner: Learner, raw: Array, i: int, point: Array | None) -> float:
    problem = learner.problem
    V, y = problem.clip(raw[:, :-1], labels_from(problem, raw[:, -1]))
    point = problem.first_point if point is None else point
    before = learner.absorb(learner.start(), 0, V[:i], y[:i], point)
    one = learner.absorb(before, i, V[i : i + 1], y[i : i + 1], point)
    other = learner.absorb(before, i, *other_example(problem, raw[i], raw[-1]), point)
    rows = [_last_row(learner, exact, i + 1, V[i + 1 : -1], y[i + 1 : -1], point) for exact in (one, other)]
    return distance(learner.certificate.metric, rows[0], rows[1])


def other_example(problem: Problem, one: Array, other: Array) -> tuple[Array, Array]:
    """The clipped example of the neighbouring stream, from two raw ones, features and a label each.

    It is the other one (replace), one with no effect (zero-out), or the first with the label of the other (label). A
    label more than nine times as large as labels may be stands for a bad one under "label": the neighbour may have any.
    """
    label = labels_from(problem, other[-1:])
    if problem.neighbours == "label":
        if abs(other[-1]) > 9.0 * (problem.label_bound or 1.0):
            label = np.full(1, np.nan)
        return replace(problem, on_bad="zero").clip(one[None, :-1], label)
    v, y = problem.clip(other[None, :-1], label)
    if problem.neighbours == "replace":
        return v, y
    return np.zeros_like(v), np.full_like(y, np.nan) if isinstance(problem.loss, Muted) else y


def distance(metric: str, one: Array, other: Array) -> float:
    """Euclidean distance of two statistics, or the range of their difference."""
    return float(np.ptp(one - other) if metric == "range" else np.linalg.norm(one - other))


def _last_row(learner: Learner, exact: Arrays, t: int, V: Array, y: Array, point: Array) -> Array:
    return learner.statistic(learner.absorb(exact, t, V, y, point), t + len(y))[1]


@dataclass(frozen=True)
class Muted:
    """A loss that is 0 on examples whose label is NaN: the data term under zero-out."""

    loss: VectorLoss

    @property
    def labels(self) -> Literal["sign", "real", "class", "none"]:
        """The loss's."""
        return self.loss.labels

    def value(self, x: Array, v: Array, y: float) -> float:
        """0, or the loss's."""
        return 0.0 if np.isnan(y) else self.loss.value(x, v, y)

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """0, or the loss's."""
        return np.zeros_like(x) if np.isnan(y) else self.loss.gradient(x, v, y)

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The loss's."""
        return self.loss.lipschitz(feature_bound, radius, label_bound)

    def smoothness(self, feature_bound: float) -> float:
        """The loss's."""
        return self.loss.smoothness(feature_bound)

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The loss's."""
        return self.loss.gradient_diameter(feature_bound, radius, label_bound)


def with_zero_out(learner: Any) -> Any:
    """The learner or, under zero-out with a loss whose gradient at a zero example is not 0, one on a muted loss."""
    problem: Problem = learner.problem
    own = isinstance(learner, Contributions)  # a row of zeros adds nothing, whatever the loss is
    if own or problem.neighbours != "zero-out" or _zero_examples_have_no_gradient(problem):
        return learner
    return rebuilt(learner, replace(problem, loss=Muted(problem.loss)))  # type: ignore[arg-type]


def rebuilt(learner: Any, problem: Problem) -> Any:
    """The learner, or the learner that it wraps, on another problem."""
    if not is_dataclass(learner) or isinstance(learner, type):
        skip(f"{type(learner).__name__} is not a dataclass, so it cannot be rebuilt on another problem")
    made: Any = learner
    return made.on_problem(problem)


def _zero_examples_have_no_gradient(problem: Problem) -> bool:
    """Whether the gradient at an example of zeros is 0, at some points and labels."""
    nothing, (_, labels) = np.zeros(problem.width), problem.clip(*examples(problem, 4))
    at = members(problem.domain, problem.size, 4)
    return not any(np.any(problem.data_gradient(x, nothing, float(y))) for x in at for y in labels)


def search(
    learner: Learner,
    seed: int,
    *,
    certificate: Certificate | None = None,
    longest: int = 5,
    tries: int = 12,
    evaluations: int = 36,
) -> SearchResult:
    """Search for the worst pair: random and structured starts, then a coordinate search on all entries of both streams.

    >>> from taciturn import IGD, Hinge, L2Ball, Problem
    >>> 0.9 < search(IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5)), seed=1).share <= 1.0
    True
    """
    rng, first, tried = generator(seed), first_round(learner), with_zero_out(learner)
    bound = cache((certificate or learner.certificate).at)

    def share(raw: Array, i: int, point: Array) -> float:
        return _moved(tried, raw, i, point) / float(bound(len(raw) - 1))

    best = SearchResult(-1.0, 0, 0, np.zeros((0, 0)), learner.problem.first_point)
    for attempt in range(tries):
        t = first + int(rng.integers(0, longest))
        i = int(rng.integers(first - 1, t)) if attempt % 2 else t - 1
        raw, point = _start(learner, t, i, rng)
        result = share(raw, i, point)
        best = SearchResult(result, t, i, raw, point) if result > best.share else best
    return _climb(best, share, rng, evaluations)


def _start(learner: Learner, t: int, i: int, rng: Generator) -> tuple[Array, Array]:
    """A stream and a replacement: random, of any or maximal norm; or constant examples and a pair mirrored in them.

    A learner of entries may use the point released before: one at the border on that side, or any.
    """
    problem = learner.problem
    d, R, labels = problem.dimension, problem.feature_bound, problem.label_bound or 1.0
    raw = rng.normal(size=(t + 1, d + 1)) * R
    raw[:, -1] = rng.choice([-labels, labels], t + 1)
    if rng.random() < 0.3:
        raw[:, :-1] /= np.linalg.norm(raw[:, :-1], axis=1, keepdims=True) / R if rng.random() < 0.5 else 1.0
        return raw, _far_end(learner, np.zeros(0), rng)
    along = rng.normal(size=d)
    along /= np.linalg.norm(along)
    across = rng.normal(size=d)
    across -= (across @ along) * along
    across /= max(float(np.linalg.norm(across)), 1e-9)
    raw[:-1, :-1], raw[:-1, -1] = R * along, labels * rng.choice([-1.0, 1.0])
    p = rng.uniform(-1.0, 1.0)
    q = np.sqrt(1.0 - p * p)
    raw[i, :-1], raw[-1, :-1] = R * (p * along + q * across), R * (p * along - q * across)
    raw[[i, -1], -1] = labels * rng.choice([-1.0, 1.0]) * np.array([1.0, rng.choice([-1.0, 1.0, 1.0])])
    if problem.neighbours == "label" and rng.random() < 0.3:
        raw[-1, -1] = 100.0 * labels  # a bad one
    return raw, _far_end(learner, along if problem.features is None else along[:0], rng)


def _far_end(learner: Learner, along: Array, rng: Generator) -> Array:
    """A point at the border of the domain, in this direction, the opposite one, or any."""
    problem = learner.problem
    if learner.certificate.reach != "entry":
        return problem.first_point
    far = rng.normal(size=problem.size) if rng.random() < 0.3 or not along.any() else np.zeros(problem.size)
    far[: len(along)] += rng.choice([-1.0, 1.0]) * along
    return problem.domain.project(far * min(10.0 * problem.radius, 1e3))


def _climb(
    best: SearchResult, share: Callable[[Array, int, Array], float], rng: Generator, evaluations: int
) -> SearchResult:
    """Coordinate search: the entries of the changed pair first, with steps that shrink when nothing improves."""
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
                result = share(raw, best.i, best.point)
                if result > best.share:
                    best, improved = replace(best, share=result, raw=raw), True
                    break
        step = step if improved else step / 3.0
    return best


CHECKS = (
    certificate_is_complete,
    certificate_survives_a_search,
    certificate_of_the_other_relation_survives_a_search,
    certificate_covers_the_rows_of_a_user,
    certificate_survives_linear_losses,
    zero_certificate_means_no_change,
    one_example_changes_one_statistic,
)
