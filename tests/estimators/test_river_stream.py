"""A feed releases what the stream would have released from all rows at once, and keeps what it holds to itself."""

import contextlib
import copy
import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from interrupting import At, every_step
from taciturn import BudgetExhausted, InvalidInput, StateConflict
from taciturn.averages import late_average
from taciturn.columns.labels import Classes, Numbers
from taciturn.estimators import river_stream as feeds
from taciturn.estimators.dict_rows import HashedFeatures, NamedFeatures
from taciturn.estimators.river_stream import Feed
from taciturn.estimators.settings import Settings
from taciturn.estimators.stream import Stream

ROWS, NAMES = 2_500, ["a", "b", "c"]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(ROWS, 3))
EXAMPLES = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
LABELS = (X @ [1.0, -1.0, 0.5] > 0.0).tolist()
STATED = {"epsilon": 1.0, "feature_bound": 1.0, "seed": 7}

REQUESTS = {
    "logistic": (Settings("logistic", classes=2, **STATED), None),
    "horizon": (Settings("logistic", classes=2, **STATED), ROWS),
    "three classes": (Settings("logistic", classes=3, **STATED), None),
    "every": (Settings("hinge", classes=2, release="every", **STATED), None),
    "geometric": (Settings("logistic", classes=2, method="pqftl", **STATED), None),
    "iterates": (Settings("logistic", classes=2, method="giga", **STATED), ROWS),
    "numbers": (Settings("squared", label_bound=1.0, **STATED), None),
}
FEATURES = {"named": NamedFeatures(NAMES), "hashed": HashedFeatures(3)}


def feed_of(name, features="named", kind=Feed):
    request, horizon = REQUESTS[name]
    labels = {0: Numbers(), 2: Classes([False, True]), 3: Classes([False, True, "never"])}[request.classes]
    return kind(Stream(request.plan(3, horizon)), FEATURES[features], labels)


def recorded(feed):
    """The feed, and a list that will hold the rounds and points of its releases."""
    shown, learn = [], feed.stream.learn

    def listening(X, y, users=None):
        releases = learn(X, y, users)
        shown.extend((release.t, *release.point) for release in releases)
        return releases

    feed.stream.learn = listening
    return feed, shown


def reference(feed):
    """All rows at once, without a feed."""
    private, label = feed.stream.plan.private, feed.labels
    block = feed.features.block([feed.features.row(x) for x in EXAMPLES])
    _, releases = private.run(private.start(), block, [label(y) for y in LABELS])
    model = late_average(releases) if feed.stream.plan.averages else releases.points[-1]
    return [(release.t, *release.point) for release in releases], model


def learn_in_cuts(feed, looks):
    """Rows one at a time, a look after some of them."""
    for i, (x, y) in enumerate(zip(EXAMPLES, LABELS, strict=True)):
        feed.learn_one(x, y)
        if looks(i):
            feed.scores(x)
    feed.current()


LOOKS = {"never": lambda i: False, "always": lambda i: True, "at times": lambda i: i % 7 == 0}


@pytest.mark.parametrize("looks", LOOKS)
@pytest.mark.parametrize(
    ("name", "features"), [pair for pair in product(REQUESTS, FEATURES) if pair != ("iterates", "hashed")]
)
def test_a_feed_releases_what_one_call_does(name, features, looks):
    feed, shown = recorded(feed_of(name, features))
    expected, model = reference(feed)
    learn_in_cuts(feed, LOOKS[looks])
    assert shown == expected
    np.testing.assert_allclose(feed.stream.model, model, rtol=1e-12)
    assert feed.examples == ROWS


class LosesTheLastRow(Feed):
    """A planted fault: what is held is handed over but for its end."""

    def _flush(self):
        if len(self._pending.rows) > 1:
            self._pending.rows.pop()
        super()._flush()


class HandsOverTwice(Feed):
    """A planted fault: what was learnt is still held."""

    def _learn_block(self, block, labels, users):
        super()._learn_block(block, labels, users)
        super()._learn_block(block[-1:], labels[-1:], users[-1:])


@pytest.mark.parametrize("kind", [LosesTheLastRow, HandsOverTwice])
def test_a_feed_that_loses_or_repeats_a_row_is_caught(kind):
    feed, shown = recorded(feed_of("geometric", kind=kind))
    expected, _ = reference(feed)
    learn_in_cuts(feed, LOOKS["at times"])
    assert shown != expected


