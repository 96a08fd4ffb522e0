"""Streams of stores that an earlier commit has written: they are opened, and go on.

`write_store.py` writes them, half-way; here is how they are filled and how they go on. The archive is a file of the
repository and stays as it was written, while the records of what follows are written with all others.
"""

import io
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import taciturn as t
from recorded.commands import SEED, declared, write
from recorded.data import BOUGHT, FEW, ROWS, SPENT, contract, people, records, signs, table
from recorded.deciding import BASE as BANDIT
from recorded.deciding import contexts
from recorded.fronts import (
    Client,
    Service,
    Store,
    bandits,
    command,
    for_river,
    for_sklearn,
    in_ledger,
    released,
    run_in,
    running,
    state_in,
    state_of,
    stored,
    token_of,
)
from recorded.registry import stream
from recorded.services import TICK_S, all_visible, shown, until

ARCHIVE = Path(__file__).parent / "stores" / "written.tar.xz"
WAIT_S = 4.0

# A database of a service: rows, events, users, a stream in a ledger, and a run of the command beside them.

LEARNING = {"horizon": 600, "release": 25}
CONTRACTS = {
    "rows": contract(BOUGHT, learning=LEARNING),
    "users": contract(SPENT, privacy={"user": "who", "rows_per_user": 4, "apart": 3}, learning=LEARNING),
    "forgetting": contract(SPENT, learning={"forget": 150, "release": 25}),
    "events": contract(
        BOUGHT, learning={"horizon": 100, "release": 5}, events={"wait": f"{WAIT_S:g} seconds", "missing": "no"}
    ),
}
CHARGED = contract(SPENT, learning=LEARNING)
RUN = contract(SPENT, learning={"horizon": 1_200, "release": 50})
HALF, END = 290, 590
OPENED, LATER = (0, 12, 20), 33  # events of two phases, the second of which is not learnt; and all


def fill(address: object, folder: Path) -> None:
    """Fill a database half-way: events wait for their labels, or to be learnt; blocks are not complete."""
    given = records()
    t.Ledger.create(address, t.Privacy(20.0, 1e-4), population="people")
    path = declared(folder, RUN)
    more = ["--out", folder / "shared", "--store", address, "--seed", SEED, "--quiet"]
    command("learn", path, write(folder / "data.csv", records(1_200)[:430]), *more)
    secret = token_of(service := Service(Store(address), tick=TICK_S))
    (folder / "token.txt").write_text(secret)
    with running(service) as at, Client(at, secret) as client:
        client.create("charged", CHARGED, ledger="people")
        client.learn("charged", given[:HALF])
        until(all_visible(service, client, "charged", HALF))
    with running(service := Service(Store(address), tick=TICK_S, seed=SEED)) as at, Client(at, secret) as client:
        for name, data in CONTRACTS.items():
            client.create(name, data)
        for name in ("rows", "users", "forgetting"):
            client.learn(name, given[:HALF], key="first")
        events(service, client, OPENED[0], OPENED[1])
        until(all_visible(service, client, "events", OPENED[1]))
        for name in ("rows", "users", "forgetting"):
            until(all_visible(service, client, name, HALF))
        events(service, client, OPENED[1], OPENED[2])
    if Store(address).load("events").position[1] != OPENED[1]:
        raise TimeoutError(
            "events were learnt before the service was stopped. Try again when the machine is less busy."
        )


def events(service: Service, client: Client, first: int, last: int) -> None:
    """Open events, and close all but every fifth."""
    given = records()
    for i in range(first, last):
        client.open("events", {name: given[i][name] for name in FEW}, event=f"event-{i}")
    for i in reversed(range(first, last)):
        if i % 5:
            client.label("events", f"event-{i}", given[i]["bought"])


