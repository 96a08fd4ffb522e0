"""Which compiled pass serves which types: the tables.

A table has *exact* types as keys, so a subclass, whose methods may do something else, runs the definition
(`taciturn.kernel.stream.loop.Definition`). There are three kinds of fast paths:

* `STATISTICS`: a learner that does not use released points computes the statistics of many rounds at once;
* `NOISE`: a calibrated mechanism adds noise to the statistics of many releases at once;
* fused passes, from examples to points in one loop: iterate learners under independent Gaussian noise, and private
  FTRL, whose gradients are taken at released points, through a prefix-sum strategy.

All of them release what the definition releases under the same noise, up to rounding errors and a lattice step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taciturn.kernel.learners.class_sums import ClassSums, SumsByClass
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.learners.ftrl_pass import FTRLPass, Gradients, leader_of
from taciturn.kernel.learners.igd import IGD, FadingIGD
from taciturn.kernel.learners.igd_pass import IteratePass, Iterates
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.learners.qftl_pass import PlayedArms, Products
from taciturn.kernel.learners.vector_sum import VectorSum, VectorSums
from taciturn.kernel.mechanisms import gaussian
from taciturn.kernel.mechanisms.lattice import GaussianNoise, OnLattice
from taciturn.kernel.mechanisms.prefix_sum_pass import KINDS, SUMS, PrefixSumNoise
from taciturn.kernel.mechanisms.sqrt import RootCoder
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.batch_pass import Adding, BatchPass, Noise, Statistics
from taciturn.kernel.stream.loop import Pass
from taciturn.kernel.stream.protocols import Calibrated, Learner


def find(learner: Learner, calibrated: Calibrated) -> Pass | None:
    """The compiled pass for this learner and this calibrated mechanism, or None if there is none.

    >>> from taciturn import Hinge, L2Ball, Privacy, Problem, pftrl
    >>> private = pftrl(Problem(Hinge(), L2Ball(1.0), dimension=2), Privacy(1.0, 1e-6), horizon=100)
    >>> type(find(private.learner, private.calibrated)).__name__
    'FTRLPass'
    """
    if isinstance(learner, FTRL):
        return FTRLPass.of(learner, calibrated)
    fast, noise = statistics_of(learner), noise_of(calibrated)
    if fast is None or noise is None:
        return None
    if isinstance(fast, Iterates) and isinstance(calibrated, OnLattice):
        return IteratePass(fast.steps, calibrated)
    return BatchPass(fast, noise, compressed=isinstance(fast, SumsByClass))


def adding(learner: Learner) -> Pass | None:
    """The compiled pass that adds up the examples of a learner of sums, and releases nothing; None if there is none."""
    if isinstance(learner, FTRL):
        leader = leader_of(learner)
        return None if leader is None else Gradients(leader)
    fast = statistics_of(learner)
    return None if fast is None else Adding(fast, compressed=isinstance(fast, SumsByClass))


def statistics_of(learner: Learner) -> Statistics | None:
    """The fast path to a learner's statistics, or None."""
    factory = STATISTICS.get(type(learner))
    if factory is None or type(learner.problem) is not Problem:
        return None
    return factory(learner)


def noise_of(calibrated: Calibrated) -> Noise | None:
    """The fast path to a mechanism's noise, or None."""
    factory = NOISE.get(type(calibrated))
    return None if factory is None else factory(calibrated)


def has_known_arrays(learner: Learner, calibrated: Calibrated) -> bool:
    """Whether their arrays are known by their exact types."""
    coder = type(getattr(calibrated, "coder", None))
    learners = learner, getattr(learner, "learner", learner)  # a learner, and one whose iterates it averages
    of_learner = all(type(each) in (FTRL, *STATISTICS, *ARRAYS) for each in learners)
    of_noise = type(calibrated) in (*NOISE, *ARRAYS) and coder in (type(None), RootCoder, *SUMS)
    return of_learner and of_noise and type(learner.problem) is Problem


ARRAYS: set[type] = set()
"""Types outside of the kernel that run by definition, and whose arrays have the shapes of those at the start."""


STATISTICS: dict[type, Callable[[Any], Statistics | None]] = {
    IGD: Iterates.of,
    FadingIGD: Iterates.of,
    QFTL: Products,
    LinearBandit: PlayedArms,
    VectorSum: VectorSums,
    ClassSums: SumsByClass,
}
"""The fast path to the statistics of each learner, by its exact type."""


def register(kind: type, factory: Callable[[Any], Statistics | None]) -> None:
    """Give the learners of this exact type a fast path to their exact statistics; noise has none that is registered.

    >>> from taciturn.methods.ftl import FTL
    >>> FTL in STATISTICS
    True
    """
    STATISTICS[kind] = factory


NOISE: dict[type, Callable[[Any], Noise | None]] = {
    gaussian.FiniteGaussian: GaussianNoise,
    gaussian.EndlessGaussian: GaussianNoise,
    **dict.fromkeys(KINDS, PrefixSumNoise.of),
}
"""The fast path to the noise of each calibrated mechanism, by its exact type."""
