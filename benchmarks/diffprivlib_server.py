"""The server of `diffprivlib_client.py`, in diffprivlib's environment: functions called by name, with lines of JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import diffprivlib
import numpy as np
import sklearn
from diffprivlib.mechanisms import GaussianAnalytic, GaussianDiscrete
from diffprivlib.models import LogisticRegression


def clock() -> float:
    """CPU seconds so far."""
    return time.process_time()


def versions() -> dict[str, str]:
    """Versions of diffprivlib and of its scikit-learn."""
    return {"diffprivlib": diffprivlib.__version__, "scikit-learn for diffprivlib": sklearn.__version__}


BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1}
ANALYTIC = GaussianAnalytic(**BUDGET)
DISCRETE = GaussianDiscrete(**BUDGET)


def gaussian(count: int) -> float:
    """Draw that many values, one per call, as its mechanisms require; calibration is not counted."""
    return float(sum(ANALYTIC.randomise(0.0) for _ in range(count)))


def discrete_gaussian(count: int) -> int:
    """The same on integers, with its sampler of discrete Gaussians; standard deviation 4.2 (a larger one is slower)."""
    return int(sum(DISCRETE.randomise(0) for _ in range(count)))


ROWS: dict[str, Any] = {}
"""The rows that were loaded last: X and y to fit, X_test and y_test to score."""


def load(path: str) -> None:
    """Load the rows of that file."""
    with np.load(path) as arrays:
        ROWS.update(arrays)


def logistic_regression(epsilon: float, C: float, intercept: bool, seed: int) -> dict[str, float]:
    """One fit to the rows, whose norm is at most 1: accuracy on held-out rows, CPU seconds, and steps."""
    model = LogisticRegression(
        epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=intercept, max_iter=1000, tol=1e-5, random_state=seed
    )
    start = time.process_time()
    model.fit(ROWS["X"], ROWS["y"])
    spent = time.process_time() - start
    accuracy = float(model.score(ROWS["X_test"], ROWS["y_test"]))
    return {"accuracy": accuracy, "seconds": spent, "steps": float(model.n_iter_[0])}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (clock, versions, gaussian, discrete_gaussian, load, logistic_regression)
}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for line in sys.stdin:
        name, arguments = json.loads(line)
        sys.stdout.write(json.dumps(FUNCTIONS[name](**arguments)) + "\n")
        sys.stdout.flush()
