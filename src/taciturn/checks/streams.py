"""Test data from fixed seeds: examples, points and directions. None of this randomness protects anything."""

from __future__ import annotations

import numpy as np

from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import ConvexSet

Generator = np.random.Generator


def generator(seed: int) -> Generator:
    """The generator of all test data."""
    return np.random.default_rng(seed)


def examples(problem: Problem, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Raw examples: above the norm bound, at it, below it, tiny or zero; some labels exceed their bound.

    >>> from taciturn import Hinge, L2Ball, Problem
    >>> X, y = examples(Problem(Hinge(), L2Ball(1.0), dimension=2), 9)
    >>> X.shape, sorted(set(y.tolist()))
    ((9, 2), [-1.0, 1.0])
    """
    rng = generator(seed)
    X = rng.normal(size=(count, problem.dimension))
    lengths = rng.choice([0.0, 1e-9, 0.3, 0.9, 1.0, 1.0 + 1e-9, 5.0], size=count) * problem.feature_bound
    X *= (lengths / np.linalg.norm(X, axis=1))[:, None]
    return X, labels_from(problem, 3.0 * (problem.label_bound or 1.0) * rng.normal(size=count))


def labels_from(problem: Problem, numbers: Array) -> Array:
    """Numbers as legal labels: themselves, their signs, or the classes that come by turns along the line."""
    if problem.loss.labels == "class":
        return np.asarray(np.floor(numbers) % problem.outputs)
    return np.where(numbers < 0.0, -1.0, 1.0) if problem.loss.labels == "sign" else np.asarray(numbers)


def points_around(dimension: int, count: int, seed: int = 0) -> Array:
    """Points near and far, on axes and in corners."""
    rng = generator(seed)
    near = 10.0 ** rng.uniform(-2.0, 2.0, size=(count, 1)) * rng.normal(size=(count, dimension))
    axes = 100.0 * np.vstack([np.eye(dimension), -np.eye(dimension)])
    corners = 100.0 * rng.choice([-1.0, 1.0], size=(32, dimension))
    flat = 100.0 * np.vstack([np.ones(dimension), -np.ones(dimension)])
    return np.vstack([near, axes, corners, flat, np.zeros((1, dimension))])


def in_ball(points: Array, radius: float) -> Array:
    """Each point, shortened to the radius where it is longer."""
    length = np.linalg.norm(points, axis=-1, keepdims=True)
    return np.asarray(points * (radius / np.maximum(length, radius)))


def members(domain: ConvexSet, dimension: int, count: int = 40, seed: int = 0) -> Array:
    """Points of a set: projections of points around it."""
    return np.array([domain.project(x.copy()) for x in points_around(dimension, count, seed)])


def same(one: Arrays, other: Arrays) -> bool:
    """Whether two states hold the same arrays under the same names, with equal bits and types."""
    if one.keys() != other.keys():
        return False
    pairs = [(np.asarray(one[name]), np.asarray(other[name])) for name in one]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def copied(memory: Arrays) -> Arrays:
    """A deep copy of a state."""
    return {name: np.array(array) for name, array in memory.items()}
