"""The exceptions of `taciturn`, and checks of settings. Each message says what was expected, what came and what to do.

TaciturnError
├── InvalidInput       a setting or an example that cannot be used (also a ValueError)
├── Unprovable         no proof covers the guarantee that was asked for
├── BudgetExhausted    the privacy budget, or the horizon it was planned for, is used up
├── StateConflict      a state of other settings, already used, or copied
├── StoreUnavailable   a database cannot be reached, or cannot be trusted to keep what it commits
└── ContractBroken     a check of taciturn.checks failed (also an AssertionError)
"""

import difflib
import math
from collections.abc import Callable, Hashable, Iterable, Sized
from enum import Enum
from numbers import Number
from typing import Any

_LONGEST_TEXT = 40  # of a setting that an error quotes


class TaciturnError(Exception):
    """Base of every error of this package.

    >>> issubclass(BudgetExhausted, TaciturnError)
    True
    """


class InvalidInput(TaciturnError, ValueError):
    """A setting or an example that cannot be used; nothing has changed.

    >>> from taciturn import L2Ball
    >>> L2Ball(-1.0)
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: radius must be positive and finite, got -1.0.
    """


class Unprovable(TaciturnError):
    """No proof covers the guarantee that was asked for.

    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    taciturn.errors.Unprovable: IGD certifies strongly convex losses only, and ridge is 0.0. ...
    """


class BudgetExhausted(TaciturnError):
    """The privacy budget, or the horizon it was planned for, is used up.

    >>> raise BudgetExhausted("round 11 lies past the horizon of 10.")
    Traceback (most recent call last):
    ...
    taciturn.errors.BudgetExhausted: round 11 lies past the horizon of 10.
    """


class StateConflict(TaciturnError):
    """A state of other settings, already used, or copied.

    >>> raise StateConflict("generation 3 of this stream was used already.")
    Traceback (most recent call last):
    ...
    taciturn.errors.StateConflict: generation 3 of this stream was used already.
    """


class StoreUnavailable(TaciturnError):
    """A database cannot be reached, or cannot be trusted to keep what it commits.

    >>> raise StoreUnavailable("budget.db: the disk is full. Nothing was committed; try again later.")
    Traceback (most recent call last):
    ...
    taciturn.errors.StoreUnavailable: budget.db: the disk is full. Nothing was committed; try again later.
    """


class ContractBroken(TaciturnError, AssertionError):
    """A check of `taciturn.checks` failed.

    >>> from taciturn.checks.suite import demand
    >>> demand(1.1 <= 1.0, "a pair of streams uses 1.1 of the certificate", "Find what its proof forgot.")
    Traceback (most recent call last):
    ...
    taciturn.errors.ContractBroken: a pair of streams uses 1.1 of the certificate. Find what its proof forgot.
    """


for _each in (
    TaciturnError,
    InvalidInput,
    Unprovable,
    BudgetExhausted,
    StateConflict,
    StoreUnavailable,
    ContractBroken,
):
    _each.__module__ = "taciturn.errors"  # the public name, which tracebacks show


