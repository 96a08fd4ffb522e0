"""A line of JSON is a row, whatever stands in it."""

import gzip
import json
import math
from codecs import BOM_UTF8

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.declared import STRICT, contract, csv, read
from taciturn import InvalidInput
from taciturn.contract.contract import contract_of
from taciturn.readers.jsonl import read_json
from taciturn.readers.rows import open_rows

COMPLETE = [
    {"age": 50, "town": "Oslo", "floor": 1, "ip": "10.0.0.1", "note": [1], "bought": "yes"},
    {"age": "25", "town": "Rome", "floor": 7.0, "bought": "no", "more": {}},
    {"age": 1e1, "town": None, "floor": "x", "ip": "b", "bought": True},
]
CORRUPTION = st.one_of(
    st.binary(max_size=30).map(lambda b: b.replace(b"\n", b" ")),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["age", "town", "bought"]), inner),
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b"[" * 20_000, b"{", b'{"age": ' + b"9" * 5_000 + b"}", b'{"age": "\\ud800", "ip": "\\ud800"}', b"", b"\r"]
    ),
)


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_the_same_rows_as_csv():
    rows = ["50,Oslo,1,10.0.0.1,hi,yes", "25,Rome,7,,,no", "10,,x,b,,true"]
    [plain], [objects] = read(contract(), csv(*rows)), read(contract(), lines(*COMPLETE), format="json")
    assert np.array_equal(plain.X, objects.X)
    assert np.array_equal(plain.y, objects.y)
    assert objects.lines.tolist() == [1, 2, 3]


def test_a_byte_order_mark_begins_a_file():
    """It is skipped there, and nowhere else: within a file it spoils its own line."""
    [plain] = read(contract(), lines(*COMPLETE), format="json")
    [marked] = read(contract(), BOM_UTF8 + lines(*COMPLETE), format="json")
    assert np.array_equal(plain.X, marked.X)
    assert np.array_equal(plain.y, marked.y)
    assert marked.lines.tolist() == [1, 2, 3]
    assert marked.size == plain.size + len(BOM_UTF8)
    assert read(contract(), BOM_UTF8, format="json") == []
    first, *others = lines(*COMPLETE).splitlines(keepends=True)
    for data, bad in ((first + BOM_UTF8 + b"".join(others), 1), (2 * BOM_UTF8 + first + b"".join(others), 0)):
        [batch] = read(contract(), data, format="json", bad_rows="zero")
        assert np.isnan(batch.y).tolist() == [row == bad for row in range(3)]
    batches = read(contract(), first + BOM_UTF8 + b"".join(others), format="json", bad_rows="zero", block=1)
    assert [bool(np.isnan(batch.y[0])) for batch in batches] == [False, True, False]


