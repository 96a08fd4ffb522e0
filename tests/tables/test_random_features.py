"""Random Fourier features: the kernel that they stand for, their norm, and that a row's image is its own."""

import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from taciturn import BLT, FTRL, Chain, Hinge, InvalidInput, L2Ball, Privacy, Private, Problem, RandomFeatures, every
from taciturn.tables.random_features import directions, waves
from taciturn.tables.waves_loops import waves as compiled_waves


def rows(n, dimension=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dimension)), np.where(rng.random(n) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("scale", [0.3, 1.0, (0.5, 1.0, 2.0, 0.0, 0.3)])
def test_inner_products_are_a_gaussian_kernel(scale):
    """`R²·(exp(-|scale·(z - z')|²/2)·(1 - a) + a·z·z')`, up to 5 standard errors of a mean of 2,000 cosines."""
    X, _ = rows(12)
    X *= 0.3
    length = 2.5  # longer than every row
    image = RandomFeatures(4000, scale, length)(X)
    Z = X * np.broadcast_to(scale, 5)
    kernel = np.exp(-0.5 * np.sum((Z[:, None] - Z[None, :]) ** 2, axis=2))
    share = 1.0 - np.sum(image[:, 4000:] ** 2) / np.sum(X**2)  # of the random part
    expected = share * length**2 * kernel + (1.0 - share) * (X @ X.T)
    np.testing.assert_allclose(image @ image.T, expected, atol=5.0 * share * length**2 / np.sqrt(2000))


def test_images_know_their_norm():
    """At most `length` up to rounding, and that for every row that is as long; nothing is added to long rows."""
    X, _ = rows(50)
    lengths = np.linalg.norm(RandomFeatures(64, 3.0, 0.7)(X * np.logspace(-3, 200, 50)[:, None]), axis=1)
    assert np.all(lengths <= 0.7 * (1.0 + 1e-12))
    assert np.all(lengths[-20:] >= 0.7 * (1.0 - 1e-9))


@pytest.mark.privacy
def test_clipped_images_are_within_the_bound():
    """Certificates do not rest on the map's norm: with a `length` beyond the bound, rows are clipped after the map."""
    X, y = rows(50)
    for length in (0.5, 1.0, 30.0):
        problem = Problem(Hinge(), L2Ball(1.0), 5, feature_bound=1.0, features=RandomFeatures(40, 2.0, length))
        V, _ = problem.clip(X, y)
        assert all(sum(Fraction(float(entry)) ** 2 for entry in row) <= 1 for row in V)


@pytest.mark.privacy
def test_an_image_does_not_depend_on_other_rows():
    """The same to the bit, whatever the other rows of the block are: zeros, huge numbers or bad rows."""
    problem = Problem(Hinge(), L2Ball(1.0), 5, on_bad="zero", features=RandomFeatures(200, 2.0))
    X, y = rows(300)
    kept = np.arange(300) % 7 == 3
    first = problem.clip_block(X, y)[0][kept]
    for other in (0.0, 1e300, np.nan, -1.0):
        changed = np.where(kept[:, None], X, other)
        assert np.array_equal(problem.clip_block(changed, y)[0][kept], first)


def test_blocks_change_rounding_only():
    """Rows by themselves and in one block have the same images up to rounding."""
    features = RandomFeatures(200, 2.0)
    X, _ = rows(64)
    one_by_one = np.vstack([features(X[i : i + 1]) for i in range(64)])
    np.testing.assert_allclose(features(X), one_by_one, rtol=0.0, atol=1e-15)


def test_the_directions_are_normal_and_public():
    """The same in every process and version: their first numbers are stated here."""
    assert directions(2, 1, seed=0).tolist() == [[1.3267936706542969, -2.4981393814086914]]
    numbers = directions(1000, 60, seed=3).ravel()
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        spread = np.sqrt({1: 1, 2: 2, 3: 15, 4: 96}[power] / len(numbers))
        assert abs(np.mean(numbers**power) - moment) < 6.0 * spread
    assert not np.array_equal(directions(10, 6, seed=3), directions(10, 6, seed=4))
    code = "from taciturn.tables.random_features import directions as d; print(d(3, 2, 5).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(directions(3, 2, 5).tolist())


def test_both_waves_agree():
    """The compiled series and NumPy's cosine and sine, at small, large and huge angles; an infinite one gives NaN."""
    rng = np.random.default_rng(1)
    turns = rng.normal(size=(9, 40)) * np.logspace(-9, 18, 40)
    turns[0, :5] = [0.0, 0.25, 0.5, -0.5, 1.0]
    one, other = np.full((9, 83), 7.0), np.full((9, 83), 7.0)
    waves(turns, 0.5, one)
    compiled_waves(turns, 0.5, other)
    np.testing.assert_allclose(other, one, rtol=0.0, atol=2e-15)
    assert np.all(other[:, 80:] == 7.0)
    with np.errstate(invalid="ignore"):
        compiled_waves(np.array([[np.inf, np.nan]]), 1.0, bad := np.zeros((1, 4)))
    assert np.isnan(bad).all()
    image = RandomFeatures(80, 2.0)
    np.testing.assert_allclose(image(turns), image.by_definition(turns), rtol=0.0, atol=1e-12)


def test_settings_are_checked():
    """Pairs of cosine and sine, positive numbers, and a scale for each feature."""
    for settings, error in [
        ({"count": 3}, "pairs of cosine and sine, got 3"),
        ({"count": 0}, "count must be an integer, 2 or more"),
        ({"scale": 0.0}, "scale must be"),
        ({"scale": (1.0, -1.0)}, "a scale must"),
        ({"length": -1.0}, "length must be"),
        ({"seed": -1}, "seed must be"),
    ]:
        with pytest.raises(InvalidInput, match=error):
            RandomFeatures(**({"count": 4, "scale": 1.0} | settings))
    with pytest.raises(InvalidInput, match="scale has 2 numbers for 5 features"):
        Problem(Hinge(), L2Ball(1.0), 5, features=RandomFeatures(4, (1.0, 2.0)))


def test_names_and_copies():
    """Names of all weights; equal after pickling; a chain maps in order."""
    features = RandomFeatures(4, (1.0, 0.0))
    assert features.names(["a", "b"]) == ["cos 1", "cos 2", "sin 1", "sin 2", "a", "b"]
    assert pickle.loads(pickle.dumps(features)) == features
    X, _ = rows(3, dimension=2)
    assert np.array_equal(Chain((features,))(X), features(X))
    assert "4 random features" in str(features)


def test_chunks_and_checkpoints_do_not_matter(tmp_path):
    """In one call, in many, and resumed from a file: the same releases, up to the rounding of products."""
    problem = Problem(Hinge(), L2Ball(5.0), 5, intercept=0.5, features=RandomFeatures(300, 2.0))
    private = Private(FTRL(problem), BLT(), every(50), Privacy(1.0, 1e-6), 600, seed=3)
    X, y = rows(600)
    whole = private.run(private.start(), X, y)[1].noisy
    state, parts = private.start(), []
    for start in range(0, 600, 70):
        state.dump(tmp_path / "state.npz")
        state, released = private.run(
            private.load(tmp_path / "state.npz"), X[start : start + 70], y[start : start + 70]
        )
        parts.append(released.noisy)
    np.testing.assert_allclose(np.vstack(parts), whole, rtol=0.0, atol=1e-9)
    other = replace(private, learner=FTRL(replace(problem, features=RandomFeatures(300, 2.0, seed=1))))
    assert other.settings != private.settings


def test_a_circle_is_learnt():
    """What no linear model learns: inside or outside of a circle, at epsilon = 1, 98 % where linear has 60 %."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.7, 0.7, size=(60_000, 2))
    y = np.where(np.linalg.norm(X, axis=1) < 0.55, 1.0, -1.0)
    accuracy = []
    for features in (None, RandomFeatures(100, 3.0)):
        problem = Problem(Hinge(), L2Ball(40.0), 2, intercept=0.5, features=features)
        private = Private(FTRL(problem), BLT(), every(80), Privacy(1.0, 1e-6), 50_000, seed=3)
        points = private.run(private.start(), X[:50_000], y[:50_000])[1].points
        scores = problem.predict(points[len(points) // 2 :].mean(axis=0), X[50_000:])
        accuracy.append(float(np.mean((scores > 0.0) == (y[50_000:] > 0.0))))
    assert accuracy[0] < 0.65
    assert accuracy[1] > 0.95
