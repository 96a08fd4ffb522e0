"""Private: releases do not depend on how the stream is cut, none comes twice, and refusals change nothing."""

import contextlib
import random
import signal
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import believed
from interrupting import LEDGER, At, every_step, on_alarm
from taciturn import (
    BLT,
    IGD,
    QFTL,
    BudgetExhausted,
    Certificate,
    Cost,
    Gaussian,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    StateConflict,
    Unprovable,
    WholeSpace,
    at,
    every,
    geometric,
    pgiga,
    pigd,
)
from taciturn.accounting.memory_store import IN_MEMORY
from taciturn.core import private as private_module
from taciturn.kernel.learners import igd_pass
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.problem import clipping_pass
from taciturn.kernel.problem.losses import Nearness
from taciturn.kernel.replay import exact_of
from taciturn.kernel.stream import batch_pass, loop, passes
from taciturn.kernel.stream import stream as stream_module
from taciturn.kernel.stream.loop import Definition

HORIZON = 40
PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=3, intercept=0.5, ridge=0.1)
BUDGET = Privacy(2.0, 1e-6)
RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal((HORIZON, 3)), RNG.choice([-1.0, 1.0], HORIZON)
RECIPES = {"pigd": pigd, "pgiga": pgiga}
SCHEDULES = {"every(1)": every(1), "every(7)": every(7), "geometric": geometric(1.5, 3), "at": at([5, 11, 40])}

NOTHING = np.empty(0, dtype=np.int64)
both_passes = pytest.mark.parametrize("compiled", [False, True], ids=["definition", "compiled"])


def passing(private, compiled):
    """The same, by the definition or by its compiled pass; that it is so is checked."""
    private = replace(private, compiled=compiled)
    assert isinstance(replace(private)._pass, Definition) != compiled  # its own is not chosen yet
    return private


def silenced(private):
    """A Private whose noise is left out; passes of either kind ask the mechanism for it."""
    calibrated = private.calibrated
    honest = calibrated.noise
    vars(calibrated)["noise"] = lambda *args: np.zeros_like(honest(*args))
    return private


def learnt(private, exact, t, V, y):
    """The exact state after bounded examples, by the verb that the pass uses: the same bits."""
    if private.compiled:
        return passes.statistics_of(private.learner)(exact, t, V, y, NOTHING)[0]
    return private.learner.absorb(exact, t, V, y, None)


def same(releases, others):
    assert [(r.t, r.k, r.noise_sd) for r in releases] == [(r.t, r.k, r.noise_sd) for r in others]
    for one, other in zip(releases, others, strict=True):
        np.testing.assert_array_equal(one.noisy, other.noisy)
        np.testing.assert_array_equal(one.point, other.point)


@both_passes
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@settings(deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(0, HORIZON), max_size=8), by_steps=st.booleans())
def test_cutting_the_stream_into_calls_changes_nothing(recipe, schedule, compiled, cuts, by_steps):
    """Under a seed, any sequence of run() and step() calls releases the same, bit for bit."""
    private = RECIPES[recipe](PROBLEM, BUDGET, HORIZON, schedule=SCHEDULES[schedule], seed=3)
    private = passing(private, compiled)
    end, whole = private.run(private.start(), X, Y)
    state, pieces = private.start(), []
    for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), HORIZON], strict=True):
        if by_steps:
            while state.t < b:
                stop = min(b, private.timetable.due(state.k + 1))
                state, release = private.step(state, X[state.t : stop], Y[state.t : stop])
                pieces += [release] if release else []
        else:
            state, shown = private.run(state, X[a:b], Y[a:b])
            pieces += shown
    same(whole, pieces)
    np.testing.assert_array_equal(exact_of(state)["x"], exact_of(end)["x"])
    assert (state.t, state.k, state.spent) == (end.t, end.k, end.spent)


