"""The privacy guarantee as a value and as a sentence: claim, delivered cost, neighbour relation and conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.accounting.gdp import SMALLEST, Privacy
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.accounting.unit import EXAMPLE, Unit, User

RestsOn = Literal["enforced", "proven", "unverified"]
"""What the bound on a row's influence rests on: see `Guarantee.rests_on`."""

_RELATIONS = {
    "replace": ("replacing any one example by another", "replacing all rows of any one user{} by others"),
    "zero-out": ("zeroing out any one example", "zeroing out all rows of any one user{}"),
    "label": ("changing the label of any one example", "changing the labels of all rows of any one user{}"),
}
_OTHERS = {"replace": "zero-out", "zero-out": "replace"}
_BASES = {
    "enforced": "enforced: what is added for it is clipped, whatever is computed from it",
    "proven": "proven, in the documentation of its learner",
}
_SAMPLER_ENDS = 12
"""Standard deviations up to which Gaussian noise is drawn: `REACH` of `taciturn.kernel.noise.sampling`."""


@dataclass(frozen=True)
class Guarantee:
    """The claimed budget and the delivered cost, both as values; printing it gives a sentence.

    Attributes
    ----------
    claimed : Privacy
        The budget that the calibration claims for the published sequence.
    delivered : Cost
        The cost of the noise at the learner's certificate, the sampler's imperfection included. Where no two streams
        reach the certificate in every round, the true cost is lower still.
    neighbours : {"replace", "zero-out", "label"}
        What may change of the protected unit.
    calibration : str
        `"exact"`, or which reading of the paper chose the noise.
    simulated : bool
        Whether the noise comes from a seed, in which case there is no privacy.
    unit : Example or User
        Whose data is protected.
    other : Cost, optional
        What the same noise delivers under the other relation, zero-out for replace and replace for zero-out, from the
        learner's certificate for that; None where none is known.
    rests_on : {"enforced", "proven", "unverified"}
        What the bound on the influence of one row rests on: every contribution is clipped to it, whatever is computed
        from a row; a proof in this package; or a proof that nobody but its author answers for.
    by : str
        Whose proof it is, where it is unverified.

    Examples
    --------
    >>> from taciturn.kernel.accounting.cost import gaussian
    >>> print(Guarantee(Privacy(1.0, 1e-6), gaussian(0.05), "replace"))  # doctest: +ELLIPSIS
    The whole published sequence is (1, 1e-06)-differentially private: ...
    >>> Guarantee(Privacy(1.0, 1e-6), gaussian(0.056), "replace", other=gaussian(0.014)).epsilons
    {'replace': 0.99..., 'zero-out': 0.47...}
    """

    claimed: Privacy
    delivered: Cost
    neighbours: str
    calibration: str = "exact"
    simulated: bool = False
    unit: Unit = EXAMPLE
    other: Cost | None = None
    rests_on: RestsOn = "unverified"
    by: str = ""

    @cached_property
    def proven(self) -> bool:
        """Whether the noise, if it is secret, delivers at least what is claimed."""
        return self.delivered.within(self.claimed)

    @property
    def holds(self) -> bool:
        """Whether it is proven, and the noise is secret: seeded noise gives no privacy."""
        return self.proven and not self.simulated

    @cached_property
    def epsilon(self) -> float:
        """The proven epsilon at the claimed delta, rounded up; for a simulation, that of secret noise."""
        return self.delivered.epsilon(self.claimed.delta)

    @cached_property
    def epsilons(self) -> dict[str, float]:
        """The proven epsilon at the claimed delta by neighbour relation: this one, and the other if it is known."""
        if self.other is None:
            return {self.neighbours: self.epsilon}
        return {self.neighbours: self.epsilon, _OTHERS[self.neighbours]: self.other.epsilon(self.claimed.delta)}

    def as_data(self) -> dict[str, float | None]:
        """`epsilons` as JSON can hold them: None for infinite ones."""
        return {name: epsilon if math.isfinite(epsilon) else None for name, epsilon in self.epsilons.items()}

    @cached_property
    def _truth(self) -> str:
        """The delivered cost in words; it says so if epsilon is infinite only because the sampler's noise is truncated.

        Two rows nearly as many standard deviations apart as the noise reaches may have outcomes that only one of them
        can give, and what is proven of their probability (`Cost.extra_delta`) alone exceeds delta.
        """
        if math.isfinite(self.epsilon):
            told = _rounded_up(self.epsilon)
            if self.proven and float(told) > self.claimed.epsilon:
                told = f"{self.claimed.epsilon:.12g}"  # which is an upper bound, too
            return f"epsilon = {told} at that delta ({self.delivered})"
        endless = replace(self.delivered, extra_delta=0.0).epsilon(self.claimed.delta)
        if self.delivered.gaussian and math.isfinite(endless):
            return (
                f"no finite epsilon at that delta with this sampler, whose noise ends at {_SAMPLER_ENDS} "
                f"standard deviations ({self.delivered}; noise without an end would deliver epsilon = "
                f"{_rounded_up(endless)})"
            )
        return f"no finite epsilon at that delta ({self.delivered})"

    def __str__(self) -> str:
        change = self.change
        claim = f"({self.claimed.epsilon:.12g}, {self.claimed.delta:.12g})"
        truth = self._truth
        if not self.proven:
            seeded = " Simulation: not private." if self.simulated else ""
            return (
                f"BROKEN: the {self.calibration} noise claims {claim}-differential privacy, and what it provably "
                f"delivers is {truth}, for {change}.{self._elsewhere} {self.basis}{seeded}"
            )
        opening = "Simulation: not private. With secret noise the" if self.simulated else "The"
        verb = "would be" if self.simulated else "is"
        return (
            f"{opening} whole published sequence {verb} {claim}-differentially private: {change} changes the "
            f"probability of any outcome by at most a factor exp(epsilon), plus delta. {self._public} What the noise "
            f"provably delivers: {truth}.{self._elsewhere} {self.basis}"
        )

    @property
    def basis(self) -> str:
        """What the bound on the influence of one row rests on, as a sentence.

        >>> from taciturn.kernel.accounting.cost import gaussian
        >>> Guarantee(Privacy(1.0, 1e-6), gaussian(0.05), "replace", rests_on="unverified", by="A. Author").basis
        'The bound on the influence of one row is unverified: it rests on A. Author.'
        """
        if self.rests_on == "unverified":
            return f"The bound on the influence of one row is unverified: it rests on {self.by or 'its author alone'}."
        return f"The bound on the influence of one row is {_BASES[self.rests_on]}."

    @property
    def change(self) -> str:
        """What may change between neighbours, in words."""
        return self._change(self.neighbours)

    def _change(self, neighbours: str) -> str:
        of_example, of_user = _RELATIONS[neighbours]
        if not isinstance(self.unit, User):
            return of_example
        period = self.unit.period
        if isinstance(period, int):
            return of_user.format(f" in one period of {period:,} rounds")
        return of_user.format("" if period is None else f" in one {period}")

    @property
    def _elsewhere(self) -> str:
        """What the same noise delivers under the other relation, as a sentence with a space before it."""
        if self.other is None:
            return ""
        relation = _OTHERS[self.neighbours]
        epsilon = self.epsilons[relation]
        known = f"epsilon = {_rounded_up(epsilon)}" if math.isfinite(epsilon) else "no finite epsilon"
        return f" For {self._change(relation)} ({relation}), the same noise delivers {known} at that delta."

    @property
    def _public(self) -> str:
        """What is not protected, in words."""
        features = "The features are public, for everyone who sees a release. " if self.neighbours == "label" else ""
        if not isinstance(self.unit, User):
            return (
                f"{features}The number and order of examples are public. The unit is an example: a person with several "
                "is protected less."
            )
        own = "each protected as a user's is" if self.unit.without_id == "own" else "without influence"
        return (
            f"{features}The unit is {self.unit}: more rows than that keep their round and have no influence, and rows "
            f"without an id are {own}. The number and order of rows are public."
        )


