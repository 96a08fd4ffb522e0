"""Ways to lose someone's privacy, each planted in a copy of the package: tests marked `privacy` catch them all.

Three of them, a bound, a key and a ledger's, run always; the others, and the package as it is, with the slow tests.
"""

from __future__ import annotations

import ast

import pytest

from cases import each
from mutants import MUTANTS, PACKAGE, ROOT, SELECTED, Mutant, Outcome, copied, outcome_of

ALWAYS = ("sensitivity halved", "seed fixed", "budget not charged")


def run(to, mutant: Mutant | None = None) -> Outcome:
    """The selected tests on a copy, and nothing but that copy.

    How long that takes is printed, and not tested: beside other processes a core counts twice the seconds.
    """
    package = copied(to, mutant)
    outcome = outcome_of(package)
    assert outcome.package == package, f"not the copy was tested: {outcome}"
    return outcome


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(m, id=m.name, marks=() if m.name in ALWAYS else pytest.mark.slow) for m in MUTANTS],
)
def test_a_mutant_is_caught(mutant, tmp_path):
    """By a test that fails: an error on the way to it, or around it, does not count."""
    outcome = run(tmp_path, mutant)
    assert outcome.caught_by, f"no test marked privacy catches {mutant.name!r}:\n{outcome.printed}"
    print(f"{mutant.name}: {outcome.caught_by}, {outcome.seconds:.0f} s")  # noqa: T201  (for pytest -rP)


@pytest.mark.slow
def test_the_package_as_it_is_passes(tmp_path):
    """The same tests on the same kind of copy, without a fault: otherwise nothing is meant by being caught."""
    outcome = run(tmp_path)
    assert outcome.code == 0, outcome.printed
    assert outcome.caught_by is None


# What being caught means.


def test_every_mutant_has_a_name_of_its_own_and_three_run_always():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 20
    assert {mutant.name for mutant in MUTANTS} >= set(ALWAYS)
    assert len(set(ALWAYS)) == 3


@each("selected", SELECTED)
def test_what_is_selected_exists(selected):
    """A file that has moved would end every run before its first test, and nothing would be caught."""
    file, _, test = selected.partition("::")
    source = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert not test or f"\ndef {test.partition('[')[0]}(" in source


@each("mutant", MUTANTS)
def test_a_mutant_is_another_program(mutant):
    """Its text stands in the package, once, and what comes of it is still Python."""
    source = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(mutant.planted(source))) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("source", ["x = 2", "x = 1; x = 1"])
def test_a_text_that_does_not_occur_once_is_named(source):
    """The file, the text, how often it occurs, and what to do."""
    with pytest.raises(LookupError, match=r"once in core/private\.py, and occurs [02] times: 'x = 1'\. Let the mutant"):
        Mutant("a fault", "core/private.py", "x = 1", "x = 3").planted(source)


def test_a_copy_that_cannot_be_imported_is_not_caught(tmp_path):
    """Tests that never ran have caught nothing."""
    broken = Mutant("broken", "accounting/ledger.py", "import os\n", "import no_such_module\n")
    outcome = run(tmp_path, broken)
    assert outcome.code != 0
    assert "no_such_module" in outcome.printed
    assert outcome.caught_by is None
