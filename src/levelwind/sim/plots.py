"""A picture of a simulation: node loads, latency and moves over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from levelwind.sim.outcome import Outcome

# Okabe and Ito's palette, told apart by colour-blind readers too.
_BLUE, _ORANGE, _GREY, _BLACK = "#0072B2", "#D55E00", "#7F7F7F", "#222222"
_MOST_LINES = 60  # above so many nodes, lines are a grey mass: the band alone says more
_WIDE = 20.0  # latencies that differ by more are drawn on a logarithmic axis
_RC = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def draw(outcome: Outcome, path: Path, *, title: str = "") -> None:
    """Draw the recorded time to a PNG file. Matplotlib is imported here and not before."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        ratios = (3.0, 2.0, 1.4) if outcome.moves else (3.0, 2.0)
        drawing = Figure(figsize=(7.2, 1.0 + 0.85 * sum(ratios)), layout="constrained")
        FigureCanvasAgg(drawing)
        panels = drawing.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
        _draw_loads(panels[0], outcome)
        _draw_latency(panels[1], outcome)
        if outcome.moves:
            _draw_moves(panels[2], outcome)
        panels[-1].set_xlabel("seconds since recording began")
        panels[-1].set_xlim(0.0, float(outcome.timeline.at_s[-1]))
        if title:
            drawing.suptitle(title, x=0.01, ha="left", fontsize=10.5)
        drawing.savefig(path, dpi=160, metadata={"Software": None}, format="png")


def _draw_loads(axes: Any, outcome: Outcome) -> None:
    at, load = outcome.timeline.at_s, outcome.timeline.load
    if len(load) <= _MOST_LINES:
        axes.plot(at, load.T, color=_BLUE, linewidth=0.6, alpha=0.35)
    low, high = np.nanmin(load, axis=0), np.nanmax(load, axis=0)
    axes.fill_between(at, low, high, color=_BLUE, alpha=0.12, linewidth=0)
    axes.plot(at, np.nanmean(load, axis=0), color=_BLACK, linewidth=1.4, label="mean of the nodes")
    axes.axhline(1.0, color=_ORANGE, linewidth=1.0, linestyle="--", label="a node is full")
    axes.set_ylim(0.0, max(1.15, 1.05 * float(high.max())))
    axes.set_title("load that the rows offered ask of each node, relative to its CPU")
    axes.legend(loc="lower right", ncols=2)


def _draw_latency(axes: Any, outcome: Outcome) -> None:
    at, latency_ms = outcome.timeline.at_s, 1000.0 * outcome.timeline.latency_s
    axes.plot(at, latency_ms, color=_BLUE, linewidth=1.4)
    known = latency_ms[np.isfinite(latency_ms)]
    if len(known) and 0 < known.min() < known.max() / _WIDE:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(bottom=0.0)
    if outcome.latency_mean_s is not None:
        axes.axhline(1000.0 * outcome.latency_mean_s, color=_GREY, linewidth=0.9, linestyle=":")
    axes.set_title("latency of the results, ms (mean of each sample; dotted: of all)")


def _draw_moves(axes: Any, outcome: Outcome) -> None:
    axes.set_title(f"load moved so far, in nodes' worth of CPU ({len(outcome.moves)} moves)")
    at = np.array([0.0, *(move.at_s for move in outcome.moves), outcome.timeline.at_s[-1]])
    moved = np.cumsum([0.0, *(move.load for move in outcome.moves), 0.0])
    axes.step(at, moved, where="post", color=_ORANGE, linewidth=1.4)
    axes.set_ylim(bottom=0.0)
