"""Cases of ledgers and stores for the conformance suite: in memory, in SQLite and in PostgreSQL."""

from __future__ import annotations

import itertools

from taciturn import Ledger
from taciturn.checks.ledgers import LedgerCase
from taciturn.checks.stores import StoreCase
from taciturn.store import Store


def files(folder):
    """A function that gives the name of a new file in each call."""
    numbers = itertools.count()
    return lambda: str(folder / f"{next(numbers)}.db")


def ledger_case(kind, folder, postgres=None):
    """How to make and reopen a ledger of that kind."""
    if kind == "memory":
        return LedgerCase()
    if kind == "sqlite":
        new = files(folder)
        return LedgerCase(
            lambda budget, **terms: Ledger.create(new(), budget, **terms), lambda ledger: Ledger(ledger.address)
        )
    populations = itertools.count()

    def create(budget, **terms):
        return Ledger.create(postgres(), budget, population=f"people {next(populations)}", **terms)

    return LedgerCase(create, lambda ledger: Ledger(ledger.address, population=ledger.population))


def store_case(kind, folder, postgres=None, store=Store):
    """How to make a store of that kind; ledgers and witnesses elsewhere are files."""
    new = files(folder)
    return StoreCase(new if kind == "sqlite" else postgres, new, store)
