"""The result of a run: its outcome in a sentence, as data, and as the page of `taciturn.runs.report`."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np

from taciturn.contract.contract import Contract
from taciturn.contract.explain import public
from taciturn.contract.model_file import write_model
from taciturn.kernel.accounting.cost import FREE, Spent
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.atomic import OWNER_ONLY, replaced
from taciturn.plan import Plan
from taciturn.runs.diagnostics import BadRowCount, Diagnostics
from taciturn.runs.exporters import Exported
from taciturn.runs.ingest import Ending
from taciturn.runs.journal import last_lines
from taciturn.runs.report import File, Learnt, Released, Weight, learnt_page

_LARGEST = 20  # weights in the report
_POINTS = 200  # released points, all in the second half of the stream, that the swing is computed from
_SHOWN = 2_000  # releases in the pictures; more are thinned out


def outcome(run: Exported, ending: Ending) -> str:
    """The outcome of a run in a sentence."""
    rows = f"{run.stream.t:,} row{'s' * (run.stream.t != 1)}"
    left = run.left
    if ending.why == "running":
        return f"Running: {rows} learnt and committed so far."
    if ending.why == "interrupted":
        return f"Interrupted after {rows}; all of them are committed. Continue with --resume."
    if ending.why == "rejected":
        return f"Stopped after {rows}; all of them are committed."
    if left == 0:
        return f"Complete: all {rows} of the horizon were learnt."
    if left is None:
        return (
            f"The input ended after {rows}. The stream has no horizon: continue with --resume when there are more rows."
        )
    return (
        f"The input ended after {rows}; {left:,} remain until the horizon. Continue with --resume when there are more."
    )


def guarantee(run: Exported, contract: Contract) -> str:
    """The guarantee of the published sequence: after `taciturn store adopt`, of all streams that are in it."""
    return guarantee_of_all(contract, run.stream.plan, None if run.saved.earlier == FREE else run.stream.budget)


def guarantee_of_all(contract: Contract, plan: Plan, total: Spent | None) -> str:
    """The guarantee of a published sequence; `total` is what all of its streams cost, if there are several."""
    text = contract.guarantee(plan)
    if total is None:
        return text
    return (
        f"{text} This run was adopted from a restored backup: its published sequence holds the releases of an earlier "
        f"stream, too, and those made after the backup were public. The guarantee of all of them together is epsilon = "
        f"{rounded_up(total.epsilon, 4)} at delta = {total.delta:g}."
    )


def delivered_epsilon(run: Exported) -> dict[str, float | None]:
    """The delivered epsilon by neighbour relation; none after an adoption, where several streams are published."""
    return run.stream.plan.private.guarantee.as_data() if run.saved.earlier == FREE else {}


def budget(run: Exported, contract: Contract) -> Spent:
    """The most that the published sequence can cost: the contract's budget; after an adoption, that of all streams."""
    return Spent(contract.epsilon, contract.delta) if run.saved.earlier == FREE else run.stream.budget


def as_data(run: Exported, contract: Contract, ending: Ending, report: bool = True) -> dict[str, Any]:
    """The result of a run as plain data, for `taciturn learn --json`; all of it is public.

    If a bad row stopped the run, neither the error nor the position of that row is included: `rows` and `rounds_left`
    are those of the last release, as in `model.json`. Without `report`, the report is not among the files.
    """
    spent, most = run.stream.spent, budget(run, contract)
    table = run.stream.plan.private.timetable
    rows = ((table.due(run.stream.k) or 0) if run.stream.k else 0) if ending.by_a_row else run.stream.t
    return {
        "outcome": ending.why,
        "sentence": _STOPPED if ending.by_a_row else outcome(run, ending),
        "rejection": _ROW if ending.by_a_row else None if ending.error is None else str(ending.error),
        "rows": rows,
        "releases": run.stream.k,
        "rounds_left": None if table.horizon is None else table.horizon - rows,
        "spent": {"epsilon": spent.epsilon, "delta": spent.delta},
        "budget": {"epsilon": most.epsilon, "delta": most.delta},
        "guarantee": guarantee(run, contract),
        "delivered_epsilon": delivered_epsilon(run),
        "rests_on": run.stream.plan.private.guarantee.rests_on,
        "drift": None if (drift := run.stream.drift) is None else drift.as_data(),
        "adopted": run.saved.earlier != FREE,
        "simulated": run.stream.plan.private.seed is not None,
        "files": _paths(run, ending, report),
    }


def write_report(
    run: Exported,
    contract: Contract,
    ending: Ending,
    diagnostics: Diagnostics | None,
    bad_rows: BadRowCount | None = None,
) -> None:
    """Write the page; only its owner may read it if it has exact numbers, or if a bad row stopped the run."""
    page = learnt_page(_learnt(run, contract, ending, diagnostics, bad_rows))
    public = diagnostics is None and bad_rows is None and not ending.by_a_row
    with replaced(run.folder.report, 0o644 if public else OWNER_ONLY) as file:
        file.write(page.encode())
    run.folder.sync()


class ModelFile:
    """Exporter of `model.json`: the model of the last commit.

    Parameters
    ----------
    contract : Contract
        The contract of the run.
    """

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self._generation = -1

    def __call__(self, run: Exported) -> None:
        """Replace the file if there was a commit since."""
        generation = run.saved.position[0]
        if generation != self._generation:
            about = guarantee(run, self.contract), delivered_epsilon(run)
            write_model(run.folder.model, self.contract, run.stream, run.stream.spent, *about)
            run.folder.sync()
            self._generation = generation


