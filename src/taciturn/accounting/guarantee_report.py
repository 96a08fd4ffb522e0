"""A guarantee as HTML."""

from __future__ import annotations

from taciturn._util.html import card, facts, paragraph
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.rounding import rounded_up


def guarantee_html(guarantee: Guarantee) -> str:
    """The claim, the terms and the sentence of a guarantee, as part of a page; in red where it does not hold."""
    claimed = guarantee.claimed
    claim = f"({claimed.epsilon:.12g}, {claimed.delta:.12g})-differentially private"
    title = f"Simulation: not private (else {claim})" if guarantee.simulated else claim
    told = [(name, f"epsilon = {rounded_up(value, digits=4)}") for name, value in guarantee.epsilons.items()]
    told += [
        ("unit", str(guarantee.unit)),
        ("calibration", guarantee.calibration),
        ("bound on a row", guarantee.rests_on),
    ]
    sentence = paragraph(str(guarantee))
    return card(title if guarantee.proven else f"BROKEN: not {claim}", facts(told), sentence, alarm=not guarantee.holds)
