"""`taciturn plan`: which method and settings to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from taciturn.errors import InvalidInput

if TYPE_CHECKING:  # the command imports what it needs, so that others start at once
    from collections.abc import Callable

    from taciturn.problem.multiclass import ScoresLoss
    from taciturn.problem.scalar_loss import ScalarLoss

Loss = Literal["logistic", "hinge", "squared", "absolute", "softmax", "one-hot", "multi-hinge"]


def _loss(name: Loss, classes: int | None) -> ScalarLoss | ScoresLoss:
    """The loss of this name; classes go with those that have some, and only with them."""
    from taciturn.problem import losses
    from taciturn.problem import multiclass as scores

    several: dict[str, Callable[[int], ScoresLoss]] = {
        "softmax": scores.Softmax,
        "one-hot": scores.OneHot,
        "multi-hinge": scores.MultiHinge,
    }
    if (classes is None) == (name in several):
        raise InvalidInput(
            f"--classes goes with --loss softmax, one-hot or multi-hinge, and they need it; loss is {name}."
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
    epsilon: Annotated[float, typer.Option(help="Total epsilon of everything published.")],
    delta: Annotated[float, typer.Option(help="Total delta, well below one over the number of people.")],
    dimension: Annotated[int, typer.Option(help="Number of features.")],
    horizon: Annotated[int | None, typer.Option(help="Number of examples; leave out for a stream without end.")] = None,
    loss: Annotated[Loss, typer.Option(help="What is learnt.")] = "logistic",
    classes: Annotated[int | None, typer.Option(help="Number of classes, where the loss has some.")] = None,
    radius: Annotated[float, typer.Option(help="Longest model.")] = 1.0,
    ridge: Annotated[float, typer.Option(help="Strong convexity of every loss.")] = 0.0,
    feature_bound: Annotated[float, typer.Option(help="Longest features.")] = 1.0,
    label_bound: Annotated[float, typer.Option(help="Largest label, for regression.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Which method and settings to use, the noise to expect, and whether anything can be learnt.

    Example: taciturn plan --epsilon 1 --delta 1e-6 --dimension 10 --horizon 100000
    """
    from rich.console import Console

    from taciturn._util.output import json_text
    from taciturn.accounting.gdp import Privacy
    from taciturn.contract.explain import plan_report
    from taciturn.plan import recommend
    from taciturn.problem.problem import Problem
    from taciturn.problem.sets import L2Ball

    learnt = _loss(loss, classes)
    problem = Problem(learnt, L2Ball(radius), dimension, feature_bound, label_bound=label_bound, ridge=ridge)
    made = recommend(problem, Privacy(epsilon, delta), horizon)
    if as_json:
        typer.echo(json_text(made.as_data()))
    else:
        Console().print(*plan_report(made), sep="\n", highlight=False)
