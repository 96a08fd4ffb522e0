"""`taciturn learn`: learn from rows in a run, and print its progress and outcome."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn._util.threads import use_one_thread
from taciturn.cli.output import warn
from taciturn.errors import InvalidInput, StateConflict, TaciturnError
from taciturn.readers.source import BadRows, Format, format_of, size_of

if TYPE_CHECKING:  # imported inside the command, so that other commands start fast
    from collections.abc import Generator, Iterator

    from taciturn.accounting.ledger import Ledger
    from taciturn.contract.contract import Contract
    from taciturn.plan import Plan
    from taciturn.readers.rows import Batch, Position
    from taciturn.runs.ingest import Ending
    from taciturn.runs.resume import Check
    from taciturn.runs.run import Run
    from taciturn.store import Saved


def learn(
    contract: Annotated[Path, typer.Argument(help="Contract file, taciturn.toml.", show_default=False)],
    data: Annotated[
        str, typer.Argument(help="CSV, JSON lines or Parquet file, or - for the standard input.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run.", metavar="DIR")] = Path("taciturn-run"),
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in the folder.")] = False,
    check_input: Annotated[
        bool, typer.Option("--check-input", help="With --resume: compare all rows learnt from, not only the last ones.")
    ] = False,
    go_on: Annotated[
        bool, typer.Option("--continue", help="With --resume: the next line of the standard input is the next row.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(help="Database of the run: a file, or postgresql://…; by default stream.db in the folder."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run in --store; by default the name of the folder.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger in which the cost of a new run is reserved: a file, or postgresql://….")
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="Name of the people in that ledger; needed only if the database has several.")
    ] = None,
    witness: Annotated[
        str | None, typer.Option(help="Database elsewhere that notices when the store was restored from a backup.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="File of the key that encrypts states; by default TACITURN_KEY.", metavar="FILE"),
    ] = None,
    bad_rows: Annotated[
        BadRows, typer.Option(help="At a bad row, stop, or use an example without influence.")
    ] = "stop",
    format: Annotated[
        Format | None, typer.Option(help="Format of the data; by default from the file extension.")
    ] = None,
    diagnostics: Annotated[
        bool, typer.Option("--diagnostics", help="NOT PRIVATE: add statistics of the exact rows to the report.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of a simulation, which is NOT PRIVATE.", min=0)] = None,
    commit_every: Annotated[float, typer.Option(help="Seconds between two commits while rows arrive.", min=0.0)] = 1.0,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that read and add up the rows of a file, for methods of sums."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Learn from a stream in one pass and publish models on the way; after a crash, the run can be resumed.

    Writes models.jsonl (every release), model.json (the latest model), report.html, and stream.db, which is secret.
    Exit status 0 at the end of the input, 2 after an invalid row or call, 130 or 143 after an interrupt.

    Example: taciturn learn taciturn.toml data.csv --out run
    """
    use_one_thread()
    from taciturn.contract.bandit import reject_decisions
    from taciturn.contract.contract import read_contract
    from taciturn.readers.first_rows import FIRST, check_first_rows
    from taciturn.readers.rows import open_parts
    from taciturn.renewal import stored_renewal
    from taciturn.runs import run as runs
    from taciturn.runs.diagnostics import BadRowCount, Diagnostics
    from taciturn.runs.files import Folder, full_disk_explained, locked
    from taciturn.runs.ingest import close_source, learn_from
    from taciturn.runs.progress import Progress
    from taciturn.runs.resume import Checkpoint
    from taciturn.runs.summary import ModelFile, ReportFile, write_report
    from taciturn.store import Store

    _check_options(data, resume, check_input, go_on)
    declared = read_contract(contract)
    if declared.user is not None and declared.rows_per_user is None:
        raise InvalidInput(
            f"privacy.user names {declared.user} as the column of ids, and rows_per_user is missing: only rows "
            "would be protected. State rows_per_user = 4, or remove user and declare the column with ignore = true."
        )
    reject_decisions(declared)
    plan = declared.plan(
        on_bad="zero", seed=seed
    )  # the reader stops at bad rows, so that a run can be resumed with either option
    if workers is not None:
        _check_workers(declared, plan, workers, data, format, diagnostics)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if workers > cores:
            warn(f"--workers {workers} are more than the {cores} cores here, and slower. Use at most {cores}.")
    warn(plan.delta_warning)
    address = store or str(Folder(out).store)
    stream = name or (out.resolve().name if store else runs.NAME)
    account = None if ledger is None else account_of(ledger, population, witness, address)
    found = runs.find(
        Folder(out), address, declared.digest, name=stream, resuming=resume, witness=witness, key=key
    )  # before a row is read, or anything is written
    _check_population(population, account, found)
    plan = plan.following(stored_renewal(found))
    kind = format_of(data, format)
    place = None
    seen = 0  # rows that are compared only: a bad one among them was learnt with --bad-rows zero
    if found is not None and resume and not go_on:
        seen = found.position[1]
    if found is not None and resume and not check_input and os.path.isfile(data):  # a pipe may have a name, too
        place = Checkpoint.from_bytes(found.input).place_in(kind)
    with ExitStack() as stack:
        opened = _rows(declared, data, bad_rows, kind, place, seen)
        stack.callback(close_source, opened)
        rows: Iterator[Batch] = opened
        told = None
        if not resume and os.path.isfile(data):
            with closing(open_parts(declared, data, format=kind, block=FIRST)) as first:
                told = check_first_rows(declared, first)
        elif not resume and bad_rows == "zero":
            rows = chain(_first_rows(opened), opened)
        with full_disk_explained(out):
            out.mkdir(parents=True, exist_ok=True)
            folder = Folder(out, stack.enter_context(locked(out)))
            about = {"model": declared.model_digest, "declared": declared.declared}
            open_run = runs.resume if resume else partial(runs.begin, about=about)
            for warning in (plan.warning if found is None else None, told):
                warn(None if quiet else warning)
            run = open_run(
                folder,
                Store(address, witness=witness, key=key),
                plan,
                declared.digest,
                name=stream,
                ledger=account,
                exporters=(ModelFile(declared),),
                seconds=commit_every,
                format=kind,
            )
            if witness is not None and not quiet:
                warn(run.store.shared_with_witness())
            check: Check = "none" if go_on else "all" if place is None else "window"
            watch = None
            if diagnostics:
                classifies = bool(declared.target.names)
                watch = Diagnostics(plan.private.problem, classifies, run.stream.t, run.stream.watched)
            run.stream.watch = watch
            counted = BadRowCount(run.stream.t) if bad_rows == "zero" else None
            run.exporters = (*run.exporters, ReportFile(declared, watch, counted))
            with Progress(size_of(data), quiet or as_json) as progress:
                if workers is None:
                    ending = learn_from(run, rows, progress, check, counted)
                else:
                    from taciturn.engines import pool

                    with pool.processes(workers) as mapped:
                        ending = pool.learn_from(
                            run,
                            rows,
                            declared,
                            data,
                            mapped,
                            workers,
                            format=kind,
                            bad_rows=bad_rows,
                            tell=progress,
                            check=check,
                            counted=counted,
                        )
        warnings = [_MOVED.format(out)] if folder.moved else []
        report = False
        try:
            write_report(run, declared, ending, watch, counted)
            report = True
        except Exception as error:  # the run is committed and published: a failed report must not change its outcome
            safe = isinstance(error, TaciturnError | OSError)  # other texts may hold a value of the data
            what = f"{type(error).__name__}: {error}" if safe else type(error).__name__
            warnings.append(_NO_REPORT.format(" ".join(what.split())))
        finally:
            exact = watch is not None or counted is not None or ending.by_a_row
            _say(run, declared, ending, report, exact, as_json, quiet)
    for warning in warnings:
        warn(warning)
    if counted is not None and counted.bad and not quiet:
        warn(f"NOT PRIVATE: {counted.bad:,} of the {counted.rows:,} rows read now are bad, and have no influence.")
    _end(ending)


