"""Gaussian noise side by side: values a second on one core, of taciturn, NumPy, jax-privacy, OpenDP and diffprivlib.

taciturn draws integers of deviation 2^30 on their lattice, the operating system's key and AES included. NumPy draws
doubles from its fastest generator (SFC64), and floats, and jax-privacy what its privatizers add, `jax.random.normal` of
a key that is split before each draw, compiled, in single and in double precision. Both protect nobody: generator or key
(one of 2^31, if nobody names it) can be guessed, and the low bits of floats tell what they were added to. (Its keys are
Threefry's, the default; on a processor those of `rbg` are slower.) OpenDP hides a vector of zeros, integers or doubles,
exactly. diffprivlib hides a zero at a time, the only way it has, by its analytic and its discrete Gaussian mechanism.

The first three draw 131,072 values at a time, and keep none. Ratios are of times a value, of a peer's fastest form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from apart import Apart
from taciturn.noise.sampling import lattice_normal
from turns import Contender, Ratio, options, run, settle

AT_ONCE, SCALE = 2**17, 2.0**30
PACKAGES = ("numpy", "numba", "cryptography", "jax-privacy", "jax", "jaxlib", "opendp")
WANTED = {
    "NumPy's time / taciturn's": Ratio("NumPy, SFC64", "taciturn*", at_least=1.5),
    "NumPy's time, single / taciturn's": Ratio("NumPy in single precision", "taciturn*"),
    "OpenDP's time / taciturn's": Ratio("OpenDP*", "taciturn*", at_least=500.0),
    "jax-privacy's time / taciturn's": Ratio("jax-privacy*", "taciturn*"),
    "diffprivlib's time / taciturn's": Ratio("diffprivlib*", "taciturn*"),
}
Work = Callable[[], object]


def jax_privacy() -> dict[str, Work]:
    """What its privatizers draw for gradients of this precision."""
    import jax

    def draws(precision: type[np.floating]) -> Work:
        def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
            following, now = jax.random.split(key)
            return following, jax.random.normal(now, (AT_ONCE,), precision)

        with jax.enable_x64():
            compiled = jax.jit(draw).lower(jax.random.key(0)).compile()
        keys = [jax.random.key(0)]

        def work() -> object:
            keys[0], values = compiled(keys[0])
            return values.block_until_ready()

        return work

    return {"jax-privacy, single": draws(np.float32), "jax-privacy, double": draws(np.float64)}


def opendp(size: int) -> dict[str, Work]:
    """Its vector Gaussian, at the same deviation on integers, and at 1 on doubles."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float)
    integers = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=SCALE)
    doubles = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric, scale=1.0)
    zeros = np.zeros(size, dtype=np.int64), np.zeros(size)
    return {"OpenDP, integers": lambda: integers(zeros[0]), "OpenDP, doubles": lambda: doubles(zeros[1])}


def diffprivlib(apart: Apart, size: int) -> dict[str, Contender]:
    """Its analytic mechanism, and its discrete one, which is given half as many values; both of deviation 4.2."""
    few = size // 2
    return {
        "diffprivlib, doubles": Contender(lambda: apart.order("gaussian", count=size), size, clock=apart.clock),
        "diffprivlib, integers": Contender(lambda: apart.order("discrete_gaussian", count=few), few, clock=apart.clock),
    }


def contenders(portions: int, apart: Apart) -> dict[str, Contender]:
    """Everyone, and how many values a turn has."""
    generator = np.random.Generator(np.random.SFC64())

    def in_portions(draw: Work) -> Contender:
        def work() -> None:
            for _ in range(portions):
                draw()

        return Contender(work, portions * AT_ONCE)

    many = {
        "taciturn, secret integers": lambda: lattice_normal(SCALE, (AT_ONCE,)),
        "NumPy, SFC64": lambda: generator.standard_normal(AT_ONCE),
        "NumPy in single precision": lambda: generator.standard_normal(AT_ONCE, dtype=np.float32),
        **jax_privacy(),
    }
    few = 100 * portions
    return (
        {name: in_portions(draw) for name, draw in many.items()}
        | {name: Contender(hide, few) for name, hide in opendp(few).items()}
        | diffprivlib(apart, 10 * few)
    )


def main() -> None:
    chosen = options(__doc__)
    settle()
    with Apart() as apart:
        everyone = contenders(5 if chosen.quick else 50, apart)
        run(
            "noise",
            everyone,
            WANTED,
            chosen,
            unit="µs a value",
            packages=PACKAGES,
            repetitions=11,
            rate=True,
            more={"diffprivlib": apart.order("versions")},
        )


if __name__ == "__main__":
    main()
