"""Operators where the rows come from or go to: what one does without looking at the network between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.filling import begin, place_all
from levelwind.placement.flows import Flow, Flows, latency_seconds, make_flows
from levelwind.placement.mapping import by_latency, free_in_order
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.room import CPU, Room
from levelwind.placement.units import make_units


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlanner:
    """Every operator on the node of the output it feeds; of several, the one it sends the most to.

    Where that node is full, the nearest one with room. O(arcs + operators × nodes).
    """

    name: ClassVar[str] = "consumer"
    summary: ClassVar[str] = "operators on the node of the output that they feed"
    origin: ClassVar[str] = "seed 002, section 4.1 (CONSUMER)"
    needs: ClassVar[str] = "rates latency"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Follow the flow down to its end."""
        return _at_ends(problem, rng, downstream=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlanner:
    """Every operator on the node of one of the streams that feed it, by chance; a query's stand together.

    Where that node is full, another of them, then the nearest one with room. O(arcs + operators × nodes).
    """

    name: ClassVar[str] = "producer"
    summary: ClassVar[str] = "operators on the node of a stream that feeds them, chosen by chance"
    origin: ClassVar[str] = "seed 002, section 4.1 (PRODUCER)"
    needs: ClassVar[str] = "rates latency"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Follow the flow up to its beginnings."""
        return _at_ends(problem, rng, downstream=False)


def _at_ends(problem: Problem, rng: np.random.Generator, *, downstream: bool) -> Decision:
    units = make_units(problem)
    if units.conflicts:
        return infeasible(*units.conflicts)
    flows = make_flows(units)
    room, none = begin(flows)
    if none is not None:
        return none
    latency = latency_seconds(units)
    above, below = ends_of(flows)
    luck = rng.random(len(problem.cpu))

    def place(room: Room, unit: int) -> int | None:
        wanted = below[unit] if downstream else above[unit]
        # By rate where rows go to; by chance, the same for a whole query, where they come from.
        first = sorted(wanted, key=lambda node: -wanted[node] if downstream else luck[node])
        rest = by_latency(latency, first[0]) if first else _emptiest(room.left[CPU])
        found = room.first_fit(unit, [*(first[:1] if downstream else first), *rest])
        return unit if found is None else None

    room, none = place_all(flows, free_in_order(units), place)
    if none is not None:
        return none
    where = "the node of the output it feeds" if downstream else "the node of a stream that feeds it"
    reasons = ["pinned" if units.fixed[u] >= 0 else where for u in units.of.tolist()]
    return Decision(status=PlanStatus.PLACED, assignment=units.assignment(room.nodes), reasons=reasons)


def ends_of(flows: Flows) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
    """For each unit the nodes where its rows come from, and go to, with the rates of these flows.

    Pinned units are ends of what reads them and of what they read. O(arcs × ends of a query).
    """
    units = flows.units
    above: list[dict[int, float]] = [{} for _ in range(units.count)]
    below: list[dict[int, float]] = [{} for _ in range(units.count)]
    inside = _in_order(flows)
    for flow in inside:
        given = (
            {flow.entry: flow.rate} if flow.home < 0 else _end(flows, flow.home, above[flow.home], flow.rate)
        )
        for reader in flow.readers:
            _add(above[reader], given.items())
    for flow in reversed(inside):
        if flow.home < 0:
            continue
        _add(below[flow.home], ((node, flow.rate) for node in flow.exits))
        for reader in flow.readers:
            _add(below[flow.home], _end(flows, reader, below[reader], flow.rate).items())
    return above, below


def _in_order(flows: Flows) -> list[Flow]:
    """Flows, those that enter first, then by the order of what puts them out."""
    units = flows.units
    place = {name: i for i, name in enumerate(units.problem.network.order)}
    rank = [min(place[units.problem.physical.operators[j].logical.name] for j in m) for m in units.members]
    return sorted(flows.flows, key=lambda flow: -1 if flow.home < 0 else rank[flow.home])


def _end(flows: Flows, unit: int, beyond: dict[int, float], rate: float) -> dict[int, float]:
    fixed = int(flows.units.fixed[unit])
    return {fixed: rate} if fixed >= 0 else beyond


def _add(total: dict[int, float], more: Iterable[tuple[int, float]]) -> None:
    for node, rate in more:
        total[node] = total.get(node, 0.0) + rate


def _emptiest(left: Floats) -> list[int]:
    """Nodes by falling CPU left: where nothing says where to stand."""
    return [int(node) for node in np.argsort(-left, kind="stable")]
