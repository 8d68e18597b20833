"""What the planners of the cost space share: coordinates, points, near nodes."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem
from levelwind.placement.room import Room
from levelwind.placement.units import Units
from levelwind.space import CostSpace, VivaldiConfig, embed

K = 10
K_TEXT = "nearest nodes that are looked at first; more while none of them has room"
LOAD_TEXT = "how many ms a full node moves away in the cost space; 0: latency alone"


def cost_space(
    problem: Problem, room: Room, *, height: bool, load_weight_ms: float, rng: np.random.Generator
) -> CostSpace:
    """The cost space of a cluster: coordinates from its latencies, load of what stands already.

    O(rounds × nodes).
    """
    latency = np.array(problem.cluster.latency_ms, dtype=float)
    found = embed(latency, config=VivaldiConfig(height=height), seed=int(rng.integers(2**31)))
    load = 1.0 - room.left["CPU"] / problem.cpu
    return CostSpace(coordinates=found, load=load, load_weight_ms=load_weight_ms)


def first_points(units: Units, space: CostSpace, rng: np.random.Generator) -> Floats:
    """Provisional places, by chance near the origin, as a unit without a coordinate gets."""
    return rng.normal(size=(units.count, space.coordinates.position.shape[1]))


def free_in_order(units: Units) -> list[int]:
    """Free units in the order of the flow: what feeds others comes before them."""
    place = {name: i for i, name in enumerate(units.problem.network.order)}
    rank = [min(place[units.problem.physical.operators[j].logical.name] for j in m) for m in units.members]
    return sorted(np.flatnonzero(units.fixed < 0).tolist(), key=lambda unit: rank[unit])


def widening(space: CostSpace, point: Floats, k: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """All nodes by their distance from a point, found in portions that double. For first fit."""
    return space.nearest(point[None, :], min(k, len(space.points)))[0]


def nearest_with_room(room: Room, unit: int, space: CostSpace, point: Floats, k: int) -> int | None:
    """Place the unit on the nearest node that has room: of the ``k`` nearest, else of twice as many, …"""
    looked, count = 0, len(space.points)
    while looked < count:
        near = widening(space, point, k)
        if (node := room.first_fit(unit, near[looked:].tolist())) is not None:
            return node
        looked, k = len(near), 2 * k
    return None


def by_latency(latency_s: Floats, node: int) -> list[int]:
    """All nodes, nearest to one of them first, itself before all."""
    order: Ints = np.argsort(latency_s[:, node] + latency_s[node], kind="stable")
    return [node, *(int(other) for other in order if other != node)]
