"""A model's file holds the released model and nothing secret, and gives it back to the last bit."""

import io
import json

import numpy as np
import pytest

from contract.declared import TARGETS, contract, csv, read
from taciturn import InvalidInput
from taciturn.columns.labels import classes_of, probabilities
from taciturn.contract.model_file import model_of, read_model, write_model
from taciturn.estimators.stream import Stream
from taciturn.readers.predictions import write_predictions
from taciturn.readers.rows import open_rows

LABELS = {"positive": ["yes", "no"], "classes": ["yes", "maybe", "no"], "range": ["3", "9.5", "0"]}


def data(target):
    labels = LABELS[target]
    return csv(*(f"{i % 120},{['Oslo', 'Bonn'][i % 2]},{i % 8},{i % 5},x,{labels[i % len(labels)]}" for i in range(60)))


@pytest.fixture(params=[*TARGETS, "without intercept"])
def learnt(request):
    """A contract, a stream that has learnt under it, and its rows."""
    without = request.param == "without intercept"
    target = "positive" if without else request.param
    made = contract(target, horizon=60, intercept=not without)
    [batch] = read(made, data(target))
    stream = Stream(made.plan(seed=2))
    stream.learn(batch.X, batch.y)
    return made, stream, batch, target


def test_predictions_are_those_of_the_problem(learnt, tmp_path):
    made, stream, batch, target = learnt
    write_model(tmp_path / "model.json", made, stream)
    model = read_model(tmp_path / "model.json")
    assert model.contract == made
    assert np.array_equal(model.point, stream.model)
    scores = stream.plan.private.problem.predict(stream.model, batch.X)
    assert np.array_equal(model.scores(batch.X), scores)
    if target != "range":
        assert np.array_equal(model.probabilities(scores), probabilities(model.problem, scores))
        names = np.array(made.target.names, dtype=object)
        assert made.decode_predictions(scores).tolist() == names[classes_of(scores)].tolist()


def test_the_file_says_what_was_promised_and_what_it_cost(learnt, tmp_path):
    made, stream, _, target = learnt
    write_model(tmp_path / "model.json", made, stream)
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["guarantee"].startswith("Simulation: not private.")
    assert written["simulated"] is True
    assert (written["round"], written["releases"]) == (60, stream.k)
    assert written["spent"] == {"epsilon": stream.spent.epsilon, "delta": 1e-6}
    assert len(written["scores"]) == (3 if target == "classes" else 1)
    assert list(written["scores"][0]["weights"]) == list(made.feature_names)
    assert set(written) == {
        "format", "guarantee", "delivered_epsilon", "rests_on", "simulated", "spent", "round", "releases",
        "feature_bound", "features", "found", "scores", "contract",
    }  # fmt: skip


def test_the_delivered_epsilon_is_stated_for_both_relations(learnt, tmp_path):
    """By value, beside the sentence; a file of an earlier version has none."""
    made, stream, _, _ = learnt
    write_model(tmp_path / "model.json", made, stream)
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["delivered_epsilon"] == stream.plan.private.guarantee.epsilons
    assert set(written["delivered_epsilon"]) == {"replace", "zero-out"}
    assert read_model(tmp_path / "model.json").delivered_epsilon == written["delivered_epsilon"]
    del written["delivered_epsilon"]
    (tmp_path / "model.json").write_text(json.dumps(written))
    assert read_model(tmp_path / "model.json").delivered_epsilon == {}


def test_no_secret_is_in_it(learnt, tmp_path):
    """Not a number of the file is one of the exact state's, nor is its name."""
    made, stream, _, _ = learnt
    stream.dump(tmp_path / "state.npz")
    write_model(tmp_path / "model.json", made, stream)
    numbers = set()
    json.loads((tmp_path / "model.json").read_text(), parse_float=lambda text: numbers.add(float(text)))
    with np.load(tmp_path / "state.npz") as state:
        arrays = [state[name] for name in state.files if name.startswith(("exact/", "secret/"))]
    secrets = {float(value) for array in arrays for value in array.ravel() if array.dtype.kind in "fi"}
    assert len(secrets) > 5
    assert not numbers & {value for value in secrets if value not in (0.0, 1.0, 2.0)}


