"""Feasible sets of ROD, of its rivals and of our own planner on random trees: figures 6.1 to 6.5."""

from __future__ import annotations

import numpy as np

from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem
from levelwind.reproduce.outcome import Item, Result
from levelwind.reproduce.worlds import (
    NODES,
    SAMPLES,
    equal_cluster,
    even_rates,
    feasible_ratio,
    planned,
    random_rates,
    ratio_of,
)

RIVALS = ("correlation", "llf", "random", "connected")
EVEN_SAMPLES = 100


def measure(item: Item) -> Result:
    """One graph: ROD once (it needs no rates), each rival ``runs`` times with fresh rates or chance.

    ``even`` asks for correlation on long series of equal mean as well, ``budget`` for our own planner with
    so many seconds of search. O(runs) plans.
    """
    rng = np.random.default_rng(item["seed"])
    network = random_trees(rng, operators=item["operators"], streams=item["streams"])
    problem = make_problem(network, equal_cluster())
    result: Result = {**item, "nodes": NODES, "rod": ratio_of(problem, "rod")}
    runs: dict[str, list[float]] = {name: [] for name in RIVALS}
    if item.get("even"):
        runs["correlation_even"] = []
    for _ in range(item["runs"]):
        constant = make_problem(random_rates(network, rng), problem.cluster)
        series = make_problem(random_rates(network, rng, samples=SAMPLES), problem.cluster)
        chance = int(rng.integers(2**31))
        for name in RIVALS:
            known = series if name == "correlation" else constant
            runs[name].append(feasible_ratio(known, planned(known, name, seed=chance)))
        if item.get("even"):
            even = make_problem(even_rates(network, rng, samples=EVEN_SAMPLES), problem.cluster)
            runs["correlation_even"].append(ratio_of(even, "correlation"))
    result.update(runs)
    if item.get("budget"):
        result["resilient"] = ratio_of(problem, "resilient", budget=item["budget"])
    return result
