"""Buffered linear Toeplitz strategies: the fit, its closed forms, and that the floats in use are what is charged."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.mechanisms.strategies import dense
from taciturn import BLT, InvalidInput, L2Ball, Privacy, Problem, Squared, pqftl, private_sum
from taciturn.calibration import blt_fit
from taciturn.calibration.blt_fit import _fit, fitted, mean_squares
from taciturn.kernel.accounting.unit import Participation
from taciturn.kernel.mechanisms import blt
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.mechanisms.blt_pass import blt_errors
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder

TABLE = {2**10: 3.27, 2**14: 4.16, 2**17: 4.85, 2**20: 5.56}


def coefficients(coder: BLTCoder, n: int) -> np.ndarray:
    """The first column of C, by the recursion that the encoder uses, from the floats that it has."""
    th, _, om, _ = coder.arrays
    powers = np.vander(th, n - 1, increasing=True)
    return np.concatenate([[1.0], om @ powers])


@pytest.mark.parametrize("n", TABLE)
def test_largest_errors(n):
    """Four buffers, at mu = 1, within half a percent of docs/running_sums.md."""
    coder = BLT().coder(n)
    assert coder.sensitivity * float(coder.error(n)) == pytest.approx(TABLE[n], rel=5e-3)


@pytest.mark.parametrize(("n", "most"), [(2**14, 4.16), (2**20, 5.51)])
def test_five_buffers_are_nearly_the_square_root(n, most):
    """Their largest error, which is the last sum's."""
    coder = BLT(5).coder(n)
    errors = coder.error(np.linspace(1, n, 1000).astype(int))
    assert (np.diff(errors) > 0.0).all()
    assert coder.sensitivity * errors[-1] <= most


@pytest.mark.parametrize("n", [1, 7, 1024, 2**14])
def test_more_buffers_are_never_worse(n):
    """From one to eight; at any length one is better than releasing rows as they are."""
    errors = [float(BLT(buffers).errors(n)[-1]) for buffers in range(1, 9)]
    assert all(after <= before for before, after in pairwise(errors))
    assert errors[0] <= math.sqrt(n) * (1.0 + 1e-9)


@settings(max_examples=12)
@given(exponent=st.floats(0.0, 6.0), buffers=st.integers(1, 4), aim=st.sampled_from(["max", "mean", "average"]))
def test_decays_are_interleaved(exponent, buffers, aim):
    """`1 > th_1 > th'_1 > th_2 > … ≥ 0`, so that weights, coefficients and their inverse have their signs."""
    coder = BLT(buffers, aim).coder(int(10.0**exponent))
    decays = np.column_stack([coder.decays, coder.inverse_decays]).ravel()
    assert decays[0] < 1.0
    assert decays[-1] >= 0.0
    assert (np.diff(decays) < 0.0).all()
    _, _, om, inverse = coder.arrays
    assert (om > 0.0).all()
    assert (inverse < 0.0).all()


def test_coefficients_fall():
    """C is Toeplitz with positive coefficients that fall, so its first column is its longest."""
    _, B, C = dense("blt", 24)
    assert all(np.allclose(np.diagonal(M, -k), M[k, 0], rtol=1e-12) for M in (B, C) for k in range(24))
    assert (np.diff(C[:, 0]) < 0.0).all()
    assert C[-1, 0] > 0.0
    assert (B[-1] > 0.0).all()


@pytest.mark.privacy
@pytest.mark.parametrize("buffers", [1, 4, 5])
@pytest.mark.parametrize("n", [1, 2, 50, 2**14])
def test_the_column_is_the_sum_of_its_squares(n, buffers):
    """The closed form from the floats in use, against brute force."""
    coder = BLT(buffers).coder(n)
    c = coefficients(coder, n)
    assert coder.sensitivity == pytest.approx(math.sqrt(math.fsum(c * c)), rel=1e-10)
    assert coder.row_norm == pytest.approx(math.fsum(c), rel=1e-10)


