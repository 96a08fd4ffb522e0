"""A problem by number, for compiled code; what is not of this package has none and goes by the definition."""

from __future__ import annotations

from typing import Any

from taciturn.compiled import codes
from taciturn.compiled.codes import Code
from taciturn.problem import losses, sets
from taciturn.problem import multiclass as scores
from taciturn.problem import unlabelled_loss as unlabelled
from taciturn.problem.scalar_loss import Smoothed

_LOSSES: dict[type, int] = {
    losses.Squared: codes.SQUARED,
    losses.Logistic: codes.LOGISTIC,
    losses.Hinge: codes.HINGE,
    losses.Quantile: codes.QUANTILE,
    losses.Absolute: codes.ABSOLUTE,
    losses.Huber: codes.HUBER,
    losses.Linear: codes.LINEAR,
    scores.Softmax: codes.SOFTMAX,
    scores.OneHot: codes.ONE_HOT,
}
_MULTI_HINGE = (codes.MULTI_HINGE, 0.0, 0.0)


def loss_code(loss: Any) -> Code | None:
    """A loss as three numbers.

    >>> loss_code(losses.Quantile(0.9))
    (3, 0.9, 0.0)
    """
    width = 0.0
    if type(loss) is Smoothed:
        loss, width = loss.loss, float(loss.width)
    number = _LOSSES.get(type(loss))
    parameter = float(getattr(loss, "level", getattr(loss, "width", 0.0)))
    return None if number is None else (number, parameter, width)


def slope_code(loss: Any) -> Code | None:
    """The same, for code that takes slopes and solves nothing: kinked losses of several scores have a number too.

    >>> slope_code(scores.MultiHinge(3)), loss_code(scores.MultiHinge(3))
    ((10, 0.0, 0.0), None)
    """
    return _MULTI_HINGE if type(loss) is scores.MultiHinge else loss_code(loss)


def value_code(loss: Any) -> Code | None:
    """The same, for code that looks at a loss's values: experts' losses have a number too, envelopes have none.

    >>> value_code(unlabelled.Advice(2.0))
    (9, 2.0, 0.0)
    """
    if type(loss) is unlabelled.Advice:
        return codes.ADVICE, loss.loss_bound, 0.0
    return None if type(loss) is Smoothed else slope_code(loss)


def set_code(domain: Any) -> Code | None:
    """A set as three numbers.

    >>> set_code(sets.L2Ball(2.0))
    (1, 0.0, 2.0)
    """
    if type(domain) is sets.WholeSpace:
        return codes.WHOLE, 0.0, 0.0
    if type(domain) is sets.L2Ball:
        return codes.BALL, 0.0, float(domain.radius)
    return (codes.BOX, float(domain.low), float(domain.high)) if type(domain) is sets.Box else None
