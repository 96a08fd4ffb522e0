"""Mechanisms as users state them: they choose strategies and noise, by the exact certificate or as the paper reads.

What protects is elsewhere: the calibrated forms (`taciturn.kernel.mechanisms.gaussian`,
`taciturn.kernel.mechanisms.prefix_sum`) compute sensitivities and costs from the certificate and from the numbers that
they are given here, whatever these are, and strategies (`taciturn.kernel.mechanisms.blt` and others) compute their own
sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, get_args

import numpy as np

from taciturn.calibration import paper
from taciturn.calibration.blt_fit import Aim, fitted, to_fit
from taciturn.errors import InvalidInput, StateConflict, integer, one_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array, Arrays, Integers, same
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, Lasting
from taciturn.kernel.mechanisms.gaussian import EndlessGaussian, FiniteGaussian, Given, Planned
from taciturn.kernel.mechanisms.lattice import NO_LATTICE, TRIES, ideal_mu, shifts
from taciturn.kernel.mechanisms.prefix_sum import (
    FOR_EVER,
    LONGEST,
    Endless,
    Finite,
    LastingSums,
    coder_numbers,
    distance,
    in_blocks,
    lasting,
    most_draws,
    planned,
)
from taciturn.kernel.mechanisms.sqrt import RootCoder
from taciturn.kernel.mechanisms.strategy import Coder, sensitivity_to
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.noise.sampling import LARGEST_SCALE, sampling_cost
from taciturn.kernel.stream.protocols import Calibrated, Calibration, Certificate, Mechanism, restores, stored
from taciturn.kernel.stream.schedule import Every, Timetable

Shape = Literal["S", "S^(2/3)", "S^(1/2)"]
_POWERS = {"S": 1.0, "S^(2/3)": 2.0 / 3.0, "S^(1/2)": 0.5}
_SAFE = 1.0 - 1e-8  # costs are planned this far inside the budget, more than their rounding errors
_SLIGHTLY_MORE = 1.001  # than before a lattice is chosen
_KEPT = 32  # windows that a row of a decayed sum is kept at least


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Independent Gaussian noise on a lattice, one cost per release.

    Parameters
    ----------
    shape : {"S^(2/3)", "S", "S^(1/2)"}
        How the budget is spread over the releases: for least regret, equally, or for least variance. Without a
        horizon, and with the paper's calibrations, there is no choice and it has no effect.

    Examples
    --------
    >>> from taciturn import IGD, Gaussian, L2Ball, Logistic, Privacy, Problem, pocp
    >>> learner = IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1))
    >>> def total(shape):
    ...     calibrated = pocp(learner, Privacy(1, 1e-6), horizon=1000, shape=shape).calibrated
    ...     return sum(calibrated.noise_sd(k) for k in range(1, 1001))
    >>> total("S^(2/3)") < total("S")
    True
    """

    shape: Shape = "S^(2/3)"

    def __post_init__(self) -> None:
        one_of("shape", self.shape, tuple(_POWERS))

    @property
    def accepts(self) -> str:
        """Statistics of which one example moves every later one."""
        return "l2/tail"

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which everything published keeps `privacy`, or the paper's `beta/t`, and lattice steps."""
        if calibration != "exact":
            return _as_in_the_paper(certificate, timetable, size, privacy, calibration)
        if timetable.horizon is None:
            return EndlessGaussian(certificate, timetable, size, privacy)
        plan = Planned(certificate, size, _POWERS[self.shape])
        safe = min(_SAFE, 1.0 - timetable.count * 2.0**-50)
        without_lattice = replace(plan, scales=(scale_for(plan, timetable, privacy.mu * safe),))
        farthest = max(float(np.max(shifts(*without_lattice.at(rounds)[:2]))) for rounds in timetable.blocks())
        mu = ideal_mu(privacy, sampling_cost(timetable.count * size, _SLIGHTLY_MORE * farthest))
        return FiniteGaussian(on_its_lattice(plan, timetable, mu * safe), timetable, privacy)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibration of a stream that began with these scales and lattice steps."""
        if timetable.horizon is None:
            return EndlessGaussian(certificate, timetable, size, privacy, float(stored(numbers, "mu")))
        steps = stored(numbers, "first", (-1,)).astype(np.int64), stored(numbers, "step", (-1,))
        if calibration != "exact":
            return _as_in_the_paper(certificate, timetable, size, privacy, calibration, steps)
        scale = float(stored(numbers, "scale"))
        return FiniteGaussian(Planned(certificate, size, _POWERS[self.shape], (scale,)), timetable, privacy, steps)


def _as_in_the_paper(
    certificate: Certificate,
    timetable: Timetable,
    size: int,
    privacy: Privacy,
    calibration: Calibration,
    steps: tuple[Integers, Array] | None = None,
) -> Calibrated:
    """The noise that the paper states, whatever it delivers.

    For a learner the paper does not name, POCP's `lam` is the least one that is true up to the horizon.
    """
    if (horizon := timetable.horizon) is None:
        raise InvalidInput("the paper's noise depends on the number of rounds. State a horizon.")
    reading = _reading(calibration)
    stated = stated_noise(certificate)
    if stated is None:
        every_round = np.arange(1.0, horizon + 1.0)
        stated = partial(paper.pocp_noise, float(np.max(every_round * certificate.at(every_round))))

    def noise(rounds: Array) -> Array:
        return stated(privacy, horizon, rounds, reading)[0]

    claimed = stated(privacy, horizon, np.ones(1), reading)[1]
    return FiniteGaussian(Given(certificate, size, noise), timetable, claimed, steps)


def stated_noise(certificate: Certificate) -> paper.PaperNoise | None:
    """The noise that the paper states for a certificate's learner, if it names it."""
    return certificate.paper if isinstance(certificate, paper.PaperCertificate) else None


