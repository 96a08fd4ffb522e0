"""A stream goes on with the numbers it began with, on a machine that calibrates others.

Other processors are imitated in fresh processes, by the kernels that OpenBLAS and NumPy are told to use, each with an
empty cache of fits. Where a build ignores that, the tests hold trivially; `test_fits_differ...` says whether it does.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from small_run import write_case
from taciturn import (
    BLT,
    EWOO,
    FTL,
    FTRL,
    IGD,
    Absolute,
    BinaryTree,
    Box,
    Gaussian,
    Hinge,
    L2Ball,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    SquareRoot,
    StateConflict,
    averaged,
    every,
    ewoo,
    pftrl,
    pigd,
    pqftl,
    private_sum,
)
from taciturn.accounting.memory_store import IN_MEMORY
from taciturn.calibration import mechanisms as calibration
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.mechanisms.prefix_sum import Finite
from taciturn.kernel.replay import arrays_in
from taciturn.kernel.secret import Secret
from taciturn.kernel.stream.protocols import Certificate, Mechanism
from taciturn.kernel.stream.state import read_state
from taciturn.methods.staged import Staged
from taciturn.methods.stages import Ranges, Scales

NO_SIMD = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"  # what newer builds of NumPy call them; others are ignored
OLD_NAMES = "AVX512F AVX512CD AVX512_SKX AVX2 FMA3"
HERE: dict[str, str] = {}
OLD = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": NO_SIMD}
MACHINES = {
    "here": HERE,
    "old": OLD,
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "no simd": {"NPY_DISABLE_CPU_FEATURES": NO_SIMD},
    "no simd, by older names": {"NPY_DISABLE_CPU_FEATURES": OLD_NAMES},
    "no fma": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"},
}

BUDGET = Privacy(1.0, 1e-6)
ROWS, HALF = 24, 17
X = np.random.default_rng(3).uniform(-0.6, 0.6, (ROWS, 2))
Y = np.sign(X[:, 0] + 0.1)


def with_arrays(state, part, arrays):
    """A state of which one part is another."""
    if part == "public":
        return replace(state, public=arrays)
    kept = arrays_in(state) | {part: arrays}
    return replace(state, memories=Secret((kept["exact"], kept["secret"])))


def cases(seed=7):
    """One stream of every kind, small."""
    logistic = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    squared = Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.3)
    candidates = EWOO(Problem(Absolute(), Box(-1.0, 1.0), dimension=2, label_bound=1.0), [[-1.0, 0.0], [0.3, 0.5]])
    return {
        "sum": private_sum(2, 1.0, BUDGET, ROWS, seed=seed),
        "sum of 3 buffers": private_sum(2, 1.0, BUDGET, ROWS, strategy=BLT(3, "mean"), seed=seed),
        "tree": private_sum(2, 1.0, BUDGET, ROWS, strategy=BinaryTree(), seed=seed),
        "root": private_sum(2, 1.0, BUDGET, ROWS, strategy=SquareRoot(), seed=seed),
        "endless sum": private_sum(2, 1.0, BUDGET, seed=seed),
        "ftrl": pftrl(logistic, BUDGET, ROWS, seed=seed),
        "endless ftrl": pftrl(logistic, BUDGET, seed=seed),
        "qftl": pqftl(squared, BUDGET, ROWS, seed=seed),
        "igd": pigd(logistic, BUDGET, ROWS, seed=seed),
        "staged": Staged(FTRL(logistic), BLT(), every(1), BUDGET, ROWS, seed=seed, stages=(Ranges(4), Scales(4))),
        "endless igd": pigd(logistic, BUDGET, seed=seed),
        "paper": pigd(logistic, BUDGET, ROWS, calibration="paper-printed", allow_broken=True, seed=seed),
        "ewoo": ewoo(candidates, BUDGET, ROWS, seed=seed),
        "endless ewoo": ewoo(candidates, BUDGET, seed=seed),
    }


def levels(private, count=ROWS):
    """The noise that is drawn, in bits: standard deviations and lattice steps, or rates."""
    calibrated = private.calibrated
    if calibrated.coder is not None:
        result = [calibrated.sd, *(calibrated.step(k) for k in range(1, count + 1))]
    elif hasattr(calibrated, "levels_of"):
        result = np.concatenate(calibrated.levels_of(1, count)).tolist()
    else:
        result = calibrated.rates_of(1, count).tolist()
    return [float(number).hex() for number in result]


def told(private, releases):
    return {"levels": levels(private), "noisy": releases.noisy.tolist(), "sd": releases.noise_sd.tolist()}


# Processors.


def on(machine, tmp_path, *arguments):
    """What this module's `main` says on another machine, whose cache of fits is empty."""
    folder = tmp_path / f"cache {len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"XDG_CACHE_HOME": str(folder), "PYTHONPATH": path} | machine
    code = "import sys, test_resuming; test_resuming.main(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def main(verb, folder="", *names):
    """In a fresh process: begin streams and dump them half-way, go on from there, or both in one."""
    result = {}
    for name, private in cases().items():
        if names and name not in names:
            continue
        path = Path(folder) / f"{name}.npz"
        if verb == "levels":
            result[name] = levels(private)
            continue
        if verb == "begin":
            state, _ = private.run(private.start(), X[:HALF], Y[:HALF])
            state.dump(path)
            _, rest = private.run(state, X[HALF:], Y[HALF:])
            result[name] = told(private, rest)
        else:
            state = private.load(path)
            _, rest = private.run(state, X[HALF:], Y[HALF:])
            result[name] = told(private.resumed(state), rest) | {"own": levels(private)}
            assert private.resumed(state).guarantee.proven or name == "paper"
    sys.stdout.write(json.dumps(result))


