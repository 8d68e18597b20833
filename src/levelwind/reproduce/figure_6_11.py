"""Figure 6.11: clustered ROD against connected as bandwidth becomes the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import sending, style
from levelwind.reproduce.outcome import Outcome, Result, judge
from levelwind.reproduce.sending import beats_connected, draw_gains, gains, least_lead, table
from levelwind.reproduce.statistics import rounded

TITLE = "Clustered ROD / connected, under bandwidth limits"
PAPER = "Above 1 at every bandwidth ratio from 0.2 to 10 (bars printed without numbers)"
CLAIM = (
    "Clustered ROD bears more than connected at every bandwidth ratio and number of operators (95%), and in "
    "every single run"
)
cells = sending.bandwidth_cells
measure = sending.measure_bandwidth


def summarise(results: Sequence[Result]) -> Outcome:
    """Geometric mean lead by operators per stream and bandwidth ratio."""
    lead = gains(results, "connected")
    checks = beats_connected(lead, results)
    ours = {"lead": table(lead), "least_lead_in_any_run": least_lead(results)}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """The lead on log axes."""
    with style.figure(path, width=6.0) as axes:
        axes.set_xlabel("bandwidth use / CPU use of a node with a single operator")
        axes.set_ylabel("feasible set, clustered ROD / connected")
        axes.set_xscale("log")
        style.plain_ticks(axes, sending.BANDWIDTH)
        draw_gains(axes, gains(results, "connected"))
        style.plain_ticks(axes, (1, 10, 100, 1000, 10_000), axis="y")
