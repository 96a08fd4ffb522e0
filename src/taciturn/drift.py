"""Seeing drift for free: how far released statistics moved, in units of their noise. It costs no privacy.

Releases are public, and so is the law of their noise: what is computed from both is post-processing. Two releases j and
k of a stream are compared by

    distance = ‖m_k - m_j‖/(sqrt(size)·s_jk),

m the released sum divided by the number of examples that it stands for (for sums), or the released iterate; s_jk is the
standard deviation of the noise of an entry of the difference, with the covariance of the two
(`taciturn.calibration.decoded_noise`). A distance of 1 is noise alone. The earlier release is one window before the
later, if the stream forgets, and at most half as old otherwise.

**False alarms.** A distance of more than `alarm_at` occurs with probability at most `rate` at each comparison, if
examples are independent and have one distribution up to round t_k, for sums whose rows do not depend on what was
released: PQFTL, class sums and private sums. *Proof.* `m_k - m_j` is noise plus `Σ w_i·(x_i - E x_i)`, x_i the
contribution of example i, of norm at most R, and w_i the difference of its weights, since the weights in either mean
add up to 1 and `E x_i` is the same for all. (i) The squared norm of the noise, over `s_jk²`, is chi-squared of `size`
degrees of freedom: it exceeds its quantile q² with probability rate/2. (ii) The norm f of the second part has
`E f ≤ sqrt(E f²) ≤ R·sqrt(Σ w_i²)`, and one example changes it by at most 2·R·|w_i|, so by McDiarmid's inequality it
exceeds `R·sqrt(Σ w_i²)·(1 + sqrt(2·ln(2/rate)))` with probability at most rate/2. The triangle inequality adds the two
up. ∎ Real rows of one distribution vary less than (ii) allows, so alarms are rarer than `rate`: none in 8,000
comparisons of 40 simulated streams at a rate of .01.

For private FTRL and iterates, `proven` is False. There (i) alone counts: gradients at released
points follow the points, the number of examples in a tick varies, and iterates move while they learn. What a distance
above `alarm_at` says is that the *exact* statistic moved, and not that the noise did. On ten simulated streams of one
distribution private FTRL, after its first window, gave 15 alarms in 1,910 comparisons at a rate of .01; while it learns
in its first window, its sums move, and it gives more.

**What it sees.** A drift whose move of the mean contribution is larger than the noise of a window: if it cannot be seen
here, a model of that window could not follow it either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from taciturn.calibration.decoded_noise import DecodedNoise, linear_coder
from taciturn.calibration.mechanisms import DecayedBLT
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, number
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.class_sums import ClassSums
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.stream.protocols import damaged
from taciturn.kernel.stream.release import Releases

RATE = 1e-4
"""The default probability of a false alarm at one comparison."""

_MOST = 4096  # comparisons that a watch keeps


@dataclass(frozen=True, eq=False)
class Drift:
    """Comparisons of released statistics; all of it is public.

    Attributes
    ----------
    rounds, since : ndarray of int
        Rounds of the later and of the earlier release of each comparison.
    distance : ndarray
        How far they are apart, in units of their noise: 1 is noise alone.
    alarm_at : ndarray
        The distance above which it is more than chance.
    rate : float
        The probability of a false alarm at one comparison.
    proven : bool
        Whether that covers the variation of examples of one distribution, or the noise alone.
    """

    rounds: Integers
    since: Integers
    distance: Array
    alarm_at: Array
    rate: float
    proven: bool

    @property
    def alarms(self) -> Integers:
        """Rounds whose releases moved by more than chance."""
        return np.asarray(self.rounds[self.distance > self.alarm_at])

    def as_data(self, most: int = 100) -> dict[str, Any]:
        """As a dict that JSON can hold, with the last comparisons, up to `most` of them."""
        rows = zip(self.rounds, self.since, self.distance, self.alarm_at, strict=True)
        return {
            "rate": self.rate,
            "proven": self.proven,
            "comparisons": len(self.rounds),
            "alarms": self.alarms.tolist(),
            "last": [
                {"t": int(t), "since": int(since), "distance": float(distance), "alarm_at": float(most_by_chance)}
                for t, since, distance, most_by_chance in list(rows)[-most:]
            ],
        }

    def __repr__(self) -> str:
        return f"Drift({len(self.rounds)} comparisons, {len(self.alarms)} alarms)"


def drift(private: Private, releases: Releases, rate: float = RATE) -> Drift:
    """How far each release is from the one a window before it, in units of their noise. Costs no privacy.

    Parameters
    ----------
    private : Private
        What made the releases: sums, or noisy iterates.
    releases : Releases
        Consecutive releases of one stream.
    rate : float
        The probability of a false alarm at one comparison, by the claim of this module.

    Examples
    --------
    >>> from taciturn import L2Ball, Privacy, Problem, Squared, every, pqftl
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=1, label_bound=1.0)
    >>> private = pqftl(problem, Privacy(1.0, 1e-6), forget=4_000, schedule=every(1_000), seed=1)
    >>> y = np.repeat([0.8, -0.8], [20_000, 10_000])
    >>> _, releases = private.run(private.start(), np.ones((30_000, 1)), y)
    >>> found = drift(private, releases)
    >>> found, found.alarms[:2]
    (Drift(26 comparisons, 10 alarms), array([21000, 22000]))
    """
    _must_be_comparable(private)
    rate = _rate(rate)
    rounds = releases.rounds
    window = _window(private)
    until = rounds // 2 if window is None else rounds - window
    earlier = np.searchsorted(rounds, until, side="right") - 1
    found = [
        _compared(private, _At.of(releases, int(j)), _At.of(releases, k), rate) for k, j in enumerate(earlier) if j >= 0
    ]
    return _drift(private, np.array(found).reshape(len(found), 4), rate)


class _At(NamedTuple):
    """A release: its number, its round, its statistic and the standard deviation of its noise."""

    k: int
    t: int
    noisy: Array
    noise_sd: float

    @classmethod
    def of(cls, releases: Releases, i: int) -> _At:
        return cls(releases.first + i, int(releases.rounds[i]), releases.noisy[i], float(releases.noise_sd[i]))


def _must_be_comparable(private: Any) -> None:
    """Reject streams whose releases are no sums or iterates of one problem."""
    if not comparable(private):
        raise InvalidInput(
            "drift is seen in released sums and iterates of one problem. Experts, one-off fits and streams that find "
            "ranges first have none: compare their models instead."
        )


def comparable(private: Any) -> bool:
    """Whether `drift` is for this stream.

    >>> from taciturn import Privacy, experts, ewoo, private_sum
    >>> comparable(private_sum(1, 1.0, Privacy(1.0, 1e-6), 9)), comparable(ewoo(experts(3), Privacy(1.0, 1e-6), 9))
    (True, False)
    """
    return private.is_stream and not private.stages and private.certificate.metric == "l2"


def _window(private: Private) -> int | None:
    return private.mechanism.forget if isinstance(private.mechanism, DecayedBLT) else None


def _last_and_due(reference: Array, window: int | None) -> tuple[int, int]:
    """The round of the reference, 0 if there is none, and the round from which on a release is compared with it."""
    last = int(reference[1]) if len(reference) else 0
    return last, last + window if window is not None else max(2 * last, 1)


def _rate(rate: float) -> float:
    return number("rate", rate, lambda each: 0.0 < each < 1.0, "lie between 0 and 1", "State rate=1e-4.")


def _compared(private: Private, j: _At, k: _At, rate: float) -> tuple[float, float, float, float]:
    """Round and earlier round, distance and the largest that is chance."""
    from scipy.special import gammainccinv  # here: it loads slowly, and few streams need it

    size = len(k.noisy)
    if private.certificate.reach == "entry":
        counts = [float(private.calibrated.examples_of(each.k, each.t)) for each in (j, k)]
    else:
        counts = [1.0, 1.0]
    sd = math.sqrt(_variance(private, j, k, *counts))
    distance = float(np.linalg.norm(k.noisy / counts[1] - j.noisy / counts[0]))
    by_noise = sd * math.sqrt(2.0 * float(gammainccinv(size / 2.0, rate / 2.0)))  # of chi-squared
    by_sampling = 0.0
    if _is_proven(private):
        spread = private.learner.certificate.norm_of(size) * math.sqrt(_squared_weights(private, j, k, *counts))
        by_sampling = spread * (1.0 + math.sqrt(2.0 * math.log(2.0 / rate)))
    unit = math.sqrt(size) * sd
    return float(k.t), float(j.t), distance / unit, (by_noise + by_sampling) / unit


def _is_proven(private: Private) -> bool:
    """Whether false alarms are as rare as is said on examples of one distribution."""
    return type(private.learner) in (QFTL, VectorSum, ClassSums)


def _variance(private: Private, j: _At, k: _At, before: float, after: float) -> float:
    """Of the noise of an entry of the difference; without a known covariance, the most that there can be."""
    first, second = j.noise_sd / before, k.noise_sd / after
    if private.certificate.reach == "tail":
        return first**2 + second**2
    coder = linear_coder(private.calibrated)
    if coder is None:
        return (first + second) ** 2
    calibrated: Any = private.calibrated
    noise = DecodedNoise(coder, (float(getattr(coder, "decay", 1.0)),))
    both = float(calibrated.sd) ** 2 * float(noise.from_to(j.k, k.k)[0, 0]) / (before * after)
    return max(first**2 + second**2 - 2.0 * both, 1e-12 * (first**2 + second**2))


def _squared_weights(private: Private, j: _At, k: _At, before: float, after: float) -> float:
    """`Σ w_i²` of the claim."""
    coder = linear_coder(private.calibrated)
    decay = 1.0 if coder is None else float(getattr(coder, "decay", 1.0))
    if decay == 1.0:
        return 1.0 / j.t - 1.0 / k.t
    each = k.t / k.k  # examples between two releases; at a horizon the last of them may be fewer

    def squares(n: int) -> float:
        return each * math.expm1(2.0 * n * math.log(decay)) / math.expm1(2.0 * math.log(decay))

    overlap = math.exp((k.k - j.k) * math.log(decay)) * squares(j.k)
    return max(0.0, squares(j.k) / before**2 + squares(k.k) / after**2 - 2.0 * overlap / (before * after))


def _drift(private: Private, found: Array, rate: float) -> Drift:
    rounds, since = (found[:, i].astype(np.int64) for i in (0, 1))
    return Drift(rounds, since, found[:, 2], found[:, 3], rate, _is_proven(private))


@dataclass(frozen=True, eq=False)
class DriftWatch:
    """Comparisons of a stream as it goes on, one for each window: it keeps one statistic, and the comparisons made.

    The first release after a window is compared with the last one that was compared; without forgetting, the first
    after twice as many rounds. All of it is public. A run stores it with its state, and shows it in its report.

    Examples
    --------
    >>> from taciturn import Privacy, every, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), forget=1_000, schedule=every(100), seed=1)
    >>> state, first = private.run(private.start(), np.full((3_000, 1), 0.5))
    >>> _, second = private.run(state, np.full((2_000, 1), 0.5))
    >>> DriftWatch(private).after(first).after(second).drift.rounds
    array([2000, 3000, 4000, 5000])
    """

    private: Private
    rate: float = RATE
    reference: Array | None = None
    found: Array | None = None

    def __post_init__(self) -> None:
        _must_be_comparable(self.private)
        object.__setattr__(self, "rate", _rate(self.rate))
        if self.reference is None:
            object.__setattr__(self, "reference", np.empty(0))
            object.__setattr__(self, "found", np.empty((0, 4)))

    @property
    def arrays(self) -> Arrays:
        """What a checkpoint stores: number, round, noise and statistic of the reference, and the comparisons."""
        assert self.reference is not None
        assert self.found is not None
        return {"reference": self.reference, "found": self.found}

    def resumed(self, arrays: Arrays) -> DriftWatch:
        """The watch that stored these arrays, validated; one that has seen nothing, if there are none."""
        if not arrays:
            return self
        reference, found = arrays.get("reference", np.empty(1)), arrays.get("found", np.empty(1))
        size = self.private.learner.statistic_size + 3
        if reference.shape not in ((0,), (size,)) or found.ndim != 2 or found.shape[1] != 4:
            raise damaged("comparisons should have four columns, and the reference a statistic", "comparisons")
        return replace(self, reference=reference, found=found)

    @property
    def drift(self) -> Drift:
        """The comparisons made so far; of very many, the last."""
        assert self.found is not None
        return _drift(self.private, self.found, self.rate)

    @cached_property
    def _due(self) -> int:
        """The round from which on a release is compared."""
        assert self.reference is not None
        return _last_and_due(self.reference, _window(self.private))[1]

    def after(self, releases: Releases) -> DriftWatch:
        """The watch after the next releases."""
        assert self.reference is not None
        assert self.found is not None
        if not len(releases) or releases.rounds.item(-1) < self._due:  # as most are, if there are many
            return self
        window, reference, found = _window(self.private), self.reference, []
        i = 0
        while i < len(releases):
            last, due = _last_and_due(reference, window)
            i += int(np.searchsorted(releases.rounds[i:], due))
            if i == len(releases):
                break
            now = _At.of(releases, i)
            if len(reference):
                before = _At(int(reference[0]), last, reference[3:], float(reference[2]))
                found.append(_compared(self.private, before, now, self.rate))
            reference = np.concatenate([[float(now.k), float(now.t), now.noise_sd], now.noisy])
            i += 1
        added = np.concatenate([self.found, np.array(found).reshape(len(found), 4)])[-_MOST:]
        return replace(self, reference=reference, found=added)
