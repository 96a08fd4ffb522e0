"""Bandits as their users see them: decisions, rewards that come late or never, users, checkpoints, the guarantee."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from taciturn import (
    BudgetExhausted,
    InvalidInput,
    L2Ball,
    Ledger,
    Privacy,
    Problem,
    Squared,
    StateConflict,
    Unprovable,
    geometric,
    linear_bandit,
    pqftl,
)
from taciturn.bandits import Decision, PrivateLinUCB, PrivateLogisticBandit, PrivateThompson
from taciturn.bandits.choices import UCB, EpsilonGreedy
from taciturn.bandits.private_bandit import PrivateBandit
from taciturn.estimators.stream import PrivacyWarning
from taciturn.kernel.npz import read_npz, write_npz

OFTEN = geometric(1.1)
FRONTS = {
    "ucb": lambda **s: PrivateLinUCB(3, 2, 1.0, horizon=200, schedule=OFTEN, **s),
    "ucb, per arm": lambda **s: PrivateLinUCB(3, 2, 1.0, horizon=200, per_arm=True, schedule=OFTEN, **s),
    "thompson": lambda **s: PrivateThompson(3, 2, 1.0, horizon=200, schedule=OFTEN, **s),
    "logistic": lambda **s: PrivateLogisticBandit(3, 2, 1.0, horizon=200, schedule=OFTEN, **s),
}


def contexts(n: int, per_arm: bool, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2) if per_arm else (n, 3, 2))


def reward(decision: Decision) -> float:
    return 1.0 if decision.action == 1 else -1.0


@pytest.mark.parametrize("name", FRONTS)
def test_it_chooses_and_learns(name):
    """One decision after the other, and the same in batches of one: the same models."""
    one, other = FRONTS[name](seed=1), FRONTS[name](seed=1)
    for x in contexts(40, one.per_arm):
        decision = one.choose(x)
        one.learn(decision, reward(decision))
        batch = other.choose_batch(x[None])
        assert batch[0][:3] == decision[:3]
        other.learn_batch(batch, [reward(batch[0])])
    one.flush()
    other.flush()
    assert one.t == one.decisions == 40
    assert one.k == other.k > 10
    assert np.array_equal(one.model.theta, other.model.theta)


def test_the_models_are_those_of_the_rows():
    """What enters is the context of the played arm, at the round of its decision."""
    bandit = FRONTS["ucb"](seed=1)
    X = contexts(30, per_arm=False)
    played, rewards = [], []
    for x in X:
        decision = bandit.choose(x)
        bandit.learn(decision, reward(decision))
        played.append(x[decision.action])
        rewards.append(reward(decision))
    bandit.flush()
    private = linear_bandit(2, Privacy(1.0, 1e-6), 200, schedule=OFTEN, seed=1)
    state, _ = private.run(private.start(), played, private.learner.labels(rewards))
    assert np.array_equal(state.point[-2:], bandit.model.theta[0])


@pytest.mark.privacy
def test_the_order_of_rewards_does_not_matter():
    """Nothing that is published depends on when a reward came, as long as it came in time."""
    made = []
    for order in (range(30), reversed(range(30)), np.random.default_rng(1).permutation(30)):
        bandit = FRONTS["ucb"](seed=1, wait=30)
        decisions = bandit.choose_batch(contexts(30, per_arm=False))
        for i in order:
            bandit.learn(decisions[int(i)], (-1.0) ** i)
        more = bandit.choose_batch(contexts(30, per_arm=False, seed=1))
        made.append((bandit.model.theta, more.actions, bandit.t, bandit.k))
    for theta, actions, t, k in made[1:]:
        assert np.array_equal(theta, made[0][0])
        assert np.array_equal(actions, made[0][1])
        assert (t, k) == made[0][2:]


@pytest.mark.privacy
def test_releases_are_made_by_counting_decisions():
    """With rewards or without: the same rounds enter at the same calls, and the same number of models is released."""
    silent, answered = FRONTS["ucb"](seed=1, wait=5), FRONTS["ucb"](seed=1, wait=5)
    for x in contexts(60, per_arm=False):
        silent.choose(x)
        decision = answered.choose(x)
        answered.learn(decision, 1.0)
        assert (silent.t, silent.k) == (answered.t, answered.k)
    assert silent.t <= 60 - 5
    assert silent.k > 5


@pytest.mark.privacy
@pytest.mark.parametrize("default", [None, -1.0])
def test_a_late_reward_is_rejected_and_a_missing_one_has_no_influence(default):
    """By default; or it is the default reward."""
    X = contexts(4, per_arm=False)
    bandit = FRONTS["ucb"](seed=1, wait=2, default_reward=default)
    decisions = [bandit.choose(x) for x in X]
    with pytest.raises(StateConflict, match="too late"):
        bandit.learn(decisions[1], 1.0)
    bandit.learn(decisions[2], 1.0)
    bandit.flush()
    private = linear_bandit(2, Privacy(1.0, 1e-6), 200, schedule=OFTEN, seed=1)
    played = np.array([x[decision.action] for x, decision in zip(X, decisions, strict=True)])
    if default is None:
        played[[0, 1, 3]] = 0.0
    none = default or 0.0
    state, _ = private.run(private.start(), played, private.learner.labels([none, none, 1.0, none]))
    assert np.array_equal(state.point[-2:], bandit.model.theta[0])


def test_a_decision_has_one_reward():
    bandit = FRONTS["ucb"](seed=1)
    decision = bandit.choose(contexts(1, per_arm=False)[0])
    bandit.learn(decision, 0.5)
    with pytest.raises(StateConflict, match="one reward"):
        bandit.learn(decision, 0.5)
    with pytest.raises(InvalidInput, match="not made here"):
        bandit.learn(decision._replace(round=2), 0.5)
    with pytest.raises(InvalidInput, match="finite"):
        bandit.learn(decision, np.nan)
    for no_number in ("yes", "1", np.timedelta64(1, "s"), np.datetime64("2026-01-01")):
        with pytest.raises(InvalidInput, match="must be numbers"):
            bandit.learn(decision, no_number)
    for not_finite in (10**400, None, np.ma.masked):
        with pytest.raises(InvalidInput, match="finite"):
            bandit.learn(decision, not_finite)
    with pytest.raises(InvalidInput, match="got a float"):
        bandit.learn(1.0, 0.5)
    with pytest.raises(InvalidInput, match="as integers"):
        bandit.learn_batch([1.0], [0.5])


@pytest.mark.privacy
@pytest.mark.parametrize("seed", [1, None])
def test_a_decision_of_another_bandit_is_not_learnt(tmp_path, seed):
    """Its round is the round of another visitor here; a bandit that was loaded is the one that was dumped."""
    x = contexts(1, per_arm=False)
    one, other = FRONTS["ucb"](seed=seed, wait=5), FRONTS["ucb"](seed=seed, wait=5)
    decision, batch, _ = one.choose(x[0]), one.choose_batch(x), other.choose_batch(np.repeat(x, 2, axis=0))
    for learn in (
        lambda: other.learn(decision, 1.0),
        lambda: other.learn_batch(batch, [1.0]),
        lambda: other.learn_batch(batch[:1], [1.0]),
        lambda: other.learn_batch([other.choose(x[0]), decision], [1.0, 1.0]),
        lambda: one.learn(Decision(*decision[:3]), 1.0),
    ):
        with pytest.raises(InvalidInput, match="not made here"):
            learn()
    one.dump(tmp_path / "bandit")
    resumed = FRONTS["ucb"](seed=seed, wait=5).load(tmp_path / "bandit")
    resumed.learn(decision, 1.0)
    resumed.learn_batch(batch, [1.0])
    with pytest.raises(StateConflict, match="one reward"):
        resumed.learn(decision.round, 1.0)  # a round says of no stream


@pytest.mark.privacy
def test_a_decision_that_was_lost_is_not_one_of_the_bandit_that_goes_on(tmp_path):
    """Its round was taken again, by another visitor."""
    x = contexts(1, per_arm=False)[0]
    first = FRONTS["ucb"](wait=50)
    known = first.choose(x)
    first.dump(tmp_path / "bandit")
    lost = first.choose(x)
    second, third = (FRONTS["ucb"](wait=50).load(tmp_path / "bandit") for _ in range(2))
    again, other = second.choose(x), third.choose(x)
    assert again.round == other.round == lost.round
    for foreign in (lost, other):
        with pytest.raises(InvalidInput, match="not made here"):
            second.learn_batch([known, foreign], [1.0, 1.0])
    second.dump(tmp_path / "later")
    later = FRONTS["ucb"](wait=50).load(tmp_path / "later")
    later.learn_batch([known, later.choose(x), again], [1.0, 0.5, -1.0])
    with pytest.raises(InvalidInput, match="not made here"):
        later.learn(known._replace(round=again.round), 1.0)


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("changed", "error"),
    [((0, 1.0), "too late"), ((2, 0.5), "one reward"), ((3, -1.0), "one reward"), ((6, np.inf), "finite")],
    ids=["late", "twice", "twice in the call", "not finite"],
)
def test_a_reward_that_is_rejected_does_not_reject_those_of_others(changed, error):
    """Two visits that differ in it, given in one call whose error is passed over, differ in one row."""
    rewards = {3: -1.0, 4: 1.0, 5: -1.0}
    made = []
    for more in ((), (changed,)):
        bandit = FRONTS["ucb"](seed=1, wait=6)
        decisions = [bandit.choose(x) for x in contexts(8, per_arm=False)]
        bandit.learn(decisions[2], 0.5)
        given = [*rewards.items(), *more]
        with (
            pytest.raises((InvalidInput, StateConflict), match=f"{error}.*are stored")
            if more
            else contextlib.nullcontext()
        ):
            bandit.learn_batch([decisions[number] for number, _ in given], [value for _, value in given])
        bandit.flush()
        made.append(bandit.model.theta)
    assert np.array_equal(*made)


@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("seed", [1, None])
def test_it_resumes_with_decisions_that_wait(tmp_path, name, seed):
    """After a checkpoint a bandit goes on as if there had been none."""
    X = contexts(40, "per arm" in name)
    straight, first = FRONTS[name](seed=seed, wait=7), FRONTS[name](seed=seed, wait=7)
    for bandit in (straight, first):
        decisions = [bandit.choose(x) for x in X[:20]]
        bandit.learn_batch(decisions[13:17], [1.0, -1.0, 1.0, 1.0])
    first.dump(tmp_path / "bandit")
    resumed = FRONTS[name](seed=seed, wait=7).load(tmp_path / "bandit")
    assert resumed.decisions == 20
    assert (resumed.t, resumed.k) == (first.t, first.k)
    resumed.learn(18, -1.0)
    straight.learn(18, -1.0)
    with pytest.raises(StateConflict):
        resumed.learn(15, 1.0)
    mine, theirs = ([bandit.choose(x) for x in X[20:]] for bandit in (resumed, straight))
    if seed is not None:
        assert [each[:3] for each in mine] == [each[:3] for each in theirs]
    with pytest.raises(StateConflict):
        resumed.load(tmp_path / "bandit")


@pytest.mark.parametrize("changed", [{"wait": 6}, {"default_reward": 0.5}, {"default_reward": None}, {"epsilon": 2.0}])
def test_a_checkpoint_belongs_to_what_decides_the_rows(tmp_path, changed):
    """The rule by which arms are chosen may change."""

    def made(kind: type[PrivateBandit] = PrivateThompson, **settings: object) -> PrivateBandit:
        return kind(**{"arms": 3, "dimension": 2, "epsilon": 1.0, "wait": 5, "default_reward": 0.0} | settings)

    bandit = made(horizon=200)
    bandit.choose(contexts(1, per_arm=False)[0])
    bandit.dump(tmp_path / "bandit")
    with pytest.raises(StateConflict, match="the same") as caught:
        made(horizon=200, **changed).load(tmp_path / "bandit")
    assert "Private" not in str(caught.value)
    assert made(horizon=200, width=0.9).load(tmp_path / "bandit").decisions == 1
    assert made(PrivateLinUCB, horizon=200).load(tmp_path / "bandit").decisions == 1


def test_the_rewards_of_a_logistic_bandit_decide_its_rows(tmp_path):
    FRONTS["logistic"]().dump(tmp_path / "bandit")
    with pytest.raises(StateConflict, match="range of rewards"):
        FRONTS["logistic"](low=-1.0).load(tmp_path / "bandit")


def test_an_old_checkpoint_is_rejected_in_the_words_of_bandits(tmp_path):
    bandit = FRONTS["ucb"]()
    bandit.dump(tmp_path / "bandit")
    bandit.choose_batch(contexts(30, per_arm=False))
    bandit.flush()
    with pytest.raises(StateConflict, match="begin a new bandit") as caught:
        FRONTS["ucb"]().load(tmp_path / "bandit")
    assert "fork" not in str(caught.value)


@pytest.mark.privacy
@pytest.mark.parametrize("newer", ["state", "decisions"])
def test_decisions_of_another_time_than_the_state_are_rejected(tmp_path, newer):
    """Otherwise a visitor's row would enter twice, or that of one at the round of another."""
    bandit, x = FRONTS["ucb"](seed=1, wait=5), contexts(20, per_arm=False)
    files = []
    for part in (x[:10], x[10:]):
        bandit.choose_batch(part)
        bandit.flush()
        bandit.dump(tmp_path / "bandit")
        files.append(read_npz(io.BytesIO((tmp_path / "bandit").read_bytes())))
    assert len({int(file["extra/bandit.first"]) for file in files}) == 2
    state, decisions = files[::-1] if newer == "state" else files
    with open(tmp_path / "mixed", "wb") as mixed:
        own = {name: array for name, array in decisions.items() if name.startswith("extra/bandit.")}
        write_npz(mixed, state | own)
    with pytest.raises(StateConflict, match="do not follow its state"):
        FRONTS["ucb"](seed=1, wait=5).load(tmp_path / "mixed")


