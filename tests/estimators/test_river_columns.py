"""Declared columns and ranges of labels in river's models: the features of tables, and no name that is ignored."""

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")

from river import preprocessing

from taciturn import InvalidInput
from taciturn.columns.encoder import encoder_of
from taciturn.columns.target import labels_in_range
from taciturn.columns.values import PlainValues
from taciturn.datasets import customers
from taciturn.estimators.dict_rows import ColumnFeatures, NamedFeatures
from taciturn.estimators.river import PrivateLinearRegression, PrivateLogisticRegression, PrivateNaiveBayes

COLUMNS = {
    "signed_up": {"date": ["2015-01-01", "2030-01-01"], "cycle": ["weekday", "month"]},
    "country": {"categories": ["DE", "FR", "IT"], "missing": "category"},
    "age": {"range": [18, 100], "indicator": True},
    "income": {"range": [0, 1e6], "scale": "symlog"},
    "tickets": {"bins": [0, 1, 2, 5]},
    "customer_id": {"ignore": True},
}
SPARSE = COLUMNS | {"note": {"text": {"hash": 16}}}
SEEDED = {"epsilon": 1.0, "seed": 1}
FRAME = customers(600, as_frame=True)
Y = FRAME["spend_next_year"]


@pytest.mark.parametrize("columns", [COLUMNS, SPARSE], ids=["dense", "sparse"])
def test_dicts_have_the_features_of_tables_to_the_byte(columns):
    frame = FRAME[list(columns)]
    rule = ColumnFeatures(encoder_of(columns))
    one_by_one = rule.block([rule.row(x) for x in frame.to_dict("records")])
    together = rule.table(frame)
    if "note" in columns:
        one_by_one, together = one_by_one.toarray(), together.toarray()
    assert one_by_one.tobytes() == together.tobytes()


@pytest.mark.parametrize("columns", [COLUMNS, SPARSE, COLUMNS | {"age": {"range": "private"}}], ids=str)
def test_one_after_the_other_is_all_together(columns):
    """Models and predictions, also of copies."""
    frame = FRAME[list(columns)]
    horizon = 600 if columns["age"]["range"] != "private" else 50_000
    settings = {"columns": columns, "label_range": (0, 1e5), "horizon": horizon, "epsilon": 20.0, "seed": 1}
    one, many = PrivateLinearRegression(**settings), PrivateLinearRegression(**settings)
    for x, y in zip(frame.to_dict("records"), Y, strict=True):
        one.learn_one(x, y)
    many.learn_many(frame, Y)
    assert one.weights == many.weights
    assert one.intercept == many.intercept
    predicted = [one.predict_one(x) for x in frame[:50].to_dict("records")]
    assert predicted == pytest.approx(many.predict_many(frame[:50]).tolist(), rel=1e-9)
    assert pickle.loads(pickle.dumps(one)).predict_one(frame[:1].to_dict("records")[0]) == predicted[0]
    assert min(predicted) >= 0.0
    assert one.clone().columns == columns


def test_what_an_example_lacks_is_missing_in_it():
    rule = ColumnFeatures(encoder_of(COLUMNS))
    assert rule.row({"age": 59, "country": None}) == rule.row({"age": 59})
    assert rule.row({"age": float("nan"), "income": 5}) == rule.row({"income": 5.0})


def test_names_of_one_hot_encoders_are_matched():
    rule = ColumnFeatures(encoder_of(COLUMNS))
    encoder = preprocessing.OneHotEncoder()
    for country in ("FR", "DE"):
        encoder.learn_one({"country": country})
        hot = encoder.transform_one({"country": country})
        assert rule.row({"age": 30, **hot}) == rule.row({"age": 30, "country": country})
    with pytest.raises(InvalidInput, match="two one-hot names of column country"):
        rule.row({"country_DE": 1, "country_FR": 1})


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ({"age": 3, "incme": 5}, "this example has 'incme', which is not a declared column. Did you mean income"),
        ({"age": 3, "shoe": 5}, "Declare it, for example as {'shoe': {'ignore': True}}; declared are signed_up"),
        ({}, "this example has none of the declared columns, which are signed_up, country"),
        ({"age": "secret"}, "this example has a value in column age that is not a number.*Nothing was learnt"),
        ({"signed_up": "secret"}, "in column signed_up that is not a date"),
    ],
)
def test_other_names_and_bad_values_are_rejected_with_a_remedy(x, words):
    model = PrivateLogisticRegression(columns=COLUMNS, **SEEDED)
    with pytest.raises(InvalidInput, match=words) as error:
        model.learn_one(x, True)
    assert "secret" not in str(error.value)
    assert model.n_examples == 0


@pytest.mark.parametrize("columns", [COLUMNS, SPARSE], ids=["dense", "sparse"])
def test_bad_examples_may_count_without_influence(columns):
    settings = {"columns": columns, "on_bad": "zero", "release": "every", "epsilon": 50.0, "seed": 1}
    model, same = PrivateLogisticRegression(**settings), PrivateLogisticRegression(**settings)
    for age, label in ((30, True), ("bad", True), (50, False)):
        model.learn_one({"age": age}, label)
    same.learn_many(pd.DataFrame({"age": [30, "worse", 50]}), pd.Series([True, False, False]))
    assert model.n_examples == same.n_examples == 3
    assert model.weights == same.weights
    assert model.predict_one({"age": "bad"}) in (False, True)


