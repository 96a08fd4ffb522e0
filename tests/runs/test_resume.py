"""Rows that a run has learnt from are recognised, however they arrive, without being read from the beginning."""

import gzip
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from small_run import batches, contract, go, rows_of, saved
from taciturn.errors import StateConflict
from taciturn.readers.rows import Position, open_rows
from taciturn.readers.source import format_of
from taciturn.runs import resume
from taciturn.runs.resume import BLOCK, Checkpoint, RowChain, SeenRows

X, Y = np.random.default_rng(1).normal(size=(30, 3)), np.resize([1.0, -1.0], 30)


def digest(X, y, cuts=(), key=b"key"):
    made, edges = RowChain(key), [0, *sorted(cuts), len(y)]
    for a, b in itertools.pairwise(edges):
        made.add(X[a:b], y[a:b])
    return made.value


@given(st.sets(st.integers(0, 30)))
def test_a_digest_does_not_depend_on_cuts(cuts):
    assert digest(X, Y, cuts) == digest(X, Y)


@given(st.integers(0, 29), st.integers(0, 3), st.sampled_from([0.0, -1.0, 1e300, np.nan, np.inf]))
def test_a_digest_changes_with_any_entry(row, column, value):
    """And with the key, but not with the order of entries in memory."""
    changed = np.column_stack([X, Y])
    changed[row, column] = value
    same = np.array_equal(changed, np.column_stack([X, Y]))
    assert (digest(changed[:, :3], changed[:, 3]) == digest(X, Y)) == same
    assert digest(X, Y, key=b"other") != digest(X, Y)
    assert digest(np.asfortranarray(X), Y) == digest(X, Y)


@settings(max_examples=30)
@given(st.sets(st.integers(0, 2 * BLOCK), max_size=4), st.integers(1, 2 * BLOCK), st.data())
def test_any_entry_of_a_long_block_matters_wherever_calls_end(cuts, rows, data):
    """Rows are hashed some at a time."""
    rng = np.random.default_rng(2)
    V, w = rng.normal(size=(rows, 2)), rng.normal(size=rows)
    inside = {cut for cut in cuts if cut < rows}
    assert digest(V, w, inside) == digest(V, w)
    changed, labels = V.copy(), w.copy()
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, 2))
    if column < 2:
        changed[row, column] += 1.0
    else:
        labels[row] += 1.0
    assert digest(changed, labels, inside) != digest(V, w)


def test_sums_that_overflow_do_no_harm():
    """Numbers as large as they can be are good rows."""
    large = np.full((30, 3), 1.7e308)
    assert digest(large, Y, [7]) == digest(large, Y)
    assert digest(large, Y) != digest(-large, Y)