class Interrupted(Feed):
    """Every other time, the stream has learnt, and nobody hears of it."""

    interruptions = 0

    def _learn_block(self, block, labels, users):
        self.interruptions += 1
        if self.interruptions % 2 == 0:
            return super()._learn_block(block, labels, users)
        self.stream.learn(block, labels)
        raise KeyboardInterrupt


def test_an_interruption_makes_no_row_count_twice():
    feed, shown = recorded(feed_of("logistic", kind=Interrupted))
    expected, _ = reference(feed)
    for x, y in zip(EXAMPLES, LABELS, strict=True):
        with contextlib.suppress(KeyboardInterrupt):
            feed.learn_one(x, y)
    with contextlib.suppress(KeyboardInterrupt):
        feed.current()
    assert feed.interruptions > 2
    assert shown == expected


class Torn(Stream):
    """Interrupted when it remembers so many things of what it has learnt."""

    left = math.inf

    def __setattr__(self, name, value):
        if name != "left":
            if self.left == 0:
                self.left = math.inf
                raise KeyboardInterrupt
            self.left -= 1
        super().__setattr__(name, value)


@pytest.mark.privacy
@pytest.mark.parametrize("done", range(4))
def test_an_interruption_while_it_remembers_makes_no_row_count_twice_and_costs_nothing(done):
    request = Settings("logistic", classes=2, epsilon=1.0, feature_bound=1.0, release="every")
    feed = Feed(Torn(request.plan(3, None)), FEATURES["named"], Classes([False, True]))
    for x, y in zip(EXAMPLES[:5], LABELS[:5], strict=True):
        feed.learn_one(x, y)
    feed.stream.left = done
    with contextlib.suppress(KeyboardInterrupt):
        feed.current()
    assert (feed.stream.left == math.inf) == (done < 3)  # it remembers three things, each in one step
    feed.stream.left = math.inf
    feed.learn_one(EXAMPLES[5], LABELS[5])
    assert (feed.current().t, feed.stream.k, feed.examples) == (6, 6, 6)


@pytest.mark.privacy
def test_threads_take_turns_and_no_row_counts_twice(monkeypatch):
    """Caught without the turns: a block that is ready in two threads is learnt by both, or rows are lost."""
    monkeypatch.setattr(feeds, "_ROWS", 20)
    feed, learnt = feed_of("numbers"), []
    learn, block, threads = feed.stream.learn, feed.features.block, 3

    def slowly(rows):
        time.sleep(1e-3)
        return block(rows)

    def listening(X, y, users=None):
        learnt.extend(y)
        return learn(X, y, users)

    monkeypatch.setattr(feed.features, "block", slowly)
    feed.stream.learn = listening

    def teach(thread):
        for i in range(200):
            feed.learn_one(EXAMPLES[i], (thread + i * threads) / 1000.0)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(teach, range(threads)))
    feed.flush()
    assert sorted(learnt) == [i / 1000.0 for i in range(200 * threads)]


@pytest.mark.privacy
@pytest.mark.parametrize("verb", ["learn_one", "learn_many", "look", "flush", "dump", "copy"])
def test_wherever_a_feed_is_entered_again_no_row_counts_twice_or_is_lost(verb, tmp_path):
    """At every bytecode of the feed a signal handler may ask: it is rejected, or done as if before or after."""
    pandas = pytest.importorskip("pandas")
    request = Settings("squared", label_bound=1.0, **STATED)
    plan, table = request.plan(3, None), pandas.DataFrame(X[3:5], columns=NAMES)

    def attempt(step):
        feed = Feed(Stream(plan), FEATURES["named"], Numbers())
        learn, learnt = feed.stream.learn, []

        def listening(X, y, users=None):
            releases = learn(X, y, users)
            learnt.extend(y)
            return releases

        feed.stream.learn, feed._most, feed._room = listening, 3, 3
        feed.learn_one(EXAMPLES[0], 0.0)
        feed.learn_one(EXAMPLES[1], 0.1)
        expected = [0.0, 0.1, 0.2]
        ask, labels = {
            "learn_one": (lambda: feed.learn_one(EXAMPLES[3], 0.3), [0.3]),
            "learn_many": (lambda: feed.learn_many(table, [0.3, 0.4]), [0.3, 0.4]),
            "look": (feed.current, []),
            "flush": (feed.flush, []),
            "dump": (lambda: feed.dump(tmp_path / "state.npz"), []),
            "copy": (lambda: copy.copy(feed), []),
        }[verb]

        def handler():
            with contextlib.suppress(StateConflict):
                ask()
                expected.extend(labels)

        with At(step, feeds.__file__, handler) as entered:
            feed.learn_one(EXAMPLES[2], 0.2)
        feed.flush()
        assert sorted(learnt) == expected
        assert feed.examples == feed.stream.t == len(expected)
        assert copy.copy(feed).current().t == len(expected)
        return entered.reached

    every_step(attempt, least=50)


