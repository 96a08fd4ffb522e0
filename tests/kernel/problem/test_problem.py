"""Every example is clipped to the public bounds, and the constants cover every clipped example."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instances import LOSSES, SETS, Diagonal, Distance, LogCosh, labels_of
from taciturn import (
    Box,
    HalfSpace,
    Hinge,
    InvalidInput,
    L2Ball,
    Logistic,
    Problem,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
)

ANYTHING = st.floats(width=64)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
BOUNDS = st.floats(-9.0, 9.0).map(lambda exponent: 10.0**exponent)
EXTREME = [1e308, -1e308, 5e-324, 1e-310, 1.0, 0.0]


def exact_square(row):
    """The squared norm of a row of floats, exactly."""
    return sum(Fraction(float(entry)) ** 2 for entry in row)


def squared(dimension, **settings):
    return Problem(Squared(), L2Ball(1.0), dimension, **({"label_bound": 1.0} | settings))


@pytest.mark.privacy
@settings(max_examples=200)
@given(arrays(np.float64, (3, 4), elements=FINITE), BOUNDS)
def test_norms_never_exceed_the_bound(X, bound):
    """In exact arithmetic: rounding, overflow and denormals included."""
    V, _ = squared(4, feature_bound=bound).clip(X, np.zeros(3))
    assert all(exact_square(row) <= Fraction(bound) ** 2 for row in V)


@pytest.mark.privacy
@pytest.mark.parametrize("bound", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("first", EXTREME)
@pytest.mark.parametrize("second", EXTREME)
def test_extreme_rows_are_bounded(first, second, bound):
    """Entries near the largest and smallest numbers come out finite, within the bound, in the same direction."""
    V, _ = squared(2, feature_bound=bound).clip([[first, second]], [0.0])
    assert exact_square(V[0]) <= Fraction(bound) ** 2
    larger = int(abs(second) > abs(first))
    assert np.sign(V[0, larger]) == np.sign((first, second)[larger])


@settings(max_examples=100)
@given(arrays(np.float64, 3, elements=st.floats(-1e100, 1e100)), BOUNDS)
def test_rows_keep_their_direction(x, bound):
    """Short rows pass unchanged; longer ones are scaled to the bound."""
    V, _ = squared(3, feature_bound=bound).clip([x], [0.0])
    length = math.hypot(*x)
    if length <= bound * (1.0 - 1e-11):
        assert np.array_equal(V[0], x)
    else:
        assert V[0] == pytest.approx(x / length * min(bound, length), rel=1e-11, abs=1e-14 * bound)


@pytest.mark.privacy
@settings(max_examples=100)
@given(arrays(np.float64, (2, 3), elements=FINITE), st.floats(0.1, 50.0), st.floats(0.01, 5.0))
def test_the_intercept_is_part_of_the_norm(X, bound, intercept):
    """The last column is the intercept, and the norm of the whole row stays below `sqrt(R² + c²)`."""
    problem = squared(3, feature_bound=bound, intercept=intercept)
    V, _ = problem.clip(X, np.zeros(2))
    assert V.shape == (2, problem.size) == (2, 4)
    assert np.all(V[:, 3] == intercept)
    assert all(exact_square(row) <= Fraction(problem.norm_bound) ** 2 for row in V)


@pytest.mark.privacy
def test_a_large_intercept_is_part_of_the_norm():
    """Also where the intercept is more than a hundred times the features' bound."""
    problem = squared(1, feature_bound=1e-8, intercept=1.0)
    V, _ = problem.clip([[1.0]], [0.0])
    assert exact_square(V[0]) <= Fraction(problem.norm_bound) ** 2


@pytest.mark.privacy
@pytest.mark.parametrize("order", ["C", "F"])
def test_norms_of_many_features(order):
    """A row of one large and 60,000 tiny entries stays within the bound, however its numbers lie in memory."""
    X = np.full((4, 60_000), 1e-8, order=order)
    X[:, 0] = 1.0 - 1.5e-12
    V, _ = squared(60_000).clip(X, np.zeros(4))
    assert exact_square(V[0]) <= 1


