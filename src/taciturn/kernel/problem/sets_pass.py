"""Points of a set nearest to many rows."""

from __future__ import annotations

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.codes import set_code
from taciturn.kernel.problem.sets import ConvexSet


def project_batch(domain: ConvexSet, rows: Array) -> Array:
    """The nearest point of the set to each row."""
    if (code := set_code(domain)) is not None:
        from taciturn.kernel.problem import sets_loops as sets

        return np.asarray(sets.project_batch(*code, rows))
    return np.array([domain.project(row) for row in rows]).reshape(rows.shape)