def test_bad_rows_are_alike_whatever_is_in_them():
    """Readers may leave different things in a row without influence."""
    one, two = X.copy(), X.copy()
    one[4], two[4, 1], two[4, 2] = np.nan, -np.nan, np.inf
    assert digest(one, Y, [3]) == digest(two, np.where(np.arange(30) == 4, np.nan, Y), [4, 9])
    assert digest(one, Y) != digest(X, Y)


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 30), st.integers(1, 9))
def test_a_chain_goes_on_from_its_window(cuts, end, block):
    """Which is at least a full block before the end, and less than two; or where the chain began."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resume, "BLOCK", block)
        chain = RowChain(b"key")
        for a, b in itertools.pairwise(sorted([0, *(cut for cut in cuts if cut < end), end])):
            chain.add(X[a:b], Y[a:b])
        window = chain.window
        assert window.row == max(0, (end // block - 1) * block)
        again = RowChain(b"key", window)
        again.add(X[window.row : end], Y[window.row : end])
        assert (again.value, again.rows) == (chain.value, end)
        assert again.window in (window, chain.window)


def test_rows_that_are_missing_or_changed_within_the_window_change_the_chain():
    rows = 3 * BLOCK + 5
    X, y = np.random.default_rng(1).random((rows, 2)), np.ones(rows)
    chain = RowChain(b"key")
    chain.add(X, y)
    start = chain.window.row
    for change in (start, start + BLOCK, rows - 1):
        other, again = X.copy(), RowChain(b"key", chain.window)
        other[change, 1] += 2.0**-40
        again.add(other[start:], y[start:])
        assert again.value != chain.value
    moved = RowChain(b"key", chain.window)
    moved.add(X[start - 1 : -1], y[start - 1 : -1])
    assert moved.value != chain.value


DECLARED = contract(None, "geometric")


def write(path, count):
    """The first rows of the case, in the format of the file's name."""
    header, rows = "age,town,bought", rows_of(count)
    if path.suffix == ".parquet":
        columns = zip(*(row.split(",") for row in rows), strict=True)
        table = pa.table({name: list(column) for name, column in zip(header.split(","), columns, strict=True)})
        parquet.write_table(table, path, row_group_size=700)
    elif path.suffix == ".jsonl":
        names = header.split(",")
        fields = (dict(zip(names, row.split(","), strict=True)) for row in rows)
        path.write_text("".join(str(record).replace("'", '"') + "\n" for record in fields))
    else:
        text = "\n".join([header, *rows, ""])
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def learn(place, path, *, again, check="window", block=900):
    """As `taciturn learn` does: reading begins at the place of the checkpoint."""
    kind = format_of(path)
    start = Checkpoint.from_bytes(saved(place).input).place_in(kind) if again and check == "window" else None
    rows = open_rows(DECLARED, path, block=block, start=start)
    read = []

    def counted():
        for batch in rows:
            read.append(len(batch.y))
            yield batch

    run, ending = go(
        place, DECLARED, counted(), again=again, seed=3, check="all" if start is None else check, format=kind
    )
    return run, ending, sum(read)


@settings(deadline=None, max_examples=8)
@given(st.lists(st.integers(1, 9_000), min_size=1, max_size=3), st.sampled_from(["csv", "csv.gz", "jsonl", "parquet"]))
def test_a_file_that_grows_is_read_from_where_the_run_stood(tmp_path_factory, counts, kind):
    """However it is stored; the models are those of a run that never stopped, and little is read twice."""
    folder = tmp_path_factory.mktemp("grows")
    path, done = folder / f"data.{kind}", 0
    for i, count in enumerate(sorted(counts)):
        run, ending, read = learn(folder / "run", write(path, count), again=i > 0)
        assert (ending.why, run.stream.t) == ("end", count)
        assert read <= count - done + 2 * BLOCK + 900
        done = count
    learn(folder / "whole", path, again=False)
    assert (folder / "run" / "models.jsonl").read_bytes() == (folder / "whole" / "models.jsonl").read_bytes()


def edited(path, line):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = b"1" + lines[line][1:] if lines[line][:1] != b"1" else b"2" + lines[line][1:]
    path.write_bytes(b"".join(lines))


@pytest.mark.privacy
def test_rows_in_the_window_are_compared_and_all_of_them_on_demand(tmp_path):
    path, rows = write(tmp_path / "data.csv", 20_000), 20_000
    learn(tmp_path / "run", path, again=False)
    edited(path, rows - 100)
    for check, words in (
        ("window", "rows 12,289 to 20,000 are not those .* add --check-input"),
        ("all", "first 20,000"),
    ):
        with pytest.raises(StateConflict, match=words):
            learn(tmp_path / "run", path, again=True, check=check)
    edited(write(path, rows), 50)  # early, and of the same length: only the whole comparison notices
    with pytest.raises(StateConflict, match="the first 20,000 rows are not those"):
        learn(tmp_path / "run", path, again=True, check="all")
    assert learn(tmp_path / "run", path, again=True)[0].stream.t == rows


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_a_file_that_became_shorter_is_rejected(tmp_path, kind):
    """Before the place where reading would begin, or after it."""
    path = write(tmp_path / f"data.{kind}", 20_000)
    learn(tmp_path / "run", path, again=False)
    for count, words in ((100, "ends earlier"), (19_999, "ends after 19,999")):
        with pytest.raises(StateConflict, match=f"learnt from 20,000 rows, but the input {words}"):
            learn(tmp_path / "run", write(path, count), again=True)


