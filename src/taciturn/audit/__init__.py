"""Audits: statistical tests of a privacy claim on the code that runs.

Two streams that differ in one example, or in all rows of one user, are run many times, and complete transcripts are
compared, before projection. The *shift* that the difference causes is measured on common seeded noise, or along the
releases where those feed back; the *spread* of the noise along the shift is measured separately; and mu, their
quotient, gets a confidence interval with a stated error. A claim below the interval is refuted. A claim that is not
refuted is not proven: another pair of streams may be easier to distinguish, and the shape of the noise is only tested
for normality.

`audit` takes one of the paper's algorithms, on its tight problem; `distinguish` takes any `Private` with Gaussian noise
and any `Pair`; `distinguish_selections` and `distinguish_adaptive_selections` take an exponential mechanism with two
candidates; `distinguish_samples` takes samples of the transcripts of anything, and `audit_script` two published scripts
for bandits, which it refutes.

NOT PRIVATE: audits read exact statistics. Use simulated streams.
"""

from taciturn.audit.algorithm import Audit, audit
from taciturn.audit.pairs import Pair, adaptive_adversary, tight_pair, tight_private
from taciturn.audit.published_bandits import EventFinding, audit_script, distinguish_samples
from taciturn.audit.selection import distinguish_adaptive_selections, distinguish_selections
from taciturn.audit.verdict import Finding, distinguish

__all__ = [
    "Audit",
    "EventFinding",
    "Finding",
    "Pair",
    "adaptive_adversary",
    "audit",
    "audit_script",
    "distinguish",
    "distinguish_adaptive_selections",
    "distinguish_samples",
    "distinguish_selections",
    "tight_pair",
    "tight_private",
]
