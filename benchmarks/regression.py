"""Squared loss, 10 and 90 features, a release after every example or at rounds that grow by a tenth: PQFTL and peers.

CPU time per example, all contenders in turns on one core, and the mean squared error of the final model on held-out
rows: the best possible is 0.01, and a model of zeros has 0.12. PQFTL's streams come in chunks of 4,096 rows, and its
releases are not stored; its noise is secret, on a lattice, from AES. No peer is private.

A model after every example, 100,000 rows:

- *NumPy leader*: the same sums, and SciPy's Cholesky solve (`cho_factor`, `cho_solve`, without validation).
- *LAPACK leader*: the same by one call of `dposv`, and `dsyr` for the sums: the least work that solves each time.
- *NumPy recursive*: the inverse by Sherman and Morrison's update of rank one, on half a matrix (`dsymv`, `dsyr`).
- *river*: `BayesianLinearRegression.learn_one`, from dicts that were made before. It computes its mean when it is read,
  which happens at the end only. 20,000 rows.
- *scikit-learn SGD*: `SGDRegressor.partial_fit`, by example. 2,000 rows.

A model at rounds that grow by a tenth; 100,000 rows of 10 features, and 515,345 of 90, as YearPredictionMSD has:

- *NumPy sums*: a product of matrices for each block, and a Cholesky solve.
- *scikit-learn Ridge*: fitted to all rows so far at each of the rounds, as it stores no sums.

For all contenders the process keeps the memory that it frees (glibc's MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_),
as fresh pages cost a microsecond each on a virtual machine. `--plain-memory` turns that off.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, lapack

from runner import PLAIN_MEMORY, Contender, Ratio, parse_options, run, use_one_core
from streams import BUDGET, Task, learns
from taciturn import L2Ball, Problem, Squared, geometric, pqftl

PACKAGES = ("numpy", "scipy", "numba", "cryptography", "river", "scikit-learn")
Work = Callable[[], np.ndarray]


def all_ratios() -> dict[str, Ratio]:
    """All peers over PQFTL at the same dimension and rounds; some have a target."""
    each = ("NumPy leader", "LAPACK leader", "NumPy recursive", "river", "scikit-learn SGD")
    rare = ("NumPy sums", "scikit-learn Ridge")
    targets = {"NumPy leader, d=10": 2.5, "NumPy leader, d=90": 0.45, "NumPy sums, d=90, geometric": 0.8}
    settings = [(name, f"d={d}") for d in (10, 90) for name in each]
    settings += [(name, f"d={d}, geometric") for d in (10, 90) for name in rare]
    return {
        f"{name} / PQFTL, {setting}": Ratio(
            f"{name}, {setting}", f"taciturn PQFTL, {setting}", at_least=targets.get(f"{name}, {setting}")
        )
        for name, setting in settings
    }


def numbers(n: int, d: int) -> Task:
    """Labels are linear in rows of norm about 1, plus noise of standard deviation 0.1; a fifth as many are held out."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n + n // 5, d)) / math.sqrt(d)
    w = rng.normal(size=d)
    y = np.clip(X @ w * math.sqrt(d) / (3.0 * np.linalg.norm(w)) + 0.1 * rng.normal(size=len(X)), -1.0, 1.0)
    return Task(X[:n], y[:n], X[n:], y[n:])


def rare_rounds(n: int) -> list[int]:
    """Rounds that grow by a tenth, and the last."""
    schedule = geometric(1.1)
    rounds = []
    k = 1
    while (t := schedule.round_of(k)) is not None and t < n:
        rounds.append(t)
        k += 1
    return [*rounds, n]


def private(task: Task, rare: bool = False) -> Contender:
    """PQFTL in a ball of radius 5, five times the label bound over the feature bound, as in the estimators."""
    problem = Problem(Squared(), L2Ball(5.0), dimension=task.d, label_bound=1.0)
    made = pqftl(problem, BUDGET, len(task), schedule=geometric(1.1) if rare else None)
    return Contender(learns(made, task), len(task), task.squared_error)


# ---- a model after every example: the leader of all so far, with a ridge of 1 in all -----------------------------


def leader(task: Task) -> Work:
    """Sums, and a solve."""

    def work() -> np.ndarray:
        V = np.eye(task.d, order="F")
        u = np.zeros(task.d)
        for v, b in zip(task.X, task.y, strict=True):
            V = blas.dger(1.0, v, v, a=V, overwrite_a=True)
            u += b * v
            x = cho_solve(cho_factor(V, check_finite=False), u, check_finite=False)
        return x

    return work


