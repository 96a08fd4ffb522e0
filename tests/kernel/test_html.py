"""Pictures of matplotlib share a page: unique ids, links that lead to one, no address, the page's colours."""

import re

import pytest

from taciturn._util.html import inline_svg
from taciturn.reproduce.plots import Curve, Panel, delivered_claims, save_panels


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    delivered_claims({"alpha = 1": {("PIGD", "proven"): [(3.0, 0.2), (30.0, 2.0)]}}, "Claims", folder / "a.svg")
    curves = {"FTRL": Curve([0.1, 1.0], [0.3, 0.2]), "none": Curve((), [0.1])}
    save_panels([[Panel("alpha = 1", "epsilon", "regret", curves)]], "Regret", folder / "b.svg")
    return [(folder / name).read_text() for name in ("a.svg", "b.svg")]


def ids(text):
    return re.findall(r'\bid="([^"]+)"', text)


def pointed_at(text):
    return set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))


def test_pictures_side_by_side_have_no_name_in_common(files):
    """As they are they have: the same glyph is the same name, and two axes are axes_1."""
    assert {"DejaVuSans-44", "axes_1"} <= set(ids(files[0])) & set(ids(files[1]))
    named = [name for i, text in enumerate(files) for name in ids(inline_svg(text, f"picture-{i}", ""))]
    assert len(set(named)) == len(named) == sum(len(ids(text)) for text in files)


def test_whatever_is_pointed_at_is_there(files):
    for text in files:
        made = inline_svg(text, "one", "")
        targets = {a or b for a, b in pointed_at(made)}
        assert targets
        assert targets <= set(ids(made))
        assert len(targets) == len({a or b for a, b in pointed_at(text)})


def test_nothing_of_another_host_and_no_style_for_the_whole_page_is_left(files):
    for text in files:
        made = inline_svg(text, "one", "")
        assert "http" in text
        assert not re.search(r"https?:|<style|<metadata|xmlns|<!--|ns0:", made)
        assert made.count("<path") == text.count("<path")


def test_greys_are_mixed_from_ink_and_paper_and_colours_stay(files):
    made = inline_svg(files[0], "one", "")
    assert not re.search(r"#(..)\1\1\b", made)
    assert "color-mix(in srgb, var(--ink) 100%, var(--card))" in made
    assert "color-mix(in srgb, var(--ink) 0%, var(--card))" in made
    assert made.count("#d55e00") == files[0].count("#d55e00") > 0


def test_it_stretches_with_the_page_and_says_what_it_is(files):
    made = inline_svg(files[0], "one", 'Claims <of "all">')
    opening = made[: made.index(">", made.index("aria-label"))]
    assert "viewBox" in opening
    assert "width" not in opening
    assert 'aria-label="Claims &lt;of &quot;all&quot;&gt;' in opening + ">"
