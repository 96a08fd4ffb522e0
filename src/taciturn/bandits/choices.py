"""How an arm is chosen: a function of released models, of the asker's own contexts, and of public randomness.

What is chosen is shown to the visitor whose contexts they are, and is post-processing of releases for everyone else:
it costs no privacy. Neither does the randomness of Thompson sampling and of epsilon-greedy play, which protects no one.

**Propensities.** A choice says with which probability the arm was chosen, given the contexts and the models, which
off-policy evaluation needs: 1 for `UCB`, exactly `explore/K`, or that and `1 - explore`, for `EpsilonGreedy`, and
an estimate by sampling for `Thompson`, whose docstring says how good it is. A propensity depends on a visitor's
contexts: it is as secret as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from taciturn.errors import InvalidInput, between_0_and_1, integer, not_negative, value_or_type
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.problem.svec import unpacked

WIDTH = 0.3
"""The measured width of confidence bounds; a heuristic, which no theorem covers."""

_IN_CACHE = 2**17  # entries of contexts that are multiplied at once

Generator = np.random.Generator


class LinearModel:
    """Released linear models of rewards: theta and V of each arm, or of all arms together, and the noise in them.

    Parameters
    ----------
    theta : ndarray of shape (models, d)
        One row for each arm, or one that all arms share.
    V : ndarray of shape (models, d, d)
        Positive definite.
    noise_sd : float
        Standard deviation of the noise in the sums that V and theta were decided from; public.
    k : int
        Number of the release, from 1 on; 0 before the first.
    weight, ridge, shift : float
        Of the learner.

    Examples
    --------
    >>> model = LinearModel(np.array([[1.0, 0.0]]), np.eye(2)[None])
    >>> model.means(np.array([[[0.5, 0.5], [0.0, 1.0]]])), model.widths(np.array([[[0.6, 0.8], [0.0, 0.5]]]))
    (array([[0.5, 0. ]]), array([[1. , 0.5]]))
    """

    def __init__(
        self,
        theta: Array,
        V: Array,
        noise_sd: float = 0.0,
        k: int = 0,
        weight: float = 1.0,
        ridge: float = 1.0,
        shift: float = 2.0,
    ) -> None:
        self.theta = np.ascontiguousarray(theta, dtype=np.float64)
        self.V = np.asarray(V, dtype=np.float64)
        self.noise_sd = noise_sd
        self.k = k
        self.weight = weight
        self.ridge = ridge
        self.shift = shift

    @classmethod
    def of(cls, learner: Any, point: Array, noise_sd: float = 0.0, k: int = 0) -> LinearModel:
        """The models of a released point of a `LinearBandit`; of any other learner its weights, with V = I.

        Widths are then norms of contexts, which say nothing of what is known: use `EpsilonGreedy`.
        """
        d = learner.problem.width
        if not isinstance(learner, LinearBandit):
            return cls(point[None, :], np.eye(d)[None], noise_sd, k)
        blocks = point.reshape(learner.arms, -1)
        V = np.stack([unpacked(block[:-d], d) for block in blocks])
        return cls(blocks[:, -d:], V, noise_sd, k, learner.weight, learner.ridge, learner.shift)

    @property
    def dimension(self) -> int:
        """Entries of a context, with the intercept."""
        return int(self.theta.shape[1])

    @cached_property
    def covariance(self) -> Array:
        """`V⁻¹ + q·s²·V⁻²` of each model, `q = 1/w² + ½ + 2·shift²`: about that of the error of theta.

        That error is `V⁻¹(e + n/w - (N + h·I)·theta*)`, e the sum of contexts times noise of rewards, n and N the noise
        of the sums, `h = shift·s·sqrt(2d)`. The covariance of e is V at most, that of n is `s²·I`, that of `N·theta*`
        about `½s²·I` for theta* of norm 1, and that of `h·theta*` is `2·shift²·s²·I`, if theta* has any direction.
        Without noise it is V⁻¹. What was never played has about the width of what is believed before any data.
        """
        inverse = np.linalg.inv(self.V)
        q = 1.0 / self.weight**2 + 0.5 + 2.0 * self.shift**2
        return np.asarray(inverse + q * self.noise_sd**2 * inverse @ inverse)

    @cached_property
    def factors(self) -> Array:
        """F of each model, lower triangular, `F Fᵀ` its covariance, so that a width is `‖Fᵀx‖`."""
        return np.asarray(np.linalg.cholesky(self.covariance))

    @cached_property
    def transposed(self) -> Array:
        """`Fᵀ` of each model, whose rows compiled loops read."""
        return np.ascontiguousarray(np.swapaxes(self.factors, -1, -2))

    @cached_property
    def packed(self) -> Array:
        """The rows of `Fᵀ` from their diagonals on, one after the other, in single precision, for single decisions.

        Of many models, this is what one decision reads of memory.
        """
        rows, columns = np.triu_indices(self.dimension)
        return np.ascontiguousarray(self.transposed[:, rows, columns], dtype=np.float32)

    @cached_property
    def longest(self) -> Array:
        """The largest `‖Fᵀx‖` over contexts of length 1, rounded up, for each model."""
        return np.asarray(np.linalg.norm(self.factors, ord=2, axis=(-2, -1)) * (1.0 + 1e-9))

    @cached_property
    def least(self) -> float:
        """The least eigenvalue of V over all models."""
        return float(np.min(np.linalg.eigvalsh(self.V)))

    def means(self, X: Array) -> Array:
        """`x·theta` of each arm, in rows for each decision; contexts are of shape (n, arms, d), or (n, 1, d)."""
        if len(self.theta) > 1:
            return np.asarray(np.einsum("nad,ad->na", np.broadcast_to(X, (len(X), *self.theta.shape)), self.theta))
        return np.asarray(X @ self.theta[0])

    def widths(self, X: Array) -> Array:
        """The standard deviation of `x·theta` by the covariance, of each arm, in rows for each decision."""
        if len(self.theta) > 1:
            X = np.broadcast_to(X, (len(X), *self.theta.shape))
            return np.asarray(np.linalg.norm(np.einsum("nad,adj->naj", X, self.factors), axis=-1))
        return np.asarray(np.linalg.norm(X @ self.factors[0], axis=-1))


class Chosen(NamedTuple):
    """The numbers of the chosen arms, from 0 on, and their propensities."""

    actions: Integers
    propensities: Array


class Choice(Protocol):
    """A rule by which arms are chosen."""

    def choose(self, model: LinearModel, X: Array, rng: Generator) -> Chosen:
        """An arm for each decision; contexts are clipped, of shape (n, arms, d), or (n, 1, d) for models of arms."""
        ...


@dataclass(frozen=True)
class UCB:
    """The arm with the largest upper confidence bound, `x·theta + width·sqrt(xᵀCx)`: optimism, without randomness.

    C is the covariance of the model (`LinearModel.covariance`), V⁻¹ and what the noise adds to it.

    **Width.** The default was chosen on simulated environments: it is a heuristic. `width="theorem"` is wide enough for
    a proof: with probability `1 - failure`, for all releases at once, `|x·(theta - theta*)|` is at most the width times
    `sqrt(xᵀV⁻¹x)`, and so times `sqrt(xᵀCx)`, which is no less, if the mean of a centred reward is `x·theta*`,
    `‖theta*‖ ≤ 1`, x the clipped context, every decision has its reward, and the learner does not forget. The theorem's
    width is ten to a hundred times as large, so that play explores for longer than most streams last.

    *Proof.* Let G, u* be the exact sums of release k, N and n their noise, of standard deviation s in each entry of
    svec(N) and of n, so that û/w = u* + n/w, and `e = u* - G·theta*` the sum of contexts times noise of rewards. Then

        theta - theta* = V⁻¹(û/w - V·theta*) = V⁻¹(e + n/w - (V - G)·theta*),

    so that `|x·(theta - theta*)|` is at most `sqrt(xᵀV⁻¹x)` times the sum of the lengths `sqrt(zᵀV⁻¹z)` of the three.
    With l the least eigenvalue of V the last two are at most `‖n‖/(w·sqrt(l))` and `‖V - G‖/sqrt(l)`. A Gaussian vector
    of d entries is longer than `s(sqrt(d) + a)`, and N, whose entries off the diagonal have variance s²/2, has an
    eigenvalue beyond `±s(sqrt(2d) + a)`, with probability at most `exp(-a²/2)` for each sign: means are at most
    `s·sqrt(d)` and `s·sqrt(2d)` (Gordon), and both are functions of Lipschitz constant 1 of entries of standard
    deviation s. So `‖N‖ ≤ b = s(sqrt(2d) + a)`. V is shifted by h, the learner's `shift·s·sqrt(2d)`, and flooring at
    `q = s·sqrt(2d)/4` moves eigenvalues by at most `max(0, q + b - h)`, so that `‖V - G‖ ≤ b + h + ridge + max(0, q + b
    - h)`. For e, with f = ridge: `G + f·I ⪯ V + max(0, b - h)·I`, since V is `G + N + (h + ridge)·I` or larger, and
    that is at most c·V with `c = 1 + max(0, b - h)/l`. By the self-normalised bound (Abbasi-Yadkori, Pál, Szepesvári,
    *Improved Algorithms for Linear Stochastic Bandits*, 2011, Theorem 1) for rewards in [-1, 1], which holds at all
    rounds at once, `eᵀ(G + f·I)⁻¹e ≤ 2·ln(1/p) + ln det((G + f·I)/f)`, so that `eᵀV⁻¹e` is at most c times that, with
    `V + max(0, b - h)·I` in the place of `G + f·I`. With m models, `p = failure/(2m)` and `exp(-a²/2) =
    failure/(6·k(k+1)·m)` for the three events of release k, the failures add up to less than `failure`. ∎

    Parameters
    ----------
    width : float or "theorem"
        Larger ones explore more.
    failure : float
        The probability with which the theorem's bounds may fail.

    Examples
    --------
    >>> model = LinearModel(np.array([[0.1, 0.0]]), np.diag([100.0, 1.0])[None])
    >>> UCB(0.3).choose(model, np.array([[[1.0, 0.0], [0.0, 1.0]]]), None)
    Chosen(actions=array([1]), propensities=array([1.]))
    """

    width: float | Literal["theorem"] = WIDTH
    failure: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.width, str):
            object.__setattr__(self, "width", not_negative("width", self.width))
        elif self.width != "theorem":
            raise InvalidInput(f'width is a number or "theorem", got {value_or_type(self.width)}.')
        object.__setattr__(self, "failure", between_0_and_1("failure", self.failure))

    def choose(self, model: LinearModel, X: Array, rng: Generator | None = None) -> Chosen:
        """The arm with the largest bound for each decision; one compiled loop."""
        from taciturn.bandits import choices_loops as choices

        actions = np.empty(len(X), dtype=np.int64)
        X = np.ascontiguousarray(X, dtype=np.float64)
        choices.best_bounds(X, model.theta, model.transposed, self.width_of(model), model.longest, actions)
        return Chosen(actions, np.ones(len(X)))

    def choose_by_definition(self, model: LinearModel, X: Array) -> Chosen:
        """The same by array operations."""
        bounds = model.means(X) + self.width_of(model) * model.widths(X)
        return Chosen(np.argmax(bounds, axis=1), np.ones(len(X)))

    def width_of(self, model: LinearModel) -> float:
        """The number that widths are multiplied by: as stated, or the theorem's for this release.

        >>> model = LinearModel(np.zeros((1, 2)), 1e4 * np.eye(2)[None], noise_sd=10.0, k=50)
        >>> round(UCB("theorem").width_of(model), 2)
        7.6
        """
        if not isinstance(self.width, str):
            return self.width
        d, s, models = model.dimension, model.noise_sd, len(model.theta)
        k = max(model.k, 1)
        a = math.sqrt(2.0 * math.log(6.0 * k * (k + 1) * models / self.failure))
        b, q = s * (math.sqrt(2.0 * d) + a), s * math.sqrt(2.0 * d) / 4.0
        h = model.shift * s * math.sqrt(2.0 * d)
        bias = b + h + model.ridge + max(0.0, q + b - h)
        noise = s / model.weight * (math.sqrt(d) + a)
        more = max(0.0, b - h)
        logs = np.linalg.slogdet(model.V + more * np.eye(d))[1] - d * math.log(model.ridge)
        self_normalised = 2.0 * math.log(2.0 * models / self.failure) + float(np.max(logs))
        return math.sqrt((1.0 + more / model.least) * self_normalised) + (bias + noise) / math.sqrt(model.least)


@dataclass(frozen=True)
class Thompson:
    """The best arm of a random model: `theta + width·F z`, standard normal z, `F Fᵀ` the covariance.

    **Propensities** are estimated by sampling: of `samples` further random models, drawn once for a call and
    independent of the choices, an arm is best in a number m, and its propensity is `(m + 1)/(samples + 1)`. It is never
    0, its standard deviation is at most `1/(2·sqrt(samples))`, and its mean is too large by at most `1/(samples + 1)`.
    The default gives a standard deviation of .05 at most. With `samples=0` there are none, and NaN takes their place.

    Parameters
    ----------
    width : float
        Larger ones explore more.
    samples : int
        How many models propensities are counted in.

    Examples
    --------
    >>> model = LinearModel(np.array([[0.1, 0.0]]), np.diag([100.0, 1.0])[None])
    >>> chosen = Thompson(0.3).choose(model, np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.random.default_rng(1))
    >>> chosen.actions, chosen.propensities.round(2)
    (array([1]), array([0.33]))
    """

    width: float = WIDTH
    samples: int = 100

    def __post_init__(self) -> None:
        width: Any = self.width
        if isinstance(width, str):
            raise InvalidInput(
                "width of Thompson sampling is a number, got text: the width of a theorem is one of UCB. State a "
                f"number, such as {WIDTH}."
            )
        object.__setattr__(self, "width", not_negative("width", width))
        object.__setattr__(self, "samples", integer("samples", self.samples, least=0))

    def choose(self, model: LinearModel, X: Array, rng: Generator) -> Chosen:
        """A random model for each decision, or the models of its arms."""
        models, d = model.theta.shape
        several = self._drawn(model, rng, self.samples)
        step = max(1, _IN_CACHE // (max(d, self.samples) * max(X.shape[1], models)))
        actions, propensities = np.empty(len(X), dtype=np.int64), np.full(len(X), np.nan)
        for start in range(0, len(X), step):
            here = X[start : start + step]
            if models > 1:
                own = model.means(here) + self.width * model.widths(here) * rng.standard_normal((len(here), models))
            else:
                own = np.einsum("nad,nd->na", here, self._drawn(model, rng, len(here))[:, 0])
            best = np.argmax(own, axis=1)
            actions[start : start + step] = best
            if self.samples:
                scores = np.einsum("nd,cmd->nmc", here[:, 0], several) if models > 1 else here @ several[:, 0].T
                wins = np.sum(np.argmax(scores, axis=1) == best[:, None], axis=1)
                propensities[start : start + step] = (wins + 1.0) / (self.samples + 1.0)
        return Chosen(actions, propensities)

    def _drawn(self, model: LinearModel, rng: Generator, count: int) -> Array:
        """Random models, of shape (count, models, d)."""
        z = rng.standard_normal((count, *model.theta.shape))
        return np.asarray(model.theta + self.width * np.einsum("mij,cmj->cmi", model.factors, z))


@dataclass(frozen=True)
class EpsilonGreedy:
    """The best arm by `x·theta`, and with probability `explore` any arm.

    Parameters
    ----------
    explore : float
        The probability with which an arm is drawn uniformly; 0 plays the best arm always.

    Examples
    --------
    >>> model = LinearModel(np.array([[0.1, 0.0]]), np.eye(2)[None])
    >>> EpsilonGreedy(0.0).choose(model, np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.random.default_rng(1))
    Chosen(actions=array([0]), propensities=array([1.]))
    """

    explore: float = 0.05

    def __post_init__(self) -> None:
        explore = not_negative("explore", self.explore)
        object.__setattr__(self, "explore", explore if explore in (0.0, 1.0) else between_0_and_1("explore", explore))

    def choose(self, model: LinearModel, X: Array, rng: Generator) -> Chosen:
        """The best arm of each decision, or with probability `explore` any arm."""
        means = model.means(X)
        n, arms = means.shape
        best = np.argmax(means, axis=1)
        actions = np.where(rng.random(n) < self.explore, rng.integers(0, arms, n), best)
        return Chosen(actions, self.explore / arms + (1.0 - self.explore) * (actions == best))
