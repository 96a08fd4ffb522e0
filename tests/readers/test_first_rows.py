"""The first rows of a file: all bad, labels that are misspelt, and labels that never occur."""

import io

import pytest

from taciturn import InvalidInput
from taciturn.contract.contract import contract_of
from taciturn.readers.first_rows import FIRST, check_first_rows
from taciturn.readers.rows import open_parts


def told(lines, block=300, **target):
    declared = {"privacy": {"epsilon": 1.0}, "target": {"column": "y", **target}, "columns": {"x": {"range": [0, 1]}}}
    contract = contract_of(declared)
    data = io.BytesIO("\n".join(["x,y", *lines]).encode())
    return check_first_rows(contract, open_parts(contract, data, block=block))


def test_a_good_label_is_enough():
    assert told(["1,no"] * 50 + ["1,yes"], positive=["yes", "Yes"]) is None
    assert told(["1,no", "1,yes"], classes=["no", "yes"]) is None
    assert told(["1,0.5"], range=[0, 1]) is None
    assert told([], positive=["yes"]) is None


@pytest.mark.parametrize("label", ["Yes", "YES", "y es"])
def test_another_spelling_is_an_error(label):
    with pytest.raises(InvalidInput, match=r"spelt as in target.positive, .* nothing was learnt or spent"):
        told(["1,no", f"1,{label}"], positive=["yes"])
    with pytest.raises(InvalidInput, match=r"spelt as in target\.classes"):
        told(["1,no", f"1,{label}"], classes=["no", "yes"])


def test_without_one_there_is_a_warning():
    assert "has a label of target.positive" in told(["1,no", "1,"], positive=["yes"])
    assert "has another class than one" in told(["1,no", "1,perhaps"], classes=["no", "yes"])


def test_no_more_than_the_first_rows_count():
    """Whatever the blocks that are read."""
    for block in (300, 7, 5_000):
        assert "the first 1,000 rows" in told(["1,no"] * FIRST + ["1,yes"], block, positive=["yes"])
        with pytest.raises(InvalidInput, match="first 1,000 rows of the data are bad"):
            told(["?,no"] * FIRST + ["1,yes"], block, positive=["yes"])
        assert told(["1,no"] * (FIRST - 1) + ["1,yes"], block, positive=["yes"]) is None
    with pytest.raises(InvalidInput, match="all rows of the data are bad"):
        told(["?,no"] * 9, positive=["yes"])


def test_rows_that_cannot_be_parsed_have_no_label():
    assert "has a label" in told(["1,no", "1,yes,more"], positive=["yes"])


def test_no_label_is_shown():
    with pytest.raises(InvalidInput) as error:
        told(["1,SECRETLABEL"], positive=["secretlabel"])
    assert "secret" not in str(error.value).lower()
