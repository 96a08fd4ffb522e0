"""The evidence page has the settings and results of each experiment, in one file that loads nothing; and its tables."""

import re
from dataclasses import replace

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from taciturn.reproduce.page import NOT_PRIVATE, Grid, Part, data_grid, evidence_page, shown_grids
from taciturn.reproduce.plots import delivered_claims
from tags import tags

PART = Part(
    name="halves",
    quick=False,
    version="1.2.3",
    command="taciturn reproduce halves --seeds 2",
    runs=1234,
    seconds=75.0,
    title="Half of <b>everything</b>",
    caption="It is less.",
    paper="A third, in Table 1.",
    settings=[("seed", "1, 2")],
    shown=[Grid("What is left", ["method", "half"], [False, True], [[("ours", ""), ("0.5", "bad")]]), "By division."],
    everything=Grid("In every row: T = 10", ["half"], [True], [[("0.51", "")]]),
)


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "claims.svg"
    delivered_claims({"alpha = 1": {("PIGD", "proven"): [(3.0, 0.2), (30.0, 2.0)]}}, "Claims", path)
    return path.read_text()


def test_the_page_is_complete_and_points_to_nothing_but_itself(picture):
    """Two experiments with pictures: every name is unique, every link leads to one, and no script or image is there."""
    page = evidence_page(
        [replace(PART, picture=picture), replace(PART, quick=True, picture=picture)], {"thirds": "More."}
    )
    result = tags(page)
    assert result.seen.count("svg") == 2
    assert {"script", "img", "image", "link", "iframe", "object"}.isdisjoint(result.seen)
    assert len(set(result.ids)) == len(result.ids) > 100
    assert {link[0] for link in result.links} == {"#"}
    assert {link[1:] for link in result.links} <= set(result.ids)
    assert {"#halves", "#halves-quick"} <= set(result.links)
    assert not re.search(r"https?:|url\((?!#)|@import", page)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_it_shows_everything_of_a_part(picture):
    page = evidence_page([replace(PART, picture=picture)], {"thirds": "More of it."})
    for words in (
        "It is less.",
        "A third, in Table 1.",
        "What is left",
        '<td class="number bad">0.5</td>',
        "By division.",
        "In every row: T = 10",
        "0.51",
        "<td>seed</td><td>1, 2</td>",
        "1,234",
        "75 s",
        "Full version: 1,234 runs, seeds 1, 2, taciturn 1.2.3",
        "1.2.3",
        "halves.csv",
        "taciturn reproduce halves --seeds 2",
        "thirds: More of it.",
        NOT_PRIVATE,
    ):
        assert words in page
    assert "(quick)" not in page
    assert "seeds none" in evidence_page([replace(PART, settings=[])])
    assert "Half of &lt;b&gt;everything&lt;/b&gt; (quick)" in evidence_page([replace(PART, quick=True)])


def test_empty_parts_are_left_out():
    """No picture, no word of the paper, no table of all rows, no missing experiment."""
    page = evidence_page([replace(PART, paper="", everything=None)])
    tags(page)
    for words in ("<figure", "In the paper", "Every row", "Not in this folder"):
        assert words not in page
    assert "It is less." in page


def test_a_page_of_nothing_names_what_could_be_there():
    page = evidence_page([], {"thirds": "More of it."})
    tags(page)
    assert "thirds: More of it." in page


# ---- tables --------------------------------------------------------------------------------------------------------


def test_a_table_of_a_terminal_keeps_its_words_and_what_stands_out():
    table = Table(title="[bold]Two[/bold] rows")
    table.add_column("method")
    table.add_column("epsilon", justify="right")
    table.add_row("[bold]ours[/bold]", "1")
    table.add_row("theirs", Text("37", style="dim"), style="red")
    table.add_row("a [red]part[/red]", "")
    grid, sentence = shown_grids([table, "Not [bold]private[/bold]."])
    assert (grid.title, grid.heads, grid.right) == ("Two rows", ["method", "epsilon"], [False, True])
    assert grid.rows == [
        [("ours", "strong"), ("1", "")],
        [("theirs", "bad"), ("37", "bad")],
        [("a part", "bad"), ("", "")],
    ]
    assert sentence == "Not private."


def test_an_empty_table_and_other_things_are_shown_too():
    empty = Table("method")
    grid, text = shown_grids([empty, Panel("inside")])
    assert list(grid.rows) == []
    assert "<th>method</th>" in grid.html()
    assert "inside" in text


def test_words_of_a_table_are_text():
    table = Table("a<b")
    table.add_row("<script>")
    (grid,) = shown_grids([table])
    assert "<script>" not in grid.html()
    assert "a&lt;b" in grid.html()


def test_rows_say_what_all_share_once_and_mark_broken_claims():
    rows = [
        {"T": 1000, "method": "PIGD", "delivered_epsilon": 0.30001, "target": None, "proven": True},
        {"T": 1000, "method": "POL", "delivered_epsilon": 36.94, "target": 1.5, "proven": False},
    ]
    grid = data_grid(rows)
    assert grid.title == "In every row: T = 1,000"
    assert grid.heads == ["method", "delivered epsilon", "target", "proven"]
    assert grid.right == [False, True, True, False]
    assert grid.rows == [
        [("PIGD", ""), ("0.3001", ""), ("–", ""), ("yes", "")],
        [("POL", "bad"), ("36.94", "bad"), ("1.5", "bad"), ("BROKEN", "bad")],
    ]
    assert grid.html().count('class="bad"') == 2
    assert grid.html().count('class="number bad"') == 2


def test_claims_of_either_name_are_marked():
    grid = data_grid([{"holds": True}, {"holds": False}])
    assert [row[0] for row in grid.rows] == [("yes", ""), ("BROKEN", "bad")]


def test_a_single_row_has_columns():
    assert data_grid([{"T": 1000}]).heads == ["T"]
