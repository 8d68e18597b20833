"""Our own planner: ROD, then a search on the feasible set's volume itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.annealing import anneal, value_on
from levelwind.placement.delays import Paths
from levelwind.placement.optimal import best_plan, plans_to_try
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.rays import OVERHEAD, make_rays
from levelwind.placement.rod import RodPlanner, volume
from levelwind.placement.units import Units, make_units

# Ray values a core gets through per second. Deliberately low: a budget is kept, not just met on average.
# A budget is counted in work, not by a clock, so that the same seed gives the same plan on any machine.
WORK_PER_SECOND = 4.2e9
# So few plans are always all looked at; up to the second number it is tried with half of the budget.
ALWAYS_BRANCH_UP_TO, BRANCH_UP_TO = 20_000, 100_000_000
# Few rays find the region, more rays the plan. The latter gets this share of the budget; a value costs more
# there, since the tables no longer fit into the nearest cache.
COARSE, FINE, FINE_SHARE, FINE_COST = 256, 1024, 0.3, 2.0
# A run that is longer than this gains less than a second run would.
TRIES_PER_UNIT, MOST_RUNS = 6_000, 12
# Temperatures, times the number of units: a move's effect on the volume shrinks with their number.
HOT, COLD = 3.0, 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class ResilientPlanner:
    """Maximise the feasible set by search, starting from ROD's plan and never ending below it.

    ROD's greedy choice is never revised; here operators are moved and swapped, and each change is judged by
    the volume it leaves, estimated on rays that are the same for all plans. Simulated annealing on few rays
    finds the region, annealing at low heat on more rays the plan. Networks so small that all plans can be
    looked at get the optimum. Costs of sending, bandwidth, lower bounds, pins and tables all count.

    Notes
    -----
    A plan tried costs O(rays × (nodes + streams at the operator)). The answer is compared with ROD's by
    exact volume up to three variables and on at least 16,384 fresh rays above.
    """

    name: ClassVar[str] = "resilient"
    summary: ClassVar[str] = "search on the feasible set's volume, from rod's plan and never below it"
    origin: ClassVar[str] = "ours"
    needs: ClassVar[str] = "nothing"

    budget: float = option(1.0, "CPU seconds of search", least=0.0)

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Search from ROD's plan."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        start = RodPlanner().plan(problem, rng=rng)
        assert start.assignment is not None
        if not problem.variables or len(problem.cpu) == 1:
            return start
        work = self.budget * WORK_PER_SECOND
        tries, how, found = 0, "every plan considered", None
        count = plans_to_try(units)
        if count <= BRANCH_UP_TO:
            work /= 2
            found = best_plan(units, work=float("inf") if count <= ALWAYS_BRANCH_UP_TO else work)
        if found is None:
            found, tries = search(units, start.assignment, work, rng)
            how = f"{tries:,} plans tried"
        assignment = units.assignment(found)
        before, after = volume(problem, start.assignment), volume(problem, assignment)
        if not after > before:
            assignment, after = start.assignment, before
        gained = f"{after / before:.3f} times rod's" if before > 0 else f"{after:.4g} against rod's 0"
        moved = assignment != start.assignment
        reasons = [
            "search: the feasible set is larger with it here" if changed else f"as rod placed it: {reason}"
            for changed, reason in zip(moved.tolist(), start.reasons, strict=True)
        ]
        return Decision(
            status=PlanStatus.PLACED,
            assignment=assignment,
            notes=(f"feasible set {gained}; {how}, {int(moved.sum())} operators elsewhere",),
            reasons=reasons,
            figures={"rod_ratio": before, "ratio": after, "tries": float(tries)},
        )


def search(
    units: Units, start: Ints, work: float, rng: np.random.Generator, paths: Paths | None = None
) -> tuple[Ints, int]:
    """The node of each unit in the best plan that annealing finds from an assignment, and plans tried.

    With ``paths``, every plan on the way keeps their limit.
    """
    free = np.flatnonzero(units.fixed < 0)
    nodes = np.empty(units.count, dtype=np.int64)
    nodes[units.of] = start
    if not len(free):
        return nodes, 0
    coarse = make_rays(units, points=COARSE, seed=int(rng.integers(2**31)))
    fine = make_rays(units, points=FINE, seed=int(rng.integers(2**31)))
    one_run = TRIES_PER_UNIT * len(free) * (coarse.planes + OVERHEAD) * COARSE
    runs = max(1, min(MOST_RUNS, int(work * (1 - FINE_SHARE) // one_run)))
    share = int(work * (1 - FINE_SHARE)) // runs
    best, best_value, tries = nodes, -np.inf, 0
    for _ in range(runs):
        seed = int(rng.integers(2**62))
        found, _, tried = anneal(
            coarse,
            nodes,
            free,
            seed=seed,
            work=share,
            hot=HOT / len(free),
            cold=COLD / len(free),
            paths=paths,
        )
        value = value_on(fine, found)
        tries += tried
        if value > best_value:
            best, best_value = found, value
    seed = int(rng.integers(2**62))
    rest = int(work * FINE_SHARE / FINE_COST)
    best, _, tried = anneal(
        fine,
        best,
        free,
        seed=seed,
        work=rest,
        hot=COLD / len(free),
        cold=COLD / len(free) / 4,
        paths=paths,
    )
    return best, tries + tried