def least_certain(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee whose bound rests on the least, of those of the parts of one stream: all of them must hold."""
    order = get_args(RestsOn)
    return max(guarantees, key=lambda each: order.index(each.rests_on))


def _rounded_up(epsilon: float) -> str:
    return rounded_up(epsilon, digits=4)


@dataclass(frozen=True)
class Charge:
    """What one stream costs: the name of its unit, its delta, and its cost by neighbour relation."""

    unit: str
    delta: float
    costs: tuple[tuple[str, Cost], ...]

    @classmethod
    def of(cls, guarantee: Guarantee) -> Charge:
        """The charge of a stream with this guarantee: of all that it can ever publish."""
        costs = [(guarantee.neighbours, guarantee.delivered)]
        if guarantee.other is not None:
            costs.append((_OTHERS[guarantee.neighbours], guarantee.other))
        return cls(guarantee.unit.name, guarantee.claimed.delta, tuple(costs))

    @property
    def plain(self) -> bool:
        """Whether part of it is known as one (epsilon, delta) alone, as of a search: such deltas add."""
        return any(cost.plain_delta > SMALLEST for _, cost in self.costs)

    def as_data(self) -> dict[str, Any]:
        """As JSON can hold it, without rounding."""
        costs = {relation: [part.hex() for part in cost.parts] for relation, cost in self.costs}
        return {"unit": self.unit, "delta": self.delta, "costs": costs}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Charge:
        """What `as_data` gave."""
        costs = ((str(name), Cost(*map(float.fromhex, parts))) for name, parts in data["costs"].items())
        return cls(str(data["unit"]), float(data["delta"]), tuple(costs))
