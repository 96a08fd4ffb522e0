"""The `tacit` command. It only asks the library and prints; no privacy arithmetic lives here."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

try:
    import typer
except ImportError:  # pragma: no cover
    raise SystemExit("The tacit command needs the extra `cli` (typer and rich): install tacit[cli].") from None

from tacit import __version__
from tacit.audit_cli import audit
from tacit.errors import InvalidInput, TacitError
from tacit.learn_cli import learn
from tacit.reproduce_cli import app as reproduce

if TYPE_CHECKING:  # commands import what they need, so that the others start at once
    from collections.abc import Callable

    from tacit.accounting import errata as paper_errata
    from tacit.accounting import paper
    from tacit.accounting.exact import Privacy
    from tacit.plan import Plan
    from tacit.problem.scalar import ScalarLoss
    from tacit.problem.scores import ScoresLoss

app = typer.Typer(
    help="Differentially private online learning.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.add_typer(reproduce, name="reproduce")
app.command()(audit)
app.command()(learn)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


@app.command()
def privacy(
    epsilon: Annotated[float, typer.Option(help="Total epsilon of everything published.")],
    delta: Annotated[float, typer.Option(help="Total delta, well below one over the number of people.")],
    releases: Annotated[int, typer.Option(help="Number of equal releases.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """How much noise a budget needs, and what the paper would have used.

    Example: tacit privacy --epsilon 1 --delta 1e-6 --releases 100000
    """
    from tacit.accounting.exact import Privacy

    answer = _privacy(Privacy(epsilon, delta), releases)
    if as_json:
        typer.echo(_as_json(answer))
    else:
        _show_privacy(answer)


def _as_json(value: Any) -> str:
    from tacit.experiments.experiment import json_text

    return json_text(value)


def _privacy(budget: Privacy, releases: int) -> dict[str, Any]:
    """The answer of `tacit privacy` as data."""
    from tacit.accounting.exact import noise_multiplier

    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "releases": releases,
        "mu": budget.mu,
        "noise_multiplier": noise_multiplier(budget, releases),
        "paper": {reading: _paper(budget, releases, reading) for reading in ("printed", "proven")},
    }


def _paper(budget: Privacy, releases: int, reading: paper.Reading) -> dict[str, float]:
    """POCP at T = releases, its sensitivity right, with the parameters for which its theorem claims the budget."""
    from tacit.accounting import paper

    parameters = paper.parameters_claiming(budget)
    cost = paper.delivered(parameters, releases, reading)
    return {
        "parameter_epsilon": parameters.epsilon,
        "parameter_delta": parameters.delta,
        "noise_multiplier": paper.noise_multiplier(parameters, releases, reading),
        "delivered_mu": cost.mu,
        "delivered_epsilon": cost.epsilon(budget.delta),
    }


def _show_privacy(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{answer['releases']:,} Gaussian releases of equal cost", title_justify="left")
    table.add_column("noise chosen by")
    table.add_column("noise / sensitivity", justify="right")
    table.add_column(f"epsilon delivered at delta = {answer['delta']:g}", justify="right")
    table.add_row("tacit, exactly", f"{answer['noise_multiplier']:.5g}", f"{answer['epsilon']:.5g}")
    for reading, values in answer["paper"].items():
        name = f"POCP of the paper, as {reading}"
        table.add_row(name, f"{values['noise_multiplier']:.5g}", f"{values['delivered_epsilon']:.5g}")
    console = Console()
    console.print(f"({answer['epsilon']:g}, {answer['delta']:g})-differential privacy allows mu = {answer['mu']:.6f}.")
    console.print(table)
    console.print(
        "The paper's rows take its own parameters (epsilon/3, delta/2), for which its theorem claims this budget, "
        "and its sensitivity put right."
    )


@app.command()
def errata(
    everything: Annotated[bool, typer.Option("--all", help="Show the whole grid, a table for each setting.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole grid as JSON for machines.")] = False,
) -> None:
    """What the paper's constants deliver, beside what its theorems claim.

    One setting, T = 100000, epsilon = 1, delta = 1e-6, unless you ask for all.

    Example: tacit errata
    """
    from tacit.accounting import errata as paper_errata

    rows = paper_errata.table() if everything or as_json else paper_errata.table([100_000], [1.0], [1e-6])
    if as_json:
        typer.echo(_as_json([asdict(row) for row in rows]))
    else:
        _show_errata(rows)


def _show_errata(rows: list[paper_errata.Erratum]) -> None:
    from rich.console import Console

    from tacit.report.tables import errata_table

    console = Console()
    for _, group in groupby(rows, key=lambda row: (row.T, row.epsilon, row.delta)):
        console.print(errata_table(list(group)))
    broken = sum(not row.holds for row in rows)
    console.print(
        f"{broken} of {len(rows)} claims are broken. Delivered is the exact epsilon at the claimed delta, for the "
        "worst two streams that differ in one example. Why, and what is right instead: the documentation's page Errata."
    )


Loss = Literal["logistic", "hinge", "squared", "absolute", "softmax", "one-hot"]


def _loss(name: Loss, classes: int | None) -> ScalarLoss | ScoresLoss:
    """The loss of this name; classes go with those that have some, and only with them."""
    from tacit.problem import losses, scores

    if (classes is None) == (name in ("softmax", "one-hot")):
        raise InvalidInput(f"--classes goes with --loss softmax or one-hot, and they need it; loss is {name}.")
    if classes is not None:
        return scores.Softmax(classes) if name == "softmax" else scores.OneHot(classes)
    plain: dict[str, Callable[[], ScalarLoss]] = {
        "logistic": losses.Logistic,
        "hinge": losses.Hinge,
        "squared": losses.Squared,
        "absolute": losses.Absolute,
    }
    return plain[name]()


@app.command()
def plan(
    epsilon: Annotated[float, typer.Option(help="Total epsilon of everything published.")],
    delta: Annotated[float, typer.Option(help="Total delta, well below one over the number of people.")],
    dimension: Annotated[int, typer.Option(help="Number of features.")],
    horizon: Annotated[int | None, typer.Option(help="Number of examples; leave out for a stream without end.")] = None,
    loss: Annotated[Loss, typer.Option(help="What is learnt.")] = "logistic",
    classes: Annotated[int | None, typer.Option(help="Number of classes, for softmax and one-hot.")] = None,
    radius: Annotated[float, typer.Option(help="Longest model.")] = 1.0,
    ridge: Annotated[float, typer.Option(help="Strong convexity of every loss.")] = 0.0,
    feature_bound: Annotated[float, typer.Option(help="Longest features.")] = 1.0,
    label_bound: Annotated[float, typer.Option(help="Largest label, for regression.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Which method and settings to use, the noise to expect, and whether anything can be learnt.

    Example: tacit plan --epsilon 1 --delta 1e-6 --dimension 10 --horizon 100000
    """
    from tacit.accounting.exact import Privacy
    from tacit.plan import recommend
    from tacit.problem.problem import Problem
    from tacit.problem.sets import L2Ball

    learnt = _loss(loss, classes)
    problem = Problem(learnt, L2Ball(radius), dimension, feature_bound, label_bound=label_bound, ridge=ridge)
    made = recommend(problem, Privacy(epsilon, delta), horizon)
    if as_json:
        typer.echo(_as_json(made.as_data()))
    else:
        _show_plan(made)


