"""A search for two examples whose gradients lie farther apart than the loss says; and a search that finds a lie."""

import numpy as np
import pytest

from instances import LOSSES
from taciturn import Logistic, ScalarLoss, Squared
from taciturn.checks.losses import widest_pair

BOUNDS = [  # feature_bound R, radius B, label_bound Y
    (1.0, 1.0, 1.0),
    (1.0, 10.0, 0.1),
    (0.3, 0.2, 5.0),
    (4.0, 2.0, 1.0),
    (2.0, 0.01, 0.5),
]
LOOSE = {"log cosh"}  # a user's bound, which no pair need reach


@pytest.mark.privacy
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", LOSSES)
def test_no_pair_exceeds_the_diameter(name, bounds):
    """In one, two and five dimensions the search stays below; where the bound is tight, 0.97 of it would be caught."""
    loss = LOSSES[name]()
    diameter = loss.gradient_diameter(*bounds)
    result = {dimension: widest_pair(loss, *bounds, dimension, rounds=200, candidates=300) for dimension in (1, 2, 5)}
    assert max(result.values()) <= diameter * (1.0 + 1e-15)
    if name not in LOOSE:
        assert min(result[2], result[5]) > 0.97 * diameter


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
    assert widest_pair(ShortHinge(), 1.0, 1.0, 1.0) > ShortHinge().gradient_diameter(1.0, 1.0, 1.0)


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
