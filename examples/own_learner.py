"""Adding a learner of your own: the difference of two classes' means, private and checked.

Run it: python examples/own_learner.py
"""

from dataclasses import dataclass

import numpy as np

from taciturn import BLT, Certificate, L2Ball, Learner, Linear, Privacy, Private, Problem, every
from taciturn.checks import check_learner
from taciturn.datasets import ad_impressions

GRID = 2.0**-20  # entries are rounded to multiples of it, so that their sums are exact


@dataclass(frozen=True)
class MeanDifference(Learner):
    """`Proj(Σ y·v / t)`: a classifier that needs no steps.

    **Certificate.** An example adds y·v, rounded entry by entry to GRID: a vector of norm at most R, moved by
    at most `sqrt(d)·GRID/2`. Replacing it moves the sum by `2R + sqrt(d)·GRID`, zeroing it out by half of that. ∎
    """

    problem: Problem

    @property
    def statistic_size(self):
        return self.problem.size

    @property
    def certificate(self):
        p = self.problem
        longest = (p.norm_bound + p.size**0.5 * GRID / 2) * (1.0 + 1e-12)
        moved = longest if p.neighbours == "zero-out" else 2.0 * longest
        why, lemma = "one example moves its own sum", "triangle inequality"
        return Certificate("l2", "entry", f"{moved:.5g}", lambda t: np.full_like(t, moved), longest, why, lemma)

    def start(self):
        return {"sum": np.zeros(self.statistic_size)}

    def absorb(self, exact, t, X, y, point):  # exact and secret
        return {"sum": exact["sum"] + (np.rint(X * y[:, None] / GRID) * GRID).sum(axis=0)}

    def statistic(self, exact, t):  # the sum since the last release, and a new state
        return self.start(), exact["sum"]

    def decide(self, t, noisy, noise_sd):  # sees noisy sums only
        return self.problem.domain.project(noisy / t)


problem = Problem(Linear(), L2Ball(1.0), dimension=15, label_bound=1.0)
print(check_learner(MeanDifference(problem)))  # searches for neighbours that violate the certificate

stream = ad_impressions(50_000)
private = Private(MeanDifference(problem), BLT(), every(1_000), Privacy(1.0, 1e-6), horizon=50_000)
_, releases = private.run(private.start(), stream.X, stream.y)
print(f"accuracy {np.mean(np.sign(problem.predict(releases[-1].point, stream.X)) == stream.y):.1%} (not private)")
print(private.guarantee)
