"""The checks that apply to an object, and functions that run all of them."""

from __future__ import annotations

from typing import Any

from taciturn.calibration.mechanisms import PrefixSum
from taciturn.checks import (
    accountants,
    certificates,
    contributions,
    learners,
    ledgers,
    losses,
    mechanisms,
    readers,
    sets,
    stores,
    strategies,
    vector_losses,
    wiring,
)
from taciturn.checks.accountants import Accountant, Exact
from taciturn.checks.learners import LearnerCase
from taciturn.checks.ledgers import LedgerCase
from taciturn.checks.mechanisms import MechanismCase
from taciturn.checks.readers import ReaderCase
from taciturn.checks.stores import StoreCase
from taciturn.checks.suite import Check, Report, run_checks
from taciturn.errors import expect
from taciturn.kernel.learners.contributions import Contributions, EntryLearner, entry
from taciturn.kernel.problem.features import FeatureMap
from taciturn.kernel.problem.scalar_loss import ScalarLoss
from taciturn.kernel.problem.sets import ConvexSet
from taciturn.kernel.problem.vector_loss import VectorLoss
from taciturn.kernel.stream.protocols import Learner, Mechanism, complete, lacking


def checks_for(thing: Any) -> list[Check]:
    """Every check that applies to a learner, mechanism, strategy, set, loss or accountant, none of them run yet.

    A ledger or a store is given as a `LedgerCase` or a `StoreCase`, which says how to make it, and a reader as a
    `ReaderCase`, which has rows for it.

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
    if isinstance(thing, Mechanism) or not lacking(thing, Mechanism):
        return of_mechanism(thing)
    if isinstance(thing, LedgerCase):
        return of_ledger(thing)
    if isinstance(thing, StoreCase):
        return of_store(thing)
    if isinstance(thing, ReaderCase):
        return of_reader(thing)
    if isinstance(thing, Accountant):
        return of_accountant(thing)
    return of_learner(thing)


def _must_be(name: str, thing: object, right: bool, example: str) -> None:
    """Reject objects of another kind, and a class in place of an instance."""
    expect(name, thing, right and not isinstance(thing, type), example)


def of_learner(learner: Learner, mechanism: Mechanism | None = None, effort: int = 1) -> list[Check]:
    """Checks of its certificate, of its methods, and of the private stream built from it."""
    made = entry(learner)
    complete("a learner", made, Learner, "check_learner(IGD(problem))")
    case = LearnerCase(made, mechanism, effort)
    own = of_contribution(made.learner) if isinstance(made, Contributions) else []
    return [*own, *(Check(function, case) for function in (*certificates.CHECKS, *learners.CHECKS, *wiring.CHECKS))]


def of_contribution(learner: EntryLearner) -> list[Check]:
    """Checks that contributions depend on their row alone, and can be read."""
    learner = learner.learner if isinstance(learner, Contributions) else learner
    _must_be("an entry learner", learner, hasattr(learner, "contribution"), "one that has contribution() and form")
    return [Check(function, contributions.ContributionCase(learner)) for function in contributions.CHECKS]


def of_mechanism(mechanism: Mechanism) -> list[Check]:
    """Checks with a horizon, and without one."""
    complete("a mechanism", mechanism, Mechanism, "check_mechanism(Gaussian())")
    cases = {"": MechanismCase(mechanism), "no horizon": MechanismCase(mechanism, None)}
    return [Check(function, case, name) for name, case in cases.items() for function in mechanisms.CHECKS]


def of_strategy(strategy: PrefixSum, lengths: tuple[int, ...] = strategies.LENGTHS) -> list[Check]:
    """Checks of its matrices for these numbers of rows, and of the mechanism built from it."""
    made = isinstance(strategy, PrefixSum)
    _must_be("a strategy", strategy, made, "check_strategy(BLT()), a PrefixSum whose coder(n) makes the coders")
    cases = [strategies.Strategy(strategy, n) for n in lengths]
    dense = [Check(function, case, f"{case.n} rows") for function in strategies.CHECKS for case in cases]
    return [*dense, *of_mechanism(strategy)]


def of_set(domain: ConvexSet, dimensions: list[int] | None = None) -> list[Check]:
    """Checks in these dimensions, or in some that the set has."""
    _must_be("a set", domain, isinstance(domain, ConvexSet), "check_set(L2Ball(1.0))")
    cases = [sets.around(domain, d) for d in dimensions or sets.dimensions_of(domain)]
    names = {case.dimension: f"in {case.dimension} dimension{'s' * (case.dimension > 1)}" for case in cases}
    return [Check(function, case, names[case.dimension]) for function in sets.CHECKS for case in cases]


def of_loss(loss: ScalarLoss | VectorLoss, dimension: int = 4) -> list[Check]:
    """Checks of a scalar loss of `v·x`, or of a vector loss in some dimension."""
    _must_be("a loss", loss, isinstance(loss, ScalarLoss | VectorLoss), "check_loss(Logistic())")
    if isinstance(loss, ScalarLoss):
        return [Check(function, losses.predictions(loss)) for function in losses.CHECKS]
    return [Check(function, vector_losses.Points(loss, dimension)) for function in vector_losses.CHECKS]


def of_accountant(accountant: Accountant) -> list[Check]:
    """Checks of composition and conversion."""
    _must_be("an accountant", accountant, isinstance(accountant, Accountant), "check_accountant(), the package's own")
    return [Check(function, accountant) for function in accountants.CHECKS]


def of_ledger(case: LedgerCase) -> list[Check]:
    """Checks of reservations, commits, history and copies."""
    _must_be("a ledger", case, isinstance(case, LedgerCase), "check_ledger(LedgerCase(create, reopen))")
    return [Check(function, case) for function in ledgers.CHECKS]


def of_store(case: StoreCase) -> list[Check]:
    """Checks of commits, releases, ledgers, witnesses and encryption."""
    _must_be("a store", case, isinstance(case, StoreCase), "check_store(StoreCase(address))")
    return [Check(function, case) for function in stores.CHECKS]


def of_reader(case: ReaderCase) -> list[Check]:
    """Checks that rows and their fields are read by themselves, and of what follows for a stream."""
    _must_be("a reader", case, isinstance(case, ReaderCase), "check_reader(ReaderCase(read, rows, spoiled, private))")
    return [Check(function, case) for function in readers.CHECKS]


def check_learner(learner: Learner, mechanism: Mechanism | None = None, *, effort: int = 1) -> Report:
    """Check a learner: its certificate, its methods, and the private stream built from it.

    Parameters
    ----------
    learner : Learner
        On a problem of your choice. Try several: losses, sets, both neighbour relations.
    mechanism : Mechanism, optional
        The mechanism to use; by default one that accepts its certificate.
    effort : int
        Number of searches for worse neighbours.

    Examples
    --------
    >>> from taciturn import IGD, Hinge, L2Ball, Problem
    >>> from taciturn.checks import check_learner
    >>> report = check_learner(IGD(Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.5)))
    >>> print(report.outcomes[1])
    passed  certificate_survives_a_search: the worst pair found uses ... of the bound
    """
    return run_checks(_name(learner), of_learner(learner, mechanism, effort)).insist()


def check_contribution(learner: EntryLearner) -> Report:
    """Check what cannot be enforced of an entry learner: that a contribution depends on its row alone, and can be read.

    `check_learner` has these checks, too.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from taciturn import Index, L2Ball, Linear, Problem
    >>> from taciturn.checks import ContractBroken, check_contribution
    >>> class Remembering:
    ...     problem, form, seen = Problem(Linear(), L2Ball(1.0), 1, label_bound=1.0), Index(2), [0]
    ...
    ...     def contribution(self, row, label, released):
    ...         self.seen[0] += 1  # of the class: no copy forgets it
    ...         return self.seen[0] % 2
    ...
    ...     def decide(self, t, noisy, noise_sd):
    ...         return self.problem.domain.project(noisy[:1])
    >>> try:
    ...     check_contribution(Remembering())
    ... except ContractBroken as error:
    ...     print(error)
    1 of 2 checks of Remembering failed:
    - contribution_depends_on_its_row_alone: the contribution of a row is another one when it is computed again, ...
    """
    return run_checks(_name(learner), of_contribution(learner)).insist()


def check_mechanism(mechanism: Mechanism) -> Report:
    """Check a mechanism: its protocol, its costs, and whether its noise covers the certified sensitivity.

    >>> from taciturn import Gaussian
    >>> from taciturn.checks import check_mechanism
    >>> check_mechanism(Gaussian()).holds
    True
    """
    checks = of_strategy(mechanism) if isinstance(mechanism, PrefixSum) else of_mechanism(mechanism)
    return run_checks(_name(mechanism), checks).insist()


def check_strategy(strategy: PrefixSum, lengths: tuple[int, ...] = strategies.LENGTHS) -> Report:
    """Check a strategy for prefix sums: its matrices, for these numbers of rows, and the mechanism built from it.

    >>> from taciturn import BinaryTree
    >>> from taciturn.checks import check_strategy
    >>> check_strategy(BinaryTree(), lengths=(1, 5)).holds
    True
    """
    return run_checks(_name(strategy), of_strategy(strategy, lengths)).insist()


def check_set(domain: ConvexSet, dimension: int | None = None) -> Report:
    """Check a convex set: its projection, radius and diameter, in one dimension or in several.

    >>> from taciturn import L1Ball
    >>> from taciturn.checks import check_set
    >>> check_set(L1Ball(1.0), dimension=3).holds
    True
    """
    return run_checks(_name(domain), of_set(domain, None if dimension is None else [dimension])).insist()


def check_loss(loss: ScalarLoss | VectorLoss, dimension: int = 4) -> Report:
    """Check a loss: its convexity, and every constant it states.

    >>> from taciturn import Huber
    >>> from taciturn.checks import check_loss
    >>> check_loss(Huber(0.5)).holds
    True
    """
    return run_checks(_name(loss), of_loss(loss, dimension)).insist()


def check_accountant(accountant: Accountant | None = None) -> Report:
    """Check an accountant, the package's own by default: composition, monotonicity, and agreement with closed forms.

    >>> from taciturn.checks import check_accountant
    >>> check_accountant().holds
    True
    """
    accountant = Exact() if accountant is None else accountant
    return run_checks(_name(accountant), of_accountant(accountant)).insist()


def check_ledger(case: LedgerCase | None = None) -> Report:
    """Check a ledger, by default the package's own in memory: it admits what fits, and uses each state once.

    >>> from taciturn.checks import check_ledger
    >>> check_ledger().holds
    True
    """
    case = LedgerCase() if case is None else case
    return run_checks("the ledger", of_ledger(case)).insist()


def check_store(case: StoreCase) -> Report:
    """Check a store: a commit is one transaction of state, cost and releases, and each state has one successor.

    Parameters
    ----------
    case : StoreCase
        Where it finds empty databases.

    Examples
    --------
    >>> import itertools, tempfile
    >>> from taciturn.checks import StoreCase, check_store
    >>> numbers = itertools.count()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_store(StoreCase(lambda: f"{folder}/{next(numbers)}.db")).holds
    True
    """
    return run_checks("the store", of_store(case)).insist()


def check_reader(case: ReaderCase) -> Report:
    """Check a reader: whatever one row or one field holds, the others are read as before, and neighbours stay close.

    Each class of the package that encodes rows carries the marker `taciturn.kernel.problem.row_wise.RowWise`, and is
    checked so.

    Parameters
    ----------
    case : ReaderCase
        The reader, rows, spoiled variants of a row, and the private stream that learns from them.

    Examples
    --------
    >>> from taciturn import QFTL, BLT, L2Ball, Privacy, Private, Problem, Squared, every
    >>> from taciturn.checks import ReaderCase, Spoiled, check_reader
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=1, label_bound=1.0, neighbours="label", on_bad="zero")
    >>> private = Private(QFTL(problem), BLT(), every(2), Privacy(1.0, 1e-6), horizon=4)
    >>> import numpy as np
    >>> def number(text):
    ...     try:
    ...         return float(text)
    ...     except ValueError:
    ...         return np.nan
    >>> def read(lines):
    ...     X, y = np.array([[number(text) for text in line.split()] for line in lines]).T
    ...     return [(X[:, None], y, None)]
    >>> def spoiled(line):
    ...     yield Spoiled("a word for a label", line.split()[0] + " seven", "label")
    ...     yield Spoiled("a word for a feature", "one 1.0", "features")
    >>> print(check_reader(ReaderCase(read, ["0.5 1.0", "0.7 -1.0", "-0.1 0.2", "1.0 0.0"], spoiled, private)))
    ReaderCase: 7 passed, 0 failed, 2 skipped
    ...
    """
    return run_checks(_name(case), of_reader(case)).insist()


def check_map(features: FeatureMap, dimension: int) -> Report:
    """Check a map of features: the image of a row does not depend on the other rows, nor on how they lie in memory.

    Parameters
    ----------
    features : FeatureMap
        The map.
    dimension : int
        Number of raw features of a row.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from taciturn import FeatureMap
    >>> from taciturn.checks import ContractBroken, check_map
    >>> @dataclass(frozen=True)
    ... class Centred(FeatureMap):
    ...     def width(self, dimension):
    ...         return dimension
    ...
    ...     def __call__(self, X):
    ...         return X - X.mean(axis=0)
    >>> try:
    ...     check_map(Centred(), 2)
    ... except ContractBroken as error:
    ...     print(error)
    3 of 9 checks of Centred failed:
    - other_rows_stay_the_same: another row is read otherwise where one is of nan. ...
    """
    _must_be("a map", features, isinstance(features, FeatureMap), "check_map(RandomFeatures(4, 1.0), dimension=2)")
    return run_checks(_name(features), of_reader(readers.case_of_map(features, dimension))).insist()


def _name(thing: object) -> str:
    return type(thing).__name__
