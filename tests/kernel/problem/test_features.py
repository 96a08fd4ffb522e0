"""Public maps of features: mapped, then clipped; a row without influence is zero after the map."""

import pickle
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from taciturn import (
    BLT,
    FTRL,
    IGD,
    QFTL,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    StateConflict,
    User,
    every,
)
from taciturn.kernel.problem.clipping_pass import clip_for
from taciturn.kernel.problem.features import Chain, FeatureMap, mapped_rows, products
from taciturn.kernel.problem.predict import coefficients
from taciturn.kernel.stream.loop import without_influence


@dataclass(frozen=True)
class Cosines(FeatureMap):
    """cos(s·x) of each feature, beside the feature itself: the image of 0 is not 0."""

    scale: float = 1.0

    def width(self, dimension):
        return 2 * dimension

    def __call__(self, X):
        return np.hstack([np.cos(self.scale * X), X])


@dataclass(frozen=True)
class Filled(FeatureMap):
    """Missing entries become `value`."""

    value: float
    takes_missing: ClassVar[bool] = True

    def width(self, dimension):
        return dimension

    def __call__(self, X):
        return np.where(np.isnan(X), self.value, X)


@dataclass(frozen=True)
class Exploding(FeatureMap):
    """exp(x), which overflows."""

    def width(self, dimension):
        return dimension

    def __call__(self, X):
        return np.exp(X)


@dataclass(frozen=True)
class Narrow(FeatureMap):
    """The first feature alone, and a width that says otherwise."""

    stated: int

    def width(self, dimension):
        return self.stated

    def __call__(self, X):
        return X[:, :1]


def mapped_problem(**settings):
    return Problem(**({"loss": Hinge(), "domain": L2Ball(1.0), "dimension": 3, "features": Cosines()} | settings))


def rows(n, seed=0, dimension=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dimension)), np.where(rng.random(n) < 0.5, -1.0, 1.0)


def exact_square(row):
    return sum(Fraction(float(entry)) ** 2 for entry in row)


@pytest.mark.privacy
def test_rows_are_mapped_then_clipped():
    """Every clipped image is within the bound, in exact arithmetic, and has its direction."""
    problem = mapped_problem(feature_bound=0.9, intercept=0.5)
    X, y = rows(50)
    X[:20] *= 1e200
    V, _ = problem.clip(X, y)
    assert (problem.dimension, problem.mapped_dimension, problem.width, problem.size) == (3, 6, 7, 7)
    assert V.shape == (50, 7)
    assert all(exact_square(row[:-1]) <= Fraction(0.9) ** 2 for row in V)
    image = Cosines()(X)
    largest = np.max(np.abs(image), axis=1, keepdims=True)
    image = image / largest / np.linalg.norm(image / largest, axis=1, keepdims=True)
    np.testing.assert_allclose(V[:, :6], 0.9 * image, rtol=1e-9)
    assert np.all(V[:, 6] == 0.5)


@pytest.mark.privacy
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bad_row_is_zero_after_the_map(value):
    """A bad entry or label makes the final row zero, cosines and intercept included, in both twins."""
    problem = mapped_problem(intercept=1.0, on_bad="zero")
    X, y = rows(5)
    X[1, 2] = value
    y[3] = 0.25
    for V, labels in (problem.clip_block(X, y), clip_for(problem).dense(X, y)):
        assert not V[[1, 3]].any()
        assert labels[[1, 3]].tolist() == [1.0, 1.0]
        assert V[[0, 2, 4]].all()


@pytest.mark.privacy
def test_an_image_that_is_not_finite_is_a_bad_row():
    """exp overflows: the row has no influence, or is rejected with an error that says so."""
    problem = mapped_problem(features=Exploding(), intercept=1.0, on_bad="zero")
    X, y = rows(3)
    X[1, 0] = 1e4
    for V, _ in (problem.clip_block(X, y), clip_for(problem).dense(X, y)):
        assert not V[1].any()
        assert V[[0, 2]].all()
    strict = replace(problem, on_bad="raise")
    for clip in (strict.clip_block, clip_for(strict).dense):
        with pytest.raises(InvalidInput, match="row 8 cannot be used: its mapped features are not finite"):
            clip(X, y, 7)


def test_errors_name_the_raw_feature():
    """A missing entry is named, unless the map takes it; an infinity always is."""
    X, y = rows(3)
    X[1, 2] = np.nan
    with pytest.raises(InvalidInput, match="row 1 cannot be used: feature 2 is not a number"):
        mapped_problem().clip(X, y)
    filling = mapped_problem(features=Chain((Filled(0.5), Cosines())))
    V, _ = filling.clip(X, y)
    X[1, 2] = 0.5
    assert np.array_equal(V, mapped_problem().clip(X, y)[0])
    X[1] = [np.nan, np.inf, 0.0]
    for clip in (filling.clip_block, clip_for(filling).dense):
        with pytest.raises(InvalidInput, match="row 1 cannot be used: feature 1 is inf"):
            clip(X, y)


