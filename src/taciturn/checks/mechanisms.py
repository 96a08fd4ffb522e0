"""Checks of a mechanism: its protocol, its costs, what it does without noise, and its noise.

Deviations are measured on 50 seeds of rows of 48 entries, 2,400 numbers for each encoded row; a variance is then known
to `sqrt(2/2400)`, 2.9 %. A true mechanism, on fresh seeds, would be off by `FAR` = 6.2 of those with probability below
3e-9 an encoded row (the tails of chi square), and there are fewer than a hundred.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.accounting.cost import FREE
from taciturn.accounting.gdp import Privacy
from taciturn.checks.streams import copied, generator, same
from taciturn.checks.suite import COPY, OF_THE_NOISE, demand, skip
from taciturn.core.protocols import Calibrated, Certificate, Mechanism
from taciturn.core.schedule import Timetable, every
from taciturn.errors import InvalidInput

BUDGET = Privacy(epsilon=10.0, delta=1e-6)
"""So large that what is measured is larger than how finely it can be."""

SEEDS = 50

CERTIFICATES = {
    "l2/tail": Certificate("l2", "tail", "1/t", lambda t: 1.0 / t, 1.0, "one example moves every later row", "stated"),
    "l2/entry": Certificate("l2", "entry", "1", np.ones_like, 1.0, "one example moves its own row", "stated"),
    "range/tail": Certificate("range", "tail", "1", np.ones_like, 64.0, "one example moves every later row", "stated"),
}


@dataclass(frozen=True)
class Hiding:
    """A mechanism, with a horizon of a dozen releases or without one."""

    mechanism: Mechanism
    horizon: int | None = 12
    releases: int = 12
    stated: Certificate | None = None

    @property
    def size(self) -> int:
        """Entries of a row: few candidates for a race, many to measure noise on."""
        return 6 if self.certificate.metric == "range" else 48

    @cached_property
    def certificate(self) -> Certificate:
        """The one that was stated, or one of the kind that it accepts."""
        if self.stated is not None:
            return self.stated
        accepted = self.mechanism.accepts
        if accepted not in CERTIFICATES:
            skip(f"{accepted} is none of {', '.join(CERTIFICATES)}")
        return CERTIFICATES[accepted]

    @cached_property
    def calibrated(self) -> Calibrated:
        """For the budget; a mechanism may need a horizon."""
        timetable = Timetable(every(1), self.horizon)
        try:
            return self.mechanism.calibrate(self.certificate, timetable, self.size, BUDGET, "exact")
        except InvalidInput as refusal:
            if self.horizon is None:
                skip(f"{type(self.mechanism).__name__} needs a horizon: {refusal}")
            raise

    @cached_property
    def rows(self) -> Array:
        """Rows well within the magnitude."""
        return generator(3).uniform(-0.4, 0.4, size=(self.releases, self.size))

    def neighbour(self, changed: int = 0) -> Array:
        """Rows as far from these as certified: row `changed`, or it and all later ones."""
        rows, rounds = self.rows.copy(), np.arange(1, self.releases + 1)
        moved = self.certificate.at(rounds)
        if self.certificate.metric == "range":
            towards = np.where(np.arange(self.size) % 2 == 0, 0.5, -0.5)
        else:
            towards = np.full(self.size, self.size**-0.5)
        last = changed + 1 if self.certificate.reach == "entry" else self.releases
        rows[changed:last] += moved[changed:last, None] * towards
        return rows

    def encoded(self, rows: Array) -> list[Integers]:
        """What each row becomes on the secret side."""
        secret, out = self.calibrated.start()[0], []
        for k, row in enumerate(rows, start=1):
            secret, integers = self.calibrated.encode(secret, row.copy(), k)
            out.append(integers)
        return out

    def decoded(self, noisy: list[Integers]) -> Array:
        """What the public side makes of it."""
        public, out = self.calibrated.start()[1], []
        for k, integers in enumerate(noisy, start=1):
            public, row, _ = self.calibrated.decode(public, integers, k)
            out.append(row)
        return np.array(out)

    @cached_property
    def seeded(self) -> list[list[Integers]]:
        """The noise of many simulations: of more races, as each tells less."""
        return [self.noise(seed) for seed in range(SEEDS * (64 if self.certificate.metric == "range" else 1))]

    def noise(self, seed: int | None) -> list[Integers]:
        """The noise of all releases."""
        return [np.asarray(drawn) for drawn in self.calibrated.noise(seed, 1, self.releases)]


def encode_and_decode_keep_the_protocol(hiding: Hiding) -> None:
    """Integers are encoded and noised, floats decoded; shapes fit, and the deviation is the one that is stated.

    Noise on floats can be undone from their low bits; noise on integers cannot.
    """
    calibrated, size = hiding.calibrated, 1 if hiding.certificate.metric == "range" else hiding.size
    public = calibrated.start()[1]
    for k, (encoded, noise) in enumerate(zip(hiding.encoded(hiding.rows), hiding.noise(None), strict=True), start=1):
        whole = encoded.dtype == noise.dtype == np.int64 and encoded.shape == noise.shape
        fault = f"release {k} encodes {encoded.dtype}{encoded.shape} and draws {noise.dtype}{noise.shape}"
        demand(whole, fault, "Encode rows as int64, and draw as many int64.")
        public, row, sd = calibrated.decode(public, encoded + noise, k)
        legal = row.shape == (size,) and row.dtype == np.float64
        demand(legal, f"release {k} decodes {row.dtype}{row.shape}", f"Return {size} floats.")
        stated, moved = calibrated.noise_sd(k), float(hiding.certificate.at(k))
        hidden = sd == stated and (sd > 0.0) == (moved > 0.0)
        fault = f"release {k} is moved by {moved:.3g}, decode says deviation {sd}, and noise_sd {stated}"
        demand(hidden, fault, "State one deviation, above 0 where an example moves the row.")


def encode_and_decode_are_pure(hiding: Hiding) -> None:
    """They change nothing that they are given, give the same twice, and keep the names of their memories."""
    calibrated, (secret, public) = hiding.calibrated, hiding.calibrated.start()
    for k, row in enumerate(hiding.rows, start=1):
        given, before = row.copy(), (copied(secret), copied(public))
        pairs = [calibrated.encode(secret, given, k) for _ in range(2)]
        noisy = pairs[0][1].copy()
        decoded = [calibrated.decode(public, noisy, k) for _ in range(2)]
        alike = np.array_equal(pairs[0][1], pairs[1][1]) and np.array_equal(decoded[0][1], decoded[1][1])
        demand(alike, f"release {k} is another when it is asked for again", "Keep all memory in the two memories.")
        clean = same(secret, before[0]) and same(public, before[1])
        clean = clean and np.array_equal(given, row) and np.array_equal(noisy, pairs[0][1])
        demand(clean, f"release {k} wrote into what it was given", COPY)
        named = pairs[0][0].keys() == secret.keys() and decoded[0][0].keys() == public.keys()
        demand(named, "a memory changes its names", "Keep those of start().")
        secret, public = pairs[0][0], decoded[0][0]


def memories_can_be_stored(hiding: Hiding) -> None:
    """Both memories come back from a file as they were, without pickle, at every release."""
    calibrated, (secret, public) = hiding.calibrated, hiding.calibrated.start()
    for k, row in enumerate(hiding.rows, start=1):
        secret, encoded = calibrated.encode(_stored(secret), row, k)
        public, _, _ = calibrated.decode(_stored(public), encoded, k)
    demand(
        same(_stored(secret), secret) and same(_stored(public), public), "a memory is not plain", "Use plain arrays."
    )
    again = hiding.encoded(hiding.rows)[-1]
    demand(np.array_equal(encoded, again), "stored memories lead elsewhere", "Keep all memory in the two memories.")


def _stored(memory: Arrays) -> Arrays:
    file = io.BytesIO()
    np.savez(file, **memory)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def costs_only_rise_to_the_budget(hiding: Hiding) -> None:
    """Nothing costs nothing, no release takes any of the cost back, and all there can ever be is within the budget."""
    calibrated = hiding.calibrated
    costs = np.array([calibrated.cost(k).parts for k in (*range(hiding.releases + 1), None)])
    demand(calibrated.cost(0) == FREE, f"no release costs {calibrated.cost(0)}", "Return FREE for k = 0.")
    demand((np.diff(costs, axis=0) >= 0.0).all(), "the cost of more releases is less", "Add up what was spent.")
    charged = (costs[1] > 0.0).any() or float(hiding.certificate.at(1)) == 0.0
    demand(charged, "the first release costs nothing", "Charge the first release when it is made.")
    within = calibrated.claimed == BUDGET and calibrated.cost(None).within(BUDGET)
    demand(within, f"{BUDGET} was asked for, and all releases cost {calibrated.cost(None)}", "Draw more noise.")


def without_noise_rows_come_back(hiding: Hiding) -> None:
    """Decoded without noise, rows are what was encoded: their running sums for `entry`, the least for `range`."""
    shown, rows = hiding.decoded(hiding.encoded(hiding.rows)), hiding.rows
    sd = np.array([hiding.calibrated.noise_sd(k) for k in range(1, hiding.releases + 1)])
    if hiding.certificate.metric == "range":
        off = rows[np.arange(len(rows)), shown[:, 0].astype(np.int64)] - np.min(rows, axis=1)
    else:
        expected = np.cumsum(rows, axis=0) if hiding.certificate.reach == "entry" else rows
        off = np.max(np.abs(shown - expected), axis=1)
    k = int(np.argmax(off / sd))
    fault = f"without noise, release {k + 1} is off by {off[k]:.3g}, and the noise would be {sd[k]:.3g}"
    demand(off[k] <= OF_THE_NOISE * sd[k], fault, "See what encode or decode forgets.")


def rows_are_hidden_together_as_one_by_one(hiding: Hiding) -> None:
    """The compiled noise is what `encode`, the noise and `decode` give, up to rounding and a lattice step."""
    from taciturn.compiled.passes import noise_of

    calibrated = hiding.calibrated
    if (batch := noise_of(calibrated)) is None:
        skip(f"{type(calibrated).__name__} has no compiled noise")
    secret, public = calibrated.start()
    noise = batch.draw(5, 1, hiding.releases)
    fast = batch.add(secret, public, hiding.rows, 1, noise)
    slow = hiding.decoded([a + b for a, b in zip(hiding.encoded(hiding.rows), hiding.noise(5), strict=True)])
    off = float(np.max(np.abs(fast.noisy - slow) / fast.noise_sd[:, None]))
    remedy = "Make the compiled noise do what encode and decode do, or leave it out."
    demand(off <= OF_THE_NOISE, f"the compiled noise is off by {off:.3g} of the noise", remedy)
    stated = [hiding.calibrated.noise_sd(k) for k in range(1, hiding.releases + 1)]
    demand(
        np.allclose(fast.noise_sd, stated, rtol=1e-9),
        "the compiled noise states other standard deviations than noise_sd",
        remedy,
    )


FAR = 6.2


def secret_noise_is_fresh(hiding: Hiding) -> None:
    """The same releases asked for twice get other noise, every one of them, and none gets no noise.

    Noise is spread over more than 2²⁰ integers: a row of it is 0, or the same again, with probability below 2⁻¹⁰⁰.
    """
    one, other = hiding.noise(None), hiding.noise(None)
    for k, (a, b) in enumerate(zip(one, other, strict=True), start=1):
        drawn = all(np.any(row) for row in np.atleast_2d(a))
        demand(drawn, f"release {k} gets no noise", "Draw noise for every row that is encoded.")
        demand(
            not np.array_equal(a, b), f"release {k} gets the same noise again", "Draw from secret bits, never twice."
        )


def releases_share_no_noise(hiding: Hiding) -> None:
    """No row of noise is used for two releases: their difference would show the data."""
    rows = np.concatenate([np.atleast_2d(drawn) for drawn in hiding.noise(None)])
    demand(len(np.unique(rows, axis=0)) == len(rows), "two encoded rows get the same noise", "Draw anew for each.")


def seeded_noise_does_not_depend_on_the_cut(hiding: Hiding) -> None:
    """A seed gives release k the same noise whichever calls ask for it, and another seed other noise."""
    whole, other, n = hiding.noise(5), hiding.noise(6), hiding.releases
    for k, count in ((1, 1), (2, 3), (5, n - 4), (3, 2), (n, 1)):
        part = list(hiding.calibrated.noise(5, k, count))
        alike = all(np.array_equal(a, b) for a, b in zip(part, whole[k - 1 : k - 1 + count], strict=True))
        demand(alike, f"releases {k} to {k + count - 1} get other noise by themselves", "Number draws by release.")
    alike = any(np.array_equal(a, b) for a, b in zip(whole, other, strict=True))
    demand(not alike, "two seeds give the same noise", "Let the seed reach the sampler.")


def noise_is_as_large_as_stated(hiding: Hiding) -> None:
    """The deviation of the decoded noise is `noise_sd`, which every release says of itself."""
    if hiding.certificate.metric == "range":
        skip("only the winner of a race is shown")
    nothing = hiding.encoded(np.zeros_like(hiding.rows))
    decoded = np.array([hiding.decoded(_sum(nothing, drawn)) for drawn in hiding.seeded])
    stated = np.array([hiding.calibrated.noise_sd(k) for k in range(1, hiding.releases + 1)])
    ratio = np.mean(decoded**2, axis=(0, 2)) / stated**2
    k = int(np.argmax(np.abs(ratio - 1.0)))
    fault = f"the noise of release {k + 1} has {math.sqrt(ratio[k]):.3g} of the deviation that it states"
    demand(
        abs(ratio[k] - 1.0) <= FAR * math.sqrt(2.0 / decoded[:, 0].size), fault, "State the deviation of decoded noise."
    )


def noise_is_enough(hiding: Hiding) -> str:
    """Two streams as far apart as certified are told apart no better than the stated cost says.

    With D the neighbour's shift of the encoded integers and s the deviation of their noise, `Σ D²/s²` is mu², exactly
    what telling them apart yields; for a race, the log-ratio of the winners' chances has a range of `eta`.
    """
    return _race_is_enough(hiding) if hiding.certificate.metric == "range" else _gaussian_is_enough(hiding)


def _gaussian_is_enough(hiding: Hiding) -> str:
    drawn = np.array([_stacked(noise) for noise in hiding.seeded], dtype=np.float64)
    variance = np.mean(drawn**2, axis=(0, 2))
    here, worst = _stacked(hiding.encoded(hiding.rows)).astype(np.float64), 0.0
    for changed in (0, hiding.releases // 2, hiding.releases - 1):
        shift = np.sum((_stacked(hiding.encoded(hiding.neighbour(changed))) - here) ** 2, axis=1)
        shown = np.where(shift > 0.0, shift / np.maximum(variance, np.finfo(float).tiny), 0.0)
        worst = max(worst, float(np.sum(shown)))
    charged = hiding.calibrated.cost(hiding.releases).mu_squared
    fault = f"two streams as far apart as certified are told apart with mu = {math.sqrt(worst):.4g}, and charged are "
    fault += f"mu = {math.sqrt(charged):.4g}"
    give, used = FAR * math.sqrt(2.0 / drawn[:, 0].size), math.sqrt(worst / charged)
    demand(worst * (1.0 - give) <= charged, fault, "Scale the noise to all the encoded rows that one example moves.")
    return f"the worst pair tried uses {used:.0%} of the charged mu, give or take {give / 2.0:.0%}"


def _race_is_enough(hiding: Hiding) -> str:
    """Every other candidate has lost ground in the neighbour: the log-odds that one of them wins fall by eta at most.

    Odds are counted over many races in both worlds, each release by itself and all together; with counts of wins and
    losses c in the two, the difference of log-odds is known to `sqrt(Σ 1/c)`.
    """
    charged = np.array([_charged(hiding, k) for k in range(1, hiding.releases + 1)])
    wins = [_wins(hiding, rows, hiding.seeded) + 1.0 for rows in (hiding.rows, hiding.neighbour())]
    losses = [len(hiding.seeded) + 2.0 - won for won in wins]
    moved = np.log(wins[0] / losses[0]) - np.log(wins[1] / losses[1])
    unsure = FAR * np.sqrt(sum(1.0 / count for count in (*wins, *losses)))
    k = int(np.argmax((moved - unsure) / charged))
    fault = f"the log-odds of release {k + 1} fall by {moved[k]:.3g}, and charged are {charged[k]:.3g}"
    demand(moved[k] - unsure[k] <= charged[k], fault, "Slow the race down.")
    fault = f"the log-odds of all releases fall by {np.sum(moved):.4g}, and charged are {np.sum(charged):.4g}"
    demand(np.sum(moved) - np.linalg.norm(unsure) <= np.sum(charged), fault, "Slow the race down.")
    give = float(np.linalg.norm(unsure)) / np.sum(charged)
    return f"the pair tried uses {np.sum(moved) / np.sum(charged):.0%} of the charged ranges, give or take {give:.0%}"


def _charged(hiding: Hiding, k: int) -> float:
    """The range that release k is charged for: of eta it costs `eta²/8` of zCDP, or eta."""
    before, after = hiding.calibrated.cost(k - 1), hiding.calibrated.cost(k)
    return max(math.sqrt(8.0 * (after.rho - before.rho)), after.plain_epsilon - before.plain_epsilon)


def _wins(hiding: Hiding, rows: Array, noise: list[list[np.ndarray]]) -> Array:
    """How often the winner of each release is one of every other candidate."""
    encoded = hiding.encoded(rows)
    winners = np.array([hiding.decoded(_sum(encoded, drawn))[:, 0] for drawn in noise])
    return np.asarray(np.sum(winners % 2 == 0, axis=0, dtype=np.float64))


def _sum(encoded: list[np.ndarray], noise: list[np.ndarray]) -> list[np.ndarray]:
    return [a + b for a, b in zip(encoded, noise, strict=True)]


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    """All encoded rows of a stream, one below the other."""
    return np.concatenate([np.atleast_2d(part) for part in rows])


CHECKS = (
    encode_and_decode_keep_the_protocol,
    encode_and_decode_are_pure,
    memories_can_be_stored,
    costs_only_rise_to_the_budget,
    without_noise_rows_come_back,
    rows_are_hidden_together_as_one_by_one,
    secret_noise_is_fresh,
    releases_share_no_noise,
    seeded_noise_does_not_depend_on_the_cut,
    noise_is_as_large_as_stated,
    noise_is_enough,
)