@both_passes
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_noise_the_exact_learner_is_released(recipe, schedule, compiled):
    """Zero noise: each noisy row is the exact iterate to half a lattice step, each point its projection."""
    private = RECIPES[recipe](PROBLEM, BUDGET, HORIZON, schedule=SCHEDULES[schedule], seed=1)
    private = silenced(passing(private, compiled))
    _, releases = private.run(private.start(), X, Y)
    V, y = (clipping_pass.clip_for(PROBLEM).dense if compiled else PROBLEM.clip_block)(X, Y)
    assert releases[-1].t == HORIZON
    for release in releases:
        exact = learnt(private, private.learner.start(), 0, V[: release.t], y[: release.t])["x"]
        _, step = private.calibrated.levels(release.k)
        assert np.abs(release.noisy - exact).max() <= step / 2
        few_units = 8 * 2.0**-53 if compiled else 0.0  # a norm added up in another order, a root, a quotient, a product
        np.testing.assert_allclose(release.point, PROBLEM.domain.project(release.noisy), rtol=few_units, atol=0.0)


@pytest.mark.privacy
@both_passes
def test_every_release_gets_the_noise_that_was_drawn_for_it(compiled):
    """All of it, to the last lattice step: that is what a run with noise releases beside one without."""
    private = passing(pigd(PROBLEM, BUDGET, HORIZON, seed=1), compiled)
    silent = silenced(passing(pigd(PROBLEM, BUDGET, HORIZON, seed=1), compiled))
    noisy, exact = (p.run(p.start(), X, Y)[1].noisy for p in (private, silent))
    _, step = private.calibrated.levels_of(1, HORIZON)
    drawn = private.calibrated.noise(1, 1, HORIZON)
    assert drawn.any(axis=1).all()
    np.testing.assert_array_equal((noisy - exact) / step[:, None], drawn)


@pytest.mark.privacy
@both_passes
def test_noise_is_really_there(compiled):
    """The planted fault of the test above: with noise, the rows are not the exact iterates."""
    private = passing(pigd(PROBLEM, BUDGET, HORIZON, seed=1), compiled)
    silent = silenced(passing(pigd(PROBLEM, BUDGET, HORIZON, seed=1), compiled))
    noisy, exact = (p.run(p.start(), X, Y)[1] for p in (private, silent))
    gaps = np.array([a.noisy - b.noisy for a, b in zip(noisy, exact, strict=True)])
    sd = np.array([[r.noise_sd] for r in noisy])
    assert 0.7 < np.std(gaps / sd) < 1.3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fit_is_a_stream_of_its_own_and_its_last_release(schedule):
    """What run() releases last, from the start, also where the data go on after it."""
    private = pigd(PROBLEM, BUDGET, HORIZON, schedule=SCHEDULES[schedule], seed=3)
    _, releases = private.run(private.start(), X[:39], Y[:39])
    same([private.fit(X[:39], Y[:39])], releases[-1:])


@pytest.mark.privacy
@pytest.mark.parametrize("rows", [0, 4])
def test_fit_refuses_too_few_rows_before_anything_is_charged(rows):
    """No published round, no stream: the ledger stays as it was, and fits what it would have fitted."""
    ledger, private = Ledger(BUDGET), pigd(PROBLEM, BUDGET, HORIZON, schedule=every(5))
    with pytest.raises(InvalidInput, match=f"got {rows} examples.*State horizon={rows}"):
        private.fit(X[:rows], Y[:rows], ledger)
    assert ledger.reserved == Cost()
    private.fit(X[:5], Y[:5], ledger)


@pytest.mark.privacy
def test_fit_pays_for_the_whole_stream():
    """Its whole cost is reserved, that of its releases spent; a second one needs a budget of its own."""
    ledger, private = Ledger(BUDGET), pigd(PROBLEM, BUDGET, HORIZON, schedule=every(5))
    private.fit(X[:12], Y[:12], ledger)
    assert ledger.reserved == private.guarantee.delivered
    assert ledger.spent == private.calibrated.cost(2)
    with pytest.raises(BudgetExhausted, match="all streams together would have"):
        private.fit(X, Y, ledger)