def exact_column(coder: BLTCoder) -> mpmath.mpf:
    """`sqrt(1 + Σ_ij om_i·om_j·(1 - (th_i·th_j)^(n-1))/(1 - th_i·th_j))` to 40 digits."""
    with mpmath.workdps(40):
        th, om = ([mpmath.mpf(float(x)) for x in coder.arrays[i]] for i in (0, 2))
        pairs = [(a * b, r * s) for a, r in zip(om, th, strict=True) for b, s in zip(om, th, strict=True)]
        return mpmath.sqrt(1 + mpmath.fsum(w * (1 - r ** (coder.n - 1)) / (1 - r) for w, r in pairs))


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("n", "buffers"),
    [(2**10, 4), (2**17, 5), (2**20, 4), (2**20, 8), (2**26, 5)],
)
def test_the_column_is_not_below_the_exact_one(n, buffers):
    """To 40 digits, at the longest horizon that sums are exact for, too."""
    coder = BLT(buffers).coder(n)
    with mpmath.workdps(40):
        assert exact_column(coder) <= mpmath.mpf(coder.sensitivity) <= exact_column(coder) * (1 + mpmath.mpf("1e-7"))


@pytest.mark.parametrize("n", [1, 2, 300])
def test_closed_forms(n):
    """Errors, and the mean that a fit may aim at, are the sums that they stand for."""
    th, ph = (np.array(x) for x in fitted(300, 3))
    c = coefficients(BLTCoder(n, tuple(th), tuple(ph)), n)
    b = np.zeros(n)  # A·C⁻¹ by long division: Σ_j c_j·b_{k-j} = 1
    for k in range(n):
        b[k] = 1.0 - c[1 : k + 1] @ b[:k][::-1]
    sums = np.cumsum(b * b)
    assert BLTCoder(n, tuple(th), tuple(ph)).error(np.arange(1, n + 1)) ** 2 == pytest.approx(sums, rel=1e-9)
    assert float(mean_squares(th, ph, n)) == pytest.approx(np.mean(sums), rel=1e-9)


@pytest.mark.parametrize("n", [5, 1000])
def test_each_aim_is_best_at_its_own(n):
    """Mean squares for "mean", the largest error for "max"."""
    largest, mean = (BLT(3, aim).errors(n) for aim in ("max", "mean"))
    assert np.mean(mean**2) <= np.mean(largest**2) * (1.0 + 1e-9)
    assert np.max(largest) <= np.max(mean) * (1.0 + 1e-9)


def test_the_fit_is_remembered():
    """A second one costs nothing."""
    before = fitted(777, 2)
    hits = fitted.cache_info().hits
    assert fitted(777, 2) is before
    assert fitted.cache_info().hits == hits + 1


def test_the_fit_is_the_same_in_another_process(tmp_path):
    """To the last bit: a state that was dumped belongs to these floats. One process finds them, the next reads them."""
    code = """
import sys
from taciturn.calibration.blt_fit import fitted
print([x.hex() for part in fitted(1000, 3) for x in part], "scipy.optimize" in sys.modules)
"""
    here = [x.hex() for part in _fit(1000, 3, "max") for x in part]
    for computed_anew in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        )
        assert done.stdout.strip() == f"{here} {computed_anew}"


