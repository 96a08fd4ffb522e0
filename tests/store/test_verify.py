"""Verification: what is changed in the database of a ledger is found, and costs are computed again."""

from __future__ import annotations

import json

import pytest

from taciturn import (
    BLT,
    QFTL,
    BinaryTree,
    Cost,
    L2Ball,
    Ledger,
    Logistic,
    Privacy,
    Problem,
    Squared,
    User,
    every,
    geometric,
    output_perturbation,
    pftrl,
    pgiga,
    pigd,
    pol,
    pqftl,
    private_sum,
)
from taciturn.kernel.accounting.cost import gaussian
from taciturn.methods.staged import Staged
from taciturn.methods.stages import Moments
from taciturn.store.database import Database
from taciturn.store.overview import recipe_of
from taciturn.store.verify import built

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
SMALL = Privacy(0.1, 1e-8)
PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
SQUARES = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0)

RECIPES = {
    "pigd": lambda: pigd(PROBLEM, SMALL, 100),
    "pigd, shape S, every 3": lambda: pigd(PROBLEM, SMALL, 100, schedule=every(3), shape="S"),
    "pigd without horizon": lambda: pigd(PROBLEM, SMALL, schedule=geometric(2.0)),
    "pgiga": lambda: pgiga(PROBLEM, SMALL, 100),
    "pol": lambda: pol(PROBLEM, SMALL, 100),
    "pol, last": lambda: pol(PROBLEM, SMALL, 100, how="last"),
    "output perturbation": lambda: output_perturbation(PROBLEM, SMALL, 100),
    "private sum": lambda: private_sum(3, 1.0, SMALL, 100),
    "private sum, tree, zero-out": lambda: private_sum(
        3, 1.0, SMALL, 100, strategy=BinaryTree(), neighbours="zero-out"
    ),
    "private sum without horizon": lambda: private_sum(3, 1.0, SMALL),
    "pqftl": lambda: pqftl(SQUARES, SMALL, 100),
    "pqftl, extra ridge": lambda: pqftl(SQUARES, SMALL, 100, extra_ridge=0.5),
    "pftrl": lambda: pftrl(PROBLEM, SMALL, 100),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_cost_of_a_recipe_is_computed_again(name, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    private = RECIPES[name]()
    private.start(ledger)
    assert ledger.reserved == private.calibrated.cost(None)
    assert Ledger(tmp_path / "budget.db").verify() == ([], 1, [])


@pytest.mark.parametrize("name", RECIPES)
def test_a_smaller_reservation_than_the_settings_cost_is_found(name, tmp_path):
    """By its settings alone, whoever computed the hashes again."""
    private = RECIPES[name]()
    cost = private.calibrated.cost(None)
    ledger = Ledger(BUDGET)
    ledger.reserve("stream", Cost(*(0.99 * part for part in cost.parts)), private.problem.neighbours, private.recorded)
    (fault,) = ledger.verify().faults
    assert "and its settings cost" in fault


OF_USERS = Staged(QFTL(SQUARES, center=(0.1, 0.2)), BLT(), every(5), SMALL, 100, unit=User(2), stages=(Moments(20),))
RECORDED_1 = [
    [
        "learner",
        [
            "taciturn QFTL",
            [
                [
                    "problem",
                    [
                        "taciturn Problem",
                        [
                            ["loss", ["taciturn Squared", []]],
                            ["domain", ["taciturn L2Ball", [["radius", "0x1.0000000000000p+0"]]]],
                            ["dimension", "0x1.0000000000000p+1"],
                            ["feature_bound", "0x1.0000000000000p+0"],
                            ["label_bound", "0x1.0000000000000p+0"],
                            ["intercept", "0x0.0p+0"],
                            ["ridge", "0x0.0p+0"],
                            ["neighbours", "replace"],
                            ["on_bad", "raise"],
                            ["features", None],
                            ["label_center", "0x0.0p+0"],
                            ["label_scale", "0x1.0000000000000p+0"],
                        ],
                    ],
                ],
                ["extra_ridge", "0x0.0p+0"],
                ["weight", None],
                ["center", ["0x1.999999999999ap-4", "0x1.999999999999ap-3"]],
                ["_stated", False],
            ],
        ],
    ],
    ["mechanism", ["taciturn BLT", [["buffers", "0x1.0000000000000p+2"], ["aim", "max"]]]],
    ["schedule", ["taciturn Every", [["rounds", "0x1.4000000000000p+2"]]]],
    ["privacy", ["taciturn Privacy", [["epsilon", "0x1.999999999999ap-4"], ["delta", "0x1.5798ee2308c3ap-27"]]]],
    ["horizon", "0x1.9000000000000p+6"],
    ["calibration", "exact"],
    ["allow_broken", False],
    ["seed", None],
    [
        "unit",
        [
            "taciturn User",
            [
                ["rows", "0x1.0000000000000p+1"],
                ["per_release", "0x1.0000000000000p+1"],
                ["apart", "0x1.0000000000000p+0"],
                ["period", None],
                ["without_id", "bad"],
            ],
        ],
    ],
    ["stages", [["taciturn Moments", [["rows", "0x1.4000000000000p+4"]]]]],
]
"""The same, as version 1 recorded it."""


@pytest.mark.parametrize("recorded", [OF_USERS.recorded, RECORDED_1], ids=["now", "in version 1"])
def test_recorded_settings_are_built_again(recorded):
    """By any later version."""
    assert built(json.loads(json.dumps(recorded))) == OF_USERS
    assert recipe_of(recorded) == "pqftl, BLT"
    ledger = Ledger(BUDGET)
    ledger.reserve("stream", OF_USERS.total_cost, settings=recorded, unit="user")
    assert ledger.verify().checked == 1


def test_settings_of_a_later_version_are_listed():
    ledger = Ledger(BUDGET)
    ledger.reserve("later", gaussian(0.01), settings={"version": 3, "settings": {}})
    assert "not recorded by this version" in ledger.verify().unchecked[0]


def test_costs_without_settings_are_listed():
    ledger = Ledger(BUDGET)
    ledger.charge(gaussian(0.01))
    ledger.reserve("mine", gaussian(0.01), settings={"version": 2, "settings": {"elsewhere.Learner": {}}})
    ledger.reserve("nonsense", gaussian(0.001), settings=["taciturn Privacy", [["epsilon", "-0x1.0p+0"]]])
    found = ledger.verify()
    assert found.ok
    assert found.checked == 0
    assert ["no settings" in found.unchecked[0], "is not a class" in found.unchecked[1]] == [True, True]
    assert "not accepted any more" in found.unchecked[2]


# What is changed in the database.


@pytest.fixture
def ledger(tmp_path):
    """Three lines, one of them closed, and five events."""
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    pigd(PROBLEM, SMALL, 10).start(ledger)
    ledger.reserve("stream", gaussian(0.01))
    ledger.charge(gaussian(0.001))
    ledger.close("stream")
    assert ledger.verify().ok
    return ledger


CHANGES = {
    "a smaller reservation": "UPDATE lines SET reserved = spent WHERE lineage = 'stream'",
    "a removed line": "DELETE FROM lines WHERE lineage = 'stream'",
    "another lineage": "UPDATE lines SET lineage = 'other' WHERE lineage = 'stream'",
    "a stream opened again": "UPDATE lines SET closed = 0 WHERE lineage = 'stream'",
    "more spent than reserved": "UPDATE lines SET spent = (SELECT max(reserved) FROM lines WHERE lineage = 'stream') "
    "WHERE lineage LIKE 'one-off%'",
    "a larger budget": f"UPDATE ledgers SET epsilon = '{(2.0).hex()}'",
    "another delta": f"UPDATE ledgers SET delta = '{(1e-5).hex()}'",
    "another relation": "UPDATE ledgers SET neighbours = 'zero-out'",
    "another unit": "UPDATE ledgers SET unit = 'user'",
    "an edited content": "UPDATE events SET content = replace(content, 'replace', 'zero-out') WHERE number = 3",
    "an edited time": "UPDATE events SET at = '2020-01-01T00:00:00+00:00' WHERE number = 2",
    "another user": "UPDATE events SET who = 'someone else' WHERE number = 4",
    "a content that is no JSON": "UPDATE events SET content = 'x' WHERE number = 3",
    "a content without a cost": "UPDATE events SET content = '{}' WHERE number = 3",
    "the first event removed": "DELETE FROM events WHERE number = 1",
    "a middle event removed": "DELETE FROM events WHERE number = 3",
    "the last event removed": "DELETE FROM events WHERE number = 5",
    "two events exchanged": "UPDATE events SET number = CASE number WHEN 3 THEN 103 WHEN 4 THEN 104 ELSE number END; "
    "UPDATE events SET number = CASE number WHEN 103 THEN 4 WHEN 104 THEN 3 ELSE number END",
    "another end": "UPDATE ledgers SET chain = '0'",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_in_the_database_is_found(what, ledger, tmp_path):
    with Database(tmp_path / "budget.db").transaction() as now:
        for statement in CHANGES[what].split("; "):
            assert now.execute(statement) >= 1
    assert ledger.verify().faults


def test_edited_settings_are_found(ledger, tmp_path):
    """By the chain, and by their cost."""
    with Database(tmp_path / "budget.db").transaction() as now:
        [(content,)] = now.rows("SELECT content FROM events WHERE number = 2")
        larger = content.replace('"epsilon": 0.1', '"epsilon": 0.2')
        assert larger != content
        now.execute("UPDATE events SET content = ? WHERE number = 2", larger)
    faults = " ".join(ledger.verify().faults)
    assert "event 2 was changed" in faults
    assert "and its settings cost" in faults


def test_it_is_verified_while_others_use_it(ledger, tmp_path, monkeypatch):
    """Events and lines of one moment."""
    other, history = Ledger(tmp_path / "budget.db"), Ledger.history

    def meanwhile(self):
        events = history.fget(self)
        if other.reserved.mu_squared < 0.013:
            monkeypatch.setattr(Ledger, "history", history)
            other.charge(gaussian(0.001))
            monkeypatch.setattr(Ledger, "history", property(meanwhile))
        return events

    monkeypatch.setattr(Ledger, "history", property(meanwhile))
    assert ledger.verify().ok
