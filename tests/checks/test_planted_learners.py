"""Each check of a learner catches the fault that it is there for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from instances import LEARNERS, Distance
from taciturn import (
    FTL,
    FTRL,
    GIGA,
    IGD,
    BinaryTree,
    Gaussian,
    Hinge,
    L2Ball,
    Ledger,
    Logistic,
    Private,
    Problem,
    Squared,
    experts,
)
from taciturn.checks import ContractBroken, check_learner, checks_for
from taciturn.checks.all import of_learner
from taciturn.checks.suite import run_checks
from taciturn.kernel.learners import igd_pass
from taciturn.kernel.learners.exact_sums import rounded
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.mechanisms import prefix_sum
from taciturn.kernel.problem.losses import Nearness
from taciturn.kernel.problem.sets import WholeSpace
from taciturn.kernel.stream import loop, passes
from taciturn.kernel.stream import stream as wiring
from taciturn.kernel.stream.protocols import Certificate, Mechanism
from taciturn.kernel.stream.schedule import Timetable

pytestmark = pytest.mark.privacy

DISC = Problem(Hinge(), L2Ball(1.0), 2, ridge=0.5)
SMOOTH = Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5)
TOTAL = VectorSum(Problem(Nearness(), WholeSpace(), 2))


@dataclass(frozen=True)
class Wrapped:
    """Another learner, as it is; faults override a verb."""

    learner: Any

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "learner"), name)

    def on_problem(self, problem):
        return replace(self, learner=self.learner.on_problem(problem))


class Short(Wrapped):
    """A certificate that is 5 % too small."""

    @property
    def certificate(self):
        honest = self.learner.certificate
        return replace(honest, bound=lambda t: 0.95 * honest.bound(t))


class OneRelation(Wrapped):
    """A certificate for zero-out, whatever the problem's relation is."""

    @property
    def certificate(self):
        return VectorSum(replace(self.learner.problem, neighbours="zero-out")).certificate


class Late(Wrapped):
    """A certificate that falls as 1/t² from the seventh example on."""

    @property
    def certificate(self):
        honest = self.learner.certificate
        return replace(honest, bound=lambda t: honest.bound(t) * np.minimum(1.0, 7.0 / t))


class Silent(Wrapped):
    """A certificate of 0 before the third example."""

    @property
    def certificate(self):
        honest = self.learner.certificate
        return replace(honest, bound=lambda t: np.where(t < 3, 0.0, honest.bound(t)))


class Unproven(Wrapped):
    """No lemma."""

    @property
    def certificate(self):
        return replace(self.learner.certificate, lemma="")


class Small(Wrapped):
    """A magnitude that rows exceed."""

    @property
    def certificate(self):
        return replace(self.learner.certificate, magnitude=1e-3)


class ShortRows(Wrapped):
    """A norm that contributions exceed."""

    @property
    def certificate(self):
        return replace(self.learner.certificate, norm=1e-3)


class InPlace(Wrapped):
    """Adds into the state that it was given."""

    def absorb(self, exact, t, X, y, point):
        exact["sum"] += self.learner.absorb(self.learner.start(), t, X, y, point)["sum"]
        return exact


class Eager(Wrapped):
    """Empties the state that it was given."""

    def statistic(self, exact, t):
        row = exact["sum"].copy()
        exact["sum"][:] = 0.0
        return exact, row


class Scribbling(Wrapped):
    """Scales the examples that it was given."""

    def absorb(self, exact, t, X, y, point):
        X *= 0.5
        return self.learner.absorb(exact, t, X, y, point)


@dataclass(frozen=True)
class Absent(Wrapped):
    """Remembers outside its state."""

    seen: list[int] = field(default_factory=lambda: [0], compare=False)

    def absorb(self, exact, t, X, y, point):
        self.seen[0] += 1
        return self.learner.absorb(exact, t, X * 0.99 ** self.seen[0], y, point)


class Sharing(Wrapped):
    """Decides into one and the same array."""

    here = np.zeros(2)

    def decide(self, t, noisy, noise_sd):
        return self.here


class Whispering(Wrapped):
    """Keeps its exact row on itself, and adds a little of it to the point."""

    def statistic(self, exact, t):
        after, row = self.learner.statistic(exact, t)
        object.__setattr__(self, "stored", row)
        return after, row

    def decide(self, t, noisy, noise_sd):
        point = self.learner.decide(t, noisy, noise_sd)
        return self.problem.domain.project(point + 1e-9 * self.__dict__.get("stored", 0.0))


LATEST = {"length": 0.0}


