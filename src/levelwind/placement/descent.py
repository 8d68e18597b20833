"""Better placements step by step: a unit, or units that stand together, moved where usage is less."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.flows import Flows
from levelwind.placement.room import Room

MOST_PASSES = 50
# A gain below this share of the usage is rounding.
LEAST_GAIN = 1e-9


def descend(room: Room, members: tuple[int, ...], candidates: Ints, latency_s: Floats) -> None:
    """Move units one by one, then those of one node together, while network usage falls and there is room.

    All members must be placed. O(passes × units × (arcs at a unit × candidates)).
    """
    for _ in range(MOST_PASSES):
        moved = [_move(room, (unit,), candidates, latency_s) for unit in members]
        together: dict[int, list[int]] = {}
        for unit in members:
            together.setdefault(int(room.nodes[unit]), []).append(unit)
        moved += [
            _move(room, tuple(units), candidates, latency_s) for units in together.values() if len(units) > 1
        ]
        if not any(moved):
            return


def _move(room: Room, units: tuple[int, ...], candidates: Ints, latency_s: Floats) -> bool:
    flows = room.flows
    before = int(room.nodes[units[0]])
    here = cost_of(flows, units, room.nodes, latency_s)
    if len(units) == 1:
        cost = flows.at(units[0], candidates, room.nodes, latency_s)
        cost = cost - flows.at(units[0], np.array([before]), room.nodes, latency_s)[0]
    else:
        cost = np.empty(len(candidates))
        trial = room.nodes.copy()
        for c, node in enumerate(candidates.tolist()):
            trial[list(units)] = node
            cost[c] = cost_of(flows, units, trial, latency_s) - here
    for c in np.argsort(cost, kind="stable").tolist():
        if cost[c] >= -LEAST_GAIN * max(here, 1e-12):
            return False
        if _take(room, units, int(candidates[c]), before):
            return True
    return False


def _take(room: Room, units: tuple[int, ...], node: int, before: int) -> bool:
    """Move the units if there is room for all of them there; otherwise leave them where they were."""
    for unit in units:
        room.remove(unit)
    done: list[int] = []
    for unit in units:
        if room.lacking(unit, node) is not None:
            for other in done:
                room.remove(other)
            for other in units:
                room.place(other, before)
            return False
        room.place(unit, node)
        done.append(unit)
    return True


def cost_of(flows: Flows, units: tuple[int, ...], nodes: Ints, latency_s: Floats) -> float:
    """What all flows at these units cost."""
    total = 0.0
    for f in dict.fromkeys(f for unit in units for f in flows.of[unit]):
        flow = flows.flows[f]
        home = flows.home(flow, nodes)
        if home >= 0:
            targets = flows.receivers(flow, nodes) - {home}
            total += flow.rate * sum(float(latency_s[home, target]) for target in targets)
    return total
