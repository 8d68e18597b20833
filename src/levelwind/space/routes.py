"""Routes through a topology: the way that rows take, and how long it takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from levelwind.errors import InputError, Problem
from levelwind.loads.arrays import Floats, Ints, shared
from levelwind.model import Topology

compiled = njit(cache=True, error_model="numpy")
# Equal weights are told apart by latency, equal latencies by a digit that depends on the link alone: so one
# route is the best, and a part of a route is the route between its ends.
LATENCY_SHARE, TIE_SHARE = 1e-7, 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """All routes. ``latency_ms[i, j]`` is along the route from i to j, ``toward[i, j]`` the next node on it.

    ``toward`` is −1 from a node to itself.
    """

    names: tuple[str, ...]
    latency_ms: Floats
    toward: Ints

    def path(self, source: int, target: int) -> list[int]:
        """The nodes on the way, both ends included."""
        way = [source]
        while way[-1] != target:
            way.append(int(self.toward[way[-1], target]))
        return way


def find_routes(topology: Topology) -> Routes:
    """Routes of least weight between all nodes: policy weights where the links have them, else latencies.

    O(nodes × links × log nodes).

    Raises
    ------
    InputError
        If some nodes cannot reach others.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    index = {name: i for i, name in enumerate(topology.nodes)}
    count = len(index)
    rng = np.random.default_rng(0)
    best: dict[tuple[int, int], tuple[float, float]] = {}
    scale = max((link.latency_ms for link in topology.links), default=1.0) or 1.0
    for link in topology.links:
        a, b = index[link.source], index[link.target]
        pair = (min(a, b), max(a, b))
        weight = link.latency_ms / scale if link.weight is None else link.weight
        cost = weight + LATENCY_SHARE * link.latency_ms / scale + TIE_SHARE * rng.random() + 1e-15
        if a != b and (pair not in best or cost < best[pair][0]):
            best[pair] = (cost, link.latency_ms)
    if count > 1 and not best:
        raise InputError([Problem(rule="a topology must have links", key="topology")])
    ends = np.array(list(best), dtype=np.int64).reshape(-1, 2)
    numbers = np.array(list(best.values())).reshape(-1, 2)
    graph = csr_array((numbers[:, 0], (ends[:, 0], ends[:, 1])), shape=(count, count))
    length = np.zeros((count, count))
    length[ends[:, 0], ends[:, 1]] = length[ends[:, 1], ends[:, 0]] = numbers[:, 1]
    cost, before = dijkstra(graph, directed=False, return_predecessors=True)
    if np.isinf(cost).any():
        lost = topology.nodes[int(np.argmax(np.isinf(cost[0])))]
        rule = "every node of a topology must reach every other"
        raise InputError([Problem(rule=rule, key="topology", value=f"{lost} from {topology.nodes[0]}")])
    # Links go both ways: what comes before j on the way from i is what follows i on the way from j.
    toward = before.T.astype(np.int64)
    np.fill_diagonal(toward, -1)
    order = np.argsort(cost, axis=1, kind="stable")
    latency = _along(order.astype(np.int64), before.astype(np.int64), length)
    return Routes(names=topology.nodes, latency_ms=shared(latency), toward=shared(toward))


@compiled
def _along(order: Ints, before: Ints, length: Floats) -> Floats:
    """Latencies along the routes: each node's is that of the node before it and the last link."""
    count = len(order)
    latency = np.zeros((count, count))
    for i in range(count):
        for j in order[i]:
            if j != i:
                latency[i, j] = latency[i, before[i, j]] + length[before[i, j], j]
    return latency
