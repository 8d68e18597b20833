"""Planners by name: the built-in ones, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levelwind.placement.protocol import Planner
from levelwind.plugins import Registry

BUILT_IN = {
    "rod": "levelwind.placement.rod:RodPlanner",
    "resilient": "levelwind.placement.resilient:ResilientPlanner",
    "resilient_near": "levelwind.placement.resilient_near:ResilientNearPlanner",
    "optimal": "levelwind.placement.optimal:OptimalPlanner",
    "llf": "levelwind.placement.llf:LargestLoadFirstPlanner",
    "max_rate": "levelwind.placement.llf:MaxRatePlanner",
    "connected": "levelwind.placement.connected:ConnectedPlanner",
    "correlation": "levelwind.placement.correlation:CorrelationPlanner",
    "steady": "levelwind.placement.steady:SteadyPlanner",
    "hybrid": "levelwind.placement.hybrid:HybridPlanner",
    "round_robin": "levelwind.placement.round_robin:RoundRobinPlanner",
    "grouping": "levelwind.placement.grouping:GroupingPlanner",
    "random": "levelwind.placement.random:RandomPlanner",
    "random_balanced": "levelwind.placement.random:RandomBalancedPlanner",
    "random_node": "levelwind.placement.random:RandomNodePlanner",
    "network": "levelwind.placement.network:NetworkPlanner",
    "relaxation": "levelwind.placement.relaxation:RelaxationPlanner",
    "producer": "levelwind.placement.ends:ProducerPlanner",
    "consumer": "levelwind.placement.ends:ConsumerPlanner",
    "ip_multicast": "levelwind.placement.ip_multicast:IpMulticastPlanner",
    "optimal_network": "levelwind.placement.optimal_network:OptimalNetworkPlanner",
}
ENTRY_POINTS = "levelwind.planners"
PLANNERS = Registry(kind="planner", built_in=BUILT_IN, entry_points=ENTRY_POINTS)


def planner_names() -> tuple[str, ...]:
    """Names of all planners, the built-in ones first."""
    return PLANNERS.names()


def planner_class(name: str) -> type[Any]:
    """The class of a planner; an unknown name is an input error that names the nearest."""
    return PLANNERS.find(name)


def make_planner(name: str, options: Mapping[str, Any] | None = None) -> Planner:
    """A planner with options, given as values or as the text of ``--set key=value``."""
    planner: Planner = PLANNERS.make(name, options)
    return planner
