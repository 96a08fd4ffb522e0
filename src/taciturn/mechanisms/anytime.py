"""Running sums of a stream of unknown length, with memory that does not grow: see `taciturn.mechanisms.epochs`."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn._util.arrays import Arrays
from taciturn.errors import InvalidInput, between_0_and_1, integer
from taciturn.mechanisms.blt import BLT
from taciturn.mechanisms.epochs import EPOCHS, EpochCoder
from taciturn.mechanisms.prefix_sum import PrefixSum


@dataclass(frozen=True)
class Anytime(PrefixSum):
    """Running sums without a horizon, by doubling epochs of BLT strategies.

    Parameters
    ----------
    buffers : int
        Rows of memory for each of the two strategies, on either side.
    share : float
        Of the budget, for the totals of past epochs.

    Examples
    --------
    >>> from taciturn import Anytime
    >>> round(float(Anytime().errors(2**12).max()), 1) < 6.0
    True
    """

    buffers: int = 5
    share: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "buffers", BLT(self.buffers).buffers)
        object.__setattr__(self, "share", between_0_and_1("share", self.share))

    def coder(self, n: int | None) -> EpochCoder:
        """The same for every n, up to 2²⁴ - 1 rows: as many as 24 epochs hold."""
        return EpochCoder(self.buffers, self.share, self._most(n))

    def restored_coder(self, n: int | None, numbers: Arrays) -> EpochCoder:
        """The same, of the decays and weights that a stream began with."""
        return EpochCoder.with_numbers(self.buffers, self.share, self._most(n), numbers)

    def _most(self, n: int | None) -> int:
        """How many rows there can be."""
        n = 2**23 if n is None else integer("the number of releases", n)
        if n >= 2**EPOCHS:
            raise InvalidInput(
                f"Anytime holds {2**EPOCHS - 1:,} releases, got {n:,}. Use BLT(), or publish less often."
            )
        return n
