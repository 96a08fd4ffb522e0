"""Labels as a stream takes them: declared classes by their numbers, and numbers; what is neither is NaN."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np

from taciturn.errors import InvalidInput, float_or_nan
from taciturn.estimators.links import labels_of


class Labels(Protocol):
    """A rule that turns labels into numbers."""

    remedy: str

    def __call__(self, y: Any) -> float:
        """The number of a label; NaN if it has none."""


class Classes:
    """Declared classes: two are -1 and +1, more are 0, 1, 2, …; a class that was not declared has no number.

    Classes are declared because a set of classes that were seen would publish who was there.

    >>> Classes(["ham", "spam"])("spam"), Classes([3, 5, 7])(5), Classes([False, True])("spam")
    (1.0, 1.0, nan)
    """

    def __init__(self, classes: Iterable[Hashable]) -> None:
        self.classes = tuple(classes)
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise InvalidInput(
                "classes must be two or more, all different. Declare them as in classes=['ham', 'spam']."
            )
        labels: list[float] = labels_of(np.arange(len(self.classes)), len(self.classes)).tolist()
        self._labels = dict(zip(self.classes, labels, strict=True))
        self.remedy = f"Declare every class there may be; declared are {', '.join(map(repr, self.classes))}."

    def __call__(self, y: Any) -> float:
        try:
            return self._labels.get(y, math.nan)
        except TypeError:  # it cannot even be looked up
            return math.nan


class Numbers:
    """Labels that are numbers already.

    >>> Numbers()(2), Numbers()("two")
    (2.0, nan)
    """

    remedy = "Give a number."

    def __call__(self, y: Any) -> float:
        number = float_or_nan(y)
        return number if math.isfinite(number) else math.nan
