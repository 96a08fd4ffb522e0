"""A picture of claims: the epsilon that is delivered beside the one that is claimed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from taciturn.report.plots import _pyplot

Points = Sequence[tuple[float, float]]
"""Claimed and delivered epsilons."""

COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which people with any of the common kinds of colour blindness tell apart."""
MARKS = ("o", "s", "^", "D", "v", "P", "X")


def delivered_claims(
    panels: Mapping[str, Mapping[tuple[str, str], Points]], title: str, path: str | os.PathLike[str]
) -> None:
    """Save delivered against claimed epsilon on logarithmic axes; what lies over the diagonal is a broken claim.

    Parameters
    ----------
    panels : mapping of setting to mapping of (algorithm, reading) to points
        Side by side. A colour and a mark stand for an algorithm, a dashed line for every reading but the first one met;
        of lines that coincide the later is thinner, and lies on the earlier. What delivers 0 has no place.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.

    Examples
    --------
    >>> import io
    >>> delivered_claims({"alpha = 1": {("PIGD", "proven"): [(3.0, 0.2), (30.0, 2.0)]}}, "Claims", io.BytesIO())
    """
    plt = _pyplot()
    lines = list(dict.fromkeys(line for panel in panels.values() for line in panel))
    algorithms, readings = (list(dict.fromkeys(line[i] for line in lines)) for i in (0, 1))
    values = [x for panel in panels.values() for points in panel.values() for pair in points for x in pair if x > 0.0]
    size = (3.7 * len(panels) + 2.2, 5.2)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
    drawn = {}
    for axis, (setting, panel) in zip(axes[0], panels.items(), strict=True):
        claimed = sorted({x for points in panel.values() for x, _ in points})
        ends, low, high = (claimed[0] / 1.6, claimed[-1] * 1.6), min(values) / 3.0, max(values) * 3.0
        axis.fill_between(ends, ends, (high, high), color="#d55e00", alpha=0.12, linewidth=0)
        (drawn["as claimed"],) = axis.plot(ends, ends, color="#808080", linewidth=1.0, zorder=1)
        for line, points in panel.items():
            looks = _looks(algorithms.index(line[0]), dashed=readings.index(line[1]) > 0)
            (drawn[", ".join(line)],) = axis.plot(*zip(*points, strict=True), **looks)
        axis.set(xscale="log", yscale="log", xlim=ends, ylim=(low, high), xlabel="claimed epsilon", title=setting)
        axis.grid(True, which="major", alpha=0.25)
        axis.text(0.04, 0.97, "less private than claimed", transform=axis.transAxes, va="top", fontsize="small")
        axis.text(0.96, 0.03, "more private than claimed", transform=axis.transAxes, ha="right", fontsize="small")
    axes[0][0].set(ylabel="delivered epsilon, at the claimed delta")
    figure.legend(drawn.values(), drawn, loc="outside right upper", frameon=False)
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _looks(place: int, dashed: bool) -> dict[str, Any]:
    sizes = {"markersize": max(4.0, 9.0 - 2.0 * place), "linewidth": max(1.2, 3.0 - 0.9 * place)}
    looks = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
    return looks | sizes | {"linestyle": "--" if dashed else "-"}
