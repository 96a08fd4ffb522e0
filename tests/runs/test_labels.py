"""Label privacy in the fronts: rows of files, runs, contracts, and estimators."""

import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from small_run import write_case
from taciturn.cli.app import app
from taciturn.contract.contract import contract_of
from taciturn.contract.explain import public
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLogisticRegression
from taciturn.readers.rows import open_rows

pytestmark = pytest.mark.privacy
FILE = b"age,town,bought\n10,Oslo,yes\n20,Rome,perhaps\n30,Oslo,\nold,Rome,no\n50,Rome,no\n"


def declared(neighbours, **learning):
    return contract_of(
        {
            "privacy": {"epsilon": 1.0, "neighbours": neighbours},
            "target": {"column": "bought", "classes": ["no", "yes"]},
            "learning": learning,
            "columns": {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}},
        }
    )


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_row_keeps_its_features_whatever_its_label_is(format):
    """Where only labels are protected; otherwise all of a bad row is NaN."""
    file = FILE
    if format == "json":
        rows = [line.split(",") for line in FILE.decode().splitlines()[1:]]
        records = [dict(zip(("age", "town", "bought"), row, strict=True)) for row in rows]
        file = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    [of_rows], [of_labels] = (
        open_rows(declared(n), io.BytesIO(file), bad_rows="zero", format=format) for n in ("replace", "label")
    )
    assert np.isnan(of_rows.X).all(axis=1).tolist() == [False, True, True, True, False]
    assert np.isnan(of_labels.X).all(axis=1).tolist() == [False, False, False, True, False]
    assert np.isfinite(of_labels.X[[0, 1, 2, 4]]).all()
    np.testing.assert_array_equal(of_labels.y, of_rows.y)
    assert np.isnan(of_labels.y[1:4]).all()


def test_the_statistics_of_features_do_not_depend_on_a_label_of_a_file():
    """Two files that differ in labels, one of them bad: the same sum of features, to the bit, in a run of PQFTL."""
    made = declared("label", method="pqftl", horizon=5)
    private = made.plan(on_bad="zero", seed=1).private
    matrix = private.learner.statistic_size - private.problem.size
    sums = []
    for file in (FILE, FILE.replace(b"10,Oslo,yes", b"10,Oslo,never"), FILE.replace(b"50,Rome,no", b"50,Rome,yes")):
        [batch] = open_rows(made, io.BytesIO(file), bad_rows="zero")
        V, y = private.problem.clip(batch.X, batch.y)
        sums.append(private.learner.absorb(private.learner.start(), 0, V, y, private.problem.first_point)["sum"])
    assert all(np.array_equal(one[:matrix], sums[0][:matrix]) for one in sums)
    assert not any(np.array_equal(one[matrix:], sums[0][matrix:]) for one in sums[1:])


def test_a_run_says_what_is_protected(tmp_path):
    toml, data = write_case(tmp_path, 60)
    toml.write_text(toml.read_text().replace("[target]", 'neighbours = "label"\n\n[target]'))
    done = CliRunner().invoke(app, ["learn", str(toml), str(data), "--out", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    for said in (shown, model):
        assert "changing the label of any one example" in said["guarantee"]
        assert list(said["delivered_epsilon"]) == ["label"]
    assert "label of any one example" in (tmp_path / "run" / "report.html").read_text()
    checked = json.loads(CliRunner().invoke(app, ["check", str(toml), "--json"]).stdout)
    assert checked["plan"]["neighbours"] == "label"
    assert "the label of one row" in checked["in_plain_words"]
    assert any("all features of all rows" in line for line in checked["public"])
    assert not any("all features of all rows" in line for line in public(declared("replace")))


def test_a_run_states_both_relations(tmp_path):
    toml, data = write_case(tmp_path, 60)
    done = CliRunner().invoke(app, ["learn", str(toml), str(data), "--out", str(tmp_path / "run"), "--json"])
    shown = json.loads(done.stdout)
    assert list(shown["delivered_epsilon"]) == ["replace", "zero-out"]
    assert shown["delivered_epsilon"]["zero-out"] < shown["delivered_epsilon"]["replace"] <= 1.0
    assert "(zero-out), the same noise delivers" in shown["guarantee"]
    planned = ["plan", "--epsilon", "1", "--delta", "1e-6", "--dimension", "3", "--horizon", "1000"]
    for more, relations in (([], {"replace", "zero-out"}), (["--neighbours", "label"], {"label"})):
        data = json.loads(CliRunner().invoke(app, [*planned, *more, "--json"]).stdout)
        assert set(data["delivered_epsilon"]) == relations


@pytest.mark.parametrize("method", ["auto", "pqftl", "giga"])
def test_estimators_learn_with_less_noise(method):
    settings = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 1.0, "classes": 2, "method": method, "seed": 1}
    plans = {n: Settings("logistic", neighbours=n, **settings).plan(3, 2_000) for n in ("replace", "label")}
    noise = {n: plan.noise_sd(plan.releases) / getattr(plan.private.learner, "w", 1.0) for n, plan in plans.items()}
    assert noise["label"] < (0.9 if method == "pqftl" else 0.6) * noise["replace"]
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2_000, 3)) / 3.0
    for model, y in (
        (PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=[0, 1], neighbours="label"), X[:, 0] > 0.0),
        (PrivateLinearRegression(epsilon=1.0, feature_bound=1.0, label_bound=2.0, neighbours="label"), X[:, 0]),
    ):
        model.set_params(method=method if method == "pqftl" else "auto", seed=1)
        assert model.fit(X, y.astype(type(y[0]))).score(X, y) > 0.6
        assert "changing the label" in model.guarantee_
