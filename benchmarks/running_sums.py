"""Prefix sums of taciturn and jax-privacy: errors of buffered linear Toeplitz strategies, and times to fit them.

Both libraries fit the same number of buffers to the same number of sums, each with its own defaults, on one core, in
turns. Errors are standard deviations of an entry of the sums at mu = 1, for rows of sensitivity 1; one function
computes them from the decays and weights of either library. jax-privacy compiles in every fit, which is shown
separately from its 600 steps. It has converged earlier, within 0.01 % of its last error; that time is shown, too.
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

from fits import Fit, by_jax_privacy, by_taciturn, sum_sd
from runner import environment, parse_options, save, use_one_core
from taciturn.calibration.blt_fit import Aim

PACKAGES = ("numpy", "scipy", "jax-privacy", "jax", "jaxlib", "optax")
EQUAL = 1e-3  # errors that differ by no more than this share are called equal
PLAIN: dict[str, Any] = {"box": None, "pad_edge": False, "collapse_padding": True}  # nine columns in eighty characters
NOTE = (
    "Times are CPU times on one core. Steps, converged (a part of steps) and compiling are jax-privacy's. Ratios are "
    "taciturn/jax-privacy: taciturn's fit to A their steps, B their steps until converged, C their total fit, which "
    "compiles."
)


@dataclass(frozen=True)
class Row:
    """One setting, and the fits of both libraries, one for each repetition."""

    aim: Aim
    n: int
    buffers: int
    ours: list[Fit]
    theirs: list[Fit]

    def record(self) -> dict[str, Any]:
        """For machines: errors, seconds of every repetition, and ratios ours/theirs of their medians."""
        error, other = (sum_sd(fits[-1], self.n, self.aim) for fits in (self.ours, self.theirs))
        total = [fit.total for fit in self.ours]
        their = {
            "total": [fit.total for fit in self.theirs],
            "compiling": [fit.total - fit.steps for fit in self.theirs],
            "steps": [fit.steps for fit in self.theirs],
            "converged": [fit.converged for fit in self.theirs],
        }
        ratios = {name: float(np.median(total) / np.median(their[name])) for name in ("total", "steps", "converged")}
        return {
            "aim": self.aim,
            "n": self.n,
            "buffers": self.buffers,
            "taciturn": {"error": error, "total": total},
            "jax-privacy": {"error": other, **their},
            "ratios": {"error": error / other, **ratios},
        }


def measure(aim: Aim, n: int, buffers: int, repetitions: int) -> Row:
    """Fit in turns, after one fit each that is not counted."""
    turns = [(by_taciturn(n, buffers, aim), by_jax_privacy(n, buffers, aim)) for _ in range(repetitions + 1)]
    ours, theirs = zip(*turns[1:], strict=True)
    return Row(aim, n, buffers, list(ours), list(theirs))


def spread(seconds: list[float]) -> str:
    """The median and half the range: in ms, or in s from a second on."""
    median = np.median(seconds)
    half = np.ptp(seconds) / 2
    return f"{median:.1f}±{half:.1f} s" if median >= 1.0 else f"{1e3 * median:.0f}±{1e3 * half:.0f}"


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
        both = (f"{row[name]['error']:.4f}" for name in ("taciturn", "jax-privacy"))
        table.add_row(*setting(row), *both, f"{row['ratios']['error']:.5f}")
    return table


def times(rows: list[dict[str, Any]], title: str) -> Table:
    """One row for each setting."""
    columns = "sums", "buffers", "taciturn", "steps", "converged", "compiling", "A", "B", "C"
    table = Table(*columns, title=title, **PLAIN)
    for row in rows:
        theirs = [spread(row["jax-privacy"][name]) for name in ("steps", "converged", "compiling")]
        ratios = [f"{row['ratios'][name]:.2g}" for name in ("steps", "converged", "total")]
        table.add_row(*setting(row), spread(row["taciturn"]["total"]), *theirs, *ratios)
    return table


def setting(row: dict[str, Any]) -> tuple[str, str]:
    """Number of sums, and of buffers."""
    return f"2^{np.log2(row['n']):.4g}", str(row["buffers"])


def differences(rows: list[dict[str, Any]]) -> list[str]:
    """A sentence for each setting in which one error is lower by more than 0.1 %, or one for all."""
    different = [
        f"{row['aim']} error, {row['n']:,} sums, {row['buffers']} buffers: "
        f"{'taciturn' if (ratio := row['ratios']['error']) < 1 else 'jax-privacy'}'s is lower, by {abs(ratio - 1):.2%}."
        for row in rows
        if abs(row["ratios"]["error"] - 1.0) > EQUAL
    ]
    return different or ["No two errors differ by more than 0.1 %."]


def main() -> None:
    """Print the tables, and save every repetition."""
    chosen = parse_options(
        __doc__,
        lengths={"type": int, "nargs": "*", "default": [2**10, 2**14, 2**17, 2**20]},
        mean_lengths={"type": int, "nargs": "*", "default": [2**10, 2**12], "help": "slow if long"},
        buffers={"type": int, "nargs": "+", "default": [2, 3, 4, 5, 6]},
        repetitions={"type": int, "default": 5},
    )
    use_one_core()
    if chosen.quick:
        chosen.lengths = [2**10]
        chosen.mean_lengths = []
        chosen.buffers = [2, 4]
        chosen.repetitions = 2
    console = Console(stderr=chosen.json)
    aims: list[tuple[Aim, int]] = [("max", n) for n in chosen.lengths]
    aims += [("mean", n) for n in chosen.mean_lengths]
    settings = [(*each, buffers) for each, buffers in product(aims, chosen.buffers)]
    rows = [measure(*setting, chosen.repetitions) for setting in track(settings, "fitting", console=console)]
    report = environment("taciturn", *PACKAGES) | {
        "repetitions": chosen.repetitions,
        "units": "errors at mu = 1; CPU seconds on one core",
        "rows": [row.record() for row in rows],
    }
    save("running_sums", report, chosen, console, *shown(report))


if __name__ == "__main__":
    main()
