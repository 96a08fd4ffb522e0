"""Nets of convex sets: inside the set, near to every point of it, and as wide as they are said to be."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from instances import SETS
from taciturn import Box, HalfSpace, InvalidInput, L1Ball, L2Ball, WholeSpace
from taciturn.methods.nets import distance_bound, grid

BOUNDED = sorted(name for name, make in SETS.items() if math.isfinite(make(2).radius_in(2)))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", BOUNDED)
def test_a_grid_is_a_net(name, size):
    """Its points lie in the set, none twice, and every point of the set has one within half the diagonal of a cell."""
    domain, rng, per_axis = SETS[name](size), np.random.default_rng(size), 6
    net = grid(domain, size, per_axis)
    assert all(domain.contains(x) for x in net)
    assert len(np.unique(np.round(net, 8), axis=0)) == len(net) <= per_axis**size
    inside = np.array([domain.project(x) for x in rng.normal(size=(300, size)) * 2.0])
    cell = (np.max(inside, axis=0) - np.min(inside, axis=0)) / (per_axis - 1)
    nearest = [np.min(np.linalg.norm(net - x, axis=1)) for x in inside]
    assert max(nearest) <= np.linalg.norm(cell) / 2.0 * (1.0 + 1e-4)


@pytest.mark.parametrize("domain", [L1Ball(1.0), L2Ball(1.0)])
def test_a_grid_without_its_projection_is_no_net(domain):
    """Planted: from the nodes that lie in the set, its corners are farther than half the diagonal of a cell."""
    nodes = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 6)] * 2), axis=-1).reshape(-1, 2)
    kept = np.array([node for node in nodes if domain.contains(node)])
    nearest, planted = (np.min(cdist(np.eye(2), points), axis=1) for points in (grid(domain, 2, 6), kept))
    assert (nearest <= 0.2 * math.sqrt(2.0)).all()
    assert (planted > 0.3 * math.sqrt(2.0)).all()


def test_a_grid_of_a_box_is_regular():
    """All nodes, in order, ends included."""
    net = grid(Box(-0.5, 2.0), 2, 3)
    assert net.tolist() == [[a, b] for a in (-0.5, 0.75, 2.0) for b in (-0.5, 0.75, 2.0)]


@pytest.mark.parametrize("domain", [WholeSpace(), HalfSpace((1.0, 2.0), 0.5)])
def test_sets_without_end_are_rejected(domain):
    """With what to do instead."""
    with pytest.raises(InvalidInput, match="Bound it"):
        grid(domain, 2, 5)


def test_nets_of_millions_are_rejected():
    """The dimension is what makes them so."""
    with pytest.raises(InvalidInput, match="more than a million points"):
        grid(L2Ball(1.0), 7, 8)


@pytest.mark.parametrize("count", [2, 50, 4096, 5000])
@pytest.mark.parametrize("size", [1, 4])
def test_no_two_points_lie_farther_apart(count, size):
    """Exact up to 4096 points, an upper bound beyond."""
    rng = np.random.default_rng(count)
    points = rng.normal(size=(count, size)) + 7.0
    widest = max(float(np.max(np.linalg.norm(points - x, axis=1))) for x in points)
    bound = distance_bound(points)
    assert widest <= bound
    assert bound <= widest * (1.0 + 1e-11 if count <= 4096 else 2.0)
