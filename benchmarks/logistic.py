"""Logistic loss, 54 features, a release after every example: taciturn beside learners that are not private.

Processor time an example, everyone in turns on one core, and beside it the accuracy of the final model on rows that
nobody saw; 0.888 is the best there is. A stream comes in chunks of 4,096 rows, and no releases are kept beyond a chunk,
as no peer keeps its models. taciturn's noise is secret, on a lattice, from AES (`taciturn.noise.sampling`).

- *PIGD* and *PGIGA* hide each model by itself, so that the last one is mostly noise when there are 200,000; their late
  average costs no privacy, and is a contender of its own. *FTRL* is by BLT.
- *The fronts* are taciturn's for river, `learn_one`, and for scikit-learn, `partial_fit` by 1,000 rows: private FTRL
with
  a release after every example, and its late average, as their plan says. The one for river hands over blocks of up to
  1,024 rows, and at once when somebody looks at a model that they change: so both are also measured as river is used,
  predicting before they learn, taciturn's with the releases of its plan, and, a look at every release, with all of
  them.
- *Vowpal Wabbit*'s command reads a binary cache, which is counted, plain (`--sgd`) and adaptive; or it learns from
  examples that were parsed before the clock starts, called from Python. taciturn's rows are arrays in memory.
- *river* learns from dicts that were made before. *scikit-learn* has a model after every example, or after every 1,000
  or 4,096.
- *The limit* is a compiled loop of steps, not private, that checks nothing and hands over nothing but its end.

river, taciturn's front for it, and examples parsed before, have a tenth of the rows; scikit-learn by example, and the
front with a look at every release, a hundredth.

For all contenders the process keeps the memory that it frees (glibc's MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_),
as fresh pages cost a microsecond each on a virtual machine. `--plain-memory` leaves that as it is.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

import vowpal
from streams import BUDGET, CHUNK, PLAIN_MEMORY, Task, learns, noise_alone
from taciturn import L2Ball, Logistic, Private, Problem, pftrl, pgiga, pigd
from taciturn.averages import late_average
from taciturn.estimators.stream import PrivacyWarning
from turns import Contender, Ratio, options, run, settle

D, RADIUS, RIDGE, ROWS = 54, 5.0, 0.01, 200_000
PACKAGES = ("numpy", "scipy", "numba", "cryptography", "vowpalwabbit", "river", "scikit-learn")
RATIOS = {
    "PIGD / (its noise + its steps)": Ratio(
        "taciturn PIGD", ("taciturn, PIGD's noise", "taciturn, PIGD's steps"), at_most=2.0
    ),
    "fastest Vowpal Wabbit / PIGD": Ratio("Vowpal Wabbit*", "taciturn PIGD", at_least=2.5),
    "river / PIGD": Ratio("river", "taciturn PIGD", at_least=15.0),
    "fastest Vowpal Wabbit / FTRL": Ratio("Vowpal Wabbit*", "taciturn FTRL", at_least=1.2),
    "fastest Vowpal Wabbit / PIGD and its late average": Ratio("Vowpal Wabbit*", "taciturn PIGD, late average"),
    "river / taciturn's river front": Ratio("river", "taciturn's river front", at_least=0.4),
    "the same, predicting first": Ratio("river, predicting first", "taciturn's river front, predicting first"),
    "the same, a release each": Ratio("river, predicting first", "taciturn's river front, a look at every release"),
    "fastest scikit-learn / PIGD": Ratio("scikit-learn*", "taciturn PIGD"),
    "scikit-learn / taciturn's scikit-learn front": Ratio("scikit-learn, by 1,000", "taciturn's scikit-learn front"),
    "limit / PIGD": Ratio("limit", "taciturn PIGD"),
}


def clicks(n: int) -> Task:
    """Labels are signs of one feature, with some noise before; a tenth as many rows to judge by."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + n // 10, D)) / math.sqrt(D)
    y = np.where(X[:, 0] + 0.05 * rng.normal(size=len(X)) > 0.0, 1.0, -1.0)
    return Task(X[:n], y[:n], X[n:], y[n:])


# ---- taciturn -----------------------------------------------------------------------------------------------------


