"""Keywords that an estimator does not have: what there is instead, or which name was meant.

scikit-learn reads settings and metadata from signatures, and passes what it finds there (`random_state` to every step
of a search, `sample_weight` to every `fit` that has it). So keywords of other libraries are in no signature, and `**`
neither: a class is asked before its `__init__`, and `fit` is wrapped, with the signature of what it wraps.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from taciturn.errors import InvalidInput, did_you_mean

P = ParamSpec("P")
T = TypeVar("T")

_SEED = (
    "The noise that protects must not be known to anyone, and tools would set it. For simulations and tests, which are "
    "then not private, state seed=1."
)
_RIDGE = "State ridge=, for (ridge/2)·‖w‖² beside the mean loss of a row; left out, a public rule sets it."
_NORM = (
    "A model is regularised by (ridge/2)·‖w‖² beside the mean loss of a row, and by its largest norm: ridge=, radius=."
)
_ONE_PASS = (
    "Each row is read once, and the length of steps follows from the noise: leave it out; method= is the algorithm."
)
_HELD_OUT = "Rows that are held out would be read without noise: leave it out; release= says when models are published."
_ROW_WEIGHT = "A weight of a row would be one more private value, for which there is no proof: leave it out."
_BOUND = "State feature_bound=, the largest norm of a row; longer ones are clipped."
_RANGES = "State public ranges in a PublicScaler before the model, and feature_bound= here."

INSTEAD = {
    "accountant": "State ledger=, a taciturn.Ledger or its address, which counts what all models cost together.",
    "alpha": _RIDGE,
    "average": "The plan averages released models where that helps: leave it out.",
    "batch_size": _ONE_PASS,
    "bounds": _RANGES,
    "bounds_X": _RANGES,
    "bounds_y": "State label_bound=, the largest absolute value of a label.",
    "C": f"{_RIDGE} For n rows, ridge=1/(C·n) is the same objective.",
    "class_weight": "Public weights of classes are for PrivateLogisticRegression and PrivateLinearSVC: leave it out.",
    "clip_gradient": _BOUND,
    "data_norm": _BOUND,
    "dual": _ONE_PASS,
    "early_stopping": _HELD_OUT,
    "epochs": _ONE_PASS,
    "eta0": _ONE_PASS,
    "groups": "State rows_per_user=, and give the ids of users to fit() and partial_fit() as users=.",
    "intercept_lr": _ONE_PASS,
    "intercept_scaling": "The intercept is a constant of half the feature bound: leave it out.",
    "l1": _NORM,
    "l1_ratio": _NORM,
    "l2": _RIDGE,
    "l2_norm_clip": _BOUND,
    "learning_rate": _ONE_PASS,
    "max_grad_norm": _BOUND,
    "max_iter": _ONE_PASS,
    "multi_class": "Whether there are two classes or more follows from classes=: leave it out.",
    "n_iter": _ONE_PASS,
    "n_iter_no_change": _HELD_OUT,
    "n_jobs": "One stream learns in one process: leave it out.",
    "noise_multiplier": "State epsilon= and delta=, from which the noise follows.",
    "normalize": _RANGES,
    "optimizer": _ONE_PASS,
    "penalty": _NORM,
    "random_state": _SEED,
    "sample_weight": _ROW_WEIGHT,
    "shuffle": "Rows are read in the order in which they come: leave it out.",
    "solver": _ONE_PASS,
    "tol": _ONE_PASS,
    "validation_fraction": _HELD_OUT,
    "verbose": "Nothing is printed while a model learns: leave it out.",
    "w": _ROW_WEIGHT,
    "warm_start": "fit() opens a new stream, and partial_fit() goes on with one: leave it out.",
}


class UnknownKeyword(InvalidInput, TypeError):
    """A keyword that a class or a method does not have; the message says what there is instead.

    >>> issubclass(UnknownKeyword, TypeError) and issubclass(UnknownKeyword, ValueError)
    True
    """


def explain(
    owner: str, unknown: str, known: Iterable[str], settings: Iterable[str], own: Mapping[str, str] | None = None
) -> str:
    """What is said of a keyword that `owner` does not have: what there is instead, or a name that it may stand for.

    `known` are the keywords there are, `settings` those of the estimator, and `own` is said before `INSTEAD`.

    >>> explain("PrivateLinearSVC", "espilon", ["epsilon", "ridge"], ["epsilon", "ridge"])
    'PrivateLinearSVC has no espilon. Did you mean epsilon?'
    >>> explain("PrivateLinearSVC.fit", "epsilon", ["X", "y"], ["epsilon", "ridge"])
    'PrivateLinearSVC.fit has no epsilon. It is a setting: state it in PrivateLinearSVC(epsilon=...).'
    """
    known, settings = list(known), list(settings)
    if unknown in settings:
        return f"{owner} has no {unknown}. It is a setting: state it in {owner.partition('.')[0]}({unknown}=...)."
    if own and unknown in own:
        return f"{owner} has no {unknown}. {own[unknown]}"
    instead = INSTEAD.get(unknown, "")
    if instead and all(name in {*known, *settings, "users"} for name in re.findall(r"(\w+)=", instead)):
        return f"{owner} has no {unknown}. {instead}"
    if near := did_you_mean(unknown, known, least=0.7):
        return f"{owner} has no {unknown}.{near}"
    return f"{owner} has no {unknown}. Leave it out: there are {', '.join(known)}."


@lru_cache
def _parameters(owner: type, method: str) -> tuple[tuple[str, ...], bool]:
    """Names of the keywords of a method, and whether it takes any others too."""
    parameters = list(inspect.signature(getattr(owner, method)).parameters.values())[1:]  # without self
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    return tuple(names), any(each.kind is each.VAR_KEYWORD for each in parameters)


def reject_unknown(owner: type, method: str, named: Iterable[str]) -> None:
    """Reject the first keyword that this method of a class does not have."""
    known, any_others = _parameters(owner, method)
    for name in named:
        if name not in known and not any_others:
            what = owner.__name__ if method == "__init__" else f"{owner.__name__}.{method}"
            own = getattr(owner, "_instead", None)
            raise UnknownKeyword(explain(what, name, known, _parameters(owner, "__init__")[0], own))


class Keywords:
    """A class whose unknown keywords are rejected with what there is instead, before `__init__`.

    `__new__` leaves every signature as it is: `inspect.signature`, and what reads it, finds that of the `__init__` of
    the class, which comes first. Copies and pickles are made without keywords. A class that has other things instead
    says so in `_instead`.

    >>> class Model(Keywords):
    ...     def __init__(self, *, epsilon=None, seed=None): ...
    >>> Model(espilon=1.0)
    Traceback (most recent call last):
    ...
    taciturn.estimators.keywords.UnknownKeyword: Model has no espilon. Did you mean epsilon?
    >>> inspect.signature(Model)
    <Signature (*, epsilon=None, seed=None)>
    """

    _instead: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *args: Any, **named: Any) -> Self:
        reject_unknown(cls, "__init__", named)
        return super().__new__(cls)


def known_keywords(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The method, with unknown keywords rejected with what there is instead; its signature stays as it is.

    >>> class Model:
    ...     def __init__(self, *, rows_per_user=None): ...
    ...
    ...     @known_keywords
    ...     def fit(self, X, y, users=None): ...
    >>> Model().fit([], [], user=[])
    Traceback (most recent call last):
    ...
    taciturn.estimators.keywords.UnknownKeyword: Model.fit has no user. Did you mean users?
    >>> inspect.signature(Model.fit)
    <Signature (self, X, y, users=None)>
    """

    @wraps(method)
    def checked(self: Any, /, *args: P.args, **named: P.kwargs) -> T:
        if named:
            reject_unknown(type(self), method.__name__, named)
        return method(self, *args, **named)

    return checked


def hides_others(method: T) -> T:
    """A method that takes all keywords, and rejects those that it does not know; its signature has none of them.

    It is `known_keywords` in less time, for what is called with every example.

    >>> class Model:
    ...     def __init__(self): ...
    ...
    ...     @hides_others
    ...     def learn_one(self, x, y, **others):
    ...         if others:
    ...             reject_unknown(Model, "learn_one", others)
    >>> inspect.signature(Model.learn_one)
    <Signature (self, x, y)>
    >>> Model().learn_one({}, 1, w=2.0)
    Traceback (most recent call last):
    ...
    taciturn.estimators.keywords.UnknownKeyword: Model.learn_one has no w. A weight of a row would be ...
    """
    shown: Any = method
    signature = inspect.signature(shown)
    kept = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    shown.__signature__ = signature.replace(parameters=kept)
    return method
