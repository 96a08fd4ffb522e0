"""The site shows examples as code, and each parameter with its own type."""

import pytest

griffe = pytest.importorskip("griffe")

from docs_build.docstrings import Plainer, plainer  # noqa: E402


def test_an_example_outside_of_its_section_is_code():
    shown = plainer("Rounds.\n\n>>> rounds(3)\n[1, 2, 3]\n\nMore text.\n\n>>> rounds(1)\n[1]")
    assert shown.count("```pycon\n>>> rounds") == 2
    assert "[1, 2, 3]\n```\n\nMore text." in shown
    assert shown.endswith("[1]\n```")


def test_examples_in_their_section_are_left_alone():
    text = "Rounds.\n\nExamples\n--------\n>>> rounds(3)\n[1, 2, 3]\n"
    assert plainer(text) == text
    assert plainer(plainer("Rounds.\n\n" + text)) == "Rounds.\n\n" + text


def test_lines_of_one_example_stay_together():
    assert plainer(">>> for i in range(2):\n...     print(i)\n0\n1\n").count("```") == 2


def test_names_that_share_a_description_keep_their_types():
    text = "Fit.\n\n    Parameters\n    ----------\n    rows, name\n        Both.\n    "
    code = f'def fit(rows: int, name: str):\n    """{text}"""'
    for extensions, types in (((), ["int", "int"]), ((Plainer(),), ["int", "str"])):  # the first is what it mends
        with griffe.temporary_visited_module(code, extensions=griffe.load_extensions(*extensions)) as module:
            parameters = module["fit"].docstring.parse("numpy")[1].value
        assert [str(parameter.annotation) for parameter in parameters] == types
