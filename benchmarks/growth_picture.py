"""The picture of what `growth.py` measured: three panels, time an example against examples, features and buffers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from taciturn.reproduce.plots import COLOURS, DASHES, _pyplot

TITLES = {"n": "examples", "d": "features", "buffers": "buffers of a BLT"}


def draw(record: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Save it; `record` is what `growth.json` holds, and the ending of `path` chooses the format."""
    plt = _pyplot()
    axes = record["axes"]
    figure, panels = plt.subplots(1, len(axes), figsize=(5.0 * len(axes), 4.6), squeeze=False, layout="constrained")
    names = list(dict.fromkeys(name for learners in axes.values() for name in learners))
    for panel, (axis, learners) in zip(panels[0], axes.items(), strict=True):
        for name, one in learners.items():
            style = {"color": COLOURS[names.index(name) % 8], "linestyle": DASHES[names.index(name) % 8]}
            each = 1e6 * np.divide([np.median(seconds) for seconds in one["seconds"]], one["rows"])
            panel.plot(one["at"], each, marker="o", label=f"{name} (exponent {one['exponent']:.2f})", **style)
            if "line" in one:
                fit = one["line"]["a"] + one["line"]["b"] * np.array(one["at"])
                panel.plot(one["at"], fit, color="#808080", linestyle=":", label="a line, fitted")
        scale = "linear" if axis == "buffers" else "log"
        panel.set(xscale=scale, yscale=scale, xlabel=TITLES[axis], ylabel="µs an example")
        panel.set_ylim(**({"bottom": 0.0} if scale == "linear" else {}))
        panel.grid(True, which="major", alpha=0.25)
        panel.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=130)
    plt.close(figure)
