"""What follows from the releases of a stream: the model to use, several memories, and drift. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from taciturn.averages import late_averages_of
from taciturn.core.private import Private
from taciturn.drift import Drift, DriftWatch, comparable
from taciturn.errors import StateConflict
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.stream.protocols import damaged
from taciturn.kernel.stream.release import Releases
from taciturn.memories import Memories
from taciturn.plan import Plan

_MEMORIES, _DRIFT = "memories.", "drift."  # prefixes of arrays in a checkpoint


@dataclass(frozen=True, eq=False)
class Published:
    """What follows from the first k releases of a stream; it costs no privacy, and is stored beside the state.

    Parameters
    ----------
    plan : Plan
        How the stream learns.
    k : int
        Number of releases.
    model : ndarray
        The point to use: the last released, the late average of the released ones, or that of the memory that fits
        best, as the plan says; before the first release the data-free point, or the model of the stream that it
        follows.
    memories : Memories, optional
        If the plan has several.
    watch : DriftWatch, optional
        Compares released statistics; None if they cannot be compared.

    Examples
    --------
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0, seed=1).plan(1, horizon=2)
    >>> _, releases = plan.private.run(plan.private.start(), np.array([[0.6], [1.0]]), np.array([0.5, -0.5]))
    >>> published, models = Published.start(plan).after(releases)
    >>> published.k, models.shape, bool((published.model == releases.points[-1]).all())
    (2, (2, 2), True)
    """

    plan: Plan
    k: int
    model: Array
    memories: Memories | None = None
    watch: DriftWatch | None = None

    @classmethod
    def start(cls, plan: Plan) -> Published:
        """Before the first release."""
        model = plan.private.first_point if plan.renewal is None else np.array(plan.renewal.point)
        return cls(plan, 0, model, *_parts(plan))

    @classmethod
    def resumed(cls, plan: Plan, k: int, arrays: Arrays) -> Published:
        """After k releases, from what `arrays` stored, validated."""
        size = len(plan.private.first_point)
        if "model" not in arrays:
            raise StateConflict("this state has no model besides it. Give one that was stored with its model.")
        if arrays["model"].shape != (size,) or arrays["model"].dtype != np.float64:
            raise damaged(f"the model should be float64 of shape {(size,)}", "arrays")
        memories, watch = _parts(plan)
        memories = None if memories is None else memories.resumed(k, _stored(arrays, _MEMORIES))
        watch = None if watch is None else watch.resumed(_stored(arrays, _DRIFT))
        return cls(plan, k, arrays["model"], memories, watch)

    def after(self, releases: Releases) -> tuple[Published, Array]:
        """The same after the next releases, and the model to use after each of these, one row each."""
        if not len(releases):
            return self, np.empty((0, len(self.model)))
        memories = self.memories
        if memories is not None:
            memories, models, _ = memories.after(releases)
        elif self.plan.averages:
            since = self.plan.private.timetable.due(self.k) if self.k else 0
            models = late_averages_of(releases, self.model if self.k else None, since or 0, window=self.plan.window)
        else:
            models = np.array(releases.points)
        watch = None if self.watch is None else self.watch.after(releases)
        new = object.__new__(Published)  # as `replace`, which takes longer: there may be a release after every example
        new.__dict__.update(plan=self.plan, k=self.k + len(releases), model=models[-1], memories=memories, watch=watch)
        return new, models

    @property
    def arrays(self) -> Arrays:
        """What a checkpoint stores."""
        made: Arrays = {"model": self.model}
        for prefix, part in ((_MEMORIES, self.memories), (_DRIFT, self.watch)):
            made |= {} if part is None else {f"{prefix}{name}": array for name, array in part.arrays.items()}
        return made

    @property
    def drift(self) -> Drift | None:
        """How far released statistics moved from window to window, in units of their noise; None if not comparable."""
        return None if self.watch is None else self.watch.drift


def _parts(plan: Plan) -> tuple[Memories | None, DriftWatch | None]:
    """Memories and watch of a plan before the first release."""
    private = cast(Private, plan.private)
    return (
        None if plan.memories is None else Memories(private, plan.memories),
        DriftWatch(private) if comparable(plan.private) else None,
    )


def _stored(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
