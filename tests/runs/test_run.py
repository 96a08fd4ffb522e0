"""A run goes on where it stopped, with the rows it knows, and refuses what it cannot go on with."""

import json
import subprocess
import sys

import numpy as np
import pytest

from small_run import batches, check, contract, go, shown
from taciturn.core.state import read_extra, read_state
from taciturn.errors import InvalidInput, StateConflict
from taciturn.runs import run as runs
from taciturn.runs.files import Folder, locked
from taciturn.runs.resume import Unseen
from taciturn.runs.run import begin

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
    assert (ending.why, ending.status, run.stream.t, run.stream.k) == ("refused", 2, 40, 20)
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
    (tmp_path / "state.npz").unlink()
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
    plan = DECLARED.plan(on_bad="zero")
    plan.private.start().dump(tmp_path / "state.npz")
    with pytest.raises(StateConflict, match="not written by taciturn learn"):
        go(tmp_path, DECLARED, batches(DECLARED, 20, 7), again=True)


@pytest.mark.privacy
def test_an_older_state_than_what_was_released_is_refused(tmp_path):
    """A backup copied back would release its rounds again."""
    go(tmp_path, DECLARED, batches(DECLARED, 20, 7))
    backup = (tmp_path / "state.npz").read_bytes()
    go(tmp_path, DECLARED, batches(DECLARED, 30, 7), again=True)
    (tmp_path / "state.npz").write_bytes(backup)
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


def test_the_state_is_for_its_owner_and_holds_no_more_than_it_must(tmp_path):
    """Releases that were written before are not in it again."""
    go(tmp_path, DECLARED, batches(DECLARED, 40, 7))
    assert (tmp_path / "state.npz").stat().st_mode & 0o777 == 0o600
    unwritten = read_extra(tmp_path / "state.npz")["unwritten"].tobytes()
    assert shown(tmp_path).endswith(unwritten)
    assert unwritten.count(b"\n") == 3


def test_commits_wait_while_rows_come_fast_and_not_when_they_stop(tmp_path):
    """At most one in so many seconds; and one when nothing comes, before anyone asks."""
    plan = DECLARED.plan(on_bad="zero", seed=1)
    run = begin(Folder(tmp_path), plan, "digest", seconds=3600.0)
    (first,) = batches(DECLARED, 20, 20)
    run.learn(first.X, first.y)
    assert read_state(tmp_path / "state.npz").t == 0
    assert shown(tmp_path) == b""
    run.commit_if_due()
    assert shown(tmp_path) == b""
    run.seconds = 0.0
    run.commit_if_due()
    assert read_state(tmp_path / "state.npz").t == 20
    assert shown(tmp_path).count(b"\n") == 10


def test_much_that_waits_is_committed(tmp_path, monkeypatch):
    """However little time has passed: memory is bounded."""
    monkeypatch.setattr(runs, "_MOST_TEXT", 1000)
    monkeypatch.setattr(runs, "_MOST_ENTRIES", 8)
    run = begin(Folder(tmp_path), DECLARED.plan(on_bad="zero", seed=1), "digest", seconds=3600.0)
    (rows,) = batches(DECLARED, 40, 40)
    run.learn(rows.X, rows.y)
    assert read_state(tmp_path / "state.npz").t > 0
    assert len(b"".join(run._unwritten)) <= 1000 + 8 * 200


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
    assert (ending.why, ending.status, run.stream.t) == ("refused", 2, 17)
    check(tmp_path, DECLARED)
    assert go(tmp_path, DECLARED, batches(DECLARED, 40, 5), again=True)[0].stream.t == 40


def test_a_stream_without_end_goes_on_for_as_long_as_rows_come(tmp_path):
    declared = contract(None, "geometric")
    for count in (10, 200):
        run, ending = go(tmp_path, declared, batches(declared, count, 50), again=count > 10)
        assert (ending.why, run.left, run.stream.t) == ("end", None, count)
        check(tmp_path, declared)
