"""Labels depend on their value alone, and predictions are in the target's own words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput
from taciturn.columns.declaration import Section, target_of
from taciturn.columns.scales import Scale
from taciturn.columns.target import Classes, Number, Positive
from taciturn.columns.values import PlainValues
from taciturn.contract.contract import contract_of
from taciturn.contract.explain import target_in_words
from taciturn.contract.model_file import read_model, write_model
from taciturn.estimators.stream import Stream
from taciturn.readers.rows import open_rows

TARGETS = [Classes("y", ("no", "yes")), Classes("y", (1, 2, 7)), Positive("y", (2,)), Number("y", -1.0, 3.0)]
TARGETS += [Number("y", 0.5, 50.0, Scale("log")), Number("y", -9.0, 99.0, Scale("symlog", 0.1))]
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


@pytest.mark.parametrize("target", TARGETS[3:], ids=repr)
@given(value=st.floats(-200.0, 200.0), score=st.floats(-1e3, 1e3))
def test_labels_are_within_their_bound_and_predictions_in_the_units_of_the_range(target, value, score):
    labels, _ = target.encode(PlainValues([value, target.low, target.high]))
    assert (np.abs(labels) <= target.label_bound * (1.0 + 1e-15)).all()
    assert np.abs(labels[1:]) == pytest.approx(target.label_bound)  # half of the bound would not hold
    clipped = min(max(value, target.low), target.high)
    assert target.decode(labels) == pytest.approx([clipped, target.low, target.high], rel=1e-9, abs=1e-9)
    assert target.low <= target.decode(np.array([score]))[0] <= target.high


@pytest.mark.parametrize("more", [{}, {"scale": "log"}, {"scale": "symlog", "threshold": 5.0}])
def test_a_scale_is_declared_as_it_was_stated(more):
    declared = {"column": "y", "range": [1.0, 1e5], **more}
    assert target_of(Section("target", declared)).declared() == declared


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"range": [0, 1e5], "scale": "log"}, r'target\.range must be positive for scale = "log".*symlog'),
        ({"range": [1, 2], "scale": "exp"}, r"target\.scale must be one of linear, log, symlog"),
        ({"range": [1, 2], "scale": "log", "threshold": 1}, r"target\.threshold is for"),
        ({"range": "private", "scale": "log"}, r"target\.scale needs a stated range"),
    ],
)
def test_scales_that_do_not_fit_are_rejected(declared, words):
    with pytest.raises(InvalidInput, match=words):
        target_of(Section("target", {"column": "y", **declared}))


def test_a_model_of_a_logarithm_predicts_in_the_user_s_units(tmp_path):
    """Prices over four powers of ten, learnt with little noise: most are predicted within a factor of two."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 1.0, 4_000)
    price = 10.0 ** (1.0 + 4.0 * x)
    (tmp_path / "rows.csv").write_text("x,price\n" + "".join(f"{a},{b}\n" for a, b in zip(x, price, strict=True)))
    made = contract_of(
        {
            "privacy": {"epsilon": 50.0},
            "target": {"column": "price", "range": [1, 1e6], "scale": "log"},
            "learning": {"horizon": 4_000},
            "columns": {"x": {"range": [0, 1]}},
        }
    )
    stream = Stream(made.plan(seed=2))
    for batch in open_rows(made, tmp_path / "rows.csv"):
        stream.learn(batch.X, batch.y)
    write_model(tmp_path / "model.json", made, stream)
    model = read_model(tmp_path / "model.json")
    [batch] = open_rows(model.contract, tmp_path / "rows.csv", labelled=False)
    predicted = model.contract.decode_predictions(model.scores(batch.X))
    assert np.mean(np.abs(np.log(predicted / price)) < np.log(2.0)) > 0.9
    assert "on a logarithmic scale" in target_in_words(made)
