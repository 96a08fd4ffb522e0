"""Runs in diffprivlib's environment, and only there: functions that `apart.py` calls by name, a line of JSON each."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import diffprivlib
import sklearn
from diffprivlib.mechanisms import GaussianAnalytic, GaussianDiscrete


def clock() -> float:
    """Seconds of the processor so far."""
    return time.process_time()


def versions() -> dict[str, str]:
    """Of what matters here."""
    return {"diffprivlib": diffprivlib.__version__, "scikit-learn for diffprivlib": sklearn.__version__}


BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1}
ANALYTIC, DISCRETE = GaussianAnalytic(**BUDGET), GaussianDiscrete(**BUDGET)


def gaussian(count: int) -> float:
    """That many values, one at a time, as its mechanisms are called; to plan the noise is not counted."""
    return float(sum(ANALYTIC.randomise(0.0) for _ in range(count)))


def discrete_gaussian(count: int) -> int:
    """The same on integers, from its sampler of discrete Gaussians; of deviation 4: a larger one takes longer."""
    return int(sum(DISCRETE.randomise(0) for _ in range(count)))


ORDERS: dict[str, Callable[..., Any]] = {each.__name__: each for each in (clock, versions, gaussian, discrete_gaussian)}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for line in sys.stdin:
        name, arguments = json.loads(line)
        sys.stdout.write(json.dumps(ORDERS[name](**arguments)) + "\n")
        sys.stdout.flush()