def test_a_file_with_a_mark_and_a_packed_one(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(BOM_UTF8 + lines(*COMPLETE))
    with gzip.open(tmp_path / "b.jsonl.gz", "wb") as file:
        file.write(BOM_UTF8 + lines(*COMPLETE))
    for name in ("a.jsonl", "b.jsonl.gz"):
        assert sum(len(batch.X) for batch in open_rows(contract(), tmp_path / name)) == 3


@pytest.mark.privacy
@given(CORRUPTION, st.integers(0, 2))
def test_a_corrupt_row_changes_no_other_and_takes_one_round(corrupt, place):
    whole = lines(*COMPLETE).splitlines(keepends=True)
    changed = [*whole[:place], corrupt + b"\n", *whole[place + 1 :]]
    [before] = read(contract(), b"".join(whole), format="json", bad_rows="zero")
    [after] = read(contract(), b"".join(changed), format="json", bad_rows="zero")
    rest = np.arange(3) != place
    assert len(after.X) == 3
    assert np.array_equal(before.X[rest], after.X[rest], equal_nan=True)
    assert np.array_equal(before.y[rest], after.y[rest], equal_nan=True)


HUGE = [b"9" * 5_000, b"-" + b"9" * 5_000, b"[" * 50_000 + b"]" * 50_000, b'{"]": ' * 5_000 + b"1" + b"}" * 5_000]


@pytest.mark.parametrize("value", HUGE, ids=["digits", "negative", "lists", "objects"])
def test_what_no_column_reads_is_not_looked_at(value):
    whole = lines(*COMPLETE)
    changed = whole.replace(b"}", b', "other": ' + value + b"}", 1)
    [before], [after] = (read(contract(), content, format="json") for content in (whole, changed))
    assert np.array_equal(before.X, after.X)
    assert np.array_equal(before.y, after.y)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(JSON_VALUES, st.booleans())
def test_values_beside_huge_ones_are_those_of_python(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read_json(text) == value
    assert read_json(f"[{text}, {'[' * 50_000 + ']' * 50_000}, {text}]")[::2] == [value, value]
    assert read_json(f"[{text}, {'9' * 5_000}, {text}]") == [value, math.inf, value]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"age": 1', "line 1: it is not valid JSON"),
        (b"\xff", "it is not valid JSON"),
        (b"[1]", "it is not a JSON object"),
        (b'{"age": [1], "bought": "yes"}', "age is a list"),
        (b'{"age": 1, "bought": {}}', "bought is an object"),
        (b'{"bought": "yes"}', "age is missing"),
        (b'{"age": NaN, "bought": "yes"}', "age is missing"),
        (b'{"age": Infinity, "bought": "yes"}', "age is not a number"),
        (b'{"age": true, "bought": "yes"}', "age is not a number"),
        (b'{"age": ' + b"9" * 5_000 + b', "bought": "yes"}', "age is not a number"),
        (b'{"age": ' + b"[" * 50_000 + b"]" * 50_000 + b', "bought": "yes"}', "age is a list"),
        (b'{"age": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b', "bought": "yes"}', "age is an object"),
        (b'{"age": ' + b"[" * 50_000 + b', "bought": "yes"}', "it is not valid JSON"),
        (b'{"age": 1}', "bought is missing"),
        (b"", "it is not valid JSON"),
        (b'{"age": "' + b"1" * 2**20 + b'"}', "longer than"),
    ],
)
def test_bad_rows_are_named(line, words):
    with pytest.raises(InvalidInput, match=words):
        read(contract(columns=STRICT), line + b"\n", format="json")
    [batch] = read(contract(columns=STRICT), line + b"\n", format="json", bad_rows="zero")
    assert np.isnan(batch.X).all()
    assert np.isnan(batch.y).all()


@pytest.mark.privacy
@pytest.mark.parametrize("label", [b"[1]", b"{}", b'"many"', b"null", b"1e999"])
def test_a_label_that_cannot_be_read_is_no_more_than_a_bad_label(label):
    """Where labels alone are protected, the features of a row are the same whatever its label is."""
    made = contract_of(
        {
            "privacy": {"epsilon": 1.0, "neighbours": "label"},
            "target": {"column": "y", "range": [0, 10]},
            "columns": {"x": {"range": [0, 1]}},
        }
    )
    [batch] = read(made, b'{"x": 0.25, "y": 3}\n{"x": 0.25, "y": ' + label + b"}\n7\n", format="json", bad_rows="zero")
    assert batch.X[:, 0].tolist()[:2] == [-0.5, -0.5]
    assert np.isnan(batch.X[2]).all()
    assert np.isnan(batch.y).tolist() == [False, True, True]


@pytest.mark.privacy
def test_an_id_stays_whatever_else_cannot_be_read():
    """It decides which rows of that user count; only what is no record has none."""
    privacy = {"epsilon": 1.0, "user": "who", "rows_per_user": 2}
    columns = {"x": {"range": [0, 1]}}
    made = contract_of({"privacy": privacy, "target": {"column": "y", "range": [0, 10]}, "columns": columns})
    rows = [
        b'{"who": "anna", "x": [1], "y": 3}',
        b'{"who": "anna", "x": 1, "y": {}}',
        b'{"who": ["anna"], "x": 1, "y": 3}',
        b"7",
    ]
    [batch] = read(made, b"\n".join(rows), format="json", bad_rows="zero")
    assert batch.users.tolist() == ["anna", "anna", None, None]
    assert np.isnan(batch.X).all()
    with pytest.raises(InvalidInput, match="line 1: who is a list"):
        read(made, rows[2], format="json")
