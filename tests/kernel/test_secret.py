"""Exact values cannot be read by accident, and the two doors through which they are read on purpose are listed."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import math
import operator
import pickle
import re
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

from cases import each
from taciturn import L2Ball, Logistic, Privacy, Problem, User, block_statistics, every, pftrl, private_sum
from taciturn.errors import InvalidInput
from taciturn.estimators.sklearn import PrivateLogisticRegression
from taciturn.kernel.replay import exact_of, excluded_in, record_of, records_of, replay, sums_in
from taciturn.kernel.secret import Secret, opened
from taciturn.kernel.stream.block_sums import BlockSums
from taciturn.kernel.stream.state import standing_of

SOURCE = Path(__file__).parents[2] / "src"
VALUE = 0.3141592653
HELD = np.array([VALUE, 2.0])

# ---- what cannot be done with a Secret ------------------------------------------------------------------------------

REFUSED = {
    "array of numbers": lambda s: np.asarray(s, dtype=np.float64),
    "numpy function": lambda s: np.add(s, 1.0),
    "addition": lambda s: s + 1.0,
    "addition to an array": lambda s: np.ones(2) + s,
    "product": lambda s: 2.0 * s,
    "order": lambda s: s < Secret(HELD),
    "float": float,
    "int": int,
    "complex": complex,
    "index": operator.index,
    "round": round,
    "floor": math.floor,
    "bytes": bytes,
    "memory": memoryview,
    "length": len,
    "iteration": iter,
    "list": list,
    "entry": lambda s: s[0],
    "membership": lambda s: VALUE in s,
    "call": lambda s: s(),
    "context": lambda s: s.__enter__(),
    "json": json.dumps,
    "format": lambda s: f"{s:.6f}",
    "vars": vars,
    "new attribute": lambda s: setattr(s, "shown", 1),
    "its attribute": lambda s: s._held,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "oldest pickle": lambda s: pickle.dumps(s, 0),
    "asdict": lambda s: dataclasses.asdict(Holder(s)),
    "astuple": lambda s: dataclasses.astuple(Holder(s)),
    "subclass": lambda s: type("Shown", (Secret,), {}),
}


@dataclasses.dataclass
class Holder:
    held: Secret


@each("name", REFUSED)
def test_what_would_read_it_is_an_error_that_does_not_show_it(name):
    with pytest.raises((TypeError, AttributeError)) as refused:
        REFUSED[name](Secret(HELD))
    assert "0.314" not in str(refused.value)


def test_it_is_equal_to_itself_alone_and_shows_nothing():
    secret = Secret(HELD)
    assert secret == secret
    assert secret != Secret(HELD)
    assert {f"{secret}", str(secret), repr(secret), format(secret)} == {"Secret(not shown)"}
    assert "0.314" not in repr([Holder(secret), {"a": secret}])
    assert not any(found is HELD for name in dir(secret) for found in [getattr(secret, name, None)])
    assert not any(hasattr(secret, name) for name in ("__array__", "__array_interface__", "__buffer__", "__dict__"))
    assert np.asarray(secret).dtype == object  # the secret itself, not what it holds
    assert opened(secret) is HELD


# ---- what objects with secrets show ---------------------------------------------------------------------------------


def texts(number):
    """The beginning of a number, as a text or in bytes."""
    return f"{number:.6g}", f"{number:.17g}", repr(float(number))


def stream(unit=None):
    problem = Problem(Logistic(), L2Ball(1.0), dimension=3)
    more = {} if unit is None else {"unit": unit}
    return pftrl(problem, Privacy(1.0, 1e-6), horizon=40, schedule=every(8), **more)


def rows(count):
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (count, 3))
    return X, np.where(X[:, 0] > 0.0, 1.0, -1.0)


def holders():
    """Objects that hold exact values, by name, with numbers that must not be seen."""
    private, (X, y) = stream(), rows(12)
    state, _ = private.run(private.start(), X, y)
    exact = exact_of(state)["sum"]
    yield "State", state, exact
    yield "Standing", standing_of(state), exact
    prepared = private.prepare(state, X[:3], y[:3])
    yield "Prepared", prepared, exact_of(prepared.state)["sum"]
    of_users = stream(User(2))
    admission = of_users.admit(of_users.start(), ["anna"] * 12)
    part = block_statistics(private.learner, state.point, X, y, excluded=admission.to_bytes())
    yield "BlockSums", part, sums_in(part)
    yield "Admission", admission, []
    yield "UserRecords", admission.records, records_of(admission.records)["hashes"].ravel()
    yield "Layer", admission.records.layers[0], records_of(admission.records)["hashes"].ravel()
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, horizon=40, release=8, feature_bound=1.0)
    model.partial_fit(X, y, classes=[-1.0, 1.0])
    yield "estimator", model, [row for row in X.ravel() if abs(row) > 1e-3]


def shown(value):
    """What is seen of an object: as a text, and as a local variable in a traceback."""

    def fails(value):
        raise ValueError("the call failed")

    try:
        fails(value)
    except ValueError as error:
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        return "".join(told.format()) + f"{value} {value!r} {[value]}"


HOLDERS = {name: (value, numbers) for name, value, numbers in holders()}


@pytest.mark.privacy
@each("name", HOLDERS)
def test_nothing_of_them_is_in_a_repr_or_a_traceback(name):
    value, numbers = HOLDERS[name]
    seen = shown(value)
    assert not [text for number in numbers if abs(number) > 1e-9 for text in texts(number) if text in seen]
    assert not re.search(r"array\(|b'|excluded=\[", seen)


@pytest.mark.privacy
@each("name", [name for name in HOLDERS if name not in ("estimator", "Prepared")])
def test_they_are_neither_copied_nor_pickled_nor_taken_apart(name):
    value, _ = HOLDERS[name]
    for refused in (copy.deepcopy, pickle.dumps, json.dumps):
        with pytest.raises((TypeError, AttributeError)):
            refused(value)
    if dataclasses.is_dataclass(value):
        assert not hasattr(value, "__dict__")
        with pytest.raises(TypeError):
            dataclasses.asdict(value)
        for field in dataclasses.fields(value):
            assert not hasattr(getattr(value, field.name), "__array__") or field.name in ("point",)


def test_sums_travel_as_bytes():
    """All of a part of a block comes back, and what is no part is rejected."""
    private, (X, y) = stream(), rows(6)
    part = block_statistics(private.learner, private.first_point, X, y, excluded=[True, *[False] * 5], key=b"key")
    again = BlockSums.from_bytes(part.to_bytes())
    assert (again.count, again.settings, again.digest) == (part.count, part.settings, part.digest)
    assert opened(again.excluded) == opened(part.excluded) == 1
    np.testing.assert_array_equal(sums_in(again), sums_in(part), strict=True)
    for content in (b"", part.to_bytes()[:-9], b"PK" * 40):
        with pytest.raises(InvalidInput, match="bytes of a BlockSums"):
            BlockSums.from_bytes(content)


def test_an_admission_tells_its_rows_to_who_adds_them_up():
    private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=9, schedule=every(3), unit=User(rows=1), seed=1)
    state = private.start()
    admission = private.admit(state, ["anna", "bob", "anna"])
    assert excluded_in(admission).tolist() == list(admission.to_bytes()) == [0, 0, 1]
    assert admission.to_bytes(1, 3) == b"\0\1"
    parts = [
        block_statistics(private.learner, None, [[0.5]] * (b - a), excluded=admission.to_bytes(a, b))
        for a, b in ((0, 1), (1, 3))
    ]
    after, _ = private.run_sums(state, parts, admission)
    assert record_of(after.users, "anna")["count"] == 1
    assert record_of(after.users, "eve") is None


# ---- who opens them -------------------------------------------------------------------------------------------------

OPENS = {f"taciturn.kernel.{name}" for name in ("replay", "stream.block_sums", "stream.loop", "stream.participation")}
OPENS |= {"taciturn.kernel.stream.state"}
STANDS = {  # where a state is opened for a call that learns from it, and closed again
    "taciturn.kernel.stream.stream",
    "taciturn.methods.staged",
}
REPLAYS = {
    *(f"taciturn.audit.{name}" for name in ("pairs", "selection", "transcripts")),
    *(f"taciturn.checks.{name}" for name in ("learners", "readers", "wiring")),
    "taciturn.bandits.simulate",  # what a policy without noise would earn
    "taciturn.regret.optimum",  # and what the best point in hindsight would have
    "taciturn.reproduce.covertype",
}
"""Who may open what: everyone else is an offence."""


def imports(module, source):
    """Modules and names that `source` imports, wherever it does, and attributes that it takes of modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], *([base] if base else [])])
            yield base, None
            yield from ((base, alias.name) for alias in node.names)
            yield from ((f"{base}.{alias.name}", None) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("taciturn."):
            yield node.value, None  # by import_module


def taken_of_modules(tree):
    """Attributes that are taken of imported names, as in `state.standing_of`."""
    nodes = list(ast.walk(tree))
    given = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    bound = {(alias.asname or alias.name).split(".")[0] for alias in given}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            base = node.value
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id in bound:
                yield node.attr


def offences(module, source):
    """What this module opens and may not."""
    found = set(imports(module, source))
    names = set(taken_of_modules(ast.parse(source)))
    made = []
    if ("taciturn.kernel.replay", None) in found and module not in REPLAYS:
        made.append("imports kernel.replay")
    secret = "taciturn.kernel.secret"
    everything = (secret, None) in found and not any(base == secret and name for base, name in found)
    if ((secret, "opened") in found or (secret, "*") in found or everything) and module not in OPENS:
        made.append("opens a Secret")
    if ("taciturn.kernel.stream.state", "standing_of") in found and module not in STANDS | OPENS:
        made.append("opens a state")
    if {"opened", "standing_of"} & names and module not in OPENS:
        made.append("takes what opens out of a module")
    if "get_referents" in names:
        made.append("looks behind the wall")
    return made


WORDS = re.compile(r"replay|kernel\.secret|import secret|standing_of|opened|get_referents")
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): source
    for path in SOURCE.glob("taciturn/**/*.py")
    if WORDS.search(source := path.read_text(encoding="utf-8"))
}
"""Sources that have a word of an offence."""


