"""`[events]` of a contract: the wait and what a missing label is; both are public and stated."""

import pytest

from taciturn.contract.contract import contract_of
from taciturn.contract.events import Events
from taciturn.errors import InvalidInput

CONTRACT = {
    "privacy": {"epsilon": 1.0},
    "target": {"column": "bought", "classes": ["no", "yes"]},
    "columns": {"age": {"range": [0, 100]}},
}


def test_it_is_part_of_the_contract_and_of_its_digest():
    plain = contract_of(CONTRACT)
    made = contract_of(CONTRACT | {"events": {"wait": "10 minutes", "missing": "no"}})
    assert made.events == Events("10 minutes", "no")
    assert contract_of(made.declared) == made
    assert made.digest != plain.digest
    assert "events" not in plain.declared
    assert contract_of(CONTRACT | {"events": {"wait": "1 day", "missing": "no row"}}).events == Events("1 day")


@pytest.mark.parametrize(
    ("wait", "milliseconds"), [("1 second", 1000), ("0.25 seconds", 250), ("2 hours", 7_200_000), ("1 day", 86_400_000)]
)
def test_a_wait_is_a_number_and_a_unit(wait, milliseconds):
    assert Events(wait).milliseconds == milliseconds


@pytest.mark.parametrize("wait", ["", "soon", "10", "10 months", "-1 day", "0 seconds", "1e3 seconds", "400 days", 5])
def test_other_waits_are_rejected(wait):
    with pytest.raises(InvalidInput, match=r"events\.wait"):
        contract_of(CONTRACT | {"events": {"wait": wait}})


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ({}, "events.wait is missing"),
        ({"wait": "1 day", "missing": "maybe"}, "cannot read it"),
        ({"wait": "1 day", "missing": [1]}, "a value of the target"),
        ({"wait": "1 day", "default": "no"}, "events.default is unknown"),
        ("1 day", "must be a table"),
    ],
)
def test_other_tables_are_rejected(events, message):
    with pytest.raises(InvalidInput, match=message):
        contract_of(CONTRACT | {"events": events})


@pytest.mark.parametrize(("missing", "fits"), [(0.0, True), (1, True), ("0.5", True), (-1.0, False), (7, False)])
def test_a_missing_label_outside_the_range_is_rejected(missing, fits):
    """It would be clipped without a word."""
    contract = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "reward", "range": [0, 1]},
        "learning": {"horizon": 100},
        "columns": {"age": {"range": [0, 100]}},
        "events": {"wait": "1 day", "missing": missing},
    }
    if fits:
        assert contract_of(contract).events.missing == missing
    else:
        with pytest.raises(InvalidInput, match=r"has the range \[0, 1\]"):
            contract_of(contract)
