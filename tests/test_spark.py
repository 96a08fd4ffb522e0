"""Spark: the releases of one process, whatever the batches are, and nothing twice, whatever fails."""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engines.test_files import FILES, ROWS, batched, covered, list_map, outbox, write
from engines.test_pool import CONTRACTS
from killing import kill_repeatedly
from taciturn import spark as engine
from taciturn.engines.files import FileStream
from taciturn.errors import InvalidInput, StateConflict
from taciturn.kernel.replay import records_of
from taciturn.kernel.stream.state import read_state
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


def written(tmp_path, contract=CONTRACT, count=FILES):
    """A folder of files, and what one process publishes of them."""
    folder = tmp_path / "files"
    folder.mkdir()
    names = in_time(folder, write(folder, count=count))
    return folder, names, outbox(alone(tmp_path, folder, names, contract))


def alone(tmp_path, folder, names, contract):
    """One process that learns all files."""
    stream = FileStream(Store(tmp_path / "one.db"), contract, list_map, folder=folder, seed=3)
    stream.learn("query", 0, names)
    return stream


@pytest.fixture
def source(tmp_path):
    return written(tmp_path)


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
from killing import kill_repeatedly
from taciturn import spark as engine
from taciturn.store import Store
master, folder, store, size, name, log = sys.argv[1:]
logged = dict(spark_eventLog_enabled="true", spark_eventLog_dir=log, spark_eventLog_compress="false") if log else dict()
session = engine.session(master, **logged)
print("ready", flush=True)
engine.learn_files(session, folder, CONTRACTS[name], Store(store), checkpoint=store + "-checkpoint",
                   files_per_batch=int(size), seed=3)
session.stop()
"""


def driver(master, folder, store, size, contract="pqftl, steady", log=""):
    here = str(Path(__file__).parent)
    options = [master, str(folder), str(store), str(size), contract, str(log)]
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(paths=[here]), *options],
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


def test_keys_ids_and_hashes_of_users_are_in_no_event_log(tmp_path):
    """Users are admitted by executors; what travels to them is data of a job, which Spark's log does not hold."""
    contract = CONTRACTS["pqftl, users"]
    folder, _, expected = written(tmp_path, contract)
    log = tmp_path / "log"
    log.mkdir()
    process = driver("local[2]", folder, tmp_path / "stream.db", 5, "pqftl, users", log)
    assert process.wait(600) == 0, process.stderr.read()[-2000:]
    stream = FileStream(Store(tmp_path / "stream.db"), contract, list_map, folder=folder, seed=3)
    assert outbox(stream) == expected
    covered(stream)
    saved = stream.store.load("stream")
    records = records_of(read_state(saved.state, stream.store.layers(saved)).users)
    logged = b"".join(file.read_bytes() for file in log.rglob("*") if file.is_file())
    assert b"SparkListenerTaskEnd" in logged
    secrets = [bytes(records["key"]), *(bytes(each) for each in records["hashes"][:50])]
    for secret in secrets:
        for form in (secret, secret.hex().encode(), base64.b64encode(secret)[:-4]):
            assert form not in logged
    assert re.search(rb"user \d", logged) is None


@pytest.mark.slow
def test_covertype_twenty_times_is_learnt_as_by_one_process(session, data_file, tmp_path):
    """11,620,240 rows, in twenty files."""
    import pyarrow as pa
    from pyarrow import parquet

    from taciturn.contract.contract import contract_of
    from taciturn.datasets import covertype

    data_file("covtype.data.gz", "covtype.data", "covtype.npz")
    rows = covertype()
    names = [f"x{j}" for j in range(54)]
    first = tmp_path / "first.parquet"
    table = pa.table(dict(zip(names, rows.X.T, strict=True)) | {"y": rows.y})
    parquet.write_table(table, first, row_group_size=2**17)
    folder = tmp_path / "files"
    folder.mkdir()
    files = [f"part{i:02}.parquet" for i in range(20)]
    for name in files:
        os.link(first, folder / name)
    contract = contract_of(
        {
            "privacy": {"epsilon": 1.0},
            "target": {"column": "y", "range": [-1, 1]},
            "learning": {"loss": "squared", "horizon": 20 * len(rows.y), "release": 65_536},
            "columns": {name: {"range": [-1, 1]} for name in names},
        }
    )
    expected = alone(tmp_path, folder, files, contract)
    store = Store(tmp_path / "stream.db")
    engine.learn_files(session, folder, contract, store, checkpoint=tmp_path / "checkpoint", seed=3, files_per_batch=8)
    stream = FileStream(store, contract, list_map, folder=folder, seed=3)
    assert outbox(stream) == outbox(expected)
    assert sum(count for _, count in stream.learnt().files) == 11_620_240


class Killed:
    """A driver with its JVM, for `killing`."""

    def __init__(self, tmp_path):
        self.folder, _, self.expected = written(tmp_path, count=48)
        self.store = tmp_path / "stream.db"

    def stream(self):
        return FileStream(Store(self.store), CONTRACT, list_map, folder=self.folder, seed=3)

    def start(self):
        self.process = driver("local[1]", self.folder, self.store, 1)

    def runs(self):
        return self.process.poll() is None

    def progress(self):
        return self.stream().learnt().batch if self.store.exists() and self.store.stat().st_size else -1

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # the JVM, too
        self.process.wait()

    def check(self, exactly=True):
        if self.progress() >= 0:
            covered(self.stream())
            assert self.expected.startswith(outbox(self.stream()))

    def finish(self):
        self.start()
        assert self.process.wait(600) == 0, self.process.stderr.read()[-2000:]
        assert outbox(self.stream()) == self.expected
        assert sum(rows for _, rows in self.stream().learnt().files) == ROWS


@pytest.mark.slow
def test_kills_of_the_driver_release_nothing_twice(tmp_path):
    assert kill_repeatedly(Killed(tmp_path), 5, longest=0.5) > 2


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
