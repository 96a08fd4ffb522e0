"""The page on a row's way is what is run, and the way gets no longer."""

import subprocess
import sys

from docs_build import row
from docs_build.row import PAGE, Way, traced

MOST = {"partial_fit": (38, 45), "post": (57, 194)}
"""Files, and returns to one that was left."""


def test_the_page_is_what_is_run():
    """In a process of its own, in which nothing is cached yet."""
    told = subprocess.run(
        [sys.executable, "-m", "docs_build.row", "--check"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, f"{told.stdout}{told.stderr}\nRun python -m docs_build.row, and look at the change."


def test_the_way_gets_no_longer():
    text = PAGE.read_text(encoding="utf-8")
    for name, (files, returns) in MOST.items():
        there = row.TABLE.search(text[text.index(f"<!-- way: {name} -->") :])
        numbers = [int(number) for number in there[0].splitlines()[1].split() if number.isdigit()]
        assert numbers[0] <= files, name
        assert numbers[1] <= returns, name


def test_a_way_counts_files_and_returns():
    from taciturn.kernel.accounting import gdp
    from taciturn.kernel.problem import losses

    way = Way()
    with traced(way):
        gdp.Privacy(1.0, 1e-6)
        losses.Logistic().value(0.5, 1.0)
        gdp.Privacy(1.0, 1e-6)
    assert way.visits[0] == "kernel/accounting/gdp.py"
    assert way.visits.count("kernel/problem/losses.py") == 1
    assert way.returns == len(way.visits) - len({*way.visits}) > 0
    assert "| 1 | `kernel/accounting/gdp.py` | `Privacy.__post_init__`" in way.table()


def test_a_stale_table_is_replaced():
    way = Way()
    page = "# Page\n\n<!-- way: post -->\nold\n<!-- end -->\n\nMore.\n"
    assert row.with_tables(page, {"post": way}) == f"# Page\n\n<!-- way: post -->\n{way.table()}<!-- end -->\n\nMore.\n"
