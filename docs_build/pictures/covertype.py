"""Draws `docs/images/covertype.png`, the picture of the README: accuracy on Covertype against epsilon.

The numbers are those of the table in `docs/evidence.md` (`taciturn reproduce table-c`). Run it after changing them:
python docs_build/pictures/covertype.py
"""

from __future__ import annotations

from pathlib import Path

EPSILONS = (0.1, 1.0, 10.0, 20.0)
ACCURACIES = {
    "private FTRL, 15 functions of elevation": (76.3, 76.4, 76.4, 76.4),
    "private FTRL": (74.9, 76.2, 76.3, 76.3),
    "PIGD, the paper's settings, exact noise": (51.6, 58.9, 66.6, 67.1),
    "PIGD, as reported in the paper": (58.3, 59.4, 62.7, 66.3),
}
"""Mean accuracy in per cent, by epsilon; delta is 1e-6 for private FTRL and 0.01 for PIGD."""

NOT_PRIVATE = 75.6
"""Least squares without privacy."""

OUT = Path(__file__).parents[2] / "docs" / "images" / "covertype.png"
_STYLES = (("#00796b", "o", "-"), ("#5b4bc4", "s", "--"), ("#c2410c", "^", "-."), ("#8a6d00", "D", ":"))


def main() -> None:
    """Draw and save the picture, 1600 pixels wide, to be shown at 800."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), dpi=200, facecolor="white", layout="constrained")
    axes = figure.subplots()
    for (name, accuracy), (colour, marker, line) in zip(ACCURACIES.items(), _STYLES, strict=True):
        axes.plot(EPSILONS, accuracy, color=colour, marker=marker, linestyle=line, linewidth=2.2, label=name)
    axes.axhline(NOT_PRIVATE, color="#222222", linewidth=1.2)
    axes.annotate("least squares, not private", (1.3, NOT_PRIVATE - 0.4), va="top", fontsize=12)
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_ylim(48.0, 80.0)
    axes.set_xlabel("privacy budget epsilon (smaller is more private)", fontsize=13)
    axes.set_ylabel("accuracy, held-out rows (%)", fontsize=13)
    axes.tick_params(labelsize=12)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=11.5, loc="lower right", frameon=False)
    figure.savefig(OUT)


if __name__ == "__main__":
    main()
