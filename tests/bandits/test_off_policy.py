"""Off-policy evaluation: unbiased by enumeration, intervals that cover, and a private mean that keeps its budget."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import BudgetExhausted, InvalidInput, Ledger, Privacy
from taciturn.bandits.off_policy import (
    LoggedDecisions,
    cross_fitted_rewards,
    direct_method,
    doubly_robust,
    ips,
    private_ips,
    snips,
)

ESTIMATORS = (ips, snips, direct_method, doubly_robust)


@st.composite
def logs(draw):
    """A log of 2 to 12 decisions among 3 actions, probabilities of a target policy, and predicted rewards."""
    n = draw(st.integers(2, 12))
    rows = st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3)
    tables = [np.array(draw(st.lists(rows, min_size=n, max_size=n))) for _ in range(2)]
    chances, target = (table / table.sum(axis=1, keepdims=True) for table in tables)
    actions = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    column = st.lists(st.floats(-5.0, 5.0), min_size=n, max_size=n)
    model = np.array([draw(column) for _ in range(3)]).T
    return LoggedDecisions(actions, draw(column), chances[np.arange(n), actions], 3), target, model


class World:
    """Two contexts, three actions: chances of contexts and actions, mean rewards, and the value of a target policy."""

    contexts = np.array([0.3, 0.7])
    logging = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    target = np.array([[0.1, 0.1, 0.8], [0.6, 0.4, 0.0]])
    clicks = np.array([[0.2, 0.5, 0.6], [0.7, 0.4, 0.1]])
    value = float(contexts @ (target * clicks).sum(axis=1))

    @classmethod
    def simulate(cls, n, seed):
        """A log of n decisions, and the target policy on each of its contexts."""
        rng = np.random.default_rng(seed)
        x = rng.choice(2, size=n, p=cls.contexts)
        actions = (rng.random(n)[:, None] > np.cumsum(cls.logging[x], axis=1)[:, :2]).sum(axis=1)
        rewards = (rng.random(n) < cls.clicks[x, actions]).astype(float)
        log = LoggedDecisions(actions, rewards, cls.logging[x, actions], 3, np.eye(2)[x])
        return log, cls.target[x]


# ---- what the estimates are ------------------------------------------------------------------------------------------


def enumerated(estimate, n=2):
    """The expectation of `estimate(log, target, x)` over all logs of n decisions with 0/1 rewards."""
    outcomes = []
    for x, a, r in itertools.product(range(2), range(3), range(2)):
        chance = World.contexts[x] * World.logging[x, a] * abs(1 - r - World.clicks[x, a])
        outcomes.append((chance, x, a, r))
    total = 0.0
    for rows in itertools.product(outcomes, repeat=n):
        chances, x, a, r = (np.array(column) for column in zip(*rows, strict=True))
        log = LoggedDecisions(a, r, World.logging[x, a], 3)
        total += chances.prod() * estimate(log, World.target[x], x)
    return total


def test_ips_and_doubly_robust_are_unbiased():
    """By enumeration of all 144 logs; the doubly robust one with a model that is wrong everywhere."""
    wrong = np.array([[0.9, -0.3, 0.0], [0.1, 2.0, 0.4]])
    assert enumerated(lambda log, target, x: ips(log, target).value) == pytest.approx(World.value, abs=1e-12)
    robust = enumerated(lambda log, target, x: doubly_robust(log, target, wrong[x]).value)
    assert robust == pytest.approx(World.value, abs=1e-12)
    direct = enumerated(lambda log, target, x: direct_method(log, target, wrong[x]).value)
    assert direct == pytest.approx(float(World.contexts @ (World.target * wrong).sum(axis=1)), abs=1e-12)
    assert abs(direct - World.value) > 0.04


@pytest.mark.parametrize("clip", [0.5, 1.5, 3.5, 4.5])
def test_clipping_lowers_the_value_by_what_it_cuts_off(clip):
    """`E[w·r] - E[(w - c)₊·r]`: a lower bound, and exact from the largest weight on, here 4."""
    weights = World.target / World.logging
    cut = np.maximum(weights - clip, 0.0) * World.clicks * World.logging
    expected = World.value - float(World.contexts @ cut.sum(axis=1))
    clipped = enumerated(lambda log, target, x: ips(log, target, clip=clip).value)
    assert clipped == pytest.approx(expected, abs=1e-12)
    assert clipped <= World.value + 1e-12
    assert (clipped == pytest.approx(World.value, abs=1e-12)) == (clip > weights.max())


@given(logs())
def test_on_policy_it_is_the_mean(drawn):
    """The policy that made the log: weights are 1, and value and error those of a mean."""
    log, _, _ = drawn
    for estimate in (ips(log, log.propensities), snips(log, log.propensities)):
        assert estimate.value == pytest.approx(log.rewards.mean(), abs=1e-12)
        assert estimate.standard_error == pytest.approx(log.rewards.std(ddof=1) / math.sqrt(len(log)), abs=1e-9)
        assert estimate.effective_sample_size == pytest.approx(len(log))
        assert (estimate.mean_weight, estimate.largest_weight) == pytest.approx((1.0, 1.0))


@given(logs())
def test_a_model_that_is_right_leaves_nothing_to_correct(drawn):
    """Rewards equal to the model's: doubly robust is the direct method. A model of zeros: it is IPS."""
    log, target, model = drawn
    right = model.copy()
    right[np.arange(len(log)), log.actions] = log.rewards
    assert doubly_robust(log, target, right).value == pytest.approx(direct_method(log, target, right).value, abs=1e-12)
    nothing, plain = doubly_robust(log, target, np.zeros_like(model)), ips(log, target)
    assert nothing.value == pytest.approx(plain.value, abs=1e-12)
    assert nothing.standard_error == pytest.approx(plain.standard_error, abs=1e-12)


