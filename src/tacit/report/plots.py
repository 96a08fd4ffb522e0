"""Pictures of a run. They show what `tacit.regret` measured, so they are not private either."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array
from tacit.errors import TacitError

NOT_PRIVATE = "measured on the exact stream: not private"


def learning_curves(
    accuracies: Mapping[str, Array], regrets: Mapping[str, Array], title: str, path: str | os.PathLike[str]
) -> None:
    """Save two panels, progressive accuracy and average regret against the number of examples.

    Parameters
    ----------
    accuracies, regrets : mapping of label to ndarray
        For each contender, the running mean after 1, 2, … examples.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise TacitError("plots need the extra `plot` (matplotlib): install tacit[plot].") from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.6), layout="constrained")
    for axis, curves in ((left, accuracies), (right, regrets)):
        for label, values in curves.items():
            rounds = np.unique(np.geomspace(100, len(values), 400).astype(int))
            axis.plot(rounds, np.asarray(values)[rounds - 1], label=label)
        axis.set(xscale="log", xlabel="examples seen")
        axis.grid(True, which="both", alpha=0.25)
    left.set(ylabel="progressive accuracy")
    right.set(ylabel="average regret", yscale="log")
    left.legend(frameon=False)
    figure.suptitle(f"{title} ({NOT_PRIVATE})", fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)
