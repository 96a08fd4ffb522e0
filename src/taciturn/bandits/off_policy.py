"""Off-policy evaluation: what a policy would have earned, estimated from the log of another one.

A log has n independent decisions (x, a, r, p): the context, the action that was shown, its reward, and the probability
p with which the logging policy chose a, given x. The value of a target policy pi is the mean reward that it would earn
on the same contexts. With the weights `w = pi(a|x)/p`,

    IPS                 mean of w·r                                                 unbiased
    SNIPS               Σ w·r / Σ w                                                 biased by O(1/n), mostly less noisy
    direct method       mean of Σ_a pi(a|x)·q(x, a)                                 as good as the model q
    doubly robust       mean of Σ_a pi(a|x)·q(x, a) + w·(r - q(x, a_logged))        unbiased for any q of other rows

*Proof.* `E[w·f(x, a)| x] = Σ_a p(a|x)·pi(a|x)/p(a|x)·f(x, a) = Σ_a pi(a|x)·f(x, a)`, if p(a|x) > 0 wherever
pi(a|x) > 0. With f the mean reward this is IPS; with f = q, a function of other rows, the two terms of the doubly
robust estimate that have q cancel. ∎ (Horvitz, Thompson, 1952; Swaminathan, Joachims, *The self-normalized estimator
for counterfactual learning*, 2015; Dudík, Langford, Li, *Doubly robust policy evaluation and learning*, 2011.)

**NOT PRIVATE.** These four estimates, their errors and the reward model are computed from exact rows and are for the
operator alone. `private_ips` is the one that may be published: a mean of clipped terms, by `taciturn.private_sum`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from taciturn._util.html import card, facts, paragraph
from taciturn._util.output import NOT_PRIVATE
from taciturn.accounting.guarantee_report import guarantee_html
from taciturn.accounting.ledger import LedgerLike
from taciturn.errors import InvalidInput, expect, finite, integer, number, positive
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.arrays import Array, Integers, fixed
from taciturn.kernel.problem.inputs import real_numbers
from taciturn.kernel.stream.schedule import at
from taciturn.methods.recipes import private_sum

FEW = 100
"""Rows below which the normal approximation of an interval is called rough."""

NEAR_ZERO = 0.01
"""Propensities are called near 0 if they are below this, and below 1/n."""

_ROUNDING = 1e-6  # how far probabilities of actions may be from a sum of 1


@dataclass(frozen=True, eq=False)
class LoggedDecisions:
    """Decisions of a logging policy: actions, rewards, propensities and contexts, one decision a row. Secret.

    Parameters
    ----------
    actions : array of int
        The actions that were shown, from 0 to `arms - 1`.
    rewards : array
        What they earned.
    propensities : array
        The probability with which the logging policy chose the action that was shown, given the context: above 0.
    arms : int
        Number of actions that there are.
    contexts : array, optional
        Features of each decision, one row each; only `cross_fitted_rewards` reads them.

    Examples
    --------
    >>> log = LoggedDecisions(actions=[0, 1, 1], rewards=[1.0, 0.0, 1.0], propensities=[0.5, 0.5, 0.5], arms=2)
    >>> len(log), log.arms
    (3, 2)
    """

    actions: Integers
    rewards: Array
    propensities: Array
    arms: int
    contexts: Array | None = None

    def __post_init__(self) -> None:
        arms = integer("arms", self.arms)
        actions = np.array(self.actions)
        if actions.ndim != 1 or actions.dtype.kind not in "iu" or len(actions) < 2 or np.ma.is_masked(self.actions):
            raise InvalidInput(
                "actions must be a list of integers, one for each of two or more decisions, and something else came. "
                f"Map names of actions to 0 to {arms - 1}."
            )
        if not (actions.min() >= 0 and actions.max() < arms):
            raise InvalidInput(f"actions must be 0 to {arms - 1}, as there are {arms} arms, and some are not.")
        rewards = _column("rewards", self.rewards, len(actions))
        propensities = _column("propensities", self.propensities, len(actions))
        if not (propensities.min() > 0.0 and propensities.max() <= 1.0):
            raise InvalidInput(
                "propensities must be above 0 and at most 1, and some are not: an action that was shown had a chance. "
                "Log the probability at the time of the decision."
            )
        contexts = None if self.contexts is None else _table("contexts", self.contexts, len(actions))
        values = (actions.astype(np.int64), rewards, propensities, contexts)
        for name, value in zip(("actions", "rewards", "propensities", "contexts"), values, strict=True):
            object.__setattr__(self, name, None if value is None else fixed(value))
        object.__setattr__(self, "arms", arms)

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:  # no row is shown
        return f"LoggedDecisions({len(self):,} decisions, {self.arms:,} arms)"


@dataclass(frozen=True, repr=False)
class PolicyValue:
    """An estimate of a policy's value from exact rows. NOT PRIVATE: for the operator alone.

    Attributes
    ----------
    method : str
        Name of the estimator.
    value, standard_error : float
        The estimate, and its standard error.
    level, low, high : float
        Level and ends of the interval `value ± z·standard_error`, a normal approximation.
    rows : int
        Number of decisions.
    effective_sample_size, mean_weight, largest_weight : float
        `(Σw)²/Σw²`, as many rows of the target policy's own log would tell about as much; the mean weight, which is 1
        up to chance if the propensities are right and the logging policy can show whatever the target shows; and the
        largest weight.
    clipped : int
        Weights that were clipped.
    notes : tuple of str
        What makes the estimate doubtful.
    """

    method: str
    value: float
    standard_error: float
    level: float
    low: float
    high: float
    rows: int
    effective_sample_size: float
    mean_weight: float
    largest_weight: float
    clipped: int
    notes: tuple[str, ...]

    @property
    def _facts(self) -> list[tuple[str, str]]:
        clipped = f", {self.clipped:,} clipped" if self.clipped else ""
        return [
            ("value", f"{self.value:.4g}, standard error {self.standard_error:.3g}"),
            (f"{100 * self.level:g} % interval", f"{self.low:.4g} to {self.high:.4g} (normal approximation)"),
            ("rows", f"{self.rows:,}, effective sample size {self.effective_sample_size:,.0f}"),
            ("weights", f"mean {self.mean_weight:.3g}, largest {self.largest_weight:.4g}{clipped}"),
        ]

    def __str__(self) -> str:
        lines = [NOT_PRIVATE, f"Off-policy value by {self.method}"]
        lines += [f"  {name}: {text}" for name, text in self._facts]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = [paragraph(note) for note in self.notes]
        title = paragraph(f"Off-policy value by {self.method}")
        return card(NOT_PRIVATE, title, facts(self._facts), *notes, alarm=True)


def ips(log: LoggedDecisions, target: ArrayLike, *, clip: float | None = None, level: float = 0.95) -> PolicyValue:
    """The value of a policy by inverse propensity scores: the mean of `w·r`. NOT PRIVATE.

    Unbiased without clipping, if the logging policy can show every action that the target policy shows. The standard
    error is `sd(w·r)/sqrt(n)`.

    Parameters
    ----------
    log : LoggedDecisions
        The log of another policy.
    target : array
        What the target policy would do on each logged context: probabilities of all actions (n × arms), or only that of
        the logged action (n).
    clip : float, optional
        Largest weight; larger ones are replaced by it. A public number: less variance, and a bias, downwards if rewards
        are not negative.
    level : float
        Level of the interval, a normal approximation.

    Examples
    --------
    >>> log = LoggedDecisions([0, 1, 1, 0], rewards=[1, 0, 1, 1], propensities=[0.5] * 4, arms=2)
    >>> ips(log, [[1.0, 0.0]] * 4).value, ips(log, log.propensities).value
    (1.0, 0.75)
    """
    weights = _weights(log, target, clip)
    return _mean("IPS", weights, weights.used * log.rewards, level, *_near_zero(log, weights, clip))


def snips(log: LoggedDecisions, target: ArrayLike, *, clip: float | None = None, level: float = 0.95) -> PolicyValue:
    """The value of a policy by self-normalised inverse propensity scores: `Σ w·r / Σ w`. NOT PRIVATE.

    Its bias is of the order 1/n. It lies between the least and the largest reward, and does not change if a constant is
    added to all rewards and taken off again, which is why it is mostly less noisy than `ips`. The standard error is
    that of a ratio (delta method): `sqrt(Σ w²·(r - value)²·n/(n - 1))/Σ w`. Parameters are those of `ips`.

    >>> log = LoggedDecisions([0, 1, 1, 0], rewards=[1, 0, 1, 1], propensities=[0.5, 0.8, 0.8, 0.4], arms=2)
    >>> round(snips(log, [[0.25, 0.75]] * 4).value, 4)
    0.6875
    """
    weights = _weights(log, target, clip)
    total = weights.used.sum()
    if not total > 0.0:
        raise InvalidInput(
            "no logged action has a chance under the target policy, so that the log tells nothing about it. Evaluate a "
            "policy that shows logged actions."
        )
    value = float(weights.used @ log.rewards / total)
    residuals = weights.used * (log.rewards - value)
    n = len(log)
    error = math.sqrt(residuals @ residuals * n / (n - 1)) / total
    return _result("SNIPS", weights, value, error, residuals, level, _near_zero(log, weights, clip))


def direct_method(
    log: LoggedDecisions, target: ArrayLike, rewards: ArrayLike | None = None, *, level: float = 0.95
) -> PolicyValue:
    """The value of a policy by a reward model alone: the mean of `Σ_a pi(a|x)·q(x, a)`. NOT PRIVATE.

    The standard error is that of the contexts. It leaves out the model's own error, so that the interval is one for the
    value only if the model is right.

    Parameters
    ----------
    log, level
        As in `ips`.
    target : array
        Probabilities of all actions on each logged context (n × arms).
    rewards : array, optional
        The model's predicted reward of every action on each logged context (n × arms); by default
        `cross_fitted_rewards(log)`.

    Examples
    --------
    >>> log = LoggedDecisions([0, 1], rewards=[1, 0], propensities=[0.5, 0.5], arms=2)
    >>> direct_method(log, [[0.5, 0.5], [0.0, 1.0]], rewards=[[1.0, 0.0], [1.0, 0.0]]).value
    0.25
    """
    weights = _weights(log, target, None, every_action=True)
    terms = _expected(log, target, rewards)[0]
    note = "the standard error leaves out the error of the reward model."
    return _mean("the direct method", weights, terms, level, note)


def doubly_robust(
    log: LoggedDecisions,
    target: ArrayLike,
    rewards: ArrayLike | None = None,
    *,
    clip: float | None = None,
    level: float = 0.95,
) -> PolicyValue:
    """The value of a policy by the direct method, corrected by weighted residuals. NOT PRIVATE.

    The mean of `Σ_a pi(a|x)·q(x, a) + w·(r - q(x, a_logged))`: unbiased if the propensities are right, whatever the
    model, and consistent if the model is right, whatever the propensities. The standard error is that of the mean. It
    holds for a model that has not learnt from the row that it predicts: one of other data, or one that is cross-fitted.
    A cross-fitted model is computed from exact rows: it is NOT PRIVATE either.

    Parameters
    ----------
    log, clip, level
        As in `ips`.
    target, rewards
        As in `direct_method`.

    Examples
    --------
    >>> log = LoggedDecisions([0, 1], rewards=[1, 0], propensities=[0.5, 0.5], arms=2)
    >>> doubly_robust(log, [[0.5, 0.5], [0.0, 1.0]], rewards=[[0.5, 0.0], [1.0, 0.0]]).value
    0.375
    """
    weights = _weights(log, target, clip, every_action=True)
    expected, logged = _expected(log, target, rewards)
    terms = expected + weights.used * (log.rewards - logged)
    return _mean("doubly robust", weights, terms, level, *_near_zero(log, weights, clip))


def cross_fitted_rewards(log: LoggedDecisions, *, folds: int = 5, ridge: float = 10.0) -> Array:
    """Predicted rewards of all actions on each logged context (n × arms), by models of other rows. NOT PRIVATE.

    Rows are cut into consecutive folds. For each fold and action, a ridge regression on (1, context) of the other
    folds' rows with that action predicts how far the reward is from the mean reward of those folds; an action that they
    lack is predicted the mean.

    Parameters
    ----------
    log : LoggedDecisions
        The log; without contexts the models are means, shrunken to that of all actions.
    folds : int
        Number of folds, 2 or more.
    ridge : float
        Added to the diagonal of each regression: the larger, the nearer to the mean. A bad choice costs variance of
        `doubly_robust`, and causes no bias.

    Examples
    --------
    >>> log = LoggedDecisions([0, 1, 0, 1], rewards=[3, 1, 3, 1], propensities=[0.5] * 4, arms=2)
    >>> cross_fitted_rewards(log, folds=2, ridge=1.0)[0]
    array([2.5, 1.5])
    """
    folds, ridge = integer("folds", folds, least=2), positive("ridge", ridge)
    n = len(log)
    if folds > n:
        raise InvalidInput(f"folds must be at most the number of decisions, {n}, got {folds}.")
    ones = np.ones((n, 1))
    features = ones if log.contexts is None else np.hstack([ones, log.contexts])
    penalty = ridge * np.eye(features.shape[1])
    predicted = np.empty((n, log.arms))
    for fold in np.array_split(np.arange(n), folds):
        other = np.ones(n, dtype=bool)
        other[fold] = False
        mean = log.rewards[other].mean()
        predicted[fold] = mean
        for arm in np.unique(log.actions[other]):
            rows = other & (log.actions == arm)
            own = features[rows]
            coefficients = np.linalg.solve(own.T @ own + penalty, own.T @ (log.rewards[rows] - mean))
            predicted[fold, arm] += features[fold] @ coefficients
    return predicted


@dataclass(frozen=True, repr=False)
class PrivatePolicyValue:
    """A private estimate of a policy's value, with clipped terms; everything in it may be published.

    Attributes
    ----------
    value, standard_error : float
        The noisy mean of clipped terms, and an upper bound on its standard error, noise included.
    noise_sd : float
        Standard deviation of the noise alone.
    level, low, high : float
        Level and ends of the interval for the expected clipped term.
    rows : int
        Number of decisions, which is public.
    bounds : tuple of float
        What terms were clipped to.
    guarantee : Guarantee
        What is promised to whom.
    """

    value: float
    standard_error: float
    noise_sd: float
    level: float
    low: float
    high: float
    rows: int
    bounds: tuple[float, float]
    guarantee: Guarantee

    @property
    def _facts(self) -> list[tuple[str, str]]:
        low, high = self.bounds
        return [
            ("value", f"{self.value:.4g}, standard error {self.standard_error:.3g} (noise alone {self.noise_sd:.3g})"),
            (f"{100 * self.level:g} % interval", f"{self.low:.4g} to {self.high:.4g}, for the clipped value"),
            ("rows", f"{self.rows:,}, terms clipped to {low:g} to {high:g}"),
        ]

    def __str__(self) -> str:
        lines = ["Private off-policy value by clipped IPS", *(f"  {name}: {text}" for name, text in self._facts)]
        return "\n".join([*lines, f"  {self.guarantee}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card("Private off-policy value by clipped IPS", facts(self._facts)) + guarantee_html(self.guarantee)


def private_ips(
    log: LoggedDecisions,
    target: ArrayLike,
    bound: float | tuple[float, float],
    privacy: Privacy,
    *,
    ledger: LedgerLike | None = None,
    level: float = 0.95,
    neighbours: Literal["replace", "zero-out"] = "replace",
    seed: int | None = None,
) -> PrivatePolicyValue:
    """The value of a fixed policy as a private mean of `w·r`, each term clipped to public bounds: one release.

    **Guarantee.** Term i depends on row i of the log and on the target policy alone, and is clipped to [low, high]. The
    number of rows is public. So replacing one row moves the sum of the terms by at most `high - low`, which is reached
    by a term that goes from one bound to the other. `taciturn.private_sum` adds up the distances of the terms from the
    middle of the bounds, whose size is at most `(high - low)/2`, and releases the sum once, with the noise that its
    certificate `2R = high - low` needs for the budget. The value, its error and its interval are computed from that
    release and public numbers. ∎

    **What must be public.** The target policy: fixed before the log was seen, or decided from private releases. One
    that was trained on exact rows of this log is not covered, and nothing here can notice it. The bound, too: a number
    chosen by looking at the log is a release that no budget pays for. The propensities of a row belong to the row; if
    the logging policy learnt from earlier visitors without privacy, what it showed to later ones is not protected by
    this.

    **Bias.** The estimate is of the expected *clipped* term. If rewards are not negative and the bounds are [0, c], it
    is a lower bound of the policy's value, `E[w·r] - E[(w·r - c)₊]`, exact if no term can exceed c: with rewards of
    at most 1 and propensities of at least p, that is `c = 1/p`.

    **Error.** A variable in [low, high] of mean m has a variance of at most `(m - low)·(high - m)` (Bhatia, Davis,
    2000), with equality for terms at the bounds only, as clicks on a fixed action from a uniform log are. So the
    squared error is at most `(m - low)·(high - m)/n + s²`, where s is the standard deviation of the noise, and no
    budget is spent on it. The interval contains the m for which the released value is within z of these errors; with
    s = 0 it is Wilson's. The normal approximation is of the mean of terms; the noise is Gaussian.

    Parameters
    ----------
    log : LoggedDecisions
        The log of another policy. The unit of privacy is one decision: if visitors have several, keep one of each.
    target : array
        As in `ips`; the row of a decision is computed from its own context and the target policy alone.
    bound : float or pair of float
        A number c, for bounds 0 and c, or both bounds.
    privacy : Privacy
        The budget of this release.
    ledger : Ledger, optional
        Charged with the release, if it has room for it.
    level : float
        Level of the interval.
    neighbours : {"replace", "zero-out"}
        Under "zero-out" a row without influence counts as the middle of the bounds.
    seed : int, optional
        For simulations and tests: seeded noise protects no data.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import Privacy
    >>> log = LoggedDecisions([0, 1] * 5000, rewards=[1, 0] * 5000, propensities=[0.5] * 10_000, arms=2)
    >>> estimate = private_ips(log, [[0.75, 0.25]] * 10_000, 2.0, Privacy(1.0, 1e-6))
    >>> bool(abs(estimate.value - 0.75) < 10 * estimate.noise_sd)
    True
    """
    expect("log", log, isinstance(log, LoggedDecisions), "LoggedDecisions(actions, rewards, propensities, arms)")
    low, high = _bounds(bound)
    z = _quantile(level)
    n, middle, half = len(log), (low + high) / 2.0, (high - low) / 2.0
    with np.errstate(over="ignore"):  # infinite terms are clipped as well; the product comes first, for 0·inf is NaN
        terms = np.clip(_logged_probabilities(log, target) * log.rewards / log.propensities, low, high)
    private = private_sum(1, half, privacy, horizon=n, schedule=at([n]), neighbours=neighbours, seed=seed)
    release = private.fit((terms - middle)[:, None], ledger=ledger)
    value, noise_sd = middle + float(release.point[0]) / n, release.noise_sd / n
    inside = min(max(value, low), high)
    spread = (inside - low) * (high - inside) / n
    return PrivatePolicyValue(
        value,
        math.hypot(math.sqrt(spread), noise_sd),
        noise_sd,
        float(level),
        *_wilson(value, noise_sd, n, z, low, high),
        n,
        (low, high),
        private.guarantee,
    )


def _wilson(value: float, noise_sd: float, n: int, z: float, low: float, high: float) -> tuple[float, float]:
    """The means m in [low, high] with `(value - m)² ≤ z²·((m - low)·(high - m)/n + noise_sd²)`.

    Noise may carry the value so far out that there is none: then the nearer bound.

    >>> _wilson(0.0, 0.0, 100, 1.96, 0.0, 1.0)  # no successes of 100: up to z²/(n + z²)
    (0.0, 0.036994...)
    """
    v, c, k = value - low, high - low, z * z / n
    middle, square = (2.0 * v + k * c) / 2.0, v * v - z * z * noise_sd * noise_sd
    root = math.sqrt(max(0.0, middle * middle - (1.0 + k) * square))
    ends = ((middle - root) / (1.0 + k), (middle + root) / (1.0 + k))
    return low + min(max(ends[0], 0.0), c), low + min(max(ends[1], 0.0), c)


def _bounds(bound: Any) -> tuple[float, float]:
    if isinstance(bound, tuple | list):
        if len(bound) != 2:
            raise InvalidInput(f"bound must be a number or two of them, got {len(bound)}. State bound=(low, high).")
        low, high = finite("the lower bound", bound[0]), finite("the upper bound", bound[1])
        if not low < high:
            raise InvalidInput(f"the lower bound must be below the upper one, got {low:g} and {high:g}.")
        return low, high
    return 0.0, positive("bound", bound, "State the largest weighted reward, as in bound=5.0, or bound=(low, high).")


def _quantile(level: Any) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    right = number("level", level, lambda level: 0.0 < level < 1.0, "lie between 0 and 1", "Use 0.95.")
    return float(ndtri(0.5 + right / 2.0))


# ---- weights ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights before and after clipping, and what makes them doubtful."""

    exact: Array
    used: Array
    notes: tuple[str, ...] = ()


