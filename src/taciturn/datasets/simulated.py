"""Simulated streams. The bounds they state are bounds by construction, not statistics of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.kernel.arrays import Array

TOPICS = 6
"""Topics of a query and of an ad in `ad_impressions`."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Examples in their order, with names and public bounds.

    Attributes
    ----------
    X, y : ndarray
        Features, one example a row, and labels.
    names : tuple of str
        What the features are.
    feature_bound, label_bound : float
        Public bounds on the norm of a row and on |label|.
    """

    X: Array
    y: Array
    names: tuple[str, ...]
    feature_bound: float
    label_bound: float

    def __len__(self) -> int:
        return len(self.y)


def ad_impressions(n: int = 100_000, seed: int = 0) -> Stream:
    """Sponsored-search impressions: features of a query and an ad, and whether the user clicked (+1) or not (-1).

    Each impression shows one ad beside one query. A query and an ad are each about one of six topics; the features say,
    topic by topic, whether they match (+), or which of the two is about it (-), and how the ad is placed. People
    click on ads that match their query, less so further down the page, and more for some topics than for others.

    >>> stream = ad_impressions(1000, seed=1)
    >>> stream.X.shape, bool((np.linalg.norm(stream.X, axis=1) <= stream.feature_bound).all())
    ((1000, 15), True)
    """
    rng = np.random.default_rng(seed)
    query, ad = rng.integers(TOPICS, size=(2, n))
    ad = np.where(rng.random(n) < 0.15, query, ad)
    position, mobile = rng.integers(1, 6, size=n), rng.random(n) < 0.5
    each, match = np.arange(n), query == ad
    relevance, interest = np.zeros((n, TOPICS)), np.zeros((n, TOPICS))
    relevance[each, query] += np.where(match, 1.0, -0.5)
    relevance[each, ad] += np.where(match, 0.0, -0.5)
    interest[each, query] = 1.0
    placement = np.stack([(3.0 - position) / 2.0, np.where(mobile, 1.0, -1.0), np.where(match, 1.0, -1.0)], axis=1)
    X = np.hstack([0.5 * relevance, 0.3 * interest, 0.35 * placement])
    appeal = np.linspace(-0.6, 0.6, TOPICS)
    score = np.where(match, 2.2, -2.4) + 0.8 * appeal[query] + 0.7 * placement[:, 0] + 0.15 * placement[:, 1]
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)
    topics = range(1, TOPICS + 1)
    names = (*(f"match_{k}" for k in topics), *(f"query_{k}" for k in topics), "position", "mobile", "match")
    return Stream(X, y, names, feature_bound=1.0, label_bound=1.0)


def linear_regression(n: int, dimension: int = 10, noise: float = 0.01, seed: int = 0) -> Stream:
    """Online regression as in the paper's first experiment: `y = v·x* + N(0, noise²)`, cut to [-1, 1].

    `v = g/sqrt(d)` with g standard normal, scaled down to norm 1 where longer; ‖x*‖ = 1.

    >>> linear_regression(100, dimension=3).X.shape
    (100, 3)
    """
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, dimension)) / np.sqrt(dimension)
    V /= np.maximum(1.0, np.linalg.norm(V, axis=1, keepdims=True))
    truth = rng.standard_normal(dimension)
    y = V @ (truth / np.linalg.norm(truth)) + noise * rng.standard_normal(n)
    names = tuple(f"v{i}" for i in range(dimension))
    return Stream(V, np.clip(y, -1.0, 1.0), names, feature_bound=1.0, label_bound=1.0)
