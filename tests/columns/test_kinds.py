"""What values become: within [-1, 1], by that value alone, and no row longer than the root of the number of groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput
from taciturn.columns.declaration import column_of
from taciturn.columns.kinds import Bins, Categories, Date, Hashed, Ignored, PrivateRange, Range, Text, check_values
from taciturn.columns.scales import Scale
from taciturn.columns.target import Classes
from taciturn.columns.values import PlainValues
from taciturn.contract.explain import column_in_words

KINDS = [
    Range("x", -3.0, 7.0),
    Range("x", -3.0, 7.0, missing="bad"),
    Range("x", -3.0, 7.0, missing="zero"),
    Range("x", -3.0, 7.0, missing=7.0, indicator=True),
    Range("x", 1e-3, 7.0, scale=Scale("log")),
    Range("x", -3.0, 7.0, missing=2.5, scale=Scale("symlog", 0.1)),
    Bins("x", (-1.0, 1.0, 2.5, 4.0)),
    Bins("x", (-1.0, 1.0, 2.5, 4.0), missing="category"),
    Bins("x", (-1.0, 1.0, 2.5, 4.0), missing="bad"),
    Date("x", "2020-01-01", "2021-01-01"),
    Date("x", "2020-01-01", "2021-01-01", ("weekday", "month", "hour"), indicator=True),
    Date("x", "2020-01-01", "2021-01-01", ("hour",), missing="bad"),
    Categories("x", ("a", "b")),
    Categories("x", (1, 2.5), missing="category"),
    Hashed("x", 3),
    Hashed("x", 3, missing="category"),
    Hashed("x", 3, missing="bad"),
    Text("x", 3),
    Text("x", 3, missing="category", signed=False),
    Text("x", 3, missing="bad"),
]
VALUES = st.one_of(
    st.none(),
    st.text(max_size=4),
    st.text("ab \u00c4", max_size=9),
    st.floats(),
    st.floats().map(repr),
    st.sampled_from(["a", "1", "1.0", "2.5", "2020-05-01"]),
)


def encode(column, values):
    out = np.zeros((len(values), column.width))
    return out, column.encode(PlainValues(values), out)


@pytest.mark.parametrize("column", KINDS, ids=repr)
@given(values=st.lists(VALUES, min_size=1), place=st.integers(0), other=VALUES)
def test_a_value_changes_its_own_row_alone(column, values, place, other):
    place %= len(values)
    changed = [*values[:place], other, *values[place + 1 :]]
    rest = np.arange(len(values)) != place
    (out, bad), (changed_out, changed_bad) = encode(column, values), encode(column, changed)
    assert np.array_equal(out[rest], changed_out[rest])
    assert np.array_equal(bad[rest], changed_bad[rest])


@pytest.mark.parametrize("column", KINDS, ids=repr)
@given(values=st.lists(VALUES, min_size=1))
def test_a_group_adds_at_most_one_to_the_square_of_a_row(column, values):
    out, bad = encode(column, values)
    assert out.shape == (len(values), column.width) == (len(values), len(column.names))
    ends = np.cumsum([width for _, width in column.groups])
    assert ends[-1] == column.width
    for group in np.split(out, ends[:-1], axis=1):
        assert ((group**2).sum(axis=1) <= 1.0 + 1e-12).all()
    assert [column.error(value) is not None for value in values] == bad.tolist()


@pytest.mark.parametrize("column", [*KINDS, PrivateRange("x"), PrivateRange("x", indicator=True)], ids=repr)
@given(value=st.one_of(VALUES, st.integers(), st.booleans(), st.datetimes()))
def test_one_value_has_the_bits_of_a_block(column, value):
    """The fast path for one value is `encode`, to the last bit."""
    out, bad = encode(column, [value, value, "1", value, value])
    pairs = column.pairs(value)
    assert (pairs is None) == bad[0]
    row = np.zeros(column.width)
    for place, number in pairs or ():
        row[place] = number
    assert bad[0] or row.tobytes() == (out[0] + 0.0).tobytes() == (out[4] + 0.0).tobytes()


@pytest.mark.parametrize("column", [column for column in KINDS if isinstance(column, Hashed | Text)], ids=repr)
@given(values=st.lists(VALUES))
def test_entries_are_the_features_without_zeros(column, values):
    out, bad = encode(column, values)
    entries = column.entries(PlainValues(values))
    assert (entries.numbers != 0.0).all()
    again = np.zeros_like(out)
    again[entries.rows, entries.places] = entries.numbers
    assert np.array_equal(again, out)
    assert np.array_equal(entries.bad, bad)


def test_words_are_counted_in_lower_case_and_scaled_to_norm_one():
    column = Text("note", 1024)
    (one, two), _ = encode(column, ["A dog, a DOG; a cat_1!", "cat_1 dog a dog a a"])
    assert one.tobytes() == two.tobytes()
    counts = {"a": 3, "dog": 2, "cat_1": 1}
    for word, count in counts.items():
        place, sign = column.place(word)
        assert one[place] == sign * count / np.sqrt(14.0)
    assert np.count_nonzero(one) == 3
    assert not encode(column, ["?!", "..."])[0].any()
    assert (encode(Text("note", 4, signed=False), ["a b c d e f"])[0] >= 0.0).all()
    assert column.place("dog") != Text("title", 1024).place("dog")


def test_ranges_are_scaled_and_cut():
    out, bad = encode(Range("x", 10.0, 20.0, "bad"), ["10", "12.5", "20", "-1e300", "1e300", "?", None])
    assert out.ravel().tolist() == [-1.0, -0.5, 1.0, -1.0, 1.0, 0.0, 0.0]
    assert bad.tolist() == [False] * 5 + [True] * 2


@pytest.mark.parametrize(
    ("declared", "features"),
    [
        ({"range": [10, 20]}, [0.0]),
        ({"range": [10, 20], "missing": "middle", "indicator": True}, [0.0, 1.0]),
        ({"range": [10, 20], "missing": 20, "indicator": True}, [1.0, 1.0]),
        ({"range": [0, 20], "missing": "zero"}, [-1.0]),
        ({"range": "private", "indicator": True}, [np.nan, 1.0]),
        ({"bins": [10, 12, 20]}, [0.0, 0.0]),
        ({"date": ["2020-01-01", "2021-01-01"], "cycle": ["hour"], "indicator": True}, [0.0, 0.0, 0.0, 1.0]),
        ({"bins": [10, 11, 20], "missing": "category"}, [0.0, 0.0, 1.0]),
        ({"categories": ["a"], "missing": "category"}, [0.0, 1.0]),
        ({"categories": ["a"], "missing": "zero"}, [0.0]),
        ({"hash": 2, "missing": "category"}, [0.0, 0.0, 1.0]),
        ({"text": {"hash": 2}, "missing": "category"}, [0.0, 0.0, 1.0]),
    ],
)
def test_a_missing_value_is_what_was_declared(declared, features):
    column = column_of("x", declared)
    for value in ("", " ", None, float("nan")):
        out, bad = encode(column, [value, value])
        assert np.array_equal(out, [features, features], equal_nan=True)
        assert not bad.any()
        assert column.error(value) is None
    if column.names[-1] == "x (missing)":
        assert encode(column, ["12"])[0][0, -1] == 0.0


@pytest.mark.parametrize(
    "declared", [{"range": [10, 20]}, {"bins": [1, 2, 3]}, {"categories": ["a"]}, {"hash": 2}, {"text": {"hash": 2}}]
)
def test_a_missing_value_is_bad_where_that_is_declared(declared):
    column = column_of("x", {**declared, "missing": "bad"})
    assert encode(column, ["12", ""])[1].tolist() == [False, True]
    assert (column.error("12"), column.error("")) == (None, "x is missing")


def test_a_text_in_a_range_is_bad_and_not_missing():
    column = Range("x", 0.0, 1.0, indicator=True)
    out, bad = encode(column, ["nan", "NA", "", "1"])
    assert bad.tolist() == [True, True, False, False]
    assert out[:, 1].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert "is not a number" in column.error("NA")


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"range": [0, 1], "missing": "bad"}, "a number from 0 to 1; missing: a bad row"),
        ({"range": [0, 1], "missing": 0.5}, "a number from 0 to 1; missing: 0.5"),
        ({"range": [0, 1], "indicator": True}, "a number from 0 to 1; missing: the middle, and an indicator"),
        (
            {"range": "private", "indicator": True},
            "a number, whose range is found privately; missing: the center, and an indicator",
        ),
        ({"range": [1, 100], "scale": "log"}, "a number from 1 to 100, on a logarithmic scale"),
        (
            {"range": [-9, 9], "scale": "symlog", "threshold": 0.1, "missing": 3},
            "a number from -9 to 9, on a logarithmic scale, linear up to 0.1; missing: 3",
        ),
        (
            {"date": ["2020-01-01", "2021-01-01T12:00:00Z"], "cycle": ["month", "hour"], "missing": "bad"},
            "a date from 2020-01-01 to 2021-01-01T12:00:00Z, and its month, hour; missing: a bad row",
        ),
        ({"bins": [0, 1, 5], "missing": "bad"}, "a number, in one of 2 bins from 0 to 5; missing: a bad row"),
        ({"categories": [1, 2], "missing": "category"}, "one of 1, 2; missing: a category of its own"),
        ({"hash": 4}, "anything, hashed into 4"),
        ({"text": {"hash": 4096}, "missing": "bad"}, "a text, its words hashed into 4,096; missing: a bad row"),
    ],
)
def test_declarations_are_kept_and_put_in_words(declared, words):
    column = column_of("x", declared)
    assert column_of("x", column.declared()) == column
    assert column.declared() == declared
    assert column_in_words(column) == words


def test_defaults_are_not_declared_so_that_contracts_keep_their_digest():
    assert column_of("x", {"range": [0, 1], "missing": "middle", "indicator": False}).declared() == {
        "range": [0.0, 1.0]
    }
    assert column_of("x", {"hash": 4, "missing": "zero"}).declared() == {"hash": 4}
    assert PrivateRange("x").declared() == {"range": "private"}


SCALES = st.sampled_from([Scale(), Scale("log"), Scale("symlog"), Scale("symlog", 1e-3)])
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(SCALES, st.floats(-1e60, 1e60), st.floats(-1e60, 1e60), FINITE)
def test_no_range_leads_outside(scale, low, high, value):
    try:
        column = Range("x", low, high, scale=scale)
    except InvalidInput:
        return
    out, _ = encode(column, [repr(value), repr(low), repr(high)])
    assert -1.0 <= out[0, 0] <= 1.0
    assert out[1:, 0].tolist() == [-1.0, 1.0]


@given(SCALES, st.lists(st.floats(0.01, 1e6), min_size=2, max_size=5))
def test_scales_keep_the_order_of_numbers_and_come_back(scale, values):
    x = np.sort(values)
    assert (np.diff(scale.forward(x)) >= 0.0).all()
    assert np.allclose(scale.backward(scale.forward(x)), x, rtol=1e-9)
    if scale.name == "symlog":
        assert np.array_equal(scale.forward(-x), -scale.forward(x))


def test_the_middle_of_a_logarithm_is_the_geometric_mean():
    column = column_of("x", {"range": [1, 10_000], "scale": "log"})
    assert encode(column, ["100", "", "10", "0", "-7"])[0].ravel() == pytest.approx([0.0, 0.0, -0.5, -1.0, -1.0])
    column = column_of("x", {"range": [-99, 99], "scale": "symlog", "missing": 9})
    assert encode(column, ["0", "9", "", "-99"])[0].ravel() == pytest.approx([0.0, 0.5, 0.5, -1.0])


def test_bins_take_their_lower_edge_and_the_end_bins_what_lies_outside():
    out, bad = encode(Bins("x", (0.0, 1.0, 2.0)), ["-5", "0", "0.999", "1", "2", "9", "", "few"])
    assert out.argmax(axis=1)[:6].tolist() == [0, 0, 0, 1, 1, 1]
    assert not out[6:].any()
    assert bad.tolist() == [False] * 7 + [True]


def test_numbers_are_matched_as_numbers_and_texts_also_as_they_are_spelt():
    assert encode(Categories("x", (1, 7)), ["1.0", "07", "7e0", "1a"])[0].tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]
    assert encode(Categories("x", ("1", "7")), ["1.0", " 7 "])[0].tolist() == [[1, 0], [0, 1]]


def test_hashes_are_the_same_for_ever():
    """A model that was learnt last year still knows where its features are."""
    assert [Hashed("ip", 256).place(text) for text in ("10.0.0.1", "", "Ø")] == [(241, 1.0), (223, -1.0), (29, -1.0)]
    assert Hashed("ip", 2).place("10.0.0.1") != Hashed("pi", 2).place("10.0.0.1")


def test_hashes_spread_over_all_places_and_both_signs():
    placed = [Hashed("ip", 8).place(str(i)) for i in range(1_000)]
    assert {place for place, _ in placed} == set(range(8))
    assert abs(sum(sign for _, sign in placed)) < 160  # five sigma, of hashes that never change


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"range": [1, 1]}, "columns.x.range must be two finite numbers"),
        ({"range": [2, 1]}, "the lower first"),
        ({"range": [0, float("inf")]}, "finite"),
        ({"range": [0]}, "columns.x.range must be two numbers"),
        ({"range": ["0", "1"]}, "must be two numbers"),
        ({"range": [True, 2]}, "must be two numbers"),
        ({"categories": []}, "must list numbers or texts"),
        ({"categories": [1, "a"]}, "must list numbers or texts"),
        ({"categories": [True]}, "must list numbers or texts"),
        ({"categories": "ab"}, "must be a list"),
        ({"categories": ["a", "a "]}, "twice"),
        ({"categories": [1, 1.0]}, "twice"),
        ({"categories": ["a", " "]}, "empty"),
        ({"hash": 0}, "columns.x.hash must be an integer"),
        ({"hash": 2.5}, "an integer"),
        ({"hash": 2**21}, "at most 1,048,576"),
        ({"range": [0, 10**400]}, "must be two numbers"),
        ({"categories": [10**400]}, "must list numbers or texts"),
        ({"hash": "many"}, "must be a number"),
        ({"text": 1024}, r"columns.x.text must be a table, as in text = \{ hash = 1024 \}"),
        ({"text": {}}, "columns.x.text.hash is missing. State the number of features"),
        ({"text": {"hash": 2.5}}, "columns.x.text.hash must be an integer"),
        ({"text": {"hash": 2**21}}, "columns.x.text.hash must be at most 1,048,576"),
        ({"text": {"hash": 8, "words": 2}}, "columns.x.text.words is unknown"),
        ({"text": {"hash": 8}, "indicator": True}, 'Use missing = "category"'),
        ({"ignore": False}, "exactly one of"),
        ({}, "exactly one of"),
        ({"range": [0, 1], "hash": 4}, "exactly one of"),
        ({"rnage": [0, 1]}, "Did you mean range"),
        ({"range": [0, 1], "unit": "m"}, "columns.x.unit is unknown"),
        ("number", "columns.x must be a table, got str"),
        ({"range": [0, 1], "missing": 2}, 'columns.x.missing must be a number from 0 to 1, "middle"'),
        ({"range": [1, 2], "missing": "zero"}, "if it is in the range"),
        ({"range": [0, 1], "missing": "category"}, "columns.x.missing must be a number"),
        ({"range": [0, 1], "missing": True}, "columns.x.missing must be a number"),
        ({"range": [0, 1], "missing": float("nan")}, "columns.x.missing must be a number"),
        ({"range": [0, 1], "missing": [1]}, "columns.x.missing must be a number"),
        ({"range": [0, 1], "missing": "bad", "indicator": True}, "always be 0. Remove one"),
        ({"range": [0, 1], "indicator": 1}, "columns.x.indicator must be true or false"),
        ({"range": "private", "missing": 3}, "columns.x.missing cannot be stated for a private range"),
        ({"categories": [1], "missing": "middle"}, 'columns.x.missing must be "zero", "category"'),
        ({"categories": [1], "missing": 1}, 'columns.x.missing must be "zero", "category"'),
        ({"categories": [1], "missing": [1]}, 'columns.x.missing must be "zero", "category"'),
        ({"hash": 2, "indicator": True}, 'Use missing = "category"'),
        ({"ignore": True, "missing": "bad"}, "columns.x.missing is unknown"),
        ({"range": [0, 1], "scale": "log"}, 'columns.x.range must be positive for scale = "log"'),
        ({"range": [1, 2], "scale": "sqrt"}, "columns.x.scale must be one of linear, log, symlog"),
        ({"range": [1e16, 1e16 + 2], "scale": "log"}, "too narrow"),
        ({"range": [1, 2], "scale": "log", "threshold": 2}, 'columns.x.threshold is for scale = "symlog"'),
        ({"range": [1, 2], "scale": "symlog", "threshold": 0}, "columns.x.threshold must be"),
        ({"range": "private", "scale": "log"}, "columns.x.scale needs a stated range"),
        ({"bins": [0, 1]}, "columns.x.bins must be three or more"),
        ({"date": ["2020-01-01"]}, "columns.x.date must be two dates"),
        ({"date": "2020-01-01"}, "columns.x.date must be a list"),
        ({"date": ["2021-01-01", "2020-01-01"]}, "the earlier first"),
        ({"date": [2015, 2030]}, "columns.x.date must be two dates"),
        ({"date": ["2015", "2030"]}, "columns.x.date must be two dates"),
        ({"date": ["2015-01-01", "2030-02-30"]}, "columns.x.date must be two dates"),
        ({"date": ["2015-01-01", "2030-01-01"], "cycle": "month"}, "columns.x.cycle must be a list"),
        ({"date": ["2015-01-01", "2030-01-01"], "cycle": ["moon"]}, "columns.x.cycle must list each of weekday, month"),
        ({"date": ["2015-01-01", "2030-01-01"], "cycle": ["hour", "hour"]}, "at most once"),
        ({"date": ["2015-01-01", "2030-01-01"], "missing": 3}, 'columns.x.missing must be "middle" or "bad"'),
        ({"date": ["2015-01-01", "2030-01-01"], "missing": "bad", "indicator": True}, "Remove one of the two"),
        ({"bins": [0, 2, 1]}, "each larger than the one before"),
        ({"bins": [0, 1, 1]}, "each larger"),
        ({"bins": [0, 1, float("inf")]}, "finite"),
        ({"bins": [0, 1, "2"]}, "columns.x.bins must be"),
        ({"bins": [False, True, 2]}, "columns.x.bins must be"),
        ({"bins": 7}, "columns.x.bins must be a list"),
        ({"bins": [0, 1, 2], "range": [0, 1]}, "exactly one of"),
        ({"bins": [0, 1, 2], "missing": 1}, 'columns.x.missing must be "zero"'),
    ],
)
def test_other_declarations_are_rejected_by_name(declared, words):
    with pytest.raises(InvalidInput, match=words):
        column_of("x", declared)


def test_values_keep_their_kind():
    assert check_values("k", ["a ", "b"]) == ("a", "b")
    assert check_values("k", [1, 2.5]) == (1, 2.5)


def test_an_ignored_column_has_nothing():
    assert (Ignored("note").width, Ignored("note").names, Ignored("note").error("x")) == (0, (), None)
    with pytest.raises(InvalidInput, match="ignored"):
        Ignored("note").encode(PlainValues(["x"]), np.zeros((1, 0)))


@pytest.mark.parametrize(
    ("declared", "value", "place"),
    [
        (("7", "12", "high"), "7.0", 0),
        (("7", "12", "high"), 12.0, 1),
        (("7", "7.0"), "7.0", 1),  # what is declared is compared as it is spelt first
        (("07", "x"), "7", None),  # a declared code is not a number in its shortest spelling
        (("true", "false"), "True", 0),
        (("false", "true"), "FALSE", 0),
        (("true", "false"), True, 0),
        (("true", "false"), "tRue", None),
        (("true", "false", "unknown"), "True", None),
        (("True", "False"), "True", 0),
        (("True", "False"), "true", None),
        (("Köln", "Bonn"), "Ko\u0308ln", 0),
        (("Ko\u0308ln", "Bonn"), "Köln", 0),
        ((7, 12), "7.0", 0),
    ],
)
def test_spellings_of_a_declared_value(declared, value, place):
    """The same for many values and for one, and for classes."""
    column = Categories("x", declared)
    out = np.zeros((2, len(declared)))
    column.encode(PlainValues([value, "other"]), out)
    assert out[0].tolist() == [float(i == place) for i in range(len(declared))]
    assert not out[1].any()
    assert column.pairs(value) == (() if place is None else ((place, 1.0),))
    assert (Classes("x", declared).error(value) is None) == (place is not None)


def test_two_spellings_of_one_character_are_one_value():
    with pytest.raises(InvalidInput, match="names a value twice"):
        check_values("k", ["Köln", "Ko\u0308ln"])
