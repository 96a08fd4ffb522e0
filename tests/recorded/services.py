"""Streams of a service, over HTTP in this process: rows, events whose labels come later, decisions, renewal.

Releases become visible at ticks of a clock, and events are learnt when a wait has passed. What is recorded must not
depend on how fast the machine is, so requests are sent in phases: all of a phase are answered before its first event is
learnt, and the next phase begins when all events of the one before were learnt and their releases are visible. A phase
that was too slow is noticed, and all begins again with a longer wait.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

import taciturn as t
from recorded.data import BOUGHT, COLUMNS, FEW, SPENT, contract, records
from recorded.fronts import (
    Client,
    Service,
    Store,
    columns_of,
    contract_of,
    guarantee_of,
    in_ledger,
    running,
    stored,
    token_of,
)
from recorded.registry import stream
from recorded.values import numbers_in

SEED = 7
TICK_S, PATIENCE_S = 0.05, 120.0
WAITS_S = (2.0, 15.0, 60.0)
LATE = (410, 429, 503)  # the statuses of a label that came after its wait, and of a service that was too busy


class TooSlow(Exception):
    """Requests of a phase were still sent when its first event was learnt."""


@contextmanager
def served(folder: Path, seed: int | None = SEED, retries: int = 8) -> Iterator[tuple[Service, Client, str, str]]:
    """A service of a store, a client with a token for everything, the address, and the token's secret."""
    service = Service(Store(folder / "streams.db"), tick=TICK_S, seed=seed)
    secret = token_of(service)
    with running(service) as address, Client(address, secret, retries=retries) as client:
        yield service, client, address, secret


def until(reached: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    end = time.monotonic() + PATIENCE_S
    while not reached():
        if time.monotonic() > end:
            raise TimeoutError(f"a service has not done in {PATIENCE_S:g} seconds what it was asked for.")
        time.sleep(TICK_S / 2)


def all_visible(service: Service, client: Client, name: str, rounds: int) -> Callable[[], bool]:
    """Whether so many rounds were learnt, and all that they released can be seen."""

    def visible() -> bool:
        _, learnt, k, _ = service.store.load(name).position
        return learnt == rounds and client.stream(name)["stream"]["releases"] == k

    return visible


def shown(
    service: Service, client: Client, name: str, data: Mapping[str, object], *, seeded: bool = True
) -> dict[str, object]:
    """A stream as those see it who may read it, and as the store has it."""
    details = client.stream(name)
    public = {k: v for k, v in details["stream"].items() if k not in ("visible_at", "tick")}
    private = contract_of(data).plan(on_bad="zero", seed=SEED if seeded else None).private
    kept, releases = (
        stored(service.store, name),
        columns_of([each._asdict() for each in client.releases(name, weights=True)]),
    )
    return {
        "details": numbers_in(public) | {"neighbours": details["neighbours"]},
        "releases are the outbox": all(
            np.array_equal(each, kept["outbox"].get(part)) for part, each in releases.items()
        ),
        "model": {k: v for k, v in numbers_in(client.model(name).as_data()).items() if k != "contract"},
        "store": kept,
        "guarantee": guarantee_of(private),
    }


def sent(client: Client, address: str, secret: str, name: str, rows: list[dict[str, object]]) -> None:
    """Rows in requests of each kind: JSON, the same again, which is learnt once, JSON lines, and Arrow."""
    few = ["age", "town", "plan", "who", "bought", "spent"]
    for key in ("first", "first"):
        client.learn(name, rows[:130], key=key)
    lines = "".join(f"{json.dumps(row)}\n" for row in rows[130:300])
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "lines", "Content-Type": "application/x-ndjson"}
    posted = httpx.post(f"{address}/v1/streams/{name}/examples", content=lines, headers=headers, timeout=PATIENCE_S)
    posted.raise_for_status()
    client.learn(name, pd.DataFrame(rows[300:500])[few])
    client.learn(name, rows[500:], batch=17)


