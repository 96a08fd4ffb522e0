"""Checks, reports and refusals: what ran, what broke, what was skipped, and why."""

from __future__ import annotations

from unittest import SkipTest

import pytest

import tacit
from tacit import IGD, BinaryTree, Gaussian, Hinge, InvalidInput, L2Ball, Problem, Squared, TacitError
from tacit.checks import ContractBroken, checks_for
from tacit.checks.accountants import Exact
from tacit.checks.suite import Check, Report, demand, look_at, skip

IGD_ON_A_DISC = IGD(Problem(Hinge(), L2Ball(1.0), 2, ridge=0.5))
THINGS = [IGD_ON_A_DISC, Gaussian(), BinaryTree(), L2Ball(1.0), Squared(), Exact()]


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
    report = look_at("it", [Check(look, "it") for look in (keeps, breaks, skips, crashes)])
    assert [(o.check, o.verdict) for o in report.outcomes] == [
        ("keeps", "kept"),
        ("breaks", "broken"),
        ("skips", "skipped"),
        ("crashes", "broken"),
    ]
    assert [o.remark for o in report.outcomes][:3] == ["a remark", "it is broken. Mend it.", "there is nothing to see"]
    assert "KeyError" in report.broken[1].remark
    assert repr(report).startswith("it: 1 kept, 2 broken, 1 skipped\nkept    keeps: a remark\nbroken  breaks: it is")


def test_a_broken_report_raises_all_that_broke():
    """One error with every fault and remedy; as AssertionError too, which test runners understand."""
    report = look_at("it", [Check(breaks, "it"), Check(crashes, "it"), Check(keeps, "it")])
    with pytest.raises(ContractBroken, match=r"2 of 3 promises of it are broken:\n- breaks: .* Mend it\.\n- crashes"):
        report.insist()
    assert issubclass(ContractBroken, AssertionError)
    assert issubclass(ContractBroken, TacitError)


def test_what_was_only_skipped_does_not_hold():
    """A report that looked at nothing proves nothing; one that kept something holds, and is returned."""
    with pytest.raises(ContractBroken):
        look_at("it", [Check(skips, "it")]).insist()
    report = look_at("it", [Check(keeps, "it"), Check(skips, "it")])
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


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: type(thing).__name__)
def test_every_check_has_a_name_of_its_own_and_a_promise(thing):
    """In words, one sentence at least."""
    checks = checks_for(thing)
    assert len({str(check) for check in checks}) == len(checks) > 5
    assert all(check.promise.endswith((".", ":")) or len(check.promise) > 30 for check in checks)


@pytest.mark.parametrize("thing", [3, "IGD", None, object()])
def test_what_is_nothing_of_ours_is_refused(thing):
    """With an example of what is."""
    with pytest.raises(InvalidInput, match=r"check_learner\(IGD\(problem\)\)"):
        checks_for(thing)


def test_the_suite_is_reached_by_its_name():
    """`tacit.checks`, without an import of its own."""
    assert tacit.checks.check_learner(IGD_ON_A_DISC).holds
