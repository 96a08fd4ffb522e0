"""Decisions over HTTP: an action is chosen by visible models, and its reward is learnt at the round of the decision."""

import json
import random

import numpy as np
import pytest

from event_sites import ACTIONS, Events, decided_at_once, deciding, later, models
from served import NAME, declared
from taciturn.bandits.choices import UCB, EpsilonGreedy, LinearModel, Thompson
from taciturn.bandits.off_policy import LoggedDecisions
from taciturn.bandits.ranking import among, best_probability, generator, ranked, ranked_by_definition
from taciturn.client import Client
from taciturn.contract.contract import contract_of
from taciturn.contract.explain import explain, explanation
from taciturn.contract.model_file import parse_model
from taciturn.errors import InvalidInput
from taciturn.readers.jsonl import JsonRows, read_json
from taciturn.service.dashboard.views import example_requests
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.service.tokens import session_cookie
from taciturn.store import Event, Store


def visitor(seed):
    chance = random.Random(seed)
    return {"age": chance.randint(0, 100), "income": chance.randint(0, 1000), "town": chance.choice(["Oslo", "Rome"])}


def rank(client, context=None, event=None, **more):
    body = {"contextFeatures": visitor(0) if context is None else context, **more}
    body |= {} if event is None else {"eventId": event}
    return client.post(f"/v1/streams/{NAME}/rank", json=body)


def test_an_action_is_chosen_and_its_reward_learnt(event_site):
    here = event_site(deciding())
    answer = rank(here.client, [{"age": 30, "income": 5}, {"town": "Rome"}], "a")
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert made["eventId"] == "a"
    assert made["rewardActionId"] == made["ranking"][0]["id"]
    assert sorted(each["id"] for each in made["ranking"]) == sorted(ACTIONS)
    assert made["ranking"][0]["probability"] == pytest.approx(1.0 / 3.0, abs=1.0 / 128.0)
    assert (made["round"], made["release"]) == (1, 0)
    assert rank(here.client, [{"age": 30, "income": 5}, {"town": "Rome"}], "a").content == answer.content
    assert here.client.reward("a", 1.0).json()["round"] == 1
    assert here.client.reward("a", 0.5).status_code == 409
    path = f"/v1/streams/{NAME}/events/a/reward"
    assert here.client.post(path, json={"value": 1.0}).status_code == 200
    assert (here.wait(), here.round) == (1, 1)


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("policy", "missing", "users"),
    [("ucb", 0.0, {}), ("thompson", None, {}), ("epsilon-greedy", 0.0, {"user": "who", "rows_per_user": 3})],
)
def test_whenever_rewards_come_the_stream_is_that_of_its_decisions(event_site, policy, missing, users):
    """Rewards in any order, some never, some for bad contexts: the releases of the chosen actions and their rewards."""
    contract = deciding(policy=policy, missing=missing, privacy=users)
    here, chance, expected, ids = event_site(contract, seed=7), random.Random(1), [], []
    for start in range(0, 40, 20):
        rewards = {}
        for number in range(start, start + 20):
            context = visitor(number) | {"who": f"user {number % 6}"}
            context |= {"age": "old"} if number == 7 else {"income": float("1e300")} if number == 8 else {}
            out = [ACTIONS[number % 3]] if number % 4 == 0 else []
            deferred = number % 5 == 0
            answer = rank(here.client, context, f"e{number}", excludedActions=out, deferActivation=deferred).json()
            assert answer["rewardActionId"] not in out
            assert len(answer["ranking"]) == 3 - len(out)
            reward = chance.choice([0.0, 1.0, 0.25, 7.0, None, None])
            default = None if deferred else missing
            expected.append((context, ACTIONS.index(answer["rewardActionId"]), default if reward is None else reward))
            ids.append(context["who"])
            if reward is not None:
                rewards[f"e{number}"] = reward
        for event in chance.sample(list(rewards), len(rewards)):
            assert here.client.reward(event, rewards[event]).status_code == 200
        assert here.wait() == 20
    assert models(here.service) == decided_at_once(contract, expected, ids if users else None)


