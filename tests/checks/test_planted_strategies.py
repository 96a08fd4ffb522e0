"""Each check of a strategy catches the fault that it is there for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from taciturn import BLT, SquareRoot
from taciturn.calibration.mechanisms import PrefixSum
from taciturn.checks import Check, ContractBroken, check_strategy, checks_for
from taciturn.checks.all import of_strategy
from taciturn.checks.strategies import patterns
from taciturn.checks.suite import run_checks
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.mechanisms.sqrt import RootCoder
from taciturn.kernel.mechanisms.tree import TreeCoder

pytestmark = pytest.mark.privacy


def broken(checks: list[Check]) -> set[str]:
    return {outcome.check for outcome in run_checks("it", checks).failed}


@dataclass(frozen=True)
class Using(PrefixSum):
    """The strategy of another coder."""

    kind: Any

    def coder(self, n):
        n = self.needs(n)
        honest = BLT(2).coder(n)
        if issubclass(self.kind, BLTCoder):
            return self.kind(n, honest.decays, honest.inverse_decays)
        return self.kind(n, True) if issubclass(self.kind, TreeCoder) else self.kind(n)


class FalseColumn(RootCoder):
    """A sensitivity that is 5 % too small: all noise is."""

    @property
    def sensitivity(self):
        return 0.95 * super().sensitivity


class TooFarApart(RootCoder):
    """The rows of a unit one block further apart than they must be."""

    def sensitivity_to(self, participation):
        return super().sensitivity_to(replace(participation, apart=participation.apart + 1))


class OneDirection(RootCoder):
    """Every second column is multiplied by -1, and the rows of a unit are taken to be moved in one direction."""

    def encode(self, secret, row, k):
        return super().encode(secret, row * (-1.0) ** k, k)

    def sensitivity_to(self, participation):
        _, C = self.matrices(self.n)
        return float(np.max(np.linalg.norm(C @ patterns(self.n, participation).T, axis=0)))


class Forgetting(BLTCoder):
    """Decodes with one of its buffers left as it was."""

    def decode(self, public, noisy, k):
        after, total = super().decode(public, noisy, k)
        after = {name: array.copy() for name, array in after.items()}
        for name in after:
            if after[name].ndim == 2:
                after[name][0] = public[name][0]
        return after, total


class Ahead(RootCoder):
    """Encodes a constant, which is a share of rows to come."""

    def encode(self, secret, row, k):
        secret, rows = super().encode(secret, row, k)
        return secret, rows + 1e-3


class Quiet(RootCoder):
    """Says that sums are less noisy than they are."""

    def error(self, k):
        return 0.9 * super().error(k)


class OneAtATime(RootCoder):
    """Knows the error of one sum only."""

    def error(self, k):
        return float(super().error(k))


class OnlyMany(RootCoder):
    """Knows the errors of an array of sums only."""

    def error(self, k):
        return super().error(np.arange(1, len(k) + 1))


class Magnified(RootCoder):
    """The same with C three times as large: right in all else."""

    sensitivity = property(lambda self: 3.0 * RootCoder.sensitivity.fget(self))
    row_norm = property(lambda self: 3.0 * RootCoder.row_norm.fget(self))
    rounding_error = property(lambda self: 3.0 * RootCoder.rounding_error.fget(self))

    def encode(self, secret, row, k):
        return super().encode(secret, 3.0 * row, k)

    def decode(self, public, noisy, k):
        return super().decode(public, noisy / 3.0, k)

    def error(self, k):
        return super().error(k) / 3.0


class Narrow(RootCoder):
    """A row norm that rows exceed."""

    @property
    def row_norm(self):
        return 0.9 * float(np.sum(self.coefficients))


class Exactly(RootCoder):
    """Says that floats are exact, and adds up in half precision."""

    @property
    def rounding_error(self):
        return 0.0

    def encode(self, secret, row, k):
        secret, rows = super().encode(secret, row, k)
        return secret, rows.astype(np.float32).astype(float)


class OfAnEntry(RootCoder):
    """Rounds entries to a grid, and states the error of one entry for that of a row."""

    @property
    def rounding_error(self):
        return super().rounding_error + 2.0**-21

    def encode(self, secret, row, k):
        secret, rows = super().encode(secret, row, k)
        return secret, np.rint(rows * 2.0**20) * 2.0**-20


class Halving(TreeCoder):
    """Says that integers stay exact, and they do not."""

    def encode(self, secret, row, k):
        secret, rows = super().encode(secret, row, k)
        return secret, (rows // 2 * 2).astype(rows.dtype) if rows.dtype.kind == "i" else rows


class Miscounting(TreeCoder):
    """The number of a row's release is off by one."""

    def release_of(self, row):
        return super().release_of(row) + (row > 5)


class Overwriting(TreeCoder):
    """Writes into its memory."""

    def encode(self, secret, row, k):
        after, rows = super().encode(secret, row, k)
        secret["nodes"][:] = after["nodes"]
        return after, rows


STRATEGIES = {
    "sensitivity_bounds_the_columns": FalseColumn,
    "no_entry_is_larger_than_one": Magnified,
    "sensitivity_to_bounds_every_pattern": TooFarApart,
    "matrices_factor_the_prefix_sum": Forgetting,
    "encoding_is_causal": Ahead,
    "errors_are_the_row_norms_of_the_decoder": Quiet,
    "row_norm_bounds_the_encoder": Narrow,
    "rounding_error_is_a_bound": Exactly,
    "row_counts_are_consistent": Miscounting,
    "encode_and_decode_do_not_modify_arguments": Overwriting,
}


@pytest.mark.parametrize("check", STRATEGIES)
def test_a_fault_of_a_strategy_is_caught(check):
    """By the check that is meant to."""
    assert f"{check}, 13 rows" in broken(of_strategy(Using(STRATEGIES[check]), (1, 13)))


def test_rows_of_a_unit_that_move_in_two_directions_are_caught():
    assert "sensitivity_to_bounds_every_pattern, 13 rows" in broken(of_strategy(Using(OneDirection), (13,)))


def test_the_error_of_an_entry_is_not_that_of_a_row():
    assert "rounding_error_is_a_bound, 13 rows" in broken(of_strategy(Using(OfAnEntry), (13,)))


def test_integers_that_do_not_stay_exact_are_caught():
    assert "rounding_error_is_a_bound, 13 rows" in broken(of_strategy(Using(Halving), (13,)))


def test_every_check_of_a_strategy_has_a_fault():
    dense = [check for check in checks_for(SquareRoot()) if check.case.endswith("rows")]
    assert {check.function.__name__ for check in dense} == set(STRATEGIES)


@pytest.mark.parametrize("kind", [RootCoder, BLTCoder, TreeCoder])
def test_the_coders_themselves_are_not_what_is_caught(kind):
    assert check_strategy(Using(kind)).holds


def test_the_message_names_the_column():
    """Which, how long, and what was said."""
    with pytest.raises(ContractBroken, match=r"column 1 of C has length .* sensitivity says .* rounded up"):
        check_strategy(Using(FalseColumn))


@pytest.mark.parametrize("kind", [OneAtATime, OnlyMany])
def test_errors_of_one_and_of_many_are_both_required(kind):
    """And the message says so."""
    with pytest.raises(ContractBroken, match="a number for a number k, an array for an array of them"):
        check_strategy(Using(kind), lengths=(13,))
