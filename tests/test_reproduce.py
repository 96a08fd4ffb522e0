"""The scripts run end to end, on less data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.datasets.files import folders

ROOT = Path(__file__).parents[1]


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_ad_clicks_prints_the_table_the_guarantee_and_saves_a_plot(tmp_path):
    """The demonstration shows every contender and says what is promised."""
    text = run("experiments/ad_clicks.py", "--impressions", "5000", "--out", str(tmp_path))
    for words in ("epsilon = 0.1", "epsilon = 10", "not private", "constant", "differentially"):
        assert words in text
    assert (tmp_path / "ad_clicks.png").stat().st_size > 10_000


def test_ad_clicks_with_a_seed_says_that_it_is_a_simulation(tmp_path):
    """A seeded run never claims to protect anyone."""
    text = run("experiments/ad_clicks.py", "--impressions", "2000", "--seed", "1", "--out", str(tmp_path))
    assert "simulation: not private" in " ".join(text.split()).lower()


def test_pigd_regret_prints_ratios_to_both_bounds():
    """One command, one row a horizon."""
    text = run("experiments/pigd_regret.py", "--horizons", "200", "400", "--seeds", "1")
    assert "theorem's bound" in text
    assert "200" in text
    assert "400" in text


def test_regret_slopes_prints_slopes_beside_exponents(tmp_path):
    """Every contender, a slope with its error, and the theorem's exponent; for machines too."""
    arguments = ("experiments/regret_slopes.py", "--horizons", "50", "100", "--seeds", "2", "--out", str(tmp_path))
    text = " ".join(run(*arguments).split())
    for name in ("PIGD", "PGIGA", "POCP over FTL", "EWOO", "0.75", "±"):
        assert name in text
    assert (tmp_path / "regret_slopes.png").stat().st_size > 10_000
    slopes = json.loads(run(*arguments, "--json"))
    assert slopes["EWOO"]["theorem"] == 0.5
    assert set(slopes["PIGD"]) == {"slope", "standard_error", "theorem"}


def test_ftrl_growth_prints_regret_beside_its_bound(tmp_path):
    """A row a horizon, for people and for machines, and a plot."""
    arguments = ("experiments/ftrl_growth.py", "--horizons", "100", "300", "--seeds", "2", "--out", str(tmp_path))
    assert "bound/regret" in " ".join(run(*arguments).split())
    assert (tmp_path / "ftrl_growth.png").stat().st_size > 10_000
    rows = json.loads(run(*arguments, "--json"))
    assert [row["T"] for row in rows] == [100, 300]
    assert all(0.0 < row["regret"] < row["bound"] for row in rows)


def test_offline_adult_runs_every_method_through_one_interface():
    """On a tenth of the rows; skipped where the data is not at hand."""
    if not any((Path(folder) / name).exists() for folder in folders() for name in ("adult.data", "adult.data.gz")):
        pytest.skip("Adult is not at hand: put adult.data into the folder named by TACITURN_DATA")
    arguments = ("experiments/offline_adult.py", "--rows", "3000", "--runs", "1", "--epsilons", "10", "--seed", "1")
    scores = json.loads(run(*arguments, "--json"))
    assert {name.split(",")[0] for name in scores} == {"POL", "output perturbation", "objective perturbation"}
    assert all(0.5 < runs["10.0"][0] <= 1.0 for runs in scores.values())
    assert "not private" in run(*arguments)
