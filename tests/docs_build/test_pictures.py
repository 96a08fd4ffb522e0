"""Pictures show what they say: read back from the drawing, or from the numbers that are drawn."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from docs_build import hooks
from docs_build.measured import RESULTS
from docs_build.pictures import MARK, NAMES, choice, illustrated, noise, picture, regret, results, strategies, tree
from taciturn import Privacy

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
MU = Privacy(1.0, 1e-6).mu


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_complete(name):
    """Well-formed, with a text for those who do not see it, a caption of sentences, and nothing from elsewhere."""
    drawn = picture(name)
    root = ElementTree.fromstring(drawn.svg)
    assert len(root.attrib["aria-label"]) > 20
    assert drawn.caption.endswith(".")
    assert "nan" not in drawn.svg
    assert drawn.svg.count("http") == 1  # the name of the language
    paints = {e.get(kind) for e in root.iter() for kind in ("fill", "stroke")} - {None, "none"}
    assert paints
    assert all(paint.startswith("var(--") for paint in paints)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_drawn_outside(name):
    """Words have room, too, at more than half of their size a letter."""
    root = ElementTree.fromstring(picture(name).svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for e in root.iter():
        x, y = float(e.get("x", 0)), float(e.get("y", 0))
        if e.tag == f"{SVG}text" and "transform" not in e.attrib:
            long = len(e.text) * float(e.get("font-size")) * 0.55
            left = x - {"start": 0.0, "middle": long / 2, "end": long}[e.get("text-anchor")]
            assert left >= -2
            assert left + long <= width + 2, e.text
        assert 0 <= x + float(e.get("width", 0)) <= width
        assert 0 <= y + float(e.get("height", 0)) <= height
        for point in e.get("points", "").split():
            a, b = map(float, point.split(","))
            assert 0 <= a <= width
            assert 0 <= b <= height


def test_every_picture_is_shown_and_every_mark_is_a_picture():
    marks = {mark for page in DOCS.rglob("*.md") for mark in MARK.findall(page.read_text(encoding="utf-8"))}
    assert marks == set(NAMES)


def test_a_mark_becomes_a_figure_and_an_unknown_one_is_rejected():
    """In the page as it is written, after the search has read it."""
    page = hooks.on_post_page("<p>before</p><!-- picture: tree --><p>after</p>")
    assert re.fullmatch(r"<p>before</p><figure.*</figcaption></figure><p>after</p>", page, re.S)
    with pytest.raises(ValueError, match="no picture 'trees'"):
        illustrated("<!-- picture: trees -->")


def test_the_tree_has_the_nodes_of_figure_1():
    """Example 3 is in one node of each height; the sum after 7 examples has one node for each 1-bit of 7."""
    result = tree.nodes()
    assert len(result) == 15
    assert {node.name for node in result if node.holds} == {"3", "3–4", "1–4", "1–8"}
    assert {node.name for node in result if node.used} == {"1–4", "5–6", "7"}
    root = ElementTree.fromstring(picture("tree").svg)
    assert {e.text for e in root.iter(f"{SVG}text")} == {node.name for node in result}
    assert len(list(root.iter(f"{SVG}polyline"))) == 14  # every node but the root has a parent


def test_strategies_have_a_cell_for_every_entry():
    """And a stronger one for a larger entry."""
    shown = strategies.matrices()
    cells = [e for e in ElementTree.fromstring(picture("strategies").svg).iter(f"{SVG}rect") if e.get("fill") != "none"]
    every = [M for B, C in shown.values() for M in (B, C, np.tri(8))]
    assert len(cells) == sum(np.count_nonzero(M) for M in every)
    entries = np.concatenate([M[M != 0] / M.max() for M in every])
    shades = np.array([float(e.get("opacity", 1)) for e in cells])
    assert np.abs(shades - (0.15 + 0.85 * entries)).max() < 0.01
    for B, C in shown.values():
        assert np.allclose(B @ C, np.tri(8))


def test_noise_of_sums_is_that_of_the_closed_forms():
    """The tree: seven levels, and a node for each 1-bit; the square root: the sum of squares of its column."""
    curves = {curve.name: np.array(curve.y) for curve in noise.of_sums()}
    bits = np.array([k.bit_count() for k in range(1, 65)])
    assert np.allclose(curves["binary tree"], 2 * np.sqrt(7 * bits) / MU, rtol=1e-3)
    f = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, 64))])
    assert np.isclose(curves["square root"][-1], 2 * np.sum(f**2) / MU, rtol=1e-3)
    assert (curves["binary tree, refined"] <= curves["binary tree"] * (1 + 1e-9)).all()
    assert (curves["BLT"][8:] < curves["BLT, no horizon"][8:]).all()


def test_noise_of_iterates_is_shaped_and_spends_the_budget():
    """Σ S²/sigma² is mu² over the releases shown in full."""
    from taciturn import IGD, L2Ball, Logistic, Problem

    _, often, few, radius = noise.of_iterates()
    certificate = IGD(Problem(Logistic(), L2Ball(2.0), dimension=15, ridge=0.03)).certificate
    assert np.isclose(np.sum((certificate.at(few.x) / np.array(few.y)) ** 2), MU**2, rtol=1e-3)
    assert 50 < often.y[-1] / few.y[-1] < 65
    assert radius.y[0] == pytest.approx(2 / np.sqrt(15))


def test_regret_is_that_of_the_library():
    """One run, told again in plain words; and the captions' order of the methods at epsilon = 1."""
    from taciturn import geometric, pftrl
    from taciturn.datasets import linear_regression
    from taciturn.regret import best_in_hindsight, replay

    recipe, *_ = regret.METHODS["private FTRL, geometric(1.1)"]
    stream = linear_regression(regret.EXAMPLES, 10, seed=2)
    private = pftrl(regret.PROBLEM, Privacy(1.0, 1e-6), regret.EXAMPLES, schedule=geometric(1.1), seed=2)
    _, releases = private.run(private.start(), stream.X, stream.y)
    best = best_in_hindsight(regret.PROBLEM, stream.X, stream.y)
    expected = replay(regret.PROBLEM, releases, stream.X, stream.y).average_regret(best)
    assert regret.regrets(recipe, (1.0,), (2,)) == [pytest.approx(expected)]
    often, *rest = (regret.regrets(made, (1.0,), (1,))[0] for made, *_ in regret.METHODS.values())
    assert max(rest) < regret.zero() < often


