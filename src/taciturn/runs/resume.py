"""Resuming: the rows that a run has learnt from, how they are recognised, and where to read on.

A checkpoint holds no row. It holds a keyed chain over all of them (`RowChain`), the chain at a boundary a few thousand
rows earlier, and the place in the input from which that boundary can be reached (`Checkpoint`). A run that is resumed
from a file starts to read at that place, hashes the rows from the boundary on, and learns from the row after the last
one it has seen: what it reads again does not grow with the run. The whole input can be compared as well.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from cryptography.hazmat.primitives.poly1305 import Poly1305
from numpy.typing import NDArray

from taciturn.errors import StateConflict
from taciturn.kernel.arrays import Array
from taciturn.readers.rows import Position

if TYPE_CHECKING:
    from taciturn.runs.run import Run

BLOCK = 4096
"""Rows in a block of the chain."""
_HASHED = 256
"""Rows that are hashed together."""

Check = Literal["all", "window", "none"]
"""Which of the rows learnt from are compared on resuming: all, those since the boundary, or none."""


Users = NDArray[Any] | None
"""An id for each row, None for a missing one; or no ids."""


class Rows(Protocol):
    """A block of rows (`taciturn.readers.rows.Batch`)."""

    @property
    def X(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def size(self) -> int:
        """Bytes of the source that were read so far."""

    @property
    def start(self) -> Position:
        """The place of the first row in the source."""

    @property
    def users(self) -> Users:
        """The users' ids."""


Bytes = bytearray | memoryview


def _bytes_of(values: Array) -> memoryview:
    """The numbers as 64-bit floats, row after row."""
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1).view(np.uint8).data


class Link(NamedTuple):
    """The chain over the first `row` rows."""

    row: int
    chain: bytes


FIRST = Link(0, bytes(32))


class BlockDigest(NamedTuple):
    """The number of rows of a block, or of its first part, and keyed digests of the rows and, if they have any, ids."""

    rows: int
    digests: tuple[bytes, ...]


class RowDigests:
    """Keyed digests of rows, block after block; the first row has the number `first`, from 0.

    The digest of a block is HMAC-SHA256 of the Poly1305 hashes of its rows, 256 at a time, under a secret key of the
    stream, which takes a seventh of the time of HMAC of the rows. Other rows have the same Poly1305 hash with
    probability `8·⌈L/16⌉ / 2^106` over its key, for L bytes (Bernstein, *The Poly1305-AES message-authentication
    code*, 2005, theorem 3.3): below 2^-80 for 256 rows of a thousand features. A Poly1305 hash that is known would tell
    something about its key and its rows. None leaves this object: HMAC under another key is a random function to
    those without the key.

    Rows of one block may be added by several calls, and not by several workers.

    >>> digests = RowDigests(b"key")
    >>> digests.add(np.zeros((5000, 1)), np.zeros(5000))
    >>> [block.rows for block in digests.take_complete()], digests.open.rows
    ([4096], 904)
    """

    def __init__(self, key: bytes, first: int = 0) -> None:
        self.key = key
        self._poly1305_key = hmac.digest(key, b"poly1305", "sha256")
        self._at = first  # rows before the next one
        self._complete: list[BlockDigest] = []
        self._known: BlockDigest | None = None  # an open block that a worker has hashed
        self._begin()

    def _begin(self) -> None:
        self._rows = 0
        self._ids: hmac.HMAC | None = None
        self._hashes: list[bytes] = []
        self._features, self._labels = bytearray(), bytearray()  # rows that are not hashed yet

    def add(self, X: Array, y: Array, users: Users = None) -> None:
        """Add the next rows."""
        self._must_go_on(len(y))
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(X.sum()) and np.isfinite(y.sum())
        if not fine:  # rare; an overflow of the sum leads here too, and changes nothing
            bad = ~(np.isfinite(X).all(axis=1) & np.isfinite(y))
            X = np.where(bad[:, None], np.nan, X)
            y = np.where(bad, np.nan, y)
        start = 0
        while start < len(y):
            end = min(len(y), start + _HASHED - self._rows % _HASHED, start + BLOCK - self._at % BLOCK)
            features = _bytes_of(X[start:end])
            labels = _bytes_of(y[start:end])
            if end - start == _HASHED:
                self._hashes.append(self._hash(features, labels))
            else:
                self._features += features
                self._labels += labels
            if users is not None:
                self._ids = self._ids or hmac.new(self.key, b"ids", "sha256")
                ids = "".join(f"{'' if user is None else user}\0" for user in users[start:end])
                self._ids.update(ids.encode("utf-8", "surrogatepass"))
            self._rows += end - start
            self._at += end - start
            start = end
            if self._rows % _HASHED == 0 and self._labels:
                self._hashes.append(self._hash(self._features, self._labels))
                self._features, self._labels = bytearray(), bytearray()
            if self._at % BLOCK == 0:
                self._complete.append(self.open)
                self._begin()

    def _hash(self, features: Bytes, labels: Bytes) -> bytes:
        hashed = Poly1305(self._poly1305_key)
        hashed.update(features)
        hashed.update(labels)
        return hashed.finalize()

    def follow(self, blocks: Sequence[BlockDigest]) -> None:
        """Add blocks that a worker has hashed, from the first row of a block on; only the last may be incomplete."""
        for block in blocks:
            self._must_go_on(block.rows)
            if self._at % BLOCK or block.rows > BLOCK:
                raise RuntimeError("digests of workers begin with a block: the engine that cut the rows is wrong.")
            self._at += block.rows
            if block.rows == BLOCK:
                self._complete.append(block)
            elif block.rows:
                self._known = block

    def _must_go_on(self, rows: int) -> None:
        if rows and self._known is not None:
            raise RuntimeError("rows follow a block of which only the digest is known: the engine is wrong.")

    @property
    def open(self) -> BlockDigest:
        """The block that is not complete, if it has rows."""
        if self._known is not None:
            return self._known
        rest = [self._hash(self._features, self._labels)] if self._labels else []
        rows = hmac.digest(self.key, b"".join([b"rows", *self._hashes, *rest]), "sha256")
        return BlockDigest(self._rows, (rows,) if self._ids is None else (rows, self._ids.digest()))

    def take_complete(self) -> list[BlockDigest]:
        """The complete blocks that were not taken yet."""
        taken, self._complete = self._complete, []
        return taken

    def take_all(self) -> tuple[BlockDigest, ...]:
        """The complete blocks that were not taken yet, and the one that is not complete, if it has rows."""
        return (*self.take_complete(), *([self.open] if self.open.rows else []))