@given(logs(), st.floats(-3.0, 3.0), st.floats(0.1, 3.0), st.randoms(use_true_random=False))
def test_units_and_order_do_not_matter(drawn, shift, scale, random):
    """Scaled rewards scale all values; a shift moves all but IPS; rows in another order change nothing."""
    log, target, model = drawn
    order = list(range(len(log)))
    random.shuffle(order)

    def moved(a, b, rows):
        columns = (log.actions[rows], a * log.rewards[rows] + b, log.propensities[rows])
        return LoggedDecisions(*columns, 3), target[rows], a * model[rows] + b

    for estimator in ESTIMATORS:
        takes = 3 if estimator in (direct_method, doubly_robust) else 2
        one = estimator(*(log, target, model)[:takes])
        other = estimator(*moved(scale, 0.0 if estimator is ips else shift, order)[:takes])
        by = 0.0 if estimator is ips else shift
        assert other.value == pytest.approx(scale * one.value + by, abs=1e-9)
        assert other.standard_error == pytest.approx(scale * one.standard_error, abs=1e-7)


@given(logs())
def test_snips_lies_among_the_rewards(drawn):
    """It is a weighted mean of them; IPS is not."""
    log, target, _ = drawn
    assert log.rewards.min() - 1e-9 <= snips(log, target).value <= log.rewards.max() + 1e-9


def test_the_probability_of_the_logged_action_is_enough():
    log, target = World.simulate(50, seed=1)
    chosen = target[np.arange(50), log.actions]
    assert ips(log, chosen) == ips(log, target)
    assert snips(log, chosen) == snips(log, target)


def test_intervals_cover_the_value():
    """400 logs of 1,000 decisions: of intervals of level .95, at least 348 (.87) contain the value.

    If they cover with a probability of .94 or more, fewer do with a probability of 7e-8 (binomial). Intervals of
    half the width, the planted fault, cover with .67.
    """
    trials, covered, half = 400, dict.fromkeys((ips, snips, doubly_robust), 0), 0
    for seed in range(trials):
        log, target = World.simulate(1_000, seed)
        for estimator in covered:
            estimate = estimator(log, target)
            covered[estimator] += estimate.low <= World.value <= estimate.high
            half += abs(estimate.value - World.value) <= (estimate.high - estimate.low) / 4
    assert min(covered.values()) >= 348
    assert half / len(covered) < 348


