"""A stream in a store: what was prepared is committed as a whole or not at all, and nothing else is shown."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from taciturn import Ledger, Privacy, User, block_statistics
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, StoreUnavailable, Unprovable
from taciturn.estimators.settings import Settings
from taciturn.kernel.arrays import same
from taciturn.kernel.replay import arrays_in, excluded_in
from taciturn.kernel.stream.earlier import earlier_fingerprint
from taciturn.kernel.stream.state import read_state
from taciturn.runs.diagnostics import Diagnostics
from taciturn.store import Request, Store
from taciturn.store.encryption import new_key
from taciturn.streams.stored import StoredStream

ROWS = 24
X = np.random.default_rng(5).normal(size=(ROWS, 2)) / 2.0
Y = np.clip(X @ [0.5, -0.5], -1.0, 1.0)
MADE = {"loss": "squared", "epsilon": 1.0, "feature_bound": 1.0, "label_bound": 1.0}
OF_USERS = {"rows_per_user": 2}


class Interrupted(BaseException):
    """Ctrl-C, say."""


def plan_of(seed=None, **changes):
    return Settings(**{**MADE, **changes}, seed=seed).plan(dimension=2, horizon=ROWS)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    return tmp_path / "streams.db" if request.param == "sqlite" else request.getfixturevalue("postgres")()


@pytest.fixture
def store(address):
    return Store(address)


def learnt(stream, start, stop, users=None):
    return stream.prepare(X[start:stop], Y[start:stop], users)


def numbers(stream):
    """The numbers of the releases that are committed, and their models."""
    lines = [json.loads(line) for chunk in stream.read() for line in chunk.content.splitlines()]
    return [line["k"] for line in lines], np.array([line["model"] for line in lines])


def again(stream):
    return StoredStream(stream.store, plan_of(), stream.store.load(stream.saved.name))


@pytest.mark.parametrize("stop", [0, 7, 10])
@pytest.mark.parametrize("changes", [{}, {"forget": 9.0}, OF_USERS])
def test_a_stream_of_version_1_goes_on_and_its_next_state_is_of_today(store, monkeypatch, changes, stop):
    """It releases what it would have released."""

    def plan():
        return plan_of(seed=3, release=5, **changes)

    users = np.arange(ROWS) % 15 if "rows_per_user" in changes else None
    ids = [users] if users is None else [users[:stop], users[stop:], users]
    with monkeypatch.context() as before:
        before.setattr("taciturn.kernel.stream.stream.fingerprint", earlier_fingerprint)
        stream = StoredStream.create(store, "clicks", plan())
        learnt(stream, 0, stop, ids[0])
        stream.commit()
    saved, layers = store.load_with_layers("clicks")
    stream = StoredStream(store, made := plan(), saved)
    assert read_state(saved.state, layers).settings == earlier_fingerprint(made.stream) != made.stream.settings
    learnt(stream, stop, ROWS, ids[len(ids) // 2])
    stream.commit()
    saved, layers = store.load_with_layers("clicks")
    assert read_state(saved.state, layers).settings == made.stream.settings
    whole = StoredStream.create(store, "whole", made)
    learnt(whole, 0, ROWS, users)
    whole.commit()
    for one, other in zip(numbers(stream), numbers(whole), strict=True):
        assert np.array_equal(one, other)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=some.lists(some.tuples(some.integers(0, ROWS), some.booleans()), max_size=6), by_sums=some.booleans())
def test_how_rows_are_prepared_and_committed_changes_nothing_that_is_released(tmp_path_factory, cuts, by_sums):
    """One call of `run`, and any blocks in any commits, by rows or by sums of workers."""
    plan = plan_of(seed=3)
    private = plan.stream
    end, expected = private.run(private.start(), X, Y)
    store = Store(tmp_path_factory.mktemp("cuts") / "streams.db")
    stream = StoredStream.create(store, "s", plan)
    at = 0
    for cut, commits in [*sorted(cuts), (ROWS, True)]:
        if by_sums and cut > at:
            learner, point = stream.next_learner()
            parts = [block_statistics(learner, point, X[i : i + 1], Y[i : i + 1]) for i in range(at, cut)]
            stream.prepare_sums(parts)
        else:
            learnt(stream, at, cut)
        at = cut
        if commits:
            stream.commit(input=b"%d" % cut)
            stream = StoredStream(store, plan, store.load("s"))
            assert (stream.t, stream.saved.input) == (cut, b"%d" % cut)
    made, models = numbers(stream)
    assert made == list(range(1, len(expected) + 1))
    np.testing.assert_array_equal(models[-1], stream.model)
    kept = read_state(stream.saved.state)
    for part in ("exact", "secret", "public"):
        for name, array in arrays_in(end)[part].items():
            np.testing.assert_array_equal(array, arrays_in(kept)[part][name])
    assert stream.saved.spent == end.spent


@pytest.mark.privacy
def test_nothing_is_shown_before_it_is_committed(store):
    stream = StoredStream.create(store, "s", plan_of())
    assert len(learnt(stream, 0, 5)) == 5
    assert stream.waiting > 0
    assert not list(stream.read())
    assert again(stream).k == 0
    stream.commit()
    assert numbers(stream)[0] == [1, 2, 3, 4, 5] == numbers(again(stream))[0]
    assert (stream.waiting, stream.committed) == (0, 5)


@pytest.mark.privacy
@pytest.mark.parametrize("more", [False, True], ids=["at once", "after more rows"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Interrupted, StoreUnavailable])
def test_a_commit_that_was_stopped_is_completed_or_repeated(store, monkeypatch, error, late, more):
    """Whether the transaction took effect is found out: each round is released once, with the noise first drawn."""
    stream = StoredStream.create(store, "s", plan_of())
    learnt(stream, 0, 4)
    real = store.commit

    def stopped(*given, **named):
        monkeypatch.undo()
        if late:
            real(*given, **named)
        raise error("it does not answer")

    monkeypatch.setattr(store, "commit", stopped)
    with pytest.raises(error):
        stream.commit(input=b"4")
    drawn = np.array(stream.model)
    if more:
        learnt(stream, 4, 6)
    stream.commit(input=b"6" if more else b"4")
    made, models = numbers(stream)
    assert made == list(range(1, 7 if more else 5))
    np.testing.assert_array_equal(models[3], drawn)
    assert stream.saved.input == (b"6" if more else b"4")
    learnt(stream, stream.t, ROWS)
    stream.commit()
    assert again(stream).t == ROWS


@pytest.mark.privacy
@pytest.mark.parametrize("stopped", [False, True], ids=["not aware", "interrupted"])
def test_of_two_that_go_on_one_commits(store, monkeypatch, stopped):
    """The other shows nothing, whatever it calls next."""
    first = StoredStream.create(store, "s", plan_of())
    second = again(first)
    learnt(first, 0, 4)
    learnt(second, 0, 4)
    if stopped:
        with monkeypatch.context() as patched:
            patched.setattr(store, "commit", lambda *given, **named: (_ for _ in ()).throw(Interrupted()))
            with pytest.raises(Interrupted):
                second.commit()
    first.commit()
    for call in (second.commit, second.commit):
        with pytest.raises(StateConflict, match="another process went on"):
            call()
    assert not list(second.read())
    assert numbers(first)[0] == [1, 2, 3, 4]


def test_a_position_is_committed_without_a_row(store):
    """A batch of no files, say: it is known afterwards, and the state goes on as before."""
    stream = StoredStream.create(store, "s", plan_of(seed=1), input=b"0")
    learnt(stream, 0, 3)
    stream.commit(input=b"1")
    for number in (b"2", b"3"):
        stream.commit(input=number)
        assert (stream.committed, store.load("s").input) == (3, number)
    stream = StoredStream(store, plan_of(seed=1), store.load("s"))
    learnt(stream, 3, ROWS)
    stream.commit()
    assert stream.saved.input == b"3"
    assert numbers(stream)[0] == list(range(1, stream.k + 1))


def test_a_rejected_row_leaves_everything_as_it_was(store):
    stream = StoredStream.create(store, "s", plan_of())
    learnt(stream, 0, 2)
    with pytest.raises(InvalidInput, match="cannot be used"):
        stream.prepare([[np.nan, 1.0]], [1.0])
    with pytest.raises(BudgetExhausted):
        stream.prepare(np.zeros((ROWS, 2)), np.zeros(ROWS))
    assert (stream.t, stream.k, stream.left) == (2, 2, ROWS - 2)
    stream.commit()
    assert numbers(stream)[0] == [1, 2]


@pytest.mark.privacy
def test_the_cost_is_reserved_before_the_first_row_and_ends_with_the_stream(address, store):
    ledger = Ledger.create(address, Privacy(1.5, 1e-5))
    plan = plan_of()
    first = StoredStream.create(store, "first", plan, ledger=ledger, label="clicks")
    assert ledger.reserved == plan.private.total_cost
    second = StoredStream.create(store, "second", plan, ledger=ledger, closes=first.saved)
    assert [line.closed for _, line in sorted(ledger.lines.items())].count(True) == 1
    with pytest.raises(BudgetExhausted, match="would reserve"):
        StoredStream.create(store, "third", plan, ledger=ledger)
    learnt(first, 0, 1)
    with pytest.raises(StateConflict, match="closed"):
        first.commit()
    learnt(second, 0, ROWS)
    second.commit()
    assert second.spent.epsilon == pytest.approx(second.budget.epsilon)
    with pytest.raises(InvalidInput, match="simulation"):
        StoredStream.create(store, "fourth", plan_of(seed=1), ledger=ledger)


@pytest.mark.privacy
def test_rows_of_users_are_counted_once_over_commits(store):
    """What a discarded block has counted is not counted; what a committed one has, is."""
    plan = plan_of(**OF_USERS)
    assert isinstance(plan.private.unit, User)
    stream = StoredStream.create(store, "s", plan)
    learnt(stream, 0, 2, ["anna", "anna"])
    discarded = StoredStream(store, plan, store.load("s"))
    assert not excluded_in(discarded.admit(["anna", "anna"])).any()
    stream.commit()
    gone_on = StoredStream(store, plan, store.load("s"))
    assert excluded_in(gone_on.admit(["anna", "bert"])).tolist() == [True, False]
    assert gone_on.user_key == stream.user_key


def test_diagnostics_are_committed_with_the_state(store):
    """Every row is evaluated once, by the model before it."""
    stream = StoredStream.create(store, "s", plan_of())
    stream.watch = Diagnostics(stream.problem, False)
    learnt(stream, 0, 5)
    stream.commit()
    resumed = again(stream)
    resumed.watch = Diagnostics(resumed.problem, False, resumed.t, resumed.watched)
    learnt(resumed, 5, 8)
    resumed.commit()
    assert (resumed.watch.as_data()["from_row"], resumed.watch.as_data()["to_row"]) == (0, 8)
    assert resumed.stride(10_000) <= 2**8


def test_requests_and_visibility_are_those_of_the_commit(store):
    stream = StoredStream.create(store, "s", plan_of())
    learnt(stream, 0, 2)
    stream.commit(visible_at=7, requests=[Request(b"key", b"body", 1, 2)])
    current = store.current(stream.saved, [b"key"])
    assert (current.newest, current.visible_at) == (True, 7)
    assert current.requests[b"key"] == Request(b"key", b"body", 1, 2)


@pytest.mark.parametrize("key", [False, True], ids=["plain", "encrypted"])
def test_what_changes_only_at_a_release_is_written_only_then(address, tmp_path, key):
    """Buffers and averages are some seven times the sum; a stream that is loaded, or adopted, has them again."""
    secret = tmp_path / "key"
    new_key(secret)
    store = Store(address, key=secret if key else None)
    wide, labels = np.random.default_rng(2).normal(size=(12, 60)) / 9.0, np.zeros(12)
    plan = Settings(**MADE, release=4, seed=8).plan(dimension=60, horizon=12)
    expected = plan.stream.run(plan.stream.start(), wide, labels)[0]
    stream, layers = StoredStream.create(store, "s", plan), []
    for row in range(12):
        stream.prepare(wide[row : row + 1], labels[row : row + 1])
        stream.commit()
        layers.append(stream.saved.layers)
        if row in (5, 9):
            stream = StoredStream(store, plan, store.load("s"))
    assert all(len(names) == 1 for names in layers)
    assert [layers[i] == layers[i - 1] for i in range(1, 12)].count(False) == 5  # three releases, and two loads
    assert len(stream.saved.state) < sum(map(len, store.layers(stream.saved).values())) / 4
    here = read_state(store.load("s").state, store.layers(stream.saved))
    for part in ("exact", "secret", "public"):
        assert same(arrays_in(here)[part], arrays_in(expected)[part])
    with pytest.raises(StateConflict, match="stored beside it"):
        read_state(stream.saved.state)
    plan = Settings(**MADE, release=4).plan(dimension=60, horizon=12)
    stream = StoredStream.create(store, "adopted", plan)
    stream.prepare(wide, labels)
    stream.commit()
    adopted = StoredStream(store, plan, store.adopt("adopted"))
    np.testing.assert_array_equal(adopted.model, stream.model)


def test_what_needs_all_rows_at_once_is_no_stream(store):
    plan = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, release="last").plan(
        2, horizon=900, batch=True
    )
    with pytest.raises(Unprovable, match="minimises over all rows at once"):
        StoredStream.create(store, "s", plan)