def _for_one_example(certificate: Certificate, calibration: Calibration) -> None:
    """Reject the paper's noise for the rows of a user."""
    if certificate.participation != ONCE and calibration != "exact":
        raise InvalidInput("the paper's noise protects one example. Use calibration='exact' for the rows of a user.")


def _reading(calibration: Calibration) -> paper.Reading:
    """How the paper's constants are read."""
    return "printed" if calibration == "paper-printed" else "proven"


def scale_for(plan: Planned, timetable: Timetable, mu: float) -> float:
    """The scale for which the costs of all releases add up to mu², on the lattice that comes next."""
    costs = (_next_moved(plan, rounds) ** (2.0 - 2.0 * plan.power) for rounds in timetable.blocks())
    return math.sqrt(math.fsum(math.fsum(some) for some in costs)) / mu


def _next_moved(plan: Planned, rounds: Integers) -> Array:
    """The positive sensitivities, on the lattice that comes next."""
    moved = replace(plan, scales=(*plan.scales, 1.0)).at(rounds).moved
    return moved[moved > 0.0]


def on_its_lattice(plan: Planned, timetable: Timetable, mu: float) -> Planned:
    """The plan with scales for which noise and lattice steps fit each other, and costs add up to mu²."""
    plan = replace(plan, scales=(scale_for(plan, timetable, mu),))
    for _ in range(TRIES):
        plan = replace(plan, scales=(*plan.scales, scale_for(plan, timetable, mu)))
        if all((sd <= LARGEST_SCALE * step).all() for _, sd, step in map(plan.at, timetable.blocks())):
            return plan
    raise InvalidInput(NO_LATTICE)


