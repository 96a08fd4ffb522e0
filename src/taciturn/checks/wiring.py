"""Checks of a learner made private: the same without noise, compiled or resumed; used once, and not past its end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from taciturn._util.arrays import Array
from taciturn.checks.learners import BUDGET, ROUNDING, Trial
from taciturn.checks.suite import OF_THE_NOISE, demand, skip
from taciturn.core.loop import Definition, pass_for
from taciturn.core.private import Private
from taciturn.core.release import Releases
from taciturn.core.schedule import every, geometric
from taciturn.errors import BudgetExhausted, StateConflict, TaciturnError


def guarantee_is_proven(trial: Trial) -> None:
    """Made private, the learner delivers the budget that was asked for, by the certificate and the noise alone."""
    guarantee = trial.private().guarantee
    kept = guarantee.claimed == BUDGET and guarantee.proven
    demand(kept, str(guarantee), "Charge the noise to the certificate, and the whole budget to all releases.")


def without_noise_it_is_exact(trial: Trial) -> None:
    """Encoded and decoded without noise, rows are the exact ones: sums of them for `entry`, the best for `range`."""
    private, (V, y) = trial.private(), trial.bounded
    learner, calibrated, certificate = private.learner, private.calibrated, private.learner.certificate
    exact, (secret, public), total = learner.start(), calibrated.start(), np.zeros(learner.statistic_size)
    for k in range(1, trial.rows + 1):
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
        demand(off <= OF_THE_NOISE * sd + 1e-12, fault, "State the magnitude of rows, and hand over what is certified.")


def compiled_is_the_definition(trial: Trial) -> None:
    """The compiled pass releases what the definition does, up to rounding and a lattice step."""
    if isinstance(pass_for(trial.learner, trial.private().calibrated, True), Definition):
        skip(f"{type(trial.learner).__name__} goes by the definition")
    for schedule in (every(1), every(5)):
        fast, slow = (trial.private(schedule, seed=5, compiled=compiled) for compiled in (True, False))
        (end, shown), (ending, defined) = (one.run(one.start(), *trial.examples) for one in (fast, slow))
        alike = (end.t, end.k, end.spent) == (ending.t, ending.k, ending.spent)
        demand(
            alike,
            "the compiled pass counts rounds or releases otherwise",
            "Compare it with taciturn.core.loop.Definition.",
        )
        remedy = "Make the compiled loop do what the verbs do, or leave it out."
        allowed = OF_THE_NOISE * defined.noise_sd + ROUNDING * trial.learner.certificate.at(defined.rounds)
        off = np.max(np.abs(shown.noisy - defined.noisy), axis=1)
        demand(np.all(off <= allowed), f"compiled rows are off by up to {np.max(off):.3g}", remedy)
        off_points = np.max(np.abs(shown.points - _decided(trial, shown)))
        demand(off_points <= 1e-9, f"compiled points are off by {off_points:.3g}", remedy)


def _decided(trial: Trial, shown: Releases) -> Array:
    """The points that the learner decides from these noisy rows."""
    return np.array([trial.learner.decide(release.t, release.noisy, release.noise_sd) for release in shown])


def a_dumped_state_goes_on(trial: Trial) -> None:
    """Dumped half-way and loaded, a simulation releases to the bit what it would have released in one go.

    All that a learner remembers must be in its state, as plain arrays.
    """
    (X, y), half = trial.examples, trial.rows // 2
    private = trial.private(geometric(1.3), seed=5)
    whole = private.run(private.start(), X, y)[1]
    state, first = private.run(private.start(), X[:half], y[:half])
    with tempfile.TemporaryDirectory() as folder:
        state.dump(Path(folder) / "state.npz")
        state = private.load(Path(folder) / "state.npz")
    second = private.run(state, X[half:], y[half:])[1]
    alike = all(
        a.t == b.t and np.array_equal(a.noisy, b.noisy) and np.array_equal(a.point, b.point)
        for a, b in zip(whole, [*first, *second], strict=True)
    )
    demand(alike, "a stream that was dumped and loaded goes on otherwise", "Keep all memory in the state's arrays.")


def a_state_is_used_once(trial: Trial) -> None:
    """A state that has gone on is refused: the same data under fresh noise would be a second release."""
    private, (X, y) = trial.private(), trial.examples
    state = private.start()
    private.run(state, X[:2], y[:2])
    remedy = "Leave the ledger's books to Private.run, and let nothing share a state."
    demand(_refused(lambda: private.run(state, X[:2], y[:2]), StateConflict), "a state was used twice", remedy)


def the_horizon_is_the_end(trial: Trial) -> None:
    """The round after the horizon is refused: noise was planned for no more, and nothing has changed by asking."""
    private, (X, y) = trial.private(), trial.examples
    state, _ = private.run(private.start(), X, y)
    remedy = "Plan noise for the timetable's rounds, and leave the horizon to Private."
    demand(_refused(lambda: private.run(state, X[:1], y[:1]), BudgetExhausted), "round T + 1 was released", remedy)


def deviations_are_public(trial: Trial) -> None:
    """Rounds and deviations are the same for any two streams: they come from settings alone."""
    X, y = trial.examples
    shown = [_released(trial.private(seed=5), scale * X, y) for scale in (1.0, 0.0)]
    alike = np.array_equal(shown[0].rounds, shown[1].rounds) and np.array_equal(shown[0].noise_sd, shown[1].noise_sd)
    demand(alike, "deviations depend on the data", "Take them from the certificate and the schedule.")


def _released(private: Private, X: Array, y: Array) -> Releases:
    return private.run(private.start(), X, y)[1]


def _refused(attempt: Callable[[], object], kind: type[TaciturnError]) -> bool:
    try:
        attempt()
    except kind:
        return True
    return False


CHECKS = (
    guarantee_is_proven,
    without_noise_it_is_exact,
    compiled_is_the_definition,
    a_dumped_state_goes_on,
    a_state_is_used_once,
    the_horizon_is_the_end,
    deviations_are_public,
)
