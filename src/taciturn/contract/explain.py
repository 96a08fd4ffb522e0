"""The explanation of a contract: the guarantee, what is public, the features, and the plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from taciturn.columns.kinds import Bins, Categories, Column, Date, Hashed, PrivateRange, Range, Text
from taciturn.columns.target import Number, Positive, PrivateNumber
from taciturn.contract.contract import Contract
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.stream.schedule import Every
from taciturn.plan import Plan, left_out

if TYPE_CHECKING:
    from rich.console import RenderableType


def explain(contract: Contract, plan: Plan) -> dict[str, Any]:
    """The explanation as plain data, for `taciturn check --json`.

    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"age": {"range": [0, 100]}}})
    >>> data = explain(contract, contract.plan())
    >>> data["dimension"], data["columns"]
    (1, [{'name': 'age', 'declared': 'a number from 0 to 100', 'features': 1}])
    """
    return {
        "digest": contract.digest,
        "guarantee": contract.guarantee(plan),
        "in_plain_words": in_plain_words(contract),
        "public": public(contract),
        "target": target_in_words(contract),
        **({} if contract.events is None else {"events": contract.events.in_words(_awaited(contract))}),
        **({} if contract.bandit is None else {"bandit": contract.bandit.in_words}),
        "dimension": contract.dimension,
        "feature_bound": contract.feature_bound,
        "columns": [{"name": c.name, "declared": column_in_words(c), "features": c.width} for c in contract.columns],
        "plan": plan.as_data(),
    }


def in_plain_words(contract: Contract) -> str:
    """The guarantee for one row or one user, as the accuracy of the best adversary."""
    relation = contract.neighbours
    rows = "labels" if relation == "label" else "rows"
    knows = _OF_ONE_ROW if relation != "label" else "knows all features and all labels but one, and guesses of that one"
    question = {
        "replace": "which of two given rows it is",
        "zero-out": "whether it was used or zeroed out",
        "label": "which of two given labels it is",
    }[relation]
    if contract.rows_per_user is not None:
        knows = f"knows all {rows} of all users but one, and guesses of that user"
        question = f"which of two given sets of {rows} is theirs"
        if relation == "zero-out":
            question = "whether theirs were zeroed out"
    if contract.rows_per_user is not None and contract.period is not None:
        knows = f"knows all {rows} but those of one user in one {_period(contract)}, and guesses of these"
        question = f"which of two given sets of {rows} they are"
        if relation == "zero-out":
            question = "whether they were zeroed out"
    percent = math.ceil(1000 * guess_accuracy(contract.epsilon, contract.delta)) / 10
    chance = f"at most {percent:.1f} % of the time" if percent < 100.0 else "up to nearly 100 % of the time"
    return (
        f"An adversary sees every published model, {knows} {question}; both answers are equally likely "
        f"beforehand. The guess is correct {chance}; a random guess is correct half of the time. This holds for all "
        f"models together, however many are published. {_whom(contract)}"
    )


_OF_ONE_ROW = "knows all rows but one, and guesses of that row"


def _whom(contract: Contract) -> str:
    """Who is protected, in a sentence."""
    if contract.rows_per_user is None:
        one = "the label of one row" if contract.neighbours == "label" else "one row"
        ids = "" if contract.user is None else f" The ids in {contract.user} protect nothing without rows_per_user."
        return f"It protects {one}: a person with several rows is protected less.{ids}"
    own = "a row without an id is a user of its own" if contract.without_id == "own" else "rows without an id are bad"
    bound = f"at most {contract.rows_per_user:,} rows of a user"
    if contract.period is None:
        return (
            f"It protects a user, by the ids in {contract.user}, with all of their rows: {bound} count, and later ones "
            f"have no influence; {own}. A person with two ids is two users."
        )
    period = _period(contract)
    return (
        f"It protects all rows of a user, by the ids in {contract.user}, in one {period}: {bound} in each {period} "
        f"count, and later ones have no influence; {own}. A person with two ids is two users, and a user with rows in "
        f"several periods is protected less."
    )


def _period(contract: Contract) -> str:
    return f"period of {contract.period:,} rows" if isinstance(contract.period, int) else f"{contract.period}"


def guess_accuracy(epsilon: float, delta: float) -> float:
    """Upper bound on the accuracy of a guess between two equally likely neighbouring streams.

    The best accuracy is (1 + TV)/2, and two (epsilon, delta)-close distributions have
    TV <= (e^epsilon - 1 + 2 delta)/(e^epsilon + 1): on the event A where the first is likelier,
    P(A) <= e^epsilon Q(A) + delta and 1 - Q(A) <= e^epsilon (1 - P(A)) + delta, and these two added bound
    (P(A) - Q(A)) (e^epsilon + 1).

    >>> round(guess_accuracy(1.0, 1e-6), 3), round(guess_accuracy(0.1, 1e-6), 3)
    (0.731, 0.525)
    """
    return min(1.0, (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon)))


def public(contract: Contract) -> list[str]:
    """What is public."""
    features = "all features of all rows: they are not protected, only labels are"
    return [
        *([features] if contract.neighbours == "label" else []),
        "every published model, when it was published, and whatever is computed from them",
        "how many rows there are, and in which order they come",
        *([] if contract.events is None else ["when rows come, and not when or whether their labels do"]),
        "the contract: the budget, the names of the columns, their ranges and categories, the settings",
        "the size of the noise, which follows from the contract",
        f"what may be predicted: {target_in_words(contract)}",
    ]


def target_in_words(contract: Contract) -> str:
    """The target in words."""
    target = contract.target
    if isinstance(target, Number):
        return f"{target.column}, a number from {target.low:g} to {target.high:g}{target.scale.in_words}"
    if isinstance(target, PrivateNumber):
        return f"{target.column}, a number"
    weights = ""
    if target.class_weight is not None:
        each = zip(target.names, target.class_weight, strict=True)
        weights = f", with the weights {', '.join(f'{name}: {weight:g}' for name, weight in each)}"
    if isinstance(target, Positive):
        return f"whether {target.column} is {target.names[1]} or something else{weights}"
    return f"{target.column}, one of {', '.join(map(str, target.classes))}{weights}"


def column_in_words(column: Column) -> str:
    """The declaration of a column in words.

    >>> column_in_words(Range("age", 0.0, 100.0, missing=40.0, indicator=True))
    'a number from 0 to 100; missing: 40, and an indicator'
    """
    return f"{_kind_in_words(column)}{_missing_in_words(column)}"


def _missing_in_words(column: Column) -> str:
    """What is declared of missing values, but for the defaults."""
    declared = column.declared()
    stated = declared.get("missing")
    words = {"category": "a category of its own", "bad": "a bad row", "zero": "0"}
    parts = [] if stated is None else [words[stated] if isinstance(stated, str) else f"{stated:g}"]
    if "indicator" in declared:
        default = "the center" if isinstance(column, PrivateRange) else "the middle"
        parts = [*(parts or [default]), "and an indicator"]
    return f"; missing: {', '.join(parts)}" if parts else ""


def _kind_in_words(column: Column) -> str:
    if isinstance(column, Range):
        return f"a number from {column.low:g} to {column.high:g}{column.scale.in_words}"
    if isinstance(column, Date):
        cycles = f", and its {', '.join(column.cycle)}" if column.cycle else ""
        return f"a date from {column.low} to {column.high}{cycles}"
    if isinstance(column, Bins):
        return f"a number, in one of {len(column.edges) - 1} bins from {column.edges[0]:g} to {column.edges[-1]:g}"
    if isinstance(column, PrivateRange):
        return "a number, whose range is found privately"
    if isinstance(column, Categories):
        listed = ", ".join(map(str, column.values[:8]))
        return f"one of {listed}" + (f" and {len(column.values) - 8} more" if len(column.values) > 8 else "")
    if isinstance(column, Text):
        return f"a text, its words hashed into {column.buckets:,}"
    return f"anything, hashed into {column.buckets}" if isinstance(column, Hashed) else "ignored"


def explanation(contract: Contract, plan: Plan) -> list[RenderableType]:
    """The explanation for the terminal."""
    from rich.markup import escape
    from rich.table import Table

    features = Table("column", "declared as", "features")
    for column in contract.columns:
        features.add_row(escape(column.name), escape(column_in_words(column)), str(column.width))
    return [
        "[bold]What is promised[/bold]",
        f"{escape(contract.guarantee(plan))}\n\n{escape(in_plain_words(contract))}\n",
        "[bold]What is public[/bold]",
        *(f"- {escape(line)}" for line in public(contract)),
        "",
        f"[bold]What is learnt[/bold]\n{escape(_learnt(contract, plan))}",
        features,
        "[bold]The plan[/bold]",
        *plan_report(plan),
    ]


def release_for_workers(contract: Contract, made: Plan) -> int | None:
    """The release that the contract must state so that workers learn it by this plan, made for them; or None."""
    schedule = made.private.timetable.schedule
    if schedule != contract.plan().private.timetable.schedule and isinstance(schedule, Every):
        return schedule.rounds
    return None


def _awaited(contract: Contract) -> str:
    return "label" if contract.bandit is None else "reward"


def _learnt(contract: Contract, plan: Plan) -> str:
    bound = f"{contract.feature_bound:.4g}"
    length = f"Rows longer than {bound} are scaled down to that."
    if contract.stated_bound is None:
        length += (
            " State another feature_bound if you know the norms of most rows: a smaller one makes the noise smaller."
        )
    features = contract.problem.features
    also = "" if features is None else f" The model is linear in {features}: a smooth function of the columns."
    private = plan.private
    first = ""
    if private.stages:
        rows = private.rows_of_stages
        share = "" if contract.horizon is None else f", {100.0 * rows / contract.horizon:.1f} % of all,"
        first = (
            f"The first {rows:,} rows{share} are used to find {plan.found_in_words}, with noise, at no further cost; "
            "models are published after them. Rows should come in no particular order. "
        )
    if contract.bandit is not None:
        first = f"{contract.bandit.in_words} "
    what = _awaited(contract)
    later = "" if contract.events is None else f" In a service {what}s come later. {contract.events.in_words(what)}"
    return f"{first}{contract.dimension:,} features predict {target_in_words(contract)}. {length}{also}{later}"


def plan_report(made: Plan) -> list[RenderableType]:
    """A plan for the terminal: the method and why, its settings, the expected noise, and whether anything is learnt."""
    from rich.markup import escape
    from rich.table import Table

    data = made.as_data()
    table = Table("setting", "value")
    for name in ("features", "mechanism", "schedule", "horizon", "releases", "model", "ridge", "radius"):
        table.add_row(name, escape(f"{data[name]}"))
        if name == "horizon" and data[name] is None:
            table.add_row("end", made.end)
    for relation, epsilon in made.private.guarantee.epsilons.items():
        table.add_row(f"epsilon, {relation}", rounded_up(epsilon, 4))
    table.add_row("burn-in", "none" if made.burn_in is None else f"{made.burn_in:,} rounds")
    noise = Table("strategy", f"noise on an entry of {made.noise_on}, last release")
    for name, sd in made.noise.items():
        noise.add_row(escape(name), f"{sd:.4g}")
    verdict = made.warning or made.outlook
    if made.kept is not None:
        verdict += (
            f" If nothing drifts, forgetting leaves {made.kept:.0%} of the signal that all of the rows have beside the "
            "noise."
        )
    delta = [] if made.delta_warning is None else [f"[bold]Warning:[/bold] {made.delta_warning}"]
    missing = [escape(left_out(made.not_compared))] if made.not_compared else []
    chain = [escape(f"{number}. {line}") for number, line in enumerate(made.chain, 1)]
    basis = escape(made.basis)
    return [f"[bold]{made.method}[/bold]: {made.why}.", *chain, table, noise, *missing, basis, verdict, *delta]
