"""Pictures are well-formed, scale, and speak in the page's colours."""

from xml.etree import ElementTree

from docs_build.svg import COLOURS, box, drawing, line, number, tag, text


def test_words_are_escaped_once_and_children_are_preserved():
    """A text may hold any character, an attribute too."""
    root = ElementTree.fromstring(tag("g", text(1.0, 2.0, "a < b & c"), id='"x"'))
    assert root.attrib["id"] == '"x"'
    assert root[0].text == "a < b & c"


def test_attributes_that_are_none_are_left_out():
    assert tag("rect", fill=None, stroke_width=2.0) == '<rect stroke-width="2"/>'


def test_coordinates_are_rounded_to_a_tenth():
    assert [number(value) for value in (1.0, 1.04, 1.06, -0.5, 100.0)] == ["1", "1", "1.1", "-0.5", "100"]


def test_every_colour_is_the_pages_with_a_fallback():
    """So that one picture serves the light page and the dark one."""
    assert all(colour.startswith("var(--") and "," in colour for colour in COLOURS.values())


def test_a_drawing_scales_and_says_what_it_shows():
    root = ElementTree.fromstring(drawing(30.0, 20.0, "Two lines", line([(0, 0), (1, 1)]), box(1, 1, 2, 2)))
    assert root.attrib["viewBox"] == "0 0 30 20"
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "Two lines")
    assert "width" not in root.attrib
