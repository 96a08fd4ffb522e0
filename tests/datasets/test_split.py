"""Splits keep every row once; projections keep bounds."""

import numpy as np
import pytest

from taciturn.datasets import linear_regression
from taciturn.datasets.scaling import hats
from taciturn.datasets.split import projected, split


def test_a_split_has_every_row_once_and_depends_on_the_seed_alone():
    stream = linear_regression(105, dimension=3, seed=2)
    train, test = split(stream, seed=1, share=0.2)
    assert (len(train), len(test)) == (84, 21)
    assert sorted([*train.y, *test.y]) == sorted(stream.y)
    both = dict(zip(stream.y, map(tuple, stream.X), strict=True))
    assert all(both[y] == tuple(x) for x, y in zip(test.X, test.y, strict=True))
    assert split(stream, seed=1, share=0.2)[1].y.tolist() == test.y.tolist()
    assert split(stream, seed=2, share=0.2)[1].y.tolist() != test.y.tolist()
    assert sum(map(len, split(stream, seed=1, rows=50))) == 50


def test_a_projection_keeps_the_bound_and_is_the_same_map_for_all_rows():
    stream = linear_regression(200, dimension=8, seed=3)
    small, half = projected(stream, 3, seed=1), projected(split(stream, 1, 0.5)[0], 3, seed=1)
    norms = np.linalg.norm(small.X, axis=1)
    assert norms.max() <= stream.feature_bound
    assert (norms > 0.999).any()
    rows = {y: x for x, y in zip(small.X, small.y, strict=True)}
    assert all(np.allclose(rows[y], x) for x, y in zip(half.X, half.y, strict=True))
    assert not np.allclose(projected(stream, 3, seed=2).X, small.X)


def test_a_projection_on_all_directions_turns_rows():
    stream = linear_regression(50, dimension=4, seed=3)
    turned = projected(stream, 4, seed=1).X
    assert turned @ turned.T == pytest.approx(stream.X @ stream.X.T, abs=1e-9)


def test_hats_sum_to_one_and_are_linear_between_peaks():
    values = np.linspace(-5.0, 25.0, 61)
    shares = hats(values, 0.0, 20.0, 5)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares @ np.linspace(0.0, 20.0, 5) == pytest.approx(np.clip(values, 0.0, 20.0))
    assert (np.count_nonzero(shares, axis=1) <= 2).all()
