"""The noise that a mechanism needs, as it states it; it is drawn here, from secret bits or from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.noise.sampling import lattice_gumbel, lattice_normal, secret_bits, seeded_bits


@dataclass(frozen=True, eq=False)
class NoiseNeeded:
    """Kind, shape and scale of integer noise.

    The scale of normal noise is its standard deviation in steps of the lattice, and broadcasts to the shape; Gumbel
    noise has that of `taciturn.kernel.noise.sampling.lattice_gumbel`, and none is stated.
    """

    kind: Literal["normal", "gumbel"]
    shape: tuple[int, ...]
    scale: float | NDArray[np.float64] = 0.0


def drawn(needed: NoiseNeeded, seed: int | None, block: int) -> NDArray[np.int64]:
    """The noise that is needed, secret; or, from a seed, that of one block of a simulation, which is the same again.

    >>> drawn(NoiseNeeded("normal", (2, 3), 2.0**30), None, 0).shape
    (2, 3)
    """
    bits = secret_bits() if seed is None else seeded_bits(seed, block)
    if needed.kind == "gumbel":
        return lattice_gumbel(needed.shape, bits)
    return lattice_normal(needed.scale, needed.shape, bits)
