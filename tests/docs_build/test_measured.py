"""Pages show the results that were saved, and nothing else."""

import json

import pytest

from docs_build.measured import RESULTS, markdown_table, with_results

NOISE = {"tables": [{"columns": ["who", "µs"], "rows": [["taciturn", "1"]]}, {"columns": ["met"], "rows": [["no"]]}]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "noise.json").write_text(json.dumps(NOISE))
    return tmp_path


def test_a_mark_becomes_the_tables_of_its_file(folder):
    page = with_results("Before.\n\n<!-- measured: noise -->\n\nAfter.", folder)
    assert page.startswith("Before.\n\n| who | µs |\n|---|---:|\n| taciturn | 1 |\n\n| met |")
    assert page.endswith("After.")


def test_a_mark_may_name_one_of_them(folder):
    assert "taciturn" not in with_results("<!-- measured: noise 2 -->", folder)


def test_a_target_that_is_not_met_is_bold(folder):
    assert "| **no** |" in with_results("<!-- measured: noise 2 -->", folder)


def test_results_that_are_not_there_stop_the_build(folder):
    with pytest.raises(FileNotFoundError):
        with_results("<!-- measured: nothing -->", folder)


def test_targets_of_all_files_are_one_table(tmp_path):
    """Ratios, times and exponents; what has no target is left out."""
    result = {"median": 2.0, "target": "≥ 1", "met": True}
    (tmp_path / "a.json").write_text(json.dumps({"ratios": {"x / y": result, "y / z": result | {"target": ""}}}))
    late = {"targets": {"later": result | {"met": False}}}
    slope = {"axes": {"n": {"PIGD": {"exponent": 0.98, "target": "1", "met": True}}, "d": {"PIGD": result}}}
    (tmp_path / "b.json").write_text(json.dumps(late | slope))
    page = with_results("<!-- measured: targets -->", tmp_path).splitlines()
    assert page[2:] == [
        "| a | x / y | 2 | ≥ 1 | yes |",
        "| b | later | 2 | ≥ 1 | **no** |",
        "| b | PIGD: exponent in n | 0.98 | 1 | yes |",
    ]


def test_titles_stand_above():
    assert markdown_table({"title": "errors", "columns": ["n"], "rows": [["5"]]}).startswith("*errors*\n\n| n |")


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_every_result_has_tables_whose_rows_fit(file):
    for table in json.loads(file.read_text(encoding="utf-8"))["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
