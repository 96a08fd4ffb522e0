"""A call of one row is one compiled call: to the last bit what a block of one, without that call, releases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernel.stream.streams import ALL, INSIDE, ROWS, private, stream
from taciturn import InvalidInput
from taciturn.kernel.replay import arrays_in, exact_of

ITERATES = [
    ("igd, logistic, ball", "gaussian"),
    ("igd, hinge, box", "gaussian"),
    ("igd, huber, space", "gaussian"),
    ("giga, squared, box", "gaussian"),
    ("printed giga, logistic, ball", "gaussian"),
    ("fading, quantile, ball", "gaussian"),
    ("fading, logistic, far box", "gaussian"),
]
SUMS = [
    (f"ftrl, {loss}", "blt")
    for loss in ("logistic, ball", "squared, box", "softmax, ball", "multi hinge, box", "curved, ball")
]
CASES = [(*pair, when) for pair in ITERATES + SUMS for when in ("every", "every 7")]
CASES += [(*pair, "geometric, endless") for pair in (ITERATES[0], SUMS[0])]


def by_blocks(one):
    """The same, without the call for one row."""
    other = replace(one)
    other._loop._one_row = None
    return other


def row_by_row(one, X, y, state=None):
    """The last state, and all releases."""
    state, shown = one.start() if state is None else state, None
    for i in range(len(y)):
        state, released = one.run(state, X[i : i + 1], y[i : i + 1])
        shown = released if shown is None else shown + released
    return state, shown


def assert_same(mine, others):
    (state, releases), (other, expected) = mine, others
    for name in ("rounds", "noisy", "points", "noise_sd"):
        np.testing.assert_array_equal(getattr(releases, name), getattr(expected, name), strict=True)
    assert (state.t, state.k, state.spent, releases.first) == (other.t, other.k, other.spent, expected.first)
    np.testing.assert_array_equal(state.point, other.point, strict=True)
    for part in ("exact", "secret", "public", "numbers"):
        arrays, known = arrays_in(state)[part], arrays_in(other)[part]
        assert list(arrays) == list(known)
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], known[name], strict=True)


@pytest.mark.parametrize(("learner", "mechanism", "schedule"), CASES)
def test_one_row_at_a_time_is_the_block_to_the_last_bit(learner, mechanism, schedule):
    """Rows too long, tiny and zero, and steps that leave the set, are among them."""
    one = private(learner, mechanism, schedule)
    X, y = stream(one.problem)
    assert one._loop._one_row is not None
    assert_same(row_by_row(one, X, y), row_by_row(by_blocks(one), X, y))


@pytest.mark.parametrize("learner", ["igd, logistic, ball", "ftrl, logistic, ball"])
def test_rows_in_any_memory_are_the_same_rows(learner):
    """By columns, read only, strided, of another type; and lists."""
    one = private(learner, "gaussian" if "igd" in learner else "blt", "every")
    X, y = stream(one.problem)
    expected = row_by_row(one, X, y)
    read_only, wide = X.copy(), np.zeros((ROWS, 2 * X.shape[1]))
    read_only.setflags(write=False)
    wide[:, ::2] = X
    for rows in (np.asfortranarray(X), read_only, wide[:, ::2], X.tolist()):
        assert_same(row_by_row(one, rows, y), expected)
    short = X.astype(np.float32)
    assert_same(row_by_row(one, short, y), row_by_row(by_blocks(one), short, y))


@pytest.mark.privacy
@pytest.mark.parametrize("learner", ["igd, logistic, ball", "ftrl, logistic, ball"])
@pytest.mark.parametrize("bad", ["feature", "label"])
def test_a_bad_row_is_rejected_or_has_no_influence(learner, bad):
    """As in a block: nothing changes, or the row takes its round as a row of zeros does."""
    strict = private(learner, "gaussian" if "igd" in learner else "blt", "every")
    X, y = stream(strict.problem)
    X, y = X.copy(), y.copy()
    if bad == "feature":
        X[3, 1] = np.nan
    else:
        y[3] = np.inf
    state, _ = row_by_row(strict, X[:3], y[:3])
    kept = {name: array.copy() for name, array in exact_of(state).items()}
    errors = []
    for one in (strict, by_blocks(strict)):
        with pytest.raises(InvalidInput) as error:
            one.run(state, X[3:4], y[3:4])
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert all((exact_of(state)[name] == kept[name]).all() for name in kept)
    problem = replace(strict.problem, on_bad="zero")
    lenient = replace(strict, learner=replace(strict.learner, problem=problem))
    assert_same(row_by_row(lenient, X, y), row_by_row(by_blocks(lenient), X, y))


def test_other_learners_strategies_and_classes_take_the_block():
    """What has no such call, a subclass included, and the definition."""
    trees = [pair for pair in INSIDE if pair[1] not in ("blt", "blt, one buffer")]
    for learner, mechanism in [*trees[:3], ("qftl, ball", "blt"), ("igd, softmax, ball", "gaussian")]:
        assert private(learner, mechanism, "every")._loop._one_row is None
    assert private("igd, logistic, ball", "gaussian", "every", compiled=False)._loop._one_row is None
    kind = type(ALL["igd, logistic, ball"])
    other = type("Other", (kind,), {"__module__": kind.__module__})(ALL["igd, logistic, ball"].problem)
    assert replace(private("igd, logistic, ball", "gaussian", "every"), learner=other)._loop._one_row is None


@pytest.mark.privacy
def test_secret_noise_is_on_every_release_of_one_row():
    """Of a stream of zeros, releases are noise: all of another size, and of their standard deviation.

    The mean of 40 squares of 4 entries lies within a factor of 2 of 1: a chi-squared of 160 degrees of freedom is
    outside with probability 2e-8.
    """
    for learner, mechanism in (("igd, logistic, ball", "gaussian"), ("ftrl, logistic, ball", "blt")):
        one = replace(private(learner, mechanism, "every"), seed=None)
        X, y = np.zeros((ROWS, one.problem.dimension)), np.ones(ROWS)
        _, releases = row_by_row(one, X, y)
        if mechanism == "gaussian":
            assert len(np.unique(releases.noisy)) == releases.noisy.size
            assert 0.5 < np.mean((releases.noisy / releases.noise_sd[:, None]) ** 2) < 2.0
        else:
            assert len(np.unique(np.diff(releases.noisy, axis=0))) == releases.noisy[1:].size
