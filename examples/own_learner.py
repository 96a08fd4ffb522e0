"""Adding a learner of your own: the difference of two classes' means, private by construction, and checked.

Run it: python examples/own_learner.py
"""

from dataclasses import dataclass

import numpy as np

from taciturn import BLT, L2Ball, Linear, Privacy, Private, Problem, Vector, every
from taciturn.checks import check_learner
from taciturn.datasets import ad_impressions


@dataclass(frozen=True)
class MeanDifference:
    """`Proj(Σ y·v / t)`: a classifier that needs no steps."""

    problem: Problem

    @property
    def form(self):  # longer contributions are clipped, so that one row moves the sum by at most twice the bound
        return Vector(self.problem.size, bound=self.problem.norm_bound)

    def contribution(self, row, label, released):  # of one row: exact and secret
        return label * row

    def decide(self, t, noisy, noise_sd):  # sees noisy sums only
        return self.problem.domain.project(noisy / t)


problem = Problem(Linear(), L2Ball(1.0), dimension=15, label_bound=1.0)
print(check_learner(MeanDifference(problem)))

stream = ad_impressions(50_000)
private = Private(MeanDifference(problem), BLT(), every(1_000), Privacy(1.0, 1e-6), horizon=50_000)
_, releases = private.run(private.start(), stream.X, stream.y)
print(f"accuracy {np.mean(np.sign(problem.predict(releases[-1].point, stream.X)) == stream.y):.1%} (not private)")
print(private.guarantee)
