"""Both neighbour relations in a guarantee: what the noise of one delivers under the other."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from instances import believed
from taciturn import (
    EWOO,
    GIGA,
    IGD,
    BinaryTree,
    Cost,
    Exponential,
    Gaussian,
    Hinge,
    L2Ball,
    Linear,
    Logistic,
    ObjectivePerturbation,
    Privacy,
    Private,
    Problem,
    Squared,
    User,
    WholeSpace,
    averaged,
    every,
    experts,
    geometric,
    grid,
    pftrl,
    pgiga,
    pigd,
    pocp,
    pol,
    pqftl,
    private_sum,
)
from taciturn.audit.pairs import tight_pair, tight_private
from taciturn.audit.verdict import distinguish, game_of

pytestmark = pytest.mark.privacy
BUDGET = Privacy(1.0, 1e-6)
OTHER = {"replace": "zero-out", "zero-out": "replace"}


def logistic(neighbours):
    return Problem(Logistic(), L2Ball(20.0), 3, ridge=0.1, neighbours=neighbours)


def squared(neighbours):
    return Problem(Squared(), L2Ball(1.0), 3, label_bound=1.0, neighbours=neighbours)


MADE = {
    "pigd": lambda n, b: pigd(logistic(n), b, 400),
    "pgiga, of a user": lambda n, b: pgiga(logistic(n), b, 400, unit=User(rows=3)),
    "pocp, equal shares": lambda n, b: pocp(IGD(logistic(n)), b, 5_000, schedule=every(1), shape="S"),
    "pol": lambda n, b: pol(logistic(n), b, 400),
    "giga, printed": lambda n, b: pocp(
        GIGA(Problem(Linear(), L2Ball(1.0), 2, label_bound=1.0, ridge=1.0, neighbours=n), "printed"), b, 50
    ),
    "suffix": lambda n, b: Private(averaged(IGD(logistic(n)), "suffix", horizon=9), Gaussian(), every(1), b, horizon=9),
    "pqftl": lambda n, b: pqftl(squared(n), b, 400, weight=0.8),
    "pftrl": lambda n, b: pftrl(logistic(n), b, 400, schedule=geometric(1.1)),
    "pftrl, of a user": lambda n, b: pftrl(logistic(n), b, 400, schedule=every(5), unit=User(rows=4, apart=3)),
    "pftrl without a horizon": lambda n, b: pftrl(logistic(n), b, None),
    "private sum, tree": lambda n, b: private_sum(2, 1.5, b, 100, neighbours=n, strategy=BinaryTree()),
    "experts": lambda n, b: Private(experts(4, neighbours=n), Exponential(), every(1), b, horizon=60),
    "ewoo, many releases": lambda n, b: Private(
        EWOO(Problem(Hinge(), L2Ball(1.0), 2, neighbours=n), grid(L2Ball(1.0), 2, per_axis=4)),
        Exponential(), every(1), b, horizon=3_000,
    ),
    "objective": lambda n, b: ObjectivePerturbation(replace(logistic(n), domain=WholeSpace()), b, 400),
}  # fmt: skip


def noise_of(private):
    """The standard deviation of the first releases' noise, or of the linear term's."""
    if isinstance(private, ObjectivePerturbation):
        return np.array([private.tilt_sd])
    return np.array([private.calibrated.noise_sd(k) for k in range(1, min(private.timetable.horizon or 9, 9) + 1)
                     if private.timetable.due(k)])  # fmt: skip


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("name", MADE)
def test_the_other_epsilon_is_the_one_that_asks_for_the_same_noise(name, neighbours):
    """A stream that is calibrated under the other relation, to the epsilon printed for it, has this noise."""
    one = MADE[name](neighbours, BUDGET)
    printed = one.guarantee.epsilons[OTHER[neighbours]]
    other = MADE[name](OTHER[neighbours], Privacy(printed, BUDGET.delta))
    assert one.guarantee.epsilons[neighbours] == pytest.approx(1.0, rel=1e-3)
    rel = 2e-2 if name == "objective" else 2e-3  # which splits its budget by the claim, and not by the cost
    np.testing.assert_allclose(noise_of(other), noise_of(one), rtol=rel)
    assert (printed < 0.9) == (neighbours == "replace")


def test_for_iterates_it_is_the_sum_over_the_noise_really_drawn():
    """`Σ (S'_k/sd_k)²` by hand, S' the certificate of the other relation, for every calibration."""
    for calibration in ("exact", "paper-proven", "paper-printed"):
        private = pigd(logistic("replace"), BUDGET, 300, calibration=calibration, allow_broken=True)
        there = IGD(logistic("zero-out")).certificate.at(np.arange(1.0, 301.0))
        sd = np.array([private.calibrated.noise_sd(k) for k in range(1, 301)])
        assert private.guarantee.other.mu_squared == pytest.approx(np.sum((there / sd) ** 2), rel=1e-4)
        assert private.guarantee.other.mu_squared >= np.sum((there / sd) ** 2)


