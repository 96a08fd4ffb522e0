"""Recommended settings: method, schedule and mechanism by public rules, from problem, budget and horizon alone.

**Method.** Squared loss over a bounded set, of one label or of a row of them (`OneHot`), up to 500 entries an example:
PQFTL. Any other loss over a bounded set: private FTRL. Without a bounded set but with a ridge: PGIGA for smooth losses,
PIGD for others. For users with several rows sums have one more advantage: the noise for k rows in blocks of their own
(`rows_per_release`, `apart`) grows more slowly than k, as a row moves the sums once, where it is added. It moves every
later iterate, so that the noise of iterates is k times that for one row, wherever the rows lie (group privacy).
Class sums (`taciturn.ClassSums`) are chosen by name alone: whether entries are counts, none of them negative, is known
to the user.

**One release.** If only the last model is wanted (`once`), sums and iterates are released once, after the last example,
with two to four times less noise. A smooth loss without constraints, and with a ridge, is learnt by objective
perturbation, which has less noise still: at epsilon = 1 on a table of 5,000 rows of 24 features 85 % of the classes are
right instead of 81 %, at .1 69 % instead of 55 %. Private FTRL publishes its points in any case: gradients are taken at
them.

**Schedule.** `geometric(1.1)`: few releases, so little noise, none of them older than a tenth of the stream. FTRL takes
all gradients of a block at one point, so a long block overshoots unless the ridge holds it: without a ridge of a tenth
of the loss's smoothness it is `every(m)` instead, `m = sqrt(horizon)/3`, and 100 without a horizon.

**Model.** The last point, but for FTRL in steady blocks, whose points swing with noise and block: their
`taciturn.averages.late_average`. On half a million rows of Covertype that took (1, 1e-6) from 72.9 % to 75.6 %, and .1
from 68.2 % to 74.4 %, and made a large radius harmless.

**Curvature.** FTRL in steady blocks has that of `taciturn.FTRL`, `c = .01·L·R/(u·d)`: L the largest gradient, R the
largest norm and d the number of features, u the scale of predictions, 1 for classes and the label bound for numbers. A
row of norm R has the mean curvature R²/d in a direction; features that are not whitened have far less in some
directions, which a larger c is slow to learn. Published points then move less: on half a million rows of Covertype they
were right in 66.5, 73.5 and 74.3 % of cases at epsilon = .1, 1 and 10 while they were published, instead of 64.7, 68.8
and 67.4 %, and late averages in .2 to .5 % more. On six other tables (Adult, seven classes, a class of half a percent,
bikes, houses, flights) late averages lost .2 points at most. After preconditioning the factor is .05: with .1
published points are better still, and rare classes are found less well. On a simulated class of one percent the AUC at
epsilon = 1 is 96.9 %, 95.8 % and 90.4 % with .03, .05 and .1. A regulariser for points of half the length, with a
factor of .06, makes published points better at epsilon = .1 (Covertype: 71.2 % instead of 70.6 %), and late averages
worse, those of logistic loss by one to one and a half points on tables of 20,000 to 200,000 rows: it is not used.

**Mechanism.** For sums BLT with five buffers, or with eight without a horizon; for iterates Gaussian noise of shape
S^(2/3). A strategy fitted for the late average (`BLT(aim="average")`) is not used: the average has 16 to 19 % less
noise by it, but the points at which gradients are taken have more, and on Covertype (.1, 1e-6) falls from 74.50 % to
74.26 % (12 seeds, standard error .07); at other budgets, for logistic loss and on Adult nothing was gained.

**Nothing stated.** With `ranges="private"` the range, the center and the scale of each column are found in the first
rows of the stream, and with `precondition` a map after which features are spread evenly (`taciturn.methods.stages`),
each stage at the full budget, as its rows are its own (`taciturn.methods.staged`). A stage that counts values of p
columns reads `13·sqrt(2p)·2.6·k/mu` rows, k those that a user may have in it, and 300 at least: then the noise of a
count stays below a thirteenth of the rows. There are two such stages, and a third, which narrows them down, if all take
less than a twentieth of the stream. Preconditioning reads `6·d·s·sqrt(2d)/R²` rows, with s the noise of a second moment
of d features of norm R: half as many again as a full map needs. If that is more than a twentieth of the stream, it
reads `4·d·s/R²`, enough for a diagonal one, or a twentieth. If a twentieth is less than `d·s/(2R²)`, it is off: of
30,000 rows of Adult at epsilon = .1 it cost two points. No model is published before the last stage ends: with a
twentieth of Covertype in all cases, published points were right in .4, .2 and 1 % less of cases at epsilon = .1, 1 and
10. Rows should come in no particular order: a column that hardly changes in the rows of the stages, as dates do in a
sorted table, is clipped to what it was.

**Forgetting.** With `forget`, a window in examples, sums decay, and the stream need not end (`taciturn.DecayedBLT`).
Releases are steady then: fifty in a window, or as for FTRL in a stream as long as the window; late averages forget as
well. Nothing is forgotten unless that is asked for: where nothing drifts, a window has fewer examples to outweigh the
noise than the stream (`Plan.kept`). `forget="auto"` is the least window, 260 or more, of two digits, whose signal, as
below, is 10, twice what makes more than a little of a model: on streams whose concept turns, of ten features, that is
2,000 at epsilon = 1, and 17,000 at .1. If the horizon is less than two such windows, noise leaves no room to forget,
and nothing is forgotten. PQFTL has several memories then, of W, 4W and 16W, decoded from one encoding at no further
cost, and uses the model of the one that fits best (`taciturn.memories`); `forget=(1_000, 10_000)` states them. All of
it is public: budget, problem, schedule and releases decide it.

**Features.** Linear, unless random features (`taciturn.RandomFeatures`) are asked for: a number of them, or by the rule
"random", which takes 2,000 for classes that are learnt by FTRL if there are 200,000 rows, and `rows·mu`, divided by the
rows of a user, is 10,000 or more, 40,000 where it is not known which features are numbers. Their basic scales are
`min(2, 6/sqrt(r))` for r numbers in [-1, 1], `.8/sqrt(c)` for the indicators of c columns, and `2.5/R` where that is
not known, for rows of norm R. Where scales of columns are found privately, it is known afterwards which columns have a
spread: scales are `1.9/sqrt(r)` for r such columns, standardised, and for others, indicators that are seldom 1 for
instance, so that the largest value has an angle of .48 (`found_scales`). They grow with the tenth root of
`rows·mu/16,000`: what can be distinguished at a larger budget is finer. `docs/choosing.md` has what was measured. The
rule is narrow since random features can be worse than none, where most columns are indicators, which they smooth, or
where there are few rows.

**Workers.** Several processes or machines add up rows of sums (`taciturn.engines`). PQFTL and class sums do not depend
on blocks, and lose nothing. FTRL takes the gradients of a block at the point released before it, so that a block is one
job: of 4,096 rows for each worker, and not `sqrt(horizon)/3` in all. Points then move less often, which costs accuracy;
with fewer than 100 blocks in a stream it is rejected. Iterates and objective perturbation cannot be added up.

**Ridge and radius** are the problem's: a radius is a statement about the world, and sums need no ridge, since they are
regularised by as much as their noise pulls.

**Signal.** How much the data outweigh the noise is told for sums by the signal `q = t·L/(s·d)`: t examples of gradients
up to L, spread over d weights, beside noise of standard deviation s. Below 1/2 in all releases, nothing useful can be
learnt; below 5 at the last one, little. In 336 fits of seven
tables (500 to 60,000 rows, epsilon .03 to 1, four methods), with gain as the share of the AUC above 1/2 that a fit
without privacy has, "nothing" was said of 126, 3 of which gained more than half, and left out of 7 that gained less
than a tenth; "little" of 141, 19 of which gained more than .8; and nothing was said of 6 that gained less than half.
For class sums, whose features are as many as you like and of which few matter, it is `q = t·R/(50·K·s)` of K classes:
on two collections of short texts a tenth to a third of the gain was there at 1, and a third to two thirds at 5.
For iterates the signal is the radius, or the longest iterate, divided by the length of the noise; below 1 nothing
useful can be learnt. Rows without influence, beyond a user's bound, add no signal: their number is secret, and all of
this is counted in rows that count.

**Burn-in** is the first released round from which on predictions are better than a constant by a tenth of what a fit
without privacy gains: in AUC above 1/2 for classes, in loss for numbers. That depends on the data, which a plan does
not see; it is said where it held in 99 of 100 models. From a signal of 5 on for sums, and 12 for iterates, if labels
are classes: of 1,984 models of four tables, one of them also with all seven classes, and three simulated streams
(released within 1,000 to 30,000 rows, epsilon .1 to 10) 8 gained less than a tenth. From 20 on for numbers by squared
loss (none of 130, of three tables and three streams), and from 100 on for other losses of numbers, whose points, on a
ball that is large for the labels, are far off at the beginning even with little noise (2 of 150; from 20 on 73 of 448).
Where there is nothing to gain without privacy, there is nothing with it.

**Rows per user.** The largest number k for which a tenth of the rows has a signal of 1/2, and no larger than the rows
of an average user, or ten if the number of users is not public (`rows_per_user`). With a smaller k there is
less noise, and more rows have no influence. Noise grows at most in proportion to k. Beyond the average, few users have
rows to add, and all pay for the noise.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from html import escape
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn._util.html import card, facts
from taciturn.calibration.mechanisms import BLT, BinaryTree, DecayedBLT, PrefixSum, SquareRoot
from taciturn.core.private import Private
from taciturn.errors import (
    InvalidInput,
    TaciturnError,
    Unprovable,
    expect,
    horizon_of,
    integer,
    not_negative,
    one_of,
    positive,
)
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import EXAMPLE, Unit, User
from taciturn.kernel.learners.class_sums import ClassSums
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.learners.second_moment import SecondMoment
from taciturn.kernel.mechanisms.lattice import OnLattice
from taciturn.kernel.mechanisms.prefix_sum import distance
from taciturn.kernel.problem.features import FeatureMap
from taciturn.kernel.problem.losses import Huber, Logistic, Squared
from taciturn.kernel.problem.multiclass import OneHot, ScoresLoss
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss
from taciturn.kernel.problem.sets import WholeSpace
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.schedule import Every, Schedule, at, every, geometric
from taciturn.memories import FTRL_COSTS, several, tuned, windows_of
from taciturn.methods.objective_perturbation import ObjectivePerturbation
from taciturn.methods.recipes import class_sums, pftrl, pgiga, pigd, pqftl
from taciturn.methods.staged import Stage, Staged
from taciturn.methods.stages import Moments, Ranges, Scales, with_standardised
from taciturn.methods.weighted import unweighted
from taciturn.renewal import Renewal
from taciturn.tables.column_maps import Standardise
from taciturn.tables.random_features import RandomFeatures

Forget = int | Literal["auto"] | Sequence[int]
"""A window in examples, several of them, or "auto"."""

FeatureName = Literal["linear", "random"]
Features = FeatureName | int | FeatureMap
Method = Literal["pqftl", "pftrl", "pgiga", "pigd", "class-sums", "objective"]
_OF_SUMS: dict[str, Callable[..., Private]] = {"pqftl": pqftl, "pftrl": pftrl, "class-sums": class_sums}
_MOST_SQUARED = 500  # entries of an example whose products, d(d+1)/2 of them, are still added up
_MOST_ROWS = 10  # of a user, where the number of users is not public
_AFFORDABLE = 0.1  # share of the stream after which data should outweigh the noise of a user's rows
_SOME = 0.5  # the signal below which nothing useful can be learnt
_LITTLE = 5.0  # the signal below which a model is still far from one without privacy
_BURN_IN = {"classes": (5.0, 12.0), "squared": (20.0, 20.0), "numbers": (100.0, 100.0)}  # signal of sums, of iterates
_WHITENED = 0.05  # share of the curvature of a row, where features are spread evenly
_MOST_COLUMNS = 1_000  # whose ranges are found
_SPARED = 0.05  # share of a stream that a stage may take
_MOMENTS = 4.0  # rows for the diagonal of a second moment, in units of those that add as much to an entry as the noise
_LEAST_MOMENTS = 0.5  # the same, below which there is no preconditioning
_OFF = "too few rows for preconditioning, which is off"
_RANDOM = 2000  # random features, if any
_MANY = 100  # rows for each random feature
_ENOUGH = 10_000.0  # rows times mu, for random features of known scales; four times as many for others
_BASIC = 16_000.0  # rows times mu at which scales are the basic ones
_ANY_SCALE = 2.5  # of random features, in units of one over the feature bound
_FRESH = 50  # releases in a window
_CLEAR = 10.0  # the signal of a window that is chosen by rule
_WINDOWS: list[int] = [
    digits * int(10**zeros) for zeros in range(1, 6) for digits in range(10, 100) if digits * 10**zeros > 250
]
_LONGER = (1, 4, 16)  # memories by rule, in windows
_SETTLED = 10**9  # a release by which the noise of sums that forget is what it stays
_ROOM = 2  # windows in a stream that forgets by rule, at least
_SPREAD = 50.0  # features of a class that matter to class sums
_LARGE_DELTA = 1e-3  # more than this is warned about, whatever the number of rows
_MOVES = 100  # of FTRL's point in a stream that workers learn, at least
_FEW_MOVES = 20  # fewer are warned of
JOB = 4096
"""Rows of which a worker's job is a multiple, if points depend on blocks."""
LEAST_ROWS = 256
"""Rows between two releases from which on workers are of use."""
_PLANNED = 100_000  # rounds to plan for where there is no horizon


