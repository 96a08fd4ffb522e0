"""Checks of a private stream: exact without noise, same when compiled or resumed, used once, ended at its horizon.

If its unit of privacy is a user, rows beyond the bounds have no influence, and every row that counts is charged.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from taciturn.checks.certificates import rebuilt
from taciturn.checks.learners import BUDGET, ROUNDING, LearnerCase
from taciturn.checks.streams import examples
from taciturn.checks.suite import OF_THE_NOISE, demand, skip
from taciturn.core.private import Private
from taciturn.errors import BudgetExhausted, StateConflict, TaciturnError
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.mechanisms.strategy import matrices, sums_of
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.replay import counts, records_of, replay
from taciturn.kernel.stream.loop import Definition, pass_for
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.release import Releases
from taciturn.kernel.stream.schedule import every, geometric
from taciturn.kernel.stream.state import State


def guarantee_is_proven(case: LearnerCase) -> None:
    """The private stream delivers the requested budget, by the certificate and the noise alone."""
    guarantee = case.private().guarantee
    holds = guarantee.claimed == BUDGET and guarantee.proven
    demand(holds, str(guarantee), "Charge the noise to the certificate, and the full budget to all releases.")


def without_noise_releases_are_exact(case: LearnerCase) -> None:
    """Encoded and decoded without noise, releases are exact: prefix sums for `entry`, the arg min for `range`."""
    private, (V, y) = case.private(), case.bounded
    learner, calibrated, certificate = private.learner, private.calibrated, private.learner.certificate
    (secret, public), rounds = calibrated.start(), np.arange(1, case.rows + 1)
    rows = replay(learner, V, y, rounds).statistics
    sums = sums_of(calibrated.coder, rows)
    for k, row, total in zip(rounds.tolist(), rows, sums, strict=True):
        secret, encoded = calibrated.encode(secret, row, k)
        public, shown, sd = calibrated.decode(public, encoded, k)
        if certificate.metric == "range":
            off = float(row[int(shown[0])] - np.min(row))
        else:
            off = float(np.max(np.abs(shown - (total if certificate.reach == "entry" else row))))
        fault = f"without noise, release {k} is off by {off:.3g}, and the noise would be {sd:.3g}"
        demand(
            off <= OF_THE_NOISE * sd + 1e-12, fault, "State the magnitude of statistics, and return what is certified."
        )


def compiled_pass_matches_definition(case: LearnerCase) -> None:
    """The compiled pass gives the releases of the definition, up to rounding and a lattice step."""
    if isinstance(pass_for(case.learner, case.private().calibrated, True), Definition):
        skip(f"{type(case.learner).__name__} has no compiled pass")
    for schedule in (every(1), every(5)):
        fast, slow = (case.private(schedule, seed=5, compiled=compiled) for compiled in (True, False))
        (end, shown), (ending, defined) = (one.run(one.start(), *case.examples) for one in (fast, slow))
        alike = (end.t, end.k, end.spent) == (ending.t, ending.k, ending.spent)
        demand(
            alike,
            "the compiled pass counts rounds or releases differently",
            "Compare it with taciturn.kernel.stream.loop.Definition.",
        )
        remedy = "Make the compiled loop match the methods, or remove it."
        allowed = OF_THE_NOISE * defined.noise_sd + ROUNDING * case.learner.certificate.at(defined.rounds)
        off = np.max(np.abs(shown.noisy - defined.noisy), axis=1)
        demand(np.all(off <= allowed), f"compiled statistics are off by up to {np.max(off):.3g}", remedy)
        off_points = np.max(np.abs(shown.points - _decided(case, shown)))
        demand(off_points <= 1e-9, f"compiled points are off by {off_points:.3g}", remedy)


def _decided(case: LearnerCase, shown: Releases) -> Array:
    """The points that the learner decides from these noisy statistics."""
    return np.array([case.learner.decide(release.t, release.noisy, release.noise_sd) for release in shown])


def a_saved_state_resumes(case: LearnerCase) -> None:
    """Saved half-way and loaded, a simulation gives the releases of an uninterrupted run to the bit.

    All of a learner's state must be in its arrays.
    """
    (X, y), half = case.examples, case.rows // 2
    private = case.private(geometric(1.3), seed=5)
    uninterrupted = private.run(private.start(), X, y)[1]
    state, first = private.run(private.start(), X[:half], y[:half])
    with tempfile.TemporaryDirectory() as folder:
        state.dump(Path(folder) / "state.npz")
        state = private.load(Path(folder) / "state.npz")
    second = private.run(state, X[half:], y[half:])[1]
    alike = all(
        a.t == b.t and np.array_equal(a.noisy, b.noisy) and np.array_equal(a.point, b.point)
        for a, b in zip(uninterrupted, [*first, *second], strict=True)
    )
    demand(alike, "a stream that was saved and loaded gives other releases", "Keep all state in the state's arrays.")


def a_state_is_used_once(case: LearnerCase) -> None:
    """A state that was used is rejected: the same data under fresh noise would be a second release."""
    private, (X, y) = case.private(), case.examples
    state = private.start()
    private.run(state, X[:2], y[:2])
    remedy = "Leave the ledger to Private.run, and share no state."
    demand(_rejected(lambda: private.run(state, X[:2], y[:2]), StateConflict), "a state was used twice", remedy)


def no_release_after_the_horizon(case: LearnerCase) -> None:
    """The round after the horizon is rejected: noise was calibrated for no more rounds."""
    private, (X, y) = case.private(), case.examples
    state, _ = private.run(private.start(), X, y)
    remedy = "Calibrate the noise to the timetable's rounds, and leave the horizon to Private."
    demand(_rejected(lambda: private.run(state, X[:1], y[:1]), BudgetExhausted), "round T + 1 was released", remedy)


def standard_deviations_are_public(case: LearnerCase) -> None:
    """Rounds and standard deviations are the same for any two streams: they depend on settings only."""
    X, y = case.examples
    shown = [_released(case.private(seed=5), scale * X, y) for scale in (1.0, 0.0)]
    alike = np.array_equal(shown[0].rounds, shown[1].rounds) and np.array_equal(shown[0].noise_sd, shown[1].noise_sd)
    demand(alike, "standard deviations depend on the data", "Compute them from the certificate and the schedule.")


def rows_beyond_a_users_bounds_have_no_influence(case: LearnerCase) -> None:
    """Rows of a user that do not count give the same releases whatever they contain, to the bit, also as bad rows.

    And which rows count does not depend on contents: a user's records are the same for any.
    """
    learner = _with_bad_rows(case.learner)
    n, problem = case.rows, learner.problem
    X, y = examples(problem, n)
    users = np.where(np.arange(n) % 5 == 4, "bob", "anna")
    unit = User(rows=4, per_release=2, apart=2)
    for schedule, compiled in ((every(3), True), (every(1), False)):
        private = replace(case, learner=learner).private(schedule, seed=5, compiled=compiled, unit=unit)
        end, shown = private.run(private.start(), X, y, users)
        kept = counts(private, users)
        for rows, labels in _contents(problem, X, y):
            for changed in (~kept, kept):
                mixed = np.where(changed[:, None], rows, X), np.where(changed, labels, y)
                ending, noisy = _in_two_calls(private, *mixed, users)
                alike = _records(ending) == _records(end)
                demand(alike, "contents of rows change which rows count", "Decide by positions and ids alone.")
                remedy = "Zero such rows after the intercept and all features are there, in every pass."
                same = changed is kept or np.array_equal(noisy, shown.noisy)
                demand(same, "rows beyond a user's bounds change the releases", remedy)


def _in_two_calls(private: Private, X: Array, y: Array, users: NDArray[Any]) -> tuple[State, Array]:
    """The last state and all noisy statistics of a stream, in two calls."""
    half = len(y) // 2
    state, first = private.run(private.start(), X[:half], y[:half], users[:half])
    state, second = private.run(state, X[half:], y[half:], users[half:])
    return state, np.concatenate([releases.noisy for releases in (first, second) if len(releases)])


def _with_bad_rows(learner: Learner) -> Learner:
    """The learner on a problem that takes bad rows, if it can be rebuilt on one."""
    try:
        return rebuilt(learner, replace(learner.problem, on_bad="zero"))  # type: ignore[no-any-return]
    except (SkipTest, TaciturnError, TypeError):
        return learner


def _contents(problem: Problem, X: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """Other rows and labels: opposite and large ones, zeros and, if they are taken, bad ones."""
    yield -3.0 * X[::-1], y[::-1]
    yield np.zeros_like(X), y
    if problem.on_bad == "zero":
        yield np.full_like(X, np.nan), y


def _records(state: State) -> dict[str, list[Any]]:
    """The users' records of a simulation, whose key follows from its seed, as plain data."""
    assert state.users is not None
    return {name: array.tolist() for name, array in records_of(state.users).items()}


