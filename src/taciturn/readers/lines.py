"""Rows from a stream of bytes: from a file in blocks of a stated number, and at most a second of a live input.

**Where blocks end** depends on the number of rows, and for a live input on the clock, and never on how long a row is:
what is computed from a block may be rounded by the number of its rows, so that the length of one row would reach the
others. Memory is bounded by handing a block over in parts.

A row is a line, which ends at a newline and nowhere else, unless a reader says where rows end: those of CSV may contain
newlines (`taciturn.readers.csv.record_ends`). A line longer than a megabyte is truncated just above that length: its
reader rejects it, and memory stays bounded.
"""

from __future__ import annotations

import io
import math
import select
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import numpy as np

from taciturn.kernel.arrays import Integers
from taciturn.kernel.problem.row_wise import RowWise

LONGEST = 2**20
"""Largest length of a line in bytes; longer lines are bad rows."""

_CHUNK = 2**22  # bytes read at once
_PAUSE = 0.1  # seconds without input after which the lines of a live input are used
_PATIENCE = 1.0  # seconds after which they are used although more input arrives


RowEnds = Callable[[bytes, bool], Integers]
"""Where the rows of a block of complete lines end; the last may be left open, unless nothing follows the block."""


class Part(NamedTuple):
    """Complete rows of one block, and whether they are the last of it."""

    content: bytes
    last: bool


class Lines(RowWise):
    r"""The lines of a stream; with `skip_mark`, a UTF-8 byte order mark at its start is skipped.

    `start` is the number of bytes of the source before the stream's present position, at which a line begins.

    >>> lines = Lines(io.BytesIO(b"a,b\n1,2\n3,4\n5,6"))
    >>> lines.first()
    b'a,b\n'
    >>> for part in lines.parts(most=2):
    ...     print(lines.offset(), part.content)
    4 b'1,2\n3,4\n'
    12 b'5,6'
    """

    def __init__(
        self,
        stream: IO[bytes],
        position: Callable[[], int] | None = None,
        *,
        skip_mark: bool = False,
        start: int = 0,
    ) -> None:
        self._arrivals = _arrivals(stream)
        self._pending = b""
        self._ended = False
        self._pauses = False  # whether the input does, after the pending bytes
        self._skipping = False  # the rest of a line that is too long
        self._block = self._used = start  # where the latest block and the pending bytes begin, not counting gaps
        self._gaps: list[list[int]] = []  # bytes cut out of lines that are too long: where, and how many
        self._dropped = 0  # bytes of the gaps before the latest block, which are no longer listed
        self._position = position
        self._mark_due = skip_mark

    @property
    def size(self) -> int:
        """Bytes of the source that were read."""
        return self._position() if self._position else self.offset(self._used - self._block)

    def offset(self, at: int = 0) -> int:
        """Bytes of the decompressed source before byte `at` of the latest block."""
        place = self._block + at
        return place + self._dropped + sum(length for gap, length in self._gaps if gap <= place)

    def first(self, ends: RowEnds | None = None) -> bytes:
        """Read the first row."""
        return next((part.content for part in self.parts(1, ends)), b"")

    def parts(self, most: int, ends: RowEnds | None = None) -> Iterator[Part]:
        """The other rows, as they arrive, in parts of blocks of `most` rows; by default each row is a line.

        Where a live input pauses, a block ends with fewer. A block that is not full is handed over in parts if it is
        large, but for its last row, which stays until it is known whether the input pauses.
        """
        left = most  # rows of the present block that are to come
        while True:
            end = len(self._pending) if self._ended else self._pending.rfind(b"\n") + 1
            if end:
                pending, pauses = self._pending[:end], self._pauses
                found = line_ends(pending) if ends is None else ends(pending, self._ended)
                if not (pauses or self._ended):
                    whole = len(found) - (len(found) - left) % most if len(found) >= left else 0  # rows of full blocks
                    found = found[:whole] if whole or len(self._pending) < 2 * _CHUNK else found[:-1]
                full, at = found[left - 1 :: most].tolist(), 0
                for to in dict.fromkeys([*full, *found[-1:].tolist()]):
                    yield Part(self._use(to - at), pauses or to in full)
                    at = to
                left = most if pauses else most - (most - left + len(found)) % most
            elif self._ended:
                return
            if not self._ended:
                self._fill()

    def _use(self, end: int) -> bytes:
        used, self._pending = self._pending[:end], self._pending[end:]
        self._block = self._used
        self._used += end
        while self._gaps and self._gaps[0][0] <= self._block:
            self._dropped += self._gaps.pop(0)[1]
        return used

    def _fill(self) -> None:
        arrived, self._pauses = next(self._arrivals, (b"", False))
        if not arrived:
            self._ended = True
            return
        if self._skipping:
            end = arrived.find(b"\n")
            self._gaps[-1][1] += len(arrived) if end < 0 else end
            arrived, self._skipping = (b"", True) if end < 0 else (arrived[end:], False)
        self._pending += arrived
        if self._mark_due:
            if len(self._pending) < len(BOM_UTF8) and BOM_UTF8.startswith(self._pending):
                return  # a mark may arrive in several chunks
            self._mark_due = False
            if self._pending.startswith(BOM_UTF8):
                self._use(len(BOM_UTF8))
        unfinished = self._pending.rfind(b"\n") + 1
        if len(self._pending) - unfinished > LONGEST + 1:
            kept = unfinished + LONGEST + 1
            self._gaps.append([self._used + kept, len(self._pending) - kept])
            self._pending, self._skipping = self._pending[:kept], True


def line_ends(block: bytes) -> Integers:
    r"""Where the lines of a block end, newline included; the last may lack one.

    >>> line_ends(b"a\nbc\nd")
    array([2, 5, 6])
    """
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")).astype(np.int64) + 1
    return ends if block.endswith(b"\n") or not block else np.append(ends, len(block))


def _arrivals(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Bytes as they arrive, and whether a pipe or a terminal pauses after them, or has not paused for a second.

    A read of a buffered pipe returns what is available and leaves its buffer empty, so `select` can tell if more is.
    """
    ready = _watch(stream)
    if ready is None:
        while chunk := stream.read(_CHUNK):
            yield chunk, False
        return
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    deadline = math.inf
    while chunk := read(_CHUNK):
        arrived, length = [chunk], len(chunk)
        deadline = min(deadline, time.monotonic() + _PATIENCE)
        while not (pauses := time.monotonic() >= deadline or not ready(_PAUSE)) and length < _CHUNK:
            if not (chunk := read(_CHUNK)):
                break
            arrived.append(chunk)
            length += len(chunk)
        yield b"".join(arrived), pauses
        deadline = math.inf if pauses else deadline


def _watch(stream: IO[bytes]) -> Callable[[float], bool] | None:
    """A function that tells whether more can be read within some seconds; None for files, which never wait."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None
    if stream.seekable():
        return None

    def ready(seconds: float) -> bool:
        try:
            return bool(select.select([descriptor], [], [], seconds)[0])
        except (OSError, ValueError):  # this system cannot select on pipes: use what arrived
            return False

    return ready
