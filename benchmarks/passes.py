"""Compiled passes side by side with non-private peers: time an example, a release after every one.

Logistic loss with 54 features, and squared loss with 10 and 90. All contenders take turns in one process on one core;
times are of the processor, an example, medians of the repetitions. Streams come in chunks of 4,096 examples, and no
releases are kept beyond a chunk, as no peer keeps its models. tacit's noise is secret, on a lattice, from AES
(`tacit.mechanisms.sampling`).

For all contenders the process keeps the memory that it frees (glibc's MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_),
as fresh pages cost a microsecond each on a virtual machine. `--plain-memory` leaves that as it is.
"""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import argparse
import json
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.linalg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tacit import L2Ball, Logistic, Privacy, Private, Problem, Squared, geometric, pftrl, pgiga, pigd, pqftl

HERE, CHUNK, BUDGET = Path(__file__).parent, 4_096, Privacy(1.0, 1e-6)
KEEP = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**28))
Work = Callable[[], object]


def chunks(count: int) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, count, CHUNK)]


def learns(private: Private, X: np.ndarray, y: np.ndarray) -> Work:
    """A whole private stream."""

    def work() -> object:
        state = private.start()
        for rows in chunks(len(y)):
            state, releases = private.run(state, X[rows], y[rows])
        return releases[-1]

    return work


def noise_alone(private: Private, count: int) -> Work:
    """The noise of all releases, in the portions that a pass draws."""
    most = private._most_releases

    def work() -> None:
        for k in range(1, count + 1, most):
            private.calibrated.noise_for(None, k, min(most, count + 1 - k))

    return work


def steps_alone(private: Private, X: np.ndarray, y: np.ndarray) -> Work:
    """The same learner without noise or releases: examples are bounded, and every step is taken."""
    learner, most = private.learner, private._most_rows

    def work() -> object:
        exact, every = learner.start(), np.arange(1, len(y) + 1)
        for start in range(0, len(y), most):
            rows = slice(start, start + most)
            V, labels = learner.problem.legal(X[rows], y[rows], compiled=True)
            exact, _ = learner.hand_over_all(exact, start, V, labels, every[rows])
        return exact

    return work


# ---- peers -----------------------------------------------------------------------------------------------------


