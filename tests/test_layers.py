"""An import may only point to the left, and through the wall of the kernel only inwards: read from the sources."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import taciturn
from cases import each

SOURCE = Path(__file__).parents[1] / "src"

ORDER = (
    "kernel < errors | _util < accounting | calibration | tables < core < methods | mechanisms < store"
    " < memories | drift | renewal | averages < plan | regret | checks | columns < streams"
    " < audit | datasets | estimators < bandits < contract < readers < runs | reproduce | client < engines"
    " < service | spark < cli"
)
RANK = {name.strip(): rank for rank, group in enumerate(ORDER.split("<")) for name in group.split("|")}
INSIDE = "files < accounting < problem | noise < learners, mechanisms, stream"
"""The order within the kernel: single files are leftmost, but for `replay.py`, which runs the others; the last folders
take from each other."""
LAZY = {"taciturn.__init__", "taciturn.__main__"}  # the front doors may import anything
GUESTS = {"reproduce"}  # example code: public names come by the front door, as they do for a user
LATE = {
    ("taciturn.core.private", "taciturn.methods.readings.in_the_paper"),
    ("taciturn.accounting.ledger", "taciturn.store.book"),
    ("taciturn.accounting.ledger", "taciturn.store.verify"),
}
"""The imports that point to the right, inside functions: a stream looks for the paper's reading of its learner, and a
ledger that is opened by an address, or verified, for the database."""


def module_name(path: Path) -> str:
    """Dotted name; a package's own file keeps its `__init__`, so `.` resolves alike for both."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def imported(module: str, source: str, *, inside: bool = True) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything `source` imports, inside functions or only outside of them."""
    for node in ast.walk(ast.parse(source)) if inside else outside_of_functions(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node.module or "", node.level)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and called(node) in DYNAMIC:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                level = len(name.value) - len(name.value.lstrip("."))
                yield node.lineno, absolute(module, name.value.lstrip("."), level)


def outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from outside_of_functions(child)


DYNAMIC = {"import_module", "__import__"}


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def absolute(module: str, name: str, level: int) -> str:
    if level == 0:
        return name
    return ".".join([*module.split(".")[:-level], name]).rstrip(".")


def offences(module: str, source: str) -> list[str]:
    """Every import of `source` that does not point to the left, as a sentence; a late one must be inside a function."""
    if module in LAZY:
        return []
    own = module.split(".")[1]
    if own not in RANK:
        return [f"{module} belongs to no layer: add {own!r} to ORDER"]
    early = {name for _, name in imported(module, source, inside=False)}
    return [
        f"{module}:{line} imports {name}: {why}"
        for line, name in imported(module, source)
        if (why := objection(module, name)) and ((module, name) not in LATE or name in early)
    ]


def objection(module: str, name: str) -> str:
    package, _, rest = name.partition(".")
    own, other = module.split(".")[1], rest.split(".")[0]
    if package != "taciturn" or other == "__version__":
        return ""
    if own == other == "kernel":
        return inside_objection(module.split(".")[2:], name.split(".")[2:])
    if own == other or (own in GUESTS and other in taciturn.__all__):
        return ""
    if own == "kernel" and other in RANK:
        return ""  # the wall, below, is stricter, and names it
    if other not in RANK:
        return "take it from the module that defines it, not from the front door"
    if RANK[other] == RANK[own]:
        return f"{other} is a sibling of {own}"
    return f"{other} lies to the right of {own}" if RANK[other] > RANK[own] else ""


def inside_objection(own: list[str], other: list[str]) -> str:
    """Folders of the kernel in their order; those of the last group, and single files, take from each other."""
    groups = [group.split() for group in INSIDE.replace(" | ", " ").replace(",", "").split(" < ")]
    here, there = folder(own), folder(other)
    ranks = [next((i for i, group in enumerate(groups) if name in group), len(groups) - 1) for name in (here, there)]
    if ranks[1] > ranks[0]:
        return f"{there} lies to the right of {here}"
    siblings = here != there and ranks[0] == ranks[1] < len(groups) - 1
    return f"{there} is a sibling of {here}" if siblings else ""


def folder(parts: list[str]) -> str:
    """The folder of the kernel that a module is in; a file directly in the kernel is one of its `files`."""
    single = not parts or (SOURCE / "taciturn" / "kernel" / f"{parts[0]}.py").exists() or parts[0] == "__init__"
    return "files" if single and parts[:1] != ["replay"] else parts[0]


