"""Everything in the package keeps its contract, and so does a user's own."""

from __future__ import annotations

from functools import cache

import pytest

from instances import LEARNERS, LOSSES, SETS
from kernel.learners.cases import VECTOR_LOSSES
from kernel.mechanisms.strategies import STRATEGIES
from taciturn import DecayedBLT, Exponential, Gaussian, MultiHinge, OneHot, Softmax
from taciturn.checks import Report, checks_for
from taciturn.checks.accountants import Exact
from taciturn.checks.all import of_learner
from taciturn.checks.suite import run_checks
from taciturn.kernel.problem.losses import Advice, Nearness

pytestmark = pytest.mark.privacy

OBJECTS = {f"learner: {name}": learner for name, learner in LEARNERS.items()}
OBJECTS |= {"mechanism: gaussian": Gaussian(), "mechanism: shape S": Gaussian("S")}
OBJECTS |= {"mechanism: exponential": Exponential()}
OBJECTS |= {f"strategy: {name}": strategy for name, strategy in STRATEGIES.items()}
OBJECTS |= {"strategy: decayed": DecayedBLT(5, buffers=3)}
OBJECTS |= {f"set: {name}": make(3) for name, make in SETS.items()}
OBJECTS |= {f"loss: {name}": make() for name, make in LOSSES.items()}
OBJECTS |= {f"vector loss: {name}": make() for name, (make, _) in VECTOR_LOSSES.items()}
OBJECTS |= {"loss: softmax": Softmax(3), "loss: one hot": OneHot(4), "loss: advice": Advice(), "loss: near": Nearness()}
OBJECTS |= {"loss: multi hinge": MultiHinge(3), "accountant: exact": Exact()}

ENTRY = [name for name, learner in LEARNERS.items() if learner.certificate.kind == "l2/entry"]


@cache
def report_on(name: str) -> Report:
    return run_checks(name, checks_for(OBJECTS[name]))


@pytest.mark.parametrize("name", OBJECTS)
def test_it_keeps_its_contract(name):
    """Every check, each with its own words where it fails."""
    assert report_on(name).insist().holds


@pytest.mark.parametrize("strategy", ["tree", "square root"])
@pytest.mark.parametrize("name", ENTRY)
def test_sums_keep_it_with_other_strategies(name, strategy):
    """The checks of a learner that depend on the mechanism."""
    checks = of_learner(LEARNERS[name], STRATEGIES[strategy])
    wired = [check for check in checks if check.function.__module__ == "taciturn.checks.wiring"]
    assert len(run_checks(name, wired).insist().passed) >= 6


def test_no_check_is_always_skipped():
    """Each has something to look at somewhere."""
    made = {(str(check)) for subject in OBJECTS.values() for check in checks_for(subject)}
    passed = {outcome.check for name in OBJECTS for outcome in report_on(name).passed}
    assert made - passed == set()


def test_every_kind_of_learner_was_checked():
    """The sweep is not empty where it should be full."""
    assert {learner.certificate.kind for learner in LEARNERS.values()} == {
        "l2/tail",
        "l2/entry",
        "range/tail",
    }
    assert sum(len(report_on(name).passed) for name in OBJECTS) > 1000
