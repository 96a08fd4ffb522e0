"""`taciturn plan`: recommend a method and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.cli.output import integral
from taciturn.errors import InvalidInput

if TYPE_CHECKING:  # imported inside the command, so that other commands start fast
    from collections.abc import Callable

    from taciturn.kernel.problem.multiclass import ScoresLoss
    from taciturn.kernel.problem.scalar_loss import ScalarLoss

Loss = Literal["logistic", "hinge", "squared", "absolute", "softmax", "one-hot", "multi-hinge"]


def _loss(name: Loss, classes: int | None) -> ScalarLoss | ScoresLoss:
    """The loss of this name; multiclass losses need the number of classes, and the others do not take it."""
    from taciturn.kernel.problem import losses
    from taciturn.kernel.problem import multiclass as scores

    several: dict[str, Callable[[int], ScoresLoss]] = {
        "softmax": scores.Softmax,
        "one-hot": scores.OneHot,
        "multi-hinge": scores.MultiHinge,
    }
    if (classes is None) == (name in several):
        raise InvalidInput(
            f"--classes is required with --loss softmax, one-hot or multi-hinge, and only with them; loss is {name}."
        )
    if classes is not None:
        return several[name](classes)
    plain: dict[str, Callable[[], ScalarLoss]] = {
        "logistic": losses.Logistic,
        "hinge": losses.Hinge,
        "squared": losses.Squared,
        "absolute": losses.Absolute,
    }
    return plain[name]()


def plan(
    epsilon: Annotated[float, typer.Option(help="Total epsilon of everything that is published.")],
    delta: Annotated[float, typer.Option(help="Total delta, well below 1 / (number of people).")],
    dimension: Annotated[int, typer.Option(help="Number of features.")],
    horizon: Annotated[
        int | None,
        typer.Option(help="Number of examples; without it, many streams end at 2^23.", parser=integral, metavar="N"),
    ] = None,
    loss: Annotated[Loss, typer.Option(help="Loss function.")] = "logistic",
    classes: Annotated[int | None, typer.Option(help="Number of classes, for a multiclass loss.")] = None,
    radius: Annotated[float, typer.Option(help="Largest norm of a model.")] = 1.0,
    ridge: Annotated[float, typer.Option(help="Strong convexity of every loss.")] = 0.0,
    feature_bound: Annotated[float, typer.Option(help="Largest norm of the features of an example.")] = 1.0,
    features: Annotated[
        str, typer.Option(help="linear, random (by a public rule), or a number of random features.")
    ] = "linear",
    label_bound: Annotated[float, typer.Option(help="Largest absolute label, for regression.")] = 1.0,
    neighbours: Annotated[
        Literal["replace", "zero-out", "label"], typer.Option(help="Neighbour relation of the budget.")
    ] = "replace",
    forget: Annotated[
        str | None,
        typer.Option(
            help="Examples after which a row counts less by a factor of e: 10000, several as 1000,10000, or auto."
        ),
    ] = None,
    rows_per_user: Annotated[
        int | None,
        typer.Option(help="Protect users: rows of one that count; 0 to choose by a public rule.", metavar="K"),
    ] = None,
    rows_per_release: Annotated[
        int | None, typer.Option(help="The most of them between two releases.", metavar="M")
    ] = None,
    apart: Annotated[int, typer.Option(help="Releases from one of them to the next, at least.", metavar="B")] = 1,
    users: Annotated[int | None, typer.Option(help="Number of users, if it is public, for --rows-per-user 0.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes or machines that add up rows: plan for them.", min=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recommend a method and settings, with the expected noise, and tell whether anything can be learnt.

    Example: taciturn plan --epsilon 1 --delta 1e-6 --dimension 10 --horizon 100000 --rows-per-user 4
    """
    from rich.console import Console

    from taciturn._util.output import json_text
    from taciturn.contract.explain import plan_report
    from taciturn.kernel.accounting.gdp import Privacy
    from taciturn.kernel.accounting.unit import EXAMPLE, User
    from taciturn.kernel.problem.problem import Problem
    from taciturn.kernel.problem.sets import L2Ball
    from taciturn.plan import feature_map, recommend
    from taciturn.plan import rows_per_user as chosen_rows

    budget = Privacy(epsilon, delta)
    choice: Any = int(features) if features.isdecimal() else features
    problem = Problem(
        _loss(loss, classes),
        L2Ball(radius),
        dimension,
        feature_bound,
        label_bound=label_bound,
        ridge=ridge,
        neighbours=neighbours,
        features=feature_map(choice, feature_bound, budget, horizon),
    )
    if rows_per_user == 0:
        if horizon is None:
            raise InvalidInput("--rows-per-user 0 chooses from the number of rows. State --horizon.")
        rows_per_user = chosen_rows(problem, budget, horizon, users, apart=apart)
    unit = EXAMPLE if rows_per_user is None else User(rows_per_user, rows_per_release, apart)
    window: Any = forget
    if forget is not None and forget != "auto":
        listed = [integral(each) for each in forget.split(",")]
        window = listed if len(listed) > 1 else listed[0]
    made = recommend(problem, budget, horizon, unit=unit, forget=window, workers=workers)
    if as_json:
        typer.echo(json_text(made.as_data()))
    else:
        Console().print(*plan_report(made), sep="\n", highlight=False)
