"""Declarations of columns and targets as plain data, in the words of TOML: one vocabulary for every front.

An unknown, missing or mistyped key is an error that names the key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar, get_args, overload

from taciturn.columns.kinds import (
    Bins,
    Categories,
    Column,
    Date,
    Hashed,
    Ignored,
    PrivateRange,
    Range,
    Text,
    check_values,
)
from taciturn.columns.scales import Scale, ScaleName
from taciturn.columns.target import Classes, Number, Positive, PrivateNumber, Target
from taciturn.columns.values import is_number, short_repr
from taciturn.errors import InvalidInput, did_you_mean, integer, positive

Choice = TypeVar("Choice", bound=str)

KINDS = (
    'range = [low, high], range = "private", bins = [...], date = [first, last], categories = [...], hash = 256, '
    "text = { hash = 1024 } or ignore = true"
)


_KEYS = ("range", "bins", "date", "categories", "hash", "text", "ignore")


def column_of(name: str, declared: Any) -> Column:
    """The column that a value of [columns] declares.

    >>> column_of("age", {"range": [0, 100]})
    Range(name='age', low=0.0, high=100.0, missing='middle', indicator=False, scale=Scale(name='linear', threshold=1.0))
    """
    if not isinstance(declared, dict):
        raise InvalidInput(
            f"columns.{name} must be a table, got {type(declared).__name__}. Declare it as in "
            f"{{ range = [0, 100] }}: {KINDS}."
        )
    section = Section(f"columns.{name}", declared)
    kinds = [key for key in _KEYS if key in declared]
    _reject_near_misses(section, kinds)
    made: Column
    if kinds == ["range"]:
        indicator = section.flag("indicator", False)
        made = (
            _private_range(section, indicator)
            if _is_private(section)
            else Range(name, *section.pair("range"), section.take("missing", "middle"), indicator, scale_of(section))
        )
    elif kinds == ["bins"]:
        made = Bins(name, tuple(section.listed("bins")), _one_hot_missing(section))
    elif kinds == ["date"]:
        made = _date(name, section)
    elif kinds == ["categories"]:
        listed = check_values(f"columns.{name}.categories", section.listed("categories"))
        made = Categories(name, listed, _one_hot_missing(section))
    elif kinds == ["hash"]:
        made = Hashed(name, section.integer("hash") or 0, _one_hot_missing(section))
    elif kinds == ["text"]:
        if not isinstance(declared["text"], dict):
            raise InvalidInput(
                f"{section.key('text')} must be a table, as in text = {{ hash = 1024 }}; got "
                f"{short_repr(declared['text'])}."
            )
        words = section.section("text")
        buckets = integer(words.key("hash"), words.number("hash", remedy="State the number of features, as in 1024."))
        words.close()
        made = Text(name, buckets, _one_hot_missing(section))
    elif kinds == ["ignore"] and section.flag("ignore", True):
        made = Ignored(name)
    else:
        raise InvalidInput(f"columns.{name} must have exactly one of {KINDS}.")
    section.close()
    return made


def _date(name: str, section: Section) -> Date:
    ends = section.listed("date")
    if len(ends) != 2:
        raise InvalidInput(
            f'{section.key("date")} must be two dates, as in ["2015-01-01", "2030-01-01"]; got {short_repr(ends)}.'
        )
    cycle = tuple(section.listed("cycle")) if "cycle" in section.data else ()
    first, last = ends
    return Date(name, first, last, cycle, section.take("missing", "middle"), section.flag("indicator", False))


def scale_of(section: Section) -> Scale:
    """The scale of a range.

    >>> scale_of(Section("target", {"range": [1, 100], "scale": "log"}))
    Scale(name='log', threshold=1.0)
    """
    names: tuple[ScaleName, ...] = get_args(ScaleName)
    name = section.choice("scale", names, "linear")
    if "threshold" in section.data and name != "symlog":
        raise InvalidInput(f'{section.key("threshold")} is for scale = "symlog". Remove it, or use that scale.')
    return Scale(name, section.positive("threshold") or 1.0)


def _reject_scale(section: Section) -> None:
    for key in ("scale", "threshold"):
        if key in section.data:
            raise InvalidInput(
                f"{section.key(key)} needs a stated range, as in range = [1, 1000]. State it, or remove it."
            )


def _private_range(section: Section, indicator: bool) -> PrivateRange:
    _reject_scale(section)
    if section.take("missing", "middle") != "middle":
        raise InvalidInput(
            f"{section.key('missing')} cannot be stated for a private range, whose missing values take the center that "
            "is found. Remove it, and add indicator = true to learn from values being missing; or state the range."
        )
    return PrivateRange(section.name.removeprefix("columns."), indicator)


def _one_hot_missing(section: Section) -> Any:
    """What a missing value is; for an indicator, there is a choice of that instead."""
    if "indicator" in section.data:
        raise InvalidInput(f'{section.key("indicator")} is for numbers. Use missing = "category" instead.')
    return section.take("missing", "zero")


def _is_private(section: Section) -> bool:
    """Whether the range of this section is to be found."""
    return section.data.get("range") == "private" and section.take("range") == "private"


def _reject_near_misses(section: Section, kinds: list[str]) -> None:
    if not kinds:
        for key in section.data:
            if near := did_you_mean(key, _KEYS):
                raise InvalidInput(f"{section.key(key)} is unknown.{near}")


def target_of(section: Section) -> Target:
    """The target that a table declares.

    >>> target_of(Section("target", {"column": "bought", "positive": ["yes"]})).names
    ('rest', 'yes')
    """
    column = section.text("column", "Name the column to predict.")
    kinds = [key for key in ("classes", "positive", "range") if key in section.data]
    if len(kinds) != 1:
        raise InvalidInput(
            f"state exactly one of classes, positive and range for the target {column}, got "
            f"{' and '.join(kinds) or 'none'}: as in "
            "classes = [1, 2, 7], positive = [2] for these against the rest, or range = [0, 10] for a number."
        )
    if kinds == ["range"]:
        if _is_private(section):
            _reject_scale(section)
            return PrivateNumber(column)
        return Number(column, *section.pair("range"), scale_of(section))
    values = check_values(f"target.{kinds[0]}", section.listed(kinds[0]))
    if kinds == ["positive"]:
        made = Positive(column, values)
        return replace(made, class_weight=_class_weight(section, made.names))
    if len(values) < 2:
        raise InvalidInput(
            f"target.classes must list two or more classes, got {short_repr(values)}. "
            "For one class against the rest, use positive."
        )
    return Classes(column, values, _class_weight(section, values))


def _class_weight(section: Section, names: tuple[Any, ...]) -> tuple[float, ...] | None:
    """The weight of each class, 1 for those that have none; keys of TOML are the names of classes as texts."""
    if "class_weight" not in section.data:
        return None
    if not isinstance(stated := section.data["class_weight"], dict):
        raise InvalidInput(
            f"{section.key('class_weight')} must be a public weight for each class, as in class_weight = "
            f"{{ {names[-1]} = 20 }}; got {short_repr(stated)}."
        )
    weights = section.section("class_weight")
    made = tuple(weights.positive(str(name)) or 1.0 for name in names)
    weights.close()
    return made


class Section:
    """One table of the file, read key by key; `close` rejects the keys that were not read.

    >>> section = Section("privacy", {"epsilon": 1, "detla": 1e-6})
    >>> section.number("epsilon"), section.number("delta", 1e-6)
    (1.0, 1e-06)
    >>> section.close()
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: privacy.detla is unknown. Did you mean delta?
    """

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        self.data = data
        self._known: list[str] = []

    def key(self, key: str) -> str:
        """The key's full name."""
        return f"{self.name}.{key}" if self.name else key

    def take(self, key: str, default: Any = None) -> Any:
        """The value, of any type."""
        self._known.append(key)
        return self.data.get(key, default)

    def section(self, key: str) -> Section:
        """A nested table; an empty one if it is missing."""
        value = self.take(key, {})
        self._reject_misspelling(key)
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.key(key)} must be a table: write [{key}] on a line of its own.")
        return Section(self.key(key), value)

    @overload
    def number(self, key: str, default: float = ..., remedy: str = ...) -> float: ...
    @overload
    def number(self, key: str, default: None, remedy: str = ...) -> float | None: ...
    def number(self, key: str, default: Any = ..., remedy: str = "") -> float | None:
        """A number; without a default it is required."""
        value = self.take(key, default)
        if value is ...:
            self._reject_misspelling(key)
            raise InvalidInput(f"{self.key(key)} is missing. {remedy}".rstrip())
        if value is None:
            return None
        if not is_number(value):
            raise InvalidInput(f"{self.key(key)} must be a number, got {short_repr(value)}. Write it without quotes.")
        return float(value)

    def positive(self, key: str) -> float | None:
        """A positive number, or None."""
        value = self.number(key, None)
        return None if value is None else positive(self.key(key), value)

    def integer(self, key: str) -> int | None:
        """A positive integer, or None."""
        value = self.number(key, None)
        return None if value is None else integer(self.key(key), value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise InvalidInput(f"{self.key(key)} must be true or false, without quotes; got {short_repr(value)}.")
        return value

    def text(self, key: str, remedy: str) -> str:
        """A text; it is required."""
        value = self.take(key)
        if not isinstance(value, str) or not value:
            self._reject_misspelling(key)
            came = "is missing" if value is None else f"must be a text in quotes, got {short_repr(value)}"
            raise InvalidInput(f"{self.key(key)} {came}. {remedy}")
        return value

    def choice(self, key: str, allowed: tuple[Choice, ...], default: Choice, also: str = "") -> Choice:
        """One of the allowed words; `also` says what else could be stated."""
        value = self.take(key, default)
        for choice in allowed:
            if choice == value:
                return choice
        near = did_you_mean(value, allowed)
        what = ", or ".join([", ".join(allowed), *([also] if also else [])])
        raise InvalidInput(f"{self.key(key)} must be one of {what}; got {short_repr(value)}.{near}")

    def listed(self, key: str) -> list[Any]:
        """A list."""
        value = self.take(key)
        if not isinstance(value, list | tuple):
            raise InvalidInput(f"{self.key(key)} must be a list in brackets, got {short_repr(value)}.")
        return list(value)

    def pair(self, key: str) -> tuple[float, float]:
        """Two numbers."""
        value = self.take(key)
        if not isinstance(value, list | tuple) or len(value) != 2 or not all(map(is_number, value)):
            raise InvalidInput(f"{self.key(key)} must be two numbers, as in [0, 100]; got {short_repr(value)}.")
        return float(value[0]), float(value[1])

    def close(self) -> None:
        """Reject the keys that were not read."""
        for key in self.data:
            if key not in self._known:
                known = f" Known are {', '.join(dict.fromkeys(self._known))}."
                raise InvalidInput(f"{self.key(key)} is unknown.{did_you_mean(key, self._known) or known}")

    def _reject_misspelling(self, key: str) -> None:
        """If this key is not there, reject one that nearly has its name, rather than say that it is missing."""
        for other in self.data if key not in self.data else ():
            if did_you_mean(
                other, [key], least=0.83
            ):  # two letters swapped; not a key that is known and has a similar name
                raise InvalidInput(f"{self.key(other)} is unknown. Did you mean {key}?")