def value_or_type(value: Any) -> str:
    """What came, for an error: the value of a scalar, and of anything else its type, with its shape or length.

    A setting that was given a row, a column or a table by mistake is thereby not quoted. Scalars are None, numbers, and
    texts of up to 40 characters; classes and members of enumerations are named.

    >>> value_or_type(-1.5), value_or_type("gigga"), value_or_type(InvalidInput), value_or_type([1643.34, 1386.09])
    ('-1.5', "'gigga'", 'the class InvalidInput', 'list of length 2')
    >>> import numpy as np
    >>> value_or_type(np.float64(0.5)), value_or_type(np.ones((5, 2))), value_or_type("a long text " * 9)
    ('0.5', 'ndarray of shape (5, 2)', 'text of 108 characters')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, Enum):
        return repr(value)
    if isinstance(value, str):
        return repr(str(value)) if len(value) <= _LONGEST_TEXT else f"text of {len(value)} characters"
    if isinstance(value, int) and abs(value) >= 2**1000:
        return "a number of hundreds of digits"
    if isinstance(value, Number) or _is_numpy_scalar(value):
        return repr(value.item() if _is_numpy_scalar(value) else value)
    name = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(size, int) for size in shape):
        return f"{name} of shape {shape}"
    return f"{name} of length {len(value)}" if isinstance(value, Sized) else name


def _what_came(value: Any, of_many: bool) -> str:
    return "and one of them is not" if of_many else f"got {value_or_type(value)}"


def _is_numpy_scalar(value: Any) -> bool:
    """Whether it is a number or a truth value of NumPy's, and no array."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return getattr(value, "ndim", 1) == 0 and kind in "biufc" and hasattr(value, "item") and isinstance(value, Hashable)


def float_or_nan(value: Any) -> float:
    """Convert to a float; NaN for anything that is no number, text of digits included.

    >>> float_or_nan(2), float_or_nan("2"), float_or_nan(None)
    (2.0, nan, nan)
    """
    try:
        return float(value) if _is_scalar(value) else math.nan
    except (TypeError, ValueError, OverflowError):
        return math.nan


def number(
    name: str,
    value: Any,
    right: Callable[[float], bool] = lambda _: True,
    rule: str = "be a number",
    remedy: str = "",
    *,
    of_many: bool = False,
) -> float:
    """Return `value` as a Python float if it is `right`, else reject it by name and state the `rule`.

    One `of_many` is not quoted: they may be the values of a column, given by mistake.

    Every number of a setting is converted here or by `integer`: a NumPy scalar of half or single precision would make
    every formula that it enters one of that precision, and a certificate too small.

    >>> import numpy as np
    >>> number("share", np.float16(0.5), lambda share: share <= 1.0, "be at most 1")
    0.5
    >>> number("share", 2, lambda share: share <= 1.0, "be at most 1", "Use 1 for all rounds.")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: share must be at most 1, got 2. Use 1 for all rounds.
    """
    converted = float_or_nan(value)
    if math.isnan(converted) or not right(converted):
        came = _what_came(value, of_many)
        if isinstance(value, str) and not of_many:
            came = f"{came}, a text and not a number"
        raise InvalidInput(f"{name} must {rule}, {came}. {remedy}".rstrip())
    return converted


def positive(name: str, value: Any, remedy: str = "", *, of_many: bool = False) -> float:
    """Return `value` as a Python float if it is positive and finite, else reject it by name.

    >>> positive("radius", 2)
    2.0
    """
    return number(name, value, lambda x: 0.0 < x < math.inf, "be positive and finite", remedy, of_many=of_many)


def not_negative(name: str, value: Any, remedy: str = "", *, of_many: bool = False) -> float:
    """Return `value` as a Python float if it is finite and not negative, else reject it by name.

    >>> not_negative("ridge", 0)
    0.0
    """
    return number(name, value, lambda x: 0.0 <= x < math.inf, "be 0 or more and finite", remedy, of_many=of_many)


def finite(name: str, value: Any, remedy: str = "", *, of_many: bool = False) -> float:
    """Return `value` as a Python float if it is finite, else reject it by name.

    >>> finite("offset", -1)
    -1.0
    """
    return number(name, value, math.isfinite, "be finite", remedy, of_many=of_many)


def between_0_and_1(name: str, value: Any, remedy: str = "") -> float:
    """Return `value` as a Python float if it lies strictly between 0 and 1, else reject it by name.

    >>> between_0_and_1("level", 0.5)
    0.5
    """
    return number(name, value, lambda x: 0.0 < x < 1.0, "lie strictly between 0 and 1", remedy)


