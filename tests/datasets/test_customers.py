"""The table of customers: what it holds, that it repeats, and that it can be learnt."""

import csv

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from taciturn.datasets import customers, write_customers
from taciturn.datasets.customers import COUNTRIES, FIRST_DAY, LAST_DAY, MOST_SPENT, PLANS
from taciturn.errors import InvalidInput

CATEGORIES = {"country": COUNTRIES, "plan": PLANS}


@pytest.fixture(scope="module")
def frame():
    return customers(as_frame=True)


def test_customers_have_several_rows(frame):
    rows = frame["customer_id"].value_counts()
    assert (len(rows), rows.median(), rows.max(), rows.sum()) == (56_655, 3, 7_701, 200_000)


@pytest.mark.parametrize(
    ("column", "share"),
    [("signed_up", 0.04), ("country", 0.02), ("age", 0.06), ("income", 0.12), ("visits", 0.03), ("note", 0.6)],
)
def test_gaps_are_as_many_as_the_docstring_says(frame, column, share):
    """The seed is fixed; the tolerance is five standard deviations of a share of 200,000 rows."""
    missing = frame[column].isna() | (frame[column] == "")
    assert missing.mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 200_000))


def test_values_lie_in_the_ranges_that_are_stated(frame):
    known = frame["signed_up"][frame["signed_up"] != ""]
    assert known.between(FIRST_DAY, LAST_DAY).all()
    for column, low, high in [("age", 18, 99), ("income", 0, 1e6), ("visits", 0, 60), ("tickets", 0, 20)]:
        assert frame[column].dropna().between(low, high).all()
    assert frame["spend_next_year"].between(0, MOST_SPENT).all()
    assert set(frame["churned"]) == {"yes", "no"}
    assert 0.01 < (frame["income"] == 0).mean() < 0.03
    assert frame["income"].max() > 20 * frame["income"].median()


def test_a_few_categories_are_unknown_and_a_few_notes_have_newlines(frame):
    assert 0.005 < (~frame["country"].isin([*COUNTRIES, ""])).mean() < 0.015
    assert 0.003 < (~frame["plan"].isin(PLANS)).mean() < 0.007
    assert 0.003 < frame["note"].str.contains("\n").mean() < 0.007
    assert frame["note"].str.contains(",").any()
    assert frame["note"].str.contains('"').any()


def test_equal_seeds_give_equal_tables():
    first, again, other = (customers(500, seed=seed, as_frame=True) for seed in (4, 4, 5))
    pd.testing.assert_frame_equal(first, again)
    assert not first["income"].equals(other["income"])


@pytest.mark.parametrize("n", [10, 57])
def test_a_small_table_has_as_many_rows_as_it_was_asked_for(n):
    assert {len(column) for column in customers(n).values()} == {n}


def test_nine_rows_are_too_few():
    with pytest.raises(InvalidInput, match="10 or more, got 9"):
        customers(9)


def test_the_file_is_the_table(tmp_path):
    path = write_customers(tmp_path / "customers.csv", 3_000, seed=2)
    table = customers(3_000, seed=2)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(table)
    for name, column in table.items():
        read = [row[name] for row in rows]
        if column.dtype == object:
            assert read == column.tolist()
        else:
            np.testing.assert_array_equal([float(cell) if cell else np.nan for cell in read], column)


def test_linear_models_learn_it(frame):
    """As the docstring says, from numbers and categories."""
    days = pd.to_datetime(frame["signed_up"].replace("", None)) - pd.Timestamp(FIRST_DAY)
    numbers = {
        "years": days.dt.days / 365.25 - 5.0,
        "age": frame["age"] / 40.0 - 1.0,
        "income": np.log1p(frame["income"] / 1e3) - 3.5,
        "visits": frame["visits"] / 30.0 - 1.0,
        "tickets": frame["tickets"] / 10.0,
    }
    X = pd.concat(
        [
            pd.DataFrame(numbers).fillna(0.0),
            pd.DataFrame({f"no {name}": column.isna() for name, column in numbers.items()}),
            *(pd.get_dummies(frame[name].where(frame[name].isin(names))) for name, names in CATEGORIES.items()),
        ],
        axis=1,
    ).to_numpy(float)
    learnt, held_out = slice(0, 40_000), slice(160_000, None)
    churned, spend = (frame["churned"] == "yes").to_numpy(), frame["spend_next_year"].to_numpy()
    classifier = LogisticRegression(max_iter=200).fit(X[learnt], churned[learnt])
    assert 0.76 < classifier.score(X[held_out], churned[held_out]) < 0.785
    assert 0.68 < 1.0 - churned.mean() < 0.71
    assert 0.54 < LinearRegression().fit(X[learnt], spend[learnt]).score(X[held_out], spend[held_out]) < 0.57