class Gossiping(Wrapped):
    """Keeps how long the examples were in a global, and shrinks the point by it."""

    def absorb(self, exact, t, X, y, point):
        LATEST["length"] = float(np.sum(X * X))
        return self.learner.absorb(exact, t, X, y, point)

    def decide(self, t, noisy, noise_sd):
        return self.learner.decide(t, noisy, noise_sd) / (1.0 + LATEST["length"])


class Deaf(Wrapped):
    """Takes nothing in: no stream would change anything that it stores."""

    def absorb(self, exact, t, X, y, point):
        return exact


class OutsideTheSet(Wrapped):
    """Decides outside the domain."""

    def decide(self, t, noisy, noise_sd):
        return noisy


class Blockwise(Wrapped):
    """Takes the mean of a block for a block."""

    def absorb(self, exact, t, X, y, point):
        if not len(y):
            return exact
        return self.learner.absorb(exact, t, np.repeat(X.mean(axis=0)[None], len(y), axis=0), y, point)


class Adding(Wrapped):
    """Adds floats that are on no lattice, a block at a time."""

    def absorb(self, exact, t, X, y, point):
        return {"sum": exact["sum"] + (X / 3.0).sum(axis=0)}


class Listing(Wrapped):
    """Keeps a list among its arrays, which is an array when it comes back from a file."""

    def start(self):
        return {**self.learner.start(), "lengths": []}

    def absorb(self, exact, t, X, y, point):
        lengths = exact["lengths"] + [float(x @ x) for x in X]
        shrunk = X / np.sqrt(1.0 + len(lengths))
        return {**self.learner.absorb(exact, t, shrunk, y, point), "lengths": lengths}

    def statistic(self, exact, t):
        after, row = self.learner.statistic(exact, t)
        return {**after, "lengths": exact["lengths"]}, row


class Hoarding(Wrapped):
    """A statistic of all examples so far, in place of those since the last release."""

    def statistic(self, exact, t):
        return exact, exact["sum"]


class Linearised(Wrapped):
    """Gradients at its own exact leader, which every example has moved: the certificate of FTRL does not hold."""

    def start(self):
        return {"sum": np.zeros(2), "all": np.zeros(2)}

    def absorb(self, exact, t, X, y, point):
        total, all_of_it = exact["sum"], exact["all"]
        for v, label in zip(X, y, strict=True):
            at = self.problem.domain.project(-all_of_it)
            gradient = self.learner.absorb({"sum": np.zeros(2)}, t, v[None], np.array([label]), at)["sum"]
            total, all_of_it = total + gradient, all_of_it + gradient
        return {"sum": total, "all": all_of_it}

    def statistic(self, exact, t):
        return {"sum": np.zeros(2), "all": exact["all"]}, exact["sum"]


class OwnCentre(Wrapped):
    """Curvature around its own exact leader, which is not released."""

    def start(self):
        return {"sum": np.zeros(2), "all": np.zeros(2)}

    def absorb(self, exact, t, X, y, point):
        plain = FTRL(self.problem)
        total, all_of_it = exact["sum"], exact["all"]
        for v, label in zip(X, y, strict=True):
            gradient = plain.absorb({"sum": np.zeros(2)}, t, v[None], np.array([label]), point)["sum"]
            centre = self.problem.domain.project(-all_of_it)
            total, all_of_it = total + gradient - rounded(self.learner.curvature * centre, 8.0), all_of_it + gradient
        return {"sum": total, "all": all_of_it}

    def statistic(self, exact, t):
        return {"sum": np.zeros(2), "all": exact["all"]}, exact["sum"]


class SecretCount(Wrapped):
    """Curvature for the examples that have influence only: their number is not public."""

    def absorb(self, exact, t, X, y, point):
        after = self.learner.absorb(exact, t, X, y, point)["sum"]
        without = int(np.count_nonzero(~X.any(axis=1)))
        return {"sum": after + without * rounded(self.learner.curvature * point, self.learner.magnitude)}


@dataclass(frozen=True)
class Hasty(IGD):
    """Has a fast path of its own."""


class HastyIterates(igd_pass.Iterates):
    """Many rows at once, the last of them forgotten."""

    @staticmethod
    def of(learner):
        return HastyIterates(learner, igd_pass.steps_of(IGD(learner.problem)))

    def __call__(self, exact, t, X, y, rounds):
        end, rows = super().__call__(exact, t, X, y, rounds)
        rows[-1] = rows[0] if len(rows) > 1 else self.learner.problem.first_point
        return end, rows


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setitem(passes.STATISTICS, Hasty, HastyIterates.of)


