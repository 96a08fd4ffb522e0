"""The Adult data set: features within public bounds, and no file taken for it that is not it."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.datasets import adult
from taciturn.datasets.adult import CATEGORIES, COLUMNS, POSITIVES, RANGES, ROWS, URL, parse
from taciturn.errors import InvalidInput

LINE = "40, Private, 9, Masters, 14, Divorced, Sales, Wife, Black, Male, 500, 0, 50, Cuba, >50K"
PERSON = dict(zip(COLUMNS.split(), LINE.split(", "), strict=True))


def line(**changes) -> str:
    """`PERSON` with some fields changed; `_` in a keyword stands for `-`."""
    return ", ".join((PERSON | {name.replace("_", "-"): str(value) for name, value in changes.items()}).values())


@pytest.fixture(scope="module")
def file(data_file):
    """The real file, which `adult()` finds without being told."""
    return data_file("adult.data", "adult.data.gz")


@pytest.fixture(scope="module")
def stream(file):
    return adult()


def test_a_line_becomes_scaled_numbers_and_indicators():
    """Each number where its range puts it, each category in its column, all divided by sqrt(12)."""
    stream = parse([line()])
    row = dict(zip(stream.names, stream.X[0] * np.sqrt(12), strict=True))
    assert row.pop("age") == pytest.approx(2 * (40 - 17) / 73 - 1)
    assert row.pop("education-num") == pytest.approx(2 * 13 / 15 - 1)
    assert row.pop("hours-per-week") == pytest.approx(0.0)
    assert row.pop("capital-gain") == pytest.approx(np.log(501) / np.log(100_000))
    assert row.pop("capital-loss") == 0.0
    assert {name for name, x in row.items() if x} == {f"{name}={PERSON[name]}" for name in CATEGORIES}
    assert sum(row.values()) == pytest.approx(len(CATEGORIES))
    assert stream.y.tolist() == [1.0]


def test_the_categories_are_the_published_ones():
    """As many as `adult.names` lists, none twice."""
    sizes = [len(set(published.split())) for published in CATEGORIES.values()]
    assert sizes == [8, 7, 14, 6, 5, 2, 41]
    assert len(set(parse([]).names)) == sum(sizes) + len(RANGES) == parse([]).X.shape[1]


@pytest.mark.parametrize("value", ["?", "Astronaut", ""])
def test_a_missing_or_unknown_category_leaves_its_group_at_zero(value):
    """And touches no other group."""
    known, unknown = parse([line(), line(occupation=value)]).X
    group = np.array([name.startswith("occupation=") for name in parse([]).names])
    assert not unknown[group].any()
    np.testing.assert_array_equal(known[~group], unknown[~group])


@given(
    numbers=st.tuples(*[st.one_of(st.sampled_from(ends), st.integers(0, 10**400)) for ends in RANGES.values()]),
    categories=st.tuples(*[st.sampled_from([*published.split(), "?"]) for published in CATEGORIES.values()]),
)
def test_no_row_is_longer_than_the_bound(numbers, categories):
    """By construction: whatever the line says, in range or far out of it."""
    fields = dict(zip(RANGES, numbers, strict=True)) | dict(zip(CATEGORIES, categories, strict=True))
    stream = parse([line(**fields)])
    assert np.linalg.norm(stream.X, axis=1).max() <= stream.feature_bound
    assert np.abs(stream.y).max() <= stream.label_bound


def test_the_bound_is_attained():
    """The ends of all ranges: a smaller bound would be wrong."""
    extreme = line(age=90, education_num=16, hours_per_week=99, capital_gain=99_999, capital_loss=99_999)
    assert np.linalg.norm(parse([extreme]).X) == pytest.approx(parse([]).feature_bound)


def test_a_row_does_not_depend_on_the_others():
    """Nothing is learnt from the data: adding or removing people changes no features of others."""
    others = [line(age=17, race="White"), line(capital_gain=99_999, income="<=50K")]
    np.testing.assert_array_equal(parse([line(), *others]).X[0], parse([line()]).X[0])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (line() + ", 1", "line 3 has 16 fields separated by commas, not 15."),
        ("|1x3 Cross validator", "line 3 has 1 fields separated by commas, not 15."),
        (line(income=">50K."), "line 3 does not end in one of >50K, <=50K."),
        (line(age="?"), "line 3 has no integer for age."),
        (line(hours_per_week="nan"), "line 3 has no integer for hours-per-week."),
        (line(capital_gain="-1"), "line 3 has no integer for capital-gain."),
    ],
)
def test_a_line_that_is_none_is_named_and_not_repeated(bad, why):
    """Empty lines count, and are skipped."""
    with pytest.raises(InvalidInput, match=f"^{re.escape(why)}$"):
        parse([line(), "", bad])


@pytest.mark.parametrize("text", ["", line(), "<html>Not found</html>", None])
def test_another_file_is_rejected_with_a_remedy(text, tmp_path):
    """Empty, too short, no data at all, not there: the error names the file and where to get it."""
    path = tmp_path / "adult.data"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=rf"adult\.data is not UCI's adult\.data: .* Put a fresh copy of {URL} in"):
        adult(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_of_the_right_counts_is_read_gzipped_or_not(pack, tmp_path):
    """By `str` or by path; one row fewer, or one label turned, is not it."""
    path = tmp_path / "mine"
    rows = [line()] * POSITIVES + [line(income="<=50K")] * (ROWS - POSITIVES)
    path.write_bytes(pack("\n".join([*rows, "", ""]).encode()))
    assert len(adult(str(path))) == ROWS
    path.write_bytes(pack("\n".join(rows[:-1]).encode()))
    with pytest.raises(InvalidInput, match="it has 32,560 rows, 7,841 of them >50K, and should have 32,561 and 7,841"):
        adult(path)
    path.write_bytes(pack("\n".join([*rows[:-1], line()]).encode()))
    with pytest.raises(InvalidInput, match="it has 32,561 rows, 7,842 of them >50K"):
        adult(path)


def test_the_real_file_keeps_its_bounds(stream):
    """Shape, labels and norms; every published category but none other occurs."""
    assert stream.X.shape == (32_561, 88) == (len(stream), len(stream.names))
    assert np.count_nonzero(stream.y == 1.0) == 7_841
    assert np.count_nonzero(stream.y == -1.0) == 24_720
    assert np.linalg.norm(stream.X, axis=1).max() <= stream.feature_bound == 1.0
    assert (stream.X != 0.0).any(axis=0).all()


def test_the_real_file_without_a_row_is_rejected(file, tmp_path):
    """The planted fault: the first row is gone."""
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8") as text:
        (tmp_path / "adult.data").write_text("".join(list(text)[1:]), encoding="utf-8")
    with pytest.raises(InvalidInput, match="it has 32,560 rows"):
        adult(tmp_path / "adult.data")


def test_missing_values_are_as_many_as_published(stream):
    """`adult.names`: 30,162 of the training rows have no unknown value."""
    known = [stream.X[:, [column.startswith(f"{name}=") for column in stream.names]].any(axis=1) for name in CATEGORIES]
    assert np.count_nonzero(np.all(known, axis=0)) == 30_162


def test_incomes_can_be_learnt(stream):
    """Logistic regression without privacy reaches 0.83 on the last tenth; guessing the majority, 0.76."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    cut = len(stream) * 9 // 10
    model = linear_model.LogisticRegression(C=100.0, max_iter=1000).fit(stream.X[:cut], stream.y[:cut])
    assert model.score(stream.X[cut:], stream.y[cut:]) > 0.83