@dataclass(frozen=True)
class Plan:
    """Settings of a private stream, and the noise to expect of them.

    Attributes
    ----------
    method : str
        The recipe's name.
    private : Private or ObjectivePerturbation
        Ready to run.
    why : str
        The part of the rule that chose it.
    averages : bool
        Whether the model to use is the late average of the released points, and not the last of them.
    renewal : Renewal, optional
        What the stream starts from, if it follows another.
    means : tuple of (str, str)
        Hashes of what the weights mean, if an estimator declares it, with which a successor is compared.
    memories : tuple of int, optional
        Windows of which the model to use is chosen (`taciturn.memories`); None if there is one, or none.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Privacy, Problem
    >>> plan = recommend(Problem(Logistic(), L2Ball(2.0), dimension=10), Privacy(1.0, 1e-6), horizon=100_000)
    >>> plan.method, plan.releases, plan.burn_in
    ('pftrl', 953, 735)
    """

    method: Method | Literal["linear-bandit"]
    private: Private | ObjectivePerturbation
    why: str
    averages: bool = False
    memories: tuple[int, ...] | None = None
    renewal: Renewal | None = None
    means: tuple[tuple[str, str], ...] = ()

    def following(self, renewal: Renewal | None) -> Plan:
        """The plan of a stream that follows another, if it does: it starts from the model that the other has released.

        FTRL and PQFTL are held back there by what holds them back at 0 otherwise. Other learners, and streams that find
        ranges first, learn anew; until their first release the model to use is the one that they follow.

        >>> from taciturn import Hinge, L2Ball, Privacy, Problem
        >>> from taciturn.kernel.accounting.guarantee import Charge
        >>> from taciturn.renewal import Renewal
        >>> plan = recommend(Problem(Hinge(), L2Ball(1.0), dimension=2), Privacy(1.0, 1e-6), horizon=1_000)
        >>> renewal = Renewal((0.6, 0.0), (Charge.of(plan.private.guarantee),))
        >>> plan.following(renewal).private.learner.center
        (0.6, 0.0)
        """
        if renewal is None:
            return self
        expect("renewal", renewal, isinstance(renewal, Renewal), "model.renewal_, of a fitted model")
        private = self.private
        if len(renewal.point) != private.problem.size:
            raise InvalidInput(
                f"a model of {len(renewal.point):,} weights is not one of {private.problem.size:,}: the successor of a "
                "stream learns from the same features and classes. Leave renew out, or declare them as they were."
            )
        if not self.starts_there:
            return replace(self, renewal=renewal, why=f"{self.why}; it learns anew, and is used from its first release")
        learner: Any = private.learner
        started = replace(private, learner=replace(learner, center=renewal.point))
        return replace(self, private=started, renewal=renewal, why=f"{self.why}; it starts from a released model")

    @property
    def starts_there(self) -> bool:
        """Whether a successor by this plan starts from a released model, and does not learn anew."""
        private = self.private
        return not private.stages and isinstance(private.learner, FTRL | QFTL)

    @property
    def stream(self) -> Private:
        """The private learner of a stream; an error if the plan learns from all rows at once."""
        if isinstance(self.private, ObjectivePerturbation):
            raise Unprovable(
                f"{type(self.private).__name__} minimises over all rows at once: it does not learn row by row, and "
                "sums of parts of the rows cannot be added up. State a method of streams, such as pqftl or pftrl, or a "
                "release schedule."
            )
        return self.private

    @property
    def releases(self) -> int:
        """Number of models published within the horizon, or else within 100,000 rounds; one at least."""
        horizon = self.private.timetable.horizon
        return len(self._rounds) if horizon is None else self.private.timetable.count

    @cached_property
    def window(self) -> int | None:
        """Examples after which a row counts less by a factor of e; None if nothing is forgotten.

        With several memories, that for which the noise is fitted.
        """
        mechanism = self.private.mechanism
        return mechanism.forget if isinstance(mechanism, DecayedBLT) else None

    @property
    def last_round(self) -> int | None:
        """The last round that can be released; None if the stream never ends."""
        return self.private.last_round

    @property
    def end(self) -> str:
        """When the stream ends, in words."""
        return "the stream never ends" if self.last_round is None else f"the stream ends at row {self.last_round:,}"

    @cached_property
    def kept(self) -> float | None:
        """The share of the signal of this module that forgetting leaves, if nothing drifts; None without forgetting.

        The rest is lost to noise: a stream of the same rows that forgets nothing has that much more. With several
        memories it is that of the shortest, which is used where the world turns.

        >>> from taciturn import L2Ball, Privacy, Problem, Squared
        >>> problem = Problem(Squared(), L2Ball(1.0), dimension=10, label_bound=1.0)
        >>> round(recommend(problem, Privacy(1.0, 1e-6), horizon=100_000, forget=10_000).kept, 2)
        0.16
        """
        if self.window is None:
            return None
        private = self.stream
        window = self.window if self.memories is None else self.memories[0]
        rows = private.timetable.horizon or _PLANNED
        learner = private.learner
        between = distance(private.timetable)
        shorter = _decayed_error(between / window) / _decayed_error(between / self.window)
        here = _signal_of(learner, min(window, rows), private.noise_sd(_SETTLED) * shorter)
        whole = replace(private, mechanism=BLT(buffers=5), horizon=rows)
        return min(1.0, here / _signal_of(learner, rows, whole.calibrated.noise_sd(whole.timetable.count)))

    @cached_property
    def burn_in(self) -> int | None:
        """The first released round from which on a constant predicts worse, as the module says; None without one."""
        k = self._certain
        several = 1  # releases that are looked at in one call, twice as many each time
        while k > 1:
            first = max(1, k - several)
            noise = np.flatnonzero(~self._learns(first, k - first))
            if len(noise):
                k = first + int(noise[-1]) + 1
                break
            k = first
            several *= 2
        return self._round(k) if k <= self.releases else None

    @property
    def _certain(self) -> int:
        """A release from which on all learn, by bisection; one past the last, if none is known.

        A Toeplitz strategy's noise never shrinks from one sum to the next: the last release has the most.
        """
        if not isinstance(self.private.mechanism, BLT | DecayedBLT | SquareRoot):
            return self.releases + 1
        releases = range(1, self.releases + 1)
        last = self.releases
        return bisect_left(releases, True, key=lambda k: self._signal(last, self._round(k)) >= self._enough) + 1

    def learns_from(self, rows: int) -> Literal["nothing", "little", "enough"]:
        """How much can be learnt if so many rows of the stream have influence; the noise is that of the whole stream.

        >>> from taciturn import Hinge, L2Ball, Privacy, Problem
        >>> plan = recommend(Problem(Hinge(), L2Ball(1.0), dimension=10), Privacy(1.0, 1e-6), horizon=100_000)
        >>> plan.learns_from(100_000), plan.learns_from(1_000), plan.learns_from(10)
        ('enough', 'little', 'nothing')
        """
        if not self._outweighs(self.releases, rows):
            return "nothing"
        enough = _LITTLE if self._of_sums else self._enough
        return "little" if self._signal(self.releases, rows) < enough else "enough"

    @property
    def hopeless(self) -> bool:
        """Whether even the last release is mostly noise."""
        return not self._outweighs(self.releases, self._round(self.releases))

    @property
    def outlook(self) -> str:
        """What is expected from the end of the burn-in on, in a sentence.

        >>> from taciturn import Hinge, L2Ball, Privacy, Problem
        >>> recommend(Problem(Hinge(), L2Ball(1.0), dimension=10), Privacy(1.0, 1e-6), horizon=100_000).outlook
        'From row 1,050 on, predictions are expected to be better than a constant by at least a tenth of what they gain
         without privacy: in 99 of 100 models that were measured, they were.'
        """
        better = "to be better than a constant by at least a tenth of what they gain without privacy"
        if self.burn_in is None:
            return f"Of no release predictions are expected {better}."
        return (
            f"From row {self.burn_in:,} on, predictions are expected {better}: in 99 of 100 models that were measured, "
            "they were."
        )

    @property
    def warning(self) -> str | None:
        """A warning if little or nothing can be learnt, else None."""
        last = self._round(self.releases)
        users = ", or other rows_per_user" if isinstance(self.private.unit, User) else ""
        learns = self.learns_from(last)
        if learns == "nothing":
            return (
                f"Nothing useful can be learnt at this budget in {last:,} rounds: the noise outweighs the data in all "
                f"releases. Take a larger epsilon, more examples, fewer features{users}, or fewer releases."
            )
        if (blocks := self._long_blocks) is not None:
            return blocks
        if learns == "little":
            return (
                f"Little can be learnt at this budget in {last:,} rounds: expect a model that is far from what the "
                f"same rows give without privacy. Take a larger epsilon, more examples or fewer features{users}."
            )
        if not self._of_sums and self.burn_in is not None and self.burn_in > max(last / 2, self._round(1)):
            return f"Little can be learnt before the last of {last:,} rounds. {self.outlook}"
        return None

    @property
    def _long_blocks(self) -> str | None:
        """A warning if FTRL moves its point a few times only, once in a release; else None."""
        schedule, horizon = self.private.timetable.schedule, self.private.timetable.horizon
        if not self.averages or horizon is None or not isinstance(schedule, Every):
            return None
        usual = _steady(horizon).rounds
        if schedule.rounds <= usual or horizon >= _FEW_MOVES * schedule.rounds:
            return None
        moves = horizon // schedule.rounds
        return (
            f"Little can be learnt: private FTRL moves its point once in a release, {moves} time{'s' * (moves != 1)} "
            f"in {horizon:,} rows. Leave release out, which publishes every {usual:,} rows, or learn squared loss."
        )

    @property
    def delta_warning(self) -> str | None:
        """A warning if delta is too large to promise anything to single people, else None.

        A mechanism that publishes each of n rows with probability delta, and nothing else, is (0, delta)-differentially
        private, and publishes n·delta of them on average.
        """
        private = self.private
        delta, horizon = private.privacy.delta, private.timetable.horizon
        if horizon is not None:
            people = math.ceil(horizon / private.unit.rows) if isinstance(private.unit, User) else horizon
            if delta * people >= 1.0:
                return (
                    f"delta = {delta:g} is not below 1 / {people:,}, one over the number of people: a mechanism that "
                    "publishes all data of one of them would satisfy it. Take a delta well below that, such as "
                    f"{10.0 ** math.floor(math.log10(0.1 / people)):g}."
                )
        if delta > _LARGE_DELTA:
            return (
                f"delta = {delta:g} is large: everyone may be exposed with about that probability. Take a delta well "
                "below one over the number of people, such as 1e-6."
            )
        return None

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviation of the noise of the last release, with each strategy that could be used."""
        return self._compared[0]

    @property
    def not_compared(self) -> dict[str, str]:
        """Strategies that cannot be calibrated to this budget, schedule and horizon, and why; the plan's own can."""
        return self._compared[1]

    @cached_property
    def _compared(self) -> tuple[dict[str, float], dict[str, str]]:
        private = self.private
        noise: dict[str, float] = {}
        left_out: dict[str, str] = {}
        mechanism = private.mechanism
        if not isinstance(mechanism, PrefixSum):
            adds_noise = mechanism if private.is_stream else private
            return {type(adds_noise).__name__: private.noise_sd(self.releases)}, left_out
        for strategy in _strategies(self.stream):
            name = repr(strategy)
            try:
                made = private if strategy == mechanism else replace(self.stream, mechanism=strategy)
                noise[name] = made.noise_sd(self.releases)
            except (TaciturnError, MemoryError) as error:
                left_out[name] = str(error) or "it does not fit into memory"
        return noise, left_out

    @property
    def found_in_words(self) -> str:
        """What stages find before learning, in words; empty if there are none."""
        names: dict[type, str] = {Ranges: "ranges", Scales: "scales", Moments: "a map that spreads features evenly"}
        *others, last = dict.fromkeys(names[type(stage)] for stage in self.private.stages) or ("",)
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def chain(self) -> tuple[str, ...]:
        r"""How rows become a model, in five lines: ranges, scales, a map, features, learning.

        >>> from taciturn import Hinge, L2Ball, Privacy, Problem
        >>> plan = recommend(Problem(Hinge(), L2Ball(40.0), 2), Privacy(1.0, 1e-6), horizon=50_000, ranges="private")
        >>> print(*plan.chain, sep="\n")
        Ranges: rows 1 to 300 find those that are not stated, with noise.
        Scales: rows 301 to 900 find the center and the scale of these columns, with noise.
        Map: none.
        Features: standardised columns.
        Learning: all rows from 901 on, by pftrl; of 673 released points, the model is the late average.
        """
        private = self.private
        stages, borders = private.stages, private.borders

        def rows_of(kind: type) -> str:
            here = [i for i, stage in enumerate(stages) if isinstance(stage, kind)]
            return f"rows {borders[here[0]] + 1:,} to {borders[here[-1] + 1]:,} find" if here else ""

        ranges, scales, mixed = rows_of(Ranges), rows_of(Scales), rows_of(Moments)
        without = "off, as there are too few rows for it" if _OFF in self.why else "none"
        first = f"all rows from {borders[-1] + 1:,} on" if stages else "all rows"
        models = "the model is the one released point"
        if self.releases > 1:
            average = "the late average" if self.averages else "the last"
            models = f"of {self.releases:,} released points, the model is {average}"
        return (
            f"Ranges: {f'{ranges} those that are not stated, with noise' if ranges else 'as stated'}.",
            f"Scales: {f'{scales} the center and the scale of these columns, with noise' if scales else 'as stated'}.",
            f"Map: {f'{mixed} one that spreads features evenly, with noise' if mixed else without}.",
            f"Features: {'linear' if private.problem.features is None else private.problem.features}.",
            f"Learning: {first}, by {self.method}; {models}.",
        )

    @property
    def noise_on(self) -> str:
        """What the noise is added to, in words."""
        if not self.private.is_stream:
            return "the sum of gradients that the model makes zero"
        return "a sum" if isinstance(self.private.mechanism, PrefixSum) else "a model"

    def noise_sd(self, k: int) -> float:
        """Standard deviation of the noise of release k, on an entry of what `noise_on` says."""
        return self.private.noise_sd(k)

    def as_data(self) -> dict[str, Any]:
        """The plan as a dict that JSON can hold."""
        private = self.private
        problem = private.problem
        return {
            "method": self.method,
            "why": self.why,
            "chain": list(self.chain),
            "model": self._model_in_words,
            "features": "linear" if problem.features is None else str(problem.features),
            "mechanism": repr(private.mechanism) if private.is_stream else type(private).__name__,
            "schedule": repr(private.timetable.schedule),
            "horizon": private.horizon,
            "last_round": self.last_round,
            "forget": self.window if self.memories is None else list(self.memories),
            "kept_if_nothing_drifts": self.kept,
            "releases": self.releases,
            "ridge": problem.ridge,
            "radius": problem.radius if math.isfinite(problem.radius) else None,
            "epsilon": private.privacy.epsilon,
            "delta": private.privacy.delta,
            "neighbours": private.neighbours,
            "delivered_epsilon": private.guarantee.as_data(),
            "rests_on": private.guarantee.rests_on,
            "enforced_factor": self.enforced_factor,
            "unit": str(private.unit),
            **_bounds(private.unit),
            "noise_of_last_release": self.noise,
            "not_compared": self.not_compared,
            "burn_in": self.burn_in,
            "outlook": self.outlook,
            "warning": self.warning,
            "delta_warning": self.delta_warning,
        }

    @property
    def enforced_factor(self) -> float | None:
        """How many times as large the noise would be if clipping alone bounded a row; None where nothing is clipped.

        >>> from taciturn import L2Ball, Logistic, Privacy, Problem
        >>> problem = Problem(Logistic(), L2Ball(20.0), dimension=2, intercept=1.0)
        >>> made = recommend(problem, Privacy(1.0, 1e-6), horizon=1000, method="pftrl")
        >>> round(made.enforced_factor, 3)
        1.023
        """
        return self.stream.learner.certificate.enforced_factor if self.private.is_stream else None

    @property
    def basis(self) -> str:
        """What the bound on the influence of one row rests on, and what it would cost to enforce it.

        >>> from taciturn import L2Ball, Logistic, Privacy, Problem
        >>> problem = Problem(Logistic(), L2Ball(20.0), dimension=2, intercept=1.0)
        >>> recommend(problem, Privacy(1.0, 1e-6), horizon=1000, method="pftrl").basis.partition(". ")[2]
        'A bound by clipping alone would be enforced with 2.3% more noise.'
        """
        factor, told = self.enforced_factor, self.private.guarantee.basis
        if factor is None or factor == 1.0:
            return told
        return f"{told} A bound by clipping alone would be enforced with {factor - 1.0:.1%} more noise."

    @property
    def _model_in_words(self) -> str:
        if self.memories is not None:
            return f"that of the memory of {', '.join(f'{window:,}' for window in self.memories)} rows that fits best"
        return "late average of the released points" if self.averages else "last released point"

    def _repr_html_(self) -> str:
        private = self.private
        horizon = private.timetable.horizon
        told = [
            ("budget", f"epsilon = {private.privacy.epsilon:g} at delta = {private.privacy.delta:g}"),
            ("unit", f"{private.unit}, {private.neighbours}"),
            ("why", self.why),
            ("horizon", f"{horizon:,} rows" if horizon is not None else f"none; {self.end}"),
            ("releases", f"{self.releases:,}" + ("" if horizon else f" within {_PLANNED:,} rows")),
            ("noise", f"standard deviation {self.noise_sd(self.releases):.3g} on {self.noise_on}, at the last release"),
            ("burn-in", "in no release" if self.burn_in is None else f"until row {self.burn_in:,}"),
        ]
        warning = () if (text := self.warning) is None else (f'<p class="alarm">{escape(text)}</p>',)
        return card(f"Plan: {self.method}", facts(told), *warning)

    def _round(self, k: int) -> int:
        """The round of release k, one of those planned."""
        return self.private.timetable.due(k) or 0

    @cached_property
    def _rounds(self) -> list[int]:
        """The rounds planned where there is no horizon: the first release, and those within 100,000 rounds."""
        private = self.private
        rounds: list[int] = []
        while (due := private.timetable.due(len(rounds) + 1)) is not None and (due <= _PLANNED or not rounds):
            rounds.append(due)
        return rounds

    def _outweighs(self, k: int, t: int, share: float = 1.0) -> bool:
        """Whether this share of the data of t rounds has a signal at all, beside the noise of release k."""
        return share * self._signal(k, t) >= (_SOME if self._of_sums else 1.0)

    def _learns(self, first: int, count: int) -> NDArray[np.bool_]:
        """Whether each of `count` releases has the signal at which burn-in ends: for models in one call."""
        calibrated = self.private.calibrated
        if self._of_sums or not isinstance(calibrated, OnLattice):
            signals = [self._signal(k, self._round(k)) for k in range(first, first + count)]
            return np.array(signals) >= self._enough
        return np.asarray(calibrated.levels_of(first, count)[0] * self._enough <= self._longest_noise)

    @property
    def _enough(self) -> float:
        """The signal at which burn-in ends."""
        loss = self.private.problem.loss
        kind = "classes" if loss.labels != "real" else "squared" if isinstance(unweighted(loss), Squared) else "numbers"
        of_sums, of_models = _BURN_IN[kind]
        return of_sums if self._of_sums else of_models

    @property
    def _longest_noise(self) -> float:
        """The standard deviation of noise on a model that is as long as the longest model."""
        private = self.stream
        return min(private.problem.radius, private.learner.certificate.magnitude) / math.sqrt(private.problem.size)

    @property
    def _of_sums(self) -> bool:
        """Whether noise is added to sums, and not to models."""
        return not self.private.is_stream or isinstance(self.private.mechanism, PrefixSum)

    def _signal(self, k: int, t: int) -> float:
        """The signal of the module, after t rounds with the noise of release k."""
        private = self.private
        if not private.is_stream:
            return t * private.problem.lipschitz / (self.noise_sd(k) * _weights(private.problem))
        if not self._of_sums:
            return self._longest_noise / self.noise_sd(k)
        stream = self.stream
        return _signal_of(stream.learner, float(stream.calibrated.examples_of(k, t)), self.noise_sd(k))


