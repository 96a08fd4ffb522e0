"""Databases that fail at COMMIT, and other places to plant faults."""

from __future__ import annotations

import contextlib

from taciturn.store.sqlite import Sqlite


class Cut(Exception):
    """A connection that is lost."""


def writing(monkeypatch, backend):
    """The connections whose transaction is one that writes, by their `id`."""
    begin, writes = backend.begin, set()

    def planted(self, connection, write):
        (writes.add if write else writes.discard)(id(connection))
        return begin(self, connection, write)

    monkeypatch.setattr(backend, "begin", planted)
    return writes


@contextlib.contextmanager
def lost_commit(monkeypatch, backend=Sqlite, took_effect=True, then=None):
    """In the block the next COMMIT of a change loses its connection, after or before it took effect; then `then`."""
    commit, left = backend.commit, [1]
    writes = writing(monkeypatch, backend)

    def planted(self, connection):
        if not left or id(connection) not in writes:
            return commit(self, connection)
        left.clear()
        if took_effect:
            commit(self, connection)
        else:
            self.rollback(connection)
        if then is not None:
            then()
        raise Cut("connection lost")

    with monkeypatch.context() as patched:
        patched.setattr(backend, "commit", planted)
        yield
    assert not left, "there was no COMMIT"
