"""Figure 3 of seed 001 (6.14 of seed 000): latency of the global algorithms against the load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import simulations, style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import LOADS, RUNS, below, cell, curves, draw_latencies, means, share
from levelwind.reproduce.statistics import rounded

TITLE = "Latency ratio of the global algorithms against the load"
RIVALS = ("llf", "random_balanced")
PLANNERS = ("correlation", *RIVALS, "steady")
PHASES = ("even", "random")
MUCH, ALIKE = 0.5, 0.75
PAPER = "COR-GLB much below LLF-GLB and RAND-GLB; no matter which at load 0.5 (curves without numbers)"
CLAIM = (
    "COR-GLB's latency is below LLF's and RAND's at every load, at most half of theirs at 0.8 and 0.9, and "
    f"at least {ALIKE} of theirs at 0.5 (streams' phases evenly spaced)"
)
measure = simulations.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One planner at one load in one run; its plan is in force on empty queues, and nothing moves."""
    return [
        cell(quick, seed, run, planner, load, phases=phases)
        for load in reversed(LOADS)
        for phases in PHASES
        for run in range(RUNS[quick])
        for planner in PLANNERS
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Compare run by run where phases are even; random phases are reported beside."""
    even = of_phases(results, "even")
    most = {load: MUCH if load > 0.75 else 1.0 for load in LOADS}
    checks = []
    for rival in RIVALS:
        checks += below(even, "correlation", rival, most)
        least = share(even, "correlation", rival)[LOADS[0]]
        reason = f"at load {LOADS[0]:g} correlation already has {least:.2f} of {rival}'s latency"
        checks.append(Check(passed=least >= ALIKE, reason=reason))
    ours = {f"{phases}_phases": means(curves(of_phases(results, phases), PLANNERS)) for phases in PHASES}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def of_phases(results: Sequence[Result], phases: str) -> list[Result]:
    """The results with these phases."""
    return [r for r in results if r["phases"] == phases]


def draw(results: Sequence[Result], path: Path) -> None:
    """Latency ratio against load, even phases and random ones."""
    with style.figure(path, width=8.4, columns=2) as panels:
        for axes, phases in zip(panels, PHASES, strict=True):
            axes.set_title(f"{phases} phases")
            axes.set_xlabel("system load level")
            style.plain_ticks(axes, LOADS)
        draw_latencies(panels, [curves(of_phases(results, phases), PLANNERS) for phases in PHASES])
