"""Blocks that print a table are marked, and no others."""

import pytest

from docs_build.aligned import marked


def block(classes: str, text: str) -> str:
    return f'<div class="{classes} highlight"><pre><span></span><code>{text}</code></pre></div>'


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ("language-console", "$ check\n┃ column ┃ missing ┃\n│ age    │ 0       │"),
        ("language-text prints", "   customer_id prediction\n0       596954       rest"),
    ],
)
def test_tables_are_marked(classes, text):
    page = f"<p>a</p>{block(classes, text)}"
    assert marked(page) == page.replace(f'"{classes} highlight"', f'"{classes} aligned highlight"')


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ("language-console", "$ make bench     # every script"),
        ("language-text prints", "two models: epsilon = 1.40"),
        ("language-python", "a =    1"),
    ],
)
def test_other_blocks_stay(classes, text):
    page = f"{block(classes, text)}<p>┃    a</p>{block('language-console', '┃')}"
    assert marked(page).startswith(block(classes, text))
