"""Figure 6.10: what clustering gains ROD as bandwidth becomes the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import sending, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sending import draw_gains, gains, table
from levelwind.reproduce.statistics import by, estimate, rounded

TITLE = "ROD with clustering / without, under bandwidth limits"
# "The same" and "much better" are the paper's words; the factors are ours.
SAME = 1.05
MUCH = 1.5
PAPER = (
    "1 at bandwidth ratios 0.2 and 0.8, somewhat above 1 at 1, much above at 2 and 10 (bars without numbers)"
)
CLAIM = (
    f"Clustering gains nothing (below {SAME}-fold) at ratios 0.2 and 0.8, more than that at 1, and more than "
    f"{MUCH}-fold at 2 and 10, for every number of operators"
)
cells = sending.bandwidth_cells
measure = sending.measure_bandwidth


def summarise(results: Sequence[Result]) -> Outcome:
    """Geometric mean gain by operators per stream and bandwidth ratio."""
    gain = gains(results, "plain")
    checks = []
    for per_stream, row in gain.items():
        for ratio, e in row.items():
            where = f"{per_stream} per stream, ratio {ratio:g}: gain {e.mean:.3g}"
            if ratio < 1:
                reason = f"{where} is not nothing (an operator with several readers sends several copies)"
                checks.append(Check(passed=e.mean < SAME, reason=reason))
            elif ratio == 1:
                reason = f"{where} is nothing (unclustered ROD already avoids cuts among class I nodes)"
                checks.append(Check(passed=e.mean > SAME, reason=reason))
            else:
                checks.append(Check(passed=e.low > MUCH, reason=f"{where} is not much"))
    ours = {
        "gain": table(gain),
        "gain_over_random_class_one": table(gains(results, "any")),
        "without_clustering": _without(results),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def _without(results: Sequence[Result]) -> dict[str, dict[float, float]]:
    """Mean feasible ratio of plain ROD: where it is near 1, clustering has nothing to gain."""
    return {
        f"{n}_per_stream": {
            ratio: estimate([r["plain"] for r in g]).mean for ratio, g in by(rows, "ratio").items()
        }
        for n, rows in by(results, "per_stream").items()
    }


def draw(results: Sequence[Result], path: Path) -> None:
    """The gain on log axes."""
    with style.figure(path, width=6.0) as axes:
        axes.set_xlabel("bandwidth use / CPU use of a node with a single operator")
        axes.set_ylabel("feasible set, ROD clustered / not")
        axes.set_xscale("log")
        style.plain_ticks(axes, sending.BANDWIDTH)
        draw_gains(axes, gains(results, "plain"))
        style.plain_ticks(axes, (1, 10, 100, 1000, 10_000, 100_000), axis="y")
