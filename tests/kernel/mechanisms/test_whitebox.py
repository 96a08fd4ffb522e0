"""A white-box audit in miniature: two worlds that differ in one example, distinguished exactly as well as is stated.

With `D_k` the neighbour's shift of release k, on its lattice, and `mu_pair² = Σ‖D_k‖²/sigma_k²`, the statistic
`Z = Σ⟨noisy_k - h_k, D_k⟩/sigma_k² / mu_pair` is N(0, 1) in one world and N(mu_pair, 1) in the other. The noise's
sd and the shift are tested apart. Bits come from seeds, so that nothing is left to chance; with fresh ones each
check would raise a false alarm with probability 4e-8 (5.5 sigma).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pytest

from taciturn import IGD, L2Ball, Linear, Logistic, Privacy, Private, Problem, WholeSpace, pgiga, pigd, pocp
from taciturn.kernel.noise import needed
from taciturn.kernel.noise.sampling import seeded_bits

pytestmark = pytest.mark.privacy

T, FAR = 30, 5.5
NOWHERE = np.zeros(0)
Adversary = Callable[[np.ndarray], float]


@pytest.fixture(autouse=True)
def _repeatable(monkeypatch):
    """Secret noise from a seed, a new block of it for every call: the very path that production takes."""
    block = count()
    monkeypatch.setattr(needed, "secret_bits", lambda: seeded_bits(20, next(block)))


def tight(ridge: float = 1.0) -> Problem:
    """Linear losses on a line: every release of a neighbour is moved by all that is certified."""
    return Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=ridge)


def opposing(point: np.ndarray) -> float:
    """The label that goes against the point released last."""
    return float(np.sign(point[0]) or 1.0)


@dataclass(frozen=True)
class Trial:
    """One game: the statistic, and how far apart the two worlds were in it."""

    z: float
    apart: float


def exact_rows(private: Private, first: float, labels: tuple[float, ...]) -> np.ndarray:
    """What the releases would be without noise, in the world where the first label is `first`."""
    V, y = private.learner.problem.clip(np.ones((T, 1)), [first, *labels])
    exact, rows = private.learner.start(), []
    for k in range(T):
        exact = private.learner.absorb(exact, k, V[k : k + 1], y[k : k + 1], NOWHERE)
        _, encoded = private.calibrated.encode({}, private.learner.statistic(exact, k + 1)[1], k + 1)
        rows.append(encoded * private.calibrated.levels(k + 1)[1])
    return np.array(rows)


def games(private: Private, world: int, adversary: Adversary | None, trials: int) -> Iterator[Trial]:
    """Play the stream in one world and recompute both worlds' exact rows along what was released.

    Without an adversary the labels alternate, and the exact rows are the same in every game.
    """
    first = (1.0, -1.0)[world]
    labels = tuple((-1.0) ** k for k in range(1, T))
    rows = [exact_rows(private, y, labels) for y in (1.0, -1.0)]
    for _ in range(trials):
        if adversary is None:
            _, releases = private.run(private.start(), np.ones((T, 1)), [first, *labels])
        else:
            state, releases, y = private.start(), [], first
            labels = ()
            for _ in range(T):
                state, release = private.step(state, [[1.0]], [y])
                releases.append(release)
                y = adversary(release.point)
                labels = (*labels, y)[: T - 1]
            rows = [exact_rows(private, y, labels) for y in (1.0, -1.0)]
        sd = np.array([release.noise_sd for release in releases])[:, None]
        shift = (rows[1] - rows[0]) / sd
        noise = (np.array([release.noisy for release in releases]) - rows[0]) / sd
        apart = math.sqrt(np.sum(shift**2))
        yield Trial(float(np.sum(noise * shift)) / apart, apart)


def apart(private: Private, adversary: Adversary | None = None) -> float:
    """How far apart the two worlds are in one game."""
    return next(games(private, 0, adversary, 1)).apart


def audit(private: Private, adversary: Adversary | None, trials: int) -> list[str]:
    """Violations; empty if the stated mu is right."""
    worlds = [list(games(private, world, adversary, trials)) for world in (0, 1)]
    stated = private.guarantee.delivered.mu
    noise = [np.array([trial.z - world * trial.apart for trial in worlds[world]]) for world in (0, 1)]
    pairs = np.array([trial.apart for world in worlds for trial in world])
    measured = np.mean([trial.z for trial in worlds[1]]) - np.mean([trial.z for trial in worlds[0]])
    wrong = {
        "the pair is farther apart than stated": np.max(pairs) > stated,
        "the shift is not the computed one": abs(measured - np.mean(pairs)) > FAR * math.sqrt(2.0 / trials),
        "the noise is not the stated one": any(abs(np.std(z) - 1.0) > FAR / math.sqrt(2.0 * trials) for z in noise),
        "the noise is not centred": any(abs(np.mean(z)) > FAR / math.sqrt(trials) for z in noise),
    }
    return [violation for violation, seen in wrong.items() if seen]


BUDGET = Privacy(14.0, 1e-6)


@pytest.mark.parametrize(("adversary", "trials"), [(None, 500), (opposing, 120)])
@pytest.mark.parametrize("algorithm", [pigd, pgiga])
def test_the_tight_pair_is_told_apart_exactly_as_stated(algorithm, adversary, trials):
    """On the tight problem the audit measures the mechanism's own mu, adaptive streams included."""
    private = algorithm(tight(), BUDGET, T)
    assert 2.0 < private.guarantee.delivered.mu < 3.0
    assert audit(private, adversary, trials) == []
    assert apart(private, adversary) > 0.99 * private.guarantee.delivered.mu


