"""Plots of results, drawn with matplotlib: one palette for all of them.

They show what was measured on exact data, so the plots are not private either. The ending of a file's name chooses its
format.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from taciturn.errors import InvalidInput, TaciturnError, needs_extra
from taciturn.kernel.arrays import Array

NOT_PRIVATE = "measured on the exact stream: not private"
COLOURS = ("#D55E00", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#000000", "#808080", "#CC79A7", "#882255", "#44AA99")
"""Colours that people with the common kinds of colour blindness tell apart (the first eight, grey excepted, are those
of Okabe and Ito, *Color Universal Design*, 2008)."""
DASHES = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), "-", (0, (7, 2)), "-", (0, (1, 1)), (0, (2, 2)), "-", (0, (4, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
GREY, ALARM, REFERENCE = COLOURS[6], COLOURS[0], COLOURS[7]

File = str | os.PathLike[str]
Values = Sequence[float] | Array


# ---- panels of curves ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A curve `y` over `x`, or a horizontal line at `y[0]` if `x` is empty.

    Attributes
    ----------
    x, y : sequence of float or ndarray
        Points of the curve.
    errors : sequence of float or ndarray
        Half the length of the error bars; none if empty.
    line : str
        Line style of matplotlib.
    expected : sequence of float or ndarray
        What theory predicts at `x`: a dotted line of the same colour; none if empty.

    Examples
    --------
    >>> Curve((0.1, 1.0), (0.7, 0.75), (0.01, 0.0)).line
    '-'
    """

    x: Values
    y: Values
    errors: Values = ()
    line: str = "-"
    expected: Values = ()


