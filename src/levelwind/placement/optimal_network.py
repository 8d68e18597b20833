"""The least network usage there is, as a yardstick for planners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.filling import begin
from levelwind.placement.flows import Flows, latency_seconds, make_flows
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.room import Room
from levelwind.placement.trees import groups_of, make_group, tree_optimum
from levelwind.placement.units import make_units

PORTION = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalNetworkPlanner:
    """Every plan considered, by dynamic programming where operators make trees, else one by one.

    Queries that share no operator and no stream are solved each for itself, as long as no node gets full.
    If one does, all plans together are looked at, and more than ``limit`` of them are refused.

    Notes
    -----
    O(nodes²) per arc of a tree, times 2^readers for streams with several readers; nodes^operators for what
    is no tree.
    """

    name: ClassVar[str] = "optimal_network"
    summary: ClassVar[str] = "the least network usage there is; trees of any size, other networks if tiny"
    origin: ClassVar[str] = "seed 002, section 4.1 (OPTIMAL)"
    needs: ClassVar[str] = "rates latency"

    limit: int = option(2_000_000, "plans it is willing to look at one by one", least=1)

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Solve, or refuse."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        flows = make_flows(units)
        room, none = begin(flows)
        if none is not None:
            return none
        latency, every = latency_seconds(units), np.arange(len(problem.cpu))
        free = np.flatnonzero(units.fixed < 0).tolist()
        fits = True
        for members in groups_of(flows, free, entries=True):
            group = make_group(flows, members, every, room.nodes, latency)
            if group.is_tree:
                chosen, _ = tree_optimum(group)
                best = [chosen[unit] for unit in members]
            elif len(every) ** len(members) <= self.limit:
                best = next(_plans(flows, members, room.nodes, latency))
            else:
                return _refused(len(every) ** len(members), self.limit, "a query's operators make no tree")
            for unit, node in zip(members, best, strict=True):
                fits = fits and room.lacking(unit, node) is None
                room.place(unit, node)
        how = "least network usage of all plans"
        if not fits:
            count = len(every) ** len(free)
            if count > self.limit:
                return _refused(count, self.limit, "the least usage overloads a node")
            room, _ = begin(flows)
            short = _first_that_fits(room, tuple(free), latency)
            if short is not None:
                return infeasible(f"no plan fits: {short} is short")
            how = "least network usage of the plans that fit"
        reasons = ["pinned" if units.fixed[u] >= 0 else how for u in units.of.tolist()]
        return Decision(
            status=PlanStatus.PLACED, assignment=units.assignment(room.nodes), reasons=reasons, notes=(how,)
        )


def _refused(count: int, limit: int, why: str) -> Decision:
    note = f"{why}, and there are {float(count):.2g} plans, more than {limit:,}: use network"
    return Decision(status=PlanStatus.REFUSED, notes=(note,))


def _first_that_fits(room: Room, members: tuple[int, ...], latency_s: Floats) -> str | None:
    """Place the units by the cheapest plan that fits; if none does, what stops the most plans."""
    stopped: Counter[str] = Counter()
    for nodes in _plans(room.flows, members, room.nodes, latency_s):
        done: list[int] = []
        for unit, node in zip(members, nodes, strict=True):
            lacking = room.lacking(unit, node)
            if lacking is not None:
                stopped[lacking] += 1
                break
            room.place(unit, node)
            done.append(unit)
        if len(done) == len(members):
            return None
        for unit in done:
            room.remove(unit)
    return stopped.most_common(1)[0][0]


def _plans(flows: Flows, members: tuple[int, ...], nodes: Ints, latency_s: Floats) -> Iterator[list[int]]:
    """All placements of these units, least usage first."""
    count = len(latency_s)
    total = count ** len(members)
    cost = np.empty(total)
    digits = count ** np.arange(len(members))[::-1]
    for first in range(0, total, PORTION):
        number = np.arange(first, min(first + PORTION, total))
        trial = np.broadcast_to(nodes, (len(number), len(nodes))).copy()
        trial[:, list(members)] = number[:, None] // digits % count
        cost[first : first + len(number)] = usages(flows, members, trial, latency_s)
    for number in np.argsort(cost, kind="stable").tolist():
        yield (number // digits % count).tolist()


def usages(flows: Flows, members: tuple[int, ...], nodes: Ints, latency_s: Floats) -> Floats:
    """What the flows at these units cost in each of many placements (rows of ``nodes``)."""
    total = np.zeros(len(nodes))
    for f in dict.fromkeys(f for unit in members for f in flows.of[unit]):
        flow = flows.flows[f]
        home = np.full(len(nodes), flow.entry) if flow.home < 0 else nodes[:, flow.home]
        places = [nodes[:, unit] for unit in flow.readers]
        places += [np.full(len(nodes), node) for node in flow.exits]
        for i, place in enumerate(places):
            repeated = np.zeros(len(nodes), dtype=bool)
            for earlier in places[:i]:
                repeated |= earlier == place
            total += np.where(repeated, 0.0, flow.rate * latency_s[home, place])
    return total
