"""What a database of ledgers and streams holds, for people who look at it: public data only, and nothing is changed.

A database that was copied or moved can be looked at where it is; to go on with it, it must be accepted
(`taciturn.store.witness`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from taciturn.accounting.ledger import Ledger
from taciturn.errors import StateConflict, StoreUnavailable, TaciturnError
from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.accounting.ledger_rules import read_cost
from taciturn.store.book import DatabaseBook, choose_population
from taciturn.store.database import Database
from taciturn.store.encryption import is_encrypted
from taciturn.store.verify import Unbuilt, built
from taciturn.store.witness import Known, compare, known, witness_of

RECIPES = {
    "IGD": "pigd",
    "FadingIGD": "pocp",
    "GIGA": "pgiga",
    "FTL": "pocp",
    "QFTL": "pqftl",
    "FTRL": "pftrl",
    "VectorSum": "private_sum",
    "EWOO": "ewoo",
}
"""Names of recipes by their learners."""


class Stream(NamedTuple):
    """The public part of a stream in a store."""

    name: str
    lineage: str
    generation: int
    t: int
    releases: int
    reserved: Cost
    spent: Cost
    ledger: str | None
    population: str | None
    closed: bool
    encrypted: bool
    about: Mapping[str, Any]
    archived: bool = False


def streams(database: Database) -> list[Stream]:
    """The streams of a database, by name; no state is read or decrypted."""
    with database.transaction(write=False) as now:
        rows = now.rows(
            "SELECT name, lineage, generation, t, k, reserved, spent, ledger, population, closed, "
            "substr(state, 1, 32), about, archived FROM streams ORDER BY name"
        )
    return [
        Stream(
            name,
            lineage,
            int(generation),
            int(t),
            int(k),
            read_cost(json.loads(reserved)),
            read_cost(json.loads(spent)),
            ledger,
            population,
            bool(closed),
            is_encrypted(bytes(head)),
            json.loads(about),
            bool(archived),
        )
        for name, lineage, generation, t, k, reserved, spent, ledger, population, closed, head, about, archived in rows
    ]


def read_ledger(address: str | os.PathLike[str], population: str | None = None) -> Ledger:
    """A ledger to look at, wherever its database is now."""
    database = Database(address)
    return Ledger.of_book(DatabaseBook(database, choose_population(database, population)))


def remembered(database: Database) -> Known:
    """What a database remembers of itself: its witness, and where it was when it was last used."""
    with database.transaction(write=False) as now:
        return known(database, now)


def warning(database: Database, witness: str | os.PathLike[str] | None = None) -> str | None:
    """Why a database would not be accepted to go on with, in a sentence; None if it would be."""
    try:
        watching = witness_of(database, witness)
        known_to_it = watching is not None and compare(database, watching)
    except (StateConflict, StoreUnavailable) as error:
        return str(error)
    if remembered(database).moved and not known_to_it:
        return (
            f"{database.address} is not where it was when it was last used: it was moved, copied or restored from a "
            "backup."
        )
    return None


def progress(database: Database) -> dict[str, int]:
    """How many releases each stream has made, as far as this database knows."""
    with database.transaction(write=False) as now:
        rows = now.rows("SELECT lineage, k FROM lines WHERE k IS NOT NULL UNION SELECT lineage, k FROM streams")
    return {lineage: int(k) for lineage, k in rows}


def is_finished(settings: Any, releases: int) -> bool:
    """Whether a stream of these settings, from its history, has released all that it can; False if that is not known.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, every, pigd
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> settings = pigd(problem, Privacy(1.0, 1e-6), horizon=10, schedule=every(5)).recorded
    >>> is_finished(settings, 1), is_finished(settings, 2)
    (False, True)
    """
    try:
        table = built(settings).timetable
    except (Unbuilt, TaciturnError, TypeError, ValueError, AttributeError):
        return False
    return table.horizon is not None and releases >= table.count


def recipe_of(settings: Any) -> str:
    """What a stream is, in a few words, from the settings in its history.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pftrl, pigd
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> recipe_of(pigd(problem, Privacy(1.0, 1e-6), horizon=10).recorded)
    'pigd'
    >>> recipe_of(pftrl(problem, Privacy(1.0, 1e-6), horizon=10).recorded)
    'pftrl, BLT'
    >>> recipe_of(None)
    'not recorded'
    """
    if isinstance(settings, Mapping) and settings.keys() == {"version", "settings"}:
        settings = settings["settings"]
        if (made := _class_of(settings)) not in ("", "Private"):
            return made
        settings = settings["Private"] if made else settings
    if isinstance(settings, Mapping):
        settings = list(settings.items())
    if not isinstance(settings, list) or not settings:
        return "not recorded" if settings is None else str(settings)
    if isinstance(settings[0], str):  # one object, of version 1
        return _class_of(settings)
    parts = {str(pair[0]): pair[1] for pair in settings if isinstance(pair, list | tuple) and len(pair) == 2}
    learner, mechanism = (_class_of(parts.get(name)) for name in ("learner", "mechanism"))
    if not learner:
        return ", ".join(f"{name} {value}" for name, value in parts.items() if isinstance(value, str | int | float))
    return ", ".join([RECIPES.get(learner, learner), *([mechanism] if mechanism not in ("", "Gaussian") else [])])


def _class_of(described: Any) -> str:
    """The name of a class, as a history has it, now or in version 1; empty if this is no object."""
    if isinstance(described, Mapping) and len(described) == 1:
        return str(next(iter(described)))
    named = isinstance(described, list) and described and isinstance(described[0], str)
    return str(described[0]).removeprefix("taciturn ") if named else ""
