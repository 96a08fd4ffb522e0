"""Which rows of a user count, and that no other row has influence."""

import datetime
import io
import math
from decimal import Decimal

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from taciturn import (
    L2Ball,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    StateConflict,
    User,
    every,
    geometric,
    pftrl,
    pigd,
    pqftl,
    private_sum,
)
from taciturn.kernel.errors import InvalidInput
from taciturn.kernel.replay import record_of, records_of
from taciturn.kernel.stream.participation import UserRecords, admit, canonical, new_records, periods_of

PRIVACY = Privacy(1.0, 1e-6)
pytestmark = pytest.mark.privacy


def hashes(records):
    return {bytes(each) for each in records_of(records)["hashes"]}


def allowed(unit, blocks, periods):
    """Whether rows of one user in these blocks and periods, in order, keep every bound: read off the definition."""
    per_block = {block: blocks.count(block) for block in blocks}
    apart = [b - a for a, b in zip(sorted(per_block), sorted(per_block)[1:], strict=False)]
    per_period = [periods.count(period) for period in set(periods)]
    return (
        max(per_period, default=0) <= unit.rows
        and max(per_block.values(), default=0) <= unit.per_release
        and min(apart, default=math.inf) >= unit.apart
    )


units = st.builds(
    lambda rows, each, apart: User(rows, min(each, rows), apart),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 4),
)
streams = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 1)), max_size=40)


def read(stream):
    """Users, blocks and periods of a drawn stream: blocks and periods rise by what was drawn."""
    users = [each[0] for each in stream]
    blocks = 1 + np.cumsum([each[1] for each in stream], dtype=np.int64)
    periods = np.cumsum([each[2] for each in stream], dtype=np.int64)
    return users, blocks, periods


@settings(max_examples=60, deadline=None)
@given(units, streams)
def test_a_row_counts_if_and_only_if_the_bounds_allow_it(unit, stream):
    users, blocks, periods = read(stream)
    counts, _ = admit(unit, new_records(1), users, blocks, periods)
    taken: dict[int, list[int]] = {}
    for row, user in enumerate(users):
        mine = [*taken.get(user, []), row]
        fits = allowed(unit, [int(blocks[i]) for i in mine], [int(periods[i]) for i in mine])
        assert counts[row] == fits
        if fits:
            taken[user] = mine


@settings(max_examples=60, deadline=None)
@given(units, streams, st.lists(st.integers(0, 40), max_size=6))
def test_calls_cut_anywhere_count_the_same_rows(unit, stream, cuts):
    users, blocks, periods = read(stream)
    expected, at_once = admit(unit, new_records(1), users, blocks, periods)
    records, parts, start = new_records(1), [], 0
    for end in [*sorted(min(cut, len(users)) for cut in cuts), len(users)]:
        part = slice(start, end)
        counts, records = admit(unit, records, users[part], blocks[part], periods[part], compiled=end % 2 == 0)
        parts.append(counts)
        start = end
    assert np.concatenate(parts).tolist() == expected.tolist()
    assert [record_of(records, user) for user in range(5)] == [record_of(at_once, user) for user in range(5)]
    reread = UserRecords.of_arrays(records_of(records))
    assert all(record_of(reread, user) == record_of(at_once, user) for user in range(5))


def test_rows_that_do_not_count_use_nothing_up():
    blocks = np.array([1, 1, 1, 2])
    counts, records = admit(User(2, 1), new_records(1), ["a"] * 4, blocks, np.zeros(4, dtype=np.int64))
    assert counts.tolist() == [True, False, False, True]
    assert record_of(records, "a") == {"period": 0, "count": 2, "block": 2, "here": 1}


