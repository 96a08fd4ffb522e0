"""Predictions for a few rows are those of the definition, to the last bit."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from taciturn.contract.contract import contract_of
from taciturn.contract.model_file import Model
from taciturn.kernel.accounting.cost import Spent
from taciturn.service.predictor import MOST, RowPredictor
from taciturn.service.rows import RowBatch, encoded

TARGETS = {
    "two classes": {"column": "y", "positive": ["yes"]},
    "three classes": {"column": "y", "classes": ["a", "b", "c"]},
    "a number": {"column": "y", "range": [0, 10]},
}
COLUMNS = {
    "age": {"range": [0, 100]},
    "income": {"range": [1, 1e6], "scale": "log", "missing": 5.0, "indicator": True},
    "town": {"categories": ["Oslo", "Rome"], "missing": "category"},
    "size": {"range": [-1, 1], "missing": "bad"},
    "steps": {"bins": [0, 10, 100]},
    "ip": {"hash": 8},
    "words": {"text": {"hash": 8}},
    "day": {"date": ["2020-01-01", "2030-01-01"], "cycle": ["weekday"]},
}
NUMBERS = {"a": {"range": [0, 1]}, "b": {"range": [-5, 5]}}
CONTRACTS = [
    contract_of({"privacy": {"epsilon": 1.0}, "target": target, "columns": columns})
    for target in TARGETS.values()
    for columns in (COLUMNS, NUMBERS)
]
MODELS = [
    Model(c, np.random.default_rng(i).normal(size=c.problem.size), 10, 1, Spent(1.0, 1e-6), "", False)
    for i, c in enumerate(CONTRACTS)
]
FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30)
VALUES = FINITE | st.floats(-10, 10) | st.sampled_from(["Oslo", "Rome", "", "7", "2024-05-31", True, None, [1], {}])
GOOD = {"age": FINITE, "size": FINITE, "a": st.floats(-1, 2), "b": st.integers(-9, 9), "steps": FINITE}
GOOD |= {"income": FINITE | st.none(), "day": st.dates().map(str), "town": VALUES, "ip": VALUES, "words": st.text()}
RECORDS = st.fixed_dictionaries(GOOD)


@given(st.sampled_from(range(len(MODELS))), st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_it_is_the_definition_or_leaves_the_rows_to_it(number, records, data):
    model = MODELS[number]
    if data.draw(st.booleans()):
        records[0][data.draw(st.sampled_from(sorted(GOOD)))] = data.draw(VALUES)
    fast = RowPredictor(model.contract).scores(model, records)
    event("fast" if fast is not None else "left to the definition")
    if fast is None:
        return
    [(X, _, _, bad)] = encoded([RowBatch(records, (), len(records))], model.contract, labelled=False)
    assert not bad.any()
    assert np.array_equal(fast, model.scores(X))


@given(st.sampled_from([1, 3, 5]), st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=MOST))
def test_plain_numbers_are_never_left_to_it(number, rows):
    model = MODELS[number]
    records = [{"a": a, "b": b, "other": "x"} for a, b in rows]
    fast = RowPredictor(model.contract).scores(model, records)
    [(X, _, _, _)] = encoded([RowBatch(records, (), len(records))], model.contract, labelled=False)
    assert np.array_equal(fast, model.scores(X))


@pytest.mark.parametrize("record", [{"a": 1}, {"a": True, "b": 1}, {"a": "1", "b": 1}, {"a": None, "b": 1}, 7, None])
def test_rows_that_are_not_plain_are_left_to_it(record):
    model = MODELS[1]
    assert RowPredictor(model.contract).scores(model, [record]) is None
    assert RowPredictor(model.contract).scores(model, [{"a": 1, "b": 1}] * (MOST + 1)) is None
