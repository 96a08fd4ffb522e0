"""Algorithm 4 of the paper with its inverse as printed, to measure what the repairs of `taciturn.QFTL` are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn import QFTL, Unprovable
from taciturn._util.arrays import Array
from taciturn.problem.svec import unpacked


@dataclass(frozen=True)
class PrintedQFTL(QFTL):
    """`QFTL` with the point `(alpha·t·I + V)⁻¹u` of the paper, V and u the noisy sums: for study, never for use.

    The certificate is that of `QFTL`, and the point is post-processing, so privacy is what the calibration makes it.
    It is the point that is broken: V is indefinite while the noise outweighs the data, so an eigenvalue of
    `alpha·t·I + V` comes as near to 0 as it likes, and the expected regret is infinite. Points are released wherever
    they fall, the domain or not, as in the paper, which does not project.

    V is symmetric here: of the paper's noise on every entry of the matrix it has the symmetric part, all that a
    symmetric matrix can use.

    Parameters
    ----------
    problem, extra_ridge, weight
        As in `taciturn.QFTL`.
    allow_broken : bool
        Must be said, so that nobody takes this by accident.

    Examples
    --------
    >>> from taciturn import L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(0.5), dimension=1, label_bound=1.0, ridge=1.0)
    >>> learner = PrintedQFTL(problem, weight=1.0, allow_broken=True)
    >>> learner.decide(4, np.array([-3.9, 1.0]), noise_sd=5.0).round(6)  # the domain ends at 0.5
    array([10.])
    """

    allow_broken: bool = False

    def __post_init__(self) -> None:
        if not self.allow_broken:
            raise Unprovable(
                "PrintedQFTL inverts a noisy matrix as it is, and its expected regret is infinite. Use QFTL, or say "
                "allow_broken=True to study it."
            )
        super().__post_init__()

    def decide(self, t: int, noisy: Array, noise_sd: float) -> Array:
        """The printed inverse; nothing is floored, shifted or projected."""
        d, w = self.problem.size, self.w
        matrix = unpacked(noisy[:-d], d) + (self.problem.ridge * t + self.extra_ridge) * np.eye(d)
        return np.asarray(np.linalg.solve(matrix, noisy[-d:] / w), dtype=np.float64)
