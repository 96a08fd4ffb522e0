"""Audits of what is claimed for all rows of a user: true claims are reached, and planted faults are refuted.

Noise is seeded, the secret kind too, so nothing is left to chance; with fresh noise a true claim would be refuted with
a probability of at most 1e-6 in each test. Planted faults change mu by a factor of 1.5 or more, or a transcript on
common noise, and 100 trials know mu to a half.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count, cycle, product

import numpy as np
import pytest
from typer.testing import CliRunner

from audit.planted import half_certified
from kernel.mechanisms.strategies import STRATEGIES
from taciturn import (
    BLT,
    IGD,
    BinaryTree,
    Gaussian,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    User,
    WholeSpace,
    every,
    geometric,
    pftrl,
    pqftl,
    private_sum,
)
from taciturn import audit as audits
from taciturn.audit import Pair, adaptive_adversary, audit, distinguish, tight_pair, tight_private
from taciturn.audit.statistics import calls_differ
from taciturn.audit.transcripts import Replayed
from taciturn.audit.verdict import claimed_mu_of, game_of
from taciturn.cli.app import app
from taciturn.kernel.accounting.unit import Example
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.mechanisms import prefix_sum
from taciturn.kernel.mechanisms.strategy import matrices, sensitivity_to
from taciturn.kernel.noise import needed
from taciturn.kernel.noise.sampling import seeded_bits
from taciturn.kernel.replay import counts
from taciturn.kernel.stream import loop
from taciturn.kernel.stream import stream as wiring
from taciturn.kernel.stream.loop import Loop
from taciturn.kernel.stream.participation import new_records
from taciturn.kernel.stream.protocols import Certificate

pytestmark = pytest.mark.privacy

T, BUDGET, TRIALS = 24, Privacy(1.0, 1e-6), 100
UNITS = {
    "four": User(4),
    "one a release": User(4, 1),
    "apart": User(3, apart=5),
    "two a release, apart": User(5, 2, 3),
}
ALGORITHMS = ["pqftl", "pftrl", "private_sum", "pigd"]
SUMS = private_sum(1, 1.0, BUDGET, T).problem


@pytest.fixture(autouse=True)
def _repeatable(monkeypatch):
    """Secret noise from a seed, a new block of it for every call: the very path that production takes."""
    block = count()
    monkeypatch.setattr(needed, "secret_bits", lambda: seeded_bits(22, next(block)))


def of_user(algorithm="private_sum", unit=UNITS["four"], rounds=T, **settings) -> Private:
    return tight_private(algorithm, BUDGET, rounds, unit=unit, **settings)


@pytest.mark.parametrize(
    ("algorithm", "unit"), [*product(ALGORITHMS, UNITS), ("pgiga", "four"), ("pocp-ftl", "two a release, apart")]
)
def test_the_worst_pattern_is_as_far_as_is_claimed(algorithm, unit):
    """Under both relations, with rows beyond the bounds, which add nothing."""
    for neighbours in ("replace", "zero-out"):
        private = of_user(algorithm, UNITS[unit], neighbours=neighbours)
        pair = tight_pair(private)
        kept = counts(private, pair.users)[pair.places]
        assert 0 < kept.sum() < len(kept)
        assert 0.9999 < game_of(private, pair).apart / claimed_mu_of(private) <= 1.0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_other_pattern_is_farther(algorithm):
    """Later ones, and a random one."""
    for unit in UNITS.values():
        private = of_user(algorithm, unit)
        for place in ("middle", "last", "random"):
            assert 0.05 < game_of(private, tight_pair(private, place)).apart / claimed_mu_of(private) <= 1.0


@pytest.mark.parametrize("unit", [User(3), User(3, 1), User(3, apart=2), User(5, 2, 3)], ids=str)
@pytest.mark.parametrize("strategy", ["blt", "square root", "tree", "refined tree"])
def test_the_pattern_of_the_pair_is_what_the_strategy_charges(strategy, unit):
    """`‖C u‖` of the rows that count is `sensitivity_to`, or below it where another pattern or a bound is larger."""
    private = private_sum(1, 1.0, BUDGET, T, strategy=STRATEGIES[strategy], schedule=every(3), unit=unit)
    pair, coder = tight_pair(private), private.calibrated.coder
    kept = counts(private, pair.users) & (pair.users == 0)
    u = np.bincount(private.timetable.block_of(np.arange(1, T + 1))[kept], minlength=T // 3 + 1)[1:]
    share = np.linalg.norm(matrices(coder, T // 3)[1] @ u) / sensitivity_to(coder, unit.participation)
    assert (1.0 - 1e-9 if strategy in ("blt", "square root") else 0.5) < share <= 1.0 + 1e-9


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_true_claim_for_a_user_holds(algorithm):
    """On seeded and on secret noise, in one call and in several."""
    private = of_user(algorithm)
    result = distinguish(private, tight_pair(private), TRIALS, secret_trials=20)
    assert result.violations == ()
    assert result.interval[0] < result.claimed_mu < result.interval[1]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_claim_for_a_user_is_reached_within_three_percent(algorithm):
    """The shift is 0.9999 of the claim or more; 20,000 trials know the spread to 0.5 %, six of which are 3 %."""
    private = of_user(algorithm, rounds=200)
    result = distinguish(private, tight_pair(private), 20_000)
    assert result.verdict == "holds"
    assert result.mu / result.claimed_mu == pytest.approx(1.0, abs=0.03)


@pytest.fixture(scope="module")
def report():
    return audit("private_sum", BUDGET, rounds=6, trials=100, unit=User(2))


def test_all_games_of_an_audit(report):
    """Both relations, four patterns, and an adversary who chooses the rows of all other users."""
    assert report.verdict == "holds"
    assert {(game.neighbours, game.changed) for game in report.games if not game.adaptive} == {
        (n, place) for n in ("replace", "zero-out") for place in ("first", "middle", "last", "random")
    }
    assert [game.rounds for game in report.games if game.adaptive] == [6]
    assert report.as_data()["unit"] == "one user, of at most 2 rows"
    with pytest.raises(InvalidInput, match="selections are audited for one example"):
        audit("ewoo", BUDGET, unit=User(2))


@pytest.mark.parametrize("schedule", [every(5), geometric(1.5)], ids=str)
def test_any_schedule(schedule):
    """Blocks of several lengths: the pair does not exceed the claim, which is for the longest of them."""
    for unit in (User(4, 2), User(4, 2, 2)):
        private = private_sum(1, 1.0, BUDGET, T, schedule=schedule, unit=unit)
        assert 0.5 < game_of(private, tight_pair(private)).apart / claimed_mu_of(private) <= 1.0


def test_periods_and_several_owners():
    """Rows of one period differ, and rows that others own too: claims are not exceeded, nor rows that do not count."""
    private = of_user(unit=User(2, period=8))
    for place in ("first", "middle", "last", "random"):
        pair = tight_pair(private, place)
        assert len(set(pair.places // 8)) == 1
        assert 0.2 < game_of(private, pair).apart / claimed_mu_of(private) <= 1.0
    with pytest.raises(InvalidInput, match="several periods"):
        replace(pair, at=[0, T - 1], users=np.zeros(T, int)).check(private)
    private = of_user()
    pair = tight_pair(private)
    shared = np.column_stack([pair.users, np.where(np.arange(T) % 3 == 0, 99, 100 + np.arange(T))])
    assert counts(private, shared).sum() < counts(private, pair.users).sum()
    for owners in (shared, shared[:, ::-1]):
        assert 0.5 < game_of(private, replace(pair, users=owners)).apart / claimed_mu_of(private) <= 1.0


def test_feedback_and_an_adversary():
    """Gradients at released points, and other users' rows against them, along the releases of `Private.run`."""
    private = pftrl(Problem(Logistic(), L2Ball(2.0), 1), BUDGET, T, unit=User(3, 1))
    pair = tight_pair(private)
    assert isinstance(game_of(private, pair), Replayed)
    for adversary in (None, adaptive_adversary(private)):
        result = distinguish(private, pair, 100, adversary=adversary, secret_trials=0)
        assert result.violations == ()
        assert 0.1 < result.shift / result.claimed_mu < 1.0


