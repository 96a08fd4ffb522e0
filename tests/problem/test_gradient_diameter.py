"""A search for two examples whose gradients lie farther apart than the loss says; and a search that finds a lie."""

import numpy as np
import pytest

from tacit import Logistic, ScalarLoss, Squared
from zoo import LOSSES, labels_of

BOUNDS = [  # feature_bound R, radius B, label_bound Y
    (1.0, 1.0, 1.0),
    (1.0, 10.0, 0.1),
    (0.3, 0.2, 5.0),
    (4.0, 2.0, 1.0),
    (2.0, 0.01, 0.5),
]
LOOSE = {"log cosh"}  # a user's bound, which no pair need reach


def in_ball(points, radius):
    length = np.linalg.norm(points, axis=-1, keepdims=True)
    return points * (radius / np.maximum(length, radius))


def distances(loss, R, B, Y, v, y, x):
    """Distance of the two gradients of every candidate, whose parts are first made legal."""
    v, x = in_ball(v, R), in_ball(x, B)
    y = np.where(y < 0.0, -1.0, 1.0) if loss.labels == "sign" else np.clip(y, -Y, Y)
    slopes = loss.slope(np.einsum("cnd,cd->cn", v, x), y)
    return np.linalg.norm(slopes[:, 0, None] * v[:, 0] - slopes[:, 1, None] * v[:, 1], axis=1)


def search(loss, R, B, Y, dimension, rounds=200, candidates=300):
    """The largest distance found by a population that climbs by ever smaller random steps; the best half breeds."""
    rng = np.random.default_rng(dimension)
    v = R * rng.normal(size=(candidates, 2, dimension))
    y = labels_of(loss, Y, rng, 2 * candidates).reshape(candidates, 2)
    x = B * rng.normal(size=(candidates, dimension))
    best = distances(loss, R, B, Y, v, y, x)
    for step in np.geomspace(1.0, 1e-3, rounds):
        trial = [part + step * size * rng.normal(size=part.shape) for part, size in ((v, R), (y, Y), (x, B))]
        found = distances(loss, R, B, Y, *trial)
        better = found > best
        for part, new in zip((v, y, x, best), (*trial, found), strict=True):
            part[better] = new[better]
        ranked = np.argsort(best)
        for part in (v, y, x, best):
            part[ranked[: candidates // 2]] = part[ranked[candidates // 2 :]]
    return float(np.max(best))


@pytest.mark.privacy
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", LOSSES)
def test_no_pair_exceeds_the_diameter(name, bounds):
    """In one, two and five dimensions the search stays below; where the bound is tight, 0.97 of it would be caught."""
    loss = LOSSES[name]()
    diameter = loss.gradient_diameter(*bounds)
    found = {dimension: search(loss, *bounds, dimension) for dimension in (1, 2, 5)}
    assert max(found.values()) <= diameter * (1.0 + 1e-15)
    if name not in LOOSE:
        assert min(found[2], found[5]) > 0.97 * diameter


class ShortHinge(ScalarLoss):
    """A loss that says 3 % less than the truth."""

    labels = "sign"

    def value(self, u, y):
        return np.maximum(0.0, 1.0 - y * u)

    def slope(self, u, y):
        return np.where(y * u < 1.0, -y, 0.0)

    def slope_bound(self, reach, label_bound):
        return 0.97


def test_a_planted_lie_is_found():
    """The search exceeds the diameter of a loss whose slope bound is 3 % too small."""
    assert search(ShortHinge(), 1.0, 1.0, 1.0, dimension=2) > ShortHinge().gradient_diameter(1.0, 1.0, 1.0)


@pytest.mark.privacy
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=["logistic", "squared"])
def test_the_mirrored_pair_reaches_the_diameter(loss, bounds):
    """Two examples that mirror each other in the point come within 1e-6 of the diameter, and not past it."""
    R, B, Y = bounds
    p = R * np.linspace(0.0, 1.0, 200_001)
    q = np.sqrt(R * R - p * p)
    steepest = loss.slope(-p * B, 1.0 if loss.labels == "sign" else Y)  # both examples, at the point (-B, 0)
    reached = np.max(np.linalg.norm(steepest[:, None] * np.column_stack([p - p, q + q]), axis=1))
    diameter = loss.gradient_diameter(R, B, Y)
    assert diameter * (1.0 - 1e-6) <= reached <= diameter