def _weights(log: LoggedDecisions, target: ArrayLike, clip: float | None, every_action: bool = False) -> _Weights:
    expect("log", log, isinstance(log, LoggedDecisions), "LoggedDecisions(actions, rewards, propensities, arms)")
    exact = _logged_probabilities(log, target, every_action) / log.propensities
    used = (
        exact
        if clip is None
        else np.minimum(exact, positive("clip", clip, "State the largest weight, or None for no limit."))
    )
    mean, error = exact.mean(), exact.std(ddof=1) / math.sqrt(len(log))
    if abs(mean - 1.0) <= 5.0 * error + _ROUNDING:
        return _Weights(exact, used)
    note = (
        f"the mean weight is {mean:.3g} and not 1: propensities are wrong, the target policy shows what the logging "
        "policy does not, or the largest weights are too rare to have been drawn."
    )
    return _Weights(exact, used, (note,))


def _near_zero(log: LoggedDecisions, weights: _Weights, clip: float | None) -> tuple[str, ...]:
    """A note, and a warning, if unclipped weights above 1 have propensities near 0."""
    limit = min(1.0 / len(log), NEAR_ZERO)
    rare = 0 if clip is not None else int(((log.propensities < limit) & (weights.used > 1.0)).sum())
    if not rare:
        return ()
    note = (
        f"{rare:,} of the propensities are near 0, below {limit:g}: less than one such decision was to be expected, "
        "and their weights may decide the estimate. State clip=, or evaluate a policy nearer to the logging one."
    )
    warnings.warn(f"NOT PRIVATE: {note}", UserWarning, stacklevel=3)
    return (note,)


