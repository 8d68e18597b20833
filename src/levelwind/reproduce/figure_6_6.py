"""Figure 6.6: the penalty for not knowing the lower bound, against how near it is to the ideal plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import lower_bounds, style
from levelwind.reproduce.lower_bounds import all_points, binned, draw_penalty, mean_penalty
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.worlds import cell_seed

TITLE = "Penalty for planning from the origin instead of the true lower bound, 50 operators"
OPERATORS = 50
BINS = 10
EDGES = tuple(i / BINS for i in range(BINS + 1))
PAPER = (
    "Large (near 1) when the bound is close to the ideal plane, dropping off as the bound approaches the "
    "origin (a scatter printed as a picture)"
)
CLAIM = (
    "The penalty is largest in the bin nearest to the ideal plane, falls to under a tenth of it in that at "
    "the origin, and the first half of the bins exceeds the second"
)
measure = lower_bounds.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One graph per cell, equally many points in each bin of the distance."""
    graphs, points = (16, 2 * BINS) if quick else (100, 6 * BINS)
    return [
        {
            "operators": OPERATORS,
            "graph": graph,
            "seed": cell_seed(seed, 606, graph),
            "points": points,
            "bins": BINS,
        }
        for graph in range(graphs)
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Ratio of totals in each bin of the distance."""
    points = all_points(results)
    bins = binned(points, "to_ideal", EDGES, "origin")
    near, far = min(bins), max(bins)
    rows = [bins[middle].mean for middle in bins]
    half = len(rows) // 2
    first, second = sum(rows[:half]) / half, sum(rows[-half:]) / half
    worst = max(bins, key=lambda middle: bins[middle].mean)
    checks = [
        Check(
            passed=bins[worst].mean <= bins[near].high,
            reason=f"the penalty peaks at {worst:.2f} ({bins[worst].mean:.2f}), not at {near:.2f}",
        ),
        Check(
            passed=bins[far].mean < 0.1 * bins[near].mean,
            reason=f"at {far:.2f} the penalty is still {bins[far].mean:.2f} against {bins[near].mean:.2f}",
        ),
        Check(passed=first > second, reason="the penalty does not drop with the distance"),
    ]
    mean, undefined = mean_penalty(points, "origin")
    ours = {
        "penalty_by_relative_distance": {middle: e.mean for middle, e in bins.items()},
        "mean_of_single_penalties": mean,
        "share_undefined": undefined,
        "points": len(points),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """All points where the penalty is defined, and the ratio of totals in each bin."""
    with style.figure(path) as axes:
        draw_penalty(axes, all_points(results), "to_ideal", "origin", EDGES)
        axes.set_xlim(0, 1)
        axes.set_xlabel("distance of the bound to the ideal plane / that of the origin")
        axes.set_ylabel("penalty for using the origin")