def test_the_cache_is_bound_to_sources_and_versions(tmp_path, monkeypatch):
    """Of the package and of the libraries that fit."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "taciturn" / "fits" / "blt-30-1-mean"
    seals = set()
    for library in (None, np, scipy):
        if library:
            monkeypatch.setattr(library, "__version__", "other")
        fitted.__wrapped__(30, 1, "mean")
        seals.add(file.read_text().split()[0])
    monkeypatch.setattr(blt_fit, "sources", lambda *files: f"other than {files}")
    fitted.__wrapped__(30, 1, "mean")
    assert len(seals | {file.read_text().split()[0]}) == 4


BAD = {
    "none": (),
    "empty": ((), ()),
    "three": ((0.9,), (0.5,), (0.1,)),
    "of two lengths": ((0.9, 0.3), (0.5,)),
    "exchanged": ((0.5,), (0.9,)),
    "equal": ((0.5,), (0.5,)),
    "too near": ((0.5,), (0.5 - 2.0**-51,)),
    "crossed": ((0.9, 0.8), (0.5, 0.4)),
    "1": ((1.0,), (0.5,)),
    "negative": ((0.5,), (-0.1,)),
    "unknown": ((0.5,), (math.nan,)),
}


@pytest.mark.privacy
@pytest.mark.parametrize("name", BAD)
def test_decays_on_disk_that_no_fit_returns_are_not_used(name, tmp_path, monkeypatch):
    """Even if somebody made a seal for them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    real = blt_fit.cached
    monkeypatch.setattr(blt_fit, "cached", lambda *asked: real(*asked[:2], lambda: BAD[name], asked[3]))
    with contextlib.suppress(ValueError):  # not two
        fitted.__wrapped__(30, 1)
    monkeypatch.setattr(blt_fit, "cached", real)
    assert fitted.__wrapped__(30, 1) == _fit(30, 1, "max")


WEIGHTS = {
    "of other decays": ((0.7,), (-0.7,)),
    "negative": ((-0.5,), (-0.5,)),
    "0": ((0.0,), (-0.5,)),
    "unknown": ((math.nan,), (-0.5,)),
    "of an inverse that is none": ((0.5,), (-0.25,)),
    "too many": ((0.5, 0.5), (-0.5, -0.5)),
}


@pytest.mark.privacy
@pytest.mark.parametrize("name", [*(name for name in BAD if len(BAD[name]) == 2), *WEIGHTS])
def test_a_strategy_takes_no_decays_or_weights_for_which_its_sensitivity_is_not_proven(name):
    """Whoever hands them in: a fit, a state, or a program."""
    decays, inverse = BAD.get(name, ((0.75,), (0.25,)))
    with pytest.raises(InvalidInput, match=r"should .*Take them from a fit, or from the state of a stream"):
        BLTCoder(30, decays, inverse, WEIGHTS.get(name))
    with pytest.raises(InvalidInput, match=r"should .*Take them from a fit, or from the state of a stream"):
        DecayedCoder(0.9, decays, inverse, 4, WEIGHTS.get(name))


@pytest.mark.privacy
def test_decays_of_a_sum_that_forgets_are_at_most_its_own():
    with pytest.raises(InvalidInput, match="fall from below that of a sum"):
        DecayedCoder(0.7, (0.75,), (0.25,), 4)


@pytest.mark.privacy
@pytest.mark.parametrize("seed", range(40))
def test_the_column_of_all_legal_decays_is_not_below_the_exact_one(seed):
    """However close they are to each other or to 1: some may have been written by somebody else."""
    rng = np.random.default_rng(seed)
    count = 2 * int(rng.integers(1, 7))
    gaps = 10.0 ** rng.uniform(-14.9, -0.8, count) if seed % 2 else 1.2e-15 * rng.integers(1, 9, count)
    falling = 1.0 - np.cumsum(gaps) / max(1.0, gaps.sum())
    th, ph = tuple(map(float, falling[::2])), tuple(map(float, falling[1::2]))
    assert blt.in_order((th, ph))
    coder = BLTCoder(int(10.0 ** rng.uniform(0.0, 7.0)), th, ph)
    assert exact_column(coder) <= mpmath.mpf(coder.sensitivity)


FITS = [*product([1, 4, 10], ["max", "mean"]), (1, "average"), (4, "average")]


@pytest.mark.parametrize(("buffers", "aim"), FITS)
def test_what_fits_return_is_legal(buffers, aim):
    """So that it is computed only once."""
    for n in (1, 2, 3, 1000 if buffers < 10 else 10):
        assert blt.in_order(fitted(n, buffers, aim))


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 1000, 10**6, 10**9])
@pytest.mark.parametrize(("buffers", "aim"), FITS)
def test_what_long_fits_return_is_legal(n, buffers, aim):
    assert blt.in_order(fitted(n, buffers, aim))


