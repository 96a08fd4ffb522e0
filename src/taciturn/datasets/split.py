"""Train and test splits and random projections of a stream, drawn from seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.datasets.simulated import Stream
from taciturn.errors import integer


def split(stream: Stream, seed: int, share: float = 0.1, rows: int | None = None) -> tuple[Stream, Stream]:
    """Rows in random order, the last `share` of them held out: the stream to learn, and the one to score.

    Parameters
    ----------
    stream : Stream
        In any order.
    seed : int
        Of the order.
    share : float
        Held out.
    rows : int, optional
        Take no more than so many; all by default.

    Examples
    --------
    >>> from taciturn.datasets import linear_regression
    >>> train, test = split(linear_regression(100), seed=1)
    >>> len(train), len(test)
    (90, 10)
    """
    order = np.random.default_rng(seed).permutation(len(stream))[:rows]
    cut = len(order) - round(share * len(order))
    train, test = (replace(stream, X=stream.X[part], y=stream.y[part]) for part in np.split(order, [cut]))
    return train, test


def projected(stream: Stream, dimension: int, seed: int) -> Stream:
    """The features seen along `dimension` random directions at right angles, which are public: they come from the seed.

    A row of n features keeps, on average, `dimension/n` of its square; all are scaled up by as much, and those longer
    than the bound then are scaled down to it, each by itself.

    >>> from taciturn.datasets import linear_regression
    >>> short = projected(linear_regression(100, dimension=10), dimension=3, seed=1)
    >>> short.X.shape, bool((np.linalg.norm(short.X, axis=1) <= short.feature_bound).all())
    ((100, 3), True)
    """
    n = stream.X.shape[1]
    drawn = np.random.default_rng(seed).standard_normal((n, integer("dimension", dimension)))
    directions, _ = np.linalg.qr(drawn)
    X = stream.X @ (directions * np.sqrt(n / dimension))
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    X *= np.minimum(1.0, stream.feature_bound * (1.0 - 1e-12) / np.maximum(norms, 1e-300))[:, None]
    return replace(stream, X=X, names=tuple(f"direction {i}" for i in range(1, dimension + 1)))
