"""A call that is interrupted anywhere has learnt its rows or none of them, and the next call goes on."""

import contextlib
import inspect
import itertools
import math
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import taciturn
from taciturn import StateConflict
from taciturn.estimators import river, sklearn

SIGNALS = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals here")
RNG = np.random.default_rng(11)
X = RNG.uniform(-0.5, 0.5, size=(4, 2))
LABELS = X[:, 0] > 0.0
STATED = {"epsilon": 1.0, "feature_bound": 1.0, "classes": [False, True]}


class Sklearn:
    """Three rows a call, and what they have led to."""

    rows, release = 3, 2

    def __init__(self, **settings):
        self.model = sklearn.PrivateLogisticRegression(**STATED, release=self.release, **settings)

    def learn(self):
        self.model.partial_fit(X[: self.rows], LABELS[: self.rows])

    def account(self):
        if not hasattr(self.model, "n_examples_"):
            return 0, 0, 0.0
        return self.model.n_examples_, self.model.n_releases_, self.model.privacy_spent_.epsilon

    @property
    def private(self):
        return self.model.plan_.private

    def rounds(self):
        """Those of the latest call."""
        return self.model.releases_.rounds.tolist()


class River:
    """One row a call, and a look at the model, so that what is due is released."""

    rows, release = 1, 1

    def __init__(self, **settings):
        stated = {**STATED, **settings, "release": self.release}
        self.model = river.PrivateLogisticRegression(features=["a", "b"], **stated)

    def learn(self):
        self.model.learn_one({"a": 0.25, "b": -0.25}, True)
        self.model.predict_one({"a": 0.25})

    def account(self):
        return self.model.n_examples, self.model.n_releases, self.model.privacy_spent.epsilon

    @property
    def private(self):
        return self.model.plan.private


class RiverTables(River):
    """Three rows a call, as a data frame."""

    rows, release = 3, 2

    def learn(self):
        pandas = pytest.importorskip("pandas")
        self.model.learn_many(pandas.DataFrame(X[:3], columns=["a", "b"]), pandas.Series(LABELS[:3]))


FRONTS = [Sklearn, River, RiverTables]


def consistent(front, before):
    """Rows were learnt once or not at all; as many releases as the schedule makes of them, for what they cost."""
    n, k, epsilon = front.account()
    assert n in (before, before + front.rows)
    assert k == n // front.release
    cost = front.private.calibrated.cost(k)
    assert epsilon == (cost.epsilon(1e-6) if k else 0.0)
    return n


class Timer:
    """Ctrl-C after so many seconds, by a real signal."""

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        return self

    def __call__(self, seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self.before)


def by_ctrl_c(error):
    return isinstance(error, KeyboardInterrupt) or (error is not None and by_ctrl_c(error.__cause__))


def interrupted_calls(kind, wanted):
    """So many calls that a signal has interrupted: how many of them had learnt, and how many left a dead stream."""
    front, rng = kind(), np.random.default_rng(5)
    front.learn()
    lengths = []
    for _ in range(20):
        began = time.perf_counter()
        front.learn()
        lengths.append(time.perf_counter() - began)
    longest, n, interrupted, learnt, dead = 1.2 * float(np.median(lengths)), front.account()[0], 0, 0, 0
    with Timer() as timer:
        while interrupted < wanted:
            try:
                timer(rng.uniform(1e-6, longest))
                front.learn()
                timer(0.0)
                fine = True
            except (KeyboardInterrupt, SystemError) as stopped:  # Numba's dispatcher makes the second of the first
                if not by_ctrl_c(stopped):
                    raise
                interrupted, fine = interrupted + 1, False
            timer(0.0)
            before, n = n, consistent(front, n)
            assert n == before + front.rows or not fine
            if not fine:
                learnt += n > before
                try:
                    front.learn()
                except StateConflict:
                    dead, front = dead + 1, kind()
                    front.learn()
                    n = 0
                n = consistent(front, n)
    return learnt, dead


@SIGNALS
@pytest.mark.parametrize("kind", FRONTS)
def test_a_signal_kills_no_stream(kind):
    assert interrupted_calls(kind, 100)[1] == 0


@SIGNALS
@pytest.mark.slow
@pytest.mark.parametrize("kind", FRONTS)
def test_two_thousand_signals_kill_no_stream(kind):
    learnt, dead = interrupted_calls(kind, 2_000)
    assert dead == 0
    assert 0 < learnt < 2_000  # they came before the commit, and after it


