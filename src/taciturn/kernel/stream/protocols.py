"""The certificate of a learner's sensitivity, and the protocols of learners and mechanisms."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.guarantee import RestsOn
from taciturn.kernel.accounting.unit import ONCE, Participation, Unit
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.errors import InvalidInput, StateConflict, expect, float_or_nan, integer
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.schedule import Timetable

Calibration = Literal["exact", "paper-printed", "paper-proven"]

MECHANISMS = {"l2/tail": "Gaussian", "l2/entry": "BLT", "range/tail": "Exponential"}
LEARNERS = {
    "l2/tail": "a learner whose statistic is its iterate (IGD, GIGA, FTL)",
    "l2/entry": "a learner whose statistics are sums (QFTL, FTRL)",
    "range/tail": "a learner whose statistic is the losses of candidates (EWOO)",
}


TOO_DEAR = "they cost more than the budget"
"""The error for calibrated numbers with too little noise."""


@dataclass(frozen=True)
class Certificate:
    """A bound on the sensitivity of a learner's statistics, as a value.

    Attributes
    ----------
    metric, reach : str
        `"l2"` (how far a statistic moves) or `"range"` (how far its entries move relative to each other); and `"tail"`
        (one example moves every later statistic, the one after t examples by at most `at(t)`) or `"entry"` (one example
        moves the statistic it is summed into, by at most `at(t)`, and no other).
    formula : str
        `at(t)` as text, without the share of rounding errors.
    bound : callable
        `at(t)` as a function: from an array of t to an array of bounds, rounding errors of the learner included. It
        rises or falls with t (entry): sums without a horizon ask for it at powers of two alone.
    magnitude : float
        The largest entry of an exact statistic (tail), or of one example's share of it (entry), for any data.
    moved_by : str
        What one example does, in words.
    lemma : str
        What proves it, and where.
    most : int, optional
        Examples up to which it is proven, for learners whose sums are exact up to there; None for any number.
    participation : Participation
        How often the protected unit takes part. `at(t)` is for each of its rows if one example moves one statistic
        (entry), and for all of them together otherwise (tail).
    norm : float, optional
        The largest l2 norm of one example's share of a statistic (entry), for any data, rounding errors of the learner
        included. Floating-point errors of a strategy are charged by it. None if only entries are bounded.
    steady : bool
        Whether `at(t)` and `most` hold for t the number of examples between two releases, and so in a stream that never
        ends: a statistic depends on the examples since the last release alone, and on released points (entry).
    rests_on : {"enforced", "proven", "unverified"}
        What the bound rests on: contributions are clipped to a form, and the bound is the form's, whatever is computed
        from a row; it is proven in this package, and smaller than clipping alone would make it, or for what is not
        clipped; or nobody but the author of the learner, or of its loss or set, has proven it.
    by : str
        Whose proof it is, where it is unverified.
    enforced_factor : float, optional
        How many times as large the bound, and so the noise, would be if it were enforced; None where it cannot be.

    Examples
    --------
    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)).certificate
    l2/tail, 10.991/(t+1)
    """

    metric: str
    reach: str
    formula: str
    bound: Callable[[Array], Array] = field(compare=False)
    magnitude: float
    moved_by: str
    lemma: str
    most: int | None = None
    participation: Participation = ONCE
    norm: float | None = None
    steady: bool = False
    rests_on: RestsOn = "unverified"
    by: str = ""
    enforced_factor: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", float_or_nan(self.magnitude))  # a mechanism rejects what is not finite
        for name in ("norm", "enforced_factor"):
            if (stated := getattr(self, name)) is not None:
                object.__setattr__(self, name, float_or_nan(stated))
        if self.most is not None:
            object.__setattr__(self, "most", integer("most", self.most))

    def __repr__(self) -> str:
        return f"{self.kind}, {self.formula}"

    @property
    def kind(self) -> str:
        """Metric and reach, which a mechanism must accept."""
        return f"{self.metric}/{self.reach}"

    def at(self, t: ArrayLike) -> Array:
        """The bound after `t` examples, rounding errors of the learner included."""
        return np.asarray(self.bound(np.asarray(t, dtype=np.float64)), dtype=np.float64)

    def norm_of(self, size: int) -> float:
        """`norm`, or what follows from `magnitude` for a statistic of so many entries.

        >>> from taciturn import Privacy, private_sum
        >>> certificate = private_sum(100, 1.0, Privacy(1.0, 1e-6), horizon=10).learner.certificate
        >>> [round(each.norm_of(100), 5) for each in (certificate, replace(certificate, norm=None))]
        [1.0, 10.0]
        """
        return math.sqrt(size) * self.magnitude if self.norm is None else self.norm

    def for_unit(self, unit: Unit, timetable: Timetable) -> Certificate:
        """The certificate for all rows of one unit, from that for one row.

        *Entry:* each row moves the statistic that it is summed into, so the bound for a row stays, and the mechanism
        adds up over all patterns that `participation` allows. *Tail:* change the rows one after the other; each change
        moves the statistic after t examples by at most `at(t)`, so all of them by `at(t)` times the number of rows that
        the unit can have by then (group privacy).

        >>> from taciturn import IGD, L2Ball, Logistic, Problem, every
        >>> from taciturn.kernel.accounting.unit import User
        >>> certificate = IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)).certificate
        >>> for_user = certificate.for_unit(User(rows=4), Timetable(every(1), horizon=10))
        >>> (for_user.at([1.0, 4.0, 10.0]) / certificate.at([1.0, 4.0, 10.0])).tolist()
        [1.0, 4.0, 4.0]
        """
        participation = unit.participation
        if participation == ONCE:
            return self
        if self.reach == "entry":
            return replace(self, participation=participation)

        def bound(t: Array) -> Array:
            return np.asarray(self.bound(t) * participation.rows_by(timetable.block_of(t), t))

        formula = f"min({participation.rows}, rows by t)·({self.formula})"
        return replace(self, formula=formula, bound=bound, participation=participation)


class Learner:
    """An exact algorithm with a certificate; the base class of learners. Its methods are pure, and it draws no noise.

    A learner of one's own derives from it, states `problem`, `certificate` and `statistic_size`, and has the methods
    `start`, `absorb`, `statistic` and `decide`. All else has a default.

    Attributes
    ----------
    uses_point : bool
        Whether what an example contributes to a sum depends on the last released point.

    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> learner = IGD(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=1.0))
    >>> exact = learner.absorb(learner.start(), 0, np.array([[1.0]]), np.array([1.0]), np.zeros(1))
    >>> learner.statistic(exact, 1)[1].round(3)
    array([0.222])
    """

    uses_point: ClassVar[bool] = False

    if TYPE_CHECKING:  # a dataclass would take an inherited property for the default of its field

        @property
        def problem(self) -> Problem:
            """What is being learnt."""

        @property
        def certificate(self) -> Certificate:
            """The sensitivity of its statistics under the problem's neighbour relation; the docstring has the proof.

            A guarantee states both relations: the learner is also made on its problem with the other one, if it can be.
            """

        @property
        def statistic_size(self) -> int:
            """Entries of a statistic."""

    @property
    def point_size(self) -> int:
        """Entries of what it decides; by default those of a point of its problem."""
        return self.problem.size

    @property
    def first_point(self) -> Array:
        """The public point before the first release; by default the problem's."""
        return self.problem.first_point

    def on_problem(self, problem: Problem) -> Self:
        """The same learner on another problem; TypeError if it is not a dataclass and has no way of its own.

        >>> from taciturn import FTRL, Hinge, L2Ball, Problem
        >>> learner = FTRL(Problem(Hinge(), L2Ball(1.0), dimension=2))
        >>> learner.on_problem(replace(learner.problem, neighbours="zero-out")).certificate
        l2/entry, 1
        """
        made: Any = self
        again: Self = replace(made, problem=problem)
        return again

    @property
    def derived(self) -> dict[str, float]:
        """Settings that it computed itself, because no value was given: their last bits depend on the machine."""
        return {}

    def restored(self, derived: dict[str, float]) -> Self:
        """The same learner with the derived settings of a state; a learner that has any overrides it."""
        return self

    @abstractmethod
    def start(self) -> Arrays:
        """The exact state before any example."""

    @abstractmethod
    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """The exact state after a block of clipped examples that follow the first `t`; `point` is the last release."""

    @abstractmethod
    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """The exact state after round `t` publishes, and the statistic of that round."""

    @abstractmethod
    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The point to release, from a noisy statistic and the public standard deviation of its noise.

        `t` is the number of examples that the statistic stands for: all so far, or a sum of weights
        (`Calibrated.examples_of`). All entries have the same noise; a learner whose parts need different amounts scales
        them.
        """


class SumLearner(Learner):
    """A learner whose exact state is a sum of integer vectors, one for each example since the last release.

    The vector of an example depends on that example, on the learner and, if `uses_point`, on the last released point,
    and on nothing else.

    >>> from taciturn import QFTL, IGD, L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=1, label_bound=1.0, ridge=1.0)
    >>> is_sum(QFTL(problem)), is_sum(IGD(problem))
    (True, False)
    """

    @property
    @abstractmethod
    def most_units(self) -> int:
        """The largest entry of one example's vector; times `certificate.most` it is a 64-bit integer."""

    @abstractmethod
    def to_integers(self, exact: Arrays) -> Integers:
        """The sum, of `statistic_size` entries, out of an exact state."""

    @abstractmethod
    def from_integers(self, sums: Integers) -> Arrays:
        """The exact state of a sum."""


