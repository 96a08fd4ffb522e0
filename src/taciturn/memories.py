"""Several memories of one stream: sums of all windows from one encoding, and which of them to learn from.

**One encoding, all windows.** A stream of sums that forgets publishes `S_k = Σ_{l≤k} β^(k-l)·x_l + noise`. What it has
found of row k is `S_k - β·S_{k-1}`, and the decayed sum of any other window is the decayed sum of these. That is
arithmetic on what was published: *it costs no privacy, whatever the windows, and however many they are*
(post-processing). The noise is that of one encoding, fitted for one window, decoded for another: from a strategy for
10,000 releases, windows of 100, 1,000 and 100,000 have 23, 8 and 26 % more noise than from their own
(`taciturn.calibration.decoded_noise`). So it is for sums and for PQFTL, whose rows do not depend on what was released.
Private FTRL takes gradients at the points of *one* memory; J memories are J streams there, and cost sqrt(J) times the
mu of one.

**Which memory.** A long memory has less noise, and lags behind where the world turns. With squared loss one can ask
the shortest memory, whose sums are V and u for n examples: does the model p of a longer one leave a gradient
`r = (u - V·p)/n` that is more than noise? With H the regularised V/n, refitting would gain `rᵀ·H⁻¹·r` on the examples
of the shortest memory, of which noise and sampling pretend `tr(H⁻¹·Cov(r))`. What p loses in expectation by its own
noise is `tr(H⁻¹·Cov_p)`. The memory with the least

    max(0, rᵀ·H⁻¹·r - tr(H⁻¹·Cov(r))) + tr(H⁻¹·Cov_p)

is the model to use. Noise has known covariances: in a direction q that of `u - V·p` is
`s²·(1/w² + ‖p‖²/2 + (q·p)²/2)`, as noisy matrices are symmetric, off-diagonal entries with half the variance. For
sampling it is bounded by `R_y²·V`, and what overlaps in the two windows cancels. If inputs drift and labels do not
depend on them differently, r stays noise, and the long memory is used: what counts is what models predict, not what the
sums are.

On simulated streams whose concept turns, of ten features and 200,000 rows, the memories of the rule of
`taciturn.plan` (W, 4W and 16W) are right in 90.3 % of cases at epsilon = 1 and in 86.1 % at .1, while they are
published; W alone in 89.5 % and 86.0 %, and without forgetting 76.3 % and 75.3 %. Where seasons change and the concept
does not, they lose nothing to no forgetting (mean loss .0216 instead of .0218 at epsilon = 1), and W alone a quarter
(.0272).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from taciturn.calibration.decoded_noise import DecodedNoise, must_be_linear
from taciturn.calibration.mechanisms import DecayedBLT
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, Unprovable, integer, value_or_type
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.problem.svec import unpacked
from taciturn.kernel.stream.protocols import damaged
from taciturn.kernel.stream.release import Releases

FTRL_COSTS = (
    "several memories are decoded from one encoding for sums and for PQFTL, whose rows do not depend on what was "
    "released. Private FTRL takes gradients at the points of one memory: J memories are J streams, and cost sqrt(J) "
    "times the mu of one. State one window, or method='pqftl'."
)


def several(forget: Any) -> TypeGuard[Sequence[Any]]:
    """Whether windows are stated, and not one number; an array without an axis is a number.

    >>> several((1_000, 10_000)), several(np.array(1_000))
    (True, False)
    """
    return isinstance(forget, Sequence) or getattr(forget, "ndim", 0) > 0


def windows_of(value: Any) -> tuple[int, ...]:
    """Windows, validated: two or more, each longer than the one before.

    >>> windows_of([1_000, 10_000])
    (1000, 10000)
    """
    windows = tuple(integer("a window", each, of_many=True) for each in value)
    if len(windows) < 2 or any(a >= b for a, b in pairwise(windows)):
        raise InvalidInput(
            f"several memories are two windows or more, in increasing order, got {value_or_type(windows)}. State "
            "forget=(1_000, 10_000)."
        )
    return windows


def tuned(windows: Sequence[int]) -> int:
    """The window that the one strategy is fitted for: the middle one.

    >>> tuned((1_000, 10_000, 100_000))
    10000
    """
    stated = windows_of(windows)
    return stated[len(stated) // 2]


class Decoded(NamedTuple):
    """Decayed sums of one window: a row for each release, and the standard deviations of their noise."""

    sums: Array
    noise_sd: Array


def decayed_sums(private: Private, releases: Releases, window: int) -> Decoded:
    """The decayed sums of any window, from the releases of a stream that has another one. Costs no privacy.

    `releases` are all of a stream of sums by `DecayedBLT`, or by `BLT` with a release after every m examples, from the
    first on.

    >>> from taciturn import Privacy, every, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), forget=10_000, schedule=every(100), seed=1)
    >>> _, releases = private.run(private.start(), np.full((20_000, 1), 0.5))
    >>> short = decayed_sums(private, releases, 1_000)
    >>> bool(abs(short.sums[-1, 0] - 525.0) < 5.0 * short.noise_sd[-1] < 300.0)
    True
    """
    coder = must_be_linear(private.calibrated)
    rounds = _equal_distances(private)
    window = integer("window", window, least=rounds)
    if len(releases) and releases.first != 1:
        raise InvalidInput(f"all releases of a stream are needed, and these begin with {releases.first}. Add them up.")
    decay = math.exp(-rounds / window)
    found = np.array(releases.noisy)
    found[1:] -= getattr(coder, "decay", 1.0) * releases.noisy[:-1]
    for k in range(1, len(found)):
        found[k] += decay * found[k - 1]
    noise = DecodedNoise(coder, (decay,))
    calibrated: Any = private.calibrated
    sds = [calibrated.sd * math.sqrt(float(noise.at(k)[0, 0])) for k in range(1, len(found) + 1)]
    return Decoded(found, np.array(sds))


def _equal_distances(private: Private) -> int:
    """Examples between two releases."""
    rounds = getattr(private.schedule, "rounds", None)
    if not isinstance(rounds, int):
        raise InvalidInput(f"windows need releases at equal distances, and this is {private.schedule}. Use every(100).")
    return rounds


class Chosen(NamedTuple):
    """The memories after some releases, the model to use after each of them, and the window that it comes from."""

    memories: Memories
    points: Array
    windows: Integers


@dataclass(frozen=True, eq=False)
class Memories:
    """Several memories of a stream of PQFTL that forgets, after k releases: all of it is public.

    Parameters
    ----------
    private : Private
        PQFTL by `DecayedBLT`, with a release after every m examples.
    windows : sequence of int
        In examples, each longer than the one before.

    Examples
    --------
    >>> from taciturn import L2Ball, Privacy, Problem, Squared, every, pqftl
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=1, label_bound=1.0)
    >>> private = pqftl(problem, Privacy(1.0, 1e-6), forget=4_000, schedule=every(100), seed=1)
    >>> _, releases = private.run(private.start(), np.ones((20_000, 1)), np.repeat([0.5, -0.5], [15_000, 5_000]))
    >>> chosen = Memories(private, (1_000, 4_000, 16_000)).after(releases)
    >>> int(chosen.windows[100]), int(chosen.windows[-1]), bool(chosen.points[-1, 0] < -0.3)
    (16000, 1000, True)
    """

    private: Private
    windows: tuple[int, ...]
    k: int = 0
    last: Array | None = None
    sums: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", windows_of(self.windows))
        object.__setattr__(self, "k", integer("k", self.k, least=0))
        private = self.private
        if private.stages:
            raise InvalidInput("several memories need bounds that are stated. State ranges, or one window.")
        if type(private.learner) is not QFTL or not isinstance(private.mechanism, DecayedBLT):
            raise Unprovable(FTRL_COSTS)
        if self._rounds > self.windows[0]:
            raise InvalidInput(
                f"the shortest window, {self.windows[0]:,}, is less than the {self._rounds:,} examples between two "
                "releases. State a longer one, or publish more often."
            )
        if self.sums is None:
            size = private.learner.statistic_size
            object.__setattr__(self, "last", np.zeros(size))
            object.__setattr__(self, "sums", np.zeros((len(self.windows), size)))

    @property
    def arrays(self) -> Arrays:
        """What a checkpoint stores beside the number of releases; public."""
        assert self.last is not None
        assert self.sums is not None
        return {"last": self.last, "sums": self.sums}

    def resumed(self, k: int, arrays: Arrays) -> Memories:
        """The memories after k releases, from what `arrays` stored, validated."""
        for name, array in self.arrays.items():
            if name not in arrays or arrays[name].shape != array.shape or arrays[name].dtype != np.float64:
                raise damaged(f"{name} should be float64 of shape {array.shape}", "memories")
        return replace(self, k=k, last=arrays["last"], sums=arrays["sums"])

    def after(self, releases: Releases) -> Chosen:
        """The memories after the next releases, and the models to use after each. Costs no privacy."""
        if not len(releases):
            return Chosen(self, np.empty((0, self.private.problem.size)), np.empty(0, dtype=np.int64))
        if releases.first != self.k + 1:
            raise InvalidInput(
                f"release {self.k + 1} comes next, and these begin with {releases.first}. Give releases in order."
            )
        assert self.last is not None
        assert self.sums is not None
        coder = must_be_linear(self.private.calibrated)
        last, sums = self.last, self.sums
        points = np.empty((len(releases), self.private.problem.size))
        windows = np.empty(len(releases), dtype=np.int64)
        decays = np.array(self._decays)[:, None]
        for i, row in enumerate(releases.noisy):
            sums = decays * sums + (row - getattr(coder, "decay", 1.0) * last)
            last = row
            points[i], j = self._choice(sums, self.k + 1 + i, int(releases.rounds[i]))
            windows[i] = self.windows[j]
        return Chosen(replace(self, k=self.k + len(releases), last=np.array(last), sums=sums), points, windows)

    @property
    def _rounds(self) -> int:
        return _equal_distances(self.private)

    @cached_property
    def _decays(self) -> tuple[float, ...]:
        return tuple(math.exp(-self._rounds / window) for window in self.windows)

    @cached_property
    def _noise(self) -> DecodedNoise:
        return DecodedNoise(must_be_linear(self.private.calibrated), self._decays)

    @cached_property
    def _settled(self) -> int:
        """A release from which on covariances do not change any more."""
        return math.ceil(64.0 * max(self.windows[-1], tuned(self.windows)) / self._rounds)

    @cached_property
    def _known(self) -> dict[int, tuple[Array, Array]]:
        return {}

    def _covariances(self, k: int) -> tuple[Array, Array]:
        """Of the noise of the sums of release k, and of the weights of examples in them."""
        k = min(k, self._settled)
        if k not in self._known:
            if len(self._known) > 4096:
                self._known.clear()
            calibrated: Any = self.private.calibrated
            decays = np.array(self._decays)
            logs = np.log(decays)[:, None] + np.log(decays)[None, :]
            weights = self._rounds * np.expm1(k * logs) / np.expm1(logs)
            self._known[k] = calibrated.sd**2 * self._noise.at(k), weights
        return self._known[k]

    def _counts(self, k: int, t: int) -> Array:
        """The number of examples that each sum stands for; at a horizon the last of them may be fewer."""
        logs = np.log(np.array(self._decays))
        return np.asarray(self._rounds * np.expm1(k * logs) / np.expm1(logs) - (self._rounds * k - t))

    def _choice(self, sums: Array, k: int, t: int) -> tuple[Array, int]:
        """The model to use, and the number of its memory."""
        learner: Any = self.private.learner
        problem = learner.problem
        d, shape = problem.width, (problem.outputs, problem.width)
        counts = self._counts(k, t)
        noise, weights = (each / (counts[:, None] * counts[None, :]) for each in self._covariances(k))
        sds = np.sqrt(np.diag(noise)) * counts
        points = [learner.decide(float(n), total, float(sd)) for n, total, sd in zip(counts, sums, sds, strict=True)]
        V = unpacked(sums[0, : -problem.size], d) / counts[0]
        u = sums[0, -problem.size :].reshape(shape) / (learner.w * counts[0])
        ridge = float(learner.total_ridge(counts[0], sds[0])) / counts[0]
        values, Q = np.linalg.eigh(V)
        values = np.maximum(values, 0.0)
        inverse = 1.0 / (values + ridge)
        risks = []
        for i, point in enumerate(points):
            p = point.reshape(shape)
            turned = p @ Q
            left = (u - p @ V) @ Q
            each = 1.0 / learner.w**2 + 0.5 * np.sum(p**2, axis=1)[:, None] + 0.5 * turned**2
            by_noise = float(np.sum(each * inverse))
            by_sampling = learner.label_bound**2 * float(np.sum(values * inverse))
            of_both = noise[0, 0] + noise[i, i] - 2.0 * noise[i, 0]
            overlap = weights[0, 0] + weights[i, i] - 2.0 * weights[i, 0]
            drifted = float(np.sum(left**2 * inverse)) - of_both * by_noise - overlap * by_sampling
            risks.append(max(0.0, drifted) + noise[i, i] * by_noise + weights[i, i] * by_sampling)
        best = int(np.argmin(risks))
        return points[best], best