@pytest.mark.parametrize("features", [20, {"count": 20, "scale": 2.0, "seed": 3}])
@pytest.mark.parametrize("target", TARGETS)
def test_random_features_are_in_the_file(tmp_path, target, features):
    """Count, scale and seed are written and used for predictions, whatever the rule has become since."""
    made = contract(target, horizon=60, features=features)
    [batch] = read(made, data(target))
    stream = Stream(made.plan(seed=2))
    stream.learn(batch.X, batch.y)
    write_model(tmp_path / "model.json", made, stream)
    model = read_model(tmp_path / "model.json")
    assert model.contract == made
    scores = stream.plan.private.problem.predict(stream.model, batch.X)
    assert np.array_equal(model.scores(batch.X), scores)
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["features"]["count"] == 20
    assert list(written["scores"][0]["weights"])[:2] == ["cos 1", "cos 2"]
    scale = written["features"]["scale"] = [0.25] * made.dimension
    (tmp_path / "other.json").write_text(json.dumps(written))
    other = read_model(tmp_path / "other.json")
    assert other.problem.features.scale == tuple(scale)
    assert not np.array_equal(other.scores(batch.X), scores)
    assert read_model(tmp_path / "model.json").problem.features == stream.plan.private.problem.features


def test_a_model_before_any_release_is_data_free():
    made = contract(horizon=60)
    model = model_of(made, Stream(made.plan()))
    assert (model.round, model.releases, model.spent.epsilon, model.simulated) == (0, 0, 0.0, False)
    assert not model.point.any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.update(format="taciturn model 2"), 'is not a "taciturn model 1" file'),
        (lambda m: m.pop("format"), "is no"),
        (lambda m: m.update(extra=1), "extra is unknown"),
        (lambda m: m.pop("guarantee"), "guarantee is missing"),
        (lambda m: m.pop("round"), "round is missing"),
        (lambda m: m["scores"].pop(), "scores must be 1 lists"),
        (lambda m: m["scores"][0]["weights"].pop("age"), "scores.weights.age is missing"),
        (lambda m: m["scores"][0]["weights"].update(age="1"), "scores.weights.age must be a number"),
        (lambda m: m["scores"][0]["weights"].update(agee=1), "scores.weights.agee is unknown"),
        (lambda m: m["scores"][0]["intercept"].update(constant=3), "follows from the contract"),
        (lambda m: m["contract"]["privacy"].pop("epsilon"), "privacy.epsilon is missing"),
        (lambda m: m["contract"].update(seed=1), "seed is unknown"),
    ],
)
def test_a_file_that_was_changed_is_rejected(tmp_path, change, words):
    made = contract(horizon=60)
    write_model(tmp_path / "model.json", made, Stream(made.plan()))
    content = json.loads((tmp_path / "model.json").read_text())
    change(content)
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(InvalidInput, match=words):
        read_model(tmp_path / "model.json")


def test_anything_but_a_model_is_rejected(tmp_path):
    (tmp_path / "a").write_text("{")
    (tmp_path / "b").write_text("[]")
    for name, words in (("a", "is not valid JSON"), ("b", "is no"), ("nowhere", "cannot be read: No such file")):
        with pytest.raises(InvalidInput, match=words):
            read_model(tmp_path / name)


def test_writing_replaces_the_file_as_a_whole(tmp_path, monkeypatch):
    """A crash on the way leaves the old model."""
    made = contract(horizon=60)
    write_model(tmp_path / "model.json", made, Stream(made.plan()))
    before = (tmp_path / "model.json").read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_model(tmp_path / "model.json", made, Stream(made.plan()))
    assert (tmp_path / "model.json").read_bytes() == before


def test_predictions_are_lines_in_the_order_of_rows(learnt):
    made, stream, batch, target = learnt
    model = model_of(made, stream)
    out, rows = io.StringIO(), data(target).replace("\n7,Bonn", "\nbad,Bonn")
    batches = open_rows(made, io.BytesIO(rows.encode()), bad_rows="zero", labelled=False, block=7)
    assert write_predictions(model, batches, out, proba=target != "range") == 60
    head, *lines = out.getvalue().splitlines()
    assert head.split(",")[0] == "prediction"
    expected, blank = made.decode_predictions(model.scores(batch.X)).tolist(), "" if target != "range" else '""'
    assert [line.split(",")[0] for line in lines] == [blank if i == 7 else str(v) for i, v in enumerate(expected)]
    if target != "range":
        assert np.array_equal(
            np.array([float(v) for v in lines[0].split(",")[1:]]), model.probabilities(model.scores(batch.X))[0]
        )


def test_predictions_for_machines(learnt):
    made, stream, batch, target = learnt
    model, out = model_of(made, stream), io.StringIO()
    write_predictions(model, read(made, data(target)), out, proba=target != "range", as_json=True)
    first = json.loads(out.getvalue().splitlines()[0])
    assert first["prediction"] == made.decode_predictions(model.scores(batch.X))[0]
    assert list(first.get("probabilities", {})) == [str(name) for name in made.target.names]


def test_numbers_and_hinge_have_no_probabilities():
    for made in (contract("range"), contract("positive", loss="hinge")):
        with pytest.raises(InvalidInput, match="have no probabilities"):
            write_predictions(model_of(made, Stream(made.plan())), [], io.StringIO(), proba=True)