# ---- the reward model ------------------------------------------------------------------------------------------------


def test_no_row_is_predicted_by_a_model_that_saw_it():
    """Other rewards in the first fold change no prediction for it, and change those of the others."""
    log, _ = World.simulate(60, seed=2)
    rewards = log.rewards.copy()
    rewards[:12] = 1.0 - rewards[:12]
    other = LoggedDecisions(log.actions, rewards, log.propensities, 3, log.contexts)
    before, after = cross_fitted_rewards(log), cross_fitted_rewards(other)
    np.testing.assert_array_equal(before[:12], after[:12])
    assert (before[12:] != after[12:]).any(axis=1).all()


def test_each_model_solves_its_ridge_regression():
    """The definition, by the gradient of its objective at coefficients that the predictions determine."""
    log, _ = World.simulate(80, seed=3)
    predicted = cross_fitted_rewards(log, folds=2, ridge=0.7)[:40]
    rest = slice(40, 80)
    mean = log.rewards[rest].mean()
    design = np.hstack([np.ones((80, 1)), log.contexts])
    for arm in range(3):
        rows = np.flatnonzero(log.actions[rest] == arm) + 40
        gram = design[rows].T @ design[rows] + 0.7 * np.eye(3)
        expected = design[:40] @ (np.linalg.inv(gram) @ design[rows].T @ (log.rewards[rows] - mean)) + mean
        np.testing.assert_allclose(predicted[:, arm], expected, atol=1e-9)


def test_an_action_that_was_never_shown_is_predicted_the_mean():
    log = LoggedDecisions([0, 0, 0, 0], [1.0, 0.0, 1.0, 1.0], [0.5] * 4, arms=2)
    np.testing.assert_allclose(cross_fitted_rewards(log, folds=2)[:, 1], [1.0, 1.0, 0.5, 0.5])


# ---- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimates_are_labelled_wherever_they_are_shown(estimator):
    """As text, in a notebook in red, and in a list."""
    log, target = World.simulate(200, seed=4)
    estimate = estimator(log, target)
    for text in (str(estimate), repr([estimate])):
        assert "NOT PRIVATE: computed from exact data; do not publish" in text
        assert "95 % interval" in text
    assert '<p class="alarm"><b>NOT PRIVATE' in estimate._repr_html_()


def test_a_log_shows_no_row():
    log, _ = World.simulate(200, seed=4)
    assert repr(log) == "LoggedDecisions(200 decisions, 3 arms)"


def test_propensities_near_zero_are_warned_of():
    """Below 1/n and .01, with weights above 1, and not clipped."""
    log = LoggedDecisions([0, 1, 1, 1], [1.0, 0.0, 1.0, 0.0], [0.001, 0.9, 0.9, 0.9], arms=2)
    with pytest.warns(UserWarning, match=r"^NOT PRIVATE: 1 of the propensities are near 0, below 0\.01"):
        estimate = ips(log, [[0.5, 0.5]] * 4)
    assert any("near 0" in note for note in estimate.notes)
    clipped = ips(log, [[0.5, 0.5]] * 4, clip=5.0)
    assert (clipped.clipped, clipped.largest_weight) == (1, 5.0)
    assert not any("near 0" in note for note in clipped.notes)
    assert not any("near 0" in note for note in ips(log, log.propensities).notes)


