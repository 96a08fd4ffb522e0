"""Every reader reads rows and fields by themselves, under every relation and unit; a fault of each kind is caught."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from checks.reader_cases import READERS, RELATIONS, UNITS, contract, plan, reader_case
from taciturn import BLT, QFTL, FeatureMap, L2Ball, Privacy, Private, Problem, RandomFeatures, Squared, every
from taciturn.checks import ContractBroken, ReaderCase, Spoiled, check_reader, checks_for
from taciturn.checks.suite import run_checks
from taciturn.kernel.problem import problem as problem_module
from taciturn.tables.column_maps import LinearMap

pytestmark = pytest.mark.privacy


@pytest.mark.parametrize(
    ("relation", "unit"),
    [
        pytest.param(relation, unit, marks=pytest.mark.slow if unit == "row" and relation != "replace" else ())
        for relation in RELATIONS
        for unit in UNITS
    ],
)
@pytest.mark.parametrize("name", READERS)
def test_it_keeps_its_contract(name, relation, unit):
    report = run_checks(name, checks_for(reader_case(name, relation, unit))).insist()
    assert len(report.passed) >= 6


# Readers with one fault each: what they are given is what the package's own reads.


def drops_bad_rows(blocks):
    for X, y, users in blocks:
        good = ~np.isnan(y)
        yield X[good], y[good], None if users is None else users[good]


def centres_each_block(blocks):
    for X, y, users in blocks:
        yield X - np.nan_to_num(X).mean(axis=0), y, users


def is_zero_after_a_bad_row(blocks):
    for X, y, users in blocks:
        before = np.vstack([X[:1], X[:-1]])
        yield np.where(np.isnan(before), 0.0, X), y, users


def counts_the_rows(blocks):
    first = 0
    for X, y, users in blocks:
        yield X + 1e-9 * (first + np.arange(len(X)))[:, None], y, users
        first += len(X)


def ends_a_block_at_a_bad_row(blocks):
    for X, y, users in blocks:
        for part in np.split(np.arange(len(y)), np.flatnonzero(np.isnan(y)) + 1):
            if len(part):
                yield X[part], y[part], None if users is None else users[part]


def forgets_the_id_of_a_bad_row(blocks):
    for X, y, users in blocks:
        yield X, y, np.where(np.isnan(y), None, users)


def empties_a_row_without_a_label(blocks):
    for X, y, users in blocks:
        yield np.where(np.isnan(y)[:, None], np.nan, X), y, users


@pytest.mark.parametrize(
    ("fault", "name", "relation", "unit", "check"),
    [
        (drops_bad_rows, "csv", "replace", "row", "every_row_takes_its_round"),
        (centres_each_block, "json", "replace", "row", "other_rows_stay_the_same"),
        (is_zero_after_a_bad_row, "parquet", "replace", "user", "other_rows_stay_the_same"),
        (counts_the_rows, "json lines", "label", "row", "a_row_is_read_alike_wherever_it_stands"),
        (ends_a_block_at_a_bad_row, "arrow", "replace", "row", "blocks_are_cut_by_the_number_of_rows"),
        (forgets_the_id_of_a_bad_row, "json", "zero-out", "user", "an_id_stays_whatever_else_is_spoiled"),
        (forgets_the_id_of_a_bad_row, "csv", "zero-out", "user", "neighbours_are_no_farther_apart_than_charged"),
        (empties_a_row_without_a_label, "events", "label", "row", "features_stay_whatever_the_label_is"),
        (empties_a_row_without_a_label, "dicts", "label", "row", "neighbours_are_no_farther_apart_than_charged"),
    ],
)
def test_a_faulty_reader_is_caught(fault, name, relation, unit, check):
    case = reader_case(name, relation, unit, lambda *given: fault(READERS[name].read(*given)))
    found = {outcome.check: outcome for outcome in run_checks(name, checks_for(case)).failed}
    assert check in found


def test_what_a_lost_label_costs_is_measured():
    """The fault that was found: features that vanish with a label are a hundred times the noise on second moments."""
    read = READERS["json"].read
    case = reader_case("json", "label", "row", lambda *given: empties_a_row_without_a_label(read(*given)))
    with pytest.raises(ContractBroken, match=r"is at [1-9][0-9]{2}\S* of the distance that is charged"):
        check_reader(case)


# Maps of features.


def mapped_case(features, dimension=20, rows=9):
    """Rows of numbers, whose map may depend on the last bit of a product."""
    problem = Problem(Squared(), L2Ball(1.0), dimension, label_bound=1.0, on_bad="zero", features=features)
    private = Private(QFTL(problem), BLT(), every(3), Privacy(1.0, 1e-6), rows)
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (rows, dimension + 1))

    def read(given):
        given = np.array(given)
        yield given[:, :-1], given[:, -1], None

    def spoiled(row):
        yield Spoiled("NaN", np.full_like(row, np.nan), "record")
        yield Spoiled("huge", 1e300 * row, "features")

    return ReaderCase(read, list(X), spoiled, private)


@dataclass(frozen=True)
class Products(FeatureMap):
    """A product by BLAS, with what becomes of its last bits."""

    columns: int

    def width(self, dimension):
        return self.columns

    def __call__(self, X):
        directions = np.random.default_rng(2).normal(size=(X.shape[1], self.columns))
        return np.cos(X @ directions)


MAPS = [RandomFeatures(2, 1.0), RandomFeatures(64, 1.0), LinearMap(np.random.default_rng(3).normal(size=(3, 20)))]


@pytest.mark.parametrize("features", MAPS, ids=str)
def test_maps_are_of_a_row(features):
    assert check_reader(mapped_case(features)).holds


def test_products_that_round_by_the_number_of_rows_are_caught():
    with pytest.raises(ContractBroken, match="clipped to other bits in blocks of"):
        check_reader(mapped_case(Products(2)))


def test_rows_that_are_copied_only_beside_a_bad_one_are_caught(monkeypatch):
    def in_place(features, X):
        bad = ~np.isfinite(X).all(axis=1)
        given = np.where(bad[:, None], 0.0, X) if bad.any() else X
        return np.where(bad[:, None], np.nan, np.cos(given @ np.random.default_rng(2).normal(size=(X.shape[1], 22))))

    monkeypatch.setattr(problem_module, "mapped_rows", in_place)
    with pytest.raises(ContractBroken, match="clipped to other bits in blocks of"):
        check_reader(mapped_case(RandomFeatures(2, 1.0)))


def test_a_stream_without_neighbours_among_the_variants_is_skipped():
    case = reader_case("csv", "label", "row")
    only = replace(case, spoiled=lambda row: [Spoiled("another", row, "features")])
    skipped = {outcome.check for outcome in check_reader(only).skipped}
    assert "neighbours_are_no_farther_apart_than_charged" in skipped


def test_the_streams_are_those_of_the_contract():
    """What is replayed is what a run learns: the plan of a contract, under each relation and unit."""
    assert {plan(relation, unit).private.neighbours for relation in RELATIONS for unit in UNITS} == set(RELATIONS)
    assert contract("replace", "user").rows_per_user == 2
