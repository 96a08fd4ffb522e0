"""Slopes of the hinge loss of several classes by number: those of the class, ties and all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import FTRL, L2Ball, MultiHinge, OneHot, Problem, Softmax
from taciturn.kernel.learners import ftrl_loops as leader
from taciturn.kernel.problem import multiclass_loops as scores
from taciturn.kernel.problem.codes import MULTI_HINGE, loss_code, slope_code

SCORES = st.integers(2, 6).flatmap(
    lambda K: arrays(np.float64, K, elements=st.one_of(st.integers(-2, 2).map(float), st.floats(-1e150, 1e150)))
)
CODE = slope_code(MultiHinge(3))


@given(SCORES, st.data())
def test_slopes_are_those_of_the_class(u, data):
    """Bit for bit: of tied classes, of margins just met, and far out."""
    y = float(data.draw(st.integers(0, len(u) - 1)))
    loss, label, result = MultiHinge(len(u)), np.array([y]), u.copy()
    leader._slopes(CODE, np.inf, y, result)
    np.testing.assert_array_equal(result, loss.slopes(u[None], label)[0])
    rival = scores.rival(u, y)
    assert rival != y
    assert u[rival] == max(np.delete(u, int(y)))


class Own(MultiHinge):
    """Another's."""


def test_only_code_that_takes_slopes_has_a_number_for_it():
    """And a subclass has none anywhere: it may be another loss."""
    assert slope_code(MultiHinge(4)) == (MULTI_HINGE, 0.0, 0.0)
    assert loss_code(MultiHinge(4)) is None
    assert slope_code(Own(3)) is None


@pytest.mark.parametrize("classes", [2, 3, 11])
def test_one_point_and_many_examples(classes):
    """The sum of gradients, dense and compressed, compared with the definition's; sums on a lattice are exact."""
    rng = np.random.default_rng(classes)
    problem = Problem(MultiHinge(classes), L2Ball(1.0), 4, intercept=0.3)
    learner, point = FTRL(problem), problem.domain.project(rng.normal(size=problem.size))
    V, y = problem.clip(rng.normal(size=(50, 4)), rng.integers(classes, size=50))
    defined = learner.absorb(learner.start(), 0, V, y, point)["sum"]
    lattice = leader_of(learner)
    none = np.zeros(0, dtype=np.int64)
    starts, columns = np.arange(0, V.size + 1, V.shape[1]), np.tile(np.arange(V.shape[1]), len(V))
    forms = (V, none, none, np.zeros(0)), (np.zeros((0, V.shape[1])), starts, columns, V.ravel())
    for rows in forms:
        total = np.zeros(problem.size)
        leader.gradients(lattice, point, total, rows, y)
        np.testing.assert_array_equal(total, defined)


@pytest.mark.privacy
@pytest.mark.parametrize("loss", [Softmax(4), OneHot(4), MultiHinge(4)], ids=repr)
def test_slopes_are_clipped_to_what_is_certified(loss):
    """Told a quarter of the bound, the loop adds no longer gradients; told all of it, nothing is clipped."""
    problem = Problem(loss, L2Ball(3.0), 5)
    learner, none = FTRL(problem), np.zeros(0, dtype=np.int64)
    kind, domain, steepest, most, lattice, curvature = leader_of(learner)
    rng = np.random.default_rng(6)
    V, y = problem.clip(rng.normal(size=(20, 5)), rng.integers(0, 4, size=20))
    point = problem.domain.project(rng.normal(size=problem.size))
    starts, columns = np.arange(0, V.size + 1, 5), np.tile(np.arange(5), len(V))
    for form in ((V, none, none, np.zeros(0)), (np.zeros((0, 5)), starts, columns, V.ravel())):
        for i in range(len(y)):
            dense, compressed = (V[i : i + 1], *form[1:]), (form[0], np.array([0, 5]), columns[:5], V[i].copy())
            one = compressed if len(form[1]) else dense
            lengths = []
            for share in (1.0, 0.25):
                total = np.zeros(problem.size)
                told = kind, domain, share * steepest, most, lattice, curvature
                leader.gradients(told, point, total, one, y[i : i + 1])
                lengths.append(float(np.linalg.norm(total)))
            rounding = np.sqrt(problem.size) * lattice
            assert lengths[1] <= 0.25 * steepest * np.linalg.norm(V[i]) + rounding
            assert lengths[1] == pytest.approx(min(lengths[0], 0.25 * steepest * np.linalg.norm(V[i])), abs=rounding)