class ReportFile:
    """Exporter of `report.html` while a run goes on: after a commit, at most every few seconds.

    Parameters
    ----------
    contract : Contract
        The contract of the run.
    diagnostics : Diagnostics, optional
        Diagnostics for the report.
    bad_rows : BadRowCount, optional
        The number of bad rows, for the report.
    seconds : float
        Minimal time between two reports, or twenty times the duration of one if that is longer.
    """

    def __init__(
        self,
        contract: Contract,
        diagnostics: Diagnostics | None = None,
        bad_rows: BadRowCount | None = None,
        seconds: float = 5.0,
    ) -> None:
        self.contract = contract
        self.diagnostics = diagnostics
        self.bad_rows = bad_rows
        self.seconds = seconds
        self._rows = -1
        self._due = time.monotonic() + seconds

    def __call__(self, run: Exported) -> None:
        """Write the report if it is due and rows were committed since; a report that fails is left to the end."""
        began = time.monotonic()
        if began < self._due or run.committed == self._rows:
            return
        with contextlib.suppress(Exception):
            write_report(run, self.contract, Ending("running"), self.diagnostics, self.bad_rows)
        self._rows = run.committed
        now = time.monotonic()
        self._due = now + max(self.seconds, 20.0 * (now - began))


def _learnt(
    run: Exported, contract: Contract, ending: Ending, diagnostics: Diagnostics | None, bad_rows: BadRowCount | None
) -> Learnt:
    stream = run.stream
    plan = stream.plan
    table = plan.private.timetable
    weights, models = _weights(run, contract)
    coming = 0 if table.horizon is None else table.count - stream.k
    return Learnt(
        title=f"Private model of {contract.target.column}",
        outcome=outcome(run, ending),
        guarantee=guarantee(run, contract),
        public=public(contract),
        secret=[fact.format(store=_store(run)) for fact in _SECRET],
        spent=run.stream.spent,
        total=budget(run, contract),
        t=stream.t,
        made=stream.k,
        coming=coming,
        releases=[Released(table.due(k) or 0, plan.noise_sd(k)) for k in _some(1, stream.k)],
        planned=[table.due(k) or 0 for k in _some(stream.k + 1, stream.k + coming)],
        plan=plan.as_data(),
        noise_on=plan.noise_on,
        weights=weights,
        models=models,
        files=_files(run, diagnostics is not None or bad_rows is not None, ending),
        drift=stream.drift,
        simulated=plan.private.seed is not None,
        diagnostics=None if diagnostics is None else diagnostics.as_data(),
        bad_rows=None if bad_rows is None else bad_rows.as_data(),
    )


def _weights(run: Exported, contract: Contract) -> tuple[list[Weight], int]:
    """The largest weights, that of the intercept times its constant, and the number of points for their swing."""
    problem = run.stream.problem
    scale = np.ones((problem.outputs, problem.width))
    scale[:, problem.mapped_dimension :] = problem.intercept
    features = [*contract.weight_names, *(["intercept"] if problem.intercept else [])]
    classes = [f"{name}: " for name in contract.target.names] if problem.outputs > 1 else [""]
    names = [f"{of_class}{name}" for of_class in classes for name in features]
    late = [line for line in last_lines(run.folder.models, _POINTS) if 2 * line["t"] > run.stream.t]
    points = np.array([line.get("point", line["model"]) for line in late] or [run.stream.model])
    weights = run.stream.model * scale.ravel()
    swing = points.std(axis=0) * scale.ravel()
    largest = np.argsort(-np.abs(weights), kind="stable")[:_LARGEST]
    return [Weight(names[i], float(weights[i]), float(swing[i])) for i in largest], len(points)


def _some(first: int, last: int) -> list[int]:
    """Integers from the first to the last, thinned out to `_SHOWN` of them, both ends included."""
    count = min(_SHOWN, last - first + 1)
    return [first] if count == 1 else np.linspace(first, last, max(count, 0)).astype(int).tolist()


def _paths(run: Exported, ending: Ending, report: bool) -> dict[str, str]:
    """Where the files are."""
    names = [file.name for file in _files(run, False, ending, report)[:-1]]
    return {**{name: str(run.folder.path / name) for name in names}, "store": run.store.address}


def _store(run: Exported) -> str:
    """What the store is called on a page that may be published: an address elsewhere is not told."""
    return run.folder.store.name if run.in_folder else "the store"


def _files(run: Exported, diagnostics: bool, ending: Ending, report: bool = True) -> list[File]:
    page = "this page, with exact numbers that are NOT PRIVATE: do not publish" if diagnostics else "this page: public"
    if ending.by_a_row and not diagnostics:
        page = "this page, which tells where a bad row stopped the run: do not publish until the run is resumed"
    return [
        File("model.json", "the latest model, for taciturn predict: public"),
        *([File("models.jsonl", "every release, one per line: public")] if run.stream.k else []),
        *([File("report.html", page)] if report else []),
        File(_store(run), "the store of the run: SECRET, as sensitive as the rows; needed to resume"),
    ]


_ROW = "a row was rejected; its error is printed on standard error only"
_STOPPED = "Stopped at a bad row; all rows before it are committed. Correct it and continue with --resume."

_SECRET = (
    "every row, and everything computed from rows before noise is added: {store}",
    "the noise, which is not stored",
    "which rows were clipped or bad, and the accuracy of models on the rows they were learnt from",
)
