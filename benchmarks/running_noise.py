"""Noisy running sums side by side with jax-privacy: time a step, from rows of d values to their sums under noise.

Both hide rows by a buffered linear Toeplitz strategy of five buffers, each fitted by its own library to as many steps,
and make a noisy sum after every one. The rows are zeros, which neither knows, so that the sums are noise alone.

taciturn does what a compiled pass does: for a run of rounds it draws integers, from AES and a key of the system's,
encodes and rounds the rows, adds the two and decodes the sums, in doubles. jax-privacy works in single precision, as is
usual with it, on `jax.random.normal`: it correlates its noise by `multiply_next`, adds it to the row and the row to the
sum. All is compiled, in three forms of which the fastest counts:

- *by steps*: `update` of its `matrix_factorization_privatizer` is called for every step, as in training;
- *scanned*: the same in a `lax.scan` over a run of steps, which saves calls but needs all rows beforehand;
- *drawn at once*: all noise of a run in one draw, and then the scan, which the privatizer itself does not offer.

Beside the times stands what they are worth: how much noise the last sum has at mu = 1, if one example moves one row by
1 (`fits.deviation`); and whether it is there, as the deviation that the d entries of the last sum show over the one
that was promised: 1, give or take 1/sqrt(2d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from fits import Fit, by_jax_privacy, by_taciturn, column, deviation
from taciturn import BLT, Privacy, private_sum
from turns import Contender, Ratio, options, run, settle

BUFFERS, BUDGET = 5, Privacy(1.0, 1e-6)
PACKAGES = ("numpy", "numba", "cryptography", "jax-privacy", "jax", "jaxlib", "optax")
ERROR = "deviation of the last sum at mu = 1"


@dataclass(frozen=True)
class Setting:
    """Values a row, steps, the run of them after which jax-privacy is fastest, and what is wanted."""

    d: int
    steps: int
    run: int
    at_least: float

    @property
    def ratio(self) -> Ratio:
        return Ratio(f"jax-privacy, d={self.d}, *", f"taciturn, d={self.d}", at_least=self.at_least)

    def contenders(self, theirs: Fit) -> dict[str, Contender]:
        """taciturn, and every form of jax-privacy."""
        sd = deviation(theirs, self.steps, "max")
        forms = jax_privacy(self, theirs)
        return {f"taciturn, d={self.d}": taciturn(self)} | {
            f"jax-privacy, d={self.d}, {name}": Contender(work, self.steps, lambda last: shown(last, sd))
            for name, work in forms.items()
        }


FULL = (Setting(54, 2**14, 2**14, 3.0), Setting(4185, 2**10, 2**5, 1.0))  # 4,185: PQFTL's rows, of 90 features
QUICK = (Setting(54, 2**12, 2**12, 3.0), Setting(4185, 2**8, 2**5, 1.0))


def shown(last: Any, sd: float) -> float:
    """The deviation that a sum of zeros shows, over the one that was promised."""
    return math.sqrt(float(np.mean(np.square(np.asarray(last, dtype=np.float64))))) / sd


def taciturn(setting: Setting) -> Contender:
    """In the portions of a pass; a row of length 1/2 at most is moved by 1, if it is replaced."""
    private = private_sum(setting.d, 0.5, BUDGET, setting.steps, strategy=BLT(BUFFERS))
    hidden, most = private.calibrated, private._most_releases
    rows = np.zeros((most, setting.d))

    def work() -> np.ndarray:
        secret, public = hidden.start()
        for k in range(1, setting.steps + 1, most):
            count = min(most, setting.steps + 1 - k)
            noise = hidden.noise_for(None, k, count)
            secret, public, sums, _ = hidden.hide_all(secret, public, rows[:count], k, noise)
        return sums[-1]

    return Contender(work, setting.steps, lambda last: shown(last, hidden.noise_sd(setting.steps)))


def jax_privacy(setting: Setting, fit: Fit) -> dict[str, Any]:
    """Its forms by name, each for all steps, at mu = 1."""
    import jax
    from jax import lax
    from jax import numpy as jnp
    from jax_privacy.matrix_factorization.buffered_toeplitz import BufferedToeplitz
    from jax_privacy.noise_addition import matrix_factorization_privatizer

    blt = BufferedToeplitz.build(fit.decays, fit.weights, dtype=jnp.float32)
    matrix, sd = blt.inverse_as_streaming_matrix(), column(fit, setting.steps)
    privatizer = matrix_factorization_privatizer(matrix, stddev=sd)
    row, rows = jnp.zeros(setting.d), jnp.zeros((setting.run, setting.d))

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

    def repeated(form: Any, given: Any, count: int) -> Any:
        compiled = jax.jit(form)

        def work() -> Any:
            state = row, privatizer.init(row)
            for _ in range(count):
                state, _ = compiled(state, given)
            return jax.block_until_ready(state)[0]

        return work

    runs = setting.steps // setting.run
    return {
        "by steps": repeated(step, row, setting.steps),
        "scanned": repeated(scanned, rows, runs),
        "drawn at once": repeated(drawn_at_once, rows, runs),
    }


def main() -> None:
    chosen = options(__doc__)
    settle()
    contenders: dict[str, Contender] = {}
    errors, table = {}, Table("values a row", "steps", f"taciturn, {ERROR}", "jax-privacy")
    settings = QUICK if chosen.quick else FULL
    for each in settings:
        fits = [fit(each.steps, BUFFERS, "max") for fit in (by_taciturn, by_jax_privacy)]
        found = [deviation(fit, each.steps, "max") for fit in fits]
        contenders |= each.contenders(fits[1])
        errors[f"d={each.d}, {each.steps} steps"] = dict(zip(("taciturn", "jax-privacy"), found, strict=True))
        table.add_row(f"{each.d:,}", f"{each.steps:,}", *(f"{error:.4f}" for error in found))
    run(
        "running_noise",
        contenders,
        {f"jax-privacy's time / taciturn's, d={each.d}": each.ratio for each in settings},
        chosen,
        unit="µs a step",
        packages=PACKAGES,
        score="shown / promised",
        more={ERROR: errors},
        shown=[table],
    )


if __name__ == "__main__":
    main()