def go_on(address: object, folder: Path) -> Mapping[str, object]:
    """Open a database that was filled half-way and moved here, and learn all of its streams to their ends."""
    given, made = records(), {}
    command("store", "confirm-moved", address, "--yes")
    secret = (folder / "token.txt").read_text()
    time.sleep(WAIT_S)  # of events that were opened last, if the archive was written just now
    with running(service := Service(Store(address), tick=TICK_S)) as at, Client(at, secret) as client:
        until(lambda: "events" in [each["name"] for each in client.streams()])
        until(all_visible(service, client, "events", OPENED[2]))
        for name in ("rows", "users", "forgetting"):
            again = client.learn(name, given[:HALF], key="first")  # was learnt, as the store knows
            later = client.learn(name, given[HALF:END])
            made[name] = [*again, *later]
        client.learn("charged", given[HALF:END])
        events(service, client, OPENED[2], LATER)
        until(all_visible(service, client, "events", LATER))
        until(all_visible(service, client, "charged", END))
        for name, data in CONTRACTS.items():
            if name != "events":
                until(all_visible(service, client, name, END))
            made[f"{name}, shown"] = shown(service, client, name, data)
    saved = stored(service.store, "charged")
    exact = {part: array for part, array in saved["state"].items() if part.startswith(("secret/", "exact/"))}
    book = t.Ledger(address, population="people")
    made["charged"] = {"exact": exact, "cost": saved["cost"], "ledger": in_ledger(book), "verified": book.verify().ok}
    path = folder / "taciturn.toml"
    more = ["--out", folder / "shared", "--store", address, "--seed", SEED, "--quiet", "--resume"]
    command("learn", path, write(folder / "data.csv", records(1_200)[:1_190]), *more)
    return made | {"run": stored(Store(address), "shared")}


# Folders of runs, one of them encrypted.

RUNS = {
    "classes": (contract({"column": "bought", "classes": ["no", "yes"]}, learning={"horizon": 1_200}), 1_200),
    "users": (
        contract(SPENT, privacy={"user": "who", "rows_per_user": 4}, learning={"horizon": 1_200, "release": 50}),
        1_200,
    ),
    "stages": (
        contract(
            BOUGHT, FEW | {"income": {"range": "private"}}, privacy={"epsilon": 20.0}, learning={"horizon": 6_000}
        ),
        6_000,
    ),
    "encrypted": (contract(SPENT, learning={"horizon": 1_200, "release": 50}), 1_200),
}


def learn_runs(folder: Path, rows: Mapping[str, int], *more: object) -> None:
    """Learn the first rows of each run, or the next, in a folder of its own."""
    for name, (_, all_rows) in RUNS.items():
        place = folder / name
        key = ["--key", folder / "taciturn.key"] if name == "encrypted" else []
        data = write(place / "data.csv", records(all_rows)[: rows[name]])
        command("learn", place / "taciturn.toml", data, "--out", place / "run", "--seed", SEED, "--quiet", *key, *more)


# Models that were dumped.


def models(folder: Path) -> dict[str, tuple[object, object]]:
    """New models by name, each with a function that learns rows from one to another, and returns what is recorded."""
    bound = {"epsilon": 4.0, "feature_bound": 1.0, "seed": SEED}
    number = for_sklearn.PrivateLinearRegression(**bound, label_bound=1.0, forget=(100, 300), release=20)
    users = for_sklearn.PrivateLinearRegression(**bound, label_bound=1.0, horizon=ROWS, release=25, rows_per_user=4)
    classes = for_sklearn.PrivateLogisticRegression(**bound, classes=[-1.0, 1.0], horizon=ROWS)
    one = for_river.PrivateLinearSVC(
        features=["a", "b", "c"], **bound, classes=[-1.0, 1.0], horizon=ROWS, class_weight={1.0: 4.0}
    )

    def more(model: object, start: int, end: int) -> Mapping[str, object]:
        X, y = signs() if model is classes else table()
        own = {"users": people()[start:end]} if model is users else {}
        model.partial_fit(X[start:end], y[start:end], **own)
        return {"releases": released(model.releases_), "coef": model.coef_}

    def examples(model: object, start: int, end: int) -> Mapping[str, object]:
        X, y = signs()
        for row, label in zip(X[start:end].tolist(), y[start:end].tolist(), strict=True):
            model.learn_one(dict(zip("abc", row, strict=True)), label)
        return {"weights": list(model.weights.values())}

    def decisions(model: object, start: int, end: int) -> Mapping[str, object]:
        made = [model.choose(X) for X in contexts(end, per_arm=False)[start:]]
        for decision in made:
            if decision.round % 3:
                model.learn(decision, decision.action / 4.0)
        return {"actions": np.array([each.action for each in made])}

    late = bandits.PrivateThompson(**BANDIT, wait=400)
    return {
        "forgetting": (number, more),
        "users": (users, more),
        "classes": (classes, more),
        "river": (one, examples),
        "bandit": (late, decisions),
    }


