"""Rows that are decoded by the types of their columns are those of the definition, to the last bit."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from taciturn.contract.contract import contract_of
from taciturn.contract.model_file import Model
from taciturn.errors import InvalidInput
from taciturn.kernel.accounting.cost import Spent
from taciturn.service.predictor import RowPredictor
from taciturn.service.rows import ARROW, JSON, JSON_LINES, PlainRows, encoded, read_rows
from taciturn.service.typed_rows import MOST_BYTES, MOST_COLUMNS

COLUMNS = {
    "age": {"range": [0, 100]},
    "income": {"range": [1, 1e6], "scale": "log", "missing": 5.0, "indicator": True},
    "town": {"categories": ["Oslo", "Rome"], "missing": "category"},
    "size": {"range": [-1, 1], "missing": "bad"},
    "steps": {"bins": [0, 10, 100]},
    "words": {"text": {"hash": 8}},
    "day": {"date": ["2020-01-01", "2030-01-01"], "cycle": ["weekday"]},
}
NUMBERS = {"a": {"range": [0, 1]}, "b": {"range": [-5, 5]}}
ONE = {"a": {"range": [0, 1]}}
TARGETS = ({"column": "y", "positive": ["yes"]}, {"column": "y", "range": [0, 10]})
USERS = ({}, {"user": "who", "rows_per_user": 3}, {"user": "who", "rows_per_user": 3, "without_id": "own"})
LABELS = {"neighbours": "label"}
CONTRACTS = [
    contract_of({"privacy": {"epsilon": 1.0} | users, "target": target, "columns": columns})
    for target in TARGETS
    for columns in (COLUMNS, NUMBERS, ONE)
    for users in (*USERS, LABELS)
]
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30) | st.sampled_from([0, -0.0])
ANY = NUMBER | st.sampled_from(["Oslo", "", "7", "yes", "2024-05-31", True, None, [1], {}, "1e400", "é"])
RARE = st.one_of(NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, ANY)


@st.composite
def bodies(draw, contract, labelled):
    names = [column.name for column in contract.read]
    typed = {"age", "size", "a", "b"}
    values = {name: draw(st.sampled_from([RARE if name in typed else ANY])) for name in names}
    if labelled:
        values |= {"y": ANY, "who": ANY} if contract.user else {"y": ANY}
    rows = draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=4))
    if draw(st.integers(0, 9)) == 0:
        rows[0].pop(draw(st.sampled_from(sorted(values))))
    if draw(st.integers(0, 9)) == 0:
        rows[-1]["more"] = draw(ANY)
    order = draw(st.permutations(sorted(values)))
    rows = [
        dict(sorted(row.items(), key=lambda item: order.index(item[0]) if item[0] in order else 99)) for row in rows
    ]
    return json.dumps({"rows": rows}).encode()


def _all(batches, contract):
    parts = list(encoded(batches, contract, labelled=True))
    X, y, bad = (np.concatenate([part[i] for part in parts]) for i in (0, 1, 3))
    users = None if parts[0][2] is None else np.concatenate([part[2] for part in parts]).tolist()
    return X.tobytes(), y.tobytes(), users, bad.tolist()


@given(st.sampled_from(range(len(CONTRACTS))), st.data())
def test_rows_to_learn_from_are_those_of_the_definition(number, data):
    """Also when plain rows, others and those of tables come one after the other."""
    contract = CONTRACTS[number]
    plain = PlainRows(contract)
    sent = [data.draw(bodies(contract, labelled=True)) for _ in range(3)]
    fast = [read_rows(JSON, body, contract, labelled=True, plain=plain) for body in sent]
    slow = [read_rows(JSON, body, contract, labelled=True) for body in sent]
    for batch in fast:
        event("plain" if batch.plain is not None else "left to the definition")
    assert _all(fast, contract) == _all(slow, contract)
    assert [batch.count for batch in fast] == [batch.count for batch in slow]


@given(st.sampled_from(range(len(CONTRACTS))), st.data())
def test_rows_to_predict_are_those_of_the_definition(number, data):
    contract = CONTRACTS[number]
    model = Model(
        contract, np.random.default_rng(1).normal(size=contract.problem.size), 1, 1, Spent(1.0, 1e-6), "", False
    )
    body, predictor = data.draw(bodies(contract, labelled=False)), RowPredictor(contract)
    rows = predictor.read(body)
    event("plain" if rows is not None else "left to the definition")
    made = None if rows is None else predictor.scores(model, rows)
    if made is None:
        return
    batch = read_rows(JSON, body, contract, labelled=False)
    [(X, _, _, bad)] = encoded([batch], contract, labelled=False)
    assert not bad.any()
    assert np.array_equal(made, model.scores(X))
    assert [predictor.as_record(row) for row in rows] == batch.records


HUGE = [b"9" * 5_000, b"[" * 50_000 + b"]" * 50_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'"\\ud800"', b"1e999"]
COLUMNS_MIXED = ONE | {"t": {"categories": ["u"]}, "ignored": {"ignore": True}}
MIXED = contract_of({"privacy": {"epsilon": 1.0} | USERS[1], "target": TARGETS[1], "columns": COLUMNS_MIXED})


@pytest.mark.privacy
@pytest.mark.parametrize("value", HUGE, ids=["digits", "lists", "objects", "half a pair", "too large"])
@pytest.mark.parametrize("name", ["a", "t", "y", "who", "undeclared"])
@pytest.mark.parametrize("media", [JSON, JSON_LINES])
def test_what_a_row_holds_decides_on_no_other_row(media, name, value):
    """Rows beside it are those beside a plain bad one, and the row takes its round."""
    plain = {"a": b"0.5", "t": b'"u"', "y": b"1", "who": b'"anna"', "undeclared": b"1"}
    parts = []
    for held in (value, b'"plain"'):
        rows = [
            b"{" + b", ".join(b'"%s": %s' % (n.encode(), v) for n, v in (plain | changed).items()) + b"}"
            for changed in ({}, {name: held}, {})
        ]
        body = b'{"rows": [' + b", ".join(rows) + b"]}" if media == JSON else b"\n".join(rows)
        batch = read_rows(media, body, MIXED, labelled=True)
        assert batch.count == 3
        [(X, y, users, bad)] = encoded([batch], MIXED, labelled=True)
        parts.append((X[::2].tolist(), y[::2].tolist(), users[::2].tolist(), bad[::2].tolist()))
    assert parts[0] == parts[1]
    assert parts[0][3] == [False, False]


def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def texts(*values, kind="string"):
    made = pa.array(values, pa.binary()).view(pa.string())
    if kind == "large_string":
        made = pa.array(values, pa.large_binary()).view(pa.large_string())
    return made.dictionary_encode() if kind == "dictionary" else made


ODD = {
    "no UTF-8": texts(b"u", b"\xff", b"u"),
    "no UTF-8, large": texts(b"u", b"\xff", b"u", kind="large_string"),
    "no UTF-8, of a dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), texts(b"u", b"\xff")),
    "a part of a day": pa.array([0, 12_345, 0], pa.int64()).view(pa.date64()),
    "too many digits": pa.array([b"\0" * 16, b"\x7f" * 16, b"\0" * 16], pa.binary(16)).view(pa.decimal128(5, 0)),
}


@pytest.mark.privacy
@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("name", ["t", "who", "ignored"])
def test_what_a_row_of_arrow_holds_decides_on_no_other_row(odd, name):
    plain = {"a": [0.5] * 3, "t": ["u"] * 3, "ignored": ["x"] * 3, "y": [1.0] * 3, "who": ["anna"] * 3}
    with pytest.raises(pa.ArrowInvalid):
        odd.validate(full=True)  # otherwise this tests nothing
    batch = read_rows(ARROW, stream(pa.table(plain | {name: odd})), MIXED, labelled=True)
    assert batch.count == 3
    [(X, _, _, bad)] = encoded([batch], MIXED, labelled=True)
    assert X[0].tolist() == X[2].tolist() or bad[0]
    assert bad[0] == bad[2]
    if name == "ignored":
        assert not bad.any()


def test_buffers_of_arrow_that_point_outside_are_rejected():
    """Texts and codes that lie beyond what was sent would be read from the server's memory."""
    offsets, content = pa.py_buffer(np.array([0, 1, 2**20, 3], np.int32)), pa.py_buffer(b"uuu")
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 5, 0], pa.int32()), pa.array(["u"]), safe=False)
    for wrong in (pa.Array.from_buffers(pa.string(), 3, [None, offsets, content]), codes):
        table = pa.table({"a": [0.5] * 3, "t": wrong, "ignored": ["x"] * 3, "y": [1.0] * 3, "who": ["anna"] * 3})
        with pytest.raises(InvalidInput, match="not an Arrow stream"):
            read_rows(ARROW, stream(table), MIXED, labelled=True)


