"""Decayed sums by a buffered linear Toeplitz strategy: noise that stays constant, in a stream that need not end.

The sum of release k is `Σ_{l≤k} β^(k-l)·x_l`, so that rows are forgotten. With D the diagonal matrix of the powers of
β, its matrix is `D·A·D⁻¹`, A that of prefix sums, and `A = B·C` gives `(D·B·D⁻¹)·(D·C·D⁻¹)`: the generating function of
a BLT (`taciturn.kernel.mechanisms.blt`) at `β·x`, which is the BLT with both sets of decays times β. Its columns and
the rows of its decoder have lengths that converge, so the noise stays below a constant for ever:

    ‖C e_1‖² = 1 + Σ_ij om_i·om_j/(1 - th_i·th_j),     error_k² = Σ_{l<k} (β^l·b_l)².

The square root `C(x) = (1 - β·x)^(-1/2)`, whose coefficients are those of `taciturn.SquareRoot` times β^k, has the
constant `(2/pi)·K(β)` at mu = 1, K the complete elliptic integral of modulus β. That is about `ln(8·W)/pi` for a window
of W releases, `β = exp(-1/W)`; a fit for `2·W` releases with four buffers is within 1 % of it. (Decayed sums: Bolot et
al., *Private decayed predicate sums on streams*, 2013; Henzinger, Upadhyay, Upadhyay, *A unifying framework for
differentially private sums under continual observation*, 2023.)

**Influence ends.** The shift of all encoded rows together is finite for ever. But each later row would also be rounded
differently, and drawn by a sampler that errs, so that these two costs would grow with the stream. So encoding forgets
exactly. Rows come in periods of `4·L`, `L = 32·W`. In the last L rows of a period a second set of buffers is kept, of
these rows alone; at its end that takes the place of the first set, and is emptied.

*Claim.* At most `5·L` encoded rows depend on x_l, and they do as in the strategy without an end, or not at all.
*Proof.* A row that is not among the last L of its period is in the first set of buffers only, which is replaced at the
end of that period, after less than `4·L` rows. A row among the last L is in both, and in the first again at the end of
its period. It stays until the end of the next one, `L + 4·L` rows at most: the set that replaces the first then was
empty when that period began. Buffers that do not hold x_l are the same in both worlds to the last bit, as all that
enters them is. ∎ Entries of C are not negative, so `sensitivity` and `sensitivity_to` of the strategy without an end
are bounds. Rounding errors and draws are charged for `5·L` encoded rows for each row of the unit of privacy: all others
have the same law in both worlds, given what was released before. That holds for every value of what was released
before, since noise is drawn afresh for each encoded row: also if the row in which the worlds differ is placed by it.

Of the rounding errors of an encoded row, those of a coefficient a rows later are `2a + m` units in the last place, up
to terms in their squares. Windows for which the errors exceed the sensitivity are rejected, so that they are small.

What decoding loses is no matter of privacy: a row that is dropped is older than L, and weighs less than `exp(-32)`,
1.3e-14.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array, Arrays, fixed
from taciturn.kernel.errors import InvalidInput
from taciturn.kernel.mechanisms.blt import (
    Numbers,
    Weights,
    checked_arrays,
    coefficients,
    pairs,
    pattern_squares,
    restored_numbers,
)
from taciturn.kernel.mechanisms.prefix_sum import FOR_EVER, LastingSums, distance
from taciturn.kernel.mechanisms.strategy import LastingCoder
from taciturn.kernel.stream.protocols import damaged

_SLOW = "decays should fall from below that of a sum"
_PERIOD = 4  # of as many times the rows that are kept


@dataclass(frozen=True)
class DecayedCoder(LastingCoder):
    """The strategy of a decay and two sets of decays, which are those of a BLT times `decay`.

    Parameters
    ----------
    decay : float
        β, of a sum from one release to the next.
    decays, inverse_decays : tuple of float
        Of C and of its inverse.
    kept : int
        L: rows after which a row may be dropped.
    weights : optional
        Those of the decays, for a stream that began on another machine.
    """

    decay: float
    decays: tuple[float, ...]
    inverse_decays: tuple[float, ...]
    kept: int
    weights: Weights | None = None
    arrays: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", checked_arrays(self.decays, self.inverse_decays, self.weights))
        if not self.decays[0] <= self.decay:
            raise InvalidInput(f"{_SLOW}. Take them from a fit, or from the state of a stream.")

    @cached_property
    def both(self) -> tuple[Array, Array]:
        """Decays and weights of both sets of buffers as one; the second adds nothing to encoded rows."""
        th, _, om, _ = self.arrays
        return fixed(np.concatenate([th, th])), fixed(np.concatenate([om, np.zeros_like(om)]))

    @property
    def period(self) -> int:
        """Rows after which the buffers are exchanged."""
        return _PERIOD * self.kept

    @property
    def life(self) -> int:
        """Encoded rows that depend on a row, at most."""
        return self.period + self.kept

    @cached_property
    def numbers(self) -> Arrays:
        """Decays of C and of its inverse, and their weights: four rows."""
        return {"decays": fixed(np.array(self.arrays))}

    @classmethod
    def restored(cls, here: DecayedCoder, buffers: int, numbers: Any) -> DecayedCoder:
        """The strategy of such numbers, validated, with the decay and the period of the one that is made here."""
        th, ph, given = restored_numbers(buffers, numbers)
        if not th[0] <= here.decay:
            raise damaged(_SLOW)
        return cls(here.decay, th, ph, here.kept, given)

    @property
    def integer(self) -> bool:
        return False

    @property
    def sensitivity(self) -> float:
        """`‖C e_1‖` without an end; sums of positive terms, so rounding errors stay relative."""
        th, _, om, _ = self.arrays
        return math.sqrt(1.0 + float(np.sum(pairs(om) / _less(th)))) * (1.0 + 1e-12)

    def sensitivity_to(self, participation: Participation) -> float:
        """The norm of the worst pattern, without an end (`toeplitz_sensitivity`)."""
        if participation == ONCE:
            return self.sensitivity
        th, _, om, _ = self.arrays
        rounding = 1e-12 + 2.0**-48 / (1.0 - self.decay)
        return math.sqrt(float(pattern_squares(om, th, FOR_EVER, participation))) * (1.0 + rounding)

    def sums(self, rows: Array) -> Array:
        """Decayed sums: β times the sum before is added to each row."""
        sums = np.array(rows, dtype=np.float64)
        for k in range(1, len(sums)):
            sums[k] += self.decay * sums[k - 1]
        return sums

    @property
    def row_norm(self) -> float:
        th, _, om, _ = self.arrays
        return float(1.0 + np.sum(om / (1.0 - th))) * (1.0 + 1e-12)

    @property
    def rounding_error(self) -> float:
        """`u·(1 + Σ_{a>0} c_a·(2a + m))`, u = 2⁻⁵³, as for a BLT, where `Σ a·th^(a-1)` is `1/(1 - th)²`."""
        th, _, om, _ = self.arrays
        K = 1.0 / (1.0 - th)
        return 2.0**-53 * (1.0 + 1e-6) * float(1.0 + np.sum(om * K * (2.0 * K + len(om))))

    @cached_property
    def terms(self) -> tuple[Array, Array]:
        """Weights and rates of the geometric series in the decoder's coefficients, `β^l·(b + Σ be_i·th'_i^l)`."""
        b, be = coefficients(self.arrays[0] / self.decay, self.arrays[1] / self.decay)
        return fixed(np.concatenate([[b], be])), fixed(np.concatenate([[self.decay], self.arrays[1]]))

    def error(self, k: ArrayLike) -> Array:
        """The length of row k of the decoder; it grows to a limit, that of k = inf."""
        terms, rates = self.terms
        with np.errstate(divide="ignore"):
            logs = np.log(rates)
        k = np.asarray(k, dtype=np.float64)
        gone = -np.expm1(k[..., None, None] * (logs[:, None] + logs[None, :]))
        return np.asarray(np.sqrt(np.einsum("...ij,ij->...", gone, pairs(terms) / _less(rates))))

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        """Two sets of buffers, one after the other, on the secret side."""
        m = len(self.decays)
        return {"buffers": np.zeros((2 * m, size))}, {"buffers": np.zeros((m, size)), "sum": np.zeros(size)}

    def stretches(self, k: int, count: int) -> Iterator[tuple[int, int, bool, bool]]:
        """Rows k to k + count - 1, counted from 0, in stretches: the first, the one after the last, and two facts.

        These are whether the second set of buffers is kept, and whether it takes the place of the first afterwards.

        >>> from taciturn.kernel.accounting.unit import ONCE
        >>> coder = DecayedCoder(0.5, (0.4,), (0.1,), kept=2)
        >>> list(coder.stretches(5, 6))
        [(0, 2, False, False), (2, 4, True, True), (4, 6, False, False)]
        """
        start = 0
        while start < count:
            place = (k - 1 + start) % self.period
            both = place >= self.period - self.kept
            left = (self.period if both else self.period - self.kept) - place
            end = min(count, start + left)
            yield start, end, both, both and end - start == left
            start = end

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """`x_k + Σ om_i·s_i`, and then `s_i ← th_i·s_i + x_k`, in the second set, too, if that is kept."""
        th, _, om, _ = self.arrays
        m = len(th)
        (_, _, both, ends), *_ = self.stretches(k, 1)
        first, second = secret["buffers"][:m], secret["buffers"][m:]
        encoded = (row + om @ first)[None, :]
        first = th[:, None] * first + row
        second = th[:, None] * second + row if both else second
        return {
            "buffers": exchanged(np.concatenate([first, second])) if ends else np.concatenate([first, second])
        }, encoded

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The inverse in the same way, and its decayed sum."""
        _, ph, _, om = self.arrays
        buffers = public["buffers"]
        row = noisy[0]
        sum_ = self.decay * public["sum"] + row + om @ buffers
        return {"buffers": ph[:, None] * buffers + row, "sum": sum_}, sum_


def exchanged(buffers: Array) -> Array:
    """The second set of buffers in the place of the first, and an empty one in its own."""
    m = len(buffers) // 2
    return np.concatenate([buffers[m:], np.zeros_like(buffers[m:])])


def _less(rates: Array) -> Array:
    """`1 - r_i·r_j` of all pairs, without cancellation."""
    return np.asarray((1.0 - rates)[:, None] + rates[:, None] * (1.0 - rates)[None, :])


class Lasting(LastingSums):
    """Decayed sums of a stream that may never end."""

    def examples_of(self, k: ArrayLike, rounds: Any) -> Any:
        """The sum of weights: `effective`."""
        return self.effective(k)

    def effective(self, k: ArrayLike) -> Array:
        """The number of examples that the k-th sum stands for: a sum of weights, and a constant in the long run.

        At a horizon there may be fewer examples since the last release than before the others.

        >>> from taciturn import DecayedBLT, Privacy, every, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), strategy=DecayedBLT(1000), schedule=every(10))
        >>> private.calibrated.effective([1, 100, 10**6]).round(1).tolist()
        [10.0, 635.3, 1005.0]
        """
        k = np.asarray(k, dtype=np.float64)
        rate = -distance(self.timetable) / self._window
        weights = distance(self.timetable) * np.expm1(rate * k) / math.expm1(rate)
        horizon = math.inf if self.timetable.horizon is None else float(self.timetable.horizon)
        return np.asarray(weights - np.maximum(distance(self.timetable) * k - horizon, 0.0))

    @property
    def _window(self) -> float:
        coder: Any = self.coder
        return -distance(self.timetable) / math.log(coder.decay)
