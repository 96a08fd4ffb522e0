"""Sums of products of many rows, compiled: of QFTL, and of a bandit's played arms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.exact_sums import in_units, unit_of
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.learners.qftl import MOST_AT_ONCE, QFTL
from taciturn.kernel.problem import codes
from taciturn.kernel.problem.codes import set_code
from taciturn.kernel.problem.sets_pass import project_batch

_IN_CACHE = 1024  # examples converted to integers and multiplied in one block


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products in integers: exact, so in any order. Slow twin: `QFTL`."""

    learner: QFTL

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """One compiled loop; where releases are rare, products of matrices."""
        learner = self.learner
        if len(y) > min(8 * len(rounds), MOST_AT_ONCE):
            return self._by_blocks(exact, t, X, y, rounds)
        from taciturn.kernel.learners import qftl_loops as qftl

        rows, rest = (part.astype(np.int64) for part in qftl.sums(*learner.factors(X, y), t, rounds))
        rows[0] += exact["sum"]
        return {"sum": rest}, rows * learner.scale

    def _by_blocks(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Products of matrices between releases."""
        rows = np.empty((len(rounds), self.learner.statistic_size))
        start = 0
        total = exact["sum"]
        for k, end in enumerate(int(due) - t for due in rounds):
            rows[k] = (total + self._sum(X[start:end], y[start:end])) * self.learner.scale
            start = end
            total = self.learner.start()["sum"]
        return {"sum": total + self._sum(X[start:], y[start:])}, rows

    def _sum(self, X: Array, y: Array) -> Integers:
        """Integer products of all examples, added up in blocks that fit into a core's cache.

        Labels stand beside features, so that all products are those of one matrix, of which half is computed.
        """
        from scipy.linalg.blas import dsyrk  # here: it loads slowly, and few streams need it

        from taciturn.kernel.learners.qftl_loops import to_integers

        problem = self.learner.problem
        total = self.learner.start()["sum"]
        d = problem.width
        both = np.empty((min(len(y), _IN_CACHE), d + problem.outputs))
        for first in range(0, len(y), MOST_AT_ONCE):
            products = np.zeros((both.shape[1], both.shape[1]), order="F")
            for start in range(first, min(first + MOST_AT_ONCE, len(y)), _IN_CACHE):
                end = min(start + _IN_CACHE, first + MOST_AT_ONCE, len(y))
                to_integers(X[start:end], 1.0 / unit_of(problem.norm_bound), both)
                both[: end - start, d:] = in_units(self.learner.targets(y[start:end]), self.learner.label_bound)
                products = dsyrk(1.0, both[: end - start].T, beta=1.0, c=products, overwrite_c=True)
            total = total + products.ravel(order="F")[self._among_products].astype(np.int64)
        return total

    @cached_property
    def _among_products(self) -> Integers:
        """Where a statistic's entries stand among all products of features and labels, column after column."""
        problem = self.learner.problem
        rows, columns = self.learner.upper
        labels = problem.width + np.arange(problem.outputs)[:, None]
        width = problem.width + problem.outputs
        return np.concatenate([columns * width + rows, (labels * width + np.arange(problem.width)).ravel()])

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """Compiled, but for matrices that have no Cholesky factor, and other sets than balls and boxes."""
        from taciturn.kernel.learners import qftl_loops as qftl

        learner = self.learner
        p = self.learner.problem
        domain = set_code(p.domain)
        ridges = learner.total_ridge(t, noise_sd)
        pulled = noisy
        if learner.center is not None:
            pulled = np.array(noisy)
            pulled[:, -p.size :] += learner.w * np.asarray(learner.pull(noise_sd))[:, None] * np.array(learner.center)
        points, solved = qftl.points(pulled, p.width, learner.w, ridges, domain or (codes.WHOLE_SPACE, 0.0, 0.0))
        for k in np.flatnonzero(~solved):
            points[k] = learner.decide(float(t[k]), noisy[k], float(noise_sd[k]))
        return np.asarray(points) if domain else project_batch(p.domain, points)


@dataclass(frozen=True, eq=False)
class PlayedArms:
    """Sums of products in the block of the played arm, in integers. Slow twin: `LinearBandit`."""

    learner: LinearBandit

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Those of QFTL for one model; for more, products that are added to the block of their arm."""
        learner = self.learner
        arms, rewards = learner.played(y)
        if learner.arms == 1:
            return self._shared(exact, t, X, rewards, rounds)
        from taciturn.kernel.learners import linear_bandit_loops as linear_bandit

        total = exact["sum"].copy()
        rows = np.empty((len(rounds), learner.statistic_size), dtype=np.int64)
        for first in range(0, len(y), MOST_AT_ONCE):  # an upper bound on memory for integers
            part = slice(first, first + MOST_AT_ONCE)
            V, Y = learner.sums.factors(X[part], rewards[part])
            done = int(np.searchsorted(rounds, t + first, side="right"))
            linear_bandit.sums(total, V, Y[:, 0], arms[part], t + first, rounds[done:], rows[done:])
        return {"sum": total}, learner.scaled(rows)

    @cached_property
    def _shared(self) -> Products:
        return Products(self.learner.sums)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """All models of all releases at once."""
        return self.learner.decide_batch(noisy, np.broadcast_to(np.asarray(noise_sd), len(noisy)))
