"""`taciturn init`, `check` and `predict`: draft and explain a contract, and predict with a model."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.cli.output import integral, warn
from taciturn.errors import InvalidInput
from taciturn.errors import positive as above_0
from taciturn.readers.source import Format

if TYPE_CHECKING:  # imported inside commands, so that the others start fast
    from taciturn.readers.draft_contract import Draft
    from taciturn.readers.table_check import TableCheck

Texts = list[str] | None


def init(
    data: Annotated[str, typer.Argument(help="File whose header is read, or - for the standard input.")],
    out: Annotated[Path, typer.Option(help="Contract file to write.")] = Path("taciturn.toml"),
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    classes: Annotated[str | None, typer.Option(help="Classes of the target, as in no,yes.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive values of the target, against the rest, as in 2.")
    ] = None,
    target_range: Annotated[
        str | None, typer.Option(help="Range of the target, as in 0:10, or private to find it.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Total epsilon of everything that is published.")] = None,
    delta: Annotated[float | None, typer.Option(help="Total delta; 1e-6 by default.")] = None,
    horizon: Annotated[
        int | None,
        typer.Option(help="Number of rows; without it, many streams end at 2^23.", parser=integral, metavar="N"),
    ] = None,
    ranges: Annotated[
        Texts,
        typer.Option("--range", help="Range of a column, as in age=0:100, or age=private to find it."),
    ] = None,
    categories: Annotated[Texts, typer.Option(help="Categories of a column, as in soil=clay,sand.")] = None,
    hashes: Annotated[Texts, typer.Option("--hash", help="Column to hash and number of buckets, as in ip=256.")] = None,
    ignore: Annotated[Texts, typer.Option(help="Column to ignore.")] = None,
    declared: Annotated[
        Texts,
        typer.Option(
            "--column",
            help="Any column, as in 'income=0:1e6 symlog threshold=1000', 'visits=1:1e3 log missing=1 indicator', "
            "'since=date 2015-01-01:2030-01-01 month', 'age=bins 0,18,65,120' or 'note=text 1024'.",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Column of users' ids, to protect users instead of rows.")] = None,
    rows_per_user: Annotated[int | None, typer.Option(help="Rows of a user that count.", metavar="K")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Names of the columns, as in age,town, for JSON lines; a CSV file needs a header too."),
    ] = None,
    format: Annotated[Format | None, typer.Option(help="Format of the file; by default from its extension.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; values that are not stated are left blank.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing contract.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and do not ask.")] = False,
) -> None:
    """Draft a contract from the header of a file. No row is read: ranges and categories are stated by the user.

    Example: taciturn init trees.csv --target cover --positive 2 --epsilon 1 --range elevation=1859:3858
    """
    from taciturn._util.output import json_text
    from taciturn.readers.draft_contract import Draft, columns_of, distinct, range_of, stated_columns, values_of

    if out.exists() and not force:
        raise InvalidInput(f"{out} exists. Pass another file by --out, or --force to overwrite it.")
    kinds: dict[str, str] = {}
    if columns:
        names = distinct([name.strip() for name in columns.split(",")])
    else:
        names, kinds = columns_of(data, format)
    if sum(value is not None for value in (classes, positive, target_range)) > 1:
        raise InvalidInput("--classes, --positive and --target-range each say what the target is. State one of them.")
    asks = sys.stdin.isatty() and data != "-" and not (yes or as_json)
    if rows_per_user is not None and user is None and not asks:
        raise InvalidInput("--rows-per-user needs a column of ids. State it, as in --user customer_id.")
    listed = values_of(classes, "classes") if classes else None
    if listed is not None and len(listed) < 2:
        raise InvalidInput("--classes lists all classes, and has one. For one against the rest, use --positive.")
    predicted = _given(
        column=target,
        classes=listed,
        positive=positive and values_of(positive, "positive"),
        range=target_range and range_of(target_range, "the target"),
    )
    epsilon = None if epsilon is None else above_0("epsilon", epsilon)
    budget = _given(epsilon=epsilon, delta=delta, user=user, rows_per_user=rows_per_user)
    learning = _given(horizon=horizon)
    stated = stated_columns(names, ranges or [], categories or [], hashes or [], ignore or [], declared or [])
    draft = Draft(Path(data).name, names, kinds, budget, predicted, learning, stated)
    if asks:
        _ask(draft)
    out.write_text(draft.text(), encoding="utf-8")
    typer.echo(json_text({"written": str(out), "open": draft.open}) if as_json else _what_next(out, draft))


def _ask(draft: Draft) -> None:
    """Ask at the terminal, show the contract, and ask whether to write it; if not, all questions are asked again."""
    from copy import deepcopy

    from taciturn.readers.draft_contract import ask

    def question(about: str) -> str:
        return str(typer.prompt(about, default="", show_default=False, err=True))

    def say(text: str) -> None:
        typer.echo(text, err=True)

    stated = deepcopy(draft)
    ask(draft, question, say)
    say(f"\n{draft.text()}")
    while not typer.confirm("Write this contract? (no: answer again)", default=True, err=True):
        for name in ("privacy", "target", "learning", "columns"):
            setattr(draft, name, deepcopy(getattr(stated, name)))
        ask(draft, question, say)
        say(f"\n{draft.text()}")


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _what_next(out: Path, draft: Draft) -> str:
    if draft.open:
        return f'Wrote {out}. Fill in what is "?" ({", ".join(draft.open)}), then: taciturn check {out}'
    return f"Wrote {out}. Now: taciturn check {out}"


def check(
    contract: Annotated[Path, typer.Argument(help="Contract file.")] = Path("taciturn.toml"),
    data: Annotated[
        str | None, typer.Argument(help="A file to try the contract on: NOT PRIVATE, for the operator alone.")
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="List the most frequent values of the data that are not declared.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    format: Annotated[
        Format | None, typer.Option(help="Format of the data; by default from the file extension.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Plan for processes or machines that add up rows, and say what to state.", min=1)
    ] = None,
) -> None:
    """Explain a contract: the guarantee, what is public, the features, and the expected noise.

    With a file, read all of its rows instead, learn nothing and spend nothing: show bad rows by reason, missing values,
    values outside of ranges, unknown categories, labels, clipped rows, features that never vary, and what its users are
    promised. This is computed from exact data: it is NOT PRIVATE. Without --show-values it shows no value of the data.

    Exit status 2 if the contract is invalid.

    Example: taciturn check taciturn.toml visits.csv
    """
    from rich.console import Console

    from taciturn._util.output import json_text
    from taciturn.contract.contract import read_contract
    from taciturn.contract.explain import explain, explanation, release_for_workers

    declared = read_contract(contract)
    if workers is not None and declared.bandit is not None:
        raise InvalidInput("a contract with [bandit] is for taciturn serve, which has no workers. Leave --workers out.")
    plan = declared.plan(workers=workers)
    if workers is not None and (rounds := release_for_workers(declared, plan)) is not None:
        warn(f"workers learn this contract if it states release = {rounds} under [learning]; it does not yet.")
    if data is None:
        if as_json:
            typer.echo(json_text(explain(declared, plan)))
        else:
            Console().print(*explanation(declared, plan), sep="\n", highlight=False)
        return
    from taciturn.readers.rows import open_parts
    from taciturn.readers.table_check import check_table

    with closing(open_parts(declared, data, format=format)) as parts:
        found = check_table(declared, plan, parts, _tell_rows, show_values)
    if sys.stderr.isatty():
        typer.echo("\r" + " " * 40 + "\r", nl=False, err=True)  # the progress
    if as_json:
        typer.echo(json_text({**explain(declared, plan), "data": found.as_data()}))
    else:
        Console().print(*_table_report(found), sep="\n", highlight=False)


def _tell_rows(rows: int) -> None:
    """Print the progress at a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"\r{rows:,} rows", nl=False, err=True)


