"""Mironov's attack: the low bits of a float Gaussian name the input, and those of a lattice do not.

Two neighbouring data sets are known, and so are the exact rows h they lead to. One of them was chosen by a coin, and
its row noised in one release at mu = 0.1: no guess is right more often than `Phi(mu/2) = 52 %` of the time.

The textbook's release is `y = h + sigma·Phi⁻¹(U)`, in doubles, U a multiple of 2⁻⁵³. There are fewer such numbers than
doubles: for each entry of y and each h the attacker tries the few U that come into question, and sees whether one of
them makes this very double. The true h always passes. A false one passes a quarter of the time, an entry, and so hardly
ever in all of them (Mironov, *On Significance of the Least Significant Bits for Differential Privacy*, 2012).

taciturn's release is a lattice point, and every lattice point within reach of one row is within reach of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from taciturn import IGD, Gaussian, Linear, Privacy, Private, Problem, WholeSpace, every
from taciturn.kernel.accounting.gdp import epsilon_of
from taciturn.kernel.noise.sampling import REACH

pytestmark = pytest.mark.privacy

MU, ENTRIES, GAMES = 0.1, 12, 2_000
FALSE_ALARM = 1e-7
TRIED = np.arange(-8.0, 9.0)  # units of 2⁻⁵³ around the U that real numbers would have
FEATURES = np.random.default_rng(0).normal(size=ENTRIES)
FEATURES /= np.linalg.norm(FEATURES)

Reachable = Callable[[np.ndarray, np.ndarray], np.ndarray]


def pigd() -> Private:
    """One example, one release; linear losses, so that the two labels are as far apart as is certified."""
    problem = Problem(Linear(), WholeSpace(), ENTRIES, label_bound=1.0, ridge=1.0)
    return Private(IGD(problem), Gaussian(), every(1), Privacy(epsilon_of(1e-6, MU), 1e-6), horizon=1)


def row(private: Private, label: float) -> np.ndarray:
    """What would be released without noise."""
    learner = private.learner
    V, y = learner.problem.clip(FEATURES[None], [label])
    return learner.statistic(learner.absorb(learner.start(), 0, V, y, np.zeros(0)), 1)[1]


def textbook(h: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """A Gaussian by the inverse of its distribution function, from 53 bits."""
    U = rng.integers(1, 2**53, size=h.shape) * 2.0**-53
    return h + sigma * ndtri(U)


def in_doubles(sigma: float) -> Reachable:
    """Which entries the textbook could have made of h."""

    def reachable(y: np.ndarray, h: np.ndarray) -> np.ndarray:
        units = np.rint(ndtr((y - h) / sigma) * 2.0**53)[:, None] + TRIED
        U = np.clip(units, 1.0, 2.0**53 - 1.0) * 2.0**-53
        return np.any(h[:, None] + sigma * ndtri(U) == y[:, None], axis=1)

    return reachable


def on_lattice(sigma: float, step: float) -> Reachable:
    """Which entries taciturn could have made of h: lattice points, within the sampler's reach of h's own."""

    def reachable(y: np.ndarray, h: np.ndarray) -> np.ndarray:
        noise = y / step - np.floor(h / step + 0.5)
        return (noise == np.rint(noise)) & (np.abs(noise) <= REACH * sigma / step)

    return reachable


def guess(y: np.ndarray, rows: list[np.ndarray], reachable: Reachable) -> int:
    """The row from which more entries can be reached; the likelier one if there is no such row."""
    reached = [int(np.count_nonzero(reachable(y, h))) for h in rows]
    if reached[0] != reached[1]:
        return int(reached[1] > reached[0])
    return int(np.sum((y - (rows[0] + rows[1]) / 2.0) * (rows[1] - rows[0])) > 0.0)


@pytest.fixture(scope="module")
def released() -> tuple[list[np.ndarray], list[tuple[int, np.ndarray]], float, float]:
    """Both rows, and what taciturn releases in games of either world, with noise that no seed repeats; the levels."""
    private = pigd()
    games = []
    for game in range(GAMES):
        world = game % 2
        _, release = private.step(private.start(), FEATURES[None], [(1.0, -1.0)[world]])
        games.append((world, release.noisy))
    return [row(private, 1.0), row(private, -1.0)], games, *private.calibrated.levels(1)


def most_right() -> int:
    """Right guesses that the guarantee allows, in all but 1e-7 of runs: 1,156 of 2,000, or 58 %."""
    return int(binom.isf(FALSE_ALARM, GAMES, ndtr(MU / 2.0)))


def test_the_pair_is_as_far_apart_as_the_guarantee_says(released):
    """So that the limit on guesses is that of this pair."""
    rows, _, sigma, _ = released
    apart = np.linalg.norm(rows[1] - rows[0]) / sigma
    assert 0.999 * MU < apart <= pigd().guarantee.delivered.mu <= MU


def test_the_textbook_is_broken_by_its_low_bits(released):
    """The same rows, the same sd: nine of ten inputs are named, and the true one can always be reached."""
    rows, games, sigma, _ = released
    rng, reachable = np.random.default_rng(1), in_doubles(sigma)
    outputs = [(world, textbook(rows[world], sigma, rng)) for world, _ in games]
    assert all(reachable(y, rows[world]).all() for world, y in outputs)
    right = sum(guess(y, rows, reachable) == world for world, y in outputs)
    assert right >= 0.9 * GAMES > most_right()


@pytest.mark.parametrize("attack", ["in doubles", "on the lattice", "by likelihood"])
def test_a_release_is_not(released, attack):
    """The same attack, one that knows the lattice, and one that looks at no bits: within the guarantee."""
    rows, games, sigma, step = released
    reachable = {
        "in doubles": in_doubles(sigma),
        "on the lattice": on_lattice(sigma, step),
        "by likelihood": lambda y, h: np.ones(ENTRIES, dtype=np.bool_),
    }[attack]
    right = sum(guess(y, rows, reachable) == world for world, y in games)
    assert right <= most_right()


def test_every_release_can_be_reached_from_either_input(released):
    """Entry by entry, as the proof says."""
    rows, games, sigma, step = released
    assert math.log2(step) == round(math.log2(step))
    assert all(on_lattice(sigma, step)(y, h).all() for _, y in games for h in rows)
