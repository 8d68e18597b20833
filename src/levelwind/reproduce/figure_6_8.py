"""Figure 6.8: what clustering gains ROD as communication grows dearer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import sending, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sending import draw_gains, gains, table
from levelwind.reproduce.statistics import rising, rounded

TITLE = "ROD with clustering / without, against the cost of communication"
PAPER = "The ratio starts at 1 and rises with the communication cost (curves printed without numbers)"
CLAIM = (
    "ROD with clustering is never below ROD without on average, and its gain is larger at communication "
    "ratio 1 than at 0.2 (95%), rising in between within the error"
)
cells = sending.communication_cells
measure = sending.measure_communication


def summarise(results: Sequence[Result]) -> Outcome:
    """Geometric mean gain by operators per stream and cost ratio."""
    gain = gains(results, "plain")
    checks = []
    for per_stream, row in gain.items():
        first, last = row[min(r for r in row if r > 0)], row[max(row)]
        widest = max(e.high - e.mean for e in row.values())
        least = min(row, key=lambda ratio: row[ratio].mean)
        checks += [
            Check(
                passed=row[least].mean >= 0.995,
                reason=f"{per_stream} per stream: clustering loses at ratio {least:g}",
            ),
            Check(
                passed=last.low > first.high,
                reason=f"{per_stream} per stream: no growth, {first.mean:.2f} to {last.mean:.2f}",
            ),
            Check(
                passed=rising((e.mean for e in row.values()), widest),
                reason=f"{per_stream} per stream: the gain falls in between",
            ),
        ]
    ours = {"gain": table(gain), "gain_over_random_class_one": table(gains(results, "any"))}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """The gain on a log axis."""
    with style.figure(path, width=6.0) as axes:
        gain = gains(results, "plain")
        axes.set_xlabel("communication cost / processing cost, per row")
        axes.set_ylabel("feasible set, ROD clustered / not")
        style.plain_ticks(axes, sending.COMMUNICATION)
        draw_gains(axes, gain)
        style.plain_ticks(axes, (1, 1.5, 2, 3, 4, 5), axis="y")
