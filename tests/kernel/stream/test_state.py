"""States are plain data that can be saved, say to which settings they belong, and go on once."""

import contextlib
import copy
import importlib
import io
import json
import os
import pickle
import pkgutil
import subprocess
import sys
import threading
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import taciturn
from taciturn import (
    Box,
    BudgetExhausted,
    Example,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    ObjectivePerturbation,
    Privacy,
    Private,
    Problem,
    Squared,
    StateConflict,
    User,
    at,
    every,
    geometric,
    pgiga,
    pigd,
)
from taciturn.accounting.memory_store import IN_MEMORY
from taciturn.kernel.replay import arrays_in, exact_of
from taciturn.kernel.stream.fingerprint import FIELDS, SINCE, fingerprint, first_name, is_setting, name_of, ours
from taciturn.kernel.stream.state import read_extra, read_state
from taciturn.methods.stages import OneRelease
from taciturn.tables.column_maps import Standardise

PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
BUDGET = Privacy(1.0, 1e-6)
X, Y = np.array([[0.3, -0.4], [0.1, 0.9], [-0.7, 0.2], [0.5, 0.5]]), np.array([1.0, -1.0, 1.0, 1.0])


def private(**settings):
    return pigd(PROBLEM, BUDGET, 4, **settings)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_state_survives_dump_and_load(tmp_path, seed):
    """Everything in it comes back, bit for bit."""
    one = private(seed=seed)
    state, _ = one.run(one.start(), X[:2], Y[:2])
    state.dump(tmp_path / "state.npz")
    again = one.load(tmp_path / "state.npz")
    for name in ("settings", "lineage", "generation", "t", "k", "spent"):
        assert getattr(again, name) == getattr(state, name)
    for part in ("exact", "secret", "public", "numbers"):
        assert arrays_in(again)[part].keys() == arrays_in(state)[part].keys()
        for name, array in arrays_in(state)[part].items():
            np.testing.assert_array_equal(arrays_in(again)[part][name], array)
    np.testing.assert_array_equal(again.point, state.point)


def test_resuming_a_simulation_is_bit_for_bit(tmp_path):
    """Stopping, saving and going on releases what going on at once would have."""
    one = private(seed=9)
    _, whole = one.run(one.start(), X, Y)
    state, first = one.run(one.start(), X[:2], Y[:2])
    state.dump(tmp_path / "state.npz")
    _, rest = one.run(one.load(tmp_path / "state.npz"), X[2:], Y[2:])
    for a, b in zip(whole, first + rest, strict=True):
        np.testing.assert_array_equal(a.noisy, b.noisy)


@pytest.mark.privacy
@pytest.mark.parametrize("copied", [copy.copy, lambda s: read_state(s.to_bytes()), replace])
def test_of_two_copies_only_one_goes_on(copied):
    """The other is refused, whichever way the copy was made."""
    one = private()
    state, _ = one.run(one.start(), X[:1], Y[:1])
    twin = copied(state)
    one.run(twin, X[1:2], Y[1:2])
    with pytest.raises(StateConflict, match="copy or an old snapshot"):
        one.run(state, X[1:2], Y[1:2])


@pytest.mark.privacy
def test_old_snapshots_are_refused(tmp_path):
    """A file written before the stream went on cannot be used in this process."""
    one = private()
    state = one.start()
    state.dump(tmp_path / "old.npz")
    state, _ = one.run(state, X[:1], Y[:1])
    with pytest.raises(StateConflict, match="snapshot"):
        one.load(tmp_path / "old.npz")
    state.dump(tmp_path / "new.npz")
    one.run(one.load(tmp_path / "new.npz"), X[1:2], Y[1:2])


def elsewhere(code, *arguments):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return done.stdout


RESUME = """
import sys, numpy as np
from taciturn import L2Ball, Logistic, Privacy, Problem, pigd, StateConflict
one = pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1), Privacy(1.0, 1e-6), 4)
state = one.load(sys.argv[1])
twin = one.load(sys.argv[1])
state, shown = one.run(state, [[0.1, 0.1]], [1.0])
print(state.t, len(shown))
try:
    one.run(twin, [[0.1, 0.1]], [1.0])
except StateConflict:
    print("refused")
"""


def test_another_process_goes_on_from_a_file_once(tmp_path):
    """A fresh process takes the file at its word, and guards the stream from then on."""
    one = private()
    state, _ = one.run(one.start(), X[:2], Y[:2])
    state.dump(tmp_path / "state.npz")
    assert elsewhere(RESUME, tmp_path / "state.npz").split() == ["3", "1", "refused"]


