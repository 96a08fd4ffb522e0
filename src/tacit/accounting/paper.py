"""The noise of Algorithms 1-3 of the paper, read in its two ways.

Jain, Kothari, Thakurta, *Differentially Private Online Learning*. For an algorithm with `S(t) ≤ lam/t`, POCP adds
noise of deviation `beta/t`,

    beta = lam·T^(0.5+c)·sqrt((2/epsilon)·(ln(T/delta) + sqrt(epsilon)/T^(0.5+c))),

and claims (3·epsilon, 2·delta). The two readings differ in `c`:

* `"printed"`: the pseudo-code, `c = ln(1/2)·ln(2/delta)/(2 ln T)`, which is negative;
* `"proven"`: the proof, `c = ln(½·ln(2/delta))/(2 ln T)`, that is `T^c = sqrt(½·ln(2/delta))`.

Neither is what this package uses by itself; both can be asked for, and what they deliver is computed exactly.
"""

from __future__ import annotations

import math
from typing import Literal

from tacit.accounting.cost import Cost, gaussian
from tacit.accounting.exact import Privacy
from tacit.errors import InvalidInput

Reading = Literal["printed", "proven"]


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
    if horizon < 1:
        raise InvalidInput(f"horizon must be at least 1 round, got {horizon}.")
    growth = math.sqrt(horizon) * _t_to_the_c(privacy.delta, reading)
    spread = math.log(horizon / privacy.delta) + math.sqrt(privacy.epsilon) / growth
    return growth * math.sqrt(2.0 / privacy.epsilon * spread)


def delivered(privacy: Privacy, horizon: int, reading: Reading) -> Cost:
    """What `horizon` releases of POCP really cost, if the sensitivity `lam` is right.

    >>> round(delivered(Privacy(1.0, 1e-6), 100_000, "proven").epsilon(2e-6), 3)
    0.189
    """
    return gaussian(noise_multiplier(privacy, horizon, reading) ** -2, horizon)


def _t_to_the_c(delta: float, reading: Reading) -> float:
    log_two_over_delta = math.log(2.0 / delta)
    if reading == "printed":
        return math.exp(0.5 * math.log(0.5) * log_two_over_delta)
    return math.sqrt(0.5 * log_two_over_delta)
