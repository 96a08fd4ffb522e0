"""Numbers for people, rounded to the side on which no more is promised than is true."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def rounded_up(value: float, digits: int = 3, thousands: bool = False) -> str:
    """A number with so many significant digits, rounded up: a reported epsilon is never less than the true one.

    `thousands` writes large numbers with separators, not in scientific notation.

    >>> rounded_up(0.010001), rounded_up(1.0), rounded_up(55592.03, thousands=True), rounded_up(float("inf"))
    ('0.0101', '1', '55,600', 'inf')
    """
    above = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value))
    return f"{above:,g}" if thousands else f"{above:.{digits}g}"


def rounded_down(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, rounded down: of what is left, no more is promised than there is.

    >>> rounded_down(0.99999), rounded_down(0.0)
    ('0.999', '0')
    """
    below = float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(value))
    return f"{below:.{digits}g}"