@pytest.mark.privacy
def test_a_ledger_in_a_file_notices_an_old_checkpoint_in_another_process(tmp_path):
    """The same rounds are not released twice, with other noise each time."""
    script = (
        "import sys, numpy as np\n"
        "from taciturn import StateConflict\n"
        "from taciturn.bandits import PrivateLinUCB\n"
        "bandit = PrivateLinUCB(3, 2, 1.0, horizon=200, ledger=sys.argv[1])\n"
        "try:\n    bandit.load(sys.argv[2])\n"
        "except StateConflict:\n    sys.exit(3)\n"
        "bandit.choose_batch(np.ones((30, 3, 2)))\n"
        "bandit.flush()\n"
    )
    ledger = str(tmp_path / "budget.db")
    Ledger.create(ledger, Privacy(1.0, 1e-6))
    PrivateLinUCB(3, 2, 1.0, horizon=200, ledger=ledger).dump(tmp_path / "bandit")
    run = [sys.executable, "-c", script, ledger, str(tmp_path / "bandit")]
    assert [subprocess.run(run, check=False).returncode for _ in range(2)] == [0, 3]


def test_paths_that_cannot_be_written_are_named(tmp_path):
    bandit = FRONTS["ucb"]()
    with pytest.raises(InvalidInput, match=r"the folder of .*none/x\.npz does not exist"):
        bandit.dump(tmp_path / "none" / "x.npz")
    with pytest.raises(InvalidInput, match="is a folder"):
        bandit.dump(tmp_path)
    for act in (bandit.dump, FRONTS["ucb"]().load):
        with pytest.raises(InvalidInput, match="expected the path of a file, got a NoneType"):
            act(None)
    with pytest.raises(InvalidInput, match=r"does not exist\. Give the file of a dumped stream"):
        FRONTS["ucb"]().load(tmp_path / "none")
    assert not list(tmp_path.iterdir())


