"""Our own planner for wide areas: true network usage, on coordinates or on probed latencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.descent import cost_of, descend
from levelwind.placement.filling import begin, place_all
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.placement.mapping import K_TEXT, LOAD_TEXT, K, cost_space, first_points
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.room import CPU, Room
from levelwind.placement.trees import groups_of, make_group, tree_optimum
from levelwind.placement.units import make_units
from levelwind.placement.virtual import make_links, medians, relax
from levelwind.space import CostSpace

# Nodes where rows enter or leave that a query has beyond this number are not candidates for its operators.
MOST_ENDS = 64
RETRIES = 50
DAMPING, REST_MS = 0.5, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPlanner:
    """The least Σ rate × latency that the nodes near the best points of the latency space allow.

    Every query's operators get points that minimise usage itself (geometric medians, not centroids). The
    ``k`` nodes nearest to each point and the nodes where the query's rows enter and leave are candidates
    for all its operators. Among them the query is placed exactly, by dynamic programming, if its operators
    make a tree, and by descent from several starts if not. With ``probe`` the candidates' latencies are
    looked up in the matrix; without, the coordinates predict them. A stream that several readers share is
    paid once per node; a shared operator counts for all its users. Nothing is placed beyond a node's CPU,
    memory or bandwidth: ``k`` doubles while nothing fits.

    Notes
    -----
    O(rounds × nodes) for the coordinates; per query O(operators × (log nodes + candidates²)).
    """

    name: ClassVar[str] = "network"
    summary: ClassVar[str] = "least network usage among the nodes near the best points, within their capacity"
    origin: ClassVar[str] = "ours"
    needs: ClassVar[str] = "rates latency"

    k: int = option(K, K_TEXT, least=1)
    probe: bool = option(True, "look up the candidates' real latencies, not only their coordinates")
    load_weight: float = option(0.0, LOAD_TEXT, least=0.0)

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Place query by query."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        flows = make_flows(units)
        room, none = begin(flows)
        if none is not None:
            return none
        space = cost_space(problem, room, height=True, load_weight_ms=self.load_weight, rng=rng)
        latency = latency_seconds(units) if self.probe else space.coordinates.matrix() / 1000.0
        links = make_links(flows, room.nodes)
        rest, _ = relax(
            links,
            space.coordinates.position,
            first_points(units, space, rng),
            damping=DAMPING,
            rest_ms=REST_MS,
        )
        points = medians(links, space.coordinates.position, rest)
        free = np.flatnonzero(units.fixed < 0).tolist()
        groups = groups_of(flows, free, entries=False)
        looked = 0

        def place(room: Room, members: tuple[int, ...]) -> int | None:
            nonlocal looked
            short, width = _place(room, members, space, points, self.k, latency)
            looked = max(looked, width)
            return short

        room, none = place_all(flows, groups, place)
        if none is not None:
            return none
        if any(flow.home < 0 and len(flow.readers) > 1 for flow in flows.flows):
            # Queries that read one stream gain by standing together, which those placed first did not know.
            for members in groups:
                descend(room, members, _candidates(room, members, space, points, self.k), latency)
        how = "probed" if self.probe else "predicted"
        reasons = [
            "pinned" if units.fixed[u] >= 0 else f"least {how} network usage of the candidates"
            for u in units.of.tolist()
        ]
        return Decision(
            status=PlanStatus.PLACED,
            assignment=units.assignment(room.nodes),
            reasons=reasons,
            notes=(f"queries: {len(groups)}; candidates each: at most {looked}; latencies {how}",),
        )


def _place(
    room: Room, members: tuple[int, ...], space: CostSpace, points: Floats, k: int, latency: Floats
) -> tuple[int | None, int]:
    """Place a query; returns a unit that fits nowhere, or None, and the number of candidates."""
    while True:
        candidates = _candidates(room, members, space, points, k)
        if _place_best(room, members, candidates, latency):
            return None, len(candidates)
        short = _place_each(room, members, candidates, latency)
        if short is None:
            descend(room, members, candidates, latency)
            return None, len(candidates)
        if k >= len(space.points):
            return short, len(candidates)
        k *= 2


def _place_best(room: Room, members: tuple[int, ...], candidates: Ints, latency: Floats) -> bool:
    """Place a query as well as the candidates allow; False if that does not fit."""
    group = make_group(room.flows, members, candidates, room.nodes, latency)
    nodes = candidates.tolist()
    for unit in members:
        full = [room.lacking(unit, node) is not None for node in nodes]
        group.alone[unit][full] = np.inf
    # Units that fit one by one may not fit together: what did not is barred, and the query solved again.
    for _ in range(RETRIES if group.is_tree else 0):
        chosen, cost = tree_optimum(group)
        if not np.isfinite(cost):
            return False
        barred = _try(room, {unit: nodes[chosen[unit]] for unit in members})
        if barred is None:
            return True
        group.alone[barred][chosen[barred]] = np.inf
    if group.is_tree:
        return False
    alone = np.array([group.alone[unit] for unit in members])
    starts = [np.full(len(members), np.argmin(alone.sum(axis=0))), np.argmin(alone, axis=1)]
    best, least = None, np.inf
    for start in starts:
        if _try(room, {unit: nodes[c] for unit, c in zip(members, start.tolist(), strict=True)}) is not None:
            continue
        descend(room, members, candidates, latency)
        usage = cost_of(room.flows, members, room.nodes, latency)
        if usage < least:
            best, least = room.nodes[list(members)].tolist(), usage
        for unit in members:
            room.remove(unit)
    return best is not None and _try(room, dict(zip(members, best, strict=True))) is None


def _try(room: Room, wanted: dict[int, int]) -> int | None:
    """Place units where they are wanted, all or none; returns the first that does not fit."""
    done: list[int] = []
    for unit, node in wanted.items():
        if room.lacking(unit, node) is not None:
            for other in done:
                room.remove(other)
            return unit
        room.place(unit, node)
        done.append(unit)
    return None


def _place_each(room: Room, members: tuple[int, ...], candidates: Ints, latency: Floats) -> int | None:
    """Unit by unit where it costs least and fits, all or none; returns one that fits nowhere.

    A unit that finds no room chooses first in another try.
    """
    order, short = list(members), None
    for _ in members:
        short = _place_in_order(room, order, candidates, latency)
        if short is None or short == order[0]:
            break
        order.remove(short)
        order.insert(0, short)
    return short


def _place_in_order(room: Room, order: list[int], candidates: Ints, latency: Floats) -> int | None:
    done: list[int] = []
    for unit in order:
        cost = room.flows.at(unit, candidates, room.nodes, latency)
        by_cost = candidates[np.argsort(cost, kind="stable")].tolist()
        if room.first_fit(unit, by_cost) is None:
            for other in done:
                room.remove(other)
            return unit
        done.append(unit)
    return None


def _candidates(room: Room, members: tuple[int, ...], space: CostSpace, points: Floats, k: int) -> Ints:
    """Nodes near the units' points, and where the query's rows come from and go to, these first."""
    flows = room.flows
    ends: dict[int, None] = {}
    for f in dict.fromkeys(f for unit in members for f in flows.of[unit]):
        home = flows.home(flows.flows[f], room.nodes)
        ends.update(dict.fromkeys([home] if home >= 0 else []))
        ends.update(dict.fromkeys(sorted(flows.receivers(flows.flows[f], room.nodes))))
    if not ends:
        # Nothing ties the query to any place: it costs nothing on a single node, best on an empty one.
        return np.argsort(-room.left[CPU], kind="stable")[:k]
    near = space.nearest(points[list(members)], k).ravel().tolist()
    return np.array(list(dict.fromkeys([*list(ends)[:MOST_ENDS], *near])), dtype=np.int64)
