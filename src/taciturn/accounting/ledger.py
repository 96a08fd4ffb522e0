"""The ledger of a population: what was reserved and spent on these people, over all models that learn from them.

Every stream, one-off fit and search on the same people writes to one ledger. It is monotone, and it closes the two ways
in which a guarantee is usually lost without anyone noticing: several models on the same people (their costs add, and
the sum must fit the ledger's budget), and a state used twice (each generation of a lineage is accepted once).

A ledger is in memory, for experiments, or in a database that all processes and teams share: a SQLite file, or
PostgreSQL (`taciturn.store`). The checks are functions of records alone, the same for all three
(`taciturn.kernel.accounting.ledger_rules`); what differs is how a check and the change it allows are made one step: in
memory by an atomic replacement (`taciturn.accounting.memory_book`), in a database by a transaction
(`taciturn.store.book`).
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, get_args

from taciturn.accounting import ledger_report
from taciturn.accounting.history import Event, Verified
from taciturn.accounting.memory_book import MemoryBook
from taciturn.errors import InvalidInput, StateConflict, Unprovable, expect, integer, one_of
from taciturn.kernel.accounting import ledger_rules as rules
from taciturn.kernel.accounting.cost import FREE, Cost, gaussian, total
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.ledger_rules import EARLIEST, JUST_NOW, Change, Clock, Learnt, Line, Position, Terms
from taciturn.kernel.accounting.unit import LEDGER_UNITS, Relation


class Book(Protocol):
    """Where a ledger's records are: in memory, or in a database."""

    @property
    def address(self) -> str | None:
        """Where another process finds it, without passwords; None in memory."""

    @property
    def witnessed_by(self) -> str | None:
        """Address of its witness, without passwords, if there is one."""

    @property
    def terms(self) -> Terms:
        """What the ledger is about."""

    def lines(self) -> Mapping[str, Line]:
        """The lineages, by name."""

    def events(self) -> Sequence[Event]:
        """The history."""

    def last(self) -> tuple[int, str]:
        """How many events there are, and the hash of the last, stored apart from them."""

    def clock(self) -> Clock | None:
        """The clock of a ledger that renews."""

    def enter(
        self, lineage: str, line: Line, neighbours: str, kind: str, content: dict[str, Any], learnt: Learnt
    ) -> None:
        """Add a lineage if it fits, or check that a known one goes on; see `admitted`."""

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        """Replace a line by what `changed` makes of it, atomically.

        Add an event of this kind, `closed` or `finished`, if the line is that after the change, and was not before.
        """


