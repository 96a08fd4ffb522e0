"""Objective perturbation's delta: the integral it claims to be, and never below the truth, computed from densities."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from taciturn.kernel.accounting.gdp import Privacy
from taciturn.methods.objective import delta_perturbed, shift_of

pytestmark = pytest.mark.privacy

LENGTHS = {1: lambda r: 2.0 * np.exp(-r * r / 2.0) / np.sqrt(2.0 * np.pi), 2: lambda r: r * np.exp(-r * r / 2.0)}


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize(
    ("epsilon", "m", "hessian"), [(1.0, 0.2, 0.01), (1.0, 0.5, 0.3), (3.0, 1.0, 0.1), (0.1, 0.02, 0)]
)
def test_it_is_the_integral_of_its_definition(epsilon, m, hessian, dimensions):
    """`E (1 - exp(e - m r))₊`, r the length of a Gaussian."""
    e = epsilon - hessian - m * m / 2.0
    density = LENGTHS[dimensions]
    exact = quad(lambda r: -np.expm1(e - m * r) * density(r), e / m, e / m + 30.0, epsabs=0.0, epsrel=1e-11)[0]
    found = delta_perturbed(epsilon, m, hessian, dimensions)
    assert exact * (1.0 - 1e-9) <= found <= exact * (1.0 + 1e-6)


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_the_shift_is_the_largest_that_keeps_the_budget(epsilon, delta, dimensions):
    """A little more breaks it; it is never above the Gaussian mechanism's own mu."""
    m = shift_of(epsilon, delta, 0.1 * epsilon, dimensions)
    assert delta_perturbed(epsilon, m, 0.1 * epsilon, dimensions) <= delta
    assert delta_perturbed(epsilon, 1.001 * m, 0.1 * epsilon, dimensions) > delta
    assert 0.0 < m < Privacy(epsilon, delta).mu


def test_a_hessian_beyond_the_budget_leaves_nothing():
    """Whatever the noise."""
    assert shift_of(0.1, 1e-6, 0.1, 1) == 0.0
    assert delta_perturbed(0.1, 1e-9, 0.2, 2) == 1.0


def density(x, slope, bend, lam, s):
    """Of the perturbed minimiser on a line, by the change of variables."""
    return np.exp(-((slope + lam * x) ** 2) / (2.0 * s * s)) / np.sqrt(2.0 * np.pi) / s * (bend + lam)


def divergence(p, q, epsilon, cell):
    """The least delta at epsilon, both ways, of two densities on a grid."""
    return max(np.sum(np.maximum(a - np.exp(epsilon) * b, 0.0)) * cell for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("curvature", [0.25, 4.0])
@pytest.mark.parametrize("lam", [0.05, 0.2, 1.0, 20.0])
@pytest.mark.parametrize("s", [0.3, 1.0, 3.0])
def test_one_example_left_out_on_a_line(curvature, lam, s):
    """A softened hinge of slope 1 beside nothing at all: the exact divergence is within the bound."""
    k, x = 4.0 * curvature, np.linspace(-80.0, 80.0, 400_001)
    p = density(x, -expit(-k * x), k * expit(k * x) * expit(-k * x), lam, s)
    q = density(x, 0.0, 0.0, lam, s)
    for epsilon in (0.2, 0.5, 1.0, 2.0, 3.0):
        true = divergence(p, q, epsilon, x[1] - x[0])
        assert true <= delta_perturbed(epsilon, 1.0 / s, np.log1p(curvature / lam), 1) + 1e-9


def test_the_forgotten_hessian_is_caught():
    """A planted fault: without `c` the bound is false, by a factor of a hundred."""
    x = np.linspace(-80.0, 80.0, 400_001)
    p = density(x, -expit(-x), expit(x) * expit(-x), 0.05, 3.0)
    true = divergence(p, density(x, 0.0, 0.0, 0.05, 3.0), 1.0, x[1] - x[0])
    assert true > 100.0 * delta_perturbed(1.0, 1.0 / 3.0, 0.0, 1)
    assert true <= delta_perturbed(1.0, 1.0 / 3.0, np.log1p(0.25 / 0.05), 1)


def plane(v, y, lam, s, grid):
    """Density on a grid in the plane of the minimiser with one logistic example."""
    u = y * (v[0] * grid[0] + v[1] * grid[1])
    slope, bend = -y * expit(-u), expit(u) * expit(-u)
    first, second = slope * v[0] + lam * grid[0], slope * v[1] + lam * grid[1]
    return np.exp(-(first**2 + second**2) / (2 * s * s)) / (2 * np.pi * s * s) * lam * (lam + bend)


@pytest.mark.parametrize("angle", [0.0, 0.4, 0.8, np.pi / 2])
@pytest.mark.parametrize(("lam", "s"), [(0.2, 1.0), (1.0, 1.5), (0.5, 3.0)])
def test_one_example_replaced_in_the_plane(angle, lam, s):
    """Two logistic examples at an angle, of equal and of opposite labels: within the two-dimensional bound."""
    axis = np.linspace(-8.0 * s / lam, 8.0 * s / lam, 1201)
    grid, cell = np.meshgrid(axis, axis), (axis[1] - axis[0]) ** 2
    v, w = (np.cos(angle), np.sin(angle)), (np.cos(angle), -np.sin(angle))
    for labels in ((1.0, 1.0), (1.0, -1.0)):
        p, q = (plane(a, y, lam, s, grid) for a, y in zip((v, w), labels, strict=True))
        for epsilon in (0.5, 1.0, 2.0):
            bound = delta_perturbed(epsilon, 2.0 / s, np.log1p(0.25 / lam), 2)
            assert divergence(p, q, epsilon, cell) <= bound + 1e-6