@pytest.mark.privacy
def test_secret_noise_differs_and_seeded_noise_repeats():
    """Two private runs release different rows; two simulations with one seed the same; other seeds others."""
    one, two = ([r.noisy for r in p.run(p.start(), X, Y)[1]] for p in [pigd(PROBLEM, BUDGET, HORIZON)] * 2)
    assert not np.array_equal(one, two)
    runs = [pigd(PROBLEM, BUDGET, HORIZON, seed=s) for s in (5, 5, 6)]
    rows = [np.array([r.noisy for r in p.run(p.start(), X, Y)[1]]) for p in runs]
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_seeded_steps_are_pure_and_everything_says_simulation():
    """A simulation may use a state twice, and its repr, releases and guarantee say what it is."""
    private = pigd(PROBLEM, BUDGET, HORIZON, seed=0)
    state = private.start()
    (_, first), (end, again) = private.step(state, X[:1], Y[:1]), private.step(state, X[:1], Y[:1])
    same([first], [again])
    for text in (repr(end), repr(first), str(private.guarantee)):
        assert "simulation: not private" in text.lower()
    assert "seed=0" in repr(private)


@pytest.mark.privacy
@pytest.mark.parametrize("verb", ["step", "run"])
def test_a_state_is_used_once(verb):
    """The second use of a state is refused, and the newest state goes on."""
    private = pigd(PROBLEM, BUDGET, HORIZON)
    state = private.start()
    new, _ = getattr(private, verb)(state, X[:1], Y[:1])
    with pytest.raises(StateConflict, match="generation"):
        getattr(private, verb)(state, X[:1], Y[:1])
    private.run(new, X[1:3], Y[1:3])


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (X[:2, :2], Y[:2], "shape"),
        (X[:2], Y[:3], "shape"),
        ([[np.nan, 0, 0]], [1.0], "row 0"),
        ([[1.0, 0, 0]], [0.0], "2\\*y - 1"),
        ([["a", 0, 0]], [1.0], "feature 0 is not a number"),
    ],
)
def test_bad_input_changes_nothing(rows, labels, words):
    """An error of ours that names the value; afterwards the same state still works, and nothing was spent."""
    ledger = Ledger()
    private = pigd(PROBLEM, BUDGET, HORIZON)
    state = private.start(ledger)
    with pytest.raises(InvalidInput, match=words):
        private.run(state, rows, labels)
    assert ledger.spent.mu == 0.0
    assert private.run(state, X, Y)[0].t == HORIZON


@both_passes
def test_bad_rows_may_pass_as_examples_without_influence(compiled):
    """on_bad="zero": the row takes its round, and does what an all-zero example does."""
    lenient = replace(PROBLEM, on_bad="zero")
    private = passing(pigd(lenient, BUDGET, 3, seed=2), compiled)
    bad = np.array([[1.0, 0, 0], [np.inf, 0, 0], [0, 1.0, 0]])
    state, releases = private.run(private.start(), bad, [1.0, 1.0, 0.5])
    assert state.t == 3
    assert len(releases) == 3
    exact = learnt(private, private.learner.start(), 0, *lenient.clip(bad[:1], [1.0]))
    nothing = learnt(private, exact, 1, np.zeros((2, 4)), np.ones(2))
    np.testing.assert_array_equal(exact_of(state)["x"], nothing["x"])


def test_the_round_past_the_horizon_is_refused_before_anything_changes():
    """T + 1 rows are refused whole; T are learnt; one more is refused."""
    private = pigd(PROBLEM, BUDGET, 10)
    state = private.start()
    with pytest.raises(BudgetExhausted, match=r"round 11 .* horizon of 10"):
        private.run(state, X[:11], Y[:11])
    state, _ = private.run(state, X[:10], Y[:10])
    with pytest.raises(BudgetExhausted, match="round 11"):
        private.step(state, X[:1], Y[:1])


def test_step_refuses_rows_past_the_next_release():
    """step() never crosses a published round; it says so and changes nothing."""
    private = pigd(PROBLEM, BUDGET, HORIZON, schedule=every(5))
    state = private.start()
    with pytest.raises(InvalidInput, match="published round, 5"):
        private.step(state, X[:6], Y[:6])
    state, release = private.step(state, X[:3], Y[:3])
    assert release is None
    assert state.spent.mu == 0.0


