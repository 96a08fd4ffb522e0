"""Prefix sums for several rows of one unit: sensitivities and errors of taciturn and jax-privacy.

A unit of privacy has up to k rows, one in a release block, in blocks at least b apart. The sensitivities of both
libraries are compared on random (n, k, b). Then both fit a buffered linear Toeplitz strategy to the same (n, k, b); one
function computes the error of the last sum at mu = 1 from the decays and weights of either. The errors of the fit for
one row, and of the square root, are shown beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fits import by_jax_privacy, by_taciturn, user_sum_sd
from runner import environment, parse_options, save, use_one_core
from taciturn import BLT, SquareRoot
from taciturn.kernel.accounting.unit import Participation
from taciturn.kernel.mechanisms.strategy import matrices, sensitivity_to

PACKAGES = ("numpy", "scipy", "jax-privacy", "jax", "jaxlib", "optax")
SETTINGS = [(1024, 4, 256), (1024, 8, 128), (1024, 16, 64), (1024, 4, 1), (1024, 16, 1), (4096, 10, 100)]
BUFFERS = 4
MOST = 1.005
"""Target for the ratio of errors, ours over theirs."""


def difference(seed: int) -> dict[str, Any]:
    """One random (n, k, b), the square root or a BLT, and the relative difference of the two sensitivities."""
    import jax
    from jax_privacy.matrix_factorization import toeplitz

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(seed)
    n = int(2.0 ** rng.uniform(1.0, 9.0))
    k, b = int(rng.integers(1, 33)), int(1 + n * rng.uniform() ** 3)
    strategy = (SquareRoot(), BLT(2))[seed % 2]
    coder = strategy.coder(n)
    ours = sensitivity_to(coder, Participation(k, 1, b))
    column = matrices(coder, n)[1][:, 0]
    theirs = float(toeplitz.minsep_sensitivity_squared(column, min_sep=b, max_participations=k, n=n)) ** 0.5
    return {"n": n, "k": k, "b": b, "strategy": type(strategy).__name__, "difference": ours / theirs - 1.0}


def fitted(n: int, k: int, b: int) -> dict[str, Any]:
    """Errors of the last sum, by strategies fitted to (n, k, b), to one row, and by the square root."""
    unit = Participation(k, 1, b)
    ours, theirs = (user_sum_sd(by(n, BUFFERS, "max", unit), n, unit) for by in (by_taciturn, by_jax_privacy))
    return {
        "n": n,
        "k": k,
        "b": b,
        "taciturn": ours,
        "jax-privacy": theirs,
        "ratio": ours / theirs,
        "fitted to one row": user_sum_sd(by_taciturn(n, BUFFERS, "max"), n, unit),
        "square root": float(SquareRoot().errors(n, unit)[-1]),
        "one row": float(BLT(BUFFERS).errors(n)[-1]),
    }


def shown(report: dict[str, Any]) -> Iterator[Any]:
    """Errors, and factors over the error for one row."""
    columns = "n", "k", "b", "taciturn", "jax-privacy", "ratio", "fitted to one row", "square root", "for one row"
    table = Table(*columns, title="\nError of the last sum at mu = 1", box=None, pad_edge=False)
    for row in report["rows"]:
        errors = (f"{row[name]:.4f}" for name in ("taciturn", "jax-privacy"))
        others = (f"{row[name]:.3f}" for name in ("fitted to one row", "square root", "one row"))
        table.add_row(f"{row['n']:,}", str(row["k"]), str(row["b"]), *errors, f"{row['ratio']:.5f}", *others)
    yield table
    largest = max(abs(each["difference"]) for each in report["sensitivities"])
    yield f"\nThe sensitivities to {len(report['sensitivities'])} random (n, k, b) differ by at most {largest:.1e}."


def main() -> None:
    """Print the table, and save every comparison."""
    chosen = parse_options(__doc__)
    use_one_core()
    settings, count = ([(128, 4, 32)], 10) if chosen.quick else (SETTINGS, 50)
    console = Console(stderr=chosen.json)
    rows = [fitted(*setting) for setting in track(settings, "fitting", console=console)]
    worst = max(row["ratio"] for row in rows)
    report = environment("taciturn", *PACKAGES) | {
        "units": "errors at mu = 1",
        "rows": rows,
        "sensitivities": [difference(seed) for seed in range(count)],
        "targets": {
            "largest error for (k, b) / jax-privacy's": {
                "median": worst,
                "target": f"≤ {MOST}",
                "met": worst <= MOST,
            }
        },
    }
    save("participation", report, chosen, console, *shown(report))


if __name__ == "__main__":
    main()
