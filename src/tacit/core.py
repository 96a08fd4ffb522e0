"""The whole idea of `tacit`.

*A learner turns examples into vectors of certified sensitivity, a mechanism that accepts the certificate hides each
one, a public schedule says when, and what is decided from the noisy vector is the release.*

    (x, y) ─ Problem bounds it ─► Learner.absorb: exact row ─► Mechanism: encode, + noise │ decode ─► Learner.decide
                                         ▲                                                │                 │
                                         └───────── only released points feed back ◄──────┴─────────────────┤
                     ledger may refuse ─► state advances ─► only then the Release is shown ◄────────────────┘

Four nouns, then: `Problem`, `Learner`, `Mechanism`, `Schedule`, wired by `Private`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tacit.accounting import ledger as books
from tacit.accounting import paper
from tacit.accounting.exact import Privacy
from tacit.accounting.guarantee import Guarantee
from tacit.accounting.ledger import Ledger
from tacit.contracts import Calibrated, Integers, Learner, Mechanism
from tacit.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable, one_of
from tacit.problem.scalar import Array
from tacit.schedule import Schedule, Timetable
from tacit.state import SIMULATION, State, fingerprint, first_state, new_lineage, read_state

Calibration = Literal["exact", "paper-printed", "paper-proven"]
_RUN = 256  # releases whose noise is drawn in one call


@dataclass(frozen=True, eq=False)
class Release:
    """What the world sees after `t` examples: a noisy row, the point decided from it, and its noise level.

    >>> Release(10, 1, np.array([0.4, 1.2]), np.array([0.3, 0.9]), noise_sd=0.1, simulated=True)
    Release(t=10, k=1, point=[0.3 0.9], simulation: not private)
    """

    t: int
    k: int
    noisy: Array
    point: Array
    noise_sd: float
    simulated: bool

    def __repr__(self) -> str:
        mark = ", simulation: not private" if self.simulated else ""
        return f"Release(t={self.t}, k={self.k}, point={self.point}{mark})"


@dataclass(frozen=True)
class Private:
    """A learner made private: the whole sequence of its releases keeps `privacy`, for adaptive streams too.

    Parameters
    ----------
    learner, mechanism, schedule
        Who learns, how rows are hidden, when points are published.
    privacy : Privacy
        The total budget. With a calibration of the paper's, the paper's own parameters.
    horizon : int, optional
        Number of examples planned for; the round after it is refused. Without one the stream may go on for ever.
    calibration : {"exact", "paper-printed", "paper-proven"}
        Who chooses the noise; `guarantee` sets the claim beside what is delivered.
    allow_broken : bool
        Accept a calibration that delivers less than it claims.
    seed : int, optional
        For simulations and tests, which then protect nobody.

    Examples
    --------
    >>> from tacit import IGD, Gaussian, L2Ball, Logistic, Privacy, Private, Problem, every
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> private = Private(IGD(problem), Gaussian(), every(2), Privacy(1.0, 1e-6), horizon=4)
    >>> state, releases = private.run(private.start(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> state.t, [release.t for release in releases]
    (3, [2])
    """

    learner: Learner
    mechanism: Mechanism
    schedule: Schedule
    privacy: Privacy
    horizon: int | None = None
    calibration: Calibration = "exact"
    allow_broken: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        one_of("calibration", self.calibration, ("exact", "paper-printed", "paper-proven"))
        certificate, learner = self.learner.certificate, type(self.learner).__name__
        if self.mechanism.accepts != certificate.kind:
            raise Unprovable(
                f"{learner} certifies {certificate.kind} sensitivity ({certificate.moved_by}); "
                f"{type(self.mechanism).__name__} accepts {self.mechanism.accepts}. Use {self.mechanism.instead}."
            )
        if not self.guarantee.holds and not self.allow_broken:
            raise Unprovable(f"{self.guarantee} Use calibration='exact', or say allow_broken=True to study it.")

    @cached_property
    def timetable(self) -> Timetable:
        """The published rounds."""
        return Timetable(self.schedule, self.horizon)

    @cached_property
    def settings(self) -> str:
        """A hash of everything that was chosen; a state belongs to one."""
        return fingerprint(self)

    @cached_property
    def calibrated(self) -> Calibrated:
        """The mechanism with its noise settled."""
        args = self.learner.certificate, self.timetable, self.learner.size
        if self.calibration == "exact":
            return self.mechanism.calibrate(*args, self.privacy.mu)
        if (horizon := self.timetable.horizon) is None:
            raise InvalidInput("the paper's noise depends on the number of rounds: state a horizon.")
        reading: paper.Reading = "printed" if self.calibration == "paper-printed" else "proven"
        rounds = self.timetable.rounds.astype(np.float64)
        noise = self.learner.paper_noise(reading, self.privacy, horizon, rounds)
        return self.mechanism.with_noise(*args, noise)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claim beside the truth, for everything this can ever publish."""
        claimed = self.privacy if self.calibration == "exact" else paper.claim(self.privacy)
        delivered, neighbours = self.calibrated.event(None), self.learner.problem.neighbours
        return Guarantee(claimed, delivered, neighbours, self.calibration, self.seed is not None)

    def start(self, ledger: Ledger | None = None) -> State:
        """Open a stream: reserve its whole cost in `ledger` (by default one of its own)."""
        lineage = SIMULATION if self.seed is not None else new_lineage()
        exact, coders = self.learner.start(), self.calibrated.start()
        state = first_state(self.settings, lineage, exact, coders, self.learner.problem.start)
        return self._open(state, ledger)

    def load(self, path: str | os.PathLike[str], ledger: Ledger | None = None) -> State:
        """Go on from a dumped state; old snapshots of a stream that this process knows are refused when used."""
        state = read_state(path)
        self._check(state, 0)
        known = books.ledger_of(state.lineage) is not None
        return state if known else self._open(state, ledger)

    def fork(self, state: State, ledger: Ledger | None = None) -> State:
        """A second stream from `state` on, charged as a whole one in the same ledger or in `ledger`."""
        self._check(state, 0)
        lineage = state.lineage if state.simulated else new_lineage()
        return self._open(state.advance(lineage=lineage), ledger or books.ledger_of(state.lineage))

    def step(self, state: State, X: Any, y: Any) -> tuple[State, Release | None]:
        """Learn from the rows up to the next published round; uses up `state`."""
        X, y = self.learner.problem.bound(X, y)
        due = self._check(state, len(y))
        if due is not None and state.t + len(y) > due:
            raise InvalidInput(f"step() ends at the next published round, {due}. Use run().")
        return self._advance(state, X, y, self._noise_ahead(state, len(y)))

    def run(self, state: State, X: Any, y: Any) -> tuple[State, list[Release]]:
        """Learn from any number of rows: as many steps as the schedule makes of them."""
        X, y = self.learner.problem.bound(X, y)
        self._check(state, len(y))
        releases, first, done = [], state.t, 0
        noise = self._noise_ahead(state, len(y))
        while done < len(y):
            due = self.timetable.due(state.k + 1)
            end = len(y) if due is None else min(due - first, len(y))
            state, release = self._advance(state, X[done:end], y[done:end], noise)
            done = end
            releases += [release] if release else []
        return state, releases

    def _noise_ahead(self, state: State, rows: int) -> Iterator[Integers]:
        """Noise for the releases that `rows` more examples may bring, drawn in runs before the data is touched."""
        k, last = state.k + 1, state.t + rows
        while self.timetable.publishes_by(last, k):
            ahead = 1
            while ahead < _RUN and self.timetable.publishes_by(last, k + ahead):
                ahead += 1
            yield from self.calibrated.noise(self.seed, k, ahead)
            k += ahead

    def _advance(self, state: State, X: Array, y: Array, noise: Iterator[Integers]) -> tuple[State, Release | None]:
        """One step on bounded rows: spend, learn, hide, decide; the caller shows the release last."""
        t = state.t + len(y)
        publishes = t == self.timetable.due(state.k + 1)
        k = state.k + publishes
        hiding = next(noise) if publishes else None
        spent = self.calibrated.event(k)
        if not state.simulated:
            self._ledger(state).commit(state.lineage, state.generation, spent)
        exact = self.learner.absorb(state.exact, state.t, X, y, state.point)
        if hiding is None:
            return state.advance(t=t, exact=exact), None
        exact, row = self.learner.hand_over(exact)
        secret, encoded = self.calibrated.encode(state.secret, row, k)
        public, noisy, sd = self.calibrated.decode(state.public, encoded + hiding, k)
        point = self.learner.decide(t, noisy, sd)
        new = state.advance(t=t, k=k, exact=exact, secret=secret, public=public, point=point, spent=spent)
        return new, Release(t, k, noisy, point, sd, state.simulated)

    def _check(self, state: State, rows: int) -> int | None:
        """Refuse a state of other settings, or rows past the horizon, before anything changes."""
        if state.settings != self.settings:
            raise StateConflict(
                "this state was made under other settings. Use the Private that made it, or start() a new stream."
            )
        horizon = self.timetable.horizon
        if horizon is not None and state.t + rows > horizon:
            raise BudgetExhausted(
                f"round {state.t + rows} lies past the horizon of {horizon}, for which the noise was planned. "
                "Plan a longer one before the first example, or leave out horizon= to go on for ever."
            )
        return self.timetable.due(state.k + 1)

    def _open(self, state: State, ledger: Ledger | None) -> State:
        """Enter `state` into a ledger."""
        if not state.simulated:
            ledger = ledger or Ledger()
            ledger.open(state.lineage, self.calibrated.event(None), state.spent, state.generation)
            books.register(state.lineage, ledger)
        return state

    def _ledger(self, state: State) -> Ledger:
        """The ledger that guards `state` here."""
        ledger = books.ledger_of(state.lineage)
        if ledger is None:
            raise StateConflict(
                "this state's stream is not open in this process, and may go on in another. Dump it there and "
                "load() it here, or open a second, separately charged stream with fork()."
            )
        return ledger
