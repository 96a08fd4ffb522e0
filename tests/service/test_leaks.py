"""What a server tells: two streams that differ in one row are answered alike, but for the noisy numbers.

Both have the same seed, so that what differs is the row. Everything is compared that someone gets without the scope
`operate`: statuses, headers, bodies, events, metrics, and at which tick they change. Numbers that carry noise are left
out, and with them lengths and hashes of bodies that hold them; so are dates.
"""

import datetime
import json
import re

import httpx
import pytest

from event_sites import deciding
from served import NAME, Client, declared, set_clock, some_rows
from taciturn.contract.contract import contract_of
from taciturn.kernel.accounting import unit
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

pytestmark = pytest.mark.privacy

REPLACED = {
    "another row": {"age": 3, "income": 7, "town": "Rome", "y": "no"},
    "a row without a label": {"age": 3, "income": 7, "town": "Rome"},
    "a row with a text for a number": {"age": "old", "income": 7, "town": "Rome", "y": "no"},
    "a row that lacks what it must have": {"age": 3, "income": None, "town": "Rome", "y": "no"},
    "a list": [1, 2],
    "a text": "nothing",
    "nothing": None,
    "a nested row": {"age": {"x": 1}, "income": 7, "town": "Rome", "y": "no"},
    "columns that are not declared": {"age": 3, "income": 7, "town": "Rome", "y": "no", "z": 5},
    "a number out of range": {"age": 1e300, "income": 7, "town": "Rome", "y": "no"},
}


def masked(answer):
    """An answer without dates, and without what carries noise."""
    noisy = any(mark in answer.text for mark in ('"weights"', '"model":', '"predictions"', '"intercept"'))
    left_out = {"date", "etag"} | ({"content-length"} if noisy else set())
    headers = {name: value for name, value in answer.headers.items() if name not in left_out}
    text = answer.text
    if noisy:
        text = re.sub(r'("(?:model|point|matrix)":\s*)\[[^]]*\]', r"\1[]", text)
        text = re.sub(r'("weights": )\{[^}]*\}', r"\1{}", text)
        text = re.sub(r'("weight": )[-0-9.e]+', r"\1", text)
        text = re.sub(r'("predictions":)\[[^]]*\]', r"\1[]", text)
        text = re.sub(r'("probabilities":)\[.*\]', r"\1[]", text)
    return answer.status_code, headers, text


def transcript(folder, rows, media="json", users=False):
    """All that is told while these rows are learnt, 30 at a time, with a look after each request and each tick."""
    folder.mkdir()
    told = []
    service = Service(Store(folder / "streams.db"), seed=7)
    contract = declared(1000, 10)
    if users:
        contract["privacy"] |= {"user": "who", "rows_per_user": 4}
    service.create(NAME, contract_of(contract))
    secret = service.tokens.create(["learn", "predict", "read"])[1]
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, secret)

        def look():
            for path in ("", f"/{NAME}", f"/{NAME}/models/latest", f"/{NAME}/models/1", f"/{NAME}/models/4"):
                told.append((path, masked(client.get(f"/v1/streams{path}"))))
            told.append(("models", masked(client.get(f"/v1/streams/{NAME}/models?weights=true"))))
            told.append(("predict", masked(client.predict(some_rows(2), query="?probabilities=true"))))
            told.append(("metrics", masked(client.get("/metrics"))))

        look()
        for start in range(0, len(rows), 30):
            part, key = rows[start : start + 30], f"key {start}"
            if media == "json":
                answers = [client.learn(part, key), client.learn(part, key)]
            else:
                lines = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in part)
                headers = {"idempotency-key": key, "content-type": "application/x-ndjson"}
                answers = [client.post(f"/v1/streams/{NAME}/examples", content=lines, headers=headers)]
            told += [("learn", masked(answer)) for answer in answers]
            look()  # before the tick: nothing has changed
            told.append(("tick", next_tick(2)))
            look()
        with httpx.stream(
            "GET",
            f"{address}/v1/streams/{NAME}/live",
            headers={"authorization": f"Bearer {secret}", "last-event-id": "0"},
        ) as events:
            lines = []
            for line in events.iter_lines():
                lines.append(re.sub(r'("(?:model|point)":)\[[^]]*\]', r"\1[]", line))
                if line.startswith("id: 9"):
                    break
        told.append(("live", lines))
    return told


