"""Columns of Parquet files, which need pyarrow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import InvalidInput, TaciturnError

MAGIC = b"PAR1"


def is_parquet(data: bytes) -> bool:
    """Whether `data` begins as Parquet files do.

    >>> is_parquet(b"1, 2")
    False
    """
    return data.startswith(MAGIC)


def read_columns(data: bytes, names: Sequence[str]) -> list[NDArray[Any]]:
    """The columns of these names; a missing number is NaN."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise TaciturnError("Parquet files need the extra `data` (pyarrow): install taciturn[data].") from None
    try:
        file = ParquetFile(io.BytesIO(data))
        absent = [name for name in names if name not in file.schema_arrow.names]
        table = file.read(columns=list(names))
    except (ArrowException, OSError) as error:
        raise InvalidInput(f"it cannot be read as a Parquet file ({error}).") from error
    if absent:
        raise InvalidInput(f"it has no column {absent[0]}.")
    return [np.asarray(table[name].to_numpy()) for name in names]
