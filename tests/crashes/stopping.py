"""A process that stops at one step of those by which files or a store change, or in which something else happens."""

import contextlib
import gc
import os
import sys
import threading

from taciturn.store.postgres import Postgres
from taciturn.store.sqlite import Sqlite

STEPS = ("fsync", "replace", "write", "ftruncate", "open", "close")


class Stopped(BaseException):
    """The process stops here."""


class _Transaction:
    """One whose changes are steps."""

    def __init__(self, real, guarded):
        self.rows = real.rows
        self.execute = guarded("execute", real.execute)


class Trap:
    """Stops at the step number `at`: `before` it, `after` it, or `half` through a write.

    A process that stops within a transaction leaves it open, and the database rolls it back, as an error does here.
    """

    def __init__(self, patch, at, when):
        self.at, self.when, self.calls, self.sprung = at, when, 0, False
        self._thread = threading.get_ident()
        for name in STEPS:
            patch.setattr(os, name, self.guarded(name, getattr(os, name)))
        for backend in (Sqlite, Postgres):
            patch.setattr(backend, "begin", self.begun(backend.begin))
            patch.setattr(backend, "commit", self.guarded("commit", backend.commit))

    def begun(self, begin):
        def call(backend, connection, write):
            transaction = begin(backend, connection, write)
            return _Transaction(transaction, self.guarded) if write else transaction

        return call

    def guarded(self, name, real):
        def call(*arguments, **options):
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if threading.get_ident() != self._thread or not caller.startswith(("taciturn.", "drivers", "stopping")):
                return real(*arguments, **options)  # what others close meanwhile is no step
            here, self.calls = self.calls, self.calls + (self.when != "half" or name == "write")
            if self.sprung or here != self.at:
                return real(*arguments, **options)
            self.sprung = True
            if self.when == "half" and name == "write":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            elif self.when == "after" or name == "close":
                real(*arguments, **options)  # a process that stops closes its files
            raise Stopped

        return call


def stopped_at(patching, work, at, when):
    """`work()` up to a step; whether there are so many."""
    gc.disable()  # nothing of earlier calls may be finalized in the trap
    try:
        with patching.context() as patch:
            trap = Trap(patch, at, when)
            with contextlib.suppress(Stopped):
                work()
            return trap.sprung
    finally:
        gc.enable()
