"""Sums that forget beside prefix sums: CPU time per round of whole streams, and the noise of the last sum.

Both strategies have five buffers. The finite BLT is planned for the number of rounds of the stream, `DecayedBLT` for a
window of a hundredth of it, so that its buffers are exchanged several times or not at all. Streams of 200,000 examples
with ten features are learnt in one call, by private sums, FTRL (logistic loss) and PQFTL, with a release after every
example or after every hundred; PQFTL after every hundred. The score is the standard deviation of the last sum over what
one example moves, at mu = 1: that of decayed sums stays where it is, however long the stream is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from runner import Contender, Ratio, parse_options, run, use_one_core
from streams import BUDGET
from taciturn import BLT, DecayedBLT, L2Ball, Logistic, Private, Problem, Squared, every, pftrl, pqftl, private_sum

FEATURES = 10
BUFFERS = 5
BALL = L2Ball(5.0)


def recipes() -> dict[str, Callable[..., Private]]:
    """The learners, without horizon, strategy and schedule."""
    return {
        "sum": lambda n, **more: private_sum(FEATURES, 1.0, BUDGET, n, **more),
        "FTRL": lambda n, **more: pftrl(Problem(Logistic(), BALL, FEATURES), BUDGET, n, **more),
        "PQFTL": lambda n, **more: pqftl(Problem(Squared(), BALL, FEATURES, label_bound=1.0), BUDGET, n, **more),
    }


def stream(private: Private, X: Any, y: Any) -> Private:
    """All examples in one call, from the start."""
    private.run(private.start(), X, y)
    return private


def noise(private: Private) -> float:
    """The standard deviation of the last sum at mu = 1, if one example moves a row by 1."""
    moved = float(private.learner.certificate.at([private.schedule.rounds])[0])  # type: ignore[attr-defined]
    return private.calibrated.noise_sd(private.timetable.count) * private.guarantee.delivered.mu / moved


def contenders(n: int) -> dict[str, Contender]:
    """Each learner and schedule, with either strategy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels = np.sign(X[:, 0])
    made = {}
    for name, recipe in recipes().items():
        for wait in (1, 100) if name != "PQFTL" else (100,):
            for title, strategy in (("finite", BLT(BUFFERS)), ("forgetting", DecayedBLT(n // 100, BUFFERS))):
                private = recipe(n, strategy=strategy, schedule=every(wait))
                work = partial(stream, private, X, None if name == "sum" else labels)
                made[f"{name}, every({wait}): {title}"] = Contender(work, n, noise)
    return made


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    made = contenders(20_000 if chosen.quick else 200_000)
    titles = dict.fromkeys(name.partition(": ")[0] for name in made)
    ratios = {
        f"forgetting / finite, {title}": Ratio(f"{title}: forgetting", f"{title}: finite", at_most=1.2)
        for title in titles
    }
    score = "standard deviation of the last sum at mu = 1"
    run("decayed_sums", made, ratios, chosen, unit="µs per round", packages=("numpy", "numba"), score=score)


if __name__ == "__main__":
    main()
