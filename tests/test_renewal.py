"""What is promised to someone who is in a stream and in its successor: costs add, relation by relation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from taciturn import (
    BLT,
    FTRL,
    IGD,
    QFTL,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    Unprovable,
    User,
    every,
    pftrl,
    pqftl,
    private_sum,
)
from taciturn.estimators.river import PrivateLogisticRegression as RiverLogistic
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from taciturn.estimators.stream import Stream
from taciturn.kernel.accounting.cost import Cost, gaussian
from taciturn.kernel.accounting.guarantee import Charge
from taciturn.kernel.stream.loop import Definition, Loop
from taciturn.kernel.stream.state import standing_of
from taciturn.plan import recommend
from taciturn.regret import ftrl_regret_bound
from taciturn.renewal import Promise, Renewal


def guarantee(epsilon, unit=None, neighbours="replace"):
    settings = {} if unit is None else {"unit": unit}
    return private_sum(1, 1.0, Privacy(epsilon, 1e-6), 100, neighbours=neighbours, **settings).guarantee


@pytest.mark.privacy
@pytest.mark.parametrize("epsilons", [(1.0, 1.0), (1.0, 0.5, 2.0)])
def test_someone_in_all_streams_pays_the_sum(epsilons):
    """mu² adds under each relation; the sum of epsilons is more, and one stream alone less."""
    each = [guarantee(epsilon) for epsilon in epsilons]
    renewal = Renewal((0.0,), tuple(map(Charge.of, each[:-1])))
    promise = renewal.promise(each[-1])
    for relation, costs in (("replace", [g.delivered for g in each]), ("zero-out", [g.other for g in each])):
        mu = math.sqrt(sum(cost.mu_squared for cost in costs))
        assert promise.in_all[relation] == pytest.approx(gaussian(mu**2).epsilon(1e-6), rel=1e-3)
        assert promise.in_all[relation] >= gaussian(mu**2).epsilon(1e-6)
        alone = [one[relation] for one in promise.in_one]
        assert max(alone) < promise.in_all[relation] < sum(alone) + 1e-9
    assert promise.in_one == [g.epsilons for g in each]
    assert "mu² adds" in str(promise)
    assert promise.as_data()["streams"] == len(epsilons)


def test_the_unit_is_the_weaker_one():
    of_users, of_rows = Charge.of(guarantee(1.0, User(4))), Charge.of(guarantee(1.0))
    assert Promise((of_users, of_users)).unit == "user"
    assert Promise((of_users, of_rows)).unit == "example"
    assert "A user with rows in both streams" in str(Promise((of_users, of_users)))
    assert "A row that is in both streams" in str(Promise((of_users, of_rows)))


@pytest.mark.privacy
def test_deltas_of_plain_costs_add():
    """Of a search, or a fit by objective perturbation, an (epsilon, delta) is all that is known: both add."""
    plain = Charge("example", 1e-6, (("replace", Cost(plain_epsilon=0.5, plain_delta=0.999e-6)),))
    of_sum = Charge.of(guarantee(1.0))
    for charges, delta, epsilon in (
        ((plain, of_sum), 2e-6, 1.5),
        ((of_sum, of_sum, plain), 2e-6, 0.5 + Promise((of_sum, of_sum)).in_all["replace"]),
        ((plain, plain), 2e-6, 1.0),
    ):
        promise = Promise(charges)
        assert promise.delta == pytest.approx(delta)
        assert promise.in_all["replace"] == pytest.approx(epsilon, rel=1e-3)
        assert "epsilon and delta of plain costs add" in str(promise)


def test_relations_that_differ_have_no_common_promise():
    labels = Charge("example", 1e-6, (("label", gaussian(0.1)),))
    promise = Promise((labels, Charge.of(guarantee(1.0))))
    assert promise.in_all == {}
    assert "no common promise" in str(promise)


def test_renewals_are_plain_data():
    first = Renewal((0.1, 1e-17), (Charge.of(guarantee(1.0)),))
    again = Renewal.from_data(json.loads(json.dumps(first.as_data())))
    assert again == first
    assert len(Renewal.of([0.2, 0.3], guarantee(0.5), before=first).charges) == 2
    with pytest.raises(InvalidInput, match="released model"):
        Renewal((math.nan,), first.charges)
    with pytest.raises(InvalidInput, match="released model"):
        Renewal((0.0,), ())


@pytest.mark.parametrize("center", [(0.5, -0.25), (4.0, 3.0)])
def test_learners_start_from_the_center(center):
    """Before the first release the point is the center, on the domain; with no data it stays there."""
    inside = np.array(L2Ball(1.0).project(np.array(center)))
    hinge, squared = Problem(Hinge(), L2Ball(1.0), 2), Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0)
    for learner in (FTRL(hinge, center=center), QFTL(squared, center=center)):
        private = Private(learner, BLT(), every(1), Privacy(1.0, 1e-6), 10, seed=1)
        np.testing.assert_allclose(private.start().point, inside)
        assert learner.certificate == type(learner)(learner.problem).certificate
    with pytest.raises(InvalidInput, match="released model of 2 finite numbers"):
        FTRL(hinge, center=(1.0,))
    with pytest.raises(Unprovable, match="starts at 0"):
        ftrl_regret_bound(Private(FTRL(hinge, center=center), BLT(), every(1), Privacy(1.0, 1e-6), 10))


def test_the_point_minimises_what_is_stated():
    """FTRL: Ĝ·x + (alpha·t/2)‖x‖² + (lam/2)‖x - z‖²; PQFTL: the same with squares. Gradients vanish there."""
    rng = np.random.default_rng(1)
    z, noisy = rng.normal(size=3) / 10, rng.normal(size=3)
    learner = FTRL(Problem(Hinge(), L2Ball(50.0), 3, ridge=0.1), center=tuple(z))
    x = learner.decide(40, noisy, 2.0)
    np.testing.assert_allclose(noisy + 0.1 * 40 * x + learner.regulariser(40, 2.0) * (x - z), 0.0, atol=1e-12)
    squares = QFTL(Problem(Squared(), L2Ball(50.0), 2, label_bound=1.0, ridge=0.1), extra_ridge=0.3, center=(0.1, 0.2))
    noisy = np.array([9.0, 1.0, 8.0, 3.0, -2.0])
    V = np.array([[9.0, 1.0 / math.sqrt(2.0)], [1.0 / math.sqrt(2.0), 8.0]])
    x = squares.decide(40, noisy, 2.0)
    left = V @ x - noisy[3:] / squares.w + 0.1 * 40 * x + squares.pull(2.0) * (x - np.array([0.1, 0.2]))
    np.testing.assert_allclose(left, 0.0, atol=1e-9)


@pytest.mark.parametrize("recipe", ["pqftl", "pftrl"])
def test_fast_paths_and_the_definition_agree_with_a_center(recipe):
    X = np.random.default_rng(2).uniform(-0.5, 0.5, (400, 3))
    y = np.sign(X[:, 0])
    if recipe == "pqftl":
        made = pqftl(
            Problem(Squared(), L2Ball(2.0), 3, label_bound=1.0), Privacy(1.0, 1e-6), 400, schedule=every(7), seed=1
        )
    else:
        made = pftrl(Problem(Hinge(), L2Ball(2.0), 3), Privacy(1.0, 1e-6), 400, schedule=every(7), seed=1)
    from dataclasses import replace

    private = replace(made, learner=replace(made.learner, center=(0.5, 0.1, -0.1)))
    _, fast = private.run(private.start(), X, y)
    slow = Loop(Definition(private.learner, private.calibrated), private.learner, private.timetable, 1)
    _, defined = slow(standing_of(private.start()), X, y)
    np.testing.assert_allclose(fast.points, defined.points, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("loss", "method"), [("squared", "auto"), ("hinge", "auto"), ("logistic", "igd")])
def test_a_plan_follows_a_renewal(loss, method):
    classes = 0 if loss == "squared" else 2
    settings = Settings(loss, epsilon=1.0, feature_bound=1.0, label_bound=1.0, classes=classes, method=method, seed=1)
    plan = settings.plan(2, 1_000)
    renewal = Renewal((0.3, 0.2, 0.1), (Charge.of(plan.private.guarantee),))
    follows = plan.following(renewal)
    assert follows.starts_there == (method == "auto")
    stream = Stream(follows)
    np.testing.assert_array_equal(stream.model, renewal.point)
    assert follows.private.total_cost == plan.private.total_cost
    with pytest.raises(InvalidInput, match="a model of 1 weights is not one of 3"):
        plan.following(Renewal((0.3,), renewal.charges))
    if method == "igd":
        assert "learns anew" in follows.why
        assert isinstance(follows.private.learner, IGD)
        assert isinstance(follows.private.mechanism, Gaussian)


def rows(count, seed=1):
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, (count, 2))
    return X, X @ [1.0, -0.5]


@pytest.mark.parametrize("forget", [None, (500, 2_000)])
def test_a_successor_knows_what_was_learnt(forget):
    """After few rows it is better than a stream that begins at 0, at the same budget: nothing was paid for that."""
    X, y = rows(30_000)
    settings = {"feature_bound": 1.0, "label_bound": 1.0, "horizon": 20_000, "forget": forget, "fit_intercept": False}
    old = PrivateLinearRegression(epsilon=2.0, seed=1, **settings).partial_fit(X[:20_000], y[:20_000])
    errors = []
    for renew in (old.renewal_, None):
        new = PrivateLinearRegression(epsilon=0.5, seed=2, renew=renew, **settings)
        new.partial_fit(X[20_000:20_600], y[20_000:20_600])
        errors.append(np.linalg.norm(new.coef_ - [1.0, -0.5]))
    assert errors[0] < 0.7 * errors[1]
    assert (
        "in both streams"
        in PrivateLinearRegression(epsilon=0.5, seed=2, renew=old.renewal_, **settings)
        .partial_fit(X[:600], y[:600])
        .guarantee_
    )


def test_estimators_chain():
    X, y = rows(3_000)
    labels = y > 0
    first = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=[False, True], horizon=1_000, seed=1)
    first.partial_fit(X[:1_000], labels[:1_000])
    second = PrivateLinearSVC(
        epsilon=1.0, feature_bound=1.0, classes=[False, True], horizon=1_000, seed=1, renew=first.renewal_
    ).partial_fit(X[1_000:2_000], labels[1_000:2_000])
    assert len(second.renewal_.charges) == 2
    third = RiverLogistic(
        features=["a", "b"], epsilon=1.0, feature_bound=1.0, horizon=1_000, seed=1, renew=second.renewal_
    )
    for (a, b), label in zip(X[2_000:].tolist(), labels[2_000:].tolist(), strict=True):
        third.learn_one({"a": a, "b": b}, label)
    assert "in all 3 streams" in third.guarantee
    assert len(third.renewal.charges) == 3
    none = RiverLogistic(features=["a", "b"], epsilon=1.0, feature_bound=1.0, horizon=1_000, seed=1)
    none.learn_one({"a": 0.1, "b": 0.1}, True)
    late = Stream(recommend(Problem(Logistic(), L2Ball(1.0), 2), Privacy(1.0, 1e-6), 100, seed=1))
    with pytest.raises(InvalidInput, match="nothing was released yet"):
        _ = late.renewal


@pytest.mark.privacy
def test_a_ledger_is_charged_for_both():
    X, y = rows(400)
    ledger = Ledger(Privacy(5.0, 1e-6))
    settings = {"feature_bound": 1.0, "label_bound": 1.0, "horizon": 200, "ledger": ledger}
    old = PrivateLinearRegression(epsilon=1.0, **settings).partial_fit(X[:200], y[:200])
    new = PrivateLinearRegression(epsilon=1.0, renew=old.renewal_, **settings).partial_fit(X[200:], y[200:])
    both = new.plan_.renewal.promise(new.plan_.private.guarantee).in_all["replace"]
    assert ledger.reserved.epsilon(1e-6) == pytest.approx(both, rel=1e-6)
