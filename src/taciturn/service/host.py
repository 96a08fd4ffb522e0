"""One stream as readers see it: its visible releases, their models, and predictions.

What is answered here depends on visible releases and public settings only. Views are replaced at ticks of the clock
(`taciturn.service.clock`), those of all streams at once, and never in between; so predictions, the latest model, events
and metrics all change at once. A release that is committed and not visible yet does not exist for readers.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from taciturn.bandits.choices import LinearModel
from taciturn.columns.labels import classes_of
from taciturn.contract.contract import Contract, contract_of
from taciturn.contract.model_file import Found, Model, found_in
from taciturn.core.private import Private
from taciturn.errors import InvalidInput
from taciturn.kernel.accounting.cost import FREE, Cost, Spent, total
from taciturn.kernel.arrays import Array
from taciturn.plan import Plan
from taciturn.readers.predictions import has_probabilities
from taciturn.renewal import stored_renewal
from taciturn.runs.run import SERVED
from taciturn.runs.summary import guarantee_of_all
from taciturn.service import messages
from taciturn.service.predictor import RowPredictor
from taciturn.service.rank import Ranker
from taciturn.service.rows import PlainRows, RowBatch, encoded
from taciturn.store import AtTick, Chunk, Saved, Store
from taciturn.store.database import StoreReplaced
from taciturn.streams.published import Published

PAGE = 2**20
"""Bytes of releases with weights that are read and sent together; a release that is longer is sent alone."""

READ = 2**25
"""Bytes of releases that are read for a page without weights."""


@dataclass(frozen=True, eq=False)
class View:
    """What is visible of a stream from one tick to the next.

    Attributes
    ----------
    tick : int
        The tick, in milliseconds since the epoch.
    k, t : int
        Number of visible releases, and the round of the last; both 0 before the first.
    visible_at : int, optional
        When the last became visible.
    noise_sd : float, optional
        Standard deviation of its noise.
    cost : Cost
        What the releases of this stream cost, up to the last visible one.
    spent : Spent
        The same as an epsilon, with what the streams cost that it was adopted from.
    model : Model
        The model to use; before the first release the data-free one.
    closed : bool
        Whether the stream has ended.
    linear_model : LinearModel, optional
        The models of its actions, if it chooses.
    """

    tick: int
    k: int
    t: int
    visible_at: int | None
    noise_sd: float | None
    cost: Cost
    spent: Spent
    model: Model
    closed: bool
    linear_model: LinearModel | None = None

    @cached_property
    def body(self) -> bytes:
        """The model as it is sent, which takes a moment for a large one: it is made when it is asked for."""
        return model_body(self.model)

    @cached_property
    def etag(self) -> str:
        """Its hash."""
        return hashlib.sha256(self.body).hexdigest()[:32]


class NotForServers(InvalidInput):
    """A stream that a server has no way to show: without a contract, or not learnt row by row."""


class Host:
    """A stream of a store that a service shows.

    Parameters
    ----------
    store : Store
        Where the stream is.
    saved : Saved
        The stream, as it is now.
    layers : dict, optional
        Contents of its layers; by default those in the store, which another process may have replaced since.

    Attributes
    ----------
    contract : Contract
        What was declared of it.
    plan : Plan
        How it learns, with the calibration that it began with.
    private : Private
        The private algorithm of the plan.
    served : bool
        Whether it learns by this service, and not by `taciturn learn`.
    """

    def __init__(self, store: Store, saved: Saved, layers: Mapping[str, bytes] | None = None) -> None:
        if "declared" not in saved.about:
            raise NotForServers(f"{saved.name} has no contract in the store, and cannot be shown.")
        self.store = store
        self.name = saved.name
        self.lineage = saved.lineage
        self.ledger = saved.population
        self.served = SERVED in saved.about
        self.simulated = "seed" in saved.about
        self.earlier = saved.earlier
        self.reserved = saved.reserved
        self.contract: Contract = contract_of(saved.about["declared"])
        if self.contract.digest != saved.about.get("contract"):
            raise InvalidInput(f"{saved.name} was not learnt under the contract in the store, and cannot be shown.")
        plan = self.contract.plan(on_bad="zero", seed=saved.about.get("seed")).following(stored_renewal(saved))
        if not plan.private.is_stream:
            raise NotForServers(f"{saved.name} is not learnt row by row, and cannot be shown.")
        state = plan.stream.read(saved.state, store.layers(saved) if layers is None else layers)
        self.private: Private = plan.stream.resumed(state)
        self.plan: Plan = replace(plan, private=self.private)
        self.predictor = RowPredictor(self.contract)
        self.plain = PlainRows(self.contract)
        self.ranker = None if self.contract.bandit is None else Ranker(self)
        self._names = self.contract.target.names
        self._found: Found | None = None
        self._found_known = False
        self.events_opened = 0  # as of the last tick: public, as rounds are
        self.events_pending = 0  # those of them that are not learnt yet
        self.events_due: int | None = None  # when the wait of the next of these ends; or ended, if it is late
        self.view = self._view(0, 0, False, {}, None)

    @property
    def ended(self) -> bool:
        """Whether its last release is visible, or it is closed."""
        return self.view.closed or self.private.timetable.due(self.view.k + 1) is None

    @property
    def horizon(self) -> int | None:
        """The last round, if there is one."""
        return self.private.timetable.horizon

    # Views.

    def following_view(self, tick: int, found: AtTick) -> View | None:
        """What is visible from this tick on; None if that is what is visible already.

        What was shown stays, also if a clock is set back, and the last release of a stream comes before its end.
        """
        k = max(found.visible, self.view.k)
        closed = self.view.closed or (found.closed and k == found.releases)
        if k > self.view.k and found.line is not None:
            return self._view(tick, k, closed, json.loads(found.line), found.visible_at)
        return None if closed == self.view.closed else replace(self.view, tick=tick, closed=closed)

    def _view(self, tick: int, k: int, closed: bool, line: dict[str, Any], visible_at: int | None) -> View:
        model = self._model(line)
        return View(
            tick,
            k,
            model.round,
            visible_at,
            line.get("noise_sd"),
            self._cost(model.round, k),
            model.spent,
            model,
            closed,
            None if self.ranker is None else self.ranker.model(model.point, line.get("noise_sd"), k),
        )

    def _cost(self, t: int, k: int) -> Cost:
        return self.private.spent_after(t, k) if k else FREE

    def _line(self, k: int) -> dict[str, Any]:
        """The line of a release that is committed."""
        line: dict[str, Any] = json.loads(next(_lines_from(self.chunk(k)[0], k)))
        return line

    def chunk(self, k: int) -> tuple[Chunk, int | None]:
        """The chunk with a release that is committed, and when it becomes visible."""
        found = self.store.chunk(self.lineage, k)
        if found is None:
            raise StoreReplaced(f"{self.name} has no release {k} any more in {self.store.address}.")
        return found

    def _model(self, line: dict[str, Any]) -> Model:
        k, t = line.get("k", 0), line.get("t", 0)
        point = np.array(line["model"]) if line else Published.start(self.plan).model
        return Model(
            self.contract,
            point,
            t,
            k,
            self.epsilon(self._cost(t, k)),
            self.guarantee,
            self.simulated,
            {} if self.earlier != FREE else self.private.guarantee.as_data(),
            self._stages() if k else None,
            self.private.guarantee.rests_on,
        )

    def _stages(self) -> Found | None:
        """What stages have found; it is the same at every release, and public since the first."""
        if not self._found_known:
            problem = self.private.problem
            if self.private.stages:
                saved, layers = self.store.load_with_layers(self.name)
                state = self.private.read(saved.state, layers)
                problem = self.private.problem_at(state)
            self._found = found_in(problem)
            self._found_known = True
        return self._found

    def epsilon(self, cost: Cost) -> Spent:
        """A cost of this stream, with what the streams reserved that it was adopted from."""
        return total([self.earlier, cost]).spent_at(self.contract.delta)

    @property
    def budget(self) -> Spent:
        """The most that the stream can cost: the contract's budget; after an adoption, that of all streams."""
        if self.earlier == FREE:
            return Spent(self.contract.epsilon, self.contract.delta)
        return self.epsilon(self.reserved)

    @cached_property
    def guarantee(self) -> str:
        """The guarantee in words."""
        return guarantee_of_all(self.contract, self.plan, None if self.earlier == FREE else self.budget)

    # Answers.

    def model_at(self, k: int) -> bytes | None:
        """The model after the k-th release, as it is sent; None if that is not visible."""
        view = self.view
        if not 1 <= k <= view.k:
            return None
        return view.body if k == view.k else model_body(self._model(self._line(k)))

    def releases(self, after: int, most: int, weights: bool = False) -> list[bytes]:
        """The visible releases after a number, each as JSON (`messages.Released`): so many, or fewer if they are long.

        Weights are copied as they are stored. At least one release is there, if one follows.
        """
        made: list[bytes] = []
        decode, left = (_decode_weights, PAGE) if weights else (_decode_summary, READ)
        for line in self._lines(after, min(self.view.k, after + most)):
            made.append(msgspec.json.encode(decode(line)))
            left -= len(line)
            if left <= 0:
                break
        return made

    def _lines(self, after: int, last: int) -> Iterator[bytes]:
        while after < last:
            chunk, _ = self.chunk(after + 1)
            lines = _lines_from(chunk, after + 1)
            for _ in range(after, min(chunk.last, last)):
                yield next(lines)
            after = chunk.last

    def predict_plain(self, rows: Sequence[Any], probabilities: bool = False) -> messages.Predictions | None:
        """Predictions for a few rows whose numbers are finite; None if one of them needs `predict`."""
        self._must_predict()
        view = self.view
        model = view.model
        if probabilities:
            has_probabilities(model)
        scores = self.predictor.scores(model, rows)
        if scores is None:
            return None
        made = self._decoded(scores)
        if not probabilities:
            return messages.Predictions(self.name, view.k, made)
        return messages.Predictions(self.name, view.k, made, list(self._names), model.probabilities(scores).tolist())

    def _must_predict(self) -> None:
        if self.ranker is not None:
            raise InvalidInput(f"{self.name} chooses actions. Ask POST /v1/streams/{self.name}/rank.")

    def predict(self, batch: RowBatch, probabilities: bool = False) -> messages.Predictions:
        """Predictions by the latest visible model."""
        if batch.finite and batch.records is not None:
            plain = self.predict_plain(batch.records, probabilities)
            if plain is not None:
                return plain
        self._must_predict()
        view = self.view
        model, names = view.model, self._names
        if probabilities:
            has_probabilities(model)
        made = []
        all_probabilities: list[list[float] | None] = []
        for X, _, _, bad in encoded([batch], self.contract, labelled=False):
            scores = model.scores(X)
            values = self._decoded(scores)
            part = model.probabilities(scores).tolist() if probabilities else []
            if bad.any():
                wrong = bad.tolist()
                values = [None if no else value for no, value in zip(wrong, values, strict=True)]
                part = [None if no else each for no, each in zip(wrong, part, strict=True)] if part else []
            made += values
            all_probabilities += part
        if not probabilities:
            return messages.Predictions(self.name, view.k, made)
        return messages.Predictions(self.name, view.k, made, list(names), all_probabilities)

    def _decoded(self, scores: Array) -> list[Any]:
        """Predictions as plain values."""
        names = self._names
        if names:
            return [names[number] for number in classes_of(scores).tolist()]
        made: list[Any] = self.contract.decode_predictions(scores).tolist()
        return made

    def stream(self, tick: float) -> messages.Stream:
        """What is public about the stream."""
        view, table = self.view, self.private.timetable
        return messages.Stream(
            self.name,
            view.closed,
            self.served,
            self.simulated,
            view.k,
            view.t,
            table.due(view.k + 1),
            table.horizon,
            view.visible_at,
            tick,
            budget_message(view.spent),
            budget_message(self.budget),
            self.ledger,
        )

    def details(self, tick: float) -> messages.StreamDetails:
        """What is public about the stream, with its contract and its guarantee in words."""
        private = self.private
        return messages.StreamDetails(
            self.stream(tick),
            self.guarantee,
            str(private.unit),
            private.neighbours,
            f"{self.plan.method}: {self.plan.why}",
            self.plan.noise_on,
            self.contract.declared,
            self.plan.warning,
        )


class _Summary(msgspec.Struct):
    """The line of a release, as far as it is sent without weights."""

    k: int
    t: int
    noise_sd: float


_NO_POINT = msgspec.Raw()


class _Weights(_Summary, omit_defaults=True):
    """The line with weights, which are not decoded."""

    model: msgspec.Raw
    point: msgspec.Raw = _NO_POINT


_decode_summary = msgspec.json.Decoder(_Summary).decode
_decode_weights = msgspec.json.Decoder(_Weights).decode


def _lines_from(chunk: Chunk, k: int) -> Iterator[bytes]:
    """The lines of a chunk from a release on, without a copy of the others."""
    start = 0
    for _ in range(chunk.first, k):
        start = chunk.content.index(b"\n", start) + 1
    while (end := chunk.content.find(b"\n", start)) >= 0:
        yield chunk.content[start:end]
        start = end + 1


def model_body(model: Model) -> bytes:
    """A model as `model.json` has it."""
    text = json.dumps(model.as_data(), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def budget_message(spent: Spent) -> messages.Budget:
    """An epsilon that is not finite is null."""
    return messages.Budget(spent.epsilon if math.isfinite(spent.epsilon) else None, spent.delta)
