"""One plan in a process of its own: seconds and peak memory, as JSON on standard output.

Run by `rod_scale` with operators, nodes, streams, seed, 1 to measure the plan's volume too, and a planner
with its options: ``python -m levelwind.bench.plan_once 10000 100 20 0 1 rod class_one=first``.
A fresh process, since memory that Python once had it may keep, and since nothing then is cached.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from levelwind.bench.literal_rod import literal_rod
from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem, planes, volume_of_planes
from levelwind.model import Cluster
from levelwind.placement import make_planner

LITERAL = "literal"


def peak_memory_mb() -> float:
    """Most memory that this process ever held, in MB.

    From ``/proc`` where there is one: ``ru_maxrss`` of a started process begins at its parent's size.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 1e6 if sys.platform == "darwin" else used * 1024 / 1e6


def plan_once(
    planner: str, *options: str, operators: int, nodes: int, streams: int, seed: int, measured: bool = False
) -> dict[str, Any]:
    """Plan random trees, timed from the ready problem to the decision."""
    network = random_trees(np.random.default_rng(seed), operators=operators, streams=streams)
    problem = make_problem(network, Cluster.equal(nodes))
    chosen = None if planner == LITERAL else make_planner(planner, dict(text.split("=") for text in options))
    before = peak_memory_mb()
    started = perf_counter()
    if chosen is None:
        assignment = literal_rod(problem)
    else:
        decided = chosen.plan(problem, rng=np.random.default_rng(seed)).assignment
        assert decided is not None  # nothing is pinned, so everything is placed
        assignment = decided
    answer: dict[str, Any] = {
        "seconds": perf_counter() - started,
        "peak_mb": peak_memory_mb(),
        "before_mb": before,
    }
    if measured:
        answer["ratio"] = volume_of_planes(planes(problem, assignment), problem.normalised_lower).ratio
    return answer


if __name__ == "__main__":
    count, width, inputs, start, measure = map(int, sys.argv[1:6])
    shown = plan_once(
        *sys.argv[6:], operators=count, nodes=width, streams=inputs, seed=start, measured=bool(measure)
    )
    print(json.dumps(shown))
