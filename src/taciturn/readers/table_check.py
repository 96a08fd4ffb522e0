"""NOT PRIVATE: a dry run over a table, for the operator: bad rows, and how many rows the users have.

Nothing is learnt, published or spent. What it counts is exact, so it stays on the trusted side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taciturn._util.arrays import Integers
from taciturn.accounting.gdp import epsilon_of
from taciturn.accounting.unit import User
from taciturn.contract.contract import Contract
from taciturn.core.participation import admit, canonical, new_records, periods_of
from taciturn.core.private import Private
from taciturn.plan import Plan
from taciturn.readers.rows import Batch

SHARES = (50, 90, 99, 100)
"""Percentiles of rows per user that are shown."""


@dataclass
class TableCheck:
    """What a table holds, and what its users are promised. NOT PRIVATE.

    Attributes
    ----------
    rows, bad : int
        Rows, and those of them that are bad: examples without influence.
    users, without_id : int
        Distinct ids, and rows without one; 0 if the contract names no column of ids.
    counted : int
        Rows that count under the contract's bounds on users.
    rows_per_user : dict
        Rows of the user at each percentile.
    """

    contract: Contract
    plan: Plan
    rows: int = 0
    bad: int = 0
    without_id: int = 0
    counted: int = 0
    _rows_of: dict[Any, int] = field(default_factory=dict, repr=False)

    @property
    def users(self) -> int:
        return len(self._rows_of)

    @property
    def rows_per_user(self) -> dict[int, int]:
        each = sorted(self._rows_of.values()) or [0]
        return {share: each[math.ceil(share / 100 * len(each)) - 1] for share in SHARES}

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
        if isinstance(private, Private) and by_rows:  # perhaps a row in each of so many
            periods = min(rows, math.ceil(self.rows / self.unit.period))
            return private.user_over(max(periods, 1)).epsilon(guarantee.claimed.delta)
        if isinstance(self.unit, User) or rows <= 1:
            return guarantee.epsilon
        delivered = guarantee.delivered
        return epsilon_of(guarantee.claimed.delta, rows * delivered.mu)

    def as_data(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        data: dict[str, Any] = {"not_private": True, "rows": self.rows, "bad_rows": self.bad}
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
    contract: Contract, plan: Plan, batches: Iterator[Batch], tell: Callable[[int], None] = lambda rows: None
) -> TableCheck:
    """Read a whole table by a contract, as `taciturn learn` would; `tell` is called with the rows so far."""
    check = TableCheck(contract, plan)
    unit = plan.private.unit
    records = new_records(seed=0)
    for batch in batches:
        rounds: Integers = np.arange(check.rows + 1, check.rows + len(batch.y) + 1)
        check.bad += int(np.isnan(batch.y).sum())
        if batch.users is not None:
            for user in batch.users.tolist():
                if user is None:
                    check.without_id += 1
                else:
                    named = canonical(user)  # as it is counted when it is learnt
                    check._rows_of[named] = check._rows_of.get(named, 0) + 1
            if isinstance(unit, User):
                blocks = plan.private.timetable.block_of(rounds)
                counts, records = admit(unit, records, batch.users, blocks, periods_of(unit, rounds, None))
                check.counted += int(counts.sum())
        check.rows += len(batch.y)
        tell(check.rows)
    if not isinstance(unit, User):
        check.counted = check.rows
    return check
