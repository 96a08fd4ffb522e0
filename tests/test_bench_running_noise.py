"""`benchmarks/running_noise.py`: everyone makes the noise that is promised, and is judged by its fastest form."""

import math

import numpy as np
import pytest

from benching import loaded, quick
from taciturn import BLT


@pytest.fixture(scope="module")
def noise():
    yield from loaded("running_noise")


@pytest.fixture
def small(noise):
    return noise.Setting(400, 48, 16, 1.0)


WITHIN = 5.5 / math.sqrt(2.0 * 400)  # a correct sum of 400 entries leaves it once in 10⁷


def test_ratios_are_to_the_fastest_form_at_the_same_size(noise):
    """Values a row that begin alike are not mixed up."""
    seconds = {
        "taciturn, d=54": [1.0],
        "jax-privacy, d=54, scanned": [4.0],
        "jax-privacy, d=54, by steps": [9.0],
        "jax-privacy, d=540, scanned": [2.0],
    }
    setting = noise.Setting(54, 16, 16, 3.0)
    assert setting.ratio.of(seconds) == [4.0]
    assert setting.ratio.wanted == "≥ 3"


def test_runs_fill_the_steps(noise):
    """No step is counted that was not made."""
    assert all(each.steps % each.run == 0 for each in (*noise.FULL, *noise.QUICK))


def test_taciturn_makes_the_noise_that_it_promises(noise, small):
    """All of it, in portions; a sum of deviations twice as large, or of a step too few, would be seen."""
    one = noise.taciturn(small)
    last = one.work()
    assert (one.count, last.shape) == (48, (400,))
    assert abs(one.score(last) - 1.0) < WITHIN
    assert abs(one.score(2.0 * last) - 1.0) > WITHIN


def test_taciturn_is_charged_for_the_strategy_that_is_compared(noise, small):
    """The promise is what `fits` adds up at mu = 1, over the budget's mu, and a little for the lattice."""
    fit = noise.by_taciturn(small.steps, noise.BUFFERS, "max")
    promised = 1.0 / noise.taciturn(small).score(np.ones(400))
    expected = noise.deviation(fit, small.steps, "max") / noise.BUDGET.mu
    assert promised == pytest.approx(expected, rel=1e-4)
    assert promised >= expected * (1.0 - 1e-9)
    assert len(fit.decays) == noise.BUFFERS


def test_a_column_is_the_noise_at_mu_one(noise):
    """`deviation` is the column's length times the last row's, which `errors` knows."""
    fit = noise.by_taciturn(60, 3, "max")
    coder = BLT(3).coder(60)
    assert noise.column(fit, 60) == pytest.approx(coder.column, rel=1e-9)
    assert noise.column(fit, 60) * float(coder.error(60)) == pytest.approx(noise.deviation(fit, 60, "max"), rel=1e-9)


@pytest.mark.slow
def test_jax_privacy_makes_the_noise_that_it_promises(noise, small):
    """In each of its forms, from any strategy."""
    pytest.importorskip("jax_privacy", reason="the extra peers is not installed")
    fit = noise.by_taciturn(small.steps, noise.BUFFERS, "max")
    everyone = small.contenders(fit)
    assert list(everyone)[1:] == [f"jax-privacy, d=400, {form}" for form in ("by steps", "scanned", "drawn at once")]
    for name, one in everyone.items():
        assert one.count == 48
        assert abs(one.score(one.work()) - 1.0) < WITHIN, name


@pytest.mark.slow
def test_running_noise_runs_beside_jax_privacy(tmp_path):
    """Noise within six of its own deviations of the promise, errors within 0.1 %, and not half as fast anywhere."""
    pytest.importorskip("jax_privacy", reason="the extra peers is not installed")
    report = quick("running_noise", tmp_path)
    for name, ratio in report["shown / promised"].items():
        assert abs(ratio - 1.0) < 6.0 / math.sqrt(2.0 * (54 if "d=54" in name else 4185)), name
    for errors in report["deviation of the last sum at mu = 1"].values():
        assert errors["taciturn"] < 1.001 * errors["jax-privacy"]
    assert all(ratio["median"] > 0.5 for ratio in report["ratios"].values())
