"""Stages of a private stream and their share of its time: random bits, sampling, validation of examples, learning.

Each stage runs alone, as in a stream, and the total stream takes turns with them on one core:

- *bits*: as many words of AES as the noise takes, and one in 32 more for samples that need a second word;
- *noise*: those words turned into Gaussian integers; the bits are part of it;
- *examples*: rows read, validated and clipped;
- *noise given*: the total stream, with integers that were drawn before.

So *sampling* is noise minus bits, and *learning* is noise given minus examples: steps or sums, adding noise, decisions,
and the calls from Python, 4,096 rows each. The difference of total and stages, *other*, is their effect on each other's
caches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

from runner import Contender, Turns, environment, parse_options, save, take_turns, use_one_core
from streams import BUDGET, CHUNK, Task, learns, noise_alone, noise_blocks
from taciturn import L2Ball, Logistic, Private, Problem, Squared, every, geometric, pftrl, pgiga, pigd, pqftl
from taciturn.kernel.noise.sampling import secret_bits
from taciturn.kernel.problem import clipping_pass
from taciturn.kernel.stream import passes

STAGES = ("bits", "sampling", "examples", "learning")


def cases(scale: float) -> dict[str, tuple[Private, Task]]:
    """Private streams and their examples."""
    n = int(100_000 * scale)
    logistic = {"PIGD": pigd, "PGIGA": pgiga, "FTRL": pftrl}
    clicks = Problem(Logistic(), L2Ball(5.0), dimension=54, ridge=0.01)
    rows = task(n, 54, classes=True)
    made = {f"{name}, d=54": (recipe(clicks, BUDGET, n), rows) for name, recipe in logistic.items()}
    for d, count, schedule, suffix in (
        (10, n, every(1), ""),
        (90, n // 20, every(1), ""),
        (90, n, geometric(1.1), ", geometric"),
    ):
        prices = Problem(Squared(), L2Ball(0.5), dimension=d, label_bound=1.0, ridge=1.0)
        private = pqftl(prices, BUDGET, count, schedule=schedule)
        made[f"PQFTL, d={d}{suffix}"] = (private, task(count, d, classes=False))
    return made


def task(n: int, d: int, *, classes: bool) -> Task:
    """Rows of norm about 1, and labels that depend on the first feature; there are no held-out rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0) if classes else np.clip(X[:, 0], -1.0, 1.0)
    return Task(X, y, X[:0], y[:0])


def stages(private: Private, rows: Task) -> dict[str, Contender]:
    """The total stream, and each stage alone."""
    n = len(rows)
    alone = {
        "total": learns(private, rows),
        "noise given": given_noise(private, rows),
        "noise": noise_alone(private, n),
        "bits": bits(private, n),
        "examples": examples(private, rows),
    }
    return {name: Contender(work, n) for name, work in alone.items()}


def given_noise(private: Private, rows: Task) -> Callable[[], object]:
    calibrated = private.calibrated
    most = max((count for _, count in noise_blocks(private, len(rows))), default=0)
    verb = "noise_rows" if hasattr(calibrated, "noise_rows") else "noise"  # of prefix sums, or of each release alone
    drawn = getattr(calibrated, verb)(None, 1, most)

    def work() -> object:
        with mock.patch.object(calibrated, verb, lambda seed, k, count: drawn[:count]):
            return learns(private, rows)()

    return work


def bits(private: Private, rows: int) -> Callable[[], None]:
    size = passes.noise_of(private.calibrated).draw(None, 1, 1).size
    words = [count * size + count * size // 32 for _, count in noise_blocks(private, rows)]
    place = np.empty(2**14 + 2, dtype=np.uint64)  # the sampler's block

    def work() -> None:
        for total in words:
            draw = secret_bits()
            for start in range(0, total, 2**14):
                draw(min(2**14, total - start), place)

    return work


def examples(private: Private, rows: Task) -> Callable[[], None]:
    problem = private.problem
    clip = clipping_pass.clip_for(problem)
    place = np.empty((CHUNK, problem.width))

    def work() -> None:
        for X, y in rows.chunks():
            clip.dense(*problem.read(X, y), 0, place)

    return work


def parts(seconds: dict[str, float]) -> dict[str, float]:
    """Seconds of the stages, which add up to the total, with the difference as `other`."""
    each = {
        "bits": seconds["bits"],
        "sampling": seconds["noise"] - seconds["bits"],
        "examples": seconds["examples"],
        "learning": seconds["noise given"] - seconds["examples"],
    }
    return each | {"other": seconds["total"] - sum(each.values())}


def profile(turns: Turns, names: list[str]) -> dict[str, dict[str, float]]:
    """Medians for each stream: µs per example in total and of its stages."""
    medians = {name: 1e6 * float(np.median(each)) for name, each in turns.seconds.items()}
    made = {}
    for name in names:
        seconds = {each.removeprefix(f"{name}: "): medians[each] for each in medians if each.startswith(f"{name}: ")}
        made[name] = {"total": seconds["total"]} | parts(seconds)
    return made


def shares_table(profiles: dict[str, dict[str, float]]) -> Table:
    table = Table("µs per example", "total", *(f"{stage}, %" for stage in (*STAGES, "other")))
    for name, each in profiles.items():
        shares = (f"{100.0 * each[stage] / each['total']:.0f}" for stage in (*STAGES, "other"))
        table.add_row(name, f"{each['total']:.3g}", *shares)
    return table


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    made = cases(0.1 if chosen.quick else 1.0)
    contenders = {f"{name}: {stage}": one for name, case in made.items() for stage, one in stages(*case).items()}
    console = Console(stderr=chosen.json)
    turns = take_turns(contenders, 3 if chosen.quick else 7, console)
    profiles = profile(turns, list(made))
    record = environment("taciturn", "numpy", "numba", "cryptography")
    record |= {"unit": "CPU seconds per example", "seconds": turns.seconds, "µs per example": profiles}
    save("stages", record, chosen, console, shares_table(profiles))


if __name__ == "__main__":
    main()
