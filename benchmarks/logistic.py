"""Logistic loss, 54 features, a release after every example: taciturn and learners that are not private.

CPU time per example, all contenders in turns on one core, and the accuracy of the final model on held-out rows, of
which the best possible is 0.888. A stream comes in chunks of 4,096 rows, and its releases are not stored, as peers do
not store their models. taciturn's noise is secret, on a lattice, from AES (`taciturn.kernel.noise.sampling`).

- *PIGD* and *PGIGA* add noise to each model independently, so the last of 200,000 is mostly noise; their late average
  costs no privacy, and is a contender of its own. *FTRL* uses a BLT.
- *The estimators* are taciturn's for river, `learn_one`, and for scikit-learn, `partial_fit` with 1,000 rows: private
  FTRL with a release after every example, and its late average, as their plan says. The one for river learns in blocks
  of up to 1,024 rows, and at once when a model that they change is read. So both are also measured as river is used,
  predicting before they learn: taciturn's with the releases of its plan, and with a release, which is read, after every
  example.
- *Vowpal Wabbit*'s command reads a binary cache, which is counted, plain (`--sgd`) and adaptive; or it learns from
  examples that were parsed before the measurement, called from Python. taciturn's rows are arrays in memory.
- *river* learns from dicts that were made before. *scikit-learn* has a model after every example, or after every 1,000
  or 4,096.
- *The limit* is a compiled loop of steps, not private, that validates nothing and returns its last point only.

river, taciturn's estimator for it, and pre-parsed examples have a tenth of the rows; scikit-learn by example, and the
estimator that reads every release, a hundredth.

For all contenders the process keeps the memory that it frees (glibc's MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_),
as fresh pages cost a microsecond each on a virtual machine. `--plain-memory` turns that off.
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
from runner import PLAIN_MEMORY, Contender, Ratio, parse_options, run, use_one_core
from streams import BUDGET, CHUNK, Task, learns, noise_alone
from taciturn import L2Ball, Logistic, Private, Problem, pftrl, pgiga, pigd
from taciturn.averages import late_average
from taciturn.estimators.stream import PrivacyWarning
from taciturn.kernel.problem import clipping_pass
from taciturn.kernel.stream import passes

D = 54
RADIUS = 5.0
RIDGE = 0.01
ROWS = 200_000
PACKAGES = ("numpy", "scipy", "numba", "cryptography", "vowpalwabbit", "river", "scikit-learn")
RATIOS = {
    "PIGD / (its noise + its steps)": Ratio(
        "taciturn PIGD", ("taciturn, PIGD's noise", "taciturn, PIGD's steps"), at_most=2.0
    ),
    "fastest Vowpal Wabbit / PIGD": Ratio("Vowpal Wabbit*", "taciturn PIGD", at_least=2.5),
    "river / PIGD": Ratio("river", "taciturn PIGD", at_least=15.0),
    "fastest Vowpal Wabbit / FTRL": Ratio("Vowpal Wabbit*", "taciturn FTRL", at_least=1.2),
    "fastest Vowpal Wabbit / PIGD and its late average": Ratio("Vowpal Wabbit*", "taciturn PIGD, late average"),
    "river / taciturn for river": Ratio("river", "taciturn for river", at_least=0.4),
    "the same, predicting first": Ratio("river, predicting first", "taciturn for river, predicting first"),
    "the same, reading every release": Ratio("river, predicting first", "taciturn for river, reading every release"),
    "fastest scikit-learn / PIGD": Ratio("scikit-learn*", "taciturn PIGD"),
    "scikit-learn / taciturn for scikit-learn": Ratio("scikit-learn, by 1,000", "taciturn for scikit-learn"),
    "limit / PIGD": Ratio("limit", "taciturn PIGD"),
}


def clicks(n: int) -> Task:
    """Labels are signs of one feature plus noise; a tenth as many rows are held out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + n // 10, D)) / math.sqrt(D)
    y = np.where(X[:, 0] + 0.05 * rng.normal(size=len(X)) > 0.0, 1.0, -1.0)
    return Task(X[:n], y[:n], X[n:], y[n:])


# ---- taciturn -----------------------------------------------------------------------------------------------------


def streams(task: Task) -> dict[str, Contender]:
    """Its learners, and PIGD in parts."""
    n = len(task)
    problem = Problem(Logistic(), L2Ball(RADIUS), dimension=D, ridge=RIDGE)
    recipes = {"PIGD": pigd, "PGIGA": pgiga, "FTRL": pftrl}
    made = {f"taciturn {name}": recipe(problem, BUDGET, n) for name, recipe in recipes.items()}
    contenders = {name: Contender(learns(private, task), n, task.accuracy) for name, private in made.items()}
    stream = made["taciturn PIGD"]
    return contenders | {
        "taciturn PIGD, late average": Contender(learns_and_averages(stream, task), n, task.accuracy),
        "taciturn, PIGD's noise": Contender(noise_alone(stream, n), n),
        "taciturn, PIGD's steps": Contender(steps_alone(stream, task), n),
    }