def lapack_leader(task: Task) -> Work:
    """The same on the upper half of the matrix, in two calls."""

    def work() -> np.ndarray:
        V = np.eye(task.d, order="F")
        u = np.zeros(task.d)
        for v, b in zip(task.X, task.y, strict=True):
            V = blas.dsyr(1.0, v, a=V, overwrite_a=True)
            u += b * v
            _, x, _ = lapack.dposv(V, u)
        return x

    return work


def recursive(task: Task) -> Work:
    """`P ← P - P·v·vᵀ·P/(1 + vᵀ·P·v)`, and the model by its error."""

    def work() -> np.ndarray:
        P = np.eye(task.d, order="F")
        x = np.zeros(task.d)
        for v, b in zip(task.X, task.y, strict=True):
            Pv = blas.dsymv(1.0, P, v)
            share = 1.0 / (1.0 + v @ Pv)
            x += (share * (b - v @ x)) * Pv
            P = blas.dsyr(-share, Pv, a=P, overwrite_a=True)
        return x

    return work


def river(task: Task) -> Work:
    """Its weights are its predictions of unit vectors."""
    from river import linear_model

    rows = task.dicts()
    labels = task.y.tolist()
    names = [str(j) for j in range(task.d)]

    def work() -> np.ndarray:
        model = linear_model.BayesianLinearRegression()
        for x, y in zip(rows, labels, strict=True):
            model.learn_one(x, y)
        return np.array([model.predict_one({name: 1.0}) for name in names])

    return work


def descent(task: Task) -> Work:
    """Steps of 1 at first, since features have norm 1."""
    from sklearn.linear_model import SGDRegressor

    def work() -> np.ndarray:
        model = SGDRegressor(alpha=0.0, fit_intercept=False, eta0=1.0)
        for X, y in task.chunks(1):
            model.partial_fit(X, y)
        return model.coef_

    return work


def after_every_example(task: Task) -> dict[str, Contender]:
    """PQFTL and peers; slow ones get fewer rows."""
    peers = {
        "NumPy leader": (leader, task),
        "LAPACK leader": (lapack_leader, task),
        "NumPy recursive": (recursive, task),
        "river": (river, task.first(len(task) // 5)),
        "scikit-learn SGD": (descent, task.first(len(task) // 50)),
    }
    made = {name: Contender(peer(rows), len(rows), rows.squared_error) for name, (peer, rows) in peers.items()}
    return {f"{name}, d={task.d}": one for name, one in ({"taciturn PQFTL": private(task)} | made).items()}


# ---- a model at rounds that grow by a tenth ----------------------------------------------------------------------


def sums(task: Task) -> Work:
    """A block at a time."""
    ends = rare_rounds(len(task))

    def work() -> np.ndarray:
        V = np.eye(task.d)
        u = np.zeros(task.d)
        start = 0
        for end in ends:
            X = task.X[start:end]
            V += X.T @ X
            u += X.T @ task.y[start:end]
            x = cho_solve(cho_factor(V, check_finite=False), u, check_finite=False)
            start = end
        return x

    return work


def refits(task: Task) -> Work:
    """From the beginning each time."""
    from sklearn.linear_model import Ridge

    ends = rare_rounds(len(task))

    def work() -> np.ndarray:
        for end in ends:
            model = Ridge(alpha=1.0, fit_intercept=False, solver="cholesky").fit(task.X[:end], task.y[:end])
        return model.coef_

    return work


def at_rare_rounds(task: Task) -> dict[str, Contender]:
    made = {"taciturn PQFTL": private(task, rare=True)}
    for name, peer in (("NumPy sums", sums), ("scikit-learn Ridge", refits)):
        made[name] = Contender(peer(task), len(task), task.squared_error)
    return {f"{name}, d={task.d}, geometric": one for name, one in made.items()}


# ---- the run -----------------------------------------------------------------------------------------------------


def contenders(scale: float) -> dict[str, Contender]:
    """All contenders, at both dimensions."""
    many = int(100_000 * scale)
    ten = numbers(many, 10)
    ninety = numbers(many, 90)
    years = numbers(int(515_345 * scale), 90)
    return after_every_example(ten) | after_every_example(ninety) | at_rare_rounds(ten) | at_rare_rounds(years)


def main() -> None:
    chosen = parse_options(__doc__, plain_memory=PLAIN_MEMORY)
    use_one_core(chosen.plain_memory)
    run(
        "regression",
        contenders(0.05 if chosen.quick else 1.0),
        all_ratios(),
        chosen,
        unit="µs per example",
        packages=PACKAGES,
        repetitions=5,
        score="squared error",
    )


if __name__ == "__main__":
    main()