def _signal_of(learner: Learner, t: float, noise_sd: float) -> float:
    """`q` of the module: what t examples add to a sum, beside noise of this standard deviation.

    >>> from taciturn import FTRL, Hinge, L2Ball, Problem
    >>> round(_signal_of(FTRL(Problem(Hinge(), L2Ball(1.0), dimension=10)), 1000, noise_sd=20.0), 6)
    5.0
    """
    problem = learner.problem
    if isinstance(learner, ClassSums):
        return t * problem.norm_bound / (_SPREAD * learner.classes * noise_sd)
    if isinstance(learner, LinearBandit):
        return t * learner.weight * problem.norm_bound / (noise_sd * problem.width * learner.arms)
    longest = problem.lipschitz
    if isinstance(learner, QFTL):
        longest = learner.w * learner.label_bound * problem.norm_bound  # the gradient at 0
    return t * longest / (noise_sd * _weights(problem))


def _weights(problem: Problem) -> int:
    """Over how many weights the signal is spread; those of random features are not independent."""
    return problem.size if problem.features is None else problem.outputs * (problem.dimension + 1)


def left_out(names: Iterable[str]) -> str:
    """What is said of strategies that could not be compared.

    >>> left_out(["BinaryTree()"])
    'Left out, because they cannot be calibrated to this budget, schedule and horizon: BinaryTree().'
    """
    return f"Left out, because they cannot be calibrated to this budget, schedule and horizon: {', '.join(names)}."


