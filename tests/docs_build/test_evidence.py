"""Results of experiments on the page: every experiment, in full, as it was saved."""

from pathlib import Path

import pytest

from docs_build import hooks
from docs_build.evidence import FIGURE, MARK, SAVED, save, section, with_evidence, with_figures
from taciturn.reproduce import REGISTRY
from taciturn.reproduce.page import Grid, Part, read_part, save_part

PAGE = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path id="a" style="fill: #ffffff"/></svg>'


def part(name="slopes", **changes):
    grid = Grid("Slopes", ["algorithm", "slope"], [False, True], [[("a_b|c", ""), ("0.5", "bad")]])
    return Part(name, False, "1.0", f"taciturn reproduce {name}", 3, 9.0, "T", "It grows.", "", [], [grid], **changes)


@pytest.fixture
def folder(tmp_path):
    save_part(part(), tmp_path)
    (tmp_path / "slopes.svg").write_text(SVG)
    return tmp_path


def test_every_experiment_is_shown_with_its_command():
    """A short version is called one."""
    assert sorted(MARK.findall(PAGE)) == sorted(REGISTRY)
    for name in REGISTRY:
        full = read_part(SAVED, name)
        saved = full or read_part(SAVED, f"{name}-quick")
        assert saved is not None
        assert saved.picture
        assert saved.shown
        assert saved.command.startswith(f"taciturn reproduce {name}")
        assert ("Short version" in section(saved)) == (full is None)


def test_the_page_has_tables_and_figures():
    page = with_evidence(PAGE)
    assert page.count("|---") >= 2 * len(REGISTRY)
    assert sorted(FIGURE.findall(page)) == sorted(REGISTRY)
    assert not MARK.search(page)


def test_a_mark_becomes_figure_caption_and_tables(folder):
    text = with_evidence("# Title\n\n<!-- evidence: slopes -->\n", folder)
    assert "It grows." in text
    assert r"| a\_b\|c | **0.5** |" in text
    assert "`taciturn reproduce slopes`" in text
    html = with_figures(text, folder)
    assert '<figure class="plot"><svg' in html
    assert 'id="slopes-a"' in html
    assert "http" not in html


def test_a_long_table_is_folded():
    rows = [[(str(i), "")] for i in range(50)]
    text = section(Part("x", False, "1", "c", 1, 1.0, "", "", "", [], [Grid("Many", ["n"], [True], rows)]))
    assert '??? note "Many (50 rows)"' in text
    assert "\n    | 49 |" in text


def test_results_that_are_not_there_stop_the_build(folder):
    with pytest.raises(FileNotFoundError, match="taciturn reproduce growth"):
        with_evidence("<!-- evidence: growth -->", folder)


def test_full_results_replace_short_ones(folder, tmp_path):
    for place in (folder, tmp_path / "saved"):
        save_part(Part("slopes", True, "1.0", "c", 3, 9.0, "T", "", "", [], []), place)
    save(folder, tmp_path / "saved")
    assert [path.name for path in (tmp_path / "saved" / "parts").iterdir()] == ["slopes.json"]
    assert section(read_part(tmp_path / "saved", "slopes")) == section(part(picture=SVG))


def test_the_site_shows_them():
    assert '<figure class="plot">' in hooks.on_post_page("<!-- evidence figure: errata -->")
