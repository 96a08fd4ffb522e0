"""Prefix sums by buffered linear Toeplitz (BLT) strategies, which need a few rows of memory.

C is lower-triangular Toeplitz with the generating function

    C(x) = Π_i (1 - th'_i·x)/(1 - th_i·x),     1 > th_1 > th'_1 > th_2 > … > th'_m ≥ 0,

so `c_0 = 1` and `c_k = Σ_i om_i·th_i^(k-1)`, `om_i = Π_j (th_i - th'_j)/Π_{j≠i} (th_i - th_j)`: encoding needs one
buffer for each i. The inverse has the same form with the two sets exchanged and weights `om'_i < 0`, so decoding needs
as many. `B = A·C⁻¹` has coefficients `b_k = b + Σ_i be_i·th'_i^k`, `b = 1/C(1)`, `be_i = -om'_i/(1 - th'_i)`, all
positive. Column norms and errors are sums of geometric series, in closed form:

    ‖C e_1‖² = 1 + Σ_ij om_i·om_j·G(th_i·th_j, n - 1),   error_k² = Σ_{l<k} b_l²,   G(r, n) = (1 - rⁿ)/(1 - r).

c falls and is positive, so the first column is the longest. If one unit has rows in several blocks, the worst pattern
is known, too (`strategy.toeplitz_sensitivity`), and its norm takes one geometric series for each block
(`pattern_squares`).

(Dvijotham, McMahan, Pillutla, Steinke, Thakurta, *Efficient and Near-Optimal Noise Generation for Streaming
Differential Privacy*, 2024; McMahan, Xu, Zhang, *A Hassle-free Algorithm for Private Learning in Practice*, 2024.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array, Arrays, fixed
from taciturn.kernel.errors import InvalidInput, integer
from taciturn.kernel.mechanisms.strategy import LastingCoder, OneRowEach
from taciturn.kernel.stream.protocols import damaged

Decays = tuple[tuple[float, ...], tuple[float, ...]]
Weights = tuple[tuple[float, ...], tuple[float, ...]]
Numbers = tuple[Array, Array, Array, Array]
APART = 1e-15  # least distance of two decays
_CHUNK = 2**14  # blocks of one unit that are added up at a time


@dataclass(frozen=True)
class BLTCoder(OneRowEach):
    """The strategy of these two sets of decays, for n rows; wherever they come from, they are validated.

    Weights follow from decays up to rounding, which differs between machines. A stream needs one C for all its rows, so
    a state stores the weights, too, for a resumption on another machine.
    """

    n: int
    decays: tuple[float, ...]
    inverse_decays: tuple[float, ...]
    weights: Weights | None = None
    arrays: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", integer("n", self.n))
        object.__setattr__(self, "arrays", checked_arrays(self.decays, self.inverse_decays, self.weights))

    @cached_property
    def numbers(self) -> Arrays:
        """Decays of C and of its inverse, and their weights: four rows."""
        return {"decays": fixed(np.array(self.arrays))}

    @classmethod
    def restored(cls, n: int, buffers: int, numbers: Any) -> BLTCoder:
        """The strategy of such numbers, out of a state."""
        return cls(n, *restored_numbers(buffers, numbers))

    @property
    def integer(self) -> bool:
        return False

    @property
    def sensitivity(self) -> float:
        th, _, om, _ = self.arrays
        return math.sqrt(1.0 + float(squares(om, th, self.n - 1.0))) * (1.0 + 1e-12 + self.n * 2.0**-51)

    def sensitivity_to(self, participation: Participation) -> float:
        """Exactly: the norm of the worst pattern, see `toeplitz_sensitivity`."""
        if participation == ONCE:
            return self.sensitivity
        th, _, om, _ = self.arrays
        return math.sqrt(float(pattern_squares(om, th, self.n, participation))) * (1.0 + 1e-12 + self.n * 2.0**-51)

    @property
    def row_norm(self) -> float:
        th, _, om, _ = self.arrays
        return float(1.0 + np.sum(om * series(th, self.n - 1.0)))

    @property
    def rounding_error(self) -> float:
        """`u·(1 + Σ_{0<a<n} c_a·(2a + m))`, u = 2⁻⁵³, with `Σ a·th^(a-1)` of a buffer bounded by `K·min(K, n/2)`.

        *Proof.* Encoded a rows later, x_l has been multiplied by th and added to a - 1 times, after it was added to the
        buffer; then by om, and added up with m other terms. So its coefficient in each of the m terms, all of which are
        positive, is off by 2a + m factors between 1 - u and 1 + u at most, and in all it is off by `c_a·(2a + m)·u`,
        up to terms in u². With `K = G(th, n - 1)`, the sum `Σ_{0<a<n} a·th^(a-1) = Σ_b th^(b-1)·G(th, n - b)` is at
        most K², and at most `K·n/2` by Chebyshev's inequality, as a grows where th^(a-1) falls. ∎ (A product and a sum
        that are fused, or sums in another order, have no more roundings.)
        """
        th, _, om, _ = self.arrays
        K = series(th, self.n - 1.0)
        delays = K * np.minimum(K, self.n / 2.0)
        return 2.0**-53 * (1.0 + 1e-6) * float(1.0 + np.sum(om * (2.0 * delays + len(om) * K)))

    def error(self, k: ArrayLike) -> Array:
        th, ph = self.arrays[:2]
        return np.sqrt(prefix_squares(th, ph, np.asarray(k, dtype=np.float64)))

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        m = len(self.decays)
        return {"buffers": np.zeros((m, size))}, {"buffers": np.zeros((m, size)), "sum": np.zeros(size)}

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """`x_k + Σ om_i·s_i`, and then `s_i ← th_i·s_i + x_k`."""
        th, _, om, _ = self.arrays
        buffers = secret["buffers"]
        return {"buffers": th[:, None] * buffers + row}, (row + om @ buffers)[None, :]

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The inverse in the same way, and its prefix sum."""
        _, ph, _, om = self.arrays
        buffers = public["buffers"]
        row = noisy[0]
        total = public["sum"] + row + om @ buffers
        return {"buffers": ph[:, None] * buffers + row, "sum": total}, total


