"""Statistics that cannot break the promise: what a learner of one's own adds up for a row is clipped here.

An entry learner of one's own computes one vector for each row (`EntryLearner`), and says in which `Form`.
`Contributions` calls it on copies, clips what comes back, rounds it to a lattice and adds it up as 64-bit integers. So
the certificate holds by construction, whatever the learner computes: a wrong one costs accuracy, and no privacy.

**Claim.** Given the releases, one row moves the statistic of its own block by at most c·B, and no other, whatever
function of *this row, its label and the releases* the learner is; c·B is the constant of the form (`Form.moved`).
*Proof.* (1) What is added for a row is `round(clip(s))`, or 0, of an s that was computed from copies of the row, of the
label and of the released point, by a copy of the learner that no row has touched; so it depends on these alone.
(2) `clip` returns finite vectors of norm at most B, of the form: each form states how far two of these are apart,
and how far one is from 0. A row of zeros, which is what a row without influence comes as, adds 0. (3) Rounding moves
each entry by at most half a step in either world. (4) Integers are added exactly: up to 2²⁶ contributions have no more
than 62 bits. (5) What happened at other rows is the same in both worlds, as the releases are. ∎

**Floating point.** Norms are computed from squares that are added in pairs, with a relative error below 2⁻⁴⁶, and
vectors are clipped above `B·(1 + 2⁻⁴¹)`; certificates charge `1 + 2⁻⁴⁰`.

**What is left to believe of a learner:** that its code reads nothing but its arguments and its own settings, and sends
nothing elsewhere. A global, a class attribute, a file, the time that a call takes and what it prints are beyond what
can be enforced inside one process, nor is the problem's map of features copied, which may be large;
`taciturn.checks.check_contribution` looks for such learners.

**What cannot be read.** An exception, a wrong shape or type, NaN and infinite entries count as a contribution of 0, in
silence: a stream that stopped there, or said so, would tell something of a row. `check_contribution` counts them, on
simulated rows. (`KeyboardInterrupt` alone stops the call: it is the operator's. A learner that raises it speaks to
the operator, who sees exact data anyway; nothing is committed, and nothing published.)
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.errors import InvalidInput, Unprovable, expect, integer, positive
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.fingerprint import of_this_package
from taciturn.kernel.stream.protocols import Certificate, Learner, SumLearner

_CLIPS_ABOVE = 1.0 + 2.0**-41  # half of what certificates charge; the other half is for the error of a computed norm


def _exact_sums() -> Any:
    """The lattice on which learners of the package add up, too."""
    from taciturn.kernel.learners import exact_sums

    return exact_sums


@dataclass(frozen=True)
class Form(ABC):
    """The form of a row's contribution: what the kernel makes of whatever a learner computes.

    Attributes
    ----------
    size : int
        Number of entries that a learner returns.
    bound : float
        B: contributions that are longer are clipped.
    """

    size: int
    bound: float = 1.0

    farthest: ClassVar[float]
    """The largest distance of two contributions of length 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", integer("size", self.size))
        object.__setattr__(self, "bound", positive("bound", self.bound))
        if not 1e-60 <= self.bound <= 1e60:
            raise InvalidInput(f"bound must lie between 1e-60 and 1e60, got {self.bound:g}. Choose other units.")

    @property
    def statistic_size(self) -> int:
        """Entries of a statistic."""
        return self.size

    @property
    def longest(self) -> float:
        """The largest norm of a contribution."""
        return self.bound

    def moved(self, neighbours: str) -> float:
        """How far one row moves its contribution: its norm, if it is left out, else the largest distance of two."""
        return self.longest if neighbours in ("zero-out", "add-remove") else self.farthest * self.longest

    @property
    @abstractmethod
    def most_units(self) -> int:
        """The largest entry of a contribution in units."""

    @property
    @abstractmethod
    def unit(self) -> Any:
        """What a sum of integers is multiplied by: a number, or one for each entry."""

    @abstractmethod
    def to_integers(self, made: Any) -> Integers | None:
        """A contribution, clipped, in units, from whatever a learner has returned; None if that cannot be read."""

    def certificate(self, neighbours: str) -> Certificate:
        """The certificate of sums of this form."""
        exact_sums = _exact_sums()
        moved, largest, size = self.moved(neighbours), self.longest, self.statistic_size
        made = self._bound(moved)
        norm = exact_sums.longest_row(largest, largest, size)
        return Certificate(
            "l2",
            "entry",
            f"{moved:.5g}",
            made,
            largest,
            exact_sums.MOVES_ITS_OWN,
            "proof in taciturn.kernel.learners.contributions",
            most=exact_sums.MOST,
            norm=norm,
            steady=True,
            rests_on="enforced",
            enforced_factor=1.0,
        )

    def _bound(self, moved: float) -> Callable[[Array], Array]:
        return partial(_exact_sums().entry_bound, moved, self.longest, self.statistic_size)


