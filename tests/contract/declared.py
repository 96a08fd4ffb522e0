"""Contracts and rows that tests share."""

import io

from taciturn.contract.contract import contract_of
from taciturn.readers.rows import open_rows

COLUMNS = {
    "age": {"range": [0, 100]},
    "town": {"categories": ["Oslo", "Rome"]},
    "floor": {"categories": [1, 2, 7]},
    "ip": {"hash": 4},
    "note": {"ignore": True},
}
STRICT = COLUMNS | {"age": {"range": [0, 100], "missing": "bad"}}
"""The same columns, with a number that may not be missing."""
HEADER = "age,town,floor,ip,note,bought"
TARGETS = {
    "positive": {"column": "bought", "positive": ["yes"]},
    "classes": {"column": "bought", "classes": ["no", "maybe", "yes"]},
    "range": {"column": "bought", "range": [0, 10]},
}


def contract(target="positive", columns=None, **learning):
    """A contract of a few columns."""
    return contract_of(
        {
            "privacy": {"epsilon": 1.0},
            "target": TARGETS[target],
            "learning": learning,
            "columns": COLUMNS if columns is None else columns,
        }
    )


def read(made, data, **options):
    """Every batch of some bytes or text."""
    data = data.encode() if isinstance(data, str) else data
    return list(open_rows(made, io.BytesIO(data), **options))


def csv(*rows):
    """A file with these rows."""
    return "\n".join([HEADER, *rows, ""])
