"""Ledgers in memory, in SQLite and in PostgreSQL keep one contract, and a fault in any part of it is caught."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace

import pytest

from checks.databases import ledger_case
from taciturn import BudgetExhausted, Cost, Ledger, StateConflict
from taciturn.accounting import history, memory_book
from taciturn.checks import ContractBroken, LedgerCase, check_ledger, checks_for
from taciturn.checks.suite import run_checks
from taciturn.kernel.accounting import ledger_rules as rules
from taciturn.kernel.accounting.cost import FREE
from taciturn.store import book, postgres
from taciturn.store.sqlite import Sqlite

pytestmark = pytest.mark.privacy

CHECKS = [str(check) for check in checks_for(LedgerCase())]


def outcome(case, name):
    (found,) = run_checks("it", [check for check in checks_for(case) if str(check) == name]).outcomes
    return found


@pytest.fixture
def case(request, tmp_path):
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return ledger_case(request.param, tmp_path, server)


@pytest.mark.parametrize("case", ["memory", "sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("name", CHECKS)
def test_it_keeps_its_contract(case, name):
    found = outcome(case, name)
    assert found.verdict == "passed", found.remark


# Faults, each planted by replacing one function.


def nothing(*_, **__):
    """A check that finds nothing wrong."""


def mu_only(costs, total=rules.total):
    """The sum of costs, without what is not Gaussian."""
    return Cost(total(costs).mu_squared)


def records_first(enter=memory_book.MemoryBook.enter):
    def planted(self, lineage, line, neighbours, kind, content, learnt):
        seen = self._records.newest()
        self._records.replace(seen, seen["value"].with_event(kind, lineage, content))
        enter(self, lineage, line, neighbours, kind, content, learnt)

    return planted


def generous(largest=rules.largest_mu):
    return lambda privacy, reserved: 1.1 * largest(privacy, reserved)


def reserves_charges(self, cost, neighbours="replace", settings=None, unit="example"):
    line = rules.Line(cost, FREE, None, True)
    self._enter("charged", f"one-off {time.monotonic_ns()}", line, neighbours, settings, unit, rules.JUST_NOW)


class Meeting:
    """A place in a fault where racing threads wait until there are three, one more than fit, so that they do race.

    After that it is open. The thread of the test itself, which prepares the race, does not wait.
    """

    def __init__(self):
        self._gate = threading.Barrier(3)

    def __call__(self):
        if threading.current_thread() is not threading.main_thread():
            with contextlib.suppress(threading.BrokenBarrierError):
                self._gate.wait(5.0)
            self._gate.abort()


def overwriting():
    """Store a value without a comparison."""
    meet = Meeting()

    def planted(self, seen, value):
        meet()
        self._known = {"value": value}
        return True

    return planted


def deferred(begin=Sqlite.begin):
    """A transaction that takes the writers' lock only when it writes."""
    meet = Meeting()

    def planted(self, connection, write):
        begun = begin(self, connection, False)
        if write:
            begun.rows("SELECT version FROM schema_version")  # takes a reader's lock
            meet()
        return begun

    return planted


def without_locks():
    """Queries that do not lock what they read."""
    meet = Meeting()

    def planted(sql):
        if "INSERT INTO lines" in sql:
            meet()
        return sql.replace("?", "%s")

    return planted


def same_generation(line, at):
    """Compare the generation, and not the token."""
    if line.live is None or at[0] != line.live[0]:
        raise StateConflict("another generation.")


def without(condition, check=rules.check_step):
    """The check of a step, without one of its conditions."""

    def planted(used, following, before, spent, reserved):
        if condition == "forward":
            following = (used[0] + 1, *used[1:])
        elif condition == "rising":
            before = FREE
        elif condition == "reserved":
            reserved = Cost(*[9.0] * 6)
        check(used, following, before, spent, reserved)

    return planted


def last_number(line, spent, finished=False):
    """What the store told last, also if it is smaller."""
    if not rules.at_most(spent, line.reserved):
        raise BudgetExhausted("too much.")
    return replace(line, spent=spent)


def open_again(line, used, following, spent, learnt=None, clock=None):
    """A commit that does not ask whether the stream was closed."""
    return replace(line, spent=spent, live=following)


def known_only(change=memory_book.MemoryBook.change):
    def planted(self, lineage, changed, kind=None):
        if lineage in self.lines():
            change(self, lineage, changed, kind)

    return planted


def always(line, period):
    """Every line counts for ever: nothing renews."""
    return True


def while_it_is_open(line, period):
    """What has ended does not count, also where its rows are."""
    return not (line.closed or line.finished) and line.first <= period


def with_rows_only(line, period):
    """A stream counts from its first row to its last, also if it goes on."""
    return line.first <= period <= line.last


def present_only(extended=rules.extended):
    """Look at the last row alone."""

    def planted(line, learnt, clock, releases):
        return extended(line, learnt._replace(first=None), clock, releases)

    return planted


def any_period(line, learnt, clock, releases):
    """No check of the periods of rows."""
    return replace(line, last=max(line.last, learnt.last or 0), finished=learnt.finished)


def resumable(line, learnt, clock, releases, extended=rules.extended):
    """A stream that has finished goes on."""
    return extended(replace(line, finished=False), learnt, clock, releases)


