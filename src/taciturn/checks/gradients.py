"""The search for two examples whose gradients lie farther apart than a loss of `v·x` says."""

from __future__ import annotations

import numpy as np

from taciturn._util.arrays import Array
from taciturn.checks.streams import generator
from taciturn.problem.scalar_loss import ScalarLoss


def in_ball(points: Array, radius: float) -> Array:
    """Each point, shortened to the radius where it is longer."""
    length = np.linalg.norm(points, axis=-1, keepdims=True)
    return np.asarray(points * (radius / np.maximum(length, radius)))


def _apart(loss: ScalarLoss, R: float, B: float, Y: float, v: Array, y: Array, x: Array) -> Array:
    """Distance of the two gradients of every candidate, whose parts are first made legal."""
    v, x = in_ball(v, R), in_ball(x, B)
    y = np.where(y < 0.0, -1.0, 1.0) if loss.labels == "sign" else np.clip(y, -Y, Y)
    slopes = np.asarray(loss.slope(np.einsum("cnd,cd->cn", v, x), y))
    return np.asarray(np.linalg.norm(slopes[:, 0, None] * v[:, 0] - slopes[:, 1, None] * v[:, 1], axis=1))


def widest_pair(
    loss: ScalarLoss, R: float, B: float, Y: float, dimension: int = 2, rounds: int = 120, candidates: int = 200
) -> float:
    """The largest distance found by a population that climbs by ever smaller random steps; the best half breeds.

    >>> from taciturn import Hinge
    >>> 1.98 < widest_pair(Hinge(), 1.0, 1.0, 1.0) <= 2.0
    True
    """
    rng = generator(dimension)
    v, x = R * rng.normal(size=(candidates, 2, dimension)), B * rng.normal(size=(candidates, dimension))
    y = Y * rng.choice([-1.0, 1.0, 0.3], (candidates, 2))
    best = _apart(loss, R, B, Y, v, y, x)
    for step in np.geomspace(1.0, 1e-3, rounds):
        trial = [part + step * size * rng.normal(size=part.shape) for part, size in ((v, R), (y, Y), (x, B))]
        found = _apart(loss, R, B, Y, *trial)
        better = found > best
        for part, new in zip((v, y, x, best), (*trial, found), strict=True):
            part[better] = new[better]
        ranked = np.argsort(best)
        for part in (v, y, x, best):
            part[ranked[: candidates // 2]] = part[ranked[candidates // 2 :]]
    return float(np.max(best))