@dataclass(frozen=True)
class Vector(Form):
    """Any vector, clipped to l2 norm B.

    **Two of these are at most 2B apart**, by the triangle inequality, and opposite ones are; one is at most B from 0.

    >>> Vector(3, bound=0.5).moved("replace"), Vector(3, bound=0.5).moved("zero-out")
    (1.0, 0.5)
    """

    farthest: ClassVar[float] = 2.0

    @property
    def most_units(self) -> int:
        """2²⁷."""
        return int(_exact_sums().LATTICE_UNITS)

    @cached_property
    def unit(self) -> float:
        """The step of the lattice."""
        return float(_exact_sums().lattice_of(self.bound))

    def to_integers(self, made: Any) -> Integers | None:
        """A vector clipped to norm B, in steps of its lattice."""
        vector = _vector(made, self.size)
        return None if vector is None else np.rint(clipped(vector, self.bound) / self.unit).astype(np.int64)


@dataclass(frozen=True)
class NonNegative(Vector):
    """A vector without negative entries, clipped to l2 norm B; negative entries count as 0.

    **Two of these are at most `sqrt(2)·B` apart**: `‖s - s'‖² = ‖s‖² + ‖s'‖² - 2s·s' ≤ 2B²`, as s·s' is not negative.
    Two of length B without a common entry reach it. One is at most B from 0.

    >>> round(NonNegative(3, bound=0.5).moved("replace"), 4)
    0.7071
    """

    farthest: ClassVar[float] = math.sqrt(2.0)

    def to_integers(self, made: Any) -> Integers | None:
        """The same after negative entries became 0."""
        vector = _vector(made, self.size)
        return None if vector is None else super().to_integers(np.maximum(vector, 0.0))


@dataclass(frozen=True)
class Index(Form):
    """A number from 0 to `size - 1`, of which a unit vector is made: a count. None is a row that counts nowhere.

    **Two unit vectors are `sqrt(2)` apart**, or equal, and 1 from 0. Counts are integers: nothing is rounded.

    >>> round(Index(10).moved("replace"), 4), Index(10).moved("zero-out")
    (1.4142, 1.0)
    """

    bound: float = 1.0
    farthest: ClassVar[float] = math.sqrt(2.0)
    most_units: ClassVar[int] = 1
    unit: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bound != 1.0:
            raise InvalidInput("an index counts 1. Leave bound out, or scale the sums in decide().")

    def to_integers(self, made: Any) -> Integers | None:
        """The unit vector; None for what is no index."""
        index = operator.index(made)
        if not 0 <= index < self.size:
            return None
        vector = np.zeros(self.size, dtype=np.int64)
        vector[index] = 1
        return vector

    def _bound(self, moved: float) -> Callable[[Array], Array]:
        return partial(_exact_sums().entry_bound, moved, 1.0, 0)


