"""Docstrings of estimators: every parameter is documented, and in the same words in all classes of a module."""

from __future__ import annotations

import inspect
import re

import pytest

from taciturn.estimators import river, scaling, search, sklearn

MODELS = ("PrivateLogisticRegression", "PrivateLinearSVC", "PrivateNaiveBayes", "PrivateLinearRegression")
CLASSES = [
    *(getattr(module, name) for module in (sklearn, river) for name in MODELS),
    *(getattr(scaling, name) for name in scaling.__all__),
    search.PrivateSearchCV,
    river.PublicScaler,
    river.NormClip,
]
OWN = {
    "sklearn": {"feature_bound", "fit_intercept", "columns", "method", "release", "horizon", "neighbours", "loss"},
    "river": {"columns"},
}
"""Parameters that differ between the models of a module, and so do their texts."""


def documented(thing):
    """Texts of the parameters of a class, by name."""
    section = inspect.getdoc(thing).split("Parameters\n----------\n")[1].split("\n\n")[0]
    parts = re.split(r"^(?=\S)", section, flags=re.M)[1:]
    texts = [(part.split("\n")[0], re.sub(r"\s+", " ", part.partition("\n")[2]).strip()) for part in parts]
    return {name.strip(): text for names, text in texts for name in names.partition(" : ")[0].split(",")}


@pytest.mark.parametrize("thing", CLASSES, ids=lambda thing: f"{thing.__module__}.{thing.__name__}")
def test_every_parameter_is_documented(thing):
    assert set(inspect.signature(thing).parameters) == set(documented(thing))


@pytest.mark.parametrize("module", [sklearn, river], ids=["sklearn", "river"])
def test_a_parameter_has_the_same_text_in_all_classes(module):
    """Texts stand in each class, for `help`; so a change of one must be a change of all."""
    texts = {}
    for name in MODELS:
        for parameter, text in documented(getattr(module, name)).items():
            if parameter not in OWN[module.__name__.rpartition(".")[2]]:
                texts.setdefault(parameter, set()).add(text)
    assert {parameter: found for parameter, found in texts.items() if len(found) > 1} == {}