@pytest.mark.privacy
def test_what_one_visitor_draws_changes_no_action_of_others(event_site, tmp_path):
    """The actions that one may choose from are secret from others, whose actions are drawn by themselves."""
    worlds = []
    for excluded in (ACTIONS[:1], []):
        folder = tmp_path / str(len(worlds))
        folder.mkdir()
        here = event_site(deciding(release=1), folder, seed=7)
        rank(here.client, event="first")
        assert here.wait() == 1
        rank(here.client, visitor(1), learn=False, excludedActions=excluded)
        worlds.append([rank(here.client, visitor(number), learn=False).json() for number in range(2, 22)])
    assert worlds[0] == worlds[1]
    assert len({each["rewardActionId"] for each in worlds[0]}) == 3


def test_actions_that_come_with_a_request_share_a_model(event_site):
    contract = deciding(actions="features", policy="ucb")
    here, expected = event_site(contract, seed=7), []
    for number in range(10):
        actions = [{"id": f"a{i}", "features": [{"town": "Rome"}, {"age": 10 * i + number}]} for i in range(4)]
        answer = rank(here.client, {"income": 5}, f"e{number}", actions=actions, excludedActions=["a1"]).json()
        assert sorted(each["id"] for each in answer["ranking"]) == ["a0", "a2", "a3"]
        chosen = int(answer["rewardActionId"][1])
        expected.append(({"income": 5, "town": "Rome", "age": 10 * chosen + number}, 0, chosen / 3.0))
        here.client.reward(f"e{number}", chosen / 3.0)
    assert here.wait() == 10
    assert models(here.service) == decided_at_once(contract, expected)


REQUESTS = [
    ({"excludedActions": ACTIONS[:2]}, 422),
    ({"actions": [{"id": "sports"}, {"id": "cooking"}]}, 422),
    ({"actions": [{"id": "sports"}, {"id": "sports"}]}, 422),
    ({"actions": [{"id": "sports"}, {"id": "weather"}]}, 200),
    ({"actions": "all"}, 422),
    ({"contextFeatures": 7}, 422),
    ({"contextFeatures": {"age": [1], "town": {"a": 1}}}, 200),
    ({"eventId": "../a"}, 422),
    ({"excludedActions": [1]}, 422),
    ({"excludedActions": ["wether"]}, 422),
    ({"other": 1}, 422),
]


def test_requests_that_are_no_decisions_are_rejected_and_bad_contexts_take_their_rounds(event_site):
    here = event_site(deciding())
    for more, status in REQUESTS:
        answer = here.client.post(f"/v1/streams/{NAME}/rank", json=more)
        assert answer.status_code == status, (more, answer.text)
        assert here.wait() == (status == 200)


def test_a_missing_value_may_be_written_as_nan(event_site):
    """As in rows; the visitor is ranked as one without that value."""
    here = event_site(deciding())
    headers = {"content-type": "application/json"}
    path = f"/v1/streams/{NAME}/rank"
    answer = here.client.post(path, content=b'{"contextFeatures": {"age": NaN, "income": 5}}', headers=headers)
    assert answer.status_code == 200, answer.text
    assert (
        here.client.post(path, content=b'{"contextFeatures": {"age": NaN}, "more": 1}', headers=headers).status_code
        == 422
    )
    assert here.client.post(path, content=b'{"contextFeatures": {"age": NaM}}', headers=headers).status_code == 400
    wrong = here.client.post(path, json={"eventId": "../a"})
    assert wrong.json()["error"].endswith("at $.eventId. Correct it.")
    assert here.wait() == 1


