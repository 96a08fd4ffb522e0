"""A contract is read strictly, states every bound, and has one digest for what it declares."""

import copy
import json
import math
import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.declared import contract
from taciturn import InvalidInput
from taciturn.contract.contract import contract_of, read_contract
from taciturn.contract.explain import target_in_words
from taciturn.contract.model_file import read_model, write_model
from taciturn.estimators.stream import Stream

FILE = """
[privacy]
epsilon = 1.0
[target]
column = "bought"
positive = ["yes"]
[learning]
horizon = 1000
[columns]
age = { range = [0, 100] }
"hours per week" = { range = [0, 80] }
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "taciturn.toml"


def test_a_file_states_the_plan(path):
    path.write_text("\ufeff" + FILE)
    made = read_contract(path)
    assert (made.epsilon, made.delta, made.neighbours) == (1.0, 1e-6, "replace")
    assert (made.dimension, made.feature_names, made.horizon) == (2, ("age", "hours per week"), 1000)
    plan = made.plan(on_bad="zero", seed=3)
    assert (plan.private.horizon, plan.private.seed, plan.private.problem.on_bad) == (1000, 3, "zero")
    bound = math.sqrt(2 / 3 + 0.6 * math.sqrt(2))
    assert (plan.private.problem.dimension, plan.private.problem.feature_bound) == (2, bound)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epsilon = 1.0", "", "privacy.epsilon is missing. State the total budget"),
        ("epsilon = 1.0", 'epsilon = "1.0"', "privacy.epsilon must be a number, got '1.0'. Write it without quotes"),
        ("epsilon = 1.0", "epsilon = true", "privacy.epsilon must be a number"),
        ("epsilon = 1.0", "epsilon = -1", "epsilon must be positive"),
        ("epsilon = 1.0", "epsilon = nan", "epsilon must be positive"),
        ("epsilon = 1.0", "epsilon = 1\ndelta = 1.5", "delta must lie"),
        ("epsilon = 1.0", "epsilon = 1\ndetla = 1e-5", "privacy.detla is unknown. Did you mean delta"),
        (
            "epsilon = 1.0",
            'epsilon = 1\nneighbours = "remove"',
            "privacy.neighbours must be one of replace, zero-out, label",
        ),
        ("epsilon = 1.0", 'epsilon = "?"', 'privacy.epsilon is still "\\?"'),
        ('column = "bought"', "", "target.column is missing. Name the column"),
        ('column = "bought"', "column = 3", "target.column must be a text"),
        ('positive = ["yes"]', "", "state exactly one of classes, positive and range for the target bought, got none"),
        ('positive = ["yes"]', 'positive = ["yes"]\nrange = [0, 1]', "got positive and range"),
        ('positive = ["yes"]', 'classes = ["yes"]', "target.classes must list two or more"),
        ('positive = ["yes"]', "range = [0, 1]\n[lerning]", "lerning is unknown. Did you mean learning"),
        ('positive = ["yes"]', 'positive = "yes"', "target.positive must be a list"),
        ("horizon = 1000", "horizon = 10.5", "learning.horizon must be an integer"),
        ("horizon = 1000", "horizon = 0", "learning.horizon must be an integer"),
        ("horizon = 1000", 'loss = "squared"', "the target bought has classes; learning.loss is squared. Use logistic"),
        ("horizon = 1000", 'loss = "log"', "learning.loss must be one of"),
        ("horizon = 1000", "seed = 1", "learning.seed is unknown"),
        ("horizon = 1000", "feature_bound = 0", "learning.feature_bound must be positive"),
        ("horizon = 1000", "intercept = 1", "learning.intercept must be true or false"),
        ("horizon = 1000", "release = 0", "learning.release must be one of"),
        ("horizon = 1000", "release = true", "learning.release must be one of"),
        ("age =", "bought =", "bought is declared twice"),
        ("{ range = [0, 100] }", '"?"', "state the range of age. Fill in columns.age"),
        ("{ range = [0, 100] }", '{ range = ["?", 100] }', "state the range of age"),
        ("[columns]", "[columns]\n[columns.age]\nhash = 2\n[other]", "other is unknown"),
        ("[privacy]", "[privacy", "is not valid TOML"),
        ("epsilon =", "epsillon =", "privacy.epsillon is unknown. Did you mean epsilon"),
        ("epsilon =", "eps =", "privacy.eps is unknown. Did you mean epsilon"),
        ("[privacy]", "[Privacy]", "Privacy is unknown. Did you mean privacy"),
        ("[columns]", "[colums]", "colums is unknown. Did you mean columns"),
        ('column = "bought"', 'colum = "bought"', "target.colum is unknown. Did you mean column"),
        ("horizon = 1000", 'loss = "logistc"', "got 'logistc'. Did you mean logistic"),
        ("horizon = 1000", "horizon = 1e300", "horizon must be at most 2.53 .* got 1e.300"),
        ("{ range = [0, 100] }", "{ rnage = [0, 100] }", "columns.age.rnage is unknown. Did you mean range"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(path, old, new, words):
    path.write_text(FILE.replace(old, new, 1))
    assert path.read_text() != FILE
    with pytest.raises(InvalidInput, match=words):
        read_contract(path)


def test_all_that_is_open_is_named_at_once():
    data = {"privacy": {"epsilon": "?"}, "target": {"column": "?"}, "columns": {f"c{i}": "?" for i in range(30)}}
    with pytest.raises(InvalidInput, match=r"Open as well: target.column, columns.c0, .* and more"):
        contract_of(data)


def test_a_category_may_be_a_question_mark():
    assert contract(columns={"work": {"categories": ["?", "Private"]}}).feature_names == ("work=?", "work=Private")


def test_a_file_without_columns_or_with_ignored_ones_alone_is_rejected():
    data = {"privacy": {"epsilon": 1}, "target": {"column": "y", "range": [0, 1]}}
    with pytest.raises(InvalidInput, match=r"\[columns\] is missing or empty"):
        contract_of(data)
    with pytest.raises(InvalidInput, match="no column is left to learn from"):
        contract_of(data | {"columns": {"x": {"ignore": True}}})
    with pytest.raises(InvalidInput, match="columns must be a table"):
        contract_of(data | {"columns": [1]})


def test_two_features_never_share_a_name():
    with pytest.raises(InvalidInput, match="same name"):
        contract(columns={"town": {"categories": ["Oslo"]}, "town=Oslo": {"range": [0, 1]}})


def test_the_default_bound_clips_few_rows_of_numbers_that_are_spread_evenly():
    """Two standard deviations of the squared norm above its mean; categories have a norm of 1."""
    made = contract()
    assert made.feature_bound == pytest.approx(math.sqrt(3 + 1 / 3 + 0.6))  # age, town, floor, ip
    assert contract(feature_bound=1.5).feature_bound == 1.5
    for numbers in (1, 2, 10, 50):
        columns = {f"c{i}": {"range": [0, 1]} for i in range(numbers)}
        bound = contract(columns=columns).feature_bound
        norms = np.linalg.norm(np.random.default_rng(numbers).uniform(-1.0, 1.0, (10_000, numbers)), axis=1)
        assert bound <= math.sqrt(numbers)
        assert np.mean(norms > bound) < 0.06


def test_a_model_is_used_with_the_bound_that_it_was_learnt_with(tmp_path):
    """Not with the default of a later version."""
    made = contract()
    stream = Stream(made.plan(seed=1))
    stream.learn(np.zeros((30, made.dimension)), np.ones(30))
    write_model(tmp_path / "model.json", made, stream)
    assert read_model(tmp_path / "model.json").contract == made
    data = json.loads((tmp_path / "model.json").read_text())
    data["feature_bound"] = 2.0
    for scores in data["scores"]:
        scores["intercept"]["constant"] = 1.0
    (tmp_path / "model.json").write_text(json.dumps(data))
    assert read_model(tmp_path / "model.json").problem.feature_bound == 2.0


@pytest.mark.parametrize("target", ["positive", "classes", "range"])
def test_what_is_declared_declares_the_same(target):
    made = contract(target, horizon=500, release=7, feature_bound=2.0, radius=3.0, intercept=False, method="ftrl")
    assert contract_of(made.declared) == made
    assert contract_of(made.declared).digest == made.digest


def test_losses_with_settings_keep_them():
    made = contract("range", loss="quantile", quantile=0.9)
    assert contract_of(made.declared) == made
    assert made.plan().private.problem.loss.level == 0.9
    made = contract("range", loss="huber", huber_width=0.5)
    assert contract_of(made.declared) == made


def test_the_digest_sees_every_change():
    made = contract()
    others = [
        replace(made, epsilon=2.0),
        replace(made, delta=1e-7),
        replace(made, columns=made.columns[::-1]),
        replace(made, columns=made.columns[:-1]),
        replace(made, horizon=9),
        replace(made, intercept=False),
        contract("classes"),
    ]
    assert len({made.digest, *(other.digest for other in others)}) == 1 + len(others)
    assert copy.deepcopy(made).digest == made.digest == "bcb4de7801c0d15c1b2063c94efce8c9"


def test_labels_and_predictions_agree():
    assert contract("classes").plan().private.problem.outputs == 3
    assert contract("range").plan().private.problem.label_bound == 5.0
    assert contract("range").decode_predictions(np.array([-9.0, 0.0, 2.5])).tolist() == [0.0, 5.0, 7.5]
    assert contract("classes").decode_predictions(np.array([[0.0, 2.0, 1.0]])).tolist() == ["maybe"]
    assert contract("positive").decode_predictions(np.array([-1.0, 1.0])).tolist() == ["rest", "yes"]


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([10**400, "?", 2**70]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["range", "hash", "epsilon", "x"]), inner, max_size=2)
    ),
)


@settings(max_examples=500)
@given(st.data())
def test_whatever_stands_in_a_file_it_is_a_contract_or_rejected(data):
    """Never another error, and never for long."""
    declared = copy.deepcopy(contract("range", horizon=10).declared)
    place = declared
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not (isinstance(place[key], dict) and place[key] and data.draw(st.booleans())):
            break
        place = place[key]
    place[key] = data.draw(JUNK)
    with suppress(InvalidInput):
        made = contract_of(declared)
        assert contract_of(made.declared) == made


def test_the_guarantee_names_what_is_public():
    made = contract()
    sentence = made.guarantee(made.plan())
    assert "(1, 1e-06)-differentially private" in sentence
    assert "number and order of examples are public" in sentence
    assert "names of the columns" in sentence
    assert made.guarantee(made.plan(seed=1)).startswith("Simulation: not private.")


@pytest.mark.parametrize("features", ["random", 20, {"count": 20, "scale": [1.0] * 10, "seed": 3}])
def test_features_are_declared(features):
    """By a name, a number or a table; the declaration gives the same contract, and linear ones have none."""
    made = contract(horizon=500_000, features=features)
    assert made.problem.width == (2000 if features == "random" else 20) + made.dimension + 1
    assert contract_of(made.declared) == made
    assert "random features" in made.plan().as_data()["features"]
    assert "features" not in contract(features="linear").declared["learning"]


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ("cosine", "learning.features must be one of linear, random"),
        (True, "learning.features must be one of linear, random"),
        ({"count": 20}, "learning.features.scale is missing. State it, as in scale = 2.0; or write features = 20"),
        ({"count": 20, "scale": "wide"}, "learning.features.scale must be a number"),
        ({"count": 2.5, "scale": 1.0}, "learning.features.count must be an integer"),
        ({"count": 20, "scale": 1.0, "sead": 1}, "learning.features.sead is unknown"),
        ({"count": 20, "scale": [1.0]}, "scale has 1 numbers for 10 features"),
    ],
)
def test_wrong_features_are_rejected(features, words):
    """With the key, as everywhere."""
    with pytest.raises(InvalidInput, match=words):
        contract(features=features).problem  # noqa: B018


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[columns]\nage = { range = [0, 1] }\nage = { ignore = true }\n", "age is declared twice"),
        ("[columns]\nage = { range = [0, 1] }\nage = { ignore = true }", "age is declared twice"),
        ("[columns]\n[target]\n[columns]\n", r"\[columns\] is declared twice"),
        ("[columns]\nage = { hash = 2, hash = 3 }\n", "hash is declared twice"),
    ],
)
def test_what_is_declared_twice_is_named(tmp_path, text, words):
    (tmp_path / "taciturn.toml").write_text(text)
    with pytest.raises(InvalidInput, match=f"{words}. Remove one of the two."):
        read_contract(tmp_path / "taciturn.toml")


def test_a_column_with_the_name_of_a_random_feature_is_rejected():
    """Weights are stored by name."""
    made = contract(columns={"cos 1": {"range": [0, 1]}}, features=4)
    with pytest.raises(InvalidInput, match="has the name of a random one"):
        made.plan()


def weighted(target, loss="logistic"):
    return contract_of(
        {"privacy": {"epsilon": 1.0}, "target": {"column": "y", **target}, "learning": {"loss": loss, "horizon": 1000}}
        | {"columns": {"age": {"range": [0, 100]}}}
    )


@pytest.mark.parametrize(
    ("target", "weights"),
    [
        ({"classes": ["no", "yes"], "class_weight": {"yes": 20}}, (1.0, 20.0)),
        ({"classes": [1, 2, 7], "class_weight": {"7": 3.0, "1": 0.5}}, (0.5, 1.0, 3.0)),
        ({"positive": ["yes"], "class_weight": {"rest": 1, "yes": 5}}, (1.0, 5.0)),
    ],
)
def test_weights_of_classes_are_those_of_the_estimators(target, weights):
    contract = weighted(target)
    assert contract.target.class_weight == weights
    assert contract.settings().class_weight == tuple(weight / max(weights) for weight in weights)
    assert contract_of(contract.declared) == contract
    plain = weighted({key: value for key, value in target.items() if key != "class_weight"})
    assert contract.digest != plain.digest
    assert "class_weight" not in str(plain.declared)  # older contracts keep their digest
    private, before = contract.plan().private, plain.plan().private
    assert private.problem.loss != before.problem.loss
    assert private.total_cost.mu == pytest.approx(before.total_cost.mu, rel=1e-3)
    assert f"{max(weights):g}" in target_in_words(contract)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            {"classes": ["no", "yes"], "class_weight": {"yse": 20}},
            "target.class_weight.yse is unknown. Did you mean yes",
        ),
        ({"classes": ["no", "yes"], "class_weight": {"yes": -1}}, "target.class_weight.yes must be positive"),
        (
            {"classes": ["no", "yes"], "class_weight": "balanced"},
            "target.class_weight must be a public weight for each class",
        ),
        ({"range": [0, 1], "class_weight": {"yes": 2}}, "target.class_weight is unknown"),
    ],
)
def test_wrong_weights_of_classes_are_rejected(target, words):
    with pytest.raises(InvalidInput, match=re.escape(words)):
        weighted(target, "squared" if "range" in target else "logistic")
