"""What the classifiers for scikit-learn share: labels become classes, and classes labels."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

try:
    from sklearn.base import ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
except ImportError:  # pragma: no cover
    raise ImportError("taciturn.estimators.sklearn needs scikit-learn: install taciturn[sklearn].") from None

from taciturn._util.arrays import Array
from taciturn.errors import InvalidInput
from taciturn.estimators.labels import classes_of, labels_of
from taciturn.estimators.settings import LossName, MethodName, Settings
from taciturn.estimators.sklearn_base import PrivateLinearModel
from taciturn.estimators.stream import PrivacyWarning


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """What the two classifiers share: labels to classes and back."""

    _numbers = False
    _loss: LossName

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        feature_bound: float | None = None,
        classes: Any = None,
        fit_intercept: bool = True,
        method: MethodName = "auto",
        release: str | int = "auto",
        horizon: int | None = None,
        radius: float | None = None,
        ridge: float | None = None,
        neighbours: Literal["replace", "zero-out"] = "replace",
        seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.method = method
        self.release = release
        self.horizon = horizon
        self.radius = radius
        self.ridge = ridge
        self.neighbours = neighbours
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from a whole data set, as a stream of its own."""
        return self._learn_all(X, y, self.classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn from the next rows; any number of calls on different people costs the stated budget once.

        The first call needs the labels that there can be: here, or in the constructor.
        """
        classes = self.classes if classes is None else classes
        if classes is None and self._opened is None:
            raise InvalidInput("the first partial_fit needs classes, all labels that there can be. They are public.")
        return self._learn_more(X, y, classes)

    @property
    def classes_(self) -> Any:
        """The labels that there can be, in their order."""
        return self._fitted.classes

    def decision_function(self, X: Any) -> Array:
        """Scores: positive for the second of two classes, or one for each class."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """The class of each row by the latest model; rows are bounded as in learning."""
        scores = self._scores(X)
        return self.classes_[classes_of(scores)]

    def _request(self, classes: Any) -> Settings:
        settings = {k: v for k, v in self.get_params().items() if k not in ("horizon", "classes")}
        return Settings(self._loss, **settings, classes=len(classes))

    def _class_set(self, y: Any, classes: Any) -> Any:
        check_classification_targets(y)
        if classes is None:
            warnings.warn(
                "the set of labels was read off y, and is published. State it, as in classes=[0, 1], if y could show "
                "a label that only private data has.",
                PrivacyWarning,
                stacklevel=5,
            )
        found = np.unique(y if classes is None else classes)
        if len(found) < 2:
            raise InvalidInput(f"a classifier needs two classes or more, got {len(found)} class. State classes=.")
        return found

    def _encoded(self, y: Any, classes: Any) -> Any:
        """The labels of declared classes, or a refusal."""
        at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if not (classes[at] == y).all():
            raise InvalidInput(
                "y has a label that was not declared. State all of them, as in classes=[0, 1], before the first "
                "example: they are public."
            )
        return labels_of(at, len(classes))
