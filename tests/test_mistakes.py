"""Mistakes of users in all fronts: each is answered by a sentence with a remedy, none is silent, and none shows a row.

The tables hold values that begin with SECRET, which no message and no output may contain.
"""

from __future__ import annotations

import datetime
import json
import sys
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.pipeline import make_pipeline

from taciturn import InvalidInput, TaciturnError
from taciturn.cli import app as cli
from taciturn.estimators import river, scaling, sklearn
from taciturn.estimators.search import PrivateSearchCV
from taciturn.estimators.stream import PrivacyWarning

CONTRACT = """[privacy]
epsilon = 1.0
[target]
column = "bought"
classes = ["no", "yes"]
[learning]
horizon = 100
[columns]
age = { range = [0, 100] }
town = { categories = ["Oslo", "Rome"] }
name = { ignore = true }
"""
HEADER = "age,town,name,bought"
GOOD = [f"{20 + i},Oslo,SECRETNAME{i},{'yes' if i % 2 else 'no'}" for i in range(20)]
TABLE = "\n".join([HEADER, *GOOD, ""])


def with_row(row):
    return "\n".join([HEADER, *GOOD[:3], row, *GOOD[3:], ""])


CONTRACTS = {
    "a misspelt key": ("epsilon =", "epsillon =", "privacy.epsillon is unknown. Did you mean epsilon?"),
    "an abbreviated key": ("epsilon =", "eps =", "Did you mean epsilon?"),
    "a misspelt table": ("[columns]", "[colums]", "Did you mean columns?"),
    "a table in capitals": ("[target]", "[Target]", "Did you mean target?"),
    "a key of another table": ("horizon = 100", "epsilon = 1", "learning.epsilon is unknown"),
    "a number in quotes": ("epsilon = 1.0", 'epsilon = "1.0"', "Write it without quotes"),
    "a budget that is negative": ("epsilon = 1.0", "epsilon = -1", "epsilon must be positive"),
    "a budget beyond the sampler": ("epsilon = 1.0", "epsilon = 1e6", "Take a smaller epsilon"),
    "a delta beyond the sampler": ("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-300", "Take a larger delta"),
    "a delta of 1": ("epsilon = 1.0", "epsilon = 1.0\ndelta = 1", "Take it well below one over the number of people"),
    "a horizon that is no integer": ("horizon = 100", "horizon = 99.5", "must be an integer"),
    "a horizon of any size": ("horizon = 100", "horizon = 1e300", "Take a smaller one"),
    "a horizon beyond exact sums": ("horizon = 100", "horizon = 1e12", 'or set method = "giga"'),
    "a loss that is misspelt": ("horizon = 100", 'loss = "logistc"', "Did you mean logistic?"),
    "a loss of numbers for classes": ("horizon = 100", 'loss = "squared"', "Use logistic or hinge"),
    "a kind that is misspelt": ("{ range", "{ rnage", "Did you mean range?"),
    "a range the wrong way round": ("[0, 100]", "[100, 0]", "the lower first"),
    "two kinds": ("[0, 100]", "[0, 100], hash = 4", "exactly one of"),
    "a category twice": ('["Oslo", "Rome"]', '["Oslo", "Oslo"]', "Name each once"),
    "the target as a feature": ("town =", "bought =", "remove it from [columns]"),
    "a bound on users without ids": ("epsilon = 1.0", "epsilon = 1.0\nrows_per_user = 4", "State the column"),
    "a draft that is not filled in": ("{ range = [0, 100] }", '"?"', "state the range of age"),
    "a release that is no number of rows": ("horizon = 100", "release = -5", "or a number of rows, 1 or more; got -5"),
    "a table with two letters swapped": ("[target]", "[tagret]", "tagret is unknown. Did you mean target?"),
    "weights that count labels": (
        'classes = ["no", "yes"]',
        'classes = ["no", "yes"]\nclass_weight = "balanced"',
        "as in class_weight = { yes = 20 }; got 'balanced'",
    ),
    "a width of another loss": ("horizon = 100", "huber_width = 0.1", 'huber_width = 0.1 is for loss = "huber"'),
    "truth values": ('["no", "yes"]', "[false, true]", 'Write truth values as texts: "true" and "false"'),
    "a name that needs quotes": (
        "town =",
        "gr\u00f6\u00dfe =",
        "names with a blank or a letter that is not from a to z",
    ),
    "TOML that is not valid": ("[privacy]", "[privacy", "is not valid TOML"),
}