@pytest.mark.privacy
def test_bounds_of_low_precision():
    """A bound given in single precision is a number like any other."""
    bound = np.float32(0.1)
    V, _ = squared(2, feature_bound=bound).clip([[3.0, 4.0]], [0.0])
    assert exact_square(V[0]) <= Fraction(float(bound)) ** 2


@pytest.mark.privacy
@settings(max_examples=50)
@given(st.floats(-1e308, 1e308), st.floats(1e-6, 1e6))
def test_labels_are_cut(label, bound):
    """Real labels beyond the bound become the bound."""
    _, y = squared(1, label_bound=bound).clip([[0.0]], [label])
    assert y[0] == min(max(label, -bound), bound)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", [0, 1, None])
def test_a_bad_row_is_named(bad, column):
    """On the trusted side a NaN or infinity is rejected, by the number of its row, and the arguments stay the same."""
    X, y = np.arange(6.0).reshape(3, 2), np.zeros(3)
    if column is None:
        y[2] = bad
    else:
        X[2, column] = bad
    before = X.tobytes(), y.tobytes()
    what = "its label is" if column is None else f"feature {column} is"
    value = r"not a number \(text, or missing\)" if math.isnan(bad) else bad
    with pytest.raises(InvalidInput, match=f"row 2 cannot be used: {what} {value}"):
        squared(2).clip(X, y)
    assert (X.tobytes(), y.tobytes()) == before


@pytest.mark.parametrize("label", [0.0, 2.0, -1.0000001])
def test_signs_are_minus_one_and_one(label):
    """A classifier rejects any other label, and says how to make it one."""
    with pytest.raises(InvalidInput, match=r"row 1 has label .* needs -1 or \+1\..*public rule"):
        Problem(Logistic(), L2Ball(1.0), 1).clip([[1.0], [1.0]], [1.0, label])


@pytest.mark.privacy
@settings(max_examples=100)
@given(arrays(np.float64, (4, 2), elements=ANYTHING), arrays(np.float64, 4, elements=ANYTHING), st.booleans())
def test_bounding_is_total(X, y, sign):
    """With on_bad="zero" anything at all comes out legal: bad rows are 0, the intercept included, others unaffected."""
    loss = Hinge() if sign else Squared()
    problem = Problem(loss, L2Ball(1.0), 2, label_bound=3.0, intercept=0.5, on_bad="zero")
    V, labels = problem.clip(X, y)
    bad = ~np.isfinite(X).all(axis=1) | ~np.isfinite(y) | (np.abs(y) != 1.0 if sign else False)
    assert np.all(V[bad] == 0.0)
    assert np.all(V[~bad, 2] == 0.5)
    assert np.all(np.abs(labels) <= problem.label_bound)
    assert not sign or np.all(np.abs(labels) == 1.0)
    assert all(exact_square(row) <= Fraction(problem.norm_bound) ** 2 for row in V)
    assume(not bad.all())
    alone, own = problem.clip(X[~bad], y[~bad])
    assert np.array_equal(V[~bad], alone)
    assert np.array_equal(labels[~bad], own)


class Frame:
    """What NumPy sees of a table of columns."""

    def __array__(self, dtype=None, copy=None):
        return np.array([[3.0, 4.0], [0.3, 0.4]], dtype=dtype)


