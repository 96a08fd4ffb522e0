"""taciturn: differentially private online learning.

It learns from a live stream of sensitive examples and publishes a model as it goes; the whole published sequence is
(epsilon, delta)-differentially private, and the software can show that it is.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from taciturn.loading import uncollected

__version__ = "0.1.0"

_HOME = {
    "Absolute": "problem.losses",
    "Anytime": "mechanisms.anytime",
    "BLT": "mechanisms.blt",
    "BinaryTree": "mechanisms.tree",
    "Box": "problem.sets",
    "BudgetExhausted": "errors",
    "Certificate": "contracts",
    "ConvexSet": "problem.sets",
    "Cost": "accounting.cost",
    "EWOO": "learners.weights",
    "Exponential": "mechanisms.exponential",
    "FTL": "learners.leader",
    "FTRL": "learners.ftrl",
    "FadingIGD": "learners.fading",
    "GIGA": "learners.giga",
    "Gaussian": "mechanisms.gaussian",
    "Guarantee": "accounting.guarantee",
    "HalfSpace": "problem.sets",
    "Hinge": "problem.losses",
    "Huber": "problem.losses",
    "IGD": "learners.igd",
    "InvalidInput": "errors",
    "L1Ball": "problem.sets",
    "L2Ball": "problem.sets",
    "Learner": "contracts",
    "Ledger": "accounting.ledger",
    "Linear": "problem.losses",
    "Logistic": "problem.losses",
    "Mechanism": "contracts",
    "MultiHinge": "problem.scores",
    "ObjectivePerturbation": "perturbation",
    "OneHot": "problem.scores",
    "Privacy": "accounting.exact",
    "Private": "core",
    "Problem": "problem.problem",
    "QFTL": "learners.qftl",
    "Quantile": "problem.losses",
    "Release": "release",
    "Releases": "release",
    "ScalarLoss": "problem.scalar",
    "Schedule": "schedule",
    "Simplex": "problem.sets",
    "Softmax": "problem.scores",
    "SquareRoot": "mechanisms.toeplitz",
    "Squared": "problem.losses",
    "State": "state",
    "StateConflict": "errors",
    "TaciturnError": "errors",
    "Unprovable": "errors",
    "VectorLoss": "problem.vector",
    "WholeSpace": "problem.sets",
    "at": "schedule",
    "averaged": "learners.averaged",
    "every": "schedule",
    "ewoo": "algorithms",
    "experts": "learners.experts",
    "geometric": "schedule",
    "grid": "problem.nets",
    "output_perturbation": "algorithms",
    "pftrl": "algorithms",
    "pgiga": "algorithms",
    "pigd": "algorithms",
    "pocp": "algorithms",
    "pol": "algorithms",
    "pqftl": "algorithms",
    "private_sum": "algorithms",
}

_MODULES = ("audit", "averages", "checks", "datasets", "plan", "regret")

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULES:
        return _module(name)
    if name not in _HOME:
        raise AttributeError(f"module 'taciturn' has no attribute {name!r}")
    return getattr(_module(_HOME[name]), name)


def _module(name: str) -> Any:
    path = f"taciturn.{name}"
    with contextlib.nullcontext() if path in sys.modules else uncollected():
        return importlib.import_module(path)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