def test_a_chain_is_one_map_after_the_other():
    """Width, image, names and missing entries; only the first map sees missing entries."""
    chain = Chain((Filled(2.0), Cosines(0.5)))
    assert chain.width(3) == 6
    assert chain.takes_missing
    assert not Chain((Cosines(), Filled(2.0))).takes_missing
    assert np.array_equal(chain(np.array([[np.nan, 0.0]])), [[np.cos(1.0), 1.0, 2.0, 0.0]])
    assert chain.names(["a", "b"]) == [f"feature {j}" for j in range(4)]
    assert pickle.loads(pickle.dumps(chain)) == chain
    with pytest.raises(InvalidInput, match="a chain needs one map or more"):
        Chain(())
    with pytest.raises(InvalidInput, match="a map cannot be of type int"):
        Chain((Cosines(), 3))


def test_wrong_maps_are_rejected():
    """Something that is no map, and a map of another width than it states."""
    with pytest.raises(InvalidInput, match="features cannot be"):
        mapped_problem(features=np.cos)
    with pytest.raises(InvalidInput, match="the width of features must be an integer"):
        mapped_problem(features=Narrow(0))
    with pytest.raises(
        InvalidInput, match=r"Narrow should map rows of shape \(1, 3\) to 2 features, got shape \(1, 1\)"
    ):
        mapped_problem(features=Narrow(2)).clip([[1.0, 2.0, 3.0]], [1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_clipping_maps_too(dtype):
    """Both twins agree to a rounding error."""
    problem = mapped_problem(intercept=0.5, on_bad="zero")
    X, y = rows(40)
    X[3, 1] = np.nan
    X = X.astype(dtype)
    one, other = problem.clip_block(X, y), clip_for(problem).dense(X, y)
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12, atol=1e-15)
    assert np.array_equal(one[1], other[1])


def learner_of(kind, problem):
    if kind is QFTL:
        return QFTL(replace(problem, loss=Squared(), label_bound=1.0, ridge=0.1)), BLT()
    if kind is IGD:
        return IGD(replace(problem, loss=Logistic(), ridge=0.5)), Gaussian()
    return FTRL(problem), BLT()


@pytest.mark.parametrize("kind", [FTRL, QFTL, IGD])
def test_a_map_is_the_same_as_mapped_rows(kind):
    """Learning by a map from raw rows, dense or sparse, in any calls, is learning from the mapped rows."""
    X, y = rows(60)
    X[np.abs(X) < 0.3] = 0.0
    raw = mapped_problem(intercept=0.5)
    plain = replace(raw, features=None, dimension=6)
    shown = []
    for problem, source in ((plain, Cosines()(X)), (raw, X), (raw, csr_matrix(X))):
        for compiled in (True, False):
            learner, mechanism = learner_of(kind, problem)
            private = Private(learner, mechanism, every(7), Privacy(1.0, 1e-6), 60, seed=3, compiled=compiled)
            state, first = private.run(private.start(), source[:25], y[:25])
            _, second = private.run(state, source[25:], y[25:])
            shown.append(np.concatenate([first.noisy, second.noisy]))
    for noisy in shown[1:]:
        np.testing.assert_allclose(noisy, shown[0], rtol=0.0, atol=1e-9)


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [True, False])
def test_rows_beyond_a_users_bounds_have_no_influence(compiled):
    """Their cosines, which are not 0 for any row, are zeroed too: contents of excluded rows do not matter."""
    problem = mapped_problem(intercept=1.0, on_bad="zero")
    X, y = rows(12)
    users = np.array(["anna", "bob"] * 6)
    unit = User(rows=2)
    shown = []
    for content in (0.0, 5.0, np.nan):
        private = Private(FTRL(problem), BLT(), every(3), Privacy(1.0, 1e-6), 12, seed=3, unit=unit, compiled=compiled)
        changed = X.copy()
        changed[4:] = content  # each user's first two rows count
        shown.append(private.run(private.start(), changed, y, users)[1].noisy)
    assert np.array_equal(shown[0], shown[1])
    assert np.array_equal(shown[0], shown[2])


def test_excluded_images_are_zero():
    """`without_influence` zeroes the final row, and the map of 0 is not 0."""
    V, y = mapped_problem(intercept=1.0).clip(np.zeros((2, 3)), np.ones(2))
    assert V[0].any()
    V, _ = without_influence(V, y, np.array([True, False]), "sign")
    assert not V[0].any()
    assert V[1].any()


@dataclass(frozen=True)
class ZeroedTooEarly(Problem):
    """A planted fault: bad rows are zeroed before the map, and their cosines survive."""

    def _clip(self, X, y):
        bad = ~np.isfinite(X).all(axis=1)
        V, labels, _ = super()._clip(np.where(bad[:, None], 0.0, X), y)
        return V, labels, bad


@pytest.mark.privacy
def test_a_bad_row_that_survives_the_map_is_noticed():
    """A planted fault: the check of bad rows above sees a row that was zeroed before the map."""
    problem = ZeroedTooEarly(Hinge(), L2Ball(1.0), 3, on_bad="zero", features=Cosines())
    X, y = rows(5)
    X[1, 2] = np.nan
    V, _ = problem.clip_block(X, y)
    assert V[1].any()


