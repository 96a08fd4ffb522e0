"""The learning problem: loss, convex set and public bounds; it validates and clips every example."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.accounting.unit import Neighbours
from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput, Unprovable, expect, finite, integer, not_negative, one_of, positive
from taciturn.kernel.problem.clipping import (
    append_column,
    as_rows,
    bad_labels,
    clip_rows,
    clip_sparse_rows,
    describe_bad_row,
)
from taciturn.kernel.problem.features import FeatureMap, mapped_dimension, mapped_rows
from taciturn.kernel.problem.inputs import FLOAT, CompressedRows, Source
from taciturn.kernel.problem.multiclass import OneHot, ScoresLoss
from taciturn.kernel.problem.predict import as_point, clipped_blocks
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.kernel.problem.scalar_loss import ROUNDED_UP, ScalarLoss
from taciturn.kernel.problem.sets import ConvexSet
from taciturn.kernel.problem.vector_loss import VectorLoss


@dataclass(frozen=True)
class Problem(RowWise):
    """Loss, convex set, public bounds, ridge and neighbour relation: `f(x) = loss(v·x, y) + (ridge/2)‖x‖²`.

    Every example is validated, mapped and clipped here, once: longer rows are scaled to norm `feature_bound`, larger
    labels clipped to `label_bound`. Bounds are stated from public knowledge; none is ever inferred from data without
    noise.

    Parameters
    ----------
    loss : ScalarLoss, ScoresLoss or VectorLoss
        Convex in the point.
    domain : ConvexSet
        Where points live, the intercept's coordinate included.
    dimension : int
        Number of features that a caller passes, before any map; the intercept is not counted.
    feature_bound : float
        Largest Euclidean norm of the features, after the map and before the intercept.
    label_bound : float, optional
        Largest label in absolute value; needed where labels are real numbers.
    intercept : float
        A constant appended to every example; 0 for none. The bound in every formula is then `sqrt(R² + c²)`.
    ridge : float
        Strong convexity added to every loss.
    neighbours : {"replace", "zero-out", "label"}
        One example replaced by any other, or its data term replaced by 0: the number of examples is public. Or the
        label of one example replaced by any other, bad ones included: then features are not protected, and must be
        public for everyone who sees a release.
    on_bad : {"raise", "zero"}
        What to do with a row that has a NaN (unless its map takes missing values), an infinity or an invalid label:
        reject the call before anything changes, with an error that names the row (keep the error secret: it depends on
        the data), or count the row as an example without influence that still takes its round. Under "label" a row
        whose label alone is bad counts as one with the label 0, if labels are numbers, and with a row of zeros for
        `OneHot`: so what is computed from features alone does not depend on any label.
    features : FeatureMap, optional
        A public map of the features; points then have weights for the mapped ones.
    label_center, label_scale : float
        Labels that are numbers are learnt as `(y - label_center)/label_scale`, which is what `label_bound` bounds;
        predictions are in the labels' own units.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Problem
    >>> problem = Problem(Logistic(), L2Ball(2.0), dimension=2, intercept=1.0, ridge=0.01)
    >>> V, y = problem.clip([[3.0, 4.0]], [1.0])
    >>> V.round(3)
    array([[0.6, 0.8, 1. ]])
    >>> round(problem.norm_bound, 4), round(problem.gradient_diameter, 3)
    (1.4142, 1.974)
    """

    loss: ScalarLoss | VectorLoss
    domain: ConvexSet
    dimension: int
    feature_bound: float = 1.0
    label_bound: float | None = None
    intercept: float = 0.0
    ridge: float = 0.0
    neighbours: Neighbours = "replace"
    on_bad: Literal["raise", "zero"] = "raise"
    features: FeatureMap | None = None
    label_center: float = 0.0
    label_scale: float = 1.0

    def __post_init__(self) -> None:
        remedy = "State the largest norm an example may have; longer ones are scaled down."
        object.__setattr__(self, "feature_bound", positive("feature_bound", self.feature_bound, remedy))
        kinds = isinstance(self.loss, ScalarLoss | VectorLoss) and not isinstance(self.loss, type)
        expect("loss", self.loss, kinds, "Logistic()")
        kinds = isinstance(self.domain, ConvexSet) and not isinstance(self.domain, type)
        expect("domain", self.domain, kinds, "L2Ball(1.0)")
        object.__setattr__(self, "dimension", integer("dimension", self.dimension))
        maps = self.features is None or isinstance(self.features, FeatureMap)
        expect("features", self.features, maps, "a frozen dataclass that is a FeatureMap")
        for name in ("intercept", "ridge"):
            object.__setattr__(self, name, not_negative(name, getattr(self, name)))
        if str(self.neighbours) == "add-remove":
            raise Unprovable(
                "each row is a round here, so the number of rows is public, and 'add-remove' would keep it secret. Use "
                "neighbours='zero-out', which protects a row's influence where the number of rows is public."
            )
        one_of("neighbours", self.neighbours, get_args(Neighbours))
        if self.neighbours == "label" and self.loss.labels == "none":
            raise Unprovable(
                f'neighbours="label" protects labels, and examples of {type(self.loss).__name__} have none. Use '
                'neighbours="replace".'
            )
        one_of("on_bad", self.on_bad, ("raise", "zero"))
        if self.loss.labels != "real":
            object.__setattr__(self, "label_bound", 1.0)
        elif self.label_bound is None:
            raise InvalidInput(
                f"{type(self.loss).__name__} has real labels: state label_bound, the largest |y|; larger labels are "
                "clipped."
            )
        object.__setattr__(self, "label_bound", positive("label_bound", self._label_bound))
        object.__setattr__(self, "label_center", finite("label_center", self.label_center))
        object.__setattr__(self, "label_scale", positive("label_scale", self.label_scale))
        if self.loss.labels != "real" and (self.label_center, self.label_scale) != (0.0, 1.0):
            raise InvalidInput(f"{type(self.loss).__name__} learns classes. Leave label_center and label_scale out.")
        self.domain.check_dimension(self.size)
        self._check_range()

    def _check_range(self) -> None:
        """Products of bounds must stay within floating point, whatever the examples are."""
        names = ("feature_bound", "label_bound", "intercept", "ridge", "label_scale")
        scales = {name: getattr(self, name) for name in names}
        for name, value in (scales | {"the domain's radius": self.radius}).items():
            if value and math.isfinite(value) and not 1e-60 <= value <= 1e60:
                raise InvalidInput(f"{name} must lie between 1e-60 and 1e60, got {value:g}. Choose other units.")

    @cached_property
    def width(self) -> int:
        """Entries of a clipped example: the features, after the map, and the intercept, if there is one."""
        return self.mapped_dimension + (self.intercept > 0.0)

    @cached_property
    def mapped_dimension(self) -> int:
        """Number of features after the map, the intercept not counted; `dimension` if there is no map."""
        return mapped_dimension(self.features, self.dimension)

    @cached_property
    def outputs(self) -> int:
        """Scores of an example: one, or one for each class."""
        return self.loss.classes if isinstance(self.loss, ScoresLoss) else 1

    @cached_property
    def size(self) -> int:
        """Entries of a point: `width` for each output."""
        return self.outputs * self.width

    @cached_property
    def norm_bound(self) -> float:
        """Largest norm of a clipped example, intercept included: `sqrt(R² + c²)`."""
        return math.hypot(self.feature_bound, self.intercept) * (1.0 + 2.0**-50)

    @cached_property
    def radius(self) -> float:
        """Largest norm of a point of the domain; may be infinite."""
        return float(self.domain.radius_in(self.size))

    @cached_property
    def diameter(self) -> float:
        """Largest distance between two points of the domain; may be infinite."""
        return float(self.domain.diameter(self.size))

    @property
    def first_point(self) -> Array:
        """The data-free first point: the projection of 0."""
        return self._first_point.copy()

    @cached_property
    def _first_point(self) -> Array:
        return self.domain.project(np.zeros(self.size))

    @cached_property
    def lipschitz(self) -> float:
        """Largest norm of a gradient of the data term over the domain, rounded up; may be infinite."""
        if not isinstance(self.loss, ScalarLoss):
            return float(self.loss.lipschitz(self.norm_bound, self.radius, self._label_bound))
        reach = self.norm_bound * self.radius
        return self.norm_bound * float(self.loss.slope_bound(reach, self._label_bound)) * ROUNDED_UP

    @property
    def lipschitz_with_ridge(self) -> float:
        """Largest norm of a gradient of `f` over the domain; infinite where the domain is."""
        return self.lipschitz + (self.ridge * self.radius if self.ridge > 0.0 else 0.0)

    @cached_property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient of `f`, ridge included; may be infinite."""
        if isinstance(self.loss, ScalarLoss):
            return (float(self.loss.curvature) * self.norm_bound**2 + self.ridge) * ROUNDED_UP
        return (float(self.loss.smoothness(self.norm_bound)) + self.ridge) * ROUNDED_UP

    @cached_property
    def gradient_diameter(self) -> float:
        """Largest distance of the data gradients of two neighbouring examples at one point of the domain, rounded up.

        The ridge is the same in both and cancels. Under zero-out one of the two gradients is 0. Under "label" they are
        those of one row and two labels; or of that row and of 0, where a bad label leaves no gradient, which the loss
        counts too (`ScalarLoss.label_diameter`).
        """
        return self.gradient_diameter_within(self.radius)

    def gradient_diameter_within(self, radius: float) -> float:
        """The same over the ball of this radius around 0; under zero-out the longest gradient over the domain."""
        if self.neighbours == "zero-out":
            return self.lipschitz
        loss: Any = self.loss
        labels = self.neighbours == "label" and _knows_label_diameter(loss)  # two labels are a case of two examples
        bound = loss.label_diameter if labels else loss.gradient_diameter
        return float(bound(self.norm_bound, radius, self._label_bound))

    @cached_property
    def missing_label(self) -> float | None:
        """The label of a row whose own is bad; None if such a row has no influence.

        Under "label" the row itself must stay, where a statistic depends on features alone: 0, or no class.
        """
        if self.neighbours != "label":
            return None
        if isinstance(self.loss, OneHot):
            return -1.0
        return 0.0 if self.loss.labels == "real" else None

    def clip(self, X: Any, y: Any = None) -> tuple[Array, Array]:
        """Validate and clip examples: `(V, y)` with the intercept appended, every row within its bounds."""
        X, y = self.read(X, y)
        return self.clip_block(X[:], y)

    def read(self, X: Any, y: Any = None) -> tuple[Source, Array]:
        """Convert examples to numbers, not clipped yet, to be cut into blocks; check shapes and labels."""
        plain = type(X) is np.ndarray is type(y) and X.dtype is y.dtype is FLOAT and self._takes_labels
        if plain and y.ndim == 1 and X.shape == (len(y), self.dimension):
            return X, y  # what follows would change nothing, and take longer than to learn from a row
        if y is None and self.loss.labels != "none":
            raise InvalidInput(f"{type(self.loss).__name__} learns from labels. Give y, one label a row.")
        rows, labels = as_rows(X, None if self.loss.labels == "none" else y, self.dimension, self.on_bad == "zero")
        return rows, self.in_own_units(labels)

    @cached_property
    def _takes_labels(self) -> bool:
        """Whether labels are learnt, and in the units in which they are given."""
        return self.loss.labels != "none" and self.label_scale == 1.0 and self.label_center == 0.0

    def in_own_units(self, y: Array) -> Array:
        """Labels as they are learnt: `(y - label_center)/label_scale`; a finite label stays finite."""
        if self.label_scale == 1.0 and self.label_center == 0.0:
            return y
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (y - self.label_center) / self.label_scale
        return np.where(np.isfinite(y), np.nan_to_num(scaled), y)

    def clip_block(self, X: Array, y: Array, first: int = 0) -> tuple[Array, Array]:
        """Validated and clipped examples; `first` is the number of the first row in errors."""
        self.check_shape(X.shape, len(y))
        V, labels, bad = self._clip(X.copy(), y.copy())
        if bad.any() and self.on_bad == "raise":
            self.reject_row(int(np.argmax(bad)), X, y, first)
        return V, labels

    def reject_row(self, row: int, X: Array, y: Array, first: int = 0) -> None:
        """Raise the error for a bad row of these; `first` is the number of the first of them."""
        missing = self.features is not None and self.features.takes_missing
        raise InvalidInput(describe_bad_row(row, X, y, self.loss, self.outputs, first, missing))

    def mapped(self, X: Array) -> Array:
        """Features of raw rows after the map, not clipped yet; a bad row is NaN. Without a map, the rows themselves."""
        return X if self.features is None else mapped_rows(self.features, X)

    def clip_sparse_block(self, X: CompressedRows, first: int = 0) -> Any:
        """Clipped features of rows to predict for, as a SciPy sparse matrix; `first` is the number of the first row.

        For problems without a map, whose rows would not stay sparse.
        """
        assert self.features is None
        self.check_shape(X.shape, X.shape[0])
        V, bad = clip_sparse_rows(X.matrix(), self.feature_bound)
        if bad.any() and self.on_bad == "raise":
            row = int(np.argmax(bad))
            self.reject_row(0, X[row : row + 1].dense(), np.ones(1), first + row)
        return append_column(V, np.where(bad, 0.0, self.intercept)) if self.width > self.dimension else V

    def check_shape(self, shape: tuple[int, ...], rows: int) -> None:
        """Reject examples of another shape than was declared."""
        if shape != (rows, self.dimension):
            raise InvalidInput(
                f"expected {rows} rows of {self.dimension} features, got shape {shape}. Check the source."
            )

    def _clip(self, X: Array, y: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The definition of clipping: rows, labels, and a mask of bad rows, which become examples without influence."""
        X = np.asarray(self.mapped(X), dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        unlabelled = bad_labels(y, self.loss.labels, self.outputs)
        empty: NDArray[np.bool_] = np.asarray(~np.isfinite(X).all(axis=1))
        bad = unlabelled | empty
        if self.missing_label is None:
            empty = bad
        V = np.empty((len(y), self.width))
        V[:, : self.mapped_dimension] = clip_rows(np.where(empty[:, None], 0.0, X), self.feature_bound)
        V[:, self.mapped_dimension :] = self.intercept
        V[empty] = 0.0  # after the map and the intercept: neither takes 0 to 0
        if self.missing_label is not None:
            y = np.where(unlabelled, self.missing_label, y)
        y = np.where(empty, 1.0 if self.loss.labels == "sign" else 0.0, y)
        return V, y if self.loss.labels == "class" else np.clip(y, -self._label_bound, self._label_bound), bad

    def predict(self, point: Array, X: Any) -> Array:
        """`v·x` at a released point for new features, clipped as in learning; its sign is the class, if there are two.

        Numbers are predicted in the units of the labels. With several scores, there is a row of them for each example;
        the largest is the class. Sparse rows stay sparse, unless there is a map.

        >>> from taciturn import L2Ball, Logistic, Problem
        >>> Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=1.0).predict([0.6, 0.0, 0.1], [[0.5, 0.0]])
        array([0.4])
        """
        rows, _ = as_rows(X, None, self.dimension)
        point = as_point(point, self.size)
        linear = getattr(type(self.loss), "scores", ScoresLoss.scores) is ScoresLoss.scores  # overridden: needs arrays
        sparse = linear and type(self) is Problem and self.features is None
        blocks = clipped_blocks(self, rows, sparse)
        return np.concatenate([self.predict_clipped(point, V) for V in blocks])

    def predict_clipped(self, point: Array, V: Any) -> Array:
        """The same for rows that are clipped already, with the intercept's constant appended."""
        scores = self.loss.scores(point, V) if isinstance(self.loss, ScoresLoss) else np.asarray(V @ point)
        if (self.label_center, self.label_scale) == (0.0, 1.0):
            return scores
        return self.label_center + self.label_scale * scores

    def values(self, x: Array, V: Array, y: Array) -> Array:
        """`f(x)` on each clipped example: the data term and the ridge."""
        ridge = 0.5 * self.ridge * float(x @ x)
        if isinstance(self.loss, ScalarLoss):
            return np.asarray(self.loss.value(V @ x, y) + ridge, dtype=np.float64)
        if isinstance(self.loss, ScoresLoss):
            return self.loss.losses(self.loss.scores(x, V), y) + ridge
        return np.array([self.loss.value(x, v, float(b)) for v, b in zip(V, y, strict=True)]) + ridge

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """Gradient of `f` at `x` on one clipped example: the data term and the ridge."""
        return self.data_gradient(x, v, y) + self.ridge * x

    def data_gradient(self, x: Array, v: Array, y: float) -> Array:
        """Gradient of the data term alone."""
        if isinstance(self.loss, ScalarLoss):
            return float(self.loss.slope(float(v @ x), y)) * v
        return self.loss.gradient(x, v, y)

    def mean_gradient(self, x: Array, V: Array, y: Array) -> Array:
        """Gradient of the data term, its mean over clipped examples."""
        if isinstance(self.loss, ScalarLoss):
            return np.asarray(V.T @ self.loss.slope(V @ x, y) / len(y))
        if isinstance(self.loss, ScoresLoss):
            return np.asarray(self.loss.slopes(self.loss.scores(x, V), y).T @ V / len(y)).ravel()
        gradients = [self.loss.gradient(x, v, float(b)) for v, b in zip(V, y, strict=True)]
        return np.asarray(np.mean(gradients, axis=0))

    @property
    def _label_bound(self) -> float:
        assert self.label_bound is not None
        return self.label_bound


def _knows_label_diameter(loss: object) -> bool:
    """Whether `label_diameter` is about the slopes of this very class: a subclass may have overridden only those."""
    for each in type(loss).__mro__:
        if "label_diameter" in vars(each):
            return True
        if vars(each).keys() & {"slope", "slopes", "targets", "gradient", "gradient_diameter"}:
            return False
    return False
