"""Figure 1 of seed 001 (1.5 of seed 000): two chains that burst in turn, each on a node, or cut in two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.frontend.generate import random_chains
from levelwind.model import Cluster
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import (
    DURATION_S,
    LOADS,
    RUNS,
    below,
    curves,
    draw_latencies,
    figures,
    means,
    share,
)
from levelwind.reproduce.statistics import rising, rounded
from levelwind.reproduce.worlds import cell_seed, with_rates
from levelwind.sim.driver import simulate
from levelwind.sim.scenario import Scenario
from levelwind.sim.workloads import Periodic

TITLE = "Latency of two chains that burst in turn: connected operators together or apart"
RATIO = 2.0  # high rate / low rate
PLANS = {
    "connected": {"c1o1": "n1", "c1o2": "n1", "c2o1": "n2", "c2o2": "n2"},
    "cut": {"c1o1": "n1", "c1o2": "n2", "c2o1": "n1", "c2o2": "n2"},
}
# A chain's node is busy to load × 4/3 while it bursts: overloaded from here on.
OVERLOADED = (1 + RATIO) / (2 * RATIO)
MUCH = 0.5
PAPER = "the cut plan far below the connected one (curves printed without numbers)"
CLAIM = (
    "The cut plan's latency is below the connected plan's at every load, and at most half of it where a "
    f"burst overloads a connected node (load above {OVERLOADED:g}); its share falls from load to load"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """One plan at one load in one run."""
    return [
        {
            "algorithm": plan,
            "load": load,
            "run": run,
            "seed": cell_seed(seed, 105, run),
            "duration_s": DURATION_S[quick],
        }
        for load in reversed(LOADS)
        for run in range(RUNS[quick])
        for plan in PLANS
    ]


def measure(item: Item) -> Result:
    """Two chains of two equal operators on two nodes; 5 s of bursts, 5 s without, in turn."""
    chains = random_chains(np.random.default_rng(0), chains=2, length=2, selectivity=(1.0, 1.0))
    scenario = Scenario(
        network=with_rates(chains, dict.fromkeys(chains.streams, (1.0,))),
        cluster=Cluster.equal(2),
        workload=Periodic(ratio=RATIO, period_s=10.0, phases="even"),
        load=item["load"],
        start=PLANS[item["algorithm"]],
        duration_s=item["duration_s"],
        clean=True,
    )
    return {**item, **figures(simulate(scenario, seed=item["seed"]))}


def summarise(results: Sequence[Result]) -> Outcome:
    """Compare the plans run by run."""
    part = share(results, "cut", "connected")
    most = {load: MUCH if load > OVERLOADED else 1.0 for load in part}
    ours = {"latency_ratio": means(curves(results, list(PLANS))), "cut_over_connected": part}
    falls = rising([-value for value in part.values()])
    checks = [
        *below(results, "cut", "connected", most),
        Check(passed=falls, reason="the share does not fall"),
    ]
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Latency ratio against load."""
    with style.figure(path) as axes:
        axes.set_xlabel("system load level (2 nodes, bursts at twice the rate, in turn)")
        style.plain_ticks(axes, LOADS)
        draw_latencies([axes], [curves(results, list(PLANS))])
