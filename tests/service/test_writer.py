"""Group commit: what is answered was committed, once, whatever happens in between."""

import asyncio
import json
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from served import NAME, Client, declared, service_at, set_clock, some_rows
from taciturn.contract.contract import contract_of
from taciturn.errors import StateConflict, StoreUnavailable
from taciturn.service import rows as service_rows
from taciturn.service.server import running
from taciturn.service.service import Limits, Service
from taciturn.service.writer import Busy, Hashes, Writer, gather
from taciturn.store import Chunk, Request, Store


@pytest.fixture
def served(tmp_path):
    """A service with a clock that tests set, a client, and that clock."""
    service, secret = service_at(tmp_path / "streams.db", horizon=1000)
    with set_clock(service) as next_tick, running(service) as address:
        yield service, Client(address, secret), next_tick


@pytest.mark.privacy
def test_a_request_that_is_repeated_is_learnt_once(served):
    service, client, _ = served
    rows = some_rows(7)
    first = client.learn(rows, "one")
    assert (first.status_code, first.json()) == (200, {"stream": NAME, "first": 1, "last": 7})
    assert client.learn(some_rows(3), "two").json()["first"] == 8
    again = client.learn(rows, "one")
    assert (again.status_code, again.content) == (200, first.content)
    assert service.store.load(NAME).position[1] == 10


@pytest.mark.privacy
def test_a_repeated_request_is_found_by_another_process(served, tmp_path):
    service, client, _ = served
    rows = some_rows(7)
    first = client.learn(rows, "one")
    other = Service(Store(tmp_path / "streams.db"))
    with running(other) as address:
        again = Client(address, client.http.headers["authorization"].removeprefix("Bearer ")).learn(rows, "one")
    assert again.content == first.content
    assert service.store.load(NAME).position[1] == 7


@pytest.mark.privacy
def test_a_key_of_another_token_tells_nothing_of_its_rows(served):
    """Else a wrong guess of its rows would be answered otherwise than the right one."""
    service, client, _ = served
    client.learn(some_rows(7), "one")
    other = Client(next(client.addresses), service.tokens.create(["learn"])[1])
    assert other.learn(some_rows(7), "one").json() == {"stream": NAME, "first": 8, "last": 14}


def test_the_same_key_with_other_rows_is_a_conflict(served):
    service, client, _ = served
    rows = some_rows(3)
    client.learn(rows, "one")
    assert client.learn(rows[:2], "one").status_code == 409
    body = "\n".join(map(json.dumps, rows))
    headers = {"idempotency-key": "one", "content-type": "application/x-ndjson"}
    assert client.post(f"/v1/streams/{NAME}/examples", content=body, headers=headers).status_code == 409
    assert service.store.load(NAME).position[1] == 3


def test_keys_and_rows_are_not_in_the_store(served, tmp_path):
    """Keys are kept under a keyed hash, whose key is part of the secret input; a guess cannot be tested without it."""
    _, client, _ = served
    client.learn([{"age": 12.345678, "income": 3, "town": "Rome", "y": "yes"}], "a very special key")
    content = (tmp_path / "streams.db").read_bytes()
    assert b"very special" not in content
    assert b"12.345678" not in content


@pytest.mark.privacy
def test_equal_rows_of_two_requests_do_not_show_in_the_store(served):
    service, client, _ = served
    for key in ("a key", "another key"):
        assert client.learn(some_rows(1), key).status_code == 200
        assert client.learn(some_rows(1), key).status_code == 200, "a repeated request is recognised"
    with service.store.database.transaction(write=False) as now:
        [(one,), (two,)] = now.rows("SELECT body FROM requests")
    assert one != two


