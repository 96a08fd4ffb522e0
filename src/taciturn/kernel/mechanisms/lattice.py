"""Rounding statistics to a lattice of integers, and what that costs.

A statistic is rounded to multiples of a power of two `g` and integer noise is added. Rounding moves each of the two
neighbouring statistics by at most `g/2` an entry, so the sensitivity S grows by `sqrt(size)·g`; that is what is
charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.accounting.gdp import SMALLEST, Privacy, mu_of
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.errors import InvalidInput, Unprovable
from taciturn.kernel.mechanisms.release_noise import NoiseByRelease
from taciturn.kernel.noise.needed import NoiseNeeded
from taciturn.kernel.noise.sampling import LARGEST_SCALE, SMALLEST_SCALE
from taciturn.kernel.stream.batch_pass import Noisy
from taciturn.kernel.stream.protocols import damaged

TRIES = 8
"""Most attempts at a lattice step, each for the noise that the one before needs."""

NO_LATTICE = (
    "the budget is too small for this many releases: no lattice is coarse enough for the noise. "
    "Publish less often, or take a larger epsilon."
)
_FINE = 2.0**-20  # rounding may add this share to the sensitivity


class OnLattice(NoiseByRelease):
    """Rounding to a lattice, integer noise, and back; the step of release k comes from the subclass."""

    def __init__(self, size: int, count: float, magnitude: float, claimed: Privacy) -> None:
        super().__init__(size, count, claimed)
        self.magnitude = magnitude

    def levels(self, k: int) -> tuple[float, float]:
        """Standard deviation of the noise and lattice step of release k."""
        raise NotImplementedError

    def levels_of(self, k: int, count: int) -> tuple[Array, Array]:
        """Standard deviations and lattice steps of `count` releases, from the k-th on."""
        sd, step = np.array([self.levels(j) for j in range(k, k + count)]).T
        return sd, step.copy()

    def noise_sd(self, k: int) -> float:
        """Standard deviation of the noise of release k."""
        return self.levels(k)[0]

    def encode(self, secret: Arrays, statistic: Array, k: int) -> tuple[Arrays, Integers]:
        """The lattice point nearest to the statistic, clipped to its certified magnitude."""
        clipped = np.clip(np.nan_to_num(statistic), -self.magnitude, self.magnitude)
        return secret, np.floor(clipped / self.levels(k)[1] + 0.5).astype(np.int64)

    def noise_needed(self, releases: range) -> NoiseNeeded:
        """Integer noise with the standard deviation of each release."""
        sd, step = self.levels_of(releases.start, len(releases))
        return NoiseNeeded("normal", (len(releases), self.size), (sd / step)[:, None])

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """Integers times the step, which is a power of two."""
        sd, step = self.levels(k)
        return public, np.asarray(noisy * step, dtype=np.float64), sd


def shifts(moved: Array, sd: Array) -> Array:
    """Sensitivity of each release over the standard deviation of its noise."""
    return moved / np.where(moved > 0.0, sd, 1.0)


def calibrate_step(
    spread: Callable[[Array], Array], sensitivity: Array, size: float, magnitude: float
) -> tuple[Array, Array]:
    """Standard deviations and lattice steps that fit each other: a step adds to the sensitivity, and so to the noise.

    `spread` gives the standard deviations that sensitivities need.

    >>> sd, step = calibrate_step(lambda S: 4.0 * S, np.ones(2), size=3, magnitude=1.0)
    >>> sd.round(4), np.log2(step)
    (array([4., 4.]), array([-24., -24.]))
    """
    sd = spread(sensitivity)
    for _ in range(TRIES):
        step = lattice_step(sensitivity, sd, size, magnitude)
        sd = spread(on_lattice(sensitivity, step, size))
        if (sd <= LARGEST_SCALE * step).all():
            return sd, step
    raise InvalidInput(NO_LATTICE)


def on_lattice(sensitivity: Array, step: Array, size: float) -> Array:
    """Sensitivity of the rounded statistic; rounding adds nothing where no example moves the statistic.

    >>> on_lattice(np.array([1.0, 0.0]), np.array([0.25, 0.25]), size=4)
    array([1.5, 0. ])
    """
    return np.where(sensitivity > 0.0, sensitivity + math.sqrt(size) * step, 0.0)


def checked(sensitivity: Array, magnitude: float) -> Array:
    """The bounds of a certificate, validated: finite and not negative.

    >>> checked(np.array([1.0, 0.5]), magnitude=1.0)
    array([1. , 0.5])
    """
    if not (np.isfinite(sensitivity).all() and (sensitivity >= 0.0).all() and math.isfinite(magnitude)):
        raise Unprovable(
            "the certificate is not a finite bound, so no noise is enough. Bound the domain, or the loss's slope."
        )
    return sensitivity


def lattice_step(sensitivity: Array, sd: Array, size: float, magnitude: float) -> Array:
    """A power of two that costs little, keeps `sd/step` in the sampler's range and every integer below 2⁵¹."""
    if (sd[sensitivity > 0.0] <= 0.0).any():
        raise InvalidInput("the noise must be positive wherever an example can move the statistic.")
    fine = np.where(sensitivity > 0.0, sensitivity * _FINE / math.sqrt(size), magnitude * _FINE)
    silent = sd == 0.0
    least = np.where(silent, 0.0, np.maximum(4.0 * sd / LARGEST_SCALE, magnitude * 2.0**-49))
    most = np.where(silent, math.inf, 0.5 * sd / SMALLEST_SCALE)
    step = 2.0 ** np.floor(np.log2(np.clip(fine, least, most)))
    if (step * 2.0**51 < magnitude).any() or (step == 0.0).any():
        raise InvalidInput(
            f"entries may be as large as {magnitude:.3g}, which is more than 2^51 lattice steps of {step.min():.3g}. "
            "Bound the domain more tightly."
        )
    return np.asarray(step, dtype=np.float64)