def test_only_these_open_secrets():
    made = {name: offences(name, source) for name, source in MODULES.items()}
    assert {name: each for name, each in made.items() if each} == {}


def test_the_lists_name_nobody_who_does_not():
    """A module that stopped to open leaves its list."""
    found = {name: set(imports(name, source)) for name, source in MODULES.items()}
    assert {name for name in found if ("taciturn.kernel.secret", "opened") in found[name]} == OPENS
    assert {name for name in found if ("taciturn.kernel.replay", None) in found[name]} == REPLAYS
    assert {name for name in found if ("taciturn.kernel.stream.state", "standing_of") in found[name]} == STANDS


PLANTED = {
    "replay in a service": "from taciturn.kernel.replay import replay",
    "replay in a function": "def f():\n    from taciturn.kernel import replay",
    "replay by its module": "import taciturn.kernel.replay as r",
    "replay by a relative import": "from ..kernel.replay import exact_of",
    "replay by name": "import_module('taciturn.kernel.replay')",
    "opened": "from taciturn.kernel.secret import Secret, opened",
    "opened under another name": "from taciturn.kernel.secret import opened as look",
    "everything": "from taciturn.kernel.secret import *",
    "the module": "from taciturn.kernel import secret\nsecret.opened(1)",
    "through a module that opens": "from taciturn.kernel.stream import state\nstate.opened(1)",
    "a state": "from taciturn.kernel.stream.state import standing_of",
    "a state by its module": "from taciturn.kernel.stream import state\nstate.standing_of(1)",
    "behind": "import gc\ngc.get_referents(1)",
}


@each("name", PLANTED)
def test_a_planted_offence_is_found(name):
    assert offences("taciturn.service.planted", PLANTED[name])


def test_what_is_allowed_is_none():
    allowed = "from taciturn.kernel.secret import Secret\nfrom taciturn.kernel.stream.state import State\n"
    assert offences("taciturn.service.planted", allowed) == []


def test_replay_says_that_it_is_not_private():
    """By the definition and by compiled code; it says so wherever it is printed, and in each docstring."""
    learner = stream().learner
    X, y = rows(8)
    assert "NOT PRIVATE" in repr(replay(learner, X, y, np.array([8]), compiled=True))
    module = sys.modules["taciturn.kernel.replay"]
    assert "NOT PRIVATE" in module.__doc__
    made = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    functions = [each for each in made if isinstance(each, ast.FunctionDef) and each.name != "replay"]
    assert len(functions) > 5
    assert all("NOT PRIVATE" in ast.get_docstring(each) for each in functions)
