"""The dry run counts what a contract does with each row, and says what to do without choosing by the data."""

import io

import numpy as np
import pytest

from taciturn.contract.contract import contract_of
from taciturn.readers.rows import open_parts
from taciturn.readers.table_check import Clipping, check_table

DECLARED = {
    "privacy": {"epsilon": 1.0},
    "target": {"column": "bought", "classes": ["no", "yes"]},
    "learning": {"horizon": 1000},
    "columns": {
        "income": {"range": [0, 10]},
        "town": {"categories": ["Oslo", "Rome"]},
        "since": {"date": ["2015-01-01", "2030-01-01"]},
        "vip": {"range": [0, 1]},
        "ip": {"hash": 4},
    },
}
ROWS = """income,town,since,vip,ip,bought
1,Oslo,2020-01-01,1,a,yes
20,Secretown,1999-01-01,1,a,no
-3,Secretown,2020-01-01,1,b,no
,Rome,,1,c,yes
much,Rome,2020-01-01,1,c,yes
1,Rome,yesterday,1,c,maybe
1,Rome
50,"Ro
me",2020-01-01,1,c,yes
"""


def checked(rows=ROWS, declared=DECLARED, **options):
    contract = contract_of(declared)
    return check_table(contract, contract.plan(), open_parts(contract, io.BytesIO(rows.encode()), block=3), **options)


def test_everything_is_counted():
    found = checked()
    assert (found.rows, found.bad) == (8, 3)
    assert found.reasons == {
        "it has 2 fields instead of 6": 1,
        "income is not a number": 1,
        "since is not a date as in 2024-05-31 or 2024-05-31T12:30:00Z": 1,
        "bought is none of the classes, which must be spelt as in target.classes": 1,
    }
    data = found.as_data()
    assert data["columns"] == {
        "income": {"missing": 1, "below": 1, "above": 2},
        "town": {"unknown": 3},
        "since": {"missing": 1, "below": 1},
        "vip": {},
        "ip": {},
    }
    assert data["target"] == {"unknown": 1}
    assert data["labels"] == {"yes": 3, "no": 2}
    assert data["constant_features"] == ["vip"]
    assert data["not_private"]


def test_values_are_shown_only_if_asked_for():
    assert "Secretown" not in str(checked().as_data())
    assert checked(show_values=True).columns["town"].unknown_values == {"Secretown": 2, "Ro\nme": 1}


def test_remedies_warn_of_choosing_by_the_data():
    said = " ".join(checked().remedies)
    for words in ("50% of the values of income", "not from these numbers", "none of its categories", "noise: vip"):
        assert words in said


@pytest.mark.parametrize("bound", [0.1, 100.0])
def test_clipped_rows_are_those_longer_than_the_bound(bound):
    declared = DECLARED | {"learning": {"feature_bound": bound}}
    found = checked(declared=declared)
    assert found.clipping.rows == 5
    assert found.clipping.clipped == (5 if bound < 1.0 else 0)


def test_factors_are_within_their_bins():
    factors = np.random.default_rng(1).lognormal(1.0, 2.0, 10_001)
    clipping = Clipping()
    for part in np.array_split(factors, 7):
        clipping.add(part)
    long = factors[factors > 1.0]
    assert clipping.clipped == len(long)
    assert clipping.largest == long.max()
    assert 0.95 < clipping.median / np.median(long) < 1.05


def test_without_known_norms_nothing_is_said_of_clipping():
    declared = DECLARED | {"columns": {**DECLARED["columns"], "income": {"range": "private"}}, "learning": {}}
    assert checked(declared=declared).as_data()["clipped"] is None


@pytest.mark.parametrize(("horizon", "learns"), [(400, "little can be learnt"), (400_000, "nothing useful")])
def test_the_conclusion_is_about_rows_that_count_and_are_good(horizon, learns):
    """One frequent user and bad rows leave few; the noise is that of the horizon."""
    declared = DECLARED | {"privacy": {"epsilon": 1.0, "user": "who", "rows_per_user": 2}}
    declared |= {"learning": {"horizon": horizon}}
    rows = ["income,town,since,vip,ip,bought,who"]
    rows += [f"1,Rome,,1,a,{'yes' if i % 3 else 'no'},{'often' if i % 2 else i}" for i in range(400)]
    rows += ["much,Rome,,1,a,yes,new"] * 2
    found = checked("\n".join(rows), declared)
    assert (found.counted, found.used) == (204, 202)
    assert found.conclusion.startswith(f"202 of 402 rows count and are good: {learns}")
    assert "rows_per_user" in found.conclusion
    assert "correct the bad rows" in found.conclusion
    assert found.as_data()["rows_with_influence"] == 202
    assert "not from these numbers" in found.conclusion


def test_enough_rows_are_said_to_be_enough():
    declared = DECLARED | {"privacy": {"epsilon": 50.0}, "learning": {"horizon": 6_000}}
    rows = ROWS.splitlines()[0] + "\n" + "1,Oslo,2020-01-01,1,a,yes\n" * 6_000
    assert checked(rows, declared).conclusion == "6,000 of 6,000 rows are good: that many can outweigh the noise."
