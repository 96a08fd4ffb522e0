"""What the paper's constants deliver: the numbers, and the same numbers from streams, trees and searches."""

import math

import numpy as np
import pytest

from taciturn import InvalidInput, Privacy
from taciturn.calibration import paper
from taciturn.calibration.errata import ALPHAS, DELTAS, EPSILONS, HORIZONS, table
from taciturn.kernel.accounting.cost import gaussian
from taciturn.kernel.learners.qftl import quadratic_pair

ROWS = table()
BY_SETTINGS = {(r.algorithm, r.reading, r.T, r.epsilon, r.delta, r.alpha): r for r in ROWS}
SHORT = 1_000


def pick(algorithm, reading="printed", T=100_000, epsilon=1.0, delta=1e-6, alpha=None):
    """The one row of the grid with these settings."""
    return BY_SETTINGS[algorithm, reading, T, epsilon, delta, alpha]


# ---- the table -----------------------------------------------------------------------------------


def test_the_grid_is_whole():
    """Every algorithm, reading and alpha at each of 30 settings, and no row twice."""
    settings = len(HORIZONS) * len(EPSILONS) * len(DELTAS)
    assert len(ROWS) == settings * (2 + 2 * 6 + 1 + 1 + 3)
    assert len(BY_SETTINGS) == len(ROWS)
    assert {r.algorithm for r in ROWS if r.alpha is not None} == {"PIGD", "PGIGA", "POL"}
    assert {a for r in ROWS if (a := r.alpha) is not None} == set(ALPHAS)


def test_rows_say_what_their_numbers_say():
    """Claims are the theorems', epsilon is mu's at the claimed delta, and `holds` compares the two."""
    for row in ROWS:
        parameters = Privacy(row.epsilon, row.delta)
        claimed = paper.claim(parameters) if row.algorithm in ("POCP", "PIGD", "PGIGA") else parameters
        assert (row.claimed_epsilon, row.claimed_delta) == (claimed.epsilon, claimed.delta)
        assert row.delivered_epsilon == gaussian(row.delivered_mu**2).epsilon(claimed.delta)
        assert row.holds == (row.delivered_epsilon <= row.claimed_epsilon)


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("row", "delivered", "tolerance"),
    [
        (pick("PIGD", "proven", alpha=0.01), 36.9, 0.01),
        (pick("PIGD", "proven", alpha=0.1), 2.3, 0.01),
        (pick("PIGD", "proven", alpha=1.0), 0.19, 0.01),
        (pick("POL", alpha=0.01), 236.0, 0.02),
        (pick("PrivateSum", epsilon=0.01), 0.034, 0.02),
        (pick("PrivateSum", epsilon=0.1), 0.118, 0.01),
        (pick("PrivateSum"), 0.40, 0.01),
        (pick("PrivateSum", epsilon=10.0), 1.4, 0.01),
        (pick("POCP", "proven"), 0.189, 0.01),
    ],
)
def test_known_numbers(row, delivered, tolerance):
    """At T = 1e5, delta = 1e-6."""
    assert row.delivered_epsilon == pytest.approx(delivered, rel=tolerance)


@pytest.mark.privacy
def test_which_claims_are_true():
    """True everywhere: POCP as proven, and what has no lost alpha. False everywhere: as printed, at delta = 1e-6."""
    assert all(row.holds for row in ROWS if (row.algorithm, row.reading) == ("POCP", "proven"))
    assert all(row.holds for row in ROWS if (row.algorithm, row.reading) == ("PGIGA", "proven"))
    assert not any(
        row.holds for row in ROWS if row.algorithm == "POCP" and (row.reading, row.delta) == ("printed", 1e-6)
    )
    assert not any(row.holds for row in ROWS if row.algorithm in ("PIGD", "POL") and row.alpha == 0.01)
    assert {row.epsilon for row in ROWS if row.algorithm == "PrivateSum" and not row.holds} == {0.01, 0.1}


