"""Figure 8 of seed 002: the distribution of network usage over queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.reproduce import sbon_placements, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sbon_placements import LABELS, PLANNERS, SHARES
from levelwind.reproduce.statistics import rounded

TITLE = "Network usage over queries"
PAPER = "At the 80th percentile relaxation causes 14% more traffic than the optimum, producer 48%"
CLAIM = (
    "At the 80th percentile relaxation (on coordinates with heights) causes at most half of the traffic that "
    "producer adds to the optimum"
)
cells = sbon_placements.cells
measure = sbon_placements.measure
COLOURS = dict(
    zip(
        PLANNERS,
        (
            style.BLACK,
            style.BLUE,
            style.SKY,
            style.ORANGE,
            style.ORANGE,
            style.GREEN,
            style.PURPLE,
            style.VERMILION,
            style.GREY,
        ),
        strict=True,
    )
)
# In figure 9 consumer lies on IP multicast's curve: neither adds any delay.
DASHED = ("consumer", "relaxation")


def summarise(results: Sequence[Result]) -> Outcome:
    """The 80th percentile of each planner over that of the optimum."""
    at = SHARES.index(0.8)
    high = {name: float(np.mean([r[name]["usage_quantiles"][at] for r in results])) for name in PLANNERS}
    over = {name: value / high["optimal"] - 1.0 for name, value in high.items()}
    half = over["relaxation_height"] <= 0.5 * over["producer"]
    checks = [Check(passed=half, reason=f"{over['relaxation_height']:.0%} against {over['producer']:.0%}")]
    return judge(PAPER, CLAIM, rounded({"over_optimum_at_80": over}), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """One curve per planner."""
    with style.figure(path, width=6.0) as axes:
        draw_distribution(axes, results, "usage_quantiles", 1.0 / 1000.0)
        axes.set_xlabel("network usage of a query (kB in transit)")
        axes.set_ylabel("share of queries")


def draw_distribution(axes: object, results: Sequence[Result], key: str, scale: float) -> None:
    """Distribution functions, the mean of the networks' quantiles."""
    for name in PLANNERS:
        value = np.mean([r[name][key] for r in results], axis=0) * scale
        line = "--" if name in DASHED else "-"
        axes.plot(value, SHARES, line, color=COLOURS[name], label=LABELS[name])  # type: ignore[attr-defined]
    axes.legend(loc="lower right")  # type: ignore[attr-defined]
    axes.set_ylim(0, 1)  # type: ignore[attr-defined]
