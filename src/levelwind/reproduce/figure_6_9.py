"""Figure 6.9: clustered ROD against connected as communication grows dearer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import sending, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sending import draw_gains, gains, table
from levelwind.reproduce.statistics import rising, rounded

TITLE = "Clustered ROD / connected, against the cost of communication"
PAPER = (
    "Above 1 at every communication cost, and the more so the more operators per input stream (curves "
    "printed without numbers)"
)
CLAIM = (
    "Clustered ROD bears more than connected at every communication ratio (95%), and its lead grows with the "
    "operators per stream at every ratio"
)
cells = sending.communication_cells
measure = sending.measure_communication


def summarise(results: Sequence[Result]) -> Outcome:
    """Geometric mean lead by operators per stream and cost ratio."""
    lead = gains(results, "connected")
    checks = [
        Check(
            passed=e.low > 1,
            reason=f"{per_stream} per stream: connected is not beaten at ratio {ratio:g} ({e.mean:.2f})",
        )
        for per_stream, row in lead.items()
        for ratio, e in row.items()
    ]
    for ratio in next(iter(lead.values())):
        means = [row[ratio].mean for row in lead.values()]
        reason = f"at ratio {ratio:g} the lead does not grow with the operators: " + ", ".join(
            f"{m:.1f}" for m in means
        )
        checks.append(Check(passed=rising(means), reason=reason))
    return judge(PAPER, CLAIM, rounded({"lead": table(lead)}), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """The lead on a log axis."""
    with style.figure(path, width=6.0) as axes:
        lead = gains(results, "connected")
        axes.set_xlabel("communication cost / processing cost, per row")
        axes.set_ylabel("feasible set, clustered ROD / connected")
        style.plain_ticks(axes, sending.COMMUNICATION)
        draw_gains(axes, lead)
        style.plain_ticks(axes, (1, 2, 5, 10, 20, 50, 100), axis="y")
