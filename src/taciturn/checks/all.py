"""Every check that applies to a thing, and one call that makes them all."""

from __future__ import annotations

from typing import Any

from taciturn.checks import (
    accountants,
    certificates,
    learners,
    losses,
    mechanisms,
    sets,
    strategies,
    vector_losses,
    wiring,
)
from taciturn.checks.accountants import Accountant, Exact
from taciturn.checks.learners import Trial
from taciturn.checks.mechanisms import Hiding
from taciturn.checks.suite import Check, Report, look_at
from taciturn.core.protocols import Learner, Mechanism
from taciturn.errors import expect
from taciturn.mechanisms.prefix_sum import PrefixSum
from taciturn.problem.scalar_loss import ScalarLoss
from taciturn.problem.sets import ConvexSet
from taciturn.problem.vector_loss import VectorLoss


def checks_for(thing: Any) -> list[Check]:
    """Every check that applies to a learner, mechanism, strategy, set, loss or accountant, none of them made yet.

    >>> from taciturn import L2Ball
    >>> str(checks_for(L2Ball(1.0))[0])
    'projections_are_members, in 1 dimension'
    """
    if isinstance(thing, type):
        _must_be("what is checked", thing, False, "check_learner(IGD(problem)), with its settings")
    if isinstance(thing, ScalarLoss | VectorLoss):
        return of_loss(thing)
    if isinstance(thing, ConvexSet):
        return of_set(thing)
    if isinstance(thing, PrefixSum):
        return of_strategy(thing)
    if hasattr(thing, "calibrate"):
        return of_mechanism(thing)
    if isinstance(thing, Accountant):
        return of_accountant(thing)
    return of_learner(thing)


def _must_be(name: str, thing: object, right: bool, example: str) -> None:
    """Refuse what is of another kind, and a class in the place of one of its things."""
    expect(name, thing, right and not isinstance(thing, type), example)


def of_learner(learner: Learner, mechanism: Mechanism | None = None, effort: int = 1) -> list[Check]:
    """Checks of its certificate, of its verbs, and of what becomes of it when it is made private."""
    _must_be("a learner", learner, hasattr(learner, "certificate"), "check_learner(IGD(problem))")
    trial = Trial(learner, mechanism, effort)
    return [Check(look, trial) for look in (*certificates.CHECKS, *learners.CHECKS, *wiring.CHECKS)]


def of_mechanism(mechanism: Mechanism) -> list[Check]:
    """Checks of what it does with a horizon, and without one."""
    _must_be("a mechanism", mechanism, hasattr(mechanism, "calibrate"), "check_mechanism(Gaussian())")
    cases = {"": Hiding(mechanism), "no horizon": Hiding(mechanism, None)}
    return [Check(look, hiding, case) for case, hiding in cases.items() for look in mechanisms.CHECKS]


def of_strategy(strategy: PrefixSum, lengths: tuple[int, ...] = strategies.LENGTHS) -> list[Check]:
    """Checks of its matrices for these numbers of rows, and of the mechanism that it makes."""
    made = isinstance(strategy, PrefixSum)
    _must_be("a strategy", strategy, made, "check_strategy(BLT()), a PrefixSum whose coder(n) makes the coders")
    cases = [strategies.Strategy(strategy, n) for n in lengths]
    dense = [Check(look, case, f"{case.n} rows") for look in strategies.CHECKS for case in cases]
    return [*dense, *of_mechanism(strategy)]


def of_set(domain: ConvexSet, dimensions: list[int] | None = None) -> list[Check]:
    """Checks in these dimensions, or in some that the set has."""
    _must_be("a set", domain, isinstance(domain, ConvexSet), "check_set(L2Ball(1.0))")
    cases = [sets.around(domain, d) for d in dimensions or sets.dimensions_of(domain)]
    names = {case.dimension: f"in {case.dimension} dimension{'s' * (case.dimension > 1)}" for case in cases}
    return [Check(look, case, names[case.dimension]) for look in sets.CHECKS for case in cases]


