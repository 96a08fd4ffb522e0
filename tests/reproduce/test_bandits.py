"""Regret of bandits: what is planned, what runs measure, the printed noise, tables and pictures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn import Privacy
from taciturn.reproduce.bandits import (
    EVERY,
    EXACT,
    PRINTED,
    RANDOM,
    UCB_FRONT,
    draw,
    plan,
    printed_noise,
    run,
    show,
    table,
)


def test_the_plan():
    """Five seeds, or as many as are stated; what is not private has no budget."""
    settings = plan()
    assert {each["seed"] for each in settings} == {1, 2, 3, 4, 5}
    assert {each["environment"] for each in settings} == {"A", "B", "C", "logistic"}
    assert all((each["epsilon"] is None) == (each["method"] in EXACT) for each in settings)
    assert len(plan(quick=True, seeds=3)) == 3 * 7


def test_the_printed_noise_is_that_of_a_tree():
    """The variance after t rounds is that of as many nodes as t has ones: six standard errors, 1e-8 for each."""
    noise, shifts, widths = printed_noise(Privacy(1.0, 1e-6), 63, d=40, seed=1)
    m = 7
    sigma = math.sqrt(16.0 * m * 4.0) * math.log(4e6)
    for t in (1, 32, 63):
        entries = noise[t - 1, :-40] / (math.sqrt(2.0 * t.bit_count()) * sigma)
        assert abs(np.mean(entries**2) - 1.0) < 6.0 * math.sqrt(2.0 / len(entries))
    assert (shifts == shifts[0]).all()
    assert (np.diff(widths) >= 0.0).all()


def test_runs_become_a_table_and_a_picture(tmp_path):
    settings = [each | {"horizon": 600} for each in plan(quick=True, seeds=2)]
    rows = table(settings, [run(each) for each in settings])
    regrets = {row["method"]: row["regret"] for row in rows}
    assert regrets[PRINTED] > regrets[UCB_FRONT]
    assert regrets[RANDOM] > regrets[EVERY]
    assert all(row["seeds"] == 2 and 0.0 <= row["at_tenth"] <= row["regret"] for row in rows)
    shown = show(rows)
    assert shown[0].row_count == 7
    assert "not private" in shown[-1]
    draw(rows, tmp_path / "bandits.svg")
    assert "as printed" in (tmp_path / "bandits.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "d", "T", "epsilon", "delta", "most"),
    [
        ("A", 10, 100_000, 0.1, 1e-6, 5_000),
        ("A", 10, 100_000, 1.0, 1e-6, 700),
        ("A", 10, 100_000, 10.0, 1e-6, 300),
        ("A", 5, 100_000, 0.1, 1e-6, 1_700),
        ("A", 5, 100_000, 1.0, 1e-6, 300),
        ("A", 5, 100_000, 10.0, 1e-6, 100),
        ("B", 5, 20_000, 1.0, 1e-6, 800),
        ("B", 5, 20_000, 1.0, 0.1, 430),
        ("B", 5, 20_000, 0.2, 0.1, 600),
    ],
)
def test_regret_is_what_is_promised(environment, d, T, epsilon, delta, most):
    """The mean of five seeds, on which no setting was chosen; repeatable, so a failure is a change."""
    one = {"environment": environment, "method": UCB_FRONT, "epsilon": epsilon, "horizon": T, "dimension": d}
    assert np.mean([run(one | {"delta": delta, "seed": seed})["regret"] for seed in range(1, 6)]) <= most