def test_for_sums_it_is_the_ratio_of_the_certificates():
    """The sensitivity of a strategy is the same under both relations."""
    private = pftrl(replace(logistic("replace"), domain=L2Ball(1.0)), BUDGET, 300)
    ratio = private.problem.lipschitz / private.problem.gradient_diameter
    assert private.guarantee.other.mu / private.guarantee.delivered.mu == pytest.approx(ratio, rel=1e-5)
    assert ratio > 0.6  # so that half of the epsilon would be a false number
    assert private.guarantee.epsilons["zero-out"] > 0.6


@pytest.mark.parametrize("algorithm", ["private_sum", "pigd", "pqftl"])
def test_an_audit_reaches_the_other_relations_mu_and_does_not_exceed_it(algorithm):
    """Replace noise on a pair that is zeroed out: the measured mu is within 3 % of the one that is printed.

    The interval of a finding misses the true mu with probability 1e-7 at most; the distance itself is exact.
    """
    private = tight_private(algorithm, BUDGET, 20)
    pair = tight_pair(tight_private(algorithm, BUDGET, 20, neighbours="zero-out"))
    other = private.guarantee.other.mu
    assert game_of(private, pair).apart == pytest.approx(other, rel=0.03)
    assert game_of(private, pair).apart <= other * (1.0 + 1e-9)
    found = distinguish(private, pair, trials=2_000, error=5e-7)
    assert found.interval[0] <= other <= found.interval[1] * 1.03


def test_it_is_unknown_where_nothing_proves_it():
    """Without a horizon the costs of iterates are never added up; and a learner may be none that can be made again."""
    assert pigd(logistic("replace"), BUDGET, None).guarantee.other is None

    class Bare:
        def __init__(self, learner):
            self._learner = learner

        def __getattr__(self, name):
            return getattr(self._learner, name)

        def on_problem(self, problem):
            raise TypeError("it is made once")

    bare = Private(believed(Bare(IGD(logistic("replace")))), Gaussian(), every(1), BUDGET, horizon=9)
    assert bare.guarantee.other is None
    assert list(bare.guarantee.epsilons) == ["replace"]


def test_a_learner_that_certifies_one_relation_only_has_no_other_number():
    @dataclass(frozen=True)
    class OnlyReplace(IGD):
        @property
        def certificate(self):
            if self.problem.neighbours != "replace":
                raise TypeError("only replace")
            return IGD(self.problem).certificate

    assert (
        Private(believed(OnlyReplace(logistic("replace"))), Gaussian(), every(1), BUDGET, horizon=9).guarantee.other
        is None
    )


def test_releases_without_noise_have_no_other_number():
    """Where one relation's certificate is 0 there is no noise, and if the other's is not, no cost is finite."""

    @dataclass(frozen=True)
    class Later(IGD):
        @property
        def certificate(self):
            made = IGD(self.problem).certificate
            if self.problem.neighbours == "zero-out":
                return made
            return replace(made, bound=lambda t: np.where(t > 3, made.at(t), 0.0))

    assert (
        Private(believed(Later(logistic("replace"))), Gaussian(), every(1), BUDGET, horizon=9).guarantee.other is None
    )


def test_a_resumed_stream_prints_the_numbers_that_it_began_with(tmp_path):
    private = pqftl(squared("replace"), BUDGET, 40)
    state, _ = private.run(private.start(), np.eye(3), np.ones(3))
    state.dump(tmp_path / "state.npz")
    assert private.resumed(state).guarantee == private.guarantee
    assert isinstance(private.guarantee.other, Cost)


def test_a_user_of_several_periods_pays_for_the_sampler_too():
    """A stream without a horizon plans its sampler for the budget; a user of many periods moves sums by more."""
    private = private_sum(1, 1.0, Privacy(4.0, 1e-6), None, unit=User(1, period=1))
    assert private.user_over(1).extra_delta < 1e-9
    assert private.user_over(40).mu > 10.0
    assert math.isinf(private.user_over(40).epsilon(1e-6))
