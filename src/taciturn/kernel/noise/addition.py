"""Where noise is added: to what a mechanism has encoded, as integers.

Compiled loops do the same for a few entries at a time, by `taciturn.kernel.mechanisms.lattice_loops.noisy_steps`.
"""

from __future__ import annotations

from taciturn.kernel.arrays import Integers


def with_noise(encoded: Integers, noise: Integers) -> Integers:
    """Encoded statistics, noisy.

    >>> import numpy as np
    >>> with_noise(np.array([3, -1]), np.array([10, 20]))
    array([13, 19])
    """
    return encoded + noise
