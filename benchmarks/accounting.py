"""From a budget to noise, and from noise to a budget: times and answers of taciturn and dp-accounting.

All releases are Gaussian, and delta is 1e-6. *Calibrating* computes the noise multiplier (standard deviation over
sensitivity) of one release, or of 1,000 equal ones, for an epsilon; *reading* computes the epsilon of a composition:
one release, 1,000 equal ones, and 20 different ones. Contenders:

* taciturn: `noise_multiplier` and `Cost.epsilon`, in closed form, rounded to the safe side.
* PLD: `calibrate_dp_mechanism` with `PLDAccountant` as it comes: losses in steps of 1e-4, noise to 1e-6. *Own start*
  searches from 0 to 1 and upwards, which at 1,000 releases takes half a minute, so it is left out there. *Bracketed* is
  its fastest configuration: it searches between half of RDP's answer, computed first, and RDP's answer, since RDP is
  never below the truth and less than twice it. The ratio is to the faster.
* RDP: the same with `RdpAccountant` and its own orders. Its answer is more noise than needed.
* closed form: dp-accounting's `get_sigma_gaussian`, which is for one release; its caller must know that equal releases,
  or Gaussian ones of any size, compose to one.

No contender has a cache, and every calculation but the first has an epsilon of its own. The true epsilon of each noise
is computed by the formula of Balle and Wang (2018, Theorem 8) in 50 digits, by neither package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import dp_accounting as peer
import mpmath
import numpy as np
from rich.console import Console
from rich.table import Table

from runner import Contender, Ratio, Turns, environment, parse_options, save, tables, take_turns, use_one_core
from streams import DELTA
from taciturn import Privacy
from taciturn.kernel.accounting.cost import gaussian, total
from taciturn.kernel.accounting.gdp import noise_multiplier

EPSILONS = (0.1, 1.0, 10.0)
RELEASES = (1, 1000)
MANY = 100
"""Calculations per turn of closed forms, taciturn's and dp-accounting's; the others do one per turn."""
TOLERANCE = 2e-6
"""PLD's noise is within 1e-6 of its root, rounded to the safe side; the other 1e-6 is for its steps."""
Accountant = Callable[[], peer.PrivacyAccountant]


def fresh(start: float) -> Iterator[float]:
    """That number, then numbers close to it, all different."""
    return (start * (1.0 + 1e-7 * i) for i in count())


# ---- from a budget to noise ------------------------------------------------------------------------------------


def calibrated(account: Accountant, epsilon: float, releases: int, bracket: Any = None) -> float:
    """The noise multiplier of dp-accounting."""

    def event(noise: float) -> peer.DpEvent:
        return peer.SelfComposedDpEvent(peer.GaussianDpEvent(noise), releases)

    return float(peer.calibrate_dp_mechanism(account, event, epsilon, DELTA, bracket))


def bracketed(epsilon: float, releases: int) -> float:
    """PLD's noise, searched between half of RDP's and RDP's."""
    most = calibrated(peer.rdp.RdpAccountant, epsilon, releases)
    return calibrated(peer.pld.PLDAccountant, epsilon, releases, peer.ExplicitBracketInterval(most / 2.0, most))


def calibrations(epsilon: float, releases: int) -> dict[str, Contender]:
    """Contenders that compute noise for that budget."""
    ways: dict[str, Callable[[float], float]] = {
        "taciturn": lambda e: noise_multiplier(Privacy(e, DELTA), releases),
        "PLD, own start": lambda e: calibrated(peer.pld.PLDAccountant, e, releases),
        "PLD, bracketed": lambda e: bracketed(e, releases),
        "RDP": lambda e: calibrated(peer.rdp.RdpAccountant, e, releases),
        "closed form": lambda e: peer.get_sigma_gaussian(e, DELTA) * math.sqrt(releases),
    }
    if releases > 1:
        del ways["PLD, own start"]
    return {f"{titled(epsilon, releases)}: {name}": contender(name, way, epsilon) for name, way in ways.items()}


def contender(name: str, way: Callable[[float], float], start: float) -> Contender:
    """A contender with new numbers for every calculation; its score is its first answer."""
    numbers = fresh(start)
    times = MANY if name in ("taciturn", "closed form") else 1
    return Contender(lambda: [way(next(numbers)) for _ in range(times)], times, score=lambda answers: float(answers[0]))


def titled(epsilon: float, releases: int) -> str:
    return f"epsilon {epsilon:g}, {releases:,} release{'s' if releases > 1 else ''}"


# ---- from noise to a budget ------------------------------------------------------------------------------------


def readings() -> dict[str, Contender]:
    """Contenders that compute the epsilon of one release, of equal ones, and of different ones."""
    one = noise_multiplier(Privacy(1.0, DELTA), 1)
    different = one * math.sqrt(20.0) * np.geomspace(0.5, 2.0, 20)
    compositions = {"1 release": [(one, 1)], "1,000 releases": [(one * math.sqrt(1000.0), 1000)]}
    compositions["20 different releases"] = [(float(noise), 1) for noise in different]
    return {
        f"reading {title}: {name}": contender(name, lambda more, way=way, noises=noises: way(noises, more), 1.0)
        for title, noises in compositions.items()
        for name, way in READERS.items()
    }


