"""A peer that lives in an environment of its own: diffprivlib, which does not import beside today's scikit-learn.

`make bench` makes that environment (`.venv-diffprivlib`, from `benchmarks/diffprivlib.txt`). Its process runs
`diffprivlib_side.py`, takes orders and answers them, a line of JSON each; `clock` is its own processor time, so that
it takes turns with everybody else.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
PYTHON = HERE.parent / ".venv-diffprivlib" / "bin" / "python"


class Apart:
    """A process in the other environment; `with` ends it. Orders are functions of the script by name."""

    def __init__(self, python: Path = PYTHON, script: Path = HERE / "diffprivlib_side.py") -> None:
        if not python.exists():
            raise SystemExit(f"There is no {python}: `make bench` installs diffprivlib there.")
        self._process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def order(self, name: str, **arguments: Any) -> Any:
        """What the function of that name returns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"diffprivlib's process ended while it did {name!r}: see its words above.")
        return json.loads(answer)

    def clock(self) -> float:
        """Seconds of the processor that the other process has spent."""
        return float(self.order("clock"))

    def __enter__(self) -> Apart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