# ---- planted faults -----------------------------------------------------------------------------------------------


def refuted(private: Private, pair: Pair | None = None) -> float:
    """The lower end of mu over the claimed one; more than 1 if the two worlds are distinguished too well."""
    result = distinguish(private, pair or tight_pair(private), TRIALS, secret_trials=0)
    assert result.verdict == "refuted"
    return result.interval[0] / result.claimed_mu


def too_far(private: Private) -> float:
    """The shift over the claimed mu, on a few trials of common noise: more than 1 is refuted by enough trials."""
    return game_of(private, tight_pair(private)).apart / claimed_mu_of(private)


def test_the_sensitivity_of_one_row_is_refuted(monkeypatch):
    """The noise of a prefix sum for one participation."""
    monkeypatch.setattr(prefix_sum, "sensitivity_to", lambda coder, participation: coder.sensitivity)
    assert refuted(of_user()) > 1.5
    assert all(too_far(of_user(unit=unit)) > 1.5 for unit in UNITS.values())


def test_a_tail_for_one_row_is_refuted(monkeypatch):
    monkeypatch.setattr(Certificate, "for_unit", lambda self, unit, timetable: self)
    assert refuted(of_user("pigd")) > 1.5


@pytest.mark.parametrize(
    ("learner", "mechanism"),
    [
        (lambda: VectorSum(SUMS), BLT()),
        (lambda: VectorSum(SUMS), BinaryTree(refined=False)),
        (lambda: IGD(Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1)), Gaussian()),
    ],
    ids=["blt", "tree", "igd"],
)
def test_half_the_bound_is_refuted(learner, mechanism):
    """And all of it is not: for a tree the pattern is a little less than its bound."""
    whole, half = (
        Private(made, mechanism, every(5), BUDGET, T, unit=User(4)) for made in (learner(), half_certified(learner()))
    )
    assert too_far(whole) <= 1.0
    assert refuted(half) > 1.05