class Telling(Mechanism):
    """Noise whose standard deviation is told by the row, in every release."""

    accepts = "l2/tail"

    def calibrate(self, *settings):
        return Told(Gaussian().calibrate(*settings))


class Told:
    """That noise."""

    def __init__(self, honest):
        self.honest = honest

    def __getattr__(self, name):
        return getattr(self.honest, name)

    def decode(self, public, noisy, k):
        public, row, sd = self.honest.decode(public, noisy, k)
        return public, row, sd * (1.0 + abs(float(row[0])))


FAULTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "short igd": ("certificate_survives_linear_losses", lambda: Short(IGD(SMOOTH))),
    "short giga": ("certificate_survives_linear_losses", lambda: Short(GIGA(SMOOTH))),
    "short ftl": ("certificate_survives_linear_losses", lambda: Short(FTL(SMOOTH))),
    "short mean": ("certificate_survives_linear_losses", lambda: Short(LEARNERS["mean of igd"])),
    "short igd, kinked": ("certificate_survives_a_search", lambda: Short(IGD(DISC))),
    "short ftl, kinked": ("certificate_survives_a_search", lambda: Short(FTL(DISC))),
    "short ftrl": ("certificate_survives_a_search", lambda: Short(FTRL(DISC))),
    "short qftl": ("certificate_survives_a_search", lambda: Short(LEARNERS["qftl"])),
    "short total": ("certificate_survives_a_search", lambda: Short(TOTAL)),
    "short total, zero-out": ("certificate_survives_a_search", lambda: Short(LEARNERS["total, zero-out"])),
    "short qftl, label": ("certificate_survives_a_search", lambda: Short(LEARNERS["qftl, label"])),
    "short ftrl, label": ("certificate_survives_a_search", lambda: Short(LEARNERS["ftrl, label"])),
    "one relation for both": (
        "certificate_of_the_other_relation_survives_a_search",
        lambda: OneRelation(LEARNERS["total, zero-out"]),
    ),
    "short experts": ("certificate_survives_a_search", lambda: Short(experts(3))),
    "short ewoo": ("certificate_survives_a_search", lambda: Short(LEARNERS["ewoo"])),
    "short on vectors": ("certificate_survives_a_search", lambda: Short(GIGA(NEAR))),
    "falls too fast": ("certificate_survives_linear_losses", lambda: Late(IGD(SMOOTH))),
    "silent": ("zero_certificate_means_no_change", lambda: Silent(IGD(DISC))),
    "no lemma": ("certificate_is_complete", lambda: Unproven(IGD(DISC))),
    "a small magnitude": ("statistics_and_points_have_the_stated_size", lambda: Small(IGD(DISC))),
    "a small norm": ("statistics_and_points_have_the_stated_size", lambda: ShortRows(TOTAL)),
    "a small magnitude cuts": ("without_noise_releases_are_exact", lambda: Small(TOTAL)),
    "adds in place": ("absorb_and_statistic_are_pure", lambda: InPlace(TOTAL)),
    "empties in place": ("absorb_and_statistic_are_pure", lambda: Eager(TOTAL)),
    "changes examples": ("absorb_and_statistic_are_pure", lambda: Scribbling(TOTAL)),
    "remembers elsewhere": ("absorb_and_statistic_are_pure", lambda: Absent(TOTAL)),
    "shares a point": ("decide_is_pure", lambda: Sharing(IGD(DISC))),
    "keeps the exact row": ("decide_is_pure", lambda: Whispering(IGD(DISC))),
    "keeps the exact row of a sum": ("decide_is_pure", lambda: Whispering(FTRL(DISC))),
    "keeps lengths in a global": ("decide_is_pure", lambda: Gossiping(GIGA(SMOOTH))),
    "learns nothing": ("decide_is_pure", lambda: Deaf(IGD(DISC))),
    "decides outside": ("statistics_and_points_have_the_stated_size", lambda: OutsideTheSet(IGD(DISC))),
    "by blocks": ("batch_sizes_do_not_matter", lambda: Blockwise(IGD(DISC))),
    "keeps a list": ("a_saved_state_resumes", lambda: Listing(TOTAL)),
    "never empties": ("one_example_changes_one_statistic", lambda: Hoarding(TOTAL)),
    "at its own iterates": (
        "one_example_changes_one_statistic",
        lambda: Linearised(FTRL(Problem(Squared(), L2Ball(1.0), 2, 1.0, 1.0))),
    ),
    "curvature around its own leader": (
        "one_example_changes_one_statistic",
        lambda: OwnCentre(FTRL(DISC, curvature=0.5)),
    ),
    "curvature for a secret number of rows": (
        "certificate_survives_a_search",
        lambda: SecretCount(FTRL(replace(DISC, neighbours="zero-out"), curvature=0.5)),
    ),
    "short curved ftrl": ("certificate_survives_a_search", lambda: Short(FTRL(DISC, curvature=0.5))),
    "all rows but the last": ("compiled_statistics_match_definition", lambda: Hasty(DISC)),
}
NEAR = Problem(Distance(), L2Ball(1.0), 2, label_bound=1.0, ridge=0.5, neighbours="replace")


