"""Events over HTTP: labels that come later are learnt once, at the round of their rows, when the wait has passed."""

import datetime
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from event_sites import WAIT, Events, deciding, later, learnt_at_once, models, without_label
from served import NAME, Client, declared, some_rows
from taciturn.contract.contract import contract_of
from taciturn.core.private import Private
from taciturn.errors import StoreUnavailable
from taciturn.service import events
from taciturn.service.clock import TickClock
from taciturn.service.server import running
from taciturn.service.service import Limits, Service
from taciturn.store import Store
from taciturn.store.events import EventLog


@pytest.mark.privacy
def test_a_row_is_predicted_waits_and_is_learnt_with_its_label(event_site):
    here = event_site()
    opened = here.client.open(without_label(some_rows(1)[0]), "first", "?probabilities=true")
    assert opened.status_code == 200
    answer = opened.json()
    predicted = here.client.predict([without_label(some_rows(1)[0])], query="?probabilities=true").json()
    assert (answer["event"], answer["round"], answer["release"]) == ("first", 1, 0)
    assert [answer["prediction"]] == predicted["predictions"]
    assert answer["classes"] == predicted["classes"]
    assert [answer["probabilities"]] == predicted["probabilities"]
    assert answer["due"] == 1000 * (here._clock[0].timestamp() + WAIT)
    closed = here.client.label("first", "yes")
    assert (closed.status_code, closed.json()) == (200, {"stream": NAME, "event": "first", "round": 1})
    here._clock[0] += datetime.timedelta(seconds=WAIT - 1)
    assert here.service.store.events(here.service.host(NAME).lineage).seal() == []
    assert here.wait(0) == 0, "never earlier than its wait, also with a label"
    assert (here.wait(1), here.round) == (1, 1)


@pytest.mark.privacy
@pytest.mark.parametrize("missing", [None, "no"])
@pytest.mark.parametrize("neighbours", ["replace", "label"])
@pytest.mark.parametrize("user", [{}, {"user": "who", "rows_per_user": 3}], ids=["rows", "users"])
def test_whenever_labels_come_the_stream_is_that_of_its_rows(event_site, tmp_path, missing, neighbours, user):
    """Labels in any order, some never, some late, some of no class: the same releases as those of rows with labels."""
    contract = later(missing=missing, neighbours=neighbours, **user)
    here, chance = event_site(contract, seed=7), random.Random(1)
    rows = [{**row, "who": f"user {number % 9}"} for number, row in enumerate(some_rows(60))]
    rows[3] |= {"age": "old"}
    rows[4] = {"income": [1, {"a": 2}], "age": float("1e400"), "who": 10**30}
    expected = []
    for start in range(0, 60, 20):
        labels, late = {}, []
        for number in range(start, start + 20):
            row, event = rows[number], f"e{number}"
            body = json.dumps({"row": {**without_label(row), "note": "not declared"}, "event": event})
            assert here.client.open_text(body).status_code == 200
            kind = chance.choice(["soon", "soon", "soon", "never", "late", "no class", "nothing"])
            label = {"no class": 7.25, "nothing": None, "never": missing, "late": missing}.get(
                kind, row.get("y", "yes")
            )
            expected.append({**row, "y": label})
            if kind == "late":
                late.append(event)
            elif kind != "never":
                labels[event] = label
        for event in chance.sample(list(labels), len(labels)):
            assert here.client.label(event, labels[event]).status_code == 200
        assert here.wait() == 20
        assert {here.client.label(event, "yes").status_code for event in late} <= {410}
    assert here.round == 60
    made = models(here.service)
    assert len(made) == 6
    assert made == learnt_at_once(tmp_path, expected, contract)


@pytest.mark.privacy
def test_what_is_repeated_has_the_same_outcome_and_is_learnt_once(event_site):
    here = event_site()
    row = without_label(some_rows(1)[0])
    first = here.client.open(row, "a")
    assert here.client.open(row, "a").content == first.content
    assert here.client.open(some_rows(2)[1], "a").status_code == 409
    assert here.client.label("a", "yes").content == here.client.label("a", "yes").content
    assert here.client.label("a", "no").status_code == 409
    assert here.wait() == 1
    assert here.client.label("a", "yes").json()["round"] == 1, "it was accepted"
    assert here.client.label("a", "no").status_code == 409
    assert here.client.open(row, "a").status_code == 410
    assert (here.wait(), here.round) == (0, 1)
    assert here.client.open(row).json()["event"] != here.client.open(row).json()["event"]
    assert (here.wait(), here.round) == (2, 3)


