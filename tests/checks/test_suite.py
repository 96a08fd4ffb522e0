"""Checks, reports and errors: what passed, what failed, what was skipped, and why."""

from __future__ import annotations

from unittest import SkipTest

import pytest

import taciturn
from taciturn import IGD, BinaryTree, Gaussian, Hinge, InvalidInput, L2Ball, Ledger, Problem, Squared, TaciturnError
from taciturn.checks import ContractBroken, LedgerCase, StoreCase, checks_for
from taciturn.checks.accountants import Exact
from taciturn.checks.suite import Check, Report, demand, run_checks, skip

IGD_ON_A_DISC = IGD(Problem(Hinge(), L2Ball(1.0), 2, ridge=0.5))
OBJECTS = [IGD_ON_A_DISC, Gaussian(), BinaryTree(), L2Ball(1.0), Squared(), Exact(), LedgerCase(), StoreCase(str)]


def keeps(subject):
    """Nothing is wrong."""
    return "a remark"


def breaks(subject):
    """Something is."""
    demand(False, f"{subject} is broken", "Mend it.")


def skips(subject):
    """Nothing is looked at."""
    skip("there is nothing to see")


def crashes(subject):
    """What is checked raises."""
    raise KeyError("lost")


def test_a_report_says_what_became_of_each_check():
    """Every check is made, whatever the others found, and each leaves a verdict and a remark."""
    report = run_checks("it", [Check(function, "it") for function in (keeps, breaks, skips, crashes)])
    assert [(o.check, o.verdict) for o in report.outcomes] == [
        ("keeps", "passed"),
        ("breaks", "failed"),
        ("skips", "skipped"),
        ("crashes", "failed"),
    ]
    assert [o.remark for o in report.outcomes][:3] == ["a remark", "it is broken. Mend it.", "there is nothing to see"]
    assert "KeyError" in report.failed[1].remark
    assert repr(report).startswith("it: 1 passed, 2 failed, 1 skipped\npassed  keeps: a remark\nfailed  breaks: it is")


def test_a_broken_report_raises_all_that_broke():
    """One error with every fault and remedy; as AssertionError too, which test runners understand."""
    report = run_checks("it", [Check(breaks, "it"), Check(crashes, "it"), Check(keeps, "it")])
    with pytest.raises(ContractBroken, match=r"2 of 3 checks of it failed:\n- breaks: .* Mend it\.\n- crashes"):
        report.insist()
    assert issubclass(ContractBroken, AssertionError)
    assert issubclass(ContractBroken, TaciturnError)


def test_what_was_only_skipped_does_not_hold():
    """A report that looked at nothing proves nothing; one with a check that passed holds, and is returned."""
    with pytest.raises(ContractBroken):
        run_checks("it", [Check(skips, "it")]).insist()
    report = run_checks("it", [Check(keeps, "it"), Check(skips, "it")])
    assert isinstance(report.insist(), Report)
    assert report.holds


def test_checks_are_callables_with_names_and_promises():
    """So that pytest can take them one by one: they return, skip or raise, and say which they are."""
    check = Check(keeps, 1, "in one case")
    assert (str(check), check.promise, check()) == ("keeps, in one case", "Nothing is wrong.", "a remark")
    with pytest.raises(SkipTest):
        Check(skips, 1)()
    with pytest.raises(KeyError):
        Check(crashes, 1)()


@pytest.mark.parametrize("subject", OBJECTS, ids=lambda subject: type(subject).__name__)
def test_every_check_has_a_name_of_its_own_and_a_promise(subject):
    """In words, one sentence at least."""
    checks = checks_for(subject)
    assert len({str(check) for check in checks}) == len(checks) > 5
    assert all(check.promise.endswith((".", ":")) or len(check.promise) > 30 for check in checks)


