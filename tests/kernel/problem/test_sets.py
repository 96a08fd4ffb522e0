"""Every set: its projection is the nearest point, and its diameter and radius are reached and not exceeded."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instances import SETS, Diagonal
from taciturn import Box, ConvexSet, HalfSpace, InvalidInput, L1Ball, L2Ball, Simplex, WholeSpace
from taciturn.checks.sets import CHECKS, Around

EACH = pytest.mark.parametrize("name", SETS)
BOUNDED = pytest.mark.parametrize("name", [name for name in SETS if "space" not in name])
PAIRS = st.integers(1, 6).flatmap(lambda d: arrays(np.float64, (2, d), elements=st.floats(-1e3, 1e3)))


def members(domain, dimension, count=400):
    """Points of the set: projections of points near and far, vertices and faces among them."""
    rng = np.random.default_rng(dimension)
    scales = 10.0 ** rng.uniform(-2.0, 2.0, size=(count, 1))
    corners = 100.0 * np.array(np.meshgrid(*[[-1.0, 1.0]] * min(dimension, 6))).reshape(min(dimension, 6), -1).T
    corners = np.pad(corners, ((0, 0), (0, dimension - corners.shape[1])), constant_values=100.0)
    axes = 100.0 * np.vstack([np.eye(dimension), -np.eye(dimension)])
    return np.array([domain.project(x) for x in [*scales * rng.normal(size=(count, dimension)), *corners, *axes]])


@EACH
@settings(max_examples=60)
@given(points=PAIRS)
def test_projections_keep_the_contract(name, points):
    """They are members, the nearest, stay where they are, and never lie farther apart than what was projected."""
    for check in CHECKS[:-1]:
        check(Around(SETS[name](points.shape[1]), points))


@BOUNDED
@pytest.mark.parametrize("dimension", [1, 2, 5, 30])
def test_diameter_and_radius_are_reached(name, dimension):
    """Among members none is longer than the radius and no two farther apart than the diameter; some are as far."""
    domain = SETS[name](dimension)
    points = members(domain, dimension)
    longest = np.max(np.linalg.norm(points, axis=1))
    assert longest == pytest.approx(domain.radius_in(dimension), rel=1e-12)
    if dimension > 6 and "box" in name:
        points = np.vstack([points, domain.project(np.full(dimension, -9.0)), domain.project(np.full(dimension, 9.0))])
    farthest = max(np.max(np.linalg.norm(points - point, axis=1)) for point in points)
    assert farthest == pytest.approx(domain.diameter(dimension), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in SETS if "space" in name])
def test_unbounded_sets_say_so(name):
    """Half-spaces and the whole space have no radius and no diameter."""
    assert SETS[name](3).diameter(3) == math.inf
    assert SETS[name](3).radius_in(3) == math.inf


@EACH
def test_the_protocol_is_all_it_takes(name):
    """Every set, a user's own too, is a ConvexSet."""
    assert isinstance(SETS[name](3), ConvexSet)


@pytest.mark.parametrize(
    "outside",
    [
        (L2Ball(1.0), [0.8, 0.7]),
        (L1Ball(1.0), [0.6, -0.5]),
        (Box(0.0, 1.0), [0.5, -0.01]),
        (Simplex(), [0.6, 0.5]),
        (Simplex(), [1.2, -0.2]),
        (HalfSpace((1.0, 1.0), 0.0), [0.5, -0.4]),
        (WholeSpace(), [math.nan, 0.0]),
        (WholeSpace(), [math.inf, 0.0]),
    ],
    ids=repr,
)
def test_outsiders_are_not_members(outside):
    """`contains` can say no."""
    domain, point = outside
    assert not domain.contains(np.array(point))


@EACH
@pytest.mark.parametrize("x", [[0.0, 0.0, 0.0], [5e-324, -5e-324, 0.0], [-0.0, 1e-310, 0.0], [1e-160, 1e-170, -1e-165]])
def test_zeros_and_denormals(name, x):
    """The smallest numbers are projected to members."""
    domain = SETS[name](3)
    near = domain.project(np.array(x))
    assert np.all(np.isfinite(near))
    assert domain.contains(near)