def one_of(name: str, value: str, allowed: tuple[str, ...], also: str = "") -> str:
    """Return `value` if it is one of `allowed`, else reject it and list them; `also` says what else could be stated.

    >>> one_of("neighbours", "replace", ("replace", "zero-out"))
    'replace'
    >>> one_of("forget", "week", ("auto",), also="a number of rows")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: forget must be one of auto, or a number of rows; got 'week'.
    """
    if not isinstance(value, str) or value not in allowed:
        what = ", or ".join([", ".join(allowed), *([also] if also else [])])
        raise InvalidInput(f"{name} must be one of {what}; got {value_or_type(value)}.{did_you_mean(value, allowed)}")
    return value


def did_you_mean(value: Any, known: Iterable[str], least: float = 0.6) -> str:
    """A question after the end of an error, if what came is nearly the same as, or begins, something that is known.

    `least` is the smallest similarity, from 0 to 1.

    >>> did_you_mean("epsillon", ["epsilon", "delta"]), did_you_mean("Income", ["income"]), did_you_mean(3, ["three"])
    (' Did you mean epsilon?', ' Did you mean income?', '')
    """
    if not isinstance(value, str):
        return ""
    lower = {name.lower(): name for name in known}
    begun = [name for name in lower if len(value) > 2 and name.startswith(value.lower())]
    near = begun or difflib.get_close_matches(value.lower(), lower, 1, least)
    return f" Did you mean {lower[near[0]]}?" if near else ""


def needs_extra(what: str, extra: str, brings: str = "") -> str:
    """The error of a missing extra, which is installed from the checkout: no index has the package.

    >>> needs_extra("Spark", "spark", "pyspark, pyarrow")
    'Spark needs the extra `spark` (pyspark, pyarrow). In the checkout, run pip install -c constraints.txt ".[spark]".'
    """
    named = f"`{extra}` ({brings})" if brings else f"`{extra}`"
    return f'{what} needs the extra {named}. In the checkout, run pip install -c constraints.txt ".[{extra}]".'


def integer(name: str, value: Any, least: int = 1, *, of_many: bool = False) -> int:
    """Return `value` as an int if it is an integer of at least `least`, else reject it by name.

    >>> integer("horizon", 1e5)
    100000
    """
    try:
        converted = int(value) if _is_scalar(value) else least - 1
    except (TypeError, ValueError, OverflowError):
        converted = least - 1
    if converted < least or converted != value:
        raise InvalidInput(f"{name} must be an integer, {least} or more, {_what_came(value, of_many)}.")
    return converted


def horizon_of(value: Any, name: str = "horizon") -> int:
    """Return a horizon, or another number of rounds, as an int: at most 2^53, up to which floating point is exact.

    >>> horizon_of(5e3)
    5000
    >>> horizon_of(1e300)
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: horizon must be at most 2^53 (9.01e+15), since rounds are counted exactly only up to
    there; got 1e+300. Take a smaller one.
    """
    converted = integer(name, value)
    if converted > 2**53:
        came = f"{converted:.3g}" if converted < 2**1000 else value_or_type(converted)
        raise InvalidInput(
            f"{name} must be at most 2^53 (9.01e+15), since rounds are counted exactly only up to there; got {came}. "
            "Take a smaller one."
        )
    return converted


def _is_scalar(value: Any) -> bool:
    """Whether it is one real number; of NumPy's, a real scalar: an array of one entry is not a number."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return not isinstance(value, str | bytes) and getattr(value, "ndim", 0) == 0 and kind in "biuf"


def expect(name: str, value: Any, right: bool, example: str, *, of_many: bool = False) -> None:
    """Reject a setting of the wrong type, and show one of the right type.

    >>> expect("privacy", 1.0, False, "Privacy(epsilon=1.0, delta=1e-6)")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: privacy cannot be 1.0. Give it as in Privacy(epsilon=1.0, delta=1e-6).
    """
    if not right:
        came = f"of type {type(value).__name__}" if of_many else value_or_type(value)
        raise InvalidInput(f"{name} cannot be {came}. Give it as in {example}.")
