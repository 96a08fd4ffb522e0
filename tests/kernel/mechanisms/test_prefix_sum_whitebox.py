"""A white-box audit of running sums: two worlds that differ in one example, distinguished exactly as well as is stated.

As in `test_whitebox`, on the encoded rows: with D the neighbour's shift of all of them, on their lattice, and
`mu_pair = ‖D‖/sd`, the statistic `⟨noisy - exact, D⟩/sd²/mu_pair` is N(0, 1) in one world and N(mu_pair, 1) in the
other. Of learners with feedback the exact rows of both worlds are recomputed along what was released. Bits come from
seeds; with fresh ones each check would raise a false alarm with probability 4e-8 (5.5 sigma).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pytest

from instances import believed
from kernel.mechanisms.strategies import STRATEGIES
from taciturn import BLT, FTRL, Hinge, L2Ball, Privacy, Private, Problem, Squared, every, pftrl, private_sum
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.noise import needed
from taciturn.kernel.noise.sampling import seeded_bits

pytestmark = pytest.mark.privacy

T, FAR = 8, 5.5
BUDGET = Privacy(14.0, 1e-6)
Adversary = Callable[[np.ndarray], tuple[float, float]]


@pytest.fixture(autouse=True)
def _repeatable(monkeypatch):
    """Secret noise from a seed, a new block of it for every call: the very path that production takes."""
    block = count()
    monkeypatch.setattr(needed, "secret_bits", lambda: seeded_bits(21, next(block)))


@dataclass(frozen=True)
class Game:
    """A learner, the two examples (feature and label) that may come first, and who, if anyone, chooses the others.

    The definition is audited, whose public side can be listened to; compiled passes release the same
    (`tests/kernel/stream/test_loop.py`).
    """

    private: Private
    pair: tuple[tuple[float, float], tuple[float, float]]
    others: Adversary | None = None

    def __post_init__(self):
        object.__setattr__(self, "private", replace(self.private, compiled=False))


def sums(name: str) -> Game:
    """A sum of numbers, the first of them 1 or -1."""
    return Game(private_sum(1, 1.0, BUDGET, T, strategy=STRATEGIES[name]), ((1.0, 1.0), (-1.0, 1.0)))


def opposing(point: np.ndarray) -> tuple[float, float]:
    """An example that goes against the point released last."""
    return math.cos(float(point[0])), float(-np.sign(point[0]) or 1.0)


def gradients(name: str) -> Game:
    """Losses whose gradients depend on the points released before, and so do their examples."""
    problem = Problem(Hinge(), L2Ball(2.0), 1)
    return Game(pftrl(problem, BUDGET, T, strategy=STRATEGIES[name]), ((1.0, 1.0), (1.0, -1.0)), opposing)


@dataclass(frozen=True)
class Trial:
    """One game: the statistic, and how far apart the two worlds were in it."""

    z: float
    apart: float


def exact_rows(private: Private, examples: list[tuple[float, float]], points: list[np.ndarray]) -> np.ndarray:
    """What would be encoded without noise, given the points that were released before each example."""
    learner, calibrated = private.learner, private.calibrated
    V, y = private.problem.clip([[v] for v, _ in examples], [label for _, label in examples])
    exact, secret, out = learner.start(), calibrated.start()[0], []
    for k in range(T):
        exact = learner.absorb(exact, k, V[k : k + 1], y[k : k + 1], points[k])
        exact, row = learner.statistic(exact, k + 1)
        secret, integers = calibrated.encode(secret, row, k + 1)
        out.append(integers)
    return np.concatenate(out) * calibrated.step(1)


def listened(private: Private) -> list[np.ndarray]:
    """From now on, all the noisy integers that the public side gets to see."""
    calibrated, heard = private.calibrated, []
    honest = type(calibrated).decode

    def decode(public, noisy, k):
        heard.append(noisy)
        return honest(calibrated, public, noisy, k)

    calibrated.decode = decode
    return heard


def play(game: Game, world: int) -> Trial:
    """One stream in one world, both worlds' exact rows along what was released, and the statistic."""
    private, examples = game.private, [game.pair[world], *[(1.0, 1.0)] * (T - 1)]
    heard, state, points = listened(private), private.start(), [private.problem.first_point]
    if game.others is None:
        _, shown = private.run(state, [[v] for v, _ in examples], [label for _, label in examples])
        points += [release.point for release in shown]
    else:
        for k in range(T):
            state, release = private.step(state, [[examples[k][0]]], [examples[k][1]])
            points.append(release.point)
            examples[k + 1 : k + 2] = [game.others(release.point)] if k + 1 < T else []
    rows = [exact_rows(private, [first, *examples[1:]], points) for first in game.pair]
    shift = (rows[1] - rows[0]) / private.calibrated.sd
    noise = (np.concatenate(heard) * private.calibrated.step(1) - rows[0]) / private.calibrated.sd
    apart = math.sqrt(np.sum(shift**2))
    return Trial(float(np.sum(noise * shift)) / apart, apart)


