"""All actions of one decision in order: the chosen one first, then the others by their expected rewards.

What is chosen has the distribution of the `Choice`. A ranking adds the probability of each action, as far as it is
known: of `UCB` 1 and 0, of `EpsilonGreedy` exactly, and of `Thompson` that of the chosen action. It is an estimate by
sampling where actions share a model (`Thompson`), and a quadrature where each has its own (`best_probability`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from taciturn.bandits.choices import UCB, Choice, EpsilonGreedy, Generator, LinearModel, Thompson
from taciturn.bandits.choices_loops import rank_arms
from taciturn.kernel.arrays import Array, Integers

_QUANTILES = ndtri((np.arange(64) + 0.5) / 64.0)
_BELOW = ndtr(np.linspace(-8.0, 8.0, 4097))


class Ranking(NamedTuple):
    """The numbers of the actions, the chosen one first, and the probability with which each was to be chosen."""

    order: list[int]
    probabilities: list[float | None]


def generator(seed: int | Sequence[int] | None = None) -> Generator:
    """A source of random choices, which protect no one; repeatable with a seed.

    >>> int(generator(1).integers(10))
    4
    """
    return np.random.default_rng(seed)


def ranked(choice: Choice, model: LinearModel, X: Array, rng: Generator) -> Ranking:
    """Rank the actions of one decision; contexts are clipped, of shape (actions, d), or (1, d) if each has a model.

    Models of actions are compared in one compiled call. Slow twin: `ranked_by_definition`.

    >>> model = LinearModel(np.array([[0.1], [0.3], [0.2]]), np.ones((3, 1, 1)))
    >>> ranked(UCB(0.3), model, np.ones((1, 1)), generator(1))
    Ranking(order=[1, 2, 0], probabilities=[1.0, 0.0, 0.0])
    >>> ranked(EpsilonGreedy(0.25), model, np.ones((1, 1)), generator(1)).order[0]
    1
    """
    n = len(model.theta)
    if n == 1 or not isinstance(choice, Thompson | UCB):
        return ranked_by_definition(choice, model, X, rng)
    order = np.empty(n, dtype=np.int64)
    if isinstance(choice, Thompson):
        normals = rng.standard_normal(n)
        probability = rank_arms(X[0], model.theta, model.packed, choice.width, normals, _QUANTILES, _BELOW, order)
        return Ranking(order.tolist(), [probability, *[None] * (n - 1)])
    rank_arms(X[0], model.theta, model.packed, choice.width_of(model), np.ones(n), _QUANTILES[:0], _BELOW, order)
    return Ranking(order.tolist(), [1.0, *[0.0] * (n - 1)])


def ranked_by_definition(choice: Choice, model: LinearModel, X: Array, rng: Generator) -> Ranking:
    """The same by array operations."""
    own = len(model.theta) > 1
    means = model.theta @ X[0] if own else X @ model.theta[0]
    n = len(means)
    probabilities: list[float | None] = [None] * n
    if isinstance(choice, EpsilonGreedy):
        best = int(means.argmax())
        first = int(rng.integers(n)) if rng.random() < choice.explore else best
        probabilities = [choice.explore / n] * n
        probabilities[best] = choice.explore / n + (1.0 - choice.explore)
    elif own:
        z = model.transposed @ X[0]
        widths = np.sqrt((z * z).sum(axis=1))
        if isinstance(choice, Thompson):
            spread = choice.width * widths
            first = int((means + spread * rng.standard_normal(n)).argmax())
            probabilities[first] = best_probability(means, spread, first)
        else:
            first = int((means + choice.width_of(model) * widths).argmax())  # type: ignore[attr-defined]
    else:
        chosen = choice.choose(model, X[None], rng)
        first = int(chosen.actions[0])
        probabilities[first] = float(chosen.propensities[0])
    if isinstance(choice, UCB):
        probabilities = [0.0] * n
        probabilities[first] = 1.0
    order = (-means).argsort(kind="stable").tolist()
    order.remove(first)
    order.insert(0, first)
    return Ranking(order, [probabilities[each] for each in order])


def best_probability(means: Array, spread: Array, which: int) -> float:
    """The probability that this one of independent normal variables is the largest, within 1/128, and at least that.

    It is the mean of `prod over others P(other < s)` over s, for which 64 quantiles of s stand. The product rises with
    s, from 0 to 1 at most, so that the midpoint rule on 64 cells is off by at most half of 1/64. A result below that
    bound is raised to it, which is within 1/128 as well: a choice that was made had a positive probability, and
    estimates that divide by it have a weight of 128 at most. Compiled code interpolates the distribution function from
    a table, which changes it by less than 1e-6 for each other variable.

    >>> round(best_probability(np.array([0.0, 0.0]), np.array([1.0, 2.0]), 0), 3)
    0.5
    >>> best_probability(np.array([0.0, 9.0]), np.array([1.0, 1.0]), 0)
    0.0078125
    """
    spread = np.maximum(spread, 1e-12)
    scores = means[which] + spread[which] * _QUANTILES
    below = ndtr((scores - means[:, None]) / spread[:, None])
    below[which] = 1.0
    return max(float(below.prod(axis=0).mean()), 0.5 / len(_QUANTILES))


def among(model: LinearModel, actions: Integers) -> LinearModel:
    """The models of some of the actions, if each has its own; what was computed of them is not computed again.

    >>> model = LinearModel(np.array([[0.1], [0.3], [0.2]]), np.ones((3, 1, 1)))
    >>> among(model, np.array([0, 2])).theta.ravel()
    array([0.1, 0.2])
    """
    settings = model.noise_sd, model.k, model.weight, model.ridge, model.shift
    made = LinearModel(model.theta[actions], model.V[actions], *settings)
    for name in ("factors", "transposed", "packed", "longest"):
        made.__dict__[name] = np.ascontiguousarray(getattr(model, name)[actions])
    return made
