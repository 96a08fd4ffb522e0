"""Each check of a mechanism catches the fault that it is there for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from taciturn import BLT, BinaryTree, Cost, Exponential, Gaussian, InvalidInput
from taciturn.checks import ContractBroken, check_mechanism
from taciturn.checks.all import of_mechanism
from taciturn.checks.suite import run_checks
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.kernel.accounting.unit import ONCE
from taciturn.kernel.mechanisms.release_noise import NoiseByRelease
from taciturn.kernel.stream import passes
from taciturn.kernel.stream.protocols import Mechanism

pytestmark = pytest.mark.privacy


class Tampered:
    """A calibrated mechanism as it is; faults override a verb."""

    def __init__(self, honest):
        self.honest = honest

    def __getattr__(self, name):
        return getattr(self.honest, name)


@dataclass(frozen=True)
class Tampering(Mechanism):
    """A mechanism that calibrates another, and tampers with it."""

    mechanism: Any
    how: Any = Tampered

    @property
    def accepts(self):
        return self.mechanism.accepts

    def calibrate(self, *settings):
        return self.how(self.mechanism.calibrate(*settings))


class NoNoiseOnOneRelease(Tampered):
    """The third."""

    def noise(self, seed, k, count):
        drawn = [np.array(part) for part in self.honest.noise(seed, k, count)]
        return [part * (k + i != 3) for i, part in enumerate(drawn)]


class TooLittle(Tampered):
    """Three quarters of what is stated."""

    def noise(self, seed, k, count):
        return [np.rint(0.75 * np.asarray(part)).astype(np.int64) for part in self.honest.noise(seed, k, count)]


class SmallAndSaysSo(TooLittle):
    """Three quarters of what is needed, and stated."""

    def noise_sd(self, k):
        return 0.75 * self.honest.noise_sd(k)

    def decode(self, public, noisy, k):
        public, row, _ = self.honest.decode(public, noisy, k)
        return public, row, self.noise_sd(k)


class Stale(Tampered):
    """Secret noise from a seed."""

    def noise(self, seed, k, count):
        return self.honest.noise(7 if seed is None else seed, k, count)


class Repeating(Tampered):
    """The second release gets the noise of the first."""

    def noise(self, seed, k, count):
        drawn = list(self.honest.noise(seed, 1, k + count - 1))
        drawn[1:2] = drawn[:1] if len(drawn) > 1 else []
        return drawn[k - 1 :]


class Cut(Tampered):
    """Seeded noise by call, not by release."""

    def noise(self, seed, k, count):
        return self.honest.noise(seed, 1, count) if seed is not None else self.honest.noise(seed, k, count)


class Floating(Tampered):
    """Noise on floats."""

    def encode(self, secret, row, k):
        secret, integers = self.honest.encode(secret, row, k)
        return secret, integers.astype(float)


class Misstating(Tampered):
    """A standard deviation in decode that is not that of noise_sd."""

    def decode(self, public, noisy, k):
        public, row, sd = self.honest.decode(public, noisy, k)
        return public, row, 2.0 * sd


class Writing(Tampered):
    """Writes into the row that it was given."""

    def encode(self, secret, row, k):
        out = self.honest.encode(secret, row, k)
        row[:] = 0.0
        return out


class Listing(Tampered):
    """A memory that is no array, and comes back as another thing."""

    def start(self):
        secret, public = self.honest.start()
        return {**secret, "rows": [0.0]}, public

    def encode(self, secret, row, k):
        rows = secret["rows"] + [float(row[0])]
        _, integers = self.honest.encode({}, row / len(rows), k)
        return {"rows": rows}, integers


class FreeAtFirst(Tampered):
    """The first two releases cost nothing."""

    def cost(self, k):
        return FREE if k in (0, 1, 2) else self.honest.cost(k)


class Dear(Tampered):
    """All releases cost more than the budget."""

    def cost(self, k):
        return FREE if k == 0 else gaussian(25.0)


class Shifted(Tampered):
    """Decoded rows are off by a hundredth."""

    def decode(self, public, noisy, k):
        public, row, sd = self.honest.decode(public, noisy, k)
        return public, row + 0.01 * sd, sd


@dataclass(frozen=True)
class ForOneExample(BLT):
    """Noise for one row, whatever the certificate says about a user."""

    def calibrate(self, certificate, *settings):
        return super().calibrate(replace(certificate, participation=ONCE), *settings)


@dataclass(frozen=True)
class Unseparated(BLT):
    """Noise for rows of a user that are further apart than they must be."""

    def calibrate(self, certificate, *settings):
        unit = certificate.participation
        return super().calibrate(replace(certificate, participation=replace(unit, apart=4 * unit.apart)), *settings)


class InZCDP(Tampered):
    """Its cost is stated as zCDP."""

    def cost(self, k):
        cost = self.honest.cost(k)
        return replace(cost, mu_squared=0.0, rho=cost.mu_squared / 2.0)


class SmallInZCDP(SmallAndSaysSo, InZCDP):
    """Three quarters of what is needed, and stated so."""


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise, or a share of what is needed, by the l1 norm of what an example moves; each release costs as much.

    By NumPy's generator, which protects nobody.
    """

    share: float = 1.0
    charge: float = 1.0
    accepts = "l2/tail"

    def calibrate(self, certificate, timetable, size, privacy, calibration):
        if timetable.horizon is None or calibration != "exact":
            raise InvalidInput("Laplace needs a horizon and calibration='exact'.")
        return LaplaceNoise(self, certificate, timetable, size, privacy)


