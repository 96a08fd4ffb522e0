"""Tables of what the benchmarks measured, where a page asks for them: what is kept in `benchmarks/results`, no more."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MARK = re.compile(r"<!-- measured: (?P<name>[a-z_]+)(?: (?P<which>\d+))? -->")


def with_results(markdown: str, folder: Path = RESULTS) -> str:
    """The page, each mark replaced: `<!-- measured: noise -->` by all tables of noise.json, `noise 2` by its second.

    `<!-- measured: wishes -->` is a table of all that was wanted, of all files.

    >>> with_results("A page without marks.")
    'A page without marks.'
    """

    def replaced(mark: re.Match[str]) -> str:
        if mark["name"] == "wishes":
            return markdown_table(wishes(folder))
        return _tables(folder / f"{mark['name']}.json", mark["which"])

    return MARK.sub(replaced, markdown)


def wishes(folder: Path) -> dict[str, Any]:
    """Ratios, limits and exponents that were wanted, what was found, and whether that is enough."""
    rows = []
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        found = record.get("ratios", {}) | record.get("limits", {})
        found |= {f"{name}: exponent in n": one for name, one in record.get("axes", {}).get("n", {}).items()}
        for name, one in found.items():
            if one.get("wanted"):
                number = one.get("median", one.get("exponent"))
                shown = f"{number:,.0f}" if number >= 1000.0 else f"{number:.3g}"
                rows.append([file.stem, name, shown, one["wanted"], "yes" if one["met"] else "no"])
    return {"columns": ["script", "what", "median", "wanted", "met"], "rows": rows}


def _tables(file: Path, which: str | None) -> str:
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if "tables" not in record:
        raise FileNotFoundError(f"There is no {file} with tables. Run benchmarks/{file.stem}.py.")
    if which is not None:
        return markdown_table(record["tables"][int(which) - 1])
    return "\n\n".join([*map(markdown_table, record["tables"]), *record.get("words", [])])


def markdown_table(table: dict[str, Any]) -> str:
    """One table as Markdown; a wish that was missed is set in bold.

    >>> print(markdown_table({"columns": ["who", "µs"], "rows": [["taciturn", "0.5"]]}))
    | who | µs |
    |---|---:|
    | taciturn | 0.5 |
    """
    columns, rows = table["columns"], table["rows"]
    numbers = [all(_is_number(row[j]) for row in rows) for j in range(len(columns))]
    head = ["| " + " | ".join(columns) + " |", "|" + "|".join("---:" if each else "---" for each in numbers) + "|"]
    wishes = [column == "met" or column.endswith(", met") for column in columns]
    lines = ["| " + " | ".join(map(_cell, row, wishes)) + " |" for row in rows]
    title = [f"*{table['title'].strip()}*", ""] if table.get("title") else []
    return "\n".join([*title, *head, *lines])


def _cell(text: str, wish: bool) -> str:
    return f"**{text}**" if wish and text == "no" else text


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("-−")[:1].isdigit()
