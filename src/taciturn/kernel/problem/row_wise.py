"""The one property for which encoders of rows are trusted: each row is encoded by itself.

A certificate bounds what one row adds to a statistic. It says nothing of a row that changes how *other* rows are
encoded, or whether they count: two streams that differ in one row would then differ in many. So everything between a
raw row and the clipping has to be a function of that row and of public settings, to the bit: readers, kinds of columns,
rows of dicts and tables, maps of features. All of them carry one marker, `RowWise`, and `taciturn.checks.check_reader`
and `check_map` test what it claims: permute, drop, replace and spoil the other rows, lay them in memory in another way,
cut them into other blocks; neither the encoding of a row nor whether it is bad may change.

What breaks it is seldom meant: a mean over a block, a type that an array takes because of one entry in it, a fast path
that is left because of one row and differs from the definition, and sums and products that are rounded by the shape of
a block, or by how it lies in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class RowWise:
    """An encoding of rows in which that of a row depends on that row and on public settings alone, to the bit.

    A marker: classes that encode rows derive from it, and state thereby that they have the property. `FeatureMap` does.

    >>> from taciturn import Chain
    >>> issubclass(Chain, RowWise)
    True
    """

    __slots__ = ()


def row_wise(function: Function) -> Function:
    """The same marker for a function, which takes several rows and encodes each by itself.

    >>> from taciturn.kernel.problem.clipping import clip_rows
    >>> clip_rows.row_wise
    True
    """
    function.row_wise = True  # type: ignore[attr-defined]
    return function