def is_sum(learner: object) -> bool:
    """Whether a learner is a `SumLearner`; a subclass that overrides `absorb` alone is none."""
    from taciturn.kernel.learners.contributions import Unverified  # here: forms state certificates

    return restores(learner.learner if isinstance(learner, Unverified) else learner, "to_integers", "absorb")


def centered(center: Any, problem: Problem) -> tuple[float, ...]:
    """A public point to start from, validated, as a point of the domain."""
    point = np.asarray(center, dtype=np.float64)
    if point.shape != (problem.size,) or not np.isfinite(point).all():
        raise InvalidInput(
            f"center is a released model of {problem.size:,} finite numbers, got an array of shape {point.shape}. Give "
            "the point of a release of the same problem."
        )
    return tuple(problem.domain.project(point).tolist())


def length_from(center: tuple[float, ...] | None, length: float) -> float:
    """How far from its center a point is looked for: the length of the center, and a twentieth of `length` at least.

    Without a center it is `length`. A successor is expected nearer to the model that it follows than to 0.

    >>> length_from((3.0, 4.0), 40.0), length_from(None, 40.0), length_from((0.0, 0.0), 40.0)
    (5.0, 40.0, 2.0)
    """
    return length if center is None else min(length, max(math.hypot(*center), length / 20.0))