def of_loss(loss: ScalarLoss | VectorLoss, dimension: int = 4) -> list[Check]:
    """Checks of a loss of `v·x`, or of one that sees points and examples of some dimension."""
    _must_be("a loss", loss, isinstance(loss, ScalarLoss | VectorLoss), "check_loss(Logistic())")
    if isinstance(loss, ScalarLoss):
        return [Check(look, losses.predictions(loss)) for look in losses.CHECKS]
    return [Check(look, vector_losses.Points(loss, dimension)) for look in vector_losses.CHECKS]


def of_accountant(accountant: Accountant) -> list[Check]:
    """Checks of what it adds up."""
    _must_be("an accountant", accountant, isinstance(accountant, Accountant), "check_accountant(), the package's own")
    return [Check(look, accountant) for look in accountants.CHECKS]


def check_learner(learner: Learner, mechanism: Mechanism | None = None, *, effort: int = 1) -> Report:
    """Check a learner: its certificate, its verbs, and what becomes of it when it is made private.

    Parameters
    ----------
    learner : Learner
        On a problem of your choice. Try several: losses, sets, both neighbour relations.
    mechanism : Mechanism, optional
        To make it private with; by default one that accepts its certificate.
    effort : int
        How many searches are made for worse neighbours.

    Examples
    --------
    >>> from taciturn import IGD, Hinge, L2Ball, Problem
    >>> from taciturn.checks import check_learner
    >>> report = check_learner(IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5)))
    >>> report.outcomes[1]
    Outcome(check='certificate_survives_a_search', verdict='kept', remark='the worst pair found uses ... of the bound')
    """
    return look_at(_name(learner), of_learner(learner, mechanism, effort)).insist()


def check_mechanism(mechanism: Mechanism) -> Report:
    """Check a mechanism: its protocol, its costs, its noise, and whether that is enough for what it hides.

    >>> from taciturn import Gaussian
    >>> from taciturn.checks import check_mechanism
    >>> check_mechanism(Gaussian()).holds
    True
    """
    checks = of_strategy(mechanism) if isinstance(mechanism, PrefixSum) else of_mechanism(mechanism)
    return look_at(_name(mechanism), checks).insist()


def check_strategy(strategy: PrefixSum, lengths: tuple[int, ...] = strategies.LENGTHS) -> Report:
    """Check a strategy for running sums: its matrices, for these numbers of rows, and the mechanism that it makes.

    >>> from taciturn import BinaryTree
    >>> from taciturn.checks import check_strategy
    >>> check_strategy(BinaryTree(), lengths=(1, 5)).holds
    True
    """
    return look_at(_name(strategy), of_strategy(strategy, lengths)).insist()


def check_set(domain: ConvexSet, dimension: int | None = None) -> Report:
    """Check a convex set: its projection, radius and diameter, in one dimension or in several that it has.

    >>> from taciturn import L1Ball
    >>> from taciturn.checks import check_set
    >>> check_set(L1Ball(1.0), dimension=3).holds
    True
    """
    return look_at(_name(domain), of_set(domain, None if dimension is None else [dimension])).insist()


def check_loss(loss: ScalarLoss | VectorLoss, dimension: int = 4) -> Report:
    """Check a loss: its convexity, and every constant that it states.

    >>> from taciturn import Huber
    >>> from taciturn.checks import check_loss
    >>> check_loss(Huber(0.5)).holds
    True
    """
    return look_at(_name(loss), of_loss(loss, dimension)).insist()


def check_accountant(accountant: Accountant | None = None) -> Report:
    """Check an accountant, the package's own by default: composition, monotonicity, and what is known in closed form.

    >>> from taciturn.checks import check_accountant
    >>> check_accountant().holds
    True
    """
    accountant = Exact() if accountant is None else accountant
    return look_at(_name(accountant), of_accountant(accountant)).insist()


def _name(thing: object) -> str:
    return type(thing).__name__