@EACH
def test_many_dimensions(name):
    """In 100,000 dimensions projections are still members, and near."""
    if name == "diagonal":
        with pytest.raises(InvalidInput, match="at most 1000"):
            SETS[name](3).check_dimension(100_000)
        return
    domain, x = SETS[name](100_000), np.random.default_rng(3).normal(size=100_000)
    near = domain.project(x)
    assert domain.contains(near)
    assert np.linalg.norm(domain.project(near) - near) <= 1e-9


@pytest.mark.parametrize(
    ("domain", "x", "near"),
    [
        (L1Ball(1.0), [1e17, 0.0], [1.0, 0.0]),
        (L2Ball(1.0), [3e140, -4e140], [0.6, -0.8]),
        (Simplex(), [1e17, 0.0], [1.0, 0.0]),
        (Simplex(), [1e308, 1e308], [0.5, 0.5]),
        (Box(0.0, 1.0), [1e308, -1e308], [1.0, 0.0]),
        pytest.param(L1Ball(1.0), [1e308, -1e308], [0.5, -0.5]),
        pytest.param(L2Ball(1.0), [3e300, -4e300], [0.6, -0.8]),
        pytest.param(Simplex(), [1e308, -1e308], [1.0, 0.0]),
    ],
    ids=repr,
)
def test_huge_points_have_projections(domain, x, near):
    """However far a point lies, its projection is the right one."""
    assert domain.project(np.array(x)) == pytest.approx(np.array(near), abs=1e-9)


def test_a_huge_point_beyond_a_half_space():
    """A point near the largest numbers lands on the boundary, up to the rounding of its own size."""
    near = HalfSpace((1.0, 1.0), 0.0).project(np.array([1e308, 1e308]))
    assert near / 1e308 == pytest.approx(np.zeros(2), abs=1e-15)


@pytest.mark.parametrize("domain", [L1Ball(1.0), Simplex()], ids=repr)
def test_far_points_end_in_the_set(domain):
    """A billion times the set's size away, with entries close to one another, they still add up to its size."""
    near = domain.project(1e9 + np.random.default_rng(4).uniform(size=50))
    assert np.sum(near) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("domain", "x", "near"),
    [
        (L2Ball(1e-200), [3e-180, 4e-180], [6e-201, 8e-201]),
        (HalfSpace((1e-200, 0.0), 1e-200), [2.0, 0.0], [1.0, 0.0]),
    ],
    ids=repr,
)
def test_tiny_sets_have_projections(domain, x, near):
    """A tiny radius or normal is as good as any."""
    assert domain.project(np.array(x)) == pytest.approx(np.array(near), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.inf, math.nan, None, "wide"])
@pytest.mark.parametrize("kind", [L2Ball, L1Ball, Simplex])
def test_sizes_are_positive(kind, radius):
    """Balls and simplices need a positive, finite size."""
    with pytest.raises(InvalidInput, match="must be positive and finite"):
        kind(radius)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (-math.inf, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_boxes_have_an_inside(low, high):
    """A box needs finite low < high."""
    with pytest.raises(InvalidInput, match="finite low < high"):
        Box(low, high)


@pytest.mark.parametrize("normal", [(), (0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_half_spaces_have_a_normal(normal):
    """A normal is a finite vector other than 0."""
    with pytest.raises(InvalidInput, match="normal"):
        HalfSpace(normal, 1.0)


@pytest.mark.parametrize("offset", [math.inf, -math.inf, math.nan])
def test_half_spaces_have_an_offset(offset):
    """An offset is finite."""
    with pytest.raises(InvalidInput, match="offset must be finite"):
        HalfSpace((1.0,), offset)


def test_half_spaces_have_one_dimension():
    """A half-space rejects points of another dimension; the other sets exist in all."""
    with pytest.raises(InvalidInput, match="normal has 2 entries"):
        HalfSpace((1.0, 2.0), 0.0).check_dimension(3)
    for domain in (WholeSpace(), L2Ball(1.0), L1Ball(1.0), Box(0.0, 1.0), Simplex(), Diagonal(1.0)):
        domain.check_dimension(3)
