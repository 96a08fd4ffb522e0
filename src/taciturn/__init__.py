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
    "Absolute": "kernel.problem.losses",
    "BLT": "calibration.mechanisms",
    "BinaryTree": "calibration.mechanisms",
    "BlockSums": "kernel.stream.block_sums",
    "Box": "kernel.problem.sets",
    "BudgetExhausted": "errors",
    "Certificate": "kernel.stream.protocols",
    "Chain": "kernel.problem.features",
    "ClassSums": "kernel.learners.class_sums",
    "ConvexSet": "kernel.problem.sets",
    "Cost": "kernel.accounting.cost",
    "DecayedBLT": "calibration.mechanisms",
    "EWOO": "methods.ewoo",
    "EntryLearner": "kernel.learners.contributions",
    "Example": "kernel.accounting.unit",
    "Exponential": "methods.exponential",
    "FTL": "methods.ftl",
    "FTRL": "kernel.learners.ftrl",
    "FadingIGD": "kernel.learners.igd",
    "FeatureMap": "kernel.problem.features",
    "GIGA": "methods.giga",
    "Gaussian": "calibration.mechanisms",
    "Guarantee": "kernel.accounting.guarantee",
    "HalfSpace": "kernel.problem.sets",
    "Hinge": "kernel.problem.losses",
    "Huber": "kernel.problem.losses",
    "IGD": "kernel.learners.igd",
    "Index": "kernel.learners.contributions",
    "InvalidInput": "errors",
    "L1Ball": "kernel.problem.sets",
    "L2Ball": "kernel.problem.sets",
    "Learner": "kernel.stream.protocols",
    "Ledger": "accounting.ledger",
    "Linear": "kernel.problem.losses",
    "LinearBandit": "kernel.learners.linear_bandit",
    "Logistic": "kernel.problem.losses",
    "Mechanism": "kernel.stream.protocols",
    "MultiHinge": "kernel.problem.multiclass",
    "NonNegative": "kernel.learners.contributions",
    "ObjectivePerturbation": "methods.objective_perturbation",
    "OneHot": "kernel.problem.multiclass",
    "Privacy": "kernel.accounting.gdp",
    "Private": "core.private",
    "Problem": "kernel.problem.problem",
    "QFTL": "kernel.learners.qftl",
    "Quantile": "kernel.problem.losses",
    "RandomFeatures": "tables.random_features",
    "Release": "kernel.stream.release",
    "Releases": "kernel.stream.release",
    "RowWise": "kernel.problem.row_wise",
    "ScalarLoss": "kernel.problem.scalar_loss",
    "Schedule": "kernel.stream.schedule",
    "Simplex": "kernel.problem.sets",
    "Softmax": "kernel.problem.multiclass",
    "Square": "kernel.learners.contributions",
    "SquareRoot": "calibration.mechanisms",
    "Squared": "kernel.problem.losses",
    "State": "kernel.stream.state",
    "StateConflict": "errors",
    "StoreUnavailable": "errors",
    "TaciturnError": "errors",
    "Unprovable": "errors",
    "Unverified": "kernel.learners.contributions",
    "User": "kernel.accounting.unit",
    "Vector": "kernel.learners.contributions",
    "VectorLoss": "kernel.problem.vector_loss",
    "WholeSpace": "kernel.problem.sets",
    "at": "kernel.stream.schedule",
    "averaged": "methods.averaged",
    "block_statistics": "kernel.stream.loop",
    "class_sums": "methods.recipes",
    "every": "kernel.stream.schedule",
    "ewoo": "methods.recipes",
    "experts": "methods.ewoo",
    "geometric": "kernel.stream.schedule",
    "grid": "methods.nets",
    "linear_bandit": "methods.recipes",
    "output_perturbation": "methods.recipes",
    "pftrl": "methods.recipes",
    "pgiga": "methods.recipes",
    "pigd": "methods.recipes",
    "pocp": "methods.recipes",
    "pol": "methods.recipes",
    "pqftl": "methods.recipes",
    "private_sum": "methods.recipes",
}

# Public modules, used by their name: `taciturn.plan.recommend`.
_MODULES = (
    "audit",
    "averages",
    "bandits",
    "checks",
    "datasets",
    "drift",
    "mechanisms",
    "memories",
    "plan",
    "regret",
)

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