@dataclass(frozen=True)
class Square(Form):
    """A row r, clipped to l2 norm B and multiplied with itself: `svec(r rᵀ)`, its upper triangle, row by row.

    Entries off the diagonal are multiplied by `sqrt(2)`, so that lengths are those of the matrix
    (`taciturn.kernel.problem.svec.unpacked` makes it of a sum). **Two of these are at most `sqrt(2)·B²` apart**:
    `‖r rᵀ - q qᵀ‖² = ‖r‖⁴ + ‖q‖⁴ - 2(r·q)² ≤ 2B⁴`, and orthogonal ones are. One is at most B² from 0. Entries of r are
    cut to 18 bits towards 0, which lengthens no row, and their products are added exactly.

    >>> round(Square(3, bound=0.5).moved("replace"), 4), Square(3, bound=0.5).statistic_size
    (0.3536, 6)
    """

    farthest: ClassVar[float] = math.sqrt(2.0)

    @property
    def statistic_size(self) -> int:
        """Entries of the upper triangle."""
        return self.size * (self.size + 1) // 2

    @property
    def longest(self) -> float:
        """B², and its rounding."""
        return self.bound * self.bound * (1.0 + 1e-12)

    @property
    def most_units(self) -> int:
        """2³⁶."""
        return int(_exact_sums().PRODUCT_UNITS)

    @cached_property
    def unit(self) -> Array:
        """The unit of a product, and `sqrt(2)` off the diagonal."""
        rows, columns = self._upper
        return fixed(np.where(rows == columns, 1.0, math.sqrt(2.0)) * _exact_sums().unit_of(self.bound) ** 2)

    @cached_property
    def _upper(self) -> tuple[Any, Any]:
        return np.triu_indices(self.size)

    def to_integers(self, made: Any) -> Integers | None:
        """Products of the entries of the clipped row, as integers of 18 bits each."""
        vector = _vector(made, self.size)
        if vector is None:
            return None
        row = _exact_sums().in_units(clipped(vector, self.bound), self.bound).astype(np.int64)
        rows, columns = self._upper
        return np.asarray(row[rows] * row[columns])

    def _bound(self, moved: float) -> Callable[[Array], Array]:
        return partial(_exact_sums().product_bound, moved, self.longest, self.statistic_size)


FORMS = (Vector, NonNegative, Index, Square)


def _vector(made: Any, size: int) -> Array | None:
    """A new vector of finite floats, from whatever was returned; None if it is none of this size."""
    found = np.asarray(made)
    if found.dtype.kind not in "fiub" or found.shape != (size,):
        return None
    vector = np.array(found, dtype=np.float64, order="C", subok=False)
    return vector if np.isfinite(vector).all() else None


def clipped(vector: Array, bound: float) -> Array:
    """A finite vector, scaled to l2 norm `bound` if it is longer; entries of any size, without an overflow.

    >>> clipped(np.array([3e300, 4e300]), 1.0).round(9).tolist(), clipped(np.array([0.3, 0.4]), 1.0).tolist()
    ([0.6, 0.8], [0.3, 0.4])
    """
    largest = float(np.max(np.abs(vector), initial=0.0))
    if largest * math.sqrt(len(vector)) <= bound:
        return vector
    scaled = vector / largest
    length = math.sqrt(float(np.sum(scaled * scaled)))
    return vector if length <= bound / largest * _CLIPS_ABOVE else scaled * (bound / length)


