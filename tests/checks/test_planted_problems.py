"""Each check of a set, or of a loss, catches the fault that it is there for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from instances import Distance
from taciturn import Box, ConvexSet, Hinge, Huber, L2Ball, Logistic, Softmax, Squared, VectorLoss
from taciturn.checks import ContractBroken, check_loss, check_set, checks_for
from taciturn.checks.suite import run_checks

pytestmark = pytest.mark.privacy


def broken(subject) -> set[str]:
    """The names of the checks that found something."""
    return {outcome.check.partition(",")[0] for outcome in run_checks("it", checks_for(subject)).failed}


# Sets.


class Off(L2Ball):
    """A projection that is off by a millionth, around the ball."""

    def project(self, x):
        near = super().project(x)
        return near if np.array_equal(near, x) or len(x) < 2 else super().project(near + 1e-4 * np.roll(near, 1))


class Outside(L2Ball):
    """A projection that stops short."""

    def project(self, x):
        return super().project(x) * 1.001


class Reflecting(Box):
    """Moves points back into the box by as much as they are out of it."""

    def project(self, x):
        width = self.high - self.low
        folded = np.mod(x - self.low, 2.0 * width)
        return self.low + np.where(folded > width, 2.0 * width - folded, folded)


class Welcoming(L2Ball):
    """Contains everything."""

    def contains(self, x):
        return True


class Clipping(Box):
    """Clips its argument."""

    def project(self, x):
        return np.clip(x, self.low, self.high, out=x)


class Short(L2Ball):
    """A radius that is 1 % too small."""

    def radius_in(self, dimension):
        return 0.99 * self.radius


class Close(L2Ball):
    """A diameter that is 1 % too small."""

    def diameter(self, dimension):
        return 1.98 * self.radius


SETS = {
    "off": ("projections_are_nearest", Off(1.0)),
    "outside": ("projections_are_members", Outside(1.0)),
    "reflecting": ("projection_is_nonexpansive", Reflecting(-1.0, 1.0)),
    "welcoming": ("projection_leaves_members_unchanged", Welcoming(1.0)),
    "clipping": ("projection_does_not_modify_its_argument", Clipping(-1.0, 1.0)),
    "short": ("radius_and_diameter_are_bounds", Short(1.0)),
    "close": ("radius_and_diameter_are_bounds", Close(1.0)),
}


@pytest.mark.parametrize("name", SETS)
def test_a_fault_of_a_set_is_caught(name):
    check, subject = SETS[name]
    assert isinstance(subject, ConvexSet)
    assert check in broken(subject)


def test_a_ring_that_is_not_convex_is_caught():
    """The nearest point of a set with a hole."""

    class Ring(L2Ball):
        def project(self, x):
            length = float(np.linalg.norm(x))
            return super().project(x) if length >= 0.5 else x * (0.5 / length) if length else np.full(len(x), 0.5)

        def contains(self, x):
            return super().contains(x) and np.linalg.norm(x) >= 0.5 * (1.0 - 1e-9)

    assert {"projections_are_nearest", "projection_is_nonexpansive"} <= broken(Ring(1.0))


# Losses of v·x.


class ShortHinge(Hinge):
    """A slope bound that is 3 % too small."""

    def slope_bound(self, reach, label_bound):
        return 0.97


class Straight(Logistic):
    """A curvature that is a tenth too small."""

    curvature = 0.225


class Steep(Squared):
    """The derivative of twice the value."""

    def slope(self, u, y):
        return 2.0 * (u - y)


class Robust(Squared):
    """A loss that flattens, and so is not convex."""

    curvature = 1.0

    def value(self, u, y):
        return np.log1p((u - y) ** 2)

    def slope(self, u, y):
        return 2.0 * (u - y) / (1.0 + (u - y) ** 2)


class Hurried(Huber):
    """A prox that forgets the linear part."""

    def prox(self, z, y, step):
        return (z + step * y) / (1.0 + step)


class Steady(Squared):
    """A variation that is a tenth too small."""

    def variation(self, reach, label_bound):
        return 0.9 * super().variation(reach, label_bound)


class Narrow(Logistic):
    """A gradient diameter that is 3 % too small."""

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return 0.97 * super().gradient_diameter(feature_bound, radius, label_bound)


class Alike(Logistic):
    """A diameter of two labels that is 3 % too small."""

    def label_diameter(self, feature_bound, radius, label_bound):
        return 0.97 * super().label_diameter(feature_bound, radius, label_bound)


class Single(Squared):
    """Right for numbers, and wrong for arrays."""

    def value(self, u, y):
        return 0.5 * float(np.sum((u - y) ** 2))


LOSSES = {
    "slope_bound_is_a_bound": ShortHinge(),
    "curvature_is_a_bound": Straight(),
    "slope_is_a_subgradient": Steep(),
    "slope_is_nondecreasing": Robust(),
    "prox_satisfies_its_condition": Hurried(0.5),
    "variation_is_a_bound": Steady(),
    "gradient_diameter_is_a_bound": Narrow(),
    "label_diameter_is_a_bound": Alike(),
    "value_and_slope_are_elementwise": Single(),
}


@pytest.mark.parametrize("check", LOSSES)
def test_a_fault_of_a_loss_is_caught(check):
    assert check in broken(LOSSES[check])


def test_a_short_slope_bound_shortens_the_diameter_too():
    """The default diameter is a multiple of it, and the search finds a pair beyond."""
    assert "gradient_diameter_is_a_bound" in broken(ShortHinge())


# Losses of points and examples.


@dataclass(frozen=True)
class Scaled(Distance):
    """`Distance`, with one of its members multiplied."""

    member: str
    factor: float

    def __getattribute__(self, name):
        honest = object.__getattribute__(self, name)
        if name != object.__getattribute__(self, "member"):
            return honest
        return lambda *given: object.__getattribute__(self, "factor") * honest(*given)


class Waving(Distance):
    """Not convex."""

    def value(self, x, v, y):
        return math.cos(float(x @ v))

    def gradient(self, x, v, y):
        return -math.sin(float(x @ v)) * v


VECTORS = {
    "gradient_is_the_derivative": Scaled("gradient", 1.01),
    "loss_is_convex": Waving(),
    "lipschitz_is_a_bound": Scaled("lipschitz", 0.8),
    "smoothness_is_a_bound": Scaled("smoothness", 0.95),
    "gradient_diameter_is_a_bound": Scaled("gradient_diameter", 0.95),
}


@pytest.mark.parametrize("check", VECTORS)
def test_a_fault_of_a_vector_loss_is_caught(check):
    assert isinstance(VECTORS[check], VectorLoss)
    assert check in broken(VECTORS[check])


@pytest.mark.parametrize(
    ("subject", "planted"),
    [(L2Ball(1.0), {check for check, _ in SETS.values()}), (Hinge(), set(LOSSES)), (Softmax(3), set(VECTORS))],
    ids=["set", "loss", "vector loss"],
)
def test_every_check_has_a_fault(subject, planted):
    assert {check.function.__name__ for check in checks_for(subject)} == planted


def test_messages_say_what_to_do():
    with pytest.raises(ContractBroken, match=r"slope_bound says 0\.97\. State the steepest, rounded up"):
        check_loss(ShortHinge())
    with pytest.raises(ContractBroken, match=r"a member has norm 1, radius_in says 0\.99"):
        check_set(Short(1.0))
