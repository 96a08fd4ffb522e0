"""The arithmetic that judges benchmarks: turns, ratios, medians, targets, exponents, shares, errors, true epsilons."""

import json
import os
from argparse import Namespace

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from taciturn import BLT, Privacy
from taciturn.accounting.gdp import epsilon_of, noise_multiplier

QUIET = Console(quiet=True)


# ---- runner ----------------------------------------------------------------------------------------------------


class Clock:
    """A clock that work advances."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def spend(self, seconds):
        self.now += seconds
        return seconds


def test_contenders_take_turns_and_the_first_is_not_counted(script):
    runner, clock, order = script("runner"), Clock(), []

    def spends(name, seconds):
        return lambda: (order.append(name), clock.spend(seconds))[1]

    contenders = {
        "a": runner.Contender(spends("a", 8.0), 4, clock=clock),
        "b": runner.Contender(spends("b", 3.0), 1, score=lambda result: 10.0 * result, clock=clock),
    }
    turns = runner.take_turns(contenders, 2, QUIET)
    assert order == ["a", "b"] * 3
    assert turns.seconds == {"a": [2.0, 2.0], "b": [3.0, 3.0]}
    assert turns.scores == {"b": 30.0}


def test_ratios_are_of_a_turn_and_targets_of_the_median(script):
    runner = script("runner")
    seconds = {"ours": [1.0, 2.0, 4.0], "noise": [1.0, 1.0, 1.0], "peer, slow": [9.0] * 3, "peer, fast": [6.0] * 3}
    assert runner.Ratio("peer*", "ours").of(seconds) == [6.0, 3.0, 1.5]
    assert runner.Ratio("peer, slow", ("ours", "noise")).of(seconds) == [4.5, 3.0, 1.8]
    for target, met in (({"at_least": 3.0}, True), ({"at_least": 3.1}, False), ({"at_most": 3.0}, True), ({}, None)):
        assert runner.Ratio("peer*", "ours", **target).met([6.0, 3.0, 1.5]) is met
    assert runner.Ratio("a", "b", at_least=2.5).target == "≥ 2.5"
    result = runner.Turns(seconds).ratios({"peer / ours": runner.Ratio("peer*", "ours", at_most=2.0)})["peer / ours"]
    assert result == {"each": [6.0, 3.0, 1.5], "median": 3.0, "target": "≤ 2", "met": False}


def test_a_rate_is_one_over_the_time_per_value(script):
    """Seconds of 5·10⁻⁹ to 2·10⁻⁸ are 50 to 200 million per second, the lower end first."""
    runner = script("runner")
    table = runner.tables(runner.Turns({"one": [5e-9, 1e-8, 2e-8]}), {}, "µs per value", rate=True)[0]
    assert [next(iter(column.cells)) for column in table.columns] == ["one", "100", "50", "200"]
    assert table.columns[1].header == "million per second"


def test_records_have_the_tables_that_are_printed(script, tmp_path, capsys):
    table = Table("who", "µs", title="times")
    table.add_row("taciturn", "0.5")
    chosen = Namespace(json=True, quick=True, out=tmp_path)
    script("runner").save("some", {"unit": "s"}, chosen, QUIET, table, "words")
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "some.json").read_text())
    assert record["tables"] == [{"title": "times", "columns": ["who", "µs"], "rows": [["taciturn", "0.5"]]}]


# ---- ratios of the scripts -------------------------------------------------------------------------------------

NOISE = {
    "taciturn, secret integers": [1.0, 2.0],
    "NumPy, SFC64": [2.0, 3.0],
    "NumPy in single precision": [1.0, 2.0],
    "OpenDP, integers": [500.0, 800.0],
    "OpenDP, doubles": [900.0, 700.0],
    "jax-privacy, single": [3.0, 3.0],
    "jax-privacy, double": [4.0, 5.0],
    "diffprivlib, doubles": [60.0, 60.0],
    "diffprivlib, integers": [50.0, 90.0],
}


def test_noise_is_compared_with_the_fastest_configuration_of_a_peer(script):
    """The time of a peer over taciturn's: the larger, the faster is taciturn."""
    results = script("runner").Turns(NOISE).ratios(script("noise").RATIOS)
    assert {name: result["each"] for name, result in results.items()} == {
        "NumPy's time / taciturn's": [2.0, 1.5],
        "NumPy's time, single / taciturn's": [1.0, 1.0],
        "OpenDP's time / taciturn's": [500.0, 400.0],
        "jax-privacy's time / taciturn's": [3.0, 1.5],
        "diffprivlib's time / taciturn's": [60.0, 30.0],
    }
    assert [result["met"] for result in results.values()] == [True, None, False, None, None]