@pytest.mark.parametrize("row", REPLACED.values(), ids=REPLACED)
def test_one_row_replaced_changes_nothing_but_noisy_numbers(tmp_path, row):
    rows = some_rows(90)
    other = [*rows[:17], row, *rows[18:]]
    one, two = transcript(tmp_path / "one", rows), transcript(tmp_path / "two", other)
    assert one == two
    assert [each for name, each in one if name == "tick"] == [[NAME]] * 3
    assert [each[0] for name, each in one if name == "learn"] == [200] * 6


@pytest.mark.parametrize("line", ["{", "", '{"age": 1, "y": NaN}', "\x00", '{"age": "\\ud800"}', "[" * 1000])
def test_one_line_that_is_no_json_changes_nothing_but_noisy_numbers(tmp_path, line):
    rows = some_rows(90)
    other = [*rows[:17], line, *rows[18:]]
    assert transcript(tmp_path / "one", rows, "lines") == transcript(tmp_path / "two", other, "lines")


def test_rows_of_a_user_that_do_not_count_are_answered_alike(tmp_path):
    """All rows of one user are replaced: by rows of another kind, of which more than four have no influence."""
    rows = [{**row, "who": f"user {number % 20}"} for number, row in enumerate(some_rows(90))]
    other = [{**row, "age": 1, "y": "no"} if row["who"] == "user 3" else row for row in rows]
    one, two = transcript(tmp_path / "one", rows, users=True), transcript(tmp_path / "two", other, users=True)
    assert one == two


