"""The public names: one table, `taciturn._HOME`, from which every other list of them is derived or checked."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn

STUB = Path(taciturn.__file__).with_suffix(".pyi")


def run(code):
    """What a fresh interpreter prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()


def test_the_table_is_sorted():
    """The table is in alphabetical order, and `__all__` is its list of names."""
    assert list(taciturn._HOME) == sorted(taciturn._HOME)
    assert list(taciturn._HOME) == taciturn.__all__
    assert list(taciturn._MODULES) == sorted(taciturn._MODULES)


@pytest.mark.parametrize(("name", "home"), taciturn._HOME.items())
def test_a_name_comes_from_the_module_in_the_table(name, home):
    """Every name imports, has its own name, and is defined in the module that the table states."""
    thing = getattr(taciturn, name)
    assert thing.__name__ == name
    assert thing.__module__ == f"taciturn.{home}"
    assert getattr(importlib.import_module(thing.__module__), name) is thing


@pytest.mark.parametrize("name", taciturn._MODULES)
def test_a_public_module_is_imported_when_it_is_used(name):
    """`taciturn.plan` works after `import taciturn` alone."""
    assert getattr(taciturn, name) is importlib.import_module(f"taciturn.{name}")
    assert run(f"import taciturn; print(taciturn.{name}.__name__)") == [f"taciturn.{name}"]


def stub_names(source):
    """Where each name of a stub comes from, and the names it lists in `__all__`."""
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    origin = {alias.asname: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    listed = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    return origin, set(*listed)


def test_the_stub_is_the_table():
    """Type checkers read `__init__.pyi`: every name from the module that the table states, and no other name."""
    origin, listed = stub_names(STUB.read_text(encoding="utf-8"))
    names = {name: f"taciturn.{home}.{name}" for name, home in taciturn._HOME.items()}
    assert origin == names | {name: f"taciturn.{name}" for name in taciturn._MODULES}
    assert listed == set(taciturn._HOME)


def test_a_difference_of_the_stub_is_noticed():
    """A name from another module, or one that is not re-exported, is a difference."""
    origin, listed = stub_names("from taciturn.a import b as b\nfrom taciturn.a import c\n__all__ = ['b', 'd']")
    assert origin == {"b": "taciturn.a.b", None: "taciturn.a.c"}
    assert listed == {"b", "d"}


def test_dir_lists_them():
    """Completion sees every name before any is used."""
    assert set(taciturn._HOME) <= set(dir(taciturn))
    assert "__version__" in dir(taciturn)
    assert set(taciturn._HOME) <= set(run("import taciturn; print(*dir(taciturn))"))


def test_a_star_imports_them_all():
    """`from taciturn import *` binds exactly the list."""
    names = run("before = set(globals())\nfrom taciturn import *\nprint(*sorted(set(globals()) - before - {'before'}))")
    assert names == list(taciturn._HOME)


@pytest.mark.parametrize("name", ["Optimizer", "igd", "numpy", "__wrapped__"])
def test_unknown_names_are_rejected(name):
    """Any other attribute raises AttributeError, and so hasattr and inspection work."""
    with pytest.raises(AttributeError, match=f"module 'taciturn' has no attribute '{name}'"):
        getattr(taciturn, name)
    assert not hasattr(taciturn, name)


def test_importing_is_light():
    """`import taciturn` loads neither NumPy nor SciPy nor Numba nor cryptography; nor do the errors."""
    heavy = "{'numpy', 'scipy', 'numba', 'cryptography'}"
    assert run(f"import sys, taciturn, taciturn.errors; print(*{heavy} & set(sys.modules))") == []


def test_the_light_import_would_be_noticed():
    """The same check sees NumPy once a name that needs it is used."""
    assert "numpy" in run(
        "import sys, taciturn; taciturn.L2Ball; print(*{'numpy', 'scipy', 'numba'} & set(sys.modules))"
    )


def test_the_version_has_one_form():
    """Major, minor and patch, and `.devN` between two releases."""
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", taciturn.__version__)
