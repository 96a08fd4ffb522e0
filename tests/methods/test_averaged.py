"""Averaged iterates: the mean they claim, the certificate of the corrected Theorem 10, and offline learning on it."""

import numpy as np
import pytest

from taciturn import (
    FTRL,
    IGD,
    QFTL,
    Cost,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Problem,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
    averaged,
    pol,
)

HOWS = ("mean", "suffix", "last")


def linear(ridge):
    return Problem(Linear(), WholeSpace(), dimension=1, label_bound=1.0, ridge=ridge)


@pytest.mark.parametrize(("how", "first"), [("mean", 1), ("suffix", 16), ("last", 30)])
def test_it_is_the_mean_of_the_rows(how, first):
    """However the stream is cut into blocks."""
    rng = np.random.default_rng(0)
    problem = Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.2)
    V, y = problem.clip(rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], 30))
    inner, rows = IGD(problem), []
    exact = inner.start()
    for t in range(30):
        exact = inner.absorb(exact, t, V[t : t + 1], y[t : t + 1], None)
        rows.append(exact["x"])
    learner = averaged(inner, how, horizon=30)
    state = learner.absorb(learner.absorb(learner.start(), 0, V[:11], y[:11], None), 11, V[11:], y[11:], None)
    np.testing.assert_allclose(learner.statistic(state, 30)[1], np.mean(rows[first - 1 :], axis=0), rtol=1e-13)


@pytest.mark.privacy
@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("how", HOWS)
def test_the_tight_pair_reaches_the_certificate(how, ridge):
    """Linear losses, the first example changed: at least 0.99 of the bound, and never more."""
    learner = averaged(IGD(linear(ridge)), how, horizon=200)
    X, y = np.ones((200, 1)), np.ones(200)
    other = np.concatenate([[-1.0], y[1:]])
    rows = [learner.statistic(learner.absorb(learner.start(), 0, X, z, None), 200)[1] for z in (y, other)]
    bound = float(learner.certificate.at(200))
    assert 0.99 * bound < abs(float(rows[0][0] - rows[1][0])) <= bound


@pytest.mark.privacy
def test_the_formulas_of_the_corrected_theorem():
    """Mean Gd(H_{T+1} - 1)/(alpha T), last Gd/(alpha(T+1)), suffix Gd(H_{T+1} - H_m)/(alpha(T+1-m))."""
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 102))])
    scale, T, m = 2.0 / 0.1, 100, 51
    bounds = {
        "mean": scale * (harmonic[T + 1] - 1.0) / T,
        "last": scale / (T + 1),
        "suffix": scale * (harmonic[T + 1] - harmonic[m]) / (T + 1 - m),
    }
    for how, bound in bounds.items():
        certified = float(averaged(IGD(linear(0.1)), how, horizon=T).certificate.at(T))
        assert certified == pytest.approx(bound, rel=1e-6)
        assert certified >= bound


@pytest.mark.privacy
@pytest.mark.parametrize("how", HOWS)
def test_the_lost_ridge_is_caught(how):
    """A planted fault, the paper's bound without 1/alpha: the tight pair exceeds it tenfold at alpha = 0.1."""
    learner = averaged(IGD(linear(0.1)), how, horizon=200)
    slipped = 0.1 * float(learner.certificate.at(200))
    X, y = np.ones((200, 1)), np.ones(200)
    other = np.concatenate([[-1.0], y[1:]])
    rows = [learner.statistic(learner.absorb(learner.start(), 0, X, z, None), 200)[1] for z in (y, other)]
    assert abs(float(rows[0][0] - rows[1][0])) > 9.9 * slipped


@pytest.mark.privacy
def test_the_printed_noise_is_rejected_and_delivers_what_the_errata_say():
    """Algorithm 6 as printed, alpha = .01, epsilon = 1, T = 1e5: rejected, and BROKEN if asked for by name."""
    arguments = (linear(0.01), Privacy(1.0, 1e-6), 100_000)
    with pytest.raises(Unprovable, match="BROKEN"):
        pol(*arguments, calibration="paper-printed")
    private = pol(*arguments, calibration="paper-printed", allow_broken=True)
    assert private.guarantee.claimed == Privacy(1.0, 1e-6)
    ideal = Cost(private.guarantee.delivered.mu_squared).epsilon(1e-6)
    assert 60.0 < ideal < 241.0  # 240 with L the data term's alone; the ridge at most doubles L
    assert private.guarantee.epsilon >= ideal


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("domain", [L2Ball(2.0), Simplex(2.0)])
def test_offline_learning_releases_one_model_inside_the_set(how, domain):
    """Hinge loss and constraints included, which is the paper's claim over earlier work."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = np.where(X @ [1.0, 0.5, 0.2] > 0, 1.0, -1.0)
    private = pol(Problem(Hinge(), domain, dimension=3, ridge=0.1), Privacy(5.0, 1e-6), 400, how=how)
    state, releases = private.run(private.start(), X, y)
    assert [release.t for release in releases] == [400]
    assert domain.contains(releases[0].point)
    assert private.guarantee.holds
    assert state.spent.mu == pytest.approx(Privacy(5.0, 1e-6).mu, rel=1e-3)


def test_unknown_averages_are_rejected():
    """By name."""
    with pytest.raises(InvalidInput, match="how must be one of"):
        averaged(IGD(linear(1.0)), "median", horizon=10)


@pytest.mark.parametrize("name", ["Averaged", "QFTL", "FTRL", "int"])
def test_what_has_no_iterates_is_not_averaged(name):
    """In a sentence that names the learner, and says what to do."""
    problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0, ridge=0.1)
    learners = [averaged(IGD(problem), horizon=10), QFTL(problem), FTRL(problem), 3]
    learner = next(each for each in learners if type(each).__name__ == name)
    with pytest.raises(Unprovable, match=rf"certified for iterates, and {name} has none\. Use averaged"):
        averaged(learner, horizon=10)
