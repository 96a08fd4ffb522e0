"""Sums of a block in the place of its rows: what a worker, or secure aggregation, hands to the one who adds the noise.

`taciturn.kernel.stream.loop.block_statistics` makes them, and `Private.run_sums` releases from them.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from taciturn.kernel.arrays import Array, Integers, fixed
from taciturn.kernel.errors import InvalidInput, StateConflict, Unprovable, integer
from taciturn.kernel.npz import read_npz, write_npz
from taciturn.kernel.problem.inputs import CompressedRows, Rows
from taciturn.kernel.secret import Secret, opened
from taciturn.kernel.stream.fingerprint import fingerprint
from taciturn.kernel.stream.participation import Mask, UserRecords
from taciturn.kernel.stream.protocols import Learner, SumLearner, is_sum

_DIGEST = 32  # bytes
_NONE = Secret(0)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class BlockSums:
    """Exact integer sums of the examples of a block, or of a part of it; `+` adds the parts of one block.

    All of it but the count is secret. It is not pickled: between processes it travels as `to_bytes`, which you protect
    like the data.

    Attributes
    ----------
    count : int
        Number of examples, those without influence included.
    sums : Secret
        The sum of their contributions, a vector of int64 in units of the learner's lattice; given as an array.
    settings : str
        Hash of the learner and, for FTRL, of the released point that they were made with.
    excluded : Secret
        How many of the examples were left without influence, because of their users' bounds; given as an integer.
    digest : bytes
        Keyed digest of the clipped examples and of their place; empty if there was no key. Those of parts add up.

    Examples
    --------
    >>> from taciturn import Privacy, block_statistics, private_sum
    >>> learner = private_sum(2, 1.0, Privacy(1.0, 1e-6), horizon=4).learner
    >>> one = block_statistics(learner, None, [[0.5, 0.0]])
    >>> other = block_statistics(learner, None, [[0.5, -0.5]])
    >>> one + other, one.sums
    (BlockSums(count=2, secrets not shown), Secret(not shown))
    >>> BlockSums.from_bytes(other.to_bytes())
    BlockSums(count=1, secrets not shown)
    """

    count: int
    sums: Secret[Integers]
    settings: str
    excluded: Secret[int] = _NONE
    digest: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", integer("count", self.count, least=0))
        given: Any = self.excluded
        excluded = integer("excluded", opened(given) if isinstance(given, Secret) else given, least=0)
        sums = np.asarray(opened(self.sums) if isinstance(self.sums, Secret) else self.sums)
        if sums.ndim != 1 or sums.dtype != np.int64:
            raise InvalidInput(f"sums must be a vector of 64-bit integers, got {sums.dtype} of {sums.ndim} axes.")
        object.__setattr__(self, "sums", Secret(fixed(sums.copy())))
        object.__setattr__(self, "excluded", Secret(excluded))
        if excluded > self.count:
            raise InvalidInput("a part has more examples without influence than examples. Make it by block_statistics.")
        if len(self.digest) not in (0, _DIGEST):
            raise InvalidInput(f"a digest has {_DIGEST} bytes, or none, got {len(self.digest)}.")

    def __repr__(self) -> str:
        return f"BlockSums(count={self.count}, secrets not shown)"

    def __add__(self, other: BlockSums) -> BlockSums:
        """Both parts together. Integers are added exactly, and an overflow is an error."""
        if not isinstance(other, BlockSums):
            return NotImplemented
        mine, others = opened(self.sums), opened(other.sums)
        if other.settings != self.settings or len(others) != len(mine):
            raise StateConflict(
                "these sums were made by other learners, or at other points. Add up parts of one block."
            )
        if self.digest and self.digest == other.digest:
            raise StateConflict(TWICE)
        sums = mine + others
        if (((mine ^ sums) & (others ^ sums)) < 0).any():  # both have one sign, and their sum has the other
            raise InvalidInput("these sums are too large for 64-bit integers. Give them to run_sums as they are.")
        both = self.digest and other.digest and _added(self.digest, other.digest)
        excluded = Secret(opened(self.excluded) + opened(other.excluded))
        return BlockSums(self.count + other.count, Secret(sums), self.settings, excluded, both or b"")

    def to_bytes(self) -> bytes:
        """All of it, for the process that adds up parts; encrypt it, or send it where the data may go."""
        counts = np.array([self.count, opened(self.excluded)])
        texts = {"settings": np.array(self.settings), "digest": np.frombuffer(self.digest, dtype=np.uint8)}
        content = io.BytesIO()
        write_npz(content, {"counts": counts, "sums": opened(self.sums), **texts})
        return content.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> BlockSums:
        """The sums that `to_bytes` wrote, validated."""
        try:
            arrays = read_npz(io.BytesIO(content))
            count, excluded = arrays["counts"].tolist()
            sums, settings, digest = Secret(arrays["sums"]), str(arrays["settings"]), arrays["digest"].tobytes()
        except (OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile):
            raise InvalidInput("expected the bytes of a BlockSums, got others. Give what its to_bytes made.") from None
        return cls(count, sums, settings, excluded, digest)


TWICE = "the same part was given twice: its digest occurs before. Give every part of a block once."


def _added(one: bytes, other: bytes) -> bytes:
    both: int = (int.from_bytes(one, "big") + int.from_bytes(other, "big")) & ((1 << 8 * _DIGEST) - 1)
    return both.to_bytes(_DIGEST, "big")


class Digest:
    """HMAC-SHA-256 of clipped examples and of the number of rows before them; without the key it reveals nothing.

    >>> one, other = Digest(b"key", first=0), Digest(b"key", first=7)
    >>> for digest in (one, other):
    ...     digest.add(np.ones((2, 3)), np.ones(2))
    >>> len(one.value), one.value == other.value
    (32, False)
    """

    def __init__(self, key: bytes, first: int) -> None:
        self._key = key
        self._first = first
        self._parts = [hmac.new(key, name, "sha256") for name in (b"columns", b"entries", b"labels")]

    def add(self, V: Rows, y: Array) -> None:
        """Add clipped examples."""
        columns, entries, labels = self._parts
        if isinstance(V, CompressedRows):
            starts, places, numbers = V.numbers()
            columns.update(np.diff(starts).astype("<i8").tobytes())
            columns.update(places.astype("<i8").tobytes())
            V = numbers
        entries.update(np.ascontiguousarray(V, dtype="<f8").data)
        labels.update(np.ascontiguousarray(y, dtype="<f8").data)

    @property
    def value(self) -> bytes:
        """The digest of all so far."""
        content = b"".join([self._first.to_bytes(8, "big"), *(part.digest() for part in self._parts)])
        return hmac.digest(self._key, content, "sha256")


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Admission:
    """Which of the next rows of a stream count, if the unit is a user: made by `Private.admit`. Secret.

    Attributes
    ----------
    excluded : Secret
        The rows that do not count, in the order of the stream: they have a round, and no influence.
        `block_statistics` takes `to_bytes(first, end)` of its rows.

    Examples
    --------
    >>> from taciturn import Privacy, User, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=9, unit=User(rows=1), seed=1)
    >>> admission = private.admit(private.start(), ["anna", "bob", "anna"])
    >>> admission, admission.excluded, admission.rows
    (Admission(3 rows, secrets not shown), Secret(not shown), 3)
    """

    excluded: Secret[Mask]
    records: UserRecords
    used: tuple[str, int, int, int, str]  # lineage and position of the state

    def __repr__(self) -> str:
        return f"Admission({self.rows} rows, secrets not shown)"

    @property
    def rows(self) -> int:
        """Number of rows, those that do not count included; public."""
        return len(opened(self.excluded))

    def to_bytes(self, first: int = 0, end: int | None = None) -> bytes:
        """Rows from `first` to `end` for the worker who adds them up, a byte each: 1 for one that does not count."""
        return opened(self.excluded)[first:end].tobytes()

    def fits(self, parts: Iterable[BlockSums]) -> bool:
        """Whether sums are of as many rows, with as many left out."""
        rows = left_out = 0
        for part in parts:
            rows, left_out = rows + part.count, left_out + opened(part.excluded)
        return rows == self.rows and left_out == int(opened(self.excluded).sum())


def none_left_out(parts: Iterable[BlockSums]) -> bool:
    """Whether all rows have influence."""
    return not any(opened(part.excluded) for part in parts)


def as_sum(learner: Learner) -> SumLearner:
    """The learner, if its statistics are sums of integers; else an error that says why.

    >>> from taciturn import GIGA, L2Ball, Logistic, Problem
    >>> as_sum(GIGA(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=1.0)))
    Traceback (most recent call last):
    ...
    taciturn.errors.Unprovable: GIGA steps from each example to the next, so its examples cannot be added up ...
    """
    if is_sum(learner):
        return cast(SumLearner, learner)
    name = type(learner).__name__
    certificate = learner.certificate
    if certificate.reach == "tail":
        raise Unprovable(
            f"{name} steps from each example to the next, so its examples cannot be added up in parts. Use PQFTL, "
            "class sums or private sums, or FTRL in large blocks; or run() on the rows, in one process."
        )
    raise Unprovable(
        f"{name} does not say that its statistics are sums of integers. Use QFTL, FTRL, ClassSums or VectorSum, or "
        "run() on the rows."
    )


def settings_of(learner: Learner, point: Array) -> str:
    """What sums depend on besides the examples: the learner, its bounds included, and the point if it is used."""
    made = fingerprint(learner)
    if not learner.uses_point:
        return made
    return hashlib.sha256(made.encode() + np.ascontiguousarray(point, dtype="<f8").tobytes()).hexdigest()


def check_part(part: BlockSums, learner: SumLearner, settings: str) -> None:
    """Reject sums of another learner, of another point, or larger than so many clipped examples can make them."""
    if part.settings != settings:
        where = ", or at another point than the one released last" if learner.uses_point else ""
        raise StateConflict(
            f"these sums were made by another learner than this stream's, with other bounds perhaps{where}. Make them "
            "by block_statistics(private.learner_at(state), state.point, X, y)."
        )
    sums = opened(part.sums)
    if len(sums) != learner.statistic_size:
        raise InvalidInput(f"sums of {learner.statistic_size} entries were expected, got {len(sums)}.")
    most = learner.certificate.most
    if most is not None and part.count > most:
        raise InvalidInput(f"sums are exact for up to {most:,} examples, got {part.count:,}. Give smaller parts.")
    largest = part.count * learner.most_units
    if ((sums > largest) | (sums < -largest)).any():
        raise InvalidInput(
            "an entry of these sums is larger than clipped examples can make it. Make them by block_statistics, which "
            "clips and rounds every example."
        )
