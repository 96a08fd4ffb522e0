"""Checks of a certificate: it is complete, and no two neighbouring streams are farther apart than it says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from taciturn._util.arrays import Array
from taciturn.checks.neighbours import distance, first_round, moved, other_example, rebuilt, search, that_can_leave_out
from taciturn.checks.streams import generator, members
from taciturn.checks.suite import demand, skip
from taciturn.checks.trial import MECHANISMS, Trial
from taciturn.core.protocols import Learner
from taciturn.errors import ContractBroken, TaciturnError
from taciturn.problem.losses import Linear
from taciturn.problem.problem import Problem
from taciturn.problem.sets import ConvexSet, L2Ball, WholeSpace

_FLIPPED = ((1, 1), (2, 1), (2, 2), (6, 1), (6, 4), (6, 6), (40, 1), (40, 20), (40, 40))
"""Numbers of examples, and which of them is turned round."""


def certificate_is_complete(trial: Trial) -> None:
    """Kind, words and lemma are there, and `at` gives finite bounds for numbers and arrays alike."""
    certificate, rounds = trial.learner.certificate, np.arange(1, 41)
    remedy = f"State one of {', '.join(MECHANISMS)}, a formula, what one example moves, and the lemma that proves it."
    words = all((certificate.formula, certificate.moved_by, certificate.lemma))
    demand(certificate.kind in MECHANISMS and words, f"{certificate!r} lacks a kind, a formula or a lemma", remedy)
    positive = 0.0 < certificate.magnitude < math.inf
    demand(positive, f"magnitude is {certificate.magnitude}", "State the largest entry that an exact row can have.")
    values = certificate.at(rounds)
    legal = values.shape == rounds.shape and bool(np.isfinite(values).all() and (values >= 0.0).all())
    demand(legal, f"at() gives {values} for 1 to 40 examples", "Return a finite bound, 0 or more, for each entry of t.")
    alone = [float(certificate.at(int(t))) for t in rounds]
    demand(values.tolist() == alone, "at() of an array is not at() of its entries", "Compute each entry by itself.")


def certificate_survives_a_search(trial: Trial) -> str:
    """No pair of neighbouring streams, found by a search for the worst, moves the row by more than certified.

    The noise is sized to the certificate: if one pair exceeds it, the printed guarantee is false.
    """
    learner, worst = trial.learner, -1.0
    for seed, longest in ((2 * seed + late, 40 if late else 5) for seed in range(trial.effort) for late in (0, 1)):
        found = search(learner, seed, longest=longest)
        worst = max(worst, found.share)
        change = f"by {found.raw[-1]}" if learner.problem.neighbours == "replace" else "by nothing"
        demand(
            found.share <= 1.0,
            f"replacing example {found.i + 1} of {found.t}, {found.raw[found.i]}, {change} moves the row by "
            f"{found.share:.4g} of what is certified, {float(learner.certificate.at(found.t)):.5g}: "
            f"taciturn.checks.neighbours.search(learner, {seed}, longest={longest})",
            "Find the step of the proof that this pair breaks, and state a larger bound.",
        )
    return f"the worst pair found uses {worst:.1%} of the bound"


def certificate_survives_linear_losses(trial: Trial) -> str:
    """On linear losses, where certificates of contracting steps are tight, no flipped example exceeds it.

    The learner is built anew on a line, without a set or with one too large to be felt.
    """
    line = _on_a_line(trial.learner)
    try:
        share = max(_flipped(line, t, i) for t, i in _FLIPPED)
    except Exception as fault:
        raised = f"it can be built on linear losses, and then raises {type(fault).__name__}: {fault}"
        raise ContractBroken(f"{raised}. Refuse, with Unprovable, problems that it is not for.") from fault
    demand(
        share <= 1.0,
        f"on linear losses on a line, one flipped example moves the row by {share:.4g} of what is certified",
        "Work out the step for a linear loss, and state at least that bound.",
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


def nothing_moves_before_it_is_certified(trial: Trial) -> None:
    """In rounds for which the certificate says 0, no example moves the row at all: such rounds get no noise."""
    learner, first = trial.learner, first_round(trial.learner)
    if first == 1:
        skip("the first example may move the row")
    raw = generator(first).normal(size=(min(first, 64), learner.problem.dimension + 1))
    apart = max(moved(learner, raw, i) for i in range(0, len(raw) - 1, 8))
    remedy = f"State a positive bound for {len(raw) - 1} examples, or hand over what no example has moved."
    demand(apart == 0.0, f"the certificate is 0 and an example moves the row by {apart:.5g}", remedy)


def other_rows_stay(trial: Trial) -> None:
    """Given what was released, one example moves the row that it is in, and no other, not by a bit.

    This is what `entry` says: each row is charged to the examples in it, and to no others.
    """
    learner = trial.learner
    if learner.certificate.reach != "entry":
        skip("one example may move every later row")
    V, y = trial.bounded
    tried, at = that_can_leave_out(learner), members(learner.problem.domain, learner.problem.size, 8)
    W, z, i = V.copy(), y.copy(), trial.rows // 2
    W[i : i + 1], z[i : i + 1] = other_example(tried.problem, V[:1], y[:1])
    rows = [_rows(tried, X, labels, at) for X, labels in ((V, y), (W, z))]
    apart = [distance(learner.certificate.metric, a, b) for a, b in zip(*rows, strict=True)]
    others = np.delete(apart, i // 3)
    remedy = "Start anew after statistic, add contributions on a lattice, and take gradients at released points only."
    demand(not others.any(), f"one example moves rows that it is not in, by up to {np.max(others):.3g}", remedy)


def _rows(learner: Learner, V: Array, y: Array, points: Array) -> list[Array]:
    """A row for every three examples, with these points released in between."""
    exact, rows = learner.start(), []
    for k, t in enumerate(range(0, len(y), 3)):
        exact = learner.absorb(exact, t, V[t : t + 3], y[t : t + 3], points[k % len(points)])
        exact, row = learner.statistic(exact, min(t + 3, len(y)))
        rows.append(row)
    return rows


CHECKS = (
    certificate_is_complete,
    certificate_survives_a_search,
    certificate_survives_linear_losses,
    nothing_moves_before_it_is_certified,
    other_rows_stay,
)