def streams(task: Task) -> dict[str, Contender]:
    """Its learners, and PIGD in parts."""
    n, problem = len(task), Problem(Logistic(), L2Ball(RADIUS), dimension=D, ridge=RIDGE)
    recipes = {"PIGD": pigd, "PGIGA": pgiga, "FTRL": pftrl}
    made = {f"taciturn {name}": recipe(problem, BUDGET, n) for name, recipe in recipes.items()}
    whole = {name: Contender(learns(private, task), n, task.accuracy) for name, private in made.items()}
    stream = made["taciturn PIGD"]
    return whole | {
        "taciturn PIGD, late average": Contender(learns_and_averages(stream, task), n, task.accuracy),
        "taciturn, PIGD's noise": Contender(noise_alone(stream, n), n),
        "taciturn, PIGD's steps": Contender(steps_alone(stream, task), n),
    }


def learns_and_averages(private: Private, task: Task) -> Callable[[], np.ndarray]:
    """A whole private stream, and the late average of all that it releases."""

    def work() -> Any:
        state, mean, since = private.start(), None, 0
        for X, y in task.chunks():
            state, releases = private.run(state, X, y)
            mean, since = late_average(releases, mean, since), int(releases.rounds[-1])
        return mean

    return work


def steps_alone(private: Private, task: Task) -> Callable[[], object]:
    """The same learner without noise or releases: examples are bounded, and every step is taken."""
    learner = private.learner

    def work() -> object:
        exact, every = learner.start(), np.arange(1, len(task) + 1)
        for start, (X, y) in zip(range(0, len(task), CHUNK), task.chunks(), strict=True):
            V, labels = learner.problem.legal(X, y, compiled=True)
            exact, _ = learner.hand_over_all(exact, start, V, labels, every[start : start + CHUNK])
        return exact

    return work


