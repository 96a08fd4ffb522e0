"""Simulated environments for bandits, from seeds: contexts, the means of rewards, and rewards.

Round t has the same contexts and the same chance in every run and in batches of any size, so that bandits are compared
on the same visitors. Contexts *explore* if they are drawn anew for every visitor: then any play learns about all
directions. If they are the same in every round, a bandit learns about what it plays alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from taciturn.kernel.arrays import Array

_CHUNK = 1024  # rounds that are drawn from one seed

Generator = np.random.Generator


@dataclass(frozen=True)
class Environment(ABC):
    """Visitors of a bandit: contexts of unit norm or less, and rewards with means that depend on them.

    Parameters
    ----------
    arms, dimension : int
        Number of arms, and entries of a context.
    seed : int
        Everything is drawn from it.
    """

    arms: int = 10
    dimension: int = 10
    seed: int = 0

    low = -1.0
    high = 1.0

    @cached_property
    def theta(self) -> Array:
        """The true model, of unit norm."""
        return np.array(sphere(np.random.default_rng([self.seed, 1]), 1, self.dimension)[0])

    def contexts(self, first: int, count: int) -> Array:
        """Contexts of the rounds from `first` on, of shape (count, arms, dimension); rounds are counted from 1."""
        return _of_chunks(self, first, count)[0]

    def rewards(self, first: int, means: Array) -> Array:
        """Rewards of the rounds from `first` on, `low` or `high`, if the played arms have these means."""
        uniforms = self.uniforms(first, len(means))
        return np.where(uniforms * (self.high - self.low) < means - self.low, self.high, self.low)

    def uniforms(self, first: int, count: int) -> Array:
        """The uniform numbers that decide rewards: a reward is `high` if its share of the range exceeds the number."""
        return _of_chunks(self, first, count)[1]

    def means(self, X: Array) -> Array:
        """Means of the rewards of contexts."""
        return np.asarray(X @ self.theta)

    @abstractmethod
    def draw(self, rng: Generator, count: int) -> Array:
        """Contexts of so many visitors."""


@lru_cache(maxsize=4)
def _chunk(environment: Environment, index: int) -> tuple[Array, Array]:
    """Contexts, and a uniform number for each reward, of some rounds."""
    rng = np.random.default_rng([environment.seed, 2, index])
    return environment.draw(rng, _CHUNK), rng.random(_CHUNK)


def _of_chunks(environment: Environment, first: int, count: int) -> tuple[Array, Array]:
    start, end = first - 1, first - 1 + count
    parts = []
    for index in range(start // _CHUNK, -(-end // _CHUNK)):
        here = slice(max(start - index * _CHUNK, 0), min(end - index * _CHUNK, _CHUNK))
        parts.append([each[here] for each in _chunk(environment, index)])
    if len(parts) == 1:
        return parts[0][0], parts[0][1]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def sphere(rng: Generator, *shape: int) -> Array:
    """Vectors of length 1, in directions drawn uniformly, along the last axis."""
    x = rng.normal(size=shape)
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


@dataclass(frozen=True)
class LinearSphere(Environment):
    """Contexts drawn on the unit sphere for every arm and visitor; rewards ±1 of mean `x·theta`.

    >>> environment = LinearSphere(arms=3, dimension=2)
    >>> X = environment.contexts(first=5, count=2)
    >>> X.shape, environment.means(X).shape
    ((2, 3, 2), (2, 3))
    """

    def draw(self, rng: Generator, count: int) -> Array:
        """Contexts drawn on the unit sphere."""
        return sphere(rng, count, self.arms, self.dimension)


@dataclass(frozen=True)
class BernoulliSphere(Environment):
    """Rewards 0 or 1 of mean `x·theta`; contexts and theta are `(u, 1)/sqrt(2)`, u drawn on the sphere.

    The environment of the experiments on private linear contextual bandits of Chowdhury and Zhou, *Shuffle Private
    Linear Contextual Bandits*, 2022, with contexts that are drawn for every visitor.

    >>> environment = BernoulliSphere(arms=100, dimension=5)
    >>> means = environment.means(environment.contexts(1, 10))
    >>> bool((means >= 0.0).all() and (means <= 1.0).all())
    True
    """

    low = 0.0

    @cached_property
    def theta(self) -> Array:
        """Of unit norm."""
        return np.array(_lifted(sphere(np.random.default_rng([self.seed, 1]), 1, self.dimension - 1))[0])

    def draw(self, rng: Generator, count: int) -> Array:
        """Contexts `(u, 1)/sqrt(2)`, u on the sphere."""
        return _lifted(sphere(rng, count, self.arms, self.dimension - 1))


def _lifted(u: Array) -> Array:
    return np.concatenate([u, np.ones((*u.shape[:-1], 1))], axis=-1) * math.sqrt(0.5)


@dataclass(frozen=True)
class FixedArms(Environment):
    """Arms of fixed contexts on the unit sphere, the same for every visitor; rewards ±1 of mean `x·theta`.

    Contexts do not explore: what is not played is not learnt.

    >>> environment = FixedArms(arms=3, dimension=2)
    >>> bool((environment.contexts(1, 1) == environment.contexts(99, 1)).all())
    True
    """

    @cached_property
    def fixed_contexts(self) -> Array:
        """Of shape (arms, dimension)."""
        return sphere(np.random.default_rng([self.seed, 3]), self.arms, self.dimension)

    def draw(self, rng: Generator, count: int) -> Array:
        """The same for all."""
        return np.broadcast_to(self.fixed_contexts, (count, self.arms, self.dimension))


@dataclass(frozen=True)
class Banners(Environment):
    """Clicks on banners, rewards 0 or 1: each banner has a rate that depends on the visitor, from .02 to .1.

    Visitors are on the unit sphere, the same context for every arm: bandits need `per_arm=True` and an intercept. The
    rate of a banner is `b·(1 + x·s/4)`, its popularity b spread evenly from .02/.75 to .08, s a direction of its own.

    >>> environment = Banners(arms=8, dimension=3)
    >>> rates = environment.means(environment.contexts(1, 1_000))
    >>> bool(rates.min() >= 0.02), bool(rates.max() <= 0.1), float(rates.mean().round(3))
    (True, True, 0.053)
    """

    low = 0.0

    @cached_property
    def rates(self) -> tuple[Array, Array]:
        """Popularity of each banner, and its direction."""
        rng = np.random.default_rng([self.seed, 4])
        return rng.permutation(np.linspace(0.02 / 0.75, 0.08, self.arms)), sphere(rng, self.arms, self.dimension)

    def means(self, X: Array) -> Array:
        """Click rates; contexts are of shape (…, arms, dimension)."""
        popularity, directions = self.rates
        return np.asarray(popularity * (1.0 + 0.25 * np.einsum("...ad,ad->...a", X, directions)))

    def draw(self, rng: Generator, count: int) -> Array:
        """One context of each visitor on the unit sphere, for all arms."""
        return np.broadcast_to(sphere(rng, count, 1, self.dimension), (count, self.arms, self.dimension))


@dataclass(frozen=True)
class LogisticSphere(Environment):
    """Contexts drawn on the unit sphere; rewards 0 or 1, 1 with probability `1/(1 + exp(-scale·x·theta))`.

    >>> environment = LogisticSphere(arms=20, dimension=5, scale=1.0)
    >>> round(float(environment.means(environment.theta)), 3)
    0.731
    """

    scale: float = 1.0
    low = 0.0

    def means(self, X: Array) -> Array:
        """Means of the rewards: the sigmoid of `scale·x·theta`."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.scale * (X @ self.theta))))

    def draw(self, rng: Generator, count: int) -> Array:
        """Contexts drawn on the unit sphere."""
        return sphere(rng, count, self.arms, self.dimension)
