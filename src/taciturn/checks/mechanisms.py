"""Checks of a mechanism that no noise is needed for: its protocol, its costs, and what it does without noise."""

from __future__ import annotations

import io

import numpy as np

from taciturn._util.arrays import Arrays
from taciturn.accounting.cost import FREE
from taciturn.checks.hiding import BUDGET, Hiding
from taciturn.checks.streams import copied, same
from taciturn.checks.suite import COPY, OF_THE_NOISE, demand, skip


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


CHECKS = (
    encode_and_decode_keep_the_protocol,
    encode_and_decode_are_pure,
    memories_can_be_stored,
    costs_only_rise_to_the_budget,
    without_noise_rows_come_back,
    rows_are_hidden_together_as_one_by_one,
)