@pytest.mark.privacy
def test_users_are_bounded():
    """A user's second decision takes its round without influence."""
    made = []
    for last in (1.0, -1.0):
        bandit = FRONTS["ucb, per arm"](seed=1, rows_per_user=1)
        for user, value in (("anna", 1.0), ("bob", -1.0), ("anna", last)):
            bandit.learn(bandit.choose([0.6, 0.8], user=user), value)
        bandit.flush()
        made.append(bandit.model.theta)
    assert np.array_equal(*made)
    with pytest.raises(InvalidInput, match="an id for each"):
        bandit.choose([0.6, 0.8])
    with pytest.raises(InvalidInput, match="not protected"):
        FRONTS["ucb"](seed=1).choose(contexts(1, per_arm=False)[0], user="anna")


@pytest.mark.privacy
def test_a_visitor_without_an_id_has_no_influence():
    """As the guarantee says; a call that names no user is an error."""
    made = []
    for value in (1.0, -1.0):
        bandit = FRONTS["ucb, per arm"](seed=1, rows_per_user=1)
        bandit.learn(bandit.choose([0.6, 0.8], user="anna"), 1.0)
        bandit.learn(bandit.choose([0.6, 0.8], user=None), value)
        bandit.flush()
        assert bandit.t == 2
        made.append(bandit.model.theta)
    assert np.array_equal(*made)
    assert "rows without an id are without influence" in str(bandit.guarantee)


