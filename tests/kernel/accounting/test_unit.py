"""The unit of privacy: what it says, and which ledgers accept it."""

import datetime

import numpy as np
import pytest

from taciturn import Example, Ledger, Privacy, Unprovable, User, private_sum
from taciturn.kernel.accounting.unit import IN_A_YEAR, LEDGER_UNITS, Participation, covers, period_of

PRIVACY = Privacy(1.0, 1e-6)
SMALL = Privacy(0.1, 1e-6)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (Example(), "one example"),
        (User(1), "one user, of at most 1 row"),
        (User(4), "one user, of at most 4 rows"),
        (User(4, 2), "one user, of at most 4 rows, at most 2 between two releases"),
        (User(4, period="month"), "one user, of at most 4 rows in a month"),
        (User(4, period=1000), "one user, of at most 4 rows in each 1,000 consecutive rounds from the first"),
    ],
)
def test_a_unit_says_whose_data_is_protected(unit, text):
    assert str(unit) == text


def test_rows_that_must_lie_apart_come_one_by_one():
    assert User(4, apart=2).per_release == 1
    assert User(4, 3, apart=2).per_release == 3


@pytest.mark.parametrize(("rows", "each", "expected"), [(4, 4, [4]), (5, 2, [2, 2, 1]), (1, 1, [1]), (4, 2, [2, 2])])
def test_multiplicities_hold_all_rows(rows, each, expected):
    assert Participation(rows, each).multiplicities.tolist() == expected


def test_the_guarantee_says_whose_data_is_protected():
    sentences = [str(private_sum(1, 1.0, PRIVACY, 9, unit=unit).guarantee) for unit in (Example(), User(4))]
    assert "replacing any one example" in sentences[0]
    assert "a person with several is protected less" in sentences[0]
    assert "replacing all rows of any one user by others" in sentences[1]
    assert "at most 4 rows: more rows than that keep their round and have no influence" in sentences[1]


def test_what_covers_what():
    accepted = {(unit, of) for unit in LEDGER_UNITS for of in LEDGER_UNITS if covers(unit, of)}
    for unit in LEDGER_UNITS:
        assert ("example", unit) in accepted
        assert (unit, unit) in accepted
        assert (unit, "user") in accepted
    assert ("user", "user and month") not in accepted
    assert ("user and month", "user and day") not in accepted
    assert not any((unit, "example") in accepted for unit in LEDGER_UNITS[1:])


@pytest.fixture(params=["memory", "sqlite"])
def make(request, tmp_path):
    def ledger(unit):
        if request.param == "memory":
            return Ledger(PRIVACY, unit=unit)
        return Ledger.create(tmp_path / "budget.db", PRIVACY, unit=unit)

    return ledger


@pytest.mark.parametrize("unit", [Example(), User(2, period="month"), User(2, without_id="own")])
def test_a_ledger_of_users_rejects_streams_that_promise_less(make, unit):
    ledger = make("user")
    private = private_sum(1, 1.0, SMALL, 9, unit=unit)
    with pytest.raises(Unprovable, match="this ledger's budget is for one user"):
        private.start(ledger)
    with pytest.raises(Unprovable):
        private.fit(np.ones((9, 1)), ledger=ledger, users=None if unit == Example() else list("aabbccdde"))
    assert not ledger.lines


def test_a_ledger_of_users_accepts_users_and_verifies(make):
    ledger = make("user")
    private = private_sum(1, 1.0, SMALL, 9, unit=User(2))
    state = private.start(ledger)
    state, _ = private.run(state, np.ones((2, 1)), users=["a", "b"])
    assert private.is_live(state)
    assert ledger.verify().faults == []
    assert ledger.history[-1].data["unit"] == "user"


def test_a_ledger_of_months_accepts_both(make):
    ledger = make("user and month")
    for unit in (User(2), User(2, period="month")):
        private_sum(1, 1.0, SMALL, 9, unit=unit).start(ledger)
    assert len(ledger.lines) == 2


def test_a_ledger_of_examples_accepts_users(make):
    private_sum(1, 1.0, SMALL, 9, unit=User(2)).start(ledger := make("example"))
    assert len(ledger.lines) == 1


class TestPeriods:
    def test_four_periods_of_one_row_cost_more_than_two(self):
        unit = User(1, apart=256, period=256)
        private = private_sum(1, 1.0, PRIVACY, 1024, unit=unit)
        one, four = private.user_over(1).mu, private.user_over(4).mu
        assert one == pytest.approx(private.guarantee.delivered.mu, rel=1e-12)
        assert four / one == pytest.approx(2.43, abs=0.01)  # 2 if each period had its own encoder

    def test_it_is_the_cost_of_one_long_pattern(self):
        private = private_sum(1, 1.0, PRIVACY, 64, unit=User(2, 1, period=16))
        long = private_sum(1, 1.0, PRIVACY, 64, unit=User(8, 1))
        ratio = private.user_over(4).mu / private.user_over(1).mu
        apart = private.calibrated.coder.sensitivity_to(Participation(8, 1, 1))
        assert ratio == pytest.approx(apart / private.calibrated.coder.sensitivity_to(Participation(2, 1, 1)), rel=1e-6)
        assert long.guarantee.proven


def test_no_calendar_year_has_more_periods():
    """2012 began on a Sunday and was a leap year: it has days of 54 weeks."""
    for kind, most in IN_A_YEAR.items():
        years = {2012: 0, 2013: 0, 2014: 0, 2024: 0}
        for year in years:
            days = [datetime.datetime(year, 1, 1) + datetime.timedelta(days=day) for day in range(366)]
            years[year] = len({period_of(kind, day) for day in days if day.year == year})
        assert max(years.values()) == most
