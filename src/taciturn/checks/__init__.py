"""Conformance checks for learners, mechanisms, strategies, sets, losses, accountants, ledgers, stores and readers.

They run on everything in the package, and on your own classes: one call runs every check and returns a report, or
raises `ContractBroken` with all failures and their remedies. With pytest, make each check a test:

    @pytest.mark.parametrize("check", taciturn.checks.checks_for(MyLearner(problem)), ids=str)
    def test_it_satisfies_the_contract(check):
        check()

Examples come from fixed seeds, and no check needs more than NumPy and SciPy. Checks search for counterexamples; they do
not replace the proof of a certificate.
"""

from __future__ import annotations

from taciturn.checks.accountants import Accountant
from taciturn.checks.all import (
    check_accountant,
    check_contribution,
    check_learner,
    check_ledger,
    check_loss,
    check_map,
    check_mechanism,
    check_reader,
    check_set,
    check_store,
    check_strategy,
    checks_for,
)
from taciturn.checks.ledgers import LedgerCase
from taciturn.checks.readers import ReaderCase, Spoiled
from taciturn.checks.stores import StoreCase
from taciturn.checks.suite import Check, Report
from taciturn.errors import ContractBroken

__all__ = [
    "Accountant",
    "Check",
    "ContractBroken",
    "LedgerCase",
    "ReaderCase",
    "Report",
    "Spoiled",
    "StoreCase",
    "check_accountant",
    "check_contribution",
    "check_learner",
    "check_ledger",
    "check_loss",
    "check_map",
    "check_mechanism",
    "check_reader",
    "check_set",
    "check_store",
    "check_strategy",
    "checks_for",
]
