"""The sentence about privacy says what the numbers say."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import Cost, Guarantee, Privacy
from taciturn.kernel.accounting import guarantee as module
from taciturn.kernel.accounting.cost import gaussian, total
from taciturn.kernel.accounting.gdp import epsilon_of, mu_of
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.noise.sampling import REACH, sampling_cost

BUDGET = Privacy(1.0, 1e-6)
KEPT = gaussian(0.05)
BROKEN = gaussian(100.0)


def test_a_kept_promise():
    """The claim is stated for the whole sequence, with the exact epsilon beside it."""
    sentence = str(Guarantee(BUDGET, KEPT, "replace"))
    assert sentence.startswith("The whole published sequence is (1, 1e-06)-differentially private")
    assert f"epsilon = {KEPT.epsilon(1e-6):.3g}"[:13] in sentence
    assert "number and order of examples are public" in sentence


def test_a_broken_promise():
    """Noise that delivers less than it claims is called broken, by the name of its calibration."""
    guarantee = Guarantee(BUDGET, BROKEN, "replace", calibration="paper-printed")
    assert not guarantee.holds
    assert str(guarantee).startswith(
        "BROKEN: the paper-printed noise claims (1, 1e-06)-differential privacy, and what it provably delivers is"
    )


@pytest.mark.privacy
@pytest.mark.parametrize("claimed", [1.0, 0.3, 1.0000001, 1.0000000000000009, 3.0])
@pytest.mark.parametrize("kind", ["plain", "Gaussian", "both"])
@pytest.mark.parametrize("off", [-1e-3, -1e-8, -(2.0**-50), 0.0, 2.0**-50, 1e-10, 1e-8, 1e-3])
def test_what_is_compared_is_what_is_printed(claimed, kind, off):
    """No sentence claims less than it says is delivered, or is broken by what it says is delivered."""
    epsilon = claimed * (1.0 + off)
    cost = {
        "plain": Cost(plain_epsilon=epsilon),
        "Gaussian": gaussian(mu_of(epsilon, 1e-6) ** 2),
        "both": total([Cost(plain_epsilon=epsilon / 2.0), gaussian(mu_of(epsilon / 2.0, 1e-6) ** 2)]),
    }[kind]
    guarantee = Guarantee(Privacy(claimed, 1e-6), cost, "replace")
    stated = float(re.search(r"\(([^ ,]+), 1e-06\)", str(guarantee))[1])
    delivered = float(re.search(r"delivers(?:: | is )epsilon = (\S+) at", str(guarantee))[1])
    assert guarantee.proven == (delivered <= stated)
    assert guarantee.proven == (off <= 0.0) or (kind != "plain" and abs(off) < 1e-10)  # which round up
    assert stated == pytest.approx(claimed, rel=1e-11)
    assert delivered >= guarantee.epsilon * (1.0 - 1e-11)
    if kind == "plain":
        assert f"({cost})" == f"(epsilon = {rounded_up(cost.plain_epsilon, 4)})"


@pytest.mark.parametrize(("neighbours", "words"), [("replace", "replacing"), ("zero-out", "zeroing out")])
def test_neighbours_are_named(neighbours, words):
    """The relation is part of the sentence."""
    assert words in str(Guarantee(BUDGET, KEPT, neighbours))


def test_a_simulation_says_so_first():
    """A seed protects nobody, and the sentence begins with it."""
    assert str(Guarantee(BUDGET, KEPT, "replace", simulated=True)).startswith("Simulation: not private.")


def test_a_broken_promise_is_broken_in_simulation_too():
    """A simulation of noise that is too small does not say that secret noise would keep the claim."""
    sentence = str(Guarantee(BUDGET, BROKEN, "replace", calibration="paper-printed", simulated=True))
    assert "BROKEN" in sentence
    assert "would be (1, 1e-06)-differentially private" not in sentence


def test_a_broken_simulation_says_that_it_is_one():
    """A seed delivers no epsilon at all, however the noise was chosen."""
    sentence = str(Guarantee(BUDGET, BROKEN, "replace", calibration="paper-printed", simulated=True))
    assert "simulation: not private" in sentence.lower()


def test_a_bound_is_not_called_exact():
    """What is read through zCDP is an upper bound, and the sentence does not call it exact."""
    assert "xactly" not in str(Guarantee(BUDGET, Cost(mu_squared=0.01, rho=0.001), "replace"))


@settings(max_examples=50)
@given(st.floats(1e-3, 20.0), st.floats(1e-12, 0.1), st.floats(1e-6, 100.0))
def test_holds_is_within(epsilon, delta, mu_squared):
    """The promise holds exactly if the delivered epsilon is at most the claimed one."""
    guarantee = Guarantee(Privacy(epsilon, delta), gaussian(mu_squared), "replace")
    assert guarantee.holds == guarantee.delivered.within(guarantee.claimed)
    assert guarantee.holds == (guarantee.epsilon <= epsilon) or guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)


def test_the_printed_epsilon_is_never_too_small():
    """The epsilon in the sentence is rounded up, as every reported epsilon."""
    for mu_squared in np.geomspace(1e-4, 100.0, 400):
        guarantee = Guarantee(BUDGET, gaussian(float(mu_squared)), "replace")
        printed = re.search(r"epsilon = ([\d.e+-]+) at that delta", str(guarantee))
        assert guarantee.epsilon <= float(printed[1]) <= guarantee.epsilon * 1.002
        assert printed[1] == rounded_up(guarantee.epsilon, 4)  # as in the plan that is printed below it


def test_a_guarantee_is_a_value():
    """Guarantees are equal when their numbers are."""
    assert Guarantee(BUDGET, KEPT, "replace") == Guarantee(BUDGET, KEPT, "replace")
    assert Guarantee(BUDGET, KEPT, "replace") != Guarantee(BUDGET, KEPT, "zero-out")


def test_a_sampler_that_ends_is_told_from_noise_that_delivers_nothing():
    """mu is finite and so is its epsilon; what is not is what integers within 12 deviations give."""
    assert module._SAMPLER_ENDS == REACH
    mu = 476.7
    near, far = (Guarantee(BUDGET, total([gaussian(mu**2), sampling_cost(1000, s)]), "replace") for s in (4.0, 11.9))
    assert "no finite" not in str(near)
    ideal = epsilon_of(BUDGET.delta, mu)
    words = rf"with this sampler, whose noise ends at {REACH} standard deviations \(mu = 476\.7; "
    (number,) = re.findall(words + r"noise without an end would deliver epsilon = ([\d.e+]+)\)", str(far))
    assert ideal <= float(number) <= 1.001 * ideal


@pytest.mark.parametrize("cost", [gaussian(1e16), Cost(plain_epsilon=1.0, plain_delta=0.5), Cost(rho=np.inf)])
def test_the_sampler_is_not_blamed_for_what_others_did(cost):
    """No noise to speak of, or a delta that others have used up."""
    sentence = str(Guarantee(BUDGET, total([cost, sampling_cost(1000, 11.9)]), "replace"))
    assert "no finite epsilon at that delta (" in sentence
    assert "sampler" not in sentence