def test_numbers_are_plain():
    """A planted fault of the tests above: if nothing were plain, they would compare nothing."""
    for contract in CONTRACTS:
        row = {column.name: 1 for column in contract.read} | {"y": 1, "who": 7}
        row = {name: value for name, value in row.items() if contract.user is not None or name != "who"}
        assert PlainRows(contract).read(json.dumps({"rows": [row]}).encode()) is not None
        row = {column.name: 0.5 for column in contract.read}
        assert RowPredictor(contract).read(json.dumps({"rows": [row]}).encode()) is not None


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [{"a": true, "b": 1, "y": 1}]}',
        b'{"rows": [{"a": "1", "b": 1, "y": 1}]}',
        b'{"rows": [{"a": null, "b": 1, "y": 1}]}',
        b'{"rows": [{"a": NaN, "b": 1, "y": 1}]}',
        b'{"rows": [{"a": 1e999, "b": 1, "y": 1}]}',
        b'{"rows": [{"a": 1, "y": 1}]}',
        b'{"rows": [{"a": 1, "b": 1, "y": 1, "c": 1}]}',
        b'{"rows": [{"a": 1, "b": 1, "y": 1}], "more": 1}',
        b'{"rows": [7]}',
        b'{"rows": []}',
        b'{"rows": [{"a": 1, "b": 1, "y": "\xff"}]}',
        b'{"rows": [{"a": 1, "b": 1, "y": "\\ud800"}]}',
        b"",
        b'{"rows": [{"a": 1, "b": 1, "y": 1}' + b" " * MOST_BYTES + b"]}",
    ],
)
def test_what_is_not_plain_is_left_to_the_definition(body):
    contract = contract_of({"privacy": {"epsilon": 1.0}, "target": TARGETS[1], "columns": NUMBERS})
    assert PlainRows(contract).read(body) is None
    assert RowPredictor(contract).read(body.replace(b', "y": 1', b"")) is None


