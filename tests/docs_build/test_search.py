"""Words that a newcomer types into the search lead to a page that answers them.

The search finds words by their stems, and ranks titles of pages and sections first; so each word must be in one.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "missing": "faq.md",
    "customer": "faq.md",
    "messy": "tutorial.md",
    "tutorial": "tutorial.md",
    "production": "production.md",
    "deploy": "production.md",
    "sign-off": "sign_off.md",
    "evidence": "evidence.md",
    "backup": "store.md",
    "budget": "budget.md",
}


def titles(page):
    """Titles of a page and of its sections, outside of code."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"^#{1,3} (.+)$", text, re.M)


def found(word, page):
    return any(re.search(rf"\b{word}", title, re.I) for title in titles(page))


@pytest.mark.parametrize(("word", "page"), ANSWERS.items())
def test_a_title_has_the_word(word, page):
    assert found(word, page)
    assert f": {page}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_a_word_that_no_title_has_is_not_found():
    assert not found("kubernetes", "production.md")
