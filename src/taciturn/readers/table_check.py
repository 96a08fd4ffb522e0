"""NOT PRIVATE: a dry run over a table, for the operator: what a contract does with its rows, and the users' rows.

It counts bad rows by column and reason, missing values, values outside of ranges, unknown categories, labels, rows that
are clipped, and features that never vary. Nothing is learnt, published or spent. What it counts is exact, so it stays
on the trusted side; and a contract that is changed because of it depends on the data, which no guarantee covers
(`TableCheck.remedies` say what to do instead).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taciturn.columns.kinds import Bad, Bins, Categories, Column, Date, Hashed, PrivateRange, Range, Text, Vocabulary
from taciturn.columns.target import Classes, Number, Positive, Target
from taciturn.columns.values import Values, time_of, unreadable_rows
from taciturn.contract.contract import Contract
from taciturn.kernel.accounting.gdp import epsilon_of
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.stream.participation import admit, canonical, new_records, periods_of
from taciturn.plan import Plan
from taciturn.readers.parsed import Parsed

SHARES = (50, 90, 99, 100)
"""Percentiles of rows per user that are shown."""

_SHOWN = 5  # unknown values of a column, if they are asked for
_MOST_VALUES = 10_000  # distinct unknown values that are counted, and reasons of bad rows
_FINE = 16  # bins of a histogram of factors, for each doubling
_MUCH = 0.05  # share of values, or of rows, from which on something is worth a remedy


@dataclass
class ColumnCheck:
    """What a column holds.

    Attributes
    ----------
    name : str
        Its name.
    values, missing : int
        Rows that could be parsed, and those of them without a value.
    below, above : int
        Values outside of the declared range, or the declared bins.
    unknown : int
        Values that are none of the declared ones.
    unknown_values : Counter
        How often each occurs; empty unless it was asked for.
    """

    name: str
    values: int = 0
    missing: int = 0
    below: int = 0
    above: int = 0
    unknown: int = 0
    unknown_values: Counter[str] = field(default_factory=Counter)

    def share(self, count: int) -> float:
        """The share of the values that are there."""
        return count / max(self.values - self.missing, 1)

    def as_data(self) -> dict[str, Any]:
        """As plain data; what does not occur is left out."""
        counts = {name: getattr(self, name) for name in ("missing", "below", "above", "unknown")}
        data: dict[str, Any] = {name: count for name, count in counts.items() if count}
        if self.unknown_values:
            data["unknown_values"] = dict(self.unknown_values.most_common(_SHOWN))
        return data

    def add(self, declared: Column | Target, values: Values, parsed: Bad, show: bool) -> None:
        """Add the values of some rows, of which those that are parsed count."""
        missing = values.missing()
        self.values += int(parsed.sum())
        self.missing += int((missing & parsed).sum())
        ends = _ends(declared)
        if ends is not None:
            numbers = declared.seconds(values) if isinstance(declared, Date) else values.numbers()
            self.below += int(((numbers < ends[0]) & parsed).sum())
            self.above += int(((numbers > ends[1]) & parsed).sum())
        vocabulary = _vocabulary(declared)
        if vocabulary is not None:
            unknown = (vocabulary.places(values)[0] < 0) & ~missing & parsed
            self.unknown += int(unknown.sum())
            if show and unknown.any():
                codes, texts = values.texts()
                for code, count in zip(*np.unique(codes[unknown], return_counts=True), strict=True):
                    text = str(texts[code])
                    if text in self.unknown_values or len(self.unknown_values) < _MOST_VALUES:
                        self.unknown_values[text] += int(count)


def _ends(declared: Column | Target) -> tuple[float, float] | None:
    if isinstance(declared, Range | Number):
        return declared.low, declared.high
    if isinstance(declared, Bins):
        return declared.edges[0], declared.edges[-1]
    return (time_of(declared.low), time_of(declared.high)) if isinstance(declared, Date) else None


def _vocabulary(declared: Column | Target) -> Vocabulary | None:
    if isinstance(declared, Categories):
        return Vocabulary(declared.values)
    return Vocabulary(declared.classes) if isinstance(declared, Classes) else None


@dataclass
class Clipping:
    """How long rows are, in terms of the feature bound; factors are counted in bins of 4 %.

    >>> clipping = Clipping()
    >>> clipping.add(np.array([0.5, 2.0, 2.0, 8.0]))
    >>> clipping.rows, clipping.clipped, round(clipping.median, 2), clipping.largest
    (4, 3, 2.04, 8.0)
    """

    rows: int = 0
    clipped: int = 0
    largest: float = 1.0
    _bins: Integers = field(default_factory=lambda: np.zeros(64 * _FINE, dtype=np.int64), repr=False)

    def add(self, factors: Array) -> None:
        """Add rows, by their norms divided by the bound."""
        self.rows += len(factors)
        long = factors[factors > 1.0 + 1e-9]
        self.clipped += len(long)
        if len(long):
            self.largest = max(self.largest, float(long.max()))
            places = np.minimum((np.log2(long) * _FINE).astype(np.int64), len(self._bins) - 1)
            np.add.at(self._bins, places, 1)

    @property
    def median(self) -> float:
        """The median factor of the rows that are clipped."""
        if not self.clipped:
            return 1.0
        middle = int(np.searchsorted(np.cumsum(self._bins), self.clipped / 2))
        return float(min(2.0 ** ((middle + 0.5) / _FINE), self.largest))

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        share = self.clipped / max(self.rows, 1)
        return {"rows": self.clipped, "share": share, "median_factor": self.median, "largest_factor": self.largest}


_PUBLIC = (
    "Choose from public knowledge, not from these numbers: a setting that was chosen by looking at the data is not "
    "private."
)


@dataclass
class TableCheck:
    """What a table holds, and what its users are promised. NOT PRIVATE.

    Attributes
    ----------
    rows, bad : int
        Rows, and those of them that are bad: examples without influence.
    users, without_id : int
        Distinct ids, and rows without one; 0 if the contract names no column of ids.
    counted, used : int
        Rows that count under the contract's bounds on users, and those of them that are good.
    rows_per_user : dict
        Rows of the user at each percentile.
    reasons : Counter
        Why values, labels or rows are bad, and how many; a row may have several reasons.
    columns, target : dict of ColumnCheck, ColumnCheck
        What the columns that are read hold.
    labels : Counter
        Rows of each class, good ones only; empty if the target is a number.
    clipping : Clipping, optional
        Norms of rows; None if ranges are found privately, since norms are not known before.
    constant : list of str
        Features that have one value in all good rows; of a hashed column, its name if all of its features have.
    """

    contract: Contract
    plan: Plan
    rows: int = 0
    bad: int = 0
    without_id: int = 0
    counted: int = 0
    used: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    columns: dict[str, ColumnCheck] = field(default_factory=dict)
    target: ColumnCheck = field(default_factory=lambda: ColumnCheck("target"))
    labels: Counter[str] = field(default_factory=Counter)
    clipping: Clipping | None = None
    _lowest: Array | None = field(default=None, repr=False)
    _highest: Array | None = field(default=None, repr=False)
    _rows_of: dict[Any, int] = field(default_factory=dict, repr=False)

    @property
    def users(self) -> int:
        return len(self._rows_of)

    @property
    def rows_per_user(self) -> dict[int, int]:
        each = sorted(self._rows_of.values()) or [0]
        return {share: each[math.ceil(share / 100 * len(each)) - 1] for share in SHARES}

    @property
    def constant(self) -> list[str]:
        if self._lowest is None or self._highest is None or self.rows - self.bad < 2:
            return []
        constant = self._lowest >= self._highest
        names: list[str] = []
        start = 0
        for column in self.contract.read:
            place = slice(start, start := start + column.width)
            if not isinstance(column, Hashed | Text):
                names += [name for name, same in zip(column.names, constant[place], strict=True) if same]
            elif constant[place].all():  # a bucket that nothing falls into is nothing unusual
                names.append(column.name)
        return names

    @property
    def unit(self) -> Any:
        """The contract's unit of privacy."""
        return self.plan.private.unit

    def promised(self, rows: int) -> float:
        """The epsilon, at the contract's delta, that a user with so many rows is promised.

        With a bound on users it is the contract's; for periods of the clock, that is about the rows of one period, and
        for periods of so many rows all of the table is counted. Without a bound, j rows are j steps from one neighbour
        to the next, and the whole sequence is `j·mu`-GDP for all of them: group privacy.
        """
        private = self.plan.private
        guarantee = private.guarantee
        by_rows = isinstance(self.unit, User) and isinstance(self.unit.period, int)
        if private.is_stream and by_rows:  # perhaps a row in each of so many
            periods = min(rows, math.ceil(self.rows / self.unit.period))
            return self.plan.stream.user_over(max(periods, 1)).epsilon(guarantee.claimed.delta)
        if isinstance(self.unit, User) or rows <= 1:
            return guarantee.epsilon
        delivered = guarantee.delivered
        return epsilon_of(guarantee.claimed.delta, rows * delivered.mu)

    @property
    def remedies(self) -> list[str]:
        """What to do about what was found, without choosing settings by the data."""
        said = []
        for column in self.columns.values():
            declared = next(each for each in self.contract.read if each.name == column.name)
            outside = column.share(column.below + column.above)
            if outside >= _MUCH:
                side = "above" if column.above > column.below else "below"
                wider = (
                    "a wider range"
                    if isinstance(declared, Date)
                    else 'a wider range, perhaps with scale = "log" or "symlog", or range = "private"'
                )
                said.append(
                    f"{outside:.0%} of the values of {column.name} lie outside of its range, most of them {side}: "
                    f"declare {wider}; if a number such as -999 stands for a missing value, write an empty cell where "
                    f"the file is made. {_PUBLIC}"
                )
            if (unknown := column.share(column.unknown)) >= _MUCH:
                said.append(
                    f"{unknown:.0%} of the values of {column.name} are none of its categories, and "
                    f"are 0 in all of its features: correct their spelling where the file is made, list the categories "
                    f"that are publicly known, or declare {{ hash = 256 }}. {_PUBLIC}"
                )
            if column.missing == column.values > 0:
                said.append(
                    f"no row has a value of {column.name}: declare {{ ignore = true }} if it is known to be empty; in "
                    "JSON lines, where nothing else checks names, see how it is spelt."
                )
            elif column.missing >= _MUCH * max(column.values, 1):
                indicator = isinstance(declared, Range | PrivateRange | Date)
                what = "indicator = true" if indicator else 'missing = "category"'
                if what.split(" ", maxsplit=1)[0] not in declared.declared():
                    said.append(
                        f"{column.missing / max(column.values, 1):.0%} of the values of {column.name} are missing: add "
                        f"{what} to learn from that, too."
                    )
        for kind, form in (
            ("number", "as in 4821.85, without separators of thousands, and with a point, not a comma"),
            ("date", "as in 2023-12-31, and not day.month.year or month/day/year"),
        ):
            wrong = f"is not a {kind}"
            texts = [name for name in self.columns if any(r.startswith(f"{name} {wrong}") for r in self.reasons)]
            if texts:
                said.append(
                    f"{', '.join(texts)}: write a {kind} {form}, and a missing one as an empty cell, or null, where "
                    "the file is made: a text such as NA or - is not a missing value, and makes a bad row."
                )
        if self.target.unknown:
            said.append(
                f"{self.target.unknown:,} labels are none of target.classes, and their rows are bad: add the classes "
                "that are publicly known, or use positive = [...] for some against the rest."
            )
        outside = self.target.share(self.target.below + self.target.above)
        if isinstance(self.contract.target, Number) and outside >= _MUCH:
            said.append(
                f"{outside:.0%} of the labels lie outside of the "
                f"target's range, and are clipped: declare a wider one, perhaps with a scale. {_PUBLIC}"
            )
        if isinstance(self.contract.target, Positive | Classes) and len(self.labels) == 1:
            said.append(
                f"all labels are {next(iter(self.labels))}: check the spelling of target.positive or target.classes."
            )
        if self.clipping is not None and self.clipping.clipped > 0.5 * max(self.clipping.rows, 1):
            said.append(
                f"{self.clipping.clipped / self.clipping.rows:.0%} of the rows are longer than feature_bound = "
                f"{self.contract.feature_bound:.3g} and are scaled down to it, which costs little accuracy: state a "
                "larger feature_bound only if public knowledge suggests it, since the noise grows with it."
            )
        if self.constant:
            listed = ", ".join(self.constant[:8]) + (f" and {len(self.constant) - 8} more" * (len(self.constant) > 8))
            said.append(
                f"these features never vary, and only add noise: {listed}. Remove them from the contract if they are "
                "known not to vary, or check how their columns are declared."
            )
        return said

    @property
    def conclusion(self) -> str:
        """How much can be learnt from the rows that have influence, by the noise of the plan."""
        several = isinstance(self.unit, User)
        rows = f"{self.used:,} of {self.rows:,} rows {'count and ' if several else ''}are good"
        if (learns := self.plan.learns_from(self.used)) == "enough":
            return f"{rows}: that many can outweigh the noise."
        much = "nothing useful" if learns == "nothing" else "little"
        remedies = [
            *(["correct the bad rows where the file is made"] if self.bad else []),
            "take a larger epsilon, more rows or fewer features",
            *(["decide on other rows_per_user"] if several else []),
        ]
        return f"{rows}: {much} can be learnt from that many at this budget. So {'; '.join(remedies)}. {_PUBLIC}"

    def as_data(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        data: dict[str, Any] = {
            "not_private": True,
            "rows": self.rows,
            "bad_rows": self.bad,
            "rows_with_influence": self.used,
            "conclusion": self.conclusion,
            "reasons": dict(self.reasons.most_common()),
            "columns": {name: column.as_data() for name, column in self.columns.items()},
            "target": self.target.as_data(),
            "labels": dict(self.labels),
            "clipped": None if self.clipping is None else self.clipping.as_data(),
            "constant_features": self.constant,
            "remedies": self.remedies,
        }
        if self.contract.user is not None:
            data |= {
                "user_column": self.contract.user,
                "users": self.users,
                "rows_without_id": self.without_id,
                "rows_per_user": {f"{share}%": rows for share, rows in self.rows_per_user.items()},
                "epsilon_promised": {f"{share}%": self.promised(rows) for share, rows in self.rows_per_user.items()},
                "rows_that_count": self.counted,
            }
        return data


def check_table(
    contract: Contract,
    plan: Plan,
    parts: Iterator[Parsed],
    tell: Callable[[int], None] = lambda rows: None,
    show_values: bool = False,
) -> TableCheck:
    """Read a whole table by a contract, as `taciturn learn` would; `tell` is called with the rows so far.

    Memory is constant, but for a number for each user, and for each unknown value with `show_values`.
    """
    check = TableCheck(contract, plan, target=ColumnCheck(contract.target.column))
    check.columns = {column.name: ColumnCheck(column.name) for column in contract.read}
    if not contract.found:
        check.clipping = Clipping()
    unit = plan.private.unit
    records = new_records(seed=0)
    for part in parts:
        rounds: Integers = np.arange(check.rows + 1, check.rows + len(part.lines) + 1)
        good = ~_count(check, part, show_values)
        if (users := part.users(contract)) is not None:
            for user in users.tolist():
                if user is None:
                    check.without_id += 1
                else:
                    named = canonical(user)  # as it is counted when it is learnt
                    check._rows_of[named] = check._rows_of.get(named, 0) + 1
            if isinstance(unit, User):
                blocks = plan.private.timetable.block_of(rounds)
                counts, records = admit(unit, records, users, blocks, periods_of(unit, rounds, None))
                check.counted += int(counts.sum())
                good = good & counts
        check.used += int(good.sum())
        check.rows += len(part.lines)
        tell(check.rows)
    if not isinstance(unit, User):
        check.counted = check.rows
    return check


def _count(check: TableCheck, part: Parsed, show_values: bool) -> Bad:
    """Count what the rows of a part hold, and return which are bad."""
    contract = check.contract
    X, y, bad = part.encode(contract, labelled=True)
    check.bad += int(bad.sum())
    parsed = np.ones(len(bad), dtype=np.bool_)
    parsed[list(part.broken)] = False
    check.reasons.update(part.broken.values())
    for column, declared in [*((check.columns[c.name], c) for c in contract.read), (check.target, contract.target)]:
        values = part.values[column.name]
        column.add(declared, values, parsed & ~unreadable_rows(values, len(parsed)), show_values)
    for row in np.flatnonzero(bad & parsed).tolist():
        check.reasons.update(part.errors(row, contract, labelled=True))
    good = ~bad
    if not good.any():
        return bad
    X, y = X[good], y[good]
    if contract.target.names:
        classes = (y > 0.0).astype(np.int64) if len(contract.target.names) == 2 else y.astype(np.int64)
        for place, count in zip(*np.unique(classes, return_counts=True), strict=True):
            check.labels[str(contract.target.names[place])] += int(count)
    if check.clipping is not None:
        problem = check.plan.private.problem
        check.clipping.add(np.linalg.norm(problem.mapped(X), axis=1) / problem.feature_bound)
    lowest, highest = X.min(axis=0), X.max(axis=0)
    check._lowest = lowest if check._lowest is None else np.minimum(check._lowest, lowest)
    check._highest = highest if check._highest is None else np.maximum(check._highest, highest)
    return bad
