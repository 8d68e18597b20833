"""Figure 6.9: clustered ROD against connected as communication grows dearer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import sending, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sending import beats_connected, draw_gains, gains, least_lead, table
from levelwind.reproduce.statistics import rounded

TITLE = "Clustered ROD / connected, against the cost of communication"
PAPER = (
    "Above 1 at every communication cost, and the more so the more operators per input stream (curves "
    "printed without numbers)"
)
CLAIM = (
    "Clustered ROD bears more than connected at every communication ratio (95%) and in every single run, and "
    "its lead is larger with 40 operators per stream than with 10 at every ratio"
)
cells = sending.communication_cells
measure = sending.measure_communication


def summarise(results: Sequence[Result]) -> Outcome:
    """Geometric mean lead by operators per stream and cost ratio."""
    lead = gains(results, "connected")
    checks = beats_connected(lead, results)
    for ratio in next(iter(lead.values())):
        means = [lead[per_stream][ratio].mean for per_stream in sorted(lead)]
        listed = ", ".join(f"{mean:.1f}" for mean in means)
        reason = f"at ratio {ratio:g} the lead does not grow with the operators: {listed}"
        checks.append(Check(passed=means[-1] > means[0], reason=reason))
    ours = {"lead": table(lead), "least_lead_in_any_run": least_lead(results)}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """The lead on a log axis."""
    with style.figure(path, width=6.0) as axes:
        lead = gains(results, "connected")
        axes.set_xlabel("communication cost / processing cost, per row")
        axes.set_ylabel("feasible set, clustered ROD / connected")
        style.plain_ticks(axes, sending.COMMUNICATION)
        draw_gains(axes, lead)
        style.plain_ticks(axes, (1, 2, 5, 10, 20, 50, 100), axis="y")
