"""Losses, sets and steps by number: compiled code that takes functions as arguments could not be kept on disk."""

from __future__ import annotations

Code = tuple[int, float, float]
"""A number and two parameters."""

SQUARED, LOGISTIC, HINGE, QUANTILE, ABSOLUTE, HUBER, LINEAR = range(7)
"""Losses of `v·x`: with a parameter (a quantile's level, Huber's width) and over how much kinks are rounded off."""

SOFTMAX, ONE_HOT = 7, 8
"""Smooth losses of several scores."""

ADVICE = 9
"""What experts lose, with the most it can be."""

MULTI_HINGE = 10
"""A kinked loss of several scores: for code that looks at values and slopes, and for none that solves."""

REAL, SIGN, CLASS, NONE = range(4)
"""Labels: any number, -1 or +1, one of several classes, or none."""

WHOLE, BALL, BOX = range(3)
"""Sets: with the least and the largest entry of a box, or 0 and the radius of a ball."""

IMPLICIT, FADING, GRADIENT, PRINTED = range(4)
"""Steps: with the ridge, or a fading one's strength, and with the delay, or the first round that moves."""

TINY = 1e-280
"""With `pull·‖v‖²` below this a step on scores moves W by less than `sqrt(2·pull)·1e-140`: 1e-109, as ridges go."""

TIE = 2.0**-40
"""Scores of MultiHinge tie that are closer than this share of 1 and the largest one: more than rounding moves them."""

Leader = tuple[Code, Code, float, float, float]
"""A regularised leader: loss, set, the most a slope and an entry of a gradient can be, and the lattice of gradients."""
