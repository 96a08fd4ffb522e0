"""The joint noise of decayed sums that are decoded from one encoding, at one release and from one release to a later.

A BLT encodes rows x as `y = C·x + z`, z white. Decoding first undoes C, by buffers, and what it finds of row k is
`x_k + e_k`, e the noise `C⁻¹·z`. Any decayed sum of the rows follows by `s ← β·s + x_k + e_k`: those of *all* windows,
whichever window C was fitted for, and all of it is post-processing. Buffers b and the noise of the sums s obey

    e_k = z_k + om·b,     b ← th'·b + z_k,     s_j ← β_j·s_j + e_k,

one linear recursion with a white input, `v ← F·v + g·z_k`. So the covariance of v after k rows is
`P_k = Σ_{l<k} F^l·g·gᵀ·(F^l)ᵀ`, which doubles: `P_{a+b} = F^b·P_a·(F^b)ᵀ + P_b`. And what v was h rows ago is in v as
`F^h` says: the covariance of the two is `F^h·P_{k-h}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder
from taciturn.kernel.stream.protocols import Calibrated


@dataclass(frozen=True, eq=False)
class DecodedNoise:
    """The covariance of an entry of several decayed sums, decoded from one strategy, at noise of variance 1.

    Parameters
    ----------
    coder : BLTCoder or DecayedCoder
        The strategy.
    decays : tuple of float
        β of each sum, from one release to the next; 1 for a sum that forgets nothing.

    Examples
    --------
    >>> from taciturn import DecayedBLT
    >>> from taciturn.kernel.accounting.unit import ONCE
    >>> coder = DecayedBLT(1000).coder_every(10, ONCE)
    >>> noise = DecodedNoise(coder, (coder.decay, 0.9))
    >>> bool(np.isclose(noise.at(500)[0, 0], float(coder.error(500)) ** 2))
    True
    """

    coder: BLTCoder | DecayedCoder
    decays: tuple[float, ...]

    @cached_property
    def _recursion(self) -> tuple[Array, Array]:
        """F and g; the sums come last."""
        _, ph, _, om = self.coder.arrays
        m, count = len(ph), len(self.decays)
        F = np.zeros((m + count, m + count))
        F[:m, :m] = np.diag(ph)
        F[m:, :m] = om
        F[m:, m:] = np.diag(self.decays)
        return F, np.ones((m + count, 1))

    def _after(self, k: int) -> tuple[Array, Array]:
        """P_k and F^k, by the digits of k."""
        F, g = self._recursion
        P, power = np.zeros_like(F), np.eye(len(F))
        for digit in f"{k:b}":
            P, power = P + power @ P @ power.T, power @ power
            if digit == "1":
                P, power = F @ P @ F.T + g @ g.T, F @ power
        return P, power

    def at(self, k: int) -> Array:
        """The covariance of the sums of release k, a row and a column for each."""
        count = len(self.decays)
        return np.asarray(self._after(k)[0][-count:, -count:])

    def from_to(self, k: int, later: int) -> Array:
        """The covariance of the sums of release `later`, by row, with those of release k, by column.

        >>> from taciturn import BLT
        >>> noise = DecodedNoise(BLT().coder(100), (1.0,))
        >>> bool(np.isclose(noise.from_to(7, 7), noise.at(7)))
        True
        """
        count = len(self.decays)
        P, power = self._after(k)[0], self._after(later - k)[1]
        return np.asarray((power @ P)[-count:, -count:])


def linear_coder(calibrated: Calibrated | None) -> BLTCoder | DecayedCoder | None:
    """The strategy of a calibrated mechanism, if its decoded noise is known here; else None."""
    coder = None if calibrated is None else calibrated.coder
    return coder if type(coder) in (BLTCoder, DecayedCoder) else None


def must_be_linear(calibrated: Calibrated) -> BLTCoder | DecayedCoder:
    """The same, or an error."""
    if (coder := linear_coder(calibrated)) is None:
        raise InvalidInput(
            "other windows are decoded from sums by a BLT. Use DecayedBLT(10_000), by forget=10_000, or BLT()."
        )
    return coder