class Ledger:
    """The privacy cost of all models that learn from one population, under one budget.

    All of a stream's cost is reserved when it opens, or rejected then: no stream is stopped half-way.

    Parameters
    ----------
    where : Privacy or str or path, optional
        A budget, for a ledger in memory; or the address of a ledger that `create` made: a SQLite file, or
        `postgresql://…`. Without it the ledger is in memory and only counts: each model still has its own budget.
    population : str, optional
        Which ledger of the database; needed only if there are several.
    witness : str or path, optional
        A second database, elsewhere, that notices when this one was restored from a backup.
    unit : {"example", "user", "user and month", …}, optional
        Whose data is protected, for a ledger in memory: by default an example. One in a database has its own.
    renews : bool
        Whether the budget of a ledger in memory is for each period by itself, as in `create`.

    Examples
    --------
    Two models on the same people, under one budget:

    >>> from taciturn import Ledger, Privacy
    >>> from taciturn.kernel.accounting.cost import gaussian
    >>> ledger = Ledger(Privacy(1.0, 1e-6))
    >>> ledger.open("first", gaussian(0.04))
    >>> ledger.open("second", gaussian(0.04))
    Traceback (most recent call last):
    ...
    taciturn.errors.BudgetExhausted: opening this stream would reserve epsilon = 0.8342 at delta = 1e-06, and ...

    The same, for all processes and teams, in a file:

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget.db", Privacy(1.0, 1e-6), population="customers")
    >>> Ledger(f"{folder.name}/budget.db").population
    'customers'
    >>> folder.cleanup()

    A ledger in memory checks generations in its own process only: a file loaded in another process is trusted.
    """

    def __init__(
        self,
        where: Privacy | str | os.PathLike[str] | None = None,
        *,
        population: str | None = None,
        witness: str | os.PathLike[str] | None = None,
        unit: str | None = None,
        renews: bool = False,
    ) -> None:
        if unit is not None:
            one_of("unit", unit, LEDGER_UNITS)
        if isinstance(where, str | os.PathLike):
            from taciturn.store import book

            self._book: Book = book.open_book(where, population, witness)
            if unit not in (None, self.unit):
                raise Unprovable(f"the unit of {where} is one {self.unit}, not one {unit}. Create another ledger.")
            if renews and not self.renews:
                raise Unprovable(f"the budget of {where} does not renew. Create another ledger, with renews=True.")
            return
        known = where is None or isinstance(where, Privacy)
        expect("the argument", where, known, 'Privacy(epsilon=1.0, delta=1e-6) or an address such as "budget.db"')
        if witness is not None:
            raise InvalidInput("a ledger in memory has no witness. Create it in a file: Ledger.create('budget.db', …).")
        self._book = MemoryBook(Terms(where, population or "people", unit or "example", renews=renews))

    @classmethod
    def create(
        cls,
        address: str | os.PathLike[str],
        privacy: Privacy,
        *,
        population: str = "people",
        neighbours: str | None = None,
        unit: str = "example",
        renews: bool = False,
        witness: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Create a ledger in a database, and open it.

        Parameters
        ----------
        address : str or path
            A SQLite file, which is made if it does not exist, or `postgresql://…`.
        privacy : Privacy
            The budget of all models that learn from these people, together.
        population : str
            A name of the people whose data is protected.
        neighbours : {"replace", "zero-out", "label", "add-remove"}, optional
            The neighbour relation of all costs; by default that of the first stream.
        unit : {"example", "user", "user and day", "user and week", "user and month", …}
            Whose data is protected. A ledger of users rejects streams that protect single examples; one of users and
            months also accepts streams that count a user's rows anew every month.
        renews : bool
            Whether the budget is for each period by itself: a stream counts in every period from the one in which it
            was opened to that of its last row, and no longer. A user who stays pays in each period: see `user_over`.
        witness : str or path, optional
            A second database, elsewhere, that notices when this one was restored from a backup.
        """
        from taciturn.store import book

        expect("privacy", privacy, isinstance(privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
        known = neighbours is None or neighbours in get_args(Relation)
        expect("neighbours", neighbours, known, '"replace", "zero-out", "label" or "add-remove"')
        one_of("unit", unit, LEDGER_UNITS)
        return cls.of_book(book.create_book(address, Terms(privacy, population, unit, neighbours, renews), witness))

    @classmethod
    def of_book(cls, book: Book) -> Ledger:
        """A ledger whose records are in `book`."""
        ledger = cls.__new__(cls)
        ledger._book = book
        return ledger

    # What it is about, and what it holds.

    @property
    def privacy(self) -> Privacy | None:
        """The budget; None if the ledger only counts."""
        return self._book.terms.privacy

    @property
    def population(self) -> str:
        """The name of the people it is about."""
        return self._book.terms.population

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        return self._book.terms.unit

    @property
    def renews(self) -> bool:
        """Whether its budget is for each period of the unit by itself."""
        return self._book.terms.renews

    @property
    def neighbours(self) -> str | None:
        """The neighbour relation of all its costs; None before the first."""
        return self._book.terms.neighbours

    @property
    def address(self) -> str | None:
        """Where it is, without passwords; None in memory."""
        return self._book.address

    @property
    def witness(self) -> Any:
        """Its witness (`taciturn.store.witness.Witness`); None without one."""
        return getattr(self._book, "witness", None)

    @property
    def spent(self) -> Cost:
        """The cost of every release made so far; if it renews, by streams that count in the present period."""
        return total(line.spent for line in self._present())

    @property
    def reserved(self) -> Cost:
        """The cost of every release made or still to come in the streams opened so far.

        If the ledger renews, in those that count in the present period.
        """
        return total(line.reserved for line in self._present())

    def _present(self) -> list[Line]:
        """The lines that count now."""
        period = self.period
        return [line for line in self._book.lines().values() if period is None or line.holds(period)]

    @property
    def period(self) -> int | None:
        """The number of the present period, by the ledger's clock; None if it does not renew."""
        clock = self._book.clock()
        return None if clock is None else clock.number

    def by_period(self) -> dict[str, Cost]:
        """What is reserved in each period from that of the first stream to the present one, if the ledger renews.

        >>> monthly = Ledger(Privacy(1.0, 1e-6), unit="user and month", renews=True)
        >>> monthly.charge(gaussian(0.01), unit="user and month")
        >>> [round(cost.mu, 6) for cost in monthly.by_period().values()]
        [0.1]
        """
        if (clock := self._book.clock()) is None:
            return {}
        lines = list(self._book.lines().values())
        here = clock.number
        start = min([here, *(line.first for line in lines if line.first is not None and line.first > EARLIEST)])
        periods = range(start, here + 1)
        return {clock.name(each): total(line.reserved for line in lines if line.holds(each)) for each in periods}

    def user_over(self, periods: int) -> tuple[Cost, list[str]]:
        """The cost for a user with rows in so many periods from now on, if nothing is opened or closed meanwhile.

        Streams that are open cost what `Private.user_over` says, and others that count in the present period what they
        reserved; across streams costs add. With it come the lineages for which that is not known.

        Whatever is opened and closed meanwhile: if all costs are Gaussian, n periods cost at most n times the mu of the
        budget. *Proof.* A stream with rows in m of them costs at most m·mu, by group privacy, and in each period the
        sum of mu² is at most that of the budget, B². So the sum of (m·mu)² ≤ n·(sum of m·mu²) ≤ n·n·B². ∎
        """
        from taciturn.store import verify

        return verify.user_over(self, integer("periods", periods))

    @property
    def left(self) -> float | None:
        """The epsilon, at the ledger's delta, of the largest Gaussian cost that still fits; None without a budget.

        >>> round(Ledger(Privacy(1.0, 1e-6)).left, 3)
        1.0
        """
        privacy = self.privacy
        return None if privacy is None else gaussian(self.largest_mu**2).epsilon(privacy.delta)

    @property
    def largest_mu(self) -> float:
        """The mu of the largest Gaussian cost that still fits."""
        privacy = self.privacy
        if privacy is None:
            return math.inf
        return min(
            rules.largest_mu(privacy, cost) for _, cost in rules.sums_from(self.period, self._book.lines().values())
        )

    @property
    def lines(self) -> Mapping[str, Line]:
        """What each lineage has reserved and spent."""
        return self._book.lines()

    @property
    def history(self) -> Sequence[Event]:
        """What was opened, charged and closed, by whom and when."""
        return self._book.events()

    @property
    def end_of_history(self) -> tuple[int, str]:
        """How many events the history has, and the hash of the last, stored apart from the events."""
        return self._book.last()

    def verify(self) -> Verified:
        """Check the history, and compute every cost again from the settings in it.

        >>> Ledger(Privacy(1.0, 1e-6)).verify().faults
        []
        """
        from taciturn.store import verify

        return verify.verify(self)

    # What changes it.

    def open(
        self,
        lineage: str,
        cost: Cost,
        neighbours: str = "replace",
        spent: Cost = FREE,
        at: Position = (0, 0, 0, ""),
        settings: Any = None,
        unit: str = "example",
        learnt: Learnt | None = None,
    ) -> None:
        """Reserve `cost` for a lineage that stands at `at`; one that is known must go on where it stands.

        The ledger then guards the states of the lineage: `commit` accepts each once. `settings`, plain data, are
        recorded in the history. `learnt` says when the rows of the state were learnt: by default at any time before.
        """
        learnt = rules.learnt_by(at) if learnt is None else learnt
        self._enter("opened", lineage, Line(cost, spent, at), neighbours, settings, unit, learnt)

    def reserve(
        self,
        lineage: str,
        cost: Cost,
        neighbours: str = "replace",
        settings: Any = None,
        name: str | None = None,
        follows: str | None = None,
        unit: str = "example",
        learnt: Learnt = JUST_NOW,
    ) -> None:
        """Reserve `cost` for a lineage whose states a store guards; a second call for the same cost changes nothing.

        The history says what the stream is called, and `adopted` of one that `follows` another lineage after a restore.
        """
        kind, more = rules.entered_as(name, follows)
        self._enter(kind, lineage, Line(cost, FREE), neighbours, settings, unit, learnt, more)

    def charge(self, cost: Cost, neighbours: str = "replace", settings: Any = None, unit: str = "example") -> None:
        """Spend `cost` at once, for a release that belongs to no stream, or reject it.

        >>> from taciturn import Cost, Ledger, Privacy
        >>> ledger = Ledger(Privacy(1.0, 1e-6))
        >>> ledger.charge(Cost(plain_epsilon=0.4))
        >>> ledger.spent.plain_epsilon
        0.4
        """
        line = Line(cost, cost, None, True)
        self._enter("charged", f"one-off {uuid.uuid4().hex}", line, neighbours, settings, unit, JUST_NOW)

    def _enter(
        self,
        kind: str,
        lineage: str,
        line: Line,
        neighbours: str,
        settings: Any,
        unit: str,
        learnt: Learnt,
        more: Mapping[str, str] | None = None,
    ) -> None:
        rules.check_entry(line, self.unit, unit)
        content = {
            "reserved": rules.written(line.reserved),
            "neighbours": neighbours,
            "settings": settings,
            "unit": unit,
        }
        content |= more or {}
        with rules.rejections_told():
            self._book.enter(lineage, line, neighbours, kind, content, learnt)

    def commit(self, lineage: str, used: Position, following: Position, spent: Cost, learnt: Learnt = JUST_NOW) -> None:
        """Record that the state at `used` is used up, `following` is live, and what is spent; then show releases.

        Raises `StateConflict`, and records nothing, if `used` is not the live state.
        """
        self._book.change(
            lineage,
            lambda line, clock: rules.committed(line, used, following, spent, learnt, clock),
            "finished" if learnt.finished else None,
        )

    def hold(self, lineage: str, learnt: Learnt, releases: bool = True) -> None:
        """Before a store elsewhere commits a state, with releases or without: count its rows in their periods.

        It is an error if the ledger does not accept them. Without effect if the ledger does not renew.
        """
        self._book.change(
            lineage, lambda line, clock: rules.extended(line, learnt._replace(finished=False), clock, releases)
        )

    def record_spent(self, lineage: str, spent: Cost, finished: bool = False) -> None:
        """Record what a stream in a store has spent, and whether it has finished; a smaller number changes nothing."""
        self._book.change(
            lineage, lambda line, clock: rules.mirrored(line, spent, finished), "finished" if finished else None
        )

    def close(self, lineage: str) -> None:
        """End a stream: nothing more can be released. What it reserved stays reserved.

        In a ledger that renews it does not count in the periods after that of its last row.
        """
        self._book.change(lineage, lambda line, clock: rules.closed(line), "closed")

    # How it is shown and passed on.

    def __repr__(self) -> str:
        place = "" if self.address is None else f"{self.address!r}, "
        return f"Ledger({place}{self})"

    def __str__(self) -> str:
        return ledger_report.sentence(self)

    def _repr_html_(self) -> str:
        return ledger_report.html(self)

    def same_as(self, other: Ledger) -> bool:
        """Whether both have the same records."""
        here, there = (self.address, self.population), (other.address, other.population)
        return self._book is other._book or (self.address is not None and here == there)

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce_ex__(self, protocol: object) -> Any:
        if self.address is None:
            raise StateConflict(
                "a ledger in memory cannot be pickled: the copy would spend the same budget again. Create it in a "
                "file, which all processes share: Ledger.create('budget.db', budget)."
            )
        return _reopened, (self.address, self.population, self._book.witnessed_by)


def _reopened(address: str, population: str, witness: str | None) -> Ledger:
    return Ledger(address, population=population, witness=witness)


LedgerLike = Ledger | str | os.PathLike[str]
"""What every function that needs a ledger accepts: one, or the address of one."""


def as_ledger(ledger: LedgerLike | None) -> Ledger:
    """The ledger itself, the one at an address, or without either a new one in memory."""
    if isinstance(ledger, str | os.PathLike):
        return Ledger(ledger)
    right = ledger is None or isinstance(ledger, Ledger)
    expect("ledger", ledger, right, 'ledger=Ledger(budget), ledger="budget.db", or leave it out')
    return Ledger() if ledger is None else ledger