def check_goes_on(begun, gone_on):
    assert begun.keys() == gone_on.keys()
    for name, here in begun.items():
        there = gone_on[name]
        if "igd" in name or "ewoo" in name or name == "paper":  # standard deviations follow from the certificate
            pairs = zip(here["levels"], there["levels"], strict=True)
            assert all(abs(float.fromhex(a) / float.fromhex(b) - 1.0) < 1e-13 for a, b in pairs), name
        else:
            assert here["levels"] == there["levels"], name
        np.testing.assert_allclose(there["sd"], here["sd"], rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(there["noisy"], here["noisy"], rtol=1e-9, atol=1e-6, err_msg=name)


@pytest.mark.privacy
def test_a_stream_of_every_kind_goes_on_on_another_processor(tmp_path):
    """Half of it on one, half on the other: it releases what the first would have, by the first one's numbers."""
    begun = on(HERE, tmp_path, "begin", tmp_path)
    check_goes_on(begun, on(OLD, tmp_path, "resume", tmp_path))


@pytest.mark.slow
@pytest.mark.privacy
@pytest.mark.parametrize("first", MACHINES)
def test_a_stream_of_every_kind_goes_on_on_any_processor(tmp_path, first):
    begun = on(MACHINES[first], tmp_path, "begin", tmp_path)
    for second in MACHINES.values():
        check_goes_on(begun, on(second, tmp_path, "resume", tmp_path))


@pytest.mark.slow
def test_fits_differ_between_processors(tmp_path):
    """Or else the tests above show nothing."""
    result = [on(machine, tmp_path, "levels", "", "sum")["sum"][0] for machine in (HERE, OLD)]
    if result[0] == result[1]:
        pytest.skip("this build takes no notice of the kernels it is told to use")


LEARN = "import sys; from taciturn.cli.app import main; sys.exit(main())"


def test_a_run_goes_on_on_another_processor(tmp_path):
    """`taciturn learn --resume` in the folder of a run that another machine began."""
    contract, data = write_case(tmp_path, 40, horizon=40)
    rows = data.read_text().splitlines(keepends=True)

    def learn(out, machine, cache, count, *options):
        data.write_text("".join(rows[: count + 1]))
        (tmp_path / cache).mkdir(exist_ok=True)
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / cache)} | machine
        command = ["learn", str(contract), str(data), "--out", str(tmp_path / out), "--seed", "5", "--quiet", *options]
        done = subprocess.run(
            [sys.executable, "-c", LEARN, *command], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in (tmp_path / out / "models.jsonl").read_text().splitlines()]

    unbroken = learn("one", HERE, "here", 40)
    learn("two", HERE, "here", 21)
    resumed = learn("two", OLD, "there", 40, "--resume")
    assert [line["k"] for line in resumed] == [line["k"] for line in unbroken]
    for a, b in zip(resumed, unbroken, strict=True):
        np.testing.assert_allclose(a["model"], b["model"], rtol=1e-7, atol=1e-9)


# The same in one process, for what a fresh one is not needed for.


