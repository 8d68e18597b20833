"""A greedy pass that sees what sending costs: each unit to the node that leaves the largest volume."""

from __future__ import annotations

from typing import Any

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.placement.greedy import sequence
from levelwind.placement.rays import Rays, add, compiled, make_rays, shift_streams, volume_of
from levelwind.placement.units import Units

RAYS = 256


def place_by_volume(units: Units, *, seed: int, shuffles: int = 0) -> list[Ints]:
    """Place units one by one where the feasible set of what is placed so far stays largest.

    ROD's own pass looks at CPU alone, which is why it wants clusters where sending is dear. This one counts
    every plane. Two orders are tried: largest norm first, and each operator right after what it reads, so
    that it finds its neighbours placed; and ``shuffles`` mixtures of the two by chance. Equal volumes are
    settled by the fewest copies sent, then by the first node. O(units × nodes × planes × rays) an order.
    """
    rays = make_rays(units, points=RAYS, seed=seed)
    network = units.problem.network
    rank = {name: i for i, name in enumerate(network.order)}
    position = np.full(units.count, len(rank))
    for j, operator in enumerate(units.problem.physical.operators):
        unit = units.of[j]
        position[unit] = min(position[unit], rank[operator.logical.name])
    pinned_first = np.argsort(units.fixed < 0, kind="stable")
    downstream = pinned_first[np.argsort(position[pinned_first], kind="stable")]
    heaviest = sequence(units, "normalised")
    orders = [heaviest, downstream]
    rng = np.random.default_rng(seed)
    turn = np.argsort(heaviest), np.argsort(downstream)
    for _ in range(shuffles):
        share = rng.random()
        mixed = share * turn[0] + (1 - share) * turn[1] + rng.random(units.count) * units.count / 4
        mixed[units.fixed >= 0] = -1.0
        orders.append(np.argsort(mixed, kind="stable"))
    return [_place(rays, order, units.fixed) for order in orders]


def steps(units: Units) -> int:
    """Compiled steps that one order takes, about half a nanosecond each."""
    nodes = len(units.problem.cpu)
    return units.count * nodes * (2 * nodes + 1) * RAYS


@compiled
def _place(rays: Rays, order: Ints, fixed: Ints) -> Any:
    unit, cpu, planes, ideal, power = rays.unit, rays.cpu, rays.planes, rays.ideal, rays.power
    n, width = len(cpu), unit.shape[1]
    largest, result = np.zeros(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    stamp = np.zeros(n + 1, dtype=np.int64)
    nodes = np.full(len(order), -1, dtype=np.int64)
    table = np.zeros((2 * n + 1, width), dtype=np.float32)
    kept, best_table = table.copy(), table.copy()
    more = np.float32(1.0 + 1e-5)  # what counts as a difference in single precision
    for u in order:
        kept[:] = table
        best, best_value, best_traffic = -1, np.float32(0.0), np.float32(0.0)
        for i in range(n):
            if fixed[u] >= 0 and fixed[u] != i:
                continue
            table[:] = kept
            add(table[i], cpu[i], unit[u])
            shift_streams(table, u, i, nodes, rays, stamp)
            nodes[u] = -1
            value = volume_of(table, planes, ideal, power, largest, result)
            traffic = table.sum()  # every copy sent adds to it
            better = value > best_value * more
            tied = value * more >= best_value and traffic * more < best_traffic
            if best < 0 or better or tied:
                best, best_value, best_traffic = i, value, traffic
                best_table[:] = table
        nodes[u] = best
        table[:] = best_table
    return nodes
