"""Rows clipped in one compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.problem import codes
from taciturn.kernel.problem.clipping import longest_row
from taciturn.kernel.problem.inputs import CompressedRows
from taciturn.kernel.problem.problem import Problem


def clip_for(problem: Problem) -> Clip | None:
    """Compiled clipping, for problems of exactly this class.

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> V, y = clip_for(Problem(Logistic(), L2Ball(1.0), dimension=2)).dense(np.array([[3.0, 4.0]]), np.ones(1))
    >>> V.round(6)
    array([[0.6, 0.8]])
    """
    return Clip(problem) if type(problem) is Problem else None


@dataclass(frozen=True)
class Clip:
    """Rows clipped in one compiled loop. Slow twin: `Problem.clip_block`."""

    problem: Problem

    def dense(self, X: Array, y: Array, first: int = 0, out: Array | None = None) -> tuple[Array, Array]:
        """Clipped rows, in the memory of `out` if that is given, and labels; `first` is the first row's number."""
        from taciturn.kernel.problem import clipping_loops as clipping

        self._check_shape(X.shape, len(y))
        V = np.empty((len(y), self.problem.width)) if out is None else out[: len(y)]
        Z = self.problem.mapped(X)  # bad rows are NaN, which the loop finds
        if not (Z.dtype == np.float64 and Z.flags.c_contiguous and Z.flags.aligned):
            Z = np.require(Z, np.float32 if Z.dtype == np.float32 else np.float64, ["C", "A"])  # as the loop reads it
        labels, bad = clipping.clip(Z, y, *self.bounds, V)
        if bad >= 0 and self.problem.on_bad == "raise":
            self.problem.reject_row(bad, X, y, first)
        return V, labels

    def sparse(self, X: CompressedRows, y: Array, first: int = 0) -> tuple[CompressedRows, Array]:
        """The same for rows that stay compressed; the columns of a row are all different afterwards.

        For problems without a map, whose rows would not stay sparse.
        """
        from taciturn.kernel.problem import clipping_loops as clipping

        self._check_shape(X.shape, len(y))
        assert self.problem.features is None
        width = self.problem.width
        starts, columns, entries, labels, bad = clipping.clip_compressed(*X.numbers(), width, y, *self.bounds)
        if bad >= 0 and self.problem.on_bad == "raise":
            one = slice(bad, bad + 1)
            self.problem.reject_row(0, X[one].dense(), y[one], first + bad)
        return CompressedRows(starts, columns, entries, width), labels

    def _check_shape(self, shape: tuple[int, ...], rows: int) -> None:
        if shape != (rows, self.problem.dimension):
            self.problem.check_shape(shape, rows)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The bounds, and 1 if a bad row is rejected, 0 if it is learnt without influence: for `clipping.clip_one`."""
        return *self.bounds, float(self.problem.on_bad == "raise")

    @cached_property
    def bounds(self) -> tuple[float, float, int, float, float]:
        """The longest features, the intercept, the kind of labels, their bound or the number of classes.

        And the label of a row whose own is bad; NaN if such a row has no influence.
        """
        p = self.problem
        kind = {"real": codes.REAL, "sign": codes.SIGN, "class": codes.CLASS, "none": codes.NONE}[p.loss.labels]
        assert p.label_bound is not None
        most = float(p.outputs) if kind == codes.CLASS else p.label_bound
        missing = math.nan if p.missing_label is None else p.missing_label
        return longest_row(p.feature_bound, p.mapped_dimension), p.intercept, kind, most, missing
