"""Checks of a private stream: exact without noise, same when compiled or resumed, used once, ended at its horizon."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from taciturn._util.arrays import Array
from taciturn.checks.learners import BUDGET, ROUNDING, LearnerCase
from taciturn.checks.suite import OF_THE_NOISE, demand, skip
from taciturn.core.loop import Definition, pass_for
from taciturn.core.private import Private
from taciturn.core.release import Releases
from taciturn.core.schedule import every, geometric
from taciturn.errors import BudgetExhausted, StateConflict, TaciturnError


def guarantee_is_proven(case: LearnerCase) -> None:
    """The private stream delivers the requested budget, by the certificate and the noise alone."""
    guarantee = case.private().guarantee
    holds = guarantee.claimed == BUDGET and guarantee.proven
    demand(holds, str(guarantee), "Charge the noise to the certificate, and the full budget to all releases.")


def without_noise_releases_are_exact(case: LearnerCase) -> None:
    """Encoded and decoded without noise, releases are exact: prefix sums for `entry`, the arg min for `range`."""
    private, (V, y) = case.private(), case.bounded
    learner, calibrated, certificate = private.learner, private.calibrated, private.learner.certificate
    exact, (secret, public), total = learner.start(), calibrated.start(), np.zeros(learner.statistic_size)
    for k in range(1, case.rows + 1):
        exact = learner.absorb(exact, k - 1, V[k - 1 : k], y[k - 1 : k], learner.problem.first_point)
        exact, row = learner.statistic(exact, k)
        secret, encoded = calibrated.encode(secret, row, k)
        public, shown, sd = calibrated.decode(public, encoded, k)
        total = total + row
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
            "Compare it with taciturn.core.loop.Definition.",
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
)
