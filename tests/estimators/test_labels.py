"""Classes are declared; whatever is none of them, or no number, is not a number."""

import math
from decimal import Decimal

import numpy as np
import pytest

from taciturn import InvalidInput
from taciturn.estimators.labels import Classes, Numbers


def test_two_classes_are_signs_and_more_are_counted():
    assert [Classes([False, True])(y) for y in (False, True, 0, 1, np.False_, np.True_)] == [-1, 1, -1, 1, -1, 1]
    assert [Classes(["a", "b", "c"])(y) for y in ("a", "b", np.str_("c"))] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("y", ["yes", 2, -1, 0.5, None, math.nan, [1], {}, np.array([1, 0])])
def test_what_was_not_declared_has_no_number(y):
    assert math.isnan(Classes([False, True])(y))


@pytest.mark.parametrize("classes", [[], ["only"], ["a", "a"], [1, True]])
def test_classes_are_two_or_more_and_differ(classes):
    with pytest.raises(InvalidInput, match="two or more, all different"):
        Classes(classes)


def test_numbers_are_numbers():
    assert [Numbers()(y) for y in (1, True, 0.5, np.float32(0.25), Decimal("2.5"))] == [1.0, 1.0, 0.5, 0.25, 2.5]
    assert all(math.isnan(Numbers()(y)) for y in ("1", b"1", None, math.inf, -math.inf, math.nan, 10**400, [1.0]))
