"""Spark: one private stream from the files of a folder, as they come, learnt by the executors of a cluster.

Spark carries *descriptors* of rows (a file, a place in it, a number of rows), executors read the rows by pyarrow, clip,
round and add them, and hand integers back; the driver adds them, draws the noise, decides and commits
(`taciturn.engines.files`, which has the proof that every file is learnt once). No row crosses the JVM, and nothing is
published but what the store has committed. Structured Streaming finds the new files and numbers the batches; its
checkpoint is advisory, the store is the truth.

It needs the extra `spark` (pyspark 4 or newer, pyarrow) and Java 17 or newer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlparse

from taciturn._util.threads import THREADS
from taciturn.accounting.ledger import Ledger
from taciturn.contract.contract import Contract
from taciturn.engines.files import FileStream
from taciturn.engines.pool import Map
from taciturn.errors import InvalidInput, TaciturnError, integer, needs_extra, one_of
from taciturn.readers.source import BadRows
from taciturn.store import Chunk, Store

_SCHEMA = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # it carries descriptors: compiling and collecting cost more
_NO_JAVA = (
    "Spark needs Java 17 or newer, and {}. Install it (openjdk-17-jre-headless on Debian), and set JAVA_HOME if it is "
    "not on the path."
)


def session(master: str = "local[2]", **settings: str) -> Any:
    """A Spark session with the settings that keep secrets in memory: encrypted connections and spills, no page.

    `settings` are further ones, with `_` for `.`. Java 17 or newer, and pyspark, are checked first.
    """
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("taciturn")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": _JAVA,
    }
    chosen |= {f"spark.executorEnv.{variable}": "1" for variable in THREADS}
    if master.startswith("local"):  # nothing listens to other machines
        chosen |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    chosen |= {name.replace("_", "."): value for name, value in settings.items()}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_java() -> None:
    """An error if pyspark or Java are missing, or too old."""
    try:
        import pyspark
    except ImportError:
        raise InvalidInput(needs_extra("Spark", "spark", "pyspark, pyarrow")) from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise InvalidInput(f"pyspark 4 or newer is needed, and this is {pyspark.__version__}. Install a newer one.")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise InvalidInput(_NO_JAVA.format("there is none"))
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < 17:
        raise InvalidInput(_NO_JAVA.format(f"this is {found[1] if found else 'none that tells its version'}"))


def spark_map(spark: Any) -> Map:
    """The executors of a session as a `map`: a job for some tasks, one partition each, results in their order."""
    context = _context(spark)

    def mapped(function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
        listed = list(tasks)
        results = context.parallelize(listed, len(listed)).map(_Caught(function)).collect() if listed else []
        for result in results:
            if isinstance(result, TaciturnError):
                raise result
        return list(results)

    return mapped


@dataclass(frozen=True)
class _Caught:
    """A function whose errors are returned: Spark would repeat the task, and log a traceback."""

    function: Callable[[Any], Any]

    def __call__(self, task: Any) -> Any:
        try:
            return self.function(task)
        except TaciturnError as error:
            return error


def _context(spark: Any) -> Any:
    try:
        return spark.sparkContext
    except Exception:
        raise InvalidInput(
            "this session is one of Spark Connect, which runs no functions of the driver's. Make a classic one, as "
            "taciturn.spark.session() does."
        ) from None


def learn_files(
    spark: Any,
    folder: str | os.PathLike[str],
    contract: Contract,
    store: Store,
    *,
    checkpoint: str | os.PathLike[str],
    name: str = "stream",
    follow: bool = False,
    format: Literal["parquet", "csv"] = "parquet",
    files_per_batch: int = 16,
    seconds: float = 10.0,
    ledger: Ledger | None = None,
    bad_rows: BadRows = "stop",
    seed: int | None = None,
    new_query: bool = False,
    show: Callable[[Chunk], None] = lambda chunk: None,
) -> Any:
    """Learn the files of a folder, those that are there or also those that come, as one private stream in a store.

    Files are learnt once, in the order of their times of modification and of their names; they must not change, and
    every executor can read them by the same path. Rounds are positions of rows, so that `files_per_batch` and
    `seconds` change nothing that is published.

    Parameters
    ----------
    spark : SparkSession
        A classic session; `session` makes one.
    folder : str or path
        Where the files are.
    contract : Contract
        What is learnt: by PQFTL or another method of sums, or by FTRL in long blocks.
    store : Store
        Where the stream is committed, and its releases are found: `store.releases(name)`.
    checkpoint : str or path
        Folder of Spark's checkpoint, which tells which files came in which batch. If it is lost, pass `new_query`.
    name : str
        Name of the stream in the store.
    follow : bool
        Whether to wait for new files; then the running query is returned, which `query.stop()` ends.
    format : {"parquet", "csv"}
        Which files are learnt, by their extension.
    files_per_batch : int
        The most files of one transaction.
    seconds : float
        With `follow`, how often Spark looks for files.
    ledger, bad_rows, seed, show
        As in `taciturn.engines.files.FileStream`.
    new_query : bool
        Go on with another query than the one that the store knows: files that were learnt are left out.

    Examples
    --------
    >>> from taciturn.contract.contract import read_contract
    >>> learn_files(
    ...     session(), "clicks", read_contract("taciturn.toml"), Store("stream.db"), checkpoint="checkpoint"
    ... )  # doctest: +SKIP
    """
    folder = Path(folder).absolute()
    one_of("format", format, ("parquet", "csv"))
    stream = FileStream(store, contract, spark_map(spark), name, folder, ledger, bad_rows, seed, show)
    failed: list[BaseException] = []
    named = threading.Event()
    queries: list[str] = []

    def sink(batch: Any, number: int) -> None:
        try:
            named.wait(60.0)
            if new_query:
                stream.continue_with(queries[0])
            rows = batch.select("path", "modificationTime").collect()
            rows.sort(key=lambda row: (row["modificationTime"], row["path"]))
            stream.learn(queries[0], number, [str(_local(row["path"]).relative_to(folder)) for row in rows])
        except BaseException as error:
            failed.append(error)
            raise

    source = (
        spark.readStream.format("binaryFile")
        .schema(_SCHEMA)
        .option("pathGlobFilter", f"*.{format}")
        .option("maxFilesPerTrigger", integer("files_per_batch", files_per_batch))
        .load(str(folder))
        .select("path", "modificationTime")  # the content of files is never read by Spark
    )
    writer = source.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(processingTime=f"{seconds} seconds") if follow else writer.trigger(availableNow=True)
    query = writer.start()
    queries.append(str(query.id))
    named.set()
    if follow:
        return query
    try:
        query.awaitTermination()
    except Exception as error:
        raise _told(failed, error) from None
    return query


def _told(failed: list[BaseException], error: Exception) -> BaseException:
    """The error of the sink itself; Spark's own quotes a traceback."""
    for each in failed:
        if isinstance(each, TaciturnError):
            return each
    return failed[0] if failed else error


def _local(path: str) -> Path:
    """The path of a file that Spark names by an address."""
    parsed = urlparse(path)
    if parsed.scheme not in ("", "file"):
        raise InvalidInput(f"executors read files that are mounted, and {parsed.scheme} is not. Mount the folder.")
    return Path(unquote(parsed.path))
