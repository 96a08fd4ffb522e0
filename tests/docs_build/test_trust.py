"""What must be believed: the parts are there, are complete, and are counted rightly."""

import ast

import pytest

from cases import each
from docs_build import trust
from docs_build.trust import NOISE, ONCE, SOURCE, Part, code_lines_of, files_of, lines_of, reached

MARKERS = {"RowWise", "row_wise"}


@each("part", [*NOISE, *ONCE])
def test_every_part_is_there(part):
    assert files_of(part)
    assert lines_of(part) > 0


def test_the_kernel_is_counted_whole():
    files = {path for part in NOISE for path in files_of(part)}
    assert files >= {*(SOURCE / "kernel").rglob("*.py")}
    counted = trust.kernel_table().splitlines()[-1].split("|")[2].strip()
    assert counted == f"{lines_of(NOISE[0]):,}"


def test_every_row_encoder_is_named():
    """Files outside the kernel with the marker of row encoders, and no other room of them."""
    encoders = {path for part in NOISE for path in files_of(part)}
    marked = {path for path in SOURCE.rglob("*.py") if marks(path.read_text(encoding="utf-8"))}
    assert {str(path.relative_to(SOURCE)) for path in marked - encoders} == set()


def marks(source):
    """Whether a source has a class or function with the marker of row encoders, other than a check of them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            markers = [*getattr(node, "bases", ()), *node.decorator_list]
            if any(getattr(marker, "id", getattr(marker, "attr", "")) in MARKERS for marker in markers):
                return True
    return False


def test_a_planted_encoder_is_noticed():
    assert marks("class Mine(RowWise):\n    pass")
    assert marks("@row_wise\ndef encode(rows): ...")
    assert not marks("from x import RowWise\ndef check(map):\n    return isinstance(map, RowWise)")


def test_the_commit_is_followed_to_what_it_calls():
    (commit,) = [part for part in ONCE if part.within == ("Store.commit",)]
    names = {node.name for node in reached(files_of(commit)[0], commit.within)}
    assert {"commit", "_advance", "_must_follow", "_tell_witness"} <= names
    assert "backup" not in names


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", set()),
        ('"""Title.\n\nMore.\n"""\n', set()),
        ("x = 1\n\n# why\ny = 2  # why\n", {1, 4}),
        ('class A:\n    """Doc."""\n    x: int\n    """Of x."""\n', {1, 3}),
        ('def f():\n    return """a\nb"""\n', {1, 2, 3}),
        ("f = (\n    1,\n\n    2,\n)\n", {1, 2, 4, 5}),
        ("g = lambda: 1\nh = 1 if x else 2\n", {1, 2}),
    ],
)
def test_lines_of_code(source, lines):
    assert code_lines_of(source) == lines


def test_what_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"no kernel/none\.py"):
        files_of(Part("none", ("kernel/none.py",)))
    with pytest.raises(LookupError, match=r"Store\.none"):
        lines_of(Part("none", ("store/store.py",), ("Store.none",)))


def test_marks_become_tables():
    page = trust.with_tables("# A\n\n<!-- believed: once -->\n\n<!-- believed: kernel -->\n")
    assert "| the witness | `store/witness.py` |" in page
    assert "| **together** |" in page
    assert "<!--" not in page
