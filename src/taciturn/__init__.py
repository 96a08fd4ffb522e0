"""taciturn: differentially private online learning.

It learns from a live stream of sensitive examples and publishes a model as it goes. The published sequence of models,
not only each model, is (epsilon, delta)-differentially private.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0.dev0"

# The list of public names, and the module below `taciturn` that defines each. It is the only one: `__all__` is derived
# from it, and tests compare the stub `__init__.pyi`, the reference and the documentation with it.
_HOME = {
    "Absolute": "problem.losses",
    "BLT": "mechanisms.calibration",
    "BinaryTree": "mechanisms.calibration",
    "BlockSums": "core.block_sums",
    "Box": "problem.sets",
    "BudgetExhausted": "errors",
    "Certificate": "core.protocols",
    "Chain": "problem.features",
    "ClassSums": "learners.class_sums",
    "ConvexSet": "problem.sets",
    "Cost": "accounting.cost",
    "DecayedBLT": "mechanisms.calibration",
    "EWOO": "learners.ewoo",
    "EntryLearner": "core.contributions",
    "Example": "accounting.unit",
    "Exponential": "mechanisms.exponential",
    "FTL": "learners.ftl",
    "FTRL": "learners.ftrl",
    "FadingIGD": "learners.igd",
    "FeatureMap": "problem.features",
    "GIGA": "learners.giga",
    "Gaussian": "mechanisms.calibration",
    "Guarantee": "accounting.guarantee",
    "HalfSpace": "problem.sets",
    "Hinge": "problem.losses",
    "Huber": "problem.losses",
    "IGD": "learners.igd",
    "Index": "core.contributions",
    "InvalidInput": "errors",
    "L1Ball": "problem.sets",
    "L2Ball": "problem.sets",
    "Learner": "core.protocols",
    "Ledger": "accounting.ledger",
    "Linear": "problem.losses",
    "LinearBandit": "learners.linear_bandit",
    "Logistic": "problem.losses",
    "Mechanism": "core.protocols",
    "MultiHinge": "problem.multiclass",
    "NonNegative": "core.contributions",
    "ObjectivePerturbation": "algorithms.objective_perturbation",
    "OneHot": "problem.multiclass",
    "Privacy": "accounting.gdp",
    "Private": "core.private",
    "Problem": "problem.problem",
    "QFTL": "learners.qftl",
    "Quantile": "problem.losses",
    "RandomFeatures": "problem.random_features",
    "Release": "core.release",
    "Releases": "core.release",
    "ScalarLoss": "problem.scalar_loss",
    "Schedule": "core.schedule",
    "Simplex": "problem.sets",
    "Softmax": "problem.multiclass",
    "Square": "core.contributions",
    "SquareRoot": "mechanisms.calibration",
    "Squared": "problem.losses",
    "State": "core.state",
    "StateConflict": "errors",
    "StoreUnavailable": "errors",
    "TaciturnError": "errors",
    "Unprovable": "errors",
    "Unverified": "core.contributions",
    "User": "accounting.unit",
    "Vector": "core.contributions",
    "VectorLoss": "problem.vector_loss",
    "WholeSpace": "problem.sets",
    "at": "core.schedule",
    "averaged": "learners.averaged",
    "block_statistics": "core.loop",
    "class_sums": "algorithms.recipes",
    "every": "core.schedule",
    "ewoo": "algorithms.recipes",
    "experts": "learners.ewoo",
    "geometric": "core.schedule",
    "grid": "problem.nets",
    "linear_bandit": "algorithms.recipes",
    "output_perturbation": "algorithms.recipes",
    "pftrl": "algorithms.recipes",
    "pgiga": "algorithms.recipes",
    "pigd": "algorithms.recipes",
    "pocp": "algorithms.recipes",
    "pol": "algorithms.recipes",
    "pqftl": "algorithms.recipes",
    "private_sum": "algorithms.recipes",
}

# Public modules, used by their name: `taciturn.plan.recommend`.
_MODULES = ("audit", "averages", "bandits", "checks", "datasets", "drift", "mechanisms", "memories", "plan", "regret")

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULES:
        return _module(name)
    if name not in _HOME:
        raise AttributeError(f"module 'taciturn' has no attribute {name!r}")
    return getattr(_module(_HOME[name]), name)


def _module(name: str) -> Any:
    return importlib.import_module(f"taciturn.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