def test_requests_that_wait_become_one_commit(served):
    """While one commit is under way, others wait, and then share the next."""
    service, client, _ = served
    client.learn(some_rows(1), "first")
    commits = []
    commit = service.store.commit

    def slow(*arguments, **settings):
        commits.append(len(settings["requests"]))
        time.sleep(0.3)
        return commit(*arguments, **settings)

    service.store.commit = slow
    answers = []
    threads = [
        threading.Thread(target=lambda i=i: answers.append(client.learn(some_rows(2), f"key {i}"))) for i in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {200}
    assert sum(commits) == 12
    assert len(commits) <= 4
    assert sorted(answer.json()["first"] for answer in answers) == list(range(2, 26, 2))


def test_clients_that_were_just_answered_share_the_next_commit(tmp_path, monkeypatch):
    """Without a moment's wait, one of them would be committed alone, and the others would wait for two commits."""
    service, _ = service_at(tmp_path / "streams.db")
    sizes = []

    def slow(self, group):
        sizes.append(len(group))
        time.sleep(0.02)
        return [(1, 1)] * len(group)

    monkeypatch.setattr(Writer, "_outcomes", slow)

    async def client(number):
        for each in range(6):
            for _ in range(number):  # they come one after the other
                await asyncio.sleep(0)
            await service.learn(NAME, f"{number} {each}", "application/json", b'{"rows": [{}]}')

    async def clients():
        await service.learn(NAME, "first", "application/json", b'{"rows": [{}]}')
        await asyncio.gather(*map(client, range(8)))

    asyncio.run(clients())
    service.close()
    assert sum(sizes) == 49
    assert len(sizes) < 11, sizes  # 8 with the wait, and 13 without


@pytest.mark.privacy
def test_nothing_is_shown_of_a_commit_that_failed(served):
    """The store cannot be written to: readers see what they saw before, and the rounds are released once, later."""
    service, client, next_tick = served
    commit = service.store.commit

    def fails(*arguments, **settings):
        raise StoreUnavailable("/somewhere/streams.db: the disk is full. Nothing was committed; try again later.")

    before = client.get(f"/v1/streams/{NAME}/models/latest").content
    service.store.commit = fails
    answer = client.learn(some_rows(25), "one")
    assert answer.status_code == 503
    assert "somewhere" not in answer.text
    assert answer.headers["retry-after"] == "1"
    assert service.host(NAME).view.k == 0
    next_tick(3)
    assert client.get(f"/v1/streams/{NAME}/models/latest").content == before
    assert client.get(f"/v1/streams/{NAME}/models/1").status_code == 404
    service.store.commit = commit
    assert client.learn(some_rows(25), "one").json()["last"] == 25
    next_tick(3)
    assert client.get(f"/v1/streams/{NAME}").json()["stream"]["releases"] == 2


@pytest.mark.privacy
def test_a_release_is_visible_from_its_tick_on_and_not_before(served):
    """Everywhere: predictions, the latest model, a model by its number, the list, metrics and the ledger."""
    service, client, next_tick = served
    client.learn(some_rows(25), "one")
    assert service.store.load(NAME).position[2] == 2
    service.refresh()

    def seen():
        stream = client.get(f"/v1/streams/{NAME}").json()["stream"]
        return {
            client.predict(some_rows(1)).json()["release"],
            client.get(f"/v1/streams/{NAME}/models/latest").json()["releases"],
            len(client.get(f"/v1/streams/{NAME}/models").json()["releases"]),
            2 * (client.get(f"/v1/streams/{NAME}/models/1").status_code == 200),
            stream["releases"],
            stream["round"] // 10,
            2 * (stream["spent"]["epsilon"] > 0.0),
            int(client.get("/metrics").text.partition("taciturn_stream_releases{")[2].split()[1]),
        }

    assert seen() == {0}
    visible_at = service.store.chunk(service.host(NAME).lineage, 1)[1]
    assert visible_at == service.clock.visible_at()
    next_tick()
    assert service.clock.now() == visible_at
    assert seen() == {2}
    assert client.get(f"/v1/streams/{NAME}").json()["stream"]["visible_at"] == visible_at


@pytest.mark.privacy
@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize(("wrong", "waits"), [(60_000, True), (-60_000, True), (10**10, False), (-(10**7), False)])
def test_a_clock_that_was_wrong_for_a_moment_does_not_silence_a_stream(served, wrong, waits, more):
    """A tick that lies years ahead, by a clock that was set since, is not waited for; one of another server is."""
    service, client, next_tick = served
    clock = type(service.clock)
    if wrong > 0:
        clock.time += wrong
    client.learn(some_rows(10), "one")
    clock.time -= abs(wrong)
    if more:
        client.learn(some_rows(10, seed=1), "two")
    assert service.host(NAME).view.k == 0, "nothing is shown between two ticks"
    next_tick(2)
    assert service.host(NAME).view.k == (0 if waits else 1 + more)
    if more:
        assert (service.host(NAME).view.visible_at == clock.time - 1000) != waits, "dated by the present clock"
    next_tick(60)
    assert service.host(NAME).view.k == 1 + more


@pytest.mark.privacy
def test_a_commit_that_ends_after_its_tick_is_seen_at_the_next_one(served):
    """What is answered between two ticks was visible at the first, even if a commit ended in between."""
    service, client, next_tick = served
    commit = service.store.commit

    def late(*arguments, **settings):
        next_tick(3)  # the tick of the release passes before it is committed
        return commit(*arguments, **settings)

    service.store.commit = late
    client.learn(some_rows(25), "one")
    assert client.predict(some_rows(1)).json()["release"] == 0
    next_tick()
    assert client.predict(some_rows(1)).json()["release"] == 2


@pytest.mark.privacy
def test_an_answer_does_not_depend_on_what_the_rows_hold(served):
    _, client, _ = served
    good, bad = client.learn(some_rows(4), "good"), client.learn([7, None, {"age": "x"}, {}], "bad")
    assert good.json() == {"stream": NAME, "first": 1, "last": 4}
    assert bad.json() == {"stream": NAME, "first": 5, "last": 8}
    assert {name for name in good.headers if name != "date"} == {name for name in bad.headers if name != "date"}


def test_a_stream_ends_at_its_horizon(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", horizon=30)
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, secret)
        assert client.learn(some_rows(25), "one").status_code == 200
        over = client.learn(some_rows(6), "two")
        assert over.status_code == 409
        assert "ends after 30 rows, and 5 of them are left" in over.json()["error"]
        assert client.learn(some_rows(5), "two").json()["last"] == 30
        assert "none is left" in client.learn(some_rows(1), "three").json()["error"]
        next_tick(2)
        assert client.get(f"/v1/streams/{NAME}").json()["stream"]["next_release"] is None


def test_diagnostics_evaluate_rows_by_the_model_before_them_and_change_no_release(tmp_path):
    """A request of many rows is evaluated as requests of 256 rows are; releases are those without diagnostics."""
    rows, released, found = some_rows(1000), [], []
    for name, diagnostics, sizes in (
        ("all", True, [1000]),
        ("some", True, [256, 256, 256, 232]),
        ("no", False, [1000]),
    ):
        service, secret = service_at(tmp_path / f"{name}.db", horizon=1000, seed=1, diagnostics=diagnostics)
        with set_clock(service) as next_tick, running(service) as address:
            client, first = Client(address, secret), 0
            for size in sizes:
                assert client.learn(rows[first : first + size], f"from {first}").status_code == 200
                first += size
            next_tick(3)
            released.append([chunk.content for chunk in service.store.releases(NAME)])
            found.append(client.get(f"/v1/streams/{NAME}/diagnostics").json())
    assert b"".join(released[0]) == b"".join(released[1]) == b"".join(released[2])
    assert released[0]
    assert found[0] == found[1]
    assert found[0]["rows"] == 1000
    assert found[0]["diagnostics"]
    assert found[2]["diagnostics"] is None


def test_a_closed_stream_learns_no_more(served):
    _, client, next_tick = served
    rows = some_rows(12)
    client.learn(rows, "one")
    assert client.post(f"/v1/streams/{NAME}/close").status_code == 200
    assert not client.get(f"/v1/streams/{NAME}").json()["stream"]["closed"]  # its last release comes first
    next_tick(2)
    stream = client.get(f"/v1/streams/{NAME}").json()["stream"]
    assert (stream["closed"], stream["releases"]) == (True, 1)
    assert client.learn(rows, "two").status_code == 409
    assert client.learn(rows, "one").json()["last"] == 12
    assert client.predict(some_rows(1)).status_code == 200


def test_a_full_queue_says_so(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", limits=Limits(queued_rows=10))
    commit = service.store.commit
    go_on = threading.Event()

    def slow(*arguments, **settings):
        go_on.wait(20.0)
        return commit(*arguments, **settings)

    with running(service) as address:
        client = Client(address, secret)
        client.learn(some_rows(1), "before")
        service.store.commit = slow
        answers = []
        threads = [
            threading.Thread(target=lambda i=i: answers.append(client.learn(some_rows(6), f"key {i}")))
            for i in range(5)
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20.0
        while sum(answer.status_code == 429 for answer in answers) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        go_on.set()
        for thread in threads:
            thread.join()
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200, 200, 429, 429, 429]
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 429)


@pytest.mark.privacy
def test_what_rows_hold_does_not_decide_who_is_told_to_try_again(tmp_path):
    """Long rows of others take the room of short ones, so that an answer tells how many they are and no more."""
    worlds = []
    for length in (1, 5_000):
        service, _ = service_at(tmp_path / f"{length}.db", seed=7, limits=Limits(queued_bytes=2**12))
        rows = [row | {"town": "a" * length} for row in some_rows(6)]
        answers = asyncio.run(_answers_while_a_commit_waits(service, [rows, rows, some_rows(3), some_rows(2)]))
        worlds.append([type(each) if isinstance(each, Exception) else (each.first, each.last) for each in answers])
        worlds[-1].append([chunk.content for chunk in service.store.releases(NAME)])
        service.close()
    assert worlds[0] == worlds[1]
    assert worlds[0][:-1] == [(2, 7), (8, 13), (14, 16), Busy]


async def _answers_while_a_commit_waits(service, requests):
    """The outcomes of requests that come one after the other while a row before them is being committed."""
    commit, begun, go_on = service.store.commit, threading.Event(), threading.Event()

    def slow(*arguments, **settings):
        begun.set()
        go_on.wait(20.0)
        return commit(*arguments, **settings)

    def learn(rows, key):
        return asyncio.create_task(service.learn(NAME, key, "application/json", json.dumps({"rows": rows}).encode()))

    service.store.commit = slow
    tasks = [learn(some_rows(1), "before")]
    await asyncio.to_thread(begun.wait, 20.0)
    for number, rows in enumerate(requests):
        tasks.append(learn(rows, f"key {number}"))
        await asyncio.sleep(0.01)
    go_on.set()
    return (await asyncio.gather(*tasks, return_exceptions=True))[1:]


def test_a_client_that_leaves_does_not_take_its_rows_back(tmp_path):
    """It can repeat its request, and gets the answer that it did not wait for."""
    service, _ = service_at(tmp_path / "streams.db")
    commit = service.store.commit

    def slow(*arguments, **settings):
        time.sleep(0.2)
        return commit(*arguments, **settings)

    async def story():
        await service.start()
        service.store.commit = slow
        body = json.dumps({"rows": some_rows(3)}).encode()
        task = asyncio.ensure_future(service.learn(NAME, "one", "application/json", body))
        await asyncio.sleep(0.1)
        task.cancel()
        made = await service.learn(NAME, "one", "application/json", body)
        await service.stop()
        return made

    made = asyncio.run(story())
    assert (made.first, made.last) == (1, 3)
    assert Store(tmp_path / "streams.db").load(NAME).position[1] == 3


def test_an_error_of_one_request_is_not_that_of_others(served, monkeypatch):
    """Nothing is known that causes one; if it happens, others in the same block are learnt."""
    service, client, _ = served
    client.learn(some_rows(1), "before")
    commit, encoded = service.store.commit, service_rows.encoded

    def slow(*arguments, **settings):
        time.sleep(0.2)
        return commit(*arguments, **settings)

    def fails(batches, *rest, **settings):
        if any(record == {"age": "poison"} for batch in batches for record in batch.records):
            raise ZeroDivisionError("with a secret in its text")
        return encoded(batches, *rest, **settings)

    service.store.commit = slow
    monkeypatch.setattr("taciturn.service.writer.encoded", fails)
    answers = {}

    def send(number):
        rows = [{"age": "poison"}] if number == 2 else some_rows(2)
        answers[number] = client.learn(rows, f"key {number}")

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[number].status_code for number in range(6)] == [200, 200, 500, 200, 200, 200]
    assert "secret" not in answers[2].text
    assert set(answers[2].json()) == {"error", "id"}
    assert service.store.load(NAME).position[1] == 11


