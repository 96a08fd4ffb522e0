"""The parser of contract files: an unknown, missing or mistyped key is an error that names the key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from taciturn.columns.declaration import KINDS, Section
from taciturn.columns.values import is_number
from taciturn.errors import InvalidInput, integer
from taciturn.kernel.accounting.unit import ClockPeriod
from taciturn.memories import windows_of
from taciturn.plan import FeatureName, Features
from taciturn.tables.random_features import RandomFeatures

BLANK = "?"
"""The placeholder of a draft for a value that the user has to state."""

FeatureChoice = FeatureName | int | RandomFeatures


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a contract file, as plain data."""
    text = ""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Draft a contract with taciturn init.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if {suffix.lower() for suffix in Path(path).suffixes} & {".csv", ".tsv", ".json", ".jsonl", ".parquet"}:
            raise InvalidInput(
                f"{path} is data, by its name, and not a contract. The contract comes first, as in taciturn check "
                f"taciturn.toml {path}."
            ) from None
        if isinstance(error, UnicodeDecodeError):
            raise InvalidInput(f"{path} is not UTF-8 text. Save it in that encoding.") from None
        if (twice := _twice(text, str(error))) is not None:
            raise InvalidInput(f"{path}: {twice} is declared twice. Remove one of the two.") from None
        raise InvalidInput(
            f"{path} is not valid TOML: {error}. Put texts in quotes, and names with a blank or a letter that is not "
            "from a to z, too; lists in brackets; and what is in braces on one line."
        ) from None


def _twice(text: str, error: str) -> str | None:
    r"""The key or table that a parser's error is about, if it says that it is there twice; None otherwise.

    >>> _twice("[columns]\nage = 1\nage = 2", "Cannot overwrite a value (at end of document)")
    'age'
    """
    if found := re.match(r"Cannot declare \((.*?),?\) twice", error):
        return "[" + ".".join(part.strip().strip("'\"") for part in found[1].split(",")) + "]"
    if found := re.match(r"Duplicate inline table key '(.*)'", error):
        return found[1]
    if not error.startswith("Cannot overwrite a value"):
        return None
    at = re.search(r"at line (\d+)", error)
    lines = text.splitlines()[: int(at[1]) if at else None]
    return next((line.partition("=")[0].strip() for line in reversed(lines) if "=" in line), None)


def release_of(learning: Section) -> str | int:
    """The release schedule: a name, or a number of rows between releases."""
    value = learning.take("release", "auto")
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return learning.choice("release", ("auto", "geometric", "every"), "auto", also="a number of rows, 1 or more")


def forget_of(learning: Section) -> int | tuple[int, ...] | Literal["auto"] | None:
    """The window of a model that forgets: a number of rows, several of them, "auto", or None.

    >>> forget_of(Section("learning", {"forget": 10_000})), forget_of(Section("learning", {}))
    (10000, None)
    >>> forget_of(Section("learning", {"forget": [1_000, 10_000]}))
    (1000, 10000)
    """
    if learning.data.get("forget") == "auto":
        learning.take("forget")
        return "auto"
    if isinstance(learning.data.get("forget"), list):
        try:
            return windows_of(learning.take("forget"))
        except InvalidInput as error:
            raise InvalidInput(f"learning.forget: {error}") from None
    return learning.integer("forget")


def features_of(learning: Section) -> FeatureChoice:
    """What is learnt from: a name, a number of random features, or a table of their settings, but for the length.

    >>> features_of(Section("learning", {"features": {"count": 100, "scale": 2.0}}))
    RandomFeatures(count=100, scale=2.0, length=1.0, seed=0)
    """
    value = learning.take("features", "linear")
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if not isinstance(value, dict):
        names: tuple[FeatureName, ...] = get_args(FeatureName)
        return learning.choice("features", names, "linear", also="a number of random features")
    table = learning.section("features")
    scale = table.take("scale")
    if scale is None:
        table.number("scale", remedy=f"State it, as in scale = 2.0; or write features = {value.get('count', 300)}.")
    scales = scale if isinstance(scale, list) else [scale]
    if not scales or not all(map(is_number, scales)):
        raise InvalidInput(f"{table.key('scale')} must be a number, or a list of one for each feature.")
    made = RandomFeatures(
        integer(table.key("count"), table.number("count")),
        tuple(map(float, scales)) if isinstance(scale, list) else float(scales[0]),
        seed=integer(table.key("seed"), table.number("seed", 0), least=0),
    )
    table.close()
    return made


def features_declared(features: Features | None) -> Any:
    """The same as plain data, in the form that `features_of` takes; None for the default."""
    if isinstance(features, RandomFeatures):
        scale = list(features.scale) if isinstance(features.scale, tuple) else features.scale
        return {"count": features.count, "scale": scale, "seed": features.seed}
    return None if features == "linear" else features


def period_of(privacy: Section) -> int | ClockPeriod | None:
    """The period of a bound on rows: a name of the calendar, a number of rows, or None."""
    value = privacy.take("period")
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return None if value is None else int(value)
    named: tuple[ClockPeriod, ...] = get_args(ClockPeriod)
    if not isinstance(value, str):
        raise InvalidInput(f"privacy.period must be one of {', '.join(named)}, or a number of rows, 1 or more.")
    return privacy.choice("period", named, "month", also="a number of rows, 1 or more")


def blanks(data: Any, key: str = "") -> Iterator[str]:
    """The keys that a draft left blank.

    >>> list(blanks({"privacy": {"epsilon": "?"}, "columns": {"x": {"range": ["?", 2]}}}))
    ['privacy.epsilon', 'columns.x.range']
    """
    if data == BLANK or (key.endswith(".range") and isinstance(data, list) and BLANK in data):  # a category may be "?"
        yield key
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from blanks(value, f"{key}.{name}" if key else str(name))


def reject_blanks(data: dict[str, Any]) -> None:
    """Reject a draft with blanks, and name them."""
    keys = list(blanks(data))
    if not keys:
        return
    first, *others = keys
    rest = f" Open as well: {', '.join(others[:20])}{' and more' if len(others) > 20 else ''}." if others else ""
    if first.startswith("columns."):
        name = first.removeprefix("columns.").removesuffix(".range").removesuffix(".categories")
        raise InvalidInput(f"state the range of {name}. Fill in {first} with public values: {KINDS}.{rest}")
    raise InvalidInput(f'{first} is still "{BLANK}". Fill it in; taciturn never reads it off the data.{rest}')
