"""Tables of a terminal, and rows, become tables of a page: the same words, and broken claims marked."""

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from taciturn.report.grids import data_grid, shown_grids


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
