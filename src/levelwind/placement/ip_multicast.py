"""Operators where routes meet: at the branches of the multicast tree that the network's own routes make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.ends import ends_of
from levelwind.placement.filling import begin, place_all
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.placement.mapping import by_latency, free_in_order
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.room import Room
from levelwind.placement.units import make_units
from levelwind.space.routes import Routes, find_routes


@dataclass(frozen=True, slots=True, kw_only=True)
class IpMulticastPlanner:
    """Every operator on the first node that all routes from its streams to its output have in common.

    The routes are the topology's. What stands on a route adds no delay to it, as long as the cluster's
    latencies are those of the routes. An operator with several outputs is placed for the one it sends the
    most to. Where a node is full, the next on the common route is taken, at last the nearest to the output.
    O(nodes × links × log nodes) for the routes, then O(operators × length of routes).
    """

    name: ClassVar[str] = "ip_multicast"
    summary: ClassVar[str] = "operators where the routes from their streams to their output meet"
    origin: ClassVar[str] = "seed 002, section 4.1 (IP MULTICAST)"
    needs: ClassVar[str] = "rates latency topology"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Follow the routes."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        flows = make_flows(units)
        room, none = begin(flows)
        if none is not None:
            return none
        assert problem.cluster.topology is not None
        routes = find_routes(problem.cluster.topology)
        latency = latency_seconds(units)
        at = {name: i for i, name in enumerate(routes.names)}
        router = [at[name] for name in problem.cluster.names]
        node_at = {place: node for node, place in enumerate(router)}
        above, below = ends_of(flows)

        def place(room: Room, unit: int) -> int | None:
            target = max(below[unit], key=lambda node: below[unit][node], default=None)
            order: list[int] = []
            if target is not None:
                meeting = _common(routes, [router[node] for node in above[unit]], router[target])
                order = [node_at[place] for place in meeting if place in node_at]
            near = target if target is not None else next(iter(above[unit]), None)
            rest = by_latency(latency, near) if near is not None else range(len(problem.cpu))
            return unit if room.first_fit(unit, [*order, *rest]) is None else None

        room, none = place_all(flows, free_in_order(units), place)
        if none is not None:
            return none
        reasons = ["pinned" if units.fixed[u] >= 0 else "where its routes meet" for u in units.of.tolist()]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(room.nodes), reasons=reasons)


def _common(routes: Routes, sources: list[int], target: int) -> list[int]:
    """What the routes from all sources to the target share, from where the last of them joins."""
    if not sources:
        return [target]
    shared: set[int] = set.intersection(*(set(routes.path(source, target)) for source in sources))
    return [node for node in routes.path(sources[0], target) if node in shared]