def test_a_clock_that_is_set_back_renews_nothing():
    one, two = np.array([1]), np.array([2])
    counts, records = admit(User(1), new_records(1), ["a"], one, two)
    assert counts.tolist() == [True]
    for period in (one, two):
        counts, records = admit(User(1), records, ["a"], two, period)
        assert counts.tolist() == [False]
    counts, _ = admit(User(1), records, ["a"], two, np.array([3]))
    assert counts.tolist() == [True]


@pytest.mark.privacy
def test_rows_of_a_time_before_a_clock_was_set_back_count_in_the_newest_period():
    """Also those of a user who had none in it: the bound of that period would be reached twice."""
    one, two = np.array([1]), np.array([2])
    _, records = admit(User(1), new_records(1), ["a"], one, two)
    counts, records = admit(User(1), records, ["b"], two, one)
    assert (counts.tolist(), record_of(records, "b")["period"], records.period) == ([True], 2, 2)
    counts, _ = admit(User(1), records, ["b"], two + 1, two)
    assert counts.tolist() == [False]


class TestIds:
    @pytest.mark.parametrize(
        "same", [(7, 7.0, "7", "7.0", " 7", np.int64(7), np.float32(7)), ("anna", " anna "), (True, 1, "1")]
    )
    def test_one_user_in_several_types_is_one(self, same):
        assert len({canonical(each) for each in same}) == 1
        counts, _ = admit(
            User(1), new_records(1), list(same), np.ones(len(same), np.int64), np.zeros(len(same), np.int64)
        )
        assert counts.sum() == 1

    def test_large_integers_beside_a_missing_one_stay_apart(self):
        users = [2**60, 2**60 + 1, None]
        counts, _ = admit(User(1), new_records(1), users, np.ones(3, np.int64), np.zeros(3, np.int64))
        assert counts.tolist() == [True, True, False]

    @pytest.mark.parametrize("missing", [None, float("nan"), "", "  ", pandas.NA, pandas.NaT])
    def test_rows_without_an_id_are_users_of_their_own_or_bad(self, missing):
        users = np.array([missing, missing, "a"], dtype=object)
        ones, zeros = np.ones(3, np.int64), np.zeros(3, np.int64)
        own = User(1, without_id="own")
        assert admit(own, new_records(1), users, ones, zeros)[0].tolist() == [True, True, True]
        assert admit(User(1), new_records(1), users, ones, zeros)[0].tolist() == [False, False, True]

    def test_text_that_looks_missing_is_an_id(self):
        users = ["None", "None", "nan", "NA"]
        assert admit(User(1), new_records(1), users, np.ones(4, int), np.zeros(4, int))[0].tolist() == [1, 0, 1, 1]

    def test_an_id_is_the_same_whatever_ids_it_comes_with(self):
        """Also those that Python takes for equal: an id in a call of its own, and after an equal one."""
        for pair in ([True, 1], [1.0, 1], [Decimal("7.50"), Decimal("7.5")], ["é", "e\u0301"]):
            _, records = admit(User(9), new_records(1), pair, np.ones(2, int), np.zeros(2, int))
            for user in pair:
                _, alone = admit(User(9), new_records(1), [user], np.ones(1, int), np.zeros(1, int))
                assert hashes(alone) <= hashes(records)

    def test_floats_that_are_no_ids_are_rejected(self):
        for users in (np.array([2.0**53, 1.0]), [1e300], np.array(["2026-11-16"], dtype="datetime64[ns]")):
            with pytest.raises(InvalidInput, match=r"\bids?\b"):
                admit(User(1), new_records(1), users, np.ones(len(users), int), np.zeros(len(users), int))

    def test_other_containers(self):
        ones, zeros = np.ones(3, int), np.zeros(3, int)
        for users in (pandas.Series(["a", "a", "b"]), pyarrow.array(["a", "a", "b"]), iter("aab"), ("a", "a", "b")):
            assert admit(User(1), new_records(1), users, ones, zeros)[0].tolist() == [True, False, True]

    def test_hashes_depend_on_the_key_and_tell_no_id(self):
        one, two = (admit(User(1), new_records(seed), ["a"], np.ones(1, int), np.zeros(1, int))[1] for seed in (1, 2))
        assert hashes(one).isdisjoint(hashes(two))
        assert "secret" in repr(one)

    def test_a_wrong_number_of_ids_is_rejected(self):
        with pytest.raises(InvalidInput, match="2 ids for 3 rows"):
            admit(User(1), new_records(1), ["a", "b"], np.ones(3, np.int64), np.zeros(3, np.int64))