@dataclass(frozen=True)
class RestartedCoder(LastingCoder):
    """A BLT for n rows, which starts again after every n: prefix sums of a stream that never ends.

    C is block-diagonal, with that of the BLT in every block. So is its inverse, and a prefix sum is that of the rows of
    its own block, added to the last sum of the block before. At most n encoded rows depend on a row: those of its own
    block, as buffers are emptied at its end. So one example costs what it costs in the stream of n rows; rounding
    errors and the sampler are charged for n rows, too, and the stream may go on for ever.

    What grows is the noise, with the number of blocks: `error_k² = q·error_n² + error_r²`, `k = q·n + r`,
    `1 ≤ r ≤ n`. In the first block it is that of the BLT; after q blocks it is less than sqrt(q + 1) times the largest
    there, while the sums are of q times as many rows.

    Examples
    --------
    >>> from taciturn import BLT
    >>> coder = RestartedCoder(BLT(2).coder(4))
    >>> coder.matrices(6)[1].round(2)
    array([[1.  , 0.  , 0.  , 0.  , 0.  , 0.  ],
           [0.5 , 1.  , 0.  , 0.  , 0.  , 0.  ],
           [0.37, 0.5 , 1.  , 0.  , 0.  , 0.  ],
           [0.31, 0.37, 0.5 , 1.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.  , 1.  , 0.  ],
           [0.  , 0.  , 0.  , 0.  , 0.5 , 1.  ]])
    """

    inner: BLTCoder

    @property
    def life(self) -> int:
        """Encoded rows that depend on a row, at most."""
        return self.inner.n

    @property
    def integer(self) -> bool:
        return False

    @property
    def sensitivity(self) -> float:
        return self.inner.sensitivity

    @property
    def row_norm(self) -> float:
        return self.inner.row_norm

    @property
    def rounding_error(self) -> float:
        return self.inner.rounding_error

    @property
    def numbers(self) -> Arrays:
        """Those of the BLT."""
        return self.inner.numbers

    def error(self, k: ArrayLike) -> Array:
        blocks, place = np.divmod(np.asarray(k, dtype=np.float64) - 1.0, self.inner.n)
        return self.with_earlier(blocks, self.inner.error(place + 1.0))

    def with_earlier(self, blocks: ArrayLike, error: Array) -> Array:
        """The error of a sum, from that within its block, and the number of blocks before."""
        return np.asarray(np.sqrt(np.asarray(blocks) * self._squared + error**2))

    @cached_property
    def _squared(self) -> float:
        return float(self.inner.error(self.inner.n)) ** 2

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        return self.inner.start(size)

    def stretches(self, k: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Rows k to k + count - 1, counted from 0, by block: the first, the one after the last, block and place.

        >>> from taciturn import BLT
        >>> list(RestartedCoder(BLT(1).coder(4)).stretches(3, 5))
        [(0, 2, 0, 3), (2, 5, 1, 1)]
        """
        start = 0
        while start < count:
            block, place = divmod(int(k) - 1 + start, self.inner.n)
            end = min(count, start + self.inner.n - place)
            yield start, end, block, place + 1
            start = end

    def opened(self, secret: Arrays, public: Arrays, place: int) -> tuple[Arrays, Arrays]:
        """The memories for the row at this place of a block: at its first, buffers are empty, and the sum goes on."""
        if place != 1:
            return secret, public
        return (
            secret | {"buffers": np.zeros_like(secret["buffers"])} if secret else secret,
            public | {"buffers": np.zeros_like(public["buffers"])} if public else public,
        )

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """As the BLT, from empty buffers at the first row of a block."""
        ((_, _, _, place),) = self.stretches(k, 1)
        return self.inner.encode(self.opened(secret, {}, place)[0], row, place)

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """As the BLT, from empty buffers at the first row of a block, and the sum of all blocks before."""
        ((_, _, _, place),) = self.stretches(k, 1)
        return self.inner.decode(self.opened({}, public, place)[1], noisy, place)


def checked_arrays(decays: tuple[float, ...], inverse_decays: tuple[float, ...], given: Weights | None) -> Numbers:
    """Decays of C and of its inverse, and the weights of both, as arrays; `InvalidInput` for what has a `flaw`."""
    if wrong := flaw(decays, inverse_decays, given):
        raise InvalidInput(f"{wrong}. Take them from a fit, or from the state of a stream.")
    th, ph = np.array(decays), np.array(inverse_decays)
    om, inverse = map(np.array, given) if given is not None else (weights(th, ph), weights(ph, th))
    return fixed(th), fixed(ph), fixed(om), fixed(inverse)


def flaw(decays: tuple[float, ...], inverse_decays: tuple[float, ...], given: Weights | None) -> str:
    """What is wrong with decays and weights, in words; if it is empty, the closed forms hold for them.

    Those of C hold for any positive weights. That decoding inverts C matters for accuracy, not for privacy.
    """
    falls = "decays should fall from below 1, and their weights be positive"
    if not in_order((decays, inverse_decays)):
        return falls
    th, ph = np.array(decays), np.array(inverse_decays)
    fresh = np.array((weights(th, ph), weights(ph, th)))
    stated = fresh if given is None else np.array(given)
    if not (stated[0] > 0.0).all():
        return falls
    if stated.shape != fresh.shape or not np.allclose(fresh, stated, rtol=1e-9, atol=0.0):
        return "weights should be those of their decays"
    return ""


def restored_numbers(buffers: int, numbers: Any) -> tuple[tuple[float, ...], tuple[float, ...], Weights]:
    """Decays of C and of its inverse, and the weights of both, from the numbers of a state, validated."""
    given = np.asarray(numbers)
    if given.dtype != np.float64 or given.ndim != 2 or len(given) != 4 or not 0 < given.shape[1] <= buffers:
        raise damaged("decays should be four rows of floats")
    th, ph, om, inverse = (tuple(map(float, row)) for row in given)
    if wrong := flaw(th, ph, (om, inverse)):
        raise damaged(wrong)
    return th, ph, (om, inverse)


def in_order(decays: tuple[tuple[float, ...], ...]) -> bool:
    """Whether these are two sets of decays as above, as far apart as those of a fit."""
    if len(decays) != 2 or len(decays[0]) != len(decays[1]):
        return False
    falling = [1.0, *(each for pair in zip(*decays, strict=True) for each in pair)]
    return len(falling) > 1 and falling[-1] >= 0.0 and all(a - b > APART for a, b in pairwise(falling))


def weights(th: Array, ph: Array) -> Array:
    """`om_i = Π_j (th_i - th'_j)/Π_{j≠i} (th_i - th_j)`, along the last axis."""
    above = np.prod(th[..., :, None] - ph[..., None, :], axis=-1)
    apart = th[..., :, None] - th[..., None, :] + np.eye(th.shape[-1])
    return np.asarray(above / np.prod(apart, axis=-1))


def series(r: Array, n: ArrayLike) -> Array:
    """`1 + r + … + r^(n-1)`."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.expm1(np.asarray(n) * np.log(r)) / (r - 1.0))


def _below_one(logs: Array) -> Array:
    """`exp(logs) - 1` of negative logarithms, to a relative 2⁻⁴³; by the slow `expm1` only where that needs it."""
    value = np.exp(logs) - 1.0
    near = logs > -(2.0**-10)
    value[near] = np.expm1(logs[near])
    return np.asarray(value)


def pairs(x: Array) -> Array:
    """`x_i·x_j` of all pairs, along the last axis."""
    return np.asarray(x[..., :, None] * x[..., None, :])


def squares(weights: Array, decays: Array, n: float) -> Array:
    """`Σ_{k<n} (Σ_i weights_i·decays_i^k)²`."""
    return np.sum(pairs(weights) * series(pairs(decays), n), axis=(-2, -1)) if n > 0 else np.zeros(decays.shape[:-1])


def pattern_squares(om: Array, th: Array, n: int, participation: Participation) -> Array:
    """`‖C u‖²` of the worst pattern u: as many rows as are allowed in each of the blocks 0, apart, 2·apart and so on.

    Before the j-th of them, buffer i holds `s_i = m·th_i^(apart-1)·G(th_i^apart, j)`. That block encodes
    `u_j + Σ om_i·s_i` and leaves `s'_i = th_i·s_i + u_j`; those up to the next one encode `Σ om_i·s'_i·th_i^t`, whose
    squares are a geometric series. All terms are positive, so rounding errors stay relative. Weights out of a state may
    be rounded up, so that c_1 exceeds `c_0 = 1`; then a larger matrix, with c_0 = c_1, is bounded.
    """
    apart = participation.apart
    count = min(participation.blocks, 1 + (n - 1) // apart)
    u = participation.multiplicities[:count]
    largest = np.maximum(1.0, np.sum(om, axis=-1))
    squared = np.zeros(th.shape[:-1])
    for first in range(0, count, _CHUNK):
        j = np.arange(max(first, 1), min(first + _CHUNK, count))[:, None]
        before = u[0] * (th ** (apart - 1.0))[..., None, :] * series((th**apart)[..., None, :], j)
        if first == 0:
            before = np.concatenate([np.zeros((*th.shape[:-1], 1, th.shape[-1])), before], axis=-2)
        rows = u[first : first + _CHUNK]
        encoded = rows * largest[..., None] + np.einsum("...ji,...i->...j", before, om)
        after = om[..., None, :] * (th[..., None, :] * before + rows[:, None])
        squared = squared + np.einsum("...j,...j->...", encoded, encoded)
        ends = first + len(rows) == count
        inner, last = (after[..., :-1, :], after[..., -1, :]) if ends else (after, None)
        if apart > 1 and inner.shape[-2]:
            between = series(pairs(th), apart - 1.0)
            squared = squared + np.einsum("...ji,...ik,...jk->...", inner, between, inner, optimize=True)
        if last is not None:
            squared = squared + squares(last, th, n - 1.0 - apart * (count - 1))
    return np.asarray(squared)


def coefficients(th: Array, ph: Array) -> tuple[Array, Array]:
    """`b` and `be_i` of `b_k = b + Σ be_i·th'_i^k`."""
    return np.prod((1.0 - th) / (1.0 - ph), axis=-1), -weights(ph, th) / (1.0 - ph)


def prefix_squares(th: Array, ph: Array, k: Array) -> Array:
    """`Σ_{l<k} b_l²`, for one strategy and many k, or for many strategies and one k."""
    b, be = coefficients(th, ph)
    with np.errstate(divide="ignore"):
        gone = _below_one(k[..., None] * np.log(ph))  # e_i = th'_i^k - 1; of products of two: e_i + e_j + e_i·e_j
    single = be / (ph - 1.0)
    weights = pairs(be) / (pairs(ph) - 1.0)
    rows = np.einsum("...i,...ij->...j", gone, weights)  # not BLAS, which rounds by how many there are
    rows = rows * (gone + 2.0) + 2.0 * b[..., None] * single * gone
    return np.asarray(b * b * k + np.einsum("...i->...", rows))
