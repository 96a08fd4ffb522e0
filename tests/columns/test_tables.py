"""Tables of every library are read alike."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from taciturn import InvalidInput
from taciturn.columns.encoder import encoder_of
from taciturn.columns.tables import Table

COLUMNS = {
    "income": {"range": [1, 1e6], "scale": "log", "indicator": True},
    "country": {"categories": ["DE", "FR"], "missing": "category"},
    "joined": {"date": ["2015-01-01", "2030-01-01"], "cycle": ["weekday"]},
    "note": {"text": {"hash": 16}},
    "floor": {"categories": [1, 2, 7]},
    "member": {"categories": ["true", "false"]},
    "id": {"ignore": True},
}
ROWS = {
    "income": [5e4, None, 3.0],
    "country": ["DE", None, "IT"],
    "joined": ["2020-05-01", "2021-01-01T12:00:00", None],
    "note": ["call back", "", "Call BACK"],
    "floor": [7, 1, 2],
    "member": [True, False, True],
    "id": [1, 2, 3],
}


def frames():
    """The same table, in many forms."""
    frame = pd.DataFrame(ROWS)
    times = pd.to_datetime(frame["joined"], format="ISO8601")
    yield "mapping", ROWS
    yield "pandas", frame
    yield "pandas, converted", frame.convert_dtypes()
    yield "pandas, categories", frame.assign(country=frame["country"].astype("category"))
    yield "pandas, times", frame.assign(joined=times)
    yield "pandas, times with a zone", frame.assign(joined=times.dt.tz_localize("UTC"))
    yield (
        "pandas, narrow",
        frame.assign(income=frame["income"].astype(np.float32), floor=frame["floor"].astype(np.int8)),
    )
    yield "pandas, other index", frame.set_index(pd.Index([5, 5, 7]))
    yield "arrow", pa.table(ROWS)


@pytest.mark.parametrize("table", [pytest.param(table, id=name) for name, table in frames()])
def test_every_table_has_the_same_features(table):
    encoder = encoder_of(COLUMNS)
    expected = encoder.features(ROWS, known=True).toarray()
    found = encoder.features(table, known=True).toarray()
    assert np.isfinite(expected).all()
    assert found.tobytes() == expected.tobytes()


def test_arrays_have_numbers_for_names():
    encoder = encoder_of({0: {"range": [0, 10]}, 2: {"categories": [1, 2]}, 1: {"ignore": True}})
    rows = [[5.0, 9.0, 2.0], [10.0, 9.0, 3.0]]
    for table in (rows, np.array(rows), pd.DataFrame(rows), np.array(rows, dtype=object)):
        assert encoder.features(table, known=True).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([1.0, 2.0], "this array has 1 dimension. Give a data frame"),
        (np.zeros((1, 2, 3)), "3 dimensions"),
        (7, "this is int"),
        ({"a": [1, 2], "b": [1]}, "equally many values"),
        ({"a": 1}, "a column of a table is a list of values, and this is int"),
        ({"a": "text"}, "and this is str"),
    ],
)
def test_what_is_no_table_is_rejected(table, words):
    with pytest.raises(InvalidInput, match=words):
        Table(table)


def test_a_text_that_is_not_utf_8_spoils_no_other():
    """Arrow does not look, and Python would reject all of them."""
    texts = pa.array([b"DE", b"\xff", None], pa.binary()).view(pa.string())
    for column in (texts, texts.dictionary_encode()):
        values = Table(pa.table({"country": column})).values("country")
        assert values.texts()[1] == ["DE", "\ufffd", None]