@pytest.mark.privacy
def test_a_repeated_request_is_answered_by_the_first_model(event_site):
    here = event_site(later(release=10), seed=7)
    rows = some_rows(11)
    for number, row in enumerate(rows[:10]):
        here.client.open(without_label(row), f"before{number}")
        here.client.label(f"before{number}", "yes")
    here.wait(WAIT / 2)
    first = here.client.open(rows[10], "a", "?probabilities=true")
    assert here.wait(WAIT / 2) == 10
    assert here.client.open(rows[10], "b", "?probabilities=true").json()["release"] == 1
    again = here.client.open(rows[10], "a", "?probabilities=true")
    assert (again.content, again.json()["release"]) == (first.content, 0)


@pytest.mark.privacy
def test_a_label_after_the_wait_is_rejected_and_never_learnt(event_site):
    here = event_site(later(missing="no"), seed=7)
    here.client.open(without_label(some_rows(1)[0]), "a")
    here._clock[0] += datetime.timedelta(seconds=WAIT)
    late = here.client.label("a", "yes")  # before a server has learnt it
    assert late.status_code == 410
    assert here.client.label("a", "yes").status_code == 410
    assert here.wait(0) == 1
    assert "late_labels" in here.client.get("/metrics").text


def test_a_token_that_follows_another_closes_its_events(event_site):
    """So that a secret is replaced without losing the labels that are waited for."""
    here, row = event_site(), without_label(some_rows(1)[0])
    first, secret = here.service.tokens.create(["learn", "predict"])
    old = Events(next(here.client.addresses), secret)
    assert old.open(row, "visit").status_code == 200
    here.service.tokens.revoke(first.id)
    _, other = here.service.tokens.create(["learn", "predict"])
    assert Events(next(here.client.addresses), other).label("visit", "yes").status_code == 404
    _, following = here.service.tokens.follow(first.id)
    new = Events(next(here.client.addresses), following)
    assert new.open(row, "visit").json()["round"] == 1, "a repeated request has its answer"
    assert new.label("visit", "yes").status_code == 200


@pytest.mark.privacy
def test_an_event_of_another_token_tells_nothing(event_site):
    """Neither that there is one, nor what its row or label is."""
    here = event_site()
    row = without_label(some_rows(1)[0])
    here.client.open(row, "a")
    here.client.label("a", "yes")
    other = Events(next(here.client.addresses), here.service.tokens.create(["learn", "predict"])[1])
    assert {other.label("a", label).status_code for label in ("yes", "no")} == {404}
    assert other.label("b", "yes").content == other.label("a", "yes").content
    assert other.open(row, "a").json()["round"] == 2


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [(["learn"], (403, 404)), (["predict"], (403, 403)), (["read"], (403, 403)), (["predict", "learn"], (200, 404))],
)
def test_to_open_one_may_predict_and_learn_and_to_close_one_may_learn(event_site, scopes, expected):
    here = event_site()
    client = Events(next(here.client.addresses), here.service.tokens.create(scopes)[1])
    assert (client.open({"age": 1}).status_code, client.label("none", 1).status_code) == expected


def test_a_stream_takes_events_or_rows_and_not_both(event_site):
    here = event_site()
    answer = here.client.learn(some_rows(1), "a key")
    assert answer.status_code == 409
    assert f"POST /v1/streams/{NAME}/events" in answer.json()["error"]
    here.service.create("plain", contract_of(declared()))
    answer = here.client.post("/v1/streams/plain/events", json={"row": {}})
    assert answer.status_code == 409
    assert "POST /v1/streams/plain/examples" in answer.json()["error"]
    assert here.round == 0


