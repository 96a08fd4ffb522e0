"""What the weights of an estimator's model mean, by which a successor is compared with the stream that it follows.

Each part is a hash of public settings; `taciturn.renewal` says why they are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.columns.encoder import ColumnEncoder
from taciturn.columns.target import Number
from taciturn.estimators.settings import Settings
from taciturn.kernel.stream.earlier import earlier_fingerprint
from taciturn.kernel.stream.fingerprint import fingerprint
from taciturn.plan import Plan


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
    means = tuple((part, fingerprint(value)[:_LENGTH]) for part, value in parts.items())
    if settings.renew is not None:
        before = dict(settings.renew.means)
        known = {part: made for part, value in parts.items() if (made := _of_version_1(value)) == before.get(part)}
        settings.renew.check_means(tuple((part, known.get(part) or made) for part, made in means))
    return replace(plan, means=means)


def _of_version_1(value: Any) -> str | None:
    """The hash of a part as streams have it that began with version 1; None if that could not state it."""
    earlier = earlier_fingerprint(value)
    return earlier and earlier[:_LENGTH]


_LENGTH = 32
