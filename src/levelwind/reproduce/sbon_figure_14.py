"""Figure 14 of seed 002: the node that is chosen, against every node there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.loads.problem import make_problem
from levelwind.placement import make_planner
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.placement.units import make_units
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.sbon_migration import seattle
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.wide_area import aggregations, cluster_of
from levelwind.reproduce.worlds import cell_seed

TITLE = "The chosen node against every possible node"
PAPER = "Of 19 nodes, the one that the optimiser takes has one of the lowest network usages"
CLAIM = "Relaxation's node is among the best third on average, and network's is the best or second best"
NODES, PASSED = 19, 0.12
PLANNERS = ("relaxation", "network")


def cells(quick: bool, seed: int) -> list[Item]:
    """Queries of two producers on 19 hosts of the Seattle testbed."""
    return [{"query": q, "seed": cell_seed(seed, 2014, q)} for q in range(20 if quick else 100)]


def measure(item: Item) -> Result:
    """Usage on every node, sorted, and the rank of each planner's choice (0: the best)."""
    rng = np.random.default_rng(item["seed"])
    hosts = rng.choice(60, NODES, replace=False)
    latency = seattle().mean(axis=0)[np.ix_(hosts, hosts)]
    cluster = cluster_of(latency)
    problem = make_problem(aggregations(rng, cluster.names, 1, producers=2, passed=PASSED), cluster)
    units = make_units(problem)
    flows, every = make_flows(units), np.arange(NODES)
    usage = flows.at(0, every, np.full(1, -1), latency_seconds(units))
    found: Result = {**item, "usage": np.sort(usage).tolist()}
    for name in PLANNERS:
        answer = make_planner(name).plan(problem, rng=np.random.default_rng(item["seed"])).assignment
        assert answer is not None
        found[name] = int((usage < usage[answer[0]]).sum())
    return found


def summarise(results: Sequence[Result]) -> Outcome:
    """Mean rank of the choices."""
    rank = {name: float(np.mean([r[name] for r in results])) for name in PLANNERS}
    penalty = {
        name: float(np.mean([r["usage"][r[name]] / r["usage"][0] - 1.0 for r in results]))
        for name in PLANNERS
    }
    checks = [
        Check(
            passed=rank["relaxation"] <= NODES / 3,
            reason=f"relaxation's mean rank is {rank['relaxation']:.1f}",
        ),
        Check(passed=rank["network"] <= 1.0, reason=f"network's mean rank is {rank['network']:.1f}"),
    ]
    return judge(PAPER, CLAIM, rounded({"mean_rank_of_19": rank, "usage_penalty": penalty}), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """One query's nodes by usage, and where the planners' choices lie."""
    shown = results[0]
    with style.figure(path) as axes:
        axes.bar(range(NODES), shown["usage"], color="#CCCCCC")
        for name, colour in zip(PLANNERS, (style.ORANGE, style.BLUE), strict=True):
            axes.bar(shown[name], shown["usage"][shown[name]], color=colour, label=name)
        axes.set_xticks(range(0, NODES, 3))
        axes.set_xlabel("node, by network usage (0: the best)")
        axes.set_ylabel("network usage (bytes in transit)")
        axes.legend()
