"""The HTML page of a run: its guarantee, releases, model, plan and files.

All of it is public, except for the diagnostics, if they were asked for, and the number of bad rows, if bad rows are
used as examples without influence: their section is labelled NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from taciturn._util.html import bar, bullets, document, line, number, number_head, paragraph, rows, section, ticks
from taciturn._util.output import NOT_PRIVATE
from taciturn.drift import Drift
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.plan import left_out

_ALARMS = 10  # the last that are listed

SIMULATION = "SIMULATION: NOT PRIVATE"


class Released(NamedTuple):
    """A release: the number of examples seen, and the standard deviation of the noise on an entry of it."""

    t: int
    noise_sd: float


class Weight(NamedTuple):
    """A weight of the latest model, and its standard deviation over the points released last."""

    name: str
    value: float
    swing: float


class File(NamedTuple):
    """A file of the run, and its description."""

    name: str
    what: str


@dataclass(frozen=True)
class Learnt:
    """The content of the page.

    Attributes
    ----------
    title, outcome, guarantee : str
        What was learnt, how the run ended, and the privacy guarantee.
    public, secret : sequence of str
        What is public, and what is secret.
    spent, total : (float, float)
        Epsilon and delta.
    t, made, coming : int
        Numbers of rows learnt from, of releases made, and of releases to come before the horizon.
    releases, planned : sequence of Released, sequence of int
        The releases made, and the rounds of those to come; thinned out if there are many, first and last included.
    plan : mapping
        As `taciturn.plan.Plan.as_data` gives it.
    noise_on : str
        What the noise is added to, in words.
    weights, models : sequence of Weight, int
        The largest weights, and the number of points that their swing is computed from.
    files : sequence of File
        The files of the run.
    drift : Drift, optional
        How far released statistics moved, in units of their noise.
    simulated : bool
        Whether the noise came from a seed.
    diagnostics : mapping, optional
        As `taciturn.runs.diagnostics.Diagnostics.as_data` gives it.
    bad_rows : mapping, optional
        As `taciturn.runs.diagnostics.BadRowCount.as_data` gives it.
    """

    title: str
    outcome: str
    guarantee: str
    public: Sequence[str]
    secret: Sequence[str]
    spent: tuple[float, float]
    total: tuple[float, float]
    t: int
    made: int
    coming: int
    releases: Sequence[Released]
    planned: Sequence[int]
    plan: Mapping[str, Any]
    noise_on: str
    weights: Sequence[Weight]
    models: int
    files: Sequence[File]
    drift: Drift | None = None
    simulated: bool = False
    diagnostics: Mapping[str, Any] | None = None
    bad_rows: Mapping[str, int] | None = None


def learnt_page(learnt: Learnt) -> str:
    """The page as HTML."""
    parts = [f"<h1>{escape(learnt.title)}</h1>\n{paragraph(learnt.outcome)}"]
    if learnt.simulated:
        parts.append(
            section(SIMULATION, paragraph("The noise came from a seed: the models are not private."), alarm=True)
        )
    parts += [_guarantee(learnt), _releases(learnt)]
    if learnt.drift is not None:
        parts.append(_drift(learnt.drift, float(learnt.t)))
    parts += [_model(learnt), _plan(learnt), _files(learnt)]
    if learnt.diagnostics is not None:
        parts.append(_diagnostics(learnt.diagnostics))
    elif learnt.bad_rows is not None:
        parts.append(_bad_rows(learnt.bad_rows))
    return document(learnt.title, "\n".join(parts))


def _guarantee(learnt: Learnt) -> str:
    (spent, delta), (total, _) = learnt.spent, learnt.total
    return section(
        "Guarantee",
        paragraph(learnt.guarantee),
        paragraph(f"Spent so far: epsilon = {rounded_up(spent, 4)} of {rounded_up(total, 4)}, at delta = {delta:g}."),
        bar(0.0, spent / total),
        f'<div class="two"><div><p><b>Public</b></p>{bullets(learnt.public)}</div>'
        f"<div><p><b>Secret</b></p>{bullets(learnt.secret)}</div></div>",
    )


def _releases(learnt: Learnt) -> str:
    made = learnt.releases
    if not made:
        return section("Releases", paragraph("None yet: the first release of the schedule is still to come."))
    last = float(max([learnt.t, *learnt.planned[-1:]]))
    later = f", {learnt.coming:,} yet to come" if learnt.coming else ""
    return section(
        "Releases",
        paragraph(
            f"{learnt.made:,} models after {learnt.t:,} rows{later}. First after row {made[0].t:,}, last after row "
            f"{made[-1].t:,}."
        ),
        ticks([one.t for one in made], learnt.planned, last, "When models were released"),
        line(
            [(one.t, one.noise_sd) for one in made],
            last,
            f"Standard deviation of the noise on an entry of {learnt.noise_on}, by release (logarithmic)",
            logarithmic=True,
        ),
    )


def _drift(drift: Drift, last: float) -> str:
    if not len(drift.rounds):
        return section("Drift", paragraph("No two releases are a window apart yet."))
    alarms = drift.alarms
    moved = ", ".join(f"{each:,}" for each in alarms[-_ALARMS:].tolist())
    found = "None moved by more than chance." if not len(alarms) else f"More than chance: after row {moved}."
    by = "by noise and the variation of rows of one distribution" if drift.proven else "by noise alone"
    return section(
        "Drift",
        paragraph(
            f"{len(drift.rounds):,} comparisons of released statistics, each with the one a window before it. {found}"
        ),
        line(
            list(zip(drift.rounds.tolist(), drift.distance.tolist(), strict=True)),
            last,
            f"Distance of two released statistics, in units of their noise; an alarm is above {drift.alarm_at[-1]:.3g}",
        ),
        paragraph(
            f"1 is noise alone. A distance above the alarm occurs {by} in at most {drift.rate:g} of comparisons. "
            "Computed from releases: it costs no privacy.",
            soft=True,
        ),
    )


def _model(learnt: Learnt) -> str:
    most = max((abs(weight.value) for weight in learnt.weights), default=0.0) or 1.0
    cells = [
        (
            escape(weight.name),
            number(f"{weight.value:+.4g}"),
            number(f"{weight.swing:.2g}" if learnt.models > 1 else "–"),
            f'<td class="bars">{bar(0.5, 0.5 + weight.value / most / 2.0)}</td>',
        )
        for weight in learnt.weights
    ]
    return section(
        "Model: largest weights",
        rows(cells, ("feature", number_head("weight"), number_head("swing"), "")),
        paragraph(
            f"Swing: the standard deviation of the weight over the last {learnt.models:,} released points, which vary "
            "with the noise. A weight that is not larger than its swing carries little information. An average of "
            "points varies less than the points.",
            soft=True,
        ),
    )


def _plan(learnt: Learnt) -> str:
    plan = learnt.plan
    names = ("mechanism", "schedule", "horizon", "releases", "ridge", "radius", "model", "burn_in")
    settings = [(name.replace("_", "-"), f"<code>{escape(_formatted(plan[name]))}</code>") for name in names]
    most = max(plan["noise_of_last_release"].values(), default=1.0)
    noise = [
        (f"<code>{escape(name)}</code>", number(f"{sd:.4g}"), f'<td class="bars">{bar(0.0, sd / most)}</td>')
        for name, sd in plan["noise_of_last_release"].items()
    ]
    return section(
        "Plan",
        paragraph(f"{plan['method']}: {plan['why']}."),
        rows(settings),
        paragraph(plan["warning"] or plan["outlook"]),
        f"<p><b>Noise of the last release on an entry of {escape(learnt.noise_on)}, by strategy</b></p>",
        rows(noise),
        *([paragraph(left_out(plan["not_compared"]), soft=True)] if plan["not_compared"] else []),
    )


def _formatted(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _files(learnt: Learnt) -> str:
    return section("Files", rows((f"<code>{escape(file.name)}</code>", escape(file.what)) for file in learnt.files))


def _bad_rows(data: Mapping[str, int]) -> str:
    rows = data["to_row"] - data["from_row"]
    return section(
        NOT_PRIVATE,
        paragraph(
            f"Of rows {data['from_row'] + 1:,} to {data['to_row']:,}, learnt since this process began, "
            f"{data['bad_rows']:,} are bad ({data['bad_rows'] / max(rows, 1):.2%}), and had no influence. "
            "taciturn check CONTRACT DATA tells why. No guarantee covers this number, nor this page while it has it."
        ),
        alarm=True,
    )


def _diagnostics(data: Mapping[str, Any]) -> str:
    measure = str(data["measure"]).replace("_", " ")
    rows_seen = data["to_row"] - data["from_row"]
    cells = [
        (f"progressive {measure}", number(f"{data[data['measure']]:.4g}")),
        ("mean loss", number(f"{data['mean_loss']:.4g}")),
        ("share of rows clipped to the feature bound", number(f"{data['clipped_share']:.2%}")),
        ("bad rows", number(f"{data['bad_rows']:,} ({data['bad_rows'] / max(rows_seen, 1):.2%})")),
    ]
    curve = (
        line(data["curve"], float(data["to_row"]), f"Progressive {measure}, by part of the stream")
        if data["curve"]
        else ""
    )
    return section(
        NOT_PRIVATE,
        paragraph(
            f"Rows {data['from_row'] + 1:,} to {data['to_row']:,}, each evaluated by the model in use before it. No "
            "guarantee covers these numbers, nor this page while it contains them."
        ),
        rows(cells),
        curve,
        alarm=True,
    )
