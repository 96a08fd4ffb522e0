"""What MkDocs calls while it builds the site: the commands, results and pictures take the place of their marks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs loads this file by its path, not as part of a package

from docs_build import aligned, commands, evidence, formulas, measured, pictures, trust


def on_startup(**_: Any) -> None:
    """One thread for linear algebra: what is drawn is small, and threads would wait for each other."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported, which pictures do first


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Results and the list of commands, where a page asks; a page without sections needs no list of them beside it."""
    markdown = trust.with_tables(evidence.with_evidence(measured.with_results(markdown)))
    if page is not None and "\n## " not in markdown and ":::" not in markdown:
        page.meta["hide"] = [*page.meta.get("hide", []), "toc"]
    if commands.MARK not in markdown:
        return markdown
    import typer.main

    from taciturn.cli import app as cli

    return markdown.replace(commands.MARK, commands.reference(typer.main.get_command(cli.app)))


def on_post_page(output: str, **_: Any) -> str:
    """Formulas and pictures come last, so that the search does not read their letters and labels."""
    return evidence.with_figures(pictures.illustrated(formulas.typeset(aligned.marked(output))))
