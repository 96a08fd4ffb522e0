"""The exception classes, and the two functions that validate settings."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from taciturn import errors
from taciturn.errors import (
    BudgetExhausted,
    ContractBroken,
    InvalidInput,
    StateConflict,
    StoreUnavailable,
    TaciturnError,
    Unprovable,
    integer,
    one_of,
    positive,
)
from taciturn.kernel import errors as home

FAMILIES = [InvalidInput, Unprovable, BudgetExhausted, StateConflict, StoreUnavailable, ContractBroken]


def test_one_tree():
    """Every error of the package is a TaciturnError, and one `except` catches them all."""
    defined = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    assert set(defined) == {TaciturnError, *FAMILIES}
    assert all(issubclass(kind, TaciturnError) for kind in defined)


def test_families_are_distinct():
    """No family contains another; only invalid input is a ValueError, and only a broken contract a failed assertion."""
    for kind in FAMILIES:
        assert [other for other in FAMILIES if issubclass(kind, other)] == [kind]
        assert issubclass(kind, ValueError) == (kind is InvalidInput)
        assert issubclass(kind, AssertionError) == (kind is ContractBroken)


def test_the_drawing_names_every_error():
    """The tree drawn at the top of the file is the tree."""
    for kind in (TaciturnError, *FAMILIES):
        assert kind.__name__ in home.__doc__


@pytest.mark.parametrize(
    "value", [1, 0.5, 5e-324, 1e308, np.float32(0.25), np.int64(3), Fraction(1, 3), Decimal("0.1")]
)
def test_positive_numbers_pass(value):
    """Any kind of positive number is returned as a float."""
    assert type(positive("size", value)) is float
    assert positive("size", value) == float(value)


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, None, "wide", [1.0, 2.0], 1j])
def test_others_are_rejected_by_name(value):
    """The message has the name, the value and the remedy."""
    with pytest.raises(InvalidInput, match=r"^size must be positive and finite, got .* State it\.$"):
        positive("size", value, "State it.")


def test_a_text_is_said_to_be_no_number():
    """Also one of digits, whose quotes are overlooked."""
    with pytest.raises(InvalidInput, match=r"^size must be positive and finite, got '1', a text and not a number\.$"):
        positive("size", "1")


def test_no_remedy_leaves_no_blank():
    """Without a remedy the message ends with its sentence."""
    with pytest.raises(InvalidInput, match=r"got 0\.$"):
        positive("size", 0)


def test_integers_past_every_float_are_rejected():
    """An integer too large for a float is not finite here."""
    with pytest.raises(InvalidInput):
        positive("size", 10**400)


def test_words_are_not_numbers():
    """A word that looks like a number is rejected: the setting would stay a word."""
    with pytest.raises(InvalidInput):
        positive("size", "1.5")


def test_one_of():
    """A listed word is returned; another is rejected, with the list."""
    assert one_of("mode", "fast", ("slow", "fast")) == "fast"
    with pytest.raises(InvalidInput, match=r"mode must be one of slow, fast; got 'quick'\."):
        one_of("mode", "quick", ("slow", "fast"))
    with pytest.raises(InvalidInput, match="got None"):
        one_of("mode", None, ("slow", "fast"))


@pytest.mark.parametrize("value", [1, 7.0, np.int32(3), np.float64(12.0), 10**30, True])
def test_integers_pass(value):
    """Any kind of integer is returned as an int."""
    assert type(integer("count", value)) is int
    assert integer("count", value) == value


@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, math.inf, None, "3", "three", [2], 1j])
def test_other_numbers_are_no_integers(value):
    """The message has the name, the least value allowed and what came."""
    with pytest.raises(InvalidInput, match="count must be an integer, 1 or more, got"):
        integer("count", value)


def test_the_least_integer_can_be_chosen():
    """Zero passes where zero makes sense."""
    assert integer("count", 0, least=0) == 0
    with pytest.raises(InvalidInput, match="2 or more, got 1"):
        integer("count", 1, least=2)


def test_what_came_is_shown_if_it_is_a_scalar():
    """Else its type, and its shape or length, as it may be a row or a column."""
    shown = {
        "-1.5": -1.5,
        "0.5": np.float32(0.5),
        "True": np.True_,
        "None": None,
        "'gigga'": np.str_("gigga"),
        "text of 41 characters": "x" * 41,
        "a number of hundreds of digits": 10**400,
        "Fraction(1, 3)": Fraction(1, 3),
        "the class dict": dict,
        "list of length 2": [4711.5, 12.0],
        "dict of length 1": {"income": 4711.5},
        "ndarray of shape (3, 2)": np.full((3, 2), 4711.5),
        "ndarray of shape ()": np.array(4711.5),
        "bytes of length 6": b"Meier ",
        "generator": (x for x in [4711.5]),
        "object": object(),
    }
    for words, value in shown.items():
        assert errors.value_or_type(value) == words


def test_one_of_many_is_not_shown():
    """A column that was given for a tuple of numbers fails at its first value, which is not quoted."""
    with pytest.raises(InvalidInput, match=r"^a round must be an integer, 1 or more, and one of them is not\.$"):
        integer("a round", 4711.5, of_many=True)
    with pytest.raises(
        InvalidInput, match=r"^a scale must be positive and finite, and one of them is not\. State it\.$"
    ):
        positive("a scale", "Meier", "State it.", of_many=True)
