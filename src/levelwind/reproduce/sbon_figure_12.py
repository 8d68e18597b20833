"""Figure 12 of seed 002: what migration saves over latencies that change, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.sbon_migration import followed, saving
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.worlds import cell_seed

TITLE = "Network usage of queries that migrate, over that of their twins that do not"
PAPER = (
    "24 pairs over 5 hours: 16.9% less network usage and 10.5% less delay with migration, 3.5 migrations per "
    "query, usage less for 75% of the pairs"
)
PRINTED = (0.169, 0.105)
WORSE = 0.05
CLAIM = (
    "Migration saves network usage, more than with latencies held constant, and at most 5% of the pairs are "
    "worse off by more than 1%"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """Some pairs per cell: four times as many as in the paper, since most queries never move here."""
    pairs, each = (24, 12) if quick else (96, 12)
    return [
        {"first": first, "pairs": each, "seed": cell_seed(seed, 2012, first)}
        for first in range(0, pairs, each)
    ]


def measure(item: Item) -> Result:
    """Savings, and savings under constant latencies."""
    rows = []
    for pair in range(item["pairs"]):
        seed = cell_seed(item["seed"], pair)
        found = followed(seed, constant=False)
        rows.append(
            {
                "usage": saving(found),
                "delay": saving(found, "delay_"),
                "moves": len(found["moves"]),
                "control": saving(followed(seed, constant=True)),
                "stays": float(np.mean(found["stays"])),
                "migrates": float(np.mean(found["migrates"])),
            }
        )
    return {**item, "rows": rows}


def summarise(results: Sequence[Result]) -> Outcome:
    """Totals over all pairs, and how many are worse."""
    rows = [row for result in results for row in result["rows"]]
    total = _saved(rows)
    control = float(np.mean([row["control"] for row in rows]))
    worse = float(np.mean([row["usage"] < -0.01 for row in rows]))
    checks = [
        Check(passed=total - control > 0, reason=f"saved {total:.1%}, {control:.1%} of it by settling alone"),
        Check(passed=worse <= WORSE, reason=f"{worse:.0%} of the pairs are worse off"),
    ]
    ours = {
        "usage_saved": total,
        "usage_saved_under_constant_latencies": control,
        "delay_saved": float(np.mean([row["delay"] for row in rows])),
        "pairs": len(rows),
        "share_better": float(np.mean([row["usage"] > 0 for row in rows])),
        "share_worse": worse,
        "share_that_moved": float(np.mean([row["moves"] > 0 for row in rows])),
        "usage_saved_by_those_that_moved": _saved([row for row in rows if row["moves"]]),
        "moves_per_query": float(np.mean([row["moves"] for row in rows])),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def _saved(rows: Sequence[Result]) -> float:
    """The share of network usage that is saved over some pairs; 0 over none."""
    stays = sum(row["stays"] for row in rows)
    return 1.0 - sum(row["migrates"] for row in rows) / stays if stays else 0.0


def draw(results: Sequence[Result], path: Path) -> None:
    """Every pair, sorted: network usage, and delay."""
    rows = [row for result in results for row in result["rows"]]
    delay = float(np.mean([row["delay"] for row in rows]))
    with style.figure(path, width=8.4, columns=2) as panels:
        for axes, what, here, printed in zip(
            panels, ("usage", "delay"), (_saved(rows), delay), PRINTED, strict=True
        ):
            change = sorted((-100 * row[what] for row in rows), reverse=True)
            axes.bar(range(len(rows)), change, color=style.BLUE)
            for saved, line, whose in ((here, "-", "here"), (printed, "--", "in the paper")):
                axes.axhline(-100 * saved, color=style.BLACK, linestyle=line, linewidth=0.9,
                             label=f"all pairs {whose}: {-saved:.1%}")  # fmt: skip
            axes.set_title("network usage" if what == "usage" else "delay")
            axes.set_xlabel("pair of queries, by the change")
            axes.legend(loc="lower left")
        panels[0].set_ylabel("change by migration (%)")
