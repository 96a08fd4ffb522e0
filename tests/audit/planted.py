"""Faults to plant, as mechanisms and learners that claim what the honest ones do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from taciturn import IGD, Learner, Mechanism
from taciturn.kernel.stream.batch_pass import BatchPass
from taciturn.kernel.stream.loop import statistics
from taciturn.kernel.stream.release import Collected


def halved(noise: np.ndarray) -> np.ndarray:
    return noise // 2


def twice(noise: np.ndarray) -> np.ndarray:
    """The third encoded row takes the first one's."""
    return noise[[0, 1, 0, *range(3, len(noise))]]


def one_missing(noise: np.ndarray) -> np.ndarray:
    """The third encoded row has none."""
    return np.where(np.arange(len(noise))[:, None] == 2, 0, noise)


def leaning(noise: np.ndarray) -> np.ndarray:
    """To one side, and larger: it tells nothing of anyone, and is not what is stated."""
    return noise + np.abs(noise) // 4


def first_for_all(noise: np.ndarray) -> np.ndarray:
    """Drawn once for all releases."""
    return np.repeat(noise[:1], len(noise), axis=0)


def missing(noise: np.ndarray) -> np.ndarray:
    return np.zeros_like(noise)


def coins(noise: np.ndarray) -> np.ndarray:
    """One of two values, so large that no mean or variance gives them away."""
    return np.sign(noise) * 2**30


FAULTS = {fault.__name__: fault for fault in (halved, twice, one_missing, leaning, first_for_all, missing, coins)}


@dataclass(frozen=True)
class Spoilt(Mechanism):
    """A mechanism whose noise has a fault; the secret noise alone, if `only_secret`."""

    mechanism: Mechanism
    fault: str
    only_secret: bool = False

    @property
    def accepts(self) -> str:
        return self.mechanism.accepts

    def calibrate(self, *settings: Any) -> Any:
        return _SpoiltNoise(self.mechanism.calibrate(*settings), FAULTS[self.fault], self.only_secret)


class _SpoiltNoise:
    """All that the honest one says, and other noise."""

    def __init__(self, honest: Any, fault: Callable[[np.ndarray], np.ndarray], only_secret: bool) -> None:
        self._honest, self._fault, self._only_secret = honest, fault, only_secret

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)

    def noise(self, seed: int | None, k: int, count: int) -> Any:
        drawn = self._honest.noise(seed, k, count)
        if seed is not None and self._only_secret:
            return drawn
        if isinstance(drawn, np.ndarray):
            return self._fault(drawn)
        return np.split(self._fault(np.concatenate(drawn)), np.cumsum([len(rows) for rows in drawn])[:-1])


class ForgottenRidge(IGD):
    """IGD with the paper's sensitivity, `Gd/(t + 1)` without `1/alpha`."""

    @property
    def certificate(self):
        right = IGD.certificate.func(self)
        return replace(right, bound=lambda t: self.problem.gradient_diameter / (t + 1.0))


def half_certified(learner: Learner) -> Learner:
    """The same, which certifies half of what is true."""
    right = learner.certificate
    learner.__dict__["certificate"] = replace(right, bound=lambda t: right.at(t) / 2.0)
    return learner


def exact_points(decided: Callable[[np.ndarray], np.ndarray], kind: Any = BatchPass) -> Any:
    """A pass like `BatchPass` that decides points from exact rows."""
    honest = kind.__call__

    def leaky(way: Any, at: Any, X: Any, y: Any, rounds: Any, seed: Any, shown: Collected) -> Any:
        done = Collected(rounds, at.k + 1)
        found = getattr(way, "statistics", None) or partial(statistics, way.learner)
        _, rows = found(at.exact, at.t, X, y, rounds)
        after = honest(way, at, X, y, rounds, seed, done)
        noisy, _, noise_sd = done.arrays
        shown.add(noisy, decided(rows), noise_sd)
        return after

    return leaky
