"""A stream in memory with its releases, as the views take them; nothing of it is served."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taciturn import Ledger, Privacy
from taciturn.contract.contract import Contract, contract_of
from taciturn.contract.model_file import Model, model_of
from taciturn.estimators.stream import Stream
from taciturn.service.dashboard.noise import NoiseOfReleases
from taciturn.service.dashboard.views import (
    Gauge,
    Published,
    StreamView,
    Viewer,
    inputs_of,
    ledger_row,
)
from taciturn.streams.lines import lines_of

ADMIN = Viewer("the laptop", frozenset({"admin"}), "secret-of-forms")
READER = Viewer("reports", frozenset({"read"}), "secret-of-forms")
BEGAN = 1_700_000_000_000


def declared(**learning: Any) -> dict[str, Any]:
    """A contract of two columns, learnt by private FTRL unless something else is said."""
    return {
        "privacy": {"epsilon": 2.0},
        "target": {"column": "clicked", "positive": ["yes"]},
        "learning": {"horizon": 2000, **learning},
        "columns": {"age": {"range": [0, 100]}, "device": {"categories": ["phone", "computer"]}},
    }


@dataclass(frozen=True)
class Sample:
    """A stream that has learnt, and what is public of it."""

    contract: Contract
    stream: Stream
    view: StreamView
    model: Model
    ledger: Ledger


def sample(contract: Contract | None = None, rows: int = 1500, name: str = "clicks", seed: int = 5) -> Sample:
    """A stream that has learnt from so many rows, whose label follows the first feature."""
    contract = contract or contract_of(declared())
    plan = contract.plan("zero", seed=seed)
    ledger = Ledger(Privacy(60.0, 1e-6), population="customers")
    stream = Stream(plan)
    ledger.reserve("a lineage", plan.private.total_cost, settings=plan.private.recorded, name=name)
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(2000, contract.dimension)), -1.0, 1.0)
    y = np.sign(X[:, 0] + 0.1 * rng.normal(size=2000))
    releases = stream.learn(X[:rows], y[:rows])
    lines = [json.loads(line) for line in lines_of(plan, releases, stream.models).splitlines()]
    published = Published.of_lines([(line, BEGAN + 1000 * line["k"]) for line in lines], len(stream.model))
    ledger.record_spent("a lineage", stream.cost)
    view = StreamView(
        name,
        contract,
        plan,
        published,
        NoiseOfReleases(plan).until(published.count, published.points),
        Gauge(contract.epsilon, contract.delta, stream.spent.epsilon, contract.epsilon, None),
        ledger_row(ledger),
        contract.guarantee(plan),
        inputs=inputs_of(contract),
    )
    return Sample(contract, stream, view, model_of(contract, stream), ledger)


def with_releases(view: StreamView, count: int) -> StreamView:
    """The same stream with made-up releases, for pages with many of them."""
    size = view.published.models.shape[1]
    rng = np.random.default_rng(1)
    models = rng.normal(size=(count, size)).cumsum(axis=0) / 50.0
    numbers = np.arange(1, count + 1)
    sd = 1.0 / np.sqrt(numbers)
    made = Published(numbers, 10 * numbers, sd, models, models, BEGAN + 1000 * numbers, count)
    return replace(view, published=made, noise=replace(view.noise, point=sd, model=sd, move=sd))