def never_finished(line, learnt, clock, releases, extended=rules.extended):
    """A stream counts until it is closed."""
    return extended(line, learnt._replace(finished=False), clock, releases)


def from_now_on(line, learnt, clock, others, entering=rules.entering):
    """A state counts from the present period on, whatever rows it has."""
    return entering(line, rules.JUST_NOW, clock, others)


def rounded(cost):
    return [float(f"{part:.6g}").hex() for part in cost.parts]


FAULTS = [
    ("two_halves_fit_and_no_more", "memory", rules, "check_room", nothing),
    ("two_halves_fit_and_no_more", "sqlite", rules, "check_room", nothing),
    ("all_kinds_of_cost_add", "memory", rules, "total", mu_only),
    ("all_kinds_of_cost_add", "sqlite", rules, "total", mu_only),
    ("rejections_leave_no_trace", "memory", memory_book.MemoryBook, "enter", records_first()),
    ("what_is_left_fits", "memory", rules, "largest_mu", generous()),
    ("charges_are_spent_at_once", "sqlite", Ledger, "charge", reserves_charges),
    ("racing_reservations_admit_what_fits", "memory", memory_book.Register, "replace", overwriting()),
    ("racing_reservations_admit_what_fits", "postgres", postgres, "_translated", without_locks()),
    ("racing_reservations_admit_what_fits", "sqlite", Sqlite, "begin", deferred()),
    ("one_relation_for_all_costs", "memory", rules, "check_relation", nothing),
    ("reservation_is_idempotent", "sqlite", rules, "check_goes_on", nothing),
    ("states_are_used_once", "memory", rules, "_check_live", nothing),
    ("states_are_used_once", "sqlite", rules, "_check_live", same_generation),
    ("generations_never_go_back", "memory", rules, "check_step", without("forward")),
    ("spent_never_falls", "memory", rules, "check_step", without("rising")),
    ("spent_never_falls", "sqlite", rules, "mirrored", last_number),
    ("spent_stays_within_reserved", "memory", rules, "check_step", without("reserved")),
    ("racing_commits_have_one_winner", "memory", memory_book.Register, "replace", overwriting()),
    ("racing_commits_have_one_winner", "sqlite", rules, "committed", open_again),
    ("closed_streams_stay_closed", "memory", rules, "committed", open_again),
    ("closed_streams_stay_closed", "sqlite", rules, "closed", lambda line: line),
    ("unknown_streams_are_rejected", "memory", memory_book.MemoryBook, "change", known_only()),
    ("history_is_chained", "memory", history, "_hash", lambda before, event: f"{before[:9]}{event.number}"),
    ("history_is_chained", "sqlite", book, "append_event", nothing),
    ("another_process_sees_the_same", "sqlite", book, "written", rounded),
    ("copies_share_the_records", "memory", Ledger, "__deepcopy__", lambda self, memo: Ledger(self.privacy)),
    ("copies_share_the_records", "sqlite", Ledger, "__copy__", lambda self: Ledger(self.privacy)),
    ("ended_streams_count_in_their_periods", "memory", rules.Line, "holds", always),
    ("ended_streams_count_in_their_periods", "sqlite", rules.Line, "holds", while_it_is_open),
    ("ended_streams_count_in_their_periods", "postgres", rules, "sums_from", lambda first, lines: [(first, FREE)]),
    ("open_streams_count_until_they_end", "memory", rules.Line, "holds", with_rows_only),
    ("open_streams_count_until_they_end", "sqlite", rules.Line, "holds", while_it_is_open),
    ("rows_belong_to_periods_that_count", "memory", rules, "extended", any_period),
    ("rows_belong_to_periods_that_count", "sqlite", rules, "extended", present_only()),
    ("rows_belong_to_periods_that_count", "memory", rules, "_check_not_ahead", nothing),
    ("finished_streams_release_nothing", "memory", rules, "extended", resumable),
    ("finished_streams_release_nothing", "sqlite", rules, "extended", never_finished),
    ("states_with_rows_count_from_their_first", "memory", rules, "learnt_by", lambda at: rules.JUST_NOW),
    ("states_with_rows_count_from_their_first", "sqlite", book, "entering", from_now_on),
    ("periods_have_one_unit", "memory", rules, "check_unit", nothing),
]


@pytest.mark.parametrize(
    ("name", "case", "home", "attribute", "fault"),
    FAULTS,
    ids=[f"{name}, {kind}, {attribute}" for name, kind, _, attribute, _ in FAULTS],
    indirect=["case"],
)
def test_the_fault_is_caught(name, case, home, attribute, fault, monkeypatch):
    monkeypatch.setattr("taciturn.store.database.WAIT", 1.0)
    monkeypatch.setattr(home, attribute, fault)
    assert outcome(case, name).verdict == "failed"


def test_every_check_has_a_fault():
    assert set(CHECKS) == {name for name, *_ in FAULTS}


def test_the_report_says_what_broke(monkeypatch):
    monkeypatch.setattr(rules, "check_room", nothing)
    with pytest.raises(ContractBroken, match=r"open exceeded a full ledger's budget\. Add the new cost to all"):
        check_ledger()


def test_the_ledger_in_memory_is_the_default():
    assert len(check_ledger().passed) == len(CHECKS)
