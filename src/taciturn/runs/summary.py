"""What a run says of itself when it ends: for its page, for people and for machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.atomic import OWNER_ONLY, replaced
from taciturn.contract.contract import Contract
from taciturn.contract.explain import public
from taciturn.runs.diagnostics import Diagnostics
from taciturn.runs.ingest import Ending
from taciturn.runs.journal import last_lines
from taciturn.runs.report import File, Learnt, Released, Weight, learnt_page
from taciturn.runs.run import Run

_LARGEST = 20
_POINTS = 200  # of the second half of the stream, and no more than these
_SHOWN = 2_000  # releases that a page looks at; of more, some


def outcome(run: Run, ending: Ending) -> str:
    """How it ended, in a sentence."""
    rows, left = f"{run.stream.t:,} row{'s' * (run.stream.t != 1)}", run.left
    if ending.why == "interrupted":
        return f"Interrupted after {rows}; everything up to there is committed. Go on with --resume."
    if ending.why == "refused":
        return f"Stopped after {rows}; everything up to there is committed."
    if left == 0:
        return f"Complete: all {rows} of the horizon were learnt."
    if left is None:
        return f"The input ended after {rows}. The stream has no end: go on with --resume when it has grown."
    return f"The input ended after {rows}; {left:,} of the horizon remain. Go on with --resume when it has grown."


def as_data(run: Run, contract: Contract, ending: Ending, report: bool = True) -> dict[str, Any]:
    """The run for machines; nothing in it is secret.

    Where a bad row stopped the run, neither that row nor its place is part of it: `rows` and `rounds_left` are then
    those of the last release, as in `model.json`. Without a `report` it is not among the files.
    """
    spent, table = run.stream.spent, run.stream.plan.private.timetable
    rows = ((table.due(run.stream.k) or 0) if run.stream.k else 0) if ending.by_a_row else run.stream.t
    return {
        "outcome": ending.why,
        "sentence": _STOPPED if ending.by_a_row else outcome(run, ending),
        "refusal": _ROW if ending.by_a_row else None if ending.refusal is None else str(ending.refusal),
        "rows": rows,
        "releases": run.stream.k,
        "rounds_left": None if table.horizon is None else table.horizon - rows,
        "spent": {"epsilon": spent.epsilon, "delta": spent.delta},
        "budget": {"epsilon": contract.epsilon, "delta": contract.delta},
        "guarantee": contract.guarantee(run.stream.plan),
        "simulated": run.stream.plan.private.seed is not None,
        "files": {file.name: str(run.folder.path / file.name) for file in _files(False, ending, report)},
    }


def write_report(run: Run, contract: Contract, ending: Ending, diagnostics: Diagnostics | None) -> None:
    """Write the page; with diagnostics in it, or where a row stopped the run, for the owner's eyes alone."""
    page = learnt_page(_learnt(run, contract, ending, diagnostics))
    with replaced(run.folder.report, 0o644 if diagnostics is None and not ending.by_a_row else OWNER_ONLY) as file:
        file.write(page.encode())
    run.folder.sync()


def _learnt(run: Run, contract: Contract, ending: Ending, diagnostics: Diagnostics | None) -> Learnt:
    stream, plan, table = run.stream, run.stream.plan, run.stream.plan.private.timetable
    weights, models = _weights(run, contract)
    coming = 0 if table.horizon is None else table.count - stream.k
    return Learnt(
        title=f"Private model of {contract.target.column}",
        outcome=outcome(run, ending),
        guarantee=contract.guarantee(plan),
        public=public(contract),
        secret=_SECRET,
        spent=stream.spent,
        total=(contract.epsilon, contract.delta),
        t=stream.t,
        made=stream.k,
        coming=coming,
        releases=[Released(table.due(k) or 0, plan.private.calibrated.noise_sd(k)) for k in _some(1, stream.k)],
        planned=[table.due(k) or 0 for k in _some(stream.k + 1, stream.k + coming)],
        plan=plan.as_data(),
        noise_on=plan.noise_on,
        weights=weights,
        models=models,
        files=_files(diagnostics is not None, ending),
        simulated=plan.private.seed is not None,
        diagnostics=None if diagnostics is None else diagnostics.as_data(),
    )


def _weights(run: Run, contract: Contract) -> tuple[list[Weight], int]:
    """The largest weights, the intercept times its constant, and over how many points they swung."""
    problem = run.stream.plan.private.problem
    scale = np.ones((problem.outputs, problem.width))
    scale[:, problem.dimension :] = problem.intercept
    features = [*contract.feature_names, *(["intercept"] if problem.intercept else [])]
    of = [f"{name}: " for name in contract.target.names] if problem.outputs > 1 else [""]
    names = [f"{whose}{name}" for whose in of for name in features]
    late = [line for line in last_lines(run.folder.models, _POINTS) if 2 * line["t"] > run.stream.t]
    points = np.array([line.get("point", line["model"]) for line in late] or [run.stream.model])
    weights, swing = run.stream.model * scale.ravel(), points.std(axis=0) * scale.ravel()
    largest = np.argsort(-np.abs(weights), kind="stable")[:_LARGEST]
    return [Weight(names[i], float(weights[i]), float(swing[i])) for i in largest], len(points)


def _some(first: int, last: int) -> list[int]:
    """Whole numbers from the first to the last, or so many of them, both ends among them."""
    count = min(_SHOWN, last - first + 1)
    return [first] if count == 1 else np.linspace(first, last, max(count, 0)).astype(int).tolist()


def _files(diagnostics: bool, ending: Ending, report: bool = True) -> list[File]:
    page = "this page, with what is not private in it: for you alone" if diagnostics else "this page: public"
    if ending.by_a_row and not diagnostics:
        page = "this page, which says where a row stopped the run: for you alone, until it has gone on"
    return [
        File("model.json", "the model to use, for taciturn predict: public"),
        File("models.jsonl", "every release, a line each: public"),
        *([File("report.html", page)] if report else []),
        File("state.npz", "where the stream stands: SECRET, as sensitive as the rows; needed to resume"),
    ]


_ROW = "a row was refused; what is wrong with it is said on standard error alone"
_STOPPED = "Stopped at a row that was refused; everything before it is committed. Mend it and go on with --resume."

_SECRET = (
    "every row, and everything computed from rows before noise is added: state.npz",
    "the noise, which is stored nowhere",
    "which rows were cut or bad, and how well models do on the rows they were learnt from",
)
