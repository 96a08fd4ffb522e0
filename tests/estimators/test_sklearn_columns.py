"""Declared columns and ranges of labels in scikit-learn's estimators: the contract's features, bounds and models."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from taciturn import InvalidInput, StateConflict
from taciturn.columns.target import Number
from taciturn.contract.contract import contract_of
from taciturn.datasets import customers
from taciturn.estimators.scaling import PublicColumns, PublicScaler
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLogisticRegression, PrivateNaiveBayes
from taciturn.estimators.stream import Stream

COLUMNS = {
    "customer_id": {"ignore": True},
    "signed_up": {"date": ["2015-01-01", "2030-01-01"], "cycle": ["weekday"]},
    "country": {"categories": ["DE", "FR", "IT"], "missing": "category"},
    "plan": {"categories": ["free", "basic", "pro"]},
    "age": {"range": [18, 100], "indicator": True},
    "income": {"range": [0, 1e6], "scale": "symlog", "threshold": 1000, "indicator": True},
    "visits": {"range": [0, 60]},
    "tickets": {"bins": [0, 1, 2, 5]},
    "note": {"text": {"hash": 16}},
}
DENSE = COLUMNS | {"note": {"ignore": True}}
SEEDED = {"epsilon": 1.0, "seed": 1}
TABLE = customers(4_000, as_frame=True)
X, CHURNED, SPENT = TABLE.drop(columns=["churned", "spend_next_year"]), TABLE["churned"], TABLE["spend_next_year"]


@pytest.mark.parametrize("columns", [COLUMNS, DENSE | {"age": {"range": "private"}}], ids=["text", "private range"])
def test_the_features_bounds_and_plan_are_those_of_the_contract(columns):
    contract = contract_of(
        {
            "privacy": {"epsilon": 1.0},
            "target": {"column": "spend_next_year", "range": [0, 1e5]},
            "learning": {"horizon": len(X), "features": 50},
            "columns": {**columns, "churned": {"ignore": True}},
        }
    )
    model = PrivateLinearRegression(
        columns=columns, label_range=(0, 1e5), horizon=len(X), features=50, **SEEDED
    ).partial_fit(X, SPENT)
    assert repr(model.plan_.private) == repr(contract.plan(seed=1).private)
    assert model.encoder_.feature_names == contract.feature_names
    assert model.n_features_in_ == len(contract.read)
    assert model.feature_names_in_.tolist() == [column.name for column in contract.read]


def test_dense_rows_release_the_very_models_of_the_contract():
    target = Number("spend_next_year", 0.0, 1e5)
    model = PrivateLinearRegression(columns=DENSE, label_range=(0, 1e5), horizon=4_000, **SEEDED)
    model.partial_fit(X, SPENT)
    stream = Stream(model.plan_)
    stream.learn(model.encoder_.features(X), SPENT.to_numpy() - 5e4)
    assert model.coef_.tobytes() == stream.model[:-1].tobytes()
    assert (
        model.predict(X[:50]).tobytes()
        == target.decode(stream.problem.predict(stream.model, model.encoder_.features(X[:50]))).tobytes()
    )


def test_tables_are_read_by_name_in_any_order_and_may_have_more_for_predictions():
    model = PrivateLogisticRegression(columns=COLUMNS, classes=["no", "yes"], **SEEDED).fit(X, CHURNED)
    expected = model.predict_proba(X[:100])
    assert np.array_equal(model.predict_proba(TABLE[:100][TABLE.columns[::-1]]), expected)
    assert np.array_equal(model.predict_proba(X[:100].drop(columns=["customer_id"])), expected)
    assert model.score(X, CHURNED) > 0.7


def test_private_ranges_are_found_for_the_columns_that_declare_them():
    columns = {"age": {"range": "private"}, "visits": {"range": [0, 60]}}
    frame = X[["age", "visits"]]
    assert frame["age"].isna().any()
    model = PrivateLinearRegression(columns=columns, label_range=(0, 1e5), epsilon=5.0, seed=1).fit(frame, SPENT)
    assert model.plan_.found_in_words
    assert np.isfinite(model.predict(frame)).all()
    assert model.encoder_.found == (0,)


def test_a_copy_a_clone_and_a_resumed_stream_read_the_same_tables(tmp_path):
    model = PrivateLogisticRegression(columns=COLUMNS, classes=["no", "yes"], horizon=4_000, **SEEDED)
    model.partial_fit(X[:2_000], CHURNED[:2_000])
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X[:9]), model.predict_proba(X[:9]))
    model.dump_stream(tmp_path / "stream")
    copy.load_stream(tmp_path / "stream").partial_fit(X[2_000:], CHURNED[2_000:])
    assert clone(model).columns == COLUMNS
    assert repr(clone(model)) == repr(model)


def test_other_columns_are_another_stream():
    model = PrivateLogisticRegression(columns=DENSE, classes=["no", "yes"], horizon=4_000, **SEEDED)
    model.partial_fit(X[:10], CHURNED[:10])
    model.set_params(columns=DENSE | {"plan": {"categories": ["free", "basic", "gold"]}})
    with pytest.raises(StateConflict, match="settings have changed"):
        model.partial_fit(X[10:20], CHURNED[10:20])


def test_naive_bayes_learns_texts_without_signs():
    columns = {
        "note": {"text": {"hash": 64}},
        "plan": {"categories": ["free", "basic", "pro"]},
        "age": {"bins": [0, 40, 99]},
    }
    model = PrivateNaiveBayes(columns=columns, classes=["no", "yes"], **SEEDED).fit(X[list(columns)], CHURNED)
    assert (model.encoder_.features(X).toarray() >= 0.0).all()
    with pytest.raises(InvalidInput, match="naive Bayes adds up features that are not negative, and column age"):
        PrivateNaiveBayes(columns={"age": {"range": [0, 1]}}, classes=[0, 1], **SEEDED).fit(X[["age"]], CHURNED)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": {"age": {"rnage": [0, 1]}}}, "columns.age.rnage is unknown. Did you mean range"),
        (
            {"columns": {"Age": {"range": [0, 1]}}},
            "column Age is declared, and is missing from the table, which has age",
        ),
        ({"columns": {"visits": {"range": [0, 1]}}}, "column age is in the table but not declared"),
        ({"feature_bound": "private"}, "Leave feature_bound out, and declare"),
        ({"label_bound": 1e5}, "State one of the two"),
        ({"label_range": None, "label_scale": "log"}, "label_scale='log' needs a stated range"),
        ({"label_range": "private", "label_scale": "log"}, "label_scale='log' needs a stated range"),
        ({"label_range": None}, r"label_bound is missing.* Or state label_range=\(low, high\)"),
        ({"label_range": 1e5}, r"label_range must be the lowest and the highest label, as in label_range=\(0, 1000\)"),
        ({"label_range": (5, 1)}, "label_range must be two finite numbers, the lower first"),
        ({"label_range": ("a", "b")}, "label_range must be two finite numbers, the lower first"),
        ({"label_range": "public"}, "label_range must be the lowest"),
        ({"label_scale": "log"}, 'label_range must be positive for scale = "log".*symlog'),
        ({"label_scale": "sqrt"}, "label_scale must be one of linear, log, symlog"),
    ],
)
def test_mistakes_are_answered_with_a_remedy(changes, words):
    settings = {"columns": {"age": {"range": [18, 100]}, "visits": {"range": [0, 60]}}, "label_range": (0, 1e5)}
    model = PrivateLinearRegression(**SEEDED, **settings | changes)
    with pytest.raises(InvalidInput, match=words):
        model.fit(X[["age", "visits"]], SPENT)


def test_a_bad_value_is_an_error_that_quotes_no_data():
    frame = X[["age"]].astype(object)
    frame.iloc[17, 0] = "secret"
    model = PrivateLinearRegression(columns={"age": {"range": [18, 100]}}, label_range=(0, 1e5), **SEEDED)
    with pytest.raises(InvalidInput, match="row 17 has a value in column age that is not a number") as error:
        model.fit(frame, SPENT)
    assert "secret" not in str(error.value)


class TestLabelsWithARange:
    rng = np.random.default_rng(0)
    A = rng.uniform(-0.7, 0.7, (20_000, 2))
    linear = 5e4 + 3e4 * A[:, 0] + rng.normal(0.0, 2e3, 20_000)

    def fitted(self, y, **stated):
        return PrivateLinearRegression(feature_bound=1.0, **SEEDED, **stated).fit(self.A, y)

    def test_they_are_centred_as_by_hand_and_predicted_in_their_units(self):
        model = self.fitted(self.linear, label_range=(0, 1e5))
        by_hand = self.fitted(self.linear - 5e4, label_bound=5e4)
        assert model.coef_.tobytes() == by_hand.coef_.tobytes()
        assert model.intercept_ == by_hand.intercept_ + 5e4
        assert model.predict(self.A) == pytest.approx(np.clip(self.A @ model.coef_ + model.intercept_, 0.0, 1e5))
        assert model.score(self.A, self.linear) > 0.95

    @pytest.mark.parametrize("scale", ["log", "symlog"])
    def test_on_a_scale_ratios_are_learnt(self, scale):
        y = np.exp(7.0 + 3.0 * self.A[:, 0])
        model = self.fitted(y, label_range=(1, 1e5), label_scale=scale)
        assert model.score(self.A, y) > 0.9
        assert self.fitted(y, label_range=(1, 1e5)).score(self.A, y) < 0.9
        assert model.predict(self.A).min() >= 1.0
        assert model.predict(self.A).max() <= 1e5

    def test_labels_outside_are_clipped(self):
        y = self.linear.copy()
        y[0] = 1e12
        clipped = np.minimum(y, 1e5)
        assert (
            self.fitted(y, label_range=(0, 1e5)).coef_.tobytes()
            == self.fitted(clipped, label_range=(0, 1e5)).coef_.tobytes()
        )

    def test_private_is_the_same_word_as_for_the_bound(self):
        one = self.fitted(self.linear, label_range="private")
        assert one.coef_.tobytes() == self.fitted(self.linear, label_bound="private").coef_.tobytes()

    def test_copies_predict_in_the_same_units(self):
        model = self.fitted(self.linear, label_range=(0, 1e5))
        assert pickle.loads(pickle.dumps(model)).predict(self.A[:9]).tolist() == model.predict(self.A[:9]).tolist()


class TestMissingValuesInArrays:
    def rows(self):
        return np.array([[0.5, np.nan], [0.1, 0.2], [0.3, 0.1], [0.4, 0.2]]), np.array([0, 1, 0, 1])

    def test_the_error_for_nan_advises_nothing_that_leaks(self):
        A, y = self.rows()
        model = PrivateLogisticRegression(feature_bound=1.0, classes=[0, 1], **SEEDED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model_fitted = clone(model).fit(A[1:], y[1:])
        for attempt in (lambda: model.fit(A, y), lambda: model.partial_fit(A, y), lambda: model_fitted.predict(A)):
            with pytest.raises(
                InvalidInput, match=r"X contains NaN.*columns=.*PublicScaler.*feature_bound=\"private\""
            ) as error:
                attempt()
            assert "imputer" not in str(error.value)
            assert "HistGradient" not in str(error.value)

    def test_a_text_is_not_quoted(self):
        model = PrivateLogisticRegression(feature_bound=1.0, classes=[0, 1], **SEEDED)
        with pytest.raises(InvalidInput, match="X has a text where a number is expected") as error:
            model.fit(pd.DataFrame({"town": ["secret", "Rome"]}), [0, 1])
        assert "secret" not in str(error.value)

    @pytest.mark.parametrize(("missing", "feature"), [("middle", 0.0), ("zero", -1.0), (7.5, 0.5)])
    def test_a_scaler_passes_nan_as_a_column_does(self, missing, feature):
        scaler = PublicScaler([(0, 10), (0, 10)], missing=missing, indicator=True).fit([[1.0, 2.0]])
        found = scaler.transform([[np.nan, 10.0]])
        declared = {"range": [0, 10], "missing": missing, "indicator": True}
        assert found.tolist() == [[feature, 1.0, 1.0, 0.0]]
        assert found.tolist() == PublicColumns({0: declared, 1: declared}).transform([[np.nan, 10.0]]).tolist()
        assert scaler.get_feature_names_out().tolist() == ["x0", "x0 (missing)", "x1", "x1 (missing)"]

    def test_columns_without_a_range_have_no_indicator(self):
        frame = pd.DataFrame({"age": [np.nan, 50.0], "rest": [1.0, 2.0]})
        scaler = PublicScaler({"age": (0, 100)}, indicator=True)
        assert scaler.fit_transform(frame).tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 2.0]]
        assert scaler.get_feature_names_out().tolist() == ["age", "age (missing)", "rest"]

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"missing": "bad"}, "X contains NaN"),
            ({"missing": 11}, "missing must be a number from 0 to 10"),
            ({"missing": "mean"}, "missing must be a number from 0 to 10"),
            ({"missing": "bad", "indicator": True}, "Remove one of the two"),
        ],
    )
    def test_a_strict_scaler_and_wrong_words_are_rejected(self, settings, words):
        A = [[1.0]] if "indicator" in settings else [[np.nan]]
        with pytest.raises(InvalidInput, match=words):
            PublicScaler((0, 10), **settings).fit(A)


class TestPublicColumns:
    def test_other_models_learn_from_it(self):
        pipeline = make_pipeline(PublicColumns(COLUMNS), LogisticRegression())
        assert pipeline.fit(X, CHURNED).score(X, CHURNED) > 0.7
        assert pickle.loads(pickle.dumps(pipeline)).predict(X[:9]).tolist() == pipeline.predict(X[:9]).tolist()
        assert len(pipeline[0].get_feature_names_out()) == pipeline[1].coef_.shape[1]

    def test_it_is_the_estimators_own_encoder(self):
        transformer = PublicColumns(DENSE)
        model = PrivateLogisticRegression(columns=DENSE, classes=["no", "yes"], **SEEDED).fit(X, CHURNED)
        assert transformer.encoder == model.encoder_
        assert transformer.feature_bound == model.plan_.private.problem.feature_bound
        behind = make_pipeline(
            transformer,
            PrivateLogisticRegression(feature_bound=transformer.feature_bound, classes=["no", "yes"], **SEEDED),
        )
        assert behind.fit(X, CHURNED)[-1].coef_.tobytes() == model.coef_.tobytes()

    def test_rows_are_sparse_if_values_are_hashed(self):
        assert issparse(PublicColumns(COLUMNS).fit_transform(X))
        assert isinstance(PublicColumns(DENSE).fit_transform(X), np.ndarray)

    def test_data_frames_out(self):
        out = PublicColumns({"age": {"range": [18, 100]}}).set_output(transform="pandas").fit_transform(X[["age"]])
        assert out.columns.tolist() == ["age"]

    def test_private_ranges_are_rejected_with_a_remedy(self):
        with pytest.raises(
            InvalidInput, match=r"the range of age is to be found privately.* or give columns= to a private"
        ):
            PublicColumns({"age": {"range": "private"}}).fit(X)

    def test_undeclared_columns_are_rejected_when_it_is_fitted(self):
        with pytest.raises(InvalidInput, match="column customer_id is in the table but not declared"):
            PublicColumns({"age": {"range": [0, 1]}}).fit(X)
        assert math.isclose(PublicColumns({"age": {"range": [18, 100]}}).feature_bound, math.sqrt(1.0 / 3.0 + 0.6))


@pytest.mark.filterwarnings("ignore::taciturn.estimators.stream.PrivacyWarning")  # four rows teach nothing
def test_labels_of_another_type_are_rejected_and_not_quoted():
    """Numbers were expected and texts came, or the other way round; both raised errors of NumPy, one with the label."""
    X, labels = np.zeros((4, 1)), np.array(["secret", "no", "no", "no"], dtype=object)
    declared = {"columns": {0: {"range": [0, 1]}}}
    for settings in (declared, {"feature_bound": 1.0}):
        for y in (labels, labels.astype(str), list(labels)):
            with pytest.raises(InvalidInput, match="y has a text where a number is expected") as told:
                PrivateLinearRegression(epsilon=1.0, label_bound=1.0, **settings).fit(X, y)
            assert "secret" not in str(told.value)
        for classes, y in (([0, 1], labels), (["no", "yes"], [0, 1, 0, 1])):
            with pytest.raises(InvalidInput, match="y has a label that was not declared"):
                PrivateLogisticRegression(epsilon=1.0, classes=classes, **settings).fit(X, y)