@pytest.mark.parametrize(
    "X",
    [
        [[3, 4], [0.3, 0.4]],
        ((3.0, 4.0), (0.3, 0.4)),
        np.array([[3.0, 4.0], [0.3, 0.4]], order="F"),
        np.array([[9.0, 3.0, 4.0], [9.0, 0.3, 0.4]])[:, 1:],
        Frame(),
    ],
    ids=["list", "tuple", "columns", "view", "frame"],
)
def test_what_counts_as_rows(X):
    """Lists, tuples, arrays in any order and tables give the same examples."""
    V, y = squared(2).clip(X, [1, 0])
    assert np.allclose(V, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-11, atol=0.0)
    assert V.dtype == y.dtype == np.float64


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.float16, np.float32, np.longdouble, bool])
def test_numbers_of_any_kind(kind):
    """Integers, booleans and floats of any precision are converted, never wrapped."""
    X = np.array([[1, 0, 1], [1, 1, 1]], dtype=kind)
    V, y = squared(3, feature_bound=10.0).clip(X, X[:, 0])
    assert V.tolist() == [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    assert y.tolist() == [1.0, 1.0]


def test_bounding_copies():
    """What comes out can be written to without touching what went in."""
    X, y = np.array([[0.1, 0.2]]), np.array([0.5])
    V, labels = squared(2).clip(X, y)
    V[:], labels[:] = 9.0, 9.0
    assert (X.tolist(), y.tolist()) == ([[0.1, 0.2]], [0.5])


def test_no_rows_are_rows():
    """An empty block passes."""
    V, y = squared(2, intercept=1.0).clip(np.empty((0, 2)), [])
    assert (V.shape, y.shape) == ((0, 3), (0,))


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([1.0, 2.0], [1.0]),
        ([[1.0]], [1.0]),
        ([[1.0, 2.0, 3.0]], [1.0]),
        ([[1.0, 2.0]], [1.0, 2.0]),
        ([[1.0, 2.0]], [[1.0]]),
        ([[1.0, 2.0]], 1.0),
        ([[[1.0, 2.0]]], [1.0]),
    ],
)
def test_other_shapes_are_rejected(X, y):
    """The message says what was expected and what came."""
    with pytest.raises(InvalidInput, match=r"expected features of shape \(n, 2\)"):
        squared(2).clip(X, y)


@pytest.mark.parametrize("X", [[["a", "b"]], [[object(), 1.0]], [[1.0], [1.0, 2.0]], None])
def test_what_is_not_a_number_is_rejected(X):
    """Words, objects and ragged lists raise InvalidInput."""
    with pytest.raises(InvalidInput):
        squared(2).clip(X, [1.0])


SETTINGS = [
    ({"feature_bound": 0.0}, "feature_bound must be positive"),
    ({"feature_bound": -1.0}, "largest norm an example may have"),
    ({"feature_bound": math.inf}, "feature_bound must be positive and finite"),
    ({"feature_bound": math.nan}, "feature_bound must be positive and finite"),
    ({"label_bound": 0.0}, "label_bound must be positive"),
    ({"label_bound": math.nan}, "label_bound must be positive"),
    ({"intercept": -1.0}, "intercept must be 0 or more"),
    ({"intercept": math.inf}, "intercept must be 0 or more"),
    ({"ridge": -1e-9}, "ridge must be 0 or more"),
    ({"ridge": math.nan}, "ridge must be 0 or more"),
    ({"neighbours": "add"}, "neighbours must be one of replace, zero-out, label"),
    ({"on_bad": "drop"}, "on_bad must be one of raise, zero"),
    ({"label_bound": None}, "Squared has real labels: state label_bound"),
]


@pytest.mark.parametrize(("setting", "message"), SETTINGS, ids=lambda value: str(value)[:30])
def test_invalid_settings_are_rejected(setting, message):
    """By name, when the problem is built."""
    with pytest.raises(InvalidInput, match=message):
        squared(2, **setting)


@pytest.mark.privacy
def test_the_number_of_rows_is_public_under_every_relation():
    """A row is a round, so nobody is told that it could be added or removed unseen."""
    with pytest.raises(Unprovable, match=r"number of rows is public.*Use neighbours='zero-out'"):
        squared(2, neighbours="add-remove")


@pytest.mark.parametrize("dimension", [0, -1, 1.5, math.nan, None, "2"])
def test_dimensions_are_positive_integers(dimension):
    """Others are rejected by name; a float with an integer value is accepted."""
    with pytest.raises(InvalidInput, match="dimension must be an integer, 1 or more"):
        squared(dimension)
    assert squared(2.0).clip([[1.0, 2.0]], [0.0])[0].shape == (1, 2)


def test_without_a_ridge_the_radius_does_not_matter():
    """Without a ridge the gradients of f are those of the data term, on the whole space too."""
    problem = Problem(Hinge(), WholeSpace(), 2)
    assert problem.lipschitz_with_ridge == problem.lipschitz


