"""RELAXATION: springs in the latency space, then the nearest node with room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.filling import begin, place_all
from levelwind.placement.flows import make_flows
from levelwind.placement.mapping import (
    K_TEXT,
    LOAD_TEXT,
    K,
    cost_space,
    first_points,
    free_in_order,
    nearest_with_room,
)
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.room import Room
from levelwind.placement.units import make_units
from levelwind.placement.virtual import MOST_SWEEPS, make_links, relax


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxationPlanner:
    """Operators as weightless bodies on springs, mapped to the nearest node of the cost space.

    The springs minimise Σ rate × latency², which is not network usage but its square: kept as printed, for
    comparison (see `network`). Only coordinates are looked at, never a latency itself. Of the ``k`` nearest
    nodes the nearest with room for CPU, memory and bandwidth is taken; ``k`` doubles while none has.

    Notes
    -----
    O(rounds × nodes) for the coordinates, O(sweeps × arcs) for the springs, O(log nodes) for each operator.
    Where we differ from print (seed 002, figure 7): the sign of the step, and δ over the sum of rates.
    """

    name: ClassVar[str] = "relaxation"
    summary: ClassVar[str] = "spring relaxation in the latency space, then the nearest node with room"
    origin: ClassVar[str] = "seed 002, section 3.1"
    needs: ClassVar[str] = "rates latency"

    k: int = option(K, K_TEXT, least=1)
    load_weight: float = option(0.0, LOAD_TEXT, least=0.0)
    height: bool = option(
        False, "coordinates with a height for each node's access line, which the paper lacks"
    )
    damping: float = option(0.1, "share of the way to rest that a unit goes in a sweep (δ)", least=1e-3)
    rest: float = option(
        0.1, "ms from rest at which the springs stop (F_t over the sum of rates)", least=1e-6
    )

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Relax all queries together, then map unit by unit."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        flows = make_flows(units)
        room, none = begin(flows)
        if none is not None:
            return none
        space = cost_space(problem, room, height=self.height, load_weight_ms=self.load_weight, rng=rng)
        links = make_links(flows, room.nodes)
        points, sweeps = relax(
            links,
            space.coordinates.position,
            first_points(units, space, rng),
            damping=min(self.damping, 1.0),
            rest_ms=self.rest,
        )

        def place(room: Room, unit: int) -> int | None:
            return unit if nearest_with_room(room, unit, space, points[unit], self.k) is None else None

        room, none = place_all(flows, free_in_order(units), place)
        if none is not None:
            return none
        reasons = ["pinned" if units.fixed[u] >= 0 else "nearest node with room" for u in units.of.tolist()]
        return Decision(
            status=PlanStatus.PLACED if sweeps < MOST_SWEEPS else PlanStatus.NOT_CONVERGED,
            assignment=units.assignment(room.nodes),
            reasons=reasons,
            notes=(f"springs at rest after {sweeps} sweeps",),
            figures={"sweeps": float(sweeps)},
        )
