"""Running sums side by side with jax-privacy: errors of buffered linear Toeplitz strategies, and times to fit them.

Both libraries fit as many buffers to as many sums, each with its own defaults, on one core, in turns. Errors are of an
entry of the sums at mu = 1, if one example moves one row by 1; one function computes them from the decays and
weights that either library found. jax-privacy compiles in every fit: that is shown apart, and its steps without it. It
takes 600 steps; it would have settled earlier, and when is shown, too: within 0.01 % of the error that it ends with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fits import Fit, by_jax_privacy, by_taciturn, deviation
from taciturn.mechanisms.blt import Aim
from turns import options, save, settle, surroundings

PACKAGES = ("numpy", "scipy", "jax-privacy", "jax", "jaxlib", "optax")
ALIKE = 1e-3  # errors that differ by no more than this share are called equal
PLAIN: dict[str, Any] = {"box": None, "pad_edge": False, "collapse_padding": True}  # nine columns in eighty characters
NOTE = (
    "Times are of the processor, on one core. Steps, settled (a part of steps) and compiling are jax-privacy's. "
    "Ratios are taciturn/jax-privacy: taciturn's whole fit to A their steps, B their steps until settled, "
    "C their whole fit, "
    "which compiles."
)


@dataclass(frozen=True)
class Row:
    """One setting, and both libraries' fits of it, one a repetition."""

    aim: Aim
    n: int
    buffers: int
    ours: list[Fit]
    theirs: list[Fit]

    def record(self) -> dict[str, Any]:
        """For machines: errors, seconds of every repetition, and ratios ours/theirs of their medians."""
        error, other = (deviation(fits[-1], self.n, self.aim) for fits in (self.ours, self.theirs))
        whole = [fit.whole for fit in self.ours]
        their = {
            "whole": [fit.whole for fit in self.theirs],
            "compiling": [fit.whole - fit.steps for fit in self.theirs],
            "steps": [fit.steps for fit in self.theirs],
            "settled": [fit.settled for fit in self.theirs],
        }
        ratios = {name: float(np.median(whole) / np.median(their[name])) for name in ("whole", "steps", "settled")}
        return {
            "aim": self.aim,
            "n": self.n,
            "buffers": self.buffers,
            "taciturn": {"error": error, "whole": whole},
            "jax-privacy": {"error": other, **their},
            "ratios": {"error": error / other, **ratios},
        }


def measure(aim: Aim, n: int, buffers: int, repetitions: int) -> Row:
    """In turns, after a fit each that is not counted."""
    turns = [(by_taciturn(n, buffers, aim), by_jax_privacy(n, buffers, aim)) for _ in range(repetitions + 1)]
    ours, theirs = zip(*turns[1:], strict=True)
    return Row(aim, n, buffers, list(ours), list(theirs))


def spread(seconds: list[float]) -> str:
    """The median, and half of the way from the least to the most: in ms, or from a second on in s."""
    middle, half = np.median(seconds), np.ptp(seconds) / 2
    return f"{middle:.1f}±{half:.1f} s" if middle >= 1.0 else f"{1e3 * middle:.0f}±{1e3 * half:.0f}"


def shown(report: dict[str, Any]) -> Iterator[Any]:
    """Errors and times for each aim, and where the errors differ."""
    count = report["repetitions"]
    for aim in dict.fromkeys(row["aim"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["aim"] == aim]
        yield errors(rows, f"\n{aim} error at mu = 1")
        yield times(rows, f"\nms (or s) to fit for {aim} error: median of {count}, half the range")
    yield "\n".join(["", NOTE, *differences(report["rows"])])


def errors(rows: list[dict[str, Any]], title: str) -> Table:
    """One row for each setting."""
    table = Table("sums", "buffers", "taciturn", "jax-privacy", "ratio", title=title, **PLAIN)
    for row in rows:
        found = row["taciturn"]["error"], row["jax-privacy"]["error"]
        table.add_row(*setting(row), *(f"{error:.4f}" for error in found), f"{row['ratios']['error']:.5f}")
    return table


def times(rows: list[dict[str, Any]], title: str) -> Table:
    """One row for each setting."""
    columns = "sums", "buffers", "taciturn", "steps", "settled", "compiling", "A", "B", "C"
    table = Table(*columns, title=title, **PLAIN)
    for row in rows:
        theirs = [spread(row["jax-privacy"][name]) for name in ("steps", "settled", "compiling")]
        ratios = [f"{row['ratios'][name]:.2g}" for name in ("steps", "settled", "whole")]
        table.add_row(*setting(row), spread(row["taciturn"]["whole"]), *theirs, *ratios)
    return table


def setting(row: dict[str, Any]) -> tuple[str, str]:
    """How many sums, and buffers."""
    return f"2^{np.log2(row['n']):.4g}", str(row["buffers"])


def differences(rows: list[dict[str, Any]]) -> list[str]:
    """A sentence for each setting in which one error is lower by more than 0.1 %, or one for all."""
    found = [
        f"{row['aim']} error, {row['n']:,} sums, {row['buffers']} buffers: "
        f"{'taciturn' if (ratio := row['ratios']['error']) < 1 else 'jax-privacy'}'s is lower, by {abs(ratio - 1):.2%}."
        for row in rows
        if abs(row["ratios"]["error"] - 1.0) > ALIKE
    ]
    return found or ["No two errors differ by more than 0.1 %."]


def main() -> None:
    """Print the tables, and save every repetition."""
    chosen = options(
        __doc__,
        lengths={"type": int, "nargs": "*", "default": [2**10, 2**14, 2**17, 2**20]},
        mean_lengths={"type": int, "nargs": "*", "default": [2**10, 2**12], "help": "slow if long"},
        buffers={"type": int, "nargs": "+", "default": [2, 3, 4, 5, 6]},
        repetitions={"type": int, "default": 5},
    )
    settle()
    if chosen.quick:
        chosen.lengths, chosen.mean_lengths, chosen.buffers, chosen.repetitions = [2**10], [], [2, 4], 2
    console = Console(stderr=chosen.json)
    aims: list[tuple[Aim, int]] = [("max", n) for n in chosen.lengths]
    aims += [("mean", n) for n in chosen.mean_lengths]
    settings = [(*each, buffers) for each, buffers in product(aims, chosen.buffers)]
    rows = [measure(*setting, chosen.repetitions) for setting in track(settings, "fitting", console=console)]
    report = surroundings("taciturn", *PACKAGES) | {
        "repetitions": chosen.repetitions,
        "units": "errors at mu = 1; seconds of the processor, on one core",
        "rows": [row.record() for row in rows],
    }
    save("running_sums", report, chosen, console, *shown(report))


if __name__ == "__main__":
    main()
