"""Benchmarks as modules, and as commands."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


def loaded(name):
    """A script as a module while its tests last; it and what it imports from its folder are then forgotten."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(FOLDER))
        yield importlib.import_module(name)
    for each in [key for key, module in sys.modules.items() if _is_ours(module)]:
        del sys.modules[each]


def _is_ours(module):
    return Path(getattr(module, "__file__", None) or "/").parent == FOLDER


def quick(name, folder, timeout=600):
    """What a quick run prints, which is what it saves."""
    command = [sys.executable, f"benchmarks/{name}.py", "--quick", "--json", "--out", str(folder)]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=timeout).stdout
    report = json.loads(text)
    assert report == json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return report