def test_ratios_of_learners_rise_when_taciturn_gets_faster(script):
    seconds = {
        "taciturn PIGD": [1.0, 2.0],
        "taciturn, PIGD's noise": [0.25, 1.0],
        "taciturn, PIGD's steps": [0.25, 1.0],
    }
    seconds |= {"Vowpal Wabbit, plain": [3.0, 4.0], "Vowpal Wabbit, adaptive": [9.0, 1.0], "limit": [0.5, 0.5]}
    logistic = script("logistic").RATIOS
    assert logistic["fastest Vowpal Wabbit / PIGD"].of(seconds) == [3.0, 2.0]
    assert logistic["PIGD / (its noise + its steps)"].of(seconds) == [2.0, 1.0]
    assert logistic["limit / PIGD"].of(seconds) == [0.5, 0.25]
    regression = script("regression").all_ratios()
    ratio = regression["NumPy leader / PQFTL, d=90"]
    assert ratio.of({"NumPy leader, d=90": [1.0, 3.0], "taciturn PQFTL, d=90": [2.0, 1.0]}) == [0.5, 3.0]
    assert (ratio.met([0.46]), ratio.met([0.44])) == (True, False)
    assert sum(bool(ratio.target) for ratio in regression.values()) == 3


def test_the_command_is_compared_with_the_faster_peer(script):
    seconds = {"Vowpal Wabbit, plain": [2.0], "Vowpal Wabbit, adaptive": [9.0], "taciturn learn, csv": [4.0]}
    seconds |= {"raw csv, pandas": [1.0], "raw csv, Arrow": [0.5], "parsing, csv": [3.0], "learning and commits": [1.0]}
    ratios = script("learn").RATIOS
    assert ratios["Vowpal Wabbit / taciturn learn, csv"].of(seconds) == [0.5]
    assert ratios["Vowpal Wabbit / (parsing, learning and commits), csv"].of(seconds) == [0.5]
    assert ratios["parsing / raw reader, csv"].of(seconds) == [6.0]


def test_sums_are_compared_at_the_same_size(script):
    """Sizes whose digits begin alike are different."""
    seconds = {
        "taciturn, d=54": [1.0],
        "jax-privacy, d=54, scanned": [4.0],
        "jax-privacy, d=54, by steps": [9.0],
        "jax-privacy, d=540, scanned": [2.0],
    }
    running_noise = script("running_noise")
    setting = running_noise.Setting(54, 16, 16, 3.0)
    assert setting.ratio.of(seconds) == [4.0]
    assert setting.ratio.target == "≥ 3"
    assert all(each.steps % each.block == 0 for each in (*running_noise.FULL, *running_noise.QUICK))


# ---- shares, exponents, start-up times -------------------------------------------------------------------------


def test_stages_add_up_to_the_total(script):
    parts = script("stages").parts({"total": 10.0, "noise given": 6.0, "noise": 3.0, "bits": 1.0, "examples": 2.0})
    assert parts == {"bits": 1.0, "sampling": 2.0, "examples": 2.0, "learning": 4.0, "other": 1.0}


def test_shares_add_up_to_the_command(script):
    """Commits are what a run takes beyond learning."""
    seconds = {"learning": [1.0], "learning and commits": [3.0]}
    for kind, parsing in (("csv", 4.0), ("parquet", 2.0)):
        seconds |= {f"taciturn learn, {kind}": [10.0], f"start-up, {kind}": [2.0], f"parsing, {kind}": [parsing]}
    shares = script("learn").shares(seconds)
    csv = {"start-up": 0.2, "parsing": 0.4, "learning": 0.1, "commits": 0.2, "other": 0.1}
    assert shares["csv"] == pytest.approx(csv)
    assert shares["parquet"]["other"] == pytest.approx(0.3)


def runs(seconds):
    """Three repetitions of a stream, one of them slow."""
    return [[seconds, 0.5, 200.0], [3.0 * seconds, 0.1, 300.0], [seconds, 0.1, 100.0]]


def test_exponents_are_slopes_of_medians_along_their_axis(script):
    """Planted: time n at fixed d, d² at fixed n, a line in the number of buffers."""
    growth = script("growth")
    lengths = {growth.Stream("PIGD", n, 10): runs(1e-6 * n) for n in (10, 100, 1000)}
    widths = {growth.Stream(growth.SUMS, 500, d): runs(1e-6 * d**2) for d in (10, 30, 100)}
    assert growth.summary("n", lengths)["PIGD"]["exponent"] == pytest.approx(1.0)
    assert growth.summary("d", widths)[growth.SUMS]["exponent"] == pytest.approx(2.0)
    buffers = {growth.Stream("FTRL", 1000, 54, b): runs(1e-3 * (0.5 + 0.25 * b)) for b in range(1, 5)}
    assert growth.summary("buffers", buffers)["FTRL"]["line"] == pytest.approx({"a": 0.5, "b": 0.25})


