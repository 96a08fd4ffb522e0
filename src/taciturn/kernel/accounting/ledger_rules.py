"""The rules of a ledger: what may be reserved, spent and committed, as pure functions of records.

A ledger is a set of lines, one for each stream or one-off release of a population, under its terms. A rule looks at
records alone and returns the record that follows, or raises an error; nothing here reads or writes anything. The same
rules hold in memory (`taciturn.accounting.memory_book`) and in a database (`taciturn.store.book`), which make a check
and the change that it allows one step.

**Ledgers that renew.** The unit of such a ledger is a user and a period P of a public clock, and its budget B is for
each period by itself. Every row has a period: for a stream with `User(period=P)` that in which its process learnt the
row (`UserRecords`, where it never goes back); for a stream of users without a period, that of the ledger's clock at the
row's commit, or, if the clock was set back, the one in which the stream was opened or had rows before; for the rows of
a one-off fit, that of the ledger's clock as it enters. No content of a row is read for it. A stream of cost C *holds* C
in a set H of periods. It is opened with H = {first, first + 1, …}, where `first` is the period of its first row, or the
present one before there is a row. When it is closed, or has released all that it can (`finished`), H becomes {first, …,
last}, where `last` is the period of its last row; for a stream that went on in a database that was lost, the present
one. A one-off charge or fit holds its cost in the present period alone.

*Claim.* For every user and every period p: two worlds that differ in the contents of the rows which the user has
contributed in p, to all streams of the ledger together, give releases, of all streams and at all times, that satisfy B.

*Proof.* (i) *Each stream.* The rows of a stream in p are among those that its guarantee is about: all rows of the user
in p by the stream's own periods, or all rows of the user. So a stream with rows in p adds at most C, over all its later
releases, and one without adds nothing: its releases are computed from other rows and from releases. (ii) *Rows in p
imply that p is in H.* A commit is rejected, in one step with the check, unless the periods of all rows of the new state
are at least `first`, and it stores the last of them as `last`; a store elsewhere has the ledger do that before its own
commit (`hold`). So every row that a release can depend on has a period of at least `first`, and of at most `last` when
H is cut there; then nothing more is committed, except rows after the last release of a finished stream, on which no
release depends. A state that has learnt rows before it enters, by a fork, a loaded file or an adoption, enters with the
periods of its first and last row: its releases depend on those rows, too. If its rows have no periods of their own, it
enters with all periods up to the last that the ledger has counted rows in, or would now (`entering`). (iii) *Sums.* For
every p the costs of the streams with p in H are within B, at every moment: a stream enters only if that holds with it
for each p ≥ first (the sum can only rise at the `first` of some stream, so a finite number of sums is compared), and H
only shrinks after that. (iv) Costs add under adaptive composition, so by (i) and (ii) the total for the rows of p is
the sum over streams with p in H. ∎

The proof uses no property of any clock, except after a lost database (`taciturn.store.restore`). Clocks decide what
"this month" means, so the ledger also rejects a commit whose last rows are not of the present period of its own clock,
or of the one before it (they were learnt before a border, and are committed after it), up to `SKEW`. The clock of a
ledger is that of the PostgreSQL server, or of the machine with the SQLite file. A row that is given to a model again in
a later period is a contribution of that period, too. A user who stays pays in each period; `user_over` says how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, cast

from taciturn.kernel.accounting.cost import Cost, gaussian, total
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.rounding import rounded_down, rounded_up
from taciturn.kernel.accounting.unit import ClockPeriod, covers, period_name, period_of
from taciturn.kernel.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable, value_or_type
from taciturn.kernel.frozen import unfrozen

Position = tuple[int, int, int, str]
"""Generation, examples seen, releases made and a random token: a state is live only if all are the newest."""

SECOND_STREAM = "open a second, separately charged stream with Private.fork"

SKEW = timedelta(minutes=5)
"""How far the clock of a process may be ahead of that of a renewing ledger."""


class Learnt(NamedTuple):
    """When the rows of a state were learnt, for ledgers that renew.

    Attributes
    ----------
    first, last : int, optional
        Numbers of the periods of its first and last row (`taciturn.kernel.accounting.unit.period_of`). None if there
        are no rows, or if rows have no period of their own: then they are those of the ledger's clock.
    finished : bool
        Whether nothing more can be released.
    """

    first: int | None = None
    last: int | None = None
    finished: bool = False


EARLIEST = 1
"""A period before all others, for rows whose period is not known."""

JUST_NOW = Learnt()
"""Rows of the present period, of a stream that goes on."""

ONE_OFF = Learnt(finished=True)
"""Rows of the present period, and all that is ever released from them."""


class Clock(NamedTuple):
    """The public clock of a ledger that renews: its kind of period, and the time."""

    period: ClockPeriod
    now: datetime

    @property
    def number(self) -> int:
        """The present period."""
        return period_of(self.period, self.now)

    @property
    def latest(self) -> int:
        """The last period of which rows are accepted: the present one, or the next, shortly before a border."""
        return period_of(self.period, self.now + SKEW)

    def name(self, number: int) -> str:
        """What a period is called."""
        return period_name(self.period, number) if number > EARLIEST else "periods before all others"


@dataclass(frozen=True, slots=True)
class Line:
    """One lineage in a ledger: the most it can cost, what it has cost, and its live generation.

    `live` is None for a stream whose states a store guards, and for a one-off release. `closed` says that nothing
    more is released; what was reserved stays reserved. In a ledger that renews, `first` and `last` are the periods of
    its first and its last row, or those in which it was opened, and `finished` says that it has released all that it
    can. In others they are None and False.
    """

    reserved: Cost
    spent: Cost
    live: Position | None = None
    closed: bool = False
    first: int | None = None
    last: int | None = None
    finished: bool = False

    def holds(self, period: int) -> bool:
        """Whether its reservation counts in a period; in a ledger that does not renew, always.

        >>> from taciturn.kernel.accounting.cost import FREE
        >>> stream = Line(gaussian(0.1), FREE, first=5, last=6)
        >>> [stream.holds(period) for period in (4, 5, 6, 7)]
        [False, True, True, True]
        >>> [closed(stream).holds(period) for period in (4, 5, 6, 7)]
        [False, True, True, False]
        """
        if self.first is None or self.last is None:
            return True
        return self.first <= period and (period <= self.last or not (self.closed or self.finished))


_UnfrozenLine = unfrozen(Line)  # every call of `run` makes a line


@dataclass(frozen=True)
class Terms:
    """What a ledger is about, fixed when it is created.

    Attributes
    ----------
    privacy : Privacy, optional
        The budget of all models together; without one the ledger only counts.
    population : str
        The people it is about, by a name.
    unit : str
        Whose data is protected: an example, or a user, perhaps of one period
        (`taciturn.kernel.accounting.unit.LEDGER_UNITS`).
    neighbours : {"replace", "zero-out", "label", "add-remove"}, optional
        The relation of all costs; None until the first cost decides it.
    renews : bool
        Whether the budget is for each period of the unit by itself: what ended before a period does not count in it.
    """

    privacy: Privacy | None = None
    population: str = "people"
    unit: str = "example"
    neighbours: str | None = None
    renews: bool = False

    def __post_init__(self) -> None:
        if self.renews and self.unit in ("example", "user"):
            raise InvalidInput(
                f"only the budget of a period renews, and the unit is one {self.unit}. State a unit such as 'user and "
                "month', or leave out renews."
            )

    @property
    def period(self) -> ClockPeriod | None:
        """The kind of period by which it renews; None if it does not."""
        return cast(ClockPeriod, self.unit.removeprefix("user and ")) if self.renews else None


class Change(Protocol):
    """A line after a change; an error if the change is not allowed. Pure: it may be called repeatedly."""

    def __call__(self, line: Line, clock: Clock | None) -> Line: ...


def admitted(
    terms: Terms, known: Line | None, others: Iterable[Line], line: Line, neighbours: str, clock: Clock | None = None
) -> bool:
    """Whether a new lineage enters (True), or goes on as it is (False); otherwise an error.

    `known` is the lineage's present line, if there is one, and `others` are all lines.
    """
    check_relation(terms.neighbours, neighbours)
    if known is not None:
        check_goes_on(known, line)
        return False
    for period, reserved in sums_from(line.first, others):
        if period is not None and not line.holds(period):
            continue
        which = "" if clock is None or period is None else clock.name(period)
        check_room(terms.privacy, reserved, line.reserved, which)
    return True


def sums_from(first: int | None, lines: Iterable[Line]) -> list[tuple[int | None, Cost]]:
    """What is reserved in `first`, and in each later period in which that may be more: there a stream begins.

    The sum of all lines, if `first` is None: the ledger does not renew.

    >>> from taciturn.kernel.accounting.cost import FREE
    >>> lines = [Line(gaussian(0.1), FREE, first=4, last=4, closed=True), Line(gaussian(0.2), FREE, first=7, last=7)]
    >>> [(period, round(cost.mu_squared, 6)) for period, cost in sums_from(4, lines)]
    [(4, 0.1), (7, 0.2)]
    """
    lines = list(lines)
    if first is None:
        return [(None, total(line.reserved for line in lines))]
    later = {line.first for line in lines if line.first is not None and line.first > first}
    return [
        (period, total(line.reserved for line in lines if line.holds(period))) for period in (first, *sorted(later))
    ]


def entering(line: Line, learnt: Learnt, clock: Clock | None, others: Iterable[Line]) -> Line:
    """The line of a stream that enters, with its periods; `others` are all lines.

    Rows whose period is not known are of no later period than any row that a line has counted, or
    than those that are accepted now: the clock may have been set back since.
    """
    if clock is None:
        return line
    here = clock.number
    if learnt.last is not None:
        _check_not_ahead(learnt.last, here, clock)
        last = learnt.last
    elif learnt.first is not None:
        last = max([clock.latest, *(other.last for other in others if other.last is not None)])
    else:
        last = here
    first = here if learnt.first is None else learnt.first
    last = max(first, last)
    return replace(line, first=first, last=last, finished=learnt.finished)


def learnt_by(at: Position) -> Learnt:
    """When the rows of a state were learnt of which nothing else is known."""
    return Learnt(EARLIEST) if at[1] else JUST_NOW


def extended(line: Line, learnt: Learnt, clock: Clock | None, releases: bool) -> Line:
    """The line of a stream that has learnt more rows, as `learnt` says of all its rows; see the module."""
    if clock is None or line.first is None or line.last is None:
        return line
    if line.closed:
        raise _ended()
    if line.finished:
        if releases:
            raise StateConflict(
                "this stream has released all that it could, and does not count in later periods of its ledger. Start "
                f"a new one, or {SECOND_STREAM}."
            )
        return line
    here = clock.number
    last = max(line.last, here) if learnt.last is None else learnt.last
    first = last if learnt.first is None else learnt.first
    if first < line.first:
        raise StateConflict(
            f"this stream counts from {clock.name(line.first)} on, and has rows of an earlier period. Nothing was "
            "committed: learn from them again, with the present clock; or open it anew with Private.fork."
        )
    _check_not_ahead(last, max(line.last, here), clock)
    if last < here - 1:
        raise StateConflict(
            f"these rows were learnt in {clock.name(last)}, and the ledger is in {clock.name(here)}. Nothing was "
            "committed: learn from them again, without now= or with the present time."
        )
    return replace(line, last=max(line.last, last), finished=learnt.finished)


def _check_not_ahead(last: int, here: int, clock: Clock) -> None:
    """Reject rows of a period that has not begun."""
    if last > max(here, clock.latest):
        raise StateConflict(
            f"these rows were learnt in {clock.name(last)}, and the ledger is in {clock.name(here)}. Nothing was "
            "committed: set the clock of this machine, leave out now=, or wait until the ledger's clock is there."
        )


def _ended() -> StateConflict:
    return StateConflict(f"this stream was closed. Start a new one, or {SECOND_STREAM}.")


def check_relation(settled: str | None, neighbours: str) -> None:
    """Reject costs of another neighbour relation than the one that is `settled`."""
    if neighbours != (settled or neighbours):
        raise Unprovable(
            f"this ledger's costs are for {value_or_type(settled)} neighbours, this stream's for "
            f"{value_or_type(neighbours)}: they do not add. Use one relation for all models on a stream, or a ledger "
            "for each."
        )


def check_unit(unit: str, of_stream: str) -> None:
    """Reject a stream whose unit of privacy is less than the ledger's."""
    if not covers(unit, of_stream):
        if of_stream == "example":
            remedy = "State rows_per_user, with user in a contract and users= in Python, or unit=User(rows=4)"
        else:
            remedy = "Leave out without_id" if of_stream.startswith("user or row") else "Leave out period"
        raise Unprovable(
            f"this ledger's budget is for one {unit}, and this stream protects one {of_stream}, which is less. "
            f"{remedy}; or use another ledger."
        )


