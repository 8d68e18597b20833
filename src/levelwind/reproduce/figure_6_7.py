"""Figure 6.7: the penalty for a wrong lower bound, against how far it is from the true one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import lower_bounds, style
from levelwind.reproduce.lower_bounds import all_points, binned, draw_penalty, mean_penalty
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import estimate, rounded, spearman
from levelwind.reproduce.worlds import cell_seed

TITLE = "Penalty for planning from a wrong lower bound, 50 operators"
OPERATORS = 50
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.5)
LAST_DRAWN = (*EDGES[:-1], 1.0)
PAPER = (
    "Low when assumed and true bound are close, rising with their distance to its largest value at a "
    "distance of 'about 4' (a scatter printed as a picture; the distance cannot exceed √2)"
)
CLAIM = (
    "The penalty is smallest in the bin of the nearest pairs, and single penalties rise with the distance "
    "(rank correlation of bins above 0.8)"
)
measure = lower_bounds.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One graph per cell; both points uniform in the ideal set."""
    graphs, points = (20, 24) if quick else (100, 80)
    return [
        {"operators": OPERATORS, "graph": graph, "seed": cell_seed(seed, 607, graph), "points": points}
        for graph in range(graphs)
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Ratio of totals in each bin of the distance."""
    points = all_points(results)
    bins = binned(points, "apart", EDGES, "wrong")
    means = [e.mean for e in bins.values()]
    trend = spearman(list(bins), means)
    checks = [
        Check(
            passed=means[0] == min(means),
            reason=f"pairs nearest to each other do not have the least penalty ({means[0]:.2f})",
        ),
        Check(
            passed=trend > 0.8,
            reason=f"the bins do not rise with the distance (rank correlation {trend:.2f})",
        ),
    ]
    mean, undefined = mean_penalty(points, "wrong")
    ours = {
        "penalty_by_distance": {middle: e.mean for middle, e in bins.items()},
        "rank_correlation_of_bins": trend,
        "mean_distance": estimate([p["apart"] for p in points]).mean,
        "largest_distance": max(p["apart"] for p in points),
        "mean_of_single_penalties": mean,
        "share_undefined": undefined,
        "points": len(points),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """All points where the penalty is defined, and the ratio of totals in each bin."""
    with style.figure(path) as axes:
        draw_penalty(axes, all_points(results), "apart", "wrong", LAST_DRAWN)
        axes.set_xlim(0, 1)
        axes.set_xlabel("distance between assumed and true bound (normalised space)")
        axes.set_ylabel("penalty for the wrong bound")
