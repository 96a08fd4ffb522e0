"""A ledger as a sentence and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn._util.html import budget_bar, card, facts
from taciturn.kernel.accounting.rounding import rounded_down, rounded_up

if TYPE_CHECKING:
    from taciturn.accounting.ledger import Ledger


def sentence(ledger: Ledger) -> str:
    """What is reserved and spent, in a sentence."""
    privacy = ledger.privacy
    if privacy is None:
        return f"{ledger.population}: reserved {ledger.reserved}, spent {ledger.spent}, no budget"
    delta = privacy.delta
    reserved, spent = ledger.reserved, ledger.spent
    return (
        f"{ledger.population}: reserved epsilon = {rounded_up(reserved.epsilon(delta), 4)} of {privacy.epsilon:g} at "
        f"delta = {delta:g} ({reserved}), spent epsilon = {rounded_up(spent.epsilon(delta), 4)} ({spent})"
    )


def html(ledger: Ledger) -> str:
    """The same with its terms, as part of a page."""
    privacy, lines = ledger.privacy, ledger.lines.values()
    told = [
        (
            "unit",
            f"{ledger.unit}, anew in each {ledger.unit.removeprefix('user and ')}" if ledger.renews else ledger.unit,
        ),
        ("neighbours", ledger.neighbours or "not settled yet"),
        ("streams and fits", f"{len(lines):,}, of which {sum(line.closed for line in lines):,} are closed"),
    ]
    if privacy is None:
        told += [("reserved", str(ledger.reserved)), ("spent", str(ledger.spent)), ("budget", "none is stated")]
        return card(f"Ledger of {ledger.population}", facts(told))
    spent, reserved = ledger.spent.epsilon(privacy.delta), ledger.reserved.epsilon(privacy.delta)
    words = [
        f"spent {rounded_up(spent)}",
        f"reserved {rounded_up(reserved)}, with what is spent",
        f"left: one more stream of {rounded_down(ledger.left or 0.0)}",
    ]
    title = f"Ledger of {ledger.population}: epsilon = {privacy.epsilon:g} at delta = {privacy.delta:g}"
    return card(title, budget_bar(spent, reserved, privacy.epsilon, words), facts(told))
