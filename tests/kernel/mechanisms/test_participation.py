"""Sensitivities to all rows of one unit, against brute force over every pattern that a participation allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.mechanisms.strategies import CASES, STRATEGIES, TREES, dense, encoded
from taciturn import BLT, BinaryTree, InvalidInput, Privacy, SquareRoot, every, private_sum
from taciturn.checks.strategies import patterns
from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.mechanisms import blt, prefix_sum
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.mechanisms.sqrt import RootCoder
from taciturn.kernel.mechanisms.strategy import sensitivity_to, toeplitz_sensitivity
from taciturn.kernel.mechanisms.tree import SEARCHED, TreeCoder, most_by_height, most_in_nodes
from taciturn.kernel.stream.schedule import Timetable

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
SIZES = (1, 2, 5, 9, 14)
MOST = 5_000  # patterns of one case in the fast tests


@lru_cache(maxsize=256)
def allowed(n: int, each: int, apart: int) -> np.ndarray:
    """Every pattern of rows in n blocks, however many rows."""
    return patterns(n, Participation(n * each, each, apart))


def count(n: int, each: int, apart: int) -> int:
    """How many patterns there are."""
    ways = [1] * (n + 1)  # with blocks up to j only
    for j in range(1, n + 1):
        ways[j] = ways[j - 1] + each * ways[max(0, j - apart)]
    return ways[n]


def brute_force(C: np.ndarray, each: int, apart: int) -> np.ndarray:
    """The largest `‖C u‖`, by the number of rows, from 1 to as many as fit and one more."""
    U = allowed(C.shape[1], each, apart)
    rows, squares = np.sum(U, axis=1).astype(int), np.sum((U @ C.T) ** 2, axis=1)
    largest = np.zeros(np.max(rows) + 2)
    np.maximum.at(largest, rows, squares)
    return np.sqrt(np.maximum.accumulate(largest)[1:])


def ratios(name: str, n: int, most: int = MOST) -> np.ndarray:
    """What is stated over what brute force finds, for all numbers of rows, in a block and in all, and separations."""
    coder, _, C = dense(name, n)
    found = []
    for apart in range(1, n + 1):
        for each in range(1, n + 1):
            if count(n, each, apart) <= most:
                exact = brute_force(C, each, apart)
                units = [Participation(k, min(each, k), apart) for k in range(1, len(exact) + 1)]
                found += list(np.array([sensitivity_to(coder, unit) for unit in units]) / exact)
    return np.array(found)


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("n", SIZES)
def test_the_worst_pattern_is_exact(name, n):
    """To the 1e-12 by which a BLT rounds up, and never less."""
    found = ratios(name, n)
    assert np.min(found) >= 1.0 - 1e-14
    assert np.max(found) <= 1.0 + 1.1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("n", range(1, 15))
def test_every_pattern_of_up_to_fourteen_blocks(name, n):
    """As above, with all that fit in memory: up to 5 million patterns a case."""
    found = ratios(name, n, 5_000_000 if name in list(STRATEGIES)[:3] else 200_000)
    assert np.min(found) >= 1.0 - 1e-14
    assert np.max(found) <= 1.0 + 1.1e-12


@settings(max_examples=60)
@given(
    falls=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9),
    each=st.integers(1, 3),
    apart=st.integers(1, 4),
)
def test_any_matrix_with_falling_coefficients(falls, each, apart):
    """The proof uses no more of C."""
    c = np.cumsum(falls)[::-1].copy()
    C = sum(np.diag(np.full(len(c) - k, c[k]), -k) for k in range(len(c)))
    for k, exact in enumerate(brute_force(C, each, apart), start=1):
        stated = toeplitz_sensitivity(c, Participation(k, min(each, k), apart))
        assert stated == pytest.approx(exact, rel=1e-12, abs=1e-150)


def test_coefficients_that_rise_have_other_worst_patterns():
    """So that the assumption is needed: here the last pair of rows is worse than the first."""
    c = np.array([1.0, 0.0, 5.0])
    C = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [5.0, 0.0, 1.0]])
    assert brute_force(C, 1, 1)[1] > 1.1 * toeplitz_sensitivity(c, Participation(2, 1, 1))


@pytest.mark.parametrize("unit", [ONCE, Participation(5, 5, 1), Participation(7, 1, 100), Participation(9, 3, 10)])
@pytest.mark.parametrize("buffers", [1, 4])
@pytest.mark.parametrize("n", [50, 3000])
def test_the_closed_form_of_a_blt_is_the_norm_of_its_pattern(n, buffers, unit):
    """From its coefficients, added up one shift at a time."""
    coder = BLT(buffers).coder(n)
    th, _, om, _ = coder.arrays
    c = np.concatenate([[1.0], om @ np.vander(th, n - 1, increasing=True)])
    moved = np.zeros(n)
    for j, rows in enumerate(unit.multiplicities):
        moved[j * unit.apart :] += rows * c[: max(0, n - j * unit.apart)]
    assert coder.sensitivity_to(unit) == pytest.approx(math.sqrt(math.fsum(moved**2)), rel=1e-11)


@pytest.mark.parametrize("unit", [Participation(40, 1, 3), Participation(20_000, 1, 1), Participation(13, 2, 10**5)])
@pytest.mark.parametrize(("n", "buffers"), [(2**20, 4), (2**23, 5)])
def test_the_closed_form_of_a_blt_is_not_below_the_exact_one(n, buffers, unit):
    """To 40 digits, from the floats in use, by one buffer for each pair of decays; with many blocks in two parts."""
    coder = BLT(buffers).coder(n)
    with mpmath.workdps(40):
        th, om = ([mpmath.mpf(float(x)) for x in coder.arrays[i]] for i in (0, 2))
        squared, state, blocks = mpmath.mpf(0), [mpmath.mpf(0)] * len(th), list(unit.multiplicities)
        if len(blocks) > 100:  # only a lower bound of all of them then: the first hundred
            blocks = blocks[:100]
        for j, rows in enumerate(blocks):
            squared += (rows + mpmath.fsum(w * s for w, s in zip(om, state, strict=True))) ** 2
            state = [r * s + rows for r, s in zip(th, state, strict=True)]
            steps = n - 1 - j * unit.apart if j == len(blocks) - 1 else unit.apart - 1
            squared += mpmath.fsum(
                w * v * s * t * (1 - (r * q) ** steps) / (1 - r * q)
                for w, s, r in zip(om, state, th, strict=True)
                for v, t, q in zip(om, state, th, strict=True)
            )
            state = [r**steps * s for r, s in zip(th, state, strict=True)]
        exact, whole = mpmath.sqrt(squared), len(blocks) == unit.blocks
        part = unit if whole else replace(unit, rows=100)
        assert exact <= mpmath.mpf(coder.sensitivity_to(part)) <= exact * (1 + mpmath.mpf("1e-7"))
        assert coder.sensitivity_to(unit) >= coder.sensitivity_to(part)


def test_chunks_of_blocks_are_added_up(monkeypatch):
    """However long they are."""
    unit, coder = Participation(101, 2, 3), BLT().coder(1000)
    whole = coder.sensitivity_to(unit)
    for size in (1, 2, 7, 50):
        monkeypatch.setattr(blt, "_CHUNK", size)
        assert coder.sensitivity_to(unit) == pytest.approx(whole, rel=1e-13)


def test_weights_that_are_rounded_up_are_bounded_by_a_larger_matrix():
    """A state may hold weights with c_1 > c_0 by a billionth; the worst of two rows in a row is then not the first."""
    honest = BLTCoder(9, (1.0 - 1e-14,), (0.0,))
    om = honest.arrays[2] * (1.0 + 9e-10)
    coder = BLTCoder.restored(9, 1, np.array([*honest.arrays[:2], om, honest.arrays[3]]))
    c = np.concatenate([[1.0], om @ np.vander(coder.arrays[0], 8, increasing=True)])
    C = sum(np.diag(np.full(9 - k, c[k]), -k) for k in range(9))
    for k, exact in enumerate(brute_force(C, 1, 2), start=1):
        assert exact <= coder.sensitivity_to(Participation(k, 1, 2)) <= exact * (1.0 + 1e-8)


@pytest.mark.parametrize("n", [100, 1000, 1023, 4096])
def test_the_bound_by_height_of_a_tree_is_tight(n):
    """Attained if blocks lie a power of two apart; elsewhere at most 6 % above the search, for 2 to 16 blocks."""
    for apart in (1, 2, 3, 5, 8, 11, 24, 32, 47):
        for rows, each in ((2, 1), (4, 1), (7, 2), (16, 1)):
            exact, bound = (most(n, rows, each, apart) for most in (most_in_nodes, most_by_height))
            assert exact <= bound <= 1.06**2 * exact
            assert bound == exact or apart & (apart - 1)


def test_a_tree_with_many_blocks_is_bounded():
    """By height, where the search would take long."""
    coder = TreeCoder(10**5, refined=True)
    few, many = Participation(SEARCHED, 1, 7), Participation(SEARCHED + 1, 1, 7)
    assert coder.sensitivity_to(few) ** 2 == pytest.approx(most_in_nodes(10**5, SEARCHED, 1, 7), rel=1e-12)
    assert coder.sensitivity_to(many) ** 2 == pytest.approx(most_by_height(10**5, SEARCHED + 1, 1, 7), rel=1e-12)


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_once_is_the_sensitivity_to_the_last_bit(name, n):
    """So that streams of examples keep their noise; and all rows in one block are so many times as much."""
    coder = STRATEGIES[name].coder(n)
    assert coder.sensitivity_to(ONCE) == sensitivity_to(coder, ONCE) == coder.sensitivity
    assert STRATEGIES[name].coder_for(n, ONCE).sensitivity == coder.sensitivity
    for unit in (Participation(5, 5, 1), Participation(5, 5, 3)):
        assert coder.sensitivity_to(unit) == pytest.approx(5.0 * coder.sensitivity, rel=1e-12)
    assert np.array_equal(STRATEGIES[name].errors(n), STRATEGIES[name].errors(n, ONCE))


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_more_rows_or_less_separation_is_never_less(name):
    """And never more than rows times the sensitivity."""
    coder = STRATEGIES[name].coder(300)
    table = [[coder.sensitivity_to(Participation(k, 1, b)) for b in (1, 2, 8, 64, 400)] for k in (1, 2, 3, 10, 40, 300)]
    assert (np.diff(table, axis=0) >= -1e-12).all()
    if name not in TREES:
        assert (np.diff(table, axis=1) <= 1e-9).all()
    assert (np.array(table) <= np.array([[1], [2], [3], [10], [40], [300]]) * coder.sensitivity * (1 + 1e-12)).all()


class Plain(RootCoder):
    """A coder with a sensitivity of its own, newer than what it inherits."""

    @property
    def sensitivity(self):
        return 2.0 * super().sensitivity


def test_a_coder_that_states_nothing_pays_for_every_row():
    """The triangle inequality; also if only the newer of the two is its own."""
    unit = Participation(3, 1, 2)
    assert sensitivity_to(Plain(9), unit) == 3 * Plain(9).sensitivity
    assert sensitivity_to(RootCoder(9), unit) < 3 * RootCoder(9).sensitivity


@dataclass(frozen=True)
class Doubled(BLT):
    """A strategy of its own for every n, which knows nothing of users."""

    def coder(self, n):
        return BLT.coder(self, 2 * n)


def test_a_strategy_with_a_coder_of_its_own_keeps_it():
    """What it inherits for users is for another one."""
    user = Participation(4, 1, 5)
    for unit in (ONCE, user):
        assert calibrated(Doubled(), unit).coder == BLT().coder(40)
    assert Doubled().errors(20, user)[0] == pytest.approx(BLT().coder(40).sensitivity_to(user), rel=1e-12)


# The factors over one row, and fits.

FACTORS = {(4, 256): 2.44, (8, 128): 4.20, (16, 64): 7.69}
FITTED = {(4, 256): 2.35, (8, 128): 3.85, (16, 64): 6.61}


@pytest.mark.parametrize("unit", FACTORS)
def test_factors_over_one_row(unit):
    """At n = 1,024, the largest error: of the square root, and, less, of a BLT that is fitted for them."""
    participation = Participation(unit[0], 1, unit[1])
    root, fitted = (
        float(np.max(strategy.errors(1024, participation)) / np.max(strategy.errors(1024)))
        for strategy in (SquareRoot(), BLT())
    )
    assert FACTORS[unit] - 0.02 < root <= FACTORS[unit]
    assert fitted <= FITTED[unit]


@pytest.mark.parametrize(("n", "unit"), [(200, Participation(4, 1, 40)), (500, Participation(9, 3, 1))])
@pytest.mark.parametrize("aim", ["max", "mean"])
def test_a_fit_is_best_for_its_own_participation(n, unit, aim):
    """Better than the fit for one row, which is better for one row."""
    once, own = BLT(3, aim).coder(n), BLT(3, aim).coder_for(n, unit)

    def error(coder, participation):
        errors = coder.error(np.arange(1, n + 1)) * sensitivity_to(coder, participation)
        return float(np.max(errors) if aim == "max" else np.sqrt(np.mean(errors**2)))

    assert error(own, unit) < 0.999 * error(once, unit)
    assert error(once, ONCE) < 0.999 * error(own, ONCE)


def test_a_fit_for_one_block_is_that_for_one_row():
    """However many rows are in it, or do not fit beside it."""
    for unit in (Participation(7, 7, 1), Participation(7, 1, 50)):
        assert BLT().coder_for(50, unit) == BLT().coder(50)
    assert BLT().coder_for(50, Participation(7, 1, 49)) != BLT().coder(50)


# Through the calibrated mechanism.

UNITS = [Participation(4, 1, 5), Participation(4, 2, 3), Participation(3, 3, 1), Participation(6, 1, 1)]
TINY = Privacy(1e-10, 1e-12)  # the lattice is as coarse as the sensitivity


def calibrated(strategy, unit, n=20, privacy=BUDGET, rounds=3, size=3):
    """Sums of vectors up to length 1.5, released after every few rounds."""
    certificate = CASES["sum"](strategy, privacy, n * rounds).learner.certificate
    return strategy.calibrate(
        replace(certificate, participation=unit), Timetable(every(rounds), n * rounds), size, privacy, "exact"
    )


def worst_pattern(C: np.ndarray, unit: Participation) -> np.ndarray:
    """The worst of a thousand random patterns, and of those that are as early and as late as possible."""
    n, rng = C.shape[1], np.random.default_rng(0)
    found = []
    for i in range(1000):
        u, p, left = np.zeros(n), 0 if i < 500 else int(rng.integers(n)), unit.rows
        while p < n and left:
            u[p] = min(unit.per_release, left)
            left -= u[p]
            p += unit.apart + (0 if i % 2 else int(rng.integers(3)))
        found.append(u)
    return max(found, key=lambda u: float(np.linalg.norm(C @ u)))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("privacy", [BUDGET, TINY])
def test_the_cost_covers_a_unit_s_rows(name, unit, privacy):
    """What is encoded in two worlds, at the worst pattern found, lies within mu standard deviations, and nearly so."""
    mechanism = calibrated(STRATEGIES[name], unit, privacy=privacy)
    n, step = 20, mechanism.step(1)
    _, C = mechanism.coder.matrices(n)
    u = worst_pattern(C, unit)
    mu = math.sqrt(mechanism.cost(None).mu_squared)
    rows = 1.5 * u[:, None] / math.sqrt(3.0) * np.ones(3)  # from -1.5 to 1.5, for each row of the unit
    distance = float(np.linalg.norm(encoded(mechanism, rows) - encoded(mechanism, -rows))) * step / mechanism.sd
    assert distance <= mu
    assert mechanism.cost(None).within(privacy)
    assert privacy is TINY or distance >= 0.999 * mu


@pytest.mark.parametrize("name", TREES)
def test_rounding_before_encoding_is_charged_for_every_row(name):
    """Each of eight rows in turn may be rounded by one step further, which is as much as the sensitivity here."""
    unit = Participation(8, 1, 1)
    mechanism = calibrated(STRATEGIES[name], unit, privacy=TINY, rounds=1, size=1)
    step = mechanism.step(1)
    assert step > 0.1 * 3.0
    here = np.zeros((20, 1))
    here[:8] = -1.5 if step > 1.0 else (0.5 - 1e-9) * step - 1.0  # just below where rounding turns up
    there = here.copy()
    there[:8] += 1e-6 + 3.0 * (step <= 1.0)
    flipped = encoded(mechanism, there) - encoded(mechanism, here)
    charged = math.sqrt(mechanism.cost(None).mu_squared) * mechanism.sd
    assert np.linalg.norm(flipped) * step <= charged
    assert (
        charged
        >= mechanism.sensitivity * (3.0 + step)
        >= np.linalg.norm(mechanism.coder.matrices(20)[1][:, :8].sum(1)) * 3.0
    )


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_the_sampler_reaches_what_a_unit_moves(name):
    """One encoded entry moves by at most `rows·Delta`, and by no more than all together."""
    from scipy.special import ndtr

    for unit in UNITS:
        mechanism = calibrated(STRATEGIES[name], unit, privacy=Privacy(20.0, 1e-6))
        _, C = mechanism.coder.matrices(20)
        shift = np.max(np.abs(C @ worst_pattern(C, unit))) * 3.0 / mechanism.sd
        assert mechanism.cost(None).extra_delta >= 2.0 * len(C) * 3 * ndtr(shift - 12.0)
        assert mechanism.cost(None).extra_delta < 1e-9


def test_a_block_holds_no_more_rows_than_examples():
    """With a release in every round, four rows of a user lie in four blocks."""
    one, four = (calibrated(BLT(), Participation(4, each, 1), rounds=1).sd for each in (1, 4))
    assert one == four < 0.97 * calibrated(BLT(), Participation(4, 4, 1), rounds=4).sd


def test_without_a_horizon():
    """One strategy, paid for in advance."""
    strategy = BLT(8)
    certificate = private_sum(3, 1.5, BUDGET).learner.certificate
    sds = {}
    for unit in (ONCE, Participation(4, 1, 64), Participation(4, 4, 1)):
        stated = replace(certificate, participation=unit)
        for rounds in (1, 2000):
            mechanism = strategy.calibrate(stated, Timetable(every(rounds), None), 3, BUDGET, "exact")
            assert mechanism.cost(None).within(BUDGET)
            sds[unit, rounds] = mechanism.noise_sd(2**12)
            again = strategy.restore(
                stated, Timetable(every(rounds), None), 3, BUDGET, "exact", numbers := mechanism.numbers
            )
            assert again.cost(None) == mechanism.cost(None)
            assert len(numbers) == (3 if unit == ONCE else 2)  # a strategy that starts again has one lattice step
            assert again.numbers.keys() == numbers.keys()
    assert sds[ONCE, 1] < sds[Participation(4, 1, 64), 1] < sds[Participation(4, 4, 1), 1] < 3.9 * sds[ONCE, 1]
    assert sds[Participation(4, 4, 1), 2000] == pytest.approx(4.0 * sds[ONCE, 2000], rel=1e-2)


@pytest.mark.parametrize("strategy", [BLT(), BinaryTree(), SquareRoot()])
def test_a_restored_stream_has_the_strategy_it_began_with(strategy):
    """And the same cost, from the numbers alone."""
    unit = Participation(4, 1, 5)
    certificate = replace(CASES["sum"](strategy, BUDGET, 20).learner.certificate, participation=unit)
    plan = certificate, Timetable(every(1), 20), 3, BUDGET, "exact"
    began = strategy.calibrate(*plan)
    again = strategy.restore(*plan, began.numbers)
    assert again.cost(None) == began.cost(None)
    assert (again.sd, again.step(1)) == (began.sd, began.step(1))


@pytest.mark.parametrize("calibration", ["paper-printed", "paper-proven"])
def test_the_papers_noise_is_for_one_example(calibration):
    """It is rejected for a user, with what to do."""
    strategy, plan = BinaryTree(refined=False), (Timetable(every(1), 20), 1, BUDGET, calibration)
    certificate = private_sum(1, 1.0, BUDGET, 20, strategy=strategy).learner.certificate
    with pytest.raises(InvalidInput, match="Use calibration='exact'"):
        strategy.calibrate(replace(certificate, participation=Participation(2, 2)), *plan)


# Planted faults, each caught by a test above.


def shifted(multiplicities, positions, c):
    """The norm of a pattern on a Toeplitz matrix."""
    moved = np.zeros(len(c))
    for rows, p in zip(multiplicities, positions, strict=True):
        if p < len(c):
            moved[p:] += rows * c[: len(c) - p]
    return float(np.linalg.norm(moved))


FAULTS = {
    "not at 0": lambda c, unit: shifted(unit.multiplicities, 1 + unit.apart * np.arange(unit.blocks), c),
    "the rest first": lambda c, unit: shifted(unit.multiplicities[::-1], unit.apart * np.arange(unit.blocks), c),
    "one block too far apart": lambda c, unit: shifted(
        unit.multiplicities, (unit.apart + 1) * np.arange(unit.blocks), c
    ),
    "one row too few": lambda c, unit: toeplitz_sensitivity(c, replace(unit, rows=max(1, unit.rows - 1))),
    "rows of a block once": lambda c, unit: toeplitz_sensitivity(c, replace(unit, per_release=1)),
    "independent columns": lambda c, unit: math.sqrt(unit.rows) * float(np.linalg.norm(c)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_patterns_are_caught(fault, monkeypatch):
    """By the comparison with brute force."""
    wrong = FAULTS[fault]
    monkeypatch.setattr(
        RootCoder,
        "sensitivity_to",
        lambda self, unit: self.sensitivity if unit == ONCE else wrong(self.coefficients, unit),
    )
    assert np.min(ratios("square root", 8)) < 0.999


def test_one_row_charged_at_rounding_is_caught(monkeypatch):
    """The number of rows forgotten where rows are rounded before they are encoded."""
    unit = Participation(8, 1, 1)
    honest = calibrated(BinaryTree(), unit, privacy=TINY, rounds=1, size=1)
    monkeypatch.setattr(prefix_sum.Finite, "_rounding", lambda self, rows: float(self.size * self.coder.sensitivity**2))
    wrong = calibrated(BinaryTree(), unit, privacy=TINY, rounds=1, size=1)
    charged = math.sqrt(wrong.cost(None).mu_squared) * wrong.sd
    assert honest.sensitivity * (3.0 + wrong.step(1)) > 1.05 * charged
