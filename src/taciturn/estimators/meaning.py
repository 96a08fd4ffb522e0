"""What the weights of an estimator's model mean, by which a successor is compared with the stream that it follows.

A released model says how much each feature counts, for labels in certain units. A successor that starts from it must
have the same features, target and bounds, or its first models would be another model's weights on other columns. Each
part is a hash of public settings. A part that one of the two does not know, such as the names of the columns of an
array, is not compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.columns.encoder import ColumnEncoder
from taciturn.columns.target import Number
from taciturn.core.state import fingerprint
from taciturn.errors import InvalidInput
from taciturn.estimators.settings import Settings
from taciturn.plan import Plan
from taciturn.renewal import Renewal


def with_meaning(
    plan: Plan,
    settings: Settings,
    encoder: ColumnEncoder | None = None,
    target: Number | None = None,
    classes: Iterable[Any] | None = None,
    names: Iterable[Any] | None = None,
) -> Plan:
    """The plan, with hashes of what its weights mean; one that starts from weights of another meaning is rejected.

    >>> settings = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0)
    >>> plan = with_meaning(settings.plan(2, horizon=100), settings, names=["age", "income"])
    >>> [part for part, _ in plan.means]
    ['columns', 'target', 'bounds', 'map', 'names']
    """
    if encoder is None:
        columns: Any = None
    else:
        pairs = zip(encoder.keys, encoder.columns, strict=True)
        columns = [[str(key), column.declared()] for key, column in pairs]
    if classes is not None:
        learnt: Any = ["classes", [each.item() if isinstance(each, np.generic) else each for each in classes]]
        learnt = [learnt[0], [[type(each).__name__, str(each)] for each in learnt[1]]]
    else:
        learnt = ["number", settings.label_bound if target is None else target.declared()]
    problem = plan.private.problem
    parts: dict[str, Any] = {
        "columns": columns,
        "target": learnt,
        "bounds": [settings.feature_bound, settings.fit_intercept],
        "map": problem.features,
    }
    if names is not None and encoder is None:
        parts["names"] = [str(name) for name in names]
    means = tuple((part, fingerprint(value)[:32]) for part, value in parts.items())
    if settings.renew is not None:
        _check(settings.renew, means)
    return replace(plan, means=means)


def _check(renewal: Renewal, means: tuple[tuple[str, str], ...]) -> None:
    """Reject a successor whose weights mean something else; warn if what they meant is not known."""
    before = dict(renewal.means)
    if not before:
        warnings.warn(
            "what renew= takes does not say which features, target and bounds its stream had, as it was made by an "
            "earlier version or by hand, so they are not compared. Check that they are the same.",
            stacklevel=7,
        )
    differs = [_WORDS[part] for part, value in means if before.get(part, value) != value]
    if differs:
        raise InvalidInput(
            "this model declares other features, another target or other bounds than that of the stream which is to "
            f"be followed, so its weights mean nothing here: {' and '.join(dict.fromkeys(differs))}. Declare them as "
            "they were; budget, horizon, method and forget may change."
        )


_WORDS = {
    "columns": "the columns differ",
    "names": "the names of the features, or their order, differ",
    "target": "the classes, or the range of the labels, differ",
    "bounds": "the feature bound, or whether there is an intercept, differs",
    "map": "the map of the features differs",
}
