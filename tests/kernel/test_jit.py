"""Compiled code is cached on disk, and not used after any source that it was made of has changed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn
from taciturn.kernel import jit
from taciturn.kernel.cache import sources
from taciturn.kernel.learners import igd_loops as steps

INNER = """
from taciturn.kernel.jit import compiled, summing

@summing
def inner(x):
    return x + FACTOR
"""
OUTER = """
from inner import inner
from taciturn.kernel.jit import compiled

@compiled
def outer(x):
    return 2.0 * inner(x)
"""
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
from outer import outer
print(outer(1.0), sum(outer.stats.cache_hits.values()))
"""


def ask(folder):
    """What the outer loop says in a process of its own, and how many loops came from the disk."""
    done = subprocess.run([sys.executable, "-c", ASK, str(folder)], capture_output=True, text=True, check=True)
    value, hits = done.stdout.split()
    return float(value), int(hits)


def test_a_change_to_what_a_loop_calls_is_seen(tmp_path):
    """The loop's own file stays as it is; a second process finds its code on disk, one after the change does not."""
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.replace("FACTOR", "1.0"))
    assert ask(tmp_path) == (4.0, 0)
    assert ask(tmp_path) == (4.0, 1)
    (tmp_path / "inner.py").write_text(INNER.replace("FACTOR", "2.0"))
    assert ask(tmp_path) == (6.0, 0)
    assert ask(tmp_path) == (6.0, 1)


@pytest.mark.parametrize("loop", ["step", "iterates", "root_of_excess"])
def test_the_package_s_loops_are_stamped(loop):
    """With the same stamp: that of the folder, of all loops, and of the file that has the compiler's options."""
    stamp = getattr(steps, loop)._cache._cache_file._source_stamp
    assert stamp == (sources(Path(steps.__file__).parent), jit.shared_sources(), Path(jit.__file__).read_bytes())


def test_what_loops_import_is_stamped():
    """A loop of the package imports, of the package, only other loops, what the stamp names, and the compiler."""
    package = Path(taciturn.__file__).parent
    loops = [*package.rglob("*_loops.py"), *(package / "kernel" / name for name in jit.SHARED if "codes" not in name)]
    assert len(loops) > 15
    fine = {f"taciturn.kernel.{name.removesuffix('.py').replace('/', '.')}" for name in jit.SHARED}
    for path in loops:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and name.startswith("taciturn"):
                assert name in {*fine, "taciturn.kernel.jit"} or name.endswith("_loops"), (path.name, name)