def recommend(
    problem: Problem,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    method: Method | None = None,
    schedule: Schedule | None = None,
    unit: Unit = EXAMPLE,
    once: bool = False,
    ranges: Literal["private"] | Sequence[int] | None = None,
    label_range: Literal["private"] | None = None,
    precondition: bool = False,
    found_scales: bool = False,
    forget: Forget | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Plan:
    """Method, mechanism, schedule and model by the rules of this module, unless given; settings go to `Private`.

    `unit` says whose data is protected: `Example()`, or `User(rows=4)`. With `once`, only the model after the last of
    `horizon` examples is wanted. With `ranges="private"`, `label_range="private"` and `precondition`, stages find what
    is not stated; the problem's bounds are then those of standardised features and labels. `ranges` may list the
    columns whose ranges are found. With `found_scales`, the scales of random features of all columns, which are equal,
    follow from what is found. With `forget`, a window in examples, several of them, or "auto", the model forgets. With
    `workers`, processes or machines that add up rows, only what they can learn is chosen, in blocks that suit them.

    >>> from taciturn import L2Ball, Privacy, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=5, label_bound=1.0)
    >>> recommend(problem, Privacy(1.0, 1e-6), horizon=10_000).method
    'pqftl'
    """
    expect("problem", problem, isinstance(problem, Problem), "Problem(Logistic(), L2Ball(1.0), dimension=10)")
    expect("privacy", privacy, isinstance(privacy, Privacy), "Privacy(epsilon=1.0, delta=1e-6)")
    horizon = None if horizon is None else horizon_of(horizon)
    if ranges is not None or label_range is not None or precondition:
        waves = _waves(problem) if found_scales and isinstance(ranges, str) else 0.0
        stages = _stages(problem, privacy, horizon, unit, ranges, label_range, precondition, waves)
        taken = sum(stage.rows for stage in stages)
        if horizon is not None and taken > horizon / 2:
            raise InvalidInput(
                f"finding what is not stated takes {taken:,} of {horizon:,} rows at this budget, more than half of "
                "them. State ranges or bounds from public knowledge, or take fewer columns or a larger epsilon."
            )
        rest = None if horizon is None else horizon - taken
        found = problem if ranges is None else with_standardised(problem, _neutral(problem, ranges))
        asked: dict[str, Any] = {"method": method, "schedule": schedule, "unit": unit, "once": once, "forget": forget}
        plan = recommend(found, privacy, rest, **asked, workers=workers, **settings)
        if workers is not None and stages and plan.method == "pftrl":
            raise InvalidInput(
                "workers learn private FTRL in blocks of equal length from the first row on, and stages that find "
                "ranges come before them. State ranges or bounds, use squared loss, or learn by one process."
            )
        if stages and isinstance(forget, str) and plan.memories is not None:  # which need bounds that are stated
            asked |= {"forget": plan.memories[0], "workers": workers}
            plan = recommend(found, privacy, rest, **asked, **settings)
        if precondition and not any(isinstance(stage, Moments) for stage in stages):
            plan = replace(plan, why=f"{plan.why}; {_OFF}")
        return _after_stages(plan, stages, horizon) if stages else plan
    if method is None:
        method, why = _method(problem, once and unit == EXAMPLE)
    else:
        one_of("method", method, get_args(Method))
        why = "as requested"
    if workers is not None and method not in _OF_SUMS:
        what = "minimises over all rows at once" if method == "objective" else "steps from each example to the next"
        raise Unprovable(
            f"{method} {what}, so that workers cannot add up its rows. Learn squared loss, or another loss over a "
            "bounded set, by sums; or leave workers out: one process learns a million rows a second."
        )
    if forget is not None and (method not in _OF_SUMS or once):
        raise Unprovable(
            "forgetting is proven for streams of sums: PQFTL, private FTRL and class sums, over a bounded set. Leave "
            "forget= out, or learn from a stream by one of these."
        )
    if (once or method == "objective") and horizon is None:
        raise InvalidInput("one release comes after the last example. State horizon, the number of examples.")
    if method == "objective":
        assert horizon is not None
        return Plan(method, ObjectivePerturbation(problem, privacy, horizon, **settings), why)
    if once and method != "pftrl":
        assert horizon is not None
        schedule = schedule or at([horizon])
    steady = method == "pftrl" and problem.ridge < 0.1 * (problem.smoothness - problem.ridge)
    memories = None
    stated = schedule is not None
    if forget is not None:
        windows = _windows(forget, problem, privacy, horizon, method, steady)
        if not windows:
            forget = None
            why += "; nothing is forgotten: at this budget the noise needs all of the rows"
        elif len(windows) > 1:
            memories, window = windows, tuned(windows)
            why += f"; of memories of {', '.join(f'{each:,}' for each in windows)} examples the one that fits best"
        else:
            (window,) = windows
            why += f"; after {window:,} examples a row counts less by a factor of e"
        if windows:
            schedule = schedule or _within(windows[0], steady)
    if workers is not None:
        schedule, told = _for_workers(method, schedule, stated, horizon, integer("workers", workers))
        why += told
    schedule = schedule or (_steady(horizon) if steady else geometric(1.1))
    if method in _OF_SUMS:
        recipe = _OF_SUMS[method]
        strategy = BLT(buffers=8 if horizon is None else 5) if forget is None else DecayedBLT(window)
        if steady:
            settings = {"curvature": curvature(problem), **settings}
        made = recipe(problem, privacy, horizon, strategy=strategy, schedule=schedule, unit=unit, **settings)
    else:
        recipe = pgiga if method == "pgiga" else pigd
        made = recipe(problem, privacy, horizon, schedule=schedule, unit=unit, **settings)
    if isinstance(unit, User):
        why += f"; the unit of privacy is {unit}"
        if method not in _OF_SUMS and unit.rows > 1:
            why += ", by group privacy: with sums, over a bounded set, rows that lie apart would need less noise"
    return Plan(method, made, why, averages=steady, memories=memories)


def _within(window: int, steady: bool) -> Every:
    """When a model that forgets is published."""
    return _steady(window) if steady else every(max(1, window // _FRESH))


def _windows(
    forget: Forget, problem: Problem, privacy: Privacy, horizon: int | None, method: str, steady: bool
) -> tuple[int, ...]:
    """The windows that are stated, or those of the rule of this module; none if the rule forgets nothing."""
    if isinstance(forget, str):
        one_of("forget", forget, ("auto",), also="a number of rows")
        window = _window(problem, privacy, method, steady)
        if horizon is not None and horizon < _ROOM * window:
            return ()
        return tuple(each * window for each in _LONGER) if method == "pqftl" else (window,)
    if not several(forget):
        return (integer("forget", forget),)
    if method != "pqftl":
        raise Unprovable(FTRL_COSTS)
    return windows_of(forget)


def _window(problem: Problem, privacy: Privacy, method: str, steady: bool) -> int:
    """The least window whose signal is `_CLEAR`, by the rule of this module.

    Noise is that of the decayed square root, from which the strategy differs by less than 1 %.
    """
    learner: Learner = {"pqftl": QFTL, "pftrl": FTRL, "class-sums": ClassSums}[method](problem)
    moved = float(learner.certificate.at(1.0))

    def clear(window: int) -> bool:
        noise = moved * _decayed_error(_within(window, steady).rounds / window) / privacy.mu
        return _signal_of(learner, window, noise) >= _CLEAR

    at_least = bisect_left(_WINDOWS, True, key=clear)
    if at_least == len(_WINDOWS):
        raise InvalidInput(
            f"no window of up to {_WINDOWS[-1]:,} examples outweighs the noise at this budget. Take a larger epsilon "
            "or fewer features, or state forget= in examples."
        )
    return _WINDOWS[at_least]


def _decayed_error(share: float) -> float:
    """The noise of a decayed sum at mu = 1, of which this share of a window lies between two releases."""
    from scipy.special import ellipk  # here: it loads slowly, and few plans need it

    return 2.0 / math.pi * float(ellipk(math.exp(-2.0 * share)))


def _stages(
    problem: Problem,
    privacy: Privacy,
    horizon: int | None,
    unit: Unit,
    ranges: str | Sequence[int] | None,
    label_range: str | None,
    precondition: bool,
    waves: float,
) -> tuple[Stage, ...]:
    """The stages that find what is not stated."""
    stages: list[Stage] = []
    for name, value in (("ranges", ranges), ("label_range", label_range)):
        if isinstance(value, str):
            one_of(name, value, ("private",))
    if ranges is not None or label_range is not None:
        ranges = ranges or ()
        columns = (
            None if isinstance(ranges, str) else tuple(integer("a column", j, least=0, of_many=True) for j in ranges)
        )
        count = problem.dimension if columns is None else len(columns)
        labels = label_range is not None
        if not 1 <= count + labels <= _MOST_COLUMNS:
            raise InvalidInput(
                f"ranges are found for 1 to {_MOST_COLUMNS:,} columns, got {count:,}. State feature_bound."
            )
        together = unit.participation.per_release
        rows = max(300, math.ceil(13.0 * math.sqrt(2.0 * (count + labels)) * 2.6 * together / privacy.mu))
        closer = horizon is None or 3 * rows <= _SPARED * horizon
        scales = [Scales(rows, labels, columns, waves)] * (2 if closer else 1)
        stages = [Ranges(rows, labels, columns), *scales]
    if precondition:
        if horizon is None:
            raise InvalidInput("preconditioning reads a share of the stream. State horizon, the number of examples.")
        if problem.width > _MOST_SQUARED:
            raise InvalidInput(
                f"preconditioning is for up to {_MOST_SQUARED} features, got {problem.width:,}. Leave it out."
            )
        if rows := _rows_of_moments(problem, privacy, horizon, unit):
            stages.append(Moments(rows))
    return tuple(stages)


def _rows_of_moments(problem: Problem, privacy: Privacy, horizon: int, unit: Unit) -> int:
    """How many rows preconditioning reads; 0 if those that it may read would not outweigh the noise."""
    most = round(_SPARED * horizon)
    learner = SecondMoment(problem)
    noise = float(learner.certificate.at(1.0)) * unit.participation.per_release / privacy.mu
    d = learner.features
    diagonal = d * noise / problem.feature_bound**2  # so many rows add as much to an entry as the noise
    full = 4.0 * math.sqrt(2.0 * d) * diagonal  # so many are needed for a full map
    if most < _LEAST_MOMENTS * diagonal:
        return 0
    return min(most, math.ceil(1.5 * full if most >= 1.1 * full else _MOMENTS * diagonal))


def _waves(problem: Problem) -> float:
    """The scale of random features of one standardised column, from that of many by the same rule; 0 without any."""
    features = problem.features
    if not isinstance(features, RandomFeatures):
        return 0.0
    return float(np.max(features.scale)) * math.sqrt(problem.dimension)


def _neutral(problem: Problem, ranges: str | Sequence[int]) -> Standardise:
    """The map before anything is found."""
    columns = None if isinstance(ranges, str) else tuple(ranges)
    count = problem.dimension if columns is None else len(columns)
    return Standardise(np.zeros(count), np.ones(count), columns=columns)


def _after_stages(plan: Plan, stages: tuple[Stage, ...], horizon: int | None) -> Plan:
    """The plan for the rows that stages leave, as one stream."""
    if not plan.private.is_stream:
        raise Unprovable("stages are proven for streams. Bound the domain, e.g. L2Ball(1.0), or state the ranges.")
    private = plan.stream
    given = {each.name: getattr(private, each.name) for each in fields(private)}
    learner = private.learner
    if isinstance(learner, FTRL) and learner.curvature > 0.0 and any(isinstance(stage, Moments) for stage in stages):
        learner = replace(learner, curvature=curvature(private.problem, _WHITENED))
    staged = Staged(**(given | {"learner": learner, "horizon": horizon, "stages": stages}))
    if plan.memories is not None:
        raise InvalidInput(
            "several memories need bounds that are stated, as what stages find changes the sums. State ranges, or one "
            "window, as in forget=10_000."
        )
    made = replace(plan, private=staged)
    why = f"{plan.why}; the first {staged.rows_of_stages:,} rows are used to find {made.found_in_words}, with noise"
    return replace(made, why=why)


def feature_map(
    features: Features,
    feature_bound: float,
    privacy: Privacy,
    horizon: int | None = None,
    *,
    unit: Unit = EXAMPLE,
    by_ftrl: bool = True,
    scales: tuple[float, ...] | None = None,
) -> FeatureMap | None:
    """The public map of a setting: None for "linear", random features by the rule of this module, or so many of them.

    Parameters
    ----------
    features : {"linear", "random"}, int or FeatureMap
        The setting.
    feature_bound, privacy, horizon, unit
        Those of the problem, the budget and the stream.
    by_ftrl : bool
        Whether classes are learnt by private FTRL, for which "random" was measured; it is "linear" for all else.
    scales : tuple of float, optional
        The basic scale of each feature by `feature_scales`, if it is known which are numbers; else one for all.

    Examples
    --------
    >>> print(feature_map("random", 1.0, Privacy(1.0, 1e-6), horizon=500_000))
    2,000 random features of scale 3.05 and seed 0, and the raw ones
    >>> feature_map("random", 1.0, Privacy(1.0, 1e-6), horizon=1_000) is None
    True
    """
    if isinstance(features, FeatureMap):
        return features
    horizon = None if horizon is None else horizon_of(horizon)
    if isinstance(features, str):
        one_of("features", features, get_args(FeatureName), also="a number of random features")
        if features == "linear" or not by_ftrl or horizon is None or horizon < _MANY * _RANDOM:
            return None
        if _strength(privacy, horizon, unit) < (_ENOUGH if scales else 4.0 * _ENOUGH):
            return None
        features = _RANDOM
    bound = positive("feature_bound", feature_bound)
    scales = None if scales is None else tuple(not_negative("a scale", scale, of_many=True) for scale in scales)
    finer = 1.0 if horizon is None else min(max((_strength(privacy, horizon, unit) / _BASIC) ** 0.1, 0.5), 2.0)
    scale = tuple(_rounded(finer * each) for each in scales) if scales else _rounded(finer * _ANY_SCALE / bound)
    return RandomFeatures(integer("features", features, least=2), scale, length=bound)


def standard_scale(columns: int) -> float:
    """The scale of random features of so many standardised columns.

    >>> standard_scale(16)
    0.475
    """
    return 1.9 / math.sqrt(integer("columns", columns, least=0) or 1)


def feature_scales(numbers: int, groups: int) -> tuple[float, float]:
    """Basic scales of random features by the rule of this module: of a number in [-1, 1], and of an indicator.

    `numbers` is how many numbers there are, and `groups` from how many columns the indicators come.

    >>> feature_scales(numbers=16, groups=4)
    (1.5, 0.4)
    """
    numbers, groups = integer("numbers", numbers, least=0), integer("groups", groups, least=0)
    return min(2.0, 6.0 / math.sqrt(max(1, numbers))), 0.8 / math.sqrt(max(1, groups))


def _rounded(scale: float) -> float:
    """A scale to three digits: the same on every machine, as it is part of a stream's settings."""
    return float(f"{scale:.3g}")


def _strength(privacy: Privacy, horizon: int, unit: Unit) -> float:
    """How much there is to learn from: the number of rows times mu, divided among the rows of a user."""
    return horizon * privacy.mu / (unit.rows if isinstance(unit, User) else 1)


def rows_per_user(
    problem: Problem,
    privacy: Privacy,
    horizon: int,
    users: int | None = None,
    *,
    apart: int = 1,
    **settings: Any,
) -> int:
    """How many rows of a user should count, by the rule of this module: from public numbers, never from data.

    Parameters
    ----------
    problem, privacy, horizon
        As in `recommend`; the horizon is the number of rows.
    users : int, optional
        How many users there are, if that is public.
    apart : int
        As in `taciturn.User`.
    **settings
        Others of `recommend`.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Privacy, Problem
    >>> problem = Problem(Logistic(), L2Ball(2.0), dimension=10)
    >>> rows_per_user(problem, Privacy(1.0, 1e-6), horizon=200_000, users=56_655)
    4
    """
    horizon = horizon_of(horizon)
    most = _MOST_ROWS if users is None else -(-horizon // integer("users", users))

    def affordable(rows: int) -> bool:
        plan = recommend(problem, privacy, horizon, unit=User(rows, apart=apart), **settings)
        return plan._outweighs(plan.releases, plan._round(plan.releases), _AFFORDABLE)

    fits = bisect_left(range(1, min(most, horizon) + 1), True, key=lambda rows: not affordable(rows))
    return max(fits, 1)


def curvature(problem: Problem, share: float = 0.01) -> float:
    """The curvature of `FTRL` by the rule of this module, from public numbers; 0 where there is no rule.

    `share` is the factor .01 of the rule: c in units of the mean curvature of a row.

    >>> from taciturn import Hinge, L2Ball, Problem
    >>> round(curvature(Problem(Hinge(), L2Ball(40.0), dimension=50)), 6)
    0.0002
    """
    share = not_negative("share", share)
    if not (math.isfinite(problem.radius) and isinstance(problem.loss, ScalarLoss | ScoresLoss)):
        return 0.0
    assert problem.label_bound is not None  # 1 for classes
    return share * problem.lipschitz * problem.norm_bound / (problem.label_bound * problem.width)


def _method(problem: Problem, once: bool) -> tuple[Method, str]:
    if (
        once
        and isinstance(problem.domain, WholeSpace)
        and problem.ridge > 0.0
        and type(unweighted(problem.loss)) in (Logistic, Huber)
    ):
        return "objective", "one release of a smooth loss, without constraints: a random linear term in the objective"
    squared = type(problem.loss) in (Squared, OneHot) and problem.width <= _MOST_SQUARED
    if math.isfinite(problem.radius) and squared:
        return "pqftl", "squared loss over a bounded set: private sums of its sufficient statistics"
    if math.isfinite(problem.radius):
        return "pftrl", "a bounded set: private sums of gradients"
    if problem.ridge > 0.0 and math.isfinite(problem.smoothness):
        return "pgiga", "no bounded set, but a ridge and a smooth loss: noisy gradient descent"
    if problem.ridge > 0.0:
        return "pigd", "no bounded set, but a ridge: noisy implicit steps"
    raise Unprovable("without a bounded set or a ridge nothing is certified. Bound the domain, e.g. L2Ball(1.0).")


def _bounds(unit: Unit) -> dict[str, Any]:
    """The bounds on a user's rows, by the names of all fronts; None where there is none."""
    if not isinstance(unit, User):
        return dict.fromkeys(("rows_per_user", "rows_per_release", "apart", "period"))
    return {
        "rows_per_user": unit.rows,
        "rows_per_release": unit.per_release,
        "apart": unit.apart,
        "period": unit.period,
    }


def _for_workers(
    method: Method, schedule: Schedule | None, stated: bool, horizon: int | None, workers: int
) -> tuple[Schedule | None, str]:
    """The schedule of a stream that workers add up, None for the usual one, and what they cost in accuracy."""
    if method != "pftrl":
        if isinstance(schedule, Every) and schedule.rounds < LEAST_ROWS:
            if stated:
                raise InvalidInput(
                    f"a release every {schedule.rounds} rows leaves workers nothing to add up. Let it publish every "
                    f"{LEAST_ROWS} rows or more, or leave workers out."
                )
            schedule = every(LEAST_ROWS)
        return schedule, "; sums do not depend on who adds them up: workers cost no accuracy"
    if not stated or schedule is None:
        schedule = every(JOB * workers)
    if not isinstance(schedule, Every) or schedule.rounds % JOB:
        raise InvalidInput(
            f"workers learn private FTRL in blocks of equal length, a multiple of {JOB:,} rows, and releases are by "
            f"{schedule}. Let it publish every {JOB * workers:,} rows."
        )
    rounds = schedule.rounds
    rows = _PLANNED if horizon is None else horizon
    if horizon is not None and horizon < _MOVES * rounds:
        most = horizon // (_MOVES * JOB) * JOB
        shorter = f"Let it publish every {most:,} rows; or learn" if most else "Learn"
        raise InvalidInput(
            f"private FTRL by workers would move its point {horizon // rounds:,} times in {horizon:,} rows, once in a "
            f"block of {rounds:,}, and learn next to nothing. {shorter} squared loss, whose sums do not depend on "
            "blocks; or leave workers out."
        )
    return schedule, (
        f"; a block of {rounds:,} rows is one job of {workers} workers at the point released last, so that points move "
        f"{rows // rounds:,} times in {rows:,} rows and not {rows // _steady(horizon).rounds:,} times, which costs "
        "accuracy (docs/engines.md has how much), while squared loss loses nothing by workers"
    )


def _steady(horizon: int | None) -> Every:
    """Blocks short enough that FTRL does not overshoot, and no shorter."""
    return every(100 if horizon is None else max(1, math.isqrt(horizon) // 3))


def _strategies(private: Private) -> list[PrefixSum]:
    """Every strategy for sums that the horizon allows; of sums that forget, their own."""
    if isinstance(private.mechanism, DecayedBLT):
        return [private.mechanism]
    if private.timetable.horizon is None:
        return [BLT(8)]
    return [BinaryTree(refined=False), BinaryTree(), SquareRoot(), BLT(4), BLT(5)]
