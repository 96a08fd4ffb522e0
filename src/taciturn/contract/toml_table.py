"""A table of a contract file, read key by key: what is asked for is checked, and what nobody asked for is refused."""

from __future__ import annotations

import difflib
from typing import Any, TypeVar, overload

from taciturn.contract.values import is_number, shown
from taciturn.errors import InvalidInput, integer, positive

BLANK = "?"
"""What a draft puts where someone has to state something."""

Choice = TypeVar("Choice", bound=str)


class Section:
    """One table; `close` refuses the keys that were not taken.

    >>> section = Section("privacy", {"epsilon": 1, "detla": 1e-6})
    >>> section.number("epsilon"), section.number("delta", 1e-6)
    (1.0, 1e-06)
    >>> section.close()
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: privacy.detla is unknown. Did you mean delta?
    """

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name, self.data = name, data
        self._known: list[str] = []

    def key(self, key: str) -> str:
        """The key's full name."""
        return f"{self.name}.{key}" if self.name else key

    def take(self, key: str, default: Any = None) -> Any:
        """The value, whatever it is."""
        self._known.append(key)
        return self.data.get(key, default)

    def section(self, key: str) -> Section:
        """A table within; an empty one if it is missing."""
        value = self.take(key, {})
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.key(key)} must be a table: write [{key}] on a line of its own.")
        return Section(self.key(key), value)

    @overload
    def number(self, key: str, default: float = ..., remedy: str = ...) -> float: ...
    @overload
    def number(self, key: str, default: None, remedy: str = ...) -> float | None: ...
    def number(self, key: str, default: Any = ..., remedy: str = "") -> float | None:
        """A number; without a default it must be there."""
        value = self.take(key, default)
        if value is ...:
            raise InvalidInput(f"{self.key(key)} is missing. {remedy}".rstrip())
        if value is None:
            return None
        if not is_number(value):
            raise InvalidInput(f"{self.key(key)} must be a number, got {shown(value)}. Write it without quotes.")
        return float(value)

    def positive(self, key: str) -> float | None:
        """A positive number, or None."""
        value = self.number(key, None)
        return None if value is None else positive(self.key(key), value)

    def integer(self, key: str) -> int | None:
        """A whole number from 1 on, or None."""
        value = self.number(key, None)
        return None if value is None else integer(self.key(key), value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise InvalidInput(f"{self.key(key)} must be true or false, without quotes; got {shown(value)}.")
        return value

    def text(self, key: str, remedy: str) -> str:
        """A text; it must be there."""
        value = self.take(key)
        if not isinstance(value, str) or not value:
            came = "is missing" if value is None else f"must be a text in quotes, got {shown(value)}"
            raise InvalidInput(f"{self.key(key)} {came}. {remedy}")
        return value

    def choice(self, key: str, allowed: tuple[Choice, ...], default: Choice) -> Choice:
        """One of a few words."""
        value = self.take(key, default)
        for choice in allowed:
            if choice == value:
                return choice
        raise InvalidInput(f"{self.key(key)} must be one of {', '.join(allowed)}; got {shown(value)}.")

    def listed(self, key: str) -> list[Any]:
        """A list."""
        value = self.take(key)
        if not isinstance(value, list):
            raise InvalidInput(f"{self.key(key)} must be a list in brackets, got {shown(value)}.")
        return value

    def pair(self, key: str) -> tuple[float, float]:
        """Two numbers."""
        value = self.take(key)
        if not isinstance(value, list) or len(value) != 2 or not all(map(is_number, value)):
            raise InvalidInput(f"{self.key(key)} must be two numbers, as in [0, 100]; got {shown(value)}.")
        return float(value[0]), float(value[1])

    def close(self) -> None:
        """Refuse what nobody asked for."""
        for key in self.data:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, 1)
                remedy = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(dict.fromkeys(self._known))}."
                raise InvalidInput(f"{self.key(key)} is unknown. {remedy}")