@pytest.mark.privacy
@pytest.mark.parametrize("kind", ["ones", "signs", "random"])
@pytest.mark.parametrize("buffers", [1, 4])
def test_rounding_errors_are_bounded(kind, buffers):
    """An encoded entry lies within `rounding_error` of the exact one, for rows up to 1."""
    n, rng = 300, np.random.default_rng(0)
    coder = BLT(buffers).coder(n)
    rows = {"ones": np.ones(n), "signs": rng.choice([-1.0, 1.0], n), "random": rng.uniform(-1, 1, n)}[kind]
    th, _, om, _ = coder.arrays
    secret, _ = coder.start(1)
    with mpmath.workdps(40):
        th, om, exact = (
            [mpmath.mpf(float(x)) for x in th],
            [mpmath.mpf(float(x)) for x in om],
            [mpmath.mpf(0)] * len(th),
        )
        for k in range(1, n + 1):
            secret, result = coder.encode(secret, rows[k - 1 : k], k)
            x = mpmath.mpf(float(rows[k - 1]))
            expected = x + mpmath.fsum(w * s for w, s in zip(om, exact, strict=True))
            exact = [r * s + x for r, s in zip(th, exact, strict=True)]
            assert abs(mpmath.mpf(float(result[0, 0])) - expected) <= coder.rounding_error


@pytest.mark.privacy
@pytest.mark.parametrize(("n", "buffers"), [(1, 2), (2, 2), (40, 1), (300, 4), (300, 8)])
def test_the_worst_arithmetic_that_is_allowed_reaches_the_bound(n, buffers):
    """Every product and sum too large by a unit: the error of the last row is within the bound, and above .7 of it."""
    coder = BLT(buffers).coder(n)
    with mpmath.workdps(40):
        up = 1 + mpmath.mpf(2) ** -53
        th, om = ([mpmath.mpf(float(x)) for x in coder.arrays[i]] for i in (0, 2))
        exact, rounded = [mpmath.mpf(0)] * len(th), [mpmath.mpf(0)] * len(th)
        for _ in range(n):
            value = 1 + mpmath.fsum(w * s for w, s in zip(om, exact, strict=True))
            total = om[0] * rounded[0] * up
            for w, s in zip(om[1:], rounded[1:], strict=True):
                total = (total + w * s * up) * up
            encoded = (total + 1) * up
            exact = [r * s + 1 for r, s in zip(th, exact, strict=True)]
            rounded = [(r * s * up + 1) * up for r, s in zip(th, rounded, strict=True)]
        assert 0.7 * coder.rounding_error < encoded - value <= coder.rounding_error


