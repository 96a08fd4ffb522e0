"""What must be believed, with the lines of code of each part: tables for `docs/trust.md`, made when it is built.

A line of code is a line with a token that is no comment, docstring or blank. `<!-- believed: noise -->` and
`<!-- believed: once -->` on a page become the tables.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "taciturn"
MARK = re.compile(r"<!-- believed: (?P<name>noise|once|kernel) -->")
SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    *(tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER),
}


class Part(NamedTuple):
    """Files that are believed for one thing.

    `within`, if it is stated, names the functions at which one starts to read; counted are they, and the functions of
    the same file that they call, directly or not.
    """

    title: str
    files: tuple[str, ...]
    within: tuple[str, ...] = ()


NOISE = (
    Part("the kernel", ("kernel/**/*.py",)),
    Part(
        "row encoders: a row's encoding depends on that row and on settings alone",
        (
            *("columns/encoder.py", "columns/hashing.py", "columns/kinds.py", "columns/labels.py", "columns/scales.py"),
            *("columns/tables.py", "columns/target.py", "columns/values.py"),
            *("estimators/dict_rows.py", "estimators/river_scaling.py", "estimators/scaling.py"),
            *("readers/arrow.py", "readers/csv.py", "readers/jsonl.py", "readers/lines.py", "readers/parquet.py"),
            *("readers/parsed.py", "readers/rows.py", "service/events.py", "service/predictor.py"),
            *("service/rows.py", "service/typed_rows.py"),
            *("tables/column_maps.py", "tables/random_features.py", "tables/ranges.py"),
            *("tables/scaling_loops.py", "tables/waves_loops.py"),
        ),
    ),
    Part("GIGA", ("methods/giga.py",)),
    Part("FTL", ("methods/ftl.py", "methods/optimize.py")),
    Part("averages of iterates (POL)", ("methods/averaged.py",)),
    Part("objective perturbation", ("methods/objective_perturbation.py", "methods/optimize.py")),
    Part("EWOO, experts, selection", ("methods/ewoo.py", "methods/exponential.py", "methods/selection.py")),
)
"""What is believed for how much noise is added; the last ones by those who use that method."""

ONCE = (
    Part("a stream in a store: prepare, commit, show", ("streams/stored.py", "streams/private_stream.py")),
    Part("the one commit", ("store/store.py",), ("Store.commit",)),
    Part("opening and continuing a stream", ("store/store.py",), ("Store.create", "Store.load")),
    Part("the ledger's lines in the same transaction", ("store/book.py",)),
    Part("transactions", ("store/database.py", "store/sqlite.py", "store/postgres.py")),
    Part("the witness", ("store/witness.py",)),
)
"""What is believed for each round being released, and charged, once."""


def with_tables(markdown: str) -> str:
    """The page, each mark replaced by its table.

    >>> with_tables("A page without marks.")
    'A page without marks.'
    """
    made = {"noise": lambda: table(NOISE), "once": lambda: table(ONCE), "kernel": kernel_table}
    return MARK.sub(lambda mark: made[mark["name"]](), markdown)


def table(parts: tuple[Part, ...]) -> str:
    """Parts with their files and lines of code, as Markdown."""
    rows = [f"| {part.title} | {_where(part)} | {lines_of(part):,} |" for part in parts]
    return "\n".join(["| what | where | lines of code |", "|---|---|---:|", *rows])


def kernel_table() -> str:
    """The folders of the kernel with their lines of code."""
    folders = [path for path in sorted((SOURCE / "kernel").iterdir()) if any(path.glob("*.py"))]
    counted = [(f"`{path.name}/`", sum(map(lines_of_code, path.glob("*.py")))) for path in folders]
    counted.append(("single files", sum(map(lines_of_code, (SOURCE / "kernel").glob("*.py")))))
    counted.append(("**together**", sum(lines for _, lines in counted)))
    return "\n".join(["| folder | lines of code |", "|---|---:|", *(f"| {name} | {n:,} |" for name, n in counted)])


def _where(part: Part) -> str:
    if part.within:
        return f"`{part.files[0]}`: " + ", ".join(f"`{name}`" for name in part.within) + " and what is called there"
    if len(part.files) > 5:
        by_folder: dict[str, list[str]] = {}
        for file in part.files:
            folder, _, name = file.rpartition("/")
            by_folder.setdefault(folder, []).append(name.removesuffix(".py"))
        return "; ".join(f"`{folder}/`: {', '.join(names)}" for folder, names in by_folder.items())
    return ", ".join(f"`{file.removesuffix('**/*.py')}`" for file in part.files)


def lines_of(part: Part) -> int:
    """Lines of code of a part."""
    if not part.within:
        return sum(lines_of_code(path) for path in files_of(part))
    (path,) = files_of(part)
    functions = reached(path, part.within)
    return len({line for node in functions for line in range(node.lineno, end(node) + 1)} & code_lines(path))


def files_of(part: Part) -> list[Path]:
    """The files of a part; a pattern that matches none is an error."""
    found = [sorted(SOURCE.glob(pattern)) for pattern in part.files]
    if not all(found):
        missing = [pattern for pattern, paths in zip(part.files, found, strict=True) if not paths]
        raise FileNotFoundError(f"{part.title}: there is no {', '.join(missing)} in {SOURCE}. Name it in {__name__}.")
    return [path for paths in found for path in paths]


def lines_of_code(path: Path) -> int:
    """Number of lines of a file without docstrings, comments and blanks."""
    return len(code_lines(path))


@cache
def code_lines(path: Path) -> frozenset[int]:
    """Numbers of the lines of a file that are code."""
    return frozenset(code_lines_of(path.read_text(encoding="utf-8")))


def code_lines_of(source: str) -> set[int]:
    r"""Numbers of the lines of code of a source.

    >>> sorted(code_lines_of('"Title."\n\nx = 1  # one\n# two\ndef f():\n    "Doc."\n    return (\n        2)\n'))
    [3, 5, 7, 8]
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        for text in _texts(node):
            lines.difference_update(range(text.lineno, end(text) + 1))
    return lines


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """Texts in the place of a statement: docstrings, those of attributes included."""
    for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
        if isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str):
            yield statement.value


def reached(path: Path, starts: tuple[str, ...]) -> list[ast.FunctionDef]:
    """The functions of a file that `starts` call, by their names, directly or not, themselves included."""
    functions: dict[str, ast.FunctionDef] = {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            functions |= {f"{node.name}.{each.name}": each for each in node.body if isinstance(each, ast.FunctionDef)}
    waiting, found = list(starts), dict[str, ast.FunctionDef]()
    while waiting:
        name = waiting.pop()
        if name not in functions:
            raise LookupError(f"there is no {name} in {path}. Name in {__name__} what is there.")
        if name in found:
            continue
        found[name] = functions[name]
        owner = name.rpartition(".")[0]
        for used in ast.walk(functions[name]):
            if isinstance(used, ast.Name) and used.id in functions:
                waiting.append(used.id)
            elif isinstance(used, ast.Attribute) and getattr(used.value, "id", "") == "self":
                called = f"{owner}.{used.attr}"
                waiting += [called] if called in functions else []
    return list(found.values())


def end(node: ast.stmt | ast.expr) -> int:
    """The last line of a node."""
    return node.end_lineno or node.lineno
