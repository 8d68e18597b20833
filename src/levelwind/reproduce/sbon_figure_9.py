"""Figure 9 of seed 002: the distribution of delay penalties over queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.reproduce import sbon_placements, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sbon_figure_8 import draw_distribution
from levelwind.reproduce.sbon_placements import PLANNERS, SHARES
from levelwind.reproduce.statistics import rounded

TITLE = "Delay penalty over queries"
PAPER = (
    "The optimum and relaxation have less delay than consumer for about 15% of the queries, since routes are "
    "not always the fastest; producer and random have a long tail"
)
CLAIM = "For some queries the optimum has less delay than consumer; producer's and random's tails are longest"
cells = sbon_placements.cells
measure = sbon_placements.measure


def summarise(results: Sequence[Result]) -> Outcome:
    """Where each curve crosses zero, and its 95th percentile."""
    quantiles = {name: np.mean([r[name]["delay_quantiles"] for r in results], axis=0) for name in PLANNERS}
    faster = {name: float(np.mean(q < 0)) for name, q in quantiles.items()}
    tail = {name: float(q[SHARES.index(0.95)]) for name, q in quantiles.items()}
    longest = min(tail["producer"], tail["random"]) > max(
        tail[name] for name in PLANNERS if name not in ("producer", "random")
    )
    checks = [
        Check(passed=faster["optimal"] > 0, reason="no query is faster than direct under the optimum"),
        Check(passed=longest, reason=f"95th percentiles: {rounded(tail)}"),
    ]
    ours = {"share_faster_than_direct": faster, "penalty_at_95": tail}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """One curve per planner."""
    with style.figure(path, width=6.0) as axes:
        draw_distribution(axes, results, "delay_quantiles", 100.0)
        axes.set_xlabel("delay over the longest direct path (%)")
        axes.set_ylabel("share of queries")
        axes.set_xlim(-40, 300)
