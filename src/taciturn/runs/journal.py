"""`models.jsonl`: one line per release (`taciturn.streams.lines`), in order, each written after it was committed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from taciturn.errors import StateConflict
from taciturn.kernel.atomic import Entry
from taciturn.runs.files import write_at
from taciturn.store import Chunk

Outbox = Callable[[int], Iterable[Chunk]]
"""The chunks of committed releases, in order, from the one that holds the release after a number on."""


def complete(path: str | os.PathLike[str], outbox: Outbox, size: int | None = None) -> int:
    """Write the releases of an outbox that a file does not hold yet, and return the size of the file.

    The file must hold a first part of the outbox, be it nothing; after a power cut it may have blocks of zeros in the
    place of its last chunk. Anything else is rejected, and the file stays as it is. What is compared begins with the
    chunk of the last complete line, so the time does not grow with the file; that no line before it is missing follows
    from the `size` that the complete file must have, if it is known.
    """
    path = Entry.of(path)
    last, end = _last_line(path)
    after = max(last - 1, 0)
    length = _length_to(outbox(after), last)
    start = -1 if length is None else end - length
    if start < 0 or not _is_part_of(path, start, outbox(after), size):
        raise StateConflict(
            f"{path} holds releases that this run has not made: its store is older than what was released, and would "
            "release the same rounds again; or lines of the file are missing. Restore the newest store and file, or "
            "start a new run in another folder, which spends the budget again."
        )
    place = start
    for chunk in outbox(after):
        if _part(path, place, len(chunk.content)) != chunk.content:
            write_at(path, place, chunk.content)
        place += len(chunk.content)
    if path.size > place:
        write_at(path, place, b"")
    return place


def _length_to(chunks: Iterable[Chunk], last: int) -> int | None:
    """Length of the first chunk up to the end of the line of release `last`; None if that is not in it."""
    if last == 0:
        return 0
    chunk = next(iter(chunks), None)
    if chunk is None or not chunk.first <= last <= chunk.last:
        return None
    lines = chunk.content.split(b"\n")[: last - chunk.first + 1]
    return sum(map(len, lines)) + len(lines)


def _is_part_of(path: Entry, start: int, chunks: Iterable[Chunk], size: int | None) -> bool:
    """Whether the bytes of a file from `start` on are the first of the chunks, or zeros in their place."""
    place = start
    for chunk in chunks:
        present = np.frombuffer(_part(path, place, len(chunk.content)), dtype=np.uint8)
        expected = np.frombuffer(chunk.content, dtype=np.uint8)[: len(present)]
        if ((present != expected) & (present != 0)).any():
            return False
        place += len(chunk.content)
    return size in (None, place) and not any(_part(path, place, path.size))


def last_lines(path: str | os.PathLike[str], count: int) -> list[dict[str, Any]]:
    """The last `count` releases of a file, oldest first; only those in its last 4 MB."""
    path = Entry.of(path)
    size = path.size
    place = max(0, size - 2**22)
    lines = _part(path, place, size - place).split(b"\n")[:-1]
    return [json.loads(line) for line in (lines[1:] if place else lines)[-count:]]


def _last_line(path: Entry) -> tuple[int, int]:
    """The number of the last release whose line is complete, and where that ends; zeros if it cannot be read."""
    size = path.size
    step = 2**16
    while True:
        first = max(0, size - step)
        text = _part(path, first, step)
        end = text.rfind(b"\n") + 1
        start = text.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if start or not first:
            break
        step *= 4
    try:
        return int(json.loads(text[start:end])["k"]), first + end
    except (ValueError, KeyError, TypeError):
        return 0, 0


def _part(path: Entry, place: int, size: int) -> bytes:
    if not path.exists():
        return b""
    with path.reader() as file:
        file.seek(place, os.SEEK_SET)
        return file.read(size)
