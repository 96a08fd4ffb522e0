"""Full disks, files without permission, locks, lost witnesses, odd names: an error says so, and nothing is lost."""

import contextlib
import os
import pickle
import resource
import shutil
import sqlite3
import threading
import uuid

import pytest

from memory_folder import memory_folder  # noqa: F401 - a fixture
from taciturn import Ledger, Privacy
from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable, TaciturnError
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Chunk, Store, database

NAME = "stream"
COST = gaussian(1e-4)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, memory):
    if request.param == "sqlite":
        return str(memory / "streams.db")
    return request.getfixturevalue("server").new_database()


def created(address, name=NAME, **more):
    store = Store(address, **more)
    store.create(name, lineage=f"lineage of {name}", position=(0, 0, 0, "0"), reserved=COST, state=b"0")
    return store


def advance(store, name=NAME, content=b"value", saved=None):
    saved = saved or store.load(name)
    generation, t, k, _ = saved.position
    new = (generation + 1, t + 1, k + 1, uuid.uuid4().hex)
    return store.commit(saved, position=new, spent=FREE, state=b"1", releases=[Chunk(k + 1, k + 1, t + 1, content)])


@contextlib.contextmanager
def largest_file(size):
    """No file may become larger, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(memory):
    """Wherever there is no more room: in the journal, or in the file."""
    path = memory / "streams.db"
    store = created(path)
    failures = 0
    for more in range(0, 200_000, 7_000):
        before = advance(store)
        with largest_file(path.stat().st_size + more), contextlib.suppress(StoreUnavailable):
            failures += 1
            advance(store, content=bytes(150_000))
            failures -= 1
        assert store.load(NAME).position[0] - before.position[0] in (0, 1)
    assert failures > 10
    assert len(list(store.releases(NAME))) == store.load(NAME).position[2]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_large_release(address):
    store = created(address)
    content = os.urandom(1 << 20) * 16
    advance(store, content=content)
    [chunk] = store.releases(NAME)
    assert chunk.content == content


@pytest.mark.parametrize(
    "name", ["it's", 'a "name"', "%s ? %", "ünïcödé ☃", "; DROP TABLE streams; --", "/*lock*/", " "]
)
def test_names(address, name):
    store = created(address, name)
    ledger = Ledger.create(address, Privacy(1.0, 1e-6), population=name)
    ledger.charge(COST, settings={"note": name})
    advance(store, name)
    assert store.names() == [name]
    assert Store(address).load(name).position[0] == 1
    assert ledger.verify().faults == []


@pytest.mark.parametrize("name", ["a\0b", "\udcff", ""], ids=["null", "surrogate", "empty"])
def test_names_that_no_database_holds(address, name):
    store = Store(address)
    with pytest.raises(InvalidInput, match="name"):
        store.create(name, lineage="a", position=(0, 0, 0, "0"), reserved=COST)
    with pytest.raises(InvalidInput, match="name"):
        Ledger.create(address, Privacy(1.0, 1e-6), population=name)


def test_a_lock_is_waited_for_and_then_given_up(memory, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.1)
    path = memory / "streams.db"
    store = created(path)
    saved = store.load(NAME)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            advance(Store(path), saved=saved)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM streams").fetchall()
        with pytest.raises(StoreUnavailable, match=r"locked\. Nothing was committed"):  # at COMMIT: the reader goes on
            advance(Store(path), saved=saved)
    assert advance(store, saved=saved).position[0] == 1


def test_a_lock_in_postgres(server, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.setattr(database, "WAIT", 0.3)
    address = server.new_database()
    store = created(address)
    saved = store.load(NAME)
    with psycopg.connect(address) as other:
        other.execute("SELECT * FROM taciturn.streams FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            advance(store, saved=saved)
    assert advance(store, saved=saved).position[0] == 1


def test_a_file_that_is_removed_while_it_is_open(memory):
    path = memory / "streams.db"
    store = created(path)
    saved = advance(store)
    path.rename(memory / "elsewhere.db")
    for _ in range(2):
        with pytest.raises(TaciturnError):
            advance(store, saved=saved)
    created(path, "another")
    with pytest.raises(StateConflict, match="not the database that was opened"):
        advance(store, saved=saved)
    assert Store(path).names() == ["another"]


def test_a_file_that_may_only_be_read(memory):
    if os.geteuid() != 0:
        pytest.skip("needs a user who can become another")
    path = memory / "streams.db"
    created(path)
    memory.chmod(0o755)
    path.chmod(0o444)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setuid(65534)
            try:
                advance(Store(path))
            except InvalidInput as error:
                code = 0 if "permissions" in str(error) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_witness_that_cannot_be_told(memory, monkeypatch):
    """The commit stands, nothing may be shown; later the outbox has it, and the witness knows."""
    monkeypatch.setattr(database, "WAIT", 0.1)
    path, witness = memory / "streams.db", memory / "witness.db"
    store = created(path, witness=witness)
    advance(store)
    with contextlib.closing(sqlite3.connect(witness, isolation_level=None)) as other:
        saved = store.load(NAME)
        other.execute("BEGIN IMMEDIATE")  # it can be read, and not written
        with pytest.raises(StoreUnavailable, match="could not be told of what"):
            advance(store, saved=saved)
        with pytest.raises(StoreUnavailable):
            list(store.releases(NAME))
    assert [chunk.first for chunk in store.releases(NAME)] == [1, 2]
    assert Store(path, witness=witness).load(NAME).position[0] == 2


def test_a_witness_that_cannot_be_asked(memory, monkeypatch):
    """Nothing is committed, and nothing may be shown; later the same commit succeeds."""
    monkeypatch.setattr(database, "WAIT", 0.1)
    store = created(memory / "streams.db", witness=memory / "witness.db")
    saved = advance(store)
    with contextlib.closing(sqlite3.connect(memory / "witness.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable, match=r"witness.*Nothing was committed"):
            advance(store, saved=saved)
        for show in (lambda: list(store.releases(NAME)), lambda: store.chunk(saved.lineage, 1)):
            with pytest.raises(StoreUnavailable):
                show()
    assert [chunk.first for chunk in store.releases(NAME)] == [1]
    assert advance(store, saved=saved).position[0] == 2


def test_many_threads_share_a_store(address):
    """Streams of their own, and one in common."""
    store = created(address)
    won, errors = [], []

    def work(number):
        mine = f"stream {number}"
        created_by = Store(address) if number % 2 else store
        created_by.create(mine, lineage=mine, position=(0, 0, 0, mine), reserved=COST)
        try:
            for _ in range(5):
                advance(store, mine)
                with contextlib.suppress(StateConflict):
                    won.append(advance(store).position[0])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
    assert sorted(won) == list(range(1, store.load(NAME).position[0] + 1))
    assert {store.load(f"stream {number}").position[0] for number in range(6)} == {5}


def test_neither_rounds_nor_releases_fall(address):
    store = created(address)
    saved = advance(store)
    for t, k in [(0, 1), (2, 0)]:
        with pytest.raises(StateConflict, match="only rise"):
            store.commit(saved, position=(2, t, k, "token"), spent=FREE, state=b"1")


def test_a_server_with_another_isolation_level_and_an_ordinary_user(server):
    """Whatever the server's default is, the store sets its own; its user needs no privilege but to create a schema."""
    address = server.new_database()
    name = address.partition("?")[0].rpartition("/")[2]
    user = f"user_{uuid.uuid4().hex}"
    server.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'")
    server.execute(f"GRANT CREATE ON DATABASE {name} TO {user}")
    server.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    _, at, after = address.partition("@")
    store = created(f"postgresql://{user}:secret{at}{after}" if at else address)
    with store.database.transaction() as now:
        assert now.rows("SHOW transaction_isolation") == [("read committed",)]
    advance(store)
    assert "secret" not in store.address


def test_a_pickled_ledger_tells_its_witness(memory):
    path, witness = memory / "budget.db", memory / "witness.db"
    ledger = Ledger.create(path, Privacy(1.0, 1e-6), witness=witness)
    shutil.copyfile(path, memory / "copy.db")
    pickle.loads(pickle.dumps(ledger)).charge(COST)
    shutil.copyfile(memory / "copy.db", path)
    with pytest.raises(StateConflict, match="behind"):
        Ledger(path, witness=witness)


def test_a_database_is_not_its_own_witness(memory):
    with pytest.raises(InvalidInput, match="cannot be its witness"):
        Store(memory / "streams.db", witness=memory / "streams.db")
