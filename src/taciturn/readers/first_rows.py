"""The first rows of a file, read before a run reserves its budget: whether the contract fits the data at all.

What is found depends on the data (`docs/known_vulnerabilities.md`): it is for the operator, and only where a run would
be of no use does it keep the run from starting.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taciturn.columns.kinds import Vocabulary
from taciturn.columns.target import Classes, Positive
from taciturn.columns.values import unreadable_rows
from taciturn.contract.contract import Contract
from taciturn.errors import InvalidInput
from taciturn.readers.parsed import Parsed

FIRST = 1_000
"""Rows of which one at least must be good."""


def check_first_rows(contract: Contract, parts: Iterator[Parsed]) -> str | None:
    r"""A warning if no label of the first 1,000 rows is a declared one, or all are the same class; else None.

    Raises `InvalidInput` if all of these rows are bad, or if declared labels never occur and others are the same but
    for upper and lower case or blanks.

    >>> import io
    >>> from taciturn.contract.contract import contract_of
    >>> from taciturn.readers.rows import open_parts
    >>> target = {"column": "y", "positive": ["Yes"]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> check_first_rows(contract, open_parts(contract, io.BytesIO(b"x,y\n1,no\n")))
    'NOT PRIVATE: none of the rows of the data has a label of target.positive, ...
    >>> check_first_rows(contract, open_parts(contract, io.BytesIO(b"x,y\n1,no\n2,yes\n")))
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: no label of the rows of the data is spelt as in target.positive, ...
    """
    target = contract.target
    declared = (
        target.classes if isinstance(target, Classes) else target.positive if isinstance(target, Positive) else ()
    )
    vocabulary = Vocabulary(declared) if declared else None
    rows, good = 0, False
    found: set[int] = set()  # places of declared labels; -1 for other ones
    others: set[str] = set()  # keys of the other ones
    for part in parts:
        left = FIRST - rows
        _, _, bad = part.encode(contract, labelled=True)
        good = good or not bad[:left].all()
        if vocabulary is not None:
            labels = part.values[target.column]
            parsed = ~unreadable_rows(labels, len(bad))
            parsed[list(part.broken)] = False
            codes, texts = labels.texts()
            for text in (texts[code] for code in np.unique(codes[:left][parsed[:left]])):
                if text is not None:
                    found.add(vocabulary.place(text))
                    others |= {_key(text)} if vocabulary.place(text) < 0 else set()
        rows += len(bad)
        if rows >= FIRST:
            break
    if not rows:
        return None
    if not good:
        raise all_bad(rows)
    known = found - {-1}
    these = "the rows" if rows < FIRST else f"the first {FIRST:,} rows"
    if vocabulary is None or len(known) > 1 or (known and isinstance(target, Positive)):
        return None
    key = "target.positive" if isinstance(target, Positive) else "target.classes"
    absent = {_key(str(value)) for place, value in enumerate(declared) if place not in known}
    if absent & others:
        raise InvalidInput(
            f"no label of {these} of the data is spelt as in {key}, and some are the same but for upper and lower case "
            "or blanks; nothing was learnt or spent. Correct one of the two; taciturn check CONTRACT DATA has more."
        )
    what = f"has a label of {key}" if not known else "has another class than one"
    return (
        f"NOT PRIVATE: none of {these} of the data {what}, and the "
        "run spends its budget all the same. Unless such labels are rare, or come later, stop it and run taciturn "
        "check CONTRACT DATA."
    )


def all_bad(rows: int) -> InvalidInput:
    """The error of data whose first rows, so many, are all bad."""
    which = "all rows" if rows < FIRST else f"the first {FIRST:,} rows"
    return InvalidInput(
        f"{which} of the data are bad, so the contract does not fit it; nothing was learnt or spent. Run taciturn "
        "check CONTRACT DATA to see why."
    )


def _key(text: str) -> str:
    """What two spellings have in common."""
    return "".join(text.split()).casefold()