def _show_plan(made: Plan) -> None:
    from rich.console import Console
    from rich.table import Table

    from tacit.mechanisms.sums import RunningSum

    console, data = Console(), made.as_data()
    console.print(f"[bold]{made.method}[/bold]: {made.why}.", highlight=False)
    table = Table("setting", "value")
    for name in ("mechanism", "schedule", "horizon", "releases", "ridge", "radius"):
        table.add_row(name, f"{data[name]}")
    table.add_row("burn-in", "none" if made.burn_in is None else f"{made.burn_in:,} rounds")
    console.print(table)
    on_what = "a sum" if isinstance(made.private.mechanism, RunningSum) else "a model"
    noise = Table("strategy", f"noise on an entry of {on_what}, last release")
    for name, sd in made.noise.items():
        noise.add_row(name, f"{sd:.4g}")
    console.print(noise)
    console.print(made.warning or "From the burn-in on, the data outweighs the noise.", highlight=False)


def main() -> None:
    """Run the command: a refusal is one sentence and exit status 2; a crash is one, and 3, which is nobody's verdict.

    With `TACIT_DEBUG=1` in the environment a crash also says where it happened. A report that nobody reads to its end
    needs no sentence.
    """
    try:
        _run()
    except TacitError as refusal:
        print(f"tacit: {refusal}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries once more as it ends
        raise SystemExit(3) from None
    except Exception as crash:
        if os.environ.get("TACIT_DEBUG"):
            traceback.print_exc()
        what = " ".join(f"{type(crash).__name__} {crash}".split())
        print(f"tacit: this went wrong: {what}. Set TACIT_DEBUG=1 to see where, and report it.", file=sys.stderr)
        raise SystemExit(3) from None


def _run() -> None:
    """The command; exit status 1 is left to those that ask for it, as typer and rich end so on a broken pipe."""
    try:
        app()
    except SystemExit as done:
        if done.code == 1 and not isinstance(done.__context__, typer.Exit):
            raise BrokenPipeError from None
        sys.stdout.flush()
        raise
