"""Values as a record has them: numbers exactly, long arrays by a hash with what lets a difference be read.

A number is written as Python prints it, which determines all of its bits, and compared to the bit; an epsilon, which is
computed from a cost, up to rounding. An array of at most `WHOLE` numbers is written in full; of a longer one a record
has type, shape, SHA-256 of its bytes, its first and last numbers, and, if it has rows, a digest of one byte for each of
the first `ROWS`, which tell the first row that differs.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

WHOLE, SHOWN, ROWS = 6, 2, 24
SAME_EPSILON = 1e-12  # relative: it is the root of an equation, whose last digit differs between machines
_EPSILON = re.compile(r"(^|[._])epsilons?($|[.\[])")


def recorded(value: object) -> object:
    """A value as JSON data; names are kept, and other texts are for the caller to leave out."""
    if isinstance(value, Mapping):
        return {str(name): recorded(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return recorded(value.item())
    if isinstance(value, tuple | list | set | frozenset):
        return [recorded(each) for each in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a record holds numbers, names and arrays, got {type(value).__name__}. Convert it.")


def _array(array: np.ndarray) -> object:
    if 0 < array.size <= WHOLE:
        return array.tolist()
    numbers = np.ascontiguousarray(array)
    flat = numbers.ravel()
    made = {
        "type": array.dtype.str,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(numbers.tobytes()).hexdigest(),
    }
    made |= {"first": flat[:SHOWN].tolist(), "last": flat[-SHOWN:].tolist()}
    if array.ndim > 1:
        made["rows"] = "".join(hashlib.sha256(row.tobytes()).hexdigest()[:2] for row in numbers[:ROWS])
    return made


def text_of(record: object) -> str:
    """A record as JSON with a line for each number, list or array."""
    if not isinstance(record, dict) or "sha256" in record:
        return json.dumps(record, separators=(",", ":"))
    return "{\n" + ",\n".join(f"{json.dumps(name)}:{text_of(each)}" for name, each in record.items()) + "\n}"


def numbers_in(data: object) -> object:
    """JSON data without its texts: numbers, truth values and nulls, with the names that lead to them."""
    if isinstance(data, Mapping):
        kept = {name: numbers_in(each) for name, each in data.items() if not isinstance(each, str)}
        return {name: each for name, each in kept.items() if not (isinstance(each, dict | list) and not each)}
    if isinstance(data, Sequence) and not isinstance(data, str):
        kept = [numbers_in(each) for each in data if not isinstance(each, str)]
        if len(kept) > WHOLE and all(isinstance(each, int | float) for each in kept):
            return np.array(kept, dtype=np.float64)
        return kept
    return data


def differences(old: object, new: object, at: str = "") -> Iterator[tuple[str, str, str]]:
    """Where two records differ, and what each has there."""
    if isinstance(old, dict) and isinstance(new, dict):
        if "sha256" in old and "sha256" in new:
            if (old["type"], old["shape"], old["sha256"]) != (new["type"], new["shape"], new["sha256"]):
                yield at, _told(old, new), _told(new, old)
            return
        for name in [*old, *(name for name in new if name not in old)]:
            inside = f"{at}.{name}" if at else str(name)
            if name not in old or name not in new:
                yield (
                    inside,
                    "nothing" if name not in old else _short(old[name]),
                    ("nothing" if name not in new else _short(new[name])),
                )
            else:
                yield from differences(old[name], new[name], inside)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{at}[{i}]")
    elif not _same(old, new, at):
        yield at, _short(old), _short(new)


def _same(old: object, new: object, at: str) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        if _EPSILON.search(at):
            return math.isclose(old, new, rel_tol=SAME_EPSILON, abs_tol=0.0)
        return old.hex() == new.hex() or (math.isnan(old) and math.isnan(new))
    return type(old) is type(new) and old == new


def _told(one: dict, other: dict) -> str:
    """An array in a few words: its shape, and the first row in which it differs."""
    if (one["type"], one["shape"]) != (other["type"], other["shape"]):
        return f"{one['type']} {one['shape']}"
    mine, others = (each.get("rows", "") for each in (one, other))
    row = next((i for i in range(len(mine) // 2) if mine[2 * i : 2 * i + 2] != others[2 * i : 2 * i + 2]), None)
    where = "" if not mine else f"from row {row} " if row is not None else f"after row {len(mine) // 2} "
    return f"{where}[{', '.join(map(repr, one['first']))}, …, {', '.join(map(repr, one['last']))}]"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:87]}..."


def arrays_in(value: object, at: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of what a stream has made, by where they are."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from arrays_in(each, f"{at}.{name}" if at else str(name))
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from arrays_in(each, f"{at}[{i}]")
    elif isinstance(value, np.ndarray):
        yield at, value
