"""Plots are written, say what they show, and say that it is not private."""

import numpy as np

from tacit.report.plots import NOT_PRIVATE, learning_curves


def test_learning_curves_are_saved_with_labels_and_the_warning(tmp_path):
    """The SVG holds every label, both axes' names and the warning."""
    curves = {"private, epsilon = 1": np.linspace(0.5, 0.9, 1000), "not private": np.full(1000, 0.9)}
    path = tmp_path / "curves.svg"
    learning_curves(curves, {name: 1.01 - values for name, values in curves.items()}, "Clicks", path)
    text = path.read_text()
    for words in (*curves, "examples seen", "progressive accuracy", "average regret", "Clicks", NOT_PRIVATE):
        assert f"<!-- {words}" in text or words in text