def test_a_visitor_without_an_id_may_be_a_user_of_its_own():
    bandit = FRONTS["ucb, per arm"](seed=1, rows_per_user=1, without_id="own")
    for value in (1.0, -1.0):
        bandit.learn(bandit.choose([0.6, 0.8]), value)
    bandit.flush()
    assert bandit.t == 2


def test_the_guarantee_says_joint_dp():
    text = str(FRONTS["ucb"]().guarantee)
    assert "(1, 1e-06)-DP in one visitor's contexts and reward" in text
    assert text.endswith("what a visitor is shown depends on that visitor's own context; hence joint DP.")


def test_the_ledger_is_charged():
    ledger = Ledger(Privacy(1.0, 1e-6))
    bandit = FRONTS["ucb"](ledger=ledger)
    decision = bandit.choose(contexts(1, per_arm=False)[0])
    bandit.learn(decision, 1.0)
    bandit.flush()
    assert 0.0 < bandit.spent.epsilon <= 1.0
    with pytest.raises(BudgetExhausted):
        FRONTS["ucb"](ledger=ledger).choose(contexts(1, per_arm=False)[0])


def test_past_the_horizon_it_still_chooses():
    with pytest.warns(PrivacyWarning, match="Nothing useful can be learnt"):
        bandit = PrivateLinUCB(3, 2, 1.0, horizon=5, seed=1)
    bandit.choose_batch(contexts(5, per_arm=False))
    with pytest.raises(BudgetExhausted, match="learn=False"):
        bandit.choose(contexts(1, per_arm=False)[0])
    decision = bandit.choose(contexts(1, per_arm=False)[0], learn=False)
    assert decision.round == 0
    with pytest.raises(InvalidInput, match="learn=False"):
        bandit.learn(decision, 1.0)


