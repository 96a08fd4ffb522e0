"""The folder of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """Where a run lives, and what its files are called."""

    path: Path

    @property
    def state(self) -> Path:
        """Secret: as sensitive as the rows."""
        return self.path / "state.npz"

    @property
    def models(self) -> Path:
        """Every release, public."""
        return self.path / "models.jsonl"

    @property
    def model(self) -> Path:
        """The model to use, public."""
        return self.path / "model.json"

    @property
    def report(self) -> Path:
        """For people."""
        return self.path / "report.html"

    def clear(self) -> None:
        """Remove what a killed process left half-written."""
        for name in ("state.npz", "model.json", "report.html"):
            for leftover in self.path.glob(f".{name}.*"):
                leftover.unlink()
