"""Chance, with equal counts, equal loads or neither: what a plan is worth that nobody thought about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.balance import place_by_load
from levelwind.placement.filling import begin, place_all
from levelwind.placement.flows import make_flows
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.room import Room
from levelwind.placement.units import make_units


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPlanner:
    """Operators in random order, each to a random one of the nodes that hold the fewest.

    O(operators × nodes). Reference: seed 000, section 6.1.2.
    """

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "by chance, an equal number of operators on every node"
    origin: ClassVar[str] = "seed 000, section 6.1.2"
    needs: ClassVar[str] = "nothing"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Deal the operators out."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        sizes = np.bincount(units.of, minlength=units.count)
        nodes = units.fixed.copy()
        counts = np.bincount(nodes[nodes >= 0], weights=sizes[nodes >= 0], minlength=len(problem.cpu))
        for unit in rng.permutation(units.count).tolist():
            if nodes[unit] < 0:
                nodes[unit] = rng.choice(np.flatnonzero(counts == counts.min()))
                counts[nodes[unit]] += sizes[unit]
        reasons = ["pinned" if units.fixed[unit] >= 0 else "chance" for unit in units.of.tolist()]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(nodes), reasons=reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBalancedPlanner:
    """Operators in random order, each to the node that it leaves least loaded.

    O(operators × nodes). Reference: seed 001, section 5.1.3 (RAND-GLB).
    """

    name: ClassVar[str] = "random_balanced"
    summary: ClassVar[str] = "operators in random order, each to the least loaded node, at mean rates"
    origin: ClassVar[str] = "seed 001, section 5.1.3"
    needs: ClassVar[str] = "rates"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Deal the operators out by load."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        nodes = place_by_load(units, units.mean_load, rng.permutation(units.count))
        reasons = [
            "pinned" if units.fixed[unit] >= 0 else "its turn came by chance, on the least loaded node"
            for unit in units.of.tolist()
        ]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(nodes), reasons=reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomNodePlanner:
    """Each operator to any node that has room for it, all with the same chance.

    Room is counted at the stated rates; where a rate is missing, any node will do. O(operators × nodes).
    Reference: seed 002, section 4.1 (RANDOM).
    """

    name: ClassVar[str] = "random_node"
    summary: ClassVar[str] = "each operator on any node, by chance"
    origin: ClassVar[str] = "seed 002, section 4.1"
    needs: ClassVar[str] = "nothing"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Draw a node for each operator."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        flows = make_flows(units)
        _, none = begin(flows)
        if none is not None:
            return none

        def place(room: Room, unit: int) -> int | None:
            first = int(rng.integers(len(problem.cpu)))
            if room.first_fit(unit, (first,)) is not None:
                return None
            others = rng.permutation(len(problem.cpu)).tolist()
            return unit if room.first_fit(unit, others) is None else None

        room, none = place_all(flows, np.flatnonzero(units.fixed < 0).tolist(), place)
        if none is not None:
            return none
        reasons = ["pinned" if units.fixed[unit] >= 0 else "chance" for unit in units.of.tolist()]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(room.nodes), reasons=reasons)