class TestOwners:
    def test_a_row_counts_if_it_does_for_every_owner(self):
        users = np.array([["a", "b"], ["a", "c"], ["c", ""], ["b", "c"]], dtype=object)
        counts, records = admit(User(1), new_records(1), users, np.ones(4, np.int64), np.zeros(4, np.int64))
        assert counts.tolist() == [True, False, False, False]
        assert record_of(records, "c")["count"] == 1  # charged for the row with a, although that had no influence

    def test_an_owner_named_twice_is_one(self):
        users = np.array([["a", "a"], ["a", "a"]])
        counts, _ = admit(User(2), new_records(1), users, np.ones(2, np.int64), np.zeros(2, np.int64))
        assert counts.tolist() == [True, True]

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20), st.integers(0, 3), units)
    def test_the_record_of_an_owner_depends_on_rows_of_their_own_alone(self, pairs, owner, unit):
        blocks = np.arange(1, len(pairs) + 1) // 3 + 1
        zeros = np.zeros(len(pairs), np.int64)
        _, records = admit(unit, new_records(1), np.array(pairs, dtype=np.int64).reshape(-1, 2), blocks, zeros)
        mine = [i for i, pair in enumerate(pairs) if owner in pair]
        alone = np.full(len(mine), owner)
        _, own = admit(unit, new_records(1), alone, blocks[mine], zeros[mine])
        assert record_of(records, owner) == record_of(own, owner)


class TestPeriods:
    @pytest.mark.parametrize(
        ("period", "same", "next"),
        [
            ("day", "2026-11-16T23:59", "2026-11-17T00:00"),
            ("week", "2026-11-22T23:59", "2026-11-23T00:00"),
            ("month", "2026-11-30T23:59", "2026-12-01T00:00"),
            ("quarter", "2026-12-31T23:59", "2027-01-01T00:00"),
            ("year", "2026-12-31T23:59", "2027-01-01T00:00"),
        ],
    )
    def test_periods_of_the_clock(self, period, same, next):
        unit = User(1, period=period)
        moments = ("2026-11-16T00:00", same, next)
        a, b, c = (int(periods_of(unit, np.ones(1, int), datetime.datetime.fromisoformat(t))[0]) for t in moments)
        assert a == b == c - 1

    def test_the_clock_is_utc(self):
        east = datetime.timezone(datetime.timedelta(hours=2))
        here = datetime.datetime(2026, 12, 1, 1, 0, tzinfo=east)  # 30 November, 23:00 UTC
        [number] = periods_of(User(1, period="month"), np.ones(1, int), here)
        assert number == 2026 * 12 + 11


# ---- streams ----------------------------------------------------------------------------------------------------


def problem(loss=None, **settings):
    loss = loss or Logistic()
    label_bound = 1.0 if isinstance(loss, Squared) else None
    return Problem(loss, L2Ball(2.0), dimension=3, intercept=0.5, label_bound=label_bound, **settings)


def examples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 0.4
    return X, np.where(X[:, 0] > 0, 1.0, -1.0), rng.integers(0, n // 3 + 1, n)


def privates(**settings):
    yield pftrl(problem(), PRIVACY, 60, schedule=every(7), seed=3, **settings)
    yield pqftl(problem(Squared()), PRIVACY, 60, schedule=geometric(1.5), seed=3, **settings)
    yield pigd(problem(ridge=0.1), PRIVACY, 60, schedule=every(5), seed=3, **settings)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("which", "sparse"), [(0, False), (0, True), (1, False), (1, True), (2, False)])