def test_a_prediction_in_the_middle_of_learning_uses_the_last_model(monkeypatch):
    """And learning from there is rejected, with what to do."""
    feed, block, seen = feed_of("numbers"), FEATURES["named"].block, []

    def asking(rows):
        seen.append(feed.scores(EXAMPLES[0]))
        with pytest.raises(StateConflict, match="in the middle of"):
            feed.learn_one(EXAMPLES[1], 0.1)
        return block(rows)

    before = feed.scores(EXAMPLES[0])
    feed.learn_one(EXAMPLES[0], 0.1)
    monkeypatch.setattr(feed.features, "block", asking)
    feed.flush()
    assert seen == [before]
    monkeypatch.undo()
    feed.learn_one(EXAMPLES[1], 0.1)
    feed.flush()
    assert feed.stream.t == 2


def test_a_failed_block_is_held_and_learnt_later(monkeypatch):
    feed, shown = recorded(feed_of("logistic"))
    expected, _ = reference(feed)
    learn, broken = feed.stream.learn, [True]

    def failing(X, y, users=None):
        if broken.pop() if broken else False:
            raise MemoryError
        return learn(X, y, users)

    feed.stream.learn = failing
    for x, y in zip(EXAMPLES, LABELS, strict=True):
        try:
            feed.learn_one(x, y)
        except MemoryError:
            assert feed.stream.t == 0
    feed.current()
    assert shown == expected


def test_rows_are_held_until_there_are_enough_or_someone_looks():
    feed = feed_of("logistic")  # publishes after every 100
    for x, y in zip(EXAMPLES[:99], LABELS[:99], strict=True):
        feed.learn_one(x, y)
        feed.scores(x)
    assert (feed.stream.t, feed.examples) == (0, 99)
    feed.learn_one(EXAMPLES[99], LABELS[99])
    assert (feed.stream.t, feed.current().k, feed.stream.t) == (0, 1, 100)
    for x, y in zip(EXAMPLES[:1_100], LABELS[:1_100], strict=True):
        feed.learn_one(x, y)
    assert (feed.stream.t, feed.examples) == (100 + 1_024, 1_200)


def test_wide_rows_are_held_in_smaller_numbers(monkeypatch):
    monkeypatch.setattr(feeds, "_VALUES", 30)
    feed = feed_of("logistic")
    for x, y in zip(EXAMPLES[:25], LABELS[:25], strict=True):
        feed.learn_one(x, y)
    assert feed.stream.t == 20


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ({"a": math.nan, "b": 1.0, "c": 1.0}, True, "feature 'a' of this example"),
        ({"b": math.inf}, True, "feature 'b'"),
        ({"a": math.inf, "b": -math.inf}, True, "feature 'a'"),
        ({"c": "text"}, True, "feature 'c'"),
        ({"a": 1.0}, "yes", "declared are False, True"),
        ({"a": 1.0}, None, "this label cannot be used"),
        ([1.0], True, "a dict from names"),
    ],
)
def test_a_bad_example_is_refused_when_it_comes(x, y, why):
    """Not when its block is handed over; and the stream goes on as if it had not come."""
    feed, shown = recorded(feed_of("every"))
    for i in range(5):
        feed.learn_one(EXAMPLES[i], LABELS[i])
    with pytest.raises(InvalidInput, match=why) as refusal:
        feed.learn_one(x, y)
    assert "yes" not in str(refusal.value)
    assert (feed.examples, feed.stream.t) == (5, 0)
    for i in range(5, ROWS):
        feed.learn_one(EXAMPLES[i], LABELS[i])
    feed.current()
    assert shown == reference(feed)[0]


