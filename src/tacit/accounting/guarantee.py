"""The sentence a reviewer wants: what is claimed, what is delivered, against whom, and on what conditions."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.accounting.events import GaussianEvent
from tacit.accounting.exact import Privacy

_RELATIONS = {
    "replace": "replacing any one example by another",
    "zero-out": "removing the influence of any one example",
}


@dataclass(frozen=True)
class Guarantee:
    """A claim beside the truth, both as values; printing it gives words and numbers.

    Attributes
    ----------
    claimed : Privacy
        What the calibration promises for the whole published sequence.
    delivered : GaussianEvent
        What the noise really added delivers, exactly.
    neighbours : {"replace", "zero-out"}
        What one person may change.
    calibration : str
        `"exact"`, or which reading of the paper chose the noise.
    simulated : bool
        Whether the noise comes from a seed, in which case nobody is protected.

    Examples
    --------
    >>> print(Guarantee(Privacy(1.0, 1e-6), GaussianEvent(0.05), "replace"))  # doctest: +ELLIPSIS
    The whole published sequence is (1, 1e-06)-differentially private: ...
    """

    claimed: Privacy
    delivered: GaussianEvent
    neighbours: str
    calibration: str = "exact"
    simulated: bool = False

    @property
    def holds(self) -> bool:
        """Whether the noise delivers at least what is claimed."""
        return self.delivered.within(self.claimed)

    @property
    def epsilon(self) -> float:
        """The exact epsilon at the claimed delta, rounded up."""
        return self.delivered.epsilon(self.claimed.delta)

    def __str__(self) -> str:
        claim = f"({self.claimed.epsilon:g}, {self.claimed.delta:g})"
        exact = f"Exactly: epsilon = {self.epsilon:.4g} at that delta (mu = {self.delivered.mu:.4g})"
        change = _RELATIONS[self.neighbours]
        if self.simulated:
            opening = f"simulation: not private. With secret noise the sequence would be {claim}"
        elif self.holds:
            opening = f"The whole published sequence is {claim}"
        else:
            opening = f"BROKEN: the {self.calibration} noise does not make the published sequence {claim}"
        return (
            f"{opening}-differentially private: {change} changes the probability of any outcome by at most a factor "
            f"exp(epsilon), plus delta. The number and order of examples is public. {exact}."
        )
