"""The page of a run says what it was given, in one file that asks nobody for anything."""

import re
from dataclasses import replace

import pytest

from taciturn._util.html import line, ticks
from taciturn.runs.report import NOT_PRIVATE, SIMULATION, File, Learnt, Released, Weight, learnt_page
from tags import tags

PLAN = {
    "method": "pftrl",
    "why": "a bounded set",
    "mechanism": "BLT(5)",
    "schedule": "Every(rounds=10)",
    "horizon": 1000,
    "releases": 100,
    "ridge": 0.0,
    "radius": 2.5,
    "model": "last released point",
    "burn_in": None,
    "warning": "Little can be learnt.",
    "noise_of_last_release": {"BLT(5)": 4.0, "BinaryTree()": 8.0},
    "not_compared": {},
}
LEARNT = Learnt(
    title="Private model of <b>cover</b>",
    outcome="Interrupted after 500 rows.",
    guarantee="The whole published sequence is (1, 1e-06)-differentially private.",
    public=["the contract"],
    secret=["every row"],
    spent=(0.5, 1e-6),
    total=(2.0, 1e-6),
    t=500,
    made=50,
    coming=50,
    releases=[Released(10, 9.0), Released(250, 5.0), Released(500, 4.0)],
    planned=[510, 1000],
    plan=PLAN,
    noise_on="a sum",
    weights=[Weight("<i>age</i>", -2.0, 0.25), Weight("town=Rome", 1.0, 0.5)],
    models=50,
    files=[File("model.json", "the model")],
)
DIAGNOSTICS = {
    "measure": "accuracy",
    "accuracy": 0.75,
    "mean_loss": 0.5,
    "clipped_share": 0.125,
    "bad_rows": 3,
    "from_row": 0,
    "to_row": 500,
    "curve": [(250, 0.7), (500, 0.8)],
}


@pytest.mark.parametrize("diagnostics", [None, DIAGNOSTICS])
@pytest.mark.parametrize("simulated", [False, True])
def test_the_page_is_whole_and_loads_nothing(diagnostics, simulated):
    """No script, no picture, no font from elsewhere, and a policy that forbids them."""
    page = learnt_page(replace(LEARNT, diagnostics=diagnostics, simulated=simulated))
    found = tags(page)
    assert {"script", "img", "link", "iframe"}.isdisjoint(found.seen)
    assert found.links == []
    assert not re.search(r"https?:|url\(|@import", page)
    assert "default-src 'none'" in page
    assert (NOT_PRIVATE in page) == (diagnostics is not None)
    assert (SIMULATION in page) == simulated


def test_names_from_a_contract_are_text():
    """Whoever names a column writes no HTML."""
    page = learnt_page(LEARNT)
    assert "<i>age</i>" not in page
    assert "<b>cover</b>" not in page
    assert "&lt;i&gt;age&lt;/i&gt;" in page


def test_it_says_what_it_was_given():
    page = learnt_page(LEARNT)
    for words in (
        "epsilon = 0.5 of 2",
        "50 models after 500 rows, 50 yet to come",
        "First after row 10, last after row 500",
        "-2",
        "+1",
        "Every(rounds=10)",
        "Little can be learnt.",
        "BinaryTree()",
        "the model",
        "prefers-color-scheme: dark",
    ):
        assert words in page
    assert 'style="left:0.00%;width:25.00%"' in page  # spent, of the budget


def test_strategies_that_were_not_compared_are_named():
    page = learnt_page(replace(LEARNT, plan={**PLAN, "not_compared": {"<Tree>()": "too many releases"}}))
    tags(page)
    assert "Left out" in page
    assert "&lt;Tree&gt;()" in page
    assert "Left out" not in learnt_page(LEARNT)


def test_a_run_without_releases_says_so():
    """The largest weights are those of the data-free point: nothing."""
    page = learnt_page(replace(LEARNT, releases=[], made=0, weights=[Weight("age", 0.0, 0.0)], models=1))
    tags(page)
    assert "None yet" in page


def test_many_releases_are_thinned_out_and_the_last_stays():
    """A page has a size."""
    assert ticks(range(1, 100_001), [], 100_000.0, "").count("V90") == 150
    assert "M1000 10V90" in ticks(range(1, 100_001), [], 100_000.0, "")
    drawn = line([(t, 1.0 / t) for t in range(1, 100_001)], 100_000.0, "", logarithmic=True)
    assert drawn.count("L") < 400
    assert "L1000 90" in drawn


def test_a_flat_line_lies_in_the_middle():
    assert "M500 50L1000 50" in line([(5.0, 2.0), (10.0, 2.0)], 10.0, "")
