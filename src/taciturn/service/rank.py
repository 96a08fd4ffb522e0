"""Decisions of a stream with `[bandit]`: the actions of a request in order, and what is stored to learn from them.

Actions are chosen by the latest visible models and the visitor's own columns, so they are post-processing of what is
public for everyone else. What is stored is what one row needs: the encoded columns of the chosen action, its number,
and the id of the user, if users are protected. It enters the stream as any event does (`taciturn.store.events`).

A context that the contract cannot read is a bad row: actions are ranked as if nothing was known, and the event takes
its round without influence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from taciturn._util.arrays import Array
from taciturn.bandits.choices import EpsilonGreedy, LinearModel
from taciturn.bandits.ranking import among, generator, ranked
from taciturn.columns.values import number_of, text_of
from taciturn.contract.bandit import MOST
from taciturn.errors import InvalidInput
from taciturn.problem.clipping import clip_rows
from taciturn.service import messages
from taciturn.service.rows import RowBatch, encoded
from taciturn.store import Event

if TYPE_CHECKING:
    from taciturn.service.host import Host, View


_ANY = EpsilonGreedy(1.0)

_decode = msgspec.json.Decoder().decode


class Decided(NamedTuple):
    """A decision: what is stored of it, and its answer. Both are secret from others than the visitor."""

    row: dict[str, Any]
    release: int
    ranking: list[tuple[str, float | None]]


class Ranker:
    """Ranks actions by the visible models of a stream; in the thread of the event loop.

    Parameters
    ----------
    host : Host
        The stream.
    """

    def __init__(self, host: Host) -> None:
        assert host.contract.bandit is not None
        self.host = host
        self.contract = host.contract
        self.bandit = host.contract.bandit
        self._scale = self.bandit.scale(self.contract)
        self._rng = generator(host.private.seed)
        self._places = {name: number for number, name in enumerate(self.bandit.actions or ())}
        self._all = np.arange(len(self._places))
        self._view: View | None = None
        self._model: LinearModel | None = None

    def model(self) -> tuple[View, LinearModel]:
        """The visible models."""
        view = self.host.view
        if self._model is None or self._view is not view:
            self._model = LinearModel.of(self.host.private.learner, view.model.point, view.noise_sd or 0.0, view.k)
            self._view = view
        return view, self._model

    def rank(self, request: messages.Rank, finite: bool = True) -> Decided:
        """Rank the actions of a request; `finite` says that no number of a context is NaN or infinite."""
        given = request.context_features
        context = given if isinstance(given, dict) else _merged(given)
        names, records = self._candidates(request, context)
        X = np.zeros((len(records), self.contract.dimension))
        bad = [not self._encode(record, x, finite) for record, x in zip(records, X, strict=True)]
        view, model = self.model()
        if self.bandit.actions is not None and len(names) < len(self._all):
            model = among(model, np.array([self._places[name] for name in names]))
        choice = self.bandit.choice if model.k else _ANY  # before the first release nothing is known
        order, probabilities = ranked(choice, model, self._clipped(X, bad), self._rng)
        first = order[0]
        own = 0 if len(records) == 1 else first
        row: dict[str, Any] = {"x": None if bad[own] else X[own].tolist()}
        if self.bandit.actions is not None:
            row["a"] = self._places[names[first]]
        if self.contract.user is not None:
            row["u"] = text_of(_single(context.get(self.contract.user)))
        if request.defer_activation:
            row["d"] = True
        ranking = [(names[each], share) for each, share in zip(order, probabilities, strict=True)]
        return Decided(row, view.k, ranking)

    def _candidates(self, request: messages.Rank, context: dict[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
        """Names of the actions that may be chosen, and a record for each, or one for all of them."""
        out = set(request.excluded_actions)
        given = request.actions
        if self.bandit.actions is not None:
            known = self.bandit.actions if given is None else [action.id for action in given]
            if any(name not in self._places for name in (*known, *out)):
                raise InvalidInput("an action is none of those in the contract (bandit.actions). Check its id.")
            names, records = [name for name in known if name not in out], [context]
        else:
            if given is None:
                raise InvalidInput("the actions of this stream come with each request. Send them with their features.")
            left = [action for action in given if action.id not in out]
            names = [action.id for action in left]
            records = [{**context, **_merged(action.features)} for action in left]
        if not 2 <= len(names) <= MOST or len(set(names)) < len(names):
            raise InvalidInput(f"2 to {MOST:,} actions are ranked, each once, besides those that are excluded.")
        return names, records

    def _encode(self, record: dict[str, Any], x: Array, finite: bool) -> bool:
        """Write the scaled features of a record to `x`; False if it is bad."""
        if not (finite and self.host.predictor.encode(record, x)):
            x[:] = 0.0  # what the fast path has written
            for X, _, _, bad in encoded([RowBatch([record], (), 1)], self.contract, labelled=False):
                if bad[0]:
                    return False
                x[:] = X[0]
        x *= self._scale
        return True

    def _clipped(self, X: Array, bad: Sequence[bool]) -> Array:
        """Contexts as they are learnt from, with the intercept; of bad ones nothing is known."""
        problem, d = self.host.private.problem, self.contract.dimension
        V = np.empty((len(X), problem.width))
        V[:, :d] = X
        V[:, d:] = problem.intercept
        most = problem.feature_bound**2 * (1.0 - 1e-9)
        for x, v, wrong in zip(X, V, bad, strict=True):
            if wrong:
                v[:] = 0.0
            elif not x.dot(x) < most:  # it may be too long
                v[:d] = clip_rows(x[None], problem.feature_bound)[0]
        return V

    def batch(self, events: Sequence[tuple[Any, Event]]) -> RowBatch:
        """Sealed events, with what was stored of them, as rows to learn from."""
        contract, learner, n = self.contract, self.host.private.learner, len(events)
        X = np.full((n, contract.dimension), np.nan)
        rewards, arms = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
        users = np.full(n, None, dtype=object)
        assert contract.events is not None
        needs_id = contract.rows_per_user is not None and contract.without_id == "bad"
        for i, (row, event) in enumerate(events):
            if row is None:
                continue
            users[i] = row.get("u")
            missing = None if row.get("d") else contract.events.missing
            label = missing if event.label is None else _decode(event.label)
            if row["x"] is not None and not (needs_id and users[i] is None):
                X[i] = row["x"]
            rewards[i], arms[i] = number_of(label), row.get("a", 0)
        y = np.asarray(learner.labels(rewards, arms))  # type: ignore[attr-defined]
        bad = np.isnan(y) | np.isnan(X).any(axis=1)
        X[bad] = np.nan
        y[bad] = np.nan
        return RowBatch(None, [(X, y, None if contract.user is None else users, bad)], n)


def _merged(features: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for part in [features] if isinstance(features, dict) else features:
        made |= part
    return made


def _single(value: Any) -> Any:
    """A value that may be an id; a list or an object is none."""
    return None if isinstance(value, list | dict) else value