def test_events_that_wait_are_bounded_and_so_is_the_stream(event_site):
    here = event_site(later(horizon=6, release=2), limits=Limits(pending_events=4))
    answers = [here.client.open({"age": number}) for number in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert here.wait() == 4
    answers = [here.client.open({"age": number}) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert here.wait() == 2
    assert here.round == 6


def test_no_event_is_opened_that_can_never_be_learnt(event_site, monkeypatch):
    """A stream without a horizon may end, too: its noise is paid for up to a round."""
    contract = later(release="geometric")
    del contract["learning"]["horizon"]
    here = event_site(contract)
    assert here.service.host(NAME).horizon is None
    assert here.service.host(NAME).private.last_round == 8_306_604
    monkeypatch.setattr(Private, "last_round", 2)  # as if many had come
    opened = [here.client.open(without_label(row)) for row in some_rows(3)]
    assert [each.status_code for each in opened] == [200, 200, 409]
    assert "ends after 2 rows" in opened[2].json()["error"]


@pytest.mark.privacy
def test_events_go_on_in_another_process(event_site, tmp_path):
    here = event_site()
    for number, row in enumerate(some_rows(12)):
        here.client.open(without_label(row), f"e{number}")
    here.client.label("e3", "yes")
    other = Service(Store(tmp_path / "streams.db"))
    other.clock = here.service.clock
    try:
        other.refresh()
        here._clock[0] += datetime.timedelta(seconds=WAIT)
        assert other.event_writer(NAME).learn_due() == 12
        assert here.client.label("e3", "yes").status_code == 200
        assert here.client.label("e4", "yes").status_code == 410
        here.client.open({"age": 4})
        assert here.wait() == 0, "the other has the lease"
        here._next_tick(4)
        assert (here.wait(0), here.round) == (1, 13)
    finally:
        other.close()


@pytest.mark.privacy
def test_a_commit_that_failed_leaves_its_events_as_they_were(event_site):
    here = event_site(seed=7)
    for number, row in enumerate(some_rows(10)):
        here.client.open(without_label(row), f"e{number}")
        here.client.label(f"e{number}", row["y"])
    commit = here.service.store.commit

    def fails(*arguments, **settings):
        raise StoreUnavailable("the disk is full")

    here.service.store.commit = fails
    with pytest.raises(StoreUnavailable):
        here.wait()
    assert here.client.label("e1", "maybe").status_code == 409
    here.service.store.commit = commit
    assert (here.wait(0), here.round) == (10, 10)
    assert len(models(here.service)) == 1


def test_events_that_wait_share_a_transaction(event_site):
    here = event_site()
    log = here.service.event_writer(NAME)._log
    groups, exchange = [], log.exchange

    def slow(openings, closings, **settings):
        groups.append(len(openings) + len(closings))
        time.sleep(0.1)
        return exchange(openings, closings, **settings)

    log.exchange = slow
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda number: here.client.open({"age": number}), range(12)))
    assert sorted(answer.json()["round"] for answer in answers) == list(range(1, 13))
    assert sum(groups) == 12
    assert len(groups) <= 4


@pytest.mark.privacy
def test_nothing_of_an_event_is_in_clear(event_site, tmp_path, monkeypatch):
    """Ids are keyed hashes; rows and labels are encrypted, and erased once they are learnt or the stream has ended."""
    monkeypatch.setenv("TACITURN_KEY", "ab" * 32)
    here = event_site()
    for event in ("a-special-id", "another-id"):
        here.client.open({"age": 12.345678, "town": "a special town"}, event)
    here.client.label("a-special-id", "a special label")
    content = (tmp_path / "streams.db").read_bytes()
    assert not any(text in content for text in (b"12.345678", b"special", b"another-id"))
    stored = "SELECT count(*) FROM stream_events WHERE content IS NOT NULL OR label IS NOT NULL"
    assert here.wait() == 2
    here.client.open({"age": 1}, "last")
    with here.service.store.database.transaction(write=False) as now:
        assert now.rows(stored) == [(1,)]
    here.client.post(f"/v1/streams/{NAME}/close")
    with here.service.store.database.transaction(write=False) as now:
        assert now.rows("SELECT count(*) FROM stream_events") == [(0,)], "their hashes are erased, too"
    assert here.client.label("last", "yes").status_code == 409
    assert here.client.open({"age": 1}).status_code == 409


@pytest.mark.privacy
def test_events_that_are_learnt_at_once_fit_into_memory(event_site, tmp_path):
    """A commit has as many as fit if each is as long as it may be, whatever they hold; the models are the same."""
    here = event_site(seed=7, limits=Limits(queued_bytes=2**18))
    rows = [without_label(row) | {"town": "a" * (2 * number**3)} for number, row in enumerate(some_rows(20))]
    for number, row in enumerate(rows):
        here.client.open(row, f"e{number}")
    sealed = []
    seal = here.service.event_writer(NAME)._log.seal
    here.service.event_writer(NAME)._log.seal = lambda *most: sealed.append(seal(*most)) or sealed[-1]
    assert (here.wait(), here.round) == (20, 20)
    sizes = [[len(each.content) for each in events] for events in sealed]
    assert [len(each) for each in sizes] == [4] * 5
    assert all(sum(each) <= 2**18 for each in sizes)
    assert max(map(max, sizes)) > 10 * min(map(min, sizes))
    assert models(here.service) == learnt_at_once(tmp_path, rows, later())


