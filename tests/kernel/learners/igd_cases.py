"""Learners whose compiled steps are compared with high-precision arithmetic, on dense and sparse rows."""

from __future__ import annotations

import math

from taciturn import (
    GIGA,
    IGD,
    Absolute,
    FadingIGD,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Problem,
    Quantile,
    Squared,
)

LOSSES = [Absolute(), Hinge(), Huber(0.3), Linear(), Logistic(), Quantile(0.9), Squared()]
RIDGES = [1.0, 0.2, 0.01]
KINDS = [(kind, loss) for kind in ("igd", "fading") for loss in LOSSES]
KINDS += [(kind, loss) for kind in ("giga", "printed") for loss in LOSSES if math.isfinite(loss.curvature)]


def made(loss, domain, ridge, kind="igd", d=2):
    """A learner of one kind on one problem."""
    problem = Problem(loss, domain, d, label_bound=0.6, ridge=ridge)
    if kind == "fading":
        return FadingIGD(Problem(loss, domain, d, label_bound=0.6), strength=ridge)
    return IGD(problem) if kind == "igd" else GIGA(problem, "printed" if kind == "printed" else "contracting")
