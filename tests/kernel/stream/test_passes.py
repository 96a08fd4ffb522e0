"""Tables of exact types: every entry does what its slow twin does, and no subclass of a key is served by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernel.stream.equivalence import assert_agree, assert_memories_agree
from kernel.stream.streams import ALL, BUDGET, ROWS, private, problem, rounding_of, stream
from taciturn import (
    BLT,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    BinaryTree,
    Box,
    Gaussian,
    L2Ball,
    Logistic,
    MultiHinge,
    Private,
    Squared,
    WholeSpace,
    averaged,
    every,
)
from taciturn.kernel.learners import ftrl_pass, igd_pass
from taciturn.kernel.mechanisms import gaussian, prefix_sum, prefix_sum_pass
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, Lasting
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.problem import clipping_pass, codes, losses, multiclass, sets_pass
from taciturn.kernel.problem.scalar_loss import Smoothed
from taciturn.kernel.replay import replay
from taciturn.kernel.stream import batch_pass, loop, passes
from taciturn.kernel.stream.loop import Definition, pass_for

LEARNERS = {
    "IGD": ("igd, hinge, ball", "gaussian"),
    "FadingIGD": ("fading, huber, ball", "gaussian"),
    "GIGA": ("giga, logistic, box", "gaussian"),
    "Averaged": ("mean of igd", "gaussian"),
    "FTL": ("ftl, squared, ball", "gaussian"),
    "QFTL": ("qftl, ball", "blt"),
    "LinearBandit": ("linear bandit, own models", "blt"),
    "VectorSum": ("total", "tree"),
    "ClassSums": ("class sums", "blt"),
}
MECHANISMS = {
    gaussian.FiniteGaussian: [("igd, hinge, ball", "gaussian", "every"), ("ftl, squared, ball", "gaussian", "every")],
    gaussian.EndlessGaussian: [("igd, hinge, ball", "gaussian", "every, endless")],
    prefix_sum.Finite: [("qftl, ball", "blt", "every"), ("ftrl, hinge, ball", "blt", "every")],
    prefix_sum.Endless: [
        ("qftl, ball", "blt", "geometric, endless"),
        ("ftrl, hinge, ball", "blt", "geometric, endless"),
    ],
    prefix_sum.LastingSums: [
        ("qftl, ball", "blt", "every, endless"),
        ("qftl, ball", "restarted", "every"),
        ("ftrl, hinge, ball", "restarted", "every 7"),
    ],
    Lasting: [("qftl, ball", "decayed", "every, endless"), ("ftrl, hinge, ball", "decayed", "every 7")],
}
CODERS = {TreeCoder: "tree", BLTCoder: "blt", DecayedCoder: "decayed"}
CODERS[RestartedCoder] = "restarted"
SETS = [WholeSpace(), L2Ball(0.4), Box(-0.2, 0.3)]


def disguised(thing):
    """The same, of a subclass that changes nothing; learners elsewhere would have to be wrapped in `Unverified`."""
    own = object.__new__(type("Own", (type(thing),), {"__module__": type(thing).__module__}))
    vars(own).update(vars(thing))
    return own


def by_definition(one):
    """Whether it runs the definition, and releases what that releases without compiled code, bit for bit."""
    fast, slow = replace(one, compiled=True), replace(one, compiled=False)
    for each in (fast, slow):
        vars(each)["calibrated"] = one.calibrated
    X, y = stream(one.problem, short=True)
    (_, shown), (_, defined) = (each.run(each.start(), X, y) for each in (fast, slow))
    for name in ("rounds", "noisy", "noise_sd", "points"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(defined, name))
    return type(fast._pass) is Definition


# The tables.


def test_these_are_the_tables():
    """From exact types to something compiled; every key has a case below."""
    tables = {name for name, value in vars(passes).items() if isinstance(value, dict) and {*map(type, value)} == {type}}
    assert tables == {"STATISTICS", "NOISE", "SUMS"}
    assert {type(ALL[learner]) for learner, _ in LEARNERS.values()} == set(passes.STATISTICS)
    assert {type(ALL[learner]).__name__ for learner, _ in LEARNERS.values()} == set(LEARNERS)
    assert set(MECHANISMS) == set(passes.NOISE)
    assert set(CODERS) == set(prefix_sum_pass.SUMS) == {TreeCoder, *ftrl_pass.THROUGH}
    for kind, cases in MECHANISMS.items():
        assert all(type(private(*case).calibrated) is kind for case in cases)
    for kind, strategy in CODERS.items():
        assert type(private("qftl, ball", strategy, "every").calibrated.coder) is kind


# Each entry does what its slow twin does.


def assert_statistics_agree(learner):
    """Of many rounds and few, from the start and from the middle; and the decisions."""
    made = ALL[learner]
    fast, (V, y) = passes.statistics_of(made), made.problem.clip_block(*stream(made.problem))
    for rounds in (np.arange(1, ROWS + 1), np.array([3, ROWS - 1]), np.array([], dtype=np.int64)):
        ending, slow = replay(made, V, y, rounds)
        middle, first = fast(made.start(), 0, V[:20], y[:20], rounds[rounds <= 20])
        end, rest = fast(middle, 20, V[20:], y[20:], rounds[rounds > 20])
        result = np.concatenate([first, rest])
        assert result.shape == slow.shape
        assert (np.linalg.norm(result - slow, axis=1) <= rounding_of(made, rounds)).all()
        assert_memories_agree(ending, end, rounding_of(made, [ROWS])[0])
        sds = np.linspace(0.1, 1.0, len(rounds))
        noisy = result + np.random.default_rng(2).normal(size=result.shape)
        expected = [made.decide(int(t), row, float(sd)) for t, row, sd in zip(rounds, noisy, sds, strict=True)]
        assert len(rounds) == 0 or np.max(np.abs(fast.decide(rounds, noisy, sds) - expected)) <= 1e-9


@pytest.mark.parametrize("name", LEARNERS)
def test_statistics_are_those_of_the_definition(name):
    assert_statistics_agree(LEARNERS[name][0])


def assert_noise_agrees(calibrated):
    """The same integers are drawn, and noisy rows, standard deviations and memories are those of `encode`, `decode`."""
    fast, rng, count = passes.noise_of(calibrated), np.random.default_rng(3), 12
    rows = rng.uniform(-0.3, 0.3, (count, calibrated.size))
    drawn = fast.draw(7, 1, count)
    np.testing.assert_array_equal(
        drawn, np.concatenate([np.atleast_2d(part) for part in calibrated.noise(7, 1, count)])
    )
    (secret, public), shown = calibrated.start(), []
    for k, part in enumerate(calibrated.noise(7, 1, count), start=1):
        secret, encoded = calibrated.encode(secret, rows[k - 1], k)
        public, noisy, sd = calibrated.decode(public, encoded + part, k)
        shown.append((noisy, sd))
    result = fast.add(*calibrated.start(), rows, 1, drawn)
    noisy, sds = np.array([row for row, _ in shown]), np.array([sd for _, sd in shown])
    off = 0.0 if calibrated.coder is None else 1e-6 * np.max(sds)
    np.testing.assert_allclose(result.noisy, noisy, rtol=0.0, atol=off)
    np.testing.assert_allclose(result.noise_sd, sds, rtol=1e-12)
    assert_memories_agree(secret, result.secret, 1e-9)
    assert_memories_agree(public, result.public, off)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_noise_is_that_of_the_definition(kind):
    for case in MECHANISMS[kind]:
        assert_noise_agrees(private(*case).calibrated)


@pytest.mark.parametrize("kind", ftrl_pass.THROUGH)
def test_private_ftrl_through_a_strategy_is_the_definition(kind):
    """Every entry of the table of fused loops."""
    one = private("ftrl, hinge, ball", CODERS[kind], "every 7")
    assert type(one._pass) is ftrl_pass.FTRLPass
    assert_agree("ftrl, hinge, ball", CODERS[kind], "every 7")


def off_by(honest, change):
    """The second thing that a verb returns, changed."""

    def planted(*args):
        first, second = honest(*args)
        return first, change(second)

    return planted


@pytest.mark.parametrize("name", LEARNERS)
def test_wrong_statistics_and_decisions_are_found(name, monkeypatch):
    """Planted in each entry: off by little."""
    learner = LEARNERS[name][0]
    kind = type(passes.statistics_of(ALL[learner]))
    decide = kind.decide
    with monkeypatch.context() as patch:
        patch.setattr(kind, "__call__", off_by(kind.__call__, lambda rows: rows + 1e-3))
        with pytest.raises(AssertionError):
            assert_statistics_agree(learner)
    monkeypatch.setattr(kind, "decide", lambda *args: decide(*args) + 1e-6)
    with pytest.raises(AssertionError):
        assert_statistics_agree(learner)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_noise_that_is_left_out_is_found(kind, monkeypatch):
    """In each entry."""
    calibrated = private(*MECHANISMS[kind][0]).calibrated
    own = type(passes.noise_of(calibrated))
    honest = own.add
    monkeypatch.setattr(own, "add", lambda self, *args: honest(self, *args[:-1], 0 * args[-1]))
    with pytest.raises(AssertionError):
        assert_noise_agrees(calibrated)


@pytest.mark.parametrize("kind", CODERS)
def test_a_wrong_strategy_is_found(kind, monkeypatch):
    """Prefix sums that are off by a thousandth."""
    honest = prefix_sum_pass.SUMS[kind]
    monkeypatch.setitem(prefix_sum_pass.SUMS, kind, off_by(honest, lambda sums: 1.001 * sums))
    with pytest.raises(AssertionError):
        assert_noise_agrees(private("qftl, ball", CODERS[kind], "every").calibrated)


@pytest.mark.parametrize("kind", CODERS)
def test_strategies_are_those_of_the_definition(kind):
    """Their noisy sums and memories."""
    assert_noise_agrees(private("qftl, ball", CODERS[kind], "every").calibrated)


@pytest.mark.parametrize("kind", ftrl_pass.THROUGH)
def test_a_wrong_loop_through_a_strategy_is_found(kind, monkeypatch):
    """Noisy sums that are shifted after they were decoded."""
    honest = ftrl_pass.THROUGH[kind]

    def shifted(coder, block, *rest):
        after = honest(coder, block, *rest)
        block.noisy[:] += 1e-3
        return after

    monkeypatch.setitem(ftrl_pass.THROUGH, kind, shifted)
    fast, slow = (replace(private("ftrl, hinge, ball", CODERS[kind], "every 7", c)) for c in (True, False))
    X, y = stream(fast.problem)
    noisy = [one.run(one.start(), X, y)[1].noisy for one in (fast, slow)]
    assert np.max(np.abs(noisy[0] - noisy[1])) > 0.9e-3


# A subclass of a key runs the definition.


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_s_subclass_runs_the_definition(name):
    """So does an average of one."""
    learner, mechanism = LEARNERS[name]
    own = disguised(ALL[learner])
    assert passes.statistics_of(own) is igd_pass.steps_of(own) is None
    assert by_definition(replace(private(learner, mechanism, "every 7"), learner=own))
    if name in ("IGD", "FadingIGD", "GIGA", "FTL"):
        mean = averaged(own, horizon=ROWS)
        assert passes.statistics_of(mean) is None
        assert by_definition(replace(private(learner, mechanism, "every 7"), learner=mean))


def test_a_subclass_of_ftrl_runs_the_definition():
    one = private("ftrl, hinge, ball", "blt", "every 7")
    assert by_definition(replace(one, learner=disguised(one.learner)))


@pytest.mark.parametrize("learner", [*(learner for learner, _ in LEARNERS.values()), "ftrl, hinge, ball"])
def test_a_problem_s_subclass_runs_the_definition(learner):
    """And is clipped by its own verb."""
    mechanism = dict(LEARNERS.values()).get(learner, "blt")
    made, own = ALL[learner], disguised(ALL[learner].problem)
    inner = getattr(made, "learner", made)
    changed = replace(inner, problem=own)
    changed = averaged(changed, horizon=ROWS) if inner is not made else changed
    assert type(changed.problem) is type(own)
    assert clipping_pass.clip_for(own) is passes.statistics_of(changed) is igd_pass.steps_of(changed) is None
    assert loop.fast_clip(own, True) is None
    assert by_definition(replace(private(learner, mechanism, "every 7"), learner=changed))


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_mechanism_s_subclass_runs_the_definition(kind):
    """Under learners of every pass that it serves."""
    for case in MECHANISMS[kind]:
        one = replace(private(*case))
        assert type(one._pass) is not Definition
        vars(one)["calibrated"] = disguised(private(*case).calibrated)
        assert passes.noise_of(one.calibrated) is None
        vars(one).pop("_pass")
        assert by_definition(one)


@pytest.mark.parametrize("learner", ["qftl, ball", "total", "ftrl, hinge, ball"])
@pytest.mark.parametrize("kind", CODERS)
def test_a_strategy_s_subclass_runs_the_definition(kind, learner):
    one = replace(private(learner, CODERS[kind], "every 7"))
    assert (type(one._pass) is Definition) == (kind is TreeCoder and "ftrl" in learner)
    changed = object.__new__(type(one.calibrated))
    vars(changed).update(vars(one.calibrated) | {"coder": disguised(one.calibrated.coder)})
    assert passes.noise_of(changed) is None
    vars(one)["calibrated"] = changed
    vars(one).pop("_pass")
    assert by_definition(one)


CODED = [losses.Squared(), Logistic(), losses.Hinge(), losses.Quantile(0.9), losses.Absolute(), losses.Huber(0.7)]
CODED += [losses.Linear(), multiclass.Softmax(3), multiclass.OneHot(3)]


def test_the_losses_with_a_code_are_all_here():
    assert {type(loss) for loss in CODED} == set(codes._LOSSES)


@pytest.mark.parametrize("loss", [*CODED, MultiHinge(3)], ids=repr)
def test_a_loss_s_subclass_has_no_code(loss):
    """Nor has an envelope of one, or a subclass of an envelope."""
    own = disguised(loss)
    assert codes.slope_code(loss) is not None
    assert codes.loss_code(own) is codes.slope_code(own) is None
    if isinstance(loss, losses.Hinge | losses.Absolute | losses.Quantile):
        assert codes.loss_code(Smoothed(loss, 0.1)) is not None
        assert codes.loss_code(Smoothed(own, 0.1)) is codes.loss_code(disguised(Smoothed(loss, 0.1))) is None


@pytest.mark.parametrize("loss", [loss for loss in CODED if not hasattr(loss, "classes")], ids=repr)
def test_a_loss_s_subclass_runs_the_definition(loss):
    """In every learner that takes it."""
    ridged = problem(disguised(loss), L2Ball(0.4), ridge=0.1)
    learners = [(IGD(ridged), Gaussian()), (FTRL(ridged), BLT())]
    learners += [(GIGA(ridged), Gaussian())] if np.isfinite(ridged.smoothness) else []
    for learner, mechanism in learners:
        one = Private(learner, mechanism, every(7), BUDGET, ROWS, seed=5)
        assert type(pass_for(learner, one.calibrated, True)) is Definition
    assert by_definition(Private(IGD(ridged), Gaussian(), every(7), BUDGET, ROWS, seed=5))


@pytest.mark.parametrize("domain", SETS, ids=repr)
def test_a_set_s_subclass_runs_the_definition(domain):
    """But for private QFTL, whose statistics know no set; its points are projected by the set's own verb."""
    assert codes.set_code(domain) is not None
    own = disguised(domain)
    assert codes.set_code(own) is None
    ridged = problem(Logistic(), own, ridge=0.1)
    for learner, mechanism in ((IGD(ridged), Gaussian()), (GIGA(ridged), Gaussian())):
        assert by_definition(Private(learner, mechanism, every(7), BUDGET, ROWS, seed=5))
    if not isinstance(domain, WholeSpace):
        assert by_definition(Private(FTRL(ridged), BLT(), every(7), BUDGET, ROWS, seed=5))
        one = Private(QFTL(problem(Squared(), own)), BinaryTree(), every(7), BUDGET, ROWS, seed=5)
        assert type(one._pass) is batch_pass.BatchPass
        X, y = stream(one.problem)
        (_, shown), (_, defined) = (each.run(each.start(), X, y) for each in (one, replace(one, compiled=False)))
        np.testing.assert_allclose(shown.points, defined.points, rtol=0.0, atol=1e-9)


def test_rows_are_projected_by_a_subclass_s_own_verb():
    class Flat(L2Ball):
        def project(self, x):
            return np.append(super().project(x)[:-1], 0.0)

    rows = np.random.default_rng(5).normal(size=(6, 3))
    assert (sets_pass.project_batch(L2Ball(0.4), rows)[:, -1] != 0.0).all()
    assert (sets_pass.project_batch(Flat(0.4), rows)[:, -1] == 0.0).all()


def test_a_constant_of_both_twins_is_the_same():
    """Compiled code has its own copy, so that a change of it is seen by the cache of compiled code."""
    assert codes.TIE == multiclass.TIE
