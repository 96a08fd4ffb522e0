"""Private contextual bandits: choose an arm, show it, learn from the reward.

**Rounds are decisions.** A decision is an event (`taciturn.core.events`), whose label is the reward: it has its round
from the moment it is made, and its row, the context of the played arm with its reward, enters at that round, once
`wait` further decisions have begun to be made. Rewards may come late and out of order until then. A decision without a
reward in time enters with the default reward, or as a row without influence. *No certificate changes by that:* one
visitor's data, the arrival of the reward included, decides one row, and any row may be replaced by any other. Which
rounds publish, and when, depends on the number of decisions alone. ∎

**What is protected.** The sequence of models is (epsilon, delta)-differentially private in one visitor's contexts and
reward. What a visitor is shown depends on that visitor's own contexts, too, and so is told to that visitor alone: joint
differential privacy (Shariff, Sheffet, *Differentially Private Contextual Linear Bandits*, 2018). Actions, propensities
and waiting decisions of other visitors are secret.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from taciturn.accounting.ledger import LedgerLike
from taciturn.bandits.choices import UCB, WIDTH, Choice, EpsilonGreedy, LinearModel, Thompson
from taciturn.core.events import EventConflict, EventEnded, MemoryLog, UnknownEvent
from taciturn.core.private import Private
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable, finite, integer
from taciturn.estimators.keywords import Keywords
from taciturn.estimators.stream import PrivacyWarning, Stream
from taciturn.kernel.accounting.cost import Spent
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.ledger_rules import SECOND_STREAM
from taciturn.kernel.accounting.unit import EXAMPLE, ClockPeriod, Unit, User, WithoutId
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.problem.inputs import real_numbers
from taciturn.kernel.problem.losses import Logistic
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import L2Ball
from taciturn.kernel.stream.loop import fast_clip
from taciturn.kernel.stream.schedule import Schedule, geometric, releases_in_window
from taciturn.kernel.stream.state import read_extra
from taciturn.kernel.stream.stream import OTHER_SETTINGS
from taciturn.methods.recipes import linear_bandit, pftrl
from taciturn.plan import Plan

JOINT = (
    "The sequence of models is ({epsilon:.12g}, {delta:.12g})-DP in one visitor's contexts and reward; what a visitor "
    "is shown depends on that visitor's own context; hence joint DP."
)
_MOST_WAITING = 2**16  # rows that have had their time, and wait for the next release
_ENCODE = "Encode them as numbers first."
_ANEW = "begin a new bandit, with a budget of its own"
_PREFIX = "bandit."  # of arrays in a checkpoint
_ANY = EpsilonGreedy(1.0)
_RETURNED = "Give what choose() of this bandit returned."


class Decision(NamedTuple):
    """A decision: its round, the number of the chosen arm, from 0 on, and the probability of that choice.

    The round is 0 if nothing is to be learnt from it. Action and propensity are for the visitor whose contexts they
    are, and secret from others. `stream` is a random id, so that no other bandit learns from this decision; it is no
    secret. A bandit that was loaded from a checkpoint knows the ids of decisions before, and has another from then on.
    """

    round: int
    action: int
    propensity: float
    stream: str = ""


@dataclass(frozen=True, eq=False)
class Decisions(Sequence[Decision]):
    """Consecutive decisions: a sequence of `Decision`, stored as arrays.

    >>> decisions = Decisions(np.array([1, 2]), np.array([0, 3]), np.ones(2))
    >>> len(decisions), decisions[1]
    (2, Decision(round=2, action=3, propensity=1.0, stream=''))
    """

    rounds: Integers
    actions: Integers
    propensities: Array
    stream: str = ""

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Decisions(self.rounds[index], self.actions[index], self.propensities[index], self.stream)
        each = int(self.rounds[index]), int(self.actions[index]), float(self.propensities[index])
        return Decision(*each, self.stream)


@dataclass(frozen=True)
class JointGuarantee(Guarantee):
    """The guarantee of a bandit: that of its models, and the sentence that joint differential privacy is."""

    @classmethod
    def of(cls, guarantee: Guarantee) -> JointGuarantee:
        """The same guarantee of the models."""
        g = guarantee
        return cls(g.claimed, g.delivered, g.neighbours, g.calibration, g.simulated, g.unit, g.other, g.rests_on, g.by)

    def __str__(self) -> str:
        return f"{super().__str__()} {JOINT.format(epsilon=self.claimed.epsilon, delta=self.claimed.delta)}"


class PrivateBandit(Keywords):
    """A private contextual bandit: a private learner of rewards, and a rule by which arms are chosen from its releases.

    `PrivateLinUCB`, `PrivateThompson` and `PrivateLogisticBandit` are made by their settings; this class takes any
    `Private` of a `LinearBandit`, or of FTRL for logistic loss, which learns the signs of rewards, and any `Choice`. A
    bad row must have no influence (`on_bad="zero"`), as a decision without a reward is one.

    A bandit is not copied or pickled, and makes no decisions in a forked process that have rounds: two that go on would
    take the same ones.

    Parameters
    ----------
    private : Private
        What learns; its rounds are decisions.
    choice : Choice
        How an arm is chosen.
    arms : int
        Number of arms.
    wait : int
        How many further decisions begin to be made before the row of a decision enters: rewards must come before. At 1
        the reward of a decision, or of a batch of them, must be learnt before the next.
    default_reward : float, optional
        The reward of a decision that has none in time; by default its row has no influence.
    ledger : Ledger or str, optional
        Where the cost of the stream is reserved, or its address, as in ledger="budget.db".

    Examples
    --------
    >>> from taciturn import Privacy, linear_bandit
    >>> private = linear_bandit(2, Privacy(1.0, 1e-6), horizon=100, schedule=geometric(1.1), seed=1)
    >>> bandit = PrivateBandit(private, UCB(), arms=3, wait=10)
    >>> first = bandit.choose([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> second = bandit.choose([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> bandit.learn(second, 1.0)
    >>> bandit.learn(first, -1.0)
    >>> bandit.flush()
    >>> bandit.t, bandit.k
    (2, 2)
    """

    _middle = 0.0  # of two rewards, for a learner of signs

    def __init__(
        self,
        private: Private,
        choice: Choice,
        arms: int,
        *,
        wait: int = 1,
        default_reward: float | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        learner = private.learner
        _must_learn_decisions(private)
        self.arms = integer("arms", arms)
        self.per_arm = isinstance(learner, LinearBandit) and learner.arms > 1
        if self.per_arm and learner.arms != self.arms:  # type: ignore[attr-defined]
            raise InvalidInput(f"a model for each of {self.arms} arms was expected. State arms= of the learner alike.")
        if self.arms == 1:
            raise InvalidInput("a bandit has two arms or more: of one there is nothing to choose.")
        self.choice = choice
        self.wait = integer("wait", wait)
        self.default_reward = None if default_reward is None else finite("default_reward", default_reward)
        if isinstance(learner, LinearBandit) and self.default_reward is not None:
            low, high = learner.low, learner.high
            if not low <= self.default_reward <= high:
                raise InvalidInput(
                    f"default_reward must lie in the range of rewards, {low:g} to {high:g}, got "
                    f"{self.default_reward:g}. Correct one of the two."
                )
        method: Any = "linear-bandit" if isinstance(learner, LinearBandit) else "pftrl"
        self._plan = Plan(method, private, "a contextual bandit")
        end = private.last_round
        late = (
            f"wait={self.wait:,} is not below the horizon of {end:,}: no row enters, and no model is released, before "
            "flush(). State a shorter wait= or a longer horizon=, or call flush() at public times."
            if end is not None and self.wait >= end
            else None
        )
        for sentence in (self._plan.warning, self._plan.delta_warning, late):
            if sentence is not None:
                warnings.warn(sentence, PrivacyWarning, stacklevel=2 if type(self) is PrivateBandit else 3)
        self._ledger = ledger
        self._log = self._empty_log()
        self._lock = threading.RLock()
        self._opened: Stream | None = None
        self._known: LinearModel | None = None

    # What is decided.

    def choose(self, contexts: Any, user: Any = ..., now: datetime | None = None, *, learn: bool = True) -> Decision:
        """Choose an arm for one visitor.

        Parameters
        ----------
        contexts : array-like
            A row for each arm, of shape (arms, dimension); or one context of shape (dimension,) for models of arms.
        user : str or int, optional
            Whose decision it is, if users are protected; None for a visitor without an id, whose decision has its
            round and no influence.
        now : datetime, optional
            The public time, which decides the period of users' bounds; by default the clock's.
        learn : bool
            Whether the decision has a round; without one nothing is learnt from it.

        Returns
        -------
        Decision
            To be given back to `learn`, with the reward.
        """
        X = real_numbers("contexts", contexts, _ENCODE)
        unit = self.private.unit
        if user is ... and isinstance(unit, User) and unit.without_id == "own":
            user = None
        users = None if user is ... or (user is None and not isinstance(unit, User)) else [user]
        decision: Decision = self.choose_batch(X[None], users, now, learn=learn)[0]
        return decision

    def choose_batch(
        self, contexts: Any, users: Any = None, now: datetime | None = None, *, learn: bool = True
    ) -> Decisions:
        """Choose an arm for each of several visitors, by the models released so far; contexts have one more axis.

        Before the first release any arm is chosen, with equal probability.
        """
        problem = self.private.problem
        shape = (problem.dimension,) if self.per_arm else (self.arms, problem.dimension)
        X = real_numbers("contexts", contexts, _ENCODE)
        if X.ndim != len(shape) + 1 or X.shape[1:] != shape:
            whose = "the visitor: every arm has its own model" if self.per_arm else "every arm: they share a model"
            raise InvalidInput(
                f"expected contexts of shape {shape} for each decision, got {X.shape} for all. Give the features of "
                f"{whose}."
            )
        V = self._clipped(X.reshape(-1, problem.dimension)).reshape(*X.shape[:-1], problem.width)
        V = V[:, None] if self.per_arm else V
        ids = self._ids(users, len(X)) if learn else None
        if learn:
            self._stream.must_learn()  # before the lock, which a thread of the parent may hold in a forked process
        with self._lock:
            begins = self.decisions + 1
            if learn:
                self._check_rounds(len(X))
                self._log.seal(begins - self.wait)
                self._enter(now)
            choice = self.choice if self.model.k else _ANY  # nothing is known before the first release
            actions, propensities = choice.choose(self.model, V, self._generator(begins))
            rounds = np.arange(begins, begins + len(X)) if learn else np.zeros(len(X), dtype=np.int64)
            if learn:
                played = X if self.per_arm else X[np.arange(len(X)), actions]
                self._log.open(played, actions, ids)
        return Decisions(rounds, actions, propensities, self._log.id)

    def learn(self, decision: Decision | int, reward: float) -> None:
        """Give the reward of a decision, or of the round of one; larger or smaller ones than stated are clipped."""
        if not isinstance(decision, Decision | int | np.integer):
            raise InvalidInput(f"expected a decision, or its round, got a {type(decision).__name__}. {_RETURNED}")
        self.learn_batch([decision] if isinstance(decision, Decision) else np.array([decision]), [reward])

    def learn_batch(self, decisions: Decisions | Sequence[Decision] | Any, rewards: Any) -> None:
        """Give the rewards of several decisions, or of their rounds, in any order.

        A reward that comes too late or twice, or is not finite, is an error after the others of the call are stored:
        which rewards of other visitors are learnt must not depend on it, also if a program goes on after the error.
        """
        rounds, streams = _rounds_of(decisions)
        values = real_numbers("rewards", rewards, "Convert them.")
        if rounds.size and rounds.dtype.kind not in "iu":
            raise InvalidInput(f"expected decisions, or their rounds as integers, got {rounds.dtype}. {_RETURNED}")
        if rounds.ndim != 1 or rounds.shape != values.shape:
            raise InvalidInput(f"expected a reward for each decision, got {values.shape} for {rounds.shape}.")
        rounds = rounds.astype(np.int64)
        with self._lock:
            if rounds.size and rounds.min() == 0:
                raise InvalidInput("a reward came for a decision of learn=False, which has no round. Leave it out.")
            try:
                stored, late, _ = self._log.close(rounds, values, streams)
            except UnknownEvent:
                error = f"a reward came for a decision that was not made here. {_RETURNED}"
                raise UnknownEvent(error) from None
        if stored.all():
            return
        others = " The others of this call are stored." if stored.any() else ""
        if not np.isfinite(values).all():
            raise InvalidInput(f"a reward is a finite number. Leave a decision out that has none.{others}")
        if late.any():
            raise EventEnded(
                f"a reward came too late: with wait={self.wait}, it must come before the "
                f"{'next' if self.wait == 1 else f'{self.wait:,}th further'} decision. State a longer wait=, or leave "
                f"the reward out.{others}"
            )
        raise EventConflict(f"a decision has one reward, and one of these has come before. Leave it out.{others}")

    def flush(self, now: datetime | None = None) -> None:
        """Enter the rows of all decisions so far, without waiting for more rewards; call it at public times only."""
        with self._lock:
            self._log.seal(self.decisions)
            self._enter(now, all_rows=True)

    # What is released.

    @property
    def private(self) -> Private:
        """The private learner."""
        made: Any = self._plan.private
        return made  # type: ignore[no-any-return]

    @property
    def model(self) -> LinearModel:
        """The released models by which arms are chosen; public."""
        stream = self._stream
        k = stream.k
        if self._known is None or self._known.k != k:
            sd = self.private.calibrated.noise_sd(k) if k else 0.0
            self._known = LinearModel.of(self.private.learner, stream.model, sd, k)
        return self._known

    @property
    def guarantee(self) -> JointGuarantee:
        """What is promised, for everything that can ever be published; printing it gives a sentence."""
        return JointGuarantee.of(self.private.guarantee)

    @property
    def decisions(self) -> int:
        """Decisions made, each a round."""
        return self._log.progress.opened

    @property
    def t(self) -> int:
        """Decisions whose rows have entered."""
        return self._stream.t

    @property
    def k(self) -> int:
        """Releases made."""
        return self._stream.k

    @property
    def spent(self) -> Spent:
        """What the releases so far cost."""
        return self._stream.spent

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint: the stream, and decisions that wait. It holds secrets: protect the file like the data."""
        with self._lock:
            self._log.learn(self._stream.t)
            extra = self._log.arrays | {"rules": self._rules}
            self._stream.dump(path, {f"{_PREFIX}{name}": array for name, array in extra.items()})

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Go on from a checkpoint of a bandit with the same settings; this one must not have begun.

        How arms are chosen may differ: the rule with its settings, and the number of arms that share a model. An old
        checkpoint is rejected in the process that went on from it, and by a `ledger` in a file or a database in every
        process that names it; without one nothing notices it in another process.
        """
        with self._lock:
            if self._opened is not None:
                raise StateConflict("this bandit has a stream of its own. Load into a new one of the same settings.")
            extra = {n.removeprefix(_PREFIX): a for n, a in read_extra(path).items() if n.startswith(_PREFIX)}
            log = self._empty_log().resumed(extra)
            if not np.array_equal(extra.get("rules", ()), self._rules, equal_nan=True):
                raise StateConflict(
                    "the bandit of this checkpoint had another wait=, default_reward= or range of rewards, which "
                    "decide what is learnt. Load it into one with the same settings."
                )
            with _in_words_of_bandits():
                stream = Stream.load(self._plan, path, self._ledger)
            if log.progress.learnt != stream.t:
                raise StateConflict("the decisions of this file do not follow its state. Give an intact copy.")
            self._log, self._known = log, None
            self._plan, self._opened = stream.plan, stream  # last: without it a call that was interrupted is repeated
        return self

    # How.

    def _empty_log(self) -> MemoryLog:
        """No decision: contexts of played arms, the arms, and whose decisions they are."""
        contexts, arms = np.empty((0, self.private.problem.dimension)), np.empty(0, dtype=np.int64)
        return MemoryLog({"contexts": contexts, "arms": arms, "users": np.empty(0, dtype=object)}, "rewards")

    @property
    def _rules(self) -> Array:
        """What decides the rows that are learnt, beside the settings of the private learner."""
        none = math.nan if self.default_reward is None else self.default_reward
        return np.array([float(self.wait), none, self._middle])

    @property
    def _stream(self) -> Stream:
        if self._opened is None:
            with self._lock:
                self._opened = self._opened or Stream(self._plan, self._ledger)
        return self._opened

    def _clipped(self, X: Array) -> Array:
        """Contexts as they are learnt from; a bad one is rejected."""
        if not np.isfinite(X).all():
            raise InvalidInput("a context has an entry that is not a number, or is infinite. Give finite contexts.")
        problem = self.private.problem
        clip = fast_clip(problem, compiled=True)
        nothing = np.ones(len(X))
        return problem.clip_block(X, nothing)[0] if clip is None else clip.dense(X, nothing)[0]

    def _ids(self, users: Any, count: int) -> list[Any] | None:
        """Ids of users, one for each decision, if users are protected."""
        if not isinstance(self.private.unit, User):
            if users is not None:
                raise InvalidInput("users are not protected here: state rows_per_user=, or leave users out.")
            return None
        ids = None if users is None else list(np.asarray(users, dtype=object))
        if ids is None or len(ids) != count:
            raise InvalidInput(
                "the unit of privacy is a user: give an id for each decision, or None for a visitor without one, whose "
                "decision has no influence."
            )
        if not all(each is None or type(each) in (str, int) for each in ids):
            raise InvalidInput("ids of users are texts or integers. Convert them.")
        return ids

    def _check_rounds(self, count: int) -> None:
        end = self.private.last_round
        if end is not None and self._log.progress.past(end, count):
            raise BudgetExhausted(
                f"decision {self.decisions + count:,} lies past the horizon of {end:,}, for which the noise was "
                "planned. Choose with learn=False by the last models, or start another bandit, with a budget of its "
                "own."
            )

    def _generator(self, first: int) -> np.random.Generator:
        """Of the random choices of one call; repeatable if the bandit is seeded."""
        seed = self.private.seed
        return np.random.default_rng(None if seed is None else [seed, first])

    def _enter(self, now: datetime | None, all_rows: bool = False) -> None:
        """Learn from rows that have had their time, once a release is due, or many wait.

        A call that is interrupted has entered all of its rows or none (`Stream`), and those that have are dropped by
        their rounds: so none enters twice.
        """
        stream, log, unit = self._stream, self._log, self.private.unit
        log.learn(stream.t)
        due = self.private.timetable.due(stream.k + 1)
        sealed = log.progress.sealed
        rows = sealed - stream.t
        if rows < 1 or not (
            all_rows
            or (due is not None and sealed >= due)
            or rows >= _MOST_WAITING
            or (isinstance(unit, User) and isinstance(unit.period, str))
        ):
            return
        rewards, X, arms, ids = log.sealed()
        users = ids.tolist() if isinstance(unit, User) else None
        if self.default_reward is not None:
            rewards = np.where(np.isnan(rewards), self.default_reward, rewards)
        with _in_words_of_bandits():
            stream.learn(X, self._labels(rewards, arms), users, now if isinstance(unit, User) else None)
        log.learn(stream.t)

    def _labels(self, rewards: Array, arms: Integers) -> Array:
        """What the learner has of rewards: signs if it is not linear; NaN without one."""
        learner = self.private.learner
        if isinstance(learner, LinearBandit):
            return learner.labels(rewards, arms)
        return np.where(np.isnan(rewards), math.nan, np.where(rewards > self._middle, 1.0, -1.0))

    def __getstate__(self) -> Any:
        """Reject copies and pickles."""
        raise StateConflict(
            "a bandit is not copied: two would take the same rounds, and decisions that wait are secret. Share the one "
            "that there is; or dump() it, and load it elsewhere."
        )


@contextlib.contextmanager
def _in_words_of_bandits() -> Iterator[None]:
    """Say of a state of other settings, or one that was used, what can be done with a bandit."""
    try:
        yield
    except StateConflict as error:
        if str(error) == OTHER_SETTINGS:
            text = f"this checkpoint is of a bandit with other settings. Load it into one with the same, or {_ANEW}."
        elif SECOND_STREAM in str(error):
            text = str(error).replace(SECOND_STREAM, _ANEW)
        else:
            raise
        raise StateConflict(text) from None


def _must_learn_decisions(private: Private) -> None:
    """Reject what is no learner of rewards, or of which the guarantee of a bandit would not hold."""
    problem = private.problem
    if problem.neighbours not in ("replace", "zero-out"):
        raise Unprovable(
            f"a bandit is proven for 'replace' and 'zero-out', and its problem says {problem.neighbours!r}: which arm "
            "is played depends on a visitor's contexts, and rounds are decisions. Use neighbours='replace'."
        )
    logistic = isinstance(private.learner, FTRL) and type(problem.loss) is Logistic
    if not (logistic or isinstance(private.learner, LinearBandit)):
        raise InvalidInput(
            "a bandit learns rewards by a LinearBandit, or by FTRL for logistic loss. Make it by "
            "taciturn.linear_bandit, or use PrivateLogisticBandit."
        )
    if problem.on_bad != "zero":
        raise InvalidInput(
            "a decision without a reward is a bad row, which must take its round without influence. State "
            'on_bad="zero".'
        )


def _rounds_of(decisions: Any) -> tuple[Integers, list[str]]:
    """Rounds, and the ids of the streams that they are of, or one of all; none, if only rounds were given."""
    if isinstance(decisions, Decisions):
        return decisions.rounds, [decisions.stream]
    if isinstance(decisions, Sequence) and all(isinstance(each, Decision) for each in decisions):
        return np.array([each.round for each in decisions], dtype=np.int64), [each.stream for each in decisions]
    return np.asarray(decisions), []


class PrivateLinUCB(PrivateBandit):
    """Private LinUCB: linear models of rewards on private sums, and the arm with the largest upper confidence bound.

    Parameters
    ----------
    arms, dimension : int
        Number of arms, and entries of a context.
    epsilon, delta : float
        The total budget of everything that is published.
    horizon : int, optional
        Number of decisions planned for; later ones are rejected.
    per_arm : bool
        Whether every arm has its own model of the visitor's context, and not all share one of contexts of arms.
    low, high : float
        The public range of rewards; others are clipped.
    feature_bound : float
        Largest norm of a context; longer ones are scaled.
    width : float or "theorem"
        Of the confidence bounds (`taciturn.bandits.UCB`): .3 is a heuristic.
    intercept : float
        A constant appended to every context; 0 for none.
    schedule : Schedule, optional
        When models are published, in decisions: by the rule of `taciturn.linear_bandit`, if None.
    strategy, forget, neighbours, seed
        As in `taciturn.linear_bandit`.
    rows_per_user, rows_per_release, apart, period, without_id
        For visitors who come back: how often their decisions count (`taciturn.User`); `choose` then takes `user=`.
    wait, default_reward, ledger
        As in `taciturn.bandits.PrivateBandit`.

    Examples
    --------
    >>> bandit = PrivateLinUCB(arms=10, dimension=10, epsilon=1.0, delta=1e-6, horizon=100_000, seed=1)
    >>> contexts = np.random.default_rng(1).normal(size=(10, 10))
    >>> decision = bandit.choose(contexts)
    >>> bandit.learn(decision, reward=1.0)
    >>> decision.round, decision.propensity  # any arm, before the first release
    (1, 0.1)
    """

    def __init__(
        self,
        arms: int,
        dimension: int,
        epsilon: float,
        delta: float = 1e-6,
        horizon: int | None = None,
        *,
        per_arm: bool = False,
        low: float = -1.0,
        high: float = 1.0,
        feature_bound: float = 1.0,
        intercept: float = 0.0,
        width: float | Literal["theorem"] = WIDTH,
        schedule: Schedule | None = None,
        strategy: Any = None,
        forget: int | None = None,
        neighbours: Literal["replace", "zero-out"] = "replace",
        rows_per_user: int | None = None,
        rows_per_release: int | None = None,
        apart: int = 1,
        period: int | ClockPeriod | None = None,
        without_id: WithoutId = "bad",
        wait: int = 1,
        default_reward: float | None = None,
        ledger: LedgerLike | None = None,
        seed: int | None = None,
    ) -> None:
        private = linear_bandit(
            dimension,
            Privacy(epsilon, delta),
            horizon,
            arms=arms if per_arm else 1,
            low=low,
            high=high,
            feature_bound=feature_bound,
            intercept=intercept,
            strategy=strategy,
            schedule=schedule,
            forget=forget,
            neighbours=neighbours,
            seed=seed,
            unit=_unit(rows_per_user, rows_per_release, apart, period, without_id),
        )
        choice = self._choice(width)
        super().__init__(private, choice, arms, wait=wait, default_reward=default_reward, ledger=ledger)

    @staticmethod
    def _choice(width: Any) -> Choice:
        return UCB(width)


class PrivateThompson(PrivateLinUCB):
    """Private Thompson sampling: the models of `PrivateLinUCB`, and the best arm of a random one around them.

    Parameters are those of `PrivateLinUCB`; `width` is that of `taciturn.bandits.Thompson`, a number.

    Examples
    --------
    >>> bandit = PrivateThompson(arms=3, dimension=2, epsilon=1.0, horizon=1_000, per_arm=True, low=0.0, seed=1)
    >>> decision = bandit.choose([0.6, 0.8])
    >>> bandit.learn(decision, reward=1.0)
    >>> 0.0 < decision.propensity <= 1.0
    True
    """

    @staticmethod
    def _choice(width: Any) -> Choice:
        return Thompson(width)


class PrivateLogisticBandit(PrivateBandit):
    """A private bandit for rewards of two values: logistic loss by private FTRL, on the context of the played arm.

    All arms share a model, and differ in their contexts. There is no matrix to tell how much is known of an arm, so
    the arm of the largest score is played, and with probability `explore` any. In simulations where contexts explore,
    `PrivateLinUCB` has less regret on logistic rewards, too: the sigmoid does not change which arm is best.

    Parameters
    ----------
    arms, dimension, epsilon, delta, horizon, feature_bound, intercept, schedule, forget, neighbours, seed
        As in `PrivateLinUCB`.
    rows_per_user, rows_per_release, apart, period, without_id, wait, default_reward, ledger
        As in `PrivateLinUCB`.
    low, high : float
        The two rewards; others count as the nearer one.
    radius : float
        Of the ball of models.
    curvature : float, optional
        That of `taciturn.FTRL`: `R²/(4d)` by default, the curvature of the loss at 0, spread over all directions.
    explore : float
        The probability with which any arm is played (`taciturn.bandits.EpsilonGreedy`).

    Examples
    --------
    >>> bandit = PrivateLogisticBandit(arms=3, dimension=2, epsilon=4.0, horizon=1_000, seed=1)
    >>> decision = bandit.choose([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> bandit.learn(decision, reward=1.0)
    """

    def __init__(
        self,
        arms: int,
        dimension: int,
        epsilon: float,
        delta: float = 1e-6,
        horizon: int | None = None,
        *,
        low: float = 0.0,
        high: float = 1.0,
        feature_bound: float = 1.0,
        intercept: float = 0.0,
        radius: float = 10.0,
        curvature: float | None = None,
        explore: float = 0.0,
        schedule: Schedule | None = None,
        forget: int | None = None,
        neighbours: Literal["replace", "zero-out"] = "replace",
        rows_per_user: int | None = None,
        rows_per_release: int | None = None,
        apart: int = 1,
        period: int | ClockPeriod | None = None,
        without_id: WithoutId = "bad",
        wait: int = 1,
        default_reward: float | None = None,
        ledger: LedgerLike | None = None,
        seed: int | None = None,
    ) -> None:
        self._middle = (finite("low", low) + finite("high", high)) / 2.0
        problem = Problem(
            Logistic(), L2Ball(radius), dimension, feature_bound, None, intercept, neighbours=neighbours, on_bad="zero"
        )
        private = pftrl(
            problem,
            Privacy(epsilon, delta),
            horizon,
            schedule=_usual(forget) if schedule is None else schedule,
            forget=forget,
            curvature=problem.norm_bound**2 / (4.0 * problem.width) if curvature is None else curvature,
            seed=seed,
            unit=_unit(rows_per_user, rows_per_release, apart, period, without_id),
        )
        super().__init__(private, EpsilonGreedy(explore), arms, wait=wait, default_reward=default_reward, ledger=ledger)


def _usual(forget: int | None) -> Schedule:
    """Rounds that grow by a tenth; fifty in a window, for a stream that forgets."""
    return geometric(1.1) if forget is None else releases_in_window(forget)


def _unit(
    rows: int | None, per_release: int | None, apart: int, period: int | ClockPeriod | None, without_id: WithoutId
) -> Unit:
    """The unit of privacy of these bounds: an example, if the rows of a user are not bounded."""
    if rows is not None:
        return User(integer("rows_per_user", rows), per_release, apart, period, without_id)
    if per_release is not None or apart != 1 or period is not None or without_id != "bad":
        raise InvalidInput("bounds on users need rows_per_user=, the most decisions of a user that count. State it.")
    return EXAMPLE
