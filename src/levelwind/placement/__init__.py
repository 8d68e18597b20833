"""Planners, and what their plans are worth."""

from levelwind.placement.measures import cut_streams, measure, node_loads
from levelwind.placement.protocol import Decision, Planner, check_needs, option
from levelwind.placement.registry import make_planner, planner_class, planner_names
from levelwind.placement.units import Units, make_units

__all__ = [
    "Decision",
    "Planner",
    "Units",
    "check_needs",
    "cut_streams",
    "make_planner",
    "make_units",
    "measure",
    "node_loads",
    "option",
    "planner_class",
    "planner_names",
]
