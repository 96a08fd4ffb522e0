"""`taciturn init`, `check` and `predict`: from a header to a contract, and from a model to predictions."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.errors import InvalidInput
from taciturn.readers.source import Format

if TYPE_CHECKING:  # commands import what they need, so that others start at once
    from taciturn.readers.draft import Draft

Texts = list[str] | None


def init(
    data: Annotated[str, typer.Argument(help="The file whose header is read, or - for the standard input.")],
    out: Annotated[Path, typer.Option(help="Where to write the contract.")] = Path("taciturn.toml"),
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    classes: Annotated[str | None, typer.Option(help="The target's classes, as in no,yes.")] = None,
    positive: Annotated[str | None, typer.Option(help="Values of the target against the rest, as in 2.")] = None,
    target_range: Annotated[str | None, typer.Option(help="The target's range, as in 0:10.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Total epsilon of everything published.")] = None,
    delta: Annotated[float | None, typer.Option(help="Total delta; 1e-6 if left out.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Number of rows; leave out for a stream without end.")] = None,
    ranges: Annotated[Texts, typer.Option("--range", help="A column's range, as in age=0:100.")] = None,
    categories: Annotated[Texts, typer.Option(help="A column's categories, as in soil=clay,sand.")] = None,
    hashes: Annotated[Texts, typer.Option("--hash", help="A column to hash, as in ip=256.")] = None,
    ignore: Annotated[Texts, typer.Option(help="A column not to read.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names, of JSON lines for one, as in age,town; CSV needs a header too.")
    ] = None,
    format: Annotated[Format | None, typer.Option(help="The file's format, if its ending does not say.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; what is not stated is left open.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a contract that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines; ask nothing.")] = False,
) -> None:
    """Draft a contract from a file's header. No row is read: what is public, you state.

    Example: taciturn init trees.csv --target cover --positive 2 --epsilon 1 --range elevation=1859:3858
    """
    from taciturn._util.output import json_text
    from taciturn.readers.draft import Draft, ask, columns_of, distinct, range_of, stated_columns, values_of

    if out.exists() and not force:
        raise InvalidInput(f"{out} exists. Name another with --out, or say --force to overwrite it.")
    names, kinds = (distinct([n.strip() for n in columns.split(",")]), {}) if columns else columns_of(data, format)
    aim = _given(
        column=target,
        classes=classes and values_of(classes, "classes"),
        positive=positive and values_of(positive, "positive"),
        range=target_range and range_of(target_range, "the target"),
    )
    budget, learning = _given(epsilon=epsilon, delta=delta), _given(horizon=horizon)
    stated = stated_columns(names, ranges or [], categories or [], hashes or [], ignore or [])
    draft = Draft(Path(data).name, names, kinds, budget, aim, learning, stated)
    if sys.stdin.isatty() and data != "-" and not (yes or as_json):
        ask(draft, lambda about: str(typer.prompt(about, default="", show_default=False, err=True)))
    out.write_text(draft.text(), encoding="utf-8")
    typer.echo(json_text({"written": str(out), "open": draft.open}) if as_json else _what_next(out, draft))


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _what_next(out: Path, draft: Draft) -> str:
    if draft.open:
        return f'Wrote {out}. Fill in what is "?" ({", ".join(draft.open)}), then: taciturn check {out}'
    return f"Wrote {out}. Now: taciturn check {out}"


def check(
    contract: Annotated[Path, typer.Argument(help="The contract file.")] = Path("taciturn.toml"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Explain a contract: what it promises, what is public, the features, and the noise to expect.

    Exit status 2 if it is refused.

    Example: taciturn check taciturn.toml
    """
    from rich.console import Console

    from taciturn._util.output import json_text
    from taciturn.contract.contract import read_contract
    from taciturn.contract.explain import explain, explanation

    declared = read_contract(contract)
    plan = declared.plan()
    if as_json:
        typer.echo(json_text(explain(declared, plan)))
    else:
        Console().print(*explanation(declared, plan), sep="\n", highlight=False)


def predict(
    model: Annotated[Path, typer.Argument(help="The model.json of taciturn learn.")],
    data: Annotated[str, typer.Argument(help="CSV, JSON lines or Parquet, or - for the standard input.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; by default to the output.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Write the classes' probabilities too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines in the place of CSV.")] = False,
    bad_rows: Annotated[
        Literal["stop", "blank"], typer.Option(help="At a row that cannot be read stop, or leave a blank.")
    ] = "stop",
    format: Annotated[Format | None, typer.Option(help="The data's format, if its ending does not say.")] = None,
) -> None:
    """Predict from a model, a line for each row; labels are not needed, and not read.

    Example: taciturn predict model.json new.csv --out predictions.csv
    """
    from taciturn._util.atomic import replaced
    from taciturn.contract.model_file import read_model
    from taciturn.readers.rows import open_rows
    from taciturn.readers.score import write_predictions

    read = read_model(model)
    batches = open_rows(
        read.contract, data, bad_rows="zero" if bad_rows == "blank" else "stop", labelled=False, format=format
    )
    if out is None:
        write_predictions(read, batches, sys.stdout, proba=proba, as_json=as_json)
        return
    with replaced(out) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        write_predictions(read, batches, text, proba=proba, as_json=as_json)
        text.detach()  # or it closes the file, which is not on the disk yet
