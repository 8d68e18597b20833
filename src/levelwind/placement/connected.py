"""Connected operators together: few streams between nodes, and no defence against a burst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.balance import heaviest_first, pinned_load
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.units import Units, make_units


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedPlanner:
    """Heaviest free operator to the least loaded node, then what is connected to it while there is room.

    The node takes connected operators, heaviest first, while it stays within its fair share of the total
    load. Connected are operators that exchange rows or read the same input stream.
    O(operators × nodes + arcs). Reference: seed 000, section 6.1.2, which gives the idea but not the
    procedure.
    """

    name: ClassVar[str] = "connected"
    summary: ClassVar[str] = "connected operators on one node, within its fair share of the mean load"
    origin: ClassVar[str] = "seed 000, section 6.1.2"
    needs: ClassVar[str] = "rates"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Grow connected groups, one node at a time."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        load, cpu = units.mean_load, problem.cpu
        fair = load.sum() * cpu / cpu.sum()
        node_load = pinned_load(units, load)
        nodes = units.fixed.copy()
        connected = _connected(units)
        why = ["pinned"] * units.count
        for seed in heaviest_first(load).tolist():
            if nodes[seed] >= 0:
                continue
            home = int(np.argmin(node_load / cpu))
            nodes[seed], why[seed] = home, "heaviest operator left, to the least loaded node"
            node_load[home] += load[seed]
            edge = {u for u in connected[seed] if nodes[u] < 0}
            while edge:
                fitting = [u for u in edge if node_load[home] + load[u] <= fair[home] * (1 + 1e-9)]
                if not fitting:
                    break
                unit = max(fitting, key=lambda u: (load[u], -u))
                nodes[unit], why[unit] = home, "connected to an operator there, within the fair share"
                node_load[home] += load[unit]
                edge.remove(unit)
                edge |= {u for u in connected[unit] if nodes[u] < 0}
        reasons = [why[unit] for unit in units.of.tolist()]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(nodes), reasons=reasons)


def _connected(units: Units) -> list[list[int]]:
    """For each unit those it exchanges rows with, and those that read an input stream it reads. O(arcs)."""
    lists = [list(near) for near in units.neighbours]
    for stream in units.problem.physical.streams:
        if stream.producer is None:
            readers = dict.fromkeys(units.of[list(stream.consumers)].tolist())
            # A ring through the readers: from any of them the whole ring can be reached.
            ring = list(readers)
            for one, other in zip(ring, ring[1:] + ring[:1], strict=True):
                if one != other:
                    lists[one].append(other)
                    lists[other].append(one)
    return lists