@pytest.mark.privacy
@pytest.mark.parametrize("contract", [later(), deciding()], ids=["labels", "rewards"])
def test_a_stolen_store_without_its_key_does_not_tell_equal_rows_or_labels(event_site, monkeypatch, contract):
    """Neither by hashes nor by lengths; which events are closed shows."""
    monkeypatch.setenv("TACITURN_KEY", "ab" * 32)
    here = event_site(contract)
    labels = ["yes", "no", "yes", True, 0.25, "no", None]
    for number, label in enumerate(labels):
        context, close = {"age": 31 + 1.5 * (number > 4), "income": 5}, here.client.label
        if "bandit" in contract:
            close, label = here.client.reward, [1.0, 0.0, 1.0, 0.125, 0.25, 0.0, -2.5e-300][number]
            event = here.client.post(f"/v1/streams/{NAME}/rank", json={"contextFeatures": context}).json()["eventId"]
        else:
            event = here.client.open(context).json()["event"]
        assert close(event, label).status_code == 200
        assert close(event, label).status_code == 200, "a repeated label is recognised"
    with here.service.store.database.transaction(write=False) as now:
        found = now.rows("SELECT body, closed, length(content), length(label) FROM stream_events")
    bodies, closed, rows, lengths = zip(*found, strict=True)
    assert len(set(bodies)) == len(set(closed)) == len(labels)
    assert len(set(rows)) == len(set(lengths)) == 1
    assert here.wait() == len(labels)


def test_a_tick_learns_what_is_due_by_then_in_blocks(event_site, monkeypatch):
    """What becomes due meanwhile is left for the next tick, and requests wait for a block at most."""
    here = event_site()
    for number in range(10):
        here.client.open({"age": number}, f"a{number}")
    log = here.service.event_writer(NAME)._log
    by = log.time() + 1000 * WAIT
    monkeypatch.setattr(events, "_BLOCK", 4)
    monkeypatch.setattr(events, "_BYTES", 10**9)
    sealed, seal = [], EventLog.seal

    def counted(self, *limits):
        sealed.append(len(made := seal(self, *limits)))
        return made

    monkeypatch.setattr(EventLog, "seal", counted)
    monkeypatch.setattr(EventLog, "time", lambda self: by)
    here._clock[0] += datetime.timedelta(seconds=1)
    here.client.open({"age": 7}, "later")
    assert here.wait(3 * WAIT) == 10  # when all are due
    assert sealed == [4, 4, 2]


@pytest.mark.parametrize("opens", [True, False], ids=["an event is opened later", "none is"])
def test_a_clock_that_was_far_ahead_stops_no_stream(event_site, caplog, opens):
    """What was opened by it waits anew, by the present clock; it is learnt in its order, with its label."""
    here = event_site()
    here._clock[0] += datetime.timedelta(days=30)
    here.client.open({"age": 1}, "ahead")
    here._clock[0] -= datetime.timedelta(days=30)
    if opens:
        here.client.open({"age": 2}, "later")
    here._next_tick()
    assert here.wait(0) == 0
    assert here.client.label("ahead", "yes").status_code == 200
    assert here.wait() == 1 + opens
    assert here.round == 1 + opens
    assert "1 events of clicks were dated by a clock that was far ahead" in caplog.text
    assert f'taciturn_operator_redated_total{{stream="{NAME}"}} 1\n' in here.client.get("/metrics").text


def test_clocks_that_differ_by_minutes_leave_waits_as_they_are(event_site, caplog):
    here = event_site()
    here._clock[0] += datetime.timedelta(minutes=90)
    here.client.open({"age": 1}, "ahead")
    here._clock[0] -= datetime.timedelta(minutes=90)
    here.client.open({"age": 2}, "later")
    here._next_tick()
    assert here.wait() == 0
    assert here.wait(90 * 60) == 2
    assert "clock" not in caplog.text