@stream("service rows")
def rows(folder: Path) -> Mapping[str, object]:
    """Rows of two classes, of numbers in a range, of users, and of a stream that forgets; a row that cannot be read."""
    learning = {"horizon": 600, "release": 25}
    contracts = {
        "classes": contract(BOUGHT, learning=learning),
        "numbers": contract(SPENT, learning=learning),
        "users": contract(SPENT, privacy={"user": "who", "rows_per_user": 4, "apart": 3}, learning=learning),
        "forgetting": contract(SPENT, learning={"forget": 150, "release": 25}),
        "labels": contract(SPENT, privacy={"neighbours": "label"}, learning=learning),
    }
    given = records()[:590]
    given[7] = given[7] | {"plan": ["no", "text"]}
    made = {}
    with served(folder) as (service, client, address, secret):
        for name, data in contracts.items():
            client.create(name, data)
            sent(client, address, secret, name, given)
        for name, data in contracts.items():
            until(all_visible(service, client, name, len(given)))
            told = client.predict(name, given[:20], probabilities=name == "classes")
            made[name] = shown(service, client, name, data) | {"predictions": numbers_in(told._asdict())}
    return made


@stream("service stages")
def stages(folder: Path) -> Mapping[str, object]:
    """Ranges that are found privately in a service, with every kind of column."""
    found = COLUMNS | {"income": {"range": "private"}}
    data = contract(BOUGHT, found, privacy={"epsilon": 20.0}, learning={"horizon": 3_000, "release": 100})
    with served(folder) as (service, client, _, _):
        client.create("found", data)
        client.learn("found", records(3_000)[:2_990], batch=400)
        until(all_visible(service, client, "found", 2_990))
        return shown(service, client, "found", data)


def phased(phases: Callable[[Path, float], Mapping[str, object]]) -> Callable[[Path], Mapping[str, object]]:
    """A stream whose phases are repeated in another folder, with a longer wait, if the machine was too slow."""

    def run(folder: Path) -> Mapping[str, object]:
        for wait in WAITS_S:
            place = folder / f"{wait:g}"
            place.mkdir()
            try:
                return phases(place, wait)
            except Exception as error:
                late = isinstance(error, TooSlow | TimeoutError) or getattr(error, "status", None) in LATE
                if not late or wait == WAITS_S[-1]:
                    raise
        raise AssertionError("there is a last wait")

    run.__doc__ = phases.__doc__
    return run


@stream("service events")
@phased
def events(folder: Path, wait_s: float) -> Mapping[str, object]:
    """Rows whose labels come later, in any order, twice, or never; of users, and with a label for those without one."""
    wait, learning = {"wait": f"{wait_s:g} seconds"}, {"horizon": 100, "release": 10}
    of_users = {"user": "who", "rows_per_user": 2}
    contracts = {
        "classes": contract(BOUGHT, learning=learning, events=wait),
        "missing": contract(BOUGHT, learning=learning, events=wait | {"missing": "no"}),
        "users": contract(SPENT, privacy=of_users, learning=learning, events=wait),
    }
    given, made = records(), {}
    with served(folder) as (service, client, _, _):
        for name, data in contracts.items():
            client.create(name, data)
        for first, last in ((0, 23), (23, 37)):
            for name, data in contracts.items():
                target = data["target"]["column"]
                known = {each: row[each] for row in given for each in (*FEW, "who")}
                visible = client.stream(name)["stream"]["releases"]
                for i in range(first, last):
                    row = {each: given[i][each] for each in known}
                    opened = client.open(name, row, event=f"event-{i}")
                    if opened.release != visible:
                        raise TooSlow
                for i in reversed(range(first, last)):
                    if i % 5:
                        client.label(name, f"event-{i}", given[i][target])
                        client.label(name, f"event-{i}", given[i][target])
                if service.store.load(name).position[1] != first:
                    raise TooSlow
            for name in contracts:
                until(all_visible(service, client, name, last))
        for name, data in contracts.items():
            made[name] = shown(service, client, name, data)
    return made


