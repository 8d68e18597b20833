"""Largest load first, at the mean or at the highest rates: the classic way to balance load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Floats, sum_by
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.balance import heaviest_first, place_by_load
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.units import make_units


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestLoadFirstPlanner:
    """Heaviest operator first, to the least loaded node.

    Balances the load at one rate point, the mean of the stated rates; says nothing of any other.
    O(operators × nodes). Reference: seed 000, section 6.1.2.
    """

    name: ClassVar[str] = "llf"
    summary: ClassVar[str] = "heaviest operator first, to the least loaded node, at mean rates"
    origin: ClassVar[str] = "seed 000, section 6.1.2"
    needs: ClassVar[str] = "rates"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Balance the mean load."""
        return _balanced(problem, problem.mean_load, "mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxRatePlanner:
    """Largest load first, with the load that each operator has when its streams run at their highest rate.

    O(operators × nodes). Reference: seed 000, section 6.1.3.
    """

    name: ClassVar[str] = "max_rate"
    summary: ClassVar[str] = "heaviest operator first, to the least loaded node, at the highest rates seen"
    origin: ClassVar[str] = "seed 000, section 6.1.3"
    needs: ClassVar[str] = "rates"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Balance the largest load."""
        peak = problem.operator_load @ problem.variable_rates.max(axis=1, initial=0.0) + problem.stated_peak
        return _balanced(problem, peak, "largest")


def _balanced(problem: Problem, load: Floats, which: str) -> Decision:
    units = make_units(problem)
    if units.conflicts:
        return infeasible(*units.conflicts)
    unit_load = sum_by(units.of, load, units.count)
    nodes = place_by_load(units, unit_load, heaviest_first(unit_load))
    reasons = [
        "pinned"
        if units.fixed[unit] >= 0
        else f"least loaded node when its turn came ({which} load {unit_load[unit]:.4g})"
        for unit in units.of.tolist()
    ]
    return Decision(status=PlanStatus.PLACED, assignment=units.assignment(nodes), reasons=reasons)