def _logged_probabilities(log: LoggedDecisions, target: ArrayLike, every_action: bool = False) -> Array:
    """The target policy's probability of each logged action."""
    table = _numbers("target", target)
    if table.ndim == 1 and not every_action:
        chosen = _column("target", table, len(log))
        right = chosen.min() >= 0.0 and chosen.max() <= 1.0 + _ROUNDING
    else:
        table = _probabilities(log, table)
        chosen = table[np.arange(len(log)), log.actions]
        right = table.min() >= 0.0 and np.abs(table.sum(axis=1) - 1.0).max() <= _ROUNDING
    if not right:
        raise InvalidInput(
            "target must have probabilities: none negative, those of all actions 1 in sum, and some are not. Normalise "
            "each row."
        )
    return chosen


def _probabilities(log: LoggedDecisions, target: ArrayLike) -> Array:
    return _table("target", target, len(log), log.arms)


def _expected(log: LoggedDecisions, target: ArrayLike, rewards: ArrayLike | None) -> tuple[Array, Array]:
    """The model's reward of the target policy on each context, and of the logged action."""
    model = cross_fitted_rewards(log) if rewards is None else _table("rewards", rewards, len(log), log.arms)
    expected = np.einsum("ij,ij->i", _probabilities(log, target), model)
    return expected, model[np.arange(len(log)), log.actions]


