"""A client of diffprivlib, which runs in a process and environment of its own: it needs an older scikit-learn.

`make bench` creates that environment (`.venv-diffprivlib`, from `benchmarks/diffprivlib.txt`). Its process runs
`diffprivlib_server.py`, which answers requests, a line of JSON each; `clock` is its own CPU time, so that it takes
turns with the other contenders.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
PYTHON = HERE.parent / ".venv-diffprivlib" / "bin" / "python"


class Diffprivlib:
    """The process in the other environment; `with` ends it. Requests call functions of the server by name."""

    def __init__(self, python: Path = PYTHON, script: Path = HERE / "diffprivlib_server.py") -> None:
        if not python.exists():
            raise SystemExit(f"There is no {python}: `make bench` installs diffprivlib there.")
        self._process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, name: str, **arguments: Any) -> Any:
        """What the function of that name returns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"diffprivlib's process ended during {name!r}: see its messages above.")
        return json.loads(answer)

    def clock(self) -> float:
        """CPU seconds of the other process."""
        return float(self.call("clock"))

    def __enter__(self) -> Diffprivlib:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