def test_rows_that_do_not_count_have_no_influence(which, sparse, compiled):
    """Whatever they contain, the releases are the same, intercept and label included; and rows that count matter."""
    made = list(privates(unit=User(2, 1)))[which]
    private = Private(
        made.learner, made.mechanism, made.schedule, PRIVACY, 60, seed=3, compiled=compiled, unit=made.unit
    )
    X, y, users = examples(60)
    counts, _ = admit(made.unit, new_records(3), users, private.timetable.block_of(np.arange(1, 61)), np.zeros(60, int))
    assert 5 < (~counts).sum() < 55
    form = csr_matrix if sparse else np.asarray
    expected = private.run(private.start(), form(X), y, users)[1].points
    changed = np.where(counts[:, None], X, -5.0 * X + 1.0)
    points = private.run(private.start(), form(changed), np.where(counts, y, -y), users)[1].points
    np.testing.assert_array_equal(points, expected)
    other = private.run(private.start(), form(X), np.where(counts, -y, y), users)[1].points
    assert np.abs(other - expected).max() > 0


@pytest.mark.parametrize("which", [0, 1, 2])
def test_calls_cut_anywhere_release_the_same(which):
    private = list(privates(unit=User(3, 2, apart=1)))[which]
    X, y, users = examples(60)
    expected = private.run(private.start(), X, y, users)[1]
    state, points, start = private.start(), [], 0
    rng = np.random.default_rng(which)
    while start < 60:
        end = min(60, start + int(rng.integers(0, 5)))
        state, releases = private.run(state, X[start:end], y[start:end], users[start:end])
        points.extend(releases.points)
        start = end
    np.testing.assert_array_equal(points, expected.points)


def test_records_are_stored_with_the_state(tmp_path):
    private = private_sum(2, 1.0, PRIVACY, 20, unit=User(2))
    state, _ = private.run(private.start(), np.ones((3, 2)), users=["a", "a", "b"])
    state.dump(tmp_path / "state")
    assert record_of(private.load(tmp_path / "state").users, "a") == record_of(state.users, "a")
    assert record_of(state.users, "a")["count"] == 2
    again, _ = private.run(state, np.ones((2, 2)), users=["a", "b"])
    assert (record_of(again.users, "a")["count"], record_of(again.users, "b")["count"]) == (2, 2)


def test_a_state_without_records_is_not_one_of_a_user_level_stream(tmp_path):
    private = private_sum(2, 1.0, PRIVACY, 20, unit=User(2))
    state, _ = private.run(private.start(), np.ones((3, 2)), users=["a", "a", "b"])
    state.dump(tmp_path / "state")
    with np.load(tmp_path / "state") as content:
        kept = {name: content[name] for name in content.files if not name.startswith("users/")}
    with open(tmp_path / "cut", "wb") as file:
        np.savez(file, **kept)
    with pytest.raises(StateConflict, match="records of users"):
        private.load(tmp_path / "cut")


@pytest.mark.parametrize("name", ["period", "first"])
@pytest.mark.parametrize("value", ["nan", "text", math.nan, math.inf, 1e300, -1, 1.0, True, [1], [], None])
def test_damaged_periods_are_refused(name, value):
    private = private_sum(2, 1.0, PRIVACY, 20, unit=User(2, period="month"))
    state, _ = private.run(private.start(), np.ones((3, 2)), users=["a", "a", "b"])
    with np.load(io.BytesIO(state.to_bytes())) as content:
        arrays = {each: content[each] for each in content.files}
    if value is None and name == "first":
        return  # an older file has none
    damaged = {**arrays, f"users/{name}": np.array(value)}
    if value is None:
        del damaged[f"users/{name}"]
    file = io.BytesIO()
    np.savez(file, **damaged)
    with pytest.raises(StateConflict):
        private.read(file.getvalue())


