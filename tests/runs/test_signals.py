"""Real processes that are told to stop by SIGINT and SIGTERM, whose folder is moved, or whose files may not grow.

And exporters, killed by SIGKILL at random moments; `tests/crashes` kills those that learn.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from small_run import check, go, saved, shown, write_case
from taciturn.contract.contract import read_contract
from taciturn.readers.rows import open_rows


def start(code, *arguments, **options):
    here = str(Path(__file__).parents[1])
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=environment, **options)


def wait_for(condition, process, seconds=60.0):
    """Until it holds, or the process has ended."""
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None:
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)


EXPORTERS = """
import os, sys
from pathlib import Path
from taciturn.cli.export import export
place, store, seed = sys.argv[1:]
def learn(place, again):
    export(Path(place), store, "stream", seed=int(seed), as_json=True)
said, sys.stdout = sys.stdout, open(os.devnull, "w")
learn(place + "-warm", False)
sys.stdout = said
"""


CHILDREN = """
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)
        learn(place, bool(int(line)))
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Nursery:
    """A process that starts learners, or exporters, each new to the stream, faster than Python starts."""

    def __init__(self, code, *arguments):
        self.process = start(code + CHILDREN, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def learner(self, again):
        """The number of a process that learns."""
        self.process.stdin.write(f"{int(again)}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def status(self):
        """How the last one ended."""
        return int(self.process.stdout.readline())


def kill_exporters(tmp_path, kills):
    """Kill exporters of a run at so many random moments, each at work on what is there; the sizes that were left."""
    toml, data = write_case(tmp_path, 2_000, release="5")
    declared, learnt, place = read_contract(toml), tmp_path / "learnt", tmp_path / "shown"
    go(learnt, declared, open_rows(declared, data, block=10), seed=11)
    whole, model = shown(learnt), (learnt / "model.json").read_bytes()
    nursery, moments, left = Nursery(EXPORTERS, place, learnt / "stream.db", 11), random.Random(7), []
    while len(left) < kills:
        if (place / "model.json").exists():
            shutil.rmtree(place)
        before, child = shown(place), nursery.learner(again=False)
        if moments.random() < 0.8:
            wait_for(lambda before=before: shown(place) != before or (place / "model.json").exists(), nursery.process)
        time.sleep(moments.uniform(0.0, 0.01))
        with suppress(ProcessLookupError):  # it has ended: this one does not count
            os.kill(child, signal.SIGKILL)
        assert whole.startswith(shown(place))
        assert not (place / "model.json").exists() or (place / "model.json").read_bytes() == model
        left += [len(shown(place))] if nursery.status() == signal.SIGKILL else []
    nursery.learner(again=False)
    assert nursery.status() == 0
    nursery.process.communicate()
    assert (shown(place), (place / "model.json").read_bytes()) == (whole, model)
    assert {path.name for path in place.iterdir()} == {"models.jsonl", "model.json", ".lock"}
    return left


def test_exporters_that_are_killed_leave_files_that_the_next_completes(tmp_path):
    kill_exporters(tmp_path, 3)


@pytest.mark.slow
def test_exporters_that_are_killed_fifty_times_leave_files_that_the_next_completes(tmp_path):
    assert len(set(kill_exporters(tmp_path, 50))) > 10  # many died with another part written


COMMAND = "from taciturn.cli.app import main; main()"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_live_pipe_is_shown_as_it_comes_and_a_signal_leaves_it_resumable(tmp_path, number, status):
    """Rows that came are committed and shown while more are awaited; the signal ends it; the same rows go on."""
    toml, data = write_case(tmp_path, 60)
    lines = data.read_text().splitlines(keepends=True)
    place, arguments = tmp_path / "run", ["learn", toml, "-", "--out", tmp_path / "run", "--seed", 4]
    process = start(COMMAND, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write("".join(lines[:21]).encode())
    process.stdin.flush()
    wait_for(lambda: shown(place).count(b"\n") == 10, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)  # which closes the pipe: only now, after the signal
    assert process.returncode == status, err
    assert b"Continue with --resume" in out
    assert b"Traceback" not in err
    assert b"Fatal" not in err
    declared = read_contract(toml)
    go(place, declared, open_rows(declared, data), seed=4, again=True)
    go(tmp_path / "whole", declared, open_rows(declared, data), seed=4)
    for name in ("models.jsonl", "model.json"):
        assert (place / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_signal_ends_a_process_that_waits_for_a_pipe_that_stays_open(tmp_path):
    """Nothing came, and nothing will: it does not wait for it."""
    toml, _ = write_case(tmp_path, 60)
    reading, writing = os.pipe()
    ends = {"stdin": reading, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start(COMMAND, "learn", toml, "-", "--out", tmp_path / "run", "--json", "--quiet", **ends)
    wait_for((tmp_path / "run" / "model.json").exists, process)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    os.close(reading)
    os.close(writing)
    assert process.returncode == 130, err
    assert json.loads(out)["rows"] == 0
    assert err == b""


MEASURED = f"""
import atexit
atexit.register(lambda: print(open("/proc/self/status").read()))
{COMMAND}
"""


def peak_memory(folder, rows):
    """Of a process that learns from so many rows, in megabytes; `ru_maxrss` would have that of its parent in it."""
    folder.mkdir()
    toml, data = write_case(folder, rows, horizon=1_000_000, release='"auto"')
    process = start(MEASURED, "learn", toml, data, "--out", folder / "run", "--quiet", stdout=subprocess.PIPE)
    told = process.communicate()[0].decode()
    assert process.returncode == 0
    (peak,) = (line.split()[1] for line in told.splitlines() if line.startswith("VmHWM"))
    return int(peak) / 1024.0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the peak of a process in /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Ten times the rows, and a few megabytes more."""
    small, large = (peak_memory(tmp_path / str(rows), rows) for rows in (100_000, 1_000_000))
    assert large < 500.0
    assert large < small + 60.0


def feed(process, lines):
    process.stdin.write("".join(lines).encode())
    process.stdin.flush()


@pytest.mark.privacy
@pytest.mark.parametrize("by_link", [False, True])
def test_a_folder_that_is_moved_shares_no_file_with_another_run_of_its_name(tmp_path, by_link):
    """`mv live old`: the run stops, and goes on there. Or a link is made to lead elsewhere: it goes on at once."""
    toml, data = write_case(tmp_path, 60)
    declared, lines = read_contract(toml), data.read_text().splitlines(keepends=True)
    live, old = tmp_path / "live", tmp_path / "old"
    if by_link:
        old.mkdir()
        live.symlink_to(old)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    arguments = ["learn", toml, "-", "--out", live, "--commit-every", "0", "--quiet"]  # no progress after ten seconds
    first = start(COMMAND, *arguments, **pipes)
    feed(first, lines[:21])
    wait_for(lambda: shown(live).count(b"\n") == 10, first)
    if by_link:
        live.unlink()
    else:
        live.rename(old)
    second = start(COMMAND, *arguments, **pipes)
    feed(second, lines[:31])
    wait_for(lambda: shown(live).count(b"\n") == 15, second)
    feed(first, lines[21:])
    _, err = first.communicate(timeout=30)
    assert shown(live).count(b"\n") == 15
    assert (b"was moved while" in err) if by_link else (b"was moved or deleted while" in err)
    assert first.returncode == (0 if by_link else 2)
    if not by_link:
        again = start(COMMAND, "learn", toml, data, "--out", old, "--resume", **pipes)
        _, err = again.communicate(timeout=30)
        assert again.returncode == 0, err
    feed(second, lines[31:])
    _, err = second.communicate(timeout=30)
    assert (second.returncode, err) == (0, b"")
    for place in (live, old):
        check(place, declared)
        assert saved(place).position[1] == shown(place).count(b"\n") * 2 == 60
        assert (place / "report.html").exists()
    assert set(shown(live).splitlines()).isdisjoint(shown(old).splitlines())


@pytest.mark.privacy
@pytest.mark.parametrize("anew", [False, True])
def test_a_folder_that_is_deleted_stops_its_run(tmp_path, anew):
    """Nothing is written into another folder that has its name since."""
    toml, data = write_case(tmp_path, 60)
    lines, place = data.read_text().splitlines(keepends=True), tmp_path / "run"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start(COMMAND, "learn", toml, "-", "--out", place, "--commit-every", "0", "--quiet", **pipes)
    feed(process, lines[:21])
    wait_for(lambda: shown(place).count(b"\n") == 10, process)
    time.sleep(0.3)  # model.json is written after the lines
    shutil.rmtree(place)
    if anew:
        place.mkdir()
    feed(process, lines[21:])
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2, err
    assert b"was moved or deleted while this run was learning in it" in err
    assert err.count(b"\n") == 1
    assert list(place.iterdir()) == [] if anew else not place.exists()


LIMITED = """
import resource
from taciturn.cli import app as cli
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
cli.main()
"""


@pytest.mark.privacy
def test_a_file_that_may_grow_no_more_leaves_a_run_that_goes_on(tmp_path):
    """A real limit in a real process; what was shown before it stays, and the rest follows once it is lifted."""
    toml, data = write_case(tmp_path, 4000, release="1")
    place = tmp_path / "run"
    arguments = ["learn", toml, data, "--out", place]
    ends = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    limited = start(LIMITED.format(200_000), *arguments, **ends)
    _, err = limited.communicate(timeout=60)
    assert limited.returncode == 2, err
    assert b"larger than this process may write" in err or b"Every published model is committed" in err
    assert err.count(b"\n") == 1
    assert b"--resume" in err
    check(place, read_contract(toml))
    seen = shown(place)
    go(place, read_contract(toml), open_rows(read_contract(toml), data), again=True)
    check(place, read_contract(toml))
    assert shown(place).startswith(seen)
    assert shown(place).count(b"\n") == 4000
