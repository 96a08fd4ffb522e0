"""A leader's point, compared with the definition's; most streams of other tests do not reach the border of a set."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn.kernel.learners.ftrl_loops
from kernel.python_kernels import python_kernels
from taciturn import Box, L2Ball, WholeSpace
from taciturn.kernel.problem.codes import set_code

SETS = {"ball": L2Ball(0.4), "box": Box(-0.2, 0.3), "space": WholeSpace()}


def assert_decided(domain):
    """Points of rows in the set, beyond it, and so far beyond that squares overflow; the last point is returned."""
    rng, code = np.random.default_rng(4), set_code(domain)
    for d in (1, 3, 8, 13):
        noisy = rng.normal(size=(4, d)) * np.array([[0.01], [1.0], [1e6], [1e200]])
        points, point = np.full((4, d), np.nan), np.full(d, np.nan)
        for k, stride in enumerate((2.0, 0.5, 3.0, 1.0)):
            point[:] = -noisy[k] / stride
            with np.errstate(over="ignore"):
                squared = float(point @ point)
            taciturn.kernel.learners.ftrl_loops.project_point(code, squared, point, k, points)
            np.testing.assert_allclose(points[k], domain.project(-noisy[k] / stride), rtol=1e-13)
            np.testing.assert_array_equal(point, points[k])


@pytest.mark.parametrize("domain", SETS)
def test_points_are_those_of_the_definition(domain):
    """Compiled, and in plain Python."""
    assert_decided(SETS[domain])


FAULTS = {
    "a ball of the wrong size": ("sets", "high / unit / math.sqrt", "1.0 / unit / math.sqrt", "ball"),
    "a ball that is never active": ("sets", "squared > (high / unit) ** 2", "False", "ball"),
    "a row that is too long": ("ftrl", "if not squared < math.inf", "if False", "ball"),
    "a box without a floor": ("sets", "least, most = low, high", "most = high", "box"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_planted_fault_is_found(fault, monkeypatch):
    """Each of them alone; without one, plain Python agrees."""
    *planted, domain = FAULTS[fault]
    python_kernels(monkeypatch)
    assert_decided(SETS[domain])
    python_kernels(monkeypatch, *planted)
    with pytest.raises(AssertionError):
        assert_decided(SETS[domain])
