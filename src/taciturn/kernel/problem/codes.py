"""Codes of losses, sets and steps: compiled code that takes functions as arguments cannot be cached on disk.

Only exact types have a code; a subclass, or a class of a user, has none and runs the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taciturn.kernel.problem import losses, multiclass, sets
from taciturn.kernel.problem.scalar_loss import Smoothed

Code = tuple[int, float, float]
"""A number and two parameters."""

SQUARED, LOGISTIC, HINGE, QUANTILE, ABSOLUTE, HUBER, LINEAR = range(7)
"""Losses of `v·x`: with a parameter (a quantile's level, Huber's width, a difference of the weights of two labels) and
the width over which kinks are smoothed."""

SOFTMAX, ONE_HOT = 7, 8
"""Smooth losses of several scores."""

MULTI_HINGE = 10
"""A kinked loss of several scores: for code that uses values and slopes, and for none that solves."""

REAL, SIGN, CLASS, NONE = range(4)
"""Labels: any number, -1 or +1, one of several classes, or none."""

WHOLE_SPACE, BALL, BOX = range(3)
"""Sets: with the least and the largest entry of a box, or 0 and the radius of a ball."""

IMPLICIT, FADING, GRADIENT, PRINTED = range(4)
"""Steps: with the ridge, or a fading one's strength, and with the delay, or the first round that moves."""

TIE = 2.0**-40
"""As in `taciturn.kernel.problem.multiclass`; here, since compiled code in the cache is bound to this file's text."""

Leader = tuple[Code, Code, float, float, float, float]
"""A regularised leader: loss, set, the most a slope and an entry of a contribution can be, lattice, and curvature."""

_LOSSES: dict[type, int] = {
    losses.Squared: SQUARED,
    losses.Logistic: LOGISTIC,
    losses.Hinge: HINGE,
    losses.Quantile: QUANTILE,
    losses.Absolute: ABSOLUTE,
    losses.Huber: HUBER,
    losses.Linear: LINEAR,
    multiclass.Softmax: SOFTMAX,
    multiclass.OneHot: ONE_HOT,
}
REGISTERED: dict[type, Callable[[Any, float], Code | None]] = {}
"""The numbers of losses that are defined elsewhere, by their exact type, with the width of a smoothed kink."""

_MULTI_HINGE = (MULTI_HINGE, 0.0, 0.0)


def loss_code(loss: Any) -> Code | None:
    """A loss as three numbers.

    >>> loss_code(losses.Quantile(0.9))
    (3, 0.9, 0.0)
    >>> from taciturn.methods.weighted import Weighted
    >>> loss_code(Weighted(losses.Hinge(), negative=0.25))
    (2, 0.75, 0.0)
    """
    width = 0.0
    if type(loss) is Smoothed:
        loss, width = loss.loss, float(loss.width)
    if type(loss) in REGISTERED:
        return REGISTERED[type(loss)](loss, width)
    number = _LOSSES.get(type(loss))
    parameter = float(getattr(loss, "level", getattr(loss, "width", 0.0)))
    return None if number is None else (number, parameter, width)


def slope_code(loss: Any) -> Code | None:
    """The same, for code that takes slopes and solves nothing: kinked losses of several scores have a number too.

    >>> slope_code(multiclass.MultiHinge(3)), loss_code(multiclass.MultiHinge(3))
    ((10, 0.0, 0.0), None)
    """
    return _MULTI_HINGE if type(loss) is multiclass.MultiHinge else loss_code(loss)


def set_code(domain: Any) -> Code | None:
    """A set as three numbers.

    >>> set_code(sets.L2Ball(2.0))
    (1, 0.0, 2.0)
    """
    if type(domain) is sets.WholeSpace:
        return WHOLE_SPACE, 0.0, 0.0
    if type(domain) is sets.L2Ball:
        return BALL, 0.0, float(domain.radius)
    return (BOX, float(domain.low), float(domain.high)) if type(domain) is sets.Box else None