class LaplaceNoise(NoiseByRelease):
    def __init__(self, laplace, certificate, timetable, size, privacy):
        super().__init__(size, timetable.count, privacy)
        moved = certificate.at(timetable.rounds)
        self.magnitude, self.charge = certificate.magnitude, laplace.charge
        self.step = 2.0**-24 * moved
        self.scale = laplace.share * (math.sqrt(size) * moved + size * self.step) * timetable.count / privacy.epsilon

    def cost(self, k):
        k = self.count if k is None else k
        return Cost(plain_epsilon=self.charge * self.claimed.epsilon * k / self.count * (1.0 - 1e-12))

    def noise_sd(self, k):
        return float(math.sqrt(2.0) * self.scale[k - 1])

    def encode(self, secret, statistic, k):
        clipped = np.clip(statistic, -self.magnitude, self.magnitude)
        return secret, np.rint(clipped / self.step[k - 1]).astype(np.int64)

    def noise(self, seed, k, count):
        for j in range(k, k + count):
            rng = np.random.default_rng(None if seed is None else [seed, j])
            yield np.rint(rng.laplace(0.0, self.scale[j - 1] / self.step[j - 1], self.size)).astype(np.int64)

    def decode(self, public, noisy, k):
        return public, noisy * self.step[k - 1], self.noise_sd(k)


class HastyHiding(Tampered):
    """Has a fast path of its own."""


class HastyNoise:
    """Many rows at once, the last of them without noise."""

    def __init__(self, calibrated):
        self.honest = passes.noise_of(calibrated.honest)
        self.draw = self.honest.draw

    def add(self, secret, public, statistics, k, noise):
        noise = noise.copy()
        noise[-1] = 0
        return self.honest.add(secret, public, statistics, k, noise)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setitem(passes.NOISE, HastyHiding, HastyNoise)


