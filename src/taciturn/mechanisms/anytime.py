"""Prefix sums of a stream of unknown length, by doubling epochs: memory does not grow.

Rows come in epochs of 1, 2, 4, … rows. Within epoch j a new strategy for 2^j rows starts; when an epoch ends, its
total is one row of a second strategy, over at most 24 totals. The k-th sum is the second's sum of the totals of past
epochs plus the first's within this one. One example moves one row of each, so with shares `s` and `1 - s` of mu²,

    C = [sqrt(1 - s)·C_j/‖C_j e_1‖ for every epoch; sqrt(s)·C'/‖C' e_1‖]

has columns of length at most 1. Rows k = 2^j, …, 2^(j+1) - 1 make epoch j.

**Several rows of one unit.** Let w_j of them lie in epoch j. They move what the epoch's own strategy encodes by at most
F_j(w_j), its sensitivity to so many. With `H_ij = ⟨C'e_i, C'e_j⟩`, which falls with the distance of i and j,

    ‖C u‖² ≤ Σ_j (inner_j²·F_j(w_j)² + outer²·(H_jj·w_j² + 2·H_{j-1,j}·w_j·Σ_{i<j} w_i)),

whose maximum over all w is found by dynamic programming over epochs. It is a bound: blocks of two epochs may lie closer
together, and totals that are not neighbours count as if they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array, Arrays
from taciturn.accounting.unit import ONCE, Participation
from taciturn.core.protocols import damaged
from taciturn.errors import InvalidInput, between_0_and_1, integer
from taciturn.mechanisms.blt import BLT, BLTCoder, fitted
from taciturn.mechanisms.prefix_sum import LONGEST, PrefixSum
from taciturn.mechanisms.strategy import Dense

EPOCHS = 24
"""Most epochs of a stream without a horizon."""

SEARCHED = 256
"""Most rows of one unit for which the worst numbers in all epochs are searched."""


@dataclass(frozen=True)
class Anytime(PrefixSum):
    """Prefix sums without a horizon, by doubling epochs of BLT strategies.

    One strategy for the longest stream there can be, `BLT(buffers=8)`, has less noise in all but the first releases of
    an epoch, and is the default.

    Parameters
    ----------
    buffers : int
        Buffers of each of the two strategies, for encoding and for decoding.
    share : float
        Share of the budget (of mu²) for the totals of past epochs.

    Examples
    --------
    >>> from taciturn import Anytime
    >>> round(float(Anytime().errors(2**12).max()), 1) < 6.0
    True
    """

    buffers: int = 5
    share: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "buffers", BLT(self.buffers).buffers)
        object.__setattr__(self, "share", between_0_and_1("share", self.share))

    def coder(self, n: int | None) -> EpochCoder:
        """The same strategy for every n, up to the 2²⁴ - 1 rows of 24 epochs."""
        return EpochCoder(self.buffers, self.share, self._most(n))

    def coder_for(self, n: int | None, participation: Participation) -> EpochCoder:
        """The same, with the strategies of all epochs among its numbers: a sensitivity to several rows needs them."""
        return replace(self.coder(n), all_epochs=participation != ONCE)

    def restored_coder(self, n: int | None, numbers: Arrays) -> EpochCoder:
        """The strategy of a resumed stream, with the decays and weights that it began with."""
        return EpochCoder.with_numbers(self.buffers, self.share, self._most(n), numbers)

    def _most(self, n: int | None) -> int:
        """The number of rows to plan for, validated."""
        n = LONGEST if n is None else integer("the number of releases", n)
        if n >= 2**EPOCHS:
            raise InvalidInput(
                f"Anytime holds {2**EPOCHS - 1:,} releases, got {n:,}. Use BLT(), or publish less often."
            )
        return n


@dataclass(frozen=True)
class EpochCoder(Dense):
    """The strategy of doubling epochs, for `most` rows."""

    buffers: int
    share: float
    most: int
    restored: tuple[tuple[str, BLTCoder], ...] = ()
    all_epochs: bool = False

    def numbers(self, k: int) -> Arrays:
        """The decays and weights of the totals' strategy, of the last epoch's, and of all epochs up to that of row k.

        Those of later epochs are fitted when they start: any will do, as each is divided by its own sensitivity. The
        sensitivity to several rows of one unit depends on them, so that a stream that needs it stores them all.
        """
        epochs = range(self._last + 1) if self.all_epochs else {*range(k.bit_length()), self._last}
        return _decays("totals", self.totals) | {
            name: array for j in sorted(epochs) for name, array in _decays(f"epoch{j}", self.epoch(j)).items()
        }

    @classmethod
    def with_numbers(cls, buffers: int, share: float, most: int, numbers: Arrays) -> EpochCoder:
        """The strategy of a resumed stream, with the decays and weights that it began with."""
        rows = {"totals": EPOCHS} | {f"epoch{j}": 2**j for j in range(EPOCHS)}
        if not {"totals", f"epoch{most.bit_length() - 1}"} <= numbers.keys() <= rows.keys():
            raise damaged("decays of the strategies for epochs are missing")
        made = ((name, BLTCoder.restored(rows[name], buffers, array)) for name, array in sorted(numbers.items()))
        all_epochs = {f"epoch{j}" for j in range(most.bit_length())} <= numbers.keys()
        return cls(buffers, share, most, tuple(made), all_epochs)

    @property
    def integer(self) -> bool:
        return False

    @property
    def sensitivity(self) -> float:
        return 1.0 + 2.0**-48

    def sensitivity_to(self, participation: Participation) -> float:
        """A bound, see above; for more than `SEARCHED` rows the number of rows times `sensitivity`."""
        rows = min(participation.rows, participation.per_release * (1 + (self.most - 1) // participation.apart))
        if rows > SEARCHED or rows <= participation.per_release:
            return rows * self.sensitivity
        complete = (self.most + 1).bit_length() - 1
        totals = replace(self.totals, n=max(complete, 1)).inner_products
        most = np.full(rows + 1, -math.inf)  # by the number of rows so far
        most[0] = 0.0
        for j in range(self._last + 1):
            own, cross = (totals[j, j], totals[max(j - 1, 0), j]) if j < complete else (0.0, 0.0)
            after = most.copy()
            for w, moved in enumerate(self._moved(j, participation), start=1):
                earlier = np.arange(rows + 1.0 - w)
                more = self.inner(j) ** 2 * moved**2 + self.outer**2 * (own * w**2 + 2.0 * cross * w * earlier)
                after[w:] = np.maximum(after[w:], most[: rows + 1 - w] + more)
            allowed = participation.per_release * (1 + (2 ** (j + 1) - 2) // participation.apart)
            after[allowed + 1 :] = -math.inf
            most = after
        bound = math.sqrt(float(np.max(most))) * (1.0 + 1e-12 + self.most * 2.0**-51)
        return min(bound, rows * self.sensitivity)

    def _moved(self, j: int, participation: Participation) -> list[float]:
        """`F_j(w)`, for one row of a unit in epoch j up to as many as are allowed."""
        coder = replace(self.epoch(j), n=min(2**j, self.most + 1 - 2**j))
        each, apart = participation.per_release, participation.apart
        allowed = min(participation.rows, each * (1 + (coder.n - 1) // apart))
        return [coder.sensitivity_to(Participation(w, min(each, w), apart)) for w in range(1, allowed + 1)]

    @property
    def row_norm(self) -> float:
        """A row of totals holds every row so far; entries of C are at most 1."""
        return float(self.most)

    @property
    def rounding_error(self) -> float:
        """That of the longest epoch's rows, or of its total's, which are as large as the sum of all rows.

        And what adding up totals does, by its root mean square over all rows. *Proof.* A total of N rows is added up
        one by one, with partial sums of norm 1, …, N: it is off by `u·N(N + 1)/2` at most, u = 2⁻⁵³, and what is
        encoded of the totals by what all of them are off by, as entries of C' are at most 1. ∎ (Where rows are
        multiples of a lattice step, sums are exact; but not all learners' are.)
        """
        inside = self.inner(self._last) * self.epoch(self._last).rounding_error
        each = max(inside, self.outer * self.totals.rounding_error * self.most) + 2.0**-52 * self.most
        lengths = 2.0 ** np.arange((self.most + 1).bit_length() - 1)  # of complete epochs
        off = self.outer * np.cumsum(lengths * (lengths + 1.0) / 2.0) * 2.0**-53
        return each + (1.0 + 1e-6) * float(np.linalg.norm(off)) / math.sqrt(self.before(self.most + 1))

    @property
    def _last(self) -> int:
        return self.most.bit_length() - 1

    def rows(self, k: int) -> int:
        return 2 if ends(k) else 1

    def before(self, k: int) -> int:
        return k - 1 + k.bit_length() - 1

    def release_of(self, row: int) -> int:
        k = max(1, row - row.bit_length())
        while self.before(k + 1) < row:
            k += 1
        return k

    def error(self, k: ArrayLike) -> Array:
        flat = np.asarray(k, dtype=np.int64).ravel()
        epoch = np.floor(np.log2(flat)).astype(np.int64)
        out = np.empty(len(flat))
        for j in np.unique(epoch):
            here = epoch == j
            inner = self.epoch(int(j)).error(flat[here] - 2 ** int(j) + 1) / self.inner(int(j))
            outer = self.totals.error(int(j)) / self.outer if j > 0 else 0.0
            out[here] = np.hypot(inner, outer)
        return out.reshape(np.shape(k))

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        return self.memory_after(size, 0)

    def memory_after(self, size: int, k: int) -> tuple[Arrays, Arrays]:
        """Memories of the shapes that they have after row k: those of its epoch, whose strategy has its own buffers."""
        epoch_secret, epoch_public = self.epoch(max(k, 1).bit_length() - 1).start(size)
        past_secret, past_public = self.totals.start(size)
        secret = named("epoch", epoch_secret) | named("past", past_secret) | {"total": np.zeros(size)}
        public = named("epoch", epoch_public) | named("past", past_public) | {"past": np.zeros(size)}
        return secret, public

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """The epoch's row and, at its end, that of its total."""
        j = k.bit_length() - 1
        within = self.epoch(j).start(len(row))[0] if begins(k) else part("epoch", secret)
        within, rows = self.epoch(j).encode(within, row, k - 2**j + 1)
        total = (0.0 if begins(k) else secret["total"]) + row
        past = part("past", secret)
        rows = rows * self.inner(j)
        if ends(k):
            past, last = self.totals.encode(past, total, j + 1)
            rows = np.concatenate([rows, last * self.outer])
        return named("epoch", within) | named("past", past) | {"total": total}, rows

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The sum of past totals, and that within the epoch."""
        j = k.bit_length() - 1
        within = self.epoch(j).start(noisy.shape[1])[1] if begins(k) else part("epoch", public)
        within, inside = self.epoch(j).decode(within, noisy[:1] / self.inner(j), k - 2**j + 1)
        past = part("past", public)
        before = after = public["past"]
        if ends(k):
            past, after = self.totals.decode(past, noisy[1:] / self.outer, j + 1)
        return named("epoch", within) | named("past", past) | {"past": after}, before + inside

    def epoch(self, j: int) -> BLTCoder:
        return self._coder(f"epoch{j}", 2**j)

    @property
    def totals(self) -> BLTCoder:
        return self._coder("totals", EPOCHS)

    def _coder(self, name: str, n: int) -> BLTCoder:
        """The restored coder of this name, or one that is fitted on this machine."""
        for known, coder in self.restored:
            if known == name:
                return coder
        return _fitted_coder(n, self.buffers)

    def inner(self, j: int) -> float:
        """The factor of epoch j's encoded rows."""
        return math.sqrt(1.0 - self.share) / self.epoch(j).sensitivity

    @property
    def outer(self) -> float:
        return math.sqrt(self.share) / self.totals.sensitivity


def _decays(name: str, coder: BLTCoder) -> Arrays:
    return {name: coder.numbers(1)["decays"]}


def _fitted_coder(n: int, buffers: int) -> BLTCoder:
    return BLTCoder(n, *fitted(n, buffers, "max"))


def begins(k: int) -> bool:
    """Whether row k is the first of an epoch."""
    return k & (k - 1) == 0


def ends(k: int) -> bool:
    """Whether row k is the last of an epoch."""
    return k & (k + 1) == 0


def named(part: str, arrays: Arrays) -> Arrays:
    """Arrays under the name of a part of the memory."""
    return {f"{part}.{name}": array for name, array in arrays.items()}


def part(name: str, arrays: Arrays) -> Arrays:
    """The arrays of a part of the memory, under their own names."""
    return {each[len(name) + 1 :]: array for each, array in arrays.items() if each.startswith(f"{name}.")}
