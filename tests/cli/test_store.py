"""`taciturn store`: backups, restored databases, moves and keys."""

import json
import os
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from served import service_at
from taciturn import BudgetExhausted, Cost, InvalidInput, L2Ball, Ledger, Logistic, Privacy, Problem, pftrl
from taciturn.cli.app import app
from taciturn.errors import StateConflict
from taciturn.kernel.accounting.cost import gaussian, total
from taciturn.service.tokens import Tokens
from taciturn.store import Chunk, Store
from taciturn.store.database import Database
from taciturn.store.overview import read_ledger, streams
from taciturn.store.restore import recover
from taciturn.store.witness import check, named_within, places_of, witness_of

RELATIONS = ("replace", "zero-out")


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments], env={"COLUMNS": "120"})


def answer(*arguments):
    done = run(*arguments, "--json")
    assert done.exception is None, done.exception
    return json.loads(done.stdout)


def private(relation="replace", epsilon=0.3):
    problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1, neighbours=relation)
    return pftrl(problem, Privacy(epsilon, 1e-6), horizon=50)


def opened(store, ledger, name="clicks", relation="replace"):
    one = private(relation)
    state = one.start()
    return store.create(
        name,
        lineage=state.lineage,
        position=state.position,
        reserved=one.guarantee.delivered,
        state=state.to_bytes(),
        neighbours=relation,
        ledger=ledger,
        settings=one.recorded,
    )


def committed(store, saved, rows=10):
    """The stream after a commit of one chunk of releases."""
    generation, t, k, _ = saved.position
    return store.commit(
        saved,
        position=(generation + 1, t + rows, k + rows, os.urandom(8).hex()),
        spent=saved.reserved,
        state=saved.state,
        releases=[Chunk(k + 1, k + rows, t + rows, b"models")],
    )


@pytest.fixture(params=RELATIONS)
def restored(request, tmp_path):
    """A database with a ledger and a stream that was restored in place, from before a commit and another opening."""
    path, witness = tmp_path / "all.db", tmp_path / "elsewhere.db"
    ledger = Ledger.create(path, Privacy(1.0, 1e-6), population="customers", witness=witness)
    store = Store(path, witness=witness)
    saved = opened(store, ledger, relation=request.param)
    ledger.charge(gaussian(0.0004), request.param)
    run("store", "backup", path, tmp_path / "backup.db")
    committed(store, saved)
    ledger.reserve("a later stream", gaussian(0.001), request.param)
    ledger.charge(gaussian(0.0005), request.param)
    whole = ledger.reserved
    path.write_bytes((tmp_path / "backup.db").read_bytes())
    return path, witness, whole, saved


def test_a_restored_database_is_rejected_and_says_how_to_go_on(restored):
    path, witness, _, _ = restored
    for kind in (Ledger, Store):
        with pytest.raises(StateConflict, match="taciturn store adopt"):
            kind(path, witness=witness)
    assert "behind" in run("store", "show", path, "--witness", witness).stderr


def test_adopt_charges_what_was_forgotten_and_then_a_second_stream(restored):
    path, witness, whole, saved = restored
    data = answer("store", "adopt", path, "--witness", witness, "--yes")
    lost = total([gaussian(0.001), gaussian(0.0005)])
    assert data["restored"]["customers"]["epsilon"] == pytest.approx(lost.epsilon(1e-6))
    assert data["first"]["lineage"] == saved.lineage
    assert data["first"]["cost"] == data["second"]["cost"]
    ledger, store = Ledger(path, witness=witness), Store(path, witness=witness)  # both are accepted now
    assert ledger.reserved.mu_squared == pytest.approx(whole.mu_squared + saved.reserved.mu_squared, rel=1e-12)
    assert ledger.reserved.mu_squared >= whole.mu_squared + saved.reserved.mu_squared * (1 - 1e-15)
    assert ledger.lines[saved.lineage].closed
    assert ledger.lines[saved.lineage].spent == saved.reserved
    assert [event.kind for event in ledger.history][-4:] == ["charged", "restored", "closed", "adopted"]
    second = store.load("clicks")
    assert second.lineage == data["second"]["lineage"]
    assert committed(store, second).position[0] == 1
    with pytest.raises(StateConflict, match="not its live state"):
        committed(store, saved)
    assert run("budget", "verify", path, "--witness", witness).exit_code == 0


