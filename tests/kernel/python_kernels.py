"""The compiled kernels run as plain Python, one of them with a planted fault."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import taciturn
import taciturn.kernel.noise.ziggurat  # so that it stays compiled
from taciturn.kernel import jit

ORDER = {
    "kernel": ("dot",),
    "kernel.mechanisms": ("lattice_loops", "tree_loops", "blt_loops"),
    "kernel.problem": ("losses_loops", "sets_loops", "multiclass_loops", "clipping_loops"),
    "kernel.stream": ("participation_loops",),
    "kernel.learners": ("qftl_loops", "igd_loops", "ftrl_loops", "class_sums_loops", "linear_bandit_loops"),
    "tables": ("waves_loops", "scaling_loops"),
    "_util": ("averages_loops",),
    "bandits": ("choices_loops", "linucb_loops"),
}
"""Every kernel, by its package, after those it imports."""


def python_kernels(monkeypatch: pytest.MonkeyPatch, module: str = "", old: str = "", new: str = "") -> None:
    """Replace compiled kernels by their Python source; in `module`, the only occurrence of `old` becomes `new`.

    `module` is named without `_loops`.
    """
    for decorator in ("compiled", "strict", "inlined", "summing"):
        monkeypatch.setattr(jit, decorator, lambda function: function)
    for place, names in ORDER.items():
        package = importlib.import_module(f"taciturn.{place}")
        for name in names:
            source = Path(package.__path__[0], f"{name}.py").read_text(encoding="utf-8")
            if name.removesuffix("_loops") == module:
                assert source.count(old) == 1, f"{old!r} must stand in {name} once"
                source = source.replace(old, new)
            plain = ModuleType(f"{package.__name__}.{name}")
            exec(compile(source, f"plain {name}", "exec"), vars(plain))
            monkeypatch.setitem(sys.modules, plain.__name__, plain)
            monkeypatch.setattr(package, name, plain, raising=False)


def sources() -> set[str]:
    """The names of all modules with compiled loops, the sampler's excepted."""
    return {"dot"} | {path.stem for path in Path(taciturn.__path__[0]).rglob("*_loops.py")}