VERBS = {  # of each pass, what a block of a stream goes through, and which of its arguments are rounds
    False: {"absorb": 1, "statistic": 1, "decide": 0},
    True: {"iterate pass": 3, "statistics": 4, "decisions": 0},
}
PARTS = {
    "iterate pass": (igd_pass.IteratePass, "__call__"),
    "statistics": (igd_pass.Iterates, "__call__"),
    "decisions": (igd_pass.Iterates, "decide"),
}
BOTH_VERBS = [(compiled, verb) for compiled in VERBS for verb in VERBS[compiled]]


def in_batches(monkeypatch):
    """Let iterate learners go through the batch pass, as if no loop made steps and noise at once."""

    def find(learner, calibrated):
        return batch_pass.BatchPass(passes.statistics_of(learner), passes.noise_of(calibrated))

    monkeypatch.setattr(passes, "find", find)


def failing(monkeypatch, compiled, verb, from_round, failure):
    """Let a verb of IGD, its own pass, or a part of a batch pass fail from a round on."""
    if verb in ("statistics", "decisions"):
        in_batches(monkeypatch)
    of, name = PARTS.get(verb, (IGD, verb))
    real, where = getattr(of, name), 1 + VERBS[compiled][verb]

    def fail(*args):
        if np.max(args[where]) >= from_round:
            raise failure
        return real(*args)

    monkeypatch.setattr(of, name, fail)