@pytest.mark.parametrize(("power", "met"), [(1.0, True), (0.94, False), (1.06, False)])
def test_exponents_of_n_have_a_target_for_learners_with_a_horizon(script, power, met):
    growth = script("growth")
    names = ("PIGD", growth.ENDLESS)
    made = growth.summary(
        "n", {growth.Stream(name, n, 10): runs(1e-6 * n**power) for name in names for n in (10, 1000)}
    )
    assert made["PIGD"]["met"] is met
    assert "met" not in made[growth.ENDLESS]
    assert "met" not in growth.summary("d", {growth.Stream("PIGD", 10, d): runs(d) for d in (1, 2)})["PIGD"]


def test_the_picture_of_growth_has_a_panel_for_each_axis(script, tmp_path):
    pytest.importorskip("matplotlib")
    growth = script("growth")
    axes = {
        "n": growth.summary("n", {growth.Stream("PIGD", n, 10): runs(1e-6 * n) for n in (10, 100)}),
        "buffers": growth.summary("buffers", {growth.Stream("FTRL", 10, 54, b): runs(b) for b in (1, 2, 3)}),
    }
    growth.draw({"axes": axes}, tmp_path / "growth.svg")
    text = (tmp_path / "growth.svg").read_text()
    assert text.count('id="axes_') == 2
    assert "PIGD (exponent 1.00)" in text


def test_start_up_targets_are_for_the_median_wall_time(script):
    starting = script("starting")
    slow, fast = starting.Spent(0.6, 0.1), starting.Spent(0.4, 0.9)
    judged = starting.judged({"import taciturn": [slow, fast, fast], "taciturn --help": [slow, slow, fast]})
    assert judged["import taciturn"] == {"median": 0.4, "target": "< 0.5", "met": True}
    assert not judged["taciturn --help"]["met"]
    assert "pigd, later" not in judged  # not measured, not judged
    measured = {*starting.processes(), *(starting.EMPTY.format(recipe) for recipe in starting.RECIPES)}
    assert set(starting.TARGETS) <= measured


