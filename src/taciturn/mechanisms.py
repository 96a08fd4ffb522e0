"""Parts of a mechanism or a strategy of your own (`docs/extending.md`).

Mechanisms add noise to statistics of certified sensitivity, and know nothing of learners.
"""

from taciturn.calibration.mechanisms import PrefixSum
from taciturn.kernel.mechanisms.lattice import OnLattice, calibrate_step, checked, ideal_mu, on_lattice
from taciturn.kernel.mechanisms.strategy import OneRowEach
from taciturn.kernel.noise.sampling import sampling_cost
from taciturn.kernel.stream.protocols import Calibrated

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