# The store's part.


@pytest.mark.privacy
def test_a_request_is_committed_once(tmp_path):
    """In the transaction of its rows: a second commit of the same key, whoever makes it, stores nothing at all."""
    service, _ = service_at(tmp_path / "streams.db")
    store = service.store
    one = store.load(NAME)
    request = Request(b"k" * 16, b"b" * 16, 1, 2)

    def commit(saved, requests):
        generation, t, k, _ = saved.position
        position = (generation + 1, t + 2, k, f"token {generation}")
        return store.commit(saved, position=position, spent=saved.spent, state=b"", requests=requests)

    two = commit(one, [request])
    assert store.current(two, [request.key, b"x" * 16]).requests == {request.key: request}
    with pytest.raises(StateConflict, match="was learnt before"):
        commit(two, [Request(b"n" * 16, b"b" * 16, 3, 4), request])
    assert store.load(NAME).position == two.position
    assert store.current(two, [b"n" * 16]).requests == {}
    assert not store.current(one).newest
    service.close()


def test_many_requests_are_committed_in_few_statements(tmp_path):
    service, _ = service_at(tmp_path / "streams.db")
    saved = service.store.load(NAME)
    requests = [Request(number.to_bytes(16, "big"), b"b" * 16, number + 1, number + 1) for number in range(2500)]
    new = service.store.commit(saved, position=(1, 2500, 0, "t"), spent=saved.spent, state=b"", requests=requests)
    assert len(service.store.current(new, [request.key for request in requests]).requests) == 2500
    service.close()