FAULTS = {
    "no noise on one release": ("secret_noise_is_fresh", Gaussian(), NoNoiseOnOneRelease),
    "no noise on one release, by seeds": ("noise_has_the_stated_sd", Gaussian(), NoNoiseOnOneRelease),
    "no noise on one release, at all": ("noise_covers_the_sensitivity", Gaussian(), NoNoiseOnOneRelease),
    "no noise on one row": ("noise_covers_the_sensitivity", BLT(), NoNoiseOnOneRelease),
    "no noise in one race": ("noise_covers_the_sensitivity", Exponential(), NoNoiseOnOneRelease),
    "too little noise": ("noise_has_the_stated_sd", Gaussian(), TooLittle),
    "too little in a tree": ("noise_covers_the_sensitivity", BinaryTree(), TooLittle),
    "a user's rows are charged once": ("noise_covers_all_rows_of_a_unit", ForOneExample(), Tampered),
    "a user's rows lie closer": ("noise_covers_all_rows_of_a_unit", Unseparated(), Tampered),
    "small noise, stated": ("noise_covers_the_sensitivity", Gaussian(), SmallAndSaysSo),
    "a slow race that is not": ("noise_covers_the_sensitivity", Exponential(), TooLittle),
    "stale noise": ("secret_noise_is_fresh", Gaussian(), Stale),
    "the same noise for two": ("releases_share_no_noise", Gaussian("S"), Repeating),
    "noise by call": ("seeded_noise_does_not_depend_on_batches", Gaussian(), Cut),
    "noise on floats": ("encode_and_decode_follow_the_protocol", Gaussian(), Floating),
    "another standard deviation": ("encode_and_decode_follow_the_protocol", Gaussian(), Misstating),
    "writes into rows": ("encode_and_decode_are_pure", BLT(), Writing),
    "keeps a list": ("mechanism_states_can_be_saved", Gaussian(), Listing),
    "free at first": ("costs_increase_up_to_the_budget", Gaussian(), FreeAtFirst),
    "beyond the budget": ("costs_increase_up_to_the_budget", Gaussian(), Dear),
    "shifted rows": ("decoding_inverts_encoding", BLT(), Shifted),
    "many rows, one bare": ("compiled_noise_matches_definition", BLT(), HastyHiding),
}


def broken(checks) -> set[str]:
    return {outcome.check for outcome in run_checks("it", checks).failed}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_mechanism_is_caught(name):
    """By the check that is meant to."""
    check, honest, how = FAULTS[name]
    assert check in broken(c for c in of_mechanism(Tampering(honest, how)) if str(c) == check)


@pytest.mark.parametrize("honest", [Gaussian(), Exponential(), BLT()])
def test_the_wrapping_is_not_what_is_caught(honest):
    assert broken(of_mechanism(Tampering(honest))) == set()


def test_every_check_of_a_mechanism_has_a_fault():
    assert {str(check).partition(",")[0] for check in of_mechanism(Gaussian())} == {
        check for check, _, _ in FAULTS.values()
    }


def test_a_mechanism_that_accepts_nothing_known_is_not_passed():
    """Every check is skipped, and that is not enough."""

    class Strange(Gaussian):
        accepts = "l1/tail"

    with pytest.raises(ContractBroken, match="0 of 24 checks"):
        check_mechanism(Strange())


@pytest.mark.parametrize(
    ("mechanism", "faults"),
    [
        (Laplace(), set()),
        (Laplace(share=0.5), {"noise_covers_the_sensitivity"}),
        (Laplace(charge=0.0), {"costs_increase_up_to_the_budget", "noise_covers_the_sensitivity"}),
        (Tampering(Gaussian(), InZCDP), {"costs_increase_up_to_the_budget"}),  # read as zCDP it is more
        (Tampering(Gaussian(), SmallInZCDP), {"costs_increase_up_to_the_budget", "noise_covers_the_sensitivity"}),
    ],
    ids=["Laplace", "half of it", "not charged", "zCDP", "zCDP, small"],
)
def test_noise_that_is_not_gaussian_is_compared_with_what_its_charge_allows(mechanism, faults):
    """In chi square, by means and variances: the ratio of densities that the charge allows bounds it."""
    checks = [check for check in of_mechanism(mechanism) if not str(check).endswith("no horizon")]
    report = run_checks("it", checks)
    assert {outcome.check for outcome in report.failed} == faults
    assert not any("raised" in str(outcome) for outcome in report.failed)
