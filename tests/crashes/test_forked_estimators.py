"""A forked process predicts by the last released model, and does not learn."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

COMMON = """
    import os, sys, threading, traceback, warnings
    warnings.simplefilter("ignore")
    import numpy as np
    from taciturn import StateConflict

    def in_a_child(act):
        child = os.fork()
        if child == 0:
            try:
                act()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def rejected(act):
        try:
            act()
        except StateConflict as why:
            assert "this is a forked process" in str(why), why
        else:
            raise AssertionError("a child has learnt")
"""

RIVER = """
    import pickle, tempfile
    import pandas as pd
    from taciturn.estimators.river import PrivateLogisticRegression
    model = PrivateLogisticRegression(features=["a"], epsilon=1.0, feature_bound=1.0, release=100)
    for i in range(100):
        model.learn_one({"a": i % 2}, i % 2 == 1)
    released = model.weights
    for i in range(100):
        model.learn_one({"a": i % 2}, i % 2 == 1)  # a release is due, and nobody has looked

    def child():
        model.predict_one({"a": 1}), model.predict_proba_one({"a": 1}), model.predict_many(pd.DataFrame({"a": [1.0]}))
        assert (model.weights, model.n_releases, model.n_examples) == (released, 1, 200)
        assert pickle.loads(pickle.dumps(model)).weights == released
        for _ in range(3):
            rejected(lambda: model.learn_one({"a": 1}, True))
            rejected(lambda: model.learn_many(pd.DataFrame({"a": [1.0]}), pd.Series([True])))
        with tempfile.TemporaryDirectory() as folder:
            rejected(lambda: model.dump_stream(folder + "/stream.npz"))
        assert model.n_examples == 200

    in_a_child(child)
    assert model.n_releases == 2 and model.weights != released
    model.learn_one({"a": 1}, True)
    assert model.n_examples == 201
"""

SKLEARN = """
    from taciturn.estimators.sklearn import PrivateLogisticRegression
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 2))
    y = X[:, 0] > 0
    model = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=[False, True]).partial_fit(X, y)

    def child():
        assert model.predict(X).shape == (300,) and model.n_examples_ == 300
        rejected(lambda: model.partial_fit(X, y))

    in_a_child(child)
    assert model.partial_fit(X, y).n_examples_ == 600
"""

BUSY = """
    from taciturn.estimators.river import PrivateLogisticRegression
    model = PrivateLogisticRegression(features=["a"], epsilon=1.0, feature_bound=1.0, release=1)
    model.learn_one({"a": 1}, True)
    model.n_releases
    stream, inside, go = model._feed.stream, threading.Event(), threading.Event()
    prepare = type(stream.plan.private).prepare

    def slowly(private, *rows):
        inside.set()
        go.wait()
        return prepare(private, *rows)

    type(stream.plan.private).prepare = slowly
    model.learn_one({"a": 1}, True)
    thread = threading.Thread(target=lambda: model.n_releases)
    thread.start()
    inside.wait()

    def child():
        assert model.n_releases == 1
        model.predict_one({"a": 1})
        rejected(lambda: model.learn_one({"a": 1}, True))

    in_a_child(child)  # while a thread of the parent is learning
    go.set()
    thread.join()
    assert model.n_releases == 2
"""

SIMULATION = """
    from taciturn.estimators.river import PrivateLogisticRegression
    model = PrivateLogisticRegression(features=["a"], epsilon=1.0, feature_bound=1.0, release=2, seed=1)
    model.learn_one({"a": 1}, True)

    def child():
        model.learn_one({"a": 1}, True)
        assert model.n_releases == 1

    in_a_child(child)
    assert model.n_examples == 1
"""


@pytest.mark.parametrize("script", [RIVER, SKLEARN, BUSY, SIMULATION], ids=["river", "sklearn", "busy", "simulation"])
def test_a_forked_process(script):
    code = textwrap.dedent(COMMON) + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