@pytest.mark.parametrize("unit", ["four", "one a release"])
def test_a_count_that_is_not_committed_is_refuted(unit, monkeypatch):
    """The records before a call are stored after it, so that a user has all rows again in the next one."""
    honest = Private._next_state
    monkeypatch.setattr(Private, "_next_state", lambda self, state, at, users: honest(self, state, at, state.users))
    private = of_user(unit=UNITS[unit])
    pair = tight_pair(private)
    assert calls_differ(private, pair)
    assert too_far(private) > 1.5
    if unit == "four":
        assert refuted(private) > 1.05


def test_a_count_in_each_process_is_refuted(monkeypatch):
    """Two processes take turns, and each has the records of its own calls."""
    honest, records, turns = wiring.admit, [new_records(0), new_records(0)], cycle((0, 1, 0))

    def own(unit, given, *rest):
        turn = next(turns)
        if not given.layers:  # a new stream
            records[:] = new_records(0), new_records(0)
        admitted, records[turn] = honest(unit, records[turn], *rest)
        return admitted, records[turn]

    monkeypatch.setattr(wiring, "admit", own)
    assert too_far(of_user()) > 1.3


def test_a_bound_that_is_not_enforced_is_refuted(monkeypatch):
    """On common noise; and where exact rows are computed again, by releases that are not centred on them."""
    honest = Loop.__call__
    monkeypatch.setattr(Loop, "__call__", lambda self, at, X, y, excluded=None: honest(self, at, X, y))
    assert refuted(of_user()) > 1.2
    curved = pftrl(Problem(Logistic(), L2Ball(2.0), 1), Privacy(20.0, 1e-6), T, unit=User(2, 1))
    result = distinguish(curved, tight_pair(curved), TRIALS, secret_trials=0)
    assert any("not centred" in violation for violation in result.violations)


def surviving_intercept(V, y, excluded, labels):
    """Rows are zeroed before the intercept is appended."""
    V, y = np.array(V), np.where(excluded, 0.0, y)
    V[excluded, :-1] = 0.0
    return V, y


