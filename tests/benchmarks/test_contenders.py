"""Contenders do equal work: the same rows, the same problem, as many values as are counted, the stated noise."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from taciturn import L2Ball, Logistic, Problem, Squared, geometric, pigd, pqftl
from taciturn.averages import late_average
from taciturn.datasets import ad_impressions
from taciturn.datasets.split import split
from taciturn.kernel.replay import replay

PEERS = "the extra peers is not installed"


# ---- learners --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clicks(script):
    return script("logistic").clicks(5_000)


@pytest.fixture(scope="module")
def seeded(script, clicks):
    problem = Problem(Logistic(), L2Ball(5.0), dimension=54, ridge=0.01)
    return pigd(problem, script("streams").BUDGET, len(clicks), seed=1)


def test_models_are_scored_on_held_out_rows(clicks):
    """The model that made the labels is right except for the noise: 0.888, within 6 standard errors of 500 rows."""
    truth = np.eye(54)[0]
    assert len(clicks.X_test) == 500
    assert clicks.first(10).accuracy(truth) == clicks.accuracy(truth)
    assert not np.isin(clicks.X_test[:, 0], clicks.X[:, 0]).any()
    assert abs(clicks.accuracy(truth) - 0.888) < 6.0 * np.sqrt(0.888 * 0.112 / 500)
    assert clicks.accuracy(-truth) == pytest.approx(1.0 - clicks.accuracy(truth))


def test_squared_errors_are_of_held_out_rows(script):
    """Noise of variance 0.01 for the best model, within 6 standard errors √(2/n)·0.01, and 0.12 for zeros."""
    task = script("regression").numbers(10_000, 10)
    best = np.linalg.lstsq(task.X, task.y, rcond=None)[0]
    assert len(task.X_test) == 2_000
    assert abs(task.squared_error(best) - 0.01) < 6.0 * 0.01 * np.sqrt(2.0 / 2_000)
    assert task.squared_error(np.zeros(10)) == pytest.approx(0.12, rel=0.2)


def test_a_stream_is_every_row_once_in_order(clicks):
    chunks = list(clicks.chunks())
    assert [len(y) for _, y in chunks] == [4_096, 904]
    assert (np.concatenate([X for X, _ in chunks]) == clicks.X).all()
    assert (np.concatenate([y for _, y in chunks]) == clicks.y).all()
    assert [list(row.values()) for row in clicks.first(3).dicts()] == clicks.X[:3].tolist()


def test_models_are_the_last_release_and_the_average_of_all(script, clicks, seeded):
    _, releases = seeded.run(seeded.start(), clicks.X, clicks.y)
    assert (script("streams").learns(seeded, clicks)() == releases.points[-1]).all()
    averaged = script("logistic").learns_and_averages(seeded, clicks)()
    assert np.allclose(averaged, late_average(releases), rtol=1e-12)


def test_noise_and_steps_alone_are_of_all_rows(script, clicks, seeded, monkeypatch):
    """Also where the last block is not full."""
    streams, logistic, blocks = script("streams"), script("logistic"), []
    timetable = SimpleNamespace(following=lambda after, last: range(after + 1, last + 1))
    with monkeypatch.context() as patched:
        noise = SimpleNamespace(draw=lambda _, k, count: blocks.append((k, count)))
        patched.setattr(streams.passes, "noise_of", lambda _: noise)
        patched.setattr(streams, "releases_in_block", lambda _: 3)
        streams.noise_alone(SimpleNamespace(learner=None, calibrated=None, timetable=timetable), 8)()
    assert blocks == [(1, 3), (4, 3), (7, 2)]
    chunks = streams.Task.chunks
    monkeypatch.setattr(logistic, "CHUNK", 7)
    monkeypatch.setattr(streams.Task, "chunks", lambda self, size=7: chunks(self, size))
    few, learner = clicks.first(100), seeded.learner
    V, labels = learner.problem.clip_block(few.X, few.y)
    exact, _ = replay(learner, V, labels, np.arange(1, 101))
    assert np.allclose(logistic.steps_alone(SimpleNamespace(learner=learner), few)()["x"], exact["x"], rtol=1e-12)


def test_the_limit_takes_gradient_steps(script, clicks):
    few, x, result = clicks.first(50), np.zeros(54), np.zeros(54)
    for t, (v, y) in enumerate(zip(few.X, few.y, strict=True), start=1):
        gradient = -y * v / (1.0 + np.exp(y * (v @ x))) + 0.01 * x
        x = x - gradient / (0.25 + 0.01 * t)
    descend = script("logistic").descend.py_func
    descend(result, few.X[:20], few.y[:20], 0)
    descend(result, few.X[20:], few.y[20:], 20)
    assert np.allclose(result, x, rtol=1e-9)


def test_logistic_ratios_name_contenders_whose_counts_are_their_rows(script, tmp_path):
    for peer in ("vowpalwabbit", "river", "sklearn"):
        pytest.importorskip(peer, reason=PEERS)
    logistic = script("logistic")
    contenders = logistic.contenders(400, tmp_path)
    assert all(ratio.of({name: [1.0] for name in contenders}) for ratio in logistic.RATIOS.values())
    counts = {name: one.count for name, one in contenders.items() if one.count != 400}
    assert counts.pop("scikit-learn, by example") == 4
    assert counts.pop("taciturn for river, reading every release") == 4
    rivers = "taciturn for river", "river", "taciturn for river, predicting first", "river, predicting first"
    assert counts == dict.fromkeys((*rivers, "Vowpal Wabbit, pre-parsed"), 40)
    unscored = {name for name, one in contenders.items() if one.score is None}
    assert unscored == {"taciturn, PIGD's noise", "taciturn, PIGD's steps"}


def test_regression_ratios_name_contenders_whose_counts_are_their_rows(script):
    for peer in ("river", "sklearn"):
        pytest.importorskip(peer, reason=PEERS)
    regression = script("regression")
    contenders = regression.contenders(0.002)
    assert all(ratio.of({name: [1.0] for name in contenders}) == [1.0] for ratio in regression.all_ratios().values())
    counts = {name: one.count for name, one in contenders.items() if one.count != 200}
    assert {counts.pop(f"river, d={d}") for d in (10, 90)} == {40}
    assert {counts.pop(f"scikit-learn SGD, d={d}") for d in (10, 90)} == {4}
    assert set(counts) == {f"{who}, d=90, geometric" for who in ("taciturn PQFTL", "NumPy sums", "scikit-learn Ridge")}
    assert set(counts.values()) == {1_030}
    assert all(one.score is not None for one in contenders.values())


@pytest.mark.parametrize("peer", ["leader", "lapack_leader", "recursive", "sums", "refits", "river"])
def test_peers_of_pqftl_solve_the_same_least_squares(script, peer):
    """The same model from all of them, with a ridge of 1 in total."""
    if peer in ("refits", "river"):
        pytest.importorskip({"refits": "sklearn", "river": "river"}[peer], reason=PEERS)
    regression = script("regression")
    task = regression.numbers(500, 5)
    model = np.linalg.solve(task.X.T @ task.X + np.eye(5), task.X.T @ task.y)
    assert np.allclose(getattr(regression, peer)(task)(), model, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 137, 5_000])
def test_peers_solve_at_the_rounds_of_pqftl(script, n):
    problem = Problem(Squared(), L2Ball(5.0), dimension=2, label_bound=1.0)
    private = pqftl(problem, script("streams").BUDGET, n, schedule=geometric(1.1))
    assert script("regression").rare_rounds(n) == private.timetable.rounds.tolist()


def test_the_text_format_has_the_same_features(script):
    X, y = np.array([[0.5, 0.0, 1.0], [-0.25, 1.0, 0.0]]), np.array([1, -1])
    assert script("vowpal").lines(X, y) == ["1 | 0:0.5 2", "-1 | 0:-0.25 1"]


def test_wall_time_is_noted_for_every_turn(script):
    walls = {}
    work = script("learn").timed("one", lambda: 7, walls)
    assert (work(), work()) == (7, 7)
    assert len(walls["one"]) == 2


# ---- growth and stages -----------------------------------------------------------------------------------------


def test_axes_of_growth_change_one_number(script):
    growth = script("growth")
    axes = growth.axes(quick=False)
    assert {stream.d for stream in axes["n"]} == {10}
    assert max(stream.n for stream in axes["n"] if stream.learner == growth.ENDLESS) <= 2**23
    assert max(stream.d for stream in axes["d"] if stream.learner == growth.SUMS) == 300
    assert {stream.d for stream in axes["d"] if stream.learner == "FTRL"} == set(growth.WIDTHS)
    assert len({stream.n for stream in axes["d"]}) == 1
    assert [stream.buffers for stream in axes["buffers"]] == list(range(1, 9))
    assert growth.opened(growth.Stream("FTRL", 100, 5, 3)).mechanism.buffers == 3
    assert growth.opened(growth.Stream("PGIGA", 100, 5)).timetable.horizon == 100


def test_streams_of_growth_take_turns(script, monkeypatch):
    """Long ones fewer."""
    growth, order = script("growth"), []
    monkeypatch.setattr(growth, "measured_in_process", lambda stream: order.append(stream) or [1.0, 1.0, 1.0])
    short, long = growth.Stream("PIGD", 10, 10), growth.Stream("PIGD", 10_000_000, 10)
    results = growth.take_turns([short, long], 5, Console(quiet=True))
    assert order[:4] == [short, long, short, long]
    assert (len(results[short]), len(results[long])) == (5, 3)


def test_a_stream_that_is_given_noise_draws_none(script, monkeypatch):
    """It learns without random bits; drawing noise fails then. The noise is drawn once, before the work."""
    stages = script("stages")
    private, rows = stages.cases(0.005)["PIGD, d=54"]
    assert stages.noise_blocks(private, len(rows)) == [(1, 500)]
    given, alone = stages.given_noise(private, rows), stages.noise_alone(private, len(rows))
    with monkeypatch.context() as patched:
        patched.setattr("taciturn.kernel.noise.needed.secret_bits", lambda: 1 / 0)
        given()
        with pytest.raises(ZeroDivisionError):
            alone()
    asked = []
    monkeypatch.setattr(type(private.calibrated), "noise", lambda _, *block: asked.append(block))
    stages.given_noise(private, rows)
    assert asked == [(None, 1, 500)]


# ---- noise and sums --------------------------------------------------------------------------------------------


def test_contenders_of_noise_count_the_values_they_draw(script, monkeypatch):
    noise, drawn, vectors, called = script("noise"), [], [], []
    peer = SimpleNamespace(call=lambda name, count: called.append((name, count)), clock=lambda: 0.0)
    monkeypatch.setattr(noise, "PER_CALL", 1000)
    monkeypatch.setattr(noise, "lattice_normal", lambda scale, shape: drawn.append(shape))
    monkeypatch.setattr(noise, "jax_privacy", lambda: {"jax-privacy, single": lambda: drawn.append((1000,))})
    monkeypatch.setattr(noise, "opendp", lambda size: {"OpenDP, integers": lambda: vectors.append(size)})
    contenders = noise.contenders(3, peer)
    for one in contenders.values():
        one.work()
    assert drawn == [(1000,)] * 6
    assert (contenders["taciturn, secret integers"].count, contenders["NumPy, SFC64"].count) == (3000, 3000)
    assert [contenders["jax-privacy, single"].count, contenders["OpenDP, integers"].count] == [3000, *vectors]
    counts = [contenders[f"diffprivlib, {kind}"].count for kind in ("doubles", "integers")]
    assert called == list(zip(["gaussian", "discrete_gaussian"], counts, strict=True))


@pytest.mark.slow
def test_jax_privacy_draws_standard_normals_of_either_precision(script, monkeypatch):
    """Standard deviations of 100,000 values: 1 ± 0.011 (five standard errors)."""
    pytest.importorskip("jax", reason=PEERS)
    noise = script("noise")
    monkeypatch.setattr(noise, "PER_CALL", 100_000)
    for (name, draw), precision in zip(noise.jax_privacy().items(), (np.float32, np.float64), strict=True):
        one, two = np.asarray(draw()), np.asarray(draw())
        assert one.dtype == two.dtype == precision, name
        assert not np.array_equal(one, two)
        assert abs(float(np.std(one.astype(np.float64))) - 1.0) < 0.011


WITHIN = 5.5 / math.sqrt(2.0 * 400)  # a correct sum of 400 entries is outside once in 10⁷


def test_taciturn_adds_the_noise_that_it_states(script):
    """In blocks, and for the strategy whose error is compared, at the budget's mu, with a little for the lattice."""
    running = script("running_noise")
    small = running.Setting(400, 48, 16, 1.0)
    one = running.taciturn(small)
    last = one.work()
    assert (one.count, last.shape) == (48, (400,))
    assert abs(one.score(last) - 1.0) < WITHIN
    assert abs(one.score(2.0 * last) - 1.0) > WITHIN
    fit = running.by_taciturn(small.steps, running.BUFFERS, "max")
    stated = 1.0 / one.score(np.ones(400))
    expected = running.sum_sd(fit, small.steps, "max") / running.BUDGET.mu
    assert expected * (1.0 - 1e-9) <= stated == pytest.approx(expected, rel=1e-4)
    assert len(fit.decays) == running.BUFFERS


