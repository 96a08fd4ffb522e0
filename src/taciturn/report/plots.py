"""Pictures of a run. They show what `taciturn.regret` measured, so they are not private either."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taciturn._util.arrays import Array
from taciturn.errors import InvalidInput, TaciturnError

NOT_PRIVATE = "measured on the exact stream: not private"
COLOURS = ("#D55E00", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#000000", "#808080", "#CC79A7")
"""Told apart whatever the eyes (Okabe, Ito, *Color Universal Design*, 2008), and grey."""
DASHES = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), "-", (0, (7, 2)), "-", (0, (1, 1)), (0, (2, 2)))


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
    plt = _pyplot()
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


def power_laws(
    horizons: Array,
    regrets: Mapping[str, Array],
    exponents: Mapping[str, float],
    title: str,
    path: str | os.PathLike[str],
) -> None:
    """Save regret against the length of the stream, on logarithmic axes, each with a line of its theorem's exponent.

    Parameters
    ----------
    horizons : ndarray
        Lengths of the streams.
    regrets : mapping of label to ndarray
        For each contender one row a run, one column a horizon; the mean and its standard error are drawn.
    exponents : mapping of label to float
        The theorem's exponent.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.
    """
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(7.5, 5.0), layout="constrained")
    for label, runs in regrets.items():
        mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
        points = axis.errorbar(horizons, mean, error, marker="o", capsize=3, label=label)
        theorem = mean[0] * (horizons / horizons[0]) ** exponents[label]
        axis.plot(horizons, theorem, linestyle=":", color=points[0].get_color(), alpha=0.7)
    axis.set(xscale="log", yscale="log", xlabel="examples T", ylabel="regret (dotted: the theorem's exponent)")
    axis.grid(True, which="both", alpha=0.25)
    axis.legend(frameon=False)
    figure.suptitle(f"{title} ({NOT_PRIVATE})", fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def budget_curves(
    panels: Mapping[str, Mapping[str, Mapping[float | None, float]]], title: str, path: str | os.PathLike[str]
) -> None:
    """Save average regret against epsilon, on logarithmic axes, one line a method, side by side for several problems.

    Parameters
    ----------
    panels : mapping of problem to mapping of method to mapping of epsilon to average regret
        A method without privacy has one regret, under None, and is drawn as a level.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.
    """
    plt = _pyplot()
    size = (5.0 * len(panels) + 2.5, 5.0)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
    colours = {method: f"C{i % 10}" for i, method in enumerate(dict.fromkeys(m for p in panels.values() for m in p))}
    drawn = {}
    for axis, (problem, methods) in zip(axes[0], panels.items(), strict=True):
        for method, regrets in methods.items():
            if None in regrets:
                drawn[method] = axis.axhline(regrets[None], linestyle=":", color=colours[method])
            else:
                (drawn[method],) = axis.plot(list(regrets), list(regrets.values()), marker="o", color=colours[method])
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title=problem)
        axis.grid(True, which="major", alpha=0.25)
    axes[0][0].set(ylabel="average regret")
    figure.legend(drawn.values(), drawn, loc="outside right upper", frameon=False)
    figure.suptitle(f"{title} ({NOT_PRIVATE})", fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


@dataclass(frozen=True)
class Panel:
    """Curves by method, each as rounds and values; `mark` is a round to point at."""

    title: str
    curves: Mapping[str, tuple[Array, Array]]
    mark: float | None = None


@dataclass(frozen=True)
class PanelRow:
    """Panels side by side on one scale, and the legend under them: its title, and what it calls methods and marks."""

    title: str
    panels: Sequence[Panel]
    labels: Mapping[str, str]
    mark: str = ""
    legend: str = ""


def regret_curves(rows: Sequence[PanelRow], title: str, path: str | os.PathLike[str]) -> None:
    """Save average regret against the number of examples, on logarithmic axes, in rows of panels.

    Parameters
    ----------
    rows : sequence of PanelRow
        Methods look alike in all of them; where a regret is not positive its curve has a gap.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.
    """
    plt = _pyplot()
    figure = plt.figure(figsize=(15.0, 5.4 * len(rows)), layout="constrained")
    methods = list(dict.fromkeys(method for row in rows for panel in row.panels for method in panel.curves))
    styles = {m: {"color": COLOURS[i % 8], "linestyle": DASHES[i % 8]} for i, m in enumerate(methods)}
    parts = np.atleast_1d(figure.subfigures(len(rows), 1))
    for part, row in zip(parts, rows, strict=True):
        _panel_row(part, row, styles)
    figure.suptitle(f"{title} ({NOT_PRIVATE})", fontsize="large")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel_row(part: Any, row: PanelRow, styles: Mapping[str, Mapping[str, Any]]) -> None:
    axes, drawn = part.subplots(1, len(row.panels), sharey=True, squeeze=False)[0], {}
    for axis, panel in zip(axes, row.panels, strict=True):
        for method, (rounds, values) in panel.curves.items():
            (drawn[row.labels[method]],) = axis.plot(rounds, values, linewidth=1.8, **styles[method])
        if panel.mark is not None:
            drawn[row.mark] = axis.axvline(panel.mark, color=COLOURS[7], linestyle=":", linewidth=1.2)
        axis.set(xscale="log", xlabel="examples seen, t", title=panel.title)
        axis.set_yscale("log", nonpositive="mask")
        axis.grid(True, which="major", alpha=0.25)
    axes[0].set(ylabel="average regret after t examples (label bound²)")
    part.suptitle(row.title, fontweight="bold")
    below = {"loc": "outside lower center", "ncols": 3, "frameon": False, "title": row.legend}
    part.legend(drawn.values(), drawn, **below)


def two_worlds(here: Array, there: Array, claimed_mu: float, title: str, path: str | os.PathLike[str]) -> None:
    """Save how an audit's statistic is spread in two worlds, beside what the claim allows.

    Parameters
    ----------
    here, there : ndarray
        The statistic, trial by trial.
    claimed_mu : float
        How far apart two normal curves of the deviation seen `here` may lie.
    title : str
        What the picture shows.
    path : path
        Where to save it; the ending chooses the format.
    """
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    middle, spread = float(np.mean(here)), max(float(np.std(here)), 1e-12)
    worlds = [(np.asarray(world) - middle) / spread for world in (here, there)]
    bins = np.linspace(min(map(np.min, worlds)), max(map(np.max, worlds)), 81)
    for world, label, colour in zip(worlds, ("the stream", "its neighbour"), ("C0", "C1"), strict=True):
        axis.hist(world, bins=bins, density=True, histtype="stepfilled", alpha=0.4, color=colour, label=label)
    x = np.linspace(bins[0], bins[-1], 600)
    for centre, colour in ((0.0, "C0"), (claimed_mu * np.sign(np.mean(worlds[1]) or 1.0), "C1")):
        density = np.exp(-((x - centre) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
        axis.plot(x, density, color=colour, linestyle=":", label="as far apart as claimed" if centre else None)
    axis.set(xlabel="statistic of the whole transcript, in deviations", ylabel="density")
    axis.legend(frameon=False)
    figure.suptitle(f"{title} ({NOT_PRIVATE})", fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything long is begun, a file that a picture cannot be saved to."""
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
        raise TaciturnError("plots need the extra `plot` (matplotlib): install taciturn[plot].") from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt
