"""Accuracy against a budget or a dimension, as a picture. Measured on exact rows, so it is not private either."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taciturn.report.plots import NOT_PRIVATE, _pyplot

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#882255", "#44AA99")
"""Told apart by people who see few colours (most after Okabe and Ito, *Color Universal Design*, 2008), and by
markers too."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")


@dataclass(frozen=True)
class Curve:
    """Accuracies, 0 to 1, and their deviations at places; or a level, without places.

    >>> Curve((0.1, 1.0), (0.7, 0.75), (0.01, 0.0)).line
    '-'
    """

    places: tuple[float, ...]
    accuracies: tuple[float, ...]
    deviations: tuple[float, ...] = ()
    line: str = "-"


@dataclass(frozen=True)
class Panel:
    """Curves by name over one axis; the same name has the same colour in all panels."""

    title: str
    axis: str
    curves: Mapping[str, Curve]


def accuracy_panels(panels: Sequence[Sequence[Panel]], title: str, path: str | os.PathLike[str]) -> None:
    """Save rows of panels, accuracy in percent against places on a logarithmic axis, with one legend for all.

    Parameters
    ----------
    panels : sequence of rows of Panel
        All rows as long.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.
    """
    plt = _pyplot()
    high, wide = len(panels), len(panels[0])
    size = (4.3 * wide + 3.0, 3.9 * high + 0.6)
    figure, axes = plt.subplots(high, wide, figsize=size, sharey="row", squeeze=False, layout="constrained")
    names = list(dict.fromkeys(name for row in panels for panel in row for name in panel.curves))
    drawn: dict[str, Any] = {}
    for row, places in zip(panels, axes, strict=True):
        for panel, axis in zip(row, places, strict=True):
            for name, curve in panel.curves.items():
                drawn[name] = _draw(axis, curve, names.index(name))
            _finish(axis, panel)
        places[0].set_ylabel("accuracy on held-out rows (%)")
    figure.legend([drawn[name] for name in names], names, loc="outside right upper", frameon=False)
    figure.suptitle(f"{title} ({NOT_PRIVATE})", fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw(axis: Any, curve: Curve, number: int) -> Any:
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    percents = [100.0 * value for value in curve.accuracies]
    if not curve.places:
        return axis.axhline(percents[0], color=colour, linestyle=curve.line, linewidth=1.3)
    errors = [100.0 * value for value in curve.deviations] or None
    style = {"marker": marker, "markersize": 5, "capsize": 2.5, "linewidth": 1.3, "elinewidth": 0.8}
    return axis.errorbar(curve.places, percents, errors, color=colour, linestyle=curve.line, **style)


def _finish(axis: Any, panel: Panel) -> None:
    axis.set(xscale="log", xlabel=panel.axis)
    axis.set_title(panel.title, fontsize="medium")
    ticks = sorted({place for curve in panel.curves.values() for place in curve.places})
    axis.set_xticks(ticks, [f"{place:g}" for place in ticks])
    axis.minorticks_off()
    axis.grid(True, alpha=0.25)