def every_row_of_a_user_is_charged(case: LearnerCase) -> None:
    """The cost covers the worst rows of a user, and their rounding: read off the encoder and the certificate of a row.

    For prefix sums that is `‖C u‖·Delta/sd` of the pattern that admits every row as early as it may, plus, where rows
    are rounded before they are encoded, a lattice step an entry for each.
    """
    unit = User(rows=3, per_release=1)
    private = case.private(every(max(1, case.rows // 12)), unit=unit)
    calibrated: Any = private.calibrated
    certificate, rounds = private.learner.certificate, private.timetable.rounds
    if certificate.metric != "l2":
        skip("selections are charged by their range")
    if certificate.reach == "tail":
        sd = np.array([calibrated.noise_sd(k) for k in range(1, len(rounds) + 1)])
        moved = certificate.at(rounds) * np.minimum(unit.rows, np.arange(1, len(rounds) + 1))
        needed = float(np.linalg.norm(moved[moved > 0.0] / sd[moved > 0.0]))
    else:
        if calibrated.coder is None:
            skip("the mechanism has no encoder to read")
        _, C = matrices(calibrated.coder, len(rounds))
        along = float(np.linalg.norm(np.sum(C[:, : unit.rows], axis=1)))
        step = calibrated.step(1) if calibrated.coder.integer else 0.0
        row = float(np.max(certificate.at(rounds))) + math.sqrt(private.learner.statistic_size) * step
        needed = along * row / calibrated.sd
    stated = calibrated.cost(None).mu
    demand(
        stated >= needed * (1.0 - 1e-10),
        f"three rows of a user cost mu = {needed:.12g}, and {stated:.12g} is charged",
        "Charge Delta·‖C u‖ for all rows of a user, and the rounding of each row that is rounded by itself.",
    )


def _released(private: Private, X: Array, y: Array) -> Releases:
    return private.run(private.start(), X, y)[1]


def _rejected(attempt: Callable[[], object], kind: type[TaciturnError]) -> bool:
    try:
        attempt()
    except kind:
        return True
    return False


CHECKS = (
    guarantee_is_proven,
    without_noise_releases_are_exact,
    compiled_pass_matches_definition,
    a_saved_state_resumes,
    a_state_is_used_once,
    no_release_after_the_horizon,
    standard_deviations_are_public,
    rows_beyond_a_users_bounds_have_no_influence,
    every_row_of_a_user_is_charged,
)
