"""Noisy prefix sums of taciturn and jax-privacy: time per step, from rows of d values to their noisy sums.

Both use a buffered linear Toeplitz strategy of five buffers, each fitted by its own library to the same number of
steps, and compute a noisy sum after every step. The rows are zeros, which neither knows, so the sums are noise only.

taciturn does what the compiled loop of a stream does: for a block of rounds it draws integers, from AES and a key of
the system, encodes and rounds the rows, adds the two and decodes the sums, in doubles. jax-privacy works in single
precision, its default, on `jax.random.normal`: it correlates its noise by `multiply_next`, adds it to the row and the
row to the sum. It is compiled, in three configurations of which the fastest counts:

- *by steps*: `update` of its `matrix_factorization_privatizer` is called for every step, as in training;
- *scanned*: the same in a `lax.scan` over a block of steps, which saves calls but needs all rows beforehand;
- *drawn at once*: all noise of a block in one draw, and then the scan, which the privatizer itself does not offer.

The table also has the standard deviation of the last sum at mu = 1, for rows of sensitivity 1 (`fits.sum_sd`); and that
of the d entries of the last sum over the stated one, which should be 1 ± 1/sqrt(2d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from fits import Fit, by_jax_privacy, by_taciturn, column_norm, sum_sd
from runner import Contender, Ratio, parse_options, run, use_one_core
from streams import BUDGET
from taciturn import BLT, private_sum
from taciturn.kernel.stream import passes
from taciturn.kernel.stream.loop import releases_in_block

BUFFERS = 5
PACKAGES = ("numpy", "numba", "cryptography", "jax-privacy", "jax", "jaxlib", "optax")
ERROR = "standard deviation of the last sum at mu = 1"


@dataclass(frozen=True)
class Setting:
    """Values per row, steps, the block of steps with which jax-privacy is fastest, and the target of the ratio."""

    d: int
    steps: int
    block: int
    at_least: float

    @property
    def ratio(self) -> Ratio:
        return Ratio(f"jax-privacy, d={self.d}, *", f"taciturn, d={self.d}", at_least=self.at_least)

    def contenders(self, theirs: Fit) -> dict[str, Contender]:
        """taciturn, and every configuration of jax-privacy."""
        sd = sum_sd(theirs, self.steps, "max")
        configurations = jax_privacy(self, theirs)
        return {f"taciturn, d={self.d}": taciturn(self)} | {
            f"jax-privacy, d={self.d}, {name}": Contender(work, self.steps, lambda last: relative_sd(last, sd))
            for name, work in configurations.items()
        }


FULL = (Setting(54, 2**14, 2**14, 3.0), Setting(4185, 2**10, 2**5, 1.0))  # 4,185: PQFTL's rows, of 90 features
QUICK = (Setting(54, 2**12, 2**12, 3.0), Setting(4185, 2**8, 2**5, 1.0))


def relative_sd(last: Any, sd: float) -> float:
    """Standard deviation of the entries of a noisy sum of zeros, over the stated one."""
    return math.sqrt(float(np.mean(np.square(np.asarray(last, dtype=np.float64))))) / sd


def taciturn(setting: Setting) -> Contender:
    """In the blocks of a stream; a row of norm at most 1/2 has sensitivity 1, if it is replaced."""
    private = private_sum(setting.d, 0.5, BUDGET, setting.steps, strategy=BLT(BUFFERS))
    calibrated = private.calibrated
    batch, most = passes.noise_of(calibrated), releases_in_block(private.learner)
    rows = np.zeros((most, setting.d))

    def work() -> np.ndarray:
        secret, public = calibrated.start()
        for k in range(1, setting.steps + 1, most):
            count = min(most, setting.steps + 1 - k)
            noise = batch.draw(None, k, count)
            secret, public, sums, _ = batch.add(secret, public, rows[:count], k, noise)
        return sums[-1]

    return Contender(work, setting.steps, lambda last: relative_sd(last, calibrated.noise_sd(setting.steps)))


def jax_privacy(setting: Setting, fit: Fit) -> dict[str, Any]:
    """Its configurations by name, each for all steps, at mu = 1."""
    import jax
    from jax import lax
    from jax import numpy as jnp
    from jax_privacy.matrix_factorization.buffered_toeplitz import BufferedToeplitz
    from jax_privacy.noise_addition import matrix_factorization_privatizer

    blt = BufferedToeplitz.build(fit.decays, fit.weights, dtype=jnp.float32)
    matrix = blt.inverse_as_streaming_matrix()
    sd = column_norm(fit, setting.steps)
    privatizer = matrix_factorization_privatizer(matrix, stddev=sd)
    row = jnp.zeros(setting.d)
    rows = jnp.zeros((setting.block, setting.d))

    def step(state: Any, row: Any) -> Any:
        total, noise = state
        noisy, noise = privatizer.update(row, noise)
        return (total + noisy, noise), total + noisy

    def scanned(state: Any, rows: Any) -> Any:
        return lax.scan(step, state, rows)

    def drawn_at_once(state: Any, rows: Any) -> Any:
        total, (key, buffers) = state
        key, now = jax.random.split(key)

        def add(state: Any, both: Any) -> Any:
            total, buffers = state
            noise, buffers = matrix.multiply_next(both[0], buffers)
            total = total + (both[1] + noise)
            return (total, buffers), total

        drawn = sd * jax.random.normal(now, rows.shape)
        (total, buffers), sums = lax.scan(add, (total, buffers), (drawn, rows))
        return (total, (key, buffers)), sums

    def repeated(configuration: Any, given: Any, count: int) -> Any:
        compiled = jax.jit(configuration)

        def work() -> Any:
            state = row, privatizer.init(row)
            for _ in range(count):
                state, _ = compiled(state, given)
            return jax.block_until_ready(state)[0]

        return work

    blocks = setting.steps // setting.block
    return {
        "by steps": repeated(step, row, setting.steps),
        "scanned": repeated(scanned, rows, blocks),
        "drawn at once": repeated(drawn_at_once, rows, blocks),
    }


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    contenders: dict[str, Contender] = {}
    errors: dict[str, dict[str, float]] = {}
    table = Table("values per row", "steps", f"taciturn, {ERROR}", "jax-privacy")
    settings = QUICK if chosen.quick else FULL
    for each in settings:
        fits = [fit(each.steps, BUFFERS, "max") for fit in (by_taciturn, by_jax_privacy)]
        ours, theirs = (sum_sd(fit, each.steps, "max") for fit in fits)
        contenders |= each.contenders(fits[1])
        errors[f"d={each.d}, {each.steps} steps"] = {"taciturn": ours, "jax-privacy": theirs}
        table.add_row(f"{each.d:,}", f"{each.steps:,}", f"{ours:.4f}", f"{theirs:.4f}")
    run(
        "running_noise",
        contenders,
        {f"jax-privacy's time / taciturn's, d={each.d}": each.ratio for each in settings},
        chosen,
        unit="µs per step",
        packages=PACKAGES,
        score="measured / stated",
        more={ERROR: errors},
        shown=[table],
    )


if __name__ == "__main__":
    main()