def vowpal_wabbit(X: np.ndarray, y: np.ndarray, folder: Path) -> dict[str, Work]:
    """Its command on a binary cache, adaptive and plain; and examples that were parsed before."""
    from vowpalwabbit import Workspace

    data, cache = folder / "data.txt", folder / "data.cache"
    lines = [f"{int(b)} | " + " ".join(f"{j}:{x:.6g}" for j, x in enumerate(v)) for v, b in zip(X, y, strict=True)]
    data.write_text("\n".join(lines) + "\n")
    usual = "--loss_function logistic --quiet --noconstant"
    Workspace(f"-d {data} --cache_file {cache} -k {usual}").finish()
    single = Workspace(f"{usual} --sgd")
    parsed = [single.parse(line) for line in lines[: len(lines) // 10]]
    parsed = [example[0] if isinstance(example, list) else example for example in parsed]

    def command(more: str) -> Work:
        return lambda: Workspace(f"-d {data} --cache_file {cache} {usual} {more}").finish()

    def one_by_one() -> None:
        for example in parsed:
            single.learn(example)

    return {"command, plain": command("--sgd"), "command, adaptive": command(""), "parsed before": one_by_one}


def river(X: np.ndarray, y: np.ndarray) -> Work:
    """`learn_one` of its logistic regression, on dicts made before."""
    from river import linear_model, optim

    rows = [dict(enumerate(map(float, v))) for v in X]
    labels = [bool(b > 0) for b in y]

    def work() -> object:
        model = linear_model.LogisticRegression(optim.SGD(0.1), intercept_lr=0.0)
        for v, b in zip(rows, labels, strict=True):
            model.learn_one(v, b)
        return model

    return work


def follow_the_leader(X: np.ndarray, y: np.ndarray) -> Work:
    """Not private: sums in NumPy, and a Cholesky solve of SciPy's after every example."""
    d = X.shape[1]

    def work() -> object:
        V, u, eye = np.zeros((d, d)), np.zeros(d), np.eye(d)
        for t in range(len(y)):
            V += np.outer(X[t], X[t])
            u += y[t] * X[t]
            x = scipy.linalg.cho_solve(scipy.linalg.cho_factor(V + (t + 1.0) * eye), u)
        return x

    return work


def accumulation(X: np.ndarray, y: np.ndarray) -> Work:
    """Not private: the same sums in NumPy, a block at a time, solved where the others release."""
    ends = [t for t in (geometric(1.1).round_of(k) for k in range(1, 500)) if t and t < len(y)] + [len(y)]
    d = X.shape[1]

    def work() -> object:
        V, u, start = np.zeros((d, d)), np.zeros(d), 0
        for end in ends:
            V += X[start:end].T @ X[start:end]
            u += X[start:end].T @ y[start:end]
            x = scipy.linalg.cho_solve(scipy.linalg.cho_factor(V + end * np.eye(d)), u)
            start = end
        return x

    return work


# ---- the run ---------------------------------------------------------------------------------------------------


def contenders(scale: float, folder: Path) -> dict[str, tuple[Work, int]]:
    """Everyone, and how many examples one round of work has."""
    rng, n = np.random.default_rng(0), int(200_000 * scale)
    X = rng.normal(size=(n, 54)) / math.sqrt(54)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    clicks = Problem(Logistic(), L2Ball(2.0), dimension=54, ridge=0.01)
    made = {name: recipe(clicks, BUDGET, n) for name, recipe in (("PIGD", pigd), ("PGIGA", pgiga), ("FTRL", pftrl))}
    work: dict[str, tuple[Work, int]] = {f"tacit {name}": (learns(p, X, y), n) for name, p in made.items()}
    work["tacit, PIGD's noise alone"] = noise_alone(made["PIGD"], n), n
    work["tacit, PIGD's steps alone"] = steps_alone(made["PIGD"], X, y), n
    for name, peer in vowpal_wabbit(X, y, folder).items():
        work[f"Vowpal Wabbit, {name}"] = peer, n // 10 if name == "parsed before" else n
    few = n // 20
    work["river learn_one"] = river(X[:few], y[:few]), few
    for d, count in ((10, int(50_000 * scale)), (90, int(5_000 * scale))):
        F = rng.normal(size=(count, d)) / math.sqrt(d)
        b = np.clip(F @ rng.normal(size=d) / 3.0, -1.0, 1.0)
        ridge = Problem(Squared(), L2Ball(0.5), dimension=d, label_bound=1.0, ridge=1.0)
        work[f"tacit PQFTL, d={d}"] = learns(pqftl(ridge, BUDGET, count), F, b), count
        work[f"NumPy leader, d={d}"] = follow_the_leader(F, b), count
    F = rng.normal(size=(int(515_345 * scale), 90)) / math.sqrt(90)  # as many as YearPredictionMSD has
    b = np.clip(F @ rng.normal(size=90) / 3.0, -1.0, 1.0)
    rare = pqftl(ridge, BUDGET, len(b), schedule=geometric(1.1))
    work["tacit PQFTL, d=90, geometric"] = learns(rare, F, b), len(b)
    work["NumPy sums, d=90, geometric"] = accumulation(F, b), len(b)
    return work


RATIOS = {
    "PIGD / (its noise + its steps)": ("tacit PIGD", ("tacit, PIGD's noise alone", "tacit, PIGD's steps alone"), "≤ 2"),
    "fastest Vowpal Wabbit / PIGD": ("Vowpal Wabbit", ("tacit PIGD",), "≥ 2.5"),
    "river / PIGD": ("river learn_one", ("tacit PIGD",), "≥ 15"),
    "fastest Vowpal Wabbit / FTRL": ("Vowpal Wabbit", ("tacit FTRL",), "≥ 1.2"),
    "NumPy leader / PQFTL, d=10": ("NumPy leader, d=10", ("tacit PQFTL, d=10",), "≥ 2.5"),
    "NumPy leader / PQFTL, d=90": ("NumPy leader, d=90", ("tacit PQFTL, d=90",), "≥ 0.45"),
    "NumPy sums / PQFTL, d=90, geometric": (
        "NumPy sums, d=90, geometric",
        ("tacit PQFTL, d=90, geometric",),
        "≥ 0.8",
    ),
}


def measured(work: dict[str, tuple[Work, int]], repetitions: int, console: Console) -> dict[str, list[float]]:
    """Seconds an example, of everyone in turns, the first round not counted."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in track(range(repetitions + 1), "taking turns", console=console):
        for name, (do, count) in work.items():
            start = time.process_time()
            do()
            if turn:
                times[name].append((time.process_time() - start) / count)
    return times


def ratios(times: dict[str, list[float]]) -> dict[str, list[float]]:
    """Of each repetition: the first over the sum of the others."""
    fastest = min((name for name in times if name.startswith("Vowpal")), key=lambda name: np.median(times[name]))
    table = times | {"Vowpal Wabbit": times[fastest]}
    return {
        name: list(np.array(table[one]) / np.sum([table[other] for other in others], axis=0))
        for name, (one, others, _) in RATIOS.items()
    }


def show(times: dict[str, list[float]], console: Console) -> None:
    table = Table("contender", "µs an example", "from", "to")
    for name, found in times.items():
        table.add_row(name, *(f"{1e6 * x:.3g}" for x in (np.median(found), min(found), max(found))))
    quotients = Table("ratio", "median", "from", "to", "wanted")
    for name, found in ratios(times).items():
        quotients.add_row(name, *(f"{x:.2f}" for x in (np.median(found), min(found), max(found))), RATIOS[name][2])
    console.print(table, quotients)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the examples, three turns")
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--plain-memory", action="store_true", help="let freed memory go, as processes usually do")
    options = arguments.parse_args()
    if not options.plain_memory and not KEEP.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEP)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    console = Console(stderr=options.json)
    with tempfile.TemporaryDirectory() as folder:
        times = measured(contenders(0.1 if options.quick else 1.0, Path(folder)), 3 if options.quick else 7, console)
    versions = {name: version(name) for name in ("tacit", "numpy", "scipy", "numba", "vowpalwabbit", "river")}
    record = {"python": platform.python_version(), "versions": versions, "seconds": times, "ratios": ratios(times)}
    if options.json:
        print(json.dumps(record, indent=1))
    else:
        show(times, console)
    target = HERE / ("out" if options.quick else "results") / "passes.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(record, indent=1) + "\n")
    console.print(f"Saved {target.relative_to(HERE.parent)}.")


if __name__ == "__main__":
    main()