def check_steps(step: Array, sd: Array, magnitude: float) -> Array:
    """Lattice steps out of a state, validated: powers of two that fit the noise and the statistics."""
    powers_of_two = np.frexp(step)[0] == 0.5
    scales = (sd / step)[sd > 0.0]
    if not (powers_of_two.all() and (scales >= SMALLEST_SCALE).all() and (scales <= LARGEST_SCALE).all()):
        raise damaged("a lattice step should be a power of two that fits its noise")
    if (step * 2.0**51 < magnitude).any():
        raise damaged("a lattice step is too small for the statistics")
    return step


def ideal_mu(privacy: Privacy, sampling: Cost) -> float:
    """The mu that is left for ideal noise once the sampler's own cost is paid.

    >>> round(ideal_mu(Privacy(1.0, 1e-6), Cost(extra_epsilon=1e-6, extra_delta=1e-12)), 5)
    0.2367
    """
    epsilon = privacy.epsilon - sampling.extra_epsilon
    delta = (privacy.delta - sampling.extra_delta) * math.exp(-sampling.extra_epsilon / 2.0)
    if epsilon <= 0.0 or delta <= SMALLEST:
        own = f"its rounding alone costs epsilon = {sampling.extra_epsilon:.2g}, delta = {sampling.extra_delta:.2g}"
        if epsilon <= 0.0:
            raise InvalidInput(
                f"epsilon = {privacy.epsilon:g} is smaller than the sampler of the noise can deliver: {own}. Take a "
                "larger epsilon, or publish less often."
            )
        if sampling.extra_delta >= 1e-9:  # the noise is small beside the lattice that it is drawn on
            raise InvalidInput(
                f"epsilon = {privacy.epsilon:g} is larger than the sampler of the noise can serve: so little noise "
                "cannot be drawn with a proof. Take a smaller epsilon: 10 already protects little."
            )
        raise InvalidInput(
            f"delta = {privacy.delta:g} is smaller than the sampler of the noise can deliver: {own}. Take a larger "
            "delta, such as 1e-9, or publish less often."
        )
    return mu_of(epsilon, delta)


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Independent Gaussian noise on a lattice. Slow twin: `OnLattice`."""

    calibrated: OnLattice

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """A row for each release."""
        return self.calibrated.noise(seed, k, count)

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """In one compiled loop."""
        from taciturn.kernel.mechanisms import lattice_loops as lattice

        sd, step = self.calibrated.levels_of(k, len(statistics))
        return Noisy(secret, public, lattice.add_noise_batch(statistics, step, self.calibrated.magnitude, noise), sd)
