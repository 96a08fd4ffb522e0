"""Strategies that were fitted are judged by what they are worth; runs need the extra `peers`."""

import numpy as np
import pytest

from benching import loaded, quick
from taciturn import BLT


@pytest.fixture(scope="module")
def fits():
    yield from loaded("fits")


@pytest.mark.parametrize("n", [1, 2, 60, 2**14])
def test_deviation_is_what_the_library_prints(fits, n):
    """The sum term by term, against the closed forms behind `errors`."""
    for aim in ("max", "mean"):
        found, errors = fits.deviation(fits.by_taciturn(n, 3, aim), n, aim), BLT(3, aim).errors(n)
        assert found == pytest.approx(errors[-1] if aim == "max" else np.sqrt(np.mean(errors**2)), rel=1e-9)


def test_deviation_is_that_of_the_matrices(fits):
    """Against `max_j ‖C e_j‖·‖row of B‖` of dense matrices."""
    fit = fits.by_taciturn(60, 3, "mean")
    c = np.append(1.0, (fit.weights * fit.decays ** np.arange(59)[:, None]).sum(axis=1))
    C = np.array([[c[i - j] if i >= j else 0.0 for j in range(60)] for i in range(60)])
    rows = np.square(np.tri(60) @ np.linalg.inv(C)).sum(axis=1)
    column = np.linalg.norm(C, axis=0).max()
    assert fits.deviation(fit, 60, "max") == pytest.approx(column * np.sqrt(rows.max()), rel=1e-12)
    assert fits.deviation(fit, 60, "mean") == pytest.approx(column * np.sqrt(rows.mean()), rel=1e-12)


@pytest.mark.slow
def test_running_sums_runs_beside_jax_privacy(tmp_path):
    """On few sums: no error above jax-privacy's by more than 0.1 %, and times that add up."""
    pytest.importorskip("jax_privacy", reason="the extra peers is not installed")
    report = quick("running_sums", tmp_path)
    for row in report["rows"]:
        assert row["ratios"]["error"] < 1.001
        theirs = row["jax-privacy"]
        assert np.allclose(np.add(theirs["steps"], theirs["compiling"]), theirs["whole"])
        assert np.all(np.less_equal(theirs["settled"], theirs["steps"]))