@pytest.fixture
def shell(capsys, monkeypatch, tmp_path):
    """The command with a contract and a table: status and both outputs; no mistake shows a row."""

    def run(*arguments, contract=CONTRACT, table=TABLE):
        (tmp_path / "c.toml").write_bytes(contract if isinstance(contract, bytes) else contract.encode())
        (tmp_path / "t.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["taciturn", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert "SECRET" not in said.out + said.err
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.mark.parametrize(("old", "new", "words"), CONTRACTS.values(), ids=CONTRACTS)
def test_contracts(shell, old, new, words):
    assert old in CONTRACT
    status, _, said = shell("check", "c.toml", contract=CONTRACT.replace(old, new, 1))
    assert status == 2
    assert said.count("\n") == 1
    assert words in said


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_contract_in_another_encoding(shell, encoding):
    status, _, said = shell("check", "c.toml", contract=CONTRACT.replace("town", '"gr\u00f6\u00dfe"').encode(encoding))
    assert (status, said) == (2, "taciturn: c.toml is not UTF-8 text. Save it in that encoding.\n")


LEARN = ("learn", "c.toml", "t.csv", "--out", "run", "--quiet")  # without progress, which a slow machine shows
TABLES = {
    "a column that is misspelt": (LEARN, TABLE.replace("age", "agee", 1), "Did you mean agee?"),
    "a column that is not declared": (LEARN, TABLE.replace("bought", "bought,more", 1), "Declare it under [columns]"),
    "a column twice": (LEARN, TABLE.replace("name", "age", 1), "twice in the header"),
    "no header": (LEARN, "\n".join(["SECRETAGE,SECRETTOWN,SECRETNAME,yes", *GOOD]), "add a line of names before it"),
    "an empty file": (LEARN, "", "must be a header"),
    "a text for a number": (LEARN, with_row("SECRETAGE,Oslo,x,yes"), "line 5: age is not a number. Correct the row"),
    "an unknown class": (LEARN, with_row("1,Oslo,x,SECRETCLASS"), "bought is none of the classes"),
    "a label that is missing": (LEARN, with_row("1,Oslo,x,"), "bought is missing"),
    "too few fields": (LEARN, with_row("SECRETAGE"), "it has 1 fields instead of 4"),
    "a quote that is not closed": (LEARN, with_row('1,"SECRETTOWN,x,yes'), "a quote is not balanced"),
    "bytes that are no UTF-8": (LEARN, with_row("1,Oslo,x,yes").encode() + b"1,\xff,SECRETNAME,no\n", "not UTF-8"),
    "all rows bad": (LEARN, "\n".join([HEADER, *["SECRETAGE,Oslo,x,yes"] * 9]), "Run taciturn check"),
    "more rows than the horizon": (LEARN, TABLE + "\n".join(GOOD * 5), "more rows than the 100"),
    "a command that is misspelt": (("lern", "c.toml"), TABLE, "No such command"),
    "an option that is misspelt": ((*LEARN, "--bad-row", "zero"), TABLE, "--bad-rows"),
    "a file that is not there": (("learn", "c.toml", "no.csv"), TABLE, "no.csv"),
    "a format that is wrong": ((*LEARN, "--format", "json"), TABLE, "all rows of the data are bad"),
    "a horizon that is no integer": (
        ("plan", "--epsilon", "1", "--delta", "1e-6", "--dimension", "3", "--horizon", "5.5"),
        TABLE,
        "not a valid integer",
    ),
    "the column of ids as the target": (
        ("init", "t.csv", "--target", "name", "--user", "name", "-y", "--force"),
        TABLE,
        "cannot be both the column of ids and the target",
    ),
    "a column to draft that is not there": (("init", "t.csv", "--target", "buoght", "-y"), TABLE, "Name one of these"),
}


@pytest.mark.parametrize(("arguments", "table", "words"), TABLES.values(), ids=TABLES)
def test_tables_and_commands(shell, arguments, table, words):
    status, _, said = shell(*arguments, table=table)
    assert status == 2
    assert said.count("\n") == 1
    assert words in said


def test_a_column_to_keep_that_is_not_there(shell):
    assert shell(*LEARN)[0] == 0
    status, _, said = shell("predict", "run/model.json", "t.csv", "--keep", "nmae")
    assert (status, said.count("\n")) == (2, 1)
    assert "Did you mean name?" in said


def test_a_delta_that_promises_nothing_is_a_warning(shell):
    large = CONTRACT.replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 0.1")
    for command in (("check", "c.toml"), LEARN):
        status, out, said = shell(*command, contract=large)
        assert status == 0
        assert "delta = 0.1 is not below 1 / 100" in " ".join((out + said).split())


def test_a_prediction_before_the_first_release_is_a_warning(shell):
    late = CONTRACT.replace("horizon = 100", "horizon = 100\nrelease = 50")
    assert shell(*LEARN, contract=late)[0] == 0
    status, _, said = shell("predict", "run/model.json", "t.csv", contract=late)
    assert status == 0
    assert "no model has been released yet" in said
    assert "after row 50" in said


def test_the_dry_run_shows_no_value_but_on_demand(shell):
    table = with_row("SECRETAGE,SECRETTOWN,x,SECRETCLASS")
    for options in ((), ("--json",)):
        status, out, _ = shell("check", "c.toml", "t.csv", *options, table=table)
        assert status == 0
        assert "age is not a number" in out


def test_the_dry_run_says_what_is_no_missing_value(shell):
    table = with_row("NA,Oslo,x,yes")
    _, out, _ = shell("check", "c.toml", "t.csv", table=table)
    said = " ".join(out.split())
    assert "age: write a number as in 4821.85, without separators of thousands" in said
    assert "a text such as NA or - is not a missing value" in said
    _, out, _ = shell("check", "c.toml", "t.csv", table=with_row(",Oslo,x,yes"))
    assert "is not a missing value" not in out


def test_files_that_are_not_there_are_named(shell):
    """Of any format, and a folder without a run."""
    for name in ("nowhere.parquet", "nowhere.csv"):
        status, _, said = shell("check", "c.toml", name)
        assert (status, f"{name} cannot be read: No such file or directory. Check its name" in said) == (2, True)
    status, _, said = shell("renew", "c.toml", "nope", "--out", "next")
    assert (status, "nope holds no run that could be followed" in said) == (2, True)


def test_the_dry_run_says_how_dates_are_written(shell):
    declared = CONTRACT.replace("[columns]\n", '[columns]\nsince = { date = ["2020-01-01", "2024-01-01"] }\n')
    table = TABLE.replace(HEADER, f"since,{HEADER}").splitlines()
    table = "\n".join([table[0], *(f"31.12.2023,{line}" for line in table[1:])])
    _, out, _ = shell("check", "c.toml", "t.csv", contract=declared, table=table)
    assert "since: write a date as in 2023-12-31, and not day.month.year" in " ".join(out.split())


def test_the_dry_run_tells_a_column_without_values(shell):
    """A name that no object of JSON lines has is not in an error of a header, as there is none."""
    rows = "\n".join(f'{{"agee": {20 + i}, "town": "Oslo", "bought": "yes"}}' for i in range(9))
    _, out, _ = shell("check", "c.toml", "t.csv", "--format", "json", table=rows)
    said = " ".join(out.split())
    assert "no row has a value of age: declare { ignore = true } if it is known to be empty; in JSON lines" in said
    assert "of the values of age are missing" not in said


X = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
Y = np.arange(20) % 2
BOUNDED = {"feature_bound": 1.0, "classes": [0, 1], "horizon": 1e5}


def logistic(**settings):
    return sklearn.PrivateLogisticRegression(**({"epsilon": 5.0} | BOUNDED | settings))


def search(**settings):
    return PrivateSearchCV(logistic(horizon=None), {"radius": [1.0, 2.0]}, **settings)


def without_a_label(nothing):
    """Classes of twenty rows, of which the last is missing."""
    return np.array([*["no", "yes"] * 9, "no", nothing], dtype=object)


ESTIMATORS = {
    "a label that is None": (lambda: logistic(classes=None).fit(X, without_a_label(None)), "a label that is missing"),
    "a label that is NaN": (lambda: logistic().fit(X, without_a_label(np.nan)), "a label that is missing"),
    "a label of pandas that is missing": (
        lambda: logistic(feature_bound=None, columns={0: {"range": [-1, 1]}, 1: {"ignore": True}}).fit(
            X, pd.Series(without_a_label(None), dtype="string")
        ),
        "a label that is missing",
    ),
    "a number to predict that is missing": (
        lambda: linear().fit(X, np.where(Y, 1.0, np.nan)),
        "Leave such rows out, of X and users, too",
    ),
    "a quantile of another loss": (
        lambda: linear(quantile=0.9).fit(X, Y),
        'quantile = 0.9 is for loss = "quantile". State that loss',
    ),
    "one class": (lambda: logistic(classes=[1]).fit(X, Y), "State all of them, as in classes=[0, 1]"),
    "a search with folds": (lambda: search(cv=5), "state validation="),
    "a search with a score": (lambda: search(scoring="f1"), "clipped losses"),
    "a search in processes": (lambda: search(n_jobs=2), "one after the other"),
    "a search for users": (lambda: search().fit(X, Y, users=Y), "A search is proven for rows"),
    "a window in words": (lambda: logistic(forget="week").partial_fit(X, Y), "or a number of rows; got 'week'"),
    "features of another library": (lambda: logistic(features="rbf").fit(X, Y), "or a number of random features"),
    "random_state": (lambda: logistic(random_state=1), "seed"),
    "C": (lambda: logistic(C=1.0), "ridge"),
    "sample_weight": (lambda: logistic().fit(X, Y, sample_weight=Y), "sample_weight"),
    "a keyword that is misspelt": (lambda: logistic(epsillon=1.0), "Did you mean epsilon?"),
    "a method that is misspelt": (lambda: logistic(method="gigga").fit(X, Y), "Did you mean giga?"),
    "a horizon that is no integer": (lambda: logistic(horizon=99.5).partial_fit(X, Y), "must be an integer"),
    "a horizon of any size": (lambda: logistic(horizon=1e300).partial_fit(X, Y), "Take a smaller one"),
    "a label that was not declared": (lambda: logistic().fit(X, np.full(20, 7)), "State all of them"),
    "classes that are not stated": (lambda: logistic(classes=None).partial_fit(X, Y), "needs classes"),
    "users without a bound": (lambda: logistic().fit(X, Y, users=Y), "State rows_per_user=4"),
    "a bound without users": (lambda: logistic(rows_per_user=4).fit(X, Y), "give users="),
    "river: names that are not stated": (
        lambda: river.PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=[0, 1]).learn_one(
            {"a": 1.0}, 1
        ),
        "state features=",
    ),
    "no bound after declared columns": (
        lambda: make_pipeline(
            scaling.PublicColumns({0: {"range": [-1, 1]}, 1: {"range": [-1, 1]}}), logistic(feature_bound=None)
        ).fit(X, Y),
        "In a pipeline after PublicColumns it is that transformer's feature_bound",
    ),
    "dates among the features": (
        lambda: logistic().fit(pd.DataFrame({"a": X[:, 0], "b": pd.to_datetime(["1987-06-05"] * 20)}), Y),
        'as in columns={"day": {"date":',
    ),
    "dates among the features, whose ranges are found": (
        lambda: logistic(feature_bound="private").fit(
            pd.DataFrame({"a": X[:, 0], "b": pd.to_datetime(["1987-06-05"] * 20, utc=True)}), Y
        ),
        'as in columns={"day": {"date":',
    ),
    "an array of dates": (
        lambda: logistic().fit(np.full((20, 2), np.datetime64("1987-06-05")), Y),
        'as in columns={"day": {"date":',
    ),
    "a frame of durations": (
        lambda: logistic().fit(pd.DataFrame({"a": pd.to_timedelta(np.arange(20), "D")}), Y),
        'as in columns={"day": {"date":',
    ),
    "dates to predict": (lambda: linear().fit(X, pd.to_datetime(["1987-06-05"] * 20)), "such as days since"),
    "dates with a zone to predict": (
        lambda: linear().fit(X, pd.Series(pd.to_datetime(["1987-06-05"] * 20, utc=True))),
        "such as days since",
    ),
    "durations to predict": (lambda: linear().fit(X, np.full(20, np.timedelta64(5, "D"))), "such as days since"),
    "dates to predict in a stated range": (
        lambda: linear(label_bound=None, label_range=(0, 1e4)).fit(X, pd.Series(pd.to_datetime(["1987-06-05"] * 20))),
        "such as days since",
    ),
    "dicts to predict": (lambda: linear().fit(X, [{"a": 1}] * 20), "such as dates, durations, lists or dicts"),
    "lists in a column of texts": (
        lambda: logistic(feature_bound=None, columns={"note": {"text": {"hash": 8}}}).fit(
            pd.DataFrame({"note": [["a"], ["b"]] * 10}), Y
        ),
        "row 0 has a value in column note that is a list",
    ),
    "a dict in a column of categories": (
        lambda: logistic(feature_bound=None, columns={"town": {"categories": ["Oslo", "Rome"]}}).fit(
            pd.DataFrame({"town": ["Oslo"] * 19 + [{"a": 1}]}), Y
        ),
        "row 19 has a value in column town that is a dict",
    ),
    "lists in a column whose range is found": (
        lambda: logistic(feature_bound=None, columns={"a": {"range": "private"}}).fit(
            pd.DataFrame({"a": [["a"], ["b"]] * 10}), Y
        ),
        "row 0 has a value in column a that is a list",
    ),
    "river: a list in a column of texts": (
        lambda: river.PrivateLogisticRegression(epsilon=1.0, columns={"note": {"text": {"hash": 8}}}).learn_one(
            {"note": ["a"]}, True
        ),
        "this example has a value in column note that is a list",
    ),
    "river: a row of a frame": (
        lambda: river.PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, features=["a"]).learn_one(
            pd.Series({"a": 1.0}), True
        ),
        "got Series. Give one as x.to_dict()",
    ),
    "river: a weight of an example": (
        lambda: river.PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, features=["a"]).learn_one(
            {"a": 1.0}, True, w=2.0
        ),
        "PrivateLogisticRegression.learn_one has no w. A weight of a row would be one more private value",
    ),
    "river: no dict": (
        lambda: river.PrivateLogisticRegression(
            epsilon=1.0, feature_bound=1.0, classes=[0, 1], features=["a"]
        ).learn_one([1.0], 1),
        "an example is a dict",
    ),
    "river: a bound without the key of users": (
        lambda: river.PrivateLogisticRegression(
            epsilon=1.0, feature_bound=1.0, classes=[0, 1], features=["a"], rows_per_user=4
        ).learn_one({"a": 1.0}, 1),
        "State both",
    ),
}


