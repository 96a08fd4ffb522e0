"""Exact values that cannot be read by accident.

A `Secret` has no contents to print, compare, iterate, convert, copy or pickle; its one attribute is taken out of the
class, so that no name leads to it. `opened` is the one way in, and `tests/kernel/test_secret.py` lists who calls it.
What is opened on purpose goes through one of two doors: bytes (`to_bytes` of states, layers, sums and admissions, which
their callers encrypt or guard) and `taciturn.kernel.replay`, which is NOT PRIVATE.

**What this is not.** A debugger, `gc`, or code that calls `opened` reads every secret of its process: this is a wall
against mistakes, not against code that wants to get in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, SupportsIndex, TypeVar

T = TypeVar("T")


class Secret(Generic[T]):
    """An exact value, as it lies outside of the kernel: it is passed on, and not read.

    >>> balance = Secret([1.0, 2.0])
    >>> balance, f"{balance}"
    (Secret(not shown), 'Secret(not shown)')
    >>> balance == Secret([1.0, 2.0]), hasattr(balance, "__dict__")
    (False, False)
    >>> float(balance)
    Traceback (most recent call last):
    ...
    TypeError: float() argument must be a string or a real number, not 'Secret'
    >>> import pickle
    >>> pickle.dumps(balance)
    Traceback (most recent call last):
    ...
    TypeError: an exact value is not copied or pickled. Store its state, by to_bytes() or dump().
    """

    __slots__ = ("_held",)
    __array_ufunc__ = None  # arithmetic with arrays is an error, and not an array of objects

    def __init__(self, held: T) -> None:
        _write(self, held)

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("a Secret has no subclasses, which could show what it holds.")

    def __repr__(self) -> str:
        return "Secret(not shown)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("an exact value is not copied or pickled. Store its state, by to_bytes() or dump().")


_slot: Any = Secret.__dict__["_held"]
_write, _read = _slot.__set__, _slot.__get__
del Secret._held  # type: ignore[attr-defined]


if TYPE_CHECKING:

    def opened(secret: Secret[T]) -> T:
        """The exact value itself: for the kernel alone."""

else:
    opened = _read  # a call from C: it is on the way of every row
