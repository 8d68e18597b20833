"""Figure 10 of seed 001 (6.22 of seed 000): bursts that nobody can foresee, planned and then balanced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import simulations, style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import LOADS, RUNS, below, cell, curves, draw_latencies, means, share
from levelwind.reproduce.statistics import geometric, rounded

TITLE = "Latency ratio under on-off bursts, each global algorithm with its pair-wise one"
# By the pair-wise algorithm's name, as the paper calls them.
PAIRS = {
    "cor_se_imp": "correlation",
    "cor_re_imp": "correlation",
    "llf_bal": "llf",
    "rand_bal": "random_balanced",
    "steady_pairs": "steady",
}
RIVALS = ("llf_bal", "rand_bal")
PAPER = "the correlation-based algorithms below the others at every load (curves without numbers)"
CLAIM = (
    "COR-GLB with COR-SE-IMP has less latency than LLF-GLB with LLF-BAL and than RAND-GLB with RAND-BAL at "
    "every load (geometric mean over runs)"
)
measure = simulations.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One pair of algorithms at one load in one run; three runs at least, since bursts differ much."""
    loads = LOADS[::2] if quick else LOADS
    return [
        cell(quick, seed, run, policy, load, workload="on_off", planner=planner)
        for load in reversed(loads)
        for run in range(max(3, RUNS[quick]))
        for policy, planner in PAIRS.items()
    ]


def summarise(results: Sequence[Result]) -> Outcome:
    """Compare run by run."""
    checks: list[Check] = []
    over = share(results, "cor_se_imp", "llf_bal")
    for rival in RIVALS:
        checks += below(results, "cor_se_imp", rival, dict.fromkeys(over, 1.0))
    ours = {
        "latency_ratio": means(curves(results, list(PAIRS))),
        "cor_se_imp_over_llf_bal": over,
        "over_all_loads": geometric(list(over.values())).mean,
        "moved_load": means(curves(results, list(PAIRS), what="moved_load")),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Latency ratio against load."""
    with style.figure(path, width=6.2, height=3.8) as axes:
        axes.set_xlabel("system load level (20 nodes, on and off for 5 s on average)")
        style.plain_ticks(axes, sorted({r["load"] for r in results}))
        draw_latencies([axes], [curves(results, list(PAIRS))])
