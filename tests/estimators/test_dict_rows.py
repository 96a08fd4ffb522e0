"""Dicts become rows by declared names or by a hash that never changes."""

import math
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput
from taciturn.columns.hashing import bucket_cache
from taciturn.estimators.dict_rows import HashedFeatures, NamedFeatures, features_of

pytestmark = pytest.mark.filterwarnings("ignore:this example has none of the declared features")

VALUES = st.one_of(st.floats(), st.integers(), st.booleans(), st.text(max_size=3), st.none())
EXAMPLES = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES)


def same(first, second):
    return np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True)


def test_missing_names_are_zero_and_others_are_ignored():
    assert list(NamedFeatures(["a", "b", "c"]).row({"c": 3, "a": 1.5, "z": 9.0})) == [1.5, 0.0, 3.0]
    assert list(NamedFeatures(["a"]).row({"a": True})) == [1.0]
    assert list(NamedFeatures([0, 1]).row({1: np.float32(0.5), 0: Decimal("0.25")})) == [0.25, 0.5]


@given(EXAMPLES)
def test_the_fast_row_is_the_row(x):
    """With everything there, something missing, and values of every kind."""
    named = NamedFeatures(["a", "b", "c"])
    assert same(named.row(x), named._any_row(x))


@pytest.mark.parametrize("value", ["text", None, math.nan, 10**400, b"12345678", [1.0], 1j, object()])
@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_what_is_no_number_is_not_a_number(value, names):
    named = NamedFeatures(names)
    row = named.row({"a": value, "b": 1.0})
    assert math.isnan(row[0])
    assert not math.isnan(sum(row[1:]))
    assert named.describe_bad_feature(row) == "feature 'a'"


def test_a_text_is_a_name_of_its_own():
    named = NamedFeatures(["age", "city=Rome", "city=Oslo"])
    assert list(named.row({"age": 0.5, "city": "Oslo"})) == [0.5, 0.0, 1.0]
    assert list(named.row({"city": "Paris"})) == [0.0, 0.0, 0.0]
    assert list(named.row({"city=Rome": 0.25, "city": 7})) == [0.0, 0.25, 0.0]


def test_examples_are_not_touched():
    x = defaultdict(float, {"a": 1.0})
    NamedFeatures(["a", "b"]).row(x)
    assert dict(x) == {"a": 1.0}
    assert list(NamedFeatures(["a", "b"]).row(Counter("aab"))) == [2.0, 1.0]


def test_hashing_is_the_same_everywhere_and_always():
    """Python's own hash is salted: another process would learn another model."""
    assert list(HashedFeatures(1024).row(EXAMPLE)) == PINNED
    code = f"from taciturn.estimators.dict_rows import HashedFeatures as H; print(list(H(1024).row({EXAMPLE})))"
    for salt in ("1", "2"):
        environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": salt}
        shown = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert shown.stdout.strip() == str(PINNED)


EXAMPLE = {"age": 0.5, "city": "Rome", "height": 2, 7: 1.0}
PINNED = [1005.0, 363.0, 105.0, 115.0, 0.5, 1.0, -2.0, 1.0]


def test_a_text_hashes_as_name_and_text():
    hashed = HashedFeatures(1024)
    assert hashed.row({"city": "Rome"}) == hashed.row({"city=Rome": 1.0})
    assert hashed.row({"city": "Rome"}) != hashed.row({"city": "Oslo"})
    assert hashed.row({7: 1.0}) == hashed.row({"7": 1.0})


def test_equal_names_of_other_types_hash_by_their_text():
    """1, 1.0 and True are one key of a cache, and three texts."""
    hashed = HashedFeatures(2**30)
    for order in ([1, 1.0, True], [True, 1.0, 1]):
        for name in order:
            assert hashed.row({name: 1.0}) == hashed.row({str(name): 1.0})


def test_names_that_share_a_bucket_are_added_up_with_their_signs():
    row = HashedFeatures(1).row(dict.fromkeys(map(str, range(1000)), 1.0))
    assert list(row[:1]) == [0.0]
    assert abs(row[1]) < 6.0 * math.sqrt(1_000)  # a sum of signs: by Hoeffding, but for 2·exp(-18) of all hashes


def test_more_names_than_are_kept_hash_as_before():
    hashed = HashedFeatures(2**20)
    first = hashed.row({"name 0": 1.0})
    hashed.row({f"name {i}": 1.0 for i in range(2**16 + 5)})
    assert len(bucket_cache(2**20)) <= 2**16
    assert hashed.row({"name 0": 1.0}) == first