def check_entry(line: Line, unit: str, of_stream: str) -> None:
    """Reject a stream whose unit is less than the ledger's, or that has spent more than it reserves."""
    check_unit(unit, of_stream)
    if not at_most(line.spent, line.reserved):
        raise BudgetExhausted(
            f"this stream would reserve {line.reserved} and has spent {line.spent}. Go on with its settings."
        )


def check_room(privacy: Privacy | None, reserved: Cost, cost: Cost, period: str = "") -> None:
    """Reject a cost that does not fit a budget in addition to what is `reserved`, in a period if it is named."""
    needed = total([reserved, cost])
    if privacy is not None and not needed.within(privacy):
        raise NoRoom(privacy, reserved, cost, period)


class NoRoom(BudgetExhausted):
    """A cost that does not fit a budget; its sentence takes milliseconds, and is made after all locks have ended."""

    def __init__(self, privacy: Privacy, reserved: Cost, cost: Cost, period: str = "") -> None:
        super().__init__(privacy, reserved, cost)
        self._terms = privacy, reserved, cost
        self._period = period

    def __str__(self) -> str:
        privacy, reserved, cost = self._terms
        within = f" in {self._period}" if self._period else ""
        remedy = "Give the model a smaller budget; that of a ledger is fixed."
        if self._period:
            remedy = (
                "Give the model a smaller budget; or close streams that have ended, which do not count after the "
                "period of their last row."
            )
        needed, all_of_it = (each.epsilon(privacy.delta) for each in (cost, total([reserved, cost])))
        left = gaussian(largest_mu(privacy, reserved) ** 2).epsilon(privacy.delta) * (1.0 + 1e-9)  # past the bisection
        return (
            f"opening this stream would reserve epsilon = {rounded_up(needed, 4)} at delta = {privacy.delta:g}, and "
            f"epsilon = {rounded_down(left, 4)} of the ledger's {privacy.epsilon:g} is left{within}: all streams "
            f"together would have epsilon = {rounded_up(all_of_it, 4)}. {remedy}"
        )


