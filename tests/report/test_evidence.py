"""The page of the evidence says what each experiment was given and found, in one file that asks nobody for anything."""

import re
from dataclasses import replace

import pytest

from taciturn.report.claims_plot import delivered_claims
from taciturn.report.evidence import NOT_PRIVATE, Part, evidence_page
from taciturn.report.grids import Grid
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


def test_the_page_is_whole_and_points_to_nothing_but_itself(picture):
    """Two experiments with pictures: every name is unique, every link leads to one, and no script or image is there."""
    page = evidence_page(
        [replace(PART, picture=picture), replace(PART, quick=True, picture=picture)], {"thirds": "More."}
    )
    found = tags(page)
    assert found.seen.count("svg") == 2
    assert {"script", "img", "image", "link", "iframe", "object"}.isdisjoint(found.seen)
    assert len(set(found.ids)) == len(found.ids) > 100
    assert {link[0] for link in found.links} == {"#"}
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert {"#halves", "#halves-quick"} <= set(found.links)
    assert not re.search(r"https?:|url\((?!#)|@import", page)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_it_says_what_it_was_given(picture):
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
        "In full: 1,234 runs, seeds 1, 2, by taciturn 1.2.3",
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


def test_what_is_lacking_leaves_no_trace():
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