def audit(game: Game, trials: int) -> list[str]:
    """Violations; empty if the stated mu is right."""
    worlds = [[play(game, world) for _ in range(trials)] for world in (0, 1)]
    noise = [np.array([trial.z - world * trial.apart for trial in worlds[world]]) for world in (0, 1)]
    pairs = np.array([trial.apart for world in worlds for trial in world])
    measured = np.mean([trial.z for trial in worlds[1]]) - np.mean([trial.z for trial in worlds[0]])
    wrong = {
        "the pair is farther apart than stated": np.max(pairs) > game.private.guarantee.delivered.mu,
        "the shift is not the computed one": abs(measured - np.mean(pairs)) > FAR * math.sqrt(2.0 / trials),
        "the noise is not the stated one": any(abs(np.std(z) - 1.0) > FAR / math.sqrt(2.0 * trials) for z in noise),
        "the noise is not centred": any(abs(np.mean(z)) > FAR / math.sqrt(trials) for z in noise),
    }
    return [violation for violation, seen in wrong.items() if seen]


@pytest.mark.parametrize(("make", "trials"), [(sums, 150), (gradients, 70)])
@pytest.mark.parametrize("name", ["tree", "blt"])
def test_the_tight_pair_is_told_apart_exactly_as_stated(name, make, trials):
    """Both sums and gradients at released points are as far apart as certified, against an adversary too."""
    game = make(name)
    assert 2.0 < game.private.guarantee.delivered.mu < 3.0
    assert audit(game, trials) == []
    assert play(game, 0).apart > 0.99 * game.private.guarantee.delivered.mu


@pytest.mark.parametrize("make", [sums, gradients])
@pytest.mark.parametrize("name", ["refined tree", "square root"])
def test_no_strategy_tells_more_than_it_states(name, make):
    """A few games suffice for the shift, which hardly varies."""
    game = make(name)
    pairs = [play(game, world).apart for world in (0, 1) for _ in range(3)]
    assert 0.8 * game.private.guarantee.delivered.mu < max(pairs) <= game.private.guarantee.delivered.mu


@pytest.mark.slow
@pytest.mark.parametrize("make", [sums, gradients])
@pytest.mark.parametrize("name", ["tree", "refined tree", "blt"])
def test_the_audit_in_full(name, make):
    """Six hundred games a world measure mu to about one in forty."""
    assert audit(make(name), 600) == []


# Planted faults.


def corrupt(game: Game, change: Callable[[np.ndarray], np.ndarray]) -> Game:
    """The same, but the noise of all its rows passes through `change` first."""
    calibrated = game.private.calibrated
    honest = calibrated.noise_rows
    calibrated.noise_rows = lambda *args: change(honest(*args))
    return game


FAULTS = {
    "half": lambda rows: rows // 2,
    "none": np.zeros_like,
    "one for all rows": lambda rows: np.repeat(rows[:1], len(rows), axis=0),
}


@pytest.mark.parametrize("name", ["tree", "blt"])
@pytest.mark.parametrize("fault", list(FAULTS))
def test_wrong_noise_is_caught(name, fault):
    """Half of it, none, or the same for every row.

    Standard deviations of the statistic: .5, 0, and `Σ D/‖D‖`, which is 2 for the tree and 2.4 for BLT. 150 games
    allow 1 ± .32: .18/(.5/sqrt(300)) = 6 sigma from .5, .68/(2/sqrt(300)) = 5.9 from 2.
    """
    assert "the noise is not the stated one" in audit(corrupt(sums(name), FAULTS[fault]), 150)


def test_a_level_too_few_is_caught(monkeypatch):
    """The paper's count of nodes."""
    monkeypatch.setattr(TreeCoder, "sensitivity", property(lambda self: math.sqrt(self.levels - 1)))
    game = sums("tree")
    assert play(game, 0).apart > 1.1 * game.private.guarantee.delivered.mu


@pytest.mark.parametrize("make", [sums, gradients])
def test_half_the_sensitivity_is_caught(make):
    """A neighbour's contribution forgotten."""
    game = make("blt")
    learner, honest = game.private.learner, game.private.learner.certificate
    learner.__dict__["certificate"] = replace(honest, bound=lambda t: honest.bound(t) / 2.0)
    private = Private(learner, STRATEGIES["blt"], every(1), BUDGET, T)
    assert play(replace(game, private=private), 0).apart > 1.9 * private.guarantee.delivered.mu


class Peeking(FTRL):
    """Linearised follow-the-leader: gradients at its own exact points, which are not released."""

    def start(self):
        return {"sum": np.zeros(1), "all": np.zeros(1)}

    def absorb(self, exact, t, X, y, point):
        own = self.problem.domain.project(-exact["all"] / (self.problem.ridge * max(t, 1)))
        following = super().absorb({"sum": exact["sum"]}, t, X, y, own)
        return following | {"all": exact["all"] + following["sum"]}

    def statistic(self, exact, t):
        return {"sum": np.zeros(1), "all": exact["all"]}, exact["sum"]


def test_gradients_at_exact_points_are_caught():
    """One example then moves every later gradient; at released points it moves its own alone."""
    problem, pair = Problem(Squared(), L2Ball(10.0), 1, label_bound=1.0, ridge=0.05), ((1.0, 1.0), (1.0, -1.0))
    honest, peeking = (Private(believed(made(problem)), BLT(), every(1), BUDGET, T) for made in (FTRL, Peeking))
    assert play(Game(honest, pair), 0).apart < honest.guarantee.delivered.mu
    assert play(Game(peeking, pair), 0).apart > 1.2 * peeking.guarantee.delivered.mu