class EntryLearner(Protocol):
    """A learner of one's own whose statistics are sums of one contribution for each row; `Private` takes it as it is.

    Its methods are pure: they read their arguments and public settings alone. It is best a frozen dataclass. Two
    attributes are optional: `point_size`, if what it decides is no point of the problem's domain, and `first_point`,
    the public point before the first release.

    >>> from dataclasses import dataclass
    >>> from taciturn import BLT, L2Ball, Linear, Privacy, Private, Problem, every
    >>> @dataclass(frozen=True)
    ... class MeanDifference:
    ...     problem: Problem
    ...
    ...     @property
    ...     def form(self):
    ...         return Vector(self.problem.size, self.problem.norm_bound)
    ...
    ...     def contribution(self, row, label, released):
    ...         return label * row
    ...
    ...     def decide(self, t, noisy, noise_sd):
    ...         return self.problem.domain.project(noisy / t)
    >>> problem = Problem(Linear(), L2Ball(1.0), dimension=2, label_bound=1.0)
    >>> private = Private(MeanDifference(problem), BLT(), every(1), Privacy(1.0, 1e-6), horizon=10)
    >>> private.certificate, private.guarantee.rests_on
    (l2/entry, 2, 'enforced')
    """

    @property
    def problem(self) -> Problem:
        """What is being learnt: it reads and clips rows and labels, and states the neighbour relation."""

    @property
    def form(self) -> Form:
        """The form of contributions, with their size and their bound; public."""

    def contribution(self, row: Array, label: float, released: Array) -> Any:
        """The contribution of one clipped row, its intercept included: in the form that is stated, or it counts as 0.

        `released` is the point released last. A row of zeros has no influence, and is not asked for.
        """

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The point to release, from a noisy sum and the public standard deviation of its noise; see `Learner`."""


@dataclass(frozen=True)
class Contributions(SumLearner):
    """Sums of the contributions of an `EntryLearner`, each clipped to its form: a learner with an enforced certificate.

    `Private` makes it of a learner that has `contribution`. The module has claim and proof.

    >>> from dataclasses import dataclass
    >>> from taciturn import L2Ball, Linear, Problem
    >>> @dataclass(frozen=True)
    ... class Hundredfold:
    ...     problem: Problem
    ...     form = Vector(2, bound=1.0)
    ...
    ...     def contribution(self, row, label, released):
    ...         return 100.0 * row
    ...
    ...     def decide(self, t, noisy, noise_sd):
    ...         return self.problem.domain.project(noisy / t)
    >>> learner = Contributions(Hundredfold(Problem(Linear(), L2Ball(1.0), 2, label_bound=1.0)))
    >>> exact = learner.absorb(learner.start(), 0, np.array([[0.6, 0.8]]), np.ones(1), np.zeros(2))
    >>> learner.certificate, learner.statistic(exact, 1)[1].round(6).tolist()
    (l2/entry, 2, [0.6, 0.8])
    """

    uses_point: ClassVar[bool] = True
    learner: EntryLearner

    def __post_init__(self) -> None:
        own: Any = self.learner
        made = all(hasattr(own, name) for name in ("problem", "form", "contribution", "decide"))
        expect("learner", own, made and not isinstance(own, type), "an object with problem, form, contribution, decide")
        expect("its problem", own.problem, isinstance(own.problem, Problem), "Problem(Hinge(), L2Ball(1.0), 2)")
        expect("its form", own.form, type(own.form) in FORMS, "Vector(size=3, bound=1.0)")  # no subclass: it clips
        object.__setattr__(self, "learner", _own_copy(own))

    @cached_property
    def problem(self) -> Problem:
        """The learner's."""
        return self.learner.problem

    @cached_property
    def form(self) -> Form:
        """The learner's, as it was stated first."""
        return self.learner.form

    @property
    def most_units(self) -> int:
        """The form's."""
        return self.form.most_units

    @property
    def statistic_size(self) -> int:
        """The form's."""
        return self.form.statistic_size

    @property
    def point_size(self) -> int:
        """The learner's, if it has one, or that of a point of the problem."""
        return int(getattr(self.learner, "point_size", self.problem.size))

    @property
    def first_point(self) -> Array:
        """The learner's, if it has one, or the problem's."""
        return np.array(getattr(self.learner, "first_point", self.problem.first_point), dtype=np.float64)

    def on_problem(self, problem: Problem) -> Contributions:
        """The same learner on another problem."""
        return replace(self, learner=replace(cast(Any, self.learner), problem=problem))

    @cached_property
    def certificate(self) -> Certificate:
        """The form's."""
        return self.form.certificate(self.problem.neighbours)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size, dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Contributions, each of a row by itself, added up since the last release."""
        total = exact["sum"].copy()
        for v, label in zip(X, y, strict=True):
            if v.any() and (made := self.units_of(v, float(label), point)) is not None:
                total += made
        return {"sum": total}

    def units_of(self, v: Array, label: float, point: Array) -> Integers | None:
        """What one row adds, in units, clipped; None if the learner's answer cannot be read."""
        try:
            with np.errstate(all="ignore"):
                row, released = (fixed(np.array(each, dtype=np.float64, order="C")) for each in (v, point))
                return self.form.to_integers(self._untouched().contribution(row, label, released))
        except KeyboardInterrupt:  # the operator's
            raise
        except BaseException:  # whatever it is, it may be the row's doing: it must not be seen
            return None

    def _untouched(self) -> EntryLearner:
        """A copy of the learner: what it writes on itself is gone after the call."""
        return deepcopy(self.learner, dict(self._shared))

    @cached_property
    def _shared(self) -> dict[int, Any]:
        """What copies share, by identity: arrays that nobody can change, and the problem's map of features."""
        shared: list[Any] = [each for each in _attributes(self.learner).values() if type(each) is np.ndarray]
        return {id(each): each for each in (*shared, self.problem.features)}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), exact["sum"] * self.form.unit

    def to_integers(self, exact: Arrays) -> Integers:
        """The sum itself."""
        return exact["sum"]

    def from_integers(self, sums: Integers) -> Arrays:
        """The sum itself."""
        return {"sum": sums}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The learner's decision: post-processing, by a copy that has seen no row."""
        return self._untouched().decide(t, noisy, noise_sd)