def test_missing_actions_and_few_rows_are_noted():
    """A mean weight that is not 1 tells that the target shows what the log lacks; rare clicks, a rough interval."""
    log, target = World.simulate(2_000, seed=5)
    assert ips(log, target).notes == ()
    lacking = LoggedDecisions(np.zeros(2_000, dtype=int), log.rewards, np.full(2_000, 0.9), 3)
    (note, *_) = ips(lacking, [[0.2, 0.8, 0.0]] * 2_000).notes
    assert note.startswith("the mean weight is 0.222 and not 1")
    rewards = np.zeros(2_000)
    rewards[:5] = 1.0
    (note,) = ips(LoggedDecisions(log.actions, rewards, log.propensities, 3), log.propensities).notes
    assert note == "the estimate rests on about 5 rows, so the normal approximation is rough."


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"actions": [0, 2]}, "actions must be 0 to 1, as there are 2 arms, and some are not."),
        ({"actions": [0.0, 1.0]}, "actions must be a list of integers, one for each of two or more decisions, and"),
        (
            {"actions": ["left", "right"]},
            "actions must be a list of integers, one for each of two or more decisions, and",
        ),
        ({"actions": np.ma.masked_array([0, 1], mask=[0, 1])}, "actions must be a list of integers"),
        ({"rewards": [1.0]}, "rewards must have 2 numbers, one row for each decision, got 1."),
        ({"rewards": [1.0, math.nan]}, "rewards must be finite numbers, and some are not. Give 0, or what you"),
        ({"rewards": [1.0, "secret"]}, "rewards must be numbers, of type bool, int or float"),
        ({"rewards": [1.0, "2"]}, "rewards must be numbers, of type bool, int or float"),
        ({"contexts": np.array([["2026"], ["2027"]], dtype="M8[Y]")}, "contexts must be numbers, of type"),
        ({"propensities": [0.5, 0.0]}, "propensities must be above 0 and at most 1, and some are not: an action"),
        ({"propensities": [0.5, 1.1]}, "propensities must be above 0 and at most 1, and some are not: an action"),
        ({"contexts": [1.0, 2.0]}, "contexts must have 2 × any numbers, one row for each decision, got 2."),
        ({"arms": 0}, "arms must be"),
    ],
)
def test_what_is_no_log_is_rejected(change, why):
    """By a sentence without a value of a row."""
    with pytest.raises(InvalidInput) as raised:
        LoggedDecisions(**{"actions": [0, 1], "rewards": [1, 0], "propensities": [0.5, 0.5], "arms": 2} | change)
    assert str(raised.value).startswith(why)


@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS, lambda log, target: private_ips(log, target, 2.0, Privacy(1, 1e-6))]
)
@pytest.mark.parametrize(
    "target", [[[0.5, 0.6]] * 2, [[1.5, -0.5]] * 2, [[0.5, 0.5]], [[1.0]] * 2, [[math.nan] * 2] * 2]
)
def test_what_is_no_policy_is_rejected(estimator, target):
    log = LoggedDecisions([0, 1], [1, 0], [0.5, 0.5], 2)
    with pytest.raises(InvalidInput, match=r"^target must"):
        estimator(log, target)