@pytest.mark.privacy
@pytest.mark.parametrize("policy", ["ucb", "thompson", "epsilon-greedy"])
@pytest.mark.parametrize("text", ["NaN", "1e999", "-1e999", "9" * 400, "9" * 5_000, "Infinity"])
def test_numbers_of_a_context_are_read_as_those_of_rows(event_site, policy, text):
    """Whatever a number is, the decision has its round; one that is NaN is learnt as one that is not there."""
    contract = deciding(policy=policy)
    here, expected = event_site(contract, seed=7), []
    body = b'{"contextFeatures": {"age": %s, "income": %d, "town": "Rome"}, "eventId": "e%d"}'
    for number in range(20):
        content = body % (text.encode(), number, number)
        headers = {"content-type": "application/json"}
        answer = here.client.post(f"/v1/streams/{NAME}/rank", content=content, headers=headers)
        assert answer.status_code == 200, answer.text
        made = answer.json()
        assert made["ranking"][0]["probability"] is not None
        here.client.reward(f"e{number}", 1.0)
        context = {"income": number, "town": "Rome"} | ({} if text == "NaN" else {"age": read_json(text)})
        expected.append((context, ACTIONS.index(made["rewardActionId"]), 1.0))
        if number == 9:
            here.wait()
    assert here.wait() == 10
    assert models(here.service) == decided_at_once(contract, expected)


def test_a_stream_of_decisions_predicts_nothing_else(event_site):
    here = event_site(deciding())
    assert here.client.predict([visitor(1)]).status_code == 422
    assert here.client.open(visitor(1)).status_code == 422
    here.service.create("plain", contract_of(declared()))
    assert here.client.post("/v1/streams/plain/rank", json={}).status_code == 409


def test_its_models_are_read_by_clients(event_site):
    here = event_site(deciding(release=1), seed=7)
    rank(here.client, event="a")
    here.client.reward("a", 1.0)
    here.wait()
    model = parse_model(here.client.get(f"/v1/streams/{NAME}/models/latest").json())
    assert model.releases == 1
    assert model.point.tolist() == models(here.service)[0]
    with pytest.raises(InvalidInput, match="chooses actions"):
        model.scores(np.zeros((1, 4)))
    with Client(next(here.client.addresses), here.client.http.headers["authorization"].partition(" ")[2]) as client:
        assert client.model(NAME).point.tolist() == model.point.tolist()
        made = client.rank(NAME, visitor(1), event="b")
        assert made.action in ACTIONS
        assert client.reward(NAME, "b", 0.5) == 2
        made = client.rank(NAME, [{"age": 30}, {"income": 5, "town": np.nan}])
        assert client.reward(NAME, made, True) == 3


def page_of(here):
    """The stream's page, for who has all scopes."""
    secret = here.client.http.headers["authorization"].partition(" ")[2]
    session = here.service.tokens.open_session(secret)[1]
    cookie = {"cookie": session_cookie(session, secure=False).partition(";")[0]}
    return here.client.http.get(next(here.client.addresses) + f"/streams/{NAME}", headers=cookie)


def test_its_page_shows_the_weights_of_its_models(event_site):
    here = event_site(deciding(release=1), seed=7)
    for event in "ab":
        rank(here.client, event=event)
    here.wait()
    page = page_of(here)
    assert page.status_code == 200
    assert "sports: age" in page.text
    assert "This stream chooses actions" in page.text
    assert "One action is chosen for each visitor" in page.text


