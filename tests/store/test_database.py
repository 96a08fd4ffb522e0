"""Databases: schema and migrations, addresses without passwords, forks, and what is rejected when one is opened."""

from __future__ import annotations

import gc
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from taciturn import BudgetExhausted, InvalidInput, Ledger, Privacy, StateConflict
from taciturn.errors import StoreUnavailable
from taciturn.kernel.accounting.cost import gaussian
from taciturn.store import Store, database
from taciturn.store.database import Database, OutcomeUnknown, migrations, without_password
from taciturn.store.sqlite import open_connection

BUDGET = Privacy(1.0, 1e-6)
WITH_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def test_migrations_are_made_once_and_in_order(tmp_path, monkeypatch):
    address = tmp_path / "budget.db"
    Ledger.create(address, BUDGET)
    scripts = migrations()
    with Database(address).transaction(write=False) as now:
        assert now.rows("SELECT version FROM schema_version") == [(len(scripts),)]
    monkeypatch.setattr(database, "migrations", lambda: [*scripts, "CREATE TABLE later (a TEXT); -- a; comment"])
    for _ in range(2):
        with Database(address).transaction() as now:
            assert now.rows("SELECT version FROM schema_version") == [(len(scripts) + 1,)]
            now.execute("INSERT INTO later (a) VALUES (?)", "kept")
    with Database(address).transaction(write=False) as now:
        assert now.rows("SELECT a FROM later") == [("kept",)] * 2
    assert Ledger(address).privacy == BUDGET


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    address = tmp_path / "budget.db"
    Ledger.create(address, BUDGET)
    scripts = migrations()
    monkeypatch.setattr(database, "migrations", lambda: [*scripts, "CREATE TABLE later (a TEXT); CREATE NONSENSE"])
    with pytest.raises(StoreUnavailable):
        Database(address)
    monkeypatch.setattr(database, "migrations", lambda: scripts)
    with Database(address).transaction(write=False) as now:
        assert now.rows("SELECT name FROM sqlite_master WHERE name = 'later'") == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_newer_schema_is_rejected(kind, tmp_path, request):
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    with Database(address, create=True).transaction() as now:
        now.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(StateConflict, match=r"newer version of taciturn \(schema 99.*Update taciturn"):
        Database(address)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_may_create_it_at_once(kind, tmp_path, request):
    """One schema, and one identity."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    made, gate = [], threading.Barrier(6)

    def create():
        gate.wait()
        made.append(Database(address, create=True))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    with made[0].transaction(write=False) as now:
        assert len(now.rows("SELECT id FROM place")) == len(now.rows("SELECT version FROM schema_version")) == 1


# Addresses.


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("postgresql://me:secret@host:5432/budget?password=x&sslmode=require", "me@host:5432/budget?sslmode=require"),
        ("postgresql:///budget?host=/run/postgresql", "/budget?host=%2Frun%2Fpostgresql"),
        ("postgresql://postgres:@/postgres", "postgres@/postgres"),
        ("postgresql://me:sec/ret@host/budget", "me@host/budget"),
        ("postgresql://me:s@cret@one:1,two:2/budget", "me@one:1,two:2/budget"),
        ("postgresql://host/budget?sslpassword=x&options=-c%20geqo%3Doff", "host/budget?options=-c%20geqo%3Doff"),
        ("postgresql://", ""),
    ],
)
def test_an_address_has_no_password(address, public):
    """And is complete otherwise, so that it opens the same database."""
    shown = without_password(address)
    assert shown.removeprefix("postgresql://").removeprefix("/").rstrip("/") in (public, public.removeprefix("/"))
    assert shown.startswith("postgresql://")
    assert "secret" not in shown
    assert without_password(shown) == shown
    assert database.backend_of(shown).address == shown


def test_a_pickled_ledger_has_no_password(postgres):
    address = postgres()
    with_password = address.replace("postgres:@", "postgres:a-password-of-mine@")
    assert with_password != address or os.environ.get("TACITURN_TEST_POSTGRES")
    ledger = Ledger.create(with_password, BUDGET)
    content = pickle.dumps(ledger)
    for shown in (content.decode("latin1"), repr(ledger), str(ledger.address), ledger._repr_html_()):
        assert "a-password-of-mine" not in shown
    assert pickle.loads(content).same_as(ledger)


def test_a_pickled_ledger_has_its_witness(tmp_path):
    """Workers tell it, too."""
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET, witness=tmp_path / "witness.db")
    pickle.loads(pickle.dumps(ledger)).charge(gaussian(0.001))
    with Database(tmp_path / "witness.db").transaction(write=False) as now:
        assert now.rows("SELECT max(generation) FROM witnessed") == [(2,)]


def test_an_unknown_kind_of_address_is_rejected():
    with pytest.raises(InvalidInput, match="mysql:// is no known kind of database"):
        Ledger("mysql://host/budget")


# What is rejected.


def test_what_is_not_there_is_not_created(tmp_path):
    with pytest.raises(InvalidInput, match=r"no database of taciturn.*Ledger\.create"):
        Ledger(tmp_path / "budget.db")
    assert not (tmp_path / "budget.db").exists()


def test_another_file_is_rejected_and_not_changed(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to be read as the header of one: " * 10)
    before = path.read_bytes()
    for opened in (Ledger, Store):
        with pytest.raises(InvalidInput, match="is not a database of taciturn"):
            opened(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_rejected_and_not_changed(tmp_path):
    """Its journal, too, stays as it was."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE mine (a TEXT)")
    connection.close()
    with pytest.raises(InvalidInput, match="a database of another program"):
        Store(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    connection.close()


def test_a_folder_is_rejected(tmp_path):
    with pytest.raises(InvalidInput, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be created: No such file or directory"):
        Store(tmp_path / "missing" / "stream.db")


# Transactions.


def test_an_error_rolls_back(tmp_path):
    home = Database(tmp_path / "a.db", create=True)
    with pytest.raises(StoreUnavailable), home.transaction() as now:
        now.rows(f"{now.execute('UPDATE schema_version SET version = 99')} NONSENSE")
    with home.transaction(write=False) as now:
        assert now.rows("SELECT version FROM schema_version") == [(len(migrations()),)]


def test_a_commit_that_fails_has_an_unknown_outcome(tmp_path, monkeypatch):
    """An error of the package, which does not say that nothing was committed."""
    home = Database(tmp_path / "a.db", create=True)
    monkeypatch.setattr(home.backend, "commit", lambda connection: connection.execute("COMMIT NONSENSE"))
    with (
        pytest.raises(OutcomeUnknown, match="whether the last change was committed is unknown") as error,
        home.transaction(),
    ):
        pass
    assert isinstance(error.value, StoreUnavailable)
    assert "Nothing was committed" not in str(error.value)
    with pytest.raises(StoreUnavailable) as error, home.transaction(write=False):
        pass
    assert not isinstance(error.value, OutcomeUnknown)


def test_reading_back_that_fails_leaves_the_outcome_unknown(tmp_path):
    home = Database(tmp_path / "a.db", create=True)
    unknown = OutcomeUnknown("unknown")
    with pytest.raises(OutcomeUnknown) as error, home.reading_back(unknown):
        raise StoreUnavailable("nothing was committed")
    assert error.value is unknown


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_writer_waits_for_another_and_then_gives_up(kind, tmp_path, request, monkeypatch):
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    Ledger.create(address, BUDGET)
    monkeypatch.setattr(database, "WAIT", 0.3)
    home, lock = Database(address), "SELECT population FROM ledgers /*lock*/"
    with home.transaction() as now:
        now.rows(lock)
        start = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"locked by another transaction for 0\.3 seconds"):
            Ledger(address).charge(gaussian(0.001))
        assert time.monotonic() - start >= 0.25
    Ledger(address).charge(gaussian(0.001))


@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_signal_handler_within_a_call_changes_nothing_of_it(kind, tmp_path, request, monkeypatch):
    """It waits for the call that it interrupted, in vain, and is rejected; the call goes on."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    ledger, raised = Ledger.create(address, BUDGET), []
    monkeypatch.setattr(database, "WAIT", 0.3)
    ledger = Ledger(address)
    admitted = "taciturn.store.book.admitted"
    from taciturn.kernel.accounting.ledger_rules import admitted as check

    def interrupted(*arguments):
        monkeypatch.setattr(admitted, check)
        try:
            ledger.charge(gaussian(0.01))
        except StoreUnavailable as error:
            raised.append(error)
        return check(*arguments)

    monkeypatch.setattr(admitted, interrupted)
    ledger.charge(gaussian(0.02))
    assert len(raised) == 1
    assert ledger.reserved == ledger.spent == gaussian(0.02)
    assert ledger.verify().ok
    ledger.charge(gaussian(0.01))


def test_connections_are_closed_with_the_database(tmp_path):
    home = Database(tmp_path / "a.db", create=True)
    with home.transaction(write=False), home.transaction(write=False):
        pass
    opened = len(database._OPEN)
    del home
    assert len(database._OPEN) == opened - 2


def rejected_once(address, kept=None):
    """A thread that opens a ledger, is rejected, and ends; `kept` keeps the ledger by a reference cycle."""

    def work():
        ledger = Ledger(address)
        cycle = [ledger]
        if kept:
            cycle.append(cycle)
        with pytest.raises(BudgetExhausted):
            ledger.open("too much", gaussian(9.0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture
def no_collection():
    """Only reference counts free objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_ledger_that_rejected_a_stream_is_closed_at_once(kind, tmp_path, request):
    """Errors have tracebacks, and those have references to the ledger: none of them is in a cycle."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    Ledger.create(address, BUDGET)
    opened = len(database._OPEN)
    for _ in range(5):
        rejected_once(address)
        assert len(database._OPEN) == opened


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_short_threads_use_few_connections(kind, tmp_path, request, monkeypatch):
    """Also if the ledgers of ended threads are in reference cycles, which Python would collect much later."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    Ledger.create(address, BUDGET)
    used = len(database._OPEN)
    monkeypatch.setattr(database, "_MANY", [used + 3])
    monkeypatch.setattr(database, "FEW", used + 3)
    most = 0
    for _ in range(3 * used + 20):
        rejected_once(address, kept=True)
        most = max(most, len(database._OPEN))
    assert used + 3 <= most <= max(used + 3, 2 * used)


# Forks.


def forked(work):
    """What `work` returns, as text, in a forked child; or what it raised."""
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(outside, text.encode()[:4000])
        os._exit(0)
    os.close(outside)
    os.waitpid(child, 0)
    with os.fdopen(inside, "rb") as pipe:
        return pipe.read().decode()


@WITH_FORK
@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_child_has_connections_of_its_own(kind, tmp_path, request):
    """Parent and child spend one budget, and neither ends the other's transactions."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    ledger = Ledger.create(address, BUDGET)
    ledger.charge(gaussian(0.01))

    def child():
        ledger.charge(gaussian(0.01))
        return ledger.reserved.mu_squared

    assert forked(child) == "0.02"
    assert forked(child) == "0.03"
    ledger.charge(gaussian(0.01))
    assert ledger.reserved.mu_squared == 0.04
    assert ledger.verify().ok


@WITH_FORK
@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_transaction_in_another_thread_survives_a_fork(kind, tmp_path, request):
    """In PostgreSQL the child works beside it; with SQLite the fork waits for it."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    ledger = Ledger.create(address, BUDGET)
    home, begun = Database(address), threading.Event()

    def write():
        with home.transaction() as now:
            now.execute("UPDATE ledgers SET epsilon = '0x1.0p+1'")
            begun.set()
            time.sleep(0.5)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()

    def child():
        ledger.charge(gaussian(0.01))
        return f"{ledger.privacy.epsilon} {ledger.reserved.mu_squared}"

    assert forked(child) == "2.0 0.01"
    thread.join()
    assert (ledger.privacy.epsilon, ledger.reserved) == (2.0, gaussian(0.01))


@WITH_FORK
@pytest.mark.privacy
def test_a_child_forked_during_a_long_transaction_is_rejected(tmp_path, monkeypatch):
    """SQLite would believe that the child holds the parent's locks."""
    monkeypatch.setattr(database, "WAIT_TO_FORK", 0.1)
    address = tmp_path / "budget.db"
    ledger = Ledger.create(address, BUDGET)
    home, begun, end = Database(address), threading.Event(), threading.Event()

    def write():
        with home.transaction() as now:
            now.execute("UPDATE ledgers SET epsilon = '0x1.0p+1'")
            begun.set()
            end.wait()

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    assert forked(lambda: ledger.reserved).startswith("StateConflict: this process was forked during a transaction")
    other = tmp_path / "other.db"
    assert forked(lambda: Ledger.create(other, BUDGET).reserved.mu_squared) == "0.0"
    end.set()
    thread.join()
    assert ledger.privacy.epsilon == 2.0
    ledger.charge(gaussian(0.01))
    assert forked(lambda: ledger.reserved.mu_squared) == "0.01"


@WITH_FORK
@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_child_forked_within_a_transaction_does_not_go_on_with_it(kind, tmp_path, request):
    """By a signal handler, say: neither the next statement nor COMMIT, and the parent's goes on."""
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    ledger = Ledger.create(address, BUDGET)
    home = Database(address)
    for statement in (True, False):
        inside, outside = os.pipe()
        parent = os.getpid()
        try:
            with home.transaction() as now:
                now.execute("UPDATE ledgers SET unit = ?", f"changed {statement}")
                if os.fork() == 0 and not statement:
                    pass  # to COMMIT
                elif os.getpid() != parent:
                    now.execute("UPDATE ledgers SET unit = 'by the child'")
        except StateConflict as error:
            os.write(outside, str(error).encode())
        finally:
            if os.getpid() != parent:
                os._exit(0)
        os.wait()
        os.close(outside)
        with os.fdopen(inside, "rb") as pipe:
            assert b"forked within a transaction" in pipe.read()
        assert ledger.unit == f"changed {statement}"


PROCESS = """
import sys
from taciturn import BudgetExhausted, Ledger
from taciturn.kernel.accounting.cost import gaussian
ledger, won = Ledger(sys.argv[1]), 0
for _ in range(6):
    try:
        ledger.charge(gaussian(float(sys.argv[2])))
        won += 1
    except BudgetExhausted:
        pass
print(won)
"""


@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_share_one_budget(kind, tmp_path, request):
    """Three that make six attempts each: what fits ten times is admitted ten times."""
    address = str(request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db")
    ledger = Ledger.create(address, BUDGET)
    slice_ = BUDGET.mu**2 / 10.5
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROCESS, address, str(slice_)]
    children = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(child.communicate(timeout=60)[0]) for child in children) == 10
    with pytest.raises(BudgetExhausted):
        ledger.charge(gaussian(slice_))
    assert ledger.verify().ok


def test_the_wait_is_that_of_the_module(tmp_path, monkeypatch):
    """Also for the connection itself."""
    monkeypatch.setattr(database, "WAIT", 1.5)
    Database(tmp_path / "a.db", create=True)
    connection = open_connection(tmp_path / "a.db")
    assert connection.execute("PRAGMA busy_timeout").fetchall() == [(1500,)]
    connection.close()