def test_a_place_is_of_one_format(tmp_path):
    """The same rows in another format are read from their beginning, and then from a place in that."""
    learn(tmp_path / "run", write(tmp_path / "data.csv", 20_000), again=False)
    run, _, read = learn(tmp_path / "run", write(tmp_path / "data.jsonl", 21_000), again=True)
    assert (run.stream.t, read) == (21_000, 21_000)
    run, _, read = learn(tmp_path / "run", write(tmp_path / "data.jsonl", 22_000), again=True)
    assert run.stream.t == 22_000
    assert read < 12_000


def test_on_the_users_word_the_first_row_is_the_next(tmp_path):
    """What was learnt before is not compared again, even if the whole input is given; what follows is."""
    whole = list(batches(DECLARED, 300, 50))
    go(tmp_path / "run", DECLARED, iter(whole[:2]), seed=3)
    later = [batch._replace(start=Position(i, 2, 16)) for i, batch in enumerate(whole[2:4])]  # another input
    run, _ = go(tmp_path / "run", DECLARED, iter(later), seed=3, again=True, check="none")
    assert run.stream.t == 200
    edited = [whole[0]._replace(X=whole[0].X + 1.0), *whole[1:]]
    run, _ = go(tmp_path / "run", DECLARED, iter(edited), seed=3, again=True)
    assert run.stream.t == 300
    edited = [*whole[:3], whole[3]._replace(X=whole[3].X + 1.0), *whole[4:]]
    with pytest.raises(StateConflict, match="rows 101 to 300 are not those"):
        go(tmp_path / "run", DECLARED, iter(edited), seed=3, again=True)
    go(tmp_path / "whole", DECLARED, iter(whole), seed=3)
    assert (tmp_path / "run" / "models.jsonl").read_bytes() == (tmp_path / "whole" / "models.jsonl").read_bytes()


def test_few_places_are_remembered():
    """Of ten thousand batches of one row, those of a window."""
    seen, one = SeenRows(format="csv"), (np.zeros((1, 2)), np.zeros(1))
    for row in range(10_000):
        seen.begin_batch(Position(row, row + 2, 7 * row))
        seen.add(*one)
    assert seen.checkpoint.place == Position(BLOCK, BLOCK + 2, 7 * BLOCK)
    assert len(seen._places) <= 2 * BLOCK + 1


def test_an_id_that_is_no_text_is_hashed():
    """JSON may hold half of a surrogate pair."""
    made = [RowChain(b"key") for _ in range(2)]
    for chain, user in zip(made, ("\ud800", "\udfff"), strict=True):
        chain.add(X[:1], Y[:1], np.array([user], dtype=object))
    assert made[0].value != made[1].value


@settings(max_examples=20)
@given(st.lists(st.integers(1, 3), max_size=3), st.integers(0, BLOCK - 1), st.booleans())
def test_digests_of_workers_make_the_chain_of_one_process(tasks, rest, with_ids):
    """Tasks of some blocks each, and a last one that is not complete; nothing follows that."""
    from taciturn.runs.resume import RowDigests

    rows = sum(tasks) * BLOCK + rest
    X, y = np.arange(2.0 * rows).reshape(-1, 2), np.arange(1.0 * rows)
    X[: rows // 3, 0] = np.nan
    ids = np.array([f"user {i % 7}" for i in range(rows)], dtype=object) if with_ids else None
    alone, together = RowChain(b"key"), RowChain(b"key")
    alone.add(X, y, ids)
    at = 0
    for size in [*(blocks * BLOCK for blocks in tasks), rest]:
        worker = RowDigests(b"key")
        worker.add(X[at : at + size], y[at : at + size], None if ids is None else ids[at : at + size])
        together.add_digests([*worker.take_complete(), *([worker.open] if worker.open.rows else [])])
        at += size
    assert (together.rows, together.value, together.window) == (alone.rows, alone.value, alone.window)
    if rest:
        with pytest.raises(RuntimeError, match="only the digest is known"):
            together.add(X[:1], y[:1])