def learns_and_averages(private: Private, task: Task) -> Callable[[], np.ndarray]:
    """Run a private stream, and return the late average of all its releases."""

    def work() -> Any:
        state = private.start()
        mean = None
        since = 0
        for X, y in task.chunks():
            state, releases = private.run(state, X, y)
            mean = late_average(releases, mean, since)
            since = int(releases.rounds[-1])
        return mean

    return work


def steps_alone(private: Private, task: Task) -> Callable[[], object]:
    """The same learner without noise or releases: examples are clipped, and every step is taken."""
    learner = private.learner
    clip, statistics = clipping_pass.clip_for(learner.problem), passes.statistics_of(learner)

    def work() -> object:
        exact = learner.start()
        every = np.arange(1, len(task) + 1)
        for start, (X, y) in zip(range(0, len(task), CHUNK), task.chunks(), strict=True):
            V, labels = clip.dense(X, y)
            exact, _ = statistics(exact, start, V, labels, every[start : start + CHUNK])
        return exact

    return work


def estimators(task: Task, few: Task) -> dict[str, Contender]:
    """The one for river gets fewer rows, as river does."""
    from taciturn.estimators import river, sklearn

    settings = {"epsilon": 1.0, "feature_bound": 1.0, "radius": RADIUS, "fit_intercept": False}
    settings |= {"method": "ftrl", "release": "every"}
    rows = few.dicts()
    labels = (few.y > 0.0).tolist()
    names = [str(j) for j in range(D)]

    def one_by_one(count: int, predicting: bool, release: str) -> Contender:
        def work() -> np.ndarray:
            chosen = settings | {"release": release}
            model = river.PrivateLogisticRegression(features=names, horizon=len(few), **chosen)
            for x, y in zip(rows[:count], labels, strict=False):
                if predicting:
                    model.predict_one(x)
                model.learn_one(x, y)
            return np.array(
                [model.weights[name] for name in names]
            )  # reading the weights learns from the last rows, too

        return Contender(work, count, few.accuracy)

    def by_thousands() -> np.ndarray:
        model = sklearn.PrivateLogisticRegression(horizon=len(task), **settings)
        for X, y in task.chunks(1_000):
            model.partial_fit(X, y, classes=[-1.0, 1.0])
        return np.array(model.coef_[0])

    return {
        "taciturn for river": one_by_one(len(few), predicting=False, release="every"),
        "taciturn for river, predicting first": one_by_one(len(few), predicting=True, release="auto"),
        "taciturn for river, reading every release": one_by_one(len(few) // 10, predicting=True, release="every"),
        "taciturn for scikit-learn": Contender(by_thousands, len(task), task.accuracy),
    }


# ---- peers -----------------------------------------------------------------------------------------------------


def vowpal_wabbit(task: Task, few: Task, folder: Path) -> dict[str, Contender]:
    """The accuracy of the command is that of a model that it saves in a run of its own."""
    from vowpalwabbit import Workspace

    data = folder / "data.txt"
    cache = folder / "data.cache"
    test = folder / "test.txt"
    model = folder / "model"
    lines = vowpal.lines(task.X, task.y)
    data.write_text("\n".join(lines) + "\n")
    test.write_text("\n".join(vowpal.lines(task.X_test, task.y_test)) + "\n")
    common = "--loss_function logistic --quiet --noconstant"
    Workspace(f"-d {data} --cache_file {cache} -k {common}").finish()
    single = Workspace(f"{common} --sgd")
    parsed = [single.parse(line) for line in lines[: len(few)]]
    parsed = [example[0] if isinstance(example, list) else example for example in parsed]

    def command(more: str) -> None:
        Workspace(f"-d {data} --cache_file {cache} {common} {more}").finish()

    def command_accuracy(more: str) -> float:
        command(f"{more} -f {model}")
        return vowpal.accuracy(model, test)

    def one_by_one() -> None:
        for example in parsed:
            single.learn(example)

    def single_accuracy(_: None) -> float:
        scores = [single.predict(line) for line in test.read_text().splitlines()]
        return float(np.mean(np.sign(scores) == task.y_test))

    return {
        "Vowpal Wabbit, plain": Contender(lambda: command("--sgd"), len(task), lambda _: command_accuracy("--sgd")),
        "Vowpal Wabbit, adaptive": Contender(lambda: command(""), len(task), lambda _: command_accuracy("")),
        "Vowpal Wabbit, pre-parsed": Contender(one_by_one, len(few), single_accuracy),
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
        x = np.zeros(task.d)
        t = 0
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
    """All contenders; slow ones get fewer rows."""
    task = clicks(n)
    few = task.first(n // 10)
    fewer = task.first(n // 100)
    peers = vowpal_wabbit(task, few, folder) | river(few) | scikit_learn(task, fewer) | limit(task)
    return streams(task) | estimators(task, few) | peers


def main() -> None:
    chosen = parse_options(__doc__, plain_memory=PLAIN_MEMORY)
    use_one_core(chosen.plain_memory)
    if chosen.quick:
        warnings.simplefilter("ignore", PrivacyWarning)  # the noise outweighs so few rows
    with tempfile.TemporaryDirectory() as folder:
        made = contenders(ROWS // 10 if chosen.quick else ROWS, Path(folder))
        run("logistic", made, RATIOS, chosen, unit="µs per example", packages=PACKAGES, score="accuracy")


if __name__ == "__main__":
    main()
