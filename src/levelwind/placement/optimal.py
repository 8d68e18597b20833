"""The best plan there is, by looking at all of them: for tiny networks, and as a yardstick for planners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.greedy import place_greedily, sequence
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.rays import OVERHEAD, Rays, add, compiled, fill, make_rays, volume_of
from levelwind.placement.rod import RodPlanner, volume
from levelwind.placement.units import Units, make_units

RAYS = 1024
SLACK = 0.02
KEEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalPlanner:
    """Look at every plan that is not a mere renaming of another, and take the one with the largest volume.

    Branch and bound: units in falling order of their norm; a partial plan's volume, the rest left out,
    bounds that of all its completions. Volumes are compared on rays; the best few are then compared
    exactly (up to three variables) or on many rays. Refuses networks with more than ``limit`` plans.
    Exponential in the number of operators.
    """

    name: ClassVar[str] = "optimal"
    summary: ClassVar[str] = "the largest feasible set there is, by looking at all plans; tiny networks only"
    origin: ClassVar[str] = "seed 000, section 4.1"
    needs: ClassVar[str] = "nothing"

    limit: int = option(20_000_000, "plans it is willing to look at", least=1)

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Search all plans, or refuse."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        count = plans_to_try(units)
        if not problem.variables:
            return RodPlanner().plan(problem, rng=rng)
        if count > self.limit:
            note = f"there are about {count:.2g} plans, more than {self.limit:,}: use resilient"
            return Decision(status=PlanStatus.REFUSED, notes=(note,))
        best = best_plan(units)
        assert best is not None
        assignment = units.assignment(best)
        reasons = ["pinned" if units.fixed[u] >= 0 else "the best of all plans" for u in units.of.tolist()]
        notes = (f"all {count:,} plans that differ in more than names were considered",)
        return Decision(status=PlanStatus.PLACED, assignment=assignment, reasons=reasons, notes=notes)


def plans_to_try(units: Units) -> int:
    """Plans that are not renamings of each other by nodes that nothing tells apart (an upper bound)."""
    moving = len(_moving(units))
    kinds = np.bincount(_node_kinds(units.problem)).tolist()
    if len(kinds) == 1:
        # Ways to divide the units into at most n groups: sums of Stirling numbers of the second kind.
        ways = [1] + [0] * kinds[0]
        for _ in range(moving):
            ways = [0] + [groups * ways[groups] + ways[groups - 1] for groups in range(1, kinds[0] + 1)]
        return sum(ways)
    return int(len(units.problem.cpu) ** moving)


def best_plan(units: Units, *, work: float = float("inf")) -> Ints | None:
    """The node of each unit in the plan with the largest volume; None if ``work`` did not suffice.

    See `OptimalPlanner` for how. Work is counted in planes × rays looked at.
    """
    problem = units.problem
    start = place_greedily(units, rng=np.random.default_rng(0)).nodes
    moving = _moving(units)
    rays = make_rays(units, points=RAYS, seed=1)
    kinds = _node_kinds(problem)
    plans, values, kept, finished = _branch(rays, start, moving, kinds, np.float32(1.0 - SLACK), work)
    if not finished:
        return None
    candidates = [start, *(plans[i] for i in np.argsort(-values[:kept], kind="stable"))]
    worth = [volume(problem, units.assignment(nodes)) for nodes in candidates]
    return candidates[int(np.argmax(worth))]


def _moving(units: Units) -> Ints:
    """Units whose place matters and is free, largest norm first."""
    matters = np.asarray((units.weight > 0).any(axis=1))
    carried = units.problem.carried
    matters[units.of[carried.reader_operator]] = True
    matters[units.of[carried.producer[carried.producer >= 0]]] = True
    order = sequence(units, "normalised")
    return order[matters[order] & (units.fixed[order] < 0)]


def _node_kinds(problem: Problem) -> Ints:
    """A number per node, equal for nodes that nothing tells apart: capacity, bandwidth, being named."""
    named = {int(i) for i in problem.fixed if i >= 0}
    named |= set(problem.carried.entry[problem.carried.entry >= 0].tolist())
    named |= set(problem.carried.exit_node.tolist())
    seen: dict[tuple[float, float, int], int] = {}
    kinds = [
        seen.setdefault((float(cpu), float(wire), i if i in named else -1), len(seen))
        for i, (cpu, wire) in enumerate(zip(problem.cpu, problem.bandwidth, strict=True))
    ]
    return np.array(kinds, dtype=np.int64)


@compiled
def _branch(rays: Rays, first: Ints, moving: Ints, kinds: Ints, share: Any, work: float) -> Any:
    """Depth first over all plans; returns the plans within ``share`` of the best on the rays."""
    n, width, bottom = len(rays.cpu), rays.unit.shape[1], len(moving)
    carried = len(rays.home) > 0
    ideal, power = rays.ideal, rays.power
    largest, result = np.zeros(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    stamp = np.zeros(n + 1, dtype=np.int64)
    whole = np.zeros((2 * n + 1, width), dtype=np.float32)
    fill(whole, first, rays, stamp)
    best = volume_of(whole, rays.planes, ideal, power, largest, result)
    plans = np.zeros((KEEP, len(first)), dtype=np.int64)
    values = np.zeros(KEEP, dtype=np.float32)
    kept, depth, spent = 0, 0, 0.0
    nodes = first.copy()
    # One table per depth: nothing is ever subtracted, so no rounding adds up.
    tables = np.zeros((bottom + 1, n, width), dtype=np.float32)
    crowd = np.zeros(n, dtype=np.int64)
    standing = np.ones(len(first), dtype=np.bool_)
    standing[moving] = False
    for u in np.flatnonzero(standing):
        i = first[u]
        add(tables[0, i], rays.cpu[i], rays.unit[u])
        # A unit that weighs nothing does not make its node different from another.
        crowd[i] += 1 if rays.unit[u].max() > 0 else 0
    tried = np.full(bottom + 1, -1, dtype=np.int64)
    while depth >= 0 and spent < work:
        if depth == bottom:
            if carried:
                fill(whole, nodes, rays, stamp)
                value = volume_of(whole, rays.planes, ideal, power, largest, result)
            else:
                value = volume_of(tables[depth], n, ideal, power, largest, result)
            best = max(best, value)
            if value >= best * share:
                slot = kept if kept < KEEP else np.argmin(values)
                if kept < KEEP or value > values[slot]:
                    plans[slot] = nodes
                    values[slot] = value
                    kept = min(KEEP, kept + 1)
            depth -= 1
            continue
        if tried[depth] >= 0:
            crowd[tried[depth]] -= 1
        i = tried[depth] + 1
        while i < n and _repeats(i, kinds, crowd):
            i += 1
        if i == n:
            tried[depth] = -1
            depth -= 1
            continue
        tried[depth] = i
        crowd[i] += 1
        spent += (n + OVERHEAD) * width
        nodes[moving[depth]] = i
        tables[depth + 1] = tables[depth]
        add(tables[depth + 1, i], rays.cpu[i], rays.unit[moving[depth]])
        if volume_of(tables[depth + 1], n, ideal, power, largest, result) >= best * share:
            depth += 1
    return plans, values, kept, depth < 0


@compiled
def _repeats(i: int, kinds: Ints, crowd: Ints) -> bool:
    """Whether an empty node before this one is of the same kind: one of them is enough to look at."""
    if crowd[i]:
        return False
    for other in range(i):  # noqa: SIM110  numba compiles no generator expression
        if kinds[other] == kinds[i] and crowd[other] == 0:
            return True
    return False
