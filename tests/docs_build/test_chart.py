"""A curve is drawn where its numbers say."""

from xml.etree import ElementTree

import pytest

from docs_build.chart import BELOW, DASHES, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Bar, Curve, bars, chart, label_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(x, y, curve):
    """The points of the one curve, turned back into numbers between 0 and 1."""
    root = ElementTree.fromstring(chart(x, y, [curve], "A curve"))
    [line] = [e for e in root.iter(f"{SVG}polyline") if e.get("stroke-linejoin") == "round"]
    points = [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
    return [((a - LEFT) / (WIDTH - LEFT - RIGHT), (HEIGHT - BELOW - b) / (HEIGHT - TOP - BELOW)) for a, b in points]


def test_plain_axes():
    """Up is more, right is more."""
    result = drawn(Axis("t", 0, 10), Axis("noise", 0, 4), Curve("c", [0, 5, 10], [0, 1, 4], "a"))
    assert [pytest.approx(pair, abs=1e-3) for pair in result] == [(0, 0), (0.5, 0.25), (1, 1)]


def test_logarithmic_axes():
    """Equal factors are equal ways."""
    x, y = Axis("t", 1, 100, log=True), Axis("r", 0.01, 1, log=True)
    result = drawn(x, y, Curve("c", [1, 10, 100], [1, 0.1, 0.01], "a"))
    assert [pytest.approx(pair, abs=1e-3) for pair in result] == [(0, 1), (0.5, 0.5), (1, 0)]


def test_what_lies_outside_is_left_out():
    assert len(drawn(Axis("t", 0, 10), Axis("noise", 0, 4), Curve("c", [0, 5, 10], [0, 5, 4], "a"))) == 2


@pytest.mark.parametrize("high", [0.3, 1, 7, 20, 55, 60, 1234])
def test_plain_ticks_are_few_and_reach_across(high):
    """Three to seven round numbers, none outside."""
    ticks = Axis("noise", 0, high).ticks
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert 0.7 * high <= ticks[-1] <= high * (1 + 1e-9)


def test_logarithmic_ticks_are_the_powers_of_ten_inside():
    assert Axis("r", 1e-5, 1.0, log=True).ticks == pytest.approx([1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0])
    assert Axis("r", 3, 50, log=True).ticks == [10.0]


def test_dots_and_dashes_are_told_apart_without_colours():
    """A curve of each style, and its sample in the legend."""
    styles = tuple(DASHES)
    curves = [Curve(style, [1, 2], [1, 2], "a", style) for style in styles]
    root = ElementTree.fromstring(chart(Axis("t", 0, 3), Axis("y", 0, 3), curves, "Four curves"))
    dashes = [e.get("stroke-dasharray") for e in root.iter(f"{SVG}polyline") if e.get("stroke-width") == "2"]
    assert sorted(map(str, dashes)) == sorted([str(DASHES[style]) for style in styles if style != "dots"] * 2)
    assert len(set(map(str, DASHES.values()))) == len(styles) - 1  # dots are no line
    assert len(list(root.iter(f"{SVG}circle"))) == 2 + 1
    assert {e.text for e in root.iter(f"{SVG}text")} >= set(styles)


def test_labels_are_short():
    assert [label_of(value) for value in (1e-4, 0.5, 1e6, 20.0)] == ["1e-4", "0.5", "1e6", "20"]


def test_bars_are_as_long_as_their_numbers():
    """On a logarithmic axis equal factors are equal lengths; a hollow bar has no fill."""
    items = [Bar("one", 1.0, "a"), Bar("ten", 10.0, "a"), Bar("hundred", 100.0, "b", hollow=True)]
    root = ElementTree.fromstring(bars(Axis("s", 0.1, 100, log=True), items, "Three bars"))
    boxes = list(root.iter(f"{SVG}rect"))
    first, *rest = (float(e.get("width")) for e in boxes)
    assert rest == [pytest.approx(2 * first, abs=0.2), pytest.approx(3 * first, abs=0.2)]
    assert [e.get("fill") == "none" for e in boxes] == [False, False, True]
    assert {"one", "10", "100"} <= {e.text for e in root.iter(f"{SVG}text")}