class RowChain:
    """Chain of HMAC-SHA-256 over encoded rows and labels, from a link on.

    Rows are hashed in blocks that end at each multiple of 4,096 rows, counted from the first row of the stream, and

        chain_(i+1) = HMAC(key, rows | chain_i | digest of the rows | of their ids, if there are any),

    so it does not depend on how the rows arrive, and it can be continued from any link. All bad rows, which contain a
    value that is not finite, have the same digest but for their ids: they have no influence. Without the key, which is
    stored in the secret state, the chain reveals nothing about the rows.

    Attributes
    ----------
    rows : int
        Number of rows so far.
    window : Link
        A link at least a full block before the last row, if there is one, else the link that the chain began with.
    value : bytes
        The chain over all rows so far, those of the unfinished block included.

    Examples
    --------
    >>> X, y = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([1.0, -1.0])
    >>> at_once, parts = RowChain(b"key"), RowChain(b"key")
    >>> at_once.add(X, y)
    >>> parts.add(X[:1], y[:1])
    >>> parts.add(X[1:], y[1:])
    >>> at_once.value == parts.value
    True
    """

    def __init__(self, key: bytes, link: Link = FIRST) -> None:
        self.key = key
        self.rows = link.row
        self._last = link
        self.window = link
        self._digests = RowDigests(key, link.row)

    def add(self, X: Array, y: Array, users: Users = None) -> None:
        """Add the next rows."""
        self._digests.add(X, y, users)
        self.rows += len(y)
        self._link()

    def add_digests(self, blocks: Sequence[BlockDigest]) -> None:
        """Add rows of which a worker has computed the digests, from the first row of a block on.

        Nothing can be added after a block that is not complete.
        """
        self._digests.follow(blocks)
        self.rows += sum(block.rows for block in blocks)
        self._link()

    def _link(self) -> None:
        for block in self._digests.take_complete():
            row = self._last.row - self._last.row % BLOCK + BLOCK
            self.window, self._last = self._last, Link(row, self._after(row, block))

    def _after(self, row: int, block: BlockDigest) -> bytes:
        content = b"".join([row.to_bytes(8, "big"), self._last.chain, *block.digests])
        return hmac.digest(self.key, content, "sha256")

    @property
    def value(self) -> bytes:
        """The chain over all rows so far."""
        return self._last.chain if self.rows == self._last.row else self._after(self.rows, self._digests.open)


@dataclass(frozen=True)
class Checkpoint:
    """What a commit stores about the input. It is secret, because of the key.

    Attributes
    ----------
    key : bytes
        Key of the chain.
    end : Link
        The chain over all rows learnt from.
    window : Link
        A link from which the last rows are hashed again, at least a full block before the end if there is one.
    base : Link
        The link that the chain began with: the rows before it were taken on the user's word.
    place : Position, optional
        A place at or before the window from which the input can be read.
    format : str
        Format of the input that has this place.

    Examples
    --------
    >>> made = Checkpoint(b"key", Link(9, b"end"), FIRST, FIRST, Position(0, 2, 16), "csv")
    >>> Checkpoint.from_bytes(made.to_bytes()) == made
    True
    """

    key: bytes
    end: Link
    window: Link
    base: Link
    place: Position | None = None
    format: str = ""

    def to_bytes(self) -> bytes:
        """As JSON."""
        links = {name: [link.row, link.chain.hex()] for name, link in self._links.items()}
        return json.dumps({"key": self.key.hex(), **links, "place": self.place, "format": self.format}).encode()

    @property
    def _links(self) -> dict[str, Link]:
        return {"end": self.end, "window": self.window, "base": self.base}

    @classmethod
    def from_bytes(cls, data: bytes) -> Checkpoint:
        """Read what `to_bytes` wrote."""
        fields = json.loads(data)
        links = {name: Link(fields[name][0], bytes.fromhex(fields[name][1])) for name in ("end", "window", "base")}
        place = None if fields["place"] is None else Position(*fields["place"])
        return cls(bytes.fromhex(fields["key"]), **links, place=place, format=fields["format"])

    def place_in(self, format: str) -> Position | None:
        """Where to start reading an input of this format; None at its beginning."""
        return self.place if self.format == format else None