def test_adopt_prints_both_costs(restored):
    path, witness, _, _ = restored
    text = run("store", "adopt", path, "clicks", "--witness", witness, "--yes").stdout
    assert "charged epsilon = " in text
    assert text.index("first stream") < text.index("second stream") < text.index("both together")


@pytest.mark.parametrize("place", ["with a witness", "without one", "moved"])
def test_tokens_of_a_backup_are_revoked(tmp_path, place):
    """One that was revoked after the backup is live in it; those that are made after the adoption stay."""
    path, witness = tmp_path / "all.db", tmp_path / "elsewhere.db" if place == "with a witness" else None
    ledger = Ledger.create(path, Privacy(1.0, 1e-6), witness=witness)
    store = Store(path, witness=witness)
    both = [opened(store, ledger, name) for name in ("one", "two")]
    tokens = Tokens(store.database)
    revoked, secret = tokens.create(["admin"])
    _, session = tokens.open_session(secret)
    tokens.create(["read"], seconds=-1.0)
    run("store", "backup", path, tmp_path / "backup.db")
    tokens.revoke(revoked.id)
    for saved in both:
        committed(store, saved)
    if place == "moved":
        path = tmp_path / "moved.db"
    path.write_bytes((tmp_path / "backup.db").read_bytes())
    assert Tokens(Database(path)).check(secret) is not None
    options = () if witness is None else ("--witness", witness)
    done = run("store", "adopt", path, "one", *options, "--yes")
    assert "1 token was live in the backup, and may have been revoked since" in done.stdout
    tokens = Tokens(Database(path))
    assert tokens.check(secret) is None
    assert tokens.check(session) is None
    _, new = tokens.create(["admin"])
    data = answer("store", "adopt", path, "two", *options, "--yes")
    assert data["revoked_tokens"] == (0 if place == "with a witness" else 1)
    assert (Tokens(Database(path)).check(new) is not None) == (place == "with a witness")


def test_adopt_asks_first(restored):
    """Where nobody can be asked, it needs --yes, and changes nothing without."""
    path, witness, _, _ = restored
    before = path.read_bytes()
    assert "--yes" in str(run("store", "adopt", path, "--witness", witness).exception)
    assert path.read_bytes() == before


def test_a_crash_before_the_witness_is_told_charges_once(restored):
    path, witness, whole, _ = restored
    stopped = Database(path)
    seen = witness_of(stopped, witness).places()
    recover(stopped, witness)
    witness_of(stopped, witness).replace(seen)  # as if the process had stopped before
    assert recover(Database(path), witness).charged == {}
    assert Ledger(path, witness=witness).reserved.mu_squared == pytest.approx(whole.mu_squared, rel=1e-12)


def test_the_lost_database_is_rejected_if_it_turns_up_again(restored, tmp_path):
    """It lacks what was charged since, so the witness does not take it for the newest."""
    path, witness, _, _ = restored
    lost = tmp_path / "lost.db"
    shutil.copy(path, lost)
    run("store", "adopt", path, "--witness", witness, "--yes")
    with pytest.raises(StateConflict, match="is missing"):
        Store(lost, witness=witness)


def test_a_copy_that_went_on_without_the_witness_is_charged_in_addition(restored):
    path, witness, whole, _ = restored
    copy = read_ledger(path)  # looks at it without its witness, and does not ask whether it is the newest
    relation = copy.neighbours
    copy.charge(gaussian(0.002), relation)
    for _ in range(9):
        copy.charge(gaussian(1e-9), relation)  # now it has more events than the witness has seen
    with pytest.raises(StateConflict, match="behind its witness"):
        Ledger(path, witness=witness)
    recover(Database(path), witness)
    reserved = Ledger(path, witness=witness).reserved.mu_squared
    assert reserved == pytest.approx(whole.mu_squared + 0.002 + 9e-9, rel=1e-9)