@pytest.mark.parametrize("name", ["accuracy", "sums", "iterates", "regret"])
def test_curves_are_told_apart_without_colours(name):
    """No two samples of a legend have the same strokes; dots are no stroke."""
    lines = ElementTree.fromstring(picture(name).svg).iter(f"{SVG}polyline")
    samples = [e for e in lines if e.get("stroke-width") == "2" and "stroke-linejoin" not in e.attrib]
    assert len(samples) >= 3
    assert len({e.get("stroke-dasharray") for e in samples}) == len(samples)


def test_few_releases_are_as_many_as_the_legend_says():
    few = regret.METHODS["PIGD, 9 releases"][0](Privacy(1.0, 1e-6), 1)
    assert len(few.timetable.rounds) == 9


def test_the_choice_is_the_plans():
    """Its ends, in the order of the cases, are those of the rule."""
    ends = ["pqftl", "pftrl", "pgiga", "pigd", "rejected"]
    assert [choice.chosen(case) for case in choice.CASES] == ends
    words = {e.text for e in ElementTree.fromstring(picture("choice").svg).iter(f"{SVG}text")}
    assert words >= set(ends)


def test_results_are_those_that_were_saved():
    """Medians and means of `benchmarks/results`, with the order and the differences that the captions state."""
    seconds = json.loads((RESULTS / "logistic.json").read_text(encoding="utf-8"))["seconds"]
    drawn = {e.text for e in ElementTree.fromstring(picture("speed").svg).iter(f"{SVG}text")}
    assert {f"{1e6 * np.median(seconds[name]):.3g}" for name in results.CONTENDERS} <= drawn
    scores = results.accuracies()
    assert all(set(each) == {None, 0.1, 1.0, 10.0} for each in scores.values())
    cost = max(each[None] - each[1.0] for each in scores.values())
    assert f"at most {cost:.1f} points below" in picture("accuracy").caption
