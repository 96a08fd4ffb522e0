"""Where the time of a private stream goes: bits, sampling, examples made legal, and what is learnt and hidden.

Each stage runs alone, as a pass runs it, and the whole beside it, all in turns on one core:

- *bits*: as many words of AES as the noise takes, and one in 32 more for tries that a first word does not settle;
- *noise*: those words made Gaussian integers; the bits are part of it;
- *examples*: rows read, checked, and scaled down where they are too long;
- *noise given*: the whole stream, but handed integers that were drawn before.

So *sampling* is noise less bits, *learning* is what is left of noise given without examples: steps or sums, hiding,
decisions, and the calls from Python, 4,096 rows each. Stages and whole differ by what they do to each other's caches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

from streams import BUDGET, CHUNK, Task, learns, noise_alone, portions
from taciturn import L2Ball, Logistic, Private, Problem, Squared, every, geometric, pftrl, pgiga, pigd, pqftl
from taciturn.noise.sampling import secret_bits
from turns import Contender, Turns, options, save, settle, surroundings, take_turns

STAGES = ("bits", "sampling", "examples", "learning")


def cases(scale: float) -> dict[str, tuple[Private, Task]]:
    """Private streams and what they learn from."""
    n = int(100_000 * scale)
    logistic = {"PIGD": pigd, "PGIGA": pgiga, "FTRL": pftrl}
    clicks = Problem(Logistic(), L2Ball(5.0), dimension=54, ridge=0.01)
    rows = task(n, 54, classes=True)
    made = {f"{name}, d=54": (recipe(clicks, BUDGET, n), rows) for name, recipe in logistic.items()}
    for d, count, schedule, said in (
        (10, n, every(1), ""),
        (90, n // 20, every(1), ""),
        (90, n, geometric(1.1), ", geometric"),
    ):
        prices = Problem(Squared(), L2Ball(0.5), dimension=d, label_bound=1.0, ridge=1.0)
        made[f"PQFTL, d={d}{said}"] = pqftl(prices, BUDGET, count, schedule=schedule), task(count, d, classes=False)
    return made


def task(n: int, d: int, *, classes: bool) -> Task:
    """Rows of about unit length, and labels that depend on the first feature; nobody is judged here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0) if classes else np.clip(X[:, 0], -1.0, 1.0)
    return Task(X, y, X[:0], y[:0])


def stages(private: Private, rows: Task) -> dict[str, Contender]:
    """The whole, and each stage alone."""
    n = len(rows)
    alone = {
        "whole": learns(private, rows),
        "noise given": given_noise(private, rows),
        "noise": noise_alone(private, n),
        "bits": bits(private, n),
        "examples": examples(private, rows),
    }
    return {name: Contender(work, n) for name, work in alone.items()}


def given_noise(private: Private, rows: Task) -> Callable[[], object]:
    calibrated = private.calibrated
    most = max((count for _, count in portions(private, len(rows))), default=0)
    drawn = calibrated.noise_for(None, 1, most)

    def work() -> object:
        with mock.patch.object(calibrated, "noise_for", lambda seed, k, count: drawn[:count]):
            return learns(private, rows)()

    return work


def bits(private: Private, rows: int) -> Callable[[], None]:
    size = private.calibrated.noise_for(None, 1, 1).size
    words = [count * size + count * size // 32 for _, count in portions(private, rows)]
    place = np.empty(2**14 + 2, dtype=np.uint64)  # as many as the sampler asks for at a time

    def work() -> None:
        for total in words:
            draw = secret_bits()
            for start in range(0, total, 2**14):
                draw(min(2**14, total - start), place)

    return work


def examples(private: Private, rows: Task) -> Callable[[], None]:
    problem, place = private.problem, np.empty((CHUNK, private.problem.width))

    def work() -> None:
        for X, y in rows.chunks():
            problem.legal(*problem.read(X, y), 0, True, place)

    return work


def parts(seconds: dict[str, float]) -> dict[str, float]:
    """Seconds of the stages, which add up to those of the whole but for `the rest`."""
    each = {
        "bits": seconds["bits"],
        "sampling": seconds["noise"] - seconds["bits"],
        "examples": seconds["examples"],
        "learning": seconds["noise given"] - seconds["examples"],
    }
    return each | {"the rest": seconds["whole"] - sum(each.values())}


def profile(turns: Turns, names: list[str]) -> dict[str, dict[str, float]]:
    """For each stream: µs an example of the whole and of its parts, medians."""
    middle = {name: 1e6 * float(np.median(each)) for name, each in turns.seconds.items()}
    found = {}
    for name in names:
        seconds = {each.removeprefix(f"{name}: "): middle[each] for each in middle if each.startswith(f"{name}: ")}
        found[name] = {"whole": seconds["whole"]} | parts(seconds)
    return found


def shown(found: dict[str, dict[str, float]]) -> Table:
    table = Table("µs an example", "whole", *(f"{stage}, %" for stage in (*STAGES, "the rest")))
    for name, each in found.items():
        shares = (f"{100.0 * each[stage] / each['whole']:.0f}" for stage in (*STAGES, "the rest"))
        table.add_row(name, f"{each['whole']:.3g}", *shares)
    return table


def main() -> None:
    chosen = options(__doc__)
    settle()
    made = cases(0.1 if chosen.quick else 1.0)
    everyone = {f"{name}: {stage}": one for name, case in made.items() for stage, one in stages(*case).items()}
    console = Console(stderr=chosen.json)
    turns = take_turns(everyone, 3 if chosen.quick else 7, console)
    found = profile(turns, list(made))
    record = surroundings("taciturn", "numpy", "numba", "cryptography")
    record |= {"unit": "seconds of the processor: an example", "seconds": turns.seconds, "µs an example": found}
    save("stages", record, chosen, console, shown(found))


if __name__ == "__main__":
    main()