def broken(subject: Any, **settings: Any) -> set[str]:
    """The names of the checks that found something."""
    return {outcome.check for outcome in run_checks("it", of_learner(subject, **settings)).failed}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(name):
    """By the check that is meant to."""
    check, plant = FAULTS[name]
    assert run_checks("it", [c for c in checks_for(plant()) if str(c) == check]).failed


def test_the_wrapping_is_not_what_is_caught():
    """Wrapped without a fault, learners keep their contract."""
    for learner in (IGD(DISC), TOTAL, FTRL(DISC), experts(3), LEARNERS["qftl"]):
        assert broken(Wrapped(learner)) == set()


def test_a_fault_in_the_compiled_loop_is_caught(monkeypatch):
    """Releases that are off by a thousandth, and points that are."""
    honest = igd_pass.IteratePass.__call__

    def off(part, by):
        def run(self, at, X, y, rounds, seed, shown):
            before = shown.done
            after = honest(self, at, X, y, rounds, seed, shown)
            shown.arrays[part][before : shown.done] += by
            return after

        return run

    monkeypatch.setattr(igd_pass.IteratePass, "__call__", off(0, 1e-3))
    assert broken(IGD(SMOOTH)) == {"compiled_pass_matches_definition"}
    monkeypatch.setattr(igd_pass.IteratePass, "__call__", off(1, 1e-6))
    assert "compiled_pass_matches_definition" in broken(IGD(SMOOTH))


def test_compiled_rows_that_differ_are_caught(monkeypatch):
    """In the statistics and the decisions of a batch pass."""
    honest, decide = igd_pass.Iterates.__call__, igd_pass.Iterates.decide

    def off(self, *rest):
        end, rows = honest(self, *rest)
        return end, rows * (1.0 + 1e-4)

    with monkeypatch.context() as planted:
        planted.setattr(igd_pass.Iterates, "__call__", off)
        assert "compiled_statistics_match_definition" in broken(GIGA(SMOOTH))
    monkeypatch.setattr(igd_pass.Iterates, "decide", lambda *args: decide(*args) + 1e-6)
    assert "compiled_statistics_match_definition" in broken(GIGA(SMOOTH))


def test_wiring_that_forgets_the_horizon_is_caught(monkeypatch):
    monkeypatch.setattr(Private, "_check_rounds", lambda self, last: None)
    monkeypatch.setattr(Timetable, "fits", lambda self, t, k: True)
    assert broken(TOTAL) == {"no_release_after_the_horizon"}


def test_wiring_that_uses_a_state_twice_is_caught(monkeypatch):
    monkeypatch.setattr(Ledger, "commit", lambda *_: None)
    assert broken(TOTAL) == {"a_state_is_used_once"}


def test_a_standard_deviation_that_tells_is_caught():
    assert "standard_deviations_are_public" in broken(IGD(DISC), mechanism=Telling())


def test_an_exceeded_budget_is_caught(monkeypatch):
    """Private raises an error, and the report says so."""
    monkeypatch.setattr("taciturn.calibration.mechanisms.ideal_mu", lambda privacy, sampling: 1.01 * privacy.mu)
    (outcome,) = [o for o in run_checks("it", checks_for(IGD(DISC))).failed if o.check == "guarantee_is_proven"]
    assert "raised Unprovable: BROKEN" in outcome.remark


def test_the_message_says_what_to_do():
    """What broke, by how much, for which pair, and the remedy."""
    with pytest.raises(ContractBroken, match=r"changes the statistic by 1\.0\d+ of what is certified.*a larger bound"):
        check_learner(Short(IGD(DISC)))


def caught(check: str, subject: Any, **settings: Any) -> bool:
    """Whether this check finds something, and not because something was raised on the way."""
    (outcome,) = run_checks("it", [each for each in of_learner(subject, **settings) if str(each) == check]).outcomes
    assert "raised" not in outcome.remark
    return outcome.verdict == "failed"


