"""The fits of an estimator and of its clones in one process: how many there are, and what they cost together.

A search, a cross-validation or a refit clones an estimator and fits the clones, each as a stream of its own. A ledger
adds up what they cost; this counter does so where no ledger is given, and for those who ask.

**What is counted.** Every stream that was opened on secret noise, by its reserved cost. Costs add, also if later
settings are chosen from earlier models. The sum is what a row costs that is in all of the fits. It is an upper bound
for every other row: of k folds a row is in the training part of all but one, so k - 1 of them and the refit read it,
and no counter can tell which rows those are without reading them. A score of held-out rows, and a choice that is made
by it, is not a fit: no part of the sum pays for it.

**When.** A stream is counted before it is opened, by its name, so that a call that is interrupted after it has released
something is counted, and a stream that is resumed is counted once. One that a ledger rejects is taken out again.

**Where.** Clones and copies have the counter of the original. A pickle has its name and its fits, which are public
numbers: loaded in the same process it is the same counter, which then also knows what came back with it; in another
process it goes on from there.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

from taciturn.estimators.stream import PrivacyWarning
from taciturn.kernel.accounting.cost import Cost, Spent, total
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.stream.state import new_name

_OFTEN = 4  # the sum is told again when there are so many times the fits

ELSEWHERE = (
    "this fit is not in the process of the estimator that it was cloned from, as with n_jobs, so nothing adds its cost "
    "to that of the others. Give the estimator a ledger in a file, as in ledger='budget.db', which counts all of them."
)

_WARNED: dict[int, Fits] = {}
_COUNTERS: dict[str, ReferenceType[Fits]] = {}  # of this process, by name: those that were pickled or loaded


class _Fit(NamedTuple):
    rows: int
    cost: Cost
    delta: float
    protects: tuple[str, str]  # the neighbour relation and the unit that its cost is about


class Fits:
    """The fits of an estimator and of its clones; copies, and pickles in the same process, are the same object.

    >>> from taciturn.kernel.accounting.cost import gaussian
    >>> fits = Fits()
    >>> for _ in range(4):
    ...     name = fits.add(1_000, gaussian(0.01), delta=1e-6)
    >>> len(fits), round(fits.together.epsilon, 3)
    (4, 0.834)
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name or new_name()
        self._fits: dict[str, _Fit] = {}
        self._told = 0
        self._sent = self._sent_told = 0
        self._elsewhere = False
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._fits)

    @property
    def together(self) -> Spent:
        """The epsilon of all fits at the delta of the last one or, if it is finite only there, at the sum of deltas.

        One-off fits by objective perturbation have a plain delta each, and those add. Costs that are about different
        neighbours or units do not add, as in a ledger, which rejects them: the epsilon is then infinite.
        """
        return _sum(list(self._fits.values()))

    @property
    def _further(self) -> str:
        """What further fits add, in words: one, and those up to which nothing more may be said."""
        made = list(self._fits.values())
        one, many = _sum([*made, made[-1]]), _sum([*made, *[made[-1]] * (_OFTEN - 1) * len(made)])
        if math.inf in (one.epsilon, many.epsilon):
            return "Each further one adds its own cost."
        return (
            f"Each further one adds its own cost: like the last, one more makes it epsilon = {rounded_up(one.epsilon)} "
            f"at delta = {rounded_up(one.delta)}, and {_OFTEN * len(made):,} in all {rounded_up(many.epsilon)} at "
            f"{rounded_up(many.delta)}."
        )

    def add(
        self,
        rows: int,
        cost: Cost,
        delta: float,
        name: str | None = None,
        neighbours: str = "replace",
        unit: str = "example",
    ) -> str:
        """Count a fit of so many rows, once for each name, and return its name, a new one if there is none.

        It is one atomic step, which threads and signal handlers may take at any time.
        """
        name = name or new_name()
        self._fits.setdefault(name, _Fit(rows, cost, delta, (neighbours, unit)))
        return name

    def discard(self, name: str) -> None:
        """Forget a fit that was not made: a ledger has rejected it."""
        self._fits.pop(name, None)

    def warn(self, told: bool = False, stacklevel: int = 2) -> None:
        """Say what the fits cost together, where that is due; if the user was `told` of the last one, it rarely is.

        Due is the second fit, one of as many rows as any and more than all since the last warning, as the refit of a
        search is (also if all rows were fitted before the search), one that makes the number of fits four times that of
        the last warning, and one after copies were sent to other processes.
        """
        if self._elsewhere or self._process != os.getpid():
            if _WARNED.setdefault(os.getpid(), self) is self:  # once in a process, which may fit hundreds
                warnings.warn(ELSEWHERE, PrivacyWarning, stacklevel=stacklevel + 1)
            return
        *earlier, last = [fit.rows for fit in list(self._fits.values())]
        count, before, sent = len(earlier) + 1, self._told, self._sent > self._sent_told
        most, since = max(earlier, default=last), max(earlier[max(before - 1, 0) :], default=last)
        largest = last >= most and last > since
        if not (sent or largest or (count >= _OFTEN * before if before else earlier)):
            return
        self._told, self._sent_told = count, self._sent
        if told and not before and not sent:
            return
        warnings.warn(self._sentence(), PrivacyWarning, stacklevel=stacklevel + 1)

    def warn_of_streams(self, stacklevel: int = 2) -> None:
        """Say what streams that are learnt side by side cost together: at the second, and at twice as many again."""
        if len(self) < 2 or len(self) < 2 * self._told:
            return
        self._told = len(self)
        epsilon, delta = self.together
        cost = (
            f"cost together epsilon = {rounded_up(epsilon)} at delta = {rounded_up(delta)} for an example that each of "
            "them learns once, and more for one that a stream learns several times, as by bagging."
        )
        if epsilon == math.inf:
            cost = "protect different things (neighbours=, rows_per_user=), so that their costs have no sum."
        warnings.warn(
            "each clone of a model is a stream with a budget of its own, as in an ensemble: those of this model and "
            f"its clones, {len(self)} so far, {cost} {self._further} Use one model; or give it a ledger, as in "
            "ledger='budget.db', to limit the sum.",
            PrivacyWarning,
            stacklevel=stacklevel + 1,
        )

    def _sentence(self) -> str:
        epsilon, delta = self.together
        sent = f", without {self._sent} copies that went to other processes" if self._sent else ""
        cost = (
            f"cost together epsilon = {rounded_up(epsilon)} at delta = {rounded_up(delta)} for a row that is in all of "
            "them, and no more for any other."
        )
        if epsilon == math.inf and len({fit.protects for fit in list(self._fits.values())}) > 1:
            cost = "protect different things (neighbours=, rows_per_user=), so that their costs have no sum."
        return (
            f"the fits of this estimator and its clones, {len(self)} so far{sent}, {cost} {self._further} A search "
            "costs at least that: choosing by a score is not paid for. Give the estimator a ledger, as in "
            "ledger='budget.db', to limit the sum; with n_jobs only a ledger in a file counts all fits. "
            "PrivateSearchCV searches within one budget."
        )

    def __copy__(self) -> Fits:
        return self

    def __deepcopy__(self, memo: object) -> Fits:
        return self

    def __reduce__(self) -> Any:
        self._sent += 1
        return self.pickled(True)

    def pickled(self, elsewhere: bool) -> Any:
        """What a pickle holds, of a copy that may fit `elsewhere`, or of one that is stored."""
        _COUNTERS[self._name] = ref(self)
        return _loaded, (self._name, dict(self._fits), elsewhere)


