"""Table 3 of seed 001 (6.3 of seed 000): how much nodes are busy at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from levelwind.reproduce import figure_6_14, style
from levelwind.reproduce.figure_6_14 import PHASES, PLANNERS, of_phases
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.simulations import LOADS, curves
from levelwind.reproduce.statistics import rounded

TITLE = "Mean correlation of the loads of node pairs under the global algorithms' plans"
PRINTED = {"correlation": 0.65, "random_balanced": -0.0048, "llf": -0.0008}
NEAR = 0.1
PAPER = "COR-GLB 0.65, RAND-GLB -0.0048, LLF-GLB -0.0008; much the same at all loads"
CLAIM = (
    f"The mean over loads is within {NEAR} of print for each algorithm, and so is each load's "
    "(streams' phases evenly spaced)"
)
cells = figure_6_14.cells
measure = figure_6_14.measure


def summarise(results: Sequence[Result]) -> Outcome:
    """Means over runs and loads; random phases are reported beside."""
    table = {phases: correlations(results, phases) for phases in PHASES}
    checks = []
    for name, printed in PRINTED.items():
        row = table["even"][name]
        off = max(abs(value - printed) for value in (*row.values(), float(np.mean(list(row.values())))))
        text = ", ".join(f"{value:.2f}" for value in row.values())
        reason = f"{name} has {text} at loads {LOADS[0]:g} to {LOADS[-1]:g}, not {printed:.2g}"
        checks.append(Check(passed=off <= NEAR, reason=reason))
    ours: dict[str, Any] = {
        f"{phases}_phases": {name: np.mean(list(row.values())) for name, row in rows.items()}
        for phases, rows in table.items()
    }
    ours["even_phases_by_load"] = table["even"]
    return judge(PAPER, CLAIM, rounded(ours), checks)


def correlations(results: Sequence[Result], phases: str) -> dict[str, dict[float, float]]:
    """Mean over runs by planner and load."""
    rows = curves(of_phases(results, phases), PLANNERS, what="load_correlation")
    return {name: {load: e.mean for load, e in row.items()} for name, row in rows.items()}


def draw(results: Sequence[Result], path: Path) -> None:
    """Correlation against load, the printed numbers as open marks at the right."""
    with style.figure(path, width=8.4, columns=2) as panels:
        for axes, phases in zip(panels, PHASES, strict=True):
            table = curves(of_phases(results, phases), PLANNERS, what="load_correlation")
            for name, row in table.items():
                style.curve(
                    axes,
                    LOADS,
                    list(row.values()),
                    colour=style.COLOURS[name],
                    marker=style.MARKERS[name],
                    label=style.LABELS[name],
                )
            axes.set_title(f"{phases} phases")
            axes.set_ylim(-0.15, 1)
            axes.set_xlabel("system load level")
            style.plain_ticks(axes, LOADS)
        for name, printed in PRINTED.items():
            panels[0].plot(
                0.95, printed, style.MARKERS[name], color=style.COLOURS[name], markerfacecolor="white"
            )
        panels[0].annotate(
            "printed", (0.95, 0.65), (0, 7), textcoords="offset points", ha="center", fontsize=8
        )
        panels[0].set_ylabel("mean correlation of node pairs")
        style.legend_above(panels, columns=4)