def test_an_interrupted_call_leaves_the_records(tmp_path):
    private = private_sum(2, 1.0, PRIVACY, 20, unit=User(2))
    state = private.start()
    with pytest.raises(InvalidInput):
        private.run(state, [[1.0, math.nan]], users=["a"])
    assert record_of(state.users, "a") is None
    state, _ = private.run(state, [[1.0, 0.0]], users=["a"])
    assert record_of(state.users, "a")["count"] == 1


class TestErrors:
    def test_a_user_level_stream_needs_ids(self):
        private = private_sum(2, 1.0, PRIVACY, 20, unit=User(2))
        with pytest.raises(InvalidInput, match="give users="):
            private.run(private.start(), np.ones((3, 2)))

    def test_ids_without_a_unit_are_rejected(self):
        private = private_sum(2, 1.0, PRIVACY, 20)
        with pytest.raises(InvalidInput, match=r"unit=User\(rows=4\)"):
            private.run(private.start(), np.ones((3, 2)), users=["a", "a", "b"])

    def test_a_missing_id_is_a_bad_row_by_setting(self):
        private = private_sum(2, 1.0, PRIVACY, 20, unit=User(2))
        with pytest.raises(InvalidInput, match="row 1 has no id"):
            private.run(private.start(), np.ones((2, 2)), users=["a", None])
        with pytest.raises(InvalidInput, match="row 1 has no id"):
            private.run(private.start(), np.ones((2, 2)), users=iter(["a", None]))
        quiet = private_sum(2, 1.0, PRIVACY, 20, unit=User(2), on_bad="zero", seed=1)
        _, with_it = quiet.run(quiet.start(), np.ones((2, 2)), users=["a", None])
        _, without = quiet.run(quiet.start(), [[1.0, 1.0], [0.0, 0.0]], users=["a", "b"])
        np.testing.assert_array_equal(with_it.points, without.points)

    @pytest.mark.parametrize("wrong", [{"rows": 0}, {"rows": 2, "per_release": 3}, {"rows": 2, "period": "moon"}])
    def test_units_that_say_nothing(self, wrong):
        with pytest.raises(InvalidInput):
            User(**wrong)

    def test_the_papers_noise_protects_an_example(self):
        with pytest.raises(InvalidInput, match="protects one example"):
            pigd(problem(ridge=0.1), PRIVACY, 10, calibration="paper-proven", allow_broken=True, unit=User(2))


class TestLayersApart:
    """A store writes the layers that are new, beside a state that names them."""

    def stream(self):
        private = private_sum(2, 1.0, PRIVACY, 90, unit=User(3))
        state = private.start()
        for users in (["a", "b", "c", "d", "e", "f"], ["a", "b"], ["a"]):
            state, _ = private.run(state, np.ones((len(users), 2)), users=users)
        return private, state

    def test_a_state_is_read_with_its_layers(self):
        private, state = self.stream()
        layers = {layer.name: layer.to_bytes() for layer in state.users.layers}
        assert len(layers) > 1
        loaded = private.load(state.to_bytes(layers_apart=True), layers=layers)
        assert [record_of(loaded.users, user) for user in "abcdefg"] == [
            record_of(state.users, user) for user in "abcdefg"
        ]

    def test_a_missing_or_damaged_layer_is_rejected(self):
        private, state = self.stream()
        layers = {layer.name: layer.to_bytes() for layer in state.users.layers}
        content = state.to_bytes(layers_apart=True)
        with pytest.raises(StateConflict, match="stored beside it"):
            private.load(content)
        first = state.users.layers[0].name
        for damaged in (layers[first][:-8], layers[first][48:] + layers[first][:48], b"\xff" * len(layers[first])):
            with pytest.raises(StateConflict, match="damaged"):
                private.load(content, layers={**layers, first: damaged})
