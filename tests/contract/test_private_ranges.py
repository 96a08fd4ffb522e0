"""Columns and targets whose ranges are found: what is read, learnt, written and predicted."""

import io
import json

import numpy as np
import pytest

from taciturn import InvalidInput
from taciturn.contract.contract import contract_of
from taciturn.contract.explain import explanation
from taciturn.contract.model_file import model_of, read_model, write_model
from taciturn.estimators.stream import Stream
from taciturn.methods.staged import Staged
from taciturn.readers.predictions import write_predictions
from taciturn.readers.rows import open_rows

ROWS = 6_000
COLUMNS = {
    "income": {"range": "private"},
    "town": {"categories": ["Oslo", "Rome"]},
    "age": {"range": [0, 100]},
    "year": {"range": "private"},
}
TARGETS = {
    "positive": {"column": "bought", "positive": ["yes"]},
    "range": {"column": "price", "range": "private"},
}


def contract(target, privacy=None, **learning):
    return contract_of(
        {
            "privacy": {"epsilon": 5.0} | (privacy or {}),
            "target": TARGETS[target],
            "learning": {"horizon": ROWS, **learning},
            "columns": COLUMNS,
        }
    )


def table(target, rows=ROWS):
    """A table in raw units, with gaps and texts among the numbers; ids come first."""
    rng = np.random.default_rng(3)
    income, year, age = rng.lognormal(10.0, 1.0, rows), rng.integers(2005, 2025, rows), rng.integers(18, 90, rows)
    price = 3_000.0 + 400.0 * (np.log(income) - 10.0) + 60.0 * (year - 2015)
    label = price if target == "range" else np.where(price > 3_000.0, "yes", "no")
    gaps = rng.random(rows) < 0.05
    lines = [f"income,town,age,year,{'price' if target == 'range' else 'bought'}"]
    for i in range(rows):
        text = ["", "unknown", "nan"][i % 3] if gaps[i] else f"{income[i]:.2f}"
        lines.append(f"{text},{['Oslo', 'Rome', 'Bonn'][i % 3]},{age[i]},{year[i]},{label[i]}")
    return ("\n".join(lines) + "\n").encode(), label


def learnt(target, **settings):
    made = contract(target, **settings)
    data, label = table(target)
    stream = Stream(made.plan(seed=4))
    for batch in open_rows(made, io.BytesIO(data)):
        stream.learn(batch.X, batch.y)
    return made, stream, data, label


def test_a_gap_or_a_text_in_a_found_column_is_a_missing_value_and_no_bad_row():
    made, _, data, _ = learnt("positive")
    [batch, *_] = open_rows(made, io.BytesIO(data))
    assert np.isnan(batch.X[:, 0]).any()
    assert made.found == (0, 4)


@pytest.mark.parametrize(
    ("target", "settings"), [("positive", {}), ("positive", {"precondition": True}), ("range", {})]
)
def test_a_model_of_raw_columns_is_learnt_and_its_file_predicts_the_same(target, settings, tmp_path):
    made, stream, data, label = learnt(target, **settings)
    assert isinstance(stream.plan.private, Staged)
    write_model(tmp_path / "model.json", made, stream)
    model = read_model(tmp_path / "model.json")
    assert model.contract == made
    X = np.concatenate([batch.X for batch in open_rows(made, io.BytesIO(data))])
    scores = model.scores(X)
    assert np.array_equal(scores, stream.problem.predict(stream.model, X))
    predicted = made.decode_predictions(scores)
    if target == "range":
        assert 1.0 - np.mean((predicted - label) ** 2) / np.var(label) > 0.5
    else:
        assert np.mean((predicted == "yes") == (label == "yes")) > 0.75


