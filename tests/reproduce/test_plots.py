"""Plots are written, say what they show, and say that it is not private."""

import builtins

import numpy as np
import pytest

from taciturn import TaciturnError
from taciturn.reproduce.plots import (
    NOT_PRIVATE,
    Curve,
    Panel,
    PanelRow,
    audit_histograms,
    learning_curves,
    regret_curves,
    save_panels,
)

NAMES = ("private, epsilon = 1", "not private")


def curves(path):
    accuracies = dict(zip(NAMES, (np.linspace(0.5, 0.9, 1000), np.full(1000, 0.9)), strict=True))
    learning_curves(accuracies, {name: 1.01 - values for name, values in accuracies.items()}, "Clicks", path)


def panels(path):
    x = np.array([100.0, 1000.0, 10_000.0])
    curve, level = Curve(x, x**0.5, x**0.4, expected=x**0.6), Curve((), [20.0], line=":")
    left = Panel("left", "examples T", "regret", dict(zip(NAMES, (curve, level), strict=True)), ticks=True)
    right = Panel("right", "features", "µs", {NAMES[0]: curve}, yscale="linear", labels={NAMES[0]: "own legend"})
    save_panels([[left, right]], "Panels", path)


def histograms(path):
    stream = np.linspace(-3.0, 3.0, 500)
    audit_histograms(stream, stream + 1.0, 0.5, ", ".join(NAMES), path)


def regrets(path):
    t = np.array([1.0, 10.0, 100.0])
    curves = dict.fromkeys(NAMES, Curve(t, 1.0 / t - 0.1))
    row = [Panel(f"epsilon = {e}", "t", "average regret after t", curves, mark=e * 10.0) for e in (1, 2)]
    regret_curves([PanelRow("flights", row, {name: name for name in NAMES}, "burn-in", "budgets")], "Regrets", path)


FIGURES = {
    "regret curves": (regrets, ("Regrets", "flights", "epsilon = 2", "burn-in", "budgets", "average regret after t")),
    "learning curves": (curves, ("Clicks", "examples seen", "progressive accuracy", "average regret")),
    "panels": (panels, ("Panels", "left", "right", "examples T", "regret", "µs", "own legend", "10000")),
    "histograms": (histograms, ("the stream", "its neighbour", "as far apart as claimed", "in standard deviations")),
}


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_saved_with_labels_and_the_warning(figure, tmp_path):
    """The SVG holds every label, the axes' names, the title and the warning; no figure is left open."""
    import matplotlib.pyplot as plt

    draw, words = FIGURES[figure]
    draw(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    for word in (*NAMES, *words, NOT_PRIVATE):
        assert word in text
    assert plt.get_fignums() == []


@pytest.mark.parametrize("figure", FIGURES)
def test_without_matplotlib_the_extra_is_named(figure, tmp_path, monkeypatch):
    """A TaciturnError says what to install."""
    honest = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return honest(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TaciturnError, match=r"the extra `plot` \(matplotlib\)"):
        FIGURES[figure][0](tmp_path / "figure.svg")
