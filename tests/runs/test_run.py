"""A run goes on where it stopped, with the rows it knows, and refuses what it cannot go on with."""

import json
import subprocess
import sys

import numpy as np
import pytest

from small_run import batches, check, contract, go, saved, shown
from taciturn import Ledger, Privacy
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, StoreUnavailable
from taciturn.kernel.accounting.cost import FREE
from taciturn.runs import exporters
from taciturn.runs import run as runs
from taciturn.runs.files import Folder, locked
from taciturn.runs.ingest import learn_from
from taciturn.runs.resume import Unseen
from taciturn.runs.run import begin, find, resume
from taciturn.runs.summary import ModelFile
from taciturn.store import Store
from taciturn.store.witness import Witness
from taciturn.streams import stored

DECLARED = contract(40)


def files(place):
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("cuts", [[7], [1, 2, 39], [20, 20, 20]])
def test_with_a_seed_the_models_do_not_depend_on_where_it_stopped(tmp_path, cuts):
    """Nor on how the rows were cut."""
    go(tmp_path / "whole", DECLARED, batches(DECLARED, 40, 40), seed=5)
    for i, cut in enumerate(cuts):
        go(tmp_path / "parts", DECLARED, batches(DECLARED, cut, 3), seed=5, again=i > 0)
        check(tmp_path / "parts", DECLARED, seed=5)
    run, ending = go(tmp_path / "parts", DECLARED, batches(DECLARED, 40, 9), seed=5, again=True)
    assert (ending.why, run.left) == ("end", 0)
    for name in ("models.jsonl", "model.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert all(json.loads(line)["simulated"] for line in shown(tmp_path / "parts").splitlines())


@pytest.mark.privacy
def test_without_a_seed_noise_is_fresh_and_no_line_is_written_again(tmp_path):
    """What was shown stays; what follows differs from any other run's."""
    for name in ("one", "two"):
        go(tmp_path / name, DECLARED, batches(DECLARED, 20, 9))
        before = shown(tmp_path / name)
        go(tmp_path / name, DECLARED, batches(DECLARED, 40, 9), again=True)
        assert shown(tmp_path / name).startswith(before)
        assert b"simulated" not in before
    assert set(shown(tmp_path / "one").splitlines()).isdisjoint(shown(tmp_path / "two").splitlines())


def test_the_model_of_a_line_is_the_one_to_use_then(tmp_path):
    """Averages where the plan averages: those of the stream itself, after each release."""
    declared = contract(600, "auto")
    plan = declared.plan(on_bad="zero", seed=2)
    assert plan.averages
    run, _ = go(tmp_path / "run", declared, batches(declared, 600, 100), seed=2)
    lines = [json.loads(line) for line in shown(tmp_path / "run").splitlines()]
    np.testing.assert_array_equal(lines[-1]["model"], run.stream.model)
    assert lines[-1]["point"] != lines[-1]["model"]
    short, _ = go(tmp_path / "short", declared, batches(declared, lines[6]["t"], 11), seed=2)
    np.testing.assert_array_equal(lines[6]["model"], short.stream.model)


def other_rows(count, changed):
    rows = list(batches(DECLARED, count, 7))
    part = rows[changed // 7]
    X = part.X.copy()
    X[changed % 7, 0] += 2.0**-40
    rows[changed // 7] = part._replace(X=X)
    return iter(rows)


@pytest.mark.privacy
@pytest.mark.parametrize("changed", [0, 13, 19])
def test_other_rows_than_those_learnt_from_are_refused(tmp_path, changed):
    """By the last bits of one of them; and nothing changes."""
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    before = files(tmp_path)
    with pytest.raises(StateConflict, match="first 20 rows are not those"):
        go(tmp_path, DECLARED, other_rows(40, changed), again=True)
    assert files(tmp_path) == before
    run, _ = go(tmp_path, DECLARED, other_rows(40, 20), again=True)  # the first new one may be what it likes
    assert run.stream.t == 40


def test_rows_that_moved_are_refused(tmp_path):
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    swapped = list(batches(DECLARED, 40, 1))
    swapped[3], swapped[4] = swapped[4], swapped[3]
    with pytest.raises(StateConflict, match="not those"):
        go(tmp_path, DECLARED, iter(swapped), again=True)


def test_labels_are_part_of_the_digest(tmp_path):
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    flipped = [batch._replace(y=-batch.y) for batch in batches(DECLARED, 40, 7)]
    with pytest.raises(StateConflict, match="not those"):
        go(tmp_path, DECLARED, iter(flipped), again=True)


@pytest.mark.privacy
def test_planted_no_check_of_the_digest_is_caught(tmp_path, monkeypatch):
    """The test above fails without it."""
    monkeypatch.setattr(Unseen, "_compare", lambda self: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_other_rows_than_those_learnt_from_are_refused(tmp_path, 13)


def test_an_input_that_is_too_short_is_refused(tmp_path):
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    before = files(tmp_path)
    with pytest.raises(StateConflict, match="ends after 19"):
        go(tmp_path, DECLARED, batches(DECLARED, 19, 7), again=True)
    assert files(tmp_path) == before


def test_rows_past_the_horizon_are_refused_and_those_before_are_learnt(tmp_path):
    """A finished run that is resumed with more rows stays as it is."""
    run, ending = go(tmp_path, DECLARED, batches(DECLARED, 45, 8))
    assert (ending.why, ending.status, run.stream.t, run.stream.k) == ("rejected", 2, 40, 20)
    assert "horizon" in str(ending.error)
    before = files(tmp_path)
    _, ending = go(tmp_path, DECLARED, batches(DECLARED, 45, 8), again=True)
    assert ending.status == 2
    assert files(tmp_path) == before
    _, ending = go(tmp_path, DECLARED, batches(DECLARED, 40, 8), again=True)
    assert (ending.why, ending.status) == ("end", 0)
    assert files(tmp_path) == before


def test_a_second_run_in_a_folder_is_refused(tmp_path):
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    with pytest.raises(StateConflict, match="--resume"):
        go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    (tmp_path / "stream.db").unlink()
    with pytest.raises(StateConflict, match=r"models\.jsonl is not of this run"):
        go(tmp_path, DECLARED, batches(DECLARED, 20, 7))


def test_one_that_learnt_nothing_yet_may_begin_again_or_be_resumed(tmp_path):
    go(tmp_path, DECLARED, iter(()))
    go(tmp_path, DECLARED, iter(()))
    assert go(tmp_path, DECLARED, batches(DECLARED, 20, 7), again=True)[0].stream.t == 20


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="nothing to resume"):
        go(tmp_path, DECLARED, batches(DECLARED, 20, 7), again=True)


def test_another_contract_seed_or_file_is_refused(tmp_path):
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    with pytest.raises(StateConflict, match="contract is not the one"):
        go(tmp_path, contract(41), batches(DECLARED, 20, 7), again=True)
    with pytest.raises(StateConflict, match="--seed"):
        go(tmp_path, DECLARED, batches(DECLARED, 20, 7), again=True, seed=3)
    Store(tmp_path / "others.db").create("stream", lineage="x", position=(0, 0, 0, "x"), reserved=FREE)
    with pytest.raises(StateConflict, match="not written by taciturn learn"):
        find(Folder(tmp_path), tmp_path / "others.db", DECLARED.digest)


@pytest.mark.parametrize("again", [False, True])
def test_a_run_of_an_older_version_is_rejected(tmp_path, again):
    (tmp_path / "state.npz").write_bytes(b"a state")
    with pytest.raises(StateConflict, match="holds a run of an older version"):
        go(tmp_path, DECLARED, batches(DECLARED, 20, 7), again=again)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["state.npz"]


@pytest.mark.privacy
def test_an_older_state_than_what_was_released_is_refused(tmp_path):
    """A backup copied back would release its rounds again."""
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    backup = (tmp_path / "stream.db").read_bytes()
    go(tmp_path, DECLARED, batches(DECLARED, 30, 7), again=True)
    (tmp_path / "stream.db").write_bytes(backup)  # the same file: it is not noticed by that
    with pytest.raises(StateConflict, match="older than what was released"):
        go(tmp_path, DECLARED, batches(DECLARED, 40, 7), again=True)


def test_a_folder_has_one_process(tmp_path):
    """Another is refused while it lives, and welcome when it is gone."""
    code = "import sys; from pathlib import Path; from taciturn.runs.files import locked\n"
    code += "with locked(Path(sys.argv[1])): pass"
    with locked(tmp_path):
        done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert "another process is learning" in done.stderr
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == 0


@pytest.mark.privacy
def test_removing_the_file_of_the_lock_frees_nothing(tmp_path):
    """Two runs in one folder would release the same rounds; `.lock` is what people remove when a run is refused."""
    with locked(tmp_path):
        (tmp_path / ".lock").unlink()
        with pytest.raises(StateConflict, match="another process"), locked(tmp_path):
            pass
    with locked(tmp_path):
        pass


def test_the_store_is_for_its_owner(tmp_path):
    go(tmp_path, DECLARED, batches(DECLARED, 40, 7))
    assert (tmp_path / "stream.db").stat().st_mode & 0o777 == 0o600


def test_a_file_of_models_that_was_lost_is_written_again(tmp_path):
    """Each line as it was: the outbox has them all."""
    go(tmp_path, DECLARED, batches(DECLARED, 30, 7))
    seen = shown(tmp_path)
    for part in (b"", seen[:100], seen[:-3]):
        (tmp_path / "models.jsonl").write_bytes(part)
        go(tmp_path, DECLARED, batches(DECLARED, 30, 7), again=True)
        assert shown(tmp_path) == seen
    (tmp_path / "models.jsonl").unlink()
    (tmp_path / "model.json").unlink()
    go(tmp_path, DECLARED, batches(DECLARED, 40, 7), again=True)
    assert shown(tmp_path).startswith(seen)
    check(tmp_path, DECLARED)


@pytest.mark.privacy
@pytest.mark.parametrize("seed", [None, 3])
def test_of_two_that_go_on_from_one_commit_one_publishes(tmp_path, seed):
    """Without any lock: the store decides."""
    plan, folder = DECLARED.plan(on_bad="zero", seed=seed), Folder(tmp_path)
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7), seed=seed)
    (rows,) = batches(DECLARED, 40, 40)
    both = []
    for _ in range(2):
        both.append(resume(folder, Store(folder.store), plan, DECLARED.digest, seconds=3600.0))
        both[-1].learn(rows.X[20:30], rows.y[20:30])
    both[1].commit()
    seen = shown(tmp_path)
    with pytest.raises(StateConflict, match="another process went on"):
        both[0].commit()
    assert shown(tmp_path) == seen
    check(tmp_path, DECLARED, seed)


def test_several_runs_share_a_store(tmp_path):
    """Each by its name; a name is taken once, and each has its own outbox."""
    plan = DECLARED.plan(on_bad="zero")
    store = Store(tmp_path / "all.db")
    (rows,) = batches(DECLARED, 40, 40)
    for name, count in (("one", 10), ("two", 30)):
        (tmp_path / name).mkdir()
        run = begin(Folder(tmp_path / name), store, plan, DECLARED.digest, name=name)
        run.learn(rows.X[:count], rows.y[:count])
        run.commit()
        assert not run.in_folder
    assert sorted(store.names()) == ["one", "two"]
    assert [shown(tmp_path / name).count(b"\n") for name in ("one", "two")] == [5, 15]
    with pytest.raises(StateConflict, match="holds a run that has learnt"):
        begin(Folder(tmp_path / "two"), store, plan, DECLARED.digest, name="one")
    assert resume(Folder(tmp_path / "one"), store, plan, DECLARED.digest, name="one").stream.t == 10


@pytest.mark.privacy
def test_a_ledger_admits_a_run_once_and_only_if_it_fits(tmp_path):
    """Before anything is read; and what is spent is told to it."""
    ledger = Ledger.create(tmp_path / "budget.db", Privacy(1.2, 2e-6))
    plan = DECLARED.plan(on_bad="zero")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    folder = Folder(tmp_path / "one")
    run = begin(folder, Store(folder.store), plan, DECLARED.digest, ledger=ledger)
    assert ledger.reserved == plan.private.calibrated.cost(None)
    (rows,) = batches(DECLARED, 40, 40)
    run.learn(rows.X, rows.y)
    run.commit()
    assert ledger.spent == run.saved.spent == ledger.reserved
    resume(folder, Store(folder.store), plan, DECLARED.digest, ledger=ledger)
    other = Ledger.create(tmp_path / "other.db", Privacy(9.0, 1e-6))
    with pytest.raises(StateConflict, match="keeps the one it began with"):
        resume(folder, Store(folder.store), plan, DECLARED.digest, ledger=other)
    second = Folder(tmp_path / "two")
    with pytest.raises(BudgetExhausted, match="would reserve"):
        begin(second, Store(second.store), plan, DECLARED.digest, ledger=ledger)
    assert shown(tmp_path / "two") == b""
    with pytest.raises(InvalidInput, match="simulation"):
        begin(second, Store(second.store), DECLARED.plan(seed=1), DECLARED.digest, ledger=ledger)


@pytest.mark.privacy
def test_a_restored_store_is_noticed_by_a_witness(tmp_path):
    """Also if `models.jsonl` is restored with it, in the very same files."""
    place, witness = tmp_path / "run", tmp_path / "witness.db"
    plan, folder = DECLARED.plan(on_bad="zero"), Folder(place)
    place.mkdir()
    (rows,) = batches(DECLARED, 40, 40)
    run = begin(folder, Store(folder.store, witness=witness), plan, DECLARED.digest)
    backup = files(place)
    run.learn(rows.X, rows.y)
    run.commit()
    for name, content in backup.items():
        (place / name).write_bytes(content)
    (place / "models.jsonl").unlink()
    with pytest.raises(StateConflict, match="behind its witness"):
        find(folder, folder.store, DECLARED.digest, resuming=True, witness=witness)


def test_commits_wait_while_rows_come_fast_and_not_when_they_stop(tmp_path):
    """At most one in so many seconds; and one when nothing comes, before anyone asks."""
    plan = DECLARED.plan(on_bad="zero", seed=1)
    run = begin(Folder(tmp_path), Store(tmp_path / "stream.db"), plan, "digest", seconds=3600.0)
    (first,) = batches(DECLARED, 20, 20)
    run.learn(first.X, first.y)
    assert saved(tmp_path).position[1] == 0
    assert shown(tmp_path) == b""
    run.commit_if_due()
    assert shown(tmp_path) == b""
    run.seconds = 0.0
    run.commit_if_due()
    assert saved(tmp_path).position[1] == 20
    assert shown(tmp_path).count(b"\n") == 10


def test_much_that_waits_is_committed(tmp_path, monkeypatch):
    """However little time has passed: memory is bounded."""
    monkeypatch.setattr(runs, "_MOST_TEXT", 1000)
    monkeypatch.setattr(stored, "_MOST_ENTRIES", 8)
    plan = DECLARED.plan(on_bad="zero", seed=1)
    run = begin(Folder(tmp_path), Store(tmp_path / "stream.db"), plan, "digest", seconds=3600.0)
    (rows,) = batches(DECLARED, 40, 40)
    run.learn(rows.X, rows.y)
    assert saved(tmp_path).position[1] > 0
    assert run.stream.waiting <= 1000 + 8 * 200


def test_a_bad_row_takes_its_round(tmp_path):
    """Rounds and schedule do not depend on it, and resuming knows it again."""
    (rows,) = batches(DECLARED, 40, 40)
    X, y = rows.X.copy(), rows.y.copy()
    X[11], y[11] = np.nan, np.nan
    X[30, 1] = np.nan
    parts = [rows._replace(X=X[:20], y=y[:20]), rows._replace(X=X[20:], y=y[20:], first=20)]
    go(tmp_path, DECLARED, iter(parts[:1]))
    run, ending = go(tmp_path, DECLARED, iter(parts), again=True)
    assert (ending.why, run.stream.t, run.stream.k) == ("end", 40, 20)


def test_a_refusal_of_the_reader_commits_what_came_before(tmp_path):
    """And the run goes on when the row was mended."""

    def stops():
        yield from batches(DECLARED, 17, 5)
        raise InvalidInput("line 19: age is 'abc', which is not a number.")

    run, ending = go(tmp_path, DECLARED, stops())
    assert (ending.why, ending.status, run.stream.t) == ("rejected", 2, 17)
    check(tmp_path, DECLARED)
    assert go(tmp_path, DECLARED, batches(DECLARED, 40, 5), again=True)[0].stream.t == 40


def test_a_stream_without_end_goes_on_for_as_long_as_rows_come(tmp_path):
    declared = contract(None, "geometric")
    for count in (10, 200):
        run, ending = go(tmp_path, declared, batches(declared, count, 50), again=count > 10)
        assert (ending.why, run.left, run.stream.t) == ("end", None, count)
        check(tmp_path, declared)


# Interruptions, after which the same process goes on.


class Interrupted(BaseException):
    """What stops a run anywhere, as Ctrl-C does."""


def interrupting(call, after):
    """The function, interrupted before or after its work, the first time."""
    left = [1]

    def stopped(*given, **named):
        if left and not after:
            left.clear()
            raise Interrupted
        result = call(*given, **named)
        if left:
            left.clear()
            raise Interrupted
        return result

    return stopped


STEPS = {
    "the transaction": (Store, "commit"),
    "models.jsonl": (exporters, "write_at"),
    "the witness": (Witness, "record"),
}


@pytest.mark.privacy
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", [*STEPS, "model.json"])
@pytest.mark.parametrize("more", [False, True], ids=["at once", "after more rows"])
def test_an_interrupted_commit_is_completed_by_the_next(tmp_path, monkeypatch, step, after, more):
    """Every line once, the text of the outbox, wherever it was stopped."""
    (rows,) = batches(DECLARED, 40, 40)
    folder = Folder(tmp_path)
    store = Store(folder.store, witness=tmp_path / "witness.db")
    run = begin(folder, store, DECLARED.plan(on_bad="zero"), DECLARED.digest, seconds=1e9)
    run.learn(rows.X[:10], rows.y[:10])
    run.commit()
    run.learn(rows.X[10:20], rows.y[10:20])
    if step == "model.json":
        run.exporters = (*run.exporters, interrupting(ModelFile(DECLARED), after))
    else:
        owner, name = STEPS[step]
        monkeypatch.setattr(owner, name, interrupting(getattr(owner, name), after))
    with pytest.raises(Interrupted):
        run.commit()
    if more:
        run.learn(rows.X[20:30], rows.y[20:30])
    shown_models = []
    run.exporters = (*run.exporters, lambda run: shown_models.append((run.stream.t, run.committed)))
    run.commit()
    assert shown_models
    assert all(t == committed for t, committed in shown_models)
    run.learn(rows.X[run.stream.t : 40], rows.y[run.stream.t : 40])
    run.commit()
    lines = shown(tmp_path)
    assert [json.loads(line)["k"] for line in lines.splitlines()] == list(range(1, 21))
    assert lines == b"".join(chunk.content for chunk in store.releases("stream"))
    assert store.load("stream").position[1] == 40


@pytest.mark.privacy
@pytest.mark.parametrize("step", ["prepare", "add"])
def test_a_run_that_was_interrupted_while_it_learnt_is_resumed(tmp_path, monkeypatch, step):
    """Rows without their lines are never committed."""
    (rows,) = batches(DECLARED, 40, 40)
    folder, plan = Folder(tmp_path), DECLARED.plan(on_bad="zero")
    run = begin(folder, Store(folder.store), plan, DECLARED.digest, seconds=1e9)
    owner = {"prepare": run.stream, "add": run.seen}[step]
    with monkeypatch.context() as stopped:
        stopped.setattr(owner, step, interrupting(getattr(owner, step), after=True))
        with pytest.raises(Interrupted):
            run.learn(rows.X[:10], rows.y[:10])
    for go_on in (run.commit, lambda: run.learn(rows.X[10:], rows.y[10:])):
        with pytest.raises(StateConflict, match="Resume it"):
            go_on()
    assert shown(tmp_path) == b""
    run = resume(folder, Store(folder.store), plan, DECLARED.digest)
    run.learn(rows.X, rows.y)
    run.commit()
    assert [json.loads(line)["k"] for line in shown(tmp_path).splitlines()] == list(range(1, 21))


@pytest.mark.privacy
def test_an_input_that_is_read_again_after_a_failed_commit_is_learnt_once(tmp_path, monkeypatch):
    """In the same process: rows that are learnt and not committed are committed first, and then skipped."""
    declared = contract(20)
    store = Store(tmp_path / "stream.db")
    run = begin(Folder(tmp_path), store, declared.plan(on_bad="zero"), declared.digest, seconds=0.0, format="csv")
    commit, calls = store.commit, []

    def away(*given, **named):
        calls.append(given)
        if len(calls) == 3:
            raise StoreUnavailable("the server does not answer.")
        return commit(*given, **named)

    monkeypatch.setattr(store, "commit", away)
    with pytest.raises(StateConflict, match="does not answer"):
        learn_from(run, batches(declared, 20, 4))
    assert (run.stream.t, run.committed) == (12, 8)
    learn_from(run, batches(declared, 20, 4))
    assert (run.stream.t, run.committed, run.input.end.row) == (20, 20, 20)
    check(tmp_path, declared)
