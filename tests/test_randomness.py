"""Randomness enters by one door, `noise/sampling.py`; `datasets/` and `checks/streams.py` protect nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

GENERATORS = {
    "random",
    "secrets",
    "uuid",
    "numpy.random",
    "os.urandom",
    "os.getrandom",
    "ssl",
    "scipy.stats.qmc",
    "scipy.stats.sampling",
    "numba.np.random",
    "numba.cuda.random",
    "cryptography",
}
DRAWS = {"rvs", "default_rng", "RandomState", "SystemRandom", "check_random_state", "urandom"}

ANYTHING = GENERATORS | DRAWS
ALLOWED = {
    "taciturn.noise.sampling": ANYTHING,
    "taciturn.datasets": ANYTHING,
    "taciturn.checks.streams": {"numpy.random", "default_rng"},  # what things are tried on
    "taciturn.core.state": {"secrets", "uuid"},  # a stream's id is random, and public
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def aliases(tree: ast.AST) -> dict[str, str]:
    """What each imported local name stands for: `np` for numpy, `urandom` for os.urandom."""
    known = {"np": "numpy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return known


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported or reached through an attribute."""
    known = aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.lineno, dotted(node, known)
        elif isinstance(node, ast.Call) and node.args:
            yield node.lineno, named_in(node, known)


def named_in(call: ast.Call, known: dict[str, str]) -> str:
    """What a call finds by a name in quotes: `getattr(np, "random")`, `import_module("random")`."""
    function = dotted(call.func, known).rpartition(".")[2]
    place, name = ("", call.args[0]) if "import" in function else (dotted(call.args[0], known), call.args[-1])
    if not ("import" in function or function == "getattr") or not isinstance(name, ast.Constant):
        return "?"
    return f"{place}.{name.value}".lstrip(".")


def dotted(node: ast.expr, known: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, known)}.{node.attr}"
    return known.get(node.id, node.id) if isinstance(node, ast.Name) else "?"


def generator(name: str) -> str:
    """The generator `name` is or lives in, or nothing; everything of a module with one in it is one."""
    inside = (
        g for g in GENERATORS if f"{name}.".startswith(f"{g}.") or (name[-2:] == ".*" and g.startswith(name[:-1]))
    )
    return next(inside, "") or (DRAWS & {name.rpartition(".")[2]} or {""}).pop()


def draws(module: str, source: str) -> list[str]:
    """Every random generator that `source` imports or uses and `module` may not, as a sentence."""
    allowed = set().union(*(a for m, a in ALLOWED.items() if f"{module}.".startswith(f"{m}.")))
    found = sorted({(n, g) for n, name in names(ast.parse(source)) if (g := generator(name))})
    return [
        f"{module}:{line} uses {used}: draw it in taciturn.noise.sampling"
        for line, used in found
        if used not in allowed
    ]


MODULES = {module_name(path): path for path in sorted(SOURCE.glob("taciturn/**/*.py"))}


@pytest.mark.parametrize("module", MODULES)
def test_no_generator_but_the_sampler(module):
    assert draws(module, MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import random", "random"),
        ("from random import gauss", "random"),
        ("import secrets as s", "secrets"),
        ("import numpy.random", "numpy.random"),
        ("from numpy import random", "numpy.random"),
        ("from numpy.random import Generator", "numpy.random"),
        ("x = np.random.normal()", "numpy.random"),
        ("import numpy\nx = numpy.random.normal()", "numpy.random"),
        ("import numpy as xp\nx = xp.random.normal()", "numpy.random"),
        ("def f(rng: np.random.Generator): ...", "numpy.random"),
        ("import os\nkey = os.urandom(16)", "os.urandom"),
        ("from os import urandom", "os.urandom"),
        ("from scipy.stats import norm\nx = norm.rvs(size=3)", "rvs"),
        ("from scipy import stats\nx = stats.norm(0, 1).rvs()", "rvs"),
        ("from sklearn.utils import check_random_state", "check_random_state"),
        ("from cryptography.hazmat.primitives.ciphers import Cipher", "cryptography"),
        ("def f():\n    import uuid", "uuid"),
        ("from numba import njit\n@njit\ndef f():\n    return np.random.standard_normal()", "numpy.random"),
        ("from numba.np.random import generator_core", "numba.np.random"),
        ("import numba\nx = numba.cuda.random", "numba.cuda.random"),
        ("from os import *", "os."),
        ("from numpy import *", "numpy.random"),
        ("import ssl\nkey = ssl.RAND_bytes(32)", "ssl"),
        ("from cryptography.fernet import Fernet", "cryptography"),
        ("x = getattr(np, 'random')", "numpy.random"),
        ("import os as o\nkey = getattr(o, 'urandom')(32)", "os.urandom"),
        ("from importlib import import_module\nr = import_module('random')", "random"),
        ("import importlib\nr = importlib.import_module('numpy.random')", "numpy.random"),
        ("r = __import__('secrets')", "secrets"),
    ],
)
@pytest.mark.parametrize("module", ["taciturn.core.private", "taciturn.mechanisms.gaussian"])
def test_a_planted_generator_is_named(module, source, used):
    offences = draws(module, source)
    assert offences
    assert all(f"uses {used}" in offence for offence in offences)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("taciturn.noise.sampling", "import secrets\nx = np.random.default_rng(1)"),
        ("taciturn.datasets.ads", "rng = np.random.default_rng(7)"),
        ("taciturn.datasets.__init__", "import random"),
        ("taciturn.core.state", "import secrets\nfrom uuid import uuid4"),
        ("taciturn.core.private", "from scipy.stats import norm\np = norm.cdf(0)\nr = self.random"),
        ("taciturn.core.private", "from taciturn.noise.sampling import lattice_normal"),
        ("taciturn.core.private", "x = getattr(self, 'random')\ny = getattr(self, name)\nz = import_module(name)"),
    ],
)
def test_what_is_allowed(module, source):
    assert draws(module, source) == []


def test_the_state_draws_an_id_and_no_noise():
    assert draws("taciturn.core.state", "x = np.random.normal()")
