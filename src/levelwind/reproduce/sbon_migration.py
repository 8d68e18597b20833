"""Queries over latencies that change: with an operator that may move, and with one that stays.

The latencies are those of the Seattle testbed, slice by slice (see ``data/README.md``). Before each slice the
policy decides on the means of all slices so far and their errors, and what that costs is counted on the next
slice, which it has not seen. These are personal devices: a latency varies by three quarters of its mean, so
the paper's filter, which finds the base of a link, says little of what rows will meet.

How the rule came about: about 100 combinations of estimate (mean, median, 20th percentile), history,
thresholds and certainty were tried in a model of it on 120 other pairs of the same hosts and slices. With the
paper's filter 27 to 44% of those pairs were worse off. The policy's least saving (0.1) was taken from there.
Its certainty was 2 at first; with it, 8 of 96 further pairs were worse off, since the best of 60 candidates
seems two standard errors better more often than not. With 3, none of these 96 pairs was, and of 192 others
one. Only then were the pairs of figure 12 looked at again. Other hosts were not tried.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from levelwind.balance import Situation, make_policy, surroundings
from levelwind.balance.surroundings import estimated
from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem, make_problem
from levelwind.placement import make_planner
from levelwind.reproduce.wide_area import aggregations, cluster_of
from levelwind.space.published import usual_latency
from levelwind.space.readers import read_rtt_slices

SEATTLE = Path(__file__).with_name("data") / "seattle60.parquet"
PRODUCERS, PASSED = 2, 0.25
# The coordinates of these hosts are off by 40%, so all hosts are candidates: with the 30 nearest, migration
# gained nothing on the first 12 pairs.
NEAR = 60


@cache
def seattle() -> Floats:
    """One-way ms between 60 hosts in 43 slices; a pair that was not measured has its median over time."""
    slices = np.array(list(read_rtt_slices(SEATTLE)))
    return np.where(np.isnan(slices), usual_latency(slices)[None], slices)


def followed(seed: int, *, constant: bool) -> dict[str, Any]:
    """A pair of equal queries from the second slice to the last: one migrates, one does not.

    ``constant`` holds the latencies of the first slice for ever: the control, in which nothing is to be
    gained but what the first placement missed.
    """
    slices = seattle()
    if constant:
        slices = np.broadcast_to(slices[:1], slices.shape)
    rng = np.random.default_rng(seed)
    names = cluster_of(slices[0]).names
    network = aggregations(rng, names, 1, producers=PRODUCERS, passed=PASSED)
    problem = make_problem(network, cluster_of(slices[0]))
    first = (
        make_planner("network", {"k": len(names)}).plan(problem, rng=np.random.default_rng(seed)).assignment
    )
    assert first is not None
    policy = make_policy("local_relaxation", {"k": NEAR})
    node = first.copy()
    found: dict[str, Any] = {"stays": [], "migrates": [], "delay_stays": [], "delay_migrates": []}
    moves = []
    for now in range(len(slices) - 1):
        situation = _situation(problem, node, slices[: now + 1])
        for proposal in policy.propose(situation, rng=np.random.default_rng(0)):
            node = node.copy()
            node[proposal.operator] = proposal.to
            moves.append({"slice": now, "to": names[proposal.to]})
        for name, place in (("stays", first), ("migrates", node)):
            usage, delay = _cost(problem, place, slices[now + 1])
            found[name].append(usage)
            found[f"delay_{name}"].append(delay)
    return {**found, "moves": moves, "first": names[int(first[0])]}


def saving(found: dict[str, Any], what: str = "") -> float:
    """The share of network usage (or, with ``delay_``, of delay) that migration saves."""
    return 1.0 - float(np.mean(found[f"{what}migrates"])) / float(np.mean(found[f"{what}stays"]))


def _situation(problem: Problem, node: Ints, history: Floats) -> Situation:
    """The query's one operator, on hosts with nothing else to do."""
    return Situation(
        series=np.full((1, 1), 0.01),
        node=node,
        cpu=np.ones(len(problem.cpu)),
        movable=np.ones(1, dtype=bool),
        unit=np.arange(1),
        state_bytes=np.zeros(1),
        around=surroundings(problem, *estimated(list(history))),
    )


def _cost(problem: Problem, node: Ints, latency: Floats) -> tuple[float, float]:
    """Network usage in bytes and delay in ms of the query's one operator."""
    around = surroundings(problem, latency)
    ends = [np.where(end >= 0, node[0], -1 - end) for end in (around.source, around.target)]
    hop = np.where(ends[0] == ends[1], 0.0, latency[ends[0], ends[1]])
    inward = around.source < 0
    return float((around.rate * hop).sum() / 1000.0), float(hop[inward].max() + hop[~inward].max())
