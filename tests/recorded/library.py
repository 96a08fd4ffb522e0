"""Streams of the library: each learner with each strategy, unit and relation, by recipes and by `Private`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix

import taciturn as t
from recorded.data import EPSILON, ROWS, people, several, signs, table
from recorded.fronts import (
    cost_of,
    decayed_sums,
    drift,
    guarantee_of,
    late_average,
    recommend,
    released,
    state_of,
)
from recorded.registry import stream

BUDGET = t.Privacy(EPSILON, 1e-6)
BALL, OFTEN, GROWING = t.L2Ball(2.0), t.every(25), t.geometric(1.3, start=20)
CUTS = (0, 1, 90, 333, ROWS - 10)  # it ends between two releases, so that exact sums are not empty
SEED = 7


def ran(
    private: t.Private,
    X: object,
    y: np.ndarray | None = None,
    cuts: tuple[int, ...] = CUTS,
    users: np.ndarray | None = None,
    **more: object,
) -> dict[str, object]:
    """What a stream releases of rows in several calls, between two of which its state is written and read."""
    state, made = private.start(), []
    for start, end in pairwise(cuts):
        labels = None if y is None else y[start:end]
        own = None if users is None else users[start:end]
        state, releases = private.run(private.load(state.to_bytes()), X[start:end], labels, own, **more)
        made.extend(releases)
    return of(private, state, made)


def of(private: t.Private, state: t.State, releases: list[t.Release]) -> dict[str, object]:
    return {
        "releases": released(releases),
        "state": state_of(state.to_bytes()),
        "cost": {"spent": cost_of(state.spent), "reserved": cost_of(private.total_cost)},
        "guarantee": guarantee_of(private),
    }


def both(private: t.Private, *rows: object, **more: object) -> dict[str, object]:
    """The same by the compiled form and by the definition: what a stream releases that loses its compiled form."""
    defined = ran(replace(private, compiled=False), *rows, **more)
    return {
        "compiled": ran(private, *rows, **more),
        "definition": {part: defined[part] for part in ("releases", "state")},
    }


def sign(loss: t.ScalarLoss | None = None, domain: t.ConvexSet = BALL, **more: object) -> t.Problem:
    return t.Problem(loss or t.Logistic(), domain, 3, **({"intercept": 0.5, "ridge": 0.1} | more))


def number(loss: t.ScalarLoss | None = None, domain: t.ConvexSet = BALL, **more: object) -> t.Problem:
    return t.Problem(loss or t.Squared(), domain, 3, **({"label_bound": 1.0, "intercept": 0.5} | more))


def enter(name: str, doc: str, make: Callable[[], Mapping[str, object]]) -> None:
    """A stream that needs no folder."""

    def run(folder: Path) -> Mapping[str, object]:
        return make()

    run.__doc__ = doc
    stream(name)(run)


# Iterates with independent noise.

enter(
    "library igd",
    "PIGD: logistic and hinge loss, replace; shapes of the budget; by definition too.",
    lambda: {
        "logistic": both(t.pigd(sign(), BUDGET, ROWS, schedule=GROWING, seed=SEED), *signs()),
        "hinge": ran(
            t.pigd(sign(t.Hinge()), BUDGET, ROWS, schedule=OFTEN, shape="S", seed=SEED),
            *signs(),
        ),
        "in a box, no horizon": ran(
            t.pigd(sign(domain=t.Box(-1.0, 0.5)), BUDGET, schedule=OFTEN, seed=SEED),
            *signs(),
        ),
        "absolute, zero-out": ran(
            t.pigd(number(t.Absolute(), ridge=0.2, neighbours="zero-out"), BUDGET, ROWS, schedule=OFTEN, seed=SEED),
            *table(),
        ),
    },
)
enter(
    "library igd of classes",
    "PIGD of several classes.",
    lambda: {
        "softmax": both(
            t.pigd(t.Problem(t.Softmax(3), BALL, 3, ridge=0.1), BUDGET, ROWS, schedule=GROWING, seed=SEED), *several()
        ),
    },
)
enter(
    "library igd that fades",
    "IGD with a decreasing pull (POCP), and averages of iterates.",
    lambda: {
        "fading": both(
            t.pocp(t.FadingIGD(sign(t.Hinge(), ridge=0.0)), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *signs()
        ),
        "mean": ran(
            t.pocp(t.averaged(t.IGD(sign()), "mean", horizon=ROWS), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *signs()
        ),
    },
)
enter(
    "library giga",
    "PGIGA: logistic loss without a horizon and under zero-out, several classes, users, the paper's reading.",
    lambda: {
        "no horizon": ran(t.pgiga(sign(neighbours="zero-out"), BUDGET, schedule=OFTEN, seed=SEED), *signs()),
        "softmax": both(
            t.pgiga(t.Problem(t.Softmax(3), BALL, 3, ridge=0.1), BUDGET, ROWS, schedule=GROWING, seed=SEED), *several()
        ),
        "users": ran(
            t.pgiga(sign(), BUDGET, ROWS, schedule=OFTEN, seed=SEED, unit=t.User(2)), *signs(), users=people()
        ),
        "paper-proven": ran(
            t.pgiga(sign(), BUDGET, ROWS, schedule=OFTEN, seed=SEED, calibration="paper-proven", allow_broken=True),
            *signs(),
        ),
        "suffix": ran(
            t.pocp(
                t.averaged(t.GIGA(sign()), "suffix", horizon=ROWS), BUDGET, ROWS, schedule=t.at([200, ROWS]), seed=SEED
            ),
            *signs(),
        ),
    },
)
enter(
    "library ftl",
    "POCP over FTL: by sums, by examples and with a kink; by compiled form and by definition.",
    lambda: {
        "sums": both(t.pocp(t.FTL(number(ridge=0.1)), BUDGET, ROWS, schedule=t.every(100), seed=SEED), *table()),
        "examples": both(
            t.pocp(t.FTL(sign()), BUDGET, 120, schedule=t.every(30), seed=SEED), *signs(120), cuts=(0, 50, 120)
        ),
        "kinked": both(
            t.pocp(t.FTL(sign(t.Hinge(), ridge=0.0), extra_ridge=3.0), BUDGET, 120, schedule=t.every(40), seed=SEED),
            *signs(120),
            cuts=(0, 50, 120),
        ),
    },
)
enter(
    "library ewoo",
    "EWOO on a net, for several classes, and experts, by the exponential mechanism; compiled form and definition.",
    lambda: {
        "net": both(
            t.ewoo(t.EWOO(sign(t.Hinge()), t.grid(BALL, 4, per_axis=3)), BUDGET, ROWS, schedule=OFTEN, seed=SEED),
            *signs(),
        ),
        "classes": ran(
            t.ewoo(
                t.EWOO(t.Problem(t.Softmax(3), BALL, 3), t.grid(BALL, 9, per_axis=2)),
                BUDGET,
                ROWS,
                schedule=OFTEN,
                seed=SEED,
            ),
            *several(),
        ),
        "experts": ran(t.ewoo(t.experts(4), BUDGET, schedule=t.every(5), seed=SEED), np.abs(table(ROWS, 4)[0])),
    },
)


def fitted(private: object, X: np.ndarray, y: np.ndarray, **more: object) -> dict[str, object]:
    """A data set that is learnt at once: its release, its cost and its guarantee."""
    release = private.fit(X, y, **more)
    return {
        "releases": released([release]),
        "cost": {"reserved": cost_of(private.total_cost)},
        "guarantee": guarantee_of(private),
    }


enter(
    "library offline",
    "POL (mean and last iterate), output perturbation, objective perturbation.",
    lambda: {
        "pol": fitted(t.pol(sign(t.Hinge()), BUDGET, ROWS, seed=SEED), *signs()),
        "pol, last": fitted(t.pol(sign(), BUDGET, ROWS, how="last", seed=SEED), *signs()),
        "output": fitted(t.output_perturbation(sign(), BUDGET, 200, seed=SEED), *signs(200)),
        "objective": fitted(t.ObjectivePerturbation(sign(domain=t.WholeSpace()), BUDGET, ROWS, seed=SEED), *signs()),
        "objective, zero-out": fitted(
            t.ObjectivePerturbation(
                sign(t.Huber(0.5), t.WholeSpace(), label_bound=1.0, neighbours="zero-out"), BUDGET, ROWS, seed=SEED
            ),
            *table(),
        ),
        "users": fitted(
            t.pol(sign(), BUDGET, ROWS, seed=SEED, unit=t.User(3, without_id="own")), *signs(), users=people().tolist()
        ),
    },
)

# Sums through a strategy.

STRATEGIES = {
    "blt": t.BLT(),
    "blt, mean": t.BLT(5, "mean"),
    "blt, average": t.BLT(5, "average"),
    "tree": t.BinaryTree(),
    "tree, unrefined": t.BinaryTree(refined=False),
    "square root": t.SquareRoot(),
    "decayed": t.DecayedBLT(150),
}
USERS = {
    "rows": t.User(4),
    "apart": t.User(4, apart=3),
    "per release": t.User(6, per_release=2, without_id="own"),
    "period": t.User(2, per_release=1, period=200),
}

enter(
    "library pqftl by strategy",
    "PQFTL through every strategy, with a horizon; those that no default chooses by definition too.",
    lambda: {
        name: (both if name in ("tree", "square root") else ran)(
            t.pqftl(number(), BUDGET, ROWS, strategy=strategy, schedule=OFTEN, seed=SEED), *table()
        )
        for name, strategy in STRATEGIES.items()
    },
)
enter(
    "library pqftl",
    "PQFTL without a horizon, on growing rounds, under each relation, of several classes, with the paper's noise.",
    lambda: {
        "no horizon, steady": ran(t.pqftl(number(), BUDGET, schedule=OFTEN, seed=SEED), *table()),
        "no horizon, growing": ran(t.pqftl(number(), BUDGET, schedule=GROWING, seed=SEED), *table()),
        "label": ran(t.pqftl(number(neighbours="label"), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()),
        "zero-out": ran(t.pqftl(number(neighbours="zero-out"), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()),
        "one hot": ran(
            t.pqftl(t.Problem(t.OneHot(3), BALL, 3, intercept=0.5), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *several()
        ),
        "paper-printed": ran(
            t.pqftl(
                number(),
                BUDGET,
                ROWS,
                strategy=t.BinaryTree(refined=False),
                schedule=OFTEN,
                seed=SEED,
                weight=1.25**0.5,
                calibration="paper-printed",
                allow_broken=True,
            ),
            *table(),
        ),
        "every row": ran(
            t.pqftl(number(), BUDGET, 100, extra_ridge=2.0, weight=0.5, seed=SEED), *table(100), cuts=(0, 1, 100)
        ),
    },
)
enter(
    "library pqftl of users",
    "PQFTL with each bound on the rows of a user, two owners of a row, and months of the clock.",
    lambda: {
        **{
            name: ran(t.pqftl(number(), BUDGET, ROWS, schedule=OFTEN, seed=SEED, unit=unit), *table(), users=people())
            for name, unit in USERS.items()
        },
        "two owners": ran(
            t.pqftl(number(), BUDGET, ROWS, schedule=OFTEN, seed=SEED, unit=t.User(3)),
            *table(),
            users=np.column_stack([people(), people(seed=5)]),
        ),
        "months": of_months(),
    },
)


def of_months() -> dict[str, object]:
    """Two calls in two months of the public clock."""
    private = t.pqftl(number(), BUDGET, ROWS, schedule=OFTEN, seed=SEED, unit=t.User(1, period="month"))
    (X, y), users, state, made = table(), people(), private.start(), []
    for half, month in ((slice(0, 300), 1), (slice(300, ROWS), 2)):
        state, releases = private.run(state, X[half], y[half], users[half], datetime(2026, month, 15))
        made.extend(releases)
    return of(private, state, made) | {"twelve months": cost_of(private.user_over(12))}


enter(
    "library pftrl by strategy",
    "Private FTRL (hinge) through every strategy; those that no default chooses by definition too.",
    lambda: {
        name: (both if name in ("tree", "square root") else ran)(
            t.pftrl(sign(t.Hinge(), ridge=0.0), BUDGET, ROWS, strategy=strategy, schedule=OFTEN, seed=SEED), *signs()
        )
        for name, strategy in STRATEGIES.items()
    },
)
enter(
    "library pftrl by loss",
    "Private FTRL with each loss and several sets, curvature and scale, each relation, sparse rows.",
    lambda: {
        "logistic": ran(t.pftrl(sign(ridge=0.0), BUDGET, ROWS, schedule=OFTEN, curvature=0.5, seed=SEED), *signs()),
        "every row": ran(t.pftrl(sign(), BUDGET, 100, seed=SEED), *signs(100), cuts=(0, 1, 100)),
        "label": ran(t.pftrl(sign(ridge=0.0, neighbours="label"), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *signs()),
        "zero-out": ran(t.pftrl(sign(neighbours="zero-out"), BUDGET, schedule=GROWING, seed=SEED), *signs()),
        "absolute": ran(t.pftrl(number(t.Absolute()), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()),
        "huber": ran(t.pftrl(number(t.Huber(0.25)), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()),
        "quantile": ran(t.pftrl(number(t.Quantile(0.75)), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()),
        "squared": ran(t.pftrl(number(), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()),
        "linear, simplex": ran(
            t.pftrl(number(t.Linear(), t.Simplex(), intercept=0.0), BUDGET, ROWS, schedule=OFTEN, seed=SEED), *table()
        ),
        "whole space": ran(
            t.pftrl(sign(t.Hinge(), t.WholeSpace(), ridge=0.0), BUDGET, ROWS, schedule=OFTEN, scale=2.0, seed=SEED),
            *signs(),
        ),
        "sparse": ran(
            t.pftrl(sign(t.Hinge(), ridge=0.0), BUDGET, ROWS, schedule=OFTEN, seed=SEED),
            csr_matrix(np.where(np.abs(signs()[0]) > 0.25, signs()[0], 0.0)),
            signs()[1],
        ),
        "softmax": ran(
            t.pftrl(t.Problem(t.Softmax(3), BALL, 3, intercept=0.5), BUDGET, ROWS, schedule=OFTEN, seed=SEED),
            *several(),
        ),
        "multi hinge": ran(
            t.pftrl(t.Problem(t.MultiHinge(3), BALL, 3, intercept=0.5), BUDGET, ROWS, schedule=OFTEN, seed=SEED),
            *several(),
        ),
    },
)
enter(
    "library pftrl of users",
    "Private FTRL with each bound on the rows of a user, also where rows are forgotten.",
    lambda: {
        **{
            name: ran(
                t.pftrl(sign(t.Hinge(), ridge=0.0), BUDGET, ROWS, schedule=OFTEN, seed=SEED, unit=unit),
                *signs(),
                users=people(),
            )
            for name, unit in USERS.items()
        },
        "forgetting": ran(
            t.pftrl(sign(ridge=0.0), BUDGET, forget=100, schedule=OFTEN, seed=SEED, unit=t.User(2)),
            *signs(),
            users=people(),
        ),
    },
)


def remembered(private: t.Private) -> dict[str, object]:
    """A stream that forgets, with what is computed of its releases: sums of another window, drift, the late average."""
    made = ran(private, *table())
    _, releases = private.run(private.start(), *table())
    found, sums = drift(private, releases), decayed_sums(private, releases, 60)
    seen = {name: np.asarray(getattr(found, name)) for name in ("rounds", "distance", "alarm_at")}
    return made | {"sums of 60": [np.asarray(each) for each in sums], "drift": seen, "late": late_average(releases)}


enter(
    "library forgetting",
    "Sums that decay, with and without a horizon, and other memories and drift of their releases.",
    lambda: {
        "pqftl": remembered(t.pqftl(number(), BUDGET, forget=150, schedule=OFTEN, seed=SEED)),
        "sum": ran(t.private_sum(3, 1.0, BUDGET, ROWS, forget=90, schedule=OFTEN, seed=SEED), table()[0]),
        "pftrl": ran(t.pftrl(sign(t.Hinge()), BUDGET, forget=150, schedule=OFTEN, seed=SEED), *signs()),
        "class sums": ran(
            t.class_sums(
                t.Problem(t.Hinge(), t.WholeSpace(), 3, intercept=0.25), BUDGET, forget=150, schedule=OFTEN, seed=SEED
            ),
            np.abs(signs()[0]),
            signs()[1],
        ),
    },
)
enter(
    "library sums",
    "Private sums: every row, without a horizon, of users, under each relation, by tree and square root.",
    lambda: {
        "every row": ran(t.private_sum(3, 0.75, BUDGET, ROWS, seed=SEED), table()[0]),
        "no horizon": ran(t.private_sum(3, 0.75, BUDGET, seed=SEED), table()[0]),
        "tree": ran(t.private_sum(3, 0.75, BUDGET, ROWS, strategy=t.BinaryTree(), seed=SEED), table()[0]),
        "root": both(
            t.private_sum(3, 0.75, BUDGET, 120, strategy=t.SquareRoot(), seed=SEED), table(120)[0], cuts=(0, 50, 120)
        ),
        "zero-out": ran(
            t.private_sum(3, 0.75, BUDGET, ROWS, neighbours="zero-out", schedule=OFTEN, seed=SEED), table()[0]
        ),
        "paper-proven": ran(
            t.private_sum(
                3,
                0.75,
                BUDGET,
                64,
                strategy=t.BinaryTree(refined=False),
                calibration="paper-proven",
                allow_broken=True,
                seed=SEED,
            ),
            table(64)[0],
            cuts=(0, 30, 64),
        ),
        "users": ran(
            t.private_sum(3, 0.75, BUDGET, ROWS, schedule=OFTEN, unit=t.User(8, apart=2), seed=SEED),
            table()[0],
            users=people(),
        ),
    },
)
enter(
    "library class sums",
    "Class sums of dense and of sparse rows, two classes and three, of labels, and of users.",
    lambda: {
        "dense": ran(
            t.class_sums(
                t.Problem(t.Hinge(), t.WholeSpace(), 3, intercept=0.25), BUDGET, ROWS, schedule=OFTEN, seed=SEED
            ),
            np.abs(signs()[0]),
            signs()[1],
        ),
        "sparse": ran(
            t.class_sums(t.Problem(t.MultiHinge(3), t.WholeSpace(), 40), BUDGET, ROWS, schedule=GROWING, seed=SEED),
            csr_matrix(np.maximum(several(ROWS, 40)[0] - 0.375, 0.0)),
            several(ROWS, 40)[1],
        ),
        "label": ran(
            t.class_sums(
                t.Problem(t.MultiHinge(3), t.WholeSpace(), 3, neighbours="label"),
                BUDGET,
                ROWS,
                schedule=OFTEN,
                seed=SEED,
            ),
            np.abs(several()[0]),
            several()[1],
        ),
        "users": ran(
            t.class_sums(
                t.Problem(t.Hinge(), t.WholeSpace(), 3), BUDGET, schedule=t.every(50), seed=SEED, unit=t.User(2)
            ),
            np.abs(signs()[0]),
            signs()[1],
            users=people(),
        ),
    },
)


def of_sums() -> dict[str, object]:
    """Blocks that workers have added up, in any order, and the rows of users that were admitted."""
    made, (X, y), users = {}, table(), people()
    for name, unit in (("rows", t.Example()), ("users", t.User(3))):
        private = t.pqftl(number(), BUDGET, ROWS, schedule=t.every(150), seed=SEED, unit=unit)
        state, releases = private.start(), []
        for start in range(0, ROWS, 300):
            admission = None if name == "rows" else private.admit(state, users[start : start + 300])
            left_out = np.zeros(300, dtype=bool) if admission is None else admission.to_bytes()
            learner = private.learner_at(state)
            blocks = [
                t.block_statistics(
                    learner, None, X[a : a + 50], y[a : a + 50], excluded=left_out[a - start : a - start + 50]
                )
                for a in range(start, start + 300, 50)
            ]
            state, shown = private.run_sums(state, blocks, admission)
            releases.extend(shown)
        made[name] = of(private, state, releases)
    return made


enter("library sums of workers", "Integer sums in the place of rows, of rows and of users that are admitted.", of_sums)
enter(
    "library bandit models",
    "Models of linear bandits: shared and per arm, zero-out, forgetting.",
    lambda: {name: played(**settings) for name, settings in BANDITS.items()},
)
BANDITS: dict[str, dict[str, object]] = {
    "shared": {"horizon": ROWS},
    "per arm": {"horizon": ROWS, "arms": 3, "low": 0.0, "intercept": 0.5, "schedule": OFTEN},
    "zero-out": {"horizon": ROWS, "neighbours": "zero-out", "weight": 0.5, "schedule": OFTEN},
    "forgetting": {"forget": 200},
    "users": {"horizon": ROWS, "schedule": OFTEN, "unit": t.User(3)},
}


def played(**settings: object) -> dict[str, object]:
    private = t.linear_bandit(3, BUDGET, seed=SEED, **settings)
    X, y = table()
    arms = np.arange(ROWS) % 3 if settings.get("arms") else None
    labels = private.learner.labels(np.abs(y), arms)
    return ran(private, X, labels, users=people() if "unit" in settings else None)


# Stages, plans, and what users write themselves.


def staged(name: str) -> dict[str, object]:
    """Ranges, scales and a map of features that are found in the first rows, then a learner by the plan."""
    rows, wide = 6_000, t.Privacy(20.0, 1e-6)
    X, y = table(rows)
    X, y = X * np.array([1.0, 50.0, 3000.0]) + np.array([0.0, 7.0, -900.0]), 100.0 * y + 30.0
    X[np.random.default_rng(4).integers(0, 16, X.shape) == 0] = np.nan
    settings: dict[str, object] = {"seed": SEED, "ranges": "private"}
    if name == "numbers":
        problem, settings = (
            t.Problem(t.Squared(), t.L2Ball(5.0), 3, 2.6, 3.0, 1.3),
            settings | {"label_range": "private"},
        )
    elif name == "users":
        problem, y = t.Problem(t.Hinge(), t.L2Ball(20.0), 3, 0.9, intercept=0.4), np.where(y > 30.0, 1.0, -1.0)
        settings |= {"unit": t.User(3)}
    else:
        problem, y = t.Problem(t.Logistic(), t.L2Ball(20.0), 3, 0.9, intercept=0.4), np.where(y > 30.0, 1.0, -1.0)
        settings |= {"precondition": True}
    plan = recommend(problem, wide, rows, **settings)
    users = people(rows) if name == "users" else None
    made = ran(plan.private, X, y, (0, 10, 700, 2_000, rows), users)
    return made | {"stages": plan.private.borders}


enter(
    "library stages",
    "Ranges of features and labels, scales and a preconditioner found privately, then PQFTL or FTRL; of users.",
    lambda: {name: staged(name) for name in ("numbers", "classes", "users")},
)


class LogCosh(t.ScalarLoss):
    """A loss of a user's own."""

    curvature: ClassVar[float] = 1.0

    def value(self, u, y):
        return np.logaddexp(u - y, y - u)

    def slope(self, u, y):
        return (u - y) / (1.0 + np.abs(u - y))

    def slope_bound(self, reach, label_bound):
        return 1.0


@dataclass(frozen=True)
class Halving:
    """A schedule of a user's own."""

    last: int

    def round_of(self, k: int) -> int | None:
        return self.last - self.last // 2**k if self.last // 2**k else None


enter(
    "library own parts",
    "A loss and a schedule of a user's own, and sets without a compiled form.",
    lambda: {
        "loss, half-space": ran(
            t.pftrl(
                number(LogCosh(), t.HalfSpace((1.0, 2.0, 1.0, 1.0), 0.25), ridge=0.1),
                BUDGET,
                ROWS,
                schedule=Halving(ROWS),
                scale=1.0,
                seed=SEED,
            ),
            *table(),
        ),
        "l1 ball": ran(t.pigd(sign(domain=t.L1Ball(1.0)), BUDGET, ROWS, schedule=t.every(100), seed=SEED), *signs()),
        "random features": ran(
            t.pqftl(number(features=t.RandomFeatures(12, 2.0, length=1.0)), BUDGET, ROWS, schedule=OFTEN, seed=SEED),
            *table(),
        ),
    },
)