def fronts(task: Task, few: Task) -> dict[str, Contender]:
    """river's gets fewer rows, as river does."""
    from taciturn.estimators import river, sklearn

    stated = {"epsilon": 1.0, "feature_bound": 1.0, "radius": RADIUS, "fit_intercept": False}
    stated |= {"method": "ftrl", "release": "every"}
    rows, labels, names = few.dicts(), (few.y > 0.0).tolist(), [str(j) for j in range(D)]

    def one_by_one(count: int, predicting: bool, release: str) -> Contender:
        def work() -> np.ndarray:
            settings = stated | {"release": release}
            model = river.PrivateLogisticRegression(features=names, horizon=len(few), **settings)
            for x, y in zip(rows[:count], labels, strict=False):
                if predicting:
                    model.predict_one(x)
                model.learn_one(x, y)
            return np.array([model.weights[name] for name in names])  # to look is to learn from the last rows, too

        return Contender(work, count, few.accuracy)

    def by_thousands() -> np.ndarray:
        model = sklearn.PrivateLogisticRegression(horizon=len(task), **stated)
        for X, y in task.chunks(1_000):
            model.partial_fit(X, y, classes=[-1.0, 1.0])
        return np.array(model.coef_[0])

    return {
        "taciturn's river front": one_by_one(len(few), predicting=False, release="every"),
        "taciturn's river front, predicting first": one_by_one(len(few), predicting=True, release="auto"),
        "taciturn's river front, a look at every release": one_by_one(len(few) // 10, predicting=True, release="every"),
        "taciturn's scikit-learn front": Contender(by_thousands, len(task), task.accuracy),
    }


# ---- peers -----------------------------------------------------------------------------------------------------


def vowpal_wabbit(task: Task, few: Task, folder: Path) -> dict[str, Contender]:
    """Accuracies of the command are those of what it predicts from a model that it saved in a run of its own."""
    from vowpalwabbit import Workspace

    data, cache, unseen = folder / "data.txt", folder / "data.cache", folder / "unseen.txt"
    model = folder / "model"
    lines = vowpal.lines(task.X, task.y)
    data.write_text("\n".join(lines) + "\n")
    unseen.write_text("\n".join(vowpal.lines(task.unseen, task.answers)) + "\n")
    usual = "--loss_function logistic --quiet --noconstant"
    Workspace(f"-d {data} --cache_file {cache} -k {usual}").finish()
    single = Workspace(f"{usual} --sgd")
    parsed = [single.parse(line) for line in lines[: len(few)]]
    parsed = [example[0] if isinstance(example, list) else example for example in parsed]

    def command(more: str) -> None:
        Workspace(f"-d {data} --cache_file {cache} {usual} {more}").finish()

    def commanded(more: str) -> float:
        command(f"{more} -f {model}")
        return vowpal.accuracy(model, unseen)

    def one_by_one() -> None:
        for example in parsed:
            single.learn(example)

    def learnt(_: None) -> float:
        scores = [single.predict(line) for line in unseen.read_text().splitlines()]
        return float(np.mean(np.sign(scores) == task.answers))

    return {
        "Vowpal Wabbit, plain": Contender(lambda: command("--sgd"), len(task), lambda _: commanded("--sgd")),
        "Vowpal Wabbit, adaptive": Contender(lambda: command(""), len(task), lambda _: commanded("")),
        "Vowpal Wabbit, parsed before": Contender(one_by_one, len(few), learnt),
    }


def river(few: Task) -> dict[str, Contender]:
    from river import linear_model, optim

    rows, labels = few.dicts(), (few.y > 0.0).tolist()

    def learns_one_by_one(predicting: bool) -> Contender:
        def work() -> np.ndarray:
            model = linear_model.LogisticRegression(optim.SGD(0.1), intercept_lr=0.0)
            for x, y in zip(rows, labels, strict=True):
                if predicting:
                    model.predict_one(x)
                model.learn_one(x, y)
            return np.array([model.weights[str(j)] for j in range(few.d)])

        return Contender(work, len(few), few.accuracy)

    return {"river": learns_one_by_one(False), "river, predicting first": learns_one_by_one(True)}


def scikit_learn(task: Task, fewer: Task) -> dict[str, Contender]:
    from sklearn.linear_model import SGDClassifier

    def learns_by(size: int, rows: Task) -> Contender:
        def work() -> np.ndarray:
            model = SGDClassifier(loss="log_loss", fit_intercept=False)
            for X, y in rows.chunks(size):
                model.partial_fit(X, y, classes=[-1.0, 1.0])
            return model.coef_[0]

        return Contender(work, len(rows), rows.accuracy)

    return {
        "scikit-learn, by example": learns_by(1, fewer),
        "scikit-learn, by 1,000": learns_by(1_000, task),
        f"scikit-learn, by {CHUNK:,}": learns_by(CHUNK, task),
    }


def limit(task: Task) -> dict[str, Contender]:
    def work() -> np.ndarray:
        x, t = np.zeros(task.d), 0
        for X, y in task.chunks():
            descend(x, X, y, t)
            t += len(y)
        return x

    return {"limit": Contender(work, len(task), task.accuracy)}


@njit(fastmath=True)
def descend(x, X, y, t):  # type: ignore[no-untyped-def]
    """Gradient steps of `1/(¼ + ridge·t)` after t of them, in x itself."""
    for i in range(len(y)):
        score = 0.0
        for j in range(len(x)):
            score += X[i, j] * x[j]
        step = 1.0 / (0.25 + RIDGE * (t + i + 1))
        pull, push = 1.0 - step * RIDGE, step * y[i] / (1.0 + math.exp(y[i] * score))
        for j in range(len(x)):
            x[j] = pull * x[j] + push * X[i, j]


# ---- the run ---------------------------------------------------------------------------------------------------


def contenders(n: int, folder: Path) -> dict[str, Contender]:
    """Everyone; slow ones get fewer rows."""
    task = clicks(n)
    few, fewer = task.first(n // 10), task.first(n // 100)
    peers = vowpal_wabbit(task, few, folder) | river(few) | scikit_learn(task, fewer) | limit(task)
    return streams(task) | fronts(task, few) | peers


def main() -> None:
    chosen = options(__doc__, plain_memory=PLAIN_MEMORY)
    settle(chosen.plain_memory)
    if chosen.quick:
        warnings.simplefilter("ignore", PrivacyWarning)  # so few rows are not enough for what they shall hide
    with tempfile.TemporaryDirectory() as folder:
        everyone = contenders(ROWS // 10 if chosen.quick else ROWS, Path(folder))
        run("logistic", everyone, RATIOS, chosen, unit="µs an example", packages=PACKAGES, score="accuracy")


if __name__ == "__main__":
    main()
