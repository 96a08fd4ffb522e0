"""An import may only point to the left: the order of the layers, read from the sources."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import taciturn
from cases import each

SOURCE = Path(__file__).parents[1] / "src"

ORDER = (
    "errors | _util < accounting < problem | noise < core < learners | mechanisms < compiled | algorithms < store"
    " < memories | drift | renewal < averages | plan | regret | checks | columns < streams < audit | datasets"
    " | estimators < bandits < contract < readers < runs | reproduce | client < engines < service | spark < cli"
)
RANK = {name.strip(): rank for rank, group in enumerate(ORDER.split("<")) for name in group.split("|")}
LAZY = {"taciturn.__init__", "taciturn.__main__"}  # the front doors may import anything
GUESTS = {"reproduce"}  # example code: public names come by the front door, as they do for a user
LATE = {
    ("taciturn.kernel.stream.loop", "taciturn.kernel.stream.passes"),
    ("taciturn.kernel.learners.contributions", "taciturn.kernel.learners.exact_sums"),
    ("taciturn.kernel.stream.participation", "taciturn.kernel.stream.participation_loops"),
    ("taciturn.tables.random_features", "taciturn.tables.waves_loops"),
    ("taciturn.accounting.ledger", "taciturn.store.book"),
    ("taciturn.accounting.ledger", "taciturn.store.verify"),
}
"""The imports that point to the right, inside functions: the loop looks for a compiled pass when it needs one, random
features for their compiled cosines, a ledger that is opened by an address, or verified, for the database, and forms of
contributions for the lattice of the package's own learners."""

TRUSTED = {
    "taciturn.accounting": ("cost", "gdp", "ledger_rules", "objective", "unit", "zcdp"),
    "taciturn.mechanisms": (
        *("blt", "decayed_blt", "gaussian", "lattice", "prefix_sum", "release_noise", "sqrt", "strategy", "tree"),
    ),
    "taciturn.noise": ("sampling", "simd", "ziggurat", "ziggurat_tables"),
}
"""What must be believed for how much noise is added: costs, rules, encoders, sensitivities and the sampler."""
BESIDE_TRUSTED = (
    *("taciturn.errors", "taciturn.kernel.stream.protocols", "taciturn.kernel.stream.schedule"),
    *(f"taciturn._util.{name}" for name in ("arrays", "frozen", "jit", "output", "process")),
    *("numpy", "scipy.special", "scipy.linalg.blas", "numba", "llvmlite", "cryptography"),
)
"""What else these modules may import: no fit, no store, no page, no reading of the paper."""


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
        if (why := objection(own, name)) and ((module, name) not in LATE or name in early)
    ]


def objection(own: str, name: str) -> str:
    package, _, rest = name.partition(".")
    other = rest.split(".")[0]
    if package != "taciturn" or other in (own, "__version__"):
        return ""
    if own in GUESTS and other in taciturn.__all__:
        return ""
    if other not in RANK:
        return "take it from the module that defines it, not from the front door"
    if RANK[other] == RANK[own]:
        return f"{other} is a sibling of {own}"
    return f"{other} lies to the right of {own}" if RANK[other] > RANK[own] else ""


MODULES = {module_name(path): path for path in sorted(SOURCE.glob("taciturn/**/*.py"))}


@each("module", MODULES)
def test_imports_point_left(module):
    assert offences(module, MODULES[module].read_text(encoding="utf-8")) == []