def test_buckets_and_signs_are_spread():
    signs = Counter()
    columns = Counter()
    for i in range(4_096):
        column, sign = HashedFeatures(16).row({f"name {i}": 1.0})
        signs[sign] += 1
        columns[column] += 1
    assert len(columns) == 16
    assert max(columns.values()) < 256 + 6 * 16  # of 256 expected, six deviations: but for 1e-7 of all hashes
    assert abs(signs[1.0] - 2_048) < 6 * 32


@given(st.lists(EXAMPLES, max_size=5))
def test_a_block_holds_its_rows(examples):
    named, hashed = NamedFeatures(["a", "b", "c"]), HashedFeatures(3)
    assert same(
        named.block([named.row(x) for x in examples]), [list(named.row(x)) for x in examples] or np.zeros((0, 3))
    )
    dense = np.zeros((len(examples), 3))
    for i, x in enumerate(examples):
        columns, entries = np.asarray(hashed.row(x)).reshape(2, -1)
        dense[i, columns.astype(int)] = entries
    assert same(hashed.block([hashed.row(x) for x in examples]).toarray(), dense)


@given(st.lists(EXAMPLES, min_size=1, max_size=5))
def test_a_table_holds_the_rows_of_its_dicts(examples):
    pd = pytest.importorskip("pandas")
    for features in (NamedFeatures(["a", "b"]), NamedFeatures(["a", "b=x"]), HashedFeatures(8)):
        X = pd.DataFrame(examples, dtype=object)
        expected = features.block([features.row(x) for x in X.to_dict("records")])
        table, expected = (
            rows if isinstance(rows, np.ndarray) else rows.toarray() for rows in (features.table(X), expected)
        )
        assert same(table, expected)


def test_a_table_of_numbers_is_not_read_row_by_row(monkeypatch):
    pd = pytest.importorskip("pandas")
    named = NamedFeatures(["a", "b", "c"])
    X = pd.DataFrame({"c": [1, 2], "z": ["x", "y"], "a": pd.array([0.5, None], dtype="Float64"), 3: [True, False]})
    monkeypatch.setattr(NamedFeatures, "row", None)
    assert same(named.table(X), [[0.5, 0.0, 1.0], [math.nan, 0.0, 2.0]])


@pytest.mark.privacy
@pytest.mark.parametrize("bad", ["much", None, [1.0]])
def test_a_bad_row_of_a_table_spoils_no_other(bad):
    """Nor do one-hot names, for which a row is bad: beside a row of numbers as beside one that has none."""
    pd = pytest.importorskip("pandas")
    named = NamedFeatures(["a", "colour"], on_bad="zero")
    X = pd.DataFrame({"a": [0.1, 0.2, 0.3], "colour_red": [1, 0.5, 1]})
    spoiled = X.astype({"a": object})
    spoiled.at[2, "a"] = bad
    expected = [[math.nan, math.nan], [0.2, 0.0]]
    assert same(named.table(X)[:2], expected)
    assert same(named.table(spoiled)[:2], expected)
    with pytest.raises(InvalidInput, match="begins with 'colour_'"):
        NamedFeatures(["a", "colour"]).table(X)


@pytest.mark.parametrize(
    ("names", "buckets", "why"),
    [
        (None, None, "never inferred"),
        (["a"], 16, "one of the three"),
        ("abc", None, "Give it as in"),
        ([], None, "one name or more"),
        (["a", "a"], None, "all different"),
        (None, 0, "an integer"),
        (None, 2.5, "an integer"),
    ],
)
def test_a_rule_is_stated_once_and_well(names, buckets, why):
    with pytest.raises(InvalidInput, match=why):
        features_of(names, buckets)


@pytest.mark.parametrize("features", [NamedFeatures(["a", "b"]), NamedFeatures(["a=b"]), HashedFeatures(4)])
def test_a_list_is_no_example(features):
    with pytest.raises(InvalidInput, match="an example is a dict"):
        features.row([1.0, 2.0])


def test_indicators_that_would_be_ignored_are_told_of_once():
    """A scaler's features for missing values, beside those that a model declares."""
    named = NamedFeatures(["age", "income"])
    scaled = {"age": 0.5, "income": 0.1, "age (missing)": 1.0}
    with pytest.warns(UserWarning, match=r"'age \(missing\)', which a PublicScaler adds.* is ignored\. Add it to"):
        assert named.row(scaled).tolist() == [0.5, 0.1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert named.row(scaled).tolist() == [0.5, 0.1]
        assert NamedFeatures(["age", "age (missing)"]).row(scaled).tolist() == [0.5, 1.0]
