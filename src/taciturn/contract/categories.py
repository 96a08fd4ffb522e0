"""The values that a column or a target may have, as they are declared."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.contract.values import Values, is_number, number_of, shown
from taciturn.errors import InvalidInput

Bad = NDArray[np.bool_]
Named = int | float | str
"""A category or class as it is declared."""


@dataclass(frozen=True)
class Vocabulary:
    """The declared values of a column: numbers, which values equal, or texts, which they spell.

    >>> Vocabulary((1, 2, 7)).place("7.0"), Vocabulary(("a", "b")).place("c")
    (2, -1)
    """

    values: tuple[Named, ...]

    @cached_property
    def _places(self) -> dict[Named, int]:
        return {value if isinstance(value, str) else float(value): i for i, value in enumerate(self.values)}

    @property
    def numeric(self) -> bool:
        """Whether they are numbers."""
        return not isinstance(self.values[0], str)

    def place(self, text: str | None) -> int:
        """Which of them a text is, or -1."""
        if text is None:
            return -1
        return self._places.get(number_of(text) if self.numeric else text, -1)

    def places(self, values: Values) -> tuple[NDArray[np.int64], Bad]:
        """Which of them each value is, or -1; and which values are missing."""
        codes, texts = values.texts()
        places = np.array([self.place(text) for text in texts], dtype=np.int64)
        missing = np.array([text is None for text in texts], dtype=np.bool_)
        return places[codes], missing[codes]


def named(values: Iterable[Any]) -> tuple[Named, ...]:
    """Declared values as Python's own numbers and texts, whatever types they came in.

    >>> named([np.int8(3), np.float16(0.5), "no"])
    (3, 0.5, 'no')
    """
    return tuple(_named(value) for value in values)


def _named(value: Any) -> Named:
    if isinstance(value, np.floating):
        return float(value)
    plain: Named = value.item() if isinstance(value, np.generic) else value
    return plain


def check_values(key: str, values: Iterable[Any]) -> tuple[Named, ...]:
    """Categories or classes as declared: all numbers or all texts, none twice, none empty."""
    listed = tuple(values)
    numbers = all(is_number(v) and math.isfinite(v) for v in listed)
    if not listed or not (numbers or all(isinstance(v, str) for v in listed)):
        raise InvalidInput(f'{key} must list numbers or texts, as in [1, 2] or ["no", "yes"]; got {shown(listed)}.')
    spelt = [v.strip() if isinstance(v, str) else float(v) for v in listed]
    if "" in spelt:
        raise InvalidInput(f"{key} names an empty text. Leave it out: an empty value is a missing one.")
    if len(set(spelt)) < len(spelt):
        raise InvalidInput(f"{key} names a value twice: {shown(listed)}. Name each once.")
    return tuple(v.strip() if isinstance(v, str) else v for v in listed)