@pytest.mark.parametrize(
    "contract",
    [
        later(),
        later(user="who", rows_per_user=3),
        deciding(),
        deciding("features"),
        deciding(privacy={"user": "who", "rows_per_user": 2}),
    ],
    ids=["events", "events of users", "actions", "actions with features", "actions for users"],
)
def test_the_requests_on_its_page_are_those_that_it_takes(event_site, contract):
    here = event_site(contract)
    for method, path, body in example_requests(here.service.host(NAME).contract):
        answer = here.client.http.request(method, f"{next(here.client.addresses)}/v1/streams/{NAME}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        assert f"/v1/streams/{NAME}/{path}" in page_of(here).text
    shown = page_of(here).text
    assert f"/v1/streams/{NAME}/examples" not in shown
    assert shown.count("curl ") == 2
    assert here.wait() == 1


@pytest.mark.parametrize("kind", ["events", "bandit"])
def test_taciturn_check_explains_them(tmp_path, kind):
    contract = contract_of(deciding())
    told = explain(contract, contract.plan())
    assert "waits 60 seconds for its reward" in told["events"]
    assert "3 actions, each with a model of its own" in told["bandit"]
    assert "hence joint DP" in told["guarantee"]
    assert "when rows come, and not when or whether their labels do" in told["public"]
    assert told[kind] in " ".join(map(str, explanation(contract, contract.plan())))


def test_a_stream_of_events_has_a_successor_and_one_of_decisions_has_not(event_site, tmp_path):
    folder = tmp_path / "decisions"
    folder.mkdir()
    here = event_site(later(release=1))
    here.client.open(visitor(1), "a")
    here.client.open(visitor(2), "b")
    here.wait()
    here.client.open(visitor(3), "c")
    answer = here.client.post(f"/v1/streams/{NAME}/renew", json={"name": "next"})
    assert answer.status_code == 201, answer.text
    assert here.client.label("c", "yes").status_code == 409
    assert here.client.post("/v1/streams/next/events", json={"row": visitor(3)}).json()["round"] == 1
    there = event_site(deciding(), folder)
    answer = there.client.post(f"/v1/streams/{NAME}/renew", json={"name": "next"})
    assert (answer.status_code, "has no successor" in answer.text) == (422, True)


def test_files_have_no_decisions():
    parsed = JsonRows(("age",)).parsed([{"age": 1}])
    with pytest.raises(InvalidInput, match="is for taciturn serve"):
        parsed.encode(contract_of(deciding()), labelled=True)


def test_better_actions_are_chosen_more_often(event_site):
    """Of two actions whose rewards are 1 and 0 the better one is the first in most rankings after 200 decisions."""
    here = event_site(deciding(actions=["good", "bad"], release=50, privacy={"epsilon": 8.0}), seed=7)
    for start in range(0, 200, 50):
        for number in range(start, start + 50):
            action = rank(here.client, visitor(number), f"e{number}").json()["rewardActionId"]
            here.client.reward(f"e{number}", float(action == "good"))
        here.wait()
    chosen = [rank(here.client, visitor(number)).json() for number in range(50)]
    assert sum(each["rewardActionId"] == "good" for each in chosen) > 40


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"actions": ["one"]}, "2 to 1,000 names"),
        ({"actions": ["one", "one"]}, "each once"),
        ({"actions": 3}, "a list of names"),
        ({"actions": ACTIONS, "policy": "random"}, "policy"),
        ({"actions": ACTIONS, "explore": 0.1}, "explore"),
        ({"actions": ACTIONS, "policy": "epsilon-greedy", "explore": 2}, "between 0 and 1"),
    ],
)
def test_contracts_that_no_bandit_has_are_rejected(table, message):
    with pytest.raises(InvalidInput, match=message):
        contract_of(deciding() | {"bandit": table})


def test_contracts_with_other_settings_are_rejected(event_site):
    for name, value in (("method", "giga"), ("features", "random"), ("radius", 1.0), ("loss", "absolute")):
        contract = deciding()
        contract["learning"][name] = value
        with pytest.raises(InvalidInput, match=f"learning.{name} is not for"):
            contract_of(contract)
    with pytest.raises(InvalidInput, match="whose range is public"):
        contract_of(deciding() | {"target": {"column": "y", "positive": ["yes"]}, "events": {"wait": "1 day"}})
    with pytest.raises(InvalidInput, match="neighbours"):
        contract_of(deciding(privacy={"neighbours": "label"}))
    here = event_site()
    without = {name: table for name, table in deciding().items() if name != "events"}
    with pytest.raises(InvalidInput, match=r"\[events\] wait"):
        here.service.create("other", contract_of(without))
    made = contract_of(deciding())
    assert contract_of(made.declared) == made