def _sum(made: Sequence[_Fit]) -> Spent:
    """The epsilon of fits, as `Fits.together` says."""
    if not made:
        return Spent(0.0, 0.0)
    if len({fit.protects for fit in made}) > 1:
        return Spent(math.inf, made[-1].delta)
    cost, delta = total(fit.cost for fit in made), made[-1].delta
    if cost.epsilon(delta) == math.inf:
        delta = sum(fit.delta for fit in made)
    return Spent(cost.epsilon(delta), delta)


class StoredFits:
    """The counter of a model that is stored, or returned by another process: its pickle is no copy that fits."""

    def __init__(self, fits: Fits) -> None:
        self.fits = fits

    def __deepcopy__(self, memo: object) -> StoredFits:
        return self

    def __reduce__(self) -> Any:
        return self.fits.pickled(False)


def _loaded(name: str, made: dict[str, _Fit], elsewhere: bool) -> Fits:
    """The counter of this name in this process, with these fits, or a new one that begins with them."""
    new = Fits(name)
    new._elsewhere = elsewhere
    if (fits := _COUNTERS.setdefault(name, ref(new))()) is None:
        fits = new
        _COUNTERS[name] = ref(new)
    elif fits is not new and elsewhere and fits._sent:
        fits._sent -= 1  # it is here
    for each, fit in made.items():
        fits._fits.setdefault(each, fit)
    return fits