class SeenRows:
    """The rows that a run has learnt from: their chain, and the places of the last batches.

    Parameters
    ----------
    checkpoint : Checkpoint, optional
        The checkpoint of the run that is resumed; None for a new run.
    check : {"all", "window", "none"}
        Where the chain begins: at the base, at the window, or, on the user's word, at the end of the checkpoint.
    format : str
        Format of the input.
    """

    def __init__(self, checkpoint: Checkpoint | None = None, check: Check = "all", format: str = "") -> None:
        if checkpoint is None:
            checkpoint = Checkpoint(secrets.token_bytes(32), FIRST, FIRST, FIRST)
        self.key = checkpoint.key
        self.base = checkpoint.end if check == "none" else checkpoint.base
        self.format = checkpoint.format if check == "none" else format
        self.chain = RowChain(self.key, checkpoint.window if check == "window" else self.base)
        place = checkpoint.place_in(self.format)
        self._places = deque([] if place is None else [place])

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return self.chain.rows

    def begin_batch(self, place: Position) -> None:
        """Remember where a batch begins; only the last place before the window and those after it are needed."""
        while self._places and self._places[-1].row >= place.row:
            self._places.pop()
        self._places.append(place)
        while len(self._places) > 1 and self._places[1].row <= self.chain.window.row:
            self._places.popleft()

    def add(self, X: Array, y: Array, users: Users = None) -> None:
        """Add the next rows."""
        self.chain.add(X, y, users)

    def add_digests(self, blocks: Sequence[BlockDigest]) -> None:
        """Add rows that workers have hashed."""
        self.chain.add_digests(blocks)

    @property
    def checkpoint(self) -> Checkpoint:
        """What a commit stores."""
        window = self.chain.window
        place = max((place for place in self._places if place.row <= window.row), default=None)
        end = Link(self.rows, self.chain.value)
        return Checkpoint(self.key, end, window, self.base, place, self.format)


class Unseen:
    """The rows of an input that a run has not learnt from yet; rows before them are compared with its checkpoint.

    With the check "none", the first row of the input is taken for the next row of the stream.
    """

    def __init__(self, run: Run, check: Check = "all") -> None:
        run.commit()  # rows that are learnt and not committed, after an interruption, would be learnt again
        self.run = run
        self.check = check
        self.end = run.input.end
        run.seen = self.seen = SeenRows(run.input, check, run.format)
        self._next = self.end.row if check == "none" else None
        self._compare()

    def of(self, block: Rows) -> tuple[Array, Array, Users]:
        """The new rows of the next block of the input."""
        X, y, users = block.X, block.y, block.users
        first = block.start.row if self._next is None else self._next
        self._next = first + len(y)
        if self.check != "none":
            self.seen.begin_batch(block.start)
        if self.seen.rows >= self.end.row:
            return X, y, users
        if first > self.seen.rows:
            raise self._other_rows()
        skipped = min(self.seen.rows - first, len(y))
        new = min(self.end.row - first, len(y))
        self.seen.add(X[skipped:new], y[skipped:new], None if users is None else users[skipped:new])
        self._compare()
        return X[new:], y[new:], None if users is None else users[new:]

    def _compare(self) -> None:
        if self.seen.rows == self.end.row and self.seen.chain.value != self.end.chain:
            raise self._other_rows()

    def _other_rows(self) -> StateConflict:
        first = self.run.input.window.row if self.check == "window" else self.run.input.base.row
        which = f"rows {first + 1:,} to {self.end.row:,}" if first else f"the first {self.end.row:,} rows"
        layout = "; if only its layout changed, add --check-input" if self.check == "window" else ""
        return StateConflict(
            f"{which} are not those that this run learnt from. Pass the same input, from its beginning{layout}; append "
            "new rows at its end."
        )

    def finish(self) -> None:
        """Check that the input had all rows that the run has learnt from."""
        if self.seen.rows < self.end.row:
            found = "earlier" if self._next is None else f"after {self._next:,}"
            raise StateConflict(
                f"this run learnt from {self.end.row:,} rows, but the input ends {found}. Pass the same input, from "
                "its beginning."
            )
