"""The noise of released points and models, in the units of their entries: a computation from public settings alone.

A release states the standard deviation of the noise on what it was added to (`Plan.noise_on`). For iterates that is the
point itself. For private FTRL it is a sum of gradients, and noise of earlier points returns in later sums (by the
curvature of `taciturn.FTRL`), and in averages: what is known exactly is the noise of the *sum*, and that of a weight is
left out.

For other methods, whose points are not linear in the noisy sums, the noise is *estimated* from how far successive
released points moved. Noise of prefix sums is correlated from one release to the next, so that a point moves by less
than its own noise: of weights that are sums divided by their number w, with noise of variance v = s²/w², a move has
variance `D = v' + v - 2·cov(s', s)/(w'w)`, and the mean square of moves is multiplied by v/D. The covariance is known
for a BLT, the default (`taciturn.calibration.decoded_noise`), and otherwise taken to be 0. What points learn is in
their moves, too: then the estimate is too large. The models of a bandit have their own estimates, as arms are played
more often or less. The noise of least squares is larger on features that rows hardly have, so an entry that moves by
more than the root mean square of all has the estimate of its own moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from taciturn.calibration.decoded_noise import DecodedNoise, linear_coder
from taciturn.calibration.mechanisms import PrefixSum
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder
from taciturn.plan import Plan

Kind = Literal["exact", "sums", "estimated"]


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the noise on an entry, by release.

    Attributes
    ----------
    kind : {"exact", "sums", "estimated"}
        How they are known; of "sums" each release states its own, and those of points and models are NaN.
    point, model : ndarray
        Of the released points, and of the models to use; with a column for each entry where entries differ.
    move : ndarray, optional
        Of the difference of a released point and the one before; the first is that of the first point. None if it is
        not known.
    """

    kind: Kind
    point: Array
    model: Array
    move: Array | None


class NoiseOfReleases:
    """The noise of the releases of one plan.

    Parameters
    ----------
    plan : Plan
        How the stream learns.

    Examples
    --------
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> learning = {"method": "giga", "ridge": 0.1, "horizon": 1000, "release": 100}
    >>> columns = {"age": {"range": [0, 100]}}
    >>> data = {"privacy": {"epsilon": 1}, "target": target, "columns": columns, "learning": learning}
    >>> plan = contract_of(data).plan("zero")
    >>> noise = NoiseOfReleases(plan).until(3, np.zeros((3, 2)))
    >>> noise.kind, [sd == plan.noise_sd(k) for k, sd in enumerate(noise.point.tolist(), 1)]
    ('exact', [True, True, True])
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        private = plan.private
        self._of_sums = isinstance(private.learner, FTRL)
        self._exact = private.is_stream and not private.stages and not isinstance(private.mechanism, PrefixSum)
        self._shares: dict[tuple[int, int], float] = {}

    def until(self, k: int, points: Array, numbers: Integers | Sequence[int] | None = None) -> Noise:
        """The noise of the releases up to number k, or of those with these numbers.

        `points` are the released points of these numbers, from which it is estimated if nothing else is known.
        """
        if k == 0:
            return Noise("exact", np.zeros(0), np.zeros(0), np.zeros(0))
        wanted = np.arange(k) if numbers is None else np.asarray(numbers, dtype=np.int64) - 1
        if self._exact:
            sd = np.array([self.plan.noise_sd(each) for each in range(1, k + 1)])
            before = np.concatenate([[0.0], sd[:-1]])
            return Noise("exact", sd[wanted], sd[wanted], np.hypot(sd, before)[wanted])
        if self._of_sums:
            unknown = np.full(len(wanted), np.nan)
            return Noise("sums", unknown, unknown, None)
        return self._estimated(points, wanted + 1)

    def _estimated(self, points: Array, numbers: Integers) -> Noise:
        """From the mean squares of what points move by: all of it noise, if they learn no more."""
        if len(points) < 2:
            nothing = np.full(len(points), np.nan)
            return Noise("estimated", nothing, nothing, None)
        learner = getattr(self.plan.private, "learner", None)
        models = learner.arms if isinstance(learner, LinearBandit) else 1
        moves = np.diff(points, axis=0).reshape(len(points) - 1, models, -1)
        pairs = zip(numbers[:-1].tolist(), numbers[1:].tolist(), strict=True)
        shares = np.array([self._share(before, after) for before, after in pairs])
        squares = moves**2 * shares[:, None, None]
        squares = np.concatenate([squares[:1], squares])
        width = min(9, len(squares))
        padded = np.pad(squares, ((width // 2, width - 1 - width // 2), (0, 0), (0, 0)), mode="edge")
        own = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0).mean(axis=3)
        sd = np.sqrt(np.maximum(own, own.mean(axis=2, keepdims=True))).reshape(points.shape)
        return Noise("estimated", sd, sd, None)

    def _share(self, before: int, after: int) -> float:
        """The variance of the noise of a later point, divided by that of its move from an earlier one."""
        if (before, after) not in self._shares:
            private: Any = self.plan.private
            coder = linear_coder(private.calibrated)
            decay = coder.decay if isinstance(coder, DecayedCoder) else 1.0
            share = 0.5
            if coder is not None:
                joint = DecodedNoise(coder, (decay,))
                rows = [private.timetable.due(k) if decay == 1.0 else 1.0 - decay**k for k in (before, after)]
                first, second = (float(joint.at(k)[0, 0]) / w**2 for k, w in zip((before, after), rows, strict=True))
                both = float(joint.from_to(before, after)[0, 0]) / (rows[0] * rows[1])
                share = second / max(first + second - 2.0 * both, 1e-9 * second)
            self._shares[before, after] = share
        return self._shares[before, after]
