"""Averages of released points. They are computed from releases alone, so they cost no privacy.

**Why average.** Examples drawn independently from one distribution, with convex expected loss F: the mean of the points
played in a number of rounds has, against any fixed u,

    E F(mean) - F(u) ≤ E(regret against u in those rounds)/(their number).

*Proof* (Cesa-Bianchi, Conconi, Gentile, *On the generalization ability of on-line learning algorithms*, 2004). x_t
depends on earlier examples and on noise, not on the example of round t, so `E F(x_t) = E f_t(x_t)`; and
`F(mean) ≤ mean of F(x_t)`, by Jensen's inequality. ∎ So a bound on regret, over T, is one on what the mean loses to the
best fixed point: of private FTRL, for one, `taciturn.regret.ftrl_regret_bound(private)/T`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from taciturn.errors import InvalidInput, integer, not_negative, number
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.stream.release import Release, Releases


def average(
    releases: Sequence[Release], share: float = 1.0, *, first: Array | None = None, until: int | None = None
) -> Array:
    """The mean of the points played, each weighted by its rounds: those until the next release. Costs no privacy.

    Parameters
    ----------
    releases : sequence of Release
        Of any algorithm, in their order.
    share : float
        Of the rounds, the last ones that count: 1 for all, ½ for the second half, when the points have learnt more.
    first : ndarray, optional
        The point played before the first release, `problem.first_point`; by default those rounds do not count.
    until : int, optional
        The last round that counts; by default the one after the last release. With the horizon T and the `first` point
        it is the mean of x_1, …, x_T.

    Returns
    -------
    ndarray
        A point of the domain, which is convex.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import Release
    >>> releases = [Release(t, k, np.zeros(1), np.array([x]), 1.0, True) for k, t, x in ((1, 2, 4.0), (2, 5, 8.0))]
    >>> average(releases), average(releases, first=np.zeros(1), until=8)
    (array([5.]), array([4.5]))
    """
    return np.asarray(_means(releases, share, first, until)[-1])


def running_average(releases: Sequence[Release], share: float = 1.0, *, first: Array | None = None) -> Array:
    """After each release, the `average` of all so far: an array with one row a release, in one pass.

    >>> import numpy as np
    >>> from taciturn import Release
    >>> releases = [Release(t, t, np.zeros(1), np.array([float(t)]), 1.0, True) for t in (1, 2, 3, 4)]
    >>> running_average(releases).ravel(), running_average(releases, share=0.5).ravel()
    (array([1. , 1.5, 2. , 2.5]), array([1. , 2. , 2.5, 3.5]))
    """
    return _means(releases, share, first, None)[-len(releases) :]


def late_average(
    releases: Releases, mean: Array | None = None, since: int = 0, power: float = 3.0, window: int | None = None
) -> Array:
    """A running mean in which later points have more weight, updated one release at a time. Costs no privacy.

    A point released after t examples, the one before it after s, weighs as much as the rounds between them, round i
    counted `i^power` times: the mean becomes `(s/t)^(power+1)·mean + (1 - (s/t)^(power+1))·point`. After any round
    half the weight is on the last sixth of the stream, if power is 3. (Shamir, Zhang, *Stochastic gradient descent for
    non-smooth optimization*, 2013, Section 3, have the same for steps of one example.)

    Parameters
    ----------
    releases : Releases
        The new releases.
    mean : ndarray, optional
        The average of the releases before them; None if these are the first.
    since : int
        The round of the last release before them.
    power : float
        0 gives all rounds the same weight.
    window : int, optional
        For a stream that forgets: from round `window` on, the mean moves as it does there, and forgets as well.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import Releases
    >>> points, two = np.array([[4.0], [8.0]]), np.ones(2)
    >>> late_average(Releases(np.array([2, 4]), 1, points, points, two, False), power=0.0)
    array([6.])
    """
    means = late_averages(releases, mean, since, power, window)
    if not len(means):
        return np.zeros(means.shape[1]) if mean is None else np.array(mean, dtype=np.float64)
    return np.array(means[-1])


def late_averages(
    releases: Releases, mean: Array | None = None, since: int = 0, power: float = 3.0, window: int | None = None
) -> Array:
    """After each release, the `late_average` of all so far, to the last bit: an array with one row a release.

    >>> import numpy as np
    >>> from taciturn import Releases
    >>> points, two = np.array([[4.0], [8.0]]), np.ones(2)
    >>> late_averages(Releases(np.array([2, 4]), 1, points, points, two, False), power=0.0).ravel()
    array([4., 6.])
    """
    since = integer("since", since, least=0)
    power = not_negative("power", power)
    return late_averages_of(releases, mean, since, power, None if window is None else integer("window", window))


def late_averages_of(
    releases: Releases, mean: Array | None, since: int, power: float = 3.0, window: int | None = None
) -> Array:
    """The same for settings that are known to be valid: a stream may have a release after every example.

    >>> from taciturn import Releases
    >>> points = np.array([[4.0], [8.0]])
    >>> late_averages_of(Releases(np.array([2, 4]), 1, points, points, np.ones(2), False), None, 0, power=0.0).ravel()
    array([4., 6.])
    """
    means = np.empty_like(releases.points)
    before = np.zeros(means.shape[1]) if mean is None else np.asarray(mean, dtype=np.float64)
    most = math.inf if window is None else float(window)
    _late_means()(before, since, releases.rounds, releases.points, power + 1.0, most, means)
    return means


@cache
def _late_means() -> Any:
    from taciturn._util.averages_loops import late_means

    return late_means


def _means(releases: Sequence[Release], share: float, first: Array | None, until: int | None) -> Array:
    """For each point the mean over the last rounds up to its own: a difference of two sums from the beginning."""
    if len(releases) == 0:
        raise InvalidInput("there is no average of no releases. Give one or more.")
    rule = "be positive and at most 1"
    share = number("share", share, lambda share: 0.0 < share <= 1.0, rule, "Use 1 for all rounds.")
    t, points = _played(releases)
    if first is not None:
        t, points = np.append(0, t), np.concatenate([np.asarray(first, dtype=np.float64)[None, :], points])
    if (np.diff(t) <= 0).any():
        raise InvalidInput("releases must come in the order of their rounds. Give those of one stream, oldest first.")
    ends = t + 1
    if until is not None:
        ends[-1] = integer("until", until, least=max(int(t[-1]), int(t[0]) + 1))
    before = np.concatenate([np.zeros_like(points[:1]), np.cumsum(np.diff(t)[:, None] * points[:-1], axis=0)])
    begins = ends - np.ceil(share * (ends - t[0])).astype(np.int64)
    at = np.searchsorted(t, begins, side="right") - 1
    total = before + (ends - t)[:, None] * points - before[at] - (begins - t[at])[:, None] * points[at]
    return np.asarray(total / (ends - begins)[:, None])


def _played(releases: Sequence[Release]) -> tuple[Integers, Array]:
    """Rounds and points."""
    if isinstance(releases, Releases):
        return releases.rounds, releases.points
    rounds = np.array([release.t for release in releases], dtype=np.int64)
    return rounds, np.array([release.point for release in releases])