def test_declared_names_are_not_ignored_silently():
    named = NamedFeatures(["age", "country", "height"])
    with pytest.raises(InvalidInput, match=r"begins with 'country_'.*OneHotEncoder.*Leave the.*how .* spelt") as caught:
        named.row({"age": 1.0, "country_SECRET": 1})
    assert "SECRET" not in str(caught.value)
    with pytest.warns(UserWarning, match="none of the declared features"):
        named.row({"Age": 1.0})
    assert list(named.row({"Age": 1.0})) == [0.0, 0.0, 0.0]  # it warns once
    assert list(named.row({"age": 1.0, "shoe_size": 44.0})) == [1.0, 0.0, 0.0]


def test_a_feature_that_is_no_indicator_is_not_taken_for_one():
    """Whichever features the example has beside it: one that is not declared is ignored."""
    named = NamedFeatures(["age", "x"])
    for undeclared in (2, 0.5, "young", None):
        for x in ({"age": 0.3, "x": 0.1}, {"x": 0.1}):
            assert list(named.row({**x, "age_group": undeclared})) == [x.get("age", 0.0), 0.1]
    with pytest.warns(UserWarning, match="none of the declared features"):
        NamedFeatures(["Age", "kosten"]).row({"age": 0.3, "kosten_num": 1643.34})


def test_an_indicator_that_is_not_declared_shows_no_value():
    for columns in ({"age": {"range": [0, 100]}}, {"name": {"range": [0, 1]}}):
        with pytest.raises(InvalidInput, match=r"a name that begins with 'name_' .* OneHotEncoder") as caught:
            PrivateLogisticRegression(columns=columns, **SEEDED).learn_one({"name_SECRET": 1}, True)
        assert "SECRET" not in str(caught.value)


def test_a_number_is_no_category():
    rule = ColumnFeatures(encoder_of({"plan": {"categories": ["free", "basic"]}}))
    with pytest.raises(InvalidInput, match=r"'plan_free', which is not a declared column\. Did you mean plan"):
        rule.row({"plan_free": 30.0})


def test_an_encoder_that_drops_the_first_name_is_named():
    model = preprocessing.OneHotEncoder(drop_first=True) | PrivateLogisticRegression(
        columns={"plan": {"categories": ["free", "basic"]}}, **SEEDED
    )
    with pytest.raises(InvalidInput, match=r"OneHotEncoder\(drop_first=True\): leave that out"):
        model.learn_one({"plan": "free"}, True)


def test_the_key_of_a_user_is_no_column():
    model = PrivateLogisticRegression(columns={"age": {"range": [0, 100]}}, user="id", rows_per_user=2, **SEEDED)
    model.learn_one({"age": 3, "id": "a"}, True)
    model.learn_many(pd.DataFrame({"age": [3.0], "id": ["a"]}), pd.Series([True]))
    assert model.n_examples == 2
    with pytest.raises(InvalidInput, match="'id' holds the id of a user, which is no feature"):
        PrivateLogisticRegression(columns={"id": {"hash": 4}}, user="id", rows_per_user=2, **SEEDED).learn_one({}, True)


def test_naive_bayes_hashes_texts_without_signs():
    model = PrivateNaiveBayes(columns={"note": {"text": {"hash": 1024}}}, epsilon=5.0, seed=1)
    for text in ["see you at noon", "a prize for you"] * 2_000:
        model.learn_one({"note": text}, "prize" in text)
    assert (model.predict_one({"note": "noon"}), model.predict_one({"note": "PRIZE!"})) == (False, True)


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_one_label_is_that_of_a_block(scale):
    target = labels_in_range((1.0, 1e5), scale)
    values = [0.0, 1.0, 17.3, 99_999.9, 1e9]
    labels, _ = target.encode(PlainValues(values))
    assert [target(value) for value in values] == labels.tolist()
    assert np.isnan(target("many"))
    scores = [-1e9, -3.0, 0.0, 2.5, 1e9]
    assert [target.prediction(score) for score in scores] == target.decode(np.array(scores)).tolist()


def test_ranges_of_labels_are_centred_inside():
    model = PrivateLinearRegression(features=["a"], feature_bound=1.0, label_range=(0, 1000), horizon=5_000, **SEEDED)
    for i in range(5_000):
        model.learn_one({"a": i % 2}, 600.0 + 200.0 * (i % 2))
    assert model.predict_one({"a": 1}) == pytest.approx(800.0, abs=30.0)
    assert model.weights["a"] + model.intercept == pytest.approx(model.predict_one({"a": 1}))
    with pytest.raises(InvalidInput, match="label_range must be the lowest and the highest label"):
        PrivateLinearRegression(features=["a"], feature_bound=1.0, label_range=5, **SEEDED).learn_one({"a": 1}, 1)


@pytest.mark.privacy
@pytest.mark.parametrize("columns", [COLUMNS, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "x", [{"age": 30, "colour": "red"}, {"age": 30, "colour_red": 1}, {}, {"country_DE": 1, "country_FR": 1}]
)
def test_names_that_are_not_declared_make_a_bad_row(columns, x):
    """What names a row has is a part of it; those of a table are not."""
    settings = {"columns": columns, "on_bad": "zero", "release": "every", "epsilon": 50.0, "seed": 1}
    model, same = PrivateLogisticRegression(**settings), PrivateLogisticRegression(**settings)
    for row in ({"age": 30}, x, {"age": 50}):
        model.learn_one(row, True)
    for row in ({"age": 30}, {"age": "bad"}, {"age": 50}):
        same.learn_one(row, True)
    assert model.n_examples == 3
    assert model.weights == same.weights
    with pytest.raises(InvalidInput, match="'colour', which is not a declared column"):
        model.learn_many(pd.DataFrame({"age": [30], "colour": ["red"]}), pd.Series([True]))


@pytest.mark.privacy
def test_names_of_an_encoder_make_a_bad_row_of_named_features():
    row = NamedFeatures(["age", "country"], on_bad="zero").row({"age": 1.0, "country_DE": 1})
    assert np.isnan(row).all()
