"""From a budget to noise, and from noise to a budget: taciturn beside dp-accounting, time and answers.

All releases are Gaussian, and delta is 1e-6. *Calibrating* finds the noise multiplier (deviation over sensitivity) of
one release, or of 1,000 equal ones, for an epsilon; *reading* finds the epsilon of a composition: one release, 1,000
equal ones, and 20 different ones. Contenders:

* taciturn: `noise_multiplier` and `Cost.epsilon`, in closed form, rounded to the safe side.
* PLD: `calibrate_dp_mechanism` with `PLDAccountant` as it comes: losses in steps of 1e-4, noise to 1e-6. *Own start*
  searches from 0 to 1 and upwards, which at 1,000 releases takes half a minute, so that it is left out there.
  *Bracketed* is its fastest form: RDP's answer, found first, and half of it, are where it looks, as RDP is never below
  the truth and not twice it. The ratio is to the faster.
* RDP: the same with `RdpAccountant` and its own orders. It asks for more noise than is needed.
* closed form: dp-accounting's `get_sigma_gaussian`, which is for one release; that equal releases, or Gaussian ones of
  any size, are one is for its caller to know.

Nothing is found in a cache: no one keeps answers, and every calculation but the first has an epsilon of its own. The
true epsilon of each noise is from the formula of Balle and Wang (2018, Theorem 8) in 50 digits, by neither package.
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

import turns as harness
from taciturn import Privacy
from taciturn.accounting.cost import gaussian, total
from taciturn.accounting.gdp import noise_multiplier
from turns import Contender, Ratio, Turns

DELTA, EPSILONS, RELEASES = 1e-6, (0.1, 1.0, 10.0), (1, 1000)
MANY = 100
"""Calculations in a turn of closed forms, taciturn's and dp-accounting's; a turn of the others is one."""
TOLERANCE = 2e-6
"""PLD's noise is within 1e-6 of its root, on the safe side; the other 1e-6 is for its steps."""
Accountant = Callable[[], peer.PrivacyAccountant]


def fresh(start: float) -> Iterator[float]:
    """That number, then others next to it, no two alike."""
    return (start * (1.0 + 1e-7 * i) for i in count())


# ---- from a budget to noise ------------------------------------------------------------------------------------


def calibrated(account: Accountant, epsilon: float, releases: int, bracket: Any = None) -> float:
    """The noise multiplier that dp-accounting finds."""

    def event(noise: float) -> peer.DpEvent:
        return peer.SelfComposedDpEvent(peer.GaussianDpEvent(noise), releases)

    return float(peer.calibrate_dp_mechanism(account, event, epsilon, DELTA, bracket))


def bracketed(epsilon: float, releases: int) -> float:
    """PLD's noise, looked for between half of RDP's and RDP's."""
    most = calibrated(peer.rdp.RdpAccountant, epsilon, releases)
    return calibrated(peer.pld.PLDAccountant, epsilon, releases, peer.ExplicitBracketInterval(most / 2.0, most))


def calibrations(epsilon: float, releases: int) -> dict[str, Contender]:
    """Everyone who finds noise for that budget."""
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
    """One who calculates from numbers that are new each time, and is scored by the first answer."""
    numbers, times = fresh(start), MANY if name in ("taciturn", "closed form") else 1
    return Contender(lambda: [way(next(numbers)) for _ in range(times)], times, score=lambda found: float(found[0]))


def titled(epsilon: float, releases: int) -> str:
    return f"epsilon {epsilon:g}, {releases:,} release{'s' if releases > 1 else ''}"


# ---- from noise to a budget ------------------------------------------------------------------------------------


def readings() -> dict[str, Contender]:
    """Everyone who finds the epsilon of one release, of equal ones, and of different ones."""
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
    found = account()
    for noise, times in noises:
        found.compose(peer.GaussianDpEvent(more * noise), times)
    return float(found.get_epsilon(DELTA))


def by_closed_form(noises: list[tuple[float, int]], more: float) -> float:
    whole = sum(times * (more * noise) ** -2 for noise, times in noises)
    return float(peer.get_epsilon_gaussian(1.0 / math.sqrt(whole), DELTA))


READERS: dict[str, Callable[[list[tuple[float, int]], float], float]] = {
    "taciturn": by_taciturn,
    "PLD": lambda noises, more: by_peer(peer.pld.PLDAccountant, noises, more),
    "RDP": lambda noises, more: by_peer(peer.rdp.RdpAccountant, noises, more),
    "closed form": by_closed_form,
}


# ---- answers ---------------------------------------------------------------------------------------------------


def true_epsilon(noise: float, releases: int) -> float:
    """What so many releases with that noise cost at `DELTA`, in 50 digits."""
    with mpmath.workdps(50):
        mu = mpmath.sqrt(releases) / mpmath.mpf(noise)

        def excess(e: mpmath.mpf) -> mpmath.mpf:
            spent = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            return mpmath.log(spent / DELTA)

        return float(mpmath.findroot(excess, (mu, 8 * mu + mu * mu), solver="anderson", tol=1e-30))


def answers(scores: dict[str, float]) -> list[dict[str, Any]]:
    """For each calibration: the noise, beside taciturn's, and what it costs in truth."""
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
                        "more": noise / ours - 1.0,
                        "true epsilon": true_epsilon(noise, releases),
                        "same": abs(noise - ours) <= TOLERANCE + 1e-9 * ours,
                    }
                )
    return rows


def wanted() -> dict[str, Ratio]:
    """Who is compared with taciturn, and that PLD takes a thousand times as long."""
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
    """The ratios; none is met by another answer than PLD's."""
    same = {row["contender"]: row["same"] for row in rows}
    ratios = turns.ratios(wanted())
    for name, found in ratios.items():
        title = name.partition(", ")[2]
        if found["wanted"]:
            found["met"] = found["met"] and all(same[each] for each in same if each.startswith(f"{title}: PLD"))
    return ratios


def table(rows: list[dict[str, Any]]) -> Table:
    """Answers for people."""
    made = Table("calibrated", "noise", "more than taciturn's", "true epsilon", "same")
    for row in rows:
        numbers = f"{row['noise']:.9g}", f"{100.0 * row['more']:.2g} %", f"{row['true epsilon']:.9g}"
        made.add_row(row["contender"], *numbers, "yes" if row["same"] else "no")
    return made


def main() -> None:
    chosen = harness.options(__doc__)
    harness.settle()
    console = Console(stderr=chosen.json)
    contenders = {k: v for e in EPSILONS for n in RELEASES for k, v in calibrations(e, n).items()} | readings()
    turns = harness.take_turns(contenders, 1 if chosen.quick else 7, console)
    rows = answers(turns.scores)
    ratios = judged(turns, rows)
    record = harness.surroundings("taciturn", "dp-accounting", "numpy", "scipy") | {
        "unit": "seconds of the processor: a calculation",
        "seconds": turns.seconds,
        "found": turns.scores,
        "answers": rows,
        "ratios": ratios,
    }
    times = harness.tables(turns, ratios, "µs a calculation", "found")
    harness.save("accounting", record, chosen, console, *times, table(rows))


if __name__ == "__main__":
    main()