def test_monotone():
    """A larger parameter epsilon and a smaller alpha deliver a larger mu."""
    for row in ROWS:
        for epsilon in EPSILONS:
            other = pick(row.algorithm, row.reading, row.T, epsilon, row.delta, row.alpha)
            assert (other.delivered_mu >= row.delivered_mu) == (epsilon >= row.epsilon)
        if (row.algorithm, row.reading) in [("PIGD", "printed"), ("PIGD", "proven"), ("POL", "printed")]:
            for alpha in ALPHAS:
                other = pick(row.algorithm, row.reading, row.T, row.epsilon, row.delta, alpha)
                assert (other.delivered_mu >= row.delivered_mu) == (alpha <= row.alpha)


def test_asking_for_a_smaller_delta():
    """It delivers a smaller mu, except as printed: there it brings less noise, since c falls with delta."""
    for strict in (row for row in ROWS if row.delta == 1e-6):
        loose = pick(strict.algorithm, strict.reading, strict.T, strict.epsilon, 1e-2, strict.alpha)
        backwards = strict.reading == "printed" and strict.algorithm in ("POCP", "PIGD", "PGIGA")
        assert (strict.delivered_mu > loose.delivered_mu) == backwards


@pytest.mark.parametrize("T", [1, 0, 2.5])
def test_a_horizon_is_needed(T):
    with pytest.raises(InvalidInput, match="T must be"):
        table([T])


def test_alpha_is_positive():
    with pytest.raises(InvalidInput, match="alpha"):
        table(alphas=[0.0])


# ---- what the corrected constants would deliver ----------------------------------------------------


@pytest.mark.privacy
def test_the_lost_alpha_put_back():
    """With noise for `2L/alpha`, 1/alpha times the printed noise, PIGD as proven and POL hold on the whole grid."""
    for row in ROWS:
        if row.algorithm == "POL" or (row.algorithm, row.reading) == ("PIGD", "proven"):
            claimed = Privacy(row.claimed_epsilon, row.claimed_delta)
            assert gaussian((row.delivered_mu * row.alpha) ** 2).within(claimed)


