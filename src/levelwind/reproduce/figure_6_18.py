"""Figure 6 of seed 001 (6.18 of seed 000): the one-way pair-wise algorithms, from connected plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import simulations, style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import (
    EDGES,
    LOADS,
    RUNS,
    below,
    by_setting,
    cell,
    curves,
    draw_latencies,
    means,
    of_setting,
)
from levelwind.reproduce.statistics import rounded

TITLE = "Latency ratio of the one-way pair-wise algorithms from connected plans"
RIVALS = ("llf_bal", "rand_bal")
POLICIES = ("cor_bal", *RIVALS)
ALGORITHMS = (*POLICIES, "correlation")
# Where bursts overload a node that holds one chain (1.6 times its mean); below, all are alike.
HIGH = (0.7, 0.9)
SAME = 1.5
MUCH = 0.5
PAPER = "COR-BAL the best of three, for almost the same load moved; COR-GLB far below all (curves only)"
CLAIM = (
    "At loads 0.7 and 0.9 COR-BAL's latency is the lowest of the three and COR-GLB's at most half of it; the "
    f"load moved differs by less than {SAME} times; in table 2's setting, with a window of 5 s, and with a "
    "period of 15 s"
)
measure = simulations.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One algorithm at one load in one setting and run, from connected plans on empty queues."""
    loads = LOADS[::2] if quick else LOADS
    return [
        cell(quick, seed, run, name, load, start="connected", setting=setting, **changes)
        for load in reversed(loads)
        for setting, changes in EDGES.items()
        for run in range(RUNS[quick])
        for name in ALGORITHMS
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Latency run by run, moved load in the mean, in each setting."""
    found = {}
    ours = {}
    for setting in EDGES:
        rows = of_setting(results, setting)
        moved = means(curves(rows, POLICIES, what="moved_load"))
        checks = [c for rival in RIVALS for c in below(rows, "cor_bal", rival, dict.fromkeys(HIGH, 1.0))]
        checks += below(rows, "correlation", "cor_bal", dict.fromkeys(HIGH, MUCH))
        for load in HIGH:
            loads = [moved[name][load] for name in POLICIES]
            text = ", ".join(f"{value:.2f}" for value in loads)
            passed = max(loads) <= SAME * min(loads)
            checks.append(Check(passed=passed, reason=f"at load {load:g} they move {text}, not the same"))
        found[setting] = checks
        ours[setting] = {"latency_ratio": means(curves(rows, ALGORITHMS)), "moved_load": moved}
    return judge(PAPER, CLAIM, rounded(ours), by_setting(found))


def draw(results: Sequence[Result], path: Path) -> None:
    """Latency ratio against load, a panel for each setting."""
    loads = sorted({r["load"] for r in results})
    with style.figure(path, width=9.6, columns=len(EDGES)) as panels:
        for axes, setting in zip(panels, EDGES, strict=True):
            axes.set_title(setting)
            axes.set_xlabel("system load level")
            style.plain_ticks(axes, loads)
        draw_latencies(panels, [curves(of_setting(results, setting), ALGORITHMS) for setting in EDGES])
