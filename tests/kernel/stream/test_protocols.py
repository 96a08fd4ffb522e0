"""Certificates are values, and every mechanism keeps its contract on the certificate of every learner.

What learners and mechanisms owe apart from each other is checked in `tests/checks`.
"""

from __future__ import annotations

import numpy as np
import pytest

from instances import LEARNERS
from taciturn import (
    BLT,
    FTRL,
    Certificate,
    Exponential,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Learner,
    Mechanism,
    Privacy,
    Private,
    Problem,
    Unverified,
    every,
    private_sum,
)
from taciturn.checks.learners import MECHANISMS
from taciturn.checks.mechanisms import (
    MechanismCase,
    costs_increase_up_to_the_budget,
    encode_and_decode_follow_the_protocol,
    releases_share_no_noise,
    secret_noise_is_fresh,
    seeded_noise_does_not_depend_on_batches,
)
from taciturn.kernel.stream.protocols import misfit
from taciturn.mechanisms import Calibrated

ENDLESS = {"l2/tail": Gaussian(), "range/tail": Exponential(), "l2/entry": BLT(8)}


# Certificates.


def test_a_certificate_is_a_value():
    """It prints its kind and formula, compares by what it says, and evaluates at numbers and arrays alike."""
    one = Certificate("l2", "tail", "3/t", lambda t: 3.0 * t**-1, 2.0, "moves all", "Lemma 1")
    equal = Certificate("l2", "tail", "3/t", lambda t: 3.0 / t, 2.0, "moves all", "Lemma 1")
    assert repr(one) == "l2/tail, 3/t"
    assert one.kind == "l2/tail"
    assert one == equal
    assert one != Certificate("l2", "entry", "3/t", lambda t: 3.0 / t, 2.0, "moves one", "Lemma 1")
    assert one.at(6) == 0.5
    assert one.at([1, 3]).tolist() == [3.0, 1.0]
    assert one.at(np.array([1, 2], dtype=np.int64)).tolist() == [3.0, 1.5]  # whole numbers have no such power


SUMS = private_sum(2, 1.0, Privacy(1.0, 1e-6), horizon=4).learner


class Half(Learner):
    """Half of a learner: it derives from the base class, and does not decide."""

    problem, certificate, statistic_size = SUMS.problem, SUMS.certificate, SUMS.statistic_size
    start = absorb = statistic = lambda self, *given: None


class Whole(Half):
    """A learner that has all that has no default."""

    def decide(self, t, noisy, noise_sd):
        return noisy


class Stranger:
    """A mechanism that derives from nothing."""

    accepts = "l2/entry"

    def calibrate(self, *settings):
        return BLT().calibrate(*settings)


class Mute(Mechanism):
    """A mechanism whose calibrated form has no cost, nor anything else."""

    accepts = "l2/entry"

    def calibrate(self, *settings):
        made = Calibrated()
        made.claimed = settings[3]
        return made


@pytest.mark.parametrize(
    ("learner", "mechanism", "words"),
    [
        (Half(), BLT(), r"learner: Half has no decide\. Derive it from taciturn\.Learner"),
        (SUMS, Stranger(), r"mechanism: Stranger has no by_block, restore\. Derive it from taciturn\.Mechanism"),
        (
            SUMS,
            Mute(),
            r"no cost, noise_sd, start, encode, noise, decode\. Derive it from taciturn\.mechanisms\.C",
        ),
        (Half, BLT(), r"learner cannot be .* Give it as in IGD\(problem\)"),
        (SUMS, 1.0, r"mechanism cannot be 1\.0\. Give it as in Gaussian\(\) or BLT\(\)"),
    ],
)
def test_what_lacks_a_member_is_rejected_when_it_is_wired(learner, mechanism, words):
    """The error says what is missing, and what to derive from."""
    with pytest.raises(InvalidInput, match=words):
        Private(learner, mechanism, every(1), Privacy(1.0, 1e-6), horizon=4)


def test_the_base_classes_have_the_rest():
    """A learner without any optional member starts at the problem's point, and is known for one relation."""
    private = Private(Unverified(Whole(), by="nobody"), BLT(), every(1), Privacy(1.0, 1e-6), horizon=4)
    assert private.start().point.tolist() == private.first_point.tolist() == [0.0, 0.0]
    assert (private.learner.point_size, private.learner.uses_point, private.learner.derived) == (2, False, {})
    assert private.guarantee.other is None  # no dataclass
    assert (private.calibrated.last_round, private.calibrated.by_block) == (None, False)
    assert private.calibrated.examples_of(3, 30) == 30
    centered = FTRL(Problem(Hinge(), L2Ball(1.0), 2), center=(0.6, 0.0))
    assert centered.first_point.tolist() == [0.6, 0.0]


def test_a_misfit_names_both_kinds_and_what_fits():
    """The refusal says what came, what was wanted, and what to use."""
    entry = Certificate("l2", "entry", "1", np.ones_like, 1.0, "one example moves its own row", "none")
    text = misfit(entry, "Sums", "Gaussian", "l2/tail")
    for part in ("Sums", "l2/entry", "one example moves its own row", "Gaussian accepts l2/tail", "IGD, GIGA"):
        assert part in text


# Mechanisms, on what learners certify.


@pytest.mark.privacy
@pytest.mark.parametrize("horizon", [20, None])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_mechanism_keeps_its_contract_on_every_certificate(name, horizon):
    """Its protocol, and costs that rise to the budget and no further."""
    certificate = LEARNERS[name].certificate
    mechanisms = MECHANISMS if horizon else ENDLESS
    hiding = MechanismCase(mechanisms[certificate.kind], horizon, releases=20, stated=certificate)
    for check in (encode_and_decode_follow_the_protocol, costs_increase_up_to_the_budget):
        check(hiding)


@pytest.mark.privacy
@pytest.mark.parametrize("horizon", [600, None])
@pytest.mark.parametrize("mechanism", [Gaussian(), Exponential()])
def test_long_noise_is_fresh_and_does_not_depend_on_the_cut(mechanism, horizon):
    """Over several blocks of releases, which are drawn together."""
    hiding = MechanismCase(mechanism, horizon, releases=600)
    for check in (seeded_noise_does_not_depend_on_batches, secret_noise_is_fresh, releases_share_no_noise):
        check(hiding)
    whole = hiding.noise(5)
    for k, count in ((1, 300), (200, 120), (256, 1), (257, 300)):
        part = hiding.calibrated.noise(5, k, count)
        assert np.array_equal(np.array(list(part)), whole[k - 1 : k - 1 + count])