def test_a_process_is_timed_from_its_beginning(script, tmp_path, monkeypatch):
    """Sleeping costs no CPU time; caches are in the folder, and bytecode may be written."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    caches = "os.environ['NUMBA_CACHE_DIR'] == os.environ['XDG_CACHE_HOME']"
    code = (
        f"import os, sys, time; time.sleep(0.3); assert {caches} == {str(tmp_path)!r} and not sys.dont_write_bytecode"
    )
    spent = script("starting").process(("-c", code), str(tmp_path))
    assert spent.wall > 0.3
    assert spent.cpu < spent.wall


def test_caches_are_shared_or_empty_as_named(script, monkeypatch):
    """The first turn, which fills the shared cache, is not counted."""
    starting, caches = script("starting"), []

    def process(arguments, cache):
        caches.append((cache, os.listdir(cache)))
        return starting.Spent(1.0, 1.0)

    monkeypatch.setattr(starting, "process", process)
    results = starting.with_a_cache(2, QUIET)
    assert {len(each) for each in results.values()} == {2}
    assert len(caches) == 3 * len(results)
    assert len({cache for cache, _ in caches}) == 1
    caches.clear()
    starting.with_an_empty_cache(starting.RECIPES * 3, QUIET)
    assert len({cache for cache, _ in caches}) == 6
    assert all(files == [] for _, files in caches)


# ---- accuracy --------------------------------------------------------------------------------------------------


def scores(utility, ours, theirs):
    """Scores of two seeds: the recommended ridge, better than others, and settings of diffprivlib, as given."""
    made = {}
    for data in utility.DATA:
        for epsilon in utility.EPSILONS:
            names = {name: ours if name == utility.RECOMMENDED else (0.1, 0.1) for name in utility.OURS}
            names |= {f"{utility.PERTURBED}, worse": (0.1, 0.1)}
            names |= {f"diffprivlib, {name}": each for name, each in theirs.items()}
            for name, accuracies in names.items():
                made[data, epsilon, name] = [{"accuracy": each, "seconds": 1.0} for each in accuracies]
    return made


def test_diffprivlib_is_judged_by_its_best_mean(script):
    """Not its best seed, and not its first setting."""
    pytest.importorskip("sklearn")
    utility = script("utility")
    results = scores(utility, (0.8, 0.8), {"a": (0.9, 0.5), "b": (0.75, 0.79)})
    assert utility.best(results, "adult", 1.0, "diffprivlib") == "diffprivlib, b"


@pytest.mark.parametrize(("ours", "met"), [((0.80, 0.76), True), ((0.78, 0.74), False)])
def test_the_best_of_ours_is_judged_seed_by_seed(script, ours, met):
    """The error is that of differences of the same seed."""
    pytest.importorskip("sklearn")
    utility = script("utility")
    rows = utility.judged(scores(utility, ours, {"a": (0.79, 0.75)}))
    judged = [row for row in rows if row["met"] is not None]
    assert {row["fit"] for row in judged} == {utility.RECOMMENDED}
    assert len(judged) == len(utility.DATA) * len(utility.EPSILONS)
    for row in judged:
        assert row["met"] is met
        assert row["difference_error"] < 1e-12
        assert row["error"] > 0.01
    assert {row["fit"]: row["delta"] for row in rows} == dict.fromkeys(utility.OURS, 1e-6) | {"diffprivlib, a": 0.0}


# ---- budgets and errors of strategies --------------------------------------------------------------------------


@pytest.mark.parametrize("releases", [1, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_true_epsilon_is_that_of_the_noise(script, epsilon, releases):
    """In 50 digits, by neither package; noise that is less by a thousandth costs more."""
    pytest.importorskip("dp_accounting")
    true_epsilon = script("accounting").true_epsilon
    noise = noise_multiplier(Privacy(epsilon, 1e-6), releases)
    assert true_epsilon(noise, releases) == pytest.approx(epsilon, rel=1e-9)
    assert true_epsilon(0.999 * noise, releases) > 1.0005 * epsilon
    assert epsilon_of(1e-6, 1.1 * releases**0.5 / noise) == pytest.approx(true_epsilon(noise / 1.1, releases), rel=1e-9)


def test_a_ratio_of_budgets_is_to_the_faster_pld_and_needs_its_answer(script):
    pytest.importorskip("dp_accounting")
    accounting = script("accounting")
    title, answers = "epsilon 1, 1 release", {}
    for name in accounting.all_ratios():
        for who in ("taciturn", "PLD, own start", "PLD, bracketed", "PLD", "RDP", "closed form"):
            answers[f"{name.partition(' / taciturn, ')[2]}: {who}"] = 4.0
    seconds = {name: [1e-3 if name.endswith("taciturn") else 2.0] for name in answers}
    seconds[f"{title}: PLD, bracketed"] = [1.5]
    turns = accounting.Turns(seconds, answers)
    ratios = accounting.judged(turns, accounting.answers(answers))
    assert ratios[f"PLD / taciturn, {title}"]["each"] == [1500.0]
    assert ratios[f"PLD / taciturn, {title}"]["met"]
    other = answers | {f"{title}: PLD, bracketed": 4.001}
    assert not accounting.judged(turns, accounting.answers(other))[f"PLD / taciturn, {title}"]["met"]
    assert ratios[f"RDP / taciturn, {title}"]["target"] == ""


@pytest.mark.parametrize("n", [1, 2, 60, 2**14])
def test_errors_of_strategies_are_those_of_the_library(script, n):
    """The sum term by term, against the closed forms behind `errors`."""
    fits = script("fits")
    for aim in ("max", "mean"):
        sd, errors = fits.sum_sd(fits.by_taciturn(n, 3, aim), n, aim), BLT(3, aim).errors(n)
        assert sd == pytest.approx(errors[-1] if aim == "max" else np.sqrt(np.mean(errors**2)), rel=1e-9)


def test_errors_of_strategies_are_those_of_dense_matrices(script):
    """`max_j ‖C e_j‖·‖row of B‖`."""
    fits = script("fits")
    fit = fits.by_taciturn(60, 3, "mean")
    c = np.append(1.0, (fit.weights * fit.decays ** np.arange(59)[:, None]).sum(axis=1))
    C = np.array([[c[i - j] if i >= j else 0.0 for j in range(60)] for i in range(60)])
    squares = np.square(np.tri(60) @ np.linalg.inv(C)).sum(axis=1)
    column = np.linalg.norm(C, axis=0).max()
    assert fits.column_norm(fit, 60) == pytest.approx(column, rel=1e-12)
    assert fits.sum_sd(fit, 60, "max") == pytest.approx(column * np.sqrt(squares.max()), rel=1e-12)
    assert fits.sum_sd(fit, 60, "mean") == pytest.approx(column * np.sqrt(squares.mean()), rel=1e-12)