def test_the_ridge_pulls_hardest_at_the_rim():
    """With a ridge the longest gradient is longer by ridge times radius, infinite where the set is."""
    problem = Problem(Hinge(), L2Ball(3.0), 2, ridge=0.5)
    assert problem.lipschitz_with_ridge == pytest.approx(2.5)
    assert Problem(Hinge(), WholeSpace(), 2, ridge=0.5).lipschitz_with_ridge == math.inf


def test_the_set_must_have_the_dimension():
    """The intercept counts as one."""
    with pytest.raises(InvalidInput, match="normal has 2 entries"):
        Problem(Hinge(), HalfSpace((1.0, 1.0), 0.0), 2, intercept=1.0)
    assert Problem(Hinge(), HalfSpace((1.0, 1.0, 1.0), 0.0), 2, intercept=1.0).size == 3


@pytest.mark.parametrize("name", SETS)
def test_the_first_point_is_the_one_nearest_0(name):
    """The data-free first point lies in the set, and no sampled point of it is nearer to 0."""
    domain = SETS[name](3)
    first = Problem(Hinge(), domain, 2, intercept=1.0).first_point
    assert domain.contains(first)
    others = [domain.project(x) for x in np.random.default_rng(5).normal(size=(100, 3))]
    assert np.linalg.norm(first) <= min(np.linalg.norm(x) for x in others) + 1e-12


@pytest.mark.privacy
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("intercept", [0.0, 2.0])
@pytest.mark.parametrize("radius", [0.5, 4.0])
def test_constants_cover_what_comes_through_the_door(name, intercept, radius):
    """Gradients of bounded examples at points of the set: no longer, no farther apart, no steeper than stated."""
    loss, rng = LOSSES[name](), np.random.default_rng(11)
    problem = Problem(loss, L2Ball(radius), 3, 1.5, label_bound=2.0, intercept=intercept)
    V, y = problem.clip(3.0 * rng.normal(size=(200, 3)), labels_of(loss, 5.0, rng, 200))
    for x in (problem.domain.project(10.0 * rng.normal(size=problem.size)) for _ in range(10)):
        gradients = np.array([problem.gradient(x, v, float(b)) for v, b in zip(V, y, strict=True)])
        lengths = np.linalg.norm(gradients, axis=1)
        apart = np.linalg.norm(gradients[:, None] - gradients[None], axis=2)
        other = problem.domain.project(x + rng.normal(size=problem.size))
        change = [problem.gradient(other, v, float(b)) for v, b in zip(V, y, strict=True)] - gradients
        assert np.max(lengths) <= problem.lipschitz
        assert np.max(apart) <= problem.gradient_diameter
        assert np.max(np.linalg.norm(change, axis=1)) <= problem.smoothness * np.linalg.norm(other - x) + 1e-12


def test_constants_of_a_known_problem():
    """Logistic loss, R = 1, B = 2: longest gradient sigmoid(2), ridge in the smoothness only."""
    problem = Problem(Logistic(), L2Ball(2.0), 3, ridge=0.1)
    assert problem.lipschitz == pytest.approx(1.0 / (1.0 + math.exp(-2.0)), rel=1e-8)
    assert problem.smoothness == pytest.approx(0.35, rel=1e-8)
    assert problem.gradient_diameter == pytest.approx(1.27, abs=5e-3)
    assert Problem(Hinge(), L2Ball(2.0), 3).smoothness == math.inf
    assert Problem(Squared(), WholeSpace(), 3, label_bound=1.0).gradient_diameter == math.inf


@pytest.mark.privacy
@pytest.mark.parametrize("name", LOSSES)
def test_zero_out_needs_one_gradient(name):
    """One gradient being 0, the diameter is the longest gradient: at most that of replacing, at least half of it."""
    replace = Problem(LOSSES[name](), L2Ball(1.5), 2, label_bound=1.0)
    zero_out = Problem(LOSSES[name](), L2Ball(1.5), 2, label_bound=1.0, neighbours="zero-out")
    assert zero_out.gradient_diameter == zero_out.lipschitz == replace.lipschitz
    assert replace.gradient_diameter <= 2.0 * zero_out.gradient_diameter * (1.0 + 1e-7)
    assert zero_out.gradient_diameter <= replace.gradient_diameter * (1.0 + 1e-7)


