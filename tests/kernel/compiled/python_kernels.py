"""The compiled kernels run as plain Python, one of them with a planted fault."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import taciturn.kernel.compiled
import taciturn.kernel.noise.ziggurat  # so that it stays compiled
from taciturn.kernel import jit

ORDER = ("_dot", "lattice", "losses", "sets", "tree", "blt", "averages", "clipping", "qftl", "igd")
ORDER += ("multiclass", "ftrl", "participation")
ORDER += ("class_sums", "waves", "scaling", "linear_bandit", "choices", "linucb")
"""Every kernel, after those it imports."""

UNCOMPILED = ("_simd", "codes", "passes")
"""Modules in the same folder that are not compiled."""


def python_kernels(monkeypatch: pytest.MonkeyPatch, module: str = "", old: str = "", new: str = "") -> None:
    """Replace compiled kernels by their Python source; in `module`, the only occurrence of `old` becomes `new`."""
    for decorator in ("compiled", "strict", "inlined", "summing"):
        monkeypatch.setattr(jit, decorator, lambda function: function)
    for name in ORDER:
        source = Path(taciturn.kernel.compiled.__path__[0], f"{name}.py").read_text(encoding="utf-8")
        if name == module:
            assert source.count(old) == 1, f"{old!r} must stand in {name} once"
            source = source.replace(old, new)
        plain = ModuleType(f"taciturn.kernel.compiled.{name}")
        exec(compile(source, f"plain {name}", "exec"), vars(plain))
        monkeypatch.setitem(sys.modules, plain.__name__, plain)
        monkeypatch.setattr(taciturn.kernel.compiled, name, plain, raising=False)


def sources() -> set[str]:
    """The names of all modules in the kernels' folder."""
    return {path.stem for path in Path(taciturn.kernel.compiled.__path__[0]).glob("*.py")} - {"__init__"}
