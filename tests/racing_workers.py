"""Processes and threads that want the same: the next generation of a stream, or the last of a budget."""

import contextlib
import json
import threading
import time
import uuid
from multiprocessing import connection
from pathlib import Path

import forked_workers
from taciturn import Ledger, Privacy
from taciturn.errors import BudgetExhausted, StateConflict
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Chunk, Store

NAME = "stream"
PROCESSES = 8
BUDGET = Privacy(1.0, 1e-6)
SLICE = gaussian(BUDGET.mu**2 / 4.5)
"""Four fit."""


def race(target, *arguments, folder, seconds=1800.0):
    """What `target(*arguments, barrier)` returned in each of several processes; all end as soon as one fails."""
    workers = forked_workers.context()
    barrier = workers.Barrier(PROCESSES)
    results = [folder / f"result {number}.json" for number in range(PROCESSES)]
    made = [workers.Process(target=_run, args=(target, arguments, barrier, str(path))) for path in results]
    for one in made:
        one.start()
    end = time.monotonic() + seconds
    running = made
    while running and time.monotonic() < end and not any(one.exitcode for one in made):
        connection.wait([one.sentinel for one in running], end - time.monotonic())
        running = [one for one in made if one.exitcode is None]
    codes = [one.exitcode for one in made]
    for one in made:
        one.kill()  # the others would wait at the barrier
        one.join()
    assert codes == [0] * PROCESSES, f"the processes ended with {codes}"
    return [json.loads(path.read_text()) for path in results]


def _run(target, arguments, barrier, result):
    Path(result).write_text(json.dumps(target(*arguments, barrier)))


def fail_alone(path, barrier):
    """One fails, and the others wait for it."""
    with contextlib.suppress(FileExistsError):
        Path(path).touch(exist_ok=False)
        raise SystemExit(3)
    barrier.wait()


def commit_often(address, witness, commits, barrier):
    """Commit until that many succeeded; their generations and tokens, and how many were rejected."""
    barrier.wait()
    store = Store(address, witness=witness)  # all at once, while others commit already
    won, rejected = [], 0
    while len(won) < commits:
        saved = store.load(NAME)
        generation, t, k, _ = saved.position
        token = uuid.uuid4().hex
        chunk = Chunk(k + 1, k + 1, t + 1, token.encode())
        try:
            new = (generation + 1, t + 1, k + 1, token)
            store.commit(saved, position=new, spent=FREE, state=token.encode(), releases=[chunk])
            won.append((generation + 1, token))
        except StateConflict as error:
            if "not its live state" not in str(error):
                raise
            rejected += 1
    return {"won": won, "rejected": rejected}


def create_stream(address, name, barrier):
    """Create a stream of one name; whether it was this process's, and its lineage."""
    lineage = uuid.uuid4().hex
    barrier.wait()
    store = Store(address)
    with contextlib.suppress(StateConflict):
        store.create(name, lineage=lineage, position=(0, 0, 0, lineage), reserved=SLICE)
        return lineage
    return None


def reserve_slices(address, rounds, threads, attempts, barrier):
    """Attempts at what is left of each of several ledgers, by threads with a connection each; successes per ledger."""
    admitted = []
    for number in range(rounds):
        ledger = Ledger(address, population=f"people {number}")
        successes = []

        def attempt(ledger=ledger, successes=successes):
            for _ in range(attempts):
                with contextlib.suppress(BudgetExhausted):
                    ledger.open(uuid.uuid4().hex, SLICE)
                    successes.append(1)

        workers = [threading.Thread(target=attempt) for _ in range(threads)]
        barrier.wait()
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        admitted.append(len(successes))
    return admitted
