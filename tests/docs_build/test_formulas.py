"""Formulas are set with real subscripts and exponents, and everything else on a page stays as it is."""

import re
from pathlib import Path

import pytest

from docs_build.formulas import line, typeset

PAGES = sorted((Path(__file__).parents[2] / "docs" / "algorithms").glob("*.md"))
BLOCK = re.compile(r"\.formula \}\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("xₜ₊₁", "<i>x</i><sub>t+1</sub>"),
        ("w²R_y⁴", "<i>w</i><sup>2</sup><i>R</i><sub>y</sub><sup>4</sup>"),
        ("Σᵢ≤ₜ fᵢ(x)", "Σ<sub>i≤t</sub> <i>f</i><sub>i</sub>(<i>x</i>)"),
        ("α·t^(−¼)", "<i>α</i>·<i>t</i><sup>−¼</sup>"),
        ("(V + I)⁻¹ û", "(<i>V</i> + <i>I</i>)<sup>−1</sup> <i>û</i>"),
        ("a &lt; <b>min</b>", "a &lt; <b>min</b>"),
    ],
)
def test_a_formula(text, html):
    assert line(text) == html


def test_only_blocks_of_formulas_change():
    block = '<div class="formula highlight"><pre><span></span><code>xₜ</code></pre></div>'
    page = f"<p>xₜ</p>{block}<p>R_y</p>"
    assert typeset(page) == page.replace("<code>xₜ", "<code><i>x</i><sub>t</sub>")


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "index.md"], ids=lambda page: page.stem)
def test_formulas_of_the_algorithms_keep_their_characters(page):
    """Every page has one; without tags, and with marks of the plain text removed, it is what was written."""
    formulas = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert formulas
    for formula in formulas:
        set_in_html = line(formula)
        assert not re.search(r"[₀-₉ₜᵢⱼ_^]", set_in_html)
        plain = re.sub(r"<[^>]*>", "", set_in_html)
        assert len(plain) >= len(re.sub(r"[_^()]", "", formula))
