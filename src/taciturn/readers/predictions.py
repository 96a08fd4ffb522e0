"""Predictions of a model for the rows of a file, written as CSV or JSON lines."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from taciturn.columns.values import text_of
from taciturn.contract.model_file import Model
from taciturn.errors import InvalidInput
from taciturn.readers.rows import Batch


def write_predictions(
    model: Model,
    batches: Iterable[Batch],
    file: TextIO,
    *,
    proba: bool = False,
    as_json: bool = False,
    keep: Sequence[str] = (),
) -> int:
    r"""Write one line per row, with a blank prediction for a bad row, and return the number of rows.

    `keep` names the columns that the batches carry through (`open_rows`); they are written before the prediction.

    >>> import io, sys
    >>> import numpy as np
    >>> from taciturn.contract.contract import contract_of
    >>> from taciturn.readers.rows import open_rows
    >>> from taciturn.kernel.accounting.cost import Spent
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"age": {"range": [0, 100]}}})
    >>> model = Model(contract, np.array([1.0, -0.5]), 100, 3, Spent(1.0, 1e-6), "...", False)
    >>> rows = open_rows(contract, io.BytesIO(b"age\n95\n40\n"), labelled=False)
    >>> write_predictions(model, rows, sys.stdout, as_json=True)
    {"prediction": "yes"}
    {"prediction": "rest"}
    2
    >>> rows = open_rows(contract, io.BytesIO(b"id,age\na,95\nb,\n"), labelled=False, keep=["id"])
    >>> write_predictions(model, rows, sys.stdout, keep=["id"])
    id,prediction
    a,yes
    b,rest
    2
    """
    if proba:
        has_probabilities(model)
    names = model.contract.target.names
    header = ["prediction", *(f"probability_{name}" for name in names if proba)]
    for name in keep:
        if name in (*header, "probabilities"):
            raise InvalidInput(f"column {name} cannot be kept: the output has a column of this name. Rename it.")
    writer = csv.writer(file, lineterminator="\n")
    count = 0
    if not as_json:
        writer.writerow([*keep, *header])
    for batch in batches:
        lines = _lines(model, batch, proba)
        kept = batch.kept or [[]] * len(lines)
        if as_json:
            for row, line in zip(kept, lines, strict=True):
                data = dict(zip(keep, map(_plain, row), strict=True)) | _named(line, names)
                file.write(json.dumps(data, ensure_ascii=False) + "\n")
        else:
            writer.writerows([*map(_spelt, row), *line] for row, line in zip(kept, lines, strict=True))
        file.flush()
        count += len(lines)
    return count


def _lines(model: Model, batch: Batch, proba: bool) -> list[list[Any]]:
    """Prediction and probabilities of each row; None for a bad row."""
    bad: list[bool] = [False] * len(batch.X) if batch.bad is None else batch.bad.tolist()
    scores = model.scores(batch.X)
    lines = [[value] for value in model.contract.decode_predictions(scores).tolist()]
    if proba:
        for line, chances in zip(lines, model.probabilities(scores).tolist(), strict=True):
            line += chances
    return [[None] * len(line) if wrong else line for line, wrong in zip(lines, bad, strict=True)]


def _spelt(value: Any) -> str | None:
    """A value that is carried through, in CSV: a text as it is."""
    return value if isinstance(value, str) else text_of(value)


def _plain(value: Any) -> Any:
    """A value that is carried through, in JSON: what JSON has no type for is a text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int) else text_of(value)


def _named(line: list[Any], names: tuple[Any, ...]) -> dict[str, Any]:
    chances = {"probabilities": dict(zip(map(str, names), line[1:], strict=True))} if line[1:] else {}
    return {"prediction": line[0], **chances}


def has_probabilities(model: Model) -> None:
    """Reject a model whose scores are no probabilities."""
    if not model.contract.target.names or model.contract.loss == "hinge":
        what = "hinge loss" if model.contract.target.names else "a number"
        raise InvalidInput(
            f'predictions of {what} have no probabilities. To get them, learn classes with loss = "logistic".'
        )
