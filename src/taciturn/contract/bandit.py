"""A stream that decides: actions, of which one is chosen for each visitor, and the reward that is learnt from.

```toml
[target]
column = "reward"
range = [0, 1]                                  # public: other rewards are clipped

[bandit]
actions = ["sports", "politics", "weather"]     # each has its own model of the visitor's columns
policy = "thompson"                             # or ucb; or epsilon-greedy
```

With `actions = "features"` actions come with each request, with values of the declared columns, and share one model:
then columns say what is known of this visitor *and* this action. How actions are chosen is in
`taciturn.bandits.choices`, what is learnt in `taciturn.LinearBandit`. Contexts are scaled to a norm of at most 1.

Thompson sampling is the default: rewards come after a wait, until which upper confidence bounds, which are not random,
choose the same action for all visitors with the same columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from taciturn.bandits.choices import UCB, WIDTH, Choice, EpsilonGreedy, Thompson
from taciturn.columns.declaration import Section
from taciturn.columns.target import Number
from taciturn.errors import InvalidInput, number, one_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.methods.recipes import linear_bandit
from taciturn.plan import Plan

if TYPE_CHECKING:
    from taciturn.contract.contract import Contract

Policy = Literal["thompson", "ucb", "epsilon-greedy"]

FEATURES = "features"
"""What `actions` says if they come with each request."""

MOST = 1_000
"""Actions of a stream, or of a request."""


@dataclass(frozen=True)
class Bandit:
    """How actions are chosen.

    Parameters
    ----------
    actions : tuple of str, optional
        Names of the actions, each with a model of its own; None if they come with each request, and share a model.
    policy : {"thompson", "ucb", "epsilon-greedy"}
        The rule by which one is chosen.
    width : float
        Of upper confidence bounds, or of random models; larger ones explore more.
    explore : float
        The probability with which any action is chosen, for epsilon-greedy play.

    Examples
    --------
    >>> Bandit(("left", "right"), policy="ucb").choice
    UCB(width=0.3, failure=0.01)
    """

    actions: tuple[str, ...] | None
    policy: Policy = "thompson"
    width: float = WIDTH
    explore: float = 0.05

    def __post_init__(self) -> None:
        one_of("bandit.policy", self.policy, get_args(Policy))
        object.__setattr__(self, "width", number("bandit.width", self.width, lambda w: w >= 0.0, "not be negative"))
        rule = "lie between 0 and 1"
        object.__setattr__(self, "explore", number("bandit.explore", self.explore, lambda e: 0.0 <= e <= 1.0, rule))
        names = self.actions
        if names is not None and not (2 <= len(set(names)) == len(names) <= MOST and all(names)):
            raise InvalidInput(
                f'bandit.actions must be 2 to {MOST:,} names, each once. State them, or actions = "{FEATURES}" if they '
                "come with each request."
            )

    @cached_property
    def choice(self) -> Choice:
        """The rule itself."""
        if self.policy == "ucb":
            return UCB(self.width)
        return Thompson(self.width) if self.policy == "thompson" else EpsilonGreedy(self.explore)

    @property
    def models(self) -> int:
        """How many models there are."""
        return 1 if self.actions is None else len(self.actions)

    def check(self, contract: Contract) -> None:
        """Reject other settings that a bandit does not have."""
        if not isinstance(contract.target, Number) or contract.target.scale.name != "linear":
            raise InvalidInput(
                '[bandit] learns from rewards, whose range is public. State it, as in [target] column = "reward", '
                "range = [0, 1]."
            )
        others = {
            "loss": contract.loss != "squared",
            "method": contract.method != "auto",
            "features": contract.features != "linear",
            "precondition": contract.precondition,
            "radius": contract.radius is not None,
            "ridge": contract.ridge is not None,
            "forget": not isinstance(contract.forget, int | None),
        }
        if wrong := [name for name, stated in others.items() if stated]:
            raise InvalidInput(f"learning.{wrong[0]} is not for a stream with [bandit]. Remove it.")
        if contract.found:
            raise InvalidInput("ranges of a stream with [bandit] are not found privately. State them as numbers.")
        if contract.neighbours == "label":
            raise InvalidInput('which action is chosen depends on a visitor\'s columns. Use neighbours = "replace".')

    def scale(self, contract: Contract) -> float:
        """What encoded columns are multiplied by, so that contexts, with the intercept, have a norm of at most 1."""
        bound = contract.feature_bound
        return 1.0 / math.hypot(bound, bound / 2.0 if contract.intercept else 0.0)

    def plan(self, contract: Contract, seed: int | None = None) -> Plan:
        """The plan of a stream of decisions."""
        settings, scale = contract.settings(), self.scale(contract)
        target = contract.target
        assert isinstance(target, Number)
        assert isinstance(contract.forget, int | None)
        private = linear_bandit(
            contract.dimension,
            Privacy(contract.epsilon, contract.delta),
            contract.horizon,
            arms=self.models,
            low=target.low,
            high=target.high,
            feature_bound=contract.feature_bound * scale,
            intercept=contract.feature_bound / 2.0 * scale if contract.intercept else 0.0,
            schedule=settings.schedule,
            forget=contract.forget,
            neighbours=contract.neighbours,  # type: ignore[arg-type]
            unit=settings.unit,
            seed=seed,
        )
        return Plan("linear-bandit", private, "a contextual bandit: sums of contexts and rewards of the chosen actions")

    @property
    def in_words(self) -> str:
        """What is decided, in a sentence."""
        which = (
            "among the actions of each request, which share a model"
            if self.actions is None
            else f"among {len(self.actions)} actions, each with a model of its own"
        )
        return f"One action is chosen for each visitor, {which}, by {self.policy}."

    def declared(self) -> dict[str, Any]:
        """The same as plain data."""
        actions = FEATURES if self.actions is None else list(self.actions)
        made: dict[str, Any] = {"actions": actions, "policy": self.policy}
        return made | ({"explore": self.explore} if self.policy == "epsilon-greedy" else {"width": self.width})


def reject_decisions(contract: Contract) -> None:
    """Reject a contract of decisions where rows come with their labels, and nothing says which action was chosen."""
    if contract.bandit is not None:
        raise InvalidInput(
            "a contract with [bandit] is for taciturn serve, which chooses the actions that are learnt from. Begin a "
            "stream there; or remove [bandit] to learn from rows."
        )


def bandit_of(root: Section) -> Bandit | None:
    """What the table `[bandit]` declares; None if there is none.

    >>> bandit_of(Section("", {"bandit": {"actions": ["left", "right"], "policy": "thompson"}})).choice
    Thompson(width=0.3, samples=100)
    """
    table = root.section("bandit")
    if "bandit" not in root.data:
        return None
    actions = table.take("actions")
    listed = isinstance(actions, list) and all(isinstance(name, str) for name in actions)
    if not listed and actions != FEATURES:
        raise InvalidInput(
            f'bandit.actions must be a list of names, or "{FEATURES}" if actions come with each request. State it.'
        )
    policies: tuple[Policy, ...] = get_args(Policy)
    policy = table.choice("policy", policies, "thompson")
    greedy = policy == "epsilon-greedy"
    width = WIDTH if greedy else table.number("width", WIDTH)
    explore = table.number("explore", 0.05) if greedy else 0.05
    table.close()
    return Bandit(tuple(actions) if listed else None, policy, width, explore)
