"""Durable ledgers and streams: a SQLite file by default, PostgreSQL for teams.

Module          Contents
``store``       `Store`: one transaction commits state, spent privacy, releases and input position
``events``      events, rows whose labels come later, in a database
``book``        the records of a `Ledger` in a database
``database``    connections, transactions, the schema and its migrations
``sqlite``      what is particular to SQLite; ``postgres``, to PostgreSQL
``witness``     notices a database that was restored from a backup
``restore``     goes on with such a database, as a second, separately charged stream
``overview``    what a database holds, for people who look at it
``encryption``  encrypted states
``verify``      checks a ledger's history, and computes its costs again
"""

from taciturn.store.events import Closing, Event, EventLog, Opened, Opening
from taciturn.store.store import AtTick, Chunk, Current, Lease, Request, Saved, Store

__all__ = [
    "AtTick",
    "Chunk",
    "Closing",
    "Current",
    "Event",
    "EventLog",
    "Lease",
    "Opened",
    "Opening",
    "Request",
    "Saved",
    "Store",
]
