"""A stream behind a front door: any cut, no secrets in copies, resumable."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from taciturn.averages import late_average
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict
from taciturn.estimators.settings import Settings
from taciturn.estimators.stream import Stream
from taciturn.kernel.accounting.cost import Spent
from taciturn.kernel.replay import exact_of
from taciturn.kernel.stream.state import State

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(1000, 3))
Y = np.sign(X @ [1.0, -2.0, 0.5] + 0.1)


def plan(seed: int | None = 7, **settings):
    return Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, seed=seed, **settings).plan(3, len(Y))


def learnt(stream: Stream, cuts: list[int]) -> list:
    return [release for rows in np.split(np.arange(len(Y)), cuts) for release in stream.learn(X[rows], Y[rows])]


@pytest.mark.parametrize("method", ["ftrl", "pqftl", "giga"])
@pytest.mark.parametrize("cuts", [[500], list(range(7, 1000, 61)), [1, 2, 3, 999]])
def test_how_a_stream_is_cut_changes_nothing(method, cuts):
    whole, parts = Stream(plan(method=method)), Stream(plan(method=method))
    one, many = learnt(whole, []), learnt(parts, cuts)
    assert [r.t for r in one] == [r.t for r in many]
    assert all((a.point == b.point).all() for a, b in zip(one, many, strict=True))
    assert (whole.model == parts.model).all()
    assert (whole.spent, whole.t, whole.k) == (parts.spent, parts.t, parts.k)


def test_the_model_is_what_the_plan_says():
    averaging, lasting = Stream(plan(method="ftrl")), Stream(plan(method="pqftl"))
    releases = averaging.learn(X, Y)
    assert averaging.plan.averages
    assert (averaging.model == late_average(releases)).all()
    assert (lasting.learn(X, Y).points[-1] == lasting.model).all()


def test_before_the_first_release_the_model_knows_no_data():
    stream = Stream(plan(release=100))
    stream.learn(X[:99], Y[:99])
    assert (stream.t, stream.k, stream.spent) == (99, 0, Spent(0.0, 1e-6))
    assert (stream.model == 0.0).all()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize("seed", [None, 3])
def test_a_copy_keeps_the_model_and_no_secrets(duplicate, seed):
    stream = Stream(plan(seed))
    stream.learn(X[:500], Y[:500])
    other = duplicate(stream)
    assert (other.model == stream.model).all()
    assert other.spent == stream.spent
    assert (stream.learns, other.learns) == (True, False)
    assert not any(isinstance(part, State) for kept in vars(other).values() if isinstance(kept, tuple) for part in kept)
    with pytest.raises(StateConflict, match="this is a copy: it can predict"):
        other.learn(X[500:], Y[500:])
    with pytest.raises(StateConflict, match="copy"):
        other.dump("nowhere")
    stream.learn(X[500:], Y[500:])


def test_no_exact_vector_in_a_pickle():
    """Bytes of the exact gradient sum since the last release are in the state, and not in the pickle."""
    stream = Stream(plan(release=300))
    stream.learn(X[:400], Y[:400])
    secret = exact_of(stream._state)["sum"].tobytes()
    assert secret not in pickle.dumps(stream)
    assert secret in pickle.dumps(exact_of(stream._state))


def test_dumped_and_loaded_it_goes_on_as_if_nothing_had_been(tmp_path):
    settled = plan()
    there, here = Stream(settled), Stream(settled)
    there.learn(X, Y)
    here.learn(X[:432], Y[:432])
    here.dump(tmp_path / "stream.npz")
    later = Stream.load(settled, tmp_path / "stream.npz")
    later.learn(X[432:], Y[432:])
    assert (later.model == there.model).all()
    assert later.spent == there.spent


def test_an_old_dump_is_refused(tmp_path):
    settled = plan(seed=None)
    stream = Stream(settled)
    stream.learn(X[:400], Y[:400])
    stream.dump(tmp_path / "old.npz")
    stream.learn(X[400:], Y[400:])
    with pytest.raises(StateConflict, match="not its live state"):
        Stream.load(settled, tmp_path / "old.npz")


def test_a_state_without_a_model_is_refused(tmp_path):
    settled = plan(seed=None)
    settled.private.start().dump(tmp_path / "state.npz")
    with pytest.raises(StateConflict, match="no model besides its state"):
        Stream.load(settled, tmp_path / "state.npz")


def test_refused_rows_leave_it_as_it_was():
    stream = Stream(plan(seed=None))
    stream.learn(X[:500], Y[:500])
    before = stream.t, stream.k, stream.spent, stream.model.tobytes()
    bad = X[500:].copy()
    bad[3, 1] = np.nan
    with pytest.raises(InvalidInput, match="row 3"):
        stream.learn(bad, Y[500:])
    assert (stream.t, stream.k, stream.spent, stream.model.tobytes()) == before
    stream.learn(X[500:], Y[500:])
    with pytest.raises(BudgetExhausted, match="past the horizon"):
        stream.learn(X[:1], Y[:1])


def test_what_is_spent_is_the_whole_budget_once_and_never_more():
    stream = Stream(plan(seed=None))
    spent = [0.0]
    for rows in np.array_split(np.arange(1000), 13):
        stream.learn(X[rows], Y[rows])
        spent.append(stream.spent.epsilon)
    assert spent == sorted(spent)
    assert 0.999 < spent[-1] <= 1.0
    assert stream.cost.within(stream.plan.private.privacy)
