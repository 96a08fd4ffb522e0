"""Releases of one statistic: encoded, with noise, decoded."""

from __future__ import annotations

from collections.abc import Callable

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.noise.addition import with_noise
from taciturn.kernel.noise.needed import NoiseNeeded, drawn
from taciturn.kernel.stream.protocols import Calibrated

Release = tuple[Arrays, Arrays, Array, float]
"""The new secret and public memories, the noisy statistic, and the standard deviation of its noise."""


def privatize(
    calibrated: Calibrated, secret: Arrays, public: Arrays, statistic: Array, k: int, noise: Integers
) -> Release:
    """Release k of a statistic: encoded, with noise, decoded."""
    secret, encoded = calibrated.encode(secret, statistic, k)
    public, noisy, sd = calibrated.decode(public, with_noise(encoded, noise), k)
    return secret, public, noisy, sd


def of_a_tilted_minimiser(
    minimise: Callable[[Integers], Array], tilt: NoiseNeeded, output: Calibrated, seed: int | None
) -> tuple[Array, float]:
    """The only release of a method that minimises under a random linear term: noisy point, and standard deviation.

    The linear term is drawn here, and handed to `minimise` in units of its lattice. To the minimiser is added the noise
    of `output`.
    """
    linear = drawn(tilt, seed, -1)
    (noise,) = output.noise(seed, 1, 1)
    _, _, noisy, sd = privatize(output, {}, {}, minimise(linear), 1, noise)
    return noisy, sd