@pytest.mark.slow
def test_jax_privacy_adds_the_noise_that_it_states(script):
    """In each of its configurations."""
    pytest.importorskip("jax_privacy", reason=PEERS)
    running = script("running_noise")
    small = running.Setting(400, 48, 16, 1.0)
    contenders = small.contenders(running.by_taciturn(small.steps, running.BUFFERS, "max"))
    configurations = ("by steps", "scanned", "drawn at once")
    assert list(contenders)[1:] == [f"jax-privacy, d=400, {name}" for name in configurations]
    for name, one in contenders.items():
        assert one.count == 48
        assert abs(one.score(one.work()) - 1.0) < WITHIN, name


# ---- budgets and accuracy --------------------------------------------------------------------------------------


def test_no_budget_is_computed_twice(script):
    """No contender can answer from a cache; the first answer is the score."""
    pytest.importorskip("dp_accounting", reason=PEERS)
    accounting, asked = script("accounting"), []
    ours = accounting.contender("taciturn", lambda e: asked.append(e) or e, 1.0)
    assert ours.score(ours.work()) == 1.0
    ours.work()
    assert len(set(asked)) == len(asked) == 2 * ours.count
    assert accounting.contender("PLD", lambda e: e, 1.0).count == 1


def test_all_accountants_have_the_same_budget_and_composition(script):
    """The closed form agrees, RDP is 7 % above, and compositions may be of releases of different size."""
    pytest.importorskip("dp_accounting", reason=PEERS)
    accounting = script("accounting")
    calibrations = accounting.calibrations(1.0, 1000)
    assert not any("own start" in name for name in calibrations)
    names = ("taciturn", "RDP", "closed form")
    made = {name: calibrations[f"epsilon 1, 1,000 releases: {name}"] for name in names}
    noise = {name: one.score(one.work()) for name, one in made.items()}
    assert noise["closed form"] == pytest.approx(noise["taciturn"], rel=1e-9)
    assert 1.05 < noise["RDP"] / noise["taciturn"] < 1.1
    for title, epsilon in (("1 release", 1.0), ("1,000 releases", 1.0), ("20 different releases", None)):
        readers = {name: accounting.readings()[f"reading {title}: {name}"] for name in names}
        answers = {name: one.score(one.work()) for name, one in readers.items()}
        assert answers["closed form"] == pytest.approx(answers["taciturn"], rel=1e-9)
        assert answers["RDP"] > answers["taciturn"]
        assert epsilon is None or answers["taciturn"] == pytest.approx(epsilon, rel=1e-9)


