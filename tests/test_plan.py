"""One rule for settings: the method follows from the problem, and the plan says when nothing can be learnt."""

import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from taciturn import (
    BLT,
    EWOO,
    Absolute,
    Exponential,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Logistic,
    MultiHinge,
    OneHot,
    Privacy,
    Private,
    Problem,
    Releases,
    Simplex,
    Softmax,
    Squared,
    SquareRoot,
    Unprovable,
    User,
    WholeSpace,
    at,
    every,
    geometric,
    grid,
)
from taciturn.averages import late_averages
from taciturn.cli.app import app
from taciturn.kernel.problem.losses import Nearness
from taciturn.methods.stages import Moments, Ranges, Scales
from taciturn.plan import curvature, recommend, rows_per_user
from taciturn.regret import best_in_hindsight, replay
from taciturn.tables.random_features import RandomFeatures

BUDGET = Privacy(1.0, 1e-6)


@pytest.mark.parametrize(
    ("problem", "method", "mechanism"),
    [
        (Problem(Squared(), L2Ball(1.0), 5, label_bound=1.0), "pqftl", BLT(buffers=5)),
        (Problem(Logistic(), L2Ball(1.0), 5), "pftrl", BLT(buffers=5)),
        (Problem(Hinge(), Simplex(), 5, ridge=0.1), "pftrl", BLT(buffers=5)),
        (Problem(OneHot(4), L2Ball(1.0), 5, intercept=1.0), "pqftl", BLT(buffers=5)),
        (Problem(Softmax(4), L2Ball(1.0), 5, intercept=1.0), "pftrl", BLT(buffers=5)),
        (Problem(MultiHinge(4), L2Ball(1.0), 5, intercept=1.0), "pftrl", BLT(buffers=5)),
        (Problem(Softmax(4), WholeSpace(), 5, ridge=0.1), "pgiga", Gaussian()),
        (Problem(Logistic(), WholeSpace(), 5, ridge=0.1), "pgiga", Gaussian()),
        (Problem(Absolute(), WholeSpace(), 5, label_bound=1.0, ridge=0.1), "pigd", Gaussian()),
    ],
)
def test_the_method_follows_from_the_problem(problem, method, mechanism):
    """And everything it recommends is proven to keep the budget."""
    plan = recommend(problem, BUDGET, horizon=5_000)
    assert (plan.method, plan.private.mechanism) == (method, mechanism)
    assert plan.private.guarantee.holds
    assert plan.private.problem == problem


def test_without_a_horizon_one_strategy_serves_all_rounds_there_may_be():
    """And the plan looks a hundred thousand rounds ahead."""
    plan = recommend(Problem(Hinge(), L2Ball(1.0), 5), Privacy(10.0, 1e-6))
    assert plan.private.mechanism == BLT(8)
    assert list(plan.noise) == [repr(BLT(8))]
    assert plan.private.horizon is None
    assert plan.releases > 50
    assert plan.burn_in is not None


def test_a_given_schedule_is_used():
    """It is the caller's to choose."""
    plan = recommend(Problem(Hinge(), L2Ball(1.0), 5), BUDGET, horizon=1_000, schedule=every(100))
    assert plan.releases == 10


def test_what_nothing_certifies_is_rejected():
    """With a remedy."""
    with pytest.raises(Unprovable, match="Bound the domain"):
        recommend(Problem(Logistic(), WholeSpace(), 5), BUDGET, horizon=100)
    with pytest.raises(InvalidInput, match="Privacy"):
        recommend(Problem(Logistic(), L2Ball(1.0), 5), 1.0, horizon=100)


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Hinge()])
def test_burn_in_falls_with_the_budget_and_rises_with_the_dimension(loss):
    """More privacy or more features take longer; at some point nothing is learnt, and the plan says so."""

    def burn_in(epsilon, dimension):
        problem = Problem(loss, L2Ball(1.0), dimension, label_bound=1.0)
        return recommend(problem, Privacy(epsilon, 1e-6), horizon=50_000).burn_in or np.inf

    assert burn_in(10.0, 50) < burn_in(1.0, 50) < burn_in(0.1, 50)
    assert burn_in(0.1, 5) < burn_in(0.1, 50)
    hopeless = recommend(Problem(loss, L2Ball(1.0), 50, label_bound=1.0), Privacy(0.01, 1e-6), horizon=1_000)
    assert hopeless.burn_in is None
    assert hopeless.warning.startswith("Nothing useful")


@pytest.mark.parametrize("horizon", [2_000, None])
@pytest.mark.parametrize("method", ["pigd", "pgiga"])
def test_burn_in_of_iterates_ends_where_noise_is_a_twelfth_of_a_model(method, horizon):
    """The noise of models is looked at in arrays: as one by one, by the standard deviations of the mechanism."""
    problem = Problem(Logistic(), L2Ball(1.0), 3, ridge=0.1)
    schedule = every(1) if horizon else every(50)
    plan = recommend(
        problem, Privacy(300.0 if horizon else 10.0, 1e-6), horizon=horizon, method=method, schedule=schedule
    )
    private = plan.private
    longest = min(private.problem.radius, private.learner.certificate.magnitude)
    noise = [private.calibrated.noise_sd(k) * private.problem.size**0.5 for k in range(1, plan.releases + 1)]
    noisy = [k for k, length in enumerate(noise, 1) if length > longest / 12.0]
    assert 0 < noisy[-1] < plan.releases
    assert plan.burn_in == private.timetable.due(noisy[-1] + 1)