def _own_copy(own: EntryLearner) -> EntryLearner:
    """A copy that nobody else has, whose arrays cannot be written to, not even by who owns them."""
    try:
        made = deepcopy(own)
    except Exception as problem:
        raise InvalidInput(
            f"{type(own).__name__} cannot be copied, and a learner is called on copies, so that it remembers no row. "
            "Make it a frozen dataclass of numbers, strings, tuples and arrays."
        ) from problem
    for name, value in _attributes(made).items():
        if type(value) is np.ndarray and value.dtype != object:
            data = np.frombuffer(value.tobytes(), dtype=value.dtype).reshape(value.shape)
            object.__setattr__(made, name, data)
    return made


def _attributes(thing: Any) -> dict[str, Any]:
    return dict(getattr(thing, "__dict__", {}))


@dataclass(frozen=True)
class Unverified:
    """A learner of one's own whose certificate nobody but its author has proven: the guarantee then says whose it is.

    It is for what cannot be clipped, such as iterates, of which one row moves all later ones. Sums need no proof of
    yours: write them as an `EntryLearner`.

    Parameters
    ----------
    learner : Learner
        With a certificate that `by` has proven.
    by : str
        Whose proof it is, and where: it is printed in every guarantee.

    Examples
    --------
    >>> from taciturn import IGD, Gaussian, L2Ball, Logistic, Privacy, Private, Problem, every
    >>> class MyIGD(IGD):
    ...     pass
    >>> MyIGD.__module__ = "my_package"
    >>> learner = MyIGD(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1))
    >>> Private(learner, Gaussian(), every(1), Privacy(1.0, 1e-6), horizon=4)
    Traceback (most recent call last):
    ...
    taciturn.errors.Unprovable: MyIGD states a certificate that nobody else has proven. ...
    >>> wrapped = Unverified(learner, by="A. Author, Lemma 3")
    >>> guarantee = Private(wrapped, Gaussian(), every(1), Privacy(1.0, 1e-6), horizon=4).guarantee
    >>> guarantee.rests_on, guarantee.by
    ('unverified', 'A. Author, Lemma 3')
    """

    learner: Any
    by: str

    def __post_init__(self) -> None:
        expect("learner", self.learner, hasattr(self.learner, "certificate"), "a learner with a certificate")
        stated = isinstance(self.by, str) and bool(self.by.strip())
        if _is_proven_here(self.learner):
            raise InvalidInput(
                f"{type(self.learner).__name__} is proven in this package, and needs no other proof. Leave Unverified "
                "out."
            )
        expect("by", self.by, stated, "the name of who has proven it, and where, as a text")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("learner", "contribution"):
            raise AttributeError(name)
        return getattr(self.learner, name)

    @property
    def derived(self) -> dict[str, float]:
        """None: it is no setting of this class."""
        return {}

    def on_problem(self, problem: Problem) -> Unverified:
        """The same learner on another problem."""
        return replace(self, learner=self.learner.on_problem(problem))

    @property
    def certificate(self) -> Certificate:
        """The learner's, marked."""
        stated: Certificate = self.learner.certificate
        return replace(stated, rests_on="unverified", by=self.by)