_MOVED = "{} was moved while this run was learning in it; its files are in the moved folder."
_NO_REPORT = "report.html could not be written ({}). The run is not affected: its models are committed and published."


def _first_rows(batches: Iterator[Batch]) -> list[Batch]:
    """The batches of a live input up to the first with a good row; an error as in `check_first_rows`."""
    from taciturn.readers.first_rows import FIRST, all_bad

    seen, rows = [], 0
    for batch in batches:
        seen.append(batch)
        if batch.bad is None or not batch.bad[: FIRST - rows].all():
            return seen
        rows += len(batch.y)
        if rows >= FIRST:
            break
    if rows:
        raise all_bad(rows)
    return seen


def _check_options(data: str, resume: bool, check_input: bool, go_on: bool) -> None:
    if (check_input or go_on) and not resume:
        raise InvalidInput(f"{'--check-input' if check_input else '--continue'} needs --resume. Add it.")
    if check_input and go_on:
        raise InvalidInput("--check-input compares the rows learnt from, and --continue skips them. Pass one of them.")
    if go_on and data != "-":
        raise InvalidInput(
            "--continue is for the standard input. Omit it: in a file, a run finds the next row by itself."
        )


def _check_workers(
    declared: Contract, plan: Plan, workers: int, data: str, format: str | None, diagnostics: bool
) -> None:
    """Reject what workers cannot learn, or would learn badly, before anything is reserved, as `taciturn check` does."""
    from taciturn.contract.explain import release_for_workers
    from taciturn.engines import pool

    if diagnostics:
        raise InvalidInput("--diagnostics evaluates every row by the model before it, in one process. Omit --workers.")
    if (rounds := release_for_workers(declared, declared.plan(workers=workers))) is not None:
        raise InvalidInput(
            f"workers learn this contract if it states release = {rounds}, and it does not. State it under [learning], "
            "or leave out --workers."
        )
    pool.check_plan(plan)
    pool.check_source(data, format)