def leader_of(learner):
    """The numbers that a pass hands to its loop."""
    from taciturn import BLT, Privacy, Private, every

    return Private(learner, BLT(), every(5), Privacy(1.0, 1e-6), 10)._pass.leader


@pytest.mark.parametrize("d", [2, 3, 8, 16, 33])
@pytest.mark.parametrize("classes", [3, 5])
def test_classes_that_tie_are_told_apart_alike(classes, d):
    """Rows of a point that are alike, or alike but for the order of their entries: rounding does not decide."""
    rng = np.random.default_rng([classes, d])
    problem = Problem(MultiHinge(classes), L2Ball(9.0), d)
    learner, none = FTRL(problem), np.zeros(0, dtype=np.int64)
    numbers = leader_of(learner)
    for turn in range(60):
        row = rng.normal(size=d)
        rows = [row if turn % 2 else rng.permutation(row) for _ in range(classes)]
        point = problem.domain.project(np.concatenate(rows))
        X = rng.normal(size=(classes, d)) if turn % 2 else np.outer(rng.uniform(size=classes), np.ones(d))
        V, y = problem.clip(X, np.arange(classes))
        defined = learner.absorb(learner.start(), 0, V, y, point)["sum"]
        starts, columns = np.arange(0, V.size + 1, d), np.tile(np.arange(d), len(V))
        for form in ((V, none, none, np.zeros(0)), (np.zeros((0, d)), starts, columns, V.ravel())):
            total = np.zeros(problem.size)
            leader.gradients(numbers, point, total, form, y)
            np.testing.assert_array_equal(total, defined)
        slopes = problem.loss.slopes(problem.loss.scores(point, V), y)
        assert (np.argmax(slopes, axis=1) == np.where(y == 0, 1, 0)).all()  # of those that tie the first


def test_a_margin_that_is_met_but_for_rounding_is_met():
    u = np.array([[0.1 + 0.2 + 1.0, 0.3 - 1e-14, 0.3], [0.1 + 0.2 + 1.0, 0.3 + 1e-9, 0.3]])
    label = np.zeros(2)
    np.testing.assert_array_equal(MultiHinge(3).slopes(u, label), [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]])
    for row, slopes in zip(u, MultiHinge(3).slopes(u, label), strict=True):
        result = row.copy()
        leader._slopes(CODE, np.inf, 0.0, result)
        np.testing.assert_array_equal(result, slopes)


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_the_certificate_holds_at_ties(neighbours):
    """Whichever class is taken, two gradients at one point are no further apart than certified."""
    rng = np.random.default_rng(3)
    problem = Problem(MultiHinge(4), L2Ball(9.0), 8, neighbours=neighbours)
    learner = FTRL(problem)
    bound, numbers, none = float(learner.certificate.at(1)), leader_of(learner), np.zeros(0, dtype=np.int64)
    for _ in range(50):
        point = problem.domain.project(np.tile(rng.normal(size=8), 4))
        V, y = problem.clip(rng.normal(size=(8, 8)), rng.integers(4, size=8))
        rows = []
        for i in range(8):
            rows.append(learner.absorb(learner.start(), 0, V[i : i + 1], y[i : i + 1], point)["sum"])
            rows.append(np.zeros(problem.size))
            leader.gradients(numbers, point, rows[-1], (V[i : i + 1], none, none, np.zeros(0)), y[i : i + 1])
        others = rows if neighbours == "replace" else [np.zeros(problem.size)]
        assert max(np.linalg.norm(a - b) for a in rows for b in others) <= bound
