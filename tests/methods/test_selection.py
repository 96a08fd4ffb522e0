"""One of several private models, chosen on held-out rows: the cost of it, audited, and what it refuses to claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import (
    BudgetExhausted,
    InvalidInput,
    L2Ball,
    Ledger,
    Linear,
    Logistic,
    ObjectivePerturbation,
    Privacy,
    Problem,
    Unprovable,
    User,
    WholeSpace,
    pftrl,
    pigd,
)
from taciturn.audit import Pair, distinguish, distinguish_selections
from taciturn.audit.interval import share_interval
from taciturn.audit.selection import scores
from taciturn.kernel.accounting.cost import total
from taciturn.kernel.accounting.gdp import epsilon_of
from taciturn.kernel.noise.needed import drawn
from taciturn.methods.objective import epsilon_of_moments, log_moment
from taciturn.methods.selection import Selection, fitting, shares

BUDGET = Privacy(1.0, 1e-6)
ROUNDS = 3


def learner(share, neighbours="replace", **more):
    """A candidate whose certificate one pair of streams reaches."""
    problem = Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1, neighbours=neighbours)
    return pigd(problem, share, horizon=ROUNDS, **more)


def selection(count=2, rows=20, neighbours="replace", budgets=None, last=None):
    pilots, winner = shares(BUDGET, count)
    pilots = pilots if budgets is None else budgets
    finals = [learner(last or winner, neighbours)] * count
    return Selection(tuple(learner(each, neighbours) for each in pilots), tuple(finals), rows, BUDGET)


PAIR = Pair([[1.0]] * ROUNDS, [1.0] * ROUNDS, at=0, other=([1.0], -1.0))


def audited_mu(candidates):
    """The least mu of all models together, for a training row, from audits of each: their noise is independent."""
    findings = [distinguish(each, PAIR, trials=1_500, error=1e-6 / len(candidates)) for each in candidates]
    assert all(finding.verdict == "holds" for finding in findings)
    return math.sqrt(sum(finding.interval[0] ** 2 for finding in findings))


@pytest.mark.privacy
def test_pilots_and_the_winner_keep_the_budget_together():
    """Audited: the least mu of three pilots and a winner together is below the budget's, and above half of it.

    Error: an interval misses its mu with probability 1e-6 at most, over all four. With the whole budget for the winner,
    or for each pilot, as if costs of the same rows did not add, the audit finds more than the budget allows: sqrt(1.4)
    and sqrt(3.6) times its mu, where the interval of one mu ends some 10 % below it.
    """
    made = selection(3)
    here = audited_mu([*made.pilots, made.finals[0]])
    assert 0.5 * BUDGET.mu < here <= BUDGET.mu
    assert audited_mu([*made.pilots, learner(BUDGET)]) > BUDGET.mu
    assert audited_mu([learner(BUDGET)] * 3 + [made.finals[0]]) > 1.2 * BUDGET.mu


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_the_choice_keeps_the_budget_for_a_validation_row(neighbours):
    """Audited with losses (0, 1) of a row replaced by (1, 0), or zeroed out, and equal losses else. Error 1e-6."""
    others = [[0.5, 0.5]] * 19
    other = [1.0, 0.0] if neighbours == "replace" else [0.0, 0.0]
    choice = selection(neighbours=neighbours).choice
    found = distinguish_selections(choice, Pair([[0.0, 1.0], *others], None, at=0, other=(other, 0.0)), 4_000)
    assert found.verdict == "holds"
    assert choice.total_cost.epsilon(1e-7) == pytest.approx(1.0, abs=1e-6)


def least_epsilon(made, lead, error=1e-6):
    """An epsilon that choices on two tables refute: the first candidate is behind, and wins by a row that is replaced.

    The smaller the chance to win, the closer the ratio of chances comes to exp(epsilon). The noise is that of 100,000
    choices, from a fixed seed: it refutes .27 against .047, log-ratio 1.75, with 1.63.
    """
    choice, draws = made.choice, 100_000
    noise = drawn(choice.calibrated.noise_needed(range(draws)), 1, 0)
    wins = []
    for first in ([0.0, 1.0], [1.0, 0.0]):
        (encoded,) = scores(choice, *choice.problem.clip([first, *[[1.0, 0.0]] * lead]))
        wins.append(int(np.sum(np.argmax(encoded + noise, axis=1) == 0)))
    p, q = (share_interval(each, draws, error / 2.0) for each in wins)
    return math.log(p[0] / q[1])


@pytest.mark.privacy
def test_half_the_noise_of_the_choice_would_be_refuted():
    """The noise for rows that are zeroed out is half of that for rows that are replaced.

    Chances are .27 and .047 with half the noise, and .27 and .12 with all of it (log-odds -2 ± 1 and -1.5 ± .5).
    """
    assert least_epsilon(selection(rows=4), lead=3) <= 1.0
    assert least_epsilon(selection(rows=3, neighbours="zero-out"), lead=2) > 1.0


@pytest.mark.privacy
def test_an_exact_choice_would_be_refuted():
    """How often the first of two candidates wins, with losses (0, 1) or (1, 0) of one row: at most e times as often.

    400 choices of each: with ratio e, the probabilities are at most .731 and .269, and 0.731·400 = 292 wins have a
    standard deviation of 8.9; 340 lie 5.4 of them above, with probability 3e-8. An exact choice has 400 and 0.
    """
    paid = selection(rows=1)
    first = sum(paid.choose([[0.0, 1.0]]) == 0 for _ in range(400))
    second = sum(paid.choose([[1.0, 0.0]]) == 0 for _ in range(400))
    assert first <= 340
    assert second >= 60
    assert first > second  # with probability 1 - 1e-9: a choice, and no coin


@pytest.mark.privacy
def test_losses_beyond_one_are_clipped():
    """A row of any losses moves the sums by no more than one of (0, 1): the choice is not more certain of it."""
    one = selection(rows=1)
    wins = sum(one.choose([[0.0, 1e9]]) == 0 for _ in range(400))
    assert wins <= 340  # as above; unclipped it would be 400


@pytest.mark.privacy
def test_a_row_pays_for_its_part_and_for_no_more():
    made = selection(3)
    training = total(each.total_cost for each in (*made.pilots, made.finals[0]))
    assert training.epsilon(BUDGET.delta) <= 1.0
    assert training.epsilon(BUDGET.delta) == pytest.approx(1.0, abs=1e-2)
    parts = [part.epsilon(made.choice.privacy.delta) for part in (training, made.choice.total_cost)]
    assert made.total_cost.epsilon(BUDGET.delta) == pytest.approx(max(parts), rel=1e-12)
    assert made.guarantee.proven
    assert "replacing any one example" in str(made.guarantee)


@pytest.mark.privacy
def test_models_that_do_not_share_the_budget_are_refused():
    with pytest.raises(Unprovable, match=r"selection\.shares"):
        selection(budgets=[BUDGET, BUDGET])
    with pytest.raises(Unprovable, match=r"selection\.shares"):
        selection(last=BUDGET)
    with pytest.raises(Unprovable, match=r"selection\.shares"):
        Selection((), (learner(Privacy(2.0, 1e-6)),), 20, BUDGET)
    with pytest.raises(InvalidInput, match="a pilot each"):
        selection(budgets=[Privacy(0.1, 1e-6)])


@pytest.mark.privacy
def test_the_most_expensive_winner_is_charged():
    """Which candidate wins depends on the data, so what is charged covers each of them, of one kind of noise or two."""
    pilots, last = shares(BUDGET, 2)
    cheap = Privacy(0.1, last.delta)
    for finals in ([learner(cheap), learner(BUDGET)], [learner(BUDGET), learner(cheap)]):
        with pytest.raises(Unprovable, match="would cost"):
            Selection(tuple(learner(each) for each in pilots), tuple(finals), 20, BUDGET)


def mixed(scale, last=None):
    """Candidates of both kinds: objective perturbation, and Gaussian noise."""
    pilots, winner = shares(BUDGET, 2, scale=scale)
    smooth, bounded = Problem(Logistic(), WholeSpace(), 2, ridge=1.0), Problem(Logistic(), L2Ball(1.0), 2)
    finals = (ObjectivePerturbation(smooth, winner, 100), pftrl(bounded, last or winner, 100))
    return Selection(
        (ObjectivePerturbation(smooth, pilots[0], 100), pftrl(bounded, pilots[1], 100)), finals, 20, BUDGET
    )


@pytest.mark.privacy
def test_moments_of_both_kinds_fit_the_budget():
    """Shares are scaled until they do, and hardly more than that; the most expensive winner counts."""
    made = fitting(mixed)
    assert 0.96 < made.total_cost.epsilon(BUDGET.delta) <= 1.0
    for scale, last in ((1.0, None), (0.5, BUDGET)):
        with pytest.raises(Unprovable, match="would cost"):
            mixed(scale, last)


@pytest.mark.privacy
@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.2, 1.0), st.floats(0.0, 0.3), st.sampled_from([1, 2])), min_size=1, max_size=4),
    st.floats(0.0, 1.0),
)
def test_moments_bound_the_delta_of_a_composition(perturbed, mu):
    """At the epsilon for delta = .02: simulated log-ratios, each as large as its proof allows, lose no more than that.

    100,000 draws of `(1 - exp(epsilon - Z))₊`, between 0 and 1 with mean .02 at most, have a standard error below
    .00045: .0225 lies 5.5 of them above. With all m halved the epsilon would be too small: the loss exceeds .0225.
    """

    def loss(epsilon):
        rng = np.random.default_rng(1)
        Z = mu**2 / 2.0 + mu * rng.normal(size=100_000)
        for m, c, dimensions in perturbed:
            Z += c + m**2 / 2.0 + m * np.linalg.norm(rng.normal(size=(100_000, dimensions)), axis=1)
        return float(np.mean(np.maximum(1.0 - np.exp(epsilon - Z), 0.0)))

    def epsilon(share):
        return epsilon_of_moments(
            0.02,
            lambda a: (
                a * (a + 1.0) * (share * mu) ** 2 / 2.0 + sum(log_moment(a, share * m, c, d) for m, c, d in perturbed)
            ),
        )

    assert loss(epsilon(1.0)) <= 0.0225
    assert loss(epsilon(0.5)) > 0.0225


@pytest.mark.privacy
def test_it_is_charged_and_verified():
    ledger = Ledger(Privacy(1.5, 1e-5))
    made = fitting(mixed)
    made.charge(ledger)
    assert ledger.reserved == made.total_cost
    assert ledger.verify() == ([], 1, [])
    with pytest.raises(BudgetExhausted):
        made.charge(ledger)


def test_users_and_mixed_relations_are_refused():
    problem = Problem(Logistic(), L2Ball(1.0), 2)
    with pytest.raises(Unprovable, match="proven for rows"):
        Selection((), (pftrl(problem, BUDGET, 100, unit=User(2)),), 10, BUDGET)
    each, last = shares(BUDGET, 2)
    with pytest.raises(InvalidInput, match="one neighbour relation"):
        Selection((learner(each[0]), learner(each[1], "zero-out")), (learner(last),) * 2, 10, BUDGET)
    with pytest.raises(InvalidInput, match="needs candidates"):
        Selection((), (), 10, BUDGET)


def test_nothing_is_chosen_of_one_candidate():
    alone = selection(1)
    assert alone.choice is None
    assert alone.choose([[0.3]] * 20) == 0


def test_simulations_are_free_and_labelled():
    each, last = shares(BUDGET, 2)
    pilots, finals = (tuple(learner(one, seed=i) for i, one in enumerate(part)) for part in (each, [last] * 2))
    made = Selection(pilots, finals, 10, BUDGET, seed=3)
    made.charge(ledger := Ledger())
    assert ledger.lines == {}
    assert str(made.guarantee).startswith("Simulation: not private")


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.floats(0.05, 5.0), st.floats(-9.0, -4.0))
def test_shares_keep_the_budget(count, epsilon, log_delta):
    """As mu², with Gaussian noise."""
    privacy = Privacy(epsilon, 10.0**log_delta)
    made, last = shares(privacy, count)
    assert len(made) == (count if count > 1 else 0)
    spent = epsilon_of(privacy.delta, math.sqrt(math.fsum(each.mu**2 for each in (*made, last))))
    assert 0.98 * epsilon <= spent <= epsilon