# Rankings.


@pytest.mark.parametrize("choice", [UCB(), EpsilonGreedy(0.4), Thompson(0.3)], ids=["ucb", "greedy", "thompson"])
@pytest.mark.parametrize("own", [True, False], ids=["own models", "one model"])
def test_probabilities_are_those_of_the_choice(choice, own):
    """By 2,000 choices, of which 5.5 standard deviations are .062: passed with probability below 1e-7 for each action.

    The quadrature is within 1/128, and a propensity by 100 samples has a standard deviation of .05: their mean is used.
    """
    rng, chance = np.random.default_rng(1), generator(2)
    V = np.stack([np.eye(3) * size for size in (1.0, 2.0, 4.0, 8.0)])
    model = LinearModel(rng.normal(size=(4 if own else 1, 3)) * 0.2, V if own else V[:1])
    X = rng.normal(size=(1 if own else 4, 3)) / 2.0
    counts, shares = np.zeros(4), [[], [], [], []]
    for _ in range(2_000):
        order, probabilities = ranked(choice, model, X, chance)
        counts[order[0]] += 1
        for each, share in zip(order, probabilities, strict=True):
            if share is not None:
                shares[each].append(share)
    assert counts.sum() == 2_000
    for count, known in zip(counts, shares, strict=True):
        assert not known or abs(count / 2_000 - np.mean(known)) < 0.062 + 1.0 / 101.0