class Calibrated:
    """A calibrated mechanism, with its noise and lattice steps, and the base class of such; releases `k` count from 1.

    Attributes
    ----------
    claimed : Privacy
        What the calibration promises.
    by_block : bool
        Whether its noise is for the examples between two releases, and not for all of the stream.
    coder : Coder or None
        The strategy of prefix sums (`taciturn.kernel.mechanisms.strategy`); None if it releases what it is given.
    """

    claimed: Privacy
    by_block: ClassVar[bool] = False
    coder: Any = None

    @property
    def last_round(self) -> int | None:
        """The last round that is paid for; None if the timetable, or the certificate, decides."""
        return None

    @abstractmethod
    def cost(self, k: int | None) -> Cost:
        """The cost of the first `k` releases; None for all there can ever be."""

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of all releases, with this noise, for neighbours that move the statistics as this certificate says.

        It is another certificate than the noise was calibrated to. By default it is not known.
        """
        raise InvalidInput(
            f"what other neighbours cost with this noise is not known: {type(self).__name__} has no cost_for. Use a "
            "mechanism of taciturn, or calibrate one for them."
        )

    @property
    def numbers(self) -> Arrays | None:
        """The calibrated numbers, for `Mechanism.restore`: small arrays, which a state stores; by default none."""
        return None

    def examples_of(self, k: ArrayLike, rounds: Any) -> Any:
        """The number of examples that releases k stand for, made at `rounds`: all so far, unless it forgets.

        >>> from taciturn import DecayedBLT, Privacy, private_sum
        >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), strategy=DecayedBLT(100))
        >>> private.calibrated.examples_of([1, 1000], np.array([1, 1000])).round(1).tolist()
        [1.0, 100.5]
        """
        return rounds

    @abstractmethod
    def noise_sd(self, k: int) -> float:
        """Standard deviation of the noise on the statistic of release k; public."""

    @abstractmethod
    def start(self) -> tuple[Arrays, Arrays]:
        """The secret and the public memory before any release."""

    @abstractmethod
    def encode(self, secret: Arrays, statistic: Array, k: int) -> tuple[Arrays, Integers]:
        """The secret side: an exact statistic becomes integers, of any shape."""

    @abstractmethod
    def noise(self, seed: int | None, k: int, count: int) -> Iterable[Integers]:
        """Integers to add to what releases k to k + count - 1 encode: secret, or repeatable from a seed.

        A seed gives a release the same noise whichever calls ask for it.
        """

    @abstractmethod
    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The public side: a noisy statistic and its noise's standard deviation, which are published."""


