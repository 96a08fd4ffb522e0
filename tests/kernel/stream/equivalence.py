"""Assertions that a compiled pass and the definition agree, given the same noise."""

from __future__ import annotations

import numpy as np

from kernel.problem.sparse_inputs import noncanonical_csr, with_zeros
from kernel.stream.streams import ROWS, private, rounding_of, stream
from taciturn import FTL, Exponential
from taciturn.kernel.mechanisms.strategy import matrices
from taciturn.kernel.replay import arrays_in, buffers_of


def assert_agree(learner, mechanism, schedule, form="dense"):
    """Releases and states of the definition and the compiled pass agree on the same noise; rows may be sparse."""
    slow, fast = (private(learner, mechanism, schedule, compiled) for compiled in (False, True))
    X, y = stream(slow.problem)
    if form == "dense":
        assert_passes_agree(slow, fast, X, X, y)
    else:
        assert_passes_agree(slow, fast, with_zeros(X), noncanonical_csr(with_zeros(X)), y)


def assert_passes_agree(slow, fast, X, rows, y):
    """The definition on `X`, and a compiled pass on the same numbers in another form."""
    (ending, defined), (end, releases) = slow.run(slow.start(), X, y), fast.run(fast.start(), rows, y)
    np.testing.assert_array_equal(releases.rounds, defined.rounds)
    assert (end.t, end.k, end.spent, len(releases)) == (ending.t, ending.k, ending.spent, end.k)
    np.testing.assert_allclose(releases.noise_sd, defined.noise_sd, rtol=1e-12)
    rounding, lattice = tolerances(slow, defined)
    apart = np.abs(releases.noisy - defined.noisy)
    assert (apart <= (rounding + lattice)[:, None]).all()
    # An error e flips an integer that lies within e of the middle between two: one in 1e5 or fewer. Two searches for a
    # leader may both be right, and farther apart.
    searched = isinstance(getattr(slow.learner, "learner", slow.learner), FTL)
    assert searched or np.count_nonzero((apart > rounding[:, None]).any(axis=0)) <= 1
    off = np.sqrt(slow.learner.statistic_size) * np.max(lattice, initial=0.0) if searched else 1e-9
    np.testing.assert_allclose(releases.points, defined.points, rtol=0.0, atol=off)
    assert_states_agree(ending, end, rounding_of(slow.learner, [ROWS])[0], np.max(rounding + lattice))


def tolerances(one, defined):
    """How far noisy rows may lie apart, by rounding errors and by one lattice step of every encoded row.

    Independent noise adds no rounding: rows are multiples of a power of two. Else decoding multiplies and adds up some
    sixteen numbers for each encoded row, none larger than the encoded ones, by weights that come to `|B|`.
    """
    count = len(defined)
    if isinstance(one.mechanism, Exponential):
        return np.zeros(count), np.zeros(count)  # a number is the same or another
    if one.calibrated.coder is None:
        return np.zeros(count), one.calibrated.levels_of(1, count)[1]
    coder, calibrated = one.calibrated.coder, one.calibrated
    B = np.abs(matrices(coder, count)[0])
    encoded = np.max(np.abs(defined.noisy)) * coder.row_norm + 12.0 * calibrated.sd
    steps = calibrated.step_of_row(range(1, coder.before(count + 1) + 1))[:, 0]
    return 64.0 * count * 2.0**-53 * encoded * np.sum(B, axis=1), B @ steps


def assert_states_agree(state, other, of_rows, of_sums):
    """The same arrays, of the same shapes and kinds, so that a stream may go on from either; equal up to rounding."""
    largest = (
        max(np.max(np.abs(array), initial=1.0) for array in buffers_of(state).values()) if buffers_of(state) else 1.0
    )
    allowed = {"exact": of_rows, "secret": 64 * ROWS * 2.0**-53 * largest, "public": of_sums}
    for part, off in allowed.items():
        assert_memories_agree(arrays_in(state)[part], arrays_in(other)[part], off)


def assert_memories_agree(mine, others, off):
    assert list(mine) == list(others)
    for name, array in mine.items():
        assert (array.dtype, array.shape) == (others[name].dtype, others[name].shape), name
        assert np.max(np.abs(array - others[name]), initial=0.0) <= off, name