def test_requests_and_ticks_outlive_an_adoption(tmp_path):
    """A stream that is continued after a restored backup knows the requests that the backup knew."""
    service, _ = service_at(tmp_path / "streams.db")
    store = service.store
    saved = store.load(NAME)
    request = Request(b"k" * 16, b"b" * 16, 1, 10)
    store.commit(
        saved,
        position=(1, 10, 1, "t"),
        spent=saved.spent,
        state=saved.state,
        input=saved.input,
        releases=[Chunk(1, 1, 10, b"{}\n")],
        visible_at=5000,
        requests=[request],
    )
    adopted = store.adopt(NAME)
    assert store.current(adopted, [request.key]).requests == {request.key: request}
    assert [[each.visible for each in store.at_tick(at, {})] for at in (4999, 5000)] == [[0, 0], [1, 1]]
    service.close()


def test_a_stream_of_the_command_is_shown_and_does_not_learn_here(tmp_path):
    """And the other way round."""
    from typer.testing import CliRunner

    from taciturn.cli.app import app

    contract, data, store = tmp_path / "c.toml", tmp_path / "d.jsonl", tmp_path / "s.db"
    contract.write_text(
        '[privacy]\nepsilon = 1.0\n[target]\ncolumn = "y"\npositive = ["yes"]\n'
        "[learning]\nhorizon = 100\nrelease = 10\n"
        "[columns]\nage = { range = [0, 100] }\nincome = { range = [0, 1000] }\n"
        'town = { categories = ["Oslo", "Rome"] }\n'
    )
    data.write_text("\n".join(map(json.dumps, some_rows(35))))
    run = ["learn", str(contract), str(data), "--store", str(store), "--name", "file", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, run)
    assert done.exception is None, done.output
    service = Service(Store(store))
    service.create("served", contract_of(declared(100)))
    secret = service.tokens.create(["admin"])[1]
    with running(service) as address:
        client = Client(address, secret)
        stream = client.get("/v1/streams/file").json()["stream"]
        assert (stream["releases"], stream["learns"]) == (3, False)
        written = json.loads((tmp_path / "run" / "model.json").read_text())
        assert client.get("/v1/streams/file/models/latest").json() == written
        assert client.learn(some_rows(1), "k", "file").status_code == 409
    for more in ([], ["--resume"]):
        other = ["learn", str(contract), str(data), "--store", str(store), "--name", "served", *more]
        done = CliRunner().invoke(app, [*other, "--out", str(tmp_path / "other")])
        assert isinstance(done.exception, StateConflict)