@each(
    ("module", "source", "why"),
    [
        ("taciturn.errors", "import taciturn.core.private", "core lies to the right of errors"),
        ("taciturn.kernel.accounting.gdp", "from taciturn.problem import losses", "right of accounting"),
        ("taciturn.kernel.accounting.gdp", "from ..problem.losses import Logistic", "right of accounting"),
        ("taciturn.accounting.__init__", "from ..problem import Problem", "right of accounting"),
        ("taciturn.kernel.arrays", "from taciturn.errors import InvalidInput", "errors is a sibling of _util"),
        (
            "taciturn.kernel.problem.losses",
            "from taciturn.kernel.noise.sampling import secret_bits",
            "noise is a sibling of problem",
        ),
        ("taciturn.kernel.learners.igd", "from taciturn import mechanisms", "mechanisms is a sibling of learn"),
        (
            "taciturn.kernel.learners.igd",
            "from taciturn.kernel.problem.codes import set_code",
            "compiled lies to the right",
        ),
        ("taciturn.kernel.mechanisms.blt", "def f():\n    from .. import compiled", "compiled lies to the right"),
        (
            "taciturn.kernel.problem.problem",
            "from taciturn.compiled import clipping",
            "compiled lies to the right of problem",
        ),
        (
            "taciturn.kernel.stream.passes",
            "from taciturn.methods.recipes import pigd",
            "algorithms is a sibling of compiled",
        ),
        (
            "taciturn.kernel.stream.loop",
            "def f():\n    from taciturn.kernel.learners.ftrl import FTRL",
            "learners lies to the right of core",
        ),
        ("taciturn.kernel.stream.loop", "from taciturn.compiled import passes", "compiled lies to the right of core"),
        (
            "taciturn.kernel.stream.loop",
            "class A:\n    from taciturn.compiled import passes",
            "compiled lies to the right",
        ),
        (
            "taciturn.kernel.stream.loop",
            "def f():\n    from taciturn.compiled import igd",
            "compiled lies to the right",
        ),
        ("taciturn.core.private", "def f():\n    from taciturn.compiled import passes", "compiled lies to the right"),
        ("taciturn.averages", "from taciturn.plan import recommend", "plan is a sibling of averages"),
        ("taciturn.kernel.learners.igd", "from taciturn import IGD", "not from the front door"),
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
        ("taciturn.methods.giga", "from .igd import IGD\nfrom taciturn.learners import weights"),
        ("taciturn.learners.__init__", "from .igd import IGD\nfrom taciturn.core.private import Learner"),
        ("taciturn.kernel.stream.loop", "def f():\n    from taciturn.compiled import passes\nfrom .state import State"),
        (
            "taciturn.kernel.stream.passes",
            "from taciturn.kernel.learners.igd import IGD\nfrom taciturn.kernel.stream.loop import Pass",
        ),
        ("taciturn.audit.verdict", "def f():\n    from taciturn.kernel.stream.passes import STATISTICS"),
        ("taciturn.averages", "from taciturn.core.private import Private"),
        ("taciturn.reproduce.regret", "from taciturn import IGD, __version__\nfrom taciturn.regret import replay"),
    ],
)
def test_an_import_to_the_left_is_fine(module, source):
    assert offences(module, source) == []


def trusted() -> list[str]:
    return [f"{package}.{name}" for package, names in TRUSTED.items() for name in names]


def untrusted_imports(module: str, source: str) -> list[str]:
    """Imports of a trusted module, inside functions too, of what need not be believed."""
    fine = (*trusted(), *BESIDE_TRUSTED)
    return [
        name
        for _, name in imported(module, source)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not any(f"{name}.".startswith(f"{f}.") for f in fine)
    ]


@pytest.mark.parametrize("module", trusted())
def test_what_is_believed_imports_nothing_else(module):
    assert untrusted_imports(module, MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "from taciturn.calibration.blt_fit import fitted",
        "def f():\n    from scipy.optimize import minimize",
        "import scipy",
        "from taciturn.accounting import paper",
        "from taciturn.mechanisms import PrefixSum",
        "from taciturn._util.html import card",
        "from taciturn.core.private import Private",
    ],
)
def test_a_planted_import_of_what_need_not_be_believed_is_named(source):
    (name,) = untrusted_imports("taciturn.kernel.mechanisms.blt", source)
    assert name.rpartition(".")[0] in source or name in source


def test_the_modules_were_found():
    assert "taciturn.errors" in MODULES


def test_the_layers_are_written_down_for_contributors():
    """As they are."""
    text = (SOURCE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert " ".join(ORDER.split()) in " ".join(text.split())
