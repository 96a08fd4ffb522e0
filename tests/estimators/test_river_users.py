"""Users with several examples, through the models for river: the key of the id, its bounds, and blocks of rows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")

from taciturn.errors import InvalidInput, StateConflict
from taciturn.estimators.dict_rows import HashedFeatures, features_of
from taciturn.estimators.river import (
    NormClip,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PublicScaler,
)
from taciturn.estimators.sklearn import PrivateLogisticRegression as FromScikitLearn

RNG = np.random.default_rng(4)
N = 2_500  # the buffer is flushed at 1,024 rows
X = RNG.uniform(-0.5, 0.5, size=(N, 2))
Y = X @ [1.0, -0.5] > 0.0
USERS = np.where(RNG.random(N) < 0.3, 0, RNG.integers(1, 900, size=N))
EXAMPLES = [{"customer_id": int(u), "a": a, "b": b} for u, (a, b) in zip(USERS, X.tolist(), strict=True)]
FRAME = pd.DataFrame(EXAMPLES)
STATED = {"epsilon": 2.0, "feature_bound": 1.0, "user": "customer_id", "rows_per_user": 2, "release": 50, "seed": 1}
NAMED = {"features": ["a", "b"]}


def model(**settings) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(**(STATED | ({} if "buckets" in settings else NAMED) | settings))


def learnt(one, examples=EXAMPLES, labels=Y):
    for x, y in zip(examples, labels, strict=True):
        one.learn_one(x, y)
    return one


@pytest.mark.parametrize("settings", [{}, {"buckets": 4}, {"rows_per_release": 1, "apart": 3}, {"period": 300}])
def test_how_a_stream_is_cut_changes_nothing(settings):
    """Ids stay with their rows, in the buffer and in frames, whatever comes in between."""
    one = learnt(model(**settings))
    mixed, start = model(**settings), 0
    for end in (700, 721, 2_000, N):
        mixed.learn_many(FRAME[start:end], pd.Series(Y[start:end]))
        start = end
        for _ in range(20 if end < N else 0):
            mixed.learn_one(EXAMPLES[start], Y[start])
            start += 1
    assert one.weights == mixed.weights
    assert one.n_examples == mixed.n_examples == N
    shifted = [{**x, "customer_id": i} for i, x in enumerate(EXAMPLES)]  # ids of other rows: others count
    assert learnt(model(**settings), shifted).weights != one.weights


def test_river_and_scikit_learn_count_the_same_rows():
    """The releases of one stream are those of the other."""
    stated = {k: v for k, v in STATED.items() if k != "user"}
    other = FromScikitLearn(classes=[False, True], **stated).partial_fit(X, Y, users=USERS)
    assert list(learnt(model()).weights.values()) == other.coef_[0].tolist()


@pytest.mark.privacy
@pytest.mark.parametrize("settings", [{}, {"buckets": 4}])
def test_examples_beyond_the_bound_have_no_influence(settings):
    counts: dict[int, int] = {}
    moved = []
    for x in EXAMPLES:
        user = x["customer_id"]
        counts[user] = counts.get(user, 0) + 1
        moved.append({**x, "a": 0.9} if counts[user] > 2 else x)
    assert sum(a is not b for a, b in zip(moved, EXAMPLES, strict=True)) > 1_000
    kept = learnt(model(**settings)).weights
    assert learnt(model(**settings), moved).weights == kept
    moved[0] = {**moved[0], "a": 0.9}
    assert learnt(model(**settings), moved).weights != kept


@pytest.mark.parametrize("settings", [{}, {"buckets": 4}])
def test_the_key_is_no_feature(settings):
    """A model is the same whatever the ids are called, and predictions ignore them."""
    numbers = learnt(model(**settings))
    texts = learnt(model(**settings), [{**x, "customer_id": f"customer {x['customer_id']}"} for x in EXAMPLES])
    assert numbers.weights == texts.weights
    assert "customer_id" not in numbers.weights
    x, bare = EXAMPLES[0], {"a": EXAMPLES[0]["a"], "b": EXAMPLES[0]["b"]}
    assert numbers.predict_proba_one(x) == numbers.predict_proba_one(bare)
    assert numbers.predict_many(FRAME).equals(numbers.predict_many(FRAME[["a", "b"]]))
    assert (HashedFeatures(16, "customer_id").row(x) == HashedFeatures(16).row(bare)) is True


@pytest.mark.parametrize("names", [["a", "customer_id"], ["a", "customer_id=7"]])
def test_an_id_among_the_features_is_rejected(names):
    with pytest.raises(InvalidInput, match="'customer_id' holds the id of a user, which is no feature"):
        features_of(names, None, "customer_id")


def test_an_example_without_the_key_is_a_user_of_its_own_or_bad():
    bare = [{k: v for k, v in x.items() if i % 2 or k != "customer_id"} for i, x in enumerate(EXAMPLES)]
    own = [x if "customer_id" in x else {**x, "customer_id": f"row {i}"} for i, x in enumerate(bare)]
    frame = model(without_id="own")
    frame.learn_many(pd.DataFrame(bare), pd.Series(Y))  # NaN where the key is missing
    assert learnt(model(without_id="own"), bare).weights == learnt(model(), own).weights == frame.weights
    strict = model()
    for wrong in (bare[0], {**bare[0], "customer_id": float("nan")}):
        with pytest.raises(InvalidInput, match=r"this example has no id under 'customer_id'\. Nothing was learnt"):
            strict.learn_one(wrong, True)
    for wrong, row in ((pd.DataFrame(bare[1:2] + bare), 1), (FRAME[["a", "b"]], 0)):
        with pytest.raises(InvalidInput, match=rf"^row {row} has no id under 'customer_id'\. Nothing was learnt"):
            strict.learn_many(wrong, pd.Series([*Y, True][: len(wrong)]))
    assert strict.n_examples == 0
    silent = model(on_bad="zero")
    silent.learn_many(FRAME[["a", "b"]], pd.Series(Y))
    assert silent.n_examples == N


@pytest.mark.parametrize(("wrong", "why"), [([1], "got list"), (0.37, "as of a feature that was scaled")])
def test_what_is_no_id_is_rejected_when_it_comes(wrong, why):
    """And the rows that wait in the buffer are learnt later."""
    one = learnt(model(), EXAMPLES[:10], Y[:10])
    with pytest.raises(InvalidInput, match=why):
        one.learn_one({**EXAMPLES[10], "customer_id": wrong}, True)
    with pytest.raises(InvalidInput, match=why):
        one.learn_many(pd.DataFrame([{**EXAMPLES[10], "customer_id": wrong}]), pd.Series([True]))
    assert learnt(one, EXAMPLES[10:], Y[10:]).weights == learnt(model()).weights


@pytest.mark.parametrize("settings", [{"user": None}, {"rows_per_user": None}])
def test_the_key_and_the_bound_are_stated_together(settings):
    with pytest.raises(InvalidInput, match='State both, as in user="customer_id", rows_per_user=4, or neither'):
        model(**settings).learn_one(EXAMPLES[0], True)


def test_transformers_of_a_pipeline_leave_ids_as_they_are():
    scaler = PublicScaler(ranges={"a": (-1.0, 1.0), "b": (-1.0, 1.0)})
    pipeline = scaler | NormClip(1.0, user="customer_id") | model()
    assert learnt(pipeline)["PrivateLogisticRegression"].weights == learnt(model()).weights
    many = scaler | NormClip(1.0, user="customer_id") | model()
    many.learn_many(FRAME, pd.Series(Y))
    assert many["PrivateLogisticRegression"].weights == learnt(model()).weights
    with pytest.raises(InvalidInput, match=r"NormClip\(1.0, user='customer_id'\)"):
        learnt(NormClip(1.0) | model())


def test_a_dump_has_the_counts_and_a_copy_has_no_ids(tmp_path):
    one = learnt(model(), [{**x, "customer_id": f"Anna {x['customer_id']}"} for x in EXAMPLES[:1_100]], Y[:1_100])
    text = pickle.dumps(one)
    assert b"Anna" not in text
    with pytest.raises(StateConflict, match="copy"):
        pickle.loads(text).learn_one(EXAMPLES[0], True)
    first = learnt(model(), EXAMPLES[:1_100], Y[:1_100])
    first.dump_stream(tmp_path / "stream.npz")
    later = first.clone().load_stream(tmp_path / "stream.npz")
    assert learnt(later, EXAMPLES[1_100:], Y[1_100:]).weights == learnt(model()).weights
    assert first.clone().rows_per_user == 2


def test_every_model_takes_users_and_says_so():
    others = (
        PrivateLinearSVC(**(STATED | NAMED | {"seed": None})),
        PrivateLinearRegression(label_bound=1.0, **(STATED | NAMED | {"seed": None})),
    )
    for one in others:
        learnt(one, EXAMPLES[:200], Y[:200])
        assert "one user, of at most 2 rows" in one.guarantee
        assert "replacing all rows of any one user by others" in one.guarantee


@pytest.mark.privacy
@pytest.mark.parametrize("settings", [{}, {"without_id": "own"}, {"buckets": 8}])
@pytest.mark.parametrize("wrong", [[1], {}, 0.37, 2.0**60, (1, 2), pytest.param(10**5_000, id="endless")])
def test_a_row_whose_id_cannot_be_read_may_have_no_influence(settings, wrong):
    """It takes its round, and no other row of that user counts in its place."""
    one, same = (model(on_bad="zero", release="every", epsilon=50.0, **settings) for _ in range(2))
    learnt(one, [*EXAMPLES[:5], {**EXAMPLES[5], "customer_id": wrong}, *EXAMPLES[6:9]], Y[:9])
    learnt(same, [*EXAMPLES[:5], {"customer_id": "another", "a": np.nan, "b": 0.0}, *EXAMPLES[6:9]], Y[:9])
    assert one.n_examples == 9
    assert one.weights == same.weights
    many = model(on_bad="zero", release="every", epsilon=50.0, **settings)
    frame = FRAME[:9].astype(object)
    frame.at[5, "customer_id"] = wrong
    many.learn_many(frame, pd.Series(Y[:9]))
    assert many.weights == one.weights
    with pytest.raises(InvalidInput):
        model(**settings).learn_one({**EXAMPLES[5], "customer_id": wrong}, True)