def test_settings_are_checked():
    log = LoggedDecisions([0, 1], [1, 0], [0.5, 0.5], 2)
    for wrong in ({"clip": 0.0}, {"clip": math.inf}, {"level": 1.0}):
        with pytest.raises(InvalidInput, match=f"^{next(iter(wrong))} must"):
            ips(log, log.propensities, **wrong)
    with pytest.raises(InvalidInput, match=r"^no logged action has a chance under the target policy"):
        snips(log, [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidInput, match=r"^folds must be at most the number of decisions, 2, got 5"):
        doubly_robust(log, [[0.5, 0.5]] * 2)
    with pytest.raises(InvalidInput, match=r"^rewards must have 2 × 2 numbers"):
        doubly_robust(log, [[0.5, 0.5]] * 2, [[1.0]] * 2)
    for wrong in (0.0, math.nan, (1.0, 1.0), (2.0, 1.0), (1.0,), (0.0, math.inf)):
        with pytest.raises(InvalidInput, match=r"bound must"):
            private_ips(log, log.propensities, wrong, Privacy(1, 1e-6))


# ---- the private mean ------------------------------------------------------------------------------------------------

BUDGET = Privacy(1.0, 1e-6)


def one_reward(size, n=20, row=7):
    """n decisions of weight 2 without rewards, but for one."""
    rewards = np.zeros(n)
    rewards[row] = size
    return LoggedDecisions(np.zeros(n, dtype=int), rewards, np.full(n, 0.5), 1), np.ones(n)


@pytest.mark.privacy
@pytest.mark.parametrize("bound", [6.0, (-2.0, 4.0)])
@pytest.mark.parametrize("row", [0, 7, 19])
def test_the_tight_pair_uses_the_budget_and_no_more(bound, row):
    """One term from bound to bound, the same noise: the values are as far apart as the budget allows, and no farther.

    With a certificate of half the bound they would be twice as far apart, in standard deviations of the noise.
    """
    low, high = bound if isinstance(bound, tuple) else (0.0, bound)
    (one, target), (other, _) = one_reward(low / 2, row=row), one_reward(high / 2, row=row)
    for seed in range(3):
        first, second = (private_ips(log, target, bound, BUDGET, seed=seed) for log in (one, other))
        apart = (second.value - first.value) / first.noise_sd
        assert second.noise_sd == first.noise_sd
        assert 0.999 * BUDGET.mu < apart <= BUDGET.mu * (1 + 1e-9)


@pytest.mark.privacy
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(1e-300, 1.0))
def test_no_pair_is_farther_apart_than_the_tight_one(one, other, propensity):
    """Whatever the row becomes, in reward and propensity: terms are clipped, infinite ones too."""
    target = np.ones(5)
    values = [
        private_ips(LoggedDecisions([0] * 5, [0.25] * 4 + [reward], [0.5] * 4 + [p], 1), target, 3.0, BUDGET, seed=1)
        for reward, p in ((one, 0.5), (other, propensity))
    ]
    assert abs(values[0].value - values[1].value) / values[0].noise_sd <= BUDGET.mu * (1 + 1e-9)


@pytest.mark.privacy
def test_the_noise_is_there():
    """300 values of one log, of secret noise: their standard deviation is the stated one, within a quarter.

    The relative error of a standard deviation of 300 is .041, so that a quarter is 6 of them, below 1e-8; noise of half
    the size is caught for sure.
    """
    log, target = one_reward(3.0)
    values = np.array([private_ips(log, target, 6.0, BUDGET).value for _ in range(300)])
    stated = private_ips(log, target, 6.0, BUDGET).noise_sd
    assert stated == pytest.approx(6.0 / BUDGET.mu / 20, rel=1e-6)
    assert values.std(ddof=1) == pytest.approx(stated, rel=0.25)
    assert abs(values.mean() - 0.3) < 6 * stated / math.sqrt(300)


@pytest.mark.privacy
def test_everything_shown_follows_from_the_release():
    """Logs of other terms whose noisy means agree show the same error and interval: nothing else is read."""
    few, target = one_reward(2.0)  # one term of 4
    many = LoggedDecisions(few.actions, np.full(20, 0.1), few.propensities, 1)  # 20 terms of 0.2: the same sum
    one, other = (private_ips(log, target, 6.0, BUDGET, seed=3) for log in (few, many))
    for name in ("value", "standard_error", "noise_sd", "low", "high", "rows", "bounds"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6)  # a step of the lattice
    assert str(one) == str(other)


@pytest.mark.privacy
def test_the_ledger_is_charged():
    """Once for each estimate, and what does not fit is not computed."""
    ledger = Ledger(BUDGET)
    log, target = one_reward(1.0)
    estimate = private_ips(log, target, 6.0, BUDGET, ledger=ledger)
    assert ledger.spent == estimate.guarantee.delivered
    with pytest.raises(BudgetExhausted):
        private_ips(log, target, 6.0, Privacy(0.1, 1e-9), ledger=ledger)


