"""Labels depend on their value alone, and predictions are in the target's own words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput
from taciturn.contract.target import Classes, Number, Positive
from taciturn.contract.values import PlainValues

TARGETS = [Classes("y", ("no", "yes")), Classes("y", (1, 2, 7)), Positive("y", (2,)), Number("y", -1.0, 3.0)]
VALUES = st.sampled_from(["no", "yes", "1", "2.0", "7", "99", "", None, "x", "nan"])


@pytest.mark.parametrize("target", TARGETS, ids=repr)
@given(values=st.lists(VALUES, min_size=1), place=st.integers(0), other=VALUES)
def test_a_value_changes_its_own_label_alone(target, values, place, other):
    place %= len(values)
    changed = [*values[:place], other, *values[place + 1 :]]
    rest = np.arange(len(values)) != place
    for before, after in zip(target.encode(PlainValues(values)), target.encode(PlainValues(changed)), strict=True):
        assert np.array_equal(before[rest], after[rest])


@pytest.mark.parametrize("target", TARGETS, ids=repr)
@given(values=st.lists(VALUES, min_size=1))
def test_errors_are_about_bad_values_alone(target, values):
    labels, bad = target.encode(PlainValues(values))
    assert [target.error(value) is not None for value in values] == bad.tolist()
    assert np.isfinite(labels).all()


def test_two_classes_are_signs_and_more_are_numbers():
    assert TARGETS[0].encode(PlainValues(["no", "yes"]))[0].tolist() == [-1.0, 1.0]
    assert TARGETS[1].encode(PlainValues(["1", "2", "7.0"]))[0].tolist() == [0.0, 1.0, 2.0]


def test_the_rest_is_everything_that_is_there():
    labels, bad = Positive("y", (2, 5)).encode(PlainValues(["2", "5", "x", ""]))
    assert labels[:3].tolist() == [1.0, 1.0, -1.0]
    assert bad.tolist() == [False, False, False, True]
    assert Positive("y", (2, 5)).names == ("rest", "2 or 5")


@pytest.mark.parametrize(
    ("positive", "names"),
    [
        (("rest",), ("not rest", "rest")),
        (("rest", "b"), ("neither rest nor b", "rest or b")),
        (("rest", "not rest"), ("neither rest nor not rest", "rest or not rest")),
        (("not rest",), ("rest", "not rest")),
        ((0,), ("rest", 0)),
    ],
)
def test_the_other_values_have_a_name_that_is_no_positive_one(positive, names):
    target = Positive("y", positive)
    assert target.names == names
    assert target.decode(np.array([-0.1, 0.1])).tolist() == list(names)


@given(
    st.lists(st.sampled_from(["rest", "not rest", "or", "neither rest nor or", "rest or or"]), min_size=1, unique=True)
)
def test_no_two_names_are_the_same(positive):
    other, one = Positive("y", tuple(positive)).names
    assert other not in [*positive, one]


def test_numbers_are_centred_and_cut():
    labels, _ = TARGETS[3].encode(PlainValues(["-1", "1", "3", "99"]))
    assert labels.tolist() == [-2.0, 0.0, 2.0, 2.0]
    assert TARGETS[3].label_bound == 2.0
    assert TARGETS[3].decode(labels).tolist() == [-1.0, 1.0, 3.0, 3.0]


def test_classes_are_decoded_as_they_were_declared():
    assert TARGETS[0].decode(np.array([-0.1, 0.1])).tolist() == ["no", "yes"]
    assert TARGETS[1].decode(np.eye(3)).tolist() == [1, 2, 7]
    assert TARGETS[2].decode(np.array([-0.1, 0.1])).tolist() == ["rest", 2]


def test_an_empty_range_is_rejected():
    with pytest.raises(InvalidInput, match=r"target\.range"):
        Number("y", 1.0, 1.0)
