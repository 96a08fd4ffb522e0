"""Plots are written, say what they show, and say that it is not private."""

import builtins

import numpy as np
import pytest

from taciturn import TaciturnError
from taciturn.report.plots import NOT_PRIVATE, Panel, PanelRow, learning_curves, power_laws, regret_curves, two_worlds

NAMES = ("private, epsilon = 1", "not private")


def curves(path):
    accuracies = dict(zip(NAMES, (np.linspace(0.5, 0.9, 1000), np.full(1000, 0.9)), strict=True))
    learning_curves(accuracies, {name: 1.01 - values for name, values in accuracies.items()}, "Clicks", path)


def laws(path):
    horizons = np.array([100.0, 1000.0, 10_000.0])
    runs = {name: np.outer([0.9, 1.0, 1.1], horizons**0.5) for name in NAMES}
    power_laws(horizons, runs, dict.fromkeys(NAMES, 0.5), "Slopes", path)


def worlds(path):
    here = np.linspace(-3.0, 3.0, 500)
    two_worlds(here, here + 1.0, 0.5, ", ".join(NAMES), path)


def regrets(path):
    t = np.array([1.0, 10.0, 100.0])
    panels = [Panel(f"epsilon = {e}", dict.fromkeys(NAMES, (t, 1.0 / t - 0.1)), mark=e * 10.0) for e in (1, 2)]
    regret_curves([PanelRow("flights", panels, {name: name for name in NAMES}, "burn-in", "budgets")], "Regrets", path)


FIGURES = {
    "regret curves": (regrets, ("Regrets", "flights", "epsilon = 2", "burn-in", "budgets", "average regret after t")),
    "learning curves": (curves, ("Clicks", "examples seen", "progressive accuracy", "average regret")),
    "power laws": (laws, ("Slopes", "examples T", "regret (dotted: the theorem's exponent)")),
    "two worlds": (worlds, ("the stream", "its neighbour", "as far apart as claimed", "in deviations")),
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
    """An error of ours says what to install."""
    honest = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return honest(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TaciturnError, match=r"taciturn\[plot\]"):
        FIGURES[figure][0](tmp_path / "figure.svg")