def test_the_private_interval_covers_the_clipped_value():
    """At a mean of 0, at a small one and in the middle; 400 logs each, at least 348 covered, as above."""
    for chance in (0.0, 0.002, 0.3):
        covered = 0
        for seed in range(400):
            rewards = np.random.default_rng(seed).random(500) < chance
            log = LoggedDecisions(np.zeros(500, dtype=int), rewards, np.full(500, 0.25), 1)
            estimate = private_ips(log, np.full(500, 1.0), 4.0, Privacy(4.0, 1e-6), seed=seed)
            covered += estimate.low <= 4.0 * chance <= estimate.high
        assert covered >= 348


def test_the_private_error_is_a_bound_on_the_true_one():
    """With terms at the bounds it is the error of the mean and of the noise; otherwise it is larger."""
    log = LoggedDecisions([0] * 4000, [0.0, 1.0] * 2000, [0.25] * 4000, 1)
    estimate = private_ips(log, np.ones(4000), 4.0, Privacy(50.0, 1e-6), seed=0)
    exact = math.hypot(ips(log, np.ones(4000), clip=9.0).standard_error, estimate.noise_sd)
    assert estimate.standard_error == pytest.approx(exact, rel=0.01)
    loose = private_ips(log, np.ones(4000), 8.0, Privacy(50.0, 1e-6), seed=0)
    assert loose.standard_error > exact


def test_the_private_value_prints_its_guarantee():
    """And says so if it is a simulation; zero-out needs half the noise."""
    log, target = one_reward(1.0)
    estimate = private_ips(log, target, 6.0, BUDGET)
    assert "NOT PRIVATE" not in str(estimate) + estimate._repr_html_()
    assert "(1, 1e-06)-differentially private" in str(estimate)
    assert "terms clipped to 0 to 6" in repr(estimate)
    assert "Simulation: not private" in str(private_ips(log, target, 6.0, BUDGET, seed=1))
    assert 'class="alarm"' in private_ips(log, target, 6.0, BUDGET, seed=1)._repr_html_()
    half = private_ips(log, target, 6.0, BUDGET, neighbours="zero-out")
    assert half.noise_sd == pytest.approx(estimate.noise_sd / 2)


# ---- the Open Bandit sample ------------------------------------------------------------------------------------------


def test_the_random_log_tells_what_the_page_says_of_bts(data_file):
    """The figures of docs/off_policy.md: values, errors and effective sample size of two policies."""
    from taciturn.datasets import open_bandit

    logs = {}
    for policy in ("random", "bts"):
        name = f"open_bandit_small_{policy}_all.csv"
        data_file(name, f"{name}.gz")
        log = open_bandit(policy)
        logs[policy] = log, LoggedDecisions(log.actions, log.rewards, log.propensities, log.arms)
    (random, random_log), (bts, bts_log) = logs["random"], logs["bts"]
    shares = np.zeros((4, 80))
    np.add.at(shares, (bts.positions, bts.actions), 1.0)
    target = (shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))[random.positions]
    estimates = [estimator(random_log, target) for estimator in ESTIMATORS]
    assert [round(estimate.value, 5) for estimate in estimates] == [0.00504, 0.00525, 0.00471, 0.00528]
    assert [round(estimate.standard_error, 5) for estimate in estimates] == [0.00128, 0.00134, 0.00001, 0.00128]
    assert round(estimates[0].effective_sample_size) == 2639
    for estimate in (estimates[0], estimates[1], estimates[3]):
        assert estimate.low < bts.rewards.mean() < estimate.high
    with pytest.warns(UserWarning, match=r"^NOT PRIVATE: 4 of the propensities are near 0, below 0\.0001:"):
        back = ips(bts_log, np.full(10_000, 1 / 80))
    assert (round(back.value, 5), round(back.standard_error, 5)) == (0.00236, 0.00087)
    assert round(back.effective_sample_size) == 340
    assert back.low < random.rewards.mean() < back.high
