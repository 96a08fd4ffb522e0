"""Releases as lines of JSON, as a store has them and `models.jsonl` shows them.

A line holds `k` (number of the release), `t` (number of examples seen), `noise_sd` (standard deviation of the noise on
an entry of the release), `model` (the point to use) and, if models are averages or chosen of several memories, `point`
(the released point itself);
in a seeded run also `"simulated": true`. All of it is public. A point has an entry for each feature, in the order of
the contract, and one for the constant of the intercept; with several classes, the points of the classes are
concatenated.
"""

from __future__ import annotations

import json
from typing import Any

from taciturn.kernel.arrays import Array
from taciturn.kernel.stream.release import Releases
from taciturn.plan import Plan


def lines_of(plan: Plan, releases: Releases, models: Array) -> bytes:
    r"""The lines of consecutive releases; `models` has the model to use after each of them.

    >>> import numpy as np
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0).plan(dimension=2, horizon=9)
    >>> one = np.array([[0.5, 0.25, 0.0]])
    >>> lines_of(plan, Releases(np.array([4]), 1, one, one, np.array([2.0]), False), one)
    b'{"k": 1, "t": 4, "noise_sd": 2.0, "model": [0.5, 0.25, 0.0]}\n'
    """
    apart = plan.averages or plan.memories is not None
    points = releases.points.tolist() if apart else [None] * len(releases)
    numbers = range(releases.first, releases.first + len(releases))
    rows = zip(numbers, releases.rounds.tolist(), releases.noise_sd.tolist(), models.tolist(), points, strict=True)
    return "".join(_line(*row, releases.simulated) for row in rows).encode()


def _line(k: int, t: int, noise_sd: float, model: list[float], point: list[float] | None, simulated: bool) -> str:
    line: dict[str, Any] = {"k": k, "t": t, "noise_sd": noise_sd, "model": model}
    if point is not None:
        line["point"] = point
    if simulated:
        line["simulated"] = True
    return json.dumps(line) + "\n"
