"""Admission by workers is that of one process, for any cut of the rows and any number of partitions."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput, L2Ball, Privacy, Problem, Squared, User, block_statistics, every, pqftl, private_sum
from taciturn.kernel.errors import StateConflict
from taciturn.kernel.replay import records_of
from taciturn.kernel.stream.hashed_rows import HashedAdmission, decide, hash_rows
from taciturn.kernel.stream.participation import admit, new_records, periods_of

pytestmark = pytest.mark.privacy

IDS = st.one_of(st.none(), st.integers(0, 6), st.sampled_from(["7", "7.0", " 7 ", "anna", "Anna", "åsa", ""]))
UNITS = st.builds(
    User,
    rows=st.integers(1, 3),
    per_release=st.just(1),
    apart=st.integers(1, 3),
    period=st.sampled_from([None, 5, 17]),
    without_id=st.sampled_from(["bad", "own"]),
)


def shuffled(function, tasks):
    """The partitions in any order, through pickle."""
    tasks = list(tasks)
    order = random.Random(len(tasks)).sample(range(len(tasks)), len(tasks))
    results = {i: pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(tasks[i]))))) for i in order}
    return [results[i] for i in range(len(tasks))]


def in_parts(ids, key, partitions, cuts):
    """The ids in consecutive parts, each hashed on its own."""
    ends = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    return [hash_rows(np.array(ids[a:b], dtype=object), key, partitions) for a, b in pairwise(ends)]


def same(one, other):
    """The same records, layer by layer, and the same periods."""
    assert one.key_to_bytes() == other.key_to_bytes()
    assert (one.period, one.first) == (other.period, other.first)
    assert len(one.layers) == len(other.layers)
    for layer, twin in zip(one.layers, other.layers, strict=True):
        assert layer.to_bytes() == twin.to_bytes()


@given(
    UNITS,
    st.lists(st.lists(IDS, max_size=25), min_size=1, max_size=3),
    st.integers(1, 9),
    st.lists(st.integers(0, 25), max_size=4),
    st.integers(1, 6),
    st.booleans(),
)
def test_partitions_decide_as_one_process_does(unit, calls, partitions, cuts, release, compiled):
    """Call after call, with the records that earlier calls left: rows that count, records and their layers."""
    expected = found = new_records(seed=1)
    t = 0
    for ids in calls:
        rounds = np.arange(t + 1, t + len(ids) + 1)
        t += len(ids)
        blocks, periods = (rounds - 1) // release + 1, periods_of(unit, rounds, None)
        given_ids = np.array(ids, dtype=object)
        counts, expected = admit(unit, expected, given_ids, blocks, periods, compiled)
        parts = in_parts(ids, found.key_to_bytes(), partitions, cuts)
        by_workers, found = HashedAdmission(unit, found, compiled)(parts, blocks, periods, shuffled)
        assert by_workers.tolist() == counts.tolist()
        same(expected, found)


def test_many_users_are_spread_over_the_partitions_and_decided_alike():
    rng = np.random.default_rng(1)
    unit, ids = User(rows=3, per_release=1), rng.integers(0, 5_000, 40_000)
    blocks, periods = np.arange(40_000) // 1_000 + 1, np.zeros(40_000, dtype=np.int64)
    counts, expected = admit(unit, new_records(1), ids, blocks, periods)
    for partitions in (1, 2, 7, 64):
        parts = in_parts(ids, new_records(1).key_to_bytes(), partitions, [9_999, 10_000, 31_000])
        sizes = [sum(len(part.partitions[p].positions) for part in parts) for p in range(partitions)]
        assert sum(sizes) == 40_000
        assert min(sizes) > 40_000 / partitions / 3
        found, after = HashedAdmission(unit, new_records(1))(parts, blocks, periods, map)
        assert (found == counts).all()
        same(expected, after)


def test_a_user_counted_in_two_partitions_would_have_twice_the_rows():
    """What the claim rests on: partitions that are no function of the user's hash break the bound, and differ."""
    unit, ids = User(rows=1), ["anna"] * 4
    blocks, periods = np.arange(1, 5), np.zeros(4, dtype=np.int64)
    key = new_records(1).key_to_bytes()
    right = [hash_rows(ids[:2], key, 2), hash_rows(ids[2:], key, 2)]
    swapped = right[1]._replace(partitions=right[1].partitions[::-1])
    counts, _ = HashedAdmission(unit, new_records(1))(right, blocks, periods, map)
    assert counts.tolist() == [True, False, False, False]
    wrong, _ = HashedAdmission(unit, new_records(1))([right[0], swapped], blocks, periods, map)
    assert wrong.sum() == 2


def problem():
    return Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0)


def test_a_stream_commits_what_partitions_decided_and_rejects_another_states():
    private = pqftl(problem(), Privacy(1.0, 1e-6), 40, schedule=every(10), unit=User(rows=2), seed=1)
    rng = np.random.default_rng(2)
    X, y, ids = rng.uniform(-0.5, 0.5, (40, 2)), rng.uniform(-1.0, 1.0, 40), rng.integers(0, 9, 40).astype(str)
    expected_state, expected = private.run(private.start(), X, y, users=ids)
    state, points = private.start(), []
    used = None
    for start in (0, 20):
        parts = in_parts(ids[start : start + 20], state.users.key_to_bytes(), 3, [7])
        admission = private.admit_hashed(state, parts, shuffled)
        if used is not None:
            with pytest.raises(StateConflict, match="admitted at another state"):
                private.run_sums(state, [], used)
        sums = [
            block_statistics(
                private.learner,
                None,
                X[start + a : start + a + 10],
                y[start + a : start + a + 10],
                excluded=admission.to_bytes(a, a + 10),
            )
            for a in (0, 10)
        ]
        used = admission
        state, releases = private.run_sums(state, sums, admission)
        points.append(releases.points)
    assert (np.concatenate(points) == expected.points).all()
    assert np.array_equal(records_of(state.users)["records"], records_of(expected_state.users)["records"])


def test_what_workers_cannot_decide_is_rejected():
    with pytest.raises(InvalidInput, match="rows of one owner"):
        hash_rows(np.array([["anna", "bob"]], dtype=object), bytes(32), 2)
    with pytest.raises(InvalidInput, match="partitions"):
        hash_rows(["anna"], bytes(32), 0)
    private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=9, seed=1)
    with pytest.raises(InvalidInput, match="where the unit is a user"):
        private.admit_hashed(private.start(), [hash_rows(["anna"], bytes(32), 1)], map)
    unit, none = User(rows=1), np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidInput, match="row 0 has no id"):
        HashedAdmission(unit, new_records(1), on_bad="raise")([hash_rows([None], bytes(32), 1)], none + 1, none, map)


def test_nothing_secret_is_shown():
    seen = []

    def spying(function, tasks):
        for task in tasks:
            seen.append(task)
            seen.append(function(task))
            yield seen[-1]

    part = hash_rows(["anna", "bob"], bytes(32), 1)
    admission = HashedAdmission(User(rows=1), new_records(1))
    admission([part], np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), spying)
    for each in (part, part.partitions[0], admission, *seen):
        assert "array" not in repr(each)
        assert "key" not in repr(each)
    assert decide(seen[0]).counted[0].tolist() == [True, True]
