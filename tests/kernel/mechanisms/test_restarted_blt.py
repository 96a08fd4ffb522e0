"""Prefix sums whose strategy starts again: no end, costs of one block, noise that grows with the number of blocks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.mechanisms.strategies import encoded_by_loops
from kernel.stream.streams import Restarting
from taciturn import (
    BLT,
    BudgetExhausted,
    L2Ball,
    Privacy,
    Private,
    Problem,
    Squared,
    User,
    every,
    geometric,
    pqftl,
    private_sum,
)
from taciturn.calibration.blt_fit import fitted
from taciturn.kernel.accounting.unit import EXAMPLE
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.prefix_sum import LONGEST, Endless, LastingSums
from taciturn.kernel.mechanisms.strategy import matrices
from taciturn.kernel.noise.sampling import sampling_cost
from taciturn.kernel.replay import buffers_of

BUDGET = Privacy(1.0, 1e-6)


def restarted(n: int, buffers: int = 3) -> RestartedCoder:
    return RestartedCoder(BLTCoder(n, *fitted(n, buffers)))


@given(n=st.integers(1, 12), rows=st.integers(1, 40))
@settings(deadline=None, max_examples=20)
def test_its_matrices_factor_the_prefix_sum(n, rows):
    """B·C is the matrix of prefix sums, and the closed forms are the norms of B and bound those of C."""
    coder = restarted(n)
    B, C = matrices(coder, rows)
    np.testing.assert_allclose(B @ C, np.tril(np.ones((rows, rows))), atol=1e-10)
    np.testing.assert_allclose(coder.error(np.arange(1, rows + 1)), np.linalg.norm(B, axis=1), rtol=1e-9)
    assert np.max(np.linalg.norm(C, axis=0)) <= coder.sensitivity


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [False, True])
@given(place=st.integers(0, 40), n=st.integers(1, 16))
@settings(deadline=None, max_examples=20)
def test_a_row_has_no_influence_beyond_its_block(compiled, place, n):
    """Encoded rows of other blocks are the same to the last bit; those of its own move by no more than is claimed."""
    coder = restarted(n)
    rows = np.random.default_rng(place).uniform(-1.0, 1.0, (64, 2))
    other = rows.copy()
    other[place] = -rows[place]
    encoded = []
    for world in (rows, other):
        if compiled:
            encoded.append(encoded_by_loops(coder, world))
            continue
        secret, lines = coder.start(2)[0], []
        for k, row in enumerate(world, start=1):
            secret, more = coder.encode(secret, row, k)
            lines.append(more[0])
        encoded.append(np.array(lines))
    differ = np.flatnonzero((encoded[0] != encoded[1]).any(axis=1))
    assert differ[0] == place
    assert differ[-1] // n == place // n
    assert len(differ) <= coder.life
    moved = np.linalg.norm(encoded[0] - encoded[1]) / np.linalg.norm(2.0 * rows[place])
    assert moved <= coder.sensitivity
    assert place % n or moved > 0.999 * coder.sensitivity


def test_which_streams_never_end():
    """Those with releases at equal distances that protect an example; others end where they say."""
    lasting = private_sum(1, 1.0, BUDGET, schedule=every(100))
    assert isinstance(lasting.calibrated, LastingSums)
    for ends in (
        private_sum(1, 1.0, BUDGET, schedule=geometric(1.1)),
        private_sum(1, 1.0, BUDGET, schedule=every(100), unit=User(3)),
    ):
        assert isinstance(ends.calibrated, Endless)
    certificate = replace(lasting.learner.certificate, steady=False)
    assert isinstance(BLT(8).calibrate(certificate, lasting.timetable, 1, BUDGET, "exact"), Endless)


@pytest.mark.privacy
@pytest.mark.parametrize(("wait", "size"), [(1, 1), (100, 10), (7, 3)])
def test_costs_are_those_of_one_block(wait, size):
    """Rounding errors and the sampler are charged for the rows of a block, and nothing is left unused."""
    private = private_sum(size, 1.0, BUDGET, schedule=every(wait))
    calibrated, coder = private.calibrated, private.calibrated.coder
    assert coder.life == LONGEST // wait
    cost = private.guarantee.delivered
    assert cost.extra_epsilon == sampling_cost(coder.life * size, 1.0).extra_epsilon
    moved = float(private.learner.certificate.at([wait])[0]) * coder.sensitivity
    errors = 2.0 * math.sqrt(coder.life) * coder.rounding_error * private.learner.certificate.norm * wait
    rounding = math.sqrt(coder.life * size) * calibrated.step(1)
    assert (moved + errors + rounding) / calibrated.sd <= cost.mu <= 1.01 * moved / calibrated.sd
    assert private.guarantee.holds
    assert private.guarantee.epsilon > 0.99
    assert calibrated.cost(1) == calibrated.cost(None) == calibrated.cost(10**12)


def test_blocks_are_as_long_as_the_sampler_is_paid_for():
    """At a small epsilon and for large rows: a power of two of releases, no more draws than a thousandth pays for."""
    years = Problem(Squared(), L2Ball(0.5), dimension=90, label_bound=1.0, ridge=1.0)
    private = pqftl(years, Privacy(0.1, 1e-6), schedule=every(1))
    assert private.calibrated.coder.life == 2**19
    assert private.guarantee.delivered.extra_epsilon <= 1e-4
    assert private.guarantee.epsilon <= 0.1


def test_a_stream_goes_on_where_others_end():
    """Beyond 2²³ rounds and beyond 2²⁶ examples, in the same bytes, at the same cost; noise grows with blocks."""
    private = private_sum(1, 1.0, BUDGET, schedule=every(2**18), seed=1)
    n = private.calibrated.coder.life
    assert n == 32
    state, sds = private.start(), []
    first = private.run(state, np.zeros((2**18, 1)))[0]
    for k in (2**5 - 1, 2**5, 2**8, 2**40):
        later, releases = private.run(replace(private.start(), t=k * 2**18, k=k), np.zeros((2**18, 1)))
        sds.append(releases.noise_sd[0])
        assert later.spent == first.spent
        assert len(later.to_bytes()) <= len(first.to_bytes()) + 256
    one = sds[0]
    assert sds[1] == pytest.approx(math.hypot(one, private.calibrated.sd), rel=1e-6)
    assert sds[2] == pytest.approx(math.sqrt(8.0 * one**2 + private.calibrated.sd**2), rel=1e-6)
    assert sds[3] == pytest.approx(math.sqrt(2**35) * one, rel=1e-6)
    users = replace(private, unit=User(2))
    with pytest.raises(BudgetExhausted, match="Start a new stream"):
        users.calibrated.noise(None, 33, 1)


def streamed(private: Private, rows: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    state, points = private.start(), []
    for part in np.split(rows, cuts):
        state, releases = private.run(private.load(state.to_bytes()), part)
        points += list(releases.points)
    return np.array(points), buffers_of(state)["buffers"]


@pytest.mark.privacy
def test_a_stream_resumes_across_a_restart():
    """From bytes, in pieces, and by the definition: the same points, and buffers that hold the last block alone."""
    fast = replace(private_sum(2, 1.0, BUDGET, schedule=every(3), seed=2), mechanism=Restarting(2))  # of four releases
    rows = np.random.default_rng(1).uniform(-0.7, 0.7, (32, 2))
    whole, buffers = streamed(fast, rows, [])
    other = rows.copy()
    other[5] = -rows[5]
    for cuts in ([11, 12, 13], [24, 31], [1, 7, 25]):
        pieces, same = streamed(fast, rows, cuts)
        np.testing.assert_allclose(pieces, whole, atol=1e-6)
        np.testing.assert_array_equal(same, buffers)
        slow, by_definition = streamed(replace(fast, compiled=False), rows, cuts)
        np.testing.assert_allclose(slow, whole, atol=1e-6)
        np.testing.assert_allclose(by_definition, buffers, rtol=1e-12)
        np.testing.assert_array_equal(streamed(fast, other, cuts)[1], buffers)
    first, second = rows[24:27].sum(axis=0), rows[27:30].sum(axis=0)
    th = fast.calibrated.coder.inner.arrays[0]
    np.testing.assert_allclose(buffers, th[:, None] * first + second, atol=1e-6)


def test_a_stream_that_began_without_restarts_ends_where_it_said():
    """Its state has no lattice step: it is restored as it began."""
    private = private_sum(1, 1.0, BUDGET, schedule=every(2**20), seed=1)
    here = private.mechanism
    old = super(BLT, here).calibrate(private.certificate, private.timetable, 1, BUDGET, "exact")
    again = here.restore(private.certificate, private.timetable, 1, BUDGET, "exact", old.numbers)
    assert type(again) is type(old) is Endless
    assert again.sd == old.sd
    new = here.restore(private.certificate, private.timetable, 1, BUDGET, "exact", private.calibrated.numbers)
    assert type(new) is LastingSums
    assert (new.sd, new.step(1)) == (private.calibrated.sd, private.calibrated.step(1))
    assert private.unit == EXAMPLE
