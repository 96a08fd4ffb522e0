"""Scripts of `benchmarks/` as modules."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script():
    """Imports a script by name; the scripts and what they share are removed from `sys.modules` afterwards.

    A folder of tests may have the name of a script (`tests/noise`), and be imported already.
    """
    names = {path.stem for path in FOLDER.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in names & set(sys.modules)}
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(FOLDER))
        yield importlib.import_module
    for name in [name for name, module in sys.modules.items() if _of_folder(module)]:
        del sys.modules[name]
    sys.modules.update(others)


def _of_folder(module):
    return Path(getattr(module, "__file__", None) or "/").parent == FOLDER
