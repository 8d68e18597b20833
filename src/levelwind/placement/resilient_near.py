"""The most resilient plan that keeps results near: two data centres, and one budget of delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.annealing import value_on
from levelwind.placement.delays import Paths, delay_of, delays_of_all, make_paths, shorten
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.rays import make_rays
from levelwind.placement.resilient import WORK_PER_SECOND, ResilientPlanner, search
from levelwind.placement.rod import volume
from levelwind.placement.units import Units, make_units

# So few plans are all looked at: on rays first, the best of them exactly.
EVERY_PLAN_UP_TO, RAYS, SLACK, EXACTLY = 20_000, 1024, 0.02, 64
MOST_STARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ResilientNearPlanner:
    """Maximise the feasible set among the plans whose longest path is at most ``delay_ms``.

    `resilient`'s own plan where it is near enough. Else few plans are all looked at; with many, the search
    begins at plans that keep the limit (everything on one node, or `resilient`'s plan with operators moved
    until it does) and never leaves it. A search that begins beyond the limit would need a price for delay,
    and could end beyond it too.

    Notes
    -----
    As `resilient`, and O(arcs) for each plan that would be accepted.
    """

    name: ClassVar[str] = "resilient_near"
    summary: ClassVar[str] = "the largest feasible set among plans whose delay keeps within a limit"
    origin: ClassVar[str] = "ours"
    needs: ClassVar[str] = "latency"

    delay_ms: float = option(100.0, "most delay of a plan: its longest path from stream to output", least=0.0)
    budget: float = option(1.0, "CPU seconds of search", least=0.0)

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Search within the limit."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        paths = make_paths(units, self.delay_ms)
        anywhere = ResilientPlanner(budget=self.budget).plan(problem, rng=rng)
        assert anywhere.assignment is not None
        nodes = _unit_nodes(units, anywhere.assignment)
        if delay_of(paths, nodes) <= self.delay_ms:
            return anywhere
        free = np.flatnonzero(units.fixed < 0)
        if len(problem.cpu) ** len(free) <= EVERY_PLAN_UP_TO:
            found, least, how = _best_of_all(units, paths, nodes, free)
        else:
            found, least, how = self._searched(units, paths, nodes, free, rng)
        if found is None:
            return infeasible(
                f"no plan keeps within {self.delay_ms:g} ms: the least delay {how} is {least:.4g} ms"
            )
        assignment = units.assignment(found)
        share = volume(problem, assignment), volume(problem, anywhere.assignment)
        reasons = [
            "pinned" if units.fixed[u] >= 0 else "search: the largest feasible set within the delay"
            for u in units.of.tolist()
        ]
        note = (
            f"delay {delay_of(paths, found):.4g} ms; feasible set {share[0]:.4g}, {share[1]:.4g} without the "
            f"limit; {how}"
        )
        return Decision(status=PlanStatus.PLACED, assignment=assignment, notes=(note,), reasons=reasons)

    def _searched(
        self, units: Units, paths: Paths, nodes: Ints, free: Ints, rng: np.random.Generator
    ) -> tuple[Ints | None, float, str]:
        starts, least = _starts(units, paths, nodes, free)
        if not starts:
            return None, least, "that a search found"
        if not units.problem.variables:
            return starts[0], least, "no operator has a load that follows a stream"
        work = self.budget * WORK_PER_SECOND / len(starts)
        best, most, tries = starts[0], -1.0, 0
        for start in starts:
            found, tried = search(units, units.assignment(start), work, rng, paths)
            size = volume(units.problem, units.assignment(found))
            tries += tried
            if size > most:
                best, most = found, size
        return best, least, f"{tries:,} plans tried"


def _unit_nodes(units: Units, assignment: Ints) -> Ints:
    nodes = np.empty(units.count, dtype=np.int64)
    nodes[units.of] = assignment
    return nodes


def _best_of_all(units: Units, paths: Paths, nodes: Ints, free: Ints) -> tuple[Ints | None, float, str]:
    """The best of every plan within the limit. O(nodes^units)."""
    problem, count = units.problem, len(units.problem.cpu)
    delays = delays_of_all(paths, nodes.copy(), free, count)
    least = float(delays.min())
    near = np.flatnonzero(delays <= paths.limit_ms)
    how = "of all plans"
    if not len(near):
        return None, least, how
    plans = np.broadcast_to(nodes, (len(near), len(nodes))).copy()
    plans[:, free] = near[:, None] // count ** np.arange(len(free))[::-1] % count
    how = f"all {len(near):,} plans within the limit looked at"
    if not problem.variables:
        return plans[0], least, how
    rays = make_rays(units, points=RAYS, seed=1)
    value = np.array([value_on(rays, plan) for plan in plans])
    order = np.argsort(-value, kind="stable")
    few = [i for i in order[:EXACTLY].tolist() if value[i] >= value[order[0]] * (1.0 - SLACK)] or [order[0]]
    best = max(few, key=lambda i: volume(problem, units.assignment(plans[i])))
    return plans[best], least, how


def _starts(units: Units, paths: Paths, nodes: Ints, free: Ints) -> tuple[list[Ints], float]:
    """Plans within the limit, the largest feasible sets first, and the least delay that was met."""
    count = len(units.problem.cpu)
    tried = [nodes.copy()]
    for node in range(count):
        together = nodes.copy()
        together[free] = node
        tried.append(together)
    least, found = np.inf, []
    for plan in tried:
        # Only the plan that is far out is worth many steps; one node for all is near or never will be.
        delay = shorten(paths, plan, free, count) if plan is tried[0] else delay_of(paths, plan)
        least = min(least, delay)
        if delay <= paths.limit_ms:
            found.append(plan)
    if not found:
        for plan in tried[1:]:
            least = min(least, delay := shorten(paths, plan, free, count))
            if delay <= paths.limit_ms:
                found.append(plan)
                break
    found.sort(key=lambda plan: -volume(units.problem, units.assignment(plan)))
    return found[:MOST_STARTS], float(least)