MODULES = {module_name(path): path for path in sorted(SOURCE.glob("taciturn/**/*.py"))}


@each("module", MODULES)
def test_imports_point_left(module):
    assert offences(module, MODULES[module].read_text(encoding="utf-8")) == []


@each(
    ("module", "source", "why"),
    [
        ("taciturn.kernel.errors", "import taciturn.kernel.stream.loop", "stream lies to the right of files"),
        ("taciturn.kernel.accounting.gdp", "from taciturn.kernel.problem import losses", "right of accounting"),
        ("taciturn.kernel.accounting.gdp", "from ..problem.losses import Logistic", "right of accounting"),
        ("taciturn.kernel.arrays", "from taciturn.kernel.noise import sampling", "noise lies to the right of files"),
        ("taciturn.kernel.problem.losses", "from ..noise.sampling import secret_bits", "noise is a sibling of problem"),
        ("taciturn.kernel.noise.sampling", "def f():\n    from ..stream import loop", "stream lies to the right"),
        ("taciturn.kernel.learners.igd", "from taciturn import IGD", "not from the front door"),
        ("taciturn.accounting.__init__", "from ..core import private", "core lies to the right of accounting"),
        ("taciturn.accounting.ledger", "from taciturn.store.book import Book", "store lies to the right"),
        ("taciturn.tables.ranges", "from taciturn.calibration import blt_fit", "calibration is a sibling of tables"),
        (
            "taciturn.core.private",
            "class A:\n    from taciturn.methods import giga",
            "methods lies to the right of core",
        ),
        ("taciturn.averages", "from taciturn.plan import recommend", "plan lies to the right of averages"),
        ("taciturn.averages", "from taciturn.drift import Drift", "drift is a sibling of averages"),
        ("taciturn.core.private", "import taciturn", "not from the front door"),
        (
            "taciturn.core.private",
            "def f():\n    import taciturn.plan",
            "taciturn.core.private:2 imports taciturn.plan",
        ),
        ("taciturn.core.private", "if TYPE_CHECKING:\n    from taciturn.cli.app import app", "right of core"),
        ("taciturn.core.private", "importlib.import_module('taciturn.audit')", "audit lies to the right"),
        ("taciturn.audit.selection", "from taciturn.reproduce.plots import audit_histograms", "right of audit"),
        ("taciturn.audit.selection", "from taciturn.datasets.ads import clicks", "sibling of audit"),
        ("taciturn._util.html", "from taciturn.errors import InvalidInput", "errors is a sibling of _util"),
        ("taciturn.runs.report", "from taciturn.reproduce.plots import save_panels", "reproduce is a sibling of runs"),
        ("taciturn.reproduce.runner", "from taciturn import cli", "cli lies to the right of reproduce"),
        ("taciturn.reproduce.runner", "from taciturn import helpers", "not from the front door"),
        ("taciturn.cli.reproduce", "from taciturn import IGD", "not from the front door"),
        ("taciturn.helpers", "", "belongs to no layer"),
    ],
)
def test_a_planted_import_is_named(module, source, why):
    (offence,) = offences(module, source)
    assert why in offence


@each(
    ("module", "source"),
    [
        ("taciturn.__init__", "from taciturn.cli.app import app"),
        ("taciturn.cli.app", "from taciturn import __version__\nfrom taciturn.reproduce import plots"),
        ("taciturn.core.private", "from taciturn.errors import Unprovable\nimport numpy as np"),
        ("taciturn.methods.giga", "from .ewoo import EWOO\nfrom taciturn.kernel.learners import iterate"),
        ("taciturn.kernel.learners.__init__", "from .igd import IGD\nfrom ..stream.protocols import Learner"),
        ("taciturn.kernel.stream.loop", "from taciturn.kernel.learners import contributions\nfrom .state import State"),
        ("taciturn.kernel.frozen", "from taciturn.kernel import arrays\nfrom .errors import InvalidInput"),
        ("taciturn.accounting.ledger", "def f():\n    from taciturn.store import verify"),
        ("taciturn.plan", "from taciturn.averages import Averages"),
        ("taciturn.reproduce.regret", "from taciturn import IGD, __version__\nfrom taciturn.regret import replay"),
    ],
)
def test_an_import_to_the_left_is_fine(module, source):
    assert offences(module, source) == []


# The wall around the kernel.

BESIDE_KERNEL = ("numpy", "scipy.special", "scipy.linalg.blas", "numba", "llvmlite", "cryptography")
"""Packages that the kernel is built on; llvmlite is what Numba is built on."""

