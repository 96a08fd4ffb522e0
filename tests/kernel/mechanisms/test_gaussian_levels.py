"""Levels a block at a time are those of all releases at once, and a plan for a long stream takes no memory."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from taciturn import IGD, L2Ball, Logistic, Privacy, Problem, at, every, geometric, pigd, pocp
from taciturn.kernel.mechanisms.lattice import calibrate_step, ideal_mu, on_lattice, shifts
from taciturn.kernel.noise.sampling import sampling_cost

PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)
POWERS = {"S": 1.0, "S^(2/3)": 2.0 / 3.0, "S^(1/2)": 0.5}
BUDGET = Privacy(1.0, 1e-6)


def all_at_once(private, power):
    """Standard deviations, steps and costs by one array for all releases."""
    rounds, mu = private.timetable.rounds, private.privacy.mu
    S = private.learner.certificate.at(rounds)

    def spread(moved, mu):
        safe = min(1.0 - 1e-8, 1.0 - len(S) * 2.0**-50)
        return moved**power * math.sqrt(math.fsum(moved ** (2.0 - 2.0 * power))) / (mu * safe)

    farthest = 1.001 * np.max(shifts(S, spread(S, mu)))
    mu = ideal_mu(private.privacy, sampling_cost(len(S) * 3, farthest))
    sd, step = calibrate_step(lambda moved: spread(moved, mu), S, 3, private.learner.certificate.magnitude)
    return sd, step, np.cumsum((on_lattice(S, step, 3) / sd) ** 2)


@pytest.mark.parametrize("schedule", [every(1), every(7), geometric(1.2), at([3, 5000, 9000])], ids=repr)
@pytest.mark.parametrize("shape", POWERS)
def test_blocks_are_all_at_once(schedule, shape):
    """Over several blocks, whichever releases are asked for, in any order."""
    private = pocp(IGD(PROBLEM), BUDGET, 10_000, schedule=schedule, shape=shape)
    sd, step, spent = all_at_once(private, POWERS[shape])
    calibrated, count = private.calibrated, private.timetable.count
    for first, many in ((1, count), (count, 1), (max(1, count // 2), count - max(1, count // 2) + 1), (1, 1)):
        found_sd, found_step = calibrated.levels_of(first, many)
        np.testing.assert_allclose(found_sd, sd[first - 1 : first - 1 + many], rtol=1e-12)
        np.testing.assert_array_equal(found_step, step[first - 1 : first - 1 + many])
    costs = [calibrated.cost(k).mu_squared for k in range(1, count + 1)]
    np.testing.assert_allclose(costs, spent, rtol=1e-11)
    assert (np.diff(costs) >= 0.0).all()
    assert (np.array(costs) >= spent * (1.0 - 1e-15)).all()
    assert private.guarantee.proven


def test_a_million_more_rounds_take_no_memory():
    """Planning and opening a stream of two million releases keeps levels of one million, and no list of rounds."""
    private = pigd(PROBLEM, BUDGET, 2 * 10**6)
    tracemalloc.start()
    private.start()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40e6