def test_large_numbers_are_fine():
    """Their sum is not finite, and they are."""
    feed = feed_of("every")
    feed.learn_one({"a": 1.5e308, "b": 1.5e308}, True)
    assert feed.current().t == 1


def test_bad_examples_pass_without_influence_if_asked():
    request = Settings("logistic", classes=2, release="every", on_bad="zero", **STATED)
    models = []
    for bad, y in (({"a": math.nan}, True), ({"a": 1.0}, "yes"), ({"a": "text"}, False), ({"b": 10**400}, True)):
        feed = Feed(Stream(request.plan(3, None)), FEATURES["named"], Classes([False, True]))
        feed.learn_one(bad, y)
        for i in range(50):
            feed.learn_one(EXAMPLES[i], LABELS[i])
        models.append(feed.current().model.tolist())
        assert (feed.examples, feed.scores(bad if y != "yes" else {"a": math.nan})) == (51, 0.0)
    assert models == models[:1] * 4


@pytest.mark.parametrize("look", [False, True])
def test_past_the_horizon_every_call_is_refused(look):
    feed = feed_of("horizon")
    for x, y in zip(EXAMPLES, LABELS, strict=True):
        feed.learn_one(x, y)
    assert feed.stream.t == ROWS  # the last round publishes, looked at or not
    spent = feed.stream.spent
    for _ in range(3):
        with pytest.raises(BudgetExhausted, match=f"round {ROWS + 1} lies past the horizon"):
            feed.learn_one(EXAMPLES[0], LABELS[0])
        if look:
            feed.scores(EXAMPLES[0])
    assert (feed.examples, feed.stream.spent) == (ROWS, spent)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda feed: pickle.loads(pickle.dumps(feed))])
def test_a_copy_predicts_and_does_not_learn(copied):
    feed, twin = feed_of("logistic"), feed_of("logistic")
    for x, y in zip(EXAMPLES[:150], LABELS[:150], strict=True):
        feed.learn_one(x, y)
        twin.learn_one(x, y)
    other = copied(feed)
    assert other.stream.k == 1  # a release that was due is there
    assert other.scores(EXAMPLES[0]) == feed.scores(EXAMPLES[0]) == twin.scores(EXAMPLES[0]) != 0.0
    for _ in range(3):
        with pytest.raises(StateConflict, match="this is a copy"):
            other.learn_one(EXAMPLES[0], LABELS[0])
    assert other.examples == 150
    for x, y in zip(EXAMPLES[150:400], LABELS[150:400], strict=True):
        feed.learn_one(x, y)
        twin.learn_one(x, y)
    assert feed.current().model.tolist() == twin.current().model.tolist()


def test_a_pickle_holds_no_example():
    """A number that stands nowhere else is not in it."""
    secret = 0.123456789012345678
    feed = feed_of("logistic")
    feed.learn_one({"a": secret}, True)
    assert np.float64(secret).tobytes() not in pickle.dumps(feed)
    assert np.float64(secret).tobytes()[::-1] not in pickle.dumps(feed)  # pickle writes floats the other way round
    assert np.float64(secret).tobytes()[::-1] in pickle.dumps(secret)


def test_a_row_is_a_copy():
    feed, twin = feed_of("every"), feed_of("every")
    x = dict(EXAMPLES[0])
    feed.learn_one(x, True)
    x["a"] = 1e9
    twin.learn_one(EXAMPLES[0], True)
    assert feed.current().model.tolist() == twin.current().model.tolist()


def test_a_dumped_feed_goes_on(tmp_path):
    feed, shown = recorded(feed_of("logistic"))
    expected, _ = reference(feed)
    for x, y in zip(EXAMPLES[:1_234], LABELS[:1_234], strict=True):
        feed.learn_one(x, y)
    feed.dump(tmp_path / "state.npz")
    assert feed.stream.t == 1_234
    loaded = Stream.load(feed.stream.plan, tmp_path / "state.npz")
    other, rest = recorded(Feed(loaded, feed.features, feed.labels))
    for x, y in zip(EXAMPLES[1_234:], LABELS[1_234:], strict=True):
        other.learn_one(x, y)
    assert other.examples == ROWS
    other.current()
    assert shown + rest == expected