# What rows may hold.

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "1e999", "١", "2024-05-31", "NaN"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
KINDS = {
    "number": {"range": [0, 1]},
    "log": {"range": [1, 10], "scale": "log"},
    "private": {"range": "private"},
    "bins": {"bins": [0, 1, 2]},
    "date": {"date": ["2020-01-01", "2030-01-01"], "cycle": ["month"]},
    "class": {"categories": ["a", "1"]},
    "hashed": {"hash": 8},
    "text": {"text": {"hash": 8}},
}


MIXED = contract_of(
    {
        "privacy": {"epsilon": 1.0, "user": "who", "rows_per_user": 4},
        "target": {"column": "y", "range": [0, 1]},
        "columns": KINDS,
    }
)


@given(st.lists(st.dictionaries(st.sampled_from([*KINDS, "y", "who"]), VALUES) | VALUES, min_size=1, max_size=5))
@settings(max_examples=150)
def test_any_row_is_read(records):
    """JSON rows of any content become features, or bad rows; they are never an error."""
    contract = MIXED
    batch = service_rows.RowBatch(records, (), len(records))
    parts = list(service_rows.encoded([batch], contract, labelled=True))
    assert sum(len(y) for _, y, _, _ in parts) == len(records)
    for X, y, users, bad in parts:
        assert np.isnan(y[bad]).all()
        assert X.shape == (len(y), contract.dimension)
        assert users.shape == y.shape


