"""One private stream: a learner, a calibrated mechanism, a schedule and a unit of privacy, wired by `Stream`.

*A learner turns examples into statistics of certified sensitivity, a mechanism that accepts the certificate adds noise
to each one, a public schedule says when, and what is decided from the noisy statistic is the release.*

    (x, y) ─ Problem clips it ─► Learner: exact statistic ─► Mechanism: encode, + noise │ decode ─► Learner.decide
                                          ▲                                             │              │
                                          └────── only released points feed back ◄──────┴──────────────┤
                      ledger is charged ─► state advances ─► only then the Release is shown ◄──────────┘

The four parts are `Problem`, `Learner`, `Mechanism`, `Schedule`. The certificate and the protocols of learners and
mechanisms are in `kernel/stream/protocols.py`.

**Claim.** What `Stream.prepare` and `prepare_sums` return has the cost that the new state says, and all states of one
stream together cost at most `total_cost`, if of each state one successor at most is shown. *Proof.* The mechanism
accepts the learner's certificate (`__post_init__`), its noise is calibrated to that (`calibrated`), or to numbers of a
state whose cost is counted anew here (`_restored`); a state belongs to these settings, and ends at a horizon for which
all this is proven (`_check`); and which rows of a user count is decided here, and stored in the state with the rows. ∎
That one successor is shown at most is for whoever commits: `taciturn.core.accounted`, `taciturn.store`.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.unit import EXAMPLE, Example, Unit, User
from taciturn.kernel.arrays import Array, Arrays, Integers, same
from taciturn.kernel.errors import (
    BudgetExhausted,
    InvalidInput,
    StateConflict,
    Unprovable,
    expect,
    integer,
    one_of,
)
from taciturn.kernel.learners.contributions import entry, wired
from taciturn.kernel.problem.inputs import Source
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.secret import Secret
from taciturn.kernel.stream.block_sums import Admission, BlockSums, as_sum, none_left_out
from taciturn.kernel.stream.earlier import earlier_fingerprint
from taciturn.kernel.stream.fingerprint import derived_from, described, fingerprint
from taciturn.kernel.stream.hashed_rows import HashedAdmission, HashedRows, Map
from taciturn.kernel.stream.loop import Loop, Pass, SumLoop, has_known_arrays, pass_for
from taciturn.kernel.stream.participation import Layers, UserRecords, admit, new_records, periods_of
from taciturn.kernel.stream.protocols import (
    TOO_DEAR,
    Calibrated,
    Calibration,
    Certificate,
    Learner,
    Mechanism,
    complete,
    damaged,
    misfit,
    restores,
    stored,
)
from taciturn.kernel.stream.release import Releases
from taciturn.kernel.stream.schedule import Schedule, Timetable
from taciturn.kernel.stream.state import (
    SIMULATION,
    Standing,
    State,
    after,
    first_state,
    new_name,
    read_state,
    standing_of,
)

OTHER_SETTINGS = "this state was made under other settings. Use the Private that made it, or start() a new stream."

_SAME_BOUND = 2.0**-30  # relative difference up to which two machines compute the same bound
_SAME_FIT = 2.0**-5  # relative difference of noise up to which two fits are taken for one
_BLOCK = "what block_statistics(learner, point, X, y) returns"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Prepared:
    """The state before some examples, the state after them, and their releases: secret until `commit`."""

    used: State
    state: State
    releases: Releases

    def __repr__(self) -> str:
        return f"Prepared({len(self.releases)} releases after round {self.used.t}, not shown)"


class Described:
    """A frozen dataclass of settings, by whose hash its states are known."""

    @cached_property
    def settings(self) -> str:
        """A hash of the settings; a state belongs to one."""
        return fingerprint(self)

    @cached_property
    def recorded(self) -> Any:
        """The settings as JSON data, which the history of a ledger records."""
        return described(self)

    def _as_now(self, state: State) -> State:
        """A stored state, with the hash of today if it has that of these settings in version 1.

        Nothing is written here: the next commit has the new hash, and a copy of the old state is opened in the same way
        until then.
        """
        if state.settings == self.settings or state.settings != earlier_fingerprint(self):
            return state
        return replace(state, settings=self.settings)

    def __getstate__(self) -> dict[str, Any]:
        made: Any = self  # a dataclass: its settings, and nothing that was computed from them
        return {setting.name: getattr(self, setting.name) for setting in fields(made)}


@dataclass(frozen=True)
class Stream(Described):
    """A private learner without a ledger: it prepares what may be shown once another has committed it.

    The parameters are those of `Private`, which adds ledgers.

    >>> from taciturn import IGD, Gaussian, L2Ball, Logistic, every
    >>> learner = IGD(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1))
    >>> stream = Stream(learner, Gaussian(), every(2), Privacy(1.0, 1e-6), horizon=4)
    >>> stream.prepare(stream.draft(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    Prepared(1 releases after round 0, not shown)
    """

    learner: Learner
    mechanism: Mechanism
    schedule: Schedule
    privacy: Privacy
    horizon: int | None = None
    calibration: Calibration = "exact"
    allow_broken: bool = False
    seed: int | None = None
    compiled: bool = True
    unit: Unit = EXAMPLE

    def __post_init__(self) -> None:
        one_of("calibration", self.calibration, get_args(Calibration))
        expect("privacy", self.privacy, isinstance(self.privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        expect("schedule", self.schedule, isinstance(self.schedule, Schedule), "every(1) or geometric(1.1)")
        object.__setattr__(self, "learner", entry(self.learner))
        complete("learner", self.learner, Learner, "IGD(problem)")
        complete("mechanism", self.mechanism, Mechanism, "Gaussian() or BLT()")
        expect("unit", self.unit, isinstance(self.unit, Example | User), "Example() or User(rows=4)")
        if self.calibration != "exact" and isinstance(self.unit, User):
            raise InvalidInput("the paper's noise protects one example. Use calibration='exact', or unit=Example().")
        for name in ("horizon", "seed"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, integer(name, value, least=int(name == "horizon")))
        certificate = self.learner.certificate
        accepts = self.mechanism.accepts
        if certificate.kind != accepts:
            raise Unprovable(misfit(certificate, type(self.learner).__name__, type(self.mechanism).__name__, accepts))
        wired(self.learner)
        horizon = self.timetable.horizon
        most = self._most_rounds
        if horizon is not None and horizon > most:
            raise Unprovable(
                f"a horizon for {type(self.learner).__name__} must be at most {most:,}, up to which its sums are exact "
                f"and its certificate is proven, got {horizon:,}. State a shorter one, and start another stream after "
                "it; or use IGD or GIGA (method='igd' or 'giga'), which have no such limit."
            )
        if not self.guarantee.proven and not self.allow_broken:
            raise Unprovable(f"{self.guarantee} Use calibration='exact', or say allow_broken=True to study it.")

    @property
    def problem(self) -> Problem:
        """What is being learnt."""
        return self.learner.problem

    @property
    def neighbours(self) -> str:
        """The problem's relation."""
        return self.problem.neighbours

    @cached_property
    def timetable(self) -> Timetable:
        """The published rounds."""
        return Timetable(self.schedule, self.horizon)

    @property
    def last_round(self) -> int | None:
        """The last round that the stream can release: of its horizon, or of what is proven; None if it never ends.

        >>> from taciturn import Privacy, every, geometric, private_sum
        >>> [private_sum(1, 1.0, Privacy(1, 1e-6), schedule=when).last_round for when in (every(1), geometric(2))]
        [None, 8388608]
        """
        horizon = self.timetable.horizon
        if horizon is not None:
            return horizon
        proven = math.inf if self.calibrated.by_block else self._most_rounds
        paid_for = self.calibrated.last_round
        last = proven if paid_for is None else min(proven, paid_for)
        return int(last) if math.isfinite(last) else None

    @property
    def first_point(self) -> Array:
        """The learner's data-free point, before the first release."""
        return self.learner.first_point

    def noise_sd(self, k: int) -> float:
        """Standard deviation of the noise on an entry of the k-th released statistic."""
        return self.calibrated.noise_sd(k)

    @property
    def certificate(self) -> Certificate:
        """The learner's certificate, for all rows of one unit of privacy."""
        return self.learner.certificate.for_unit(self.unit, self.timetable)

    @cached_property
    def calibrated(self) -> Calibrated:
        """The calibrated mechanism."""
        certificate = self.certificate
        size = self.learner.statistic_size
        made = self.mechanism.calibrate(certificate, self.timetable, size, self.privacy, self.calibration)
        complete("the calibrated mechanism", made, Calibrated, "what Gaussian().calibrate returns")
        return made

    @property
    def total_cost(self) -> Cost:
        """The cost of everything that one stream can ever publish."""
        return self.calibrated.cost(None)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is claimed and what is delivered, for everything that can ever be published."""
        return self._guaranteed(None)

    def _guaranteed(self, other: Cost | None) -> Guarantee:
        """The guarantee, with what this noise delivers under the other relation, if it is known."""
        claimed, delivered = self.calibrated.claimed, self.total_cost
        simulated = self.seed is not None
        own = self.learner.certificate
        made = partial(Guarantee, claimed, delivered, self.problem.neighbours, self.calibration, simulated, self.unit)
        return made(other, own.rests_on, own.by)

    def draft(self) -> State:
        """The first state of a stream that is not open yet: `open` it, before what was prepared from it is committed.

        >>> from taciturn import Privacy, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=10)
        >>> state = private.draft()
        >>> private.is_live(state), private.is_live(private.open(state))
        (False, True)
        """
        lineage = SIMULATION if self.seed is not None else new_name()
        exact = self.learner.start()
        coders = self.calibrated.start()
        users = new_records(self.seed) if isinstance(self.unit, User) else None
        return first_state(self.settings, lineage, exact, coders, self.learner.first_point, self._numbers, users)

    def read(self, path: str | os.PathLike[str] | bytes, layers: Layers | None = None) -> State:
        """A dumped state of this stream, validated, and opened in no ledger of this process.

        It is for a stream that a store guards: what is prepared from the state is shown after `Store.commit` has
        accepted the next one, and never before.

        >>> from taciturn import Privacy, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=10)
        >>> private.read(private.draft().to_bytes())
        State(t=0, releases=0, generation=0, spent mu = 0, secrets not shown)
        """
        state = self._as_now(read_state(path, layers))
        one = self.resumed(state)
        one._check_arrays(state)
        return replace(state, spent=one.spent_after(state.t, state.k))

    def prepare(
        self,
        state: State,
        X: Any,
        y: Any = None,
        users: Any = None,
        now: datetime | None = None,
    ) -> Prepared:
        """What `run` would return, before anything is spent: secret, and not to be shown before `commit`.

        >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pigd
        >>> private = pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1), Privacy(1.0, 1e-6), horizon=3)
        >>> prepared = private.prepare(private.start(), [[0.6, 0.8]], [1])
        >>> private.is_live(prepared.state), private.commit(prepared), private.is_live(prepared.state)
        (False, None, True)
        """
        must_be_state(state)
        return self._prepared(state, *self._reads.read(X, y), users, now)

    def _prepared(
        self, state: State, rows: Source, labels: Array, users: Any = None, now: datetime | None = None
    ) -> Prepared:
        """The same for examples that were read."""
        one = self._resumed(state, len(labels))
        excluded, records = one._excluded(state, len(labels), users, now)
        at, releases = one._learnt(state, rows, labels, excluded)
        return Prepared(state, one._next_state(state, at, records), releases)

    @property
    def _reads(self) -> Problem:
        """The problem that reads examples."""
        return self.problem

    def _learnt(
        self, state: State, rows: Source, labels: Array, excluded: NDArray[np.bool_] | None
    ) -> tuple[Standing, Releases]:
        """Where the stream stands after these examples, and its releases."""
        return self._loop(standing_of(state), rows, labels, excluded)

    def prepare_sums(self, state: State, blocks: Iterable[BlockSums], admission: Admission | None = None) -> Prepared:
        """What `run_sums` would return, before anything is spent: secret, and not to be shown before `commit`."""
        must_be_state(state)
        as_sum(self.learner)
        parts = list(blocks)
        for part in parts:
            expect("a block", part, isinstance(part, BlockSums), _BLOCK, of_many=True)
        rows = sum(part.count for part in parts)
        one = self._resumed(state, rows)
        self._check_admission(state, parts, admission)
        at, releases = one._learnt_from_sums(state, parts)
        records = None if admission is None else admission.records
        return Prepared(state, one._next_state(state, at, records), releases)

    def _learnt_from_sums(self, state: State, parts: list[BlockSums]) -> tuple[Standing, Releases]:
        """Where the stream stands after these sums, and its releases."""
        return self._sum_loop(standing_of(state), parts)

    def _next_state(self, state: State, at: Standing, users: UserRecords | None) -> State:
        """The next state, with its cost and its users' records; the same state, if there were no rows."""
        if at.t == state.t:
            return state
        if at.k == state.k:
            return after(state, at, state.spent, state.numbers, users)
        return after(state, at, self.spent_after(at.t, at.k), self._numbers, users)

    def spent_after(self, t: int, k: int) -> Cost:
        """The cost of all that was published by round t, in which the k-th release was the last; public."""
        return self.calibrated.cost(k)

    def learner_at(self, state: State) -> Learner:
        """The learner of the next rows: with the numbers that the stream began with and what its stages have found.

        >>> from taciturn import Privacy, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=10)
        >>> private.learner_at(private.start()) == private.learner
        True
        """
        return self.resumed(state).learner

    def admit(self, state: State, users: Any, now: datetime | None = None) -> Admission:
        """Decide which of the next rows count, from an id for each, if the unit is a user; for `run_sums`.

        Nothing is stored before `run_sums` commits it with the state.

        >>> from taciturn import Privacy, User, block_statistics, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=9, unit=User(rows=1))
        >>> state = private.start()
        >>> admission = private.admit(state, ["anna"])
        >>> sums = block_statistics(private.learner, None, [[0.5]], excluded=admission.to_bytes())
        >>> state, releases = private.run_sums(state, [sums], admission)
        >>> len(releases)
        1
        """
        must_be_state(state)
        ids = users if hasattr(users, "__len__") else list(users)
        one = self._resumed(state, len(ids))
        if not isinstance(self.unit, User):
            raise InvalidInput("rows are admitted by their users where the unit is a user. State unit=User(rows=4).")
        excluded, records = one._excluded(state, len(ids), ids, now)
        assert excluded is not None
        assert records is not None
        return Admission(Secret(excluded), records, (state.lineage, *state.position))

    def admit_hashed(
        self, state: State, parts: Sequence[HashedRows], map: Map, now: datetime | None = None
    ) -> Admission:
        """The same decision, by workers: `parts` are the ids of the next rows, hashed under the key of `state.users`.

        `map` calls a function on each partition of the users, as `taciturn.engines.pool.Map` does. The outcome is that
        of `admit` on the ids, whatever the parts and partitions are (`taciturn.kernel.stream.hashed_rows` has the
        proof).
        """
        must_be_state(state)
        rows = sum(part.rows for part in parts)
        one = self._resumed(state, rows)
        unit, records = self.unit, state.users
        if not isinstance(unit, User) or records is None:
            raise InvalidInput("rows are admitted by their users where the unit is a user. State unit=User(rows=4).")
        rounds = np.arange(state.t + 1, state.t + rows + 1)
        decided = HashedAdmission(unit, records, self.compiled, self.problem.on_bad)
        counts, after = decided(parts, one._blocks(rounds), periods_of(unit, rounds, now), map)
        return Admission(Secret(~counts), after, (state.lineage, *state.position))

    def _check_admission(self, state: State, parts: list[BlockSums], admission: Admission | None) -> None:
        """Reject sums under a user's unit that were not made of the rows that count."""
        if not isinstance(self.unit, User):
            if admission is not None or not none_left_out(parts):
                raise InvalidInput("the unit of privacy is an example: every row counts. Leave admission= out.")
            return
        if admission is None:
            raise Unprovable(
                "the unit of privacy is a user, and sums do not tell how many rows of a user are in them. Decide which "
                "rows count by admit(state, users), which is committed with the stream, leave out the others by "
                "block_statistics(..., excluded=...), and give the admission."
            )
        if admission.used != (state.lineage, *state.position):
            raise StateConflict("these rows were admitted at another state. Call admit() on the newest one.")
        if not admission.fits(parts):
            raise StateConflict(
                "these sums are not of the rows that were admitted: they have other numbers of rows, or of rows "
                "without influence. Give excluded= to block_statistics, part by part."
            )

    def _excluded(
        self, state: State, rows: int, users: Any, now: datetime | None
    ) -> tuple[NDArray[np.bool_] | None, UserRecords | None]:
        """Which of the next rows do not count, if any, and the users' records after them."""
        unit = self.unit
        if not isinstance(unit, User):
            if users is not None:
                raise InvalidInput(
                    "users= has no effect where the unit of privacy is an example. State whose data is protected, as "
                    "in unit=User(rows=4), or leave users= out."
                )
            return None, None
        if users is None:
            raise InvalidInput("the unit of privacy is a user: give users=, an id for each row.")
        assert state.users is not None
        rounds = np.arange(state.t + 1, state.t + rows + 1)
        blocks, periods = self._blocks(rounds), periods_of(unit, rounds, now)
        counts, records = admit(unit, state.users, users, blocks, periods, self.compiled, self.problem.on_bad)
        return ~counts, records

    def _blocks(self, rounds: Integers) -> Integers:
        """The blocks that these rounds lie in, in which a user's rows are counted."""
        return self.timetable.block_of(rounds)

    @cached_property
    def _pass(self) -> Pass:
        return pass_for(self.learner, self.calibrated, self.compiled)

    @cached_property
    def _loop(self) -> Loop:
        return Loop(self._pass, self.learner, self.timetable, self.seed, self.compiled)

    @cached_property
    def _sum_loop(self) -> SumLoop:
        way: Any = self._pass  # of a learner of sums
        return SumLoop(way, as_sum(self.learner), self.timetable, self.seed)

    def resumed(self, state: State) -> Self:
        """The private learner with the calibration that the stream of `state` began with, perhaps on another machine.

        Every method that takes a state does this by itself. The `calibrated` mechanism and the `guarantee` of the
        result are those of the stream.

        The last bits of calibrated numbers depend on the processor. Those of a state are validated and then taken as
        they are, if they keep the budget as this machine counts it and their noise is about that of these settings. The
        file is trusted for the rest, as it is for its exact statistics: guard it as you guard the data.

        >>> from taciturn import Privacy, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=10)
        >>> private.resumed(private.start()) is private
        True
        """
        must_be_state(state)
        return self._resumed(state, 0)

    def _resumed(self, state: State, rows: int) -> Self:
        """The same, after checking that the state may go on with so many rows."""
        self._check(state, rows)
        if self._numbers is state.numbers:  # of a state that this object made
            return self
        for one in (self, *self._elsewhere):
            if same(one._numbers, state.numbers):
                return one
        one = self._restored(state.numbers)
        if not same(one._numbers, state.numbers):
            raise damaged("they are not those of a stream")
        self._elsewhere.append(one)
        return one

    @cached_property
    def _elsewhere(self) -> deque[Self]:
        """Cache of the last few calibrations of streams that began with other numbers."""
        return deque(maxlen=8)

    def _restored(self, numbers: Arrays) -> Self:
        """A copy with the numbers of a state, validated."""
        parts: dict[str, Arrays] = {"learner": {}, "mechanism": {}}
        for name, array in numbers.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = array
        derived = derived_from(self.learner)
        if derived.keys() != parts["learner"].keys():
            raise damaged("they are not those of this learner")
        one = copy(self)
        if derived:
            values = {name: float(stored(parts["learner"], name)) for name in derived}
            object.__setattr__(one, "learner", self.learner.restored(values))
        try:
            sample = one._certified
        except InvalidInput as problem:
            raise damaged("no certificate follows from them") from problem
        certified = numbers.get("certificate", np.empty(0))
        if certified.shape != sample.shape or not np.allclose(certified, sample, rtol=_SAME_BOUND, atol=0.0):
            raise StateConflict(OTHER_SETTINGS)
        object.__setattr__(one, "_certified", certified)
        object.__setattr__(one, "calibrated", one._calibrated_by(parts["mechanism"]))
        if not one.guarantee.proven and (self.guarantee.proven or not one._costs_no_more_than(self)):
            raise damaged(TOO_DEAR)
        if not one._has_noise_of(self):
            raise damaged("their noise is not that of these settings on any machine")
        return one

    def _has_noise_of(self, other: Stream) -> bool:
        """Whether the noise is no smaller than the other's, up to what fits on two machines differ by.

        Earlier releases were made with the numbers of the state. Numbers that are valid by themselves, but were not
        those of the earlier releases, would make the whole stream cost more than either.
        """
        count = len(self.timetable.following(0, self.timetable.horizon or 2**16, 2**16))
        some = np.unique(np.geomspace(1, max(count, 1), 32).astype(np.int64))
        mine, others = ([one.calibrated.noise_sd(int(k)) for k in some] for one in (self, other))
        return bool(np.all(np.array(mine) >= np.array(others) * (1.0 - _SAME_FIT)))

    def _calibrated_by(self, numbers: Arrays) -> Calibrated:
        """The mechanism of these numbers; one without `restore` must come out the same on this machine."""
        certificate = self.certificate
        size = self.learner.statistic_size
        made = None
        if restores(self.mechanism):
            try:
                with np.errstate(all="ignore"):
                    made = self.mechanism.restore(
                        certificate, self.timetable, size, self.privacy, self.calibration, numbers
                    )
            except (InvalidInput, Unprovable, ArithmeticError, ValueError) as problem:
                raise damaged("no noise can be drawn by them") from problem
        if made is not None:
            return made
        if not same(self._mechanism_numbers, numbers):
            raise StateConflict(OTHER_SETTINGS)
        return self.calibrated

    def _costs_no_more_than(self, other: Stream) -> bool:
        """Up to rounding; for calibrations that are known to deliver less than they claim."""
        mine, others = self.guarantee.delivered.parts, other.guarantee.delivered.parts
        return all(a <= b * (1.0 + _SAME_BOUND) for a, b in zip(mine, others, strict=True))

    @cached_property
    def _numbers(self) -> Arrays:
        """The calibrated numbers that a state stores."""
        mechanism = {f"mechanism.{name}": array for name, array in self._mechanism_numbers.items()}
        derived = {f"learner.{name}": np.array(number) for name, number in derived_from(self.learner).items()}
        return mechanism | derived | {"certificate": self._certified}

    @cached_property
    def _mechanism_numbers(self) -> Arrays:
        """The mechanism's; of one that is calibrated anew, the first standard deviations."""
        numbers = self.calibrated.numbers if restores(self.mechanism) else None
        if numbers is not None:
            return numbers
        rounds = self.timetable.following(0, self.timetable.horizon or 64, 64)
        return {"noise_sd": np.array([self.calibrated.noise_sd(k) for k in range(1, len(rounds) + 1)])}

    @cached_property
    def _certified(self) -> Array:
        """Some values of the certificate, which tell a class from one that was redefined under its name."""
        certificate = self.certificate
        rounds = self.timetable.following(0, self.timetable.horizon or 64, 4096)
        some = np.unique(np.geomspace(1.0, max(len(rounds), 1), 64).astype(np.int64))[: len(rounds)] - 1
        norm = math.inf if certificate.norm is None else certificate.norm
        return np.array([certificate.magnitude, norm, *certificate.at(rounds[some])])

    def _check(self, state: State, rows: int) -> None:
        """Reject a state of other settings, or rows past the horizon, before anything changes."""
        timetable = self.timetable
        simulated = state.lineage == SIMULATION
        fits = simulated == (self.seed is not None) and timetable.fits(state.t, state.k)
        if state.settings != self.settings or not fits:
            raise StateConflict(OTHER_SETTINGS)
        if timetable.horizon is None or state.t + rows > timetable.horizon:
            self._check_rounds(state.t + rows)

    @cached_property
    def _most_rounds(self) -> float:
        """Rounds up to which the certificate is proven."""
        most = None if self.mechanism.by_block else self.learner.certificate.most
        return math.inf if most is None else most

    def _check_rounds(self, last: int) -> None:
        """Reject rounds past the horizon, or past those for which the certificate is proven."""
        horizon = self.timetable.horizon
        if horizon is None and last > self._most_rounds and not self.calibrated.by_block:
            raise BudgetExhausted(
                f"round {last} lies past the {self._most_rounds:,} examples up to which the certificate of "
                f"{type(self.learner).__name__} is proven. Start a new stream, with a budget of its own."
            )
        if horizon is not None and last > horizon:
            raise BudgetExhausted(
                f"round {last} lies past the horizon of {horizon}, for which the noise was planned. Plan a "
                "longer one before the first example, or none, with a schedule that does not end."
            )

    def _check_arrays(self, state: State) -> None:
        """Reject a state out of a file whose arrays are not those of this stream: compiled loops believe their shapes.

        An axis that is empty at the start has a row for each example, or for each release. Learners and mechanisms
        of one's own may store what they like.
        """
        if (state.users is not None) != isinstance(self.unit, User):
            raise damaged("there should be records of users where the unit is a user, and only there", "users' records")
        if not has_known_arrays(self.learner, self.calibrated):
            return
        start, coder = self.calibrated.start(), self.calibrated.coder
        integers = coder is not None and coder.integer
        at = standing_of(state)
        kept: tuple[tuple[str, Arrays, Arrays, int], ...] = (
            ("exact", self.learner.start(), at.exact, state.t),
            ("secret", start[0], at.secret, state.k),
            ("public", start[1], state.public, state.k),
            ("the", {"point": self.learner.first_point}, {"point": state.point}, 0),
        )
        for part, expected, found, rows in kept:
            if expected.keys() != found.keys():
                raise damaged(f"{part} arrays should be {', '.join(expected) or 'none'}", "arrays")
            for name, array in expected.items():
                kinds = {array.dtype, np.dtype(np.int64)} if integers and part == "secret" else {array.dtype}
                shape = tuple(length or rows for length in array.shape)
                if found[name].shape != shape or found[name].dtype not in kinds:
                    raise damaged(f"{part} {name} should be {array.dtype} of shape {shape}", "arrays")


def must_be_state(state: object) -> None:
    """Reject anything else, without showing it: it may be examples."""
    if not isinstance(state, State):
        raise InvalidInput(
            f"the first argument is a State, got {type(state).__name__}. Begin with state = private.start(), and "
            "continue with the state that each call returns: state, releases = private.run(state, X, y)."
        )
