"""The fronts beside what they replace: calls of one row, river's and scikit-learn's estimators, and random features.

CPU time per example, logistic loss, 54 features, all contenders in turns on one core. Peers have their default
settings, the same rows, and an intercept, as ours have. Models are made before the clock starts; scikit-learn's
estimators plan, or allocate, in their first call, which is counted.

- *A run of one row* is `Private.run` on an array of one row, by PIGD with a release after every row; or by PIGD with a
  release after every thousandth, so that most calls only learn. It is compared with river's `learn_one`.
- *Predict, then learn*: `predict_one` and `learn_one` on dicts, by river's `LogisticRegression` and by taciturn's, with
  the releases of its plan; or with a release after every example, so that every prediction reads a new model.
- *By 1,000*: `partial_fit` of 1,000 rows, by scikit-learn's `SGDClassifier` with logistic loss and by taciturn's
  `PrivateLogisticRegression`, with the releases of its plan or with one after every example.
- *Random features*: a fit of `PrivateLinearSVC(features=2000)`, compared with the products of all rows with 2,000
  directions and of the results with 2,000 weights, in blocks that stay in the cache. taciturn itself needs 1,000
  directions, of which it takes cosines and sines.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from logistic import RADIUS, RIDGE, D, clicks
from runner import Contender, Ratio, parse_options, run, use_one_core
from streams import BUDGET, Task
from taciturn import IGD, Gaussian, L2Ball, Logistic, Private, Problem, every
from taciturn.estimators.stream import PrivacyWarning

ROWS = 100_000
RANDOM = 2_000
BLOCK = 256
PACKAGES = ("numpy", "scipy", "numba", "cryptography", "river", "scikit-learn")
RATIOS = {
    "run of one row / river's learn_one": Ratio("taciturn, run of one row", "river, learn", at_most=2.0),
    "run of one row between releases / river's learn_one": Ratio(
        "taciturn, run of one row between releases", "river, learn", at_most=2.0
    ),
    "predict, then learn / river's": Ratio(
        "taciturn for river, predict and learn", "river, predict and learn", at_most=1.0
    ),
    "by 1,000 / scikit-learn's": Ratio("taciturn for scikit-learn, by 1,000", "scikit-learn, by 1,000", at_most=1.0),
    "by 1,000 with every release / scikit-learn's": Ratio(
        "taciturn for scikit-learn, by 1,000, every release", "scikit-learn, by 1,000"
    ),
    "reading every release / river's predict and learn": Ratio(
        "taciturn for river, reading every release", "river, predict and learn", at_most=5.0
    ),
    "random features / their products": Ratio("taciturn, random features", "products of random features", at_most=3.0),
}


class Stopwatch:
    """CPU seconds of the part of a turn that counts: `clock` for a contender, `start` and `stop` in its work."""

    def __init__(self) -> None:
        self.total = 0.0
        self.began = 0.0

    def clock(self) -> float:
        return self.total

    def start(self) -> None:
        self.began = time.process_time()

    def stop(self) -> None:
        self.total += time.process_time() - self.began


def timed(make: Callable[[], Any], use: Callable[[Any], None], count: int) -> Contender:
    """A contender whose model is made before the clock starts."""
    watch = Stopwatch()

    def work() -> None:
        model = make()
        watch.start()
        use(model)
        watch.stop()

    return Contender(work, count, clock=watch.clock)


def runs_of_one_row(task: Task) -> dict[str, Contender]:
    problem = Problem(Logistic(), L2Ball(RADIUS), dimension=D, ridge=RIDGE)

    def contender(rounds: int) -> Contender:
        private = Private(IGD(problem), Gaussian(), every(rounds), BUDGET, horizon=ROWS)

        def use(state: Any) -> None:
            for i in range(len(task)):
                state, _ = private.run(state, task.X[i : i + 1], task.y[i : i + 1])

        return timed(private.start, use, len(task))

    return {"taciturn, run of one row": contender(1), "taciturn, run of one row between releases": contender(1_000)}


def dicts(few: Task, fewer: Task) -> dict[str, Contender]:
    """river's model and taciturn's for it; the one that reads every release gets fewer rows."""
    from river import linear_model

    from taciturn.estimators.river import PrivateLogisticRegression

    rows = few.dicts()
    labels = (few.y > 0.0).tolist()
    names = [str(j) for j in range(D)]

    def learns(model: Any) -> None:
        for x, y in zip(rows, labels, strict=True):
            model.learn_one(x, y)

    def predicts_and_learns(count: int) -> Callable[[Any], None]:
        def use(model: Any) -> None:
            for x, y in zip(rows[:count], labels, strict=False):
                model.predict_one(x)
                model.learn_one(x, y)

        return use

    def private(release: str, horizon: int) -> Callable[[], Any]:  # at its horizon a model has learnt all rows
        def make() -> Any:
            model = PrivateLogisticRegression(
                features=names, horizon=horizon, epsilon=1.0, feature_bound=1.0, release=release
            )
            model.predict_one(rows[0])  # plans the stream
            return model

        return make

    n, few_rows = len(few), len(fewer)
    return {
        "river, learn": timed(linear_model.LogisticRegression, learns, n),
        "river, predict and learn": timed(linear_model.LogisticRegression, predicts_and_learns(n), n),
        "taciturn for river, predict and learn": timed(private("auto", n), predicts_and_learns(n), n),
        "taciturn for river, reading every release": timed(
            private("every", few_rows), predicts_and_learns(few_rows), few_rows
        ),
    }


def arrays(task: Task) -> dict[str, Contender]:
    from sklearn.linear_model import SGDClassifier

    from taciturn.estimators.sklearn import PrivateLogisticRegression

    def learns(model: Any) -> None:
        for X, y in task.chunks(1_000):
            model.partial_fit(X, y, classes=[-1.0, 1.0])

    def private(release: str) -> Callable[[], Any]:
        return lambda: PrivateLogisticRegression(horizon=ROWS, epsilon=1.0, feature_bound=1.0, release=release)

    return {
        "scikit-learn, by 1,000": timed(lambda: SGDClassifier(loss="log_loss"), learns, len(task)),
        "taciturn for scikit-learn, by 1,000": timed(private("auto"), learns, len(task)),
        "taciturn for scikit-learn, by 1,000, every release": timed(private("every"), learns, len(task)),
    }


def random_features(task: Task) -> dict[str, Contender]:
    from taciturn.estimators.sklearn import PrivateLinearSVC

    rng = np.random.default_rng(0)
    directions, weights = rng.normal(size=(D, RANDOM)), rng.normal(size=RANDOM)

    def products() -> None:
        images = np.empty((BLOCK, RANDOM))
        for start in range(0, len(task) - BLOCK + 1, BLOCK):
            np.matmul(task.X[start : start + BLOCK], directions, out=images)
            images @ weights

    def fit() -> Any:
        return PrivateLinearSVC(epsilon=1.0, feature_bound=1.0, features=RANDOM, classes=[-1.0, 1.0]).fit(
            task.X, task.y
        )

    return {
        "taciturn, random features": Contender(fit, len(task)),
        "products of random features": Contender(products, len(task)),
    }


def contenders(n: int) -> dict[str, Contender]:
    """All contenders; slow ones get fewer rows."""
    task = clicks(n)
    few, fewer = task.first(n // 5), task.first(n // 50)
    return runs_of_one_row(fewer) | dicts(few, fewer) | arrays(task) | random_features(task)


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    warnings.simplefilter("ignore", PrivacyWarning)  # the noise of a release after every row outweighs so few rows
    made = contenders(ROWS // 10 if chosen.quick else ROWS)
    run("fronts", made, RATIOS, chosen, unit="µs per example", packages=PACKAGES)


if __name__ == "__main__":
    main()
