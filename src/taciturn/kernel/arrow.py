"""Values of Arrow columns as Python objects, each by itself: what one of them holds is never an error."""

from __future__ import annotations

from typing import Any


def listed(column: Any) -> list[Any]:
    r"""The values of an array or of a chunked array; text that is not UTF-8 has replacement characters.

    None stands for a value that is missing, or has no equivalent in Python, such as a date after the year 9999.

    >>> import pyarrow
    >>> listed(pyarrow.array([b"a", b"\xff", None]).view(pyarrow.string()))
    ['a', '\ufffd', None]
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column):
        column = column.cast(pa.binary() if pa.types.is_string(column.type) else pa.large_binary())
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_object(value) for value in column]
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]


def is_text(column: Any) -> bool:
    """Whether the values of a column are texts, in a dictionary or not."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _object(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return None