@pytest.mark.parametrize("shape", ["S", "S^(1/2)"])
def test_other_shapes_cost_the_same(shape):
    """However the budget is spread, the pair is distinguished equally well."""
    private = pigd(tight(0.1), BUDGET, T, shape=shape)
    assert audit(private, None, 200) == []
    assert apart(private) > 0.99 * private.guarantee.delivered.mu


def test_an_adaptive_pair_on_a_ball():
    """Where the certificate is not tight the pair is distinguished less well than stated, and as well as computed."""
    private = pgiga(Problem(Logistic(), L2Ball(1.0), 1, ridge=0.5), BUDGET, T)
    assert audit(private, opposing, 60) == []


@pytest.mark.slow
@pytest.mark.parametrize("adversary", [None, opposing])
@pytest.mark.parametrize("algorithm", [pigd, pgiga])
def test_the_audit_in_full(algorithm, adversary):
    """Four thousand games a world measure mu to about one in a hundred."""
    assert audit(algorithm(tight(), BUDGET, T), adversary, 4_000) == []


# Planted bugs.


def corrupt(private: Private, monkeypatch, change) -> Private:
    """The same, but its noise passes through `change` first."""
    honest = private.calibrated.noise
    monkeypatch.setattr(private.calibrated, "noise", lambda *args: change(np.asarray(honest(*args))))
    return private


def test_halved_noise_is_caught(monkeypatch):
    """Noise of half the stated standard deviation."""
    private = corrupt(pigd(tight(), BUDGET, T), monkeypatch, lambda noise: noise // 2)
    assert "the noise is not the stated one" in audit(private, None, 200)


@pytest.mark.parametrize("lasting", [2, T])
def test_the_same_noise_twice_is_caught(monkeypatch, lasting):
    """Noise drawn once for two releases in a row, or for all releases of a game."""
    again = np.arange(T) // lasting * lasting
    private = corrupt(pigd(tight(), BUDGET, T), monkeypatch, lambda noise: noise[again])
    assert "the noise is not the stated one" in audit(private, None, 200)


def test_no_noise_is_caught(monkeypatch):
    """Zeros in place of noise."""
    private = corrupt(pigd(tight(), BUDGET, T), monkeypatch, np.zeros_like)
    assert "the noise is not the stated one" in audit(private, None, 50)


def test_a_bias_is_caught(monkeypatch):
    """Noise that leans to one side by a quarter of its standard deviation."""
    private = pigd(tight(), BUDGET, T)
    lean = int(0.25 * private.calibrated.levels(1)[0] / private.calibrated.levels(1)[1])
    assert "the noise is not centred" in audit(corrupt(private, monkeypatch, lambda noise: noise + lean), None, 250)


def test_the_lost_ridge_is_caught():
    """The paper's sensitivity without the ridge: a factor of ten that an (epsilon, delta) audit can miss."""
    learner = IGD(tight(0.1))
    slip = replace(learner.certificate, bound=lambda t: learner.problem.gradient_diameter / (t + 1.0))
    learner.__dict__["certificate"] = slip
    private = pocp(learner, Privacy(1.0, 1e-6), T)
    assert "the pair is farther apart than stated" in audit(private, None, 50)
    assert apart(private) > 9.0 * private.guarantee.delivered.mu
