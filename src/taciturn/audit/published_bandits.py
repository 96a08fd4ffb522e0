"""Two published scripts that call a bandit's sums private, re-implemented from their description, and refuted.

Both add up `(svec(x xᵀ), r x)` of the played arms, as `taciturn.LinearBandit` does, and both show a noisy sum after
every round. `reused_noise` draws one noise for all sums of an epoch, rounds 2ʲ to 2ʲ⁺¹ - 1, so that neighbouring sums
have the same: their difference is a visitor's row, without noise. `laplace_tree` adds Laplace noise of scale
`log2(T)/epsilon` to every entry of every node of a binary tree, as if a row moved a node by at most 1: it moves the sum
of the absolute values of its d(d+1)/2 + d entries by up to about `sqrt(2)·d`, and so much more is lost than is claimed.

`distinguish_samples` audits any mechanism from samples of its transcripts, by how often an event happens in two worlds.

NOT PRIVATE: audits read exact statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from taciturn.audit.interval import share_interval
from taciturn.audit.verdict import ERROR
from taciturn.checks.streams import generator
from taciturn.errors import between_0_and_1, integer, one_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.svec import packed

Sample = Callable[[int, int, int], Array]
"""Transcripts of a world, 0 or 1: so many of them, in rows, from a seed."""


@dataclass(frozen=True)
class EventFinding:
    """The result of an audit from samples: an epsilon that the mechanism does not keep, at the claimed delta.

    Attributes
    ----------
    claimed : Privacy
        The claim.
    epsilon : float
        A lower bound on the true epsilon at that delta, with the stated error.
    shares : tuple of float
        How often the event happened in the two worlds.
    trials : int
        In each world, for choosing the event and for counting it.

    Examples
    --------
    >>> EventFinding(Privacy(1.0, 1e-6), 3.2, (0.5, 0.01), 1000).verdict
    'refuted'
    """

    claimed: Privacy
    epsilon: float
    shares: tuple[float, float]
    trials: int

    @property
    def verdict(self) -> Literal["holds", "refuted"]:
        """Refuted if the bound exceeds the claim."""
        return "refuted" if self.epsilon > self.claimed.epsilon else "holds"


def distinguish_samples(
    sample: Sample, score: Callable[[Array], Array], claimed: Privacy, trials: int = 2_000, error: float = ERROR
) -> EventFinding:
    """Audit any mechanism by an event: that a score of the transcript is large.

    The threshold is chosen on half of the trials, to make `ln((P - delta)/Q)` large, and P and Q, the probabilities of
    the event in the two worlds, are bounded by Clopper and Pearson on the other half, with half of the error each. If
    the mechanism is (epsilon, delta)-differentially private, then `P ≤ exp(epsilon)·Q + delta`, so that an epsilon
    below `ln((P - delta)/Q)` is refuted.

    Parameters
    ----------
    sample : callable
        `sample(world, trials, seed)` gives transcripts of a world in rows.
    score : callable
        A number for each transcript, larger in world 0.
    claimed : Privacy
        The claim.
    trials : int
        Transcripts of each world.
    error : float
        The probability with which a true claim may be refuted.

    Examples
    --------
    >>> def laplace(world, trials, seed):
    ...     return generator(seed).laplace(1.0 - world, 1.0, (trials, 1))
    >>> distinguish_samples(laplace, lambda rows: rows[:, 0], Privacy(1.0, 1e-6), trials=20_000).verdict
    'holds'
    >>> distinguish_samples(laplace, lambda rows: rows[:, 0], Privacy(0.5, 1e-6), trials=20_000).verdict
    'refuted'
    """
    half, share = integer("trials", trials, least=100) // 2, between_0_and_1("error", error) / 2.0
    chosen, counted = ([score(sample(world, half, 2 * part + world)) for world in (0, 1)] for part in (0, 1))

    def bound(scores: list[Array], threshold: float) -> float:
        hits = [int(np.sum(each >= threshold)) for each in scores]
        P, Q = share_interval(hits[0], half, share)[0], share_interval(hits[1], half, share)[1]
        return math.log(max(P - claimed.delta, 1e-300) / Q)

    thresholds = np.unique(np.quantile(np.concatenate(chosen), np.linspace(0.0, 1.0, 101)))
    best = max((float(each) for each in thresholds), key=partial(bound, chosen))
    shares = float(np.mean(counted[0] >= best)), float(np.mean(counted[1] >= best))
    return EventFinding(claimed, max(0.0, bound(counted, best)), shares, 2 * half)


def audit_script(
    script: Literal["reused_noise", "laplace_tree"],
    privacy: Privacy,
    *,
    rounds: int = 16,
    dimension: int = 4,
    trials: int = 20_000,
    error: float = ERROR,
) -> EventFinding:
    """Audit one of the two scripts on two streams that differ in the context and reward of the first visitor.

    >>> audit_script("reused_noise", Privacy(1.0, 1e-6), trials=1_000).verdict
    'refuted'
    """
    one_of("script", script, ("reused_noise", "laplace_tree"))
    rounds, d = integer("rounds", rounds, least=4), integer("dimension", dimension, least=2)
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0) / math.sqrt(d)
    one, other = _row(np.full(d, 1.0 / math.sqrt(d)), 1.0), _row(signs, -1.0)
    at = 0 if script == "laplace_tree" else 2  # the first row is in the most nodes; round 3 ends no epoch
    shown = laplace_tree if script == "laplace_tree" else reused_noise

    def sample(world: int, trials: int, seed: int) -> Array:
        rows = np.tile(_row(np.eye(d)[0], 1.0), (rounds, 1))
        rows[at] = other if world else one
        return shown(rows, privacy.epsilon, trials, seed).reshape(trials, -1)

    def score(transcripts: Array) -> Array:
        sums = transcripts.reshape(len(transcripts), rounds, -1)
        if script == "reused_noise":
            return np.asarray((sums[:, at] - sums[:, at - 1]) @ (one - other))
        ends = 2 ** np.arange(rounds.bit_length())  # nodes with the first row in them: those of the first 1, 2, 4, …
        nodes = sums[:, ends - 1] - (ends[:, None] - 1) * _row(np.eye(d)[0], 1.0)  # the others are known
        loss: Any = np.abs(nodes - other) - np.abs(nodes - one)  # the log likelihood ratio, times the scale
        return np.asarray(loss.sum(axis=(1, 2)))

    return distinguish_samples(sample, score, privacy, trials, error)


def reused_noise(rows: Array, epsilon: float, trials: int, seed: int) -> Array:
    """Noisy sums after every round: Laplace noise that is drawn anew in rounds 1, 2, 4, 8 and so on, and kept between.

    >>> shown = reused_noise(np.ones((4, 1)), 1.0, trials=1, seed=1)[0, :, 0]
    >>> (shown[2] - shown[1]).round(6)  # the third row
    np.float64(1.0)
    """
    epochs = np.array([t.bit_length() - 1 for t in range(1, len(rows) + 1)])
    scale = math.log2(len(rows)) / epsilon
    noise = generator(seed).laplace(0.0, scale, (trials, int(epochs[-1]) + 1, rows.shape[1]))
    return np.asarray(np.cumsum(rows, axis=0) + noise[:, epochs])


def laplace_tree(rows: Array, epsilon: float, trials: int, seed: int) -> Array:
    """Noisy sums after every round: those of the nodes of a binary tree, with noise of scale `log2(T)/epsilon` each.

    >>> laplace_tree(np.ones((4, 1)), 1.0, trials=5, seed=1).shape
    (5, 4, 1)
    """
    T, size = rows.shape
    noise = generator(seed).laplace(0.0, math.log2(T) / epsilon, (trials, T, size))  # of the node that ends at t
    sums = np.empty((trials, T, size))
    exact = np.cumsum(rows, axis=0)
    for t in range(1, T + 1):
        sums[:, t - 1] = exact[t - 1]
        left = t
        while left:
            sums[:, t - 1] += noise[:, left - 1]
            left &= left - 1
    return sums


def _row(x: Array, reward: float) -> Array:
    """`(svec(x xᵀ), r x)`."""
    return np.concatenate([packed(np.outer(x, x)), reward * x])