@pytest.mark.parametrize("subject", [3, "IGD", None, object()])
def test_objects_without_checks_are_rejected(subject):
    """With an example of what is."""
    with pytest.raises(InvalidInput, match=r"check_learner\(IGD\(problem\)\)"):
        checks_for(subject)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: taciturn.checks.check_learner(IGD),
            r"a learner cannot be the class .*check_learner\(IGD\(problem\)\)",
        ),
        (lambda: taciturn.checks.check_learner(L2Ball(1.0)), r"a learner cannot be L2Ball.*check_learner\(IGD"),
        (
            lambda: taciturn.checks.check_mechanism(Gaussian),
            r"a mechanism cannot be the class .*check_mechanism\(Gaussian\(\)",
        ),
        (
            lambda: taciturn.checks.check_strategy(BinaryTree().coder(5)),
            r"a strategy cannot be .*check_strategy\(BLT\(\)\)",
        ),
        (
            lambda: taciturn.checks.check_strategy(BinaryTree),
            r"a strategy cannot be the class .*check_strategy\(BLT\(\)\)",
        ),
        (lambda: taciturn.checks.check_set(2.0), r"a set cannot be 2\.0\. .*check_set\(L2Ball\(1\.0\)\)"),
        (lambda: taciturn.checks.check_set(L2Ball), r"a set cannot be the class .*check_set\(L2Ball\(1\.0\)\)"),
        (lambda: taciturn.checks.check_loss(Squared), r"a loss cannot be the class .*check_loss\(Logistic\(\)\)"),
        (lambda: taciturn.checks.check_accountant(Exact), r"an accountant cannot be the class .*check_accountant\(\)"),
        (lambda: taciturn.checks.check_ledger(Ledger()), r"a ledger cannot be Ledger.*check_ledger\(LedgerCase\("),
        (lambda: taciturn.checks.check_store("a.db"), r"a store cannot be 'a\.db'.*check_store\(StoreCase\(address"),
        (
            lambda: taciturn.checks.check_reader(str),
            r"a reader cannot be the class .*check_reader\(ReaderCase\(read, rows",
        ),
    ],
)
def test_what_is_of_another_kind_is_rejected_in_one_sentence(call, words):
    """A class without its settings, a coder, a radius: before anything is tried."""
    with pytest.raises(InvalidInput, match=words) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", [IGD, Gaussian, BinaryTree, L2Ball, Squared, Exact])
def test_classes_are_rejected_everywhere(kind):
    with pytest.raises(InvalidInput, match=r"what is checked cannot be the class .*with its settings"):
        checks_for(kind)


def test_the_same_fault_in_several_cases_is_one_line():
    """For faults and skips, numbers aside; other faults and checks that passed have lines of their own."""

    def large(n):
        demand(n < 2, f"{n / 7:.3g} is too large, for {n} rows", "Mend it.")

    def odd(n):
        demand(n != 3, "3 is odd", "Take another.")
        demand(n != 8, "8 is even", "Mend it.")

    cases = (1, 2, 3, 8)
    report = run_checks("it", [Check(function, n, f"{n} rows") for function in (large, skips, odd) for n in cases])
    assert repr(report).splitlines() == [
        "it: 3 passed, 5 failed, 4 skipped",
        "passed  large, 1 rows",
        "failed  large, for 2, 3, 8 rows: 0.286 is too large, for 2 rows. Mend it.",
        "skipped skips, for 1, 2, 3, 8 rows: there is nothing to see",
        "passed  odd, 1 rows",
        "passed  odd, 2 rows",
        "failed  odd, 3 rows: 3 is odd. Take another.",
        "failed  odd, 8 rows: 8 is even. Mend it.",
    ]
    with pytest.raises(ContractBroken, match=r"^5 of 12 checks of it failed:\n- large, for 2, 3, 8 rows: .*\n- odd, 3"):
        report.insist()


def test_the_suite_is_reached_by_its_name():
    """`taciturn.checks`, without an import of its own."""
    assert taciturn.checks.check_learner(IGD_ON_A_DISC).holds