HERE = Path(taciturn.__file__).parent
TRACED = {
    str(HERE / "core/private.py"),
    str(HERE / "kernel/stream/stream.py"),
    *(str(path) for room in ("estimators", "streams") for path in (HERE / room).glob("*.py")),
}


@contextlib.contextmanager
def interrupted_at(line, handler=lambda: None):
    """Ctrl-C before the given line, counted over all lines of fronts and core that run; its handler acts, and raises.

    Yields the lines that ran.
    """
    ran = []

    def trace(frame, event, _):
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            ran.append(frame.f_lineno)
            if len(ran) > line:
                handler()
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield ran
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("kind", FRONTS)
def test_an_interruption_at_any_line_kills_no_stream(kind, looks):
    """At the first line of a call, then at the second of another, and so on; the handler may look at the model."""
    front, learnt = kind(), 0
    front.learn()
    n = front.account()[0]
    for lines in itertools.count():
        try:
            with interrupted_at(lines, front.account if looks else lambda: None):
                front.learn()
            break
        except KeyboardInterrupt:
            before, n = n, consistent(front, n)
            learnt += n > before
            front.learn()
            n = consistent(front, n)
    assert lines > 50
    assert 0 < learnt < lines


@pytest.mark.parametrize("kind", [Sklearn, River])
def test_an_interrupted_first_call_opens_one_stream_or_none(kind):
    kind().learn()  # so that all are alike, with what is found once in a process
    front = kind()
    with interrupted_at(math.inf) as ran:
        front.learn()
    learnt = 0
    for line in (*range(0, len(ran), 60), *range(len(ran) - 20, len(ran))):
        front = kind()
        with pytest.raises(KeyboardInterrupt), interrupted_at(line):
            front.learn()
        n = consistent(front, 0) if front.account()[0] else 0
        learnt += n > 0
        front.learn()
        consistent(front, n)
    assert learnt > 0


def test_an_interrupted_fit_leaves_the_estimator_with_the_old_stream_or_the_new_one():
    """Features and classes too: there is no moment at which they belong to different streams."""
    wide, seen = np.hstack([X, X]), set()
    for line in itertools.count(0, 5):
        model = sklearn.PrivateLogisticRegression(**STATED, release=2).partial_fit(X, LABELS)
        try:
            with interrupted_at(line), pytest.warns(taciturn.estimators.stream.PrivacyWarning):
                model.set_params(classes=[0, 1]).fit(wide, LABELS.astype(int))
            break
        except KeyboardInterrupt:
            new = model.n_features_in_ == 4
            seen.add(new)
            assert model.coef_.shape[1] == model.n_features_in_
            assert model.classes_.dtype == (int if new else bool)
            model.predict(wide if new else X)
            if not new:
                model.set_params(classes=[False, True]).partial_fit(X, LABELS)
    assert seen == {False, True}


@pytest.mark.parametrize("kind", [Sklearn, River])
def test_releases_of_an_interrupted_call_are_shown_once(kind):
    """Ctrl-C just after the commit: the next look shows what it has released, and no round is made again."""
    front = kind(horizon=100)
    while front.account()[0] < 3:
        front.learn()
    commit = taciturn.Private.commit

    def torn(private, prepared):
        commit(private, prepared)
        raise KeyboardInterrupt

    n = front.account()[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taciturn.Private, "commit", torn)
        with pytest.raises(KeyboardInterrupt):
            front.learn()
    assert consistent(front, n) == n + front.rows
    if kind is Sklearn:
        assert front.rounds() == [r for r in range(n + 1, n + 4) if r % 2 == 0]
    front.learn()
    consistent(front, n + front.rows)


def test_a_refused_commit_is_never_adopted():
    """Another front goes on with the stream: what this one had prepared stays unseen."""
    front = Sklearn()
    front.learn()
    before, stream = front.account(), front.model._fitted.stream
    private, state = front.private, stream._state
    private.run(state, X, np.sign(X[:, 0]))
    with pytest.raises(StateConflict, match="not its live state"):
        front.learn()
    assert front.account() == before


def test_threads_take_turns():
    """Ten threads share an estimator: each call counts once."""
    front, calls = Sklearn(), 5
    front.learn()
    threads = [threading.Thread(target=lambda: [front.learn() for _ in range(calls)]) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert front.account()[0] == 3 * (1 + 10 * calls)


def test_what_is_traced_is_what_runs():
    """The files that are interrupted are those of the two fronts."""
    for kind in (sklearn.PrivateLogisticRegression, river.PrivateLogisticRegression, taciturn.Private):
        assert inspect.getsourcefile(kind) in TRACED
