"""Many processes at once: one winner per generation of a stream, and no more in a ledger than fits."""

import pytest

from memory_folder import memory_folder  # noqa: F401 - a fixture
from racing_workers import BUDGET, NAME, PROCESSES, SLICE, commit_often, create_stream, fail_alone, race, reserve_slices
from taciturn import Ledger
from taciturn.kernel.accounting.cost import gaussian
from taciturn.store import Store


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, memory):
    if request.param == "sqlite":
        return str(memory / "shared.db")
    return request.getfixturevalue("server").new_database()


def test_a_race_ends_when_a_process_fails(tmp_path):
    with pytest.raises(AssertionError, match=r"ended with .*\b3\b"):
        race(fail_alone, str(tmp_path / "failed"), folder=tmp_path, seconds=60.0)


def commit_by_all(address, commits, folder, witness):
    store = Store(address, witness=witness)
    store.create(NAME, lineage="a", position=(0, 0, 0, "first"), reserved=gaussian(1.0))
    results = race(commit_often, address, witness, commits, folder=folder)
    won = sorted(tuple(one) for result in results for one in result["won"])
    assert [generation for generation, _ in won] == list(range(1, PROCESSES * commits + 1))
    assert [chunk.content.decode() for chunk in store.releases(NAME)] == [token for _, token in won]
    assert store.load(NAME).position[0] == PROCESSES * commits
    assert sum(result["rejected"] for result in results) > 0


def test_one_winner_per_generation(address, tmp_path):
    commit_by_all(address, 30, tmp_path, None)


def test_one_winner_per_generation_with_a_witness(tmp_path, memory):
    """Also: a store that is opened while others commit is not behind its witness."""
    commit_by_all(str(memory / "shared.db"), 20, tmp_path, str(memory / "witness.db"))


@pytest.mark.slow
def test_one_winner_per_generation_of_thousands(address, tmp_path):
    commit_by_all(address, 1_000, tmp_path, None)


def test_one_creates_a_stream(address, tmp_path):
    """And the database with its tables, as there is none."""
    lineages = [one for one in race(create_stream, address, NAME, folder=tmp_path) if one]
    assert [Store(address).load(NAME).lineage] == lineages


def reserve_by_all(address, rounds, attempts, folder):
    """What is left is one to three slices of four and a half."""
    for number in range(rounds):
        ledger = Ledger.create(address, BUDGET, population=f"people {number}")
        for taken in range(1 + number % 3):
            ledger.open(f"{number} {taken}", SLICE)
    results = race(reserve_slices, address, rounds, 4, attempts, folder=folder)
    admitted = [sum(each) for each in zip(*results, strict=True)]
    assert admitted == [3 - number % 3 for number in range(rounds)]
    for number in range(rounds):
        ledger = Ledger(address, population=f"people {number}")
        assert len(ledger.lines) == 4
        assert ledger.verify().ok


def test_what_fits_is_admitted(address, tmp_path):
    reserve_by_all(address, 3, 1, tmp_path)


@pytest.mark.slow
def test_what_fits_is_admitted_in_a_hundred_rounds(address, tmp_path):
    """256 attempts in each."""
    reserve_by_all(address, 100, 8, tmp_path)
