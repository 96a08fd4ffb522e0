"""The folder of a run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from taciturn._util.atomic import Entry

_HALF_WRITTEN = re.compile(r"\.(state\.npz|model\.json|report\.html)\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Folder:
    """Where a run lives, and what its files are called.

    Parameters
    ----------
    path : Path
        Where the folder is, or was when the run began.
    handle : int, optional
        A descriptor of the folder, as `taciturn.runs.files.locked` gives it. Every file is then read and written
        in that folder, wherever its path leads meanwhile: what is locked and what is written to cannot become two.
    """

    path: Path
    handle: int | None = None

    @property
    def state(self) -> Entry:
        """Secret: as sensitive as the rows."""
        return Entry(self.path / "state.npz", self.handle)

    @property
    def models(self) -> Entry:
        """Every release, public."""
        return Entry(self.path / "models.jsonl", self.handle)

    @property
    def model(self) -> Entry:
        """The model to use, public."""
        return Entry(self.path / "model.json", self.handle)

    @property
    def report(self) -> Entry:
        """For people."""
        return Entry(self.path / "report.html", self.handle)

    @property
    def moved(self) -> bool:
        """Whether the path leads to this folder no longer: it was moved or deleted, or a link was changed."""
        if self.handle is None:
            return False
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self.handle))
        except OSError:
            return True

    def sync(self) -> None:
        """Put its names on the disk."""
        self.state.sync_folder()

    def clear(self) -> None:
        """Remove what a killed process left half-written."""
        for name in os.listdir(self.path if self.handle is None else self.handle):
            if _HALF_WRITTEN.fullmatch(name):
                Entry(self.path / name, self.handle).unlink()
