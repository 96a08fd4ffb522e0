"""Exporters: what makes the files of a folder of what a stream in a store has committed.

An exporter reads the store, and has no part in learning: one that was stopped anywhere is called again, in this process
or in another, by `taciturn learn --resume` or by `taciturn export`, and completes its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from taciturn.runs.files import Folder, write_at
from taciturn.runs.journal import complete
from taciturn.store import Saved, Store
from taciturn.streams.stored import StoredStream


class Exporter(Protocol):
    """Makes a file of what is committed; called again after an interruption, it completes the file."""

    def __call__(self, shown: Exported, /) -> None:
        """Write what the file lacks."""


@dataclass
class Exported:
    """A stream in a store, and the folder of the files that show it.

    Parameters
    ----------
    folder : Folder
        The folder, locked by `locked`.
    stream : StoredStream
        The stream.
    exporters : sequence of Exporter
        What makes the files of the folder; `models.jsonl` comes first.
    """

    folder: Folder
    stream: StoredStream
    exporters: Sequence[Exporter] = ()

    def __post_init__(self) -> None:
        self.exporters = (ReleasesFile(), *self.exporters)

    @property
    def store(self) -> Store:
        """Where it is committed."""
        return self.stream.store

    @property
    def saved(self) -> Saved:
        """The stream as the last commit left it."""
        return self.stream.saved

    @property
    def left(self) -> int | None:
        """Rows left before the horizon; None without a horizon."""
        return self.stream.left

    @property
    def committed(self) -> int:
        """Number of rows at the last commit."""
        return self.stream.committed

    @property
    def in_folder(self) -> bool:
        """Whether the store is that of the folder."""
        return self.store.address == str(self.folder.store.absolute())

    def export(self) -> None:
        """Make the files; nothing while rows are learnt and not committed, as those are secret."""
        if self.committed == self.stream.t:
            for exporter in self.exporters:
                exporter(self)


class ReleasesFile:
    """Exporter of `models.jsonl`: what a file lacks of the committed releases is written at its end.

    It reads the store alone. Called for the first time, and after a call that was interrupted, it compares the end of
    the file with the store, by `complete`.
    """

    def __init__(self) -> None:
        self._size: int | None = None  # of the file; None if it is not known to be a first part of the releases
        self._k = 0  # releases in it

    def __call__(self, shown: Exported) -> None:
        """Write the releases that the file lacks."""
        path, stream, saved = shown.folder.models, shown.stream, shown.saved
        size, self._size = self._size, None
        if size is None:
            size = complete(path, stream.read, shown.store.size_of_releases(saved.lineage, saved.position[2]))
        else:
            for chunk in stream.read(self._k):
                write_at(path, size, chunk.content)
                size += len(chunk.content)
        self._k, self._size = saved.position[2], size
