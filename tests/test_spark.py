"""Spark: the releases of one process, whatever the batches are, and nothing twice, whatever fails."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engines.test_files import ROWS, batched, covered, list_map, outbox, write
from engines.test_pool import CONTRACTS
from taciturn import spark as engine
from taciturn.engines.files import FileStream
from taciturn.errors import InvalidInput, StateConflict
from taciturn.store import Store

pytestmark = [pytest.mark.spark, pytest.mark.privacy, pytest.mark.filterwarnings("ignore")]

CONTRACT = CONTRACTS["pqftl, steady"]


@pytest.fixture(scope="module")
def session():
    """Two cores of this machine."""
    made = engine.session("local[2]")
    yield made
    made.stop()


def in_time(folder, names):
    """Give the files times of modification in the order of their names."""
    for i, name in enumerate(names):
        os.utime(folder / name, (1_700_000_000 + i, 1_700_000_000 + i))
    return names


@pytest.fixture
def source(tmp_path):
    """A folder of files, and what one process publishes of them."""
    folder = tmp_path / "files"
    folder.mkdir()
    names = in_time(folder, write(folder))
    alone = FileStream(Store(tmp_path / "one.db"), CONTRACT, list_map, folder=folder, seed=3)
    alone.learn("query", 0, names)
    return folder, names, outbox(alone)


def learn(session, folder, store, **more):
    """All files that are there."""
    settings = {"checkpoint": store.parent / f"{store.stem}-checkpoint", "seed": 3} | more
    engine.learn_files(session, folder, CONTRACT, Store(store), **settings)
    return FileStream(Store(store), CONTRACT, list_map, folder=folder, seed=settings["seed"])


def test_batches_of_any_size_publish_what_one_process_does(session, source, tmp_path):
    folder, names, expected = source
    for size in (1, 4, 16):
        stream = learn(session, folder, tmp_path / f"by{size}.db", files_per_batch=size)
        assert outbox(stream) == expected
        assert [name for name, _ in stream.learnt().files] == names
        assert stream.learnt().batch == len(batched(names, size)) - 1
        covered(stream)


def test_files_that_come_later_are_learnt_when_they_come_and_once(session, source, tmp_path):
    """A checkpoint that has lost its last commit hands a batch over again; one that is deleted is rejected."""
    folder, names, expected = source
    later = tmp_path / "later"
    later.mkdir()
    for name in names[8:]:
        shutil.move(folder / name, later / name)
    store, checkpoint = tmp_path / "stream.db", tmp_path / "stream-checkpoint"
    stream = learn(session, folder, store, files_per_batch=4)
    half = outbox(stream)
    assert expected.startswith(half)
    assert stream.learnt().batch == 1
    for file in (checkpoint / "commits").glob("*1*"):  # also .1.crc
        file.unlink()
    assert outbox(learn(session, folder, store, files_per_batch=4)) == half
    for name in names[8:]:
        shutil.move(later / name, folder / name)
    shutil.copytree(checkpoint, tmp_path / "old-checkpoint")
    stream = learn(session, folder, store, files_per_batch=4)
    assert outbox(stream) == expected
    shutil.rmtree(checkpoint)
    with pytest.raises(StateConflict, match="of another query"):
        learn(session, folder, store)
    assert outbox(stream) == expected
    shutil.rmtree(checkpoint)
    assert outbox(learn(session, folder, store, new_query=True)) == expected
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "old-checkpoint", checkpoint)
    with pytest.raises(StateConflict, match="of another query"):
        learn(session, folder, store)
    covered(stream)


def test_an_error_of_the_sink_is_told_as_it_is_and_a_retry_learns_once(session, source, tmp_path):
    folder, _, expected = source
    (folder / "zz.parquet").write_bytes(b"no Parquet")
    os.utime(folder / "zz.parquet", (1_700_001_000, 1_700_001_000))
    with pytest.raises(InvalidInput, match="this Parquet file cannot be read"):
        learn(session, folder, tmp_path / "stream.db", files_per_batch=4)
    stream = FileStream(Store(tmp_path / "stream.db"), CONTRACT, list_map, folder=folder, seed=3)
    assert outbox(stream) == expected  # batches before it
    with pytest.raises(InvalidInput, match="format"):
        learn(session, folder, tmp_path / "other.db", format="json")


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from engines.test_pool import CONTRACTS
from taciturn import spark as engine
from taciturn.store import Store
master, folder, store, size = sys.argv[1:]
session = engine.session(master)
print("ready", flush=True)
engine.learn_files(session, folder, CONTRACTS["pqftl, steady"], Store(store), checkpoint=store + "-checkpoint",
                   files_per_batch=int(size), seed=3)
session.stop()
"""


def driver(master, folder, store, size):
    here = str(Path(__file__).parent)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(paths=[here]), master, str(folder), str(store), str(size)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("master", ["local[1]", "local-cluster[2,1,1024]"])
def test_other_masters_publish_the_same(master, source, tmp_path):
    folder, _, expected = source
    process = driver(master, folder, tmp_path / "stream.db", 5)
    assert process.wait(600) == 0, process.stderr.read()[-2000:]
    stream = FileStream(Store(tmp_path / "stream.db"), CONTRACT, list_map, folder=folder, seed=3)
    assert outbox(stream) == expected


@pytest.mark.slow
def test_kills_of_the_driver_release_nothing_twice(source, tmp_path):
    """Five SIGKILLs at random moments after a commit."""
    folder, _, expected = source
    store, moments, seen, kills = tmp_path / "stream.db", random.Random(5), b"", 0
    while kills < 5:
        process = driver("local[1]", folder, store, 1)
        begun = time.monotonic()
        while process.poll() is None and time.monotonic() < begun + 300:
            stream = None
            if store.exists() and store.stat().st_size:
                stream = FileStream(Store(store), CONTRACT, list_map, folder=folder, seed=3)
                if len(outbox(stream)) > len(seen) or stream.learnt().batch > 2 * kills:
                    break
            time.sleep(0.05)
        time.sleep(moments.uniform(0.0, 0.5))
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)  # the JVM, too
        process.wait()
        kills += 1
        stream = FileStream(Store(store), CONTRACT, list_map, folder=folder, seed=3)
        covered(stream)
        assert outbox(stream).startswith(seen)
        assert expected.startswith(outbox(stream))
        seen = outbox(stream)
    assert kills >= 3
    process = driver("local[1]", folder, store, 1)
    assert process.wait(600) == 0, process.stderr.read()[-2000:]
    stream = FileStream(Store(store), CONTRACT, list_map, folder=folder, seed=3)
    assert outbox(stream) == expected
    assert sum(rows for _, rows in stream.learnt().files) == ROWS


def test_a_missing_or_old_java_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidInput, match="Java 17 or newer, and there is none"):
        engine.check_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o700)
    with pytest.raises(InvalidInput, match="Java 17 or newer, and this is 11"):
        engine.check_java()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n")
    engine.check_java()


def test_files_elsewhere_and_sessions_without_a_context_are_rejected():
    with pytest.raises(InvalidInput, match="s3a is not"):
        engine._local("s3a://bucket/a.parquet")
    assert engine._local("file:/a%20b/c.parquet") == Path("/a b/c.parquet")
    with pytest.raises(InvalidInput, match="Spark Connect"):
        engine.spark_map(object())
