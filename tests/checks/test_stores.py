"""Stores in SQLite and in PostgreSQL keep one contract, and a fault in any part of it is caught."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from dataclasses import replace

import pytest

from checks.databases import store_case
from taciturn import Ledger
from taciturn.checks import ContractBroken, StoreCase, check_store, checks_for
from taciturn.checks.suite import run_checks
from taciturn.core.events import Progress
from taciturn.errors import StateConflict
from taciturn.store import Event, EventLog, Store, encryption, store, witness

pytestmark = pytest.mark.privacy

CHECKS = [str(check) for check in checks_for(StoreCase(str))]


def outcome(case, name):
    (found,) = run_checks("it", [check for check in checks_for(case) if str(check) == name]).outcomes
    return found


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", CHECKS)
def test_it_keeps_its_contract(kind, name, tmp_path, request):
    server = request.getfixturevalue("postgres") if kind == "postgres" else None
    found = outcome(store_case(kind, tmp_path, server), name)
    assert found.verdict == "passed", found.remark


# Stores with one fault each.


class Forgetful(Store):
    """Does not store the position in the input."""

    def commit(self, saved, *, input=b"", **settings):
        return super().commit(saved, **settings)


class Overwriting(Store):
    """Commits without comparing the state that was used with the newest."""

    def _advance(self, now, saved, new):
        [(generation, token)] = now.rows("SELECT generation, token FROM streams WHERE lineage = ?", saved.lineage)
        super()._advance(now, replace(saved, position=(generation, 0, 0, token)), new)


class SwallowsConflicts(Store):
    """Takes a stream that is there for the one that should be created."""

    def _must_be_new(self, name):
        pass

    def _insert(self, now, saved):
        with contextlib.suppress(StateConflict):
            super()._insert(now, saved)


class LateReleases(Store):
    """Stores the releases in a second transaction."""

    def commit(self, saved, *, releases=(), **settings):
        new = super().commit(saved, **settings)
        with self.database.transaction() as now:
            for chunk in releases:
                sql = "INSERT INTO releases (lineage, first, last, t, content) VALUES (?, ?, ?, ?, ?)"
                now.execute(sql, saved.lineage, *chunk)
        return new


class HashesStates(Store):
    """A chain that depends on the state."""

    def commit(self, saved, *, state, **settings):
        new = super().commit(saved, state=state, **settings)
        return replace(new, chain=hashlib.sha256(new.chain.encode() + state).hexdigest())


class Backwards(Store):
    """Reads the newest releases first."""

    def releases(self, name, after=0):
        return iter(list(super().releases(name, after))[::-1])


class OpensAgain(Store):
    """A commit opens a closed stream."""

    def _advance(self, now, saved, new):
        now.execute("UPDATE streams SET closed = 0")
        super()._advance(now, saved, new)


class KeepsSpentToItself(Store):
    """Does not tell the ledger in its database what is spent."""

    def _record_spent_within(self, now, new):
        pass


class NeverMirrors(Store):
    """Does not tell a ledger elsewhere what is spent."""

    def _mirror(self, new):
        pass


class WithoutWitness(Store):
    """Does not tell its witness."""

    def _tell_witness(self, saved):
        pass


class AdoptsForNothing(Store):
    """Forgets the ledger of a stream that is adopted."""

    def ledger_of(self, saved):
        return None


class ClosesNothing(Store):
    """Leaves a stream open."""

    def close(self, saved):
        pass


class LeavesTheFirstOpen(Store):
    """Takes over the name of a stream that is adopted, and does not close it."""

    def _succeed(self, now, old, new):
        now.execute("UPDATE streams SET name = 'before' WHERE lineage = ?", old.lineage)


class KeepsEvents(Store):
    """Does not look at events in a commit."""

    def _learn_events(self, now, saved, t):
        pass


class ErasesEventsEarly(Store):
    """Erases events in a transaction of its own."""

    def commit(self, saved, **settings):
        with self.database.transaction() as now:
            now.execute("UPDATE stream_events SET content = NULL, label = NULL")
        return super().commit(saved, **settings)


class AnyKey(Store):
    """Does not compare keys in a commit."""

    key_id = ""


CLASSES = [
    ("commits_are_loaded_as_they_were_made", Forgetful),
    ("streams_are_created_once", SwallowsConflicts),
    ("states_have_one_successor", Overwriting),
    ("racing_commits_have_one_winner", Overwriting),
    ("failing_commits_store_nothing", LateReleases),
    ("ledger_in_the_same_database_moves_with_it", LateReleases),
    ("outbox_is_complete_and_in_order", Backwards),
    ("chains_cover_releases_and_never_states", LateReleases),
    ("chains_cover_releases_and_never_states", HashesStates),
    ("closed_streams_reject_commits", OpensAgain),
    ("closed_streams_reject_commits", ClosesNothing),
    ("ledger_in_the_same_database_moves_with_it", KeepsSpentToItself),
    ("ledger_elsewhere_is_reserved_first", NeverMirrors),
    ("witness_is_told_before_a_commit_returns", WithoutWitness),
    ("adopted_streams_are_charged_in_full", AdoptsForNothing),
    ("adopted_streams_are_charged_in_full", LeavesTheFirstOpen),
    ("events_are_learnt_with_the_state", KeepsEvents),
    ("events_are_learnt_with_the_state", ErasesEventsEarly),
    ("keys_are_rotated", AnyKey),
]


def nothing(*_, **__):
    """A check that finds nothing wrong."""


def at_any_time(self, number, over=False):
    """Labels that are never late."""
    return ENDED(self._replace(sealed=0), number)


def after_sealing(self, number, over=False):
    """Labels whose time is compared with the clock alone."""
    return ENDED(self._replace(sealed=0), number, over)


def without_order(self, most=2**16):
    """Events that are due, whatever was opened before them."""
    with self._database.transaction() as now:
        rows = now.rows("SELECT number, content, label FROM stream_events WHERE due <= ?", self._time(now))
    return [Event(*row) for row in rows]


def when_labelled(self, most=2**16):
    """Events that have labels, whether their wait has passed or not."""
    with self._database.transaction() as now:
        rows = now.rows("SELECT number, content, label FROM stream_events WHERE label IS NOT NULL")
    return [Event(*row) for row in rows]


ENDED = Progress.ended

FUNCTIONS = [
    ("events_are_opened_once_with_consecutive_numbers", hmac, "compare_digest", lambda one, two: True),
    ("events_are_opened_once_with_consecutive_numbers", EventLog, "_known", lambda self, now, ids: {}),
    ("events_take_one_label_before_their_wait_ends", Progress, "ended", at_any_time),
    ("events_take_one_label_before_their_wait_ends", Progress, "ended", after_sealing),
    ("events_are_opened_once_with_consecutive_numbers", Progress, "past", lambda self, horizon, count=1: False),
    ("events_are_learnt_with_the_state", Progress, "learn", nothing),
    ("events_enter_in_order_and_not_before_their_wait", EventLog, "seal", when_labelled),
    ("events_enter_in_order_and_not_before_their_wait", EventLog, "seal", without_order),
    ("events_are_secret_and_go_with_their_stream", store, "erase_events", nothing),
    ("events_are_secret_and_go_with_their_stream", store, "take_over_events", nothing),
    ("events_are_secret_and_go_with_their_stream", encryption, "_associated", lambda *_: b""),
    ("events_are_secret_and_go_with_their_stream", encryption.Key, "encrypt", lambda self, data, *_: data),
    ("generations_only_rise", store, "check_step", nothing),
    ("spent_only_rises_up_to_the_reservation", store, "check_step", nothing),
    ("spent_only_rises_up_to_the_reservation", store, "at_most", lambda less, more: True),
    ("releases_are_numbered", store, "_check_releases", nothing),
    ("ledger_elsewhere_is_reserved_first", Ledger, "reserve", nothing),
    ("witness_is_told_before_a_commit_returns", witness, "check", nothing),
    ("encrypted_states_need_their_key", encryption, "_associated", lambda *_: b""),
    ("encrypted_states_need_their_key", encryption.Key, "encrypt", lambda self, data, *_: data),
]


@pytest.mark.parametrize(("name", "faulty"), CLASSES, ids=lambda value: getattr(value, "__name__", value))
def test_the_fault_is_caught(name, faulty, tmp_path):
    assert outcome(store_case("sqlite", tmp_path, store=faulty), name).verdict == "failed"


@pytest.mark.parametrize(
    ("name", "home", "attribute", "fault"), FUNCTIONS, ids=[f"{f[0]}, {f[2]}, {f[3].__name__}" for f in FUNCTIONS]
)
def test_the_fault_of_a_function_is_caught(name, home, attribute, fault, tmp_path, monkeypatch):
    monkeypatch.setattr(home, attribute, fault)
    assert outcome(store_case("sqlite", tmp_path), name).verdict == "failed"


def test_every_check_has_a_fault():
    assert set(CHECKS) == {name for name, *_ in (*CLASSES, *FUNCTIONS)}


def test_the_report_says_what_broke(tmp_path):
    with pytest.raises(ContractBroken, match=r"failing_commits_store_nothing: .* left a trace\. Write state, spent"):
        check_store(store_case("sqlite", tmp_path, store=LateReleases))