def dump_to(model: object, path: Path) -> None:
    (model.dump if isinstance(model, bandits.PrivateBandit) else model.dump_stream)(path)


def load_from(model: object, path: Path) -> object:
    return (model.load if isinstance(model, bandits.PrivateBandit) else model.load_stream)(path)


def private() -> t.Private:
    """A stream of the library, of users, through a strategy that is not the default."""
    problem = t.Problem(t.Squared(), t.L2Ball(2.0), 3, label_bound=1.0, intercept=0.5)
    unit = t.User(4, apart=3)
    return t.pqftl(
        problem, t.Privacy(4.0, 1e-6), ROWS, strategy=t.SquareRoot(), schedule=t.every(25), seed=SEED, unit=unit
    )


# Writing, and going on.


def write_all(folder: Path) -> None:
    """Write all stores and states, half-way."""
    database = folder / "database"
    database.mkdir()
    fill(database / "streams.db", database)
    runs = folder / "runs"
    runs.mkdir()
    command("store", "new-key", runs / "taciturn.key")
    for name, (data, _) in RUNS.items():
        declared(runs / name, data)
    learn_runs(runs, {name: 130 if name == "stages" else 430 for name in RUNS})
    states = folder / "states"
    states.mkdir()
    for name, (model, learn) in models(states).items():
        learn(model, 0, HALF)
        dump_to(model, states / f"{name}.npz")
    (X, y), users = table(), people()
    state, _ = private().run(private().start(), X[:HALF], y[:HALF], users[:HALF])
    state.dump(states / "library.npz")


def unpacked(folder: Path, part: str) -> Path:
    """A part of the archive, in a folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / part


def packed(folder: Path) -> bytes:
    """The archive of a folder, without the times and the owners of its files, and without reports."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".html" and path.name != "data.csv":
                made = tarfile.TarInfo(str(path.relative_to(folder)))
                made.size, made.mode = path.stat().st_size, 0o600
                with path.open("rb") as file:
                    archive.addfile(made, file)
    return content.getvalue()


@stream("store of a service")
def of_a_service(folder: Path) -> Mapping[str, object]:
    """An earlier store of a service goes on: rows, users, forgetting, events that waited, a ledger, and a run."""
    database = unpacked(folder, "database")
    return go_on(database / "streams.db", database)


@stream("store of runs")
def of_runs(folder: Path) -> Mapping[str, object]:
    """Earlier folders of `taciturn learn` are resumed: classes, users, within stages, and one that is encrypted."""
    runs = unpacked(folder, "runs")
    for name in RUNS:
        command("store", "confirm-moved", runs / name / "run" / "stream.db", "--yes")
    learn_runs(runs, {name: rows - 10 for name, (_, rows) in RUNS.items()}, "--resume")
    made = {}
    for name in RUNS:
        key = runs / "taciturn.key" if name == "encrypted" else None
        made[name] = run_in(runs / name / "run", runs / name / "taciturn.toml", seed=SEED, key=key)
    return made


@stream("store of states")
def of_states(folder: Path) -> Mapping[str, object]:
    """Earlier dumps of estimators, a river model, a bandit and a state of the library are loaded, and go on."""
    states, made = unpacked(folder, "states"), {}
    for name, (model, learn) in models(states).items():
        loaded = load_from(model, states / f"{name}.npz")
        made[name] = learn(loaded, HALF, END)
        dump_to(loaded, folder / "after.npz")
        made[name] |= {"state": state_in(folder / "after.npz")}
    (X, y), users = table(), people()
    one = private()
    state, releases = one.run(one.load(states / "library.npz"), X[HALF:END], y[HALF:END], users[HALF:END])
    return made | {"library": {"releases": released(releases), "state": state_of(state.to_bytes())}}
