"""Checks and reports of many checks.

A check is a function of one argument, the object under test. It returns None or a remark. It raises `ContractBroken`
where the object violates its contract, and `unittest.SkipTest`, which pytest understands, where it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn
from unittest import SkipTest

from taciturn.errors import ContractBroken

CheckFunction = Callable[[Any], str | None]

COPY = "Copy an argument before changing it, and return new values."
OF_THE_NOISE = 1e-5
"""Rounding errors and lattice steps may change a noisy statistic by this fraction of its noise."""


@dataclass(frozen=True, eq=False)
class Check:
    """One property of one object: call it to test the property.

    >>> def is_positive(number):
    ...     "A number is larger than 0."
    ...     demand(number > 0, f"{number} is not positive", "Take its absolute value.")
    >>> check = Check(is_positive, 3)
    >>> str(check), check.promise, check()
    ('is_positive', 'A number is larger than 0.', None)
    """

    function: CheckFunction
    subject: Any
    case: str = ""

    def __call__(self) -> str | None:
        return self.function(self.subject)

    def __str__(self) -> str:
        return self.function.__name__ + (f", {self.case}" if self.case else "")

    @property
    def promise(self) -> str:
        """The property that is tested, in a sentence."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True)
class Outcome:
    """The result of a check."""

    check: str
    verdict: Literal["passed", "failed", "skipped"]
    remark: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:8}{self.check}" + (f": {self.remark}" if self.remark else "")


@dataclass(frozen=True, repr=False)
class Report:
    """Which checks of an object passed, which failed and which were skipped, each with its remark.

    >>> report = run_checks("3", [Check(lambda number: None, 3)])
    >>> report.holds, len(report.passed)
    (True, 1)
    """

    thing: str
    outcomes: tuple[Outcome, ...]

    def __repr__(self) -> str:
        counts = f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
        return "\n".join([f"{self.thing}: {counts}", *map(str, grouped(self.outcomes))])

    @property
    def passed(self) -> tuple[Outcome, ...]:
        """Checks that passed."""
        return self._all("passed")

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Checks that failed."""
        return self._all("failed")

    @property
    def skipped(self) -> tuple[Outcome, ...]:
        """Checks that do not apply; the remark says why."""
        return self._all("skipped")

    @property
    def holds(self) -> bool:
        """Whether no check failed, and some passed."""
        return not self.failed and bool(self.passed)

    def insist(self) -> Report:
        """The report, if it holds; else raise `ContractBroken` with every failed check."""
        if not self.holds:
            counts = f"{len(self.failed)} of {len(self.outcomes)} checks of {self.thing} failed"
            faults = [f"- {o.check}: {o.remark}" for o in grouped(self.failed)]
            raise ContractBroken("\n".join([f"{counts}:", *faults] if faults else [f"{counts}, and none passed."]))
        return self

    def _all(self, verdict: str) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.verdict == verdict)


def grouped(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Failures and skips that differ in numbers only are grouped into one, with the remark of the first.

    >>> faults = [Outcome(f"it_adds_up, {n} rows", "failed", f"off by {n / 10} for {n} rows.") for n in (2, 8)]
    >>> print(*grouped(faults))
    failed  it_adds_up, for 2, 8 rows: off by 0.2 for 2 rows.
    """
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        same = outcome.check, outcome.verdict, outcome.remark
        alone = outcome.verdict == "passed"
        groups.setdefault(same if alone else tuple(_NUMBER.sub("#", text) for text in same), []).append(outcome)
    return [replace(group[0], check=_cases(group)) for group in groups.values()]


_NUMBER = re.compile(r"-?\b(\d[\d.]*(e[+-]?\d+)?|inf|nan)\b")


def _cases(group: list[Outcome]) -> str:
    """The name of a check with the numbers of all its cases."""
    name, _, case = group[0].check.partition(", ")
    if len(group) == 1:
        return group[0].check
    numbers = ", ".join(number[0] for outcome in group if (number := _NUMBER.search(outcome.check)))
    return f"{name}, {'for ' * case[:1].isdigit()}{_NUMBER.sub(numbers, case, count=1)}"


def run_checks(thing: str, checks: Iterable[Check]) -> Report:
    """Run every check, whatever the results of the others."""
    return Report(thing, tuple(_outcome(check) for check in checks))


def _outcome(check: Check) -> Outcome:
    try:
        return Outcome(str(check), "passed", check() or "")
    except SkipTest as reason:
        return Outcome(str(check), "skipped", str(reason))
    except ContractBroken as fault:
        return Outcome(str(check), "failed", str(fault))
    except Exception as fault:  # code under test may raise anything
        return Outcome(str(check), "failed", f"it raised {type(fault).__name__}: {fault}")


def demand(holds: object, fault: str, remedy: str) -> None:
    """Raise `ContractBroken` with the fault and the remedy unless the condition `holds`.

    >>> demand(True, "nothing failed", "Do nothing.")
    """
    if not holds:
        raise ContractBroken(f"{fault}. {remedy}")


def skip(reason: str) -> NoReturn:
    """End a check that does not apply."""
    raise SkipTest(reason)
