"""The noise of the paper's algorithms, read in its two ways.

Jain, Kothari, Thakurta, *Differentially Private Online Learning*. For an algorithm with `S(t) ≤ lam/t`, POCP adds
noise of standard deviation `beta/t`,

    beta = lam·T^(0.5+c)·sqrt((2/epsilon)·(ln(T/delta) + sqrt(epsilon)/T^(0.5+c))),

and claims (3·epsilon, 2·delta). The two readings differ in `c`:

* `"printed"`: the pseudo-code, `c = ln(1/2)·ln(2/delta)/(2 ln T)`, which is negative;
* `"proven"`: the proof, `c = ln(½·ln(2/delta))/(2 ln T)`, that is `T^c = sqrt(½·ln(2/delta))`.

Algorithms 4-6 have no `c`: their two readings agree, and they claim (epsilon, delta). Logarithms are to base 2 in
Algorithm 5, whose tree is binary, and natural elsewhere.

Neither is a default of this package; both can be chosen, and what they deliver is computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from taciturn.kernel.accounting.cost import Cost, gaussian
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput, integer, not_negative, one_of
from taciturn.kernel.stream.protocols import Certificate

Reading = Literal["printed", "proven"]
PaperNoise = Callable[[Privacy, int, Array, Reading], tuple[Array, Privacy]]
"""From parameters, horizon, published rounds and reading: the standard deviation at each round, and the claim."""


@dataclass(frozen=True)
class PaperCertificate(Certificate):
    """A certificate with the noise that the paper states for its learner, whatever that delivers."""

    paper: PaperNoise | None = field(default=None, compare=False)

    @classmethod
    def of(cls, certificate: Certificate, paper: PaperNoise) -> PaperCertificate:
        """A learner's certificate, with this noise."""
        return cls(**{each.name: getattr(certificate, each.name) for each in fields(Certificate)}, paper=paper)


def claim(privacy: Privacy) -> Privacy:
    """What the privacy theorems of Algorithms 1-3 claim for parameters (epsilon, delta).

    >>> claim(Privacy(1.0, 1e-6))
    Privacy(epsilon=3.0, delta=2e-06)
    """
    if privacy.delta >= 0.5:
        raise InvalidInput(f"the paper claims 2·delta, and delta is {privacy.delta}. State a delta below 0.5.")
    return Privacy(3.0 * privacy.epsilon, 2.0 * privacy.delta)


def parameters_claiming(privacy: Privacy) -> Privacy:
    """The paper's parameters for which its theorems claim `privacy`.

    >>> parameters_claiming(Privacy(3.0, 2e-6))
    Privacy(epsilon=1.0, delta=1e-06)
    """
    return Privacy(privacy.epsilon / 3.0, privacy.delta / 2.0)


def noise_multiplier(privacy: Privacy, horizon: int, reading: Reading) -> float:
    """`beta/lam`: POCP's noise at every round, as a multiple of the sensitivity `lam/t`.

    >>> round(noise_multiplier(Privacy(1.0, 1e-6), 100_000, "proven"))
    6062
    >>> round(noise_multiplier(Privacy(1.0, 1e-6), 100_000, "printed"), 1)
    14.9
    """
    horizon = integer("horizon", horizon)
    one_of("reading", reading, get_args(Reading))
    growth = math.sqrt(horizon) * _t_to_the_c(privacy.delta, reading)
    spread = math.log(horizon / privacy.delta) + math.sqrt(privacy.epsilon) / growth
    return growth * math.sqrt(2.0 / privacy.epsilon * spread)


def pocp_noise(lam: float, privacy: Privacy, horizon: int, rounds: Array, reading: Reading) -> tuple[Array, Privacy]:
    """Algorithms 1-3: standard deviations `beta/t` for a sensitivity `lam/t`, and the claim.

    >>> import numpy as np
    >>> sd, claimed = pocp_noise(2.0, Privacy(1.0, 1e-6), 100_000, np.array([1.0, 1e5]), "proven")
    >>> round(float(sd[1]), 4), claimed.epsilon
    (0.1212, 3.0)
    """
    return not_negative("lam", lam) * noise_multiplier(privacy, horizon, reading) / rounds, claim(privacy)


def pol_noise(lipschitz: float, privacy: Privacy, horizon: int) -> float:
    """The standard deviation of Algorithm 6's noise, which claims (epsilon, delta).

    `beta = 2·sqrt(2)·L'·ln T/(T·epsilon)·sqrt(ln(1/delta) + epsilon)`, L' the Lipschitz constant with the ridge.

    >>> round(pol_noise(1.0, Privacy(1.0, 1e-6), 100_000), 6)
    0.001253
    """
    lipschitz = not_negative("lipschitz", lipschitz)
    horizon = integer("horizon", horizon)
    spread = math.sqrt(math.log(1.0 / privacy.delta) + privacy.epsilon)
    return 2.0 * math.sqrt(2.0) * lipschitz * math.log(horizon) / (horizon * privacy.epsilon) * spread


def tree_noise(bound: float, privacy: Privacy, horizon: int) -> float:
    """Algorithm 5: `sigma² = R²/epsilon·log²T·log(log T/delta)` on every node; claims (epsilon, delta).

    >>> round(tree_noise(1.0, Privacy(1.0, 1e-6), 100_000), 1)
    81.3
    """
    bound = not_negative("bound", bound)
    horizon = integer("horizon", horizon)
    if horizon < 2:
        raise InvalidInput(f"Algorithm 5 adds no noise for a horizon of {horizon}: log T is 0. State 2 rounds or more.")
    levels = math.log2(horizon)
    return bound * levels * math.sqrt(math.log2(levels / privacy.delta) / privacy.epsilon)


def pqftl_noise(bound: float, privacy: Privacy, horizon: int) -> tuple[float, float]:
    """Algorithm 4: standard deviations on every node of its trees of `Σ v vᵀ` and of `Σ y v`; claims (epsilon, delta).

    Each is Algorithm 5 with (epsilon/2, delta/2) and the bounds `R²` and `R`, R the largest ‖v‖ and |y|. (An entry of
    `y v` is bounded by `R²` too, so the second is right for R = 1 at best.)

    >>> [round(sd) for sd in pqftl_noise(2.0, Privacy(1.0, 1e-6), 100_000)]
    [470, 235]
    """
    bound = not_negative("bound", bound)
    half = Privacy(privacy.epsilon / 2.0, privacy.delta / 2.0)
    return tree_noise(bound**2, half, horizon), tree_noise(bound, half, horizon)


def delivered(privacy: Privacy, horizon: int, reading: Reading) -> Cost:
    """The exact cost of `horizon` releases of POCP, if the sensitivity `lam` is right.

    >>> round(delivered(Privacy(1.0, 1e-6), 100_000, "proven").epsilon(2e-6), 3)
    0.189
    """
    return gaussian(noise_multiplier(privacy, horizon, reading) ** -2, horizon)


def _t_to_the_c(delta: float, reading: Reading) -> float:
    log_two_over_delta = math.log(2.0 / delta)
    if reading == "printed":
        return math.exp(0.5 * math.log(0.5) * log_two_over_delta)
    return math.sqrt(0.5 * log_two_over_delta)