@pytest.mark.parametrize("name", ["ucb", "ucb, per arm"])
def test_bad_contexts_are_rejected_before_anything_changes(name):
    bandit = FRONTS[name](seed=1)
    x = contexts(1, bandit.per_arm)[0]
    for bad in (x[..., :1], np.full_like(x, np.nan), x[None], {"town": 1}):
        with pytest.raises(InvalidInput):
            bandit.choose(bad)
    with pytest.raises(InvalidInput, match="must be numbers") as caught:
        bandit.choose(np.full(x.shape, "Oslo"))
    assert "Oslo" not in str(caught.value)
    for other in (np.full(x.shape, " 1 "), np.full(x.shape, 1).astype("M8[D]"), np.full(x.shape, b"1")):
        with pytest.raises(InvalidInput, match="must be numbers"):
            bandit.choose(other)
    for missing in (np.ma.masked_array(x, mask=x == x), np.full(x.shape, 10**400), np.full(x.shape, None)):
        with pytest.raises(InvalidInput, match="not a number, or is infinite"):
            bandit.choose(missing)
    assert bandit.decisions == 0
    assert len(bandit.choose_batch(np.zeros((0, *x.shape)))) == 0


@pytest.mark.privacy
def test_learners_whose_guarantee_would_not_hold_are_rejected():
    """Features that are not protected, rounds that are no decisions, and rows that stop the stream."""
    with pytest.raises(Unprovable, match="'label'"):
        PrivateLogisticBandit(3, 2, 1.0, horizon=100, neighbours="label")
    with pytest.raises(Unprovable, match="'add-remove'"):
        PrivateLogisticBandit(3, 2, 1.0, horizon=100, neighbours="add-remove", curvature=0.0)
    with pytest.raises(InvalidInput, match="without influence"):
        PrivateBandit(linear_bandit(2, Privacy(1.0, 1e-6), 100, on_bad="raise"), UCB(), arms=3)
    problem = Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0, on_bad="zero")
    with pytest.raises(InvalidInput, match="LinearBandit"):
        PrivateBandit(pqftl(problem, Privacy(1.0, 1e-6), 100), UCB(), arms=3)