def test_rows_beyond_a_users_bounds_that_matter_are_caught(monkeypatch):
    """An intercept that survives, a mask that is ignored, and a bad row that is not counted."""
    check, subject = "rows_beyond_a_users_bounds_have_no_influence", IGD(replace(SMOOTH, intercept=1.0))
    assert not caught(check, subject)

    def surviving_intercept(V, y, excluded, labels):
        V, y = np.array(V), np.where(excluded, 1.0, y)
        V[excluded, :-1] = 0.0
        return V, y

    with monkeypatch.context() as planted:
        planted.setattr(loop, "without_influence", surviving_intercept)
        assert caught(check, subject)
    honest = wiring.admit
    with monkeypatch.context() as planted:
        planted.setattr(wiring, "admit", lambda unit, records, *rest: (honest(unit, records, *rest)[0], records))
        assert caught(check, TOTAL)  # a count that is lost between two calls
    reads = Private._excluded

    def without_bad_rows(self, state, rows, users, now, *more):
        found = reads(self, state, rows, users, now, *more)
        if self.bad is None:
            return found
        return found[0], reads(self, state, rows, np.where(self.bad, "", users), now, *more)[1]

    honest_prepare = Private.prepare

    def prepare(self, state, X, *more):
        object.__setattr__(self, "bad", np.isnan(X).any(axis=1))
        return honest_prepare(self, state, X, *more)

    monkeypatch.setattr(Private, "_excluded", without_bad_rows)
    monkeypatch.setattr(Private, "prepare", prepare)
    assert caught(check, TOTAL)


def test_rows_of_a_user_that_are_not_charged_are_caught(monkeypatch):
    """One row for all, their rounding once in place of once for each, and the root of their number."""
    check, tree = "every_row_of_a_user_is_charged", BinaryTree(refined=False)
    assert not caught(check, TOTAL, mechanism=tree)
    with monkeypatch.context() as planted:
        planted.setattr(prefix_sum, "sensitivity_to", lambda coder, participation: coder.sensitivity)
        assert caught(check, TOTAL)
    with monkeypatch.context() as planted:
        planted.setattr(prefix_sum.Finite, "_rounding", lambda self, rows: self.size * self.coder.sensitivity**2)
        assert caught(check, TOTAL, mechanism=tree)
    honest = Certificate.for_unit

    def root(self, unit, timetable):
        certificate = honest(self, unit, timetable)
        return replace(
            certificate, bound=lambda t: certificate.bound(t) / np.sqrt(np.minimum(t, unit.participation.rows))
        )

    monkeypatch.setattr(Certificate, "for_unit", root)
    assert caught(check, IGD(SMOOTH))
    assert caught("certificate_covers_the_rows_of_a_user", IGD(SMOOTH))
    assert caught("certificate_covers_the_rows_of_a_user", TOTAL)


ELSEWHERE = {"compiled_pass_matches_definition", "no_release_after_the_horizon", "a_state_is_used_once"}
ELSEWHERE |= {"standard_deviations_are_public", "guarantee_is_proven", "certificate_covers_the_rows_of_a_user"}
ELSEWHERE |= {"rows_beyond_a_users_bounds_have_no_influence", "every_row_of_a_user_is_charged"}


def test_every_check_has_a_fault():
    """None is there that never says no."""
    assert {str(check) for check in checks_for(IGD(DISC))} == {check for check, _ in FAULTS.values()} | ELSEWHERE


@pytest.mark.parametrize("name", [name for name in FAULTS if name.startswith("keeps") and name != "keeps a list"])
def test_what_is_exact_and_reaches_a_point_is_named(name):
    """The message says where it came from, and where to keep it."""
    (outcome,) = run_checks("it", [c for c in checks_for(FAULTS[name][1]()) if str(c) == "decide_is_pure"]).outcomes
    assert "after other examples: it reads exact data. Store everything" in outcome.remark


def test_a_stream_that_ends_elsewhere_says_by_how_much():
    """The row and the state, so that rounding errors are told from faults."""
    (outcome,) = run_checks(
        "it", [c for c in checks_for(Blockwise(IGD(DISC))) if str(c) == "batch_sizes_do_not_matter"]
    ).outcomes
    row, state = (float(x) for x in re.findall(r"by (\d[^ ,]*?)[,.] ", outcome.remark))
    assert 1e-3 < row <= 2.0
    assert 1e-3 < state <= 2.0
    (outcome,) = run_checks(
        "it", [c for c in checks_for(Adding(TOTAL)) if str(c) == "batch_sizes_do_not_matter"]
    ).outcomes
    row, state = (float(x) for x in re.findall(r"by (\d[^ ,]*?)[,.] ", outcome.remark))
    assert 0.0 < row == state < 1e-12
