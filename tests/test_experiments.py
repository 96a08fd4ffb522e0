"""The scripts run end to end, on less data."""

import subprocess
import sys
from pathlib import Path

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