def _column(name: str, values: ArrayLike, rows: int) -> Array:
    return _finite(name, values, (rows,))


def _table(name: str, values: ArrayLike, rows: int, columns: int | None = None) -> Array:
    return _finite(name, values, (rows, columns))


_REMEDIES = {
    "rewards": "Give 0, or what you decide on, where none came.",
    "propensities": "Log the probability at the time of the decision.",
    "contexts": "Encode them, with a number where one is missing.",
    "target": "Give a probability for each.",
}


def _numbers(name: str, values: ArrayLike) -> Array:
    """A copy as an array of floats."""
    return np.array(real_numbers(name, values, _REMEDIES[name]))


def _finite(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """A copy as an array of this shape, of finite numbers; None in a shape is any number."""
    array = _numbers(name, values)
    fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
    if not fits:
        wanted = " × ".join("any" if size is None else f"{size:,}" for size in shape)
        came = " × ".join(f"{size:,}" for size in array.shape)
        raise InvalidInput(f"{name} must have {wanted} numbers, one row for each decision, got {came}.")
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must be finite numbers, and some are not. {_REMEDIES[name]}")
    return array


# ---- results ---------------------------------------------------------------------------------------------------------


def _mean(method: str, weights: _Weights, terms: Array, level: float, *notes: str) -> PolicyValue:
    """The result whose value is the mean of the terms."""
    value = float(terms.mean())
    error = float(terms.std(ddof=1)) / math.sqrt(len(terms))
    return _result(method, weights, value, error, terms, level, notes)


def _result(
    method: str,
    weights: _Weights,
    value: float,
    error: float,
    terms: Array,
    level: float,
    notes: Sequence[str] = (),
) -> PolicyValue:
    used = weights.used
    effective = _effective_number(used)
    carriers = min(effective, _effective_number(terms))
    rough = []
    if carriers < FEW:
        rough.append(f"the estimate rests on about {carriers:.3g} rows, so the normal approximation is rough.")
    z = _quantile(level)
    return PolicyValue(
        method,
        value,
        error,
        float(level),
        value - z * error,
        value + z * error,
        len(used),
        effective,
        float(weights.exact.mean()),
        float(used.max()),
        int((used < weights.exact).sum()),
        (*weights.notes, *notes, *rough),
    )


def _effective_number(values: Array) -> float:
    """`(Σ|v|)²/Σv²`: as many values of equal size have the same sum and sum of squares.

    >>> _effective_number(np.array([1.0, 1.0, 0.0])), _effective_number(np.zeros(3))
    (2.0, 0.0)
    """
    sizes = np.abs(values)
    largest = sizes.max()
    if largest == 0.0:
        return 0.0
    sizes /= largest  # squares of very small ones would be 0
    return float(sizes.sum() ** 2 / (sizes @ sizes))