def test_diffprivlib_has_the_same_rows(script, tmp_path, monkeypatch):
    """It loads what our fits learn from and are scored on, in rows of norm at most 1, and runs every setting."""
    pytest.importorskip("sklearn", reason=PEERS)
    utility, data, seen, loaded, asked = script("utility"), ad_impressions(200), [], [], []

    def call(name, **arguments):
        if name == "load":
            with np.load(arguments["path"]) as rows:
                loaded.append(dict(rows))
            return None
        asked.append(arguments)
        return {"accuracy": 0.7, "seconds": 1.0, "steps": 9.0}

    monkeypatch.setattr(utility, "DATA", {"adult": lambda: data})
    monkeypatch.setattr(utility, "ours", lambda fit, *rows: seen.append(rows) or {"accuracy": 0.5, "seconds": 1.0})
    peer, seeds = SimpleNamespace(call=call), {"adult": 2, "covertype": 9}
    results = utility.compared(seeds, None, tmp_path, peer, Console(quiet=True))
    train, test = split(data, 2)
    assert np.array_equal(loaded[1]["X"], train.X)
    assert np.array_equal(loaded[1]["y_test"], test.y)
    assert np.array_equal(seen[-1][0].X, train.X)
    assert np.linalg.norm(train.X, axis=1).max() <= 1.0
    assert all(len(scores) == 2 for scores in results.values())
    settings = {(each["epsilon"], each["C"], each["intercept"], each["seed"]) for each in asked}
    expected = {(e, share * e) for e in utility.EPSILONS for share in utility.SETTINGS["adult"]}
    assert settings == {(*each, intercept, seed) for each in expected for intercept in (True, False) for seed in (1, 2)}


def test_our_fits_learn(script):
    """Each beats the constant answer on an easy problem, at epsilon 1."""
    pytest.importorskip("sklearn", reason=PEERS)
    utility = script("utility")
    X = np.random.default_rng(0).normal(size=(20_000, 3)) / 4.0
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    stream = utility.Stream(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), ("a", "b", "c"), feature_bound=1.0, label_bound=1.0)
    train, test = split(stream, 1)
    for fit in utility.OURS.values():
        assert utility.ours(fit, train, test, 1.0, seed=1)["accuracy"] > 0.9
