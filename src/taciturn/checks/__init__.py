"""The contract suite: what every learner, mechanism, strategy, set, loss and accountant owes, as checks.

It runs over everything in the package, and over what you add: one call makes every check and returns a report, or
raises `ContractBroken` with all that broke and what to do. With pytest, let each check be a test:

    @pytest.mark.parametrize("check", taciturn.checks.checks_for(MyLearner(problem)), ids=str)
    def test_it_keeps_the_contract(check):
        check()

Examples come from fixed seeds, and no check needs more than NumPy and SciPy. Checks look for faults: a proof of the
certificate is still yours to give.
"""

from __future__ import annotations

from taciturn.checks.accountants import Accountant
from taciturn.checks.all import (
    check_accountant,
    check_learner,
    check_loss,
    check_mechanism,
    check_set,
    check_strategy,
    checks_for,
)
from taciturn.checks.suite import Check, Report
from taciturn.errors import ContractBroken

__all__ = [
    "Accountant",
    "Check",
    "ContractBroken",
    "Report",
    "check_accountant",
    "check_learner",
    "check_loss",
    "check_mechanism",
    "check_set",
    "check_strategy",
    "checks_for",
]
