"""Keywords of other libraries, and misspelt ones: rejected in a sentence, and in no signature."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import has_fit_parameter

from cases import each
from taciturn import InvalidInput
from taciturn.estimators import keywords, river, scaling, sklearn
from taciturn.estimators.keywords import UnknownKeyword
from taciturn.estimators.stream import PrivacyWarning

MODELS = [
    sklearn.PrivateLogisticRegression,
    sklearn.PrivateLinearSVC,
    sklearn.PrivateNaiveBayes,
    sklearn.PrivateLinearRegression,
    river.PrivateLogisticRegression,
    river.PrivateLinearSVC,
    river.PrivateNaiveBayes,
    river.PrivateLinearRegression,
]
TRANSFORMERS = [
    scaling.PublicScaler,
    scaling.NormClip,
    scaling.PublicMap,
    scaling.PublicRandomFeatures,
    river.PublicScaler,
    river.NormClip,
]
ONE_ROW = [[0.5]], [1]


def said(call):
    """The sentences of the error of this call."""
    with pytest.raises(UnknownKeyword) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, InvalidInput)
    return str(caught.value)


@each("keyword", sorted(keywords.INSTEAD))
@each("model", MODELS)
def test_keywords_of_other_libraries_are_answered(model, keyword):
    """Each by a remedy, which names settings of this very class only."""
    if keyword in inspect.signature(model).parameters:
        pytest.skip("this class has it")
    message = said(lambda: model(**{keyword: 1}))
    assert message.startswith(f"{model.__name__} has no {keyword}. ")
    names = set(inspect.signature(model).parameters)
    assert {part.rpartition(" ")[2].strip("(:") for part in message.split("=")[:-1]} <= {*names, "users"}
    assert message.endswith((".", "?"))


def test_what_there_is_instead():
    """The remedies of the keywords that are tried most."""
    model = sklearn.PrivateLogisticRegression
    assert "not private, state seed=1" in said(lambda: model(random_state=0))
    assert "ridge=1/(C·n)" in said(lambda: model(C=1.0))
    assert "ridge=, radius=" in said(lambda: model(penalty="l1"))
    assert "leave it out" in said(lambda: model(max_iter=100))
    assert "users=" in said(lambda: model().fit(*ONE_ROW, groups=[1]))
    assert "leave it out" in said(lambda: model().fit(*ONE_ROW, sample_weight=[1.0]))
    assert "leave it out" in said(lambda: model().partial_fit(*ONE_ROW, sample_weight=[1.0]))
    assert "Leave it out: there are" in said(lambda: sklearn.PrivateNaiveBayes(alpha=1.0))


@each(
    ("misspelt", "meant"),
    [("espilon", "epsilon"), ("eps", "epsilon"), ("Delta", "delta"), ("rows_per_users", "rows_per_user")],
)
@each("model", MODELS)
def test_misspelt_settings(model, misspelt, meant):
    """The closest name is suggested."""
    assert said(lambda: model(**{misspelt: 1})) == f"{model.__name__} has no {misspelt}. Did you mean {meant}?"


def test_misspelt_settings_of_transformers_and_methods():
    """Transformers, `set_params`, searches and `fit` say the same."""
    for transformer in TRANSFORMERS:
        known = next(iter(inspect.signature(transformer).parameters))
        assert said(lambda made=transformer, name=known: made(**{name + "s": 1})).endswith(f"Did you mean {known}?")
    model = sklearn.PrivateLinearSVC(epsilon=1.0, feature_bound=1.0)
    assert said(lambda: model.set_params(ridges=1.0)).endswith("Did you mean ridge?")
    assert said(lambda: model.fit(*ONE_ROW, user=[1])).endswith("Did you mean users?")
    assert "It is a setting: state it in PrivateLinearSVC(epsilon=...)" in said(lambda: model.fit(*ONE_ROW, epsilon=1))
    search = GridSearchCV(model, {"C": [1.0]}, cv=2)
    assert "ridge=" in said(lambda: search.fit([[0.1], [0.2], [0.3], [0.4]], [0, 1, 0, 1]))
    assert model.set_params(ridge=0.5, epsilon=2.0) is model
    assert (model.ridge, model.epsilon) == (0.5, 2.0)


@each("model", [*MODELS, *TRANSFORMERS])
def test_signatures_stay_as_they_are(model):
    """No keyword of another library and no `**` is in a signature, and the one of the class is that of `__init__`."""
    parameters = inspect.signature(model).parameters
    assert list(parameters) == list(inspect.signature(model.__init__).parameters)[1:]
    for name in ("__init__", "fit", "partial_fit"):
        parameters = inspect.signature(getattr(model, name, model.__init__)).parameters
        assert not parameters.keys() & keywords.INSTEAD.keys() - {"class_weight"}
        assert all(each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters.values())


@each("model", MODELS[:4])
def test_copies(model):
    """Clones, copies and pickles are made without an error, and nothing claims to take weights."""
    made = model(epsilon=1.0, feature_bound=2.0)
    for other in (clone(made), copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.get_params() == made.get_params()
    assert not has_fit_parameter(made, "sample_weight")
    assert made.fit.__doc__
    assert made.fit.__name__ == "fit"


@each("model", MODELS)
def test_every_setting_is_documented_where_it_is(model):
    """In the class itself: none refers to the page of another one."""
    text = inspect.getdoc(model)
    for name in inspect.signature(model).parameters:
        assert re.search(rf"^[\w, ]*\b{name}\b[\w, ]* : ", text, re.MULTILINE), name
    assert not re.search(r"(As in|those of) `Private", text)
    assert "\nAttributes\n" in text


def test_a_class_with_keywords_of_its_own():
    """A subclass may add settings, or take any."""

    class Wider(sklearn.PrivateLinearSVC):
        def __init__(self, *, epsilon=None, C=1.0, **more):
            super().__init__(epsilon=epsilon)

    assert Wider(C=2.0, anything=1).epsilon is None


def test_warnings_point_to_the_call():
    """The wrapper is not what a warning points to."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(20, 2))
    model = sklearn.PrivateLogisticRegression(epsilon=0.01, feature_bound=1.0, seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0] > 0)
        model.fit(X, X[:, 0] > 0)
    private = [each for each in caught if each.category is PrivacyWarning]
    assert len(private) == 5  # labels inferred and nothing learnt, twice, and a second stream
    assert {each.filename for each in private} == {__file__}
