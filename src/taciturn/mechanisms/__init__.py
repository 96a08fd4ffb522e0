"""Mechanisms: they add noise to statistics of certified sensitivity, and know nothing of learners.

The names here are what a mechanism or a strategy of your own is made of (`docs/extending.md`).
"""

from taciturn.core.protocols import Calibrated
from taciturn.mechanisms.calibration import PrefixSum
from taciturn.mechanisms.lattice import OnLattice, calibrate_step, checked, ideal_mu, on_lattice
from taciturn.mechanisms.strategy import OneRowEach
from taciturn.noise.sampling import sampling_cost

__all__ = [
    "Calibrated",
    "OnLattice",
    "OneRowEach",
    "PrefixSum",
    "calibrate_step",
    "checked",
    "ideal_mu",
    "on_lattice",
    "sampling_cost",
]
