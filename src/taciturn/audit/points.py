"""Whether released points say no more than the noisy rows beside them.

The rest of an audit looks at noisy rows. That is enough if each point is computed from its row alone, by the learner's
`decide`, which is public: post-processing costs nothing. So that is looked at, on seeded and on secret noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from taciturn.audit.pairs import Pair
from taciturn.audit.transcripts import opening, released, way_through
from taciturn.core.private import Private
from taciturn.core.release import Releases

_CLOSE = 1e-9  # of the radius: compiled code rounds otherwise
_SEEDS = range(4)


def seeded_runs(private: Private, pair: Pair) -> list[Releases]:
    """A few transcripts of both worlds, by the pass that `Private.run` takes."""
    way, at, rounds = way_through(private), opening(private), private.timetable.rounds
    streams = [pair.bounded(private, world) for world in (0, 1)]
    return [released(way, at, *stream, rounds, seed)[1] for stream in streams for seed in _SEEDS]


def points_astray(private: Private, transcripts: Iterable[Releases]) -> list[str]:
    """A complaint if a point is not what `decide` makes of its noisy row.

    >>> from taciturn import Privacy, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=2)
    >>> shown = private.run(private.start(), [[1.0], [0.5]])[1]
    >>> points_astray(private, [shown])
    []
    >>> points_astray(private, [Releases(shown.rounds, 1, shown.noisy, shown.points + 1.0, shown.noise_sd, False)])
    ['points do not follow from noisy rows']
    """
    follow = all(_follow(private, shown) for shown in transcripts)
    return [] if follow else ["points do not follow from noisy rows"]


def _follow(private: Private, shown: Releases) -> bool:
    """Up to rounding errors, in parts of the radius; where that is infinite, of the longest point, or of 1."""
    decided = np.array([private.learner.decide(each.t, each.noisy, each.noise_sd) for each in shown])
    radius = private.problem.radius
    size = radius if math.isfinite(radius) else max(1.0, float(np.max(np.abs(decided))))
    return decided.shape == shown.points.shape and bool(np.all(np.abs(shown.points - decided) <= _CLOSE * size))