def by_taciturn(noises: list[tuple[float, int]], more: float) -> float:
    return total(gaussian((more * noise) ** -2, times) for noise, times in noises).epsilon(DELTA)


def by_peer(account: Accountant, noises: list[tuple[float, int]], more: float) -> float:
    accountant = account()
    for noise, times in noises:
        accountant.compose(peer.GaussianDpEvent(more * noise), times)
    return float(accountant.get_epsilon(DELTA))


def by_closed_form(noises: list[tuple[float, int]], more: float) -> float:
    squared_mu = sum(times * (more * noise) ** -2 for noise, times in noises)
    return float(peer.get_epsilon_gaussian(1.0 / math.sqrt(squared_mu), DELTA))


READERS: dict[str, Callable[[list[tuple[float, int]], float], float]] = {
    "taciturn": by_taciturn,
    "PLD": lambda noises, more: by_peer(peer.pld.PLDAccountant, noises, more),
    "RDP": lambda noises, more: by_peer(peer.rdp.RdpAccountant, noises, more),
    "closed form": by_closed_form,
}


# ---- answers ---------------------------------------------------------------------------------------------------


def true_epsilon(noise: float, releases: int) -> float:
    """The epsilon of so many releases with that noise at `DELTA`, in 50 digits."""
    with mpmath.workdps(50):
        mu = mpmath.sqrt(releases) / mpmath.mpf(noise)

        def excess(e: mpmath.mpf) -> mpmath.mpf:
            spent = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            return mpmath.log(spent / DELTA)

        return float(mpmath.findroot(excess, (mu, 8 * mu + mu * mu), solver="anderson", tol=1e-30))


def answers(scores: dict[str, float]) -> list[dict[str, Any]]:
    """For each calibration: the noise, relative to taciturn's, and its true epsilon."""
    rows = []
    for epsilon in EPSILONS:
        for releases in RELEASES:
            title = titled(epsilon, releases)
            for name in (each for each in scores if each.startswith(f"{title}: ")):
                noise, ours = scores[name], scores[f"{title}: taciturn"]
                rows.append(
                    {
                        "contender": name,
                        "noise": noise,
                        "excess": noise / ours - 1.0,
                        "true epsilon": true_epsilon(noise, releases),
                        "same": abs(noise - ours) <= TOLERANCE + 1e-9 * ours,
                    }
                )
    return rows


def all_ratios() -> dict[str, Ratio]:
    """Times of the peers over taciturn's; the target is that PLD takes a thousand times as long."""
    titles = [titled(epsilon, releases) for epsilon in EPSILONS for releases in RELEASES]
    ratios = {
        f"PLD / taciturn, {title}": Ratio(f"{title}: PLD*", f"{title}: taciturn", at_least=1000.0) for title in titles
    }
    for title in (*titles, "reading 1 release", "reading 1,000 releases", "reading 20 different releases"):
        for name in ("PLD", "RDP", "closed form"):
            plain = Ratio(f"{title}: {name}", f"{title}: taciturn")
            ratios |= {} if f"{name} / taciturn, {title}" in ratios else {f"{name} / taciturn, {title}": plain}
    return ratios


def judged(turns: Turns, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The ratios; a target is met only if PLD has the same answer."""
    same = {row["contender"]: row["same"] for row in rows}
    ratios = turns.ratios(all_ratios())
    for name, result in ratios.items():
        title = name.partition(", ")[2]
        if result["target"]:
            result["met"] = result["met"] and all(same[each] for each in same if each.startswith(f"{title}: PLD"))
    return ratios


def table(rows: list[dict[str, Any]]) -> Table:
    """The answers."""
    made = Table("calibrated", "noise", "excess over taciturn", "true epsilon", "same")
    for row in rows:
        numbers = f"{row['noise']:.9g}", f"{100.0 * row['excess']:.2g} %", f"{row['true epsilon']:.9g}"
        made.add_row(row["contender"], *numbers, "yes" if row["same"] else "no")
    return made


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    console = Console(stderr=chosen.json)
    contenders = {k: v for e in EPSILONS for n in RELEASES for k, v in calibrations(e, n).items()} | readings()
    turns = take_turns(contenders, 1 if chosen.quick else 7, console)
    rows = answers(turns.scores)
    ratios = judged(turns, rows)
    record = environment("taciturn", "dp-accounting", "numpy", "scipy") | {
        "unit": "CPU seconds per calculation",
        "seconds": turns.seconds,
        "answer": turns.scores,
        "answers": rows,
        "ratios": ratios,
    }
    times = tables(turns, ratios, "µs per calculation", "answer")
    save("accounting", record, chosen, console, *times, table(rows))


if __name__ == "__main__":
    main()
