"""Table 1 of seed 002: what placements cost the network and the user, on transit-stub networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from levelwind.reproduce import sbon_placements, style
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.sbon_placements import LABELS, PLANNERS
from levelwind.reproduce.statistics import rounded

TITLE = "Network usage and delay of placements on transit-stub networks"
PRINTED = {
    "optimal": (0.0, 0.13),
    "relaxation": (0.15, 0.24),
    "ip_multicast": (0.27, 0.0),
    "producer": (0.43, 0.75),
    "consumer": (0.60, 0.0),
    "random": (0.81, 0.76),
}
PAPER = "usage over the optimum and delay over direct: " + ", ".join(
    f"{name} {usage:.0%} {delay:.0%}" for name, (usage, delay) in PRINTED.items()
)
ORDER = ("relaxation_height", "producer", "consumer", "random")
CLAIM = (
    "Usage rises from the optimum over relaxation (on coordinates with heights, about as exact as the "
    "paper's), producer and consumer to random; IP multicast lies between relaxation and producer; consumer "
    "and IP multicast add no delay at all"
)
cells = sbon_placements.cells
measure = sbon_placements.measure


def summarise(results: Sequence[Result]) -> Outcome:
    """Mean penalties over all networks."""
    usage = {name: float(np.mean([r[name]["usage"] for r in results])) for name in PLANNERS}
    delay = {name: float(np.mean([r[name]["delay"] for r in results])) for name in PLANNERS}
    rises = [usage[a] < usage[b] for a, b in pairwise(("optimal", *ORDER))]
    late = max(r[name]["largest_delay"] for r in results for name in ("consumer", "ip_multicast"))
    between = usage["relaxation_height"] < usage["ip_multicast"] < usage["producer"]
    checks = [
        Check(passed=all(rises), reason="usage is not in the paper's order"),
        Check(
            passed=between,
            reason=(
                f"IP multicast costs {usage['ip_multicast']:.0%}, producer {usage['producer']:.0%}, "
                f"relaxation with heights {usage['relaxation_height']:.0%}"
            ),
        ),
        Check(passed=late == 0.0, reason=f"delay is added: {late:.2%}"),
    ]
    ours = {
        "usage_penalty": usage,
        "usage_penalty_of_means": {
            name: float(np.mean([r[name]["usage_of_means"] for r in results])) for name in PLANNERS
        },
        "delay_penalty": delay,
        "coordinate_error": float(np.mean([r["coordinate_error"] for r in results])),
        "coordinate_error_with_height": float(np.mean([r["coordinate_error_with_height"] for r in results])),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Usage and delay side by side, the printed numbers as open marks."""
    names = list(PLANNERS)
    with style.figure(path, width=7.2, columns=2, share_y=True) as (left, right):
        for axes, key, column in ((left, "usage", 0), (right, "delay", 1)):
            mean = [100 * float(np.mean([r[name][key] for r in results])) for name in names]
            axes.barh(range(len(names)), mean, color=style.BLUE)
            known = {**PRINTED, "relaxation_height": PRINTED["relaxation"]}
            there = [k for k, name in enumerate(names) if name in known]
            printed = [100 * known[names[k]][column] for k in there]
            axes.plot(printed, there, "o", color=style.VERMILION, markerfacecolor="white", label="printed")
            axes.set_yticks(range(len(names)), [LABELS[name] for name in names])
            axes.set_xlabel(f"{key} penalty (%)")
            axes.grid(axis="x")
        left.invert_yaxis()
        left.legend(loc="upper right")
