"""What follows from convexity alone: bisection, and the widest chord, which is a theorem about two gradients."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.spatial import ConvexHull
from scipy.spatial.distance import pdist
from scipy.special import expit

from instances import LogCosh
from taciturn import IGD, Huber, L2Ball, Logistic, Problem, Squared, Unprovable
from taciturn.kernel.problem.scalar_loss import ROUNDED_UP, bisect, widest_chord

ANGLES = st.floats(0.0, math.pi)
LOG_SCALES = st.floats(-4.0, 4.0)
REACHES = [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0]  # R·B


@settings(max_examples=100)
@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6), st.floats(1e-9, 1e6))
def test_bisection_finds_the_last_bit(root, below, above):
    """The answer is the root or its neighbour."""
    result = bisect(lambda x: x - root, root - below, root + above)
    assert np.nextafter(root, -math.inf) <= result <= np.nextafter(root, math.inf)


def test_bisection_finds_a_jump():
    """A function that jumps over zero passes it there."""
    assert bisect(lambda x: -1.0 if x < 0.75 else 1.0, 0.0, 5.0) == pytest.approx(0.75, rel=1e-15)


# The lemma behind `widest_chord`. Fold the label into the example: a gradient is a(u)·w, a ≥ 0, u = RB·cos(angle) and
# angle that of w to -x (logistic: a = sigmoid) or to x (squared: a ≤ R_y + u). Longer parts across x only help, so
# ‖w‖ = R and the two pull to opposite sides. With m the mean of the two angles, e half their difference, R = 1:
#
#     D² = (a + a')²·sin²m + (a - a')²·cos²m.
#
# Lines, a = r + s·u with r, s ≥ 0, and b = s·RB: D² = 4 sin²m·(r² + 2rb·cos m·cos e + b²·cos²m), which is at most
# (2 sin m·(r + b|cos m|))², the mirrored pair at m or at 180° - m. Shorter gradients, a between 0 and the line: D is
# convex in (a, a'), and at the corner a' = 0 it is a ≤ r + b ≤ √2·r + b, the mirrored pair at 45°.
# Sigmoid, m ≤ 90°: take the line through (u, a) and (u', a'). Its slope is positive, and so is its value at 0. At
# RB·cos m·cos e ≥ 0, midway between u and u', the sigmoid lies above it; at the larger of u and u' they meet; in
# between the sigmoid is concave, and RB·cos m lies there: D ≤ 2 sin m·line(RB·cos m) ≤ 2 sin m·sigmoid(RB·cos m).
# For m > 90° turn both angles round: a - a' keeps its size, and a + a' ≤ 1 becomes 2 - a - a' ≥ 1.


def apart(a, b, angle, other):
    """Distance of two gradients of lengths a and b, pulling to opposite sides, at these angles to the point."""
    middle = (angle + other) / 2.0
    return math.hypot((a + b) * math.sin(middle), (a - b) * math.cos(middle))


@pytest.mark.privacy
@settings(max_examples=500)
@given(ANGLES, ANGLES, LOG_SCALES)
def test_logistic_pairs_are_closer_than_their_mirrored_mean(angle, other, log_reach):
    """No pair is farther apart than the mirrored pair at its mean angle: the lemma behind the diameter."""
    reach, middle = 10.0**log_reach, (angle + other) / 2.0
    mirrored = 2.0 * math.sin(middle) * float(expit(reach * abs(math.cos(middle))))
    pair = apart(float(expit(reach * math.cos(angle))), float(expit(reach * math.cos(other))), angle, other)
    assert pair <= mirrored * (1.0 + 1e-14) + 1e-300


@pytest.mark.privacy
@settings(max_examples=500)
@given(ANGLES, ANGLES, LOG_SCALES, LOG_SCALES)
def test_squared_pairs_are_closer_than_their_mirrored_mean(angle, other, log_reach, log_label):
    """The same for lengths `r + b·cos(angle)`, where the distance has a closed form, which proves it."""
    b, r, middle = 10.0**log_reach, 10.0**log_label, (angle + other) / 2.0
    lengths = r + b * math.cos(angle), r + b * math.cos(other)
    pair = apart(*lengths, angle, other)
    cross = 2.0 * r * b * math.cos(middle) * math.cos((angle - other) / 2.0)
    squared = 4.0 * math.sin(middle) ** 2 * (r * r + cross + (b * math.cos(middle)) ** 2)
    assert pair**2 == pytest.approx(squared, rel=1e-9, abs=1e-12 * (r + b) ** 2)
    assert pair <= 2.0 * math.sin(middle) * (r + b * abs(math.cos(middle))) + 1e-14 * (r + b)
    assert max(lengths) <= widest_chord(lambda p: r + p * b, 1.0)  # the other gradient may be 0


def gradients(loss, feature_bound, radius, labels):
    """All data gradients in a plane through the point (radius, 0): all directions, norms and labels."""
    fine = np.geomspace(1e-6, 0.3, 150)  # where a steep sigmoid bends
    angles = np.concatenate([np.linspace(0.0, 2.0 * np.pi, 721), np.pi / 2.0 + fine, np.pi / 2.0 - fine])
    lengths = feature_bound * np.linspace(0.0, 1.0, 9)
    angle, length, y = (part.ravel() for part in np.meshgrid([*angles, *-angles], lengths, labels))
    slope = loss.slope(length * np.cos(angle) * radius, y)
    return (slope * length)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def plane_diameter(points):
    """Largest distance between two of many points of the plane."""
    return float(np.max(pdist(points[ConvexHull(points).vertices])))


@pytest.mark.privacy
@pytest.mark.parametrize("feature_bound", [0.5, 3.0])
@pytest.mark.parametrize("reach", REACHES)
def test_logistic_diameter_by_brute_force(reach, feature_bound):
    """No two of 26,000 gradients at a point of the ball are farther apart, and two come within a thousandth."""
    radius = reach / feature_bound
    bound = Logistic().gradient_diameter(feature_bound, radius, 1.0)
    result = [
        plane_diameter(gradients(Logistic(), feature_bound, share * radius, [-1.0, 1.0])) for share in (1.0, 0.5, 1e-9)
    ]
    assert max(result) <= bound
    assert result[0] >= bound * (1.0 - 1e-3)


@pytest.mark.privacy
@pytest.mark.parametrize("label_bound", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("reach", REACHES)
def test_squared_diameter_by_brute_force(reach, label_bound):
    """The same for squared loss, over labels up to the bound."""
    labels = label_bound * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    bound = Squared().gradient_diameter(2.0, reach / 2.0, label_bound)
    result = [plane_diameter(gradients(Squared(), 2.0, share * reach / 2.0, labels)) for share in (1.0, 0.5)]
    assert max(result) <= bound
    assert result[0] >= bound * (1.0 - 1e-3)


@pytest.mark.privacy
@pytest.mark.parametrize("width", [0.05, 0.6, 2.0, 20.0])
@pytest.mark.parametrize("reach", [0.1, 1.0, 5.0])
def test_huber_diameter_by_brute_force(reach, width):
    """Clipping a slope can drive two gradients apart; it cannot drive them past the bound."""
    labels = np.linspace(-1.0, 1.0, 9)
    result = plane_diameter(gradients(Huber(width), 1.0, reach, labels))
    assert result <= Huber(width).gradient_diameter(1.0, reach, 1.0)


@pytest.mark.parametrize(("radius", "diameter"), [(1.0, 1.10), (2.0, 1.27), (5.0, 1.62), (10.0, 1.82)])
def test_published_diameters(radius, diameter):
    """Logistic loss, R = 1: well below the 2R of the triangle inequality."""
    assert Logistic().gradient_diameter(1.0, radius, 1.0) == pytest.approx(diameter, abs=5e-3)


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("feature_bound", [1e-3, 1.0, 1e3])
def test_the_chord_is_the_maximum(reach, feature_bound):
    """The bound is at least the maximum that a scalar optimiser finds, and at most 3e-8 above it."""
    for rising in (lambda p: expit(p * reach / feature_bound), lambda p: 0.2 + p * reach / feature_bound):
        best = minimize_scalar(
            lambda p, rising=rising: -2.0 * math.sqrt(feature_bound**2 - p * p) * float(rising(p)),
            bounds=(0.0, feature_bound),
            method="bounded",
            options={"xatol": 1e-12 * feature_bound},
        )
        assert -best.fun <= widest_chord(rising, feature_bound) <= -best.fun * (1.0 + 3e-8)


@pytest.mark.parametrize("jump", [0.0, 0.3, 0.7, 0.999])
def test_the_chord_of_a_jump(jump):
    """A step function is bounded too: the chord just past its jump."""
    bound = widest_chord(lambda p: np.where(p > jump, 1.0, 0.1), 1.0)
    assert max(0.2, 2.0 * math.sqrt(1.0 - jump**2)) <= bound <= 2.0 * math.sqrt(1.0 - jump**2) * (1.0 + 1e-4) + 0.2


@settings(max_examples=50)
@given(LOG_SCALES, LOG_SCALES, LOG_SCALES)
def test_diameters_grow_with_their_bounds(log_feature, log_radius, log_label):
    """A larger set, longer features or larger labels never mean a smaller diameter, and 2R·(steepest) is the most."""
    R, B, Y = 10.0**log_feature, 10.0**log_radius, 10.0**log_label
    for loss in (Logistic(), Squared(), Huber(1.0)):
        diameter = loss.gradient_diameter(R, B, Y)
        assert diameter <= 2.0 * R * loss.slope_bound(R * B, Y) * ROUNDED_UP**2 * (1.0 + 2e-8)
        for more in ((2.0 * R, B, Y), (R, 2.0 * B, Y), (R, B, 2.0 * Y)):
            assert loss.gradient_diameter(*more) >= diameter * (1.0 - 2e-8)


def test_diameters_without_a_set():
    """Over the whole space logistic loss has 2R, and squared loss has none."""
    assert Logistic().gradient_diameter(1.5, math.inf, 1.0) == pytest.approx(3.0)
    assert Logistic().gradient_diameter(1.5, math.inf, 1.0) >= 3.0
    assert Squared().gradient_diameter(1.5, math.inf, 1.0) == math.inf
    assert Huber(0.5).gradient_diameter(1.5, math.inf, 1.0) == pytest.approx(1.5)


class Claims(LogCosh):
    """A user's loss whose statements about itself can be set."""

    def __init__(self, bound=1.0, curvature=1.0, sign=1.0):
        self.bound, self.sign = bound, sign
        self.curvature = curvature

    def slope(self, u, y):
        return self.sign * np.tanh(u - y)

    def slope_bound(self, reach, label_bound):
        return self.bound


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("claims", "words"),
    [({"bound": 0.001}, "slope_bound"), ({"curvature": 1e-6}, "curvature"), ({"sign": -1.0}, "convex")],
)
def test_a_loss_that_belies_its_constants_is_rejected(claims, words):
    """Before any certificate is printed for it; the honest one passes."""
    for loss, rejected in ((Claims(), False), (Claims(**claims), True)):
        problem = Problem(loss, L2Ball(2.0), dimension=2, label_bound=1.0, ridge=0.1)
        with pytest.raises(Unprovable, match=words) if rejected else contextlib.nullcontext():
            IGD(problem)