def test_of_a_name_that_occurs_twice_the_last_value_counts():
    contract = contract_of({"privacy": {"epsilon": 1.0}, "target": TARGETS[1], "columns": NUMBERS})
    plain, body = PlainRows(contract), b'{"rows": [{"a": 0.25, "y": 3, "a": 0.75, "b": 1, "y": 4}]}'
    fast, slow = read_rows(JSON, body, contract, True, plain=plain), read_rows(JSON, body, contract, True)
    assert fast.plain is plain
    assert _all([fast], contract) == _all([slow], contract)


def test_many_columns_and_columns_that_are_read_twice_are_left_to_it():
    columns = {f"x{i}": {"range": [0, 1]} for i in range(MOST_COLUMNS + 1)}
    many = contract_of({"privacy": {"epsilon": 1.0}, "target": TARGETS[1], "columns": columns})
    body = json.dumps({"rows": [dict.fromkeys(columns, 0.5) | {"y": 1}]}).encode()
    assert PlainRows(many).read(body) is None
    assert RowPredictor(many).read(body) is None
    assert read_rows(JSON, body, many, labelled=True, plain=PlainRows(many)).count == 1


def test_the_number_of_plain_rows_is_limited():
    contract = contract_of({"privacy": {"epsilon": 1.0}, "target": TARGETS[1], "columns": NUMBERS})
    plain, body = PlainRows(contract), json.dumps({"rows": [{"a": 1, "b": 1, "y": 7}] * 3}).encode()
    assert read_rows(JSON, body, contract, labelled=True, most=3, plain=plain).plain is plain
    with pytest.raises(InvalidInput, match="may have 2 rows"):
        read_rows(JSON, body, contract, labelled=True, most=2, plain=plain)
