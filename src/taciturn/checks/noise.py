"""Checks of a mechanism's noise: it is there, fresh, as large as stated, and as large as what it hides requires.

Deviations are measured on 50 seeds of rows of 48 entries, 2,400 numbers for each encoded row; a variance is then known
to `sqrt(2/2400)`, 2.9 %. A true mechanism, on fresh seeds, would be off by `FAR` = 6.2 of those with probability below
3e-9 an encoded row (the tails of chi square), and there are fewer than a hundred.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn._util.arrays import Array
from taciturn.checks.hiding import Hiding
from taciturn.checks.suite import demand, skip

FAR = 6.2


def secret_noise_is_fresh(hiding: Hiding) -> None:
    """The same releases asked for twice get other noise, every one of them, and none gets no noise.

    Noise is spread over more than 2²⁰ integers: a row of it is 0, or the same again, with probability below 2⁻¹⁰⁰.
    """
    one, other = hiding.noise(None), hiding.noise(None)
    for k, (a, b) in enumerate(zip(one, other, strict=True), start=1):
        drawn = all(np.any(row) for row in np.atleast_2d(a))
        demand(drawn, f"release {k} gets no noise", "Draw noise for every row that is encoded.")
        demand(
            not np.array_equal(a, b), f"release {k} gets the same noise again", "Draw from secret bits, never twice."
        )


def releases_share_no_noise(hiding: Hiding) -> None:
    """No row of noise is used for two releases: their difference would show the data."""
    rows = np.concatenate([np.atleast_2d(drawn) for drawn in hiding.noise(None)])
    demand(len(np.unique(rows, axis=0)) == len(rows), "two encoded rows get the same noise", "Draw anew for each.")


def seeded_noise_does_not_depend_on_the_cut(hiding: Hiding) -> None:
    """A seed gives release k the same noise whichever calls ask for it, and another seed other noise."""
    whole, other, n = hiding.noise(5), hiding.noise(6), hiding.releases
    for k, count in ((1, 1), (2, 3), (5, n - 4), (3, 2), (n, 1)):
        part = list(hiding.calibrated.noise(5, k, count))
        alike = all(np.array_equal(a, b) for a, b in zip(part, whole[k - 1 : k - 1 + count], strict=True))
        demand(alike, f"releases {k} to {k + count - 1} get other noise by themselves", "Number draws by release.")
    alike = any(np.array_equal(a, b) for a, b in zip(whole, other, strict=True))
    demand(not alike, "two seeds give the same noise", "Let the seed reach the sampler.")


def noise_is_as_large_as_stated(hiding: Hiding) -> None:
    """The deviation of the decoded noise is `noise_sd`, which every release says of itself."""
    if hiding.certificate.metric == "range":
        skip("only the winner of a race is shown")
    nothing = hiding.encoded(np.zeros_like(hiding.rows))
    decoded = np.array([hiding.decoded(_sum(nothing, drawn)) for drawn in hiding.seeded])
    stated = np.array([hiding.calibrated.noise_sd(k) for k in range(1, hiding.releases + 1)])
    ratio = np.mean(decoded**2, axis=(0, 2)) / stated**2
    k = int(np.argmax(np.abs(ratio - 1.0)))
    fault = f"the noise of release {k + 1} has {math.sqrt(ratio[k]):.3g} of the deviation that it states"
    demand(
        abs(ratio[k] - 1.0) <= FAR * math.sqrt(2.0 / decoded[:, 0].size), fault, "State the deviation of decoded noise."
    )


def noise_is_enough(hiding: Hiding) -> str:
    """Two streams as far apart as certified are told apart no better than the stated cost says.

    With D the neighbour's shift of the encoded integers and s the deviation of their noise, `Σ D²/s²` is mu², exactly
    what telling them apart yields; for a race, the log-ratio of the winners' chances has a range of `eta`.
    """
    return _race_is_enough(hiding) if hiding.certificate.metric == "range" else _gaussian_is_enough(hiding)


def _gaussian_is_enough(hiding: Hiding) -> str:
    drawn = np.array([_stacked(noise) for noise in hiding.seeded], dtype=np.float64)
    variance = np.mean(drawn**2, axis=(0, 2))
    here, worst = _stacked(hiding.encoded(hiding.rows)).astype(np.float64), 0.0
    for changed in (0, hiding.releases // 2, hiding.releases - 1):
        shift = np.sum((_stacked(hiding.encoded(hiding.neighbour(changed))) - here) ** 2, axis=1)
        shown = np.where(shift > 0.0, shift / np.maximum(variance, np.finfo(float).tiny), 0.0)
        worst = max(worst, float(np.sum(shown)))
    charged = hiding.calibrated.cost(hiding.releases).mu_squared
    fault = f"two streams as far apart as certified are told apart with mu = {math.sqrt(worst):.4g}, and charged are "
    fault += f"mu = {math.sqrt(charged):.4g}"
    give, used = FAR * math.sqrt(2.0 / drawn[:, 0].size), math.sqrt(worst / charged)
    demand(worst * (1.0 - give) <= charged, fault, "Scale the noise to all the encoded rows that one example moves.")
    return f"the worst pair tried uses {used:.0%} of the charged mu, give or take {give / 2.0:.0%}"


def _race_is_enough(hiding: Hiding) -> str:
    """Every other candidate has lost ground in the neighbour: the log-odds that one of them wins fall by eta at most.

    Odds are counted over many races in both worlds, each release by itself and all together; with counts of wins and
    losses c in the two, the difference of log-odds is known to `sqrt(Σ 1/c)`.
    """
    charged = np.array([_charged(hiding, k) for k in range(1, hiding.releases + 1)])
    wins = [_wins(hiding, rows, hiding.seeded) + 1.0 for rows in (hiding.rows, hiding.neighbour())]
    losses = [len(hiding.seeded) + 2.0 - won for won in wins]
    moved = np.log(wins[0] / losses[0]) - np.log(wins[1] / losses[1])
    unsure = FAR * np.sqrt(sum(1.0 / count for count in (*wins, *losses)))
    k = int(np.argmax((moved - unsure) / charged))
    fault = f"the log-odds of release {k + 1} fall by {moved[k]:.3g}, and charged are {charged[k]:.3g}"
    demand(moved[k] - unsure[k] <= charged[k], fault, "Slow the race down.")
    fault = f"the log-odds of all releases fall by {np.sum(moved):.4g}, and charged are {np.sum(charged):.4g}"
    demand(np.sum(moved) - np.linalg.norm(unsure) <= np.sum(charged), fault, "Slow the race down.")
    give = float(np.linalg.norm(unsure)) / np.sum(charged)
    return f"the pair tried uses {np.sum(moved) / np.sum(charged):.0%} of the charged ranges, give or take {give:.0%}"


def _charged(hiding: Hiding, k: int) -> float:
    """The range that release k is charged for: of eta it costs `eta²/8` of zCDP, or eta."""
    before, after = hiding.calibrated.cost(k - 1), hiding.calibrated.cost(k)
    return max(math.sqrt(8.0 * (after.rho - before.rho)), after.plain_epsilon - before.plain_epsilon)


def _wins(hiding: Hiding, rows: Array, noise: list[list[np.ndarray]]) -> Array:
    """How often the winner of each release is one of every other candidate."""
    encoded = hiding.encoded(rows)
    winners = np.array([hiding.decoded(_sum(encoded, drawn))[:, 0] for drawn in noise])
    return np.asarray(np.sum(winners % 2 == 0, axis=0, dtype=np.float64))


def _sum(encoded: list[np.ndarray], noise: list[np.ndarray]) -> list[np.ndarray]:
    return [a + b for a, b in zip(encoded, noise, strict=True)]


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    """All encoded rows of a stream, one below the other."""
    return np.concatenate([np.atleast_2d(part) for part in rows])


CHECKS = (
    secret_noise_is_fresh,
    releases_share_no_noise,
    seeded_noise_does_not_depend_on_the_cut,
    noise_is_as_large_as_stated,
    noise_is_enough,
)
