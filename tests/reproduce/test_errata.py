"""The errata as an experiment: the exact rows, all of them, and what a reader is shown of them."""

import re
from dataclasses import asdict
from io import StringIO

import pytest
from rich.console import Console

from taciturn.calibration import errata
from taciturn.reproduce.errata import EXPERIMENT, draw, plan, run, show, table


@pytest.fixture(scope="module")
def rows():
    runs = plan()
    return table(runs, [run(settings) for settings in runs])


def printed(rows):
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(*show(rows), sep="\n", highlight=False)
    return console.file.getvalue()


def test_the_rows_are_those_of_the_errata_exactly(rows):
    assert rows == [asdict(row) for row in errata.table()]


def test_quick_is_the_horizon_that_is_shown(rows):
    short = plan(quick=True, seeds=7)
    assert table(short, [run(settings) for settings in short]) == [row for row in rows if row["T"] == 100_000]


def test_a_claim_is_crossed_out_if_and_only_if_it_is_broken(rows):
    """One mark for every broken claim of the two tables, and red; what is marked is what is delivered, rounded up."""
    text = printed(rows)
    shown = [row for row in rows if row["T"] == 100_000]
    lines = [line for line in text.splitlines() if re.search(r"printed|proven", line)]
    assert sum(line.count("✗") for line in lines) == sum(not row["holds"] for row in shown)
    assert all(line.count("✗") == line.count("\x1b[31m") for line in lines)
    (pigd,) = [line for line in lines if "PIGD        proven    0.01" in line and "2.29" in line]
    assert re.findall(r"[\d.e]+ ✗", pigd) == ["2.29 ✗", "8.5 ✗", "37 ✗", "212 ✗", "379 ✗"]
    assert "…" not in text
    assert "Of all 570 claims" in text
    assert f"{sum(not row['holds'] for row in rows)}\nare broken" in text.replace("\x1b[0m", "")


def test_the_picture_shows_every_algorithm_and_reading(rows, tmp_path):
    import matplotlib.pyplot as plt

    draw(rows, tmp_path / "errata.svg")
    text = (tmp_path / "errata.svg").read_text()
    lines = {f"{row['algorithm']}, {row['reading']}" for row in rows}
    words = ("alpha = 0.01", "claimed epsilon", "delivered epsilon", "as claimed", "less private than claimed")
    for word in (*lines, *words, "T = 100,000"):
        assert word in text
    assert plt.get_fignums() == []


def test_what_delivers_nothing_has_no_place_on_a_logarithmic_axis(rows, tmp_path):
    """At delta = 0.01 some budgets are so small that delta alone pays for them."""
    loose = [row for row in rows if row["delta"] == 0.01]
    assert any(row["delivered_epsilon"] == 0.0 for row in loose)
    draw(loose, tmp_path / "errata.svg")
    assert "delta = 0.01" in (tmp_path / "errata.svg").read_text()


def test_the_caption_says_what_the_rows_say(rows):
    """Read as proven PIGD fails where alpha is small, PGIGA nowhere; the sums fail at small epsilon only."""

    def broken(**columns):
        return {row["epsilon"] for row in rows if columns.items() <= row.items() and not row["holds"]}

    at = {"T": 100_000, "delta": 1e-6}
    assert "lacks a factor 1/alpha" in EXPERIMENT.caption
    assert broken(algorithm="PIGD", reading="proven", alpha=1.0, **at) == set()
    assert broken(algorithm="PIGD", reading="proven", alpha=0.01, **at) == set(errata.EPSILONS)
    assert broken(algorithm="PQFTL", **at) == {0.01}
    assert broken(algorithm="PrivateSum", **at) == {0.01, 0.1}
    for algorithm in ("POCP", "PIGD", "PGIGA"):
        assert broken(algorithm=algorithm, reading="printed", **at) == set(errata.EPSILONS)