@pytest.mark.privacy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_cannot_go_on_with_its_parents_stream():
    """The child is refused; the parent goes on."""
    one = private()
    state = one.start()
    child = os.fork()
    if child == 0:
        try:
            one.run(state, X[:1], Y[:1])
        except StateConflict:
            os._exit(17)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    one.run(state, X[:1], Y[:1])


@pytest.mark.privacy
def test_a_second_stream_is_charged_whole_in_the_same_ledger():
    """fork() lets a used state go on, and the ledger reserves its cost twice; without room it is refused."""
    ledger, one = Ledger(), private()
    start = one.start(ledger)
    one.run(start, X[:2], Y[:2])
    second = one.fork(start)
    assert ledger.reserved.mu_squared == pytest.approx(2 * one.guarantee.delivered.mu_squared)
    second, _ = one.run(second, X[:2], Y[:2])
    assert second.lineage != start.lineage
    assert ledger.spent.mu_squared == pytest.approx(2 * second.spent.mu_squared)
    tight = Ledger(BUDGET)
    with pytest.raises(Exception, match="reserve"):
        one.fork(one.start(tight))


def test_a_ledger_takes_a_stream_up_where_it_stands(tmp_path):
    """load() with the ledger that knows the stream goes on; with another ledger of this process it is refused."""
    ledger, one = Ledger(), private()
    state, _ = one.run(one.start(ledger), X[:1], Y[:1])
    state.dump(tmp_path / "state.npz")
    with pytest.raises(StateConflict, match="another ledger"):
        one.load(tmp_path / "state.npz", Ledger())
    one.run(one.load(tmp_path / "state.npz", ledger), X[1:2], Y[1:2])
    assert ledger.reserved == one.guarantee.delivered


@pytest.mark.parametrize(
    "other",
    [
        private(seed=1),
        pigd(PROBLEM, BUDGET, 5),
        pigd(PROBLEM, Privacy(1.0, 1e-7), 4),
        pigd(replace(PROBLEM, ridge=0.2), BUDGET, 4),
        pigd(replace(PROBLEM, loss=Hinge()), BUDGET, 4),
        pgiga(PROBLEM, BUDGET, 4),
        private(schedule=every(2)),
        private(shape="S"),
    ],
)
def test_a_state_of_other_settings_is_refused(other):
    """Whatever differs."""
    one = private()
    with pytest.raises(StateConflict, match="other settings"):
        other.run(one.start(), X[:1], Y[:1])


def test_settings_are_told_apart_by_every_field_and_alike_in_every_process():
    """Equal settings hash alike, here and in a fresh process; NumPy numbers count as the numbers they are."""
    assert private().settings == private().settings
    assert private(schedule=geometric(1.5)).settings != private(schedule=geometric(1.6)).settings
    assert pigd(PROBLEM, BUDGET, np.int64(4)).settings == private().settings
    assert pigd(PROBLEM, BUDGET, np.int64(5)).settings != private().settings
    code = (
        "from taciturn import *; print(pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1), "
        "Privacy(1.0, 1e-6), 4).settings)"
    )
    assert elsewhere(code).strip() == private().settings