@pytest.fixture
def elsewhere(monkeypatch):
    """A machine whose fits, certificates and best weights come out otherwise, from the call on."""

    def move(by=1e-7):
        fit = calibration.fitted
        monkeypatch.setattr(calibration, "fitted", lambda n, m, aim="max", *unit: _moved(fit(n, m, aim, *unit), by))
        bound, best = Certificate.at, QFTL._best_weight
        monkeypatch.setattr(Certificate, "at", lambda self, t: bound(self, t) * (1.0 + 1e-12))
        monkeypatch.setattr(QFTL, "_best_weight", lambda self: best(self) * (1.0 + by))

    return move


def _moved(decays, by):
    return tuple(tuple(each * (1.0 - by) for each in some) for some in decays)


@pytest.mark.privacy
@pytest.mark.parametrize("name", cases())
def test_a_state_goes_on_with_its_own_numbers(name, elsewhere, tmp_path):
    """And is dumped with them again; the cost is what was reserved, up to rounding, and within the budget."""
    here, half = cases()[name], ROWS // 2
    state, _ = here.run(here.start(), X[:half], Y[:half])
    state.dump(tmp_path / "state.npz")
    state.dump(tmp_path / "first.npz")
    _, unbroken = here.run(state, X[half:], Y[half:])
    reserved, began = here.guarantee.delivered, levels(here)
    elsewhere()
    there = cases()[name]
    state = there.load(tmp_path / "state.npz")
    for row in range(half, ROWS):
        state, _ = there.step(state, X[row : row + 1], Y[row : row + 1])
        state.dump(tmp_path / "state.npz")
        state = there.load(tmp_path / "state.npz")
    resumed = there.resumed(state)
    assert resumed.guarantee.proven or name == "paper"
    assert resumed.guarantee.delivered.parts == pytest.approx(reserved.parts, rel=1e-11)
    _, rest = there.run(there.load(tmp_path / "first.npz"), X[half:], Y[half:])
    np.testing.assert_allclose(rest.noisy, unbroken.noisy, rtol=1e-9, atol=1e-6)
    resumed = there.resumed(read_state(tmp_path / "first.npz"))
    assert [float.fromhex(a) for a in levels(resumed)] == pytest.approx([float.fromhex(a) for a in began], rel=1e-11)


@pytest.mark.privacy
@pytest.mark.parametrize("name", ["sum", "qftl", "igd", "ewoo", "endless sum"])
def test_states_of_several_machines_go_on_side_by_side(name, elsewhere, tmp_path):
    """One Private, streams of different numbers: each keeps its own, and its reservation in the ledger."""
    here = cases(seed=None)[name]
    state, _ = here.run(here.start(), X[:5], Y[:5])
    state.dump(tmp_path / "foreign.npz")
    IN_MEMORY.clear()  # as in another process
    elsewhere()
    there = cases(seed=None)[name]
    own, foreign = there.start(), there.load(tmp_path / "foreign.npz")
    for row in range(5, 20):
        one = slice(row, row + 1)
        own, _ = there.run(own, X[one], Y[one])
        foreign, _ = there.run(foreign, X[one], Y[one])
    assert there.resumed(own) is there
    assert there.resumed(foreign) is not there
    foreign.dump(tmp_path / "again.npz")
    there.load(tmp_path / "again.npz")
    second = there.fork(foreign)
    there.run(second, X[20:], Y[20:])


def test_a_scikit_learn_model_goes_on_elsewhere(elsewhere, tmp_path):
    """A stream that it dumped, in a pickled copy of it; its plan is that of the stream."""
    pytest.importorskip("sklearn")
    from taciturn.estimators.sklearn import PrivateLogisticRegression

    model = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, horizon=ROWS, seed=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(X[:9], Y[:9], classes=[-1.0, 1.0])
        model.dump_stream(tmp_path / "stream.npz")
        copied, noise = pickle.dumps(model), model.plan_.private.calibrated.sd
        model.partial_fit(X[9:], Y[9:])
        elsewhere()
        again = pickle.loads(copied)
        again.load_stream(tmp_path / "stream.npz")
        again.partial_fit(X[9:], Y[9:])
    assert again.plan_.private.calibrated.sd == noise
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-7)


