"""Renewal: what a stream takes from the one that it follows, and what is promised to someone who is in both.

A stream ends: its horizon is reached, its budget period is over, or its settings are to change. Its successor may start
from the last *released* model. That model is public, so what the successor does with it is post-processing, and is
covered by what the first stream has promised already. What adds is what both learn from the same people.

**Claim.** Let streams 1, …, n each satisfy mu_i-GDP for a unit, whatever the other streams have published. Then all
their releases together satisfy `sqrt(Σ mu_i²)`-GDP for a unit whose rows are in all of them, and
`sqrt(Σ_{i in S} mu_i²)` for one whose rows are in the streams S alone. *Proof.* Two worlds that differ in the rows of
that unit differ in the streams S alone. Given what was published before, a stream outside of S has the same law in
both: its rows, its settings and the model that it started from, which was published, are the same. Streams of S compose
adaptively: costs add. ∎ Of a stream whose cost is known as one (epsilon, delta) alone, such as that of a search, both
add to those of the others.

So a row that was given to one of two streams is protected as that stream says, and a row that is given to both, or a
user with rows in both, by the sum. The unit is the weaker of the two, if one protects users and the other examples:
what protects all rows of a user protects each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taciturn._util.output import rounded_up
from taciturn.accounting.cost import total
from taciturn.accounting.guarantee import Charge, Guarantee
from taciturn.errors import InvalidInput


@dataclass(frozen=True)
class Renewal:
    """What the successor of a stream starts from: its last released model, and what the streams so far cost; public.

    Attributes
    ----------
    point : tuple of float
        The released model.
    charges : tuple of Charge
        Of the streams so far, the last one at the end.
    means : tuple of (str, str)
        Parts of what the weights of the model mean, such as its columns and its target, and a hash of each; empty if
        that is not known. A run is compared by its contract instead.

    Examples
    --------
    >>> from taciturn import Privacy, private_sum
    >>> first, second = (private_sum(1, 1.0, Privacy(epsilon, 1e-6), 100).guarantee for epsilon in (1.0, 0.5))
    >>> promise = Renewal((0.5,), (Charge.of(first),)).promise(second)
    >>> {relation: round(epsilon, 2) for relation, epsilon in promise.in_all.items()}
    {'replace': 1.14, 'zero-out': 0.54}
    """

    point: tuple[float, ...]
    charges: tuple[Charge, ...]
    means: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", tuple(map(float, self.point)))
        if not self.charges or not all(map(math.isfinite, self.point)):
            raise InvalidInput("a renewal has a released model and what its stream cost. Take it from a fitted model.")

    def promise(self, guarantee: Guarantee) -> Promise:
        """What is promised to someone whose rows are in all of these streams and in one with this guarantee."""
        return Promise((*self.charges, Charge.of(guarantee)))

    def after(self, point: Any, guarantee: Guarantee, means: tuple[tuple[str, str], ...] = ()) -> Renewal:
        """The renewal of the successor, once that is followed, too."""
        return Renewal(tuple(point), (*self.charges, Charge.of(guarantee)), means)

    def as_data(self) -> dict[str, Any]:
        """As JSON can hold it, without rounding."""
        data = {"point": list(self.point), "charges": [charge.as_data() for charge in self.charges]}
        return {**data, "means": dict(self.means)} if self.means else data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Renewal:
        """What `as_data` gave."""
        means = tuple((str(part), str(value)) for part, value in data.get("means", {}).items())
        return cls(tuple(data["point"]), tuple(map(Charge.from_data, data["charges"])), means)


@dataclass(frozen=True)
class Promise:
    """What is promised to someone whose rows are in all of several streams, and in one of them alone."""

    charges: tuple[Charge, ...]

    @property
    def delta(self) -> float:
        """The delta of all of them together: the largest; those of plain costs add."""
        plain = math.fsum(charge.delta for charge in self.charges if charge.plain)
        return plain + max((charge.delta for charge in self.charges if not charge.plain), default=0.0)

    @property
    def unit(self) -> str:
        """Whose rows: an example, unless all streams protect the same unit."""
        units = {charge.unit for charge in self.charges}
        return units.pop() if len(units) == 1 else "example"

    @property
    def in_all(self) -> dict[str, float]:
        """Epsilon at that delta for rows in all streams, by each relation under which all of them are known."""
        by_stream = [dict(charge.costs) for charge in self.charges]
        shared = [name for name in by_stream[-1] if all(name in each for each in by_stream)]
        return {name: total(each[name] for each in by_stream).epsilon(self.delta) for name in shared}

    @property
    def in_one(self) -> list[dict[str, float]]:
        """The same for rows in one stream alone, stream by stream, each at its own delta."""
        return [{name: cost.epsilon(each.delta) for name, cost in each.costs} for each in self.charges]

    def as_data(self) -> dict[str, Any]:
        """As JSON can hold it: None for infinite epsilons."""

        def known(epsilons: Mapping[str, float]) -> dict[str, float | None]:
            return {name: value if math.isfinite(value) else None for name, value in epsilons.items()}

        return {
            "unit": self.unit,
            "delta": self.delta,
            "streams": len(self.charges),
            "in_all": known(self.in_all),
            "in_one": [known(each) for each in self.in_one],
        }

    def __str__(self) -> str:
        count = len(self.charges)
        number = "both streams" if count == 2 else f"all {count} streams"
        who = {"example": "A row that is", "user": "A user with rows"}.get(self.unit, f"One {self.unit} with rows")
        if not self.in_all:
            return (
                f"{who} in {number} has no common promise: they count different neighbours. State the same neighbours "
                "in both contracts."
            )
        each = ", or ".join(
            f"for the last one {_listed(e)}" if i == count - 1 else f"for stream {i + 1} {_listed(e)}"
            for i, e in enumerate(self.in_one)
        )
        sums = "epsilon and delta of plain costs add" if any(charge.plain for charge in self.charges) else "mu² adds"
        return (
            f"{who} in {number} is promised {_listed(self.in_all)} at delta = {self.delta:g} for all of their releases "
            f"together: {sums}. One in a single stream is promised what that says: {each}. The model that the "
            "successor starts from was released, and adds nothing."
        )


def _listed(epsilons: Mapping[str, float]) -> str:
    """Epsilons by relation, in words."""
    known = (
        (f"epsilon = {rounded_up(value, 4)}" if math.isfinite(value) else "no finite epsilon", name)
        for name, value in epsilons.items()
    )
    return " and ".join(f"{epsilon} ({name})" for epsilon, name in known)
