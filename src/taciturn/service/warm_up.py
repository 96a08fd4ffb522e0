"""A warm-up: rows of zeros are learnt in drafts of the streams, so that no sender waits while code is compiled.

Numba compiles a loop when it is first called, and caches the code on disk: on a new machine the first row of the first
stream would wait for half a minute. A draft is never opened, committed or shown, and costs nothing.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from taciturn.contract.contract import contract_of
from taciturn.kernel.accounting.unit import User
from taciturn.plan import Plan
from taciturn.service.service import Service
from taciturn.streams.lines import lines_of
from taciturn.streams.published import Published

LOG = logging.getLogger("taciturn")

_ROWS = 2**10  # that are learnt at most
_ENTRIES = 2**20  # of these rows
_USUAL: dict[str, Any] = {
    "privacy": {"epsilon": 1.0},
    "target": {"column": "y", "positive": ["yes"]},
    "columns": {"x": {"range": [0, 1]}},
    "learning": {"horizon": 1000},
}


def warm_up(service: Service) -> None:
    """Compile what learns the streams of a service, one of each kind; if it has none, what learns the usual one."""
    if service.read_only:
        return
    service.refresh()
    plans = [host.plan for host in service.open_hosts() if host.served and not host.ended]
    plans = plans or [contract_of(_USUAL).plan(on_bad="zero", seed=0)]
    for plan in {_kind(plan): plan for plan in plans}.values():
        try:
            learn_zeros(plan)
        except Exception as error:  # the server can do without
            LOG.warning("nothing was compiled for a stream: %s", type(error).__name__)


def learn_zeros(plan: Plan) -> None:
    """Learn a row, and then the others up to the row after the second release, within bounds."""
    private = plan.stream
    width, table = private.problem.dimension, private.timetable
    most = min(_ROWS, _ENTRIES // width, table.horizon or _ROWS, (table.due(2) or _ROWS) + 1)
    state, published = private.draft(), Published.start(plan)
    for rows in (1, most - 1):
        ids = np.arange(rows) if isinstance(private.unit, User) else None
        prepared = private.prepare(state, np.zeros((rows, width)), np.ones(rows), ids)
        state, releases = prepared.state, prepared.releases
        if len(releases):
            published, models = published.after(releases)
            lines_of(plan, releases, models)


def _kind(plan: Plan) -> tuple[Any, ...]:
    """What decides which loops are compiled."""
    private = plan.stream
    parts = private.learner, private.calibrated, private.unit, private.problem, private.problem.loss
    return plan.method, plan.averages, plan.memories is None, *(type(part) for part in parts)