def test_a_ledger_without_streams_is_recovered(tmp_path):
    path, witness = tmp_path / "budget.db", tmp_path / "witness.db"
    ledger = Ledger.create(path, Privacy(1.0, 1e-6), witness=witness)
    one = private(epsilon=0.4)
    state = one.start(ledger)
    backup = path.read_bytes()
    one.run(state, np.eye(2), [1, -1])
    ledger.charge(Cost(plain_epsilon=0.2))
    path.write_bytes(backup)
    done = run("store", "adopt", path, "--witness", witness, "--yes")
    assert "charged epsilon = 0.2" in done.stdout
    assert state.lineage[:8] in done.stdout
    again = Ledger(path, witness=witness)
    assert again.reserved.plain_epsilon == 0.2
    assert again.lines[state.lineage].closed  # its states would release rounds again


def test_without_a_witness_a_moved_database_is_adopted_with_all_its_streams_closed(tmp_path):
    path, copy = tmp_path / "all.db", tmp_path / "copy.db"
    ledger = Ledger.create(path, Privacy(1.0, 1e-6))
    store = Store(path)
    first, second = opened(store, ledger, "one"), opened(store, ledger, "two")
    shutil.copy(path, copy)
    assert "Name the one" in str(run("store", "adopt", copy, "--yes").exception)
    data = answer("store", "adopt", copy, "one", "--yes")
    assert sorted(data["closed"]) == sorted([first.lineage, second.lineage])
    assert data["moved"]
    with pytest.raises(StateConflict, match="closed"):
        committed(Store(copy), second)
    answer("store", "adopt", copy, "two", "--yes")
    committed(Store(copy), Store(copy).load("one"))  # the second adoption leaves it alone


def test_adopting_needs_room_in_the_ledger(tmp_path):
    path = tmp_path / "all.db"
    ledger = Ledger.create(path, Privacy(0.35, 1e-6))
    opened(Store(path), ledger)
    assert isinstance(run("store", "adopt", path, "--yes").exception, BudgetExhausted)
    assert Store(path).names() == ["clicks"]


@pytest.fixture
def two_streams(request, tmp_path):
    """A database with two streams and a token, restored from before a commit of one and the opening of a third."""
    path, witness = tmp_path / "all.db", tmp_path / "elsewhere.db"
    budget = Privacy(getattr(request, "param", 1.0), 1e-6)
    ledger = Ledger.create(path, budget, population="customers", witness=witness)
    store = Store(path, witness=witness)
    saved = opened(store, ledger, "A")
    opened(store, ledger, "B")
    _, secret = Tokens(store.database).create(["admin"])
    run("store", "backup", path, tmp_path / "backup.db")
    committed(store, saved)
    opened(store, None, "C")
    path.write_bytes((tmp_path / "backup.db").read_bytes())
    return path, witness, secret


def test_a_stream_that_is_not_behind_is_not_adopted(two_streams):
    """It would be closed, and charged a second time, for nothing."""
    path, _, secret = two_streams
    before = path.read_bytes()
    failed = run("store", "adopt", path, "B", "--yes").exception
    assert "B is not behind; there is nothing to adopt" in str(failed)
    assert "Adopt those that are behind: A." in str(failed)
    assert path.read_bytes() == before
    assert Tokens(Database(path)).check(secret) is not None
    behind = {row["name"]: row["behind"] for row in answer("store", "show", path)["streams"]}
    assert behind == {"A": True, "B": False}
    assert "behind" in run("store", "show", path).stdout
    assert answer("store", "adopt", path, "--yes")["stream"] == "A"  # the only one that is behind needs no name
    assert [row["behind"] for row in answer("store", "show", path)["streams"]] == [False] * 3
    again = str(run("store", "adopt", path, "A", "--yes").exception)
    assert "A is not behind; there is nothing to adopt" in again
    assert "--restored" in again
    assert answer("store", "adopt", path, "B", "--restored", "--yes")["stream"] == "B"


def test_the_witness_names_streams(two_streams):
    path, witness, _ = two_streams
    with pytest.raises(
        StateConflict, match=rf"is behind its witness {witness}: (A is at 0 and was at 1|stream .*, ope)"
    ):
        Store(path)
    assert "A is at 0 and was at 1" in str(witnessed_fault(path, "A"))
    recover(Database(path))
    store = Store(path)
    opened(store, None, "C")
    copy = path.read_bytes()
    opened(store, None, "D")
    path.write_bytes(copy)
    with pytest.raises(StateConflict, match=r"stream [0-9a-f]{8}, opened after the backup, is missing"):
        Store(path)


