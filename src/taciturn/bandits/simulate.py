"""Bandits in simulated environments, and their regret. NOT PRIVATE: regret is computed from exact means.

Between two releases the models do not change, so that all decisions of a block are made in one call: what a bandit
plays, and its regret, is the same as one decision at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from taciturn.bandits.choices import WIDTH, Choice, EpsilonGreedy, LinearModel
from taciturn.bandits.environments import Environment
from taciturn.bandits.private_bandit import PrivateBandit
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.problem.svec import unpacked
from taciturn.kernel.stream.schedule import Schedule, Timetable, geometric

_MOST = 2**22  # entries of contexts in one call


class Player(Protocol):
    """What is simulated: it plays arms, and learns from rewards."""

    @property
    def rounds(self) -> Integers:
        """Rounds after which what it plays by changes."""

    def play(self, X: Array) -> Integers:
        """Arms for the next visitors, in order."""

    def learn(self, rewards: Array) -> None:
        """Their rewards."""


@dataclass(frozen=True, eq=False)
class Regret:
    """What was lost to the best arm of each visitor: the sum over all rounds so far, after some of them.

    >>> regret = Regret(np.array([10, 100]), np.array([3.0, 8.0]))
    >>> regret.total, regret.at(10)
    (8.0, 3.0)
    """

    rounds: Integers
    sums: Array

    @property
    def total(self) -> float:
        """After the last round."""
        return float(self.sums[-1])

    def at(self, t: int) -> float:
        """After round t, interpolated between the rounds that are known."""
        return float(np.interp(t, np.append(0, self.rounds), np.append(0.0, self.sums)))


def simulate(player: Player | PrivateBandit, environment: Environment, horizon: int) -> Regret:
    """Play in an environment for so many rounds, and compute the regret.

    >>> from taciturn.bandits import PrivateLinUCB
    >>> from taciturn.bandits.environments import LinearSphere
    >>> bandit = PrivateLinUCB(arms=10, dimension=5, epsilon=1.0, horizon=2_000, seed=1)
    >>> regret = simulate(bandit, LinearSphere(10, 5, seed=1), 2_000)
    >>> regret.total < 0.5 * simulate(RandomPlay(10, seed=1), LinearSphere(10, 5, seed=1), 2_000).total
    True
    """
    one: Player = BanditPlayer(player) if isinstance(player, PrivateBandit) else player
    most = max(1, _MOST // (environment.arms * environment.dimension))
    cuts = [0, *(int(t) for t in one.rounds if t < horizon), horizon]
    rounds, lost = [], []
    for before, after in pairwise(cuts):
        for start in range(before, after, most):
            count = min(most, after - start)
            X = environment.contexts(start + 1, count)
            means = environment.means(X)
            actions = one.play(X)
            played = means[np.arange(count), actions]
            one.learn(environment.rewards(start + 1, played))
            rounds.append(start + count)
            lost.append(float(np.sum(np.max(means, axis=1) - played)))
    return Regret(np.array(rounds), np.cumsum(lost))


def compare(
    players: dict[str, Callable[[Environment, int], Player | PrivateBandit]],
    environments: Iterable[Environment],
    horizon: int,
) -> dict[str, list[Regret]]:
    """The regret of several bandits in the same environments; each is made of an environment and a seed.

    >>> from taciturn.bandits.environments import LinearSphere
    >>> players = {"random": lambda environment, seed: RandomPlay(environment.arms, seed)}
    >>> [len(each) for each in compare(players, [LinearSphere(seed=s) for s in range(2)], 100).values()]
    [2]
    """
    found: dict[str, list[Regret]] = {name: [] for name in players}
    for environment in environments:
        for name, make in players.items():
            found[name].append(simulate(make(environment, environment.seed), environment, horizon))
    return found


def simulate_every_round(
    environment: Environment,
    horizon: int,
    noise: Array,
    shifts: Array,
    width: float | Array = WIDTH,
    ridge: float = 1.0,
    centred: bool = True,
) -> Regret:
    """LinUCB with a shared model after every round, on given noise in its sums, in one compiled loop.

    Noise that does not depend on data is the same in any stream: it can be drawn before, as the releases of a stream of
    rows of zeros. So mechanisms that release every round are simulated in a second, and those of other papers, too.
    Slow twin: `simulate_every_round_by_definition`.

    Parameters
    ----------
    environment, horizon
        As in `simulate`.
    noise : ndarray of shape (horizon, d(d+1)/2 + d)
        Noise in the sums after each round, in the order of `taciturn.LinearBandit`, with weight 1.
    shifts : ndarray of shape (horizon,)
        What is added to the diagonal of V after each round, besides the ridge.
    width : float or ndarray
        Of the confidence bounds, `width·sqrt(xᵀV⁻¹x)`; or one for each round.
    ridge : float
        What V is without data.
    centred : bool
        Whether rewards are learnt as -1 and 1, and not as they are.

    Examples
    --------
    >>> from taciturn.bandits.environments import LinearSphere
    >>> regret = simulate_every_round(LinearSphere(10, 5), 1_000, np.zeros((1_000, 20)), np.zeros(1_000))
    >>> regret.total < 100.0
    True
    """
    from taciturn.bandits import linucb_loops as linucb

    d = environment.dimension
    before = np.concatenate([np.zeros((1, noise.shape[1])), noise[: horizon - 1]])
    shifts = np.concatenate([[0.0], shifts[: horizon - 1]]) + ridge
    widths = np.broadcast_to(np.asarray(width, dtype=np.float64), horizon)
    range_of = environment.low, environment.high
    learnt = np.array([-1.0, 1.0] if centred else range_of)
    sums, rounds, lost = np.zeros((d + 1, d)), [], []
    for start in range(0, horizon, 1024):
        end = min(start + 1024, horizon)
        X = np.ascontiguousarray(environment.contexts(start + 1, end - start))
        uniforms = environment.uniforms(start + 1, end - start)
        part = np.empty(end - start)
        public = before[start:end], shifts[start:end], np.ascontiguousarray(widths[start:end])
        linucb.play(X, environment.means(X), uniforms, *range_of, learnt, *public, sums, part)
        rounds.append(end)
        lost.append(float(part.sum()))
    return Regret(np.array(rounds), np.cumsum(lost))


def simulate_every_round_by_definition(
    environment: Environment,
    horizon: int,
    noise: Array,
    shifts: Array,
    width: float | Array = WIDTH,
    ridge: float = 1.0,
    centred: bool = True,
) -> Regret:
    """The same by array operations, round by round."""
    d = environment.dimension
    widths = np.broadcast_to(np.asarray(width, dtype=np.float64), horizon)
    learnt = {environment.low: -1.0, environment.high: 1.0} if centred else {}
    G, u, lost = np.zeros((d, d)), np.zeros(d), np.zeros(horizon)
    known, theta = np.eye(d), np.zeros(d)
    for t in range(horizon):
        N, shift = (noise[t - 1], shifts[t - 1]) if t else (np.zeros(noise.shape[1]), 0.0)
        V = G + unpacked(N[:-d], d) + (shift + ridge) * np.eye(d)
        if np.linalg.eigvalsh(V)[0] > 0.0:  # otherwise the model of the round before is used
            known, theta = V, np.linalg.solve(V, u + N[-d:])
        X = environment.contexts(t + 1, 1)[0]
        means = environment.means(X)
        bounds = X @ theta + widths[t] * np.sqrt(np.einsum("ad,ad->a", X, np.linalg.solve(known, X.T).T))
        best = int(np.argmax(bounds))
        reward = float(environment.rewards(t + 1, means[[best]])[0])
        G, u = G + np.outer(X[best], X[best]), u + learnt.get(reward, reward) * X[best]
        lost[t] = np.max(means) - means[best]
    return Regret(np.arange(1, horizon + 1), np.cumsum(lost))


class BanditPlayer:
    """A private bandit as a player: a block of decisions is a batch, and all rewards come before the next."""

    def __init__(self, bandit: PrivateBandit) -> None:
        self.bandit = bandit
        self._last: Any = None

    @property
    def rounds(self) -> Integers:
        """Those before the decision at whose beginning the rows of a release enter."""
        return np.asarray(self.bandit.private.timetable.rounds + (self.bandit.wait - 1))

    def play(self, X: Array) -> Integers:
        """A batch of decisions; models of arms take the context that all arms have in common."""
        self._last = self.bandit.choose_batch(X[:, 0] if self.bandit.per_arm else X)
        return np.asarray(self._last.actions)

    def learn(self, rewards: Array) -> None:
        """Give the bandit the rewards of its last batch."""
        self.bandit.learn_batch(self._last, rewards)


class NotPrivate:
    """The non-private twin of a bandit: the same sums, schedule and choice, without noise.

    >>> from taciturn.bandits import UCB
    >>> from taciturn.bandits.environments import LinearSphere
    >>> from taciturn.kernel.learners.linear_bandit import bandit_problem
    >>> twin = NotPrivate(LinearBandit(bandit_problem(5)), UCB(), horizon=1_000)
    >>> simulate(twin, LinearSphere(10, 5), 1_000).total < 100.0
    True
    """

    def __init__(
        self,
        learner: LinearBandit,
        choice: Choice,
        horizon: int,
        schedule: Schedule | None = None,
        seed: int = 0,
    ) -> None:
        self.learner = learner
        self.choice = choice
        self.rounds = Timetable(schedule or geometric(1.1), horizon).rounds
        self._rng = np.random.default_rng(seed)
        self._exact: Arrays = learner.start()
        self._model = LinearModel.of(learner, learner.first_point)
        self._played: tuple[Array, Integers] = np.empty((0, 0)), np.empty(0, dtype=np.int64)
        self._t = self._k = 0

    def play(self, X: Array) -> Integers:
        """By the models after the last round of the schedule."""
        if self._k < len(self.rounds) and self._t == self.rounds[self._k]:
            self._k += 1
            sums = self.learner.scaled(self._exact["sum"])
            self._model = LinearModel.of(self.learner, self.learner.decide(self._t, sums, 0.0), 0.0, self._k)
        per_arm = self.learner.arms > 1
        X = X[:, :1] if per_arm else X
        choice = self.choice if self._k else EpsilonGreedy(1.0)
        actions = choice.choose(self._model, X, self._rng).actions
        self._played = (X[:, 0] if per_arm else X[np.arange(len(X)), actions]), actions
        return actions

    def learn(self, rewards: Array) -> None:
        """Add the last batch to the exact sums."""
        from taciturn.kernel.replay import replay

        X, actions = self._played
        V, y = self.learner.problem.clip(X, self.learner.labels(rewards, actions))
        nothing = np.empty(0, dtype=np.int64)
        self._exact, _ = replay(self.learner, V, y, nothing, begun=self._exact, t=self._t, compiled=True)
        self._t += len(y)


class RandomPlay:
    """Any arm, with equal probability."""

    rounds: Integers = np.empty(0, dtype=np.int64)

    def __init__(self, arms: int, seed: int = 0) -> None:
        self.arms = arms
        self._rng = np.random.default_rng(seed)

    def play(self, X: Array) -> Integers:
        """Drawn uniformly."""
        return np.asarray(self._rng.integers(0, self.arms, len(X)))

    def learn(self, rewards: Array) -> None:
        """Ignore the rewards."""
