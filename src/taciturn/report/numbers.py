"""Numbers for people: few digits, and none of them to our advantage."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context


def rounded_up(value: float, digits: int = 3) -> str:
    """So many digits, the last rounded up: an epsilon that is reported must not be less than the one that is true.

    >>> rounded_up(0.010001), rounded_up(1.0), rounded_up(float("inf"))
    ('0.0101', '1', 'inf')
    """
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)):.{digits}g}"