@pytest.mark.parametrize("n", [0, 1, 7])
def test_predictions_are_of_mapped_rows(n):
    """Dense and sparse, and with bad rows, which score 0."""
    problem = mapped_problem(intercept=0.5, on_bad="zero")
    X, _ = rows(n)
    if n > 1:
        X[1, 0] = np.nan
    point = np.arange(1.0, 8.0) / 20.0
    scores = problem.predict(point, X)
    assert np.array_equal(scores, problem.clip_block(X, np.ones(n))[0] @ point)
    np.testing.assert_allclose(problem.predict(point, csr_matrix(X)), scores, rtol=1e-14)
    weights, intercepts = coefficients(problem, point)
    assert (weights.shape, intercepts.tolist()) == ((1, 6), [0.5 * 0.35])


def test_blocks_stay_small(monkeypatch):
    """The map never sees more than a block of rows, in learning and in predictions."""
    seen = []

    @dataclass(frozen=True)
    class Watched(FeatureMap):
        def width(self, dimension):
            return 2**12

        def __call__(self, X):
            seen.append(len(X))
            return np.broadcast_to(X[:, :1], (len(X), 2**12))

    problem = mapped_problem(features=Watched())
    X, y = rows(1000)
    private = Private(FTRL(problem), BLT(), every(1000), Privacy(1.0, 1e-6), 1000, seed=1)
    private.run(private.start(), X, y)
    assert max(seen) <= 2**19 // 2**12
    assert sum(seen) == 1000
    seen.clear()
    problem.predict(np.zeros(2**12), X)
    assert max(seen) <= 2**20 // 2**12
    assert sum(seen) == 1000


def test_the_map_is_part_of_the_settings(tmp_path):
    """A state of a stream with one map is not resumed with another."""
    X, y = rows(6)

    def private(scale):
        problem = mapped_problem(features=Cosines(scale))
        return Private(FTRL(problem), BLT(), every(2), Privacy(1.0, 1e-6), 6, seed=3)

    state, _ = private(1.0).run(private(1.0).start(), X[:3], y[:3])
    state.dump(tmp_path / "state.npz")
    resumed = private(1.0).load(tmp_path / "state.npz")
    uninterrupted = private(1.0).run(private(1.0).start(), X, y)[1].noisy
    assert np.array_equal(private(1.0).run(resumed, X[3:], y[3:])[1].noisy, uninterrupted[1:])
    with pytest.raises(StateConflict):
        private(2.0).load(tmp_path / "state.npz")


@pytest.mark.privacy
@pytest.mark.parametrize("shape", [(20, 2), (5, 1), (54, 40)])
def test_the_product_of_a_row_is_its_own_to_the_bit(shape):
    """However many rows there are, wherever they lie, and whatever is in the others."""
    rng = np.random.default_rng(4)
    matrix, X = rng.normal(size=shape), 1e15 * rng.normal(size=(70, shape[0]))
    whole = products(X, matrix)
    assert np.allclose(whole, X @ matrix, rtol=1e-9, atol=1.0)
    for length in (1, 2, 7, 16, 17, 64):
        cut = [products(X[start : start + length], matrix) for start in range(0, len(X), length)]
        assert np.array_equal(np.concatenate(cut), whole)
    laid = [np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1].copy()[::-1]]
    assert all(np.array_equal(products(rows, matrix), whole) for rows in laid)


@pytest.mark.privacy
@pytest.mark.parametrize(
    "laid", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X[::-1, ::-1]]
)
def test_a_map_sees_rows_side_by_side_whether_or_not_one_is_bad(laid):
    """A product that it makes itself is rounded alike in both of two neighbouring streams."""

    @dataclass(frozen=True)
    class Seen(FeatureMap):
        layouts: list

        def width(self, dimension):
            return dimension

        def __call__(self, X):
            self.layouts.append((X.flags.c_contiguous, X.flags.owndata, X.strides))
            return X

    seen = Seen([])
    good = np.ones((6, 3))
    bad = good.copy()
    bad[2] = np.nan
    for X in (good, bad):
        mapped_rows(seen, laid(X))
    assert seen.layouts[0] == seen.layouts[1] == (True, True, (24, 8))


@dataclass(frozen=True)
class Turned(FeatureMap):
    """Columns in the opposite order: an image that lies in memory column by column, unless there is one row."""

    def width(self, dimension):
        return dimension

    def __call__(self, X):
        return np.asfortranarray(X[:, ::-1])


@dataclass(frozen=True)
class Length(FeatureMap):
    """The norm of a row, which NumPy rounds by how rows lie in memory."""

    def width(self, dimension):
        return 1

    def __call__(self, X):
        return np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.privacy
def test_every_map_of_a_chain_sees_rows_side_by_side():
    """A row has the same image alone and among others."""
    chain = Chain((Turned(), Length()))
    X = np.random.default_rng(0).normal(size=(50, 23))
    assert np.array_equal(chain(X), np.vstack([chain(row[None]) for row in X]))