@dataclass(frozen=True)
class PrefixSum(Mechanism):
    """A prefix-sum mechanism by a strategy; the subclass makes its coder for n releases."""

    @property
    def accepts(self) -> str:
        """Statistics of which one example moves one."""
        return "l2/entry"

    def coder(self, n: int | None) -> Coder:
        """The strategy for n releases; None for a stream without a horizon."""
        raise NotImplementedError

    def needs(self, n: int | None) -> int:
        """n, validated: a strategy that needs a horizon rejects None."""
        if n is None:
            raise InvalidInput(
                f"{type(self).__name__} is planned for a number of releases. State a horizon, or use BLT(buffers=8)."
            )
        return integer("the number of releases", n)

    def coder_for(self, n: int | None, participation: Participation) -> Coder:
        """The strategy for n releases if the unit of privacy takes part so often; by default that for one example."""
        return self.coder(n)

    def restored_coder(self, n: int | None, numbers: Arrays) -> Coder:
        """The strategy that a stream began with; a coder without `numbers` must come out the same on this machine."""
        return self._made_again(n, numbers, ONCE)

    def _made_again(self, n: int | None, numbers: Arrays, participation: Participation) -> Coder:
        coder = made_for(self, n, participation)
        if not same(coder_numbers(coder, self.needs(n)), numbers):
            raise StateConflict(
                f"the strategy that {type(coder).__name__} makes here is not the one that this state's stream began "
                "with. Resume the stream on a machine like the one it began on."
            )
        return coder

    def errors(self, n: int, participation: Participation = ONCE) -> Array:
        """Standard deviation of an entry of each of n prefix sums, at mu = 1 and if an example moves a row by 1.

        >>> from taciturn import BinaryTree
        >>> BinaryTree(refined=False).errors(4).round(3)
        array([1.732, 1.732, 2.449, 1.732])
        >>> BinaryTree(refined=False).errors(4, Participation(rows=2, apart=2)).round(3)
        array([2.828, 2.828, 4.   , 2.828])
        """
        n = integer("n", n)
        coder = made_for(self, n, participation)
        return np.asarray(sensitivity_to(coder, participation) * coder.error(np.arange(1, n + 1)))

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which the stream keeps `privacy`, or the paper's, and lattice steps."""
        _for_one_example(certificate, calibration)
        unit = in_blocks(certificate, timetable).participation
        if timetable.horizon is None:
            if calibration != "exact":
                raise InvalidInput("the paper's noise depends on the number of rounds. State a horizon.")
            self.coder(None)  # rejects a strategy that needs a horizon
            releases, _ = planned(timetable)
            if releases == 0:
                raise InvalidInput(f"a stream without a horizon ends at round {LONGEST:,}. Publish before it.")
            return Endless(made_for(self, releases, unit), certificate, timetable, size, privacy)
        if calibration == "exact":
            return Finite(made_for(self, timetable.count, unit), certificate, timetable, size, privacy)
        if stated_noise(certificate) is None:
            raise InvalidInput("the paper states no noise for this learner. Use calibration='exact'.")
        if not self.is_the_papers:
            raise InvalidInput(
                "the paper's noise is for sums by its tree. Use BinaryTree(refined=False), or calibration='exact'."
            )
        sd, claimed = self._as_printed(certificate, timetable, privacy, calibration)
        return Finite(self.coder(timetable.count), certificate, timetable, size, claimed, sd)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibration of a stream that began with this strategy, noise and lattice step."""
        parts = {name.removeprefix("coder."): array for name, array in numbers.items() if name.startswith("coder.")}
        _for_one_example(certificate, calibration)
        restored = (
            self.restored_coder
            if restores(self, "restored_coder", "coder")
            else partial(self._made_again, participation=in_blocks(certificate, timetable).participation)
        )
        sd = float(stored(numbers, "sd"))
        if timetable.horizon is None:
            return Endless(restored(planned(timetable)[0], parts), certificate, timetable, size, privacy, sd)
        claimed = privacy
        step = float(stored(numbers, "step"))
        if calibration != "exact":
            claimed = self._as_printed(certificate, timetable, privacy, calibration)[1]
        return Finite(restored(timetable.count, parts), certificate, timetable, size, claimed, sd, step)

    def _as_printed(
        self, certificate: Certificate, timetable: Timetable, privacy: Privacy, calibration: Calibration
    ) -> tuple[float, Privacy]:
        """The paper's noise, and what it claims."""
        stated = stated_noise(certificate)
        assert stated is not None
        assert timetable.horizon is not None
        first = timetable.following(0, timetable.horizon, 1).astype(np.float64)
        sd, claimed = stated(privacy, timetable.horizon, first, _reading(calibration))
        return float(sd[0]), claimed

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper states noise for this strategy."""
        return False


def made_for(strategy: PrefixSum, n: int | None, participation: Participation) -> Coder:
    """`coder_for`, or `coder` for one example, and for a strategy whose `coder` is newer than what it inherits."""
    if participation == ONCE or not restores(strategy, "coder_for", "coder"):
        return strategy.coder(n)
    return strategy.coder_for(n, participation)


@dataclass(frozen=True)
class SquareRoot(PrefixSum):
    """Prefix sums by the square root of the matrix of ones; memory grows with the number of releases.

    >>> from taciturn import SquareRoot
    >>> round(float(SquareRoot().errors(1024).max()), 2)
    3.27
    """

    def coder(self, n: int | None) -> RootCoder:
        """The strategy for n rows."""
        return RootCoder(self.needs(n))

    def restored_coder(self, n: int | None, numbers: Arrays) -> RootCoder:
        """The same strategy: nothing in it is fitted."""
        return self.coder(n)


@dataclass(frozen=True)
class BinaryTree(PrefixSum):
    """Prefix sums by a binary tree (Algorithm 5), with Honaker's refinement or without.

    Parameters
    ----------
    refined : bool
        Average each node with the sum of its children, as it is decoded: about a quarter less noise, at no cost.

    Examples
    --------
    >>> from taciturn import BinaryTree
    >>> [round(float(BinaryTree(refined).errors(1024).max()), 2) for refined in (False, True)]
    [10.49, 7.99]
    """

    refined: bool = True

    def coder(self, n: int | None) -> TreeCoder:
        """The strategy for n rows."""
        return TreeCoder(self.needs(n), self.refined)

    def restored_coder(self, n: int | None, numbers: Arrays) -> TreeCoder:
        """The same strategy: nothing in it is fitted."""
        return self.coder(n)

    @property
    def is_the_papers(self) -> bool:
        """The paper's tree is not refined."""
        return not self.refined