def events_transcript(folder, rows, labels, monkeypatch):
    """All that readers are told while events are opened and closed, at ticks; `labels` has the tick of each label.

    Ten events are opened in each tick, and wait for five of them.
    """
    folder.mkdir()
    now = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    monkeypatch.setattr(unit, "utc_now", lambda: now[0])
    service = Service(Store(folder / "streams.db"), seed=7)
    service.create(NAME, contract_of(declared(1000, 10) | {"events": {"wait": "5 seconds"}}))
    secret = service.tokens.create(["learn", "predict"])[1]
    reader = service.tokens.create(["read", "predict"])[1]
    told = []
    with set_clock(service) as next_tick, running(service) as address:
        sender, client = Client(address, secret), Client(address, reader)
        for tick in range(len(rows) // 10 + 8):
            for number in range(10 * tick, min(10 * tick + 10, len(rows))):
                answer = sender.post(f"/v1/streams/{NAME}/events", json={"row": rows[number], "event": f"e{number}"})
                told.append(("open", masked(answer)[0], answer.json()["round"], answer.json()["release"]))
            for number, (at, label) in labels.items():
                if at == tick:
                    path = f"/v1/streams/{NAME}/events/e{number}/label"
                    sender.http.put(next(sender.addresses) + path, json={"label": label})
            now[0] += datetime.timedelta(seconds=1)
            service.event_writer(NAME).learn_due()
            told.append(("tick", next_tick()))
            for path in (f"/{NAME}", f"/{NAME}/models/latest", f"/{NAME}/models"):
                told.append((path, masked(client.get(f"/v1/streams{path}"))))
            told.append(("metrics", masked(client.get("/metrics"))))
            told.append(("predict", masked(client.predict(some_rows(2)))))
    return told


@pytest.mark.parametrize(
    "other",
    [(3, "no"), (6, "yes"), (7, "yes"), (2, [1]), None],
    ids=["another label", "just in time", "too late", "no label", "never"],
)
def test_one_label_that_comes_at_another_time_or_not_changes_nothing_but_noisy_numbers(tmp_path, monkeypatch, other):
    rows = [{name: value for name, value in row.items() if name != "y"} for row in some_rows(60)]
    labels = {number: (number // 10 + number % 5, "yes") for number in range(60) if number % 7}
    changed = {number: at for number, at in labels.items() if number != 20} | ({} if other is None else {20: other})
    one = events_transcript(tmp_path / "one", rows, labels, monkeypatch)
    two = events_transcript(tmp_path / "two", rows, changed, monkeypatch)
    assert one == two
    assert sum(each == ("tick", [NAME]) for each in one) == 6


def decisions_transcript(folder, visits, rewards, monkeypatch, users=False):
    """The same while actions are chosen: what readers are told, and everyone but visitor 20 of their own decisions.

    Which actions those are is random, and follows from noisy models: it is left out.
    """
    folder.mkdir()
    now = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    monkeypatch.setattr(unit, "utc_now", lambda: now[0])
    service = Service(Store(folder / "streams.db"), seed=7)
    bounds = {"user": "who", "rows_per_user": 4} if users else {}
    service.create(NAME, contract_of(deciding(wait=5, **({"privacy": bounds} if users else {}))))
    secret = service.tokens.create(["learn", "predict"])[1]
    reader = service.tokens.create(["read", "predict"])[1]
    told, models = [], []
    with set_clock(service) as next_tick, running(service) as address:
        sender, client = Client(address, secret), Client(address, reader)
        json_body = {"content-type": "application/json"}
        for tick in range(len(visits) // 10 + 8):
            for number in range(10 * tick, min(10 * tick + 10, len(visits))):
                body = f'{{"eventId": "e{number}", {visits[number]}}}'
                answer = sender.post(f"/v1/streams/{NAME}/rank", content=body.encode(), headers=json_body)
                made = answer.json()
                if number != 20:
                    told.append(("rank", answer.status_code, len(made["ranking"]), made["round"], made["release"]))
            for number, (at, value) in rewards.items():
                if at == tick:
                    path = f"/v1/streams/{NAME}/events/e{number}/reward"
                    answer = sender.http.put(next(sender.addresses) + path, json={"value": value})
                    if number != 20:
                        told.append(("reward", masked(answer)))
            now[0] += datetime.timedelta(seconds=1)
            service.event_writer(NAME).learn_due()
            told.append(("tick", next_tick()))
            for path in (f"/{NAME}", f"/{NAME}/models/latest", f"/{NAME}/models"):
                told.append((path, masked(client.get(f"/v1/streams{path}"))))
            told.append(("metrics", masked(client.get("/metrics"))))
            told.append(("predict", masked(client.predict(some_rows(2)))))
        models.append(client.get(f"/v1/streams/{NAME}/models/latest").text)
    return told, models


VISIT = '"contextFeatures": {"age": %d, "income": %d, "town": "Rome", "who": "user %d"}'
OTHER_VISITS = {
    "another context": (VISIT % (99, 3, 2), (3, 1.0)),
    "a bad context": ('"contextFeatures": {"age": "old", "income": [1]}', (3, 1.0)),
    "no context": ('"contextFeatures": []', (3, 1.0)),
    "a number out of range": ('"contextFeatures": {"age": 1e999, "income": NaN}', (3, 1.0)),
    "excluded actions": (VISIT % (20, 20, 2) + ', "excludedActions": ["weather"]', (3, 1.0)),
    "a deferred activation": (VISIT % (20, 20, 2) + ', "deferActivation": true', None),
    "another reward": (VISIT % (20, 20, 2), (2, 0.0)),
    "a reward too late": (VISIT % (20, 20, 2), (7, 1.0)),
    "no reward": (VISIT % (20, 20, 2), None),
}


@pytest.mark.parametrize(("name", "users"), [*((name, False) for name in OTHER_VISITS), ("a bad context", True)])
def test_one_visit_replaced_changes_nothing_but_noisy_numbers_for_others(tmp_path, monkeypatch, name, users):
    visits = [VISIT % (number, number, number % 18) for number in range(60)]
    rewards = {number: (number // 10 + number % 5, 1.0) for number in range(60) if number % 7}
    visit, reward = OTHER_VISITS[name]
    replaced = [*visits[:20], visit, *visits[21:]]
    changed = {number: at for number, at in rewards.items() if number != 20} | ({} if reward is None else {20: reward})
    one, models = decisions_transcript(tmp_path / "one", visits, rewards, monkeypatch, users)
    two, others = decisions_transcript(tmp_path / "two", replaced, changed, monkeypatch, users)
    assert one == two
    assert sum(each == ("tick", [NAME]) for each in one) == 6
    assert models != others, "otherwise nothing was compared"


def test_noisy_numbers_differ(tmp_path):
    """Otherwise nothing was compared: the streams are not the same."""
    rows = some_rows(90)
    bodies = []
    for name, made in (("one", rows), ("two", [*rows[:17], REPLACED["another row"], *rows[18:]])):
        service = Service(Store(tmp_path / f"{name}.db"), seed=7)
        service.create(NAME, contract_of(declared(1000, 10)))
        secret = service.tokens.create(["admin"])[1]
        with set_clock(service) as next_tick, running(service) as address:
            client = Client(address, secret)
            client.learn(made, "a key")
            next_tick(2)
            bodies.append(client.get(f"/v1/streams/{NAME}/models/latest").json()["scores"])
    assert bodies[0] != bodies[1]