class Mechanism:
    """A mechanism that adds noise to statistics, and the base class of such; it knows nothing of learners.

    A mechanism of one's own derives from it, states what it `accepts`, and has `calibrate`.

    Attributes
    ----------
    by_block : bool
        Whether it needs a certificate for the examples between two releases, and not for all of the stream
        (`Certificate.steady`); then it also compares their number with `Certificate.most`.

    >>> from taciturn import Gaussian
    >>> Gaussian().accepts
    'l2/tail'
    """

    by_block: ClassVar[bool] = False

    if TYPE_CHECKING:  # a dataclass would take an inherited property for the default of its field

        @property
        def accepts(self) -> str:
            """The kind of certificate that it accepts."""

    @abstractmethod
    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Scales and lattice steps: exactly for `privacy`, or as the paper chooses them for those parameters."""

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated | None:
        """The calibrated mechanism of `Calibrated.numbers`, its cost as this machine counts it; or `StateConflict`.

        It is for numbers that were calibrated on a machine that rounds differently. They come from a file and are
        validated: `cost` holds for all that are accepted. By default there is None: a mechanism is calibrated anew
        when a stream is resumed, which is possible if that gives the same standard deviations to the last bit. So it is
        for a subclass that overrides `calibrate` alone.
        """
        return None


_STATED: dict[type, tuple[str, ...]] = {
    Learner: ("problem", "certificate", "statistic_size"),
    Mechanism: ("accepts",),
    Calibrated: ("claimed",),
}


def lacking(thing: object, base: type) -> list[str]:
    """Members of a base class that an object has not, or has not overridden where there is no default.

    >>> from taciturn import Gaussian
    >>> lacking(Gaussian(), Mechanism), lacking(1.0, Mechanism)
    ([], ['accepts', 'by_block', 'calibrate', 'restore'])
    """
    kind = type(thing)
    names = [*_STATED[base], *(name for name in vars(base) if not name.startswith("_"))]
    return [
        name
        for name in names
        if not (hasattr(kind, name) or hasattr(thing, name))
        or getattr(getattr(kind, name, None), "__isabstractmethod__", False)
    ]


def complete(name: str, thing: object, base: type, example: str) -> None:
    """Reject anything else, shown an `example` of what is right; and an object of one's own that lacks members.

    >>> class Mine(Mechanism):
    ...     accepts = "l2/tail"
    >>> complete("mechanism", Mine(), Mechanism, "Gaussian()")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: mechanism: Mine has no calibrate. Derive it from taciturn.Mechanism, which has a ...
    """
    expect(name, thing, not isinstance(thing, type) and any(hasattr(thing, each) for each in _STATED[base]), example)
    if missing := lacking(thing, base):
        where = "taciturn.mechanisms" if base is Calibrated else "taciturn"
        raise InvalidInput(
            f"{name}: {type(thing).__name__} has no {', '.join(missing)}. Derive it from {where}.{base.__name__}, "
            "which has a default for all that may be left out, and write the rest."
        )


def restores(mechanism: object, verb: str = "restore", of: str = "calibrate") -> bool:
    """Whether `verb` belongs to the method `of` of this object: a subclass may have overridden only one of them."""
    for each in type(mechanism).__mro__:
        if verb in vars(each):
            return True
        if of in vars(each):
            return False
    return False


def stored(numbers: Arrays, name: str, shape: tuple[int, ...] = ()) -> Array:
    """Finite positive numbers of this name and shape out of a state, -1 for any length; or `StateConflict`."""
    value = np.asarray(numbers.get(name))
    fits = value.ndim == len(shape) and all(n in (-1, actual) for n, actual in zip(shape, value.shape, strict=True))
    if value.dtype.kind not in "fi" or not fits or not (np.isfinite(value) & (value > 0)).all():
        raise damaged(f"{name} should be positive and finite")
    return value.astype(np.float64)


def damaged(what: str, which: str = "calibrated numbers") -> StateConflict:
    """The error for what is stored in a state that no stream has written."""
    return StateConflict(f"the {which} of this state are damaged: {what}. Use an intact copy of its file.")


def misfit(certificate: Certificate, learner: str, mechanism: str, accepts: str) -> str:
    """The error message for a learner and a mechanism that do not fit, with a remedy."""
    better = MECHANISMS.get(certificate.kind, "a mechanism that accepts it")
    other = LEARNERS.get(accepts, f"a learner that certifies {accepts}")
    return (
        f"{learner} certifies {certificate.kind} sensitivity ({certificate.moved_by}); {mechanism} accepts {accepts}. "
        f"Use {better}, or {other}."
    )
