"""Decisions of a stream with `[bandit]`: the actions of a request in order, and what is stored to learn from them.

Actions are chosen by the latest visible models and the visitor's own columns, so they are post-processing of what is
public for everyone else. What is stored is what one row needs: the encoded columns of the chosen action, its number,
and the id of the user, if users are protected. It enters the stream as any event does (`taciturn.core.events`).

Each decision draws from a random generator of its own. From one for all, whoever knows what it draws would see in their
own actions how much the visitors before had drawn, which depends on how many actions these could choose from.

A context that the contract cannot read is a bad row: actions are ranked as if nothing was known, and the event takes
its round without influence.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from taciturn.bandits.choices import EpsilonGreedy, Generator, LinearModel
from taciturn.bandits.ranking import among, generator, ranked
from taciturn.columns.values import number_of, text_of
from taciturn.contract.bandit import MOST
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.clipping import clip_rows
from taciturn.service import messages
from taciturn.service.rows import RowBatch, encoded
from taciturn.service.typed_rows import read_typed
from taciturn.store import Event

if TYPE_CHECKING:
    from taciturn.service.host import Host


_ANY = EpsilonGreedy(1.0)
_Action = messages.RankedAction

_decode = msgspec.json.Decoder().decode


class RankedDecision(NamedTuple):
    """A decision: what is stored of it, and its answer. Both are secret from others than the visitor.

    The actions are in order, by their numbers in the contract or else by name, and after them come the probabilities,
    of which those that are missing at the end are null.
    """

    row: dict[str, Any]
    release: int
    ranking: list[Any]
    probabilities: list[float | None]


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
        self._width = host.private.problem.width
        self._decisions = itertools.count()
        self._places = {name: number for number, name in enumerate(self.bandit.actions or ())}
        self._all = np.arange(len(self._places))
        self._names = list(self._places)
        self._decode = None
        if host.predictor.row is not None and self.contract.user is None:
            fields: list[Any] = [
                ("context_features", host.predictor.row),
                ("excluded_actions", list[str], msgspec.field(default_factory=list)),
                ("event_id", messages.EventId | None, None),
                ("defer_activation", bool, False),
                ("learn", bool, True),
            ]
            made: Any = msgspec.defstruct("Rank", fields, forbid_unknown_fields=True, rename="camel", kw_only=True)
            made.actions = None
            self._decode = msgspec.json.Decoder(made).decode

    def model(self, point: Array, noise_sd: float | None, k: int) -> LinearModel:
        """The models of a release, with what their choices need of them; in a thread."""
        model = LinearModel.of(self.host.private.learner, point, noise_sd or 0.0, k)
        if k:
            ranked(self.bandit.choice, model, np.zeros((2, model.dimension)), generator(0))  # it is compiled now
        return model

    def read(self, body: bytes) -> messages.Rank | None:
        """A decision with a value for each column and among the actions of the contract; None if it is another."""
        request: messages.Rank | None = read_typed(self._decode, body)
        return request

    def rank(self, request: messages.Rank, finite: bool = True) -> RankedDecision:
        """Rank the actions of a request; `finite` says that no number of a context is NaN or infinite."""
        given = request.context_features
        context: Any = _merged(given) if isinstance(given, list) else given
        names, records = self._candidates(request, context)
        V = np.zeros((len(records), self._width))
        bad = [not self._encode(record, v, finite) for record, v in zip(records, V, strict=True)]
        view = self.host.view
        model = view.linear_model
        assert model is not None
        if self.bandit.actions is not None and len(names) < len(self._all):
            model = among(model, np.array([self._places[name] for name in names]))
        choice = self.bandit.choice if model.k else _ANY  # before the first release nothing is known
        own = V[:, : self.contract.dimension]
        kept = own.tobytes() if len(records) == 1 else own.copy()
        self._clip(V, bad)
        order, probabilities = ranked(choice, model, V, self._generator())
        first = order[0]
        which = 0 if len(records) == 1 else first
        x = kept if isinstance(kept, bytes) else kept[first].tobytes()
        row: dict[str, Any] = {"x": None if bad[which] else x}
        if names is self._names:
            ranking: list[Any] = order
        else:
            ranking = [self._places.get(names[each], names[each]) for each in order]
        if self.bandit.actions is not None:
            row["a"] = ranking[0]
        if self.contract.user is not None:
            row["u"] = text_of(_single(context.get(self.contract.user)))
        if request.defer_activation:
            row["d"] = True
        known = len(probabilities)
        while known > 1 and probabilities[known - 1] is None:
            known -= 1
        return RankedDecision(row, view.k, ranking, probabilities[:known])

    def _generator(self) -> Generator:
        """Of the random choices of one decision alone: how many it draws depends on the visitor's own actions."""
        seed = self.host.private.seed
        return generator(None if seed is None else [seed, next(self._decisions)])

    def named(self, ranking: Sequence[Any], probabilities: Sequence[float | None]) -> list[messages.RankedAction]:
        """The actions of a decision, as they are told."""
        names, known = self._names, len(probabilities)
        return [
            _Action(names[each] if type(each) is int else each, probabilities[i] if i < known else None)
            for i, each in enumerate(ranking)
        ]

    def _candidates(self, request: messages.Rank, context: Any) -> tuple[list[str], list[Any]]:
        """Names of the actions that may be chosen, and a record for each, or one for all of them."""
        if self._names and request.actions is None and not request.excluded_actions:
            return self._names, [context]
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
            try:
                "".join(names).encode()
            except UnicodeEncodeError:  # it could not be told in the answer
                raise InvalidInput("the id of an action has half a surrogate pair. Send valid Unicode.") from None
            records = [{**context, **_merged(action.features)} for action in left]
        if not 2 <= len(names) <= MOST or len(set(names)) < len(names):
            raise InvalidInput(
                f"2 to {MOST:,} actions are ranked, each once, besides those that are excluded. If one is left "
                "there is nothing to choose: show it without asking; otherwise correct the ids."
            )
        return names, records

    def _encode(self, record: Any, v: Array, finite: bool) -> bool:
        """Write the scaled features of a record to `v`; False if it is bad."""
        x = v[: self.contract.dimension]
        if not finite or self.host.predictor.encode(record, x) is None:
            x[:] = 0.0  # what the fast path has written
            plain = record if isinstance(record, dict) else self.host.predictor.as_record(record)
            for X, _, _, bad in encoded([RowBatch([plain], (), 1)], self.contract, labelled=False):
                if bad[0]:
                    return False
                x[:] = X[0]
        x *= self._scale
        return True

    def _clip(self, V: Array, bad: Sequence[bool]) -> None:
        """Make contexts those that are learnt from, with the intercept; of bad ones nothing is known."""
        problem, d = self.host.private.problem, self.contract.dimension
        most = problem.feature_bound**2 * (1.0 - 1e-9)
        V[:, d:] = problem.intercept
        for v, wrong in zip(V, bad, strict=True):
            x = v[:d]
            if wrong:
                v[:] = 0.0
            elif not x.dot(x) < most:  # it may be too long
                v[:d] = clip_rows(x[None], problem.feature_bound)[0]

    def batch(self, events: Sequence[tuple[Any, Event]]) -> RowBatch:
        """Sealed events, with what was stored of them, as rows to learn from."""
        contract, learner, n = self.contract, self.host.private.learner, len(events)
        X = np.full((n, contract.dimension), np.nan)
        rewards, arms = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
        users = np.full(n, None, dtype=object)
        assert contract.events is not None
        needs_id = contract.rows_per_user is not None and contract.without_id == "bad"
        missing, none = number_of(contract.events.missing), number_of(None)
        known: list[int] = []
        contexts: list[bytes] = []
        for i, (row, event) in enumerate(events):
            if row is None:
                continue
            user = users[i] = row.get("u")
            if event.label is not None:
                rewards[i] = number_of(_decode(event.label))
            else:
                rewards[i] = none if row.get("d") else missing
            arms[i] = row.get("a", 0)
            x = row["x"]
            if x is not None and not (needs_id and user is None):
                known.append(i)
                contexts.append(x if isinstance(x, bytes) else np.array(x).tobytes())
        X[known] = np.frombuffer(b"".join(contexts)).reshape(len(known), contract.dimension)
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