def wired(learner: Any) -> Learner:
    """The learner as `Private` uses it; an error for one whose certificate is neither enforced nor proven here.

    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> learner = IGD(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1))
    >>> wired(learner) is learner
    True
    """
    made: Learner = entry(learner)
    if not _is_proven_here(made):
        name = type(learner).__name__
        raise Unprovable(
            f"{name} states a certificate that nobody else has proven. If it adds up one vector for each row, write "
            "contribution(row, label, released) and form= in the place of absorb, and the bound is enforced. Else wrap "
            f'it, and say whose proof it is: Unverified({name}(...), by="A. Author, Lemma 3").'
        )
    return made


def entry(learner: Any) -> Any:
    """The sums of a learner that computes contributions; any other learner as it is."""
    if isinstance(learner, Contributions) or not hasattr(learner, "contribution"):
        return learner
    return Contributions(learner)


def _is_proven_here(learner: Any) -> bool:
    """Whether a learner, and what it wraps, is of this package, or says that it is unverified."""
    if isinstance(learner, Unverified | Contributions):
        return True
    inside = getattr(learner, "learner", None)
    return of_this_package(type(learner)) and (inside is None or _is_proven_here(inside))


def stated_outside(problem: Problem) -> str:
    """The classes of a problem that are not of this package and state constants, in words; empty if there are none.

    >>> from taciturn import Hinge, L2Ball, Problem
    >>> stated_outside(Problem(Hinge(), L2Ball(1.0), dimension=2))
    ''
    """
    things: list[Any] = [problem, problem.domain, problem.loss]
    while (inside := getattr(things[-1], "loss", None)) is not None:  # of a weighted or smoothed loss
        things.append(inside)
    names = [type(each).__name__ for each in things if not of_this_package(type(each))]
    return f"what {' and '.join(names)} state{'s' * (len(names) == 1)} of gradients or of lengths" if names else ""


def rests(problem: Problem, moved: float | None = None, form: float | None = None) -> dict[str, Any]:
    """What a certificate of this package rests on: fields of `Certificate`.

    It is enforced where the bound `moved` is no smaller than the constant of the `form` of what is clipped and added
    up. It is proven where it is smaller, or where there is no form: iterates are not clipped. A class of one's own that
    states constants of the problem has nobody's proof but its author's.

    >>> from taciturn import Hinge, L2Ball, Logistic, Problem
    >>> for loss in (Hinge(), Logistic()):
    ...     problem = Problem(loss, L2Ball(20.0), dimension=2)
    ...     found = rests(problem, problem.gradient_diameter, 2.0 * problem.lipschitz)
    ...     print(found["rests_on"], round(found["enforced_factor"], 3))
    enforced 1.0
    proven 1.038
    """
    factor = None if moved is None or form is None else max(form / moved, 1.0)
    if factor == 1.0 and of_this_package(type(problem)):
        return {"rests_on": "enforced", "enforced_factor": factor}
    by = stated_outside(problem)
    return {"rests_on": "unverified" if by else "proven", "by": by, "enforced_factor": factor}
