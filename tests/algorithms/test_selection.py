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
from taciturn.accounting.cost import total
from taciturn.accounting.gdp import epsilon_of
from taciturn.algorithms.selection import Selection, shares
from taciturn.audit import Pair, distinguish, distinguish_selections
from taciturn.audit.interval import share_interval
from taciturn.audit.selection import scores
from taciturn.noise.sampling import seeded_bits

BUDGET = Privacy(1.0, 1e-6)
ROUNDS = 3


def learner(share, neighbours="replace", **more):
    """A candidate whose certificate one pair of streams reaches."""
    problem = Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1, neighbours=neighbours)
    return pigd(problem, share, horizon=ROUNDS, **more)


def selection(count=2, rows=20, neighbours="replace", budgets=None):
    budgets = shares(BUDGET, [True] * count) if budgets is None else budgets
    return Selection(tuple(learner(each, neighbours) for each in budgets), rows, BUDGET)


PAIR = Pair([[1.0]] * ROUNDS, [1.0] * ROUNDS, at=0, other=([1.0], -1.0))


def audited_mu(candidates):
    """The least mu of all models together, for a training row, from audits of each: their noise is independent."""
    findings = [distinguish(each, PAIR, trials=1_500, error=1e-6 / len(candidates)) for each in candidates]
    assert all(finding.verdict == "holds" for finding in findings)
    return math.sqrt(sum(finding.interval[0] ** 2 for finding in findings))


@pytest.mark.privacy
def test_models_on_the_same_rows_keep_the_budget_together():
    """Audited: the least mu of three models together is below the budget's, and above half of it.

    Error: an interval misses its mu with probability 1e-6 at most, over all three. With the whole budget for each
    model, as if costs of the same rows did not add, the audit finds more than the budget allows.
    """
    here = audited_mu(selection(3).candidates)
    assert 0.5 * BUDGET.mu < here <= BUDGET.mu
    assert audited_mu([learner(BUDGET)] * 3) > 1.2 * BUDGET.mu


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
    noise = choice.calibrated.draw(range(draws), seeded_bits(1, 0))
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
    training = total(each.total_cost for each in made.candidates)
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
        selection(budgets=[Privacy(2.0, 1e-6)])


@pytest.mark.privacy
def test_it_is_charged_and_verified():
    ledger = Ledger(Privacy(1.5, 1e-5))
    problem = Problem(Logistic(), WholeSpace(), 2, ridge=1.0)
    each = shares(BUDGET, [False, True])
    made = Selection(
        (ObjectivePerturbation(problem, each[0], 100), pftrl(Problem(Logistic(), L2Ball(1.0), 2), each[1], 100)),
        10,
        BUDGET,
    )
    made.charge(ledger)
    assert ledger.reserved == made.total_cost
    assert ledger.verify() == ([], 1, [])
    with pytest.raises(BudgetExhausted):
        made.charge(ledger)


def test_users_and_mixed_relations_are_refused():
    problem = Problem(Logistic(), L2Ball(1.0), 2)
    with pytest.raises(Unprovable, match="proven for rows"):
        Selection((pftrl(problem, BUDGET, 100, unit=User(2)),), 10, BUDGET)
    each = shares(BUDGET, [True, True])
    with pytest.raises(InvalidInput, match="one neighbour relation"):
        Selection((learner(each[0]), learner(each[1], "zero-out")), 10, BUDGET)
    unknown = pftrl(Problem(Logistic(), L2Ball(1.0), 2, neighbours="add-remove"), each[0], 100)
    with pytest.raises(Unprovable, match="keeps them secret"):
        Selection((unknown, unknown), 10, BUDGET)
    with pytest.raises(InvalidInput, match="needs candidates"):
        Selection((), 10, BUDGET)


def test_nothing_is_chosen_of_one_candidate():
    alone = selection(1)
    assert alone.choice is None
    assert alone.choose([[0.3]] * 20) == 0


def test_simulations_are_free_and_labelled():
    each = shares(BUDGET, [True, True])
    made = Selection(tuple(learner(one, seed=i) for i, one in enumerate(each)), 10, BUDGET, seed=3)
    made.charge(ledger := Ledger())
    assert ledger.lines == {}
    assert str(made.guarantee).startswith("Simulation: not private")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.floats(0.05, 5.0), st.floats(-9.0, -4.0))
def test_shares_keep_the_budget(gaussian, epsilon, log_delta):
    """As (epsilon, delta) of the plain ones, and mu² of the others."""
    privacy = Privacy(epsilon, 10.0**log_delta)
    made = shares(privacy, gaussian)
    plain = [each for each, is_gaussian in zip(made, gaussian, strict=True) if not is_gaussian]
    group = [each for each, is_gaussian in zip(made, gaussian, strict=True) if is_gaussian]
    mu = math.sqrt(math.fsum(each.mu**2 for each in group))
    left = privacy.delta - math.fsum(each.delta for each in plain)
    spent = math.fsum(each.epsilon for each in plain)
    if group:
        spent += epsilon_of(left, mu)
    assert spent <= epsilon
    assert spent >= 0.98 * epsilon
    assert np.isfinite(spent)