def test_hashes_tell_kinds_types_and_bodies_apart():
    """Short and long bodies are hashed in two ways, of which none has a hash of the other."""
    hashes, other = Hashes(bytes(32)), Hashes(bytes(31) + b"\1")
    contents = [b"", b"rows", b"rows\0", b"x" * 8_192, b"x" * 8_193, b"x" * 100_000]
    made = [hashes.body(media, content, b"key") for media in ("a", "b") for content in contents]
    made += [hashes.of(kind, content) for kind in (b"key", b"event", b"opened") for content in contents]
    made += [other.body("a", content, b"key") for content in contents]
    assert len(set(made)) == len(made)
    assert {len(each) for each in made} == {16}
    assert hashes.body("a", contents[-1], b"key") == Hashes(bytes(32)).body("a", contents[-1], b"key")
    assert hashes.body("a", b"1", b"key") != hashes.body("a", b"1", b"another key")


def test_a_commit_waits_for_those_who_come_and_not_for_others():
    """Until all are there; without another one for a moment; and never for long, whoever comes."""

    async def wait(coming, expected, took):
        waiting = [1]

        async def come():
            for _ in range(coming):
                await asyncio.sleep(0.0)
                waiting[0] += 1

        task = asyncio.get_running_loop().create_task(come())
        await gather(lambda: waiting[0], expected, took)
        count = waiting[0]
        task.cancel()
        return count

    assert asyncio.run(wait(20, 21, 0.0)) == 21
    assert asyncio.run(wait(0, 21, 0.0)) == 1
    assert asyncio.run(wait(10**9, 10**9, 0.0)) < 10**9
    began = time.monotonic()
    assert asyncio.run(wait(0, 2, 1e-2)) == 1
    assert time.monotonic() - began >= 0.0025  # a quarter of a commit, for clients that are far away


def test_a_client_that_leaves_does_not_take_the_answer_of_another(served):
    """Both have sent the same request, which is committed after one of them has left."""
    (service, _, _), body = served, json.dumps({"rows": some_rows(2)}).encode()

    async def send():
        with service.turns.turn():  # nothing is committed meanwhile
            first, second = (
                asyncio.ensure_future(service.writer(NAME).learn("shared", "application/json", body)) for _ in range(2)
            )
            await asyncio.sleep(0.05)
            first.cancel()
            await asyncio.sleep(0.05)
        return first, await second

    first, rounds = asyncio.run_coroutine_threadsafe(send(), service._loop).result(30)
    assert first.cancelled()
    assert rounds[1] - rounds[0] == 1