@pytest.mark.parametrize(("compiled", "verb"), BOTH_VERBS)
@pytest.mark.parametrize("blocks", [1, 10])
def test_an_interrupted_run_spends_nothing(monkeypatch, compiled, verb, blocks):
    """KeyboardInterrupt in the middle of a run leaves the state usable and the ledger as it was."""
    monkeypatch.setattr(loop, "_VALUES", HORIZON * PROBLEM.size // blocks)
    ledger, private = Ledger(), passing(pigd(PROBLEM, BUDGET, HORIZON), compiled)
    state = private.start(ledger)
    failing(monkeypatch, compiled, verb, 21, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        private.run(state, X, Y)
    monkeypatch.undo()
    assert ledger.spent.mu == 0.0
    assert private.run(state, X, Y)[0].k == HORIZON


@pytest.mark.privacy
def test_models_on_one_ledger_add_and_are_refused_when_they_do_not_fit():
    """Two models' mu² add in their ledger; a third that does not fit is refused when it opens."""
    ledger = Ledger(Privacy(3.0, 1e-6))
    private = pigd(PROBLEM, Privacy(2.0, 1e-6), HORIZON)
    for _ in range(2):
        private.run(private.start(ledger), X, Y)
    assert ledger.spent.mu_squared == pytest.approx(2 * Privacy(2.0, 1e-6).mu ** 2, rel=1e-6)
    assert ledger.spent.within(ledger.privacy)
    with pytest.raises(BudgetExhausted, match="reserve"):
        private.start(ledger)


@pytest.mark.privacy
def test_spent_grows_to_the_budget_and_never_past_it():
    """After each release the state's cost is the sum of the releases' own, and at the end the budget, to 1e-7."""
    ledger, private = Ledger(), pigd(PROBLEM, BUDGET, HORIZON)
    state = private.start(ledger)
    sensitivity = private.learner.certificate.at(np.arange(1, HORIZON + 1))
    expected = 0.0
    for t in range(HORIZON):
        state, release = private.step(state, X[t : t + 1], Y[t : t + 1])
        expected += (sensitivity[t] / release.noise_sd) ** 2
        assert expected <= state.spent.mu_squared <= expected * (1 + 1e-5)
        assert ledger.spent == state.spent
    assert BUDGET.mu * (1 - 1e-7) <= state.spent.mu <= BUDGET.mu


@pytest.mark.parametrize("schedule", [every(1), every(10), geometric(1.3)])
def test_endless_streams_go_on_within_their_budget(schedule):
    """Without a horizon every round works, and the cost stays below the budget for ever."""
    private = pgiga(PROBLEM, BUDGET, schedule=schedule, seed=1)
    state, releases = private.start(), []
    for _ in range(3):
        state, shown = private.run(state, X, Y)
        releases += shown
    assert releases
    assert state.spent.mu < BUDGET.mu
    assert private.guarantee.proven


class Sums(IGD):
    """A learner that certifies entry sensitivity, as running sums do."""

    @property
    def certificate(self):
        return Certificate("l2", "entry", "1", np.ones_like, 1.0, "one example moves its own row", "none")


def test_a_learner_that_does_not_fit_is_refused_with_a_remedy():
    """The sentence names both kinds and what to use instead."""
    with pytest.raises(Unprovable, match=r"Sums certifies l2/entry .* accepts l2/tail\. Use .*IGD, GIGA, FTL"):
        Private(Sums(PROBLEM), Gaussian(), every(1), BUDGET, HORIZON)


@pytest.mark.parametrize("setting", [{"horizon": 0}, {"horizon": 2.5}, {"seed": -1}, {"calibration": "guess"}])
def test_bad_settings_are_refused(setting):
    """By name, with the value."""
    with pytest.raises(InvalidInput, match=next(iter(setting))):
        pigd(PROBLEM, BUDGET, **({"horizon": HORIZON} | setting))


def test_adaptive_streams_see_releases_only():
    """The next example may depend on what was released: step by step, the state's point is the last release."""
    private = pigd(PROBLEM, BUDGET, HORIZON)
    state = private.start()
    np.testing.assert_array_equal(state.point, PROBLEM.first_point)
    for _ in range(HORIZON):
        adversarial = -np.sign(state.point[:3])[None, :] + 0.1
        state, release = private.step(state, adversarial, [1.0])
        np.testing.assert_array_equal(state.point, release.point)


@pytest.mark.privacy
def test_of_many_threads_with_one_state_one_goes_on():
    """Eight threads release the next round of one state at once: one is shown, seven are refused."""
    private = pigd(PROBLEM, BUDGET, HORIZON)
    state, shown, refused, together = private.start(), [], [], threading.Barrier(8)

    def go():
        together.wait()
        try:
            shown.append(private.run(state, X[:3], Y[:3]))
        except StateConflict as conflict:
            refused.append(conflict)

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(shown), len(refused)) == (1, 7)
    private.run(shown[0][0], X[3:], Y[3:])


@pytest.mark.privacy
@pytest.mark.parametrize(("compiled", "verb"), BOTH_VERBS)
def test_an_error_in_the_middle_of_a_run_shows_nothing(monkeypatch, compiled, verb):
    """Whatever a learner raises, no release comes out, nothing is spent, and the state can be used again."""
    monkeypatch.setattr(loop, "_VALUES", 4 * PROBLEM.size)
    ledger, private = Ledger(), passing(pigd(PROBLEM, BUDGET, HORIZON), compiled)
    state = private.start(ledger)
    failing(monkeypatch, compiled, verb, 9, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        private.run(state, X, Y)
    monkeypatch.undo()
    assert ledger.spent.mu == 0.0
    assert len(private.run(state, X, Y)[1]) == HORIZON


def test_no_rows_change_nothing():
    """A call without examples publishes nothing and spends nothing, and the stream goes on."""
    ledger, private = Ledger(), pigd(PROBLEM, BUDGET, HORIZON)
    state = private.start(ledger)
    for verb in (private.run, private.step):
        state, nothing = verb(state, np.zeros((0, 3)), np.zeros(0))
        assert not nothing
    assert (state.t, state.k, ledger.spent.mu) == (0, 0, 0.0)
    assert len(private.run(state, X, Y)[1]) == HORIZON


@pytest.mark.privacy
def test_what_is_done_to_a_release_does_not_reach_the_state():
    """A reader who writes into a release cannot change the point that a learner will look at."""
    private = pigd(PROBLEM, BUDGET, HORIZON)
    state, release = private.step(private.start(), X[:1], Y[:1])
    before = state.point.copy()
    with contextlib.suppress(ValueError):  # read-only would be just as good
        release.point[:] = 1e6
    np.testing.assert_array_equal(state.point, before)


@pytest.mark.privacy
def test_costs_under_different_relations_are_not_added_up():
    """mu under zero-out is up to twice as much under replace, so one ledger refuses to mix them, or charges that."""
    ledger = Ledger()
    replaced, zeroed = (pigd(replace(PROBLEM, neighbours=n), BUDGET, HORIZON) for n in ("replace", "zero-out"))
    replaced.start(ledger)
    try:
        zeroed.start(ledger)
    except (Unprovable, StateConflict, InvalidInput):
        return
    costs = [private.guarantee.delivered.mu for private in (replaced, zeroed)]
    assert ledger.reserved.mu_squared >= costs[0] ** 2 + (2.0 * costs[1]) ** 2


@pytest.mark.privacy
def test_a_simulation_holds_nothing():
    """However right its noise would be, were it secret."""
    private = pigd(PROBLEM, BUDGET, HORIZON, seed=1)
    assert private.guarantee.proven
    assert not private.guarantee.holds
    assert pigd(PROBLEM, BUDGET, HORIZON).guarantee.holds


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"privacy": (1.0, 1e-6)}, "Privacy\\(epsilon"),
        ({"schedule": 5}, "every\\(1\\)"),
        ({"learner": object()}, "IGD"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused_with_an_example(setting, words):
    """A tuple for a budget, a number for a schedule, anything for a learner."""
    good = {"learner": IGD(PROBLEM), "mechanism": Gaussian(), "schedule": every(1), "privacy": BUDGET, "horizon": 5}
    with pytest.raises(InvalidInput, match=words):
        Private(**(good | setting))


@pytest.mark.privacy
@both_passes
@pytest.mark.parametrize("wild", [np.nan, np.inf, -1e300])
def test_what_a_broken_learner_hands_over_is_kept_in_range(monkeypatch, compiled, wild):
    """NaN and huge rows are hidden like rows of the certified magnitude: nothing passes unbounded."""
    private = silenced(passing(pigd(PROBLEM, BUDGET, HORIZON, seed=1), compiled))
    magnitude = private.learner.certificate.magnitude
    if compiled:
        in_batches(monkeypatch)
        monkeypatch.setattr(igd_pass.Iterates, "__call__", lambda self, exact, *_: (exact, np.full((1, 4), wild)))
    else:
        monkeypatch.setattr(IGD, "statistic", lambda self, exact, t: (exact, np.full(4, wild)))
    _, (release,) = private.run(private.start(), X[:1], Y[:1])
    assert np.abs(release.noisy).max() <= magnitude * (1 + 1e-6)
    expected = 0.0 if np.isnan(wild) else np.copysign(magnitude, wild)
    np.testing.assert_allclose(release.noisy, expected, rtol=1e-6)


def test_predictions_bound_new_rows_as_in_learning():
    """The intercept is appended and long rows are scaled."""
    point = np.array([0.1, 0.2, 0.3, 0.4])
    V, _ = PROBLEM.clip(X, Y)
    np.testing.assert_allclose(PROBLEM.predict(point, X), V @ point)


@pytest.mark.privacy
def test_a_fit_that_is_refused_reserves_nothing():
    """A bad row, then the same data mended: the ledger has room for it."""
    ledger, private = Ledger(BUDGET), pigd(PROBLEM, BUDGET, HORIZON)
    spoilt = X.copy()
    spoilt[7, 0] = np.nan
    with pytest.raises(InvalidInput, match="row 7"):
        private.fit(spoilt, Y, ledger)
    assert ledger.reserved.mu == 0.0
    assert private.fit(X, Y, ledger).t == HORIZON
    assert ledger.spent == ledger.reserved == private.guarantee.delivered
    with pytest.raises(BudgetExhausted):
        private.fit(X, Y, ledger)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_forgotten_state_is_asked_for(seed):
    """By run, step and fork, and what came instead is not shown: it may be examples."""
    private = pigd(PROBLEM, BUDGET, HORIZON, seed=seed)
    for call in (lambda: private.run(X, Y), lambda: private.step(X, Y), lambda: private.fork(X)):
        with pytest.raises(InvalidInput, match=r"the first argument is a State, got ndarray\..*private\.start\(\)"):
            call()


@pytest.mark.parametrize("seed", [None, 1])
def test_a_budget_is_no_ledger(seed):
    with pytest.raises(InvalidInput, match=r"ledger cannot be Privacy.*ledger=Ledger\(budget\), .*or leave it out"):
        pigd(PROBLEM, BUDGET, HORIZON, seed=seed).start(BUDGET)


# A signal handler, or a finalizer, that uses the same state in the middle of a call.


@pytest.mark.privacy
@pytest.mark.parametrize("file", [LEDGER, (private_module.__file__, stream_module.__file__)], ids=["ledger", "core"])
def test_wherever_a_run_is_entered_again_each_round_is_shown_once(file):
    """At every bytecode of the ledger, and of `Private` and what it prepares by."""
    private = pigd(PROBLEM, BUDGET, HORIZON)
    private.run(private.start(), X[:2], Y[:2])

    def attempt(step):
        ledger, shown = Ledger(BUDGET), []
        state = private.start(ledger)

        def run():
            with contextlib.suppress(StateConflict):
                shown.append([release.t for release in private.run(state, X[:2], Y[:2])[1]])

        with At(step, file, run) as entered:
            run()
        assert shown == [[1, 2]]
        assert ledger.spent == private.calibrated.cost(2)
        return entered.reached

    every_step(attempt, least=30)


@pytest.mark.privacy
@pytest.mark.parametrize("verb", ["start", "fit", "fork"])
def test_wherever_a_stream_opens_within_another_the_budget_is_kept(verb):
    """At every bytecode of the ledger: the ledger has room for one of two."""
    private = pigd(PROBLEM, BUDGET, HORIZON)
    first = private.start()
    open_one = {
        "start": private.start,
        "fit": lambda ledger: private.fit(X, Y, ledger),
        "fork": lambda ledger: private.fork(first, ledger),
    }[verb]

    def attempt(step):
        ledger, opened = Ledger(BUDGET), []

        def go():
            with contextlib.suppress(BudgetExhausted):
                opened.append(open_one(ledger))

        with At(step, LEDGER, go) as entered:
            go()
        assert len(opened) == 1
        assert ledger.reserved == private.guarantee.delivered
        return entered.reached

    every_step(attempt, least=30)


@pytest.mark.privacy
def test_an_interrupted_fit_reserves_what_it_spends_or_nothing():
    """At every bytecode of the ledger: no reservation is left behind for a stream that nobody has."""
    private = pigd(PROBLEM, BUDGET, HORIZON)

    def interrupt():
        raise KeyboardInterrupt

    def attempt(step):
        ledger = Ledger(BUDGET)
        with contextlib.suppress(KeyboardInterrupt), At(step, LEDGER, interrupt) as interruption:
            private.fit(X, Y, ledger)
        assert ledger.spent == ledger.reserved
        return interruption.reached

    every_step(attempt, least=30)


class Armed(Ledger):
    """Lets the timer ring soon after a commit began."""

    most = 0.0

    def commit(self, *args):
        most, self.most = self.most, 0.0
        if most:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, most))
        super().commit(*args)


