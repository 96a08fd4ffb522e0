"""The privacy that the paper's constants deliver, next to what its theorems claim.

Jain, Kothari, Thakurta, *Differentially Private Online Learning*, Algorithms 1-6, with the noise of
`calibration.paper` and the sensitivity that is true; `docs/errata.md` has the proofs. The worst case is taken: linear
losses of opposite slope use the paper's Lipschitz constant L (or G, or R) to the full, so it cancels. The T - 1 updates
of Algorithms 1-4 and 6 are counted as T. With `m` for `paper.noise_multiplier`:

* **POCP**: sensitivity `lam/t`, taken to be right; noise `lam·m/t`.
* **PIGD**: `2L/(alpha·(t+1))`, not `2L/t`; noise `2L·m/t`. One pair of streams reaches it at every t. (L contains the
  share of the ridge, which leaves real streams short of this mu, by 4 % at T = 1,000 and 0.4 % at 100,000.)
* **PGIGA**: an iterate moves by `4G/(alpha·t)`, not `2G/(alpha·t)`; noise `2G·m/t` as printed, `(2G/alpha)·m/t` by
  Lemma 5. No pair reaches that at every t: from round `kappa + 1` on the step `2/(alpha·s)` contracts by `1 - 2/s`, so
  an example that differs in round r moves round s by `4G·(r-1)/(alpha·s·(s-1))`. The worst r, near T/2, is taken: half
  the mu of the sensitivities. Rounds count from the 2nd (kappa = 1).
* **PQFTL**: trees with (epsilon/2, delta/2), bounds `R²` and `R`, at `R = R_y = 1`, as one release (`quadratic_pair`).
* **PrivateSum**: 2R on each of `floor(log2 T) + 1` nodes.
* **POL**: the mean of `x_2..x_{T+1}` moves by `2L·(H_{T+1} - 1)/(alpha·T)`, not `2L·ln T/T`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.special import digamma

from taciturn.calibration import paper
from taciturn.kernel.accounting.cost import gaussian
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.errors import integer, positive
from taciturn.kernel.learners.qftl import quadratic_pair

HORIZONS = (1_000, 100_000, 500_000)
EPSILONS = (0.01, 0.1, 1.0, 10.0, 20.0)
DELTAS = (1e-2, 1e-6)
ALPHAS = (1.0, 0.1, 0.01)
READINGS: tuple[paper.Reading, ...] = ("printed", "proven")

Case = tuple[str, paper.Reading, float | None, Privacy, float]


@dataclass(frozen=True)
class Erratum:
    """One algorithm with one set of parameters: what is claimed, and what its noise delivers.

    Attributes
    ----------
    algorithm, reading : str
        The paper's name, and how its constants are read (`calibration.paper`); Algorithms 4-6 are only `"printed"`.
    T, epsilon, delta : number
        The horizon and the paper's own parameters.
    alpha : float or None
        Strong convexity, where the outcome depends on it (Algorithms 2, 3 and 6).
    claimed_epsilon, claimed_delta : float
        What the paper's theorem says of everything published.
    delivered_mu, delivered_epsilon : float
        What is true: mu of the worst neighbouring streams, and its epsilon at the claimed delta.
    holds : bool
        Whether the theorem's claim is true.

    Examples
    --------
    >>> [row] = [r for r in table([100_000], [1.0], [1e-6], [0.01]) if (r.algorithm, r.reading) == ("PIGD", "proven")]
    >>> row.claimed_epsilon, round(row.delivered_epsilon, 1), row.holds
    (3.0, 36.9, False)
    """

    algorithm: str
    reading: paper.Reading
    T: int
    epsilon: float
    delta: float
    alpha: float | None
    claimed_epsilon: float
    claimed_delta: float
    delivered_mu: float
    delivered_epsilon: float
    holds: bool


def table(
    horizons: Sequence[int] = HORIZONS,
    epsilons: Sequence[float] = EPSILONS,
    deltas: Sequence[float] = DELTAS,
    alphas: Sequence[float] = ALPHAS,
) -> list[Erratum]:
    """A row for every algorithm, reading and strong convexity, at each horizon and each pair of the paper's parameters.

    >>> for row in table([100_000], [0.01], [1e-6], alphas=[]):
    ...     print(row.algorithm, row.reading, row.claimed_epsilon, f"{row.delivered_epsilon:.2g}", row.holds)
    POCP printed 0.03 12 False
    POCP proven 0.03 0.016 True
    PQFTL printed 0.01 0.025 False
    PrivateSum printed 0.01 0.034 False
    """
    horizons = [integer("T", T, least=2, of_many=True) for T in horizons]
    alphas = [positive("alpha", alpha, of_many=True) for alpha in alphas]
    settings = [(T, Privacy(epsilon, delta)) for T, epsilon, delta in product(horizons, epsilons, deltas)]
    return [_row(T, privacy, case) for T, privacy in settings for case in _cases(T, privacy, alphas)]


def _cases(T: int, privacy: Privacy, alphas: Sequence[float]) -> Iterator[Case]:
    """Algorithm, reading, strong convexity, claim and mu, in the paper's order."""
    claimed, noises = paper.claim(privacy), {r: paper.noise_multiplier(privacy, T, r) for r in READINGS}
    for reading in READINGS:
        yield "POCP", reading, None, claimed, paper.delivered(privacy, T, reading).mu
    for reading, alpha in product(READINGS, alphas):
        yield "PIGD", reading, alpha, claimed, _igd_reach(T) / (alpha * noises[reading])
    for reading, alpha in product(READINGS, alphas):
        lam = 2.0 if reading == "printed" else 2.0 / alpha
        yield "PGIGA", reading, alpha, claimed, 4.0 * _giga_reach(T) / (alpha * lam * noises[reading])
    nodes, halves = T.bit_length(), Privacy(privacy.epsilon / 2.0, privacy.delta / 2.0)
    joint = math.sqrt(nodes * quadratic_pair(1.0, 1.0)) / paper.tree_noise(1.0, halves, T)
    yield "PQFTL", "printed", None, privacy, joint
    yield "PrivateSum", "printed", None, privacy, 2.0 * math.sqrt(nodes) / paper.tree_noise(1.0, privacy, T)
    harmonic = float(digamma(T + 2.0)) + np.euler_gamma
    for alpha in alphas:
        moved = 2.0 * (harmonic - 1.0) / (alpha * T)
        yield "POL", "printed", alpha, privacy, moved / paper.pol_noise(1.0, privacy, T)


def _row(T: int, privacy: Privacy, case: Case) -> Erratum:
    algorithm, reading, alpha, claimed, mu = case
    cost = gaussian(mu**2)
    truth = mu, cost.epsilon(claimed.delta), cost.within(claimed)
    return Erratum(algorithm, reading, T, privacy.epsilon, privacy.delta, alpha, claimed.epsilon, claimed.delta, *truth)


@lru_cache
def _igd_reach(T: int) -> float:
    """`sqrt(Σ (t/(t+1))²)`: an example that differs in the first round, where the noise decays like 1/t."""
    t = np.arange(1.0, T + 1.0)
    return float(np.linalg.norm(t / (t + 1.0)))


@lru_cache
def _giga_reach(T: int) -> float:
    """The largest `sqrt(Σ_{s≥r} ((r-1)/(s-1))²)` over rounds r = 2..T."""
    before = np.arange(1.0, T)
    tails = np.cumsum(before[::-1] ** -2.0)[::-1]
    return float(np.max(before * np.sqrt(tails)))