@dataclass(frozen=True)
class Panel:
    """Curves by name over common axes.

    Attributes
    ----------
    title, xlabel, ylabel : str
        Title of the panel, and names of the axes.
    curves : mapping of str to Curve
        A name has the same colour in all panels of a figure.
    xscale, yscale : {"log", "linear"}
        Scales of the axes.
    ticks : bool
        Whether the ticks of the horizontal axis are the points of the curves.
    mark : float, optional
        Place of a dotted vertical line.
    labels : mapping of str to str
        Names in this panel's own legend, which it has if there are any.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, Curve]
    xscale: Literal["log", "linear"] = "log"
    yscale: Literal["log", "linear"] = "log"
    ticks: bool = False
    mark: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def save_panels(rows: Sequence[Sequence[Panel]], title: str, path: File, *, warning: bool = True) -> None:
    """Save rows of panels, with one legend for all panels that have no legend of their own.

    Parameters
    ----------
    rows : sequence of sequence of Panel
        All rows have the same length. Panels of a row share the vertical axis if it has the same name in all of them.
    title : str
        Title of the figure.
    path : path
        File to save.
    warning : bool
        Whether the title says that the results are not private.
    """
    height, width = len(rows), len(rows[0])
    shared = all(len({panel.ylabel for panel in row}) == 1 for row in rows)
    names = list(dict.fromkeys(name for row in rows for panel in row for name in panel.curves))
    with _figure(title, path, warning=warning, figsize=(4.3 * width + 3.0, 4.2 * height + 0.6)) as figure:
        axes = figure.subplots(height, width, sharey="row" if shared else False, squeeze=False)
        drawn: dict[str, Any] = {}
        for row, places in zip(rows, axes, strict=True):
            for place, (panel, axis) in enumerate(zip(row, places, strict=True)):
                own = {name: _draw(axis, curve, names.index(name)) for name, curve in panel.curves.items()}
                _finish(axis, panel, named=not (shared and place))
                if panel.labels:
                    axis.legend(own.values(), [panel.labels[name] for name in own], frameon=False, fontsize="small")
                else:
                    drawn |= own
        if drawn:
            figure.legend(drawn.values(), drawn, loc="outside right upper", frameon=False)


def _draw(axis: Any, curve: Curve, number: int) -> Any:
    """Draw a curve in the colour of its number, and return what a legend shows."""
    colour = COLOURS[number % len(COLOURS)]
    if not len(curve.x):
        return axis.axhline(curve.y[0], color=colour, linestyle=curve.line, linewidth=1.3)
    if len(curve.expected):
        axis.plot(curve.x, curve.expected, color=colour, linestyle=":", alpha=0.7)
    looks: dict[str, Any] = {"color": colour, "linestyle": curve.line, "linewidth": 1.3}
    if len(curve.x) <= 20:
        looks |= {"marker": MARKERS[number % len(MARKERS)], "markersize": 5}
    if not len(curve.errors):
        return axis.plot(curve.x, curve.y, **looks)[0]
    return axis.errorbar(curve.x, curve.y, curve.errors, capsize=2.5, elinewidth=0.8, **looks)


def _finish(axis: Any, panel: Panel, named: bool) -> None:
    axis.set(xscale=panel.xscale, xlabel=panel.xlabel)
    axis.set_title(panel.title, fontsize="medium")
    axis.set_yscale(panel.yscale, **({"nonpositive": "mask"} if panel.yscale == "log" else {}))
    if named:
        axis.set_ylabel(panel.ylabel)
    if panel.ticks:
        places = sorted({place for curve in panel.curves.values() for place in curve.x})
        axis.set_xticks(places, [f"{place:g}" for place in places])
        axis.minorticks_off()
    axis.grid(True, which="major", alpha=0.25)


# ---- figures of their own --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PanelRow:
    """Panels in a row on one scale, with a legend below.

    Attributes
    ----------
    title : str
        Title of the row.
    panels : sequence of Panel
        From left to right.
    labels : mapping of str to str
        What the legend calls each curve.
    mark, legend : str
        What the legend calls the vertical line, and the title of the legend.
    """

    title: str
    panels: Sequence[Panel]
    labels: Mapping[str, str]
    mark: str = ""
    legend: str = ""


def regret_curves(rows: Sequence[PanelRow], title: str, path: File) -> None:
    """Save average regret against the number of examples, in rows of panels that have a legend each.

    Parameters
    ----------
    rows : sequence of PanelRow
        Where a regret is not positive its curve has a gap.
    title : str
        Title of the figure.
    path : path
        File to save.
    """
    methods = list(dict.fromkeys(method for row in rows for panel in row.panels for method in panel.curves))
    with _figure(title, path, figsize=(15.0, 5.4 * len(rows)), fontsize="large") as figure:
        for part, row in zip(np.atleast_1d(figure.subfigures(len(rows), 1)), rows, strict=True):
            _panel_row(part, row, methods)


def _panel_row(part: Any, row: PanelRow, methods: Sequence[str]) -> None:
    axes = part.subplots(1, len(row.panels), sharey=True, squeeze=False)[0]
    drawn: dict[str, Any] = {}
    for place, (axis, panel) in enumerate(zip(axes, row.panels, strict=True)):
        for method, curve in panel.curves.items():
            number = methods.index(method) % len(COLOURS)
            looks = {"color": COLOURS[number], "linestyle": DASHES[number], "linewidth": 1.8}
            (drawn[row.labels[method]],) = axis.plot(curve.x, curve.y, **looks)
        if panel.mark is not None:
            drawn[row.mark] = axis.axvline(panel.mark, color=REFERENCE, linestyle=":", linewidth=1.2)
        _finish(axis, panel, named=not place)
    part.suptitle(row.title, fontweight="bold")
    part.legend(drawn.values(), drawn, loc="outside lower center", ncols=3, frameon=False, title=row.legend)


def learning_curves(accuracies: Mapping[str, Array], regrets: Mapping[str, Array], title: str, path: File) -> None:
    """Save progressive accuracy and average regret against the number of examples, in two panels.

    Parameters
    ----------
    accuracies, regrets : mapping of str to ndarray
        For each learner, the running mean after 1, 2, … examples.
    title : str
        Title of the figure.
    path : path
        File to save.
    """

    def curves(means: Mapping[str, Array]) -> dict[str, Curve]:
        made = {}
        for name, values in means.items():
            rounds = np.unique(np.geomspace(100, len(values), 400).astype(int))
            made[name] = Curve(rounds, np.asarray(values)[rounds - 1])
        return made

    left = Panel("", "examples seen", "progressive accuracy", curves(accuracies), yscale="linear")
    save_panels([[left, Panel("", "examples seen", "average regret", curves(regrets))]], title, path)


Points = Sequence[tuple[float, float]]
"""Claimed and delivered epsilons."""


def delivered_claims(panels: Mapping[str, Mapping[tuple[str, str], Points]], title: str, path: File) -> None:
    """Save delivered against claimed epsilon; a point above the diagonal is a broken claim.

    Parameters
    ----------
    panels : mapping of setting to mapping of (algorithm, reading) to points
        From left to right. A colour and a marker stand for an algorithm, a dashed line for every reading but the first;
        where lines coincide the later one is thinner and lies on the earlier one. A delivered epsilon of 0 is not
        drawn.
    title : str
        Title of the figure.
    path : path
        File to save.

    Examples
    --------
    >>> import io
    >>> delivered_claims({"alpha = 1": {("PIGD", "proven"): [(3.0, 0.2), (30.0, 2.0)]}}, "Claims", io.BytesIO())
    """
    lines = list(dict.fromkeys(line for panel in panels.values() for line in panel))
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in lines))
    readings = list(dict.fromkeys(reading for _, reading in lines))
    values = [x for panel in panels.values() for points in panel.values() for pair in points for x in pair if x > 0.0]
    low, high = min(values) / 3.0, max(values) * 3.0
    drawn: dict[str, Any] = {}
    with _figure(title, path, warning=False, figsize=(3.7 * len(panels) + 2.2, 5.2)) as figure:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (setting, panel) in zip(axes, panels.items(), strict=True):
            claimed = sorted({x for points in panel.values() for x, _ in points})
            ends = (claimed[0] / 1.6, claimed[-1] * 1.6)
            axis.fill_between(ends, ends, (high, high), color=ALARM, alpha=0.12, linewidth=0)
            (drawn["as claimed"],) = axis.plot(ends, ends, color=GREY, linewidth=1.0, zorder=1)
            for (algorithm, reading), points in panel.items():
                number = algorithms.index(algorithm)
                (drawn[f"{algorithm}, {reading}"],) = axis.plot(
                    *zip(*points, strict=True),
                    color=COLOURS[number % len(COLOURS)],
                    marker=MARKERS[number % len(MARKERS)],
                    markersize=max(4.0, 9.0 - 2.0 * number),
                    linewidth=max(1.2, 3.0 - 0.9 * number),
                    linestyle="--" if readings.index(reading) else "-",
                )
            axis.set(xscale="log", yscale="log", xlim=ends, ylim=(low, high), xlabel="claimed epsilon", title=setting)
            axis.grid(True, which="major", alpha=0.25)
            axis.text(0.04, 0.97, "less private than claimed", transform=axis.transAxes, va="top", fontsize="small")
            axis.text(0.96, 0.03, "more private than claimed", transform=axis.transAxes, ha="right", fontsize="small")
        axes[0].set(ylabel="delivered epsilon, at the claimed delta")
        figure.legend(drawn.values(), drawn, loc="outside right upper", frameon=False)


def audit_histograms(stream: Array, neighbour: Array, claimed_mu: float, title: str, path: File) -> None:
    """Save histograms of an audit's test statistic on two neighbouring streams, with the distance that is claimed.

    Parameters
    ----------
    stream, neighbour : ndarray
        The test statistic of each trial.
    claimed_mu : float
        Distance of the two means that the claim allows, in standard deviations on `stream`.
    title : str
        Title of the figure.
    path : path
        File to save.
    """
    mean, sd = float(np.mean(stream)), max(float(np.std(stream)), 1e-12)
    scaled = [(np.asarray(values) - mean) / sd for values in (stream, neighbour)]
    bins = np.linspace(min(map(np.min, scaled)), max(map(np.max, scaled)), 81)
    colours = (COLOURS[3], COLOURS[0])
    with _figure(title, path, figsize=(7.5, 4.6)) as figure:
        axis = figure.subplots()
        for values, label, colour in zip(scaled, ("the stream", "its neighbour"), colours, strict=True):
            axis.hist(values, bins=bins, density=True, histtype="stepfilled", alpha=0.4, color=colour, label=label)
        x = np.linspace(bins[0], bins[-1], 600)
        claimed = claimed_mu * np.sign(np.mean(scaled[1]) or 1.0)
        for centre, colour in zip((0.0, claimed), colours, strict=True):
            density = np.exp(-((x - centre) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
            axis.plot(x, density, color=colour, linestyle=":", label="as far apart as claimed" if centre else None)
        axis.set(xlabel="test statistic of all releases, in standard deviations", ylabel="density")
        axis.legend(frameon=False)


# ---- matplotlib ------------------------------------------------------------------------------------------------


@contextmanager
def _figure(title: str, path: File, *, warning: bool = True, fontsize: str = "medium", **size: Any) -> Iterator[Any]:
    """A figure to draw on; it gets its title, is saved and closed."""
    plt = _pyplot()
    figure = plt.figure(layout="constrained", **size)
    try:
        yield figure
        figure.suptitle(f"{title} ({NOT_PRIVATE})" if warning else title, fontsize=fontsize)
        figure.savefig(path, dpi=130)
    finally:
        plt.close(figure)


def check_file(path: File) -> None:
    """Raise `InvalidInput` if a plot cannot be saved as this file; to be called before a long computation."""
    _pyplot()
    from matplotlib.backend_bases import FigureCanvasBase

    file, formats = Path(path), FigureCanvasBase.get_supported_filetypes()
    if file.is_dir() or not file.parent.is_dir():
        raise InvalidInput(f"a picture cannot be saved as {file}: name a file in a folder that exists.")
    if (ending := file.suffix[1:].lower()) and ending not in formats:
        raise InvalidInput(f"pictures have no format {ending!r}. End the file's name in one of {', '.join(formats)}.")


def _pyplot() -> Any:
    """Matplotlib, drawing to files."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise TaciturnError(needs_extra("a plot", "plot", "matplotlib")) from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt
