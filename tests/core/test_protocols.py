"""Certificates are values, and every mechanism keeps its contract on the certificate of every learner.

What learners and mechanisms owe apart from each other is checked in `tests/checks`.
"""

from __future__ import annotations

import numpy as np
import pytest

from instances import LEARNERS
from taciturn import BLT, Certificate, Exponential, Gaussian
from taciturn.checks.learners import MECHANISMS
from taciturn.checks.mechanisms import (
    MechanismCase,
    costs_increase_up_to_the_budget,
    encode_and_decode_follow_the_protocol,
    releases_share_no_noise,
    secret_noise_is_fresh,
    seeded_noise_does_not_depend_on_batches,
)
from taciturn.core.protocols import misfit

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
