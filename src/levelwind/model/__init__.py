"""Frozen data: streams, operators, network, cluster, plan."""

from levelwind.model.cluster import Cluster, Node
from levelwind.model.network import Network
from levelwind.model.operator import (
    Aggregate,
    Custom,
    Diffuse,
    Filter,
    Join,
    Map,
    Model,
    Multijoin,
    Operator,
    RowWindow,
    Split,
    SqlRead,
    SqlWrite,
    TimeWindow,
    Union,
)
from levelwind.model.plan import Measures, Plan, PlanStatus
from levelwind.model.stream import Column, ErrorPolicy, Output, Port, Query, Schema, Stream
from levelwind.model.topology import Link, Topology

__all__ = [
    "Aggregate",
    "Cluster",
    "Column",
    "Custom",
    "Diffuse",
    "ErrorPolicy",
    "Filter",
    "Join",
    "Link",
    "Map",
    "Measures",
    "Model",
    "Multijoin",
    "Network",
    "Node",
    "Operator",
    "Output",
    "Plan",
    "PlanStatus",
    "Port",
    "Query",
    "RowWindow",
    "Schema",
    "Split",
    "SqlRead",
    "SqlWrite",
    "Stream",
    "TimeWindow",
    "Topology",
    "Union",
]
