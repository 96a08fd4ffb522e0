"""Audits: whether a claim of privacy is true of the code that runs.

Two streams that differ in one example are run many times over, and whole transcripts are looked at, before projection.
How far the example *shifts* them is measured on common seeded noise, or along what was released where that feeds back;
how far the noise *spreads* along the shift is measured apart; and mu, the quotient, has an interval with a stated
error. A claim below the interval is refuted. One that is not is not proven by it: another pair of streams may be told
apart better, and of the noise's shape no more is seen than that it looks normal.

`audit` takes one of the paper's algorithms, on its tight problem; `tell_apart` any `Private` with Gaussian noise, on a
`Pair` of yours; `race_apart` and `race_along` a race between two candidates. NOT PRIVATE: audits look at exact rows.
Use streams that are nobody's.
"""

from taciturn.audit.algorithm import Audit, audit
from taciturn.audit.pairs import Pair, spiteful, tight_pair, tight_private
from taciturn.audit.race import race_along, race_apart
from taciturn.audit.verdict import Finding, tell_apart

__all__ = [
    "Audit",
    "Finding",
    "Pair",
    "audit",
    "race_along",
    "race_apart",
    "spiteful",
    "tell_apart",
    "tight_pair",
    "tight_private",
]
