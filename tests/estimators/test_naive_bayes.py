"""Private naive Bayes for scikit-learn and river: sparse counts in, one release by `fit`, a stream by `partial_fit`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline

from taciturn import BLT, ClassSums, Hinge, InvalidInput, MultiHinge, Unprovable, WholeSpace, at, geometric
from taciturn.estimators import river
from taciturn.estimators.dict_rows import HashedFeatures
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateNaiveBayes

WORDS = {"ham": ["see", "you", "at", "noon", "for", "lunch"], "spam": ["you", "won", "a", "prize", "claim", "now"]}
STATED = {"epsilon": 1.0, "feature_bound": 1.0, "classes": ["ham", "spam"], "seed": 1}


def texts(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Three words of a class's own, and one of the other's."""
    rng = np.random.default_rng(seed)
    labels = [str(label) for label in rng.choice(["ham", "spam"], count)]
    other = {"ham": "spam", "spam": "ham"}
    return [" ".join([*rng.choice(WORDS[one], 3), rng.choice(WORDS[other[one]])]) for one in labels], labels


def test_text_is_learnt_in_a_pipeline():
    """Hashed to a million features, which no row is ever made dense for (seeded)."""
    model = PrivateNaiveBayes(**STATED)
    pipeline = make_pipeline(HashingVectorizer(n_features=2**20, alternate_sign=False), model)
    assert pipeline.fit(*texts(2_000)).score(*texts(500, seed=1)) > 0.9
    assert model.coef_.shape == (1, 2**20)
    assert (model.n_examples_, model.n_releases_) == (2_000, 1)


def test_a_batch_is_released_once_and_a_stream_as_it_grows():
    """By the same sums: `fit` after the last row, `partial_fit` at rounds that grow by a tenth."""
    vectorizer = HashingVectorizer(n_features=64, alternate_sign=False)
    X, y = (part(2_000) for part in (lambda n: vectorizer.transform(texts(n)[0]), lambda n: texts(n)[1]))
    once, stream = PrivateNaiveBayes(**STATED).fit(X, y), PrivateNaiveBayes(**STATED, horizon=2_000)
    for start in range(0, 2_000, 500):
        stream.partial_fit(X[start : start + 500], y[start : start + 500])
    assert once.plan_.method == stream.plan_.method == "class-sums"
    assert once.plan_.private.schedule == at([2_000])
    assert stream.plan_.private.schedule == geometric(1.1)
    assert stream.plan_.private.mechanism == BLT(5)
    assert stream.score(X, y) > 0.9
    assert stream.privacy_spent_.epsilon <= 1.0


def test_sparse_and_dense_rows_give_the_same_model():
    X, y = HashingVectorizer(n_features=32, alternate_sign=False).transform(texts(300)[0]), texts(300)[1]
    sparse, dense = (PrivateNaiveBayes(**STATED).fit(rows, y) for rows in (X, X.toarray()))
    assert np.array_equal(sparse.coef_, dense.coef_)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X.toarray()), atol=1e-12)


def test_three_classes():
    """A row of weights for each (seeded)."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 3_000)
    X = sp.csr_matrix(np.eye(3)[y] + 0.3 * rng.random((3_000, 3)))
    model = PrivateNaiveBayes(epsilon=1.0, feature_bound=1.0, classes=[0, 1, 2], seed=1).fit(X, y)
    assert model.coef_.shape == (3, 3)
    assert model.score(X, y) > 0.95
    assert not hasattr(model, "predict_proba")
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("rows", [np.array([[0.5, -0.1], [0.1, 0.2]]), sp.csr_matrix([[0.5, -0.1], [0.1, 0.2]])])
def test_negative_entries_are_rejected(rows):
    """By `fit` and by each `partial_fit`, before anything is learnt."""
    model = PrivateNaiveBayes(**(STATED | {"epsilon": 30.0}), horizon=1_000)
    with pytest.raises(ValueError, match="Negative values in data passed to PrivateNaiveBayes"):
        model.fit(rows, ["ham", "spam"])
    model.partial_fit(abs(rows), ["ham", "spam"])
    with pytest.raises(ValueError, match="Negative values in data"):
        model.partial_fit(rows, ["ham", "spam"])
    assert model.n_examples_ == 2


def test_settings_become_class_sums():
    """An intercept of a quarter, no constraint, and the labels of a loss without probabilities."""
    two, three = (Settings("naive-bayes", 1.0, feature_bound=2.0, classes=k).plan(5, 100) for k in (2, 3))
    assert isinstance(two.private.learner, ClassSums)
    assert two.private.problem.loss == Hinge()
    assert three.private.problem.loss == MultiHinge(3)
    assert (two.private.problem.intercept, two.private.problem.domain) == (0.5, WholeSpace())


@pytest.mark.parametrize("stated", [{"method": "ftrl"}, {"radius": 1.0}, {"ridge": 0.1}])
def test_settings_of_other_methods_are_rejected(stated):
    with pytest.raises(InvalidInput, match="Leave method, radius and ridge out"):
        Settings("naive-bayes", 1.0, feature_bound=1.0, classes=2, **stated).plan(5, 100)


def test_numbers_have_no_classes():
    with pytest.raises((InvalidInput, Unprovable), match="naive-bayes learns classes"):
        Settings("naive-bayes", 1.0, feature_bound=1.0, label_bound=1.0).plan(5, 100)


def test_a_plan_tells_whether_there_is_enough_text():
    """By the number of rows beside the noise, and not by the number of features."""
    few, some, many = (
        Settings("naive-bayes", 1.0, feature_bound=1.0, classes=2).plan(10**6, n) for n in (200, 3_000, 200_000)
    )
    assert few.hopeless
    assert not some.hopeless
    assert "Little" in str(some.warning)
    assert many.warning is None


def test_river_learns_words_by_unsigned_buckets():
    """A name never counts against itself, and a negative value is none (seeded)."""
    model = river.PrivateNaiveBayes(buckets=2**10, **STATED)
    for text, label in zip(*texts(3_000), strict=True):
        model.learn_one(dict.fromkeys(text.split(), 1), label)
    guesses = [model.predict_one(dict.fromkeys(text.split(), 1)) for text in texts(300, seed=1)[0]]
    assert np.mean(np.array(guesses) == texts(300, seed=1)[1]) > 0.85
    assert model.plan.method == "class-sums"
    entries = np.array(HashedFeatures(16, signed=False).row({f"word {i}": 1 for i in range(50)}))
    assert (entries[len(entries) // 2 :] > 0.0).all()