def settings_classes():
    """Every class of the package that can be part of a Private, by the roles it can have there."""
    roles = "absorb", "calibrate", "round_of", "slope", "project", "gradient", "statistic_size", "takes_missing"
    found = {Private, ObjectivePerturbation, Problem, Privacy, User, *OneRelease.__subclasses__()}
    for module in pkgutil.walk_packages(taciturn.__path__, "taciturn."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed
                kinds = vars(importlib.import_module(module.name)).values()
                found |= {kind for kind in kinds if isinstance(kind, type) and any(hasattr(kind, r) for r in roles)}
    return {kind for kind in found if kind.__module__.startswith("taciturn.")}


def test_settings_classes_of_the_package_have_names_of_their_own():
    """Which do not say where they are defined: a state outlives a move. Classes of users are named in full."""
    kinds = settings_classes()
    assert {Gaussian, Hinge, L2Ball, type(every(1)), type(private().learner)} <= kinds
    names = [name_of(kind) for kind in kinds]
    assert len(set(names)) == len(names)
    assert not any("taciturn." in name for name in names)

    class Mine(Hinge):
        pass

    assert name_of(Mine) == f"{__name__}.{Mine.__qualname__}"


NEVER_STORED = ("taciturn.methods.optimize", "taciturn.reproduce.methods")  # objectives, and learners of figures


def test_the_default_of_every_field_is_in_a_table():
    """So that it can be changed: a description leaves out fields with the values of the tables."""
    missing = set()
    for kind in filter(is_dataclass, settings_classes()):
        rows = {name for base in ours(kind) for table in (FIELDS, SINCE) for name in table.get(name_of(base), {})}
        made = [field for field in fields(kind) if (field.default, field.default_factory) != (MISSING, MISSING)]
        names = {first_name(kind, field.name) for field in made if is_setting(kind, field.name)}
        missing |= {(name_of(kind), name) for name in names - rows if kind.__module__ not in NEVER_STORED}
    assert not missing, "Add these fields, with their defaults, to kernel.stream.fingerprint.SINCE."


def test_settings_that_cannot_be_told_apart_are_refused():
    """A function, a set, a class with slots: nothing that would hash by its type alone."""

    @dataclass(frozen=True)
    class Setting:
        value: object

    for value in (lambda: 0, {1, 2}, b"x", type("Slotted", (), {"__slots__": ("a",)})()):
        with pytest.raises(InvalidInput, match="plain data"):
            fingerprint(Setting(value))


def test_caches_of_a_users_object_do_not_change_its_hash():
    """A cached property that was used is not a setting."""

    class Mine:
        def __init__(self, width):
            self.width = width

        @cached_property
        def square(self):
            return self.width**2

    fresh, used = Mine(3.0), Mine(3.0)
    assert used.square == 9.0
    assert fingerprint(fresh) == fingerprint(used) != fingerprint(Mine(4.0))


@pytest.mark.privacy
def test_nothing_secret_is_shown(tmp_path):
    """The iterate appears in no repr; the file is its owner's alone, holds no pickle, no key and no noise."""
    one = private()
    state, releases = one.run(one.start(), X, Y)
    for number in exact_of(state)["x"]:
        assert f"{number:.6g}" not in repr(state) + repr(releases) + repr(one) + str(one.guarantee)
    path = tmp_path / "state.npz"
    state.dump(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["state.npz"]
    with np.load(path, allow_pickle=False) as file:
        secret = {name for name in file.files if not name.startswith("numbers/")}
        assert secret == {"header", "point", "exact/x"}
        header = json.loads(str(file["header"]))
    assert set(header) == {"settings", "lineage", "generation", "token", "t", "k", "version", "spent"}


def test_a_dump_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    """Whole or not at all."""
    one = private()
    state = one.start()
    path = tmp_path / "state.npz"
    state.dump(path)
    before = path.read_bytes()

    def full(file, arrays):
        file.write(b"PK")
        raise OSError("disk full")

    monkeypatch.setattr("taciturn.kernel.stream.state.write_npz", full)
    with pytest.raises(OSError, match="disk full"):
        state.dump(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["state.npz"]


@pytest.mark.parametrize("content", [b"", b"not a state", b"PK\x03\x04broken"])
def test_other_files_are_refused(tmp_path, content):
    """With the remedy."""
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(StateConflict, match="dump"):
        read_state(path)


@pytest.mark.parametrize("header", ["[]", "[1, 2]", "3", "null", '"text"', "{}", "nan", "[" * 10**5])
def test_a_header_that_is_no_header_is_refused(header):
    with np.load(io.BytesIO(private().start().to_bytes())) as content:
        arrays = {name: content[name] for name in content.files}
    file = io.BytesIO()
    np.savez(file, **{**arrays, "header": np.array(header)})
    with pytest.raises(StateConflict):
        read_state(file.getvalue())


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_changes_nothing_of_the_state(place, byte):
    """Names and checksums are part of the file: no error of the archive's reader comes through."""
    state = private().start()
    written = state.to_bytes()
    content = bytearray(written)
    content[place % len(content)] = byte
    try:
        made = read_state(bytes(content))
    except StateConflict:
        return
    assert (made.point.tobytes(), made.position, made.spent) == (state.point.tobytes(), state.position, state.spent)


@pytest.mark.privacy
@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_no_copy_is_made_of_what_a_state_holds(copied):
    one = private()
    state, _ = one.run(one.start(), X[:1], Y[:1])
    with pytest.raises(TypeError, match="to_bytes"):
        copied(state)


def test_private_can_be_pickled():
    """Settings travel to other processes; caches do not, and states travel as bytes."""
    one = private(schedule=geometric(1.5))
    state, _ = one.run(one.start(), X[:1], Y[:1])
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.settings == one.settings
    assert "calibrated" not in vars(pickle.loads(pickle.dumps(one)))
    assert read_state(state.to_bytes()).lineage in IN_MEMORY
    assert pickle.loads(pickle.dumps(Gaussian("S"))) == Gaussian("S")


ONE = {
    "problem": PROBLEM,
    "privacy": BUDGET,
    "horizon": 4,
    "schedule": every(1),
    "shape": "S",
    "calibration": "exact",
    "allow_broken": False,
    "seed": None,
    "unit": Example(),
}
OTHER = {
    "privacy": [Privacy(1.0 + 2e-16, 1e-6), Privacy(1.0, 1.0000001e-6)],
    "horizon": [5, None],
    "schedule": [every(2), at([1, 4]), geometric(1.1), geometric(1.1, 2)],
    "shape": ["S^(2/3)", "S^(1/2)"],
    "calibration": ["paper-proven"],
    "allow_broken": [True],
    "seed": [0, 1],
    "unit": [
        User(1),
        User(2),
        User(2, 1),
        User(2, 1, 2),
        User(2, period=9),
        User(2, period="week"),
        User(1, without_id="own"),
    ],
    "problem": [
        replace(PROBLEM, **change)
        for change in (
            {"loss": Hinge()},
            {"loss": Squared(), "label_bound": 1.0},
            {"domain": L2Ball(1.0 + 2e-16)},
            {"domain": Box(-1.0, 1.0)},
            {"dimension": 3},
            {"feature_bound": 1.5},
            {"intercept": 0.1},
            {"ridge": 0.1 + 1e-16},
            {"neighbours": "zero-out"},
            {"on_bad": "zero"},
            {"features": Standardise(np.zeros(2), np.ones(2))},
            {"features": Standardise(np.zeros(2), np.array([1.0, 1.0 + 2e-16]))},
            {"loss": Squared(), "label_bound": 1.0, "label_center": 1e-16},
            {"loss": Squared(), "label_bound": 1.0, "label_scale": 1.0 + 3e-16},
        )
    ],
}


def test_every_setting_is_in_the_hash():
    """Changing any one field, by one bit, gives another hash; the list of fields is complete."""
    allowed = {"allow_broken": True}
    made = [pigd(**ONE)]
    made += [pigd(**(ONE | {n: v} | (allowed if n == "calibration" else {}))) for n, vs in OTHER.items() for v in vs]
    made += [pgiga(**ONE), pgiga(**ONE, step="printed")]
    assert len({one.settings for one in made}) == len(made)
    settled = (set(ONE) - {"problem", "shape"}) | {"learner", "mechanism"}
    assert {f.name for f in fields(Private)} == settled | {"compiled"}
    assert {f.name for f in fields(Problem)} == {
        "loss", "domain", "dimension", "feature_bound", "label_bound", "intercept", "ridge", "neighbours", "on_bad",
        "features", "label_center", "label_scale",
    }  # fmt: skip


@pytest.mark.parametrize("made", [pigd(**ONE), pgiga(**ONE), pigd(**(ONE | {"seed": 3}))])
def test_how_fast_it_goes_is_no_setting(made):
    """Compiled or not, the same is released: the hash is the same, and a state of one goes on in the other."""
    slow = replace(made, compiled=False)
    assert made.compiled
    assert slow.settings == made.settings
    state = made.start()
    for one, rows in ((made, slice(0, 2)), (slow, slice(2, 3)), (made, slice(3, 4))):
        state, shown = one.run(state, X[rows], Y[rows])
        assert [release.t for release in shown] == list(range(1, 5))[rows]


def test_equal_settings_have_equal_hashes():
    """Whether a number was written as 1 or as 1.0 makes no difference."""
    assert Privacy(1, 1e-6) == Privacy(1.0, 1e-6)
    assert fingerprint(Privacy(1, 1e-6)) == fingerprint(Privacy(1.0, 1e-6))


@pytest.mark.privacy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_a_second_stream_only_in_a_ledger_of_its_own():
    """Without a ledger, and with its parent's, the child is refused: nobody would add its spending up."""
    ledger, one = Ledger(BUDGET), private()
    state = one.start(ledger)
    child = os.fork()
    if child == 0:
        outcome = 0
        try:
            one.fork(state)
        except StateConflict:
            outcome += 1
        try:
            one.run(one.fork(state, ledger), X[:1], Y[:1])
        except (StateConflict, BudgetExhausted):
            outcome += 2
        one.run(one.fork(state, Ledger(BUDGET)), X[:1], Y[:1])
        os._exit(outcome + 4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.privacy
def test_a_state_moved_on_by_hand_is_refused():
    """Counting a generation up without learning does not make a used state live again."""
    one = private()
    state = one.start()
    one.step(state, X[:1], Y[:1])
    with pytest.raises(StateConflict, match="not its live state"):
        one.step(replace(state, generation=1), X[:1], Y[:1])


@pytest.mark.privacy
def test_a_private_state_cannot_pass_for_a_simulation_nor_for_another_round():
    """A forged lineage, or rounds that do not fit the releases made, are refused before anything is released."""
    one = private()
    state = one.start()
    for forged in (replace(state, lineage="simulation"), replace(state, k=2), replace(state, t=3)):
        with pytest.raises(StateConflict, match="other settings"):
            one.step(forged, X[:1], Y[:1])


@pytest.mark.privacy
def test_what_a_guarantee_was_computed_from_cannot_be_changed():
    """Rounds, deviations and lattice steps are read-only."""
    one = private()
    for array in (one.timetable.rounds, *one.calibrated.levels_of(1, 2)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.privacy
def test_classes_of_one_name_that_behave_differently_are_told_apart():
    """A loss redefined under its old name has other constants: a state of the one is rejected by the other."""

    def steep(scale):
        class Mine(Hinge):
            def slope(self, u, y):
                return scale * super().slope(u, y)

            def slope_bound(self, reach, label_bound):
                return scale

        return pigd(replace(PROBLEM, loss=Mine(), domain=L2Ball(1e6)), BUDGET, 4)

    state = steep(1.0).start()
    steep(1.0).resumed(state)
    for scale in (100.0, 1.0 - 1e-8):
        with pytest.raises(StateConflict, match="other settings"):
            steep(scale).step(state, X[:1], Y[:1])


@pytest.mark.privacy
def test_of_racing_loads_one_goes_on(tmp_path):
    """Threads that load one file in a process that does not know the stream share one ledger."""
    one = private()
    state = one.start()
    state.dump(tmp_path / "state.npz")
    IN_MEMORY.clear()
    wins, ready = [], threading.Barrier(8)

    def go():
        ready.wait()
        with contextlib.suppress(StateConflict):
            wins.append(one.step(one.load(tmp_path / "state.npz"), X[:1], Y[:1]))

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1


@pytest.mark.privacy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_ledger_belongs_to_one_process():
    """Forked workers that start streams in their parent's ledger are refused: nobody adds their copies up."""
    ledger, one, released = Ledger(BUDGET), private(), 0
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                one.run(one.start(ledger), X[:1], Y[:1])
            except (StateConflict, BudgetExhausted):
                os._exit(17)
            os._exit(0)
        released += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert released == 0


@pytest.mark.privacy
def test_a_branch_of_another_process_is_refused(tmp_path):
    """A state that another process led on from a copy has another token, even at the same round."""
    one = private()
    state = one.start()
    state.dump(tmp_path / "copy.npz")
    mine, _ = one.run(state, X[:1], Y[:1])
    code = RESUME.replace("twin = one.load(sys.argv[1])", "twin = state").replace(
        "print(", "state.dump(sys.argv[1]); print(", 1
    )
    elsewhere(code, tmp_path / "copy.npz")
    assert read_state(tmp_path / "copy.npz").t == mine.t
    with pytest.raises(StateConflict, match="not its live state"):
        one.load(tmp_path / "copy.npz")


def test_a_missing_file_is_named(tmp_path):
    """Not called a state of another kind."""
    with pytest.raises(InvalidInput, match="does not exist"):
        private().load(tmp_path / "nowhere.npz")


def test_arrays_beside_a_state_are_committed_with_it(tmp_path):
    state = private().start()
    state.dump(tmp_path / "state.npz", {"offset": np.array(17), "exact/x": np.ones(2)})
    extra = read_extra(tmp_path / "state.npz")
    assert sorted(extra) == ["exact/x", "offset"]
    assert int(extra["offset"]) == 17
    assert sorted(exact_of(read_state(tmp_path / "state.npz"))) == sorted(exact_of(state))
    state.dump(tmp_path / "plain.npz")
    assert read_extra(tmp_path / "plain.npz") == {}