@pytest.mark.parametrize("kind", [Softmax, OneHot, MultiHinge])
def test_burn_in_rises_with_the_number_of_classes(kind):
    """More columns of the same data have more noise to outweigh; and where it is over, classes are distinguished."""
    plans = {
        K: recommend(Problem(kind(K), L2Ball(2.0), 4), Privacy(2.0, 1e-6), horizon=20_000, seed=1) for K in (2, 4, 16)
    }
    assert plans[2].burn_in < plans[4].burn_in < plans[16].burn_in < 10_000
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=20_000)
    X = 0.9 * np.eye(4)[y] + 0.1 * rng.normal(size=(20_000, 4))
    point = plans[4].private.fit(X, y).point
    assert np.mean(plans[4].private.problem.predict(point, X).argmax(axis=1) == y) > 0.95


def test_ftrl_is_not_given_blocks_in_which_it_overshoots():
    """Where classes overlap and neither ridge nor curvature holds the point, a tenth of the stream throws it about."""
    rng, T = np.random.default_rng(0), 60_000
    X = rng.normal(size=(T, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(T) < expit(1.5 * X[:, 0]), 1.0, -1.0)
    problem = Problem(Logistic(), L2Ball(3.0), 4, feature_bound=4.0)
    regrets = []
    for settings in ({}, {"curvature": 0.0}, {"curvature": 0.0, "schedule": geometric(1.1)}):
        plan = recommend(problem, Privacy(1.0, 1e-6), T, seed=1, **settings)
        _, releases = plan.private.run(plan.private.start(), 4.0 * X, y)
        regrets.append(replay(problem, releases, 4.0 * X, y).average_regret(best_in_hindsight(problem, 4.0 * X, y)))
    assert recommend(problem, BUDGET, T).private.schedule == every(81)
    assert recommend(problem, BUDGET).private.schedule == every(100)
    assert recommend(replace(problem, ridge=0.5), BUDGET, T).private.schedule == geometric(1.1)
    assert regrets[0] < 0.5 * regrets[1] < 0.1 * regrets[2]


def test_curvature_is_in_the_units_of_the_problem():
    """Other units change c as they change losses over squares of points; with a ridge, or without a bound, it is 0."""
    hinge = Problem(Hinge(), L2Ball(40.0), 50)
    assert curvature(hinge) == pytest.approx(0.01 / 50)
    assert curvature(hinge, share=0.1) == pytest.approx(0.1 / 50)
    assert curvature(replace(hinge, feature_bound=3.0)) == pytest.approx(9.0 * 0.01 / 50)
    absolute = Problem(Absolute(), L2Ball(2.0), 50, label_bound=1.0)
    assert curvature(replace(absolute, label_bound=4.0)) == pytest.approx(curvature(absolute) / 4.0)
    assert curvature(Problem(Hinge(), WholeSpace(), 50)) == curvature(Problem(Nearness(), L2Ball(1.0), 50)) == 0.0
    assert recommend(hinge, BUDGET, 1_000).private.learner.curvature == curvature(hinge)
    assert recommend(hinge, BUDGET, 1_000, curvature=0.0).private.learner.curvature == 0.0
    logistic = Problem(Logistic(), L2Ball(40.0), 50, ridge=0.1)
    assert recommend(logistic, BUDGET, 1_000).private.learner.curvature == 0.0
    assert recommend(Problem(Hinge(), WholeSpace(), 50), BUDGET, 1_000, method="pftrl", scale=9.0).averages


def test_curvature_steadies_published_points():
    """Overlapping classes, ten features of unequal spread: a fifth of the excess errors of published points is gone."""
    rng, T = np.random.default_rng(0), 60_000
    X = rng.normal(size=(T, 10)) / np.arange(1.0, 11.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    score = X @ np.arange(1.0, 11.0)
    y = np.where(rng.random(T) < expit(score), 1.0, -1.0)
    problem = Problem(Hinge(), L2Ball(40.0), 10)
    best = np.mean(np.where(score > 0.0, 1.0, -1.0) == y)
    excess = []
    for settings in ({}, {"curvature": 0.0}):
        private = recommend(problem, BUDGET, T, seed=1, **settings).private
        excess.append(best - replay(problem, private.run(private.start(), X, y)[1], X, y).accuracy)
    assert 0.0 < excess[0] < 0.8 * excess[1]


def test_a_large_radius_does_not_conceal_the_noise():
    """Twenty gradients of length L are no match for noise that is longer than 20 L, however far a point may go."""
    problem = Problem(Logistic(), L2Ball(28.0), dimension=2, feature_bound=2**0.5, intercept=1.0)
    assert recommend(problem, BUDGET, horizon=20).hopeless
    plan = recommend(problem, BUDGET, horizon=1_000)
    noise = plan.private.calibrated.noise_sd(plan.releases) * 3**0.5
    assert plan.warning is None
    assert plan.burn_in >= 0.5 * noise / problem.lipschitz


def test_half_the_stream_in_noise_is_worth_a_warning():
    """Neither nothing nor enough."""
    problem = Problem(Hinge(), L2Ball(1.0), 5)
    horizons = {T: recommend(problem, BUDGET, horizon=T) for T in range(200, 700, 50)}
    assert any(plan.warning and plan.warning.startswith("Little") for plan in horizons.values())


def gains(plan, X, y, test, targets):
    """What each release gains over a constant, by its model, as a share of what a fit without privacy gains."""
    _, releases = plan.private.run(plan.private.start(), X, y)
    points = late_averages(releases) if plan.averages else releases.points
    sign = plan.private.problem.loss.labels == "sign"
    weights = np.linalg.lstsq(X, y, rcond=None)[0]

    def gain(scores):
        if not sign:
            return np.mean((targets - y.mean()) ** 2) - np.mean((targets - scores) ** 2)
        ranks = scores.argsort().argsort()
        positive = targets > 0.0
        return 2.0 * (ranks[positive].mean() - ranks[~positive].mean()) / len(ranks)  # 4 times AUC - 1/2

    best = gain(test @ weights)
    scores = plan.private.problem.predict
    return {r.t: gain(scores(point, test)) / best for r, point in zip(releases, points, strict=True)}


@pytest.mark.parametrize(
    ("method", "loss", "epsilon"),
    [
        ("pftrl", Logistic(), 1.0),
        ("pftrl", Hinge(), 3.0),
        ("pqftl", Squared(), 1.0),
        ("pgiga", Logistic(), 30.0),
        ("pigd", Hinge(), 30.0),
    ],
)
def test_from_its_burn_in_on_predictions_are_better_than_a_constant(method, loss, epsilon):
    """By a tenth of what there is without privacy, for each of three seeds; and long before it they are not."""
    late, early = [], []
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30_000, 5))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        noisy = X[:, 0] + 0.5 * rng.normal(size=len(X))
        y = np.where(noisy > 0.0, 1.0, -1.0) if loss.labels == "sign" else np.clip(noisy, -1.0, 1.0)
        problem = Problem(loss, L2Ball(4.0), 5, label_bound=1.0, ridge=0.01 if method in ("pgiga", "pigd") else 0.0)
        settings = {"method": method, "schedule": geometric(1.1), "seed": seed}
        plan = recommend(problem, Privacy(epsilon, 1e-6), horizon=20_000, **settings)
        made = gains(plan, X[:20_000], y[:20_000], X[20_000:], y[20_000:])
        late += [gain for t, gain in made.items() if t >= plan.burn_in]
        early += [gain for t, gain in made.items() if t < plan.burn_in / 10]
    assert min(late) > 0.1
    assert min(early) < 0.0


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_before_its_burn_in_a_run_is_noise_and_long_after_it_is_not(loss):
    """On a stream with a clear signal the point is far from the truth before, and near it at ten times the burn-in."""
    rng = np.random.default_rng(0)
    problem = Problem(loss, L2Ball(1.0), 4, label_bound=1.0)
    plan = recommend(problem, Privacy(2.0, 1e-6), horizon=30_000, schedule=geometric(1.1), seed=1)
    X = rng.normal(size=(30_000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    truth = np.array([1.0, 0.0, 0.0, 0.0])
    y = X @ truth if loss.labels == "real" else np.where(X @ truth > 0, 1.0, -1.0)
    _, releases = plan.private.run(plan.private.start(), X, y)
    along = {r.t: float(r.point @ truth) / max(float(np.linalg.norm(r.point)), 1e-9) for r in releases}
    assert plan.burn_in < 3_000
    late = [cosine for t, cosine in along.items() if t > 10 * plan.burn_in]
    early = [cosine for t, cosine in along.items() if t < plan.burn_in / 10]
    assert min(late) > 0.8
    assert min(early) < 0.5


def test_the_noise_of_each_strategy_is_that_of_the_stream_made_with_it():
    """BLT has the least but for the square root, the plain tree the most."""
    plan = recommend(Problem(Hinge(), L2Ball(1.0), 5), BUDGET, horizon=2_000)
    noise = plan.noise
    last = plan.private.calibrated.noise_sd(plan.releases)
    assert noise["BLT(buffers=5, aim='max')"] == last
    assert max(noise, key=noise.get) == "BinaryTree(refined=False)"
    assert noise["BLT(buffers=5, aim='max')"] <= 1.001 * noise["SquareRoot()"]


def test_the_command_prints_the_plan():
    """For people and for machines."""
    arguments = ["plan", "--epsilon", "1", "--delta", "1e-6", "--dimension", "10", "--horizon", "10000"]
    text = CliRunner().invoke(app, arguments)
    assert text.exit_code == 0
    assert "pftrl" in text.stdout
    assert "burn-in" in text.stdout
    data = json.loads(CliRunner().invoke(app, [*arguments, "--loss", "squared", "--json"]).stdout)
    assert data["method"] == "pqftl"
    assert data["warning"] is None
    hopeless = CliRunner().invoke(app, [*arguments[:2], "0.001", *arguments[3:]])
    assert "Nothing useful" in " ".join(hopeless.stdout.split())


@pytest.mark.parametrize("arguments", [("softmax",), ("one-hot",), ("multi-hinge",), ("hinge", "--classes", "3")])
def test_classes_go_with_losses_that_have_some(arguments):
    """And only with those."""
    usual = ("plan", "--epsilon", "1", "--delta", "1e-6", "--dimension", "5", "--horizon", "1000", "--loss")
    rejected = CliRunner().invoke(app, [*usual, *arguments])
    assert isinstance(rejected.exception, InvalidInput)
    assert "--classes" in str(rejected.exception)
    for loss, method in {"softmax": "pftrl", "one-hot": "pqftl", "multi-hinge": "pftrl"}.items():
        made = json.loads(CliRunner().invoke(app, [*usual, loss, "--classes", "3", "--json"]).stdout)
        assert made["method"] == method


def test_a_method_may_be_named():
    problem = Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)
    for method in ("pftrl", "pgiga", "pigd"):
        plan = recommend(problem, Privacy(1.0, 1e-6), 1000, method=method)
        assert (plan.method, plan.why) == (method, "as requested")
    with pytest.raises(InvalidInput, match="method must be one of"):
        recommend(problem, Privacy(1.0, 1e-6), 1000, method="sgd")


@pytest.mark.parametrize(
    ("delta", "horizon", "unit", "words"),
    [
        (1e-6, 1_000, None, None),
        (1e-3, 100, None, None),
        (2e-3, None, None, "delta = 0.002 is large"),
        (1e-3, 1_000, None, "not below 1 / 1,000, one over the number of people.* such as 0.0001"),
        (1e-6, 10**7, None, "such as 1e-08"),
        (1e-3, 4_000, User(rows=8), None),
        (1e-3, 8_000, User(rows=8), "1 / 1,000"),
    ],
)
def test_a_delta_that_promises_nothing_is_warned_about(delta, horizon, unit, words):
    problem = Problem(Logistic(), L2Ball(1.0), dimension=2)
    unit = {} if unit is None else {"unit": unit}
    warning = recommend(problem, Privacy(1.0, delta), horizon, **unit).delta_warning
    assert warning is None if words is None else re.search(words, warning)


@pytest.mark.parametrize("horizon", [5e3, np.float32(5e3), 2.0**26, 2**53, 2.0**54, 1e300, 10**400])
@pytest.mark.parametrize("method", [None, "pgiga"])
def test_a_horizon_of_any_size_plans_or_is_rejected_with_the_reason(horizon, method):
    problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    most = 2**53 if method else 2**26
    if horizon <= most:
        assert recommend(problem, Privacy(1.0, 1e-6), horizon, method=method).private.timetable.horizon == horizon
    else:
        words = "at most 2.53" if horizon > 2**53 else "at most 67,108,864"
        with pytest.raises((InvalidInput, Unprovable), match=words):
            recommend(problem, Privacy(1.0, 1e-6), horizon, method=method)


def test_points_that_swing_are_averaged():
    """FTRL in steady blocks; with a ridge that holds it, and for other methods, the last point is the model."""
    ball, privacy = L2Ball(1.0), Privacy(1.0, 1e-6)
    assert recommend(Problem(Logistic(), ball, dimension=3), privacy, 1000).averages
    assert not recommend(Problem(Logistic(), ball, dimension=3, ridge=0.1), privacy, 1000).averages
    assert not recommend(Problem(Squared(), ball, dimension=3, label_bound=1.0), privacy, 1000).averages


def test_products_of_very_many_features_are_not_added_up():
    problem = Problem(Squared(), L2Ball(1.0), dimension=501, label_bound=1.0)
    assert recommend(problem, Privacy(1.0, 1e-6), 1000).method == "pftrl"


def test_hope_is_lost_when_the_last_release_is_noise():
    problem = Problem(Logistic(), L2Ball(1.0), dimension=10)
    for epsilon in (0.001, 0.1, 1.0, 10.0):
        plan = recommend(problem, Privacy(epsilon, 1e-6), 2000)
        assert plan.burn_in is None or not plan.hopeless
    assert plan.burn_in < 2000


@pytest.mark.parametrize("horizon", [30, 1000, 20_000])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("method", ["pftrl", "pqftl", "pgiga"])
def test_the_burn_in_is_the_round_after_the_last_release_of_too_little_signal(horizon, epsilon, method):
    """As looking at each release finds it."""
    loss = Squared() if method == "pqftl" else Logistic()
    problem = Problem(loss, L2Ball(2.0), dimension=5, label_bound=1.0, ridge=0.1 if method == "pgiga" else 0.0)
    plan = recommend(problem, Privacy(epsilon, 1e-6), horizon, method=method, schedule=every(7))
    least = {"pftrl": 5.0, "pqftl": 20.0, "pgiga": 12.0}[method]
    rounds = {k: plan.private.timetable.due(k) for k in range(1, plan.releases + 1)}
    noisy = [k for k, t in rounds.items() if plan._signal(k, t) < least]
    first = noisy[-1] + 1 if noisy else 1
    assert plan.burn_in == plan.private.timetable.due(first)


def test_many_releases_are_planned_and_compared_without_looking_at_each():
    """A million of them took minutes, and strategies that cannot hold so many made the whole plan fail."""
    problem = Problem(Logistic(), L2Ball(2.0), dimension=5)
    start = time.process_time()
    data = recommend(problem, Privacy(1.0, 1e-6), 2**20, schedule=every(1)).as_data()
    assert data["burn_in"] < 2**20
    assert data["not_compared"] == {}
    assert time.process_time() - start < 60.0


@pytest.mark.parametrize("error", [InvalidInput("Take a smaller epsilon."), MemoryError()])
def test_a_strategy_that_cannot_be_calibrated_is_named_with_its_reason(error, monkeypatch):
    def fails(*_):
        raise error

    monkeypatch.setattr(SquareRoot, "calibrate", fails)
    plan = recommend(Problem(Logistic(), L2Ball(2.0), dimension=5), Privacy(60.0, 1e-6), 60, schedule=every(2))
    assert repr(plan.private.mechanism) in plan.noise
    assert plan.not_compared == {"SquareRoot()": str(error) or "it does not fit into memory"}


@pytest.mark.parametrize("method", ["pftrl", "pqftl", "pgiga"])
@pytest.mark.parametrize("release", [100_001, 200_000, 2**23])
def test_a_first_release_that_is_far_away_is_looked_at(method, release):
    """Without a horizon a plan looks at rounds that come soon, and at the first in any case."""
    problem = Problem(Squared(), L2Ball(1.0), 5, label_bound=1.0, ridge=0.1)
    plan = recommend(problem, BUDGET, method=method, schedule=every(release))
    assert (plan.releases, plan.hopeless, plan.burn_in, plan.warning) == (1, False, release, None)
    assert plan.as_data()["releases"] == 1


def test_a_first_release_that_never_comes_is_rejected():
    with pytest.raises(InvalidInput, match="ends at round 8,388,608"):
        recommend(Problem(Logistic(), L2Ball(1.0), 5), BUDGET, schedule=every(2**23 + 1))


def test_many_releases_are_counted_without_a_list_of_them():
    plan = recommend(Problem(Logistic(), L2Ball(1.0), 5), BUDGET, horizon=2**26, schedule=every(1))
    assert plan.releases == 2**26


@pytest.mark.parametrize("method", ["pftrl", "pqftl", None])
@pytest.mark.parametrize("schedule", [None, every(1), every(2**20), at([10, 2**26 + 1])])
def test_a_horizon_beyond_exact_sums_is_rejected_with_the_limit(method, schedule):
    """The sentence says how long it may be, why, and what to do; and IGD and GIGA take it."""
    problem = Problem(Squared(), L2Ball(1.0), 5, label_bound=1.0, ridge=0.1)
    horizon = 2**26 + 1 if not isinstance(schedule, type(at([1]))) else None
    with pytest.raises(Unprovable, match=r"at most 67,108,864, up to which its sums are exact .* 67,108,865\. State a"):
        recommend(problem, BUDGET, horizon, method=method, schedule=schedule)
    for other in ("pigd", "pgiga"):
        assert recommend(problem, BUDGET, 2**26 + 1, method=other, schedule=geometric(1.1)).private.horizon == 2**26 + 1


def test_a_horizon_beyond_exact_losses_is_rejected_with_the_limit():
    net = EWOO(Problem(Logistic(), L2Ball(1.0), 1), grid(L2Ball(1.0), 1, per_axis=3))
    with pytest.raises(Unprovable, match="EWOO must be at most 268,435,456"):
        Private(net, Exponential(), every(2**27), BUDGET, horizon=2**28 + 1)


UNBOUNDED = Problem(Logistic(), WholeSpace(), 5, ridge=0.1)
BOUNDED = Problem(Logistic(), L2Ball(2.0), 5)


@pytest.mark.parametrize(
    ("problem", "method", "why"),
    [
        (BOUNDED, "pftrl", r"sums of gradients; the unit of privacy is one user, of at most 4 rows$"),
        (UNBOUNDED, "pgiga", r"one user, of at most 4 rows, by group privacy: with sums, over a bounded set"),
    ],
)
def test_the_plan_says_whose_data_it_protects(problem, method, why):
    """In words, and as data by the names of all fronts; sums are preferred, and where there are none it says so."""
    plan = recommend(problem, BUDGET, horizon=100, unit=User(rows=4))
    assert (plan.method, plan.private.unit) == (method, User(rows=4))
    assert re.search(why, plan.why)
    data = json.loads(json.dumps(plan.as_data()))
    assert data["unit"] == "one user, of at most 4 rows"
    assert [data[name] for name in ("rows_per_user", "rows_per_release", "apart", "period")] == [4, 4, 1, None]
    for_examples = recommend(problem, BUDGET, horizon=100)
    assert "unit" not in for_examples.why
    assert (for_examples.as_data()["unit"], for_examples.as_data()["rows_per_user"]) == ("one example", None)


def test_noise_and_burn_in_are_those_of_the_unit():
    """Group privacy: noise for four rows of a user is four times that for one row, but for the first release."""
    one, four = (recommend(UNBOUNDED, Privacy(4.0, 1e-6), 50_000, unit=User(rows=k)) for k in (1, 4))
    assert 3.0 < four.noise["Gaussian"] / one.noise["Gaussian"] <= 4.0 * (1 + 1e-9)
    assert one.burn_in < four.burn_in
    sums = recommend(BOUNDED, BUDGET, horizon=100, unit=User(rows=4, apart=2))
    assert sums.noise[repr(SquareRoot())] == (
        replace(sums.private, mechanism=SquareRoot()).calibrated.noise_sd(sums.releases)
    )


def test_rows_per_user_are_as_many_as_a_tenth_of_the_stream_outweighs():
    """The definition, for iterates, whose noise is to be a tenth of the longest model; never more than an average."""
    horizon, budget = 200_000, Privacy(1.0, 1e-6)

    def share(rows):
        plan = recommend(UNBOUNDED, budget, horizon, unit=User(rows))
        longest = plan.private.learner.certificate.magnitude
        return plan.noise["Gaussian"] * UNBOUNDED.size**0.5 / longest

    k = rows_per_user(UNBOUNDED, budget, horizon)
    assert 1 < k < 10
    assert share(k) <= 0.1 < share(k + 1)
    assert rows_per_user(UNBOUNDED, budget, horizon, users=horizon // 3) == 4
    assert rows_per_user(UNBOUNDED, budget, 1_000) == 1


@pytest.mark.parametrize("problem", [BOUNDED, UNBOUNDED, Problem(Squared(), L2Ball(1.0), 5, label_bound=1.0)])
def test_rows_per_user_rise_with_the_budget_and_stop_at_the_average(problem):
    """Public numbers alone decide."""
    chosen = [rows_per_user(problem, Privacy(epsilon, 1e-6), 50_000) for epsilon in (0.01, 1.0, 20.0)]
    assert chosen == sorted(chosen)
    assert chosen[-1] == 10
    assert rows_per_user(problem, Privacy(20.0, 1e-6), 50_000, users=4_000) == 13
    assert rows_per_user(problem, Privacy(20.0, 1e-6), 50_000, users=60_000) == 1
    with pytest.raises(InvalidInput, match="users must be an integer, 1 or more, got 0"):
        rows_per_user(problem, BUDGET, 1_000, users=0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("loss", [Squared(), Hinge()])
def test_a_window_by_rule_is_the_least_that_outweighs_the_noise(loss, epsilon):
    """Ten times; with nine tenths of it the signal is less. It needs no horizon, and is published steadily.

    PQFTL has memories of four and sixteen windows, too; the signal of the shortest is that of a stream of its own.
    """
    problem = Problem(loss, L2Ball(5.0), 10, label_bound=1.0)
    by_rule = recommend(problem, Privacy(epsilon, 1e-6), forget="auto")
    window = by_rule.window if loss == Hinge() else by_rule.memories[0]
    assert by_rule.as_data()["forget"] == (window if loss == Hinge() else [window, 4 * window, 16 * window])
    assert by_rule.private.schedule.rounds <= window // 50 or loss == Hinge()
    last = 100 * window
    plans = [recommend(problem, Privacy(epsilon, 1e-6), forget=each) for each in (window, int(0.9 * window))]
    signals = [each._signal(last // each.private.schedule.rounds, last) for each in plans]
    assert signals[0] >= 9.9
    assert signals[1] < 9.95
    assert by_rule.hopeless is False
    assert list(by_rule.noise) == [repr(by_rule.private.mechanism)]


def test_nothing_is_forgotten_by_rule_where_noise_needs_all_rows():
    """In a stream of less than two windows; a window that is stated is taken."""
    problem = Problem(Squared(), L2Ball(5.0), 10, label_bound=1.0)
    (shortest, *_) = recommend(problem, Privacy(1.0, 1e-6), forget="auto").memories
    for horizon, forgets in ((2 * shortest - 1, False), (2 * shortest, True)):
        plan = recommend(problem, Privacy(1.0, 1e-6), horizon, forget="auto")
        assert (plan.window is not None, plan.memories is not None) == (forgets, forgets)
        assert ("nothing is forgotten" in plan.why) is not forgets
    assert recommend(problem, Privacy(1.0, 1e-6), shortest, forget=shortest).window == shortest


def test_what_forgetting_leaves_of_the_signal():
    """All of it where the window is longer than the stream, up to the noise; less for shorter windows."""
    problem = Problem(Hinge(), L2Ball(1.0), 10)
    kept = [recommend(problem, Privacy(1.0, 1e-6), 50_000, forget=each).kept for each in (1_000, 10_000, 500_000)]
    assert 0.0 < kept[0] < kept[1] < kept[2] <= 1.0
    assert kept[0] < 0.05
    assert recommend(problem, Privacy(1.0, 1e-6), 50_000).kept is None


def test_several_windows_are_for_pqftl():
    squared = Problem(Squared(), L2Ball(1.0), 3, label_bound=1.0)
    plan = recommend(squared, Privacy(1.0, 1e-6), forget=(500, 2_000, 8_000))
    assert (plan.memories, plan.window, plan.private.schedule.rounds) == ((500, 2_000, 8_000), 2_000, 10)
    with pytest.raises(Unprovable, match=r"cost sqrt\(J\) times the mu"):
        recommend(Problem(Hinge(), L2Ball(1.0), 3), Privacy(1.0, 1e-6), forget=(500, 2_000))
    with pytest.raises(InvalidInput, match="two windows or more, in increasing order"):
        recommend(squared, Privacy(1.0, 1e-6), forget=(2_000, 500))
    with pytest.raises(InvalidInput, match="bounds that are stated"):
        recommend(squared, Privacy(1.0, 1e-6), forget=(500, 2_000), ranges="private")
    found = recommend(squared, Privacy(1.0, 1e-6), forget="auto", ranges="private")
    assert found.memories is None
    assert found.window is not None


def test_forgetting_is_for_streams_of_sums():
    ridged = Problem(Logistic(), WholeSpace(), 3, ridge=0.1)
    with pytest.raises(Unprovable, match="streams of sums"):
        recommend(ridged, Privacy(1.0, 1e-6), 1_000, forget=100)
    with pytest.raises(InvalidInput, match="no window"):
        recommend(Problem(Hinge(), L2Ball(1.0), 10**6), Privacy(0.01, 1e-6), forget="auto")


def test_late_averages_of_a_stream_that_forgets_forget():
    """From the window on the mean moves by the same share at every release; before it, as without one."""
    rounds = np.arange(10, 5_001, 10)
    points = np.where(rounds < 2_500, 0.0, 1.0)[:, None]
    releases = Releases(rounds, 1, points, points, np.ones(len(rounds)), False)
    means = late_averages(releases, window=400).ravel()
    share = (1.0 - 10 / 400) ** 4
    turned = np.flatnonzero(rounds >= 2_500)[0]
    np.testing.assert_allclose(means[turned : turned + 50], 1.0 - share ** np.arange(1, 51), rtol=1e-9)
    np.testing.assert_array_equal(late_averages(releases[:40], window=400), late_averages(releases[:40]))
    assert means[-1] > 0.999 > late_averages(releases).ravel()[-1]


@pytest.mark.parametrize(
    ("epsilon", "horizon", "rows"),
    [(10.0, 500_000, 2_577), (1.0, 500_000, 20_118), (0.1, 500_000, 11_091), (0.1, 100_000, 5_000), (0.1, 20_000, 0)],
)
def test_preconditioning_reads_no_more_rows_than_it_needs(epsilon, horizon, rows):
    """Enough for a full map, else for a diagonal one, else a twentieth; below that it is off, and the plan says so."""
    problem = Problem(Hinge(), L2Ball(40.0), 54, intercept=0.5)
    plan = recommend(problem, Privacy(epsilon, 1e-6), horizon, precondition=True)
    stages = getattr(plan.private, "stages", ())
    assert [stage.rows for stage in stages] == ([rows] if rows else [])
    assert ("preconditioning, which is off" in plan.why) == (rows == 0)
    plain = recommend(problem, Privacy(epsilon, 1e-6), horizon)
    assert (plan.private.learner.curvature > plain.private.learner.curvature) == (rows > 0)


def test_preconditioning_that_is_off_leaves_other_stages():
    problem = Problem(Hinge(), L2Ball(40.0), 54, intercept=0.5)
    for horizon, kinds in ((9_000, [Ranges, Scales]), (500_000, [Ranges, Scales, Scales, Moments])):
        plan = recommend(problem, Privacy(0.2, 1e-6), horizon, precondition=True, ranges=[0])
        assert [type(stage) for stage in plan.private.stages] == kinds
        assert ("which is off; the first" in plan.why) == (horizon == 9_000)


def test_rows_of_a_user_make_preconditioning_read_more():
    problem = Problem(Hinge(), L2Ball(40.0), 10, intercept=0.5)
    one, four = (
        recommend(problem, Privacy(10.0, 1e-6), 900_000, precondition=True, unit=User(k)).private.rows_of_stages
        for k in (1, 4)
    )
    assert four == pytest.approx(4 * one, abs=4)


def test_scales_of_random_features_are_found_only_if_asked_for():
    problem = Problem(Hinge(), L2Ball(40.0), 16, features=RandomFeatures(20, (0.475,) * 16))
    for asked in (False, True):
        private = recommend(problem, BUDGET, 90_000, ranges="private", found_scales=asked).private
        assert [stage.waves for stage in private.stages[1:]] == [1.9 * asked] * 2
    assert recommend(replace(problem, features=None), BUDGET, 90_000, ranges="private", found_scales=True)


def test_the_chain_has_five_lines_whatever_is_stated():
    """And the rows of its lines are those of the stages, without a gap."""
    problem = Problem(Hinge(), L2Ball(40.0), 4)
    plain, off = (recommend(problem, Privacy(0.1, 1e-6), 2_000, precondition=each).chain for each in (False, True))
    assert plain[:4] == ("Ranges: as stated.", "Scales: as stated.", "Map: none.", "Features: linear.")
    assert plain[4] == "Learning: all rows, by pftrl; of 143 released points, the model is the late average."
    assert (off[2], len(off)) == ("Map: off, as there are too few rows for it.", 5)
    full = recommend(problem, BUDGET, 90_000, precondition=True, ranges="private")
    numbers = [int(each.replace(",", "")) for each in re.findall(r"rows (?:from )?([\d,]*\d)", " ".join(full.chain))]
    assert numbers == [full.private.borders[i] + 1 for i in (0, 1, 3, 4)]
    once = recommend(Problem(Logistic(), WholeSpace(), 4, ridge=0.1), BUDGET, 2_000, once=True)
    assert once.chain[4] == "Learning: all rows, by objective; the model is the one released point."


def test_a_plan_for_workers_chooses_what_they_can_add_up():
    """PQFTL as it is; FTRL in a job of 4,096 rows for each worker, with its cost; iterates are rejected."""
    from taciturn.engines import pool
    from taciturn.plan import JOB
    from taciturn.runs.resume import BLOCK

    budget = Privacy(1.0, 1e-6)
    squared = Problem(Squared(), L2Ball(1.0), dimension=3, label_bound=1.0)
    alone, many = (recommend(squared, budget, 10**6, workers=workers) for workers in (None, 100))
    assert many.method == "pqftl"
    assert many.private == alone.private
    assert "workers cost no accuracy" in many.why
    hinge = Problem(Hinge(), L2Ball(1.0), dimension=3)
    assert JOB == BLOCK
    for workers in (1, 2, 4):
        plan = recommend(hinge, budget, 4_000_000, workers=workers)
        assert plan.private.schedule == every(BLOCK * workers)
        assert f"move {4_000_000 // (BLOCK * workers):,} times in 4,000,000 rows and not 6,006 times" in plan.why
        pool.check_plan(plan)
    with pytest.raises(InvalidInput, match=r"97 times .* Let it publish every 36,864 rows; or learn squared loss"):
        recommend(hinge, budget, 4_000_000, workers=10)
    with pytest.raises(InvalidInput, match="a multiple of 4,096"):
        recommend(hinge, budget, 4_000_000, schedule=every(1_000), workers=2)
    with pytest.raises(InvalidInput, match="nothing to add up"):
        recommend(squared, budget, 10**6, schedule=every(100), workers=2)
    with pytest.raises(InvalidInput, match="State ranges"):
        recommend(hinge, budget, 4_000_000, ranges="private", workers=2)
    curved = Problem(Logistic(), WholeSpace(), dimension=3, ridge=0.1)
    with pytest.raises(Unprovable, match="pgiga steps from each example to the next"):
        recommend(curved, budget, 10**6, workers=2)
    with pytest.raises(Unprovable, match="pigd steps from each example to the next"):
        recommend(hinge, budget, 10**6, method="pigd", workers=2)
    with pytest.raises(Unprovable, match="objective minimises over all rows at once"):
        recommend(curved, budget, 10**6, once=True, workers=2)
    forgets = recommend(squared, budget, 10**6, forget=1_000, workers=2)
    assert forgets.private.schedule == every(256)
    pool.check_plan(forgets)


def test_blocks_in_which_points_hardly_move_are_warned_of():
    """A release of the length of the horizon is one step; PQFTL does not depend on blocks."""
    budget, hinge = Privacy(1.0, 1e-6), Problem(Hinge(), L2Ball(1.0), dimension=3)
    squared = Problem(Squared(), L2Ball(1.0), dimension=3, label_bound=1.0)
    for rounds, moves in ((65_536, "0 times"), (40_000, "1 time in"), (8_192, "6 times")):
        warning = recommend(hinge, budget, 50_000, schedule=every(rounds)).warning
        assert f"moves its point once in a release, {moves}" in warning
        assert recommend(squared, budget, 50_000, schedule=every(rounds)).warning is None
    assert recommend(hinge, budget, 50_000, schedule=every(2_500)).warning is None
    assert recommend(hinge, budget, 50_000).warning is None


def test_the_command_plans_for_workers_and_says_what_a_contract_must_state(tmp_path):
    options = ["--epsilon", "1", "--delta", "1e-6", "--dimension", "3", "--horizon", "1000000"]
    assert CliRunner().invoke(app, ["plan", *options, "--loss", "hinge", "--workers", "50"]).exception is not None
    contract = tmp_path / "taciturn.toml"
    text = (
        '[privacy]\nepsilon = 1\n[target]\ncolumn = "y"\nclasses = [0, 1]\n[learning]\nloss = "hinge"\n'
        "horizon = 1000000\n[columns]\nx = { range = [0, 1] }\n"
    )
    contract.write_text(text)
    told = CliRunner().invoke(app, ["check", str(contract), "--workers", "2"])
    assert told.exit_code == 0
    assert "release = 8192" in " ".join(told.output.split())
    decides = text.replace("classes = [0, 1]", "range = [0, 1]").replace('loss = "hinge"\n', "")
    contract.write_text(decides + '[events]\nwait = "1 day"\n[bandit]\nactions = ["a", "b"]\n')
    told = CliRunner().invoke(app, ["check", str(contract), "--workers", "2"])
    assert "which has no workers" in str(told.exception)
