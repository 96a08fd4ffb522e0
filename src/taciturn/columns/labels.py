"""Labels as numbers, classes as labels, and scores as classes and their probabilities."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, softmax

from taciturn.errors import InvalidInput, float_or_nan
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.losses import Logistic, Squared
from taciturn.kernel.problem.multiclass import OneHot, Softmax
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.row_wise import RowWise, row_wise
from taciturn.methods.weighted import unweighted


class Labels(Protocol):
    """A rule that converts labels to numbers."""

    @property
    def remedy(self) -> str:
        """What to do about a label that has no number."""

    def __call__(self, y: Any) -> float:
        """The number of a label; NaN if it has none."""


class Classes(RowWise):
    """Declared classes: two are -1 and +1, more are 0, 1, 2, …; a class that was not declared has no number.

    Classes are declared because the set of classes in the data is not public.

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
        except TypeError:  # unhashable
            return math.nan


class Numbers(RowWise):
    """Labels that are numbers already.

    >>> Numbers()(2), Numbers()("two")
    (2.0, nan)
    """

    remedy = "Give a number."

    def __call__(self, y: Any) -> float:
        number = float_or_nan(y)
        return number if math.isfinite(number) else math.nan


@row_wise
def labels_of(numbers: Integers, classes: int) -> Array:
    """Labels of class numbers from 0 on: -1 and +1 if there are two classes, else the numbers themselves.

    >>> labels_of(np.array([0, 1]), classes=2), labels_of(np.array([2, 0]), classes=3)
    (array([-1.,  1.]), array([2., 0.]))
    """
    labels = numbers.astype(np.float64)
    return 2.0 * labels - 1.0 if classes == 2 else labels


def classes_of(scores: Array) -> Integers:
    """Class numbers of rows of scores: by the sign of the score if there are two classes, else by the largest score.

    >>> classes_of(np.array([-0.3, 0.2])), classes_of(np.array([[0.1, 0.5, 0.2]]))
    (array([0, 1]), array([1]))
    """
    return np.asarray(scores > 0.0 if scores.ndim == 1 else np.argmax(scores, axis=1), dtype=np.int64)


def probabilities(problem: Problem, scores: Array) -> Array:
    """Class probabilities, a row for each row of scores, by the loss of the problem.

    Logistic and softmax losses have their own link; with least squares on labels of classes the score itself estimates
    a probability, and is clipped to [0, 1].

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> probabilities(Problem(Logistic(), L2Ball(1.0), dimension=1), np.array([0.0]))
    array([[0.5, 0.5]])
    """
    loss = unweighted(problem.loss)
    if isinstance(loss, Softmax):
        return np.asarray(softmax(scores, axis=1))
    if isinstance(loss, Logistic):
        return np.column_stack([expit(-scores), expit(scores)])
    if isinstance(loss, Squared):
        second = np.clip((1.0 + scores) / 2.0, 0.0, 1.0)
        return np.column_stack([1.0 - second, second])
    if not isinstance(loss, OneHot):
        raise InvalidInput(f"scores of {type(loss).__name__} are no probabilities. Learn with logistic loss.")
    share = np.clip(scores + 1.0 / problem.outputs, 1e-12, 1.0)
    return np.asarray(share / share.sum(axis=1, keepdims=True))
