"""Gaussian noise: values per second on one core, for taciturn, NumPy, jax-privacy, OpenDP and diffprivlib.

taciturn draws integers of standard deviation 2^30 on their lattice, the operating system's key and AES included. NumPy
draws doubles from its fastest generator (SFC64), and floats, and jax-privacy what its privatizers add,
`jax.random.normal` of a key that is split before each draw, compiled, in single and in double precision. Neither is
private: generator or key (one of 2^31 by default) can be guessed, and the low bits of floats depend on what they were
added to. (The keys of jax-privacy are Threefry's, the default; on a CPU those of `rbg` are slower.) OpenDP adds noise
to a vector of zeros, integers or doubles, exactly. diffprivlib adds noise to one zero per call, the only way it has, by
its analytic and its discrete Gaussian mechanism.

The first three draw 131,072 values per call, and store none. Ratios are of the time per value, with the fastest
configuration of a peer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diffprivlib_client import Diffprivlib
from runner import Contender, Ratio, parse_options, run, use_one_core
from taciturn.kernel.noise.sampling import lattice_normal

PER_CALL = 2**17
SCALE = 2.0**30
PACKAGES = ("numpy", "numba", "cryptography", "jax-privacy", "jax", "jaxlib", "opendp")
RATIOS = {
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
            return following, jax.random.normal(now, (PER_CALL,), precision)

        with jax.enable_x64():
            compiled = jax.jit(draw).lower(jax.random.key(0)).compile()
        keys = [jax.random.key(0)]

        def work() -> object:
            keys[0], values = compiled(keys[0])
            return values.block_until_ready()

        return work

    return {"jax-privacy, single": draws(np.float32), "jax-privacy, double": draws(np.float64)}


def opendp(size: int) -> dict[str, Work]:
    """Its vector Gaussian, with the same standard deviation on integers, and with 1 on doubles."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float)
    integers = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=SCALE)
    doubles = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric, scale=1.0)
    integer_zeros = np.zeros(size, dtype=np.int64)
    double_zeros = np.zeros(size)
    return {"OpenDP, integers": lambda: integers(integer_zeros), "OpenDP, doubles": lambda: doubles(double_zeros)}


def diffprivlib(peer: Diffprivlib, size: int) -> dict[str, Contender]:
    """Its analytic mechanism, and its discrete one with half as many values; standard deviation 4.2."""
    few = size // 2
    return {
        "diffprivlib, doubles": Contender(lambda: peer.call("gaussian", count=size), size, clock=peer.clock),
        "diffprivlib, integers": Contender(lambda: peer.call("discrete_gaussian", count=few), few, clock=peer.clock),
    }


def contenders(calls: int, peer: Diffprivlib) -> dict[str, Contender]:
    """All contenders, each with its number of values per turn."""
    generator = np.random.Generator(np.random.SFC64())

    def repeated(draw: Work) -> Contender:
        def work() -> None:
            for _ in range(calls):
                draw()

        return Contender(work, calls * PER_CALL)

    many = {
        "taciturn, secret integers": lambda: lattice_normal(SCALE, (PER_CALL,)),
        "NumPy, SFC64": lambda: generator.standard_normal(PER_CALL),
        "NumPy in single precision": lambda: generator.standard_normal(PER_CALL, dtype=np.float32),
        **jax_privacy(),
    }
    few = 100 * calls
    return (
        {name: repeated(draw) for name, draw in many.items()}
        | {name: Contender(add, few) for name, add in opendp(few).items()}
        | diffprivlib(peer, 10 * few)
    )


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    with Diffprivlib() as peer:
        run(
            "noise",
            contenders(5 if chosen.quick else 50, peer),
            RATIOS,
            chosen,
            unit="µs per value",
            packages=PACKAGES,
            repetitions=11,
            rate=True,
            more={"diffprivlib": peer.call("versions")},
        )


if __name__ == "__main__":
    main()