def interrupted_by_a_publisher(tries):
    """A timer's signal handler publishes from the state that the main thread runs: where it came, and what was shown.

    Half of the times the timer is set when the run begins, otherwise when its commit does.
    """
    private, came, shown = pigd(PROBLEM, BUDGET, HORIZON), Counter(), Counter()
    state = private.start()

    def run():
        try:
            _, releases = private.run(state, X[:2], Y[:2])
        except StateConflict:
            came["rejected"] += 1
            return False
        shown.update((state.lineage, release.t) for release in releases)
        return True

    def publish(number, frame):
        inside = False
        while frame is not None and not inside:
            inside, frame = frame.f_code is Ledger.commit.__code__, frame.f_back
        came["signals"] += 1
        came["in the commit"] += inside
        came["in the commit, before its change"] += run() and inside

    with on_alarm(publish):
        for i in range(tries):
            ledger = Armed()
            state = private.start(ledger)
            if i % 2:
                ledger.most = 3e-5
            else:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 4e-4))
            run()
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    return came, shown


@pytest.mark.privacy
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("tries", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_signal_handler_that_publishes_shows_no_round_twice(tries):
    came, shown = interrupted_by_a_publisher(tries)
    print(f"{tries} tries, {dict(came)}, shown twice: {sum(times > 1 for times in shown.values())}")  # noqa: T201
    assert set(shown.values()) == {1}
    assert len(shown) == 2 * tries
    assert came["in the commit, before its change"] > 0


# What a caller or a file could do to a stream that is under way.


@pytest.mark.privacy
def test_only_the_settings_that_prepared_releases_commit_them():
    private = pigd(PROBLEM, BUDGET, HORIZON)
    prepared = private.prepare(private.start(), X[:2], Y[:2])
    for other in (replace(private, seed=1), pigd(PROBLEM, BUDGET, HORIZON + 1)):
        with pytest.raises(StateConflict, match="prepared under other settings"):
            other.commit(prepared)
    private.commit(prepared)
    assert private.is_live(prepared.state)


def test_a_load_that_a_ledger_rejects_can_be_tried_with_another(tmp_path):
    private = pigd(PROBLEM, BUDGET, HORIZON)
    state, _ = private.run(private.start(), X[:2], Y[:2])
    state.dump(tmp_path / "state.npz")
    IN_MEMORY.clear()  # as in another process
    with pytest.raises(BudgetExhausted):
        private.load(tmp_path / "state.npz", Ledger(Privacy(0.1, 1e-6)))
    private.run(private.load(tmp_path / "state.npz", Ledger()), X[2:4], Y[2:4])


@pytest.mark.privacy
def test_numbers_of_other_settings_do_not_go_on_a_stream():
    """Valid by themselves, with less noise; the releases that were made had more."""
    problem = Problem(Squared(), L2Ball(0.01), dimension=1, label_bound=1.0)
    private, other = (Private(QFTL(problem, weight=w), BLT(), every(1), BUDGET, horizon=200) for w in (None, 1e-6))
    state, _ = private.run(private.start(), np.ones((100, 1)), np.ones(100))
    numbers = other.start().numbers | {"learner.weight": np.array(1e-6)}
    with pytest.raises(StateConflict, match="not that of these settings"):
        private.resumed(replace(state, numbers=numbers))


class ProvenForTen(VectorSum):
    """Its certificate states how many examples it is proven for, and a bound that says nothing of it."""

    @property
    def certificate(self):
        return replace(super().certificate, most=10, bound=np.ones_like, steady=False)


class ProvenForTenBetweenReleases(ProvenForTen):
    @property
    def certificate(self):
        return replace(super().certificate, steady=True)


def test_a_stream_without_a_horizon_ends_where_its_certificate_does():
    problem = Problem(Nearness(), WholeSpace(), 1, neighbours="zero-out")
    private = Private(believed(ProvenForTen(problem)), BLT(buffers=2), every(1), Privacy(1.0, 1e-6))
    state, _ = private.run(private.start(), np.ones((10, 1)))
    with pytest.raises(BudgetExhausted, match="round 11 lies past the 10 examples"):
        private.run(state, [[1.0]])
    with pytest.raises(Unprovable, match="at most 10"):
        replace(private, horizon=11)


def test_a_stream_never_ends_if_its_certificate_holds_between_any_two_releases():
    problem = Problem(Nearness(), WholeSpace(), 1, neighbours="zero-out")
    private = Private(believed(ProvenForTenBetweenReleases(problem)), BLT(buffers=2), every(10), Privacy(1.0, 1e-6))
    state, _ = private.run(private.start(), np.ones((30, 1)))
    assert state.k == 3
    too_far = replace(private, schedule=every(11))
    state, _ = too_far.run(too_far.start(), np.ones((10, 1)))
    with pytest.raises(BudgetExhausted, match="round 11 lies past the 10 examples"):
        too_far.run(state, [[1.0]])
