"""Files in, checked models out: networks, clusters, placements, and their JSON Schemas."""

from levelwind.frontend.cluster import load_cluster
from levelwind.frontend.network import Loaded, load_network, parse_network
from levelwind.frontend.notebook import InputWarning, load, parse
from levelwind.frontend.placement import check_placement, load_placement
from levelwind.frontend.schema import cluster_schema, network_schema
from levelwind.frontend.units import parse_bandwidth, parse_bytes, parse_duration

__all__ = [
    "InputWarning",
    "Loaded",
    "check_placement",
    "cluster_schema",
    "load",
    "load_cluster",
    "load_network",
    "load_placement",
    "network_schema",
    "parse",
    "parse_bandwidth",
    "parse_bytes",
    "parse_duration",
    "parse_network",
]