class rejections_told:  # noqa: N801 - read as a function, in a `with` statement
    """Turn what was found under a lock into the error that users see, after the lock.

    Not a generator: since Python 3.12 one that raises another error than it was given leaves a reference cycle, which
    keeps a ledger that is no longer used, and its connections, until the next garbage collection.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, NoRoom):
            raise BudgetExhausted(str(error)) from None


def largest_mu(privacy: Privacy, reserved: Cost) -> float:
    """The mu of the largest Gaussian cost that fits a budget in addition to what is `reserved`.

    >>> round(largest_mu(Privacy(1.0, 1e-6), Cost()) / Privacy(1.0, 1e-6).mu, 6)
    1.0
    """
    low, high = 0.0, privacy.mu
    for _ in range(40):
        middle = (low + high) / 2.0
        fits = total([reserved, gaussian(middle**2)]).within(privacy)
        low, high = (middle, high) if fits else (low, middle)
    return low


def check_goes_on(known: Line, line: Line) -> None:
    """Reject a known lineage that does not stand where `line` does, reserved another cost, or has ended."""
    if known.closed:
        raise _ended()
    if (known.live is None) != (line.live is None):
        raise StateConflict(
            "this stream's states are guarded by a store, and not by this ledger. Go on with it in its store, or "
            f"{SECOND_STREAM}."
            if known.live is None
            else "this stream's states are guarded by this ledger, and not by a store. Go on with Private.load."
        )
    if line.live is not None:
        _check_live(known, line.live)
    if line.reserved != known.reserved:
        raise StateConflict("this stream reserved another cost when it opened. Go on with its settings.")


def committed(
    line: Line,
    used: Position,
    following: Position,
    spent: Cost,
    learnt: Learnt = JUST_NOW,
    clock: Clock | None = None,
) -> Line:
    """The line after a commit."""
    if line.closed:
        raise _ended()
    _check_live(line, used)
    check_step(used, following, line.spent, spent, line.reserved)
    line = extended(line, learnt, clock, following[2] > used[2])
    new = _UnfrozenLine(line.reserved, spent, following, line.closed, line.first, line.last, line.finished)
    new.__class__ = Line
    return new  # type: ignore[no-any-return]


def check_step(used: Position, following: Position, before: Cost, spent: Cost, reserved: Cost) -> None:
    """Reject a commit that does not go forward, or spends more than was reserved."""
    forward = following[0] > used[0] and following[1] >= used[1] and following[2] >= used[2]
    if not forward or not at_most(before, spent):
        raise StateConflict("a stream's generations and its cost only rise. Go on from its newest state.")
    if not at_most(spent, reserved):
        raise BudgetExhausted(f"this stream reserved {reserved} and would have spent {spent}.")


def mirrored(line: Line, spent: Cost, finished: bool = False) -> Line:
    """The line after its store told what was spent, and whether the stream has finished."""
    if line.live is not None:
        raise StateConflict("this stream's states are guarded by this ledger, and not by a store. Go on with commit.")
    if not at_most(spent, line.reserved):
        raise BudgetExhausted(f"this stream reserved {line.reserved} and has spent {spent}.")
    line = replace(line, finished=line.finished or (finished and line.first is not None))
    return replace(line, spent=spent) if at_most(line.spent, spent) else line


def closed(line: Line) -> Line:
    """The line after its stream ended."""
    return replace(line, closed=True)


def used_up(line: Line, clock: Clock | None) -> Line:
    """The line of a stream that ended, and may have learnt until now and spent all that it reserved."""
    last = line.last
    if clock is not None and last is not None and not (line.closed or line.finished):
        last = max(last, clock.latest)
    return replace(line, closed=True, spent=line.reserved, last=last)


def _check_live(line: Line, at: Position) -> None:
    if line.live is None or at != line.live:
        live = "" if line.live is None else f", which is generation {line.live[0]}"
        raise StateConflict(
            f"generation {at[0]} of this stream is not its live state{live}: it was "
            "used already, or is a copy or an old snapshot. Releasing its next round again would spend twice. "
            f"Go on from the newest state, or {SECOND_STREAM}."
        )


def at_most(less: Cost, more: Cost) -> bool:
    """Whether no part of one cost exceeds that of the other."""
    return less is more or (
        less.mu_squared <= more.mu_squared
        and less.rho <= more.rho
        and less.extra_epsilon <= more.extra_epsilon
        and less.extra_delta <= more.extra_delta
        and less.plain_epsilon <= more.plain_epsilon
        and less.plain_delta <= more.plain_delta
    )


def written(cost: Cost) -> list[str]:
    """A cost as text, without rounding; `read_cost` reads it.

    >>> read_cost(written(gaussian(0.1))) == gaussian(0.1)
    True
    """
    return [part.hex() for part in cost.parts]


def read_cost(parts: Sequence[str]) -> Cost:
    """What `written` wrote."""
    return Cost(*(float.fromhex(part) for part in parts))


def entered_as(name: str | None, follows: str | None) -> tuple[str, dict[str, str]]:
    """The kind of the event with which a stream of a store is entered, and what that says of the stream."""
    if follows is not None:
        return "adopted", {"stream": name or "", "from": follows}
    return "opened", {} if name is None else {"stream": name}


def periods_told(line: Line) -> dict[str, Any]:
    """What the history says of the periods of a stream that enters."""
    if line.first is None:
        return {}
    return {"periods": [line.first, line.last]} | ({"finished": True} if line.finished else {})


def ended_told(line: Line) -> dict[str, Any]:
    """What the history says of the periods of a stream that has ended."""
    return {} if line.first is None else {"last": line.last}


def unknown_stream() -> StateConflict:
    """The error about a lineage that is not in the ledger."""
    return StateConflict("this ledger does not know the stream. Open it first.")
