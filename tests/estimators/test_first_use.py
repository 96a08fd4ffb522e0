"""An estimator that is used for the first time by several threads, or again by a signal handler, opens one stream."""

import contextlib
import pickle
import threading

import numpy as np
import pytest

from interrupting import At, every_step, within
from taciturn import Ledger, StateConflict
from taciturn.estimators import river, river_base, sklearn, sklearn_base, stream
from taciturn.estimators.settings import Settings

RNG = np.random.default_rng(3)
X = RNG.uniform(-0.5, 0.5, size=(3, 2))
LABELS = np.array([True, False, True])
STATED = {"epsilon": 1.0, "feature_bound": 1.0, "classes": [False, True], "horizon": 1_000, "release": 2}


class Sklearn:
    """Three rows a call."""

    rows, files = 3, (sklearn_base.__file__, stream.__file__)

    def __init__(self, **settings):
        self.model = sklearn.PrivateLogisticRegression(**{**STATED, **settings})

    def learn(self):
        self.model.partial_fit(X, LABELS)

    @property
    def examples(self):
        return self.model.n_examples_ if hasattr(self.model, "n_examples_") else 0


class River:
    """One row a call."""

    rows, files = 1, (river_base.__file__,)

    def __init__(self, **settings):
        self.model = river.PrivateLogisticRegression(features=["a", "b"], **{**STATED, **settings})

    def learn(self):
        self.model.learn_one({"a": 0.25, "b": -0.25}, True)

    @property
    def examples(self):
        self.model.n_releases  # noqa: B018  # flushes
        return self.model.n_examples


FRONTS = [Sklearn, River]


@pytest.fixture
def opened(monkeypatch):
    """The streams for which a cost was reserved."""
    lineages, honest = set(), Ledger.open

    def listening(ledger, lineage, *more, **options):
        lineages.add(lineage)
        return honest(ledger, lineage, *more, **options)

    monkeypatch.setattr(Ledger, "open", listening)
    return lineages


def together(threads, work):
    """`work(i)` in so many threads; the errors that came."""
    errors = []

    def run(i):
        try:
            work(i)
        except Exception as error:
            errors.append(error)

    started = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    return errors


@pytest.mark.privacy
@pytest.mark.parametrize("settings", [{}, {"seed": 1}])
@pytest.mark.parametrize("kind", FRONTS)
def test_threads_that_come_first_together_share_one_stream(kind, settings, opened, monkeypatch):
    """All of them are planning when the first one goes on; every row is counted, in one stream."""
    threads, plan = 6, Settings.plan
    met = threading.Barrier(threads)

    def late(*args, **named):
        made = plan(*args)
        met.wait(60)
        return made

    monkeypatch.setattr(Settings, "plan", late)
    front = kind(**settings)
    assert together(threads, lambda _: front.learn()) == []
    assert front.examples == threads * kind.rows
    front.learn()
    assert front.examples == (threads + 1) * kind.rows
    assert len(opened) == (0 if settings else 1)


@pytest.mark.privacy
@pytest.mark.parametrize(("kind", "file"), [(kind, file) for kind in FRONTS for file in kind.files])
def test_wherever_a_first_call_is_entered_again_there_is_one_stream(kind, file, opened):
    """At every bytecode of its first call a signal handler lets it learn: what was not rejected is in one stream."""

    def attempt(step):
        front, calls = kind(), []
        opened.clear()

        def learn():
            with contextlib.suppress(StateConflict):
                front.learn()
                calls.append(1)

        with At(step, file, learn) as entered:
            learn()
        assert front.examples == len(calls) * kind.rows
        assert len(calls) >= 1
        front.learn()
        assert front.examples == (len(calls) + 1) * kind.rows
        assert len(opened) == 1
        return entered.reached

    kind().learn()
    every_step(attempt, least=50)


@pytest.mark.parametrize("kind", FRONTS)
def test_an_interrupted_first_call_blocks_nothing(kind):
    """At any bytecode; the next call, in another thread, learns."""

    def interrupt():
        raise KeyboardInterrupt

    def attempt(step):
        front = kind()
        with contextlib.suppress(KeyboardInterrupt), At(step, kind.files[0], interrupt) as entered:
            front.learn()
        before = front.examples
        within(60, front.learn)
        assert before in (0, kind.rows)
        assert front.examples == before + kind.rows
        return entered.reached

    every_step(attempt, least=50)


def test_a_call_that_comes_second_is_checked_against_the_stream_of_the_first():
    """Other features are rejected, and nothing of them is learnt."""
    front = Sklearn()
    plan, entered = Settings.plan, []

    def late(*args, **named):
        if not entered:
            entered.append(1)
            front.learn()
        return plan(*args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "plan", late)
        with pytest.raises(ValueError, match="X has 1 features"):
            front.model.partial_fit(X[:, :1], LABELS)
    assert front.examples == 3
    assert front.model.n_features_in_ == 2


@pytest.mark.parametrize("kind", FRONTS)
def test_a_first_call_that_is_rejected_reserves_nothing(kind, opened):
    """And a later one, with other features or settings, is the first."""
    front = kind()
    with pytest.raises(ValueError, match=r"NaN|finite"):
        front.model.partial_fit(X * np.nan, LABELS) if kind is Sklearn else front.model.learn_one({"a": np.nan}, True)
    assert not opened
    if kind is Sklearn:
        with pytest.raises(ValueError, match="not declared"):
            front.model.partial_fit(X, [True, False, 5])
        front.model.set_params(release=1).partial_fit(X[:, :1], LABELS)
        assert front.model.n_features_in_ == 1
    else:
        front.learn()
    assert front.examples == kind.rows
    assert len(opened) <= 1  # a feed reserves when it is flushed


@pytest.mark.parametrize("kind", FRONTS)
def test_a_copy_of_an_unused_estimator_can_be_used(kind):
    front = kind()
    front.model = pickle.loads(pickle.dumps(front.model))
    front.learn()
    front.learn()
    assert front.examples == 2 * kind.rows


def test_a_stream_is_not_loaded_over_one_that_was_opened_meanwhile(tmp_path, monkeypatch):
    """A thread, or a signal handler, learns while a model without a stream loads one."""
    other, front = River(), River()
    other.learn()
    other.model.dump_stream(tmp_path / "stream.npz")
    load = stream.Stream.load

    def slowly(*args):
        made = load(*args)
        front.learn()
        return made

    monkeypatch.setattr(stream.Stream, "load", slowly)
    with pytest.raises(StateConflict, match="a stream of its own"):
        front.model.load_stream(tmp_path / "stream.npz")
    assert front.examples == 1