def _table_report(check: TableCheck) -> list[Any]:
    """The check of a table for the terminal."""
    from rich.markup import escape
    from rich.table import Table

    from taciturn._util.output import NOT_PRIVATE

    lines: list[Any] = [
        f"[bold red]{NOT_PRIVATE}[/bold red]",
        f"{check.rows:,} rows, {check.bad:,} of them bad{_percent(check.bad, check.rows)}: without influence, with "
        "--bad-rows zero.",
    ]
    if check.reasons:
        reasons = Table("why a row is bad", "rows")
        for reason, count in check.reasons.most_common(20):
            reasons.add_row(escape(reason), f"{count:,}")
        lines.append(reasons)
    lines += [_columns_report(check), *_rows_report(check)]
    lines += [f"- {escape(remedy)}" for remedy in check.remedies]
    lines += [f"- {escape(check.conclusion)}", ""]
    if check.contract.user is None:
        return [*lines, 'The contract names no column of users\' ids: state [bold]user = "…"[/bold] under \\[privacy].']
    own = f", and {check.without_id:,} rows without an id" if check.without_id else ""
    lines.append(f"{check.users:,} user{'s' * (check.users != 1)} in {check.contract.user}{own}.")
    period = getattr(check.unit, "period", None)
    promised = "and are promised epsilon" + (f", for one {period}" if isinstance(period, str) else "")
    table = Table("of the users", "have at most", promised)
    for share, rows in check.rows_per_user.items():
        table.add_row(f"{share} %", f"{rows:,} row{'s' * (rows != 1)}", f"{check.promised(rows):,.4g}")
    lines.append(table)
    if check.contract.rows_per_user is None:
        lines.append(
            "The unit of privacy is a row: a user with several is promised less, as shown. State "
            "[bold]rows_per_user[/bold] under \\[privacy] to protect users."
        )
    else:
        percent = 100.0 * check.counted / max(check.rows, 1)
        lines.append(f"{check.counted:,} rows count ({percent:.1f} %); the others keep their round without influence.")
    return lines


