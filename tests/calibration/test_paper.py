"""The paper's noise in its two readings, and the numbers that tell them apart."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import InvalidInput, Privacy
from taciturn.calibration.paper import claim, delivered, noise_multiplier, parameters_claiming, pqftl_noise
from taciturn.kernel.accounting.cost import gaussian

T = 100_000
BUDGETS = st.builds(Privacy, st.floats(1e-3, 50.0), st.floats(1e-12, 0.4))


def t_to_the_c(privacy, horizon, reading):
    """`T^c`, recovered from the noise: `noise² = g²·(2/epsilon)·ln(T/delta) + 2g/sqrt(epsilon)`, `g = sqrt(T)·T^c`."""
    a = 2.0 / privacy.epsilon * math.log(horizon / privacy.delta)
    b = 1.0 / math.sqrt(privacy.epsilon)
    noise = noise_multiplier(privacy, horizon, reading)
    return noise**2 / (b + math.sqrt(b * b + a * noise**2)) / math.sqrt(horizon)


@settings(max_examples=100)
@given(BUDGETS, st.integers(2, 10**7))
def test_the_printed_c(privacy, horizon):
    """Printed: `c = ln(1/2)·ln(2/delta)/(2 ln T)`."""
    c = math.log(0.5) * math.log(2.0 / privacy.delta) / (2.0 * math.log(horizon))
    assert t_to_the_c(privacy, horizon, "printed") == pytest.approx(horizon**c, rel=1e-9)


@settings(max_examples=100)
@given(BUDGETS, st.integers(2, 10**7))
def test_the_proven_c(privacy, horizon):
    """Proven: `c = ln(½·ln(2/delta))/(2 ln T)`."""
    c = math.log(0.5 * math.log(2.0 / privacy.delta)) / (2.0 * math.log(horizon))
    assert t_to_the_c(privacy, horizon, "proven") == pytest.approx(horizon**c, rel=1e-9)


@pytest.mark.privacy
@pytest.mark.parametrize(("delta", "factor"), [(1e-2, 10), (1e-6, 411)])
def test_the_printed_noise_is_too_small(delta, factor):
    """Read literally, T^c and with it the noise is 10 (delta = .01) to 411 (1e-6) times too small."""
    privacy = Privacy(1.0, delta)
    assert int(t_to_the_c(privacy, T, "proven") / t_to_the_c(privacy, T, "printed")) == factor


def test_printed_and_proven_differ_by_nothing_else():
    """Where T^c is the same in both readings, so is the noise."""
    same = 2.0 * math.exp(-1.0)  # ln(2/delta) = 1 solves ½·ln(2/delta) = 2^(-ln(2/delta))
    noises = [noise_multiplier(Privacy(1.0, same), T, reading) for reading in ("printed", "proven")]
    assert noises[0] == pytest.approx(noises[1], rel=1e-12)


def test_what_is_claimed():
    """Algorithms 1-3 claim (3·epsilon, 2·delta), which needs a delta below one half."""
    assert claim(Privacy(0.5, 1e-5)) == Privacy(1.5, 2e-5)
    with pytest.raises(InvalidInput, match=r"below 0\.5"):
        claim(Privacy(1.0, 0.5))


@settings(max_examples=50)
@given(BUDGETS)
def test_claims_can_be_read_backwards(privacy):
    """The parameters for which the theorems claim a budget claim that budget."""
    back = claim(parameters_claiming(privacy))
    assert (back.epsilon, back.delta) == pytest.approx((privacy.epsilon, privacy.delta), rel=1e-15)


@pytest.mark.privacy
@pytest.mark.parametrize(("epsilon", "factor"), [(0.1, 4.86), (1.0, 12.8), (10.0, 27.2), (20.0, 31.5)])
def test_the_proven_noise_is_wasteful(epsilon, factor):
    """The exact noise for the very claim (3·epsilon, 2·delta) is this many times smaller, delta = 1e-6, T = 1e5."""
    privacy = Privacy(epsilon, 1e-6)
    needed = math.sqrt(T) / claim(privacy).mu
    assert noise_multiplier(privacy, T, "proven") / needed == pytest.approx(factor, rel=5e-3)


@pytest.mark.privacy
@pytest.mark.parametrize(("ridge", "epsilon"), [(1.0, 0.19), (0.1, 2.3), (0.01, 36.9)])
def test_a_dropped_strong_convexity_is_paid_in_epsilon(ridge, epsilon):
    """With 2L/t for 2L/(alpha·t) the noise is alpha times what it should be: 3·epsilon = 3 claimed, this delivered."""
    privacy = Privacy(1.0, 1e-6)
    noise = ridge * noise_multiplier(privacy, T, "proven")
    assert gaussian(noise**-2, T).epsilon(2e-6) == pytest.approx(epsilon, rel=1e-2)


@pytest.mark.privacy
@pytest.mark.parametrize("epsilon", [0.003, 0.01, 0.1, 1.0, 10.0, 20.0])
def test_the_proven_claim_holds(epsilon):
    """With the sensitivity right and c as proven, the claim is true from epsilon = .003 on, at delta = 1e-6."""
    privacy = Privacy(epsilon, 1e-6)
    assert delivered(privacy, T, "proven").within(claim(privacy))


@pytest.mark.privacy
@pytest.mark.parametrize("epsilon", [0.0001, 0.001, 0.002])
def test_the_proven_claim_fails_for_tiny_epsilon(epsilon):
    """Below, it is false: the proof drops an epsilon."""
    privacy = Privacy(epsilon, 1e-6)
    assert not delivered(privacy, T, "proven").within(claim(privacy))


@pytest.mark.privacy
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_the_printed_claim_fails(epsilon):
    """The pseudo-code as printed does not deliver what it claims."""
    privacy = Privacy(epsilon, 1e-6)
    assert not delivered(privacy, T, "printed").within(claim(privacy))


@settings(max_examples=50)
@given(BUDGETS, st.integers(1, 10**7))
def test_delivered_is_noise_at_every_round(privacy, horizon):
    """`T` releases of noise `beta/lam` times the sensitivity cost mu² = T·(lam/beta)²."""
    noise = noise_multiplier(privacy, horizon, "proven")
    assert delivered(privacy, horizon, "proven").mu == pytest.approx(math.sqrt(horizon) / noise, rel=1e-12)


@pytest.mark.parametrize("horizon", [0, -1])
def test_a_horizon_is_needed(horizon):
    """The paper's noise depends on the number of rounds."""
    with pytest.raises(InvalidInput, match="horizon"):
        noise_multiplier(Privacy(1.0, 1e-6), horizon, "proven")


def test_an_unknown_reading_is_refused():
    """There are two readings; a misspelt one is not silently the other."""
    with pytest.raises(InvalidInput):
        noise_multiplier(Privacy(1.0, 1e-6), T, "prinetd")


@settings(max_examples=50)
@given(BUDGETS, st.integers(4, 10**7), st.floats(0.1, 10.0))
def test_the_two_trees_of_pqftl(privacy, horizon, bound):
    """Algorithm 5 with half of epsilon and of delta; `R²` on the matrix's nodes and, as printed, R on the vector's."""
    matrix, vector = pqftl_noise(bound, privacy, horizon)
    levels = math.log2(horizon)
    node = bound**2 / (privacy.epsilon / 2) * levels**2 * math.log2(levels / (privacy.delta / 2))
    assert vector**2 == pytest.approx(node, rel=1e-12)
    assert matrix == pytest.approx(bound * vector, rel=1e-12)