@pytest.mark.parametrize(("mistake", "words"), ESTIMATORS.values(), ids=ESTIMATORS)
def test_estimators(mistake, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with pytest.raises((TaciturnError, InvalidInput)) as caught:
            mistake()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("delta", [1e-2, 0.5])
def test_a_large_delta_is_a_warning_of_estimators(delta):
    with pytest.warns(PrivacyWarning, match=f"delta = {delta:g} is not below 1 / 100,000"):
        logistic(delta=delta).partial_fit(X, Y)
    model = river.PrivateLogisticRegression(
        epsilon=5.0, delta=delta, feature_bound=1.0, classes=[0, 1], features=["a"], horizon=1e5
    )
    with pytest.warns(PrivacyWarning, match=f"delta = {delta:g} is not below"):
        model.learn_one({"a": 1.0}, 1)


SECRET = 987654.25
SHOWN = ("SECRET", "987654", "1987")  # no message has them


def holding(value):
    """Rows of numbers, and this value."""
    rows = np.full((20, 2), 0.5, dtype=object)
    rows[7, 1] = value
    return rows


ROWS = {
    "a text among numbers": holding("SECRETTOWN"),
    "texts": np.full((20, 2), "SECRETTOWN"),
    "bytes": np.full((20, 2), b"SECRETTOWN"),
    "a frame with a text": pd.DataFrame(holding("SECRETTOWN"), columns=["a", "b"]),
    "a frame of categories": pd.DataFrame({"a": [1.0] * 20, "b": pd.Categorical(["SECRETTOWN"] * 20)}),
    "a frame of dates": pd.DataFrame({"a": [1.0] * 20, "b": pd.to_datetime(["1987-06-05"] * 20)}),
    "a date": holding(datetime.date(1987, 6, 5)),
    "a list": holding([SECRET]),
    "a dict": holding({"town": "SECRETTOWN"}),
    "complex numbers": np.full((20, 2), SECRET + 1j),
    "one dimension": np.full(20, SECRET),
    "three dimensions": np.full((20, 2, 2), SECRET),
    "a number": SECRET,
    "a text": "SECRETTOWN",
    "dicts": [{"town": "SECRETTOWN"}] * 20,
    "rows of unequal length": [[SECRET, 1.0], [SECRET]] * 10,
    "infinity": np.where(np.arange(40).reshape(20, 2) == 3, np.inf, SECRET),
    "NaN": np.where(np.arange(40).reshape(20, 2) == 3, np.nan, SECRET),
    "sparse NaN": csr_matrix(np.where(np.arange(40).reshape(20, 2) == 3, np.nan, SECRET)),
}
LABELS = {
    "a text": np.array([*[0, 1] * 9, 0, "SECRETCLASS"], dtype=object),
    "texts": ["SECRETCLASS"] * 20,
    "bytes": [b"SECRETCLASS"] * 20,
    "complex numbers": np.full(20, SECRET + 1j),
    "dates": pd.Series(pd.to_datetime(["1987-06-05"] * 20)),
    "two columns": np.full((20, 2), SECRET),
    "a number": SECRET,
    "dicts": [{"town": "SECRETCLASS"}] * 20,
    "NaN": [*[SECRET] * 19, np.nan],
    "too few": [SECRET] * 19,
}


def linear(**settings):
    return sklearn.PrivateLinearRegression(**({"epsilon": 5.0, "feature_bound": 1.0, "label_bound": 1.0} | settings))


def shown_by(call):
    """What an error says, with those that it came from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except (ValueError, TypeError, OverflowError) as error:
            return "".join(traceback.format_exception_only(error)) + (
                "" if error.__suppress_context__ else str(error.__context__)
            )
    return None


@pytest.mark.privacy
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_errors_of_scikit_learn_show_no_value_of_a_row(rows):
    calls = [lambda: logistic().fit(rows, Y), lambda: logistic(seed=1).fit(X, Y).predict(rows)]
    for transformer in (scaling.PublicScaler((0, 1)), scaling.NormClip(), scaling.PublicRandomFeatures(count=2)):
        calls.append(lambda transformer=transformer: transformer.fit(X).transform(rows))
    said = [shown_by(call) for call in calls]
    assert said[0] is not None or isinstance(rows, pd.DataFrame)
    assert not [words for words in said if words is not None and any(value in words for value in SHOWN)]


@pytest.mark.privacy
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_errors_of_scikit_learn_show_no_label(labels):
    columns = {0: {"range": [-1, 1]}, 1: {"range": [-1, 1]}}
    declared = {"feature_bound": None, "columns": columns}
    calls = [
        lambda: logistic().fit(X, labels),
        lambda: logistic(**declared).fit(X, labels),
        lambda: logistic(seed=1).fit(X, Y).score(X, labels),
        lambda: linear().fit(X, labels),
        lambda: linear(label_bound=None, label_range=(0, 1), **declared).fit(X, labels),
        lambda: linear(seed=1).fit(X, Y).score(X, labels),
    ]
    said = [shown_by(call) for call in calls]
    assert said[0] is not None
    assert not [words for words in said if words is not None and any(value in words for value in SHOWN)]


@pytest.mark.privacy
@pytest.mark.parametrize("value", ["SECRET", SECRET, [SECRET], {"a": "SECRET"}, b"SECRET", SECRET + 1j, np.inf, None])
def test_errors_of_river_show_no_value(value):
    stated = {"epsilon": 1.0, "feature_bound": 1.0, "features": ["a"]}
    declared = {"epsilon": 1.0, "columns": {"a": {"range": [0, 1], "missing": "bad"}}}
    for settings in (stated, declared):
        calls = [
            lambda settings=settings: river.PrivateLogisticRegression(**settings).learn_one({"a": value}, True),
            lambda settings=settings: river.PrivateLogisticRegression(**settings).predict_one({"a": value}),
            lambda settings=settings: river.PrivateLogisticRegression(**settings).learn_one({"a": 1.0}, value),
            lambda settings=settings: river.PrivateLinearRegression(**settings, label_bound=1.0).learn_one(
                {"a": 1.0}, value
            ),
        ]
        said = [shown_by(call) for call in calls]
        assert said[2] is not None
        assert not [words for words in said if words is not None and any(part in words for part in SHOWN)]


def test_a_prediction_before_the_first_release_is_a_warning_of_estimators():
    """Once for a stream, and of several rows only in river, where single rows are always predicted first."""
    late = logistic(release=50, seed=1).partial_fit(X, Y)
    with pytest.warns(PrivacyWarning, match="after 20 examples.*released after example 50"):
        late.predict(X)
    model = river.PrivateLogisticRegression(epsilon=5.0, feature_bound=1.0, features=["a"], release=3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        late.predict_proba(X)
        late.partial_fit(X, Y).partial_fit(X, Y).predict(X)
        model.predict_one({"a": 1.0})
        model.learn_one({"a": 1.0}, True)
        model.predict_one({"a": 1.0})
    with pytest.warns(PrivacyWarning, match="after 1 examples.*released after example 3"):
        model.predict_many(pd.DataFrame({"a": [1.0]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            model.predict_one({"a": 1.0})
            model.predict_many(pd.DataFrame({"a": [1.0]}))
            model.learn_one({"a": 1.0}, True)


def test_probabilities_that_a_model_of_river_does_not_have():
    model = river.PrivateNaiveBayes(buckets=8, classes=[0, 1], epsilon=1.0, feature_bound=1.0)
    with pytest.raises(NotImplementedError, match="Use predict_one, or PrivateLogisticRegression"):
        model.predict_proba_one({"a": 1})


def test_there_are_forty():
    assert len(CONTRACTS) + len(TABLES) + len(ESTIMATORS) >= 40


def test_the_cases_fail_without_their_mistake(shell):
    """Else they would prove nothing: the contract and the table are valid as they stand."""
    status, out, said = shell(*LEARN, "--json")
    assert (status, said, json.loads(out)["rows"]) == (0, "", 20)
