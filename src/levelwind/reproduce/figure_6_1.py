"""Figures 6.1 and 6.3: mean feasible set of each algorithm against the number of operators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from levelwind.reproduce import resilience, style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.resilience import RIVALS
from levelwind.reproduce.statistics import Estimate, by, estimate, rising, rounded
from levelwind.reproduce.worlds import SIZES, STREAMS, cell_seed

TITLE = "Mean feasible set of ROD, its rivals and our planner against the number of operators"
PAPER = (
    "ROD far above the rest at every size and near the ideal at 200 operators; then correlation, LLF and "
    "random; connected lowest (curves printed without numbers)"
)
CLAIM = (
    "ROD's mean feasible ratio exceeds every rival's at each size (paired, 95%) and rises with operators; "
    "that correlation is the best and connected the worst of the rivals is not contradicted at any size (95%)"
)
ORDER = (("correlation", "llf"), ("correlation", "random"), ("llf", "connected"), ("random", "connected"))
EXTRA = ("resilient", "correlation_even")
measure = resilience.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One graph per cell; 10 equal nodes, 5 inputs."""
    graphs, runs, budget = (16, 4, 0.2) if quick else (100, 10, 1.0)
    return [
        {
            "operators": size,
            "streams": STREAMS,
            "graph": graph,
            "seed": cell_seed(seed, 601, size, graph),
            "runs": runs,
            "even": True,
            "budget": budget,
        }
        for size in reversed(SIZES)  # the slowest first, so that no core waits at the end
        for graph in range(graphs)
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Compare graph by graph: a rival's runs on a graph are averaged, then set against ROD there."""
    checks = []
    for size, group in by(results, "operators").items():
        rod = np.array([r["rod"] for r in group])
        mean = {name: np.array([np.mean(r[name]) for r in group]) for name in RIVALS}
        for name in RIVALS:
            gap = estimate(rod - mean[name])
            checks.append(Check(passed=gap.low > 0, reason=_gap(size, "ROD", name, gap)))
        for one, other in ORDER:
            gap = estimate(mean[one] - mean[other])
            checks.append(Check(passed=gap.high > 0, reason=_gap(size, one, other, gap)))
    table = means(results)
    rod_means = [e.mean for e in table["rod"].values()]
    checks.append(Check(passed=rising(rod_means), reason="ROD's mean ratio does not rise with the operators"))
    ours: dict[str, Any] = {name: {size: e.mean for size, e in row.items()} for name, row in table.items()}
    ours["graphs_per_size"] = len(results) // len(rod_means)
    return judge(PAPER, CLAIM, rounded(ours), checks)


def means(results: Sequence[Result]) -> dict[str, dict[int, Estimate]]:
    """Mean over graphs for each algorithm that was measured, by size."""
    groups = by(results, "operators")
    present = [name for name in ("rod", *RIVALS, *EXTRA) if name in results[0]]
    return {
        name: {size: estimate([np.mean(r[name]) for r in group]) for size, group in groups.items()}
        for name in present
    }


def draw(results: Sequence[Result], path: Path) -> None:
    """Ratio to the ideal against operators, one curve per algorithm."""
    table = means(results)
    sizes = list(table["rod"])
    with style.figure(path, width=6.2, height=3.8) as axes:
        for name, row in table.items():
            line = ":" if name == "correlation_even" else "-"
            style.curve(
                axes,
                sizes,
                list(row.values()),
                colour=style.COLOURS[name],
                marker=style.MARKERS[name],
                line=line,
            )
        axes.set_xscale("log")
        style.plain_ticks(axes, sizes)
        axes.set_ylim(0, 1)
        axes.set_xlabel("number of operators (10 nodes, 5 input streams)")
        axes.set_ylabel("mean feasible set / ideal set")
        ends = [
            (sizes[-1], row[sizes[-1]].mean, style.LABELS[n], style.COLOURS[n]) for n, row in table.items()
        ]
        style.label_ends(axes, ends)


def _gap(size: int, one: str, other: str, gap: Estimate) -> str:
    span = f"{gap.mean:.3f} ({gap.low:.3f} … {gap.high:.3f})"
    return f"at {size} operators {one} is not above {other}: mean gap {span}"
