"""Fewest operators first: the papers' plainest pattern, which knows nothing but counts."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import ClassVar

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.units import make_units


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinPlanner:
    """Operators in the order of the file, each to the node that holds the fewest, the first of equals.

    Counts come out equal and nothing else is looked at: neighbours are torn apart, and which operators meet
    on a node depends on how the file is written. O(operators × log nodes). Reference: seed 003, algorithm 2.
    """

    name: ClassVar[str] = "round_robin"
    summary: ClassVar[str] = "operators in written order, each to the node with the fewest operators"
    origin: ClassVar[str] = "seed 003, algorithm 2"
    needs: ClassVar[str] = "nothing"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Deal the operators out in turn."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        sizes = np.bincount(units.of, minlength=units.count).tolist()
        nodes = units.fixed.tolist()
        held = [0] * len(problem.cpu)
        for unit, node in enumerate(nodes):
            if node >= 0:
                held[node] += sizes[unit]
        fewest = [(count, node) for node, count in enumerate(held)]
        heapify(fewest)
        for unit, node in enumerate(nodes):
            if node < 0:
                count, nodes[unit] = fewest[0]
                heapreplace(fewest, (count + sizes[unit], nodes[unit]))
        reasons = [
            "pinned" if units.fixed[unit] >= 0 else "fewest operators when its turn came"
            for unit in units.of.tolist()
        ]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(nodes), reasons=reasons)
