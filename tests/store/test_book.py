"""Ledgers in a database: several populations, lost commits, and the witness."""

from __future__ import annotations

import pytest

from store.faults import lost_commit
from taciturn import BudgetExhausted, InvalidInput, Ledger, Privacy, StateConflict, Unprovable
from taciturn.errors import StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.kernel.accounting.ledger_rules import SECOND_STREAM
from taciturn.store.database import Database, OutcomeUnknown

BUDGET = Privacy(1.0, 1e-6)
COST = gaussian(0.01)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", BUDGET, population="customers")


def test_a_database_may_have_several_ledgers(ledger, tmp_path):
    address = tmp_path / "budget.db"
    assert Ledger(address).population == "customers"
    staff = Ledger.create(address, Privacy(0.5, 1e-6), population="staff", neighbours="zero-out")
    with pytest.raises(InvalidInput, match=r"several ledgers: customers, staff\. Choose one by population='customers'"):
        Ledger(address)
    with pytest.raises(InvalidInput, match="no ledger of 'guests', only of customers, staff"):
        Ledger(address, population="guests")
    staff.charge(COST, "zero-out")
    assert Ledger(address, population="customers").reserved == FREE
    assert Ledger(address, population="staff").reserved == COST
    assert (staff.privacy, staff.neighbours, ledger.neighbours) == (Privacy(0.5, 1e-6), "zero-out", None)
    assert not staff.same_as(ledger)


@pytest.mark.privacy
def test_a_stream_is_in_one_ledger(ledger, tmp_path):
    """Its lineage names it in the whole database."""
    staff = Ledger.create(tmp_path / "budget.db", BUDGET, population="staff")
    ledger.open("stream", COST)
    with pytest.raises(StateConflict, match="ledger of another population"):
        staff.open("stream", COST)
    assert staff.reserved == FREE
    assert len(staff.history) == 1


def test_a_ledger_is_created_once(ledger, tmp_path):
    ledger.charge(COST)
    with pytest.raises(InvalidInput, match="has a ledger of 'customers' already"):
        Ledger.create(tmp_path / "budget.db", Privacy(9.0, 1e-6), population="customers")
    assert (Ledger(tmp_path / "budget.db").privacy, ledger.reserved) == (BUDGET, COST)


def test_costs_of_other_libraries_may_be_for_added_or_removed_rows(tmp_path):
    """No stream of this package has that relation, and a ledger does not add up the two."""
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET, neighbours="add-remove")
    ledger.charge(COST, "add-remove")
    assert ledger.reserved == COST
    with pytest.raises(Unprovable, match="they do not add"):
        ledger.charge(COST, "zero-out")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"neighbours": "remove"}, "neighbours cannot be 'remove'"),
        ({"population": ""}, "population's name must have characters"),
    ],
)
def test_its_terms_are_checked(settings, words, tmp_path):
    with pytest.raises(InvalidInput, match=words):
        Ledger.create(tmp_path / "budget.db", BUDGET, **settings)


def test_a_database_without_a_ledger_says_so(tmp_path):
    Database(tmp_path / "a.db", create=True)
    with pytest.raises(InvalidInput, match=r"there is no ledger in .*Ledger\.create"):
        Ledger(tmp_path / "a.db")


def test_a_ledger_in_memory_has_no_witness(tmp_path):
    with pytest.raises(InvalidInput, match="in memory has no witness"):
        Ledger(BUDGET, witness=tmp_path / "witness.db")


# COMMIT fails: it is read back, and never repeated blindly.


WORKS = {
    "open": lambda ledger: ledger.open("stream", COST),
    "reserve": lambda ledger: ledger.reserve("stream", COST),
    "charge": lambda ledger: ledger.charge(COST),
}


@pytest.mark.privacy
@pytest.mark.parametrize("work", WORKS)
def test_a_reservation_whose_answer_was_lost_was_made(work, ledger, monkeypatch):
    with lost_commit(monkeypatch):
        WORKS[work](ledger)
    assert ledger.reserved == COST
    assert [event.kind for event in ledger.history][1:] == ["charged" if work == "charge" else "opened"]


@pytest.mark.privacy
@pytest.mark.parametrize("work", WORKS)
def test_a_reservation_that_was_lost_is_told_so(work, ledger, monkeypatch):
    with lost_commit(monkeypatch, took_effect=False), pytest.raises(StoreUnavailable, match="Nothing was committed"):
        WORKS[work](ledger)
    assert (ledger.reserved, len(ledger.history)) == (FREE, 1)
    WORKS[work](ledger)
    assert ledger.reserved == COST


@pytest.mark.privacy
@pytest.mark.parametrize("took_effect", [True, False])
def test_a_commit_whose_answer_was_lost(took_effect, ledger, monkeypatch):
    ledger.open("stream", COST, at=(0, 0, 0, "a"))
    work = lambda: ledger.commit("stream", (0, 0, 0, "a"), (1, 1, 1, "b"), COST)  # noqa: E731
    with lost_commit(monkeypatch, took_effect=took_effect):
        if took_effect:
            work()
        else:
            with pytest.raises(StoreUnavailable, match="Nothing was committed"):
                work()
    assert ledger.spent == (COST if took_effect else FREE)
    if not took_effect:
        work()
    with pytest.raises(StateConflict, match=SECOND_STREAM):
        work()


@pytest.mark.privacy
def test_a_lost_answer_that_cannot_be_read_back_stays_unknown(ledger, monkeypatch, tmp_path):
    def unreachable():
        monkeypatch.setattr(ledger._book.database.backend, "begin", fails)

    def fails(connection, write):
        raise StoreUnavailable("the disk is gone. Nothing was committed.")

    with lost_commit(monkeypatch, then=unreachable), pytest.raises(OutcomeUnknown, match="is unknown"):
        ledger.charge(COST)
    assert Ledger(tmp_path / "budget.db").reserved == COST


# The witness.


@pytest.mark.privacy
def test_a_ledger_behind_its_witness_is_rejected(tmp_path):
    """A reservation that was lost would be spent again."""
    address, witness = tmp_path / "budget.db", tmp_path / "witness.db"
    ledger = Ledger.create(address, BUDGET, witness=witness)
    before = address.read_bytes()
    ledger.charge(COST)
    assert Ledger(address, witness=witness).reserved == COST
    address.write_bytes(before)
    with pytest.raises(StateConflict, match="ledger of people is at 1 and was at 2"):
        Ledger(address, witness=witness)


@pytest.mark.privacy
def test_a_state_that_the_ledger_guards_is_watched(tmp_path):
    """Commits add no event, so the witness has the generation of each such stream."""
    address, witness = tmp_path / "budget.db", tmp_path / "witness.db"
    ledger = Ledger.create(address, BUDGET, witness=witness)
    ledger.open("stream", COST, at=(0, 0, 0, "a"))
    before = address.read_bytes()
    ledger.commit("stream", (0, 0, 0, "a"), (1, 1, 1, "b"), COST)
    address.write_bytes(before)
    with pytest.raises(StateConflict, match="stream is at 0 and was at 1"):
        Ledger(address, witness=witness)


def test_a_full_ledger_says_what_is_left(ledger):
    ledger.charge(gaussian(BUDGET.mu**2 * 0.75))
    with pytest.raises(BudgetExhausted, match=r"epsilon = 0\.4\d+ of the ledger's 1 is left"):
        ledger.charge(gaussian(BUDGET.mu**2 * 0.5))