@pytest.mark.privacy
@pytest.mark.parametrize("name", cases())
def test_damaged_numbers_are_rejected(name):
    """Less noise costs more than the budget; whatever else is wrong is said in a sentence."""
    one = cases()[name]
    state, _ = one.run(one.start(), X[:5], Y[:5])

    def go_on(changes):
        damaged = replace(state, numbers={n: a for n, a in {**state.numbers, **changes}.items() if a is not None})
        one.run(damaged, X[5:6], Y[5:6])

    for label, array in state.numbers.items():
        wrong = [np.full(np.shape(array), bad) for bad in (0.0, -1.0, np.nan, np.inf)]
        for value in (None, np.array("x"), np.full((2, 3), 0.5), *wrong):
            with pytest.raises(StateConflict, match=r"damaged|other settings"):
                go_on({label: value})
    less = {"mechanism.sd": 1.0 - 1e-6, "mechanism.scale": 1.0 - 1e-6, "mechanism.mu": 1.0 + 1e-6}
    less |= {"mechanism.eta": 1.0 + 1e-6, "mechanism.rho": 1.0 + 1e-6}
    lowered = [(label, by) for each, by in less.items() for label in state.numbers if label.endswith(each)]
    assert lowered or name == "paper"
    for label, by in lowered:
        with pytest.raises(StateConflict, match="cost more than the budget"):
            go_on({label: state.numbers[label] * by})
    for label in (label for label in state.numbers if label.endswith("mechanism.step")):
        for by in (0.75, 2.0**-30, 2.0**30):
            with pytest.raises(StateConflict, match="damaged"):
                go_on({label: state.numbers[label] * by})


@pytest.mark.privacy
def test_more_noise_than_was_calibrated_is_legal():
    """It keeps the budget; what is delivered is what that noise delivers."""
    one = cases()["sum"]
    state = one.start()
    more = replace(state, numbers=state.numbers | {"mechanism.sd": state.numbers["mechanism.sd"] * 1.5})
    assert one.resumed(more).guarantee.delivered.mu == pytest.approx(one.guarantee.delivered.mu / 1.5, rel=1e-6)


@pytest.mark.privacy
@pytest.mark.parametrize(("label", "value"), [("mechanism.eta", 1e200), ("mechanism.eta", 1e308)])
def test_a_stored_range_whose_square_overflows_is_damaged(label, value):
    one = replace(cases()["ewoo"], privacy=Privacy(20.0, 1e-6))
    state, _ = one.run(one.start(), X[:5], Y[:5])
    assert label in state.numbers
    for pure in (False, True):
        edited = state.numbers | {label: np.array(value), "mechanism.pure": np.array(pure)}
        with pytest.raises(StateConflict, match="damaged"):
            one.resumed(replace(state, numbers=edited))


@pytest.mark.privacy
@pytest.mark.parametrize("value", [1e160, 1e300])
def test_a_stored_weight_whose_square_overflows_is_damaged(value):
    one = cases()["qftl"]
    state, _ = one.run(one.start(), X[:5], Y[:5])
    edited = replace(state, numbers=state.numbers | {"learner.weight": np.array(value)})
    with pytest.raises(StateConflict, match="damaged"):
        one.resumed(edited)


class Cautious(BLT):
    """More noise than the budget asks for, so that a little less of it keeps the budget, too."""

    def calibrate(self, certificate, timetable, size, privacy, calibration):
        exact = BLT.calibrate(self, certificate, timetable, size, privacy, calibration)
        return Finite(exact.coder, certificate, timetable, size, privacy, 1.5 * exact.sd)

    def restore(self, *settings):
        return BLT.restore(self, *settings)


@pytest.mark.privacy
@pytest.mark.parametrize("less", [0.02, 0.04])
def test_stored_noise_is_that_of_the_settings_up_to_three_percent(less):
    """Two fits on two machines differ by less; numbers with less noise than that made none of the earlier releases."""
    problem = Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.1)
    one = Private(FTRL(problem), Cautious(), every(1), BUDGET, ROWS, seed=2)
    state, _ = one.run(one.start(), X[:5], Y[:5])
    edited = replace(state, numbers=state.numbers | {"mechanism.sd": state.numbers["mechanism.sd"] * (1.0 - less)})
    if less < 0.03:
        assert one.resumed(edited).guarantee.proven
    else:
        with pytest.raises(StateConflict, match="their noise is not that of these settings"):
            one.resumed(edited)


def changed(array):
    """The array with one row or entry more, one less, one axis more, another type, and in another byte order."""
    array = np.asarray(array)
    flat = [array[None], array.astype(np.float32), array.astype(array.dtype.newbyteorder())]
    if array.size:
        flat += [array[:-1], array[..., :-1], np.concatenate([array, array[-1:]])]
    return [*flat, np.zeros((*array.shape[:-1], 11)), np.full(array.shape, "x")]