@stream("service decisions")
@phased
def decisions(folder: Path, wait_s: float) -> Mapping[str, object]:
    """Decisions by each policy, whose rewards come later or never, with a model for each action or one for all.

    A phase has one release, and no request is repeated: random numbers are drawn when releases become visible, of which
    two may do so at one tick, and for each request.
    """
    wait = {"wait": f"{wait_s:g} seconds"}
    target, learning = {"column": "reward", "range": [0, 1]}, {"horizon": 200, "release": 20}
    names = ["sports", "politics", "weather"]

    def deciding(policy: str, actions: object = names, missing: float | None = 0.0, **privacy: object) -> dict:
        events = wait if missing is None else wait | {"missing": missing}
        bandit = {"actions": actions, "policy": policy}
        return contract(target, FEW, privacy=privacy, learning=learning, events=events, bandit=bandit)

    contracts = {
        "thompson": deciding("thompson"),
        "ucb": deciding("ucb", "features", None),
        "greedy": deciding("epsilon-greedy", user="who", rows_per_user=3),
    }
    given, made = records(), {name: {} for name in contracts}
    with served(folder, retries=0) as (service, client, _, _):
        for name, data in contracts.items():
            client.create(name, data)
        for phase, (first, last) in enumerate(((0, 23), (23, 43))):
            for name, data in contracts.items():
                visible, ranked = client.stream(name)["stream"]["releases"], []
                for i in range(first, last):
                    seen = {each: given[i][each] for each in FEW} | (
                        {"who": given[i]["who"]} if "user" in data["privacy"] else {}
                    )
                    shared = data["bandit"]["actions"] == "features"
                    actions = [{"id": each, "features": {"age": 20 + 30 * j}} for j, each in enumerate(names)]
                    chosen = client.rank(name, seen, actions if shared else None, event=f"visit-{i}")
                    if chosen.release != visible:
                        raise TooSlow
                    ranked.append([[names.index(action), chance] for action, chance in chosen.ranking])
                for i in reversed(range(first, last)):
                    if i % 4:
                        client.reward(name, f"visit-{i}", (i * 37 % 64 + 64 * (ranked[i - first][0][0] == 1)) / 128)
                if service.store.load(name).position[1] != first:
                    raise TooSlow
                made[name][f"ranked {phase}"] = ranked
            for name in contracts:
                until(all_visible(service, client, name, last))
        for name, data in contracts.items():
            later = client.rank(
                name, {"age": 40}, [{"id": each} for each in names] if name == "ucb" else None, learn=False
            )
            made[name] |= shown(service, client, name, data) | {"later": [names.index(later.action), later.release]}
    return {name: _ranks(each) for name, each in made.items()}


def _ranks(made: dict[str, object]) -> dict[str, object]:
    """The actions in their order, and their probabilities, as arrays."""
    for phase in ("ranked 0", "ranked 1"):
        ranked = made.pop(phase)
        order = np.array([[action for action, _ in each] for each in ranked])
        chance = np.array([[np.nan if p is None else p for _, p in each] for each in ranked])
        made |= {f"{phase}, order": order, f"{phase}, chance": chance}
    return made


@stream("service renewal")
def renewal(folder: Path) -> Mapping[str, object]:
    """A stream that is closed, and its successor under another contract, which starts from its model."""
    first = contract(SPENT, learning={"horizon": 300, "release": 25})
    second = contract(SPENT, privacy={"epsilon": 2.0}, learning={"horizon": 300, "release": 20})
    given = records()
    with served(folder) as (service, client, _, _):
        client.create("old", first)
        client.learn("old", given[:280])
        until(all_visible(service, client, "old", 280))
        renewed = client.renew("old", "new", second)
        client.learn("new", given[280:570])
        until(all_visible(service, client, "new", 290))
        made = {name: shown(service, client, name, data) for name, data in (("old", first), ("new", second))}
        charge = service.store.load("new").about["charge"]
        return made | {
            "starts": renewed["starts_from_the_model"],
            "charge": [*charge["costs"]["replace"], charge["delta"]],
        }


@stream("service ledger")
def ledger(folder: Path) -> Mapping[str, object]:
    """What streams with secret noise reserve and spend in a ledger of the store, and their exact sums."""
    data, given = contract(SPENT, learning={"horizon": 600, "release": 25}), records()
    t.Ledger.create(folder / "streams.db", t.Privacy(20.0, 1e-4), population="people")
    with served(folder, seed=None) as (service, client, _, _):
        for name in ("one", "two"):
            client.create(name, data, ledger="people")
            client.learn(name, given[:590], batch=100)
            until(all_visible(service, client, name, 590))
        client.close("one")
        saved = stored(service.store, "two")
        exact = {part: array for part, array in saved["state"].items() if part.startswith(("secret/", "exact/"))}
        book = in_ledger(t.Ledger(folder / "streams.db", population="people"))
        return {"exact": exact, "cost": saved["cost"], "ledger": book}
