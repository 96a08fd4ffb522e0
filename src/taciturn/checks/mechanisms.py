"""Checks of a mechanism: its protocol, its costs, its output without noise, and its noise.

Standard deviations are estimated on 50 seeds of rows of 48 entries, 2,400 numbers for each encoded row; the relative
error of a variance is then `sqrt(2/2400)`, 2.9 %. A correct mechanism, on fresh seeds, would be off by `FAR` = 6.2 of
those with probability below 3e-9 for an encoded row (the tails of chi square), and there are fewer than a hundred.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from taciturn.checks.streams import copied, generator, same
from taciturn.checks.suite import COPY, OF_THE_NOISE, demand, skip
from taciturn.errors import InvalidInput, Unprovable
from taciturn.kernel.accounting.cost import FREE, Cost
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import Participation
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.mechanisms.strategy import sums_of
from taciturn.kernel.stream.protocols import Calibrated, Certificate, Mechanism, complete
from taciturn.kernel.stream.schedule import Timetable, every

BUDGET = Privacy(epsilon=10.0, delta=1e-6)
"""Large enough that the privacy loss to be measured exceeds the sampling error."""

SEEDS = 50
ENTRIES = 48

USER = Participation(rows=4, per_release=1, apart=3)
"""Several rows of one unit, in the first and in the last of 12 releases."""

CERTIFICATES = {
    "l2/tail": Certificate(
        "l2", "tail", "1/t", lambda t: 1.0 / t, 1.0, "one example changes every later statistic", "stated"
    ),
    "l2/entry": Certificate(
        "l2", "entry", "1", np.ones_like, 1.0, "one example changes its own statistic", "stated", steady=True
    ),
    "range/tail": Certificate(
        "range", "tail", "1", np.ones_like, 64.0, "one example changes every later statistic", "stated"
    ),
}


@dataclass(frozen=True)
class MechanismCase:
    """A mechanism and its test case: a certificate that it accepts, statistics, and 12 releases, or no horizon."""

    mechanism: Mechanism
    horizon: int | None = 12
    releases: int = 12
    stated: Certificate | None = None
    entries: int = ENTRIES
    budget: Privacy = BUDGET

    @property
    def size(self) -> int:
        """Entries of a statistic: few candidates for a selection, many to measure noise on."""
        return 6 if self.certificate.metric == "range" else self.entries

    @cached_property
    def certificate(self) -> Certificate:
        """The given certificate, or one of the kind that the mechanism accepts."""
        if self.stated is not None:
            return self.stated
        accepted = self.mechanism.accepts
        if accepted not in CERTIFICATES:
            skip(f"{accepted} is none of {', '.join(CERTIFICATES)}")
        return CERTIFICATES[accepted]

    @cached_property
    def calibrated(self) -> Calibrated:
        """The mechanism calibrated to the budget; skips if it needs a horizon and has none."""
        timetable = Timetable(every(1), self.horizon)
        try:
            made = self.mechanism.calibrate(self.certificate, timetable, self.size, self.budget, "exact")
        except InvalidInput as error:
            if self.horizon is None:
                skip(f"{type(self.mechanism).__name__} needs a horizon: {error}")
            raise
        complete("the calibrated mechanism", made, Calibrated, "what Gaussian().calibrate returns")
        return made

    @cached_property
    def rows(self) -> Array:
        """Statistics well within the certified magnitude."""
        return generator(3).uniform(-0.4, 0.4, size=(self.releases, self.size))

    def neighbour(self, changed: int = 0) -> Array:
        """Neighbouring statistics at the certified distance: `changed`, or it and all later ones.

        With several rows of one unit, those that follow `changed` as early as is allowed.
        """
        rows, rounds = self.rows.copy(), np.arange(1, self.releases + 1)
        moved = self.certificate.at(rounds)
        if self.certificate.metric == "range":
            towards = np.where(np.arange(self.size) % 2 == 0, 0.5, -0.5)
        else:
            towards = np.full(self.size, self.size**-0.5)
        changes = range(changed, self.releases)
        if self.certificate.reach == "entry":
            unit = self.certificate.participation
            changes = changes[: unit.rows * unit.apart : unit.apart]
        for j in changes:
            rows[j] += moved[j] * towards
        return rows

    def encoded(self, rows: Array) -> list[Integers]:
        """The encoded statistics, which are secret."""
        secret, out = self.calibrated.start()[0], []
        for k, row in enumerate(rows, start=1):
            secret, integers = self.calibrated.encode(secret, row.copy(), k)
            out.append(integers)
        return out

    def decoded(self, noisy: list[Integers]) -> Array:
        """The decoded releases, which are public."""
        public, out = self.calibrated.start()[1], []
        for k, integers in enumerate(noisy, start=1):
            public, row, _ = self.calibrated.decode(public, integers, k)
            out.append(row)
        return np.array(out)

    @cached_property
    def seeded(self) -> list[list[Integers]]:
        """The noise of many simulations; more for selections, as each carries less information."""
        times = 64 if self.certificate.metric == "range" else ENTRIES // self.entries
        return [self.noise(seed) for seed in range(SEEDS * times)]

    def noise(self, seed: int | None) -> list[Integers]:
        """The noise of all releases."""
        return [np.asarray(drawn) for drawn in self.calibrated.noise(seed, 1, self.releases)]


def encode_and_decode_follow_the_protocol(case: MechanismCase) -> None:
    """Statistics are encoded as integers, get integer noise and are decoded as floats; `noise_sd` is consistent.

    Noise on floats can be undone from their low bits; noise on integers cannot.
    """
    calibrated, size = case.calibrated, 1 if case.certificate.metric == "range" else case.size
    public = calibrated.start()[1]
    for k, (encoded, noise) in enumerate(zip(case.encoded(case.rows), case.noise(None), strict=True), start=1):
        integers = encoded.dtype == noise.dtype == np.int64 and encoded.shape == noise.shape
        fault = f"release {k} encodes {encoded.dtype}{encoded.shape} and draws {noise.dtype}{noise.shape}"
        demand(integers, fault, "Encode statistics as int64, and draw as many int64.")
        public, row, sd = calibrated.decode(public, encoded + noise, k)
        legal = row.shape == (size,) and row.dtype == np.float64
        demand(legal, f"release {k} decodes {row.dtype}{row.shape}", f"Return {size} floats.")
        stated, moved = calibrated.noise_sd(k), float(case.certificate.at(k))
        consistent = sd == stated and (sd > 0.0) == (moved > 0.0)
        fault = f"release {k} has sensitivity {moved:.3g}, decode states standard deviation {sd}, and noise_sd {stated}"
        demand(consistent, fault, "State one standard deviation, positive where the sensitivity is.")


def encode_and_decode_are_pure(case: MechanismCase) -> None:
    """They do not modify their arguments, are deterministic, and keep the names in their states."""
    calibrated, (secret, public) = case.calibrated, case.calibrated.start()
    for k, row in enumerate(case.rows, start=1):
        given, before = row.copy(), (copied(secret), copied(public))
        pairs = [calibrated.encode(secret, given, k) for _ in range(2)]
        noisy = pairs[0][1].copy()
        decoded = [calibrated.decode(public, noisy, k) for _ in range(2)]
        alike = np.array_equal(pairs[0][1], pairs[1][1]) and np.array_equal(decoded[0][1], decoded[1][1])
        demand(alike, f"release {k} differs when it is repeated", "Keep all state in the two state dictionaries.")
        clean = same(secret, before[0]) and same(public, before[1])
        clean = clean and np.array_equal(given, row) and np.array_equal(noisy, pairs[0][1])
        demand(clean, f"release {k} modified its arguments", COPY)
        named = pairs[0][0].keys() == secret.keys() and decoded[0][0].keys() == public.keys()
        demand(named, "a state changes its names", "Keep those of start().")
        secret, public = pairs[0][0], decoded[0][0]


def mechanism_states_can_be_saved(case: MechanismCase) -> None:
    """Both states can be saved and loaded without pickle, at every release."""
    calibrated, (secret, public) = case.calibrated, case.calibrated.start()
    for k, row in enumerate(case.rows, start=1):
        secret, encoded = calibrated.encode(_stored(secret), row, k)
        public, _, _ = calibrated.decode(_stored(public), encoded, k)
    demand(
        same(_stored(secret), secret) and same(_stored(public), public),
        "a state is not plain data",
        "Use plain arrays.",
    )
    again = case.encoded(case.rows)[-1]
    demand(
        np.array_equal(encoded, again),
        "a saved state gives other releases",
        "Keep all state in the two state dictionaries.",
    )


def _stored(memory: Arrays) -> Arrays:
    file = io.BytesIO()
    np.savez(file, **memory)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def costs_increase_up_to_the_budget(case: MechanismCase) -> None:
    """No release costs nothing, costs never decrease, and all releases together are within the budget."""
    calibrated = case.calibrated
    costs = np.array([calibrated.cost(k).parts for k in (*range(case.releases + 1), None)])
    demand(calibrated.cost(0) == FREE, f"no release costs {calibrated.cost(0)}", "Return FREE for k = 0.")
    demand((np.diff(costs, axis=0) >= 0.0).all(), "the cost of more releases is less", "Add up the costs.")
    charged = (costs[1] > 0.0).any() or float(case.certificate.at(1)) == 0.0
    demand(charged, "the first release costs nothing", "Charge the first release when it is made.")
    within = calibrated.claimed == case.budget and calibrated.cost(None).within(case.budget)
    demand(within, f"the budget is {case.budget}, and all releases cost {calibrated.cost(None)}", "Draw more noise.")


def decoding_inverts_encoding(case: MechanismCase) -> None:
    """Without noise, decoding gives the statistics: their prefix sums for `entry`, the arg min for `range`."""
    shown, rows = case.decoded(case.encoded(case.rows)), case.rows
    sd = np.array([case.calibrated.noise_sd(k) for k in range(1, case.releases + 1)])
    if case.certificate.metric == "range":
        off = rows[np.arange(len(rows)), shown[:, 0].astype(np.int64)] - np.min(rows, axis=1)
    else:
        expected = sums_of(case.calibrated.coder, rows) if case.certificate.reach == "entry" else rows
        off = np.max(np.abs(shown - expected), axis=1)
    k = int(np.argmax(off / sd))
    fault = f"without noise, release {k + 1} is off by {off[k]:.3g}, and the noise would be {sd[k]:.3g}"
    demand(off[k] <= OF_THE_NOISE * sd[k], fault, "Make decode the inverse of encode.")


def compiled_noise_matches_definition(case: MechanismCase) -> None:
    """The compiled noise equals `encode`, noise and `decode`, up to rounding and a lattice step."""
    from taciturn.kernel.stream.passes import noise_of

    calibrated = case.calibrated
    if (batch := noise_of(calibrated)) is None:
        skip(f"{type(calibrated).__name__} has no compiled noise")
    secret, public = calibrated.start()
    noise = batch.draw(5, 1, case.releases)
    fast = batch.add(secret, public, case.rows, 1, noise)
    slow = case.decoded([a + b for a, b in zip(case.encoded(case.rows), case.noise(5), strict=True)])
    off = float(np.max(np.abs(fast.noisy - slow) / fast.noise_sd[:, None]))
    remedy = "Make the compiled noise match encode and decode, or remove it."
    demand(off <= OF_THE_NOISE, f"the compiled noise is off by {off:.3g} of the noise", remedy)
    stated = [case.calibrated.noise_sd(k) for k in range(1, case.releases + 1)]
    demand(
        np.allclose(fast.noise_sd, stated, rtol=1e-9),
        "the compiled noise states other standard deviations than noise_sd",
        remedy,
    )


FAR = 6.2


def secret_noise_is_fresh(case: MechanismCase) -> None:
    """The same releases drawn twice get different noise, every one of them, and each gets some.

    Noise is spread over more than 2²⁰ integers: a row of it is 0, or repeats, with probability below 2⁻¹⁰⁰.
    """
    one, other = case.noise(None), case.noise(None)
    for k, (a, b) in enumerate(zip(one, other, strict=True), start=1):
        drawn = all(np.any(row) for row in np.atleast_2d(a))
        demand(drawn, f"release {k} gets no noise", "Draw noise for every encoded row.")
        demand(
            not np.array_equal(a, b), f"release {k} gets the same noise again", "Draw from secret bits, never twice."
        )


def releases_share_no_noise(case: MechanismCase) -> None:
    """No row of noise is used for two releases: their difference would reveal the data."""
    rows = np.concatenate([np.atleast_2d(drawn) for drawn in case.noise(None)])
    demand(
        len(np.unique(rows, axis=0)) == len(rows), "two encoded rows get the same noise", "Draw fresh noise for each."
    )


def seeded_noise_does_not_depend_on_batches(case: MechanismCase) -> None:
    """A seed gives release k the same noise in every batch, and another seed gives other noise."""
    full, other, n = case.noise(5), case.noise(6), case.releases
    for k, count in ((1, 1), (2, 3), (5, n - 4), (3, 2), (n, 1)):
        part = list(case.calibrated.noise(5, k, count))
        alike = all(np.array_equal(a, b) for a, b in zip(part, full[k - 1 : k - 1 + count], strict=True))
        demand(
            alike,
            f"releases {k} to {k + count - 1} get other noise as a batch of their own",
            "Number draws by release.",
        )
    alike = any(np.array_equal(a, b) for a, b in zip(full, other, strict=True))
    demand(not alike, "two seeds give the same noise", "Let the seed reach the sampler.")


def noise_has_the_stated_sd(case: MechanismCase) -> None:
    """The standard deviation of the decoded noise is `noise_sd`, as every release states."""
    if case.certificate.metric == "range":
        skip("only the selected candidate is released")
    nothing = case.encoded(np.zeros_like(case.rows))
    decoded = np.array([case.decoded(_sum(nothing, drawn)) for drawn in case.seeded])
    stated = np.array([case.calibrated.noise_sd(k) for k in range(1, case.releases + 1)])
    ratio = np.mean(decoded**2, axis=(0, 2)) / stated**2
    k = int(np.argmax(np.abs(ratio - 1.0)))
    fault = f"the noise of release {k + 1} has {math.sqrt(ratio[k]):.3g} of the standard deviation that it states"
    demand(
        abs(ratio[k] - 1.0) <= FAR * math.sqrt(2.0 / decoded[:, 0].size),
        fault,
        "State the standard deviation of decoded noise.",
    )


def noise_covers_the_sensitivity(case: MechanismCase) -> str:
    """Two streams at the certified distance cannot be distinguished better than the stated cost allows.

    With D the neighbour's shift of the encoded integers and s the standard deviation of their noise, `Σ D²/s²` is mu²,
    the exact distinguishability; for a selection, the log-ratio of the winners' probabilities has a range of `eta`.
    For other noise it is a lower bound (`_allowed`), which is compared for one release of one number, too, where it is
    most of what the charge allows.
    """
    if case.certificate.metric == "range":
        return _selection_is_covered(case)
    found = _noise_is_covered(case)
    if _all_gaussian(case.calibrated.cost(case.releases)):
        return found
    return _noise_is_covered(
        replace(case, horizon=case.horizon and 1, releases=1, entries=1, budget=Privacy(1.0, 1e-6))
    )


def noise_covers_all_rows_of_a_unit(case: MechanismCase) -> str:
    """If one example moves one statistic, the noise also covers a unit of privacy with several rows.

    The certificate says how often the unit takes part, and its bound is for one of its rows.
    """
    if case.certificate.kind != "l2/entry":
        skip("the certificate's bound holds for all rows of a unit")
    several = replace(case, stated=replace(case.certificate, participation=USER))
    try:
        several.calibrated  # noqa: B018
    except (InvalidInput, Unprovable) as error:
        skip(f"{type(case.mechanism).__name__} protects one example only: {error}")
    costs_increase_up_to_the_budget(several)
    return _noise_is_covered(several)


def _all_gaussian(cost: Cost) -> bool:
    return cost.gaussian and cost.plain_epsilon == 0.0


def _allowed(cost: Cost) -> float:
    """The largest `Σ D²/s²` for which a cost can be true; mu² for Gaussian noise.

    The statistic `Σ D·x/s²` has means that differ by that sum, and has it for its variance, so that the chi-square
    divergence of the two streams is at least as large (Hammersley, Chapman, Robbins). Of a ratio of densities between
    `exp(±epsilon)` it is at most `exp(epsilon) + exp(-epsilon) - 2`, of zCDP `exp(2·rho) - 1`; `ln(1 + chi²)` adds.
    """
    if _all_gaussian(cost):
        return cost.mu_squared
    pure = cost.plain_epsilon + math.log1p(math.exp(-2.0 * cost.plain_epsilon) - math.exp(-cost.plain_epsilon))
    return math.expm1(min(cost.mu_squared + 2.0 * cost.rho + pure, 700.0))


def _noise_is_covered(case: MechanismCase) -> str:
    drawn = np.array([_stacked(noise) for noise in case.seeded], dtype=np.float64)
    variance = np.mean(drawn**2, axis=(0, 2))
    here, worst = _stacked(case.encoded(case.rows)).astype(np.float64), 0.0
    for changed in (0, case.releases // 2, case.releases - 1):
        shift = np.sum((_stacked(case.encoded(case.neighbour(changed))) - here) ** 2, axis=1)
        shown = np.where(shift > 0.0, shift / np.maximum(variance, np.finfo(float).tiny), 0.0)
        worst = max(worst, float(np.sum(shown)))
    cost = case.calibrated.cost(case.releases)
    charged, what = _allowed(cost), "the charged mu" if _all_gaussian(cost) else "what the charge allows"
    demand(charged > 0.0 or worst == 0.0, "nothing is charged", "Charge every release when it is made.")
    if charged == 0.0:
        return "nothing moves the statistics"
    fault = f"two streams at the certified distance are distinguished with mu = {math.sqrt(worst):.4g}, and {what} is "
    fault += f"{math.sqrt(charged):.4g}"
    give, used = FAR * math.sqrt(2.0 / drawn[:, 0].size), math.sqrt(worst / charged)
    demand(worst * (1.0 - give) <= charged, fault, "Scale the noise to all encoded rows that a unit changes.")
    return f"the worst pair tried uses {used:.0%} of {what}, give or take {give / 2.0:.0%}"


def _selection_is_covered(case: MechanismCase) -> str:
    """In the neighbour every second candidate scores worse: the log-odds that one of them wins fall by at most eta.

    Odds are counted over many draws in both worlds, for each release and for their sum; with counts of wins and
    losses c in the two, the standard error of the difference of log-odds is `sqrt(Σ 1/c)`.
    """
    charged = np.array([_charged(case, k) for k in range(1, case.releases + 1)])
    wins = [_wins(case, rows, case.seeded) + 1.0 for rows in (case.rows, case.neighbour())]
    losses = [len(case.seeded) + 2.0 - won for won in wins]
    moved = np.log(wins[0] / losses[0]) - np.log(wins[1] / losses[1])
    unsure = FAR * np.sqrt(sum(1.0 / count for count in (*wins, *losses)))
    k = int(np.argmax((moved - unsure) / charged))
    fault = f"the log-odds of release {k + 1} fall by {moved[k]:.3g}, and {charged[k]:.3g} is charged"
    demand(moved[k] - unsure[k] <= charged[k], fault, "Use a smaller rate.")
    fault = f"the log-odds of all releases fall by {np.sum(moved):.4g}, and {np.sum(charged):.4g} is charged"
    demand(np.sum(moved) - np.linalg.norm(unsure) <= np.sum(charged), fault, "Use a smaller rate.")
    give = float(np.linalg.norm(unsure)) / np.sum(charged)
    return f"the pair tried uses {np.sum(moved) / np.sum(charged):.0%} of the charged ranges, give or take {give:.0%}"


def _charged(case: MechanismCase, k: int) -> float:
    """The range eta that release k is charged for: it costs `eta²/8` of zCDP, or eta of pure DP."""
    before, after = case.calibrated.cost(k - 1), case.calibrated.cost(k)
    return max(math.sqrt(8.0 * (after.rho - before.rho)), after.plain_epsilon - before.plain_epsilon)


def _wins(case: MechanismCase, rows: Array, noise: list[list[np.ndarray]]) -> Array:
    """How often the winner of each release is one of every second candidate."""
    encoded = case.encoded(rows)
    winners = np.array([case.decoded(_sum(encoded, drawn))[:, 0] for drawn in noise])
    return np.asarray(np.sum(winners % 2 == 0, axis=0, dtype=np.float64))


def _sum(encoded: list[np.ndarray], noise: list[np.ndarray]) -> list[np.ndarray]:
    return [a + b for a, b in zip(encoded, noise, strict=True)]


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    """All encoded rows of a stream, one below the other."""
    return np.concatenate([np.atleast_2d(part) for part in rows])


CHECKS = (
    encode_and_decode_follow_the_protocol,
    encode_and_decode_are_pure,
    mechanism_states_can_be_saved,
    costs_increase_up_to_the_budget,
    decoding_inverts_encoding,
    compiled_noise_matches_definition,
    secret_noise_is_fresh,
    releases_share_no_noise,
    seeded_noise_does_not_depend_on_batches,
    noise_has_the_stated_sd,
    noise_covers_the_sensitivity,
    noise_covers_all_rows_of_a_unit,
)