@pytest.mark.privacy
def test_the_error_of_a_wide_row_is_within_the_bound_of_its_norm():
    """However its norm is spread over entries and over time."""
    n, size, rng = 200, 16, np.random.default_rng(0)
    coder = BLT(8).coder(n)
    C = np.zeros((n, n), dtype=np.longdouble)
    th, _, om, _ = (row.astype(np.longdouble) for row in coder.arrays)
    column = np.concatenate([[1.0], np.vander(th, n - 1, increasing=True).T @ om])
    for j in range(n):
        C[j:, j] = column[: n - j]
    peaks = np.eye(size)[np.arange(n) % size]
    for rows in (rng.normal(size=(n, size)), peaks, np.repeat(np.eye(size), n // size + 1, axis=0)[:n]):
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        secret, encoded = coder.start(size)[0], []
        for k, row in enumerate(rows, start=1):
            secret, more = coder.encode(secret, row, k)
            encoded.append(more[0])
        off = np.linalg.norm((np.array(encoded) - C @ rows).astype(float), axis=1)
        assert np.max(off) <= coder.rounding_error


@pytest.mark.parametrize(("n", "rel"), [(1, 1e-12), (31, 1e-12), (400, 5e-3), (3000, 5e-3)])
@pytest.mark.parametrize("aim", ["max", "average"])
def test_the_error_of_the_late_average(n, rel, aim):
    """That of the weights of `late_average` over sqrt(k), from the noise of all sums; exactly for short streams."""
    coder = BLT(3, aim).coder(n)
    k = np.arange(1.0, n + 1.0)
    weights = (k / n) ** 3.5 - ((k - 1) / n) ** 3.5
    b, be = blt.coefficients(*coder.arrays[:2])
    terms = b + np.vander(coder.arrays[1], n, increasing=True).T @ be  # b_0, …, b_{n-1}
    noise = np.convolve(terms, weights[::-1])[:n]
    assert blt_fit.average_error(coder) == pytest.approx(coder.sensitivity * np.linalg.norm(noise), rel=rel)
    late = (k / n) ** 4 - ((k - 1) / n) ** 4
    assert n < 100 or weights == pytest.approx(late / np.sqrt(k) / np.sum(late / np.sqrt(k)), rel=0.01, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "before", "after", "more"),
    [
        pytest.param(500, 1.77, 1.495, 1.07, marks=pytest.mark.slow),
        (2000, 1.90, 1.54, 1.086),
    ],
)
def test_a_strategy_for_the_average_has_less_noise_in_it(n, before, after, more):
    """At n = 500 half as much again as one release of it alone, for 7 % more noise on the last point."""
    largest, average = BLT(5).coder(n), BLT(5, "average").coder(n)
    assert blt_fit.average_error(largest) == pytest.approx(before, abs=0.01)
    assert blt_fit.average_error(average) <= after
    last = [coder.sensitivity * float(coder.error(n)) for coder in (largest, average)]
    assert 1.0 < last[1] / last[0] <= more
    user = Participation(rows=4, per_release=1, apart=n // 8)
    for_users = [BLT(5, aim).coder_for(n, user) for aim in ("max", "average")]
    errors = [c.sensitivity_to(user) / c.sensitivity * blt_fit.average_error(c) for c in for_users]
    assert errors[1] < 0.95 * errors[0]


@pytest.mark.parametrize(("t", "most"), [(2**10, 4.51), (2**20, 5.83)])
def test_one_strategy_serves_all_rounds_with_little_noise(t, most):
    """Its largest error up to t, what rounding adds included, also of the 4,185 entries of PQFTL with 90 features."""
    budget = Privacy(1.0, 1e-6)
    squared = Problem(Squared(), L2Ball(0.5), 90, label_bound=1.0)
    for private in (private_sum(10, 1.0, budget), pqftl(squared, budget)):
        errors = private.calibrated.noise_sd(t) * budget.mu / float(private.learner.certificate.at(1))
        assert errors <= most
        assert private.calibrated.start()[0]["buffers"].shape == (8, private.learner.statistic_size)


@pytest.mark.parametrize(
    ("wrong", "match"), [({"buffers": 0}, "buffers"), ({"buffers": 11}, "at most 10"), ({"aim": "median"}, "max, mean")]
)
def test_invalid_arguments_are_rejected(wrong, match):
    """Each names what is allowed."""
    with pytest.raises(InvalidInput, match=match):
        BLT(**wrong)


@pytest.mark.parametrize("buffers", [1, 4])
def test_errors_in_a_row_are_errors(buffers):
    """Added up by compiled code, from any row on: the closed form, and the same bits however they are asked for."""
    coder = BLT(buffers).coder(50_000)
    whole = blt_errors(coder, 1, 50_000)
    np.testing.assert_allclose(whole, coder.error(np.arange(1, 50_001)), rtol=2.0**-40)
    for k, count in ((1, 1), (8192, 2), (8193, 1), (3000, 15_000), (50_000, 1)):
        np.testing.assert_array_equal(blt_errors(coder, k, count), whole[k - 1 : k - 1 + count])
