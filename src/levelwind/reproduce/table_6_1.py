"""Table 6.1: the average penalty for the origin, or a wrong point, as the lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from levelwind.reproduce import lower_bounds, style
from levelwind.reproduce.lower_bounds import all_points, mean_penalty, penalty
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import Estimate, by, rounded
from levelwind.reproduce.worlds import SIZES, cell_seed

TITLE = "Average penalty for the origin or a wrong point as lower bound"
PRINTED = {
    "origin": {25: 0.90, 50: 0.79, 100: 0.56, 200: 0.35},
    "wrong": {25: 0.89, 50: 0.83, 100: 0.55, 200: 0.32},
}
# Of 25 operators most sets are empty, so few points decide: single graphs differ by more than this.
NEAR = 0.1
PAPER = "25/50/100/200 operators: origin .90 .79 .56 .35; another random point .89 .83 .55 .32"
CLAIM = f"The average penalty drops with the operators in both rows, and each entry is within {NEAR} of print"
measure = lower_bounds.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One graph per cell; points uniform in the ideal set."""
    graphs, points = (20, 8) if quick else (100, 25)
    return [
        {
            "operators": size,
            "graph": graph,
            "seed": cell_seed(seed, 6001, size, graph),
            "points": points,
        }
        for size in reversed(SIZES)
        for graph in range(graphs)
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Ratio of totals, since the mean is undefined where a set is empty; the mean of the others beside it."""
    table = penalties(results)
    checks = []
    ours: dict[str, Any] = {}
    for row, printed in PRINTED.items():
        got = {size: e.mean for size, e in table[row].items()}
        far = [size for size in got if abs(got[size] - printed[size]) > NEAR]
        falls = [table[row][b].low < table[row][a].high for a, b in pairwise(got)]
        checks += [
            Check(passed=all(falls), reason=f"row {row!r} does not fall with the operators"),
            Check(passed=not far, reason=_distance(row, far, got, table) + _empty(results, far)),
        ]
        means = {size: mean_penalty(all_points(g), row) for size, g in by(results, "operators").items()}
        ours[row] = {
            "ratio_of_totals": got,
            "mean_where_defined": {size: mean for size, (mean, _) in means.items()},
        }
        ours["share_undefined"] = {size: undefined for size, (_, undefined) in means.items()}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def penalties(results: Sequence[Result]) -> dict[str, dict[int, Estimate]]:
    """Ratio of totals by row of the table and number of operators."""
    groups = by(results, "operators")
    return {row: {size: penalty(all_points(group), row) for size, group in groups.items()} for row in PRINTED}


def draw(results: Sequence[Result], path: Path) -> None:
    """Ours as curves, the printed numbers as open marks."""
    table = penalties(results)
    colours = {"origin": style.BLUE, "wrong": style.VERMILION}
    names = {"origin": "origin", "wrong": "wrong point"}
    sizes = list(table["origin"])
    with style.figure(path) as axes:
        for row, marker in (("origin", "o"), ("wrong", "s")):
            style.curve(
                axes, sizes, list(table[row].values()), colour=colours[row], marker=marker, label=names[row]
            )
            axes.plot(
                [size * 1.06 for size in sizes],  # beside ours, not under it
                [PRINTED[row][size] for size in sizes],
                marker,
                color=colours[row],
                markerfacecolor="white",
                label=f"{names[row]}, as printed",
            )
        axes.set_xscale("log")
        style.plain_ticks(axes, sizes)
        axes.set_ylim(0, 1)
        axes.set_xlabel("number of operators (10 nodes, 5 input streams)")
        axes.set_ylabel("average penalty (ratio of totals)")
        axes.legend(loc="lower left")


def _distance(row: str, far: list[int], got: dict[int, float], table: dict[str, dict[int, Estimate]]) -> str:
    at = ", ".join(f"{got[size]:.2f} against {PRINTED[row][size]:.2f} at {size}" for size in far)
    text = f"row {row!r} is off: {at}"
    if row == "wrong" and all(got[size] > table["origin"][size].mean for size in far):
        text += " (a wrong point favours the wrong streams, the origin none; in print they cost the same)"
    return text


def _empty(results: Sequence[Result], far: list[int]) -> str:
    """A word of caution where most sets are empty, so that few points decide the average."""
    groups = by(results, "operators")
    empty = {size: mean_penalty(all_points(groups[size]), "origin")[1] for size in far}
    text = ", ".join(f"{share:.0%} at {size}" for size, share in empty.items() if share > 0.5)
    return f" (sets empty, so that few points decide: {text})" if text else ""