def test_a_lease_by_a_clock_that_was_far_ahead_is_not_waited_for(event_site, tmp_path):
    here = event_site()
    other = Service(Store(tmp_path / "streams.db"))
    other.clock = TickClock()  # the present time, which is decades ahead of that of the site
    here.client.open({"age": 1})
    other.refresh()
    here._clock[0] += datetime.timedelta(seconds=WAIT)
    assert other.event_writer(NAME).learn_due() == 1
    here.client.open({"age": 2})
    assert here.wait() == 1
    other.close()


def test_the_oldest_event_that_is_due_shows(event_site):
    here = event_site()
    here.client.open({"age": 1})
    here._next_tick()
    shown = here.client.get("/metrics").text
    assert f'taciturn_operator_oldest_due_event_seconds{{stream="{NAME}"}} 0.0\n' in shown
    type(here.service.clock).time = here.service.host(NAME).events_due + 7000
    late = here.client.get("/metrics").text
    assert f'taciturn_operator_oldest_due_event_seconds{{stream="{NAME}"}} 7.0\n' in late


def test_metrics_have_opened_events_for_all_and_the_rest_for_operators(event_site):
    here = event_site()
    for number in range(3):
        here.client.open({"age": number}, f"e{number}")
    here.client.label("e0", "yes")
    here._next_tick()
    reader = Client(next(here.client.addresses), here.service.tokens.create(["read"])[1]).get("/metrics").text
    assert f'taciturn_stream_events{{stream="{NAME}"}} 3\n' in reader
    assert "pending" not in reader
    assert "operator" not in reader
    operator = here.client.get("/metrics").text
    assert f'taciturn_operator_pending_events{{stream="{NAME}"}} 3\n' in operator
    assert f'taciturn_operator_labels_total{{stream="{NAME}"}} 1\n' in operator


BODIES = [
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b'{"row": {}, "id": "a"}', 400),
    (b'{"event": "a"}', 400),
    (b'{"row": {}, "event": 7}', 400),
    (b'{"row": {}, "event": "../a"}', 422),
    (b'{"row": {}, "event": ""}', 422),
    (b'{"row": {}, "event": "' + b"a" * 129 + b'"}', 422),
    (b"[" * 10_000, 400),
    (b'{"row": {"age": "' + b"a" * 2**16 + b'"}}', 413),
    (b'{"row": 7}', 200),
    (b'{"row": null}', 200),
    (b'{"row": {"age": NaN, "income": Infinity, "town": "\\ud800"}}', 200),
    (b'{"row": {"age": {"a": [1]}, "income": 1' + b"0" * 400 + b"}}", 200),
    (b'{"row": {"age": ' + b"9" * 5_000 + b"}}", 200),
    (b'{"row": {"age": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}", 200),
    (b'{"row": {"no column": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}", 200),
]


def test_bodies_that_are_no_events_are_rejected_and_bad_rows_take_their_rounds(event_site):
    here = event_site()
    for body, status in BODIES:
        answer = here.client.open_text(body)
        assert answer.status_code == status, (body, answer.text)
        assert here.wait() == (status == 200)


LABELS = [
    ("label", b'{"label": [1]}', 422),
    ("label", b'{"label": {"a": 1}}', 422),
    ("label", b'{"value": 1}', 422),
    ("label", b"{", 400),
    ("reward", b'{"value": "a"}', 422),
    ("reward", b'{"value": NaN}', 400),
    ("reward", b'{"value": 1e400}', 422),
    ("reward", b'{"value": 1}', 200),
    ("label", b'{"label": null}', 200),
]


def test_labels_are_single_values(event_site):
    here = event_site()
    for number, (path, body, status) in enumerate(LABELS):
        here.client.open({"age": 1}, f"e{number}")
        address = f"/v1/streams/{NAME}/events/e{number}/{path}"
        answer = here.client.put(address, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == status, (body, answer.text)
        assert here.client.put(address, content=body).status_code == 415


def test_a_server_learns_by_its_clock(tmp_path):
    service = Service(Store(tmp_path / "streams.db"), tick=0.05)
    service.create(NAME, contract_of(later(release=1, wait=0.1)))
    secret = service.tokens.create(["admin"])[1]
    with running(service) as address:
        client = Events(address, secret)
        client.label(client.open({"age": 1}).json()["event"], "yes")
        until = time.monotonic() + 20.0
        while service.host(NAME).view.k < 1 and time.monotonic() < until:
            time.sleep(0.01)
        assert client.get(f"/v1/streams/{NAME}").json()["stream"]["round"] == 1
