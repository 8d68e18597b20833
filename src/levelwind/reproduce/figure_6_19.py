"""Figure 7 of seed 001 (6.19 of seed 000): the improved two-way algorithms, from connected plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import simulations, style
from levelwind.reproduce.outcome import Item, Outcome, Result, judge
from levelwind.reproduce.simulations import LOADS, RUNS, below, cell, curves, draw_latencies, means, share
from levelwind.reproduce.statistics import rounded

TITLE = "Latency ratio of the improved two-way pair-wise algorithms from connected plans"
IMPROVED = ("cor_re_imp", "cor_se_imp")
POLICIES = ("cor_bal", *IMPROVED, "steady_pairs")
ALGORITHMS = (*POLICIES, "correlation")
MUCH = 0.5
PAPER = "COR-RE-IMP and COR-SE-IMP much below COR-BAL, COR-GLB lowest (curves without numbers)"
CLAIM = (
    "The improved two-way algorithms have less latency than COR-BAL at 0.6 and at most half of it from 0.7 "
    "on; COR-GLB has less than either at every load from 0.6 on"
)
measure = simulations.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One algorithm at one load in one run, from connected plans on empty queues."""
    return [
        cell(quick, seed, run, name, load, start="connected")
        for load in reversed(LOADS)
        for run in range(RUNS[quick])
        for name in ALGORITHMS
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Compare run by run."""
    busy = LOADS[1:]
    checks = []
    for name in IMPROVED:
        checks += below(results, name, "cor_bal", {load: 1.0 if load < 0.65 else MUCH for load in busy})
        checks += below(results, "correlation", name, dict.fromkeys(busy, 1.0))
    ours = {
        "latency_ratio": means(curves(results, ALGORITHMS)),
        "cor_se_imp_over_cor_bal": share(results, "cor_se_imp", "cor_bal"),
        "moved_load": means(curves(results, POLICIES, what="moved_load")),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Latency ratio against load."""
    with style.figure(path, width=6.2, height=3.8) as axes:
        axes.set_xlabel("system load level (20 nodes, from connected plans)")
        style.plain_ticks(axes, LOADS)
        draw_latencies([axes], [curves(results, ALGORITHMS)])
