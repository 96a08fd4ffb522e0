"""Noise is drawn in `kernel/noise/sampling.py` alone, meets exact data in the kernel alone, and is added in two places.

`datasets/` and `checks/streams.py` draw from seeds what protects no one. So does `tables/random_features.py`, from a
hash: its directions are public. `bandits/` draws simulated environments, and arms: a choice is post-processing of what
was released, and which arm it falls on protects no one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from cases import each

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
    "taciturn.kernel.noise.sampling": ANYTHING,
    "taciturn.datasets": ANYTHING,
    "taciturn.checks.streams": {"numpy.random", "default_rng"},  # what things are tried on
    "taciturn.bandits": {"numpy.random", "default_rng"},  # choices among arms, simulated environments
    "taciturn.kernel.stream.state": {"os.urandom", "urandom"},  # names of streams and states are random, and public
    "taciturn.kernel.stream.participation": {"secrets"},  # the key of the hashes of users' ids, names of their layers
    "taciturn.accounting.ledger": {"uuid"},  # the name of a charge, public
    "taciturn.store.encryption": {"secrets", "cryptography"},  # keys and nonces of stored states
    "taciturn.runs.resume": {"secrets", "token_bytes", "cryptography"},  # the key of the chain of rows, and a hash
    "taciturn.kernel.atomic": {"secrets", "token_hex"},  # names of temporary files
    "taciturn.client": {"secrets", "token_hex", "randbelow", "ssl"},  # idempotency keys, pauses, trust in a server
    "taciturn.cli.serve": {"ssl"},  # a check of a certificate
    "taciturn.service.app": {"secrets", "token_hex"},  # the id of an internal error
    "taciturn.service.service": {"secrets", "token_hex"},  # the key of the hashes of requests
    "taciturn.service.events": {"os.urandom", "urandom"},  # ids of events
    "taciturn.service.writer": {"cryptography", "secrets", "randbelow"},  # a request's hash, draws nothing; pauses
    "taciturn.service.tokens": {"secrets", "token_hex", "token_urlsafe"},  # tokens and their ids
    "taciturn.service.dashboard.routes": {"secrets", "token_hex"},  # the secret of a form to log in
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
    result = sorted({(n, g) for n, name in names(ast.parse(source)) if (g := generator(name))})
    return [
        f"{module}:{line} uses {used}: draw it in taciturn.kernel.noise.sampling"
        for line, used in result
        if used not in allowed
    ]


MODULES = {module_name(path): path for path in sorted(SOURCE.glob("taciturn/**/*.py"))}


@each("module", MODULES)
def test_no_generator_but_the_sampler(module):
    assert draws(module, MODULES[module].read_text(encoding="utf-8")) == []


@each(
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
@each("module", ["taciturn.core.private", "taciturn.kernel.mechanisms.gaussian"])
def test_a_planted_generator_is_named(module, source, used):
    offences = draws(module, source)
    assert offences
    assert all(f"uses {used}" in offence for offence in offences)


@each(
    ("module", "source"),
    [
        ("taciturn.kernel.noise.sampling", "import secrets\nx = np.random.default_rng(1)"),
        ("taciturn.datasets.ads", "rng = np.random.default_rng(7)"),
        ("taciturn.datasets.__init__", "import random"),
        ("taciturn.bandits.choices", "rng = np.random.default_rng(7)"),
        ("taciturn.kernel.stream.state", "import os\nname = os.urandom(16).hex()"),
        ("taciturn.core.private", "from scipy.stats import norm\np = norm.cdf(0)\nr = self.random"),
        ("taciturn.core.private", "from taciturn.kernel.noise.sampling import lattice_normal"),
        ("taciturn.core.private", "x = getattr(self, 'random')\ny = getattr(self, name)\nz = import_module(name)"),
    ],
)
def test_what_is_allowed(module, source):
    assert draws(module, source) == []


def test_the_state_draws_an_id_and_no_noise():
    assert draws("taciturn.kernel.stream.state", "x = np.random.normal()")


def test_bandits_draw_choices_and_no_noise():
    """Nothing there is drawn from secret bits, and the learner and its compiled sums draw nothing."""
    assert draws("taciturn.bandits.choices", "import secrets")
    assert draws("taciturn.kernel.learners.linear_bandit", "x = np.random.default_rng(1)")
    assert draws("taciturn.kernel.learners.linear_bandit_loops", "x = np.random.default_rng(1)")


# Where exact data and noise meet.

MEETING = {
    "taciturn.kernel.stream.privatize",  # one release: encoded, with noise, decoded
    "taciturn.kernel.stream.loop",  # the definition, which draws for it
    "taciturn.kernel.stream.passes",  # the table of what does the same for many releases at once
    "taciturn.kernel.stream.batch_pass",
    "taciturn.kernel.learners.igd_pass",
    "taciturn.kernel.learners.ftrl_pass",
    *(f"taciturn.kernel.mechanisms.{name}_pass" for name in ("blt", "prefix_sum", "tree")),
    *(f"taciturn.kernel.mechanisms.{name}_loops" for name in ("blt", "lattice", "tree")),
    *(f"taciturn.kernel.learners.{name}_loops" for name in ("ftrl", "igd")),
}
DEFINED = {"taciturn.kernel.noise", "taciturn.kernel.mechanisms", "taciturn.methods.exponential"}
"""The samplers, and the verbs: what a mechanism encodes, and what it needs, each without the other."""

EVIDENCE = {"taciturn.checks", "taciturn.audit"}
"""They try mechanisms on streams of their own making."""

SAMPLERS = {"lattice_normal", "lattice_gumbel", "secret_bits", "seeded_bits", "drawn", "with_noise"}
VERBS = {"noise", "noise_rows"}
TABLES = {"noise_of", "NOISE", "THROUGH", "SUMS"}
NOISY_LOOPS = {f"{name}_loops" for name in ("lattice", "blt", "tree", "ftrl", "igd")}


def within(module: str, places: set[str]) -> bool:
    return any(f"{module}.".startswith(f"{place}.") for place in places)


def touches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that draw noise, encode exact rows, or bring in what does: what they do, and by which name.

    A mechanism's and a strategy's `encode` take three things; texts and columns of a file are encoded by fewer.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            for parts in (alias.name.split(".") for alias in node.names):
                path = [*(getattr(node, "module", None) or "").split("."), *parts]
                if parts[-1] in SAMPLERS | TABLES or NOISY_LOOPS & {*path}:
                    yield node.lineno, f"draws by {parts[-1]}"
        elif isinstance(node, ast.Attribute) and node.attr in SAMPLERS | TABLES:
            yield node.lineno, f"draws by {node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAMPLERS | TABLES:
            yield node.lineno, f"draws by {node.func.id}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in VERBS:
                yield node.lineno, f"draws by {node.func.attr}"
            few = len(node.args) + len(node.keywords) < 3 and not any(isinstance(a, ast.Starred) for a in node.args)
            if node.func.attr == "encode" and not few:
                yield node.lineno, "encodes by encode"
        elif isinstance(node, ast.Call) and node.args:
            name = named_in(node, {}).rpartition(".")[2]
            if name in VERBS | SAMPLERS:
                yield node.lineno, f"draws by {name}"


def meetings(module: str, source: str) -> list[str]:
    """What draws noise or encodes exact rows where it may not, as sentences; of mechanisms, functions that do both."""
    tree = ast.parse(source)
    if within(module, MEETING | EVIDENCE):
        return []
    if not within(module, DEFINED):
        result = sorted(set(touches(tree)))
        return [f"{module}:{line} {what}: leave it to taciturn.kernel.stream.loop" for line, what in result]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    both = [f for f in functions if {what.split()[0] for _, what in touches(f)} == {"draws", "encodes"}]
    both += [f for f in functions if f.name in ("encode", "decode") and any("draws" in what for _, what in touches(f))]
    return [f"{module}:{f.lineno} {f.name} draws noise beside exact rows" for f in both]


@each("module", MODULES)
def test_exact_data_and_noise_meet_in_the_kernel(module):
    assert meetings(module, MODULES[module].read_text(encoding="utf-8")) == []


def test_the_places_are_there():
    """A module that was moved is named anew."""
    for place in MEETING | DEFINED | EVIDENCE:
        assert any(within(module, {place}) for module in MODULES), place


ADDED = {"taciturn.kernel.noise.addition": 1, "taciturn.kernel.mechanisms.lattice_loops": 1}
"""Where noise is added, and how often: in Python, and for what compiled loops inline."""

SEES_ROWS = {f"taciturn.{room}" for room in ("kernel", "methods", "core", "tables")}


def additions(source: str) -> list[int]:
    """Lines that add an array of noise to something: what is called `noise`, `drawn`, or is taken of these."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            operands = [node.left, node.right]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            operands = [node.value]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.add", "np.subtract"):
            operands = node.args
        else:
            continue
        found += [node.lineno] * any(is_noise(operand) for operand in operands)
    return found


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_noise(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return is_noise(node.value)
    if isinstance(node, ast.Call):
        return called(node) in {"drawn", "noise", "noise_rows"} or (called(node) == "take" and is_noise(node.args[0]))
    return getattr(node, "id", getattr(node, "attr", "")) in {"noise", "drawn"}


@each("module", [module for module in MODULES if within(module, SEES_ROWS)])
def test_noise_is_added_in_two_places(module):
    assert len(additions(MODULES[module].read_text(encoding="utf-8"))) == ADDED.get(module, 0)


@each(
    "source",
    [
        "noisy = encoded + drawn",
        "noisy = encoded + calibrated.noise(seed, k, 1)[0]",
        "row += noise[k]",
        "put(out, j, left, floor(row) + take(noise, j, left))",
        "np.add(encoded, self.noise, out=out)",
        "x = row - drawn(needed, seed, 0)",
    ],
)
def test_a_planted_addition_is_found(source):
    assert additions(source) == [1]


@each(
    "source",
    [
        "noise = calibrated.noise(seed, 1, 10)",
        "rows = self.private.calibrated.noise_rows(None, k, count)",
        "secret, encoded = calibrated.encode(secret, row, k)",
        "secret, encoded = calibrated.encode(*parts)",
        "_, encoded = coder.encode(secret={}, row=row, k=1)",
        "from taciturn.kernel.noise.sampling import lattice_normal",
        "from taciturn.kernel.noise import sampling\nx = sampling.lattice_gumbel((3,))",
        "from taciturn.kernel.noise.sampling import GUMBEL_STEP, secret_bits as bits",
        "def f():\n    from taciturn.kernel.stream.passes import noise_of",
        "from taciturn.kernel.stream import passes\nx = passes.noise_of(c).add(secret, public, rows, 1, drawn)",
        "from taciturn.kernel.stream import passes\nx = passes.NOISE[type(c)](c)",
        "from taciturn.kernel.mechanisms import lattice_loops as a\nx = a.add_noise_batch(rows, steps, 1.0, noise)",
        "from taciturn.kernel.learners.igd_loops import releases",
        "import taciturn.kernel.mechanisms.blt_loops",
        "drawn = getattr(calibrated, 'noise')(None, 1, 1)",
    ],
)
@each("module", ["taciturn.core.private", "taciturn.kernel.learners.igd", "taciturn.estimators.stream"])
def test_a_planted_meeting_is_named(module, source):
    (offence,) = [o for o in meetings(module, source) if "draws" in o or "encodes" in o][-1:]
    assert offence.startswith(module)


@each(
    "source",
    [
        "def encode(self, secret, row, k):\n    return secret, row + lattice_normal(1.0, row.shape)",
        "def encode(self, secret, row, k):\n    return secret, row + self.noise(None, k, 1)",
        "def release(self, row, k):\n    return self.encode({}, row, k)[1] + self.noise(None, k, 1)",
    ],
)
def test_a_mechanism_that_adds_its_own_noise_is_named(source):
    assert meetings("taciturn.kernel.mechanisms.mine", source)


@each(
    ("module", "source"),
    [
        ("taciturn.kernel.stream.loop", "x = calibrated.encode(secret, row, k)[1] + calibrated.noise(seed, k, 1)[0]"),
        (
            "taciturn.kernel.mechanisms.prefix_sum_pass",
            "from taciturn.kernel.mechanisms import lattice_loops\nnoise = calibrated.noise_rows(None, 1, 2)",
        ),
        ("taciturn.checks.mechanisms", "drawn = calibrated.noise(seed, 1, 5)"),
        ("taciturn.audit.selection", "calibrated.encode({}, row, k)"),
        (
            "taciturn.kernel.mechanisms.lattice",
            "def noise_needed(self, releases):\n    return NoiseNeeded('normal', (3,), 1.0)",
        ),
        (
            "taciturn.kernel.mechanisms.mine",
            "def encode(self, secret, row, k):\n    return self.coder.encode(secret, row, k)",
        ),
        ("taciturn.contract.contract", "text.encode('utf-8', 'surrogatepass')\ncolumn.encode(values, out)"),
        ("taciturn.report.plots", "label = finding.noise\nfrom taciturn.kernel.noise.sampling import GUMBEL_STEP"),
        ("taciturn.regret.optimum", "from taciturn.kernel.replay import replay"),
        ("taciturn.averages", "from taciturn._util import averages_loops"),
    ],
)
def test_what_is_no_meeting(module, source):
    assert meetings(module, source) == []