def test_an_excess_row_whose_intercept_survives_is_refuted(monkeypatch):
    """Under zero-out the neighbour's rows are bad ones, which are zero; an intercept of the others is their number."""
    plane = Problem(
        Squared(), L2Ball(1.0), 1, label_bound=1.0, intercept=1.0, ridge=0.1, neighbours="zero-out", on_bad="zero"
    )
    private = pqftl(plane, BUDGET, T, weight=1.0, schedule=every(3), unit=User(2))
    users = np.where(np.arange(T) % 4 == 3, 1, 0)
    pair = Pair(np.ones((T, 1)), np.ones(T), np.flatnonzero(users == 0).tolist(), ([np.nan], 0.0), users)
    assert game_of(private, pair).apart <= claimed_mu_of(private)
    monkeypatch.setattr(loop, "without_influence", surviving_intercept)
    assert refuted(private, pair) > 1.2


# ---- pairs and options --------------------------------------------------------------------------------------------


def test_pairs_of_several_rows():
    """One other example for all of them, or one for each."""
    X, ids = np.ones((4, 1)), ["a", "b", "a", "a"]
    assert Pair(X, None, [0, 2], ([0.5], 0.0), ids).world(1)[0].T.tolist() == [[0.5, 1.0, 0.5, 1.0]]
    each = Pair(X, np.ones(4), [0, 3], [([0.5], -1.0), ([0.2], 0.0)], ids)
    assert each.world(1)[0].T.tolist() == [[0.5, 1.0, 1.0, 0.2]]
    assert each.world(1)[1].tolist() == [-1.0, 1.0, 1.0, 0.0]
    assert each.places.tolist() == [0, 3]
    owners = np.array([["a", "b"], ["c", "a"], ["d", "a"], ["b", ""]], dtype=object)
    private = private_sum(1, 1.0, BUDGET, 4, unit=User(4))
    Pair(X, None, [0, 1, 2], ([0.5], 0.0), owners).check(private)
    with pytest.raises(InvalidInput, match="no owner in common"):
        Pair(X, None, [0, 2, 3], ([0.5], 0.0), owners).check(private)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pair: replace(pair, users=None), "an id for each row"),
        (lambda pair: replace(pair, users=pair.users[1:]), "an id for each row"),
        (lambda pair: replace(pair, at=[0, T]), "at must be"),
        (lambda pair: replace(pair, at=[]), "at must be"),
        (lambda pair: replace(pair, other=[([1.0], 0.0)] * 2), "Give one, or one for each"),
        (lambda pair: replace(pair, at=[1], users=np.zeros(T, int)), "worlds are the same"),
        (lambda pair: replace(pair, users=np.arange(T)), "no owner in common"),
    ],
)
def test_what_cannot_be_audited_is_rejected(change, words):
    """In a sentence with a remedy."""
    private = of_user(unit=User(1))
    pair = tight_pair(private)
    with pytest.raises(InvalidInput, match=words):
        distinguish(private, change(pair), 100)
    with pytest.raises(InvalidInput, match="unit=User"):
        distinguish(private_sum(1, 1.0, BUDGET, T), pair, 100)


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *arguments], env={"COLUMNS": "80"})


def test_the_command_audits_users(report, monkeypatch):
    """The options are the unit's; what is claimed for whom is said in words and as data."""
    asked = []
    monkeypatch.setattr(audits, "audit", lambda *args, unit, **settings: asked.append(unit) or report)
    done = run("private_sum", "--unit", "user", "--rows-per-user", "2", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["unit"] == "one user, of at most 2 rows"
    apart = ["--rows-per-release", "1", "--apart", "3"]
    shown = " ".join(run("private_sum", "--unit", "user", "--rows-per-user", "2", *apart).stdout.split())
    assert "differ in all rows of one user; claims are for one user, of at most 2 rows." in shown
    assert "-differential privacy for a user, mu = 0.2367" in shown
    assert run("private_sum").exit_code == 0
    assert asked == [User(2), User(2, 1, 3), Example()]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--unit", "user"], "--rows-per-user"),
        (["--apart", "3"], "--unit user"),
        (["--unit", "user", "--rows-per-user", "2", "--calibration", "paper-printed"], "calibration='exact'"),
    ],
)
def test_options_that_do_not_fit_are_rejected(options, words):
    fault = run("private_sum", *options).exception
    assert isinstance(fault, InvalidInput)
    assert words in str(fault)
