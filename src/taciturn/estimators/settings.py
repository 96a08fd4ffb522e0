"""The settings of the estimators, and the plan that follows from them by public rules, never from data.

**Intercept.** A constant of half the feature bound, so that the bound on examples grows by an eighth and not by half.
For naive Bayes, where it counts the rows of each class, a quarter, and the bound grows by a thirtieth.

**Radius.** Of the ball that models live in, if none is stated: `40/R` for classes, scores up to 40 being more certain
than any data, and `40·sqrt(K)/R` for the softmax of K, whose scores share the length of one point; for numbers
`5·R_y/R` with squared loss, whose statistics do not depend on it, and `2·R_y/R` with others, whose regret grows with
it: predictions up to five times, or twice, the largest label. Naive Bayes, by class sums, has neither radius nor ridge.

**One release.** A batch is learnt by one release, unless `release` says otherwise (`taciturn.plan`): logistic
regression of two classes on the whole space, by objective perturbation, unless a radius is stated or users are
protected.

**Bounds that are found privately.** With `feature_bound="private"` features are standardised. The bound on rows of p
columns is `sqrt(p)/2` for classes, which nearly all rows reach: classes are learnt from the direction of a row. For
numbers it is `1.5·sqrt(p)`, so that few rows are clipped. With `label_bound="private"` labels are standardised too, and
clipped at 3.

**Ridge.** None for sums, which their noise regularises. For objective perturbation that of `ridge_for`. IGD and GIGA
learn from strongly convex losses alone: `R²/100`, a hundredth of the curvature of squared loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from taciturn.columns.encoder import ColumnEncoder
from taciturn.columns.kinds import Groups
from taciturn.columns.target import Number, labels_in_range
from taciturn.errors import InvalidInput, Unprovable, expect, integer, number, one_of, positive, value_or_type
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import EXAMPLE, ClockPeriod, Neighbours, Unit, User, WithoutId
from taciturn.kernel.problem.features import FeatureMap
from taciturn.kernel.problem.losses import Absolute, Hinge, Huber, Logistic, Quantile, Squared
from taciturn.kernel.problem.multiclass import MultiHinge, OneHot, ScoresLoss, Softmax
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss
from taciturn.kernel.problem.sets import ConvexSet, L2Ball, WholeSpace
from taciturn.kernel.stream.schedule import Schedule, every, geometric
from taciturn.memories import several, windows_of
from taciturn.methods.objective_perturbation import ridge_for
from taciturn.methods.weighted import Weighted, WeightedScores
from taciturn.plan import Features, Forget, Method, Plan, feature_map, feature_scales, recommend, standard_scale
from taciturn.renewal import Renewal

LossName = Literal["logistic", "hinge", "squared", "absolute", "huber", "quantile"]
MethodName = Literal["auto", "pqftl", "ftrl", "igd", "giga"]
NAIVE_BAYES = "naive-bayes"
_METHODS: dict[str, Method] = {"pqftl": "pqftl", "ftrl": "pftrl", "igd": "pigd", "giga": "pgiga"}
_CLASSIFY = ("logistic", "hinge", NAIVE_BAYES)


@dataclass(frozen=True)
class Settings:
    """The settings of an estimator; required ones are rejected if they are None, never inferred.

    Parameters
    ----------
    loss : str
        `"logistic"` or `"hinge"` for classes, else `"squared"`, `"absolute"`, `"huber"` or `"quantile"`. In place of a
        loss, `"naive-bayes"` learns classes of rows without negative entries by `taciturn.ClassSums`.
    epsilon, delta : float
        The total budget of everything that one stream publishes.
    feature_bound : float or "private"
        Largest norm of the features, before the intercept; longer ones are clipped. "private" finds the range of each
        column in the first rows, at no further cost (`taciturn.plan`).
    label_bound : float or "private", optional
        Largest label in absolute value, for numbers.
    precondition : bool
        Whether a map that spreads features evenly is found first.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e; several, of which PQFTL uses the one that
        fits best; or those of the rule of `taciturn.plan`.
    renew : Renewal, optional
        What an earlier stream left, from which this one starts.
    ranges : tuple of int, optional
        The features whose ranges are found, if not all are; the feature bound is then a number.
    classes : int
        How many there are; 0 for numbers.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        Auto asks `taciturn.plan`. PQFTL learns classes by least squares. IGD and GIGA learn dense rows, of numbers or
        two classes.
    release : {"auto", "last", "geometric", "every"} or int
        When models are published: by the plan, once after the last row of a batch, at rounds that grow by a tenth,
        after each example, or after every k.
    class_weight : tuple of float, optional
        A public weight for each class, for the logistic and the hinge loss; they are divided by the largest.
    features : {"linear", "random"}, int or FeatureMap
        What is learnt from: the features as they are, random features of them by the rule of `taciturn.plan`, so many
        random features, or the images of any public map.
    scales : tuple of float, optional
        The basic scale of random features for each feature, if it is known which are numbers; else one for all.
    radius, ridge : float, optional
        By the rules above, if None.
    quantile, huber_width : float
        The level of a quantile; where Huber's loss becomes linear, a tenth of the label bound if None.
    rows_per_user : int, optional
        The most rows of a user that count; None protects single examples.
    rows_per_release, apart, period, without_id
        The other bounds of `taciturn.User`, where `rows_per_release` is `per_release`; they need `rows_per_user`.
    fit_intercept, neighbours, on_bad, seed
        As in `taciturn.Problem` and `taciturn.Private`.

    Examples
    --------
    >>> plan = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2).plan(dimension=10, horizon=10_000)
    >>> plan.method, plan.private.schedule, plan.averages
    ('pftrl', Every(rounds=33), True)
    """

    loss: LossName | Literal["naive-bayes"]
    epsilon: float | None = None
    delta: float = 1e-6
    feature_bound: float | Literal["private"] | None = None
    label_bound: float | Literal["private"] | None = None
    classes: int = 0
    fit_intercept: bool = True
    method: MethodName = "auto"
    release: str | int = "auto"
    radius: float | None = None
    ridge: float | None = None
    quantile: float = 0.5
    huber_width: float | None = None
    neighbours: Neighbours = "replace"
    on_bad: Literal["raise", "zero"] = "raise"
    seed: int | None = None
    rows_per_user: int | None = None
    rows_per_release: int | None = None
    apart: int = 1
    period: int | ClockPeriod | None = None
    without_id: WithoutId = "bad"
    precondition: bool = False
    features: Features = "linear"
    scales: tuple[float, ...] | None = None
    ranges: tuple[int, ...] | None = None
    class_weight: tuple[float, ...] | None = None
    forget: Forget | None = None
    renew: Renewal | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            if isinstance(value := getattr(self, name), str) and name in ("feature_bound", "label_bound"):
                one_of(name, value, ("private",), also="a number")
            elif value is not None:
                object.__setattr__(self, name, number(name, value, remedy=_MEANING.get(name, "")))
        if self.scales is not None:
            object.__setattr__(self, "scales", tuple(number("a scale", scale, of_many=True) for scale in self.scales))
        if self.class_weight is not None:
            weights = [positive("the weight of a class", weight, of_many=True) for weight in self.class_weight]
            object.__setattr__(self, "class_weight", tuple(weight / max(weights) for weight in weights))
        for name, loss in (("quantile", "quantile"), ("huber_width", "huber")):
            if self.loss != loss and (value := getattr(self, name)) != getattr(Settings, name):
                raise InvalidInput(f'{name} = {value:g} is for loss = "{loss}". State that loss, or leave {name} out.')
        expect("precondition", self.precondition, isinstance(self.precondition, bool | np.bool_), "True or False")
        if isinstance(self.forget, str):
            one_of("forget", self.forget, ("auto",), also="a number of rows")
        elif several(self.forget):
            object.__setattr__(self, "forget", windows_of(self.forget))
        for name in _INTEGERS:
            value = getattr(self, name)
            if value is not None and not (name in ("release", "period", "forget") and isinstance(value, str | tuple)):
                object.__setattr__(self, name, integer(name, value, least=int(name not in ("classes", "seed"))))

    def plan(self, dimension: int, horizon: int | None, batch: bool = False, workers: int | None = None) -> Plan:
        """The plan for `dimension` features and `horizon` examples; in a `batch` they come all at once.

        With `workers`, it is one that these can learn.
        """
        privacy = self._privacy
        method = None if self.method == "auto" else _METHODS[one_of("method", self.method, get_args(MethodName))]
        if self.loss == NAIVE_BAYES:
            method = "class-sums"
            if self.feature_bound == "private" or self.precondition:
                raise InvalidInput(
                    "naive Bayes adds up rows without negative entries, and standardised ones have some. State "
                    "feature_bound, as in feature_bound=1.0 for the rows of a HashingVectorizer."
                )
        schedule, unit = self.schedule, self.unit
        if self.release == "last" and not batch:
            raise InvalidInput(
                "release='last' publishes one model of a batch, and these rows come as a stream. Give all of them to "
                "fit(), without a longer horizon, or leave release= out."
            )
        if self.release == "last" and self.forget is not None:
            raise InvalidInput("release='last' publishes one model, and forget= is for streams. Leave one of them out.")
        once = batch and self.release in ("auto", "last") and self.forget is None and self.renew is None
        problem = self.problem(dimension, horizon, once)
        plan = recommend(
            problem,
            privacy,
            horizon,
            method=method,
            schedule=schedule,
            unit=unit,
            once=once,
            seed=self.seed,
            ranges="private" if self.feature_bound == "private" else self.ranges,
            label_range="private" if self.label_bound == "private" else None,
            precondition=self.precondition,
            found_scales=self.feature_bound == "private" and not isinstance(self.features, FeatureMap),
            forget=self.forget,
            workers=workers,
        )
        if self.release == "last" and plan.releases > 1:
            raise Unprovable(
                f"private FTRL publishes every point at which it takes gradients, so release='last' is not for "
                f"{type(problem.loss).__name__} with these settings. Leave release= out."
            )
        return plan.following(self.renew)

    def problem(self, dimension: int, horizon: int | None = None, once: bool = False) -> Problem:
        """The problem with `dimension` features and `horizon` examples, for a stream, or for one release of all."""
        bound = self._feature_bound(dimension)
        label_bound = None if self.classes else self._label_bound
        ridge = self.ridge if self.ridge is not None else (bound**2 / 100.0 if self.method in ("igd", "giga") else 0.0)
        domain: ConvexSet = L2Ball(positive("radius", self._radius(bound, label_bound)))
        if self.loss == NAIVE_BAYES:
            domain = WholeSpace()
        by_ftrl = self.classes > 0 and self.method in ("auto", "ftrl")
        scales = self.scales
        if self.feature_bound == "private":
            scales = (standard_scale(dimension),) * dimension
        features = feature_map(
            self.features, bound, self._privacy, horizon, unit=self.unit, by_ftrl=by_ftrl, scales=scales
        )
        if once and horizon is not None and features is None and self._perturbs:
            domain = WholeSpace()
            size = dimension + self.fit_intercept
            ridge = ridge_for(self._privacy, horizon, bound, size) if self.ridge is None else self.ridge
        return Problem(
            self._loss,
            domain,
            dimension,
            bound,
            label_bound=1.0 if label_bound is None else label_bound,
            intercept=bound / (4.0 if self.loss == NAIVE_BAYES else 2.0) if self.fit_intercept else 0.0,
            ridge=ridge,
            neighbours=self.neighbours,
            on_bad=self.on_bad,
            features=features,
        )

    def _feature_bound(self, dimension: int) -> float:
        stated = self._stated("feature_bound")
        if stated == "private":
            return math.sqrt(dimension) * (0.5 if self.classes else 1.5)
        return positive("feature_bound", stated, _MEANING["feature_bound"])

    @property
    def _label_bound(self) -> float:
        stated = self._stated("label_bound")
        return 3.0 if stated == "private" else positive("label_bound", stated)

    @property
    def _privacy(self) -> Privacy:
        return Privacy(self._stated("epsilon"), self._stated("delta"))

    @property
    def _perturbs(self) -> bool:
        """Whether one release is made by objective perturbation; with a stated ridge of 0 there is no proof."""
        chosen = self.method == "auto" and self.radius is None and self.ridge != 0.0 and self.rows_per_user is None
        stages = self.feature_bound == "private" or self.ranges is not None or self.precondition  # for streams only
        chosen = chosen and not stages
        return chosen and self.loss == "logistic" and self.classes == 2

    @property
    def unit(self) -> Unit:
        """Whose data is protected.

        >>> print(Settings("logistic", rows_per_user=4).unit)
        one user, of at most 4 rows
        """
        rows, each = self.rows_per_user, self.rows_per_release
        if rows is None:
            bounds = {"rows_per_release": None, "apart": 1, "period": None, "without_id": "bad"}
            for name, default in bounds.items():
                if getattr(self, name) != default:
                    raise InvalidInput(
                        f"{name} is about the rows of a user, and the unit of privacy is an example. State "
                        f"rows_per_user=4 too, or leave {name} out."
                    )
            return EXAMPLE
        if each is not None and each > rows:
            raise InvalidInput(
                f"rows_per_release must be at most rows_per_user, {rows}, got {each}. Leave it out for no such limit."
            )
        return User(rows, each, self.apart, self.period, self.without_id)

    @property
    def schedule(self) -> Schedule | None:
        """When models are published; None leaves it to the plan."""
        if isinstance(self.release, str):
            one_of("release", self.release, ("auto", "last", "geometric", "every"), also="a number of rows")
            return {"auto": None, "last": None, "geometric": geometric(1.1), "every": every(1)}[self.release]
        return every(self.release)

    def _radius(self, bound: float, label_bound: float | None) -> float:
        if self.radius is not None:
            return self.radius
        if label_bound is None:
            return 40.0 * (math.sqrt(self.classes) if self.loss == "logistic" and self.classes > 2 else 1.0) / bound
        return (5.0 if self.loss == "squared" else 2.0) * label_bound / bound

    @property
    def _loss(self) -> ScalarLoss | ScoresLoss:
        one_of("loss", self.loss, (*get_args(LossName), NAIVE_BAYES))
        if self.loss == NAIVE_BAYES and (self.method, self.radius, self.ridge) != ("auto", None, None):
            raise InvalidInput(
                "naive Bayes has one method, no radius and no ridge. Leave method, radius and ridge out."
            )
        if (self.loss in _CLASSIFY) != (self.classes > 0):
            raise InvalidInput(
                f"{self.loss} learns {'classes' if self.classes == 0 else 'numbers'}. Name another loss."
            )
        if self.method == "pqftl" and self.loss not in (*_CLASSIFY, "squared"):
            raise Unprovable(
                f"PQFTL adds up the statistics of squared loss, and this is {self.loss}. Use method='ftrl'."
            )
        if self.classes > 2 and self.method in ("igd", "giga"):
            raise Unprovable(
                f"{self.method} learns numbers and two classes, and these are {self.classes}. Use method='ftrl'."
            )
        return self._loss_of_classes if self.classes else self._loss_of_numbers

    @property
    def _loss_of_numbers(self) -> ScalarLoss:
        if self.loss == "quantile":
            return Quantile(self.quantile)
        if self.loss == "huber":
            return Huber(self._label_bound / 10.0 if self.huber_width is None else self.huber_width)
        return Squared() if self.loss == "squared" else Absolute()

    @property
    def _loss_of_classes(self) -> ScalarLoss | ScoresLoss:
        loss, weights = self._equally_weighted, self.class_weight
        if weights is None:
            return loss
        if self.loss == NAIVE_BAYES or self.method == "pqftl":
            what = "naive Bayes" if self.loss == NAIVE_BAYES else "method='pqftl'"
            raise Unprovable(
                f"class_weight is proven for gradients of the logistic and the hinge loss, and {what} adds up rows. "
                "Leave class_weight out, or use method='ftrl' of PrivateLogisticRegression or PrivateLinearSVC."
            )
        if isinstance(loss, ScalarLoss):
            return Weighted(loss, *weights)
        return WeightedScores(loss, weights)

    @property
    def _equally_weighted(self) -> ScalarLoss | ScoresLoss:
        if self.loss == NAIVE_BAYES:  # its scores are no probabilities, as those of the hinge loss
            return Hinge() if self.classes == 2 else MultiHinge(self.classes)
        if self.method == "pqftl":
            return Squared() if self.classes == 2 else OneHot(self.classes)
        if self.classes == 2:
            return Logistic() if self.loss == "logistic" else Hinge()
        return Softmax(self.classes) if self.loss == "logistic" else MultiHinge(self.classes)

    def _stated(self, name: str) -> Any:
        value = getattr(self, name)
        if value is None:
            found = f' Or use {name}="private", which finds it with noise.' if name.endswith("_bound") else ""
            found += _OR_DECLARE.get(name, "")
            raise InvalidInput(f"{name} is missing. {_MEANING[name]} It is never inferred without noise.{found}")
        return value


def declared_settings(
    settings: dict[str, Any], encoder: ColumnEncoder | None, target: Number | None, classes: bool
) -> dict[str, Any]:
    """These settings of an estimator, with the bounds that declared columns and a range of labels have.

    >>> from taciturn.columns.encoder import encoder_of
    >>> encoder = encoder_of({"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}})
    >>> declared_settings({"epsilon": 1.0}, encoder, None, classes=True)
    {'epsilon': 1.0, 'feature_bound': 1.390443574307614, 'ranges': None, 'scales': (2.0, 0.8, 0.8)}
    """
    made = dict(settings)
    if encoder is not None:
        bound = made.get("feature_bound")
        if isinstance(bound, str):
            raise InvalidInput(
                'feature_bound="private" finds the ranges of all columns, and columns= declares them. Leave '
                'feature_bound out, and declare {"range": "private"} for columns whose ranges are to be found.'
            )
        check_dense(encoder, made.get("method"))
        made["feature_bound"] = encoder.feature_bound(classes) if bound is None else bound
        made["ranges"] = encoder.found or None
        made["scales"] = scales_of(encoder.groups)
    if target is not None:
        made["label_bound"] = target.label_bound
    return made


def check_dense(encoder: ColumnEncoder, method: str | None) -> None:
    """Reject hashed values and texts, whose rows are sparse, where a method learns dense ones only."""
    if encoder.sparse and method in ("igd", "giga"):
        raise InvalidInput(
            f"rows with hashed values or texts are sparse, and {method} learns dense rows only. Use method='ftrl'."
        )


def declared_labels(label_bound: Any, label_range: Any, label_scale: Any) -> tuple[Number | None, Any]:
    """The target of numbers in a stated range, if there is one, and the bound on labels else.

    >>> declared_labels(None, (0, 100), "linear")[0].middle, declared_labels(5.0, None, "linear")
    (50.0, (None, 5.0))
    """
    if label_range is None or (isinstance(label_range, str) and label_range == "private"):
        if label_scale != "linear":
            raise InvalidInput(
                f"label_scale={value_or_type(label_scale)} needs a stated range. State label_range, as in "
                "label_range=(1, 1000), or leave label_scale out."
            )
        if label_range is None:
            return None, label_bound
    if label_bound is not None:
        raise InvalidInput(
            "label_bound is the largest absolute value of a label, and label_range the lowest and the highest label. "
            "State one of the two."
        )
    private = isinstance(label_range, str) and label_range == "private"
    return (None, "private") if private else (labels_in_range(label_range, label_scale), None)


def scales_of(groups: Groups) -> tuple[float, ...]:
    """The basic scale of random features for each feature of these groups, by the rule of `taciturn.plan`.

    >>> scales_of((("number", 1), ("indicator", 2)))
    (2.0, 0.8, 0.8)
    """
    kinds = [kind for kind, _ in groups]
    number, indicator = feature_scales(kinds.count("number") + kinds.count("cycle"), kinds.count("indicator"))
    standardised = standard_scale(kinds.count("standardised"))
    scales = {"number": number, "cycle": number, "indicator": indicator, "standardised": standardised}
    return tuple(scales[kind] for kind, width in groups for _ in range(width))


def weights_of(class_weight: Any, classes: Sequence[Any]) -> tuple[float, ...] | None:
    """The weight of each class, 1 for those that have none; None if there are no weights.

    >>> weights_of({"fraud": 10.0}, ["fine", "fraud"])
    (1.0, 10.0)
    """
    if class_weight is None:
        return None
    expect("class_weight", class_weight, isinstance(class_weight, Mapping), _WEIGHTS)
    known = list(classes)
    for name in class_weight:
        if name not in known:
            raise InvalidInput(
                f"class_weight names {value_or_type(name)}, which is not among the classes. State "
                f"{', '.join(map(str, known))}."
            )
    return tuple(class_weight.get(name, 1.0) for name in known)


_WEIGHTS = "class_weight={0: 1.0, 1: 10.0}, from public knowledge: counts of labels are private"
_NUMBERS = ("epsilon", "delta", "feature_bound", "label_bound", "radius", "ridge", "quantile", "huber_width")
_INTEGERS = ("classes", "release", "seed", "rows_per_user", "rows_per_release", "apart", "period", "forget")
_OR_DECLARE = {
    "feature_bound": ' Or declare columns=, as in columns={"age": {"range": [0, 100]}}, from which it follows. '
    "In a pipeline after PublicColumns it is that transformer's feature_bound, as in "
    "feature_bound=PublicColumns(columns).feature_bound.",
    "label_bound": " Or state label_range=(low, high).",
}
_MEANING = {
    "epsilon": "State the total privacy budget of everything that is published, as in epsilon=1.0.",
    "delta": "State a probability well below one over the number of people, as in delta=1e-6.",
    "feature_bound": "State the largest norm an example's features may have, as in feature_bound=1.0; longer ones are "
    "clipped.",
    "label_bound": "State the largest absolute value a label may have, as in label_bound=10.0; larger ones are "
    "clipped.",
}