@dataclass(frozen=True)
class BLT(PrefixSum):
    """Prefix sums by a buffered linear Toeplitz strategy, fitted to releases and participation: the default.

    Without a horizon, one strategy serves 2²³ rounds; from eight buffers on, more gain nothing there. Then such a
    stream ends; with `every(m)`, and if an example is protected, it starts again instead (`RestartedCoder`), as often
    as there are rounds, and never ends.

    Parameters
    ----------
    buffers : int
        Number of buffers for encoding and for decoding, 1 to 10; more are never worse.
    aim : {"max", "mean", "average"}
        Which error to minimise: the last sum's, which is the largest; the mean square over all; or the product of the
        last sum's and that of the late average of FTRL's points (`average_error`), if that is the model to be used.

    Examples
    --------
    >>> from taciturn import BLT
    >>> round(float(BLT().errors(1024).max()), 2)
    3.27
    >>> whole = BLT(buffers=8).coder(None)
    >>> whole.n, round(float(whole.sensitivity * whole.error(2**20)), 2)
    (8388608, 5.8)
    """

    buffers: int = 4
    aim: Aim = "max"

    def __post_init__(self) -> None:
        object.__setattr__(self, "buffers", integer("buffers", self.buffers))
        one_of("aim", self.aim, get_args(Aim))
        if self.buffers > 10:
            raise InvalidInput(f"buffers must be at most 10, got {self.buffers}: more gain nothing.")

    def needs(self, n: int | None) -> int:
        """n, validated; without a horizon, one strategy for all rounds that such a stream can have."""
        return LONGEST if n is None else super().needs(n)

    def coder(self, n: int | None) -> BLTCoder:
        """The strategy for n rows."""
        return BLTCoder(self.needs(n), *fitted(self.needs(n), self.buffers, self.aim))

    def coder_for(self, n: int | None, participation: Participation) -> BLTCoder:
        """The strategy for n rows with the least error for this participation."""
        n = self.needs(n)
        return BLTCoder(n, *fitted(n, self.buffers, self.aim, to_fit(n, participation)))

    def restored_coder(self, n: int | None, numbers: Arrays) -> BLTCoder:
        """The strategy of a resumed stream, with the decays and weights that it began with."""
        return BLTCoder.restored(self.needs(n), self.buffers, numbers.get("decays"))

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which the stream keeps `privacy`; without a horizon it never ends, where strategies restart."""
        releases = self._before_a_restart(certificate, timetable, size, privacy, calibration)
        if releases == 0:
            return super().calibrate(certificate, timetable, size, privacy, calibration)
        coder = RestartedCoder(BLTCoder(releases, *fitted(releases, self.buffers, self.aim)))
        return LastingSums(coder, certificate, timetable, size, privacy)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibration of a stream that began with this strategy, noise and lattice step."""
        releases = self._before_a_restart(certificate, timetable, size, privacy, calibration)
        if releases == 0 or "step" not in numbers:  # streams of earlier versions have no step, and end
            return super().restore(certificate, timetable, size, privacy, calibration, numbers)
        coder = RestartedCoder(BLTCoder.restored(releases, self.buffers, numbers.get("coder.decays")))
        sd, step = float(stored(numbers, "sd")), float(stored(numbers, "step"))
        return LastingSums(coder, certificate, timetable, size, privacy, sd, step)

    def _before_a_restart(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> int:
        """Releases after which the strategy starts again; 0 if it does not: it has a horizon, or nothing proves it.

        As many as `LONGEST` rounds have, or as the sampler's share of epsilon pays for: then a power of two, so that
        few strategies are fitted. Schedules other than `every(m)` have blocks that grow; rows of a user may lie in
        several strategies. And `coder` may be newer than this method, in a subclass.
        """
        own = not restores(self, "calibrate", "coder")
        if timetable.horizon is not None or not isinstance(timetable.schedule, Every) or calibration != "exact" or own:
            return 0
        if not certificate.steady or certificate.participation != ONCE:
            return 0
        if certificate.most is not None and timetable.schedule.rounds > certificate.most:  # between two releases
            return 0
        releases, affordable = LONGEST // timetable.schedule.rounds, most_draws(privacy) // size
        return releases if releases <= affordable else 2 ** (affordable.bit_length() - 1) if affordable else 0


@dataclass(frozen=True)
class DecayedBLT(PrefixSum):
    """Sums that forget: a row counts less by a factor of e after `forget` examples. The noise stays constant.

    A stream of them needs no horizon, and never ends. One example still costs its whole share of the budget, once:
    what is forgotten later is not refunded, since what was published stays published.

    Releases must come at equal distances, `every(m)`; between two of them rows are added up without a decay.

    Parameters
    ----------
    forget : int
        The window, in examples; public. At least the distance of two releases.
    buffers : int
        Number of buffers for encoding and for decoding, 1 to 10. Four are within 1 % of the best, five within .2 %.

    Examples
    --------
    >>> from taciturn import DecayedBLT, Privacy, every, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), strategy=DecayedBLT(10_000), schedule=every(100))
    >>> sds = [private.calibrated.noise_sd(10**j) for j in (1, 3, 9)]
    >>> [round(sd / sds[-1], 3) for sd in sds]
    [0.902, 1.0, 1.0]
    """

    forget: int
    buffers: int = 5
    by_block: ClassVar[bool] = True  # a certificate must hold for the examples between two releases, not for all

    def __post_init__(self) -> None:
        if isinstance(self.forget, bool | np.bool_):
            raise InvalidInput(f"forget is a number of examples, got {self.forget}. State the window: forget=10_000.")
        object.__setattr__(self, "forget", integer("forget", self.forget))
        object.__setattr__(self, "buffers", integer("buffers", self.buffers))
        if self.buffers > 10:
            raise InvalidInput(f"buffers must be at most 10, got {self.buffers}: more gain nothing.")

    def needs(self, n: int | None) -> int:
        """Any number of releases will do."""
        return FOR_EVER if n is None else super().needs(n)

    def coder(self, n: int | None) -> DecayedCoder:
        """The strategy for a release after every example."""
        return self.coder_every(1, ONCE)

    def coder_for(self, n: int | None, participation: Participation) -> DecayedCoder:
        """The same, with the least error for this participation."""
        return self.coder_every(1, participation)

    def coder_every(self, rounds: int, participation: Participation) -> DecayedCoder:
        """The strategy for a release after every `rounds` examples.

        >>> from taciturn.kernel.accounting.unit import ONCE
        >>> coder = DecayedBLT(1000, buffers=4).coder_every(10, ONCE)
        >>> round(float(coder.sensitivity * coder.error(10**6)), 3)
        2.138
        """
        window = self.forget / rounds
        releases = max(2, math.ceil(2.0 * window))
        decays, inverse = fitted(releases, self.buffers, "max", to_fit(releases, participation))
        decay = math.exp(-1.0 / window)
        th, ph = (tuple(decay * each for each in both) for both in (decays, inverse))
        return DecayedCoder(decay, th, ph, max(1, math.ceil(_KEPT * window)))

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which the stream keeps `privacy`, however long it is."""
        certificate = self._checked(certificate, timetable, calibration)
        coder = self.coder_every(distance(timetable), certificate.participation)
        return Lasting(coder, certificate, timetable, size, privacy)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibration of a stream that began with these decays, noise and lattice step."""
        certificate = self._checked(certificate, timetable, calibration)
        here = self.coder_every(distance(timetable), certificate.participation)
        coder = DecayedCoder.restored(here, self.buffers, numbers.get("coder.decays"))
        sd, step = float(stored(numbers, "sd")), float(stored(numbers, "step"))
        return Lasting(coder, certificate, timetable, size, privacy, sd, step)

    def _checked(self, certificate: Certificate, timetable: Timetable, calibration: Calibration) -> Certificate:
        """The certificate in blocks; rejects what sums that forget are not proven for."""
        if calibration != "exact":
            raise InvalidInput("the paper states no noise for sums that forget. Use calibration='exact'.")
        if distance(timetable) > self.forget:
            raise InvalidInput(
                f"forget={self.forget:,} is less than the {distance(timetable):,} examples between two releases. State "
                "a longer window, or publish more often."
            )
        return lasting(certificate, timetable)