@pytest.mark.privacy
@pytest.mark.parametrize("T", HORIZONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_tree_with_its_lemma_put_right(T, epsilon, delta):
    """`sigma = (2R·k/epsilon)·sqrt(2·(ln(k/delta) + epsilon/k))` on k = floor(log2 T) + 1 nodes holds."""
    k = math.floor(math.log2(T)) + 1
    sigma = 2.0 * k / epsilon * math.sqrt(2.0 * (math.log(k / delta) + epsilon / k))
    assert gaussian(4.0 / sigma**2, count=k).within(Privacy(epsilon, delta))


@pytest.mark.privacy
def test_exact_noise_holds_and_hardly_more_does():
    """Scaled to the claim's own mu every algorithm keeps its claim; with a millionth less noise, none does."""
    for row in ROWS:
        claimed = Privacy(row.claimed_epsilon, row.claimed_delta)
        factor = claimed.mu / row.delivered_mu
        assert gaussian((row.delivered_mu * factor * (1 - 1e-12)) ** 2).within(claimed)
        assert not gaussian((row.delivered_mu * factor * (1 + 1e-6)) ** 2).within(claimed)


# ---- the same numbers from streams ------------------------------------------------------------------


def igd_gap(T, alpha, changed, slope=1.0):
    """Distances after 1..T examples between two runs of IGD on `alpha/2·x²` plus, once, `±slope·x`."""
    x, y, gaps = 0.0, 0.0, []
    for t in range(1, T + 1):
        pull, eta = (slope if t == changed else 0.0), 1.0 / (alpha * t)
        x, y = (x - eta * pull) / (1.0 + eta * alpha), (y + eta * pull) / (1.0 + eta * alpha)
        gaps.append(abs(x - y))
    return np.array(gaps)


def giga_gap(T, alpha, changed, curvatures, slope=1.0):
    """The same for gradient steps `2/(alpha·t)` from round 2 on, on `curvature_t/2·x²`."""
    x, y, gaps = 0.0, 0.0, []
    for t, curvature in zip(range(2, T + 1), curvatures, strict=True):
        pull, eta = (slope if t == changed else 0.0), 2.0 / (alpha * t)
        x, y = x - eta * (curvature * x + pull), y - eta * (curvature * y - pull)
        gaps.append(abs(x - y))
    return np.array(gaps)


@pytest.mark.privacy
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("reading", ["printed", "proven"])
def test_pigd_from_streams(alpha, reading):
    """Iterating it: no changed round is worse than the first, and that one costs exactly the table's mu, L = slope."""
    noise = 2.0 * paper.noise_multiplier(Privacy(1.0, 1e-6), SHORT, reading) / np.arange(1, SHORT + 1)
    mus = [np.linalg.norm(igd_gap(SHORT, alpha, changed) / noise) for changed in (1, 2, 50, 500, 999)]
    row = pick("PIGD", reading, T=SHORT, alpha=alpha)
    assert mus[0] == pytest.approx(row.delivered_mu, rel=1e-9)
    assert max(mus) == mus[0]


@pytest.mark.privacy
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("reading", ["printed", "proven"])
def test_pgiga_from_streams(alpha, reading):
    """Iterating it at kappa = 1: the worst changed round costs the table's mu, and none costs more."""
    lam = 2.0 if reading == "printed" else 2.0 / alpha
    noise = lam * paper.noise_multiplier(Privacy(1.0, 1e-6), SHORT, reading) / np.arange(2, SHORT + 1)
    flat = np.full(SHORT - 1, alpha)
    mus = [np.linalg.norm(giga_gap(SHORT, alpha, r, flat) / noise) for r in (2, 100, 400, 490, 500, 510, 600, 999)]
    delivered = pick("PGIGA", reading, T=SHORT, alpha=alpha).delivered_mu
    assert max(mus) == pytest.approx(delivered, rel=1e-3)
    assert max(mus) <= delivered * (1 + 1e-12)


@pytest.mark.privacy
def test_pgiga_is_not_worse_for_curved_losses():
    """For curvatures between alpha and kappa·alpha, from round t_q = 2·kappa² on, nothing costs more."""
    rng, kappa = np.random.default_rng(0), 3.0
    noise = 1.0 / np.arange(2, SHORT + 1)
    flat = max(np.linalg.norm(giga_gap(SHORT, 1.0, r, np.ones(SHORT - 1)) / noise) for r in range(480, 521, 4))
    for _ in range(50):
        curvatures = rng.choice([1.0, kappa, rng.uniform(1.0, kappa)], SHORT - 1)
        changed = int(rng.integers(2 * kappa**2, SHORT))
        assert np.linalg.norm(giga_gap(SHORT, 1.0, changed, curvatures) / noise) <= flat


def test_lemma_5_per_iterate():
    """The changed round itself moves GIGA by 4·slope/(alpha·t): twice what Lemma 5 says."""
    assert giga_gap(20, 0.5, 10, np.full(19, 0.5))[10 - 2] == pytest.approx(4.0 / (0.5 * 10))


@pytest.mark.privacy
@pytest.mark.parametrize("alpha", ALPHAS)
def test_pol_from_streams(alpha):
    """The mean of T iterates, by iterating: the first example moves it most, as far as the table says."""
    noise = paper.pol_noise(1.0, Privacy(1.0, 1e-6), SHORT)
    mus = [np.sum(igd_gap(SHORT, alpha, changed)) / SHORT / noise for changed in (1, 2, 30, 900)]
    assert max(mus) == mus[0] == pytest.approx(pick("POL", T=SHORT, alpha=alpha).delivered_mu, rel=1e-9)


@pytest.mark.privacy
def test_every_broken_claim_is_broken_by_streams_that_obey_the_paper():
    """Here L and G count the ridge too, on a ball that just holds the moved iterates: the claim falls all the same."""
    shares = {(algorithm, T): reached(algorithm, T) for algorithm in ("PIGD", "PGIGA") for T in HORIZONS}
    for row in ROWS:
        if row.algorithm in ("PIGD", "PGIGA") and not row.holds:
            claimed = Privacy(row.claimed_epsilon, row.claimed_delta)
            assert not gaussian((row.delivered_mu * shares[row.algorithm, row.T]) ** 2).within(claimed)


def reached(algorithm, T):
    """Share of the table's mu that streams reach whose L or G counts the ridge.

    Round r differs, by slopes ±1, and moves the iterate of IGD to ∓1/(alpha·(r+1)), of GIGA to ∓2/(alpha·r). That is
    the radius of the ball, which adds alpha times itself to L.
    """
    r = np.arange(1.0, T + 1.0)
    if algorithm == "PIGD":
        squares, ridge = (r / (r + 1.0)) ** 2, 1.0 / (r + 1.0)
        reach = np.sqrt(np.cumsum(squares[::-1])[::-1])
    else:
        r = r[1:]
        reach, ridge = (r - 1.0) * np.sqrt(np.cumsum((r[::-1] - 1.0) ** -2.0)[::-1]), 2.0 / r
    return np.max(reach / (1.0 + ridge)) / np.max(reach)


def test_how_far_streams_reach():
    """The shares that the documentation states."""
    assert [round(reached("PIGD", T), 3) for T in HORIZONS] == [0.96, 0.996, 0.998]
    assert all(reached("PGIGA", T) > 0.995 for T in HORIZONS)


# ---- the same numbers from trees ---------------------------------------------------------------------


@pytest.mark.privacy
@pytest.mark.parametrize("T", [2, 7, 8, 13, 64, 100])
def test_the_tree_from_its_outputs(T):
    """The published prefix sums alone tell two streams apart as well as floor(log2 T) + 1 noisy nodes do."""
    nodes = sorted({(t - (t & -t), t) for t in range(1, T + 1)})
    outputs = np.zeros((T, len(nodes)))
    for t in range(1, T + 1):
        end = t
        while end:
            start = end - (end & -end)
            outputs[t - 1, nodes.index((start, end))] = 1.0
            end = start
    covariance = outputs @ outputs.T
    worst = max(
        shift @ np.linalg.solve(covariance, shift)
        for shift in (2.0 * (np.arange(1, T + 1) >= example) for example in range(1, T + 1))
    )
    [row] = [row for row in table([T], [1.0], [1e-6], []) if row.algorithm == "PrivateSum"]
    sigma = paper.tree_noise(1.0, Privacy(1.0, 1e-6), T)
    assert math.sqrt(worst) / sigma == pytest.approx(row.delivered_mu, rel=1e-9)


def two_examples(rng, dimension, R, R_y):
    """Two random examples, often of full length and label."""
    v = rng.normal(size=(2, dimension))
    v *= R * np.minimum(1.0, rng.uniform(0.0, 2.0, (2, 1))) / np.linalg.norm(v, axis=1, keepdims=True)
    return v, R_y * np.clip(rng.uniform(-3.0, 3.0, 2), -1.0, 1.0)


@pytest.mark.privacy
@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize(
    ("a", "b", "R", "R_y"), [(1, 1, 1, 1), (1, 0.3, 1, 1), (1, 5, 1, 1), (0.2, 1, 2, 0.7), (1, 2, 1, 1)]
)
def test_the_worst_pair_of_quadratic_losses(dimension, a, b, R, R_y):
    """A random search never exceeds the formula, and reaches 99 % of it."""
    rng, best, bound = np.random.default_rng(1), 0.0, quadratic_pair(a, b, R, R_y)
    for _ in range(20_000):
        (v, w), (y, z) = two_examples(rng, dimension, R, R_y)
        moved = a * np.sum((np.outer(v, v) - np.outer(w, w)) ** 2) + b * np.sum((y * v - z * w) ** 2)
        best = max(best, moved)
    assert 0.99 * bound <= best <= bound * (1 + 1e-12)


@pytest.mark.privacy
def test_pqftl_from_its_worst_pair():
    """Two unit vectors at 60 degrees, labels 1 and -1: both trees together, node by node."""
    v, w = np.array([1.0, 0.0]), np.array([0.5, math.sqrt(0.75)])
    sigma = paper.tree_noise(1.0, Privacy(0.5, 5e-7), 100_000)
    node = np.append(np.outer(v, v) - np.outer(w, w), v + w) / sigma
    assert math.sqrt(17) * np.linalg.norm(node) == pytest.approx(pick("PQFTL").delivered_mu, rel=1e-12)