def test_any_private_ftrl_for_logistic_loss_is_a_bandit():
    """The one that PrivateLogisticBandit makes, with rewards of either sign."""
    one = FRONTS["logistic"](seed=1, low=-1.0)
    other = PrivateBandit(one.private, EpsilonGreedy(0.0), arms=3)
    for x in contexts(30, per_arm=False):
        for bandit in (one, other):
            decision = bandit.choose(x)
            bandit.learn(decision, reward(decision))
    assert one.k == other.k > 10
    assert np.array_equal(one.model.theta, other.model.theta)


@pytest.mark.privacy
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_is_not_copied(copied):
    """Two would take the same rounds, and a reward of one would enter the other's row."""
    bandit = FRONTS["ucb"](seed=1)
    bandit.choose(contexts(1, per_arm=False)[0])
    with pytest.raises(StateConflict, match="not copied"):
        copied(bandit)


@pytest.mark.privacy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_chooses_and_does_not_learn():
    """Also if no row enters yet: its decisions would have the rounds of others."""
    bandit = FRONTS["ucb"](wait=10)
    x = contexts(1, per_arm=False)[0]
    bandit.choose(x)

    child = os.fork()
    if child == 0:
        try:
            assert bandit.choose(x, learn=False).round == 0
            with pytest.raises(StateConflict, match="forked"):
                bandit.choose(x)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bandit.choose(x).round == 2


def test_unknown_settings_are_named():
    with pytest.raises(InvalidInput, match="epsilon"):
        PrivateLinUCB(arms=3, dimension=2, espilon=1.0)
    with pytest.raises(InvalidInput, match="rows_per_user"):
        PrivateLinUCB(3, 2, 1.0, apart=2)
    with pytest.raises(InvalidInput, match="rows_per_user must be an integer"):
        PrivateLinUCB(3, 2, 1.0, rows_per_user=0)
    with pytest.raises(InvalidInput, match="default_reward must lie in the range of rewards, -1 to 1, got 5"):
        PrivateLinUCB(3, 2, 1.0, default_reward=5.0)
    with pytest.raises(InvalidInput, match="the width of a theorem is one of UCB"):
        PrivateThompson(3, 2, 1.0, width="theorem")
    with pytest.raises(InvalidInput, match="got '1', a text and not a number"):
        PrivateThompson(3, 2, "1")
    with pytest.raises(InvalidInput, match="two arms"):
        PrivateLinUCB(1, 2, 1.0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"epsilon": 0.01, "horizon": 300}, "^Nothing useful can be learnt at this budget in 300 rounds"),
        ({"epsilon": 1.0, "horizon": 2_000}, "^Little can be learnt at this budget"),
        ({"epsilon": 10.0, "horizon": 5_000, "wait": 5_000}, "^wait=5,000 is not below the horizon of 5,000: no row"),
        ({"epsilon": 10.0, "horizon": 5_000, "delta": 1e-3}, "^delta = 0.001 is not below 1 / 5,000"),
        ({"epsilon": 10.0, "horizon": 5_000, "wait": 4_999}, None),
    ],
)
def test_a_bandit_that_learns_little_says_so(settings, says):
    """By the rule of plans, before anything is spent, and at the line that made it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateThompson(8, 3, per_arm=True, low=0.0, intercept=1.0, **settings)
    assert [each.filename for each in caught] == [__file__] * (says is not None)
    assert says is None or (caught[0].category is PrivacyWarning and re.match(says, str(caught[0].message)))
