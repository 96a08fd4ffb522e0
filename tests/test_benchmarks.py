"""The benchmarks measure what they say; runs need the extra `peers`."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tacit import BLT

ROOT = Path(__file__).parents[1]


def loaded(name):
    """A benchmark as a module, for as long as its tests last."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


@pytest.fixture(scope="module")
def fits():
    yield from loaded("fits")


@pytest.fixture(scope="module")
def noise():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.environ", dict(os.environ))
        yield from loaded("noise")


@pytest.mark.parametrize("n", [1, 2, 60, 2**14])
def test_deviation_is_what_the_library_prints(fits, n):
    """The sum term by term, against the closed forms behind `errors`."""
    for aim in ("max", "mean"):
        found, errors = fits.deviation(fits.by_tacit(n, 3, aim), n, aim), BLT(3, aim).errors(n)
        assert found == pytest.approx(errors[-1] if aim == "max" else np.sqrt(np.mean(errors**2)), rel=1e-9)


def test_deviation_is_that_of_the_matrices(fits):
    """Against `max_j ‖C e_j‖·‖row of B‖` of dense matrices."""
    fit = fits.by_tacit(60, 3, "mean")
    c = np.append(1.0, (fit.weights * fit.decays ** np.arange(59)[:, None]).sum(axis=1))
    C = np.array([[c[i - j] if i >= j else 0.0 for j in range(60)] for i in range(60)])
    rows = np.square(np.tri(60) @ np.linalg.inv(C)).sum(axis=1)
    column = np.linalg.norm(C, axis=0).max()
    assert fits.deviation(fit, 60, "max") == pytest.approx(column * np.sqrt(rows.max()), rel=1e-12)
    assert fits.deviation(fit, 60, "mean") == pytest.approx(column * np.sqrt(rows.mean()), rel=1e-12)


def test_noise_is_compared_turn_by_turn_with_the_faster_of_a_peer(noise):
    """Values a second over values a second, not over medians; the more, the faster."""
    rates = {"tacit, secret integers": [200.0, 300.0], "NumPy, SFC64": [100.0, 100.0]}
    rates |= {"OpenDP, integers": [1.0, 2.0], "OpenDP, doubles": [0.5, 3.0]}
    assert noise.ratios(rates) == {"tacit / NumPy": [2.0, 3.0], "tacit / OpenDP": [200.0, 100.0]}


def test_noise_counts_the_values_of_a_turn(noise):
    """A rate is a count over a time; the first turn is not counted."""
    turns = []
    rates = noise.measured({"idle": (lambda: turns.append(sum(range(10_000))), 1000)}, 3, Console(quiet=True))
    assert len(turns) == 4
    assert len(rates["idle"]) == 3
    assert all(1e3 < rate < 1e9 for rate in rates["idle"])


@pytest.mark.slow
def test_noise_runs_beside_opendp(tmp_path):
    """Few values: faster than OpenDP by two orders of magnitude, and not slower than half of NumPy, on any machine."""
    pytest.importorskip("opendp", reason="the extra peers is not installed")
    command = [sys.executable, "benchmarks/noise.py", "--quick", "--json", "--out", str(tmp_path)]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout
    report = json.loads(text)
    assert report == json.loads((tmp_path / "noise.json").read_text())
    assert np.median(report["ratios"]["tacit / OpenDP"]) > 100.0
    assert np.median(report["ratios"]["tacit / NumPy"]) > 0.5


@pytest.mark.slow
def test_running_sums_runs_beside_jax_privacy(tmp_path):
    """On few sums: no error above jax-privacy's by more than 0.1 %, and times that add up."""
    pytest.importorskip("jax_privacy", reason="the extra peers is not installed")
    command = [sys.executable, "benchmarks/running_sums.py", "--quick", "--json", "--out", str(tmp_path)]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout
    report = json.loads(text)
    assert report == json.loads((tmp_path / "running_sums.json").read_text())
    for row in report["rows"]:
        assert row["ratios"]["error"] < 1.001
        theirs = row["jax-privacy"]
        assert np.allclose(np.add(theirs["steps"], theirs["compiling"]), theirs["whole"])
        assert np.all(np.less_equal(theirs["settled"], theirs["steps"]))