@cache
def streams_to_edit():
    """Those of `cases`, and others whose memory grows."""
    logistic = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    learners = {"ftl": FTL(logistic), "mean": averaged(IGD(logistic), horizon=ROWS)}
    private = {name: Private(each, Gaussian(), every(1), BUDGET, ROWS, seed=7) for name, each in learners.items()}
    trees = {
        "ftrl by a tree": pftrl(logistic, BUDGET, ROWS, strategy=BinaryTree(), seed=7),
        "ftrl by roots": pftrl(logistic, BUDGET, ROWS, strategy=SquareRoot(), seed=7),
    }
    return cases() | private | trees


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", streams_to_edit())
def test_arrays_of_other_shapes_or_types_in_a_file_are_rejected(name, compiled, tmp_path):
    """Compiled loops would read and write beyond them; intact files go on, after any number of examples."""
    one = replace(streams_to_edit()[name], compiled=compiled)
    state, path = one.start(), tmp_path / "state.npz"
    for t in range(ROWS):
        state.dump(path)
        state, _ = one.run(one.load(path), X[t : t + 1], Y[t : t + 1])
        if t - getattr(one, "rows_of_stages", 0) not in (0, 6):  # stages run no compiled code
            continue
        for part in ("exact", "secret", "public"):
            arrays = arrays_in(state)[part]
            edits = [{**arrays, label: wrong} for label, array in arrays.items() for wrong in changed(array)]
            edits += [{**arrays, "more": np.zeros(2)}, *({n: a for n, a in arrays.items() if n != m} for m in arrays)]
            for edited in edits:
                with_arrays(state, part, edited).dump(path)
                with pytest.raises(StateConflict, match=f"the arrays of this state are damaged: {part} .* intact copy"):
                    one.load(path)
        for wrong in changed(state.point):
            replace(state, point=wrong).dump(path)
            with pytest.raises(StateConflict, match="the arrays of this state are damaged: the point should be"):
                one.load(path)


@pytest.mark.parametrize("change", [{"t": 5.0}, {"t": "5"}, {"k": -1}, {"k": True}, {"token": 3}, {"settings": None}])
def test_a_header_of_other_types_is_no_state(change, tmp_path):
    one = cases()["igd"]
    state, _ = one.run(one.start(), X[:5], Y[:5])
    replace(state, **change).dump(tmp_path / "state.npz")
    with pytest.raises(StateConflict, match="not a complete state"):
        one.load(tmp_path / "state.npz")


@pytest.mark.parametrize("model", [np.zeros(7), np.zeros((1, 3)), np.zeros(3, dtype=np.float32), np.array("x")])
def test_a_model_of_another_shape_beside_a_state_is_rejected(model, tmp_path):
    from taciturn.estimators.settings import Settings
    from taciturn.estimators.stream import Stream

    plan = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, seed=1).plan(2, ROWS)
    stream = Stream(plan)
    stream.learn(X[:5], Y[:5])
    stream.dump(tmp_path / "stream.npz", {"model": model})
    with pytest.raises(StateConflict, match="the model should be float64 of shape"):
        Stream.load(plan, tmp_path / "stream.npz")


class Mine(Mechanism):
    """A mechanism of a user's, without the verb for stored numbers."""

    accepts = "l2/tail"

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def calibrate(self, *settings):
        return self.mechanism.calibrate(*settings)


class Widened(BLT):
    """A user's subclass that overrides only one of two verbs that belong together."""

    def coder(self, n):
        return BLT.coder(self, n)


@pytest.mark.privacy
@pytest.mark.parametrize("mechanism", [Mine(Gaussian()), Widened()])
def test_mechanisms_without_the_verb_go_on_where_they_calibrate_the_same(mechanism, elsewhere, tmp_path):
    problem = Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.1)
    learner = FTRL(problem) if isinstance(mechanism, BLT) else pigd(problem, BUDGET, ROWS).learner

    def private():
        return Private(learner, mechanism, every(1), BUDGET, ROWS, seed=2)

    one = private()
    state, _ = one.run(one.start(), X[:5], Y[:5])
    state.dump(tmp_path / "state.npz")
    private().run(private().load(tmp_path / "state.npz"), X[5:], Y[5:])
    elsewhere(by=1e-5)
    with pytest.raises(StateConflict, match=r"other settings|is not the one"):
        private().load(tmp_path / "state.npz")


def test_a_state_of_an_older_version_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("taciturn.kernel.stream.state.VERSION", 1)
    cases()["igd"].start().dump(tmp_path / "old.npz")
    monkeypatch.undo()
    with pytest.raises(StateConflict, match="another version"):
        cases()["igd"].load(tmp_path / "old.npz")