def account_of(ledger: str, population: str | None, witness: str | None, store: str) -> Ledger:
    """The ledger of the run; one in another database that has a witness keeps that."""
    from taciturn.accounting.ledger import Ledger
    from taciturn.store.database import Database, backend_of
    from taciturn.store.overview import remembered

    database = Database(ledger)
    own = database.address != backend_of(store).address and remembered(database).witness != ""
    return Ledger(ledger, population=population, witness=None if own else witness)


def _check_population(population: str | None, account: Ledger | None, found: Saved | None) -> None:
    if population is None or account is not None:  # a ledger of other people was rejected when it was opened
        return
    if found is None:
        raise InvalidInput("--population names the people of a ledger, and there is none. Add --ledger, or omit it.")
    if found.population != population:
        reserved = "in no ledger" if found.population is None else f"in the ledger of {found.population!r}"
        raise StateConflict(
            f"this run reserved its cost {reserved}, and not of {population!r}. Omit --population: a run keeps the "
            "ledger that it began with."
        )


def _rows(
    contract: Contract, data: str, bad_rows: BadRows, format: str, start: Position | None, seen: int = 0
) -> Generator[Any]:
    """The rows; the header of a file is read now, that of a pipe when it arrives."""
    from taciturn.readers.rows import open_rows

    def piped() -> Generator[Any]:
        source: Any = getattr(
            sys.stdin.buffer, "raw", sys.stdin.buffer
        )  # unbuffered: the waiting thread must not hold the buffer's lock
        yield from open_rows(contract, source, bad_rows=bad_rows, format=format, seen=seen)

    if data == "-":
        return piped()
    return open_rows(contract, data, bad_rows=bad_rows, format=format, start=start, seen=seen)


def _say(run: Run, contract: Contract, ending: Ending, report: bool, exact: bool, as_json: bool, quiet: bool) -> None:
    """Print the outcome; `exact` says that the report has what depends on exact rows."""
    from taciturn._util.output import json_text
    from taciturn.kernel.accounting.rounding import rounded_up
    from taciturn.runs.summary import as_data, budget, outcome

    if as_json:
        typer.echo(json_text(as_data(run, contract, ending, report)))
    elif not quiet:
        spent, most = run.stream.spent, budget(run, contract)
        typer.echo(outcome(run, ending))
        both = " together with the stream that it was adopted from" if most.epsilon != contract.epsilon else ""
        typer.echo(
            f"{run.stream.k:,} models released; spent epsilon = {rounded_up(spent.epsilon, 4)} of "
            f"{rounded_up(most.epsilon, 4)}{both} at delta = {spent.delta:g}."
            f"{' Simulation: not private.' if run.stream.plan.private.seed is not None else ''}"
        )
        page = "" if not report else "; report.html is NOT PRIVATE" if exact else ", report.html"
        secret = run.folder.store.name if run.in_folder else run.store.address
        releases = ", models.jsonl" if run.stream.k else ""
        typer.echo(f"{run.folder.path}: model.json{releases}{page}; {secret} is secret.")


def _end(ending: Ending) -> None:
    """Raise the error of the run, or exit with its status."""
    from taciturn.readers.rows import BadRow

    if isinstance(ending.error, BadRow):
        raise BadRow(f"{str(ending.error).rstrip('.')}; in either case with --resume.")
    if ending.error is not None:
        raise ending.error
    if ending.status:
        raise typer.Exit(ending.status)