KNOWN = {
    ("taciturn.kernel.arrow", "pyarrow"),
    ("taciturn.kernel.learners.bin_counts", "scipy.linalg"),
    ("taciturn.kernel.learners.bin_counts", "scipy.optimize"),
    ("taciturn.kernel.learners.implicit_step", "scipy.optimize"),
    ("taciturn.kernel.learners.qftl", "scipy.linalg"),
    ("taciturn.kernel.learners.qftl", "scipy.optimize"),
    ("taciturn.kernel.problem.clipping", "scipy.sparse"),
    ("taciturn.kernel.problem.inputs", "scipy.sparse"),
}
"""Holes in the wall that are not closed yet: none to `taciturn`, and packages that decisions and readers import."""


def holes(module: str, source: str) -> set[tuple[str, str]]:
    """Imports through the wall, inside functions too: of the kernel, of anything else; of others, of private parts."""
    found = [name for _, name in imported(module, source)]
    if is_kernel(module):
        return {(module, place(name)) for name in found if not (is_kernel(name) or beside_kernel(name))}
    return {(module, place(name)) for name in found if is_kernel(name) and is_private(name)}


def is_kernel(name: str) -> bool:
    return f"{name}.".startswith("taciturn.kernel.")


def beside_kernel(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names or any(
        f"{name}.".startswith(f"{package}.") for package in BESIDE_KERNEL
    )


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def place(name: str) -> str:
    """The module of an imported name: `scipy.sparse` of `scipy.sparse.csr_matrix`."""
    return name if name in MODULES or "." not in name else name.rpartition(".")[0]


@each("module", MODULES)
def test_the_wall_has_no_hole_but_the_known_ones(module):
    assert holes(module, MODULES[module].read_text(encoding="utf-8")) - KNOWN == set()


def test_a_hole_that_was_closed_is_known_no_more():
    there = set().union(*(holes(module, path.read_text(encoding="utf-8")) for module, path in MODULES.items()))
    assert there >= KNOWN


@each(
    ("module", "source", "hole"),
    [
        ("taciturn.kernel.mechanisms.blt", "from taciturn.calibration.blt_fit import fitted", "calibration.blt_fit"),
        ("taciturn.kernel.mechanisms.blt", "def f():\n    from scipy.optimize import minimize", "scipy.optimize"),
        ("taciturn.kernel.mechanisms.blt", "import scipy", "scipy"),
        ("taciturn.kernel.mechanisms.blt", "from scipy.linalg import solve", "scipy.linalg"),
        ("taciturn.kernel.stream.state", "from taciturn.errors import InvalidInput", "taciturn.errors"),
        ("taciturn.kernel.stream.state", "from ...core.private import Private", "taciturn.core.private"),
        ("taciturn.kernel.stream.loop", "importlib.import_module('taciturn.store.store')", "taciturn.store.store"),
        ("taciturn.kernel.stream.loop", "import pandas as pd", "pandas"),
        ("taciturn.core.private", "from taciturn.kernel.stream import _parts", "taciturn.kernel.stream"),
        ("taciturn.core.private", "from taciturn.kernel._parts import name", "taciturn.kernel._parts"),
        ("taciturn.core.private", "from ..kernel.stream.loop import _VALUES", "taciturn.kernel.stream.loop"),
    ],
)
def test_a_planted_hole_is_named(module, source, hole):
    ((where, found),) = holes(module, source)
    assert where == module
    assert found.endswith(hole)


@each(
    ("module", "source"),
    [
        ("taciturn.kernel.mechanisms.blt", "from scipy.special import ndtr\nimport math\nimport numpy as np"),
        ("taciturn.kernel.mechanisms.blt", "def f():\n    from scipy.linalg.blas import dsyrk"),
        ("taciturn.kernel.mechanisms.blt", "from taciturn.kernel import _lanes\nfrom ..stream import _parts"),
        ("taciturn.core.private", "from taciturn.kernel.stream.loop import Loop\nfrom taciturn._util import html"),
        ("taciturn.core.private", "import pandas"),
    ],
)
def test_what_is_no_hole(module, source):
    assert holes(module, source) == set()


def test_the_modules_were_found():
    assert {"taciturn.errors", "taciturn.kernel.stream.loop"} <= {*MODULES}


def test_the_layers_are_written_down_for_contributors():
    """As they are."""
    text = " ".join((SOURCE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert " ".join(ORDER.split()) in text
    assert INSIDE in text
