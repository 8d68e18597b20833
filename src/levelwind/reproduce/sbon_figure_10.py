"""Figures 10 and 11 of seed 002: one query that migrates over changing latencies, slice by slice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.sbon_migration import followed, saving
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.worlds import cell_seed

TITLE = "One query that migrates and its twin that does not, over time"
PAPER = "After 4 of 20 hours the migrating query uses 30% less of the network; it migrates five times"
CLAIM = "The query that migrates uses less of the network than its twin, and moves a few times only"
QUERIES = 48


def cells(quick: bool, seed: int) -> list[Item]:
    """Several queries; the one that is drawn is that of median saving among those that moved."""
    return [{"query": q, "seed": cell_seed(seed, 2010, q)} for q in range(12 if quick else QUERIES)]


def measure(item: Item) -> Result:
    """The query's usage by slice."""
    return {**item, **followed(item["seed"], constant=False)}


def summarise(results: Sequence[Result]) -> Outcome:
    """The median of the queries that moved."""
    shown = chosen(results)
    saved, moves = saving(shown), len(shown["moves"])
    checks = [
        Check(passed=saved > 0, reason=f"saved {saved:.1%}"),
        Check(passed=0 < moves <= 10, reason=f"{moves} moves in 42 slices"),
    ]
    ours = {
        "usage_saved": saved,
        "delay_saved": saving(shown, "delay_"),
        "moves": shown["moves"],
        "usage_after_each_move": _by_stay(shown),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def chosen(results: Sequence[Result]) -> Result:
    """The query of median saving among those that moved."""
    moved = [r for r in results if r["moves"]] or list(results)
    return sorted(moved, key=saving)[len(moved) // 2]


def _by_stay(shown: Result) -> list[float]:
    """Usage at each place over the usage of the twin in the same slices (figure 11's numbers)."""
    cuts = [0, *(move["slice"] for move in shown["moves"]), len(shown["stays"])]
    pairs = [(a, b) for a, b in pairwise(cuts) if b > a]
    return [float(np.mean(shown["migrates"][a:b]) / np.mean(shown["stays"][a:b])) for a, b in pairs]


def draw(results: Sequence[Result], path: Path) -> None:
    """Both twins over the slices, moves as vertical lines."""
    shown = chosen(results)
    with style.figure(path, width=6.4) as axes:
        axes.plot(shown["stays"], color=style.VERMILION, label="stays")
        axes.plot(shown["migrates"], color=style.BLUE, label="migrates")
        for number, move in enumerate(shown["moves"]):
            label = None if number else "a move"
            axes.axvline(move["slice"], color=style.GREY, linewidth=0.8, label=label)
        axes.set_xlabel("time slice")
        axes.set_ylabel("network usage (bytes in transit)")
        axes.set_ylim(0, None)
        axes.legend()
