"""Table 1 of seed 001 (5.1 of seed 000): how long the correlation-based algorithms compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from levelwind.balance import Situation, make_policy
from levelwind.frontend.generate import random_chains
from levelwind.loads import Problem, make_problem
from levelwind.model import Cluster
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import CHAIN
from levelwind.reproduce.statistics import Estimate, by, extent, rounded
from levelwind.reproduce.worlds import SAMPLES, cell_seed, planned, with_rates

TITLE = "Computation time of the global algorithm and of a redistribution between two nodes"
PRINTED_S = {10: 0.5, 20: 3.4, 50: 54.0}
PRINTED_PAIR_S = 0.006
PAPER = "10, 20, 50 nodes with 10 operators each: 0.5 s, 3.4 s, 54 s; a pair of nodes: 6 ms (2 GHz, 2005)"
CLAIM = (
    "Planning takes no longer than printed and grows faster than the number of nodes; redistribution between "
    "two nodes takes no longer than printed"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """One network per cell."""
    return [
        {
            "nodes": nodes,
            "graph": graph,
            "points": 3 if quick else 9,
            "seed": cell_seed(seed, 5001, nodes, graph),
        }
        for nodes in reversed(PRINTED_S)
        for graph in range(2 if quick else 5)
    ]


def measure(item: Item) -> Result:
    """Median CPU seconds of some calls, after one that compiles."""
    problem = bursting(item["nodes"], item["seed"])
    plan_s = _median_s(lambda: planned(problem, "correlation"), item["points"])
    policy, pair = make_policy("cor_re"), _pair(item["seed"])
    pair_s = _median_s(lambda: policy.propose(pair, rng=np.random.default_rng(0)), item["points"])
    return {**item, "plan_s": plan_s, "pair_s": pair_s}


def bursting(nodes: int, seed: int) -> Problem:
    """Chains of ten, one per node, whose streams are high for half of the window, one after the other."""
    rng = np.random.default_rng(seed)
    network = random_chains(rng, chains=nodes, length=CHAIN)
    at = np.arange(SAMPLES) / SAMPLES
    rates = {
        name: tuple((rng.uniform(0.8, 1.2) * np.where((at + k / nodes) % 1 < 0.5, 1.6, 0.4)).tolist())
        for k, name in enumerate(network.streams)
    }
    return make_problem(with_rates(network, rates), Cluster.equal(nodes))


def summarise(results: Sequence[Result]) -> Outcome:
    """Means over networks."""
    plan = {nodes: extent([r["plan_s"] for r in rows]).mean for nodes, rows in by(results, "nodes").items()}
    pair = float(np.mean([r["pair_s"] for r in results]))
    checks = [
        Check(passed=plan[n] <= printed, reason=f"{n} nodes take {plan[n]:.2g} s")
        for n, printed in PRINTED_S.items()
    ]
    checks.append(Check(passed=pair <= PRINTED_PAIR_S, reason=f"a pair takes {1000 * pair:.2g} ms"))
    checks += [
        Check(
            passed=plan[b] / plan[a] > b / a, reason=f"{b} nodes take only {plan[b] / plan[a]:.2g} of {a}'s"
        )
        for a, b in pairwise(plan)
    ]
    ours = {"plan_s": plan, "pair_s": pair, "times_faster": {n: PRINTED_S[n] / s for n, s in plan.items()}}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Ours and the printed numbers on log axes."""
    groups = by(results, "nodes")
    ours: list[Estimate] = [extent([r["plan_s"] for r in rows]) for rows in groups.values()]
    with style.figure(path) as axes:
        style.curve(axes, list(groups), ours, colour=style.ORANGE, marker="s")
        axes.plot(
            list(PRINTED_S), list(PRINTED_S.values()), "s--", color=style.ORANGE, markerfacecolor="white"
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        style.plain_ticks(axes, list(PRINTED_S))
        style.plain_ticks(axes, (0.001, 0.01, 0.1, 1, 10, 100), axis="y")
        axes.set_xlabel("number of nodes (10 operators each, 10 samples)")
        axes.set_ylabel("computation time, s (log)")
        ends = [(50, ours[-1].mean, "here", style.ORANGE), (50, PRINTED_S[50], "printed", style.ORANGE)]
        style.label_ends(axes, ends)


def _pair(seed: int) -> Situation:
    """Two chains, each on a node of its own."""
    problem = bursting(2, seed)
    count = 2 * CHAIN
    return Situation(
        series=problem.operator_load @ problem.variable_rates,
        node=np.arange(count) // CHAIN,
        cpu=problem.cpu,
        movable=np.ones(count, dtype=bool),
        unit=np.arange(count),
        state_bytes=np.zeros(count),
    )


def _median_s(what: Callable[[], object], rounds: int) -> float:
    what()
    taken = []
    for _ in range(rounds):
        started = process_time()
        what()
        taken.append(process_time() - started)
    return median(taken)