def test_the_file_has_what_was_found_and_nothing_before_anything_is(tmp_path):
    made, stream, _, _ = learnt("range")
    write_model(tmp_path / "model.json", made, stream)
    found = json.loads((tmp_path / "model.json").read_text())["found"]
    assert set(found["columns"]) == {"income", "year"}
    assert found["columns"]["year"]["center"] == pytest.approx(2015.0, abs=4.0)
    assert found["target"]["scale"] > 100.0
    assert found["matrix"] is None
    begun = Stream(made.plan(seed=4))
    write_model(tmp_path / "begun.json", made, begun)
    assert json.loads((tmp_path / "begun.json").read_text())["found"] is None
    assert not read_model(tmp_path / "begun.json").scores(np.full((1, 5), np.nan)).any()


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: found["columns"].pop("income"),
        lambda found: found["columns"]["income"].update(scale=-1.0),
        lambda found: found.update(matrix=[[1.0]]),
        lambda found: found.update(matrix="no"),
        lambda found: found.update(more=1),
        lambda found: found["target"].update(scale=0.0),
    ],
)
def test_a_damaged_file_is_rejected_in_a_sentence(damage, tmp_path):
    made, stream, _, _ = learnt("range")
    path = tmp_path / "model.json"
    write_model(path, made, stream)
    written = json.loads(path.read_text())
    damage(written["found"])
    path.write_text(json.dumps(written))
    with pytest.raises(InvalidInput):
        read_model(path).scores(np.zeros((1, 5)))


def test_a_contract_declares_what_is_found_and_explains_what_that_takes():
    made = contract("positive", precondition=True)
    assert contract_of(made.declared) == made
    text = "\n".join(map(str, explanation(made, made.plan())))
    rows = made.plan().private.rows_of_stages
    assert f"The first {rows:,} rows" in text
    assert "ranges, scales and a map that spreads features evenly" in text


def test_preconditioning_is_for_linear_models():
    with pytest.raises(InvalidInput, match="Remove one of the two"):
        contract("positive", precondition=True, features=10)


def test_the_plan_names_what_is_learnt_from():
    assert contract("positive").plan().as_data()["features"] == "standardised columns"


def test_too_few_rows_are_rejected_with_a_remedy():
    with pytest.raises(InvalidInput, match="State ranges or bounds"):
        contract("positive", {"epsilon": 0.01}).plan()


def test_a_row_with_a_missing_value_is_predicted():
    made, stream, _, _ = learnt("positive")
    rows = b"income,town,age,year\n,Oslo,30,2010\n5e4,Oslo,old,2010\n"
    batches = open_rows(made, io.BytesIO(rows), labelled=False, bad_rows="zero")
    out = io.StringIO()
    write_predictions(model_of(made, stream), batches, out)
    first, second = out.getvalue().splitlines()[1:]
    assert first in ("yes", "rest")
    assert second == '""'


def test_that_a_value_is_missing_can_be_learnt_from(tmp_path):
    """Buyers leave out their income: the indicator alone tells them apart."""
    made = contract_of(
        {
            "privacy": {"epsilon": 5.0},
            "target": TARGETS["positive"],
            "learning": {"horizon": ROWS},
            "columns": {"income": {"range": "private", "indicator": True}},
        }
    )
    rng = np.random.default_rng(6)
    gaps = rng.random(ROWS) < 0.5
    income = rng.lognormal(10.0, 1.0, ROWS)
    lines = [f"{'' if gap else number},{'yes' if gap else 'no'}" for gap, number in zip(gaps, income, strict=True)]
    data = "\n".join(["income,bought", *lines, ""]).encode()
    stream = Stream(made.plan(seed=4))
    for batch in open_rows(made, io.BytesIO(data)):
        stream.learn(batch.X, batch.y)
    write_model(tmp_path / "model.json", made, stream)
    model = read_model(tmp_path / "model.json")
    [batch] = open_rows(made, io.BytesIO(data), labelled=False)
    assert np.mean((made.decode_predictions(model.scores(batch.X)) == "yes") == gaps) > 0.95
