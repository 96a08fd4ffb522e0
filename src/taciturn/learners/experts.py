"""Private experts: EWOO whose candidates are the experts and whose examples are what each of them loses."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from taciturn.errors import integer
from taciturn.learners.ewoo import EWOO
from taciturn.problem.problem import Problem
from taciturn.problem.scalar_loss import ROUNDED_UP
from taciturn.problem.sets import Simplex
from taciturn.problem.unlabelled_loss import Advice


def experts(
    count: int,
    loss_bound: float = 1.0,
    *,
    neighbours: Literal["replace", "zero-out"] = "replace",
    on_bad: Literal["raise", "zero"] = "raise",
) -> EWOO:
    """Private experts: an example is the list of what each of `count` experts loses, between 0 and `loss_bound`.

    The certificate is `2·loss_bound` under replace and `loss_bound` under zero-out,
    however many experts there are. A released point is 1 at the expert to follow.

    Parameters
    ----------
    count : int
        How many experts, 2 or more.
    loss_bound : float
        Largest loss of an expert; larger ones are cut, and so are negative ones.
    neighbours, on_bad
        As in `taciturn.Problem`.

    Examples
    --------
    >>> experts(10).certificate, experts(1000, neighbours="zero-out").certificate
    (range/tail, 2, range/tail, 1)
    """
    count, loss = integer("count", count, least=2), Advice(loss_bound)
    longest = loss.loss_bound * math.sqrt(count) * ROUNDED_UP
    problem = Problem(loss, Simplex(), count, longest, neighbours=neighbours, on_bad=on_bad)
    return EWOO(problem, np.eye(count))
