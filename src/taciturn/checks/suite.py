"""What a check is, and the report of many.

A check is a function of one argument, what it looks at. It returns nothing, or a remark; it raises `ContractBroken`
where a promise is not kept, and `unittest.SkipTest`, which pytest understands, where there is nothing to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn
from unittest import SkipTest

from taciturn.errors import ContractBroken

Look = Callable[[Any], str | None]

COPY = "Copy what you change: verbs are given values, and return new ones."
OF_THE_NOISE = 1e-5
"""Rounding errors and lattice steps may move a noisy row by this share of its noise."""


@dataclass(frozen=True, eq=False)
class Check:
    """One promise of one thing: call it to see whether it is kept.

    >>> def is_positive(number):
    ...     "A number is larger than 0."
    ...     demand(number > 0, f"{number} is not positive", "Take its absolute value.")
    >>> check = Check(is_positive, 3)
    >>> str(check), check.promise, check()
    ('is_positive', 'A number is larger than 0.', None)
    """

    look: Look
    subject: Any
    case: str = ""

    def __call__(self) -> str | None:
        return self.look(self.subject)

    def __str__(self) -> str:
        return self.look.__name__ + (f", {self.case}" if self.case else "")

    @property
    def promise(self) -> str:
        """What is looked at, in a sentence."""
        return (self.look.__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True)
class Outcome:
    """What became of a check."""

    check: str
    verdict: Literal["kept", "broken", "skipped"]
    remark: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:8}{self.check}" + (f": {self.remark}" if self.remark else "")


@dataclass(frozen=True, repr=False)
class Report:
    """Which promises of a thing were kept, which broken, and which skipped, each with a remark where there is one.

    >>> report = look_at("3", [Check(lambda number: None, 3)])
    >>> report.holds, len(report.kept)
    (True, 1)
    """

    thing: str
    outcomes: tuple[Outcome, ...]

    def __repr__(self) -> str:
        counts = f"{len(self.kept)} kept, {len(self.broken)} broken, {len(self.skipped)} skipped"
        return "\n".join([f"{self.thing}: {counts}", *map(str, grouped(self.outcomes))])

    @property
    def kept(self) -> tuple[Outcome, ...]:
        """Checks that found nothing wrong."""
        return self._all("kept")

    @property
    def broken(self) -> tuple[Outcome, ...]:
        """Checks that did."""
        return self._all("broken")

    @property
    def skipped(self) -> tuple[Outcome, ...]:
        """Checks that had nothing to look at; the remark says why."""
        return self._all("skipped")

    @property
    def holds(self) -> bool:
        """Whether no promise was broken, and some were kept."""
        return not self.broken and bool(self.kept)

    def insist(self) -> Report:
        """The report, if it holds; else `ContractBroken`, with every broken promise."""
        if not self.holds:
            counts = f"{len(self.broken)} of {len(self.outcomes)} promises of {self.thing} are broken"
            faults = [f"- {o.check}: {o.remark}" for o in grouped(self.broken)]
            raise ContractBroken("\n".join([f"{counts}:", *faults] if faults else [f"{counts}, and none was kept."]))
        return self

    def _all(self, verdict: str) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.verdict == verdict)


def grouped(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Faults and skips that are the same in several cases, but for numbers, as one, with the remark of the first.

    >>> faults = [Outcome(f"it_adds_up, {n} rows", "broken", f"off by {n / 10} for {n} rows.") for n in (2, 8)]
    >>> print(*grouped(faults))
    broken  it_adds_up, for 2, 8 rows: off by 0.2 for 2 rows.
    """
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        same = outcome.check, outcome.verdict, outcome.remark
        alone = outcome.verdict == "kept"
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


def look_at(thing: str, checks: Iterable[Check]) -> Report:
    """Make every check, whatever the others found."""
    return Report(thing, tuple(_outcome(check) for check in checks))


def _outcome(check: Check) -> Outcome:
    try:
        return Outcome(str(check), "kept", check() or "")
    except SkipTest as reason:
        return Outcome(str(check), "skipped", str(reason))
    except ContractBroken as fault:
        return Outcome(str(check), "broken", str(fault))
    except Exception as fault:  # what is checked may do anything
        return Outcome(str(check), "broken", f"it raised {type(fault).__name__}: {fault}")


def demand(kept: object, fault: str, remedy: str) -> None:
    """Go on if `kept`; else say what broke, and what to do.

    >>> demand(True, "nothing broke", "Do nothing.")
    """
    if not kept:
        raise ContractBroken(f"{fault}. {remedy}")


def skip(reason: str) -> NoReturn:
    """End a check that has nothing to look at."""
    raise SkipTest(reason)
