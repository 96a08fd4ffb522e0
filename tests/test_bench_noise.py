"""`benchmarks/noise.py` counts what it draws, and compares taciturn with the fastest form of each peer."""

import numpy as np
import pytest

from benching import FOLDER, loaded, quick


@pytest.fixture(scope="module")
def noise():
    yield from loaded("noise")


@pytest.fixture(scope="module")
def turns(noise):
    yield from loaded("turns")


SECONDS = {
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


def test_noise_is_compared_turn_by_turn_with_the_fastest_form_of_a_peer(noise, turns):
    """A peer's time over taciturn's: the larger, the faster is taciturn; of several forms, the least median."""
    found = turns.Turns(SECONDS).ratios(noise.WANTED)
    assert {name: ratio["each"] for name, ratio in found.items()} == {
        "NumPy's time / taciturn's": [2.0, 1.5],
        "NumPy's time, single / taciturn's": [1.0, 1.0],
        "OpenDP's time / taciturn's": [500.0, 400.0],
        "jax-privacy's time / taciturn's": [3.0, 1.5],
        "diffprivlib's time / taciturn's": [60.0, 30.0],
    }
    assert [ratio["met"] for ratio in found.values()] == [True, None, False, None, None]


class Silent:
    """Stands for diffprivlib's process: notes how many values were ordered."""

    def __init__(self):
        self.ordered = []

    def order(self, name, count):
        self.ordered.append((name, count))

    def clock(self):
        return 0.0


def test_contenders_count_the_values_they_draw(noise, monkeypatch):
    """taciturn's and NumPy's portions, OpenDP's vectors, and what is ordered of diffprivlib."""
    drawn, vectors, apart = [], [], Silent()
    monkeypatch.setattr(noise, "AT_ONCE", 1000)
    monkeypatch.setattr(noise, "lattice_normal", lambda scale, shape: drawn.append(shape))
    monkeypatch.setattr(noise, "jax_privacy", lambda: {"jax-privacy, single": lambda: drawn.append((1000,))})
    monkeypatch.setattr(noise, "opendp", lambda size: {"OpenDP, integers": lambda: vectors.append(size)})
    everyone = noise.contenders(3, apart)
    for one in everyone.values():
        one.work()
    assert drawn == [(1000,)] * 6
    assert (everyone["taciturn, secret integers"].count, everyone["NumPy, SFC64"].count) == (3000, 3000)
    assert [everyone["jax-privacy, single"].count, everyone["OpenDP, integers"].count] == [3000, *vectors]
    counts = [everyone[f"diffprivlib, {kind}"].count for kind in ("doubles", "integers")]
    assert apart.ordered == list(zip(["gaussian", "discrete_gaussian"], counts, strict=True))


@pytest.mark.slow
def test_jax_privacy_draws_standard_normals_of_either_precision(noise, monkeypatch):
    """Another draw every time. Deviations of 100,000 values: 1 ± 0.011 (five deviations of their own)."""
    pytest.importorskip("jax", reason="the extra peers is not installed")
    monkeypatch.setattr(noise, "AT_ONCE", 100_000)
    for (name, draw), precision in zip(noise.jax_privacy().items(), (np.float32, np.float64), strict=True):
        one, two = np.asarray(draw()), np.asarray(draw())
        assert one.dtype == two.dtype == precision, name
        assert not np.array_equal(one, two)
        assert abs(float(np.std(one.astype(np.float64))) - 1.0) < 0.011


@pytest.mark.slow
def test_noise_runs_beside_its_peers(tmp_path):
    """Few values: faster than OpenDP by two orders of magnitude, and not slower than half of NumPy, on any machine."""
    for peer in ("opendp", "jax_privacy"):
        pytest.importorskip(peer, reason="the extra peers is not installed")
    if not (FOLDER.parent / ".venv-diffprivlib").exists():
        pytest.skip("`make bench` installs diffprivlib")
    ratios = quick("noise", tmp_path)["ratios"]
    assert ratios["OpenDP's time / taciturn's"]["median"] > 100.0
    assert ratios["diffprivlib's time / taciturn's"]["median"] > 100.0
    assert ratios["NumPy's time / taciturn's"]["median"] > 0.5