@pytest.mark.privacy
def test_the_intercept_enters_every_constant():
    """With an intercept c every formula has `sqrt(R² + c²)` in place of R."""
    with_intercept = Problem(Logistic(), L2Ball(1.0), 2, feature_bound=3.0, intercept=4.0)
    longer = Problem(Logistic(), L2Ball(1.0), 3, feature_bound=5.0)
    assert with_intercept.norm_bound == pytest.approx(5.0, rel=1e-15)
    assert with_intercept.norm_bound >= 5.0
    for constant in ("lipschitz", "smoothness", "gradient_diameter"):
        assert getattr(with_intercept, constant) == pytest.approx(getattr(longer, constant), rel=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients_agree(name):
    """The gradient is that of the value, ridge included, by finite differences."""
    loss, rng = LOSSES[name](), np.random.default_rng(2)
    problem = Problem(loss, L2Ball(2.0), 3, label_bound=1.0, ridge=0.3)
    V, y = problem.clip(rng.normal(size=(5, 3)), labels_of(loss, 1.0, rng, 5))
    x = 0.3 * rng.normal(size=3)
    steps = 1e-6 * np.eye(3)
    slopes = np.array([(problem.values(x + h, V, y) - problem.values(x - h, V, y)) / 2e-6 for h in steps]).T
    for v, b, slope in zip(V, y, slopes, strict=True):
        assert problem.gradient(x, v, float(b)) == pytest.approx(slope, abs=1e-7)


def test_a_loss_of_ones_own():
    """A user's ScalarLoss gets a prox, constants and a problem without further ado."""
    problem = Problem(LogCosh(), Box(-1.0, 1.0), 4, feature_bound=2.0, label_bound=1.0, ridge=0.5)
    assert problem.lipschitz == pytest.approx(2.0)
    assert problem.gradient_diameter == pytest.approx(4.0)
    assert problem.smoothness == pytest.approx(4.5)
    u = problem.loss.prox(3.0, 0.5, 0.7)
    assert u + 0.7 * math.tanh(u - 0.5) == pytest.approx(3.0, rel=1e-15)


def test_a_set_of_ones_own():
    """A user's set enters by its five members, and may reject a dimension."""
    problem = Problem(Hinge(), Diagonal(2.0), 3)
    assert problem.radius == 2.0
    assert problem.first_point.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(InvalidInput, match="at most 1000"):
        Problem(Hinge(), Diagonal(2.0), 1001)


def test_a_vector_loss_of_ones_own():
    """A loss that is not a function of `v·x` serves values, gradients and constants by itself."""
    problem = Problem(Distance(), L2Ball(2.0), 2, label_bound=3.0, ridge=0.5)
    V, y = problem.clip([[0.6, 0.0], [0.0, 9.0]], [1.0, -9.0])
    x = np.array([1.0, 1.0])
    assert problem.values(x, V, y) == pytest.approx([0.5 * (0.16 + 1.0) + 0.5, 0.5 * (1.0 + 16.0) + 0.5])
    assert problem.gradient(x, V[0], 1.0) == pytest.approx([0.9, 1.5])
    assert problem.lipschitz == pytest.approx(5.0)
    assert problem.smoothness == pytest.approx(1.5)
    assert problem.gradient_diameter == pytest.approx(6.0)


def test_a_problem_is_a_value():
    """Problems are equal when their settings are, and frozen."""
    assert squared(2, ridge=0.5) == squared(2, ridge=0.5) != squared(2, ridge=0.6)
    with pytest.raises(AttributeError):
        squared(2).ridge = 1.0
    assert Problem(Hinge(), Simplex(), 2).label_bound == 1.0


@pytest.mark.parametrize("settings", [{"loss": Logistic}, {"loss": "logistic"}, {"domain": L2Ball}, {"domain": 1.0}])
def test_classes_and_words_for_losses_and_sets_are_rejected_with_an_example(settings):
    """The class instead of an instance is the commonest slip."""
    with pytest.raises(InvalidInput, match="Give it as in"):
        Problem(**({"loss": Logistic(), "domain": L2Ball(1.0), "dimension": 2} | settings))
