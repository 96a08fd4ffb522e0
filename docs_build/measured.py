"""Tables of benchmark results, inserted where a page has a mark: what is saved in `benchmarks/results`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MARK = re.compile(r"<!-- measured: (?P<name>[a-z_]+)(?: (?P<which>\d+))? -->")


def with_results(markdown: str, folder: Path = RESULTS) -> str:
    """The page, each mark replaced: `<!-- measured: noise -->` by all tables of noise.json, `noise 2` by its second.

    `<!-- measured: targets -->` is a table of the targets of all files.

    >>> with_results("A page without marks.")
    'A page without marks.'
    """

    def replaced(mark: re.Match[str]) -> str:
        if mark["name"] == "targets":
            return markdown_table(targets(folder))
        return _tables(folder / f"{mark['name']}.json", mark["which"])

    return MARK.sub(replaced, markdown)


def targets(folder: Path) -> dict[str, Any]:
    """Ratios, times and exponents with a target: the result, the target, and whether it is met."""
    rows = []
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        results = record.get("ratios", {}) | record.get("targets", {})
        results |= {f"{name}: exponent in n": one for name, one in record.get("axes", {}).get("n", {}).items()}
        for name, one in results.items():
            if one.get("target"):
                number = one.get("median", one.get("exponent"))
                shown = f"{number:,.0f}" if number >= 1000.0 else f"{number:.3g}"
                rows.append([file.stem, name, shown, one["target"], "yes" if one["met"] else "no"])
    return {"columns": ["script", "quantity", "result (median)", "target", "met"], "rows": rows}


def _tables(file: Path, which: str | None) -> str:
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if "tables" not in record:
        raise FileNotFoundError(f"There is no {file} with tables. Run benchmarks/{file.stem}.py.")
    if which is not None:
        return markdown_table(record["tables"][int(which) - 1])
    return "\n\n".join([*map(markdown_table, record["tables"]), *record.get("words", [])])


def markdown_table(table: dict[str, Any]) -> str:
    """One table as Markdown; a target that is not met is set in bold.

    >>> print(markdown_table({"columns": ["who", "µs"], "rows": [["taciturn", "0.5"]]}))
    | who | µs |
    |---|---:|
    | taciturn | 0.5 |
    """
    columns, rows = table["columns"], table["rows"]
    numbers = [all(_is_number(row[j]) for row in rows) for j in range(len(columns))]
    head = ["| " + " | ".join(columns) + " |", "|" + "|".join("---:" if each else "---" for each in numbers) + "|"]
    verdicts = [column == "met" or column.endswith(", met") for column in columns]
    lines = ["| " + " | ".join(map(_cell, row, verdicts)) + " |" for row in rows]
    title = [f"*{table['title'].strip()}*", ""] if table.get("title") else []
    return "\n".join([*title, *head, *lines])


def _cell(text: str, verdict: bool) -> str:
    return f"**{text}**" if verdict and text == "no" else text


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("-−")[:1].isdigit()
