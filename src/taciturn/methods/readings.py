"""The noise that the paper states for its learners, in either reading, as a table by their types."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from taciturn.calibration.paper import (
    PaperCertificate,
    PaperNoise,
    Reading,
    pocp_noise,
    pqftl_noise,
    tree_noise,
)
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput
from taciturn.kernel.learners.igd import IGD
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.stream.protocols import Certificate, Learner


def in_the_paper(certificate: Certificate, learner: Learner) -> Certificate:
    """A learner's certificate, with the noise that the paper states for it, if it names the learner.

    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> learner = IGD(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1))
    >>> type(in_the_paper(learner.certificate, learner)).__name__
    'PaperCertificate'
    """
    stated = paper_noise(learner)
    return certificate if stated is None else PaperCertificate.of(certificate, stated)


def paper_noise(learner: Learner) -> PaperNoise | None:
    """The noise that the paper states for a learner; None for one that it does not name, or with another certificate.

    >>> from taciturn import FTRL, Hinge, L2Ball, Problem
    >>> paper_noise(FTRL(Problem(Hinge(), L2Ball(1.0), dimension=2))) is None
    True
    """
    for kind in type(learner).__mro__:
        if kind in IN_THE_PAPER:
            return IN_THE_PAPER[kind](learner)
        if "certificate" in vars(kind):
            return None
    return None


def _of_igd(learner: IGD) -> PaperNoise:
    """Lemma 4 in both readings: `lam = 2L`, with L the Lipschitz constant of the loss and its ridge."""
    return partial(pocp_noise, 2.0 * learner.steepest)


def _of_vector_sum(learner: VectorSum) -> PaperNoise:
    """Algorithm 5, its two readings one."""

    def noise(privacy: Privacy, horizon: int, rounds: Array, reading: Reading) -> tuple[Array, Privacy]:
        return np.full(len(rounds), tree_noise(learner.problem.norm_bound, privacy, horizon)), privacy

    return noise


def _of_qftl(learner: QFTL) -> PaperNoise | None:
    """Algorithm 4: two trees; `weight` must be the ratio of their noises, as one `noise_sd` serves both."""
    if learner.problem.outputs > 1 or learner.problem.neighbours == "label":
        return None

    def noise(privacy: Privacy, horizon: int, rounds: Array, reading: Reading) -> tuple[Array, Privacy]:
        matrix, vector = pqftl_noise(max(learner.problem.norm_bound, learner.label_bound), privacy, horizon)
        if not math.isclose(learner.w, matrix / vector, rel_tol=1e-6):
            raise InvalidInput(f"the paper's two trees need weight={matrix / vector:.6g}, got {learner.w:.6g}.")
        return np.full(len(rounds), matrix), privacy

    return noise


IN_THE_PAPER: dict[type, Callable[[Any], PaperNoise | None]] = {
    IGD: _of_igd,
    VectorSum: _of_vector_sum,
    QFTL: _of_qftl,
}
"""The learners that the paper names, with those of `methods/`; not a subclass with a certificate of its own."""
