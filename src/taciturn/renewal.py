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

A released model says how much each feature counts, for labels in certain units. A successor that starts from it must
have the same features, target and bounds, or its first models would be another model's weights on other columns. So
hashes of these public settings are compared, part by part; a part that one of the two does not know is not.

How a stream is closed and its successor opened so that neither is lost, is in `taciturn.runs.renewal`.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taciturn.errors import InvalidInput, StateConflict
from taciturn.kernel.accounting.cost import FREE, total
from taciturn.kernel.accounting.guarantee import Charge, Guarantee
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.stream.state import SIMULATION

if TYPE_CHECKING:
    from taciturn.store import Saved, Store


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

    @classmethod
    def of(
        cls, point: Any, guarantee: Guarantee, means: tuple[tuple[str, str], ...] = (), before: Renewal | None = None
    ) -> Renewal:
        """What is left by a stream with this guarantee; `before` is what it started from, if it follows another."""
        return cls(tuple(point), (*(() if before is None else before.charges), Charge.of(guarantee)), means)

    def check_means(self, means: tuple[tuple[str, str], ...]) -> None:
        """Reject a successor whose weights mean something else; warn if what they meant is not known."""
        if not self.means:
            warnings.warn(
                "what renew= takes does not say which features, target and bounds its stream had, as it was made by an "
                "earlier version or by hand, so they are not compared. Check that they are the same.",
                stacklevel=7,
            )
        _check_same("this model", dict(self.means), dict(means))

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


# Streams in a store.

CHARGE, _RENEWAL = "charge", "renewal"
"""Keys in what is public about a stream: what it costs, and what it starts from."""


def renewal_of(
    store: Store,
    closing: Saved,
    delta: float,
    k: int | None = None,
    *,
    seeded: bool,
    means: tuple[str | None, str | None] = (None, None),
) -> Renewal:
    """What the successor of a stored stream starts from; an error if it may not follow this one.

    Parameters
    ----------
    store, closing
        Where the stream is that ends, and the stream.
    delta : float
        Its delta, if it does not say so itself.
    k : int, optional
        The release that the successor starts from; by default the last one that is committed.
    seeded : bool
        Whether the successor is a simulation, as the stream has to be then.
    means : tuple of str
        A hash of what the weights of the two mean, or None where it is not known.
    """
    _check_same("the contract", *({} if each is None else {"model": each} for each in means))
    if seeded != (SIMULATION in closing.lineage.split()):
        raise StateConflict("a simulation is followed by a simulation, with --seed, and a private run by one without.")
    k = closing.position[2] if k is None else k
    found = store.chunk(closing.lineage, k) if k else None
    if found is None:
        raise InvalidInput(f"{closing.name} has released nothing, so there is no model to start from. Learn more rows.")
    chunk, _ = found
    model = json.loads(chunk.content.split(b"\n")[k - chunk.first])["model"]
    unit = str(closing.about.get("unit", "example"))
    charge = Charge(unit, delta, ((closing.neighbours, closing.reserved),))
    if CHARGE in closing.about:
        charge = Charge.from_data(closing.about[CHARGE])
    before = stored_renewal(closing)
    charges = () if before is None else before.charges
    if closing.earlier != FREE:  # the streams that a restored backup had lost
        charges = (*charges, Charge(unit, charge.delta, ((closing.neighbours, closing.earlier),)))
    return Renewal(tuple(model), (*charges, charge))


def stored_renewal(saved: Saved | None) -> Renewal | None:
    """What a stored stream has started from; None if it follows no other."""
    if saved is None or _RENEWAL not in saved.about:
        return None
    return Renewal.from_data(saved.about[_RENEWAL])


def about_successor(renewal: Renewal, closing: Saved) -> dict[str, Any]:
    """What is public about the successor of a stored stream."""
    return {_RENEWAL: {**renewal.as_data(), "lineage": closing.lineage}}


def follows(saved: Saved, closing: Saved) -> bool:
    """Whether one stored stream is the successor of another."""
    return bool(saved.about.get(_RENEWAL, {}).get("lineage") == closing.lineage)


def _check_same(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Reject weights of which a part means something else; what one of the two does not know is not compared."""
    differs = [part for part, value in now.items() if before.get(part, value) != value]
    if differs:
        words = " and ".join(dict.fromkeys(_WORDS[part] for part in differs if part in _WORDS))
        raise InvalidInput(
            f"{what} declares other features, another target or other bounds than that of the stream which is to be "
            f"followed, so its weights mean nothing here{words and f': {words}'}. Declare them as they were; budget, "
            "horizon, method and forget may change."
        )


_WORDS = {
    "columns": "the columns differ",
    "names": "the names of the features, or their order, differ",
    "target": "the classes, or the range of the labels, differ",
    "bounds": "the feature bound, or whether there is an intercept, differs",
    "map": "the map of the features differs",
}


def _listed(epsilons: Mapping[str, float]) -> str:
    """Epsilons by relation, in words."""
    known = (
        (f"epsilon = {rounded_up(value, 4)}" if math.isfinite(value) else "no finite epsilon", name)
        for name, value in epsilons.items()
    )
    return " and ".join(f"{epsilon} ({name})" for epsilon, name in known)