def _percent(count: int, of: int) -> str:
    return f" ({count / of:.1%})" if count and of else ""


def _columns_report(check: TableCheck) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table("column", "missing", "below the range", "above", "not declared")
    for column in [*check.columns.values(), check.target]:
        there = column.values - column.missing
        values = ", ".join(f"{value} ({count:,})" for value, count in column.unknown_values.most_common(5))
        table.add_row(
            escape(column.name) + (" (target)" if column is check.target else ""),
            f"{column.missing:,}{_percent(column.missing, column.values)}",
            *(f"{count:,}{_percent(count, there)}" for count in (column.below, column.above)),
            f"{column.unknown:,}{_percent(column.unknown, there)}" + (escape(f": {values}") if values else ""),
        )
    return table


def _rows_report(check: TableCheck) -> list[str]:
    from rich.markup import escape

    lines = []
    if check.labels:
        labels = ", ".join(f"{name}: {count:,}" for name, count in check.labels.most_common(20))
        lines.append(f"Labels of good rows: {escape(labels)}.")
    clipping = check.clipping
    if clipping is not None and clipping.clipped:
        lines.append(
            f"{clipping.clipped:,} rows are clipped{_percent(clipping.clipped, clipping.rows)}, by a factor of "
            f"{clipping.median:.3g} in the middle and {clipping.largest:.3g} at most."
        )
    elif clipping is not None:
        lines.append("No row is clipped.")
    return lines


def predict(
    model: Annotated[Path, typer.Argument(help="Model file, model.json, written by taciturn learn.")],
    data: Annotated[str, typer.Argument(help="CSV, JSON lines or Parquet file, or - for the standard input.")],
    out: Annotated[Path | None, typer.Option(help="File to write; by default the standard output.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Also write the probabilities of the classes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")] = False,
    keep: Annotated[
        Texts, typer.Option(help="Column of the data to write before the prediction, such as an id; can be repeated.")
    ] = None,
    bad_rows: Annotated[
        Literal["stop", "blank"], typer.Option(help="At a bad row, stop, or leave its prediction blank.")
    ] = "stop",
    format: Annotated[
        Format | None, typer.Option(help="Format of the data; by default from the file extension.")
    ] = None,
) -> None:
    """Predict with a model, one line per row. Labels are not needed, and not read.

    Example: taciturn predict model.json new.csv --out predictions.csv
    """
    from taciturn.contract.model_file import read_model
    from taciturn.kernel.atomic import replaced
    from taciturn.readers.predictions import write_predictions
    from taciturn.readers.rows import open_rows

    read = read_model(model)
    if read.releases == 0:
        due = read.contract.plan().private.timetable.due(1)
        warn(
            "no model has been released yet, so that all predictions are those of a model of zeros. Wait for the first "
            f"release, after row {due:,}, and predict again."
        )
    kept = list(dict.fromkeys(keep or ()))
    reasons: Counter[str] = Counter()
    opened = open_rows(
        read.contract,
        data,
        bad_rows="zero" if bad_rows == "blank" else "stop",
        labelled=False,
        format=format,
        keep=kept,
        reasons=reasons,
    )
    if out is None:
        with closing(opened) as batches:
            rows = write_predictions(read, batches, sys.stdout, proba=proba, as_json=as_json, keep=kept)
    else:
        with closing(opened) as batches, replaced(out) as file:
            text = TextIOWrapper(file, encoding="utf-8", newline="")
            rows = write_predictions(read, batches, text, proba=proba, as_json=as_json, keep=kept)
            text.detach()  # otherwise it closes the file, which is not flushed to the disk yet
    if reasons:
        why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(5))
        more = f"; and {len(reasons) - 5:,} other reasons" if len(reasons) > 5 else ""
        warn(f"{reasons.total():,} of {rows:,} rows are bad, and their predictions are blank: {why}{more}.")