def test_the_best_of_normal_variables():
    """By 20,000 draws: 5 standard deviations are .018, and 1/128 is the error of the quadrature."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        means, spread = rng.normal(size=6) * 0.3, np.exp(rng.normal(size=6))
        wins = np.bincount((means + spread * rng.normal(size=(20_000, 6))).argmax(axis=1), minlength=6) / 20_000
        made = [best_probability(means, spread, which) for which in range(6)]
        assert np.abs(wins - made).max() < 0.018 + 1.0 / 128.0


class Unlikely:
    """A source of random numbers that favours the second action by 60 standard deviations."""

    def standard_normal(self, count):
        return np.array([-30.0, 30.0])[:count]


@pytest.mark.parametrize("rank_by", [ranked, ranked_by_definition])
def test_an_action_that_was_chosen_has_a_positive_probability(rank_by):
    """However unlikely the choice was: `LoggedDecisions` takes it, and no weight is larger than 128."""
    model = LinearModel(np.array([[1.0], [0.0]]), np.full((2, 1, 1), 400.0))
    order, probabilities = rank_by(Thompson(1.0), model, np.ones((1, 1)), Unlikely())
    assert order == [1, 0]
    assert probabilities == [1.0 / 128.0, None]
    LoggedDecisions(order[:1] * 2, [0.0, 1.0], probabilities[:1] * 2, arms=2)


@pytest.mark.parametrize("choice", [UCB(), UCB("theorem"), Thompson(0.3), Thompson(0.0), EpsilonGreedy(0.4)])
@pytest.mark.parametrize("arms", [2, 3, 70])
def test_compiled_rankings_are_those_of_the_definition(choice, arms):
    """By the same random numbers. Widths are in single precision, and a distribution function is interpolated.

    No two scores of these models are nearer to each other than a millionth, so that the order is the same.
    """
    rng = np.random.default_rng(arms)
    for seed in range(50):
        d = int(rng.integers(1, 9))
        roots = rng.normal(size=(arms, d, d))
        model = LinearModel(rng.normal(size=(arms, d)), roots @ roots.swapaxes(1, 2) + np.eye(d), noise_sd=0.1, k=3)
        X = rng.normal(size=(1, d)) / d
        order, probabilities = ranked(choice, model, X, generator(seed))
        known_order, known_probabilities = ranked_by_definition(choice, model, X, generator(seed))
        assert order == known_order
        assert [each is None for each in probabilities] == [each is None for each in known_probabilities]
        known = [(a, b) for a, b in zip(probabilities, known_probabilities, strict=True) if a is not None]
        assert all(abs(a - b) < 1e-5 for a, b in known)


def test_of_equal_models_the_first_is_chosen():
    model = LinearModel(np.ones((4, 2)), np.stack([np.eye(2)] * 4))
    assert ranked(UCB(), model, np.ones((1, 2)), generator(1)).order == [0, 1, 2, 3]
    assert ranked(Thompson(0.0), model, np.ones((1, 2)), generator(1)).order == [0, 1, 2, 3]


@pytest.mark.privacy
@pytest.mark.parametrize("user", [b'"\\ud800"', b"9" * 5_000, b"[" * 9_000 + b"]" * 9_000, b"null", b"NaN"])
def test_whatever_an_id_is_the_decision_has_its_round_and_others_theirs(event_site, user):
    here = event_site(deciding(privacy={"user": "who", "rows_per_user": 3}))
    headers = {"content-type": "application/json"}
    for who in (b'"anna"', user, b'"carl"'):
        content = b'{"contextFeatures": {"age": 3, "who": %s}}' % who
        answer = here.client.post(f"/v1/streams/{NAME}/rank", content=content, headers=headers)
        assert answer.status_code == 200, answer.text
    assert here.wait() == 3


def test_ids_of_actions_that_cannot_be_told_are_rejected(event_site):
    here = event_site(deciding(actions="features"))
    content = b'{"contextFeatures": {"age": 3}, "actions": [{"id": "\\ud800"}, {"id": "b"}]}'
    headers = {"content-type": "application/json"}
    answer = here.client.post(f"/v1/streams/{NAME}/rank", content=content, headers=headers)
    assert answer.status_code == 422
    assert "surrogate" in answer.json()["error"]
    assert here.wait() == 0


def test_contexts_that_are_stored_as_numbers_are_learnt_as_bytes_are(event_site):
    here = event_site(deciding())
    ranker = here.service.host(NAME).ranker
    x = np.arange(ranker.contract.dimension) / 16.0
    events = [Event(1, b"", b"1.0"), Event(2, b"", None), Event(3, None, None), Event(4, b"", b'"bad"')]
    rows = [{"x": x.tobytes(), "a": 2}, {"x": x.tobytes(), "d": True}, None, {"x": None, "a": 1}]
    written = [None if row is None else {**row, "x": None if row["x"] is None else x.tolist()} for row in rows]
    [(X, y, _, bad)] = ranker.batch(list(zip(rows, events, strict=True))).arrays
    [(again, y_again, _, _)] = ranker.batch(list(zip(written, events, strict=True))).arrays
    assert bad.tolist() == [False, True, True, True]
    assert X.tobytes() == again.tobytes()
    assert y.tobytes() == y_again.tobytes()
    assert X[0].tolist() == x.tolist()


def test_decisions_of_any_form_are_the_same_decisions(event_site):
    """A request with a value for each column is read by types; lists of objects and others are not."""
    here = event_site(deciding(policy="ucb", release=1), seed=7)
    rank(here.client, event="first")
    here.wait()
    context = {"age": 30, "income": 5, "town": "Rome"}
    forms = [context, [context], [{"age": 30}, {"income": 5, "town": "Rome"}], context | {"more": 1}]
    ranker = here.service.host(NAME).ranker
    read = [ranker.read(json.dumps({"contextFeatures": form, "excludedActions": []}).encode()) for form in forms]
    assert [each is not None for each in read] == [True, False, False, False]
    assert ranker.read(b'{"contextFeatures": {"age": 30}}') is None
    assert ranker.read(json.dumps({"contextFeatures": context, "eventId": "../a"}).encode()) is None
    made = [rank(here.client, form).json() for form in forms]
    assert len({json.dumps(each["ranking"]) for each in made}) == 1
    assert made[0]["release"] == 1


def test_a_repeated_decision_is_told_as_it_was_made(event_site):
    here = event_site(deciding(policy="epsilon-greedy", explore=0.9))
    for number in range(10):
        more = {"excludedActions": [ACTIONS[0]]} if number % 2 else {}
        answer = rank(here.client, event=f"e{number}", **more)
        assert rank(here.client, event=f"e{number}", **more).content == answer.content
        assert all(each["probability"] is not None for each in answer.json()["ranking"])


def test_a_label_is_no_reward(event_site):
    """Texts would be accepted as any label, and make decisions without influence."""
    here = event_site(deciding())
    rank(here.client, event="a")
    answer = here.client.label("a", 1.0)
    assert (answer.status_code, "/reward" in answer.json()["error"]) == (422, True)
    assert here.client.reward("a", 1.0).status_code == 200
    alone = rank(here.client, excludedActions=ACTIONS[1:])
    assert (alone.status_code, "show it without asking" in alone.json()["error"]) == (422, True)


@pytest.mark.parametrize("end", ["open", "at its horizon", "closed"])
def test_a_decision_without_learning_stores_nothing_and_is_answered_after_the_end(event_site, end):
    """It is post-processing of what is visible, and of the asker's own context."""
    here = event_site(deciding(policy="ucb", release=2, horizon=4), seed=7)
    for event in "abcd" if end == "at its horizon" else "ab":
        assert rank(here.client, event=event).status_code == 200
    here.wait()
    if end == "closed":
        here.service.close_stream(NAME)
        here.wait(1)
    before, opened = here.round, here.service.store.events(here.service.host(NAME).lineage, NAME)
    contexts = [visitor(1), visitor(1) | {"more": 1}]  # read by types, and not
    for context in contexts:
        answer = rank(here.client, context, learn=False)
        assert answer.status_code == 200, answer.text
        made = answer.json()
        assert [made[name] for name in ("eventId", "round", "due")] == [None, None, None]
        assert sorted(each["id"] for each in made["ranking"]) == sorted(ACTIONS)
        assert made["release"] == here.service.host(NAME).view.k > 0
    here.wait()
    assert here.round == before
    assert not opened.waits(opened.time())
    assert rank(here.client, contexts[0], event="x", learn=False).status_code == 422
    learning = rank(here.client, event="later")
    assert learning.status_code == (200 if end == "open" else 409)
    if end != "open":
        assert '"learn": false' in learning.json()["error"]
    secret = here.client.http.headers["authorization"].partition(" ")[2]
    with Client(next(here.client.addresses), secret) as client:
        decision = client.rank(NAME, contexts[0], learn=False)
        assert decision.action == made["rewardActionId"]
        assert decision.event is None
        with pytest.raises(InvalidInput, match="takes no reward"):
            client.reward(NAME, decision, 1.0)
        with pytest.raises(InvalidInput, match="has no event"):
            client.rank(NAME, contexts[0], event="x", learn=False)


def test_a_server_that_shows_only_chooses_without_learning(event_site, tmp_path):
    here = event_site(deciding(policy="ucb"))
    reader = Service(Store(tmp_path / "streams.db"), read_only=True)
    with running(reader) as address:
        other = Events(address, here.service.tokens.create(["learn", "predict"])[1])
        reader.tokens.refresh()
        assert rank(other, learn=False).status_code == 200
        assert rank(other).status_code == 409


def test_some_of_the_models_are_those_models():
    rng = np.random.default_rng(1)
    V = np.stack([np.eye(3) * size for size in (1.0, 2.0, 4.0, 8.0)])
    model = LinearModel(rng.normal(size=(4, 3)), V)
    X, some = rng.normal(size=(1, 1, 3)), np.array([0, 2, 3])
    made = among(model, some)
    assert made.means(X).tolist() == model.means(X)[:, some].tolist()
    assert made.widths(X).tolist() == model.widths(X)[:, some].tolist()
    assert UCB().choose(made, X).actions == UCB().choose_by_definition(made, X).actions


def test_a_client_of_events_is_one_of_decisions(event_site):
    assert isinstance(event_site(deciding()).client, Events)