def witnessed_fault(path, name):
    """What is said of one stream."""
    [lineage] = [stream.lineage for stream in streams(Database(path)) if stream.name == name]
    database = Database(path)
    seen = witness_of(database).places()
    with database.transaction(write=False) as now:
        here = places_of(now)
        with pytest.raises(StateConflict) as caught:
            check("a.db", here, {lineage: seen[lineage]}, "w.db", named_within(now))
    return caught.value


def test_the_cost_of_an_adoption_is_that_of_all_streams(tmp_path):
    path = tmp_path / "all.db"
    saved = opened(Store(path), None)
    assert answer("store", "adopt", path, "--yes")["streams"] == 2
    data = answer("store", "adopt", path, "--yes")
    assert data["streams"] == 3
    assert data["all"]["epsilon"] == pytest.approx(total([saved.reserved] * 3).epsilon(1e-6))
    assert "all 4 together" in run("store", "adopt", path, "--yes").stdout


@pytest.mark.parametrize("two_streams", [0.5], indirect=True)
def test_without_room_nothing_is_changed(two_streams, tmp_path):
    """Neither closed nor charged nor revoked; --end closes, and --ledger charges elsewhere."""
    path, witness, secret = two_streams
    before = path.read_bytes()
    failed = run("store", "adopt", path, "A", "--yes").exception
    assert isinstance(failed, BudgetExhausted)
    assert "A was not adopted, and nothing was changed" in str(failed)
    assert "--ledger" in str(failed)
    assert "smaller budget" not in str(failed)
    assert path.read_bytes() == before
    assert Tokens(Database(path)).check(secret) is not None
    elsewhere = Ledger.create(tmp_path / "budget.db", Privacy(0.1, 1e-6))
    full = run("store", "adopt", path, "A", "--ledger", elsewhere.address, "--yes").exception
    assert "nothing was changed" in str(full)
    assert "closes" in str(run("store", "adopt", path, "--end").exception)
    assert "leave out its name" in str(run("store", "adopt", path, "A", "--end", "--yes").exception)
    done = run("store", "adopt", path, "--end", "--yes").stdout
    assert "now closed: A" in done
    assert Store(path, witness=witness).load("A").closed
    assert not Store(path).load("B").closed
    room = Ledger.create(tmp_path / "room.db", Privacy(1.0, 1e-6))
    data = answer("store", "adopt", path, "A", "--ledger", room.address, "--yes")  # it can go on later
    assert data["ledger"] == room.address


def test_a_wrong_key_changes_nothing(tmp_path):
    path, key = tmp_path / "all.db", tmp_path / "a.key"
    answer("store", "new-key", key)
    opened(Store(path, key=key), None)
    before = path.read_bytes()
    assert "no key is given" in str(run("store", "adopt", path, "--yes").exception)
    assert path.read_bytes() == before


def test_advice_about_the_folder_of_a_run_is_for_runs(tmp_path):
    assert service_at(tmp_path / "served.db")[0].close() is None
    assert "models.jsonl" not in run("store", "adopt", tmp_path / "served.db", "--yes").stdout
    opened(Store(tmp_path / "run.db"), None)
    assert "models.jsonl" in run("store", "adopt", tmp_path / "run.db", "--yes").stdout


def test_a_stream_whose_ledger_is_elsewhere_is_charged_there(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", Privacy(1.0, 1e-6))
    store = Store(tmp_path / "stream.db")
    saved = opened(store, ledger)
    data = answer("store", "adopt", tmp_path / "stream.db", "--yes")
    assert data["ledger"] == ledger.address
    assert ledger.lines[saved.lineage].closed
    assert ledger.reserved == total([saved.reserved, saved.reserved])


def test_confirm_moved_is_recorded(tmp_path):
    path, there = tmp_path / "budget.db", tmp_path / "there.db"
    Ledger.create(path, Privacy(1.0, 1e-6))
    shutil.copy(path, there)
    assert "--yes" in str(run("store", "confirm-moved", there).exception)
    assert answer("store", "confirm-moved", there, "--why", "new disk", "--yes")["moved"]
    assert "new disk" in run("budget", "history", there).stdout
    assert Ledger(there).history[-1].kind == "moved"
    assert "nothing to confirm" in run("store", "confirm-moved", there).stdout


def test_confirm_moved_asks_the_witness(restored, tmp_path):
    """What is behind its witness is no copy that was moved."""
    path, witness, _, _ = restored
    shutil.copy(path, tmp_path / "there.db")
    witness.rename(tmp_path / "moved.db")
    for named in ((), ("--witness", tmp_path / "moved.db")):
        failed = run("store", "confirm-moved", tmp_path / "there.db", "--yes", *named)
        assert ("behind" if named else "forget-witness") in str(failed.exception)
    assert answer("store", "show", tmp_path / "there.db")["moved"]


def test_forget_witness_asks_and_is_recorded(tmp_path):
    path, witness = tmp_path / "budget.db", tmp_path / "witness.db"
    Ledger.create(path, Privacy(1.0, 1e-6), witness=witness)
    assert answer("store", "show", path)["witness"] == str(witness)
    assert "--yes" in str(run("store", "forget-witness", path).exception)
    witness.unlink()
    assert "forget-witness" in run("store", "show", path).stderr
    assert answer("store", "forget-witness", path, "--why", "its disk is lost", "--yes")["had_one"]
    assert "its disk is lost" in run("budget", "history", path).stdout
    assert "has no witness" in run("store", "forget-witness", path).stdout
    Ledger(path, witness=tmp_path / "new.db")


def test_backup_writes_a_copy_and_makes_nothing_of_a_wrong_address(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, Privacy(1.0, 1e-6))
    answer("store", "backup", path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert "exists" in str(run("store", "backup", path, tmp_path / "copy.db").exception)
    assert isinstance(run("store", "backup", tmp_path / "typo.db", tmp_path / "other.db").exception, InvalidInput)
    assert not (tmp_path / "typo.db").exists()


def test_keys_are_made_and_rotated(tmp_path):
    path, old, new = tmp_path / "s.db", tmp_path / "old.key", tmp_path / "new.key"
    saved = opened(Store(path), None)
    for key in (old, new):
        answer("store", "new-key", key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert answer("store", "rotate-key", path, old)["streams"] == 1
    assert answer("store", "show", path)["streams"][0]["encrypted"]
    assert isinstance(run("store", "rotate-key", path, new).exception, InvalidInput)
    assert answer("store", "rotate-key", path, new, "--key", old)["streams"] == 1
    assert Store(path, key=new).load("clicks").state == saved.state
    assert "never replaced" in str(run("store", "new-key", new).exception)


def test_show_lists_streams_without_reading_a_state(tmp_path):
    path = tmp_path / "all.db"
    committed(Store(path), opened(Store(path), Ledger.create(path, Privacy(1.0, 1e-6), population="customers")))
    [row] = answer("store", "show", path)["streams"]
    assert (row["name"], row["rows"], row["releases"], row["recipe"]) == ("clicks", 10, 10, "pftrl, BLT")
    assert "1 stream" in run("store", "show", path).stdout


@pytest.fixture
def postgres(server):
    """The address of an empty database."""
    return server.new_database()


def test_the_same_commands_on_postgresql(postgres, tmp_path):
    run("budget", "create", postgres, "--epsilon", 1, "--delta", "1e-6", "--witness", tmp_path / "w.db")
    ledger = Ledger(postgres, witness=tmp_path / "w.db")
    saved = opened(Store(postgres, witness=tmp_path / "w.db"), ledger)
    assert answer("budget", "show", postgres)["streams"][0]["lineage"] == saved.lineage
    assert run("budget", "verify", postgres, "--witness", tmp_path / "w.db").exit_code == 0
    assert [row["name"] for row in answer("store", "show", postgres)["streams"]] == ["clicks"]
    assert "pg_dump" in str(run("store", "backup", postgres, tmp_path / "b.db").exception)
    newest = run("store", "adopt", postgres, "--yes")
    assert "nothing to adopt" in str(newest.exception)
    data = answer("store", "adopt", postgres, "--restored", "--yes")
    assert ledger.lines[data["second"]["lineage"]].reserved == saved.reserved
    assert "is closed" in run("budget", "close", postgres, data["second"]["lineage"]).stdout
    assert answer("store", "show", postgres)["streams"][0]["closed"]
